//! Background jobs of the lanes: GC, static wear levelling, refresh, and read reclaim. A job either moves the valid
//! units of one superblock and erases the superblock, or refreshes the units of a superblock that is not erased ("the
//! superblock stays").
//!
//! A job has a few copies under way at a time. A copy is a copyback, or a read and, if the unit is still valid after
//! the read, a program in the same lane. The victim is erased when it has neither valid units nor pins. If the last
//! copies of a victim of GC gather in a programming unit, the next job fills this programming unit, and the victim is
//! erased beside the next job.
//!
//! The sources are named in the files of the victim policies (`gc/`), wear levelling (`wear.rs`) and pacing
//! (`pacing.rs`). Jobs call refresh, read reclaim and copybacks through the trait `JobSchemes`.
//!
//! While space is short, refresh and reclaim begin after GC (with pacing see `pacing.rs`). A drive that cannot refresh
//! as fast as its data comes due lets data be overdue, and counts this.
//!
//! GC selects the superblock with the fewest valid units in place of the policy's victim in four cases: the policy's
//! victim cannot be emptied; its erase would retire it while space is short; emptying it gains nothing; or a victim is
//! forced (`Background::forces_victim`). A victim that gains nothing is nevertheless accepted for some time if the host
//! is busy or a write waits, so that a policy such as `fifo` can proceed to other superblocks. `gc_victims_forced`
//! counts the victims that were not the policy's.
//!
//! With `migration.first_block = "shared"` GC's stream fills the open superblock of the host (`Ftl::open_of`), and the
//! host leaves the units that the job still has to move (`Lane::promised_units`), unless a superblock beyond the
//! reserve is free.

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

use crate::base::state::{state, value};
pub(crate) use wear::Laggard;

pub use stats::{GcStats, VictimMs, VictimStats};

use crate::base::geometry::{LaneId, Lpn, SuperblockId, UnitId};
use crate::base::policy::PolicySlot;
use crate::core::{
    Component, CopyBack, Core, Map, Mechanism, NextJob, Offline, Queued, Refreshed, Rest, VictimTimes,
};
use crate::flash::ShapeId;
use crate::ftl::{StreamId, VictimPolicy};
use crate::host::{DataPath, Host};
use crate::probe::Probe;
use crate::sched::{Cause, Class, Owner, Start, Transaction};
use copybacks::Waiting;
use pacing::Pacing;
use spec::{GcPacing, GcSpec};
use std::ops::Range;
use std::sync::{Mutex, PoisonError};

/// The drive has failed if this many erases in vain per superblock of the drive give no write a unit: GC would continue
/// for ever.
pub(crate) const IN_VAIN_MAX: u64 = 16;

/// Number of units of a victim whose map entries are prefetched together.
const PREFETCH_UNITS: usize = 8;

/// The background job of a lane.
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
    /// Whether the erase of the victim gives more room than its valid units take.
    gains: bool,
    /// Whether the victim held translation pages when the job began.
    is_of_map: bool,
    /// The stream to which units are copied back; `None`: all units are moved off-chip.
    copyback: Option<StreamId>,
    /// Whether the lane keeps room for the valid units of the victim in the open superblock that GC shares with the
    /// host: they are moved off-chip, not copied back.
    promises: bool,
    /// Whether the superblock stays: it is not erased, and only units that cannot be refreshed in place are written
    /// elsewhere.
    stays: bool,
    /// The read level at which the job's reads start.
    start: Start,
    /// The unit of the victim at which the search for the next valid unit starts.
    next_unit: u32,
    /// The map entries of the valid units before this unit have been prefetched.
    prefetched: u32,
    /// The map entries of further units are prefetched when `next_unit` is after this unit, the first unit of the
    /// latest prefetch.
    prefetch_at: u32,
    /// What is left of a page that is not copied back, in a job that copies back.
    rest: Range<u32>,
    /// Number of copies under way.
    copies: u32,
    /// Number of these whose unit is being read, or waits for its refresh: the unit may still be written elsewhere.
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
        self.cause.expect("the lane has a job")
    }
}

