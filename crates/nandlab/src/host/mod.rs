//! The host's side of the drive: the requests from the link to their completion, with their statistics; flushes and
//! deallocations; the allocation of units to writes; the steady-state test; the oracle.

mod buffer;
mod controller;
mod epochs;
mod link;
mod load;
mod oracle;
mod path;
mod promises;
mod record;
mod requests;
pub(crate) mod spec;
mod stats;
mod steady;
pub mod streams;
mod tags;
mod trims;
mod writes;

pub use crate::base::request::{Completion, FailReason, Op, Request, Tag};
use crate::base::state::state;
pub(crate) use buffer::Buffer;
pub use buffer::BufferStats;
pub(crate) use controller::Controller;
pub use controller::ControllerState;
pub(crate) use epochs::{Epochs, Merging};
pub(crate) use link::{Link, LinkEnd};
pub use link::{LinkDirection, LinkState};
pub(crate) use load::BufferLoad;
pub use load::Occupancy;
pub use oracle::Oracle;
pub(crate) use path::DataPath;
pub(crate) use promises::{AfterLoss, InFlight, Promises};
pub(crate) use record::Record;
pub(crate) use requests::{InWork, Requests};
pub use stats::{Counters, Latency, LatencyUs};
pub(crate) use steady::{Count, Rounds};
pub use steady::{SteadyState, SteadySummary, Verdict, steady_state};
pub use streams::AddedStreams;
pub use tags::{ByOp, ByTag};
pub(crate) use trims::Trims;
pub(crate) use writes::{WriteBacks, Writes};

use crate::base::geometry::{LaneId, Lpn, RequestId};
use crate::base::units::{Span, Time};
use crate::core::{Core, Mechanism, Offline, Rest, STILL_WAITS, Wake};
use crate::probe::Probe;
use crate::sched::NEVER;
use spec::HostSpec;

/// The host's requests in the drive, with their flush epochs, deallocations and statistics.
#[derive(Debug)]
pub(crate) struct Host {
    pub(crate) requests: Requests,
    pub(crate) record: Record,
    /// The link between host and drive; `None` without a link.
    pub(crate) link: Option<Box<Link>>,
    /// The firmware of the controller; `None` if it takes no time.
    pub(crate) controller: Option<Box<Controller>>,
    pub(crate) epochs: Epochs,
    pub(crate) merging: Merging,
    /// The write buffer (`ftl.buffer`); `None` without one.
    pub(crate) buffer: Option<Buffer>,
    /// Completions that the caller has not fetched yet.
    pub(crate) completions: Vec<Completion>,
    pub(crate) trims: Trims,
    /// What the drive has promised about each unit; `None` if the drive cannot lose power.
    pub(crate) promises: Option<Box<Promises>>,
    /// Number of flushes that are not complete.
    pub(crate) flushes: u32,
    /// Whether the capacitor backs up the write cache: FUA writes and flushes are acknowledged from the cache.
    pub(crate) is_backed: bool,
    /// The number of completed requests at which power fails; `u64::MAX`: never.
    pub(crate) cut_after: u64,
    /// The number of completed requests at which the warm-up ends and the results begin; `u64::MAX`: the results have
    /// begun.
    pub(crate) results_after: u64,
    /// Number of requests of the warm-up that is over.
    pub(crate) warmed_up: u64,
    /// Time without outstanding requests after which the drive counts as idle.
    pub(crate) idle_after_ns: Span,
}

impl<P: Probe> Mechanism<P> for Host {
    fn preconditioned(&mut self, offline: &mut Offline<'_, P>) -> Result<(), LaneId> {
        self.loaded(offline);
        Ok(())
    }

    /// Notes in the record of promises the LPNs that have data at rest.
    fn loaded(&mut self, offline: &mut Offline<'_, P>) {
        if let Some(promises) = &mut self.promises {
            promises.note_at_rest(&offline.ftl().map, |unit| offline.sequence_of(unit));
        }
    }

