//! What is recorded of power losses, and what the results say of them.

use crate::base::counters::{CounterSet, counters};
use crate::base::geometry::Lpn;
use crate::base::numbers::number;
use crate::base::section::{Before, Beside, Section};
use crate::base::units::{Span, Time};
use schemars::JsonSchema;
use serde::Serialize;

/// Losses that the summary lists; `power.json` has all.
const LISTED: usize = 100;

/// A power loss, what the capacitor saved, and how the drive came back.
#[derive(Clone, Debug, Default)]
pub struct PowerLoss {
    /// When power failed.
    pub at: Time,
    /// What the capacitor held, in joules.
    pub energy_j: f64,
    /// What the flush took of it (Eq. 3 to 5), in joules.
    pub spent_j: f64,
    /// Share of the rated capacitance that was lost by then.
    pub capacitor_loss: f64,
    /// Requests that were not completed. They are over, and have failed.
    pub aborted_requests: u32,
    /// Dirty pages in the write cache.
    pub dirty_pages: u32,
    /// Those of them with acknowledged writes that flash lacked.
    pub unflushed_pages: u32,
    /// Pages that the emergency flush wrote.
    pub flushed_pages: u32,
    /// Lines of susceptible data in the VSM.
    pub vsm_lines: u32,
    /// Those of them that were saved. Of the others nothing is lost but the work.
    pub vsm_lines_saved: u32,
    /// Pages of the emergency flush that were LSB pages of two-bit cells, or in the lower half of the layers.
    pub fast_pages: u32,
    /// Acknowledged writes that are gone: LPN and sequence number of the newest one of each page (0: not known).
    pub lost: Vec<(Lpn, u64)>,
    /// Programs that were torn: each leaves a page that cannot be read.
    pub torn_programs: u32,
    /// Valid pages that were lost with the MSB page of their wordline, or while they were reprogrammed in place: LPN and
    /// sequence number.
    pub lost_with_wordline: Vec<(Lpn, u64)>,
    /// Erases that were torn: each leaves a block that has to be erased again.
    pub torn_erases: u32,
    /// From the power loss until the last operation under way had ended, in nanoseconds; it took the energy kept for that.
    pub finish_ns: Span,
    /// From the power loss until the last page was written, in nanoseconds (T_total of Eq. 4).
    pub flush_ns: Span,
    /// Program times of all pages written, added up, in nanoseconds (T_program of Eq. 5).
    pub program_ns: Span,
    /// How it came back; `None` while power is off.
    pub recovery: Option<Recovery>,
}

impl PowerLoss {
    /// Whether anything acknowledged is gone.
    pub fn has_lost(&self) -> bool {
        !self.lost.is_empty() || !self.lost_with_wordline.is_empty()
    }
}

/// How a drive came back after a power loss.
#[derive(Clone, Copy, Debug, Default)]
pub struct Recovery {
    /// How long it took, in nanoseconds.
    pub ns: Span,
    /// Pages whose OOB was read.
    pub scanned_pages: u64,
    /// Pages of the emergency flush that lacked sectors and were completed from older ones.
    pub merged_pages: u32,
    /// Blocks erased again.
    pub erased_blocks: u32,
    /// Blocks partly programmed that take no more programs.
    pub closed_blocks: u32,
    /// Translation pages that were out of date.
    pub stale_translation_pages: u32,
}

counters! {
    /// The numbers of a power loss and its recovery that add up over several.
    pub struct LossCounts {
        /// Requests that were not completed.
        pub aborted_requests: u64, sum of requests;
        /// Dirty pages in the write cache.
        pub dirty_pages: u64, sum of pages;
        /// Of these the pages with acknowledged writes that flash lacked.
        pub unflushed_pages: u64, sum of pages;
        /// Pages that the emergency flush wrote.
        pub flushed_pages: u64, sum of pages;
        /// Lines of susceptible data in the VSM.
        pub vsm_lines: u64, sum of lines;
        /// Of these the lines that were saved.
        pub vsm_lines_saved: u64, sum of lines;
        /// Pages of the emergency flush that were LSB pages of two-bit cells, or in the lower half of the layers.
        pub fast_pages: u64, sum of pages;
        /// Pages whose newest acknowledged write was in the write cache alone and is gone.
        pub lost_pages: u64, sum of pages;
        /// Pages whose newest acknowledged write was in flash and is gone with its wordline.
        pub lost_with_wordline: u64, sum of pages;
        /// Acknowledged writes that are gone: the newest one of each page.
        pub lost_writes: u64, sum of writes;
        /// Programs that were torn.
        pub torn_programs: u64, sum of pages;
        /// Erases that were torn.
        pub torn_erases: u64, sum of erases;
        /// Pages whose OOB was read in recovery.
        pub scanned_pages: u64, sum of pages;
        /// Pages of the emergency flush that lacked sectors and were completed from older ones.
        pub merged_pages: u64, sum of pages;
        /// Blocks erased again.
        pub erased_blocks: u64, sum of blocks;
        /// Blocks partly programmed that take no more programs.
        pub closed_blocks: u64, sum of blocks;
        /// Translation pages that were out of date.
        pub stale_translation_pages: u64, sum of pages;
        /// From the power loss until the last operation under way had ended.
        pub finish_ns: Span, sum of s, summary "finish_s";
        /// From the power loss until the last page was written (T_total of Eq. 4).
        pub flush_ns: Span, sum of s, summary "flush_s";
        /// Program times of all pages written (T_program of Eq. 5).
        pub program_ns: Span, sum of s, summary "program_s";
        /// How long recovery took.
        pub recovery_ns: Span, sum of s, summary "recovery_s";
        /// What the capacitor held.
        pub energy_j: f64, sum of j;
        /// What the flush took of it (Eq. 3 to 5).
        pub spent_j: f64, sum of j;
    }
}

