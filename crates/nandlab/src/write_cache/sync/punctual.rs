//! `cache.sync = "punctual"`: when the number of dirty units has reached the budget, one dirty unit is written back for
//! each write (PS of the aging-capacitor paper, Section III-B).

use super::SyncPolicy;
use crate::base::policy::{Choice, PolicyInfo};

pub(super) const INFO: PolicyInfo = PolicyInfo {
    name: "punctual",
    description: "at the budget, one dirty page is written back per write",
    params: &[],
};

#[derive(Debug)]
struct Punctual;

pub(super) fn make(_: &Choice) -> Box<dyn SyncPolicy> {
    Box::new(Punctual)
}

impl SyncPolicy for Punctual {}
