//! Closed forms: latencies of an idle drive, bandwidth bounds, write amplification.

use crate::common::{TINY, one, spec, submit_with_few};
use nandlab::base::geometry::Lpn;
use nandlab::base::rng::Stream;
use nandlab::base::units::Time;
use nandlab::drive::{Drive, IDLE_LIMIT};
use nandlab::host::{Op, Request};

/// Transfer of 4096 bytes at 2.5 ns per byte, in nanoseconds.
const TRANSFER: u64 = 10_240;

#[test]
fn queue_depth_1_read_costs_command_sense_transfer_decode_to_the_nanosecond() {
    for (command, decode) in [("0us", "15us"), ("1us", "15us"), ("700ns", "0us")] {
        let sets = [format!("timing.command={command}"), format!("timing.decode={decode}")];
        let sets: Vec<&str> = sets.iter().map(String::as_str).collect();
        let spec = spec(&format!("{TINY}\n[precondition]\nused = 0.7\nvalid = 0.7\n"), &sets);
        let mut drive = Drive::new(&spec);
        drive.precondition(&mut |_| true);
        let expected =
            (spec.timing.command.read_ns + spec.timing.decode_ns.unwrap()).ns() + 50_000 + TRANSFER;
        let mut stream = Stream::new(7, "test");
        for _ in 0..1000 {
            let unit = stream.below(u64::from(drive.ftl().map.mapped()));
            assert_eq!(one(&mut drive, Op::Read, unit * 4096, 4096), expected);
        }
        let read = &drive.stats().host[Op::Read as usize];
        assert_eq!(read.mean_ns(), expected as f64);
        assert_eq!((read.quantile_ns(0.5), read.max_ns), (expected, expected));
    }
}

#[test]
fn queue_depth_1_write_costs_command_transfer_program() {
    let spec = spec(TINY, &["timing.command=1us", "timing.program={ lsb = '1300us', msb = '2600us' }"]);
    let mut drive = Drive::new(&spec);
    // The first four LPNs go to the first page (LSB) of four planes, the next four to the second page (MSB).
    for unit in 0..8 {
        let program = if unit < 4 { 1_300_000 } else { 2_600_000 };
        assert_eq!(one(&mut drive, Op::Write, unit * 4096, 4096), 1_000 + TRANSFER + program);
    }
}

#[test]
fn partial_write_of_a_mapped_unit_reads_it_first() {
    let mut drive = Drive::new(&spec(TINY, &[]));
    assert_eq!(one(&mut drive, Op::Write, 512, 512), TRANSFER + 900_000, "an unmapped page needs no read");
    assert_eq!(
        one(&mut drive, Op::Write, 1024, 512),
        50_000 + TRANSFER + 15_000 + TRANSFER + 900_000,
        "read, then program"
    );
    assert_eq!(drive.stats().counters.merge_reads, 1);
}

/// A write of 128 KiB on an idle, fresh drive of 4 channels x 2 chips x 2 planes. Each of the 16 planes gets two pages
/// of 4 KiB, whose transfer takes 8192 ns each. The two chips of a channel transfer one after the other: the first chip
/// transfers its second pair of pages after its first program, the second chip after that transfer. The command of a
/// multi-plane program has its own time, or takes one command time per plane.
#[test]
fn a_large_write_is_multi_plane_from_its_first_page_on() {
    let of_two = "timing.command={ read = '361ns', program = '361ns', multi_plane_program = '1177ns' }";
    for (command, commands_ns, expected) in
        [(of_two, 1_177, 1_052_683), ("timing.command=361ns", 2 * 361, 1_051_318)]
    {
        let transfer = commands_ns + 2 * 8_192;
        assert_eq!(transfer + 500_000 + 2 * transfer + 500_000, expected);
        let spec = spec(PAIRS, &["timing.multi_plane=true", command]);
        assert_eq!(one(&mut Drive::new(&spec), Op::Write, 0, 128 << 10), expected);
        // A write of one page uses one plane.
        assert_eq!(one(&mut Drive::new(&spec), Op::Write, 0, 4 << 10), 361 + 8_192 + 500_000);
    }
}

/// The pages of 10,000 writes are queued at the same time. Each die pairs its planes for all of them.
#[test]
fn all_pages_of_many_large_writes_are_programmed_in_pairs() {
    let spec = spec(PAIRS, &["timing.multi_plane=true", "drive.blocks_per_plane=400"]);
    let mut drive = Drive::new(&spec);
    let len = 128 << 10;
    for request in 0..10_000 {
        drive.submit(&Request::write(request * len, len)).unwrap();
    }
    drive.run_until_idle(IDLE_LIMIT).unwrap();
    // A die programs 40,000 pages in pairs. The second chip of a channel begins after the first chip's first two
    // transfers.
    let (pairs, transfers) = (20_000, 2 * 8_192);
    assert_eq!(drive.stats().host[Op::Write as usize].max_ns, (pairs + 1) * transfers + pairs * 500_000);
}

