//! The drive: wires the parts together. The only module that knows them all.
//!
//! A drive is a library object: [`Drive::submit`] requests, [`Drive::advance`] simulated time, take
//! [`Drive::completions`]. The trace runner ([`crate::host::Runner`]) is one user of that.

mod background;
mod caching;
mod detection;
mod error_cache;
mod fast_forward;
mod host;
mod mapping;
mod migration;
mod partial;
mod power_loss;
mod precondition;
mod reads;
mod recovery;
mod refresh;
mod requests;
mod snapshot;
mod trims;

pub use detection::CapacitorState;
pub use error_cache::ErrorCacheState;
pub use fast_forward::Lived;
pub use partial::PartialState;
pub use precondition::{PtsOutcome, Watch};
pub use requests::Completion;
pub use snapshot::SnapshotError;

use crate::core::{Core, Wake};
use crate::ftl::Ftl;
use crate::geometry::{DieId, Geometry, Lpn, PlaneId, Ppn};
use crate::host::{Op, Oracle, Request};
use crate::nand::{Array, Ecc, Stamp};
use crate::probe::{NoProbe, Probe};
use crate::sched::{Cause, Device, Ended, Kind, NEVER, Owner, Transaction};
use crate::spec::Spec;
use crate::stats::{CacheLevel, Stats};
use crate::units::Time;
use background::{Background, IN_VAIN_MAX};
use caching::Caching;
use detection::{Power, Stage};
use error_cache::ErrorCache;
use fast_forward::Pace;
use host::{Host, Writes};
use mapping::Mapping;
use migration::Migration;
use partial::Partial;
use refresh::Refresh;

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

/// What a page passes on its way between the host and flash, whether a request or the write cache sends it.
#[derive(Debug)]
struct DataPath {
    host: Host,
    mapping: Mapping,
    writes: Writes,
    migration: Migration,
}

impl DataPath {
    fn new<P: Probe>(spec: &Spec, core: &Core<P>) -> Self {
        let geometry = &core.geometry;
        Self {
            host: Host::new(spec),
            mapping: Mapping::new(if core.ftl.demand.is_some() { geometry.planes as usize } else { 0 }),
            writes: Writes::new(core.ftl.allocator.is_static(), geometry),
            migration: Migration::new(spec, geometry),
        }
    }

    /// Whether something waits for room: with no event left none will come.
    fn is_stuck(&self) -> bool {
        self.writes.count > 0 || self.mapping.waits_for_room()
    }
}

/// How data is refreshed.
#[derive(Debug)]
struct Refreshing {
    refresh: Refresh,
    /// What partial refresh keeps; `None` without it.
    partial: Option<Partial>,
}

