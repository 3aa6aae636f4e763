//! Partial refresh where a program writes several units, by hand: reads of a page whose units are linked,
//! and programs of lines of susceptible bits.
//!
//! A day of ageing takes a second of simulated time, and superblocks are due after ten days. The grace is 1 % of the
//! interval.

use crate::common::{at, ns, one, oracle_and, seen, spec};
use nandlab::base::geometry::{DieId, Lpn};
use nandlab::base::units::Time;
use nandlab::drive::Drive;
use nandlab::flash::{AgeStamp, Stamp};
use nandlab::host::Op;
use nandlab::probe::Probe;
use nandlab::report::Taps;
use nandlab::sched::{Cause, FlashOp, Transaction, Watcher};

const UNIT: u64 = 4096;

/// A die of two planes with blocks of eight pages of 16 KiB.
const BASE: &str = "[drive]\nchannels = 1\nchips_per_channel = 1\ndies_per_chip = 1\nplanes_per_die = 2\n\
     blocks_per_plane = 40\npages_per_block = 8\npage_size = '16KiB'\ncell = 'mlc'\nop = 2.0\nendurance = 1000000\n\
     [timing]\nprogram = '900us'\nmulti_plane = true\n[gc]\nforeground_free = 0.0\nbackground_free = 0.001\n\
     [ftl]\nwear_levelling = 'none'\nmapping_unit = '4KiB'\n[ecc]\nlevels = 'laldpc'\n[reliability]\nrber = 'vth'\n\
     pe_cycles = 1500\nclock_scale = 86400.0\n\
     [refresh]\ninterval = [{ pe = 1000000, every = '10d' }]\n";

/// No bit is susceptible, and each of the 256 codewords of 128 bits of a unit has one entry of 7 + 1 bits: 256 bytes a
/// unit, so 16 units fill a line.
const SIXTEENTH: &str =
    "policy.partial = { susceptible_ratio = 0.0, encoding = 'entries', codeword_bits = 128 }\n";
/// All bits are susceptible, so that every unit fills a line of its own.
const WHOLE: &str = "policy.partial = { susceptible_ratio = 1.0, vsm_pages = 8 }\n";

/// Due time of data written at the start, and the time in which a refresh of a few superblocks is over. Half of the
/// grace, 50 ms, is over by then.
const DUE_S: u64 = 10;
const OVER_MS: u64 = DUE_S * 1000 + 200;

/// The flash operations that the die starts, with their causes.
#[derive(Default)]
struct Log(Vec<Transaction>);

impl Watcher for Log {
    fn on_issue(&mut self, _: Time, _: DieId, transaction: &Transaction) {
        self.0.push(*transaction);
    }

    fn on_joined(&mut self, _: Time, _: DieId, _: &Transaction, transaction: &Transaction) {
        self.0.push(*transaction);
    }
}

impl Probe for Log {}

type Logged = Drive<Taps>;

fn drive(policy: &str, sets: &[&str]) -> Logged {
    Drive::with_probe(&spec(&format!("{BASE}{policy}"), sets), oracle_and(Log::default()))
}

fn count(drive: &Logged, kind: FlashOp, cause: Cause) -> u64 {
    drive.stats().flash[kind as usize][cause as usize]
}

/// Reads `units` units. Returns the bytes that each flash read transfers: of units of the host, by LPN, and of
/// combination pages.
fn read(drive: &mut Logged, first: u64, units: u64) -> (Vec<(u32, u32)>, Vec<u32>) {
    drive.probe_mut().observer_mut::<Log>().unwrap().0.clear();
    one(drive, Op::Read, first * UNIT, units * UNIT);
    let reads = seen::<Log>(drive).0.iter().filter(|t| t.kind == FlashOp::Read && t.cause == Cause::Host);
    let (parts, mut bases): (Vec<_>, Vec<_>) = reads
        .map(|read| (read.lpn.0, read.extent))
        .partition(|&(lpn, _)| drive.ftl().is_combination(Lpn(lpn)));
    bases.sort_unstable();
    (bases, parts.into_iter().map(|(_, bytes)| bytes).collect())
}

