//! Random runs of settings that `random_runs` leaves out: open loop, blocks that wear out, saving and loading during
//! the run, 1 to 3 bits per cell on 1 to 5 layers, transfers that take no time, and blocks of odd and extreme sizes.

use crate::common::{at, read_everything, settle, spec};
use nandlab::base::geometry::Lpn;
use nandlab::base::rng::Stream;
use nandlab::drive::{Drive, FailReason};
use nandlab::host::{Op, Oracle, Request};
use proptest::prelude::*;

#[derive(Clone, Debug)]
struct Case {
    seed: u64,
    planes: [u32; 4],
    blocks: u32,
    pages: u32,
    cell: usize,
    layers: u32,
    program: usize,
    free_transfer: bool,
    endurance: u32,
    levelling: usize,
    victim: usize,
    allocation: usize,
    multi_plane: bool,
    gap_us: u64,
    save_after: u32,
    weights: [u64; 4],
}

fn case() -> impl Strategy<Value = Case> {
    (
        (
            any::<u64>(),
            [1..=2u32, 1..=2, 1..=2, 1..=3],
            14..=70u32,
            1..=12u32,
            0..5usize,
            1..=5u32,
            0..3usize,
        ),
        (any::<[bool; 2]>(), 3..60u32, 0..3usize, 0..4usize, 0..4usize, 0..2_000u64, 0..1_500u32),
        [0..4u64, 1..6, 0..2, 0..2],
    )
        .prop_map(|(a, b, weights)| Case {
            seed: a.0,
            planes: a.1,
            blocks: a.2,
            pages: a.3,
            cell: a.4,
            layers: a.5,
            program: a.6,
            free_transfer: b.0[0],
            multi_plane: b.0[1],
            endurance: b.1,
            levelling: b.2,
            victim: b.3,
            allocation: b.4,
            gap_us: b.5,
            save_after: b.6,
            weights,
        })
}

fn text(case: &Case) -> String {
    let [channels, chips, dies, planes] = case.planes;
    let cell = ["slc", "mlc", "tlc", "3d-mlc", "3d-tlc"][case.cell];
    let stacked = cell.starts_with("3d");
    let layers = if stacked { format!("layers = {}\n", case.layers.min(case.pages)) } else { String::new() };
    let read = if case.free_transfer && case.cell > 0 { "{ lsb = '30us', msb = '80us' }" } else { "'50us'" };
    let program = match case.program {
        1 if cell.ends_with("tlc") => "{ lsb = '300us', csb = '1200us', msb = '1ms' }",
        1 if case.cell > 0 => "{ lsb = '300us', msb = '1ms' }",
        2 if stacked => "{ fastest = '250us', slowest = '700us' }",
        _ => "'400us'",
    };
    format!(
        "seed = {}\n[drive]\nchannels = {channels}\nchips_per_channel = {chips}\ndies_per_chip = {dies}\n\
         planes_per_die = {planes}\nblocks_per_plane = {}\npages_per_block = {}\npage_size = '2KiB'\ncell = '{}'\n\
         {layers}op = {}\nendurance = {}\n[timing]\nread = {read}\nprogram = {program}\nerase = '2ms'\nchannel_ns_per_byte = {}\n\
         multi_plane = {}\n[ftl]\nallocation = '{}'\nwear_levelling = '{}'\nwear_gap = 1\n\
         [gc]\nvictim = {}\nidle_after = '500us'\nbackground_free = 0.5\n",
        case.seed >> 1,
        case.blocks,
        case.pages,
        cell,
        9.0 / (f64::from(case.blocks) - 9.0),
        case.endurance,
        if case.free_transfer { 0.0 } else { 2.5 },
        case.multi_plane,
        ["CWDP", "PDWC", "dynamic", "DWPC"][case.allocation],
        ["none", "dynamic", "static"][case.levelling],
        ["'greedy'", "'cost-benefit'", "'fifo'", "{ random = { k = 2 } }"][case.victim],
    )
}

fn saved_and_loaded(mut drive: Drive<Oracle>, text: &str) -> Drive<Oracle> {
    settle(&mut drive);
    let mut bytes = Vec::new();
    drive.save(&mut bytes).unwrap();
    let mut loaded = Drive::with_probe(&spec(text, &[]), Oracle::default());
    loaded.load(bytes.as_slice()).unwrap_or_else(|e| panic!("{e}"));
    loaded.audit().unwrap_or_else(|e| panic!("audit of the loaded drive: {e}"));
    loaded.expect_preconditioned(|oracle| oracle);
    loaded
}

