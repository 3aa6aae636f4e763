//! What the tests share: specs from text, and drives driven by hand.
#![allow(dead_code, unreachable_pub)]

pub mod schemes;

use nandlab::base::geometry::Lpn;
use nandlab::base::units::{Span, Time};
use nandlab::drive::spec::{self, RefreshPolicySpec, Spec};
use nandlab::drive::{Completion, Drive, FailReason, Failure};
use nandlab::host::{Op, Oracle, Request};
use nandlab::probe::Probe;
use std::path::Path;

/// One microsecond, one millisecond and one second. Tests count in plain nanoseconds; [`at`] and [`ns`] hand them to the
/// drive.
pub const US: u64 = nandlab::base::units::US.ns();
/// See [`US`].
pub const MS: u64 = nandlab::base::units::MS.ns();
/// See [`US`].
pub const SECOND: u64 = nandlab::base::units::SECOND.ns();

/// The time so many nanoseconds after the start.
pub const fn at(ns: u64) -> Time {
    Time::from_ns(ns)
}

/// A span of so many nanoseconds.
pub const fn ns(ns: u64) -> Span {
    Span::from_ns(ns)
}

/// A tiny drive: 2 channels x 1 chip x 1 die x 2 planes of 16 blocks of 8 pages.
pub const TINY: &str = r#"
[drive]
channels = 2
chips_per_channel = 1
dies_per_chip = 1
planes_per_die = 2
blocks_per_plane = 16
pages_per_block = 8
page_size = "4KiB"
cell = "mlc"
op = 0.5
endurance = 1000000
[timing]
read = "50us"
program = "900us"
erase = "3.5ms"
channel_ns_per_byte = 2.5
command = "0us"
decode = "15us"
"#;

/// The spec in `text` with `--set` settings.
pub fn spec(text: &str, sets: &[&str]) -> Spec {
    let sets: Vec<String> = sets.iter().map(|s| (*s).to_owned()).collect();
    match spec::load(text, "test.toml", Path::new("."), &sets) {
        Ok(loaded) => loaded.spec,
        Err(errors) => panic!("{errors}"),
    }
}

/// A request that arrives now.
pub fn request<P: Probe>(drive: &Drive<P>, op: Op, offset: u64, len: u64) -> Request {
    Request { arrival: drive.now(), op, fua: false, offset, len }
}

/// Idle GC begins only with more garbage than the blocks hold that internal streams may open, and none of them is open on a
/// drive that a test has just begun to fill. This adds so many blocks to every plane, each with one invalid page: full ones
/// that hold the last LPNs, whose first pages are written again. What is to be collected must have fewer valid pages,
/// and `gc.idle_valid_max` must leave these alone. `blocks` is a multiple of the pages of a block, so that no block stays
/// open, and allocation is static and goes through the planes first. Takes no time; returns the LPNs.
pub fn ballast<P: Probe>(drive: &mut Drive<P>, blocks: u32) -> std::ops::Range<u64> {
    let geometry = drive.geometry();
    assert!(blocks.is_multiple_of(geometry.pages_per_block));
    let (planes, row) = (geometry.planes, geometry.planes * geometry.pages_per_block);
    let first = (geometry.logical_pages - blocks * row) / row * row;
    let lpns = first..first + blocks * row;
    let again = lpns.clone().step_by(row as usize).flat_map(|lpn| lpn..lpn + planes);
    lpns.clone().chain(again).for_each(|lpn| _ = drive.write_now(Lpn(lpn)));
    lpns.start.into()..lpns.end.into()
}

/// The LPN of write number `n` of those that leave something valid in every block, so that only GC can free it: of 32 writes
/// four go to the LPNs from 8 to `end`, one after the other, and all others to the first eight.
pub fn mostly_hot(n: u64, end: u64) -> u64 {
    let (round, place) = (n / 8, n % 8);
    if round % 4 == 3 && place >= 4 { 8 + (4 * (round / 4) + place - 4) % (end - 8) } else { place }
}

