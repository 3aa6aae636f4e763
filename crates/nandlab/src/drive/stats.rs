//! The statistics of a drive: the counters of all rooms in one view, and the run over time.

pub use crate::background::{GcStats, VictimMs, VictimStats};
use crate::base::state::{state, value};
pub use crate::capacitor::{CapacitorSummary, Detection, DetectionSummary};
pub use crate::core::UnitsStats;
pub use crate::core::placement::{Event, EventKind, HandleStats, MixedStats, PlacementStats};
pub use crate::demand_map::{MapStats, MapSummary};
pub use crate::host::{BufferStats, Counters, Latency, LatencyUs, SteadySummary};
pub use crate::migration::{MigrationStats, MigrationSummary};
pub use crate::power_loss::{LossCounts, LossRecord, PowerLoss, PowerSummary, Recovery};
pub use crate::read_levels::{ByLevel, EccStats, EccSummary};
pub use crate::reclaim::ReclaimStats;
pub use crate::refresh::{RefreshStats, RefreshSummary};
pub use crate::sched::SuspendStats;
pub use crate::slc::{SlcStats, SlcSummary};
pub use crate::write_cache::{CacheStats, CacheSummary};

use super::Drive;
use super::series::{DieSeries, Series, Window};
use super::warm_up::Beginning;
use crate::base::counters::{CounterSet, Declared};
use crate::base::geometry::{DieId, Geometry, LaneId};
use crate::base::numbers::{per, ratio};
use crate::base::units::{Span, Time};
use crate::capacitor::PowerBackup;
use crate::core::{Core, Operations};
use crate::host::{ByTag, FailReason, Op, Record};
use crate::probe::Probe;
use crate::sched::{Cause, FlashOp};
use crate::write_cache::Caching;
use serde_json::Value;
use std::ops::Deref;

/// The records of power losses and budget detections.
#[derive(Clone, Copy, Debug)]
pub struct PowerStats<'a> {
    /// Power losses, in order.
    pub losses: &'a [PowerLoss],
    /// Detections of the dirty budget, in order.
    pub detections: &'a [Detection],
    /// Total time from power losses until the drive was ready again.
    pub down_ns: Span,
}

macro_rules! counted {
    ($($field:ident: $Counters:ty, in $section:literal = |$drive:ident| $stats:expr;)+) => {
        /// The counters of all rooms.
        #[derive(Clone, Debug, Default)]
        pub struct RoomCounters {$(
            #[doc = concat!("Counters of `", $section, "` in the summary.")]
            pub $field: $Counters,
        )+}

        value! { RoomCounters { $($field),+ } }

        impl RoomCounters {
            /// The declarations of the counters, by section of the summary.
            pub const DECLARED: &[(&str, &[Declared])] = &[$(($section, <$Counters>::DECLARED)),+];

            pub(super) fn of<P: Probe>(drive: &Drive<P>) -> Self {
                Self {$($field: { let $drive = drive; $stats },)+}
            }

            /// What was counted between `then` and now.
            #[must_use]
            pub fn since(&self, then: &Self) -> Self {
                Self {$($field: self.$field.since(&then.$field),)+}
            }

            /// The columns in `life.parquet`.
            pub fn life(&self) -> Vec<(&'static str, f64)> {
                [$(self.$field.life()),+].concat()
            }

            /// The attributes in `smart.json`.
            pub fn smart(&self) -> Vec<(&'static str, Value)> {
                [$(self.$field.smart()),+].concat()
            }
        }
    };
}

counted! {
    counters: Counters, in "counters" = |drive| drive.counters();
    ecc: EccStats, in "ecc" = |drive| drive.reads.stats.clone();
    map: MapStats, in "map" = |drive| drive.path.map.as_ref().map_or_else(MapStats::default, |map| map.stats.clone());
    cache: CacheStats, in "cache" = |drive| drive.caching.as_ref().map_or_else(CacheStats::default, |c| c.stats.clone());
    refresh: RefreshStats, in "refresh" = |drive| drive.schemes.refreshing.stats();
    reclaim: ReclaimStats, in "reclaim" = |drive| drive.schemes.reclaim.stats.clone();
    slc: SlcStats, in "slc" = |drive| drive.schemes.slc.as_ref().map_or_else(SlcStats::default, |slc| slc.stats.clone());
    suspensions: SuspendStats, in "suspensions" = |drive| drive.core.device().suspensions();
    migration: MigrationStats, in "migration" = |drive| drive.schemes.migration.stats.clone();
    units: UnitsStats, in "units" = |drive| drive.core.units_stats().clone();
    buffer: BufferStats, in "buffer" = |drive| {
        drive.path.host.buffer.as_ref().map_or_else(BufferStats::default, |buffer| buffer.stats.clone())
    };
    gc: GcStats, in "counters" = |drive| drive.background.stats.clone();
    victims: VictimStats, in "gc" = |drive| drive.background.victim_stats.clone();
}

