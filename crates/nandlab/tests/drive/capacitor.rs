//! Power loss, recovery and detection of the dirty budget on tiny drives, compared with calculations by hand.
//!
//! The transfer of a page of 4 KiB takes 10.24 us, the program of an LSB page 300 us and of an MSB page 600 us. The
//! controller draws 1 W, a program 100 mW. The capacitor of 1 mF, where a test sets no other, has 12 mJ between 5.5
//! and 2.5 V; tests set its energy by `efficiency`, which scales these 12 mJ.

use crate::common::{SECOND, at, ns, one, read_everything, request, settle, spec, with_oracle};
use nandlab::base::geometry::{DieId, LaneId, Lpn, SuperblockId};
use nandlab::base::lost::Promise;
use nandlab::base::units::Time;
use nandlab::drive::{Drive, FailReason};
use nandlab::flash::{AgeStamp, Stamp};
use nandlab::host::{Op, Oracle};
use nandlab::power_loss::PowerLoss;
use nandlab::power_loss::RecoveryCut;
use nandlab::sched::{Cause, FlashOp};

const PAGE: u64 = 4096;
const TRANSFER: u64 = 10_240;
const LSB: u64 = 300_000 + TRANSFER;
const MSB: u64 = 600_000 + TRANSFER;
const ERASE: u64 = 1_000_000;

/// One die with one plane of 24 blocks of 8 pages, and a write cache of 10 pages without access time. FUA writes and
/// flushes bring pages into flash.
const BASE: &str = r#"
[drive]
channels = 1
chips_per_channel = 1
dies_per_chip = 1
planes_per_die = 1
blocks_per_plane = 24
pages_per_block = 8
page_size = "4KiB"
cell = "mlc"
op = 1.0
endurance = 1000000
[timing]
read = "50us"
program = { lsb = "300us", msb = "600us" }
erase = "1ms"
channel_ns_per_byte = 2.5
command = "0us"
decode = "0us"
[ftl]
allocation = "dynamic"
[gc]
idle_after = "1s"
[cache]
size = "40KiB"
access = "0us"
flush_to = "flash"
[capacitor]
capacitance = "1mF"
efficiency = 1.0
controller_power = "1W"
program_power = "100mW"
temperature = -40
"#;

const NO_CACHE: &str = "cache.size=0B";
const NO_CAPACITOR: &str = "capacitor.capacitance=0F";
const SLC: [&str; 2] = ["drive.cell=slc", "timing.program='300us'"];

fn drive(sets: &[&str]) -> Drive<Oracle> {
    with_oracle(&spec(BASE, sets))
}

/// Returns the override that gives the capacitor an energy of `mj` millijoules.
fn energy(mj: f64) -> String {
    format!("capacitor.efficiency={}", mj / 12.0)
}

fn submit(drive: &mut Drive<Oracle>, op: Op, lpn: u64) {
    let request = request(drive, op, lpn * PAGE, if op == Op::Flush { 0 } else { PAGE });
    drive.submit(&request).unwrap();
}

fn write_through(drive: &mut Drive<Oracle>, lpn: u64) {
    drive.submit(&request(drive, Op::Write, lpn * PAGE, PAGE).with_fua(true)).unwrap();
    assert!(drive.advance_to_completion(Time::NEVER));
    drive.completions();
}

/// Writes LPNs 0 to `units` - 1, which all remain in the cache, and then cuts the power, without simulated time.
fn flush(drive: &mut Drive<Oracle>, units: u64) -> PowerLoss {
    for lpn in 0..units {
        assert_eq!(one(drive, Op::Write, lpn * PAGE, PAGE), 0);
    }
    let loss = drive.cut_power().clone();
    assert_eq!((u64::from(loss.dirty_pages), u64::from(loss.unflushed_pages)), (units, units));
    drive.completions();
    settle(drive);
    read_everything(drive);
    loss
}

#[track_caller]
fn is_near(found: f64, expected: f64) {
    assert!((found - expected).abs() < 1e-5 * expected.abs().max(1e-9), "expected {expected}, found {found}");
}

/// Returns the page numbers, within their blocks, of LPNs 0 to `lpns` - 1.
fn pages_in_block(drive: &Drive<Oracle>, lpns: u32) -> Vec<u32> {
    let page = |lpn| drive.geometry().split(drive.ftl().map.get(Lpn(lpn)).expect("the LPN is mapped")).1;
    (0..lpns).map(page).collect()
}

/// Simulates until the capacitor is in `stage`.
fn until(drive: &mut Drive<Oracle>, stage: &str) {
    while drive.power_stage() != stage {
        assert!(
            drive.advance_by_event(at(600 * SECOND)),
            "the capacitor is {}, not {stage}",
            drive.power_stage()
        );
    }
}

