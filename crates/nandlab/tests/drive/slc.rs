//! The SLC cache: hand counts on a drive of one plane.

use crate::common::{IDLE, MS, US, at, one, request, spec, wait_for_fewer, with_oracle};
use nandlab::base::geometry::{LaneId, Lpn, SuperblockId};
use nandlab::base::rng::Stream;
use nandlab::drive::Drive;
use nandlab::drive::spec::load;
use nandlab::flash::reliability::Vth;
use nandlab::flash::{ShapeId, SuperblockState, VthSpec};
use nandlab::host::{Op, Oracle};
use nandlab::sched::{Cause, FlashOp};
use std::path::Path;

/// 24 blocks of four TLC wordlines: twelve pages, in SLC mode four. A transfer takes 10,240 ns.
const DRIVE: &str = "[drive]\nchannels = 1\nchips_per_channel = 1\ndies_per_chip = 1\nplanes_per_die = 1\n\
                     blocks_per_plane = 24\npages_per_block = 12\npage_size = '4KiB'\ncell = 'tlc'\nop = 1.0\n\
                     endurance = 3000\n[timing]\nread = '60us'\nprogram = '900us'\nerase = '3ms'\ndecode = '5us'\n\
                     [gc]\nidle_after = '10ms'\n";
const SLC: [&str; 5] =
    ["slc.dynamic=0.5", "slc.read='25us'", "slc.program='100us'", "slc.erase='2ms'", "slc.idle_after='30ms'"];
const PAGE: u64 = 4096;
const TRANSFER: u64 = 10_240;

fn drive(more: &[&str]) -> Drive<Oracle> {
    with_oracle(&spec(DRIVE, &[&SLC, more].concat()))
}

fn write(drive: &mut Drive<Oracle>, lpn: u64) -> u64 {
    one(drive, Op::Write, lpn * PAGE, PAGE)
}

fn count(drive: &Drive<Oracle>, kind: FlashOp, cause: Cause) -> u64 {
    drive.stats().flash[kind as usize][cause as usize]
}

fn in_slc_mode(drive: &Drive<Oracle>) -> u32 {
    drive.ftl().lanes[0].slc_superblocks
}

fn is_in_slc_mode(drive: &Drive<Oracle>, lpn: u64) -> bool {
    let unit = drive.ftl().map.get(Lpn(lpn as u32)).expect("the page is mapped");
    drive.array().shape_id(drive.geometry().superblock_of(unit)) == ShapeId::SLC
}

fn check(drive: &Drive<Oracle>) {
    drive.audit().unwrap();
    drive.probe().verdict().unwrap();
}

/// GC keeps one block free. Of the other 23 a half may be in SLC mode: eleven blocks of four pages. The first 44 writes
/// take 100 us for the program, all others 900 us.
#[test]
fn writes_are_slc_programs_until_the_share_is_taken() {
    let mut drive = drive(&[]);
    for lpn in 0..100 {
        let program = if lpn < 44 { 100 * US } else { 900 * US };
        assert_eq!(write(&mut drive, lpn), TRANSFER + program, "write {lpn}");
        assert_eq!(is_in_slc_mode(&drive, lpn), lpn < 44);
    }
    let stats = drive.stats();
    assert_eq!((stats.slc.cached, stats.slc.direct, stats.slc.blocks), (44, 56, 0));
    assert_eq!(in_slc_mode(&drive), 11);
    // Reads take the time of the block in which the data is.
    for (lpn, sense) in [(0, 25 * US), (43, 25 * US), (44, 60 * US), (99, 60 * US)] {
        assert_eq!(one(&mut drive, Op::Read, lpn * PAGE, PAGE), sense + TRANSFER + 5 * US, "read {lpn}");
    }
    check(&drive);
}

/// Two full blocks and a page of a third one. The idle drive folds the full ones, 30 ms after the last request: eight
/// pages, which begin a TLC block, and two erases. The open block stays.
#[test]
fn an_idle_drive_folds_the_full_blocks() {
    let mut drive = drive(&[]);
    for lpn in 0..9 {
        write(&mut drive, lpn);
    }
    let begin = drive.now().ns() + 30 * MS;
    drive.advance(at(begin - 1));
    assert_eq!((drive.stats().slc.blocks, count(&drive, FlashOp::Read, Cause::Fold)), (0, 0));
    drive.run_until_idle(IDLE).unwrap();
    let counts =
        [FlashOp::Read, FlashOp::Program, FlashOp::Erase].map(|kind| count(&drive, kind, Cause::Fold));
    assert_eq!((counts, in_slc_mode(&drive)), ([8, 8, 2], 1));
    let slc = drive.stats().slc.clone();
    assert_eq!((slc.blocks, slc.folded_idle, slc.folded_full, slc.folded_space), (2, 8, 0, 0));
    for lpn in 0..9 {
        assert_eq!(is_in_slc_mode(&drive, lpn), lpn == 8);
    }
    // Nine programs of the host and one more for each page folded.
    let programs: u64 = drive.stats().flash[FlashOp::Program as usize].iter().sum();
    assert_eq!(programs, 9 + 8);
    assert!(begin < drive.now().ns());
    check(&drive);
}

