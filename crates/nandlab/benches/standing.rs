//! The standing benchmark: `cargo bench -p nandlab`.
//!
//! The main drive has 16 GiB on 4 x 4 dies, and is preconditioned so that GC runs. It serves a million requests: 70 %
//! writes, 4 to 16 KiB, zipf 0.9 over 8 GiB, queue depth 64. The benchmark prints page operations per second on one
//! core. As an upper limit it prints the page operations per second of a bare loop on arrays of the same size. The
//! speed of larger drives, up to 1 TiB, follows. `outcome` is a hash of the simulated time and the number of page
//! operations: if it changes, a change of the code has changed the results. All times are CPU time.
//!
//! These options serve the tools of `make bench` and `make instructions`; each prints one line of JSON. `--once=BLOCKS`
//! measures the main drive, with this number of blocks in a plane, and its bare loop once. `--bare=TRACE` measures the
//! bare loop on the requests of a trace, on the drive of tools/bench.py. `--counted=CASE` plays a tenth of the requests
//! on a drive of 1 GiB, for a program that counts the instructions inside [`counted`]. For the same program
//! `--mechanisms` prints the names of the mechanisms, the queue depths and the sizes of reads that are compared;
//! `--counted-mechanism=NAME` with `--depth=DEPTH` plays the load of a mechanism, and `--counted-reads=MIB` reads of
//! this size.
//!
//! Each case names the mechanisms that it measures, and fails if one of them does not act. The test
//! `tests/drive/bench_cases.rs` plays the cases of `--counted`.
#![allow(clippy::disallowed_methods, reason = "a benchmark reads the clock")]

#[allow(clippy::duplicate_mod, reason = "the tests, which include this file, have the module too")]
#[path = "../tests/common/mechanisms.rs"]
mod mechanisms;

use mechanisms::{DEPTHS, MECHANISMS, MOST, Mechanism, SIZES_MIB, large_reads, operations};
use nandlab::base::geometry::Lpn;
use nandlab::base::rng::Stream;
use nandlab::demand_map::{Cache, ENTRY_BYTES};
use nandlab::drive::Drive;
use nandlab::drive::spec::{self, Arrival, Beyond, Eviction};
use nandlab::host::{Op, Request, Tag};
use nandlab::probe::{NoProbe, Probe};
use nandlab::report::{Explainer, Taps};
use nandlab::runner::{Runner, Source};
use nandlab::sched::{Cause, FlashOp};
use std::borrow::Cow;
use std::path::Path;
use std::time::{SystemTime, UNIX_EPOCH};

const REQUESTS: usize = 1_000_000;
const SPAN: u64 = 8 << 30;
const MAIN_BLOCKS: u32 = 2048;
/// The share of the blocks that preconditioning fills.
const USED: f64 = 0.988;
/// Bytes of a mapping unit.
const UNIT: u64 = 4096;
const QUEUE_DEPTH: u32 = 64;
/// The case of `--counted` with an observer: the small run of the plain drive, whose requests are explained.
const OBSERVED: &str = "explained";
/// The requests that keep their path there.
const EXPLAINED: u32 = 16;

/// The CPU time of this thread in seconds; the time of day on a system that has no `/proc/thread-self/schedstat`.
fn seconds() -> f64 {
    // The system brings the time up to date when the thread offers to yield.
    std::thread::yield_now();
    std::fs::read_to_string("/proc/thread-self/schedstat")
        .ok()
        .and_then(|text| text.split_whitespace().next()?.parse::<u64>().ok())
        .map_or_else(
            || SystemTime::now().duration_since(UNIX_EPOCH).expect("the clock is right").as_secs_f64(),
            |ns| ns as f64 * 1e-9,
        )
}

/// Returns requests whose units have Zipf 0.9 ranks. The ranks are drawn by inversion of the continuous distribution; a
/// multiplier that is prime to the span maps ranks to units.
fn requests(count: usize, span: u64) -> Vec<Request> {
    let mut stream = Stream::new(1, "bench");
    let units = span / UNIT;
    let top = libm::pow(units as f64, 0.1);
    let sizes = [1, 2, 3, 4];
    (0..count)
        .map(|_| {
            let rank = (libm::pow(stream.unit() * (top - 1.0) + 1.0, 10.0) as u64 - 1).min(units - 1);
            let unit = rank.wrapping_mul(0x9e37_79b1) % units;
            let len = sizes[stream.below(4) as usize].min(units - unit);
            let op = if stream.below(10) < 7 { Op::Write } else { Op::Read };
            Request::new(op, unit * UNIT, len * UNIT)
        })
        .collect()
}

