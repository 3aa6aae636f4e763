//! The write cache: a write-back DRAM cache in front of the map, in the order of use.
//!
//! Pages are cached whole or in part: an entry knows which of its sectors are there and which of these flash does not
//! have, so a partial write needs no read until its page is written back. Reads allocate. A page that is being written
//! back still counts as dirty.
//!
//! This is the cache's bookkeeping, without time: `mod.rs` and `write_back.rs` move the data. When dirty pages are
//! written back is the sync policy's to say ([`sync`]).

use super::sync::{self, CacheView, Coldness, SyncPolicy};
use super::{CacheSpec, DirtyBudget};
use crate::base::geometry::Lpn;
use crate::base::huge::Huge;
pub use crate::base::ids::CacheSlot;
use crate::base::list::{Link, List, ListLinks};
use crate::core::Queue;

/// How far the writing back of a page is.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum WriteBack {
    /// It is not being written back.
    #[default]
    None,
    /// It waits for its map entry, for the sectors that are not there, or for a place.
    Scheduled,
    /// Its program is queued or under way.
    Program,
}

/// A cached page.
#[derive(Clone, Debug)]
pub struct CachedPage {
    /// Which page.
    pub lpn: Lpn,
    /// Sectors that are there, one bit each.
    pub valid: u64,
    /// Sectors that flash does not have and no program under way brings, one bit each.
    pub dirty: u64,
    /// Sequence number of the newest write in it, or of what was read from flash.
    pub sequence: u64,
    /// How far its writing back is.
    pub write_back: WriteBack,
    /// Its other sectors are being read from flash.
    pub is_fetched: bool,
    /// It leaves when what is under way for it is over.
    pub leaves: bool,
    /// Sectors that are lost: flash had them and could not read them, and nobody has written them since.
    pub lost: u64,
    /// Neither flash nor the host has put anything in it yet: it reads as nothing.
    pub is_blank: bool,
    /// Deallocated: nobody finds it any more.
    pub is_dropped: bool,
    /// The newest acknowledged write among its dirty sectors; 0: none.
    pub acknowledged: u64,
    /// The same of what the program under way brings to flash.
    pub placed_acknowledged: u64,
    /// The flush epoch that waits for its dirty sectors.
    pub epoch: u64,
    /// The flush epoch that waits for the program under way.
    pub placed_epoch: u64,
    /// Host pages that wait for it: reads for the fetch, writes for the end of the write-back.
    pub waiting: Queue,
    /// Host pages written that are done only when flash has them.
    pub durable: Queue,
    /// Those of them that the program under way brings there.
    pub landing: Queue,
    place: Recency,
    used: Link,
    dirty_used: Link,
}

/// Where an entry is in the order of use.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Recency {
    Out,
    Warm,
    Cold,
}

impl CachedPage {
    /// Whether flash lacks any of it.
    #[inline(always)]
    pub fn is_dirty(&self) -> bool {
        self.dirty != 0 || self.write_back != WriteBack::None
    }

    /// The newest acknowledged write that flash lacks; 0: none. What power loss must not take.
    #[inline(always)]
    pub fn unflushed(&self) -> u64 {
        self.acknowledged.max(self.placed_acknowledged)
    }

    /// Whether nothing is under way for it.
    #[inline(always)]
    fn is_idle(&self) -> bool {
        self.write_back == WriteBack::None && !self.is_fetched
    }
}

/// The links of the order of use.
struct ByUse<'a>(&'a mut [CachedPage]);

impl ListLinks for ByUse<'_> {
    #[inline(always)]
    fn link(&mut self, slot: u32) -> &mut Link {
        &mut self.0[slot as usize].used
    }
}

/// The links of the same order among the dirty ones.
struct ByDirtyUse<'a>(&'a mut [CachedPage]);

impl ListLinks for ByDirtyUse<'_> {
    #[inline(always)]
    fn link(&mut self, slot: u32) -> &mut Link {
        &mut self.0[slot as usize].dirty_used
    }
}

