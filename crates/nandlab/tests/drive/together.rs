//! Interactions of the four schemes on small drives whose state is known.
//!
//! With the level table `laldpc` a read at level L takes 85 + 24 (L - 1) us: sensing 50 + 14 (L - 1), transfer 20 + 10
//! (L - 1), decoding 15. A day of ageing takes a second.

use crate::common::{SECOND, US, at, ballast, ns, one, oracle_and, request, seen, spec, submit_with_few};
use nandlab::base::geometry::{DieId, LaneId, Lpn, UnitId};
use nandlab::base::units::Time;
use nandlab::drive::Drive;
use nandlab::flash::{AgeClock, Condition, Reliability, Superblock};
use nandlab::host::Op;
use nandlab::probe::Probe;
use nandlab::report::{RunFacts, Taps, summary};
use nandlab::sched::{Cause, FlashOp, Transaction, Watcher};

const PAGE: u64 = 4096;
const DAY_S: u32 = 86_400;

/// Two dies of one plane, each on its own channel: even LPNs are on die 0, odd LPNs on die 1. Twenty milliseconds after
/// the last request GC empties superblocks with two invalid units, provided that there is more garbage than the units
/// of the internal streams' open superblocks.
const BASE: &str = "[drive]\nchannels = 2\nchips_per_channel = 1\ndies_per_chip = 1\nplanes_per_die = 1\n\
     blocks_per_plane = 200\npages_per_block = 16\npage_size = '4KiB'\ncell = 'mlc'\nop = 1.0\nendurance = 1000000\n\
     [timing]\nprogram = '900us'\nerase = '3.5ms'\nchannel_ns_per_byte = 2.5\ncommand = '0us'\n\
     [gc]\nbackground_free = 0.9999\nidle_valid_max = 0.9\nidle_after = '20ms'\n[ftl]\n\
     wear_levelling = 'none'\nallocation = 'CWDP'\n[ecc]\nlevels = 'laldpc'\nstart = 'last-level'\n[reliability]\n\
     rber = 'vth'\npe_cycles = 12000\nclock_scale = 86400.0\n";

const COPYBACKS: &str = "migration.policy={ rcopyback-greedy = { limit = 2 } }";
/// The entry of each unit has 256 bytes: the entries of 16 units fill a combination page.
const PARTIAL: &str =
    "refresh.policy={ partial = { susceptible_ratio = 0.0, encoding = 'entries', codeword_bits = 128 } }";
/// The susceptible bits of each unit take some 120 bytes. The bits of a superblock of 16 units do not fill a line, so
/// the line is programmed at half of the grace.
const WAITS: &str = "refresh.policy={ partial = { susceptible_ratio = 0.03 } }";
/// All bits are susceptible: each unit fills a combination page.
const WHOLE: &str = "refresh.policy={ partial = { susceptible_ratio = 1.0 } }";
/// Number of superblocks of [`ballast`]. Their garbage exceeds the 64 units of the superblocks that may be open for GC,
/// copybacks of two counts and combination pages.
const BALLAST: u32 = 80;
/// Overrides that keep GC from starting.
const LAZY: [&str; 2] = ["gc.foreground_free=0.0", "gc.background_free=0.001"];
const EVERY_300_DAYS: &str = "refresh.interval=[{ pe = 1000000, every = '300d' }]";
const DUE: u64 = 300 * SECOND;
/// A time at which the units of a superblock due at [`DUE`] are linked: after sixteen reads at full strength, half of
/// the grace of 1 % (1.5 days, that is 1.5 s) and a program.
const LINKED: u64 = DUE + 8 * SECOND / 5;

#[derive(Default)]
struct Log(Vec<Transaction>);

impl Watcher for Log {
    fn on_issue(&mut self, _: Time, _: DieId, transaction: &Transaction) {
        self.0.push(*transaction);
    }
}

impl Probe for Log {}

struct Hand {
    drive: Drive<Taps>,
}

impl Hand {
    fn new(sets: &[&str]) -> Self {
        Self { drive: Drive::with_probe(&spec(BASE, sets), oracle_and(Log::default())) }
    }