/// A preconditioned drive of a spec.
fn preconditioned<P: Probe>(text: &str, sets: &[&str], probe: P) -> Drive<P> {
    let sets: Vec<String> = sets.iter().map(|set| (*set).to_owned()).collect();
    let loaded = spec::load(text, "bench", Path::new("."), &sets).unwrap_or_else(|e| panic!("{e}"));
    let mut drive = Drive::with_probe(&loaded.spec, probe);
    drive.precondition(&mut |_| true);
    drive
}

fn drive(blocks_per_plane: u32, sets: &[&str]) -> Drive {
    observed(blocks_per_plane, sets, NoProbe)
}

/// [`drive`] with an observer.
fn observed<P: Probe>(blocks_per_plane: u32, sets: &[&str], probe: P) -> Drive<P> {
    let text = format!(
        "[drive]\nendurance = 1_000_000\nchannels = 4\nchips_per_channel = 4\ndies_per_chip = 1\nplanes_per_die = 2\n\
         blocks_per_plane = {blocks_per_plane}\npages_per_block = 64\npage_size = \"4KiB\"\ncell = \"mlc\"\nop = 0.07\n\
         [precondition]\nused = {USED}\nvalid = 0.80\n"
    );
    preconditioned(&text, sets, probe)
}

/// A source of requests from memory.
struct Replay<'a>(std::slice::Iter<'a, Request>);

impl Source for Replay<'_> {
    type Error = std::convert::Infallible;
    fn next_request(&mut self) -> Option<Result<Request, Self::Error>> {
        self.0.next().map(|request| Ok(*request))
    }
}

