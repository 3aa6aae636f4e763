//! Refresh: due times of superblocks, time and operations of a refresh, and the age of refreshed data.

use crate::common::{TINY, at, ns, one, read_everything, settle, spec, submit_with_few, with_oracle};
use nandlab::base::geometry::Lpn;
use nandlab::base::rng::Stream;
use nandlab::base::units::Time;
use nandlab::drive::Drive;
use nandlab::flash::{AgeClock, Condition, Reliability};
use nandlab::host::{Op, Oracle, Request};
use nandlab::sched::{Cause, FlashOp};

const AGEING: &str = "[ecc]\nlevels = 'laldpc'\n[reliability]\nrber = 'vth'\npe_cycles = 1500\n";

#[test]
fn data_that_is_not_rewritten_is_refreshed_every_interval() {
    let text = TINY.to_owned() + AGEING + "clock_scale = 86400.0\n[refresh]\npolicy = 'fcr'\n";
    let mut drive = with_oracle(&spec(&text, &[]));
    let units = u64::from(drive.geometry().logical_units);
    for lpn in 0..units {
        let request = Request::write(lpn * 4096, 4096).at(drive.now());
        drive.submit(&request).unwrap();
    }
    drive.run_until_idle(nandlab::drive::IDLE_LIMIT).unwrap();
    assert_eq!(drive.stats().refresh.blocks, 0);
    // A day of ageing takes a second; superblocks with 1001 to 2000 P/E cycles are due every 30 days.
    drive.advance(at(29_000_000_000));
    assert_eq!(drive.stats().refresh.blocks, 0);
    drive.advance(at(31_500_000_000));
    let stats = drive.stats();
    // Every unit is refreshed once. Units that are refreshed into a superblock which GC had opened earlier are
    // refreshed again with that superblock.
    assert!((units..units + 4 * 8).contains(&stats.refresh.pages), "{:?}", stats.refresh);
    assert_eq!(stats.flash[FlashOp::Program as usize][Cause::Refresh as usize], stats.refresh.pages);
    assert_eq!(stats.refresh.late_blocks, 0, "{:?}", stats.refresh);
    drive.advance(at(63_000_000_000));
    assert!((2 * units..2 * units + 8 * 8).contains(&drive.stats().refresh.pages));
    settle(&mut drive);
    read_everything(&mut drive);
}

#[test]
fn refresh_and_gc_together_lose_no_data() {
    for (seed, policy) in ["'fcr'", "{ fcr = { full_strength = true } }"].into_iter().enumerate() {
        let text = TINY.to_owned() + AGEING + "clock_scale = 2592000.0\n[refresh]\npolicy = " + policy + "\n";
        let mut drive = with_oracle(&spec(&text, &["drive.op=1"]));
        let mut stream = Stream::new(seed as u64, "refresh");
        let units = u64::from(drive.geometry().logical_units);
        for _ in 0..5000 {
            let lpn = stream.below(units);
            let op = if stream.below(3) == 0 { Op::Read } else { Op::Write };
            let request = Request::new(op, lpn * 4096, 4096).at(drive.now());
            while drive.outstanding() > 4 {
                drive.completions();
                assert!(drive.advance_to_completion(Time::NEVER));
            }
            drive.submit(&request).unwrap();
            if stream.below(20) == 0 {
                drive.advance(drive.now() + ns(stream.below(50_000_000)));
            }
        }
        settle(&mut drive);
        let stats = drive.stats();
        assert!(stats.refresh.blocks > 20 && stats.gc.victims > 20, "{:?}", stats.refresh);
        assert_eq!(stats.counters.media_errors, 0);
        read_everything(&mut drive);
    }
}

/// Returns a drive of one plane with three full superblocks: A with LPNs 0 to 7, B with 8 to 15, C with 16 to 23. A day
/// of ageing takes a second. The superblocks are due after ten days, at 10.0009 s, 10.0082 s and 10.0155 s. Half of the
/// grace, which is 1 % of the interval, takes 50 ms.
fn three_superblocks(sets: &[&str]) -> Drive<Oracle> {
    let mut drive = one_plane(sets);
    for lpn in 0..24 {
        one(&mut drive, Op::Write, lpn * 4096, 4096);
    }
    drive
}

