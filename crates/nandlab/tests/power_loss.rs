//! Power cuts in random runs: whatever the drive owes is there afterwards, and it keeps working.

mod common;

use common::{read_everything, settle, spec, with_oracle};
use nandlab::drive::Drive;
use nandlab::host::{Op, Oracle, Request};
use nandlab::rng::Stream;

/// What a campaign has done.
#[derive(Clone, Copy, Debug, Default)]
struct Counts {
    cuts: u64,
    flushed: u64,
    owed: u64,
    lost: u64,
    torn_programs: u64,
    torn_erases: u64,
    with_wordline: u64,
    merged: u64,
    detections: u64,
    in_recharge: u64,
}

fn text(seed: u64) -> String {
    let mut stream = Stream::new(seed, "crash spec");
    let mut pick = |n: u64| stream.below(n);
    let (channels, chips, dies, planes) = (1 + pick(2), 1 + pick(2), 1 + pick(2), 1 + pick(2));
    let cell = ["slc", "mlc", "mlc", "mlc", "3d-mlc", "3d-tlc"][pick(6) as usize];
    let program = match cell {
        "mlc" => "{ lsb = '300us', msb = '600us' }",
        "slc" => "'300us'",
        _ => "{ fastest = '300us', slowest = '600us' }",
    };
    let pages = [6, 8, 12, 16][pick(4) as usize];
    let cache = 40 + pick(60);
    let planes_in_all = channels * chips * dies * planes;
    // Room for what the drive has to keep free.
    let blocks = 36 + pick(10) + 2 * cache / (planes_in_all * pages);
    let has_capacitor = pick(5) > 0;
    let (sync, budget) = match pick(4) {
        0 => ("none", "1.0"),
        1 => (["punctual", "greedy", "smart"][pick(3) as usize], "0.8"),
        _ => (["punctual", "greedy", "smart"][pick(3) as usize], "\"measured\""),
    };
    let budget = if has_capacitor { budget } else { "0.8" };
    let flush = ["plain", "csw"][pick(2) as usize];
    // Enough for all of the cache, or for a part of it that only a measurement finds.
    let share = if budget == "\"measured\"" { 0.5 + pick(150) as f64 / 100.0 } else { 3.0 };
    let page_j = 0.08 * 600e-6 + 0.02 * 700e-6;
    let energy = share * cache as f64 * page_j;
    let capacitance = if has_capacitor { energy / (0.5 * 24.0 * 0.9) } else { 0.0 };
    let map = if pick(3) == 0 {
        format!("{{ demand = {{ cache = '{}B' }} }}", 8 * (8 + pick(200)))
    } else {
        "'page'".into()
    };
    format!(
        "seed = {seed}\n[drive]\nchannels = {channels}\nchips_per_channel = {chips}\ndies_per_chip = {dies}\n\
         planes_per_die = {planes}\nblocks_per_plane = {blocks}\npages_per_block = {pages}\npage_size = '4KiB'\n\
         cell = '{cell}'\nlayers = 3\nop = 1.3\nendurance = 1000000\n[timing]\nread = '50us'\nprogram = {program}\nerase = '1ms'\n\
         decode = '5us'\nmulti_plane = {}\n[ftl]\nmap = {map}\nallocation = '{}'\nwear_levelling = '{}'\nwear_gap = 2\n\
         [gc]\nidle_after = '1ms'\n[cache]\nsize = '{}B'\nsync = '{sync}'\ndirty_budget = {budget}\n\
         [capacitor]\ncapacitance = '{}uF'\ncontroller_power = '20mW'\nprogram_power = '80mW'\nflush = '{flush}'\n\
         recharge = '10ms'\ndetect_every = '50ms'\ndetect_grace = '20ms'\n",
        pick(2) == 0,
        ["CWDP", "dynamic", "PDWC"][pick(3) as usize],
        ["none", "dynamic", "static"][pick(3) as usize],
        cache * 4096,
        capacitance * 1e6,
    )
    .replace("layers = 3\n", if cell.starts_with("3d") { "layers = 3\n" } else { "" })
}

fn submit(drive: &mut Drive<Oracle>, stream: &mut Stream, weights: &[u64; 4]) {
    let capacity = drive.geometry().logical_bytes();
    let sectors = capacity / 512;
    let mut draw = stream.below(weights.iter().sum());
    let op = Op::ALL.into_iter().find(|&op| {
        let hit = draw < weights[op as usize];
        draw = draw.wrapping_sub(weights[op as usize]);
        hit
    });
    let op = op.unwrap_or(Op::Write);
    let first = stream.below(sectors);
    let len = (stream.below(40) + 1).min(sectors - first);
    let (first, len) = if stream.below(2) == 0 { (first / 8 * 8, len.div_ceil(8) * 8) } else { (first, len) };
    let len = len.min(sectors - first);
    let (offset, len) = if op == Op::Flush { (0, 0) } else { (first * 512, len * 512) };
    let fua = op == Op::Write && stream.below(8) == 0;
    drive.submit(&Request { arrival: drive.now(), op, fua, offset, len }).unwrap();
}

