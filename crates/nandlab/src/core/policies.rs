//! The decisions of policies that the core passes on, and what follows when a policy fails.

use super::{Core, Wake};
use crate::base::geometry::{LaneId, SuperblockId};
use crate::base::policy::{PolicyFault, PolicySlot};
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

    /// A policy has failed, or has made a decision that cannot be carried out: the drive fails when it serves the wakes.
    #[cold]
    pub(crate) fn fail_policy(&mut self, fault: PolicyFault) {
        self.wake(Wake::PolicyFailed(Box::new(fault)));
    }
}
