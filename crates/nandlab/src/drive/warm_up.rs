//! The warm-up (`workload.warm_up`): the first requests of a workload, which the results leave out.
//!
//! The results begin when the last request of the warm-up completes. Requests that are outstanding at that time count
//! when they complete, with their whole latency. Flash operations that are under way count when they end; busy times
//! count from the beginning of the results. Of the requests that the same event completes only those of the warm-up are
//! left out; its flash operations and the counters of mechanisms belong to the warm-up. The drive itself does not
//! notice: its state, its clocks and its random numbers are those of a run without a warm-up.
//!
//! The statistics of the host's requests begin again at once (`Record::begin_again`). The drive keeps its other
//! statistics as they are at the end of the event (`Beginning`), and `Drive::stats` subtracts these; the series begins
//! again, and a probe is last_row.

use super::Drive;
use super::stats::{LastRow, RoomCounters};
use crate::base::geometry::DieId;
use crate::base::state::value;
use crate::base::units::{Span, Time};
use crate::capacitor::Detection;
use crate::core::{Operations, PlacementStats};
use crate::host::LinkState;
use crate::power_loss::PowerLoss;
use crate::probe::Probe;
use crate::sched::{Cause, FlashOp};

/// The statistics at the end of the warm-up. Those of the host's requests begin again in `host/record.rs`.
#[derive(Debug)]
pub(super) struct Beginning {
    pub(super) at: Time,
    /// Number of requests that had ended.
    pub(super) requests: u64,
    pub(super) counted: RoomCounters,
    pub(super) placement: Option<PlacementStats>,
    pub(super) operations: Operations,
    /// Number of power losses.
    pub(super) losses: usize,
    /// Number of budget detections.
    pub(super) detections: usize,
    pub(super) down_ns: Span,
    die_busy_ns: Span,
    channel_busy_ns: Span,
    link: Option<LinkState>,
    controller_busy_ns: Span,
}

impl<P: Probe> Drive<P> {
    /// Lets the results begin when `requests` more requests have ended; 0: with what has been counted so far.
    pub fn warm_up(&mut self, requests: u64) {
        let host = &mut self.path.host;
        host.results_after =
            if requests == 0 { u64::MAX } else { host.requests.completed().saturating_add(requests) };
    }

    /// Whether requests of the warm-up are still to end.
    pub fn is_warming_up(&self) -> bool {
        self.path.host.results_after < u64::MAX
    }

    /// The number of requests of the warm-up and its simulated time; `None` during the warm-up and without one.
    pub fn warmed_up(&self) -> Option<(u64, Span)> {
        self.recorder.beginning.as_ref().map(|begin| (begin.requests, begin.at - Time::START))
    }

    /// The simulated time that the results cover.
    pub fn measured(&self) -> Span {
        self.core.now() - self.recorder.beginning.as_ref().map_or(Time::START, |begin| begin.at)
    }

    /// Number of requests that have ended, those of the warm-up included.
    pub fn requests_ended(&self) -> u64 {
        self.path.host.requests.completed()
    }

    /// Page operations so far, those of the warm-up included: page reads (each try counts), page programs and
    /// copybacks.
    pub fn page_operations(&self) -> u64 {
        let operations = self.core.operations();
        operations.total(FlashOp::Read) + self.reads.stats.retries + operations.programmed()
    }

    /// The counters of all rooms since the start, those of the warm-up included.
    pub(crate) fn all_counted(&self) -> RoomCounters {
        RoomCounters::of(self)
    }

    /// Whether there has been a flash operation for a cause, in the warm-up or after it.
    pub(crate) fn has_operations_for(&self, cause: Cause) -> bool {
        self.core.operations().0.iter().any(|kind| kind[cause as usize] > 0)
    }

    /// Whether a die has executed an operation on the planes of several transactions.
    pub(crate) fn has_used_several_planes(&self) -> bool {
        self.core.device().has_used_several_planes()
    }

    /// Whether it has made a difference that planes read independently.
    pub(crate) fn have_planes_read_independently(&self) -> bool {
        self.core.device().have_planes_read_independently()
    }

