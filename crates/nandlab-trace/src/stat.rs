//! Statistics of a source: counts, sizes, footprint, rewrites, skew.
//!
//! Pages are 4 KiB. Each page that a read or write overlaps is one page reference. A write to a page that was written
//! before is a rewrite; the time since the previous write of the page is the rewrite interval.
//!
//! Memory: 32 to 64 bytes per distinct page, because a slot of the hash table has 24 bytes, and 3/8 to 3/4 of the slots
//! are used. While the table grows, the memory is 96 bytes per page. If the table cannot grow, the result is an error.

use crate::generate::Published;
use crate::tally::{Reason, Tally};
use crate::{ErrorKind, Source, TraceError};
use nandlab_base::base::note::Note;
use nandlab_base::base::request::Op;
use nandlab_base::base::units::{Span, Time, US};
use serde_json::{Value, json};
use std::collections::BTreeMap;

pub(crate) const PAGE: u64 = 4096;
const SECTOR: u64 = 512;
/// Upper bounds (inclusive) of the bins of the size histogram, in bytes. A last bin has the sizes above all bounds.
const SIZE_BOUNDS: [u64; 12] =
    [511, 512, 1 << 11, 1 << 12, 1 << 13, 1 << 14, 1 << 15, 1 << 16, 1 << 17, 1 << 18, 1 << 19, 1 << 20];

/// Requests and bytes of one operation.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct OpCount {
    /// Requests of the operation.
    pub requests: u64,
    /// Bytes of these requests.
    pub bytes: u64,
}

impl OpCount {
    /// Counts a request.
    fn count(&mut self, len: u64) {
        self.requests += 1;
        self.bytes = self.bytes.saturating_add(len);
    }

    fn to_json(self) -> Value {
        json!({ "requests": self.requests, "bytes": self.bytes })
    }
}

/// Statistics of a source.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct TraceStat {
    /// The trace format; `None` for generators.
    pub format: Option<&'static str>,
    /// The devices whose requests are counted.
    pub devices: Vec<String>,
    /// Counts of the records of the trace.
    pub tally: Tally,
    /// Findings about the reading of the trace.
    pub notes: Vec<Note>,
    /// Requests and bytes by operation, in the order of [`Op::ALL`].
    pub ops: [OpCount; 4],
    /// Writes by placement; empty while all writes have placement 0.
    pub placements: BTreeMap<u16, OpCount>,
    /// Requests with force unit access.
    pub fua: u64,
    /// Time from the first arrival to the last.
    pub duration_ns: Span,
    /// One past the highest byte address of a read, write or TRIM.
    pub address_max_bytes: u64,
    /// Distinct 4 KiB pages read or written.
    pub footprint_pages: u64,
    /// Distinct 4 KiB pages written.
    pub written_pages: u64,
    /// 4 KiB page references by reads and writes.
    pub page_references: u64,
    /// 4 KiB page references by writes.
    pub page_writes: u64,
    /// Share of reads and writes whose start or length is not a multiple of 4 KiB.
    pub unaligned_share: f64,
    /// Share of reads and writes that start where the previous read or write ended.
    pub sequential_share: f64,
    /// Share of page writes that go to a page that was written before.
    pub rewrite_ratio: f64,
    /// Share of page writes that go to the most written 1 % of the written pages.
    pub top_1pct_written_share: f64,
    /// Median rewrite interval (time between two successive writes of a page) in seconds, exact within 1 %; `None`
    /// without rewrites.
    pub rewrite_interval_s_median: Option<f64>,
    /// Writes of the most written page.
    pub page_writes_max: u64,
    /// Share of page reads that find a page not written before in this source.
    pub unwritten_read_ratio: f64,
    /// Number of reads and writes by size: (upper bound in bytes, count). Bounds are inclusive; the last bin has no
    /// bound (`u64::MAX`).
    pub sizes: Vec<(u64, u64)>,
    /// The published numbers that the profile imitates; `None` for other sources.
    pub published: Option<&'static Published>,
}

