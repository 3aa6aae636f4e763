//! Power loss with mapping units below the page, by hand: torn pages, the LSB page of a wordline, the
//! write buffer, and the duration of recovery.

use crate::common::{SECOND, TINY, at, one, read_everything, request, rest, spec};
use nandlab::base::geometry::{LaneId, Lpn, UnitId};
use nandlab::base::lost::Promise;
use nandlab::drive::{Drive, IDLE_LIMIT};
use nandlab::ftl::StreamId;
use nandlab::host::{Op, Oracle};
use nandlab::power_loss::PowerLoss;
use nandlab::sched::{Cause, FlashOp};

/// A page of 16 KiB, a unit of 4 KiB.
const UNITS: &[&str] = &["drive.page_size=16KiB", "ftl.mapping_unit=4KiB"];
/// Transfer of a page at 2.5 ns per byte, and its program, in nanoseconds.
const PAGE: u64 = 40_960;
const PROGRAM: u64 = 900_000;

fn drive(sets: &[&str]) -> Drive<Oracle> {
    Drive::with_probe(&spec(TINY, &[UNITS, sets].concat()), Oracle::default())
}

/// Writes `units` units from LPN `lpn` on, and waits for the end.
fn write(drive: &mut Drive<Oracle>, lpn: u64, units: u64) {
    one(drive, Op::Write, lpn * 4096, units * 4096);
}

/// Submits a write of `units` units from LPN `lpn` on.
fn begin_write(drive: &mut Drive<Oracle>, lpn: u64, units: u64) {
    let write = request(drive, Op::Write, lpn * 4096, units * 4096);
    drive.submit(&write).unwrap();
}

/// Power fails `ns` nanoseconds from now and returns.
fn cut_after(drive: &mut Drive<Oracle>, ns: u64) -> PowerLoss {
    drive.advance(at(drive.now().ns() + ns));
    let loss = drive.cut_power().clone();
    drive.completions();
    drive.audit().unwrap();
    loss
}

fn places(drive: &Drive<Oracle>, lpns: impl IntoIterator<Item = u32>) -> Vec<Option<UnitId>> {
    lpns.into_iter().map(|lpn| drive.ftl().map.get(Lpn(lpn))).collect()
}

/// The unit at which the open superblock of lane 0 continues; after recovery the superblock is GC's.
fn continues_at(drive: &Drive<Oracle>) -> Option<UnitId> {
    drive.ftl().next_unit(LaneId(0), StreamId::GC)
}

/// Two units and two units of padding are being programmed to the second page of a block.
#[test]
fn a_torn_page_loses_its_units_and_recovery_finds_the_older_units() {
    for cell in ["drive.cell=slc", "timing.program={ lsb = '900us', msb = '900us' }"] {
        let mut drive = drive(&[cell]);
        write(&mut drive, 0, 4);
        let older = places(&drive, 0..4);
        let first = older[0].unwrap();
        assert_eq!(older, [0, 1, 2, 3].map(|unit| Some(UnitId(first.0 + unit))));
        begin_write(&mut drive, 1, 2);
        // The transfer has ended and the program has not.
        let loss = cut_after(&mut drive, PAGE + PROGRAM - 1);
        assert_eq!((loss.torn_programs, loss.aborted_requests), (1, 1));
        let torn = (0..12).filter(|unit| drive.array().is_torn(UnitId(first.0 + unit)));
        let is_slc = cell == "drive.cell=slc";
        // On MLC the torn page is the MSB page of the wordline whose LSB page has the older units.
        let destroyed: Vec<(Lpn, u64)> = (0..4).map(|lpn| (Lpn(lpn), 1 + u64::from(lpn))).collect();
        if is_slc {
            assert_eq!(torn.collect::<Vec<_>>(), [4, 5, 6, 7]);
            assert!(!loss.has_lost());
            assert_eq!(places(&drive, 0..4), older);
        } else {
            assert_eq!(torn.collect::<Vec<_>>(), [0, 1, 2, 3, 4, 5, 6, 7]);
            assert_eq!((loss.lost_from_flash(), loss.lost_from_ram()), (destroyed, vec![]));
            assert_eq!(places(&drive, 0..4), [None; 4]);
        }
        assert_eq!(continues_at(&drive), Some(UnitId(first.0 + 8)));
        write(&mut drive, 2, 1);
        read_everything(&mut drive);
    }
}

/// A write in its transfer has programmed nothing: its page is still erased, and the stream begins there.
#[test]
fn a_page_in_its_transfer_is_not_torn() {
    let mut drive = drive(&[]);
    write(&mut drive, 0, 3);
    let first = places(&drive, [0])[0].unwrap();
    begin_write(&mut drive, 0, 1);
    let loss = cut_after(&mut drive, PAGE - 1);
    assert_eq!((loss.torn_programs, loss.has_lost()), (0, false));
    assert_eq!(places(&drive, [0]), [Some(first)]);
    assert_eq!(continues_at(&drive), Some(UnitId(first.0 + 4)));
    write(&mut drive, 1, 1);
    // The padding of both programs is still counted.
    assert_eq!(drive.stats().units.padding, 1 + 3 + 3);
    read_everything(&mut drive);
}

