//! `ftl.map.demand`: DFTL (Gupta, Kim, Urgaonkar, ASPLOS 2009). The map is stored in flash, in translation pages; the
//! entries in use are cached.
//!
//! This file is the controller's bookkeeping, without time: which entries are cached, which cached entries are dirty,
//! and which translation pages in flash are out of date. `mod.rs` reads and programs the translation pages. Each
//! translation page has an LPN, after those of the host, and is written like any other unit. Its PPN is kept in RAM
//! (DFTL's global translation directory).
//!
//! [`UnitMap`] has the newest mapping of every LPN, cached or not, so once the time of a miss has been simulated, a
//! lookup is an array access. Dirty bits and stale marks show which mappings in flash are out of date. With the oracle,
//! an image of the contents of the translation pages verifies these bits and marks.

use super::Cache;
use super::Eviction;
use crate::base::geometry::{Lpn, UnitId};
use crate::base::huge::Huge;
pub use crate::base::ids::Tvpn;
use crate::base::policy::PolicyError;
use crate::base::state::{state, value};
use crate::core::Queue;
use crate::ftl::UnitMap;

/// Bytes of one PPN in a translation page.
const PPN_BYTES: u32 = 4;

/// The stage of the write-back of a translation page.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum WriteBack {
    /// The translation page is not being written back.
    #[default]
    None,
    /// The write-back waits for the read of the old version, which has the unchanged entries.
    Read,
    /// The write-back waits for a free unit.
    Room,
    /// The program of the new version is queued or under way.
    Program,
}

/// The state of a translation page.
#[derive(Clone, Debug, Default)]
pub struct TranslationPage {
    /// Units that wait for an entry of this page.
    pub waiting: Queue,
    /// Whether the page is being read.
    pub is_being_read: bool,
    /// The stage of the page's write-back.
    pub write_back: WriteBack,
    /// Whether the page needs another write-back, because an entry changed after the program of the present one had
    /// been queued.
    pub write_back_again: bool,
    /// Whether RAM has changes of the page that are in no cached entry: the page in flash is out of date.
    pub is_stale: bool,
    /// Whether the page is in the list of a background job, which writes the page back at the end of the job.
    pub is_deferred: bool,
    /// The level of the last read of the page; 0: not known.
    pub level: u8,
}

/// The state of a demand map.
#[derive(Debug)]
pub struct DemandMap {
    /// The cached entries.
    pub cache: Cache,
    /// One bit per LPN: whether the cached entry is newer than the translation page in flash.
    dirty: Huge<u64>,
    /// The translation pages.
    pub pages: Box<[TranslationPage]>,
    entries_per_page: u32,
    host_units: u32,
    /// By LPN, PPN + 1 in the translation page in flash, 0: unmapped. Only kept for the oracle.
    image: Option<Huge<u32>>,
}

impl DemandMap {
    /// Number of map entries of a translation page, which is a unit.
    pub fn entries_per_page(unit_bytes: u32) -> u32 {
        unit_bytes / PPN_BYTES
    }

    /// Number of translation pages of a drive.
    pub fn pages_of(logical_units: u32, unit_bytes: u32) -> u32 {
        logical_units.div_ceil(Self::entries_per_page(unit_bytes))
    }

    /// The map of a drive with `host_units` logical units, with an empty cache.
    pub fn new(
        cache_bytes: u64,
        eviction: Eviction,
        host_units: u32,
        unit_bytes: u32,
        with_image: bool,
    ) -> Self {
        let pages = Self::pages_of(host_units, unit_bytes);
        Self {
            cache: Cache::new(cache_bytes, host_units, eviction),
            dirty: Huge::zeroed(host_units.div_ceil(64) as usize),
            pages: vec![TranslationPage::default(); pages as usize].into(),
            entries_per_page: Self::entries_per_page(unit_bytes),
            host_units,
            image: with_image.then(|| Huge::zeroed(host_units as usize)),
        }
    }

    /// The numbers of all translation pages.
    pub fn numbers(&self) -> impl Iterator<Item = Tvpn> + Clone + use<> {
        (0..self.pages.len() as u32).map(Tvpn)
    }

