//! The capability of the capacitor on random small drives: a flush saves as many dirty units as `FlushCost::units`
//! promises, when only the free superblocks reserved for the flush are left.

use crate::common::{at, request, spec};
use nandlab::base::geometry::{DieId, LaneId, Lpn};
use nandlab::base::rng::Stream;
use nandlab::drive::Drive;
use nandlab::host::{Op, Tag};
use nandlab::probe::NoProbe;

/// A random drive with a write cache and a capacitor.
struct Plan {
    text: String,
    cache_units: u64,
    /// The bytes of a unit.
    unit: u64,
    /// The units that are written before power fails, as multiples of the drive's logical units.
    fill: f64,
    /// The placement of the dirty unit with each number modulo their number.
    placements: Vec<u16>,
}

impl Plan {
    fn draw(seed: u64) -> Self {
        let mut stream = Stream::new(seed, "capability");
        let mut pick = |n: u64| stream.below(n);
        let (cell, program, layers) = [
            ("slc", "'300us'", ""),
            ("mlc", "{ lsb = '300us', msb = '600us' }", ""),
            ("mlc", "{ lsb = '200us', msb = '1100us' }", ""),
            ("3d-mlc", "{ fastest = '300us', slowest = '600us' }", "layers = 4\n"),
            ("3d-tlc", "{ fastest = '250us', slowest = '1000us' }", "layers = 6\n"),
            ("3d-tlc", "{ lsb = '300us', msb = '1200us' }", "layers = 3\n"),
        ][pick(6) as usize];
        // Derived from the seed, so that the draws of the other settings do not change.
        let planar = [
            "'700us'",
            "{ lsb = '300us', msb = '1200us' }",
            "{ lsb = '200us', csb = '1500us', msb = '900us' }",
        ];
        let (cell, program, layers) = match seed % 12 {
            nth @ 0..3 => ("tlc", planar[nth as usize], ""),
            _ => (cell, program, layers),
        };
        let pages_per_block = 12 * (1 + pick(2));
        let (channels, chips, dies, planes) = (1 + pick(2), 1 + pick(2), 1 + pick(2), 1 + pick(2));
        let cache_pages = 4 + pick(60);
        let (flush, concurrency) = match pick(2) {
            0 => ("plain", pick(channels * chips * dies + 1)),
            _ => ("csw", 0),
        };
        // Cleanings take up to a block's worth of copies for each page.
        let (gc, times) =
            if flush == "plain" && pick(2) == 0 { ("true", 1 + pick(40)) } else { ("false", 1) };
        // GC during the flush needs units that are pages. The choice has a random stream of its own.
        let units = [1, 1, 2, 8][Stream::new(seed, "capability units").below(4) as usize];
        let unit = if gc == "true" { 4096 } else { 4096 / units };
        let text = format!(
            "[power]\ngc_in_flush = {gc}\n\
             [drive]\nchannels = {channels}\nchips_per_channel = {chips}\ndies_per_chip = {dies}\n\
             planes_per_die = {planes}\nblocks_per_plane = 40\npages_per_block = {pages_per_block}\n\
             page_size = '4KiB'\ncell = '{cell}'\n{layers}op = 1.0\nendurance = 1000000\n\
             [timing]\nread = '50us'\nprogram = {program}\nerase = '1ns'\nchannel_ns_per_byte = {}\n\
             command = '{}us'\ndecode = '0us'\noff_chip_mb_per_s = {}\n\
             [ftl]\nmapping_unit = '{unit}B'\nallocation = '{}'\n[gc]\nidle_after = '10s'\n\
             [cache]\nsize = '{}KiB'\naccess = '0us'\n\
             [capacitor]\ncapacitance = '{}uF'\ncontroller_power = '{}mW'\nprogram_power = '{}mW'\n\
             temperature = -40\nflush = '{flush}'\nflush_concurrency = {concurrency}\n",
            [0.5, 2.5, 10.0][pick(3) as usize],
            [0, 3][pick(2) as usize],
            ["'unlimited'", "400", "{ read = 300, write = 200 }"][pick(3) as usize],
            ["CWDP", "PDWC", "dynamic"][pick(3) as usize],
            4 * cache_pages,
            times * (1000 + pick(9000)),
            [0, 100, 1000][pick(3) as usize],
            [1, 80, 400][pick(3) as usize],
        );
        Self {
            text,
            cache_units: cache_pages * 4096 / unit,
            unit,
            fill: pick(300) as f64 / 100.0,
            placements: vec![0],
        }
    }

    /// The same drive with two to four placement handles and, where planes are chosen by load, one or two reclaim groups.
    /// The dirty units have random placements.
    fn placed(self, seed: u64) -> Self {
        let mut stream = Stream::new(seed, "capability placements");
        let mut pick = |n: u64| stream.below(n);
        let handles = 2 + pick(3) as u16;
        let is_dynamic = self.text.contains("'dynamic'");
        let has_two_dies = ["channels = 2", "chips_per_channel = 2", "dies_per_chip = 2"];
        let has_two_dies = has_two_dies.iter().any(|dies| self.text.contains(dies));
        let groups = if is_dynamic && has_two_dies { 1 + pick(2) as u16 } else { 1 };
        let isolation = ["initial", "persistent"][pick(2) as usize];
        let text = format!(
            "{}[placement]\nhandles = {handles}\ngroups = {groups}\nisolation = '{isolation}'\n",
            self.text
        );
        // Some flushes have data of one group, and of few handles.
        let (of_groups, of_handles) = (1 + pick(groups.into()), 1 + pick(handles.into()));
        let draw = |_| (pick(of_groups) as u16) << 15 | pick(of_handles) as u16;
        Self { text, placements: (0..97).map(draw).collect(), ..self }
    }

