//! Fast-forward: the state of a drive after a part of its life that is not simulated.

use crate::common::{TINY, at, ns, read_everything, settle, spec, submit_with_few, with_oracle};
use nandlab::base::geometry::LaneId;
use nandlab::base::rng::Stream;
use nandlab::drive::Drive;
use nandlab::drive::spec::{Arrival, Beyond};
use nandlab::flash::SuperblockState;
use nandlab::host::{Op, Oracle};
use nandlab::runner::{Runner, Source};

/// All four schemes. A day of ageing takes a second.
const AGEING: &str = r#"
[ecc]
levels = 'laldpc'
start = 'last-level'
[reliability]
rber = 'vth'
pe_cycles = 900
clock_scale = 86400.0
[refresh]
policy = { partial = { susceptible_ratio = 'vth', min_free_blocks = 0.0 } }
[migration]
policy = { rcopyback = { limit = 'table' } }
[ftl]
map = { demand = { cache = '256B' } }
[cache]
size = '64KiB'
sync = 'smart'
dirty_budget = 'measured'
[capacitor]
capacitance = '1F'
temperature = 60
detect_every = '20d'
"#;

fn drive(sets: &[&str]) -> Drive<Oracle> {
    let more = ["drive.op=2", "drive.blocks_per_plane=40", "drive.endurance=3000"];
    with_oracle(&spec(&(TINY.to_owned() + AGEING), &[&more[..], sets].concat()))
}

/// Serves random reads and writes with pauses, then lets the drive come to rest.
fn work(drive: &mut Drive<Oracle>, seed: u64, requests: u32) {
    let units = u64::from(drive.geometry().logical_units);
    let mut stream = Stream::new(seed, "fast-forward");
    for _ in 0..requests {
        let op = if stream.below(2) == 0 { Op::Read } else { Op::Write };
        submit_with_few(drive, op, stream.below(units) * 4096, 4096);
        if stream.below(50) == 0 {
            drive.advance(drive.now() + ns(stream.below(2_000_000_000)));
        }
    }
    drive.run_until_idle(nandlab::drive::IDLE_LIMIT).unwrap();
    drive.completions();
}

fn wear(drive: &Drive<Oracle>, lane: u32) -> Vec<u32> {
    drive.array().superblocks[drive.geometry().superblocks_of(LaneId(lane))]
        .iter()
        .map(|b| b.pe_cycles)
        .collect()
}

fn sum(wear: &[u32]) -> u64 {
    wear.iter().map(|&cycles| u64::from(cycles)).sum()
}

#[test]
fn each_lane_wears_at_its_rate_and_the_capacitor_ages() {
    let mut drive = drive(&["ftl.wear_levelling='static'"]);
    let (then, lived_then, worn_then) =
        (drive.lived(), drive.lived_s(), (0..4).map(|p| sum(&wear(&drive, p))).collect::<Vec<_>>());
    work(&mut drive, 2, 6000);
    let gained: Vec<u64> = (0..4).map(|p| sum(&wear(&drive, p)) - worn_then[p as usize]).collect();
    assert!(gained.iter().all(|&cycles| cycles > 20), "{gained:?}");
    let (before, seconds) = ((0..4).map(|p| wear(&drive, p)).collect::<Vec<_>>(), drive.lived_s());
    let (loss, cycles) = (drive.capacitor().unwrap().loss_share, drive.capacitor().unwrap().cycles);
    let now = drive.now();
    let until = drive.lived();
    assert_eq!(drive.fast_forward(&then, &until, 10.0), 10.0);
    assert_eq!(drive.now(), now, "fast-forward has advanced simulated time");
    for lane in 0..4 {
        let after = wear(&drive, lane);
        let each: Vec<u32> = after.iter().zip(&before[lane as usize]).map(|(a, b)| a - b).collect();
        let sum = each.iter().map(|&n| u64::from(n)).sum::<u64>();
        assert!(sum.abs_diff(10 * gained[lane as usize]) <= 1, "{sum} {gained:?}");
        let (least, most) = (each.iter().min().unwrap(), each.iter().max().unwrap());
        assert!(most - least <= 1, "the P/E cycles are not spread evenly over the blocks: {each:?}");
    }
    let skipped_s = 10.0 * (seconds - lived_then);
    assert!((drive.lived_s() - seconds - skipped_s).abs() < 1e-6);
    // The capacitor loses 30 % in five years at 60 degrees, and 0.001 % per detection.
    let detections = (skipped_s / (20.0 * 86_400.0)).floor();
    let state = drive.capacitor().unwrap();
    assert_eq!(f64::from(state.cycles - cycles), detections);
    let expected = loss + 0.3 * skipped_s / (5.0 * 365.0 * 86_400.0) + 1e-5 * detections;
    assert!(detections > 0.0 && (state.loss_share - expected).abs() < 1e-9, "{state:?} {expected}");
}

