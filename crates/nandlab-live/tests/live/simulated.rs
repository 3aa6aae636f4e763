//! The simulated drive as a backend: its bytes are those of a vector, also after power losses.

use nandlab::base::geometry::Lpn;
use nandlab::base::units::{Span, Time};
use nandlab::drive::{Version, spec};
use nandlab_live::backend::{Backend, Errno, Extent, Failure, Op, Order, Request};
use nandlab_live::simulated::{Options, Simulated, Speed};
use proptest::prelude::*;
use serde_json::Value;
use std::path::Path;

/// One die with two planes of 24 blocks of 16 pages; half of them are for the host.
pub(crate) const BASE: &str = r#"
[drive]
channels = 1
chips_per_channel = 1
dies_per_chip = 1
planes_per_die = 2
blocks_per_plane = 24
pages_per_block = 16
page_size = "4KiB"
cell = "slc"
op = 1.0
endurance = 1000000
[timing]
read = "50us"
program = "300us"
erase = "1ms"
"#;

pub(crate) const UNIT: u64 = 4096;

/// Drives whose data takes different ways: directly, through the write buffer, through the write cache with and without a
/// capacitor, through a write buffer that a capacitor protects, with a demand map, and with placement handles.
pub(crate) const KINDS: [&[&str]; 8] = [
    &[],
    &["ftl.buffer=64KiB", "drive.page_size=16KiB", "ftl.mapping_unit=4KiB"],
    &["cache.size=64KiB", "cache.access=1us"],
    &["cache.size=64KiB", "cache.access=1us", "cache.flush_to=cache", "capacitor.capacitance=10mF"],
    &[
        "ftl.buffer=64KiB",
        "drive.page_size=16KiB",
        "ftl.mapping_unit=4KiB",
        "cache.flush_to=cache",
        "capacitor.capacitance=10mF",
    ],
    &["ftl.map=demand", "drive.pages_per_block=32"],
    &["drive.cell=mlc", "drive.pages_per_block=32"],
    &["placement.handles=3", "placement.ranges=[{ to = '32KiB', placement = 2 }]"],
];

/// The kinds of drive that lose no flushed data: planar MLC without a capacitor loses flushed pages to torn programs.
pub(crate) fn kinds_that_keep_flushed_data() -> impl Iterator<Item = &'static [&'static str]> {
    KINDS.into_iter().filter(|sets| !sets.contains(&"drive.cell=mlc"))
}

pub(crate) const MAX: Speed = Speed::Max { gather: 1 };

pub(crate) fn options(speed: Speed) -> Options {
    Options { speed, memory_max: 1 << 30, cut_every: None, explain: None, checkpoint: None, kept: None }
}

pub(crate) fn drive(sets: &[&str], options: &Options) -> Simulated {
    let sets: Vec<String> = sets.iter().map(ToString::to_string).collect();
    let loaded = spec::load(BASE, "test", Path::new("."), &sets).unwrap_or_else(|error| panic!("{error}"));
    Simulated::build(&loaded.spec, options, &mut |_| true).expect("the drive needs no preconditioning")
}

/// A request with its outcome: data of a read, or the failure.
pub(crate) type Outcome = Result<Vec<u8>, Failure>;

pub(crate) fn request(op: Op, offset: u64, len: u64) -> Request {
    Request { op, offset, len: len as u32, fua: false, placement: 0 }
}

/// Takes the completions that there are.
fn take(drive: &mut Simulated, outcomes: &mut [Option<Outcome>], requests: &[(Request, Vec<u8>)]) {
    while let Some(done) = drive.completed() {
        let mut data = Vec::new();
        if requests[done.id as usize].0.op == Op::Read && done.result.is_ok() {
            drive.take(done.id, &mut data);
        }
        let outcome = &mut outcomes[done.id as usize];
        assert!(outcome.is_none(), "a request is completed once");
        *outcome = Some(done.result.map(|()| data));
    }
}

/// Submits requests together, and completes them.
pub(crate) fn run(drive: &mut Simulated, requests: &[(Request, Vec<u8>)]) -> Vec<Outcome> {
    let mut outcomes = vec![None; requests.len()];
    for (id, (request, payload)) in (0..).zip(requests) {
        if let Err(failure) = drive.submit(id, Time::START, request, payload) {
            outcomes[id as usize] = Some(Err(failure));
        }
    }
    while outcomes.iter().any(Option::is_none) {
        assert!(drive.next_event().is_some(), "the drive has work");
        drive.advance(Time::START);
        take(drive, &mut outcomes, requests);
    }
    outcomes.into_iter().flatten().collect()
}