    fn power_lost(&mut self, offline: &mut Offline<'_, P>) {
        (self.flushes, self.is_backed) = (0, false);
        self.epochs = Epochs::default();
        if let Some(buffer) = &mut self.buffer {
            buffer.forget(offline.now());
        }
        self.merging = Merging::default();
    }

    fn bytes(&self) -> u64 {
        self.promises.as_ref().map_or(0, |promises| promises.bytes())
    }

    fn audit(&self, core: &Core<P>, rest: Rest) -> Result<(), String> {
        if let Some(buffer) = &self.buffer {
            buffer.audit(core)?;
        }
        if !rest.is_at_rest() {
            return Ok(());
        }
        if !self.merging.is_empty() {
            return Err(STILL_WAITS.to_owned());
        }
        if self.flushes > 0 {
            return Err(format!("nothing is under way, but {} flushes wait", self.flushes));
        }
        let link = self.link.as_ref().map(|link| link.state(core.now()));
        if link.is_some_and(|link| link.to_drive.requests + link.to_host.requests > 0) {
            return Err("a request is on the link though none is outstanding".to_owned());
        }
        if self.controller.as_ref().is_some_and(|controller| !controller.is_empty()) {
            return Err("the controller has a command though none is outstanding".to_owned());
        }
        Ok(())
    }
}

impl Host {
    /// The latest possible arrival of a request or completion, and end of a command; it is later than the end of simulated
    /// time, at which a drive stops.
    const LATEST: Time = Time::from_ns(NEVER.ns() - 1);

    /// The state of a fresh drive. Power fails after `cut_after` completed requests (0: never). The drive counts as
    /// idle after the time `idle_after` without outstanding requests.
    pub(crate) fn new<P: Probe>(spec: &HostSpec, cut_after: u64, idle_after: Span, core: &Core<P>) -> Self {
        Self {
            requests: Requests::default(),
            record: Record::new(Rounds::new(core.geometry())),
            link: spec.link.as_ref().map(|link| Box::new(Link::new(link))),
            controller: spec.controller.as_ref().map(|spec| Box::new(Controller::new(spec))),
            epochs: Epochs::default(),
            merging: Merging::default(),
            buffer: None,
            completions: Vec::new(),
            trims: Trims::default(),
            promises: None,
            flushes: 0,
            is_backed: false,
            cut_after: if cut_after == 0 { u64::MAX } else { cut_after },
            results_after: u64::MAX,
            warmed_up: 0,
            idle_after_ns: idle_after,
        }
    }

    /// The first and the last unit of a request.
    #[inline]
    pub(crate) fn units<P: Probe>(core: &Core<P>, request: &Request) -> (u32, u32) {
        let unit = |offset| core.geometry().lpn_at(offset) as u32;
        (unit(request.offset), unit(request.offset + request.len - 1))
    }

    /// The drive has admitted a write or TRIM of a unit by request `id`.
    #[inline]
    pub(crate) fn on_admitted(&mut self, id: RequestId, lpn: Lpn, sequence: u64) {
        if let Some(promises) = &mut self.promises {
            promises.on_admitted(self.requests.get(id), lpn, sequence);
        }
    }

    /// Fails a partial write, because the old data that it needs is lost: a unit with new and lost sectors would look
    /// intact.
    #[inline(never)]
    pub(crate) fn fail_merge<P: Probe>(&mut self, core: &mut Core<P>, request: RequestId) {
        self.fail_unit(request);
        self.unit_done(core, request);
    }

    /// Counts a unit of a request as lost. The request will complete as failed.
    #[inline(never)]
    pub(crate) fn fail_unit(&mut self, request: RequestId) {
        self.record.counters.media_errors += 1;
        self.requests.fail(request, FailReason::Uncorrectable);
    }

