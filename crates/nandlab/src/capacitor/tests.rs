//! The capacitor and its detection on a bare core, with a write cache of ten units.
//!
//! The controller draws 1 W and a program 0.5 W. A unit of a flush takes 210 us with its transfer, of which 200 us are
//! tPROG: 1 W x 210 us + 0.5 W x 200 us = 310 uJ. A flush takes 1210 uJ beside its units, because the controller may
//! have to wait 1210 us for an erase (1 ms), a program (200 us) and a transfer (10 us).

use super::*;
use crate::base::geometry::Cell;
use crate::base::geometry::DieId;
use crate::base::geometry::SuperblockId;
use crate::base::units::{SECOND, US};
use crate::core::testing::{Event, LANE, Setup, clear, fill, next};
use crate::flash::SuperblockState;
use crate::ftl::StreamId;
use crate::probe::NoProbe;
use crate::sched::Cause;
use crate::sched::FlashOp;

const UNIT_UJ: f64 = 310.0;
const FIXED_UJ: f64 = 1210.0;
const CACHE_UNITS: u32 = 10;

/// A stand-in for the mechanisms that the capacitor backs up; the test sets its state.
#[derive(Debug, Default)]
struct Cache {
    /// The budgets set so far.
    budgets: Vec<u32>,
    syncs: u32,
    is_synced: bool,
    /// Number of clean units; their LPNs count from 0.
    clean: u32,
    rewritten: Vec<u32>,
    is_reprogramming: bool,
}

impl BackedSchemes<NoProbe> for Cache {
    fn cache_units(&self) -> u32 {
        CACHE_UNITS
    }

    fn is_bounded(&self) -> bool {
        false
    }

    fn budget_units(&self, share: f64, _saved: f64) -> Option<u32> {
        Some((share * f64::from(CACHE_UNITS) + 1e-9) as u32)
    }

    fn set_budget(&mut self, _: &mut Core<NoProbe>, units: u32) {
        self.budgets.push(units);
    }

    fn begin_sync(&mut self, _: &mut Core<NoProbe>) {
        self.syncs += 1;
    }

    fn is_synced(&self) -> bool {
        self.is_synced
    }

    fn take_clean(&mut self, _: &mut Core<NoProbe>, next: &mut u32, _: u16) -> Option<(CacheSlot, Lpn, u64)> {
        let slot = next.checked_rem(self.clean)?;
        *next = slot + 1;
        Some((CacheSlot(slot), Lpn(slot), 1))
    }

    fn on_rewrite_queued(&mut self, _: &mut Core<NoProbe>, _: Lpn) {}

    fn end_rewrite(&mut self, _: &mut Core<NoProbe>, slot: CacheSlot) {
        self.rewritten.push(slot.0);
    }

    fn is_reprogramming(&self) -> bool {
        self.is_reprogramming
    }
}

struct Bench {
    core: Core<NoProbe>,
    power: PowerBackup,
    cache: Cache,
    /// The stages reached so far, each with its time in microseconds.
    stages: Vec<(Stage, u64)>,
}

fn setup() -> Setup {
    let flushed_units = Some(CACHE_UNITS.into());
    Setup { superblocks: 16, units: 8, logical_units: 64, flushed_units, ..Setup::default() }
}

impl Bench {
    /// A bench with a capacitor that can save `units` units.
    fn new(setup: &Setup, units: f64) -> Self {
        let spec = CapacitorSpec {
            // Eq. 1 with 5 V and 3 V: 0.5 x C x (25 - 9) V^2.
            capacitance_f: (FIXED_UJ + units * UNIT_UJ) * 1e-6 / 8.0,
            voltage_v: 5.0,
            voltage_min_v: 3.0,
            esr_ohm: 0.0,
            efficiency: 1.0,
            temperature: vec![(Span::ZERO, 25.0)],
            age_ns: Span::ZERO,
            controller_w: 1.0,
            program_w: 0.5,
            detect_every_ns: 20 * SECOND,
            detect_grace_ns: 5 * SECOND,
            recharge_ns: 10 * SECOND,
            margin: 0.1,
            steps: BudgetSteps::Five,
            flush: FlushMethod::Plain,
            flush_concurrency: 0,
            flush_order: FlushOrder::Oldest,
            metadata_bytes: 0,
        };
        let core = setup.core();
        let power = PowerBackup::new(&spec, Budget::Measured, None, 0, 1.0, &core);
        let cache = Cache { clean: 4, ..Cache::default() };
        Self { core, power, cache, stages: Vec::new() }
    }

