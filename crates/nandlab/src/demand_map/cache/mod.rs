//! The mapping cache: the LPNs whose map entry is in RAM, and the read level in each entry.
//!
//! Each eviction policy keeps the entries in its own order. Each entry has a slot; lists link slots by number. An
//! operation on n entries takes O(1) time, or with `read-level` an amortised O(log n).

mod entries;
mod lru;
mod outside;
mod read_level;

use super::Eviction;
use crate::base::geometry::Lpn;
use crate::base::huge::Huge;
use crate::base::policy::PolicyError;
use crate::base::state::{State, StateError, StateReader, StateWriter, state};
use entries::{MapEntries, MapEntry};
use lru::Lru;
pub use outside::MapEviction;
use outside::Outside;
use read_level::ReadLevel;

/// Bytes of RAM that an entry takes: LPN, PPN and four level bits, aligned (LaLDPC, Section III-E).
pub const ENTRY_BYTES: u64 = 8;

/// The state of the eviction policy: the entries in the order that the policy needs.
#[derive(Debug)]
enum Order {
    Lru(Lru),
    ReadLevel(ReadLevel),
    Outside(Outside),
}

/// Calls a method of the eviction policy in use.
macro_rules! ask {
    ($order:expr, $policy:ident => $call:expr) => {
        match $order {
            Order::Lru($policy) => $call,
            Order::ReadLevel($policy) => $call,
            Order::Outside($policy) => $call,
        }
    };
}

/// The cached entries.
#[derive(Debug)]
pub struct Cache {
    /// By LPN, the level bits of its entry; 0: not cached. The level bits are in an array of their own because 64
    /// neighbours share a line of the CPU's cache: this makes a lookup faster than by slot and entry.
    levels: Huge<u8>,
    /// By LPN, the slot of its entry + 1; only valid if the entry is cached.
    slots: Huge<u32>,
    entries: MapEntries,
    capacity: u32,
    order: Order,
}

impl Cache {
    /// An empty cache of `bytes` for the LPNs below `lpns`.
    pub fn new(bytes: u64, lpns: u32, eviction: Eviction) -> Self {
        let capacity = (bytes / ENTRY_BYTES).clamp(1, u64::from(lpns.max(1))) as u32;
        let order = match eviction {
            // A policy from outside takes the place of `lru` before the first entry is cached.
            Eviction::Lru | Eviction::Outside => Order::Lru(Lru::default()),
            Eviction::ReadLevel { fixed } => Order::ReadLevel(ReadLevel::new(fixed)),
        };
        Self {
            levels: Huge::zeroed(lpns as usize),
            slots: Huge::zeroed(lpns as usize),
            entries: MapEntries::with_capacity(capacity),
            capacity,
            order,
        }
    }

    /// From now on a policy from outside chooses the entries to evict. The cache must be empty.
    pub fn evict_by(&mut self, policy: Box<dyn MapEviction>) {
        debug_assert!(self.is_empty(), "the policy would not know the entries");
        self.order = Order::Outside(Outside(policy));
    }

    /// Number of entries for which the cache has room.
    pub fn capacity(&self) -> u32 {
        self.capacity
    }

    /// Number of cached entries.
    pub fn len(&self) -> u32 {
        self.entries.len()
    }

    /// Whether no entry is cached.
    pub fn is_empty(&self) -> bool {
        self.entries.len() == 0
    }

    #[inline(always)]
    fn slot(&self, lpn: Lpn) -> Option<u32> {
        self.contains(lpn).then(|| self.slots[lpn.index()] - 1)
    }

    /// Prefetches the level bits of `lpn` into the CPU's cache.
    #[inline(always)]
    pub fn prefetch_level(&self, lpn: Lpn) {
        self.levels.prefetch(lpn.index());
    }

    /// Prefetches the level bits and the slot number of `lpn` into the CPU's cache.
    #[inline(always)]
    pub fn prefetch(&self, lpn: Lpn) {
        self.levels.prefetch(lpn.index());
        self.slots.prefetch(lpn.index());
    }

    /// Prefetches the entry of `lpn` into the CPU's cache, some time after [`Cache::prefetch`].
    #[inline(always)]
    pub fn prefetch_entry(&self, lpn: Lpn) {
        if let Some(slot) = self.slot(lpn) {
            self.entries.prefetch(slot);
        }
    }

    /// Whether the entry of `lpn` is cached.
    #[inline(always)]
    pub fn contains(&self, lpn: Lpn) -> bool {
        self.levels[lpn.index()] != 0
    }

