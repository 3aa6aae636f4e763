//! Blocks that are bad from the factory: their number, what they leave of a drive, and that the rest of the drive works
//! as a smaller one.

use crate::common::{TINY, read_everything, settle, spec, submit_with_few};
use nandlab::base::bad_blocks::{BadBlocks, Planes};
use nandlab::base::geometry::{LaneId, Lpn};
use nandlab::base::rng::Stream;
use nandlab::drive::spec::Spec;
use nandlab::drive::{Drive, SnapshotError};
use nandlab::flash::SuperblockState;
use nandlab::host::{Op, Oracle};
use nandlab::probe::Probe;
use nandlab::report::{RunFacts, Table, Values, smart, summary};
use serde_json::{Value, json};

/// Two channels of two dies of two planes of 16 blocks; `drive.op` leaves room for bad blocks.
const EIGHT_PLANES: [&str; 4] =
    ["drive.dies_per_chip=2", "drive.op=1.5", "drive.bad_blocks=0.1", "timing.multi_plane=true"];

fn eight_planes(sets: &[&str]) -> Spec {
    spec(TINY, &[&EIGHT_PLANES, sets].concat())
}

/// A naive twin of the draw: for each plane, which of its `blocks` blocks are good. From one bad block to the next the
/// distance has a geometric distribution; no draw is carried over to the next plane.
fn good_blocks(seed: u64, share: f64, planes: usize, blocks: u32) -> Vec<Vec<u32>> {
    let mut stream = Stream::new(seed, "drive.bad_blocks");
    let mut of_plane = |_| {
        let mut good: Vec<u32> = Vec::new();
        let mut next = 0;
        loop {
            let skipped = ((1.0 - stream.unit()).ln() / (1.0 - share).ln()) as u32;
            good.extend(next..blocks.min(next + skipped));
            next += skipped + 1;
            if next > blocks {
                return good;
            }
        }
    };
    (0..planes).map(&mut of_plane).collect()
}

/// Forms superblocks of one good block of each of `per_group` planes, one after another. Returns their number in each
/// group, and the number of good blocks that are left.
fn superblocks(good: &[Vec<u32>], per_group: usize) -> (Vec<u32>, usize) {
    let mut left = 0;
    let mut of_group = |group: &[Vec<u32>]| {
        let mut group = group.to_vec();
        let mut formed = 0;
        while group.iter().all(|plane| !plane.is_empty()) {
            group.iter_mut().for_each(|plane| _ = plane.pop());
            formed += 1;
        }
        left += group.iter().map(Vec::len).sum::<usize>();
        formed
    };
    (good.chunks(per_group).map(&mut of_group).collect(), left)
}

/// By lane, the number of superblocks that are not missing.
fn superblocks_of<P: Probe>(drive: &Drive<P>) -> Vec<u32> {
    let geometry = drive.geometry();
    let superblocks = drive.array().superblocks.chunks(geometry.superblocks_per_lane as usize);
    let good = |lane: &[nandlab::flash::Superblock]| {
        lane.iter().filter(|superblock| superblock.state != SuperblockState::Bad).count() as u32
    };
    superblocks.map(good).collect()
}

fn outputs<P: Probe>(drive: &mut Drive<P>) -> (Value, Value) {
    drive.finish_stats();
    (summary(drive, &RunFacts::default()), smart(drive))
}

#[test]
fn a_drive_has_the_superblocks_that_good_blocks_of_every_plane_form() {
    for seed in 0..200 {
        let good = good_blocks(seed, 0.1, 8, 16);
        let bad = 8 * 16 - good.iter().map(Vec::len).sum::<usize>();
        for (superblock, per_group) in [("plane", 1), ("die", 2), ("drive", 8)] {
            let (formed, left) = superblocks(&good, per_group);
            let sets =
                [format!("seed={seed}"), format!("ftl.superblock={superblock}"), "drive.op=4".to_owned()];
            let mut drive = Drive::new(&eight_planes(&sets.each_ref().map(String::as_str)));
            assert_eq!(superblocks_of(&drive), formed, "seed {seed}, {superblock}");
            let usable: Vec<u32> = drive.ftl().lanes.iter().map(|lane| lane.usable_superblocks).collect();
            let free: Vec<u32> = drive.ftl().lanes.iter().map(|lane| lane.free.len()).collect();
            assert_eq!((&usable, &free), (&formed, &formed));
            drive.audit().unwrap();
            let (summary, smart) = outputs(&mut drive);
            let superblocks: u32 = formed.iter().sum();
            assert_eq!(
                summary["bad_blocks"],
                json!({ "flash_blocks": bad, "unused": left, "blocks": superblocks }),
                "seed {seed}, {superblock}"
            );
            assert_eq!(summary["blocks_retired"], 0);
            assert_eq!(smart["nvme_smart_log"]["avail_spare"], 100);
            assert_eq!(smart["ocp_smart_log"]["Bad user nand blocks - Raw"], 0);
            assert_eq!(smart["ocp_smart_log"]["Percent free blocks"], 100);
            let table = Table::blocks(drive.geometry(), drive.array());
            let Values::U64(lanes) = &table.columns[0].values else { panic!("planes are numbers") };
            let rows = |lane: u64| lanes.iter().filter(|&&of| of == lane).count() as u32;
            assert_eq!((0..formed.len() as u64).map(rows).collect::<Vec<_>>(), formed);
        }
    }
}