#[test]
fn a_plain_flush_takes_the_time_and_energy_of_equations_3_to_5() {
    let two_dies = ["drive.channels=2", "capacitor.flush_concurrency=1"];
    let loss = flush(&mut drive(&two_dies), 4);
    // One program at a time, on the two dies in turn: each die programs an LSB page and an MSB page.
    assert_eq!(
        (loss.flush_ns.ns(), loss.program_ns.ns(), loss.fast_pages),
        (2 * LSB + 2 * MSB, 1_800_000, 2)
    );
    is_near(loss.energy_j, 12e-3);
    is_near(loss.spent_j, 1.840_96e-3 + 0.18e-3);
    assert_eq!((loss.flushed_pages, loss.finish_ns.ns(), loss.lost.len()), (4, 0, 0));

    let loss = flush(&mut drive(&["drive.channels=2", "capacitor.flush_concurrency=2"]), 4);
    assert_eq!((loss.flush_ns.ns(), loss.program_ns.ns()), (LSB + MSB, 1_800_000));
    is_near(loss.spent_j, 0.920_48e-3 + 0.18e-3);

    // With both dies on one channel the second transfer waits for the first.
    let loss = flush(&mut drive(&["drive.chips_per_channel=2"]), 4);
    assert_eq!((loss.flush_ns.ns(), loss.program_ns.ns()), (LSB + MSB + TRANSFER, 1_800_000));
}

#[test]
fn csw_takes_lsb_pages_only_while_they_suffice() {
    let mut drive = drive(&["capacitor.flush=csw"]);
    let loss = flush(&mut drive, 8);
    assert_eq!((loss.flush_ns.ns(), loss.program_ns.ns(), loss.fast_pages), (8 * LSB, 2_400_000, 8));
    is_near(loss.spent_j, 2.481_92e-3 + 0.24e-3);
}

#[test]
fn csw_takes_the_dies_in_turn_channels_before_dies_before_chips() {
    let sets = ["drive.channels=2", "drive.chips_per_channel=2", "drive.dies_per_chip=2"];
    let mut drive = drive(&[&sets[..], &["capacitor.flush=csw"]].concat());
    (0..8).for_each(|lpn| assert_eq!(one(&mut drive, Op::Write, lpn * PAGE, PAGE), 0));
    let loss = drive.cut_power().clone();
    let geometry = drive.geometry();
    let die = |lpn| {
        let unit = drive.ftl().map.get(Lpn(lpn)).expect("the page is saved");
        geometry.die_of(geometry.lane_of(geometry.superblock_of(unit))).0
    };
    // The dies are numbered channel by channel, and within a channel chip by chip: channel 1 begins with die 4, the
    // second chip of channel 0 with die 2.
    assert_eq!([0, 1, 2, 3, 4, 5, 6, 7].map(die), [0, 4, 1, 5, 2, 6, 3, 7]);
    // Each channel transfers four pages one after the other.
    assert_eq!((loss.flush_ns.ns(), loss.fast_pages), (3 * TRANSFER + LSB, 8));
}

#[test]
fn csw_takes_msb_pages_by_equations_6_and_7() {
    let sets = ["capacitor.flush=csw", "cache.size=160KiB", "capacitor.capacitance=2mF", "drive.op=1.7"];
    let mut drive = drive(&sets);
    let units = drive.geometry().logical_units;
    for lpn in 0..3 * units {
        drive.write_now(Lpn(lpn % units));
    }
    // 40 pages go to 7 free blocks. So 6 of the 8 pages of a block are used: two of its four wordlines have only an LSB
    // page.
    assert_eq!(drive.ftl().flush_superblocks(LaneId(0)), 7);
    let loss = flush(&mut drive, 40);
    // Six blocks take 4 LSB and 2 MSB pages each, the seventh 3 LSB pages and 1 MSB page.
    assert_eq!((loss.flushed_pages, loss.fast_pages), (40, 6 * 4 + 3));
    assert_eq!(loss.program_ns.ns(), 27 * 300_000 + 13 * 600_000);
    assert_eq!(loss.flush_ns.ns(), 27 * LSB + 13 * MSB);
}

#[test]
fn csw_takes_the_first_page_of_every_free_block_of_stacked_cells_before_the_second() {
    let program = "timing.program={fastest='300us',slowest='600us'}";
    let csw = ["drive.cell=3d-mlc", "drive.layers=4", program, "capacitor.flush=csw"];
    for (free, pages, program_ns) in [
        (23, [0; 8], 8 * 300_000),
        // Layer 0 has pages 0 and 1, layer 1 pages 2 and 3, which take 400 us.
        (3, [0, 0, 0, 1, 1, 1, 2, 2], 6 * 300_000 + 2 * 400_000),
    ] {
        let mut drive = drive(&csw);
        let (array, ftl) = drive.parts_mut();
        while ftl.flush_superblocks(LaneId(0)) > free {
            ftl.take_flush_superblock(array, DieId(0), nandlab::ftl::StreamId::HOST)
                .expect("a block is free");
        }
        for lpn in 0..8 {
            one(&mut drive, Op::Write, lpn * PAGE, PAGE);
        }
        let loss = drive.cut_power().clone();
        assert_eq!(pages_in_block(&drive, 8), pages);
        assert_eq!((loss.flush_ns.ns(), loss.program_ns.ns()), (program_ns + 8 * TRANSFER, program_ns));
        assert_eq!(loss.fast_pages, 8);
        drive.completions();
        settle(&mut drive);
        read_everything(&mut drive);
    }
}