    /// Power losses so far, those in the warm-up included.
    pub(crate) fn all_losses(&self) -> &[PowerLoss] {
        &self.losses.list
    }

    /// Budget detections so far, those in the warm-up included.
    pub(crate) fn all_detections(&self) -> &[Detection] {
        &self.power.detections
    }

    /// The time for which the dies were busy, summed over the dies.
    pub fn die_busy_ns(&self) -> Span {
        let before = self.recorder.beginning.as_ref().map_or(Span::ZERO, |begin| begin.die_busy_ns);
        self.busy_of_dies().sum::<Span>() - before
    }

    /// The time for which the channels were occupied, summed over the channels.
    pub fn channel_busy_ns(&self) -> Span {
        let before = self.recorder.beginning.as_ref().map_or(Span::ZERO, |begin| begin.channel_busy_ns);
        self.busy_of_channels() - before
    }

    /// The link with the times for which data crossed it; `None` without a link.
    pub(crate) fn link_used(&self) -> Option<LinkState> {
        let mut link = self.link()?;
        if let Some(before) = self.recorder.beginning.as_ref().and_then(|begin| begin.link) {
            link.to_drive.busy -= before.to_drive.busy;
            link.to_host.busy -= before.to_host.busy;
        }
        Some(link)
    }

    /// The time for which the controller's processors have worked, summed over them; `None` if the firmware takes no time.
    pub(crate) fn controller_busy_ns(&self) -> Option<Span> {
        let before = self.recorder.beginning.as_ref().map_or(Span::ZERO, |begin| begin.controller_busy_ns);
        self.controller().map(|state| state.busy - before)
    }

    fn busy_of_dies(&self) -> impl Iterator<Item = Span> {
        let core = &self.core;
        (0..core.geometry().dies).map(|die| core.device().die_busy_ns(DieId(die), core.now()))
    }

    fn busy_of_channels(&self) -> Span {
        let core = &self.core;
        (0..core.geometry().channels).map(|channel| core.device().channel_busy_ns(channel, core.now())).sum()
    }

    /// The last request of the warm-up has ended: the results begin.
    #[cold]
    #[inline(never)]
    pub(super) fn begin_results(&mut self) {
        // The maxima of counters begin again: the largest value since the beginning cannot follow from two values.
        let dirty_units = self.caching.as_mut().map_or(0, |caching| {
            caching.take_window();
            caching.cache.dirty_units()
        });
        if let Some(caching) = &mut self.caching {
            caching.stats.dirty_pages_max = dirty_units;
        }
        self.schemes.refreshing.refresh.stats.overdue_max_s = 0;

        let (now, operations, gc) = (self.core.now(), *self.core.operations(), &self.background.stats);
        let channel_busy_ns = self.busy_of_channels();
        // What is counted when a request ends has begun again when the last request of the warm-up ended.
        self.path.host.record.begin_work_again();
        let last_row = LastRow {
            operations,
            channel_busy_ns,
            units_written: 0,
            victims: gc.victims,
            victim_valid_units: gc.victim_valid_pages,
        };
        let counted = RoomCounters { counters: self.path.writes.counters.clone(), ..RoomCounters::of(self) };
        let beginning = Beginning {
            at: now,
            requests: self.path.host.warmed_up,
            counted,
            placement: self.core.placement_stats().cloned(),
            operations,
            losses: self.losses.list.len(),
            detections: self.power.detections.len(),
            down_ns: self.losses.down_ns,
            die_busy_ns: self.busy_of_dies().sum(),
            channel_busy_ns,
            link: self.link(),
            controller_busy_ns: self.controller().map_or(Span::ZERO, |state| state.busy),
        };
        self.recorder.beginning = Some(Box::new(beginning));
        let dies: Vec<Span> = self.busy_of_dies().collect();
        self.recorder.begin_again(now, self.core.end(), last_row, dies.into_iter());
        let submitted = self.core.next_order();
        self.core.probe.on_results(submitted);
    }
}

value! {
    Beginning {
        at,
        requests,
        counted,
        placement,
        operations,
        losses,
        detections,
        down_ns,
        die_busy_ns,
        channel_busy_ns,
        link,
        controller_busy_ns,
    }
}
