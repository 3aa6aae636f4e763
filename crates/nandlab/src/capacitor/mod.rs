//! Dirty page budget detection (DPBD) in the running drive (aging-capacitor paper, Section IV-A).
//!
//! | stage | what happens | until |
//! |---|---|---|
//! | charged | the budget holds | a detection is due and the drive idle, a day later at the latest, or it is commanded |
//! | syncing | host writes go through to flash, dirty pages and the VSM are written back | flash has all that was acknowledged |
//! | draining | on the capacitor: clean pages are written once more, as the emergency flush would write them | it is empty |
//! | settling | operations under way end on the energy kept for them | no program can be torn that would take older data with it |
//! | recharging | host writes still go through | the capacitor is full |
//!
//! What is drained is what counts, not the number of pages alone: a page on a slow wordline, and one that GC moves
//! meanwhile, takes more of the capacitor than one on a fast wordline. So the time that the controller and the programs
//! have taken is turned into pages of a flush into the free blocks that the drive always keeps for one. (Pages alone, as
//! in the paper, promise too much under `csw`: the detection finds more fast pages than a power loss may.)
//!
//! While the capacitor is empty a power loss tears what is under way, and an MSB page takes its wordline's LSB page with
//! it. So before that, every stream fills the wordline it is in and goes over to LSB pages alone. A GC job keeps the pages
//! it has counted on: its stream goes over when it ends, and the capacitor counts as empty only then.

mod ageing;
mod budget;
mod cost;
pub(crate) mod notes;
pub(crate) mod spec;
mod stats;

pub use ageing::Capacitor;
pub use budget::budget_share;
pub use cost::FlushCost;
pub use spec::{BudgetSteps, CapacitorSpec, FlushMethod, FlushOrder};
pub use stats::Detection;

use crate::base::geometry::{BlockId, CacheSlot, DieId, Geometry, Lpn, PlaneId};
use crate::base::units::{Span, Time};
use crate::core::{Core, Maps, Part, Program, To, Wake};
use crate::flash::Stamp;
use crate::ftl::{FlushPages, Place, WriteStream};
use crate::probe::Probe;
use crate::sched::{Cause, Class, NEVER, Owner, Transaction};

/// What the capacitor keeps alive, as its detection sees it: the write cache, the VSM of partial refresh, programs in place.
pub(crate) trait Kept<P: Probe> {
    /// Pages of the write cache; 0 without one.
    fn cache_pages(&self) -> u32;

    /// The dirty pages that a budget of such a share of the cache allows; `None` without one.
    fn budget_pages(&self, share: f64) -> Option<u32>;

    /// Allows so many dirty pages.
    fn set_budget(&mut self, core: &mut Core<P>, pages: u32);

    /// Begins to bring all to flash that only RAM has.
    fn begin_sync(&mut self, core: &mut Core<P>);

    /// Whether flash has all that was acknowledged, and the VSM is empty.
    fn is_synced(&self) -> bool;

    /// A clean page of the cache that is written once more, from this slot on: its slot, LPN and sequence number.
    fn take_clean(&mut self, core: &mut Core<P>, from: CacheSlot) -> Option<(CacheSlot, Lpn, u64)>;

    /// Its program is queued, and ended.
    fn on_rewrite_queued(&mut self, core: &mut Core<P>, lpn: Lpn);
    /// See above.
    fn end_rewrite(&mut self, core: &mut Core<P>, slot: CacheSlot);

    /// Whether a page is being reprogrammed in place.
    fn is_reprogramming(&self) -> bool;
}

/// See the module.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Stage {
    Charged,
    Syncing,
    Draining,
    Settling,
    Recharging,
}

/// Which share of the cache may be dirty.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Budget {
    /// So large a one, 0 to 1.
    Share(f64),
    /// What a detection finds.
    Measured,
}