#[test]
fn the_energy_limits_the_units_flushed() {
    // Three pages (LSB, MSB, LSB) take 1.23072 ms in all, of which 1.2 ms are programs.
    let three_mj = 1.230_72 + 0.12;
    let lost = |mj: f64, sets: &[&str]| {
        let energy = energy(mj);
        let mut all = vec![energy.as_str()];
        all.extend(sets);
        let loss = flush(&mut drive(&all), 5);
        assert!(loss.spent_j <= loss.energy_j * (1.0 + 1e-12));
        assert_eq!(loss.flushed_pages as usize + loss.lost.len(), 5);
        assert_eq!(loss.lost.len(), loss.lost_by(Promise::Acknowledged).len());
        loss.lost.iter().map(|lost| (lost.lpn.0, lost.sequence)).collect::<Vec<_>>()
    };
    assert_eq!(lost(three_mj + 0.001, &[]), [(3, 4), (4, 5)]);
    assert_eq!(lost(three_mj - 0.001, &[]), [(2, 3), (3, 4), (4, 5)]);
    // One LSB page takes 0.31024 mJ of the controller and 0.03 mJ of the program.
    assert_eq!(lost(0.340_24 - 0.001, &[]), [(0, 1), (1, 2), (2, 3), (3, 4), (4, 5)]);
    assert_eq!(lost(three_mj + 0.001, &["capacitor.flush_order=newest"]), [(0, 1), (1, 2)]);
    // LPNs 0 and 1 are metadata and are flushed first. The other pages follow in the order of use.
    let metadata = ["capacitor.flush_order=metadata", "capacitor.metadata=8KiB"];
    assert_eq!(lost(three_mj + 0.001, &metadata), [(3, 4), (4, 5)]);
}

#[test]
fn metadata_is_flushed_before_units_used_earlier() {
    let energy = energy(1.352);
    let sets = [energy.as_str(), "capacitor.flush_order=metadata", "capacitor.metadata=8KiB"];
    let mut drive = drive(&sets);
    for lpn in [5, 6, 7, 1, 0] {
        one(&mut drive, Op::Write, lpn * PAGE, PAGE);
    }
    let lost: Vec<u32> = drive.cut_power().lost.iter().map(|lost| lost.lpn.0).collect();
    assert_eq!(lost, [6, 7]);
}

#[test]
fn with_a_capacitor_operations_under_way_end() {
    let mut drive = drive(&[NO_CACHE]);
    submit(&mut drive, Op::Write, 0);
    drive.advance(at(100_000));
    let loss = drive.cut_power().clone();
    assert_eq!((loss.torn_programs, loss.finish_ns.ns()), (0, LSB - 100_000));
    // Reserved energy pays for the end of the program; the flush had no page to write.
    assert_eq!((loss.spent_j, loss.flush_ns.ns(), loss.aborted_requests), (0.0, 0, 1));
    assert!(drive.ftl().map.get(Lpn(0)).is_some());
    assert!(drive.completions().all(|done| done.failed == Some(FailReason::PowerLost)));
    settle(&mut drive);
    read_everything(&mut drive);
}

#[test]
fn without_a_capacitor_a_program_under_way_tears() {
    for (sets, with_wordline) in [(&[][..], true), (&SLC[..], false)] {
        let mut all = vec![NO_CACHE, NO_CAPACITOR];
        all.extend(sets);
        let mut drive = drive(&all);
        write_through(&mut drive, 0);
        let first = drive.ftl().map.get(Lpn(0)).unwrap();
        submit(&mut drive, Op::Write, 1);
        drive.advance(drive.now() + ns(TRANSFER));
        let loss = drive.cut_power().clone();
        drive.completions();
        assert_eq!((loss.torn_programs, drive.ftl().map.get(Lpn(1))), (1, None));
        let second = nandlab::base::geometry::UnitId(first.0 + 1);
        assert!(drive.array().is_torn(second));
        assert_eq!(drive.array().is_torn(first), with_wordline);
        let lost: &[(Lpn, u64)] = if with_wordline { &[(Lpn(0), 1)] } else { &[] };
        assert_eq!(loss.lost_from_flash(), lost);
        // The request of LPN 1 was outstanding.
        assert_eq!(loss.lost_by(Promise::InFlight), [(Lpn(1), 2)]);
        assert_eq!(drive.ftl().map.get(Lpn(0)).is_none(), with_wordline);
        settle(&mut drive);
        read_everything(&mut drive);
    }
}

#[test]
fn a_program_still_in_transfer_tears_nothing() {
    let mut drive = drive(&[NO_CACHE, NO_CAPACITOR]);
    submit(&mut drive, Op::Write, 0);
    drive.advance(at(TRANSFER - 1));
    let loss = drive.cut_power();
    assert_eq!((loss.torn_programs, loss.recovery.unwrap().scanned_pages), (0, 0));
    drive.completions();
    assert_eq!(drive.ftl().map.get(Lpn(0)), None);
    settle(&mut drive);
    read_everything(&mut drive);
}

