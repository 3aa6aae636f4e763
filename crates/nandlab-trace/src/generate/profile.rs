//! Look-alikes of published and recorded traces: requests drawn so that their statistics are the published ones.
//!
//! A Zipf alone does not give what MSR's system volumes show: a median rewrite interval of about 60 s, from metadata
//! written by the clock. So writes have four parts, in regions of their own:
//!
//! - the hottest page, written at an even pace as often as published;
//! - periodic pages, each written once every published median interval;
//! - the rest of the most written 1 % of the written pages, and
//! - cold pages: all covered once by a cursor that keeps pace with the run, which makes the footprint exact, else
//!   drawn at random.
//!
//! A share of the writes to the latter two repeats one of the last few extents. That share is solved for, so that
//! half of all rewrites come sooner than the periodic ones' middle: the median then falls among these. Reads cover
//! the pages that are only read by a cursor too, else go to the hot pages or, Zipf-distributed, anywhere.
//!
//! Sizes are geometric in pages around the mean of their operation, held to the published mean by feedback, with
//! starts and ends off the page boundary where the published bytes fall short of the pages. The rest arrives in
//! bursts with exponential gaps.
//!
//! Where it is published what share of the reads finds data not written since the start, that share is held too: each
//! read is drawn for the one kind of pages or the other, by feedback. A read of old data goes on as above and is drawn
//! again if it meets a written page; a read of new data goes to the hot pages or, Zipf-distributed, to the pages
//! written, the earliest the most likely. An extent ends where the other kind begins.
//!
//! **Shortened** (`requests` below the published count), the rate, ratios (that of old data among the reads as well),
//! period and mean sizes hold, while the
//! footprint and the hottest page's writes shrink in proportion; longer than published, the footprint stays.
//! **A smaller drive**: addresses are drawn in the space there is, and a footprint above 90 % of it shrinks to that.
//! **What does not come out**: a database's pages have one size and are aligned to it, those drawn here are not. Two
//! recordings do not fit the four parts: writes of `recorded/fileserver` are spread so evenly that half of the rewrites
//! come sooner than recorded (median 11.5 s for 17.9), and the periodic pages of `recorded/ntrx`, one write each 15 ms,
//! are written more often than the hottest page was (13,000 times for 3,012).
//! **Prefixes**: where statistics cover a trace's first three million requests only, so does the profile.

mod model;
mod settings;
mod written;

pub use settings::Settings;

use super::published::{Published, profile, profiles};
use super::{Scatter, Zipf};
use crate::Source;
use crate::error::{ErrorKind, TraceError, quoted};
use model::Model;
use nandlab::base::rng::Stream;
use nandlab::base::units::Time;
use nandlab::drive::spec::ProfileSpec;
use nandlab::host::{Op, Request};
use written::Written;

const PAGE: u64 = 4096;
const SECTORS_PER_PAGE: u64 = 8;
/// Recent extents that a repeating write chooses from.
const RECENT: usize = 8;
/// Periodic requests that go out together.
const TOGETHER: u64 = 8;
/// Requests in which a deviation of their mean size is made up for.
const HELD_OVER: f64 = 32.0;
/// Candidates for a read that is to meet pages of one kind.
const TRIES: usize = 6;
/// Pages of the largest request.
const PAGES_MAX: f64 = 64.0;

/// Start (virtual page) and length of an extent.
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
    /// Periodic requests made.
    periodic: u64,
    reads: Flow,
    writes: Flow,
    cold_covered: u64,
    read_only_covered: u64,
    recent: Recent,
    rest_next_ns: f64,
    burst_left: u64,
    last_ns: Time,
    /// Which pages were written, kept when the share of reads that find such is to be held.
    written: Option<Written>,
}

/// A random stream for each thing that is drawn.
struct Draws {
    ops: Stream,
    sizes: Stream,
    addresses: Stream,
    times: Stream,
}

/// The extents written last.
struct Recent {
    extents: [Extent; RECENT],
    len: usize,
    next: usize,
}

/// What one kind of request has had so far, to hold its means.
#[derive(Default)]
struct Flow {
    requests: u64,
    pages: f64,
    pages_wanted: f64,
    bytes: f64,
    bytes_wanted: f64,
}

