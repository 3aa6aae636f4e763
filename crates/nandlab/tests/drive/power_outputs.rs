//! Power losses and the capacitor in the results, and the runner at power loss.

use crate::common::{MS, SECOND, at, ns, spec};
use nandlab::drive::Drive;
use nandlab::drive::spec::{Arrival, Beyond};
use nandlab::host::{Op, Request};
use nandlab::report::{RunFacts, Values, power, smart, summary};
use nandlab::runner::{Runner, Source};
use serde_json::Value;

const PAGE: u64 = 4096;

/// Two dies, and a write cache of 64 units. LSB and MSB pages are programmed in 300 us.
const DRIVE: &str = "[drive]\nchannels = 2\nchips_per_channel = 1\ndies_per_chip = 1\nplanes_per_die = 1\n\
    blocks_per_plane = 64\npages_per_block = 16\npage_size = '4KiB'\ncell = 'mlc'\nop = 0.5\n\
    [timing]\nread = '50us'\nprogram = '300us'\nerase = '1ms'\ndecode = '5us'\n\
    [cache]\nsize = '256KiB'\nsync = 'smart'\ndirty_budget = 0.5\n\
    [capacitor]\ncontroller_power = '20mW'\nprogram_power = '80mW'\nrecharge = '10ms'\n";

/// Overrides for a filled drive without a write cache.
const FILLED: [&str; 5] = [
    "cache.size='0MiB'",
    "cache.sync='none'",
    "cache.dirty_budget=1.0",
    "precondition.used=0.6",
    "precondition.valid=1.0",
];

/// A source of the given requests: (arrival, op, unit).
struct Given(std::vec::IntoIter<(u64, Op, u64)>);

impl Source for Given {
    type Error = std::convert::Infallible;

    fn next_request(&mut self) -> Option<Result<Request, Self::Error>> {
        let (arrival, op, unit) = self.0.next()?;
        Some(Ok(Request::new(op, unit * PAGE, PAGE).at(at(arrival))))
    }
}

fn outputs(drive: &mut Drive) -> (Value, Value, Option<Value>) {
    drive.finish_stats();
    let facts = RunFacts { complete: true, ..RunFacts::default() };
    (summary(drive, &facts), smart(drive), power(drive))
}

fn write(drive: &mut Drive, unit: u64) {
    let request = Request::write(unit * PAGE, PAGE).at(drive.now());
    drive.submit(&request).unwrap();
}

fn column(drive: &Drive, name: &str) -> Vec<f64> {
    let table = drive.stats().series.table(drive.geometry(), drive.array().shapes().first());
    let column =
        table.columns.into_iter().find(|column| column.name == name).expect("the series has the column");
    match column.values {
        Values::U64(values) => values.into_iter().map(|value| value as f64).collect(),
        Values::F64(values) => values,
        Values::Text(_) => unreachable!("a column of numbers"),
    }
}

#[test]
fn without_a_capacitor_and_without_a_power_loss_the_sections_are_null() {
    let mut drive = Drive::new(&spec(DRIVE, &[]));
    write(&mut drive, 0);
    drive.run_until_idle(nandlab::drive::IDLE_LIMIT).unwrap();
    let (summary, smart, power) = outputs(&mut drive);
    assert_eq!([&summary["capacitor"], &summary["power"]], [&Value::Null; 2]);
    assert!(power.is_none());
    assert_eq!(smart["nvme_smart_log"]["unsafe_shutdowns"], 0);
    assert_eq!(smart["nvme_smart_log"]["power_cycles"], 1);
    assert_eq!(smart["ocp_smart_log"]["CapacitorHealth"], 0xFFFF);
}

