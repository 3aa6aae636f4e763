//! The write cache: times of hits, misses, evictions, flushes and TRIMs, and the write-backs of each sync policy,
//! compared with calculations by hand.
//!
//! tR is 50 us, the transfer of a page 10.24 us, decoding 15 us, tPROG 900 us. So a read takes 75.24 us and a program
//! 910.24 us. An access of the cache takes 1 us.

use crate::common::{ns, one, read_everything, request, settle, spec, with_oracle};
use nandlab::base::geometry::Lpn;
use nandlab::base::rng::Stream;
use nandlab::base::units::Time;
use nandlab::drive::Drive;
use nandlab::drive::spec::Spec;
use nandlab::host::{Op, Oracle};
use nandlab::probe::Probe;
use nandlab::sched::{Cause, FlashOp};

const PAGE: u64 = 4096;
const DRAM: u64 = 1_000;
const READ: u64 = 75_240;
const WRITE: u64 = 910_240;
const IDLE: u64 = 10_000_000_000;
const ALL: [&str; 4] =
    ["none", "punctual", "greedy", "{ smart = { budget_margin = 0.0, cold_share = 0.0 } }"];

/// One plane of 40 blocks of 16 pages, 320 logical units.
const ONE_PLANE: &str = "[drive]\nchannels = 1\nchips_per_channel = 1\ndies_per_chip = 1\nplanes_per_die = 1\n\
     blocks_per_plane = 40\npages_per_block = 16\npage_size = '4KiB'\ncell = 'mlc'\nop = 1.0\nendurance = 1000000\n\
     [timing]\nprogram = '900us'\nerase = '3.5ms'\nchannel_ns_per_byte = 2.5\ncommand = '0us'\n\
     [gc]\nidle_after = '10s'\n[cache]\naccess = '1us'\n";

fn cached(units: u64, sync: &str, sets: &[&str]) -> Spec {
    let size = format!("cache.size={}B", units * PAGE);
    let sync =
        if sync.starts_with('{') { format!("cache.sync={sync}") } else { format!("cache.sync='{sync}'") };
    spec(ONE_PLANE, &[&[size.as_str(), sync.as_str()], sets].concat())
}

/// Returns a drive whose first `units` units are in flash and not in the cache.
fn filled(spec: &Spec, units: u32) -> Drive<Oracle> {
    let mut drive = Drive::with_probe(spec, Oracle::default());
    (0..units).for_each(|lpn| _ = drive.write_now(Lpn(lpn)));
    drive.expect_preconditioned(|oracle| oracle);
    drive
}

fn read<P: Probe>(drive: &mut Drive<P>, lpn: u64) -> u64 {
    one(drive, Op::Read, lpn * PAGE, PAGE)
}

fn write<P: Probe>(drive: &mut Drive<P>, lpn: u64) -> u64 {
    one(drive, Op::Write, lpn * PAGE, PAGE)
}

fn flush<P: Probe>(drive: &mut Drive<P>) -> u64 {
    one(drive, Op::Flush, 0, 0)
}

/// Submits a request without simulating time.
fn send<P: Probe>(drive: &mut Drive<P>, op: Op, offset: u64, len: u64) {
    let request = request(drive, op, offset, len);
    drive.submit(&request).unwrap();
}

fn pause<P: Probe>(drive: &mut Drive<P>, pause: u64) {
    drive.advance(drive.now() + ns(pause));
}

/// Completes all requests; returns the times from `start` to their completion, in the order of submission.
fn ends<P: Probe>(drive: &mut Drive<P>, start: Time) -> Vec<u64> {
    while drive.outstanding() > 0 {
        let now = drive.now();
        drive.advance(now + ns(10_000_000));
    }
    let mut done: Vec<_> = drive.completions().map(|done| (done.id, (done.completed - start).ns())).collect();
    done.sort_unstable();
    done.into_iter().map(|(_, at)| at).collect()
}

fn flash<P: Probe>(drive: &Drive<P>, kind: FlashOp, cause: Cause) -> u64 {
    drive.stats().flash[kind as usize][cause as usize]
}

/// Returns the numbers of pages read and programmed for write-backs.
fn synced<P: Probe>(drive: &Drive<P>) -> (u64, u64) {
    assert_eq!(
        flash(drive, FlashOp::Program, Cause::Host),
        0,
        "a program is no write-back, although the drive has a cache"
    );
    (flash(drive, FlashOp::Read, Cause::Sync), flash(drive, FlashOp::Program, Cause::Sync))
}

fn dirty<P: Probe>(drive: &Drive<P>) -> u32 {
    drive.cache_units()[2]
}

#[test]
fn a_write_with_a_free_slot_takes_one_access() {
    let mut drive = filled(&cached(4, "none", &[]), 8);
    assert_eq!([write(&mut drive, 0), write(&mut drive, 0), read(&mut drive, 0)], [DRAM; 3]);
    // A read allocates a slot.
    assert_eq!([read(&mut drive, 1), read(&mut drive, 1)], [READ, DRAM]);
    // All units of a request are accessed in one access time.
    assert_eq!(one(&mut drive, Op::Write, 2 * PAGE, 2 * PAGE), DRAM);
    let cache = &drive.stats().cache;
    assert_eq!([cache.write_hits, cache.write_misses, cache.read_hits, cache.read_misses], [1, 3, 2, 1]);
    assert_eq!((synced(&drive), dirty(&drive)), ((0, 0), 3));
    settle(&mut drive);
    read_everything(&mut drive);
}

#[test]
fn the_least_recently_used_unit_is_evicted() {
    let mut drive = filled(&cached(3, "none", &[]), 8);
    for lpn in [0, 1, 2] {
        assert_eq!(read(&mut drive, lpn), READ);
    }
    // A read and a write count as uses: unit 2 is the least recently used now.
    assert_eq!([read(&mut drive, 0), write(&mut drive, 1)], [DRAM; 2]);
    assert_eq!(read(&mut drive, 3), READ);
    assert_eq!([read(&mut drive, 0), read(&mut drive, 1), read(&mut drive, 3)], [DRAM; 3]);
    assert_eq!(read(&mut drive, 2), READ);
    assert_eq!(drive.stats().cache.evictions, 2);
    settle(&mut drive);
}

