//! Pages with part of their data in another page: a read needs both pages.

use crate::base::geometry::{Lpn, Ppn};
use crate::base::huge::Huge;

/// The mark of a page while part of its data is on its way to another page, and not yet there.
const PENDING: u64 = 1;

/// What is kept of a page. A read needs all of it, so the fields are in one line of the CPU's cache.
#[derive(Clone, Copy, Debug, Default)]
#[repr(align(16))]
struct Part {
    /// 0, [`PENDING`], or the LPN that has part of the page's data, plus one, and the number of bytes.
    mark: u64,
    /// The RBER of the known errors: with the part the controller corrects them before decoding.
    known: f64,
}

/// By page, the other page that has part of its data. Empty if no mechanism moves parts of pages.
#[derive(Debug)]
pub struct Parts(Huge<Part>);

impl Parts {
    /// No page has part of its data in another page. With `pages` = 0 no page ever will.
    pub(crate) fn new(pages: u32) -> Self {
        Self(Huge::filled(Part::default(), pages as usize))
    }

    /// Prefetches what is kept of a page into the CPU's cache.
    #[inline(always)]
    pub(crate) fn prefetch(&self, page: Ppn) {
        self.0.prefetch_if_kept(page.index());
    }

    #[inline(always)]
    fn mark(&self, page: Ppn) -> u64 {
        self.0.get(page.index()).map_or(0, |part| part.mark)
    }

    /// The RBER of the known errors of a page; 0 for a page without a part in another page.
    #[inline(always)]
    pub(super) fn known(&self, page: Ppn) -> f64 {
        self.0[page.index()].known
    }

    /// The LPN that has part of the data of `page`, and the number of its bytes that a read of `page` needs.
    pub fn of(&self, page: Ppn) -> Option<(Lpn, u32)> {
        let mark = self.mark(page);
        Some((Lpn(((mark >> 32) as u32).checked_sub(1)?), mark as u32))
    }

    /// Whether part of the data of a page is in another page, or on its way there.
    #[inline]
    pub fn is_marked(&self, page: Ppn) -> bool {
        self.mark(page) != 0
    }

    /// Whether part of the data of a page is on its way to another page.
    pub fn is_pending(&self, page: Ppn) -> bool {
        self.mark(page) == PENDING
    }

    /// Notes that part of the data of a page is on its way to another page.
    pub fn set_pending(&mut self, page: Ppn) {
        debug_assert!(!self.is_marked(page), "the page has a mark already");
        self.0[page.index()].mark = PENDING;
    }

    /// Notes that `bytes` bytes of the data of a page are in the page of `lpn` from now on. `known`: the RBER that the page
    /// had when these bytes were corrected.
    pub fn set(&mut self, page: Ppn, lpn: Lpn, bytes: u32, known: f64) {
        let mark = u64::from(lpn.0 + 1) << 32 | u64::from(bytes);
        self.0[page.index()] = Part { mark, known };
    }

    /// Notes that the data of a page is in one page again, or is invalid.
    pub fn clear(&mut self, page: Ppn) {
        self.0[page.index()] = Part::default();
    }

    /// Clears all marks at power loss, because they are in RAM only.
    pub(crate) fn forget(&mut self) {
        for part in self.0.iter_mut().filter(|part| part.mark != 0) {
            *part = Part::default();
        }
    }
}