/// Three blocks in SLC mode fill one block of TLC: the last fold opens no second one.
#[test]
fn three_blocks_fold_into_one() {
    let mut drive = drive(&[]);
    (0..12).for_each(|lpn| _ = write(&mut drive, lpn));
    drive.run_until_idle(IDLE).unwrap();
    let full = drive.array().superblocks.iter().filter(|block| block.state == SuperblockState::Full);
    assert_eq!(full.map(|block| block.valid).collect::<Vec<_>>(), [12]);
    assert_eq!((drive.ftl().lanes[0].free.len(), in_slc_mode(&drive)), (23, 0));
    check(&drive);
}

/// Only valid pages are folded. A block whose pages have all been overwritten is erased without a fold, even while the
/// host is busy.
#[test]
fn a_fold_moves_valid_pages_only() {
    let mut drive = drive(&[]);
    for lpn in [0, 1, 2, 3, 4, 5, 6, 7, 0, 1, 4, 5, 6, 7] {
        write(&mut drive, lpn);
    }
    drive.run_until_idle(IDLE).unwrap();
    // The first block had two valid pages, the second one none, the third one four; the fourth one is open.
    let slc = drive.stats().slc.clone();
    assert_eq!((slc.blocks, slc.folded_idle), (2, 2 + 4));
    assert_eq!(count(&drive, FlashOp::Erase, Cause::Fold), 3);
    check(&drive);
}

/// With `fold` a write waits for a fold. A quarter of 23 blocks are five.
#[test]
fn a_write_waits_for_a_fold() {
    let mut drive = drive(&["slc.dynamic=0.25", "slc.when_full='fold'"]);
    let latencies: Vec<u64> = (0..100).map(|lpn| write(&mut drive, lpn)).collect();
    let stats = drive.stats();
    assert_eq!((stats.slc.cached, stats.slc.direct), (100, 0));
    assert_eq!(stats.slc.folded_space + stats.slc.folded_idle, 0);
    assert!(
        stats.slc.folded_full >= 4 * (100 - 20) / 4 - 4
            && latencies[..20].iter().all(|&ns| ns == TRANSFER + 100 * US)
    );
    // The 21st write waits for four reads and programs, and an erase.
    assert!(latencies[20] > 4 * 900 * US + 2 * MS, "{}", latencies[20]);
    check(&drive);
}

/// Once the cache is full, `direct` writes without it until the drive has been idle.
#[test]
fn a_full_cache_opens_again_after_a_pause() {
    let mut drive = drive(&[]);
    (0..60).for_each(|lpn| _ = write(&mut drive, lpn));
    assert!(!is_in_slc_mode(&drive, 59));
    drive.run_until_idle(IDLE).unwrap();
    assert_eq!((in_slc_mode(&drive), drive.stats().slc.folded_idle), (0, 44));
    write(&mut drive, 60);
    assert!(is_in_slc_mode(&drive, 60));
    check(&drive);
}

/// Above the watermark folding begins while the host is busy.
#[test]
fn folding_begins_above_the_watermark() {
    let mut drive = drive(&["slc.watermark=0.5"]);
    (0..40).for_each(|lpn| _ = write(&mut drive, lpn));
    // Half of eleven blocks are five; a sixth one begins a fold.
    assert!(drive.stats().slc.folded_full > 0 && drive.stats().slc.direct == 0);
    assert!(in_slc_mode(&drive) <= 7, "{}", in_slc_mode(&drive));
    check(&drive);
}

/// Every logical page can be written, again and again, whatever is in SLC mode.
#[test]
fn the_logical_capacity_stays_writable() {
    for more in [
        &["slc.dynamic=1.0"][..],
        &["slc.dynamic=1.0", "slc.when_full='fold'"],
        &["slc.static='64KiB'", "slc.dynamic=0.0"],
    ] {
        let mut drive = drive(&[more, &["drive.op=0.5"]].concat());
        let logical = u64::from(drive.geometry().logical_units);
        for round in 0..4 {
            for lpn in 0..logical {
                write(&mut drive, (lpn * 7 + round) % logical);
            }
            check(&drive);
        }
        let stats = drive.stats();
        assert!(stats.slc.cached > 0 && stats.failed == [0; 3]);
        if more.len() == 1 {
            assert!(stats.slc.folded_space > 0, "no fold for space");
        }
    }
}