pub(crate) fn one(drive: &mut Simulated, request: Request, payload: &[u8]) -> Outcome {
    run(drive, &[(request, payload.to_vec())]).remove(0)
}

pub(crate) fn read(drive: &mut Simulated, offset: u64, len: u64) -> Outcome {
    one(drive, request(Op::Read, offset, len), &[])
}

pub(crate) fn write(drive: &mut Simulated, offset: u64, payload: &[u8]) {
    one(drive, request(Op::Write, offset, payload.len() as u64), payload).expect("a write succeeds");
}

pub(crate) fn order(drive: &mut Simulated, order: Order) -> Value {
    drive.order(Time::START, order).unwrap_or_else(|error| panic!("{order:?}: {error}"))
}

/// A step of a client on a range of the drive's first bytes.
#[derive(Clone, Debug)]
pub(crate) struct Step {
    pub(crate) kind: u8,
    pub(crate) offset: u64,
    pub(crate) len: u64,
    pub(crate) byte: u8,
    pub(crate) fua: bool,
}

/// Bytes of the drive that the steps use, so that they meet often.
pub(crate) const USED: u64 = 48 * UNIT;

pub(crate) fn steps() -> impl Strategy<Value = Vec<Vec<Step>>> {
    let place = prop_oneof![
        (0..USED, 1..3 * UNIT),
        (0..48u64, 1..6u64).prop_map(|(at, units)| (at * UNIT, units * UNIT))
    ];
    let step = (0..10u8, place, 1..=255u8, any::<bool>()).prop_map(|(kind, (offset, len), byte, fua)| Step {
        kind,
        offset,
        len: len.min(USED - offset),
        byte,
        fua,
    });
    proptest::collection::vec(proptest::collection::vec(step, 1..12), 1..60)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(40))]

    /// Requests that are outstanding together do not overlap in bytes, but meet in units.
    #[test]
    fn bytes_are_those_of_a_vector(batches in steps(), kind in 0..KINDS.len(), gather in 1..5u32) {
        let mut drive = drive(KINDS[kind], &options(Speed::Max { gather }));
        let unit = u64::from(drive.drive().geometry().unit_bytes);
        let mut twin = vec![0u8; USED as usize];
        for batch in batches {
            let mut requests: Vec<(Request, Vec<u8>)> = Vec::new();
            let mut expected: Vec<Option<Vec<u8>>> = Vec::new();
            for Step { kind, offset, len, byte, fua } in batch {
                let overlaps = |(other, _): &(Request, Vec<u8>)| {
                    offset < other.offset + u64::from(other.len) && other.offset < offset + len
                };
                if requests.iter().any(overlaps) {
                    continue;
                }
                let range = offset as usize..(offset + len) as usize;
                let (op, payload) = match kind {
                    0..4 => (Op::Write, (0..len).map(|at| byte.wrapping_add((at / 512) as u8)).collect()),
                    4..7 => (Op::Read, Vec::new()),
                    7 => (Op::WriteZeroes { no_hole: false, fast: false }, Vec::new()),
                    8 => (Op::WriteZeroes { no_hole: true, fast: false }, Vec::new()),
                    _ if fua => (Op::Flush, Vec::new()),
                    _ => {
                        // A byte that is deallocated without its whole unit keeps its data.
                        let (first, end) = (offset.next_multiple_of(unit), (offset + len) / unit * unit);
                        if first < end {
                            twin[first as usize..end as usize].fill(0);
                        }
                        (Op::Trim, Vec::new())
                    }
                };
                expected.push((op == Op::Read).then(|| twin[range.clone()].to_vec()));
                match op {
                    Op::Write => twin[range].copy_from_slice(&payload),
                    Op::WriteZeroes { .. } => twin[range].fill(0),
                    _ => {}
                }
                let of = if op == Op::Flush { request(op, 0, 0) } else { Request { fua, ..request(op, offset, len) } };
                requests.push((of, payload));
            }
            let outcomes = run(&mut drive, &requests);
            for ((outcome, expected), (request, _)) in outcomes.iter().zip(&expected).zip(&requests) {
                let data = outcome.as_ref().unwrap_or_else(|failure| panic!("{request:?}: {failure:?}"));
                if let Some(expected) = expected {
                    prop_assert!(data == expected, "{:?} returns other bytes", request);
                }
            }
        }
        let found = read(&mut drive, 0, USED).unwrap();
        prop_assert!(found == twin);
        drive.drive().audit().unwrap();
    }
}

