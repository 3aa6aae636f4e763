//! The backup capacitor that powers the drive when power fails: its state and energy, and the dirty budget derived from
//! them.
//!
//! C. Gao, L. Shi, Q. Li, K. Liu, C. J. Xue, J. Yang and Y. Zhang, "Aging capacitor supported cache management scheme
//! for solid-state drives", IEEE TCAD 39(10), 2020. `detection.rs` measures the capacitor in the running drive;
//! `power_loss/` has the emergency flush and the recovery.

mod ageing;
mod budget;
mod cost;
mod detection;
pub(crate) mod notes;
pub(crate) mod spec;
mod stats;
#[cfg(test)]
mod tests;

use crate::base::state::{state, value};
pub use ageing::Capacitor;
pub use budget::budget_share;
pub use cost::{Conditions, FlushCost, GcCost};
pub use spec::{BudgetSteps, CapacitorSpec, FlushMethod, FlushOrder};
pub use stats::{CapacitorSummary, Detection, DetectionSummary};

use crate::base::geometry::{CacheSlot, LaneId, Lpn};
use crate::base::units::{Span, Time};
use crate::core::{Component, Core, Mechanism, Offline, Skipped, State, Wake};
use crate::ftl::FlushPrograms;
use crate::probe::Probe;
use crate::sched::NEVER;

/// Access of budget detection to the mechanisms that the capacitor backs up: the write cache, the VSM of partial
/// refresh, and reprograms in place.
pub(crate) trait BackedSchemes<P: Probe> {
    /// Number of units of the write cache, or of the write buffer; 0 without either.
    fn cache_units(&self) -> u32;

    /// The dirty budget in units: `share` of the cache, or the whole cache under a sync policy without a budget; of a
    /// write buffer `share`, and at most the `saved` units that the full capacitor can save. `None` without cache and
    /// buffer.
    fn budget_units(&self, share: f64, saved: f64) -> Option<u32>;

    /// Whether the capability bounds the budget, as it does that of a write buffer.
    fn is_bounded(&self) -> bool;

    /// Sets the dirty budget, in units.
    fn set_budget(&mut self, core: &mut Core<P>, units: u32);

    /// Begins to write back all dirty units and the VSM.
    fn begin_sync(&mut self, core: &mut Core<P>);

    /// Whether all acknowledged data is in flash and the VSM is empty.
    fn is_synced(&self) -> bool;

    /// Takes the next clean unit of the cache, to program it once more; returns its slot, LPN and sequence number. The
    /// search looks at a bounded number of slots from `next_slot` on, and sets `next_slot` to where the next one
    /// begins. Only units of placement handle 0 and a reclaim group are taken.
    fn take_clean(
        &mut self,
        core: &mut Core<P>,
        next_slot: &mut u32,
        group: u16,
    ) -> Option<(CacheSlot, Lpn, u64)>;

    /// The program of a unit from [`BackedSchemes::take_clean`] has been queued.
    fn on_rewrite_queued(&mut self, core: &mut Core<P>, lpn: Lpn);

    /// The program of a unit from [`BackedSchemes::take_clean`] has ended.
    fn end_rewrite(&mut self, core: &mut Core<P>, slot: CacheSlot);

    /// Whether a unit is being reprogrammed in place.
    fn is_reprogramming(&self) -> bool;
}

/// The stage of a detection or recharge; the table at the top of `detection.rs` describes each stage.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Stage {
    Charged,
    Syncing,
    Draining,
    Settling,
    Recharging,
}

/// The share of the cache that may be dirty.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Budget {
    /// A fixed share, 0 to 1.
    Share(f64),
    /// The share that follows from the last detection.
    Measured,
}