/// The LSB page of the torn wordline has the second version of LPNs 0 and 1, and LPN 2, which is nowhere else. The
/// first version of LPNs 0 and 1 is in another wordline.
#[test]
fn units_of_a_destroyed_lsb_page_are_found_in_older_units() {
    let mut drive = drive(&[]);
    write(&mut drive, 0, 2);
    write(&mut drive, 16, 1);
    let older = places(&drive, [0, 1, 16]);
    write(&mut drive, 0, 3);
    begin_write(&mut drive, 17, 1);
    let loss = cut_after(&mut drive, PAGE + PROGRAM / 2);
    assert_eq!(loss.torn_programs, 1);
    // Sequence numbers 1 and 2, 3, then 4 to 6 of the LSB page.
    assert_eq!(loss.lost_from_flash(), [(Lpn(0), 4), (Lpn(1), 5), (Lpn(2), 6)]);
    assert_eq!(places(&drive, [0, 1, 16, 2, 17]), [&older[..], &[None; 2]].concat());
    read_everything(&mut drive);
}

/// Four units of plane 0 and one of plane 1 are in the buffer; the four are in a program, and one more waits for room.
#[test]
fn the_write_buffer_loses_what_no_flush_has_programmed() {
    let sets = &["drive.cell=slc", "ftl.buffer=20KiB"];
    for flushed in [false, true] {
        let mut drive = drive(sets);
        for lpn in [0, 1, 2, 4] {
            assert_eq!(one(&mut drive, Op::Write, lpn * 4096, 4096), 0);
        }
        if flushed {
            one(&mut drive, Op::Flush, 0, 0);
            for lpn in [1, 2, 3, 0] {
                assert_eq!(one(&mut drive, Op::Write, lpn * 4096, 4096), 0);
            }
        } else {
            assert_eq!(one(&mut drive, Op::Write, 3 * 4096, 4096), 0);
        }
        // With the fourth unit the program of the page begins. After a flush one more unit fits.
        if flushed {
            assert_eq!(one(&mut drive, Op::Write, 8 * 4096, 4096), 0);
        }
        begin_write(&mut drive, 1, 1);
        let loss = cut_after(&mut drive, PAGE + PROGRAM / 2);
        assert_eq!((loss.torn_programs, loss.aborted_requests), (1, 1));
        // Sequence numbers in the order of the writes. The last write of LPN 1 was not acknowledged.
        let lost: &[(u32, u64)] = if flushed {
            &[(0, 8), (1, 5), (2, 6), (3, 7), (8, 9)]
        } else {
            &[(0, 1), (1, 2), (2, 3), (3, 5), (4, 4)]
        };
        let lost: Vec<(Lpn, u64)> = lost.iter().map(|&(lpn, sequence)| (Lpn(lpn), sequence)).collect();
        assert_eq!(loss.lost_from_ram(), lost);
        assert_eq!(loss.lost_by(Promise::Acknowledged), lost);
        assert_eq!((loss.dirty_pages, loss.unflushed_pages), (5, 5));
        let found = places(&drive, [0, 1, 2, 4, 3, 8]).iter().map(Option::is_some).collect::<Vec<_>>();
        assert_eq!(found, [flushed, flushed, flushed, flushed, false, false]);
        // The buffer is empty again.
        for lpn in 0..3 {
            assert_eq!(one(&mut drive, Op::Write, lpn * 4096, 4096), 0);
        }
        read_everything(&mut drive);
    }
}

/// A FUA write takes the units of its plane that gather along to flash; a unit of another plane is lost.
#[test]
fn a_fua_write_survives_beside_the_write_buffer() {
    let mut drive = drive(&["drive.cell=slc", "ftl.buffer=64KiB"]);
    for lpn in [0, 4, 1] {
        assert_eq!(one(&mut drive, Op::Write, lpn * 4096, 4096), 0);
    }
    let fua = request(&drive, Op::Write, 2 * 4096, 4096).with_fua(true);
    drive.submit(&fua).unwrap();
    let loss = cut_after(&mut drive, PAGE + PROGRAM);
    assert_eq!((loss.torn_programs, loss.aborted_requests, loss.lost_from_ram()), (0, 0, vec![(Lpn(4), 2)]));
    let found = places(&drive, [0, 1, 2, 4]).iter().map(Option::is_some).collect::<Vec<_>>();
    assert_eq!(found, [true, true, true, false]);
    read_everything(&mut drive);
}

