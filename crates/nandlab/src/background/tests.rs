//! Background jobs on a bare core. Unless a test sets something else, a superblock has four units, and GC needs one
//! free superblock and one open superblock.

use super::spec::GcForeground;
use super::*;
use crate::base::geometry::RequestId;
use crate::base::policy::Choice;
use crate::base::units::MS;
use crate::core::testing::{Event, LANE, MapInRam, Setup, clear, decode, fill, next, unmap};
use crate::core::{Read, Wake};
use crate::demand_map::{
    ENTRY_BYTES, Eviction, MapSpec, MapWriteBack, Mapping, Miss, TranslationLevel, Tvpn,
};
use crate::ftl::WearLevelling;
use crate::host::spec::HostSpec;
use crate::host::{Host, Writes};
use crate::probe::NoProbe;
use crate::sched::FlashOp;
use crate::sched::{Cause, Class, Owner};
use std::collections::VecDeque;

/// Stands in for copybacks (it never makes one) and for refresh (each test sets the results in advance).
#[derive(Debug, Default)]
struct Others {
    due: Option<NextJob>,
    /// The results of refreshing units in place, in order of the units.
    refreshed: VecDeque<Refreshed>,
    stayed: Vec<SuperblockId>,
}

impl JobSchemes<NoProbe> for Others {
    fn next_job(&mut self, _: &mut Core<NoProbe>, _: LaneId) -> Option<NextJob> {
        self.due.take()
    }

    fn refresh_unit(&mut self, _: &mut Core<NoProbe>, _: LaneId, read: &Transaction) -> Refreshed {
        assert_eq!(read.start, Start::Last);
        self.refreshed.pop_front().expect("the test has set a result for each unit")
    }

    fn end_staying(&mut self, _: &mut Core<NoProbe>, _: LaneId, superblock: SuperblockId) {
        self.stayed.push(superblock);
    }

    fn copyback_stream(
        &mut self,
        _: &mut Core<NoProbe>,
        _: &mut Host,
        _: LaneId,
        _: SuperblockId,
        _: &NextJob,
    ) -> Option<StreamId> {
        None
    }

    fn may_copy_back(&mut self, _: &mut Core<NoProbe>, _: LaneId, _: StreamId, _: UnitId) -> bool {
        unreachable!("copyback_stream returns no stream")
    }

    fn on_left_over(&mut self) {}

    fn awaited_fold(&mut self, _: &mut Core<NoProbe>, _: LaneId) -> Option<NextJob> {
        None
    }

    fn fold_for_room(&mut self, _: &mut Core<NoProbe>, _: LaneId) -> Option<NextJob> {
        None
    }

    fn copy_back(&mut self, _: &mut Core<NoProbe>, _: CopyBack<'_>) -> Queued {
        unreachable!("copyback_stream returns no stream")
    }

    fn on_moved(&mut self, _: &mut Core<NoProbe>, _: Lpn, _: UnitId) {}
}

struct Bench {
    core: Core<NoProbe>,
    path: DataPath<MapInRam>,
    others: Others,
    jobs: Background,
    /// The operations that the die has completed, in order.
    log: Vec<(FlashOp, Cause)>,
}

impl Bench {
    fn new(setup: &Setup, foreground: GcForeground) -> Self {
        let gc = GcSpec {
            victim: Choice { name: "greedy", values: vec![] },
            pacing: GcPacing::None,
            foreground,
            background_free: 0.5,
            foreground_free: 0.0,
            idle_valid_max: 0.75,
            idle_after_ns: MS,
        };
        let core = Setup { blocks_dies: foreground == GcForeground::Blocking, ..*setup }.core();
        let path = DataPath {
            host: Host::new(&HostSpec::default(), 0, MS, &core),
            map: MapInRam::default(),
            writes: Writes::new(&core),
        };
        let is_static = setup.levelling == WearLevelling::Static;
        let wear = is_static.then(|| Box::new(Laggard { gap: 2 }) as Box<dyn VictimPolicy>);
        let jobs = Background::new(&gc, wear, 4, false, 0, &core);
        Self { core, path, others: Others::default(), jobs, log: Vec::new() }
    }

    fn check_space(&mut self) {
        self.jobs.check_space(&mut self.core, &mut self.path, &mut self.others, LANE);
    }

    fn continue_background(&mut self) {
        self.jobs.continue_background(&mut self.core, &mut self.path, &mut self.others, LANE);
    }

