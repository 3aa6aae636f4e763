//! The warm-up (`workload.warm_up`): the results leave out the first requests, and the drive does not notice.

use crate::cases::Case;
use crate::common::{TINY, at, ns, one, request, rest, spec};
use nandlab::base::rng::Stream;
use nandlab::base::units::Time;
use nandlab::drive::Drive;
use nandlab::drive::spec::Spec;
use nandlab::drive::stats::RoomCounters;
use nandlab::host::{Completion, Op, Oracle};
use nandlab::report::{RunFacts, Table, Values, smart, summary};
use nandlab::sched::{Cause, FlashOp};
use serde_json::{Value, json};

const PAGE: u64 = 4096;
/// 50 us in the array, 10.24 us on the channel, 15 us in the decoder.
const READ: u64 = 75_240;
/// 10.24 us on the channel, 900 us in the array.
const WRITE: u64 = 910_240;

fn preconditioned(sets: &[&str]) -> Drive {
    let mut drive = Drive::new(&spec(TINY, &[&["precondition.method='pts'"], sets].concat()));
    drive.precondition(&mut |_| true);
    drive
}

fn results(drive: &mut Drive) -> Value {
    drive.finish_stats();
    summary(drive, &RunFacts { complete: true, ..RunFacts::default() })
}

#[track_caller]
fn near(value: &Value, expected: f64) {
    let value = value.as_f64().expect("a number");
    assert!((value - expected).abs() <= 1e-9 * expected.abs(), "{value} instead of {expected}");
}

fn column(table: &Table, name: &str) -> Vec<f64> {
    match &table.columns.iter().find(|column| column.name == name).expect(name).values {
        Values::F64(values) => values.clone(),
        Values::U64(values) => values.iter().map(|&value| value as f64).collect(),
        Values::Text(_) => panic!("{name} is text"),
    }
}

/// Four reads of 75.24 us are the warm-up; three writes of 910.24 us follow, one after another, on one of the two dies.
/// The die is busy all the time of a write, its channel for 10.24 us.
#[test]
fn the_results_count_the_requests_after_the_warm_up() {
    let mut drive = preconditioned(&["energy.idle='0W'"]);
    drive.warm_up(4);
    for _ in 0..4 {
        assert!(drive.is_warming_up() && drive.warmed_up().is_none());
        assert_eq!(one(&mut drive, Op::Read, 0, PAGE), READ);
    }
    assert_eq!((drive.is_warming_up(), drive.warmed_up()), (false, Some((4, ns(4 * READ)))));
    for _ in 0..3 {
        assert_eq!(one(&mut drive, Op::Write, 0, PAGE), WRITE);
    }
    let summary = results(&mut drive);
    assert_eq!((&summary["requests"], &summary["requests_unfinished"]), (&json!(3), &json!(0)));
    assert_eq!(summary["host"]["read"], json!({ "count": 0, "bytes": 0 }));
    assert_eq!(summary["host"]["write"], json!({ "count": 3, "bytes": 3 * PAGE }));
    assert_eq!(summary["flash"]["read"]["host"], 0);
    assert_eq!(summary["flash"]["program"]["host"], 3);
    assert_eq!(summary["counters"]["host_pages_written"], 3);
    assert_eq!(summary["warm_up"]["requests"], 4);
    near(&summary["warm_up"]["duration_s"], 4.0 * 75.24e-6);
    near(&summary["duration_s"], 3.0 * 910.24e-6);
    near(&summary["iops"], 1.0 / 910.24e-6);
    near(&summary["latency_us"]["write"]["mean"], 910.24);
    near(&summary["latency_us"]["read"]["max"], 0.0);
    near(&summary["die_busy_share"], 0.5);
    near(&summary["channel_busy_share"], 10.24 / 910.24 / 2.0);
    let log = &smart(&drive)["nvme_smart_log"];
    assert_eq!((&log["host_read_commands"], &log["host_write_commands"]), (&json!(0), &json!(3)));
    assert_eq!((&log["data_units_read"], &log["data_units_written"]), (&json!(0), &json!(1)));
    // The first interval of the series begins with the results and lasts 1 ms; times count from the start of the run.
    let stats = drive.stats();
    let (series, dies) = (
        stats.series.table(drive.geometry(), drive.array().shapes().first()),
        stats.dies.table(stats.series, drive.geometry().dies_per_channel),
    );
    let ends = [1.0, 2.0, 3.0 * 0.91024].map(|ms| ms * 1e-3 + 4.0 * 75.24e-6);
    for (found, expected) in column(&series, "time_s").into_iter().zip(ends) {
        assert!((found - expected).abs() < 1e-12, "{found} instead of {expected}");
    }
    assert_eq!(column(&series, "requests_read"), [0.0; 3]);
    assert_eq!(column(&series, "requests_write"), [1.0, 1.0, 1.0]);
    assert_eq!(column(&series, "interval_s")[0], 1e-3);
    assert_eq!(column(&dies, "interval_s")[0], 1e-3);
    assert_eq!(drive.stats().flash[FlashOp::Program as usize][Cause::Host as usize], 3);
    // The speed of the simulation counts the warm-up too.
    assert_eq!((drive.requests_ended(), drive.page_operations()), (7, 7));
}

