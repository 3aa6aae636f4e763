//! `migration.policy.rcopyback-greedy`: copyback wherever the limit allows it (rcFTL- of the rcopyback paper, Section
//! 5.2).

use super::{MigrationPolicy, VictimView};
use crate::base::policy::{PolicyError, PolicyInfo};

pub(super) const INFO: PolicyInfo = PolicyInfo {
    name: "rcopyback-greedy",
    description: "copyback whenever the limit allows it, otherwise off-chip",
    params: &[],
};

#[derive(Debug)]
struct Greedy;

pub(super) fn make() -> Box<dyn MigrationPolicy> {
    Box::new(Greedy)
}

impl MigrationPolicy for Greedy {
    fn copies_back(&mut self, _: &VictimView) -> Result<bool, PolicyError> {
        Ok(true)
    }
}
