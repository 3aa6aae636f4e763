//! What is counted of refresh.

use super::{ErrorCacheState, PartialState};
use crate::base::counters::counters;
use crate::base::numbers::{number, ratio};
use crate::base::section::{Before, Beside, Section};
use crate::base::units::Span;
use schemars::JsonSchema;
use serde::Serialize;

counters! {
    /// Blocks refreshed, and how well that kept to its times.
    pub struct RefreshStats {
        /// Blocks that were due and held valid data.
        pub blocks: u64, sum of blocks, life "refreshed_blocks", smart "RefreshCount";
        /// Valid pages in them when their refresh began.
        pub pages: u64, sum of pages, life "refreshed_pages";
        /// Blocks that were refreshed more than the grace after they were due.
        pub late_blocks: u64, sum of blocks, life "late_blocks";
        /// The longest that one was overdue, on the scaled clock.
        pub overdue_max_s: u32, max of s;
        /// From the beginning of each block's refresh to its end, added up.
        pub busy_ns: Span, sum of s, reshaped "busy_s";
        /// Refreshes that were put before the host's writes because their grace was running out.
        pub promoted: u64, sum of blocks;
        /// Blocks refreshed in place.
        pub blocks_in_place: u64, sum of blocks;
        /// Pages of these that were reprogrammed; the others were written elsewhere.
        pub pages_in_place: u64, sum of pages;
        /// Host reads of pages with known errors.
        pub cached_reads: u64, sum of pages, summary "ec_cache.hits";
        /// Of these the reads that decoded at a lower level than they would have without.
        pub lower_level_reads: u64, sum of pages, summary "ec_cache.lower_level_reads";
        /// Pages whose known errors had to make room for others'.
        pub known_errors_evicted: u64, sum of pages, summary "ec_cache.evictions";
        /// Blocks refreshed partially.
        pub partial_blocks: u64, sum of blocks, summary "partial.blocks";
        /// Blocks refreshed conventionally because free blocks were few.
        pub blocks_while_off: u64, sum of blocks, summary "partial.blocks_while_off";
        /// Pages whose susceptible bits alone were moved.
        pub partial_pages: u64, sum of pages, summary "partial.pages", life "partial_pages";
        /// Pages of partially refreshed blocks that were written elsewhere because they are read often.
        pub hot_pages: u64, sum of pages, summary "partial.hot_pages";
        /// Pages of partially refreshed blocks that were written elsewhere because too many of their bits are susceptible.
        pub too_susceptible: u64, sum of pages, summary "partial.too_susceptible_pages";
        /// Pages of partially refreshed blocks that were written elsewhere because the VSM had no room.
        pub without_room: u64, sum of pages, summary "partial.pages_without_room";
        /// Susceptible data.
        pub susceptible_bytes: u64, sum of bytes, summary "partial.susceptible_bytes";
        /// Combination pages that it went to.
        pub combination_pages: u64, sum of pages, summary "partial.combination_pages";
        /// Bytes of these left empty.
        pub padding_bytes: u64, sum of bytes, summary "partial.padding_bytes";
        /// Host reads of partially refreshed pages.
        pub host_preads: u64, sum of pages, summary "partial.host_preads";
        /// Partially refreshed pages that GC, wear levelling or refresh made whole.
        pub promoted_pages: u64, sum of pages, summary "partial.promoted_pages";
    }
}

impl RefreshStats {
    /// `refresh` of the summary.
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
            // With all its digits.
            busy_s,
            block_mean_s: ratio(busy_s, self.blocks as f64),
            ec_cache,
            partial,
        };
        Section { counters: self.clone(), values }
    }
}

/// Blocks refreshed, and how well that kept to its times.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
#[schemars(rename = "RefreshSummary")]
pub struct RefreshValues {
    /// Blocks that came due, by blocks refreshed in that time; null where that is not known.
    #[schemars(extend("unit" = "share"))]
    pub load: Option<f64>,
    /// Blocks overdue by more than the grace at the end.
    #[schemars(extend("unit" = "blocks"))]
    pub overdue_blocks: u32,
    /// From the beginning of each block's refresh to its end, added up.
    #[schemars(extend("unit" = "s"))]
    pub busy_s: f64,
    /// From the beginning of a block's refresh to its end, on average.
    #[schemars(extend("unit" = "s"))]
    pub block_mean_s: f64,
    /// The cache of known errors; null without one.
    pub ec_cache: Option<ErrorCacheState>,
    /// Partial refresh; null without it.
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