const PAIRS: &str = "[drive]\nchannels = 4\nchips_per_channel = 2\ndies_per_chip = 1\nplanes_per_die = 2\n\
     blocks_per_plane = 16\npages_per_block = 64\npage_size = '4KiB'\nop = 0.25\n[timing]\nprogram = '500us'\n\
     channel_ns_per_byte = 2.0\ncommand = '0us'\n[ftl]\nallocation = 'CWDP'\n";

/// Plays sequential writes that saturate the channels or the dies, whichever are slower. Returns the measured
/// bandwidth, the bound of the channels and the bound of the dies, in bytes per ns.
fn sequential_write_bandwidth(sets: &[&str]) -> (f64, f64, f64) {
    let spec = spec(
        "[drive]\nchannels = 4\nchips_per_channel = 4\ndies_per_chip = 1\nplanes_per_die = 2\nblocks_per_plane = 64\n\
         pages_per_block = 64\npage_size = \"4KiB\"\nop = 0.25\n[timing]\nread = \"50us\"\nprogram = \"900us\"\nerase = \"3.5ms\"",
        sets,
    );
    let mut drive = Drive::new(&spec);
    let (geometry, timing) = (drive.geometry().clone(), drive.device().timing().clone());
    let total = u64::from(geometry.logical_units) / 2;
    let mut next = 0;
    while next < total || drive.outstanding() > 0 {
        while next < total && drive.outstanding() < 256 {
            let request = Request::write(next * 4096, 4096).at(drive.now());
            drive.submit(&request).unwrap();
            next += 1;
        }
        assert!(drive.advance_to_completion(Time::NEVER));
        drive.completions().for_each(drop);
    }
    let unit = f64::from(geometry.unit_bytes);
    let channel = f64::from(geometry.channels) * unit / timing.transfer_ns.ns() as f64;
    let per_die = (timing.transfer_ns + timing.shapes().first().program_ns(0)).ns() as f64;
    let die = f64::from(geometry.dies) * unit / per_die;
    (total as f64 * unit / drive.now().ns() as f64, channel, die)
}

#[test]
fn sequential_writes_reach_the_bound_of_the_dies() {
    let (measured, channel, die) = sequential_write_bandwidth(&[]);
    assert!(die < channel);
    assert!((measured / die - 1.0).abs() < 0.01, "{measured} of {die} bytes/ns");
}

#[test]
fn sequential_writes_reach_the_bound_of_the_channels() {
    let (measured, channel, die) = sequential_write_bandwidth(&["timing.channel_ns_per_byte=100"]);
    assert!(channel < die);
    assert!((measured / channel - 1.0).abs() < 0.01, "{measured} of {channel} bytes/ns");
}

/// Returns the WAF of uniform random page writes over the whole logical space in steady state, on one plane.
fn waf(victim: &str, pages_per_block: u32, effective_op: f64, logical_superblocks: u32) -> f64 {
    waf_in_units(victim, pages_per_block, effective_op, logical_superblocks, PAGES, false)
}

/// How a superblock is divided: units of 4 KiB in a page, planes of a die, dies, and whether a program writes a
/// wordline of three pages in every plane.
#[derive(Clone, Copy)]
struct Division {
    units: u32,
    planes: u32,
    dies: u32,
    one_shot: bool,
}

const PAGES: Division = Division { units: 1, planes: 1, dies: 1, one_shot: false };
const UNITS: Division = Division { units: 4, ..PAGES };

