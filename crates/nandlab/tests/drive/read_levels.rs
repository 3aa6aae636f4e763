//! Read levels of LaLDPC (Tables I and II): the cost of each try, remembered levels and lost units, compared with
//! calculations by hand.
//!
//! With the level table `laldpc` level L costs 85 + 24 (L - 1) us: sensing 50 + 14 (L - 1), transfer 20 + 10 (L - 1),
//! decoding 15. Data that is a year old at 10,000 P/E cycles needs level 3. A read of it takes 133 us if it starts at
//! level 3, and 85 + 109 + 133 = 327 us if it starts at level 1.

use crate::common::{TINY, US, at, mostly_hot, ns, one, read_everything, request, settle, spec, with_oracle};
use nandlab::base::geometry::{DieId, Lpn};
use nandlab::base::units::{Span, Time};
use nandlab::drive::spec::Spec;
use nandlab::drive::{Drive, FailReason};
use nandlab::flash::{Condition, Reliability};
use nandlab::host::{Op, Oracle};
use nandlab::probe::Probe;
use nandlab::report::{RunFacts, smart, summary};
use nandlab::sched::{Cause, FlashOp};

const PAGE: u64 = 4096;

const OLD: &str = "[ecc]\nlevels = 'laldpc'\n[reliability]\npe_cycles = 10000\nretention = '365d'\n\
     rber.vth = { dvpp = 0.38, cell_to_cell = 0.05 }\n[precondition]\nused = 0.5\nvalid = 0.8\n[gc]\nidle_after = '10s'\n";

fn old(sets: &[&str]) -> Spec {
    spec(&format!("{TINY}{OLD}"), sets)
}

fn read<P: Probe>(drive: &mut Drive<P>, lpn: u64) -> u64 {
    one(drive, Op::Read, lpn * PAGE, PAGE) / US
}

/// Checks that in the summary the reads by level and the uncorrectable reads add up to the pages read.
fn reads_add_up<P: Probe>(drive: &mut Drive<P>) {
    drive.finish_stats();
    let summary = summary(drive, &RunFacts::default());
    let sum = |value: &serde_json::Value| -> u64 {
        value.as_object().unwrap().values().map(|count| count.as_u64().unwrap()).sum()
    };
    let (ecc, pages) = (&summary["ecc"], sum(&summary["flash"]["read"]));
    assert_eq!(sum(&ecc["levels"]) + ecc["uncorrectable"].as_u64().unwrap(), pages);
    let host = &ecc["host"];
    let host_pages = summary["flash"]["read"]["host"].as_u64().unwrap();
    assert_eq!(sum(&host["levels"]) + host["uncorrectable"].as_u64().unwrap(), host_pages);
}

#[test]
fn a_read_takes_the_sum_of_its_tries() {
    // Latencies in us: the first read of a unit, the second read of the same unit, and a read of another unit of its
    // superblock.
    for (start, retry, expected) in [
        ("first", "full", [327, 327, 327]),
        ("ideal", "full", [133, 133, 133]),
        ("last-level", "full", [327, 133, 327]),
        ("block-level", "full", [327, 133, 133]),
        // An incremental retry costs only the added sensing, the added transfer and decoding, 14 + 10 + 15 us: 85 + 39
        // + 39.
        ("first", "incremental", [163, 163, 163]),
        ("last-level", "incremental", [163, 133, 163]),
    ] {
        let spec = old(&[&format!("ecc.start={start}"), &format!("ecc.retry={retry}")]);
        let mut drive = with_oracle(&spec);
        // The fill is random, so the test searches for another unit in the superblock of LPN 0.
        let superblock = |drive: &Drive<Oracle>, lpn: u64| {
            drive.ftl().map.get(Lpn(lpn as u32)).map(|unit| drive.geometry().superblock_of(unit))
        };
        let other = (1..64).find(|&lpn| superblock(&drive, lpn) == superblock(&drive, 0)).unwrap();
        let found = [read(&mut drive, 0), read(&mut drive, 0), read(&mut drive, other)];
        assert_eq!(found, expected, "{start}, {retry}");
        // After a write the unit's data is young.
        one(&mut drive, Op::Write, 0, PAGE);
        assert_eq!([read(&mut drive, 0), read(&mut drive, 0)], [85, 85], "{start}, {retry}");
        reads_add_up(&mut drive);
        settle(&mut drive);
    }
}

/// Share of the standard normal distribution above `z`: its density, integrated in steps of 1e-4 up to 10.
fn normal_above(z: f64) -> f64 {
    let steps = ((10.0 - z) / 1e-4) as u64;
    let density = |x: f64| (-0.5 * x * x).exp() / std::f64::consts::TAU.sqrt();
    (0..steps).map(|step| density(z + (step as f64 + 0.5) * 1e-4) * 1e-4).sum()
}