#[test]
fn a_superblock_whose_erase_was_torn_is_erased_again() {
    let sets = [NO_CACHE, NO_CAPACITOR, "drive.blocks_per_plane=12"];
    for events in 0..2000 {
        let mut drive = drive(&sets);
        let units = u64::from(drive.geometry().logical_units);
        let mut next = 0;
        for _ in 0..events {
            while drive.outstanding() < 4 {
                submit(&mut drive, Op::Write, next % units);
                next += 1;
            }
            assert!(drive.advance_unless_at_rest());
        }
        drive.lose_power();
        let loss = drive.stats().power.losses[0].clone();
        if loss.torn_erases == 0 {
            continue;
        }
        drive.restore_power();
        let recovery = drive.stats().power.losses[0].recovery.unwrap();
        assert_eq!((loss.torn_erases, recovery.erased_blocks), (1, 1));
        // The read of each page transfers 16 bytes of OOB; the erase follows the reads.
        assert_eq!(recovery.ns.ns(), recovery.scanned_pages * (50_000 + 40) + 1_000_000);
        drive.completions();
        settle(&mut drive);
        read_everything(&mut drive);
        return;
    }
    panic!("no power loss came during an erase");
}

#[test]
fn recovery_reads_the_oob_of_every_page() {
    let recovery_ns = |sets: &[&str]| {
        let mut all = vec![NO_CACHE, "drive.chips_per_channel=2"];
        all.extend(sets);
        let mut drive = drive(&all);
        // The writes go to the two dies in turn: one die gets three pages, the other two.
        (0..5).for_each(|lpn| submit(&mut drive, Op::Write, lpn));
        drive.run_until_idle(nandlab::drive::IDLE_LIMIT).unwrap();
        let recovery = drive.cut_power().recovery.unwrap();
        assert_eq!(recovery.scanned_pages, 5);
        recovery.ns.ns()
    };
    // The recovery takes as long as the three reads of the die with three pages. With long commands it takes as long as
    // the commands and transfers of all five reads on the shared channel.
    assert_eq!(recovery_ns(&[]), 3 * (50_000 + 40));
    assert_eq!(recovery_ns(&["timing.command='100us'"]), 5 * (100_000 + 40));
}

#[test]
fn a_partially_flushed_unit_is_merged_in_recovery() {
    let mut drive = drive_with_one_sector(true);
    let loss = drive.cut_power().clone();
    drive.completions();
    let recovery = loss.recovery.unwrap();
    assert_eq!((loss.flushed_pages, recovery.merged_pages, recovery.scanned_pages), (1, 1, 2));
    // The partial page and the older one are read; the flush itself reads nothing.
    assert_eq!(recovery.read_pages, 2);
    assert_eq!(drive.stats().flash[FlashOp::Read as usize][Cause::Flush as usize], 2);
    // Two OOBs and two pages are read. The merged page goes to an LSB page, because the wordline of the flushed page is
    // full.
    let read = 50_000 + TRANSFER;
    assert_eq!(recovery.ns.ns(), 2 * (50_000 + 40) + 2 * read + LSB);
    let unit = drive.ftl().map.get(Lpn(0)).unwrap();
    assert_eq!((drive.array().stamp(unit).sequence, drive.array().is_partial(unit)), (2, false));
    settle(&mut drive);
    read_everything(&mut drive);
    // A sector of an unmapped page needs no merge.
    let mut drive = drive_with_one_sector(false);
    assert_eq!(drive.cut_power().recovery.unwrap().merged_pages, 0);
    drive.completions();
    read_everything(&mut drive);
}

