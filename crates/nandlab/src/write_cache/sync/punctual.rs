//! `cache.sync = "punctual"`: at the budget, one dirty page out for each write (PS of the aging-capacitor paper, Section
//! III-B).

use super::SyncPolicy;
use crate::base::policy::{Choice, PolicyInfo};

pub(super) const INFO: PolicyInfo =
    PolicyInfo { name: "punctual", description: "at the budget, one page out per write", params: &[] };

#[derive(Debug)]
struct Punctual;

pub(super) fn make(_: &Choice) -> Box<dyn SyncPolicy> {
    Box::new(Punctual)
}

impl SyncPolicy for Punctual {}