/// With the spread S a page with the mean RBER r needs more than level L, which decodes up to l, where exp(S z - S^2 / 2)
/// is above l / r, that is where z is above (ln(l / r) + S^2 / 2) / S. All pages have the same age and wear.
#[test]
fn the_needed_levels_vary_from_page_to_page_as_the_normal_distribution() {
    const SPREAD: f64 = 0.5;
    let sets = ["drive.blocks_per_plane=128", "drive.pages_per_block=64", "ecc.start=ideal"];
    let varied = old(&[&sets[..], &["reliability.page_variation=0.5"]].concat());
    let mut drive = Drive::new(&varied);
    drive.precondition(&mut |_| true);
    let pages = u64::from(drive.ftl().map.mapped());
    let first: Vec<u64> = (0..pages).map(|lpn| read(&mut drive, lpn)).collect();
    let counts = drive.stats().ecc.host_needed;
    for lpn in (0..pages).step_by(97) {
        assert_eq!(read(&mut drive, lpn), first[lpn as usize], "a page needs the same level each time");
    }
    let condition = Condition {
        pe_cycles: 10_000,
        age_s: 365 * 86_400,
        reads: 0,
        copybacks: 0,
        kind: drive.array().shapes().first().kind(0),
    };
    let mean = Reliability::new(&varied.reliability).rber_exact(&condition);
    let mut below = 0;
    for (index, level) in varied.ecc.levels.iter().enumerate() {
        below += counts[index + 1];
        let above = 1.0 - below as f64 / pages as f64;
        let expected = normal_above(((level.rber_max / mean).ln() + SPREAD * SPREAD / 2.0) / SPREAD);
        let error = (expected * (1.0 - expected) / pages as f64).sqrt();
        assert!(
            (above - expected).abs() < 5.0 * error + 1e-3,
            "level {}: {above} of {pages} pages need more, expected {expected}",
            index + 1
        );
    }
    // The levels are not all the same: the test would pass if no level were near the RBER.
    assert!(counts.iter().filter(|&&count| count > pages / 20).count() >= 2, "{counts:?}");
}

#[test]
fn the_level_of_the_drive_is_that_of_all_pages_until_power_is_lost() {
    let mut drive = with_oracle(&old(&["ecc.start=drive-level"]));
    let mapped = |drive: &Drive<Oracle>| -> Vec<u64> {
        (1..64).filter(|&lpn| drive.ftl().map.get(Lpn(lpn as u32)).is_some()).collect()
    };
    let others = mapped(&drive);
    assert_eq!(read(&mut drive, others[0]), 327);
    // Every other page of the drive is read at level 3 at once, also a young page, which needs level 1. Its read
    // decodes at level 3, so the level does not fall.
    one(&mut drive, Op::Write, 0, PAGE);
    let found = [0, others[1], others[2], others[0]].map(|lpn| read(&mut drive, lpn));
    assert_eq!(found, [133; 4]);
    drive.cut_power();
    assert_eq!([read(&mut drive, 0), read(&mut drive, 0), read(&mut drive, others[1])], [85, 85, 327]);
    reads_add_up(&mut drive);
    settle(&mut drive);
}

#[test]
fn a_retry_table_gives_the_level_by_wear_and_age() {
    // The data is a year old at 10,000 P/E cycles and needs level 3. Levels 1 to 5 take 85, 109, 133, 157 and 181 us.
    for (rows, expected) in [
        // The row of the level that is needed.
        ("{ pe = 10000, age = '365d', level = 3 }", 133),
        // Rows that do not apply: more wear, older data. Without a row the level is 1: 85 + 109 + 133 us.
        ("{ pe = 10001, age = '0s', level = 3 }, { pe = 0, age = '366d', level = 3 }", 327),
        // A level that is too low: 109 + 133 us. A level that is too high: 181 us for a page that level 3 decodes.
        ("{ pe = 0, age = '0s', level = 1 }, { pe = 5000, age = '100d', level = 2 }", 242),
        ("{ pe = 0, age = '200d', level = 5 }", 181),
        // The last row that applies, although a row before it is closer.
        ("{ pe = 10000, age = '365d', level = 3 }, { pe = 9000, age = '1d', level = 2 }", 242),
    ] {
        let mut drive = with_oracle(&old(&[&format!("ecc.start={{ table = {{ rows = [{rows}] }} }}")]));
        assert_eq!([read(&mut drive, 0), read(&mut drive, 0)], [expected; 2], "{rows}");
        // A power loss forgets nothing of the table.
        drive.cut_power();
        assert_eq!(read(&mut drive, 0), expected, "{rows}");
        // Young data is younger than every row but those from age 0 on, which apply with level 1 or not at all.
        one(&mut drive, Op::Write, 0, PAGE);
        assert_eq!(read(&mut drive, 0), 85, "{rows}");
        reads_add_up(&mut drive);
        settle(&mut drive);
    }
}

