//! Background jobs of the planes: GC, static wear levelling, refresh, and read reclaim. A job either moves the valid
//! pages of one block and erases the block, or refreshes the pages of a block that is not erased ("the block stays").
//!
//! A job has a few copies under way at a time. A copy is a copyback, or a read and, if the page is still valid after
//! the read, a program in the same plane. The victim is erased when it has neither valid pages nor pins. If the last
//! copies of a victim of GC gather in a programming unit, the next job fills the unit, and the victim is erased beside it.
//!
//! The sources are named in the files of the victim policies (`gc/`), wear levelling (`wear.rs`) and pacing
//! (`pacing.rs`). Jobs call refresh, read reclaim and copybacks through the trait `Around`.

mod copybacks;
mod emptied;
pub mod gc;
mod job;
pub(crate) mod notes;
mod pacing;
pub(crate) mod spec;
mod stats;
#[cfg(test)]
mod tests;
mod wear;

pub use stats::{GcStats, VictimMs, VictimStats};

use crate::base::geometry::{BlockId, Geometry, Lpn, PlaneId, Ppn};
use crate::core::{CopyBack, Core, Map, NextJob, Part, Queued, Refreshed, Space, VictimTimes, Work};
use crate::ftl::WearLevelling;
use crate::ftl::WriteStream;
use crate::host::{DataPath, Host};
use crate::probe::Probe;
use crate::sched::{Cause, Class, Owner, Start, Transaction};
use copybacks::Waiting;
use pacing::Pacing;
use spec::{GcPacing, GcSpec};
use std::ops::Range;

/// The drive has failed if this many erases in vain per block of the drive give no write a page: GC would continue for
/// ever.
pub(crate) const IN_VAIN_MAX: u64 = 16;

/// Number of pages of a victim whose map entries are prefetched together.
const PREFETCH_PAGES: usize = 8;

/// The background job of a plane.
#[derive(Clone, Debug, Default)]
pub(crate) struct Job {
    cause: Option<Cause>,
    /// The class of the job's operations, except programs to streams that it shares with other writers.
    class: Class,
    /// Whether the die serves the job with the priority of host writes: space is short, the grace of a refresh is
    /// running out, or the job is a reclaim. `false` if the job's class precedes host writes anyway.
    pub(crate) is_urgent: bool,
    /// Whether pacing sets the job's share of the die: the job is urgent because space is short.
    is_paced: bool,
    /// With `gc.foreground = "blocking"`: the position in the order of transactions at which the job became blocking.
    /// While `is_blocking`, the die serves only the job and transactions queued before this position.
    blocks_from: Option<u64>,
    is_blocking: bool,
    is_erasing: bool,
    /// Whether the erase of the victim gives more room than its valid pages take.
    gains: bool,
    /// Whether the victim held translation pages when the job began.
    is_of_map: bool,
    /// The stream to which pages are copied back; `None`: all pages are moved off-chip.
    copyback: Option<WriteStream>,
    /// Whether the plane keeps room for the valid pages of the victim in the open block that GC shares with the host:
    /// they are moved off-chip, not copied back.
    promises: bool,
    /// Whether the block stays: it is not erased, and only pages that cannot be refreshed in place are written
    /// elsewhere.
    stays: bool,
    /// The read level at which the job's reads start.
    start: Start,
    /// The page of the victim at which the search for the next valid page starts.
    next_page: u32,
    /// The map entries of the valid pages before this page have been prefetched.
    prefetched: u32,
    /// The map entries of further pages are prefetched when `next_page` is after this page, the first page of the latest
    /// prefetch.
    prefetch_at: u32,
    /// What is left of a flash page that is not copied back, in a job that copies back.
    rest: Range<u32>,
    /// Number of copies under way.
    copies: u32,
    /// Number of these whose page is being read, or waits for its refresh: the page may still be written elsewhere.
    reads: u32,
    /// Whether the job began while the erase of the victim before was pending, which has ended the shortage of space.
    is_ahead: bool,
    /// Number of copies that have ended.
    copied: u32,
    /// When the job took its victim, and how far it has come.
    times: VictimTimes,
}