/// The state of the capacitor.
#[derive(Clone, Copy, Debug)]
pub struct CapacitorState {
    /// `charged`, or the stage of a detection or a recharge: `syncing`, `draining`, `settling`, `recharging`.
    pub stage: &'static str,
    /// Energy that an emergency flush could use now, in joules.
    pub energy_j: f64,
    /// Energy of the full capacitor at its present age, in joules.
    pub energy_j_full: f64,
    /// Energy of the full capacitor when new, in joules.
    pub energy_j_rated: f64,
    /// Share of the rated capacitance that is lost, 0 to 1.
    pub loss_share: f64,
    /// Whether the capacitor has lost more than 30 % of its rated capacitance; then a measured budget is 0.
    pub is_worn_out: bool,
    /// Full discharges so far.
    pub cycles: u32,
}

/// The capacitor in the drive, with its detections and its power clock.
#[derive(Debug)]
pub(crate) struct PowerBackup {
    spec: CapacitorSpec,
    /// The detections so far.
    pub(crate) detections: Vec<Detection>,
    /// Whether detections set the budget.
    is_measured: bool,
    /// Programs that write a full VSM, which the capacitor backs up beside the write cache.
    vsm_programs: u32,
    /// If GC goes on during an emergency flush: energy of the try of a read and of an erase, in joules.
    pub(crate) gc_in_flush: Option<[f64; 2]>,
    pub(crate) capacitor: Option<Capacitor>,
    pub(crate) stage: Stage,
    /// Time of the injected power loss; [`NEVER`] without one.
    pub(crate) cut_at: Time,
    clock: Clock,
    /// Energy of an emergency flush by its number of programs.
    cost: FlushCost,
    /// Time when the next detection is due, or the end of its grace once the detection is due. [`NEVER`] if the budget
    /// is not measured.
    due: Time,
    /// Whether a detection is due and waits for an idle time.
    is_overdue: bool,
    /// Share of the cache that may be dirty while the capacitor is full.
    budget: f64,
    /// Whether the budget is 0 because a lane has too few free superblocks for a flush.
    wants_room: bool,
    /// Time when the recharge ends.
    recharged_at: Time,
    /// The detection under way.
    now: Detection,
    /// The result of a detection whose recharge has not ended; at its end the budget is set from this result.
    found: Option<Detection>,
    /// Number of programs under way at a time in an emergency flush.
    concurrency: u32,
    drain: Drain,
    guard: Guard,
}

/// The scaled clock, by which the capacitor ages.
#[derive(Clone, Copy, Debug)]
struct Clock {
    /// Seconds of the scaled clock per simulated nanosecond.
    seconds_per_ns: f64,
    /// Seconds of the scaled clock that fast-forward has skipped.
    skipped_s: f64,
}

/// The programs that drain the capacitor.
#[derive(Debug, Default)]
struct Drain {
    /// The units to which the emergency flush method would write, in order.
    units: Option<FlushPrograms>,
    /// By die: number of the detection's own programs under way.
    by_die: Box<[u32]>,
    /// Number of the detection's own programs under way, all dies together.
    under_way: u32,
    /// The cache slot at which the search for the next clean unit begins.
    next_slot: u32,
    /// Sum of the program times (tPROG) of all programs that ended while draining.
    program_ns: Span,
    /// Sum of the program, transfer and command times of all programs that ended while draining.
    with_transfers_ns: Span,
}

/// The programs that could still destroy older data if power loss tore them.
#[derive(Debug, Default)]
struct Guard {
    /// Programs with a lower number in the order of transactions than this may destroy older data if torn.
    from: u64,
    /// Number of lanes with a job whose programs may still destroy older data if torn.
    lanes_left: u32,
    /// By lane: whether no program queued from now on can destroy older data if torn.
    done: Box<[bool]>,
}

impl<P: Probe> Mechanism<P> for PowerBackup {
    fn began(&mut self, offline: &mut Offline<'_, P>) {
        self.set_clock(offline);
    }

    /// Drops the detection under way without a result.
    fn power_lost(&mut self, offline: &mut Offline<'_, P>) {
        self.enter_stage(offline, Stage::Charged);
        (self.now, self.found, self.drain.units) = (Detection::default(), None, None);
        (self.is_overdue, self.wants_room) = (false, false);
        self.drain.by_die.fill(0);
        (self.drain.under_way, self.guard.from, self.guard.lanes_left) = (0, 0, 0);
    }

