//! Counters and latencies of the host's requests.

use crate::base::counters::counters;
use crate::base::numbers::{number, ratio};
use crate::base::state::{StateError, StateReader, StateWriter, Value, state_of_value};
use hdrhistogram::Histogram;
use schemars::JsonSchema;
use serde::Serialize;

/// The longest latency that percentiles distinguish, in nanoseconds: 3 hours. A longer latency counts as 3 hours in
/// percentiles; the maximum and the mean are exact.
const LATENCY_NS_MAX: u64 = 3 * 3600 * 1_000_000_000;

/// The number of latencies that are counted together.
const RECENT_MAX: usize = 32;

/// Latencies of completed requests of one operation.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct LatencyUs {
    /// Mean latency.
    #[schemars(extend("unit" = "us"))]
    pub mean: f64,
    /// Median latency.
    #[schemars(extend("unit" = "us"))]
    pub p50: f64,
    /// 95th percentile of the latency.
    #[schemars(extend("unit" = "us"))]
    pub p95: f64,
    /// 99th percentile of the latency.
    #[schemars(extend("unit" = "us"))]
    pub p99: f64,
    /// 99.9th percentile of the latency.
    #[schemars(extend("unit" = "us"))]
    pub p999: f64,
    /// Longest latency.
    #[schemars(extend("unit" = "us"))]
    pub max: f64,
}

/// Latencies and bytes of completed requests of one operation.
#[derive(Clone, Debug)]
pub struct Latency {
    /// Latencies in nanoseconds, to three significant digits, without the `recent` ones.
    counted: Histogram<u64>,
    /// The most recent latencies. The counter of a latency is rarely in the CPU's cache, and counters that are
    /// incremented together are fetched together.
    recent: Vec<u64>,
    /// Number of completed requests.
    pub count: u64,
    /// Bytes of the completed requests.
    pub bytes: u64,
    /// Sum of the latencies in nanoseconds.
    pub sum_ns: u128,
    /// Longest latency in nanoseconds, exact.
    pub max_ns: u64,
    /// Shortest latency in nanoseconds, exact; `u64::MAX` without requests.
    pub min_ns: u64,
}

impl Latency {
    pub(crate) fn new() -> Self {
        let counted = Histogram::new_with_bounds(1, LATENCY_NS_MAX, 3).expect("the bounds are in order");
        Self {
            counted,
            recent: Vec::with_capacity(RECENT_MAX),
            count: 0,
            bytes: 0,
            sum_ns: 0,
            max_ns: 0,
            min_ns: u64::MAX,
        }
    }

    /// Forgets all requests.
    pub(crate) fn clear(&mut self) {
        self.counted.reset();
        self.recent.clear();
        (self.count, self.bytes, self.sum_ns, self.max_ns, self.min_ns) = (0, 0, 0, 0, u64::MAX);
    }

    #[inline]
    pub(crate) fn record(&mut self, ns: u64, bytes: u64) {
        if self.recent.len() == RECENT_MAX {
            self.count_recent();
        }
        self.recent.push(ns);
        self.count += 1;
        self.bytes += bytes;
        self.sum_ns += u128::from(ns);
        self.max_ns = self.max_ns.max(ns);
        self.min_ns = self.min_ns.min(ns);
    }

    #[cold]
    fn count_recent(&mut self) {
        self.recent.drain(..).for_each(|ns| self.counted.saturating_record(ns));
    }

    /// The latencies in nanoseconds, to three significant digits.
    pub fn histogram(&self) -> Histogram<u64> {
        let mut histogram = self.counted.clone();
        self.recent.iter().for_each(|&ns| histogram.saturating_record(ns));
        histogram
    }

    /// Mean latency in nanoseconds; 0 without requests.
    pub fn mean_ns(&self) -> f64 {
        if self.count == 0 { 0.0 } else { self.sum_ns as f64 / self.count as f64 }
    }

    /// The latency in nanoseconds that the share `share` of the requests does not exceed. It has three significant
    /// digits and lies between the exact shortest and longest latency; 0 without requests.
    pub fn quantile_ns(&self, share: f64) -> u64 {
        let [quantile] = self.quantiles_ns([share]);
        quantile
    }

