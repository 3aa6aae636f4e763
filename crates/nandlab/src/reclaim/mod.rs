//! Read reclaim: the data of a superblock that is read often is moved to another superblock before read disturb makes
//! it unreadable, and the superblock is erased.
//!
//! Every read of a unit disturbs the other units of its superblock. The erase of the superblock ends the disturbance. A
//! superblock is reclaimed when its read count reaches a limit (`reads`), or when the predicted RBER of a sampled read
//! reaches a share of what the last read level decodes (`rber`). The data is moved by a background job of the lane,
//! which the die serves with the priority of host writes: under a load of reads a job of the background class would
//! wait for ever. The job corrects the data, so none of its units is copied back.
//!
//! Read counts survive a power loss as a record of the firmware. The queue of superblocks to be reclaimed is in RAM:
//! after a power loss the next read of such a superblock, with `rber` the next sampled read, queues the superblock
//! again.
//!
//! The policy `reads` is the mitigation that Y. Cai, Y. Luo, S. Ghose and O. Mutlu describe as deployed in controllers:
//! "Read disturb errors in MLC NAND flash memory: characterization, mitigation, and recovery", DSN 2015. The policy
//! `rber` replaces the count by the errors that the count stands for; the model predicts them as a controller would by
//! reading a unit and counting its corrected bits.
//!
//! A flash read of any cause may take its superblock past the limit. The superblock then waits in the queue of its
//! lane, with its P/E cycles. When its turn comes it is dropped if it has been erased since, is being emptied or has no
//! valid units. A superblock that cannot be emptied when its turn comes (no room, or programs under way) also leaves
//! the queue; a later read that passes the limit queues it again. The job is urgent from its start.

pub(crate) mod notes;
pub(crate) mod spec;
mod stats;
#[cfg(test)]
mod tests;

use crate::base::state::state;
pub use stats::ReclaimStats;

use crate::base::geometry::{LaneId, SuperblockId, UnitId};
use crate::core::placement::EventKind;
use crate::core::{Core, Mechanism, NextJob, Offline, Wake};
use crate::flash::{AgeStamp, SuperblockState};
use crate::probe::Probe;
use crate::sched::{Cause, Start};
use spec::{ReclaimPolicySpec, ReclaimSpec};
use std::collections::VecDeque;

/// The superblocks to be reclaimed.
#[derive(Debug)]
pub(crate) struct Reclaim {
    policy: ReclaimPolicySpec,
    pub(crate) stats: ReclaimStats,
    /// By lane: superblocks that have passed the limit, each with its P/E cycles at that time, in the order in which
    /// they passed.
    queues: Box<[VecDeque<(SuperblockId, u32)>]>,
    /// By superblock, whether it is in a queue; empty without reclaim.
    is_queued: Box<[bool]>,
}

impl Reclaim {
    pub(crate) fn new<P: Probe>(spec: &ReclaimSpec, core: &Core<P>) -> Self {
        let superblocks = if spec.is_on() { core.geometry().superblocks } else { 0 };
        Self {
            policy: spec.policy,
            stats: ReclaimStats::default(),
            queues: vec![VecDeque::new(); core.geometry().lanes as usize].into(),
            is_queued: vec![false; superblocks as usize].into(),
        }
    }

    /// Queues the superblock of a unit that has been read, if the superblock has passed the limit.
    fn look_at<P: Probe>(&mut self, core: &mut Core<P>, unit: UnitId) {
        let superblock = core.geometry().superblock_of(unit);
        let state = core.superblock(superblock);
        let (reads, pe_cycles) = (state.reads, state.pe_cycles);
        if !matches!(state.state, SuperblockState::Open | SuperblockState::Full) {
            return;
        }
        let passes = match self.policy {
            ReclaimPolicySpec::None => false,
            ReclaimPolicySpec::Reads { limit } => reads >= limit,
            ReclaimPolicySpec::Rber { limit, every } => {
                reads.is_multiple_of(every) && self.predict(core, unit) >= limit
            }
        };
        let lane = core.geometry().lane_of(superblock);
        let queue = &mut self.queues[lane.index()];
        if passes && !std::mem::replace(&mut self.is_queued[superblock.index()], true) {
            queue.push_back((superblock, pe_cycles));
            core.wake(Wake::Due(lane));
        }
    }

    /// The predicted RBER of a unit as a share of the limit of the last read level; 0 for lost data, which nothing makes
    /// readable again.
    fn predict<P: Probe>(&mut self, core: &mut Core<P>, unit: UnitId) -> f64 {
        self.stats.samples += 1;
        if core.flash().stamp(unit).corrected == AgeStamp::LOST { 0.0 } else { core.share_of_limit(unit) }
    }
}

impl<P: Probe> Mechanism<P> for Reclaim {
    #[inline(always)]
    fn on_read(&mut self, core: &mut Core<P>, unit: UnitId, _level: u8) {
        if self.policy != ReclaimPolicySpec::None {
            self.look_at(core, unit);
        }
    }

    fn next_job(&mut self, core: &mut Core<P>, lane: LaneId) -> Option<NextJob> {
        while let Some((superblock, pe_cycles)) = self.queues[lane.index()].pop_front() {
            self.is_queued[superblock.index()] = false;
            let state = core.superblock(superblock);
            let (is_open, valid) = (state.state == SuperblockState::Open, state.valid);
            // Another job may empty the superblock now, or have erased it since. A superblock without valid units holds
            // nothing to be reclaimed.
            let is_victim = !is_open && state.state != SuperblockState::Full;
            if is_victim || state.pe_cycles != pe_cycles || valid == 0 {
                continue;
            }
            // If programs of the open superblock are under way, or the lane has no room, a later read queues the
            // superblock again.
            if is_open && !core.close_open(lane, superblock, EventKind::HandleModified)
                || !core.may_empty(lane, superblock, false)
            {
                continue;
            }
            self.stats.blocks += 1;
            self.stats.pages += u64::from(valid);
            let job = NextJob::emptying(superblock, Cause::Reclaim, true);
            return Some(NextJob { corrects: true, start: Start::Policy, ..job });
        }
        None
    }

    fn power_lost(&mut self, _: &mut Offline<'_, P>) {
        self.queues.iter_mut().for_each(VecDeque::clear);
        self.is_queued.fill(false);
    }
}

state! { Reclaim { stats, queues, is_queued } fixed { policy } }
