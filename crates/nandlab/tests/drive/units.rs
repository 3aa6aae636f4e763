//! Mapping units below the page (`ftl.mapping_unit`): latencies, packing and write amplification by hand.

use crate::common::{MS, TINY, at, ns, one, read_everything, request, settle, spec, submit_with_few};
use nandlab::base::geometry::{DieId, LaneId, Lpn, SuperblockId};
use nandlab::base::rng::Stream;
use nandlab::drive::{Drive, IDLE_LIMIT};
use nandlab::flash::{Superblock, SuperblockState};
use nandlab::host::{Op, Oracle};
use nandlab::probe::Probe;
use nandlab::sched::{Cause, FlashOp};

/// A page of 16 KiB at 2.5 ns per byte, and a unit of 4 KiB, in nanoseconds.
const PAGE: u64 = 40_960;
const UNIT: u64 = 10_240;

const UNITS: &[&str] = &["drive.page_size=16KiB", "ftl.mapping_unit=4KiB"];

fn flash<P: Probe>(drive: &Drive<P>, op: FlashOp, cause: Cause) -> u64 {
    drive.stats().flash[op as usize][cause as usize]
}

#[test]
fn the_units_of_a_page_are_programmed_and_read_by_one_operation() {
    let mut drive = Drive::new(&spec(TINY, UNITS));
    assert_eq!(drive.geometry().logical_bytes(), 4 * 16 * 8 * 16_384 * 2 / 3 / 4096 * 4096);
    // Two pages of four units, on two planes.
    assert_eq!(one(&mut drive, Op::Write, 0, 32 << 10), PAGE + 900_000);
    assert_eq!(flash(&drive, FlashOp::Program, Cause::Host), 2);
    // A read transfers the units that it asks for.
    for (first, units) in [(0, 1), (1, 2), (0, 4), (4, 3)] {
        let expected = 50_000 + units * UNIT + 15_000;
        assert_eq!(one(&mut drive, Op::Read, first * 4096, units * 4096), expected, "{units} from {first}");
    }
    assert_eq!(flash(&drive, FlashOp::Read, Cause::Host), 4);
    // Two units on each side of a page's end are two reads.
    assert_eq!(one(&mut drive, Op::Read, 2 * 4096, 4 * 4096), 50_000 + 2 * UNIT + 15_000);
    assert_eq!(flash(&drive, FlashOp::Read, Cause::Host), 6);
    assert_eq!(drive.stats().waf(), Some(1.0));
}

#[test]
fn a_write_of_one_unit_programs_a_page_with_padding_and_reads_nothing() {
    let mut drive = Drive::new(&spec(TINY, UNITS));
    one(&mut drive, Op::Write, 0, 16 << 10);
    assert_eq!(one(&mut drive, Op::Write, 4096, 4096), PAGE + 900_000);
    assert_eq!(drive.stats().counters.merge_reads, 0);
    assert_eq!(drive.stats().units.padding, 3);
    assert_eq!(drive.stats().waf(), Some(32.0 / 20.0));
    assert_eq!(drive.stats().waf_pages(), Some(8.0 / 5.0));
    // The three other units of the first page are still read there, the second unit in the new page.
    assert_eq!(one(&mut drive, Op::Read, 0, 16 << 10), 2 * 50_000 + 4 * UNIT + 15_000);
    assert_eq!(flash(&drive, FlashOp::Read, Cause::Host), 2);
}

/// Random writes of whole pages and TRIMs of single units: the host never leaves a page partly filled, so all
/// padding is that of GC. GC reads a page once for all its valid units, and packs them from victim to victim. The
/// host is never idle before the end, and there is always a next victim, so only the last page may have padding.
#[test]
fn gc_reads_a_page_once_and_packs_the_units() {
    for in_flight in [1, 4] {
        let in_flight = format!("migration.in_flight={in_flight}");
        let sets = [UNITS, &["drive.blocks_per_plane=32", "drive.op=0.25", &in_flight]].concat();
        let mut drive = Drive::with_probe(&spec(TINY, &sets), Oracle::default());
        let pages = drive.geometry().logical_bytes() / 16_384;
        let mut stream = Stream::new(1, "units");
        for _ in 0..20 * pages {
            one(&mut drive, Op::Write, stream.below(pages) * 16_384, 16_384);
            if stream.below(4) == 0 {
                one(&mut drive, Op::Trim, stream.below(4 * pages) * 4096, 4096);
            }
        }
        settle(&mut drive);
        drive.audit().unwrap();
        let stats = drive.stats();
        let gc = |op: FlashOp| stats.flash[op as usize][Cause::Gc as usize];
        let (victims, valid) = (stats.gc.victims, stats.gc.victim_valid_pages);
        let moved = 4 * gc(FlashOp::Program) - stats.units.padding;
        assert!(victims > 500 && stats.units.padding <= 3 * u64::from(drive.geometry().lanes));
        // A unit that the host overwrites or deallocates during a job is not moved.
        assert!(moved <= valid && moved > valid * 95 / 100, "{moved} of {valid} units moved");
        // Eight pages per block. With 4 units each read alone there would be as many reads as units.
        assert!(
            gc(FlashOp::Read) <= 8 * victims && 2 * gc(FlashOp::Read) < valid,
            "{victims} victims, {valid} units"
        );
        read_everything(&mut drive);
    }
}

