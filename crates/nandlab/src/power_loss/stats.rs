//! Records of power losses, and their sections in the results.

use crate::base::counters::{CounterSet, counters};
use crate::base::geometry::Lpn;
use crate::base::lost::{Lost, Promise};
use crate::base::numbers::number;
use crate::base::section::{Before, Beside, Section};
use crate::base::state::value;
use crate::base::units::{Span, Time};
use schemars::JsonSchema;
use serde::Serialize;

/// Highest number of power losses that the summary lists; `power.json` lists all.
const LISTED: usize = 100;

/// The record of a power loss: what the capacitor saved, what was lost, and the recovery.
#[derive(Clone, Debug, Default)]
pub struct PowerLoss {
    /// Simulated time of the power loss.
    pub at: Time,
    /// Energy in the capacitor when power failed, in joules.
    pub energy_j: f64,
    /// Energy that the emergency flush took, in joules (Eq. 3 to 5 of the aging-capacitor paper).
    pub spent_j: f64,
    /// Share of its rated capacitance that the capacitor had lost when power failed.
    pub capacitor_loss: f64,
    /// Requests that were outstanding when power failed; they have failed.
    pub aborted_requests: u32,
    /// Dirty units in the write cache, or in the write buffer, when power failed.
    pub dirty_pages: u32,
    /// Dirty units with acknowledged writes that were not in flash when power failed.
    pub unflushed_pages: u32,
    /// Dirty units that the emergency flush wrote.
    pub flushed_pages: u32,
    /// Units of TRIM records that were only in RAM when power failed, backed up by the capacitor.
    pub trim_pages: u32,
    /// Units of TRIM records that the emergency flush wrote.
    pub trim_pages_saved: u32,
    /// Lines of susceptible bits in the VSM that were not in flash when power failed.
    pub vsm_lines: u32,
    /// Lines of the VSM that the emergency flush wrote. A line that is not written costs only a repeated refresh.
    pub vsm_lines_saved: u32,
    /// Dirty units that the emergency flush wrote to fast pages: SLC pages, LSB pages of planar MLC, and on 3D flash
    /// pages in the faster half of the layers. With one-shot programs every page of planar flash.
    pub fast_pages: u32,
    /// The units about which a promise to the host is broken, by LPN; empty while power is off.
    pub lost: Vec<Lost>,
    /// Programs that were torn: what they wrote cannot be read.
    pub torn_programs: u32,
    /// While power fails: LPN and sequence number of the writes that torn programs have destroyed in flash.
    pub(crate) destroyed: Vec<(Lpn, u64)>,
    /// Erases that were torn: their blocks have to be erased again.
    pub torn_erases: u32,
    /// Time from the power loss until the operations under way at the power loss had ended, in nanoseconds. These
    /// operations take energy that is reserved for them.
    pub finish_ns: Span,
    /// Time from the power loss until the emergency flush, with its GC, had ended its last operation, in nanoseconds
    /// (T_total of Eq. 4).
    pub flush_ns: Span,
    /// Sum of the times of all programs of the emergency flush and of its GC, in nanoseconds (T_program of Eq. 5).
    pub program_ns: Span,
    /// Units that GC moved during the emergency flush (`power.gc_in_flush`).
    pub gc_pages: u32,
    /// Blocks that GC erased during the emergency flush.
    pub gc_erases: u32,
    /// Energy of the reads and erases of GC during the emergency flush, in joules.
    pub gc_j: f64,
    /// The recovery; `None` while power is off.
    pub recovery: Option<Recovery>,
}

impl PowerLoss {
    /// Whether writes or TRIMs of completed requests are lost.
    pub fn has_lost(&self) -> bool {
        self.lost.iter().any(|lost| lost.promise != Promise::InFlight)
    }

    /// LPN and sequence number of each lost unit to which this promise was given.
    pub fn lost_by(&self, promise: Promise) -> Vec<(Lpn, u64)> {
        self.lost_where(|lost| lost.promise == promise)
    }

