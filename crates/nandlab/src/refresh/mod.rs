//! Refresh: data that has aged for the interval of its superblock is read, corrected and written anew, whole or in
//! part.
//!
//! A superblock is due when its interval has passed since its first program or its last refresh; the interval depends
//! on the P/E cycles of the superblock and runs on the scaled clock. A due superblock is refreshed by a background job
//! of its lane. `refresh.priority` is the place of the job's operations on their dies. With `background` the job yields
//! to the host; when half of the grace is over, the job is promoted. If the job has not begun for lack of room, the
//! drive tries to start the job again. Unless `in_place` or partial refresh applies, the job writes the units elsewhere
//! and erases the superblock. A superblock without valid units needs no refresh.
//!
//! With `in_place` a unit that has been read and corrected is reprogrammed where it is. The superblock is not erased,
//! and is due again an interval later. A unit that no read level decodes is written elsewhere, marked as lost. While
//! the capacitor is being measured or recharged, every unit is written elsewhere, because a torn reprogram would
//! destroy the only copy of the unit. With `remap_above` a superblock is emptied and erased instead once the errors
//! from programs in place exceed this limit (hybrid FCR).
//!
//! Y. Cai et al., "Flash correct-and-refresh: retention-aware error management for increased flash memory lifetime",
//! ICCD 2012 (FCR, the baseline of the partial refresh paper). `partial/` and `error_cache.rs` name papers of their
//! own.
//!
//! A superblock has two alarms: it is due, and half of its grace is over. The alarms are in a heap behind one clock. An
//! alarm whose superblock has been refreshed or erased in the meantime is dropped when its time comes. A due superblock
//! waits in its lane's list for a job of cause `Refresh`, which empties and erases the superblock as GC does, or keeps
//! it (`NextJob::stays`). A copyback corrects nothing, so its destination superblock is due no later than its source.

mod error_cache;
pub(crate) mod notes;
pub mod partial;
pub(crate) mod spec;
mod stats;
#[cfg(test)]
mod tests;

use crate::base::state::{state, value};
pub(crate) use error_cache::ErrorCache;
pub use error_cache::ErrorCacheState;
pub(crate) use partial::Partial;
pub use partial::PartialState;
pub use stats::{RefreshStats, RefreshSummary};

use crate::base::counters::CounterSet;
use crate::base::geometry::{LaneId, SuperblockId, UnitId};
use crate::base::huge::Huge;
use crate::base::rng::Stream;
use crate::base::units::{SECOND, Span, Time};
use crate::core::placement::EventKind;
use crate::core::{
    BeforeLoss, Component, Core, Destination, Map, Maps, Mechanism, NextJob, Offline, Program, Refreshed,
    Rest, Skipped, Wake,
};
use crate::flash::{AgeStamp, Stamp, SuperblockState};
use crate::probe::Probe;
use crate::sched::{Cause, NEVER, Owner, Slot, Start, Transaction};
use spec::{RefreshPolicySpec, RefreshSpec};
use std::cmp::Reverse;
use std::collections::{BinaryHeap, VecDeque};

/// The kind of an alarm of the refresh clock.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Alarm {
    /// The superblock is due.
    Due,
    /// At least half of the superblock's grace is over.
    Hurry,
}

/// The parts of refresh: due superblocks, partial refresh, and the cache of known errors.
#[derive(Debug)]
pub(crate) struct Refreshing {
    pub(crate) refresh: Refresh,
    /// Partial refresh; `None` without it.
    pub(crate) partial: Option<Partial>,
    /// The cache of known errors; `None` if the policy has no such cache.
    pub(crate) error_cache: Option<ErrorCache>,
}

impl Refreshing {
    /// Builds the parts of refresh; `seed` is the seed of the drive.
    pub(crate) fn new<P: Probe>(spec: &RefreshSpec, seed: u64, core: &Core<P>) -> Self {
        Self {
            refresh: Refresh::new(spec, core),
            partial: Partial::new(&spec.policy, seed, core),
            error_cache: ErrorCache::new(&spec.policy, core),
        }
    }