fn run(case: &Case, requests: u32) {
    let text = text(case);
    let mut drive = Drive::with_probe(&spec(&text, &[]), Oracle::default());
    let mut stream = Stream::new(case.seed, "more");
    let capacity = drive.geometry().logical_bytes();
    let (mut completed, mut arrival) = (0, 0);
    for request in 0..requests {
        if request == case.save_after {
            drive = saved_and_loaded(drive, &text);
            arrival = 0;
        }
        let mut draw = stream.below(case.weights.iter().sum());
        let op = Op::ALL.into_iter().find(|&op| {
            let hit = draw < case.weights[op as usize];
            draw = draw.wrapping_sub(case.weights[op as usize]);
            hit
        });
        let op = op.expect("the draw is below the sum of the weights");
        let offset = stream.below(capacity);
        let len = (1 + stream.below(8_000)).min(capacity - offset);
        let (offset, len) = if op == Op::Flush { (0, 0) } else { (offset, len) };
        // Open loop: arrivals are random. One in a hundred follows a pause in which background work runs.
        arrival += stream.below(1 + 1000 * case.gap_us);
        if stream.below(100) == 0 {
            arrival += 30_000_000;
        }
        drive.advance(at(arrival));
        assert!(drive.failure().is_none(), "{}", drive.failure().expect("the drive has failed"));
        drive.submit(&Request::new(op, offset, len).at(at(arrival)).with_fua(stream.below(8) == 0)).unwrap();
        if request % 300 == 0 {
            drive.audit().unwrap_or_else(|e| panic!("audit during the run: {e}"));
        }
        for completion in drive.completions() {
            completed += 1;
            assert!(completion.completed >= completion.request.arrival);
            assert!(
                completion.failed.is_none()
                    || completion.failed == Some(FailReason::WornOut) && completion.request.op == Op::Write,
                "a request other than a write has failed, or a write has failed for another reason than worn-out blocks"
            );
        }
        if request == case.save_after {
            // The saved drive has completed all requests that were submitted before the save.
            completed = request + 1 - drive.outstanding();
        }
    }
    settle(&mut drive);
    completed += drive.completions().count() as u32;
    assert_eq!(completed, requests, "every request is completed once");
    let worn = drive.array().superblocks.iter().any(|b| b.pe_cycles > case.endurance);
    assert!(!worn, "a block has more P/E cycles than its endurance");
    read_everything(&mut drive);
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 400, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn the_host_reads_what_it_wrote_even_when_superblocks_wear_out(case in case()) {
        run(&case, 2000);
    }
}

/// The spec allows blocks of up to 32,768 pages: with these the counters of a superblock must not overflow.
#[test]
fn blocks_of_extreme_sizes_work() {
    for (blocks, pages, op) in [(6, 32_767, 4.0), (6, 32_768, 4.0), (4_000, 1, 0.1)] {
        let text = format!(
            "[drive]\nchannels = 1\nchips_per_channel = 1\ndies_per_chip = 1\nplanes_per_die = 1\n\
             blocks_per_plane = {blocks}\npages_per_block = {pages}\npage_size = '512B'\ncell = 'slc'\nop = {op}\n"
        );
        let Ok(loaded) = nandlab::drive::spec::load(&text, "test.toml", std::path::Path::new("."), &[])
        else {
            panic!("{blocks} blocks of {pages} pages are refused");
        };
        let mut drive = Drive::new(&loaded.spec);
        let logical = u64::from(drive.geometry().logical_units);
        let mut stream = Stream::new(1, "extreme");
        for lpn in 0..logical {
            drive.write_now(Lpn(lpn as u32));
        }
        drive.audit().unwrap_or_else(|e| panic!("{blocks} blocks of {pages} pages: {e}"));
        for _ in 0..6 * logical {
            drive.write_now(Lpn(stream.below(logical) as u32));
        }
        drive.audit().unwrap_or_else(|e| panic!("{blocks} blocks of {pages} pages: {e}"));
        let erases: u64 = drive.array().superblocks.iter().map(|b| u64::from(b.pe_cycles)).sum();
        assert!(erases > 0, "GC has erased no block");
    }
}