    /// Returns a drive with `units` units in the first superblocks of die 0: LPN 0, 2, 4, ...
    fn with_units(sets: &[&str], units: u64) -> Self {
        let mut hand = Self::new(sets);
        (0..units).for_each(|unit| hand.write(2 * unit));
        // On a drive with a write cache the flush brings the units to flash.
        hand.submit(Op::Flush, 0);
        hand.drive.advance(hand.drive.now() + ns(20_000 * US));
        hand.drive.completions();
        hand
    }

    fn write(&mut self, lpn: u64) {
        one(&mut self.drive, Op::Write, lpn * PAGE, PAGE);
    }

    fn read_us(&mut self, lpn: u64) -> u64 {
        one(&mut self.drive, Op::Read, lpn * PAGE, PAGE) / US
    }

    fn submit(&mut self, op: Op, lpn: u64) {
        let request = request(&self.drive, op, lpn * PAGE, if op == Op::Flush { 0 } else { PAGE });
        self.drive.submit(&request).unwrap();
    }

    /// Deallocates two units of the first superblock of die 0, and lets GC move the other units. `superblocks`
    /// superblocks of ballast make GC begin. (The ballast is deallocated afterwards, and its superblocks are erased.)
    fn collect_with(&mut self, superblocks: u32) {
        let ballast = ballast(&mut self.drive, superblocks);
        self.submit(Op::Trim, 0);
        self.submit(Op::Trim, 30);
        self.drive.advance(self.drive.now() + ns(100_000 * US));
        let len = (ballast.end - ballast.start) * PAGE;
        self.drive.submit(&request(&self.drive, Op::Trim, ballast.start * PAGE, len)).unwrap();
        self.drive.advance(self.drive.now() + ns(400_000 * US));
        self.drive.completions();
    }

    fn collect(&mut self) {
        self.collect_with(BALLAST);
    }

    fn at(&self, lpn: u32) -> UnitId {
        self.drive.ftl().map.get(Lpn(lpn)).unwrap()
    }

    fn superblock(&self, lpn: u32) -> &Superblock {
        self.drive.array().superblock(self.drive.geometry().superblock_of(self.at(lpn)))
    }

    fn age_s(&self, lpn: u32) -> u32 {
        let now = AgeClock::new(f64::from(DAY_S)).at(self.drive.now());
        self.drive.array().stamp(self.at(lpn)).corrected.age_s(now)
    }

    /// Returns the level that decodes a unit now, from wear, age, reads and copybacks by the reliability model.
    fn level(&self, lpn: u32) -> u64 {
        let (superblock, drive) = (self.superblock(lpn), &self.drive);
        let condition = Condition {
            pe_cycles: superblock.pe_cycles,
            age_s: self.age_s(lpn),
            reads: superblock.reads,
            copybacks: superblock.copybacks(),
            kind: drive.array().shapes().first().kind(drive.geometry().split(self.at(lpn)).1),
        };
        let rber = Reliability::new(&drive.spec().reliability).rber_exact(&condition);
        drive.ecc().level_for(rber).into()
    }

    fn links(&self) -> nandlab::refresh::partial::Linked<'_> {
        self.drive.links().unwrap()
    }

    fn flash(&self, kind: FlashOp, cause: Cause) -> u64 {
        self.drive.stats().flash[kind as usize][cause as usize]
    }

    fn check(&mut self) {
        self.drive.completions();
        self.drive.audit().unwrap_or_else(|e| panic!("audit: {e}"));
        self.drive.probe().oracle().unwrap().verdict().unwrap_or_else(|e| panic!("oracle: {e}"));
    }

    /// Lets the drive come to rest, reads every unit, and checks that no read has failed.
    fn end(mut self) {
        self.drive.run_until_idle(nandlab::drive::IDLE_LIMIT).unwrap();
        for lpn in 0..u64::from(self.drive.geometry().logical_units) {
            self.submit(Op::Read, lpn);
        }
        self.drive.run_until_idle(nandlab::drive::IDLE_LIMIT).unwrap();
        self.check();
        assert_eq!(self.drive.stats().counters.media_errors, 0);
    }
}