    fn skipped(&mut self, _: &mut Offline<'_, P>, skipped: &Skipped<'_>) {
        self.skip(skipped.seconds);
    }
}

impl PowerBackup {
    /// `cut_at`: time of the injected power loss, if there is one; `vsm_programs`: programs that write a full VSM;
    /// `clock_scale`: speed of the scaled clock as a multiple of simulated time.
    pub(crate) fn new<P: Probe>(
        spec: &CapacitorSpec,
        budget: Budget,
        cut_at: Option<Time>,
        vsm_programs: u32,
        clock_scale: f64,
        core: &Core<P>,
    ) -> Self {
        let mut capacitor = Capacitor::new(spec);
        if let Some(capacitor) = &mut capacitor {
            // A program on every die: operations under way at power loss go on beside the flush.
            capacitor.load_w = spec.controller_w + f64::from(core.geometry().dies) * spec.program_w;
        }
        let is_measured = matches!(budget, Budget::Measured);
        let CapacitorSpec { flush, flush_concurrency, detect_every_ns, .. } = *spec;
        let (scale, dies) = (clock_scale, core.geometry().dies);
        Self {
            spec: spec.clone(),
            detections: Vec::new(),
            is_measured,
            vsm_programs,
            gc_in_flush: None,
            capacitor,
            stage: Stage::Charged,
            cut_at: cut_at.unwrap_or(NEVER),
            clock: Clock { seconds_per_ns: scale * 1e-9, skipped_s: 0.0 },
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
            concurrency: match flush {
                FlushMethod::Plain if flush_concurrency > 0 => flush_concurrency,
                _ => dies,
            },
            drain: Drain { by_die: vec![0; dies as usize].into(), ..Drain::default() },
            guard: Guard { done: vec![false; core.geometry().lanes as usize].into(), ..Guard::default() },
        }
    }

    #[inline(always)]
    pub(crate) fn is_draining(&self) -> bool {
        self.stage == Stage::Draining
    }

    /// Number of programs under way at a time in an emergency flush.
    pub(crate) fn concurrency(&self) -> u32 {
        self.concurrency
    }

    /// Whether operations under way end normally when power fails, and are not torn.
    pub(crate) fn finishes(&self) -> bool {
        self.capacitor.is_some() && self.stage != Stage::Recharging
    }

    /// The scaled clock, in seconds.
    pub(crate) fn age_s(&self, now: Time) -> f64 {
        now.ns() as f64 * self.clock.seconds_per_ns + self.clock.skipped_s
    }

    /// Converts a span of the scaled clock to simulated time.
    fn simulated(&self, span: Span) -> Span {
        Span::from_ns((span.ns() as f64 * 1e-9 / self.clock.seconds_per_ns) as u64)
    }

    /// Energy that an emergency flush could use now, in joules.
    pub(crate) fn energy_j(&self, now: Time) -> f64 {
        let Some(capacitor) = &self.capacitor else { return 0.0 };
        match self.stage {
            Stage::Charged | Stage::Syncing => capacitor.energy_j(self.age_s(now)),
            Stage::Draining => (capacitor.energy_j(self.age_s(now)) - self.drained_j(now)).max(0.0),
            Stage::Settling | Stage::Recharging => 0.0,
        }
    }

    /// Energy taken from the capacitor while draining, in joules. If more programs ran at a time than in a flush, the
    /// controller's time counts as the time that a flush would need for the same programs.
    fn drained_j(&self, now: Time) -> f64 {
        let Some(capacitor) = &self.capacitor else { return 0.0 };
        let elapsed = (now - self.now.drained_from).ns() as f64;
        let at_least = self.drain.with_transfers_ns.ns() as f64 / f64::from(self.concurrency);
        capacitor.spent_j(elapsed.max(at_least), self.drain.program_ns.ns() as f64)
    }

