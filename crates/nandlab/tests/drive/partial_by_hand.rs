//! Partial refresh, compared with calculations by hand: the steps of the paper's Fig. 4, the states of links, the times
//! of preads, power loss, and the audit.
//!
//! A program takes 910.24 us: 10.24 us for 4096 bytes at 2.5 ns per byte, and 900 us of array time. A read at level L
//! takes 50 + 14 (L - 1) us of sensing, 20 + 10 (L - 1) of transfer and 15 of decoding: 85 us at level 1. At level 7 a
//! read occupies the die for 134 + 80 = 214 us. A day of ageing takes a second, and superblocks are due after ten days.

use crate::common::{US, at, ballast, ns, one, oracle_and, request, seen, spec};
use nandlab::base::geometry::{DieId, Geometry, Lpn, UnitId};
use nandlab::base::rng::Stream;
use nandlab::base::units::Time;
use nandlab::drive::Drive;
use nandlab::drive::spec::Spec;
use nandlab::flash::{Condition, Reliability, SuperblockState};
use nandlab::host::{Op, Request};
use nandlab::probe::Probe;
use nandlab::report::Taps;
use nandlab::sched::{Cause, FlashOp, Transaction, Watcher};

const PAGE: u64 = 4096;

/// Two dies of one plane, each on its own channel: even LPNs are on die 0, odd LPNs on die 1.
const BY_HAND: &str = "[drive]\nchannels = 2\nchips_per_channel = 1\ndies_per_chip = 1\nplanes_per_die = 1\n\
     blocks_per_plane = 40\npages_per_block = 16\npage_size = '4KiB'\ncell = 'mlc'\nop = 1.0\nendurance = 1000000\n\
     [timing]\nprogram = '900us'\nerase = '3.5ms'\nchannel_ns_per_byte = 2.5\ncommand = '0us'\n\
     multi_plane = false\n[gc]\nforeground_free = 0.0\nbackground_free = 0.001\nidle_after = '20ms'\n[ftl]\n\
     wear_levelling = 'none'\nallocation = 'CWDP'\n[ecc]\nlevels = 'laldpc'\n[reliability]\nrber = 'vth'\n\
     pe_cycles = 1500\nclock_scale = 86400.0\n\
     [refresh]\ninterval = [{ pe = 1000000, every = '10d' }]\n";

/// No bit is susceptible, and each of the 256 codewords of 128 bits has one entry of 7 + 1 bits: 256 bytes per unit, so
/// 16 units fill a line.
const SIXTEENTH: &str = "susceptible_ratio = 0.0, encoding = 'entries', codeword_bits = 128";
/// All bits are susceptible, so that every unit fills a line of its own.
const WHOLE: &str = "susceptible_ratio = 1.0";

/// The operations that the dies start: time in nanoseconds, die, transaction.
#[derive(Default)]
struct Log(Vec<(u64, DieId, Transaction)>);

impl Watcher for Log {
    fn on_issue(&mut self, now: Time, die: DieId, transaction: &Transaction) {
        self.0.push((now.ns(), die, *transaction));
    }
}

impl Probe for Log {}

struct Hand {
    drive: Drive<Taps>,
}

/// Returns the second of the age clock at simulated time `time`, which is in nanoseconds.
fn second(time: u64) -> u64 {
    time * 864 / 10_000_000
}

/// Returns the first simulated time, in nanoseconds, at which the age clock is at `second`.
fn when(second: u64) -> u64 {
    (second * 10_000_000).div_ceil(864)
}

const INTERVAL_S: u64 = 864_000;
/// Half of the grace, which is 1 % of the interval, in seconds of the age clock.
const HALF_GRACE_S: u64 = 4_320;
/// The due time of the first superblock. Its first unit is programmed after 910.24 us, in second 78 of the age clock,
/// so the superblock is due in second 864,078.
const DUE: u64 = 10_000_902_778;
/// Time of sixteen reads at level 7 on one die, and of decoding the last of them.
const READ_16: u64 = (16 * 214 + 15) * US;
const PROGRAM: u64 = 910_240;

fn text(policy: &str) -> String {
    format!("{BY_HAND}policy.partial = {{ {policy} }}\n")
}

impl Hand {
    fn new(policy: &str, sets: &[&str]) -> Self {
        Self::of(&spec(&text(policy), sets))
    }

    fn of(spec: &Spec) -> Self {
        Self { drive: Drive::with_probe(spec, oracle_and(Log::default())) }
    }

    /// Returns a drive whose first superblock of die 0 has `units` units: LPN 0, 2, 4, ...
    fn with_units(policy: &str, sets: &[&str], units: u64) -> Self {
        let mut hand = Self::new(policy, sets);
        hand.write((0..units).map(|unit| 2 * unit));
        assert_eq!(when(second(PROGRAM) + INTERVAL_S), DUE);
        hand
    }

    /// Returns a drive with sixteen units of a superblock, at the time when they have been linked to a combination page
    /// on die 1.
    fn linked(sets: &[&str]) -> Self {
        let mut hand = Self::with_units(SIXTEENTH, sets, 16);
        hand.drive.advance(at(DUE + READ_16 + PROGRAM));
        assert_eq!(hand.count(), 16);
        hand
    }

    fn write(&mut self, lpns: impl IntoIterator<Item = u64>) {
        self.drive.completions();
        for lpn in lpns {
            one(&mut self.drive, Op::Write, lpn * PAGE, PAGE);
        }
    }

    fn submit(&mut self, op: Op, lpn: u64) {
        let request = request(&self.drive, op, lpn * PAGE, PAGE);
        self.drive.submit(&request).unwrap();
    }

    fn at(&self, lpn: u32) -> UnitId {
        self.drive.ftl().map.get(Lpn(lpn)).unwrap()
    }

    fn is_linked(&self, unit: UnitId) -> bool {
        self.links().of(unit).is_some()
    }

    fn is_pending(&self, lpn: u32) -> bool {
        self.links().is_pending(self.at(lpn))
    }

