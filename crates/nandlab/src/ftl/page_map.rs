//! `ftl.map = "page"`: the whole map in RAM, four bytes per logical page.

use crate::base::geometry::{Lpn, Ppn};
use crate::base::huge::Huge;

/// The map from LPNs to PPNs. An entry is PPN + 1, and 0 for an unmapped LPN, so that entries that are never written
/// take no memory.
#[derive(Clone, Debug)]
pub struct PageMap {
    entries: Huge<u32>,
    mapped: u32,
}

impl PageMap {
    /// A map of `logical_pages` pages, none of them mapped.
    pub fn new(logical_pages: u32) -> Self {
        Self { entries: Huge::zeroed(logical_pages as usize), mapped: 0 }
    }

    /// The page of `lpn`; `None` if `lpn` is unmapped.
    #[inline(always)]
    pub fn get(&self, lpn: Lpn) -> Option<Ppn> {
        self.entries[lpn.index()].checked_sub(1).map(Ppn)
    }

    /// Prefetches the entry of `lpn` into the CPU's cache.
    #[inline(always)]
    pub fn prefetch(&self, lpn: Lpn) {
        self.entries.prefetch(lpn.index());
    }

    /// Maps `lpn` to `ppn`. Returns the page to which `lpn` was mapped before.
    #[inline(always)]
    pub fn set(&mut self, lpn: Lpn, ppn: Ppn) -> Option<Ppn> {
        let entry = &mut self.entries[lpn.index()];
        let old = std::mem::replace(entry, ppn.0 + 1);
        self.mapped += u32::from(old == 0);
        old.checked_sub(1).map(Ppn)
    }

    /// Unmaps `lpn`. Returns the page to which `lpn` was mapped before.
    #[inline(always)]
    pub fn clear(&mut self, lpn: Lpn) -> Option<Ppn> {
        let old = std::mem::replace(&mut self.entries[lpn.index()], 0);
        self.mapped -= u32::from(old != 0);
        old.checked_sub(1).map(Ppn)
    }

    /// The number of mapped logical pages.
    pub fn mapped(&self) -> u32 {
        self.mapped
    }

    /// The number of logical pages.
    pub fn len(&self) -> u32 {
        self.entries.len() as u32
    }

    /// Whether the map has no logical pages.
    pub fn is_empty(&self) -> bool {
        self.entries.is_empty()
    }
}
