//! What is counted of GC.

use crate::base::counters::counters;

counters! {
    /// Victims, and blocks that needed no GC.
    pub struct GcStats {
        /// Victims emptied by GC.
        pub victims: u64, sum of blocks, summary "gc_victims";
        /// Victims that GC took because the plane was down to what it must keep, in place of the policy's.
        pub victims_forced: u64, sum of blocks, summary "gc_victims_forced";
        /// Blocks without valid pages that were erased beside GC.
        pub dead_blocks: u64, sum of blocks;
        /// Valid pages in GC's victims when they were chosen.
        pub victim_valid_pages: u64, sum of pages, summary "gc_victim_valid_pages";
    }
}