/// All statistics of a run.
#[derive(Debug)]
pub struct Stats<'a> {
    /// The counters of all rooms.
    pub counted: RoomCounters,
    /// Records of power losses and budget detections.
    pub power: PowerStats<'a>,
    /// Requests that failed, by [`FailReason`]; the latencies and bytes in `host` do not include these requests.
    pub failed: [u64; FailReason::ALL.len()],
    /// Flash operations, by kind (read, program, erase, copyback) and cause.
    pub flash: [[u64; Cause::ALL.len()]; 4],
    /// Latency and bytes by host operation, in the order of [`Op::ALL`](crate::host::Op::ALL).
    pub host: &'a [Latency; 4],
    /// The same by queue and by placement; `None` while all requests have had queue 0 and placement 0.
    pub by_tag: Option<&'a ByTag>,
    /// What the drive has counted by placement handle; `None` without placement handles.
    pub placement: Option<PlacementStats>,
    /// The run over time.
    pub series: &'a Series,
    /// Die utilisation over time.
    pub dies: &'a DieSeries,
    geometry: &'a Geometry,
}

impl Deref for Stats<'_> {
    type Target = RoomCounters;

    fn deref(&self) -> &RoomCounters {
        &self.counted
    }
}

impl Stats<'_> {
    /// Number of flash operations of a kind, all causes together.
    pub fn flash_total(&self, kind: FlashOp) -> u64 {
        Operations(self.flash).total(kind)
    }

    /// Page operations: page reads (each try counts), page programs and copybacks.
    pub fn page_operations(&self) -> u64 {
        self.flash_total(FlashOp::Read) + self.ecc.retries + self.pages_programmed()
    }

    /// Pages programmed, including those programmed by copybacks.
    pub fn pages_programmed(&self) -> u64 {
        Operations(self.flash).programmed()
    }

    /// Units of all pages programmed, used or not.
    pub fn units_programmed(&self) -> u64 {
        self.pages_programmed() * u64::from(self.geometry.units_per_page)
    }

    /// Requests that have ended, including failed ones.
    pub fn requests(&self) -> u64 {
        self.host.iter().map(|host| host.count).sum::<u64>() + self.failed.iter().sum::<u64>()
    }

    /// Bytes programmed.
    pub fn bytes_programmed(&self) -> u64 {
        self.pages_programmed() * u64::from(self.geometry.page_bytes())
    }

    /// Write amplification: bytes programmed per byte of completed host writes; `None` if no host write completed.
    pub fn waf(&self) -> Option<f64> {
        per(self.bytes_programmed(), self.host[Op::Write as usize].bytes)
    }

    /// Write amplification in units: units of the pages programmed per unit of completed host writes, a partly written
    /// unit counted as one; `None` if no host write completed.
    pub fn waf_pages(&self) -> Option<f64> {
        per(self.units_programmed(), self.counters.host_pages_written)
    }
}

/// The values of running counters at the last row of the series.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct LastRow {
    pub(super) operations: Operations,
    pub(super) channel_busy_ns: Span,
    pub(super) units_written: u64,
    pub(super) victims: u64,
    pub(super) victim_valid_units: u64,
    pub(super) slc_cached: u64,
    pub(super) slc_direct: u64,
}

/// The run over time.
#[derive(Debug)]
pub(super) struct Recorder {
    series: Series,
    dies: DieSeries,
    last_row: LastRow,
    /// Time when the next row is due; never later than the end of simulated time.
    sample_at: Time,
    /// The statistics at the end of the warm-up; `None` during the warm-up and without one.
    pub(super) beginning: Option<Box<Beginning>>,
}

