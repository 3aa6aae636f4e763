//! Read reclaim: the data of a block that is read often is moved to another block before read disturb makes it
//! unreadable, and the block is erased.
//!
//! Every read of a page disturbs the other pages of its block. The erase of the block ends the disturbance. A block is
//! reclaimed when its read count reaches a limit (`reads`), or when the predicted RBER of a sampled read reaches a
//! share of what the last read level decodes (`rber`). The data is moved by a background job of the plane, which the
//! die serves with the priority of host writes: under a load of reads a job of the background class would wait for
//! ever. The job corrects the data, so none of its pages is copied back.
//!
//! Read counts survive a power loss as a record of the firmware. The queue of blocks to be reclaimed is in RAM: after a
//! power loss the next read of such a block, with `rber` the next sampled read, queues the block again.
//!
//! The policy `reads` is the mitigation that Y. Cai, Y. Luo, S. Ghose and O. Mutlu describe as deployed in controllers:
//! "Read disturb errors in MLC NAND flash memory: characterization, mitigation, and recovery", DSN 2015. The policy
//! `rber` replaces the count by the errors that the count stands for; the model predicts them as a controller would by
//! reading a page and counting its corrected bits.

pub(crate) mod notes;
pub(crate) mod spec;
mod stats;
#[cfg(test)]
mod tests;

pub use stats::ReclaimStats;

use crate::base::geometry::{BlockId, Geometry, PlaneId, Ppn};
use crate::core::{Core, NextJob, Scheme, Wake};
use crate::flash::{AgeStamp, BlockState};
use crate::probe::Probe;
use crate::sched::{Cause, Start};
use spec::{ReclaimPolicySpec, ReclaimSpec};
use std::collections::VecDeque;

/// The blocks to be reclaimed.
#[derive(Debug)]
pub(crate) struct Reclaim {
    policy: ReclaimPolicySpec,
    pub(crate) stats: ReclaimStats,
    /// By plane: blocks that have passed the limit, each with its P/E cycles at that time, in the order in which they
    /// passed.
    queues: Box<[VecDeque<(BlockId, u32)>]>,
    /// By block, whether it is in a queue; empty without reclaim.
    is_queued: Box<[bool]>,
}

impl Reclaim {
    pub(crate) fn new(spec: &ReclaimSpec, geometry: &Geometry) -> Self {
        let blocks = if spec.is_on() { geometry.blocks } else { 0 };
        Self {
            policy: spec.policy,
            stats: ReclaimStats::default(),
            queues: vec![VecDeque::new(); geometry.planes as usize].into(),
            is_queued: vec![false; blocks as usize].into(),
        }
    }

    /// Queues the block of a page that has been read, if the block has passed the limit.
    fn look_at<P: Probe>(&mut self, core: &mut Core<P>, page: Ppn) {
        let block = core.geometry.block_of(page);
        let state = core.array.block(block);
        let (reads, pe_cycles) = (state.reads, state.pe_cycles);
        if !matches!(state.state, BlockState::Open | BlockState::Full) {
            return;
        }
        let passes = match self.policy {
            ReclaimPolicySpec::None => false,
            ReclaimPolicySpec::Reads { limit } => reads >= limit,
            ReclaimPolicySpec::Rber { limit, every } => {
                reads.is_multiple_of(every) && self.predict(core, page) >= limit * core.physics.ecc.limit()
            }
        };
        let plane = core.geometry.plane_of(block);
        let queue = &mut self.queues[plane.index()];
        if passes && !std::mem::replace(&mut self.is_queued[block.index()], true) {
            queue.push_back((block, pe_cycles));
            core.wake(Wake::Due(plane));
        }
    }

    /// The predicted RBER of a page; 0 for lost data, which nothing makes readable again.
    fn predict<P: Probe>(&mut self, core: &mut Core<P>, page: Ppn) -> f64 {
        self.stats.samples += 1;
        if core.array.stamp(page).corrected == AgeStamp::LOST { 0.0 } else { core.rber_of(page) }
    }
}

impl<P: Probe> Scheme<P> for Reclaim {
    #[inline(always)]
    fn on_read(&mut self, core: &mut Core<P>, page: Ppn, _level: u8) {
        if self.policy != ReclaimPolicySpec::None {
            self.look_at(core, page);
        }
    }

    fn next_job(&mut self, core: &mut Core<P>, plane: PlaneId) -> Option<NextJob> {
        while let Some((block, pe_cycles)) = self.queues[plane.index()].pop_front() {
            self.is_queued[block.index()] = false;
            let state = core.array.block(block);
            let (is_open, valid) = (state.state == BlockState::Open, state.valid);
            // Another job may empty the block now, or have erased it since. A block without valid pages holds nothing to
            // be reclaimed.
            let is_victim = !is_open && state.state != BlockState::Full;
            if is_victim || state.pe_cycles != pe_cycles || valid == 0 {
                continue;
            }
            // If programs of the open block are under way, or the plane has no room, a later read queues the block
            // again.
            if is_open && !core.close_open(plane, block) || !core.may_empty(plane, block, false) {
                continue;
            }
            self.stats.blocks += 1;
            self.stats.pages += u64::from(valid);
            let job = NextJob::emptying(block, Cause::Reclaim, true);
            return Some(NextJob { corrects: true, start: Start::Policy, ..job });
        }
        None
    }

    fn forget(&mut self, _: &mut Core<P>) {
        self.queues.iter_mut().for_each(VecDeque::clear);
        self.is_queued.fill(false);
    }
}