#[test]
fn without_static_wear_levelling_fast_forward_adds_no_wear_to_cold_superblocks() {
    let mut drive = drive(&["ftl.wear_levelling='dynamic'", "refresh.policy='none'"]);
    let units = u64::from(drive.geometry().logical_units);
    // Fills the drive once; only the first eighth of the units is written again.
    for lpn in 0..units {
        submit_with_few(&mut drive, Op::Write, lpn * 4096, 4096);
    }
    drive.run_until_idle(nandlab::drive::IDLE_LIMIT).unwrap();
    drive.completions();
    let then = drive.lived();
    let mut stream = Stream::new(3, "fast-forward");
    for _ in 0..8000 {
        submit_with_few(&mut drive, Op::Write, stream.below(units / 8) * 4096, 4096);
    }
    drive.run_until_idle(nandlab::drive::IDLE_LIMIT).unwrap();
    drive.completions();
    let before: Vec<u32> = drive.array().superblocks.iter().map(|superblock| superblock.pe_cycles).collect();
    let until = drive.lived();
    drive.fast_forward(&then, &until, 20.0);
    let mut cold = 0;
    for (superblock, &before) in drive.array().superblocks.iter().zip(&before) {
        if before == 900 {
            cold += 1;
            assert_eq!(superblock.pe_cycles, 900);
        } else {
            assert!(superblock.pe_cycles > before);
        }
    }
    assert!(cold > 8, "only {cold} blocks hold cold data");
}

#[test]
fn fast_forward_retires_no_superblock() {
    let mut drive = drive(&["reliability.pe_cycles=2900"]);
    let then = drive.lived();
    work(&mut drive, 4, 4000);
    let until = drive.lived();
    let lived = drive.array().superblocks.iter().map(|superblock| superblock.pe_cycles).max().unwrap() - 2900;
    let times = drive.fast_forward(&then, &until, 1e6);
    assert!(times > 1.0 && times < 1e6, "{times}");
    let most = drive.array().superblocks.iter().map(|superblock| superblock.pe_cycles).max().unwrap();
    // `lived` is the wear of the most worn block in the simulated part. The P/E cycles that remain after the
    // fast-forward allow this wear once more, but not four times.
    assert!(most + lived < 3000 && most + 4 * lived > 3000, "{most} {lived}");
    assert!(drive.array().superblocks.iter().all(|superblock| superblock.state != SuperblockState::Retired));
    work(&mut drive, 5, 500);
    settle(&mut drive);
}

#[test]
fn a_drive_keeps_its_data_through_fast_forwards() {
    let mut partial = 0;
    for (seed, levelling) in ["'static'", "'dynamic'", "'none'"].into_iter().enumerate() {
        let sets = [&format!("ftl.wear_levelling={levelling}"), "reliability.pe_cycles=1700"];
        let mut drive = drive(&sets);
        for round in 0..6 {
            let then = drive.lived();
            work(&mut drive, 10 * seed as u64 + round, 2000);
            drive.audit().unwrap_or_else(|e| panic!("audit: {e}"));
            let until = drive.lived();
            drive.fast_forward(&then, &until, 5.0);
            drive.audit().unwrap_or_else(|e| panic!("audit after the fast-forward: {e}"));
            assert_eq!(drive.overdue(), None, "a block is overdue after the fast-forward");
        }
        settle(&mut drive);
        read_everything(&mut drive);
        partial += drive.stats().refresh.partial_pages;
        assert_eq!(drive.stats().counters.media_errors, 0);
    }
    assert!(partial > 100, "too few pages were refreshed partially: {partial}");
}

