//! Migration by copyback: the time, the limits, and the age and errors of the copied pages.

use crate::common::{
    TINY, US, at, ballast, mostly_hot, ns, one, read_everything, request, settle, spec, with_oracle,
};
use nandlab::base::geometry::{DieId, Geometry, Lpn, RequestId, SuperblockId, UnitId};
use nandlab::base::rng::Stream;
use nandlab::base::units::Time;
use nandlab::drive::Drive;
use nandlab::drive::spec::Spec;
use nandlab::flash::reliability::Vth;
use nandlab::flash::{AgeClock, AgeStamp, Array, Condition, Ecc, Reliability, SuperblockState, VthSpec};
use nandlab::host::{Op, Oracle, Request};
use nandlab::migration::{self, CopybackLimit, VictimView};
use nandlab::probe::Probe;
use nandlab::report::{RunFacts, summary};
use nandlab::sched::{Cause, FlashOp, Phase, Transaction, Watcher};
use std::collections::HashMap;

const PAGE: u64 = 4096;

/// The oracle, and an independent count of the copybacks in a row of each page.
#[derive(Default)]
struct Watch {
    oracle: Oracle,
    geometry: Option<Geometry>,
    /// By page, the number of copybacks in a row of its data.
    in_a_row: HashMap<UnitId, u8>,
    most: u8,
    copybacks: u64,
    for_wear: u64,
    /// The copyback under way.
    under_way: Option<(Lpn, UnitId, UnitId)>,
    /// Pages read for the host.
    host_reads: Vec<UnitId>,
    /// Start of the first operation that moves a page, and end of the last array phase of such an operation, in
    /// nanoseconds.
    begun: Option<u64>,
    ended: u64,
    lpns: Vec<Lpn>,
}

impl Watcher for Watch {
    fn on_issue(&mut self, now: Time, _: DieId, t: &Transaction) {
        let moves = matches!(t.cause, Cause::Gc | Cause::Wear) && t.kind != FlashOp::Erase;
        if moves && self.begun.is_none() {
            self.begun = Some(now.ns());
        }
        match t.kind {
            FlashOp::Program => {
                self.in_a_row.insert(t.unit, 0);
            }
            FlashOp::Copyback => {
                let source = t.replaces.unwrap();
                let count = self.in_a_row.get(&source).copied().unwrap_or(0) + 1;
                self.in_a_row.insert(t.unit, count);
                self.most = self.most.max(count);
                self.copybacks += 1;
                self.for_wear += u64::from(t.cause == Cause::Wear);
                self.under_way = Some((t.lpn, source, t.unit));
                self.lpns.push(t.lpn);
                if let Some(geometry) = &self.geometry {
                    let lane = |unit| geometry.lane_of(geometry.superblock_of(unit));
                    assert_eq!(lane(source), lane(t.unit), "a copyback has left its plane");
                }
            }
            FlashOp::Read if t.cause == Cause::Host => self.host_reads.push(t.unit),
            _ => {}
        }
    }

    fn on_phase(&mut self, _: Time, end: Time, _: DieId, _: u32, phase: Phase, t: &Transaction) {
        if matches!(t.kind, FlashOp::Program | FlashOp::Copyback)
            && t.cause == Cause::Gc
            && phase == Phase::Array
        {
            self.ended = end.ns();
        }
    }
}

impl Probe for Watch {
    fn needs_sequences(&self) -> bool {
        true
    }

    fn on_write_admitted(&mut self, request: Option<RequestId>, lpn: Lpn, sequence: u64) {
        self.oracle.on_write_admitted(request, lpn, sequence);
    }
    fn on_write_acknowledged(&mut self, lpn: Lpn, sequence: u64) {
        self.oracle.on_write_acknowledged(lpn, sequence);
    }
    fn on_trimmed(&mut self, request: RequestId, lpn: Lpn, sequence: u64) {
        self.oracle.on_trimmed(request, lpn, sequence);
    }
    fn on_read_asked(&mut self, request: RequestId, lpn: Lpn) {
        self.oracle.on_read_asked(request, lpn);
    }
    fn on_read_answered(&mut self, request: RequestId, lpn: Lpn, sequence: Option<u64>) {
        self.oracle.on_read_answered(request, lpn, sequence);
    }
    fn on_read_failed(&mut self, request: RequestId, lpn: Lpn) {
        self.oracle.on_read_failed(request, lpn);
    }
}

fn watched(spec: &Spec) -> Drive<Watch> {
    let geometry = Some(Geometry::new(&spec.drive));
    Drive::with_probe(spec, Watch { geometry, ..Watch::default() })
}

fn rest(drive: &mut Drive<Watch>) {
    drive.run_until_idle(nandlab::drive::IDLE_LIMIT).unwrap();
    drive.completions();
    drive.audit().unwrap();
    drive.probe().oracle.verdict().unwrap();
}

/// Writes `count` random units of the first `units` units, a few at a time; three of four writes go to the first
/// quarter of these units.
fn overwrite<P: Probe>(drive: &mut Drive<P>, stream: &mut Stream, units: u64, count: u32) {
    for _ in 0..count {
        while drive.outstanding() > 8 {
            assert!(drive.advance_to_completion(Time::NEVER));
            assert!(drive.completions().all(|done| done.failed.is_none()));
        }
        let range = if stream.below(4) == 0 { units } else { units.div_ceil(4) };
        let lpn = stream.below(range);
        let write = request(drive, Op::Write, lpn * PAGE, PAGE);
        drive.submit(&write).unwrap();
    }
}

/// Writes every logical unit once.
fn fill<P: Probe>(drive: &mut Drive<P>) {
    for lpn in 0..u64::from(drive.geometry().logical_units) {
        one(drive, Op::Write, lpn * PAGE, PAGE);
    }
}