/// Two blocks of the drive, one in each plane, hold 64 units. Their susceptible bits fill four lines, which one program of a
/// page writes.
#[test]
fn the_units_of_a_page_share_the_read_of_their_combination_page() {
    let mut drive = drive(SIXTEENTH, &[]);
    one(&mut drive, Op::Write, 0, 64 * UNIT);
    assert_eq!(count(&drive, FlashOp::Program, Cause::Host), 16);
    drive.advance(at(OVER_MS * 1_000_000));
    // A refresh reads each of the sixteen pages once, for all its units.
    assert_eq!(count(&drive, FlashOp::Read, Cause::Refresh), 16);
    assert_eq!(count(&drive, FlashOp::Program, Cause::Refresh), 1);
    assert_eq!((drive.stats().refresh.partial_pages, drive.stats().refresh.combination_pages), (64, 4));
    assert_eq!((drive.stats().units.padding, drive.partial_refresh().unwrap().linked_pages), (0, 64));
    let (unit, bits) = (UNIT as u32, 256);
    // The read of the page, and a read of the bits of its units that were asked for.
    for units in 1..=4 {
        let expected = (vec![(0, units as u32 * unit)], vec![units as u32 * bits]);
        assert_eq!(read(&mut drive, 0, units), expected);
    }
    // A unit that the host has written again is in another page, and has no link.
    one(&mut drive, Op::Write, UNIT, UNIT);
    assert_eq!(read(&mut drive, 0, 4), (vec![(0, 3 * unit), (1, unit)], vec![3 * bits]));
    assert_eq!(drive.stats().refresh.host_preads, 1 + 2 + 3 + 4 + 3);
    drive.advance(drive.now() + ns(10_000_000));
    drive.audit().unwrap();
    drive.probe().oracle().unwrap().verdict().unwrap();
}

/// A superblock of two planes has 64 units. A one-shot program writes two pages in each plane, 16 units, and here as many
/// lines.
#[test]
fn lines_of_susceptible_bits_fill_one_shot_programs() {
    let sets = ["ftl.superblock=die", "drive.program_order=one-shot", "drive.cell=mlc"];
    let mut drive = drive(WHOLE, &sets);
    one(&mut drive, Op::Write, 0, 64 * UNIT);
    let before = drive.stats().units.padding;
    drive.advance(at(OVER_MS * 1_000_000));
    assert_eq!((drive.stats().refresh.partial_pages, drive.stats().refresh.combination_pages), (64, 64));
    // Four programs of four pages, without padding.
    assert_eq!(count(&drive, FlashOp::Program, Cause::Refresh), 16);
    assert_eq!(drive.stats().units.padding, before);
    // While one program is under way, the VSM gathers the next: at most 32 units of 4 KiB.
    let state = drive.partial_refresh().unwrap();
    assert_eq!(state.linked_pages, 64);
    assert!(state.vsm_bytes <= 32 * UNIT && state.vsm_bytes >= 16 * UNIT, "{state:?}");
    drive.advance(drive.now() + ns(10_000_000));
    drive.audit().unwrap();
}

/// With fewer lines than a program writes, the rest is padding once half of the grace is over.
#[test]
fn after_half_of_the_grace_padding_fills_the_program_of_a_line() {
    let mut drive = drive(SIXTEENTH, &["drive.planes_per_die=1"]);
    one(&mut drive, Op::Write, 0, 32 * UNIT);
    drive.advance(at(DUE_S * 1_000_000_000 + 40_000_000));
    assert_eq!(count(&drive, FlashOp::Read, Cause::Refresh), 8);
    assert_eq!((count(&drive, FlashOp::Program, Cause::Refresh), drive.stats().units.padding), (0, 0));
    drive.advance(at(OVER_MS * 1_000_000));
    assert_eq!((count(&drive, FlashOp::Program, Cause::Refresh), drive.stats().units.padding), (1, 2));
    assert_eq!(drive.partial_refresh().unwrap().linked_pages, 32);
}

/// Without its susceptible bits no unit can be decoded, also those that share the read of another unit.
#[test]
fn all_units_fail_whose_combination_page_is_lost() {
    let mut drive = drive(SIXTEENTH, &[]);
    one(&mut drive, Op::Write, 0, 64 * UNIT);
    drive.advance(at(OVER_MS * 1_000_000));
    let first = drive.ftl().map.get(Lpn(0)).unwrap();
    let (combination, _) = drive.links().unwrap().of(first).expect("the unit is linked");
    let unit = drive.ftl().map.get(combination).unwrap();
    let array = drive.parts_mut().0;
    array.stage(unit, combination, Stamp { corrected: AgeStamp::LOST, ..array.stamp(unit) });
    let linked = |lpn: &u32| {
        let base = drive.ftl().map.get(Lpn(*lpn)).unwrap();
        drive.links().unwrap().of(base).unwrap().0 == combination
    };
    let units = (0..64).filter(linked).count();
    assert_eq!(units, 16);
    one(&mut drive, Op::Read, 0, 64 * UNIT);
    assert_eq!(drive.stats().counters.media_errors, 16);
}
