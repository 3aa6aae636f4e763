//! The write cache: a write-back DRAM cache in front of the map, in the order of use.
//!
//! Units are cached whole or in part: an entry records which of its sectors are in the cache and which of the cached
//! sectors are dirty, so a write of part of a unit needs no read until the unit is written back. Units read from flash
//! are cached if there is a slot.
//!
//! A *dirty sector* has data that is neither in flash nor in a program under way. A *dirty unit* has dirty sectors or
//! is being written back ([`CachedUnit::is_dirty`]); a clean unit that a budget detection programs once more counts as
//! being written back. A unit is *unflushed* if one of its acknowledged writes is not in flash yet
//! ([`CachedUnit::unflushed`]); a write-through is acknowledged when it is in flash.
//!
//! This file is the cache's bookkeeping, without time: `mod.rs` and `write_back.rs` move the data. The sync policy
//! ([`sync`](super::sync)) decides when dirty units are written back, the eviction policy
//! ([`eviction`](super::eviction)) which unit leaves a full cache.

use super::eviction::{CachedOrder, EvictionPolicy};
use super::sync::{CacheView, Coldness, SyncPolicy};
use super::unit::{CachedUnit, Recency, WriteBack};
use super::{CachePolicies, CacheSpec, DirtyBudget};
use crate::base::geometry::Lpn;
use crate::base::huge::{Huge, prefetch};
pub use crate::base::ids::CacheSlot;
use crate::base::list::{Link, List, ListLinks};
use crate::base::policy::{PolicyError, PolicyFault, PolicySlot};
use crate::base::state::state;
use crate::base::steps::step;
use crate::base::units::share_of;
use crate::core::Queue;

/// Access to the list links of the order of use.
struct ByUse<'a>(&'a mut [CachedUnit]);

impl ListLinks for ByUse<'_> {
    #[inline(always)]
    fn link(&mut self, slot: u32) -> &mut Link {
        &mut self.0[slot as usize].used
    }
}

/// Access to the list links of the order of use among dirty units.
struct ByDirtyUse<'a>(&'a mut [CachedUnit]);

impl ListLinks for ByDirtyUse<'_> {
    #[inline(always)]
    fn link(&mut self, slot: u32) -> &mut Link {
        &mut self.0[slot as usize].dirty_used
    }
}

/// The cached units.
#[derive(Debug)]
pub struct WriteCache {
    /// For each LPN its slot + 1; 0: not cached, or deallocated.
    slots: Huge<u32>,
    /// The units by [`CacheSlot`]; a unit in a free slot means nothing.
    entries: Vec<CachedUnit>,
    /// Free slots among `entries`. Slots that have never been used are free too.
    free: Vec<CacheSlot>,
    /// Number of units that fit into the cache.
    capacity: u32,
    /// Number of units that fit into the write buffer beside the cache: so many leaving units take no room of the cache.
    buffer: u32,
    /// Units by use, the most recently used first; the order continues in `cold`. Leaving units are in neither list.
    warm: List,
    /// The least recently used units, the most recently used of them first.
    cold: List,
    /// The share of the cache that counts as cold, in units.
    cold_max: u32,
    /// Dirty units that are not being written back ([`WriteCache::is_listed_dirty`]), the most recently used first. A
    /// unit that was updated during its write-back enters as the first when the write-back ends.
    dirty_list: List,
    /// Number of dirty units, including those being written back.
    dirty_units: u32,
    /// Number of unflushed units.
    unflushed: u32,
    /// Number of units being written back.
    writing: u32,
    /// Number of evicted or deallocated units whose slot is not free yet.
    leaving: u32,
    /// Dirty units allowed; 0: every write is a write-through, and the dirty units are not bounded. So for a time after
    /// a budget of 0 more units than the budget may be dirty, but no more may be unflushed.
    budget: u32,
    sync: Box<dyn SyncPolicy>,
    eviction: Box<dyn EvictionPolicy>,
    /// Whether the eviction policy is told of changes of the order of use.
    is_watched: bool,
}