/// 40 blocks of six pages, two in SLC mode, and a static part of 20 blocks. Without those, an open and a free one for GC,
/// and one of garbage, 17 blocks have the 102 logical pages that are the most. The drive is filled and overwritten without
/// simulated time too.
#[test]
fn the_smallest_drive_is_written_without_time() {
    let sets = |op| {
        let more = [
            "drive.blocks_per_plane=40",
            "drive.pages_per_block=6",
            "slc.static='160KiB'",
            "slc.dynamic=0.0",
            op,
        ];
        [&SLC[1..], &more].concat()
    };
    let too_many = sets("drive.op=1.3188").iter().map(|set| (*set).to_owned()).collect::<Vec<_>>();
    let errors = load(DRIVE, "test.toml", Path::new("."), &too_many).expect_err("103 pages").to_string();
    assert!(errors.contains("20 free for the SLC cache"), "{errors}");
    let mut drive = with_oracle(&spec(DRIVE, &sets("drive.op=1.3415")));
    let logical = u64::from(drive.geometry().logical_units);
    assert_eq!(logical, 102);
    let mut stream = Stream::new(1, "pages");
    (0..logical).for_each(|lpn| _ = drive.write_now(Lpn(lpn as u32)));
    (0..50 * logical).for_each(|_| _ = drive.write_now(Lpn(stream.below(logical) as u32)));
    check(&drive);
    (0..4 * logical).for_each(|_| _ = write(&mut drive, stream.below(logical)));
    check(&drive);
}

/// Ten cycles in SLC mode wear a block like one of TLC, at endurances of 30,000 and 3,000 cycles.
#[test]
fn wear_adds_up_over_the_modes() {
    let mut drive =
        drive(&["slc.endurance=30000", "slc.dynamic=0.01", "slc.static='16KiB'", "drive.blocks_per_plane=8"]);
    for round in 0..400 {
        (0..4).for_each(|lpn| _ = write(&mut drive, (round * 4 + lpn) % 40));
        drive.run_until_idle(IDLE).unwrap();
    }
    check(&drive);
    let erases = [Cause::Fold, Cause::Gc].map(|cause| count(&drive, FlashOp::Erase, cause));
    let blocks = (0..drive.geometry().superblocks).map(SuperblockId);
    let slc: u64 = blocks.clone().map(|block| u64::from(drive.array().slc_cycles(block))).sum();
    let worn = blocks.map(|block| {
        let native = drive.array().superblock(block).pe_cycles - drive.array().slc_cycles(block) / 10;
        u64::from(native)
    });
    assert_eq!((slc, worn.sum::<u64>()), (erases[0], erases[1]));
    assert!(slc >= 399);
}

/// A power loss forgets nothing in SLC mode: the open block in this mode goes on.
#[test]
fn a_power_loss_leaves_the_modes_of_blocks() {
    let mut drive = drive(&["power.cut_at='1h'"]);
    (0..6).for_each(|lpn| _ = write(&mut drive, lpn));
    let before = (0..6).map(|lpn| is_in_slc_mode(&drive, lpn)).collect::<Vec<_>>();
    drive.cut_power();
    drive.completions().for_each(drop);
    check(&drive);
    assert_eq!((0..6).map(|lpn| is_in_slc_mode(&drive, lpn)).collect::<Vec<_>>(), before);
    assert_eq!(write(&mut drive, 6), TRANSFER + 100 * US);
    assert_eq!(in_slc_mode(&drive), 2);
    drive.run_until_idle(IDLE).unwrap();
    assert_eq!((in_slc_mode(&drive), drive.stats().slc.folded_idle), (1, 4));
    let read = request(&drive, Op::Read, 0, 7 * PAGE);
    drive.submit(&read).unwrap();
    drive.run_until_idle(IDLE).unwrap();
    check(&drive);
    assert_eq!(drive.ftl().reserve_of(LaneId(0)), 1);
}

/// Regression: power fails while pages wait for their program in a block that has just been opened in SLC mode. Recovery
/// found the block erased with valid pages, and panicked when it gave the block its first shape again.
#[test]
fn power_that_fails_before_the_first_program_of_a_block_loses_only_its_pages() {
    let mut opened = 0;
    for waiting in 1..16 {
        let mut drive = drive(&["power.cut_at='1h'"]);
        (0..3).for_each(|lpn| _ = write(&mut drive, lpn));
        for lpn in 0..waiting {
            let queued = request(&drive, Op::Write, lpn * PAGE, PAGE);
            drive.submit(&queued).unwrap();
        }
        let blocks = (0..drive.geometry().superblocks).map(SuperblockId);
        let is_opened = |&block: &SuperblockId| {
            let of_block = drive.array().superblock(block);
            of_block.programmed == 0 && of_block.valid > 0 && drive.array().shape_id(block) == ShapeId::SLC
        };
        opened += blocks.filter(is_opened).count();
        drive.cut_power();
        drive.completions().for_each(drop);
        check(&drive);
        (0..3).for_each(|lpn| _ = write(&mut drive, lpn));
        check(&drive);
    }
    assert!(opened > 5, "{opened}");
}

