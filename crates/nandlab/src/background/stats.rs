//! Counters of GC.

use crate::base::counters::counters;
use crate::base::numbers::{number, ratio};
use crate::base::units::Span;
use schemars::JsonSchema;
use serde::Serialize;

counters! {
    /// Victims of GC, and dead superblocks.
    pub struct GcStats {
        /// Victims that GC began to empty.
        pub victims: u64, sum of blocks, summary "gc_victims";
        /// Forced victims: victims that GC took because they had the fewest valid units, and not the superblock that
        /// its policy picked. The reasons: the policy's superblock could not be emptied with a gain, or a translation
        /// page or a write had waited for room in vain.
        pub victims_forced: u64, sum of blocks, summary "gc_victims_forced";
        /// Victims other than the superblock that the policy `greedy` would have picked.
        pub victims_not_greedy: u64, sum of blocks, summary "gc_victims_not_greedy";
        /// Dead superblocks (full, without valid units and pins) that were erased without a GC job.
        pub dead_blocks: u64, sum of blocks;
        /// Valid units of GC's victims, counted when GC took the victim.
        pub victim_valid_pages: u64, sum of pages, summary "gc_victim_valid_pages";
    }
}

counters! {
    /// The times of GC's victims that have been erased.
    pub struct VictimStats {
        /// Victims of GC that have been erased.
        pub erased: u64, sum of blocks, reshaped "victim_ms";
        /// Time from taking a victim to the end of the last program that moves a unit of it.
        pub copies_ns: Span, sum of s, reshaped "victim_ms.copies";
        /// Time from then to the queueing of the erase.
        pub waiting_ns: Span, sum of s, reshaped "victim_ms.waiting";
        /// Time from then to the end of the erase.
        pub erase_ns: Span, sum of s, reshaped "victim_ms.erase";
    }
}

impl VictimStats {
    /// A victim has been erased: the times of its copies, of waiting, and of its erase.
    pub(crate) fn on_erased(&mut self, [copies, waiting, erase]: [Span; 3]) {
        self.erased += 1;
        self.copies_ns += copies;
        self.waiting_ns += waiting;
        self.erase_ns += erase;
    }

    /// The value of `gc.victim_ms` in the summary.
    pub(crate) fn means(&self) -> VictimMs {
        let mean = |sum: Span| number(ratio(sum.seconds() * 1e3, self.erased as f64));
        VictimMs { copies: mean(self.copies_ns), waiting: mean(self.waiting_ns), erase: mean(self.erase_ns) }
    }
}

/// GC's mean time for a victim, over the victims whose erase has ended, by part. The parts follow each other; 0 without
/// such a victim. The times of two victims of a lane overlap where the last units of one fill a programming unit with
/// the first of the next.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct VictimMs {
    /// Mean time from taking a victim to the end of the last program that moves a unit of it, including all waiting for
    /// dies, channels and host operations between the copies. 0 for a victim without valid units.
    #[schemars(extend("unit" = "ms"))]
    pub copies: f64,
    /// Mean time from then to the queueing of the erase: for reads of the victim's units, and for the programs of host
    /// writes that have replaced units of it.
    #[schemars(extend("unit" = "ms"))]
    pub waiting: f64,
    /// Mean time from then to the end of the erase, including its wait in the queue of its die and its suspensions; for
    /// a victim on several dies to the end of the last erase.
    #[schemars(extend("unit" = "ms"))]
    pub erase: f64,
}