#[test]
fn every_try_takes_die_channel_and_decoder() {
    let mut drive = with_oracle(&old(&[]));
    assert_eq!(read(&mut drive, 0), 327);
    let geometry = drive.geometry();
    let unit = drive.ftl().map.get(Lpn(0)).unwrap();
    let die = geometry.die_of(geometry.lane_of(geometry.superblock_of(unit)));
    let now = drive.now();
    // The die is busy for sensing and for transfers out: 50 + 64 + 78 and 20 + 30 + 40.
    assert_eq!(drive.device().die_busy_ns(die, now), ns((192 + 90) * US));
    assert_eq!(drive.device().die_busy_ns(DieId(1 - die.0), now), Span::ZERO);
    assert_eq!(drive.device().channel_busy_ns(geometry.channel_of(die), now), ns(90 * US));
    // The rest of the 327 us is decoding, three times 15 us.
    let ecc = &drive.stats().ecc;
    assert_eq!((ecc.retries, ecc.levels[3], ecc.host_needed[3], ecc.uncorrectable), (2, 1, 1, 0));
    assert_eq!(ecc.host_flash_ns, ns(327 * US));
    assert_eq!(
        drive.stats().flash[FlashOp::Read as usize][Cause::Host as usize],
        1,
        "retries are counted as further reads"
    );
    // Every try counts as a read of the superblock.
    assert_eq!(drive.array().superblock(drive.geometry().superblock_of(unit)).reads, 3);
}

#[test]
fn two_reads_of_a_die_overlap_only_in_the_decoder() {
    // The second read waits for the die, and starts while the first read is being decoded. The next try of the first
    // read waits for the second read, and is served before other queued operations.
    let mut drive = with_oracle(&old(&[]));
    let die = |drive: &Drive<Oracle>, lpn: u32| {
        let geometry = drive.geometry();
        geometry.die_of(geometry.lane_of(geometry.superblock_of(drive.ftl().map.get(Lpn(lpn)).unwrap())))
    };
    let other = (1..64).find(|&lpn| die(&drive, lpn) == die(&drive, 0)).unwrap();
    for lpn in [0, u64::from(other)] {
        let read = request(&drive, Op::Read, lpn * PAGE, PAGE);
        drive.submit(&read).unwrap();
    }
    drive.run_until_idle(nandlab::drive::IDLE_LIMIT).unwrap();
    let ends: Vec<u64> = drive.completions().map(|done| done.completed.ns() / US).collect();
    // A2 is the second try of the first read, B1 the first try of the second read. The die in us: A1 0-70, B1 70-140,
    // A2 140-234 (B2 waits from 155 on), B2 234-328, A3 328-446, B3 446-564; then decoding.
    assert_eq!(ends, [446 + 15, 564 + 15]);
}

#[test]
fn a_demand_map_keeps_read_levels_with_its_cached_entries() {
    let spec = old(&["ftl.map.demand.cache=80B", "ecc.start=last-level", "drive.op=0.8"]);
    let mut drive = with_oracle(&spec);
    // The first request reads the translation page and the data, which are of the same age: 327 us each. The level of
    // the data is kept in its map entry.
    assert_eq!([read(&mut drive, 0), read(&mut drive, 0)], [654, 133]);
    // The cache has ten entries, so the misses of ten other LPNs evict the entry of LPN 0. Reads of the translation
    // page now start at level 3.
    for lpn in 1..11 {
        assert_eq!(read(&mut drive, lpn), 133 + 327);
    }
    assert_eq!(read(&mut drive, 0), 133 + 327, "the level is still known after the eviction of its entry");
    let map = &drive.stats().map;
    assert_eq!((map.read_hits, map.read_misses, map.evictions, map.write_backs), (1, 12, 2, 0));
    reads_add_up(&mut drive);
    settle(&mut drive);
}