    /// Returns the sum of the counters of all parts.
    pub(crate) fn stats(&self) -> RefreshStats {
        let mut all = self.refresh.stats.clone();
        let others = [self.partial.as_ref().map(|p| &p.stats), self.error_cache.as_ref().map(|c| &c.stats)];
        for stats in others.into_iter().flatten() {
            all.add(stats);
        }
        all
    }

    /// A unit has been read for a refresh job whose superblock is not erased: refreshes the unit partially or in place,
    /// if possible.
    #[inline(never)]
    pub(crate) fn refresh_unit<P: Probe>(
        &mut self,
        core: &mut Core<P>,
        lane: LaneId,
        read: &Transaction,
    ) -> Refreshed {
        let partial = self.partial.as_mut();
        match partial.map_or(Refreshed::Not, |partial| partial.refresh_unit(core, lane, read)) {
            Refreshed::Not if self.refresh.reprogram(core, lane, read) => Refreshed::Later,
            refreshed => refreshed,
        }
    }

    /// All units of a superblock that is not erased have been read, and refreshed or written elsewhere: ends the job.
    pub(crate) fn end_staying<P: Probe>(
        &mut self,
        core: &mut Core<P>,
        lane: LaneId,
        superblock: SuperblockId,
    ) {
        self.refresh.stats.busy_ns += self.refresh.job_ns(core.now(), lane);
        if let Some(partial) = &mut self.partial {
            partial.end_superblock(core, superblock);
        } else {
            self.refresh.end_in_place(core, superblock);
        }
    }

    /// The data of a unit is no longer needed, because the program that replaces the unit has ended or the LPN has been
    /// deallocated: drops the unit's known errors and its link.
    #[inline(always)]
    pub(crate) fn on_unit_obsolete<P: Probe>(&mut self, core: &mut Core<P>, unit: UnitId) {
        if self.error_cache.is_some() || self.partial.is_some() {
            self.drop_obsolete(core, unit);
        }
    }

    #[inline(never)]
    fn drop_obsolete<P: Probe>(&mut self, core: &mut Core<P>, unit: UnitId) {
        if let Some(cache) = &mut self.error_cache {
            cache.drop_unit(core.known_mut(), unit);
        }
        if let Some(partial) = &mut self.partial {
            partial.unlink_marked(core, unit);
        }
    }

    /// A host read has been queued: counts it if its unit is partially refreshed or has known errors.
    #[inline]
    pub(crate) fn on_host_read<P: Probe>(&mut self, core: &mut Core<P>, slot: Slot) {
        if let Some(partial) = &mut self.partial {
            partial.on_host_read(core, slot);
        }
        if let Some(cache) = &mut self.error_cache {
            cache.on_host_read(core, slot);
        }
    }

    /// A superblock has been erased: drops the state that partial refresh has of the superblock.
    pub(crate) fn on_erased<P: Probe>(&mut self, core: &mut Core<P>, superblock: SuperblockId) {
        if let Some(partial) = &mut self.partial {
            partial.on_erased(core, superblock);
        }
    }
}

impl<P: Probe> Mechanism<P> for Refreshing {
    fn next_job(&mut self, core: &mut Core<P>, lane: LaneId) -> Option<NextJob> {
        self.refresh.next_due(core, self.partial.as_mut(), lane)
    }

    fn began(&mut self, offline: &mut Offline<'_, P>) {
        self.refresh.begin(offline);
    }

    fn power_lost(&mut self, offline: &mut Offline<'_, P>) {
        let core = &mut **offline;
        if let Some(partial) = &mut self.partial {
            partial.forget();
        }
        core.forget_read_counts();
        if let Some(cache) = &mut self.error_cache {
            cache.clear(core.known_mut());
        }
    }

    fn recovered(&mut self, offline: &mut Offline<'_, P>, _before: &BeforeLoss<'_>) {
        if let Some(partial) = &mut self.partial {
            partial.restore_links(offline, &mut self.refresh);
        }
    }

    fn skipped(&mut self, offline: &mut Offline<'_, P>, skipped: &Skipped<'_>) {
        if let Some(partial) = &mut self.partial {
            partial.on_worn(|base| skipped.cycles[offline.geometry().superblock_of(base).index()]);
        }
        self.refresh.spread_overdue(offline, skipped.seed);
    }

