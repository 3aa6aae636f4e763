//! The drive: connects core and mechanisms. No other room imports all mechanisms.
//!
//! A drive is a library object. [`Drive::submit`] takes requests, [`Drive::advance`] simulates, [`Drive::completions`]
//! returns the completed requests. The trace runner ([`crate::runner::Runner`]) is one user of this interface.

mod audit;
mod build;
mod checkpoint;
mod events;
mod failure;
mod fast_forward;
pub mod kept;
mod mechanisms;
pub(crate) mod notes;
mod policies;
mod power_loss;
mod precondition;
mod preconditioned;
mod ranges;
mod reads;
mod recovery;
mod requests;
mod saved_placement;
mod series;
mod snapshot;
pub mod spec;
pub mod stats;
mod together;
mod views;
mod warm_up;

pub use crate::capacitor::CapacitorState;
pub use crate::host::{Completion, FailReason, LinkDirection, LinkState};
pub use crate::refresh::{ErrorCacheState, PartialState};
pub use failure::Failure;
pub use fast_forward::Lived;
pub use policies::{BuildError, Policies};
pub use precondition::{PtsOutcome, Watch};
pub use preconditioned::Preconditioned;
pub use series::{DieSeries, Series, Window};
pub use snapshot::{SaveError, SnapshotError};
pub use stats::Stats;
pub use views::{DieWork, Version};

use crate::background::Background;
use crate::base::geometry::{Geometry, Lpn};
use crate::base::units::{SECOND, Span, Time};
use crate::capacitor::PowerBackup;
use crate::core::{Core, Parts, State};
use crate::demand_map::DemandMap;
use crate::flash::{Array, Ecc};
use crate::ftl::Ftl;
use crate::host::{Buffer, Host, Occupancy, Op, Oracle, Promises, Request, Tag, Writes};
use crate::power_loss::Losses;
use crate::probe::{NoProbe, Probe};
use crate::read_levels::Reads;
use crate::refresh::partial::{CombinationLinks, Linked};
use crate::sched::{Device, NEVER};
use crate::write_cache::Caching;
use fast_forward::Pace;
use mechanisms::Schemes;
use ranges::Ranges;
use spec::{EnergySpec, Spec};
use stats::Recorder;
use together::Path;

/// Why the drive refuses a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Refused {
    /// The request ends beyond the logical capacity.
    Beyond {
        /// Offset of the first byte after the request.
        end: u64,
        /// The logical capacity in bytes.
        capacity: u64,
    },
    /// A read, write or TRIM of no bytes.
    Empty,
    /// The request arrives after the drive's present time.
    Future,
    /// The request has a placement, and the drive has no placement handles (`[placement]`). On a drive that has some, an
    /// identifier that it does not have counts as 0.
    Placement {
        /// [`Tag::placement`](crate::host::Tag) of the request.
        placement: u16,
    },
}

impl std::fmt::Display for Refused {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Beyond { end, capacity } => {
                write!(f, "the request ends at byte {end}, but the drive has {capacity} bytes")
            }
            Self::Empty => write!(f, "the request has no bytes"),
            Self::Future => {
                write!(f, "the request arrives after the drive's present time: advance the drive first")
            }
            Self::Placement { placement } => {
                write!(
                    f,
                    "the drive has no placement {placement}: submit the request with placement 0, or set \
                     placement.handles"
                )
            }
        }
    }
}

impl std::error::Error for Refused {}

/// Default limit of [`Drive::run_until_idle`] to the simulated time until the drive is at rest: 60 s.
pub const IDLE_LIMIT: Span = Span::from_ns(60 * SECOND.ns());

/// A simulated drive.
#[derive(Debug)]
pub struct Drive<P: Probe = NoProbe> {
    core: Core<P>,
    path: Path,
    /// The write cache; `None` without one.
    caching: Option<Caching>,
    power: PowerBackup,
    losses: Losses,
    schemes: Schemes,
    reads: Reads,
    recorder: Recorder,
    pace: Pace,
    /// The failure of the drive itself, after which no further event is simulated.
    failure: Option<Box<Failure>>,
    /// The placements of writes by address.
    ranges: Ranges,
    /// The background job of each lane.
    background: Background,
    spec: Spec,
    policies: Policies,
}

/// The state that tests corrupt to check that the audit finds the corruption.
#[doc(hidden)]
#[allow(missing_docs)]
#[derive(Debug)]
pub struct Inner<'a> {
    pub array: &'a mut Array,
    pub ftl: &'a mut Ftl,
    pub parts: &'a mut Parts,
    pub demand: Option<&'a mut DemandMap>,
    pub links: Option<&'a mut CombinationLinks>,
}

