//! Planes of a die that read independently (`timing.plane_reads`): hand counts on a die of four planes, and a drive of
//! single-plane dies as twin.

use crate::common::{IDLE, TINY, US, at, settle, spec};
use nandlab::base::geometry::{DieId, Lpn};
use nandlab::base::rng::Stream;
use nandlab::base::units::Time;
use nandlab::drive::Drive;
use nandlab::drive::spec::Spec;
use nandlab::host::{Op, Oracle, Request};
use nandlab::probe::{NoProbe, Probe};

/// tR, transfer of a page, tPROG and decoding, in nanoseconds.
const R: u64 = 50_000;
const T: u64 = 10_240;
const P: u64 = 900_000;
const D: u64 = 15_000;
const PAGE: u64 = 4096;
const INDEPENDENT: &str = "timing.plane_reads=independent";

/// A drive of one die with four planes, or of four dies with one plane, on one channel. LPN `i` is in plane or die
/// `i % 4`.
fn four(is_die: bool, sets: &[&str]) -> Spec {
    let one_channel = ["drive.channels=1"];
    let of_die = ["drive.planes_per_die=4", INDEPENDENT];
    let of_dies = ["drive.planes_per_die=1", "drive.dies_per_chip=4"];
    spec(TINY, &[&one_channel[..], if is_die { &of_die } else { &of_dies }, sets].concat())
}

/// Returns a drive whose first 64 LPNs are mapped.
fn filled<W: Probe>(spec: &Spec, probe: W) -> Drive<W> {
    let mut drive = Drive::with_probe(spec, probe);
    (0..64).for_each(|lpn| _ = drive.write_now(Lpn(lpn)));
    drive
}

fn submit<W: Probe>(drive: &mut Drive<W>, op: Op, lpn: u64) -> u64 {
    drive.submit(&Request::new(op, lpn * PAGE, PAGE).at(drive.now())).unwrap()
}

/// Lets the drive come to rest; returns (id, time of completion) of each request, in order of completion.
fn all<W: Probe>(drive: &mut Drive<W>) -> Vec<(u64, u64)> {
    drive.run_until_idle(IDLE).unwrap();
    drive.audit().unwrap();
    drive.completions().map(|c| (c.id, c.completed.ns())).collect()
}

#[test]
fn planes_sense_at_their_own_times_and_share_the_channel() {
    let mut drive = filled(&four(true, &[]), NoProbe);
    let ids: Vec<u64> = [0, 1, 0].map(|lpn| submit(&mut drive, Op::Read, lpn)).into();
    drive.advance(at(20 * US));
    let late = submit(&mut drive, Op::Read, 2);
    // Plane 0 senses its second page when its register is empty.
    let expected =
        [(ids[0], R + T + D), (ids[1], R + 2 * T + D), (late, R + 3 * T + D), (ids[2], R + T + R + T + D)];
    assert_eq!(all(&mut drive), expected);
    // The die is busy from the first sense to the last transfer.
    assert_eq!(drive.die_busy_ns().ns(), R + T + R + T);
}

#[test]
fn groups_of_planes_have_a_read_at_a_time() {
    let mut drive = filled(&four(true, &["timing.plane_reads={ groups = 2 }"]), NoProbe);
    let ids: Vec<u64> = [0, 1, 2].map(|lpn| submit(&mut drive, Op::Read, lpn)).into();
    // Planes 0 and 1 are one group.
    let expected = [(ids[0], R + T + D), (ids[2], R + 2 * T + D), (ids[1], R + T + R + T + D)];
    assert_eq!(all(&mut drive), expected);
}

#[test]
fn a_program_takes_all_planes() {
    let mut drive = filled(&four(true, &[]), NoProbe);
    let read = submit(&mut drive, Op::Read, 0);
    let write = submit(&mut drive, Op::Write, 1);
    drive.advance(at(R));
    // The read in plane 2 comes while the program waits, and goes before it.
    let other = submit(&mut drive, Op::Read, 2);
    drive.advance(at(R + R + T + US));
    let blocked = submit(&mut drive, Op::Read, 3);
    let begins = R + R + T;
    let expected = [
        (read, R + T + D),
        (other, R + R + T + D),
        (write, begins + T + P),
        (blocked, begins + T + P + R + T + D),
    ];
    assert_eq!(all(&mut drive), expected);
}

/// Reads every 30 us, in turns in planes 0 and 1, and a write at 100 us to plane 2. Returns when the program begins.
fn program_begins(hold: &str) -> u64 {
    let hold = format!("timing.read_hold={hold}");
    let mut drive = filled(&four(true, &[&hold]), NoProbe);
    let mut write = 0;
    for step in 0..40 {
        drive.advance(at(step * 30 * US));
        submit(&mut drive, Op::Read, step % 2);
        if step == 3 {
            drive.advance(at(100 * US));
            write = submit(&mut drive, Op::Write, 2);
        }
    }
    let done = all(&mut drive);
    done.iter().find(|done| done.0 == write).unwrap().1 - T - P
}

