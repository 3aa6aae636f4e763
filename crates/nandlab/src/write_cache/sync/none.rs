//! `cache.sync = "none"`: dirty units are written back when they are evicted (the baseline of the aging-capacitor
//! paper, Section V).
//!
//! There is no budget: all units of the cache may be dirty.

use super::SyncPolicy;
use crate::base::policy::{Choice, PolicyInfo};

pub(super) const INFO: PolicyInfo = PolicyInfo {
    name: "none",
    description: "dirty pages are written back when they are evicted",
    params: &[],
};

#[derive(Debug)]
struct None;

pub(super) fn make(_: &Choice) -> Box<dyn SyncPolicy> {
    Box::new(None)
}

impl SyncPolicy for None {
    fn keeps_budget(&self) -> bool {
        false
    }
}