    /// Serves events until none is left.
    fn run(&mut self) {
        let Self { core, path, others, jobs, log } = self;
        while let Some(event) = next(core) {
            match event {
                Event::Page(slot) => {
                    let read = decode(core, slot);
                    log.push((read.kind, read.cause));
                    if let Owner::Job(lane) = read.owner {
                        jobs.on_background_read(core, path, others, lane, &read);
                    }
                }
                Event::Ended(done) => {
                    log.push((done.kind, done.cause));
                    match (done.kind, done.owner) {
                        (FlashOp::Erase, Owner::Job(lane)) => {
                            jobs.end_job(core, lane);
                            // No other job follows.
                            core.release_dies(lane);
                        }
                        (FlashOp::Erase, Owner::DeadSuperblock(_)) => {
                            jobs.end_dead(core, core.geometry().superblock_of(done.unit), false);
                        }
                        (_, Owner::Job(lane)) => jobs.on_copied(core, path, others, lane, &done),
                        other => unreachable!("{other:?}"),
                    }
                }
                Event::Wake(Wake::Space(lane)) => jobs.check_space(core, path, others, lane),
                Event::Wake(Wake::Emptied(lane)) => jobs.on_emptied(core, path, lane),
                Event::Wake(Wake::Dead(superblock)) => jobs.erase_dead(core, path, superblock),
                Event::Wake(Wake::UnitDone(lane)) => jobs.on_refreshed(core, path, others, lane),
                Event::Wake(Wake::JobOver(_)) => {}
                other => unreachable!("{other:?}"),
            }
            core.audit().unwrap();
        }
    }

    /// The superblock of the unit of an LPN; `None` if the LPN is not mapped.
    fn superblock_of(&self, lpn: u32) -> Option<SuperblockId> {
        self.core.unit_of(Lpn(lpn)).map(|unit| self.core.geometry().superblock_of(unit))
    }

    fn pe_cycles(&self, superblock: u32) -> u32 {
        self.core.superblock(SuperblockId(superblock)).pe_cycles
    }
}

/// Four superblocks of four units: the first has one valid unit (LPN 3), the second three (LPNs 5 to 7), the third four
/// (LPNs 0, 1, 2, 4); the last superblock is free.
fn short_of_space(foreground: GcForeground, endurance: u32) -> Bench {
    let setup = Setup { superblocks: 4, endurance, ..Setup::default() };
    let mut bench = Bench::new(&setup, foreground);
    fill(&mut bench.core, StreamId::HOST, (0..8).chain([0, 1, 2, 4]));
    bench
}

#[test]
fn a_gc_job_copies_the_valid_units_of_its_victim_erases_it_and_ends() {
    let mut bench = short_of_space(GcForeground::Interleaved, 1000);
    let sequence = bench.core.sequence_of(UnitId(3));
    bench.check_space();
    assert_eq!(
        (bench.core.victim(LANE), bench.jobs.causes(&bench.core)),
        (Some(SuperblockId(0)), vec![Cause::Gc])
    );
    bench.run();
    assert_eq!(bench.log, [FlashOp::Read, FlashOp::Program, FlashOp::Erase].map(|kind| (kind, Cause::Gc)));
    assert_eq!((bench.superblock_of(3), bench.pe_cycles(0)), (Some(SuperblockId(3)), 1));
    assert_eq!(bench.core.flash().stamp(bench.core.unit_of(Lpn(3)).unwrap()).sequence, sequence);
    assert_eq!((bench.path.map.moved, bench.path.map.jobs_ended), (vec![(3, true)], 1));
    assert_eq!((bench.jobs.stats.victims, bench.jobs.stats.victim_valid_pages), (1, 1));
    assert!(!bench.core.has_job(LANE) && bench.core.lane(LaneId(0)).free.len() == 1);
}

#[test]
fn a_unit_invalidated_during_its_read_is_not_copied() {
    let mut bench = short_of_space(GcForeground::Interleaved, 1000);
    bench.check_space();
    unmap(&mut bench.core, 3);
    bench.run();
    assert_eq!(bench.log, [FlashOp::Read, FlashOp::Erase].map(|kind| (kind, Cause::Gc)));
    assert_eq!((bench.pe_cycles(0), bench.core.lane(LaneId(0)).free.len()), (1, 2));
}

#[test]
fn a_job_does_not_begin_if_it_would_take_superblocks_that_must_be_kept_free() {
    // The job would take a free superblock and return none, because its victim retires at the erase.
    let mut bench = short_of_space(GcForeground::Interleaved, 1);
    bench.check_space();
    assert!(!bench.core.has_job(LANE));
    // No superblock is free for the moved units.
    let mut bench = short_of_space(GcForeground::Interleaved, 1000);
    fill(&mut bench.core, StreamId::GC, 8..12);
    bench.check_space();
    assert!(!bench.core.has_job(LANE));
    clear(&mut bench.core, SuperblockId(3));
    bench.check_space();
    assert!(bench.core.has_job(LANE), "superblock 3 is free now, so the job can begin");
}

