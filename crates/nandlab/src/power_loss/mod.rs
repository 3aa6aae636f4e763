//! Power loss: operations under way end or are torn, an emergency flush on the capacitor's energy saves dirty units,
//! and when power is back the drive is rebuilt from flash. `drive/power_loss.rs` and `drive/recovery.rs` call these
//! steps in their order.
//!
//! C. Gao et al., "Aging capacitor supported cache management scheme for solid-state drives", IEEE TCAD 39(10), 2020
//! (Section IV-C: the emergency flush).
//!
//! The rules between power loss and the rest:
//!
//! - In a drive with a capacitor the lanes together keep free superblocks for the whole write cache. The budget is 0
//!   while a lane lacks its part of these superblocks.
//! - A flush or FUA write acknowledged from the cache needs no other state than the dirty units and the pending records
//!   of deallocations: every other change of the map (copies by GC, refresh, reclaim and wear levelling) is in the OOB
//!   of a unit in flash.
//! - A drive keeps sequence numbers in the OOB when its spec models power loss, or an oracle watches it. The same
//!   drives keep promises (`host/promises.rs`); `base/lost.rs` defines which promise a power loss breaks.
//! - A unit can break a promise to a completed request only if the cut has put the unit at risk (`AtRisk`): its data
//!   was only in RAM and was not saved, or was destroyed. Everything else that recovery does not find is an error of
//!   recovery, which the oracle reports.
//! - Power may fail again at any step of recovery (`attempt.rs`). What may be lost stays at risk until a recovery has
//!   ended; then the losses are listed.
//! - After a power loss the FTL, the demand map and the write cache are rebuilt (`Mechanism::power_lost`); the counters
//!   keep their values.

mod attempt;
mod cleaning;
mod flush;
pub(crate) mod notes;
mod recovery;
pub(crate) mod spec;
mod stats;
#[cfg(test)]
mod tests;

use crate::base::state::state;
pub use attempt::RecoveryCut;
pub(crate) use attempt::{Attempt, PowerFails};
pub(crate) use cleaning::GcMeans;
pub(crate) use flush::{Dirty, Means, in_order_of_programs, under_way};
pub(crate) use recovery::Return;
pub use stats::{LossCounts, LossRecord, LossSummary, PowerLoss, PowerSummary, Recovery, RecoveryCuts};

use crate::base::geometry::{Lpn, SuperblockId, UnitId};
use crate::base::units::Span;
use crate::core::{Core, Offline};
use crate::ftl::{AllocatedUnit, Ftl};
use crate::host::InFlight;
use crate::probe::Probe;
use crate::sched::Transaction;
use std::collections::BTreeMap;

/// Calls to other mechanisms. They report operations that end while power fails or during recovery, and save the lines
/// of the VSM.
pub(crate) trait Schemes<P: Probe> {
    /// The first unit of a superblock is programmed.
    fn on_first_program(&mut self, core: &mut Core<P>, superblock: SuperblockId);

    /// A copyback from superblock `from` to superblock `to` has ended.
    fn on_copied_back(&mut self, to: SuperblockId, from: SuperblockId);

    /// Counts a copyback that has ended; `in_a_row`: number of copybacks in a row of the page's data.
    fn count_copyback(&mut self, in_a_row: u8);

    /// A superblock has been erased.
    fn on_erased(&mut self, core: &mut Core<P>, superblock: SuperblockId);

    /// The data of a unit is no longer needed.
    fn on_unit_obsolete(&mut self, core: &mut Core<P>, unit: UnitId);

    /// The units from `first` up to but excluding `end` have not been programmed.
    fn on_blank(&mut self, first: UnitId, end: UnitId);

    /// Returns the LPNs of the combination pages that are only in RAM; `under_way`: the transactions that the dies have
    /// begun.
    fn lines(&mut self, under_way: &[Transaction]) -> Vec<Lpn>;

    /// Allocates what one program writes, on an idle die, for combination pages. Returns its first unit, with the units
    /// after the program that remain erased.
    fn place_lines(&mut self, core: &mut Core<P>) -> Option<AllocatedUnit>;

    /// A program of combination page `lpn` to the unit `to` has been queued.
    fn stage(&mut self, lpn: Lpn, to: UnitId);
}

/// The power losses of a drive.
#[derive(Debug, Default)]
pub(crate) struct Losses {
    /// All power losses, in the order of time.
    pub(crate) list: Vec<PowerLoss>,
    /// Total time from power losses until the drive was ready again.
    pub(crate) down_ns: Span,
    /// While power is off: the record of the recoveries that a cut has ended since the last power loss.
    pub(crate) recovery: Recovery,
    /// From a power loss to the end of its recovery: the FTL before the power loss, once recovery has begun.
    pub(crate) before: Option<Ftl>,
    /// While power is off: the superblocks whose erase has been torn.
    pub(crate) torn_erases: Vec<SuperblockId>,
    /// From a power loss to the end of its recovery: the LPNs that the flush has mapped to another unit, because GC went on
    /// (`power.gc_in_flush`).
    pub(crate) remapped: Vec<Lpn>,
    /// While power is off: what may be lost.
    pub(crate) at_risk: AtRisk,
}

/// What a power loss may have destroyed. Recovery finds out what is lost.
#[derive(Debug, Default)]
pub(crate) struct AtRisk {
    /// Units that had data of acknowledged writes only in RAM, and were not saved.
    pub(crate) in_ram: Vec<Lpn>,
    /// Writes that torn programs have destroyed in flash: LPN and sequence number (0: data from before the run). Only
    /// the newest data of an LPN is a loss.
    pub(crate) destroyed: Vec<(Lpn, u64)>,
    /// TRIMs of which only RAM had the record: LPN and sequence number, in the order of the numbers.
    pub(crate) trims: Vec<(Lpn, u64)>,
    /// By LPN, the units of the writes that were outstanding.
    pub(crate) in_flight: BTreeMap<u32, InFlight>,
}

/// The drive when power fails: operations are still under way on the dies.
pub(crate) struct Outage<'a, P: Probe, S> {
    pub(crate) core: Offline<'a, P>,
    pub(crate) schemes: &'a mut S,
    /// The LPNs that the flush has mapped to another unit.
    pub(crate) remapped: Vec<Lpn>,
}

state! {
    Losses { list, down_ns }
    // A drive without power is not saved.
    fixed { recovery, before, torn_erases, remapped, at_risk }
}
