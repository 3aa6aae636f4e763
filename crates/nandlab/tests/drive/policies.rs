//! Policies from outside fill a slot as those of the spec do, and a policy that fails or decides what cannot be carried
//! out ends the run with its name. The eviction of the write cache is compared with calculations by hand.

use crate::common::{MS, TINY, at, ns, one, request, spec, submit_with_few, summary_at_the_end};
use nandlab::base::geometry::{LaneId, Lpn, SuperblockId};
use nandlab::base::policy::{ParamInfo, PolicyError, PolicyInfo, PolicySlot};
use nandlab::base::rng::Stream;
use nandlab::demand_map::MapEviction;
use nandlab::drive::spec::{Spec, load_with, outside_policy};
use nandlab::drive::{Drive, Failure, Policies};
use nandlab::flash::{ReadView, StartPolicy, SuperblockState};
use nandlab::ftl::{Candidates, VictimPolicy};
use nandlab::host::{Op, Oracle};
use nandlab::migration::{MigrationPolicy, VictimView};
use nandlab::probe::{NoProbe, Probe};
use nandlab::sched::{Cause, FlashOp};
use nandlab::spec::{Outside, OutsideChoice};
use nandlab::write_cache::CacheSlot;
use nandlab::write_cache::eviction::{CachedOrder, EvictionPolicy};
use nandlab::write_cache::sync::{CacheView, SyncPolicy};
use serde_json::{Value, json};
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};

const PAGE: u64 = 4096;

type Pick = fn(&Candidates) -> Result<Option<u32>, PolicyError>;

/// A victim policy without state.
struct By(Pick);

impl VictimPolicy for By {
    fn pick(&mut self, lane: &Candidates) -> Result<Option<u32>, PolicyError> {
        (self.0)(lane)
    }

    fn fork(&self) -> Box<dyn VictimPolicy> {
        Box::new(Self(self.0))
    }
}

fn victim(name: &str, pick: Pick) -> Policies {
    Policies::default().with_victim(name, move |_| Box::new(By(pick)))
}

/// The full superblock with the fewest valid units, found without the index of the drive.
fn fewest(lane: &Candidates) -> Result<Option<u32>, PolicyError> {
    let full = (0..lane.superblocks.len() as u32).filter(|&superblock| lane.is_full(superblock));
    Ok(full.min_by_key(|&superblock| lane.superblocks[superblock as usize].valid))
}

fn in_state(lane: &Candidates, state: SuperblockState) -> Result<Option<u32>, PolicyError> {
    let found = lane.superblocks.iter().position(|superblock| superblock.state == state);
    Ok(Some(found.expect("the lane has such a superblock") as u32))
}

/// Fills the logical space and overwrites units at random, `writes` times or until the drive fails.
fn overwrite<P: Probe>(drive: &mut Drive<P>, writes: u32) {
    let units = u64::from(drive.geometry().logical_units);
    (0..units).for_each(|lpn| _ = drive.write_now(Lpn(lpn as u32)));
    mixed(drive, writes, units, 0);
}

/// Submits requests for single units below `units`, of which `reads` in 8 are reads, until the drive fails.
fn mixed<P: Probe>(drive: &mut Drive<P>, requests: u32, units: u64, reads: u64) {
    let mut stream = Stream::new(3, "policies");
    for _ in 0..requests {
        while drive.outstanding() >= 4 {
            if !drive.advance_unless_at_rest() {
                return;
            }
            drive.completions().for_each(drop);
        }
        let op = if stream.below(8) < reads { Op::Read } else { Op::Write };
        let request = request(drive, op, stream.below(units) * PAGE, PAGE);
        drive.submit(&request).unwrap();
        if drive.failure().is_some() {
            return;
        }
    }
}

/// The error of a drive that has failed because of the policy `name` of a slot.
fn error_of<P: Probe>(drive: &Drive<P>, slot: PolicySlot, name: &str) -> (Option<LaneId>, String) {
    let failure = drive.failure().expect("the policy has failed");
    let Failure::Policy { name: found, fault } = failure else { panic!("{failure}") };
    assert_eq!((&**found, fault.slot), (name, slot));
    let text = failure.to_string();
    assert!(text.starts_with(&format!("the policy {name} of {} has failed", slot.key())), "{text}");
    (fault.lane, fault.error.to_string())
}

/// The summary without notes and names of policies; the names apart.
fn outcome<P: Probe>(drive: &mut Drive<P>) -> (Value, Value, Vec<Value>) {
    let mut summary: Value = serde_json::from_str(&summary_at_the_end(drive)).unwrap();
    let summary = summary.as_object_mut().unwrap();
    let (names, notes) = (summary.remove("policies"), summary.remove("notes").unwrap());
    (summary.clone().into(), names.unwrap_or_default(), notes.as_array().unwrap().clone())
}

