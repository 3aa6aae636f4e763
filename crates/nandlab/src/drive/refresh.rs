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
//! 2012 (FCR, the baseline of the partial refresh paper).

use super::Drive;
use super::background::JobCause;
use super::detection::Stage;
use crate::core::{Maps, Part, Program, To, Wake};
use crate::geometry::{BlockId, Geometry, PlaneId};
use crate::huge::Huge;
use crate::nand::{BlockState, Moment, Stamp};
use crate::probe::Probe;
use crate::sched::{Class, NEVER, Owner, Start, Transaction};
use crate::spec::{RefreshPolicySpec, Spec};
use crate::units::{SECOND, Span, Time};
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

/// A block that is refreshed next.
#[derive(Clone, Copy, Debug)]
pub(super) struct DueBlock {
    pub(super) block: BlockId,
    /// Whether it is emptied, or stays.
    pub(super) cause: JobCause,
    /// More than half of its grace is over.
    pub(super) is_urgent: bool,
}

/// When which blocks are due.
#[derive(Debug)]
pub(super) struct Refresh {
    policy: RefreshPolicySpec,
    /// P/E cycles up to which an interval in seconds holds.
    intervals: Box<[(u32, u32)]>,
    grace: f64,
    /// Programs in place that are queued or under way.
    reprograms: u32,
    /// By block, since when its data has been ageing; empty without refresh.
    since: Huge<Moment>,
    /// Alarms to come: moment, block, what for, and the `since` it was set for, which tells whether it still holds.
    alarms: BinaryHeap<Reverse<(Moment, u32, Alarm, Moment)>>,
    /// By plane, blocks that are due.
    due: Box<[VecDeque<BlockId>]>,
    /// When the job of a plane began.
    began: Box<[Time]>,
    /// The blocks that were there at the start have been looked at.
    has_begun: bool,
}

impl Refresh {
    pub(super) fn new(spec: &Spec, geometry: &Geometry) -> Self {
        let is_on = spec.refresh.policy != RefreshPolicySpec::None;
        let planes = if is_on { geometry.planes as usize } else { 0 };
        let seconds = |span: Span| u32::try_from(span / SECOND).unwrap_or(u32::MAX).max(1);
        Self {
            policy: spec.refresh.policy,
            intervals: spec.refresh.interval.iter().map(|&(pe, every)| (pe, seconds(every))).collect(),
            grace: spec.refresh.grace,
            reprograms: 0,
            since: Huge::zeroed(if is_on { geometry.blocks as usize } else { 0 }),
            alarms: BinaryHeap::new(),
            due: vec![VecDeque::new(); planes].into(),
            began: vec![Time::START; planes].into(),
            has_begun: false,
        }
    }

    #[inline(always)]
    pub(super) fn is_on(&self) -> bool {
        self.policy != RefreshPolicySpec::None
    }

    /// The interval of a block with so many P/E cycles, in seconds.
    pub(super) fn interval_s(&self, pe_cycles: u32) -> u32 {
        let line = self.intervals.iter().find(|&&(pe, _)| pe_cycles <= pe).or(self.intervals.last());
        line.map_or(u32::MAX, |&(_, every)| every)
    }

    /// The level at which its reads start.
    pub(super) fn start(&self) -> Start {
        if self.policy.reads_full_strength() { Start::Last } else { Start::First }
    }

    /// Whether a page is being reprogrammed in place.
    pub(super) fn is_reprogramming(&self) -> bool {
        self.reprograms > 0
    }

    /// Since when the data of a block has been ageing.
    pub(super) fn since(&self, block: BlockId) -> Moment {
        self.since[block.index()]
    }

    /// Sets that; its alarms do not follow.
    pub(super) fn set_since(&mut self, block: BlockId, since: Moment) {
        self.since[block.index()] = since;
    }

    /// Whether the blocks that were there at the start have been looked at.
    pub(super) fn has_begun(&self) -> bool {
        self.has_begun
    }