impl Recorder {
    pub(super) fn new(rows: usize, dies: usize, end: Time, has_slc: bool) -> Self {
        let series = Series::new(rows, has_slc);
        let sample_at = Time::START + series.interval_ns().min(end - Time::START);
        Self { series, dies: DieSeries::new(dies), last_row: LastRow::default(), sample_at, beginning: None }
    }

    /// Begins the series again at `now`. `busy`: the busy time of each die and of all channels so far.
    pub(super) fn begin_again(
        &mut self,
        now: Time,
        end: Time,
        last_row: LastRow,
        dies: impl Iterator<Item = Span>,
    ) {
        self.series.begin_again(now);
        self.dies.begin_again(dies);
        self.last_row = last_row;
        self.sample_at = end.min(now + self.series.interval_ns());
    }

    #[inline(always)]
    pub(super) fn sample_at(&self) -> Time {
        self.sample_at
    }
}

impl<P: Probe> Drive<P> {
    /// The statistics so far; after a warm-up those since its end.
    pub fn stats(&self) -> Stats<'_> {
        let (counted, operations) = (RoomCounters::of(self), self.core.operations());
        let (losses, detections) = (&self.losses.list[..], &self.power.detections[..]);
        let down_ns = self.losses.down_ns;
        let (counted, operations, power) = match &self.recorder.beginning {
            None => (counted, *operations, PowerStats { losses, detections, down_ns }),
            Some(begin) => (
                counted.since(&begin.counted),
                operations.since(&begin.operations),
                PowerStats {
                    losses: &losses[begin.losses..],
                    detections: &detections[begin.detections..],
                    down_ns: down_ns - begin.down_ns,
                },
            ),
        };
        Stats {
            counted,
            power,
            failed: self.path.host.record.failed,
            flash: operations.0,
            host: &self.path.host.record.latency,
            by_tag: self.path.host.record.by_tag.as_deref(),
            placement: self.placement_stats(),
            series: &self.recorder.series,
            dies: &self.recorder.dies,
            geometry: self.core.geometry(),
        }
    }

    /// [`Stats::placement`].
    fn placement_stats(&self) -> Option<PlacementStats> {
        let now = self.core.placement_stats()?;
        let then = self.recorder.beginning.as_ref().and_then(|begin| begin.placement.as_ref());
        Some(then.map_or_else(|| now.clone(), |then| now.since(then)))
    }

    fn counters(&self) -> Counters {
        let mut counters = self.path.host.record.counters.clone();
        counters.add(&self.path.writes.counters);
        counters
    }

    /// Total time so far from power losses until the drive was ready again.
    pub fn down_time(&self) -> Span {
        self.losses.down_ns
    }

    /// `steady_state` of the summary.
    pub(crate) fn steady_state(&self) -> Option<SteadySummary> {
        let (record, workload) = (&self.path.host.record, self.spec.workload.as_ref());
        let is_closed = workload.is_some_and(|workload| workload.is_closed());
        let requests = record.latency.iter().map(|host| host.count).sum();
        let repeat = workload.map_or(1, |workload| workload.repeat).into();
        let now = record.count(self.core.now(), self.core.operations());
        let warm_up = self.recorder.beginning.as_ref().map_or(0, |begin| begin.requests);
        let page_bytes = self.core.geometry().page_bytes().into();
        let pages_per_block = self.core.first_shape().rows;
        record.rounds.verdict(page_bytes, pages_per_block, &now, is_closed, [requests, warm_up, repeat])
    }

    /// Adds the rows of the series that are due up to `time`.
    pub(super) fn sample(&mut self, time: Time) {
        let Self { core, recorder, path, caching, power, background, schemes, .. } = self;
        let record = &mut path.host.record;
        let (victims, slc) = (&background.stats, schemes.slc_units());
        Sampled { recorder, record, caching, power, victims, slc }.rows_until(core, time);
    }

    /// Completes the statistics up to the present time: the last interval of the series becomes a row.
    pub fn finish_stats(&mut self) {
        let now = self.core.now();
        let Self { core, recorder, path, caching, power, background, schemes, .. } = self;
        let record = &mut path.host.record;
        let (victims, slc) = (&background.stats, schemes.slc_units());
        let mut sampled = Sampled { recorder, record, caching, power, victims, slc };
        sampled.rows_until(core, now);
        if now > sampled.recorder.series.end_ns() {
            sampled.row(core, now);
            recorder.sample_at = core.end().min(now + recorder.series.interval_ns());
        }
    }
}