#[test]
fn a_policy_from_outside_that_copies_greedy_has_the_results_of_greedy() {
    let spec = spec(TINY, &["gc.victim=fifo"]);
    let mut copy = Drive::build(&spec, victim("copy", fewest), NoProbe).unwrap();
    let mut greedy = Drive::new(&self::spec(TINY, &["gc.victim=greedy"]));
    let mut fifo = Drive::new(&spec);
    for drive in [&mut copy, &mut greedy, &mut fifo] {
        overwrite(drive, 2000);
        assert!(drive.failure().is_none() && drive.stats().gc.victims > 100);
    }
    let (results, names, notes) = outcome(&mut copy);
    assert_eq!(names, json!([{ "slot": "gc.victim", "name": "copy" }]));
    let texts: Vec<&str> = notes.iter().map(|note| note["text"].as_str().unwrap()).collect();
    assert!(texts.iter().any(|text| text.contains("gc.victim = copy had no effect")), "{texts:?}");
    assert_eq!((results.clone(), Value::Null), {
        let (results, names, _) = outcome(&mut greedy);
        (results, names)
    });
    assert_ne!(outcome(&mut fifo).0, results, "the load distinguishes policies");
}

#[test]
fn a_pick_that_is_not_a_full_superblock_ends_the_run() {
    let kinds: [(&str, Pick, &str); 5] = [
        ("beyond", |_| Ok(Some(99)), "it picked block 99, which does not exist: the blocks are 0 to 15"),
        ("free", |lane| in_state(lane, SuperblockState::Free), "which is free, not full"),
        ("open", |lane| in_state(lane, SuperblockState::Open), "which is open, not full"),
        ("victim", |lane| in_state(lane, SuperblockState::Victim), "which is the victim of a job already"),
        ("fails", |_| Err(PolicyError::new("it divides by zero")), "it divides by zero"),
    ];
    for (name, pick, expected) in kinds {
        let mut drive = Drive::build(&spec(TINY, &[]), victim(name, pick), NoProbe).unwrap();
        let geometry = drive.geometry().clone();
        (0..geometry.logical_units).for_each(|lpn| _ = drive.write_now(Lpn(lpn)));
        if name == "victim" {
            // In each lane a superblock looks as if a job emptied it.
            for lane in (0..geometry.lanes).map(LaneId) {
                let (array, ftl) = drive.parts_mut();
                let full =
                    |superblock: &SuperblockId| array.superblock(*superblock).state == SuperblockState::Full;
                let superblock = geometry.superblock_ids_of(lane).find(full).unwrap();
                ftl.begin_emptying(array, superblock);
            }
        }
        mixed(&mut drive, 2000, geometry.logical_units.into(), 0);
        let (lane, text) = error_of(&drive, PolicySlot::Victim, name);
        assert!(lane.is_some() && text.contains(expected), "{name}: {lane:?} {text}");
        let failure = drive.failure().cloned();
        assert_eq!(
            drive.run_until_idle(nandlab::drive::IDLE_LIMIT).err(),
            failure,
            "{name}: the run has ended"
        );
    }
}

#[test]
fn a_victim_policy_that_fails_in_preconditioning_ends_it() {
    let most: Pick = |lane| {
        let full = (0..lane.superblocks.len() as u32).filter(|&superblock| lane.is_full(superblock));
        Ok(full.max_by_key(|&superblock| lane.superblocks[superblock as usize].valid))
    };
    let kinds: [(&str, Pick, &str); 2] = [
        ("beyond", |_| Ok(Some(16)), "it picked block 16, which does not exist"),
        // Emptying a superblock without invalid units gains nothing, so preconditioning would not end.
        ("most", most, "it picked 257 blocks in succession that have no invalid page"),
    ];
    for (name, pick, expected) in kinds {
        let spec = spec(TINY, &["precondition.method=pts"]);
        let mut drive = Drive::build(&spec, victim(name, pick), NoProbe).unwrap();
        assert_eq!(drive.precondition(&mut |_| true), (false, None), "{name}");
        let (lane, text) = error_of(&drive, PolicySlot::Victim, name);
        assert!(lane.is_some() && text.contains(expected), "{name}: {text}");
    }
}

