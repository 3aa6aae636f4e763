//! Refresh: data that has aged for its block's interval is read, corrected and written anew.
//!
//! A block is due its interval after its first program or its last refresh, by its P/E cycles, on the scaled clock. It is
//! then emptied as a background job of its plane, which yields to the host; when half of its grace is over the job is
//! promoted, or begun if it could not be before. A block without valid pages has nothing to refresh.
//!
//! In place, a page that has been read and corrected is programmed once more where it is: the block is not erased and is
//! due again an interval later. A page that no read level decodes is written elsewhere, with its mark. So is each page
//! while the capacitor is measured or charged: torn, the program would take the only copy with it.
//!
//! Y. Cai et al., "Flash correct-and-refresh: retention-aware error management for increased flash memory lifetime", ICCD
//! 2012 (FCR, the baseline of the partial refresh paper). `partial/` and `error_cache.rs` name papers of their own.

mod error_cache;
pub(crate) mod notes;
pub mod partial;
pub(crate) mod spec;
mod stats;
#[cfg(test)]
mod tests;

pub(crate) use error_cache::ErrorCache;
pub use error_cache::ErrorCacheState;
pub(crate) use partial::Partial;
pub use partial::PartialState;
pub use stats::RefreshStats;

use crate::base::counters::CounterSet;
use crate::base::geometry::{BlockId, Geometry, PlaneId, Ppn};
use crate::base::huge::Huge;
use crate::base::units::{SECOND, Span, Time};
use crate::core::{Core, Map, Maps, NextJob, Part, Program, Refreshed, To, Wake};
use crate::flash::{AgeStamp, BlockState, Stamp};
use crate::probe::Probe;
use crate::sched::{Cause, Class, NEVER, Owner, Slot, Start, Transaction};
use spec::{RefreshPolicySpec, RefreshSpec};
use std::cmp::Reverse;
use std::collections::{BinaryHeap, VecDeque};

/// What a moment on the refresh clock is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Alarm {
    /// The block is due.
    Due,
    /// Its grace is running out.
    Hurry,
}

/// How data is refreshed.
#[derive(Debug)]
pub(crate) struct Refreshing {
    pub(crate) refresh: Refresh,
    /// Partial refresh; `None` without it.
    pub(crate) partial: Option<Partial>,
    /// The cache of known errors; `None` without one.
    pub(crate) error_cache: Option<ErrorCache>,
}

impl Refreshing {
    /// `seed` is that of the drive.
    pub(crate) fn new<P: Probe>(spec: &RefreshSpec, seed: u64, core: &Core<P>) -> Self {
        Self {
            refresh: Refresh::new(spec, &core.geometry),
            partial: Partial::new(&spec.policy, seed, core),
            error_cache: ErrorCache::new(&spec.policy, &core.geometry),
        }
    }

    /// What has been counted.
    pub(crate) fn stats(&self) -> RefreshStats {
        let mut all = self.refresh.stats.clone();
        let others = [self.partial.as_ref().map(|p| &p.stats), self.error_cache.as_ref().map(|c| &c.stats)];
        for stats in others.into_iter().flatten() {
            all.add(stats);
        }
        all
    }

    /// The block of a plane without a job that is refreshed next, if one is due and there is room.
    pub(crate) fn next_due<P: Probe>(&mut self, core: &mut Core<P>, plane: PlaneId) -> Option<NextJob> {
        self.refresh.next_due(core, self.partial.as_mut(), plane)
    }

    /// A page of a block that stays has been read, and is to be refreshed where it is: partially, or in place.
    #[inline(never)]
    pub(crate) fn refresh_page<P: Probe>(
        &mut self,
        core: &mut Core<P>,
        plane: PlaneId,
        read: &Transaction,
    ) -> Refreshed {
        let partial = self.partial.as_mut();
        match partial.map_or(Refreshed::Not, |partial| partial.refresh_page(core, plane, read)) {
            Refreshed::Not if self.refresh.reprogram(core, plane, read) => Refreshed::Later,
            refreshed => refreshed,
        }
    }

    /// All pages of a block that stays are done.
    pub(crate) fn end_staying<P: Probe>(&mut self, core: &mut Core<P>, plane: PlaneId, block: BlockId) {
        self.refresh.stats.busy_ns += self.refresh.job_ns(core.now, plane);
        if let Some(partial) = &mut self.partial {
            partial.end_block(core, block);
        } else {
            self.refresh.end_in_place(core, block);
        }
    }