    fn bytes(&self) -> u64 {
        self.refresh.since.bytes() + self.error_cache.as_ref().map_or(0, ErrorCache::bytes_of_arrays)
    }

    fn audit(&self, core: &Core<P>, rest: Rest) -> Result<(), String> {
        if let Some(partial) = &self.partial {
            partial.audit(core, rest.is_at_rest())?;
        }
        self.error_cache.as_ref().map_or(Ok(()), |cache| cache.audit(core))
    }
}

/// The ages of superblocks, the alarms of the refresh clock, and the due superblocks.
#[derive(Debug)]
pub(crate) struct Refresh {
    policy: RefreshPolicySpec,
    pub(crate) stats: RefreshStats,
    /// The lines of the interval table: highest P/E cycles, and interval in seconds.
    intervals: Box<[(u32, u32)]>,
    /// Share of its interval by which a superblock may be overdue before it counts as late.
    grace: f64,
    /// Number of reprograms in place that are queued or under way.
    reprograms: u32,
    /// By superblock: age stamp from which the age of its data counts; empty without refresh.
    since: Huge<AgeStamp>,
    /// Pending alarms: age stamp, superblock, kind, and the superblock's `since` when the alarm was set. An alarm is
    /// outdated if the superblock's `since` has changed.
    alarms: BinaryHeap<Reverse<(AgeStamp, u32, Alarm, AgeStamp)>>,
    /// By lane: the queue of due superblocks.
    due: Box<[VecDeque<SuperblockId>]>,
    /// By lane: time at which the latest refresh job began.
    began: Box<[Time]>,
    /// Whether the refresh clock has set the alarms of all programmed superblocks since [`Refresh::begin`].
    has_begun: bool,
}

impl Refresh {
    pub(crate) fn new<P: Probe>(spec: &RefreshSpec, core: &Core<P>) -> Self {
        let is_on = spec.policy != RefreshPolicySpec::None;
        let lanes = if is_on { core.geometry().lanes as usize } else { 0 };
        let seconds = |span: Span| u32::try_from(span / SECOND).unwrap_or(u32::MAX).max(1);
        Self {
            policy: spec.policy,
            stats: RefreshStats::default(),
            intervals: spec.interval.iter().map(|&(pe, every)| (pe, seconds(every))).collect(),
            grace: spec.grace,
            reprograms: 0,
            since: Huge::filled(
                AgeStamp::default(),
                if is_on { core.geometry().superblocks as usize } else { 0 },
            ),
            alarms: BinaryHeap::new(),
            due: vec![VecDeque::new(); lanes].into(),
            began: vec![Time::START; lanes].into(),
            has_begun: false,
        }
    }

    #[inline(always)]
    pub(crate) fn is_on(&self) -> bool {
        !matches!(self.policy, RefreshPolicySpec::None)
    }

    /// The refresh interval of a superblock with `pe_cycles` P/E cycles, in seconds.
    pub(crate) fn interval_s(&self, pe_cycles: u32) -> u32 {
        let line = self.intervals.iter().find(|&&(pe, _)| pe_cycles <= pe).or(self.intervals.last());
        line.map_or(u32::MAX, |&(_, every)| every)
    }

    /// The read level at which the reads of a refresh start; `is_partial`: the superblock is refreshed partially.
    fn start(&self, is_partial: bool) -> Start {
        if self.policy.reads_full_strength(is_partial) { Start::Last } else { Start::First }
    }

    /// Whether any unit is being reprogrammed in place.
    pub(crate) fn is_reprogramming(&self) -> bool {
        self.reprograms > 0
    }

    /// Whether `superblock` is the first superblock in the queue of due superblocks of its lane.
    pub(crate) fn is_next(&self, lane: LaneId, superblock: SuperblockId) -> bool {
        self.due[lane.index()].front() == Some(&superblock)
    }

    /// Whether the refresh clock has set the alarms of all programmed superblocks since [`Refresh::begin`].
    pub(crate) fn has_begun(&self) -> bool {
        self.has_begun
    }