    /// The translation page with the entry of `lpn`.
    #[inline(always)]
    pub fn page_of(&self, lpn: Lpn) -> Tvpn {
        Tvpn(lpn.0 / self.entries_per_page)
    }

    /// The LPN of a translation page itself.
    #[inline(always)]
    pub fn lpn_of(&self, page: Tvpn) -> Lpn {
        Lpn(self.host_units + page.0)
    }

    /// The translation page whose LPN is `lpn`; `None` if `lpn` is not the LPN of a translation page.
    #[inline(always)]
    pub fn translation_page(&self, lpn: Lpn) -> Option<Tvpn> {
        // The LPNs after those of the translation pages are those of combination pages.
        lpn.0.checked_sub(self.host_units).map(Tvpn).filter(|page| page.index() < self.pages.len())
    }

    fn entries(&self, page: Tvpn) -> std::ops::Range<u32> {
        let first = page.0 * self.entries_per_page;
        first..(first + self.entries_per_page).min(self.host_units)
    }

    /// Prefetches into the CPU's cache whether the entry of `lpn` is dirty.
    #[inline(always)]
    pub fn prefetch_dirty(&self, lpn: Lpn) {
        self.dirty.prefetch(lpn.index() / 64);
    }

    #[inline(always)]
    fn is_dirty(&self, lpn: Lpn) -> bool {
        self.dirty[lpn.index() / 64] >> (lpn.0 % 64) & 1 == 1
    }

    /// The level bits of a unit: for a host unit those of its cached entry, for a translation page those in RAM. 0: not
    /// known.
    #[inline]
    pub fn level(&self, lpn: Lpn) -> u8 {
        match self.translation_page(lpn) {
            Some(page) => self.pages[page.index()].level,
            None => self.cache.level(lpn).unwrap_or(0),
        }
    }

    /// Sets the level bits of a unit; ignored for a host unit whose entry is not cached.
    #[inline]
    pub fn set_level(&mut self, lpn: Lpn, level: u8) {
        match self.translation_page(lpn) {
            Some(page) => self.pages[page.index()].level = level,
            None => self.cache.set_level(lpn, level),
        }
    }

    /// Brings the entry of `lpn` into the cache with the level bits `level`, unless the entry is already cached.
    /// Returns whether an entry was evicted and, if the evicted entry was dirty, which translation page has to be
    /// written back.
    ///
    /// # Errors
    /// When an eviction policy from outside has failed. Then the entry is not brought in.
    #[inline]
    pub fn load(&mut self, lpn: Lpn, level: u8) -> Result<Loaded, PolicyError> {
        if self.cache.contains(lpn) {
            return Ok(Loaded::default());
        }
        let Some(evicted) = self.cache.insert(lpn, level)? else { return Ok(Loaded::default()) };
        let mut loaded = Loaded { evicted: true, write_back: None };
        if self.is_dirty(evicted) {
            self.dirty[evicted.index() / 64] &= !(1 << (evicted.0 % 64));
            let page = self.page_of(evicted);
            self.pages[page.index()].is_stale = true;
            loaded.write_back = Some(page);
        }
        Ok(loaded)
    }

    /// The mapping of `lpn` has changed. If its entry is cached, the entry becomes dirty. If not, its translation page
    /// becomes stale and is returned.
    #[inline]
    pub fn on_changed(&mut self, lpn: Lpn) -> Option<Tvpn> {
        if self.cache.contains(lpn) {
            self.dirty[lpn.index() / 64] |= 1 << (lpn.0 % 64);
            return None;
        }
        let page = self.page_of(lpn);
        self.pages[page.index()].is_stale = true;
        Some(page)
    }

    /// `lpn` has been mapped without simulated time. `Mapping::settle` will write its translation page.
    pub fn on_mapped_now(&mut self, lpn: Lpn) {
        if lpn.0 >= self.host_units {
            return;
        }
        // Preconditioning maps units at random, and its cache is empty: no entry is looked up then.
        if self.cache.is_empty() {
            let page = self.page_of(lpn);
            self.pages[page.index()].is_stale = true;
        } else {
            self.on_changed(lpn);
        }
    }