/// A drive with units on which GC has run, without idle time.
fn with_gc() -> (Drive<Oracle>, Stream) {
    let sets = [UNITS, &["drive.blocks_per_plane=32", "drive.op=0.25", "drive.cell=slc", "gc.idle_after=1s"]]
        .concat();
    let mut drive = Drive::with_probe(&spec(TINY, &sets), Oracle::default());
    let mut stream = Stream::new(2, "units");
    for _ in 0..5 * drive.geometry().logical_units {
        write_one(&mut drive, &mut stream);
    }
    (drive, stream)
}

fn write_one(drive: &mut Drive<Oracle>, stream: &mut Stream) {
    let units = u64::from(drive.geometry().logical_units);
    submit_with_few(drive, Op::Write, stream.below(units / 4) * 16_384, 16_384);
    submit_with_few(drive, Op::Trim, stream.below(units) * 4096, 4096);
}

/// With room for the host and no next victim the last copies of a victim gather. Once the host is idle their page is
/// padded, and the victim is erased.
#[test]
fn an_idle_host_ends_the_wait_for_the_next_victim() {
    let (mut drive, mut stream) = with_gc();
    let open = |drive: &Drive<Oracle>| drive.open_programs_of_gc()[0];
    loop {
        write_one(&mut drive, &mut stream);
        drive.advance(drive.now() + ns(400 * MS));
        drive.audit().unwrap();
        if open(&drive) > 0 {
            break;
        }
    }
    let (waiting, padding) = (u64::from(open(&drive)), drive.stats().units.padding);
    drive.advance(drive.now() + ns(500 * MS));
    assert_eq!((u64::from(open(&drive)), drive.stats().units.padding), (waiting, padding));
    let erases = flash(&drive, FlashOp::Erase, Cause::Gc);
    settle(&mut drive);
    assert_eq!(open(&drive), 0);
    assert!(flash(&drive, FlashOp::Erase, Cause::Gc) >= erases + waiting);
    let padded = drive.stats().units.padding - padding;
    assert!((waiting..=3 * u64::from(drive.geometry().lanes)).contains(&padded), "{padded} units");
    read_everything(&mut drive);
}

/// Power fails while the last copies of a victim gather, alone or with copies of the next victim: the sources are still
/// there.
#[test]
fn power_loss_between_two_victims_of_gc_loses_nothing() {
    for shared in [false, true] {
        let (mut drive, mut stream) = with_gc();
        while drive.open_programs_of_gc()[usize::from(shared)] == 0 {
            if !drive.advance_by_event(at(drive.now().ns() + MS)) || drive.outstanding() < 2 {
                write_one(&mut drive, &mut stream);
            }
            drive.completions().for_each(drop);
        }
        drive.audit().unwrap();
        drive.cut_power();
        drive.completions().for_each(drop);
        read_everything(&mut drive);
        for _ in 0..drive.geometry().logical_units {
            write_one(&mut drive, &mut stream);
        }
        read_everything(&mut drive);
    }
}

/// Three writes of a unit are acknowledged at once and wait in the write buffer; with the fourth the page is full.
#[test]
fn the_write_buffer_acknowledges_at_once_and_programs_full_pages() {
    let sets = [UNITS, &["ftl.buffer=16KiB", "gc.idle_after=100ms"]].concat();
    let mut drive = Drive::new(&spec(TINY, &sets));
    for unit in 0..4 {
        assert_eq!(flash(&drive, FlashOp::Program, Cause::Host), 0);
        assert_eq!(one(&mut drive, Op::Write, unit * 4096, 4096), 0);
        assert_eq!(one(&mut drive, Op::Read, unit * 4096, 4096), 0, "the unit is in the buffer");
    }
    // The buffer has four units, all of them in the program: the next write waits for its end.
    assert_eq!(one(&mut drive, Op::Write, 4 * 4096, 4096), PAGE + 900_000);
    assert_eq!((flash(&drive, FlashOp::Program, Cause::Host), drive.stats().units.padding), (1, 0));
    // A flush programs the unit with three of padding. The next units go to another page, as does a FUA write.
    assert_eq!(one(&mut drive, Op::Flush, 0, 0), PAGE + 900_000);
    assert_eq!((flash(&drive, FlashOp::Program, Cause::Host), drive.stats().units.padding), (2, 3));
    let fua = request(&drive, Op::Write, 0, 4096).with_fua(true);
    drive.submit(&fua).unwrap();
    drive.run_until_idle(IDLE_LIMIT).unwrap();
    assert_eq!(drive.stats().host[Op::Write as usize].max_ns, PAGE + 900_000);
    assert_eq!((flash(&drive, FlashOp::Program, Cause::Host), drive.stats().units.padding), (3, 6));
}

