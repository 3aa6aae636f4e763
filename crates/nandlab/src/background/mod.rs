//! Background jobs: a plane's GC, static wear levelling, and refresh. A job empties one block and erases it, or refreshes
//! it and lets it stay.
//!
//! A few copies are under way at a time. A copy is a read and, if the page is still valid then, a program in the
//! same plane; the victim is erased when it holds nothing and no operation needs it any more.

pub mod gc;
pub(crate) mod notes;
mod pacing;
pub(crate) mod spec;
mod stats;
mod wear;

pub use stats::GcStats;

use crate::base::geometry::{BlockId, Lpn, PlaneId, Ppn};
use crate::core::{
    CopyBack, Core, Map, Maps, NextJob, Part, Program, Queued, Read, Refreshed, Space, To, Wake, Work,
};
use crate::ftl::WearLevelling;
use crate::ftl::WriteStream;
use crate::host::DataPath;
use crate::probe::Probe;
use crate::sched::{Cause, Class, Owner, Start, Transaction};
use pacing::Pacing;
use spec::{GcForeground, GcPacing, GcSpec};

/// Copies of a job under way at a time: enough to keep the die busy while pages cross the channel, few enough to
/// need little buffer.
const COPIES: u32 = 4;

/// Erases of every block after which the drive has failed, if no host page has got room of them: GC would go on for ever.
pub(crate) const IN_VAIN_MAX: u64 = 16;

/// How far ahead of its copy a page's map entry is asked for.
const PREFETCH_PAGES: u32 = 8;

/// What a plane is doing in the background.
#[derive(Clone, Debug, Default)]
pub(crate) struct Job {
    cause: Option<Cause>,
    /// Space is short, or the grace of a refresh is running out: the die serves the job as it does host writes.
    pub(crate) is_urgent: bool,
    /// It is urgent because space is short.
    is_paced: bool,
    /// The die is the job's while it works (`gc.foreground = "blocking"`), and that of what came before this order.
    blocks_from: Option<u64>,
    is_blocking: bool,
    is_erasing: bool,
    /// Where its pages are copied back to, if they are.
    copyback: Option<WriteStream>,
    /// The block stays, with those of its pages that are not written elsewhere.
    stays: bool,
    /// The read level at which its reads start.
    start: Start,
    /// The next page of the victim to look at.
    next_page: u32,
    copies: u32,
}

impl Job {
    pub(crate) fn cause(&self) -> Cause {
        self.cause.expect("the plane has a job")
    }
}

/// What other mechanisms have to do with the jobs of planes.
pub(crate) trait Around<P: Probe> {
    /// The block of a plane without a job that is due for refresh next, if there is one and room for it.
    fn next_due(&mut self, core: &mut Core<P>, plane: PlaneId) -> Option<NextJob>;

    /// The level at which the reads of a refresh start.
    fn refresh_start(&self) -> Start;

    /// A page of a block that stays has been read at that level, and is to be refreshed where it is.
    fn refresh_page(&mut self, core: &mut Core<P>, plane: PlaneId, read: &Transaction) -> Refreshed;

    /// All pages of a block that stays are done.
    fn end_staying(&mut self, core: &mut Core<P>, plane: PlaneId, block: BlockId);

    /// The stream that the pages of a victim are copied back to; `None`: they are all moved off-chip.
    fn copyback_stream(
        &mut self,
        core: &mut Core<P>,
        plane: PlaneId,
        victim: BlockId,
        job: &NextJob,
    ) -> Option<WriteStream>;

    /// Copies a page back, if that may be; else it is moved off-chip.
    fn copy_back(&mut self, core: &mut Core<P>, copyback: CopyBack) -> Option<Queued>;

    /// The program of a page that is moved has its place.
    fn on_moved(&mut self, core: &mut Core<P>, lpn: Lpn, to: Ppn);
}

/// The background jobs of all planes.
#[derive(Debug)]
pub(crate) struct Background {
    jobs: Box<[Job]>,
    /// `None`: GC takes turns with host writes by age.
    pacing: Option<Pacing>,
    gc: GcSpec,
    /// Static wear levelling is on.
    levels_wear: bool,
    wear_gap: u32,
    pub(crate) stats: GcStats,
}

