//! What is counted of the demand map.

use serde_json::{Value, json};

/// Lookups, evictions and write-backs of a demand map.
#[derive(Clone, Debug, Default)]
pub struct MapStats {
    /// Page reads of the host that found their entry cached.
    pub read_hits: u64,
    /// Page reads that did not.
    pub read_misses: u64,
    /// Page writes that found their entry cached.
    pub write_hits: u64,
    /// Page writes that did not.
    pub write_misses: u64,
    /// Entries that left for another.
    pub evictions: u64,
    /// Of these the dirty ones.
    pub dirty_evictions: u64,
    /// Translation pages programmed to write changes back; GC's moves of translation pages are not among them.
    pub write_backs: u64,
    /// Dirty cached entries that became clean by that.
    pub written_entries: u64,
    /// Write-backs given up because the drive has worn out.
    pub given_up: u64,
    /// Misses that had to wait because too much was being written back.
    pub throttled: u64,
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

    /// `map` of the summary, for a cache of so many entries.
    pub(crate) fn json(&self, capacity: u32, cached: u32) -> Value {
        json!({
            "entries": capacity,
            "cached": cached,
            "read": { "hits": self.read_hits, "misses": self.read_misses },
            "write": { "hits": self.write_hits, "misses": self.write_misses },
            "evictions": self.evictions,
            "dirty_evictions": self.dirty_evictions,
            "write_backs": self.write_backs,
            "written_entries": self.written_entries,
            "throttled": self.throttled,
            "given_up": self.given_up,
        })
    }
}
