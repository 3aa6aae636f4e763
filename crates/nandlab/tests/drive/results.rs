//! Results: write amplification in bytes, the steady state, and notes.

use crate::common::{TINY, at, ns, one, request, rest, spec, submit_with_few};
use nandlab::base::rng::Stream;
use nandlab::base::units::Time;
use nandlab::drive::Drive;
use nandlab::drive::spec::Spec;
use nandlab::host::Op;
use nandlab::report::{RunFacts, Stretch, Values, smart, summary};
use serde_json::Value;

fn finished(drive: &mut Drive) -> (Value, Value) {
    drive.finish_stats();
    (summary(drive, &RunFacts { complete: true, ..RunFacts::default() }), smart(drive))
}

/// Plays `writes` uniform random writes of `len` bytes, eight at a time.
fn write_at_random(drive: &mut Drive, writes: u32, len: u64) {
    let mut stream = Stream::new(7, "results");
    let places = drive.geometry().logical_bytes() / len;
    for _ in 0..writes {
        while drive.outstanding() >= 8 {
            assert!(drive.advance_to_completion(Time::NEVER));
        }
        let write = request(drive, Op::Write, stream.below(places) * len, len);
        drive.submit(&write).unwrap();
        drive.completions();
    }
    rest(drive);
}

/// Each write of 1 KiB programs a page of 4 KiB, that is four bytes per byte of the host. GC programs further pages.
#[test]
fn write_amplification_counts_bytes_and_agrees_with_smart() {
    let mut drive = Drive::new(&spec(TINY, &["precondition.method='pts'"]));
    drive.precondition(&mut |_| true);
    write_at_random(&mut drive, 2000, 1024);
    let (summary, smart) = finished(&mut drive);
    let number = |value: &Value| value.as_f64().unwrap();
    let media = number(&smart["ocp_smart_log"]["Physical media units written"]);
    let host = number(&summary["host"]["write"]["bytes"]);
    assert_eq!(host, 2000.0 * 1024.0);
    assert_eq!(smart["nvme_smart_log"]["data_units_written"], (host / 512_000.0).ceil() as u64);
    let waf = number(&summary["waf"]);
    assert!(
        (waf / (media / host) - 1.0).abs() < 1e-10,
        "the WAF is {waf}, but {media} bytes were programmed for {host} bytes"
    );
    assert!(waf > 4.0 && (waf / number(&summary["waf_pages"]) - 4.0).abs() < 1e-9);
    // The sum over the series equals the summary.
    let table = drive.stats().series.table(drive.geometry(), drive.array().shapes().first());
    let sum = |name: &str| match &table.columns.iter().find(|column| column.name == name).unwrap().values {
        Values::U64(values) => values.iter().sum::<u64>() as f64,
        _ => unreachable!("{name} is a count"),
    };
    assert_eq!((sum("bytes_programmed"), sum("bytes_write")), (media, host));
}

/// A read takes 1 us for the command, 50 us in the array, 10.24 us for the transfer (4096 bytes at 2.5 ns) and 15 us in
/// the decoder: 76.24 us. Its die is busy for 61.24 us, its channel for 11.24 us. All reads are of one page, so the
/// other of the two dies and the other channel are idle.
#[test]
fn commands_and_transfers_are_the_busy_time_of_a_channel() {
    const READS: u64 = 10;
    let mut drive = Drive::new(&spec(TINY, &["timing.command='1us'", "precondition.method='pts'"]));
    drive.precondition(&mut |_| true);
    let began = Stretch::begin(&drive);
    for _ in 0..READS {
        assert_eq!(one(&mut drive, Op::Read, 0, 4096), 76_240);
    }
    assert_eq!(drive.now(), at(READS * 76_240));
    assert_eq!(drive.channel_busy_ns(), ns(READS * 11_240));
    assert_eq!(drive.die_busy_ns(), ns(READS * 61_240));
    let (summary, _) = finished(&mut drive);
    let (row, table) =
        (began.row(&drive), drive.stats().series.table(drive.geometry(), drive.array().shapes().first()));
    let agrees =
        |value: f64, busy: f64| assert!((value / (busy / (2.0 * 76.24)) - 1.0).abs() < 1e-9, "{value}");
    for (part, busy) in [("die", 61.24), ("channel", 11.24)] {
        let share = format!("{part}_busy_share");
        agrees(summary[&share].as_f64().unwrap(), busy);
        agrees(row.iter().find(|(name, _)| *name == share).unwrap().1, busy);
        let mean = format!("{part}_busy_mean");
        match &table.columns.iter().find(|column| column.name == mean).unwrap().values {
            Values::F64(values) => agrees(values[0], busy),
            _ => unreachable!("{mean} is a share"),
        }
    }
    // A transfer under way counts with its time so far: 1 us of the command, 4 us of the transfer.
    let read = request(&drive, Op::Read, 0, 4096);
    drive.submit(&read).unwrap();
    drive.advance(at(READS * 76_240 + 55_000));
    assert_eq!(drive.channel_busy_ns(), ns(READS * 11_240 + 5_000));
}

