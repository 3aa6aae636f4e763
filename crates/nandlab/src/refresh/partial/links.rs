//! The secondary mapping table: the combination pages with the susceptible bits of partially refreshed pages (Section
//! 3.3 of the partial refresh paper).
//!
//! Combination pages have LPNs of their own, behind the LPNs of the host and of translation pages. The map has the PPN
//! of each combination page (the APN of the paper), so all links to a combination page remain valid when GC moves the
//! page. [`Parts`](crate::core::Parts) has the LPN of the combination page of each base page. The entry of the base
//! page has the offset in the combination page.

use super::SusceptibleBits;
use crate::base::geometry::{Lpn, Ppn};
use std::collections::BTreeMap;
use std::sync::Arc;

/// Bits of a link in the controller's RAM: 32 for the APN, 20 for the offset (Section 3.6 of the partial refresh
/// paper).
pub const LINK_BITS: u64 = 52;

/// A combination page.
#[derive(Debug, Default)]
struct Combination {
    entries: Arc<[SusceptibleBits]>,
    /// Number of links to the combination page.
    live: u32,
}

/// The entries of all combination pages, and the numbers of links to them.
#[derive(Debug)]
pub struct CombinationLinks {
    /// LPN of the combination page with number 0.
    first: u32,
    /// Highest number of combination pages at a time.
    pages_max: u32,
    /// By number of the combination page, which is its LPN less `first`.
    combinations: Vec<Combination>,
    /// Numbers of combination pages that have been freed.
    free: Vec<u32>,
    /// By PPN: the entries of each combination page in flash or on its way to flash, including invalid pages that are
    /// not erased yet.
    contents: BTreeMap<u32, Arc<[SusceptibleBits]>>,
    /// Number of links.
    count: u64,
    /// Highest number of links so far.
    peak: u64,
}

impl CombinationLinks {
    /// A table without links. `first`: LPN of the first combination page; `pages_max`: highest number of combination
    /// pages at a time.
    pub fn new(first: u32, pages_max: u32) -> Self {
        Self {
            first,
            pages_max,
            combinations: Vec::new(),
            free: Vec::new(),
            contents: BTreeMap::new(),
            count: 0,
            peak: 0,
        }
    }

    /// Whether a number is free for another combination page.
    pub fn has_number(&self) -> bool {
        !self.free.is_empty() || (self.combinations.len() as u32) < self.pages_max
    }

    /// Allocates a number for a combination page with these entries and returns its LPN; `None` when all numbers are in
    /// use.
    pub fn number(&mut self, entries: Box<[SusceptibleBits]>) -> Option<Lpn> {
        let combination = Combination { entries: entries.into(), live: 0 };
        let number = match self.free.pop() {
            Some(number) => {
                self.combinations[number as usize] = combination;
                number
            }
            None if (self.combinations.len() as u32) < self.pages_max => {
                self.combinations.push(combination);
                self.combinations.len() as u32 - 1
            }
            None => return None,
        };
        Some(Lpn(self.first + number))
    }

    /// The entries of a combination page.
    pub fn entries(&self, lpn: Lpn) -> Arc<[SusceptibleBits]> {
        self.combinations[(lpn.0 - self.first) as usize].entries.clone()
    }

    /// Records that the program that is being queued to `ppn` contains these entries.
    pub fn stage(&mut self, ppn: Ppn, entries: Arc<[SusceptibleBits]>) {
        self.contents.insert(ppn.0, entries);
    }

    /// The entries of a page in flash, if it is a combination page.
    pub fn content(&self, ppn: Ppn) -> Option<&Arc<[SusceptibleBits]>> {
        self.contents.get(&ppn.0)
    }

    /// The pages from `first` up to but excluding `end` have been erased: forgets their entries.
    pub fn erase(&mut self, first: Ppn, end: Ppn) {
        while let Some((&ppn, _)) = self.contents.range(first.0..end.0).next() {
            self.contents.remove(&ppn);
        }
    }

    /// Counts a link from the base page of entry `index` of a combination page; returns the entry.
    pub fn link(&mut self, lpn: Lpn, index: usize) -> SusceptibleBits {
        let combination = &mut self.combinations[(lpn.0 - self.first) as usize];
        combination.live += 1;
        self.count += 1;
        self.peak = self.peak.max(self.count);
        combination.entries[index]
    }

    /// Ends a link to a combination page; returns whether it was the last link to that page.
    pub fn unlink(&mut self, lpn: Lpn) -> bool {
        let combination = &mut self.combinations[(lpn.0 - self.first) as usize];
        combination.live -= 1;
        self.count -= 1;
        combination.live == 0
    }

    /// Number of links to a combination page.
    pub fn live(&self, lpn: Lpn) -> u32 {
        self.combinations[(lpn.0 - self.first) as usize].live
    }

    /// Frees the number of a combination page without links.
    pub fn free(&mut self, lpn: Lpn) {
        let number = lpn.0 - self.first;
        self.combinations[number as usize] = Combination::default();
        self.free.push(number);
    }

    /// After a power loss: drops all links, and rebuilds the table of combination pages from flash. `found`: the
    /// combination pages in flash, each with the PPN of its newest copy.
    pub fn restore(&mut self, found: impl Iterator<Item = (Lpn, Ppn)>) {
        self.count = 0;
        self.combinations.clear();
        for (lpn, ppn) in found {
            let number = (lpn.0 - self.first) as usize;
            if self.combinations.len() <= number {
                self.combinations.resize_with(number + 1, Combination::default);
            }
            let entries =
                self.contents.get(&ppn.0).expect("every combination page in flash has entries").clone();
            self.combinations[number] = Combination { entries, live: 0 };
        }
        self.free = (0..self.combinations.len() as u32).rev().filter(|&n| self.is_unused(n)).collect();
    }

    fn is_unused(&self, number: u32) -> bool {
        self.combinations[number as usize].entries.is_empty()
    }

    /// Fast-forward has added `more` P/E cycles to the block of each page: entries get the new P/E cycles of their base
    /// pages.
    pub fn on_worn(&mut self, more: impl Fn(Ppn) -> u32) {
        let worn = |entries: &Arc<[SusceptibleBits]>| -> Arc<[SusceptibleBits]> {
            entries.iter().map(|e| SusceptibleBits { pe_cycles: e.pe_cycles + more(e.base), ..*e }).collect()
        };
        // Entries shared by `contents` and `combinations` are one allocation, and remain one allocation.
        let mut shared = BTreeMap::new();
        for entries in self.contents.values_mut() {
            let new = worn(entries);
            shared.insert(entries.as_ptr(), new.clone());
            *entries = new;
        }
        for combination in &mut self.combinations {
            let new = shared.get(&combination.entries.as_ptr()).cloned();
            combination.entries = new.unwrap_or_else(|| worn(&combination.entries));
        }
    }

    /// Number of links.
    pub fn count(&self) -> u64 {
        self.count
    }

    /// Highest number of links so far.
    pub fn peak(&self) -> u64 {
        self.peak
    }

    /// The LPNs of all combination pages in use.
    pub fn combinations(&self) -> impl Iterator<Item = Lpn> + '_ {
        (0..self.combinations.len() as u32).filter(|&n| !self.is_unused(n)).map(|n| Lpn(self.first + n))
    }
}