/// Both reads are of a die: the second one waits until the first one has left the die after 60.24 us, and completes
/// after 135.48 us. When the warm-up ends, after 75.24 us, the second read is outstanding, and its die senses. Then the
/// die is busy until 120.48 us, for 45.24 of 60.24 us, and the channel for 10.24 us.
#[test]
fn a_request_outstanding_at_the_end_of_the_warm_up_counts_when_it_completes() {
    let mut drive = preconditioned(&[]);
    drive.warm_up(1);
    let read = request(&drive, Op::Read, 0, PAGE);
    (0..2).for_each(|_| _ = drive.submit(&read).unwrap());
    drive.advance(at(135_480));
    assert_eq!(drive.completions().map(|done| done.completed).collect::<Vec<_>>(), [at(READ), at(135_480)]);
    let summary = results(&mut drive);
    assert_eq!((&summary["requests"], &summary["host"]["read"]["count"]), (&json!(1), &json!(1)));
    near(&summary["latency_us"]["read"]["mean"], 135.48);
    near(&summary["duration_s"], 60.24e-6);
    near(&summary["die_busy_share"], 45.24 / 60.24 / 2.0);
    near(&summary["channel_busy_share"], 10.24 / 60.24 / 2.0);
    assert_eq!(summary["flash"]["read"]["host"], 1);
    let series = drive.stats().series.table(drive.geometry(), drive.array().shapes().first());
    for (name, expected) in [("outstanding_mean", 1.0), ("die_busy_mean", 45.24 / 60.24 / 2.0)] {
        assert!((column(&series, name)[0] - expected).abs() < 1e-9, "{name}: {:?}", column(&series, name));
    }
}

#[test]
fn power_loss_ends_the_warm_up_with_the_requests_that_it_ends() {
    let mut drive = preconditioned(&["power.cut_at='100us'"]);
    drive.warm_up(3);
    let read = request(&drive, Op::Read, 0, PAGE);
    (0..6).for_each(|_| _ = drive.submit(&read).unwrap());
    rest(&mut drive);
    // One read has completed before power failed. Power loss ends five reads, of which two belong to the warm-up.
    let summary = results(&mut drive);
    assert_eq!((&summary["requests"], &summary["requests_failed"]["power_lost"]), (&json!(3), &json!(3)));
    assert_eq!((&summary["host"]["read"]["count"], &summary["warm_up"]["requests"]), (&json!(0), &json!(3)));
    near(&summary["warm_up"]["duration_s"], 100e-6);
    assert_eq!(summary["power"]["losses"], 1);
}

/// The counts of a drive, its completions, and whether it can tell them at the given time.
struct Played {
    drive: Drive<Oracle>,
    completions: Vec<Completion>,
    /// Number of completions, counts and time at the first event after which the asked number had completed.
    then: Option<(u64, RoomCounters, [[u64; Cause::ALL.len()]; 4], Time)>,
}

