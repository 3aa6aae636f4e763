//! What is counted of copybacks.

use super::COPYBACKS_MAX;
use crate::base::counters::{Section, by_number, counters};
use serde_json::Value;

counters! {
    /// How victims and pages were moved.
    pub struct MigrationStats {
        /// Copybacks, by how many in a row they made: the first at index 0.
        pub by_count: [u64; COPYBACKS_MAX as usize], sum of pages;
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
    pub(crate) fn json(&self, most: u8, blocks: u32, pages: u32) -> Value {
        // Counters that hold 0 to `most`, packed.
        let bits = u64::from(u8::BITS - most.leading_zeros());
        let bytes = |counters: u32| (bits * u64::from(counters)).div_ceil(8);
        let mut section = Section::default();
        section.put("copybacks", self.by_count.iter().sum::<u64>());
        section.put_all(self);
        section.put("by_count", by_number(&self.by_count[..usize::from(most)]));
        section.put("counter_bytes_by_block", bytes(blocks));
        section.put("counter_bytes_by_page", bytes(pages));
        section.into()
    }
}
