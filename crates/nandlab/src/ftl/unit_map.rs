//! `ftl.map = "page"`: the whole map in RAM, four bytes per logical unit.

use crate::base::geometry::{Lpn, UnitId};
use crate::base::huge::Huge;
use crate::base::state::state;

/// The map from LPNs to PPNs. An entry is PPN + 1, and 0 for an unmapped LPN, so that entries that are never written
/// take no memory.
#[derive(Clone, Debug)]
pub struct UnitMap {
    entries: Huge<u32>,
    mapped: u32,
}

impl UnitMap {
    /// A map of `logical_units` units, none of them mapped.
    pub fn new(logical_units: u32) -> Self {
        Self { entries: Huge::zeroed(logical_units as usize), mapped: 0 }
    }

    /// A map with these entries.
    pub(super) fn from_entries(entries: Huge<u32>) -> Self {
        let mapped = entries.iter().map(|&entry| u32::from(entry != 0)).sum();
        Self { entries, mapped }
    }

    /// By LPN, 1 + the PPN of its unit; 0 for an LPN that is unmapped.
    pub(crate) fn entries(&self) -> &Huge<u32> {
        &self.entries
    }

    /// The unit of `lpn`; `None` if `lpn` is unmapped.
    #[inline(always)]
    pub fn get(&self, lpn: Lpn) -> Option<UnitId> {
        self.entries[lpn.index()].checked_sub(1).map(UnitId)
    }

    /// Prefetches the entry of `lpn` into the CPU's cache.
    #[inline(always)]
    pub fn prefetch(&self, lpn: Lpn) {
        self.entries.prefetch(lpn.index());
    }

    /// Maps `lpn` to `unit`. Returns the unit to which `lpn` was mapped before.
    #[inline(always)]
    pub fn set(&mut self, lpn: Lpn, unit: UnitId) -> Option<UnitId> {
        let entry = &mut self.entries[lpn.index()];
        let old = std::mem::replace(entry, unit.0 + 1);
        self.mapped += u32::from(old == 0);
        old.checked_sub(1).map(UnitId)
    }

    /// Unmaps `lpn`. Returns the unit to which `lpn` was mapped before.
    #[inline(always)]
    pub fn clear(&mut self, lpn: Lpn) -> Option<UnitId> {
        let old = std::mem::replace(&mut self.entries[lpn.index()], 0);
        self.mapped -= u32::from(old != 0);
        old.checked_sub(1).map(UnitId)
    }

    /// The number of mapped logical units.
    pub fn mapped(&self) -> u32 {
        self.mapped
    }

    /// Bytes of the entries.
    pub fn bytes(&self) -> u64 {
        self.entries.bytes()
    }

    /// The number of logical units.
    pub fn len(&self) -> u32 {
        self.entries.len() as u32
    }

    /// Whether the map has no logical units.
    pub fn is_empty(&self) -> bool {
        self.entries.is_empty()
    }
}

state! { UnitMap { entries, mapped } }