impl WriteCache {
    /// The most slots at which one search of a budget detection looks for a clean unit. If the search finds none, the
    /// detection programs a dummy unit, which takes the same energy.
    const LOOKS: u32 = 32;

    /// The cache of a validated `[cache]` section with its policies, for a drive of `logical_units` units; `None` if the
    /// spec has no cache.
    pub fn new(
        spec: &CacheSpec,
        policies: CachePolicies,
        buffer_units: u32,
        logical_units: u32,
        unit_bytes: u32,
    ) -> Option<Self> {
        let units = spec.size_bytes / u64::from(unit_bytes);
        if units == 0 {
            return None;
        }
        let CachePolicies { sync, eviction } = policies;
        let capacity = u32::try_from(units).unwrap_or(u32::MAX).min(logical_units);
        let buffer = buffer_units.min(logical_units);
        let mut cache = Self {
            slots: Huge::zeroed(logical_units as usize),
            entries: Vec::with_capacity((capacity + buffer) as usize),
            free: Vec::new(),
            capacity,
            buffer,
            warm: List::default(),
            cold: List::default(),
            cold_max: 0,
            dirty_list: List::default(),
            dirty_units: 0,
            unflushed: 0,
            writing: 0,
            leaving: 0,
            budget: 0,
            is_watched: eviction.watches(),
            sync,
            eviction,
        };
        cache.begin(spec);
        Some(cache)
    }

    /// Bytes of the array by LPN, and of the units for which there is memory.
    pub(crate) fn bytes(&self) -> u64 {
        self.slots.bytes() + (self.entries.capacity() * size_of::<CachedUnit>()) as u64
    }

    /// Takes fresh policies, while the cache is empty.
    pub(crate) fn set_policies(&mut self, spec: &CacheSpec, policies: CachePolicies) {
        debug_assert!(self.warm.is_empty() && self.cold.is_empty(), "the policies would not know the units");
        CachePolicies { sync: self.sync, eviction: self.eviction } = policies;
        self.is_watched = self.eviction.watches();
        self.begin(spec);
    }

    /// Sets what follows from the policies: the cold share and the first dirty budget.
    fn begin(&mut self, spec: &CacheSpec) {
        self.cold_max = share_of(self.sync.cold_share(), self.capacity);
        self.budget = match spec.dirty_budget {
            _ if !self.sync.keeps_budget() => self.memory(),
            DirtyBudget::Share(part) => share_of(part, self.memory()),
            // `PowerBackup::begin` sets the first measured budget.
            DirtyBudget::Measured => 0,
        };
    }

    /// Number of slots that have ever been used; the numbers of all slots in use are lower.
    pub fn slots_used(&self) -> usize {
        self.entries.len()
    }

    /// Number of units that fit into the cache.
    pub fn capacity(&self) -> u32 {
        self.capacity
    }

    /// The dirty budget: dirty units allowed.
    pub fn budget(&self) -> u32 {
        self.budget
    }

    /// Sets the dirty budget; 0: every write is a write-through.
    pub fn set_budget(&mut self, units: u32) {
        self.budget = units;
    }

    /// The units of cache and write buffer that may be dirty if the budget is `share` (0 to 1), rounded down; all of them
    /// under a sync policy without a budget.
    pub fn budget_of(&self, share: f64) -> u32 {
        if self.sync.keeps_budget() { share_of(share, self.memory()) } else { self.memory() }
    }

    /// Number of dirty units, including those being written back.
    pub fn dirty_units(&self) -> u32 {
        self.dirty_units
    }

    /// Number of units with an acknowledged write that is not in flash yet. Without an emergency flush, power loss
    /// would destroy these writes.
    pub fn unflushed(&self) -> u32 {
        self.unflushed
    }