/// How the capacitor is.
#[derive(Clone, Copy, Debug)]
pub struct CapacitorState {
    /// `charged`, or where a detection or a recharge is: `syncing`, `draining`, `settling`, `recharging`.
    pub stage: &'static str,
    /// What an emergency flush could use now, in joules.
    pub energy_j: f64,
    /// What it holds when full, in joules.
    pub energy_j_full: f64,
    /// What it held when new, in joules.
    pub energy_j_rated: f64,
    /// Share of the rated capacitance that is lost, 0 to 1.
    pub loss_share: f64,
    /// Whether so much is lost that nothing may count on it.
    pub is_worn_out: bool,
    /// Full discharges so far.
    pub cycles: u32,
}

/// The capacitor in the drive.
#[derive(Debug)]
pub(crate) struct Power {
    spec: CapacitorSpec,
    /// The detections so far.
    pub(crate) detections: Vec<Detection>,
    /// A detection sets the budget.
    is_measured: bool,
    /// Pages of the VSM, which the capacitor keeps too.
    vsm_pages: u32,
    pub(crate) capacitor: Option<Capacitor>,
    pub(crate) stage: Stage,
    pub(crate) cut_at: Time,
    pub(crate) is_off: bool,
    /// Blocks whose erase power loss has interrupted, until power is back.
    pub(crate) torn_erases: Vec<BlockId>,
    /// Seconds on the scaled clock in a nanosecond.
    seconds_per_ns: f64,
    /// Seconds on the scaled clock that were not simulated.
    skipped_s: f64,
    /// What the pages of an emergency flush take.
    cost: FlushCost,
    /// When the next detection is due; [`NEVER`] when nothing asks for one.
    due: Time,
    /// It is due and waits for an idle time.
    is_overdue: bool,
    /// Share of the cache that may be dirty while the capacitor is full.
    budget: f64,
    /// The budget waits for free blocks that a flush could use.
    wants_room: bool,
    recharged_at: Time,
    /// The detection under way.
    now: Detection,
    /// What it has found; the budget follows from it once the capacitor is full again.
    found: Option<Detection>,
    pages: Option<FlushPages>,
    concurrency: u32,
    /// Pages being written once more, by die.
    rewriting: Box<[u32]>,
    rewritten: u32,
    next_slot: CacheSlot,
    /// Program times while draining, and times that these pages took on their dies.
    program_ns: Span,
    pages_ns: Span,
    /// Programs before this one, in the order of all, may tear others' data with them.
    guarded_from: u64,
    /// Planes whose job has to end before no program of theirs can take older data with it.
    planes_to_guard: u32,
    /// By plane, whether they have.
    guarded: Box<[bool]>,
}

impl Power {
    /// `cut_at` is when power fails, if it does; `vsm_pages` those of partial refresh; `clock_scale` how many times as fast
    /// as simulated time the scaled clock runs.
    pub(crate) fn new(
        spec: &CapacitorSpec,
        budget: Budget,
        cut_at: Option<Time>,
        vsm_pages: u32,
        clock_scale: f64,
        geometry: &Geometry,
    ) -> Self {
        let capacitor = Capacitor::new(spec);
        let is_measured = matches!(budget, Budget::Measured);
        let CapacitorSpec { flush, flush_concurrency, detect_every_ns, .. } = *spec;
        let (scale, dies) = (clock_scale, geometry.dies);
        Self {
            spec: spec.clone(),
            detections: Vec::new(),
            is_measured,
            vsm_pages,
            capacitor,
            stage: Stage::Charged,
            cut_at: cut_at.unwrap_or(NEVER),
            is_off: false,
            torn_erases: Vec::new(),
            seconds_per_ns: scale * 1e-9,
            skipped_s: 0.0,
            cost: FlushCost::default(),
            due: if is_measured {
                Time::from_ns((detect_every_ns.ns() as f64 / scale) as u64)
            } else {
                NEVER
            },
            is_overdue: false,
            budget: match budget {
                Budget::Share(share) => share,
                Budget::Measured => 0.0,
            },
            wants_room: false,
            recharged_at: Time::START,
            now: Detection::default(),
            found: None,
            pages: None,
            concurrency: match flush {
                FlushMethod::Plain if flush_concurrency > 0 => flush_concurrency,
                _ => dies,
            },
            rewriting: vec![0; dies as usize].into(),
            rewritten: 0,
            next_slot: CacheSlot(0),
            program_ns: Span::ZERO,
            pages_ns: Span::ZERO,
            guarded_from: 0,
            planes_to_guard: 0,
            guarded: vec![false; geometry.planes as usize].into(),
        }
    }

