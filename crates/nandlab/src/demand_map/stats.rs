//! What is counted of the demand map.

use crate::base::counters::counters;
use crate::base::section::{Before, Beside, Section};
use schemars::JsonSchema;
use serde::Serialize;

counters! {
    /// Lookups, evictions and write-backs of a demand map.
    pub struct MapStats {
        /// Page reads of the host that found their entry cached.
        pub read_hits: u64, sum of pages, summary "read.hits";
        /// Page reads that did not.
        pub read_misses: u64, sum of pages, summary "read.misses";
        /// Page writes that found their entry cached.
        pub write_hits: u64, sum of pages, summary "write.hits";
        /// Page writes that did not.
        pub write_misses: u64, sum of pages, summary "write.misses";
        /// Entries that left for another.
        pub evictions: u64, sum of entries;
        /// Of these the dirty ones.
        pub dirty_evictions: u64, sum of entries;
        /// Translation pages programmed to write changes back; GC's moves of translation pages are not among them.
        pub write_backs: u64, sum of pages;
        /// Dirty cached entries that became clean by that.
        pub written_entries: u64, sum of entries;
        /// Misses that had to wait because too much was being written back.
        pub waiting_misses: u64, sum of pages;
        /// Write-backs given up because the drive has worn out.
        pub given_up: u64, sum of pages;
    }
}

impl MapStats {
    #[inline]
    pub(crate) fn on_lookup(&mut self, is_read: bool, is_hit: bool) {
        let count = match (is_read, is_hit) {
            (true, true) => &mut self.read_hits,
            (true, false) => &mut self.read_misses,
            (false, true) => &mut self.write_hits,
            (false, false) => &mut self.write_misses,
        };
        *count += 1;
    }

    /// `map` of the summary, for a cache that has room for `capacity` entries and holds `cached`.
    pub(crate) fn summary(&self, capacity: u32, cached: u32) -> MapSummary {
        Section { counters: self.clone(), values: MapValues { entries: capacity, cached } }
    }
}

/// The cache of a demand map.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
#[schemars(rename = "MapSummary")]
pub struct MapValues {
    /// Entries that the cache has room for.
    #[schemars(extend("unit" = "entries"))]
    pub entries: u32,
    /// Entries in the cache at the end.
    #[schemars(extend("unit" = "entries"))]
    pub cached: u32,
}

impl Beside for MapValues {
    const BEFORE: Before = &[("read", &["entries", "cached"])];
}

/// `map` of the summary.
pub type MapSummary = Section<MapStats, MapValues>;
