//! The life of a drive: wear, wear levelling and retired superblocks.

use crate::common::{TINY, request, settle, spec};
use nandlab::base::geometry::Lpn;
use nandlab::base::rng::Stream;
use nandlab::base::units::Time;
use nandlab::drive::{Drive, FailReason};
use nandlab::flash::{Superblock, SuperblockState};
use nandlab::host::{Op, Oracle, Request};
use nandlab::probe::{NoProbe, Probe};
use nandlab::report::{RunFacts, smart, summary};
use nandlab::sched::{Cause, FlashOp};

/// Writes `count` units at queue depth 8, to the LPNs that `draw` returns. Returns the number of writes that failed
/// because lanes are worn out.
fn write_units<P: Probe>(drive: &mut Drive<P>, count: u64, mut draw: impl FnMut() -> u64) -> u64 {
    let (mut sent, mut failed) = (0, 0);
    while sent < count || drive.outstanding() > 0 {
        while sent < count && drive.outstanding() < 8 {
            let offset = draw() * 4096;
            drive.submit(&Request::write(offset, 4096).at(drive.now())).unwrap();
            sent += 1;
        }
        assert!(
            drive.advance_to_completion(Time::NEVER),
            "{} requests are outstanding without an event",
            drive.outstanding()
        );
        failed += drive.completions().filter(|c| c.failed == Some(FailReason::WornOut)).count() as u64;
    }
    failed
}

fn fill<P: Probe>(drive: &mut Drive<P>) {
    let units = u64::from(drive.geometry().logical_units);
    let mut next = 0..units;
    assert_eq!(write_units(drive, units, || next.next().expect("fill draws each LPN once")), 0);
}

fn wear<P: Probe>(drive: &Drive<P>) -> Vec<u32> {
    drive.array().superblocks.iter().map(|b| b.pe_cycles).collect()
}

fn spread(wear: &[u32]) -> (f64, u32, u32, f64) {
    let mean = wear.iter().map(|&w| f64::from(w)).sum::<f64>() / wear.len() as f64;
    let variance = wear.iter().map(|&w| (f64::from(w) - mean).powi(2)).sum::<f64>() / wear.len() as f64;
    (mean, *wear.iter().min().unwrap(), *wear.iter().max().unwrap(), variance.sqrt())
}

#[test]
fn pe_cycles_equal_the_erases() {
    let mut drive = Drive::new(&spec(TINY, &[]));
    let units = u64::from(drive.geometry().logical_units);
    let mut stream = Stream::new(1, "wear");
    write_units(&mut drive, 5_000, || stream.below(units));
    drive.run_until_idle(nandlab::drive::IDLE_LIMIT).unwrap();
    let total: u64 = wear(&drive).into_iter().map(u64::from).sum();
    assert!(total > 500);
    assert_eq!(total, drive.stats().flash_total(FlashOp::Erase));
}

#[test]
fn initial_pe_cycles_count_towards_the_endurance() {
    let sets = ["reliability.pe_cycles=70", "drive.endurance=75"];
    let mut drive = Drive::new(&spec(TINY, &sets));
    assert_eq!(wear(&drive), vec![70; 64]);
    let units = u64::from(drive.geometry().logical_units);
    let mut stream = Stream::new(1, "wear");
    assert!(write_units(&mut drive, 20_000, || stream.below(units)) > 0);
    // Each superblock has five P/E cycles left.
    assert!(wear(&drive).iter().all(|&w| (70..=75).contains(&w)));
    assert!(drive.stats().flash_total(FlashOp::Erase) <= 64 * 5);
}