/// Submits a request as soon as no more than four are outstanding.
pub fn submit_with_few<P: Probe>(drive: &mut Drive<P>, op: Op, offset: u64, len: u64) {
    while drive.outstanding() > 4 {
        drive.completions();
        assert!(drive.advance_to_completion(Time::NEVER));
    }
    let request = request(drive, op, offset, len);
    drive.submit(&request).unwrap();
}

/// Submits one request, simulates until it is completed, and returns its latency in nanoseconds.
pub fn one<P: Probe>(drive: &mut Drive<P>, op: Op, offset: u64, len: u64) -> u64 {
    let request = request(drive, op, offset, len);
    drive.submit(&request).expect("the request fits");
    assert!(drive.advance_to_completion(Time::NEVER), "the request is completed");
    let completions: Vec<_> = drive.completions().collect();
    assert_eq!(completions.len(), 1);
    (completions[0].completed - completions[0].request.arrival).ns()
}

/// A preconditioned drive under the oracle, which has been told what is there.
pub fn with_oracle(spec: &Spec) -> Drive<Oracle> {
    let mut drive = Drive::with_probe(spec, Oracle::default());
    drive.precondition(&mut |_| true);
    if matches!(spec.precondition, nandlab::drive::spec::PreconditionSpec::Fill { .. }) {
        drive.expect_preconditioned(|oracle| oracle);
    }
    drive
}

/// Events after which what is outstanding should have been completed.
pub const EVENTS_MAX: u64 = 20_000_000;

/// How long a drive may take to come to rest.
pub const IDLE: Span = nandlab::drive::IDLE_LIMIT;

/// A drive that refreshes as fast as it can is not waited for any longer: it never comes to rest.
pub const REST: Span = Span::from_ns(10 * SECOND);

/// Lets the drive come to rest, as far as it can.
pub fn rest<P: Probe>(drive: &mut Drive<P>) {
    let mut events = 0;
    while drive.outstanding() > 0 {
        assert!(drive.advance_by_event(Time::NEVER), "nothing happens: {:?}", drive.failure());
        events += 1;
        assert!(
            events < EVENTS_MAX,
            "{} requests are outstanding after {events} events",
            drive.outstanding()
        );
    }
    match drive.run_until_idle(REST + drive.spec().gc.idle_after_ns) {
        Ok(()) => {}
        Err(Failure::Restless { .. }) if drive.spec().refresh.policy != RefreshPolicySpec::None => {}
        Err(failure) => panic!("{failure}"),
    }
}

/// Checks why a request has failed. (Not in which of its pages: others may have written them since.)
pub fn confirm<P: Probe>(drive: &Drive<P>, done: &Completion) {
    let array = drive.array();
    match done.failed {
        None => {}
        Some(FailReason::Uncorrectable) => {
            assert!(drive.stats().ecc.uncorrectable > 0, "{done:?}, and every read was decoded");
        }
        Some(FailReason::WornOut) => {
            let endurance = drive.spec().drive.endurance;
            assert!(
                array.blocks.iter().any(|block| block.pe_cycles + 1 >= endurance),
                "{done:?}, and no block is near its endurance"
            );
        }
        Some(FailReason::PowerLost) => {
            assert!(!drive.stats().power.losses.is_empty(), "{done:?}, and power has not failed");
        }
    }
}

/// Ends a run: everything completes, the audit holds, the oracle has no complaint.
pub fn settle(drive: &mut Drive<Oracle>) {
    rest(drive);
    drive.audit().unwrap_or_else(|e| panic!("audit: {e}"));
    drive.probe().verdict().unwrap_or_else(|e| panic!("oracle: {e}"));
}

/// Reads every logical page under the oracle: whatever is mapped at the end reads back.
pub fn read_everything(drive: &mut Drive<Oracle>) {
    let page = u64::from(drive.geometry().page_bytes);
    for lpn in 0..u64::from(drive.geometry().logical_pages) {
        let read = request(drive, Op::Read, lpn * page, page);
        drive.submit(&read).unwrap();
    }
    settle(drive);
}