#[test]
fn the_least_recently_used_cold_unit_is_evicted_first() {
    let sync = "{ smart = { budget_margin = 0.0, cold_share = 0.5 } }";
    let mut drive = filled(&cached(4, sync, &[]), 8);
    (0..5).for_each(|lpn| assert_eq!(read(&mut drive, lpn), READ));
    (1..5).for_each(|lpn| assert_eq!(read(&mut drive, lpn), DRAM));
    assert_eq!(read(&mut drive, 0), READ);
    settle(&mut drive);
}

#[test]
fn a_clean_unit_is_evicted_at_once_and_a_dirty_unit_after_its_program() {
    let mut drive = filled(&cached(1, "none", &[]), 8);
    assert_eq!([read(&mut drive, 5), write(&mut drive, 0)], [READ, DRAM]);
    assert_eq!((drive.stats().cache.evictions, drive.stats().cache.dirty_evictions), (1, 0));
    assert_eq!(write(&mut drive, 1), WRITE + DRAM);
    assert_eq!((drive.stats().cache.evictions, drive.stats().cache.dirty_evictions), (1, 1));
    assert_eq!((synced(&drive), dirty(&drive), drive.stats().cache.waiting_writes), ((0, 1), 1, 1));
    // Waiting writes get a slot in the order of submission, one slot after each program.
    let start = drive.now();
    (2..5).for_each(|lpn| send(&mut drive, Op::Write, lpn * PAGE, PAGE));
    assert_eq!(ends(&mut drive, start), [1, 2, 3].map(|n| n * WRITE + DRAM));
    settle(&mut drive);
    read_everything(&mut drive);
}

#[test]
fn a_partial_write_is_merged_when_it_is_written_back() {
    let mut drive = filled(&cached(4, "none", &[]), 2);
    assert_eq!(one(&mut drive, Op::Write, 512, 1024), DRAM);
    assert_eq!(one(&mut drive, Op::Write, 3072, 512), DRAM);
    assert_eq!((synced(&drive), flush(&mut drive), synced(&drive)), ((0, 0), READ + WRITE, (1, 1)));
    // All sectors of the unit are cached now.
    assert_eq!(
        [one(&mut drive, Op::Write, 0, 512), flush(&mut drive), read(&mut drive, 0)],
        [DRAM, WRITE, DRAM]
    );
    // When all sectors have been written, the write-back reads nothing.
    (0..8).for_each(|sector| assert_eq!(one(&mut drive, Op::Write, PAGE + sector * 512, 512), DRAM));
    assert_eq!((flush(&mut drive), synced(&drive)), (WRITE, (1, 3)));
    // The write-back of an unmapped unit reads nothing.
    assert_eq!(one(&mut drive, Op::Write, 9 * PAGE, 512), DRAM);
    assert_eq!((flush(&mut drive), synced(&drive)), (WRITE, (1, 4)));
    settle(&mut drive);
    read_everything(&mut drive);
}

#[test]
fn reads_of_cached_sectors_hit_and_reads_of_other_sectors_share_one_fetch() {
    let mut drive = filled(&cached(4, "none", &[]), 2);
    one(&mut drive, Op::Write, 1024, 1024);
    assert_eq!(one(&mut drive, Op::Read, 1024, 1024), DRAM);
    let start = drive.now();
    send(&mut drive, Op::Read, 0, 512);
    send(&mut drive, Op::Read, 512, 1024);
    send(&mut drive, Op::Read, 1536, 512);
    assert_eq!(ends(&mut drive, start), [READ + DRAM, READ + DRAM, DRAM]);
    assert_eq!((synced(&drive), drive.stats().cache.read_misses), ((1, 0), 2));
    // All sectors of the unit are now cached: its write-back reads nothing.
    assert_eq!((flush(&mut drive), synced(&drive)), (WRITE, (1, 1)));
    settle(&mut drive);
}

#[test]
fn a_partially_written_sector_is_fetched_first() {
    let mut drive = filled(&cached(4, "none", &[]), 2);
    assert_eq!(one(&mut drive, Op::Write, 100, 1000), READ + DRAM);
    assert_eq!((synced(&drive), dirty(&drive)), ((1, 0), 1));
    // A cached sector and an unmapped unit need no fetch.
    assert_eq!([one(&mut drive, Op::Write, 5, 1), one(&mut drive, Op::Write, 7 * PAGE + 5, 1)], [DRAM; 2]);
    // A cached sector is not enough for a request that begins or ends inside other sectors.
    assert_eq!(one(&mut drive, Op::Write, PAGE + 512, 512), DRAM);
    assert_eq!(one(&mut drive, Op::Write, PAGE + 600, 100), DRAM);
    assert_eq!(one(&mut drive, Op::Write, PAGE + 500, 600), READ + DRAM);
    flush(&mut drive);
    assert_eq!(synced(&drive), (2, 3));
    settle(&mut drive);
    read_everything(&mut drive);
}

#[test]
fn partial_writes_that_wait_for_one_slot_are_all_completed() {
    for mapped in [8, 0] {
        for sync in ALL {
            let mut drive = filled(&cached(1, sync, &[]), mapped);
            (0..4).for_each(|lpn| send(&mut drive, Op::Write, lpn * PAGE + 10, 100));
            let start = drive.now();
            let fetch = if mapped > 0 { READ } else { 0 };
            let step = fetch + WRITE;
            assert_eq!(ends(&mut drive, start), [0, 1, 2, 3].map(|n| n * step + fetch + DRAM), "{sync}");
            settle(&mut drive);
            read_everything(&mut drive);
        }
    }
}

#[test]
fn a_unit_whose_first_write_waits_reads_as_unmapped() {
    // The write of a part of a sector waits for the budget. It already has a slot, but the slot has no data yet.
    let mut drive = with_oracle(&cached(2, "punctual", &["cache.dirty_budget=0.5"]));
    write(&mut drive, 0);
    send(&mut drive, Op::Write, PAGE + 10, 100);
    send(&mut drive, Op::Read, PAGE, PAGE);
    settle(&mut drive);
}

