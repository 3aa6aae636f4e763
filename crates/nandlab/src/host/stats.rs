//! What is measured of the host's requests.

use crate::base::counters::counters;
use crate::base::numbers::{number, ratio};
use hdrhistogram::Histogram;
use schemars::JsonSchema;
use serde::Serialize;

/// The longest latency told apart, in nanoseconds: 3 hours; longer ones count as this one in percentiles (the
/// maximum and the mean stay exact).
const LATENCY_NS_MAX: u64 = 3 * 3600 * 1_000_000_000;

/// Latencies of an operation.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct LatencyUs {
    /// Mean.
    #[schemars(extend("unit" = "us"))]
    pub mean: f64,
    /// Median.
    #[schemars(extend("unit" = "us"))]
    pub p50: f64,
    /// 95th percentile.
    #[schemars(extend("unit" = "us"))]
    pub p95: f64,
    /// 99th percentile.
    #[schemars(extend("unit" = "us"))]
    pub p99: f64,
    /// 99.9th percentile.
    #[schemars(extend("unit" = "us"))]
    pub p999: f64,
    /// Maximum.
    #[schemars(extend("unit" = "us"))]
    pub max: f64,
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

    /// An operation of `latency_us` of the summary.
    pub(crate) fn summary(&self) -> LatencyUs {
        let us = |ns: f64| number(ns * 1e-3);
        LatencyUs {
            mean: us(self.mean_ns()),
            p50: us(self.quantile_ns(0.50) as f64),
            p95: us(self.quantile_ns(0.95) as f64),
            p99: us(self.quantile_ns(0.99) as f64),
            p999: us(self.quantile_ns(0.999) as f64),
            max: us(self.max_ns as f64),
        }
    }

    /// What was recorded between `then` and now, for `life.parquet`: requests, bytes, mean and 99th percentile.
    pub(crate) fn life_since(&self, then: &Self) -> [f64; 4] {
        let mut histogram = self.histogram.clone();
        histogram.subtract(&then.histogram).expect("what was counted stays counted");
        let count = (self.count - then.count) as f64;
        let p99 = if count > 0.0 { histogram.value_at_quantile(0.99) as f64 * 1e-3 } else { 0.0 };
        let mean = ratio((self.sum_ns - then.sum_ns) as f64 * 1e-3, count);
        [count, (self.bytes - then.bytes) as f64, mean, p99]
    }
}

counters! {
    /// Pages of the host.
    pub struct Counters {
        /// Pages of writes that the drive has done, a partly written page counted as one.
        pub host_pages_written: u64, sum of pages, life "host_pages";
        /// Pages the host wrote only partly.
        pub partial_writes: u64, sum of pages, smart "UnalignedIO";
        /// Pages read to complete a partly written one (read-modify-write).
        pub merge_reads: u64, sum of pages;
        /// Page reads of LPNs that hold nothing; answered without flash.
        pub unmapped_reads: u64, sum of pages;
        /// Page reads answered from the controller's buffer, their program being under way.
        pub buffered_reads: u64, sum of pages;
        /// Mapped pages deallocated by TRIM.
        pub trimmed_pages: u64, sum of pages;
        /// Page writes that had to wait for GC to make room.
        pub waiting_writes: u64, sum of pages;
        /// Page writes that failed because the drive had no room left at all.
        pub failed_pages: u64, sum of pages, life "failed_pages";
        /// Pages that host requests could not have because no read level decodes them.
        pub media_errors: u64, sum of pages, life "media_errors";
    }
}
