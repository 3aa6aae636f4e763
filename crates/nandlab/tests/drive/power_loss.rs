//! Power cuts at every n-th event of random runs: acknowledged writes that the budget covers survive, and the recovered
//! drive continues to work.
//!
//! `make crash` runs a million cuts. The environment variable `NANDLAB_CRASH_CUTS` gives the least number of cuts,
//! `NANDLAB_CRASH_SEED` the first seed. With the seed alone, only the run of this seed is repeated.

use crate::crash::{Counts, Honest, Plan, crash};
use nandlab::drive::spec::FlushTo;
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::Relaxed};

/// Number of cuts of one run.
const CUTS: u64 = 12;
/// Number of cuts between two lines of progress; with many cuts a line is printed every few seconds.
const SHOWN: u64 = 5000;

fn from_environment(name: &str) -> Option<u64> {
    std::env::var(name).ok().map(|n| n.parse().unwrap_or_else(|_| panic!("{name} is not a number")))
}

/// Runs the plans that `plan` returns for the seeds from `first` on, until power has failed `cuts` times. `test` is the
/// test that repeats the run of a seed.
fn run(first: u64, cuts: u64, plan: fn(u64) -> Option<Plan>, test: &str) -> Counts {
    let shows = from_environment("NANDLAB_CRASH_CUTS").is_some();
    let (next, total) = (AtomicU64::new(first), Mutex::new(Counts::default()));
    let has_failed = AtomicBool::new(false);
    let work = || {
        while !has_failed.load(Relaxed) && total.lock().expect("no run has failed").cuts < cuts {
            let seed = next.fetch_add(1, Relaxed);
            let Some(plan) = plan(seed) else { continue };
            let done = std::panic::catch_unwind(|| crash(&plan, CUTS, &mut Honest));
            let Ok(done) = done else {
                has_failed.store(true, Relaxed);
                eprintln!("{}", plan.text);
                panic!(
                    "seed {seed}; to repeat it: NANDLAB_CRASH_SEED={seed} cargo test --release -p nandlab --test \
                     drive power_loss::{test}"
                );
            };
            let counts = &mut *total.lock().expect("no run has failed");
            let before = counts.cuts;
            counts.add(&done);
            if shows && before / SHOWN != counts.cuts / SHOWN {
                println!("{} of {cuts} cuts, next seed {}", counts.cuts, next.load(Relaxed));
            }
        }
    };
    let workers = if cuts == 1 { 1 } else { std::thread::available_parallelism().map_or(1, usize::from) };
    std::thread::scope(|scope| {
        for _ in 0..workers {
            scope.spawn(work);
        }
    });
    let counts = total.into_inner().expect("no run has failed");
    println!("{counts}");
    counts
}

/// The first seed and the number of cuts: those of the environment, or `cuts` from seed 0 on.
fn first_and_cuts(cuts: u64) -> (u64, u64) {
    let seed = from_environment("NANDLAB_CRASH_SEED");
    let asked = from_environment("NANDLAB_CRASH_CUTS");
    (seed.unwrap_or(0), asked.or(seed.map(|_| 1)).unwrap_or(cuts))
}

/// Runs that the campaign has found, with the plans of their seeds at that time:
///
/// - a page copied back with a unit that a dropped program had replaced, into a superblock that became full before the cut;
/// - a unit that waits for room in the write buffer while a FUA write gathers in another lane;
/// - a write that waits for a fold on a drive of sixteen lanes, of which some lane always has a refresh job;
/// - reads behind more refresh than the drive can do, which last until the age clock ends (a fault of this test).
#[test]
fn runs_that_failed_once_do_not_fail() {
    for seed in [6644, 67_420, 1_000_013_330, 1_000_035_617] {
        crash(&Plan::placed(seed), CUTS, &mut Honest);
    }
}

#[test]
fn acknowledged_writes_within_the_budget_survive() {
    let (first, cuts) = first_and_cuts(4000);
    let plan = |seed| Some(Plan::placed(seed));
    let counts = run(first, cuts, plan, "acknowledged_writes_within_the_budget_survive");
    // Cuts in every stage are required: without a cut in a stage the test shows nothing about this stage.
    if cuts >= 4000 {
        counts.acts.check();
        assert!(counts.stages.iter().all(|&cuts| cuts > 0), "power never failed in some stage:\n{counts}");
        for count in [
            counts.aborted_on_link_to_drive,
            counts.aborted_on_link_to_host,
            counts.torn_programs,
            counts.torn_erases,
            counts.cuts_in_recovery,
            counts.programs_torn_in_recovery,
            counts.erases_torn_in_recovery,
            counts.partial_units_merged,
            counts.units_lost_for_lack_of_energy,
            counts.units_lost_with_their_wordline,
            counts.cuts_with_flushed_data_in_ram,
            counts.flushed_units_in_ram_that_were_lost,
            counts.fua_writes_from_cache,
            counts.trim_units_saved,
            counts.lost_covered,
            counts.lost_acknowledged,
            counts.lost_in_flight,
            counts.detections,
            counts.units_refreshed_partially,
            counts.links_at_a_cut,
            counts.vsm_lines,
            counts.vsm_lines_saved,
            counts.cuts_with_programs_of_units,
            counts.cuts_with_bad_blocks,
        ] {
            assert!(count > 0, "a count is 0:\n{counts}");
        }
    }
}