    fn quantiles_ns<const N: usize>(&self, shares: [f64; N]) -> [u64; N] {
        if self.count == 0 {
            return [0; N];
        }
        let histogram = self.histogram();
        shares.map(|share| histogram.value_at_quantile(share).clamp(self.min_ns, self.max_ns))
    }

    /// Adds the requests of another operation.
    pub fn merge(&mut self, other: &Self) {
        self.counted.add(other.histogram()).expect("all histograms have the same bounds");
        self.count += other.count;
        self.bytes += other.bytes;
        self.sum_ns += other.sum_ns;
        self.max_ns = self.max_ns.max(other.max_ns);
        self.min_ns = self.min_ns.min(other.min_ns);
    }

    /// The value of one operation in `latency_us` of the summary.
    pub(crate) fn summary(&self) -> LatencyUs {
        let us = |ns: f64| number(ns * 1e-3);
        let [p50, p95, p99, p999] = self.quantiles_ns([0.50, 0.95, 0.99, 0.999]).map(|ns| us(ns as f64));
        LatencyUs { mean: us(self.mean_ns()), p50, p95, p99, p999, max: us(self.max_ns as f64) }
    }

    /// Columns of `life.parquet` for the time between `then` and now: number of requests, bytes, mean and 99th
    /// percentile of the latency in microseconds.
    pub(crate) fn life_since(&self, then: &Self) -> [f64; 4] {
        let mut histogram = self.histogram();
        histogram.subtract(then.histogram()).expect("counts never fall");
        let count = (self.count - then.count) as f64;
        let p99 = if count > 0.0 { histogram.value_at_quantile(0.99) as f64 * 1e-3 } else { 0.0 };
        let mean = ratio((self.sum_ns - then.sum_ns) as f64 * 1e-3, count);
        [count, (self.bytes - then.bytes) as f64, mean, p99]
    }
}

counters! {
    /// Counters of host units.
    pub struct Counters {
        /// Units of completed host writes; a partly written unit counts as one unit.
        pub host_pages_written: u64, sum of pages, life "host_pages";
        /// Units that the host wrote only partly; 0 with a write cache, which merges such units itself.
        pub partial_writes: u64, sum of pages, smart "UnalignedIO";
        /// Units read from flash to complete a partly written unit (read-modify-write); 0 with a write cache.
        pub merge_reads: u64, sum of pages;
        /// Unit reads of LPNs without data, which are answered without a flash read.
        pub unmapped_reads: u64, sum of pages;
        /// Unit reads answered from the controller's buffer, because the program of the unit was queued or under way.
        pub buffered_reads: u64, sum of pages;
        /// Units with data, in flash or in the write cache, that TRIM has deallocated.
        pub trimmed_pages: u64, sum of pages;
        /// Unit writes, of the host or of the write cache, that waited for room in flash.
        pub waiting_writes: u64, sum of pages;
        /// Unit writes, of the host or of the write cache, that failed because every lane that could take the unit was
        /// worn out.
        pub failed_pages: u64, sum of pages, life "failed_pages";
        /// Units that made host requests fail: no read level decodes their data or map entry, or the data has been
        /// lost.
        pub media_errors: u64, sum of pages, life "media_errors";
    }
}

/// Of the histogram, the latencies that have been counted and how often.
impl Value for Latency {
    fn save(&self, out: &mut StateWriter<'_>) {
        let Self { counted, recent, count, bytes, sum_ns, max_ns, min_ns } = self;
        let counts = counted.iter_recorded().map(|step| (step.value_iterated_to(), step.count_at_value()));
        counts.collect::<Vec<(u64, u64)>>().save(out);
        recent.save(out);
        (*count, *bytes, *sum_ns).save(out);
        (*max_ns, *min_ns).save(out);
    }

    fn load(from: &mut StateReader<'_>) -> Result<Self, StateError> {
        let mut latency = Self::new();
        for (ns, count) in Vec::<(u64, u64)>::load(from)? {
            latency.counted.saturating_record_n(ns, count);
        }
        latency.recent.extend(Vec::<u64>::load(from)?);
        (latency.count, latency.bytes, latency.sum_ns) = Value::load(from)?;
        (latency.max_ns, latency.min_ns) = Value::load(from)?;
        Ok(latency)
    }
}

state_of_value! { Latency }
