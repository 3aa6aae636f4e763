//! The write cache on a bare core. The cache has four units, a DRAM access takes 1 us, and a program takes 210 us
//! including its transfer. The drive has one die, so programs run one after the other.

use super::*;
use crate::base::geometry::SuperblockId;
use crate::base::policy::Choice;
use crate::base::units::{MS, US};
use crate::core::testing::{Event, LANE, MapInRam, Setup, clear, decode, fill, next};
use crate::ftl::StreamId;
use crate::host::Writes;
use crate::host::spec::HostSpec;
use crate::probe::NoProbe;
use crate::sched::FlashOp;
use crate::sched::{Cause, Owner};

struct Bench {
    core: Core<NoProbe>,
    path: DataPath<MapInRam>,
    cache: Caching,
}

fn spec(dirty_budget: f64) -> CacheSpec {
    let sync = Choice { name: "punctual", values: vec![] };
    let eviction = Choice { name: "lru", values: vec![] };
    let dirty_budget = DirtyBudget::Share(dirty_budget);
    let (read_room, flush_to) = (ReadRoom::Skip, FlushTo::Cache);
    CacheSpec { size_bytes: 4 * 4096, access_ns: US, sync, eviction, dirty_budget, read_room, flush_to }
}

impl Bench {
    fn new(setup: &Setup, dirty_budget: f64) -> Self {
        let core = setup.core();
        let path = DataPath {
            host: Host::new(&HostSpec::default(), 0, MS, &core),
            map: MapInRam::default(),
            writes: Writes::new(&core),
        };
        let spec = spec(dirty_budget);
        let cache = Caching::new(&spec, CachePolicies::new(&spec), 0, &core).expect("a write cache");
        Self { core, path, cache }
    }

    /// The host writes `len` bytes at the start of a unit; returns the request's id.
    fn write_bytes(&mut self, lpn: u32, len: u64) -> u64 {
        let Self { core, path, cache } = self;
        let request = Request::write(u64::from(lpn) * 4096, len).at(core.now());
        path.host.record.on_submitted(core.now());
        let slot = path.host.requests.insert(&request);
        let epoch = path.host.epochs.open();
        path.host.epochs.join(epoch);
        let entry = path.host.requests.get(slot);
        (entry.epoch, entry.units_left) = (epoch, entry.units_left + 1);
        let id = entry.id;
        cache.write(core, path, slot, Lpn(lpn));
        path.host.unit_done(core, slot);
        id
    }

    fn write(&mut self, lpn: u32) -> u64 {
        self.write_bytes(lpn, 4096)
    }

    /// The host sends a flush; returns the request's id.
    fn flush(&mut self) -> u64 {
        let Self { core, path, cache } = self;
        let request = Request::flush().at(core.now());
        path.host.record.on_submitted(core.now());
        let slot = path.host.requests.insert(&request);
        let id = path.host.requests.get(slot).id;
        path.host.epochs.end_with(slot);
        path.host.flushes += 1;
        cache.sync_more(core, path);
        path.host.complete_flushes(core);
        id
    }

    /// Serves events until none is left.
    fn run(&mut self) {
        let Self { core, path, cache } = self;
        while let Some(event) = next(core) {
            match event {
                Event::Page(slot) => {
                    let read = decode(core, slot);
                    let Owner::CacheUnit(slot) = read.owner else { unreachable!("{read:?}") };
                    cache.on_fetched(core, path, slot, Some(1), false);
                }
                Event::Ended(done) => {
                    let Owner::CacheUnit(slot) = done.owner else { unreachable!("{done:?}") };
                    cache.on_written_back(core, path, slot, &done);
                }
                Event::Clock(clock) if clock == core.dram_clock() => cache.on_dram(core, &mut path.host),
                Event::Wake(Wake::CacheRoom) => cache.resume(core, path),
                Event::Wake(Wake::WriteBackEnded(slot)) => cache.end_write_back(core, path, slot),
                Event::Wake(Wake::SectorsArrived { slot, sequence, is_lost }) => {
                    cache.on_fetched(core, path, slot, sequence, is_lost);
                }
                // The idle clock, and wakes of GC and the capacitor.
                Event::Clock(_) | Event::Wake(_) => {}
            }
            cache.cache.audit().unwrap();
        }
    }

