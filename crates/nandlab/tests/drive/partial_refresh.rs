//! Partial refresh: random runs with oracle and audit.

use crate::common::{TINY, at, ns, read_everything, settle, spec, submit_with_few, with_oracle};
use nandlab::base::rng::Stream;
use nandlab::drive::Drive;
use nandlab::host::{Op, Oracle, Request};
use nandlab::sched::{Cause, FlashOp};

const AGEING: &str = "[ecc]\nlevels = 'laldpc'\n[reliability]\nrber = 'vth'\npe_cycles = 1500\n";

/// Returns a drive on which a day of ageing takes a second.
fn ageing(seed: u64, policy: &str, sets: &[&str]) -> Drive<Oracle> {
    let text = format!("seed = {seed}\n{TINY}{AGEING}clock_scale = 86400.0\n[refresh]\npolicy = {policy}\n");
    with_oracle(&spec(&text, sets))
}

/// Plays `requests` random writes, reads and TRIMs to the first `share` percent of the LPNs, with pauses in which
/// superblocks come due.
fn work(drive: &mut Drive<Oracle>, stream: &mut Stream, requests: u32, share: u64) {
    let unit = u64::from(drive.geometry().unit_bytes);
    let units = u64::from(drive.geometry().logical_units) * share / 100;
    for _ in 0..requests {
        let lpn = stream.below(units);
        let op = match stream.below(10) {
            0..=3 => Op::Read,
            4..=8 => Op::Write,
            _ => Op::Trim,
        };
        submit_with_few(drive, op, lpn * unit, unit);
        if stream.below(20) == 0 {
            drive.advance(drive.now() + ns(stream.below(4_000_000_000)));
            drive.completions();
        }
        // The audit is skipped at rest: a write-back may then wait for the next idle time.
        if drive.outstanding() > 0 && stream.below(50) == 0 {
            drive.audit().unwrap_or_else(|e| panic!("audit: {e}"));
        }
    }
}

#[test]
fn partial_refresh_and_gc_together_lose_no_data() {
    let policies = [
        "'partial'",
        "{ partial = { encoding = 'entries', susceptible_ratio = 0.03 } }",
        "{ partial = { encoding = 'enumerative', vsm_pages = 1 } }",
        "{ partial = { susceptible_ratio = 'vth', hot_reads = 1 } }",
        "{ partial = { min_free_blocks = 0.0, susceptible_ratio = 0.3 } }",
    ];
    // The environment variable `NANDLAB_PARTIAL_SEEDS` gives the number of runs.
    let seeds = std::env::var("NANDLAB_PARTIAL_SEEDS").map_or(60, |n| n.parse().expect("a number of seeds"));
    let (mut partial, mut preads, mut promoted, mut copybacks) = (0, 0, 0, 0);
    // Regression: in run 1568 partial refresh took the last free superblocks of a lane.
    for seed in (0..seeds).chain([1568]) {
        let policy = policies[seed as usize % policies.len()];
        let mut stream = Stream::new(seed, "partial");
        let op = ["drive.op=0.7", "drive.op=1", "drive.op=2"][stream.below(3) as usize];
        let scheduler =
            ["timing.scheduler='fcfs'", "timing.scheduler='read-first'"][stream.below(2) as usize];
        let multi = ["timing.multi_plane=true", "timing.multi_plane=false"][stream.below(2) as usize];
        let wear = ["ftl.wear_levelling='static'", "ftl.wear_levelling='dynamic'"][stream.below(2) as usize];
        let map = ["ftl.map='page'", "ftl.map={demand={cache='128B'}}"][stream.below(2) as usize];
        let migration = [
            "migration.policy='off-chip'",
            "migration.policy={rcopyback={limit=2}}",
            "migration.policy={rcopyback-greedy={limit='table'}}",
        ][stream.below(3) as usize];
        let victim =
            ["gc.victim='greedy'", "gc.victim='partial-aware'", "gc.victim='fifo'"][stream.below(3) as usize];
        let cache = ["cache.size=0B", "cache.size=32KiB", "cache.size=128KiB"][stream.below(3) as usize];
        // GC begins early. Otherwise refresh and the erases of dead superblocks would leave little garbage for GC.
        let eager = ["drive.blocks_per_plane=38", "gc.background_free=0.9"];
        let sets = [&[op, scheduler, multi, wear, map, migration, victim, cache], &eager[..]].concat();
        let mut drive = ageing(seed, policy, &sets);
        let share = 30 + stream.below(70);
        work(&mut drive, &mut stream, 7000, share);
        settle(&mut drive);
        read_everything(&mut drive);
        let stats = &drive.stats().refresh;
        partial += stats.partial_pages;
        preads += stats.host_preads;
        promoted += stats.promoted_pages;
        copybacks += drive.stats().flash_total(FlashOp::Copyback);
        assert_eq!(drive.stats().counters.media_errors, 0, "seed {seed}");
    }
    assert!(partial > 1000 && preads > 200 && promoted > 200, "{partial} {preads} {promoted}");
    // There are few copybacks, because most units that GC moves are linked and are therefore merged.
    assert!(copybacks > 30, "{copybacks}");
}

#[test]
fn a_unit_whose_susceptible_data_exceeds_max_share_is_written_elsewhere() {
    // Half of the 32,768 bits, plus or minus 500, are susceptible: 0.48 to 0.52 of a unit.
    for (max_share, fits) in [(0.52, true), (0.48, false)] {
        let policy = format!(
            "{{ partial = {{ susceptible_ratio = 0.5, max_share = {max_share}, min_free_blocks = 0.0 }} }}"
        );
        let mut drive = ageing(3, &policy, &["drive.op=2", "drive.blocks_per_plane=27"]);
        let units = u64::from(drive.geometry().logical_units);
        for lpn in 0..units {
            let request = Request::write(lpn * 4096, 4096).at(drive.now());
            drive.submit(&request).unwrap();
        }
        drive.run_until_idle(nandlab::drive::IDLE_LIMIT).unwrap();
        // A day of ageing takes a second; superblocks with 1001 to 2000 P/E cycles are due every 30 days.
        drive.advance(at(31_500_000_000));
        let refresh = &drive.stats().refresh;
        let programs = drive.stats().flash[FlashOp::Program as usize][Cause::Refresh as usize];
        assert!(refresh.pages >= units && refresh.without_room == 0, "{refresh:?}");
        if fits {
            assert_eq!((refresh.partial_pages, refresh.too_susceptible), (refresh.pages, 0));
            // A combination page has the bits of at most two units.
            assert!(refresh.combination_pages >= refresh.pages / 2);
            assert_eq!(programs, refresh.combination_pages);
        } else {
            assert_eq!((refresh.partial_pages, refresh.too_susceptible), (0, refresh.pages));
            assert_eq!(programs, refresh.pages);
        }
        settle(&mut drive);
    }
}
