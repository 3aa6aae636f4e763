//! EC-Cache: pages that are read often decode at a lower read level, because their error positions are known.

use crate::common::{TINY, at, ns, one, read_everything, settle, spec, submit_with_few, with_oracle};
use nandlab::base::geometry::{Lpn, UnitId};
use nandlab::base::rng::Stream;
use nandlab::drive::Drive;
use nandlab::flash::{Condition, Reliability};
use nandlab::host::{Op, Oracle};

const PE_CYCLES: u32 = 12_000;
const DAY_S: u32 = 86_400;

/// Returns a drive on which a day of ageing takes a second. No block comes due, unless `sets` change the interval.
fn drive(cache: &str, sets: &[&str]) -> Drive<Oracle> {
    let text = format!(
        "{TINY}[ecc]\nlevels = 'laldpc'\nstart = 'first'\n[reliability]\nrber = 'vth'\npe_cycles = {PE_CYCLES}\n\
         clock_scale = {DAY_S}\n[refresh]\npolicy.ec-cache = {cache}\ninterval = [{{ pe = 1000000, every = '36500d' }}]\n"
    );
    with_oracle(&spec(&text, sets))
}

fn unit(drive: &Drive<Oracle>, lpn: u32) -> UnitId {
    drive.ftl().map.get(Lpn(lpn)).expect("the LPN has been written")
}

fn read(drive: &mut Drive<Oracle>, lpn: u32, times: u32) -> u64 {
    (0..times).map(|_| one(drive, Op::Read, u64::from(lpn) * 4096, 4096)).last().expect("at least once")
}

fn write(drive: &mut Drive<Oracle>, lpn: u32) {
    one(drive, Op::Write, u64::from(lpn) * 4096, 4096);
}

/// Returns the RBER that a page has now, from wear and age by the reliability model.
fn rber(drive: &Drive<Oracle>, lpn: u32) -> f64 {
    let (superblock, index) = drive.geometry().split(unit(drive, lpn));
    let now = nandlab::flash::AgeClock::new(f64::from(DAY_S)).at(drive.now());
    let condition = Condition {
        pe_cycles: drive.array().superblock(superblock).pe_cycles,
        age_s: drive.array().stamp(unit(drive, lpn)).corrected.age_s(now),
        reads: 0,
        copybacks: 0,
        kind: drive.array().shapes().first().kind(index),
    };
    Reliability::new(&drive.spec().reliability).rber(&condition)
}

/// Returns the latency, in nanoseconds, of a read that decodes at `level` after tries at all lower levels.
fn read_ns(drive: &Drive<Oracle>, level: u8) -> u64 {
    let cost = |level| drive.array().shapes().first().read(0, level, level > 1);
    let of = |level| cost(level).sense_ns + cost(level).transfer_ns + cost(level).decode_ns;
    (1..=level).map(|level| of(level).ns()).sum()
}

#[test]
fn a_unit_that_is_read_often_decodes_at_a_lower_level() {
    let mut drive = drive("{}", &[]);
    write(&mut drive, 0);
    drive.advance(at(100_000_000_000));
    let found = rber(&drive, 0);
    let level = drive.ecc().level_for(found);
    assert!((2..=7).contains(&level));
    for _ in 0..7 {
        assert_eq!(read(&mut drive, 0, 1), read_ns(&drive, level));
        assert_eq!(drive.cached_rber(unit(&drive, 0)), None);
    }
    assert_eq!(read(&mut drive, 0, 1), read_ns(&drive, level), "the eighth read already uses known errors");
    let known = drive.cached_rber(unit(&drive, 0)).expect("the error cache has the page's errors");
    assert!((known - rber(&drive, 0)).abs() < 1e-15);
    assert_eq!(read(&mut drive, 0, 1), read_ns(&drive, 1), "all errors are known");
    // The position of an error among the 32,768 bits of 4 KiB takes 15 bits.
    let errors = (rber(&drive, 0) * 32_768.0).round() as u64;
    let state = drive.error_cache().unwrap();
    assert_eq!((state.entries, state.bytes), (1, 8 + (errors * 15).div_ceil(8)));
    // Errors that have arisen since then are unknown at the next read, and known after it.
    drive.advance(at(1_000_000_000_000));
    let before = drive.cached_rber(unit(&drive, 0)).unwrap();
    let (all, new) = (rber(&drive, 0), rber(&drive, 0) - before);
    assert!(drive.ecc().level_for(all) > drive.ecc().level_for(new));
    let new_level = drive.ecc().level_for(new);
    assert_eq!(read(&mut drive, 0, 1), read_ns(&drive, new_level));
    assert!(drive.cached_rber(unit(&drive, 0)).unwrap() > before);
    let stats = &drive.stats().refresh;
    assert_eq!((stats.cached_reads, stats.lower_level_reads, stats.known_errors_evicted), (2, 2, 0));
    settle(&mut drive);
}