    fn links(&self) -> nandlab::refresh::partial::Linked<'_> {
        self.drive.links().unwrap()
    }

    fn count(&self) -> u64 {
        self.links().count()
    }

    /// Returns the number and the PPN of the combination page that a unit is linked to.
    fn combination(&self, unit: UnitId) -> (Lpn, UnitId) {
        let (lpn, _) = self.links().of(unit).expect("the unit is linked");
        (lpn, self.drive.ftl().map.get(lpn).unwrap())
    }

    fn superblock(&self, unit: UnitId) -> &nandlab::flash::Superblock {
        self.drive.array().superblock(self.drive.geometry().superblock_of(unit))
    }

    fn is_partial(&self, unit: UnitId) -> bool {
        self.drive.array().rare(self.drive.geometry().superblock_of(unit)).is_refreshed_partially
    }

    /// Returns the operations of refresh since `from`, as (time, die, LPN).
    fn refresh(&self, kind: FlashOp, from: u64) -> Vec<(u64, u32, u32)> {
        let of_refresh =
            |t: &&(u64, DieId, Transaction)| t.0 >= from && t.2.kind == kind && t.2.cause == Cause::Refresh;
        seen::<Log>(&self.drive)
            .0
            .iter()
            .filter(of_refresh)
            .map(|(now, die, t)| (*now, die.0, t.lpn.0))
            .collect()
    }

    fn flash(&self, kind: FlashOp, cause: Cause) -> u64 {
        self.drive.stats().flash[kind as usize][cause as usize]
    }

    /// Returns the number of the first combination page.
    fn first_number(&self) -> u32 {
        self.drive.geometry().logical_units
    }

    fn check(&mut self) {
        self.drive.completions();
        self.drive.audit().unwrap_or_else(|e| panic!("audit: {e}"));
        self.drive.probe().oracle().unwrap().verdict().unwrap_or_else(|e| panic!("oracle: {e}"));
    }

    /// Lets the drive come to rest, reads every unit, and checks that no read has failed.
    fn end(mut self) {
        self.drive.run_until_idle(nandlab::drive::IDLE_LIMIT).unwrap();
        self.check();
        for lpn in 0..u64::from(self.drive.geometry().logical_units) {
            self.submit(Op::Read, lpn);
        }
        self.drive.run_until_idle(nandlab::drive::IDLE_LIMIT).unwrap();
        self.check();
        assert_eq!(self.drive.stats().counters.media_errors, 0);
    }
}

// ------------------------------------------------------------------------------------------------------------- Fig. 4

#[test]
fn refresh_of_a_superblock_follows_the_steps_of_the_papers_figure() {
    let mut hand = Hand::with_units(SIXTEENTH, &[], 16);
    let bases: Vec<UnitId> = (0..16).map(|unit| hand.at(2 * unit)).collect();
    // Step 1: the superblock is due.
    hand.drive.advance(at(DUE - 1));
    assert_eq!((hand.drive.stats().refresh.blocks, hand.refresh(FlashOp::Read, 0)), (0, vec![]));
    hand.drive.advance(at(DUE));
    assert_eq!((hand.drive.stats().refresh.blocks, hand.drive.stats().refresh.partial_blocks), (1, 1));
    // Step 2: the valid units are read at the highest level, one after the other; up to four reads are queued.
    hand.drive.advance(at(DUE + READ_16 - 1));
    let reads: Vec<_> = (0..16).map(|unit| (DUE + u64::from(unit) * 214 * US, 0, 2 * unit)).collect();
    assert_eq!(hand.refresh(FlashOp::Read, 0), reads);
    let levels = seen::<Log>(&hand.drive).0.iter().filter(|t| t.2.kind == FlashOp::Read).map(|t| t.2.level);
    assert_eq!(levels.collect::<Vec<_>>(), [7; 16]);
    // Step 3: the susceptible bits of the units are in the VSM, 256 bytes each.
    let stats = &hand.drive.stats().refresh;
    assert_eq!((stats.partial_pages, stats.susceptible_bytes, stats.combination_pages), (15, 15 * 256, 0));
    // Step 4: the last unit fills a line, which is programmed on the other die.
    hand.drive.advance(at(DUE + READ_16));
    assert_eq!(hand.refresh(FlashOp::Program, 0), [(DUE + READ_16, 1, hand.first_number())]);
    assert_eq!(hand.drive.partial_refresh().unwrap().vsm_bytes, 4096);
    let linked_at = DUE + READ_16 + PROGRAM;
    hand.drive.advance(at(linked_at - 1));
    assert_eq!((hand.count(), bases.iter().all(|&base| hand.links().is_pending(base))), (0, true));
    // At the end of the program the units are linked, each to its bytes of the combination page.
    hand.drive.advance(at(linked_at));
    let apn = hand.at(hand.first_number());
    for (index, &base) in (0..).zip(&bases) {
        let (lpn, entry) = hand.links().of(base).unwrap();
        assert_eq!((lpn, entry.base, entry.lpn), (Lpn(hand.first_number()), base, Lpn(2 * index)));
        assert_eq!((entry.offset, entry.bytes), (256 * index, 256));
        // Unit n was written by write n, counted from 1.
        assert_eq!((entry.sequence, entry.pe_cycles), (u64::from(index) + 1, 1500));
    }
    assert_eq!(
        (hand.count(), hand.superblock(bases[0]).linked, hand.superblock(bases[0]).valid),
        (16, 16, 16)
    );
    assert_eq!((hand.superblock(apn).state, hand.superblock(apn).programmed), (SuperblockState::Open, 1));
    let stats = &hand.drive.stats().refresh;
    assert_eq!((stats.partial_pages, stats.combination_pages, stats.padding_bytes), (16, 1, 0));
    assert_eq!((stats.late_blocks, stats.overdue_max_s), (0, second(linked_at) as u32 - 864_078));
    // The job ended when the last unit was in the VSM.
    assert_eq!(stats.busy_ns, ns(READ_16));
    hand.check();

    // The next interval of the superblock counts from the end of the program of the combination page, not from the last
    // read. The interval of the combination superblock also begins at the end of this program, which wrote its first
    // page. So both superblocks are due in the same second, and they are refreshed conventionally.
    let again = when(second(linked_at) + INTERVAL_S);
    assert!(again > when(second(linked_at - PROGRAM) + INTERVAL_S));
    hand.drive.advance(at(again - 1));
    assert_eq!(hand.drive.stats().refresh.blocks, 1);
    hand.drive.advance(at(again));
    assert_eq!((hand.drive.stats().refresh.blocks, hand.drive.stats().refresh.partial_blocks), (3, 1));
    hand.drive.advance(at(again + 100_000 * US));
    let programs = hand.refresh(FlashOp::Program, again);
    assert_eq!(programs.iter().filter(|program| program.1 == 0).count(), 16);
    assert_eq!(programs.iter().filter(|program| program.1 == 1).count(), 1, "the combination page");
    assert_eq!((hand.drive.stats().refresh.promoted_pages, hand.count()), (16, 0));
    // Each of the 16 units was read by pread, that is two reads, except one that was read while the combination page
    // was being programmed elsewhere, so that its data was in the controller. The combination page was read to be moved,
    // and is now invalid. The base units, whose errors from before the partial refresh are known, decode at the first
    // level; the combination page is read at the highest level.
    assert_eq!(hand.refresh(FlashOp::Read, again).len(), 16 + 15 + 1);
    let levels = seen::<Log>(&hand.drive).0.iter().filter(|t| t.0 >= again && t.2.kind == FlashOp::Read);
    let mut levels: Vec<u8> = levels.map(|t| t.2.level).collect();
    levels.sort_unstable();
    assert_eq!(levels, [vec![1; 16], vec![7; 16]].concat());
    assert_eq!(hand.drive.ftl().map.get(Lpn(hand.first_number())), None);
    assert_eq!(
        (hand.links().combinations().count(), hand.superblock(bases[0]).state),
        (0, SuperblockState::Free)
    );
    assert_eq!(hand.flash(FlashOp::Erase, Cause::Refresh), 2);
    // The kinds of refresh alternate: the third refresh is partial again.
    hand.drive.advance(at(again + 10_200_000 * US));
    assert_eq!((hand.drive.stats().refresh.blocks, hand.drive.stats().refresh.partial_blocks), (4, 2));
    assert_eq!((hand.count(), hand.drive.stats().refresh.late_blocks), (16, 0));
    hand.end();
}