/// A block of the naive twin: the LPNs of its valid pages, in the order of the pages.
#[derive(Debug, Default)]
struct Block {
    is_slc: bool,
    written: u64,
    valid: Vec<u64>,
}

impl Block {
    fn pages(&self) -> u64 {
        if self.is_slc { 4 } else { 12 }
    }

    fn is_full(&self) -> bool {
        self.written == self.pages()
    }
}

/// The naive twin of the cache's bookkeeping, on a drive that has no reason for GC: blocks in the order of their opening.
#[derive(Debug)]
struct Twin {
    blocks: Vec<Block>,
    free: u64,
    dynamic: f64,
    fixed: u64,
    is_closed: bool,
    has_folded_idle: bool,
    cached: u64,
    direct: u64,
    folded: u64,
}

impl Twin {
    fn slc_blocks(&self) -> u64 {
        self.blocks.iter().filter(|block| block.is_slc).count() as u64
    }

    /// The block that takes the next page, by its place: the open one of this kind, or a new one. `is_copy`: it is the
    /// block of folded pages.
    fn place(&mut self, is_slc: bool, open: Option<usize>) -> usize {
        open.filter(|&at| !self.blocks[at].is_full()).unwrap_or_else(|| {
            self.free -= 1;
            self.blocks.push(Block { is_slc, ..Block::default() });
            self.blocks.len() - 1
        })
    }

    fn put(&mut self, at: usize, lpn: u64) {
        self.blocks.iter_mut().for_each(|block| block.valid.retain(|&other| other != lpn));
        self.blocks[at].valid.push(lpn);
        self.blocks[at].written += 1;
    }

    fn may_open(&self) -> bool {
        let slc = self.slc_blocks();
        // GC's block, and those of the static part that are not in SLC mode.
        let kept = 1 + self.fixed.saturating_sub(slc);
        let beyond = slc.saturating_sub(self.fixed) + self.free.saturating_sub(kept);
        let limit = self.fixed + (self.dynamic * beyond as f64 + 1e-9) as u64;
        let is_fixed = slc < self.fixed;
        slc < limit && if is_fixed { self.free > 1 } else { !self.is_closed && self.free > kept + 1 }
    }

    fn write(&mut self, open: &mut [Option<usize>; 3], lpn: u64) -> bool {
        let has_open = open[0].is_some_and(|at| !self.blocks[at].is_full());
        let is_slc = has_open || self.may_open();
        self.is_closed |= !is_slc;
        let of = usize::from(!is_slc);
        let at = self.place(is_slc, open[of]);
        open[of] = Some(at);
        self.put(at, lpn);
        *if is_slc { &mut self.cached } else { &mut self.direct } += 1;
        self.erase_dead(open);
        is_slc
    }

    /// Full blocks without valid pages are erased.
    fn erase_dead(&mut self, open: &mut [Option<usize>; 3]) {
        while let Some(dead) = self.blocks.iter().position(|block| block.is_full() && block.valid.is_empty())
        {
            // The lane opens again if its last fold was in idle time.
            self.is_closed &= !(self.blocks[dead].is_slc && self.has_folded_idle);
            self.blocks.remove(dead);
            self.free += 1;
            for of in open.iter_mut() {
                *of = of.filter(|&at| at != dead).map(|at| at - usize::from(at > dead));
            }
        }
    }

    fn pause(&mut self, open: &mut [Option<usize>; 3]) {
        while let Some(at) = self.blocks.iter().position(|block| block.is_slc && block.is_full()) {
            self.has_folded_idle = true;
            let valid = self.blocks[at].valid.clone();
            self.folded += valid.len() as u64;
            for lpn in valid {
                let to = self.place(false, open[2]);
                open[2] = Some(to);
                self.put(to, lpn);
            }
            self.erase_dead(open);
        }
        self.is_closed = false;
    }
}

