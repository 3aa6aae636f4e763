//! `migration.policy = "off-chip"`: every page is read out, corrected and written back (the rcopyback paper's
//! baseline).

use super::{MigrationPolicy, VictimView};
use crate::base::policy::PolicyInfo;

pub(super) const INFO: PolicyInfo = PolicyInfo {
    name: "off-chip",
    description: "every copy is read out, corrected and written back",
    params: &[],
};

#[derive(Debug)]
struct OffChip;

pub(super) fn make() -> Box<dyn MigrationPolicy> {
    Box::new(OffChip)
}

impl MigrationPolicy for OffChip {
    fn copies_back(&self, _: &VictimView) -> bool {
        false
    }
}
