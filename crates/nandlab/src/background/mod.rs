//! Background jobs: a plane's GC, static wear levelling, and refresh. A job empties one block and erases it, or refreshes
//! it and lets it stay.
//!
//! A few copies are under way at a time. A copy is a read and, if the page is still valid then, a program in the
//! same plane; the victim is erased when it holds nothing and no operation needs it any more.
//!
//! The papers are with the victim policies (`gc/`), wear levelling (`wear.rs`) and pacing (`pacing.rs`). What refresh and copybacks
//! have to do with a job, `Around` asks.

pub mod gc;
mod job;
pub(crate) mod notes;
mod pacing;
pub(crate) mod spec;
mod stats;
#[cfg(test)]
mod tests;
mod wear;

pub use stats::GcStats;

use crate::base::geometry::{BlockId, Lpn, PlaneId, Ppn};
use crate::core::{CopyBack, Core, Map, NextJob, Part, Queued, Refreshed, Space, Work};
use crate::ftl::WearLevelling;
use crate::ftl::WriteStream;
use crate::host::DataPath;
use crate::probe::Probe;
use crate::sched::{Cause, Owner, Start, Transaction};
use pacing::Pacing;
use spec::{GcPacing, GcSpec};

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
        let whole = &mut core.room.spaces[plane.index()].fully_valid_victims;
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
        let presses = &mut core.room.spaces[plane.index()].takes_fewest_valid;
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
        while space.urgent_erases < space.dead {
            space.urgent_erases += 1;
            core.device.promote(die);
        }
    }

    /// A dead block has been erased.
    pub(crate) fn end_dead<P: Probe>(&mut self, core: &mut Core<P>, plane: PlaneId, is_retired: bool) {
        let space = &mut core.room.spaces[plane.index()];
        space.dead -= 1;
        space.soon_free -= u32::from(!is_retired);
        if space.urgent_erases > space.dead {
            space.urgent_erases -= 1;
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
}