/// The host's writes make GC move pages, under every policy and several limits.
#[test]
fn every_policy_keeps_what_the_host_wrote() {
    let policies = [
        "'off-chip'",
        "{ rcopyback = { limit = 2 } }",
        "{ rcopyback-greedy = { limit = 1 } }",
        "{ rcopyback-greedy = { limit = 'table' } }",
        "{ rcopyback-greedy = { limit = 0 } }",
    ];
    let cases = policies.iter().enumerate().flat_map(|case| [(case, "own"), (case, "shared")]);
    for ((index, policy), first_block) in cases {
        let text = TINY.replace("op = 0.5", "op = 2")
            + &format!(
                "[migration]\npolicy = {policy}\nfirst_block = '{first_block}'\n[gc]\npacing = 'none'\n"
            );
        let spec = spec(&text, &["cache.size=64KiB", "cache.sync=eager"]);
        let mut drive = with_oracle(&spec);
        let mut stream = Stream::new(index as u64, "copyback");
        let units = u64::from(drive.geometry().logical_units);
        let mut gc_has_superblock = false;
        for _ in 0..6000 {
            let lpn = stream.below(units);
            let request = Request::write(lpn * 4096, 4096).at(drive.now());
            while drive.outstanding() > 8 {
                drive.completions();
                assert!(drive.advance_to_completion(Time::NEVER));
            }
            drive.submit(&request).unwrap();
            // The second stream is that of GC. With a shared block it has none.
            let has_superblock = drive.ftl().lanes.iter().any(|lane| lane.open_superblocks()[1] != 0);
            assert!(!has_superblock || first_block == "own");
            gc_has_superblock |= has_superblock;
        }
        assert!(gc_has_superblock == (first_block == "own") || index > 0, "{policy}");
        settle(&mut drive);
        let copybacks = drive.stats().flash_total(FlashOp::Copyback);
        assert_eq!(copybacks > 0, (1..4).contains(&index), "{policy}: {copybacks}");
        assert_eq!(copybacks, drive.stats().migration.by_count.iter().sum::<u64>());
        read_everything(&mut drive);
    }
}

/// One plane with blocks of eight pages, which a test fills page by page. Idle GC empties blocks with at least two
/// invalid pages.
const BY_HAND: &str = "[drive]\nchannels = 1\nchips_per_channel = 1\ndies_per_chip = 1\nplanes_per_die = 1\n\
     blocks_per_plane = 160\npages_per_block = 8\npage_size = '4KiB'\ncell = 'mlc'\nop = 1.0\nendurance = 1000000\n\
     [timing]\nprogram = '900us'\nerase = '3.5ms'\nchannel_ns_per_byte = 2.5\ncommand = '0us'\n\
     [gc]\nbackground_free = 0.9999\nidle_valid_max = 0.8\nidle_after = '20ms'\n[ftl]\nwear_levelling = 'none'\n";

/// Number of blocks of [`ballast`]. Their garbage exceeds the 24 pages of the three blocks that internal streams may
/// open.
const BALLAST: u32 = 32;

/// A drive of [`BY_HAND`].
struct ByHand {
    drive: Drive<Watch>,
    /// Pages that the host has written.
    written: u64,
    /// The next LPN for the rest of a block.
    filler: u64,
}

impl ByHand {
    fn new(policy: &str, sets: &[&str]) -> Self {
        let spec = spec(&format!("{BY_HAND}[migration]\npolicy = {policy}\n"), sets);
        let mut drive = watched(&spec);
        ballast(&mut drive, BALLAST);
        Self { drive, written: 0, filler: 60 }
    }

    /// Writes the given pages, then other pages until their block is full.
    fn write(&mut self, lpns: &[u64]) {
        for &lpn in lpns {
            one(&mut self.drive, Op::Write, lpn * PAGE, PAGE);
        }
        self.written += lpns.len() as u64;
        while !self.written.is_multiple_of(8) {
            one(&mut self.drive, Op::Write, self.filler * PAGE, PAGE);
            self.written += 1;
            self.filler += 1;
        }
    }

    /// Leaves a block whose last four pages of eight are valid.
    fn half_full(&mut self, first: u64) {
        let lpns: [u64; 8] = std::array::from_fn(|unit| first + unit as u64);
        self.write(&lpns);
        self.write(&lpns[..4]);
    }

    fn superblock(&self, lpn: u32) -> SuperblockId {
        self.drive.geometry().superblock_of(self.drive.ftl().map.get(Lpn(lpn)).unwrap())
    }

    /// Returns the copyback count of the block that holds `lpn`.
    fn count(&self, lpn: u32) -> u8 {
        self.drive.array().superblock(self.superblock(lpn)).copybacks()
    }

    /// Simulates until a page is being copied back; returns its LPN, the source page and the copy.
    fn until_copyback(&mut self) -> (Lpn, UnitId, UnitId) {
        while self.drive.probe().under_way.is_none() {
            self.drive.advance(self.drive.now() + ns(10 * US));
            assert!(self.drive.now() < at(10_000_000 * US), "no page is copied back");
        }
        self.drive.probe_mut().under_way.take().unwrap()
    }
}

#[test]
fn a_migration_takes_the_sum_of_its_phases_to_the_nanosecond() {
    // The transfer of 4096 bytes takes 10.24 us on the channel (2.5 ns per byte), and 40.96 us over an off-chip path of
    // 100 MB/s.
    const CHANNEL: u64 = 10_240;
    const PATH: u64 = 40_960;
    let (sense, program, decode) = (50 * US, 900 * US, 15 * US);
    for (sets, command, transfer) in [
        (&[][..], 0, CHANNEL),
        (&["timing.command=300ns"][..], 300, CHANNEL),
        (&["timing.off_chip_mb_per_s=100"][..], 0, PATH),
        (&["timing.command=300ns", "timing.off_chip_mb_per_s=100"][..], 300, PATH),
    ] {
        // GC moves the one valid page of a block.
        let moved = |policy: &str| {
            let mut hand = ByHand::new(policy, sets);
            hand.write(&[0, 1, 2, 3, 4, 5, 6, 7]);
            hand.write(&[0, 1, 2, 3, 4, 5, 6]);
            rest(&mut hand.drive);
            let flash = hand.drive.stats().flash;
            let gc = |kind: FlashOp| flash[kind as usize][Cause::Gc as usize];
            let counts = [FlashOp::Read, FlashOp::Program, FlashOp::Copyback, FlashOp::Erase].map(gc);
            (hand.drive.probe().ended - hand.drive.probe().begun.unwrap(), counts)
        };
        let off_chip = command + sense + transfer + decode + command + transfer + program;
        assert_eq!(moved("'off-chip'"), (off_chip, [1, 1, 0, 1]), "{sets:?}");
        assert_eq!(moved("{ rcopyback-greedy = { limit = 0 } }"), (off_chip, [1, 1, 0, 1]), "{sets:?}");
        let inside = command + sense + program;
        assert_eq!(moved("{ rcopyback-greedy = { limit = 1 } }"), (inside, [0, 0, 1, 1]), "{sets:?}");
    }
}