impl Job {
    /// Whether the job can be made urgent: it waits behind host writes, and is not urgent yet.
    fn can_hurry(&self) -> bool {
        self.class == Class::Background && !self.is_urgent
    }

    pub(crate) fn cause(&self) -> Cause {
        self.cause.expect("the plane has a job")
    }
}

/// The parts of a job that belong to refresh, read reclaim and copybacks.
pub(crate) trait Around<P: Probe> {
    /// The next job of a scheme in a plane that has no job; `None` if no block has to be rewritten or the plane has no
    /// room for the job.
    fn next_job(&mut self, core: &mut Core<P>, plane: PlaneId) -> Option<NextJob>;

    /// A page of a block that stays has been read. Refreshes the page without writing it to another block, if possible.
    fn refresh_page(&mut self, core: &mut Core<P>, plane: PlaneId, read: &Transaction) -> Refreshed;

    /// Called when the job has finished with all pages of a block that stays.
    fn end_staying(&mut self, core: &mut Core<P>, plane: PlaneId, block: BlockId);

    /// The stream to which the pages of a victim are copied back; `None`: all pages are moved off-chip.
    fn copyback_stream(
        &mut self,
        core: &mut Core<P>,
        host: &mut Host,
        plane: PlaneId,
        victim: BlockId,
        job: &NextJob,
    ) -> Option<WriteStream>;

    /// Whether the flash page that begins with `page` may be copied back to `stream`; if not, its pages have to be moved
    /// off-chip.
    fn may_copy_back(&mut self, core: &mut Core<P>, plane: PlaneId, stream: WriteStream, page: Ppn) -> bool;

    /// A flash page that could be copied back is moved off-chip, because too few others fill a programming unit with it.
    fn on_left_over(&mut self);

    /// Queues the copyback of flash pages that may be copied back.
    fn copy_back(&mut self, core: &mut Core<P>, copyback: CopyBack<'_>) -> Queued;

    /// The program that moves a combination page to page `to` has been queued.
    fn on_moved(&mut self, core: &mut Core<P>, lpn: Lpn, to: Ppn);
}

/// The background jobs of all planes.
#[derive(Debug)]
pub(crate) struct Background {
    jobs: Box<[Job]>,
    /// By plane the flash pages of its job that wait for a copyback; empty without copybacks.
    waiting: Box<[Waiting]>,
    /// `None` without pacing: of urgent GC and host writes, the die serves the one that has waited longer.
    pacing: Option<Pacing>,
    gc: GcSpec,
    /// Whether static wear levelling is on.
    levels_wear: bool,
    wear_gap: u32,
    /// The largest number of copies of a job under way at a time (`migration.in_flight`).
    copies_max: u32,
    pub(crate) stats: GcStats,
    pub(crate) victim_stats: VictimStats,
}

impl Background {
    pub(crate) fn new(
        gc: &GcSpec,
        wear_levelling: WearLevelling,
        wear_gap: u32,
        copies_max: u32,
        copies_back: bool,
        buffer: u32,
        geometry: &Geometry,
    ) -> Self {
        let planes = geometry.planes as usize;
        let waiting = if copies_back { planes } else { 0 };
        Self {
            jobs: vec![Job::default(); planes].into(),
            waiting: vec![Waiting::new(geometry); waiting].into(),
            pacing: (gc.pacing == GcPacing::Proportional).then(|| Pacing::new(geometry.planes, buffer)),
            gc: gc.clone(),
            levels_wear: wear_levelling == WearLevelling::Static,
            wear_gap,
            copies_max,
            stats: GcStats::default(),
            victim_stats: VictimStats::default(),
        }
    }

    /// Drops all jobs at power loss.
    pub(crate) fn forget<P: Probe>(&mut self, core: &mut Core<P>) {
        self.jobs.fill(Job::default());
        self.waiting.iter_mut().for_each(Waiting::clear);
        if let Some(pacing) = &mut self.pacing {
            pacing.forget();
        }
        core.room.works.fill(Work::default());
        for state in &mut core.ftl.planes {
            (state.promised_blocks, state.promised_pages) = (0, 0);
        }
        core.room.spaces.fill(Space::default());
        core.room.kept_from.fill(None);
    }