    /// Data of a block ages from then on, if not from before.
    pub(super) fn age_from(&mut self, block: BlockId, since: Moment) {
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

impl<P: Probe> Drive<P> {
    /// The blocks that hold data are looked at when the first event is due: preconditioning comes before it. After a power loss
    /// anew: when each was refreshed is the firmware's own record.
    pub(super) fn begin_refresh(&mut self) {
        if self.refresh.is_on() {
            self.refresh.alarms.clear();
            self.refresh.due.iter_mut().for_each(VecDeque::clear);
            self.refresh.has_begun = false;
            self.refresh.reprograms = 0;
            self.core.agenda.set(self.refresh_clock(), self.core.now);
        }
    }

    /// The data of a block ages from now.
    #[cold]
    pub(super) fn refresh_from_now(&mut self, block: BlockId) {
        self.refresh_from(block, self.core.age_clock.at(self.core.now));
        self.set_refresh_clock();
    }

    /// Data of `source` has been copied back to a block, and goes on ageing as it did there.
    #[cold]
    pub(super) fn refresh_as_due_as(&mut self, block: BlockId, source: BlockId) {
        let since = self.refresh.since[source.index()];
        if since < self.refresh.since[block.index()] {
            self.refresh_from(block, since);
            self.set_refresh_clock();
        }
    }

    /// The data of a block that is programmed first while power is off ages from now: [`Drive::begin_refresh`] sets the alarms.
    pub(super) fn refresh_from_power_loss(&mut self, block: BlockId) {
        if self.refresh.is_on() {
            self.refresh.since[block.index()] = self.core.age_clock.at(self.core.now);
        }
    }

    /// A copyback has ended while power is off.
    pub(super) fn refresh_as_due_from_power_loss(&mut self, block: BlockId, source: BlockId) {
        if self.refresh.is_on() {
            self.refresh.age_from(block, self.refresh.since[source.index()]);
        }
    }

    fn refresh_from(&mut self, block: BlockId, since: Moment) {
        let refresh = &mut self.refresh;
        refresh.since[block.index()] = since;
        let due = since.plus_s(refresh.interval_s(self.core.array.block(block).pe_cycles));
        refresh.alarms.push(Reverse((due, block.0, Alarm::Due, since)));
    }

    fn set_refresh_clock(&mut self) {
        let next = match self.refresh.alarms.peek() {
            _ if !self.refresh.has_begun => self.core.now,
            Some(&Reverse((moment, ..))) => self.core.age_clock.when(moment).max(self.core.now),
            None => NEVER,
        };
        self.core.agenda.set(self.refresh_clock(), next);
    }

    /// The refresh clock has struck.
    pub(super) fn on_refresh(&mut self) {
        let _inside = self.core.inside.enter(Part::Refresh);
        if !std::mem::replace(&mut self.refresh.has_begun, true) {
            for block in (0..self.core.geometry.blocks).map(BlockId) {
                if self.core.array.block(block).programmed > 0 {
                    let since = self.refresh.since[block.index()];
                    // What power loss has interrupted goes on counting.
                    let since =
                        if since == Moment::default() { self.core.initial_ages.of(block) } else { since };
                    self.refresh_from(block, since);
                }
            }
        }
        let now = self.core.age_clock.at(self.core.now);
        while let Some(&Reverse((moment, block, alarm, since))) = self.refresh.alarms.peek()
            && moment <= now
        {
            self.refresh.alarms.pop();
            let block = BlockId(block);
            let state = self.core.array.block(block);
            if self.refresh.since[block.index()] != since || state.programmed == 0 {
                continue;
            }
            let plane = self.core.geometry.plane_of(block);
            match alarm {
                Alarm::Due => {
                    let hurry = moment.plus_s(self.refresh.grace_s(state.pe_cycles) / 2);
                    self.refresh.alarms.push(Reverse((hurry, block.0, Alarm::Hurry, since)));
                    self.refresh.due[plane.index()].push_back(block);
                    self.core.wake(Wake::Due(plane));
                }
                // What holds nothing has no hurry.
                Alarm::Hurry if state.valid == 0 => {}
                Alarm::Hurry => {
                    // Until it is refreshed: there may be no room now, or programs under way in it.
                    let again = now.plus_s(self.refresh.again_s(state.pe_cycles));
                    // At its end the clock stops.
                    if again > now {
                        self.refresh.alarms.push(Reverse((again, block.0, Alarm::Hurry, since)));
                    }
                    self.hurry(plane, block);
                }
            }
        }
        self.set_refresh_clock();
    }

    /// The grace of a due block is running out.
    fn hurry(&mut self, plane: PlaneId, block: BlockId) {
        if self.has_data_in_vsm(block) {
            self.empty_vsm();
        }
        let job = &mut self.jobs[plane.index()];
        let is_next = job.victim == Some(block) || self.refresh.due[plane.index()].front() == Some(&block);
        if job.is_running() && is_next && !job.is_urgent {
            job.is_urgent = true;
            self.core.device.promote(self.core.geometry.die_of(plane));
            self.core.stats.refresh.promoted += 1;
        } else if !job.is_running() && !self.is_short(plane) {
            self.core.wake(Wake::Due(plane));
        }
    }

    /// The block of a plane without a job that is refreshed next, if one is due and there is room.
    pub(super) fn next_refresh(&mut self, plane: PlaneId) -> Option<DueBlock> {
        if !self.refresh.is_on() {
            return None;
        }
        let _inside = self.core.inside.enter(Part::Refresh);
        let now = self.core.age_clock.at(self.core.now);
        while let Some(&block) = self.refresh.due[plane.index()].front() {
            let state = self.core.array.block(block);
            let (pe_cycles, valid) = (state.pe_cycles, u32::from(state.valid));
            let since = self.refresh.since[block.index()];
            let due = since.plus_s(self.refresh.interval_s(pe_cycles));
            // It may have been collected meanwhile.
            if due > now || !matches!(state.state, BlockState::Open | BlockState::Full) {
                self.refresh.due[plane.index()].pop_front();
                continue;
            }
            // Also one that has lost its last valid page: what it might take yet would never be due.
            if state.state == BlockState::Open && !self.close_for_refresh(plane, block) {
                return None;
            }
            if valid == 0 {
                self.refresh.due[plane.index()].pop_front();
                continue;
            }
            let stream = self.core.ftl.emptying_stream(&self.core.geometry, &self.core.array, block, false);
            if valid > self.core.ftl.stream_room(&self.core.geometry, plane, stream) {
                return None;
            }
            self.refresh.due[plane.index()].pop_front();
            self.refresh.began[plane.index()] = self.core.now;
            self.core.stats.refresh.blocks += 1;
            self.core.stats.refresh.pages += u64::from(valid);
            let is_urgent = now.later_s_than(due) >= self.refresh.grace_s(pe_cycles) / 2;
            let is_partial = self.is_refreshed_partially(block, stream);
            self.core.stats.refresh.partial_blocks += u64::from(is_partial);
            let is_in_place = self.may_reprogram();
            self.core.stats.refresh.blocks_in_place += u64::from(is_in_place);
            let cause = if is_partial || is_in_place { JobCause::StayingRefresh } else { JobCause::Refresh };
            return Some(DueBlock { block, cause, is_urgent });
        }
        None
    }

    /// A block that is still being filled takes no more programs, unless some are under way.
    fn close_for_refresh(&mut self, plane: PlaneId, block: BlockId) -> bool {
        if !self.core.ftl.leave_open_block(
            &self.core.geometry,
            plane,
            block,
            self.core.array.block(block).programmed,
        ) {
            return false;
        }
        self.close_early(block);
        true
    }

    /// Whether pages are refreshed in place now.
    fn may_reprogram(&self) -> bool {
        self.refresh.policy.in_place().is_some() && self.power.stage == Stage::Charged
    }

    /// A page of a block that is being refreshed in place has been read. `false`: it has to be written elsewhere.
    pub(super) fn refresh_page_in_place(&mut self, plane: PlaneId, read: &Transaction) -> bool {
        if !self.may_reprogram() || read.is_uncorrectable() {
            return false;
        }
        self.refresh.reprograms += 1;
        self.core.stats.refresh.pages_in_place += 1;
        let (to, owner, maps) = (To::InPlace(read.ppn), Owner::Job(plane), Maps::Nothing);
        let (lpn, stamp, cause, class) = (read.lpn, Stamp::default(), read.cause, Class::Background);
        let queued = self.core.program(Program { to, lpn, stamp, maps, owner, cause, class });
        queued.expect("it has its place");
        true
    }

    /// A page has been programmed once more with what it holds. The host may have written it elsewhere meanwhile; then
    /// this has been for nothing.
    #[cold]
    pub(super) fn on_reprogrammed(&mut self, plane: PlaneId, done: &Transaction) {
        self.refresh.reprograms -= 1;
        let block = self.core.geometry.block_of(done.ppn);
        self.core.array.reprogram(block, u32::from(done.page), done.ppn, self.core.moment());
        if self.core.ftl.map.get(done.lpn) == Some(done.ppn) {
            self.core.on_corrected(done.lpn);
        }
        self.core.let_go(block);
        self.on_copied(plane);
    }

    /// All pages of a block have been refreshed in place, or written elsewhere.
    pub(super) fn end_refresh_in_place(&mut self, block: BlockId) {
        self.core.levels.set_block(block, 0);
        // All that is valid in it has been corrected.
        self.core.array.block_mut(block).copybacks = 0;
        self.on_block_refreshed(block, self.core.array.block(block).pe_cycles);
        self.refresh_from_now(block);
    }

    /// A block with valid data that should have been refreshed more than its grace ago, for tests.
    #[doc(hidden)]
    pub fn overdue(&self) -> Option<BlockId> {
        let now = self.core.age_clock.at(self.core.now);
        (0..self.core.geometry.blocks).map(BlockId).find(|&block| {
            let state = self.core.array.block(block);
            let refresh = &self.refresh;
            let wait = refresh.interval_s(state.pe_cycles).saturating_add(refresh.grace_s(state.pe_cycles));
            state.valid > 0 && state.programmed > 0 && refresh.since[block.index()].plus_s(wait) < now
        })
    }

    /// A block has been refreshed, and erased.
    pub(super) fn on_refreshed(&mut self, block: BlockId) {
        self.core.stats.refresh.busy_ns += self.refresh_job_ns(self.core.geometry.plane_of(block));
        // Its erase has just added a cycle.
        self.on_block_refreshed(block, self.core.array.block(block).pe_cycles.saturating_sub(1));
    }

    /// How long the job of a plane has taken that has just ended.
    pub(super) fn refresh_job_ns(&self, plane: PlaneId) -> Span {
        self.core.now - self.refresh.began[plane.index()]
    }

    /// The data of a block has been refreshed; it has, or had, so many P/E cycles.
    pub(super) fn on_block_refreshed(&mut self, block: BlockId, pe_cycles: u32) {
        let due = self.refresh.since[block.index()].plus_s(self.refresh.interval_s(pe_cycles));
        let overdue_s = self.core.age_clock.at(self.core.now).later_s_than(due);
        let grace_s = self.refresh.grace_s(pe_cycles);
        let stats = &mut self.core.stats.refresh;
        stats.overdue_max_s = stats.overdue_max_s.max(overdue_s);
        stats.late_blocks += u64::from(overdue_s > grace_s);
    }
}
