//! Counters of the SLC cache.

use crate::base::counters::counters;

counters! {
    /// The SLC cache: units that the host wrote in each mode, and units folded.
    pub struct SlcStats {
        /// Units of the host programmed in SLC mode.
        pub cached: u64, sum of units, life "slc_cached";
        /// Units of the host programmed without SLC mode.
        pub direct: u64, sum of units, life "slc_direct";
        /// Superblocks that folding began to empty.
        pub blocks: u64, sum of blocks, life "slc_folded_blocks";
        /// Valid units of the superblocks folded in idle time, when folding began.
        pub folded_idle: u64, sum of units, summary "folded.idle";
        /// Valid units of the superblocks folded above the watermark or for a waiting write, when folding began.
        pub folded_full: u64, sum of units, summary "folded.full";
        /// Valid units of the superblocks folded because a lane was short of space, when folding began.
        pub folded_space: u64, sum of units, summary "folded.space";
    }
}