#[test]
fn a_fua_write_is_completed_when_its_unit_is_in_flash() {
    for sync in ALL {
        let mut drive = with_oracle(&cached(4, sync, &[]));
        let start = drive.now();
        let fua = |drive: &Drive<Oracle>| request(drive, Op::Write, 0, PAGE).with_fua(true);
        drive.submit(&fua(&drive)).unwrap();
        assert_eq!(ends(&mut drive, start), [WRITE], "{sync}");
        assert_eq!((synced(&drive), dirty(&drive), read(&mut drive, 0)), ((0, 1), 0, DRAM));
        // A FUA write during the write-back of its unit needs another program, and does not delay the first FUA write.
        let start = drive.now();
        drive.submit(&fua(&drive)).unwrap();
        drive.submit(&fua(&drive)).unwrap();
        drive.submit(&fua(&drive)).unwrap();
        let mut at = ends(&mut drive, start);
        at.sort_unstable();
        at.dedup();
        assert_eq!(at[..2], [WRITE, 2 * WRITE], "{sync}");
        settle(&mut drive);
    }
}

#[test]
fn a_flush_waits_only_for_units_that_are_dirty_at_its_submission() {
    for sync in &ALL[..3] {
        let mut drive = with_oracle(&cached(8, sync, &[]));
        assert_eq!(flush(&mut drive), 0);
        (0..3).for_each(|lpn| _ = write(&mut drive, lpn));
        assert_eq!((flush(&mut drive), synced(&drive), dirty(&drive)), (3 * WRITE, (0, 3), 0), "{sync}");
        assert_eq!(flush(&mut drive), 0);
        // A write to the unit during its program is later than the flush, which does not wait for it.
        write(&mut drive, 0);
        let start = drive.now();
        send(&mut drive, Op::Flush, 0, 0);
        pause(&mut drive, 500_000);
        send(&mut drive, Op::Write, 0, PAGE);
        let at = ends(&mut drive, start);
        assert_eq!(at, [WRITE, 500_000 + DRAM], "{sync}");
        assert_eq!((synced(&drive), dirty(&drive)), ((0, 4), 1), "{sync}");
        // A flush submitted after such a write also waits for the program of the new data.
        let start = drive.now();
        send(&mut drive, Op::Flush, 0, 0);
        pause(&mut drive, 500_000);
        send(&mut drive, Op::Write, 0, PAGE);
        send(&mut drive, Op::Flush, 0, 0);
        assert_eq!(ends(&mut drive, start), [WRITE, 500_000 + DRAM, 2 * WRITE], "{sync}");
        settle(&mut drive);
        read_everything(&mut drive);
    }
}

#[test]
fn trimmed_units_are_not_programmed() {
    let mut drive = filled(&cached(4, "none", &[]), 2);
    write(&mut drive, 0);
    one(&mut drive, Op::Trim, 0, PAGE);
    assert_eq!((dirty(&drive), flush(&mut drive), synced(&drive)), (0, 0, (0, 0)));
    // A TRIM during the fetch of a write-back: the flush waits only for the fetch.
    one(&mut drive, Op::Write, PAGE, 512);
    let start = drive.now();
    send(&mut drive, Op::Flush, 0, 0);
    pause(&mut drive, 10_000);
    send(&mut drive, Op::Trim, PAGE, PAGE);
    assert_eq!((ends(&mut drive, start), synced(&drive), dirty(&drive)), (vec![READ, 10_000], (1, 0), 0));
    // A TRIM during the program, after an update of the unit: the program ends, and the update is dropped.
    write(&mut drive, 1);
    send(&mut drive, Op::Flush, 0, 0);
    pause(&mut drive, 10_000);
    write(&mut drive, 1);
    send(&mut drive, Op::Trim, PAGE, PAGE);
    settle(&mut drive);
    assert_eq!((synced(&drive), dirty(&drive)), ((1, 1), 0));
    drive.completions().for_each(drop);
    assert_eq!(read(&mut drive, 1), 0, "the trimmed unit is still mapped");
    settle(&mut drive);
}

#[test]
fn a_read_does_not_cache_a_unit_that_is_trimmed_or_written_during_the_read() {
    let mut drive = filled(&cached(4, "none", &[]), 8);
    for (lpn, op) in [(0, Op::Trim), (1, Op::Write)] {
        send(&mut drive, Op::Read, lpn * PAGE, PAGE);
        pause(&mut drive, 10_000);
        send(&mut drive, op, lpn * PAGE, PAGE);
        settle(&mut drive);
        drive.completions().for_each(drop);
    }
    // The oracle and the audit check the next reads.
    assert_eq!([read(&mut drive, 0), read(&mut drive, 1)], [0, DRAM]);
    settle(&mut drive);
}

#[test]
fn a_slot_freed_by_a_trim_is_allocated_at_once() {
    let mut drive = filled(&cached(2, "punctual", &["cache.dirty_budget=1.0"]), 8);
    write(&mut drive, 0);
    write(&mut drive, 1);
    let start = drive.now();
    send(&mut drive, Op::Write, 2 * PAGE, PAGE);
    pause(&mut drive, 100_000);
    send(&mut drive, Op::Trim, PAGE, PAGE);
    assert_eq!(ends(&mut drive, start), [100_000 + DRAM, 100_000]);
    settle(&mut drive);
    read_everything(&mut drive);
}

#[test]
fn an_update_of_a_unit_that_is_being_written_back_keeps_it_dirty_or_waits() {
    for sync in ALL {
        let mut drive = with_oracle(&cached(4, sync, &[]));
        let protects = sync.starts_with('{');
        write(&mut drive, 0);
        let start = drive.now();
        send(&mut drive, Op::Flush, 0, 0);
        pause(&mut drive, 100_000);
        send(&mut drive, Op::Write, 0, PAGE);
        let at = if protects { WRITE + DRAM } else { 100_000 + DRAM };
        assert_eq!(ends(&mut drive, start), [WRITE, at], "{sync}");
        assert_eq!(drive.stats().cache.blocked_updates, u64::from(protects), "{sync}");
        assert_eq!((dirty(&drive), synced(&drive).1), (1, 1), "{sync}");
        // The update has left the unit dirty, so a further flush programs it again.
        assert_eq!((flush(&mut drive), synced(&drive).1), (WRITE, 2), "{sync}");
        settle(&mut drive);
    }
}

