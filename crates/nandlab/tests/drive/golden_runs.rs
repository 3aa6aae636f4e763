//! Golden runs: the summaries of small whole runs, compared key by key with `golden/*.json`.
//!
//! A change of a number here is a change of results for users. `NANDLAB_BLESS=1 cargo test -p nandlab --test drive
//! golden_runs::` writes the files again; the reason is given in the commit message.

use crate::common::{US, at, spec};
use nandlab::base::rng::Stream;
use nandlab::drive::Drive;
use nandlab::drive::spec::{Arrival, Beyond};
use nandlab::host::{Op, Request};
use nandlab::probe::NoProbe;
use nandlab::report::{self, RunFacts, summary};
use nandlab::runner::{Runner, Source};
use serde_json::Value;
use std::collections::BTreeMap;
use std::convert::Infallible;
use std::fmt::Write;
use std::path::PathBuf;

const SMALL: &str = "seed = 7\n[drive]\nchannels = 2\nchips_per_channel = 2\ndies_per_chip = 1\nplanes_per_die = 2\n\
     blocks_per_plane = 24\npages_per_block = 16\npage_size = '4KiB'\ncell = 'mlc'\nop = 0.3\nendurance = 100000\n";

/// A source of random requests; the same settings give the same requests. `weights` are those of the operations; a
/// request has up to `sectors_max` sectors. Addresses are in the first `span_sectors` of the drive: in order, uniform,
/// or skewed (the least of three uniform addresses, so that low addresses are more frequent).
struct Synthetic {
    stream: Stream,
    left: u64,
    weights: [u64; 4],
    sectors_max: u64,
    span_sectors: u64,
    skewed: bool,
    arrival: u64,
    gap_ns: u64,
    sequential: Option<u64>,
}

impl Source for Synthetic {
    type Error = Infallible;

    fn next_request(&mut self) -> Option<Result<Request, Infallible>> {
        self.left = self.left.checked_sub(1)?;
        self.arrival += self.stream.below(2 * self.gap_ns + 1);
        let mut draw = self.stream.below(self.weights.iter().sum());
        let op = Op::ALL.into_iter().find(|&op| {
            let hit = draw < self.weights[op as usize];
            draw = draw.wrapping_sub(self.weights[op as usize]);
            hit
        })?;
        let (mut offset, mut len) = (0, 0);
        if op != Op::Flush {
            len = 1 + self.stream.below(self.sectors_max);
            let range = self.span_sectors - len;
            offset = self.stream.below(range);
            if self.skewed {
                offset = offset.min(self.stream.below(range)).min(self.stream.below(range));
            }
            if let Some(next) = &mut self.sequential {
                offset = if *next > range { 0 } else { *next };
                *next = offset + len;
            }
        }
        Some(Ok(Request::new(op, offset * 512, len * 512).at(at(self.arrival))))
    }
}

struct Run {
    name: &'static str,
    what: &'static str,
    text: String,
    sets: &'static [&'static str],
    requests: u64,
    weights: [u64; 4],
    sectors_max: u64,
    span: f64,
    skewed: bool,
    sequential: bool,
    arrival: Arrival,
    gap_ns: u64,
}