    #[inline(always)]
    pub(crate) fn is_draining(&self) -> bool {
        self.stage == Stage::Draining
    }

    /// Programs under way at a time in an emergency flush.
    pub(crate) fn concurrency(&self) -> u32 {
        self.concurrency
    }

    /// Whether what is under way ends when power fails.
    pub(crate) fn finishes(&self) -> bool {
        self.capacitor.is_some() && self.stage != Stage::Recharging
    }

    /// Seconds on the scaled clock.
    pub(crate) fn age_s(&self, now: Time) -> f64 {
        now.ns() as f64 * self.seconds_per_ns + self.skipped_s
    }

    /// So much of the scaled clock, in simulated time.
    fn simulated(&self, span: Span) -> Span {
        Span::from_ns((span.ns() as f64 * 1e-9 / self.seconds_per_ns) as u64)
    }

    /// What an emergency flush could use now, in joules.
    pub(crate) fn energy_j(&self, now: Time) -> f64 {
        let Some(capacitor) = &self.capacitor else { return 0.0 };
        match self.stage {
            Stage::Charged | Stage::Syncing => capacitor.energy_j(self.age_s(now)),
            Stage::Draining => (capacitor.energy_j(self.age_s(now)) - self.drained_j(now)).max(0.0),
            Stage::Settling | Stage::Recharging => 0.0,
        }
    }

    /// What has been taken from the capacitor while draining. A flush would not write more pages at a time than its method
    /// does, so the controller's time counts as though nothing had.
    fn drained_j(&self, now: Time) -> f64 {
        let Some(capacitor) = &self.capacitor else { return 0.0 };
        let elapsed = (now - self.now.drained_from).ns() as f64;
        let at_least = self.pages_ns.ns() as f64 / f64::from(self.concurrency);
        capacitor.spent_j(elapsed.max(at_least), self.program_ns.ns() as f64)
    }

    /// Pages that it could save at this time when full; 0 without a capacitor.
    pub(crate) fn capability_pages(&self, at: Time) -> f64 {
        self.capacitor.as_ref().map_or(0.0, |capacitor| self.cost.pages(capacitor.energy_j(self.age_s(at))))
    }

    /// When something happens of itself.
    fn next(&self, now: Time) -> Time {
        let next = match self.stage {
            Stage::Charged => self.due,
            Stage::Syncing | Stage::Settling => NEVER,
            Stage::Draining => {
                let watts = self.capacitor.as_ref().map_or(1.0, |capacitor| capacitor.controller_w);
                let left_ns = self.energy_j(now) / watts.max(1e-9) * 1e9;
                now.saturating_add(Span::from_ns(libm::ceil(left_ns) as u64))
            }
            Stage::Recharging => self.recharged_at,
        };
        // What was due while power was off is due now.
        next.min(self.cut_at).max(now)
    }

    /// So many seconds of the scaled clock have passed without being simulated, with so many detections.
    pub(crate) fn skip(&mut self, seconds: f64, detections: u32) {
        self.skipped_s += seconds;
        if let Some(capacitor) = &mut self.capacitor {
            capacitor.cycle(detections);
        }
        if self.due != NEVER {
            self.due = self.due.earlier_by(Span::from_ns((seconds / self.seconds_per_ns) as u64));
        }
    }

    /// Whether only a detection or a power loss to come is left on the power clock.
    pub(crate) fn only_waits(&self) -> bool {
        self.stage == Stage::Charged && self.cut_at == NEVER
    }