/// Random writes and pauses: the twin knows for every write whether it is in SLC mode, and what is folded.
#[test]
fn the_naive_twin_agrees() {
    let mut folded = 0;
    for seed in 0..60 {
        let mut stream = Stream::new(seed, "slc twin");
        let (fixed, dynamic) = (stream.below(3), [0.0, 0.3, 0.5][stream.below(3) as usize]);
        let dynamic = if fixed == 0 && dynamic == 0.0 { 0.3 } else { dynamic };
        let sets = [format!("slc.static='{}B'", fixed * 4 * PAGE), format!("slc.dynamic={dynamic}")];
        let mut drive = drive(&[&sets[0], &sets[1], "gc.background_free=0.02", "gc.foreground_free=0.01"]);
        let mut twin = Twin {
            blocks: Vec::new(),
            free: 24,
            dynamic,
            fixed,
            is_closed: false,
            has_folded_idle: false,
            cached: 0,
            direct: 0,
            folded: 0,
        };
        let mut open = [None; 3];
        for step in 0..90 {
            if stream.below(25) == 0 {
                drive.run_until_idle(IDLE).unwrap();
                twin.pause(&mut open);
            } else {
                let lpn = stream.below(40);
                write(&mut drive, lpn);
                // Erases end before the next write.
                drive.advance(at(drive.now().ns() + 9 * MS));
                let is_slc = twin.write(&mut open, lpn);
                assert_eq!(is_in_slc_mode(&drive, lpn), is_slc, "seed {seed}, step {step}: {twin:?}");
            }
            let stats = drive.stats().slc.clone();
            assert_eq!(
                [stats.cached, stats.direct, stats.folded_idle, drive.ftl().lanes[0].free.len().into()],
                [twin.cached, twin.direct, twin.folded, twin.free],
                "seed {seed}, step {step}: {twin:?}"
            );
        }
        assert_eq!((drive.stats().gc.victims, stats_of_space(&drive)), (0, 0), "seed {seed}");
        folded += twin.folded;
        check(&drive);
    }
    assert!(folded > 500, "{folded}");
}

fn stats_of_space(drive: &Drive<Oracle>) -> u64 {
    drive.stats().slc.folded_space
}

/// Six dirty pages of a cache of eight. Without SLC mode a program takes 900 us, in this mode 100 us. Two superblocks of
/// four pages are enough for the cache, and one more may be taken by the job under way.
#[test]
fn an_emergency_flush_in_slc_mode_is_quicker_and_needs_more_blocks() {
    let backed =
        ["cache.size='32KiB'", "capacitor.capacitance='100mF'", "slc.dynamic=0.0", "slc.static='0B'"];
    let of_mode = |mode: &str| {
        let mode = format!("capacitor.flush_mode='{mode}'");
        let sets: Vec<&str> = if mode.contains("slc") {
            [&SLC[1..], &backed, &[&mode]].concat()
        } else {
            [&backed[..], &[&mode]].concat()
        };
        let mut drive = with_oracle(&spec(DRIVE, &sets));
        let needs = nandlab::drive::spec::superblock_needs(drive.spec()).of("flush").free;
        (0..6).for_each(|lpn| _ = write(&mut drive, lpn));
        let capability = drive.capability_units();
        let loss = drive.cut_power();
        let (pages, finish) = (loss.dirty_pages, loss.flush_ns.ns());
        drive.completions().for_each(drop);
        check(&drive);
        let in_mode = (0..6).filter(|&lpn| is_in_slc_mode(&drive, lpn)).count();
        // The drive goes on, and folds what the flush has written.
        for lpn in 0..40 {
            write(&mut drive, lpn);
        }
        drive.run_until_idle(IDLE).unwrap();
        check(&drive);
        (needs, pages, finish, in_mode, capability, in_slc_mode(&drive))
    };
    let (native, slc) = (of_mode("native"), of_mode("slc"));
    assert_eq!((native.0, native.1, native.2, native.3), (2, 6, 6 * (TRANSFER + 900 * US), 0));
    assert_eq!((slc.0, slc.1, slc.2, slc.3, slc.5), (3, 6, 6 * (TRANSFER + 100 * US), 6, 0));
    assert!(slc.4 > native.4, "{} {}", slc.4, native.4);
}

/// How long the fold of a full block takes, from its first operation to the end of its erase, and its copies: off-chip and
/// by copyback.
fn fold_of_a_block(policy: &str, more: &[&str]) -> (u64, [u64; 2]) {
    let policy = format!("migration.policy={policy}");
    let mut drive = drive(&[&[&policy, "migration.in_flight=1"], more].concat());
    let mut written = 0;
    while in_slc_mode(&drive) < 2 {
        write(&mut drive, written);
        written += 1;
    }
    let begin = drive.now().ns() + 30 * MS;
    drive.advance(at(begin));
    let mut end = begin;
    while in_slc_mode(&drive) > 1 {
        end += 10;
        drive.advance(at(end));
    }
    let of = |kind| count(&drive, kind, Cause::Fold);
    let counts = [of(FlashOp::Program), of(FlashOp::Copyback)];
    check(&drive);
    (end - begin, counts)
}