#[test]
fn every_lost_write_is_listed() {
    let mut drive = Drive::new(&spec(DRIVE, &["power.cut_at='1h'"]));
    for unit in [7, 3, 5] {
        write(&mut drive, unit);
        drive.advance(drive.now() + ns(MS / 10));
    }
    let completed = drive.completions().count();
    assert_eq!(completed, 3, "a write is not acknowledged");
    drive.cut_power();
    let (summary, smart, power) = outputs(&mut drive);
    let (told, power) = (&summary["power"], power.unwrap());
    assert_eq!([&told["losses"], &told["unflushed_pages"], &told["lost_pages"]], [1, 3, 3]);
    assert_eq!([&told["lost_writes"], &told["flushed_pages"]], [3, 0]);
    let by_promise = ["lost_covered", "lost_acknowledged", "lost_in_flight"].map(|key| &told[key]);
    assert_eq!(by_promise, [0, 3, 0]);
    assert_eq!(told["list"].as_array().unwrap().len(), 1);
    let lost = power["losses"][0]["acknowledged"].as_array().unwrap();
    let mut lost: Vec<[u64; 3]> =
        lost.iter().map(|l| ["lpn", "offset", "sequence"].map(|key| l[key].as_u64().unwrap())).collect();
    lost.sort_unstable();
    assert_eq!(lost, [[3, 3 * PAGE, 2], [5, 5 * PAGE, 3], [7, 7 * PAGE, 1]]);
    assert_eq!(smart["nvme_smart_log"]["unsafe_shutdowns"], 1);
    assert_eq!(smart["nvme_smart_log"]["power_cycles"], 2);
    assert_eq!(smart["ocp_smart_log"]["IncompleteShutdownCount"], 1);
    assert_eq!(smart["ocp_smart_log"]["PLPStartCount"], 0);
}

#[test]
fn a_flush_is_reported_with_its_energy_and_its_two_times() {
    // A flush of 64 units takes at most 64 x 300 us x 80 mW + 10 ms x 20 mW = 1.7 mJ. The capacitor has 10.8 mJ.
    let mut drive = Drive::new(&spec(DRIVE, &["capacitor.capacitance='1mF'"]));
    for unit in 0..20 {
        write(&mut drive, unit);
        drive.advance(drive.now() + ns(MS / 50));
    }
    drive.cut_power();
    let (summary, smart, _) = outputs(&mut drive);
    let told = &summary["power"];
    let number = |key: &str| told[key].as_f64().unwrap();
    assert_eq!(told["lost_writes"], 0);
    assert!(number("flushed_pages") > 10.0);
    // `program_s` is the sum of the program times (T_program); `flush_s` is the elapsed time (T_total), which is
    // shorter, because two dies program at the same time.
    assert!((number("program_s") - number("flushed_pages") * 300e-6).abs() < 1e-12);
    assert!(number("flush_s") < 0.7 * number("program_s"));
    let spent = 0.02 * number("flush_s") + 0.08 * number("program_s");
    assert!((number("spent_j") - spent).abs() < 1e-9 * spent, "Eq. 3 to 5");
    assert!(number("energy_j") > number("spent_j"));
    assert!(number("down_s") >= number("flush_s") + number("recovery_s"));
    let capacitor = &summary["capacitor"];
    assert_eq!(capacitor["stage"], "recharging");
    assert_eq!(capacitor["energy_j"], 0.0);
    assert_eq!(capacitor["cycles"], 1);
    assert!((capacitor["energy_j_rated"].as_f64().unwrap() - 0.5e-3 * 24.0 * 0.9).abs() < 1e-9);
    assert_eq!(smart["ocp_smart_log"]["CapacitorHealth"], 99, "a loss of 0.001 % is rounded down to 99");
    assert_eq!(smart["ocp_smart_log"]["PLPStartCount"], 1);
    assert_eq!(smart["ocp_smart_log"]["IncompleteShutdownCount"], 0);
}

#[test]
fn totals_are_sums_over_all_losses_and_a_hundred_losses_are_listed() {
    let mut drive = Drive::new(&spec(DRIVE, &["capacitor.capacitance='1mF'"]));
    for unit in 0..103 {
        write(&mut drive, unit % 7);
        drive.advance(drive.now() + ns(20 * MS));
        write(&mut drive, unit % 5);
        drive.advance(drive.now() + ns(MS / 10));
        drive.cut_power();
    }
    let (summary, _, power) = outputs(&mut drive);
    let (told, power) = (&summary["power"], power.unwrap());
    assert_eq!(told["losses"], 103);
    assert_eq!(told["list"].as_array().unwrap().len(), 100);
    let losses = power["losses"].as_array().unwrap();
    assert_eq!(losses.len(), 103);
    for (key, total) in told.as_object().unwrap() {
        if ["losses", "down_s", "list"].contains(&key.as_str()) {
            continue;
        }
        let sum: f64 = losses.iter().map(|loss| loss[key].as_f64().unwrap()).sum();
        assert!((total.as_f64().unwrap() - sum).abs() <= 1e-9 * sum.abs(), "{key}");
    }
}