#[test]
fn a_policy_from_outside_is_made_anew_after_a_power_loss_and_may_fail_then() {
    let made = Arc::new(AtomicU32::new(0));
    let counted = Arc::clone(&made);
    let policies = Policies::default().with_victim("tired", move |_| {
        let is_first = counted.fetch_add(1, Ordering::Relaxed) == 0;
        Box::new(By(if is_first { fewest } else { |_| Err(PolicyError::new("it is tired")) }))
    });
    let spec = spec(TINY, &["power.cut_after_requests=600"]);
    let mut drive = Drive::build(&spec, policies, Oracle::default()).unwrap();
    overwrite(&mut drive, 3000);
    assert_eq!((made.load(Ordering::Relaxed), drive.stats().power.losses.len()), (2, 1));
    assert!(drive.stats().gc.victims > 0, "the first policy has worked");
    assert_eq!(error_of(&drive, PolicySlot::Victim, "tired").1, "it is tired");
}

/// Spec of a drive with static wear levelling.
fn worn(gap: u32) -> Spec {
    spec(TINY, &["ftl.wear_levelling=static", &format!("ftl.wear_gap={gap}")])
}

#[test]
fn wear_levelling_from_outside_moves_the_superblocks_that_it_picks() {
    // Of the full superblocks the one with the highest number; the policy of the spec moves none at this wear.
    let last: Pick = |lane| Ok((0..lane.superblocks.len() as u32).rev().find(|&b| lane.is_full(b)));
    let policies = Policies::default().with_wear_levelling("last", move |_| Box::new(By(last)));
    let mut drive = Drive::build(&worn(1000), policies, NoProbe).unwrap();
    overwrite(&mut drive, 2000);
    assert!(drive.failure().is_none());
    let moved = |drive: &Drive| drive.stats().flash[FlashOp::Program as usize][Cause::Wear as usize];
    assert!(moved(&drive) > 0);
    assert_eq!(outcome(&mut drive).1, json!([{ "slot": "ftl.wear_levelling", "name": "last" }]));
    let mut by_spec = Drive::new(&worn(1000));
    overwrite(&mut by_spec, 2000);
    assert_eq!(moved(&by_spec), 0);

    let free: Pick = |lane| in_state(lane, SuperblockState::Free);
    let policies = Policies::default().with_wear_levelling("free", move |_| Box::new(By(free)));
    let mut drive = Drive::build(&worn(1), policies, NoProbe).unwrap();
    overwrite(&mut drive, 2000);
    let (lane, text) = error_of(&drive, PolicySlot::Wear, "free");
    assert!(lane.is_some() && text.contains("which is free, not full"), "{text}");
}

/// A drive with room for copybacks.
const COPYBACKS: [&str; 3] = ["drive.blocks_per_plane=32", "drive.op=1.2", "migration.policy=rcopyback"];

#[derive(Debug)]
struct Migrates(Option<bool>);

impl MigrationPolicy for Migrates {
    fn copies_back(&mut self, _: &VictimView) -> Result<bool, PolicyError> {
        self.0.ok_or_else(|| PolicyError::new("it cannot decide"))
    }
}

#[test]
fn migration_from_outside_decides_within_the_limit_of_the_spec_and_its_error_ends_the_run() {
    let run = |decides| {
        let policies = Policies::default().with_migration("outside", move || Box::new(Migrates(decides)));
        let mut drive = Drive::build(&spec(TINY, &COPYBACKS), policies, NoProbe).unwrap();
        overwrite(&mut drive, 3000);
        drive
    };
    let copied = |drive: &Drive| drive.stats().migration.by_count.iter().sum::<u64>();
    let (always, never, fails) = (run(Some(true)), run(Some(false)), run(None));
    assert!(copied(&always) > 0 && always.failure().is_none());
    assert_eq!(copied(&never), 0);
    assert!(never.stats().migration.victims_off_chip > 0 && never.failure().is_none());
    let (lane, text) = error_of(&fails, PolicySlot::Migration, "outside");
    assert!(lane.is_some() && text == "it cannot decide");
}

// ---------------------------------------------------------------------------------------------------------
// write cache

/// The time of a read that hits the write cache, and of one that does not: a DRAM access of 1 us; 50 us, the transfer
/// of 10.24 us and decoding of 15 us.
const HIT: u64 = 1_000;
const MISS: u64 = 75_240;

/// A write cache of `units` units on one plane.
fn cached(units: u64, sets: &[&str]) -> Spec {
    let size = format!("cache.size={}B", units * PAGE);
    let sets =
        [&["drive.channels=1", "drive.planes_per_die=1", "drive.blocks_per_plane=64", &size], sets].concat();
    spec(TINY, &sets)
}