#[test]
fn idle_gc_does_not_empty_a_victim_with_more_valid_units_than_idle_valid_max() {
    for (idle_valid_max, begins) in [(0.5, true), (0.49, false)] {
        let setup = Setup { logical_units: 24, ..Setup::default() };
        let mut bench = Bench::new(&setup, GcForeground::Interleaved);
        (bench.jobs.gc.background_free, bench.jobs.gc.idle_valid_max) = (0.95, idle_valid_max);
        // Four of the eight superblocks have three valid units, the fifth two, the sixth four: 18 of the 32 units are
        // valid. The reserve and the open superblock of GC take 8 units, so at most 32 - 18 - 8 = 6 units can be free
        // for the host. One superblock beyond the reserve is free, so 4 units are free now: fewer than 0.95 x 6, so
        // idle GC is needed.
        fill(&mut bench.core, StreamId::HOST, (0..20).chain([0, 4, 8, 12]));
        for lpn in [16, 17] {
            unmap(&mut bench.core, lpn);
        }
        assert!(!bench.core.is_short(LANE));
        bench.jobs.start_background(&mut bench.core, &mut bench.path, &mut bench.others);
        assert_eq!(bench.core.has_job(LANE), begins, "idle_valid_max = {idle_valid_max}");
        bench.run();
        assert_eq!(bench.jobs.stats.victim_valid_pages, if begins { 2 } else { 0 });
    }
}

#[test]
fn static_wear_levelling_moves_a_lagging_superblock_to_the_most_worn_free_superblock() {
    for (lag, is_moved) in [(2, false), (3, true)] {
        let setup = Setup { levelling: WearLevelling::Static, ..Setup::default() };
        let mut bench = Bench::new(&setup, GcForeground::Interleaved);
        fill(&mut bench.core, StreamId::HOST, 0..4);
        // The mean is 5 P/E cycles; superblock 6 is the most worn free superblock.
        let mut pe_cycles = [5, 5, 5, 5, 5, 5, 5 + lag, 5];
        let laggard = bench.superblock_of(0).unwrap();
        pe_cycles[laggard.index()] -= lag;
        let (array, ftl, _) = bench.core.inner_mut();
        for (superblock, cycles) in (0..).map(SuperblockId).zip(pe_cycles) {
            array.superblock_mut(superblock).pe_cycles = cycles;
        }
        ftl.on_worn(array);
        ftl.lanes[0].erases_unchecked = 1;
        bench.continue_background();
        assert_eq!(
            bench.core.has_job(LANE),
            is_moved,
            "the gap is 2 P/E cycles, the superblock lags by {lag}"
        );
        bench.run();
        let at = if is_moved { SuperblockId(6) } else { laggard };
        assert!((0..4).all(|lpn| bench.superblock_of(lpn) == Some(at)));
        assert_eq!(bench.core.operations().programmed_for(Cause::Wear), if is_moved { 4 } else { 0 });
    }
}

#[test]
fn a_blocking_gc_job_cleans_its_victim_without_interruption_by_host_reads() {
    let gc = [FlashOp::Read, FlashOp::Program, FlashOp::Erase].map(|kind| (kind, Cause::Gc));
    let host = (FlashOp::Read, Cause::Host);
    let blocking = [gc[0], gc[1], gc[2], host];
    let interleaved = [gc[0], host, gc[1], gc[2]];
    for (foreground, order) in [(GcForeground::Blocking, blocking), (GcForeground::Interleaved, interleaved)]
    {
        let mut bench = short_of_space(foreground, 1000);
        bench.check_space();
        // The read of the job is under way when the host read arrives.
        crate::core::testing::start(&mut bench.core);
        let (lpn, owner) = (Lpn(5), Owner::Request(RequestId(0)));
        let (unit, cause, class) = (bench.core.unit_of(lpn).unwrap(), Cause::Host, Class::HostRead);
        bench.core.read(Read { unit, lpn, owner, cause, class, start: Start::Policy, unit_level: 0 });
        bench.run();
        assert_eq!(bench.log, order, "{foreground:?}");
    }
}

#[test]
fn a_job_whose_superblock_stays_moves_only_units_that_cannot_be_refreshed_in_place() {
    let mut bench = Bench::new(&Setup::default(), GcForeground::Interleaved);
    fill(&mut bench.core, StreamId::HOST, 0..4);
    let superblock = bench.superblock_of(0).unwrap();
    bench.others.due = Some(NextJob {
        stays: true,
        start: Start::Last,
        ..NextJob::emptying(superblock, Cause::Refresh, false)
    });
    bench.others.refreshed = [Refreshed::Now, Refreshed::Later, Refreshed::Not, Refreshed::Now].into();
    bench.jobs.on_due(&mut bench.core, &mut bench.path, &mut bench.others, LANE);
    assert_eq!(
        bench.core.lane(LaneId(0)).promised_superblocks,
        1,
        "no erase returns the superblock that the job takes, so the superblock is promised"
    );
    bench.run();
    assert!(
        bench.core.has_job(LANE) && bench.others.stayed.is_empty(),
        "the refresh of the second unit has not ended yet"
    );
    bench.core.wake(Wake::UnitDone(LANE));
    bench.run();
    assert!(!bench.core.has_job(LANE) && bench.core.lane(LaneId(0)).promised_superblocks == 0);
    assert_eq!(bench.others.stayed, [superblock]);
    let stays = [0, 1, 2, 3].map(|lpn| bench.superblock_of(lpn) == Some(superblock));
    assert_eq!((stays, bench.path.map.moved), ([true, true, false, true], vec![(2, true)]));
    assert_eq!([FlashOp::Program, FlashOp::Erase].map(|kind| bench.core.operations().total(kind)), [1, 0]);
}