/// On one die the steps follow one another: two OOBs and two pages are read, and the whole page is programmed.
#[test]
fn a_cut_in_recovery_tears_the_step_that_ends_after_it() {
    let (oob, read) = (50_000 + 40, 50_000 + TRANSFER);
    let programs = 2 * oob + 2 * read;
    let end = programs + LSB;
    for (cut, torn) in
        [(0, 0), (2 * oob - 1, 0), (2 * oob, 0), (programs - 1, 0), (programs, 1), (end - 1, 1)]
    {
        let mut drive = drive_with_one_sector(true);
        drive.lose_power();
        let off = drive.now();
        assert!(drive.cut_recovery(RecoveryCut::After(ns(cut))));
        assert_eq!(drive.now(), off + ns(cut));
        assert_eq!(drive.stats().power.losses[0].recovery.map(|recovery| recovery.ns), None);
        drive.restore_power();
        let loss = drive.stats().power.losses[0].clone();
        let recovery = loss.recovery.unwrap();
        assert_eq!((recovery.cuts, recovery.torn_programs, recovery.torn_erases), (1, torn, 0), "{cut} ns");
        assert_eq!((recovery.merged_pages, loss.has_lost(), loss.torn_programs), (1, false, 0));
        // Reading begins anew. The OOB of a torn page is read like the others, and that of the MSB page behind it, which
        // is skipped: the page is programmed to an LSB page again.
        let more = 2 * u64::from(torn);
        assert_eq!(recovery.ns.ns(), cut + end + more * oob);
        let scanned_before = if cut < 2 * oob { 0 } else { 2 };
        assert_eq!(recovery.scanned_pages, scanned_before + 2 + more);
        // A read that power has torn does not count.
        let read_before = [2 * oob + read, programs].iter().filter(|&&end| cut >= end).count() as u64;
        assert_eq!(recovery.read_pages, read_before + 2);
        let down_ns = drive.stats().power.down_ns;
        assert_eq!(down_ns, off - loss.at + recovery.ns);
        let unit = drive.ftl().map.get(Lpn(0)).unwrap();
        assert_eq!((drive.array().stamp(unit).sequence, drive.array().is_partial(unit)), (2, false));
        settle(&mut drive);
        read_everything(&mut drive);
    }
    let mut drive = drive_with_one_sector(true);
    drive.lose_power();
    assert!(!drive.cut_recovery(RecoveryCut::After(ns(end))), "the recovery is over");
    assert_eq!(drive.stats().power.losses[0].recovery.unwrap().cuts, 0);
    drive.completions();
    read_everything(&mut drive);
}

/// The key cuts every recovery of the drive once, as a call does.
#[test]
fn the_key_cuts_each_recovery_once() {
    let recovery = |sets: &[&str]| {
        let mut drive = drive(sets);
        drive.write_now(Lpn(0));
        submit(&mut drive, Op::Write, 0);
        [(); 2].map(|()| drive.cut_power().recovery.unwrap())
    };
    let [first, second] = recovery(&[]);
    let [cut_first, cut_second] = recovery(&["power.cut_in_recovery='50us'"]);
    assert_eq!([first.cuts, second.cuts, cut_first.cuts, cut_second.cuts], [0, 0, 1, 1]);
    assert_eq!(cut_first.ns, first.ns + ns(50_000));
    assert_eq!(recovery(&["power.cut_in_recovery='1s'"])[0].cuts, 0);
}

/// Returns a drive with a dirty sector of LPN 0 in the cache, and with the page in flash if `is_in_flash`.
fn drive_with_one_sector(is_in_flash: bool) -> Drive<Oracle> {
    let mut drive = drive(&[]);
    if is_in_flash {
        drive.write_now(Lpn(0));
    }
    let sector = request(&drive, Op::Write, 512, 512);
    drive.submit(&sector).unwrap();
    drive
}

#[test]
fn a_merged_unit_goes_to_the_next_die_if_its_die_has_no_free_unit() {
    // Even LPNs are on die 0.
    let gc = "gc.foreground_free=0.0";
    let mut drive = drive(&["drive.channels=2", "ftl.allocation=CWDP", "cache.size=128KiB", gc]);
    let units = drive.geometry().logical_units / 2;
    assert_eq!(units, 96);
    // 96 + 48 + 8 pages fill 19 of the 24 blocks of die 0. Every block keeps valid pages.
    for step in [1, 2, 12] {
        (0..units).step_by(step).for_each(|index| assert_eq!(drive.write_now(Lpn(2 * index)), 1));
    }
    assert_eq!(drive.ftl().lanes[0].free_superblocks(), 5);
    let lpns = (0..32).map(|n| 6 * n);
    for lpn in lpns.clone() {
        assert_eq!(one(&mut drive, Op::Write, lpn * PAGE + 512, 512), 0);
    }
    let loss = drive.cut_power().clone();
    let recovery = loss.recovery.unwrap();
    assert_eq!((loss.flushed_pages, recovery.merged_pages, recovery.erased_blocks), (32, 32, 0));
    // Each die gets 16 partial pages, which fill two blocks. Of the other three blocks of die 0 one is kept for GC. The
    // other two take four merged pages each, only in LSB pages, because the capacitor is not yet full. Die 1 takes the
    // rest.
    let geometry = drive.geometry();
    let die = |lpn: u64| {
        let unit = drive.ftl().map.get(Lpn(lpn as u32)).expect("the page is saved");
        geometry.die_of(geometry.lane_of(geometry.superblock_of(unit))).0
    };
    assert_eq!([0, 1].map(|on| lpns.clone().filter(|&lpn| die(lpn) == on).count()), [8, 16 + 8]);
    drive.completions();
    settle(&mut drive);
    read_everything(&mut drive);
}

