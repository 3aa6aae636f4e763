//! `ftl.streams`: the drive divides the host's writes into streams.

use crate::common::schemes::first_accepted;
use crate::common::{TINY, request, spec, wait_for_fewer, with_oracle};
use nandlab::base::geometry::{Lpn, SuperblockId};
use nandlab::base::policy::PolicyError;
use nandlab::base::rng::Stream;
use nandlab::drive::{Drive, IDLE_LIMIT, Policies};
use nandlab::host::streams::StreamPolicy;
use nandlab::host::{Op, Oracle, Tag};
use nandlab::probe::Probe;
use std::sync::{Arc, Mutex};

const PAGE: u64 = 4096;

fn write<P: Probe>(drive: &mut Drive<P>, lpn: u64, placement: u16) {
    wait_for_fewer(drive, 8);
    let write = request(drive, Op::Write, lpn * PAGE, PAGE).with_tag(Tag { queue: 0, placement });
    drive.submit(&write).unwrap();
}

fn finish<P: Probe>(drive: &mut Drive<P>) {
    drive.submit(&request(drive, Op::Flush, 0, 0)).unwrap();
    drive.run_until_idle(IDLE_LIMIT).unwrap();
}

fn waf<P: Probe>(drive: &Drive<P>) -> f64 {
    let stats = drive.stats();
    let (all, host) = (stats.units_programmed() as f64, stats.counters.host_pages_written as f64);
    all / host
}

/// 64 blocks of 64 pages in one plane, whose data is half written often.
const SKEWED: &str = r"
[drive]
channels = 1
chips_per_channel = 1
planes_per_die = 1
blocks_per_plane = 128
pages_per_block = 64
page_size = '4KiB'
op = 0.2
endurance = 1000000
[gc]
pacing = 'none'
background_free = 0.0001
foreground_free = 0.0
[precondition]
used = 0.9
valid = 0.9
";

/// The address of a write: a tenth of the pages takes 0.9 of the writes, or Zipf 1 by rank.
fn address(stream: &mut Stream, pages: u64, is_zipf: bool) -> u64 {
    if is_zipf {
        // The inverse of the distribution function of a density 1 / x over 1..=pages, spread over the drive.
        let rank = (pages as f64).powf(stream.unit()) as u64;
        return (rank * 7919) % pages;
    }
    if stream.below(10) > 0 { stream.below(pages / 10) * 10 } else { stream.below(pages) }
}

fn skewed(policy: &str, is_zipf: bool) -> f64 {
    let mut drive = Drive::new(&spec(SKEWED, &[&format!("ftl.streams={policy}")]));
    let pages = u64::from(drive.geometry().logical_units);
    let mut stream = Stream::new(9, "skewed writes");
    let mut before = (0.0, 0.0);
    for number in 0..20 * pages {
        if number == 10 * pages {
            let stats = drive.stats();
            before = (stats.units_programmed() as f64, stats.counters.host_pages_written as f64);
        }
        let lpn = address(&mut stream, pages, is_zipf);
        write(&mut drive, lpn, 0);
    }
    finish(&mut drive);
    drive.audit().unwrap();
    let stats = drive.stats();
    (stats.units_programmed() as f64 - before.0) / (stats.counters.host_pages_written as f64 - before.1)
}

/// Both policies lower the WAF of skewed writes.
#[test]
fn streams_of_short_lived_data_lower_the_waf_of_skewed_writes() {
    let hashed = "{multi-hash={counters=16384,threshold=4,decay=8192}}";
    for is_zipf in [false, true] {
        let [none, sepbit, multi_hash] = ["none", "sepbit", hashed].map(|policy| skewed(policy, is_zipf));
        // With two temperatures SepBIT gains 1 % under greedy, with many 10 %.
        let of_sepbit = if is_zipf { 0.92 } else { 1.0 };
        assert!(sepbit < of_sepbit * none && multi_hash < 0.97 * none, "{none} {sepbit} {multi_hash}");
    }
}

/// Regression: GC moved data of classes into the stream of the handles that it mixes, although handle 0 is persistently
/// isolated.
#[test]
fn classes_of_a_persistently_isolated_handle_stay_with_it() {
    for policy in ["sepbit", "{multi-hash={threshold=1}}"] {
        let sets = [
            &format!("ftl.streams={policy}"),
            "placement.handles=2",
            "placement.isolation=['persistent', 'initial']",
        ];
        let mut drive = Drive::new(&spec(SKEWED, &sets));
        let pages = u64::from(drive.geometry().logical_units);
        let mut stream = Stream::new(9, "skewed writes");
        for number in 0..5 * pages {
            let lpn = address(&mut stream, pages, false);
            write(&mut drive, lpn, (number % 7 == 0).into());
            if number % pages == 0 {
                drive.audit().unwrap();
            }
        }
        finish(&mut drive);
        drive.audit().unwrap();
        assert!(drive.stats().gc.victims > 0);
    }
}