/// Returns the latency in us of a read that starts at level `from` and decodes at level `to`.
fn us(from: u64, to: u64) -> u64 {
    (from..=to).map(|level| 85 + 24 * (level - 1)).sum()
}

// ----------------------------------------------------------------------------------------------- copyback and read levels

#[test]
fn a_copyback_keeps_age_errors_and_read_level_and_a_correction_resets_them() {
    let errors = ["reliability.copyback_error=1e-3", "reliability.read_disturb=1e-5"];
    for (migration, copied_back) in [(COPYBACKS, true), ("migration.policy=off-chip", false)] {
        let mut hand = Hand::with_units(&[&[migration], &errors[..]].concat(), 16);
        hand.drive.advance(at(300 * SECOND));
        let level = hand.level(2);
        assert!((2..6).contains(&level), "{level}");
        assert_eq!([hand.read_us(2), hand.read_us(2)], [us(1, level), us(level, level)]);
        let (old, reads, age_s) = (hand.at(2), hand.superblock(2).reads, hand.age_s(2));
        hand.collect();
        assert_ne!(hand.at(2), old);
        assert_eq!(hand.flash(FlashOp::Copyback, Cause::Gc), if copied_back { 14 } else { 0 });
        if copied_back {
            assert!(hand.age_s(2) >= age_s, "the copy is younger than its source");
            assert!(hand.superblock(2).reads >= reads, "the copy lacks the read disturb of its source");
            assert_eq!(hand.superblock(2).copybacks(), 1);
            // A read starts at the level of the last read of the unit, but the copy has more errors.
            let now = hand.level(2);
            assert!(now > level, "{now} {level}");
            assert_eq!([hand.read_us(2), hand.read_us(2)], [us(level, now), us(now, now)]);
            // A unit written by the host is young and starts at level 1.
            hand.write(2);
        }
        assert!(hand.age_s(2) <= DAY_S);
        assert_eq!((hand.superblock(2).copybacks(), hand.read_us(2)), (0, us(1, 1)), "{migration}");
        hand.end();
    }
}

#[test]
fn the_measured_limit_includes_read_disturb() {
    // Level 5 decodes up to an RBER of 0.010. In 30 days the unit's RBER will be below this limit without read
    // disturb, and above it after 300 reads of the superblock.
    for (disturb, copybacks) in [("1e-9", 14), ("1e-5", 0)] {
        let limit = "migration.policy={ rcopyback-greedy = { limit = { measured = { within = '30d', level = 5 } } } }";
        let disturb = format!("reliability.read_disturb={disturb}");
        let mut hand = Hand::with_units(&[limit, &disturb, "drive.blocks_per_plane=400"], 16);
        (0..300).for_each(|_| {
            hand.read_us(2);
        });
        hand.drive.advance(at(100 * SECOND));
        // A measured limit allows up to eight copybacks in a row, so nine superblocks may be open.
        hand.collect_with(160);
        assert_eq!(hand.flash(FlashOp::Copyback, Cause::Gc), copybacks, "{disturb}");
        hand.end();
    }
}

// -------------------------------------------------------------------------------------------------- refresh and read levels

#[test]
fn the_read_level_falls_when_a_unit_is_linked_not_when_it_is_read_for_the_vsm() {
    for start in ["last-level", "block-level", "drive-level", "first"] {
        let set = format!("ecc.start={start}");
        let mut hand = Hand::with_units(&[WAITS, EVERY_300_DAYS, &set], 16);
        hand.drive.advance(at(DUE - SECOND / 10));
        let level = hand.level(2);
        assert!(level > 1);
        let kept = if start == "first" { 1 } else { level };
        assert_eq!([hand.read_us(2), hand.read_us(2)], [us(1, level), us(kept, level)]);
        // The units were read at full strength, and their bits wait for a full line. Until the units are linked, they
        // are not corrected.
        hand.drive.advance(at(DUE + SECOND));
        assert_eq!((hand.drive.stats().refresh.partial_pages, hand.links().count()), (16, 0));
        assert!(hand.links().is_pending(hand.at(2)));
        assert_eq!(hand.read_us(2), us(kept, level), "{start}");
        hand.drive.advance(at(LINKED));
        assert_eq!(hand.links().count(), 16);
        // The level of the drive is no level of a unit, so the correction does not lower it.
        let linked = if start == "drive-level" { us(level, level) } else { us(1, 1) };
        assert_eq!([2, 4, 6].map(|lpn| hand.read_us(lpn)), [linked; 3], "{start}");
        hand.end();
    }
}