#[test]
fn a_page_is_copied_back_at_most_limit_times_in_a_row() {
    let limits = ["0", "1", "2", "3", "4", "'table'"];
    for (limit, text) in (0..).zip(limits) {
        // Under `fifo` GC moves every page again and again. Under `greedy` it is static wear levelling that moves the
        // cold pages.
        for (levelling, victim) in [("none", "fifo"), ("static", "greedy"), ("static", "fifo")] {
            let text = format!(
                "{}[migration]\npolicy.rcopyback-greedy = {{ limit = {text} }}\n[gc]\nvictim = '{victim}'\n\
                 [ftl]\nwear_levelling = '{levelling}'\nwear_gap = 2\n",
                TINY.replace("op = 0.5", "op = 1").replace("blocks_per_plane = 16", "blocks_per_plane = 24")
            );
            let spec = spec(&text, &[]);
            let mut drive = watched(&spec);
            fill(&mut drive);
            let units = u64::from(drive.geometry().logical_units);
            overwrite(&mut drive, &mut Stream::new(limit, "moves"), units, 8000);
            rest(&mut drive);
            let watch = drive.probe();
            assert!(u64::from(watch.most) <= limit, "{} copybacks in a row under limit {limit}", watch.most);
            // In the table only blocks that were never erased allow 5 copybacks, so this number is rarely reached.
            assert!(limit == 5 || victim != "fifo" || u64::from(watch.most) == limit, "limit {limit}");
            assert!(limit == 0 || victim == "fifo" || watch.for_wear > 0, "limit {limit}");
            let stats = drive.stats();
            assert_eq!(watch.copybacks, stats.flash_total(FlashOp::Copyback));
            assert_eq!(watch.copybacks, stats.migration.by_count.iter().sum::<u64>());
            // The copyback count of each page's block equals the independent count of the page.
            for lpn in (0..drive.geometry().logical_units).map(Lpn) {
                let unit = drive.ftl().map.get(lpn).unwrap();
                let counted = drive.array().superblock(drive.geometry().superblock_of(unit)).copybacks();
                assert_eq!(watch.in_a_row[&unit], counted, "LPN {}", lpn.0);
            }
        }
    }
}

/// Fig. 5 of the rcopyback paper, where vb(n) is a victim of copyback count n. Pages of vb(1) go to b(2), pages of
/// vb(Mcpb) go off-chip to b(0). Here Mcpb is 2.
#[test]
fn pages_go_to_the_open_superblock_of_the_next_count() {
    let mut hand = ByHand::new("{ rcopyback-greedy = { limit = 2 } }", &[]);
    let by_count = |hand: &ByHand| hand.drive.stats().migration.by_count;
    // Two victims vb(0) with four valid pages each fill a block b(1).
    hand.half_full(0);
    rest(&mut hand.drive);
    assert_eq!([4, 5, 6, 7].map(|lpn| hand.count(lpn)), [1; 4]);
    let b1 = hand.superblock(4);
    assert_eq!((hand.superblock(7), hand.drive.array().superblock(b1).state), (b1, SuperblockState::Open));
    hand.half_full(10);
    rest(&mut hand.drive);
    assert_eq!([14, 15, 16, 17].map(|lpn| hand.superblock(lpn)), [b1; 4]);
    assert_eq!(hand.drive.array().superblock(b1).state, SuperblockState::Full);
    assert_eq!(by_count(&hand)[..2], [8, 0]);
    // The six valid pages of a victim vb(1) go to b(2).
    hand.write(&[4, 5]);
    rest(&mut hand.drive);
    let b2 = hand.superblock(6);
    assert_eq!([7, 14, 15, 16, 17].map(|lpn| hand.superblock(lpn)), [b2; 5]);
    assert_eq!((hand.count(6), by_count(&hand)[..2].to_vec()), (2, vec![8, 6]));
    // Another victim vb(1) with two valid pages fills b(2).
    for first in [20, 30] {
        hand.half_full(first);
        rest(&mut hand.drive);
    }
    assert_eq!([24, 25, 26, 27, 34, 35, 36, 37].map(|lpn| hand.count(lpn)), [1; 8]);
    hand.write(&[24, 25, 26, 27, 34, 35]);
    rest(&mut hand.drive);
    assert_eq!(
        ([36, 37].map(|lpn| hand.superblock(lpn)), by_count(&hand)[..2].to_vec()),
        ([b2; 2], vec![16, 8])
    );
    let flash = |hand: &ByHand, kind: FlashOp| hand.drive.stats().flash[kind as usize][Cause::Gc as usize];
    assert_eq!(
        [flash(&hand, FlashOp::Read), flash(&hand, FlashOp::Program)],
        [0, 0],
        "a page was moved off-chip"
    );
    // The pages of vb(Mcpb) go off-chip to b(0).
    hand.write(&[6, 7]);
    rest(&mut hand.drive);
    let b0 = hand.superblock(37);
    assert_eq!([14, 15, 16, 17, 36].map(|lpn| hand.superblock(lpn)), [b0; 5]);
    assert_eq!((hand.count(37), by_count(&hand)[..2].to_vec()), (0, vec![16, 8]));
    assert_eq!([flash(&hand, FlashOp::Read), flash(&hand, FlashOp::Program)], [6, 6]);
    let migration = &hand.drive.stats().migration;
    assert_eq!((migration.refused, migration.victims_off_chip, migration.victims_without_room), (0, 0, 0));
    // All six victims of count 0 or 1 were copied back; the victim of count 2 was not.
    assert_eq!(migration.victims_copied_back, 6);
    let facts = summary(&hand.drive, &RunFacts::default());
    assert_eq!(facts["migration"]["copybacks"], 24);
    assert_eq!(facts["migration"]["by_count"], serde_json::json!({ "1": 16, "2": 8 }));
    // A counter with the values 0 to 2 takes two bits; there are 160 blocks and 1280 pages.
    assert_eq!(facts["migration"]["counter_bytes_by_block"], 40);
    assert_eq!(facts["migration"]["counter_bytes_by_page"], 320);
}