/// Returns a fresh drive of one plane, on which superblocks are due after ten days and a day of ageing takes a second.
fn one_plane(sets: &[&str]) -> Drive<Oracle> {
    let refresh =
        "clock_scale = 86400.0\n[refresh]\npolicy = 'fcr'\ninterval = [{ pe = 1000000, every = '10d' }]\n";
    let text = TINY.to_owned() + AGEING + refresh;
    let one_plane =
        ["drive.channels=1", "drive.planes_per_die=1", "drive.blocks_per_plane=40", "drive.op=1.0"];
    with_oracle(&spec(&text, &[&one_plane, sets].concat()))
}

#[test]
fn half_of_the_grace_promotes_the_job_of_the_superblock() {
    // The eight reads of superblock A take 160 ms.
    let mut drive = three_superblocks(&["timing.read=20ms", "ecc.levels='none'", "reliability.rber='none'"]);
    drive.advance(at(10_050_500_000));
    assert_eq!((drive.stats().refresh.blocks, drive.stats().refresh.promoted), (1, 0));
    drive.advance(at(10_051_500_000));
    assert_eq!((drive.stats().refresh.blocks, drive.stats().refresh.promoted), (1, 1));
}

#[test]
fn half_of_the_grace_promotes_the_job_before_the_superblock() {
    // The erase of superblock A begins before 10.02 s and takes 200 ms. The superblock then has no valid unit, so its
    // alarm is void.
    let mut drive = three_superblocks(&["timing.erase=200ms"]);
    drive.advance(at(10_057_500_000));
    assert_eq!((drive.stats().refresh.blocks, drive.stats().refresh.promoted), (1, 0));
    drive.advance(at(10_059_000_000));
    assert_eq!((drive.stats().refresh.blocks, drive.stats().refresh.promoted), (1, 1));
    // Superblock C hurries at 10.0655 s, when the job is urgent already.
    drive.advance(at(10_070_000_000));
    assert_eq!((drive.stats().refresh.blocks, drive.stats().refresh.promoted), (1, 1));
}

#[test]
fn half_of_the_grace_promotes_no_job_for_a_superblock_that_is_not_next() {
    let mut drive = three_superblocks(&["timing.erase=200ms"]);
    drive.advance(at(10_030_000_000));
    // Superblock B, which is next, holds no data any more, so only superblock C hurries.
    let trim = Request::trim(8 * 4096, 8 * 4096).at(drive.now());
    drive.submit(&trim).unwrap();
    drive.advance(at(10_150_000_000));
    assert_eq!((drive.stats().refresh.blocks, drive.stats().refresh.promoted), (1, 0));
    settle(&mut drive);
    read_everything(&mut drive);
}

/// Submits a write and a read of other units while a superblock with LPNs 0 to 7 is being refreshed, and returns three
/// times: the end of the refresh, and the ends of the write and the read. The times count from the beginning of the
/// refresh.
fn write_and_read_during_a_refresh(priority: &str) -> [u64; 3] {
    let priority = format!("refresh.priority={priority}");
    let mut drive = one_plane(&["ecc.levels='none'", "reliability.rber='none'", &priority]);
    for lpn in 0..8 {
        one(&mut drive, Op::Write, lpn * 4096, 4096);
    }
    // The next superblock, which holds LPN 20, is due a second later.
    drive.advance(at(1_000_000_000));
    one(&mut drive, Op::Write, 20 * 4096, 4096);
    while drive.stats().refresh.blocks == 0 {
        assert!(drive.advance_by_event(at(u64::MAX - 1)));
    }
    let began = drive.now();
    // The first copies are under way.
    drive.advance(began + ns(100_000));
    let request = |op, lpn: u64| Request::new(op, lpn * 4096, 4096).at(drive.now());
    let [write, read] = [request(Op::Write, 30), request(Op::Read, 20)];
    drive.submit(&write).unwrap();
    drive.submit(&read).unwrap();
    let mut ends = [0; 2];
    while ends.contains(&0) {
        assert!(drive.advance_to_completion(at(u64::MAX - 1)));
        for done in drive.completions() {
            ends[usize::from(done.request.op == Op::Read)] = (done.completed - began).ns();
        }
    }
    drive.advance(began + ns(100_000_000));
    assert_eq!(drive.stats().refresh.blocks, 1);
    let refresh = drive.stats().refresh.busy_ns.ns();
    settle(&mut drive);
    read_everything(&mut drive);
    [refresh, ends[0], ends[1]]
}

