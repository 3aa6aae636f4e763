//! The audit of a drive: its parts agree with each other.

use super::Drive;
use super::mechanisms::each_mechanism;
use crate::base::geometry::Lpn;
use crate::core::{Mechanism, Rest};
use crate::flash::Stamp;
use crate::probe::Probe;

impl<P: Probe> Drive<P> {
    /// Audits the whole drive. If nothing is under way, also checks that no pins, waiting units, flushes or jobs are
    /// left, and that the link is empty.
    ///
    /// # Errors
    /// The first inconsistency found.
    pub fn audit(&self) -> Result<(), String> {
        self.core.audit()?;
        self.core.audit_placement()?;
        if self.core.flash().keeps_sequences() {
            for lpn in (0..self.core.geometry().logical_units).map(Lpn) {
                let stamp =
                    self.core.unit_of(lpn).map_or(Stamp::default(), |unit| self.core.flash().stamp(unit));
                if stamp.sequence > self.core.sequence() || stamp.corrected > self.core.age_now() {
                    return Err(format!(
                        "LPN {} has a sequence number or an age stamp from the future: {stamp:?}",
                        lpn.0
                    ));
                }
            }
        }
        if self.core.flash().keeps_copied() {
            let now = self.core.age_stamp_now();
            let mapped =
                (0..self.core.geometry().logical_units).filter_map(|lpn| self.core.unit_of(Lpn(lpn)));
            for unit in mapped {
                let Some(copied) = self.core.flash().copied(unit) else { continue };
                let corrected = self.core.flash().stamp(unit).corrected;
                if !(0.0..=0.5).contains(&copied.rber) || !(corrected..=now).contains(&copied.programmed) {
                    let shown = self.core.geometry().show(unit);
                    return Err(format!(
                        "{shown} has impossible errors: {copied:?}, corrected at {corrected:?}"
                    ));
                }
            }
        }
        let rest = self.rest();
        let pinned = self.core.flash().superblocks.iter().position(|superblock| superblock.pins > 0);
        if let Some(superblock) = pinned.filter(|_| rest.is_at_rest()) {
            return Err(format!("superblock {superblock} is pinned though no operation is under way"));
        }
        each_mechanism!(&self, |mechanism| mechanism.audit(&self.core, rest)?);
        self.audit_budget()
    }

    /// How much of the drive is at rest.
    fn rest(&self) -> Rest {
        if !self.is_at_rest() {
            Rest::Busy
        } else if self.background.any_may_wait(&self.core) {
            Rest::ButForJobs
        } else {
            Rest::Full
        }
    }
}
