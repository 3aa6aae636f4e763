//! A cache of known error positions (EC-Cache): units that the host reads often decode at a lower read level, because
//! errors found by earlier reads are corrected before decoding.
//!
//! Each decoded host read of a read-hot unit stores the positions of all errors of the unit, including those known
//! before. A later read has to decode only the errors that have occurred since. If there is no room, the least recently
//! stored entry is evicted. The entry of a unit is dropped when the program that replaces the unit has ended, or when
//! the LPN is deallocated. A copyback moves the entry to the new unit.
//!
//! R.-S. Liu et al., "EC-Cache: exploiting error locality to optimize LDPC in NAND flash-based SSDs", DAC 2014.

use super::RefreshStats;
use super::spec::RefreshPolicySpec;
use crate::base::geometry::UnitId;
use crate::base::huge::Huge;
use crate::base::list::{Link, Linked, List};
use crate::base::state::{state, value};
use crate::core::{Core, KnownErrors, Map};
use crate::probe::Probe;
use crate::sched::{Slot, Transaction};
use schemars::JsonSchema;
use serde::Serialize;

/// Bytes of an entry besides its error positions: the PPN and the number of errors, four bytes each.
const HEADER_BYTES: u64 = 8;

/// The entry of a unit: its known errors.
#[derive(Debug)]
struct UnitErrors {
    unit: UnitId,
    bytes: u32,
    link: Link,
}

impl Linked for UnitErrors {
    fn link(&mut self) -> &mut Link {
        &mut self.link
    }
}

/// The cache of known error positions, with the order in which its entries were stored.
#[derive(Debug)]
pub(crate) struct ErrorCache {
    size_bytes: u64,
    unit_bits: u32,
    entries: Vec<UnitErrors>,
    /// By unit: slot of the unit's entry + 1; 0: no entry.
    slots: Huge<u32>,
    by_use: List,
    unused: List,
    bytes: u64,
    pub(crate) stats: RefreshStats,
}

/// The size of the cache of known errors.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, JsonSchema)]
pub struct ErrorCacheState {
    /// Number of units whose error positions are in the cache.
    #[schemars(extend("unit" = "pages"))]
    pub entries: u64,
    /// Size of all entries of the cache, in bytes; at most `refresh.policy.ec-cache.size`.
    #[schemars(extend("unit" = "bytes"))]
    pub bytes: u64,
}

impl ErrorCache {
    /// Returns an empty cache, with memory allocated for the highest possible number of entries; `None` if the policy
    /// is not `ec-cache`.
    pub(crate) fn new<P: Probe>(spec: &RefreshPolicySpec, core: &Core<P>) -> Option<Self> {
        let size_bytes = spec.ec_cache()?.size_bytes;
        Some(Self::with_size(size_bytes, core.geometry().unit_bytes * 8, core.geometry().units))
    }

    fn with_size(size_bytes: u64, unit_bits: u32, units: u32) -> Self {
        let most = u64::from(units).min(size_bytes / (HEADER_BYTES + 1));
        Self {
            size_bytes,
            unit_bits,
            entries: Vec::with_capacity(most as usize),
            slots: Huge::filled(0, units as usize),
            by_use: List::default(),
            unused: List::default(),
            bytes: 0,
            stats: RefreshStats::default(),
        }
    }

    /// Bytes of the array by unit, and of the entries for which there is memory.
    pub(crate) fn bytes_of_arrays(&self) -> u64 {
        self.slots.bytes() + (self.entries.capacity() * size_of::<UnitErrors>()) as u64
    }

    /// Bytes of the entry of a unit with this RBER: a header, and a position for each error; 0 for a unit without
    /// errors.
    fn entry_bytes(&self, rber: f64) -> u64 {
        let errors = libm::round(rber * f64::from(self.unit_bits)) as u64;
        let position_bits = u64::from(u32::BITS - (self.unit_bits - 1).leading_zeros());
        if errors == 0 { 0 } else { HEADER_BYTES + (errors * position_bits).div_ceil(8) }
    }

    /// The number of entries and their size.
    pub(crate) fn state(&self) -> ErrorCacheState {
        ErrorCacheState { entries: self.by_use.len().into(), bytes: self.bytes }
    }

    /// Whether errors of a unit are known.
    pub(crate) fn knows(&self, unit: UnitId) -> bool {
        self.slot(unit).is_some()
    }

