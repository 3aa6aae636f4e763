//! Helpers of the tests: they load specs from text, and operate a drive request by request.
#![allow(dead_code, unreachable_pub)]

pub mod schemes;

use nandlab::base::geometry::Lpn;
use nandlab::base::units::{Span, Time};
use nandlab::drive::spec::{self, RefreshPolicySpec, Spec};
use nandlab::drive::{Completion, Drive, FailReason, Failure};
use nandlab::host::{Op, Oracle, Request};
use nandlab::probe::Probe;
use nandlab::report::Taps;
use nandlab::report::{RunFacts, summary};
use std::path::Path;

/// One microsecond in nanoseconds. Tests calculate in plain nanoseconds; [`at`] and [`ns`] convert them for the drive.
pub const US: u64 = nandlab::base::units::US.ns();
/// One millisecond in nanoseconds.
pub const MS: u64 = nandlab::base::units::MS.ns();
/// One second in nanoseconds.
pub const SECOND: u64 = nandlab::base::units::SECOND.ns();

/// The time `ns` nanoseconds after the start.
pub const fn at(ns: u64) -> Time {
    Time::from_ns(ns)
}

/// A span of `ns` nanoseconds.
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
program = "900us"
erase = "3.5ms"
channel_ns_per_byte = 2.5
command = "0us"
"#;

/// The spec in `text` with the overrides `sets`.
pub fn spec(text: &str, sets: &[&str]) -> Spec {
    let sets: Vec<String> = sets.iter().map(|s| (*s).to_owned()).collect();
    match spec::load(text, "test.toml", Path::new("."), &sets) {
        Ok(loaded) => loaded.spec,
        Err(errors) => panic!("{errors}"),
    }
}

/// A request that arrives now.
pub fn request<P: Probe>(drive: &Drive<P>, op: Op, offset: u64, len: u64) -> Request {
    Request::new(op, offset, len).at(drive.now())
}

/// Adds `superblocks` full superblocks to every lane, each with one invalid unit. Takes no simulated time; returns the
/// LPNs of the added data.
///
/// Idle GC begins only when the garbage of a lane exceeds the size of the superblocks that internal streams may open,
/// and on a drive with little data no such superblock is open. So a test of idle GC needs this garbage. The added
/// superblocks hold the last LPNs of the drive; the first unit of each is then written again. The superblocks that a
/// test expects GC to collect must have fewer valid units, and `gc.idle_valid_max` must exclude the added superblocks.
/// `superblocks` is a multiple of the units of a superblock, so that no superblock remains open. Allocation must be
/// static, planes first.
pub fn ballast<P: Probe>(drive: &mut Drive<P>, superblocks: u32) -> std::ops::Range<u64> {
    let geometry = drive.geometry();
    assert!(superblocks.is_multiple_of(geometry.units_per_superblock));
    let (lanes, row) = (geometry.lanes, geometry.lanes * geometry.units_per_superblock);
    let first = (geometry.logical_units - superblocks * row) / row * row;
    let lpns = first..first + superblocks * row;
    let again = lpns.clone().step_by(row as usize).flat_map(|lpn| lpn..lpn + lanes);
    lpns.clone().chain(again).for_each(|lpn| _ = drive.write_now(Lpn(lpn)));
    lpns.start.into()..lpns.end.into()
}

/// Returns the LPN of write number `n` of a workload that leaves a valid unit in every superblock, so that only GC can
/// free the superblock. Four of 32 writes go to the LPNs from 8 to `end`, sequentially; all others go to the first
/// eight LPNs.
pub fn mostly_hot(n: u64, end: u64) -> u64 {
    let (round, place) = (n / 8, n % 8);
    if round % 4 == 3 && place >= 4 { 8 + (4 * (round / 4) + place - 4) % (end - 8) } else { place }
}

/// Waits until fewer than `depth` requests are outstanding.
pub fn wait_for_fewer<P: Probe>(drive: &mut Drive<P>, depth: u32) {
    while drive.outstanding() >= depth {
        assert!(drive.advance_to_completion(Time::NEVER));
        drive.completions().for_each(drop);
    }
}

/// Lets the drive come to the end of its work, and audits it; returns the text of its summary.
pub fn summary_at_the_end<P: Probe>(drive: &mut Drive<P>) -> String {
    drive.run_until_idle(nandlab::drive::IDLE_LIMIT).unwrap();
    drive.finish_stats();
    drive.audit().unwrap();
    serde_json::to_string_pretty(&summary(drive, &RunFacts::default())).unwrap()
}

/// Waits until at most four requests are outstanding, then submits a request.
pub fn submit_with_few<P: Probe>(drive: &mut Drive<P>, op: Op, offset: u64, len: u64) {
    wait_for_fewer(drive, 5);
    let request = request(drive, op, offset, len);
    drive.submit(&request).unwrap();
}