impl Background {
    pub(crate) fn new(gc: &GcSpec, wear_levelling: WearLevelling, wear_gap: u32, planes: u32) -> Self {
        Self {
            jobs: vec![Job::default(); planes as usize].into(),
            pacing: (gc.pacing == GcPacing::Proportional).then(|| Pacing::new(planes)),
            gc: gc.clone(),
            levels_wear: wear_levelling == WearLevelling::Static,
            wear_gap,
            stats: GcStats::default(),
        }
    }

    /// Power is gone, and all jobs with it.
    pub(crate) fn forget<P: Probe>(&mut self, core: &mut Core<P>) {
        self.jobs.fill(Job::default());
        if let Some(pacing) = &mut self.pacing {
            pacing.forget();
        }
        core.room.works.fill(Work::default());
        core.ftl.planes.iter_mut().for_each(|state| state.promised_blocks = 0);
        core.room.spaces.fill(Space::default());
    }

    /// The grace of a due block is running out: the job of its plane is promoted, if it works on this block or the block is
    /// next; whether it was.
    pub(crate) fn hurry<P: Probe>(&mut self, core: &mut Core<P>, plane: PlaneId, is_next: bool) -> bool {
        let job = &mut self.jobs[plane.index()];
        let promotes = core.has_job(plane) && is_next && !job.is_urgent;
        if promotes {
            job.is_urgent = true;
            core.device.promote(core.geometry.die_of(plane));
        }
        promotes
    }
}

impl Background {
    /// Why each plane that has a job has it.
    pub(crate) fn causes<P: Probe>(&self, core: &Core<P>) -> Vec<Cause> {
        let planes = (0..core.geometry.planes).map(PlaneId).filter(|&plane| core.has_job(plane));
        planes.map(|plane| self.jobs[plane.index()].cause()).collect()
    }

    /// A block of `plane` has been opened or closed, or a write found no room: starts foreground GC if it is needed.
    pub(crate) fn check_space<P: Probe>(
        &mut self,
        core: &mut Core<P>,
        path: &mut DataPath<impl Map<P>>,
        around: &mut impl Around<P>,
        plane: PlaneId,
    ) {
        let _inside = core.inside.enter(Part::Background);
        if core.is_at_reserve(plane) {
            Self::hurry_erases(core, plane);
        }
        if !core.is_short(plane) {
            return;
        }
        let job = &mut self.jobs[plane.index()];
        if !core.has_job(plane) {
            self.start_gc(core, path, around, plane, true, 1.0);
        } else {
            if !std::mem::replace(&mut job.is_urgent, true) {
                job.is_paced = true;
                core.device.promote(core.geometry.die_of(plane));
                self.blocks_from_now(core, plane);
            }
            self.pace(core, plane);
        }
    }

    /// The drive is idle: starts background GC where it is worth it.
    pub(crate) fn start_background<P: Probe>(
        &mut self,
        core: &mut Core<P>,
        path: &mut DataPath<impl Map<P>>,
        around: &mut impl Around<P>,
    ) {
        let _inside = core.inside.enter(Part::Background);
        for plane in (0..core.geometry.planes).map(PlaneId) {
            if !core.has_job(plane) {
                self.continue_background(core, path, around, plane);
            }
        }
    }

    pub(crate) fn continue_background<P: Probe>(
        &mut self,
        core: &mut Core<P>,
        path: &mut DataPath<impl Map<P>>,
        around: &mut impl Around<P>,
        plane: PlaneId,
    ) {
        let is_short = core.is_short(plane);
        // It is due seldom, and under a steady load space is always short: so it does not wait for room.
        if self.levels_wear && self.start_wear(core, path, around, plane, is_short) {
            return;
        }
        // The host goes first: a drive that cannot refresh as fast as its data comes due lets it be overdue. GC that is paced
        // is never done long before it has to be, so refresh has its turn while there is time for both.
        let has_time = self.pacing.is_some() && 2 * core.host_room(plane) >= core.geometry.pages_per_block;
        if has_time && self.start_refresh(core, path, around, plane)
            || is_short && self.start_gc(core, path, around, plane, true, 1.0)
            || !has_time && self.start_refresh(core, path, around, plane)
        {
            return;
        }
        if !is_short && core.state.is_idle && core.is_below(plane, self.gc.background_free) {
            self.start_gc(core, path, around, plane, false, self.gc.idle_valid_max);
        }
    }