/// The good blocks of the eight planes of seed 5, and what follows from them by hand: a superblock takes a block of
/// each of its planes, so the plane with the fewest counts. Without the key the drive has all blocks, and the summary
/// no such section.
#[test]
fn bad_blocks_of_one_seed_by_hand() {
    let by_hand = [
        ("plane", vec![16, 16, 14, 15, 15, 14, 16, 11], 0),
        ("die", vec![16, 14, 14, 11], 1 + 1 + 5),
        ("drive", vec![11], 5 + 5 + 3 + 4 + 4 + 3 + 5),
    ];
    let drives = by_hand.clone().map(|(superblock, ..)| {
        let mut drive =
            Drive::new(&eight_planes(&["seed=5", &format!("ftl.superblock={superblock}"), "drive.op=4"]));
        let unused = outputs(&mut drive).0["bad_blocks"]["unused"].as_u64().unwrap();
        (superblock, superblocks_of(&drive), unused)
    });
    assert_eq!(drives, by_hand);
    let mut drive = Drive::new(&eight_planes(&["seed=5", "drive.bad_blocks=0"]));
    assert_eq!(superblocks_of(&drive), [16; 8]);
    assert!(outputs(&mut drive).0.get("bad_blocks").is_none());
}

/// The probabilities that `n` blocks have exactly 0, 1, 2, ... bad ones.
fn binomial(n: u32, p: f64) -> Vec<f64> {
    let mut of = vec![(1.0 - p).powi(n as i32)];
    for bad in 1..=n {
        of.push(of[bad as usize - 1] * f64::from(n - bad + 1) / f64::from(bad) * p / (1.0 - p));
    }
    of
}

/// A group of k planes lacks as many superblocks as the plane with the most bad ones has: the most is at most j with
/// the probability F(j)^k, where F is the binomial distribution function. The rest of the good blocks is not used.
#[test]
fn the_expected_number_of_superblocks_is_that_of_the_binomial_minimum() {
    const SEEDS: u64 = 20_000;
    for (blocks, share, planes) in
        [(256, 0.02, 1), (256, 0.02, 4), (256, 0.02, 32), (512, 0.005, 8), (24, 0.1, 6)]
    {
        let of_plane = binomial(blocks, share);
        let (mut at_most, mut before, mut mean, mut square) = (0.0, 0.0, 0.0, 0.0);
        for (bad, probability) in of_plane.into_iter().enumerate() {
            at_most += probability;
            let now = f64::powi(at_most, planes as i32);
            mean += (now - before) * bad as f64;
            square += (now - before) * (bad * bad) as f64;
            before = now;
        }
        let flash = Planes { count: planes, blocks, per_lane: planes };
        let drawn: Vec<BadBlocks> = (0..SEEDS).map(|seed| BadBlocks::draw(share, seed, flash)).collect();
        let mean_of =
            |of: fn(&BadBlocks) -> u64| drawn.iter().map(|bad| of(bad) as f64).sum::<f64>() / SEEDS as f64;
        let missing = mean_of(|bad| bad.missing);
        let error = 5.0 * ((square - mean * mean) / SEEDS as f64).sqrt();
        assert!(
            (missing - mean).abs() < error,
            "{planes} planes lack {missing} superblocks, expected {mean}"
        );
        let (bad, total) = (mean_of(|bad| bad.blocks), f64::from(planes * blocks));
        let error = 5.0 * (total * share * (1.0 - share) / SEEDS as f64).sqrt();
        assert!((bad - total * share).abs() < error, "{bad} of {total} blocks are bad");
        let unused = mean_of(|bad| bad.unused);
        assert!((unused - (f64::from(planes) * missing - bad)).abs() < 1e-6, "{unused} blocks are not used");
    }
}