#[test]
fn a_line_that_is_not_full_is_programmed_at_half_of_the_grace() {
    // The superblock has eight units and is open when it comes due: it is closed.
    let mut hand = Hand::with_units(SIXTEENTH, &[], 8);
    hand.drive.advance(at(DUE));
    assert_eq!(
        (hand.superblock(hand.at(0)).state, hand.superblock(hand.at(0)).programmed),
        (SuperblockState::Full, 16)
    );
    let hurry = when(864_078 + HALF_GRACE_S);
    assert_eq!(hurry, 10_050_902_778);
    hand.drive.advance(at(hurry - 1));
    assert_eq!((hand.drive.stats().refresh.partial_pages, hand.count()), (8, 0));
    assert!((0..8).all(|unit| hand.is_pending(2 * unit)));
    hand.drive.advance(at(hurry));
    assert_eq!(hand.refresh(FlashOp::Program, 0), [(hurry, 1, hand.first_number())]);
    hand.drive.advance(at(hurry + PROGRAM));
    assert_eq!((hand.count(), hand.drive.stats().refresh.padding_bytes), (8, 2048));
    let overdue = (second(hurry + PROGRAM) - 864_078) as u32;
    assert_eq!(
        (hand.drive.stats().refresh.overdue_max_s, hand.drive.stats().refresh.late_blocks),
        (overdue, 0)
    );
    hand.end();
}

#[test]
fn units_wait_for_a_full_vsm_until_a_line_is_programmed() {
    // Each unit fills a line, and the VSM has four lines. The first line is full 229 us (read and decoding) after the
    // superblock was due, and the lines are programmed one after another: line n is in flash n programs later.
    let mut hand = Hand::with_units(WHOLE, &[], 6);
    let line = |n: u64| DUE + 229 * US + n * PROGRAM;
    hand.drive.advance(at(line(1) - 1));
    // The fifth unit is decoded after 5 * 214 + 15 = 1085 us.
    assert_eq!([0, 2, 4, 6, 8, 10].map(|lpn| hand.is_pending(lpn)), [true, true, true, true, false, false]);
    hand.drive.advance(at(line(1)));
    assert_eq!([0, 2, 8, 10].map(|lpn| hand.is_pending(lpn)), [false, true, true, false]);
    hand.drive.advance(at(line(2)));
    assert_eq!([2, 4, 8, 10].map(|lpn| hand.is_pending(lpn)), [false, true, true, true]);
    hand.drive.advance(at(line(6) - 1));
    assert_eq!((hand.count(), hand.drive.stats().refresh.busy_ns), (5, ns(line(2) - DUE)));
    hand.drive.advance(at(line(6)));
    let stats = &hand.drive.stats().refresh;
    assert_eq!((stats.combination_pages, stats.padding_bytes, stats.without_room), (6, 0, 0));
    assert_eq!((hand.count(), hand.drive.partial_refresh().unwrap().vsm_bytes), (6, 4 * 4096));
    assert_eq!(stats.overdue_max_s as u64, second(line(6)) - 864_078);
    hand.end();
}

#[test]
fn a_line_goes_to_an_idle_die() {
    // LPN n is on die n mod 4. Die 1 follows the die of the superblock, but is busy when the line is ready.
    let mut hand = Hand::new(SIXTEENTH, &["drive.channels=4"]);
    hand.write((0..4).map(|unit| 4 * unit));
    let hurry = when(864_078 + HALF_GRACE_S);
    hand.drive.advance(at(hurry - 1));
    hand.submit(Op::Write, 1);
    hand.drive.advance(at(hurry + PROGRAM));
    assert_eq!(hand.refresh(FlashOp::Program, 0), [(hurry, 2, hand.first_number())]);
    assert_eq!(hand.count(), 4);
    hand.end();
    // On a drive with one plane the line is programmed on this plane.
    let mut hand = Hand::new(SIXTEENTH, &["drive.channels=1", "drive.blocks_per_plane=60"]);
    hand.write(0..4);
    hand.drive.advance(at(hurry + PROGRAM));
    assert_eq!(hand.refresh(FlashOp::Program, 0), [(hurry, 0, hand.first_number())]);
    hand.end();
}

#[test]
fn a_combination_superblock_that_is_due_is_moved_and_its_links_follow() {
    // There are sixteen lines. The combination superblock is due an interval after the first line's program, the
    // superblock of the base units an interval after the last line's.
    let mut hand = Hand::with_units(WHOLE, &[], 16);
    let line = |n: u64| DUE + 229 * US + n * PROGRAM;
    hand.drive.advance(at(line(16)));
    assert_eq!((hand.count(), hand.links().combinations().count()), (16, 16));
    let before: Vec<_> = (0..16).map(|unit| hand.combination(hand.at(2 * unit))).collect();
    assert_eq!(hand.superblock(before[0].1).state, SuperblockState::Full);
    let due = when(second(line(1)) + INTERVAL_S);
    hand.drive.advance(at(due - 1));
    assert_eq!(hand.drive.stats().refresh.blocks, 1);
    // The superblock of the base units is due 15 programs later. Before that at least eight combination pages are
    // moved.
    let base_due = when(second(line(16)) + INTERVAL_S);
    assert!(base_due > due + 13_000 * US);
    hand.drive.advance(at(base_due - 1));
    assert_eq!((hand.drive.stats().refresh.blocks, hand.drive.stats().refresh.partial_blocks), (2, 1));
    for (unit, &(number, apn)) in before.iter().enumerate() {
        let (now, moved) = hand.combination(hand.at(2 * unit as u32));
        assert_eq!((now, moved != apn), (number, unit < 8 || moved != apn), "unit {unit}");
        assert_eq!(hand.links().content(moved), Some(hand.links().entries(number)));
    }
    assert_eq!((hand.count(), hand.is_partial(before[0].1)), (16, false));
    hand.check();
    hand.drive.advance(at(base_due + 200_000 * US));
    assert_eq!((hand.count(), hand.drive.stats().refresh.promoted_pages), (0, 16));
    hand.end();
}