#[test]
fn without_host_writes_there_is_no_amplification() {
    let mut drive = Drive::new(&spec(TINY, &["precondition.method='pts'"]));
    drive.precondition(&mut |_| true);
    let read = request(&drive, Op::Read, 0, 4096);
    drive.submit(&read).unwrap();
    rest(&mut drive);
    let (summary, _) = finished(&mut drive);
    assert_eq!((&summary["waf"], &summary["waf_pages"]), (&Value::Null, &Value::Null));
    let table = drive.stats().series.table(drive.geometry(), drive.array().shapes().first());
    let waf = table.columns.iter().find(|column| column.name == "waf").unwrap();
    assert!(
        matches!(&waf.values, Values::F64(values) if !values.is_empty() && values.iter().all(|v| v.is_nan()))
    );
}

/// Plays `requests` random writes on a new drive; returns the summary.
fn judged(spec: &Spec, requests: u32) -> Value {
    let mut drive = Drive::new(spec);
    drive.precondition(&mut |_| true);
    write_at_random(&mut drive, requests, 4096);
    finished(&mut drive).0
}

/// The drive is fresh, randomly filled or steady at the start. Each of its two planes has 64 blocks of 32 pages, which
/// is 2048 pages, 1638 of them logical. A run of the proposed length is long enough, and a steady run is still steady
/// at twice the length.
#[test]
fn steady_state_holds_in_longer_runs_and_the_proposed_length_suffices() {
    const DRIVE: &str = "[drive]\nchannels = 2\nchips_per_channel = 1\ndies_per_chip = 1\nplanes_per_die = 1\n\
        blocks_per_plane = 64\npages_per_block = 32\npage_size = '4KiB'\nop = 0.25\n\
        [workload]\nsynthetic = { requests = 1000, read_fraction = 0.0, size = '4KiB', address = 'uniform' }\n\
        arrival = { queue_depth = 8 }\n";
    for precondition in
        [&[][..], &["precondition.used=0.9", "precondition.valid=0.8"], &["precondition.method='pts'"]]
    {
        let spec = spec(DRIVE, precondition);
        let short = judged(&spec, 1000);
        assert_eq!(short["steady_state"]["verdict"], "too short", "{precondition:?}");
        let mut requests = short["steady_state"]["requests_needed"].as_u64().unwrap() as u32;
        let mut run = judged(&spec, requests);
        assert_ne!(run["steady_state"]["verdict"], "too short", "{precondition:?}: {requests} requests");
        while run["steady_state"]["verdict"] != "steady" {
            requests *= 2;
            assert!(requests < 200_000, "{precondition:?}: {}", run["steady_state"]);
            run = judged(&spec, requests);
        }
        let twice = judged(&spec, 2 * requests);
        assert_eq!(twice["steady_state"]["verdict"], "steady", "{precondition:?}: {requests} requests");
        let waf = |run: &Value| run["steady_state"]["waf"]["mean"].as_f64().unwrap();
        assert!(
            (waf(&twice) / waf(&run) - 1.0).abs() < 0.05,
            "{precondition:?}: {} and {}",
            waf(&run),
            waf(&twice)
        );
    }
}

/// Sequential writes have a WAF of 1 from the first write on. But a fresh drive is not steady until it erases as many
/// pages as it programs.
#[test]
fn a_drive_that_is_being_filled_is_not_steady() {
    let spec = spec(TINY, &["drive.op=0.25", "drive.blocks_per_plane=64"]);
    let of_times = |times: f64| {
        let mut drive = Drive::new(&spec);
        let (units, logical) = (drive.geometry().units, u64::from(drive.geometry().logical_units));
        for unit in 0..(times * f64::from(units)) as u64 {
            submit_with_few(&mut drive, Op::Write, unit % logical * 4096, 4096);
        }
        rest(&mut drive);
        finished(&mut drive).0["steady_state"].clone()
    };
    assert_eq!(of_times(0.99)["verdict"], "too short");
    let filled = of_times(1.03);
    assert_eq!((&filled["verdict"], &filled["waf"]["met"]), (&"not steady".into(), &true.into()), "{filled}");
    assert!(filled["erased_share"].as_f64().unwrap() < 0.2, "{filled}");
    let settled = of_times(4.0);
    assert_eq!((&settled["verdict"], &settled["waf"]["mean"]), (&"steady".into(), &1.0.into()), "{settled}");
}