/// Plays `requests` random requests, at most eight outstanding.
fn play(spec: &Spec, seed: u64, warm_up: u64, ask: u64) -> Played {
    let mut drive = Drive::with_probe(spec, Oracle::default());
    drive.precondition(&mut |_| true);
    drive.expect_preconditioned(|oracle| oracle);
    drive.warm_up(warm_up);
    let mut stream = Stream::new(seed, "warm-up");
    let sectors = drive.geometry().logical_bytes() / 512 / 2;
    let (mut completions, mut then, mut submitted) = (Vec::new(), None, 0);
    while submitted < 500 || drive.outstanding() > 0 {
        if submitted < 500 && drive.outstanding() < 8 {
            let op = [Op::Read, Op::Write, Op::Write, Op::Trim][stream.below(4) as usize];
            let next = request(&drive, op, stream.below(sectors) * 512, (1 + stream.below(32)) * 512);
            drive.submit(&next).unwrap();
            submitted += 1;
        } else if !drive.advance_unless_at_rest() {
            break;
        }
        completions.extend(drive.completions());
        if then.is_none() && completions.len() as u64 >= ask {
            let stats = drive.stats();
            then = Some((completions.len() as u64, stats.counted.clone(), stats.flash, drive.now()));
        }
    }
    drive.finish_stats();
    Played { drive, completions, then }
}

/// Returns the counts without the maxima, which begin again after a warm-up.
fn without_maxima(counted: &RoomCounters) -> String {
    let mut counted = counted.clone();
    (counted.cache.dirty_pages_max, counted.refresh.overdue_max_s) = (0, 0);
    format!("{counted:?}")
}

/// Random drives with random mechanisms, each with and without a warm-up: the requests complete at the same times, and
/// the counts after the warm-up are the differences of the counts without one.
#[test]
fn a_drive_does_not_notice_its_warm_up() {
    let mut series_begin_late = 0;
    for seed in 0..60 {
        let (_, spec) = Case::draw(seed).spec();
        let plain = play(&spec, seed, 0, 100 + seed);
        let Some((warm_up, counted, flash, time)) = &plain.then else { continue };
        let warm = play(&spec, seed, *warm_up, u64::MAX);
        assert_eq!(warm.completions, plain.completions, "seed {seed}");
        assert_eq!(warm.drive.warmed_up(), Some((*warm_up, *time - Time::START)), "seed {seed}");
        let (stats, whole) = (warm.drive.stats(), plain.drive.stats());
        assert_eq!(
            without_maxima(&stats.counted),
            without_maxima(&whole.counted.since(counted)),
            "seed {seed}"
        );
        for (kind, counts) in stats.flash.iter().enumerate() {
            for (cause, &count) in counts.iter().enumerate() {
                assert_eq!(count, whole.flash[kind][cause] - flash[kind][cause], "seed {seed}");
            }
        }
        assert!(stats.cache.dirty_pages_max <= whole.cache.dirty_pages_max, "seed {seed}");
        assert_eq!(stats.requests(), plain.completions.len() as u64 - warm_up, "seed {seed}");
        let after = &plain.completions[*warm_up as usize..];
        for op in Op::ALL {
            let of_op = after.iter().filter(|done| done.request.op == op && done.failed.is_none());
            let latencies: Vec<u64> =
                of_op.map(|done| (done.completed - done.request.arrival).ns()).collect();
            let found = &stats.host[op as usize];
            assert_eq!(found.count, latencies.len() as u64, "seed {seed}");
            assert_eq!(found.sum_ns, latencies.iter().map(|&ns| u128::from(ns)).sum(), "seed {seed}");
            assert_eq!(found.max_ns, latencies.iter().copied().max().unwrap_or(0), "seed {seed}");
            let of_series: u64 = stats.series.rows().iter().map(|row| row.requests[op as usize]).sum();
            assert_eq!(found.count, of_series, "seed {seed}");
        }
        let programs: u64 = stats.series.rows().iter().flat_map(|row| row.programs).sum();
        assert_eq!(programs, stats.pages_programmed(), "seed {seed}");
        assert_eq!(stats.series.start(), *time, "seed {seed}");
        series_begin_late += u32::from(*time > Time::START);
    }
    assert!(series_begin_late > 50, "only {series_begin_late} of the drives have played a warm-up");
}

#[test]
fn a_warm_up_of_0_requests_changes_nothing() {
    let plays = |warm_up: Option<u64>| {
        let mut drive = preconditioned(&[]);
        if let Some(requests) = warm_up {
            drive.warm_up(requests);
        }
        for number in 0..50 {
            one(&mut drive, [Op::Read, Op::Write][number % 2], number as u64 % 8 * PAGE, PAGE);
        }
        (results(&mut drive).to_string(), smart(&drive).to_string(), drive.stats().series.rows().len())
    };
    assert_eq!(plays(Some(0)), plays(None));
}