/// The cached pages.
#[derive(Debug)]
pub struct WriteCache {
    /// For each LPN its slot + 1; 0: not cached.
    slots: Huge<u32>,
    entries: Vec<CachedPage>,
    free: Vec<CacheSlot>,
    capacity: u32,
    /// Pages in use order: those used last, then the cold ones.
    warm: List,
    cold: List,
    cold_max: u32,
    /// Dirty pages that are not being written back, in use order.
    dirty: List,
    /// Dirty pages, those being written back included.
    dirty_pages: u32,
    /// Pages with an acknowledged write that flash lacks.
    unflushed: u32,
    /// Pages being written back.
    writing: u32,
    /// Entries that leave when they can.
    leaving: u32,
    budget: u32,
    sync: Box<dyn SyncPolicy>,
}

impl WriteCache {
    /// The cache of a validated `[cache]` section, for so many logical pages; `None` without one.
    pub fn new(spec: &CacheSpec, logical_pages: u32, page_bytes: u32) -> Option<Self> {
        let pages = spec.size_bytes / u64::from(page_bytes);
        if pages == 0 {
            return None;
        }
        let sync = sync::make(&spec.sync);
        let capacity = u32::try_from(pages).unwrap_or(u32::MAX).min(logical_pages);
        let share = |share: f64| libm::floor(share * f64::from(capacity) + 1e-9) as u32;
        let budget = match spec.dirty_budget {
            _ if !sync.keeps_budget() => capacity,
            DirtyBudget::Share(part) => share(part),
            // Nothing before it is measured.
            DirtyBudget::Measured => 0,
        };
        Some(Self {
            slots: Huge::zeroed(logical_pages as usize),
            entries: Vec::with_capacity(capacity as usize),
            free: Vec::new(),
            capacity,
            warm: List::default(),
            cold: List::default(),
            cold_max: share(sync.cold_share()),
            dirty: List::default(),
            dirty_pages: 0,
            unflushed: 0,
            writing: 0,
            leaving: 0,
            budget,
            sync,
        })
    }

    /// Slots that have been used so far; all slots in use are below.
    pub fn slots_used(&self) -> usize {
        self.entries.len()
    }

    /// Pages that fit.
    pub fn capacity(&self) -> u32 {
        self.capacity
    }

    /// Dirty pages allowed.
    pub fn budget(&self) -> u32 {
        self.budget
    }

    /// Allows so many dirty pages from now on; 0: every write goes through to flash.
    pub fn set_budget(&mut self, pages: u32) {
        self.budget = pages;
    }

    /// Pages that a share of the cache is.
    pub fn pages_of(&self, share: f64) -> u32 {
        libm::floor(share * f64::from(self.capacity) + 1e-9) as u32
    }

    /// Dirty pages, those being written back included.
    pub fn dirty_pages(&self) -> u32 {
        self.dirty_pages
    }

    /// Pages with an acknowledged write that flash lacks: what would be lost without a flush at power loss.
    pub fn unflushed(&self) -> u32 {
        self.unflushed
    }

    /// Pages being written back.
    pub fn writing(&self) -> u32 {
        self.writing
    }

    /// Entries that will make room.
    pub fn leaving(&self) -> u32 {
        self.leaving
    }

    /// The sync policy.
    pub fn sync(&self) -> &dyn SyncPolicy {
        &*self.sync
    }

    /// An entry.
    #[inline(always)]
    pub fn entry(&self, slot: CacheSlot) -> &CachedPage {
        &self.entries[slot.index()]
    }

    /// An entry, to change.
    #[inline(always)]
    pub fn entry_mut(&mut self, slot: CacheSlot) -> &mut CachedPage {
        &mut self.entries[slot.index()]
    }

    /// The slot of a cached page.
    #[inline(always)]
    pub fn find(&self, lpn: Lpn) -> Option<CacheSlot> {
        self.slots[lpn.index()].checked_sub(1).map(CacheSlot)
    }

    /// What the sync policy may look at.
    pub fn view(&self) -> CacheView {
        let oldest_dirty = match self.oldest_dirty() {
            None => Coldness::None,
            Some(slot) if self.entry(slot).place == Recency::Cold => Coldness::Cold,
            Some(_) => Coldness::Warm,
        };
        CacheView {
            dirty: self.dirty_pages,
            writing: self.writing,
            budget: self.budget,
            capacity: self.capacity,
            oldest_dirty,
        }
    }

    /// The least recently used dirty page that is not being written back.
    pub fn oldest_dirty(&self) -> Option<CacheSlot> {
        self.dirty.last().map(CacheSlot)
    }

