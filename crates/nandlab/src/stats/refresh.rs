//! What is counted of refresh.

use serde_json::{Value, json};

/// Blocks refreshed, and how well that kept to its times.
#[derive(Clone, Debug, Default)]
pub struct RefreshStats {
    /// Blocks that were due and held valid data.
    pub blocks: u64,
    /// Valid pages in them when their refresh began.
    pub pages: u64,
    /// Blocks that were refreshed more than the grace after they were due.
    pub late_blocks: u64,
    /// The longest that one was overdue, in seconds on the scaled clock.
    pub overdue_max_s: u32,
    /// From the beginning of each block's refresh to its end, added up, in nanoseconds.
    pub busy_ns: u64,
    /// Refreshes that were put before the host's writes because their grace was running out.
    pub promoted: u64,
}

impl RefreshStats {
    /// `refresh` of the summary.
    pub(super) fn json(&self) -> Value {
        json!({
            "blocks": self.blocks,
            "pages": self.pages,
            "late_blocks": self.late_blocks,
            "overdue_max_s": self.overdue_max_s,
            "busy_s": self.busy_ns as f64 * 1e-9,
            "block_mean_s": if self.blocks == 0 { 0.0 } else { self.busy_ns as f64 * 1e-9 / self.blocks as f64 },
            "promoted": self.promoted,
        })
    }
}
