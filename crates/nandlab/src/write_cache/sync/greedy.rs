//! `cache.sync = "greedy"`: all dirty pages out when the drive is idle, else as `punctual` (GS of the aging-capacitor
//! paper, Section III-B).

use super::{SyncPolicy, CacheView};
use crate::base::policy::{Choice, PolicyInfo};

pub(super) const INFO: PolicyInfo =
    PolicyInfo { name: "greedy", description: "all dirty pages out when idle", params: &[] };

#[derive(Debug)]
struct Greedy;

pub(super) fn make(_: &Choice) -> Box<dyn SyncPolicy> {
    Box::new(Greedy)
}

impl SyncPolicy for Greedy {
    fn syncs_when_idle(&self, _: &CacheView) -> bool {
        true
    }
}