#[test]
fn units_moved_by_gc_are_young_and_reads_by_gc_change_no_level() {
    // GC runs while the host overwrites a few units.
    let spec = old(&["ecc.start=last-level", "gc.victim=fifo"]);
    let mut drive = with_oracle(&spec);
    let last = u64::from(drive.ftl().map.mapped()) - 1;
    assert_eq!([read(&mut drive, last), read(&mut drive, last)], [327, 133]);
    let home = drive.ftl().map.get(Lpn(last as u32));
    let mut writes = 0;
    while drive.ftl().map.get(Lpn(last as u32)) == home {
        one(&mut drive, Op::Write, mostly_hot(writes, last) * PAGE, PAGE);
        writes += 1;
        assert!(writes < 20_000, "GC never moves the unit");
    }
    drive.run_until_idle(nandlab::drive::IDLE_LIMIT).unwrap();
    drive.completions();
    assert_eq!(read(&mut drive, last), 85, "the unit was moved off-chip, but not corrected");
    assert!(drive.stats().ecc.levels[3] > 2, "GC has read no old units");
    reads_add_up(&mut drive);
    settle(&mut drive);
}

/// A single read level, which does not decode old data.
const HARD: &str = "ecc.levels=[{ rber_max = 0.003, sense = '50us', transfer = '20us', decode = '15us' }]";

#[test]
fn a_read_that_no_level_decodes_is_a_media_error() {
    let mut drive = with_oracle(&old(&[HARD]));
    let read_request = request(&drive, Op::Read, 0, 2 * PAGE);
    drive.submit(&read_request).unwrap();
    drive.run_until_idle(nandlab::drive::IDLE_LIMIT).unwrap();
    let failed: Vec<bool> = drive.completions().map(|done| done.failed.is_some()).collect();
    assert_eq!(failed, [true], "one request of two lost units");
    // A partial write to a lost unit fails: otherwise the rest of the unit would count as valid data.
    let partial = request(&drive, Op::Write, 0, 512);
    drive.submit(&partial).unwrap();
    drive.run_until_idle(nandlab::drive::IDLE_LIMIT).unwrap();
    assert!(drive.completions().all(|done| done.failed == Some(FailReason::Uncorrectable)));
    reads_add_up(&mut drive);
    let smart = smart(&drive);
    assert_eq!(smart["nvme_smart_log"]["media_errors"], 3);
    assert_eq!(drive.stats().ecc.uncorrectable, 3);
    assert_eq!(drive.stats().failed.iter().sum::<u64>(), 2);
    // After a write of the whole unit, reads of it succeed.
    one(&mut drive, Op::Write, 0, PAGE);
    assert_eq!(read(&mut drive, 0), 85);
    settle(&mut drive);
}

#[test]
fn a_lost_unit_remains_lost_when_gc_moves_it() {
    let mut drive = with_oracle(&old(&[HARD, "gc.victim=fifo"]));
    let last = u64::from(drive.ftl().map.mapped()) - 1;
    let home = drive.ftl().map.get(Lpn(last as u32));
    let mut writes = 0;
    while drive.ftl().map.get(Lpn(last as u32)) == home {
        one(&mut drive, Op::Write, mostly_hot(writes, last) * PAGE, PAGE);
        writes += 1;
        assert!(writes < 20_000, "GC never moves the unit");
    }
    let errors = drive.stats().counters.media_errors;
    one(&mut drive, Op::Read, last * PAGE, PAGE);
    assert_eq!(drive.stats().counters.media_errors, errors + 1);
    reads_add_up(&mut drive);
    settle(&mut drive);
}

#[test]
fn a_read_whose_translation_page_is_lost_fails_without_reading_data() {
    let mut drive = with_oracle(&old(&[HARD, "ftl.map.demand.cache=8B", "drive.op=0.8"]));
    assert_eq!(read(&mut drive, 0), 85, "the data was read although its map entry is lost");
    assert_eq!(drive.stats().counters.media_errors, 1);
    assert_eq!(drive.stats().flash[FlashOp::Read as usize][Cause::Host as usize], 0);
    settle(&mut drive);
    reads_add_up(&mut drive);
}