    /// Power has failed: what was being measured has to be measured again.
    pub(crate) fn forget_detection<P: Probe>(&mut self, core: &mut Core<P>) {
        self.go_to(core, Stage::Charged);
        (self.now, self.found, self.pages) = (Detection::default(), None, None);
        (self.is_overdue, self.wants_room) = (false, false);
        self.rewriting.fill(0);
        (self.rewritten, self.guarded_from, self.planes_to_guard) = (0, 0, 0);
    }

    /// The capacitor is empty until it has been recharged.
    pub(crate) fn begin_recharge<P: Probe>(&mut self, core: &mut Core<P>, recharge_ns: Span) {
        self.go_to(core, Stage::Recharging);
        self.recharged_at = core.now + self.simulated(recharge_ns);
    }

    fn go_to<P: Probe>(&mut self, core: &mut Core<P>, stage: Stage) {
        self.stage = stage;
        core.state.is_charged = stage == Stage::Charged;
        core.state.is_syncing = stage == Stage::Syncing;
        core.state.is_draining = stage == Stage::Draining;
        core.state.is_guarded = matches!(stage, Stage::Settling | Stage::Recharging);
    }
}

impl Power {
    /// The budget that the drive begins with, as though it had just been measured.
    pub(crate) fn begin<P: Probe>(&mut self, core: &mut Core<P>, kept: &mut impl Kept<P>) {
        if let Some(capacitor) = &self.capacitor {
            self.cost = FlushCost::new(
                self.spec.flush,
                capacitor,
                &core.geometry,
                core.device.timing(),
                self.concurrency,
                core.ftl.flush_room_blocks(),
                self.vsm_pages,
            );
        }
        if self.is_measured {
            let capacity = f64::from(kept.cache_pages().max(1));
            self.set_measured_budget(core, kept, self.capability_pages(core.now) / capacity);
        }
        self.set_clock(core);
    }

    pub(crate) fn set_clock<P: Probe>(&mut self, core: &mut Core<P>) {
        let next = self.next(core.now);
        core.set_clock(core.power_clock(), next);
    }

    /// The power clock has struck.
    pub(crate) fn on_clock<P: Probe>(&mut self, core: &mut Core<P>, kept: &mut impl Kept<P>) {
        let _inside = core.inside.enter(Part::Capacitor);
        match self.stage {
            Stage::Charged if core.state.is_idle || self.is_overdue => self.begin_detection(core, kept),
            Stage::Charged => {
                self.is_overdue = true;
                let grace = self.simulated(self.spec.detect_grace_ns);
                self.now.due = self.due;
                self.due += grace;
            }
            Stage::Draining => self.end_draining(core, kept),
            Stage::Recharging => self.end_recharge(core, kept),
            Stage::Syncing | Stage::Settling => {}
        }
        self.set_clock(core);
    }

    /// The drive has become idle.
    pub(crate) fn detect_when_idle<P: Probe>(&mut self, core: &mut Core<P>, kept: &mut impl Kept<P>) {
        let _inside = core.inside.enter(Part::Capacitor);
        if self.is_overdue && self.stage == Stage::Charged {
            self.begin_detection(core, kept);
            self.set_clock(core);
        }
    }

    pub(crate) fn begin_detection<P: Probe>(&mut self, core: &mut Core<P>, kept: &mut impl Kept<P>) {
        let due = if self.is_overdue { self.now.due } else { core.now.min(self.due) };
        self.now = Detection { due, began: core.now, ..Detection::default() };
        self.is_overdue = false;
        self.wants_room = false;
        self.go_to(core, Stage::Syncing);
        self.set_budget(core, kept, 0);
        kept.begin_sync(core);
        core.wake(Wake::Detection);
    }