    /// LPN and sequence number of the lost writes of completed requests that were only in RAM.
    pub fn lost_from_ram(&self) -> Vec<(Lpn, u64)> {
        self.lost_where(|lost| lost.promise != Promise::InFlight && !lost.is_trim && !lost.was_in_flash)
    }

    /// LPN and sequence number (0: data from before the run) of the lost writes of completed requests that were in
    /// flash: destroyed by the torn program of the MSB page of their wordline, or by a torn reprogram in place.
    pub fn lost_from_flash(&self) -> Vec<(Lpn, u64)> {
        self.lost_where(|lost| lost.promise != Promise::InFlight && !lost.is_trim && lost.was_in_flash)
    }

    /// LPN and sequence number of the lost TRIMs: a completed flush covers them, and older data is back.
    pub fn lost_trims(&self) -> Vec<(Lpn, u64)> {
        self.lost_where(|lost| lost.is_trim)
    }

    fn lost_where(&self, is_meant: impl Fn(&Lost) -> bool) -> Vec<(Lpn, u64)> {
        self.lost.iter().filter(|lost| is_meant(lost)).map(|lost| (lost.lpn, lost.sequence)).collect()
    }
}

/// The recovery of a drive after a power loss.
#[derive(Clone, Copy, Debug, Default)]
pub struct Recovery {
    /// Duration of the recovery, in nanoseconds.
    pub ns: Span,
    /// Pages whose OOB was read.
    pub scanned_pages: u64,
    /// Pages read as a whole, to complete partial units and to make room for that.
    pub read_pages: u64,
    /// Partial units of the emergency flush, completed with the missing sectors from older units.
    pub merged_pages: u32,
    /// Superblocks erased because their erase was torn, or because they had only copies of units and free superblocks
    /// were few.
    pub erased_blocks: u32,
    /// Partly programmed superblocks that were closed because no stream continued in them.
    pub closed_blocks: u32,
    /// Translation pages that were out of date in flash.
    pub stale_translation_pages: u32,
    /// Times that power failed again before the recovery had ended, so that it began anew. The other values are sums over
    /// all beginnings, [`Recovery::stale_translation_pages`] apart.
    pub cuts: u32,
    /// Programs that these cuts have torn.
    pub torn_programs: u32,
    /// Erases that these cuts have torn.
    pub torn_erases: u32,
}

