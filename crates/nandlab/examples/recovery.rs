//! The CPU time of simulating a recovery after a power cut, by the size of the drive.
//!
//! `recovery [--cuts N] [KEY=VALUE ...]`: on drives of 64 MiB, 512 MiB, 4 GiB and 64 GiB with 0.75 of their units mapped, writes 1,000 random
//! pages before each cut, and prints the medians of `lose_power` and of `restore_power` in microseconds with a hash of the
//! simulated state. If the hash changes, a change of the code has changed the results.
#![allow(clippy::disallowed_methods, reason = "a benchmark reads the clock")]

use nandlab::base::rng::Stream;
use nandlab::base::units::Time;
use nandlab::drive::Drive;
use nandlab::drive::spec;
use nandlab::host::{Op, Request};
use std::path::Path;

/// The CPU time of this thread in microseconds.
fn microseconds() -> f64 {
    std::thread::yield_now();
    let text = std::fs::read_to_string("/proc/thread-self/schedstat").expect("a Linux kernel");
    text.split_whitespace().next().and_then(|ns| ns.parse::<f64>().ok()).expect("a time") * 1e-3
}

/// Serves `count` writes of a page at a queue depth of 32, and leaves the last 32 outstanding.
fn write(drive: &mut Drive, stream: &mut Stream, count: u32, units: u64) {
    for _ in 0..count {
        while drive.outstanding() >= 32 {
            drive.advance_to_completion(Time::NEVER);
            drive.completions();
        }
        drive
            .submit(&Request::new(Op::Write, stream.below(units) * 4096, 4096))
            .expect("the drive takes writes");
    }
}

fn median(mut of: Vec<f64>) -> f64 {
    of.sort_by(f64::total_cmp);
    of[of.len() / 2]
}

fn main() {
    let mut sets: Vec<String> = std::env::args().skip(1).collect();
    let mut cuts = 9;
    if sets.first().is_some_and(|set| set == "--cuts") {
        cuts = sets[1].parse().expect("a number");
        sets.drain(..2);
    }
    let only = std::env::var("ONLY").ok();
    for (name, blocks) in [("64 MiB", 16), ("512 MiB", 128), ("4 GiB", 1024), ("64 GiB", 16384)] {
        if only.as_deref().is_some_and(|only| only != name) {
            continue;
        }
        let text = format!(
            "[drive]\nendurance = 1_000_000\nchannels = 2\nchips_per_channel = 2\ndies_per_chip = 1\nplanes_per_die = 1\n\
             blocks_per_plane = {blocks}\npages_per_block = 256\npage_size = \"4KiB\"\ncell = \"slc\"\nop = 0.25\n\
             [power]\ncut_at = \"1000000 s\"\n[precondition]\nused = 0.85\nvalid = 0.75\n"
        );
        let loaded = spec::load(&text, "recovery", Path::new("."), &sets).unwrap_or_else(|e| panic!("{e}"));
        let mut drive = Drive::new(&loaded.spec);
        drive.precondition(&mut |_| true);
        let units = drive.geometry().logical_bytes() / 4096;
        let mut stream = Stream::new(1, "recovery");
        let (mut lost, mut restored) = (Vec::new(), Vec::new());
        for _ in 0..cuts {
            write(&mut drive, &mut stream, 1000, units);
            let before = microseconds();
            drive.lose_power();
            let between = microseconds();
            drive.restore_power();
            restored.push(microseconds() - between);
            lost.push(between - before);
        }
        write(&mut drive, &mut stream, 1000, units);
        while drive.outstanding() > 0 {
            drive.advance_to_completion(Time::NEVER);
            drive.completions();
        }
        println!(
            "{name}: lose {:.0} us, restore {:.0} us, now {:?}",
            median(lost),
            median(restored),
            drive.now()
        );
    }
}
