//! What is counted of a drive. A counter is declared in its room ([`crate::base::counters`]); what is no mechanism's is in
//! [`Counters`].

pub(crate) mod notes;

pub use crate::capacitor::Detection;
pub use crate::copyback::MigrationStats;
pub use crate::demand_map::MapStats;
pub use crate::drive::Stats;
pub use crate::host::Latency;
pub use crate::power_loss::{LossCounts, PowerLoss, Recovery};
pub use crate::read_levels::{ByLevel, EccStats};
pub use crate::refresh::RefreshStats;
pub use crate::report::*;
pub use crate::write_cache::CacheStats;

use crate::base::counters::{Section, counters};
use crate::base::units::Span;
use serde_json::Value;

counters! {
    /// Plain event counters of a run.
    pub struct Counters {
        /// Pages of writes that the drive has done, a partly written page counted as one.
        pub host_pages_written: u64, sum of pages, life "host_pages";
        /// Pages the host wrote only partly.
        pub partial_writes: u64, sum of pages, smart "UnalignedIO";
        /// Pages read to complete a partly written one (read-modify-write).
        pub merge_reads: u64, sum of pages;
        /// Page reads of LPNs that hold nothing; answered without flash.
        pub unmapped_reads: u64, sum of pages;
        /// Page reads answered from the controller's buffer, their program being under way.
        pub buffered_reads: u64, sum of pages;
        /// Mapped pages deallocated by TRIM.
        pub trimmed_pages: u64, sum of pages;
        /// Page writes that had to wait for GC to make room.
        pub stalled_writes: u64, sum of pages;
        /// Page writes that failed because the drive had no room left at all.
        pub failed_pages: u64, sum of pages, life "failed_pages";
        /// Pages that host requests could not have because no read level decodes them.
        pub media_errors: u64, sum of pages, life "media_errors";
        /// Victims emptied by GC.
        pub gc_victims: u64, sum of blocks;
        /// Victims that GC took because the plane was down to what it must keep, in place of the policy's.
        pub gc_victims_forced: u64, sum of blocks;
        /// Blocks without valid pages that were erased beside GC.
        pub dead_blocks: u64, sum of blocks;
        /// Valid pages in GC's victims when they were chosen.
        pub gc_victim_valid_pages: u64, sum of pages;
    }
}

impl Counters {
    /// `counters` of the summary.
    pub(crate) fn json(&self) -> Value {
        Section::of(self).into()
    }
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
