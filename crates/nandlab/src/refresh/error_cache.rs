//! A cache of known error positions (EC-Cache): pages that the host reads often decode at a lower read level, because
//! errors found by earlier reads are corrected before decoding.
//!
//! Each decoded host read of a read-hot page stores the positions of all errors of the page, including those known
//! before. A later read has to decode only the errors that have occurred since. If there is no room, the least recently
//! stored entry is evicted. The entry of a page is dropped when the program that replaces the page has ended, or when
//! the LPN is deallocated. A copyback moves the entry to the new page.
//!
//! R.-S. Liu et al., "EC-Cache: exploiting error locality to optimize LDPC in NAND flash-based SSDs", DAC 2014.

use super::RefreshStats;
use super::spec::RefreshPolicySpec;
use crate::base::geometry::{Geometry, Ppn};
use crate::base::huge::Huge;
use crate::base::list::{Link, List, ListLinks};
use crate::core::{Core, KnownErrors, Map};
use crate::probe::Probe;
use crate::sched::{Slot, Transaction};
use schemars::JsonSchema;
use serde::Serialize;

/// Bytes of an entry besides its error positions: the PPN and the number of errors, four bytes each.
const HEADER_BYTES: u64 = 8;

/// The entry of a page: its known errors.
#[derive(Debug)]
struct PageErrors {
    ppn: Ppn,
    bytes: u32,
    link: Link,
}

impl ListLinks for Vec<PageErrors> {
    fn link(&mut self, slot: u32) -> &mut Link {
        &mut self[slot as usize].link
    }
}

/// The cache of known error positions, with the order in which its entries were stored.
#[derive(Debug)]
pub(crate) struct ErrorCache {
    size_bytes: u64,
    page_bits: u32,
    entries: Vec<PageErrors>,
    /// By page: slot of the page's entry + 1; 0: no entry.
    slots: Huge<u32>,
    by_use: List,
    unused: List,
    bytes: u64,
    pub(crate) stats: RefreshStats,
}

/// The size of the cache of known errors.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, JsonSchema)]
pub struct ErrorCacheState {
    /// Number of pages whose error positions are in the cache.
    #[schemars(extend("unit" = "pages"))]
    pub entries: u64,
    /// Size of all entries of the cache, in bytes; at most `refresh.policy.ec-cache.size`.
    #[schemars(extend("unit" = "bytes"))]
    pub bytes: u64,
}

impl ErrorCache {
    /// Returns an empty cache, with memory allocated for the highest possible number of entries; `None` if the policy
    /// is not `ec-cache`.
    pub(crate) fn new(spec: &RefreshPolicySpec, geometry: &Geometry) -> Option<Self> {
        let size_bytes = spec.ec_cache()?.size_bytes;
        Some(Self::with_size(size_bytes, geometry.page_bytes * 8, geometry.pages))
    }

    fn with_size(size_bytes: u64, page_bits: u32, pages: u32) -> Self {
        let most = u64::from(pages).min(size_bytes / (HEADER_BYTES + 1));
        Self {
            size_bytes,
            page_bits,
            entries: Vec::with_capacity(most as usize),
            slots: Huge::filled(0, pages as usize),
            by_use: List::default(),
            unused: List::default(),
            bytes: 0,
            stats: RefreshStats::default(),
        }
    }

    /// Bytes of the entry of a page with this RBER: a header, and a position for each error; 0 for a page without
    /// errors.
    fn entry_bytes(&self, rber: f64) -> u64 {
        let errors = libm::round(rber * f64::from(self.page_bits)) as u64;
        let position_bits = u64::from(u32::BITS - (self.page_bits - 1).leading_zeros());
        if errors == 0 { 0 } else { HEADER_BYTES + (errors * position_bits).div_ceil(8) }
    }

    /// The number of entries and their size.
    pub(crate) fn state(&self) -> ErrorCacheState {
        ErrorCacheState { entries: self.by_use.len().into(), bytes: self.bytes }
    }

    /// Whether errors of a page are known.
    pub(crate) fn knows(&self, ppn: Ppn) -> bool {
        self.slot(ppn).is_some()
    }

    fn slot(&self, ppn: Ppn) -> Option<u32> {
        self.slots[ppn.index()].checked_sub(1)
    }

    /// All errors of a page have been found: stores their positions. Returns the number of entries of other pages that
    /// were evicted.
    fn remember(&mut self, known: &mut KnownErrors, ppn: Ppn, rber: f64) -> u64 {
        self.drop_page(known, ppn);
        let bytes = self.entry_bytes(rber);
        if bytes == 0 || bytes > self.size_bytes {
            return 0;
        }
        let mut evicted = 0;
        while self.bytes + bytes > self.size_bytes {
            let last = self.by_use.last().expect("every entry is in the order of use");
            self.drop_page(known, self.entries[last as usize].ppn);
            evicted += 1;
        }
        let entry = PageErrors { ppn, bytes: bytes as u32, link: Link::default() };
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
        self.slots[ppn.index()] = slot + 1;
        self.bytes += bytes;
        known.set(ppn, rber);
        evicted
    }

    /// A page has been copied back with its errors: moves its entry to the new page.
    pub(crate) fn move_page(&mut self, known: &mut KnownErrors, from: Ppn, to: Ppn) {
        self.drop_page(known, to);
        let slot = std::mem::take(&mut self.slots[from.index()]);
        if slot > 0 {
            self.slots[to.index()] = slot;
            self.entries[slot as usize - 1].ppn = to;
            known.set(to, known.of(from));
            known.set(from, 0.0);
        }
    }

