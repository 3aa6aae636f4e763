//! `cache.flush_to` on tiny drives, compared with calculations by hand: FUA writes and flushes that the write cache
//! acknowledges while the capacitor is charged, and their data at power loss.
//!
//! tR is 50 us, the transfer of a page 10.24 us, tPROG 300 us: a program takes 310.24 us. An access of the cache takes
//! 1 us. The controller draws 1 W, a program 100 mW; so a page of an emergency flush, the only one under way, takes
//! 310.24 uJ + 30 uJ.

use crate::common::{SECOND, at, one, read_everything, request, settle, spec, with_oracle};
use nandlab::base::geometry::Lpn;
use nandlab::base::lost::Promise;
use nandlab::base::units::Time;
use nandlab::drive::Drive;
use nandlab::host::{Op, Oracle};
use nandlab::power_loss::PowerLoss;
use nandlab::sched::FlashOp;

const PAGE: u64 = 4096;
const DRAM: u64 = 1_000;
const PROGRAM: u64 = 310_240;

/// One die with one plane of 24 blocks of 8 pages, and a write cache of 10 pages.
const BASE: &str = r#"
[drive]
channels = 1
chips_per_channel = 1
dies_per_chip = 1
planes_per_die = 1
blocks_per_plane = 24
pages_per_block = 8
page_size = "4KiB"
cell = "slc"
op = 1.0
endurance = 1000000
[timing]
read = "50us"
program = "300us"
erase = "1ms"
channel_ns_per_byte = 2.5
command = "0us"
decode = "0us"
[gc]
idle_after = "1s"
[cache]
size = "40KiB"
access = "1us"
[capacitor]
capacitance = "1mF"
controller_power = "1W"
program_power = "100mW"
temperature = -40
"#;

const TO_CACHE: &str = "cache.flush_to=cache";
const TO_FLASH: &str = "cache.flush_to=flash";

/// The capacitor has 12 mJ times its efficiency, enough for 35 pages without other settings.
fn drive(sets: &[&str]) -> Drive<Oracle> {
    with_oracle(&spec(BASE, sets))
}

/// The override for a capacitor with the energy of `units` units of a flush.
fn units_of_energy(units: f64) -> String {
    format!("capacitor.efficiency={}", units * 0.340_24 / 12.0)
}

fn flush(drive: &mut Drive<Oracle>) -> u64 {
    one(drive, Op::Flush, 0, 0)
}

fn write(drive: &mut Drive<Oracle>, lpn: u64) -> u64 {
    one(drive, Op::Write, lpn * PAGE, PAGE)
}

fn trim(drive: &mut Drive<Oracle>, first: u64, units: u64) {
    assert_eq!(one(drive, Op::Trim, first * PAGE, units * PAGE), 0);
}

fn fua(drive: &mut Drive<Oracle>, lpn: u64) -> u64 {
    let write = request(drive, Op::Write, lpn * PAGE, PAGE).with_fua(true);
    drive.submit(&write).unwrap();
    assert!(drive.advance_to_completion(Time::NEVER));
    let done = drive.completions().next().expect("the write is completed");
    (done.completed - done.request.arrival).ns()
}

/// Writes LPNs 0 to `units` - 1 and brings them into flash by a detection; then the capacitor is charged again.
fn in_flash(drive: &mut Drive<Oracle>, units: u64) {
    (0..units).for_each(|lpn| _ = write(drive, lpn));
    drive.detect_budget();
    until(drive, "recharging");
    until(drive, "charged");
    assert_eq!(dirty(drive), 0);
}

fn until(drive: &mut Drive<Oracle>, stage: &str) {
    while drive.power_stage() != stage {
        assert!(drive.advance_by_event(at(10_000 * SECOND)), "the capacitor is {}", drive.power_stage());
    }
}

/// Completes all requests and returns the times of their completions.
fn ends(drive: &mut Drive<Oracle>) -> Vec<u64> {
    let mut ends = Vec::new();
    while drive.outstanding() > 0 {
        assert!(drive.advance_to_completion(Time::NEVER));
        ends.extend(drive.completions().map(|done| (done.completed - Time::START).ns()));
    }
    ends
}

fn dirty(drive: &Drive<Oracle>) -> u32 {
    drive.cache_units()[2]
}

fn programs(drive: &Drive<Oracle>) -> u64 {
    drive.stats().flash_total(FlashOp::Program)
}

/// Cuts the power, reads everything, and returns the record of the loss.
fn cut(drive: &mut Drive<Oracle>) -> PowerLoss {
    let loss = drive.cut_power().clone();
    drive.completions();
    settle(drive);
    read_everything(drive);
    drive.completions();
    loss
}

