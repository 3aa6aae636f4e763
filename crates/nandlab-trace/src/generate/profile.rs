//! Look-alikes of published and recorded traces: requests are drawn such that their statistics equal the published
//! ones.
//!
//! A profile draws virtual pages of 4 KiB, numbered from 0. The virtual pages form chunks of at most 1 MiB, and a
//! random permutation places the chunks in the address space ([`Scatter`]). An extent is a run of consecutive virtual
//! pages within one chunk; each request covers one extent.
//!
//! MSR's system volumes have a median rewrite interval of about 60 s, from metadata that is written periodically. A
//! Zipf distribution alone does not give such an interval. Therefore the writes have four parts, each with its own
//! region of pages:
//!
//! - the hottest page: written at an even rate, as many times as published, up to 30 % of the writes;
//! - periodic pages: each is written once per period; the period is the published median rewrite interval;
//! - hot pages: the most written 1 % of the written pages, without the hottest and the periodic pages;
//! - cold pages: the other written pages. A cursor writes each of them once, evenly over the run, so that the footprint
//!   is exact. The other writes to cold pages are drawn uniformly.
//!
//! A share of the writes to hot and cold pages repeats one of the last eight extents drawn for such writes. The share
//! is chosen so that the median rewrite interval equals the period: the rewrites with a shorter interval, plus half of
//! the periodic rewrites, are then half of all rewrites.
//!
//! The pages that are never written are the region of the read-only pages. A second cursor reads each of them once. Of
//! the other reads, 30 % go to the hottest, periodic and hot pages. The rest is Zipf-distributed over all pages.
//!
//! The sizes of reads, and of writes to hot and cold pages, are geometrically distributed in pages; feedback keeps
//! their means at the published values. If the published bytes are fewer than the bytes of the touched pages, requests
//! start or end off a page boundary. Reads, and writes to hot and cold pages, arrive in bursts. The gaps within and
//! between bursts are exponentially distributed.
//!
//! Old data is data not written since the start. If the share of page reads that find old data is published, each read
//! is first drawn to be of old or of new data; feedback keeps the share. Then up to six candidates (extents) are drawn
//! for the read:
//!
//! - a candidate for old data is drawn like the reads above, and is dropped if it starts at a written page;
//! - a candidate for new data starts at a written page. With probability 0.3 this page is a random one of the hottest,
//!   periodic and hot pages. Otherwise, or if the random page is not yet written, the page is Zipf-distributed in the
//!   order of first writes.
//!
//! A candidate ends where written pages meet pages that are not written. The longest candidate is read. If all
//! candidates are dropped, one page that is not written is read, or a written page if all pages are written.
//!
//! **Shortened profiles** (`requests` below the published count) keep the rate, the ratios (also the share of old
//! data), the period and the mean sizes. The footprint and the writes of the hottest page shrink in proportion. A
//! profile longer than published keeps the footprint.
//!
//! **On a smaller drive** addresses are drawn within the drive. A footprint above nine tenths of the drive shrinks to
//! nine tenths of the drive.
//!
//! **Deviations**: a database reads and writes pages of one size, at multiples of this size; the requests of a profile
//! do not keep this alignment. Two recordings do not fit the four parts. In the recording of `recorded/fileserver`
//! the writes are spread evenly over the pages. Its median rewrite interval is 17.9 s, that of the profile 11.5 s. The
//! period of `recorded/ntrx` is 15 ms: each periodic page of the profile is written 13,000 times, while the hottest page of
//! the recording was written 3,012 times.
//!
//! **Prefixes**: if the statistics cover only the first three million requests of a trace, the profile has only these
//! requests.

mod model;
mod settings;
mod written;

pub use settings::Settings;

use super::published::{Published, profile, profiles};
use super::{Scatter, Zipf};
use crate::error::{ErrorKind, TraceError, quoted};
use crate::source::Source;
use model::Model;
use nandlab_base::base::request::{Op, Request};
use nandlab_base::base::rng::Stream;
use nandlab_base::base::units::Time;
use nandlab_base::workload::ProfileSpec;
use written::Written;

