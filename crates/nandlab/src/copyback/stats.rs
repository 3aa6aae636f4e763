//! What is counted of copybacks.

use super::COPYBACKS_MAX;
use crate::base::counters::counters;
use crate::base::section::{Before, Beside, ByNumber, Section};
use schemars::JsonSchema;
use serde::Serialize;

counters! {
    /// How victims and pages were moved.
    pub struct MigrationStats {
        /// Copybacks, by how many in a row they made: the first at index 0.
        pub by_count: [u64; COPYBACKS_MAX as usize], sum of pages, reshaped "by_count";
        /// Pages that went off-chip because of their limit.
        pub refused: u64, sum of pages, life "refused_copybacks";
        /// Victims whose pages were to be copied back.
        pub victims_copied_back: u64, sum of blocks;
        /// Victims that might have been, and that the policy moved off-chip.
        pub victims_off_chip: u64, sum of blocks;
        /// Victims that went off-chip because their plane had too few free blocks to open another one.
        pub victims_without_room: u64, sum of blocks;
    }
}

impl MigrationStats {
    #[inline]
    pub(crate) fn on_copyback(&mut self, in_a_row: u8) {
        self.by_count[usize::from(in_a_row) - 1] += 1;
    }

    /// `migration` of the summary, for a drive with so many blocks and pages and so many copybacks in a row at most.
    pub(crate) fn summary(&self, most: u8, blocks: u32, pages: u32) -> MigrationSummary {
        // Counters that hold 0 to `most`, packed.
        let bits = u64::from(u8::BITS - most.leading_zeros());
        let bytes = |counters: u32| (bits * u64::from(counters)).div_ceil(8);
        let values = MigrationValues {
            copybacks: self.by_count.iter().sum(),
            by_count: ByNumber::new(&self.by_count[..usize::from(most)]),
            counter_bytes_by_block: bytes(blocks),
            counter_bytes_by_page: bytes(pages),
        };
        Section { counters: self.clone(), values }
    }
}

/// How victims and pages were moved.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
#[schemars(rename = "MigrationSummary")]
pub struct MigrationValues {
    /// Pages copied back.
    #[schemars(extend("unit" = "pages"))]
    pub copybacks: u64,
    /// Pages copied back, by how many copybacks in a row they had made with that.
    #[schemars(extend("unit" = "pages"))]
    pub by_count: ByNumber,
    /// RAM of the counters of copybacks in a row, one for each block.
    #[schemars(extend("unit" = "bytes"))]
    pub counter_bytes_by_block: u64,
    /// The same with one for each page.
    #[schemars(extend("unit" = "bytes"))]
    pub counter_bytes_by_page: u64,
}

impl Beside for MigrationValues {
    const BEFORE: Before = &[("refused", &["copybacks", "by_count"])];
}

/// `migration` of the summary.
pub type MigrationSummary = Section<MigrationStats, MigrationValues>;
