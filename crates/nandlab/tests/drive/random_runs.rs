//! Random specs with random workloads: the cases of [`crate::cases`].
//!
//! `make soak` plays cases for some minutes. The environment variables `NANDLAB_SOAK_CASES`, `NANDLAB_SOAK_MINUTES` and
//! `NANDLAB_SOAK_SEED` set the number of cases, the minutes and the first seed.

use crate::cases::Case;
use crate::common::ns;
use crate::common::schemes::Acts;
use crate::common::schemes::placed;
use nandlab::base::rng::Stream;
use nandlab::base::units::Time;
use nandlab::drive::Drive;
use nandlab::probe::Probe;
use nandlab::sched::Watcher;
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::Relaxed};
use std::time::Instant;

/// Cases of an ordinary run of the tests: seeds 0 to 119. `make soak` plays more.
const CASES: u64 = 120;
/// Requests of a case in an ordinary run of the tests.
const REQUESTS: u32 = 1000;
/// Requests of a case in a soak, and of cases asked for.
const REQUESTS_OF_SOAK: u32 = 3000;

fn from_environment(name: &str) -> Option<u64> {
    let number = |text: String| text.parse().unwrap_or_else(|_| panic!("{name} is not a number"));
    std::env::var(name).ok().map(number)
}

#[test]
fn the_host_reads_what_it_wrote() {
    let minutes = from_environment("NANDLAB_SOAK_MINUTES");
    let asked = from_environment("NANDLAB_SOAK_CASES");
    let requests = if minutes.is_some() || asked.is_some() { REQUESTS_OF_SOAK } else { REQUESTS };
    let cases = asked.unwrap_or(if minutes.is_some() { u64::MAX } else { CASES });
    let first = from_environment("NANDLAB_SOAK_SEED").unwrap_or(0);
    let (next, done, acts) = (AtomicU64::new(0), AtomicU64::new(0), Mutex::new(Acts::default()));
    let has_failed = AtomicBool::new(false);
    #[expect(clippy::disallowed_methods, reason = "the clock ends a soak, and no result depends on it")]
    let began = Instant::now();
    let is_over =
        || has_failed.load(Relaxed) || minutes.is_some_and(|most| began.elapsed().as_secs() >= 60 * most);
    let work = || {
        while !is_over() {
            let number = next.fetch_add(1, Relaxed);
            if number >= cases {
                return;
            }
            let seed = first + number;
            let Ok(seen) = std::panic::catch_unwind(|| Case::placed(seed).play(requests)) else {
                has_failed.store(true, Relaxed);
                eprintln!("{:?}\n{}", Case::placed(seed), Case::placed(seed).spec().0);
                panic!(
                    "seed {seed}; to repeat it: NANDLAB_SOAK_SEED={seed} NANDLAB_SOAK_CASES=1 cargo test --profile crash \
                     -p nandlab --test drive random_runs::the_host_reads -- --nocapture"
                );
            };
            acts.lock().expect("no case has failed").add(&seen);
            let done = done.fetch_add(1, Relaxed) + 1;
            if (asked.is_some() || minutes.is_some()) && done.is_multiple_of(500) {
                println!("{done} cases, {} s", began.elapsed().as_secs());
            }
        }
    };
    let workers = std::thread::available_parallelism().map_or(1, usize::from);
    std::thread::scope(|scope| {
        for _ in 0..workers {
            scope.spawn(work);
        }
    });
    let done = done.into_inner();
    println!("{done} cases");
    if done >= CASES {
        acts.into_inner().expect("no case has failed").check();
    }
}

/// Cases with several units in a page, superblocks of all planes of a die, or one-shot programs.
#[test]
fn the_host_reads_what_it_wrote_in_units_below_the_page() {
    let first = from_environment("NANDLAB_SOAK_SEED").unwrap_or(0);
    let cases = from_environment("NANDLAB_SOAK_CASES").unwrap_or(40);
    for case in (first..).map(Case::placed).filter(Case::has_units).take(cases as usize) {
        std::panic::catch_unwind(|| case.play(1000))
            .unwrap_or_else(|_| panic!("{case:?}\n{}", case.spec().0));
    }
}

/// A probe that observes phases, and nothing else.
struct Observer;

impl Watcher for Observer {}
impl Probe for Observer {}

