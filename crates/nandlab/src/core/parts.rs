//! Pages whose data is in two places: the parts that a read needs.

use crate::base::geometry::{Lpn, Ppn};
use crate::base::huge::Huge;

/// The mark of a page while part of its data is on its way to another page.
const PENDING: u64 = 1;

/// By page, the other page with part of its data; empty where no mechanism moves parts of pages.
#[derive(Debug)]
pub struct Parts(Huge<u64>);

impl Parts {
    /// No page has its data in two places; with `pages` = 0 none ever will.
    pub(crate) fn new(pages: u32) -> Self {
        Self(Huge::filled(0, pages as usize))
    }

    #[inline(always)]
    fn mark(&self, page: Ppn) -> u64 {
        self.0.get(page.index()).copied().unwrap_or(0)
    }

    /// The LPN with part of the data of `page`, and the bytes that a read needs of that LPN.
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
        debug_assert!(!self.is_marked(page), "a page would be in three places");
        self.0[page.index()] = PENDING;
    }

    /// Notes that `bytes` bytes of the data of a page are in the page of `lpn` from now on.
    pub fn set(&mut self, page: Ppn, lpn: Lpn, bytes: u32) {
        self.0[page.index()] = u64::from(lpn.0 + 1) << 32 | u64::from(bytes);
    }

    /// Notes that the data of a page is in one place again, or invalid.
    pub fn clear(&mut self, page: Ppn) {
        self.0[page.index()] = 0;
    }

    /// Forgets all marks, which are in RAM, at power loss.
    pub(crate) fn forget(&mut self) {
        for mark in self.0.iter_mut().filter(|mark| **mark != 0) {
            *mark = 0;
        }
    }
}
