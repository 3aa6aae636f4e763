//! `migration.policy.rcopyback`: copyback while the write buffer is busy or space is short (rcFTL with its mode
//! selector DMMS, Section 4.2 of the rcopyback paper). Otherwise units are moved off-chip, which resets their count of
//! copybacks in a row.

use super::{MigrationPolicy, VictimView};
use crate::base::policy::{PolicyError, PolicyInfo};

pub(super) const INFO: PolicyInfo = PolicyInfo {
    name: "rcopyback",
    description: "copyback within the limit while the write buffer is busy or space is short, otherwise off-chip",
    params: &[],
};

/// Utilisation of the write buffer above which it counts as busy.
const BUSY: f64 = 0.5;

#[derive(Debug)]
struct Selector;

pub(super) fn make() -> Box<dyn MigrationPolicy> {
    Box::new(Selector)
}

impl MigrationPolicy for Selector {
    fn copies_back(&mut self, view: &VictimView) -> Result<bool, PolicyError> {
        Ok(view.is_urgent || view.buffer > BUSY)
    }

    fn watches_buffer(&self) -> bool {
        true
    }
}