#[test]
fn at_the_budget_punctual_writes_one_unit_back_for_each_write() {
    let mut drive = filled(&cached(10, "punctual", &["cache.dirty_budget=0.5"]), 20);
    (10..13).for_each(|lpn| _ = read(&mut drive, lpn));
    (0..5).for_each(|lpn| assert_eq!(write(&mut drive, lpn), DRAM));
    pause(&mut drive, 2 * IDLE);
    assert_eq!((synced(&drive), dirty(&drive)), ((0, 0), 5), "at the budget nothing is written back");
    // A write to a dirty unit is accepted at once; a write to another unit waits for the write-back of the oldest dirty
    // unit.
    assert_eq!([write(&mut drive, 0), write(&mut drive, 5)], [DRAM, WRITE + DRAM]);
    assert_eq!((synced(&drive), dirty(&drive)), ((0, 1), 5));
    // A write to a clean unit also waits; no unit is evicted for it.
    assert_eq!([write(&mut drive, 10), read(&mut drive, 1), read(&mut drive, 2)], [WRITE + DRAM, DRAM, DRAM]);
    assert_eq!([read(&mut drive, 11), read(&mut drive, 12)], [DRAM; 2]);
    let cache = &drive.stats().cache;
    assert_eq!((cache.evictions, cache.dirty_evictions, cache.dirty_pages_max), (0, 0, 5));
    assert_eq!(cache.waiting_writes, 2);
    settle(&mut drive);
}

#[test]
fn without_a_sync_policy_there_is_no_budget() {
    let mut drive = with_oracle(&cached(10, "none", &[]));
    (0..10).for_each(|lpn| assert_eq!(write(&mut drive, lpn), DRAM));
    pause(&mut drive, 2 * IDLE);
    assert_eq!((synced(&drive), dirty(&drive)), ((0, 0), 10));
    settle(&mut drive);
}

#[test]
fn greedy_writes_all_dirty_units_back_when_idle_and_none_before() {
    let mut drive = with_oracle(&cached(10, "greedy", &["cache.dirty_budget=0.8"]));
    (0..8).for_each(|lpn| assert_eq!(write(&mut drive, lpn), DRAM));
    pause(&mut drive, IDLE - 1);
    assert_eq!(synced(&drive), (0, 0));
    pause(&mut drive, 1 + 8 * WRITE);
    assert_eq!((synced(&drive), dirty(&drive), drive.stats().cache.syncs), ((0, 8), 0, 8));
    // The units remain in the cache as clean units. On a busy drive `greedy` works like `punctual`.
    (0..8).for_each(|lpn| assert_eq!(read(&mut drive, lpn), DRAM));
    (0..8).for_each(|lpn| assert_eq!(write(&mut drive, lpn), DRAM));
    assert_eq!(write(&mut drive, 8), WRITE + DRAM);
    assert_eq!(drive.stats().cache.dirty_pages_max, 8);
    settle(&mut drive);
}

#[test]
fn smart_writes_back_to_its_margin_when_idle() {
    let sync = "{ smart = { budget_margin = 0.2, cold_share = 0.0 } }";
    // With two dies up to four write-backs may be under way, but no more units are written back than necessary.
    let mut drive = with_oracle(&cached(25, sync, &["cache.dirty_budget=0.8", "drive.channels=2"]));
    (0..15).for_each(|lpn| assert_eq!(write(&mut drive, lpn), DRAM));
    pause(&mut drive, 2 * IDLE);
    assert_eq!((synced(&drive), dirty(&drive)), ((0, 0), 15));
    (15..20).for_each(|lpn| assert_eq!(write(&mut drive, lpn), DRAM));
    pause(&mut drive, 2 * IDLE);
    // The threshold is 16 dirty units, 0.8 of the budget of 20. With 15 dirty units nothing is written back; with 20,
    // five units are written back, so that 15 remain.
    assert_eq!((synced(&drive), dirty(&drive)), ((0, 5), 15));
    settle(&mut drive);
}

#[test]
fn smart_writes_cold_units_back_when_idle() {
    for (share, cold) in [("0.05", 1), ("0.1", 2), ("0.04", 0)] {
        let sync = format!("{{ smart = {{ budget_margin = 0.05, cold_share = {share} }} }}");
        let mut drive = filled(&cached(20, &sync, &[]), 40);
        (0..10).for_each(|lpn| assert_eq!(write(&mut drive, lpn), DRAM));
        // With a share of two slots a unit is cold if at least 18 units have been used later. 19 units are cached here,
        // so one of them is cold; with a share of one slot none is.
        (20..29).for_each(|lpn| _ = read(&mut drive, lpn));
        pause(&mut drive, 2 * IDLE);
        assert_eq!(synced(&drive).1, u64::from(cold == 2), "{share}");
        read(&mut drive, 29);
        pause(&mut drive, 2 * IDLE);
        assert_eq!((synced(&drive).1, dirty(&drive)), (cold, 10 - cold as u32), "{share}");
        settle(&mut drive);
    }
}