#[test]
fn a_read_at_full_strength_does_not_change_the_remembered_level() {
    let mut hand = Hand::new(&[WAITS, EVERY_300_DAYS, "ecc.start=block-level"]);
    // The units are from before the run and have no remembered level.
    for unit in 0..16 {
        hand.drive.write_now(Lpn(2 * unit));
    }
    hand.drive.advance(at(DUE + SECOND));
    assert_eq!(hand.drive.stats().refresh.partial_pages, 16);
    let level = hand.level(2);
    assert_eq!([hand.read_us(2), hand.read_us(4)], [us(1, level), us(level, level)]);
    hand.drive.advance(at(LINKED));
    assert_eq!((hand.links().count(), hand.read_us(6)), (16, us(1, 1)));
    hand.check();
}

#[test]
fn a_conventional_refresh_resets_the_level() {
    for policy in ["fcr", "{ fcr = { full_strength = true } }", "{ fcr = { in_place = true } }"] {
        let set = format!("refresh.policy={policy}");
        let mut hand = Hand::with_units(&[&set, EVERY_300_DAYS], 16);
        hand.drive.advance(at(DUE - SECOND / 10));
        let level = hand.level(2);
        assert_eq!([hand.read_us(2), hand.read_us(2)], [us(1, level), us(level, level)]);
        hand.drive.advance(at(DUE + SECOND));
        assert_eq!((hand.drive.stats().refresh.blocks, hand.read_us(2)), (1, us(1, 1)), "{policy}");
        hand.end();
    }
}

#[test]
fn known_errors_count_as_corrected_at_the_next_read() {
    let ec_cache = "refresh.policy={ ec-cache = { hot_reads = 2 } }";
    let mut hand = Hand::with_units(&[ec_cache, "refresh.interval=[{ pe = 1000000, every = '36500d' }]"], 16);
    hand.drive.advance(at(300 * SECOND));
    let level = hand.level(2);
    assert_eq!([0; 3].map(|_| hand.read_us(2)), [us(1, level), us(level, level), us(1, 1)]);
    hand.end();
}

// ----------------------------------------------------------------------------------------------------- refresh and copyback

#[test]
fn known_errors_move_with_a_copyback_and_are_dropped_with_a_correction() {
    let ec_cache = "refresh.policy={ ec-cache = { hot_reads = 1 } }";
    let never = "refresh.interval=[{ pe = 1000000, every = '36500d' }]";
    for (migration, copied_back) in [(COPYBACKS, true), ("migration.policy=off-chip", false)] {
        let mut hand = Hand::with_units(&[ec_cache, never, migration], 16);
        hand.drive.advance(at(300 * SECOND));
        let level = hand.level(2);
        assert_eq!(hand.read_us(2), us(1, level));
        let known = hand.drive.cached_rber(hand.at(2)).expect("the errors of the unit are known");
        let old = hand.at(2);
        hand.collect();
        assert_eq!(hand.drive.cached_rber(old), None);
        assert_eq!(hand.drive.cached_rber(hand.at(2)), copied_back.then_some(known), "{migration}");
        assert_eq!(hand.drive.error_cache().unwrap().entries, u64::from(copied_back));
        assert_eq!(hand.read_us(2), us(1, 1));
        hand.end();
    }
}

