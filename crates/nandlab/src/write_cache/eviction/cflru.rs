//! `cache.eviction.cflru = { window = 0.25 }`: clean-first LRU. Of the least recently used `window` of the cache (the
//! clean-first region) the least recently used clean unit is evicted; if every unit there is dirty, the least recently
//! used unit.
//!
//! S.-Y. Park, D. Jung, J.-U. Kang, J.-S. Kim and J. Lee, "CFLRU: a replacement algorithm for flash memory", CASES 2006:
//! the eviction of a dirty page costs a program, that of a clean page at most a later read. The paper's window may also
//! adapt itself; here it is constant, and its default is an assumption. A unit that is being written back counts as
//! dirty. The region is searched from its cold end, as in the paper: an eviction looks at up to `window` of the units.

use super::{CachedOrder, EvictionPolicy};
use crate::base::ids::CacheSlot;
use crate::base::policy::{Choice, ParamInfo, PolicyError, PolicyInfo};

pub(super) const INFO: PolicyInfo = PolicyInfo {
    name: "cflru",
    description: "the least recently used clean page of a window, before dirty pages (CFLRU)",
    params: &[ParamInfo {
        name: "window",
        default: Some(0.25),
        min: 0.0,
        max: 1.0,
        whole: false,
        description: "share of the cache in which clean pages are evicted first: its least recently used pages",
    }],
};

#[derive(Debug)]
struct Cflru {
    window: f64,
}

pub(super) fn make(choice: &Choice) -> Box<dyn EvictionPolicy> {
    Box::new(Cflru { window: choice.value(0) })
}

impl EvictionPolicy for Cflru {
    fn pick(&mut self, order: &CachedOrder<'_>) -> Result<Option<CacheSlot>, PolicyError> {
        // 1e-9 absorbs rounding.
        let window = (self.window * f64::from(order.capacity()) + 1e-9) as usize;
        let clean = order.by_use().take(window).find(|&slot| order.is_clean(slot));
        Ok(clean.or(order.least_recently_used()))
    }
}