#[test]
fn with_a_charged_capacitor_write_and_flush_take_a_dram_access_in_place_of_a_program() {
    for (to, sets, times, programmed) in [
        (TO_CACHE, vec![], [DRAM, 0, DRAM, 0], 0),
        // The default.
        ("gc.idle_after='1s'", vec![], [DRAM, 0, DRAM, 0], 0),
        (TO_FLASH, vec![], [DRAM, PROGRAM, PROGRAM, 0], 2),
        // Without a capacitor, and with a budget of 0, the key has no effect.
        (TO_CACHE, vec!["capacitor.capacitance=0F"], [DRAM, PROGRAM, PROGRAM, 0], 2),
        (TO_CACHE, vec!["cache.sync=punctual", "cache.dirty_budget=0.0"], [PROGRAM, 0, PROGRAM, 0], 2),
        (TO_CACHE, vec!["cache.size=0B"], [PROGRAM, 0, PROGRAM, 0], 2),
    ] {
        let mut drive = drive(&[&[to], sets.as_slice()].concat());
        let found = [write(&mut drive, 0), flush(&mut drive), fua(&mut drive, 1), flush(&mut drive)];
        assert_eq!((found, programs(&drive)), (times, programmed), "{to} {sets:?}");
        settle(&mut drive);
    }
}

#[test]
fn a_flush_waits_for_writes_that_are_not_yet_in_the_cache() {
    let mut drive = drive(&[TO_CACHE, "cache.sync=punctual", "cache.dirty_budget=0.2"]);
    // The budget is two pages: the third write waits for the program of the first.
    for lpn in 0..3 {
        drive.submit(&request(&drive, Op::Write, lpn * PAGE, PAGE)).unwrap();
    }
    drive.submit(&request(&drive, Op::Flush, 0, 0)).unwrap();
    assert_eq!(ends(&mut drive), [DRAM, DRAM, PROGRAM + DRAM, PROGRAM + DRAM]);
    assert_eq!((programs(&drive), dirty(&drive)), (1, 2));
    settle(&mut drive);
}

#[test]
fn a_detection_first_writes_back_what_was_flushed_to_the_cache() {
    let mut drive = drive(&[TO_CACHE]);
    (0..3).for_each(|lpn| _ = write(&mut drive, lpn));
    assert_eq!((flush(&mut drive), dirty(&drive)), (0, 3));
    drive.detect_budget();
    assert_eq!(drive.power_stage(), "syncing");
    // Now flash acknowledges flushes: this one waits for the three programs, which an earlier flush covers.
    assert_eq!(flush(&mut drive), 3 * PROGRAM);
    assert!((0..3).all(|lpn| drive.ftl().map.get(Lpn(lpn)).is_some()));
    assert_eq!((drive.power_stage(), fua(&mut drive, 0) >= PROGRAM), ("draining", true));
    until(&mut drive, "recharging");
    assert!(fua(&mut drive, 5) >= PROGRAM);
    until(&mut drive, "charged");
    assert_eq!((fua(&mut drive, 5), flush(&mut drive)), (DRAM, 0));
    settle(&mut drive);
}

#[test]
fn a_trim_while_a_detection_writes_back_brings_back_nothing_from_before_a_flushed_write() {
    let mut drive = drive(&[TO_CACHE]);
    in_flash(&mut drive, 2);
    assert_eq!([write(&mut drive, 0), write(&mut drive, 1), flush(&mut drive)], [DRAM, DRAM, 0]);
    drive.detect_budget();
    // The program of LPN 0 is under way, and the die is busy: LPN 1 is dropped from the cache without a program.
    trim(&mut drive, 1, 1);
    assert_eq!(drive.power_stage(), "syncing");
    let loss = cut(&mut drive);
    assert_eq!((loss.lost.len(), loss.lost_trims().len(), drive.ftl().map.get(Lpn(1))), (0, 0, None));
}

#[test]
fn a_flush_that_waits_when_a_detection_begins_completes_when_its_data_is_in_flash() {
    let mut drive = drive(&[TO_CACHE, "cache.sync=punctual", "cache.dirty_budget=0.2"]);
    for lpn in 0..3 {
        drive.submit(&request(&drive, Op::Write, lpn * PAGE, PAGE)).unwrap();
    }
    drive.submit(&request(&drive, Op::Flush, 0, 0)).unwrap();
    drive.advance(at(100_000));
    assert_eq!((drive.completions().count(), drive.outstanding()), (2, 2));
    // The third write is now a write-through. Without the detection both would be completed after the first program.
    drive.detect_budget();
    assert_eq!(ends(&mut drive), [3 * PROGRAM, 3 * PROGRAM]);
    settle(&mut drive);
}