/// A drive whose first 64 units are in flash and not in the cache.
fn filled(spec: &Spec, policies: Policies) -> Drive {
    let mut drive = Drive::build(spec, policies, NoProbe).unwrap();
    (0..64).for_each(|lpn| _ = drive.write_now(Lpn(lpn)));
    drive
}

fn at_unit<P: Probe>(drive: &mut Drive<P>, op: Op, lpn: u64) -> u64 {
    one(drive, op, lpn * PAGE, PAGE)
}

#[test]
fn clean_first_lru_evicts_the_coldest_clean_unit_of_its_window() {
    // Four slots. By use, the coldest first: 0 dirty, 1 clean, 2 clean, 3 dirty. Unit 4 is read and needs a slot. A
    // window of one unit has only unit 0, so that the least recently used unit is evicted, as under `lru`. A window of
    // two or more has unit 1; it does not take unit 2, which was used later.
    for (eviction, evicted) in [
        ("lru", 0),
        ("{ cflru = { window = 0.25 } }", 0),
        ("{ cflru = { window = 0.5 } }", 1),
        ("{ cflru = { window = 1.0 } }", 1),
    ] {
        let mut drive = filled(&cached(4, &[&format!("cache.eviction={eviction}")]), Policies::default());
        for (op, lpn) in [(Op::Write, 0), (Op::Read, 1), (Op::Read, 2), (Op::Write, 3)] {
            at_unit(&mut drive, op, lpn);
        }
        assert_eq!(at_unit(&mut drive, Op::Read, 4), MISS);
        // The write-back of a dirty unit ends.
        let later = drive.now() + ns(5 * MS);
        drive.advance(later);
        let stats = drive.stats().cache.clone();
        let is_dirty = evicted == 0;
        assert_eq!(
            (stats.evictions, stats.dirty_evictions),
            (u64::from(!is_dirty), u64::from(is_dirty)),
            "{eviction}"
        );
        assert_eq!(stats.write_backs, u64::from(is_dirty), "{eviction}");
        for lpn in (0..4).filter(|&lpn| lpn != evicted) {
            assert_eq!(at_unit(&mut drive, Op::Read, lpn), HIT, "{eviction}: unit {lpn} is cached");
        }
        // The unit that was read took the slot of the clean unit; it got none of the dirty unit.
        assert_eq!(at_unit(&mut drive, Op::Read, 4), if is_dirty { MISS } else { HIT }, "{eviction}");
        assert_eq!(at_unit(&mut drive, Op::Read, evicted), MISS, "{eviction}: unit {evicted} has left");
    }
}

#[test]
fn in_a_window_of_dirty_units_clean_first_lru_evicts_the_least_recently_used_one() {
    let mut drive = filled(&cached(4, &["cache.eviction={ cflru = { window = 0.5 } }"]), Policies::default());
    for (op, lpn) in [(Op::Write, 0), (Op::Write, 1), (Op::Read, 2), (Op::Read, 3), (Op::Write, 4)] {
        at_unit(&mut drive, op, lpn);
    }
    let stats = drive.stats().cache.clone();
    assert_eq!((stats.evictions, stats.dirty_evictions, stats.write_backs), (0, 1, 1));
    assert_eq!([2, 3, 4, 1].map(|lpn| at_unit(&mut drive, Op::Read, lpn)), [HIT; 4]);
    assert_eq!(at_unit(&mut drive, Op::Read, 0), MISS);
}

/// The operations of a mixed load on units in flash: reads of 64 units, writes of the first 16.
fn mixed_load() -> Vec<(Op, u64)> {
    let mut stream = Stream::new(3, "mixed load");
    let mut draw = || match stream.below(8) {
        0..5 => (Op::Read, stream.below(64)),
        _ => (Op::Write, stream.below(16)),
    };
    (0..1500).map(|_| draw()).collect()
}

/// The write-backs of a cache of 16 units if each operation, and the write-back that it causes, ends before the next
/// one; `window` is that of clean-first LRU in units, 0 for LRU. A read whose slot has to be written back first is not
/// cached (`cache.read_room = "skip"`).
fn write_backs(window: usize) -> u64 {
    // The cached units with their dirty bits, the least recently used one first.
    let mut cached: Vec<(u64, bool)> = Vec::new();
    let mut write_backs = 0;
    for (op, unit) in mixed_load() {
        let is_write = op == Op::Write;
        let mut is_dirty = is_write;
        if let Some(place) = cached.iter().position(|&(other, _)| other == unit) {
            is_dirty |= cached.remove(place).1;
        } else if cached.len() == 16 {
            let clean = cached.iter().take(window).position(|&(_, is_dirty)| !is_dirty);
            let (_, was_dirty) = cached.remove(clean.unwrap_or(0));
            write_backs += u64::from(was_dirty);
            if was_dirty && !is_write {
                continue;
            }
        }
        cached.push((unit, is_dirty));
    }
    write_backs
}