#[test]
fn a_partially_refreshed_unit_is_merged_and_never_copied_back() {
    let mut hand = Hand::with_units(&[PARTIAL, EVERY_300_DAYS, COPYBACKS], 16);
    hand.drive.advance(at(LINKED));
    assert_eq!(hand.links().count(), 16);
    hand.collect();
    // GC reads fourteen units by pread, and programs the merged units into a superblock of copyback count 0.
    let of_gc = [FlashOp::Copyback, FlashOp::Read, FlashOp::Program].map(|kind| hand.flash(kind, Cause::Gc));
    assert_eq!((of_gc, hand.links().count()), ([0, 28, 14], 0));
    assert_eq!(hand.drive.stats().refresh.promoted_pages, 14);
    for lpn in (1..15).map(|unit| 2 * unit) {
        assert_eq!(hand.superblock(lpn).copybacks(), 0);
        assert!(hand.age_s(lpn) <= DAY_S && !hand.links().is_marked(hand.at(lpn)));
        assert_eq!(hand.read_us(lpn.into()), us(1, 1));
    }
    hand.end();
}

#[test]
fn a_unit_whose_bits_wait_in_the_vsm_is_not_copied_back() {
    let mut hand = Hand::with_units(&[WAITS, EVERY_300_DAYS, COPYBACKS], 16);
    hand.drive.advance(at(DUE + SECOND));
    assert!(hand.links().is_pending(hand.at(2)));
    hand.collect();
    assert_eq!((hand.flash(FlashOp::Copyback, Cause::Gc), hand.flash(FlashOp::Program, Cause::Gc)), (0, 14));
    assert!(!hand.links().is_marked(hand.at(2)) && hand.age_s(2) <= DAY_S);
    hand.end();
}

#[test]
fn a_combination_page_moves_off_chip_with_its_links() {
    let mut hand = Hand::with_units(&[WHOLE, EVERY_300_DAYS, COPYBACKS], 16);
    hand.drive.advance(at(LINKED));
    assert_eq!((hand.links().count(), hand.links().combinations().count()), (16, 16));
    // Each linked unit, with the number and the PPN of its combination page.
    let linked = |unit: u32| {
        let number = hand.links().of(hand.at(2 * unit)).unwrap().0;
        (hand.at(2 * unit), number, hand.at(number.0))
    };
    let before: Vec<(UnitId, Lpn, UnitId)> = (1..15).map(linked).collect();
    ballast(&mut hand.drive, BALLAST);
    hand.submit(Op::Trim, 0);
    hand.submit(Op::Trim, 30);
    let mut moved = 0;
    for _ in 0..400 {
        hand.drive.advance(hand.drive.now() + ns(250 * US));
        for &(base, number, apn) in &before {
            if let Some((same, _)) = hand.links().of(base) {
                assert_eq!(same, number);
                moved += u32::from(hand.at(number.0) != apn);
            }
        }
        hand.check();
    }
    assert!(moved > 0);
    let first = hand.drive.geometry().logical_units;
    let of_lines = |t: &&Transaction| t.lpn.0 >= first && t.cause == Cause::Gc && t.kind != FlashOp::Erase;
    let kinds: Vec<FlashOp> = seen::<Log>(&hand.drive).0.iter().filter(of_lines).map(|t| t.kind).collect();
    assert!(kinds.contains(&FlashOp::Program) && !kinds.contains(&FlashOp::Copyback), "{kinds:?}");
    hand.end();
}

#[test]
fn refresh_in_place_resets_the_copyback_count() {
    let in_place = "refresh.policy={ fcr = { in_place = true } }";
    let once = "migration.policy={ rcopyback-greedy = { limit = 1 } }";
    let mut hand = Hand::with_units(&[in_place, EVERY_300_DAYS, once], 16);
    hand.collect();
    assert_eq!((hand.superblock(2).copybacks(), hand.flash(FlashOp::Copyback, Cause::Gc)), (1, 14));
    // The refresh closes the superblock with two units unused. So GC empties the superblock after all its units have
    // been corrected.
    hand.drive.advance(at(DUE - SECOND / 2));
    ballast(&mut hand.drive, BALLAST);
    hand.drive.advance(at(DUE + SECOND));
    assert_eq!(hand.drive.stats().refresh.pages_in_place, 14);
    assert_eq!((hand.superblock(2).copybacks(), hand.flash(FlashOp::Copyback, Cause::Gc)), (1, 2 * 14));
    assert!(hand.age_s(2) <= DAY_S);
    hand.end();
}

// --------------------------------------------------------------------------------------------- partial refresh and capacitor

