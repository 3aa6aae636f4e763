//! The life cycle of a mechanism: what a drive calls in the same way for each of its mechanisms.

use super::{Core, NextJob, Offline, Section, SectionKind, SnapshotError};
use crate::base::geometry::{LaneId, Lpn, UnitId};
use crate::probe::Probe;

/// A mechanism of the controller. By default a method does nothing. The drive calls each method for all its mechanisms,
/// in the order of its list (`drive/mechanisms.rs`).
pub(crate) trait Mechanism<P: Probe> {
    /// The section of a saved drive with the state of the mechanism; `None`: the state is not saved, and a loaded drive
    /// begins with the state of a fresh one.
    const SECTION: Option<SectionKind> = None;

    /// The page of a unit has been sensed at a read level, and the read has been counted for its superblock. The read
    /// may fail to decode and be tried again.
    #[inline(always)]
    fn on_read(&mut self, _core: &mut Core<P>, _unit: UnitId, _level: u8) {}

    /// The next job of a lane that has no job; `None` if the mechanism has to rewrite no superblock or the lane has no
    /// room for the job.
    #[inline(always)]
    fn next_job(&mut self, _core: &mut Core<P>, _lane: LaneId) -> Option<NextJob> {
        None
    }

    /// Preconditioning has written all its units: writes to flash what the mechanism has to have there.
    ///
    /// # Errors
    /// A lane that has no room, and in which GC can gain none.
    fn preconditioned(&mut self, _offline: &mut Offline<'_, P>) -> Result<(), LaneId> {
        Ok(())
    }

    /// The drive begins to work at the present time: it has been built, has recovered from a power loss, or has been
    /// fast-forwarded. Sets the clocks of the mechanism.
    fn began(&mut self, _offline: &mut Offline<'_, P>) {}

    /// Power was lost: drops all state kept in RAM. Called when power has returned, before the map is rebuilt.
    fn power_lost(&mut self, _offline: &mut Offline<'_, P>) {}

    /// The map has been rebuilt from flash after a power loss: rebuilds the state that follows from it.
    fn recovered(&mut self, _offline: &mut Offline<'_, P>, _before: &BeforeLoss<'_>) {}

    /// Time has been skipped while nothing was under way.
    fn skipped(&mut self, _offline: &mut Offline<'_, P>, _skipped: &Skipped<'_>) {}

    /// Writes the state of a drive at rest to the mechanism's section. `None` if there is nothing to save.
    fn save(&self, _core: &Core<P>) -> Option<Section> {
        None
    }

    /// A fresh drive is about to be loaded: takes the state from the mechanism's section. `None`: the file has no such
    /// section, and the mechanism begins empty. The flash is loaded afterwards ([`Mechanism::loaded`]).
    ///
    /// # Errors
    /// If the state does not fit the drive, or there is none and the mechanism cannot begin empty.
    fn load(&mut self, _core: &Core<P>, _from: Option<&mut Section>) -> Result<(), SnapshotError> {
        Ok(())
    }

    /// The flash and the map have been loaded, or taken over from a preconditioned drive: rebuilds the state that
    /// follows from them.
    fn loaded(&mut self, _offline: &mut Offline<'_, P>) {}

    /// Bytes of the mechanism's arrays whose sizes follow from the spec, those of entries included that have never been
    /// written.
    fn bytes(&self) -> u64 {
        0
    }

    /// Checks that the mechanism agrees with the core. If the drive is at rest, also checks that the mechanism has
    /// nothing under way.
    ///
    /// # Errors
    /// The first inconsistency found.
    fn audit(&self, _core: &Core<P>, _rest: Rest) -> Result<(), String> {
        Ok(())
    }
}

/// The error of an audit that finds a waiting unit in a drive at rest.
pub(crate) const STILL_WAITS: &str = "a write or map entry still waits though no request is outstanding";

/// How much of a drive is at rest, for an audit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Rest {
    /// Requests or operations are under way.
    Busy,
    /// Nothing is under way, but a job that is ahead of the host waits until the host has written more or is idle.
    /// Writes and map entries may wait for this job.
    ButForJobs,
    /// Nothing is under way, and nothing waits.
    Full,
}

impl Rest {
    /// Whether nothing is under way.
    pub(crate) fn is_at_rest(self) -> bool {
        self != Self::Busy
    }
}

/// The drive as it was before a power loss.
pub(crate) struct BeforeLoss<'a> {
    /// The LPNs that recovery has mapped to another unit, or to none, in ascending order.
    pub(crate) changed: &'a [Lpn],
    /// The LPNs that the emergency flush has mapped to another unit; to recovery they may be unchanged.
    pub(crate) remapped: &'a [Lpn],
}

/// A stretch of skipped time.
pub(crate) struct Skipped<'a> {
    /// Its length on the scaled clock, in seconds.
    pub(crate) seconds: f64,
    /// By superblock: the P/E cycles that it has got.
    pub(crate) cycles: &'a [u32],
    /// The seed of the drive.
    pub(crate) seed: u64,
}

impl<P: Probe, M: Mechanism<P>> Mechanism<P> for Option<M> {
    const SECTION: Option<SectionKind> = M::SECTION;

    #[inline(always)]
    fn on_read(&mut self, core: &mut Core<P>, unit: UnitId, level: u8) {
        if let Some(mechanism) = self {
            mechanism.on_read(core, unit, level);
        }
    }

    #[inline(always)]
    fn next_job(&mut self, core: &mut Core<P>, lane: LaneId) -> Option<NextJob> {
        self.as_mut()?.next_job(core, lane)
    }

    fn preconditioned(&mut self, offline: &mut Offline<'_, P>) -> Result<(), LaneId> {
        self.as_mut().map_or(Ok(()), |mechanism| mechanism.preconditioned(offline))
    }

    fn began(&mut self, offline: &mut Offline<'_, P>) {
        if let Some(mechanism) = self {
            mechanism.began(offline);
        }
    }

    fn power_lost(&mut self, offline: &mut Offline<'_, P>) {
        if let Some(mechanism) = self {
            mechanism.power_lost(offline);
        }
    }

    fn recovered(&mut self, offline: &mut Offline<'_, P>, before: &BeforeLoss<'_>) {
        if let Some(mechanism) = self {
            mechanism.recovered(offline, before);
        }
    }

    fn skipped(&mut self, offline: &mut Offline<'_, P>, skipped: &Skipped<'_>) {
        if let Some(mechanism) = self {
            mechanism.skipped(offline, skipped);
        }
    }

    fn save(&self, core: &Core<P>) -> Option<Section> {
        self.as_ref()?.save(core)
    }

    /// Refuses the section of a mechanism that the drive does not have.
    fn load(&mut self, core: &Core<P>, from: Option<&mut Section>) -> Result<(), SnapshotError> {
        match (self, M::SECTION) {
            (Some(mechanism), _) => mechanism.load(core, from),
            (None, Some(kind)) if from.is_some() => Err(SnapshotError::Unused(kind.name)),
            (None, _) => Ok(()),
        }
    }

    fn loaded(&mut self, offline: &mut Offline<'_, P>) {
        if let Some(mechanism) = self {
            mechanism.loaded(offline);
        }
    }

    fn bytes(&self) -> u64 {
        self.as_ref().map_or(0, M::bytes)
    }

    fn audit(&self, core: &Core<P>, rest: Rest) -> Result<(), String> {
        self.as_ref().map_or(Ok(()), |mechanism| mechanism.audit(core, rest))
    }
}