/// A drive whose speed the bench compares with that of another one.
pub(crate) struct Scheme {
    pub(crate) name: &'static str,
    /// The scheme with whose time it is compared.
    pub(crate) than: &'static str,
    /// Settings of the drive, in groups.
    sets: &'static [&'static [&'static str]],
    /// What has to happen in the run.
    acts: &'static [Act],
}

/// A mechanism, and how often it has acted.
type Act = (&'static str, fn(&Drive) -> u64);

const GC: Act = ("GC", |drive| drive.stats().gc.victims);
const HIGHER_LEVELS: Act =
    ("reads above read level 1", |drive| drive.stats().ecc.host_needed.iter().skip(2).sum());
const RETRIES: Act = ("read retries", |drive| drive.stats().ecc.retries);
const KNOWN_LEVELS: Act = ("first tries above level 1", |drive| drive.stats().ecc.host_soft_starts);
const MAP_MISSES: Act = ("misses of the mapping cache", |drive| drive.stats().map.read_misses);
const MAP_EVICTIONS: Act = ("evictions from the mapping cache", |drive| drive.stats().map.evictions);
const SHARED_PAGES: Act = ("host units that share a flash page", |drive| {
    let stats = drive.stats();
    stats
        .counters
        .host_pages_written
        .saturating_sub(stats.flash[FlashOp::Program as usize][Cause::Host as usize])
});
const PROGRAM_SUSPENSIONS: Act = ("suspended programs", |drive| drive.stats().suspensions.programs);
const ERASE_SUSPENSIONS: Act = ("suspended erases", |drive| drive.stats().suspensions.erases);
const CACHED: Act = ("units written in SLC mode", |drive| drive.stats().slc.cached);
const FOLDS: Act = ("folded blocks", |drive| drive.stats().slc.blocks);
const PLACED: Act = ("units written with placement handle 3", |drive| {
    drive.stats().placement.map_or(0, |placement| placement.by_place[3].host_units)
});
const OFF_CHIP: Act =
    ("pages moved off-chip", |drive| drive.stats().flash[FlashOp::Program as usize][Cause::Gc as usize]);
const REFRESHES: Act = ("refreshed pages", |drive| drive.stats().refresh.pages);
const WRITE_BACKS: Act = ("write-backs of the cache", |drive| drive.stats().cache.write_backs);
const PARTIAL_REFRESHES: Act = ("partially refreshed pages", |drive| drive.stats().refresh.partial_pages);
const PREADS: Act = ("reads of a combination page", |drive| drive.stats().refresh.host_preads);
const COPYBACKS: Act = ("copybacks", |drive| drive.stats().migration.by_count.iter().sum());
const MODE_SELECTOR: Act = ("victims off-chip", |drive| drive.stats().migration.victims_off_chip);
const SYNCS: Act = ("syncs of dirty pages", |drive| drive.stats().cache.syncs);
const DETECTIONS: Act = ("budget detections", |drive| drive.stats().power.detections.len() as u64);
const BUDGET_BINDS: Act = ("updates blocked by the budget", |drive| drive.stats().cache.blocked_updates);

/// Settings of the 16 GiB drive: plain, with read levels, with a demand map, with LaLDPC, which needs both; with
/// placement handles; with mapping units of 4 KiB on pages of 16 KiB, one-shot programs of TLC wordlines and superblocks
/// by die, and these with suspension, or with an SLC cache that each write goes through. Then the drive of
/// examples/combined.toml, with the baselines of its four schemes and with the schemes.
pub(crate) const SCHEMES: [Scheme; 10] = [
    Scheme { name: PLAIN, than: PLAIN, sets: &[], acts: &[GC] },
    Scheme { name: "read levels", than: PLAIN, sets: &[&OLD], acts: &[GC, HIGHER_LEVELS, RETRIES] },
    Scheme {
        name: "demand map",
        than: PLAIN,
        sets: &[&["ftl.map.demand.cache=4MiB"]],
        acts: &[GC, MAP_MISSES, MAP_EVICTIONS],
    },
    Scheme {
        name: "LaLDPC",
        than: PLAIN,
        sets: &[&OLD, &LALDPC],
        acts: &[GC, HIGHER_LEVELS, RETRIES, KNOWN_LEVELS, MAP_MISSES, MAP_EVICTIONS],
    },
    Scheme { name: PLACEMENT, than: PLAIN, sets: &[&["placement.handles=4"]], acts: &[GC, PLACED] },
    Scheme { name: "units", than: PLAIN, sets: &[&UNITS], acts: &[GC, SHARED_PAGES] },
    Scheme {
        name: "suspend",
        than: PLAIN,
        sets: &[&UNITS, &SUSPEND],
        acts: &[GC, SHARED_PAGES, PROGRAM_SUSPENSIONS, ERASE_SUSPENSIONS],
    },
    Scheme {
        name: "SLC cache",
        than: "units",
        sets: &[&UNITS, &SLC],
        acts: &[GC, SHARED_PAGES, CACHED, FOLDS],
    },
    Scheme {
        name: BASELINES,
        than: BASELINES,
        sets: &[&WITHOUT],
        acts: &[GC, HIGHER_LEVELS, RETRIES, MAP_MISSES, MAP_EVICTIONS, OFF_CHIP, REFRESHES, WRITE_BACKS],
    },
    Scheme {
        name: "all four",
        than: BASELINES,
        sets: &[],
        acts: &[
            GC,
            HIGHER_LEVELS,
            RETRIES,
            KNOWN_LEVELS,
            MAP_MISSES,
            MAP_EVICTIONS,
            PARTIAL_REFRESHES,
            PREADS,
            COPYBACKS,
            MODE_SELECTOR,
            SYNCS,
            DETECTIONS,
            BUDGET_BINDS,
        ],
    },
];

const PLAIN: &str = "plain";
const PLACEMENT: &str = "placement";
const BASELINES: &str = "baselines";

/// The further setting of the plain drive with a sixteenth of the blocks.
const SMALL: [&str; 1] = ["precondition.used=0.98"];

/// The drive with the four schemes.
const COMBINED: &str = include_str!("../../../examples/combined.toml");

/// The baselines of the four schemes.
const WITHOUT: [&str; 8] = [
    "ecc.start=first",
    "ftl.map.demand.eviction=lru",
    "refresh.policy=fcr",
    "gc.victim=greedy",
    "migration.policy=off-chip",
    "cache.sync=none",
    "cache.dirty_budget=1.0",
    "capacitor.flush=plain",
];

const LALDPC: [&str; 2] = [
    "ftl.map.demand={ cache = '4MiB', eviction = { read-level = { fixed = 2000 } } }",
    "ecc.start=last-level",
];

const UNITS: [&str; 11] = [
    "drive.page_size=16KiB",
    "drive.cell=3d-tlc",
    "drive.layers=16",
    "drive.pages_per_block=48",
    "drive.blocks_per_plane=683",
    "drive.program_order=one-shot",
    "timing.multi_plane=true",
    "ftl.mapping_unit=4KiB",
    "ftl.superblock=die",
    "ftl.buffer=4MiB",
    "precondition.used=0.98",
];

const SUSPEND: [&str; 2] = [
    "timing.suspend.program={ enter = '20us', resume = '20us', min_progress = '100us', max = 10 }",
    "timing.suspend.erase={ enter = '20us', resume = '20us', min_progress = '100us', max = 10 }",
];

/// Writes wait for a fold when the cache is full. The static part takes of the spare space.
const SLC: [&str; 4] = ["slc.static=128MiB", "slc.when_full=fold", "drive.op=0.12", "precondition.used=0.95"];

/// Data that is a year old at 10,000 P/E cycles: read level 3 decodes it.
const OLD: [&str; 4] = [
    "ecc.levels=laldpc",
    "reliability.rber.vth={ dvpp = 0.38, cell_to_cell = 0.05 }",
    "reliability.pe_cycles=10000",
    "reliability.retention=365d",
];

impl Scheme {
    pub(crate) fn named(name: &str) -> &'static Self {
        SCHEMES.iter().find(|scheme| scheme.name == name).expect("the name of a scheme")
    }

    fn is_combined(&self) -> bool {
        self.than == BASELINES
    }

    /// Plays its workload on a new drive: `requests`, or that of examples/combined.toml.
    fn play(&self, requests: &[Request]) -> (Drive, u64, f64) {
        if self.is_combined() {
            return self.play_combined(REQUESTS / 2);
        }
        let mut drive = drive(MAIN_BLOCKS, &self.sets.concat());
        let (operations, seconds) = play(&mut drive, &self.placed(requests));
        (drive, operations, seconds)
    }

    /// The requests of the case: with placement handles each writes with that of its unit.
    fn placed<'a>(&self, requests: &'a [Request]) -> Cow<'a, [Request]> {
        if self.name != PLACEMENT {
            return requests.into();
        }
        let handle = |request: &Request| (request.offset / UNIT % 4) as u16;
        requests.iter().map(|it| it.with_tag(Tag { queue: 0, placement: handle(it) })).collect()
    }

    /// Plays a tenth of its workload on a new drive: [`drive`] with a sixteenth of the blocks, or that of
    /// examples/combined.toml.
    pub(crate) fn play_small(&self) -> (Drive, u64) {
        if self.is_combined() {
            let (drive, operations, _) = self.play_combined(REQUESTS / 10);
            return (drive, operations);
        }
        // Planes of a sixteenth of the blocks, with the spare space that they need, and caches of a sixteenth.
        let small: &[&str] = match self.name {
            "units" | "suspend" => &["drive.blocks_per_plane=43", "drive.op=0.15", "precondition.used=0.9"],
            "SLC cache" => {
                &["drive.blocks_per_plane=43", "drive.op=0.2", "precondition.used=0.9", "slc.static=8MiB"]
            }
            "demand map" => &["ftl.map.demand.cache=256KiB", "precondition.used=0.95"],
            "LaLDPC" => &[
                "ftl.map.demand={ cache = '256KiB', eviction = { read-level = { fixed = 125 } } }",
                "precondition.used=0.95",
            ],
            PLACEMENT => &["drive.op=0.12", "precondition.used=0.95"],
            _ => &SMALL,
        };
        let mut drive = drive(MAIN_BLOCKS / 16, &[&self.sets.concat(), small].concat());
        let (operations, _) = play(&mut drive, &self.placed(&small_requests()));
        (drive, operations)
    }

    /// The mechanisms of the case that have not acted.
    pub(crate) fn idle(&self, drive: &Drive) -> Vec<&'static str> {
        self.acts.iter().filter(|(_, count)| count(drive) == 0).map(|&(name, _)| name).collect()
    }

    /// Panics if a mechanism of the case has not acted.
    fn check(&self, drive: &Drive) {
        let idle = self.idle(drive);
        assert!(
            idle.is_empty(),
            "the case {:?} does not measure what it is about, without: {}",
            self.name,
            idle.join(", ")
        );
    }

    fn play_combined(&self, count: usize) -> (Drive, u64, f64) {
        let mut drive = preconditioned(COMBINED, &self.sets.concat(), NoProbe);
        let span = (0.6 * drive.geometry().logical_bytes() as f64) as u64;
        let requests = combined_requests(count, span);
        let arrival = drive.spec().workload.as_ref().expect("the example has a workload").arrival;
        let (operations, seconds) = play_as(arrival, &mut drive, &requests);
        (drive, operations, seconds)
    }
}