/// The parts of a job that belong to refresh, read reclaim and copybacks.
pub(crate) trait JobSchemes<P: Probe> {
    /// The next job of a scheme in a lane that has no job; `None` if no superblock has to be rewritten or the lane has
    /// no room for the job.
    fn next_job(&mut self, core: &mut Core<P>, lane: LaneId) -> Option<NextJob>;

    /// A unit of a superblock that stays has been read. Refreshes the unit without writing it to another superblock, if
    /// possible.
    fn refresh_unit(&mut self, core: &mut Core<P>, lane: LaneId, read: &Transaction) -> Refreshed;

    /// Called when the job has finished with all units of a superblock that stays.
    fn end_staying(&mut self, core: &mut Core<P>, lane: LaneId, superblock: SuperblockId);

    /// The stream to which the units of a victim are copied back; `None`: all units are moved off-chip.
    fn copyback_stream(
        &mut self,
        core: &mut Core<P>,
        host: &mut Host,
        lane: LaneId,
        victim: SuperblockId,
        job: &NextJob,
    ) -> Option<StreamId>;

    /// Whether the page that begins with `unit` may be copied back to `stream`; if not, its units have to be moved
    /// off-chip.
    fn may_copy_back(&mut self, core: &mut Core<P>, lane: LaneId, stream: StreamId, unit: UnitId) -> bool;

    /// A page that could be copied back is moved off-chip, because too few others fill a programming unit with it.
    fn on_left_over(&mut self);

    /// Queues the copyback of pages that may be copied back.
    fn copy_back(&mut self, core: &mut Core<P>, copyback: CopyBack<'_>) -> Queued;

    /// The job that folds a superblock because a write waits for a fold; `None`: writes of the lane do not, or no
    /// superblock can be folded.
    fn awaited_fold(&mut self, core: &mut Core<P>, lane: LaneId) -> Option<NextJob>;

    /// The job that folds a superblock because the lane is short of space; `None` if no superblock in SLC mode can be
    /// folded for it.
    fn fold_for_room(&mut self, core: &mut Core<P>, lane: LaneId) -> Option<NextJob>;

    /// The program that moves a combination page to unit `to` has been queued.
    fn on_moved(&mut self, core: &mut Core<P>, lpn: Lpn, to: UnitId);
}

/// The background jobs of all lanes.
#[derive(Debug)]
pub(crate) struct Background {
    jobs: Box<[Job]>,
    /// By lane the pages of its job that wait for a copyback; empty without copybacks.
    waiting: Box<[Waiting]>,
    /// `None` without pacing: of urgent GC and host writes, the die serves the one that has waited longer.
    pacing: Option<Pacing>,
    gc: GcSpec,
    /// The policy that picks the superblock that static wear levelling moves; `None` without it. The lock is never
    /// waited for: it lets threads share a drive whose policy they may not share.
    wear: Option<Mutex<Box<dyn VictimPolicy>>>,
    /// The largest number of units of a job whose copies are under way at a time: those of `migration.in_flight`
    /// programming units on each of its dies.
    copies_max: u32,
    pub(crate) stats: GcStats,
    pub(crate) victim_stats: VictimStats,
}

impl Background {
    pub(crate) fn new<P: Probe>(
        gc: &GcSpec,
        wear: Option<Box<dyn VictimPolicy>>,
        copies_max: u32,
        copies_back: bool,
        buffer: u32,
        core: &Core<P>,
    ) -> Self {
        let lanes = core.geometry().lanes as usize;
        let waiting = if copies_back { lanes } else { 0 };
        Self {
            jobs: vec![Job::default(); lanes].into(),
            waiting: vec![Waiting::new(core); waiting].into(),
            pacing: (gc.pacing == GcPacing::Proportional).then(|| Pacing::new(core.geometry().lanes, buffer)),
            gc: gc.clone(),
            wear: wear.map(Mutex::new),
            copies_max,
            stats: GcStats::default(),
            victim_stats: VictimStats::default(),
        }
    }