#[test]
fn a_deallocation_survives_power_loss_after_a_flush() {
    for flushes in [false, true] {
        let mut drive = drive(&[]);
        write_through(&mut drive, 0);
        write_through(&mut drive, 1);
        submit(&mut drive, Op::Trim, 0);
        submit(&mut drive, Op::Trim, 1);
        if flushes {
            submit(&mut drive, Op::Flush, 0);
        }
        // LPN 1 is written again: the write is newer than the deallocation with and without the flush.
        submit(&mut drive, Op::Write, 1);
        drive.advance(drive.now() + ns(1000));
        drive.cut_power();
        drive.completions();
        assert_eq!(drive.ftl().map.get(Lpn(0)).is_none(), flushes);
        assert!(drive.ftl().map.get(Lpn(1)).is_some());
        settle(&mut drive);
        read_everything(&mut drive);
    }
}

/// Overrides for a drive with budget detections. A day of the scaled clock takes a second.
const DETECTION: [&str; 4] = [
    "reliability.clock_scale=86400",
    "cache.sync=punctual",
    "cache.dirty_budget=measured",
    "gc.idle_after='3s'",
];
/// An energy in millijoules that suffices for ten pages but not for eleven. Five LSB and five MSB pages take 4.6024 ms,
/// of which 4.5 ms are programs: 4.6024 mJ + 0.45 mJ = 5.0524 mJ. Another LSB page makes 5.39264 mJ.
const TEN_PAGES_MJ: f64 = 5.2;
/// Duration of a recharge: ten seconds of the scaled clock, in nanoseconds of simulated time.
const RECHARGE: u64 = 10 * SECOND / 86_400;

fn detecting(mj: f64, sets: &[&str]) -> Drive<Oracle> {
    let energy = energy(mj);
    let mut all = vec![energy.as_str()];
    all.extend(DETECTION);
    all.extend(sets);
    drive(&all)
}

/// Keeps the drive busy with reads until the time `to`.
fn keep_busy(drive: &mut Drive<Oracle>, to: u64) {
    while drive.now().ns() + 2 * SECOND < to {
        drive.advance(drive.now() + ns(2 * SECOND));
        submit(drive, Op::Read, 50);
    }
    drive.advance(at(to));
}

#[test]
fn a_detection_is_due_after_twenty_days_and_waits_up_to_a_day_for_idleness() {
    let mut drive = detecting(TEN_PAGES_MJ, &[]);
    drive.advance(at(20 * SECOND - 1));
    assert_eq!(drive.power_stage(), "charged");
    drive.advance(at(20 * SECOND));
    assert_eq!(drive.power_stage(), "draining", "an idle drive begins at once");

    let mut drive = detecting(TEN_PAGES_MJ, &[]);
    keep_busy(&mut drive, 21 * SECOND - 1);
    assert_eq!(drive.power_stage(), "charged", "the detection waits for an idle time");
    drive.advance(at(21 * SECOND));
    assert_eq!(drive.power_stage(), "draining", "after a day the detection begins on a busy drive");
    drive.advance(at(22 * SECOND));
    let detection = drive.stats().power.detections[0];
    assert_eq!((detection.due.ns(), detection.began.ns()), (20 * SECOND, 21 * SECOND));

    // The drive becomes idle within the day: the detection begins three seconds after the last request.
    let mut drive = detecting(TEN_PAGES_MJ, &[]);
    drive.advance(at(17 * SECOND + SECOND / 2));
    submit(&mut drive, Op::Read, 50);
    drive.advance(at(22 * SECOND));
    let detection = drive.stats().power.detections[0];
    assert_eq!((detection.due.ns(), detection.began.ns()), (20 * SECOND, 20 * SECOND + SECOND / 2));

    // On command the detection begins at once, even on a busy drive.
    let mut drive = detecting(TEN_PAGES_MJ, &[]);
    keep_busy(&mut drive, 5 * SECOND);
    drive.detect_budget();
    assert_eq!(drive.power_stage(), "draining");
    drive.advance(at(6 * SECOND));
    let detection = drive.stats().power.detections[0];
    assert_eq!((detection.due.ns(), detection.began.ns()), (5 * SECOND, 5 * SECOND));
    // The next detection is due twenty days after the end of the recharge. The recharge ends a fraction of a second
    // after `empty`.
    let next = detection.empty.ns() / SECOND * SECOND + 20 * SECOND;
    drive.advance(at(next + SECOND));
    assert_eq!(drive.stats().power.detections.len(), 2);
}