const CAPACITOR: [&str; 6] = [
    "capacitor.capacitance=1mF",
    "capacitor.controller_power=1W",
    "capacitor.program_power=100mW",
    "capacitor.temperature=-40",
    "cache.size=64KiB",
    "cache.flush_to=flash",
];

#[test]
fn the_vsm_reduces_the_capability_by_its_lines() {
    // All page programs take the same time, so the four lines of the VSM take the energy of four units of the cache.
    for flush in ["capacitor.flush=plain", "capacitor.flush=csw"] {
        let capability = |policy: &str| {
            let sets =
                [&CAPACITOR[..], &["drive.cell=slc", "ecc.levels=none", "ecc.start=first"], &[policy, flush]];
            let sets = [&sets.concat()[..], &["reliability.rber=none", "reliability.pe_cycles=0"]].concat();
            Hand::new(&sets).drive.capability_units()
        };
        let (without, with) = (capability("refresh.policy=fcr"), capability("refresh.policy=partial"));
        assert!(without > 8.0 && (without - with - 4.0).abs() < 1e-6, "{flush}: {without} {with}");
    }
}

#[test]
fn a_detection_programs_the_vsm_before_it_drains_the_capacitor() {
    let mut hand = Hand::with_units(&[&[WAITS, EVERY_300_DAYS], &CAPACITOR[..]].concat(), 16);
    hand.drive.advance(at(DUE + SECOND));
    assert_eq!((hand.drive.stats().refresh.partial_pages, hand.links().count()), (16, 0));
    hand.drive.detect_budget();
    assert_eq!((hand.drive.power_stage(), hand.drive.stats().refresh.combination_pages), ("syncing", 1));
    hand.drive.advance(hand.drive.now() + ns(910_240 - 1));
    assert_eq!((hand.drive.power_stage(), hand.links().count()), ("syncing", 0));
    hand.drive.advance(hand.drive.now() + ns(1));
    assert_eq!((hand.drive.power_stage(), hand.links().count()), ("draining", 16));
    hand.end();
}

#[test]
fn partial_refresh_pauses_until_the_capacitor_is_charged_again() {
    let sets = [&[PARTIAL, EVERY_300_DAYS, "capacitor.recharge=10h"], &CAPACITOR[..]].concat();
    // The capacitor is measured during the refresh of a superblock, when the bits of some of its units are in the VSM.
    let mut hand = Hand::with_units(&sets, 16);
    // A detection writes the units of the write cache; these are units of the other die.
    hand.drive.advance(at(DUE - SECOND));
    (0..16).for_each(|unit| hand.write(2 * unit + 1));
    hand.submit(Op::Flush, 0);
    hand.drive.advance(at(DUE));
    while hand.drive.stats().refresh.partial_pages < 5 {
        hand.drive.advance(hand.drive.now() + ns(50 * US));
    }
    hand.drive.detect_budget();
    let mut stages = std::collections::BTreeSet::new();
    while hand.drive.power_stage() != "charged" {
        stages.insert(hand.drive.power_stage());
        assert_eq!(hand.drive.stats().refresh.partial_pages, 5);
        hand.drive.advance(hand.drive.now() + ns(50 * US));
    }
    assert!(stages.contains("draining") && stages.contains("recharging"), "{stages:?}");
    let programs = hand.flash(FlashOp::Program, Cause::Refresh);
    let linked = hand.drive.partial_refresh().unwrap().linked_pages_max;
    assert_eq!(
        (programs, linked),
        (1 + 11, 5),
        "not one line with the bits of five units, and eleven whole units"
    );
    hand.end();
}

