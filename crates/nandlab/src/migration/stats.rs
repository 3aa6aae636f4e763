//! Counters of copybacks.

use super::COPYBACKS_MAX;
use crate::base::counters::counters;
use crate::base::section::{Before, Beside, ByNumber, Section};
use schemars::JsonSchema;
use serde::Serialize;

counters! {
    /// Counters of victims and pages moved by copyback or off-chip. A victim is a superblock.
    pub struct MigrationStats {
        /// Copybacks by their number in a row: index 0 counts the first copybacks after a correction.
        pub by_count: [u64; COPYBACKS_MAX as usize], sum of pages, reshaped "by_count";
        /// Pages of victims chosen for copyback that were moved off-chip because the limit allowed no copyback of them.
        pub refused: u64, sum of pages, life "refused_copybacks";
        /// Pages of victims chosen for copyback that were moved off-chip because too few of their units were valid
        /// (`migration.valid_min`).
        pub too_few_valid: u64, sum of pages;
        /// Pages of victims chosen for copyback that were moved off-chip because too few others filled a programming
        /// unit with them.
        pub left_over: u64, sum of pages;
        /// Units without valid data that were copied back with the valid units of their page.
        pub dead_units: u64, sum of units;
        /// Victims chosen for copyback; the limit may have refused some of their pages.
        pub victims_copied_back: u64, sum of blocks;
        /// Victims that the policy moved off-chip although the highest limit would have allowed a copyback.
        pub victims_off_chip: u64, sum of blocks;
        /// Victims that were moved off-chip because copybacks would have copied so many units without valid data that
        /// the erase would have gained nothing.
        pub victims_without_gain: u64, sum of blocks;
        /// Victims that were moved off-chip because their lane had too few free superblocks to open one for
        /// copybacks.
        pub victims_without_room: u64, sum of blocks;
    }
}

impl MigrationStats {
    /// Pages copied back.
    pub(crate) fn copybacks(&self) -> u64 {
        self.by_count.iter().sum()
    }

    #[inline]
    pub(crate) fn on_copyback(&mut self, in_a_row: u8) {
        self.by_count[usize::from(in_a_row) - 1] += 1;
    }

    /// Returns the section `migration` of the summary. `most`: the highest number of copybacks in a row;
    /// `superblocks` and `units`: the size of the drive.
    pub(crate) fn summary(&self, most: u8, superblocks: u32, units: u32) -> MigrationSummary {
        // Each counter holds 0 to `most`; the counters are packed bit by bit.
        let bits = u64::from(u8::BITS - most.leading_zeros());
        let bytes = |counters: u32| (bits * u64::from(counters)).div_ceil(8);
        let values = MigrationValues {
            copybacks: self.copybacks(),
            by_count: ByNumber::new(&self.by_count[..usize::from(most)]),
            counter_bytes_by_block: bytes(superblocks),
            counter_bytes_by_page: bytes(units),
        };
        Section { counters: self.clone(), values }
    }
}

/// Victims and pages moved by copyback or off-chip.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
#[schemars(rename = "MigrationSummary")]
pub struct MigrationValues {
    /// Pages copied back.
    #[schemars(extend("unit" = "pages"))]
    pub copybacks: u64,
    /// Pages copied back, by the number of the copyback in a row: 1 is the first copyback after a correction.
    #[schemars(extend("unit" = "pages"))]
    pub by_count: ByNumber,
    /// RAM needed to count copybacks in a row with one counter per superblock.
    #[schemars(extend("unit" = "bytes"))]
    pub counter_bytes_by_block: u64,
    /// RAM needed to count copybacks in a row with one counter per unit.
    #[schemars(extend("unit" = "bytes"))]
    pub counter_bytes_by_page: u64,
}

impl Beside for MigrationValues {
    const BEFORE: Before = &[("refused", &["copybacks", "by_count"])];
}

/// `migration` of the summary.
pub type MigrationSummary = Section<MigrationStats, MigrationValues>;