/// By hand, on a drive of four lanes: LPNs 0, 4, 8 are all in lane 0. With a threshold of 2 the second write of an LPN is
/// hot and goes to the superblock of class 1.
#[test]
fn hot_and_cold_data_share_no_superblock() {
    let sets = ["ftl.streams={multi-hash={counters=100000,threshold=2,decay=1000000}}"];
    let mut drive = with_oracle(&spec(TINY, &sets));
    for lpn in [0, 4, 8, 0, 4] {
        write(&mut drive, lpn, 0);
    }
    finish(&mut drive);
    let superblock = |lpn| drive.geometry().superblock_of(drive.ftl().map.get(Lpn(lpn)).unwrap());
    let [a, b, cold] = [0, 4, 8].map(superblock);
    assert!(a == b && a != cold);
    let mark = |superblock: SuperblockId| drive.array().superblock(superblock).mark;
    assert!(mark(a) > 0 && mark(cold) == 0);
    assert_eq!(drive.ftl().streams.of_class(1), drive.ftl().streams.marked(mark(a)).unwrap());
    drive.audit().unwrap();
    drive.probe().verdict().unwrap();
}

/// GC moves the data of SepBIT's Class 1 to a superblock of its own, and from there to that of all moved data.
#[test]
fn gc_keeps_data_of_class_1_apart_once() {
    let mut drive = with_oracle(&spec(SKEWED, &["ftl.streams=sepbit"]));
    let pages = u64::from(drive.geometry().logical_units);
    let mut stream = Stream::new(2, "moved");
    let mut seen = [0u32; 3];
    let streams = drive.ftl().streams.clone();
    let apart = streams.marked(drive.ftl().streams.spec(streams.of_class(1)).mark + 7).unwrap();
    assert!(streams.is_gc(apart));
    for _ in 0..6 * pages {
        let lpn = address(&mut stream, pages, false);
        write(&mut drive, lpn, 0);
        let of_mark = |stream| drive.ftl().streams.spec(stream).mark;
        for (number, mark) in [0, of_mark(streams.of_class(1)), of_mark(apart)].into_iter().enumerate() {
            let any = drive.array().superblocks.iter().any(|superblock| superblock.mark == mark);
            seen[number] += u32::from(any);
        }
    }
    assert!(seen.iter().all(|&count| count > 1000), "{seen:?}");
    finish(&mut drive);
    drive.audit().unwrap();
    drive.probe().verdict().unwrap();
}

/// A policy that tells pages to classes by their address, and remembers what it was asked.
#[derive(Debug)]
struct ByAddress {
    asked: Arc<Mutex<Vec<(u32, u64)>>>,
    answer: u8,
}

impl StreamPolicy for ByAddress {
    fn class(&mut self, lpn: Lpn, written: u64) -> Result<u8, PolicyError> {
        self.asked.lock().unwrap().push((lpn.0, written));
        Ok(if lpn.0.is_multiple_of(2) { 0 } else { self.answer })
    }
}

fn by_address(answer: u8, asked: &Arc<Mutex<Vec<(u32, u64)>>>) -> Policies {
    let asked = asked.clone();
    Policies::default()
        .with_streams("by-address", move || Box::new(ByAddress { asked: asked.clone(), answer }))
}

/// Writes with another placement handle are the host's own division: a policy is not asked about them.
#[test]
fn a_policy_is_asked_once_for_each_write_with_handle_0() {
    let asked = Arc::default();
    let spec = spec(TINY, &["ftl.streams=multi-hash", "placement.handles=2"]);
    let mut drive = Drive::build(&spec, by_address(1, &asked), Oracle::default()).unwrap();
    for (lpn, placement) in [(0, 0), (1, 0), (2, 1), (3, 1), (1, 0)] {
        write(&mut drive, lpn, placement);
    }
    finish(&mut drive);
    assert_eq!(*asked.lock().unwrap(), [(0, 0), (1, 1), (1, 2)]);
    let mark = |lpn| {
        let superblock = drive.geometry().superblock_of(drive.ftl().map.get(Lpn(lpn)).unwrap());
        drive.array().superblock(superblock).mark
    };
    let of = |stream| drive.ftl().streams.spec(stream).mark;
    let (streams, [cold, hot, other]) = (&drive.ftl().streams, [0, 1, 2].map(mark));
    assert_eq!(
        [cold, hot, other],
        [of(streams.host(0).unwrap()), of(streams.of_class(1)), of(streams.host(1).unwrap())]
    );
    drive.audit().unwrap();
}

