//! What is counted of the write cache.

use serde_json::{Value, json};

/// Hits, evictions and write-backs of a write cache. All in pages.
#[derive(Clone, Debug, Default)]
pub struct CacheStats {
    /// Reads that found all their sectors.
    pub read_hits: u64,
    /// Reads that did not.
    pub read_misses: u64,
    /// Writes of cached pages.
    pub write_hits: u64,
    /// Writes of pages that were not.
    pub write_misses: u64,
    /// Clean pages that left for others.
    pub evictions: u64,
    /// Dirty pages that had to be written back first.
    pub dirty_evictions: u64,
    /// Pages written back because the drive was idle or the host asked for a flush.
    pub syncs: u64,
    /// Pages written back, whatever the reason.
    pub write_backs: u64,
    /// Writes that waited for a slot or for the dirty budget.
    pub stalled_writes: u64,
    /// Writes that waited because their page was being written back (write protection).
    pub blocked_updates: u64,
    /// Most dirty pages at a time.
    pub dirty_pages_max: u32,
}

impl CacheStats {
    /// `cache` of the summary, for so many pages, dirty ones allowed, and dirty ones at the end.
    pub(crate) fn json(&self, size_bytes: u64, [pages, budget, dirty]: [u32; 3]) -> Value {
        json!({
            "size_bytes": size_bytes,
            "pages": pages,
            "budget_pages": budget,
            "read_hits": self.read_hits,
            "read_misses": self.read_misses,
            "write_hits": self.write_hits,
            "write_misses": self.write_misses,
            "evictions": self.evictions,
            "dirty_evictions": self.dirty_evictions,
            "syncs": self.syncs,
            "write_backs": self.write_backs,
            "stalled_writes": self.stalled_writes,
            "blocked_updates": self.blocked_updates,
            "dirty_pages": dirty,
            "dirty_pages_max": self.dirty_pages_max,
        })
    }
}
