//! What the tests share: specs from text, and drives driven by hand.
#![allow(dead_code, unreachable_pub)]

pub mod schemes;

use nandlab::drive::Drive;
use nandlab::host::{Op, Oracle, Request};
use nandlab::probe::Probe;
use nandlab::spec::{self, Spec};
use nandlab::units::{Span, Time};
use std::path::Path;

/// One microsecond, one millisecond and one second. Tests count in plain nanoseconds; [`at`] and [`ns`] hand them to the
/// drive.
pub const US: u64 = nandlab::units::US.ns();
/// See [`US`].
pub const MS: u64 = nandlab::units::MS.ns();
/// See [`US`].
pub const SECOND: u64 = nandlab::units::SECOND.ns();

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
    if matches!(spec.precondition, nandlab::spec::PreconditionSpec::Fill { .. }) {
        drive.expect_preconditioned(|oracle| oracle);
    }
    drive
}

/// Ends a run: everything completes, the audit holds, the oracle has no complaint.
pub fn settle(drive: &mut Drive<Oracle>) {
    drive.run_until_idle();
    assert_eq!(drive.outstanding(), 0, "a request is lost");
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