/// Reads `source` to its end.
///
/// # Errors
/// The first error of the source; too little memory to count the pages.
pub fn stat(source: &mut dyn Source) -> Result<TraceStat, TraceError> {
    let mut stat = TraceStat { sizes: size_bins(), ..TraceStat::default() };
    let mut pages = Pages::new();
    let mut intervals = Intervals::new();
    let (mut first, mut last, mut next_offset) = (None, Time::START, u64::MAX);
    let (mut unaligned, mut sequential, mut unwritten) = (0u64, 0u64, 0u64);
    let mut unplaced = OpCount::default();
    while let Some(request) = source.next_request() {
        let request = request?;
        first.get_or_insert(request.arrival);
        last = request.arrival;
        stat.ops[request.op as usize].count(request.len);
        stat.fua += u64::from(request.fua);
        if request.op == Op::Write {
            let of = match request.tag.placement {
                0 => &mut unplaced,
                placement => stat.placements.entry(placement).or_default(),
            };
            of.count(request.len);
        }
        if request.len == 0 {
            continue;
        }
        let end = request.offset.saturating_add(request.len);
        stat.address_max_bytes = stat.address_max_bytes.max(end);
        if request.op == Op::Trim {
            continue;
        }
        let bin = SIZE_BOUNDS.partition_point(|&bound| bound < request.len);
        stat.sizes[bin].1 += 1;
        unaligned += u64::from(request.offset % PAGE != 0 || request.len % PAGE != 0);
        sequential += u64::from(request.offset == next_offset);
        next_offset = end;
        let write = request.op == Op::Write;
        for page in request.offset / PAGE..=(end - 1) / PAGE {
            stat.page_references += 1;
            let slot = pages.slot(page)?;
            if write {
                stat.page_writes += 1;
                if slot.writes > 0 {
                    intervals.add(request.arrival - slot.written_ns);
                }
                slot.writes += 1;
                slot.written_ns = request.arrival;
            } else {
                unwritten += u64::from(slot.writes == 0);
            }
        }
    }
    if !stat.placements.is_empty() && unplaced.requests > 0 {
        stat.placements.insert(0, unplaced);
    }
    let accesses = stat.reads().requests + stat.writes().requests;
    stat.format = source.format();
    stat.devices = source.devices();
    stat.tally = source.tally();
    stat.notes = source.notes();
    stat.published = source.published();
    stat.duration_ns = last - first.unwrap_or(Time::START);
    stat.unaligned_share = share(unaligned, accesses);
    stat.sequential_share = share(sequential, accesses);
    stat.unwritten_read_ratio = share(unwritten, stat.page_references - stat.page_writes);
    stat.footprint_pages = pages.len as u64;
    let mut writes: Vec<u32> = pages.slots.iter().map(|s| s.writes).filter(|&n| n > 0).collect();
    writes.sort_unstable_by(|a, b| b.cmp(a));
    stat.written_pages = writes.len() as u64;
    stat.rewrite_ratio = share(stat.page_writes - stat.written_pages, stat.page_writes);
    let top = writes.len().div_ceil(100);
    stat.top_1pct_written_share = share(writes[..top].iter().map(|&n| u64::from(n)).sum(), stat.page_writes);
    stat.page_writes_max = writes.first().copied().unwrap_or(0).into();
    stat.rewrite_interval_s_median = intervals.median_s();
    Ok(stat)
}

fn size_bins() -> Vec<(u64, u64)> {
    SIZE_BOUNDS.iter().copied().chain([u64::MAX]).map(|bound| (bound, 0)).collect()
}

pub(crate) fn share(part: u64, whole: u64) -> f64 {
    if whole == 0 { 0.0 } else { part as f64 / whole as f64 }
}

impl TraceStat {
    /// Number of all requests.
    pub fn requests(&self) -> u64 {
        self.ops.iter().map(|op| op.requests).sum()
    }

    /// Requests and bytes of the reads.
    pub fn reads(&self) -> OpCount {
        self.ops[Op::Read as usize]
    }

    /// Requests and bytes of the writes.
    pub fn writes(&self) -> OpCount {
        self.ops[Op::Write as usize]
    }

    /// Reads / (reads + writes), in requests.
    pub fn read_ratio(&self) -> f64 {
        share(self.reads().requests, self.reads().requests + self.writes().requests)
    }

    /// Reads / (reads + writes), in bytes.
    pub fn read_ratio_bytes(&self) -> f64 {
        share(self.reads().bytes, self.reads().bytes + self.writes().bytes)
    }

    /// Mean size of reads and writes in KiB.
    pub fn mean_kib(&self) -> f64 {
        let bytes = self.reads().bytes + self.writes().bytes;
        share(bytes, self.reads().requests + self.writes().requests) / 1024.0
    }

    /// Duration in seconds.
    pub fn duration_s(&self) -> f64 {
        self.duration_ns.ns() as f64 / 1e9
    }

    /// Requests per second over the duration; 0 for a duration of 0.
    pub fn iops_mean(&self) -> f64 {
        if self.duration_ns == Span::ZERO { 0.0 } else { self.requests() as f64 / self.duration_s() }
    }

    /// The numbers of skipped records, by reason; only reasons with a record.
    fn skipped_by(&self) -> Value {
        let found = Reason::ALL.iter().zip(self.tally.skipped_by).filter(|(_, n)| *n > 0);
        found
            .map(|(reason, n)| (reason.name().to_owned(), json!(n)))
            .collect::<serde_json::Map<_, _>>()
            .into()
    }

