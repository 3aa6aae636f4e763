//! Background jobs of a plane, as the mechanisms see them that start a job or take part in one.

use crate::base::geometry::BlockId;
use crate::sched::{Cause, Start};

/// A job that is about to begin.
#[derive(Clone, Copy, Debug)]
pub(crate) struct NextJob {
    pub(crate) block: BlockId,
    /// The cause of the job.
    pub(crate) cause: Cause,
    /// The block stays, and its pages are refreshed in it as far as possible; else the block is emptied and erased.
    pub(crate) stays: bool,
    /// The die serves the job with the priority of host writes.
    pub(crate) is_urgent: bool,
    /// The job corrects data whose errors grow: none of its pages is copied back, and pacing does not slow the job down
    /// while it is urgent.
    pub(crate) corrects: bool,
    /// The read level at which the job's reads start.
    pub(crate) start: Start,
}

impl NextJob {
    /// A job that empties and erases a block, for its free pages or for wear.
    pub(crate) fn emptying(block: BlockId, cause: Cause, is_urgent: bool) -> Self {
        Self { block, cause, stays: false, is_urgent, corrects: false, start: Start::Policy }
    }
}

/// The result for a page that is to be refreshed in its block.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Refreshed {
    /// The job is done with the page.
    Now,
    /// The end of the page's refresh will be told later.
    Later,
    /// The page has to be written to another block.
    Not,
}