    /// Starts emptying the policy's victim, unless more than `valid_max` of it is valid or nothing can be gained; whether it
    /// did.
    #[inline(never)]
    fn start_gc<P: Probe>(
        &mut self,
        core: &mut Core<P>,
        path: &mut DataPath<impl Map<P>>,
        around: &mut impl Around<P>,
        plane: PlaneId,
        is_urgent: bool,
        valid_max: f64,
    ) -> bool {
        // The capacitor is being measured: as little else as can be.
        if core.state.is_draining && !path.is_stuck() {
            return false;
        }
        let Some(victim) = self.choose_victim(core, path, plane, is_urgent) else { return false };
        let (valid, pages) = (core.valid_pages(victim), core.geometry.pages_per_block);
        if f64::from(valid) > valid_max * f64::from(pages) {
            return false;
        }
        self.stats.victims += 1;
        self.stats.victim_valid_pages += u64::from(valid);
        if let Some(pacing) = &mut self.pacing {
            pacing.on_victim(plane, valid);
        }
        let job = NextJob { block: victim, cause: Cause::Gc, stays: false, is_urgent };
        self.start_job(core, path, around, plane, job);
        true
    }

    /// The victim that the policy names, if it can be emptied; else, and while the plane is down to what it must keep, the
    /// block with the fewest valid pages.
    fn choose_victim<P: Probe>(
        &mut self,
        core: &mut Core<P>,
        path: &DataPath<impl Map<P>>,
        plane: PlaneId,
        is_urgent: bool,
    ) -> Option<BlockId> {
        let named = core.ftl.pick_victim(&core.geometry, &core.array, plane, core.now)?;
        let presses = Self::presses(core, path, plane);
        // Moving a block that is wholly valid gains nothing, and with a demand map it loses room. It is worth it only for a
        // policy to get on to others, and only while space is short and the host busy, or somebody waits; and once round the plane.
        let is_whole = core.valid_pages(named) == core.geometry.pages_per_block;
        let may_lose =
            core.ftl.needs.mapping.open == 0 && is_urgent && !core.state.is_idle || path.is_stuck();
        let whole = &mut core.room.spaces[plane.index()].whole;
        *whole = if is_whole { *whole + 1 } else { 0 };
        let gets_on =
            is_whole && may_lose && !core.state.is_guarded && *whole <= core.geometry.blocks_per_plane;
        let gains = core.gains(named) || gets_on;
        let may_be = core.may_empty(plane, named, false) && !(is_urgent && core.retires(named));
        if !presses && gains && may_be {
            return Some(named);
        }
        let fewest = core.fewest_valid(plane)?;
        self.stats.victims_forced += u64::from(fewest != named);
        Some(fewest)
    }

    /// Whether a plane is down to what it must keep: a translation page waits for room in it and there is none but GC's, or
    /// GC has gone round without room for a single page. It remains so until the host's stream may open a block.
    fn presses<P: Probe>(core: &mut Core<P>, path: &DataPath<impl Map<P>>, plane: PlaneId) -> bool {
        let is_down = core.ftl.planes[plane.index()].free.len() <= core.ftl.kept_blocks();
        let is_in_vain = path.writes.erases_in_vain > u64::from(core.geometry.blocks);
        let is_at_reserve = core.is_at_reserve(plane);
        let presses = &mut core.room.spaces[plane.index()].presses;
        *presses = is_at_reserve && (*presses || is_down && path.map.waits_in(plane) || is_in_vain);
        *presses
    }

    /// Erases a block that holds nothing: as soon as its die has nothing else to do, or at once where space is short.
    pub(crate) fn erase_dead<P: Probe>(
        &mut self,
        core: &mut Core<P>,
        path: &mut DataPath<impl Map<P>>,
        block: BlockId,
    ) {
        let _inside = core.inside.enter(Part::Background);
        let plane = core.geometry.plane_of(block);
        path.host.trims.make_durable();
        self.stats.dead_blocks += 1;
        core.erase(block, Owner::DeadBlock(plane), Cause::Gc);
        if core.is_at_reserve(plane) {
            Self::hurry_erases(core, plane);
        }
    }

    /// Space is short: dead blocks are erased as host writes are served.
    fn hurry_erases<P: Probe>(core: &mut Core<P>, plane: PlaneId) {
        let die = core.geometry.die_of(plane);
        let space = &mut core.room.spaces[plane.index()];
        while space.hurried < space.dead {
            space.hurried += 1;
            core.device.promote(die);
        }
    }

    /// A dead block has been erased.
    pub(crate) fn end_dead<P: Probe>(&mut self, core: &mut Core<P>, plane: PlaneId, is_retired: bool) {
        let space = &mut core.room.spaces[plane.index()];
        space.dead -= 1;
        space.soon_free -= u32::from(!is_retired);
        if space.hurried > space.dead {
            space.hurried -= 1;
            core.device.demote(core.geometry.die_of(plane));
        }
    }