#[test]
fn the_stages_of_a_detection_take_their_time() {
    let mut drive = detecting(TEN_PAGES_MJ, &[]);
    let from = 20 * SECOND;
    drive.advance(at(from));
    // Ten programs take 0.45 mJ of the 5.2 mJ; the remaining 4.75 mJ last for 4.75 ms of the controller's 1 W. (The
    // capacitor has lost a little of its energy in twenty days.)
    drive.advance(at(from + 4_750_000 - 100));
    assert_eq!(drive.power_stage(), "draining");
    drive.advance(at(from + 4_750_000 + 10));
    assert_eq!(drive.power_stage(), "settling");
    // The program of the eleventh page, an LSB page, ends; then an MSB page fills its wordline.
    let empty = from + 5 * (LSB + MSB) + LSB + MSB;
    drive.advance(at(empty - 1));
    assert_eq!(drive.power_stage(), "settling");
    drive.advance(at(empty));
    assert_eq!(drive.power_stage(), "recharging");
    // The recharge takes ten seconds of the scaled clock.
    drive.advance(at(empty + RECHARGE - 1));
    assert_eq!(drive.power_stage(), "recharging");
    assert!(drive.stats().power.detections.is_empty(), "the detection ends with the recharge");
    drive.advance(at(empty + RECHARGE + 1));
    assert_eq!(drive.power_stage(), "charged");
    let detection = drive.stats().power.detections[0];
    assert_eq!((detection.drained_from.ns(), detection.pages, detection.host_pages), (from, 10, 0));
    is_near(detection.energy_j, 5.2e-3);
    // In the worst case a flush has a fixed cost of 1.61024 mJ: the controller draws 1 W for 1 ms, while the flush
    // waits for an erase, and for 0.61024 ms in the last round of programs. To this the first page adds 0.67024 mJ, as
    // an MSB page, and every further page 0.50524 mJ, the mean of an LSB page (0.34024 mJ) and an MSB page.
    is_near(detection.drained_j, 5.2e-3);
    is_near(detection.measured, (1.0 + (5.2 - 1.61024 - 0.67024) / 0.50524) / 10.0);
    is_near(detection.budget, 0.0);
    assert_eq!(drive.cache_units(), [10, 0, 0]);
    settle(&mut drive);
}

#[test]
fn the_budget_is_the_step_below_the_measured_capability() {
    // Each energy is chosen slightly above that of 7, 8, 9, 10 or 11 pages in the worst case, to make up for the 0.001
    // % of the capacitance that a detection costs. The detection writes more pages, 10 to 14, because it begins with an
    // LSB page and waits for no erase.
    let measured = [(5.35, 10, 0), (5.85, 11, 7), (6.35, 12, 8), (6.85, 13, 9), (7.4, 14, 10)];
    for (mj, programs, budget) in measured {
        let mut drive = detecting(mj, &[]);
        drive.advance(at(21 * SECOND));
        assert_eq!(drive.stats().power.detections[0].pages, programs, "{mj} mJ");
        assert_eq!(drive.cache_units()[1], budget, "{mj} mJ");
    }
}

#[test]
fn a_detection_first_writes_dirty_units_back_and_then_host_writes_are_write_throughs() {
    let mut drive = detecting(6.7, &[]);
    (0..3).for_each(|lpn| assert_eq!(one(&mut drive, Op::Write, lpn * PAGE, PAGE), 0));
    drive.detect_budget();
    assert_eq!((drive.power_stage(), drive.cache_units()[1]), ("syncing", 0));
    drive.advance(at(LSB + MSB + LSB - 1));
    assert_eq!(drive.power_stage(), "syncing");
    drive.advance(at(LSB + MSB + LSB));
    assert_eq!((drive.power_stage(), drive.cache_units()[2]), ("draining", 1));
    // The host's page waits for the program under way, and is acknowledged when the page is in flash.
    assert_eq!(one(&mut drive, Op::Write, 7 * PAGE, PAGE), MSB + LSB);
    until(&mut drive, "recharging");
    // The detection has written the four pages of the cache again and again, so the first block has no valid page left.
    // The erase of this block has waited for the end of the measurement.
    assert_eq!(one(&mut drive, Op::Write, 8 * PAGE, PAGE), ERASE + LSB);
    until(&mut drive, "charged");
    assert_eq!(one(&mut drive, Op::Write, 9 * PAGE, PAGE), 0);
    let detection = drive.stats().power.detections[0];
    assert_eq!(detection.host_pages, 1, "host writes during the detection are counted");
    settle(&mut drive);
    read_everything(&mut drive);
}

#[test]
fn programs_of_the_host_count_as_programs_of_the_detection() {
    let mut drive = detecting(TEN_PAGES_MJ, &[]);
    drive.advance(at(20 * SECOND));
    for lpn in 0..3 {
        submit(&mut drive, Op::Write, lpn);
    }
    drive.advance(at(21 * SECOND));
    let detection = drive.stats().power.detections[0];
    assert_eq!((detection.pages, detection.host_pages), (10, 3));
}

#[test]
fn while_the_capacitor_recharges_no_program_can_tear_older_data() {
    // An hour of the scaled clock takes 42 ms.
    let mut drive = detecting(TEN_PAGES_MJ, &["capacitor.recharge='1h'"]);
    drive.advance(at(20 * SECOND));
    until(&mut drive, "recharging");
    for lpn in 0..6 {
        submit(&mut drive, Op::Write, lpn);
    }
    // The writes wait for an erase: the detection has filled a block, none of whose pages is valid any more.
    drive.advance(drive.now() + ns(ERASE + 6 * LSB));
    assert!(drive.is_recharging());
    assert_eq!(drive.completions().count(), 6, "a write has taken longer than the program of an LSB page");
    assert!(pages_in_block(&drive, 6).iter().all(|page| page % 2 == 0));
    // A power loss tears the program, but no older page with it.
    submit(&mut drive, Op::Write, 6);
    drive.advance(drive.now() + ns(LSB / 2));
    let loss = drive.cut_power().clone();
    assert_eq!((loss.torn_programs, loss.lost_from_flash().len(), loss.energy_j), (1, 0, 0.0));
    drive.completions();
    settle(&mut drive);
    read_everything(&mut drive);
}