    /// The statistics as JSON. A profile's published numbers are under `published`.
    pub fn to_json(&self) -> Value {
        let ops: serde_json::Map<_, _> =
            Op::ALL.iter().map(|&op| (op.name().to_owned(), self.ops[op as usize].to_json())).collect();
        let bins = self.sizes.iter().filter(|bin| bin.1 > 0);
        let sizes: Vec<_> = bins
            .map(|&(bound, n)| json!({ "bytes_max": (bound != u64::MAX).then_some(bound), "requests": n }))
            .collect();
        let mut value = json!({
            "format": self.format,
            "devices": self.devices,
            "requests": self.requests(),
            "skipped": self.tally.skipped(),
            "skipped_by": self.skipped_by(),
            "ops": ops,
            "fua_requests": self.fua,
            "read_ratio": self.read_ratio(),
            "mean_kib": self.mean_kib(),
            "bytes": self.reads().bytes + self.writes().bytes,
            "sectors_read": self.reads().bytes / SECTOR,
            "sectors_written": self.writes().bytes / SECTOR,
            "read_ratio_sectors": self.read_ratio_bytes(),
            "unwritten_read_ratio_4k": self.unwritten_read_ratio,
            "duration_s": self.duration_s(),
            "iops_mean": self.iops_mean(),
            "address_max_bytes": self.address_max_bytes,
            "footprint_4k_pages": self.footprint_pages,
            "written_4k_pages": self.written_pages,
            "references_4k": self.page_references,
            "write_references_4k": self.page_writes,
            "unaligned_share": self.unaligned_share,
            "sequential_share": self.sequential_share,
            "rewrite_ratio_4k": self.rewrite_ratio,
            "top_1pct_written_share": self.top_1pct_written_share,
            "rewrite_interval_s_median": self.rewrite_interval_s_median,
            "page_writes_max": self.page_writes_max,
            "sizes": sizes,
            "notes": self.notes,
        });
        if !self.placements.is_empty() {
            let of = |(placement, count): (&u16, &OpCount)| (placement.to_string(), count.to_json());
            value["placements"] = self.placements.iter().map(of).collect::<serde_json::Map<_, _>>().into();
        }
        if let Some(published) = self.published {
            value["published"] = published.to_json();
        }
        value
    }
}

/// A slot of the page table. `key` is the page number plus one, or 0 in a free slot.
#[derive(Clone, Copy, Default)]
pub(crate) struct PageSlot {
    key: u64,
    written_ns: Time,
    writes: u32,
    /// Reads and writes, in the statistics by device.
    pub(crate) accesses: u32,
}

/// A hash table of pages, with open addressing. The map of the standard library needs twice the memory and time for
/// this use.
pub(crate) struct Pages {
    slots: Vec<PageSlot>,
    len: usize,
    shift: u32,
}

impl Pages {
    fn new() -> Self {
        Self::of(12)
    }

    /// A table for few pages, of one of many devices.
    pub(crate) fn few() -> Self {
        Self::of(5)
    }

    fn of(bits: u32) -> Self {
        Self { slots: vec![PageSlot::default(); 1 << bits], len: 0, shift: 64 - bits }
    }

    /// The reads and writes of each page.
    pub(crate) fn accesses(&self) -> Vec<u32> {
        self.slots.iter().filter(|slot| slot.key != 0).map(|slot| slot.accesses).collect()
    }

    #[inline]
    pub(crate) fn slot(&mut self, page: u64) -> Result<&mut PageSlot, TraceError> {
        if self.len * 4 >= self.slots.len() * 3 {
            self.grow()?;
        }
        let key = page + 1;
        let at = self.find(key);
        if self.slots[at].key == 0 {
            self.slots[at].key = key;
            self.len += 1;
        }
        Ok(&mut self.slots[at])
    }

    #[inline]
    fn find(&self, key: u64) -> usize {
        let mask = self.slots.len() - 1;
        // Fibonacci hashing of a mixed key spreads consecutive pages and pages at a constant stride.
        let mixed = (key ^ (key >> 17)).wrapping_mul(0x9e37_79b9_7f4a_7c15);
        let mut at = (mixed >> self.shift) as usize;
        while self.slots[at].key != 0 && self.slots[at].key != key {
            at = (at + 1) & mask;
        }
        at
    }

    #[cold]
    fn grow(&mut self) -> Result<(), TraceError> {
        let mut slots = Vec::new();
        slots.try_reserve_exact(self.slots.len() * 2).map_err(|_| self.no_room())?;
        slots.resize(self.slots.len() * 2, PageSlot::default());
        let old = std::mem::replace(&mut self.slots, slots);
        self.shift -= 1;
        for slot in old.into_iter().filter(|slot| slot.key != 0) {
            let at = self.find(slot.key);
            self.slots[at] = slot;
        }
        Ok(())
    }