/// A TRIM of a unit in the buffer is newer than the unit, which is therefore not lost.
#[test]
fn a_deallocated_unit_of_the_buffer_is_not_lost() {
    let mut drive = drive(&["drive.cell=slc", "ftl.buffer=64KiB"]);
    one(&mut drive, Op::Write, 0, 4096);
    one(&mut drive, Op::Trim, 0, 4096);
    one(&mut drive, Op::Write, 4096, 4096);
    let loss = cut_after(&mut drive, 1);
    assert_eq!(loss.lost_from_ram(), [(Lpn(1), 3)]);
    assert_eq!(places(&drive, [0, 1]), [None, None]);
    read_everything(&mut drive);
}

/// A flush makes the newer data of a unit that was replaced in the buffer durable; without a flush the newer write is
/// lost, as one unit.
#[test]
fn a_replaced_unit_of_the_buffer_is_flushed_or_lost_as_one() {
    for flushed in [false, true] {
        let mut drive = drive(&["drive.cell=slc", "ftl.buffer=64KiB"]);
        for lpn in [0, 4, 0, 0] {
            assert_eq!(one(&mut drive, Op::Write, lpn * 4096, 4096), 0);
        }
        assert_eq!(drive.stats().buffer.replaced, 2);
        if flushed {
            assert_eq!(one(&mut drive, Op::Flush, 0, 0), PAGE + PROGRAM);
        }
        let loss = cut_after(&mut drive, 1);
        assert_eq!(loss.dirty_pages, if flushed { 0 } else { 2 });
        assert_eq!(loss.lost_from_ram(), if flushed { vec![] } else { vec![(Lpn(0), 4), (Lpn(4), 2)] });
        let [place, _] = places(&drive, [0, 4])[..] else { unreachable!("two LPNs have two places") };
        assert_eq!(place.map(|unit| drive.array().stamp(unit).sequence), flushed.then_some(4));
        read_everything(&mut drive);
    }
}

/// Recovery senses each programmed page once, and transfers 16 bytes of OOB for each of its four units.
#[test]
fn recovery_scans_pages() {
    let mut drive = drive(&[]);
    // The pages go to the two dies in turn: three to the first die, two to the second.
    for lpn in [0, 4, 8, 12, 16] {
        write(&mut drive, lpn, 1);
    }
    let loss = cut_after(&mut drive, 0);
    let recovery = loss.recovery.unwrap();
    assert_eq!(recovery.scanned_pages, 5);
    assert_eq!(recovery.ns.ns(), 3 * (50_000 + 4 * 16 * 5 / 2));
}

/// A cache of 16 units, or a buffer, and a capacitor that covers them. The controller takes 1 W, a program 100 mW.
const CAPACITOR: &[&str] = &[
    "drive.cell=slc",
    "drive.blocks_per_plane=32",
    "gc.idle_after=1s",
    "capacitor.capacitance=1mF",
    "capacitor.efficiency=1.0",
    "capacitor.controller_power=1W",
    "capacitor.program_power=100mW",
    "capacitor.temperature=-40",
];
const CACHE: &[&str] = &["cache.size=64KiB", "cache.access=0us", "cache.flush_to=flash"];

/// Ten dirty units of ten pages take three programs, on two dies: two programs one after the other on the first.
#[test]
fn the_emergency_flush_packs_units_into_pages() {
    let mut drive = drive(&[CAPACITOR, CACHE].concat());
    for page in 0..10 {
        assert_eq!(one(&mut drive, Op::Write, page * 16_384, 4096), 0);
    }
    let loss = cut_after(&mut drive, 0);
    assert_eq!((loss.dirty_pages, loss.flushed_pages, loss.fast_pages), (10, 10, 10));
    let flash = drive.stats().flash[FlashOp::Program as usize][Cause::Flush as usize];
    assert_eq!((flash, drive.stats().units.padding), (3, 2));
    assert_eq!((loss.program_ns.ns(), loss.flush_ns.ns()), (3 * PROGRAM, 2 * (PAGE + PROGRAM)));
    // 1 W over the flush and 100 mW over the programs.
    let joules = (2 * (PAGE + PROGRAM)) as f64 * 1e-9 + 0.1 * (3 * PROGRAM) as f64 * 1e-9;
    assert!((loss.spent_j - joules).abs() < 1e-12, "{} J, not {joules} J", loss.spent_j);
    assert!(!loss.has_lost());
    read_everything(&mut drive);
}

/// The flush writes whole pages, so its capability is four times the whole pages of a drive without units.
#[test]
fn the_capability_counts_the_units_of_whole_pages() {
    for flush in ["plain", "csw"] {
        for cell in ["slc", "mlc"] {
            for efficiency in [0.02, 0.1, 0.5] {
                let sets = [format!("drive.cell={cell}"), format!("capacitor.efficiency={efficiency}")];
                let flush = format!("capacitor.flush={flush}");
                let sets = [CAPACITOR, CACHE, &[&sets[0], &sets[1], &flush]].concat();
                let units = drive(&sets).capability_units();
                let pages = drive(&[&sets[..], &["ftl.mapping_unit=page"]].concat()).capability_units();
                assert_eq!(units, 4.0 * pages.floor(), "{sets:?}");
            }
        }
    }
}