#[test]
fn near_the_budget_smart_evicts_dirty_units_before_clean_ones() {
    let smart = "{ smart = { budget_margin = 0.0, cold_share = 0.0 } }";
    for (sync, is_smart) in [(smart, true), ("punctual", false)] {
        let mut drive = filled(&cached(4, sync, &["cache.dirty_budget=0.5"]), 20);
        (10..12).for_each(|lpn| _ = read(&mut drive, lpn));
        (0..2).for_each(|lpn| assert_eq!(write(&mut drive, lpn), DRAM));
        assert_eq!(write(&mut drive, 2), WRITE + DRAM, "{sync}");
        let (left, stayed) = if is_smart { (0, 10) } else { (10, 0) };
        assert_eq!(read(&mut drive, stayed), DRAM, "{sync}");
        assert_eq!(read(&mut drive, left), READ, "{sync}");
        assert_eq!(drive.stats().cache.dirty_pages_max, 2);
        settle(&mut drive);
    }
    // A dirty unit is evicted from the threshold on (2 units with this share), although the budget would allow another
    // dirty unit.
    let busy = smart.replace("cold_share = 0.0", "cold_share = 0.0, busy_from = 0.5");
    let mut drive = filled(&cached(4, &busy, &[]), 20);
    (10..12).for_each(|lpn| _ = read(&mut drive, lpn));
    assert_eq!(
        [write(&mut drive, 0), write(&mut drive, 1), write(&mut drive, 2)],
        [DRAM, DRAM, WRITE + DRAM]
    );
    assert_eq!([read(&mut drive, 10), read(&mut drive, 11), read(&mut drive, 0)], [DRAM, DRAM, READ]);
    settle(&mut drive);
    // Far from the budget the least recently used unit is evicted, clean or dirty.
    let mut drive = filled(&cached(4, smart, &[]), 20);
    (10..13).for_each(|lpn| _ = read(&mut drive, lpn));
    assert_eq!([write(&mut drive, 0), write(&mut drive, 1)], [DRAM; 2]);
    assert_eq!((synced(&drive), read(&mut drive, 10)), ((0, 0), READ));
    settle(&mut drive);
}

/// The cache has four units, the budget is two units, and idle time keeps one unit of the budget free.
#[test]
fn a_burst_uses_the_margin_of_smart_and_at_the_budget_a_write_takes_one_write_back() {
    for (busy_from, is_at_budget) in [("1.0", true), ("0.5", false)] {
        let sync =
            format!("{{ smart = {{ budget_margin = 0.5, cold_share = 0.0, busy_from = {busy_from} }} }}");
        let mut drive = filled(&cached(4, &sync, &["cache.dirty_budget=0.5"]), 20);
        (10..14).for_each(|lpn| assert_eq!(read(&mut drive, lpn), READ));
        // The first write evicts clean unit 10. The second write evicts clean unit 11, or dirty unit 0.
        let second = if is_at_budget { DRAM } else { WRITE + DRAM };
        assert_eq!([write(&mut drive, 0), write(&mut drive, 1)], [DRAM, second], "{busy_from}");
        assert_eq!(dirty(&drive), if is_at_budget { 2 } else { 1 });
        if !is_at_budget {
            settle(&mut drive);
            continue;
        }
        // At the budget a write that needs a slot and room evicts the oldest dirty unit, which leaves both.
        assert_eq!(write(&mut drive, 2), WRITE + DRAM);
        assert_eq!([read(&mut drive, 12), read(&mut drive, 13), read(&mut drive, 1)], [DRAM; 3]);
        let cache = &drive.stats().cache;
        assert_eq!((cache.evictions, cache.dirty_evictions, cache.write_backs), (2, 1, 1));
        // A write that makes a clean unit dirty needs room only: the oldest dirty unit stays in the cache.
        assert_eq!(
            [write(&mut drive, 12), read(&mut drive, 2), read(&mut drive, 1)],
            [WRITE + DRAM, DRAM, DRAM]
        );
        // Of two such writes at a time, each needs a write-back of its own. Units 2 and 13 are clean.
        let start = drive.now();
        [13, 7].into_iter().for_each(|lpn| send(&mut drive, Op::Write, lpn * PAGE, PAGE));
        assert_eq!(ends(&mut drive, start), [WRITE + DRAM, 2 * WRITE + DRAM]);
        let cache = &drive.stats().cache;
        assert_eq!((cache.evictions, cache.dirty_evictions, cache.write_backs), (2, 2, 4));
        assert_eq!((cache.waiting_writes, cache.dirty_pages_max, cache.syncs), (4, 2, 0));
        // In idle time the margin is restored.
        pause(&mut drive, 2 * IDLE);
        assert_eq!((dirty(&drive), drive.stats().cache.syncs), (0, 2));
        settle(&mut drive);
        read_everything(&mut drive);
    }
}

#[test]
fn with_a_budget_of_0_every_write_is_a_write_through() {
    for sync in &ALL[1..] {
        // A budget of less than one unit counts as 0.
        for budget in ["cache.dirty_budget=0.0", "cache.dirty_budget=0.2"] {
            let mut drive = with_oracle(&cached(4, sync, &[budget]));
            for lpn in 0..6 {
                assert_eq!((write(&mut drive, lpn), dirty(&drive)), (WRITE, 0), "{sync}");
            }
            assert_eq!((read(&mut drive, 5), synced(&drive)), (DRAM, (0, 6)), "{sync}");
            settle(&mut drive);
            read_everything(&mut drive);
        }
    }
}

#[test]
fn host_units_are_counted_before_the_cache() {
    let mut drive = with_oracle(&cached(4, "none", &[]));
    (0..10).for_each(|_| _ = write(&mut drive, 0));
    assert_eq!(one(&mut drive, Op::Write, 0, 3 * PAGE - 100), DRAM);
    flush(&mut drive);
    assert_eq!(
        (drive.stats().counters.host_pages_written, drive.stats().flash_total(FlashOp::Program)),
        (13, 3)
    );
    assert_eq!((drive.stats().cache.write_backs, synced(&drive)), (3, (0, 3)));
    settle(&mut drive);
}

/// The series has an interval of 1 ms.
#[test]
fn the_series_counts_host_units_before_the_cache() {
    let mut drive = with_oracle(&cached(4, "none", &[]));
    (0..10).for_each(|_| _ = write(&mut drive, 0));
    pause(&mut drive, 3_000_000);
    write(&mut drive, 1);
    flush(&mut drive);
    drive.finish_stats();
    let series = &drive.stats().series;
    let rows = series.rows().iter().map(|row| (row.pages_written, row.programs[Cause::Sync as usize]));
    assert_eq!(rows.collect::<Vec<_>>(), [(10, 0), (0, 0), (0, 0), (1, 1), (0, 1)]);
    settle(&mut drive);
}

const WAIT: &str = "cache.read_room='wait'";

/// The numbers of host reads of flash, of read misses, and of reads that waited for a slot.
fn read_counts<P: Probe>(drive: &Drive<P>) -> [u64; 3] {
    let cache = &drive.stats().cache;
    [flash(drive, FlashOp::Read, Cause::Host), cache.read_misses, cache.waiting_reads]
}