#[test]
fn refresh_goes_before_host_writes_or_before_the_host_from_its_start_to_its_end() {
    // Times of a read and of a program with their transfers, of an erase, and of decoding off the die.
    let (read, write, erase, decode) = (50_000 + 10_240, 10_240 + 900_000, 3_500_000, 15_000);
    let refresh = 8 * (read + write) + erase;
    let [end, write_end, read_end] = write_and_read_during_a_refresh("first");
    assert_eq!([end, read_end, write_end], [refresh, refresh + read + decode, refresh + read + write]);
    let [end, write_end, read_end] = write_and_read_during_a_refresh("before-writes");
    // The read waits for the operation under way, and the refresh waits for the read.
    let under_way = 100_000_u64.div_ceil(read) * read;
    assert_eq!(
        [end, read_end, write_end],
        [refresh + read, under_way + read + decode, refresh + read + write]
    );
    let [end, write_end, read_end] = write_and_read_during_a_refresh("background");
    assert_eq!(
        [end, read_end, write_end],
        [refresh + read + write, under_way + read + decode, under_way + read + write]
    );
}

#[test]
fn without_due_superblocks_refresh_changes_nothing() {
    let run = |policy: &str| {
        let text = TINY.to_owned() + AGEING + "[refresh]\npolicy = " + policy + "\n";
        let mut drive = with_oracle(&spec(&text, &[]));
        let mut stream = Stream::new(7, "refresh");
        let units = u64::from(drive.geometry().logical_units);
        for _ in 0..3000 {
            let offset = stream.below(units) * 4096;
            let request = Request::write(offset, 4096).at(drive.now());
            while drive.outstanding() > 4 {
                drive.completions();
                assert!(drive.advance_to_completion(Time::NEVER));
            }
            drive.submit(&request).unwrap();
        }
        settle(&mut drive);
        (drive.now(), drive.stats().flash)
    };
    assert_eq!(run("'none'"), run("'fcr'"));
}

/// Returns a drive of one plane with refresh in place, on which a day of ageing takes a second.
fn in_place(settings: &str, sets: &[&str]) -> Drive<Oracle> {
    let text = TINY.to_owned()
        + AGEING
        + "clock_scale = 86400.0\n[refresh]\npolicy = { fcr = { in_place = true"
        + settings
        + " } }\n";
    with_oracle(&spec(&text, &[&["drive.channels=1", "drive.planes_per_die=1"], sets].concat()))
}

/// Returns the RBER that an LPN has now, from wear and age by the reliability model.
fn rber(drive: &Drive<Oracle>, lpn: u32) -> f64 {
    let unit = drive.ftl().map.get(Lpn(lpn)).expect("the LPN has been written");
    let (superblock, index) = drive.geometry().split(unit);
    let now = AgeClock::new(86_400.0).at(drive.now());
    let condition = Condition {
        pe_cycles: drive.array().superblock(superblock).pe_cycles,
        age_s: drive.array().stamp(unit).corrected.age_s(now),
        reads: 0,
        copybacks: 0,
        kind: drive.array().shapes().first().kind(index),
    };
    Reliability::new(&drive.spec().reliability).rber(&condition)
}

/// Returns two times of a read that decodes at `level` after tries at all lower levels: on die and channel, and in the
/// decoder.
fn read_ns(drive: &Drive<Oracle>, level: u8) -> (u64, u64) {
    let cost = |level| drive.array().shapes().first().read(0, level, level > 1);
    let on_die = (1..=level).map(|level| (cost(level).sense_ns + cost(level).transfer_ns).ns()).sum();
    (on_die, (1..=level).map(|level| cost(level).decode_ns.ns()).sum())
}

fn flash(drive: &Drive<Oracle>, kind: FlashOp) -> u64 {
    drive.stats().flash[kind as usize][Cause::Refresh as usize]
}