/// Only drives with several units in a page, superblocks or one-shot programs.
#[test]
fn units_of_torn_pages_are_found_in_older_units() {
    let (first, cuts) = first_and_cuts(1500);
    let plan = |seed| Some(Plan::placed(seed)).filter(Plan::has_units);
    let counts = run(first, cuts, plan, "units_of_torn_pages_are_found_in_older_units");
    if cuts >= 1500 {
        for count in [
            counts.cuts_with_programs_of_units,
            counts.torn_in_superblocks,
            counts.lost_in_superblocks,
            counts.torn_in_superblocks_of_the_drive,
            counts.torn_erases_of_superblocks_of_the_drive,
            counts.flushed_in_superblocks_of_the_drive,
            counts.superblocks_with_gaps,
            counts.torn_programs,
            counts.torn_erases,
            counts.units_lost_with_their_wordline,
            counts.units_lost_without_a_capacitor,
            counts.cuts_with_a_write_buffer,
            counts.cuts_between_victims,
            counts.cuts_with_copies_of_two_victims,
            counts.cuts_with_bad_blocks,
            counts.stale_translation_pages,
            counts.flushed_on_drives_with_units,
            counts.buffered_units_flushed,
            counts.partial_units_merged,
            counts.units_lost_for_lack_of_energy,
            counts.detections,
            counts.units_refreshed_partially,
            counts.links_at_a_cut,
            counts.vsm_lines,
            counts.vsm_lines_saved,
        ] {
            assert!(count > 0, "a count is 0:\n{counts}");
        }
    }
}

/// A drive with a demand map that only read and refreshed failed with "GC has erased ... superblocks, but no waiting
/// host unit has got room": erases that gave room to waiting translation pages counted as in vain until a host write
/// got a unit.
#[test]
fn a_drive_that_only_reads_and_refreshes_does_not_fail_for_lack_of_room() {
    let plan = Plan::of_two_schemes(7_009_931);
    assert!(plan.text.contains("demand") && plan.text.contains("fcr") && plan.has_units(), "{}", plan.text);
    assert!(!plan.text.contains("bad_blocks"), "{}", plan.text);
    crash(&plan, CUTS, &mut Honest);
}

/// A recovery without a free unit emptied superblocks, and left the stream of the copies amid a wordline. While the
/// capacitor was recharged, GC went on there, and the next power loss tore a page that destroyed the copies before it.
#[test]
fn no_program_shares_a_wordline_with_copies_of_the_recovery() {
    let plan = Plan::new(880_000_712);
    assert!(plan.text.contains("superblock = 'drive'") && plan.has_capacitor(), "{}", plan.text);
    crash(&plan, CUTS, &mut Honest);
}

/// The reserve for the wait of a program had room for one page on the off-chip path, where another program under way
/// has six: a flush spent 5 nJ more than the capacitor had.
#[test]
fn a_flush_waits_for_a_whole_program_on_the_off_chip_path() {
    let plan = Plan::new(5_050_001_374);
    assert!(plan.text.contains("off_chip_mb_per_s") && plan.has_units(), "{}", plan.text);
    crash(&plan, CUTS, &mut Honest);
}

/// Only drives whose capacitor may be too small for what flushes and FUA writes from the cache cover, and for the
/// records of TRIMs. The drive must report what is lost: everything else is read back.
#[test]
fn a_small_capacitor_loses_flushed_data_and_reports_it() {
    let is_small = |plan: &Plan| {
        let spec = &plan.spec;
        let is_backed = spec.capacitor.capacitance_f > 0.0 && spec.cache.flush_to == FlushTo::Cache;
        is_backed && !plan.covers
    };
    let mut counts = Counts::default();
    for plan in (0..1200).map(Plan::new).filter(is_small) {
        counts.add(&crash(&plan, CUTS, &mut Honest));
    }
    println!("{counts}");
    let found = [
        counts.cuts_with_flushed_data_in_ram,
        counts.flushed_units_in_ram_that_were_lost,
        counts.trim_units_saved,
        counts.trims_lost_for_lack_of_energy,
    ];
    assert!(found.iter().all(|&count| count > 0), "a count is 0: {found:?}\n{counts}");
}