    fn no_room(&self) -> TraceError {
        TraceError::new(
            ErrorKind::Setting,
            format!("not enough memory to count more than {} pages of 4 KiB", self.len),
            "choose one device (workload.device), or fewer requests (--requests)",
        )
    }
}

/// A histogram of rewrite intervals in microseconds. It has 128 bins per octave, so the median is exact within 1 %.
struct Intervals {
    bins: Vec<u64>,
    count: u64,
}

const BIN_BITS: u32 = 7;

impl Intervals {
    fn new() -> Self {
        Self { bins: vec![0; 66 << BIN_BITS], count: 0 }
    }

    fn add(&mut self, span: Span) {
        let us = span / US;
        let octave = us.checked_ilog2().unwrap_or(0).saturating_sub(BIN_BITS);
        let bin = ((octave as usize) << BIN_BITS) + (us >> octave) as usize;
        self.bins[bin] += 1;
        self.count += 1;
    }

    fn median_s(&self) -> Option<f64> {
        if self.count == 0 {
            return None;
        }
        let mut below = 0;
        let bin = self.bins.iter().position(|n| {
            below += n;
            below * 2 >= self.count
        })?;
        let octave = (bin >> BIN_BITS).saturating_sub(1);
        let start = ((bin - (octave << BIN_BITS)) as u64) << octave;
        let middle = start as f64 + if octave == 0 { 0.0 } else { (1u64 << octave) as f64 / 2.0 };
        Some(middle / 1e6)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use nandlab_base::base::request::Request;

    struct List(std::vec::IntoIter<Request>);

    impl Source for List {
        fn next_request(&mut self) -> Option<Result<Request, TraceError>> {
            self.0.next().map(Ok)
        }

        fn progress(&self) -> f64 {
            0.0
        }
    }

    fn request(arrival: u64, op: Op, offset: u64, len: u64) -> Request {
        Request::new(op, offset, len).at(Time::from_ns(arrival))
    }

    #[test]
    fn a_hand_counted_trace() {
        let s = 1_000_000_000;
        let list = vec![
            request(0, Op::Write, 0, 8192),
            request(s, Op::Read, 8192, 4096),
            request(2 * s, Op::Write, 100, 200),
            request(3 * s, Op::Write, 4000, 200),
            request(4 * s, Op::Trim, 1 << 30, 4096),
            request(4 * s, Op::Flush, 0, 0),
        ];
        let stat = stat(&mut List(list.into_iter())).unwrap();
        assert_eq!(stat.requests(), 6);
        // Pages by request: write 0 and 1, read 2, write 0, write 0 and 1. TRIM and flush count no pages.
        assert_eq!((stat.footprint_pages, stat.written_pages), (3, 2));
        assert_eq!((stat.page_references, stat.page_writes), (6, 5));
        // Of the 5 page writes 3 are rewrites; page 0 has 3 writes.
        assert_eq!((stat.rewrite_ratio, stat.page_writes_max), (0.6, 3));
        // Of the 4 reads and writes the last two are unaligned, and the read starts where the first write ends.
        assert_eq!((stat.unaligned_share, stat.sequential_share), (0.5, 0.25));
        assert_eq!(stat.unwritten_read_ratio, 1.0);
        assert_eq!(stat.read_ratio_bytes(), 4096.0 / (4096.0 + 8592.0));
        assert_eq!((stat.read_ratio(), stat.duration_s(), stat.iops_mean()), (0.25, 4.0, 1.5));
        assert_eq!(stat.address_max_bytes, (1 << 30) + 4096);
        // Rewrite intervals: 2 s and 1 s of page 0, 3 s of page 1.
        let median = stat.rewrite_interval_s_median.unwrap();
        assert!((median - 2.0).abs() < 0.02, "{median}");
    }

    #[test]
    fn medians_of_intervals_of_every_size_are_within_1_percent() {
        for ns in [0, 1_000, 127_000, 128_000, 129_000, 1_000_000, 60_000_000_000, u64::MAX] {
            let mut intervals = Intervals::new();
            intervals.add(Span::from_ns(ns));
            let expected = (ns / 1000) as f64 / 1e6;
            let got = intervals.median_s().unwrap();
            assert!((got - expected).abs() <= expected * 0.01, "{ns}: {got}");
        }
    }

    #[test]
    fn page_table_keeps_every_page() {
        let mut pages = Pages::new();
        for i in 0..50_000u64 {
            pages.slot(i * 4096).unwrap().writes += 1;
            pages.slot(i * 4096).unwrap().writes += 1;
        }
        assert_eq!(pages.len, 50_000);
        assert!(pages.slots.iter().all(|s| s.key == 0 || s.writes == 2));
    }
}