/// CSW uses LSB pages: the units of two pages are in the first and the third page of a block.
#[test]
fn csw_writes_the_units_of_lsb_pages() {
    let one_plane = ["drive.channels=1", "drive.planes_per_die=1", "drive.cell=mlc"];
    let sets = [CAPACITOR, CACHE, &one_plane, &["capacitor.flush=csw"]].concat();
    let mut drive = drive(&sets);
    for page in 0..8 {
        assert_eq!(one(&mut drive, Op::Write, page * 16_384, 4096), 0);
    }
    let loss = cut_after(&mut drive, 0);
    assert_eq!((loss.flushed_pages, loss.fast_pages, loss.program_ns.ns()), (8, 8, 2 * PROGRAM));
    let lpns = (0..8).map(|page| 4 * page);
    let units: Vec<u32> =
        places(&drive, lpns).into_iter().map(|unit| drive.geometry().split(unit.unwrap()).1).collect();
    assert_eq!(units, [0, 1, 2, 3, 8, 9, 10, 11]);
    read_everything(&mut drive);
}

/// A partial unit in the cache is written with a mark; recovery completes the units, and packs them.
#[test]
fn recovery_completes_partial_units_in_one_page() {
    let mut drive = drive(&[CAPACITOR, CACHE].concat());
    for page in 0..3 {
        let whole = request(&drive, Op::Write, page * 16_384, 16_384).with_fua(true);
        drive.submit(&whole).unwrap();
        drive.run_until_idle(IDLE_LIMIT).unwrap();
        drive.completions();
    }
    // Sixteen other units take all slots of the cache.
    let others = request(&drive, Op::Write, 4 * 16_384, 64 << 10).with_fua(true);
    drive.submit(&others).unwrap();
    drive.run_until_idle(IDLE_LIMIT).unwrap();
    drive.completions();
    for page in 0..3 {
        assert_eq!(one(&mut drive, Op::Write, page * 16_384, 512), 0);
    }
    let loss = cut_after(&mut drive, 0);
    assert_eq!((loss.dirty_pages, loss.flushed_pages, loss.has_lost()), (3, 3, false));
    assert_eq!(loss.recovery.unwrap().merged_pages, 3);
    // One program of the flush and one of the recovery, each with a unit of padding.
    let flash = drive.stats().flash[FlashOp::Program as usize][Cause::Flush as usize];
    assert_eq!((flash, drive.stats().units.padding), (2, 2));
    let first = places(&drive, [0])[0].unwrap();
    assert_eq!(places(&drive, [0, 4, 8]), [0, 1, 2].map(|unit| Some(UnitId(first.0 + unit))));
    read_everything(&mut drive);
}

/// With a capacitor the units of the write buffer survive. While it recharges, a write is acknowledged only when it is in
/// flash.
#[test]
fn a_capacitor_saves_the_write_buffer() {
    let mut drive = drive(&[CAPACITOR, &["ftl.buffer=64KiB"]].concat());
    // Four units of plane 0 are in a program when power fails; five units of other planes gather.
    for lpn in [4, 8, 0, 1, 2, 3, 5, 12, 8] {
        assert_eq!(one(&mut drive, Op::Write, lpn * 4096, 4096), 0);
    }
    let loss = cut_after(&mut drive, PAGE);
    assert_eq!((loss.dirty_pages, loss.flushed_pages, loss.torn_programs), (8, 4, 0));
    // The program under way ends on its die; the flush packs the four newest units of the rest, on the other die.
    assert_eq!((loss.finish_ns.ns(), loss.flush_ns.ns()), (PROGRAM, PAGE + PROGRAM));
    assert!(!loss.has_lost());
    assert!(places(&drive, [0, 1, 2, 3, 4, 5, 8, 12]).iter().all(Option::is_some));
    assert_eq!(drive.power_stage(), "recharging");
    assert_eq!(one(&mut drive, Op::Write, 0, 4096), PAGE + PROGRAM);
    drive.audit().unwrap();
    while drive.power_stage() != "charged" {
        assert!(drive.advance_by_event(at(600 * SECOND)));
    }
    assert_eq!(one(&mut drive, Op::Write, 0, 4096), 0);
    read_everything(&mut drive);
}