/// A tenth of the requests, to a sixteenth of the span.
fn small_requests() -> Vec<Request> {
    requests(REQUESTS / 10, SPAN / 16)
}

/// Requests as in examples/combined.toml: 60 % reads, a quarter of 4 KiB and the others of 16 KiB, zipf 0.9.
fn combined_requests(count: usize, span: u64) -> Vec<Request> {
    let mut stream = Stream::new(1, "bench");
    let mut drawn = requests(count, span);
    for request in &mut drawn {
        request.op = if stream.below(10) < 6 { Op::Read } else { Op::Write };
        request.len = if stream.below(4) == 0 { UNIT } else { 4 * UNIT }.min(span - request.offset);
    }
    drawn
}

/// Prints the speed of the simulator with each of [`SCHEMES`], or with one and what it is compared with. The runs
/// alternate, so that other load on the machine affects all schemes alike.
fn schemes(requests: &[Request], only: Option<&str>) {
    let is_run = |name: &str| only.is_none_or(|only| only == name || Scheme::named(only).than == name);
    let mut best = [f64::INFINITY; SCHEMES.len()];
    let mut facts = [const { String::new() }; SCHEMES.len()];
    for _ in 0..3 {
        for (number, scheme) in SCHEMES.iter().enumerate().filter(|(_, scheme)| is_run(scheme.name)) {
            let (drive, operations, seconds) = scheme.play(requests);
            scheme.check(&drive);
            best[number] = best[number].min(seconds / operations as f64);
            let (stats, ecc) = (drive.stats(), &drive.stats().ecc);
            let map = &stats.map;
            let lookups = map.read_hits + map.read_misses + map.write_hits + map.write_misses;
            facts[number] = format!(
                "{operations} page operations of which {} read retries, {:.0} % of {lookups} map lookups hit, outcome {:016x}",
                ecc.retries,
                100.0 * (map.read_hits + map.write_hits) as f64 / lookups.max(1) as f64,
                drive.now().ns() ^ operations.rotate_left(32)
            );
            drive.audit().unwrap_or_else(|e| panic!("{e}"));
        }
    }
    for (number, Scheme { name, than, .. }) in
        SCHEMES.iter().enumerate().filter(|(_, scheme)| is_run(scheme.name))
    {
        let base = SCHEMES.iter().position(|scheme| scheme.name == *than).expect("the name of a scheme");
        println!("{name:>12}: {}", facts[number]);
        // With `--only` a case of comparison may have no such case itself.
        let ratio = if best[base].is_finite() {
            format!(", {:.2} x the time of {than}", best[number] / best[base])
        } else {
            String::new()
        };
        println!(
            "              {:.2} M page operations/s, {:.0} ns each{ratio}",
            1e-6 / best[number],
            best[number] * 1e9
        );
    }
}