#[test]
fn power_can_fail_in_every_stage() {
    for stage in ["charged", "syncing", "draining", "settling", "recharging"] {
        let mut drive = detecting(6.7, &[]);
        (0..4).for_each(|lpn| assert_eq!(one(&mut drive, Op::Write, lpn * PAGE, PAGE), 0));
        if stage != "charged" {
            drive.detect_budget();
            until(&mut drive, stage);
        }
        if stage == "draining" {
            // In the first millisecond of the stage `draining` one LSB page and one MSB page are written.
            drive.advance(drive.now() + ns(1_000_000));
        }
        let loss = drive.cut_power().clone();
        let left = match stage {
            "charged" | "syncing" => 6.7e-3,
            "draining" => 6.7e-3 - (1e-3 + 0.09e-3),
            _ => 0.0,
        };
        is_near(loss.energy_j, left);
        let unflushed = if ["charged", "syncing"].contains(&stage) { 4 } else { 0 };
        assert_eq!((loss.unflushed_pages, loss.lost.len()), (unflushed, 0), "{stage}");
        // In the stage `syncing` one of the four pages is already being written back. A page that the detection is
        // writing counts as dirty.
        let flushed = [("charged", 4), ("syncing", 3), ("draining", 1)].iter().find(|(of, _)| *of == stage);
        assert_eq!(loss.flushed_pages, flushed.map_or(0, |&(_, units)| units), "{stage}");
        assert_eq!(drive.power_stage(), "recharging", "{stage}");
        drive.advance(drive.now() + ns(RECHARGE) + ns(1));
        assert_eq!(drive.power_stage(), "charged", "{stage}");
        assert!(drive.stats().power.detections.is_empty(), "the interrupted detection has no result");
        drive.completions();
        settle(&mut drive);
        read_everything(&mut drive);
        assert_eq!(drive.device().phase(DieId(0)), nandlab::sched::Phase::Idle);
    }
}

#[test]
fn a_superblock_that_lost_its_last_unit_while_draining_is_erased_after_a_power_loss() {
    let mut drive = detecting(6.7, &[]);
    (0..8).for_each(|lpn| assert_eq!(drive.write_now(Lpn(lpn)), 1));
    drive.detect_budget();
    until(&mut drive, "draining");
    // Block 0 is not erased when its eight pages are deallocated while the capacitor drains.
    (0..8).for_each(|lpn| submit(&mut drive, Op::Trim, lpn));
    submit(&mut drive, Op::Flush, 0);
    drive.advance(drive.now() + ns(2 * ERASE));
    let superblock = |drive: &Drive<Oracle>| drive.array().superblock(SuperblockId(0)).clone();
    assert_eq!(
        (drive.power_stage(), superblock(&drive).valid, superblock(&drive).pe_cycles),
        ("draining", 0, 0)
    );
    drive.cut_power();
    drive.completions();
    // The power loss has ended the detection, so the block is erased as soon as power is back.
    drive.advance(drive.now() + ns(ERASE));
    assert_eq!(superblock(&drive).pe_cycles, 1);
    settle(&mut drive);
    read_everything(&mut drive);
}

#[test]
fn a_unit_lost_before_power_loss_is_not_counted_as_lost_by_it() {
    let levels = ["ecc.levels=laldpc", "reliability.rber=vth"];
    let mut drive = detecting(TEN_PAGES_MJ, &levels);
    drive.write_now(Lpn(0));
    let unit = drive.ftl().map.get(Lpn(0)).unwrap();
    let stamp = Stamp { corrected: AgeStamp::LOST, ..drive.array().stamp(unit) };
    drive.parts_mut().0.stage(unit, Lpn(0), stamp);
    // A sector is written, and the page with which it must be merged cannot be read.
    let sector = request(&drive, Op::Write, 512, 512);
    drive.submit(&sector.with_fua(true)).unwrap();
    drive.advance(at(SECOND));
    let is_lost = |drive: &Drive<Oracle>| drive.array().is_lost(drive.ftl().map.get(Lpn(0)).unwrap());
    assert!(is_lost(&drive));
    let before = drive.ftl().map.get(Lpn(0));
    drive.detect_budget();
    drive.advance(at(2 * SECOND));
    assert_eq!(drive.ftl().map.get(Lpn(0)), before, "the detection writes correct pages only");
    assert!(is_lost(&drive));
    assert!(drive.cut_power().lost.is_empty(), "the page was lost before the power loss");
    drive.completions();
    submit(&mut drive, Op::Read, 0);
    drive.run_until_idle(nandlab::drive::IDLE_LIMIT).unwrap();
    assert!(drive.completions().all(|done| done.failed == Some(FailReason::Uncorrectable)));
}