#[test]
fn clean_first_lru_writes_back_less_than_lru_and_as_often_as_its_twin() {
    let mut fewest = u64::MAX;
    for (eviction, window) in
        [("lru", 0), ("{ cflru = { window = 0.25 } }", 4), ("cflru", 4), ("{ cflru = { window = 1.0 } }", 16)]
    {
        let spec = cached(16, &[&format!("cache.eviction={eviction}")]);
        let mut drive = Drive::with_probe(&spec, Oracle::default());
        (0..64).for_each(|lpn| _ = drive.write_now(Lpn(lpn)));
        for (op, unit) in mixed_load() {
            at_unit(&mut drive, op, unit);
            let later = drive.now() + ns(2 * MS);
            drive.advance(later);
        }
        let counted = drive.stats().cache.write_backs;
        assert_eq!(counted, write_backs(window), "{eviction}");
        assert!(counted < fewest || eviction == "cflru", "{eviction}: {counted} write-backs after {fewest}");
        fewest = counted;
        summary_at_the_end(&mut drive);
    }
}

/// Evicts the unit in the slot that a function names.
#[derive(Debug)]
struct Evicts(fn(&CachedOrder<'_>) -> Result<Option<CacheSlot>, PolicyError>);

impl EvictionPolicy for Evicts {
    fn pick(&mut self, order: &CachedOrder<'_>) -> Result<Option<CacheSlot>, PolicyError> {
        (self.0)(order)
    }
}

#[test]
fn cache_eviction_from_outside_fills_the_slot_and_its_errors_end_the_run() {
    let run = |name: &'static str, pick| {
        let policies = Policies::default().with_cache_eviction(name, move || Box::new(Evicts(pick)));
        let mut drive = filled(&cached(8, &["cache.eviction=cflru"]), policies);
        mixed(&mut drive, 2000, 64, 4);
        drive
    };
    let mut copy = run("copy", |order| Ok(order.by_use().next()));
    let mut lru = filled(&cached(8, &[]), Policies::default());
    mixed(&mut lru, 2000, 64, 4);
    let ((results, names, _), (expected, ..)) = (outcome(&mut copy), outcome(&mut lru));
    assert_eq!(results, expected);
    assert_eq!(names, json!([{ "slot": "cache.eviction", "name": "copy" }]));

    let failed = [
        (
            "beyond",
            run("beyond", |_| Ok(Some(CacheSlot(8)))),
            "it picked slot 8, which has no page that can be evicted",
        ),
        ("none", run("none", |_| Ok(None)), "it picked no page, though 8 can be evicted"),
        ("fails", run("fails", |_| Err(PolicyError::new("it has no table"))), "it has no table"),
    ];
    for (name, drive, expected) in failed {
        assert_eq!(error_of(&drive, PolicySlot::CacheEviction, name), (None, expected.to_owned()));
    }
}

/// A sync policy whose decisions fail, with this cold share.
#[derive(Debug)]
struct Syncs(f64);

impl SyncPolicy for Syncs {
    fn cold_share(&self) -> f64 {
        self.0
    }

    fn syncs_when_idle(&self, _: &CacheView) -> Result<bool, PolicyError> {
        Err(PolicyError::new("it does not know whether the drive is idle"))
    }

    fn evicts_dirty_first(&self, _: &CacheView) -> Result<bool, PolicyError> {
        if self.0 > 0.0 { Err(PolicyError::new("it does not know what is dirty")) } else { Ok(false) }
    }
}

#[test]
fn a_sync_policy_from_outside_that_fails_ends_the_run() {
    let sets = ["gc.idle_after=1ms"];
    let policies = |share| Policies::default().with_cache_sync("lost", move || Box::new(Syncs(share)));
    let mut evicts = filled(&cached(8, &sets), policies(0.5));
    mixed(&mut evicts, 2000, 64, 4);
    assert_eq!(
        error_of(&evicts, PolicySlot::Sync, "lost"),
        (None, "it does not know what is dirty".to_owned())
    );
    let mut idle = filled(&cached(8, &sets), policies(0.0));
    at_unit(&mut idle, Op::Write, 0);
    assert!(idle.failure().is_none());
    idle.advance(at(20 * MS));
    let text = "it does not know whether the drive is idle";
    assert_eq!(error_of(&idle, PolicySlot::Sync, "lost"), (None, text.to_owned()));
}

// ---------------------------------------------------------------------------------------------------------
// mapping cache

/// The least recently used entry, from a list; or an LPN whatever is cached.
#[derive(Debug)]
struct MapLru {
    used: Vec<Lpn>,
    evicts: Option<Result<Lpn, PolicyError>>,
}

impl MapEviction for MapLru {
    fn on_hit(&mut self, lpn: Lpn) {
        self.used.retain(|&other| other != lpn);
        self.used.push(lpn);
    }

    fn on_inserted(&mut self, lpn: Lpn, _: u8) {
        self.used.push(lpn);
    }

    fn evict(&mut self) -> Result<Lpn, PolicyError> {
        self.evicts.clone().unwrap_or_else(|| Ok(self.used.remove(0)))
    }
}

#[test]
fn eviction_of_the_mapping_cache_from_outside_fills_the_slot_and_its_errors_end_the_run() {
    let map = spec(TINY, &["drive.op=1.0", "ftl.map.demand={ cache = '128B', eviction = 'lru' }"]);
    let run = |name: &'static str, evicts: Option<Result<Lpn, PolicyError>>| {
        let policies = Policies::default().with_map_eviction(name, move |capacity| {
            assert_eq!(capacity, 16, "128 bytes are 16 entries");
            Box::new(MapLru { used: Vec::new(), evicts: evicts.clone() })
        });
        let mut drive = Drive::build(&map, policies, Oracle::default()).unwrap();
        overwrite(&mut drive, 2000);
        drive
    };
    let mut lru = Drive::with_probe(&map, Oracle::default());
    overwrite(&mut lru, 2000);
    assert!(lru.stats().map.evictions > 100);
    let mut copy = run("copy", None);
    let ((results, names, _), (expected, ..)) = (outcome(&mut copy), outcome(&mut lru));
    assert_eq!(results, expected);
    assert_eq!(names, json!([{ "slot": "ftl.map.demand.eviction", "name": "copy" }]));

    for (name, evicts, expected) in [
        ("beyond", Ok(Lpn(u32::MAX)), "it evicted the entry of LPN 4294967295, which is not cached"),
        ("fails", Err(PolicyError::new("it is empty")), "it is empty"),
    ] {
        let drive = run(name, Some(evicts));
        assert_eq!(error_of(&drive, PolicySlot::MapEviction, name), (None, expected.to_owned()));
    }
}

