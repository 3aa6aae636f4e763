//! GC's time for a victim (`gc.victim_ms`), by hand on a drive with one plane.
//!
//! tR is 50 us, the transfer of a page 10.24 us, decoding 15 us, tPROG 900 us, tBERS 3.5 ms. GC copies one page at a time:
//! a copy off-chip takes 985.48 us. Idle GC begins 20 ms after the last request.

use crate::common::{US, at, ballast, ns, one, request, spec};
use nandlab::base::geometry::DieId;
use nandlab::base::units::{Span, Time};
use nandlab::drive::Drive;
use nandlab::host::Op;
use nandlab::probe::{NoProbe, Probe};
use nandlab::report::{RunFacts, summary};
use nandlab::sched::{Cause, FlashOp, Phase, Transaction, Watcher};
use serde_json::json;
use std::collections::BTreeMap;

const PAGE: u64 = 4096;
const SENSE: u64 = 50 * US;
const TRANSFER: u64 = 10_240;
const DECODE: u64 = 15 * US;
const PROGRAM: u64 = 900 * US;
const ERASE: u64 = 3_500 * US;
const COPY: u64 = SENSE + TRANSFER + DECODE + TRANSFER + PROGRAM;
const IDLE: u64 = 20_000 * US;

const TEXT: &str = "[drive]\nchannels = 1\nchips_per_channel = 1\ndies_per_chip = 1\nplanes_per_die = 1\n\
     blocks_per_plane = 160\npages_per_block = 8\npage_size = '4KiB'\ncell = 'mlc'\nop = 1.0\nendurance = 1000000\n\
     [timing]\nread = '50us'\ndecode = '15us'\nprogram = '900us'\nerase = '3.5ms'\nchannel_ns_per_byte = 2.5\n\
     command = '0us'\n[migration]\nin_flight = 1\n\
     [gc]\nbackground_free = 0.9999\nidle_valid_max = 0.8\nidle_after = '20ms'\n[ftl]\nwear_levelling = 'none'\n";

fn drive<P: Probe>(sets: &[&str], probe: P) -> Drive<P> {
    let mut drive = Drive::with_probe(&spec(TEXT, sets), probe);
    ballast(&mut drive, 32);
    drive
}

/// Leaves a full superblock whose last units are valid, for each of the numbers in `valid`; returns the LPNs of the
/// valid units.
fn victims<P: Probe>(drive: &mut Drive<P>, valid: &[u64]) -> Vec<u64> {
    let firsts = (0..).step_by(8).zip(valid);
    firsts.clone().for_each(|(first, _)| _ = one(drive, Op::Write, first * PAGE, 8 * PAGE));
    firsts.clone().for_each(|(first, valid)| _ = one(drive, Op::Trim, first * PAGE, (8 - valid) * PAGE));
    firsts.flat_map(|(first, valid)| first + 8 - valid..first + 8).collect()
}

/// Submits a request of one page at `after_ns` after idle GC has begun.
fn submit_in_gc(drive: &mut Drive, after_ns: u64, op: Op, lpn: u64) {
    drive.advance(drive.now() + ns(IDLE + after_ns));
    let request = request(drive, op, lpn * PAGE, PAGE);
    drive.submit(&request).unwrap();
}

/// Lets GC come to its end; returns the number of victims and the sums of their times in ns.
fn times<P: Probe>(drive: &mut Drive<P>) -> (u64, [u64; 3]) {
    drive.run_until_idle(nandlab::drive::IDLE_LIMIT).unwrap();
    drive.audit().unwrap();
    let stats = drive.stats();
    assert_eq!(stats.gc.victims, stats.victims.erased);
    let victims = &stats.victims;
    (victims.erased, [victims.copies_ns, victims.waiting_ns, victims.erase_ns].map(Span::ns))
}

#[test]
fn a_victim_takes_the_sum_of_its_copies_and_an_erase() {
    for (policy, copy) in [("off-chip", COPY), ("{ rcopyback-greedy = { limit = 1 } }", SENSE + PROGRAM)] {
        let policy = format!("migration.policy={policy}");
        let mut drive = drive(&[&policy], NoProbe);
        victims(&mut drive, &[4]);
        assert_eq!(times(&mut drive), (1, [4 * copy, 0, ERASE]), "{policy}");
    }
}