    /// Takes a slot out of the order of use.
    fn unlink(&mut self, slot: CacheSlot) {
        match self.entry(slot).place {
            Recency::Out => {}
            Recency::Warm => self.warm.remove(&mut ByUse(&mut self.entries), slot.0),
            Recency::Cold => self.cold.remove(&mut ByUse(&mut self.entries), slot.0),
        }
        self.entry_mut(slot).place = Recency::Out;
    }

    /// The page has been used: it is the most recently used one, and does not leave any more if it was about to.
    pub fn touch(&mut self, slot: CacheSlot) {
        self.unlink(slot);
        if std::mem::take(&mut self.entry_mut(slot).leaves) {
            self.leaving -= 1;
        }
        self.warm.push_first(&mut ByUse(&mut self.entries), slot.0);
        self.entry_mut(slot).place = Recency::Warm;
        // The cold ones are the last so many of all.
        let warm_max = self.capacity - self.cold_max;
        if self.warm.len() > warm_max {
            let last = self.warm.last().expect("it is longer than its limit");
            self.warm.remove(&mut ByUse(&mut self.entries), last);
            self.cold.push_first(&mut ByUse(&mut self.entries), last);
            self.entry_mut(CacheSlot(last)).place = Recency::Cold;
        }
        if self.is_listed_dirty(slot) {
            self.dirty.remove(&mut ByDirtyUse(&mut self.entries), slot.0);
            self.dirty.push_first(&mut ByDirtyUse(&mut self.entries), slot.0);
        }
    }

    /// Whether an entry is in the list of dirty pages that can be written back.
    fn is_listed_dirty(&self, slot: CacheSlot) -> bool {
        let entry = self.entry(slot);
        entry.dirty != 0 && entry.write_back == WriteBack::None && !entry.is_dropped
    }

    /// Slots that no page has.
    pub fn free_slots(&self) -> u32 {
        self.capacity - self.entries.len() as u32 + self.free.len() as u32
    }

    /// A slot for another page: a free one, or that of the least recently used page if nothing has to be done first and
    /// no dirty page is to leave before it. With whether a page has left for it.
    pub fn take_slot(&mut self) -> Option<(CacheSlot, bool)> {
        if let Some(slot) = self.free.pop() {
            return Some((slot, false));
        }
        if (self.entries.len() as u32) < self.capacity {
            self.entries.push(CachedPage {
                lpn: Lpn(0),
                valid: 0,
                dirty: 0,
                sequence: 0,
                write_back: WriteBack::None,
                is_fetched: false,
                leaves: false,
                lost: 0,
                is_blank: true,
                is_dropped: false,
                acknowledged: 0,
                placed_acknowledged: 0,
                epoch: 0,
                placed_epoch: 0,
                waiting: Queue::default(),
                durable: Queue::default(),
                landing: Queue::default(),
                place: Recency::Out,
                used: Link::default(),
                dirty_used: Link::default(),
            });
            return Some((CacheSlot(self.entries.len() as u32 - 1), false));
        }
        let slot = self.least_recently_used().filter(|_| self.dirty_victim().is_none())?;
        let entry = self.entry(slot);
        if entry.is_dirty() || !entry.is_idle() {
            return None;
        }
        self.unlink(slot);
        let lpn = self.entry(slot).lpn;
        self.slots[lpn.index()] = 0;
        Some((slot, true))
    }

    /// The least recently used dirty page, if the policy says that it leaves before clean ones.
    fn dirty_victim(&self) -> Option<CacheSlot> {
        self.oldest_dirty().filter(|_| self.sync.evicts_dirty_first(&self.view()))
    }

    fn least_recently_used(&self) -> Option<CacheSlot> {
        self.cold.last().or(self.warm.last()).map(CacheSlot)
    }

    /// Puts `lpn`, which is not cached, into a slot taken for it, with nothing of it there yet.
    pub fn insert(&mut self, slot: CacheSlot, lpn: Lpn) {
        debug_assert!(self.find(lpn).is_none(), "LPN {} is cached already", lpn.0);
        self.slots[lpn.index()] = slot.0 + 1;
        let entry = self.entry_mut(slot);
        (entry.lpn, entry.valid, entry.dirty, entry.sequence, entry.lost) = (lpn, 0, 0, 0, 0);
        entry.is_blank = true;
        self.touch(slot);
    }