impl Drive<NoProbe> {
    /// A fresh drive without a probe, from a validated spec, not yet preconditioned.
    pub fn new(spec: &Spec) -> Self {
        Self::with_probe(spec, NoProbe)
    }
}

/// What comes next in a drive.
enum Next {
    /// An event: its time and its clock.
    Event(Time, u32),
    /// Units that waited for room have been given up, so requests may have ended.
    GivenUp,
    /// The drive has failed, or has no event.
    Nothing,
}

impl<P: Probe> Drive<P> {
    /// Informs the oracle, which `of` returns from the probe, of the LPNs that preconditioning has mapped.
    pub fn expect_preconditioned(&mut self, of: impl FnOnce(&mut P) -> &mut Oracle) {
        let (probe, data) = self.core.probe_and_data();
        of(probe).expect_preconditioned(data.map);
    }

    /// A fresh drive with a probe, from a validated spec, not yet preconditioned.
    pub fn with_probe(spec: &Spec, probe: P) -> Self {
        Self::build(spec, Policies::default(), probe).expect("a validated spec has policies that fit it")
    }

    /// A fresh drive with a probe, from a validated spec and policies from outside, not yet preconditioned.
    ///
    /// # Errors
    /// When a policy from outside does not fit the spec.
    pub fn build(spec: &Spec, policies: Policies, probe: P) -> Result<Self, BuildError> {
        let mut core = Core::new(
            build::core(spec, &policies, probe.needs_sequences()),
            |geometry, array| build::ftl(spec, &policies, geometry, array),
            probe,
        );
        policies.check(spec, core.geometry().unit_bytes)?;
        if let Some(policy) = policies.start(core.ecc().levels()) {
            core.start_reads_by(policy);
        }
        let geometry = core.geometry();
        let schemes = Schemes::new(spec, &policies, &core);
        let buffer = Buffer::new(spec.ftl.buffer_bytes, geometry.unit_bytes);
        let buffer_units = buffer.as_ref().map_or(0, Buffer::capacity);
        let mut caching = Caching::new(&spec.cache, policies.cache(&spec.cache), buffer_units, &core);
        // A unit leaves the write cache through the write buffer, and the cache keeps it until it is programmed.
        let mut buffer = buffer.filter(|_| caching.is_none());
        if schemes.migration.watches_buffer() {
            let window = core.device().timing().superblock_write_ns();
            let occupancy = spec.migration.policy.occupancy;
            if let Some(caching) = &mut caching {
                caching.watch_load(window, occupancy);
            }
            if let Some(buffer) = buffer.as_mut().filter(|_| occupancy == Occupancy::Occupied) {
                buffer.watch_load(window);
            }
        }
        let vsm_pages = spec.refresh.policy.partial().map_or(0, |partial| partial.vsm_pages);
        let vsm_programs = vsm_pages.div_ceil(core.first_shape().pages_per_program);
        let (cut_at, clock_scale) = (spec.power.cut_at_ns, spec.reliability.clock_scale);
        // Units wait for the others of their programming unit, so copies are counted in programming units. Each die of
        // a superblock has its own.
        let copies = spec.migration.in_flight.saturating_mul(core.first_shape().units_per_program);
        let copies = copies.saturating_mul(geometry.dies_per_lane);
        let copies_back = spec.migration.policy.copybacks_max() > 0;
        let gc = &spec.gc;
        let buffered = buffer.as_ref().map_or(0, Buffer::capacity);
        let mut drive = Self {
            background: Background::new(
                gc,
                policies.wear(spec, geometry.lanes),
                copies,
                copies_back,
                buffered,
                &core,
            ),
            power: PowerBackup::new(
                &spec.capacitor,
                build::budget(spec),
                cut_at,
                vsm_programs,
                clock_scale,
                &core,
            ),
            reads: Reads::new(core.ecc().levels(), spec.ecc.decoders, core.ecc().codec().is_some()),
            recorder: Recorder::new(
                spec.output.series_rows as usize,
                geometry.dies as usize,
                core.end(),
                spec.has_slc_mode(),
            ),
            pace: Pace::default(),
            failure: None,
            ranges: Ranges::new(&spec.placement.ranges, geometry.logical_bytes()),
            path: Path {
                host: Host {
                    buffer,
                    promises: core
                        .flash()
                        .keeps_sequences()
                        .then(|| Box::new(Promises::new(geometry.logical_units))),
                    ..Host::new(&spec.host, spec.power.cut_after_requests, spec.gc.idle_after_ns, &core)
                },
                map: build::mapping(spec, &policies, &core),
                writes: Writes::new(&core).divided_by(policies.streams(spec, core.geometry())),
            },
            losses: Losses::default(),
            schemes,
            caching,
            spec: spec.clone(),
            policies,
            core,
        };
        let EnergySpec { read_j, erase_j, .. } = spec.energy;
        drive.power.gc_in_flush = spec.power.gc_in_flush.then_some([read_j, erase_j]);
        drive.path.host.is_backed =
            drive.acknowledges_from_cache() && drive.caching.as_ref().is_some_and(|c| c.cache.budget() > 0);
        drive.with_power(|power, core, kept| power.begin(core, kept));
        drive.began();
        drive.serve();
        Ok(drive)
    }

