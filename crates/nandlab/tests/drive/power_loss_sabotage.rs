//! Tests of the power cuts in `crash.rs`: their checks detect drives that break a rule.

use crate::common::seen;
use crate::crash::{Honest, Plan, Sabotage, Watched, Witness, crash};
use nandlab::base::geometry::{SuperblockId, UnitId};
use nandlab::drive::spec::{Cell, DirtyBudget};
use nandlab::flash::DEAD_LPN;
use std::panic::{AssertUnwindSafe, catch_unwind};

/// The oracle misses a write in the lists of the drive, or in the recovered data.
const UNLISTED: &str = "but the completions say";

/// Runs the plans that `plan` returns for the seeds, under `sabotage`. Returns the message of the first run whose
/// checks fail, and the number of runs before it; `None` if no check fails.
fn caught(mut plan: impl FnMut(u64) -> Option<Plan>, sabotage: &mut dyn Sabotage) -> Option<(String, u32)> {
    let mut passed = 0;
    for plan in (0..400).filter_map(&mut plan).take(60) {
        let Err(panic) = catch_unwind(AssertUnwindSafe(|| crash(&plan, 6, sabotage))) else {
            passed += 1;
            continue;
        };
        let text = panic.downcast_ref::<String>().cloned();
        let text = text.or_else(|| panic.downcast_ref::<&str>().map(|&text| text.to_owned()));
        return Some((text.unwrap_or_default(), passed));
    }
    None
}

#[track_caller]
fn is_caught(plan: impl Fn(u64) -> Option<Plan>, sabotage: &mut dyn Sabotage, says: &[&str]) {
    let (text, passed) = caught(&plan, sabotage).expect("the checks detected nothing");
    println!("caught after {passed} runs: {text}");
    assert!(says.iter().any(|says| text.contains(says)), "{text:?} contains none of {says:?}");
    // Without sabotage the runs of the seeds below 40 pass.
    let caught = caught(|seed| plan(seed).filter(|_| seed < 40), &mut Honest);
    assert_eq!(caught, None, "a run without sabotage fails as well");
}

fn units(drive: &Watched) -> Vec<UnitId> {
    let geometry = drive.geometry();
    let superblocks = (0..geometry.superblocks).map(SuperblockId);
    let units = superblocks.flat_map(|superblock| {
        let programmed = drive.array().superblock(superblock).programmed;
        (0..programmed).map(move |index| geometry.unit(superblock, index))
    });
    units.filter(|&unit| drive.array().lpn(unit).0 != DEAD_LPN).collect()
}

/// Changes the sequence numbers in the OOB before recovery, and restores them afterwards. So only recovery's choice of
/// units is wrong.
#[derive(Default)]
struct Renumbered {
    /// Returns the changed number of a unit from its number, the newest number of the drive and whether the unit is a
    /// copy.
    changed: Option<fn(u64, u64, bool) -> u64>,
    original: Vec<(UnitId, u64)>,
}

impl Sabotage for Renumbered {
    fn before_recovery(&mut self, drive: &mut Watched) {
        let units = units(drive);
        self.original = units.iter().map(|&unit| (unit, drive.array().stamp(unit).sequence)).collect();
        let newest = self.original.iter().map(|&(_, sequence)| sequence).max().unwrap_or(0);
        let copies = seen::<Witness>(drive).copies.clone();
        let changed = self.changed.expect("the test gives a function");
        for &(unit, sequence) in &self.original {
            let is_copy = copies.contains(&unit.0);
            drive.parts_mut().0.set_sequence(unit, changed(sequence, newest, is_copy));
        }
    }

    fn after_recovery(&mut self, drive: &mut Watched) {
        for &(unit, sequence) in &self.original {
            drive.parts_mut().0.set_sequence(unit, sequence);
        }
    }
}

/// Returns the plan of a seed if it has neither a write cache nor a demand map. Recovery then writes no units, so the
/// sequence numbers can be restored afterwards.
fn without_a_cache(seed: u64) -> Option<Plan> {
    let plan = Plan::new(seed);
    (plan.spec.cache.size_bytes == 0 && !plan.text.contains("demand")).then_some(plan)
}

#[test]
fn recovery_without_sequence_numbers_is_caught() {
    let mut blind = Renumbered { changed: Some(|_, _, _| 1), ..Renumbered::default() };
    is_caught(without_a_cache, &mut blind, &["read returned write", "read returned nothing", UNLISTED]);
}

#[test]
fn recovery_that_takes_the_oldest_unit_is_caught() {
    let mut backwards =
        Renumbered { changed: Some(|sequence, newest, _| newest - sequence), ..Renumbered::default() };
    is_caught(without_a_cache, &mut backwards, &["read returned write", "read returned nothing", UNLISTED]);
}

