//! The decisions of policies that the core passes on, and what follows when a policy fails.

use super::{Core, Wake};
use crate::base::geometry::{LaneId, Lpn, SuperblockId, UnitId};
use crate::base::policy::{PolicyError, PolicyFault, PolicySlot};
use crate::flash::{Hints, ReadView, StartPolicy};
use crate::ftl::VictimPolicy;
use crate::probe::Probe;

impl<P: Probe> Core<P> {
    /// The superblock that the victim policy picks in a lane. `None` if the lane has no garbage, the policy picks none,
    /// or it fails; then the drive fails.
    #[inline]
    pub(crate) fn pick_victim(&mut self, lane: LaneId) -> Option<SuperblockId> {
        match self.ftl.pick_victim(&self.array, lane, self.now) {
            Ok(victim) => victim,
            Err(error) => {
                self.fail_policy(PolicyFault { slot: PolicySlot::Victim, lane: Some(lane), error });
                None
            }
        }
    }

    /// The superblock that another policy, that of `slot`, picks in a lane. `None` if it picks none, or fails; then the
    /// drive fails.
    pub(crate) fn pick_by(
        &mut self,
        policy: &mut dyn VictimPolicy,
        slot: PolicySlot,
        lane: LaneId,
    ) -> Option<SuperblockId> {
        match self.ftl.candidates(&self.array, lane, self.now).picked_by(policy) {
            Ok(within) => within.map(|within| SuperblockId(self.geometry.first_superblock(lane).0 + within)),
            Err(error) => {
                self.fail_policy(PolicyFault { slot, lane: Some(lane), error });
                None
            }
        }
    }

    /// The full superblock of a lane with the fewest valid units, which the policy `greedy` picks.
    pub(crate) fn least_valid(&self, lane: LaneId) -> Option<SuperblockId> {
        self.ftl.least_valid(&self.array, lane, self.now)
    }

    /// Whether at least `every` erases of superblocks of a lane have followed the last call that returned `true`.
    pub(crate) fn were_erased(&mut self, lane: LaneId, every: u32) -> bool {
        let erases = &mut self.ftl.lanes[lane.index()].erases_unchecked;
        let is_due = *erases >= every;
        if is_due {
            *erases = 0;
        }
        is_due
    }

    /// The level at which the policy from outside starts the read of `unit`; 1 if it fails, or names a level that does
    /// not exist. Then the drive fails, and the policy is not asked again.
    #[cold]
    pub(super) fn start_from_outside(&mut self, unit: UnitId, lpn: Lpn, hints: Hints) -> u8 {
        let (superblock, index) = self.geometry.split(unit);
        let levels = self.physics.ecc.levels();
        let kind = self.array.shape(superblock).kind(index);
        let reads = self.array.superblock(superblock).reads;
        let read = ReadView { now: self.now, lpn, superblock, index, kind, reads, levels, hints };
        let answer = match self.levels.policy_mut() {
            Some(policy) => policy.level(&read),
            None => Ok(1),
        };
        let error = match answer {
            Ok(level) if (1..=levels).contains(&level) => return level,
            Ok(level) => PolicyError::new(format!(
                "it started a read at level {level}, which does not exist: the levels are 1 to {levels}"
            )),
            Err(error) => error,
        };
        self.levels.stop_asking();
        self.fail_policy(PolicyFault { slot: PolicySlot::Start, lane: None, error });
        1
    }

    /// From now on a policy from outside chooses the levels at which reads start.
    pub(crate) fn start_reads_by(&mut self, policy: Box<dyn StartPolicy>) {
        self.levels.start_by(policy);
    }

    /// A policy has failed, or has made a decision that cannot be carried out: the drive fails when it serves the wakes.
    #[cold]
    pub(crate) fn fail_policy(&mut self, fault: PolicyFault) {
        self.wake(Wake::PolicyFailed(Box::new(fault)));
    }
}
