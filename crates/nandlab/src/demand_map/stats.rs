//! Counters of the demand map.

use crate::base::counters::counters;
use crate::base::section::{Before, Beside, Section};
use schemars::JsonSchema;
use serde::Serialize;

counters! {
    /// Lookups, evictions and write-backs of a demand map.
    pub struct MapStats {
        /// Lookups of the map for reads of units that found the map entry cached.
        pub read_hits: u64, sum of pages, summary "read.hits";
        /// Lookups of the map for reads of units that did not find the map entry cached.
        pub read_misses: u64, sum of pages, summary "read.misses";
        /// Lookups of the map for writes of units that found the map entry cached.
        pub write_hits: u64, sum of pages, summary "write.hits";
        /// Lookups of the map for writes of units that did not find the map entry cached.
        pub write_misses: u64, sum of pages, summary "write.misses";
        /// Map entries evicted from the mapping cache.
        pub evictions: u64, sum of entries;
        /// Dirty map entries evicted from the mapping cache.
        pub dirty_evictions: u64, sum of entries;
        /// Translation pages programmed to write back changes; moves of translation pages by GC do not count.
        pub write_backs: u64, sum of pages;
        /// Dirty map entries that became clean because their translation page was written back.
        pub written_entries: u64, sum of entries;
        /// Misses that waited because too many translation pages were being written back.
        pub waiting_misses: u64, sum of pages;
        /// Write-backs abandoned because the lane of the translation page was worn out.
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

    /// The value of `map` in the summary, for a cache that has room for `capacity` entries and holds `cached`.
    pub(crate) fn summary(&self, capacity: u32, cached: u32) -> MapSummary {
        Section { counters: self.clone(), values: MapValues { entries: capacity, cached } }
    }
}

/// The mapping cache of a demand map.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
#[schemars(rename = "MapSummary")]
pub struct MapValues {
    /// Number of map entries for which the mapping cache has room.
    #[schemars(extend("unit" = "entries"))]
    pub entries: u32,
    /// Number of map entries in the mapping cache at the end of the run.
    #[schemars(extend("unit" = "entries"))]
    pub cached: u32,
}

impl Beside for MapValues {
    const BEFORE: Before = &[("read", &["entries", "cached"])];
}

/// The value of `map` in the summary.
pub type MapSummary = Section<MapStats, MapValues>;