/// Prints the time of a lookup in mapping caches of several sizes. Half of the lookups miss, and each lookup is
/// followed by setting a read level.
fn mapping_cache() {
    const LOOKUPS: u32 = 2_000_000;
    for (name, eviction) in [("lru", Eviction::Lru), ("read-level", Eviction::ReadLevel { fixed: 2000 })] {
        let mut line = String::new();
        for bits in [12, 16, 20, 23] {
            let (entries, lpns) = (1u64 << bits, 2u32 << bits);
            let mut cache = Cache::new(entries * ENTRY_BYTES, lpns, eviction);
            let mut stream = Stream::new(1, "bench");
            let mut lookup = |cache: &mut Cache| {
                let draw = stream.bits();
                let lpn = Lpn(draw as u32 % lpns);
                if !cache.touch(lpn) {
                    cache.insert(lpn, 1).expect("no policy comes from outside");
                }
                // As in GC, the entry whose level is set has often not been used lately.
                cache.set_level(Lpn((draw >> 32) as u32 % lpns), 1 + (draw >> 61) as u8 % 7);
            };
            (0..2 * lpns).for_each(|_| lookup(&mut cache));
            let start = seconds();
            (0..LOOKUPS).for_each(|_| lookup(&mut cache));
            let ns = (seconds() - start) * 1e9 / f64::from(LOOKUPS);
            line += &format!("  2^{bits}: {ns:.0} ns");
        }
        println!("mapping cache, {name}, entries and time of a lookup:{line}");
    }
}

/// Plays the requests; returns the number of page operations and the seconds of CPU time.
fn play<P: Probe>(drive: &mut Drive<P>, requests: &[Request]) -> (u64, f64) {
    play_as(Arrival::QueueDepth(QUEUE_DEPTH), drive, requests)
}

fn play_as<P: Probe>(arrival: Arrival, drive: &mut Drive<P>, requests: &[Request]) -> (u64, f64) {
    let mut runner = Runner::new(Replay(requests.iter()), arrival, Beyond::Refuse);
    let start = seconds();
    counted(&mut runner, drive);
    let taken = seconds() - start;
    assert_eq!(drive.stats().requests(), requests.len() as u64);
    (operations(drive), taken)
}