/// A simulated drive.
#[derive(Debug)]
pub struct Drive<P: Probe = NoProbe> {
    core: Core<P>,
    path: DataPath,
    /// The write cache; `None` without one.
    caching: Option<Caching>,
    power: Power,
    refreshing: Refreshing,
    /// The cache of known errors; `None` without one.
    error_cache: Option<ErrorCache>,
    pace: Pace,
    /// The background job of each plane.
    background: Background,
    spec: Spec,
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
        let core = Core::new(spec, probe);
        let geometry = &core.geometry;
        let mut drive = Self {
            background: Background::new(spec, geometry.planes),
            caching: Caching::new(spec, geometry),
            power: Power::new(spec, geometry.dies),
            refreshing: Refreshing {
                refresh: Refresh::new(spec, geometry),
                partial: Partial::new(spec, geometry),
            },
            error_cache: ErrorCache::new(spec, geometry),
            pace: Pace::default(),
            path: DataPath::new(spec, &core),
            spec: spec.clone(),
            core,
        };
        drive.path.migration.buffer_pages = drive.cache_pages()[0];
        drive.power.begin(&mut drive.core, &mut drive.caching);
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
        &self.core.ecc
    }

    /// What has been counted so far.
    pub fn stats(&self) -> &Stats {
        &self.core.stats
    }

    /// The array and the FTL, to break them: for the tests that show that the audit notices.
    #[doc(hidden)]
    pub fn parts_mut(&mut self) -> (&mut Array, &mut Ftl) {
        (&mut self.core.array, &mut self.core.ftl)
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

    /// Hands the drive a request that arrives now or arrived earlier (its latency counts from its arrival).
    /// Returns the request's id: the number of requests submitted before it.
    ///
    /// # Errors
    /// When the request has no bytes, ends beyond the drive, or arrives in the future.
    pub fn submit(&mut self, request: &Request) -> Result<u64, Refused> {
        assert!(!self.power.is_off, "power is off");
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
            self.core.is_idle = false;
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
                if pages {
                    self.core.ftl.prefetch_page(&self.core.geometry, &self.core.array, Lpn(lpn as u32));
                } else {
                    self.core.ftl.prefetch_entry(Lpn(lpn as u32));
                }
            }
        }
    }

    /// Simulates until `to`: everything that happens up to and including then has happened afterwards.
    pub fn advance(&mut self, to: Time) {
        loop {
            let (time, clock) = self.core.agenda.next();
            if self.is_stuck_at(time, clock) {
                self.give_up();
                continue;
            }
            if time > to || time == NEVER {
                break;
            }
            self.step(time, clock);
        }
        self.core.now = self.core.now.max(to);
    }

    /// Simulates until at least one request has been completed, or nothing happens any more, or `limit` is reached.
    /// Whether something has been completed.
    pub fn advance_to_completion(&mut self, limit: Time) -> bool {
        while self.path.host.completions.is_empty() {
            let (time, clock) = self.core.agenda.next();
            if self.is_stuck_at(time, clock) {
                self.give_up();
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
                self.give_up();
                continue;
            }
            if time > limit || time == NEVER || limit == NEVER && self.is_rest(time, clock) {
                return false;
            }
            self.step(time, clock);
            return true;
        }
    }

    /// Simulates until nothing is left to do: every request completed, background work done. A drive whose blocks are due
    /// again before all are refreshed never comes to rest.
    pub fn run_until_idle(&mut self) {
        loop {
            let (time, clock) = self.core.agenda.next();
            if !self.is_rest(time, clock) {
                self.step(time, clock);
            } else if self.is_stuck() {
                self.give_up();
            } else {
                break;
            }
        }
    }

    /// Whether nothing is left to happen, the next event being this one. The next detection of the budget and the next
    /// refresh do not count: there is always one to come.
    #[inline]
    fn is_rest(&self, time: Time, clock: u32) -> bool {
        time == NEVER || clock >= self.core.power_clock() && self.only_waits()
    }

    #[cold]
    fn only_waits(&self) -> bool {
        let power_waits = self.power.only_waits() || self.core.agenda.time(self.core.power_clock()) == NEVER;
        power_waits && self.core.agenda.is_unset_below(self.core.power_clock())
    }

    /// Whether something waits for room that will not come.
    #[inline]
    fn is_stuck_at(&self, time: Time, clock: u32) -> bool {
        self.is_rest(time, clock) && self.is_stuck()
    }

    /// Whether something waits for room: with no event left none will come.
    fn is_stuck(&self) -> bool {
        self.path.is_stuck()
    }

    /// Nothing happens any more and something waits for room: a plane that could not gain any when it was last asked
    /// may be able to by now. Otherwise the drive has worn out, and what waits fails, or does without.
    fn give_up(&mut self) {
        for plane in (0..self.core.geometry.planes).map(PlaneId) {
            self.check_space(plane);
            self.path.mapping.resume_write_backs(&mut self.core, plane);
            self.resume_stalled(plane);
        }
        self.serve();
        let (time, clock) = self.core.agenda.next();
        if self.is_rest(time, clock) {
            self.fail_waiting();
            self.serve();
        }
    }

    /// Lets the write cache work, if there is one.
    fn with_cache(&mut self, work: impl FnOnce(&mut Caching, &mut Core<P>, &mut DataPath)) {
        if let Some(cache) = &mut self.caching {
            work(cache, &mut self.core, &mut self.path);
        }
    }

    /// Lets the background jobs work.
    fn with_background(
        &mut self,
        work: impl FnOnce(&mut Background, &mut Core<P>, &mut DataPath, &mut Refreshing),
    ) {
        work(&mut self.background, &mut self.core, &mut self.path, &mut self.refreshing);
    }

    fn check_space(&mut self, plane: PlaneId) {
        self.with_background(|jobs, core, path, refreshing| jobs.check_space(core, path, refreshing, plane));
    }

    /// A page of the job of a plane is done.
    fn on_copied(&mut self, plane: PlaneId) {
        self.with_background(|jobs, core, path, refreshing| jobs.on_copied(core, path, refreshing, plane));
    }

    /// The job of a plane is over, and its block stays: the next one may begin.
    fn after_job(&mut self, plane: PlaneId) {
        self.on_job_over(plane);
        self.next_job(plane);
    }

    /// Starts the next job of a plane, if there is one and the plane has none.
    fn next_job(&mut self, plane: PlaneId) {
        if !self.core.has_job(plane) {
            self.with_background(|jobs, core, path, refreshing| {
                jobs.continue_background(core, path, refreshing, plane);
            });
        }
    }

    /// A block has been erased: its job is over, and there is room for those that wait for it.
    fn on_erased(&mut self, plane: PlaneId, done: &Transaction) {
        let block = self.core.geometry.block_of(done.ppn);
        self.core.end_erase(block, done.cause);
        self.background.end_job(&mut self.core, plane);
        if let Some(partial) = &mut self.refreshing.partial {
            partial.on_erased(&mut self.core, block);
        }
        self.core.levels.set_block(block, 0);
        if done.cause == Cause::Refresh {
            self.refreshing.refresh.on_erased(&mut self.core, block);
        }
        self.on_job_over(plane);
        self.path.writes.erases_in_vain += u64::from(self.is_stuck());
        self.path.mapping.resume_write_backs(&mut self.core, plane);
        self.resume_stalled(plane);
        if self.path.writes.erases_in_vain > IN_VAIN_MAX * u64::from(self.core.geometry.blocks) {
            self.fail_waiting();
        }
        self.next_job(plane);
    }

    /// Gives the writes that wait for `plane` the room there is now.
    fn resume_stalled(&mut self, plane: PlaneId) {
        let DataPath { mapping, writes, .. } = &mut self.path;
        writes.resume(&mut self.core, mapping, self.caching.as_mut(), plane);
    }

    /// Serves what has to be looked at again, until nothing has.
    #[inline]
    fn serve(&mut self) {
        while !self.core.wakes.is_empty() {
            self.serve_next();
        }
    }

    fn serve_next(&mut self) {
        match self.core.wakes.pop() {
            None => {}
            Some(Wake::Space(plane)) => self.check_space(plane),
            Some(Wake::Emptied(plane)) => self.background.on_emptied(&mut self.core, &mut self.path, plane),
            Some(Wake::PageDone(plane)) => self.on_copied(plane),
            Some(Wake::Due(plane)) => self
                .with_background(|jobs, core, path, refreshing| jobs.on_due(core, path, refreshing, plane)),
            Some(Wake::Hurry(block)) => self.hurry(block),
            Some(Wake::WriteElsewhere { plane, read }) => {
                self.background.move_page(&mut self.core, &mut self.path, plane, &read);
            }
            Some(Wake::Refreshed(block)) => self.refreshing.refresh.end_partial(&mut self.core, block),
            Some(Wake::JobOver(plane)) => self.after_job(plane),
            Some(Wake::Entry { waiter, is_lost }) => self.on_entry(&waiter, is_lost),
            Some(Wake::SectorsArrived { slot, sequence, is_lost }) => {
                self.with_cache(|cache, core, path| cache.on_fetched(core, path, slot, sequence, is_lost));
            }
            Some(Wake::WriteBackEnded(slot)) => {
                self.with_cache(|cache, core, path| cache.end_write_back(core, path, slot));
            }
            Some(Wake::CacheRoom) => self.with_cache(Caching::resume),
            Some(Wake::CutPower) => self.cut_power_soon(),
            Some(Wake::Detection) => self.with_power(Power::go_on),
        }
    }

    fn fail_waiting(&mut self) {
        self.path.writes.erases_in_vain = 0;
        self.path.mapping.give_up_write_backs(&mut self.core);
        self.path.writes.fail(&mut self.core, &mut self.path.host, self.caching.as_mut());
    }

    /// One event.
    #[inline]
    fn step(&mut self, time: Time, clock: u32) {
        debug_assert!(time >= self.core.now, "time runs backwards");
        if time >= self.core.stats.sample_at() {
            self.sample(time);
        }
        self.core.now = time;
        if clock < self.core.geometry.dies {
            self.on_die(DieId(clock));
        } else if clock < self.core.idle_clock() {
            let line = &mut self.core.decoding[(clock - self.core.geometry.dies) as usize];
            let (_, slot) = line.pop_front().expect("the decode clock is set for a page");
            let next = line.front().map_or(NEVER, |&(at, _)| at);
            self.core.agenda.set(clock, next);
            self.on_decoded(slot);
        } else if clock == self.core.idle_clock() {
            self.core.agenda.set(clock, NEVER);
            self.core.is_idle = true;
            self.with_cache(Caching::sync_more);
            self.with_background(Background::start_background);
            self.with_power(Power::detect_when_idle);
        } else if clock == self.core.dram_clock() {
            self.with_cache(|cache, core, path| cache.on_dram(core, &mut path.host));
        } else if clock == self.core.power_clock() {
            self.on_power();
        } else {
            self.refreshing.refresh.on_clock(&mut self.core);
        }
        self.serve();
    }

    #[inline]
    fn on_die(&mut self, die: DieId) {
        let ended = self.core.device.on_clock(
            &mut self.core.pool,
            &mut self.core.agenda,
            &mut self.core.probe,
            self.core.now,
            die,
        );
        match ended {
            Ended::Nothing => return,
            Ended::Page(slot) => self.on_page_out(slot),
            Ended::Batch(first) => {
                let mut rest = Some(first);
                while let Some(slot) = rest {
                    rest = self.core.pool[slot].next;
                    let done = self.core.pool.remove(slot);
                    match (done.kind, done.owner) {
                        (Kind::Program | Kind::Copyback, _) => self.on_programmed(&done),
                        (Kind::Erase, Owner::Job(plane)) => self.on_erased(plane, &done),
                        _ => unreachable!("reads end page by page, and jobs erase"),
                    }
                }
            }
        }
        // What ended may have work for this die.
        self.serve();
        self.core.device.start_next(
            &mut self.core.pool,
            &mut self.core.agenda,
            &mut self.core.probe,
            self.core.now,
            die,
        );
    }

    #[inline]
    fn on_programmed(&mut self, done: &Transaction) {
        // One that ends the writing back of dirty pages is not measured yet.
        let is_measured = self.power.is_draining();
        self.core.stats.on_flash(done.kind, done.cause);
        match done.owner {
            Owner::Job(plane) if done.is_in_place() => {
                self.refreshing.refresh.on_reprogrammed(&mut self.core, done);
                self.on_copied(plane);
            }
            _ => self.on_page_programmed(done),
        }
        if self.power.stage != Stage::Charged {
            if is_measured {
                self.with_power(|power, core, cache, _, refreshing| {
                    power.on_program_in_detection(core, cache, refreshing, done);
                });
            }
            self.core.wake(Wake::Detection);
        }
    }

    #[inline]
    fn on_page_programmed(&mut self, done: &Transaction) {
        let block = self.core.geometry.block_of(done.ppn);
        if done.kind == Kind::Copyback {
            self.on_copied_back(done);
        }
        let mut programmed = self.core.array.program(block, u32::from(done.page));
        if done.skips > 0 {
            programmed = self.core.array.skip(block, u32::from(done.skips));
        }
        let is_closed = programmed == self.core.geometry.pages_per_block;
        if is_closed {
            self.core.ftl.close(&self.core.geometry, &mut self.core.array, block, self.core.now);
        }
        self.core.read_counts.reset(done.ppn);
        if let Some(partial) = &mut self.refreshing.partial {
            partial.on_programmed(&mut self.core, done);
        }
        if let Some(old) = done.replaces {
            self.on_page_gone(old);
            self.core.let_go(self.core.geometry.block_of(old));
        }
        match done.owner {
            Owner::Request(id) | Owner::Merge(id) => self.on_host_programmed(id, done),
            Owner::CachePage(slot) => {
                self.with_cache(|cache, core, path| cache.on_written_back(core, path, slot, done));
            }
            Owner::TranslationPage(page) => self.path.mapping.end_write_back(&mut self.core, page),
            Owner::Job(plane) => self.on_copied(plane),
            Owner::Rewrite(_) | Owner::Dummy => {
                self.power.on_rewritten(&mut self.core, &mut self.caching, &mut self.path, done);
            }
            // A line of the VSM has been dealt with, padding needs nothing, and power is on.
            Owner::CombinationPage | Owner::Padding | Owner::FlushPage(_) => {}
        }
        if is_closed {
            if let Some(partial) = &mut self.refreshing.partial {
                partial.look_at_free_blocks(&mut self.core);
            }
            self.core.wake(Wake::Space(self.core.geometry.plane_of(block)));
        }
        if self.refreshing.refresh.is_on() {
            if done.page == 0 {
                self.refreshing.refresh.age_from_now(&mut self.core, block);
            }
            if done.kind == Kind::Copyback
                && let Some(source) = done.replaces
            {
                let source = self.core.geometry.block_of(source);
                self.refreshing.refresh.age_as(&mut self.core, block, source);
            }
        }
    }

    /// The data of a page is elsewhere, or nowhere.
    #[inline]
    fn on_page_gone(&mut self, ppn: Ppn) {
        if let Some(cache) = &mut self.error_cache {
            cache.drop_page(&mut self.core.known, ppn);
        }
        if let Some(partial) = &mut self.refreshing.partial {
            partial.unlink_marked(&mut self.core, ppn);
        }
    }

    fn sample(&mut self, time: Time) {
        let Self { power, caching, core, .. } = self;
        let Core { stats, geometry, device, ftl, .. } = core;
        stats.sample(time, geometry, device, ftl, &|at| Self::cache_level(power, caching.as_ref(), at));
    }

    fn cache_level(power: &Power, caching: Option<&Caching>, at: Time) -> CacheLevel {
        let (dirty, budget) =
            caching.map_or((0, 0), |caching| (caching.cache.dirty_pages(), caching.cache.budget()));
        CacheLevel { dirty_pages: dirty, budget_pages: budget, capacitor_pages: power.capability_pages(at) }
    }

    /// Ends the statistics at the present time.
    pub fn finish_stats(&mut self) {
        let now = self.core.now;
        let Self { power, caching, core, .. } = self;
        let Core { stats, geometry, device, ftl, .. } = core;
        stats.finish(now, geometry, device, ftl, &|at| Self::cache_level(power, caching.as_ref(), at));
    }

    /// The drive-wide audit. With nothing under way it also checks that nothing is left over.
    ///
    /// # Errors
    /// The first thing that is wrong.
    pub fn audit(&self) -> Result<(), String> {
        self.core.ftl.audit(&self.core.geometry, &self.core.array)?;
        if let Some(caching) = &self.caching {
            caching.cache.audit()?;
        }
        if self.core.array.is_stamped() {
            for lpn in (0..self.core.geometry.logical_pages).map(Lpn) {
                let stamp =
                    self.core.ftl.map.get(lpn).map_or(Stamp::default(), |ppn| self.core.array.stamp(ppn));
                if stamp.sequence > self.core.sequence
                    || stamp.corrected > self.core.age_clock.at(self.core.now)
                {
                    return Err(format!("LPN {} has a stamp from the future: {stamp:?}", lpn.0));
                }
            }
        }
        let is_at_rest = self.is_at_rest();
        if let Some(partial) = &self.refreshing.partial {
            partial.audit(&self.core, is_at_rest)?;
        }
        if let Some(cache) = &self.error_cache {
            cache.audit(&self.core)?;
        }
        if is_at_rest {
            if let Some(block) = self.core.array.blocks.iter().position(|b| b.holds > 0) {
                return Err(format!("block {block} is held by an operation that is over"));
            }
            if self.path.writes.count > 0
                || !self.path.host.merging.is_empty()
                || !self.path.mapping.is_idle()
            {
                return Err("a write still waits though no request is outstanding".to_owned());
            }
            self.path.mapping.audit_at_rest(&self.core)?;
            if let Some(caching) = &self.caching {
                caching.audit_at_rest()?;
            }
            if self.path.host.flushes > 0 {
                return Err(format!("nothing is under way, and {} flushes wait", self.path.host.flushes));
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