    /// Starts moving the plane's coldest block, if it lags far enough behind. Takes a block of the reserve and gives
    /// one back.
    #[inline(never)]
    fn start_wear<P: Probe>(
        &mut self,
        core: &mut Core<P>,
        path: &mut DataPath<impl Map<P>>,
        around: &mut impl Around<P>,
        plane: PlaneId,
        is_urgent: bool,
    ) -> bool {
        let state = &mut core.ftl.planes[plane.index()];
        // Often enough to keep up, seldom enough to cost nothing.
        if state.erases_unchecked < core.geometry.blocks_per_plane.div_ceil(8)
            || state.free.len() < core.ftl.reserve_blocks
        {
            return false;
        }
        state.erases_unchecked = 0;
        let first = core.geometry.first_block(plane);
        let blocks = &core.array.blocks[first.index()..][..core.geometry.blocks_per_plane as usize];
        let Some(within) = wear::laggard(blocks, self.wear_gap) else { return false };
        let victim = BlockId(first.0 + within);
        if !core.may_empty(plane, victim, true) {
            return false;
        }
        let job = NextJob { block: victim, cause: Cause::Wear, stays: false, is_urgent };
        self.start_job(core, path, around, plane, job);
        true
    }

    /// Starts to refresh the first block of a plane that is due; whether there is one.
    fn start_refresh<P: Probe>(
        &mut self,
        core: &mut Core<P>,
        path: &mut DataPath<impl Map<P>>,
        around: &mut impl Around<P>,
        plane: PlaneId,
    ) -> bool {
        let Some(due) = around.next_due(core, plane) else {
            return false;
        };
        self.start_job(core, path, around, plane, due);
        true
    }

    /// A block of a plane is due for refresh.
    pub(crate) fn on_due<P: Probe>(
        &mut self,
        core: &mut Core<P>,
        path: &mut DataPath<impl Map<P>>,
        around: &mut impl Around<P>,
        plane: PlaneId,
    ) {
        let _inside = core.inside.enter(Part::Background);
        if !core.has_job(plane) {
            self.continue_background(core, path, around, plane);
        }
    }

    #[inline(never)]
    fn start_job<P: Probe>(
        &mut self,
        core: &mut Core<P>,
        path: &mut DataPath<impl Map<P>>,
        around: &mut impl Around<P>,
        plane: PlaneId,
        job: NextJob,
    ) {
        let NextJob { block: victim, cause, stays, is_urgent: is_hurried } = job;
        // GC, and whatever goes before it, is done by when the host needs room.
        let is_refresh = cause == Cause::Refresh;
        let is_paced = self.pacing.is_some() && core.is_short(plane) && !(is_refresh && is_hurried);
        let is_urgent = is_hurried || is_paced;
        if !stays {
            core.ftl.begin_emptying(&core.geometry, &mut core.array, victim);
        }
        let start = if is_refresh { around.refresh_start() } else { Start::Policy };
        self.jobs[plane.index()] =
            Job { cause: Some(cause), is_urgent, is_paced, stays, start, ..Job::default() };
        core.room.works[plane.index()] = Work { victim: Some(victim), blocks_taken: 0 };
        // What a job whose block stays takes does not come back with an erase.
        core.ftl.planes[plane.index()].promised_blocks =
            if stays { core.blocks_to_empty(plane, victim, false) } else { 0 };
        self.jobs[plane.index()].copyback =
            around.copyback_stream(core, plane, victim, &NextJob { is_urgent, ..job });
        if is_urgent {
            core.device.promote(core.geometry.die_of(plane));
        }
        self.blocks_from_now(core, plane);
        self.pace(core, plane);
        for page in 0..PREFETCH_PAGES {
            Self::prefetch_copy(core, &path.map, victim, page);
        }
        self.copy_more(core, path, around, plane);
    }

    /// Asks the host machine's cache for what copying a page of a victim will need.
    #[inline]
    fn prefetch_copy<P: Probe>(core: &Core<P>, map: &impl Map<P>, victim: BlockId, page: u32) {
        if page < core.geometry.pages_per_block {
            let lpn = core.array.lpn(core.geometry.page(victim, page));
            core.ftl.map.prefetch(lpn);
            map.prefetch_move(lpn);
        }
    }

