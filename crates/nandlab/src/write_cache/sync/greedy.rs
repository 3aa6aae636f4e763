//! `cache.sync = "greedy"`: when the drive is idle, writes all dirty units back; when the drive is busy, works like
//! `punctual` (GS of the aging-capacitor paper, Section III-B).

use super::{CacheView, SyncPolicy};
use crate::base::policy::{Choice, PolicyError, PolicyInfo};

pub(super) const INFO: PolicyInfo = PolicyInfo {
    name: "greedy",
    description: "all dirty pages are written back when the drive is idle; at the budget, one dirty page per write",
    params: &[],
};

#[derive(Debug)]
struct Greedy;

pub(super) fn make(_: &Choice) -> Box<dyn SyncPolicy> {
    Box::new(Greedy)
}

impl SyncPolicy for Greedy {
    fn syncs_when_idle(&self, _: &CacheView) -> Result<bool, PolicyError> {
        Ok(true)
    }
}