/// Submits a request of unit `lpn`; returns the time that it takes.
fn timed(drive: &mut Drive<Oracle>, op: Op, fua: bool, lpn: u64) -> u64 {
    let len = if op == Op::Flush { 0 } else { 4096 };
    let (offset, from) = (if len == 0 { 0 } else { lpn * 4096 }, drive.now().ns());
    let id = drive.submit(&request(drive, op, offset, len).with_fua(fua)).unwrap();
    loop {
        if let Some(done) = drive.completions().find(|done| done.id == id) {
            return done.completed.ns() - from;
        }
        assert!(drive.advance_by_event(at(from + SECOND)), "the request does not end");
    }
}

/// With a charged capacitor the write buffer acknowledges flushes and FUA writes at once, and power loss loses nothing of
/// them. Without that flash does: a flush programs the units that gather.
#[test]
fn a_protected_write_buffer_acknowledges_flushes_and_fua_writes() {
    for (flush_to, [flush, fua]) in [("cache", [0, 0]), ("flash", [PAGE + PROGRAM; 2])] {
        let flush_to = format!("cache.flush_to={flush_to}");
        let mut drive = drive(&[CAPACITOR, &["ftl.buffer=64KiB", &flush_to]].concat());
        for lpn in [0, 1, 2] {
            assert_eq!(timed(&mut drive, Op::Write, false, lpn), 0);
        }
        assert_eq!(timed(&mut drive, Op::Flush, false, 0), flush);
        assert_eq!(timed(&mut drive, Op::Write, true, 4), fua);
        // LPN 1 is replaced in a buffer that the flush has not emptied, and LPN 0 is deallocated.
        assert_eq!(timed(&mut drive, Op::Write, false, 1), 0);
        assert_eq!(timed(&mut drive, Op::Trim, false, 0), 0);
        assert_eq!(timed(&mut drive, Op::Flush, false, 0), flush);
        let is_protected = flush == 0;
        assert_eq!(drive.stats().buffer.replaced, u64::from(is_protected));
        let loss = cut_after(&mut drive, 0);
        let expected = if is_protected { (3, 1, 1) } else { (0, 0, 0) };
        assert_eq!((loss.dirty_pages, loss.trim_pages, loss.trim_pages_saved), expected, "{flush_to}");
        assert!(!loss.has_lost());
        let mapped: Vec<bool> = places(&drive, [0, 1, 2, 4]).iter().map(Option::is_some).collect();
        assert_eq!(mapped, [false, true, true, true]);
        read_everything(&mut drive);
    }
}

/// The buffer has room for 16 units. It acknowledges as many as the capacitor can save in whole pages, less the unit of a
/// record of deallocations.
#[test]
fn a_write_buffer_admits_no_more_than_the_capacitor_can_save() {
    for trims in [false, true] {
        let small = ["ftl.buffer=64KiB", "capacitor.efficiency=0.48"];
        let mut drive = drive(&[CAPACITOR, &small].concat());
        let saved = drive.capability_units();
        assert_eq!(saved, 8.0, "of three pages the capacitor saves two");
        if trims {
            assert_eq!(timed(&mut drive, Op::Write, false, 20), 0);
            assert_eq!(timed(&mut drive, Op::Trim, false, 20), 0);
            rest(&mut drive);
        }
        // Units of different pages, so that all of them gather.
        let ids: Vec<u64> = (0..12)
            .map(|lpn| {
                let write = request(&drive, Op::Write, lpn % 4 * 16_384 + lpn / 4 * 4096, 4096);
                drive.submit(&write).unwrap()
            })
            .collect();
        let now = drive.now();
        let at_once = drive.completions().filter(|done| done.completed == now).count();
        assert_eq!(at_once, if trims { 7 } else { 8 });
        let loss = cut_after(&mut drive, 1);
        assert!(!loss.has_lost(), "{loss:?}");
        assert_eq!(loss.aborted_requests as usize, ids.len() - at_once);
        read_everything(&mut drive);
    }
}

/// A detection first brings the acknowledged units into flash, and programs units without data. Until the capacitor is
/// charged again, flash acknowledges.
#[test]
fn a_detection_empties_the_write_buffer() {
    let measured = ["ftl.buffer=64KiB", "cache.dirty_budget=measured", "capacitor.steps=continuous"];
    let mut drive = drive(&[CAPACITOR, &measured].concat());
    for lpn in [0, 4] {
        assert_eq!(timed(&mut drive, Op::Write, true, lpn), 0);
    }
    drive.detect_budget();
    assert_eq!(drive.power_stage(), "syncing");
    // LPN 8 is on the die of LPN 0, whose program comes first.
    assert_eq!(timed(&mut drive, Op::Write, true, 8), 2 * (PAGE + PROGRAM));
    while drive.power_stage() != "charged" {
        drive.audit().unwrap();
        assert!(drive.advance_by_event(at(600 * SECOND)));
    }
    let detection = drive.stats().power.detections[0];
    let share = detection.measured - 0.1;
    assert_eq!(drive.dirty_units(), [16, (16.0 * share.clamp(0.0, 1.0)) as u32, 0], "{detection:?}");
    assert_eq!(timed(&mut drive, Op::Write, true, 8), 0);
    assert!(!cut_after(&mut drive, 0).has_lost());
    read_everything(&mut drive);
}