/// A unit that nothing follows is programmed once the host is idle.
#[test]
fn an_idle_host_ends_the_wait_in_the_write_buffer() {
    let sets = [UNITS, &["ftl.buffer=16KiB", "gc.idle_after=100ms"]].concat();
    let mut drive = Drive::new(&spec(TINY, &sets));
    assert_eq!(one(&mut drive, Op::Write, 0, 4096), 0);
    drive.advance(at(99 * MS));
    assert_eq!(drive.outstanding(), 0);
    drive.advance(at(100 * MS + PAGE + 900_000 - 1));
    assert_eq!(flash(&drive, FlashOp::Program, Cause::Host), 0);
    drive.advance(at(100 * MS + PAGE + 900_000));
    assert_eq!((flash(&drive, FlashOp::Program, Cause::Host), drive.stats().units.padding), (1, 3));
}

/// With a buffer of one page, units of four planes fill no page: the oldest is programmed with padding.
#[test]
fn a_full_buffer_programs_its_oldest_page() {
    let mut drive = Drive::new(&spec(TINY, &[UNITS, &["ftl.buffer=16KiB"]].concat()));
    for plane in 0..4 {
        assert_eq!(one(&mut drive, Op::Write, plane * 16_384, 4096), 0);
    }
    assert_eq!(one(&mut drive, Op::Write, 4 * 16_384, 4096), PAGE + 900_000);
    // The fifth unit is in plane 0 again, with the first, which is the oldest.
    assert_eq!((flash(&drive, FlashOp::Program, Cause::Host), drive.stats().units.padding), (1, 2));
}

/// A unit that was written again while it waited in the write buffer took another place in flash: 9,600 writes of one LPN
/// were 8,592 units on one die, and waited for it for 43 ms on average.
#[test]
fn a_unit_that_is_written_again_in_the_write_buffer_is_replaced() {
    let sets = [UNITS, &["ftl.buffer=16KiB", "gc.idle_after=100ms"]].concat();
    let mut drive = Drive::with_probe(&spec(TINY, &sets), Oracle::default());
    for _ in 0..1000 {
        assert_eq!(one(&mut drive, Op::Write, 0, 4096), 0);
        assert_eq!(one(&mut drive, Op::Read, 0, 4096), 0);
    }
    assert_eq!((flash(&drive, FlashOp::Program, Cause::Host), drive.stats().buffer.replaced), (0, 999));
    drive.audit().unwrap();
    assert_eq!(one(&mut drive, Op::Flush, 0, 0), PAGE + 900_000);
    assert_eq!((flash(&drive, FlashOp::Program, Cause::Host), drive.stats().units.padding), (1, 3));
    assert_eq!(drive.stats().waf(), Some(4.0 / 1000.0));
    read_everything(&mut drive);
}

/// Units 0 to 3 and 16 to 19 are in plane 0. The die programs the first four while the others are in its queue.
#[test]
fn a_unit_is_replaced_until_its_die_begins_its_program() {
    let sets = [UNITS, &["ftl.buffer=64KiB", "gc.idle_after=100ms"]].concat();
    let mut drive = Drive::with_probe(&spec(TINY, &sets), Oracle::default());
    for unit in [0, 1, 2, 3, 16, 17, 18, 19] {
        assert_eq!(one(&mut drive, Op::Write, unit * 4096, 4096), 0);
    }
    for (unit, replaced) in [(16, 1), (0, 1), (0, 2), (19, 3)] {
        assert_eq!(one(&mut drive, Op::Write, unit * 4096, 4096), 0);
        assert_eq!(drive.stats().buffer.replaced, replaced, "unit {unit}");
    }
    drive.advance(at(PAGE + 900_000));
    // Now the second program is under way.
    for (unit, replaced) in [(16, 3), (0, 4)] {
        assert_eq!(one(&mut drive, Op::Write, unit * 4096, 4096), 0);
        assert_eq!(drive.stats().buffer.replaced, replaced, "unit {unit}");
    }
    drive.audit().unwrap();
    one(&mut drive, Op::Flush, 0, 0);
    // Units 0 and 16 again, with padding.
    assert_eq!((flash(&drive, FlashOp::Program, Cause::Host), drive.stats().units.padding), (3, 2));
    read_everything(&mut drive);
}

/// A write that replaces a unit without room in the buffer waits for the room of this unit, and takes none of its own.
#[test]
fn the_writes_of_a_unit_wait_for_room_together() {
    let sets = [UNITS, &["ftl.buffer=16KiB", "gc.idle_after=100ms"]].concat();
    let mut drive = Drive::with_probe(&spec(TINY, &sets), Oracle::default());
    for unit in 0..4 {
        assert_eq!(one(&mut drive, Op::Write, unit * 4096, 4096), 0);
    }
    for unit in [16, 17, 16, 16, 17] {
        let write = request(&drive, Op::Write, unit * 4096, 4096);
        drive.submit(&write).unwrap();
    }
    assert_eq!(drive.stats().buffer.replaced, 3);
    drive.audit().unwrap();
    drive.advance(at(PAGE + 900_000 - 1));
    assert_eq!(drive.outstanding(), 5);
    drive.advance(at(PAGE + 900_000));
    assert_eq!((drive.outstanding(), drive.completions().count()), (0, 5));
    // Two units are in the buffer; two more fit, and with them the page is full.
    for unit in [18, 19] {
        assert_eq!(one(&mut drive, Op::Write, unit * 4096, 4096), 0);
    }
    assert_eq!(one(&mut drive, Op::Write, 32 * 4096, 4096), PAGE + 900_000);
    read_everything(&mut drive);
}