/// A unit that says which write it is.
pub(crate) fn stamped(lpn: u64, number: u64) -> Vec<u8> {
    let mut unit = vec![(number % 251) as u8 + 1; UNIT as usize];
    unit[..8].copy_from_slice(&number.to_le_bytes());
    unit[8..16].copy_from_slice(&lpn.to_le_bytes());
    unit
}

/// The number of the write whose data a unit has; 0 for zeros.
pub(crate) fn number_of(lpn: u64, unit: &[u8]) -> u64 {
    if unit.iter().all(|&byte| byte == 0) {
        return 0;
    }
    let number = u64::from_le_bytes(unit[..8].try_into().unwrap());
    assert!(unit == stamped(lpn, number), "LPN {lpn} has data that nobody has written there");
    number
}

fn lpns(loss: &Value, promise: &str) -> Vec<u64> {
    loss[promise].as_array().unwrap().iter().map(|lost| lost["lpn"].as_u64().unwrap()).collect()
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(60))]

    /// Power fails while writes are outstanding. Every unit reads as one of its writes: no older one than the last that was
    /// flushed, unless the drive says that it is lost, and then it reads as an error.
    #[test]
    fn power_losses_cost_what_the_drive_says(
        writes in proptest::collection::vec((0..40u64, 0..8u8), 20..400),
        cuts in proptest::collection::vec(5..120usize, 1..4),
        kind in 0..KINDS.len(),
        wait in 0..6u32,
    ) {
        let mut drive = drive(KINDS[kind], &options(MAX));
        // By LPN: numbers of the newest write, of the newest completed one, and of the newest flushed one.
        let (mut newest, mut completed, mut flushed) = ([0u64; 40], [0u64; 40], [0u64; 40]);
        let (mut number, mut next) = (0u64, 0usize);
        for cut in cuts.iter().chain([&usize::MAX]) {
            let mut open: Vec<Option<(u64, u64)>> = Vec::new();
            let mut is_flushing: Vec<Option<[u64; 40]>> = Vec::new();
            let settle = |drive: &mut Simulated, open: &mut Vec<Option<(u64, u64)>>, is_flushing: &mut Vec<Option<[u64; 40]>>, completed: &mut [u64; 40], flushed: &mut [u64; 40]| {
                while let Some(done) = drive.completed() {
                    done.result.unwrap();
                    if let Some((lpn, number)) = open[done.id as usize].take() {
                        completed[lpn as usize] = completed[lpn as usize].max(number);
                    }
                    if let Some(before) = is_flushing[done.id as usize].take() {
                        for (flushed, before) in flushed.iter_mut().zip(before) {
                            *flushed = before.max(*flushed);
                        }
                    }
                }
            };
            for &(lpn, what) in writes[next..].iter().take(*cut) {
                next += 1;
                let id = open.len() as u64;
                // Two outstanding writes of a unit may be admitted in any order.
                if open.iter().flatten().any(|&(other, _)| other == lpn) {
                    continue;
                }
                if what == 0 {
                    is_flushing.push(Some(completed));
                    open.push(None);
                    drive.submit(id, Time::START, &request(Op::Flush, 0, 0), &[]).unwrap();
                } else {
                    number += 1;
                    newest[lpn as usize] = number;
                    is_flushing.push(None);
                    open.push(Some((lpn, number)));
                    drive.submit(id, Time::START, &request(Op::Write, lpn * UNIT, UNIT), &stamped(lpn, number)).unwrap();
                }
                if u32::from(what) > wait {
                    drive.advance(Time::START);
                }
                settle(&mut drive, &mut open, &mut is_flushing, &mut completed, &mut flushed);
            }
            order(&mut drive, Order::Cut);
            prop_assert!(drive.is_off() && drive.take_power_loss());
            settle(&mut drive, &mut open, &mut is_flushing, &mut completed, &mut flushed);
            prop_assert!(drive.order(Time::START, Order::Cut).is_err());
            let refused = drive.submit(0, Time::START, &request(Op::Read, 0, 1), &[]).unwrap_err();
            prop_assert_eq!(refused.errno, Errno::Io);
            let loss = order(&mut drive, Order::Restore);
            let (covered, acknowledged) = (lpns(&loss, "covered"), lpns(&loss, "acknowledged"));
            for lpn in 0..40 {
                let at = lpn as usize;
                let outcome = read(&mut drive, lpn * UNIT, UNIT);
                let found = match &outcome {
                    Ok(unit) => number_of(lpn, unit),
                    Err(failure) => {
                        prop_assert_eq!(failure.errno, Errno::Io);
                        prop_assert_eq!(failure.at, Some(lpn * UNIT));
                        prop_assert!(covered.contains(&lpn) || acknowledged.contains(&lpn), "LPN {} is an error", lpn);
                        // A write of a part leaves the rest unreadable, a write of the whole does not.
                        write(&mut drive, lpn * UNIT + 512, &[1; 512]);
                        prop_assert!(read(&mut drive, lpn * UNIT, UNIT).is_err());
                        number += 1;
                        write(&mut drive, lpn * UNIT, &stamped(lpn, number));
                        number_of(lpn, &read(&mut drive, lpn * UNIT, UNIT).unwrap())
                    }
                };
                prop_assert!(outcome.is_err() || found <= newest[at]);
                prop_assert!(found >= flushed[at], "LPN {} has write {} of {:?}", lpn, found, flushed[at]);
                if !acknowledged.contains(&lpn) && !covered.contains(&lpn) {
                    prop_assert!(found >= completed[at], "LPN {} has write {} and was not listed", lpn, found);
                } else if outcome.is_ok() {
                    prop_assert!(found < completed[at], "LPN {} is listed and has its newest write", lpn);
                }
                (newest[at], completed[at]) = (found.max(number), found);
                flushed[at] = flushed[at].min(found);
            }
            drive.drive().audit().unwrap();
        }
    }
}