/// Bytes of a page.
const PAGE: u64 = 4096;
const SECTORS_PER_PAGE: u64 = 8;
/// Number of recent extents from which a repeating write chooses.
const RECENT: usize = 8;
/// Number of periodic requests that arrive at the same time.
const PERIODIC_BATCH: u64 = 8;
/// Number of requests over which a deviation from the mean size is corrected.
const CORRECTION_REQUESTS: f64 = 32.0;
/// Largest number of candidates of a read, if the share of reads of old data is published. The longest
/// suitable candidate is read.
const CANDIDATES: usize = 6;
/// Largest mean from which the number of pages of a request is drawn. The drawn number is at most `2 * PAGES_MAX + 1`.
const PAGES_MAX: f64 = 64.0;

/// An extent, a run of consecutive virtual pages: its first page, and its number of pages.
type Extent = (u64, u64);

/// The source of a profile.
pub struct ProfileSource {
    published: Option<&'static Published>,
    model: Model,
    scatter: Scatter,
    read_zipf: Zipf,
    read_scatter: Scatter,
    draws: Draws,
    made: u64,
    hottest: u64,
    /// Periodic requests so far.
    periodic: u64,
    reads: Flow,
    writes: Flow,
    cold_covered: u64,
    read_only_covered: u64,
    recent: Recent,
    rest_next_ns: f64,
    burst_left: u64,
    last_ns: Time,
    /// The pages written so far. `None` if the share of page reads that find old data is not published.
    written: Option<Written>,
}

/// Random streams: of operations and of the age of the data, of sizes, of addresses, of times.
struct Draws {
    ops: Stream,
    sizes: Stream,
    addresses: Stream,
    times: Stream,
}

/// The extents drawn last for writes to hot and cold pages.
struct Recent {
    extents: [Extent; RECENT],
    len: usize,
    next: usize,
}

/// Totals so far, of the reads or of the writes. A target is the total that the published mean would give. `requests`,
/// `pages` and `pages_target` exclude the writes to the hottest and the periodic pages; `bytes` and `bytes_target`
/// include these writes.
#[derive(Default)]
struct Flow {
    requests: u64,
    pages: f64,
    pages_target: f64,
    bytes: f64,
    bytes_target: f64,
}

impl ProfileSource {
    /// The profile that `spec` names, on a drive of `logical_bytes`, with the run's `seed`.
    ///
    /// # Errors
    /// An unknown profile; a drive below 1 MiB.
    pub fn open(spec: &ProfileSpec, logical_bytes: u64, seed: u64) -> Result<Self, TraceError> {
        let Some(published) = profile(&spec.name) else {
            return Err(TraceError::new(
                ErrorKind::Setting,
                format!(
                    "workload.profile: expected the name of a profile, found {}",
                    quoted(spec.name.as_bytes())
                ),
                format!("choose one of `nandlab trace profiles`, such as {}", profiles()[0].name),
            ));
        };
        let settings = Settings::of(published);
        let requests = spec.requests.unwrap_or(settings.requests);
        let mut source = Self::with_settings(&settings, requests, logical_bytes, seed)?;
        source.published = Some(published);
        Ok(source)
    }

