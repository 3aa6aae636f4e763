//! Power that fails again during recovery: at every step, once and twice in a row, on drives with all combinations of
//! the schemes. The times of the steps are in `capacitor.rs`, a recovery that collects superblocks in
//! `power_loss/tests.rs`.

use crate::crash::{Counts, Honest, Plan, crash};

/// Power losses of a run.
const CUTS: u64 = 6;
/// Runs of these tests stop at this step. A recovery has more steps only if it completes more than a dozen partial
/// units.
const STEPS_MAX: u64 = 40;

/// Runs the plans with all recoveries cut at step 1, then at step 2, and so on. Returns the counts and the highest step.
fn cut_at_every_step(plans: impl Iterator<Item = Plan>) -> (Counts, u64) {
    let (mut counts, mut highest) = (Counts::default(), 0);
    for plan in plans {
        for step in 1..=STEPS_MAX {
            let done = crash(&plan.clone().failing_in_recovery(&[step]), CUTS, &mut Honest);
            counts.add(&done);
            if done.cuts_in_recovery == 0 {
                break;
            }
            highest = highest.max(step);
        }
    }
    (counts, highest)
}

/// All combinations of the schemes. The oracle, and the checks of every power loss, compare each drive with what its
/// host may expect.
#[test]
fn power_that_fails_at_any_step_of_a_recovery_loses_nothing_more() {
    let (counts, highest) = cut_at_every_step((0..96).map(Plan::placed));
    println!("{counts}steps: {highest}");
    assert!(highest >= 20, "{highest} steps");
    let found = [
        counts.programs_torn_in_recovery,
        counts.erases_torn_in_recovery,
        counts.partial_units_merged,
        counts.cuts_with_superblocks_of_the_drive,
        counts.cuts_with_a_write_buffer,
        counts.buffered_units_flushed,
        counts.stale_translation_pages,
        counts.links_at_a_cut,
        counts.units_reprogrammed_in_place,
        counts.units_lost_with_their_wordline,
    ];
    assert!(found.iter().all(|&count| count > 0), "a count is 0: {found:?}");
    counts.acts.check();
}

/// Recovery writes units on these drives: those with a capacitor and partial units.
#[test]
fn power_that_fails_twice_in_a_recovery_loses_nothing_more() {
    let mut counts = Counts::default();
    for plan in (0..64).map(Plan::new).filter(Plan::has_capacitor).take(16) {
        for first in 1..=12 {
            let mut is_over = true;
            for second in [1, first, first + 1, first + 3] {
                let done = crash(&plan.clone().failing_in_recovery(&[first, second]), CUTS, &mut Honest);
                is_over &= done.cuts_in_recovery == 0;
                counts.add(&done);
            }
            if is_over {
                break;
            }
        }
    }
    println!("{counts}");
    let found = [counts.programs_torn_in_recovery, counts.partial_units_merged];
    assert!(found.iter().all(|&count| count > 0), "a count is 0: {found:?}");
}