    /// Number of units that the full capacitor could save at time `at`; 0 without a capacitor.
    pub(crate) fn capability_units(&self, at: Time) -> f64 {
        self.capacitor.as_ref().map_or(0.0, |capacitor| self.cost.units(capacitor.energy_j(self.age_s(at))))
    }

    /// Time of the next power event: power loss, due detection, empty capacitor, or end of the recharge.
    fn next_event(&self, now: Time) -> Time {
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
        // An event that became due while power was off happens now.
        next.min(self.cut_at).max(now)
    }

    /// Skips `seconds` of the scaled clock, with the detections that would have taken place.
    fn skip(&mut self, seconds: f64) {
        let every_ns = self.spec.detect_every_ns;
        let detections = if self.is_measured { (seconds * 1e9 / every_ns.ns() as f64) as u32 } else { 0 };
        self.clock.skipped_s += seconds;
        if let Some(capacitor) = &mut self.capacitor {
            capacitor.cycle(detections);
        }
        if self.due != NEVER {
            self.due = self.due.earlier_by(Span::from_ns((seconds / self.clock.seconds_per_ns) as u64));
        }
    }

    /// Whether neither a detection nor a recharge is under way and no power loss is to come.
    pub(crate) fn is_idle(&self) -> bool {
        self.stage == Stage::Charged && self.cut_at == NEVER
    }

    /// The capacitor is empty: begins its recharge.
    pub(crate) fn begin_recharge<P: Probe>(&mut self, core: &mut Core<P>, recharge_ns: Span) {
        self.enter_stage(core, Stage::Recharging);
        self.recharged_at = core.now() + self.simulated(recharge_ns);
    }

    fn enter_stage<P: Probe>(&mut self, core: &mut Core<P>, stage: Stage) {
        self.stage = stage;
        core.set_state(State {
            is_charged: stage == Stage::Charged,
            is_syncing: stage == Stage::Syncing,
            is_draining: stage == Stage::Draining,
            is_guarded: matches!(stage, Stage::Settling | Stage::Recharging),
            ..*core.state()
        });
    }
}

impl PowerBackup {
    /// Computes the energy of a flush. If the budget is measured, sets the first budget, which follows from the
    /// capability at the start.
    pub(crate) fn begin<P: Probe>(&mut self, core: &mut Core<P>, backed: &mut impl BackedSchemes<P>) {
        if let Some(capacitor) = &mut self.capacitor {
            if let Some([read_j, erase_j]) = self.gc_in_flush {
                let (read_ns, erase_ns) = core.device().timing().shortest_read_and_erase_ns();
                let gc_w = (read_j / read_ns.seconds()).max(erase_j / erase_ns.seconds());
                let die_w = capacitor.program_w.max(gc_w);
                capacitor.load_w = capacitor.controller_w + f64::from(core.geometry().dies) * die_w;
            }
            let gc = self.gc_in_flush.map(|[read_j, erase_j]| GcCost {
                read_j,
                erase_j,
                levels: core.ecc().levels(),
                gain: core.garbage_per_superblock(),
            });
            let conditions = Conditions {
                method: self.spec.flush,
                at_a_time: self.concurrency,
                superblocks: core.ftl().flush_room_superblocks(),
                handles: core.placements().handles.into(),
                groups: core.placements().groups.into(),
                vsm_programs: self.vsm_programs,
                gc,
            };
            self.cost = FlushCost::new(capacitor, core.geometry(), core.device().timing(), &conditions);
        }
        if self.is_measured {
            let capacity = f64::from(backed.cache_units().max(1));
            self.set_measured_budget(core, backed, self.capability_units(core.now()) / capacity);
        }
        self.bound_budget(core, backed);
        self.set_clock(core);
    }

    /// Sets a budget that the capability bounds, by what the capacitor can save at its present age.
    pub(crate) fn bound_budget<P: Probe>(&mut self, core: &mut Core<P>, backed: &mut impl BackedSchemes<P>) {
        if backed.is_bounded() {
            self.restore_budget(core, backed);
        }
    }