/// The same with superblocks that are divided, written a unit at a time, without simulated time or, if `is_simulated`,
/// as requests through a write buffer. Superblocks, over-provisioning and WAF are in units.
fn waf_in_units(
    victim: &str,
    units_per_superblock: u32,
    effective_op: f64,
    logical_superblocks: u32,
    Division { units, planes, dies, one_shot }: Division,
    is_simulated: bool,
) -> f64 {
    // One superblock is kept free for GC, one is open for the host and one for GC. The open superblocks are half full
    // on average. The erased units of these superblocks are no spare space, so the drive gets them in addition to the
    // effective OP.
    let logical = logical_superblocks * units_per_superblock;
    let spare = (f64::from(logical) * effective_op).round() as u32;
    let reserve = RESERVE_SUPERBLOCKS * units_per_superblock;
    let superblocks = (logical + spare + reserve).div_ceil(units_per_superblock);
    let op = f64::from(superblocks * units_per_superblock) / f64::from(logical) - 1.0;
    let mut spec = spec(
        &format!(
            "[drive]\nchannels = 1\nchips_per_channel = 1\ndies_per_chip = {dies}\nplanes_per_die = {planes}\n\
             blocks_per_plane = {superblocks}\npages_per_block = {}\npage_size = \"{}KiB\"\nop = {op:.17}\n\
             endurance = 1000000\n{}[timing]\nmulti_plane = true\n[ftl]\nmapping_unit = \"4KiB\"\nsuperblock = \"drive\"\n[gc]\npacing = \"none\"\nvictim = \"{victim}\"\nbackground_free = 0.001\nforeground_free = 0.0\n",
            units_per_superblock / (units * planes * dies),
            4 * units,
            if one_shot { "cell = \"3d-tlc\"\nlayers = 1\nprogram_order = \"one-shot\"\n" } else { "" },
        ),
        &[],
    );
    spec.ftl.buffer_bytes = if is_simulated { 256 << 10 } else { 0 };
    let mut drive = Drive::new(&spec);
    let logical = u64::from(drive.geometry().logical_units);
    // Returns the units programmed in simulated time since the last call, or for this write without simulated time.
    let mut told = 0;
    let mut write = |drive: &mut Drive, lpn: u64| {
        if is_simulated {
            submit_with_few(drive, Op::Write, lpn * 4096, 4096);
            let now = drive.stats().units_programmed();
            now - std::mem::replace(&mut told, now)
        } else {
            drive.write_now(Lpn(lpn as u32))
        }
    };
    for lpn in 0..logical {
        write(&mut drive, lpn);
    }
    let mut stream = Stream::new(3, "waf");
    // Simulated requests take longer, so there are half as many of them.
    let overwrites = logical * if is_simulated { 2 } else { 4 };
    for _ in 0..overwrites {
        write(&mut drive, stream.below(logical));
    }
    let (mut programs, mut free) = (0, 0.0);
    for number in 0..overwrites {
        programs += write(&mut drive, stream.below(logical));
        if number % 64 == 0 {
            free += f64::from(drive.ftl().free_units(nandlab::base::geometry::LaneId(0)));
        }
    }
    drive.audit().unwrap();
    let free_mean = free / (overwrites as f64 / 64.0);
    let effective = (f64::from(drive.geometry().units) - free_mean) / logical as f64 - 1.0;
    let waf = programs as f64 / overwrites as f64;
    println!(
        "{victim} {units_per_superblock} units: effective op {effective:.4} (target {effective_op}), WAF {waf:.4}, {} \
         units of padding",
        drive.stats().units.padding
    );
    assert!(
        (effective / effective_op - 1.0).abs() < 0.005,
        "the effective OP is not the target; {free_mean} units are erased on average"
    );
    waf
}

/// Mean number of erased units, in superblocks: the superblock kept free, and half of each of the two open ones.
const RESERVE_SUPERBLOCKS: u32 = 2;

/// The expected values are those of independent simulations (`studies/garbage-collection/README.md`).
#[test]
fn greedy_waf_agrees_with_independent_simulations() {
    for (pages_per_block, expected) in [(32, 2.23), (256, 2.345)] {
        let waf = waf("greedy", pages_per_block, 0.30, 1_500);
        assert!((waf / expected - 1.0).abs() < 0.01, "WAF {waf}, expected {expected}");
    }
}

/// Four units in a page: for the same number of units in a superblock the curve is that of pages in a block.
#[test]
fn greedy_waf_in_mapping_units_agrees_with_independent_simulations() {
    for (units_per_superblock, expected) in [(32, 2.23), (256, 2.345)] {
        let waf = waf_in_units("greedy", units_per_superblock, 0.30, 1_500, UNITS, false);
        assert!((waf / expected - 1.0).abs() < 0.01, "WAF {waf}, expected {expected}");
    }
}

/// Requests of 4 KiB on pages of 16 KiB, gathered by a write buffer: the same curve. GC fills each page, from victim to
/// victim.
#[test]
fn waf_of_small_writes_through_a_buffer_agrees_with_the_closed_forms() {
    for (victim, effective_op, logical_superblocks) in
        [("greedy", 0.30, 1_000), ("greedy", 0.15, 1_000), ("fifo", 0.15, 1_500)]
    {
        let closed = if victim == "fifo" { fifo_waf(effective_op) } else { greedy_waf_of(256, effective_op) };
        let waf = waf_in_units(victim, 256, effective_op, logical_superblocks, UNITS, true);
        assert!((waf / closed - 1.0).abs() < 0.005, "{victim}: WAF {waf}, closed form {closed}");
    }
}