/// A cache of four units and a buffer of eight. Units that leave the cache gather in the buffer: the writes that evict them
/// wait for nothing, and one program writes four of them. They are read from RAM, one that is used again stays, and all
/// count in the dirty units that the capacitor saves.
#[test]
fn units_leave_the_write_cache_through_the_write_buffer() {
    for buffer in ["0B", "32KiB"] {
        let has_buffer = buffer != "0B";
        let sets = ["cache.size=16KiB", "cache.access=0us", &format!("ftl.buffer={buffer}")];
        let mut drive = drive(&[CAPACITOR, &sets].concat());
        let mut waits = Vec::new();
        for lpn in 0..7 {
            waits.push(timed(&mut drive, Op::Write, false, lpn));
        }
        let alone = if has_buffer { 0 } else { PAGE + PROGRAM };
        assert_eq!(waits, [0, 0, 0, 0, alone, alone, alone]);
        let programs = |drive: &Drive<Oracle>| {
            let flash = drive.stats().flash[FlashOp::Program as usize];
            (flash.iter().sum::<u64>(), drive.stats().units.padding)
        };
        // Three units gather: nothing is programmed. Without a buffer each is in a page of its own.
        assert_eq!(programs(&drive), if has_buffer { (0, 0) } else { (3, 9) });
        assert_eq!(drive.cache_units(), if has_buffer { [4, 12, 7] } else { [4, 4, 4] });
        if !has_buffer {
            continue;
        }
        assert_eq!(timed(&mut drive, Op::Read, false, 1), 0);
        // The fourth fills a page.
        assert_eq!(timed(&mut drive, Op::Write, false, 7), 0);
        let loss = cut_after(&mut drive, PAGE + PROGRAM - 1);
        assert_eq!(programs(&drive), (2, 0));
        assert_eq!((loss.dirty_pages, loss.flushed_pages, loss.has_lost()), (8, 4, false));
        read_everything(&mut drive);
    }
}

/// Superblocks of two planes of a die, in page order. A row is a page of each plane.
const SUPERBLOCKS: &[&str] =
    &["ftl.superblock=die", "timing.multi_plane=true", "timing.program={ lsb = '900us', msb = '900us' }"];

/// The units of a superblock that are torn, from the superblock's first unit on.
fn torn(drive: &Drive<Oracle>, first: UnitId) -> Vec<u32> {
    let units = drive.geometry().units_per_superblock;
    (0..units).filter(|unit| drive.array().is_torn(UnitId(first.0 + unit))).collect()
}

/// The units of LPNs 0 to 15 go to consecutive pages: those of the two planes in row 0, and then in row 1. On MLC the
/// pages of row 1 are the MSB pages of the wordlines whose LSB pages are those of row 0.
#[test]
fn a_torn_page_of_a_superblock_destroys_the_wordline_in_its_own_plane() {
    for (written, torn_programs, units, lost) in [
        // Plane 0 alone is being programmed, and then both planes by one operation.
        (1, 1, [0..4, 8..12], 0..4),
        (5, 2, [0..8, 8..16], 0..8),
    ] {
        let mut drive = drive(&[SUPERBLOCKS, &["drive.channels=1"]].concat());
        write(&mut drive, 0, 8);
        let older = places(&drive, 0..8);
        let first = older[0].unwrap();
        assert_eq!(older, [0, 1, 2, 3, 4, 5, 6, 7].map(|unit| Some(UnitId(first.0 + unit))));
        begin_write(&mut drive, 8, written);
        let loss = cut_after(&mut drive, u64::from(torn_programs) * PAGE + PROGRAM - 1);
        assert_eq!((loss.torn_programs, loss.aborted_requests), (torn_programs, 1));
        assert_eq!(torn(&drive, first), units.into_iter().flatten().collect::<Vec<_>>());
        let found = places(&drive, 0..8);
        for (lpn, (found, older)) in (0..8).zip(found.into_iter().zip(older)) {
            assert_eq!(found, older.filter(|_| !lost.contains(&lpn)), "LPN {lpn}");
        }
        let lost: Vec<(Lpn, u64)> = lost.map(|lpn| (Lpn(lpn), u64::from(lpn) + 1)).collect();
        assert_eq!((loss.lost_from_flash(), loss.lost_from_ram()), (lost, vec![]));
        // The stream continues in the next page.
        assert_eq!(continues_at(&drive), Some(UnitId(first.0 + 8 + 4 * torn_programs)));
        write(&mut drive, 8, 1);
        read_everything(&mut drive);
    }
}