    /// Counts the age of a superblock's data from `since`, unless it already counts from an earlier time. Sets no
    /// alarms.
    pub(crate) fn age_from(&mut self, superblock: SuperblockId, since: AgeStamp) {
        let known = &mut self.since[superblock.index()];
        *known = (*known).min(since);
    }

    fn grace_s(&self, pe_cycles: u32) -> u32 {
        (f64::from(self.interval_s(pe_cycles)) * self.grace) as u32
    }

    /// Time between two hurry alarms of a superblock that has been overdue for `overdue_s` seconds, in seconds: an eighth
    /// of the grace, and of the time overdue where that is longer. Where more data comes due than the drive can refresh,
    /// a superblock thus has some alarms for each doubling of its time overdue, and not hundreds in each interval.
    fn hurry_interval_s(&self, pe_cycles: u32, overdue_s: u32) -> u32 {
        (self.grace_s(pe_cycles).max(overdue_s) / 8).max(1)
    }
}

impl Refresh {
    /// Called at the start of the run, after a power loss and after a fast-forward: the next event of the refresh clock
    /// will set the alarms of all programmed superblocks. At the start of the run preconditioning comes before this
    /// event. The ages of superblocks survive a power loss, because the firmware keeps a record of them.
    pub(crate) fn begin<P: Probe>(&mut self, core: &mut Core<P>) {
        if self.is_on() {
            self.alarms.clear();
            self.due.iter_mut().for_each(VecDeque::clear);
            self.has_begun = false;
            self.reprograms = 0;
            core.set_clock(core.refresh_clock(), core.now());
        }
    }

    /// Time has been skipped: gives a random age within its interval to each superblock that would be due now, for
    /// example because wear has shortened the interval. Otherwise all these superblocks would be due at once.
    fn spread_overdue<P: Probe>(&mut self, offline: &mut Offline<'_, P>, seed: u64) {
        if !self.has_begun {
            return;
        }
        let now = offline.age_now();
        for superblock in (0..offline.geometry().superblocks).map(SuperblockId) {
            let state = offline.superblock(superblock);
            let interval_s = self.interval_s(state.pe_cycles);
            if state.programmed == 0 || now.later_s_than(self.since[superblock.index()]) < interval_s {
                continue;
            }
            let seed = seed ^ u64::from(superblock.0) << 32 ^ u64::from(state.pe_cycles);
            let age_s = (Stream::new(seed, "fast-forward").unit() * f64::from(interval_s)) as u32;
            let since = now.minus_s(age_s);
            self.since[superblock.index()] = since;
            let programmed = state.programmed;
            for unit in 0..programmed {
                let unit = offline.geometry().unit(superblock, unit);
                offline.correct_since(unit, since);
            }
        }
    }

    /// Counts the age of a superblock's data from now, and sets the due alarm of the superblock.
    #[cold]
    #[inline(never)]
    pub(crate) fn age_from_now<P: Probe>(&mut self, core: &mut Core<P>, superblock: SuperblockId) {
        self.set_age(core, superblock, core.age_now());
        self.set_clock(core);
    }

    /// Data of `source` has been copied back to `superblock`: if the data of `source` is older, `superblock` gets the
    /// age of `source`.
    #[cold]
    #[inline(never)]
    pub(crate) fn age_as<P: Probe>(
        &mut self,
        core: &mut Core<P>,
        superblock: SuperblockId,
        source: SuperblockId,
    ) {
        let since = self.since[source.index()];
        if since < self.since[superblock.index()] {
            self.set_age(core, superblock, since);
            self.set_clock(core);
        }
    }

    /// A superblock gets its first program while power fails: the age of its data counts from now. The alarms are set
    /// after [`Refresh::begin`].
    pub(crate) fn age_from_power_loss<P: Probe>(&mut self, core: &mut Core<P>, superblock: SuperblockId) {
        if self.is_on() {
            self.since[superblock.index()] = core.age_now();
        }
    }

    /// A copyback has ended while power fails: does the same as [`Refresh::age_as`], but sets no alarms.
    pub(crate) fn age_as_from_power_loss(&mut self, superblock: SuperblockId, source: SuperblockId) {
        if self.is_on() {
            self.age_from(superblock, self.since[source.index()]);
        }
    }