fn runs() -> Vec<Run> {
    let run = Run {
        name: "",
        what: "",
        text: SMALL.to_owned(),
        sets: &[],
        requests: 20_000,
        // Reads, writes, TRIMs, flushes.
        weights: [5, 5, 0, 0],
        sectors_max: 16,
        span: 1.0,
        skewed: false,
        sequential: false,
        arrival: Arrival::QueueDepth(16),
        gap_ns: 0,
    };
    vec![
        Run {
            name: "defaults",
            what: "greedy GC, CWDP, read-first, closed loop on a drive filled to 85 %",
            sets: &["precondition.used=0.85", "precondition.valid=0.7"],
            ..run_like(&run)
        },
        Run {
            name: "open_loop_background_gc",
            what: "arrivals with pauses: idle-time GC, cost-benefit, static wear levelling, TRIM and flush",
            sets: &[
                "gc.victim=cost-benefit",
                "gc.background_free=0.6",
                "gc.idle_after=1ms",
                "ftl.wear_levelling=static",
                "ftl.wear_gap=5",
                "drive.op=0.4",
                "timing.command=200ns",
            ],
            weights: [4, 10, 1, 1],
            skewed: true,
            arrival: Arrival::Trace { time_scale: 1.5 },
            gap_ns: 1500 * US,
            requests: 8_000,
            ..run_like(&run)
        },
        Run {
            name: "dynamic_multi_plane",
            what: "dynamic allocation, multi-plane, fcfs, off-chip path of 400 MB/s, LSB and MSB pages",
            sets: &[
                "ftl.allocation=dynamic",
                "timing.multi_plane=true",
                "timing.scheduler=fcfs",
                "timing.off_chip_mb_per_s=400",
                "timing.program={ lsb = '500us', msb = '1700us' }",
                "gc.victim={ random = { k = 4 } }",
            ],
            sectors_max: 64,
            requests: 12_000,
            ..run_like(&run)
        },
        Run {
            name: "steady_fifo",
            what: "SNIA preconditioning, fifo GC, constant rate of small writes",
            sets: &[
                "gc.victim=fifo",
                "precondition.method=pts",
                "ftl.allocation=PDWC",
                "ftl.wear_levelling=none",
            ],
            weights: [1, 9, 0, 0],
            sectors_max: 8,
            arrival: Arrival::Iops(2_000.0),
            ..run_like(&run)
        },
        Run {
            name: "worn_out",
            what: "endurance of 25 cycles, written beyond the first failed write",
            sets: &["drive.endurance=25", "drive.blocks_per_plane=16", "drive.op=0.6"],
            weights: [1, 9, 0, 0],
            span: 0.9,
            requests: 24_000,
            ..run_like(&run)
        },
        Run {
            name: "tlc_by_layer",
            what: "3D TLC with program times by layer, sequential large writes and reads",
            sets: &[
                "drive.cell=3d-tlc",
                "drive.layers=8",
                "drive.pages_per_block=24",
                "drive.page_size=16KiB",
                "timing.program={ fastest = '300us', slowest = '900us' }",
            ],
            sequential: true,
            sectors_max: 256,
            weights: [2, 8, 0, 1],
            requests: 6_000,
            arrival: Arrival::QueueDepth(4),
            ..run_like(&run)
        },
        Run {
            name: "rcopyback",
            what: "copybacks by the paper's table, its mode selector, a write buffer; bursts of writes with pauses",
            sets: &[
                "drive.blocks_per_plane=32",
                "drive.op=0.6",
                "timing.off_chip_mb_per_s=200",
                "migration.policy.rcopyback.limit=table",
                "cache.size=64KiB",
                "cache.sync=eager",
                "cache.dirty_budget=1.0",
                "gc.background_free=0.6",
                "gc.idle_after=1ms",
                "reliability.pe_cycles=990",
                "ftl.wear_levelling=static",
                "ftl.wear_gap=5",
            ],
            weights: [3, 7, 0, 0],
            skewed: true,
            arrival: Arrival::Trace { time_scale: 1.0 },
            gap_ns: 550 * US,
            requests: 20_000,
            ..run_like(&run)
        },
        smart_cache(&run, "smart", SMART),
        smart_cache(&run, "smart_from_margin", SMART_FROM_MARGIN),
    ]
}

const SMART: &[&str] = &[
    "cache.size=256KiB",
    "cache.sync={ smart = { budget_margin = 0.25 } }",
    "cache.dirty_budget=0.5",
    "gc.idle_after=500us",
];

/// With `busy_from` = 1 - `budget_margin` the thresholds of busy time and idle time are the same.
const SMART_FROM_MARGIN: &[&str] =
    &[SMART[0], "cache.sync={ smart = { budget_margin = 0.25, busy_from = 0.75 } }", SMART[2], SMART[3]];