#[test]
fn host_requests_during_a_copyback_use_the_source_page() {
    for what in ["write", "trim", "read"] {
        let mut hand = ByHand::new("{ rcopyback-greedy = { limit = 2 } }", &[]);
        hand.half_full(0);
        let (lpn, source, copy) = hand.until_copyback();
        assert_eq!(
            (lpn, hand.drive.ftl().map.get(lpn)),
            (Lpn(4), Some(source)),
            "the map changes before the end of the copyback"
        );
        hand.drive.probe_mut().host_reads.clear();
        let op = match what {
            "write" => Op::Write,
            "trim" => Op::Trim,
            _ => Op::Read,
        };
        one(&mut hand.drive, op, 4 * PAGE, PAGE);
        rest(&mut hand.drive);
        let found = hand.drive.ftl().map.get(lpn);
        match what {
            "write" => assert!(found.is_some_and(|unit| unit != copy && unit != source), "{found:?}"),
            "trim" => assert_eq!(found, None),
            _ => {
                assert_eq!(found, Some(copy));
                assert_eq!(
                    hand.drive.probe().host_reads,
                    [source],
                    "the host reads another page than the source during the copyback"
                );
            }
        }
        // The copy is programmed in every case. It is valid only if the host has not replaced or deallocated the page.
        assert_eq!(hand.drive.stats().migration.by_count[0], 4);
        assert_eq!(hand.drive.ftl().is_valid(copy), what == "read");
        for lpn in 4..8 {
            one(&mut hand.drive, Op::Read, lpn * PAGE, PAGE);
        }
        rest(&mut hand.drive);
    }
}

#[test]
fn the_limit_table_applies_the_wear_of_the_destination() {
    let load = |sets: &[&str]| {
        let text =
            TINY.replace("op = 0.5", "op = 1").replace("blocks_per_plane = 16", "blocks_per_plane = 24");
        spec(
            &format!("{text}[migration]\npolicy.rcopyback-greedy.limit = 'table'\n[gc]\nvictim = 'fifo'\n"),
            sets,
        )
    };
    let spec = load(&[]);
    let limit = CopybackLimit::new(&spec.migration.policy.limit);
    assert_eq!(limit.copybacks_max(), 5);
    let (ecc, mut reliability) = (Ecc::new(&spec.ecc), Reliability::new(&spec.reliability));
    let mut allowed = |pe_cycles| {
        let kind = spec.drive.cell.kind_of_row(0);
        let at = |copybacks| Condition { pe_cycles, age_s: 0, reads: 0, copybacks, kind };
        (1..=8).filter(|&n| limit.allows(&at(n), 0.0, &ecc, &mut reliability)).count()
    };
    let found = [0, 1, 1000, 1001, 2000, 2001, 3000, 3001, 1_000_000].map(&mut allowed);
    assert_eq!(found, [5, 4, 4, 3, 3, 2, 2, 0, 0]);
    // Runs with P/E cycles below, above and across the steps of the table.
    for (pe_cycles, most) in [(100, 4), (995, 4), (1500, 3), (2500, 2), (2990, 2), (3001, 0)] {
        let mut drive = watched(&load(&[&format!("reliability.pe_cycles={pe_cycles}")]));
        fill(&mut drive);
        let units = u64::from(drive.geometry().logical_units);
        overwrite(&mut drive, &mut Stream::new(1, "table"), units, 20_000);
        rest(&mut drive);
        assert_eq!(drive.probe().most, most, "{pe_cycles} P/E cycles");
        let migration = &drive.stats().migration;
        assert!(migration.refused > 0, "{pe_cycles} P/E cycles");
        if most == 0 {
            // Every page was refused.
            let programs = drive.stats().flash[FlashOp::Program as usize][Cause::Gc as usize];
            assert!(migration.refused >= programs && programs > 0);
        }
    }
}

#[test]
fn a_copyback_keeps_age_and_errors_until_the_page_is_corrected() {
    // Data that is a year old at 8,000 P/E cycles has an RBER of 0.00595 and needs level 2. Every copyback adds 0.0012,
    // so one copyback leads to level 3, two to level 4.
    let text = format!(
        "{}[ecc]\nlevels = 'laldpc'\nstart = 'ideal'\n[reliability]\npe_cycles = 8000\nretention = '365d'\n\
         copyback_error = 0.0012\nrber.vth = {{ dvpp = 0.38, cell_to_cell = 0.05 }}\n[precondition]\nused = 0.4\n\
         valid = 0.6\n[gc]\nvictim = 'fifo'\nidle_after = '10s'\n[migration]\npolicy.rcopyback-greedy.limit = 2\n",
        TINY.replace("op = 0.5", "op = 2")
    );
    let mut drive = with_oracle(&spec(&text, &[]));
    let last = u64::from(drive.ftl().map.mapped()) - 1;
    let mut levels = Vec::new();
    for _ in 0..5 {
        let home = drive.ftl().map.get(Lpn(last as u32)).unwrap();
        let count = drive.array().superblock(drive.geometry().superblock_of(home)).copybacks();
        levels.push((count, one(&mut drive, Op::Read, last * PAGE, PAGE) / US));
        let mut writes = 0;
        while drive.ftl().map.get(Lpn(last as u32)) == Some(home) {
            one(&mut drive, Op::Write, mostly_hot(writes, last) * PAGE, PAGE);
            writes += 1;
            assert!(writes < 20_000, "GC has not moved the page");
        }
        drive.run_until_idle(nandlab::drive::IDLE_LIMIT).unwrap();
    }
    // A read at level L takes 85 + 24 (L - 1) us. The third move goes off-chip and corrects the page: its age begins
    // anew, and its errors are gone.
    assert_eq!(levels, [(0, 109), (1, 133), (2, 157), (0, 85), (1, 85)]);
    settle(&mut drive);
    read_everything(&mut drive);
}

