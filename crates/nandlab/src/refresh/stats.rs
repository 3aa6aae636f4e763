//! Counters of refresh.

use super::{ErrorCacheState, PartialState};
use crate::base::counters::counters;
use crate::base::numbers::{number, ratio};
use crate::base::section::{Before, Beside, Section};
use crate::base::units::Span;
use schemars::JsonSchema;
use serde::Serialize;

counters! {
    /// Counters of refresh: blocks and pages refreshed, durations and delays.
    pub struct RefreshStats {
        /// Blocks whose refresh has begun. Due blocks without valid pages are not counted.
        pub blocks: u64, sum of blocks, life "refreshed_blocks", smart "RefreshCount";
        /// Valid pages of all refreshed blocks, counted when the refresh of their block began.
        pub pages: u64, sum of pages, life "refreshed_pages";
        /// Blocks whose refresh ended after their grace was over.
        pub late_blocks: u64, sum of blocks, life "late_blocks";
        /// Longest time that a refreshed block was overdue when its refresh ended, on the scaled clock.
        pub overdue_max_s: u32, max of s;
        /// Sum of the durations of all refresh jobs.
        pub busy_ns: Span, sum of s, reshaped "busy_s";
        /// Background jobs promoted to the priority of host writes because half of the grace of a due block was over.
        pub promoted: u64, sum of blocks;
        /// Blocks whose refresh in place has begun.
        pub blocks_in_place: u64, sum of blocks;
        /// Pages reprogrammed in place. The other valid pages of blocks refreshed in place were written elsewhere.
        pub pages_in_place: u64, sum of pages;
        /// Host reads of pages whose errors were known from earlier reads (EC-Cache).
        pub cached_reads: u64, sum of pages, summary "ec_cache.hits";
        /// Host reads that decoded at a lower read level because errors of their page were known (EC-Cache).
        pub lower_level_reads: u64, sum of pages, summary "ec_cache.lower_level_reads";
        /// Pages whose known errors were evicted for those of other pages (EC-Cache).
        pub known_errors_evicted: u64, sum of pages, summary "ec_cache.evictions";
        /// Blocks whose partial refresh has begun.
        pub partial_blocks: u64, sum of blocks, summary "partial.blocks";
        /// Due blocks not refreshed partially because too few blocks were free or the plane was short of space. A block
        /// may be counted again while the block waits for its job.
        pub blocks_while_off: u64, sum of blocks, summary "partial.blocks_while_off";
        /// Pages refreshed partially: only their susceptible bits were moved.
        pub partial_pages: u64, sum of pages, summary "partial.pages", life "partial_pages";
        /// Pages of partially refreshed blocks that were written elsewhere because they are read often.
        pub hot_pages: u64, sum of pages, summary "partial.hot_pages";
        /// Pages of partially refreshed blocks that were written elsewhere because too many of their bits were
        /// susceptible.
        pub too_susceptible: u64, sum of pages, summary "partial.too_susceptible_pages";
        /// Pages of partially refreshed blocks that were written elsewhere because the VSM had no room.
        pub without_room: u64, sum of pages, summary "partial.pages_without_room";
        /// Encoded size of all susceptible bits moved by partial refresh.
        pub susceptible_bytes: u64, sum of bytes, summary "partial.susceptible_bytes";
        /// Combination pages programmed from the VSM; neither copies nor pages of emergency flushes are counted.
        pub combination_pages: u64, sum of pages, summary "partial.combination_pages";
        /// Bytes left empty in the combination pages programmed from the VSM.
        pub padding_bytes: u64, sum of bytes, summary "partial.padding_bytes";
        /// Host reads of partially refreshed pages, each together with its combination page (preads).
        pub host_preads: u64, sum of pages, summary "partial.host_preads";
        /// Preads that complete a partly written page (read-modify-write); they are counted as host preads too.
        pub merge_preads: u64, sum of pages, summary "partial.merge_preads";
        /// Partially refreshed pages that GC, wear levelling or refresh read with their combination pages and wrote
        /// elsewhere as whole pages.
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

/// Refresh: blocks and pages refreshed, durations and delays.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
#[schemars(rename = "RefreshSummary")]
pub struct RefreshValues {
    /// Rate at which blocks come due per rate at which they are refreshed: mean duration of a refresh job per interval,
    /// summed over the blocks with valid data of a plane; highest value of all planes; null before the first refresh.
    #[schemars(extend("unit" = "share"))]
    pub load: Option<f64>,
    /// Blocks with valid data that are overdue by more than their grace at the end.
    #[schemars(extend("unit" = "blocks"))]
    pub overdue_blocks: u32,
    /// Sum of the durations of all refresh jobs.
    #[schemars(extend("unit" = "s"))]
    pub busy_s: f64,
    /// Mean duration of the refresh of a block; 0 without a refresh.
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