    /// The data of a page is elsewhere, or nowhere.
    #[inline]
    pub(crate) fn on_page_gone<P: Probe>(&mut self, core: &mut Core<P>, ppn: Ppn) {
        if let Some(cache) = &mut self.error_cache {
            cache.drop_page(&mut core.physics.known, ppn);
        }
        if let Some(partial) = &mut self.partial {
            partial.unlink_marked(core, ppn);
        }
    }

    /// A read of the host's is queued.
    #[inline]
    pub(crate) fn on_host_read<P: Probe>(&mut self, core: &mut Core<P>, slot: Slot) {
        if let Some(partial) = &mut self.partial {
            partial.on_host_read(core, slot);
        }
        if let Some(cache) = &mut self.error_cache {
            cache.on_host_read(core, slot);
        }
    }

    /// A block has been erased.
    pub(crate) fn on_erased<P: Probe>(&mut self, core: &mut Core<P>, block: BlockId) {
        if let Some(partial) = &mut self.partial {
            partial.on_erased(core, block);
        }
    }

    /// Power is gone, and what RAM held.
    pub(crate) fn forget<P: Probe>(&mut self, core: &mut Core<P>) {
        if let Some(partial) = &mut self.partial {
            partial.forget();
        }
        core.read_counts.forget();
        if let Some(cache) = &mut self.error_cache {
            cache.clear(&mut core.physics.known);
        }
        core.physics.known.clear();
    }
}

/// When which blocks are due.
#[derive(Debug)]
pub(crate) struct Refresh {
    policy: RefreshPolicySpec,
    stats: RefreshStats,
    /// P/E cycles up to which an interval in seconds holds.
    intervals: Box<[(u32, u32)]>,
    grace: f64,
    /// Programs in place that are queued or under way.
    reprograms: u32,
    /// By block, since when its data has been ageing; empty without refresh.
    since: Huge<AgeStamp>,
    /// Alarms to come: moment, block, what for, and the `since` it was set for, which tells whether it still holds.
    alarms: BinaryHeap<Reverse<(AgeStamp, u32, Alarm, AgeStamp)>>,
    /// By plane, blocks that are due.
    due: Box<[VecDeque<BlockId>]>,
    /// When the job of a plane began.
    began: Box<[Time]>,
    /// The blocks that were there at the start have been looked at.
    has_begun: bool,
}

impl Refresh {
    pub(crate) fn new(spec: &RefreshSpec, geometry: &Geometry) -> Self {
        let is_on = spec.policy != RefreshPolicySpec::None;
        let planes = if is_on { geometry.planes as usize } else { 0 };
        let seconds = |span: Span| u32::try_from(span / SECOND).unwrap_or(u32::MAX).max(1);
        Self {
            policy: spec.policy,
            stats: RefreshStats::default(),
            intervals: spec.interval.iter().map(|&(pe, every)| (pe, seconds(every))).collect(),
            grace: spec.grace,
            reprograms: 0,
            since: Huge::zeroed(if is_on { geometry.blocks as usize } else { 0 }),
            alarms: BinaryHeap::new(),
            due: vec![VecDeque::new(); planes].into(),
            began: vec![Time::START; planes].into(),
            has_begun: false,
        }
    }

    #[inline(always)]
    pub(crate) fn is_on(&self) -> bool {
        self.policy != RefreshPolicySpec::None
    }

    /// The interval of a block with so many P/E cycles, in seconds.
    pub(crate) fn interval_s(&self, pe_cycles: u32) -> u32 {
        let line = self.intervals.iter().find(|&&(pe, _)| pe_cycles <= pe).or(self.intervals.last());
        line.map_or(u32::MAX, |&(_, every)| every)
    }

    /// The level at which its reads start.
    pub(crate) fn start(&self) -> Start {
        if self.policy.reads_full_strength() { Start::Last } else { Start::First }
    }

    /// Whether a page is being reprogrammed in place.
    pub(crate) fn is_reprogramming(&self) -> bool {
        self.reprograms > 0
    }

    /// Whether a block is the first one of its plane that is due.
    pub(crate) fn is_next(&self, plane: PlaneId, block: BlockId) -> bool {
        self.due[plane.index()].front() == Some(&block)
    }

    /// Since when the data of a block has been ageing.
    pub(crate) fn since(&self, block: BlockId) -> AgeStamp {
        self.since[block.index()]
    }