/// Off-chip each of four pages is sensed, transferred, decoded, transferred and programmed; a copyback is a sense in SLC
/// mode and a program without it.
#[test]
fn a_fold_by_copyback_takes_the_array_times_only() {
    let (sense, decode, program, erase) = (25 * US, 5 * US, 900 * US, 2 * MS);
    let off_chip = 4 * (sense + TRANSFER + decode + TRANSFER + program) + erase;
    assert_eq!(fold_of_a_block("off-chip", &[]), (off_chip, [4, 0]));
    // No page may be copied back.
    assert_eq!(fold_of_a_block("{ rcopyback-greedy = { limit = 0 } }", &[]), (off_chip, [4, 0]));
    // The mode selector corrects what it moves while the buffer is empty.
    assert_eq!(fold_of_a_block("{ rcopyback = { limit = 2 } }", &[]), (off_chip, [4, 0]));
    let inside = 4 * (sense + program) + erase;
    assert_eq!(fold_of_a_block("{ rcopyback-greedy = { limit = 2 } }", &[]), (inside, [0, 4]));
}

/// A one-shot program writes the three pages of a wordline. A block in SLC mode of three wordlines is one copyback: three
/// senses and a program.
#[test]
fn three_pages_in_slc_mode_are_copied_back_to_one_wordline() {
    let one_shot = [
        "drive.cell='3d-tlc'",
        "drive.layers=3",
        "drive.program_order='one-shot'",
        "drive.pages_per_block=9",
    ];
    let (sense, decode, program, erase) = (25 * US, 5 * US, 900 * US, 2 * MS);
    // The reads of a job are queued together; the last page is decoded while the die is free.
    let off_chip = 3 * (sense + TRANSFER) + decode + 3 * TRANSFER + program + erase;
    assert_eq!(fold_of_a_block("off-chip", &one_shot), (off_chip, [3, 0]));
    let inside = 3 * sense + program + erase;
    assert_eq!(fold_of_a_block("{ rcopyback-greedy = { limit = 2 } }", &one_shot), (inside, [0, 3]));
}

/// The errors that the sense in SLC mode finds are programmed with the data, and the copy is the first in a row. With
/// `constant` the age of the data counts on.
#[test]
fn errors_in_slc_mode_move_with_a_fold_by_copyback() {
    const FACTOR: f64 = 0.5;
    let folded = |copyback: &str| {
        let (factor, copyback) =
            (format!("slc.rber_factor={FACTOR}"), format!("reliability.copyback={copyback}"));
        let mut drive = drive(&[
            &factor,
            &copyback,
            "drive.cell='mlc'",
            "slc.idle_after='4s'",
            "migration.policy.rcopyback-greedy={ limit = 2 }",
            "reliability.rber.vth={ dvpp = 0.38, cell_to_cell = 0.05 }",
            "reliability.pe_cycles=10000",
            "drive.endurance=20000",
            "reliability.clock_scale=8640000",
            "ecc.levels='laldpc'",
        ]);
        (0..6).for_each(|lpn| _ = write(&mut drive, lpn));
        let source = drive.ftl().map.get(Lpn(0)).expect("the page is mapped");
        let (stamp, written) = (drive.array().stamp(source), drive.now());
        let cycles = drive.array().superblock(drive.geometry().superblock_of(source)).pe_cycles;
        drive.advance(at(written.ns() + 4_200 * MS));
        let unit = drive.ftl().map.get(Lpn(0)).expect("the page is mapped");
        assert!(!is_in_slc_mode(&drive, 0));
        assert_eq!(drive.array().superblock(drive.geometry().superblock_of(unit)).copybacks(), 1);
        assert_eq!(drive.array().stamp(unit).corrected, stamp.corrected);
        check(&drive);
        (drive.array().copied(unit), stamp.corrected, cycles)
    };
    let (copied, corrected, cycles) = folded("{ propagate = { references = 'optimal' } }");
    let copied = copied.expect("the copy has a record");
    let model = VthSpec {
        dvpp: 0.38,
        cell_to_cell: 0.05,
        sensing_step: 0.03,
        per_page_kind: false,
        unworn_loss: 0.0,
    };
    let age_s = f64::from(copied.programmed.later_s_than(corrected));
    let sensed = FACTOR * Vth::new(&model).rber(f64::from(cycles), age_s).mean();
    assert!(
        age_s > 390.0 * 86_400.0 && (f64::from(copied.rber) / sensed - 1.0).abs() < 0.01,
        "{copied:?} {sensed}"
    );
    assert!(folded("'constant'").0.is_none());
}