/// One drive: runs, loses power some times, and goes on.
fn crash(seed: u64, cuts: u32, counts: &mut Counts) {
    let text = text(seed);
    let spec = spec(&text, &[]);
    let mut drive = with_oracle(&spec);
    let mut stream = Stream::new(seed, "crash run");
    let weights = [[1, 6, 0, 0], [2, 8, 1, 1], [1, 4, 0, 2], [1, 3, 2, 1]][stream.below(4) as usize];
    let depth = 1 + stream.below(24) as u32;
    let pages = u64::from(drive.geometry().logical_pages);
    // Half of the runs begin on a full drive.
    if stream.below(2) == 0 {
        for _ in 0..3 * pages {
            let lpn = nandlab::geometry::Lpn(stream.below(pages) as u32);
            drive.write_now(lpn);
        }
    }
    for _ in 0..cuts {
        let requests = stream.below(300);
        for _ in 0..requests {
            while drive.outstanding() >= depth {
                drive.completions();
                assert!(
                    drive.advance_to_completion(u64::MAX),
                    "seed {seed}: requests are outstanding and nothing happens"
                );
            }
            submit(&mut drive, &mut stream, &weights);
            match stream.below(60) {
                0 => drive.detect_budget(),
                1..=4 => drive.advance(drive.now() + stream.below(3_000_000)),
                5 => drive.advance(drive.now() + stream.below(60_000_000)),
                _ => {}
            }
            drive.completions();
        }
        drive.advance(drive.now() + stream.below(1_000_000));
        drive.completions();
        let has_capacitor = spec.capacitor.capacitance_f > 0.0;
        let recharging = drive.is_recharging();
        drive.cut_power();
        let loss = drive.stats().power.losses.last().unwrap();
        counts.cuts += 1;
        counts.flushed += u64::from(loss.flushed_pages);
        counts.owed += u64::from(loss.owed_pages);
        counts.lost += loss.lost.len() as u64;
        counts.torn_programs += u64::from(loss.torn_programs);
        counts.torn_erases += u64::from(loss.torn_erases);
        counts.with_wordline += loss.lost_with_wordline.len() as u64;
        counts.merged += u64::from(loss.recovery.unwrap().merged_pages);
        counts.in_recharge += u64::from(recharging);
        if has_capacitor {
            assert!(loss.lost.is_empty(), "seed {seed}: {loss:?}\n{text}");
            assert!(loss.lost_with_wordline.is_empty(), "seed {seed}: {loss:?}\n{text}");
        }
        drive.completions();
        drive.audit().unwrap_or_else(|e| panic!("seed {seed}: audit after recovery: {e}\n{text}"));
        read_everything(&mut drive);
        drive.completions();
    }
    counts.detections += drive.stats().power.detections.len() as u64;
    for _ in 0..200 {
        while drive.outstanding() >= depth {
            drive.completions();
            assert!(drive.advance_to_completion(u64::MAX), "requests are outstanding and nothing happens");
        }
        submit(&mut drive, &mut stream, &weights);
    }
    settle(&mut drive);
    read_everything(&mut drive);
}

#[test]
fn nothing_owed_is_lost() {
    let runs: u64 = std::env::var("NANDLAB_CRASHES").map_or(300, |n| n.parse().expect("a number"));
    let from: u64 = std::env::var("NANDLAB_CRASH_SEED").map_or(0, |n| n.parse().expect("a number"));
    let mut counts = Counts::default();
    for seed in from..from + runs {
        let done = std::panic::catch_unwind(|| {
            let mut counts = Counts::default();
            crash(seed, 8, &mut counts);
            counts
        });
        let Ok(done) = done else { panic!("seed {seed}") };
        counts.cuts += done.cuts;
        counts.flushed += done.flushed;
        counts.owed += done.owed;
        counts.lost += done.lost;
        counts.torn_programs += done.torn_programs;
        counts.torn_erases += done.torn_erases;
        counts.with_wordline += done.with_wordline;
        counts.merged += done.merged;
        counts.detections += done.detections;
        counts.in_recharge += done.in_recharge;
    }
    println!("{counts:?}");
}