/// Writes until lanes are worn out and writes fail, with each kind of wear levelling, under static and dynamic
/// allocation.
#[test]
fn superblocks_retire_at_their_endurance_and_then_writes_fail() {
    const ENDURANCE: u32 = 12;
    for levelling in ["none", "dynamic", "static"] {
        for allocation in ["CWDP", "dynamic"] {
            for (op, planes) in [("0.7", 2), ("1.5", 1)] {
                let sets = [
                    format!("ftl.wear_levelling={levelling}"),
                    format!("ftl.allocation={allocation}"),
                    format!("drive.endurance={ENDURANCE}"),
                    format!("drive.op={op}"),
                    format!("drive.planes_per_die={planes}"),
                    "ftl.wear_gap=2".to_owned(),
                ];
                let sets: Vec<&str> = sets.iter().map(String::as_str).collect();
                let name = sets.join(" ");
                let mut drive = Drive::with_probe(&spec(TINY, &sets), Oracle::default());
                fill(&mut drive);
                let units = u64::from(drive.geometry().logical_units);
                let mut stream = Stream::new(2, "life");
                let mut failed = 0;
                let mut rounds = 0;
                while failed == 0 {
                    failed += write_units(&mut drive, 20, || stream.below(units));
                    drive.audit().unwrap_or_else(|e| panic!("{name}: {e}"));
                    rounds += 1;
                    assert!(rounds < 2000, "{name}: no write has failed");
                }
                // Writes fail only when a lane (under dynamic allocation: every lane) has no superblock left from which
                // GC gains. Each full superblock of such a lane has only valid units, or retires with its next erase.
                let per_lane = drive.geometry().superblocks_per_lane as usize;
                let is_worn_out = |superblocks: &[Superblock]| {
                    let full = superblocks.iter().filter(|b| b.state == SuperblockState::Full);
                    full.clone().all(|b| b.valid == 8 || b.pe_cycles == ENDURANCE - 1)
                        && full.clone().any(|b| b.pe_cycles == ENDURANCE - 1)
                };
                let lanes = drive.array().superblocks.chunks(per_lane);
                let worn_out = lanes.clone().filter(|superblocks| is_worn_out(superblocks)).count();
                assert!(
                    worn_out >= if allocation == "dynamic" { lanes.len() } else { 1 },
                    "{name}: {worn_out}"
                );
                assert_eq!(smart(&drive)["nvme_smart_log"]["avail_spare"], 0, "{name}");
                // Requests are still completed after the first failure.
                for _ in 0..3 {
                    failed += write_units(&mut drive, 100, || stream.below(units));
                }
                let worn: Vec<u32> = wear(&drive);
                assert!(worn.iter().all(|&w| w <= ENDURANCE), "{name}: {worn:?}");
                for (superblock, &w) in drive.array().superblocks.iter().zip(&worn) {
                    let retired = superblock.state == SuperblockState::Retired;
                    assert_eq!(
                        retired,
                        w == ENDURANCE,
                        "{name}: a superblock retires at its endurance, not before"
                    );
                }
                // The erases are at most the endurance of all superblocks, and at least that of the retired ones.
                let erases = drive.stats().flash_total(FlashOp::Erase);
                let retired = worn.iter().filter(|&&w| w == ENDURANCE).count() as u64;
                assert!(erases <= u64::from(ENDURANCE) * worn.len() as u64);
                assert!(erases >= u64::from(ENDURANCE) * retired, "{name}");
                // Statistics, SMART log and summary report the failures.
                let counters = drive.stats().counters.clone();
                assert_eq!(drive.stats().failed[FailReason::WornOut as usize], failed, "{name}");
                assert_eq!(counters.failed_pages, failed, "{name}: not one failed unit per failed request");
                let log = smart(&drive);
                let log = &log["nvme_smart_log"];
                assert_eq!(log["media_errors"], failed);
                assert_eq!(log["critical_warning"].as_u64().unwrap() & 8, 8, "{name}: reliability degraded");
                let out = summary(&drive, &RunFacts::default());
                let reasons = serde_json::json!({ "uncorrectable": 0, "worn_out": failed, "power_lost": 0 });
                assert_eq!(out["requests_failed"], reasons);
                assert_eq!(out["blocks_retired"], retired);
                // A read of every acknowledged write returns its data.
                for lpn in 0..units {
                    let request = Request::read(lpn * 4096, 4096).at(drive.now());
                    drive.submit(&request).unwrap();
                }
                settle(&mut drive);
                assert!(drive.probe().checked >= units);
                // After a TRIM of all units the superblocks are dead: each is erased once more, and most of them
                // then retire.
                drive.submit(&request(&drive, Op::Trim, 0, units * 4096)).unwrap();
                settle(&mut drive);
                let worn = wear(&drive);
                for (superblock, &w) in drive.array().superblocks.iter().zip(&worn) {
                    assert_eq!(superblock.state == SuperblockState::Retired, w == ENDURANCE, "{name}");
                    assert!(
                        superblock.state != SuperblockState::Full,
                        "{name}: a superblock is full after the TRIM"
                    );
                }
                assert!(
                    worn.iter().filter(|&&w| w == ENDURANCE).count() > worn.len() / 4,
                    "{name}: {worn:?}"
                );
            }
        }
    }
}