counters! {
    /// Counters of a power loss and its recovery, which add up over several power losses.
    pub struct LossCounts {
        /// Requests that were outstanding when power failed; they have failed.
        pub aborted_requests: u64, sum of requests;
        /// Dirty units in the write cache, or in the write buffer, when power failed.
        pub dirty_pages: u64, sum of pages;
        /// Dirty units with acknowledged writes that were not in flash when power failed.
        pub unflushed_pages: u64, sum of pages;
        /// Dirty units that the emergency flush wrote.
        pub flushed_pages: u64, sum of pages;
        /// Units of TRIM records that were only in RAM when power failed, backed up by the capacitor.
        pub trim_pages: u64, sum of pages;
        /// Units of TRIM records that the emergency flush wrote.
        pub trim_pages_saved: u64, sum of pages;
        /// Lines of susceptible bits in the VSM that were not in flash when power failed.
        pub vsm_lines: u64, sum of lines;
        /// Lines of the VSM that the emergency flush wrote.
        pub vsm_lines_saved: u64, sum of lines;
        /// Dirty units that the emergency flush wrote to fast pages: SLC pages, LSB pages of planar MLC, and on 3D
        /// flash pages in the faster half of the layers. With one-shot programs every page of planar flash.
        pub fast_pages: u64, sum of pages;
        /// Units with a lost write or TRIM that a completed flush, or a completed FUA write, covers: an fsync broke.
        pub lost_covered: u64, sum of pages;
        /// Units with a lost write whose request had completed, and which no completed flush or FUA write covers.
        pub lost_acknowledged: u64, sum of pages;
        /// Units of write requests that were outstanding, whose data is not there after recovery. They were never
        /// acknowledged.
        pub lost_in_flight: u64, sum of pages;
        /// Units with a lost write of a completed request that was only in RAM.
        pub lost_pages: u64, sum of pages;
        /// Units with a lost write of a completed request that was in flash: destroyed by the torn program of the MSB
        /// page of its wordline, or by a torn reprogram in place.
        pub lost_with_wordline: u64, sum of pages;
        /// Lost writes of completed requests: the sum of `lost_pages` and `lost_with_wordline`, and of `lost_covered`
        /// and `lost_acknowledged` less `lost_trims`.
        pub lost_writes: u64, sum of writes;
        /// Units whose TRIM is lost, so that older data is back: a completed flush covers the TRIM, its record was only
        /// in RAM, and the capacitor should have saved it.
        pub lost_trims: u64, sum of pages;
        /// Programs torn by the power loss.
        pub torn_programs: u64, sum of pages;
        /// Erases torn by the power loss.
        pub torn_erases: u64, sum of erases;
        /// Pages whose OOB was read in recovery.
        pub scanned_pages: u64, sum of pages;
        /// Pages that recovery read as a whole, to complete partial units and to make room for that. They are among the reads
        /// of the cause `flush`; the pages of `scanned_pages` are not.
        pub read_pages: u64, sum of pages;
        /// Partial units of the emergency flush that recovery completed with the missing sectors from older units.
        pub merged_pages: u64, sum of pages;
        /// Superblocks that recovery erased because their erase was torn, or because they had only copies of units and
        /// free superblocks were few.
        pub erased_blocks: u64, sum of blocks;
        /// Partly programmed superblocks that recovery closed because no stream continued in them.
        pub closed_blocks: u64, sum of blocks;
        /// Translation pages that recovery found out of date in flash.
        pub stale_translation_pages: u64, sum of pages;
        /// Time from the power loss until the operations under way at the power loss had ended.
        pub finish_ns: Span, sum of s, summary "finish_s";
        /// Time from the power loss until the emergency flush, with its GC, had ended its last operation (T_total of
        /// Eq. 4 of the aging-capacitor paper).
        pub flush_ns: Span, sum of s, summary "flush_s";
        /// Units that GC moved during the emergency flush (`power.gc_in_flush`).
        pub gc_pages: u64, sum of pages;
        /// Blocks that GC erased during the emergency flush.
        pub gc_erases: u64, sum of erases;
        /// Sum of the times of all programs of the emergency flush and of its GC (T_program of Eq. 5 of the
        /// aging-capacitor paper).
        pub program_ns: Span, sum of s, summary "program_s";
        /// Duration of the recovery.
        pub recovery_ns: Span, sum of s, summary "recovery_s";
        /// Energy in the capacitor when power failed.
        pub energy_j: f64, sum of j;
        /// Energy that the emergency flush took (Eq. 3 to 5 of the aging-capacitor paper).
        pub spent_j: f64, sum of j;
    }
}