    /// The drive with only its reserved free superblocks, and a capacitor with the share `efficiency` of the plan's
    /// energy.
    fn drive(&self, efficiency: f64) -> Drive<NoProbe> {
        let set = format!("capacitor.efficiency={efficiency}");
        let mut drive = Drive::new(&spec(&self.text, &[set.as_str()]));
        let units = f64::from(drive.geometry().logical_units);
        for write in 0..(self.fill * units) as u32 {
            drive.write_now(Lpn(write % drive.geometry().logical_units));
        }
        drive.settle();
        let geometry = drive.geometry().clone();
        let (array, ftl) = drive.parts_mut();
        let room = ftl.flush_room_superblocks();
        for die in (0..geometry.dies).map(DieId) {
            let lanes = die.0 * geometry.lanes_per_die..(die.0 + 1) * geometry.lanes_per_die;
            while lanes.clone().any(|lane| ftl.flush_superblocks(LaneId(lane)) > room) {
                ftl.take_flush_superblock(array, die, nandlab::ftl::StreamId::HOST).expect("a block is free");
            }
        }
        drive
    }

    /// The number of units that a flush of `dirty` units saves.
    fn saved(&self, efficiency: f64, dirty: u64) -> u64 {
        let mut drive = self.drive(efficiency);
        for lpn in 0..dirty {
            let placement = self.placements[lpn as usize % self.placements.len()];
            let write = request(&drive, Op::Write, lpn * self.unit, self.unit);
            drive.submit(&write.with_tag(Tag { queue: 0, placement })).unwrap();
            while drive.outstanding() > 0 && drive.advance_unless_at_rest() {}
        }
        assert_eq!(drive.now(), at(0));
        drive.lose_power();
        let loss = &drive.stats().power.losses[0];
        assert_eq!(u64::from(loss.dirty_pages), dirty);
        u64::from(loss.flushed_pages)
    }
}

#[test]
fn a_flush_into_its_reserve_saves_the_units_that_the_capability_promises() {
    let mut shares = Vec::new();
    for seed in 0..300 {
        let plan = Plan::draw(seed);
        // An energy for at least one unit and for at most the whole cache.
        let mut efficiency = 1.0;
        let mut promised = plan.drive(efficiency).capability_units();
        while promised > plan.cache_units as f64 {
            efficiency *= 0.8;
            promised = plan.drive(efficiency).capability_units();
        }
        let promised = promised as u64;
        if promised == 0 {
            continue;
        }
        let saved = plan.saved(efficiency, promised);
        assert_eq!(saved, promised, "seed {seed}: {} of {}\n{}", saved, promised, plan.text);
        let most =
            (promised..plan.cache_units).take_while(|&n| plan.saved(efficiency, n + 1) == n + 1).last();
        let most = most.map_or(promised, |n| n + 1);
        if most < plan.cache_units {
            shares.push(promised as f64 / most as f64);
        }
    }
    let mean = shares.iter().sum::<f64>() / shares.len() as f64;
    println!("{} drives, promised {mean} of the units saved", shares.len());
    assert!(shares.len() > 50 && mean > 0.8, "{} drives: {mean}", shares.len());
}

/// With placement handles the last program of each may be part-filled, and with reclaim groups a part of the dies may have
/// to write all units: the capability promises less, and no more than a flush saves.
#[test]
fn a_flush_saves_what_is_promised_whatever_the_placements_of_the_units() {
    let (mut checked, mut saved_all) = (0, 0);
    for seed in 0..300 {
        let plan = Plan::draw(seed).placed(seed);
        let mut efficiency = 1.0;
        let mut promised = plan.drive(efficiency).capability_units();
        while promised > plan.cache_units as f64 {
            efficiency *= 0.8;
            promised = plan.drive(efficiency).capability_units();
        }
        let promised = promised as u64;
        if promised > 0 {
            let saved = plan.saved(efficiency, promised);
            assert_eq!(saved, promised, "seed {seed}\n{}\n{:?}", plan.text, plan.placements);
            checked += 1;
        }
        // With energy for all, the superblocks that are kept free have room for a full cache.
        if plan.drive(1.0).capability_units() >= plan.cache_units as f64 {
            assert_eq!(plan.saved(1.0, plan.cache_units), plan.cache_units, "seed {seed}\n{}", plan.text);
            saved_all += 1;
        }
    }
    println!("{checked} drives, {saved_all} of them with energy for all units");
    assert!(checked > 150 && saved_all > 50, "{checked} drives, {saved_all} with energy for all");
}
