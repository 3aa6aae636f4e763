//! Random specs x random workloads: every read is checked by the oracle, the audit holds, no request is lost.
//!
//! Each case switches a random subset of operations off (swarm testing), so that long runs of one kind happen too.

use crate::common::schemes::{Acts, Around, Schemes, first_with_room};
use crate::common::{ns, read_everything, settle, with_oracle};
use nandlab::host::{Op, Request};
use nandlab::rng::Stream;
use nandlab::sched::Kind;
use nandlab::units::Time;
use proptest::prelude::*;
use proptest::test_runner::{RngAlgorithm, TestRng, TestRunner};
use std::sync::Mutex;

const ORDERS: [&str; 6] = ["CWDP", "PDWC", "WCPD", "DPCW", "dynamic", "PCWD"];
const VICTIMS: [&str; 6] = [
    "'greedy'",
    "'cost-benefit'",
    "'fifo'",
    "'partial-aware'",
    "{ random = { k = 1 } }",
    "{ random = { k = 5 } }",
];

#[derive(Clone, Debug)]
struct Case {
    seed: u64,
    geometry: [u32; 6],
    /// Spare blocks of a plane, at least.
    spare: f64,
    order: usize,
    victim: usize,
    levelling: usize,
    scheduler: usize,
    multi_plane: bool,
    command: bool,
    decode: bool,
    off_chip: bool,
    precondition: usize,
    depth: u32,
    weights: [u32; 4],
    span: f64,
    /// The schemes that are on, and the seed of all that is drawn for them.
    schemes: ([bool; 4], u64),
    /// Blocks are due so many times less often than the drive can do it.
    ease: f64,
    fua: bool,
    /// Requests that end inside sectors.
    odd: bool,
}

fn case() -> impl Strategy<Value = Case> {
    let geometry = [1..=3u32, 1..=2, 1..=2, 1..=4, 24..=34, 4..=20];
    (
        (any::<u64>(), geometry, 6.3..8.6f64, 0..ORDERS.len(), 0..VICTIMS.len(), 0..3usize, 0..2usize),
        (any::<[bool; 4]>(), 0..3usize, 1..40u32, [0..4u32, 0..6u32, 0..2u32, 0..2u32], 0.02..1.0f64),
        (any::<[bool; 4]>(), any::<u64>(), any::<[bool; 2]>()),
    )
        .prop_map(|(a, b, c)| Case {
            seed: a.0,
            geometry: a.1,
            spare: a.2,
            order: a.3,
            victim: a.4,
            levelling: a.5,
            scheduler: a.6,
            multi_plane: b.0[0],
            command: b.0[1],
            decode: b.0[2],
            off_chip: b.0[3],
            precondition: b.1,
            depth: b.2,
            weights: b.3,
            span: b.4,
            schemes: (c.0, c.1),
            ease: 5.0,
            fua: c.2[0],
            odd: c.2[1],
        })
}

const SLOWEST_US: u64 = 1100;

fn schemes(case: &Case) -> Schemes {
    let dies = case.geometry[..3].iter().map(|&count| u64::from(count)).product();
    let around = Around { cell: "mlc", dies, slowest_us: SLOWEST_US, detect_ms: 1000.0, ease: case.ease };
    Schemes::draw(case.schemes.1, case.schemes.0, &around)
}

/// The spec, with so many spare blocks more than the case has.
fn text(case: &Case, schemes: &Schemes, room: u64) -> String {
    let [channels, chips, dies, planes, blocks, pages] = case.geometry;
    // Refresh wants some, too.
    let spare = case.spare + if schemes.on[1] { 3.0 } else { 0.0 } + room as f64;
    let blocks = blocks + room as u32 / 2;
    let op = spare / (f64::from(blocks) - spare);
    let valid = (1.7 / (1.0 + op)).min(0.45);
    let precondition = [
        String::new(),
        format!("[precondition]\nused = 0.5\nvalid = {valid}\n"),
        "[precondition]\nmethod = 'pts'\nrounds_max = 5\n".to_owned(),
    ][case.precondition]
        .clone();
    format!(
        "seed = {}\n[drive]\nchannels = {channels}\nchips_per_channel = {chips}\ndies_per_chip = {dies}\n\
         planes_per_die = {planes}\nblocks_per_plane = {blocks}\npages_per_block = {pages}\npage_size = '4KiB'\n\
         cell = 'mlc'\nop = {op}\nendurance = 1000000\n[timing]\ncommand = '{}'\ndecode = '{}'\n\
         program = {{ lsb = '300us', msb = '{SLOWEST_US}us' }}\noff_chip_mb_per_s = {}\nscheduler = '{}'\nmulti_plane = {}\n\
         [ftl]\nmap = {}\nallocation = '{}'\nwear_levelling = '{}'\nwear_gap = 2\n[gc]\nvictim = {}\nidle_after = '1ms'\n\
         {precondition}{}",
        case.seed >> 1,
        if case.command { "300ns" } else { "0us" },
        if case.decode { "15us" } else { "0us" },
        if case.off_chip { "200" } else { "'unlimited'" },
        ["fcfs", "read-first"][case.scheduler],
        case.multi_plane,
        schemes.map,
        ORDERS[case.order],
        ["none", "dynamic", "static"][case.levelling],
        VICTIMS[case.victim],
        schemes.text(u64::from(blocks * pages * planes)),
    )
}