#[test]
fn superblocks_come_due_evenly_after_wear_has_shortened_the_interval() {
    // The interval is a year up to 1000 P/E cycles, then 30 days.
    let mut drive = drive(&["reliability.pe_cycles=970", "ftl.wear_levelling='static'", "gc.victim='fifo'"]);
    let units = u64::from(drive.geometry().logical_units);
    for lpn in 0..units {
        submit_with_few(&mut drive, Op::Write, lpn * 4096, 4096);
    }
    drive.advance(drive.now() + ns(100_000_000_000));
    drive.completions();
    let then = drive.lived();
    let mut stream = Stream::new(5, "fast-forward");
    for _ in 0..2000 {
        submit_with_few(&mut drive, Op::Write, stream.below(units / 8) * 4096, 4096);
    }
    drive.run_until_idle(nandlab::drive::IDLE_LIMIT).unwrap();
    drive.completions();
    let until = drive.lived();
    drive.fast_forward(&then, &until, 50.0);
    let after = drive.array().superblocks.iter().map(|superblock| superblock.pe_cycles).min().unwrap();
    assert!(after > 1000, "{after}");
    assert_eq!(drive.overdue(), None);
    let refreshed = drive.stats().refresh.blocks;
    let mut by_day = Vec::new();
    for _ in 0..34 {
        drive.advance(drive.now() + ns(1_000_000_000));
        by_day.push(drive.stats().refresh.blocks - refreshed);
    }
    let all = *by_day.last().unwrap();
    // The refreshes are spread over the interval of 30 days: of those in 34 days less than a sixth come on the first
    // day, and between a sixth and four fifths in the first 15 days.
    assert!(all > 40, "{by_day:?}");
    assert!((all / 6..all * 4 / 5).contains(&by_day[14]), "{by_day:?}");
    assert!(by_day[0] < all / 6, "{by_day:?}");
    settle(&mut drive);
}

/// A source of writes that arrive every 100 us.
struct Steady(u64);

impl Source for Steady {
    type Error = ();

    fn next_request(&mut self) -> Option<Result<nandlab::host::Request, ()>> {
        self.0 += 1;
        let offset = self.0 * 37 % 200 * 4096;
        Some(Ok(nandlab::host::Request::write(offset, 4096).at(at(self.0 * 100_000))))
    }
}

#[test]
fn a_rest_of_the_runner_delays_later_arrivals() {
    let mut drive = Drive::with_probe(&spec(TINY, &[]), Oracle::default());
    let mut runner = Runner::new(Steady(0), Arrival::Trace { time_scale: 1.0 }, Beyond::Refuse);
    runner.run(&mut drive, 50, |_| ()).unwrap();
    let (outstanding, completed) = (u64::from(drive.outstanding()), runner.completed());
    assert!(outstanding > 0);
    let began = drive.now();
    assert!(!runner.rest(&mut drive, ns(1_000_000), |_| ()), "a millisecond is too short");
    assert!(runner.rest(&mut drive, ns(1_000_000_000), |_| ()));
    assert!(drive.is_at_rest() && drive.now() > began);
    assert_eq!(runner.completed(), completed + outstanding);
    let rested = drive.now() - began;
    let mut arrivals = Vec::new();
    runner.run(&mut drive, 20, |done| arrivals.push(done.request.arrival)).unwrap();
    let (first, submitted) = (arrivals.iter().min().unwrap(), completed + outstanding);
    assert_eq!(
        *first,
        at((submitted + 1) * 100_000) + rested,
        "arrivals are delayed by the length of the rest"
    );
}
