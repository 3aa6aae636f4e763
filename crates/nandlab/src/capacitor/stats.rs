//! What is recorded of power losses and of the capacitor.

use crate::base::geometry::Lpn;
use crate::base::units::{Span, Time};

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
    pub owed_pages: u32,
    /// Pages that the emergency flush wrote.
    pub flushed_pages: u32,
    /// Lines of susceptible data in the VSM, and those of them that were saved. Of the others nothing is lost but the work.
    pub vsm_lines: u32,
    /// See `vsm_lines`.
    pub vsm_lines_saved: u32,
    /// Those of them that were LSB pages of two-bit cells, or in the lower half of the layers.
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

/// A detection of the dirty page budget (DPBD).
#[derive(Clone, Copy, Debug, Default)]
pub struct Detection {
    /// When it was due, or commanded.
    pub due: Time,
    /// When it began with writing dirty pages back.
    pub began: Time,
    /// When the drive went over to the capacitor.
    pub drained_from: Time,
    /// When the capacitor was empty.
    pub empty: Time,
    /// When it was full again, and the budget came into force.
    pub recharged: Time,
    /// Pages written in between.
    pub pages: u32,
    /// Those of them that the host wrote meanwhile.
    pub host_pages: u32,
    /// What the capacitor held, in joules.
    pub energy_j: f64,
    /// What was taken from it, by the controller's time and the programs', in joules.
    pub drained_j: f64,
    /// The pages of a flush that this is enough for, as a share of the cache.
    pub measured: f64,
    /// The budget that follows from it, as a share of the cache.
    pub budget: f64,
}

/// Everything recorded of power.
#[derive(Clone, Debug, Default)]
pub struct PowerStats {
    /// Power losses, in order.
    pub losses: Vec<PowerLoss>,
    /// Detections of the dirty page budget, in order.
    pub detections: Vec<Detection>,
    /// Time without power and until the drive was ready again, in nanoseconds.
    pub down_ns: Span,
}