    /// Number of units being written back.
    pub fn writing(&self) -> u32 {
        self.writing
    }

    /// Number of evicted or deallocated units whose slot is not free yet.
    pub fn leaving(&self) -> u32 {
        self.leaving
    }

    /// The sync policy.
    pub fn sync(&self) -> &dyn SyncPolicy {
        &*self.sync
    }

    /// The unit in a slot.
    #[inline(always)]
    pub fn entry(&self, slot: CacheSlot) -> &CachedUnit {
        step();
        &self.entries[slot.index()]
    }

    /// The unit in a slot, mutable.
    #[inline(always)]
    pub fn entry_mut(&mut self, slot: CacheSlot) -> &mut CachedUnit {
        step();
        &mut self.entries[slot.index()]
    }

    /// Prefetches the slot of a unit into the CPU's cache, or with `entries` (in a later call) the entry in the slot.
    #[inline]
    pub fn prefetch(&self, lpn: Lpn, entries: bool) {
        if !entries {
            self.slots.prefetch(lpn.index());
        } else if let Some(slot) = self.find(lpn) {
            prefetch(self.entries.as_ptr().wrapping_add(slot.index()));
        }
    }

    /// The slot of a cached unit.
    #[inline(always)]
    pub fn find(&self, lpn: Lpn) -> Option<CacheSlot> {
        self.slots[lpn.index()].checked_sub(1).map(CacheSlot)
    }

    /// The inputs of the sync policy.
    pub fn view(&self) -> CacheView {
        let oldest_dirty = match self.oldest_dirty() {
            None => Coldness::None,
            Some(slot) if self.entry(slot).recency == Recency::Cold => Coldness::Cold,
            // The unit is not leaving: the write-back of a leaving unit begins at once.
            Some(_) => Coldness::Warm,
        };
        CacheView {
            dirty: self.dirty_units,
            writing: self.writing,
            budget: self.budget,
            capacity: self.capacity,
            oldest_dirty,
        }
    }

    /// The least recently used dirty unit that is not being written back: the last one of `dirty_list`.
    pub fn oldest_dirty(&self) -> Option<CacheSlot> {
        self.dirty_list.last().map(CacheSlot)
    }

    /// Takes the unit in a slot out of the order of use, for good.
    fn unlink(&mut self, slot: CacheSlot) {
        if self.is_watched && self.entry(slot).recency != Recency::Out {
            let lpn = self.entry(slot).lpn;
            self.eviction.on_removed(slot, lpn);
        }
        self.take_out(slot);
    }

    /// Takes the unit in a slot out of the order of use.
    fn take_out(&mut self, slot: CacheSlot) {
        match self.entry(slot).recency {
            Recency::Out => {}
            Recency::Warm => self.warm.remove(&mut ByUse(&mut self.entries), slot.0),
            Recency::Cold => self.cold.remove(&mut ByUse(&mut self.entries), slot.0),
        }
        self.entry_mut(slot).recency = Recency::Out;
    }

    /// The unit has been used and becomes the most recently used unit. A unit that was leaving remains in the cache.
    pub fn touch(&mut self, slot: CacheSlot) {
        if self.is_watched {
            let &CachedUnit { lpn, recency, .. } = self.entry(slot);
            match recency {
                Recency::Out => self.eviction.on_inserted(slot, lpn),
                Recency::Warm | Recency::Cold => self.eviction.on_used(slot, lpn),
            }
        }
        self.take_out(slot);
        if std::mem::take(&mut self.entry_mut(slot).is_leaving) {
            self.leaving -= 1;
        }
        self.warm.push_first(&mut ByUse(&mut self.entries), slot.0);
        self.entry_mut(slot).recency = Recency::Warm;
        // At most `warm_max` units are warm. Of one more, the least recently used becomes cold.
        let warm_max = self.capacity - self.cold_max;
        if self.warm.len() > warm_max {
            let last = self.warm.last().expect("the list is longer than `warm_max`");
            self.warm.remove(&mut ByUse(&mut self.entries), last);
            self.cold.push_first(&mut ByUse(&mut self.entries), last);
            self.entry_mut(CacheSlot(last)).recency = Recency::Cold;
        }
        if self.is_listed_dirty(slot) {
            self.dirty_list.remove(&mut ByDirtyUse(&mut self.entries), slot.0);
            self.dirty_list.push_first(&mut ByDirtyUse(&mut self.entries), slot.0);
        }
    }

