//! What explaining requests costs: plays requests of 4 KiB at a queue depth of 32 on a drive whose events go to an observer
//! that does nothing, as those of a live drive go to the observer that keeps its data. GC runs with the writes.
//!
//! `explained none|apart|member|fifth reads|writes REQUESTS`: without an explainer, with one among the further observers,
//! with that of the set, or with one that rests for four fifths of the requests as that of a busy live drive does: of each
//! 40,000 requests the first 8,000 are explained. The output is the simulated time, and of the kind of request how many were
//! explained and the sum of their latencies. callgrind counts the instructions: those of twice as many requests, less those
//! of the requests, are without the start.

use nandlab::base::rng::Stream;
use nandlab::base::units::Time;
use nandlab::drive::{Drive, spec};
use nandlab::host::{Op, Request};
use nandlab::probe::Probe;
use nandlab::report::{Explainer, Taps};
use nandlab::sched::Watcher;
use std::path::Path;

/// Keeps sequence numbers, and does nothing.
struct Idle;

impl Watcher for Idle {
    fn sees_phases(&self) -> bool {
        false
    }
}

impl Probe for Idle {
    fn needs_sequences(&self) -> bool {
        true
    }

    fn sees_work(&self) -> bool {
        false
    }
}

fn main() {
    let words: Vec<String> = std::env::args().skip(1).collect();
    let [how, what, requests] = &words[..] else { panic!("three words are expected") };
    let taps = Taps::default().with(Idle);
    let taps = match how.as_str() {
        "none" => taps,
        "apart" => taps.with(Explainer::live(3, 4)),
        "member" | "fifth" => taps.explaining(Explainer::live(3, 4)),
        _ => panic!("{how} is unknown"),
    };
    // The drive of `make bench-live`, with the power-loss model that a live drive has.
    let text = "seed = 1\n[drive]\nchannels = 2\nchips_per_channel = 2\ndies_per_chip = 1\nplanes_per_die = 2\n\
                pages_per_block = 128\npage_size = '4KiB'\ncell = 'slc'\ncapacity = '400MiB'\nendurance = 1000000\n\
                [timing]\nread = '50us'\nprogram = '300us'\nerase = '1ms'\n\
                [precondition]\nused = 0.8\nvalid = 0.9\n[power]\ncut_at = '1000000 s'\n";
    let loaded = spec::load(text, "explained", Path::new("."), &[]).unwrap_or_else(|e| panic!("{e}"));
    let mut drive = Drive::with_probe(&loaded.spec, taps);
    let op = if what == "reads" { Op::Read } else { Op::Write };
    drive.precondition(&mut |_| true);
    let units = (256 << 20) / 4096;
    let mut stream = Stream::new(1, "explained");
    if how == "fifth" {
        drive.probe_mut().rest_explainer();
    }
    let submit = |drive: &mut Drive<Taps>, op, unit| {
        while drive.outstanding() >= 32 {
            drive.advance_to_completion(Time::NEVER);
            drive.completions();
        }
        drive.submit(&Request::new(op, unit * 4096, 4096).at(drive.now())).expect("the drive takes it");
    };
    for unit in 0..units {
        submit(&mut drive, Op::Write, unit);
    }
    for number in 0..requests.parse::<u64>().expect("a number") {
        if how == "fifth" && (number.is_multiple_of(40_000) || drive.probe().explains()) {
            let (now, taps, is_accepted) = (drive.now(), drive.probe_mut(), number % 40_000 < 8_000);
            taps.wake_explainer(now);
            if let Some(explainer) = taps.explainer_mut() {
                explainer.accept(is_accepted);
                if !is_accepted && explainer.outstanding() == 0 {
                    taps.rest_explainer();
                }
            }
        }
        submit(&mut drive, op, stream.below(units));
    }
    let sums = drive.probe().explainer().map(|of| of.sums(op)).unwrap_or_default();
    println!("{:?} {} {}", drive.now(), sums.requests, sums.latency_ns);
}