/// On TLC the third row of a superblock destroys both rows before it, in its own plane.
#[test]
fn a_torn_msb_page_of_tlc_destroys_two_pages_of_its_plane() {
    let mut drive = drive(&[SUPERBLOCKS, &["drive.cell=tlc", "drive.pages_per_block=9"]].concat());
    for lpn in [0, 8, 16, 24, 32] {
        write(&mut drive, lpn, 1);
    }
    let first = places(&drive, [0])[0].unwrap();
    begin_write(&mut drive, 40, 1);
    let loss = cut_after(&mut drive, PAGE + PROGRAM / 2);
    // Plane 1: LPN 8 in row 0, LPN 24 in row 1, LPN 40 in row 2.
    assert_eq!(torn(&drive, first), [4..8, 12..16, 20..24].into_iter().flatten().collect::<Vec<_>>());
    let lost = loss.lost_from_flash();
    assert_eq!((loss.torn_programs, lost), (1, vec![(Lpn(8), 2), (Lpn(24), 4)]));
    let units = [0, 8, 16].map(|unit| Some(UnitId(first.0 + unit)));
    assert_eq!(places(&drive, [0, 16, 32, 8, 24, 40]), [&units[..], &[None; 3]].concat());
    read_everything(&mut drive);
}

/// While the capacitor recharges, the rest of the wordlines of both planes stays erased, although plane 1 has no page of
/// them, and the host's stream uses the LSB rows of a superblock.
#[test]
fn a_recharging_drive_begins_new_wordlines_in_all_planes_of_a_superblock() {
    let mlc = ["drive.cell=mlc", "ftl.buffer=16KiB", "cache.flush_to=flash", "capacitor.recharge=5s"];
    let mut drive = drive(&[CAPACITOR, SUPERBLOCKS, &mlc].concat());
    let fua = request(&drive, Op::Write, 0, 16_384).with_fua(true);
    drive.submit(&fua).unwrap();
    let loss = cut_after(&mut drive, SECOND / 100);
    let first = places(&drive, [0])[0].unwrap();
    assert_eq!((loss.aborted_requests, drive.power_stage()), (0, "recharging"));
    // Row 0 has a page of plane 0. Its wordline has row 1, too.
    assert_eq!(continues_at(&drive), Some(UnitId(first.0 + 16)));
    for lpn in [8, 16, 24] {
        write(&mut drive, lpn, 1);
    }
    let found = places(&drive, [8, 16, 24]);
    let second = found[0].unwrap();
    assert_eq!(found, [0, 4, 16].map(|unit| Some(UnitId(second.0 + unit))));
    assert_eq!(drive.geometry().split(second).1, 0);
    begin_write(&mut drive, 32, 1);
    let loss = cut_after(&mut drive, PAGE + PROGRAM / 2);
    assert_eq!((loss.torn_programs, loss.has_lost()), (1, false));
    assert_eq!(torn(&drive, second), [20, 21, 22, 23]);
    read_everything(&mut drive);
}

/// CSW uses LSB rows: the units of four pages are in rows 0 and 2 of a superblock, two pages each.
#[test]
fn csw_writes_the_lsb_rows_of_a_superblock() {
    let one_die = ["drive.channels=1", "drive.cell=mlc", "capacitor.flush=csw"];
    let mut drive = drive(&[CAPACITOR, CACHE, SUPERBLOCKS, &one_die].concat());
    for page in 0..16 {
        assert_eq!(one(&mut drive, Op::Write, page * 16_384, 4096), 0);
    }
    let loss = cut_after(&mut drive, 0);
    assert_eq!((loss.flushed_pages, loss.fast_pages, loss.program_ns.ns()), (16, 16, 4 * PROGRAM));
    let units: Vec<u32> = places(&drive, (0..16).map(|page| 4 * page))
        .into_iter()
        .map(|unit| drive.geometry().split(unit.unwrap()).1)
        .collect();
    assert_eq!(units, [0..8, 16..24].into_iter().flatten().collect::<Vec<_>>());
    read_everything(&mut drive);
}

/// Superblocks of both dies, in page order: a stripe has a row of two pages of each die, 16 units.
const OF_DRIVE: &[&str] = &["ftl.superblock=drive", "timing.multi_plane=true"];