fn run(case: &Case, requests: u32) -> Acts {
    let schemes = schemes(case);
    let (_, spec) = first_with_room(|room| text(case, &schemes, room));
    let mut drive = with_oracle(&spec);
    let mut stream = Stream::new(case.seed, "case");
    let capacity = drive.geometry().logical_bytes();
    let sectors = ((capacity as f64 * case.span) as u64 / 512).max(16);
    let total: u32 = case.weights.iter().sum();
    let mut submitted = 0;
    let mut completed = 0;
    while submitted < requests {
        if drive.outstanding() < case.depth {
            let mut draw = stream.below(u64::from(total.max(1))) as u32;
            let weighted = Op::ALL.into_iter().find(|&op| {
                let weight = case.weights[op as usize];
                let hit = draw < weight;
                draw = draw.wrapping_sub(weight);
                hit
            });
            let op = weighted.unwrap_or(Op::Write);
            let first = stream.below(sectors);
            let len = (stream.below(64) + 1).min(sectors - first);
            // Half of the requests are whole pages.
            let (first, len) =
                if stream.below(2) == 0 { (first / 8 * 8, len.div_ceil(8) * 8) } else { (first, len) };
            let len = len.min(capacity / 512 - first);
            let (offset, len) = if op == Op::Flush { (0, 0) } else { (first * 512, len * 512) };
            let odd = if case.odd && len > 0 && stream.below(4) == 0 { stream.below(len) } else { 0 };
            let (offset, len) = (offset + odd / 2, len - odd);
            let fua = case.fua && op == Op::Write && stream.below(8) == 0;
            drive.submit(&Request { arrival: drive.now(), op, fua, offset, len }).unwrap();
            submitted += 1;
            if stream.below(4) == 0 {
                drive.advance(drive.now() + ns(stream.below(400_000)));
            }
            if stream.below(200) == 0 {
                drive.advance(drive.now() + ns(20_000_000));
            }
            if stream.below(800) == 0 {
                drive.detect_budget();
            }
        } else {
            assert!(drive.advance_to_completion(Time::NEVER), "requests are outstanding and nothing happens");
        }
        completed += drive.completions().count() as u32;
        if submitted % 500 == 0 {
            drive.audit().unwrap_or_else(|e| panic!("audit on the way: {e}"));
        }
    }
    settle(&mut drive);
    completed += drive.completions().count() as u32;
    assert_eq!(completed, submitted, "every request is completed once");
    // Only what no read level decodes fails.
    let counters = &drive.stats().counters;
    assert_eq!(counters.failed_requests > 0, counters.media_errors > 0);
    assert!(counters.media_errors == 0 || drive.stats().ecc.uncorrectable > 0);
    assert!(!schemes.has_levels || drive.stats().ecc.reads() == drive.stats().flash_total(Kind::Read));
    // Whatever is mapped at the end reads back.
    read_everything(&mut drive);
    Acts::of(schemes.on, &drive)
}

#[test]
fn the_host_reads_what_it_wrote() {
    // The same cases each time; `PROPTEST_CASES` asks for more, or fewer.
    let cases = std::env::var("PROPTEST_CASES").map_or(1000, |n| n.parse().expect("a number of cases"));
    // Smaller cases may be drives that can never do what is due, and never come to rest.
    let max_shrink_iters = 0;
    let config =
        ProptestConfig { cases, failure_persistence: None, max_shrink_iters, ..ProptestConfig::default() };
    let acts = Mutex::new(Acts::default());
    let mut runner = TestRunner::new_with_rng(config, TestRng::deterministic_rng(RngAlgorithm::ChaCha));
    let outcome = runner.run(&case(), |case| {
        let done = run(&case, 3000);
        acts.lock().expect("no case has failed").add(&done);
        Ok(())
    });
    outcome.unwrap_or_else(|failure| panic!("{failure}"));
    if cases >= 1000 {
        acts.into_inner().expect("no case has failed").check();
    }
}

/// Small planes, nothing that is not asked for.
fn plain(seed: u64, schemes: ([bool; 4], u64)) -> Case {
    Case {
        seed,
        geometry: [1, 1, 1, 1, 26, 4],
        spare: 6.3,
        order: 0,
        victim: 0,
        levelling: 0,
        scheduler: 0,
        multi_plane: false,
        command: false,
        decode: false,
        off_chip: false,
        precondition: 0,
        depth: 1,
        weights: [0, 1, 0, 0],
        span: 0.02,
        schemes,
        ease: 2.5,
        fua: false,
        odd: false,
    }
}

/// Combination pages took all spare pages of a plane: GC could gain nothing, and writes failed on a drive that was not worn.
#[test]
fn combination_pages_leave_gc_what_it_needs() {
    for seed in 40..60u64 {
        let schemes = ([false, true, true, false], seed.wrapping_mul(0x9e37_79b9_7f4a_7c15));
        let drawn = plain(seed, schemes);
        run(&Case { geometry: [2, 1, 1, 1, 26, 4], victim: 5, precondition: 2, ..drawn }, 1200);
    }
}

/// While the budget was 0 more pages went through to flash than it allowed afterwards, and later writes to these pages were
/// acknowledged from the cache.
#[test]
fn a_write_to_a_page_on_its_way_to_flash_keeps_to_the_budget() {
    let drawn = plain(4_526_415_026_348_011_539, ([false, true, false, true], 7_529_363_511_072_660_356));
    let geometry = [1, 1, 1, 1, 27, 20];
    let span = 0.037_314_372_763_177_894;
    run(&Case { geometry, depth: 10, weights: [1, 4, 0, 1], span, fua: true, ..drawn }, 3000);
}