    /// After a power loss takes a fresh policy of wear levelling.
    pub(crate) fn set_wear_policy(&mut self, wear: Option<Box<dyn VictimPolicy>>) {
        self.wear = wear.map(Mutex::new);
    }

    /// The grace of an overdue superblock is running out. `is_next`: the lane's job works on this superblock, or will
    /// work on it next. If so and the job can be made urgent, promotes the job and returns `true`.
    pub(crate) fn hurry<P: Probe>(&mut self, core: &mut Core<P>, lane: LaneId, is_next: bool) -> bool {
        let job = &mut self.jobs[lane.index()];
        let promotes = core.has_job(lane) && is_next && job.can_hurry();
        if promotes {
            job.is_urgent = true;
            core.promote(lane);
        }
        promotes
    }
}

impl<P: Probe> Mechanism<P> for Background {
    /// Drops all jobs.
    fn power_lost(&mut self, offline: &mut Offline<'_, P>) {
        self.jobs.fill(Job::default());
        self.waiting.iter_mut().for_each(Waiting::clear);
        if let Some(pacing) = &mut self.pacing {
            pacing.forget();
        }
        offline.forget_jobs();
    }

    fn audit(&self, core: &Core<P>, rest: Rest) -> Result<(), String> {
        self.audit_emptied(core)?;
        if rest.is_at_rest() { self.audit_at_rest(core) } else { Ok(()) }
    }
}

impl Background {
    /// Whether the job of a lane is ahead of the host, and may wait with nothing under way until the host has written
    /// more, or is idle.
    fn may_wait<P: Probe>(&self, core: &Core<P>, lane: LaneId) -> bool {
        !core.state().is_idle && self.jobs[lane.index()].is_ahead
    }

    /// Whether the job of any lane may wait with nothing under way. Others may wait for this job.
    pub(crate) fn any_may_wait<P: Probe>(&self, core: &Core<P>) -> bool {
        (0..core.geometry().lanes).map(LaneId).any(|lane| self.may_wait(core, lane))
    }

    /// With nothing under way, checks that no lane has a job, except one that may wait.
    fn audit_at_rest<P: Probe>(&self, core: &Core<P>) -> Result<(), String> {
        for lane in (0..core.geometry().lanes).map(LaneId) {
            if core.has_job(lane) && !self.may_wait(core, lane) || core.emptied(lane).is_some() {
                return Err(format!("lane {} has a background job without an operation under way", lane.0));
            }
        }
        Ok(())
    }

    /// The causes of all jobs under way.
    pub(crate) fn causes<P: Probe>(&self, core: &Core<P>) -> Vec<Cause> {
        let lanes = (0..core.geometry().lanes).map(LaneId).filter(|&lane| core.has_job(lane));
        lanes.map(|lane| self.jobs[lane.index()].cause()).collect()
    }

    /// A superblock of `lane` has been opened or closed, or a write has found no room. If space is short, starts
    /// foreground GC, or makes the lane's job urgent.
    pub(crate) fn check_space<P: Probe>(
        &mut self,
        core: &mut Core<P>,
        path: &mut DataPath<impl Map<P>>,
        schemes: &mut impl JobSchemes<P>,
        lane: LaneId,
    ) {
        let _inside = core.enter(Component::Background);
        if core.is_at_reserve(lane) {
            Self::promote_erases(core, lane);
        }
        if Self::is_due(core, path, lane) {
            let job = &mut self.jobs[lane.index()];
            if !core.has_job(lane) {
                self.start_gc(core, path, schemes, lane, true, 1.0);
            } else {
                if job.can_hurry() {
                    (job.is_urgent, job.is_paced) = (true, true);
                    core.promote(lane);
                    self.begin_blocking(core, lane);
                }
                self.pace(core, lane);
            }
        }
        if self.jobs[lane.index()].is_ahead && (core.is_short(lane) || path.waits_in(lane)) {
            self.catch_up(core, path, schemes, lane);
        }
        self.hurry_emptied(core, lane);
        core.release_dies(lane);
    }

