//! Eviction `read-level`: of the entries that are not fixed, the one with the lowest read level leaves, the least
//! recently used of these (LaLDPC, Algorithm 1; LaLDPC_new in that paper).
//!
//! With the entries numbered from 1 in the order of their use, the fixed ones are those before `Len_fix`: the
//! algorithm takes `j >= Len_fix` to the letter, and its `break` leaves both loops. Without a candidate the least
//! recently used entry leaves.
//!
//! The fixed entries are one list. The others are a list per level, each in the order of use, because what stops being
//! fixed has been used later than everything that had stopped before. Only an entry whose level changes while it is not
//! fixed (GC has moved its page, or its read took long) belongs into the middle of a list; it goes into a heap beside
//! that list instead, ordered by use. So a hit costs O(1) and an eviction at most O(log n).
//!
//! Parameter: `fixed`, Len_fix, in entries (the paper: 500, 2000, 5000).

use super::entries::{Listing, MapEntries};
use crate::base::list::List;
use crate::flash::LEVELS_MAX;
use std::cmp::Reverse;
use std::collections::BinaryHeap;

/// The entries of one level that are not fixed.
#[derive(Debug, Default)]
struct Level {
    listed: List,
    /// Use and slot of those out of turn. What has left or changed since is dropped when it comes up.
    displaced: BinaryHeap<Reverse<(u64, u32)>>,
    displaced_len: u32,
}

/// All entries, fixed or by level.
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

    /// Makes `slot`, which is in no list, the most recently used.
    fn put_first(&mut self, entries: &mut MapEntries, slot: u32) {
        self.uses += 1;
        entries[slot].used = self.uses;
        entries[slot].place = Listing::Fixed;
        self.fixed.push_first(entries, slot);
        if self.fixed.len() > self.fixed_max {
            let last = self.fixed.last().expect("the list is longer than its limit");
            self.fixed.remove(entries, last);
            entries[last].place = Listing::Listed;
            self.levels[usize::from(entries[last].level)].listed.push_first(entries, last);
        }
    }

    fn take(&mut self, entries: &mut MapEntries, slot: u32) {
        let level = &mut self.levels[usize::from(entries[slot].level)];
        match entries[slot].place {
            Listing::Fixed => self.fixed.remove(entries, slot),
            Listing::Listed => level.listed.remove(entries, slot),
            // Its use and place tell that what the heap holds is out of date.
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
        if entries[slot].place == Listing::Fixed {
            entries[slot].level = level;
            return;
        }
        self.take(entries, slot);
        let entry = &mut entries[slot];
        entry.level = level;
        entry.place = Listing::Displaced;
        let level = &mut self.levels[usize::from(entry.level)];
        level.displaced.push(Reverse((entry.used, slot)));
        level.displaced_len += 1;
        if level.displaced.len() > 64 + 2 * level.displaced_len as usize {
            level.clean(entries, entries[slot].level);
        }
    }

    /// Takes out the entry that leaves.
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
    fn is_current(entries: &MapEntries, level: u8, used: u64, slot: u32) -> bool {
        let entry = &entries[slot];
        entry.place == Listing::Displaced && entry.level == level && entry.used == used
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

    /// Drops what is out of date or there twice. Called when that is the larger part, so it costs little for each
    /// that was pushed.
    fn clean(&mut self, entries: &MapEntries, level: u8) {
        let mut displaced = std::mem::take(&mut self.displaced).into_vec();
        displaced.retain(|&Reverse((used, slot))| Self::is_current(entries, level, used, slot));
        displaced.sort_unstable();
        displaced.dedup();
        self.displaced = displaced.into();
    }
}