// ---------------------------------------------------------------------------------------------------------
// start levels

/// The level that last decoded a unit of the superblock, from the events; or a level whatever is read.
#[derive(Debug)]
struct Starts {
    good: std::collections::BTreeMap<SuperblockId, u8>,
    answer: Option<Result<u8, PolicyError>>,
}

impl StartPolicy for Starts {
    fn level(&mut self, read: &ReadView) -> Result<u8, PolicyError> {
        let level = self.good.get(&read.superblock).copied();
        assert_eq!(level.unwrap_or(0), read.hints.superblock);
        self.answer.clone().unwrap_or_else(|| Ok(level.unwrap_or(1)))
    }

    fn on_decoded(&mut self, superblock: SuperblockId, level: u8) {
        self.good.insert(superblock, level);
    }

    fn on_erased(&mut self, superblock: SuperblockId) {
        self.good.remove(&superblock);
    }
}

#[test]
fn start_levels_from_outside_fill_the_slot_and_their_errors_end_the_run() {
    const OLD: &[&str] = &[
        "drive.op=1.0",
        "ecc.levels=laldpc",
        "drive.endurance=20000",
        "reliability.pe_cycles=9000",
        "reliability.rber.vth.cell_to_cell=0.05",
        "reliability.retention='365d'",
        "reliability.clock_scale=1e8",
    ];
    let old = spec(TINY, OLD);
    let run = |name: &'static str, answer: Option<Result<u8, PolicyError>>| {
        let policies = Policies::default().with_read_start(name, move |levels| {
            assert_eq!(levels, 7);
            Box::new(Starts { good: Default::default(), answer: answer.clone() })
        });
        let mut drive = Drive::build(&old, policies, Oracle::default()).unwrap();
        overwrite(&mut drive, 2000);
        drive
    };
    let mut last_good =
        Drive::with_probe(&spec(TINY, &[OLD, &["ecc.start=last-good"]].concat()), Oracle::default());
    overwrite(&mut last_good, 2000);
    assert!(last_good.stats().ecc.levels[2..].iter().sum::<u64>() > 100);
    let mut copy = run("copy", None);
    let ((results, names, _), (expected, ..)) = (outcome(&mut copy), outcome(&mut last_good));
    assert_eq!(results, expected);
    assert_eq!(names, json!([{ "slot": "ecc.start", "name": "copy" }]));

    for (name, answer, expected) in [
        ("zero", Ok(0), "it started a read at level 0, which does not exist: the levels are 1 to 7"),
        ("beyond", Ok(8), "it started a read at level 8, which does not exist: the levels are 1 to 7"),
        ("fails", Err(PolicyError::new("it has no level")), "it has no level"),
    ] {
        let drive = run(name, Some(answer));
        assert_eq!(error_of(&drive, PolicySlot::Start, name), (None, expected.to_owned()));
    }
}

