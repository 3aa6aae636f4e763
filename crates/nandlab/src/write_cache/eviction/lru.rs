//! `cache.eviction = "lru"`: the least recently used unit, clean or dirty (the cache of the aging-capacitor paper).

use super::{CachedOrder, EvictionPolicy};
use crate::base::ids::CacheSlot;
use crate::base::policy::{Choice, PolicyError, PolicyInfo};

pub(super) const INFO: PolicyInfo =
    PolicyInfo { name: "lru", description: "the least recently used page", params: &[] };

#[derive(Debug)]
struct Lru;

pub(super) fn make(_: &Choice) -> Box<dyn EvictionPolicy> {
    Box::new(Lru)
}

impl EvictionPolicy for Lru {
    fn pick(&mut self, order: &CachedOrder<'_>) -> Result<Option<CacheSlot>, PolicyError> {
        Ok(order.least_recently_used())
    }
}