#[test]
fn a_dead_superblock_is_erased_without_a_job() {
    let mut bench = Bench::new(&Setup::default(), GcForeground::Interleaved);
    fill(&mut bench.core, StreamId::HOST, 0..4);
    let superblock = bench.superblock_of(0).unwrap();
    for lpn in 0..4 {
        bench.core.look_if_dead(superblock);
        assert!(!bench.core.has_wakes(), "the superblock is not dead while LPN {lpn} is mapped to it");
        unmap(&mut bench.core, lpn);
    }
    bench.core.look_if_dead(superblock);
    bench.run();
    assert_eq!(
        (bench.pe_cycles(superblock.0), bench.jobs.stats.dead_blocks, bench.jobs.stats.victims),
        (1, 1, 0)
    );
    assert_eq!(bench.core.space(LANE).dead, 0);
}

#[test]
fn the_erase_of_a_dead_superblock_is_promoted_while_only_the_reserve_is_free() {
    // Three superblocks are full. Of four superblocks one is then free, which is GC's reserve; of five superblocks two
    // are free.
    for (superblocks, urgent_erases) in [(4, 1), (5, 0)] {
        let mut bench = Bench::new(&Setup { superblocks, ..Setup::default() }, GcForeground::Interleaved);
        fill(&mut bench.core, StreamId::HOST, (0..8).chain([0, 1, 2, 4]));
        unmap(&mut bench.core, 3);
        bench.core.look_if_dead(SuperblockId(0));
        let Some(Event::Wake(Wake::Dead(dead))) = next(&mut bench.core) else {
            panic!("superblock 0 is dead")
        };
        bench.jobs.erase_dead(&mut bench.core, &mut bench.path, dead);
        assert_eq!(bench.core.space(LANE).urgent_erases, urgent_erases, "{superblocks} superblocks");
        bench.run();
        assert_eq!((bench.pe_cycles(0), bench.core.space(LANE).urgent_erases), (1, 0));
    }
}

#[test]
fn gc_takes_the_forced_victim_while_a_translation_page_waits_and_only_kept_superblocks_are_free() {
    let setup = Setup {
        superblocks: 5,
        units: 8,
        unit_bytes: 16,
        logical_units: 32,
        has_demand_map: true,
        ..Setup::default()
    };
    let mut core = setup.core();
    let map = MapSpec::Demand {
        cache_bytes: ENTRY_BYTES,
        eviction: Eviction::Lru,
        translation_level: TranslationLevel::Remembered,
        miss: Miss::Shared,
        write_back: MapWriteBack::Async,
    };
    let mut path = DataPath {
        host: Host::new(&HostSpec::default(), 0, MS, &core),
        map: Mapping::new(&map, &core),
        writes: Writes::new(&core),
    };
    // The reserve is a superblock for GC, which is kept, and a superblock for translation pages.
    assert_eq!((core.ftl().kept_superblocks(), core.ftl().reserve_superblocks), (1, 2));
    fill(&mut core, StreamId::GC, 0..32);
    assert!(!Background::forces_victim(&mut core, &path, LANE), "no translation page waits");
    // The write-back needs a superblock beyond the kept one.
    path.map.as_mut().expect("a demand map").write_back(&mut core, Tvpn(0));
    assert!(Map::<NoProbe>::waits_in(&path.map, LANE));
    let forces_with_free = |core: &mut Core<NoProbe>, free: u32| {
        assert_eq!(core.lane(LaneId(0)).free.len(), free);
        Background::forces_victim(core, &path, LANE)
    };
    clear(&mut core, SuperblockId(0));
    assert!(!forces_with_free(&mut core, 2));
    fill(&mut core, StreamId::GC, 0..8);
    assert!(forces_with_free(&mut core, 1));
    clear(&mut core, SuperblockId(1));
    assert!(forces_with_free(&mut core, 2), "both free superblocks belong to the reserve");
    clear(&mut core, SuperblockId(2));
    assert!(!forces_with_free(&mut core, 3));
}
