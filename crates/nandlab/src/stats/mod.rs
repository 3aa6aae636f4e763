//! What is counted. A counter is one line in [`Counters`], a histogram one field of [`Stats`].

pub use crate::capacitor::{Detection, PowerLoss, PowerStats, Recovery};
pub use crate::copyback::MigrationStats;
pub use crate::demand_map::MapStats;
pub use crate::read_levels::{ByLevel, EccStats};
pub use crate::refresh::RefreshStats;
pub use crate::report::*;
pub use crate::write_cache::CacheStats;

use crate::base::geometry::{DieId, Geometry, PlaneId};
use crate::base::numbers::{per, ratio};
use crate::base::units::Time;
use crate::drive::FailReason;
use crate::ftl::Ftl;
use crate::host::{Op, Request};
use crate::sched::{Cause, Device, Kind};
use crate::spec::{Arrival, Spec};
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
    fn new() -> Self {
        let histogram = Histogram::new_with_bounds(1, LATENCY_NS_MAX, 3).expect("the bounds are in order");
        Self { histogram, count: 0, bytes: 0, sum_ns: 0, max_ns: 0, min_ns: u64::MAX }
    }

    #[inline]
    fn record(&mut self, ns: u64, bytes: u64) {
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

/// Everything counted in a run.
#[derive(Debug)]
pub struct Stats {
    /// Event counters.
    pub counters: Counters,
    /// Read levels.
    pub ecc: EccStats,
    /// The demand map.
    pub map: MapStats,
    /// The write cache.
    pub cache: CacheStats,
    /// Refresh.
    pub refresh: RefreshStats,
    /// Copybacks.
    pub migration: MigrationStats,
    /// Power losses and the capacitor.
    pub power: PowerStats,
    /// Requests that failed, by [`FailReason`]; they are in no latency and in no bytes of the host's.
    pub failed: [u64; FailReason::ALL.len()],
    /// Flash operations, by kind (read, program, erase, copyback) and cause.
    pub flash: [[u64; Cause::ALL.len()]; 4],
    /// Latency and bytes by host operation, in the order of [`Op::ALL`](crate::host::Op::ALL).
    pub host: [Latency; 4],
    /// The run over time.
    pub series: Series,
    /// Die utilisation over time.
    pub dies: DieSeries,
    rounds: Rounds,
    page_bytes: u32,
    window: Window,
    sample_at: Time,
    /// The last simulated time.
    end: Time,
    outstanding: u32,
    outstanding_since: Time,
}

impl Stats {
    /// Nothing counted, of a drive whose simulated time ends at `end`.
    pub fn new(spec: &Spec, geometry: &Geometry, end: Time) -> Self {
        let series = Series::new(spec.output.series_rows as usize);
        let dies = DieSeries::new(geometry.dies as usize);
        Self {
            counters: Counters::default(),
            ecc: EccStats::default(),
            map: MapStats::default(),
            cache: CacheStats::default(),
            refresh: RefreshStats::default(),
            migration: MigrationStats::default(),
            power: PowerStats::default(),
            failed: [0; FailReason::ALL.len()],
            flash: [[0; Cause::ALL.len()]; 4],
            host: std::array::from_fn(|_| Latency::new()),
            sample_at: Time::START + series.interval_ns().min(end - Time::START),
            end,
            series,
            dies,
            rounds: Rounds::new(geometry),
            page_bytes: geometry.page_bytes,
            window: Window::default(),
            outstanding: 0,
            outstanding_since: Time::START,
        }
    }

    /// When the next row of the series is due; never later than the end of simulated time.
    #[inline(always)]
    pub fn sample_at(&self) -> Time {
        self.sample_at
    }

    /// Flash operations of a kind, all causes.
    pub fn flash_total(&self, kind: Kind) -> u64 {
        self.flash[kind as usize].iter().sum()
    }

    /// Page operations: pages read (every try), programmed and moved by copyback.
    pub fn page_operations(&self) -> u64 {
        self.flash_total(Kind::Read)
            + self.ecc.retries
            + self.flash_total(Kind::Program)
            + self.flash_total(Kind::Copyback)
    }

    /// Pages programmed, by copyback or not.
    pub fn pages_programmed(&self) -> u64 {
        self.flash_total(Kind::Program) + self.flash_total(Kind::Copyback)
    }

    /// Requests that have ended, whether done or failed.
    pub fn requests(&self) -> u64 {
        self.host.iter().map(|host| host.count).sum::<u64>() + self.failed.iter().sum::<u64>()
    }

    /// Bytes programmed.
    pub fn bytes_programmed(&self) -> u64 {
        self.pages_programmed() * u64::from(self.page_bytes)
    }

    /// Write amplification: bytes programmed per byte of the writes that the drive has done; `None` before the first.
    pub fn waf(&self) -> Option<f64> {
        per(self.bytes_programmed(), self.host[Op::Write as usize].bytes)
    }

    /// Write amplification in pages: pages programmed per page of those writes, a partly written page counted as one.
    pub fn waf_pages(&self) -> Option<f64> {
        per(self.pages_programmed(), self.counters.host_pages_written)
    }

    #[inline(always)]
    pub(crate) fn on_flash(&mut self, kind: Kind, cause: Cause) {
        self.flash[kind as usize][cause as usize] += 1;
        match kind {
            Kind::Program | Kind::Copyback => self.window.programs[cause as usize] += 1,
            Kind::Erase => self.window.erases += 1,
            Kind::Read => {}
        }
    }

    pub(crate) fn on_victim(&mut self, valid: u32) {
        self.counters.gc_victims += 1;
        self.counters.gc_victim_valid_pages += u64::from(valid);
        self.window.victims += 1;
        self.window.victim_valid_pages += u64::from(valid);
    }

    #[inline]
    fn count_outstanding(&mut self, now: Time) {
        self.window.outstanding_ns +=
            u128::from(self.outstanding) * u128::from((now - self.outstanding_since).ns());
        self.outstanding_since = now;
    }

    #[inline]
    pub(crate) fn on_submitted(&mut self, now: Time, _request: &Request) {
        self.count_outstanding(now);
        self.outstanding += 1;
    }

    #[inline]
    pub(crate) fn on_completed(&mut self, now: Time, request: &Request, failed: Option<FailReason>) {
        self.count_outstanding(now);
        self.outstanding -= 1;
        if let Some(reason) = failed {
            self.failed[reason as usize] += 1;
            return;
        }
        let ns = now - request.arrival;
        self.host[request.op as usize].record(ns.ns(), request.len);
        self.window.on_completed(request, ns);
    }

    /// A write of so many pages has been done.
    #[inline]
    pub(crate) fn on_written(&mut self, now: Time, pages: u32) {
        self.counters.host_pages_written += u64::from(pages);
        self.window.pages_written += u64::from(pages);
        if self.rounds.may_end(self.host_pages_programmed()) {
            self.rounds.end(self.count(now));
        }
    }

    /// Pages programmed for the host, whether a cache has held them or not.
    #[inline(always)]
    fn host_pages_programmed(&self) -> u64 {
        let programs = &self.flash[Kind::Program as usize];
        programs[Cause::Host as usize] + programs[Cause::Sync as usize]
    }

    /// What has been counted by now, for the steady-state verdict.
    fn count(&self, now: Time) -> Count {
        let [read, written] = [Op::Read, Op::Write].map(|op| self.host[op as usize].bytes);
        Count {
            time: now,
            host_pages: self.host_pages_programmed(),
            pages: self.pages_programmed(),
            erases: self.flash_total(Kind::Erase),
            written,
            moved: read + written,
        }
    }

    /// `steady_state` of the summary.
    pub(crate) fn steady_state(&self, spec: &Spec, geometry: &Geometry, now: Time) -> serde_json::Value {
        let workload = spec.workload.as_ref();
        let is_closed = workload.is_some_and(|workload| matches!(workload.arrival, Arrival::QueueDepth(_)));
        let requests = self.host.iter().map(|host| host.count).sum();
        let repeat = workload.map_or(1, |workload| workload.repeat).into();
        self.rounds.verdict(geometry, &self.count(now), is_closed, [requests, repeat])
    }

    /// So many requests have ended with the power.
    pub(crate) fn on_aborted(&mut self, now: Time, requests: u32) {
        self.count_outstanding(now);
        self.outstanding -= requests;
        self.failed[FailReason::PowerLost as usize] += u64::from(requests);
    }

    /// So many pages of the write cache are dirty.
    #[inline(always)]
    pub(crate) fn on_dirty(&mut self, pages: u32) {
        self.cache.dirty_pages_max = self.cache.dirty_pages_max.max(pages);
        self.window.dirty_pages_max = self.window.dirty_pages_max.max(pages);
    }

    /// So many pages of the write cache may be dirty from now on.
    pub(crate) fn on_budget(&mut self, pages: u32) {
        self.window.budget_pages_max = self.window.budget_pages_max.max(pages);
    }

    pub(crate) fn sample(
        &mut self,
        time: Time,
        geometry: &Geometry,
        device: &Device,
        ftl: &Ftl,
        cache: &dyn Fn(Time) -> CacheLevel,
    ) {
        while self.sample_at <= time && self.series.end_ns() < self.end {
            let end = self.sample_at;
            self.take_sample(end, geometry, device, ftl, cache(end));
            self.sample_at = self.end.min(end + self.series.interval_ns());
        }
    }

    fn take_sample(&mut self, end: Time, geometry: &Geometry, device: &Device, ftl: &Ftl, cache: CacheLevel) {
        self.count_outstanding(end.max(self.outstanding_since));
        let mut window = std::mem::take(&mut self.window);
        window.dirty_pages_max = window.dirty_pages_max.max(cache.dirty_pages);
        window.budget_pages_max = window.budget_pages_max.max(cache.budget_pages);
        window.capacitor_pages = cache.capacitor_pages;
        // What is so at the end of an interval is so at the beginning of the next one.
        (self.window.dirty_pages_max, self.window.budget_pages_max) = (cache.dirty_pages, cache.budget_pages);
        let span = end - self.series.end_ns();
        let (mut sum, mut least) = (0.0, f64::INFINITY);
        for plane in (0..geometry.planes).map(PlaneId) {
            let free = ftl.free_pages(geometry, plane);
            let share = ratio(f64::from(free), f64::from(geometry.pages_per_plane));
            sum += share;
            least = least.min(share);
        }
        window.free_share_min = least;
        window.free_share_ns = sum / f64::from(geometry.planes) * span.ns() as f64;
        let busy =
            (0..geometry.dies).map(|die| device.die_busy_ns(DieId(die), end.max(self.outstanding_since)));
        window.die_busy_ns = self.dies.push(busy);
        if self.series.push(end, window) {
            self.dies.merge_pairs();
        }
    }

    pub(crate) fn finish(
        &mut self,
        now: Time,
        geometry: &Geometry,
        device: &Device,
        ftl: &Ftl,
        cache: &dyn Fn(Time) -> CacheLevel,
    ) {
        self.sample(now, geometry, device, ftl, cache);
        if now > self.series.end_ns() {
            self.take_sample(now, geometry, device, ftl, cache(now));
            self.sample_at = self.end.min(now + self.series.interval_ns());
        }
    }
}