    fn begin(&mut self) {
        self.power.begin(&mut self.core, &mut self.cache);
    }

    fn detect(&mut self) {
        self.power.begin_detection(&mut self.core, &mut self.cache);
    }

    fn energy_uj(&self) -> f64 {
        self.power.energy_j(self.core.now()) * 1e6
    }

    /// Serves events until a stage is reached, or no event is left.
    fn run_to(&mut self, stage: Stage) {
        while self.power.stage != stage {
            let Some(event) = next(&mut self.core) else { return };
            self.serve(event);
        }
    }

    fn serve(&mut self, event: Event) {
        let Self { core, power, cache, stages } = self;
        let before = power.stage;
        match event {
            Event::Clock(clock) => {
                assert_eq!(clock, core.power_clock());
                power.on_clock(core, cache);
            }
            Event::Ended(done) => {
                let is_measured = power.is_draining();
                power.on_rewritten(core, cache, &done);
                if is_measured {
                    power.on_program_in_detection(core, cache, &done);
                }
                core.wake(Wake::Detection);
            }
            Event::Wake(Wake::Detection) => power.advance(core, cache),
            Event::Wake(Wake::Space(_) | Wake::CacheRoom | Wake::Dead(_)) => {}
            other => unreachable!("{other:?}"),
        }
        if power.stage != before {
            stages.push((power.stage, (core.now() - Time::START) / US));
        }
    }
}

#[test]
fn a_detection_syncs_drains_settles_and_recharges() {
    let mut bench = Bench::new(&setup(), 9.5);
    bench.begin();
    bench.detect();
    assert_eq!((bench.power.stage, bench.cache.syncs), (Stage::Syncing, 1));
    assert_eq!(bench.cache.budgets.last(), Some(&0), "host writes are write-through");
    bench.run_to(Stage::Charged);
    assert!(bench.stages.is_empty() && bench.core.state().is_syncing, "a unit is still unflushed");
    bench.cache.is_synced = true;
    bench.core.advance_to(Time::START + SECOND);
    bench.core.wake(Wake::Detection);
    bench.run_to(Stage::Charged);
    // The capacitor has 1210 + 9.5 x 310 = 4155 uJ. 13 units take 4030 uJ in 2730 us, and the controller takes the
    // remaining 125 uJ in 125 us. The 14th unit ends on energy reserved for operations under way.
    let s = 1_000_000;
    assert_eq!(
        bench.stages,
        [
            (Stage::Draining, s),
            (Stage::Settling, s + 13 * 210 + 125),
            (Stage::Recharging, s + 14 * 210),
            (Stage::Charged, 11 * s + 14 * 210),
        ]
    );
    assert_eq!(bench.core.operations().0[FlashOp::Program as usize][Cause::Flush as usize], 14);
    assert_eq!(
        bench.cache.rewritten[..6],
        [0, 1, 2, 3, 0, 1],
        "the four clean units are not programmed in turn"
    );
    assert_eq!(bench.power.capacitor.as_ref().unwrap().cycles(), 1);
}

#[test]
fn drained_energy_is_measured_in_units_of_a_flush() {
    for clean in [4, 0] {
        let mut bench = Bench::new(&setup(), 9.5);
        bench.cache = Cache { clean, is_synced: true, ..Cache::default() };
        bench.begin();
        bench.detect();
        bench.run_to(Stage::Charged);
        let [detection] = bench.power.detections[..] else { panic!("expected one detection") };
        let Detection { energy_j, drained_j, measured, budget, pages: programs, .. } = detection;
        assert!((energy_j * 1e6 - 4155.0).abs() < 1e-3 && (drained_j / energy_j - 1.0).abs() < 1e-3);
        assert!((measured - 0.95).abs() < 1e-3, "{measured}");
        assert_eq!((programs, detection.host_pages), (13, 0));
        // 95 % less the margin of 10 % is 85 %: the step below is 80 %.
        assert_eq!((budget, bench.cache.budgets.last()), (0.8, Some(&8)));
        // Without clean units, dummy units are programmed, which take the same time and energy.
        assert_eq!(bench.cache.rewritten.len(), if clean > 0 { 14 } else { 0 });
        assert_eq!(detection.empty - detection.drained_from, (13 * 210 + 125) * US);
    }
}