    /// Keeps the job's copies going; erases the victim when there is nothing left to copy.
    fn copy_more<P: Probe>(
        &mut self,
        core: &mut Core<P>,
        path: &mut DataPath<impl Map<P>>,
        around: &mut impl Around<P>,
        plane: PlaneId,
    ) {
        loop {
            let Some(victim) = core.victim(plane) else { return };
            let job = &mut self.jobs[plane.index()];
            if job.copies == COPIES {
                self.block(core, plane);
                return;
            }
            let Some(page) = core.ftl.next_valid(&core.geometry, victim, job.next_page) else {
                break;
            };
            job.next_page = page + 1;
            job.copies += 1;
            let (cause, copyback, start) = (job.cause(), job.copyback, job.start);
            let ppn = core.geometry.page(victim, page);
            let lpn = core.array.lpn(ppn);
            Self::prefetch_copy(core, &path.map, victim, page + PREFETCH_PAGES);
            if let Some(stream) = copyback
                && let Some(queued) =
                    around.copy_back(core, CopyBack { plane, stream, source: ppn, lpn, cause })
            {
                core.room.works[plane.index()].blocks_taken += u32::from(queued.opened);
                continue;
            }
            let (owner, class) = (Owner::Job(plane), Class::Background);
            let page_level = path.map.level(core, lpn);
            core.read(Read { ppn, lpn, owner, cause, class, start, page_level });
        }
        if self.jobs[plane.index()].stays {
            self.end_staying_job(core, path, around, plane);
        } else {
            self.erase_when_empty(core, path, plane);
        }
    }

    /// All pages of a block that stays have been asked for: when they are done, so is the job.
    #[inline(never)]
    fn end_staying_job<P: Probe>(
        &mut self,
        core: &mut Core<P>,
        path: &mut DataPath<impl Map<P>>,
        around: &mut impl Around<P>,
        plane: PlaneId,
    ) {
        let job = &self.jobs[plane.index()];
        let Some(block) = core.victim(plane).filter(|_| job.copies == 0) else { return };
        core.end_wordlines(plane);
        self.end_job(core, plane);
        path.map.end_job(core, plane);
        around.end_staying(core, plane, block);
        core.wake(Wake::JobOver(plane));
    }

    /// The host waits for the whole cleaning from now on, if it is one and is to block. That of a block of translation pages
    /// is not: it programs them in turn with those that are written back, and the host waits for them too.
    fn blocks_from_now<P: Probe>(&mut self, core: &mut Core<P>, plane: PlaneId) {
        let is_of_data = core
            .victim(plane)
            .is_some_and(|victim| core.emptying_stream(victim, false) != WriteStream::Mapping);
        let job = &mut self.jobs[plane.index()];
        if self.gc.foreground == GcForeground::Blocking
            && job.cause == Some(Cause::Gc)
            && job.is_urgent
            && is_of_data
        {
            job.blocks_from = Some(core.pool.next_order());
            self.block(core, plane);
        }
    }

    /// Gives a cleaning its die while it has something to do there. While it only waits for others to be done with its
    /// victim it has not: they may need the die.
    fn block<P: Probe>(&mut self, core: &mut Core<P>, plane: PlaneId) {
        let job = &mut self.jobs[plane.index()];
        let Some(from) = job.blocks_from else { return };
        let blocks = job.copies > 0 || job.is_erasing;
        if blocks != std::mem::replace(&mut job.is_blocking, blocks) {
            let die = core.geometry.die_of(plane);
            if blocks {
                core.device.begin_cleaning(die, from);
            } else {
                core.device.end_cleaning(die);
            }
        }
    }

    pub(crate) fn end_job<P: Probe>(&mut self, core: &mut Core<P>, plane: PlaneId) {
        let job = std::mem::take(&mut self.jobs[plane.index()]);
        if job.is_blocking {
            core.device.end_cleaning(core.geometry.die_of(plane));
        }
        core.room.works[plane.index()] = Work::default();
        core.ftl.planes[plane.index()].promised_blocks = 0;
        if job.is_urgent {
            core.device.demote(core.geometry.die_of(plane));
        }
        if let Some(pacing) = &mut self.pacing {
            pacing.end(core, plane);
        }
    }

    /// The job of a plane begins or has got on, or the host's room there has changed.
    #[inline(never)]
    fn pace<P: Probe>(&mut self, core: &mut Core<P>, plane: PlaneId) {
        let job = &self.jobs[plane.index()];
        if let Some(pacing) = self.pacing.as_mut().filter(|_| job.is_paced) {
            pacing.pace(core, plane);
        }
    }