    /// The geometry.
    pub fn geometry(&self) -> &Geometry {
        self.core.geometry()
    }

    /// The spec the drive was built from.
    pub fn spec(&self) -> &Spec {
        &self.spec
    }

    /// The policies that come from outside.
    pub fn policies(&self) -> &Policies {
        &self.policies
    }

    /// The present simulated time.
    pub fn now(&self) -> Time {
        self.core.now()
    }

    /// The last simulated time: [`Time::LIMIT`], or the end of the age clock (2^31 s after the start), whichever is
    /// earlier.
    pub fn end(&self) -> Time {
        self.core.end()
    }

    /// The flash array.
    pub fn array(&self) -> &Array {
        self.core.flash()
    }

    /// The dies, channels and the off-chip path.
    pub fn device(&self) -> &Device {
        self.core.device()
    }

    /// The FTL's state.
    pub fn ftl(&self) -> &Ftl {
        self.core.ftl()
    }

    /// The read levels.
    pub fn ecc(&self) -> &Ecc {
        self.core.ecc()
    }

    /// Array and FTL, mutable, for tests that corrupt them.
    #[doc(hidden)]
    pub fn parts_mut(&mut self) -> (&mut Array, &mut Ftl) {
        let (array, ftl, _) = self.core.inner_mut();
        (array, ftl)
    }

    /// The demand map; `None` when the whole map is in RAM.
    pub fn demand_map(&self) -> Option<&DemandMap> {
        self.path.map.as_ref().map(|mapping| &mapping.demand)
    }

