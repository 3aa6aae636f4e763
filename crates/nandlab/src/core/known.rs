//! Known errors of pages: the controller corrects them before decoding, so a read has only the errors that came since.

use crate::base::geometry::Ppn;
use crate::base::huge::Huge;

/// By page, the part of its RBER that is known, 0 to 1; empty where no mechanism knows errors.
#[derive(Debug)]
pub(crate) struct KnownErrors(Huge<f64>);

impl KnownErrors {
    /// No known errors, in `pages` pages; with 0 pages there will never be any.
    pub(crate) fn new(pages: u32) -> Self {
        Self(Huge::filled(0.0, pages as usize))
    }

    /// The known part of a page's RBER.
    #[inline(always)]
    pub(crate) fn of(&self, ppn: Ppn) -> f64 {
        self.0.get(ppn.index()).copied().unwrap_or(0.0)
    }

    /// Sets the known part of a page's RBER; 0: no errors are known.
    pub(crate) fn set(&mut self, ppn: Ppn, rber: f64) {
        self.0[ppn.index()] = rber;
    }

    /// Forgets all known errors at power loss.
    pub(crate) fn clear(&mut self) {
        self.0.fill(0.0);
    }
}
