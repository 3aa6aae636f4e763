//! Counters of refresh.

use super::{ErrorCacheState, PartialState};
use crate::base::counters::counters;
use crate::base::numbers::{number, ratio};
use crate::base::section::{Before, Beside, Section};
use crate::base::units::Span;
use schemars::JsonSchema;
use serde::Serialize;

counters! {
    /// Counters of refresh: superblocks and units refreshed, durations and delays.
    pub struct RefreshStats {
        /// Superblocks whose refresh has begun. Due superblocks without valid units are not counted.
        pub blocks: u64, sum of blocks, life "refreshed_blocks", smart "RefreshCount";
        /// Valid units of all refreshed superblocks, counted when the refresh of their superblock began.
        pub pages: u64, sum of pages, life "refreshed_pages";
        /// Superblocks whose refresh ended after their grace was over.
        pub late_blocks: u64, sum of blocks, life "late_blocks";
        /// Longest time that a refreshed superblock was overdue when its refresh ended, on the scaled clock.
        pub overdue_max_s: u32, max of s;
        /// Sum of the durations of all refresh jobs.
        pub busy_ns: Span, sum of s, reshaped "busy_s";
        /// Background jobs promoted to the priority of host writes because half of the grace of a due superblock was
        /// over.
        pub promoted: u64, sum of blocks;
        /// Superblocks whose refresh in place has begun.
        pub blocks_in_place: u64, sum of blocks;
        /// Units reprogrammed in place. The other valid units of superblocks refreshed in place were written elsewhere.
        pub pages_in_place: u64, sum of pages;
        /// Host reads of units whose errors were known from earlier reads (EC-Cache).
        pub cached_reads: u64, sum of pages, summary "ec_cache.hits";
        /// Host reads that decoded at a lower read level because errors of their unit were known (EC-Cache).
        pub lower_level_reads: u64, sum of pages, summary "ec_cache.lower_level_reads";
        /// Units whose known errors were evicted for those of other units (EC-Cache).
        pub known_errors_evicted: u64, sum of pages, summary "ec_cache.evictions";
        /// Superblocks whose partial refresh has begun.
        pub partial_blocks: u64, sum of blocks, summary "partial.blocks";
        /// Due superblocks not refreshed partially because too few superblocks were free or the lane was short of
        /// space. A superblock may be counted again while the superblock waits for its job.
        pub blocks_while_off: u64, sum of blocks, summary "partial.blocks_while_off";
        /// Units refreshed partially: only their susceptible bits were moved.
        pub partial_pages: u64, sum of pages, summary "partial.pages", life "partial_pages";
        /// Units of partially refreshed superblocks that were written elsewhere because they are read often.
        pub hot_pages: u64, sum of pages, summary "partial.hot_pages";
        /// Units of partially refreshed superblocks that were written elsewhere because too many of their bits were
        /// susceptible.
        pub too_susceptible: u64, sum of pages, summary "partial.too_susceptible_pages";
        /// Units of partially refreshed superblocks that were written elsewhere because the VSM had no room.
        pub without_room: u64, sum of pages, summary "partial.pages_without_room";
        /// Encoded size of all susceptible bits moved by partial refresh.
        pub susceptible_bytes: u64, sum of bytes, summary "partial.susceptible_bytes";
        /// Combination pages programmed from the VSM; neither copies nor pages of emergency flushes are counted.
        pub combination_pages: u64, sum of pages, summary "partial.combination_pages";
        /// Bytes left empty in the combination pages programmed from the VSM.
        pub padding_bytes: u64, sum of bytes, summary "partial.padding_bytes";
        /// Host reads of partially refreshed units, each together with its combination page (preads).
        pub host_preads: u64, sum of pages, summary "partial.host_preads";
        /// Preads that complete a partly written unit (read-modify-write); they are counted as host preads too.
        pub merge_preads: u64, sum of pages, summary "partial.merge_preads";
        /// Partially refreshed units that GC, wear levelling or refresh read with their combination pages and wrote
        /// elsewhere as whole units.
        pub promoted_pages: u64, sum of pages, summary "partial.promoted_pages";
    }
}

impl RefreshStats {
    /// Returns the section `refresh` of the summary.
    pub(crate) fn summary(
        &self,
        load: Option<f64>,
        overdue_blocks: u32,
        ec_cache: Option<ErrorCacheState>,
        partial: Option<PartialState>,
    ) -> RefreshSummary {
        let busy_s = self.busy_ns.seconds();
        let values = RefreshValues {
            load: load.map(number),
            overdue_blocks,
            // `busy_s` is not rounded.
            busy_s,
            block_mean_s: ratio(busy_s, self.blocks as f64),
            ec_cache,
            partial,
        };
        Section { counters: self.clone(), values }
    }
}

/// Refresh: superblocks and units refreshed, durations and delays.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
#[schemars(rename = "RefreshSummary")]
pub struct RefreshValues {
    /// Rate at which superblocks come due per rate at which they are refreshed: mean duration of a refresh job per
    /// interval, summed over the superblocks with valid data of a lane; highest value of all lanes; null before the
    /// first refresh.
    #[schemars(extend("unit" = "share"))]
    pub load: Option<f64>,
    /// Superblocks with valid data that are overdue by more than their grace at the end.
    #[schemars(extend("unit" = "blocks"))]
    pub overdue_blocks: u32,
    /// Sum of the durations of all refresh jobs.
    #[schemars(extend("unit" = "s"))]
    pub busy_s: f64,
    /// Mean duration of the refresh of a superblock; 0 without a refresh.
    #[schemars(extend("unit" = "s"))]
    pub block_mean_s: f64,
    /// The cache of known errors (EC-Cache); null if the refresh policy has none.
    pub ec_cache: Option<ErrorCacheState>,
    /// Partial refresh; null under other refresh policies.
    pub partial: Option<PartialState>,
}

impl Beside for RefreshValues {
    const BEFORE: Before = &[
        ("late_blocks", &["load"]),
        ("overdue_max_s", &["overdue_blocks"]),
        ("promoted", &["busy_s", "block_mean_s"]),
        ("ec_cache.hits", &["entries", "bytes"]),
    ];
}

/// `refresh` of the summary.
pub type RefreshSummary = Section<RefreshStats, RefreshValues>;