/// The text of a drive of one group of `planes` planes with `blocks` blocks and `op`.
fn one_group(planes: u32, blocks: u32, op: f64) -> String {
    format!(
        "[drive]\nchannels = 1\nchips_per_channel = 1\ndies_per_chip = 1\nplanes_per_die = {planes}\n\
         blocks_per_plane = {blocks}\npages_per_block = 8\npage_size = '4KiB'\nop = {op:.17}\nendurance = 20\n\
         [timing]\nmulti_plane = true\n[ftl]\nsuperblock = 'die'\n"
    )
}

/// Writes, reads and deallocates units at random.
fn random_requests<P: Probe>(drive: &mut Drive<P>, count: u64) {
    let mut stream = Stream::new(3, "requests");
    let units = u64::from(drive.geometry().logical_units);
    for _ in 0..count {
        let op = [Op::Write, Op::Write, Op::Write, Op::Read, Op::Trim][stream.below(5) as usize];
        submit_with_few(drive, op, stream.below(units) * 4096, 4096);
    }
    drive.run_until_idle(nandlab::drive::IDLE_LIMIT).unwrap();
    drive.audit().unwrap();
}

/// A drive whose one group of planes has 40 superblocks less those that bad blocks cost has the results of a drive that
/// has no more superblocks, byte for byte, from the first write until it is worn out.
#[test]
fn a_drive_with_bad_blocks_has_the_results_of_a_smaller_drive() {
    for (seed, planes, sets) in [
        (1, 1, vec![]),
        (2, 2, vec![]),
        (3, 4, vec!["gc.victim=fifo"]),
        (4, 1, vec!["gc.victim={ random = { k = 2 } }", "ftl.wear_levelling=none"]),
        (5, 1, vec!["ftl.wear_levelling=static", "ftl.wear_gap=2"]),
        (6, 1, vec!["gc.victim=cost-benefit", "power.cut_after_requests=900"]),
        (7, 1, vec!["ftl.map={ demand = { cache = '64B' } }"]),
    ] {
        let seed_set = format!("seed={seed}");
        let sets: Vec<&str> = sets.into_iter().chain([seed_set.as_str()]).collect();
        let op = |blocks: u32| f64::from(blocks * 8 * planes) / (f64::from(160 * planes) + 0.5) - 1.0;
        let large = spec(&one_group(planes, 40, op(40)), &[&sets[..], &["drive.bad_blocks=0.1"]].concat());
        let good = Drive::new(&large).geometry().good_superblocks();
        assert!(good < 40, "seed {seed} has no bad block");
        let small = spec(&one_group(planes, good, op(good)), &sets);
        let results = [large, small].map(|spec| {
            let mut drive = Drive::new(&spec);
            let then = drive.lived();
            random_requests(&mut drive, 2_000 * u64::from(planes));
            let until = drive.lived();
            drive.fast_forward(&then, &until, 0.5);
            random_requests(&mut drive, 8_000 * u64::from(planes));
            let blocks = Table::blocks(drive.geometry(), drive.array());
            let (mut summary, smart) = outputs(&mut drive);
            // These name the op, which is of all blocks.
            for key in ["notes", "bad_blocks"] {
                summary.as_object_mut().unwrap().remove(key);
            }
            summary["space"].as_object_mut().unwrap().remove("op_for_waf_5");
            (summary, smart, blocks)
        });
        let [large, small] = results;
        assert!(large.0["blocks_retired"].as_u64().unwrap() > 0, "seed {seed}: no superblock is worn out");
        assert_eq!(large, small, "seed {seed}");
    }
}

/// What closed forms assume: GC only when it must, and no other use of blocks.
const PLAIN_GC: &str = "[gc]\npacing = 'none'\nbackground_free = 0.001\nforeground_free = 0.0\nvictim = ";

/// Fills the drive and writes uniformly random units until the WAF is that of the steady state; returns this WAF.
fn waf(drive: &mut Drive, warm_up: u64) -> f64 {
    let logical = u64::from(drive.geometry().logical_units);
    let mut stream = Stream::new(3, "waf");
    (0..logical).for_each(|lpn| _ = drive.write_now(Lpn(lpn as u32)));
    (0..warm_up * logical).for_each(|_| _ = drive.write_now(Lpn(stream.below(logical) as u32)));
    let measured = 4 * logical;
    let programs: u64 = (0..measured).map(|_| drive.write_now(Lpn(stream.below(logical) as u32))).sum();
    drive.audit().unwrap();
    programs as f64 / measured as f64
}