/// While a flush is outstanding, no unit is replaced: the flush would have to wait for newer data.
#[test]
fn a_unit_that_a_flush_waits_for_is_not_replaced() {
    let sets = [UNITS, &["ftl.buffer=64KiB", "gc.idle_after=100ms"]].concat();
    let mut drive = Drive::with_probe(&spec(TINY, &sets), Oracle::default());
    for unit in [0, 1, 2, 3, 16] {
        assert_eq!(one(&mut drive, Op::Write, unit * 4096, 4096), 0);
    }
    // Unit 16 goes to the queue of the die, behind the program of the first four.
    for (op, offset, len) in [(Op::Flush, 0, 0), (Op::Write, 16 * 4096, 4096)] {
        let next = request(&drive, op, offset, len);
        drive.submit(&next).unwrap();
    }
    assert_eq!((drive.outstanding(), drive.stats().buffer.replaced), (2, 0));
    drive.advance(at(2 * (PAGE + 900_000)));
    assert_eq!((drive.outstanding(), drive.completions().count()), (1, 1), "the flush is complete");
    drive.advance(at(3 * (PAGE + 900_000)));
    assert_eq!(drive.outstanding(), 0);
    read_everything(&mut drive);
}

/// A write of part of a unit in the write buffer needs neither the old data from flash nor the map entry, which may have
/// been evicted.
#[test]
fn a_write_of_part_of_a_buffered_unit_reads_nothing() {
    for map in ["ftl.map=page", "ftl.map.demand={ cache = '32B' }"] {
        let sets = [UNITS, &["ftl.buffer=64KiB", "drive.blocks_per_plane=24", map]].concat();
        let mut drive = Drive::with_probe(&spec(TINY, &sets), Oracle::default());
        // The units have data in flash, and the cache has four entries.
        for unit in (0..64).chain([0, 20, 24, 28, 36, 40, 44]) {
            one(&mut drive, Op::Write, unit * 4096, 4096);
        }
        let reads = flash(&drive, FlashOp::Read, Cause::Mapping);
        assert_eq!(one(&mut drive, Op::Write, 512, 512), 0, "{map}");
        assert_eq!(one(&mut drive, Op::Write, 1024, 3072), 0, "{map}");
        assert_eq!(flash(&drive, FlashOp::Read, Cause::Mapping), reads, "{map}");
        let (stats, counters) = (drive.stats(), &drive.stats().counters);
        assert_eq!(
            (counters.partial_writes, counters.merge_reads, stats.buffer.replaced),
            (2, 0, 2),
            "{map}"
        );
        read_everything(&mut drive);
    }
}

/// A plane of three-bit cells with pages of 16 KiB: a program of a wordline writes 12 units of 4 KiB.
const ONE_SHOT: &[&str] = &[
    "drive.page_size=16KiB",
    "ftl.mapping_unit=4KiB",
    "drive.cell=3d-tlc",
    "drive.layers=4",
    "drive.pages_per_block=12",
    "drive.channels=1",
    "drive.planes_per_die=1",
    "drive.op=1.0",
    "drive.program_order=one-shot",
];

/// A wordline has three pages, transferred one after another and programmed in one tPROG. Reads are by page.
#[test]
fn a_one_shot_program_writes_a_wordline() {
    let mut drive = Drive::new(&spec(TINY, ONE_SHOT));
    assert_eq!(one(&mut drive, Op::Write, 0, 48 << 10), 3 * PAGE + 900_000);
    assert_eq!(flash(&drive, FlashOp::Program, Cause::Host), 3);
    assert_eq!(drive.stats().waf(), Some(1.0));
    assert_eq!(one(&mut drive, Op::Read, 0, 48 << 10), 3 * (50_000 + PAGE) + 15_000);
    assert_eq!(flash(&drive, FlashOp::Read, Cause::Host), 3);
    // A single unit takes a whole program, of which eleven units are padding.
    assert_eq!(one(&mut drive, Op::Write, 0, 4096), 3 * PAGE + 900_000);
    assert_eq!(drive.stats().units.padding, 11);
    assert_eq!(drive.stats().waf(), Some(96.0 / 52.0));
}

/// With the page as the mapping unit a program writes three pages.
#[test]
fn a_write_buffer_gathers_a_wordline() {
    let sets = [ONE_SHOT, &["ftl.mapping_unit=page", "ftl.buffer=48KiB"]].concat();
    let mut drive = Drive::new(&spec(TINY, &sets));
    for page in 0..3 {
        assert_eq!(one(&mut drive, Op::Write, page << 14, 1 << 14), 0);
    }
    assert_eq!(one(&mut drive, Op::Flush, 0, 0), 3 * PAGE + 900_000);
    assert_eq!((flash(&drive, FlashOp::Program, Cause::Host), drive.stats().units.padding), (3, 0));
    // The flush programs one page with two of padding.
    assert_eq!(one(&mut drive, Op::Write, 0, 1 << 14), 0);
    assert_eq!(one(&mut drive, Op::Flush, 0, 0), 3 * PAGE + 900_000);
    assert_eq!((flash(&drive, FlashOp::Program, Cause::Host), drive.stats().units.padding), (6, 2));
}

