//! A drive for each mechanism, with a load that makes the mechanism work, for the checks that no cost of a page
//! operation grows with the queue depth or with the size of a request: `tests/drive/steps.rs` counts steps, `make
//! instructions` counts instructions.

#![allow(dead_code, unreachable_pub)]

use nandlab::base::rng::Stream;
use nandlab::drive::Drive;
use nandlab::drive::spec::{self, Spec};
use nandlab::drive::stats::Stats;
use nandlab::host::{Op, Request, Tag};
use nandlab::probe::{NoProbe, Probe};
use nandlab::sched::{Cause, FlashOp};
use std::path::Path;

/// The queue depths that are compared.
pub const DEPTHS: [u32; 2] = [64, 4096];
/// The sizes of a read that are compared, in MiB.
pub const SIZES_MIB: [u64; 3] = [1, 16, 128];
/// The greatest ratio of the costs of a page operation.
pub const MOST: f64 = 1.1;

/// 512 MiB on 4 x 4 dies of two planes, filled so that GC runs.
const BASE: &str = r#"
seed = 1
[drive]
endurance = 1_000_000
channels = 4
chips_per_channel = 4
dies_per_chip = 1
planes_per_die = 2
blocks_per_plane = 64
pages_per_block = 64
page_size = "4KiB"
cell = "mlc"
op = 0.4
[precondition]
used = 0.9
valid = 0.7
"#;