    /// The grace of an overdue block is running out. `is_next`: the plane's job works on this block, or will work on it
    /// next. If so and the job can be made urgent, promotes the job and returns `true`.
    pub(crate) fn hurry<P: Probe>(&mut self, core: &mut Core<P>, plane: PlaneId, is_next: bool) -> bool {
        let job = &mut self.jobs[plane.index()];
        let promotes = core.has_job(plane) && is_next && job.can_hurry();
        if promotes {
            job.is_urgent = true;
            core.promote(plane);
        }
        promotes
    }
}

impl Background {
    /// The causes of all jobs under way.
    pub(crate) fn causes<P: Probe>(&self, core: &Core<P>) -> Vec<Cause> {
        let planes = (0..core.geometry.planes).map(PlaneId).filter(|&plane| core.has_job(plane));
        planes.map(|plane| self.jobs[plane.index()].cause()).collect()
    }

    /// A block of `plane` has been opened or closed, or a write has found no room. If space is short, starts foreground
    /// GC, or makes the plane's job urgent.
    pub(crate) fn check_space<P: Probe>(
        &mut self,
        core: &mut Core<P>,
        path: &mut DataPath<impl Map<P>>,
        around: &mut impl Around<P>,
        plane: PlaneId,
    ) {
        let _inside = core.inside.enter(Part::Background);
        if core.is_at_reserve(plane) {
            Self::promote_erases(core, plane);
        }
        if Self::is_due(core, path, plane) {
            let job = &mut self.jobs[plane.index()];
            if !core.has_job(plane) {
                self.start_gc(core, path, around, plane, true, 1.0);
            } else {
                if job.can_hurry() {
                    (job.is_urgent, job.is_paced) = (true, true);
                    core.promote(plane);
                    self.begin_blocking(core, plane);
                }
                self.pace(core, plane);
            }
        }
        if self.jobs[plane.index()].is_ahead && (core.is_short(plane) || path.waits_in(plane)) {
            self.catch_up(core, path, around, plane);
        }
        self.hurry_emptied(core, plane);
        core.release_dies(plane);
    }

    /// Whether foreground GC begins in a plane. With `gc.foreground = "blocking"` it begins only when a write waits for it:
    /// the one that has just opened a block, or one that finds no room.
    #[inline(always)]
    fn is_due<P: Probe>(core: &Core<P>, path: &DataPath<impl Map<P>>, plane: PlaneId) -> bool {
        let room = &core.room;
        let waits =
            || room.kept_from[plane.index()].is_some() || core.is_at_reserve(plane) || path.is_stuck();
        core.is_short(plane) && (!room.blocks_dies() || waits())
    }

    /// The drive is idle. Starts a job in each plane that has none and needs one.
    pub(crate) fn start_background<P: Probe>(
        &mut self,
        core: &mut Core<P>,
        path: &mut DataPath<impl Map<P>>,
        around: &mut impl Around<P>,
    ) {
        let _inside = core.inside.enter(Part::Background);
        self.catch_up_everywhere(core, path, around);
        for plane in (0..core.geometry.planes).map(PlaneId) {
            if !core.has_job(plane) {
                self.continue_background(core, path, around, plane);
            }
        }
    }

    /// Starts the next job of a plane without a job, if one is needed: wear levelling, refresh, reclaim or GC.
    pub(crate) fn continue_background<P: Probe>(
        &mut self,
        core: &mut Core<P>,
        path: &mut DataPath<impl Map<P>>,
        around: &mut impl Around<P>,
        plane: PlaneId,
    ) {
        self.start_next_job(core, path, around, plane);
        self.hurry_emptied(core, plane);
        core.release_dies(plane);
    }