    /// Whether a unit is in `dirty_list`: it has dirty sectors, its write-back has not begun, and it has not been
    /// deallocated.
    fn is_listed_dirty(&self, slot: CacheSlot) -> bool {
        let entry = self.entry(slot);
        entry.dirty != 0 && entry.write_back == WriteBack::None && !entry.is_dropped
    }

    /// Number of units that fit into the write buffer.
    pub fn buffer(&self) -> u32 {
        self.buffer
    }

    /// Number of units that fit into the cache and the write buffer together.
    pub fn memory(&self) -> u32 {
        self.capacity + self.buffer
    }

    /// Number of units that take room of the cache: all but the leaving units in the write buffer.
    fn occupied(&self) -> u32 {
        self.entries.len() as u32 - self.free.len() as u32 - self.leaving.min(self.buffer)
    }

    /// Number of leaving units that the write buffer has no room for.
    pub fn leaving_the_cache(&self) -> u32 {
        self.leaving - self.leaving.min(self.buffer)
    }

    /// Number of free slots.
    pub fn free_slots(&self) -> u32 {
        // A leaving unit that is used again takes room of the cache, which may have none.
        self.capacity.saturating_sub(self.occupied())
    }

    /// Takes a slot for another unit: a free slot, or the slot of the unit to be evicted if that unit is clean and
    /// nothing is under way for it. Returns the slot and whether a unit was evicted.
    ///
    /// # Errors
    /// When a policy has failed.
    pub fn take_slot(&mut self) -> Result<Option<(CacheSlot, bool)>, Box<PolicyFault>> {
        if self.free_slots() > 0
            && let Some(slot) = self.free.pop()
        {
            return Ok(Some((slot, false)));
        }
        if self.free_slots() > 0 {
            self.entries.push(CachedUnit {
                lpn: Lpn(0),
                valid: 0,
                dirty: 0,
                sequence: 0,
                write_back: WriteBack::None,
                is_being_fetched: false,
                is_read_miss: false,
                is_leaving: false,
                lost: 0,
                is_blank: true,
                is_dropped: false,
                acknowledged: 0,
                placed_acknowledged: 0,
                epoch: 0,
                placed_epoch: 0,
                waiting: Queue::default(),
                awaiting_flash: Queue::default(),
                awaiting_program: Queue::default(),
                recency: Recency::Out,
                used: Link::default(),
                dirty_used: Link::default(),
            });
            return Ok(Some((CacheSlot(self.entries.len() as u32 - 1), false)));
        }
        loop {
            let Some(slot) = self.victim()? else { return Ok(None) };
            let entry = self.entry(slot);
            if entry.is_dirty() || !entry.is_idle() {
                return Ok(None);
            }
            self.unlink(slot);
            let lpn = self.entry(slot).lpn;
            self.slots[lpn.index()] = 0;
            if self.occupied() <= self.capacity {
                return Ok(Some((slot, true)));
            }
            // The cache has more units than it may have.
            self.free.push(slot);
        }
    }