/// Requests of 4 KiB on superblocks of 384 units that a program writes 48 or 24 units at a time: a wordline of three
/// bits a cell in four planes of a die, or in the two planes of one of four dies. GC fills each program, from victim to
/// victim.
#[test]
fn waf_in_superblocks_with_one_shot_programs_agrees_with_the_closed_forms() {
    let of_die = Division { units: 4, planes: 4, dies: 1, one_shot: true };
    let of_drive = Division { units: 4, planes: 2, dies: 4, one_shot: true };
    for division in [of_die, of_drive] {
        for (victim, closed) in [("greedy", greedy_waf_of(384, 0.28)), ("fifo", fifo_waf(0.28))] {
            let waf = waf_in_units(victim, 384, 0.28, 1_000, division, true);
            assert!((waf / closed - 1.0).abs() < 0.005, "{victim}: WAF {waf}, closed form {closed}");
        }
    }
}

/// The FTL divides the drive by superblocks alone, so without simulated time the WAF does not depend on the dies over
/// which the superblocks are spread.
#[test]
fn greedy_waf_in_superblocks_of_the_drive_is_that_of_pages() {
    let over_dies = Division { units: 4, planes: 2, dies: 4, one_shot: false };
    let [of_pages, waf] = [PAGES, over_dies].map(|of| waf_in_units("greedy", 1536, 0.30, 600, of, false));
    assert_eq!(waf, of_pages);
}

/// The WAF of greedy GC under uniform random writes in superblocks of `units` units, in the limit of many superblocks,
/// where `effective_op` is the spare space without the erased units.
///
/// All superblocks lose valid units at the same rate per valid unit, so the number of superblocks with j valid units is
/// in proportion to 1 / j, from `units` down to m + 1, if the victims have m valid units. The sum of these superblocks
/// is (1 + OP) / `units` of the logical units, which are the sum of their valid units: 1 + OP = `units` / (`units` - m)
/// (H(units) - H(m)), where H are the harmonic numbers. Between two whole m, a share of the superblocks reaches m - 1
/// before it is collected: x stands for superblocks with m valid units, in the same proportion, of which none or up to
/// 1 / m is left. The limit of a mean field is that of Van Houdt (A mean field model for a class of garbage collection
/// algorithms in flash-based solid state drives, SIGMETRICS 2013). With effective OP 0.30 the independent simulations
/// have 2.23 (32 pages in a block) and 2.345 (256 pages in a block).
fn greedy_waf_of(units: u32, effective_op: f64) -> f64 {
    let units = f64::from(units);
    let (mut valid, mut harmonics) = (units, 0.0);
    // The spare space that victims with `valid - x valid` valid units need.
    let gained = |valid: f64, x: f64| units - valid + valid * x;
    let needed = |valid: f64, harmonics: f64, x: f64| units / gained(valid, x) * (harmonics + x) - 1.0;
    while needed(valid, harmonics, 1.0 / valid) < effective_op {
        harmonics += 1.0 / valid;
        valid -= 1.0;
    }
    let (mut low, mut high) = (0.0, 1.0 / valid);
    for _ in 0..64 {
        let x = f64::midpoint(low, high);
        if needed(valid, harmonics, x) < effective_op { low = x } else { high = x }
    }
    units / gained(valid, low)
}

#[test]
fn the_closed_form_of_greedy_agrees_with_independent_simulations() {
    for (pages_per_block, simulated) in [(32, 2.23), (256, 2.345)] {
        let closed = greedy_waf_of(pages_per_block, 0.30);
        assert!((closed / simulated - 1.0).abs() < 0.001, "closed form {closed}, simulated {simulated}");
    }
}

/// Lambert's W, principal branch, by Newton's method.
fn lambert_w(x: f64) -> f64 {
    let mut w: f64 = if x < -0.25 { -0.5 } else { 0.0 };
    for _ in 0..100 {
        let e = w.exp();
        w -= (w * e - x) / (e * (w + 1.0));
    }
    w
}

/// The WAF of FIFO cleaning under uniform random writes (Xiang and Kurkoski, ICNC 2012), where `effective_op` is the
/// spare space without the erased units.
fn fifo_waf(effective_op: f64) -> f64 {
    let a = 1.0 + effective_op;
    a / (a + lambert_w(-a * (-a).exp()))
}

#[test]
fn fifo_waf_agrees_with_its_closed_form() {
    for (effective_op, published) in [(0.07_f64, 7.82_f64), (0.15, 4.02), (0.28, 2.48)] {
        let closed = fifo_waf(effective_op);
        assert!((closed / published - 1.0).abs() < 0.005, "closed form {closed}, published {published}");
        let waf = waf("fifo", 64, effective_op, 3_000);
        assert!((waf / closed - 1.0).abs() < 0.02, "WAF {waf}, closed form {closed}");
        assert!((waf / published - 1.0).abs() < 0.02, "WAF {waf}, published {published}");
    }
}