impl PowerLoss {
    /// Returns the counters of the power loss.
    fn counts(&self) -> LossCounts {
        let recovery = self.recovery.unwrap_or_default();
        let lost_by = |promise| self.lost_by(promise).len() as u64;
        let lost_pages = self.lost_from_ram().len() as u64;
        let lost_with_wordline = self.lost_from_flash().len() as u64;
        LossCounts {
            aborted_requests: self.aborted_requests.into(),
            dirty_pages: self.dirty_pages.into(),
            unflushed_pages: self.unflushed_pages.into(),
            flushed_pages: self.flushed_pages.into(),
            trim_pages: self.trim_pages.into(),
            trim_pages_saved: self.trim_pages_saved.into(),
            vsm_lines: self.vsm_lines.into(),
            vsm_lines_saved: self.vsm_lines_saved.into(),
            fast_pages: self.fast_pages.into(),
            lost_covered: lost_by(Promise::Covered),
            lost_acknowledged: lost_by(Promise::Acknowledged),
            lost_in_flight: lost_by(Promise::InFlight),
            lost_pages,
            lost_with_wordline,
            lost_writes: lost_pages + lost_with_wordline,
            lost_trims: self.lost_trims().len() as u64,
            torn_programs: self.torn_programs.into(),
            torn_erases: self.torn_erases.into(),
            scanned_pages: recovery.scanned_pages,
            read_pages: recovery.read_pages,
            merged_pages: recovery.merged_pages.into(),
            erased_blocks: recovery.erased_blocks.into(),
            closed_blocks: recovery.closed_blocks.into(),
            stale_translation_pages: recovery.stale_translation_pages.into(),
            finish_ns: self.finish_ns,
            flush_ns: self.flush_ns,
            gc_pages: self.gc_pages.into(),
            gc_erases: self.gc_erases.into(),
            program_ns: self.program_ns,
            recovery_ns: recovery.ns,
            energy_j: self.energy_j,
            spent_j: self.spent_j,
        }
    }

    /// Returns the power loss as listed in the summary, without the lists of lost writes.
    fn summary(&self) -> LossSummary {
        let values = LossValues {
            at_s: number(self.at.seconds()),
            capacitor_loss_share: number(self.capacitor_loss),
            recovery_cuts: RecoveryCuts::of(std::slice::from_ref(self)),
        };
        Section { counters: self.counts(), values }
    }

    /// Returns the power loss as listed in `power.json`, with the lists of lost writes. `unit_bytes`: bytes of a
    /// unit.
    pub fn record(&self, unit_bytes: u64) -> LossRecord {
        let writes = |promise| -> Vec<LostWrite> {
            let lost = self.lost.iter().filter(|lost| lost.promise == promise);
            lost.map(|&Lost { lpn, sequence, is_trim, was_in_flash, .. }| LostWrite {
                lpn: lpn.0,
                offset: u64::from(lpn.0) * unit_bytes,
                sequence,
                is_trim,
                was_in_flash,
            })
            .collect()
        };
        LossRecord {
            loss: self.summary(),
            covered: writes(Promise::Covered),
            acknowledged: writes(Promise::Acknowledged),
            in_flight: writes(Promise::InFlight),
        }
    }

    /// Returns the sum of the counters of several power losses.
    pub fn total(losses: &[Self]) -> LossCounts {
        let mut total = LossCounts::default();
        for loss in losses {
            total.add(&loss.counts());
        }
        total
    }

    /// Returns the section `power` of the summary; `None` if power never failed.
    pub(crate) fn summary_of_all(losses: &[Self], down_ns: Span) -> Option<PowerSummary> {
        let values = PowerValues {
            losses: losses.len(),
            down_s: number(down_ns.seconds()),
            list: losses.iter().take(LISTED).map(Self::summary).collect(),
            recovery_cuts: RecoveryCuts::of(losses),
        };
        (!losses.is_empty()).then(|| Section { counters: Self::total(losses), values })
    }
}

/// Power losses during recoveries. The counters of a recovery, such as `scanned_pages`, are sums over all its beginnings.
/// The operations torn in recovery are counted here alone.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, JsonSchema)]
pub struct RecoveryCuts {
    /// Times that power failed during recovery, so that recovery began anew.
    #[schemars(extend("unit" = "losses"))]
    pub cuts: u64,
    /// Programs of recovery torn by these power losses.
    #[schemars(extend("unit" = "programs"))]
    pub torn_programs: u64,
    /// Erases of recovery torn by these power losses.
    #[schemars(extend("unit" = "erases"))]
    pub torn_erases: u64,
}