    /// The unit to be evicted next: the least recently used dirty unit if the sync policy evicts dirty units first now,
    /// otherwise the choice of the eviction policy. `None` if every unit is already leaving.
    fn victim(&mut self) -> Result<Option<CacheSlot>, Box<PolicyFault>> {
        let fault = |slot, error| Box::new(PolicyFault { slot, lane: None, error });
        if let Some(slot) = self.oldest_dirty() {
            let is_first = self.sync.evicts_dirty_first(&self.view());
            if is_first.map_err(|error| fault(PolicySlot::Sync, error))? {
                return Ok(Some(slot));
            }
        }
        let Self { entries, warm, cold, capacity, dirty_units, eviction, .. } = self;
        let order = CachedOrder { entries, warm, cold, capacity: *capacity, dirty_units: *dirty_units };
        let slot = eviction.pick(&order).and_then(|slot| {
            if slot.map_or(order.is_empty(), |slot| order.contains(slot)) {
                return Ok(slot);
            }
            Err(PolicyError::new(match slot {
                None => format!("it picked no page, though {} can be evicted", order.len()),
                Some(CacheSlot(slot)) => {
                    format!("it picked slot {slot}, which has no page that can be evicted")
                }
            }))
        });
        slot.map_err(|error| fault(PolicySlot::CacheEviction, error))
    }

    /// Puts `lpn`, which must not be cached, into a slot taken for it; none of its sectors is valid yet.
    pub fn insert(&mut self, slot: CacheSlot, lpn: Lpn) {
        debug_assert!(self.find(lpn).is_none(), "LPN {} is cached already", lpn.0);
        self.slots[lpn.index()] = slot.0 + 1;
        let entry = self.entry_mut(slot);
        (entry.lpn, entry.valid, entry.dirty, entry.sequence, entry.lost) = (lpn, 0, 0, 0, 0);
        entry.is_blank = true;
        self.touch(slot);
    }

    /// Chooses a unit and begins its eviction ([`WriteCache::leave`]). The caller writes the unit back if it is dirty.
    /// Returns `None` if every unit is already leaving.
    ///
    /// # Errors
    /// When a policy has failed.
    pub fn choose_victim(&mut self) -> Result<Option<CacheSlot>, Box<PolicyFault>> {
        let slot = self.victim()?;
        if let Some(slot) = slot {
            self.leave(slot);
        }
        Ok(slot)
    }

    /// Marks a unit, which must not be leaving yet, as leaving, and takes it out of the order of use.
    /// [`WriteCache::free_if_idle`] frees its slot once the unit is clean and nothing is under way for it.
    pub fn leave(&mut self, slot: CacheSlot) {
        self.unlink(slot);
        self.entry_mut(slot).is_leaving = true;
        self.leaving += 1;
    }

    /// The host has written to a unit: to `sectors`, and of these to `complete` completely, which are no longer lost.
    /// The write counts as acknowledged unless it is a write-through (`through`).
    pub fn write(&mut self, slot: CacheSlot, sectors: u64, complete: u64, sequence: u64, through: bool) {
        let was_dirty = self.entry(slot).is_dirty();
        let was_listed = self.is_listed_dirty(slot);
        let was_unflushed = self.entry(slot).unflushed() != 0;
        let entry = self.entry_mut(slot);
        if !through {
            entry.acknowledged = sequence;
        }
        entry.valid |= sectors;
        entry.dirty |= sectors;
        entry.lost &= !complete;
        entry.sequence = sequence;
        entry.is_blank = false;
        self.dirty_units += u32::from(!was_dirty);
        self.unflushed += u32::from(!through && !was_unflushed);
        if !was_listed && self.is_listed_dirty(slot) {
            self.dirty_list.push_first(&mut ByDirtyUse(&mut self.entries), slot.0);
        }
        self.touch(slot);
    }

    /// Marks a dirty unit, which is not being written back yet, as being written back.
    pub fn begin_write_back(&mut self, slot: CacheSlot) {
        debug_assert!(self.is_listed_dirty(slot), "LPN {} is not dirty", self.entry(slot).lpn.0);
        self.dirty_list.remove(&mut ByDirtyUse(&mut self.entries), slot.0);
        self.entry_mut(slot).write_back = WriteBack::Scheduled;
        self.writing += 1;
    }