#[test]
fn a_read_that_misses_among_dirty_units_waits_for_a_write_back_or_skips_the_cache() {
    // The cache is full of dirty units: with `skip` the read is read from flash and not cached.
    let mut drive = filled(&cached(2, "none", &[]), 8);
    assert_eq!([write(&mut drive, 0), write(&mut drive, 1), read(&mut drive, 5)], [DRAM, DRAM, READ]);
    assert_eq!(read_counts(&drive), [1, 1, 0]);
    settle(&mut drive);
    // With `wait` unit 0 is written back, unit 5 is read into its slot, and the read is answered from the slot.
    let mut drive = filled(&cached(2, "none", &[WAIT]), 8);
    assert_eq!([write(&mut drive, 0), write(&mut drive, 1)], [DRAM; 2]);
    assert_eq!(read(&mut drive, 5), WRITE + READ + DRAM);
    assert_eq!((read_counts(&drive), synced(&drive), dirty(&drive)), ([1, 1, 1], (0, 1), 1));
    assert_eq!([read(&mut drive, 5), read(&mut drive, 1)], [DRAM; 2]);
    // A clean victim leaves its slot at once.
    assert_eq!(write(&mut drive, 5), DRAM);
    flush(&mut drive);
    assert_eq!(read(&mut drive, 6), READ + DRAM);
    let cache = &drive.stats().cache;
    assert_eq!((read_counts(&drive), cache.evictions, cache.dirty_evictions), ([2, 2, 1], 1, 1));
    assert_eq!((cache.read_hits, cache.waiting_writes), (2, 0));
    settle(&mut drive);
    read_everything(&mut drive);
}

#[test]
fn reads_of_a_unit_that_is_being_read_into_its_slot_share_the_read() {
    let mut drive = filled(&cached(2, "none", &[WAIT]), 8);
    let start = drive.now();
    // A part of the unit is read; the whole unit becomes valid.
    send(&mut drive, Op::Read, 5 * PAGE + 512, 512);
    send(&mut drive, Op::Read, 5 * PAGE, PAGE);
    pause(&mut drive, 10_000);
    send(&mut drive, Op::Read, 5 * PAGE + 1024, 1024);
    // A write of the unit need not wait for the read.
    send(&mut drive, Op::Write, 5 * PAGE, 512);
    assert_eq!(ends(&mut drive, start), [READ + DRAM, READ + DRAM, READ + DRAM, 10_000 + DRAM]);
    assert_eq!((read_counts(&drive), read(&mut drive, 5)), ([1, 3, 0], DRAM));
    assert_eq!((flush(&mut drive), synced(&drive)), (WRITE, (0, 1)));
    settle(&mut drive);
    read_everything(&mut drive);
}

#[test]
fn reads_and_writes_wait_for_slots_in_the_order_of_their_arrival() {
    let mut drive = filled(&cached(1, "none", &[WAIT]), 8);
    write(&mut drive, 0);
    let start = drive.now();
    send(&mut drive, Op::Write, PAGE, PAGE);
    send(&mut drive, Op::Read, 5 * PAGE, PAGE);
    send(&mut drive, Op::Write, 2 * PAGE, PAGE);
    let (first, second) = (WRITE + DRAM, 2 * WRITE + READ + DRAM);
    assert_eq!(ends(&mut drive, start), [first, second, second]);
    assert_eq!((drive.stats().cache.waiting_writes, read_counts(&drive)), (2, [1, 1, 1]));
    // A read behind a write of the same unit is answered from the slot of the write; a hit waits for nothing.
    let start = drive.now();
    send(&mut drive, Op::Write, 3 * PAGE, PAGE);
    send(&mut drive, Op::Read, 3 * PAGE, PAGE);
    send(&mut drive, Op::Read, 2 * PAGE, PAGE);
    assert_eq!(ends(&mut drive, start), [WRITE + DRAM, WRITE + DRAM, DRAM]);
    assert_eq!((read_counts(&drive), drive.stats().cache.read_hits), ([1, 2, 2], 1));
    settle(&mut drive);
    read_everything(&mut drive);
}

/// The cache has two units and a budget of one unit.
#[test]
fn a_waiting_read_needs_no_room_in_the_budget() {
    let mut drive = filled(&cached(2, "punctual", &["cache.dirty_budget=0.5", WAIT]), 8);
    assert_eq!([read(&mut drive, 5), write(&mut drive, 0)], [READ + DRAM, DRAM]);
    // The first read evicts clean unit 5. The second read waits until unit 6, the victim, has been read from flash.
    // Unit 0 has been used between these reads, so no read needs a write-back.
    let start = drive.now();
    send(&mut drive, Op::Read, 6 * PAGE, PAGE);
    send(&mut drive, Op::Write, 0, PAGE);
    send(&mut drive, Op::Read, 7 * PAGE, PAGE);
    assert_eq!(ends(&mut drive, start), [READ + DRAM, DRAM, 2 * READ + DRAM]);
    assert_eq!((synced(&drive), read_counts(&drive)), ((0, 0), [3, 3, 1]));
    settle(&mut drive);
}

#[test]
fn with_a_budget_of_0_a_read_waits_only_for_a_write_through() {
    let mut drive = filled(&cached(1, "punctual", &["cache.dirty_budget=0.0", WAIT]), 8);
    let start = drive.now();
    send(&mut drive, Op::Write, 0, PAGE);
    send(&mut drive, Op::Read, 5 * PAGE, PAGE);
    assert_eq!(ends(&mut drive, start), [WRITE, WRITE + READ + DRAM]);
    assert_eq!([write(&mut drive, 0), read(&mut drive, 6)], [WRITE, READ + DRAM]);
    assert_eq!(read_counts(&drive), [2, 2, 1]);
    settle(&mut drive);
}

