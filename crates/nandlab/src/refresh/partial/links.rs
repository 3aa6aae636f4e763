//! The secondary mapping table: the combination pages with the susceptible bits of partially refreshed units (Section
//! 3.3 of the partial refresh paper).
//!
//! Combination pages have LPNs of their own, behind the LPNs of the host and of translation pages. The map has the PPN
//! of each combination page (the APN of the paper), so all links to a combination page remain valid when GC moves the
//! page. [`Parts`](crate::core::Parts) has the LPN of the combination page of each base unit. The entry of the base
//! unit has the offset in the combination page.

use super::SusceptibleBits;
use crate::base::geometry::{Divisor, Lpn, SuperblockId, UnitId};
use crate::base::number_map::NumberMap;
use crate::base::state::{State, StateError, StateReader, StateWriter, Value};
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
    combinations_max: u32,
    /// By number of the combination page, which is its LPN less `first`.
    combinations: Vec<Combination>,
    /// Numbers of combination pages that have been freed.
    free: Vec<u32>,
    /// By superblock and unit: the entries of each combination page in flash or on its way to flash, including invalid
    /// pages that are not erased yet. Other units have no entries.
    contents: NumberMap<Vec<Arc<[SusceptibleBits]>>>,
    by_superblock: Divisor,
    /// Number of links.
    count: u64,
    /// Highest number of links so far.
    peak: u64,
}

impl CombinationLinks {
    /// A table without links. `first`: LPN of the first combination page; `combinations_max`: highest number of
    /// combination pages at a time.
    pub fn new(first: u32, combinations_max: u32, by_superblock: Divisor) -> Self {
        Self {
            first,
            combinations_max,
            combinations: Vec::new(),
            free: Vec::new(),
            contents: NumberMap::default(),
            by_superblock,
            count: 0,
            peak: 0,
        }
    }

    /// Whether a number is free for another combination page.
    pub fn has_number(&self) -> bool {
        !self.free.is_empty() || (self.combinations.len() as u32) < self.combinations_max
    }

    /// Allocates a number for a combination page with these entries and returns its LPN; `None` when all numbers are in
    /// use.
    pub fn number(&mut self, entries: Arc<[SusceptibleBits]>) -> Option<Lpn> {
        let combination = Combination { entries, live: 0 };
        let number = match self.free.pop() {
            Some(number) => {
                self.combinations[number as usize] = combination;
                number
            }
            None if (self.combinations.len() as u32) < self.combinations_max => {
                self.combinations.push(combination);
                self.combinations.len() as u32 - 1
            }
            None => return None,
        };
        Some(Lpn(self.first + number))
    }

    /// The entries of a combination page.
    pub fn entries(&self, lpn: Lpn) -> &Arc<[SusceptibleBits]> {
        &self.combinations[(lpn.0 - self.first) as usize].entries
    }

    /// Records that the program that is being queued to `unit` contains these entries.
    pub fn stage(&mut self, unit: UnitId, entries: Arc<[SusceptibleBits]>) {
        let (superblock, index) = self.place(unit);
        let units = self.contents.entry(superblock).or_default();
        if units.len() <= index {
            units.resize_with(index + 1, Arc::default);
        }
        units[index] = entries;
    }

    /// The entries of a unit in flash, if it is a combination page.
    pub fn content(&self, unit: UnitId) -> Option<&Arc<[SusceptibleBits]>> {
        let (superblock, index) = self.place(unit);
        self.contents.get(&superblock)?.get(index).filter(|entries| !entries.is_empty())
    }

    /// A superblock has been erased: forgets the entries of its units.
    pub fn erase(&mut self, superblock: SuperblockId) {
        self.contents.remove(&superblock.0);
    }

    /// The units from `first` up to but excluding `end`, all of one superblock, have not been programmed: forgets their
    /// entries.
    pub fn blank(&mut self, first: UnitId, end: UnitId) {
        let (superblock, index) = self.place(first);
        let units = self.contents.get_mut(&superblock).into_iter().flatten();
        units.skip(index).take((end.0 - first.0) as usize).for_each(|entries| *entries = Arc::default());
    }

    /// The superblock of a unit, and the unit's number in the superblock.
    fn place(&self, unit: UnitId) -> (u32, usize) {
        let (superblock, index) = self.by_superblock.split(unit.0);
        (superblock, index as usize)
    }