// -------------------------------------------------------------------------------------------------------- the mapping

#[test]
fn a_link_ends_when_the_unit_that_replaces_its_unit_is_in_flash() {
    let mut hand = Hand::linked(&[]);
    let (old, trimmed) = (hand.at(0), hand.at(2));
    hand.submit(Op::Write, 0);
    let end = hand.drive.now().ns() + PROGRAM;
    hand.drive.advance(at(end - 1));
    assert!(hand.at(0) != old && hand.is_linked(old));
    hand.check();
    hand.drive.advance(at(end));
    assert!(!hand.is_linked(old) && !hand.is_linked(hand.at(0)));
    assert_eq!(
        (hand.count(), hand.superblock(old).linked, hand.links().live(Lpn(hand.first_number()))),
        (15, 15, 15)
    );
    hand.submit(Op::Trim, 2);
    assert_eq!((hand.is_linked(trimmed), hand.count()), (false, 14));
    // When its last link ends, a combination page becomes invalid, and its number is free again.
    let number = Lpn(hand.first_number());
    let apn = hand.at(number.0);
    for unit in 2..16 {
        assert_eq!(hand.drive.ftl().map.get(number), Some(apn));
        hand.submit(Op::Trim, 2 * unit);
    }
    assert_eq!((hand.drive.ftl().map.get(number), hand.superblock(apn).valid, hand.count()), (None, 0, 0));
    assert_eq!(hand.links().combinations().count(), 0);
    hand.end();
}

#[test]
fn a_freed_number_is_used_again() {
    let mut hand = Hand::linked(&[]);
    for unit in 0..16 {
        hand.submit(Op::Trim, 2 * unit);
    }
    hand.write((0..16).map(|unit| 2 * unit));
    hand.drive.advance(hand.drive.now() + ns(10_100_000 * US));
    assert_eq!(hand.count(), 16);
    assert_eq!(hand.combination(hand.at(0)).0, Lpn(hand.first_number()));
    hand.end();
}

#[test]
fn the_vsm_drops_the_entry_of_a_replaced_unit() {
    let mut hand = Hand::with_units(SIXTEENTH, &[], 8);
    hand.drive.advance(at(DUE + 8 * 214 * US + 15 * US));
    let (old, trimmed) = (hand.at(0), hand.at(2));
    hand.submit(Op::Write, 0);
    hand.submit(Op::Trim, 2);
    assert!(!hand.links().is_marked(trimmed));
    let end = hand.drive.now().ns() + PROGRAM;
    hand.drive.advance(at(end - 1));
    assert!(hand.links().is_pending(old));
    hand.drive.advance(at(end));
    assert!(!hand.links().is_marked(old));
    hand.check();
    // Six units remain in the line.
    hand.drive.advance(at(when(864_078 + HALF_GRACE_S) + PROGRAM));
    assert_eq!((hand.count(), hand.drive.stats().refresh.padding_bytes), (6, 4096 - 6 * 256));
    assert_eq!(hand.drive.stats().refresh.partial_pages, 8);
    hand.end();
}

#[test]
fn a_unit_replaced_before_its_line_is_programmed_is_not_linked() {
    let mut hand = Hand::with_units(SIXTEENTH, &[], 16);
    // The program that replaces the first unit waits for the read under way, and ends before the last units are read.
    hand.drive.advance(at(DUE + 3_000 * US));
    hand.submit(Op::Write, 0);
    let first = hand.at(0);
    // That program delays the later reads by one program time.
    let linked_at = DUE + READ_16 + PROGRAM + PROGRAM;
    hand.drive.advance(at(linked_at - PROGRAM));
    assert_eq!(
        hand.drive.stats().refresh.combination_pages,
        0,
        "the line is full, although an entry was dropped"
    );
    hand.drive.advance(at(when(864_078 + HALF_GRACE_S)));
    let end = hand.drive.now().ns() + PROGRAM;
    assert_eq!(hand.drive.stats().refresh.combination_pages, 1);
    // During the program of the line: a TRIM, and a write whose program ends after that of the line.
    hand.drive.advance(at(end - 100 * US));
    let (trimmed, written) = (hand.at(2), hand.at(4));
    hand.submit(Op::Trim, 2);
    hand.submit(Op::Write, 4);
    assert!(!hand.links().is_marked(trimmed) && hand.links().is_pending(written));
    hand.check();
    hand.drive.advance(at(end));
    assert!(!hand.links().is_marked(written) && !hand.is_linked(first));
    assert_eq!((hand.count(), hand.links().live(Lpn(hand.first_number()))), (13, 13));
    hand.check();
    hand.end();
}

/// Overrides with which idle GC empties superblocks with two invalid units, provided that the garbage of a lane exceeds
/// 32 units, which is the size of the two superblocks that may be open for GC and for combination pages.
const EAGER_GC: [&str; 3] =
    ["gc.background_free=0.9999", "gc.idle_valid_max=0.9", "drive.blocks_per_plane=120"];
const BALLAST: u32 = 48;

#[test]
fn gc_merges_linked_units() {
    let mut hand = Hand::linked(&EAGER_GC);
    let old = hand.at(2);
    ballast(&mut hand.drive, BALLAST);
    hand.submit(Op::Trim, 0);
    hand.submit(Op::Trim, 30);
    hand.drive.run_until_idle(nandlab::drive::IDLE_LIMIT).unwrap();
    // GC reads fourteen units by pread, and programs them merged.
    assert_eq!((hand.flash(FlashOp::Read, Cause::Gc), hand.flash(FlashOp::Program, Cause::Gc)), (28, 14));
    assert_eq!((hand.drive.stats().refresh.promoted_pages, hand.count()), (14, 0));
    assert_eq!((hand.superblock(old).state, hand.links().combinations().count()), (SuperblockState::Free, 0));
    assert_eq!(hand.drive.ftl().map.get(Lpn(hand.first_number())), None);
    hand.end();
}