    /// Sets that; its alarms do not follow.
    pub(crate) fn set_since(&mut self, block: BlockId, since: AgeStamp) {
        self.since[block.index()] = since;
    }

    /// Whether the blocks that were there at the start have been looked at.
    pub(crate) fn has_begun(&self) -> bool {
        self.has_begun
    }

    /// Data of a block ages from then on, if not from before.
    pub(crate) fn age_from(&mut self, block: BlockId, since: AgeStamp) {
        let known = &mut self.since[block.index()];
        *known = (*known).min(since);
    }

    fn grace_s(&self, pe_cycles: u32) -> u32 {
        (f64::from(self.interval_s(pe_cycles)) * self.grace) as u32
    }

    /// How long after it was hurried a block that is still due is hurried again.
    fn again_s(&self, pe_cycles: u32) -> u32 {
        (self.grace_s(pe_cycles) / 8).max(1)
    }
}

impl Refresh {
    /// The blocks that hold data are looked at when the first event is due: preconditioning comes before it. After a power loss
    /// anew: when each was refreshed is the firmware's own record.
    pub(crate) fn begin<P: Probe>(&mut self, core: &mut Core<P>) {
        if self.is_on() {
            self.alarms.clear();
            self.due.iter_mut().for_each(VecDeque::clear);
            self.has_begun = false;
            self.reprograms = 0;
            core.set_clock(core.refresh_clock(), core.now);
        }
    }

    /// The data of a block ages from now.
    #[cold]
    #[inline(never)]
    pub(crate) fn age_from_now<P: Probe>(&mut self, core: &mut Core<P>, block: BlockId) {
        self.set_age(core, block, core.physics.age_clock.at(core.now));
        self.set_clock(core);
    }

    /// Data of `source` has been copied back to a block, and goes on ageing as it did there.
    #[cold]
    #[inline(never)]
    pub(crate) fn age_as<P: Probe>(&mut self, core: &mut Core<P>, block: BlockId, source: BlockId) {
        let since = self.since[source.index()];
        if since < self.since[block.index()] {
            self.set_age(core, block, since);
            self.set_clock(core);
        }
    }

    /// The data of a block that is programmed first while power is off ages from now: [`Refresh::begin`] sets the alarms.
    pub(crate) fn age_from_power_loss<P: Probe>(&mut self, core: &mut Core<P>, block: BlockId) {
        if self.is_on() {
            self.since[block.index()] = core.physics.age_clock.at(core.now);
        }
    }

    /// A copyback has ended while power is off.
    pub(crate) fn age_as_from_power_loss(&mut self, block: BlockId, source: BlockId) {
        if self.is_on() {
            self.age_from(block, self.since[source.index()]);
        }
    }

    fn set_age<P: Probe>(&mut self, core: &mut Core<P>, block: BlockId, since: AgeStamp) {
        self.since[block.index()] = since;
        let due = since.plus_s(self.interval_s(core.array.block(block).pe_cycles));
        self.alarms.push(Reverse((due, block.0, Alarm::Due, since)));
    }

    fn set_clock<P: Probe>(&mut self, core: &mut Core<P>) {
        let next = match self.alarms.peek() {
            _ if !self.has_begun => core.now,
            Some(&Reverse((moment, ..))) => core.physics.age_clock.time_of(moment).max(core.now),
            None => NEVER,
        };
        core.set_clock(core.refresh_clock(), next);
    }

    /// The refresh clock has struck.
    pub(crate) fn on_clock<P: Probe>(&mut self, core: &mut Core<P>) {
        let _inside = core.inside.enter(Part::Refresh);
        if !std::mem::replace(&mut self.has_begun, true) {
            for block in (0..core.geometry.blocks).map(BlockId) {
                if core.array.block(block).programmed > 0 {
                    let since = self.since[block.index()];
                    // What power loss has interrupted goes on counting.
                    let since = if since == AgeStamp::default() {
                        core.physics.initial_ages.of(block)
                    } else {
                        since
                    };
                    self.set_age(core, block, since);
                }
            }
        }
        let now = core.physics.age_clock.at(core.now);
        while let Some(&Reverse((moment, block, alarm, since))) = self.alarms.peek()
            && moment <= now
        {
            self.alarms.pop();
            let block = BlockId(block);
            let state = core.array.block(block);
            if self.since[block.index()] != since || state.programmed == 0 {
                continue;
            }
            let plane = core.geometry.plane_of(block);
            match alarm {
                Alarm::Due => {
                    let hurry = moment.plus_s(self.grace_s(state.pe_cycles) / 2);
                    self.alarms.push(Reverse((hurry, block.0, Alarm::Hurry, since)));
                    self.due[plane.index()].push_back(block);
                    core.wake(Wake::Due(plane));
                }
                // What holds nothing has no hurry.
                Alarm::Hurry if state.valid == 0 => {}
                Alarm::Hurry => {
                    // Until it is refreshed: there may be no room now, or programs under way in it.
                    let again = now.plus_s(self.again_s(state.pe_cycles));
                    // At its end the clock stops.
                    if again > now {
                        self.alarms.push(Reverse((again, block.0, Alarm::Hurry, since)));
                    }
                    core.wake(Wake::Hurry(block));
                }
            }
        }
        self.set_clock(core);
    }