/// The settings of [`ONE_SHOT`] with two planes, whose blocks form superblocks.
const SUPERBLOCKS: &[&str] = &["drive.planes_per_die=2", "ftl.superblock=die", "timing.multi_plane=true"];

/// A program writes the wordlines of both planes: 96 KiB. A page of each plane is read by one operation.
#[test]
fn a_one_shot_program_of_a_superblock_writes_a_wordline_of_every_plane() {
    let mut drive = Drive::new(&spec(TINY, &[ONE_SHOT, SUPERBLOCKS].concat()));
    let geometry = drive.geometry();
    assert_eq!((geometry.lanes, geometry.superblocks, geometry.units_per_superblock), (1, 16, 2 * 12 * 4));
    assert_eq!(drive.array().shapes().first().units_per_program, 24);
    assert_eq!(one(&mut drive, Op::Write, 0, 96 << 10), 6 * PAGE + 900_000);
    assert_eq!(flash(&drive, FlashOp::Program, Cause::Host), 6);
    // Pages 0 and 1 are in the two planes of row 0, page 2 is in the first plane of row 1.
    assert_eq!(one(&mut drive, Op::Read, 0, 32 << 10), 50_000 + 2 * PAGE + 15_000);
    assert_eq!(one(&mut drive, Op::Read, 16 << 10, 32 << 10), 2 * (50_000 + PAGE) + 15_000);
    assert_eq!(drive.stats().flash_total(FlashOp::Read), 4);
}

/// A drive after random writes of `size` bytes to aligned places, drawn from the stream `name`: 20 times its capacity.
fn overwritten(size: u64, sets: &[&str], name: &str) -> Drive<Oracle> {
    let mut drive = Drive::with_probe(&spec(TINY, sets), Oracle::default());
    let places = drive.geometry().logical_bytes() / size;
    let mut stream = Stream::new(1, name);
    for _ in 0..20 * places {
        one(&mut drive, Op::Write, stream.below(places) * size, size);
    }
    settle(&mut drive);
    drive.audit().unwrap();
    drive
}

/// Every superblock is erased by one operation, which counts as an erase of two blocks. The wear is that of each block.
#[test]
fn a_superblock_is_erased_as_one() {
    for order in ["page", "one-shot"] {
        let order = format!("drive.program_order={order}");
        let sets = [ONE_SHOT, SUPERBLOCKS, &[&order]].concat();
        let mut drive = overwritten(16_384, &sets, "superblocks");
        let erases = drive.stats().flash_total(FlashOp::Erase);
        let cycles: u32 = drive.array().superblocks.iter().map(|superblock| superblock.pe_cycles).sum();
        assert!(cycles > 100);
        assert_eq!(erases, 2 * u64::from(cycles));
        read_everything(&mut drive);
    }
}

/// In page order the pages of a row are programmed by multi-plane programs.
#[test]
fn the_planes_of_a_superblock_are_programmed_together_in_page_order() {
    let sets = [ONE_SHOT, SUPERBLOCKS, &["drive.program_order=page"]].concat();
    let mut drive = Drive::new(&spec(TINY, &sets));
    assert_eq!(one(&mut drive, Op::Write, 0, 64 << 10), 2 * (2 * PAGE + 900_000));
    assert_eq!(one(&mut drive, Op::Read, 0, 64 << 10), 2 * (50_000 + 2 * PAGE) + 15_000);
    assert_eq!(flash(&drive, FlashOp::Program, Cause::Host), 4);
}

const COPYBACK: &[&str] = &[
    "migration.policy.rcopyback-greedy={ limit = 2 }",
    "timing.command={ copyback = '300ns' }",
    "ftl.buffer=96KiB",
    "drive.blocks_per_plane=32",
];

/// Random writes of `size` bytes to a drive with one-shot programs and copybacks.
fn with_copybacks(size: u64, sets: &[&[&str]]) -> Drive<Oracle> {
    let sets = [ONE_SHOT, COPYBACK, &sets.concat()].concat();
    let mut drive = overwritten(size, &sets, "copybacks");
    read_everything(&mut drive);
    drive
}

/// Reads, programs, erases and copybacks, in pages and blocks.
fn totals(drive: &Drive<Oracle>) -> [u64; 4] {
    [FlashOp::Read, FlashOp::Program, FlashOp::Erase, FlashOp::Copyback]
        .map(|kind| drive.stats().flash_total(kind))
}

/// The time for which the dies are busy if each program and copyback writes three pages of a wordline.
fn busy_with_wordlines(drive: &Drive<Oracle>) -> u64 {
    let [reads, programs, erases, copybacks] = totals(drive);
    reads * (50_000 + PAGE)
        + programs / 3 * (3 * PAGE + 900_000)
        + erases * 3_500_000
        + copybacks / 3 * (3 * 300 + 3 * 50_000 + 900_000)
}

