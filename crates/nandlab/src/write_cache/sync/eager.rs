//! `cache.sync = "eager"`: the cache is a write buffer. The write-back of every dirty unit begins at once (the 10 MB
//! buffer of the rcopyback paper, Section 5.1).

use super::SyncPolicy;
use crate::base::policy::{Choice, PolicyInfo};

pub(super) const INFO: PolicyInfo = PolicyInfo {
    name: "eager",
    description: "a write buffer: every dirty page is written back at once",
    params: &[],
};

#[derive(Debug)]
struct Eager;

pub(super) fn make(_: &Choice) -> Box<dyn SyncPolicy> {
    Box::new(Eager)
}

impl SyncPolicy for Eager {
    fn syncs_at_once(&self) -> bool {
        true
    }
}
