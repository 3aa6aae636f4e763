//! Random specs x random workloads: every read is checked by the oracle, the audit holds, no request is lost.
//!
//! Each case switches a random subset of operations off (swarm testing), so that long runs of one kind happen too.

use crate::common::{read_everything, settle, spec, with_oracle};
use nandlab::host::{Op, Request};
use nandlab::rng::Stream;
use nandlab::sched::Kind;
use proptest::prelude::*;

const ORDERS: [&str; 6] = ["CWDP", "PDWC", "WCPD", "DPCW", "dynamic", "PCWD"];
const VICTIMS: [&str; 5] =
    ["'greedy'", "'cost-benefit'", "'fifo'", "{ random = { k = 1 } }", "{ random = { k = 5 } }"];

#[derive(Clone, Debug)]
struct Case {
    seed: u64,
    geometry: [u32; 6],
    op: f64,
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
    /// Entries of the mapping cache, and the eviction's fixed ones; 0 entries: the whole map in RAM.
    cache: (u32, u32),
    /// Start and retry of a level table; 0: no levels.
    start: usize,
    incremental: bool,
    /// Days that pass in a simulated second.
    days: u32,
    /// Pages of the write cache, its sync policy and the tenths of it that may be dirty; 0 pages: none.
    write_cache: (u32, usize, u32),
    fua: bool,
    /// Requests that end inside sectors.
    odd: bool,
    /// Migration policy, and its limit.
    migration: (usize, u32),
}

fn case() -> impl Strategy<Value = Case> {
    let geometry = [1..=3u32, 1..=2, 1..=2, 1..=4, 24..=34, 4..=20];
    (
        (any::<u64>(), geometry, 6.3..8.6f64, 0..ORDERS.len(), 0..VICTIMS.len(), 0..3usize, 0..2usize),
        (any::<[bool; 4]>(), 0..3usize, 1..40u32, [0..4u32, 0..6u32, 0..2u32, 0..2u32], 0.02..1.0f64),
        (prop_oneof![Just(0), 1..6u32, 1..500u32], 0..40u32, 0..5usize, any::<bool>(), 0..4000u32),
        (
            prop_oneof![Just(0), 1..6u32, 1..200u32],
            0..5usize,
            0..11u32,
            any::<[bool; 2]>(),
            (0..3usize, 0..6u32),
        ),
    )
        .prop_map(|(a, b, c, d)| Case {
            seed: a.0,
            geometry: a.1,
            // With a demand map a plane has three more blocks to spare.
            // Copybacks have a block for each number of them, and one to spare.
            op: {
                let copybacks = if d.4.0 > 0 { [0, 2, 3, 4, 6, 9][d.4.1 as usize] } else { 0 };
                let spare = a.2 + if c.0 > 0 { 3.0 } else { 0.0 } + f64::from(copybacks);
                spare / (f64::from(a.1[4]) - spare)
            },
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
            cache: (c.0, c.1),
            start: c.2,
            incremental: c.3,
            days: c.4,
            write_cache: (d.0, d.1, d.2),
            fua: d.3[0],
            odd: d.3[1],
            migration: d.4,
        })
}

fn text(case: &Case) -> String {
    let [channels, chips, dies, planes, blocks, pages] = case.geometry;
    let valid = (1.7 / (1.0 + case.op)).min(0.45);
    let precondition = [
        String::new(),
        format!("[precondition]\nused = 0.5\nvalid = {valid}\n"),
        "[precondition]\nmethod = 'pts'\nrounds_max = 5\n".to_owned(),
    ][case.precondition]
        .clone();
    let map = match case.cache {
        (0, _) => "'page'".to_owned(),
        (entries, 0) => format!("{{ demand = {{ cache = '{}B' }} }}", 8 * entries),
        (entries, fixed) => {
            let eviction = format!("{{ read-level = {{ fixed = {fixed} }} }}");
            format!("{{ demand = {{ cache = '{}B', eviction = {eviction} }} }}", 8 * entries)
        }
    };
    // Ages up to where the last level ends, so that there are lost pages too.
    let (ecc, reliability) = match case.start.checked_sub(1) {
        None => (String::new(), String::new()),
        Some(start) => (
            format!(
                "levels = 'laldpc'\nstart = '{}'\nretry = '{}'",
                ["first", "ideal", "last-level", "block-level"][start],
                if case.incremental { "incremental" } else { "full" }
            ),
            format!(
                "rber = 'vth'\npe_cycles = 12000\nread_disturb = 1e-6\nclock_scale = {}\n\
                 retention = [{{ age = '7d', share = 0.5 }}, {{ age = '{}d', share = 0.5 }}]",
                f64::from(case.days + 1) * 86_400.0,
                case.days
            ),
        ),
    };
    let cache = match case.write_cache {
        (0, ..) => String::new(),
        (pages, sync, tenths) => format!(
            "size = '{}B'\nsync = '{}'\ndirty_budget = {}",
            4096 * u64::from(pages),
            ["none", "punctual", "greedy", "smart", "eager"][sync],
            f64::from(tenths) / 10.0
        ),
    };
    // What is measured is a read level.
    let measured = if case.start == 0 { "8" } else { "'measured'" };
    let limit = ["0", "1", "2", "3", "'table'", measured][case.migration.1 as usize];
    let migration = match case.migration.0 {
        0 => "'off-chip'".to_owned(),
        1 => format!("{{ rcopyback = {{ limit = {limit} }} }}"),
        _ => format!("{{ rcopyback-greedy = {{ limit = {limit} }} }}"),
    };
    format!(
        "seed = {}\n[drive]\nchannels = {channels}\nchips_per_channel = {chips}\ndies_per_chip = {dies}\n\
         planes_per_die = {planes}\nblocks_per_plane = {blocks}\npages_per_block = {pages}\npage_size = '4KiB'\n\
         cell = 'mlc'\nop = {}\nendurance = 1000000\n[timing]\ncommand = '{}'\ndecode = '{}'\n\
         program = {{ lsb = '300us', msb = '1100us' }}\noff_chip_mb_per_s = {}\nscheduler = '{}'\nmulti_plane = {}\n\
         [migration]\npolicy = {migration}\n[cache]\n{cache}\n[ecc]\n{}\n[reliability]\n{}\n[ftl]\nmap = {}\nallocation = '{}'\nwear_levelling = '{}'\nwear_gap = 2\n[gc]\nvictim = {}\nidle_after = '1ms'\n{precondition}",
        case.seed >> 1,
        case.op,
        if case.command { "300ns" } else { "0us" },
        if case.decode { "15us" } else { "0us" },
        if case.off_chip { "200" } else { "'unlimited'" },
        ["fcfs", "read-first"][case.scheduler],
        case.multi_plane,
        ecc,
        reliability,
        map,
        ORDERS[case.order],
        ["none", "dynamic", "static"][case.levelling],
        VICTIMS[case.victim],
    )
}

fn run(case: &Case, requests: u32) {
    let spec = spec(&text(case), &[]);
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
                drive.advance(drive.now() + stream.below(400_000));
            }
            if stream.below(200) == 0 {
                drive.advance(drive.now() + 20_000_000);
            }
        } else {
            assert!(drive.advance_to_completion(u64::MAX), "requests are outstanding and nothing happens");
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
    assert!(case.start == 0 || drive.stats().ecc.reads() == drive.stats().flash_total(Kind::Read));
    // Whatever is mapped at the end reads back.
    read_everything(&mut drive);
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 1000, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn the_host_reads_what_it_wrote(case in case()) {
        run(&case, 3000);
    }
}