    fn start_next_job<P: Probe>(
        &mut self,
        core: &mut Core<P>,
        path: &mut DataPath<impl Map<P>>,
        around: &mut impl Around<P>,
        plane: PlaneId,
    ) {
        let is_due = Self::is_due(core, path, plane);
        // Wear levelling comes first: it is rarely due, and under a steady load space is always short, so GC would
        // always precede it.
        if self.levels_wear && self.start_wear(core, path, around, plane, is_due) {
            return;
        }
        // Without pacing, GC precedes refresh while space is short. If data comes due faster than the drive can refresh
        // it, this data becomes overdue. With pacing, GC always ends just in time, so refresh goes first while half a
        // block's pages are free for the host.
        let has_time = self.pacing.is_some() && 2 * core.host_room(plane) >= core.geometry.pages_per_block;
        if has_time && self.start_refresh(core, path, around, plane)
            || is_due && self.start_gc(core, path, around, plane, true, 1.0)
            || !has_time && self.start_refresh(core, path, around, plane)
        {
            return;
        }
        if !is_due && core.state.is_idle && core.is_below(plane, self.gc.background_free) {
            self.start_gc(core, path, around, plane, false, self.gc.idle_valid_max);
        }
    }

    /// Starts a GC job and returns `true`, unless there is no victim or more than the share `valid_max` of the victim's
    /// pages is valid.
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
        // While the capacitor is drained for a detection, GC runs only if a write waits for room.
        if core.state.is_draining && !path.is_stuck() {
            return false;
        }
        let Some(victim) = self.choose_victim(core, path, plane, is_urgent) else { return false };
        let (valid, pages) = (core.valid_pages(victim), core.geometry.pages_per_block);
        if f64::from(valid) > valid_max * f64::from(pages) {
            return false;
        }
        let least = core.ftl.least_valid(&core.geometry, &core.array, plane, core.now);
        self.stats.victims += 1;
        self.stats.victims_not_greedy += u64::from(least != Some(victim));
        self.stats.victim_valid_pages += u64::from(valid);
        if let Some(pacing) = &mut self.pacing {
            pacing.on_victim(plane, valid);
        }
        let job = NextJob::emptying(victim, Cause::Gc, is_urgent);
        self.start_job(core, path, around, plane, job);
        true
    }

    /// The policy's victim, if it can be emptied with a gain; else, and whenever `forces_victim`, the block with the
    /// fewest valid pages.
    fn choose_victim<P: Probe>(
        &mut self,
        core: &mut Core<P>,
        path: &DataPath<impl Map<P>>,
        plane: PlaneId,
        is_urgent: bool,
    ) -> Option<BlockId> {
        let named = core.ftl.pick_victim(&core.geometry, &core.array, plane, core.now)?;
        let is_forced = Self::forces_victim(core, path, plane);
        // Moving a block whose pages are all valid gains nothing, and with a demand map it uses up room. It is allowed
        // only so that the policy can proceed to other blocks: while space is short and the host is busy, or while a
        // write waits, and for at most as many such victims in a row as the plane has blocks.
        let is_whole = core.valid_pages(named) == core.geometry.pages_per_block;
        let may_lose =
            core.ftl.needs.mapping.open == 0 && is_urgent && !core.state.is_idle || path.is_stuck();
        let whole = &mut core.room.spaces[plane.index()].fully_valid_victims;
        *whole = if is_whole { *whole + 1 } else { 0 };
        let lets_policy_proceed =
            is_whole && may_lose && !core.state.is_guarded && *whole <= core.geometry.blocks_in(plane);
        let gains = core.gains(named) || lets_policy_proceed;
        let may_empty = core.may_empty(plane, named, false) && !(is_urgent && core.retires(named));
        if !is_forced && gains && may_empty {
            return Some(named);
        }
        let fewest = core.fewest_valid(plane)?;
        self.stats.victims_forced += u64::from(fewest != named);
        Some(fewest)
    }

    /// Whether GC must take the block with the fewest valid pages. This begins when a translation page waits for room
    /// in a plane whose free blocks are all kept blocks, or when more erases in vain than the drive has blocks have
    /// given no write a page. It ends when the host's stream may open a block.
    fn forces_victim<P: Probe>(core: &mut Core<P>, path: &DataPath<impl Map<P>>, plane: PlaneId) -> bool {
        let has_kept_blocks_only = core.ftl.planes[plane.index()].free.len() <= core.ftl.kept_blocks();
        let is_in_vain = path.writes.erases_in_vain > u64::from(core.geometry.good_blocks());
        let is_at_reserve = core.is_at_reserve(plane);
        let forced = &mut core.room.spaces[plane.index()].takes_fewest_valid;
        *forced =
            is_at_reserve && (*forced || has_kept_blocks_only && path.map.waits_in(plane) || is_in_vain);
        *forced
    }

