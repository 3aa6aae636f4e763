//! Eviction `lru`: evicts the least recently used entry (DFTL; LaLDPC_LRU in the LaLDPC paper).

use super::entries::MapEntries;
use crate::base::list::List;
use crate::base::state::state;

/// All entries in the order of their use.
#[derive(Debug, Default)]
pub(super) struct Lru {
    used: List,
}

impl Lru {
    #[inline]
    pub(super) fn on_hit(&mut self, entries: &mut MapEntries, slot: u32) {
        self.used.remove(entries, slot);
        self.used.push_first(entries, slot);
    }

    #[inline]
    pub(super) fn on_inserted(&mut self, entries: &mut MapEntries, slot: u32) {
        self.used.push_first(entries, slot);
    }

    #[inline]
    pub(super) fn on_level(&mut self, entries: &mut MapEntries, slot: u32, level: u8) {
        entries[slot].level = level;
    }

    /// Chooses the entry to evict, removes it from the order and returns its slot.
    #[inline]
    pub(super) fn evict(&mut self, entries: &mut MapEntries) -> u32 {
        let slot = self.used.last().expect("a full cache has entries");
        self.used.remove(entries, slot);
        slot
    }

    pub(super) fn len(&self) -> u32 {
        self.used.len()
    }
}

state! { Lru { used } }