#[test]
fn flushed_units_are_saved_as_far_as_the_energy_reaches_and_the_others_are_reported() {
    // A flush reserves energy for the worst case, so 3.5 pages of energy save three pages.
    for (energy, saved) in [(12.0, 5), (3.5, 3), (0.5, 0)] {
        let mut drive = drive(&[TO_CACHE, &units_of_energy(energy)]);
        (0..4).for_each(|lpn| _ = write(&mut drive, lpn));
        assert_eq!((flush(&mut drive), fua(&mut drive, 4)), (0, DRAM));
        let loss = cut(&mut drive);
        assert_eq!((loss.unflushed_pages, loss.flushed_pages), (5, saved), "{energy} pages of energy");
        let lost: Vec<u32> = loss.lost_by(Promise::Covered).iter().map(|&(lpn, _)| lpn.0).collect();
        assert_eq!((loss.lost.len(), lost), (5 - saved as usize, (saved..5).collect::<Vec<_>>()));
    }
}

#[test]
fn the_emergency_flush_writes_the_records_of_trims_before_the_dirty_units() {
    // The units of energy, the units of records and dirty units that are saved, and the LPNs whose TRIM is lost.
    for (energy, units, lost) in [(12.0, [1, 2], vec![]), (1.5, [1, 0], vec![]), (0.5, [0, 0], vec![0, 1, 2])]
    {
        let mut drive = drive(&[TO_CACHE, &units_of_energy(energy)]);
        in_flash(&mut drive, 4);
        let before = programs(&drive);
        trim(&mut drive, 0, 3);
        assert_eq!((flush(&mut drive), write(&mut drive, 6), write(&mut drive, 7)), (0, DRAM, DRAM));
        assert_eq!(programs(&drive), before);
        let loss = drive.cut_power().clone();
        drive.completions();
        assert_eq!(
            (loss.trim_pages, [loss.trim_pages_saved, loss.flushed_pages]),
            (1, units),
            "{energy} pages of energy"
        );
        let found: Vec<u32> = loss.lost_trims().iter().map(|&(lpn, _)| lpn.0).collect();
        assert_eq!(found, lost);
        // A lost TRIM is undone: the old data is back.
        let mapped: Vec<u32> = (0..3).filter(|&lpn| drive.ftl().map.get(Lpn(lpn)).is_some()).collect();
        assert_eq!(mapped, lost);
        settle(&mut drive);
        read_everything(&mut drive);
    }
}

#[test]
fn records_of_trims_take_a_unit_of_the_budget() {
    let mut drive = drive(&[TO_CACHE, "cache.sync=punctual", "cache.dirty_budget=0.4"]);
    in_flash(&mut drive, 3);
    trim(&mut drive, 0, 1);
    // Of the budget of four pages three are left: the fourth write waits for the program of the first.
    let times: Vec<u64> = (4..8).map(|lpn| write(&mut drive, lpn)).collect();
    assert_eq!((times, dirty(&drive)), (vec![DRAM, DRAM, DRAM, PROGRAM + DRAM], 3));
    assert_eq!(cut(&mut drive).trim_pages, 1);
    // Without room for their page, records are written to the firmware area: the TRIM is durable without a flush.
    until(&mut drive, "charged");
    (4..8).for_each(|lpn| _ = write(&mut drive, lpn));
    assert_eq!(dirty(&drive), 4);
    trim(&mut drive, 1, 1);
    let loss = cut(&mut drive);
    assert_eq!((loss.trim_pages, drive.ftl().map.get(Lpn(1))), (0, None));
}

#[test]
fn records_of_trims_that_fill_a_unit_are_written() {
    // Pages of 512 bytes have 32 records of 16 bytes. Every other LPN is trimmed, so each TRIM needs a record.
    let unit = 512;
    for (trims, units) in [(31, 1), (32, 0), (33, 1)] {
        let mut drive = drive(&[TO_CACHE, "drive.page_size=512B", "drive.blocks_per_plane=40"]);
        (0..80).for_each(|lpn| _ = one(&mut drive, Op::Write, lpn * unit, unit));
        drive.detect_budget();
        until(&mut drive, "recharging");
        until(&mut drive, "charged");
        (1..=trims).for_each(|n| _ = one(&mut drive, Op::Trim, 2 * n * unit, unit));
        let loss = cut(&mut drive);
        assert_eq!((loss.trim_pages, loss.trim_pages_saved), (units, units), "{trims} TRIMs");
        assert!((1..=trims).all(|n| drive.ftl().map.get(Lpn(2 * n as u32)).is_none()));
    }
}