/// Runs to the end, in a function of its own, so that its instructions can be counted.
#[inline(never)]
fn counted<P: Probe>(runner: &mut Runner<Replay>, drive: &mut Drive<P>) {
    let progress = runner.run(drive, u64::MAX, |_| ()).expect("the requests fit");
    assert!(progress.is_done);
}

/// The work of the drive as bare loops. A read looks up the map. A write maps, validates and invalidates pages; greedy
/// GC copies page by page when a plane has `SPARE` free blocks. The loops have no time, no queues and no statistics. On
/// the drives that they stand for, a mapping unit is a page, a superblock a block, and a lane a plane.
struct Bare<const PAGES: u32, const PLANES: u32, const SPARE: usize> {
    map: Vec<u32>,
    lpn: Vec<u32>,
    is_valid: Vec<bool>,
    valid: Vec<u16>,
    free: Vec<Vec<u32>>,
    open: Vec<[(u32, u32); 2]>,
    blocks_per_plane: u32,
    operations: u64,
    sum: u64,
}

/// The bare loop on the main drive.
type Main = Bare<64, 32, 1>;

/// The bare loop on the drive of tools/bench.py. It copies as much as that drive.
type Replayed = Bare<256, 8, 24>;
const REPLAYED_BLOCKS: u32 = 512;

impl<const PAGES: u32, const PLANES: u32, const SPARE: usize> Bare<PAGES, PLANES, SPARE> {
    /// Nothing is mapped, and no block is free.
    fn new(logical_pages: u32, blocks_per_plane: u32) -> Self {
        let blocks = PLANES * blocks_per_plane;
        let pages = (blocks * PAGES) as usize;
        Self {
            map: vec![u32::MAX; logical_pages as usize],
            lpn: vec![u32::MAX; pages],
            is_valid: vec![false; pages],
            valid: vec![u16::MAX; blocks as usize],
            free: vec![Vec::new(); PLANES as usize],
            open: vec![[(0, 0); 2]; PLANES as usize],
            blocks_per_plane,
            operations: 0,
            sum: 0,
        }
    }

    fn empty(logical_pages: u32, blocks_per_plane: u32) -> Self {
        let mut bare = Self::new(logical_pages, blocks_per_plane);
        for (plane, free) in (0..).zip(&mut bare.free) {
            free.extend((plane * blocks_per_plane..(plane + 1) * blocks_per_plane).rev());
        }
        bare
    }

    fn like(like: &Drive) -> Self {
        let geometry = like.geometry();
        let mut bare = Self::new(geometry.logical_units, geometry.superblocks_per_lane);
        for lpn in 0..geometry.logical_units {
            if let Some(unit) = like.ftl().map.get(Lpn(lpn)) {
                bare.map[lpn as usize] = unit.0;
                bare.lpn[unit.index()] = lpn;
                bare.is_valid[unit.index()] = true;
            }
        }
        for (id, superblock) in like.array().superblocks.iter().enumerate() {
            if superblock.programmed == 0 {
                bare.free[id / geometry.superblocks_per_lane as usize].push(id as u32);
            } else {
                bare.valid[id] = superblock.valid as u16;
            }
        }
        bare
    }

    #[inline(always)]
    fn program(&mut self, plane: usize, stream: usize, lpn: u32) {
        let (next, end) = self.open[plane][stream];
        let page = if next < end {
            self.open[plane][stream].0 = next + 1;
            next
        } else {
            if end > 0 {
                // The block is full: clearing the top bit makes it a candidate, with its number of valid pages as
                // value.
                self.valid[(end / PAGES - 1) as usize] &= 0x7fff;
            }
            let block = self.free[plane].pop().expect("the plane has a free block");
            self.valid[block as usize] = 0x8000;
            self.open[plane][stream] = (block * PAGES + 1, (block + 1) * PAGES);
            block * PAGES
        };
        let old = std::mem::replace(&mut self.map[lpn as usize], page);
        self.lpn[page as usize] = lpn;
        self.is_valid[page as usize] = true;
        self.valid[(page / PAGES) as usize] += 1;
        if old != u32::MAX {
            self.is_valid[old as usize] = false;
            self.valid[(old / PAGES) as usize] -= 1;
        }
        self.operations += 1;
    }