    /// Sets the age stamp from which the age of a superblock's data counts, and its due alarm.
    fn set_age<P: Probe>(&mut self, core: &mut Core<P>, superblock: SuperblockId, since: AgeStamp) {
        self.since[superblock.index()] = since;
        let due = since.plus_s(self.interval_s(core.superblock(superblock).pe_cycles));
        self.alarms.push(Reverse((due, superblock.0, Alarm::Due, since)));
    }

    fn set_clock<P: Probe>(&mut self, core: &mut Core<P>) {
        let next = match self.alarms.peek() {
            _ if !self.has_begun => core.now(),
            Some(&Reverse((at, ..))) => core.age_clock().time_of(at).max(core.now()),
            None => NEVER,
        };
        core.set_clock(core.refresh_clock(), next);
    }

    /// The refresh clock has expired.
    pub(crate) fn on_clock<P: Probe>(&mut self, core: &mut Core<P>) {
        let _inside = core.enter(Component::Refresh);
        if !std::mem::replace(&mut self.has_begun, true) {
            for superblock in (0..core.geometry().superblocks).map(SuperblockId) {
                if core.superblock(superblock).programmed > 0 {
                    let since = self.since[superblock.index()];
                    // A superblock without an age stamp gets its initial age. After a power loss, the stamp from before
                    // the loss counts.
                    let since =
                        if since == AgeStamp::default() { core.initial_age(superblock) } else { since };
                    self.set_age(core, superblock, since);
                }
            }
        }
        let now = core.age_now();
        while let Some(&Reverse((at, superblock, alarm, since))) = self.alarms.peek()
            && at <= now
        {
            self.alarms.pop();
            let superblock = SuperblockId(superblock);
            let state = core.superblock(superblock);
            if self.since[superblock.index()] != since || state.programmed == 0 {
                continue;
            }
            let lane = core.geometry().lane_of(superblock);
            match alarm {
                Alarm::Due => {
                    let hurry = at.plus_s(self.grace_s(state.pe_cycles) / 2);
                    self.alarms.push(Reverse((hurry, superblock.0, Alarm::Hurry, since)));
                    self.due[lane.index()].push_back(superblock);
                    core.wake(Wake::Due(lane));
                }
                // A superblock without valid units needs no refresh.
                Alarm::Hurry if state.valid == 0 => {}
                Alarm::Hurry => {
                    // The alarm repeats until the superblock is refreshed: the lane may have no room now, or programs
                    // of the superblock may be under way.
                    let overdue_s = now.later_s_than(since.plus_s(self.interval_s(state.pe_cycles)));
                    let again = now.plus_s(self.hurry_interval_s(state.pe_cycles, overdue_s));
                    // The age clock stops at the end of its range, where the alarm would repeat without end.
                    if again > now {
                        self.alarms.push(Reverse((again, superblock.0, Alarm::Hurry, since)));
                    }
                    core.wake(Wake::Hurry(superblock));
                }
            }
        }
        self.set_clock(core);
    }

