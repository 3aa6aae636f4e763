//! Eviction `read-level`: among the entries that are not fixed, evicts the one with the lowest read level; among
//! entries of equal level, the least recently used one (LaLDPC, Algorithm 1; LaLDPC_new in that paper).
//!
//! The entries are numbered from 1, the most recently used first. The entries before number `Len_fix` are fixed: the
//! condition `j >= Len_fix` of Algorithm 1 is taken literally, and the `break` of Algorithm 1 leaves both loops. If all
//! entries are fixed, the least recently used entry is evicted.
//!
//! The fixed entries are in one list. The other entries are in one list per level, ordered by use: an entry that
//! becomes unfixed was used later than all entries that became unfixed before it, so it goes to the front of its list.
//! An unfixed entry whose level changes (GC has moved its unit, or its read took long) would belong in the middle of a
//! list. It goes into a heap of its new level instead, which is ordered by use. So a hit takes O(1) time, and an
//! eviction or a change of level takes an amortised O(log n).
//!
//! Parameter: `fixed`, the Len_fix of Algorithm 1, in entries (the paper: 500, 2000, 5000).

use super::entries::{Listing, MapEntries};
use crate::base::list::List;
use crate::base::state::state;
use crate::flash::LEVELS_MAX;
use std::cmp::Reverse;
use std::collections::BinaryHeap;

/// The entries of one level that are not fixed.
#[derive(Debug, Default)]
struct Level {
    listed: List,
    /// Last use and slot of the displaced entries. Items of entries that have been evicted, used or changed since are
    /// dropped when they reach the top of the heap.
    displaced: BinaryHeap<Reverse<(u64, u32)>>,
    /// Number of displaced entries: the up-to-date items in the heap.
    displaced_len: u32,
}

/// All entries: the fixed ones, and the others by level.
#[derive(Debug)]
pub(super) struct ReadLevel {
    fixed: List,
    fixed_max: u32,
    levels: Box<[Level]>,
    uses: u64,
}

impl ReadLevel {
    pub(super) fn new(len_fix: u32) -> Self {
        Self {
            fixed: List::default(),
            fixed_max: len_fix.saturating_sub(1),
            levels: (0..=LEVELS_MAX).map(|_| Level::default()).collect(),
            uses: 0,
        }
    }

    /// Makes `slot`, which is in no list, the most recently used entry.
    fn put_first(&mut self, entries: &mut MapEntries, slot: u32) {
        self.uses += 1;
        entries[slot].used = self.uses;
        entries[slot].listing = Listing::Fixed;
        self.fixed.push_first(entries, slot);
        if self.fixed.len() > self.fixed_max {
            let last = self.fixed.last().expect("the list is longer than its limit");
            self.fixed.remove(entries, last);
            entries[last].listing = Listing::Listed;
            self.levels[usize::from(entries[last].level)].listed.push_first(entries, last);
        }
    }

    /// Removes `slot` from its list or heap.
    fn take(&mut self, entries: &mut MapEntries, slot: u32) {
        let level = &mut self.levels[usize::from(entries[slot].level)];
        match entries[slot].listing {
            Listing::Fixed => self.fixed.remove(entries, slot),
            Listing::Listed => level.listed.remove(entries, slot),
            // The item remains in the heap: the changed use or listing of the entry shows that the item is out of date.
            Listing::Displaced => level.displaced_len -= 1,
        }
    }

    pub(super) fn on_hit(&mut self, entries: &mut MapEntries, slot: u32) {
        self.take(entries, slot);
        self.put_first(entries, slot);
    }

    pub(super) fn on_inserted(&mut self, entries: &mut MapEntries, slot: u32) {
        self.put_first(entries, slot);
    }

    pub(super) fn on_level(&mut self, entries: &mut MapEntries, slot: u32, level: u8) {
        if entries[slot].listing == Listing::Fixed {
            entries[slot].level = level;
            return;
        }
        self.take(entries, slot);
        let entry = &mut entries[slot];
        entry.level = level;
        entry.listing = Listing::Displaced;
        let level = &mut self.levels[usize::from(entry.level)];
        level.displaced.push(Reverse((entry.used, slot)));
        level.displaced_len += 1;
        if level.displaced.len() > 64 + 2 * level.displaced_len as usize {
            level.clean(entries, entries[slot].level);
        }
    }

    /// Chooses the entry to evict, removes it from the order and returns its slot.
    pub(super) fn evict(&mut self, entries: &mut MapEntries) -> u32 {
        for number in 0..=LEVELS_MAX {
            let level = &mut self.levels[number];
            if level.listed.len() + level.displaced_len == 0 {
                continue;
            }
            let listed = level.listed.last().map(|slot| (entries[slot].used, slot));
            let displaced = level.oldest_displaced(entries, number as u8);
            let oldest = listed.into_iter().chain(displaced).min();
            let (_, slot) = oldest.expect("the level has entries");
            self.take(entries, slot);
            return slot;
        }
        let slot = self.fixed.last().expect("a full cache has entries");
        self.fixed.remove(entries, slot);
        slot
    }

    pub(super) fn len(&self) -> u32 {
        let unfixed: u32 = self.levels.iter().map(|level| level.listed.len() + level.displaced_len).sum();
        self.fixed.len() + unfixed
    }
}

impl Level {
    /// Whether an item of the heap is up to date.
    fn is_current(entries: &MapEntries, level: u8, used: u64, slot: u32) -> bool {
        let entry = &entries[slot];
        entry.listing == Listing::Displaced && entry.level == level && entry.used == used
    }

    fn oldest_displaced(&mut self, entries: &MapEntries, level: u8) -> Option<(u64, u32)> {
        while let Some(&Reverse((used, slot))) = self.displaced.peek() {
            if Self::is_current(entries, level, used, slot) {
                return Some((used, slot));
            }
            self.displaced.pop();
        }
        None
    }

    /// Drops outdated and duplicate items of the heap. Called when these are the majority, so the cost per added item
    /// is small.
    fn clean(&mut self, entries: &MapEntries, level: u8) {
        let mut displaced = std::mem::take(&mut self.displaced).into_vec();
        displaced.retain(|&Reverse((used, slot))| Self::is_current(entries, level, used, slot));
        displaced.sort_unstable();
        displaced.dedup();
        self.displaced = displaced.into();
    }
}

state! { Level { listed, displaced, displaced_len } }
state! { ReadLevel { fixed, levels, uses } fixed { fixed_max } }
