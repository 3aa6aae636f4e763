//! `cache.sync.smart = { budget_margin = 0.05, cold_share = 0.05 }`: budget and coldness thresholds (SSA of the
//! aging-capacitor paper, Section IV-B and Fig. 2).
//!
//! When the drive is idle, the least recently used dirty page is written back if the number of dirty pages that are not
//! being written back reaches the threshold (1 - `budget_margin`) x budget, or if the page is cold: among the least
//! recently used `cold_share` of the cache. Dirty pages are evicted before clean pages if the number of all dirty pages
//! reaches the same threshold. A page that is being written back is protected: its updates wait.

use super::{CacheView, Coldness, SyncPolicy};
use crate::base::policy::{Choice, ParamInfo, PolicyInfo};

const fn share(name: &'static str, description: &'static str) -> ParamInfo {
    ParamInfo { name, default: Some(0.05), min: 0.0, max: 1.0, whole: false, description }
}

pub(super) const INFO: PolicyInfo = PolicyInfo {
    name: "smart",
    description: "in idle time, dirty pages are written back near the budget and when they are cold; near the budget, \
                  dirty pages are evicted first",
    params: &[
        share("budget_margin", "share of the budget that is kept free in idle time"),
        share("cold_share", "share of the cache that counts as cold: its least recently used pages"),
    ],
};

#[derive(Debug)]
struct Smart {
    budget_margin: f64,
    cold_share: f64,
}

pub(super) fn make(choice: &Choice) -> Box<dyn SyncPolicy> {
    Box::new(Smart { budget_margin: choice.value(0), cold_share: choice.value(1) })
}

impl Smart {
    /// Whether `dirty` pages reach the budget less its margin.
    fn reaches_threshold(&self, dirty: u32, budget: u32) -> bool {
        f64::from(dirty) + 1e-9 >= (1.0 - self.budget_margin) * f64::from(budget)
    }
}

impl SyncPolicy for Smart {
    fn cold_share(&self) -> f64 {
        self.cold_share
    }

    fn syncs_when_idle(&self, cache: &CacheView) -> bool {
        // Pages that are being written back already do not count towards the threshold.
        self.reaches_threshold(cache.dirty - cache.writing, cache.budget)
            || cache.oldest_dirty == Coldness::Cold
    }

    fn evicts_dirty_first(&self, cache: &CacheView) -> bool {
        self.reaches_threshold(cache.dirty, cache.budget)
    }

    fn protects(&self) -> bool {
        true
    }
}