/// A copyback copies three pages, which are sensed one after another and programmed in one tPROG. The other pages
/// of a victim, fewer than three, are read and programmed with padding.
#[test]
fn a_copyback_fills_a_one_shot_program() {
    let sets: &[&str] = &["ftl.mapping_unit=page", "ftl.buffer=48KiB"];
    let drive = with_copybacks(16_384, &[sets]);
    let stats = drive.stats();
    let [_, programs, _, copybacks] = totals(&drive);
    assert!(copybacks > 300 && copybacks.is_multiple_of(3) && programs.is_multiple_of(3));
    assert_eq!(stats.migration.by_count.iter().sum::<u64>(), copybacks);
    let (left_over, victims) = (stats.migration.left_over, stats.migration.victims_copied_back);
    assert!(left_over > 0 && left_over <= 2 * victims, "{left_over} of {victims} victims");
    assert_eq!(drive.die_busy_ns().ns(), busy_with_wordlines(&drive));
}

/// With two planes in a superblock, a copyback copies three pages of each. One sense covers both planes if their
/// pages are in the same row, so a copyback has three to six.
#[test]
fn a_copyback_of_a_superblock_fills_a_program_of_both_planes() {
    let drive = with_copybacks(16_384, &[SUPERBLOCKS, &["ftl.mapping_unit=page"]]);
    let [reads, programs, erases, copybacks] = totals(&drive);
    assert!(copybacks > 300 && copybacks.is_multiple_of(6));
    let busy = |senses: u64| {
        programs / 6 * (6 * PAGE + 900_000)
            + erases / 2 * 3_500_000
            + copybacks / 6 * (6 * 300 + senses * 50_000 + 900_000)
    };
    let reads = [reads / 2, reads].map(|senses| senses * 50_000 + reads * PAGE);
    let range = busy(3) + reads[0]..=busy(6) + reads[1];
    assert!(range.contains(&drive.die_busy_ns().ns()), "{range:?} {}", drive.die_busy_ns().ns());
}

/// A page is copied back as a whole: units that are not valid go along, unless too few are valid.
#[test]
fn dead_units_are_copied_back_with_the_others_and_counted() {
    let of = |valid_min: &str, op: &str| {
        let [valid_min, op] = [format!("migration.valid_min={valid_min}"), format!("drive.op={op}")];
        let drive =
            with_copybacks(4096, &[&[&valid_min, &op, "ftl.buffer=48KiB", "drive.pages_per_block=48"]]);
        let migration = drive.stats().migration.clone();
        let copied = 4 * migration.by_count.iter().sum::<u64>();
        (copied, migration.dead_units, migration.too_few_valid)
    };
    let (copied, dead, too_few) = of("0", "3");
    assert!(copied > 100 && too_few == 0 && dead > copied / 4, "{dead} of {copied}");
    let (copied, dead, too_few) = of("0.75", "1.2");
    assert!(too_few > 0 && dead > 0 && dead <= copied / 4, "{dead} of {copied}");
    let (copied, dead, too_few) = of("1", "0.5");
    assert!(copied > 1000 && too_few > 0 && dead == 0, "{dead} of {copied}");
}

/// The settings of [`ONE_SHOT`] with two channels of one die each, whose blocks form superblocks.
const DRIVE: &[&str] = &["drive.channels=2", "ftl.superblock=drive", "timing.multi_plane=true"];

/// In a superblock of two dies a copyback fills the program of a die with three pages of this die.
#[test]
fn a_copyback_of_a_superblock_of_the_drive_stays_on_its_die() {
    let drive = with_copybacks(16_384, &[DRIVE, &["ftl.mapping_unit=page"]]);
    let stats = drive.stats();
    let [_, programs, _, copybacks] = totals(&drive);
    assert!(copybacks > 300 && copybacks.is_multiple_of(3) && programs.is_multiple_of(3));
    let (left_over, victims) = (stats.migration.left_over, stats.migration.victims_copied_back);
    assert!(left_over > 0 && left_over <= 2 * 2 * victims, "{left_over} of {victims} victims");
    assert_eq!(drive.die_busy_ns().ns(), busy_with_wordlines(&drive));
}