    #[inline]
    pub(crate) fn unit_done<P: Probe>(&mut self, core: &mut Core<P>, id: RequestId) {
        let request = self.requests.get(id);
        request.units_left -= 1;
        if request.units_left == 0 {
            self.complete(core, id);
        }
    }

    /// Completes a request in the drive: sends the completion over the link, or reports it at once.
    fn complete<P: Probe>(&mut self, core: &mut Core<P>, id: RequestId) {
        let (is_write, epoch) = (self.requests.op(id) == Op::Write, self.requests.get(id).epoch);
        core.probe.on_done(core.now(), id);
        if let Some(controller) = &mut self.controller {
            controller.leave(core);
        }
        if self.link.is_some() {
            self.send_to_host(core, id);
        } else {
            self.report(core, id);
        }
        if is_write {
            self.epochs.leave(epoch);
            self.complete_flushes(core);
        }
    }

    /// Completes a request at the host, which now has the completion.
    #[inline(always)]
    pub(crate) fn report<P: Probe>(&mut self, core: &mut Core<P>, id: RequestId) {
        let is_write = self.requests.op(id) == Op::Write;
        let done = self.requests.remove(id);
        if let Some(promises) = &mut self.promises {
            promises.on_completed(&done);
        }
        self.record.on_completed(core.now(), &done.request, done.failed);
        if is_write && done.failed.is_none() {
            let (first, last) = Self::units(core, &done.request);
            self.record.on_written(core.now(), last - first + 1, core.operations());
        }
        let InWork { id: number, request, failed, .. } = done;
        let completion = Completion { id: number, request, completed: core.now(), failed };
        core.probe.on_completed(id, &completion);
        self.completions.push(completion);
        if self.requests.completed() >= self.results_after {
            self.begin_results(core);
            core.wake(Wake::Results);
        }
        if self.requests.completed() >= self.cut_after {
            self.cut_after = u64::MAX;
            core.wake(Wake::CutPower);
        }
        if self.requests.live() == 0 {
            core.set_clock(core.idle_clock(), core.now() + self.idle_after_ns);
        }
    }

    /// The last request of the warm-up has ended: its statistics begin again here, those of the drive when the event
    /// loop serves [`Wake::Results`] last. So exactly the requests of the warm-up are left out, also if the same event
    /// completes further requests.
    #[cold]
    #[inline(never)]
    pub(crate) fn begin_results<P: Probe>(&mut self, core: &Core<P>) {
        (self.warmed_up, self.results_after) = (self.results_after, u64::MAX);
        self.record.begin_again(core.now(), core.operations());
    }

    /// From now on the capacitor backs up the write cache, or no longer does. Deallocations that it did not back up
    /// before, or no longer will, become durable.
    pub(crate) fn set_backed<P: Probe>(&mut self, core: &mut Core<P>, is_backed: bool) {
        if is_backed || self.is_backed {
            self.trims.make_durable();
        }
        self.is_backed = is_backed;
        self.complete_flushes(core);
    }

    /// Number of units of the dirty budget that records of deallocations take.
    #[inline]
    pub(crate) fn trim_units<P: Probe>(&self, core: &Core<P>) -> u32 {
        if self.is_backed { self.trims.units(core.geometry().unit_bytes) } else { 0 }
    }

    /// Completes the flushes that need not wait any longer.
    #[inline]
    pub(crate) fn complete_flushes<P: Probe>(&mut self, core: &mut Core<P>) {
        while let Some(flush) = self.epochs.done(self.is_backed) {
            if !self.is_backed {
                self.trims.make_durable();
            }
            core.probe.on_flushed(self.requests.get(flush).id, self.is_backed);
            self.flushes -= 1;
            self.unit_done(core, flush);
        }
    }
}

state! {
    Host {
        requests,
        record,
        epochs,
        merging,
        completions,
        trims,
        flushes,
        is_backed,
        cut_after,
        results_after,
        warmed_up,
    }
    parts { link, controller, buffer, promises }
    fixed { idle_after_ns }
}
