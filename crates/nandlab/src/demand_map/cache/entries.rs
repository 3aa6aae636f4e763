//! The cached map entries and their slots.

use crate::base::geometry::Lpn;
use crate::base::huge::prefetch;
use crate::base::list::{Link, ListLinks};
use crate::base::state::{state, value};

/// The list or heap of the `read-level` policy that contains a cached entry.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Listing {
    /// The list of the fixed entries, which are evicted only while all entries are fixed.
    Fixed,
    /// The list of the entry's level.
    Listed,
    /// The heap of the entry's level: the level has changed since the last use of the entry, so the entry would belong
    /// in the middle of the list.
    Displaced,
}

/// One cached map entry.
#[derive(Clone, Copy, Debug)]
pub(super) struct MapEntry {
    pub(super) lpn: Lpn,
    link: Link,
    pub(super) level: u8,
    pub(super) listing: Listing,
    /// Number of the last use of the entry; all uses of the cache are counted.
    pub(super) used: u64,
}

impl MapEntry {
    pub(super) fn new(lpn: Lpn, level: u8) -> Self {
        Self { lpn, link: Link::default(), level, listing: Listing::Listed, used: 0 }
    }
}

/// The slots of the cache, each with an entry.
#[derive(Debug)]
pub(super) struct MapEntries(Vec<MapEntry>);

impl MapEntries {
    pub(super) fn with_capacity(capacity: u32) -> Self {
        Self(Vec::with_capacity(capacity as usize))
    }

    /// Bytes of the slots for which there is memory.
    pub(super) fn bytes(&self) -> u64 {
        (self.0.capacity() * size_of::<MapEntry>()) as u64
    }

    pub(super) fn len(&self) -> u32 {
        self.0.len() as u32
    }

    /// Adds a slot and returns its number.
    pub(super) fn grow(&mut self) -> u32 {
        self.0.push(MapEntry::new(Lpn(0), 0));
        self.len() - 1
    }

    #[inline(always)]
    pub(super) fn prefetch(&self, slot: u32) {
        prefetch(self.0.as_ptr().wrapping_add(slot as usize));
    }

    pub(super) fn iter(&self) -> std::slice::Iter<'_, MapEntry> {
        self.0.iter()
    }
}

impl std::ops::Index<u32> for MapEntries {
    type Output = MapEntry;
    #[inline(always)]
    fn index(&self, slot: u32) -> &MapEntry {
        &self.0[slot as usize]
    }
}

impl std::ops::IndexMut<u32> for MapEntries {
    #[inline(always)]
    fn index_mut(&mut self, slot: u32) -> &mut MapEntry {
        &mut self.0[slot as usize]
    }
}

impl ListLinks for MapEntries {
    #[inline(always)]
    fn link(&mut self, slot: u32) -> &mut Link {
        &mut self.0[slot as usize].link
    }
}

value! { Listing enum { Fixed, Listed, Displaced } }
value! { MapEntry { lpn, link, level, listing, used } }
state! { MapEntries { ..tuple entries } }