    /// Returns the next refresh job of a lane without a job, if a superblock is due and the lane has room for the job.
    #[inline(never)]
    pub(crate) fn next_due<P: Probe>(
        &mut self,
        core: &mut Core<P>,
        partial: Option<&mut Partial>,
        lane: LaneId,
    ) -> Option<NextJob> {
        if !self.is_on() {
            return None;
        }
        let _inside = core.enter(Component::Refresh);
        let now = core.age_now();
        while let Some(&superblock) = self.due[lane.index()].front() {
            let state = core.superblock(superblock);
            let (pe_cycles, valid) = (state.pe_cycles, state.valid);
            let since = self.since[superblock.index()];
            let due = since.plus_s(self.interval_s(pe_cycles));
            // The superblock may have been emptied by GC since it became due.
            if due > now || state.state != SuperblockState::Open && !state.state.is_closed() {
                self.due[lane.index()].pop_front();
                continue;
            }
            // An open superblock is closed, even without valid units: its due alarm has struck, so units programmed to
            // the superblock later would never become due.
            if state.state == SuperblockState::Open
                && !core.close_open(lane, superblock, EventKind::TimeLimit)
            {
                return None;
            }
            if valid == 0 {
                self.due[lane.index()].pop_front();
                continue;
            }
            let stream = core.emptying_stream(superblock, false);
            // A job whose superblock is not erased gives back no free superblock, so the job needs more room.
            let is_partial = partial.is_some_and(|partial| partial.takes(core, superblock, stream));
            let is_in_place = self.may_reprogram(core)
                && !self.remaps(core, superblock)
                && core.may_rewrite(lane, superblock);
            let is_possible = if is_partial {
                core.may_rewrite(lane, superblock)
            } else {
                is_in_place || core.may_empty(lane, superblock, false)
            };
            if !is_possible {
                return None;
            }
            self.due[lane.index()].pop_front();
            self.began[lane.index()] = core.now();
            self.stats.blocks += 1;
            self.stats.pages += u64::from(valid);
            let is_urgent = now.later_s_than(due) >= self.grace_s(pe_cycles) / 2;
            self.stats.partial_blocks += u64::from(is_partial);
            self.stats.blocks_in_place += u64::from(is_in_place);
            let stays = is_partial || is_in_place;
            let (start, class) = (self.start(is_partial), core.refresh_class());
            let job = NextJob::emptying(superblock, Cause::Refresh, is_urgent);
            return Some(NextJob { stays, corrects: true, start, class, ..job });
        }
        None
    }

    /// Whether units are reprogrammed in place: the policy has `in_place`, and the capacitor is charged.
    fn may_reprogram<P: Probe>(&self, core: &Core<P>) -> bool {
        self.policy.in_place().is_some() && core.state().is_charged
    }

    /// Whether programs in place have disturbed the units of a due superblock so much that the superblock is remapped
    /// (`remap_above`).
    fn remaps<P: Probe>(&self, core: &Core<P>, superblock: SuperblockId) -> bool {
        let errors = core.reprogram_error() * f64::from(core.flash().rare(superblock).reprograms);
        self.policy.in_place().and_then(|fcr| fcr.remap_above).is_some_and(|limit| errors > limit)
    }

    /// A unit of a superblock that is being refreshed in place has been read: queues the reprogram of the unit. Returns
    /// `false` if the unit has to be written elsewhere.
    #[inline(never)]
    pub(crate) fn reprogram<P: Probe>(
        &mut self,
        core: &mut Core<P>,
        lane: LaneId,
        read: &Transaction,
    ) -> bool {
        if !self.may_reprogram(core) || read.is_uncorrectable() {
            return false;
        }
        self.reprograms += 1;
        self.stats.pages_in_place += 1;
        let (to, owner, maps) = (Destination::InPlace(read.unit), Owner::Job(lane), Maps::Nothing);
        let (lpn, stamp, cause, class) = (read.lpn, Stamp::default(), read.cause, read.class);
        let queued = core.program(Program { to, lpn, stamp, maps, owner, cause, class });
        queued.expect("a program in place needs no free unit");
        true
    }

    /// A reprogram in place has ended. If the host has written the LPN meanwhile, the unit is invalid, and the read
    /// level of the LPN remains unchanged.
    #[cold]
    pub(crate) fn on_reprogrammed<P: Probe>(
        &mut self,
        core: &mut Core<P>,
        map: &mut impl Map<P>,
        done: &Transaction,
    ) {
        self.reprograms -= 1;
        let superblock = core.geometry().superblock_of(done.unit);
        core.end_reprogram(done);
        if core.is_newest(done.lpn, done.unit) {
            map.on_corrected(core, done.lpn);
        }
        core.unpin(superblock);
    }

    /// All units of a superblock have been reprogrammed in place, or written elsewhere: records the delay of the
    /// refresh, and counts the age of the superblock's data from now.
    pub(crate) fn end_in_place<P: Probe>(&mut self, core: &mut Core<P>, superblock: SuperblockId) {
        core.end_in_place(superblock);
        self.on_superblock_refreshed(core, superblock, core.superblock(superblock).pe_cycles);
        self.age_from_now(core, superblock);
    }

