//! Counters of GC.

use crate::base::counters::counters;

counters! {
    /// Victims of GC, and dead blocks.
    pub struct GcStats {
        /// Victims that GC began to empty.
        pub victims: u64, sum of blocks, summary "gc_victims";
        /// Forced victims: victims that GC took because they had the fewest valid pages, and not the block that its
        /// policy picked. The reasons: the policy's block could not be emptied with a gain, or a translation page or a
        /// write had waited for room in vain.
        pub victims_forced: u64, sum of blocks, summary "gc_victims_forced";
        /// Victims other than the block that the policy `greedy` would have picked.
        pub victims_not_greedy: u64, sum of blocks, summary "gc_victims_not_greedy";
        /// Dead blocks (full, without valid pages and pins) that were erased without a GC job.
        pub dead_blocks: u64, sum of blocks;
        /// Valid pages of GC's victims, counted when GC took the victim.
        pub victim_valid_pages: u64, sum of pages, summary "gc_victim_valid_pages";
    }
}