#[test]
fn only_unmapped_units_are_holes() {
    for sets in [KINDS[0], KINDS[1], KINDS[2]] {
        let mut drive = drive(sets, &options(MAX));
        write(&mut drive, 2 * UNIT + 100, &[7; 100]);
        write(&mut drive, 5 * UNIT, &vec![0; 2 * UNIT as usize]);
        one(&mut drive, request(Op::Trim, 6 * UNIT, UNIT), &[]).unwrap();
        let mut extents = Vec::new();
        drive.extents(100, 8 * UNIT, 100, &mut extents);
        let expected =
            [(2 * UNIT - 100, true), (UNIT, false), (2 * UNIT, true), (UNIT, false), (2 * UNIT + 100, true)];
        let extent = |(len, hole)| Extent { len, hole, zero: hole };
        assert_eq!(extents, expected.map(extent), "{sets:?}");
        extents.clear();
        drive.extents(100, 8 * UNIT, 2, &mut extents);
        assert_eq!(extents.len(), 2);
    }
}

#[test]
fn the_newest_version_is_that_of_cache_buffer_and_flash() {
    for sets in &KINDS[..5] {
        let mut drive = drive(sets, &options(MAX));
        assert_eq!(drive.drive().version(Lpn(3)), Version::Unmapped);
        let mut before = 0;
        for number in 1..4 {
            drive.submit(0, Time::START, &request(Op::Write, 3 * UNIT, UNIT), &stamped(3, number)).unwrap();
            // The write is admitted when it is submitted.
            let Version::Written(version) = drive.drive().version(Lpn(3)) else { panic!("{sets:?}") };
            assert!(version > before, "{sets:?}");
            before = version;
            drive.advance(Time::START);
            assert!(drive.completed().is_some());
            assert_eq!(drive.drive().version(Lpn(3)), Version::Written(version));
        }
        one(&mut drive, request(Op::Trim, 3 * UNIT, UNIT), &[]).unwrap();
        assert_eq!(drive.drive().version(Lpn(3)), Version::Unmapped, "{sets:?}");
    }
}

#[test]
fn data_without_room_is_refused_and_what_there_is_stays() {
    let limit = Options { memory_max: 10 * UNIT, ..options(MAX) };
    let mut drive = drive(&[], &limit);
    for lpn in 0..10 {
        write(&mut drive, lpn * UNIT, &stamped(lpn, 1));
    }
    let refused = one(&mut drive, request(Op::Write, 20 * UNIT, UNIT), &stamped(20, 1)).unwrap_err();
    assert_eq!(refused.errno, Errno::NoSpace);
    write(&mut drive, 21 * UNIT, &vec![0; UNIT as usize]);
    for lpn in 0..10 {
        assert_eq!(number_of(lpn, &read(&mut drive, lpn * UNIT, UNIT).unwrap()), 1);
    }
    assert_eq!(read(&mut drive, 20 * UNIT, UNIT).unwrap(), vec![0; UNIT as usize]);
}