#[test]
fn a_worn_out_capacitor_is_a_critical_warning() {
    let sets = ["capacitor.capacitance='1mF'", "capacitor.age='2190d'", "capacitor.temperature=60"];
    let mut drive = Drive::new(&spec(DRIVE, &sets));
    let (summary, smart, _) = outputs(&mut drive);
    assert_eq!(summary["capacitor"]["worn_out"], true);
    assert!((summary["capacitor"]["loss_share"].as_f64().unwrap() - 0.36).abs() < 1e-9);
    assert_eq!(smart["ocp_smart_log"]["CapacitorHealth"], 64);
    assert_eq!(smart["nvme_smart_log"]["critical_warning"], 1 << 4, "volatile memory backup");
}

#[test]
fn a_detection_is_in_the_summary_and_in_the_series() {
    let sets = ["capacitor.capacitance='1mF'", "cache.dirty_budget='measured'"];
    let mut drive = Drive::new(&spec(DRIVE, &sets));
    for unit in 0..40 {
        write(&mut drive, unit);
        drive.advance(drive.now() + ns(MS / 50));
    }
    assert!(drive.stats().power.detections.is_empty());
    drive.detect_budget();
    drive.run_until_idle(nandlab::drive::IDLE_LIMIT).unwrap();
    let (summary, _, power) = outputs(&mut drive);
    let detections = &summary["capacitor"]["detections"];
    assert_eq!(detections["count"], 1);
    let last = &detections["last"];
    assert_eq!(*last, power.unwrap()["detections"][0]);
    let number = |key: &str| last[key].as_f64().unwrap();
    assert_eq!(number("waited_s"), 0.0, "the detection on command has waited");
    assert!(number("sync_s") > 0.0 && number("drain_s") > 0.0 && number("recharge_s") >= 0.01);
    // The detection ends when it has written twice as many units as the cache has.
    assert!(number("drained_j") < number("energy_j"));
    assert!((2.0..2.1).contains(&number("measured_share")));
    assert_eq!(number("budget_share"), 1.0);
    assert_eq!(number("budget_pages"), (64.0 * number("budget_share")).floor());
    assert_eq!(summary["capacitor"]["budget_pages"], last["budget_pages"]);

    let dirty = column(&drive, "cache_dirty_pages");
    let most = dirty.iter().copied().fold(0.0, f64::max);
    assert_eq!(most, summary["cache"]["dirty_pages_max"].as_f64().unwrap());
    assert_eq!(*dirty.last().unwrap(), 0.0);
    let budget = column(&drive, "cache_budget_pages");
    assert_eq!(*budget.last().unwrap(), number("budget_pages"));
    assert!(budget.contains(&0.0), "the budget is not 0 during the detection");
    assert!(dirty[0] <= budget[0], "more units are dirty than the budget allows");
    let units = column(&drive, "capacitor_pages");
    assert!((units[0] - drive.capability_units()).abs() < 1e-3 * units[0]);
    assert!(units[0] > *units.last().unwrap(), "the cycle of the detection does not lower the capability");
}

#[test]
fn the_series_has_rows_of_an_emergency_flush() {
    let sets = ["capacitor.capacitance='10mF'", "cache.dirty_budget=1.0", "output.series_rows=1024"];
    let mut drive = Drive::new(&spec(DRIVE, &sets));
    for unit in 0..64 {
        write(&mut drive, unit);
        drive.advance(drive.now() + ns(MS / 100));
    }
    let cut = drive.now();
    drive.cut_power();
    drive.finish_stats();
    let programs: f64 = column(&drive, "program_flush").iter().sum();
    assert!(programs > 50.0, "{programs} pages are flushed");
    let [busy, span] = ["die_busy_mean", "interval_s"].map(|name| column(&drive, name));
    assert!(
        busy.iter().all(|&share| share <= 1.0 + 1e-9),
        "dies are busy for more than the interval: {busy:?}"
    );
    let rows = column(&drive, "time_s").into_iter().zip(column(&drive, "program_flush"));
    let begun = cut.seconds();
    assert!(rows.clone().filter(|row| row.1 > 0.0).count() > 10, "the flush is in one row");
    assert!(rows.filter(|row| row.1 > 0.0).all(|row| row.0 >= begun));
    let total: f64 = busy.iter().zip(span).map(|(share, span)| share * span * 2.0).sum();
    assert!((total - drive.die_busy_ns().seconds()).abs() < 1e-9);
}

