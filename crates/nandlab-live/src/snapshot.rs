//! What a window on a live drive shows: the state of the drive at a time, and what has happened since the last snapshot.
//!
//! The thread of the drive fills a [`Snapshot`] now and then and gives it away; whoever shows it gives it back, so that
//! its memory is used again.

use nandlab::report::{Explained, Parts};
use nandlab_base::base::units::Time;
use serde_json::{Value, json};

/// Bits of a latency that its bin distinguishes, after the highest one.
const SUB_BITS: u32 = 5;
/// The number of bins: up to 2^45 ns, which is more than 9 hours.
const BINS: usize = ((45 - SUB_BITS as usize) << SUB_BITS) + (1 << SUB_BITS);

/// Latencies of requests, by bins whose width is at most 1/32 of their lower end.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Bins {
    counts: Vec<u32>,
    /// Number of requests.
    pub count: u64,
    /// Bytes of the requests.
    pub bytes: u64,
    /// Sum of the latencies in nanoseconds.
    pub sum_ns: u128,
    /// The longest latency in nanoseconds.
    pub max_ns: u64,
}

impl Default for Bins {
    fn default() -> Self {
        Self { counts: vec![0; BINS], count: 0, bytes: 0, sum_ns: 0, max_ns: 0 }
    }
}

impl Bins {
    fn bin(ns: u64) -> usize {
        if ns < 1 << SUB_BITS {
            return ns as usize;
        }
        let shift = ns.ilog2() - SUB_BITS;
        (((shift as usize) << SUB_BITS) + (ns >> shift) as usize).min(BINS - 1)
    }

    /// The highest latency of a bin.
    fn high(bin: usize) -> u64 {
        match (bin >> SUB_BITS).checked_sub(1) {
            None => bin as u64,
            Some(shift) => {
                let place = (bin & ((1 << SUB_BITS) - 1)) as u64;
                (((1 << SUB_BITS) + place + 1) << shift) - 1
            }
        }
    }

    /// Counts a request.
    pub fn add(&mut self, ns: u64, bytes: u64) {
        let count = &mut self.counts[Self::bin(ns)];
        *count = count.saturating_add(1);
        self.count += 1;
        self.bytes += bytes;
        self.sum_ns += u128::from(ns);
        self.max_ns = self.max_ns.max(ns);
    }

    /// Counts the requests of others too.
    pub fn add_all(&mut self, others: &Self) {
        for (count, more) in self.counts.iter_mut().zip(&others.counts) {
            *count = count.saturating_add(*more);
        }
        self.count += others.count;
        self.bytes += others.bytes;
        self.sum_ns += others.sum_ns;
        self.max_ns = self.max_ns.max(others.max_ns);
    }

    /// Forgets all requests.
    pub fn clear(&mut self) {
        if self.count > 0 {
            self.counts.fill(0);
        }
        (self.count, self.bytes, self.sum_ns, self.max_ns) = (0, 0, 0, 0);
    }

    /// The latency in nanoseconds that the share `share` of the requests (0 to 1) does not exceed: the upper end of its
    /// bin, and at most the longest latency; 0 without requests.
    pub fn quantile_ns(&self, share: f64) -> u64 {
        let wanted = ((self.count as f64 * share).ceil() as u64).max(1);
        let mut seen = 0;
        for (bin, &count) in self.counts.iter().enumerate() {
            seen += u64::from(count);
            if seen >= wanted && count > 0 {
                return Self::high(bin).min(self.max_ns);
            }
        }
        self.max_ns
    }

    /// Number, bytes and latencies in microseconds, as JSON.
    pub fn to_json(&self) -> Value {
        let us = |share: f64| self.quantile_ns(share) as f64 * 1e-3;
        let mean = if self.count > 0 { self.sum_ns as f64 / self.count as f64 * 1e-3 } else { 0.0 };
        json!({
            "count": self.count,
            "bytes": self.bytes,
            "mean": mean,
            "p50": us(0.5),
            "p95": us(0.95),
            "p99": us(0.99),
            "p999": us(0.999),
            "max": self.max_ns as f64 * 1e-3,
        })
    }
}

/// The number of bins of the valid shares of superblocks.
pub const SHARES: usize = 10;

/// What a connection has asked for so far.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Client {
    /// The number of the connection.
    pub number: u64,
    /// Reads.
    pub reads: u64,
    /// Writes.
    pub writes: u64,
    /// Other requests.
    pub others: u64,
    /// Bytes read.
    pub bytes_read: u64,
    /// Bytes written.
    pub bytes_written: u64,
    /// Requests without a reply.
    pub outstanding: u32,
    /// The placement identifier of its writes.
    pub placement: u16,
}

/// The state of a drive, and what has happened since the last snapshot.
#[derive(Clone, Debug, Default)]
pub struct Snapshot {
    /// The time of the server.
    pub at: Time,
    /// What the order `stat` answers.
    pub stat: Value,
    /// What the order `smart` answers.
    pub smart: Value,
    /// The state of the drive besides: what [`crate::backend::Backend::snapshot`] says.
    pub state: Value,
    /// By die what it does, as a number of `DieWork`.
    pub dies: Vec<u8>,
    /// Closed superblocks by valid share: a tenth in each.
    pub shares: [u32; SHARES],
    /// Reads and writes since the last snapshot.
    pub latency: [Bins; 2],
    /// What the requests that are explained have waited for, so far.
    pub parts: Parts,
    /// The slowest requests since the last snapshot, slowest first.
    pub slowest: Vec<Explained>,
    /// The connections.
    pub clients: Vec<Client>,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_bin_is_narrow_and_bins_follow_each_other() {
        let mut before = None;
        for bin in 0..BINS {
            let low = before.map_or(0, |high: u64| high + 1);
            let high = Bins::high(bin);
            assert_eq!((Bins::bin(low), Bins::bin(high)), (bin, bin));
            assert!((high - low) * 32 <= low, "{low} to {high}");
            before = Some(high);
        }
        assert_eq!(Bins::bin(u64::MAX), BINS - 1);
    }

    #[test]
    fn quantiles_are_those_of_the_sorted_latencies() {
        let mut bins = Bins::default();
        assert_eq!(bins.quantile_ns(0.5), 0);
        let mut all: Vec<u64> = (0..1000u64).map(|n| n * n * 37 + 11).collect();
        all.iter().for_each(|&ns| bins.add(ns, 1));
        all.sort_unstable();
        for share in [0.001, 0.5, 0.95, 0.99, 0.999, 1.0] {
            let exact = all[(share * 1000.0_f64).ceil() as usize - 1];
            let found = bins.quantile_ns(share);
            assert!(found >= exact && (found - exact) * 32 <= exact, "{share}: {found} for {exact}");
        }
        assert_eq!((bins.count, bins.max_ns, bins.quantile_ns(1.0)), (1000, all[999], all[999]));
        let (mut twice, half) = (bins.clone(), bins.quantile_ns(0.5));
        twice.add_all(&bins);
        assert_eq!((twice.count, twice.quantile_ns(0.5)), (2000, half));
        bins.clear();
        assert_eq!(bins, Bins::default());
    }
}