    fn write(&mut self, lpn: u32) {
        let plane = (lpn % PLANES) as usize;
        while self.free[plane].len() <= SPARE {
            let first = plane as u32 * self.blocks_per_plane;
            let blocks = &self.valid[first as usize..(first + self.blocks_per_plane) as usize];
            let (victim, _) =
                blocks.iter().enumerate().min_by_key(|(_, valid)| **valid).expect("there are blocks");
            let victim = first + victim as u32;
            for page in victim * PAGES..(victim + 1) * PAGES {
                if self.is_valid[page as usize] {
                    self.operations += 1;
                    self.program(plane, 1, self.lpn[page as usize]);
                }
            }
            self.valid[victim as usize] = u16::MAX;
            self.free[plane].push(victim);
        }
        self.program(plane, 0, lpn);
    }

    fn play(&mut self, requests: &[Request]) -> f64 {
        let start = seconds();
        for request in requests {
            let first = (request.offset / UNIT) as u32;
            for lpn in first..first + (request.len / UNIT) as u32 {
                if request.op == Op::Read {
                    self.sum += u64::from(self.lpn[self.map[lpn as usize] as usize]);
                    self.operations += 1;
                } else {
                    self.write(lpn);
                }
            }
        }
        std::hint::black_box(self.sum);
        seconds() - start
    }
}

/// Prints one measurement of a drive like the main one, with `blocks_per_plane`, and of its bare loop.
fn once(blocks_per_plane: u32) {
    let span = SPAN / u64::from(MAIN_BLOCKS) * u64::from(blocks_per_plane);
    let requests = requests(REQUESTS, span);
    let mut drive = drive(blocks_per_plane, &[]);
    let mut bare = Main::like(&drive);
    let bare_s = bare.play(&requests);
    let (operations, cpu_s) = play(&mut drive, &requests);
    println!(
        r#"{{"operations":{operations},"cpu_s":{cpu_s:.6},"bare_operations":{},"bare_cpu_s":{bare_s:.6}}}"#,
        bare.operations
    );
}