    /// Whether foreground GC begins in a lane. With `gc.foreground = "blocking"` it begins only when a write waits for
    /// it: the one that has just opened a superblock, or one that finds no room.
    #[inline(always)]
    fn is_due<P: Probe>(core: &Core<P>, path: &DataPath<impl Map<P>>, lane: LaneId) -> bool {
        let is_kept = || core.kept_from(lane).flatten().is_some();
        let waits = || is_kept() || core.is_at_reserve(lane) || path.is_stuck();
        core.is_short(lane) && (!core.blocks_dies() || waits())
    }

    /// The drive is idle. Starts a job in each lane that has none and needs one.
    pub(crate) fn start_background<P: Probe>(
        &mut self,
        core: &mut Core<P>,
        path: &mut DataPath<impl Map<P>>,
        schemes: &mut impl JobSchemes<P>,
    ) {
        let _inside = core.enter(Component::Background);
        self.catch_up_everywhere(core, path, schemes);
        for lane in (0..core.geometry().lanes).map(LaneId) {
            if !core.has_job(lane) {
                self.continue_background(core, path, schemes, lane);
            }
        }
    }

    /// Starts the next job of a lane without a job, if one is needed: wear levelling, refresh, reclaim or GC.
    pub(crate) fn continue_background<P: Probe>(
        &mut self,
        core: &mut Core<P>,
        path: &mut DataPath<impl Map<P>>,
        schemes: &mut impl JobSchemes<P>,
        lane: LaneId,
    ) {
        self.start_next_job(core, path, schemes, lane);
        self.hurry_emptied(core, lane);
        core.release_dies(lane);
    }

    fn start_next_job<P: Probe>(
        &mut self,
        core: &mut Core<P>,
        path: &mut DataPath<impl Map<P>>,
        schemes: &mut impl JobSchemes<P>,
        lane: LaneId,
    ) {
        let is_due = Self::is_due(core, path, lane);
        // Wear levelling comes first: it is rarely due, and under a steady load space is always short, so GC would
        // always precede it.
        if self.wear.is_some() && self.start_wear(core, path, schemes, lane, is_due) {
            return;
        }
        // A write that waits for a fold would wait for ever behind refresh of data of which some is always due.
        if path.waits_in(lane)
            && let Some(fold) = schemes.awaited_fold(core, lane)
        {
            return self.start_job(core, path, schemes, lane, fold);
        }
        // Without pacing, GC precedes refresh while space is short. If data comes due faster than the drive can refresh
        // it, this data becomes overdue. With pacing, GC always ends just in time, so refresh goes first while half a
        // superblock's units are free for the host.
        let has_time = self.pacing.is_some() && 2 * core.host_room(lane) >= core.first_shape().units;
        if has_time && self.start_refresh(core, path, schemes, lane)
            || is_due && self.start_gc(core, path, schemes, lane, true, 1.0)
            || !has_time && self.start_refresh(core, path, schemes, lane)
        {
            return;
        }
        if !is_due && core.state().is_idle && core.is_below(lane, self.gc.background_free) {
            self.start_gc(core, path, schemes, lane, false, self.gc.idle_valid_max);
        }
    }

    /// Starts a GC job and returns `true`, unless there is no victim or more than the share `valid_max` of the victim's
    /// units is valid.
    #[inline(never)]
    fn start_gc<P: Probe>(
        &mut self,
        core: &mut Core<P>,
        path: &mut DataPath<impl Map<P>>,
        schemes: &mut impl JobSchemes<P>,
        lane: LaneId,
        is_urgent: bool,
        valid_max: f64,
    ) -> bool {
        // While the capacitor is drained for a detection, GC runs only if a write waits for room.
        if core.state().is_draining && !path.is_stuck() {
            return false;
        }
        if is_urgent && let Some(job) = schemes.fold_for_room(core, lane) {
            self.start_job(core, path, schemes, lane, job);
            return true;
        }
        let Some(victim) = self.choose_victim(core, path, lane, is_urgent) else { return false };
        let (valid, units) = (core.valid_units(victim), core.shape(victim).units);
        if f64::from(valid) > valid_max * f64::from(units) {
            return false;
        }
        let least = core.least_valid(lane);
        self.stats.victims += 1;
        self.stats.victims_not_greedy += u64::from(least != Some(victim));
        self.stats.victim_valid_pages += u64::from(valid);
        if let Some(pacing) = &mut self.pacing {
            pacing.on_victim(lane, valid);
        }
        core.begin_unit(victim);
        let job = NextJob::emptying(victim, Cause::Gc, is_urgent);
        self.start_job(core, path, schemes, lane, job);
        true
    }

