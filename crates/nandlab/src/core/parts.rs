//! Pages whose data is in two places: what reads need of both.

use crate::base::geometry::{Lpn, Ppn};
use crate::base::huge::Huge;

/// What a page is marked with while a part of its data is on its way to another page.
const PENDING: u64 = 1;

/// By page, where else a part of its data is; empty where no mechanism puts any elsewhere.
#[derive(Debug)]
pub struct Parts(Huge<u64>);

impl Parts {
    /// No page of so many has its data in two places; of 0 pages none ever has.
    pub(crate) fn new(pages: u32) -> Self {
        Self(Huge::filled(0, pages as usize))
    }

    #[inline(always)]
    fn mark(&self, page: Ppn) -> u64 {
        self.0.get(page.index()).copied().unwrap_or(0)
    }

    /// The LPN that has a part of the data of `page`, and how many bytes of it a read needs.
    pub fn of(&self, page: Ppn) -> Option<(Lpn, u32)> {
        let mark = self.mark(page);
        Some((Lpn(((mark >> 32) as u32).checked_sub(1)?), mark as u32))
    }

    /// Whether a part of the data of a page is elsewhere, or on its way there.
    #[inline]
    pub fn is_marked(&self, page: Ppn) -> bool {
        self.mark(page) != 0
    }

    /// Whether a part of the data of a page is on its way elsewhere.
    pub fn is_pending(&self, page: Ppn) -> bool {
        self.mark(page) == PENDING
    }

    /// A part of the data of a page is on its way elsewhere.
    pub fn set_pending(&mut self, page: Ppn) {
        debug_assert!(!self.is_marked(page), "a page would be in three places");
        self.0[page.index()] = PENDING;
    }

    /// So many bytes of the data of a page are with `lpn` from now on.
    pub fn set(&mut self, page: Ppn, lpn: Lpn, bytes: u32) {
        self.0[page.index()] = u64::from(lpn.0 + 1) << 32 | u64::from(bytes);
    }

    /// All of the data of a page is in one place again, or nowhere.
    pub fn clear(&mut self, page: Ppn) {
        self.0[page.index()] = 0;
    }

    /// Power is gone, and all that RAM held of it.
    pub(crate) fn forget(&mut self) {
        for mark in self.0.iter_mut().filter(|mark| **mark != 0) {
            *mark = 0;
        }
    }
}