/// Prints the measurement of the bare loop on the requests of a trace in the MQSim format.
fn bare(trace: &str) {
    let text = std::fs::read_to_string(trace).unwrap_or_else(|e| panic!("{trace}: {e}"));
    let requests: Vec<Request> = text
        .lines()
        .map(|line| {
            let columns: Vec<u64> = line.split(' ').map(|c| c.parse().expect("a number")).collect();
            let op = if columns[4] == 1 { Op::Read } else { Op::Write };
            Request::new(op, columns[2] * 512, columns[3] * 512)
        })
        .collect();
    let top = requests.iter().map(|r| r.offset + r.len).max().expect("there are requests") / UNIT;
    let mut bare = Replayed::empty(top as u32, REPLAYED_BLOCKS);
    let cpu_s = bare.play(&requests);
    println!(r#"{{"operations":{},"cpu_s":{cpu_s:.6}}}"#, bare.operations);
}

/// Plays a small run of a scheme and prints the number of page operations. The memory of the requests and of the drive
/// is in use before.
fn count(scheme: &str) {
    if scheme == OBSERVED {
        return println!(r#"{{"operations":{}}}"#, play_observed());
    }
    let case = Scheme::named(scheme);
    let (drive, operations) = case.play_small();
    case.check(&drive);
    println!(r#"{{"operations":{operations}}}"#);
}

/// Plays the small run of the plain drive with an explainer; returns the number of page operations. Panics if a request
/// is not explained.
pub(crate) fn play_observed() -> u64 {
    let taps = Taps::new(None, None).explaining(Explainer::new(EXPLAINED));
    let mut drive = observed(MAIN_BLOCKS / 16, &SMALL, taps);
    let requests = small_requests();
    let (operations, _) = play(&mut drive, &requests);
    let explainer = drive.probe().explainer().expect("the set has an explainer");
    let explained: u64 = Op::ALL.iter().map(|&op| explainer.sums(op).requests).sum();
    assert_eq!(explained, requests.len() as u64);
    assert_eq!(explainer.slowest().len(), EXPLAINED as usize);
    operations
}

/// Prints what is compared.
fn mechanisms() {
    let names: Vec<&str> = MECHANISMS.iter().map(|mechanism| mechanism.name).collect();
    println!(r#"{{"names":{names:?},"depths":{DEPTHS:?},"sizes_mib":{SIZES_MIB:?},"most":{MOST}}}"#);
}

/// Plays the load of a mechanism at a queue depth, and prints the number of page operations.
fn count_mechanism(name: &str, depth: u32) {
    let mechanism = Mechanism::named(name);
    let mut drive = mechanism.drive();
    let requests = mechanism.requests(REQUESTS / 50, drive.geometry().logical_bytes());
    let (operations, _) = play_as(Arrival::QueueDepth(depth), &mut drive, &requests);
    println!(r#"{{"operations":{operations}}}"#);
}

/// Reads 128 MiB in requests of this size, and prints the number of page operations.
fn count_reads(mib: u64) {
    let mut drive = Mechanism::named("write buffer").drive();
    let (operations, _) = play_as(Arrival::QueueDepth(1), &mut drive, &large_reads(mib, 128));
    println!(r#"{{"operations":{operations}}}"#);
}

/// Returns the resident memory of this process in bytes; `None` if the system has no `/proc/self/statm`.
fn resident_bytes() -> Option<u64> {
    let statm = std::fs::read_to_string("/proc/self/statm").ok()?;
    let pages: u64 = statm.split_whitespace().nth(1)?.parse().ok()?;
    Some(pages * 4096)
}

fn main() {
    let quick = std::env::args().any(|a| a == "--quick");
    let value = |option: &str| std::env::args().find_map(|a| a.strip_prefix(option).map(str::to_owned));
    if let Some(blocks) = value("--once=") {
        return once(blocks.parse().expect("blocks per plane"));
    }
    if let Some(trace) = value("--bare=") {
        return bare(&trace);
    }
    if let Some(scheme) = value("--counted=") {
        return count(&scheme);
    }
    if std::env::args().any(|a| a == "--mechanisms") {
        return mechanisms();
    }
    if let Some(name) = value("--counted-mechanism=") {
        let depth = value("--depth=").expect("a queue depth");
        return count_mechanism(&name, depth.parse().expect("a queue depth"));
    }
    if let Some(mib) = value("--counted-reads=") {
        return count_reads(mib.parse().expect("MiB"));
    }
    let only = value("--only=");
    let requests = requests(REQUESTS, SPAN);
    let mut first = 0.0;
    for (name, blocks_per_plane, runs) in
        [("16 GiB", MAIN_BLOCKS, 5), ("64 GiB", 8192, 1), ("256 GiB", 32_768, 1), ("1 TiB", 131_072, 1)]
    {
        if quick && runs == 1 || only.as_ref().is_some_and(|only| only != name) {
            continue;
        }
        let (mut best, mut fastest, mut bytes_per_unit) = (f64::INFINITY, f64::INFINITY, 0.0);
        let (mut limit, mut outcome) = (f64::INFINITY, 0);
        let mut facts = String::new();
        for _ in 0..runs {
            let before = resident_bytes();
            // As many free blocks as on the first drive: all drives collect alike.
            let used = 1.0 - (1.0 - USED) * f64::from(MAIN_BLOCKS) / f64::from(blocks_per_plane);
            let mut drive = drive(blocks_per_plane, &[&format!("precondition.used={used}")]);
            if runs > 1 {
                let mut bare = Main::like(&drive);
                let seconds = bare.play(&requests);
                limit = limit.min(seconds / bare.operations as f64);
            }
            let (operations, seconds) = play(&mut drive, &requests);
            best = best.min(seconds / operations as f64);
            fastest = fastest.min(seconds);
            let grown = before.zip(resident_bytes()).map_or(0, |(before, now)| now.saturating_sub(before));
            // Later runs use the memory of the first again.
            bytes_per_unit = f64::max(bytes_per_unit, grown as f64 / f64::from(drive.geometry().units));
            outcome = drive.now().ns() ^ operations.rotate_left(32);
            let stats = drive.stats();
            facts = format!(
                "{operations} page operations, {} erases, WAF {:.3}",
                stats.flash_total(FlashOp::Erase),
                stats.waf().unwrap_or(f64::NAN)
            );
            drive.audit().unwrap_or_else(|e| panic!("{e}"));
        }
        if first == 0.0 {
            first = best;
        }
        println!("{name:>8}: {facts}");
        println!(
            "          {:.2} M requests/s, {:.2} M page operations/s, {:.0} ns each, {:.2} x the time on the first drive; \
             {bytes_per_unit:.1} bytes per physical page",
            1e-6 * REQUESTS as f64 / fastest,
            1e-6 / best,
            best * 1e9,
            best / first
        );
        if runs > 1 {
            println!(
                "          bare loop: {:.2} M/s; the simulator reaches {:.0} % of it",
                1e-6 / limit,
                100.0 * limit / best
            );
        }
        println!("          outcome {outcome:016x}");
    }
    match only.as_deref() {
        None => {
            schemes(&requests, None);
            mapping_cache();
        }
        Some("schemes") => schemes(&requests, None),
        Some("mapping-cache") => mapping_cache(),
        Some(name) if name.ends_with("iB") => {}
        only => schemes(&requests, only),
    }
}