#[test]
fn gc_moves_combination_pages_and_their_links_follow() {
    let mut hand = Hand::with_units(WHOLE, &EAGER_GC, 16);
    hand.drive.advance(at(DUE + 229 * US + 16 * PROGRAM));
    assert_eq!(hand.count(), 16);
    let bases: Vec<UnitId> = (0..15).map(|unit| hand.at(2 * unit)).collect();
    let before: Vec<_> = bases.iter().map(|&base| hand.combination(base)).collect();
    ballast(&mut hand.drive, BALLAST);
    let idle = hand.drive.now();
    hand.submit(Op::Trim, 0);
    hand.submit(Op::Trim, 30);
    // Twenty milliseconds later GC empties both superblocks at the same time, on two dies.
    let mut moved = 0;
    for step in 0..80 {
        hand.drive.advance(idle + ns(20_000 * US) + ns(step * 500 * US));
        for (unit, &(number, apn)) in before.iter().enumerate().skip(1) {
            if hand.is_linked(bases[unit]) {
                let (same, now) = hand.combination(bases[unit]);
                assert_eq!(same, number);
                moved = moved.max(if now == apn { 0 } else { unit });
            }
        }
        hand.check();
    }
    assert!(moved > 2, "{moved}");
    hand.drive.run_until_idle(nandlab::drive::IDLE_LIMIT).unwrap();
    assert_eq!((hand.count(), hand.drive.stats().refresh.promoted_pages), (0, 14));
    hand.end();
}

#[test]
fn hot_units_are_written_elsewhere() {
    let mut hand = Hand::with_units(SIXTEENTH, &[], 16);
    let old = hand.at(0);
    for _ in 0..8 {
        one(&mut hand.drive, Op::Read, 0, PAGE);
    }
    for _ in 0..7 {
        one(&mut hand.drive, Op::Read, 2 * PAGE, PAGE);
    }
    hand.drive.advance(at(when(864_078 + HALF_GRACE_S) + PROGRAM));
    let stats = &hand.drive.stats().refresh;
    assert_eq!((stats.hot_pages, stats.partial_pages, hand.count()), (1, 15, 15));
    assert!(hand.at(0) != old && !hand.is_linked(hand.at(0)) && hand.is_linked(hand.at(2)));
    let programs = hand.refresh(FlashOp::Program, 0);
    assert_eq!(
        programs.iter().map(|program| (program.1, program.2)).collect::<Vec<_>>(),
        [(0, 0), (1, hand.first_number())]
    );
    hand.end();
}

#[test]
fn units_whose_bits_do_not_fit_are_written_elsewhere() {
    // An entry has 14 bits. One entry for each of the 32,768 bits and one for each of the 4 codewords take 57,351
    // bytes.
    let mut hand = Hand::with_units("susceptible_ratio = 1.0, encoding = 'entries'", &[], 16);
    hand.drive.advance(at(DUE + 100_000 * US));
    let stats = &hand.drive.stats().refresh;
    assert_eq!((stats.too_susceptible, stats.partial_pages, stats.combination_pages), (16, 0, 0));
    assert_eq!((stats.partial_blocks, stats.late_blocks, hand.count()), (1, 0, 0));
    assert_eq!(hand.refresh(FlashOp::Program, 0).iter().filter(|program| program.1 == 0).count(), 16);
    hand.end();
}

#[test]
fn with_few_free_superblocks_refresh_is_conventional() {
    // One of 80 superblocks is in use: 98.75 % are free.
    for (share, partial) in [("0.9875", 1), ("0.988", 0)] {
        let policy = format!("{SIXTEENTH}, min_free_blocks = {share}");
        let mut hand = Hand::with_units(&policy, &[], 16);
        hand.drive.advance(at(DUE + 100_000 * US));
        let stats = &hand.drive.stats().refresh;
        assert_eq!((stats.partial_blocks, stats.blocks_while_off), (partial, 1 - partial), "{share}");
        assert_eq!(hand.refresh(FlashOp::Program, 0).len(), if partial == 1 { 1 } else { 16 });
        assert_eq!(hand.flash(FlashOp::Erase, Cause::Refresh), 1 - partial);
        hand.end();
    }
}

// -------------------------------------------------------------------------------------------------------------- pread

#[test]
fn a_pread_takes_as_long_as_its_slower_half() {
    // A pread transfers only 256 bytes of the combination page: 20 us * 256 / 4096 = 1.25 us.
    for (sets, ns) in [
        // On two channels: 50 + 20 + 15 us; the susceptible bits arrive after 51.25 us.
        (&[][..], 85_000),
        // On one channel the transfers follow one another: 50 + 1.25 + 20 + 15 us.
        (&["drive.channels=1", "drive.dies_per_chip=2"][..], 86_250),
        // On one die the reads follow one another: 51.25 + 70 + 15 us.
        (&["drive.channels=1", "drive.planes_per_die=2"][..], 136_250),
    ] {
        let mut hand = Hand::linked(sets);
        let reads = hand.flash(FlashOp::Read, Cause::Host);
        assert_eq!(one(&mut hand.drive, Op::Read, 0, PAGE), ns, "{sets:?}");
        assert_eq!(
            (hand.flash(FlashOp::Read, Cause::Host) - reads, hand.drive.stats().refresh.host_preads),
            (2, 1)
        );
        let pins = [hand.at(0), hand.at(hand.first_number())].map(|unit| hand.superblock(unit).pins);
        assert_eq!(pins, [0, 0]);
        // A unit without a link needs one read.
        hand.write([32]);
        assert_eq!(one(&mut hand.drive, Op::Read, 32 * PAGE, PAGE), 85_000);
        hand.end();
    }
}

#[test]
fn preads_that_complete_a_partly_written_unit_are_counted_apart() {
    let mut hand = Hand::linked(&[]);
    let preads = |hand: &Hand| {
        let refresh = &hand.drive.stats().refresh;
        (refresh.host_preads, refresh.merge_preads, hand.drive.stats().counters.merge_reads)
    };
    one(&mut hand.drive, Op::Read, 0, PAGE);
    assert_eq!(preads(&hand), (1, 0, 0));
    one(&mut hand.drive, Op::Write, 0, PAGE / 2);
    assert_eq!(preads(&hand), (2, 1, 1));
    // The unit has been written and has no link any more.
    one(&mut hand.drive, Op::Write, 0, PAGE / 2);
    assert_eq!(preads(&hand), (2, 1, 2));
    hand.end();
}

#[test]
fn a_pread_waits_for_the_busy_die_of_its_bits() {
    // Time after the program: with read levels 51.25 + 15 us; without them 50 us, 640 ns (a sixteenth of a page's
    // transfer of 10.24 us) and 15 us.
    for (sets, longer) in [(&[][..], 66_250), (&["ecc.levels='none'", "reliability.rber='none'"][..], 65_640)]
    {
        let mut hand = Hand::linked(sets);
        // Die 1 is programming for 910.24 us.
        hand.submit(Op::Write, 1);
        hand.submit(Op::Read, 0);
        let begun = hand.drive.now();
        // The sub-reads pin both superblocks.
        hand.drive.advance(begun + ns(500 * US));
        let pins = [hand.at(0), hand.at(hand.first_number())].map(|unit| hand.superblock(unit).pins);
        assert_eq!(pins, [1, 1], "{sets:?}");
        hand.drive.run_until_idle(nandlab::drive::IDLE_LIMIT).unwrap();
        let done: Vec<_> = hand.drive.completions().collect();
        let read = done.iter().find(|done| done.request.op == Op::Read).unwrap();
        assert_eq!((read.completed - begun).ns(), PROGRAM + longer);
        hand.end();
    }
}