    /// Queues the erase of a dead block in the background class. The erase is promoted if the plane is at its reserve.
    pub(crate) fn erase_dead<P: Probe>(
        &mut self,
        core: &mut Core<P>,
        path: &mut DataPath<impl Map<P>>,
        block: BlockId,
    ) {
        let _inside = core.inside.enter(Part::Background);
        self.stats.dead_blocks += 1;
        Self::erase_beside(core, path, block);
    }

    /// Queues the erase of a block beside the plane's job.
    fn erase_beside<P: Probe>(core: &mut Core<P>, path: &mut DataPath<impl Map<P>>, block: BlockId) {
        let plane = core.geometry.plane_of(block);
        path.host.trims.make_durable();
        core.erase(block, Owner::DeadBlock(plane), Cause::Gc, Class::Background);
        if core.is_at_reserve(plane) {
            Self::promote_erases(core, plane);
        }
    }

    /// The plane is at its reserve: the die serves the erases of its dead blocks with the priority of host writes.
    #[inline]
    fn promote_erases<P: Probe>(core: &mut Core<P>, plane: PlaneId) {
        let space = &mut core.room.spaces[plane.index()];
        if space.dead <= space.urgent_erases {
            return;
        }
        let more = space.dead - space.urgent_erases;
        space.urgent_erases += more;
        for _ in 0..more {
            core.promote(plane);
        }
    }

    /// A block has been erased beside the plane's job.
    pub(crate) fn end_dead<P: Probe>(&mut self, core: &mut Core<P>, block: BlockId, is_retired: bool) {
        let plane = core.geometry.plane_of(block);
        let space = &mut core.room.spaces[plane.index()];
        if let Some(emptied) = space.emptied.take_if(|emptied| emptied.block == block) {
            self.victim_stats.on_erased(emptied.times.spans(core.now));
            if emptied.is_urgent {
                core.demote(plane);
            }
        }
        let space = &mut core.room.spaces[plane.index()];
        space.dead -= 1;
        space.soon_free -= u32::from(!is_retired);
        if space.urgent_erases > space.dead {
            space.urgent_erases -= 1;
            core.demote(plane);
        }
    }

    /// Starts a wear-levelling job and returns `true` if the P/E cycles of the plane's least worn full block lag the
    /// mean by more than the gap. The job takes a free block of the reserve, and its erase returns one.
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
        // The search runs once per n / 8 erases of a plane of n blocks: often enough for the wear that these erases
        // cause, at little cost.
        if state.erases_unchecked < core.geometry.blocks_in(plane).div_ceil(8)
            || state.free.len() < core.ftl.reserve_blocks
        {
            return false;
        }
        state.erases_unchecked = 0;
        let first = core.geometry.first_block(plane);
        let blocks = &core.array.blocks[core.geometry.blocks_of(plane)];
        let Some(within) = wear::laggard(blocks, self.wear_gap) else { return false };
        let victim = BlockId(first.0 + within);
        if !core.may_empty(plane, victim, true) {
            return false;
        }
        let job = NextJob::emptying(victim, Cause::Wear, is_urgent);
        self.start_job(core, path, around, plane, job);
        true
    }

    /// Starts the next refresh or reclaim job of a plane, and returns whether there was one.
    fn start_refresh<P: Probe>(
        &mut self,
        core: &mut Core<P>,
        path: &mut DataPath<impl Map<P>>,
        around: &mut impl Around<P>,
        plane: PlaneId,
    ) -> bool {
        let Some(due) = around.next_job(core, plane) else {
            return false;
        };
        self.start_job(core, path, around, plane, due);
        true
    }

    /// A block of a plane has become due for refresh or reclaim. Starts the next job if the plane has no job.
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
