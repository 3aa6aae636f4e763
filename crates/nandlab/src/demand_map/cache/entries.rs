//! Cached entries in slots.

use crate::base::geometry::Lpn;
use crate::base::huge::prefetch;
use crate::base::list::{Link, ListLinks};

/// Where an eviction policy has an entry.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Listing {
    /// In a list, of those that may not leave.
    Fixed,
    /// In a list, of those that may.
    Listed,
    /// Beside the list of its level: it came there out of turn.
    Displaced,
}

/// One cached map entry.
#[derive(Clone, Copy, Debug)]
pub(super) struct MapEntry {
    pub(super) lpn: Lpn,
    link: Link,
    pub(super) level: u8,
    pub(super) place: Listing,
    /// When it was last used, in uses of the cache.
    pub(super) used: u64,
}

impl MapEntry {
    pub(super) fn new(lpn: Lpn, level: u8) -> Self {
        Self { lpn, link: Link::default(), level, place: Listing::Listed, used: 0 }
    }
}

/// The slots.
#[derive(Debug)]
pub(super) struct MapEntries(Vec<MapEntry>);

impl MapEntries {
    pub(super) fn with_capacity(capacity: u32) -> Self {
        Self(Vec::with_capacity(capacity as usize))
    }

    pub(super) fn len(&self) -> u32 {
        self.0.len() as u32
    }

    /// A new slot.
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