/// Returns the RBER of a page of the drive `BY_HAND` at an age in seconds.
fn rber(spec: &Spec, pe_cycles: u32, age_s: u64) -> f64 {
    let age_s = age_s as u32;
    let condition =
        Condition { pe_cycles, age_s, reads: 0, copybacks: 0, kind: spec.drive.cell.kind_of_row(0) };
    Reliability::new(&spec.reliability).rber(&condition)
}

#[test]
fn each_sub_read_of_a_pread_is_tried_again_alone() {
    let mut seen = std::collections::BTreeSet::new();
    for pe_cycles in [12_000, 14_000, 16_000, 18_000] {
        let spec = spec(
            &text(SIXTEENTH).replace("pe_cycles = 1500", &format!("pe_cycles = {pe_cycles}")),
            &["reliability.read_disturb=0.0"],
        );
        let mut hand = Hand::of(&spec);
        hand.write((0..16).map(|unit| 2 * unit));
        let written = second(PROGRAM);
        let linked_at = DUE + READ_16 + PROGRAM;
        hand.drive.advance(at(linked_at));
        assert_eq!(hand.count(), 16);
        // The errors of the first unit were corrected when it was read. The age of its susceptible bits counts from the
        // start of the program of the combination page.
        let corrected = second(DUE + 229 * US);
        let programmed = second(linked_at - PROGRAM);
        for days in [11, 15, 19] {
            hand.drive.advance(at(days * 1_000_000_000));
            let now = second(hand.drive.now().ns());
            // The age of a unit counts from the start of its program, here in second 0.
            let of = |age_s| rber(&spec, pe_cycles, age_s);
            assert!(written > 0, "the program of the first unit starts and ends in the same second");
            let base = hand.drive.ecc().level_for(of(now) - of(corrected));
            let bits = hand.drive.ecc().level_for(of(now - programmed));
            let whole = hand.drive.ecc().level_for(of(now));
            assert!(base <= whole && base <= 7 && bits <= 7);
            seen.insert((base, bits, whole));
            // Each round repeats, one level higher, the sub-reads that are not yet decoded, and then decodes the unit.
            let sense = |level: u64| 50_000 + 14_000 * (level - 1);
            let transfer = |level: u64| 20_000 + 10_000 * (level - 1);
            let rounds = u64::from(base.max(bits));
            let latency: u64 = (1..=rounds)
                .map(|level| {
                    let first = if level <= u64::from(base) { sense(level) + transfer(level) } else { 0 };
                    let part = sense(level) + (transfer(level) * 256).div_ceil(4096);
                    first.max(if level <= u64::from(bits) { part } else { 0 }) + 15_000
                })
                .sum();
            let (reads, retries) = (hand.flash(FlashOp::Read, Cause::Host), hand.drive.stats().ecc.retries);
            assert_eq!(
                one(&mut hand.drive, Op::Read, 0, PAGE),
                latency,
                "{pe_cycles}, {days} d: {base}, {bits}"
            );
            assert_eq!(hand.flash(FlashOp::Read, Cause::Host) - reads, 2);
            assert_eq!(hand.drive.stats().ecc.retries - retries, u64::from(base + bits) - 2);
        }
    }
    println!("{seen:?}");
    assert!(seen.iter().any(|&(base, bits, _)| bits > base), "{seen:?}");
    assert!(seen.iter().any(|&(base, _, whole)| base < whole), "{seen:?}");
}

// ------------------------------------------------------------------------------------------------------------ overdue

#[test]
fn units_read_after_half_of_the_grace_do_not_wait_in_the_vsm() {
    // Reads take 10 ms. Two superblocks with four units each come due at almost the same time. The refresh of the
    // second superblock begins after 40 ms and reads three of its units after half of the grace of 100 ms. Four units
    // of a sixteenth each do not fill a line, so units that waited in the VSM would be late.
    let sets = ["timing.read=10ms", "ecc.levels='none'", "reliability.rber='none'"];
    let mut hand = Hand::new(SIXTEENTH, &sets);
    hand.write((0..32).map(|unit| 2 * unit));
    for unit in (0..32).filter(|unit| unit % 16 > 3) {
        hand.submit(Op::Trim, 2 * unit);
    }
    hand.drive.advance(at(12_000_000_000));
    let stats = &hand.drive.stats().refresh;
    assert_eq!((stats.partial_blocks, stats.partial_pages), (2, 8), "{stats:?}");
    assert_eq!((stats.late_blocks, hand.drive.overdue()), (0, None), "{stats:?}");
    hand.end();
}

#[test]
fn a_superblock_that_is_being_filled_when_it_is_due_is_refreshed_in_time() {
    // A program in the superblock is under way when the superblock comes due, and the drive is never idle afterwards.
    let mut hand = Hand::with_units(SIXTEENTH, &[], 8);
    hand.drive.advance(at(DUE - 10 * US));
    hand.submit(Op::Write, 16);
    while hand.drive.now() < at(when(864_078 + 2 * HALF_GRACE_S)) {
        one(&mut hand.drive, Op::Read, 0, PAGE);
        hand.drive.advance(hand.drive.now() + ns(100 * US));
        hand.drive.completions();
    }
    let stats = &hand.drive.stats().refresh;
    assert_eq!((stats.blocks, stats.late_blocks, hand.drive.overdue()), (1, 0, None), "{stats:?}");
    hand.end();
}

#[test]
fn an_open_superblock_whose_units_were_all_invalid_when_it_was_due_is_refreshed_later() {
    let mut hand = Hand::with_units(SIXTEENTH, &[], 1);
    hand.submit(Op::Trim, 0);
    hand.drive.advance(at(DUE + 1_000_000 * US));
    // A unit that is written now is due within ten days.
    hand.write([2]);
    hand.drive.advance(hand.drive.now() + ns(10_200_000 * US));
    assert_eq!((hand.drive.stats().refresh.blocks, hand.drive.overdue()), (1, None));
    hand.end();
}

