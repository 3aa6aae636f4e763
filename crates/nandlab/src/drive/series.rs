//! The run over time, in a limited number of rows. When all rows are used, neighbouring rows are merged, and from then
//! on a row covers twice the time. So a row has sums and extremes, not means, and memory does not grow with the run.

use crate::base::state::{state, value};
use crate::base::units::{MS, Span, Time};
use crate::sched::Cause;

/// A row of the series: the statistics of one interval.
#[derive(Clone, Debug, Default)]
pub struct Window {
    /// Requests completed without failure, by operation.
    pub requests: [u64; 4],
    /// Bytes of the completed requests, by operation.
    pub bytes: [u64; 4],
    /// Sum of the latencies of the completed requests in nanoseconds, by operation.
    pub latency_ns: [u128; 4],
    /// Longest latency of a completed request, by operation.
    pub latency_ns_max: [Span; 4],
    /// Units of the completed writes; a partly written unit counts as one.
    pub pages_written: u64,
    /// Pages programmed, by cause.
    pub programs: [u64; Cause::ALL.len()],
    /// Blocks erased.
    pub erases: u64,
    /// Victims chosen by GC.
    pub victims: u64,
    /// Valid units in the victims when they were chosen.
    pub victim_valid_pages: u64,
    /// Number of outstanding requests, integrated over time in nanoseconds.
    pub outstanding_ns: u128,
    /// Busy time of the dies, summed over the dies.
    pub die_busy_ns: Span,
    /// Busy time of the channels, summed over the channels.
    pub channel_busy_ns: Span,
    /// Free share of the units in the fullest lane when the row was added; of merged rows the lowest.
    pub free_share_min: f64,
    /// Free share of the units, mean of the lanes when the row was added, times the interval in nanoseconds.
    pub free_share_ns: f64,
    /// Largest number of dirty units in the write cache.
    pub dirty_pages_max: u32,
    /// Highest dirty budget, in units.
    pub budget_pages_max: u32,
    /// Units that the full capacitor could save at the end of the interval.
    pub capacitor_pages: f64,
    /// Units of the host programmed in SLC mode.
    pub slc_cached: u64,
    /// Units of the host programmed without SLC mode, on a drive with an SLC cache.
    pub slc_direct: u64,
    /// Superblocks in SLC mode at the end of the interval.
    pub slc_superblocks: u32,
    /// End of the interval.
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
        self.channel_busy_ns += next.channel_busy_ns;
        self.free_share_min = self.free_share_min.min(next.free_share_min);
        self.free_share_ns += next.free_share_ns;
        self.dirty_pages_max = self.dirty_pages_max.max(next.dirty_pages_max);
        self.budget_pages_max = self.budget_pages_max.max(next.budget_pages_max);
        self.capacitor_pages = next.capacitor_pages;
        self.slc_cached += next.slc_cached;
        self.slc_direct += next.slc_direct;
        self.slc_superblocks = next.slc_superblocks;
        self.end = next.end;
    }
}

/// The rows of `series.parquet`.
#[derive(Debug)]
pub struct Series {
    /// Beginning of the first row.
    start: Time,
    rows: Vec<Window>,
    rows_max: usize,
    interval_ns: Span,
    has_slc: bool,
}

impl Series {
    /// `has_slc`: whether the drive has an SLC cache.
    pub(super) fn new(rows_max: usize, has_slc: bool) -> Self {
        let rows_max = rows_max.max(2).next_multiple_of(2);
        Self { start: Time::START, rows: Vec::with_capacity(rows_max), rows_max, interval_ns: MS, has_slc }
    }

    /// Whether the drive has an SLC cache.
    pub fn has_slc(&self) -> bool {
        self.has_slc
    }

    /// Drops all rows; the next row begins at `start`.
    pub(super) fn begin_again(&mut self, start: Time) {
        self.rows.clear();
        (self.start, self.interval_ns) = (start, MS);
    }

    /// Beginning of the first row.
    pub fn start(&self) -> Time {
        self.start
    }

    pub(super) fn interval_ns(&self) -> Span {
        self.interval_ns
    }

    pub(super) fn end_ns(&self) -> Time {
        self.rows.last().map_or(self.start, |row| row.end)
    }

    /// The rows so far.
    pub fn rows(&self) -> &[Window] {
        &self.rows
    }

    /// Adds a row, and returns whether neighbouring rows have been merged.
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

/// The busy time of each die over time; the rows cover the same intervals as those of the series.
#[derive(Debug)]
pub struct DieSeries {
    /// Busy time by row and die: the numbers of all dies for the first row, then for the second row, and so on.
    busy_ns: Vec<Span>,
    /// By die: its busy time until the end of the last row.
    last_total: Vec<Span>,
}

impl DieSeries {
    pub(super) fn new(dies: usize) -> Self {
        Self { busy_ns: Vec::new(), last_total: vec![Span::ZERO; dies] }
    }

    /// Drops all rows. `totals`: each die's busy time so far.
    pub(super) fn begin_again(&mut self, totals: impl Iterator<Item = Span>) {
        self.busy_ns.clear();
        self.last_total.clear();
        self.last_total.extend(totals);
    }

    /// Adds a row with each die's busy time since the last row, and returns the sum over the dies. `totals`: each die's
    /// busy time so far.
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

    /// Merges neighbouring rows, as the series has done.
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

    /// Number of dies.
    pub fn dies(&self) -> usize {
        self.last_total.len()
    }

    /// Busy time of a die in a row.
    pub fn busy_ns(&self, row: usize, die: usize) -> Span {
        self.busy_ns[row * self.dies() + die]
    }
}

value! {
    Window {
        requests,
        bytes,
        latency_ns,
        latency_ns_max,
        pages_written,
        programs,
        erases,
        victims,
        victim_valid_pages,
        outstanding_ns,
        die_busy_ns,
        channel_busy_ns,
        free_share_min,
        free_share_ns,
        dirty_pages_max,
        budget_pages_max,
        capacitor_pages,
        slc_cached,
        slc_direct,
        slc_superblocks,
        end,
    }
}
state! { Series { start, rows, interval_ns } fixed { rows_max, has_slc } }
state! { DieSeries { busy_ns, last_total } }