    /// The block of a plane without a job that is refreshed next, if one is due and there is room.
    #[inline(never)]
    pub(crate) fn next_due<P: Probe>(
        &mut self,
        core: &mut Core<P>,
        partial: Option<&mut Partial>,
        plane: PlaneId,
    ) -> Option<NextJob> {
        if !self.is_on() {
            return None;
        }
        let _inside = core.inside.enter(Part::Refresh);
        let now = core.physics.age_clock.at(core.now);
        while let Some(&block) = self.due[plane.index()].front() {
            let state = core.array.block(block);
            let (pe_cycles, valid) = (state.pe_cycles, u32::from(state.valid));
            let since = self.since[block.index()];
            let due = since.plus_s(self.interval_s(pe_cycles));
            // It may have been collected meanwhile.
            if due > now || !matches!(state.state, BlockState::Open | BlockState::Full) {
                self.due[plane.index()].pop_front();
                continue;
            }
            // Also one that has lost its last valid page: what it might take yet would never be due.
            if state.state == BlockState::Open && !self.close(core, plane, block) {
                return None;
            }
            if valid == 0 {
                self.due[plane.index()].pop_front();
                continue;
            }
            let stream = core.emptying_stream(block, false);
            // A block that stays gives nothing back.
            let is_partial = partial.is_some_and(|partial| partial.takes(core, block, stream));
            let is_in_place = self.may_reprogram(core) && core.may_rewrite(plane, block);
            let is_possible = if is_partial {
                core.may_rewrite(plane, block)
            } else {
                is_in_place || core.may_empty(plane, block, false)
            };
            if !is_possible {
                return None;
            }
            self.due[plane.index()].pop_front();
            self.began[plane.index()] = core.now;
            self.stats.blocks += 1;
            self.stats.pages += u64::from(valid);
            let is_urgent = now.later_s_than(due) >= self.grace_s(pe_cycles) / 2;
            self.stats.partial_blocks += u64::from(is_partial);
            self.stats.blocks_in_place += u64::from(is_in_place);
            let stays = is_partial || is_in_place;
            return Some(NextJob { block, cause: Cause::Refresh, stays, is_urgent });
        }
        None
    }

    /// A block that is still being filled takes no more programs, unless some are under way.
    fn close<P: Probe>(&mut self, core: &mut Core<P>, plane: PlaneId, block: BlockId) -> bool {
        if !core.ftl.leave_open_block(&core.geometry, plane, block, core.array.block(block).programmed) {
            return false;
        }
        core.close_early(block);
        true
    }

    /// Whether pages are refreshed in place now.
    fn may_reprogram<P: Probe>(&self, core: &Core<P>) -> bool {
        self.policy.in_place().is_some() && core.state.is_charged
    }

    /// A page of a block that is being refreshed in place has been read. `false`: it has to be written elsewhere.
    #[inline(never)]
    pub(crate) fn reprogram<P: Probe>(
        &mut self,
        core: &mut Core<P>,
        plane: PlaneId,
        read: &Transaction,
    ) -> bool {
        if !self.may_reprogram(core) || read.is_uncorrectable() {
            return false;
        }
        self.reprograms += 1;
        self.stats.pages_in_place += 1;
        let (to, owner, maps) = (To::InPlace(read.ppn), Owner::Job(plane), Maps::Nothing);
        let (lpn, stamp, cause, class) = (read.lpn, Stamp::default(), read.cause, Class::Background);
        let queued = core.program(Program { to, lpn, stamp, maps, owner, cause, class });
        queued.expect("it has its place");
        true
    }