#[test]
fn a_page_is_refreshed_in_place() {
    let mut drive = in_place(", reprogram_error = 0.002", &[]);
    one(&mut drive, Op::Write, 0, 4096);
    let unit = drive.ftl().map.get(Lpn(0));
    let written = drive.now();
    drive.advance(written + ns(29_999_000_000));
    assert_eq!(drive.stats().refresh.blocks, 0);
    let level = drive.ecc().level_for(rber(&drive, 0));
    drive.advance(written + ns(31_000_000_000));
    // The refresh consists of read, decoding, transfer in and program.
    let (on_die, decode) = read_ns(&drive, level);
    let refresh = &drive.stats().refresh;
    assert_eq!(refresh.busy_ns, ns(on_die + decode + 10_240 + 900_000));
    assert_eq!((refresh.blocks, refresh.blocks_in_place, refresh.pages_in_place), (1, 1, 1));
    assert_eq!((flash(&drive, FlashOp::Program), flash(&drive, FlashOp::Erase)), (1, 0));
    assert_eq!(drive.stats().waf(), Some(2.0));
    assert_eq!(drive.ftl().map.get(Lpn(0)), unit);
    // The page's data is young again, but has the errors that the reprogram added.
    let corrected = drive.array().stamp(unit.unwrap()).corrected;
    assert!(corrected.age_s(AgeClock::new(86_400.0).at(drive.now())) <= 86_400);
    // The superblock is refreshed in every interval of 30 days: three times in 100 days.
    drive.advance(written + ns(100_000_000_000));
    let refresh = &drive.stats().refresh;
    assert_eq!((refresh.blocks, refresh.pages_in_place, refresh.late_blocks), (3, 3, 0));
    let disturbed = drive.ecc().level_for(rber(&drive, 0) + 3.0 * 0.002);
    assert_ne!(disturbed, drive.ecc().level_for(rber(&drive, 0)));
    let (on_die, decode) = read_ns(&drive, disturbed);
    assert_eq!(one(&mut drive, Op::Read, 0, 4096), on_die + decode);
    settle(&mut drive);
}

#[test]
fn a_superblock_is_refreshed_in_place() {
    let mut drive = in_place(", reprogram_error = 0.0005", &[]);
    (0..8).for_each(|lpn| {
        one(&mut drive, Op::Write, lpn * 4096, 4096);
    });
    drive.advance(at(31_000_000_000));
    let refresh = &drive.stats().refresh;
    assert_eq!((refresh.blocks, refresh.pages_in_place), (1, 8));
    // Up to four pages are being refreshed at a time, so the die is busy from the first read to the last program, and
    // never waits for decoding.
    let level = drive.ecc().level_for(rber(&drive, 0));
    assert_eq!(level, 1);
    assert_eq!(refresh.busy_ns, ns(8 * (read_ns(&drive, 1).0 + 10_240 + 900_000)));
    assert_eq!((flash(&drive, FlashOp::Read), flash(&drive, FlashOp::Program)), (8, 8));
    assert_eq!(drive.stats().flash_total(FlashOp::Erase), 0);
    // Every reprogram in the superblock has added errors to every page.
    for lpn in 0..8 {
        let level = drive.ecc().level_for(rber(&drive, lpn) + 8.0 * 0.0005);
        let (on_die, decode) = read_ns(&drive, level);
        assert_eq!(one(&mut drive, Op::Read, u64::from(lpn) * 4096, 4096), on_die + decode);
    }
    drive.advance(at(62_000_000_000));
    assert_eq!((drive.stats().refresh.blocks, drive.stats().refresh.pages_in_place), (2, 16));
    settle(&mut drive);
}

#[test]
fn a_superblock_disturbed_too_much_is_remapped() {
    // Eight programs in place add 0.004 to the RBER: the first refresh finds 0, the second 0.004.
    for (limit, superblocks_in_place, erases) in [("0.003", [1, 1], [0, 1]), ("0.004", [1, 2], [0, 0])] {
        let mut drive = in_place(&format!(", reprogram_error = 0.0005, remap_above = {limit}"), &[]);
        (0..8).for_each(|lpn| {
            one(&mut drive, Op::Write, lpn * 4096, 4096);
        });
        for interval in 0..2 {
            drive.advance(at(31_000_000_000 * (interval as u64 + 1)));
            let refresh = &drive.stats().refresh;
            assert_eq!(refresh.blocks, interval as u64 + 1, "{limit}");
            assert_eq!(refresh.blocks_in_place, superblocks_in_place[interval], "{limit}");
            assert_eq!(flash(&drive, FlashOp::Erase), erases[interval], "{limit}");
        }
        // Data that has been moved is free of the errors of its old superblock.
        let unit = drive.ftl().map.get(Lpn(0)).expect("the LPN has been written");
        let (superblock, _) = drive.geometry().split(unit);
        assert_eq!(drive.array().rare(superblock).reprograms == 0, erases[1] == 1, "{limit}");
        settle(&mut drive);
        read_everything(&mut drive);
    }
}

