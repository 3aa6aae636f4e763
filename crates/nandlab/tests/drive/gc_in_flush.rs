//! GC that goes on during a plain emergency flush (`power.gc_in_flush`), compared with calculations by hand.
//!
//! The transfer of a page of 4 KiB takes 10.24 us, a read 50 us, a program 300 us, an erase 1 ms. The controller draws
//! 1 W, a program 100 mW; a read takes 4 uJ beside, an erase 300 uJ. The capacitor has 12 mJ, times its efficiency.

use crate::common::{one, read_everything, settle, spec, with_oracle};
use nandlab::base::geometry::{DieId, Lpn, SuperblockId};
use nandlab::drive::Drive;
use nandlab::host::{Op, Oracle};
use nandlab::power_loss::PowerLoss;
use nandlab::sched::{Cause, FlashOp};

const PAGE: u64 = 4096;
const COPY: u64 = 50_000 + 10_240 + 10_240 + 300_000;
const WRITE: u64 = 10_240 + 300_000;
const ERASE: u64 = 1_000_000;

/// One plane of 12 blocks of 8 pages. The flush of ten pages keeps three free blocks, and GC keeps one.
const BASE: &str = r#"
[drive]
channels = 1
chips_per_channel = 1
dies_per_chip = 1
planes_per_die = 1
blocks_per_plane = 12
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
access = "0us"
[capacitor]
capacitance = "1mF"
efficiency = 1.0
controller_power = "1W"
program_power = "100mW"
temperature = -40
[energy]
read = "4uJ"
erase = "300uJ"
[power]
gc_in_flush = true
"#;

/// A drive whose plane has four free blocks, so that GC is due. Blocks 0 and 1 have five valid pages each (LPNs 3 to 7
/// and 11 to 15), block 2 six, and four blocks eight.
fn full_drive(sets: &[&str]) -> Drive<Oracle> {
    let mut drive = with_oracle(&spec(BASE, sets));
    assert_eq!(drive.geometry().logical_units, 48);
    let again = [0, 1, 2, 8, 9, 10, 16, 17];
    (0..48).chain(again).for_each(|lpn| assert_eq!(drive.write_now(Lpn(lpn)), 1));
    let valid =
        [0, 1, 2, 3, 4, 5, 6].map(|superblock| drive.array().superblock(SuperblockId(superblock)).valid);
    assert_eq!(valid, [5, 5, 6, 8, 8, 8, 8]);
    // One free block less, as while a job is under way.
    let (array, ftl) = drive.parts_mut();
    ftl.take_flush_superblock(array, DieId(0), nandlab::ftl::StreamId::HOST).expect("a block is free");
    assert_eq!(drive.ftl().lanes[0].free_superblocks(), 4);
    drive
}

/// Writes LPNs to the cache, cuts the power, and reads the drive after the recovery.
fn flush(drive: &mut Drive<Oracle>, lpns: impl IntoIterator<Item = u64>) -> PowerLoss {
    lpns.into_iter().for_each(|lpn| assert_eq!(one(drive, Op::Write, lpn * PAGE, PAGE), 0));
    let counted = |drive: &Drive<Oracle>| {
        let flash = drive.stats().flash;
        [FlashOp::Program, FlashOp::Erase].map(|kind| flash[kind as usize][Cause::Gc as usize])
    };
    let before = counted(drive);
    drive.lose_power();
    let loss = drive.stats().power.losses.last().expect("power has failed").clone();
    let after = counted(drive);
    assert_eq!(after[0] - before[0], u64::from(loss.gc_pages));
    assert_eq!(after[1] - before[1], u64::from(loss.gc_erases));
    drive.restore_power();
    drive.completions();
    settle(drive);
    read_everything(drive);
    // Recovery has found out what is lost.
    drive.stats().power.losses.last().expect("power has failed").clone()
}

#[track_caller]
fn is_near(found: f64, expected: f64) {
    assert!((found - expected).abs() < 1e-9 * expected.abs().max(1e-9), "expected {expected}, found {found}");
}

#[test]
fn gc_cleans_a_superblock_before_the_first_unit_and_whenever_its_gain_is_used() {
    let loss = flush(&mut full_drive(&[]), 44..48);
    // The cleaning of block 0 moves five pages and gains three, to which three pages are written. The fourth page waits
    // for the cleaning of block 1.
    assert_eq!((loss.flushed_pages, loss.gc_pages, loss.gc_erases), (4, 10, 2));
    assert_eq!(loss.program_ns.ns(), (4 + 10) * 300_000);
    assert_eq!(loss.flush_ns.ns(), 10 * COPY + 2 * ERASE + 4 * WRITE);
    is_near(loss.gc_j, 10.0 * 4e-6 + 2.0 * 300e-6);
    let (total_s, program_s) = (loss.flush_ns.seconds(), loss.program_ns.seconds());
    is_near(loss.spent_j, total_s + 0.1 * program_s + loss.gc_j);

    let loss = flush(&mut full_drive(&["power.gc_in_flush=false"]), 44..48);
    assert_eq!((loss.flushed_pages, loss.gc_pages, loss.gc_erases, loss.gc_j), (4, 0, 0, 0.0));
    assert_eq!((loss.program_ns.ns(), loss.flush_ns.ns()), (4 * 300_000, 4 * WRITE));
}

#[test]
fn units_that_the_flush_has_written_are_not_moved() {
    // After the cleaning of block 0, LPNs 11, 12 and 13 are written, so block 1 has two valid pages left.
    let loss = flush(&mut full_drive(&[]), [11, 12, 13, 47]);
    assert_eq!((loss.flushed_pages, loss.gc_pages, loss.gc_erases), (4, 5 + 2, 2));
}

#[test]
fn while_space_is_not_short_gc_does_not_clean() {
    let mut drive = with_oracle(&spec(BASE, &[]));
    (0..16).for_each(|lpn| assert_eq!(drive.write_now(Lpn(lpn)), 1));
    let loss = flush(&mut drive, 0..6);
    assert_eq!((loss.flushed_pages, loss.gc_pages, loss.gc_erases), (6, 0, 0));
}

#[test]
fn the_energy_may_run_out_at_any_operation_of_a_cleaning() {
    let mut stages = [0; 4];
    for step in 0..240 {
        let set = format!("capacitor.efficiency={}", 0.003 * f64::from(step + 1));
        let loss = flush(&mut full_drive(&[set.as_str()]), 44..48);
        assert!(loss.spent_j <= loss.energy_j * (1.0 + 1e-12), "{loss:?}");
        assert_eq!(loss.flushed_pages as usize + loss.lost.len(), 4);
        let copies = (loss.gc_pages % 5 > 0) as usize;
        stages[copies + 2 * usize::from(loss.gc_erases > 0)] += 1;
    }
    assert!(stages.iter().all(|&count| count > 0), "{stages:?}");
}