    /// A physical unit has been allocated to the write-back: all dirty sectors become part of the program that is being
    /// queued.
    pub fn on_placed(&mut self, slot: CacheSlot) {
        let entry = self.entry_mut(slot);
        entry.dirty = 0;
        entry.write_back = WriteBack::Program;
        entry.placed_epoch = entry.epoch;
        entry.placed_acknowledged = std::mem::take(&mut entry.acknowledged);
        entry.awaiting_program = std::mem::take(&mut entry.awaiting_flash);
    }

    /// A budget detection programs a clean unit once more: the unit counts as dirty and as being written back until the
    /// program ends.
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
        self.dirty_units += 1;
    }

    /// The next unit that a budget detection can program once more: clean, with all sectors valid (`full`: the bit mask
    /// of the sectors of a unit), and with nothing under way. Looks at up to `LOOKS` slots from slot `next` on, the
    /// first slot after the last one, and sets `next` to the slot at which the next search begins.
    pub fn next_clean(&self, next: &mut u32, full: u64) -> Option<CacheSlot> {
        let can_be_rewritten = |entry: &CachedUnit| {
            let is_complete =
                entry.valid == full && entry.lost == 0 && !entry.is_blank && entry.recency != Recency::Out;
            is_complete && !entry.is_dirty() && entry.is_idle() && !entry.is_dropped
        };
        let slots_used = self.entries.len() as u32;
        for _ in 0..Self::LOOKS.min(slots_used) {
            let slot = CacheSlot(*next % slots_used);
            *next = slot.0 + 1;
            if can_be_rewritten(self.entry(slot)) {
                return Some(slot);
            }
        }
        None
    }

    /// A write-back has ended; returns whether the unit is clean now. If not, sectors were written during the
    /// write-back.
    pub fn end_write_back(&mut self, slot: CacheSlot) -> bool {
        let entry = self.entry_mut(slot);
        entry.write_back = WriteBack::None;
        let was_unflushed = entry.unflushed() != 0;
        entry.placed_acknowledged = 0;
        let is_unflushed = entry.unflushed() != 0;
        self.unflushed -= u32::from(was_unflushed && !is_unflushed);
        self.writing -= 1;
        if self.is_listed_dirty(slot) {
            self.dirty_list.push_first(&mut ByDirtyUse(&mut self.entries), slot.0);
            return false;
        }
        self.dirty_units -= 1;
        true
    }

    /// Deallocates a unit: from now on lookups do not find the unit. Its slot can be freed when nothing is under way
    /// for the unit.
    pub fn forget(&mut self, slot: CacheSlot) {
        if self.is_listed_dirty(slot) {
            self.dirty_list.remove(&mut ByDirtyUse(&mut self.entries), slot.0);
            self.dirty_units -= 1;
        }
        let lpn = self.entry(slot).lpn;
        self.slots[lpn.index()] = 0;
        self.unlink(slot);
        self.unflushed -= u32::from(self.entry(slot).unflushed() != 0);
        let entry = self.entry_mut(slot);
        (entry.acknowledged, entry.placed_acknowledged) = (0, 0);
        entry.dirty = 0;
        entry.is_dropped = true;
        if !std::mem::replace(&mut entry.is_leaving, true) {
            self.leaving += 1;
        }
    }

    /// Frees the slot of a leaving unit if the unit is clean and nothing is under way for it; returns whether the slot
    /// was freed.
    pub fn free_if_idle(&mut self, slot: CacheSlot) -> bool {
        let entry = self.entry(slot);
        if !entry.is_leaving || entry.dirty != 0 || !entry.is_idle() {
            return false;
        }
        if !entry.is_dropped {
            let lpn = self.entry(slot).lpn;
            self.slots[lpn.index()] = 0;
        }
        let entry = self.entry_mut(slot);
        (entry.is_leaving, entry.is_dropped) = (false, false);
        self.leaving -= 1;
        self.free.push(slot);
        true
    }

    /// Returns the dirty units, without deallocated ones, in the order in which an emergency flush writes them.
    /// Unflushed units come before all others. Within these two groups the units for which `is_first` holds come first.
    /// The rest of the order is by use: the most recently used unit first if `newest_first`, otherwise the least
    /// recently used unit first.
    pub fn flush_order(&self, newest_first: bool, is_first: impl Fn(Lpn) -> bool) -> Vec<CacheSlot> {
        let mut by_use = Vec::new();
        for list in [&self.warm, &self.cold] {
            let mut next = list.first();
            while let Some(slot) = next {
                by_use.push(CacheSlot(slot));
                next = self.entry(CacheSlot(slot)).used.after();
            }
        }
        // Leaving units are not in the order of use; they count as the least recently used units.
        let slots = (0..self.entries.len() as u32).map(CacheSlot);
        by_use.extend(slots.filter(|&slot| self.entry(slot).recency == Recency::Out));
        by_use.retain(|&slot| self.entry(slot).is_dirty() && !self.entry(slot).is_dropped);
        if !newest_first {
            by_use.reverse();
        }
        by_use.sort_by_key(|&slot| (self.entry(slot).unflushed() == 0, !is_first(self.entry(slot).lpn)));
        by_use
    }

    /// Checks the consistency of entries, lists and counts.
    ///
    /// # Errors
    /// The first inconsistency found.
    pub fn audit(&self) -> Result<(), String> {
        let (mut dirty, mut unflushed, mut writing, mut leaving, mut listed, mut in_use) = (0, 0, 0, 0, 0, 0);
        for (slot, entry) in (0..).map(CacheSlot).zip(&self.entries) {
            if self.free.contains(&slot) {
                continue;
            }
            let found = self.find(entry.lpn) == Some(slot);
            if found == entry.is_dropped {
                return Err(format!(
                    "the slot of the cached unit of LPN {} differs from the index",
                    entry.lpn.0
                ));
            }
            if entry.dirty & !entry.valid != 0 {
                return Err(format!("LPN {} has dirty sectors that are not valid", entry.lpn.0));
            }
            dirty += u32::from(entry.is_dirty());
            unflushed += u32::from(entry.unflushed() != 0);
            writing += u32::from(entry.write_back != WriteBack::None);
            leaving += u32::from(entry.is_leaving);
            listed += u32::from(self.is_listed_dirty(slot));
            in_use += u32::from(entry.recency != Recency::Out);
        }
        let counts = [
            ("dirty", dirty, self.dirty_units),
            ("with unflushed acknowledged writes", unflushed, self.unflushed),
            ("being written back", writing, self.writing),
            ("leaving", leaving, self.leaving),
            ("waiting to be written back", listed, self.dirty_list.len()),
            ("in the order of use", in_use, self.warm.len() + self.cold.len()),
        ];
        for (what, found, counted) in counts {
            if found != counted {
                return Err(format!("the write cache has {found} units {what}, but its count is {counted}"));
            }
        }
        // Dirty units may exceed the budget, by write-throughs. With a budget of 0 every write is a write-through, but
        // units that became dirty before may still be unflushed.
        if self.unflushed > self.budget && self.budget > 0 {
            return Err(format!(
                "{} units with unflushed acknowledged writes exceed the budget of {}",
                self.unflushed, self.budget
            ));
        }
        Ok(())
    }
}

state! {
    WriteCache {
        slots,
        entries,
        free,
        warm,
        cold,
        dirty_list,
        dirty_units,
        unflushed,
        writing,
        leaving,
        budget,
    }
    // The policies that the spec can name remember nothing from one call to the next.
    fixed { capacity, buffer, cold_max, sync, eviction, is_watched }
}