#[test]
fn no_superblock_is_late_under_a_load_that_leaves_room() {
    for (seed, policy) in (0..).zip([
        "fcr = {}",
        "fcr = { full_strength = true }",
        "partial = {}",
        "partial = { vsm_pages = 1 }",
    ]) {
        let text = format!("seed = {seed}\n{BY_HAND}policy.{policy}\n");
        let mut hand = Hand::of(&spec(&text, &["drive.blocks_per_plane=24"]));
        let mut stream = Stream::new(seed, "late");
        let units = u64::from(hand.drive.geometry().logical_units);
        for _ in 0..4000 {
            let lpn = stream.below(units);
            let op = [Op::Read, Op::Write, Op::Write, Op::Trim][stream.below(4) as usize];
            let request = Request::new(op, lpn * PAGE, PAGE).at(hand.drive.now());
            hand.drive.submit(&request).unwrap();
            // The mean pause is 10 ms: 4000 requests take 40 days, that is four intervals.
            hand.drive.advance(hand.drive.now() + ns(stream.below(20_000) * US));
            hand.drive.completions();
            assert_eq!(hand.drive.overdue(), None, "{policy}: {:?}", hand.drive.stats().refresh);
        }
        let stats = &hand.drive.stats().refresh;
        assert!(stats.late_blocks == 0 && stats.blocks > 40, "{policy}: {stats:?}");
        hand.end();
    }
}

#[test]
fn no_superblock_is_late_while_the_host_writes_all_the_time() {
    // The first three quarters of the LPNs are rewritten all the time. The superblocks with the last quarter are
    // refreshed while GC empties victims.
    for (seed, policy) in (0..).zip(["fcr = {}", "partial = {}"]) {
        let text = format!("seed = {seed}\n{BY_HAND}policy.{policy}\n");
        let mut hand = Hand::of(&spec(&text, &["drive.blocks_per_plane=24"]));
        let mut stream = Stream::new(seed, "busy");
        let units = u64::from(hand.drive.geometry().logical_units);
        // A unit is written every 5.9 ms, so on each die a superblock of 16 units comes due every 190 ms. The
        // conventional refresh of a superblock takes about 20 ms on an idle die.
        for lpn in 0..units {
            hand.write([lpn]);
            hand.drive.advance(hand.drive.now() + ns(5_000 * US));
        }
        while hand.drive.now() < at(35_000_000 * US) {
            while hand.drive.outstanding() > 3 {
                assert!(hand.drive.advance_to_completion(Time::NEVER));
                hand.drive.completions();
            }
            hand.submit(Op::Write, stream.below(units * 3 / 4));
            let stats = &hand.drive.stats().refresh;
            assert_eq!((hand.drive.overdue(), stats.late_blocks), (None, 0), "{policy}: {stats:?}");
        }
        let stats = &hand.drive.stats().refresh;
        assert!(stats.blocks > 20 && hand.drive.stats().gc.victims > 500, "{policy}: {stats:?}");
        hand.end();
    }
}

#[test]
fn without_due_superblocks_refresh_changes_nothing() {
    let run = |policy: &str, requests: u32| {
        let mut hand =
            Hand::of(&spec(&format!("{BY_HAND}policy = {policy}\n"), &["reliability.clock_scale=1.0"]));
        let mut stream = Stream::new(1, "nothing due");
        for _ in 0..requests {
            let lpn = stream.below(400);
            let op = if stream.below(3) == 0 { Op::Read } else { Op::Write };
            hand.submit(op, lpn);
            hand.drive.advance(hand.drive.now() + ns(stream.below(500) * US));
        }
        hand.drive.run_until_idle(nandlab::drive::IDLE_LIMIT).unwrap();
        hand.check();
        assert!(hand.drive.stats().refresh.blocks == 0);
        (hand.drive.now(), hand.drive.stats().flash, hand.drive.stats().gc.victims)
    };
    assert_eq!(run("'fcr'", 3000), run("'none'", 3000));
    assert!(run("'none'", 3000).2 > 20);
    // Partial refresh keeps a superblock free for combination pages, so GC begins earlier. With 1000 requests GC has
    // not yet begun, and the runs are equal.
    assert_eq!(run("'partial'", 1000), run("'none'", 1000));
}

// ----------------------------------------------------------------------------------------------------------- the audit

#[test]
fn the_audit_detects_wrong_links() {
    use nandlab::drive::Inner;
    use nandlab::ftl::Ftl;
    type Break = fn(&Geometry, Inner, Lpn);
    fn base(ftl: &Ftl) -> UnitId {
        ftl.map.get(Lpn(4)).unwrap()
    }
    let breaks: [(&str, &str, Break); 10] = [
        ("a linked unit has been written since", "has been written since", |_, inner, _| {
            inner.array.set_sequence(base(inner.ftl), 1);
        }),
        (
            "the superblock of a linked unit has been erased since",
            "differs from its entry",
            |geometry, inner, _| {
                inner.array.superblock_mut(geometry.superblock_of(base(inner.ftl))).pe_cycles += 1;
            },
        ),
        ("a unit is linked twice", "its count of links is 17, found 16", |_, inner, number| {
            inner.links.unwrap().link(number, 2);
        }),
        ("a combination page is not mapped", "has lost its combination page", |_, inner, number| {
            inner.ftl.unmap(inner.array, number);
        }),
        ("a combination page has other contents", "whose entries are", |_, inner, number| {
            let apn = inner.ftl.map.get(number).unwrap();
            inner.links.unwrap().stage(apn, [].into());
        }),
        ("a link remains after its unit was unmapped", "is not the newest page of LPN 4", |_, inner, _| {
            inner.ftl.unmap(inner.array, Lpn(4));
        }),
        ("a link is missing", "is 16, but 15 units of the superblock are linked", |_, inner, number| {
            inner.links.unwrap().unlink(number);
            inner.parts.clear(base(inner.ftl));
        }),
        (
            "a superblock counts a link too many",
            "is 17, but 16 units of the superblock are linked",
            |geometry, inner, _| {
                inner.array.superblock_mut(geometry.superblock_of(base(inner.ftl))).linked += 1;
            },
        ),
        (
            "a pending unit is in no line",
            "neither a link nor an entry in the VSM",
            |geometry, inner, number| {
                let unit = base(inner.ftl);
                inner.links.unwrap().unlink(number);
                inner.parts.clear(unit);
                inner.parts.set_pending(unit);
                inner.array.superblock_mut(geometry.superblock_of(unit)).linked -= 1;
            },
        ),
        (
            "a combination page remains without links",
            "its count of links is 0, found 0",
            |geometry, inner, number| {
                let units: Vec<UnitId> =
                    (0..16).map(|unit| inner.ftl.map.get(Lpn(2 * unit)).unwrap()).collect();
                let links = inner.links.unwrap();
                for unit in units {
                    links.unlink(number);
                    inner.parts.clear(unit);
                    inner.array.superblock_mut(geometry.superblock_of(unit)).linked -= 1;
                }
            },
        ),
    ];
    for (what, says, break_it) in breaks {
        let mut hand = Hand::linked(&[]);
        hand.check();
        let (geometry, number) = (hand.drive.geometry().clone(), Lpn(hand.first_number()));
        break_it(&geometry, hand.drive.inner_mut(), number);
        let text = hand.drive.audit().expect_err(what);
        assert!(text.contains(says), "{what}: {text}");
    }
}