#[test]
fn power_loss_saves_the_dirty_units_before_the_vsm() {
    let mut seen = Vec::new();
    for step in 0..200 {
        let energy = format!("capacitor.efficiency={}", 0.01 + 0.002 * f64::from(step));
        let sets = [&[WAITS, EVERY_300_DAYS, energy.as_str()], &CAPACITOR[..]].concat();
        let mut hand = Hand::with_units(&sets, 16);
        hand.drive.advance(at(DUE + SECOND));
        assert_eq!(hand.drive.stats().refresh.partial_pages, 16);
        // There are three dirty units, whose programs have not begun.
        (0..3).for_each(|unit| hand.write(33 + 2 * unit));
        let loss = hand.drive.cut_power().clone();
        assert_eq!((loss.dirty_pages, loss.vsm_lines), (3, 1), "{loss:?}");
        assert_eq!(hand.links().count(), 16 * u64::from(loss.vsm_lines_saved));
        let saved = (loss.flushed_pages, loss.vsm_lines_saved);
        if seen.last() != Some(&saved) {
            seen.push(saved);
        }
        hand.check();
    }
    assert_eq!(seen.first(), Some(&(0, 0)));
    assert!(seen.is_sorted() && seen.ends_with(&[(3, 0), (3, 1)]), "{seen:?}");
}

#[test]
fn a_superblock_whose_links_are_torn_by_power_loss_is_due_again() {
    let mut hand = Hand::with_units(&[&[PARTIAL, EVERY_300_DAYS], &LAZY[..]].concat(), 16);
    hand.drive.advance(at(LINKED));
    let number = hand.links().of(hand.at(2)).unwrap().0;
    assert_eq!((hand.links().count(), hand.drive.stats().refresh.blocks), (16, 1));
    let apn = hand.at(number.0);
    hand.drive.lose_power();
    hand.drive.parts_mut().0.tear(apn);
    hand.drive.restore_power();
    assert_eq!(hand.links().count(), 0);
    // Without the links the units again have the errors of 300 days, and are refreshed.
    hand.drive.advance(hand.drive.now() + ns(SECOND));
    assert_eq!(hand.drive.stats().refresh.blocks, 2);
    assert!(hand.age_s(2) <= 2 * DAY_S);
    hand.check();
}

// ---------------------------------------------------------------------------------------------------- copyback and capacitor

#[test]
fn an_emergency_flush_goes_to_superblocks_of_copyback_count_0() {
    let mut at_a_cut = 0;
    for flush in ["capacitor.flush=plain", "capacitor.flush=csw"] {
        for events in 0..60 {
            let sets = [&[COPYBACKS, flush], &CAPACITOR[..]].concat();
            let mut hand = Hand::with_units(&sets, 32);
            ballast(&mut hand.drive, BALLAST);
            [0, 2, 32, 34].into_iter().for_each(|lpn| hand.submit(Op::Trim, lpn));
            hand.submit(Op::Flush, 0);
            hand.drive.advance(hand.drive.now() + ns(19_000 * US));
            (0..events).for_each(|_| {
                hand.drive.advance_unless_at_rest();
            });
            at_a_cut += u32::from(hand.flash(FlashOp::Copyback, Cause::Gc) > 0);
            // At the second power loss some free superblocks were formerly open for copybacks.
            for first in [60, 70] {
                hand.drive.completions();
                (0..8).for_each(|unit| hand.submit(Op::Write, first + unit));
                hand.drive.advance(hand.drive.now() + ns(US));
                let loss = hand.drive.cut_power().clone();
                assert!(loss.flushed_pages >= 6 && !loss.has_lost(), "{loss:?}");
                for lpn in first..first + 8 {
                    assert_eq!(hand.superblock(lpn as u32).copybacks(), 0, "{flush} after {events} events");
                }
                hand.check();
                // The capacitor recharges.
                hand.drive.advance(hand.drive.now() + ns(1_000 * US));
            }
        }
    }
    assert!(at_a_cut > 20, "{at_a_cut}");
}

#[test]
fn power_loss_empties_the_buffer_of_the_mode_selector() {
    let selector = "migration.policy={ rcopyback = { limit = 2 } }";
    let eager = ["cache.size=128KiB", "cache.sync=eager", "power.cut_at=1000s"];
    let mut hand = Hand::with_units(&[&[selector], &eager[..]].concat(), 16);
    ballast(&mut hand.drive, BALLAST);
    hand.submit(Op::Trim, 0);
    hand.submit(Op::Trim, 2);
    hand.submit(Op::Flush, 0);
    hand.drive.advance(hand.drive.now() + ns(US));
    hand.drive.completions();
    (100..132).for_each(|lpn| hand.submit(Op::Write, lpn));
    hand.drive.advance(hand.drive.now() + ns(500 * US));
    assert!(hand.drive.cut_power().dirty_pages > 20);
    hand.drive.completions();
    hand.drive.advance(hand.drive.now() + ns(100_000 * US));
    let migration = &hand.drive.stats().migration;
    assert!(migration.victims_copied_back == 0 && migration.victims_off_chip > 0, "{migration:?}");
    hand.check();
}