#[test]
fn a_class_that_the_drive_does_not_have_ends_the_run_with_the_name_of_the_policy() {
    let asked = Arc::default();
    let spec = spec(TINY, &["ftl.streams=multi-hash"]);
    let mut drive = Drive::build(&spec, by_address(2, &asked), Oracle::default()).unwrap();
    write(&mut drive, 1, 0);
    drive.run_until_idle(IDLE_LIMIT).unwrap_err();
    let said = drive.failure().expect("the policy has failed").to_string();
    assert!(said.contains("by-address") && said.contains("class 2, and the drive has 2 classes"), "{said}");
    let refused = Drive::build(&crate::common::spec(TINY, &[]), by_address(1, &asked), Oracle::default());
    assert!(refused.unwrap_err().to_string().contains("set ftl.streams to a policy"));
}

/// Each class has an open superblock in every lane, and SepBIT's GC one more: the spec check asks for them.
#[test]
fn the_streams_of_a_policy_count_in_the_needs() {
    let needed = |policy: &str| {
        let text = |attempt: u64, op: f64| {
            TINY.replace("blocks_per_plane = 16", &format!("blocks_per_plane = {}", 4 + attempt))
                .replace("op = 0.5", &format!("op = {}", op.max(0.2)))
                + &format!("[ftl]\nstreams = {policy}\n")
        };
        let (_, spec) = first_accepted(0.0, text);
        let needs = nandlab::drive::spec::superblock_needs(&spec);
        (needs.open(), needs.free(), needs.of("streams").open)
    };
    let (open, free, of) = needed("'none'");
    assert_eq!(of, 0);
    assert_eq!(needed("'multi-hash'"), (open + 1, free, 1));
    assert_eq!(needed("'sepbit'"), (open + 2, free, 2));
}

#[test]
fn power_loss_makes_a_policy_forget() {
    let sets = ["ftl.streams={multi-hash={counters=100000,threshold=2,decay=1000000}}"];
    let mut drive = with_oracle(&spec(TINY, &sets));
    let class = |drive: &Drive<Oracle>| {
        let superblock = drive.geometry().superblock_of(drive.ftl().map.get(Lpn(0)).unwrap());
        drive.array().superblock(superblock).mark > 0
    };
    write(&mut drive, 0, 0);
    finish(&mut drive);
    drive.cut_power();
    drive.run_until_idle(IDLE_LIMIT).unwrap();
    write(&mut drive, 0, 0);
    finish(&mut drive);
    assert!(!class(&drive), "the first write after the loss");
    write(&mut drive, 0, 0);
    finish(&mut drive);
    assert!(class(&drive));
    assert!(waf(&drive) >= 1.0);
    drive.audit().unwrap();
    drive.probe().verdict().unwrap();
}

/// The data of all classes is that of handle 0, so a drive without classes loads it, and goes on.
#[test]
fn a_drive_without_classes_loads_one_with_them() {
    let mut drive = with_oracle(&spec(TINY, &["ftl.streams=sepbit"]));
    let pages = drive.geometry().logical_bytes() / 4096;
    let mut stream = Stream::new(1, "pages");
    let write_some = |drive: &mut Drive<Oracle>, stream: &mut Stream| {
        for _ in 0..2000 {
            write(drive, stream.below(pages), 0);
            finish(drive);
        }
    };
    write_some(&mut drive, &mut stream);
    let marks: std::collections::BTreeSet<u8> = drive.array().superblocks.iter().map(|of| of.mark).collect();
    assert!(marks.len() > 1, "{marks:?}");
    let mut bytes = Vec::new();
    drive.save(&mut bytes).unwrap();
    let mut loaded = with_oracle(&spec(TINY, &[]));
    loaded.load(bytes.as_slice()).unwrap();
    loaded.expect_preconditioned(|oracle| oracle);
    write_some(&mut loaded, &mut stream);
    loaded.audit().unwrap();
    loaded.probe().verdict().unwrap();
}