/// Superblocks of four planes, of which bad blocks cost some: what is left has an over-provisioning of 0.30, at which
/// independent simulations have a WAF of 2.23 in blocks of 32 pages (`studies/garbage-collection/README.md`). With all
/// superblocks the over-provisioning would be 0.33, and the WAF 2.09. On average two superblocks are erased: the one
/// kept free for GC, and half of each of the two open ones.
#[test]
fn the_waf_of_greedy_gc_is_that_of_the_over_provisioning_that_bad_blocks_leave() {
    let text = |op: f64| {
        format!(
            "[drive]\nchannels = 1\nchips_per_channel = 1\ndies_per_chip = 1\nplanes_per_die = 4\n\
             blocks_per_plane = 2000\npages_per_block = 8\npage_size = '4KiB'\nop = {op:.17}\nendurance = 1000000\n\
             bad_blocks = 0.02\n[timing]\nmulti_plane = true\n[ftl]\nsuperblock = 'die'\n{PLAIN_GC}'greedy'\n"
        )
    };
    let good = Drive::new(&spec(&text(0.5), &[])).geometry().good_superblocks();
    assert!((1935..1970).contains(&good), "{good} of 2000 superblocks");
    let logical = f64::from((good - 2) * 32) / 1.30;
    let mut drive = Drive::new(&spec(&text(2000.0 * 32.0 / logical - 1.0), &[]));
    let waf = waf(&mut drive, 4);
    assert!((waf / 2.23 - 1.0).abs() < 0.01, "WAF {waf}, expected 2.23");
}

/// Four planes that are written equally and lack different numbers of blocks: each has the WAF of its own
/// over-provisioning, and the drive the mean. The closed form of FIFO, 1 / WAF = 1 - e^(-a / WAF) with a = physical /
/// logical pages, is that of Xiang and Kurkoski (2012).
#[test]
fn the_waf_of_planes_with_different_numbers_of_bad_blocks_is_the_mean_of_the_closed_form() {
    let text = "[drive]\nchannels = 1\nchips_per_channel = 1\ndies_per_chip = 1\nplanes_per_die = 4\n\
                blocks_per_plane = 1000\npages_per_block = 64\npage_size = '4KiB'\nop = 0.26\nendurance = 1000000\n\
                bad_blocks = 0.1\n[ftl]\nallocation = 'PDWC'\n";
    let mut drive = Drive::new(&spec(&format!("{text}{PLAIN_GC}'fifo'\n"), &[]));
    let logical = f64::from(drive.geometry().logical_units.div_ceil(4));
    let of_plane = |blocks: u32| {
        let a = f64::from((blocks - 2) * 64) / logical;
        (0..10_000).fold(2.0, |waf: f64, _| 1.0 / (1.0 - (-a / waf).exp()))
    };
    let by_plane: Vec<f64> = superblocks_of(&drive).into_iter().map(of_plane).collect();
    let closed = by_plane.iter().sum::<f64>() / 4.0;
    let highest = by_plane.iter().copied().fold(0.0, f64::max);
    assert!(highest / closed > 1.05, "the planes are too much alike: {by_plane:?}");
    let waf = waf(&mut drive, 8);
    assert!((waf / closed - 1.0).abs() < 0.02, "WAF {waf}, closed form {closed}");
    let (summary, _) = outputs(&mut drive);
    let stated = summary["space"]["waf_uniform_fifo"].as_f64().unwrap();
    assert!((stated / closed - 1.0).abs() < 1e-9, "{stated} in the summary, closed form {closed}");
    let spare = superblocks_of(&drive).into_iter().map(|blocks| f64::from((blocks - 2) * 64) / logical - 1.0);
    let (spare, stated) = (spare.sum::<f64>() / 4.0, summary["space"]["spare_share"].as_f64().unwrap());
    assert!((stated / spare - 1.0).abs() < 1e-9, "{stated} in the summary, {spare} spare");
}