/// When every lane is worn out, writes fail; reads, TRIMs and flushes succeed.
#[test]
fn reads_trims_and_flushes_succeed_when_all_lanes_are_worn_out() {
    let mut drive = Drive::new(&spec(TINY, &["drive.endurance=3"]));
    let units = u64::from(drive.geometry().logical_units);
    let mut stream = Stream::new(2, "life");
    // Writes until every lane is worn out.
    while write_units(&mut drive, 500, || stream.below(units)) < 500 {}
    for (op, offset, len) in [
        (Op::Write, 0, 32 * 4096),
        (Op::Flush, 0, 0),
        (Op::Read, 0, 8 * 4096),
        (Op::Trim, 0, 4 * 4096),
        (Op::Write, 512, 512),
        (Op::Flush, 0, 0),
    ] {
        drive.submit(&Request::new(op, offset, len).at(drive.now())).unwrap();
    }
    drive.run_until_idle(nandlab::drive::IDLE_LIMIT).unwrap();
    let done: Vec<(u64, bool)> =
        drive.completions().map(|c| (c.id, c.failed == Some(FailReason::WornOut))).collect();
    assert_eq!(done.len(), 6);
    let first = done.iter().map(|d| d.0).min().unwrap();
    for (id, failed) in done {
        assert_eq!(failed, [0, 4].contains(&(id - first)), "request {}", id - first);
    }
    drive.audit().unwrap();
}

#[test]
fn avail_spare_is_the_share_of_spare_superblocks_left() {
    let mut drive =
        Drive::new(&spec(TINY, &["drive.endurance=8", "drive.blocks_per_plane=24", "drive.op=1.25"]));
    let units = u64::from(drive.geometry().logical_units);
    let mut stream = Stream::new(2, "life");
    let mut last = 100;
    loop {
        let failed = write_units(&mut drive, 100, || stream.below(units));
        let log = smart(&drive);
        let spare = log["nvme_smart_log"]["avail_spare"].as_u64().unwrap();
        // A lane has 24 superblocks. 192 / 2.25 = 85.3 units are logical, which takes 11 superblocks; one superblock is
        // open for GC and one is kept free. The other 11 are spare. Superblocks that are retired, or that the next
        // erase retires, no longer count.
        let lost = |lane: usize| {
            let superblocks = &drive.array().superblocks[lane * 24..][..24];
            superblocks.iter().filter(|b| b.pe_cycles >= 7).count() as u64
        };
        let worst = (0..4).map(lost).max().unwrap();
        assert_eq!(spare, 11u64.saturating_sub(worst) * 100 / 11);
        assert!(spare <= last);
        last = spare;
        let warning = log["nvme_smart_log"]["critical_warning"].as_u64().unwrap();
        assert_eq!(warning & 1 == 1, spare < 10);
        if failed > 0 {
            assert_eq!(spare, 0);
            break;
        }
    }
}

/// Returns a drive of one plane of 64 blocks, filled once; after that only the first 20 % of the addresses are written.
fn hot_cold(levelling: &str, gap: u32) -> Drive<NoProbe> {
    let text = format!(
        "[drive]\nchannels = 1\nchips_per_channel = 1\ndies_per_chip = 1\nplanes_per_die = 1\nblocks_per_plane = 64\n\
         pages_per_block = 16\npage_size = '4KiB'\nop = 0.2\nendurance = 1000000\n\
         [timing]\nprogram = '100us'\nerase = '500us'\n\
         [ftl]\nwear_levelling = '{levelling}'\nwear_gap = {gap}\n"
    );
    let mut drive = Drive::new(&spec(&text, &[]));
    fill(&mut drive);
    let hot = u64::from(drive.geometry().logical_units) / 5;
    let mut stream = Stream::new(5, "hot");
    assert_eq!(write_units(&mut drive, 60_000, || stream.below(hot)), 0);
    drive.run_until_idle(nandlab::drive::IDLE_LIMIT).unwrap();
    drive.audit().unwrap();
    drive
}