#[test]
fn versions_that_nobody_can_read_are_dropped() {
    let mut drive = drive(&[], &options(MAX));
    for number in 1..20_000 {
        write(&mut drive, number % 30 * UNIT, &stamped(number % 30, number));
    }
    let stat = order(&mut drive, Order::Stat);
    let units = stat["contents"]["units"].as_u64().unwrap();
    // Flash has 768 units; those written since the last search come on top.
    assert!((30..=768 + 1024).contains(&units), "{units} units");
    for lpn in 0..30 {
        let expected = (1..20_000u64).filter(|number| number % 30 == lpn).max().unwrap();
        assert_eq!(number_of(lpn, &read(&mut drive, lpn * UNIT, UNIT).unwrap()), expected);
    }
}

#[test]
fn a_worn_out_drive_answers_with_errors() {
    let mut drive = drive(&["drive.endurance=3"], &options(MAX));
    let mut failed = 0;
    for number in 1..20_000u64 {
        let lpn = number % 30;
        let outcome = one(&mut drive, request(Op::Write, lpn * UNIT, UNIT), &stamped(lpn, number));
        if let Err(failure) = outcome {
            assert_eq!(failure.errno, Errno::Io);
            failed += 1;
            if failed == 100 {
                break;
            }
        }
    }
    assert_eq!(failed, 100);
    for lpn in 0..30 {
        number_of(lpn, &read(&mut drive, lpn * UNIT, UNIT).unwrap());
    }
}

#[test]
fn power_fails_by_itself_and_returns() {
    let every = Options { cut_every: Some(Span::from_ns(10_000_000)), ..options(MAX) };
    for (options, sets) in [(every, &[][..]), (options(MAX), &["power.cut_after_requests=50"][..])] {
        let mut drive = drive(sets, &options);
        let mut losses = 0;
        for number in 1..200u64 {
            drive
                .submit(
                    number,
                    Time::START,
                    &request(Op::Write, number % 30 * UNIT, UNIT),
                    &stamped(number % 30, number),
                )
                .unwrap();
            drive.advance(Time::START);
            let is_done = drive.completed().is_some_and(|done| done.result.is_ok());
            let is_lost = drive.take_power_loss();
            assert!(is_done || is_lost, "a request is completed or lost");
            losses += u32::from(is_lost);
        }
        assert!(!drive.is_off());
        // A write takes 0.3 ms.
        let expected = if sets.is_empty() { 4..8 } else { 1..2 };
        assert!(expected.contains(&losses), "{losses} losses with {sets:?}");
    }
}

#[test]
fn at_a_speed_a_request_is_due_when_the_drive_has_done_it() {
    for factor in [1.0, 0.1, 7.3] {
        let mut drive = drive(&[], &options(Speed::Factor(factor)));
        let arrival = Time::from_ns(5_000_000);
        drive.advance(arrival);
        drive.submit(3, arrival, &request(Op::Write, 0, UNIT), &stamped(0, 1)).unwrap();
        let mut now = arrival;
        let done = loop {
            drive.advance(now);
            if let Some(done) = drive.completed() {
                break done;
            }
            let next = drive.next_event().unwrap();
            assert!(next > now, "the drive waits for a time to come");
            now = next;
        };
        let due = done.due.unwrap();
        let took = due.saturating_sub(arrival).ns() as f64;
        // 300 us of program, and command and transfer.
        let simulated = took * factor;
        assert!((300_000.0..340_000.0).contains(&simulated), "{simulated} ns at {factor}");
        assert!(now >= due && now.ns() - due.ns() <= 2);
    }
}

#[test]
fn data_in_a_file_reads_the_same() {
    let checkpoint = crate::recording::Place::new();
    let in_file = Options { memory_max: 4 * UNIT, checkpoint: Some(checkpoint.0.clone()), ..options(MAX) };
    let mut drive = drive(&[], &in_file);
    for lpn in 0..100 {
        write(&mut drive, lpn * UNIT, &stamped(lpn, lpn + 1));
    }
    for lpn in 0..100 {
        assert_eq!(number_of(lpn, &read(&mut drive, lpn * UNIT, UNIT).unwrap()), lpn + 1);
    }
    let stat = order(&mut drive, Order::Stat);
    assert_eq!(stat["contents"]["memory_bytes"], 0);
    assert_eq!(stat["contents"]["file_bytes"], 100 * UNIT);
}