    /// Goes on to the next stage, if this one is over.
    #[inline]
    pub(crate) fn go_on<P: Probe>(&mut self, core: &mut Core<P>, kept: &mut impl Kept<P>) {
        let _inside = core.inside.enter(Part::Capacitor);
        match self.stage {
            Stage::Charged | Stage::Recharging => {}
            Stage::Draining => self.rewrite_more(core, kept),
            Stage::Syncing => {
                if kept.is_synced() {
                    self.begin_draining(core, kept);
                }
            }
            Stage::Settling => self.settle(core, kept),
        }
    }

    fn begin_draining<P: Probe>(&mut self, core: &mut Core<P>, kept: &mut impl Kept<P>) {
        let pages = kept.cache_pages();
        self.go_to(core, Stage::Draining);
        core.room.has_displaced |= core.ftl.allocator.is_static();
        self.now.drained_from = core.now;
        self.now.energy_j = self.capacitor.as_ref().map_or(0.0, |c| c.energy_j(self.age_s(core.now)));
        (self.program_ns, self.pages_ns) = (Span::ZERO, Span::ZERO);
        self.pages = Some(FlushPages::new(self.spec.flush, &core.geometry, &core.ftl, pages));
        self.next_slot = CacheSlot(0);
        self.rewrite_more(core, kept);
        self.set_clock(core);
    }

    /// Keeps as many pages under way as the emergency flush would.
    fn rewrite_more<P: Probe>(&mut self, core: &mut Core<P>, kept: &mut impl Kept<P>) {
        while self.is_draining() && self.rewritten < self.concurrency {
            let Core { geometry, array, ftl, .. } = core;
            let Some(pages) = &mut self.pages else { return };
            let rewriting = &self.rewriting;
            let place = pages.next(geometry, array, ftl, |die: DieId| rewriting[die.index()] > 0);
            match place {
                Some(place) => self.rewrite(core, kept, place),
                // GC makes room for a plain one.
                None if self.spec.flush == FlushMethod::Plain || self.rewritten > 0 => return,
                None => {
                    self.end_draining(core, kept);
                    self.set_clock(core);
                }
            }
        }
    }

    /// Writes a clean page of the cache once more, or nothing at all when there is none.
    fn rewrite<P: Probe>(&mut self, core: &mut Core<P>, kept: &mut impl Kept<P>, place: Place) {
        let die = core.geometry.die_of(core.geometry.plane_of(core.geometry.block_of(place.ppn)));
        let (to, cause, class) = (To::Place(place), Cause::Flush, Class::HostWrite);
        let program = match kept.take_clean(core, self.next_slot) {
            None => Program::nothing(to, Owner::Dummy, cause, class),
            Some((slot, lpn, sequence)) => {
                self.next_slot = CacheSlot(slot.0 + 1);
                let stamp = Stamp { sequence, corrected: core.moment() };
                Program { to, lpn, stamp, maps: Maps::Now, owner: Owner::Rewrite(slot), cause, class }
            }
        };
        core.program(program).expect("it has its place");
        if let Owner::Rewrite(_) = program.owner {
            kept.on_rewrite_queued(core, program.lpn);
        }
        self.rewriting[die.index()] += 1;
        self.rewritten += 1;
    }

    /// A program has ended while the capacitor is measured.
    #[cold]
    pub(crate) fn on_program_in_detection<P: Probe>(
        &mut self,
        core: &mut Core<P>,
        kept: &mut impl Kept<P>,
        done: &Transaction,
    ) {
        let _inside = core.inside.enter(Part::Capacitor);
        if self.is_draining() {
            let timing = core.device.timing();
            let program_ns = timing.program_ns(u32::from(done.page));
            self.program_ns += program_ns;
            self.pages_ns += program_ns + timing.transfer_ns + timing.command.program_ns;
            // A flush would not have begun what the energy did not cover to its end.
            let is_covered = self.energy_j(core.now) > 0.0;
            let is_host = matches!(done.cause, Cause::Host | Cause::Sync);
            if is_covered && (is_host || done.cause == Cause::Flush) {
                self.now.pages += 1;
                self.now.host_pages += u32::from(is_host);
            }
            // More than twice the cache tells nothing more.
            let measured = self.cost.pages(self.drained_j(core.now));
            let is_plenty = measured >= 2.0 * f64::from(kept.cache_pages());
            if is_plenty || !is_covered {
                self.end_draining(core, kept);
            }
            self.set_clock(core);
        }
    }

