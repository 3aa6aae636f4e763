//! `cache.sync.smart = { budget_margin = 0.05, cold_share = 0.05, busy_from = 1.0 }`: budget and coldness thresholds
//! (SSA of the aging-capacitor paper, Section IV-B and Fig. 2).
//!
//! When the drive is idle, the least recently used dirty unit is written back if the number of dirty units that are not
//! being written back reaches the threshold (1 - `budget_margin`) x budget, or if the unit is cold: among the least
//! recently used `cold_share` of the cache. A unit that is being written back is protected: its updates wait.
//!
//! Busy or idle, dirty units are evicted before clean units if the number of all dirty units reaches `busy_from` x
//! budget. In busy time, dirty units have "a higher priority compared with clean pages" when their number
//! "approach\[es\] the budget" (Section IV-B); the paper gives no number. The default is the budget itself, because the
//! margin below the budget is the redundancy that idle time restores: a burst of writes may use it.

use super::{CacheView, Coldness, SyncPolicy};
use crate::base::policy::{Choice, ParamInfo, PolicyError, PolicyInfo};

const fn share(name: &'static str, default: f64, description: &'static str) -> ParamInfo {
    ParamInfo { name, default: Some(default), min: 0.0, max: 1.0, whole: false, description }
}

pub(super) const INFO: PolicyInfo = PolicyInfo {
    name: "smart",
    description: "in idle time, dirty pages are written back near the budget and when they are cold; at the budget, \
                  dirty pages are evicted first",
    params: &[
        share("budget_margin", 0.05, "share of the budget that is kept free in idle time"),
        share("cold_share", 0.05, "share of the cache that counts as cold: its least recently used pages"),
        share(
            "busy_from",
            1.0,
            "share of the budget from which on dirty pages are evicted before clean pages",
        ),
    ],
};

#[derive(Debug)]
struct Smart {
    budget_margin: f64,
    cold_share: f64,
    busy_from: f64,
}

pub(super) fn make(choice: &Choice) -> Box<dyn SyncPolicy> {
    let [budget_margin, cold_share, busy_from] = [0, 1, 2].map(|index| choice.value(index));
    Box::new(Smart { budget_margin, cold_share, busy_from })
}

/// Whether `dirty` units reach a share of the budget.
fn reaches(share: f64, dirty: u32, budget: u32) -> bool {
    f64::from(dirty) + 1e-9 >= share * f64::from(budget)
}

impl SyncPolicy for Smart {
    fn cold_share(&self) -> f64 {
        self.cold_share
    }

    fn syncs_when_idle(&self, cache: &CacheView) -> Result<bool, PolicyError> {
        // Units that are being written back already do not count towards the threshold.
        Ok(reaches(1.0 - self.budget_margin, cache.dirty - cache.writing, cache.budget)
            || cache.oldest_dirty == Coldness::Cold)
    }

    fn evicts_dirty_first(&self, cache: &CacheView) -> Result<bool, PolicyError> {
        Ok(reaches(self.busy_from, cache.dirty, cache.budget))
    }

    fn protects(&self) -> bool {
        true
    }
}