    /// All susceptible bits taken from a superblock that is refreshed partially are in flash: records the delay of the
    /// refresh, and counts the age of the superblock's data from now.
    pub(crate) fn end_partial<P: Probe>(&mut self, core: &mut Core<P>, superblock: SuperblockId) {
        self.on_superblock_refreshed(core, superblock, core.superblock(superblock).pe_cycles);
        if core.superblock(superblock).programmed > 0 {
            self.age_from_now(core, superblock);
        }
    }

    /// A superblock has been refreshed by moving its units, and has been erased: records duration and delay of the
    /// refresh.
    #[inline(never)]
    pub(crate) fn on_erased<P: Probe>(&mut self, core: &mut Core<P>, superblock: SuperblockId) {
        self.stats.busy_ns += self.job_ns(core.now(), core.geometry().lane_of(superblock));
        // The erase has just added a P/E cycle.
        self.on_superblock_refreshed(
            core,
            superblock,
            core.superblock(superblock).pe_cycles.saturating_sub(1),
        );
    }

    /// Duration of the refresh job that has just ended in a lane.
    pub(crate) fn job_ns(&self, now: Time, lane: LaneId) -> Span {
        now - self.began[lane.index()]
    }

    /// Counts a refresh job that has been promoted to the priority of host writes.
    pub(crate) fn on_promoted(&mut self) {
        self.stats.promoted += 1;
    }

    /// The rate at which superblocks come due per rate at which they have been refreshed so far: the mean duration of a
    /// refresh job per interval, summed over the superblocks with valid data of a lane; the highest value of all lanes.
    /// `None` before the first refresh has ended.
    pub(crate) fn load<P: Probe>(&self, core: &Core<P>) -> Option<f64> {
        let stats = &self.stats;
        if stats.blocks == 0 || stats.busy_ns == Span::ZERO {
            return None;
        }
        let mean_s = stats.busy_ns.seconds() / stats.blocks as f64;
        let rate = |lane: LaneId| -> f64 {
            let superblocks = &core.flash().superblocks[core.geometry().superblocks_of(lane)];
            let with_data = superblocks.iter().filter(|superblock| superblock.valid > 0);
            let interval_s = |pe| f64::from(self.interval_s(pe)) / core.age_clock().scale();
            with_data.map(|superblock| mean_s / interval_s(superblock.pe_cycles)).sum()
        };
        (0..core.geometry().lanes).map(LaneId).map(rate).reduce(f64::max)
    }

    /// Returns the superblocks with valid data that are overdue by more than their grace.
    pub(crate) fn overdue<P: Probe>(&self, core: &Core<P>) -> impl Iterator<Item = SuperblockId> {
        let now = core.age_now();
        (0..core.geometry().superblocks).map(SuperblockId).filter(move |&superblock| {
            let state = core.superblock(superblock);
            let wait = self.interval_s(state.pe_cycles).saturating_add(self.grace_s(state.pe_cycles));
            state.valid > 0 && state.programmed > 0 && self.since[superblock.index()].plus_s(wait) < now
        })
    }

    /// Records the delay of a superblock whose data has been refreshed; `pe_cycles`: P/E cycles of the superblock
    /// before the erase, if the refresh has erased the superblock.
    pub(crate) fn on_superblock_refreshed<P: Probe>(
        &mut self,
        core: &mut Core<P>,
        superblock: SuperblockId,
        pe_cycles: u32,
    ) {
        let due = self.since[superblock.index()].plus_s(self.interval_s(pe_cycles));
        let overdue_s = core.age_now().later_s_than(due);
        let grace_s = self.grace_s(pe_cycles);
        let stats = &mut self.stats;
        stats.overdue_max_s = stats.overdue_max_s.max(overdue_s);
        stats.late_blocks += u64::from(overdue_s > grace_s);
    }
}

value! { Alarm enum { Due, Hurry } }
state! { Refreshing { refresh } parts { partial, error_cache } }
state! {
    Refresh { stats, reprograms, since, alarms, due, began, has_begun }
    fixed { policy, intervals, grace }
}
