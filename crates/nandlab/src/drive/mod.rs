//! The drive: wires the parts together. The only module that knows them all.
//!
//! A drive is a library object: [`Drive::submit`] requests, [`Drive::advance`] simulated time, take
//! [`Drive::completions`]. The trace runner ([`crate::runner::Runner`]) is one user of that.

mod build;
mod events;
mod failure;
mod fast_forward;
pub(crate) mod notes;
mod power_loss;
mod precondition;
mod reads;
mod recovery;
mod requests;
mod series;
mod snapshot;
pub mod spec;
pub mod stats;
mod together;
mod views;

pub use crate::capacitor::CapacitorState;
pub use crate::host::{Completion, FailReason, LinkDirection, LinkState};
pub use crate::refresh::{ErrorCacheState, PartialState};
pub use failure::Failure;
pub use fast_forward::Lived;
pub use precondition::{PtsOutcome, Watch};
pub use series::{DieSeries, Series, Window};
pub use snapshot::{SaveError, SnapshotError};
pub use stats::Stats;

use crate::background::Background;
use crate::base::geometry::{Geometry, Lpn, PlaneId};
use crate::base::units::{SECOND, Span, Time};
use crate::capacitor::PowerBackup;
use crate::copyback::Migration;
use crate::core::Core;
use crate::core::Parts;
use crate::demand_map::{DemandMap, Mapping};
use crate::flash::{Array, Ecc, Stamp};
use crate::ftl::Ftl;
use crate::host::{Host, Op, Oracle, Request, Writes};
use crate::power_loss::Losses;
use crate::probe::{NoProbe, Probe};
use crate::read_levels::Reads;
use crate::refresh::Refreshing;
use crate::refresh::partial::{CombinationLinks, Linked};
use crate::sched::{Device, NEVER};
use crate::write_cache::Caching;
use fast_forward::Pace;
use spec::Spec;
use stats::Recorder;
use together::Path;

/// A request the drive does not take.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Refused {
    /// It ends beyond the logical capacity.
    Beyond {
        /// The first byte that is not there.
        end: u64,
        /// The logical capacity in bytes.
        capacity: u64,
    },
    /// A read, write or TRIM of no bytes.
    Empty,
    /// It arrives after the drive's present time.
    Future,
}

impl std::fmt::Display for Refused {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Beyond { end, capacity } => {
                write!(f, "the request ends at byte {end}, the drive has {capacity} bytes")
            }
            Self::Empty => write!(f, "the request has no bytes"),
            Self::Future => write!(f, "the request arrives after the drive's present time: advance first"),
        }
    }
}

impl std::error::Error for Refused {}

/// How long [`Drive::run_until_idle`] waits for the drive to come to rest if nothing else is said: 60 s.
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
    refreshing: Refreshing,
    copyback: Migration,
    reads: Reads,
    recorder: Recorder,
    pace: Pace,
    /// What has gone wrong with the drive itself: nothing happens any more.
    failure: Option<Box<Failure>>,
    /// The background job of each plane.
    background: Background,
    spec: Spec,
}

/// What the tests break, to see that the audit notices.
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
    /// A fresh drive that nobody watches. See [`Drive::with_probe`].
    pub fn new(spec: &Spec) -> Self {
        Self::with_probe(spec, NoProbe)
    }
}

impl<P: Probe> Drive<P> {
    /// Tells the oracle that `of` finds in the probe what the drive holds, from before it saw anything.
    pub fn expect_preconditioned(&mut self, of: impl FnOnce(&mut P) -> &mut Oracle) {
        of(&mut self.core.probe).expect_preconditioned(&self.core.ftl.map);
    }