/// What a row of the series is made of, beside the core.
pub(super) struct Sampled<'a> {
    pub(super) recorder: &'a mut Recorder,
    pub(super) record: &'a mut Record,
    pub(super) caching: &'a mut Option<Caching>,
    pub(super) power: &'a PowerBackup,
    pub(super) victims: &'a GcStats,
    /// Units of the host programmed in SLC mode, and without it on a drive with an SLC cache.
    pub(super) slc: [u64; 2],
}

impl Sampled<'_> {
    /// Adds the rows that are due up to `time`.
    pub(super) fn rows_until<P: Probe>(&mut self, core: &Core<P>, time: Time) {
        while self.recorder.sample_at <= time && self.recorder.series.end_ns() < core.end() {
            let end = self.recorder.sample_at;
            self.row(core, end);
            self.recorder.sample_at = core.end().min(end + self.recorder.series.interval_ns());
        }
    }

    /// Adds a row that ends at `end`.
    fn row<P: Probe>(&mut self, core: &Core<P>, end: Time) {
        let Self { recorder, record, caching, power, victims, slc } = self;
        let (geometry, last_row, operations) = (core.geometry(), recorder.last_row, core.operations());
        let host = record.take_window(end);
        let [dirty_pages_max, budget_pages_max] =
            caching.as_mut().map_or([0; 2], |caching| caching.take_window());
        let span = end - recorder.series.end_ns();
        let (mut sum, mut least) = (0.0, f64::INFINITY);
        for lane in (0..geometry.lanes).map(LaneId) {
            let free = core.ftl().free_units(lane);
            let units = geometry.superblocks_in(lane) * core.first_shape().units;
            let share = ratio(f64::from(free), f64::from(units));
            sum += share;
            least = least.min(share);
        }
        let until = end.max(record.counted_until());
        let busy = (0..geometry.dies).map(|die| core.device().die_busy_ns(DieId(die), until));
        let of_channels =
            (0..geometry.channels).map(|channel| core.device().channel_busy_ns(channel, until)).sum::<Span>();
        let now = LastRow {
            operations: *operations,
            channel_busy_ns: of_channels,
            units_written: record.counters.host_pages_written,
            victims: victims.victims,
            victim_valid_units: victims.victim_valid_pages,
            slc_cached: slc[0],
            slc_direct: slc[1],
        };
        let programs = Cause::ALL
            .map(|cause| operations.programmed_for(cause) - last_row.operations.programmed_for(cause));
        let window = Window {
            requests: host.requests,
            bytes: host.bytes,
            latency_ns: host.latency_ns,
            latency_ns_max: host.latency_ns_max,
            pages_written: now.units_written - last_row.units_written,
            programs,
            erases: operations.total(FlashOp::Erase) - last_row.operations.total(FlashOp::Erase),
            victims: now.victims - last_row.victims,
            victim_valid_pages: now.victim_valid_units - last_row.victim_valid_units,
            outstanding_ns: host.outstanding_ns,
            die_busy_ns: recorder.dies.push(busy),
            channel_busy_ns: now.channel_busy_ns.saturating_sub(last_row.channel_busy_ns),
            free_share_min: least,
            free_share_ns: sum / f64::from(geometry.lanes) * span.ns() as f64,
            dirty_pages_max,
            budget_pages_max,
            capacitor_pages: power.capability_units(end),
            slc_cached: now.slc_cached - last_row.slc_cached,
            slc_direct: now.slc_direct - last_row.slc_direct,
            slc_superblocks: core.ftl().lanes.iter().map(|lane| lane.slc_superblocks).sum(),
            end,
        };
        recorder.last_row = now;
        if recorder.series.push(end, window) {
            recorder.dies.merge_pairs();
        }
    }
}

value! { LastRow { operations, channel_busy_ns, units_written, victims, victim_valid_units, slc_cached, slc_direct } }
state! { Recorder { series, dies, last_row, sample_at, beginning } }