    /// A page of a detection has been programmed.
    pub(crate) fn on_rewritten<P: Probe>(
        &mut self,
        core: &mut Core<P>,
        kept: &mut impl Kept<P>,
        done: &Transaction,
    ) {
        let rewritten = match done.owner {
            Owner::Rewrite(slot) => Some(slot),
            Owner::Dummy => None,
            _ => return,
        };
        self.rewriting[done.die.index()] -= 1;
        self.rewritten -= 1;
        if let Some(slot) = rewritten {
            if P::STAMPED {
                core.probe.on_write_safe(done.lpn, core.array.stamp(done.ppn).sequence);
            }
            kept.end_rewrite(core, slot);
        }
    }

    /// The capacitor is empty but for what is kept for the operations under way.
    fn end_draining<P: Probe>(&mut self, core: &mut Core<P>, kept: &mut impl Kept<P>) {
        // The last program may have been begun with less than it takes.
        let drained_j = self.drained_j(core.now).min(self.now.energy_j);
        let measured_pages = self.cost.pages(drained_j);
        let capacity = kept.cache_pages();
        let detection = &mut self.now;
        detection.empty = core.now;
        detection.drained_j = drained_j;
        detection.measured = measured_pages / f64::from(capacity.max(1));
        self.found = Some(*detection);
        self.go_to(core, Stage::Settling);
        core.look_for_dead();
        self.planes_to_guard = 0;
        self.guarded_from = 0;
        if core.geometry.cell == crate::base::geometry::Cell::Mlc {
            for plane in (0..core.geometry.planes).map(PlaneId) {
                self.guard(core, plane);
            }
        }
        for plane in (0..core.geometry.planes).map(PlaneId) {
            core.wake(Wake::Space(plane));
        }
        self.settle(core, kept);
    }

    /// From here on no program of a plane takes older data with it if it is torn: the host's stream uses LSB pages alone,
    /// all others go on with a new wordline; those that its job may need, when that is over.
    fn guard<P: Probe>(&mut self, core: &mut Core<P>, plane: PlaneId) {
        let has_job = core.has_job(plane);
        self.planes_to_guard += u32::from(has_job);
        self.guarded[plane.index()] = !has_job;
        for stream in WriteStream::all() {
            if !has_job || stream == WriteStream::Host {
                self.pad(core, plane, stream);
            }
        }
        core.ftl.set_lsb_only(&core.geometry, plane, WriteStream::Host, true);
        self.guarded_from = core.pool.next_order();
    }

    /// Fills the wordline that a stream is in.
    fn pad<P: Probe>(&mut self, core: &mut Core<P>, plane: PlaneId, stream: WriteStream) {
        if !core.ftl.is_amid_wordline(&core.geometry, plane, stream) {
            return;
        }
        // As all of its stream, so that the block's pages stay in order.
        let class = match stream {
            WriteStream::Host | WriteStream::Mapping => Class::HostWrite,
            WriteStream::Gc | WriteStream::Wear | WriteStream::Combination | WriteStream::Copyback(_) => {
                Class::Background
            }
        };
        let to = To::Stream(plane, stream);
        let padding = Program::nothing(to, Owner::Padding, Cause::Flush, class);
        core.program(padding).expect("its block has a page left");
    }

    /// A plane's job is over.
    #[inline]
    pub(crate) fn on_job_over<P: Probe>(
        &mut self,
        core: &mut Core<P>,
        kept: &mut impl Kept<P>,
        plane: PlaneId,
    ) {
        let _inside = core.inside.enter(Part::Capacitor);
        if self.planes_to_guard > 0 && self.stage == Stage::Settling {
            // Jobs that begin later begin with whole wordlines, and end with them.
            if !self.guarded[plane.index()] {
                self.planes_to_guard -= 1;
                self.guard(core, plane);
                self.settle(core, kept);
            }
        }
        self.on_room(core, kept);
    }