    /// Chooses a page that leaves: the least recently used one, or the least recently used dirty one if the policy
    /// says so. It leaves as soon as flash has it; `None` when every page is about to leave.
    pub fn choose_victim(&mut self) -> Option<CacheSlot> {
        let slot = self.dirty_victim().or(self.least_recently_used())?;
        self.unlink(slot);
        self.entry_mut(slot).leaves = true;
        self.leaving += 1;
        Some(slot)
    }

    /// `sectors` of a page have been written, the `whole` ones of them from end to end. The write is acknowledged unless
    /// it goes `through` to flash first.
    pub fn write(&mut self, slot: CacheSlot, sectors: u64, whole: u64, sequence: u64, through: bool) {
        let was_dirty = self.entry(slot).is_dirty();
        let was_listed = self.is_listed_dirty(slot);
        let was_unflushed = self.entry(slot).unflushed() != 0;
        let entry = self.entry_mut(slot);
        if !through {
            entry.acknowledged = sequence;
        }
        entry.valid |= sectors;
        entry.dirty |= sectors;
        entry.lost &= !whole;
        entry.sequence = sequence;
        entry.is_blank = false;
        self.dirty_pages += u32::from(!was_dirty);
        self.unflushed += u32::from(!through && !was_unflushed);
        if !was_listed && self.is_listed_dirty(slot) {
            self.dirty.push_first(&mut ByDirtyUse(&mut self.entries), slot.0);
        }
        self.touch(slot);
    }

    /// A dirty page is going to be written back.
    pub fn begin_write_back(&mut self, slot: CacheSlot) {
        debug_assert!(self.is_listed_dirty(slot), "LPN {} is not dirty", self.entry(slot).lpn.0);
        self.dirty.remove(&mut ByDirtyUse(&mut self.entries), slot.0);
        self.entry_mut(slot).write_back = WriteBack::Scheduled;
        self.writing += 1;
    }

    /// What is dirty now goes to flash with the program that is being queued.
    pub fn on_placed(&mut self, slot: CacheSlot) {
        let entry = self.entry_mut(slot);
        entry.dirty = 0;
        entry.write_back = WriteBack::Program;
        entry.placed_epoch = entry.epoch;
        entry.placed_acknowledged = std::mem::take(&mut entry.acknowledged);
        entry.landing = std::mem::take(&mut entry.durable);
    }

    /// A clean page is written once more, for a program of its own: it counts as dirty until that is done.
    pub fn begin_rewrite(&mut self, slot: CacheSlot, epoch: u64) {
        let entry = self.entry_mut(slot);
        debug_assert!(
            entry.dirty == 0 && entry.write_back == WriteBack::None,
            "LPN {} is dirty",
            entry.lpn.0
        );
        entry.write_back = WriteBack::Program;
        (entry.epoch, entry.placed_epoch) = (epoch, epoch);
        self.writing += 1;
        self.dirty_pages += 1;
    }

    /// The next page at or after slot `from` that is clean, whole and at rest: one that can be written once more.
    pub fn next_clean(&self, from: CacheSlot, whole: u64) -> Option<CacheSlot> {
        let is_good = |entry: &CachedPage| {
            let is_there =
                entry.valid == whole && entry.lost == 0 && !entry.is_blank && entry.place != Recency::Out;
            is_there && !entry.is_dirty() && entry.is_idle() && !entry.is_dropped
        };
        (from.0..self.entries.len() as u32).map(CacheSlot).find(|&slot| is_good(self.entry(slot)))
    }

    /// A write-back is over; whether the page is clean now.
    pub fn end_write_back(&mut self, slot: CacheSlot) -> bool {
        let entry = self.entry_mut(slot);
        entry.write_back = WriteBack::None;
        let was_unflushed = entry.unflushed() != 0;
        entry.placed_acknowledged = 0;
        let is_unflushed = entry.unflushed() != 0;
        self.unflushed -= u32::from(was_unflushed && !is_unflushed);
        self.writing -= 1;
        if self.is_listed_dirty(slot) {
            self.dirty.push_first(&mut ByDirtyUse(&mut self.entries), slot.0);
            return false;
        }
        self.dirty_pages -= 1;
        true
    }