#[test]
fn host_requests_during_a_refresh_in_place_take_effect() {
    let mut drive = in_place("", &[]);
    (0..8).for_each(|lpn| {
        one(&mut drive, Op::Write, lpn * 4096, 4096);
    });
    drive.advance(at(29_000_000_000));
    while drive.stats().refresh.pages_in_place == 0 {
        assert!(drive.advance_by_event(at(u64::MAX - 1)));
    }
    one(&mut drive, Op::Write, 0, 4096);
    one(&mut drive, Op::Trim, 4096, 4096);
    settle(&mut drive);
    read_everything(&mut drive);
    assert!(drive.ftl().map.get(Lpn(1)).is_none());
}

#[test]
fn refresh_in_place_and_gc_together_lose_no_data() {
    let (mut in_place, mut victims) = (0, 0);
    for seed in 0..20 {
        let mut stream = Stream::new(seed, "in place");
        let map = ["ftl.map='page'", "ftl.map={demand={cache='128B'}}"][stream.below(2) as usize];
        let multi = ["timing.multi_plane=true", "timing.multi_plane=false"][stream.below(2) as usize];
        let wear = ["ftl.wear_levelling='static'", "ftl.wear_levelling='dynamic'"][stream.below(2) as usize];
        let policy = "{ fcr = { in_place = true, reprogram_error = 1e-6 } }";
        let text = TINY.to_owned() + AGEING + "clock_scale = 86400.0\n[refresh]\npolicy = " + policy + "\n";
        let mut drive =
            with_oracle(&spec(&text, &["drive.op=0.6", "drive.blocks_per_plane=24", map, multi, wear]));
        let units = u64::from(drive.geometry().logical_units);
        for _ in 0..1500 {
            let lpn = stream.below(units);
            let op = [Op::Read, Op::Write, Op::Write, Op::Trim][stream.below(4) as usize];
            submit_with_few(&mut drive, op, lpn * 4096, 4096);
            if stream.below(20) == 0 {
                drive.advance(drive.now() + ns(stream.below(4_000_000_000)));
                drive.completions();
            }
            if stream.below(50) == 0 {
                drive.audit().unwrap_or_else(|e| panic!("audit: {e}"));
            }
        }
        settle(&mut drive);
        read_everything(&mut drive);
        let stats = drive.stats();
        assert_eq!(stats.counters.media_errors, 0, "seed {seed}");
        in_place += stats.refresh.pages_in_place;
        victims += stats.gc.victims;
    }
    assert!(in_place > 1000 && victims > 100, "{in_place} {victims}");
}

/// A unit that is copied back keeps its age, and therefore its due time.
#[test]
fn a_copied_back_unit_keeps_its_due_time() {
    for migration in ["'off-chip'", "{ rcopyback-greedy = { limit = 3 } }"] {
        let text = format!(
            "{TINY}{AGEING}clock_scale = 86400.0\nretention = '24d'\n[refresh]\npolicy = 'fcr'\n\
             [migration]\npolicy = {migration}\n[precondition]\nused = 0.6\nvalid = 0.75\n"
        );
        let mut drive = with_oracle(&spec(&text, &["drive.blocks_per_plane=32", "drive.op=1.2"]));
        let units = u64::from(drive.geometry().logical_units);
        let mut stream = Stream::new(11, "copied back");
        // For five days GC moves some of the old data. This data was 24 days old at the start and the interval is 30
        // days, so nothing is due yet.
        while drive.now() < at(5_000_000_000) {
            let offset = stream.below(units / 3) * 4096;
            let request = Request::write(offset, 4096).at(drive.now());
            drive.submit(&request).unwrap();
            drive.advance(drive.now() + ns(2_000_000));
            drive.completions();
        }
        assert_eq!(drive.stats().refresh.blocks, 0);
        let moved = drive.stats().flash_total(FlashOp::Copyback);
        assert_eq!(moved > 20, migration != "'off-chip'", "{moved} pages copied back");
        // After 6.8 days the data from before the run would be 30.8 days old. But it has been refreshed, whatever
        // superblock it was in.
        drive.advance(at(6_800_000_000));
        let now = nandlab::flash::AgeClock::new(86_400.0).at(drive.now());
        let (map, array) = (&drive.ftl().map, drive.array());
        let ages = (0..units as u32)
            .filter_map(|lpn| map.get(Lpn(lpn)))
            .map(|unit| array.stamp(unit).corrected.age_s(now));
        let oldest = ages.max().unwrap();
        assert!(oldest <= 30 * 86_400 * 101 / 100, "{migration}: {oldest} s");
        assert_eq!(drive.stats().refresh.late_blocks, 0);
        settle(&mut drive);
        read_everything(&mut drive);
    }
}