#[test]
fn the_least_recently_read_entry_is_evicted() {
    let mut drive = drive("{ size = '1536B', hot_reads = 2 }", &[]);
    (0..4).for_each(|lpn| write(&mut drive, lpn));
    drive.advance(at(100_000_000_000));
    let known = |drive: &Drive<Oracle>| -> Vec<u32> {
        (0..4).filter(|&lpn| drive.cached_rber(unit(drive, lpn)).is_some()).collect()
    };
    (0..3).for_each(|lpn| {
        read(&mut drive, lpn, 2);
    });
    let bytes = drive.error_cache().unwrap().bytes;
    assert!(
        bytes <= 1536 && bytes / 3 * 4 > 1536,
        "the cache must have room for three entries, but not for four: {bytes}"
    );
    assert_eq!(known(&drive), [0, 1, 2]);
    read(&mut drive, 0, 1);
    read(&mut drive, 3, 2);
    assert_eq!(known(&drive), [0, 2, 3], "page 1 was read least recently");
    assert_eq!(drive.stats().refresh.known_errors_evicted, 1);
    assert!(drive.error_cache().unwrap().bytes <= 1536);
    settle(&mut drive);
}

#[test]
fn an_entry_is_dropped_with_its_unit() {
    let cached = || {
        let mut drive = drive("{ hot_reads = 1 }", &[]);
        (0..8).for_each(|lpn| write(&mut drive, lpn));
        drive.advance(at(100_000_000_000));
        read(&mut drive, 5, 1);
        assert_eq!(drive.error_cache().unwrap().entries, 1);
        let old = unit(&drive, 5);
        (drive, old)
    };
    let gone = |drive: &mut Drive<Oracle>, old| {
        assert_eq!(drive.cached_rber(old), None);
        settle(drive);
    };
    let (mut drive, old) = cached();
    write(&mut drive, 5);
    settle(&mut drive);
    gone(&mut drive, old);
    assert_eq!(drive.error_cache().unwrap().bytes, 0);

    let (mut drive, old) = cached();
    one(&mut drive, Op::Trim, 5 * 4096, 4096);
    gone(&mut drive, old);

    // GC moves the page: the copy is young and has no known errors.
    let (mut drive, old) = cached();
    let mut stream = Stream::new(1, "gc");
    let others = u64::from(drive.geometry().logical_units) - 8;
    while unit(&drive, 5) == old {
        write(&mut drive, 8 + stream.below(others) as u32);
    }
    settle(&mut drive);
    gone(&mut drive, old);
    assert_eq!(drive.cached_rber(unit(&drive, 5)), None);

    // Power loss empties the error cache, which is in RAM.
    let (mut drive, old) = cached();
    drive.cut_power();
    gone(&mut drive, old);
    assert_eq!(drive.error_cache().unwrap().entries, 0);
}

#[test]
fn random_runs_with_the_error_cache_lose_no_data() {
    let (mut lower, mut evicted, mut refreshed) = (0, 0, 0);
    for seed in 0..24 {
        let mut stream = Stream::new(seed, "ec-cache");
        let cache =
            ["{ size = '4KiB', hot_reads = 2 }", "{ size = '64KiB', hot_reads = 3 }"][seed as usize % 2];
        let map = ["ftl.map='page'", "ftl.map={demand={cache='128B'}}"][stream.below(2) as usize];
        let multi = ["timing.multi_plane=true", "timing.multi_plane=false"][stream.below(2) as usize];
        let start = ["ecc.start='first'", "ecc.start='last-level'"][stream.below(2) as usize];
        let copyback = ["migration.policy='off-chip'", "migration.policy={rcopyback={limit=2}}"]
            [stream.below(2) as usize];
        let interval = "refresh.interval=[{pe=1000000,every='30d'}]";
        let mut drive =
            drive(cache, &[map, multi, start, copyback, interval, "drive.op=1", "drive.blocks_per_plane=24"]);
        let units = u64::from(drive.geometry().logical_units);
        for _ in 0..2000 {
            let lpn = stream.below(units).min(stream.below(units));
            let op = [Op::Read, Op::Read, Op::Read, Op::Write, Op::Write, Op::Trim][stream.below(6) as usize];
            submit_with_few(&mut drive, op, lpn * 4096, 4096);
            if stream.below(20) == 0 {
                drive.advance(drive.now() + ns(stream.below(2_000_000_000)));
                drive.completions();
            }
            if stream.below(100) == 0 {
                drive.audit().unwrap_or_else(|e| panic!("audit: {e}"));
            }
            if stream.below(1000) == 0 {
                drive.cut_power();
                drive.completions();
            }
        }
        settle(&mut drive);
        read_everything(&mut drive);
        let stats = &drive.stats().refresh;
        lower += stats.lower_level_reads;
        evicted += stats.known_errors_evicted;
        refreshed += stats.blocks;
    }
    assert!(lower > 100 && evicted > 100 && refreshed > 100, "{lower} {evicted} {refreshed}");
}