/// With random writes both GC and folds copy pages back. A fold for a waiting write is urgent, so the mode selector copies
/// back too.
#[test]
fn folds_and_gc_copy_back() {
    let mut drive = drive(&[
        "migration.policy.rcopyback-greedy={ limit = 3 }",
        "drive.op=0.7",
        "slc.dynamic=0.0",
        "slc.static='32KiB'",
    ]);
    let logical = u64::from(drive.geometry().logical_units);
    let mut stream = Stream::new(1, "copybacks");
    for write_number in 0..8 * logical {
        write(&mut drive, stream.below(logical));
        if write_number % 50 == 0 {
            drive.run_until_idle(IDLE).unwrap();
        }
    }
    check(&drive);
    let copybacks = drive.stats().flash[FlashOp::Copyback as usize];
    assert!(copybacks[Cause::Gc as usize] > 0 && copybacks[Cause::Fold as usize] > 20, "{copybacks:?}");
    let mut drive =
        self::drive(&["slc.dynamic=0.25", "slc.when_full='fold'", "migration.policy='rcopyback'"]);
    (0..100).for_each(|lpn| _ = write(&mut drive, lpn));
    let copybacks = count(&drive, FlashOp::Copyback, Cause::Fold);
    assert!(copybacks > 50 && drive.stats().slc.folded_full >= copybacks, "{copybacks}");
    check(&drive);
}

/// The host is never idle, so nothing is folded. A day of the age clock takes a second, and data is due after ten days:
/// refresh moves it out of the cache.
#[test]
fn a_due_block_in_slc_mode_is_refreshed_out_of_it() {
    let mut drive = drive(&[
        "slc.idle_after='1h'",
        "reliability.clock_scale=86400",
        "refresh.policy='fcr'",
        "refresh.interval=[{ pe = 1000000, every = '10d' }]",
    ]);
    (0..4).for_each(|lpn| _ = write(&mut drive, lpn));
    assert!((0..4).all(|lpn| is_in_slc_mode(&drive, lpn)));
    drive.advance(at(11_000 * MS));
    assert!((0..4).all(|lpn| !is_in_slc_mode(&drive, lpn)));
    assert_eq!((drive.stats().refresh.pages, drive.stats().slc.blocks, in_slc_mode(&drive)), (4, 0, 0));
    check(&drive);
}

/// A drive of sixteen lanes on which reads take so many retries that data is always due for refresh.
const ALWAYS_DUE: &str = "[drive]\nchannels = 2\nchips_per_channel = 2\ndies_per_chip = 2\nplanes_per_die = 2\n\
    blocks_per_plane = 10\npages_per_block = 6\npage_size = '4KiB'\ncell = 'mlc'\nop = 0.996\nendurance = 1000000\n\
    [ecc]\nlevels = { codec = { rate = '16/17', size = '2KiB', references = 'equidistant', iteration = '5us' } }\n\
    decoders = 1\nstart = 'last-level'\nretry = 'full'\n[reliability]\nrber.vth = { unworn_loss = 20 }\n\
    pe_cycles = 12000\nread_disturb = 1e-6\npage_variation = 0.7\n\
    retention = [{ age = '7d', share = 0.5 }, { age = '1316d', share = 0.5 }]\nclock_scale = 17798400\n\
    [slc]\ndynamic = 1.0\nwhen_full = 'fold'\n[refresh]\npolicy = { fcr = { in_place = true } }\n\
    interval = [{ pe = 1000000, every = '2135808s' }]\n";

/// With `fold` a write waits for a fold, but not for a refresh, after which another lane has one. The writes of this drive
/// once waited for ever, with free blocks in all lanes.
#[test]
fn a_write_does_not_wait_for_refresh() {
    let mut drive = with_oracle(&spec(ALWAYS_DUE, &[]));
    let logical = u64::from(drive.geometry().logical_units);
    let mut stream = Stream::new(1, "pages");
    (0..1500).for_each(|_| _ = write(&mut drive, stream.below(logical)));
    let stats = drive.stats();
    assert!(stats.slc.cached > 0 && stats.slc.direct > 0 && stats.refresh.late_blocks > 0);
    check(&drive);
}

/// Pages in SLC mode have fewer errors by `slc.rber_factor`. At the factor 1 a page of 300 days needs a level above the
/// first; a fold corrects it, so that its next read needs the first level.
#[test]
fn a_fold_resets_the_read_level() {
    let levels = |factor: &str| {
        let factor = format!("slc.rber_factor={factor}");
        let mut drive = drive(&[
            &factor,
            "drive.cell='mlc'",
            "slc.idle_after='4s'",
            "ecc.levels='laldpc'",
            "ecc.start='last-level'",
            "reliability.rber='vth'",
            "reliability.pe_cycles=10000",
            "drive.endurance=20000",
            "reliability.clock_scale=8640000",
        ]);
        (0..6).for_each(|lpn| _ = write(&mut drive, lpn));
        drive.advance(at(3_000 * MS));
        let mut read = || {
            let before: Vec<u64> = drive.stats().ecc.levels.to_vec();
            one(&mut drive, Op::Read, 0, PAGE);
            let after = drive.stats().ecc.levels.to_vec();
            let level = before.iter().zip(&after).position(|(before, after)| after > before);
            drive.run_until_idle(IDLE).unwrap();
            level.expect("a page was read")
        };
        let found = [read(), read()];
        assert!(!is_in_slc_mode(&drive, 0));
        check(&drive);
        found
    };
    let ([worse, folded], [better, _]) = (levels("1.0"), levels("0.01"));
    assert!(worse > better && folded < worse, "{worse} {folded} {better}");
}