/// A program writes the wordline of a die: 48 KiB. The next program is on the other die.
#[test]
fn the_programs_of_a_superblock_of_the_drive_alternate_between_the_dies() {
    let mut drive = Drive::new(&spec(TINY, &[ONE_SHOT, DRIVE].concat()));
    let geometry = drive.geometry();
    assert_eq!((geometry.lanes, geometry.superblocks, geometry.units_per_superblock), (1, 16, 2 * 12 * 4));
    assert_eq!(drive.array().shapes().first().units_per_program, 12);
    // Two programs, on two dies with a channel each.
    assert_eq!(one(&mut drive, Op::Write, 0, 96 << 10), 3 * PAGE + 900_000);
    assert_eq!(flash(&drive, FlashOp::Program, Cause::Host), 6);
    assert_eq!(one(&mut drive, Op::Read, 0, 96 << 10), 3 * (50_000 + PAGE) + 15_000);
    // The last page of the first program and the first one of the second.
    assert_eq!(one(&mut drive, Op::Read, 32 << 10, 32 << 10), 50_000 + PAGE + 15_000);
    // Three programs: two on the first die, one on the second.
    assert_eq!(one(&mut drive, Op::Write, 0, 144 << 10), 2 * (3 * PAGE + 900_000));
    assert_eq!(one(&mut drive, Op::Write, 0, 4096), 3 * PAGE + 900_000);
    assert_eq!(drive.stats().units.padding, 11);
    // The programs fill a superblock. With 25 units overwritten and 11 of padding it has 60 valid units.
    assert_eq!(one(&mut drive, Op::Write, 192 << 10, 96 << 10), 3 * PAGE + 900_000);
    let superblock = &drive.array().superblocks[0];
    assert_eq!(
        (superblock.state, superblock.programmed, superblock.valid),
        (SuperblockState::Full, 96, 36 + 24)
    );
    drive.audit().unwrap();
}

/// Two dies on one channel: the transfers follow one another, the programs overlap.
#[test]
fn the_dies_of_a_superblock_share_the_channel() {
    let sets = [ONE_SHOT, DRIVE, &["drive.channels=1", "drive.chips_per_channel=2"]].concat();
    let mut drive = Drive::new(&spec(TINY, &sets));
    assert_eq!(one(&mut drive, Op::Write, 0, 96 << 10), 6 * PAGE + 900_000);
}

/// In page order a chunk is a row of both planes of a die: 32 KiB.
#[test]
fn the_rows_of_a_superblock_of_the_drive_alternate_between_the_dies_in_page_order() {
    let sets = [ONE_SHOT, DRIVE, &["drive.planes_per_die=2", "drive.program_order=page"]].concat();
    let mut drive = Drive::new(&spec(TINY, &sets));
    assert_eq!(one(&mut drive, Op::Write, 0, 64 << 10), 2 * PAGE + 900_000);
    assert_eq!(one(&mut drive, Op::Read, 0, 64 << 10), 50_000 + 2 * PAGE + 15_000);
    assert_eq!(one(&mut drive, Op::Write, 64 << 10, 96 << 10), 2 * (2 * PAGE + 900_000));
    assert_eq!(flash(&drive, FlashOp::Program, Cause::Host), 10);
    // Rows 0 and 1 of the first die, at the same time row 0 of the second.
    assert_eq!(one(&mut drive, Op::Read, 0, 96 << 10), 2 * (50_000 + 2 * PAGE) + 15_000);
}

/// A read delays the program of the first die, so the later program of the superblock, on the second die, ends first.
#[test]
fn the_programs_of_a_superblock_end_out_of_order() {
    let mut drive = Drive::with_probe(&spec(TINY, &[ONE_SHOT, DRIVE].concat()), Oracle::default());
    one(&mut drive, Op::Write, 0, 96 << 10);
    let start = drive.now();
    let read = request(&drive, Op::Read, 0, 16 << 10);
    drive.submit(&read).unwrap();
    let write = request(&drive, Op::Write, 96 << 10, 96 << 10);
    drive.submit(&write).unwrap();
    let programmed = |drive: &Drive<Oracle>| {
        let is_programmed = |unit: u32| drive.array().is_programmed(SuperblockId(0), unit);
        (drive.array().superblocks[0].programmed, [24, 35, 36, 47].map(is_programmed))
    };
    let second = 3 * PAGE + 900_000;
    drive.advance(start + ns(second));
    assert_eq!(programmed(&drive), (36, [false, false, true, true]));
    // The first die has begun with the read, which takes 50 us and the transfer of a page.
    drive.advance(start + ns(50_000 + PAGE + second - 1));
    assert_eq!(programmed(&drive), (36, [false, false, true, true]));
    drive.advance(start + ns(50_000 + PAGE + second));
    assert_eq!(programmed(&drive), (48, [true; 4]));
    drive.audit().unwrap();
    read_everything(&mut drive);
}

/// Every superblock is erased by one operation on each die. Each counts as an erase of the two blocks of its planes. The
/// dies do the same work.
#[test]
fn a_superblock_of_the_drive_is_erased_as_one() {
    for order in ["page", "one-shot"] {
        let order = format!("drive.program_order={order}");
        let sets = [ONE_SHOT, DRIVE, &["drive.planes_per_die=2", "drive.op=1.5", &order]].concat();
        let mut drive = overwritten(16_384, &sets, "superblocks");
        let erases = drive.stats().flash_total(FlashOp::Erase);
        let cycles: u32 = drive.array().superblocks.iter().map(|superblock| superblock.pe_cycles).sum();
        assert!(cycles > 100);
        assert_eq!(erases, 4 * u64::from(cycles));
        let [first, second] = [0, 1].map(|die| drive.device().die_busy_ns(DieId(die), drive.now()).seconds());
        assert!((first / second - 1.0).abs() < 0.02, "the dies are busy for {first} s and {second} s");
        read_everything(&mut drive);
    }
}