/// Power fails again and again while superblocks wear out: a missing superblock stays missing, and is neither opened
/// nor counted as retired.
#[test]
fn missing_superblocks_stay_missing_through_power_losses() {
    for superblock in
        [["ftl.superblock=plane", "drive.endurance=60"], ["ftl.superblock=die", "drive.endurance=40"]]
    {
        let sets = ["drive.program_order=one-shot", "power.cut_at=1h"];
        let spec = eight_planes(&[&superblock[..], &sets[..]].concat());
        let mut drive = Drive::with_probe(&spec, Oracle::default());
        let superblocks = superblocks_of(&drive);
        assert!(
            superblocks.iter().any(|&lane| lane < 16)
                && superblocks.iter().any(|&lane| lane != superblocks[0])
        );
        let mut stream = Stream::new(3, "cuts");
        let units = u64::from(drive.geometry().logical_units);
        let mut requests = 0;
        while drive.stats().failed.iter().sum::<u64>() == 0 || requests < 2_000 {
            for _ in 0..stream.below(300) {
                submit_with_few(&mut drive, Op::Write, stream.below(units) * 4096, 4096);
                requests += 1;
            }
            drive.cut_power();
            drive.completions().for_each(drop);
            drive.audit().unwrap();
            assert_eq!(superblocks_of(&drive), superblocks);
            assert!(requests < 200_000, "the drive does not wear out");
        }
        let retired = drive
            .array()
            .superblocks
            .iter()
            .filter(|superblock| superblock.state == SuperblockState::Retired)
            .count();
        let usable: u32 = drive.ftl().lanes.iter().map(|lane| lane.usable_superblocks).sum();
        assert_eq!(usable + retired as u32, superblocks.iter().sum::<u32>());
        assert_eq!(outputs(&mut drive).0["blocks_retired"], retired);
        settle(&mut drive);
        read_everything(&mut drive);
    }
}

#[test]
fn a_saved_drive_is_loaded_by_a_drive_with_the_same_bad_blocks_only() {
    let drive = |sets: &[&str]| Drive::new(&eight_planes(sets));
    let mut written = drive(&[]);
    random_requests(&mut written, 2_000);
    let mut saved = Vec::new();
    written.save(&mut saved).unwrap();
    let mut loaded = drive(&[]);
    loaded.load(&saved[..]).unwrap();
    let states = |drive: &Drive| {
        drive.array().superblocks.iter().map(|superblock| superblock.state).collect::<Vec<_>>()
    };
    assert_eq!((states(&loaded), superblocks_of(&loaded)), (states(&written), superblocks_of(&written)));
    random_requests(&mut loaded, 2_000);
    assert_eq!(superblocks_of(&loaded), superblocks_of(&written));
    // Another share or seed, and a seed that draws the same number of bad blocks in other planes.
    let bad = |drive: &Drive| drive.geometry().bad.blocks;
    let alike = (2..).map(|seed| format!("seed={seed}")).find(|seed| {
        let other = drive(&[seed, "drive.op=4"]);
        bad(&other) == bad(&written) && superblocks_of(&other) != superblocks_of(&written)
    });
    for (set, differs) in [
        ("drive.bad_blocks=0", "drive.bad_blocks, seed (bad blocks)"),
        ("drive.bad_blocks=0.05", "drive.bad_blocks, seed (bad blocks)"),
        (alike.as_deref().unwrap(), "drive.bad_blocks, seed (hash of the bad blocks by plane)"),
    ] {
        let Err(SnapshotError::Mismatch(what, theirs, mine)) = drive(&[set]).load(&saved[..]) else {
            panic!("{set}: the saved drive is loaded")
        };
        assert_eq!(what, differs, "{set}");
        assert!(theirs != mine);
    }
}

/// Only a share of the superblocks is filled, and a lane may have fewer than `drive.blocks_per_plane`: the filled share
/// counts from all of them, so that every lane has the same data.
#[test]
fn preconditioning_fills_the_same_number_of_superblocks_of_every_lane() {
    let sets = ["precondition.used=0.5", "precondition.valid=0.5", "ftl.superblock=plane"];
    let mut drive = Drive::with_probe(&eight_planes(&sets), Oracle::default());
    drive.precondition(&mut |_| true);
    for lane in 0..8 {
        let superblocks = &drive.array().superblocks[drive.geometry().superblocks_of(LaneId(lane))];
        assert_eq!(superblocks.iter().map(|superblock| superblock.programmed).sum::<u32>(), 8 * 8);
    }
    drive.expect_preconditioned(|oracle| oracle);
    read_everything(&mut drive);
}