#[test]
fn a_copyback_propagates_the_errors_of_its_moment() {
    // The page is a year old at the start and is copied back twice; a third move goes off-chip and corrects it.
    for (references, pe_cycles) in [("default", 1000), ("optimal", 8000)] {
        let text = format!(
            "{}[ecc]\nlevels = 'laldpc'\nstart = 'ideal'\n[reliability]\npe_cycles = {pe_cycles}\nretention = '365d'\n\
             clock_scale = 100000.0\ncopyback.propagate.references = '{references}'\n\
             rber.vth = {{ dvpp = 0.38, cell_to_cell = 0.05 }}\n[precondition]\nused = 0.4\nvalid = 0.6\n\
             [gc]\nvictim = 'fifo'\nidle_after = '10s'\n[migration]\npolicy.rcopyback-greedy.limit = 2\n",
            TINY.replace("op = 0.5", "op = 2")
        );
        let mut drive = with_oracle(&spec(&text, &[]));
        let exact = Vth::new(&VthSpec {
            dvpp: 0.38,
            cell_to_cell: 0.05,
            sensing_step: 0.03,
            per_page_kind: false,
            unworn_loss: 0.0,
        });
        let clock = AgeClock::new(100_000.0);
        let lpn = Lpn(drive.ftl().map.mapped() - 1);
        // RBER of the errors in the data, the time since which the cells hold it, and their block's P/E cycles.
        let (mut carried, mut since) = (0.0, -365.0 * 86_400.0);
        let (mut counts, mut levels) = (Vec::new(), Vec::new());
        for _ in 0..4 {
            let home = drive.ftl().map.get(lpn).unwrap();
            let superblock = drive.array().superblock(drive.geometry().superblock_of(home)).clone();
            let (copied, stamp) = (drive.array().copied(home), drive.array().stamp(home));
            counts.push((superblock.copybacks(), copied.is_some()));
            assert!(
                (copied.map_or(0.0, |copied| f64::from(copied.rber)) - carried).abs()
                    < 0.01 * carried + 1e-12
            );
            let now_s = drive.now().seconds() * 100_000.0;
            let rber = exact.rber(superblock.pe_cycles.into(), now_s - since).mean() + carried;
            // A read at level L takes 85 + 24 (L - 1) us.
            let level = drive.ecc().level_for(rber);
            levels.push(level);
            assert_eq!(
                one(&mut drive, Op::Read, u64::from(lpn.0) * PAGE, PAGE) / US,
                85 + 24 * u64::from(level - 1)
            );
            // The age of the data counts on, whatever the age of its cells.
            let age_s = stamp.corrected.age_s(clock.at(drive.now()));
            assert_eq!(age_s > 365 * 86_400, counts.len() < 4, "{age_s}");
            let mut writes = 0;
            while drive.ftl().map.get(lpn) == Some(home) {
                one(&mut drive, Op::Write, mostly_hot(writes, lpn.0.into()) * PAGE, PAGE);
                writes += 1;
                assert!(writes < 20_000, "GC has not moved the page");
            }
            drive.run_until_idle(nandlab::drive::IDLE_LIMIT).unwrap();
            let moved = drive.ftl().map.get(lpn).unwrap();
            if let Some(copied) = drive.array().copied(moved) {
                let programmed_s = f64::from(copied.programmed.later_s_than(AgeStamp::START));
                let (pe_cycles, age_s) = (f64::from(superblock.pe_cycles), programmed_s - since);
                carried += match references {
                    "default" => exact.rber_unadjusted(pe_cycles, age_s),
                    _ => exact.rber(pe_cycles, age_s),
                }
                .mean();
                since = programmed_s;
            } else {
                (carried, since) = (0.0, drive.now().seconds() * 100_000.0);
            }
        }
        assert_eq!(counts, [(0, false), (1, true), (2, true), (0, false)], "{references}");
        assert!(levels.iter().any(|&level| level > 1), "no read needs more than level 1: {levels:?}");
        println!("{references}: levels {levels:?}");
        settle(&mut drive);
        read_everything(&mut drive);
    }
}

/// The cells of the destination decide, not those of the source: MSB pages have more errors than LSB pages.
#[test]
fn the_measured_limit_knows_the_kind_of_the_page_it_writes() {
    let exact = Vth::new(&VthSpec {
        dvpp: 0.38,
        cell_to_cell: 0.05,
        sensing_step: 0.03,
        per_page_kind: true,
        unworn_loss: 0.0,
    });
    let mut found = [0, 0];
    for level in [2, 3, 4, 5, 6, 7] {
        let text = format!(
            "{}[ecc]\nlevels = 'laldpc'\nstart = 'ideal'\n[reliability]\npe_cycles = 8000\nclock_scale = 1000.0\n\
             copyback = 'propagate'\nrber.vth = {{ dvpp = 0.38, cell_to_cell = 0.05, per_page_kind = true }}\n\
             [precondition]\nused = 0.4\nvalid = 0.6\n[gc]\nvictim = 'fifo'\n[migration]\n\
             policy.rcopyback-greedy.limit = {{ measured = {{ within = '365d', level = {level} }} }}\n",
            TINY.replace("op = 0.5", "op = 2").replace("blocks_per_plane = 16", "blocks_per_plane = 30")
        );
        let mut drive = with_oracle(&spec(&text, &[]));
        let mut stream = Stream::new(u64::from(level), "kind");
        for i in 0..3000 {
            one(&mut drive, Op::Write, stream.below(200) * PAGE, PAGE);
            if i % 100 > 0 {
                continue;
            }
            let g = drive.geometry();
            for unit in (0..g.units).map(UnitId).filter(|&unit| drive.ftl().is_valid(unit)) {
                let Some(copied) = drive.array().copied(unit) else { continue };
                let (superblock, page) = g.split(unit);
                let cells =
                    exact.rber(drive.array().superblock(superblock).pe_cycles.into(), 365.0 * 86_400.0);
                let is_msb = page % 2 == 1;
                let rber = f64::from(copied.rber) + if is_msb { cells.msb } else { cells.lsb };
                assert!(drive.ecc().level_for(rber * 0.99) <= level, "level {level}, page {page}: {rber}");
                found[usize::from(is_msb)] += 1;
            }
        }
    }
    println!("copied back: {found:?} LSB and MSB pages");
    assert!(found.iter().all(|&count| count > 20), "few pages hold a copy: {found:?}");
}