    fn slot(&self, unit: UnitId) -> Option<u32> {
        self.slots[unit.index()].checked_sub(1)
    }

    /// All errors of a unit have been found: stores their positions. Returns the number of entries of other units that
    /// were evicted.
    fn remember(&mut self, known: &mut KnownErrors, unit: UnitId, rber: f64) -> u64 {
        self.drop_unit(known, unit);
        let bytes = self.entry_bytes(rber);
        if bytes == 0 || bytes > self.size_bytes {
            return 0;
        }
        let mut evicted = 0;
        while self.bytes + bytes > self.size_bytes {
            let last = self.by_use.last().expect("every entry is in the order of use");
            self.drop_unit(known, self.entries[last as usize].unit);
            evicted += 1;
        }
        let entry = UnitErrors { unit, bytes: bytes as u32, link: Link::default() };
        let slot = match self.unused.last() {
            Some(slot) => {
                self.unused.remove(&mut self.entries, slot);
                self.entries[slot as usize] = entry;
                slot
            }
            None => {
                self.entries.push(entry);
                self.entries.len() as u32 - 1
            }
        };
        self.by_use.push_first(&mut self.entries, slot);
        self.slots[unit.index()] = slot + 1;
        self.bytes += bytes;
        known.set(unit, rber);
        evicted
    }

    /// A unit has been copied back with its errors: moves its entry to the new unit.
    pub(crate) fn move_unit(&mut self, known: &mut KnownErrors, from: UnitId, to: UnitId) {
        self.drop_unit(known, to);
        let slot = std::mem::take(&mut self.slots[from.index()]);
        if slot > 0 {
            self.slots[to.index()] = slot;
            self.entries[slot as usize - 1].unit = to;
            known.set(to, known.of(from));
            known.set(from, 0.0);
        }
    }

    /// Drops the entry of a unit, if there is one.
    pub(crate) fn drop_unit(&mut self, known: &mut KnownErrors, unit: UnitId) {
        let Some(slot) = self.slot(unit) else { return };
        self.slots[unit.index()] = 0;
        known.set(unit, 0.0);
        self.bytes -= u64::from(self.entries[slot as usize].bytes);
        self.by_use.remove(&mut self.entries, slot);
        self.unused.push_first(&mut self.entries, slot);
    }

    /// Power is lost: drops all entries.
    pub(crate) fn clear(&mut self, known: &mut KnownErrors) {
        while let Some(slot) = self.by_use.last() {
            self.drop_unit(known, self.entries[slot as usize].unit);
        }
    }
}

impl ErrorCache {
    /// A host read of a unit has been queued: counts reads of units with known errors.
    #[inline(never)]
    pub(crate) fn on_host_read<P: Probe>(&mut self, core: &mut Core<P>, slot: Slot) {
        let read = *core.operation(slot);
        if self.slot(read.unit).is_none() {
            return;
        }
        let without = core.level_without_known(read.unit);
        let stats = &mut self.stats;
        stats.cached_reads += 1;
        stats.lower_level_reads += u64::from(read.level.max(read.needed) < without);
    }

    /// A host read has ended: stores the errors of its unit if the read was decoded and the unit is still valid and
    /// read-hot.
    #[inline(never)]
    pub(crate) fn on_decoded<P: Probe>(
        &mut self,
        core: &mut Core<P>,
        map: &mut impl Map<P>,
        read: &Transaction,
    ) {
        let is_newest = core.is_newest(read.lpn, read.unit);
        if read.is_uncorrectable() || !is_newest || !core.is_hot(read.unit) {
            return;
        }
        let rber = core.rber_of(read.unit);
        let evicted = self.remember(core.known_mut(), read.unit, rber);
        self.stats.known_errors_evicted += evicted;
        // The known errors are corrected before the next read is decoded, so the unit's read level starts again at 1.
        if self.slot(read.unit).is_some() {
            map.on_corrected(core, read.lpn);
        }
    }