/// A sequential write of the share `until` of the empty drive `text`: MB/s by the GB written, `scale` times those of the
/// drive, which has as many times fewer wordlines.
fn rates_of(text: &str, scale: f64, until: f64) -> Vec<(f64, f64)> {
    let mut drive: Drive = Drive::new(&spec(text, &[]));
    let end = (until * drive.geometry().logical_bytes() as f64) as u64;
    let (step, bytes) = (drive.geometry().logical_bytes() / 200, 128 << 10);
    let (mut offset, mut before, mut rates) = (0u64, 0, Vec::new());
    while offset + bytes <= end {
        wait_for_fewer(&mut drive, 64);
        let write = request(&drive, Op::Write, offset, bytes);
        drive.submit(&write).unwrap();
        offset += bytes;
        if offset / step > (offset - bytes) / step {
            let now = drive.now().ns();
            rates.push((offset as f64 * scale * 1e-9, step as f64 * 1e3 / (now - before) as f64));
            before = now;
        }
    }
    rates
}

fn mean_of(rates: &[(f64, f64)], from: f64, to: f64) -> f64 {
    let of: Vec<f64> =
        rates.iter().filter(|(gb, _)| (from..to).contains(gb)).map(|&(_, rate)| rate).collect();
    of.iter().sum::<f64>() / of.len() as f64
}

/// The published rates of a consumer drive, with a 58th of its wordlines. The first two rates and the size of the cache are
/// inputs; the second break follows: 280 GB, and what is left of the flash beside the 840 GB that the cache takes.
#[test]
fn the_breaks_of_a_sequential_write_are_those_published() {
    let text = "[drive]\npreset = 'like-adata-atom-50-1t'\npages_per_block = 36\nlayers = 12\n[host]\ncontroller = 'none'\n";
    let rates = rates_of(text, 2112.0 / 36.0, 0.6);
    let end_of = |rate: f64| rates.iter().skip(3).find(|&&(_, now)| now < 0.8 * rate).expect("a break").0;
    let (cached, direct) = (mean_of(&rates, 30.0, 250.0), mean_of(&rates, 320.0, 450.0));
    assert!(
        (cached / 4500.0 - 1.0).abs() < 0.03 && (direct / 2000.0 - 1.0).abs() < 0.03,
        "{cached} {direct}"
    );
    let breaks = [end_of(4500.0), end_of(2000.0)];
    assert!((breaks[0] / 280.0 - 1.0).abs() < 0.03 && (breaks[1] / 500.0 - 1.0).abs() < 0.15, "{breaks:?}");
}

/// The size of the cache and the link of the other drive are inputs, and its program time is fitted to the rate of the drive
/// with half of the dies. The rate after the cache follows within 15 %. With a sixteenth of the wordlines.
#[test]
fn the_rate_after_the_cache_is_that_published() {
    let text = "[drive]\npreset = 'like-samsung-970-evo-plus-1t'\npages_per_block = 69\nlayers = 23\n[slc]\nstatic = '375MB'\n\
                [host]\ncontroller = 'none'\n";
    let rates = rates_of(text, 16.0, 0.08);
    let (cached, direct) = (mean_of(&rates, 10.0, 36.0), mean_of(&rates, 50.0, 80.0));
    let end = rates.iter().find(|&&(_, now)| now < 0.9 * cached).expect("a break").0;
    assert!(
        (cached / 3300.0 - 1.0).abs() < 0.15 && (direct / 1700.0 - 1.0).abs() < 0.15,
        "{cached} {direct}"
    );
    assert!((end / 42.0 - 1.0).abs() < 0.2, "{end}");
    let half = rates_of(&text.replace("layers = 23", "layers = 23\ndies_per_chip = 2"), 16.0, 0.15);
    let direct = mean_of(&half, 50.0, 75.0);
    assert!((direct / 900.0 - 1.0).abs() < 0.03, "{direct}");
}

#[test]
fn an_slc_cache_excludes_placement_handles() {
    let sets = ["slc.dynamic=0.5".to_owned(), "placement.handles=2".to_owned()];
    let errors =
        nandlab::drive::spec::load(DRIVE, "test.toml", std::path::Path::new("."), &sets).unwrap_err();
    assert!(errors.to_string().contains("SLC mode would mix the data of placement handles"), "{errors}");
}
