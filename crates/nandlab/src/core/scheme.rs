//! What a drive asks of its schemes.

use super::{Core, NextJob};
use crate::base::geometry::{LaneId, UnitId};
use crate::probe::Probe;

/// A mechanism that takes part in background jobs. By default a method does nothing.
pub(crate) trait Scheme<P: Probe> {
    /// The page of a unit has been sensed at a read level, and the read has been counted for its superblock. The read
    /// may fail to decode and be tried again.
    #[inline(always)]
    fn on_read(&mut self, _core: &mut Core<P>, _unit: UnitId, _level: u8) {}

    /// The next job of a lane that has no job; `None` if the scheme has to rewrite no superblock or the lane has no
    /// room for the job.
    #[inline(always)]
    fn next_job(&mut self, _core: &mut Core<P>, _lane: LaneId) -> Option<NextJob> {
        None
    }

    /// Power is lost: drops all state kept in RAM.
    fn forget(&mut self, _core: &mut Core<P>) {}
}