    /// A source of `requests` requests with the statistics of `settings`.
    ///
    /// # Errors
    /// A drive below 1 MiB, or settings out of range.
    pub fn with_settings(
        settings: &Settings,
        requests: u64,
        logical_bytes: u64,
        seed: u64,
    ) -> Result<Self, TraceError> {
        let model = Model::new(settings, requests, logical_bytes)?;
        let stream = |name: &str| Stream::new(seed, &format!("workload.profile.{name}"));
        let mut scattering = stream("scatter");
        let scatter = Scatter::new(model.chunk_slots, &mut scattering);
        let mut source = Self {
            published: None,
            scatter,
            read_zipf: Zipf::new(model.pages, 0.9),
            read_scatter: Scatter::new(model.pages, &mut scattering),
            draws: Draws {
                ops: stream("op"),
                sizes: stream("size"),
                addresses: stream("address"),
                times: stream("arrival"),
            },
            made: 0,
            hottest: 0,
            periodic: 0,
            reads: Flow::default(),
            writes: Flow::default(),
            cold_covered: 0,
            read_only_covered: 0,
            recent: Recent { extents: [(0, 0); RECENT], len: 0, next: 0 },
            rest_next_ns: 0.0,
            burst_left: 0,
            last_ns: Time::START,
            written: model.unwritten_read_ratio.map(|share| {
                let correction_pages = (model.reads as f64 * model.pages_per_read / 16.0).clamp(1.0, 64.0);
                Written::new(share, correction_pages, model.pages)
            }),
            model,
        };
        source.draw_rest_time();
        Ok(source)
    }

    /// Draws the arrival of the next request that arrives in bursts: a read, or a write to hot or cold pages.
    fn draw_rest_time(&mut self) {
        let m = &self.model;
        let mut exponential = |mean: f64| -mean * libm::log(1.0 - self.draws.times.unit());
        if self.burst_left == 0 {
            self.rest_next_ns += exponential(m.burst_pause_ns);
            self.burst_left = 1 + (exponential(m.burst_requests - 1.0) + 0.5) as u64;
        } else {
            self.rest_next_ns += exponential(m.burst_gap_ns);
        }
        self.burst_left -= 1;
    }

    fn hottest_ns(&self) -> f64 {
        match self.hottest < self.model.hottest_writes {
            true => (self.hottest as f64 + 0.5) * self.model.duration_ns / self.model.hottest_writes as f64,
            false => f64::INFINITY,
        }
    }

    fn periodic_ns(&self) -> f64 {
        let m = &self.model;
        if self.periodic >= m.periodic_requests {
            return f64::INFINITY;
        }
        let (round, group) = (self.periodic / m.periodic_groups, self.periodic % m.periodic_groups);
        let phase = (group - group % PERIODIC_BATCH) as f64 / m.periodic_groups as f64;
        (round as f64 + phase) * m.period_ns
    }

    /// Draws the number of pages of the next request of `flow` around the `mean`. The deviation of `flow.pages` from
    /// `flow.pages_target` is corrected over `correction_requests` requests.
    fn pages(flow: &Flow, mean: f64, correction_requests: f64, random: &mut Stream) -> u64 {
        let corrected = (mean + (flow.pages_target - flow.pages) / correction_requests).clamp(1.0, PAGES_MAX);
        if corrected <= 1.000_001 {
            return 1;
        }
        let tail = libm::log(1.0 - random.unit()) / libm::log(1.0 - 1.0 / corrected);
        1 + libm::floor(tail).min(PAGES_MAX * 2.0) as u64
    }

    /// The extent from page `start` of at most `n` pages. It ends before page `end`, and within the chunk of `start`
    /// (`Model::chunk_pages`).
    fn within(&self, start: u64, n: u64, end: u64) -> Extent {
        let chunk_end = (start / self.model.chunk_pages + 1) * self.model.chunk_pages;
        (start, n.min(end - start).min(chunk_end - start).max(1))
    }