    /// A fresh drive from a validated spec, not yet preconditioned.
    pub fn with_probe(spec: &Spec, probe: P) -> Self {
        let core = Core::new(
            build::core(spec, P::STAMPED),
            |geometry, array| build::ftl(spec, geometry, array),
            probe,
        );
        let geometry = &core.geometry;
        let copyback = Migration::new(&spec.migration);
        let mut caching = Caching::new(&spec.cache, geometry);
        if let Some(caching) = caching.as_mut().filter(|_| copyback.watches_buffer()) {
            caching.watch_load(core.device.timing().block_write_ns(geometry.pages_per_block));
        }
        let vsm_pages = spec.refresh.policy.partial().map_or(0, |partial| partial.vsm_pages);
        let (cut_at, clock_scale) = (spec.power.cut_at_ns, spec.reliability.clock_scale);
        let (ftl, gc) = (&spec.ftl, &spec.gc);
        let mut drive = Self {
            background: Background::new(gc, ftl.wear_levelling, ftl.wear_gap, geometry.planes),
            power: PowerBackup::new(
                &spec.capacitor,
                build::budget(spec),
                cut_at,
                vsm_pages,
                clock_scale,
                geometry,
            ),
            refreshing: Refreshing::new(&spec.refresh, spec.seed, &core),
            reads: Reads::new(core.physics.ecc.levels()),
            recorder: Recorder::new(spec.output.series_rows as usize, geometry.dies as usize, core.end),
            pace: Pace::default(),
            failure: None,
            path: Path {
                host: Host::new(
                    spec.host.link.as_ref(),
                    spec.power.cut_after_requests,
                    spec.gc.idle_after_ns,
                    geometry,
                ),
                map: Mapping::new(&ftl.map, geometry, P::STAMPED),
                writes: Writes::new(core.ftl.allocator.is_static(), geometry),
            },
            losses: Losses::default(),
            copyback,
            caching,
            spec: spec.clone(),
            core,
        };
        drive.with_power(|power, core, kept| power.begin(core, kept));
        drive.refreshing.refresh.begin(&mut drive.core);
        drive.serve();
        drive
    }

    /// The geometry.
    pub fn geometry(&self) -> &Geometry {
        &self.core.geometry
    }

    /// The spec the drive was built from.
    pub fn spec(&self) -> &Spec {
        &self.spec
    }

    /// The present simulated time.
    pub fn now(&self) -> Time {
        self.core.now
    }

    /// The last simulated time: [`Time::LIMIT`], or where the age clock ends 2^31 s after the start.
    pub fn end(&self) -> Time {
        self.core.end
    }

    /// The flash array.
    pub fn array(&self) -> &Array {
        &self.core.array
    }

    /// The dies, channels and the off-chip path.
    pub fn device(&self) -> &Device {
        &self.core.device
    }

    /// The FTL's state.
    pub fn ftl(&self) -> &Ftl {
        &self.core.ftl
    }

    /// The read levels.
    pub fn ecc(&self) -> &Ecc {
        &self.core.physics.ecc
    }

    /// The array and the FTL, to break them: for the tests that show that the audit notices.
    #[doc(hidden)]
    pub fn parts_mut(&mut self) -> (&mut Array, &mut Ftl) {
        (&mut self.core.array, &mut self.core.ftl)
    }

    /// The demand map; `None` when the whole map is in RAM.
    pub fn demand_map(&self) -> Option<&DemandMap> {
        self.path.map.as_ref().map(|mapping| &mapping.demand)
    }