#[test]
fn a_read_of_a_unit_without_data_needs_no_slot() {
    let mut drive = filled(&cached(1, "none", &[WAIT]), 8);
    write(&mut drive, 0);
    assert_eq!(read(&mut drive, 300), 0, "the unit was never written");
    // The unit of a waiting read is trimmed: the read, which is the first in line, is answered at once.
    let start = drive.now();
    send(&mut drive, Op::Read, 5 * PAGE, PAGE);
    pause(&mut drive, 10_000);
    send(&mut drive, Op::Trim, 5 * PAGE, PAGE);
    assert_eq!(ends(&mut drive, start), [10_000; 2]);
    assert_eq!((read_counts(&drive), drive.stats().counters.unmapped_reads), ([0, 2, 1], 2));
    // A unit is trimmed while it is being read into its slot: the read returns the old data, and the slot becomes free.
    pause(&mut drive, WRITE);
    let start = drive.now();
    send(&mut drive, Op::Read, 6 * PAGE, PAGE);
    pause(&mut drive, 10_000);
    send(&mut drive, Op::Trim, 6 * PAGE, PAGE);
    assert_eq!(ends(&mut drive, start), [READ + DRAM, 10_000]);
    assert_eq!([read(&mut drive, 6), write(&mut drive, 1)], [0, DRAM]);
    settle(&mut drive);
    read_everything(&mut drive);
}

#[test]
fn power_loss_aborts_reads_that_wait_for_a_slot() {
    let mut drive = filled(&cached(1, "none", &[WAIT]), 8);
    write(&mut drive, 0);
    for waited in [100_000, WRITE + 10_000] {
        // The first cut finds the write-back of the victim under way, the second cut the read of flash.
        let sent = drive.now();
        send(&mut drive, Op::Read, 5 * PAGE, PAGE);
        send(&mut drive, Op::Read, 6 * PAGE, PAGE);
        drive.advance(sent + ns(waited));
        drive.cut_power();
        let failed: Vec<_> = drive.completions().map(|done| done.failed).collect();
        assert_eq!(failed, [Some(nandlab::drive::FailReason::PowerLost); 2]);
        assert_eq!(write(&mut drive, 0), DRAM, "after the power loss the cache is empty");
    }
    assert_eq!(read(&mut drive, 5), WRITE + READ + DRAM);
    settle(&mut drive);
    read_everything(&mut drive);
}

#[test]
fn a_read_miss_of_a_lost_unit_fails_and_the_unit_does_not_stay_in_the_cache() {
    let mut drive = filled(&cached(1, "none", &[&LOST[..], &[WAIT]].concat()), 8);
    for misses in 1..3 {
        send(&mut drive, Op::Read, 0, PAGE);
        while drive.outstanding() > 0 {
            drive.advance_to_completion(Time::NEVER);
        }
        assert_eq!(drive.completions().filter(|done| done.failed.is_some()).count(), 1);
        assert_eq!(drive.stats().cache.read_misses, misses);
        assert_eq!(drive.stats().ecc.host_uncorrectable, misses);
    }
    settle(&mut drive);
}

#[test]
fn a_read_miss_takes_its_slot_and_then_looks_up_its_map_entry() {
    let map = "ftl.map={ demand = { cache = '8B' } }";
    let mut drive = filled(&cached(1, "none", &[map, WAIT]), 8);
    drive.settle();
    // The translation page is read, then the unit.
    assert_eq!(read(&mut drive, 5), 2 * READ + DRAM);
    assert_eq!((read_counts(&drive), drive.stats().map.read_misses), ([1, 1, 0], 1));
    settle(&mut drive);
    read_everything(&mut drive);
}

#[test]
fn any_requests_are_served_while_reads_wait_for_slots() {
    for sync in ALL {
        for (units, budget) in [(1, "1.0"), (3, "0.5"), (8, "0.3")] {
            let budget = format!("cache.dirty_budget={budget}");
            let sets: &[&str] = if sync == "none" { &[WAIT] } else { &[WAIT, &budget] };
            let drive = anything(&cached(units, sync, sets), 1_000);
            assert!(drive.stats().cache.waiting_reads > 0, "{sync}: no read has waited");
        }
    }
}

/// LaLDPC's read levels, and data so old that the last level does not decode it.
const LOST: [&str; 5] = [
    "ecc.levels='laldpc'",
    "reliability.rber='vth'",
    "reliability.pe_cycles=12000",
    "reliability.retention='21900d'",
    "cache.access='1us'",
];

#[test]
fn sectors_merged_from_a_lost_unit_are_lost() {
    let mut drive = filled(&cached(1, "none", &LOST), 8);
    one(&mut drive, Op::Write, 512, 512);
    let failed = |drive: &mut Drive<Oracle>, offset: u64, len: u64| {
        send(drive, Op::Read, offset, len);
        while drive.outstanding() > 0 {
            drive.advance_to_completion(Time::NEVER);
        }
        let done: Vec<bool> = drive.completions().map(|done| done.failed.is_some()).collect();
        done == [true]
    };
    // The written sector can be read. The other sectors cannot, even when they are in the cache.
    assert!(!failed(&mut drive, 512, 512));
    assert!(failed(&mut drive, 0, PAGE));
    assert!(failed(&mut drive, 0, 512), "the sectors are lost in the cache as well");
    assert!(!failed(&mut drive, 512, 512));
    // A write of a part of a lost sector leaves the sector lost; a write of the whole sector makes it readable.
    one(&mut drive, Op::Write, 2048 + 7, 100);
    one(&mut drive, Op::Write, 2560, 512);
    assert!(failed(&mut drive, 2048, 512));
    assert!(!failed(&mut drive, 2560, 512));
    // The unit is marked as lost in flash.
    flush(&mut drive);
    write(&mut drive, 300);
    assert!(failed(&mut drive, 0, 512), "the unit has been evicted");
    // A unit that is written whole is readable again.
    assert_eq!(one(&mut drive, Op::Write, PAGE, 512), WRITE + DRAM);
    assert!(failed(&mut drive, PAGE, PAGE));
    write(&mut drive, 1);
    flush(&mut drive);
    write(&mut drive, 300);
    assert!(!failed(&mut drive, PAGE, PAGE));
    settle(&mut drive);
}

