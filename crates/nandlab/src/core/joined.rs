//! The flash reads of an event, found by page.

use crate::base::geometry::UnitId;
use crate::base::state::{state, value};
use crate::base::steps::step;
use crate::sched::Slot;
use std::iter::successors;

/// A flash read.
#[derive(Clone, Copy, Debug)]
struct FlashRead {
    /// The first unit of its page.
    unit: UnitId,
    /// The transactions of its first and of its last unit.
    first: Slot,
    last: Slot,
    /// The index of the next older read in the same list.
    older: u32,
}

/// The flash reads to which further units can be added, in lists by hash of the page.
#[derive(Debug, Default)]
pub(super) struct Joined {
    reads: Vec<FlashRead>,
    /// By list, the index of its newest read; meaningless unless this read exists and belongs to the list. So the table
    /// need not be cleared. Its length is 0 or a power of two.
    newest: Vec<u32>,
}

impl Joined {
    /// Whether there is no read.
    #[inline(always)]
    pub(super) fn is_empty(&self) -> bool {
        self.reads.is_empty()
    }

    /// The list of the page that begins with `unit`.
    #[inline]
    fn list_of(&self, unit: UnitId) -> usize {
        let spread = u64::from(unit.0).wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 32;
        spread as usize & (self.newest.len() - 1)
    }

    /// The index of the newest read in the list of the page that begins with `unit`.
    #[inline]
    fn newest_with(&self, unit: UnitId) -> Option<u32> {
        if self.reads.is_empty() {
            return None;
        }
        let list = self.list_of(unit);
        let index = self.newest[list];
        self.reads.get(index as usize).is_some_and(|read| self.list_of(read.unit) == list).then_some(index)
    }

    /// The reads of the page that begins with `unit`, newest first: the index of each, and the transactions of its
    /// first and last unit.
    #[inline]
    pub(super) fn of(&self, unit: UnitId) -> impl Iterator<Item = (usize, (Slot, Slot))> {
        let older = |&index: &u32| {
            step();
            Some(self.reads[index as usize].older).filter(|&older| older != u32::MAX)
        };
        successors(self.newest_with(unit), older)
            .map(|index| (index as usize, self.reads[index as usize]))
            .filter(move |(_, read)| read.unit == unit)
            .map(|(index, read)| (index, (read.first, read.last)))
    }

    /// Adds a read of the page that begins with `unit`. The read has one unit so far, that of `slot`.
    #[inline]
    pub(super) fn push(&mut self, unit: UnitId, slot: Slot) {
        if self.reads.len() == self.newest.len() {
            self.grow();
        }
        self.reads.push(FlashRead { unit, first: slot, last: slot, older: u32::MAX });
        self.link(self.reads.len() - 1);
    }

    /// Puts a read, the newest one so far, into its list.
    #[inline]
    fn link(&mut self, index: usize) {
        let list = self.list_of(self.reads[index].unit);
        let newest = std::mem::replace(&mut self.newest[list], index as u32) as usize;
        let is_in_list = newest < index && self.list_of(self.reads[newest].unit) == list;
        self.reads[index].older = if is_in_list { newest as u32 } else { u32::MAX };
    }

    /// Doubles the number of lists.
    #[cold]
    fn grow(&mut self) {
        let lists = (2 * self.newest.len()).max(16);
        self.newest.clear();
        self.newest.resize(lists, u32::MAX);
        for index in 0..self.reads.len() {
            self.link(index);
        }
    }

    /// Sets the transaction of the last unit of a read.
    #[inline]
    pub(super) fn set_last(&mut self, index: usize, slot: Slot) {
        self.reads[index].last = slot;
    }

    /// Forgets all reads.
    #[inline(always)]
    pub(super) fn clear(&mut self) {
        self.reads.clear();
    }
}

value! { FlashRead { unit, first, last, older } }
state! { Joined { reads, newest } }

#[cfg(test)]
mod tests {
    use super::*;
    use crate::base::rng::Stream;

    /// The naive twin is a search of all reads of the event.
    #[test]
    fn the_reads_of_a_page_are_found_newest_first() {
        let (mut joined, mut stream) = (Joined::default(), Stream::new(1, "joined"));
        let mut found = 0;
        for event in 0..500 {
            let mut twin: Vec<(UnitId, Slot, Slot)> = Vec::new();
            let pages = 1 + stream.below(if event % 50 == 0 { 3000 } else { 40 });
            for number in 0..pages as usize {
                let unit = UnitId(4 * stream.below(pages) as u32);
                let naive: Vec<(usize, (Slot, Slot))> = twin
                    .iter()
                    .enumerate()
                    .rev()
                    .filter(|(_, read)| read.0 == unit)
                    .map(|(index, &(_, first, last))| (index, (first, last)))
                    .collect();
                assert_eq!(joined.of(unit).collect::<Vec<_>>(), naive, "event {event}, read {number}");
                found += naive.len();
                let slot = Slot::new(number);
                match naive.first() {
                    Some(&(index, _)) if stream.below(2) == 0 => {
                        joined.set_last(index, slot);
                        twin[index].2 = slot;
                    }
                    _ => {
                        joined.push(unit, slot);
                        twin.push((unit, slot, slot));
                    }
                }
            }
            joined.clear();
        }
        assert!(found > 10_000, "only {found} reads of a page that another one reads");
    }
}
