//! Background jobs of a lane: the types for the mechanisms that start a job or take part in one.

use crate::base::geometry::SuperblockId;
use crate::sched::{Cause, Class, Start};

/// A job that is about to begin.
#[derive(Clone, Copy, Debug)]
pub(crate) struct NextJob {
    pub(crate) superblock: SuperblockId,
    /// The cause of the job.
    pub(crate) cause: Cause,
    /// Whether the superblock stays: its units are refreshed in place as far as possible. If not, the superblock is
    /// emptied and erased.
    pub(crate) stays: bool,
    /// Whether the die serves the job with the priority of host writes.
    pub(crate) is_urgent: bool,
    /// The job corrects data whose errors grow: none of its units is copied back, and pacing does not slow the job down
    /// while it is urgent.
    pub(crate) corrects: bool,
    /// The read level at which the job's reads start.
    pub(crate) start: Start,
    /// The class of the job's operations.
    pub(crate) class: Class,
}

impl NextJob {
    /// A job that empties and erases a superblock, for its free units or for wear.
    pub(crate) fn emptying(superblock: SuperblockId, cause: Cause, is_urgent: bool) -> Self {
        let (start, class) = (Start::Policy, Class::Background);
        Self { superblock, cause, stays: false, is_urgent, corrects: false, start, class }
    }
}

/// The result of refreshing a unit in place.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Refreshed {
    /// The job has finished with the unit.
    Now,
    /// The refresh of the unit is under way; a wake will report its end.
    Later,
    /// The unit has to be written to another superblock.
    Not,
}