#[test]
fn reads_hold_a_program_off_for_a_bounded_time() {
    // A plane is read every 60 us and its read takes 60.24 us, so the planes are never free together.
    let last_read = 39 * 30 * US + R + T;
    assert!(program_begins("'10ms'") >= last_read, "the program began while planes were read");
    for hold in [0, 50, 200, 500] {
        let begins = program_begins(&format!("'{hold}us'"));
        // After the hold the reads under way end: at most one sense and both transfers.
        let from = 100 * US + hold * US;
        assert!((from..=from + R + 2 * T).contains(&begins), "{hold} us: the program began at {begins} ns");
    }
}

#[test]
fn a_suspended_program_lets_the_planes_read_at_the_same_time() {
    let suspend = "timing.suspend.program={ enter = '10us', resume = '5us', min_progress = '0us', max = 9 }";
    let mut drive = filled(&four(true, &[suspend]), NoProbe);
    let write = submit(&mut drive, Op::Write, 3);
    drive.advance(at(100 * US));
    let reads = [0, 1, 0].map(|lpn| submit(&mut drive, Op::Read, lpn));
    let ready = 110 * US;
    let second = ready + R + T;
    let left = T + P - 100 * US;
    let expected = [
        (reads[0], ready + R + T + D),
        (reads[1], ready + R + 2 * T + D),
        (reads[2], second + R + T + D),
        (write, second + R + T + 5 * US + left),
    ];
    assert_eq!(all(&mut drive), expected);
    assert_eq!(drive.device().suspended(DieId(0)), None);
}

/// The twin is a drive of single-plane dies.
#[test]
fn reads_alone_are_as_fast_as_on_dies_of_one_plane() {
    for seed in 0..30 {
        let mut stream = Stream::new(seed, "planes");
        let command = ["timing.command='0us'", "timing.command='300ns'"][stream.below(2) as usize];
        let path = ["unlimited", "300"][stream.below(2) as usize];
        let path = format!("timing.off_chip_mb_per_s={path}");
        let sets = [command, &path];
        let mut drives = [true, false].map(|is_die| filled(&four(is_die, &sets), Oracle::default()));
        for _ in 0..300 {
            let (lpn, pages) = (stream.below(56), 1 + stream.below(8));
            let pause = [0, stream.below(20 * US), stream.below(200 * US)][stream.below(3) as usize];
            for drive in &mut drives {
                drive.submit(&Request::read(lpn * PAGE, pages * PAGE).at(drive.now())).unwrap();
                drive.advance(Time::from_ns(drive.now().ns() + pause));
            }
        }
        let [planes, dies] = drives.map(|mut drive| {
            let done = all(&mut drive);
            settle(&mut drive);
            done
        });
        assert_eq!(planes, dies, "seed {seed}");
    }
}

/// Reads of random planes at random times (Poisson) under which each plane works half of the time, and a write every 5 ms.
/// Returns the mean and the longest wait of a program for its planes, in microseconds.
fn waits_at_half_load(planes: u64, hold: &str) -> (f64, f64) {
    let sets = [format!("drive.planes_per_die={planes}"), format!("timing.read_hold={hold}")];
    let one = ["drive.channels=1", "drive.blocks_per_plane=64", INDEPENDENT, &sets[0], &sets[1]];
    let mut drive = filled(&spec(TINY, &one), NoProbe);
    let mut stream = Stream::new(planes, "half load");
    // The mean time between reads: a plane works for tR and a transfer.
    let between = (2 * (R + T) / planes) as f64;
    let (mut now, mut next_write, mut writes) = (0, 0, Vec::new());
    while now < 400_000 * US {
        now += (-between * (1.0 - stream.unit()).ln()) as u64;
        drive.advance(at(now));
        submit(&mut drive, Op::Read, stream.below(56));
        if now >= next_write {
            // No LPN twice, so that no block is erased.
            writes.push((submit(&mut drive, Op::Write, 56 + writes.len() as u64), now));
            next_write += 5_000 * US;
        }
    }
    let ends: std::collections::BTreeMap<u64, u64> = all(&mut drive).into_iter().collect();
    let waits: Vec<f64> = writes.iter().map(|(id, from)| (ends[id] - from - T - P) as f64 / 1000.0).collect();
    (waits.iter().sum::<f64>() / waits.len() as f64, waits.iter().copied().fold(0.0, f64::max))
}

/// At half load all planes of a die are rarely idle together. Without a bound a program waits for that; with
/// `timing.read_hold` it waits for the hold, and for the reads under way.
#[test]
fn at_half_load_read_hold_bounds_the_wait_of_programs() {
    for planes in [4, 8] {
        let mut before = 0.0;
        for hold in [0, 100, 1000, 1_000_000] {
            let (mean, longest) = waits_at_half_load(planes, &format!("'{hold}us'"));
            println!("{planes} planes, read_hold {hold} us: mean {mean:.0} us, longest {longest:.0} us");
            // After the hold a sense may just have begun, and the registers of all planes may wait for the channel.
            let bound = hold as f64 + (R + (planes + 1) * T) as f64 / 1000.0;
            assert!(longest <= bound && mean > before, "{planes} {hold}: {mean} {longest}");
            before = mean;
        }
        // Without a bound it waits for the first time without a read: on average 1 / (2^planes) of the time is such.
        assert!(before > if planes == 8 { 2_000.0 } else { 300.0 }, "{planes} planes: {before} us");
    }
}
