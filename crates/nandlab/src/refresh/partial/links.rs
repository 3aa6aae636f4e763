//! The secondary mapping table: where the susceptible data of a partially refreshed page is (Section 3.3).
//!
//! Combination pages have page numbers of their own, behind those of the host and of translation pages: the map says where
//! each is (the APN), so that moving one moves all its links, and GC knows it as a page like others. A link of a base page
//! is the number of its combination page and its place in there.

use super::SusceptibleBits;
use crate::base::geometry::{Lpn, Ppn};
use std::collections::BTreeMap;
use std::sync::Arc;

/// Bits of a link in the controller's RAM: 32 of the APN, 20 of the offset (Section 3.6).
pub const LINK_BITS: u64 = 52;

/// A combination page.
#[derive(Debug, Default)]
struct Combination {
    entries: Arc<[SusceptibleBits]>,
    /// CombinationLinks to it.
    live: u32,
}

/// See the module.
#[derive(Debug)]
pub struct CombinationLinks {
    first: u32,
    most: u32,
    combinations: Vec<Combination>,
    /// Numbers that can be given again.
    free: Vec<u32>,
    /// What flash holds: the entries in each combination page, and in those of before that are not erased yet.
    contents: BTreeMap<u32, Arc<[SusceptibleBits]>>,
    count: u64,
    peak: u64,
}

impl CombinationLinks {
    /// No links, on a drive where the numbers of combination pages begin at `first`; there can be `most` of them.
    pub fn new(first: u32, most: u32) -> Self {
        Self {
            first,
            most,
            combinations: Vec::new(),
            free: Vec::new(),
            contents: BTreeMap::new(),
            count: 0,
            peak: 0,
        }
    }

    /// Whether a line can have a number.
    pub fn has_number(&self) -> bool {
        !self.free.is_empty() || (self.combinations.len() as u32) < self.most
    }

    /// A number for a line; `None` when all are in use.
    pub fn number(&mut self, entries: Box<[SusceptibleBits]>) -> Option<Lpn> {
        let combination = Combination { entries: entries.into(), live: 0 };
        let number = match self.free.pop() {
            Some(number) => {
                self.combinations[number as usize] = combination;
                number
            }
            None if (self.combinations.len() as u32) < self.most => {
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

    /// The coming program of `ppn` will hold these entries.
    pub fn stage(&mut self, ppn: Ppn, entries: Arc<[SusceptibleBits]>) {
        self.contents.insert(ppn.0, entries);
    }

    /// What a page in flash holds, if it is a combination page.
    pub fn content(&self, ppn: Ppn) -> Option<&Arc<[SusceptibleBits]>> {
        self.contents.get(&ppn.0)
    }

    /// Pages from `first` to before `end` hold nothing any more.
    pub fn erase(&mut self, first: Ppn, end: Ppn) {
        while let Some((&ppn, _)) = self.contents.range(first.0..end.0).next() {
            self.contents.remove(&ppn);
        }
    }

    /// A combination page is in flash: links the page of one of its entries to it, which is returned.
    pub fn link(&mut self, lpn: Lpn, index: usize) -> SusceptibleBits {
        let combination = &mut self.combinations[(lpn.0 - self.first) as usize];
        combination.live += 1;
        self.count += 1;
        self.peak = self.peak.max(self.count);
        combination.entries[index]
    }

    /// Ends one of the links to a combination page; whether that was the last one.
    pub fn unlink(&mut self, lpn: Lpn) -> bool {
        let combination = &mut self.combinations[(lpn.0 - self.first) as usize];
        combination.live -= 1;
        self.count -= 1;
        combination.live == 0
    }

    /// CombinationLinks to a combination page.
    pub fn live(&self, lpn: Lpn) -> u32 {
        self.combinations[(lpn.0 - self.first) as usize].live
    }

    /// Nothing links to a combination page any more: its number can be given again.
    pub fn free(&mut self, lpn: Lpn) {
        let number = lpn.0 - self.first;
        self.combinations[number as usize] = Combination::default();
        self.free.push(number);
    }

    /// Forgets all but what is in flash: power is gone. `found` are the combination pages of which flash has a copy.
    pub fn restore(&mut self, found: impl Iterator<Item = (Lpn, Ppn)>) {
        self.count = 0;
        self.combinations.clear();
        for (lpn, ppn) in found {
            let number = (lpn.0 - self.first) as usize;
            if self.combinations.len() <= number {
                self.combinations.resize_with(number + 1, Combination::default);
            }
            let entries = self.contents.get(&ppn.0).expect("a combination page has a content").clone();
            self.combinations[number] = Combination { entries, live: 0 };
        }
        self.free = (0..self.combinations.len() as u32).rev().filter(|&n| self.is_unused(n)).collect();
    }

    fn is_unused(&self, number: u32) -> bool {
        self.combinations[number as usize].entries.is_empty()
    }

    /// Blocks have got so many P/E cycles more: an entry names the same page as before.
    pub fn on_worn(&mut self, more: impl Fn(Ppn) -> u32) {
        let worn = |entries: &Arc<[SusceptibleBits]>| -> Arc<[SusceptibleBits]> {
            entries.iter().map(|e| SusceptibleBits { pe_cycles: e.pe_cycles + more(e.base), ..*e }).collect()
        };
        // What flash and RAM have in common is one allocation, and stays one.
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

    /// CombinationLinks that there are.
    pub fn count(&self) -> u64 {
        self.count
    }

    /// The most links that there have been.
    pub fn peak(&self) -> u64 {
        self.peak
    }

    /// All combination pages in use.
    pub fn combinations(&self) -> impl Iterator<Item = Lpn> + '_ {
        (0..self.combinations.len() as u32).filter(|&n| !self.is_unused(n)).map(|n| Lpn(self.first + n))
    }
}