#[test]
fn the_summary_has_the_means_over_all_victims() {
    let mut drive = drive(&[], NoProbe);
    let victim_ms = |drive: &Drive| summary(drive, &RunFacts::default())["gc"]["victim_ms"].clone();
    assert_eq!(victim_ms(&drive), json!({ "copies": 0.0, "waiting": 0.0, "erase": 0.0 }));
    // The two victims leave no third one.
    victims(&mut drive, &[4, 2]);
    assert_eq!(times(&mut drive), (2, [6 * COPY, 0, 2 * ERASE]));
    // 3 copies of 985.48 us.
    assert_eq!(victim_ms(&drive), json!({ "copies": 2.95644, "waiting": 0.0, "erase": 3.5 }));
}

#[test]
fn a_dead_superblock_is_no_victim() {
    let mut drive = drive(&[], NoProbe);
    (0..2).for_each(|_| _ = one(&mut drive, Op::Write, 0, 8 * PAGE));
    assert_eq!(times(&mut drive), (0, [0; 3]));
    assert_eq!(drive.stats().gc.dead_blocks, 1);
}

#[test]
fn a_victim_waits_for_the_program_that_replaces_its_last_unit() {
    let mut drive = drive(&[], NoProbe);
    let valid = victims(&mut drive, &[2]);
    // The first of the two units is being programmed when the host replaces the other. Its program follows on the die.
    submit_in_gc(&mut drive, 500 * US, Op::Write, valid[1]);
    assert_eq!(times(&mut drive), (1, [COPY, TRANSFER + PROGRAM, ERASE]));
}

#[test]
fn the_time_of_an_erase_includes_its_wait_for_the_die() {
    let mut drive = drive(&[], NoProbe);
    victims(&mut drive, &[1]);
    // A read of another superblock, the last of the ballast, waits for the die, and goes before the erase.
    let last = u64::from(drive.geometry().logical_units) - 1;
    submit_in_gc(&mut drive, 500 * US, Op::Read, last);
    assert_eq!(times(&mut drive), (1, [COPY, 0, SENSE + TRANSFER + ERASE]));
}

/// The times at which the die began and ended GC's operations, by superblock.
#[derive(Default)]
struct Seen {
    first_read: BTreeMap<u32, Time>,
    last_program: BTreeMap<u32, Time>,
    erased: BTreeMap<u32, Time>,
}

/// Units of a superblock of the drive of [`TEXT`].
const UNITS: u32 = 8;

impl Watcher for Seen {
    fn on_issue(&mut self, now: Time, _: DieId, t: &Transaction) {
        if (t.kind, t.cause) == (FlashOp::Read, Cause::Gc) {
            self.first_read.entry(t.unit.0 / UNITS).or_insert(now);
        }
    }

    fn on_phase(&mut self, _: Time, end: Time, _: DieId, _: u32, phase: Phase, t: &Transaction) {
        if t.cause != Cause::Gc || phase != Phase::Array {
            return;
        }
        match t.kind {
            // The first of the pages that are programmed together.
            FlashOp::Program => _ = self.last_program.insert(t.replaces.unwrap().0 / UNITS, end),
            FlashOp::Erase => _ = self.erased.insert(t.unit.0 / UNITS, end),
            _ => {}
        }
    }
}

impl Probe for Seen {}

#[test]
fn the_copies_of_a_victim_that_is_erased_beside_the_next_job_end_with_the_program_that_this_job_fills() {
    let mut drive = drive(&["drive.program_order=one-shot"], Seen::default());
    // Pages are programmed by twos: the third page of the first victim goes with the first page of the second.
    victims(&mut drive, &[3, 3]);
    let (count, [copies, waiting, erase]) = times(&mut drive);
    let Seen { first_read, last_program, erased } = drive.probe();
    assert_eq!((count, first_read.len(), erased.len()), (2, 2, 2));
    let mut taken: Vec<(Time, u32)> =
        first_read.iter().map(|(&superblock, &time)| (time, superblock)).collect();
    taken.sort_unstable();
    let [first, second] = [taken[0].1, taken[1].1];
    assert!(taken[1].0 < last_program[&first] && last_program[&first] < last_program[&second]);
    // Two reads and a program of two pages; the third read; the first read of the second victim and the program.
    let (read, program) = (SENSE + TRANSFER, 2 * TRANSFER + PROGRAM);
    let of_first = (2 * read + DECODE + program) + (read + DECODE) + (read + DECODE) + program;
    assert_eq!((last_program[&first] - taken[0].0).ns(), of_first);
    let of_second = last_program[&second] - taken[1].0;
    assert_eq!((copies, waiting), (of_first + of_second.ns(), 0));
    let of_erases = [first, second].map(|superblock| (erased[&superblock] - last_program[&superblock]).ns());
    assert_eq!(erase, of_erases.iter().sum::<u64>());
    assert!(of_erases.iter().all(|&time| time >= ERASE) && drive.now() > at(IDLE));
}