    /// A request needs the entry of `lpn`. If the entry is cached, makes it the most recently used entry and returns
    /// `true`.
    #[inline]
    pub fn touch(&mut self, lpn: Lpn) -> bool {
        let Some(slot) = self.slot(lpn) else { return false };
        ask!(&mut self.order, order => order.on_hit(&mut self.entries, slot));
        true
    }

    /// The level bits of the entry of `lpn`; `None` if the entry is not cached.
    #[inline]
    pub fn level(&self, lpn: Lpn) -> Option<u8> {
        Some(self.levels[lpn.index()]).filter(|&level| level != 0)
    }

    /// Sets the level bits of the entry of `lpn`, if the entry is cached. This does not count as a use of the entry.
    #[inline]
    pub fn set_level(&mut self, lpn: Lpn, level: u8) {
        debug_assert!(level > 0, "levels count from 1");
        let known = self.levels[lpn.index()];
        if known != 0 && known != level {
            self.levels[lpn.index()] = level;
            let slot = self.slots[lpn.index()] - 1;
            ask!(&mut self.order, order => order.on_level(&mut self.entries, slot, level));
        }
    }

    /// Adds the entry of `lpn`, which must not be cached. Returns the LPN whose entry was evicted, if the cache was
    /// full.
    ///
    /// # Errors
    /// When a policy from outside fails or chooses an entry that is not cached. Then the entry of `lpn` is not added.
    #[inline]
    pub fn insert(&mut self, lpn: Lpn, level: u8) -> Result<Option<Lpn>, PolicyError> {
        debug_assert!(!self.contains(lpn), "LPN {} is cached already", lpn.0);
        debug_assert!(level > 0, "levels count from 1");
        let mut evicted = None;
        let slot = if self.entries.len() == self.capacity {
            let slot = self.evict()?;
            let old = self.entries[slot].lpn;
            self.levels[old.index()] = 0;
            evicted = Some(old);
            slot
        } else {
            self.entries.grow()
        };
        self.entries[slot] = MapEntry::new(lpn, level);
        self.levels[lpn.index()] = level;
        self.slots[lpn.index()] = slot + 1;
        ask!(&mut self.order, order => order.on_inserted(&mut self.entries, slot));
        Ok(evicted)
    }

    /// The slot of the entry to evict, which the order of the policy no longer has.
    #[inline]
    fn evict(&mut self) -> Result<u32, PolicyError> {
        match &mut self.order {
            Order::Lru(order) => Ok(order.evict(&mut self.entries)),
            Order::ReadLevel(order) => Ok(order.evict(&mut self.entries)),
            Order::Outside(order) => {
                let lpn = order.0.evict()?;
                if self.levels.get(lpn.index()).is_none_or(|&level| level == 0) {
                    let text = format!("it evicted the entry of LPN {}, which is not cached", lpn.0);
                    return Err(PolicyError::new(text));
                }
                Ok(self.slots[lpn.index()] - 1)
            }
        }
    }

    /// The LPNs with a cached entry, in the order of their slots.
    pub fn lpns(&self) -> impl Iterator<Item = Lpn> + '_ {
        self.entries.iter().map(|entry| entry.lpn)
    }

    /// Bytes of the arrays by LPN, and of the entries for which there is memory.
    pub fn bytes(&self) -> u64 {
        self.levels.bytes() + self.slots.bytes() + self.entries.bytes()
    }

    /// Checks the consistency of entries, index and eviction order.
    ///
    /// # Errors
    /// The first inconsistency found.
    pub fn audit(&self) -> Result<(), String> {
        for (slot, entry) in self.entries.iter().enumerate() {
            let is_found = self.slot(entry.lpn) == Some(slot as u32);
            if !is_found || self.levels[entry.lpn.index()] != entry.level {
                return Err(format!(
                    "the slot or the level of the cached entry of LPN {} differs from the index",
                    entry.lpn.0
                ));
            }
        }
        let indexed = self.levels.iter().filter(|&&level| level != 0).count();
        let ordered = match &self.order {
            Order::Lru(order) => order.len(),
            Order::ReadLevel(order) => order.len(),
            Order::Outside(_) => self.len(),
        };
        if indexed != self.len() as usize || ordered != self.len() {
            let len = self.len();
            return Err(format!(
                "{len} entries are cached, but {indexed} are in the index and {ordered} in the order of eviction"
            ));
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests;

impl State for Order {
    fn save_state(&self, out: &mut StateWriter<'_>) {
        ask!(self, policy => policy.save_state(out));
    }

    fn load_state(&mut self, from: &mut StateReader<'_>) -> Result<(), StateError> {
        ask!(self, policy => policy.load_state(from))
    }
}

state! { Cache { levels, slots, entries, order } fixed { capacity } }