    /// Deallocates a page. It is gone for everyone at once, and its slot free when nothing is under way for it any more.
    pub fn forget(&mut self, slot: CacheSlot) {
        if self.is_listed_dirty(slot) {
            self.dirty.remove(&mut ByDirtyUse(&mut self.entries), slot.0);
            self.dirty_pages -= 1;
        }
        let lpn = self.entry(slot).lpn;
        self.slots[lpn.index()] = 0;
        self.unlink(slot);
        self.unflushed -= u32::from(self.entry(slot).unflushed() != 0);
        let entry = self.entry_mut(slot);
        (entry.acknowledged, entry.placed_acknowledged) = (0, 0);
        entry.dirty = 0;
        entry.is_dropped = true;
        if !std::mem::replace(&mut entry.leaves, true) {
            self.leaving += 1;
        }
    }

    /// Frees the slot of a page that leaves, if nothing is under way for it; whether it did.
    pub fn free_if_over(&mut self, slot: CacheSlot) -> bool {
        let entry = self.entry(slot);
        if !entry.leaves || entry.dirty != 0 || !entry.is_idle() {
            return false;
        }
        if !entry.is_dropped {
            let lpn = self.entry(slot).lpn;
            self.slots[lpn.index()] = 0;
        }
        let entry = self.entry_mut(slot);
        (entry.leaves, entry.is_dropped) = (false, false);
        self.leaving -= 1;
        self.free.push(slot);
        true
    }

    /// The dirty pages in the order in which an emergency flush writes them: first those with acknowledged writes, of
    /// these first what `is_first` names, then by use.
    pub fn flush_order(&self, newest_first: bool, is_first: impl Fn(Lpn) -> bool) -> Vec<CacheSlot> {
        let mut by_use = Vec::new();
        for list in [&self.warm, &self.cold] {
            let mut next = list.first();
            while let Some(slot) = next {
                by_use.push(CacheSlot(slot));
                next = self.entry(CacheSlot(slot)).used.after();
            }
        }
        // Those that are leaving are in no list: nobody has used them for longest.
        let slots = (0..self.entries.len() as u32).map(CacheSlot);
        by_use.extend(slots.filter(|&slot| self.entry(slot).place == Recency::Out));
        by_use.retain(|&slot| self.entry(slot).is_dirty() && !self.entry(slot).is_dropped);
        if !newest_first {
            by_use.reverse();
        }
        by_use.sort_by_key(|&slot| (self.entry(slot).unflushed() == 0, !is_first(self.entry(slot).lpn)));
        by_use
    }

    /// Checks the cache against itself.
    ///
    /// # Errors
    /// The first thing that is wrong.
    pub fn audit(&self) -> Result<(), String> {
        let (mut dirty, mut unflushed, mut writing, mut leaving, mut listed, mut in_use) = (0, 0, 0, 0, 0, 0);
        for (slot, entry) in (0..).map(CacheSlot).zip(&self.entries) {
            if self.free.contains(&slot) {
                continue;
            }
            let found = self.find(entry.lpn) == Some(slot);
            if found == entry.is_dropped {
                return Err(format!("the cached page of LPN {} is not where it is looked for", entry.lpn.0));
            }
            if entry.dirty & !entry.valid != 0 {
                return Err(format!("LPN {} has dirty sectors that are not there", entry.lpn.0));
            }
            dirty += u32::from(entry.is_dirty());
            unflushed += u32::from(entry.unflushed() != 0);
            writing += u32::from(entry.write_back != WriteBack::None);
            leaving += u32::from(entry.leaves);
            listed += u32::from(self.is_listed_dirty(slot));
            in_use += u32::from(entry.place != Recency::Out);
        }
        let counts = [
            ("dirty", dirty, self.dirty_pages),
            ("with acknowledged writes that flash lacks", unflushed, self.unflushed),
            ("being written back", writing, self.writing),
            ("leaving", leaving, self.leaving),
            ("waiting to be written back", listed, self.dirty.len()),
            ("in the order of use", in_use, self.warm.len() + self.cold.len()),
        ];
        for (what, found, counted) in counts {
            if found != counted {
                return Err(format!("the write cache has {found} pages {what} and counts {counted}"));
            }
        }
        // With a budget of nothing writes go through, and what was dirty before leaves.
        if self.unflushed > self.budget && self.budget > 0 {
            return Err(format!("{} dirty pages, the budget is {}", self.unflushed, self.budget));
        }
        Ok(())
    }
}