#[test]
fn write_backs_fail_when_lanes_are_worn_out() {
    for sync in ALL {
        let sets = ["drive.endurance=20", "drive.op=0.6", "gc.idle_after='1ms'"];
        let mut drive = with_oracle(&cached(16, sync, &sets));
        let units = u64::from(drive.geometry().logical_units);
        let mut stream = Stream::new(7, "end");
        let (mut sent, mut done) = (0, 0);
        while sent < 40_000 {
            while drive.outstanding() < 4 && sent < 40_000 {
                let op = if stream.below(50) == 0 { Op::Flush } else { Op::Write };
                let fua = op == Op::Write && stream.below(10) == 0;
                let (offset, len) = if op == Op::Flush { (0, 0) } else { (stream.below(units) * PAGE, PAGE) };
                drive.submit(&request(&drive, op, offset, len).with_fua(fua)).unwrap();
                sent += 1;
            }
            assert!(
                drive.advance_to_completion(Time::NEVER),
                "{sync}: {} requests hang",
                drive.outstanding()
            );
            done += drive.completions().count();
        }
        drive.run_until_idle(nandlab::drive::IDLE_LIMIT).unwrap();
        done += drive.completions().count();
        assert_eq!((done, drive.outstanding()), (sent, 0), "{sync}");
        assert!(
            drive.stats().counters.failed_pages > 0,
            "{sync}: no unit has failed, so no lane is worn out"
        );
        // An acknowledged unit that could not be written back is a media error; its reads never return older data.
        read_everything(&mut drive);
        assert!(drive.stats().counters.media_errors > 0, "{sync}");
    }
}

/// Returns a drive after `requests` random requests of all kinds and lengths, some of them not aligned to sectors.
fn anything(spec: &Spec, requests: u32) -> Drive<Oracle> {
    let mut drive = with_oracle(spec);
    let unit = u64::from(drive.geometry().unit_bytes);
    let span = drive.geometry().logical_bytes();
    let mut stream = Stream::new(11, "anything");
    for _ in 0..requests {
        let op = [Op::Read, Op::Write, Op::Write, Op::Write, Op::Trim, Op::Flush][stream.below(6) as usize];
        let grain = [1, 512, unit][stream.below(3) as usize];
        let offset = stream.below(span / grain) * grain;
        let len = ((1 + stream.below(2 * unit / grain)) * grain).min(span - offset);
        let (offset, len) = if op == Op::Flush { (0, 0) } else { (offset, len) };
        let fua = op == Op::Write && stream.below(10) == 0;
        drive.submit(&request(&drive, op, offset, len).with_fua(fua)).unwrap();
        drive.advance(drive.now() + ns(stream.below(300_000)));
    }
    settle(&mut drive);
    read_everything(&mut drive);
    drive
}

#[test]
fn pages_of_any_size_are_cached() {
    for size in ["512B", "1KiB", "32KiB", "128KiB", "1MiB"] {
        for sync in ALL {
            let page = format!("drive.page_size='{size}'");
            anything(
                &cached(
                    0,
                    "none",
                    &[
                        &page,
                        "cache.size='4MiB'",
                        &format!(
                            "cache.sync={}",
                            if sync.starts_with('{') { sync.to_owned() } else { format!("'{sync}'") }
                        ),
                    ],
                ),
                1_000,
            );
        }
    }
    // The cache distinguishes 64 parts of a unit: sectors in units up to 32 KiB, parts of 2 KiB in units of 128 KiB.
    let mut drive = filled(&cached(0, "none", &["drive.page_size='32KiB'", "cache.size='1MiB'"]), 4);
    assert_eq!(
        [one(&mut drive, Op::Write, 31 * 1024 + 512, 512), one(&mut drive, Op::Read, 31 * 1024 + 512, 512)],
        [DRAM; 2]
    );
    assert_eq!(
        (one(&mut drive, Op::Write, 32768, 32768), flush(&mut drive) > 0, synced(&drive)),
        (DRAM, true, (1, 2))
    );
    let mut drive = filled(&cached(0, "none", &["drive.page_size='128KiB'", "cache.size='1MiB'"]), 4);
    assert_eq!(one(&mut drive, Op::Write, 2048, 2048), DRAM);
    assert!(one(&mut drive, Op::Write, 512, 512) > DRAM);
}

#[test]
fn a_cache_larger_than_the_drive_holds_all_of_it() {
    let mut drive = with_oracle(&cached(1 << 20, "none", &[]));
    assert_eq!(drive.cache_units(), [320, 320, 0]);
    (0..320).for_each(|lpn| assert_eq!(write(&mut drive, lpn), DRAM));
    (0..320).for_each(|lpn| assert_eq!(read(&mut drive, lpn), DRAM));
    assert_eq!(dirty(&drive), 320);
    flush(&mut drive);
    assert_eq!((dirty(&drive), synced(&drive)), (0, (0, 320)));
    settle(&mut drive);
}

#[test]
fn the_map_entry_of_a_write_is_looked_up_at_its_write_back() {
    let map = "ftl.map={ demand = { cache = '8B' } }";
    let mut drive = filled(&cached(4, "none", &[map]), 8);
    drive.settle();
    assert_eq!([write(&mut drive, 0), write(&mut drive, 0), read(&mut drive, 0)], [DRAM; 3]);
    assert_eq!(drive.stats().map.write_misses + drive.stats().map.read_misses, 0);
    assert_eq!(flush(&mut drive), READ + WRITE);
    assert_eq!(flash(&drive, FlashOp::Read, Cause::Mapping), 1);
    // A merge looks up the map entry once.
    one(&mut drive, Op::Write, 5 * PAGE, 512);
    drive.run_until_idle(nandlab::drive::IDLE_LIMIT).unwrap();
    let before = flash(&drive, FlashOp::Read, Cause::Mapping);
    send(&mut drive, Op::Flush, 0, 0);
    drive.advance_to_completion(Time::NEVER);
    assert!(
        flash(&drive, FlashOp::Read, Cause::Mapping) <= before + 2,
        "more than one read for the miss and one for the eviction"
    );
    settle(&mut drive);
    read_everything(&mut drive);
}

#[test]
fn a_drive_with_dirty_cached_units_is_not_saved() {
    let mut drive = with_oracle(&cached(4, "none", &[]));
    write(&mut drive, 0);
    drive.run_until_idle(nandlab::drive::IDLE_LIMIT).unwrap();
    assert!(matches!(drive.save(std::io::sink()), Err(nandlab::drive::SaveError::Dirty(1))));
}