/// A mechanism.
#[derive(Clone, Copy, Debug)]
pub struct Mechanism {
    pub name: &'static str,
    /// The settings of its drive beside those of [`BASE`], in groups.
    sets: &'static [&'static [&'static str]],
    /// Of a thousand requests, the reads, writes, TRIMs and flushes.
    weights: [u64; 4],
    /// Whether some writes have FUA, and some are of part of a unit.
    is_mixed: bool,
    /// What the mechanism has done, which must not be 0.
    pub acts: fn(&Stats<'_>) -> u64,
}

const MIX: [u64; 4] = [300, 700, 0, 0];

const fn mechanism(
    name: &'static str,
    sets: &'static [&'static [&'static str]],
    acts: fn(&Stats<'_>) -> u64,
) -> Mechanism {
    Mechanism { name, sets, weights: MIX, is_mixed: false, acts }
}

/// A mechanism with TRIMs, FUA, writes of part of a unit and `flushes` flushes in a thousand requests.
const fn mixed(
    name: &'static str,
    sets: &'static [&'static [&'static str]],
    flushes: u64,
    acts: fn(&Stats<'_>) -> u64,
) -> Mechanism {
    Mechanism { name, sets, weights: [300, 660 - flushes, 40, flushes], is_mixed: true, acts }
}

fn programs(stats: &Stats<'_>, cause: Cause) -> u64 {
    stats.flash[FlashOp::Program as usize][cause as usize]
}

/// Units of 4 KiB on pages of 16 KiB.
const UNITS: &[&str] = &[
    "drive.page_size=16KiB",
    "drive.blocks_per_plane=16",
    "ftl.mapping_unit=4KiB",
    "drive.op=0.6",
    "precondition.used=0.85",
    "precondition.valid=0.55",
];
/// One-shot programs of TLC wordlines, of all planes of a die.
const ONE_SHOT: &[&str] = &[
    "drive.cell=3d-tlc",
    "drive.layers=16",
    "drive.pages_per_block=48",
    "drive.blocks_per_plane=24",
    "drive.program_order=one-shot",
    "timing.multi_plane=true",
    "ftl.superblock=die",
];
const BUFFER: &[&str] = &["ftl.buffer=4MiB"];
const SUSPEND: &[&str] = &[
    "timing.suspend.program={ enter = '20us', resume = '20us', min_progress = '100us', max = 10 }",
    "timing.suspend.erase={ enter = '20us', resume = '20us', min_progress = '100us', max = 10 }",
];
/// Data that is a year old at 10,000 P/E cycles.
const OLD: &[&str] = &[
    "ecc.levels=laldpc",
    "reliability.rber.vth={ dvpp = 0.38, cell_to_cell = 0.05 }",
    "reliability.pe_cycles=10000",
    "reliability.retention=365d",
];
/// Data whose age advances by 30 days in 300 ms.
const AGEING: &[&str] =
    &["reliability.clock_scale=8_640_000", "refresh.interval=[{ pe = 20_000, every = '30d' }]"];
const PARTIAL: &[&str] = &["refresh.policy.partial={ min_free_blocks = 0.05 }"];
const KNOWN: &[&str] = &["refresh.policy.ec-cache={ size = '64KiB', hot_reads = 2 }"];
const DEMAND: &[&str] = &["ftl.map.demand.cache=64KiB"];
const DEMAND_EACH: &[&str] = &["ftl.map.demand={ cache = '64KiB', miss = 'each' }"];
const LALDPC: &[&str] = &[
    "ftl.map.demand={ cache = '64KiB', eviction = { read-level = { fixed = 2000 } } }",
    "ecc.start=last-level",
];
const CACHE: &[&str] = &["cache.size=4MiB"];
const BUDGET: &[&str] = &["cache.dirty_budget=0.5"];
/// A detection every 29 ms.
const CAPACITOR: &[&str] = &[
    "capacitor.capacitance=60mF",
    "cache.sync=smart",
    "cache.dirty_budget=measured",
    "capacitor.detect_every=1d",
    "capacitor.detect_grace=1h",
    "reliability.clock_scale=3_000_000",
];
const BY_LOAD: &[&str] = &["cache.sync=eager", "migration.policy.rcopyback={ limit = 2 }"];
/// Of 8 MiB a plane, so that the hot blocks lead the others by two P/E cycles.
const SLC: &[&str] = &["slc.dynamic=0.3", "precondition.used=0.85"];
const WEAR: &[&str] = &[
    "ftl.wear_levelling=static",
    "ftl.wear_gap=1",
    "drive.blocks_per_plane=16",
    "drive.pages_per_block=32",
    "precondition.used=0.7",
    "precondition.valid=0.8",
];

/// Four handles, whose data is written to part-filled programs in a buffer.
const HANDLES: &[&str] = &[
    "placement.handles=4",
    "placement.isolation=['initial', 'persistent', 'initial', 'initial']",
    "placement.reclaim_unit=2",
];

/// All mechanisms.
pub const MECHANISMS: &[Mechanism] = &[
    mechanism("plain", &[], |stats| stats.gc.victims),
    mechanism("first come, first served", &[&["timing.scheduler=fcfs"]], |stats| stats.gc.victims),
    mechanism("multi-plane operations", &[&["timing.multi_plane=true"]], |stats| stats.gc.victims),
    mechanism("dynamic allocation", &[&["ftl.allocation=dynamic"]], |stats| stats.gc.victims),
    mechanism("commands and decoding", &[&["timing.command=300ns", "timing.decode=15us"]], |stats| {
        stats.gc.victims
    }),
    mechanism("off-chip path", &[&["timing.off_chip_mb_per_s=800"]], |stats| stats.gc.victims),
    mechanism(
        "controller",
        &[&["host.controller={ read = '2us', write = '3us', commands_at_once = 4 }"]],
        |stats| stats.gc.victims,
    ),
    mechanism("link", &[&["host.link={ mb_per_s = 3000, latency = '2us' }"]], |stats| stats.gc.victims),
    mechanism("suspension", &[SUSPEND], |stats| stats.suspensions.programs),
    mechanism("mapping units", &[UNITS], |stats| stats.units.padding),
    mechanism("one-shot superblocks of the die", &[UNITS, ONE_SHOT], |stats| stats.units.padding),
    mechanism("write buffer", &[UNITS, ONE_SHOT, BUFFER], |stats| stats.buffer.replaced),
    mixed("write buffer, mixed load", &[UNITS, ONE_SHOT, BUFFER], 0, |stats| stats.buffer.replaced),
    mechanism("write buffer of flash pages", &[UNITS, &["ftl.buffer=256KiB"]], |stats| stats.buffer.replaced),
    mechanism(
        "superblocks of the drive",
        &[UNITS, ONE_SHOT, BUFFER, &["ftl.superblock=drive", "drive.blocks_per_plane=48"]],
        |stats| stats.buffer.replaced,
    ),
    mechanism("read levels", &[OLD], |stats| stats.ecc.retries),
    mechanism("demand map", &[DEMAND], |stats| stats.map.read_misses),
    mechanism("demand map, one read for each miss", &[DEMAND_EACH], |stats| stats.map.read_misses),
    mechanism("LaLDPC", &[OLD, LALDPC], |stats| stats.map.evictions),
    mechanism("write cache", &[CACHE, &["cache.sync=none"]], |stats| programs(stats, Cause::Sync)),
    mechanism("write cache, eager", &[CACHE, &["cache.sync=eager"]], |stats| programs(stats, Cause::Sync)),
    mechanism("write cache, punctual", &[CACHE, BUDGET, &["cache.sync=punctual"]], |stats| {
        programs(stats, Cause::Sync)
    }),
    mechanism("write cache, greedy", &[CACHE, BUDGET, &["cache.sync=greedy"]], |stats| {
        programs(stats, Cause::Sync)
    }),
    mechanism("write cache, smart", &[CACHE, BUDGET, &["cache.sync=smart"]], |stats| {
        programs(stats, Cause::Sync)
    }),
    mixed("write cache, mixed load", &[CACHE, &["cache.sync=none"]], 0, |stats| programs(stats, Cause::Sync)),
    mechanism("write cache and demand map", &[CACHE, DEMAND], |stats| stats.map.read_misses),
    mechanism("capacitor", &[CACHE, CAPACITOR], |stats| stats.power.detections.len() as u64),
    mechanism("refresh", &[AGEING, &["refresh.policy=fcr"]], |stats| stats.refresh.blocks),
    mechanism("partial refresh", &[AGEING, OLD, PARTIAL], |stats| stats.refresh.partial_pages),
    mechanism("known errors", &[AGEING, OLD, KNOWN], |stats| stats.refresh.cached_reads),
    mechanism("copybacks", &[&["migration.policy.rcopyback-greedy={ limit = 2 }"]], |stats| {
        stats.flash_total(FlashOp::Copyback)
    }),
    mechanism("copybacks by load", &[CACHE, BY_LOAD], |stats| stats.flash_total(FlashOp::Copyback)),
    mechanism("static wear levelling", &[WEAR], |stats| programs(stats, Cause::Wear)),
    mechanism("read reclaim", &[&["reclaim.policy.reads={ limit = 5 }"]], |stats| stats.reclaim.blocks),
    mechanism("SLC cache", &[SLC], |stats| stats.slc.cached),
    mechanism("SLC cache, folds first", &[SLC, &["slc.when_full=fold"]], |stats| stats.slc.folded_full),
    mechanism("placement handles", &[HANDLES], |stats| {
        stats.placement.as_ref().map_or(0, |placement| placement.by_place[1].copied_units)
    }),
    mechanism(
        "placement handles with a write buffer",
        &[UNITS, BUFFER, HANDLES, &["drive.blocks_per_plane=24"]],
        |stats| stats.placement.as_ref().map_or(0, |placement| placement.by_place[3].host_units),
    ),
    mechanism("GC without pacing", &[&["gc.pacing=none"]], |stats| stats.gc.victims),
    mechanism("blocking GC", &[&["gc.foreground=blocking", "gc.pacing=none"]], |stats| stats.gc.victims),
    mixed("mixed load", &[], 10, |stats| stats.counters.merge_reads),
    mixed("sequence numbers", &[&["power.cut_after_requests=100_000_000"]], 10, |stats| {
        stats.counters.merge_reads
    }),
];

impl Mechanism {
    /// The mechanism of a name.
    pub fn named(name: &str) -> &'static Self {
        MECHANISMS.iter().find(|mechanism| mechanism.name == name).expect("the name of a mechanism")
    }

    /// The spec of its drive, without a workload.
    pub fn spec(&self) -> Spec {
        let sets: Vec<String> = self.sets.concat().iter().map(|&set| set.to_owned()).collect();
        let loaded = spec::load(BASE, "mechanisms", Path::new("."), &sets);
        loaded.unwrap_or_else(|e| panic!("{}: {e}", self.name)).spec
    }

    /// Its drive, preconditioned.
    pub fn drive(&self) -> Drive {
        let mut drive = Drive::with_probe(&self.spec(), NoProbe);
        drive.precondition(&mut |_| true);
        drive
    }

    /// The first `count` requests of its load: 4 or 8 KiB at random places of half of the drive, a third of them in a
    /// hundredth of it.
    pub fn requests(&self, count: usize, capacity: u64) -> Vec<Request> {
        let mut stream = Stream::new(1, "mechanisms");
        let units = capacity / 4096 / 2;
        let has_handles = self.sets.contains(&HANDLES);
        let draw = |_| {
            let mut left = stream.below(self.weights.iter().sum());
            let op = Op::ALL.into_iter().find(|&op| {
                let weight = self.weights[op as usize];
                let is_drawn = left < weight;
                left = left.wrapping_sub(weight);
                is_drawn
            });
            let op = op.expect("the draw is below the sum of the weights");
            let area = if stream.below(3) == 0 { units / 100 } else { units - 1 };
            let (unit, len) = (stream.below(area), 1 + stream.below(2));
            let is_part = self.is_mixed && op == Op::Write && stream.below(8) == 0;
            let (offset, len) = match op {
                Op::Flush => (0, 0),
                _ if is_part => (unit * 4096 + 512, 1024),
                _ => (unit * 4096, len * 4096),
            };
            let fua = self.is_mixed && op == Op::Write && stream.below(20) == 0;
            let placement = if has_handles { (unit % 4) as u16 } else { 0 };
            Request::new(op, offset, len).with_fua(fua).with_tag(Tag { queue: 0, placement })
        };
        (0..count).map(draw).collect()
    }
}

/// Reads of `mib` MiB each, one after another through a drive with several units in a page: `total` MiB in all.
pub fn large_reads(mib: u64, total: u64) -> Vec<Request> {
    let read = |n| Request::read((n * mib) << 20, mib << 20);
    (0..total / mib).map(read).collect()
}

/// Page operations. With several units in a page these are the units read, programmed without padding, and replaced in
/// the write buffer.
pub fn operations<P: Probe>(drive: &Drive<P>) -> u64 {
    let stats = drive.stats();
    if drive.geometry().units_per_page == 1 {
        return stats.page_operations();
    }
    let read = stats.host[Op::Read as usize].bytes / u64::from(drive.geometry().unit_bytes);
    let (programmed, replaced) = (stats.units_programmed() - stats.units.padding, stats.buffer.replaced);
    // GC has read the units that it has programmed; the host has written the others, and those replaced.
    read + 2 * programmed + 2 * replaced - stats.counters.host_pages_written
}