impl RecoveryCuts {
    /// The sums over several power losses; `None` if power failed during none of their recoveries.
    fn of(losses: &[PowerLoss]) -> Option<Self> {
        let mut sum = Self { cuts: 0, torn_programs: 0, torn_erases: 0 };
        for recovery in losses.iter().filter_map(|loss| loss.recovery) {
            sum.cuts += u64::from(recovery.cuts);
            sum.torn_programs += u64::from(recovery.torn_programs);
            sum.torn_erases += u64::from(recovery.torn_erases);
        }
        (sum.cuts > 0).then_some(sum)
    }
}

/// A power loss.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
#[schemars(rename = "LossSummary")]
pub struct LossValues {
    /// Simulated time of the power loss.
    #[schemars(extend("unit" = "s"))]
    pub at_s: f64,
    /// Share of its rated capacitance that the capacitor had lost when power failed.
    #[schemars(extend("unit" = "share"))]
    pub capacitor_loss_share: f64,
    /// Power losses during the recovery; absent without one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub recovery_cuts: Option<RecoveryCuts>,
}

impl Beside for LossValues {
    const BEFORE: Before = &[("aborted_requests", &["at_s", "capacitor_loss_share"])];
}

/// A power loss as listed in the summary.
pub type LossSummary = Section<LossCounts, LossValues>;

/// Power losses: the sums of their counters, and a list of the first hundred.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
#[schemars(rename = "PowerSummary")]
pub struct PowerValues {
    /// Number of power losses.
    #[schemars(extend("unit" = "losses"))]
    pub losses: usize,
    /// Total time from power losses until the drive was ready again.
    #[schemars(extend("unit" = "s"))]
    pub down_s: f64,
    /// The first hundred power losses, in the order of time.
    pub list: Vec<LossSummary>,
    /// Power losses during all recoveries; absent without one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub recovery_cuts: Option<RecoveryCuts>,
}

impl Beside for PowerValues {
    const BEFORE: Before = &[("aborted_requests", &["losses", "down_s"])];
}

/// `power` of the summary.
pub type PowerSummary = Section<LossCounts, PowerValues>;

/// A unit with a lost write or TRIM. A unit is listed once, under the strongest promise that is broken.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct LostWrite {
    /// Logical page number (LPN) of the unit.
    pub lpn: u32,
    /// Offset of the first byte of the unit on the drive.
    #[schemars(extend("unit" = "bytes"))]
    pub offset: u64,
    /// Sequence number of the newest lost write or TRIM to which the promise was given, counted from 1 in the order of
    /// admission; 0: data from before the workload, or in flight a unit that the drive had not admitted.
    pub sequence: u64,
    /// Whether a TRIM is lost, so that older data is back.
    pub is_trim: bool,
    /// Whether the data was in flash, and a torn program or reprogram has destroyed it; otherwise it was only in RAM, or
    /// had not reached the drive.
    pub was_in_flash: bool,
}

/// A power loss with its lists of lost writes.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct LossRecord {
    /// The power loss as listed in the summary.
    #[serde(flatten)]
    pub loss: LossSummary,
    /// Lost although a completed flush, or a completed FUA write, covers them: an fsync broke.
    pub covered: Vec<LostWrite>,
    /// Lost writes of completed requests that no completed flush or FUA write covers.
    pub acknowledged: Vec<LostWrite>,
    /// Units of write requests that were outstanding, whose data is not there after recovery.
    pub in_flight: Vec<LostWrite>,
}

value! {
    PowerLoss {
        at,
        energy_j,
        spent_j,
        capacitor_loss,
        aborted_requests,
        dirty_pages,
        unflushed_pages,
        flushed_pages,
        trim_pages,
        trim_pages_saved,
        vsm_lines,
        vsm_lines_saved,
        fast_pages,
        lost,
        torn_programs,
        destroyed,
        torn_erases,
        finish_ns,
        flush_ns,
        program_ns,
        gc_pages,
        gc_erases,
        gc_j,
        recovery,
    }
}
value! {
    Recovery {
        ns, scanned_pages, read_pages, merged_pages, erased_blocks, closed_blocks, stale_translation_pages, cuts, torn_erases,
        torn_programs
    }
}