    /// Completion time of a request in microseconds; `None` if it has not completed.
    fn completed_us(&self, id: u64) -> Option<u64> {
        let done = self.path.host.completions.iter().find(|done| done.id == id)?;
        assert_eq!(done.failed, None);
        Some((done.completed - Time::START) / US)
    }

    fn in_flash(&self) -> Vec<u32> {
        (0..16).filter(|&lpn| self.core.unit_of(Lpn(lpn)).is_some()).collect()
    }
}

#[test]
fn a_write_completes_after_a_dram_access_and_its_unit_is_dirty() {
    let mut bench = Bench::new(&Setup::default(), 1.0);
    let id = bench.write(3);
    assert_eq!(bench.completed_us(id), None);
    bench.run();
    assert_eq!(bench.completed_us(id), Some(1));
    assert_eq!((bench.cache.cache.dirty_units(), bench.cache.cache.unflushed()), (1, 1));
    assert_eq!((bench.core.operations().programmed(), bench.in_flash()), (0, vec![]));
    // A second write is a hit and makes no further unit dirty.
    bench.write(3);
    bench.run();
    assert_eq!((bench.cache.stats.write_misses, bench.cache.stats.write_hits), (1, 1));
    assert_eq!(bench.cache.cache.dirty_units(), 1);
}

#[test]
fn at_the_budget_a_write_waits_until_the_oldest_dirty_unit_is_written_back() {
    let mut bench = Bench::new(&Setup::default(), 0.5);
    let ids = [5, 6, 7].map(|lpn| bench.write(lpn));
    bench.run();
    // The budget is two units. The third write continues when LPN 5 is in flash, and then takes a DRAM access.
    assert_eq!(ids.map(|id| bench.completed_us(id)), [Some(1), Some(1), Some(210 + 1)]);
    assert_eq!((bench.in_flash(), bench.cache.cache.dirty_units()), (vec![5], 2));
    assert_eq!((bench.cache.stats.waiting_writes, bench.cache.stats.write_backs), (1, 1));
    assert_eq!(bench.cache.stats.dirty_pages_max, 2);
}

#[test]
fn a_dirty_unit_is_written_back_when_it_is_evicted() {
    let mut bench = Bench::new(&Setup::default(), 1.0);
    let ids = [0, 1, 2, 3, 4].map(|lpn| bench.write(lpn));
    bench.run();
    assert_eq!(bench.completed_us(ids[4]), Some(210 + 1));
    assert_eq!((bench.in_flash(), bench.cache.stats.dirty_evictions), (vec![0], 1));
    assert!(bench.cache.cache.find(Lpn(0)).is_none() && bench.cache.cache.find(Lpn(4)).is_some());
}

#[test]
fn a_flush_waits_for_the_dirty_units_of_its_epoch() {
    let mut bench = Bench::new(&Setup::default(), 1.0);
    bench.write(0);
    bench.write(1);
    let flush = bench.flush();
    let after = bench.write(2);
    bench.run();
    assert_eq!((bench.completed_us(after), bench.completed_us(flush)), (Some(1), Some(2 * 210)));
    // LPN 2 has been written back as well, so no unit is dirty any more and the next flush completes at once.
    let now = (bench.core.now() - Time::START) / US;
    let next = bench.flush();
    assert_eq!(bench.completed_us(next), Some(now));
    assert_eq!(bench.in_flash(), [0, 1, 2]);
}