    /// Counts a link from the base unit of entry `index` of a combination page; returns the entry.
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
    pub fn restore(&mut self, found: impl Iterator<Item = (Lpn, UnitId)>) {
        self.count = 0;
        self.combinations.clear();
        for (lpn, unit) in found {
            let number = (lpn.0 - self.first) as usize;
            if self.combinations.len() <= number {
                self.combinations.resize_with(number + 1, Combination::default);
            }
            let entries = self.content(unit).expect("every combination page in flash has entries").clone();
            self.combinations[number] = Combination { entries, live: 0 };
        }
        self.free = (0..self.combinations.len() as u32).rev().filter(|&n| self.is_unused(n)).collect();
    }

    fn is_unused(&self, number: u32) -> bool {
        self.combinations[number as usize].entries.is_empty()
    }

    /// Fast-forward has added `more` P/E cycles to the superblock of each unit: entries get the new P/E cycles of their
    /// base units.
    pub fn on_worn(&mut self, more: impl Fn(UnitId) -> u32) {
        let worn = |entries: &Arc<[SusceptibleBits]>| -> Arc<[SusceptibleBits]> {
            entries.iter().map(|e| SusceptibleBits { pe_cycles: e.pe_cycles + more(e.base), ..*e }).collect()
        };
        // Entries shared by `contents` and `combinations` are one allocation, and remain one allocation.
        let mut shared = BTreeMap::new();
        let units = self.contents.values_mut().flatten();
        for entries in units.filter(|entries| !entries.is_empty()) {
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

/// Entries shared by `contents` and `combinations` are one allocation, and are one allocation again.
impl State for CombinationLinks {
    fn save_state(&self, out: &mut StateWriter<'_>) {
        let Self {
            first: _,
            combinations_max: _,
            combinations,
            free,
            contents,
            by_superblock: _,
            count,
            peak,
        } = self;
        contents.save(out);
        let mut units = BTreeMap::new();
        let mut superblocks: Vec<u32> = contents.keys().copied().collect();
        superblocks.sort_unstable();
        for superblock in superblocks {
            for (index, entries) in
                contents[&superblock].iter().enumerate().filter(|(_, entries)| !entries.is_empty())
            {
                units.insert(entries.as_ptr(), (superblock, index));
            }
        }
        combinations.len().save(out);
        for Combination { entries, live } in combinations {
            let unit = units.get(&entries.as_ptr());
            unit.copied().save(out);
            if unit.is_none() {
                entries.save(out);
            }
            live.save(out);
        }
        free.save(out);
        count.save(out);
        peak.save(out);
    }

    fn load_state(&mut self, from: &mut StateReader<'_>) -> Result<(), StateError> {
        self.contents.load_state(from)?;
        self.combinations.clear();
        for _ in 0..usize::load(from)? {
            let entries = match Option::<(u32, usize)>::load(from)? {
                Some((superblock, index)) => {
                    let entries = self.contents.get(&superblock).and_then(|units| units.get(index));
                    entries.ok_or(StateError::Damaged("a combination page is not in flash"))?.clone()
                }
                None => Value::load(from)?,
            };
            self.combinations.push(Combination { entries, live: Value::load(from)? });
        }
        self.free.load_state(from)?;
        self.count.load_state(from)?;
        self.peak.load_state(from)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_unit_has_its_entries_until_it_is_blank_or_its_superblock_is_erased() {
        let entries = |bytes| -> Arc<[SusceptibleBits]> {
            let (base, lpn) = (UnitId(0), Lpn(0));
            [SusceptibleBits { base, lpn, sequence: 1, pe_cycles: 0, offset: 0, bytes, rber: 0.0 }].into()
        };
        let mut links = CombinationLinks::new(100, 8, Divisor::new(10));
        for unit in [21, 22, 25, 31] {
            links.stage(UnitId(unit), entries(unit));
        }
        let staged = |links: &CombinationLinks| -> Vec<u32> {
            (0..40)
                .filter(|&unit| links.content(UnitId(unit)).is_some_and(|of| of[0].bytes == unit))
                .collect()
        };
        assert_eq!(staged(&links), [21, 22, 25, 31]);
        assert!(links.content(UnitId(23)).is_none() && links.content(UnitId(39)).is_none());
        links.blank(UnitId(22), UnitId(30));
        assert_eq!(staged(&links), [21, 31]);
        links.stage(UnitId(22), entries(22));
        links.erase(SuperblockId(2));
        assert_eq!(staged(&links), [31]);
        links.blank(UnitId(0), UnitId(10));
        links.erase(SuperblockId(3));
        assert!(staged(&links).is_empty());
    }
}