// --------------------------------------------------------------------------------------------------------- power loss

const CAPACITOR: [&str; 6] = [
    "capacitor.capacitance=1mF",
    "capacitor.controller_power=1W",
    "capacitor.program_power=100mW",
    "capacitor.temperature=-40",
    "cache.size=64KiB",
    "cache.flush_to=flash",
];

#[test]
fn power_loss_saves_a_half_full_line_with_a_capacitor_and_drops_it_without() {
    for sets in [&CAPACITOR[..], &[][..]] {
        let is_saved = !sets.is_empty();
        let mut hand = Hand::new(SIXTEENTH, sets);
        hand.write((0..8).map(|unit| 2 * unit));
        hand.submit(Op::Flush, 0);
        hand.drive.run_until_idle(nandlab::drive::IDLE_LIMIT).unwrap();
        hand.drive.completions();
        // With the capacitor there is also a write cache: the units are programmed somewhat later, and so come due
        // later.
        hand.drive.advance(at(DUE + 40_000 * US));
        assert_eq!((hand.drive.stats().refresh.partial_pages, hand.count()), (8, 0));
        let bases: Vec<UnitId> = (0..8).map(|unit| hand.at(2 * unit)).collect();
        let loss = hand.drive.cut_power().clone();
        assert_eq!(
            (loss.vsm_lines, loss.vsm_lines_saved),
            (u32::from(is_saved), u32::from(is_saved)),
            "{loss:?}"
        );
        assert!(loss.lost.is_empty());
        assert_eq!(hand.count(), if is_saved { 8 } else { 0 });
        assert!(bases.iter().all(|&base| hand.is_linked(base) == is_saved));
        assert!((0..8).all(|unit| hand.at(2 * unit) == bases[unit as usize]));
        hand.check();
        // The refresh was not completed, so the superblock is still due. It may have links, so this time it is
        // refreshed conventionally.
        hand.drive.advance(hand.drive.now() + ns(100_000 * US));
        let stats = &hand.drive.stats().refresh;
        assert_eq!((stats.blocks, stats.partial_blocks, hand.drive.overdue()), (2, 1, None));
        assert_eq!((hand.count(), stats.promoted_pages), (0, if is_saved { 8 } else { 0 }));
        hand.end();
    }
}

#[test]
fn the_program_of_a_line_ends_with_a_capacitor_and_is_torn_without() {
    for sets in [&CAPACITOR[..], &[][..]] {
        let ends = !sets.is_empty();
        let mut hand = Hand::new(SIXTEENTH, sets);
        hand.write((0..16).map(|unit| 2 * unit));
        hand.submit(Op::Flush, 0);
        hand.drive.run_until_idle(nandlab::drive::IDLE_LIMIT).unwrap();
        hand.drive.completions();
        while hand.drive.stats().refresh.combination_pages == 0 {
            hand.drive.advance(hand.drive.now() + ns(100 * US));
        }
        let loss = hand.drive.cut_power().clone();
        // A line that is being programmed is not among the lines to save.
        assert_eq!((loss.vsm_lines, loss.vsm_lines_saved, loss.torn_programs), (0, 0, u32::from(!ends)));
        assert_eq!((hand.count(), loss.lost.len()), (if ends { 16 } else { 0 }, 0));
        hand.check();
        hand.drive.advance(hand.drive.now() + ns(100_000 * US));
        assert_eq!((hand.count(), hand.drive.overdue()), (0, None));
        hand.end();
    }
}

#[test]
fn power_loss_keeps_valid_links_and_drops_stale_links() {
    let mut hand = Hand::linked(&[]);
    let bases: Vec<UnitId> = (0..16).map(|unit| hand.at(2 * unit)).collect();
    hand.write([0]);
    hand.submit(Op::Trim, 2);
    hand.submit(Op::Flush, 0);
    // The flush does not cover the TRIM that follows it: power loss undoes this TRIM, and the unit is linked again.
    hand.submit(Op::Trim, 4);
    assert_eq!(hand.count(), 13);
    hand.drive.cut_power();
    assert_eq!((hand.count(), hand.is_linked(bases[0]), hand.is_linked(bases[1])), (14, false, false));
    assert!(bases[2..].iter().all(|&base| hand.is_linked(base)));
    hand.check();
    // A link records the sequence number of its unit and the P/E cycles of its superblock. If they differ from those in
    // flash, the link is stale.
    hand.drive.lose_power();
    let geometry = hand.drive.geometry().clone();
    let (array, _) = hand.drive.parts_mut();
    array.set_sequence(bases[5], 1000);
    hand.drive.restore_power();
    assert_eq!((hand.count(), hand.is_linked(bases[5]), hand.is_linked(bases[6])), (13, false, true));
    hand.drive.lose_power();
    let (array, _) = hand.drive.parts_mut();
    array.set_sequence(bases[5], 6);
    array.superblock_mut(geometry.superblock_of(bases[6])).pe_cycles += 1;
    hand.drive.restore_power();
    assert_eq!((hand.count(), hand.links().combinations().count()), (0, 0));
    hand.drive.audit().unwrap();
}

#[test]
fn recovery_restores_the_newer_of_two_combination_pages_with_one_number() {
    // The second superblock is younger than the first by half a second, that is by half a day of ageing.
    const LATER: u64 = 500_000_000;
    let mut hand = Hand::with_units(SIXTEENTH, &[], 16);
    hand.drive.advance(at(LATER));
    hand.write((16..32).map(|unit| 2 * unit));
    hand.drive.advance(at(DUE + READ_16 + PROGRAM));
    assert_eq!(hand.count(), 16);
    let old = hand.at(hand.first_number());
    // The first combination page becomes invalid, and the combination page of the second superblock gets its number.
    // Both combination pages are in one open superblock.
    for unit in 0..16 {
        hand.submit(Op::Trim, 2 * unit);
    }
    assert_eq!((hand.count(), hand.links().combinations().count()), (0, 0));
    hand.drive.advance(at(when(second(LATER + PROGRAM) + INTERVAL_S) + READ_16 + PROGRAM));
    let (number, new) = hand.combination(hand.at(32));
    assert_eq!((number.0, hand.count()), (hand.first_number(), 16));
    assert!(new != old && hand.links().content(old).is_some(), "the old combination page is still in flash");
    hand.drive.cut_power();
    assert_eq!((hand.combination(hand.at(32)), hand.count()), ((number, new), 16));
    hand.check();
    // The newer combination page is torn. Recovery finds the older one, whose links refer to units that are no longer
    // mapped.
    hand.drive.lose_power();
    hand.drive.parts_mut().0.tear(new);
    hand.drive.restore_power();
    assert_eq!((hand.count(), hand.links().combinations().count()), (0, 0));
    hand.check();
    hand.end();
}