    /// Checks that every entry belongs to a valid unit, or to a unit in a pinned superblock, and that number and size
    /// of the entries are right.
    ///
    /// # Errors
    /// The first inconsistency found.
    pub(crate) fn audit<P: Probe>(&self, core: &Core<P>) -> Result<(), String> {
        let units = (0..core.geometry().units).map(UnitId);
        let (mut entries, mut bytes) = (0, 0);
        for (unit, slot) in units.filter_map(|unit| Some((unit, self.slot(unit)?))) {
            let entry = &self.entries[slot as usize];
            // An invalid unit keeps its entry, and its superblock a pin, until the program that replaces the unit has
            // ended.
            let is_pinned = core.superblock(core.geometry().superblock_of(unit)).pins > 0;
            if entry.unit != unit || !is_pinned && !core.is_valid(unit) {
                return Err(format!(
                    "the error cache has an entry of {}, but the unit is invalid or the entry is of another unit",
                    core.geometry().show(unit)
                ));
            }
            entries += 1;
            bytes += u64::from(entry.bytes);
        }
        if (entries, bytes) != (self.by_use.len(), self.bytes) || bytes > self.size_bytes {
            return Err(format!(
                "the error cache counts {} entries with {} bytes, but has {entries} entries with {bytes} bytes; at \
                 most {} bytes are allowed",
                self.by_use.len(),
                self.bytes,
                self.size_bytes
            ));
        }
        Ok(())
    }
}

value! { UnitErrors { unit, bytes, link } }
state! { ErrorCache { entries, slots, by_use, unused, bytes, stats } fixed { size_bytes, unit_bits } }

#[cfg(test)]
mod tests {
    use super::*;
    use crate::base::rng::Stream;

    #[test]
    fn an_entry_is_a_header_and_a_position_for_each_error() {
        // A unit of 4 KiB has 32,768 bits, so a position takes 15 bits.
        let cache = ErrorCache::with_size(1024, 32_768, 8);
        for (errors, bytes) in [(0, 0), (1, 8 + 2), (8, 8 + 15), (9, 8 + 17), (164, 8 + 308)] {
            assert_eq!(cache.entry_bytes(f64::from(errors) / 32_768.0), bytes, "{errors} errors");
        }
        assert_eq!(cache.entry_bytes(0.49 / 32_768.0), 0);
        // With one bit more than 2^15 in the unit, a position takes 16 bits.
        assert_eq!(ErrorCache::with_size(1024, 32_769, 8).entry_bytes(8.0 / 32_769.0), 8 + 16);
    }

    #[test]
    fn the_cache_evicts_the_least_recently_stored_entry_as_a_naive_twin_does() {
        let (units, size) = (40, 2048);
        let mut cache = ErrorCache::with_size(size, 32_768, units);
        let mut errors = KnownErrors::new(units);
        // Unit, RBER and bytes of each entry, the most recently stored entry last.
        let mut twin: Vec<(UnitId, f64, u64)> = Vec::new();
        let mut stream = Stream::new(3, "error cache");
        let (mut evictions, mut too_large) = (0, 0);
        for step in 0..20_000 {
            let unit = UnitId(stream.below(units.into()) as u32);
            twin.retain(|&(other, ..)| other != unit);
            if stream.below(8) == 0 {
                cache.drop_unit(&mut errors, unit);
            } else if step % 5000 == 4999 {
                cache.clear(&mut errors);
                twin.clear();
            } else {
                let errors_max = if stream.below(20) == 0 { 1400 } else { 200 };
                let rber = stream.below(errors_max) as f64 / 32_768.0;
                let bytes = cache.entry_bytes(rber);
                too_large += u64::from(bytes > size);
                let mut evicted = 0;
                if bytes > 0 && bytes <= size {
                    while twin.iter().map(|entry| entry.2).sum::<u64>() + bytes > size {
                        twin.remove(0);
                        evicted += 1;
                    }
                    twin.push((unit, rber, bytes));
                }
                assert_eq!(cache.remember(&mut errors, unit, rber), evicted);
                evictions += evicted;
            }
            for unit in (0..units).map(UnitId) {
                let known = twin.iter().find(|entry| entry.0 == unit).map(|entry| entry.1);
                assert_eq!(cache.slot(unit).map(|_| errors.of(unit)), known, "step {step}, unit {}", unit.0);
            }
            assert_eq!(cache.bytes, twin.iter().map(|entry| entry.2).sum::<u64>());
            assert!(cache.bytes <= size, "the entries take {} of {size} bytes", cache.bytes);
        }
        assert!(
            evictions > 1000 && too_large > 10,
            "too few cases: {evictions} evictions, {too_large} entries larger than the cache"
        );
        assert_eq!(
            cache.entries.capacity(),
            units as usize,
            "the list of entries has grown beyond its first allocation"
        );
    }
}
