//! What is counted. A counter is one line in [`Counters`], a histogram one field of [`Stats`].

pub use crate::capacitor::{Detection, PowerLoss, PowerStats, Recovery};
pub use crate::copyback::MigrationStats;
pub use crate::demand_map::MapStats;
pub use crate::drive::Stats;
pub use crate::read_levels::{ByLevel, EccStats};
pub use crate::refresh::RefreshStats;
pub use crate::report::*;
pub use crate::write_cache::CacheStats;

use hdrhistogram::Histogram;

/// The longest latency told apart, in nanoseconds: 3 hours; longer ones count as this one in percentiles (the
/// maximum and the mean stay exact).
const LATENCY_NS_MAX: u64 = 3 * 3600 * 1_000_000_000;

macro_rules! counters {
    ($($(#[$doc:meta])* $name:ident,)*) => {
        /// Plain event counters of a run.
        #[derive(Clone, Debug, Default, PartialEq, Eq)]
        pub struct Counters {
            $($(#[$doc])* pub $name: u64,)*
        }
        impl Counters {
            /// Adds others.
            pub(crate) fn add(&mut self, other: &Self) {
                $(self.$name += other.$name;)*
            }

            /// Every counter with its name.
            pub fn named(&self) -> Vec<(&'static str, u64)> {
                vec![$((stringify!($name), self.$name),)*]
            }
        }
    };
}

counters! {
    /// Pages of writes that the drive has done, a partly written page counted as one.
    host_pages_written,
    /// Pages the host wrote only partly.
    partial_writes,
    /// Pages read to complete a partly written one (read-modify-write).
    merge_reads,
    /// Page reads of LPNs that hold nothing; answered without flash.
    unmapped_reads,
    /// Page reads answered from the controller's buffer, their program being under way.
    buffered_reads,
    /// Mapped pages deallocated by TRIM.
    trimmed_pages,
    /// Page writes that had to wait for GC to make room.
    stalled_writes,
    /// Page writes that failed because the drive had no room left at all.
    failed_pages,
    /// Pages that host requests could not have because no read level decodes them.
    media_errors,
    /// Victims emptied by GC.
    gc_victims,
    /// Victims that GC took because the plane was down to what it must keep, in place of the policy's.
    gc_victims_forced,
    /// Blocks without valid pages that were erased beside GC.
    dead_blocks,
    /// Valid pages in those victims when they were chosen.
    gc_victim_valid_pages,
}

/// Latencies of one operation.
#[derive(Clone, Debug)]
pub struct Latency {
    /// Nanoseconds, to three digits.
    pub histogram: Histogram<u64>,
    /// Requests.
    pub count: u64,
    /// Bytes of those requests.
    pub bytes: u64,
    /// Sum in nanoseconds.
    pub sum_ns: u128,
    /// Longest, exact.
    pub max_ns: u64,
    /// Shortest, exact.
    pub min_ns: u64,
}

impl Latency {
    pub(crate) fn new() -> Self {
        let histogram = Histogram::new_with_bounds(1, LATENCY_NS_MAX, 3).expect("the bounds are in order");
        Self { histogram, count: 0, bytes: 0, sum_ns: 0, max_ns: 0, min_ns: u64::MAX }
    }

    #[inline]
    pub(crate) fn record(&mut self, ns: u64, bytes: u64) {
        self.histogram.saturating_record(ns);
        self.count += 1;
        self.bytes += bytes;
        self.sum_ns += u128::from(ns);
        self.max_ns = self.max_ns.max(ns);
        self.min_ns = self.min_ns.min(ns);
    }

    /// Mean in nanoseconds.
    pub fn mean_ns(&self) -> f64 {
        if self.count == 0 { 0.0 } else { self.sum_ns as f64 / self.count as f64 }
    }

    /// The latency that `share` of the requests do not exceed, in nanoseconds, to three digits and never outside
    /// the exact extremes.
    pub fn quantile_ns(&self, share: f64) -> u64 {
        if self.count == 0 {
            0
        } else {
            self.histogram.value_at_quantile(share).clamp(self.min_ns, self.max_ns)
        }
    }

    /// Adds another operation's.
    pub fn merge(&mut self, other: &Self) {
        self.histogram.add(&other.histogram).expect("all histograms have the same bounds");
        self.count += other.count;
        self.bytes += other.bytes;
        self.sum_ns += other.sum_ns;
        self.max_ns = self.max_ns.max(other.max_ns);
        self.min_ns = self.min_ns.min(other.min_ns);
    }
}
