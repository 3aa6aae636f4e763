//! `cache.sync = "punctual"`: when the dirty pages have reached the budget, each write has one dirty page written back
//! (PS of the aging-capacitor paper, Section III-B).

use super::SyncPolicy;
use crate::base::policy::{Choice, PolicyInfo};

pub(super) const INFO: PolicyInfo = PolicyInfo {
    name: "punctual",
    description: "at the budget, one page is written back per write",
    params: &[],
};

#[derive(Debug)]
struct Punctual;

pub(super) fn make(_: &Choice) -> Box<dyn SyncPolicy> {
    Box::new(Punctual)
}

impl SyncPolicy for Punctual {}