    /// A plane has got a free block: the budget may have waited for it.
    pub(crate) fn on_room<P: Probe>(&mut self, core: &mut Core<P>, kept: &mut impl Kept<P>) {
        if self.wants_room {
            self.restore_budget(core, kept);
        }
    }

    /// Once nothing is left that could tear older data, the capacitor may be empty.
    fn settle<P: Probe>(&mut self, core: &mut Core<P>, kept: &mut impl Kept<P>) {
        if self.rewritten > 0 || kept.is_reprogramming() {
            return;
        }
        if let Some(pages) = self.pages.take()
            && self.spec.flush == FlushMethod::Csw
        {
            for block in pages.unfilled(core.geometry.pages_per_block) {
                core.close_early(block);
            }
        }
        let is_guarded = !core.device.has_program_before(&core.pool, self.guarded_from);
        if !is_guarded || self.planes_to_guard > 0 {
            return;
        }
        let capacitor = self.capacitor.as_mut().expect("only a capacitor is measured");
        capacitor.cycle(1);
        let recharge_ns = self.spec.recharge_ns;
        self.begin_recharge(core, recharge_ns);
        self.set_clock(core);
    }

    /// The capacitor is full again.
    fn end_recharge<P: Probe>(&mut self, core: &mut Core<P>, kept: &mut impl Kept<P>) {
        self.go_to(core, Stage::Charged);
        for plane in (0..core.geometry.planes).map(PlaneId) {
            core.ftl.set_lsb_only(&core.geometry, plane, WriteStream::Host, false);
        }
        if let Some(detection) = self.found.take() {
            if self.is_measured {
                self.set_measured_budget(core, kept, detection.measured);
                self.due = core.now + self.simulated(self.spec.detect_every_ns);
            }
            let (budget, recharged) = (self.budget, core.now);
            self.detections.push(Detection { budget, recharged, ..detection });
        }
        self.restore_budget(core, kept);
        for plane in (0..core.geometry.planes).map(PlaneId) {
            core.wake(Wake::Space(plane));
        }
        core.wake(Wake::CacheRoom);
        self.set_clock(core);
    }

    /// The budget of a capacitor that has been seen to save such a share of the cache.
    fn set_measured_budget<P: Probe>(&mut self, core: &mut Core<P>, kept: &mut impl Kept<P>, measured: f64) {
        let CapacitorSpec { steps, margin, .. } = self.spec;
        let at = self.age_s(core.now);
        let is_worn_out = self.capacitor.as_ref().is_none_or(|capacitor| capacitor.is_worn_out(at));
        self.budget = if is_worn_out { 0.0 } else { budget_share(steps, measured, margin) };
        self.restore_budget(core, kept);
    }

    /// Lets the cache have its budget, once a flush would find the room for it.
    pub(crate) fn restore_budget<P: Probe>(&mut self, core: &mut Core<P>, kept: &mut impl Kept<P>) {
        let Some(pages) = kept.budget_pages(self.budget).filter(|_| self.stage == Stage::Charged) else {
            return;
        };
        let has_room = self.capacitor.is_none()
            || (0..core.geometry.planes).all(|plane| {
                core.ftl.has_flush_reserve(PlaneId(plane), core.room.works[plane as usize].blocks_taken)
            });
        self.wants_room = !has_room;
        self.set_budget(core, kept, if has_room { pages } else { 0 });
    }

    fn set_budget<P: Probe>(&mut self, core: &mut Core<P>, kept: &mut impl Kept<P>, pages: u32) {
        if kept.cache_pages() > 0 {
            kept.set_budget(core, pages);
            core.wake(Wake::CacheRoom);
        }
    }
}