#[test]
fn a_policy_from_outside_that_does_not_fit_the_spec_is_refused() {
    let refused = |policies: Policies, sets: &[&str]| {
        Drive::build(&spec(TINY, sets), policies, NoProbe).unwrap_err().to_string()
    };
    let none = Policies::default;
    let migrates = || none().with_migration("m", || Box::new(Migrates(None)));
    let syncs = |share| none().with_cache_sync("s", move || Box::new(Syncs(share)));
    let evicts = none().with_cache_eviction("e", || Box::new(Evicts(|_| Ok(None))));
    let map = none().with_map_eviction("l", |_| Box::new(MapLru { used: Vec::new(), evicts: None }));
    let starts = none().with_read_start("s", |_| Box::new(Starts { good: Default::default(), answer: None }));
    let wear = none().with_wear_levelling("w", |_| Box::new(By(fewest)));
    for (error, expected) in [
        (
            refused(wear, &[]),
            "the policy w cannot be ftl.wear_levelling of this drive: set ftl.wear_levelling",
        ),
        (
            refused(migrates(), &[]),
            "the policy m cannot be migration.policy of this drive: the spec allows no copybacks",
        ),
        (
            refused(syncs(0.0), &[]),
            "the policy s cannot be cache.sync of this drive: the spec has no write cache",
        ),
        (refused(syncs(1.5), &["cache.size=1MiB"]), "its cold share is not a share from 0 to 1"),
        (
            refused(evicts, &[]),
            "the policy e cannot be cache.eviction of this drive: the spec has no write cache",
        ),
        (refused(map, &[]), "the spec has no mapping cache; set ftl.map.demand"),
        (refused(starts, &[]), "the policy s cannot be ecc.start of this drive: the spec has no read levels"),
    ] {
        assert!(error.contains(expected), "{error}");
    }
    assert!(Drive::build(&spec(TINY, &COPYBACKS), migrates(), NoProbe).is_ok());
}

/// A study preconditions once for drives of one spec: a drive with another victim policy does not take the state.
#[test]
fn a_drive_shares_preconditioning_only_under_the_same_victim_policy() {
    let spec = spec(TINY, &["precondition.method=pts"]);
    let build = |policies| Drive::build(&spec, policies, NoProbe).unwrap();
    let mut first = build(victim("copy", fewest));
    let (is_done, outcome) = first.precondition(&mut |_| true);
    assert!(is_done);
    let state = first.preconditioned(outcome);
    assert!(build(victim("copy", fewest)).precondition_like(&state));
    assert!(!build(victim("other", fewest)).precondition_like(&state));
    assert!(!build(Policies::default()).precondition_like(&state));
    let mut shared = build(victim("copy", fewest));
    assert!(shared.precondition_like(&state));
    for drive in [&mut first, &mut shared] {
        (0..200).for_each(|n| submit_with_few(drive, Op::Write, n * 7 % 300 * PAGE, PAGE));
    }
    assert_eq!(summary_at_the_end(&mut first), summary_at_the_end(&mut shared));
}

/// LRU from the events of the cache, compared at each pick with the order of the cache.
#[derive(Debug, Default)]
struct FromEvents {
    used: Vec<(CacheSlot, Lpn)>,
    /// Events of each kind.
    heard: Arc<[AtomicU32; 3]>,
}

impl FromEvents {
    fn take(&mut self, kind: usize, slot: CacheSlot, lpn: Lpn) {
        self.heard[kind].fetch_add(1, Ordering::Relaxed);
        let at = self.used.iter().position(|&known| known == (slot, lpn)).expect("the unit is in the order");
        self.used.remove(at);
    }
}

impl EvictionPolicy for FromEvents {
    fn pick(&mut self, order: &CachedOrder<'_>) -> Result<Option<CacheSlot>, PolicyError> {
        let (ours, theirs): (Vec<_>, Vec<_>) =
            (self.used.iter().map(|(slot, _)| *slot).collect(), order.by_use().collect());
        assert_eq!(ours, theirs);
        assert!(self.used.iter().all(|&(slot, lpn)| order.lpn(slot) == lpn));
        Ok(self.used.first().map(|(slot, _)| *slot))
    }