/// The erases of a superblock take one tBERS, because the dies erase at the same time. Every superblock that the host
/// overwrites as a whole is dead, and erased without a copy.
#[test]
fn the_dies_of_a_superblock_erase_at_the_same_time() {
    let sets = [ONE_SHOT, DRIVE, &["gc.idle_after=100ms"]].concat();
    let mut drive = Drive::new(&spec(TINY, &sets));
    let superblock = 96 * 4096;
    one(&mut drive, Op::Write, 0, superblock);
    let start = drive.now();
    // The last program replaces the last valid units of the first superblock.
    assert_eq!(one(&mut drive, Op::Write, 0, superblock), 4 * (3 * PAGE + 900_000));
    let erases = |drive: &Drive| drive.stats().flash_total(FlashOp::Erase);
    let end = 4 * (3 * PAGE + 900_000) + 3_500_000;
    drive.advance(start + ns(end - 1));
    assert_eq!((erases(&drive), drive.array().superblocks[0].pe_cycles), (0, 0));
    drive.advance(start + ns(end));
    assert_eq!((erases(&drive), drive.array().superblocks[0].pe_cycles), (2, 1));
    drive.audit().unwrap();
}

/// With superblocks of the drive the dies follow from the stripe, whatever `ftl.allocation` is.
#[test]
fn allocation_has_no_effect_on_superblocks_of_the_drive() {
    let run = |allocation: &str| {
        let allocation = format!("ftl.allocation={allocation}");
        let sets = [ONE_SHOT, DRIVE, &["drive.op=1.5", &allocation]].concat();
        let mut drive = Drive::with_probe(&spec(TINY, &sets), Oracle::default());
        assert!(!drive.ftl().has_garbage(LaneId(0)), "no superblock is full yet");
        let pages = drive.geometry().logical_bytes() / 16_384;
        let mut stream = Stream::new(1, "allocation");
        for _ in 0..10 * pages {
            submit_with_few(&mut drive, Op::Write, stream.below(pages) * 16_384, 16_384);
        }
        settle(&mut drive);
        assert!(drive.stats().gc.victims > 50);
        (
            drive.now(),
            drive.stats().flash,
            drive.array().superblocks.iter().map(|b| b.pe_cycles).collect::<Vec<_>>(),
        )
    };
    let [first, others @ ..] = ["CWDP", "PDWC", "dynamic"].map(run);
    assert!(others.iter().all(|other| *other == first));
}

#[test]
fn the_largest_preset_has_superblocks_of_half_a_million_units() {
    let text =
        "[drive]\npreset = \"modern-tlc-1t\"\nprogram_order = \"one-shot\"\n[ftl]\nmapping_unit = \"4KiB\"\n";
    let spec = spec(text, &["ftl.superblock=drive"]);
    let geometry = spec.geometry();
    let shapes = spec.shapes(&geometry);
    assert_eq!((geometry.lanes, geometry.superblocks), (1, 512));
    let shape = shapes.first();
    assert_eq!((shape.units, shape.units_per_program, shape.rows), (16 * 4 * 2112 * 4, 3 * 4 * 4, 2112));
}

/// Superblocks of 8 * 132 * 64 = 67,584 units: 16 bits do not count them, in the drive and in a snapshot of it.
#[test]
fn a_superblock_may_have_more_units_than_16_bits_count() {
    let sets = [
        ONE_SHOT,
        DRIVE,
        &[
            "drive.page_size=32KiB",
            "ftl.mapping_unit=512B",
            "drive.planes_per_die=2",
            "drive.dies_per_chip=2",
            "drive.pages_per_block=132",
            "drive.op=1.5",
        ],
    ]
    .concat();
    let mut drive = Drive::new(&spec(TINY, &sets));
    let geometry = drive.geometry();
    assert_eq!((geometry.lanes, geometry.units_per_superblock), (1, 67_584));
    let logical = geometry.logical_units;
    let mut stream = Stream::new(1, "large superblocks");
    let mut programs = 0;
    for lpn in (0..logical).chain((0..2 * logical).map(|_| stream.below(logical.into()) as u32)) {
        programs += drive.write_now(Lpn(lpn));
    }
    let waf = programs as f64 / (3.0 * f64::from(logical));
    assert!(waf > 1.02 && waf < 2.0, "{waf}");
    let superblocks = |drive: &Drive| {
        let state = |superblock: &Superblock| {
            (superblock.state, superblock.programmed, superblock.valid, superblock.pe_cycles)
        };
        drive.array().superblocks.iter().map(state).collect::<Vec<_>>()
    };
    assert!(
        superblocks(&drive)
            .iter()
            .any(|&(state, programmed, ..)| { state == SuperblockState::Full && programmed == 67_584 })
    );
    drive.audit().unwrap();
    let mut saved = Vec::new();
    drive.save(&mut saved).unwrap();
    let mut loaded = Drive::new(&spec(TINY, &sets));
    loaded.load(&saved[..]).unwrap();
    assert_eq!(superblocks(&loaded), superblocks(&drive));
}