    /// The same and the state of the mechanisms that flash does not show.
    #[doc(hidden)]
    pub fn inner_mut(&mut self) -> Inner<'_> {
        let Core { array, ftl, parts, .. } = &mut self.core;
        let demand = self.path.map.as_mut().map(|mapping| &mut mapping.demand);
        let links = self.refreshing.partial.as_mut().map(|partial| &mut partial.links);
        Inner { array, ftl, parts, demand, links }
    }

    /// Where partially refreshed pages have their susceptible data, and which pages these are; `None` without partial
    /// refresh.
    pub fn links(&self) -> Option<Linked<'_>> {
        self.refreshing.partial.as_ref().map(|partial| partial.linked(&self.core))
    }

    /// The probe.
    pub fn probe(&self) -> &P {
        &self.core.probe
    }

    /// The probe, to change.
    pub fn probe_mut(&mut self) -> &mut P {
        &mut self.core.probe
    }

    /// Requests submitted and not completed.
    pub fn outstanding(&self) -> u32 {
        self.path.host.requests.live()
    }

    /// The requests completed since this was last called, in order of completion.
    pub fn completions(&mut self) -> std::vec::Drain<'_, Completion> {
        self.path.host.completions.drain(..)
    }

    /// Hands the drive a request that arrives now or arrived earlier (its latency counts from its arrival). With a link
    /// (`host.link`) the host sends it now, and it is completed when the host has the completion.
    /// Returns the request's id: the number of requests submitted before it.
    ///
    /// # Errors
    /// When the request has no bytes, ends beyond the drive, or arrives in the future.
    pub fn submit(&mut self, request: &Request) -> Result<u64, Refused> {
        assert!(!self.losses.is_off, "power is off");
        if request.arrival > self.core.now {
            return Err(Refused::Future);
        }
        if request.op != Op::Flush {
            let capacity = self.core.geometry.logical_bytes();
            let end = request.offset.saturating_add(request.len);
            if request.len == 0 {
                return Err(Refused::Empty);
            }
            if end > capacity {
                return Err(Refused::Beyond { end, capacity });
            }
        }
        if self.path.host.requests.live() == 0 {
            self.core.state.is_idle = false;
            self.core.set_clock(self.core.idle_clock(), NEVER);
        }
        let id = self.accept(request);
        self.serve();
        Ok(id)
    }

    /// Tells the drive of a request that will be submitted soon, so that the host machine's cache has what it needs by
    /// then: first its map entries, and with `pages` (some time later) what they point to. Changes nothing simulated.
    #[inline]
    pub fn prefetch(&self, request: &Request, pages: bool) {
        if matches!(request.op, Op::Read | Op::Write) {
            let page_bytes = u64::from(self.core.geometry.page_bytes);
            let first = request.offset / page_bytes;
            // Longer requests fetch for themselves: their pages follow one another.
            let last = request.offset.saturating_add(request.len).div_ceil(page_bytes).min(first + 8);
            for lpn in first..last.min(u64::from(self.core.geometry.logical_pages)) {
                let (core, lpn) = (&self.core, Lpn(lpn as u32));
                if let Some(mapping) = &self.path.map {
                    mapping.prefetch(lpn, pages);
                }
                if pages {
                    core.ftl.prefetch_page(&core.geometry, &core.array, lpn);
                } else {
                    core.ftl.map.prefetch(lpn);
                }
            }
        }
    }

    /// Simulates until `to`: everything that happens up to and including then has happened afterwards. A drive that has
    /// failed stays where it is, and one that is to go on beyond [`Drive::end`] fails; see [`Drive::failure`].
    pub fn advance(&mut self, to: Time) {
        self.advance_some(to, u64::MAX);
    }

    /// As [`Drive::advance`], with so many events at most; whether nothing is left to be simulated up to `to`.
    pub fn advance_some(&mut self, to: Time, events: u64) -> bool {
        let mut events_left = events;
        loop {
            let (time, clock) = self.core.agenda.next();
            if self.is_stuck_at(time, clock) {
                if !self.give_up() {
                    return true;
                }
                continue;
            }
            if time > to || time == NEVER {
                break;
            }
            if events_left == 0 {
                return false;
            }
            events_left -= 1;
            self.step(time, clock);
            if self.failure.is_some() {
                return true;
            }
        }
        if to > self.core.end {
            self.end_time();
        } else if self.failure.is_none() {
            self.core.now = self.core.now.max(to);
        }
        true
    }

    /// Simulates until at least one request has been completed, or nothing happens any more, or `limit` is reached.
    /// Whether something has been completed.
    pub fn advance_to_completion(&mut self, limit: Time) -> bool {
        while self.path.host.completions.is_empty() {
            let (time, clock) = self.core.agenda.next();
            if self.is_stuck_at(time, clock) {
                if !self.give_up() {
                    return false;
                }
                continue;
            }
            if time > limit || self.is_rest(time, clock) {
                return false;
            }
            self.step(time, clock);
        }
        true
    }

    /// Simulates the next event, if it is not later than `limit`; whether there was one. The present time does not go on to
    /// `limit`. Without a limit ([`Time::NEVER`]) the next detection of the budget is not waited for, as in
    /// [`Drive::run_until_idle`].
    pub fn advance_by_event(&mut self, limit: Time) -> bool {
        loop {
            let (time, clock) = self.core.agenda.next();
            if self.is_stuck_at(time, clock) {
                if !self.give_up() {
                    return false;
                }
                continue;
            }
            if time > limit || time == NEVER || limit == NEVER && self.is_rest(time, clock) {
                return false;
            }
            self.step(time, clock);
            return self.failure.is_none();
        }
    }

    /// Simulates until nothing is left to do: every request completed, background work done.
    ///
    /// # Errors
    /// When something still goes on after `limit` of simulated time ([`IDLE_LIMIT`] will do for most), such as the refresh
    /// of a drive whose blocks are due again before all are refreshed; and when the drive has failed.
    pub fn run_until_idle(&mut self, limit: Span) -> Result<(), Failure> {
        self.run_some_until_idle(self.core.now, limit, u64::MAX).map(|_| ())
    }

    /// As [`Drive::run_until_idle`] called at `began`, with so many events at most; whether the drive has come to rest.
    ///
    /// # Errors
    /// See [`Drive::run_until_idle`].
    pub fn run_some_until_idle(&mut self, began: Time, limit: Span, events: u64) -> Result<bool, Failure> {
        let until = began.saturating_add(limit);
        let mut events_left = events;
        loop {
            let (time, clock) = self.core.agenda.next();
            if let Some(failure) = self.failure() {
                return Err(failure.clone());
            } else if self.is_rest(time, clock) {
                if !self.is_stuck() {
                    return Ok(true);
                }
                if !self.give_up() {
                    return Err(self.failure().expect("it has given up").clone());
                }
            } else if time > until && clock == self.core.idle_clock() {
                // Nothing is under way: it only waits for the time from which it is idle.
                return Ok(true);
            } else if time > until {
                return Err(self.restless(limit));
            } else if events_left == 0 {
                return Ok(false);
            } else {
                events_left -= 1;
                self.step(time, clock);
            }
        }
    }

    /// What has gone wrong with the drive itself, if something has: no write can go on, though the drive is not worn out.
    /// Nothing happens any more.
    pub fn failure(&self) -> Option<&Failure> {
        self.failure.as_deref()
    }

    /// Whether nothing is left to happen, the next event being this one. The next detection of the budget and the next
    /// refresh do not count: there is always one to come.
    #[inline]
    fn is_rest(&self, time: Time, clock: u32) -> bool {
        time == NEVER || clock >= self.core.power_clock() && self.only_waits() || self.failure.is_some()
    }

    #[cold]
    fn only_waits(&self) -> bool {
        let power_waits = self.power.is_idle() || self.core.agenda.time(self.core.power_clock()) == NEVER;
        power_waits && self.core.agenda.is_unset_below(self.core.power_clock())
    }

    /// Whether something waits for room that will not come.
    #[inline]
    fn is_stuck_at(&self, time: Time, clock: u32) -> bool {
        self.is_rest(time, clock) && self.is_stuck()
    }

    /// Whether something waits for room: with no event left none will come.
    fn is_stuck(&self) -> bool {
        self.path.is_stuck::<P>()
    }

    /// The drive-wide audit. With nothing under way it also checks that nothing is left over.
    ///
    /// # Errors
    /// The first thing that is wrong.
    pub fn audit(&self) -> Result<(), String> {
        self.core.ftl.audit(&self.core.geometry, &self.core.array)?;
        if let Some(mapping) = &self.path.map {
            mapping.demand.audit(&self.core.ftl.map)?;
        }
        if let Some(caching) = &self.caching {
            caching.cache.audit()?;
        }
        if self.core.array.keeps_sequences() {
            for lpn in (0..self.core.geometry.logical_pages).map(Lpn) {
                let stamp =
                    self.core.ftl.map.get(lpn).map_or(Stamp::default(), |ppn| self.core.array.stamp(ppn));
                if stamp.sequence > self.core.sequence
                    || stamp.corrected > self.core.physics.age_clock.at(self.core.now)
                {
                    return Err(format!("LPN {} has a stamp from the future: {stamp:?}", lpn.0));
                }
            }
        }
        let is_at_rest = self.is_at_rest();
        if let Some(partial) = &self.refreshing.partial {
            partial.audit(&self.core, is_at_rest)?;
        }
        if let Some(cache) = &self.refreshing.error_cache {
            cache.audit(&self.core)?;
        }
        if is_at_rest {
            if let Some(block) = self.core.array.blocks.iter().position(|b| b.pins > 0) {
                return Err(format!("block {block} is held by an operation that is over"));
            }
            if self.path.writes.count > 0
                || !self.path.host.merging.is_empty()
                || !self.path.map.as_ref().is_none_or(Mapping::is_idle)
            {
                return Err("a write still waits though no request is outstanding".to_owned());
            }
            if let Some(mapping) = &self.path.map {
                mapping.audit_at_rest()?;
            }
            if let Some(caching) = &self.caching {
                caching.audit_at_rest()?;
            }
            if self.path.host.flushes > 0 {
                return Err(format!("nothing is under way, and {} flushes wait", self.path.host.flushes));
            }
            if self.link().is_some_and(|link| link.to_drive.requests + link.to_host.requests > 0) {
                return Err("a request is on the link though none is outstanding".to_owned());
            }
            for plane in (0..self.core.geometry.planes).map(PlaneId) {
                if self.core.has_job(plane) {
                    return Err(format!("plane {} has a background job that does nothing", plane.0));
                }
            }
        }
        Ok(())
    }
}
