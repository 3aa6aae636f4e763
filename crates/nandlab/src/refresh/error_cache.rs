//! A cache of known error positions: pages that the host reads often decode at a lower read level, because errors that
//! were found before are turned back before decoding.
//!
//! Each host read of a page that is read often leaves the positions of all its errors, those known before included. What
//! is read later has only the errors that have come since. The least recently used entry leaves when there is no room. An
//! entry ends with its page: when what replaces it has been programmed, or with a TRIM. A copyback takes it along.
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

/// Of each entry, beside its positions: the page and how many errors it has, four bytes each.
const HEADER_BYTES: u64 = 8;

/// A page's known errors.
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

/// See the module.
#[derive(Debug)]
pub(crate) struct ErrorCache {
    size_bytes: u64,
    page_bits: u32,
    entries: Vec<PageErrors>,
    /// By page, its slot + 1; 0: none.
    slots: Huge<u32>,
    by_use: List,
    unused: List,
    bytes: u64,
    pub(crate) stats: RefreshStats,
}

/// What the cache of known errors holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ErrorCacheState {
    /// Pages whose error positions are known.
    pub entries: u64,
    /// What they take, in bytes; at most the cache's size.
    pub bytes: u64,
}

impl ErrorCache {
    /// Takes all memory it will ever need.
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

    /// Bytes of the entry of a page with this RBER: a header, and a position for each error. 0: it has no errors.
    fn entry_bytes(&self, rber: f64) -> u64 {
        let errors = libm::round(rber * f64::from(self.page_bits)) as u64;
        let position_bits = u64::from(u32::BITS - (self.page_bits - 1).leading_zeros());
        if errors == 0 { 0 } else { HEADER_BYTES + (errors * position_bits).div_ceil(8) }
    }

    /// What it holds.
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

    /// All errors of a page have been found; returns how many other entries had to leave.
    fn remember(&mut self, known: &mut KnownErrors, ppn: Ppn, rber: f64) -> u64 {
        self.drop_page(known, ppn);
        let bytes = self.entry_bytes(rber);
        if bytes == 0 || bytes > self.size_bytes {
            return 0;
        }
        let mut evicted = 0;
        while self.bytes + bytes > self.size_bytes {
            let last = self.by_use.last().expect("what takes bytes is in the list");
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

    /// A page has been copied back, and its errors with it: they are known there too.
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

    /// The data of a page is elsewhere, or nowhere.
    pub(crate) fn drop_page(&mut self, known: &mut KnownErrors, ppn: Ppn) {
        let Some(slot) = self.slot(ppn) else { return };
        self.slots[ppn.index()] = 0;
        known.set(ppn, 0.0);
        self.bytes -= u64::from(self.entries[slot as usize].bytes);
        self.by_use.remove(&mut self.entries, slot);
        self.unused.push_first(&mut self.entries, slot);
    }

    /// Power is gone, and all that was known with it.
    pub(crate) fn clear(&mut self, known: &mut KnownErrors) {
        while let Some(slot) = self.by_use.last() {
            self.drop_page(known, self.entries[slot as usize].ppn);
        }
    }
}

impl ErrorCache {
    /// A host read of a page goes to flash.
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

    /// A host read has been decoded, or has not: if it has, and the page is read often, its errors are known now.
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
        // To the next read they are as good as corrected.
        if self.slot(read.ppn).is_some() {
            map.on_corrected(core, read.lpn);
        }
    }

    /// Everything the cache knows is of a page that is somebody's data, and its bytes are what its entries take.
    ///
    /// # Errors
    /// The first thing that is wrong.
    pub(crate) fn audit<P: Probe>(&self, core: &Core<P>) -> Result<(), String> {
        let pages = (0..core.geometry.pages).map(Ppn);
        let (mut entries, mut bytes) = (0, 0);
        for (ppn, slot) in pages.filter_map(|ppn| Some((ppn, self.slot(ppn)?))) {
            let entry = &self.entries[slot as usize];
            // Until what replaces it is programmed the block of a page that is invalid is held.
            let is_held = core.array.block(core.geometry.block_of(ppn)).pins > 0;
            if entry.ppn != ppn || !is_held && !core.ftl.is_valid(&core.geometry, ppn) {
                return Err(format!("errors are known of {}, which is invalid", core.geometry.show(ppn)));
            }
            entries += 1;
            bytes += u64::from(entry.bytes);
        }
        if (entries, bytes) != (self.by_use.len(), self.bytes) || bytes > self.size_bytes {
            return Err(format!(
                "{} entries of known errors count {} bytes and take {bytes}",
                self.by_use.len(),
                self.bytes
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
        // 4 KiB: 32,768 bits, 15 to name one.
        let cache = ErrorCache::with_size(1024, 32_768, 8);
        for (errors, bytes) in [(0, 0), (1, 8 + 2), (8, 8 + 15), (9, 8 + 17), (164, 8 + 308)] {
            assert_eq!(cache.entry_bytes(f64::from(errors) / 32_768.0), bytes, "{errors} errors");
        }
        assert_eq!(cache.entry_bytes(0.49 / 32_768.0), 0);
        // One bit more than a power of two takes one more to name.
        assert_eq!(ErrorCache::with_size(1024, 32_769, 8).entry_bytes(8.0 / 32_769.0), 8 + 16);
    }

    #[test]
    fn it_keeps_what_was_used_last_as_a_naive_twin_does() {
        let (pages, size) = (40, 2048);
        let mut cache = ErrorCache::with_size(size, 32_768, pages);
        let mut errors = KnownErrors::new(pages);
        // Page, RBER, bytes: the most recently used last.
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
            assert!(cache.bytes <= size && cache.entries.len() <= cache.entries.capacity());
        }
        assert!(evictions > 1000 && too_large > 10, "{evictions} {too_large}");
        assert_eq!(cache.entries.capacity(), pages as usize, "it has taken no more memory");
    }
}