#[test]
fn the_series_repeats_a_level_in_intervals_without_events() {
    let mut drive = Drive::new(&spec(DRIVE, &["cache.sync='none'", "output.series_rows=8"]));
    for unit in 0..10 {
        write(&mut drive, unit);
    }
    drive.advance(at(SECOND));
    drive.finish_stats();
    assert!(column(&drive, "cache_dirty_pages").iter().all(|&units| units == 10.0));
}

/// Plays requests in open loop; returns (arrival, time of completion, failed) in order of completion.
fn play(drive: &mut Drive, requests: Vec<(u64, Op, u64)>) -> Vec<(u64, u64, bool)> {
    let mut runner =
        Runner::new(Given(requests.into_iter()), Arrival::Trace { time_scale: 1.0 }, Beyond::Refuse);
    let mut done = Vec::new();
    let progress = runner
        .run(drive, u64::MAX, |c| done.push((c.request.arrival.ns(), c.completed.ns(), c.failed.is_some())))
        .unwrap();
    assert!(progress.is_done);
    assert_eq!(progress.completed, done.len() as u64);
    done
}

#[test]
fn no_latency_contains_an_outage() {
    let requests: Vec<_> = (0..200).map(|i| (i * MS, Op::Read, i % 50)).collect();
    let undisturbed = {
        let mut drive = Drive::new(&spec(DRIVE, &FILLED));
        drive.precondition(&mut |_| true);
        play(&mut drive, requests.clone())
    };
    let sets = [&FILLED[..], &["power.cut_at='100.5ms'"]].concat();
    let mut drive = Drive::new(&spec(DRIVE, &sets));
    drive.precondition(&mut |_| true);
    let done = play(&mut drive, requests);
    let down = drive.stats().power.down_ns.ns();
    assert!(down > MS, "recovery takes less time than reading the OOB of every page");
    assert_eq!(done.len(), 200);
    for (index, (now, before)) in done.iter().zip(&undisturbed).enumerate() {
        let shift = if index <= 100 { 0 } else { down };
        assert_eq!((now.0, now.1), (before.0 + shift, before.1 + shift), "request {index}");
    }
}

#[test]
fn requests_under_way_fail_at_power_loss_and_are_counted() {
    // The third request is under way at the power loss: it arrives 20 us before, and its read takes more than 50 us.
    let requests = vec![(0, Op::Read, 0), (MS, Op::Read, 1), (2 * MS, Op::Read, 2), (3 * MS, Op::Read, 3)];
    let sets = [&FILLED[..], &["power.cut_at='2.02ms'"]].concat();
    let mut drive = Drive::new(&spec(DRIVE, &sets));
    drive.precondition(&mut |_| true);
    let done = play(&mut drive, requests);
    let failed: Vec<bool> = done.iter().map(|request| request.2).collect();
    assert_eq!(failed, [false, false, true, false]);
    let (summary, ..) = outputs(&mut drive);
    assert_eq!(summary["requests"], 4);
    let reasons = serde_json::json!({ "uncorrectable": 0, "worn_out": 0, "power_lost": 1 });
    assert_eq!(summary["requests_failed"], reasons);
    assert_eq!(summary["host"]["read"]["count"], 3, "a latency is counted for the aborted request");
    assert_eq!(summary["power"]["aborted_requests"], 1);
}

#[test]
fn the_last_request_can_trigger_a_power_loss() {
    for depth in [None, Some(4)] {
        let requests: Vec<_> = (0..10).map(|i| (i * MS, Op::Write, i)).collect();
        let mut drive = Drive::new(&spec(DRIVE, &["power.cut_after_requests=10"]));
        let arrival = depth.map_or(Arrival::Trace { time_scale: 1.0 }, Arrival::QueueDepth);
        let mut runner = Runner::new(Given(requests.into_iter()), arrival, Beyond::Refuse);
        assert!(runner.run(&mut drive, u64::MAX, |_| {}).unwrap().is_done);
        assert_eq!(drive.stats().power.losses.len(), 1, "queue depth {depth:?}");
    }
}

#[test]
fn power_fails_once_after_the_set_number_of_requests() {
    let mut drive = Drive::new(&spec(DRIVE, &["power.cut_after_requests=4"]));
    let done = play(&mut drive, (0..10).map(|i| (i * 100 * MS, Op::Write, i)).collect());
    assert_eq!(done.len(), 10);
    assert_eq!(drive.stats().power.losses.len(), 1);
}