    /// A page of a victim has been read: programs it elsewhere, if it is still the host's newest.
    pub(crate) fn on_background_read<P: Probe>(
        &mut self,
        core: &mut Core<P>,
        path: &mut DataPath<impl Map<P>>,
        around: &mut impl Around<P>,
        plane: PlaneId,
        read: &Transaction,
    ) {
        let _inside = core.inside.enter(Part::Background);
        if core.ftl.map.get(read.lpn) != Some(read.ppn) {
            self.page_done_of(core, path, around, plane);
            return;
        }
        if self.jobs[plane.index()].stays {
            match around.refresh_page(core, plane, read) {
                Refreshed::Now => return self.page_done_of(core, path, around, plane),
                Refreshed::Later => return,
                Refreshed::Not => {}
            }
        }
        self.move_page(core, path, around, plane, read);
    }

    /// Programs a page that has been read, and is still the newest, elsewhere in its plane.
    pub(crate) fn move_page<P: Probe>(
        &mut self,
        core: &mut Core<P>,
        path: &mut DataPath<impl Map<P>>,
        around: &mut impl Around<P>,
        plane: PlaneId,
        read: &Transaction,
    ) {
        let (lpn, cause) = (read.lpn, read.cause);
        let stream = core.ftl.copy_stream(lpn, cause == Cause::Wear);
        let stamp = core.stamp_of_copy(read);
        // Pages of a block are programmed in order, so what shares a stream shares a queue.
        let class = if stream == WriteStream::Mapping { Class::HostWrite } else { Class::Background };
        let (to, maps, owner) = (To::Stream(plane, stream), Maps::Now, Owner::Job(plane));
        let queued = core.program(Program { to, lpn, stamp, maps, owner, cause, class });
        let queued = queued.expect("a job starts only when its stream has room for all it moves");
        core.room.works[plane.index()].blocks_taken += u32::from(queued.opened);
        let state = &mut core.ftl.planes[plane.index()];
        state.promised_blocks = state.promised_blocks.saturating_sub(u32::from(queued.opened));
        if stream == WriteStream::Combination {
            around.on_moved(core, lpn, queued.ppn);
        }
        path.map.on_moved(core, plane, lpn, !read.is_uncorrectable());
    }

    /// A page of the job of a plane is done: it has been copied, refreshed, or was not needed any more.
    pub(crate) fn on_copied<P: Probe>(
        &mut self,
        core: &mut Core<P>,
        path: &mut DataPath<impl Map<P>>,
        around: &mut impl Around<P>,
        plane: PlaneId,
    ) {
        let _inside = core.inside.enter(Part::Background);
        self.page_done_of(core, path, around, plane);
    }

    fn page_done_of<P: Probe>(
        &mut self,
        core: &mut Core<P>,
        path: &mut DataPath<impl Map<P>>,
        around: &mut impl Around<P>,
        plane: PlaneId,
    ) {
        let job = &mut self.jobs[plane.index()];
        job.copies -= 1;
        // The share changes slowly.
        if job.next_page.is_multiple_of(COPIES) {
            self.pace(core, plane);
        }
        self.copy_more(core, path, around, plane);
    }

    /// Nothing needs the victim of a plane's job any more.
    pub(crate) fn on_emptied<P: Probe>(
        &mut self,
        core: &mut Core<P>,
        path: &mut DataPath<impl Map<P>>,
        plane: PlaneId,
    ) {
        let _inside = core.inside.enter(Part::Background);
        self.erase_when_empty(core, path, plane);
    }

    /// Queues the erase of the job's victim if nothing needs it any more.
    fn erase_when_empty<P: Probe>(
        &mut self,
        core: &mut Core<P>,
        path: &mut DataPath<impl Map<P>>,
        plane: PlaneId,
    ) {
        let Some(victim) = core.victim(plane) else { return };
        let job = &mut self.jobs[plane.index()];
        let block = core.array.block(victim);
        if job.is_erasing || job.stays || job.copies > 0 || block.valid > 0 || block.holds > 0 {
            self.block(core, plane);
            return;
        }
        job.is_erasing = true;
        let cause = job.cause();
        self.block(core, plane);
        core.end_wordlines(plane);
        path.host.trims.make_durable();
        path.map.end_job(core, plane);
        core.erase(victim, Owner::Job(plane), cause);
    }
}