/// A run of the write cache under the sync policy `smart`, with bursts and pauses.
fn smart_cache(run: &Run, name: &'static str, sets: &'static [&'static str]) -> Run {
    Run {
        name,
        what: "a write cache under `smart` with half of its pages as the budget; bursts with pauses, TRIM and flush",
        sets,
        weights: [60, 60, 3, 1],
        skewed: true,
        arrival: Arrival::Trace { time_scale: 1.0 },
        gap_ns: 350 * US,
        requests: 12_000,
        ..run_like(run)
    }
}

/// Returns a run with the settings of `run`; name and description are to be replaced.
fn run_like(run: &Run) -> Run {
    Run { text: run.text.clone(), ..*run }
}

fn play(run: &Run) -> String {
    let spec = spec(&run.text, run.sets);
    let mut drive: Drive<NoProbe> = Drive::new(&spec);
    assert!(drive.precondition(&mut |_| true).0);
    let sectors = drive.geometry().logical_bytes() / 512;
    let source = Synthetic {
        stream: Stream::new(42, run.name),
        left: run.requests,
        weights: run.weights,
        sectors_max: run.sectors_max,
        span_sectors: (sectors as f64 * run.span) as u64,
        skewed: run.skewed,
        arrival: 0,
        gap_ns: run.gap_ns,
        sequential: run.sequential.then_some(0),
    };
    let mut runner = Runner::new(source, run.arrival, Beyond::Refuse);
    let progress = runner.run(&mut drive, u64::MAX, |_| {}).unwrap_or_else(|e| panic!("{e:?}"));
    assert!(progress.is_done);
    drive.finish_stats();
    drive.audit().unwrap();
    let facts = RunFacts { complete: true, wrapped: runner.wrapped, ..RunFacts::default() };
    let mut out = summary(&drive, &facts);
    let object = out.as_object_mut().expect("a summary is an object");
    object.insert("smart".into(), report::smart(&drive));
    // A change of the version alone must not change the golden files.
    object.shift_remove("nandlab");
    let text = serde_json::to_string_pretty(&out).expect("JSON");
    format!("{text}\n")
}

/// Collects the values of the JSON with their paths; an array counts as one value.
fn leaves(value: &Value, path: &str, out: &mut BTreeMap<String, String>) {
    match value {
        Value::Object(map) => map.iter().for_each(|(key, value)| {
            leaves(value, &if path.is_empty() { key.clone() } else { format!("{path}.{key}") }, out);
        }),
        other => {
            out.insert(path.to_owned(), other.to_string());
        }
    }
}

fn changes(golden: &str, now: &str) -> String {
    let flat = |text: &str| {
        let mut out = BTreeMap::new();
        leaves(&serde_json::from_str(text).expect("JSON"), "", &mut out);
        out
    };
    let (golden, now) = (flat(golden), flat(now));
    let mut keys: Vec<&String> = golden.keys().chain(now.keys()).collect();
    keys.sort_unstable();
    keys.dedup();
    let mut out = String::new();
    for key in keys {
        let show = |side: &BTreeMap<String, String>| side.get(key).cloned().unwrap_or("not there".into());
        let (was, is) = (show(&golden), show(&now));
        if was != is {
            let _ = writeln!(out, "  {key}: {was} -> {is}");
        }
    }
    out
}

fn path(name: &str) -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("tests/golden").join(format!("{name}.json"))
}

fn compare(index: usize) {
    let run = &runs()[index];
    let now = play(run);
    assert_eq!(play(run), now, "{}: two runs must give the same bytes", run.name);
    let file = path(run.name);
    if std::env::var_os("NANDLAB_BLESS").is_some() {
        std::fs::create_dir_all(file.parent().expect("the file is in a folder")).unwrap();
        std::fs::write(&file, &now).unwrap();
        return;
    }
    let golden = std::fs::read_to_string(&file)
        .unwrap_or_else(|e| panic!("{}: {e}; NANDLAB_BLESS=1 writes it", file.display()));
    let changes = changes(&golden, &now);
    assert!(
        golden == now,
        "golden run {} ({}) has changed:\n{changes}If the change is intended, NANDLAB_BLESS=1 writes the file again; \
         put the reason into the commit message.",
        run.name,
        run.what,
    );
}

#[test]
fn defaults() {
    compare(0);
}

#[test]
fn open_loop_background_gc() {
    compare(1);
}

#[test]
fn dynamic_multi_plane() {
    compare(2);
}

#[test]
fn steady_fifo() {
    compare(3);
}

#[test]
fn worn_out() {
    compare(4);
}

#[test]
fn tlc_by_layer() {
    compare(5);
}

#[test]
fn rcopyback() {
    compare(6);
}

#[test]
fn smart() {
    compare(7);
}

#[test]
fn smart_from_margin() {
    compare(8);
}

#[test]
fn every_golden_run_has_a_file_and_every_file_a_run() {
    if std::env::var_os("NANDLAB_BLESS").is_some() {
        // The golden files are being written in this run.
        return;
    }
    let names: Vec<&str> = runs().iter().map(|run| run.name).collect();
    let folder = path("x").parent().expect("the file is in a folder").to_owned();
    let mut files: Vec<String> = std::fs::read_dir(folder)
        .unwrap()
        .map(|entry| entry.unwrap().path().file_stem().unwrap().to_string_lossy().into_owned())
        .collect();
    files.sort_unstable();
    let mut sorted = names.clone();
    sorted.sort_unstable();
    assert_eq!(files, sorted);
}

#[test]
fn another_seed_gives_another_run() {
    let mut run = run_like(&runs()[2]);
    let one = play(&run);
    run.text = run.text.replace("seed = 7", "seed = 8");
    let changes = changes(&one, &play(&run));
    assert!(
        changes.contains("gc.victim_valid_mean"),
        "the seed has not changed the victims of `random`:\n{changes}"
    );
}

#[test]
fn the_report_of_a_change_lists_the_changed_keys_with_both_values() {
    let was = r#"{"waf": 1.5, "flash": {"read": {"gc": 7}}, "gone": 1}"#;
    let is = r#"{"waf": 1.25, "flash": {"read": {"gc": 7, "host": 2}}}"#;
    let expected = "  flash.read.host: not there -> 2\n  gone: 1 -> not there\n  waf: 1.5 -> 1.25\n";
    assert_eq!(changes(was, is), expected);
}