    fn watches(&self) -> bool {
        true
    }

    fn on_inserted(&mut self, slot: CacheSlot, lpn: Lpn) {
        self.heard[0].fetch_add(1, Ordering::Relaxed);
        assert!(self.used.iter().all(|&(known, _)| known != slot));
        self.used.push((slot, lpn));
    }

    fn on_used(&mut self, slot: CacheSlot, lpn: Lpn) {
        self.take(1, slot, lpn);
        self.used.push((slot, lpn));
    }

    fn on_removed(&mut self, slot: CacheSlot, lpn: Lpn) {
        self.take(2, slot, lpn);
    }
}

#[test]
fn cache_eviction_is_told_of_every_change_of_the_order_of_use() {
    for sync in ["none", "punctual", "eager", "smart"] {
        let heard: Arc<[AtomicU32; 3]> = Arc::default();
        let of_policy = heard.clone();
        let make = move || -> Box<dyn EvictionPolicy> {
            Box::new(FromEvents { heard: of_policy.clone(), ..FromEvents::default() })
        };
        let sets = [format!("cache.sync={sync}")];
        let sets: Vec<&str> = sets.iter().map(String::as_str).collect();
        let mut ours =
            filled(&cached(8, &sets), Policies::default().with_cache_eviction("from-events", make));
        let mut lru = filled(&cached(8, &sets), Policies::default());
        mixed(&mut ours, 2000, 24, 4);
        mixed(&mut lru, 2000, 24, 4);
        assert_eq!(outcome(&mut ours).0, outcome(&mut lru).0, "{sync}");
        let heard = heard.each_ref().map(|count| count.load(Ordering::Relaxed));
        assert!(heard.iter().all(|&count| count > 100), "{sync}: {heard:?}");
    }
}

#[test]
fn a_spec_names_a_policy_from_outside_which_the_drive_then_needs() {
    const INFO: PolicyInfo = PolicyInfo {
        name: "mine",
        description: "the fewest valid units",
        params: &[ParamInfo {
            name: "k",
            default: Some(3.0),
            min: 1.0,
            max: 9.0,
            whole: true,
            description: "nothing",
        }],
    };
    let outside = |identity: &str| Outside {
        choices: vec![OutsideChoice {
            slot: PolicySlot::Victim.key(),
            policy: outside_policy(PolicySlot::Victim, &INFO),
            identity: identity.to_owned(),
        }],
        ..Outside::default()
    };
    let read = |set: &str, outside: &Outside| {
        let sets = [set.to_owned()];
        load_with(TINY, "tiny.toml", Path::new("."), &sets, outside).map_err(|errors| errors.to_string())
    };
    let set = "gc.victim={ mine = { k = 4 } }";
    let loaded = read(set, &outside("a")).unwrap();
    let named = loaded.outside();
    assert_eq!((named.len(), named[0].name, &*named[0].params), (1, "mine", &[("k", 4.0)][..]));
    assert_eq!(named[0].identity.as_deref(), Some("a"));
    // The hash has the identity, and the drive is not built without the policy.
    assert_ne!(loaded.hash(), read(set, &outside("b")).unwrap().hash());
    let error = Drive::build(&loaded.spec, Policies::default(), NoProbe).map(drop).unwrap_err().to_string();
    assert!(
        error.starts_with("the policy mine cannot be gc.victim of this drive: it is not built in"),
        "{error}"
    );
    assert!(Drive::build(&loaded.spec, victim("mine", fewest), NoProbe).is_ok());
    // Parameters are checked, and other names refused, unless a policy that is not loaded is accepted.
    let wrong = read("gc.victim={ mine = { k = 10 } }", &outside("a")).unwrap_err();
    assert!(wrong.contains("gc.victim.mine.k"), "{wrong}");
    let unknown = read("gc.victim=other", &outside("a")).unwrap_err();
    assert!(unknown.contains("unknown value \"other\"") && unknown.contains("mine"), "{unknown}");
    assert!(read(set, &Outside::default()).is_err());
    let accepted = Outside { accepts_unloaded: true, ..Outside::default() };
    let unloaded = read("gc.victim={ other = { x = [1, \"y\"] } }", &accepted).unwrap();
    assert_eq!((unloaded.outside()[0].name, unloaded.outside()[0].identity.clone()), ("other", None));
    let again = load_with(&unloaded.to_toml(), "again.toml", Path::new("."), &[], &accepted).unwrap();
    assert_eq!(again.canonical_json(), unloaded.canonical_json());
    // A slot without a table takes no others.
    assert!(read("timing.scheduler=other", &accepted).is_err());
}