#[test]
fn the_measured_limit_follows_the_reliability_model() {
    let text = format!(
        "{}[ecc]\nlevels = 'laldpc'\nstart = 'ideal'\n[reliability]\npe_cycles = 10000\nretention = '30d'\n\
         copyback_error = 0.0015\nrber.vth = {{ dvpp = 0.38, cell_to_cell = 0.05 }}\n[precondition]\nused = 0.6\n\
         valid = 0.5\n[gc]\nvictim = 'fifo'\n",
        TINY.replace("op = 0.5", "op = 1").replace("blocks_per_plane = 16", "blocks_per_plane = 30")
    );
    let measured = "migration.policy.rcopyback-greedy.limit={ measured = { within = '365d', level = 7 } }";
    let spec_of = |limit: &str| spec(&text, &[limit]);
    let spec = spec_of(measured);
    let limit = CopybackLimit::new(&spec.migration.policy.limit);
    let (ecc, mut reliability) = (Ecc::new(&spec.ecc), Reliability::new(&spec.reliability));
    let kind = spec.drive.cell.kind_of_row(0);
    let mut verdicts = [0, 0];
    for pe_cycles in [0, 3000, 8000, 10_000, 12_000, 15_000] {
        for days in [0, 30, 365, 1000] {
            for copybacks in 1..=9 {
                let now = Condition { pe_cycles, age_s: days * 86_400, reads: 0, copybacks, kind };
                let later = Condition { age_s: (days + 365) * 86_400, ..now };
                let exact = reliability.rber_exact(&later);
                // Level 7 decodes up to an RBER of 0.013. Values within 1 % of this limit are left out, because the
                // tables that `CopybackLimit` uses are less exact.
                if (exact / 0.013 - 1.0).abs() < 0.01 {
                    continue;
                }
                let expected = copybacks <= 8 && exact < 0.013;
                assert_eq!(limit.allows(&now, 0.0, &ecc, &mut reliability), expected, "{now:?}: {exact}");
                verdicts[usize::from(expected)] += 1;
            }
        }
    }
    assert!(verdicts.iter().all(|&count| count > 20), "{verdicts:?}");
    // In a run: a page may be copied back only as often as it can still be read a year later. `most` is this highest
    // number of copybacks in a row, computed from the model itself.
    let kept = |age_s, copybacks| Condition { pe_cycles: 10_000, age_s, reads: 0, copybacks, kind };
    let most = (1..=8).filter(|&n| reliability.rber_exact(&kept(365 * 86_400, n)) < 0.013).count() as u8;
    let mut lost = Vec::new();
    for limit in [measured, "migration.policy.rcopyback-greedy.limit=8"] {
        let spec = spec_of(limit);
        let mut drive = watched(&spec);
        drive.precondition(&mut |_| true);
        drive.expect_preconditioned(|watch| &mut watch.oracle);
        // The LPNs from 200 to 287, the last of the 288 mapped pages, are not rewritten, and GC moves them again and
        // again.
        overwrite(&mut drive, &mut Stream::new(2, "measured"), 200, 12_000);
        rest(&mut drive);
        let is_measured = limit == measured;
        assert_eq!(drive.probe().most <= most, is_measured, "{} of {most}", drive.probe().most);
        lost.push(drive.stats().ecc.uncorrectable);
    }
    assert_eq!(lost[0], 0);
}

#[test]
fn the_mode_selector_considers_the_buffer_and_urgency() {
    let copies = |policy: &str, is_urgent, buffer| {
        migration::make(policy).copies_back(&VictimView { is_urgent, buffer }).unwrap()
    };
    for is_urgent in [false, true] {
        for (buffer, busy) in [(0.0, false), (0.5, false), (0.500_001, true), (1.0, true)] {
            assert_eq!(copies("rcopyback", is_urgent, buffer), is_urgent || busy);
            assert!(copies("rcopyback-greedy", is_urgent, buffer));
            assert!(!copies("off-chip", is_urgent, buffer));
        }
    }
    assert!(migration::make("rcopyback").watches_buffer());
    // On a drive: 32 pages fill the buffer of 32 pages, and leave it one by one, every 0.9 ms. When idle GC begins
    // after 10 ms, the mean utilization of the buffer over the last block write time (8 pages) is well above half. When
    // it begins after 100 ms, the buffer is empty.
    for (idle_after, expected) in [("10ms", (1, 0)), ("100ms", (0, 1))] {
        let spec = spec(
            &format!(
                "{BY_HAND}[migration]\npolicy.rcopyback.limit = 2\n[cache]\nsize = '128KiB'\nsync = 'eager'\ndirty_budget = 1.0\n"
            ),
            &[&format!("gc.idle_after={idle_after}")],
        );
        let mut drive = watched(&spec);
        ballast(&mut drive, BALLAST);
        let burst = |drive: &mut Drive<Watch>, lpns: &mut dyn Iterator<Item = u64>| {
            for lpn in lpns {
                let write = request(drive, Op::Write, lpn * PAGE, PAGE);
                drive.submit(&write).unwrap();
            }
        };
        burst(&mut drive, &mut (0..32));
        drive.run_until_idle(nandlab::drive::IDLE_LIMIT).unwrap();
        // Every other page is written again, so that the first four blocks are half valid. 16 new pages fill the rest
        // of the buffer.
        burst(&mut drive, &mut (0..16).map(|n| 2 * n).chain(32..48));
        let migration = |drive: &Drive<Watch>| {
            let migration = &drive.stats().migration;
            (migration.victims_copied_back, migration.victims_off_chip)
        };
        while migration(&drive) == (0, 0) {
            drive.advance(drive.now() + ns(100 * US));
            assert!(drive.now() < at(10_000_000 * US), "GC has not begun");
        }
        assert_eq!(migration(&drive), expected, "idle after {idle_after}");
        rest(&mut drive);
    }
    // Foreground GC is urgent, so it also copies back without a buffer, whose utilization then counts as 0.
    let text = TINY.replace("op = 0.5", "op = 2");
    let spec = spec(&format!("{text}[migration]\npolicy.rcopyback.limit = 2\n"), &["gc.idle_after=10s"]);
    let mut drive = watched(&spec);
    fill(&mut drive);
    let units = u64::from(drive.geometry().logical_units);
    overwrite(&mut drive, &mut Stream::new(3, "urgent"), units, 3000);
    let migration = &drive.stats().migration;
    assert!(migration.victims_copied_back > 0);
    assert_eq!(migration.victims_off_chip, 0);
}