    /// Array, FTL and the state of mechanisms that is not in flash, mutable, for tests that corrupt them.
    #[doc(hidden)]
    pub fn inner_mut(&mut self) -> Inner<'_> {
        let (array, ftl, parts) = self.core.inner_mut();
        let demand = self.path.map.as_mut().map(|mapping| &mut mapping.demand);
        let links = self.schemes.refreshing.partial.as_mut().map(|partial| &mut partial.links);
        Inner { array, ftl, parts, demand, links }
    }

    /// The partially refreshed units and the combination pages with their susceptible bits; `None` without partial
    /// refresh.
    pub fn links(&self) -> Option<Linked<'_>> {
        self.schemes.refreshing.partial.as_ref().map(|partial| partial.linked(&self.core))
    }

    /// The probe.
    pub fn probe(&self) -> &P {
        &self.core.probe
    }

    /// The probe, mutable.
    pub fn probe_mut(&mut self) -> &mut P {
        &mut self.core.probe
    }

    /// Number of outstanding requests: submitted and not completed.
    pub fn outstanding(&self) -> u32 {
        self.path.host.requests.live()
    }

    /// The requests completed since the last call, in order of completion.
    pub fn completions(&mut self) -> std::vec::Drain<'_, Completion> {
        self.path.host.completions.drain(..)
    }

    /// Submits a request that arrives now or arrived earlier; the latency of the request counts from its arrival. With
    /// a link (`host.link`) the host sends the request now, and the request is completed when the host has received the
    /// completion. Returns the id of the request, which is the number of requests submitted before it.
    ///
    /// # Errors
    /// When the request has no bytes, ends beyond the drive, arrives in the future, or has a placement on a drive without
    /// placement handles.
    ///
    /// # Panics
    /// While power is off.
    pub fn submit(&mut self, request: &Request) -> Result<u64, Refused> {
        assert!(!self.core.state().is_off, "power is off");
        if request.arrival > self.core.now() {
            return Err(Refused::Future);
        }
        if request.op != Op::Flush {
            let capacity = self.core.geometry().logical_bytes();
            let end = request.offset.saturating_add(request.len);
            if request.len == 0 {
                return Err(Refused::Empty);
            }
            if end > capacity {
                return Err(Refused::Beyond { end, capacity });
            }
        }
        let request = &self.placed(request)?;
        if self.path.host.requests.live() == 0 {
            self.core.set_state(State { is_idle: false, ..*self.core.state() });
            self.core.set_clock(self.core.idle_clock(), NEVER);
        }
        let id = self.accept(request);
        self.serve();
        Ok(id)
    }

    /// The request with a placement that the drive has: that of a write's address, unless the request names one, and 0 in
    /// place of an unknown one.
    #[inline]
    fn placed(&mut self, request: &Request) -> Result<Request, Refused> {
        let mut placement = request.tag.placement;
        if placement == 0 && (self.ranges.is_empty() || request.op != Op::Write) {
            return Ok(*request);
        }
        if placement == 0 {
            placement = self.ranges.find(request.offset);
        } else if self.core.placements().find(placement).is_none() {
            if self.core.placement_stats().is_none() {
                return Err(Refused::Placement { placement });
            }
            if request.op == Op::Write {
                self.core.on_invalid_identifier(placement);
            }
            placement = 0;
        }
        Ok(request.with_tag(Tag { placement, ..request.tag }))
    }

    /// Prefetches into the processor's cache the state that a coming request needs: its map entries, or in a later call
    /// with `units` the state of its units. Has no effect on the simulation.
    #[inline]
    pub fn prefetch(&self, request: &Request, units: bool) {
        if matches!(request.op, Op::Read | Op::Write) {
            let geometry = self.core.geometry();
            let first = geometry.lpn_at(request.offset);
            // Eight units are enough: the processor prefetches the following units of longer requests by itself.
            let last =
                geometry.lpn_at(request.offset.saturating_add(request.len).saturating_sub(1)).min(first + 7);
            for lpn in first..(last + 1).min(u64::from(geometry.logical_units)) {
                let (core, lpn) = (&self.core, Lpn(lpn as u32));
                self.caching.iter().for_each(|caching| caching.cache.prefetch(lpn, units));
                if let Some(mapping) = &self.path.map {
                    mapping.prefetch(lpn, units);
                }
                if units {
                    core.prefetch_unit(lpn, request.op == Op::Read);
                } else {
                    core.ftl().map.prefetch(lpn);
                }
            }
        }
    }

    /// Simulates all events up to and including time `to`. Does nothing if the drive has failed. If `to` is after
    /// [`Drive::end`], the drive fails (see [`Drive::failure`]).
    pub fn advance(&mut self, to: Time) {
        self.advance_some(to, u64::MAX);
    }

    /// As [`Drive::advance`], but simulates at most `events` events. Returns `true` if no event up to `to` is left, or
    /// the drive has failed.
    pub fn advance_some(&mut self, to: Time, events: u64) -> bool {
        let mut events_left = events;
        loop {
            match self.next(true) {
                Next::Event(time, _) if time > to => break,
                Next::Event(..) if events_left == 0 => return false,
                Next::Event(time, clock) => {
                    events_left -= 1;
                    self.step(time, clock);
                }
                Next::GivenUp => {}
                Next::Nothing => break,
            }
        }
        if self.failure.is_some() {
            return true;
        }
        if to > self.core.end() {
            self.end_time();
        } else {
            // What follows at this time is not part of the rows that end before it.
            if to >= self.recorder.sample_at() {
                self.sample(to);
            }
            self.core.advance_to(self.core.now().max(to));
        }
        true
    }

    /// Simulates until at least one request has been completed, the drive is at rest, or time `limit` is reached. Returns
    /// whether a request has been completed.
    pub fn advance_to_completion(&mut self, limit: Time) -> bool {
        while self.path.host.completions.is_empty() {
            match self.next(false) {
                Next::Event(time, clock) if time <= limit => self.step(time, clock),
                Next::GivenUp => {}
                _ => return false,
            }
        }
        true
    }

    /// Simulates the next event if it is not later than `limit`; returns whether an event was simulated. The present
    /// time becomes the time of the event, not `limit`. Budget detections and refreshes to come are events, so a drive that
    /// has them always has a next event.
    pub fn advance_by_event(&mut self, limit: Time) -> bool {
        self.advance_by_one(limit, true)
    }

    /// Simulates the next event of a drive that is not at rest ([`Drive::run_until_idle`]); returns whether an event was
    /// simulated.
    pub fn advance_unless_at_rest(&mut self) -> bool {
        self.advance_by_one(Time::NEVER, false)
    }

    /// Simulates the next event if it is not later than `limit`, as [`Drive::next`] has it; returns whether an event
    /// was simulated.
    fn advance_by_one(&mut self, limit: Time, recurs: bool) -> bool {
        loop {
            match self.next(recurs) {
                Next::Event(time, clock) if time <= limit => {
                    self.step(time, clock);
                    return self.failure.is_none();
                }
                Next::GivenUp => {}
                _ => return false,
            }
        }
    }

    /// Simulates until the drive is at rest: all requests completed, no background work left.
    ///
    /// # Errors
    /// When the drive is not at rest after `limit` of simulated time ([`IDLE_LIMIT`] is enough for most drives), for
    /// example because superblocks are due for refresh again before all are refreshed; and when the drive has failed.
    pub fn run_until_idle(&mut self, limit: Span) -> Result<(), Failure> {
        self.run_some_until_idle(self.core.now(), limit, u64::MAX).map(|_| ())
    }

    /// As [`Drive::run_until_idle`] called at time `began`, but simulates at most `events` events; returns whether the
    /// drive is at rest.
    ///
    /// # Errors
    /// When the drive is not at rest at `began` plus `limit`, and when the drive has failed.
    pub fn run_some_until_idle(&mut self, began: Time, limit: Span, events: u64) -> Result<bool, Failure> {
        let until = began.saturating_add(limit);
        let mut events_left = events;
        loop {
            match self.next(false) {
                Next::Event(time, clock) if time > until => {
                    // If nothing but the time at which the drive counts as idle is still to come, nothing is under way.
                    let is_idle = clock == self.core.idle_clock();
                    return if is_idle { Ok(true) } else { Err(self.restless(limit)) };
                }
                Next::Event(..) if events_left == 0 => return Ok(false),
                Next::Event(time, clock) => {
                    events_left -= 1;
                    self.step(time, clock);
                }
                Next::GivenUp => {}
                Next::Nothing => return self.failure().map_or(Ok(true), |failure| Err(failure.clone())),
            }
        }
    }

    /// What comes next in the drive. A drive at rest has no event, unless `recurs`: then budget detections and refreshes
    /// to come are events. If units wait for room that no event can make, gives them up.
    #[inline(always)]
    fn next(&mut self, recurs: bool) -> Next {
        let (time, clock) = self.core.next_clock();
        // While nothing is stuck, a drive whose recurring events count is not at rest.
        if self.is_stuck() && self.is_rest(time, clock) {
            return if self.give_up() { Next::GivenUp } else { Next::Nothing };
        }
        let is_over =
            if recurs { time == NEVER || self.failure.is_some() } else { self.is_rest(time, clock) };
        if is_over { Next::Nothing } else { Next::Event(time, clock) }
    }

    /// The time up to which [`Drive::advance`] has to simulate so that something happens without a further request: the time of
    /// the next event, or the present time if units that wait for room are to be given up. `None` if nothing would ever
    /// happen, and while power is off.
    pub fn next_event(&mut self) -> Option<Time> {
        if self.failure.is_some() || self.core.state().is_off {
            return None;
        }
        let (time, clock) = self.core.next_clock();
        if self.is_stuck() && self.is_rest(time, clock) {
            return Some(self.core.now());
        }
        (time != NEVER).then_some(time)
    }

    /// The failure of the drive itself, after which no further event is simulated: for example no waiting write can get
    /// room though the drive is not worn out. `None` while the drive works.
    pub fn failure(&self) -> Option<&Failure> {
        self.failure.as_deref()
    }

    /// Whether the drive is at rest or has failed; `time` and `clock` are those of its next event. A coming budget
    /// detection or refresh does not count, because there is always a next one.
    #[inline]
    fn is_rest(&self, time: Time, clock: u32) -> bool {
        time == NEVER
            || clock >= self.core.power_clock() && self.has_only_recurring_events()
            || self.failure.is_some()
    }

    #[cold]
    fn has_only_recurring_events(&self) -> bool {
        let power_waits = self.power.is_idle() || self.core.clock(self.core.power_clock()) == NEVER;
        power_waits && self.core.has_no_clock_below(self.core.power_clock())
    }

    /// Whether a unit waits for room.
    fn is_stuck(&self) -> bool {
        self.path.is_stuck::<P>()
    }
}
