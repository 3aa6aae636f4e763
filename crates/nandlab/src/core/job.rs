//! Background jobs of a plane: the types for the mechanisms that start a job or take part in one.

use crate::base::geometry::BlockId;
use crate::sched::{Cause, Class, Start};

/// A job that is about to begin.
#[derive(Clone, Copy, Debug)]
pub(crate) struct NextJob {
    pub(crate) block: BlockId,
    /// The cause of the job.
    pub(crate) cause: Cause,
    /// Whether the block stays: its pages are refreshed in place as far as possible. If not, the block is emptied and
    /// erased.
    pub(crate) stays: bool,
    /// Whether the die serves the job with the priority of host writes.
    pub(crate) is_urgent: bool,
    /// The job corrects data whose errors grow: none of its pages is copied back, and pacing does not slow the job down
    /// while it is urgent.
    pub(crate) corrects: bool,
    /// The read level at which the job's reads start.
    pub(crate) start: Start,
    /// The class of the job's operations.
    pub(crate) class: Class,
}

impl NextJob {
    /// A job that empties and erases a block, for its free pages or for wear.
    pub(crate) fn emptying(block: BlockId, cause: Cause, is_urgent: bool) -> Self {
        let (start, class) = (Start::Policy, Class::Background);
        Self { block, cause, stays: false, is_urgent, corrects: false, start, class }
    }
}

/// The result of refreshing a page in place.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Refreshed {
    /// The job has finished with the page.
    Now,
    /// The refresh of the page is under way; a wake will report its end.
    Later,
    /// The page has to be written to another block.
    Not,
}
