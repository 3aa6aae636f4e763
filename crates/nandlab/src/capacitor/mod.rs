//! What keeps the drive alive when power fails: the capacitor, its energy now, and the dirty budget that follows from it.
//!
//! C. Gao, L. Shi, Q. Li, K. Liu, C. J. Xue, J. Yang and Y. Zhang, "Aging capacitor supported cache management scheme for
//! solid-state drives", IEEE TCAD 39(10), 2020. `detection.rs` measures the capacitor in the running drive; `power_loss/`
//! flushes when power fails and starts again.

mod ageing;
mod budget;
mod cost;
mod detection;
pub(crate) mod notes;
pub(crate) mod spec;
mod stats;
#[cfg(test)]
mod tests;

pub use ageing::Capacitor;
pub use budget::budget_share;
pub use cost::FlushCost;
pub use spec::{BudgetSteps, CapacitorSpec, FlushMethod, FlushOrder};
pub use stats::Detection;

use crate::base::geometry::{CacheSlot, Geometry, Lpn, PlaneId};
use crate::base::units::{Span, Time};
use crate::core::{Core, Part, Wake};
use crate::ftl::FlushPages;
use crate::probe::Probe;
use crate::sched::NEVER;

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
pub(crate) struct PowerBackup {
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
    clock: Clock,
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
    concurrency: u32,
    drain: Drain,
    guard: Guard,
}

/// The scaled clock, as the capacitor ages by it.
#[derive(Clone, Copy, Debug)]
struct Clock {
    /// Seconds on it in a nanosecond.
    seconds_per_ns: f64,
    /// Seconds on it that were not simulated.
    skipped_s: f64,
}

/// What is written while the capacitor is drained.
#[derive(Debug, Default)]
struct Drain {
    pages: Option<FlushPages>,
    /// Pages being written once more, by die, and in all.
    rewriting: Box<[u32]>,
    rewritten: u32,
    next_slot: u32,
    /// Program times while draining, and times that these pages took on their dies.
    program_ns: Span,
    pages_ns: Span,
}

/// Which programs could still take older data with them.
#[derive(Debug, Default)]
struct Guard {
    /// Programs before this one, in the order of all, may tear others' data with them.
    from: u64,
    /// Planes whose job has to end before no program of theirs can take older data with it.
    planes_left: u32,
    /// By plane, whether they have.
    done: Box<[bool]>,
}

impl PowerBackup {
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
            drain: Drain { rewriting: vec![0; dies as usize].into(), ..Drain::default() },
            guard: Guard { done: vec![false; geometry.planes as usize].into(), ..Guard::default() },
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
        now.ns() as f64 * self.clock.seconds_per_ns + self.clock.skipped_s
    }

    /// So much of the scaled clock, in simulated time.
    fn simulated(&self, span: Span) -> Span {
        Span::from_ns((span.ns() as f64 * 1e-9 / self.clock.seconds_per_ns) as u64)
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
        let at_least = self.drain.pages_ns.ns() as f64 / f64::from(self.concurrency);
        capacitor.spent_j(elapsed.max(at_least), self.drain.program_ns.ns() as f64)
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
        self.clock.skipped_s += seconds;
        if let Some(capacitor) = &mut self.capacitor {
            capacitor.cycle(detections);
        }
        if self.due != NEVER {
            self.due = self.due.earlier_by(Span::from_ns((seconds / self.clock.seconds_per_ns) as u64));
        }
    }

    /// Whether only a detection or a power loss to come is left on the power clock.
    pub(crate) fn only_waits(&self) -> bool {
        self.stage == Stage::Charged && self.cut_at == NEVER
    }

    /// Power has failed: what was being measured has to be measured again.
    pub(crate) fn forget_detection<P: Probe>(&mut self, core: &mut Core<P>) {
        self.go_to(core, Stage::Charged);
        (self.now, self.found, self.drain.pages) = (Detection::default(), None, None);
        (self.is_overdue, self.wants_room) = (false, false);
        self.drain.rewriting.fill(0);
        (self.drain.rewritten, self.guard.from, self.guard.planes_left) = (0, 0, 0);
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

impl PowerBackup {
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

    /// A plane has got a free block: the budget may have waited for it.
    pub(crate) fn on_room<P: Probe>(&mut self, core: &mut Core<P>, kept: &mut impl Kept<P>) {
        if self.wants_room {
            self.restore_budget(core, kept);
        }
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
