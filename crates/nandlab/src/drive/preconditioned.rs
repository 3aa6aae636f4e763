//! The state that preconditioning makes, to be copied into other drives. Runs that differ only in settings which
//! preconditioning does not see share it, so that a study preconditions once where it would do so for every variant.
//!
//! A worker of a study keeps copies of array and FTL of the drives of one preconditioning, and runs of that drive come
//! to it one after the other. The key (`Loaded::precondition_key`) is a hash of the sections that preconditioning sees;
//! what other sections make of array and FTL, such as the fields of the OOB and the reserves of a lane, is compared
//! when the copy is taken. So a forgotten section costs a wrong copy only where both agree, and
//! `crates/nandlab/tests/drive/preconditioned.rs` compares random drives with and without settings of each other
//! section.

use super::Drive;
use super::precondition::PtsOutcome;
use crate::base::policy::PolicySlot;
use crate::core::{FlashState, Offline};
use crate::probe::Probe;

/// The state of a preconditioned drive: the array, the FTL, the sequence number of the newest write, and the number of
/// units that preconditioning has written in SLC mode. Everything else of a preconditioned drive is as in a fresh one.
#[derive(Clone, Debug)]
pub struct Preconditioned {
    /// [`Drive::shape`] of the drive.
    shape: String,
    units: u32,
    state: FlashState,
    slc_filled: u64,
    outcome: Option<PtsOutcome>,
}

impl Preconditioned {
    /// The units of the drive.
    pub fn units(&self) -> u32 {
        self.units
    }

    /// The result of the SNIA method, if the spec chooses this method.
    pub fn outcome(&self) -> Option<&PtsOutcome> {
        self.outcome.as_ref()
    }
}

impl<P: Probe> Drive<P> {
    /// A copy of the state that preconditioning has made. `outcome`: its result. The drive has not been played on.
    pub fn preconditioned(&self, outcome: Option<PtsOutcome>) -> Preconditioned {
        debug_assert!(
            self.is_at_rest() && self.demand_map().is_none_or(|map| map.cache.is_empty()),
            "a preconditioned drive is at rest, and its mapping cache is empty"
        );
        Preconditioned {
            shape: self.shape(),
            units: self.core.geometry().units,
            state: self.core.flash_state(),
            slc_filled: self.slc_filled(),
            outcome,
        }
    }

    /// Makes this fresh drive one with the state `of` another, whose spec has the same
    /// [`Loaded::precondition_key`](super::spec::Loaded::precondition_key). Returns `false`, and changes nothing, if the
    /// array or the FTL of the other drive is built differently.
    ///
    /// # Panics
    /// On a drive that has been written.
    pub fn precondition_like(&mut self, of: &Preconditioned) -> bool {
        assert!(self.is_fresh(), "only a fresh drive can be preconditioned");
        if self.shape() != of.shape {
            return false;
        }
        // The times of flash operations may differ.
        Offline::new(&mut self.core).take_over(&of.state);
        self.set_slc_filled(of.slc_filled);
        self.loaded();
        true
    }

    /// Sets [`Drive::slc_filled`] of a drive that takes over the state of another one.
    pub(super) fn set_slc_filled(&mut self, units: u64) {
        if let Some(slc) = &mut self.schemes.slc {
            slc.filled = units;
        }
    }

    /// What preconditioning sees of a drive beside its spec, as text: the geometry, the fields of the OOB, the numbers
    /// of the FTL that follow from the mechanisms of the drive, and the name of a victim policy from outside.
    pub(super) fn shape(&self) -> String {
        let core = &self.core;
        let victim = self.policies.name(PolicySlot::Victim);
        format!("{:?} {:?} {:?} {victim:?}", core.geometry(), core.flash().keeps(), core.ftl().fixed())
    }
}
