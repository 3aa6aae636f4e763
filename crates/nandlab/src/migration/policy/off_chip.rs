//! `migration.policy = "off-chip"`: every moved unit is read out to the controller, corrected, and programmed elsewhere
//! (the baseline of the rcopyback paper).

use super::{MigrationPolicy, VictimView};
use crate::base::policy::{PolicyError, PolicyInfo};

pub(super) const INFO: PolicyInfo = PolicyInfo {
    name: "off-chip",
    description: "every moved page is read out to the controller, corrected, and programmed elsewhere",
    params: &[],
};

#[derive(Debug)]
struct OffChip;

pub(super) fn make() -> Box<dyn MigrationPolicy> {
    Box::new(OffChip)
}

impl MigrationPolicy for OffChip {
    fn copies_back(&mut self, _: &VictimView) -> Result<bool, PolicyError> {
        Ok(false)
    }
}