    fn write_extent(&mut self) -> Extent {
        let m = &self.model;
        if self.recent.len > 0 && self.draws.addresses.unit() < m.repeat_share {
            return self.recent.extents[self.draws.addresses.below(self.recent.len as u64) as usize];
        }
        let n = Self::pages(&self.writes, m.pages_per_write, CORRECTION_REQUESTS, &mut self.draws.sizes);
        let (hot, cold) = (m.hot.clone(), m.cold.clone());
        let is_hot = !hot.is_empty() && self.draws.addresses.unit() < m.hot_share;
        let start = if is_hot || cold.is_empty() {
            let region = if hot.is_empty() { 0..m.read_only.start.max(1) } else { hot.clone() };
            region.start
                + self.draws.addresses.below((region.end - region.start).saturating_sub(n - 1).max(1))
        } else {
            let pace = (self.writes.requests + 1) as f64 / (0.97 * m.rest_writes as f64);
            let size = cold.end - cold.start;
            if self.cold_covered < size && (self.cold_covered as f64) < pace * size as f64 {
                cold.start + self.cold_covered
            } else {
                cold.start + self.draws.addresses.below(size.saturating_sub(n - 1).max(1))
            }
        };
        let end = if is_hot { hot.end } else { cold.end.max(start + 1) };
        let extent = self.within(start, n, end);
        if start == cold.start + self.cold_covered && !is_hot {
            self.cold_covered += extent.1;
        }
        self.recent.extents[self.recent.next] = extent;
        self.recent.next = (self.recent.next + 1) % RECENT;
        self.recent.len = RECENT.min(self.recent.len + 1);
        extent
    }

    fn read_extent(&mut self) -> Extent {
        let m = &self.model;
        let Some(mut written) = self.written.take() else {
            let n = Self::pages(&self.reads, m.pages_per_read, CORRECTION_REQUESTS, &mut self.draws.sizes);
            return self.read_anywhere(n);
        };
        let left = (m.reads - self.reads.requests) as f64;
        let n = Self::pages(
            &self.reads,
            m.pages_per_read,
            CORRECTION_REQUESTS.min(left / 2.0),
            &mut self.draws.sizes,
        );
        let wants_old = written.is_empty() || self.draws.ops.unit() < written.old_share_now();
        // Takes the longest candidate, because a candidate is cut where written and unwritten pages meet.
        let mut best = (0, 0);
        for _ in 0..CANDIDATES {
            let (start, n) = if wants_old { self.read_anywhere(n) } else { self.read_written(&written, n) };
            let same = written.same_kind(start, n);
            if written.has(start) != wants_old && same > best.1 {
                best = (start, same);
                if same == n {
                    break;
                }
            }
        }
        if best.1 == 0 {
            best = self.old_page(&written);
        }
        written.count_read(best);
        self.written = Some(written);
        best
    }

    /// An extent of one page, for a read of old data whose candidates all start at written pages. The page is a random
    /// read-only page. If there are no read-only pages, the page is the first unwritten page from a random page on. If
    /// all pages are written, the page is this random page.
    fn old_page(&mut self, written: &Written) -> Extent {
        let m = &self.model;
        let size = m.read_only.end - m.read_only.start;
        if size > 0 {
            return (m.read_only.start + self.draws.addresses.below(size), 1);
        }
        let from = self.draws.addresses.below(m.pages);
        ((from..m.pages).chain(0..from).find(|&page| !written.has(page)).unwrap_or(from), 1)
    }

    /// A candidate for a read of new data: an extent of at most `n` pages that starts at a written page.
    fn read_written(&mut self, written: &Written, n: u64) -> Extent {
        let m = &self.model;
        let hot = self.draws.addresses.unit() < 0.3;
        let start = if hot && !m.hot.is_empty() { self.draws.addresses.below(m.hot.end) } else { m.pages };
        let start = if start < m.pages && written.has(start) {
            start
        } else {
            let rank = Zipf::new(written.len(), 0.9).next(&mut self.draws.addresses);
            written.nth(rank - 1)
        };
        self.within(start, n, self.model.pages)
    }

    /// An extent for a read, of at most `n` pages, whether the pages are written or not. The extent is also a candidate
    /// for a read of old data.
    fn read_anywhere(&mut self, n: u64) -> Extent {
        let m = &self.model;
        let size = m.read_only.end - m.read_only.start;
        let pace = (self.reads.requests + 1) as f64 / (0.97 * m.reads as f64);
        if self.read_only_covered < size && (self.read_only_covered as f64) < pace * size as f64 {
            let extent = self.within(m.read_only.start + self.read_only_covered, n, m.read_only.end);
            self.read_only_covered += extent.1;
            return extent;
        }
        let start = if !m.hot.is_empty() && self.draws.addresses.unit() < 0.3 {
            self.draws.addresses.below(m.hot.end)
        } else {
            self.read_scatter.at(self.read_zipf.next(&mut self.draws.addresses) - 1)
        };
        self.within(start, n, m.pages)
    }

