//! Counters of read reclaim.

use crate::base::counters::counters;

counters! {
    /// Read reclaim: superblocks and units moved because of read disturb.
    pub struct ReclaimStats {
        /// Superblocks that read reclaim began to empty.
        pub blocks: u64, sum of blocks, life "reclaimed_blocks";
        /// Valid units of reclaimed superblocks when read reclaim began to empty them.
        pub pages: u64, sum of pages, life "reclaimed_pages";
        /// Sampled reads, whose RBER was predicted.
        pub samples: u64, sum of pages;
    }
}