#[test]
fn missing_sectors_of_a_unit_are_read_before_it_is_written_back() {
    let mut bench = Bench::new(&Setup::default(), 1.0);
    fill(&mut bench.core, StreamId::HOST, [0]);
    // The host writes one of the eight sectors of each unit; LPN 1 is not mapped, so only LPN 0 has to be read.
    bench.write_bytes(0, 512);
    bench.write_bytes(1, 512);
    bench.run();
    assert_eq!(bench.core.operations().total(FlashOp::Read), 0, "no read before the write-back");
    bench.flush();
    bench.run();
    assert_eq!(bench.core.operations().0[FlashOp::Read as usize][Cause::Sync as usize], 1);
    assert_eq!(bench.core.operations().0[FlashOp::Program as usize][Cause::Sync as usize], 2);
    assert_eq!(bench.cache.cache.entry(bench.cache.cache.find(Lpn(0)).unwrap()).valid, bench.cache.whole);
}

#[test]
fn the_write_back_of_a_deallocated_unit_ends_without_a_program() {
    let mut bench = Bench::new(&Setup { superblocks: 3, logical_units: 12, ..Setup::default() }, 0.5);
    // Two of the three superblocks are full, and the host may not take the last free superblock.
    fill(&mut bench.core, StreamId::GC, 4..12);
    let ids = [0, 1, 2].map(|lpn| bench.write(lpn));
    bench.run();
    assert_eq!((bench.completed_us(ids[2]), bench.path.writes.count), (None, 1));
    assert!(bench.cache.trim(&mut bench.core, &mut bench.path.host, Lpn(0)), "the unit was dirty");
    clear(&mut bench.core, SuperblockId(0));
    let Bench { core, path, cache } = &mut bench;
    path.writes.resume(core, &mut path.host, &mut path.map, Some(cache), LANE);
    bench.run();
    assert_eq!((bench.core.operations().programmed(), bench.path.writes.count), (0, 0));
    assert!(bench.completed_us(ids[2]).is_some(), "the deallocated unit has left room in the budget");
    bench.cache.audit_at_rest().unwrap();
    // No flush waits for the deallocated unit.
    bench.flush();
    bench.run();
    assert!(bench.path.host.epochs.done(false).is_none() && bench.path.host.flushes == 0);
    assert_eq!(bench.core.unit_of(Lpn(0)), None);
}

#[test]
fn power_loss_empties_the_cache_and_keeps_the_counters() {
    let mut bench = Bench::new(&Setup::default(), 0.5);
    bench.write(0);
    bench.write(1);
    bench.run();
    let Bench { core, cache, .. } = &mut bench;
    cache.power_lost(&mut Offline::new(core));
    assert!([0, 1].into_iter().all(|lpn| cache.cache.find(Lpn(lpn)).is_none()));
    assert_eq!(cache.units(), [4, 2, 0]);
    assert_eq!((cache.cache.unflushed(), cache.stats.write_misses, cache.stats.dirty_pages_max), (0, 2, 2));
    cache.audit_at_rest().unwrap();
}

#[test]
fn the_load_is_that_of_the_units_being_written_back_or_of_all_dirty_units() {
    let at = |us: u64| Time::START + us * US;
    for occupancy in [Occupancy::Writing, Occupancy::Occupied] {
        let mut bench = Bench::new(&Setup::default(), 1.0);
        bench.cache.watch_load(160 * US, occupancy);
        [5, 6, 7, 7].into_iter().for_each(|lpn| _ = bench.write(lpn));
        bench.run();
        // Three of four units are dirty from the beginning, and two from 160 us on.
        let mut loads = vec![bench.cache.load(at(160))];
        bench.core.advance_to(at(160));
        assert!(bench.cache.trim(&mut bench.core, &mut bench.path.host, Lpn(5)));
        loads.extend([240, 320].map(|us| bench.cache.load(at(us))));
        // The flush writes two units back, one after the other, until 530 and 740 us. They are dirty until then.
        bench.core.advance_to(at(320));
        let flush = bench.flush();
        bench.run();
        assert_eq!(bench.completed_us(flush), Some(740));
        loads.extend([740, 900].map(|us| bench.cache.load(at(us))));
        let expected = match occupancy {
            Occupancy::Writing => [0.0, 0.0, 0.0, 0.25, 0.0],
            Occupancy::Occupied => [0.75, (3.0 + 2.0) / 2.0 / 4.0, 0.5, 0.25, 0.0],
        };
        assert_eq!(loads, expected, "{occupancy:?}");
    }
}