impl PowerLoss {
    /// Its numbers that add up over several.
    fn counts(&self) -> LossCounts {
        let recovery = self.recovery.unwrap_or_default();
        let lost_pages = self.lost.len() as u64;
        let lost_with_wordline = self.lost_with_wordline.len() as u64;
        LossCounts {
            aborted_requests: self.aborted_requests.into(),
            dirty_pages: self.dirty_pages.into(),
            unflushed_pages: self.unflushed_pages.into(),
            flushed_pages: self.flushed_pages.into(),
            vsm_lines: self.vsm_lines.into(),
            vsm_lines_saved: self.vsm_lines_saved.into(),
            fast_pages: self.fast_pages.into(),
            lost_pages,
            lost_with_wordline,
            lost_writes: lost_pages + lost_with_wordline,
            torn_programs: self.torn_programs.into(),
            torn_erases: self.torn_erases.into(),
            scanned_pages: recovery.scanned_pages,
            merged_pages: recovery.merged_pages.into(),
            erased_blocks: recovery.erased_blocks.into(),
            closed_blocks: recovery.closed_blocks.into(),
            stale_translation_pages: recovery.stale_translation_pages.into(),
            finish_ns: self.finish_ns,
            flush_ns: self.flush_ns,
            program_ns: self.program_ns,
            recovery_ns: recovery.ns,
            energy_j: self.energy_j,
            spent_j: self.spent_j,
        }
    }

    /// A loss in the results, without its lists of lost writes.
    fn summary(&self) -> LossSummary {
        let values =
            LossValues { at_s: number(self.at.seconds()), capacitor_loss_share: number(self.capacitor_loss) };
        Section { counters: self.counts(), values }
    }

    /// A loss of `power.json`: with the acknowledged writes that it took, of a drive with so large pages.
    pub(crate) fn record(&self, page_bytes: u64) -> LossRecord {
        let writes = |lost: &[(Lpn, u64)]| -> Vec<LostWrite> {
            lost.iter()
                .map(|&(lpn, sequence)| LostWrite {
                    lpn: lpn.0,
                    offset: u64::from(lpn.0) * page_bytes,
                    sequence,
                })
                .collect()
        };
        LossRecord {
            loss: self.summary(),
            lost_from_cache: writes(&self.lost),
            lost_from_flash: writes(&self.lost_with_wordline),
        }
    }

    /// The numbers of several losses.
    pub fn total(losses: &[Self]) -> LossCounts {
        let mut total = LossCounts::default();
        for loss in losses {
            total.add(&loss.counts());
        }
        total
    }

    /// `power` of the summary; `None` when power never failed.
    pub(crate) fn summary_of_all(losses: &[Self], down_ns: Span) -> Option<PowerSummary> {
        let values = PowerValues {
            losses: losses.len(),
            down_s: number(down_ns.seconds()),
            list: losses.iter().take(LISTED).map(Self::summary).collect(),
        };
        (!losses.is_empty()).then(|| Section { counters: Self::total(losses), values })
    }
}

/// A power loss.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
#[schemars(rename = "LossSummary")]
pub struct LossValues {
    /// When power failed.
    #[schemars(extend("unit" = "s"))]
    pub at_s: f64,
    /// Share of the rated capacitance that was lost by then.
    #[schemars(extend("unit" = "share"))]
    pub capacitor_loss_share: f64,
}

impl Beside for LossValues {
    const BEFORE: Before = &[("aborted_requests", &["at_s", "capacitor_loss_share"])];
}

/// A power loss of the summary.
pub type LossSummary = Section<LossCounts, LossValues>;

/// Power losses: their numbers added up, and the first hundred of them.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
#[schemars(rename = "PowerSummary")]
pub struct PowerValues {
    /// Power losses.
    #[schemars(extend("unit" = "losses"))]
    pub losses: usize,
    /// Time without power and until the drive was ready again.
    #[schemars(extend("unit" = "s"))]
    pub down_s: f64,
    /// The first hundred losses, in order.
    pub list: Vec<LossSummary>,
}

impl Beside for PowerValues {
    const BEFORE: Before = &[("aborted_requests", &["losses", "down_s"])];
}

/// `power` of the summary.
pub type PowerSummary = Section<LossCounts, PowerValues>;

/// The newest acknowledged write of a page that a power loss took.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct LostWrite {
    /// The page.
    pub lpn: u32,
    /// First byte of the page.
    #[schemars(extend("unit" = "bytes"))]
    pub offset: u64,
    /// Sequence number of the write, by which page writes of the host are counted from 1; 0 where it is not known.
    pub sequence: u64,
}

/// A power loss with the acknowledged writes that it took.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct LossRecord {
    /// Its numbers.
    #[serde(flatten)]
    pub loss: LossSummary,
    /// Lost writes that were in the write cache alone.
    pub lost_from_cache: Vec<LostWrite>,
    /// Lost writes that were on the wordline of a torn program.
    pub lost_from_flash: Vec<LostWrite>,
}