    pub(crate) fn set_clock<P: Probe>(&mut self, core: &mut Core<P>) {
        let next = self.next_event(core.now());
        core.set_clock(core.power_clock(), next);
    }

    /// The power clock has expired.
    pub(crate) fn on_clock<P: Probe>(&mut self, core: &mut Core<P>, backed: &mut impl BackedSchemes<P>) {
        let _inside = core.enter(Component::Capacitor);
        match self.stage {
            Stage::Charged if core.state().is_idle || self.is_overdue => self.begin_detection(core, backed),
            Stage::Charged => {
                self.is_overdue = true;
                let grace = self.simulated(self.spec.detect_grace_ns);
                self.now.due = self.due;
                self.due += grace;
            }
            Stage::Draining => self.end_draining(core, backed),
            Stage::Recharging => self.end_recharge(core, backed),
            Stage::Syncing | Stage::Settling => {}
        }
        self.set_clock(core);
    }

    /// The drive has become idle: begins a detection that is due.
    pub(crate) fn detect_when_idle<P: Probe>(
        &mut self,
        core: &mut Core<P>,
        backed: &mut impl BackedSchemes<P>,
    ) {
        let _inside = core.enter(Component::Capacitor);
        if self.is_overdue && self.stage == Stage::Charged {
            self.begin_detection(core, backed);
            self.set_clock(core);
        }
    }

    /// A lane has got a free superblock: restores a budget that waited for free superblocks.
    pub(crate) fn on_room<P: Probe>(&mut self, core: &mut Core<P>, backed: &mut impl BackedSchemes<P>) {
        if self.wants_room {
            self.restore_budget(core, backed);
        }
    }

    /// Sets the budget of a capacitor that can save `measured`, a share of the cache.
    fn set_measured_budget<P: Probe>(
        &mut self,
        core: &mut Core<P>,
        backed: &mut impl BackedSchemes<P>,
        measured: f64,
    ) {
        let CapacitorSpec { steps, margin, .. } = self.spec;
        let at = self.age_s(core.now());
        let is_worn_out = self.capacitor.as_ref().is_none_or(|capacitor| capacitor.is_worn_out(at));
        self.budget = if is_worn_out { 0.0 } else { budget_share(steps, measured, margin) };
        self.restore_budget(core, backed);
    }

    /// Gives the cache its budget if every lane has the free superblocks that a flush needs; otherwise the budget is 0
    /// until every lane has them.
    pub(crate) fn restore_budget<P: Probe>(
        &mut self,
        core: &mut Core<P>,
        backed: &mut impl BackedSchemes<P>,
    ) {
        let saved = self.capacitor.as_ref().map_or(f64::INFINITY, |_| self.capability_units(core.now()));
        let units = backed.budget_units(self.budget, saved);
        let Some(units) = units.filter(|_| self.stage == Stage::Charged) else { return };
        let has_room = self.capacitor.is_none()
            || (0..core.geometry().lanes)
                .all(|lane| core.ftl().has_flush_reserve(LaneId(lane), core.superblocks_taken(LaneId(lane))));
        self.wants_room = !has_room;
        self.set_budget(core, backed, if has_room { units } else { 0 });
    }

    fn set_budget<P: Probe>(&mut self, core: &mut Core<P>, backed: &mut impl BackedSchemes<P>, units: u32) {
        if backed.cache_units() > 0 {
            backed.set_budget(core, units);
            core.wake(Wake::CacheRoom);
        }
    }
}

value! { Stage enum { Charged, Syncing, Draining, Settling, Recharging } }
value! { Clock { seconds_per_ns, skipped_s } }
value! { Drain { units, by_die, under_way, next_slot, program_ns, with_transfers_ns } }
value! { Guard { from, lanes_left, done } }
state! {
    PowerBackup {
        detections,
        stage,
        cut_at,
        clock,
        due,
        is_overdue,
        budget,
        wants_room,
        recharged_at,
        now,
        found,
        drain,
        guard,
    }
    parts { capacitor }
    fixed { spec, is_measured, vsm_programs, gc_in_flush, cost, concurrency }
}
