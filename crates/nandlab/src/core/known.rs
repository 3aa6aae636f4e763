//! Known errors of units: the controller corrects them before decoding, so decoding has to correct only the errors that
//! have occurred since.

use crate::base::geometry::UnitId;
use crate::base::huge::Huge;
use crate::base::state::state;

/// By unit, the RBER of its known errors, 0 to 1; empty if no mechanism keeps known errors.
#[derive(Debug)]
pub(crate) struct KnownErrors(Huge<f64>);

impl KnownErrors {
    /// No known errors in `units` units. With 0 units no error ever becomes known.
    pub(crate) fn new(units: u32) -> Self {
        Self(Huge::filled(0.0, units as usize))
    }

    /// Bytes of the array by unit.
    pub(super) fn bytes(&self) -> u64 {
        self.0.bytes()
    }

    /// Prefetches the known errors of a unit into the CPU's cache.
    #[inline(always)]
    pub(super) fn prefetch(&self, unit: UnitId) {
        self.0.prefetch_if_kept(unit.index());
    }

    /// The RBER of a unit's known errors.
    #[inline(always)]
    pub(crate) fn of(&self, unit: UnitId) -> f64 {
        self.0.get(unit.index()).copied().unwrap_or(0.0)
    }

    /// Sets the RBER of a unit's known errors; 0: no errors are known.
    pub(crate) fn set(&mut self, unit: UnitId, rber: f64) {
        self.0[unit.index()] = rber;
    }

    /// Forgets all known errors at power loss.
    pub(crate) fn clear(&mut self) {
        for rber in self.0.iter_mut().filter(|rber| **rber != 0.0) {
            *rber = 0.0;
        }
    }
}

state! { KnownErrors { ..tuple errors } }