    /// A page has been programmed once more with what it holds. The host may have written it elsewhere meanwhile; then
    /// this has been for nothing.
    #[cold]
    pub(crate) fn on_reprogrammed<P: Probe>(
        &mut self,
        core: &mut Core<P>,
        map: &mut impl Map<P>,
        done: &Transaction,
    ) {
        self.reprograms -= 1;
        let block = core.geometry.block_of(done.ppn);
        core.array.reprogram(block, u32::from(done.page), done.ppn, core.age_stamp_now());
        if core.ftl.map.get(done.lpn) == Some(done.ppn) {
            map.on_corrected(core, done.lpn);
        }
        core.unpin(block);
    }

    /// All pages of a block have been refreshed in place, or written elsewhere.
    pub(crate) fn end_in_place<P: Probe>(&mut self, core: &mut Core<P>, block: BlockId) {
        core.levels.set_block(block, 0);
        // All that is valid in it has been corrected.
        core.array.block_mut(block).copybacks = 0;
        self.on_block_refreshed(core, block, core.array.block(block).pe_cycles);
        self.age_from_now(core, block);
    }

    /// All that was taken of a block that is refreshed partially is in flash.
    pub(crate) fn end_partial<P: Probe>(&mut self, core: &mut Core<P>, block: BlockId) {
        self.on_block_refreshed(core, block, core.array.block(block).pe_cycles);
        if core.array.block(block).programmed > 0 {
            self.age_from_now(core, block);
        }
    }

    /// A block has been refreshed, and erased.
    #[inline(never)]
    pub(crate) fn on_erased<P: Probe>(&mut self, core: &mut Core<P>, block: BlockId) {
        self.stats.busy_ns += self.job_ns(core.now, core.geometry.plane_of(block));
        // Its erase has just added a cycle.
        self.on_block_refreshed(core, block, core.array.block(block).pe_cycles.saturating_sub(1));
    }

    /// How long the job of a plane has taken that has just ended.
    pub(crate) fn job_ns(&self, now: Time, plane: PlaneId) -> Span {
        now - self.began[plane.index()]
    }

    /// A refresh has been put before the host's writes.
    pub(crate) fn on_promoted(&mut self) {
        self.stats.promoted += 1;
    }

    /// How many times faster blocks come due than they have been refreshed so far: the mean time of a refreshed block, for all
    /// blocks of a plane that hold data, by the interval. `None` before the first one.
    pub(crate) fn load<P: Probe>(&self, core: &Core<P>) -> Option<f64> {
        let stats = &self.stats;
        if stats.blocks == 0 || stats.busy_ns == Span::ZERO {
            return None;
        }
        let mean_s = stats.busy_ns.seconds() / stats.blocks as f64;
        let rate = |plane: PlaneId| -> f64 {
            let blocks = &core.array.blocks[core.geometry.blocks_of(plane)];
            let with_data = blocks.iter().filter(|block| block.valid > 0);
            let interval_s = |pe| f64::from(self.interval_s(pe)) / core.physics.age_clock.scale();
            with_data.map(|block| mean_s / interval_s(block.pe_cycles)).sum()
        };
        (0..core.geometry.planes).map(PlaneId).map(rate).reduce(f64::max)
    }

    /// Blocks with valid data that should have been refreshed more than their grace ago.
    pub(crate) fn overdue<P: Probe>(&self, core: &Core<P>) -> impl Iterator<Item = BlockId> {
        let now = core.physics.age_clock.at(core.now);
        (0..core.geometry.blocks).map(BlockId).filter(move |&block| {
            let state = core.array.block(block);
            let wait = self.interval_s(state.pe_cycles).saturating_add(self.grace_s(state.pe_cycles));
            state.valid > 0 && state.programmed > 0 && self.since[block.index()].plus_s(wait) < now
        })
    }

    /// The data of a block has been refreshed; it has, or had, so many P/E cycles.
    pub(crate) fn on_block_refreshed<P: Probe>(
        &mut self,
        core: &mut Core<P>,
        block: BlockId,
        pe_cycles: u32,
    ) {
        let due = self.since[block.index()].plus_s(self.interval_s(pe_cycles));
        let overdue_s = core.physics.age_clock.at(core.now).later_s_than(due);
        let grace_s = self.grace_s(pe_cycles);
        let stats = &mut self.stats;
        stats.overdue_max_s = stats.overdue_max_s.max(overdue_s);
        stats.late_blocks += u64::from(overdue_s > grace_s);
    }
}
