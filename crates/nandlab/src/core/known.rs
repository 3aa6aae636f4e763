//! Known errors of pages: the controller corrects them before decoding, so decoding has to correct only the errors that
//! have occurred since.

use crate::base::geometry::Ppn;
use crate::base::huge::Huge;

/// By page, the RBER of its known errors, 0 to 1; empty if no mechanism keeps known errors.
#[derive(Debug)]
pub(crate) struct KnownErrors(Huge<f64>);

impl KnownErrors {
    /// No known errors in `pages` pages. With 0 pages no error ever becomes known.
    pub(crate) fn new(pages: u32) -> Self {
        Self(Huge::filled(0.0, pages as usize))
    }

    /// Prefetches the known errors of a page into the CPU's cache.
    #[inline(always)]
    pub(super) fn prefetch(&self, ppn: Ppn) {
        self.0.prefetch_if_kept(ppn.index());
    }

    /// The RBER of a page's known errors.
    #[inline(always)]
    pub(crate) fn of(&self, ppn: Ppn) -> f64 {
        self.0.get(ppn.index()).copied().unwrap_or(0.0)
    }

    /// Sets the RBER of a page's known errors; 0: no errors are known.
    pub(crate) fn set(&mut self, ppn: Ppn, rber: f64) {
        self.0[ppn.index()] = rber;
    }

    /// Forgets all known errors at power loss.
    pub(crate) fn clear(&mut self) {
        self.0.fill(0.0);
    }
}
