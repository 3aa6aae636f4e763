//! `ftl.map = "page"`: the whole map in RAM, four bytes a logical page.

use crate::base::geometry::{Lpn, Ppn};
use crate::base::huge::Huge;

/// The whole map. An entry holds PPN + 1, so that an untouched one is unmapped and takes no memory.
#[derive(Debug)]
pub struct PageMap {
    entries: Huge<u32>,
    mapped: u32,
}

impl PageMap {
    /// A map of `logical_pages` pages, none of them mapped.
    pub fn new(logical_pages: u32) -> Self {
        Self { entries: Huge::zeroed(logical_pages as usize), mapped: 0 }
    }

    /// Where `lpn` is.
    #[inline(always)]
    pub fn get(&self, lpn: Lpn) -> Option<Ppn> {
        self.entries[lpn.index()].checked_sub(1).map(Ppn)
    }

    /// Asks the cache for the entry of `lpn`.
    #[inline(always)]
    pub fn prefetch(&self, lpn: Lpn) {
        self.entries.prefetch(lpn.index());
    }

    /// Moves `lpn` to `ppn`; returns where it was.
    #[inline(always)]
    pub fn set(&mut self, lpn: Lpn, ppn: Ppn) -> Option<Ppn> {
        let entry = &mut self.entries[lpn.index()];
        let old = std::mem::replace(entry, ppn.0 + 1);
        self.mapped += u32::from(old == 0);
        old.checked_sub(1).map(Ppn)
    }

    /// Unmaps `lpn`; returns where it was.
    #[inline(always)]
    pub fn clear(&mut self, lpn: Lpn) -> Option<Ppn> {
        let old = std::mem::replace(&mut self.entries[lpn.index()], 0);
        self.mapped -= u32::from(old != 0);
        old.checked_sub(1).map(Ppn)
    }

    /// How many logical pages are mapped.
    pub fn mapped(&self) -> u32 {
        self.mapped
    }

    /// How many logical pages there are.
    pub fn len(&self) -> u32 {
        self.entries.len() as u32
    }

    /// Whether there are no logical pages.
    pub fn is_empty(&self) -> bool {
        self.entries.is_empty()
    }
}