    /// The request for an extent. Sectors are cut off both ends of the extent to keep the published mean bytes per
    /// page.
    fn request(&mut self, arrival: Time, op: Op, (start, n): Extent) -> Request {
        let m = &self.model;
        let flow = if op == Op::Read { &mut self.reads } else { &mut self.writes };
        let full = n * SECTORS_PER_PAGE;
        let fill = m.fill[usize::from(op != Op::Read)];
        flow.bytes_target += (n * PAGE) as f64 * fill;
        let wanted_sectors = (full as f64 * fill) + (flow.bytes_target - flow.bytes) / 512.0 / 16.0;
        let dither = self.draws.sizes.unit() * 2.0;
        let (cut_max, edge_max) = if n == 1 { (7, 7) } else { (14, 7) };
        let cut = ((full as f64 - wanted_sectors).max(0.0) * dither).min(f64::from(cut_max)) as u64;
        let low = cut.saturating_sub(edge_max);
        let high = cut.min(edge_max);
        let at_start = if cut == 0 { 0 } else { low + self.draws.sizes.below(high - low + 1) };
        let len = (full - cut) * 512;
        flow.bytes += len as f64;
        let chunk = start / m.chunk_pages;
        let page = self.scatter.at(chunk) * m.chunk_pages + start % m.chunk_pages;
        Request::new(op, page * PAGE + at_start * 512, len).at(arrival)
    }
}

impl Source for ProfileSource {
    fn next_request(&mut self) -> Option<Result<Request, TraceError>> {
        if self.made == self.model.requests {
            return None;
        }
        self.made += 1;
        let rest_left =
            self.model.reads + self.model.rest_writes > self.reads.requests + self.writes.requests;
        let rest = if rest_left { self.rest_next_ns } else { f64::INFINITY };
        let (hottest, periodic) = (self.hottest_ns(), self.periodic_ns());
        let (ns, op, extent);
        if hottest <= rest && hottest <= periodic {
            (ns, op, extent) = (hottest, Op::Write, (0, 1));
            self.hottest += 1;
        } else if periodic <= rest {
            let m = &self.model;
            let start = 1 + self.periodic % m.periodic_groups * m.periodic_pages_each;
            let end = m.periodic.end.max(start + 1);
            (ns, op, extent) = (periodic, Op::Write, self.within(start, m.periodic_pages_each, end));
            self.periodic += 1;
        } else {
            ns = rest;
            let reads_left = self.model.reads - self.reads.requests;
            let writes_left = self.model.rest_writes - self.writes.requests;
            let read = self.draws.ops.below(reads_left + writes_left) < reads_left;
            let mean = if read { self.model.pages_per_read } else { self.model.pages_per_write };
            op = if read { Op::Read } else { Op::Write };
            extent = if read { self.read_extent() } else { self.write_extent() };
            let flow = if read { &mut self.reads } else { &mut self.writes };
            flow.requests += 1;
            flow.pages += extent.1 as f64;
            flow.pages_target += mean;
            self.draw_rest_time();
        }
        let arrival = Time::from_ns(ns as u64).max(self.last_ns);
        self.last_ns = arrival;
        if let (Op::Write, Some(written)) = (op, &mut self.written) {
            written.write(extent);
        }
        Some(Ok(self.request(arrival, op, extent)))
    }

    fn progress(&self) -> f64 {
        if self.model.requests == 0 { 1.0 } else { self.made as f64 / self.model.requests as f64 }
    }

    fn published(&self) -> Option<&'static Published> {
        self.published
    }
}