#[test]
fn a_stream_that_uses_only_lsb_pages_needs_more_superblocks() {
    let mut hand = Hand::new(&[COPYBACKS]);
    let (_, ftl) = hand.drive.parts_mut();
    let stream = ftl.streams.named("copyback");
    let superblocks = |ftl: &nandlab::ftl::Ftl, units| ftl.superblocks_for(LaneId(0), stream, units);
    assert_eq!([0, 1, 8, 9, 16].map(|units| superblocks(ftl, units)), [0, 1, 1, 1, 1]);
    ftl.set_lsb_only(LaneId(0), stream, true);
    assert_eq!([0, 1, 8, 9, 16].map(|units| superblocks(ftl, units)), [0, 1, 1, 2, 2]);
}

// ------------------------------------------------------------------------------------------------------------- on and off

#[test]
fn a_scheme_that_is_off_is_inactive_and_the_others_are_active() {
    let all = [
        &[COPYBACKS, "refresh.policy={ partial = { min_free_blocks = 0.0 } }"][..],
        &["refresh.interval=[{ pe = 1000000, every = '302d' }]", "drive.blocks_per_plane=30", "drive.op=2"],
        &["cache.sync=smart", "cache.dirty_budget=measured", "gc.background_free=0.1"],
        &CAPACITOR,
        &[
            "capacitor.detect_every=2d",
            "reliability.retention=300d",
            "precondition.used=0.4",
            "precondition.valid=0.8",
        ],
    ]
    .concat();
    let off: [&[&str]; 5] = [
        &["ecc.start=first"],
        &["refresh.policy=none"],
        &["migration.policy=off-chip"],
        &["cache.sync=none", "cache.dirty_budget=1.0"],
        &[],
    ];
    for (which, off) in off.iter().enumerate() {
        let sets: Vec<&str> = all
            .iter()
            .filter(|set| which != 1 || !set.starts_with("refresh"))
            .chain(off.iter())
            .copied()
            .collect();
        let mut hand = Hand::new(&sets);
        hand.drive.precondition(&mut |_| true);
        hand.drive.expect_preconditioned(|taps| taps.oracle_mut().unwrap());
        let mut stream = nandlab::base::rng::Stream::new(9, "together");
        let units = u64::from(hand.drive.geometry().logical_units);
        let mut above = 0;
        for _ in 0..6000 {
            let lpn = stream.below(units).min(stream.below(units));
            let op = if stream.below(3) == 0 { Op::Read } else { Op::Write };
            submit_with_few(&mut hand.drive, op, lpn * PAGE, PAGE);
            hand.drive.advance(hand.drive.now() + ns(stream.below(3_000) * US));
            hand.drive.completions();
        }
        hand.drive.run_until_idle(nandlab::drive::IDLE_LIMIT).unwrap();
        let starts =
            seen::<Log>(&hand.drive).0.iter().filter(|t| t.kind == FlashOp::Read && t.cause == Cause::Host);
        above += starts.filter(|t| t.level > 1 && t.tries == 0).count() as u64;
        hand.drive.finish_stats();
        let told = summary(&hand.drive, &RunFacts::default());
        let stats = hand.drive.stats();
        let acts = [
            above,
            stats.refresh.partial_pages,
            stats.flash_total(FlashOp::Copyback),
            stats.power.detections.len() as u64,
        ];
        for (scheme, act) in acts.into_iter().enumerate() {
            assert_eq!(act > 0, scheme != which, "scheme {scheme} without {which}: {acts:?}");
        }
        assert_eq!([told["refresh"].is_null(), told["migration"].is_null()], [which == 1, which == 2]);
        hand.check();
    }
}