/// A drive of [`BY_HAND`] with garbage, whose idle GC begins after `idle_after`, and `sets`. Writes `units` units of
/// `bytes` bytes and returns how the first victim is moved: (copied back, off-chip).
fn first_victim(idle_after: &str, bytes: u64, units: u64, sets: &[&str]) -> (u64, u64) {
    let idle_after = format!("gc.idle_after={idle_after}");
    let base = [
        "migration.policy.rcopyback.limit=2",
        "precondition.used=0.6",
        "precondition.valid=0.5",
        &idle_after,
    ];
    let mut drive = Drive::new(&spec(BY_HAND, &[&base, sets].concat()));
    drive.precondition(&mut |_| true);
    for unit in 0..units {
        let write = request(&drive, Op::Write, unit * bytes, bytes);
        drive.submit(&write).unwrap();
    }
    loop {
        let migration = &drive.stats().migration;
        let found = (migration.victims_copied_back, migration.victims_off_chip);
        if found != (0, 0) {
            return found;
        }
        drive.advance(drive.now() + ns(100 * US));
        assert!(drive.now() < at(10_000_000 * US), "GC has not begun");
    }
}

#[test]
fn by_occupancy_the_mode_selector_counts_all_dirty_units_of_the_write_cache() {
    // The cache of 64 pages writes nothing back. The block write time, 7.2 ms, is over when idle GC begins.
    let cache = ["cache.size=256KiB", "cache.sync=none", "cache.dirty_budget=1.0"];
    let of = |units, occupancy: &str| {
        let occupancy = format!("migration.policy.rcopyback.occupancy={occupancy}");
        first_victim("20ms", PAGE, units, &[&cache[..], &[&occupancy]].concat())
    };
    let (copied_back, off_chip) = ((1, 0), (0, 1));
    // Half of the cache is not more than half.
    assert_eq!([32, 33, 64].map(|units| of(units, "occupied")), [off_chip, copied_back, copied_back]);
    assert_eq!([32, 33, 64].map(|units| of(units, "writing")), [off_chip; 3]);
}

#[test]
fn by_occupancy_the_mode_selector_counts_the_units_of_the_write_buffer() {
    // 64 units fill the buffer, and leave it by fours, every 0.91 ms. After 5 ms 44 of them are left, and the mean
    // since the start is above half; after 100 ms the buffer is empty.
    let buffer = ["ftl.mapping_unit=1KiB", "ftl.buffer=64KiB"];
    let of = |idle_after, units, occupancy: &str| {
        let occupancy = format!("migration.policy.rcopyback.occupancy={occupancy}");
        first_victim(idle_after, PAGE / 4, units, &[&buffer[..], &[&occupancy]].concat())
    };
    let (copied_back, off_chip) = ((1, 0), (0, 1));
    assert_eq!(of("5ms", 64, "occupied"), copied_back);
    assert_eq!(of("5ms", 32, "occupied"), off_chip, "the buffer was never more than half full");
    assert_eq!(of("100ms", 64, "occupied"), off_chip);
    assert_eq!(of("5ms", 64, "writing"), off_chip);
}

/// Returns the least op that the spec check accepts, within 0.001, and its spec.
fn tightest(policy: &str, extra: &str) -> (f64, Spec) {
    let load = |op: f64| {
        let text = TINY
            .replace("op = 0.5", &format!("op = {op}"))
            .replace("blocks_per_plane = 16", "blocks_per_plane = 28");
        let text = format!("{text}[migration]\npolicy = {policy}\n{extra}");
        nandlab::drive::spec::load(&text, "test.toml", std::path::Path::new("."), &[])
    };
    let (mut low, mut high) = (0.01, 6.0);
    while high - low > 1e-3 {
        let middle = (low + high) / 2.0;
        if load(middle).is_ok() { high = middle } else { low = middle }
    }
    let refused = load(low).err().unwrap().to_string();
    assert_eq!(refused.contains("for copybacks"), policy != "'off-chip'", "{refused}");
    (high, load(high).unwrap_or_else(|e| panic!("{e}")).spec)
}

