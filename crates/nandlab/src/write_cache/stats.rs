//! What is counted of the write cache.

use crate::base::counters::counters;
use crate::base::section::{Before, Beside, Section};
use schemars::JsonSchema;
use serde::Serialize;

counters! {
    /// Hits, evictions and write-backs of a write cache.
    pub struct CacheStats {
        /// Reads that found all their sectors.
        pub read_hits: u64, sum of pages;
        /// Reads that did not.
        pub read_misses: u64, sum of pages;
        /// Writes of cached pages.
        pub write_hits: u64, sum of pages;
        /// Writes of pages that were not.
        pub write_misses: u64, sum of pages;
        /// Clean pages that left for others.
        pub evictions: u64, sum of pages;
        /// Dirty pages that had to be written back first.
        pub dirty_evictions: u64, sum of pages;
        /// Pages written back because the drive was idle or the host asked for a flush.
        pub syncs: u64, sum of pages;
        /// Pages written back, whatever the reason.
        pub write_backs: u64, sum of pages;
        /// Writes that waited for a slot or for the dirty budget.
        pub waiting_writes: u64, sum of pages;
        /// Writes that waited because their page was being written back (write protection).
        pub blocked_updates: u64, sum of pages;
        /// Most dirty pages at a time.
        pub dirty_pages_max: u32, max of pages;
    }
}

impl CacheStats {
    /// `cache` of the summary, for so many pages, dirty ones allowed, and dirty ones at the end.
    pub(crate) fn summary(
        &self,
        size_bytes: u64,
        [pages, budget_pages, dirty_pages]: [u32; 3],
    ) -> CacheSummary {
        Section {
            counters: self.clone(),
            values: CacheValues { size_bytes, pages, budget_pages, dirty_pages },
        }
    }
}

/// The write cache.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
#[schemars(rename = "CacheSummary")]
pub struct CacheValues {
    /// Size of the cache; 0 without one.
    #[schemars(extend("unit" = "bytes"))]
    pub size_bytes: u64,
    /// Pages that fit.
    #[schemars(extend("unit" = "pages"))]
    pub pages: u32,
    /// Pages that may be dirty.
    #[schemars(extend("unit" = "pages"))]
    pub budget_pages: u32,
    /// Dirty pages at the end.
    #[schemars(extend("unit" = "pages"))]
    pub dirty_pages: u32,
}

impl Beside for CacheValues {
    const BEFORE: Before =
        &[("read_hits", &["size_bytes", "pages", "budget_pages"]), ("dirty_pages_max", &["dirty_pages"])];
}

/// `cache` of the summary.
pub type CacheSummary = Section<CacheStats, CacheValues>;