impl ProfileSource {
    /// The profile that `spec` names, on a drive of `logical_bytes`, with the run's `seed`.
    ///
    /// # Errors
    /// A name that is no profile; a drive below 1 MiB.
    pub fn open(spec: &ProfileSpec, logical_bytes: u64, seed: u64) -> Result<Self, TraceError> {
        let Some(published) = profile(&spec.name) else {
            return Err(TraceError::new(
                ErrorKind::Setting,
                format!("workload.profile: {} is no profile", quoted(spec.name.as_bytes())),
                format!("choose one of `nandlab trace profiles`, such as {}", profiles()[0].name),
            ));
        };
        let settings = Settings::of(published);
        let requests = spec.requests.unwrap_or(settings.requests);
        let mut source = Self::with_settings(&settings, requests, logical_bytes, seed)?;
        source.published = Some(published);
        Ok(source)
    }

    /// `requests` requests after `settings`.
    ///
    /// # Errors
    /// A drive below 1 MiB, or settings that are no numbers.
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
                let held_over = (model.reads as f64 * model.pages_per_read / 16.0).clamp(1.0, 64.0);
                Written::new(share, held_over, model.pages)
            }),
            model,
        };
        source.draw_rest_time();
        Ok(source)
    }

    /// The instant of the next request that is neither the hottest page's nor periodic.
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
        let phase = (group - group % TOGETHER) as f64 / m.periodic_groups as f64;
        (round as f64 + phase) * m.period_ns
    }

    /// Pages of the next request of `flow`, whose mean is `mean`; a deviation is made up for in `held_over` requests.
    fn pages(flow: &Flow, mean: f64, held_over: f64, random: &mut Stream) -> u64 {
        let held = (mean + (flow.pages_wanted - flow.pages) / held_over).clamp(1.0, PAGES_MAX);
        if held <= 1.000_001 {
            return 1;
        }
        let tail = libm::log(1.0 - random.unit()) / libm::log(1.0 - 1.0 / held);
        1 + libm::floor(tail).min(PAGES_MAX * 2.0) as u64
    }

    /// At most `n` pages from `start` within `end` and the chunk.
    fn within(&self, start: u64, n: u64, end: u64) -> Extent {
        let chunk_end = (start / self.model.chunk_pages + 1) * self.model.chunk_pages;
        (start, n.min(end - start).min(chunk_end - start).max(1))
    }

    fn write_extent(&mut self) -> Extent {
        let m = &self.model;
        if self.recent.len > 0 && self.draws.addresses.unit() < m.repeat_share {
            return self.recent.extents[self.draws.addresses.below(self.recent.len as u64) as usize];
        }
        let n = Self::pages(&self.writes, m.pages_per_write, HELD_OVER, &mut self.draws.sizes);
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
            let n = Self::pages(&self.reads, m.pages_per_read, HELD_OVER, &mut self.draws.sizes);
            return self.read_anywhere(n);
        };
        let left = (m.reads - self.reads.requests) as f64;
        let n = Self::pages(&self.reads, m.pages_per_read, HELD_OVER.min(left / 2.0), &mut self.draws.sizes);
        let wants_old = written.is_empty() || self.draws.ops.unit() < written.old_share_now();
        // The longest of a few candidates: sizes hold although extents end where the other kind of pages begins.
        let mut best = (0, 0);
        for _ in 0..TRIES {
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
        written.count(best);
        self.written = Some(written);
        best
    }

    /// A page that was not written, for reads that met none by chance: one that is only read, else the next at hand.
    fn old_page(&mut self, written: &Written) -> Extent {
        let m = &self.model;
        let size = m.read_only.end - m.read_only.start;
        if size > 0 {
            return (m.read_only.start + self.draws.addresses.below(size), 1);
        }
        let from = self.draws.addresses.below(m.pages);
        ((from..m.pages).chain(0..from).find(|&page| !written.has(page)).unwrap_or(from), 1)
    }

    /// `n` pages from one that was written.
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

    /// The bytes of an extent: the means' shortfall is cut off its two ends.
    fn request(&mut self, arrival: Time, op: Op, (start, n): Extent) -> Request {
        let m = &self.model;
        let flow = if op == Op::Read { &mut self.reads } else { &mut self.writes };
        let full = n * SECTORS_PER_PAGE;
        let fill = m.fill[usize::from(op != Op::Read)];
        flow.bytes_wanted += (n * PAGE) as f64 * fill;
        let wanted_sectors = (full as f64 * fill) + (flow.bytes_wanted - flow.bytes) / 512.0 / 16.0;
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
        Request { arrival, op, fua: false, offset: page * PAGE + at_start * 512, len }
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
            flow.pages_wanted += mean;
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