#[test]
fn a_drive_with_the_least_op_completes_all_writes() {
    let text = TINY.to_owned() + "[migration]\npolicy.rcopyback-greedy.limit = 4\n";
    let refused =
        nandlab::drive::spec::load(&text, "test.toml", std::path::Path::new("."), &[]).err().unwrap();
    let refused = refused.to_string();
    assert!(
        refused.contains(
            "needs 8.0: 1 open and 1 free for GC, 4 open and 1 free for copybacks, 1 of garbage for GC to gain from"
        ),
        "{refused}"
    );
    // The limits of this table change at P/E cycles that the run reaches, so that some pages of a victim are refused.
    let uneven = "{ rcopyback-greedy = { limit = [{ pe = 10, copybacks = 2 }, { pe = 12, copybacks = 0 }, \
                  { pe = 40, copybacks = 3 }, { pe = 60, copybacks = 1 }] } }";
    let mut ops = Vec::new();
    for policy in
        ["'off-chip'", "{ rcopyback-greedy = { limit = 1 } }", uneven, "{ rcopyback-greedy = { limit = 4 } }"]
    {
        for victim in ["greedy", "fifo"] {
            for extra in [
                "",
                "[ftl]\nwear_levelling = 'static'\nwear_gap = 2\n",
                "[ftl]\nmap.demand.cache = '256B'\nwear_levelling = 'static'\nwear_gap = 2\n",
                "[ftl]\nmap.demand.cache = '64B'\nwear_levelling = 'none'\n",
                "first_block = 'shared'\n",
                "first_block = 'shared'\n[ftl]\nmap.demand.cache = '256B'\nwear_levelling = 'static'\nwear_gap = 2\n",
            ] {
                let pacing = if extra.contains("shared") { "none" } else { "proportional" };
                let gc = format!("{extra}[gc]\nvictim = '{victim}'\npacing = '{pacing}'\n");
                let (op, spec) = tightest(policy, &gc);
                if extra.is_empty() && victim == "greedy" {
                    ops.push(op);
                }
                let mut drive = watched(&spec);
                fill(&mut drive);
                let units = u64::from(drive.geometry().logical_units);
                overwrite(&mut drive, &mut Stream::new(4, "tight"), units, 6000);
                rest(&mut drive);
                assert_eq!(drive.stats().failed.iter().sum::<u64>(), 0, "{policy} {victim} {extra}");
            }
        }
    }
    assert!(ops.is_sorted(), "a higher limit does not need a higher op: {ops:?}");
}

/// A test of the tests: a wrong copyback count of a block is detected by the drive or by the independent count.
#[test]
fn a_wrong_copyback_count_is_detected() {
    let broken = |break_it: &dyn Fn(&mut Array)| {
        let text = TINY.replace("op = 0.5", "op = 2") + "[migration]\npolicy.rcopyback-greedy.limit = 2\n";
        let mut drive = watched(&spec(&text, &["gc.victim=fifo"]));
        fill(&mut drive);
        let units = u64::from(drive.geometry().logical_units);
        let mut stream = Stream::new(5, "broken");
        let run = std::panic::AssertUnwindSafe(|| {
            for _ in 0..300 {
                overwrite(&mut drive, &mut stream, units, 10);
                break_it(drive.parts_mut().0);
            }
            drive.probe().most
        });
        std::panic::catch_unwind(run).map_err(|panic| *panic.downcast::<String>().expect("a message"))
    };
    assert_eq!(broken(&|_| {}), Ok(2));
    // The destination block gets another count than its pages have.
    let opened = |array: &mut Array| {
        for superblock in
            array.superblocks.iter_mut().filter(|b| b.state == SuperblockState::Open && b.copybacks() > 0)
        {
            superblock.mark = 7;
        }
    };
    let said = broken(&opened).expect_err("the drive does not detect a destination block with another count");
    assert!(said.contains("is copied back beyond its limit"), "{said}");
    // The counts of full blocks are reset. The drive cannot detect this, but the independent count by page can.
    let forgets = |array: &mut Array| {
        for superblock in array.superblocks.iter_mut().filter(|b| b.state == SuperblockState::Full) {
            superblock.mark = 0;
        }
    };
    assert!(broken(&forgets).is_ok_and(|most| most > 2), "the independent count does not exceed the limit");
}

#[test]
fn translation_pages_are_never_copied_back() {
    let text = format!(
        "{}[migration]\npolicy.rcopyback-greedy.limit = 2\n[ftl]\nmap.demand.cache = '64B'\n[gc]\nvictim = 'fifo'\n",
        TINY.replace("op = 0.5", "op = 3").replace("blocks_per_plane = 16", "blocks_per_plane = 24")
    );
    let mut drive = watched(&spec(&text, &[]));
    fill(&mut drive);
    let units = drive.geometry().logical_units;
    overwrite(&mut drive, &mut Stream::new(6, "translation"), u64::from(units), 6000);
    rest(&mut drive);
    assert!(!drive.probe().lpns.is_empty());
    assert!(drive.probe().lpns.iter().all(|lpn| lpn.0 < units));
    // GC has moved pages off-chip, and translation pages have been written.
    assert!(drive.stats().flash[FlashOp::Program as usize][Cause::Mapping as usize] > 0);
    assert!(drive.stats().flash[FlashOp::Program as usize][Cause::Gc as usize] > 0);
}

#[test]
fn preconditioned_superblocks_have_a_copyback_count_of_0() {
    let text = format!(
        "{}[migration]\npolicy.rcopyback-greedy.limit = 2\n[precondition]\nused = 0.6\nvalid = 0.5\n",
        TINY.replace("op = 0.5", "op = 2")
    );
    let drive = with_oracle(&spec(&text, &[]));
    assert!(drive.array().superblocks.iter().all(|superblock| superblock.copybacks() == 0));
    assert!(drive.ftl().map.mapped() > 0);
    assert_eq!(summary(&drive, &RunFacts::default())["migration"]["copybacks"], 0);
    let without = with_oracle(&spec(TINY, &[]));
    assert!(summary(&without, &RunFacts::default())["migration"].is_null());
}

/// The policies of the spec and the table of migration policies have the same names and descriptions.
#[test]
fn the_spec_lists_every_migration_policy() {
    let rows = nandlab::drive::spec::policies();
    let in_spec: Vec<(&str, &str)> = rows
        .iter()
        .filter(|row| row.slot == "migration.policy")
        .map(|row| (row.name, row.description))
        .collect();
    let own: Vec<(&str, &str)> =
        migration::POLICIES.iter().map(|(info, _)| (info.name, info.description)).collect();
    assert_eq!(in_spec, own);
}