/// Submits one request, simulates until it is completed, and returns its latency in nanoseconds.
pub fn one<P: Probe>(drive: &mut Drive<P>, op: Op, offset: u64, len: u64) -> u64 {
    let request = request(drive, op, offset, len);
    drive.submit(&request).expect("the request fits");
    assert!(drive.advance_to_completion(Time::NEVER), "the request is not completed");
    let completions: Vec<_> = drive.completions().collect();
    assert_eq!(completions.len(), 1);
    (completions[0].completed - completions[0].request.arrival).ns()
}

/// Returns a preconditioned drive with the oracle; the oracle expects the data of the preconditioned units.
pub fn with_oracle(spec: &Spec) -> Drive<Oracle> {
    let mut drive = Drive::with_probe(spec, Oracle::default());
    drive.precondition(&mut |_| true);
    if matches!(spec.precondition, nandlab::drive::spec::PreconditionSpec::Fill { .. }) {
        drive.expect_preconditioned(|oracle| oracle);
    }
    drive
}

/// Returns the set of the oracle and one more observer.
pub fn oracle_and(observer: impl Probe) -> Taps {
    Taps::new(Some(Oracle::default()), None).with(observer)
}

/// Returns the observer of this type that is in the set.
pub fn seen<T: Probe>(drive: &Drive<Taps>) -> &T {
    drive.probe().observer().expect("the set has such an observer")
}

/// Limit of the events within which all outstanding requests must be completed.
pub const EVENTS_MAX: u64 = 20_000_000;

/// Limit of the simulated time in which a drive must come to rest.
pub const IDLE: Span = nandlab::drive::IDLE_LIMIT;

/// Limit of the simulated time that [`rest`] waits: a drive whose refresh falls behind never comes to rest.
pub const REST: Span = Span::from_ns(10 * SECOND);

/// Completes all requests, then lets the drive come to rest; a drive with refresh may remain busy.
pub fn rest<P: Probe>(drive: &mut Drive<P>) {
    let mut events = 0;
    while drive.outstanding() > 0 {
        assert!(drive.advance_unless_at_rest(), "no event is pending: {:?}", drive.failure());
        events += 1;
        assert!(
            events < EVENTS_MAX,
            "{} requests are outstanding after {events} events",
            drive.outstanding()
        );
    }
    // A drive whose superblocks are always due may rest often without coming to the end of its age clock.
    let refreshes = drive.spec().refresh.policy != RefreshPolicySpec::None;
    let most = if refreshes { (drive.end() - drive.now()) / 20 } else { Span::MAX };
    match drive.run_until_idle((REST + drive.spec().gc.idle_after_ns).min(most)) {
        Ok(()) => {}
        Err(Failure::Restless { .. }) if refreshes => {}
        Err(failure) => panic!("{failure}"),
    }
}

/// Checks that the drive's records confirm why a request failed. (The unit whose read failed is not checked: it
/// may have been written since.)
pub fn confirm<P: Probe>(drive: &Drive<P>, done: &Completion) {
    let array = drive.array();
    match done.failed {
        None => {}
        Some(FailReason::Uncorrectable) => {
            assert!(drive.stats().ecc.uncorrectable > 0, "{done:?}, but every read was decoded");
        }
        Some(FailReason::WornOut) => {
            let endurance = drive.spec().drive.endurance;
            assert!(
                array.superblocks.iter().any(|superblock| superblock.pe_cycles + 1 >= endurance),
                "{done:?}, but no superblock is near its endurance"
            );
        }
        Some(FailReason::PowerLost) => {
            assert!(!drive.stats().power.losses.is_empty(), "{done:?}, but power has not failed");
        }
    }
}

/// Ends a run: completes all requests, audits the drive, and checks the verdict of the oracle.
pub fn settle(drive: &mut Drive<Oracle>) {
    rest(drive);
    drive.audit().unwrap_or_else(|e| panic!("audit: {e}"));
    drive.probe().verdict().unwrap_or_else(|e| panic!("oracle: {e}"));
}

/// Submits a read of every logical unit, whose data the oracle checks.
pub fn ask_for_everything(drive: &mut Drive<Oracle>) {
    let unit = u64::from(drive.geometry().unit_bytes);
    for lpn in 0..u64::from(drive.geometry().logical_units) {
        let read = request(drive, Op::Read, lpn * unit, unit);
        drive.submit(&read).unwrap();
    }
}

/// Reads every logical unit, and ends the run.
pub fn read_everything(drive: &mut Drive<Oracle>) {
    ask_for_everything(drive);
    settle(drive);
}