#[test]
fn the_first_budget_agrees_with_the_closed_form() {
    for (units, budget) in [(30.0, 10), (11.0, 10), (10.9, 9), (9.5, 8), (8.0, 7), (7.9, 0)] {
        let mut bench = Bench::new(&setup(), units);
        bench.begin();
        assert_eq!(bench.cache.budgets, [budget], "{units} of {CACHE_UNITS} units can be saved");
        assert!((bench.power.capability_units(Time::START) - units).abs() < 1e-6);
    }
}

#[test]
fn a_flush_can_use_the_energy_left_while_draining_and_none_while_recharging() {
    let mut bench = Bench::new(&setup(), 9.5);
    bench.cache.is_synced = true;
    bench.begin();
    assert!((bench.energy_uj() - 4155.0).abs() < 1e-3);
    bench.detect();
    bench.run_to(Stage::Draining);
    for units in 1..=3 {
        while bench.cache.rewritten.len() < units {
            let event = next(&mut bench.core).unwrap();
            bench.serve(event);
        }
        let left = 4155.0 - units as f64 * UNIT_UJ;
        assert!((bench.energy_uj() - left).abs() < 1e-3 && bench.power.finishes());
    }
    bench.run_to(Stage::Settling);
    assert_eq!((bench.energy_uj(), bench.power.finishes()), (0.0, true), "operations under way end");
    bench.run_to(Stage::Recharging);
    assert_eq!((bench.energy_uj(), bench.power.finishes()), (0.0, false), "operations under way tear");
    bench.run_to(Stage::Charged);
    assert!(
        (bench.energy_uj() - 4155.0 * (1.0 - 1e-5)).abs() < 1e-2,
        "a discharge does not cost 1e-5 of the capacitance"
    );
}

#[test]
fn a_due_detection_waits_for_an_idle_time_but_no_longer_than_its_grace() {
    for (idle_at, begins) in [(None, 25), (Some(22), 22), (Some(3), 20)] {
        let mut bench = Bench::new(&setup(), 9.5);
        bench.begin();
        bench.core.set_state(State { is_idle: idle_at.is_some_and(|at| at < 20), ..*bench.core.state() });
        let Bench { core, power, cache, .. } = &mut bench;
        core.advance_to(core.clock(core.power_clock()));
        assert_eq!(core.now(), Time::START + 20 * SECOND);
        power.on_clock(core, cache);
        if let Some(at) = idle_at.filter(|&at| at > 20) {
            core.advance_to(Time::START + at * SECOND);
            power.detect_when_idle(core, cache);
        } else if begins > 20 {
            assert_eq!(power.stage, Stage::Charged);
            core.advance_to(core.clock(core.power_clock()));
            power.on_clock(core, cache);
        }
        assert_eq!((power.stage, core.now()), (Stage::Syncing, Time::START + begins * SECOND), "{idle_at:?}");
        assert_eq!((power.now.due, power.now.began), (Time::START + 20 * SECOND, core.now()));
    }
}

#[test]
fn the_recharge_begins_only_when_no_torn_program_can_destroy_older_data() {
    let mut bench = Bench::new(&Setup { cell: Cell::Mlc, ..setup() }, 9.5);
    bench.cache.is_synced = true;
    bench.begin();
    // A job of the lane has written half a wordline.
    fill(&mut bench.core, StreamId::GC, [20]);
    bench.core.set_victim(LANE, Some(SuperblockId(9)));
    bench.detect();
    bench.run_to(Stage::Recharging);
    assert_eq!(bench.power.stage, Stage::Settling, "the stream of the job is not padded before the job ends");
    let is_amid = |core: &Core<NoProbe>, stream| core.ftl().is_amid_wordline(LANE, stream);
    assert!(is_amid(&bench.core, StreamId::GC) && !is_amid(&bench.core, StreamId::HOST));
    // The job ends while a unit is being programmed in place.
    bench.core.set_victim(LANE, None);
    bench.cache.is_reprogramming = true;
    bench.power.on_job_over(&mut bench.core, &mut bench.cache, LANE);
    bench.run_to(Stage::Recharging);
    assert_eq!(bench.power.stage, Stage::Settling);
    bench.cache.is_reprogramming = false;
    bench.core.wake(Wake::Detection);
    bench.run_to(Stage::Recharging);
    assert!(bench.power.stage == Stage::Recharging && !is_amid(&bench.core, StreamId::GC));
    assert!(bench.core.ftl().is_lsb_only(LANE, StreamId::HOST) && bench.core.state().is_guarded);
    bench.run_to(Stage::Charged);
    assert!(!bench.core.ftl().is_lsb_only(LANE, StreamId::HOST) && !bench.core.state().is_guarded);
}