/// Four fifths of the data are cold, and the superblocks with this data have only valid units. So they are never
/// victims: without static wear levelling they are never erased, and the other superblocks share all erases. Static
/// wear levelling moves a superblock that lags the mean by more than the gap. It checks after every eighth erase, so no
/// superblock lags much more than the gap.
#[test]
fn static_wear_levelling_narrows_the_spread_under_a_hot_and_cold_workload() {
    const GAP: u32 = 8;
    let dynamic = spread(&wear(&hot_cold("dynamic", GAP)));
    let fixed = hot_cold("static", GAP);
    let levelled = spread(&wear(&fixed));
    println!("(mean, least, most, deviation): dynamic {dynamic:?}, static {levelled:?}");
    assert_eq!(dynamic.1, 0, "every superblock has been erased, although four fifths of the data are cold");
    // Of 853 logical units 683 are cold. They fill 42 of the 64 superblocks, which are never erased. The other 22
    // superblocks have all erases, so the most worn superblock has at least 64 / 22 = 2.9 times the mean.
    assert!(f64::from(dynamic.2) > 2.5 * dynamic.0);
    // One superblock is moved per 8 erases. So a superblock may lag by the gap, plus the erases in which each of the 42
    // cold superblocks is moved once: 42 x 8 erases are 5.25 P/E cycles of 64 superblocks. The bound allows 7.
    assert!(f64::from(levelled.1) >= levelled.0 - f64::from(GAP) - 7.0, "{levelled:?}");
    assert!(levelled.3 < dynamic.3 / 4.0);
    assert!(f64::from(levelled.2) < 1.5 * levelled.0, "{levelled:?}");
    let stats = fixed.stats();
    let [reads, programs, erases] = [FlashOp::Read, FlashOp::Program, FlashOp::Erase].map(|kind| {
        assert_eq!(
            stats.flash[kind as usize][Cause::Host as usize],
            if kind == FlashOp::Program { 60_853 } else { 0 }
        );
        stats.flash[kind as usize][Cause::Wear as usize]
    });
    println!(
        "wear levelling: {reads} reads, {programs} programs, {erases} erases of {}",
        stats.flash_total(FlashOp::Erase)
    );
    // Operations of wear levelling are counted under its own cause. It moves superblocks of 16 units, nearly all of
    // them valid. A unit that the host overwrites during its move is read but not programmed.
    assert!(erases > 100 && reads <= 16 * erases && programs <= reads && programs * 10 > 16 * 9 * erases);
    let [gc_reads, gc_programs] =
        [FlashOp::Read, FlashOp::Program].map(|kind| stats.flash[kind as usize][Cause::Gc as usize]);
    assert!(
        gc_programs <= gc_reads && gc_programs * 10 > gc_reads * 9,
        "copies of GC are missing under the cause GC"
    );
    // Wear levelling causes at most one of eight erases.
    let all = stats.flash_total(FlashOp::Erase);
    assert!(erases <= all / 8 + 1, "{erases} of {all}");
}

#[test]
fn only_static_wear_levelling_moves_cold_data() {
    for levelling in ["none", "dynamic"] {
        let drive = hot_cold(levelling, 8);
        for kind in [FlashOp::Read, FlashOp::Program, FlashOp::Erase] {
            assert_eq!(drive.stats().flash[kind as usize][Cause::Wear as usize], 0, "{levelling}");
        }
    }
}

#[test]
fn a_larger_gap_moves_less_and_levels_less() {
    let runs: Vec<_> = [4, 16, 64]
        .into_iter()
        .map(|gap| {
            let drive = hot_cold("static", gap);
            let moved = drive.stats().flash[FlashOp::Program as usize][Cause::Wear as usize];
            let (mean, least, ..) = spread(&wear(&drive));
            println!("gap {gap}: mean {mean}, least {least}, {moved} units moved");
            // A superblock is moved only when it lags by the gap, so the least worn superblock lags by about the gap.
            assert!(mean - f64::from(least) >= f64::from(gap) * 0.5);
            assert!(mean - f64::from(least) <= f64::from(gap) + 7.0);
            (moved, mean - f64::from(least))
        })
        .collect();
    assert!(runs.is_sorted_by(|a, b| a.0 > b.0 && a.1 < b.1), "{runs:?}");
}

/// Under uniform writes every superblock is erased. Without wear levelling the free list is a queue, and a superblock's
/// share of the erases is random. Dynamic wear levelling takes the least worn free superblock, so the P/E cycles of the
/// superblocks differ little.
#[test]
fn dynamic_wear_levelling_narrows_the_spread_of_uniform_writes() {
    let run = |levelling: &str| {
        let text = "[drive]\nchannels = 1\nchips_per_channel = 1\ndies_per_chip = 1\nplanes_per_die = 1\n\
             blocks_per_plane = 64\npages_per_block = 16\npage_size = '4KiB'\nop = 0.5\nendurance = 1000000\n\
             [gc]\nforeground_free = 0.3\nbackground_free = 0.4\n";
        let mut drive = Drive::new(&spec(text, &[&format!("ftl.wear_levelling={levelling}")]));
        fill(&mut drive);
        let units = u64::from(drive.geometry().logical_units);
        let mut stream = Stream::new(6, "uniform");
        // Writes without simulated time let GC keep the free list at its threshold, so there is always a choice of free
        // superblocks.
        for _ in 0..60_000 {
            drive.write_now(Lpn(stream.below(units) as u32));
        }
        spread(&wear(&drive))
    };
    let (none, dynamic) = (run("none"), run("dynamic"));
    println!("(mean, least, most, deviation): none {none:?}, dynamic {dynamic:?}");
    assert!(
        (none.0 / dynamic.0 - 1.0).abs() < 0.02,
        "dynamic wear levelling changes the number of erases under uniform writes"
    );
    assert!(dynamic.3 < 0.75 * none.3);
    assert!(dynamic.2 - dynamic.1 < none.2 - none.1);
}