    /// Drops the entry of a page, if there is one.
    pub(crate) fn drop_page(&mut self, known: &mut KnownErrors, ppn: Ppn) {
        let Some(slot) = self.slot(ppn) else { return };
        self.slots[ppn.index()] = 0;
        known.set(ppn, 0.0);
        self.bytes -= u64::from(self.entries[slot as usize].bytes);
        self.by_use.remove(&mut self.entries, slot);
        self.unused.push_first(&mut self.entries, slot);
    }

    /// Power is lost: drops all entries.
    pub(crate) fn clear(&mut self, known: &mut KnownErrors) {
        while let Some(slot) = self.by_use.last() {
            self.drop_page(known, self.entries[slot as usize].ppn);
        }
    }
}

impl ErrorCache {
    /// A host read of a flash page has been queued: counts reads of pages with known errors.
    #[inline(never)]
    pub(crate) fn on_host_read<P: Probe>(&mut self, core: &mut Core<P>, slot: Slot) {
        let read = core.pool[slot];
        if self.slot(read.ppn).is_none() {
            return;
        }
        let rber = core.rber_of(read.ppn);
        let without = core.physics.ecc.level_for(rber);
        let stats = &mut self.stats;
        stats.cached_reads += 1;
        stats.lower_level_reads += u64::from(read.level.max(read.needed) < without);
    }

    /// A host read has ended: stores the errors of its page if the read was decoded and the page is still valid and
    /// read-hot.
    #[inline(never)]
    pub(crate) fn on_decoded<P: Probe>(
        &mut self,
        core: &mut Core<P>,
        map: &mut impl Map<P>,
        read: &Transaction,
    ) {
        let is_newest = core.ftl.map.get(read.lpn) == Some(read.ppn);
        if read.is_uncorrectable() || !is_newest || !core.read_counts.is_hot(read.ppn) {
            return;
        }
        let rber = core.rber_of(read.ppn);
        let evicted = self.remember(&mut core.physics.known, read.ppn, rber);
        self.stats.known_errors_evicted += evicted;
        // The known errors are corrected before the next read is decoded, so the page's read level starts again at 1.
        if self.slot(read.ppn).is_some() {
            map.on_corrected(core, read.lpn);
        }
    }

    /// Checks that every entry belongs to a valid page, or to a page in a pinned block, and that number and size of the
    /// entries are right.
    ///
    /// # Errors
    /// The first inconsistency found.
    pub(crate) fn audit<P: Probe>(&self, core: &Core<P>) -> Result<(), String> {
        let pages = (0..core.geometry.pages).map(Ppn);
        let (mut entries, mut bytes) = (0, 0);
        for (ppn, slot) in pages.filter_map(|ppn| Some((ppn, self.slot(ppn)?))) {
            let entry = &self.entries[slot as usize];
            // An invalid page keeps its entry, and its block a pin, until the program that replaces the page has ended.
            let is_pinned = core.array.block(core.geometry.block_of(ppn)).pins > 0;
            if entry.ppn != ppn || !is_pinned && !core.ftl.is_valid(&core.geometry, ppn) {
                return Err(format!(
                    "the error cache has an entry of {}, but the page is invalid or the entry is of another page",
                    core.geometry.show(ppn)
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::base::rng::Stream;

    #[test]
    fn an_entry_is_a_header_and_a_position_for_each_error() {
        // A page of 4 KiB has 32,768 bits, so a position takes 15 bits.
        let cache = ErrorCache::with_size(1024, 32_768, 8);
        for (errors, bytes) in [(0, 0), (1, 8 + 2), (8, 8 + 15), (9, 8 + 17), (164, 8 + 308)] {
            assert_eq!(cache.entry_bytes(f64::from(errors) / 32_768.0), bytes, "{errors} errors");
        }
        assert_eq!(cache.entry_bytes(0.49 / 32_768.0), 0);
        // With one bit more than 2^15 in the page, a position takes 16 bits.
        assert_eq!(ErrorCache::with_size(1024, 32_769, 8).entry_bytes(8.0 / 32_769.0), 8 + 16);
    }

    #[test]
    fn the_cache_evicts_the_least_recently_stored_entry_as_a_naive_twin_does() {
        let (pages, size) = (40, 2048);
        let mut cache = ErrorCache::with_size(size, 32_768, pages);
        let mut errors = KnownErrors::new(pages);
        // Page, RBER and bytes of each entry, the most recently stored entry last.
        let mut twin: Vec<(Ppn, f64, u64)> = Vec::new();
        let mut stream = Stream::new(3, "error cache");
        let (mut evictions, mut too_large) = (0, 0);
        for step in 0..20_000 {
            let ppn = Ppn(stream.below(pages.into()) as u32);
            twin.retain(|&(other, ..)| other != ppn);
            if stream.below(8) == 0 {
                cache.drop_page(&mut errors, ppn);
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
                    twin.push((ppn, rber, bytes));
                }
                assert_eq!(cache.remember(&mut errors, ppn, rber), evicted);
                evictions += evicted;
            }
            for ppn in (0..pages).map(Ppn) {
                let known = twin.iter().find(|entry| entry.0 == ppn).map(|entry| entry.1);
                assert_eq!(cache.slot(ppn).map(|_| errors.of(ppn)), known, "step {step}, page {}", ppn.0);
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
            pages as usize,
            "the list of entries has grown beyond its first allocation"
        );
    }
}