#[test]
fn the_budget_waits_for_the_free_superblocks_that_a_flush_needs() {
    // A flush of ten units needs three free superblocks (ten units in superblocks of eight, and one superblock for the
    // job under way when power fails); the next job needs one. Of eight superblocks, five are full.
    for is_job in [false, true] {
        let mut bench = Bench::new(&Setup { superblocks: 8, ..setup() }, 9.5);
        fill(&mut bench.core, StreamId::GC, 0..40);
        bench.begin();
        assert_eq!(
            bench.cache.budgets,
            [0],
            "a budget is set with three of the four needed free superblocks"
        );
        clear(&mut bench.core, SuperblockId(0));
        // The superblock was erased as a dead superblock, or by a job of its lane.
        if is_job {
            bench.power.on_job_over(&mut bench.core, &mut bench.cache, LANE);
        } else {
            bench.power.on_room(&mut bench.core, &mut bench.cache);
        }
        assert_eq!(bench.cache.budgets, [0, 8], "erased by a job: {is_job}");
    }
}

#[test]
fn the_controller_empties_a_capacitor_during_the_first_program() {
    // 100 uJ last for 100 us of the controller's 1 W; the first program takes 210 us.
    let mut bench = Bench::new(&setup(), (100.0 - FIXED_UJ) / UNIT_UJ);
    bench.cache.is_synced = true;
    bench.begin();
    bench.detect();
    bench.run_to(Stage::Recharging);
    assert_eq!(bench.stages, [(Stage::Draining, 0), (Stage::Settling, 100), (Stage::Recharging, 210)]);
}

#[test]
fn no_event_of_the_capacitor_is_left_when_draining_ends_for_lack_of_free_units() {
    // Of four superblocks of eight units two are full, and one is kept for GC: `csw` programs eight units in 8 x 210
    // us. The 4155 uJ less 8 x 310 uJ that are left would last for another 1675 us.
    let mut bench = Bench::new(&Setup { superblocks: 4, ..setup() }, 9.5);
    bench.power.spec.flush = FlushMethod::Csw;
    fill(&mut bench.core, StreamId::GC, 0..16);
    (bench.cache.is_synced, bench.cache.is_reprogramming) = (true, true);
    bench.begin();
    bench.detect();
    bench.run_to(Stage::Recharging);
    assert_eq!(bench.stages, [(Stage::Draining, 0), (Stage::Settling, 8 * 210)]);
    assert_eq!(
        bench.core.now(),
        Time::START + 8 * 210 * US,
        "an event comes while only a reprogram is awaited"
    );
    bench.cache.is_reprogramming = false;
    bench.core.wake(Wake::Detection);
    bench.run_to(Stage::Recharging);
    assert_eq!(bench.stages[2..], [(Stage::Recharging, 8 * 210)]);
}

#[test]
fn the_controller_takes_energy_at_least_for_the_time_that_a_flush_would_need() {
    // The die programs one unit at a time, in 210 us. Two at a time would need 105 us per unit, so the time that has
    // passed counts.
    let mut bench = Bench::new(&setup(), 9.5);
    (bench.power.concurrency, bench.cache.is_synced) = (2, true);
    bench.begin();
    bench.detect();
    while bench.cache.rewritten.len() < 3 {
        let event = next(&mut bench.core).unwrap();
        bench.serve(event);
    }
    assert!((bench.energy_uj() - (4155.0 - 3.0 * UNIT_UJ)).abs() < 1e-3, "{}", bench.energy_uj());
    // One unit at a time would need 630 us for the three units, even if they had taken only 210 us.
    bench.power.concurrency = 1;
    bench.core.advance_to(bench.power.now.drained_from + 210 * US);
    assert!((bench.energy_uj() - (4155.0 - 3.0 * UNIT_UJ)).abs() < 1e-3, "{}", bench.energy_uj());
}

#[test]
fn a_superblock_that_is_closed_without_a_programmed_unit_is_free() {
    let mut core = Setup::default().core();
    let free = core.lane(LaneId(0)).free.len();
    let superblock = core.take_flush_superblock(DieId(0)).expect("a free superblock");
    assert_eq!(
        (core.lane(LaneId(0)).free.len(), core.superblock(superblock).state),
        (free - 1, SuperblockState::Open)
    );
    core.close_early(superblock);
    assert_eq!(
        (core.lane(LaneId(0)).free.len(), core.superblock(superblock).state),
        (free, SuperblockState::Free)
    );
    core.audit().unwrap();
}