/// Die 1 has programmed a page of the second stripe, when the pages of die 0 before it are still in their
/// transfer. They remain erased.
#[test]
fn a_die_may_be_ahead_of_another_one_in_a_superblock_of_the_drive() {
    let mut drive = drive(&[OF_DRIVE, &["drive.cell=slc"]].concat());
    // Die 0 programs units 0 to 3, then 4 to 7, then 16 to 23 of both planes; die 1 units 8 to 15, then 24 to 27.
    for (first, units) in [(0, 4), (4, 12), (16, 12)] {
        begin_write(&mut drive, first, units);
    }
    let loss = cut_after(&mut drive, 3 * PAGE + 2 * PROGRAM);
    assert_eq!((loss.torn_programs, loss.aborted_requests, loss.has_lost()), (0, 1, false));
    let first = places(&drive, [0])[0].unwrap();
    let is_programmed = |lpn: u32| !(16..24).contains(&lpn);
    let expected: Vec<_> = (0..28).map(|lpn| is_programmed(lpn).then_some(UnitId(first.0 + lpn))).collect();
    assert_eq!(places(&drive, 0..28), expected);
    assert!((16..24).all(|unit| drive.array().lpn(UnitId(first.0 + unit)).0 == u32::MAX));
    assert_eq!(continues_at(&drive), Some(UnitId(first.0 + 28)));
    // Two pages of die 0 and three of die 1.
    let recovery = loss.recovery.unwrap();
    assert_eq!((recovery.scanned_pages, recovery.ns.ns()), (5, 3 * (50_000 + 4 * 16 * 5 / 2)));
    for lpn in [0, 16] {
        write(&mut drive, lpn, 16);
    }
    read_everything(&mut drive);
}

/// The torn MSB page of die 0 destroys its LSB page, a stripe before it, and leaves the pages of die 1 in between.
#[test]
fn a_torn_page_of_a_superblock_of_the_drive_destroys_the_wordline_on_its_die() {
    let mut drive = drive(&[OF_DRIVE, &["timing.program={ lsb = '900us', msb = '900us' }"]].concat());
    write(&mut drive, 0, 16);
    let older = places(&drive, 0..16);
    let first = older[0].unwrap();
    begin_write(&mut drive, 16, 1);
    let loss = cut_after(&mut drive, PAGE + PROGRAM / 2);
    assert_eq!(torn(&drive, first), [0, 1, 2, 3, 16, 17, 18, 19]);
    assert_eq!(places(&drive, 0..16), [&[None; 4], &older[4..]].concat());
    let lost: Vec<(Lpn, u64)> = (0..4).map(|lpn| (Lpn(lpn), 1 + u64::from(lpn))).collect();
    assert_eq!((loss.torn_programs, loss.lost_from_flash()), (1, lost));
    assert_eq!(continues_at(&drive), Some(UnitId(first.0 + 20)));
    read_everything(&mut drive);
}

/// Die 1 has erased its part of a dead superblock when power fails; that of die 0, which programs a page before, is torn.
/// Recovery erases the part of die 0 alone.
#[test]
fn recovery_ends_the_erase_of_a_superblock_of_the_drive() {
    const ERASE: u64 = 3_500_000;
    let mut drive = drive(&[OF_DRIVE, &["drive.cell=slc", "gc.idle_after=1s"]].concat());
    write(&mut drive, 0, 128);
    begin_write(&mut drive, 128, 4);
    let trim = request(&drive, Op::Trim, 0, 128 * 4096);
    drive.submit(&trim).unwrap();
    let loss = cut_after(&mut drive, ERASE + 1);
    assert_eq!((loss.torn_erases, loss.torn_programs, loss.aborted_requests), (1, 0, 0));
    let recovery = loss.recovery.unwrap();
    // One page is programmed.
    assert_eq!((recovery.erased_blocks, recovery.scanned_pages), (1, 1));
    assert_eq!(recovery.ns.ns(), ERASE + 50_000 + 4 * 16 * 5 / 2);
    let erases: u64 = drive.stats().flash[FlashOp::Erase as usize].iter().sum();
    assert_eq!((erases, drive.array().superblocks[0].pe_cycles), (4, 1));
    assert_eq!(places(&drive, [0, 127, 128]), [None, None, Some(UnitId(128))]);
    read_everything(&mut drive);
}

/// A plain flush gives a page to each idle die, in the order of that die: ten units take two programs on die 0 and
/// one on die 1.
#[test]
fn the_emergency_flush_continues_on_each_die_of_a_superblock_of_the_drive() {
    for flush in ["capacitor.flush=plain", "capacitor.flush=csw"] {
        let mut drive = drive(&[CAPACITOR, CACHE, OF_DRIVE, &[flush]].concat());
        for page in 0..10 {
            assert_eq!(one(&mut drive, Op::Write, page * 16_384, 4096), 0);
        }
        let loss = cut_after(&mut drive, 0);
        assert_eq!((loss.flushed_pages, loss.has_lost()), (10, false));
        assert_eq!((loss.program_ns.ns(), loss.flush_ns.ns()), (3 * PROGRAM, 2 * (PAGE + PROGRAM)));
        let places = places(&drive, (0..10).map(|page| 4 * page));
        let units: Vec<u32> = places.iter().map(|unit| drive.geometry().split(unit.unwrap()).1).collect();
        assert_eq!(units, [0..4, 8..12, 4..6].into_iter().flatten().collect::<Vec<_>>(), "{flush}");
        read_everything(&mut drive);
    }
}
