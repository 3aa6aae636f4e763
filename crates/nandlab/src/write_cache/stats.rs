//! Counters of the write cache.

use crate::base::counters::counters;
use crate::base::section::{Before, Beside, Section};
use schemars::JsonSchema;
use serde::Serialize;

counters! {
    /// Hits, evictions and write-backs of a write cache.
    pub struct CacheStats {
        /// Host unit reads that found all their sectors in the write cache.
        pub read_hits: u64, sum of pages;
        /// Host unit reads that did not find all their sectors in the write cache.
        pub read_misses: u64, sum of pages;
        /// Host unit writes to a unit that had a slot in the write cache when the write was admitted.
        pub write_hits: u64, sum of pages;
        /// Host unit writes to a unit that had no slot in the write cache when the write was admitted.
        pub write_misses: u64, sum of pages;
        /// Clean units evicted from the write cache.
        pub evictions: u64, sum of pages;
        /// Dirty units chosen for eviction: they leave the write cache when they have been written back.
        pub dirty_evictions: u64, sum of pages;
        /// Write-backs begun ahead of eviction: by the sync policy in idle time or at once, for a host flush, or for a
        /// budget detection. Write-backs that make room in the dirty budget for a waiting write do not count.
        pub syncs: u64, sum of pages;
        /// Units programmed to flash from the write cache, for any reason.
        pub write_backs: u64, sum of pages;
        /// Host unit writes that waited for a slot of the write cache or for room in the dirty budget.
        pub waiting_writes: u64, sum of pages;
        /// Host unit reads that missed and waited for a slot of the write cache.
        pub waiting_reads: u64, sum of pages;
        /// Host unit writes that waited because their unit was being written back (write protection).
        pub blocked_updates: u64, sum of pages;
        /// Highest number of dirty units at a time in the write cache, and in the write buffer beside it.
        pub dirty_pages_max: u32, max of pages;
    }
}

impl CacheStats {
    /// Returns the section `cache` of the summary. `pages`: capacity in units; `budget_pages`: dirty units allowed;
    /// `dirty_pages`: dirty units at the end.
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
    /// Size of the write cache (`cache.size`); less than a unit: the drive has no write cache.
    #[schemars(extend("unit" = "bytes"))]
    pub size_bytes: u64,
    /// Units that fit into the write cache.
    #[schemars(extend("unit" = "pages"))]
    pub pages: u32,
    /// Dirty budget at the end: the number of dirty units allowed in the write cache, and in the write buffer beside it.
    #[schemars(extend("unit" = "pages"))]
    pub budget_pages: u32,
    /// Dirty units at the end in the write cache, and in the write buffer beside it.
    #[schemars(extend("unit" = "pages"))]
    pub dirty_pages: u32,
}

impl Beside for CacheValues {
    const BEFORE: Before =
        &[("read_hits", &["size_bytes", "pages", "budget_pages"]), ("dirty_pages_max", &["dirty_pages"])];
}

/// `cache` of the summary.
pub type CacheSummary = Section<CacheStats, CacheValues>;
