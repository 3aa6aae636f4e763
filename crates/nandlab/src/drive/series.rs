//! The run over time, in a fixed number of rows: when they are used up, neighbours are merged and rows get twice
//! as long. So a row holds sums, and memory does not grow with the run.

use crate::base::units::{MS, Span, Time};
use crate::sched::Cause;

/// What happened in one interval.
#[derive(Clone, Debug, Default)]
pub struct Window {
    /// Requests completed, by operation.
    pub requests: [u64; 4],
    /// Their bytes.
    pub bytes: [u64; 4],
    /// Their latencies' sum in nanoseconds.
    pub latency_ns: [u128; 4],
    /// The longest.
    pub latency_ns_max: [Span; 4],
    /// Pages of the writes among them that did not fail, whether to the cache or to flash.
    pub pages_written: u64,
    /// Pages programmed, by cause.
    pub programs: [u64; Cause::ALL.len()],
    /// Blocks erased.
    pub erases: u64,
    /// GC victims chosen.
    pub victims: u64,
    /// Valid pages in them.
    pub victim_valid_pages: u64,
    /// Outstanding requests, integrated over time.
    pub outstanding_ns: u128,
    /// Die busy time, summed over the dies.
    pub die_busy_ns: Span,
    /// Free share of the fullest plane at the end.
    pub free_share_min: f64,
    /// Mean free share of the planes, times the interval.
    pub free_share_ns: f64,
    /// Most dirty pages of the write cache.
    pub dirty_pages_max: u32,
    /// The highest dirty budget, in pages.
    pub budget_pages_max: u32,
    /// Pages that the full capacitor could save at the end.
    pub capacitor_pages: f64,
    /// The interval's end.
    pub end: Time,
}

impl Window {
    fn merge(&mut self, next: &Self) {
        for op in 0..4 {
            self.requests[op] += next.requests[op];
            self.bytes[op] += next.bytes[op];
            self.latency_ns[op] += next.latency_ns[op];
            self.latency_ns_max[op] = self.latency_ns_max[op].max(next.latency_ns_max[op]);
        }
        self.pages_written += next.pages_written;
        for (mine, theirs) in self.programs.iter_mut().zip(next.programs) {
            *mine += theirs;
        }
        self.erases += next.erases;
        self.victims += next.victims;
        self.victim_valid_pages += next.victim_valid_pages;
        self.outstanding_ns += next.outstanding_ns;
        self.die_busy_ns += next.die_busy_ns;
        self.free_share_min = self.free_share_min.min(next.free_share_min);
        self.free_share_ns += next.free_share_ns;
        self.dirty_pages_max = self.dirty_pages_max.max(next.dirty_pages_max);
        self.budget_pages_max = self.budget_pages_max.max(next.budget_pages_max);
        self.capacitor_pages = next.capacitor_pages;
        self.end = next.end;
    }
}

/// The rows of `series.parquet`.
#[derive(Debug)]
pub struct Series {
    rows: Vec<Window>,
    rows_max: usize,
    interval_ns: Span,
}

impl Series {
    pub(super) fn new(rows_max: usize) -> Self {
        let rows_max = rows_max.max(2).next_multiple_of(2);
        Self { rows: Vec::with_capacity(rows_max), rows_max, interval_ns: MS }
    }

    pub(super) fn interval_ns(&self) -> Span {
        self.interval_ns
    }

    pub(super) fn end_ns(&self) -> Time {
        self.rows.last().map_or(Time::START, |row| row.end)
    }

    /// The rows so far.
    pub fn rows(&self) -> &[Window] {
        &self.rows
    }

    /// Adds a row; whether neighbours have been merged.
    pub(super) fn push(&mut self, end: Time, mut window: Window) -> bool {
        window.end = end;
        self.rows.push(window);
        if self.rows.len() == self.rows_max {
            let merged = self.rows.chunks(2).map(|pair| {
                let mut row = pair[0].clone();
                row.merge(&pair[1]);
                row
            });
            self.rows = merged.collect();
            self.interval_ns *= 2;
            return true;
        }
        false
    }
}

/// How busy each die was, one row for each row of the series.
#[derive(Debug)]
pub struct DieSeries {
    /// Busy nanoseconds, one number a die and row.
    busy_ns: Vec<Span>,
    last_total: Vec<Span>,
}

impl DieSeries {
    pub(super) fn new(dies: usize) -> Self {
        Self { busy_ns: Vec::new(), last_total: vec![Span::ZERO; dies] }
    }

    /// Takes each die's busy time so far as a new row; returns what was added since the last one, summed over the
    /// dies.
    pub(super) fn push(&mut self, totals: impl Iterator<Item = Span>) -> Span {
        let mut sum = Span::ZERO;
        for (last, total) in self.last_total.iter_mut().zip(totals) {
            let added = total.saturating_sub(*last);
            *last = total;
            sum += added;
            self.busy_ns.push(added);
        }
        sum
    }

    /// Follows the series in merging neighbouring rows.
    pub(super) fn merge_pairs(&mut self) {
        let dies = self.last_total.len();
        let rows = self.busy_ns.len() / dies;
        for row in 0..rows / 2 {
            for die in 0..dies {
                self.busy_ns[row * dies + die] =
                    self.busy_ns[2 * row * dies + die] + self.busy_ns[(2 * row + 1) * dies + die];
            }
        }
        self.busy_ns.truncate(rows / 2 * dies);
    }

    /// Dies.
    pub fn dies(&self) -> usize {
        self.last_total.len()
    }

    /// How long a die was busy in a row of the series.
    pub fn busy_ns(&self, row: usize, die: usize) -> Span {
        self.busy_ns[row * self.dies() + die]
    }
}