    /// A translation page is about to be programmed with all its changes, so its cached entries become clean. Returns
    /// the number of entries that were dirty.
    pub fn write(&mut self, page: Tvpn, map: &UnitMap) -> u32 {
        let entries = self.entries(page);
        let mut count = 0;
        let mut lpn = entries.start;
        while lpn < entries.end {
            let word = &mut self.dirty[lpn as usize / 64];
            // The bits up to the end of the word or to the last entry.
            let bits = (64 - lpn % 64).min(entries.end - lpn);
            if *word != 0 {
                let mask = (!0 >> (64 - bits)) << (lpn % 64);
                count += (*word & mask).count_ones();
                *word &= !mask;
            }
            lpn += bits;
        }
        self.pages[page.index()].is_stale = false;
        if let Some(image) = &mut self.image {
            for lpn in entries {
                image[lpn as usize] = map.get(Lpn(lpn)).map_or(0, |unit| unit.0 + 1);
            }
        }
        count
    }

    /// Marks all translation pages as up to date in flash, for a drive loaded from a snapshot.
    pub fn trust_flash(&mut self, map: &UnitMap) {
        for page in self.numbers() {
            self.write(page, map);
        }
    }

    /// Whether a translation page is out of date in flash.
    pub fn has_changes(&self, page: Tvpn) -> bool {
        self.pages[page.index()].is_stale || self.entries(page).any(|lpn| self.is_dirty(Lpn(lpn)))
    }

    /// Whether any entry of a translation page is mapped.
    pub fn has_entries(&self, page: Tvpn, map: &UnitMap) -> bool {
        self.entries(page).any(|lpn| map.get(Lpn(lpn)).is_some())
    }

    /// The mapping of `lpn` in the image of its translation page in flash; `None` without an image, or if RAM may have
    /// a newer mapping.
    pub fn in_flash(&self, lpn: Lpn) -> Option<Option<UnitId>> {
        let image = self.image.as_ref()?;
        let is_known = !self.is_dirty(lpn) && !self.pages[self.page_of(lpn).index()].is_stale;
        is_known.then(|| image[lpn.index()].checked_sub(1).map(UnitId))
    }

    /// Bytes of the cache, of the array of translation pages, and of the arrays by LPN.
    pub fn bytes(&self) -> u64 {
        let pages = size_of_val(&*self.pages) as u64;
        self.cache.bytes() + self.dirty.bytes() + pages + self.image.as_ref().map_or(0, Huge::bytes)
    }

    /// Checks that the cache and the dirty bits are consistent and, with an image, that the mappings in flash agree
    /// with the map.
    ///
    /// # Errors
    /// The first inconsistency found.
    pub fn audit(&self, map: &UnitMap) -> Result<(), String> {
        self.cache.audit()?;
        for lpn in (0..self.host_units).map(Lpn) {
            if self.is_dirty(lpn) && !self.cache.contains(lpn) {
                return Err(format!("the entry of LPN {} is dirty, but not cached", lpn.0));
            }
            if let Some(in_flash) = self.in_flash(lpn)
                && in_flash != map.get(lpn)
            {
                let newest = map.get(lpn);
                return Err(format!(
                    "LPN {}: its translation page in flash has {in_flash:?}, the map {newest:?}, and no change is marked",
                    lpn.0
                ));
            }
        }
        Ok(())
    }
}

/// The result of [`DemandMap::load`].
#[derive(Clone, Copy, Debug, Default)]
pub struct Loaded {
    /// Whether another entry was evicted.
    pub evicted: bool,
    /// The translation page of the evicted entry, if that entry was dirty. The page has to be written back.
    pub write_back: Option<Tvpn>,
}

value! { WriteBack enum { None, Read, Room, Program } }
value! {
    TranslationPage { waiting, is_being_read, write_back, write_back_again, is_stale, is_deferred, level }
}
state! { DemandMap { cache, dirty, pages } parts { image } fixed { entries_per_page, host_units } }