#[test]
fn age_and_wear_determine_the_needed_level() {
    // A read of data that is a year old at 8000, 10,000 and 12,000 P/E cycles ends at level 2, 3 and 5.
    for (pe_cycles, latency) in [(8_000, 85 + 109), (10_000, 327), (12_000, 327 + 157 + 181)] {
        let mut drive = with_oracle(&old(&[&format!("reliability.pe_cycles={pe_cycles}")]));
        assert_eq!(read(&mut drive, 0), latency, "{pe_cycles} P/E cycles");
    }
    // Data written in the run also ages, by the scaled clock.
    let mut drive = with_oracle(&old(&["reliability.clock_scale=1e6"]));
    one(&mut drive, Op::Write, 0, PAGE);
    assert_eq!(read(&mut drive, 0), 85);
    drive.advance(at(365 * 86_400 * 1_000_000_000 / 1_000_000));
    assert_eq!(read(&mut drive, 0), 327);
    // Two ages on one drive: each superblock has one of them.
    let ages = "reliability.retention=[{ age = '1h', share = 0.5 }, { age = '365d', share = 0.5 }]";
    let mut drive = with_oracle(&old(&[ages]));
    let mapped = u64::from(drive.ftl().map.mapped());
    let latencies: Vec<u64> = (0..mapped).map(|lpn| read(&mut drive, lpn)).collect();
    let young = latencies.iter().filter(|&&us| us == 85).count();
    assert!(latencies.iter().all(|us| [85, 327].contains(us)));
    assert!((latencies.len() / 5..latencies.len() * 4 / 5).contains(&young), "{young} of {mapped}");
}

#[test]
fn reads_of_a_page_raise_its_needed_level_until_no_level_decodes() {
    // A read adds 1e-4 to the RBER. Level 3 decodes up to 0.008, a few reads above the 0.0076 of data that is a year
    // old.
    let mut drive = with_oracle(&old(&["reliability.read_disturb=1e-4", "ecc.start=ideal"]));
    let latencies: Vec<u64> = (0..60).map(|_| read(&mut drive, 0)).collect();
    let mut expected = latencies.clone();
    expected.sort_unstable();
    assert_eq!(latencies, expected, "a later read took less time");
    assert_eq!(latencies[0], 133);
    // Level 7 decodes up to 0.013: after (0.013 - 0.0076) / 1e-4 = 54 reads no level decodes, so about 6 of the 60
    // reads fail.
    let lost = drive.stats().ecc.uncorrectable;
    assert!((4..=8).contains(&lost), "{lost} of 60 reads lost");
    reads_add_up(&mut drive);
}

#[test]
fn a_worn_drive_under_load_completes_all_requests() {
    let sets = ["ecc.start=last-level", "precondition.used=0.8", "precondition.valid=0.8"];
    let mut drive = with_oracle(&old(&sets));
    let units = u64::from(drive.geometry().logical_units);
    for step in 0..4000u64 {
        while drive.outstanding() >= 8 {
            drive.advance_to_completion(Time::NEVER);
            drive.completions();
        }
        let op = if step % 3 == 0 { Op::Write } else { Op::Read };
        let next = request(&drive, op, (step * 7919 % units) * PAGE, PAGE);
        drive.submit(&next).unwrap();
    }
    settle(&mut drive);
    drive.completions();
    read_everything(&mut drive);
    reads_add_up(&mut drive);
}

#[test]
fn an_incremental_retry_counts_its_added_time() {
    let mut drive = with_oracle(&old(&["ecc.retry=incremental"]));
    assert_eq!(read(&mut drive, 0), 163);
    assert_eq!(drive.stats().ecc.host_flash_ns, ns(163 * US));
    settle(&mut drive);
}

#[test]
fn a_read_overtaken_by_a_write_sets_no_level() {
    let mut drive = with_oracle(&old(&["ecc.start=last-level"]));
    let old_data = request(&drive, Op::Read, 0, PAGE);
    drive.submit(&old_data).unwrap();
    drive.advance(drive.now() + ns(10 * US));
    let new_data = request(&drive, Op::Write, 0, PAGE);
    drive.submit(&new_data).unwrap();
    settle(&mut drive);
    drive.completions().for_each(drop);
    // The old data was decoded at level 3 after the admission of the write; the new data is young.
    assert_eq!(read(&mut drive, 0), 85);
    settle(&mut drive);
}

#[test]
fn the_flash_time_of_a_read_without_retries_is_its_latency_on_an_idle_drive() {
    // A read adds 0.0002 to the RBER of its superblock, so the levels needed grow from 1 to 7 in 64 reads.
    let text = format!("{TINY}[ecc]\nlevels = 'laldpc'\nstart = 'ideal'\nretry = 'incremental'\n");
    let mut drive = Drive::new(&spec(&text, &["reliability.rber=vth", "reliability.read_disturb=2e-4"]));
    one(&mut drive, Op::Write, 0, 4096);
    let mut latencies = Vec::new();
    for _ in 0..60 {
        let before = drive.stats().ecc.host_flash_ns;
        let latency = one(&mut drive, Op::Read, 0, 4096);
        assert_eq!((drive.stats().ecc.host_flash_ns - before).ns(), latency);
        latencies.push(latency);
    }
    latencies.dedup();
    assert!(latencies.len() > 4 && drive.stats().ecc.retries == 0, "{latencies:?}");
}
