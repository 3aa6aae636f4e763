//! Background jobs of a plane, as those see them who give one, or take part in one.

use crate::base::geometry::BlockId;
use crate::sched::Cause;

/// A job that is about to begin.
#[derive(Clone, Copy, Debug)]
pub(crate) struct NextJob {
    pub(crate) block: BlockId,
    /// Why.
    pub(crate) cause: Cause,
    /// The block stays: its pages are refreshed where they are, as far as they can be. Else it is emptied and erased.
    pub(crate) stays: bool,
    /// The die is to serve it as it does host writes.
    pub(crate) is_urgent: bool,
}

/// What has become of a page that is to be refreshed where it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Refreshed {
    /// Its part of the job is done.
    Now,
    /// That will be told.
    Later,
    /// It has to be written elsewhere.
    Not,
}