/// Plays requests of a case. Returns what the host and the statistics see.
fn outcome<P: Probe>(case: &Case, mut drive: Drive<P>) -> String {
    drive.precondition(&mut |_| true);
    let mut stream = Stream::new(case.seed, "outcome");
    let capacity = drive.geometry().logical_bytes();
    let mut seen = String::new();
    for number in 0..400 {
        let request = case.request(&mut stream, capacity).at(drive.now());
        let request = placed(&drive, request, &mut stream);
        drive.submit(&request).expect("the request fits");
        while drive.outstanding() > number % 8 && drive.advance_to_completion(Time::NEVER) {
            seen.extend(
                drive.completions().map(|done| format!("{} {:?}\n", done.completed.ns(), done.failed)),
            );
        }
        if stream.below(8) == 0 {
            drive.advance(drive.now() + ns(stream.below(4_000_000)));
        }
        if drive.failure().is_some() {
            break;
        }
    }
    drive.finish_stats();
    format!("{seen}{:?} {:?} {:?}", drive.stats(), drive.die_busy_ns(), drive.channel_busy_ns())
}

/// A device may reserve its channels only while nobody observes their phases. The outcome is the same.
#[test]
fn reserved_channels_change_no_outcome() {
    let reserves = |case: &Case| {
        let (text, spec) = case.spec();
        !spec.models_power_loss() && case.off_chip == 0 && !text.contains("suspend")
    };
    for case in (0..).map(Case::placed).filter(reserves).take(60) {
        let (text, spec) = case.spec();
        let of_drive = outcome(&case, Drive::new(&spec));
        let of_observed = outcome(&case, Drive::with_probe(&spec, Observer));
        assert_eq!(of_drive, of_observed, "{case:?}\n{text}");
    }
}

/// Pages that may be copied back waited for others that fill the programming unit with them. When these came, the
/// measured limit no longer allowed the copyback of one of them: on this drive a second ages data by months.
#[test]
fn pages_that_wait_for_a_copyback_may_grow_too_old() {
    let case = Case::draw(818_846);
    // The fault was met without bad blocks.
    assert!(!case.spec().0.contains("bad_blocks"));
    case.play(1000);
}

/// A refresh job wrote units elsewhere for which the VSM had no room, one after another. Each filled a page with
/// padding, until the job had no room left.
#[test]
fn units_for_which_the_vsm_has_no_room_share_pages() {
    Case::draw(8_200_377).play(1000);
}

/// A job of translation pages became urgent after it had queued the programs of its last pages. It blocked its die, and
/// the programs waited behind host writes that the blocking held back.
#[test]
fn a_job_of_translation_pages_that_becomes_urgent_at_its_end_does_not_block_its_die() {
    Case::draw(16_300_095).play(REQUESTS_OF_SOAK);
}

/// Returns a case with a small plane and default settings, except for the schemes.
fn plain(seed: u64, schemes: ([bool; 4], u64)) -> Case {
    Case {
        seed,
        geometry: [1, 1, 1, 1, 26, 4],
        slack: 1.0,
        unit: 4096,
        order: 0,
        victim: 0,
        levelling: 0,
        scheduler: 0,
        multi_plane: false,
        command: false,
        decode: false,
        off_chip: 0,
        precondition: 0,
        depth: 1,
        weights: [0, 1, 0, 0],
        span: 0.02,
        schemes,
        fua: false,
        odd: false,
        is_uniform: false,
        link: String::new(),
        places: false,
    }
}

/// Regression: combination pages took all spare units of a lane. So GC could gain nothing, and writes failed although
/// no lane was worn out.
#[test]
fn combination_pages_do_not_take_the_spare_units_that_gc_needs() {
    for seed in 40..60u64 {
        let schemes = ([false, true, true, false], seed.wrapping_mul(0x9e37_79b9_7f4a_7c15));
        let drawn = plain(seed, schemes);
        Case { geometry: [2, 1, 1, 1, 26, 4], victim: 5, precondition: 2, ..drawn }.play(1200);
    }
}

/// Regression: while the budget was 0, more units were written through than the next budget allowed. Later writes to
/// these units were then acknowledged from the cache.
#[test]
fn a_write_to_a_unit_that_is_being_written_through_respects_the_budget() {
    let drawn = plain(4_526_415_026_348_011_539, ([false, true, false, true], 7_529_363_511_072_660_356));
    let geometry = [1, 1, 1, 1, 27, 20];
    let span = 0.037_314_372_763_177_894;
    Case { geometry, depth: 10, weights: [1, 4, 0, 1], span, fua: true, ..drawn }.play(3000);
}
