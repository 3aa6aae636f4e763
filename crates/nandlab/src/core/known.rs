//! Errors that are known from before: they are turned back before decoding, so a read has only the errors that came since.

use crate::base::geometry::Ppn;
use crate::base::huge::Huge;

/// By page, the part of its RBER that is known, 0 to 1; empty where no mechanism knows any.
#[derive(Debug)]
pub(crate) struct KnownErrors(Huge<f64>);

impl KnownErrors {
    /// Nothing known of so many pages; of 0 pages nothing ever is.
    pub(crate) fn new(pages: u32) -> Self {
        Self(Huge::filled(0.0, pages as usize))
    }

    /// The known part of a page's RBER.
    #[inline(always)]
    pub(crate) fn of(&self, ppn: Ppn) -> f64 {
        self.0.get(ppn.index()).copied().unwrap_or(0.0)
    }

    /// Sets it; 0 forgets it.
    pub(crate) fn set(&mut self, ppn: Ppn, rber: f64) {
        self.0[ppn.index()] = rber;
    }

    /// Power is gone, and all that was known with it.
    pub(crate) fn clear(&mut self) {
        self.0.fill(0.0);
    }
}