#[test]
fn a_copy_that_wins_over_a_newer_write_is_caught() {
    let mut copies = Renumbered {
        changed: Some(|sequence, newest, is_copy| if is_copy { newest } else { sequence }),
        ..Renumbered::default()
    };
    is_caught(without_a_cache, &mut copies, &["read returned write", UNLISTED]);
}

/// Makes recovery accept torn units.
struct AcceptTorn;

impl Sabotage for AcceptTorn {
    fn before_recovery(&mut self, drive: &mut Watched) {
        drive.parts_mut().0.forget_torn();
    }
}

#[test]
fn a_torn_unit_that_is_accepted_is_caught() {
    let torn = |cell: Cell| {
        move |seed: u64| {
            let plan = Plan::new(seed);
            (plan.spec.drive.cell == cell && plan.spec.capacitor.capacitance_f == 0.0).then_some(plan)
        }
    };
    for cell in [Cell::Slc, Cell::Mlc, Cell::Tlc, Cell::Tlc3d] {
        is_caught(torn(cell), &mut AcceptTorn, &["which was torn"]);
    }
}

/// Makes recovery take all units of a torn programming unit but the first for intact.
struct TearFirstUnits;

impl Sabotage for TearFirstUnits {
    fn before_recovery(&mut self, drive: &mut Watched) {
        let program = drive.array().shapes().first().units_per_program;
        let first = |unit: &UnitId| unit.0.is_multiple_of(program) && drive.array().is_torn(*unit);
        let torn: Vec<UnitId> = (0..drive.geometry().units).map(UnitId).filter(first).collect();
        let array = drive.parts_mut().0;
        array.forget_torn();
        torn.into_iter().for_each(|unit| array.tear(unit));
    }
}

#[test]
fn a_page_that_is_torn_in_part_is_caught() {
    let torn = |cell: Cell| {
        move |seed: u64| {
            let plan = Plan::of_two_schemes(seed);
            let has_no_capacitor = plan.spec.capacitor.capacitance_f == 0.0;
            (plan.spec.drive.cell == cell && has_no_capacitor && plan.has_units()).then_some(plan)
        }
    };
    for cell in [Cell::Slc, Cell::Mlc, Cell::Tlc3d] {
        is_caught(torn(cell), &mut TearFirstUnits, &["which was torn"]);
    }
}

#[test]
fn a_capacitor_that_does_not_cover_the_budget_is_caught() {
    // Selects drives whose capacitor does not cover the budget, and claims that it does.
    let plan = |seed: u64| {
        let plan = Plan::new(seed);
        let is_small = !plan.covers && matches!(plan.spec.cache.dirty_budget, DirtyBudget::Share(_));
        is_small.then(|| plan.claiming(true))
    };
    let (text, _) = caught(plan, &mut Honest).expect("the checks detected nothing");
    assert!(text.contains("lost within the budget"), "{text}");
    // Without the claim the runs of the seeds below 100 pass.
    let honest = |seed| plan(seed).filter(|_| seed < 100).map(|plan| plan.claiming(false));
    assert_eq!(caught(honest, &mut Honest), None);
}

/// Tears the newest unit, as if the flush had not written it.
struct LoseNewest;

impl Sabotage for LoseNewest {
    fn before_recovery(&mut self, drive: &mut Watched) {
        let newest = units(drive).into_iter().max_by_key(|&unit| drive.array().stamp(unit).sequence);
        if let Some(unit) = newest {
            drive.parts_mut().0.tear(unit);
        }
    }
}

#[test]
fn a_missing_unit_of_the_flush_is_caught() {
    let plan = |seed: u64| {
        let plan = Plan::new(seed);
        (plan.covers && plan.spec.capacitor.capacitance_f > 0.0).then_some(plan)
    };
    is_caught(plan, &mut LoseNewest, &["read returned", "was safe", UNLISTED]);
}

/// Makes the link of a unit stale, as if the unit had been written since.
struct StaleLink;

impl Sabotage for StaleLink {
    fn after_recovery(&mut self, drive: &mut Watched) {
        let linked = units(drive).into_iter().find(|&unit| {
            let is_linked = drive.links().is_some_and(|links| links.of(unit).is_some());
            is_linked && drive.array().stamp(unit).sequence > 0
        });
        if let Some(unit) = linked {
            let sequence = drive.array().stamp(unit).sequence;
            drive.parts_mut().0.set_sequence(unit, sequence - 1);
        }
    }
}

#[test]
fn a_stale_link_that_is_restored_is_caught() {
    let plan = |seed: u64| {
        let plan = Plan::new(seed);
        plan.spec.refresh.policy.partial().is_some().then_some(plan)
    };
    is_caught(plan, &mut StaleLink, &["has been written since", "has no entry of this base page"]);
}