    /// The policy's victim, if it can be emptied with a gain; else, and whenever `forces_victim`, the superblock with
    /// the fewest valid units.
    fn choose_victim<P: Probe>(
        &mut self,
        core: &mut Core<P>,
        path: &DataPath<impl Map<P>>,
        lane: LaneId,
        is_urgent: bool,
    ) -> Option<SuperblockId> {
        let named = core.pick_victim(lane)?;
        let is_forced = Self::forces_victim(core, path, lane);
        // Moving a superblock whose units are all valid gains nothing, and with a demand map it uses up room. It is
        // allowed only so that the policy can proceed to other superblocks: while space is short and the host is busy,
        // or while a write waits, and for at most as many such victims in a row as the lane has superblocks.
        let is_whole = core.valid_units(named) == core.shape(named).units;
        let may_lose =
            core.streams().map().is_none() && is_urgent && !core.state().is_idle || path.is_stuck();
        let superblocks = core.geometry().superblocks_in(lane);
        let is_guarded = core.state().is_guarded;
        let whole = &mut core.space_mut(lane).fully_valid_victims;
        *whole = if is_whole { *whole + 1 } else { 0 };
        let lets_policy_proceed = is_whole && may_lose && !is_guarded && *whole <= superblocks;
        let gains = core.gains(named) || lets_policy_proceed;
        let may_empty = core.may_empty(lane, named, false) && !(is_urgent && core.retires(named));
        if !is_forced && gains && may_empty {
            return Some(named);
        }
        let fewest = core.fewest_valid(lane)?;
        self.stats.victims_forced += u64::from(fewest != named);
        Some(fewest)
    }

    /// Whether GC must take the superblock with the fewest valid units. This begins when a translation page waits for
    /// room in a lane whose free superblocks are all kept superblocks, or when more erases in vain than the drive has
    /// superblocks have given no write a unit. It ends when the host's stream may open a superblock.
    fn forces_victim<P: Probe>(core: &mut Core<P>, path: &DataPath<impl Map<P>>, lane: LaneId) -> bool {
        let has_kept_superblocks_only = core.lane(lane).free.len() <= core.ftl().kept_superblocks();
        let is_in_vain = path.writes.erases_in_vain > u64::from(core.geometry().good_superblocks());
        let is_at_reserve = core.is_at_reserve(lane);
        let forced = &mut core.space_mut(lane).takes_fewest_valid;
        *forced =
            is_at_reserve && (*forced || has_kept_superblocks_only && path.map.waits_in(lane) || is_in_vain);
        *forced
    }

    /// Queues the erase of a dead superblock in the background class. The erase is promoted if the lane is at its
    /// reserve.
    pub(crate) fn erase_dead<P: Probe>(
        &mut self,
        core: &mut Core<P>,
        path: &mut DataPath<impl Map<P>>,
        superblock: SuperblockId,
    ) {
        let _inside = core.enter(Component::Background);
        self.stats.dead_blocks += 1;
        Self::erase_beside(core, path, superblock);
    }

    /// Queues the erase of a superblock beside the lane's job.
    fn erase_beside<P: Probe>(
        core: &mut Core<P>,
        path: &mut DataPath<impl Map<P>>,
        superblock: SuperblockId,
    ) {
        let lane = core.geometry().lane_of(superblock);
        path.host.trims.make_durable();
        let is_native = core.flash().shape_id(superblock) == ShapeId::FIRST;
        let cause = if is_native { Cause::Gc } else { Cause::Fold };
        core.erase(superblock, Owner::DeadSuperblock(lane), cause, Class::Background);
        if core.is_at_reserve(lane) {
            Self::promote_erases(core, lane);
        }
    }

