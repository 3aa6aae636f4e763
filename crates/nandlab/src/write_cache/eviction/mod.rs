//! Eviction policies of the write cache: which unit leaves the cache when a unit needs its slot.
//!
//! A policy reads the order of use ([`CachedOrder`]) and names a unit; the cache checks that the unit is there, writes
//! it back if it is dirty, and frees its slot. The order of use itself, from which `cache.sync` and the emergency flush
//! take their units, is the same under every policy. If `cache.sync` evicts dirty units before clean ones, the eviction
//! policy is not asked. Each policy is one file in this folder and one line of `policies!`.

use super::unit::{CachedUnit, Recency};
use crate::base::geometry::Lpn;
use crate::base::ids::CacheSlot;
use crate::base::list::List;
use crate::base::policy::{Choice, PolicyError, PolicyInfo, maker};
use crate::base::steps::step;

/// The cached units in the order of their use: the input of an eviction policy. Units that are leaving are not in it.
#[derive(Clone, Copy, Debug)]
pub struct CachedOrder<'a> {
    pub(super) entries: &'a [CachedUnit],
    /// The units used more recently than the cold ones.
    pub(super) warm: &'a List,
    pub(super) cold: &'a List,
    pub(super) capacity: u32,
    pub(super) dirty_units: u32,
}

impl CachedOrder<'_> {
    /// Number of units in the order.
    pub fn len(&self) -> u32 {
        self.warm.len() + self.cold.len()
    }

    /// Whether no unit is in the order.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Whether the order has a unit in this slot.
    #[inline]
    pub fn contains(&self, slot: CacheSlot) -> bool {
        self.entries.get(slot.index()).is_some_and(|entry| entry.recency != Recency::Out)
    }

    /// Units that fit into the cache.
    pub fn capacity(&self) -> u32 {
        self.capacity
    }

    /// Number of dirty units of the cache, including those being written back and those that are leaving.
    pub fn dirty_units(&self) -> u32 {
        self.dirty_units
    }

    /// The least recently used unit.
    #[inline]
    pub fn least_recently_used(&self) -> Option<CacheSlot> {
        self.cold.last().or(self.warm.last()).map(CacheSlot)
    }

    /// The units, the least recently used one first.
    pub fn by_use(&self) -> impl Iterator<Item = CacheSlot> + '_ {
        std::iter::successors(self.least_recently_used(), |slot| {
            step();
            let entry = &self.entries[slot.index()];
            let before = entry.used.before();
            let next = if entry.recency == Recency::Cold { before.or(self.warm.last()) } else { before };
            next.map(CacheSlot)
        })
    }

    /// The LPN of the unit in a slot of the order.
    pub fn lpn(&self, slot: CacheSlot) -> Lpn {
        self.entries[slot.index()].lpn
    }

    /// Whether the unit in a slot of the order is clean and nothing is under way for it, so that its slot is free at
    /// once.
    #[inline]
    pub fn is_clean(&self, slot: CacheSlot) -> bool {
        let entry = &self.entries[slot.index()];
        !entry.is_dirty() && entry.is_idle()
    }
}

/// Chooses the unit that leaves a full cache.
pub trait EvictionPolicy: std::fmt::Debug + Send + Sync {
    /// The unit to evict, one of `order`; `None` if `order` is empty. The unit may stay: the policy may be asked again
    /// before its choice is evicted, and a unit that is written again before its write-back has ended stays.
    ///
    /// # Errors
    /// When the policy has failed. This ends the run, and so does the choice of a slot that is not in `order`.
    fn pick(&mut self, order: &CachedOrder<'_>) -> Result<Option<CacheSlot>, PolicyError>;

    /// Whether the policy is told of changes of the order: [`Self::on_inserted`], [`Self::on_used`] and
    /// [`Self::on_removed`]. The cache asks when it takes the policy.
    fn watches(&self) -> bool {
        false
    }

    /// The unit `lpn` in `slot` has entered the order as the most recently used one. A unit whose eviction had begun
    /// enters again when it is used.
    fn on_inserted(&mut self, _slot: CacheSlot, _lpn: Lpn) {}

    /// The unit `lpn` in `slot` has been read or written.
    fn on_used(&mut self, _slot: CacheSlot, _lpn: Lpn) {}

    /// The unit `lpn` in `slot` has left the order: it is evicted or deallocated.
    fn on_removed(&mut self, _slot: CacheSlot, _lpn: Lpn) {}
}

type Make = fn(&Choice) -> Box<dyn EvictionPolicy>;

/// Declares a module and a table entry for each line.
macro_rules! policies {
    ($($file:ident,)*) => {
        $(mod $file;)*

        /// Every eviction policy: its description and its constructor.
        pub const POLICIES: &[(PolicyInfo, Make)] = &[$(($file::INFO, $file::make),)*];
    };
}

policies! {
    lru,
    cflru,
}

/// Returns the policy chosen by `cache.eviction`. See [`maker`] for the name of a policy from outside.
pub fn make(choice: &Choice) -> Box<dyn EvictionPolicy> {
    maker(POLICIES, choice.name)(choice)
}