    /// The lane is at its reserve: the die serves the erases of its dead superblocks with the priority of host writes.
    #[inline]
    fn promote_erases<P: Probe>(core: &mut Core<P>, lane: LaneId) {
        let space = core.space_mut(lane);
        if space.dead <= space.urgent_erases {
            return;
        }
        let more = space.dead - space.urgent_erases;
        space.urgent_erases += more;
        for _ in 0..more {
            core.promote(lane);
        }
    }

    /// A superblock has been erased beside the lane's job.
    pub(crate) fn end_dead<P: Probe>(
        &mut self,
        core: &mut Core<P>,
        superblock: SuperblockId,
        is_retired: bool,
    ) {
        let lane = core.geometry().lane_of(superblock);
        let space = core.space_mut(lane);
        if let Some(emptied) = space.emptied.take_if(|emptied| emptied.superblock == superblock) {
            if emptied.is_of_gc {
                self.victim_stats.on_erased(emptied.times.spans(core.now()));
            }
            if emptied.is_urgent {
                core.demote(lane);
            }
        }
        let space = core.space_mut(lane);
        space.dead -= 1;
        space.soon_free -= u32::from(!is_retired);
        if space.urgent_erases > space.dead {
            space.urgent_erases -= 1;
            core.demote(lane);
        }
    }

    /// Starts a wear-levelling job and returns `true` if the policy of wear levelling picks a superblock. The job takes
    /// a free superblock of the reserve, and its erase returns one.
    #[inline(never)]
    fn start_wear<P: Probe>(
        &mut self,
        core: &mut Core<P>,
        path: &mut DataPath<impl Map<P>>,
        schemes: &mut impl JobSchemes<P>,
        lane: LaneId,
        is_urgent: bool,
    ) -> bool {
        // The search runs once per n / 8 erases of a lane of n superblocks: often enough for the wear that these erases
        // cause, at little cost.
        let every = core.geometry().superblocks_in(lane).div_ceil(8);
        if core.lane(lane).free.len() < core.ftl().reserve_superblocks || !core.were_erased(lane, every) {
            return false;
        }
        let Some(policy) = &mut self.wear else { return false };
        let policy = policy.get_mut().unwrap_or_else(PoisonError::into_inner);
        let Some(victim) = core.pick_by(&mut **policy, PolicySlot::Wear, lane) else { return false };
        if !core.may_empty(lane, victim, true) {
            return false;
        }
        let job = NextJob::emptying(victim, Cause::Wear, is_urgent);
        self.start_job(core, path, schemes, lane, job);
        true
    }

    /// Starts the next refresh or reclaim job of a lane, and returns whether there was one.
    fn start_refresh<P: Probe>(
        &mut self,
        core: &mut Core<P>,
        path: &mut DataPath<impl Map<P>>,
        schemes: &mut impl JobSchemes<P>,
        lane: LaneId,
    ) -> bool {
        let Some(due) = schemes.next_job(core, lane) else {
            return false;
        };
        self.start_job(core, path, schemes, lane, due);
        true
    }

    /// A superblock of a lane has become due for refresh or reclaim. Starts the next job if the lane has no job.
    pub(crate) fn on_due<P: Probe>(
        &mut self,
        core: &mut Core<P>,
        path: &mut DataPath<impl Map<P>>,
        schemes: &mut impl JobSchemes<P>,
        lane: LaneId,
    ) {
        let _inside = core.enter(Component::Background);
        if !core.has_job(lane) {
            self.continue_background(core, path, schemes, lane);
        }
    }
}

value! {
    Job {
        cause,
        class,
        is_urgent,
        is_paced,
        blocks_from,
        is_blocking,
        is_erasing,
        gains,
        is_of_map,
        copyback,
        promises,
        stays,
        start,
        next_unit,
        prefetched,
        prefetch_at,
        rest,
        copies,
        reads,
        is_ahead,
        copied,
        times,
    }
}
state! {
    Background { jobs, waiting, stats, victim_stats }
    parts { pacing, wear }
    fixed { gc, copies_max }
}
