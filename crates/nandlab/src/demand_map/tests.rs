//! The demand map on a bare core: translation pages of four entries.

use super::*;
use crate::base::geometry::{RequestId, SuperblockId};
use crate::base::units::MS;
use crate::core::testing::{Event, LANE, Setup, clear, decode, fill, next, unmap};
use crate::ftl::StreamId;
use crate::host::spec::HostSpec;
use crate::host::{Host, Writes};
use crate::probe::NoProbe;
use crate::sched::FlashOp;
use crate::write_cache::Caching;

const ENTRIES: u32 = 4;

fn setup() -> Setup {
    Setup {
        superblocks: 16,
        units: 8,
        unit_bytes: 16,
        logical_units: 80,
        has_demand_map: true,
        ..Setup::default()
    }
}

/// The demand map of a core, with a cache of `entries` entries.
fn mapping(core: &Core<NoProbe>, entries: u64) -> Mapping {
    mapping_with(core, entries, Miss::Shared)
}

/// As [`mapping`], with the value `miss` of `ftl.map.demand.miss`.
fn mapping_with(core: &Core<NoProbe>, entries: u64, miss: Miss) -> Mapping {
    let spec = MapSpec::Demand {
        cache_bytes: entries * ENTRY_BYTES,
        eviction: Eviction::Lru,
        translation_level: TranslationLevel::Remembered,
        miss,
        write_back: MapWriteBack::Async,
    };
    Mapping::new(&spec, core).expect("a demand map")
}

/// Programs a translation page without simulating time.
fn put_in_flash(core: &mut Core<NoProbe>, mapping: &Mapping, page: u32) {
    let stream = core.streams().named("mapping");
    fill(core, stream, [mapping.demand.lpn_of(Tvpn(page)).0]);
}

fn has_entry(mapping: &mut Mapping, core: &mut Core<NoProbe>, lpn: u32) -> bool {
    mapping.has_entry(core, Lpn(lpn), Owner::Request(RequestId(lpn)), Wants::Read)
}

/// Serves events until none is left. Returns the LPNs whose units have waited for their map entries, in the order of
/// their wakes.
fn run(mapping: &mut Mapping, core: &mut Core<NoProbe>) -> Vec<u32> {
    let mut woken = Vec::new();
    while let Some(event) = next(core) {
        match event {
            Event::Page(slot) => {
                let read = decode(core, slot);
                match read.owner {
                    Owner::TranslationPage(page) => mapping.on_translation_read(core, page, &read),
                    Owner::Miss(miss) => mapping.on_miss_read(core, miss, &read),
                    _ => unreachable!("{read:?}"),
                }
            }
            Event::Ended(Transaction { owner: Owner::TranslationPage(page), .. }) => {
                mapping.end_write_back(core, page);
            }
            Event::Wake(Wake::MapEntry { waiter, is_lost: false }) => {
                assert_eq!(waiter.owner, Owner::Request(RequestId(waiter.lpn.0)));
                mapping.keep_entry(core, waiter.lpn);
                woken.push(waiter.lpn.0);
            }
            Event::Wake(Wake::Space(_)) => {}
            other => unreachable!("{other:?}"),
        }
    }
    woken
}

fn mapping_operations(core: &Core<NoProbe>) -> [u64; 2] {
    [FlashOp::Read, FlashOp::Program].map(|kind| core.operations().0[kind as usize][Cause::Mapping as usize])
}

#[test]
fn one_read_of_a_translation_page_serves_all_misses_of_its_entries() {
    let mut core = setup().core();
    let mut mapping = mapping(&core, 8);
    put_in_flash(&mut core, &mapping, 0);
    for lpn in [2, 0, 1] {
        assert!(!has_entry(&mut mapping, &mut core, lpn));
    }
    assert_eq!(core.live_operations(), 1);
    // A translation page that has never been written is not read.
    assert!(has_entry(&mut mapping, &mut core, ENTRIES));
    assert_eq!(run(&mut mapping, &mut core), [2, 0, 1], "units continue in the order of their misses");
    assert_eq!(mapping_operations(&core), [1, 0]);
    assert!(has_entry(&mut mapping, &mut core, 1), "LPN 1 is cached now");
    assert!(
        !has_entry(&mut mapping, &mut core, 3),
        "no request needed the entry of LPN 3, so it is not cached"
    );
    assert_eq!((mapping.stats.read_misses, mapping.stats.read_hits), (5, 1));
    run(&mut mapping, &mut core);
    assert!(mapping.is_idle());
}

#[test]
fn with_each_every_miss_and_the_write_back_read_the_translation_page() {
    let mut core = setup().core();
    let mut mapping = Some(mapping_with(&core, 4, Miss::Each));
    put_in_flash(&mut core, mapping.as_ref().unwrap(), 0);
    // The entry of LPN 3 is dirty, so the write-back of translation page 0 has changes to write.
    Map::keep_entry(&mut mapping, &mut core, Lpn(3));
    Map::on_written(&mut mapping, &mut core, Lpn(3));
    let mut mapping = mapping.unwrap();
    for lpn in [2, 0, 2] {
        assert!(!has_entry(&mut mapping, &mut core, lpn));
    }
    assert_eq!(core.live_operations(), 3, "each miss has a read");
    mapping.write_back(&mut core, Tvpn(0));
    assert_eq!(core.live_operations(), 4, "the write-back has a read");
    // A translation page that has never been written is not read.
    assert!(has_entry(&mut mapping, &mut core, ENTRIES));
    assert_eq!(run(&mut mapping, &mut core), [2, 0, 2], "units continue in the order of their misses");
    assert_eq!(mapping_operations(&core), [4, 1]);
    assert!(mapping.is_idle() && core.waiters.live() == 0);
    assert!(!mapping.demand.has_changes(Tvpn(0)));
}

#[test]
fn the_eviction_of_a_dirty_entry_writes_back_its_translation_page() {
    let mut core = setup().core();
    let mut mapping = Some(mapping(&core, 1));
    put_in_flash(&mut core, mapping.as_ref().unwrap(), 0);
    let lpn_of_page = mapping.as_ref().unwrap().demand.lpn_of(Tvpn(0));
    let before = core.unit_of(lpn_of_page);
    Map::keep_entry(&mut mapping, &mut core, Lpn(0));
    Map::on_written(&mut mapping, &mut core, Lpn(0));
    assert!(mapping.as_ref().unwrap().demand.has_changes(Tvpn(0)));
    // The cache has room for one entry, so an entry of translation page 1 evicts that of LPN 0. The other three entries
    // of translation page 0 have to be read before its write-back.
    Map::keep_entry(&mut mapping, &mut core, Lpn(ENTRIES));
    let mut mapping = mapping.unwrap();
    run(&mut mapping, &mut core);
    assert_eq!(mapping_operations(&core), [1, 1]);
    assert!(!mapping.demand.has_changes(Tvpn(0)) && mapping.is_idle());
    assert_ne!(core.unit_of(lpn_of_page), before);
    assert_eq!((mapping.stats.dirty_evictions, mapping.stats.write_backs), (1, 1));
    // The eviction of a clean entry causes no write-back.
    mapping.keep_entry(&mut core, Lpn(2 * ENTRIES));
    run(&mut mapping, &mut core);
    assert_eq!((mapping_operations(&core), mapping.stats.evictions), ([1, 1], 2));
}

#[test]
fn without_room_a_write_back_waits_and_continues_when_there_is_room() {
    let mut core = Setup { superblocks: 4, ..setup() }.core();
    let mut mapping = Some(mapping(&core, 1));
    // GC has filled three of the four superblocks. The last free superblock is reserved for the background job of the
    // lane.
    fill(&mut core, StreamId::GC, 0..24);
    mapping.as_mut().unwrap().write_back(&mut core, Tvpn(0));
    assert!(Map::<NoProbe>::is_waiting(&mapping) && Map::<NoProbe>::waits_in(&mapping, LANE));
    assert!(
        matches!(next(&mut core), Some(Event::Wake(Wake::Space(LANE)))),
        "the waiting write-back queues a wake for GC"
    );
    let mut inner = mapping.take().unwrap();
    inner.resume_write_backs(&mut core, LANE);
    assert!(
        core.live_operations() == 0 && inner.waiting_for_room_count == 1,
        "the write-back still waits, because no room has been gained"
    );
    clear(&mut core, SuperblockId(0));
    inner.resume_write_backs(&mut core, LANE);
    run(&mut inner, &mut core);
    assert_eq!((mapping_operations(&core), inner.waiting_for_room_count), ([0, 1], 0));
    assert!(inner.is_idle());
}

#[test]
fn misses_wait_while_64_translation_pages_are_written_back() {
    let mut core = Setup { logical_units: 66 * ENTRIES, ..setup() }.core();
    let mut mapping = mapping(&core, 8);
    for page in (0..63).map(Tvpn) {
        mapping.write_back(&mut core, page);
    }
    assert!(
        has_entry(&mut mapping, &mut core, 64 * ENTRIES),
        "a miss does not wait while 63 translation pages are written back"
    );
    mapping.write_back(&mut core, Tvpn(63));
    assert!(!has_entry(&mut mapping, &mut core, 65 * ENTRIES));
    assert_eq!(mapping.stats.waiting_misses, 1);
    assert!(has_entry(&mut mapping, &mut core, 64 * ENTRIES), "a hit does not wait");
    core.forget_wakes();
    let Some(Event::Ended(Transaction { owner: Owner::TranslationPage(first), .. })) = next(&mut core) else {
        panic!("the next event must be the end of a translation page's program");
    };
    mapping.end_write_back(&mut core, first);
    let wake = core.next_wake();
    assert!(
        matches!(wake, Some(Wake::MapEntry { waiter, is_lost: false }) if waiter.lpn == Lpn(65 * ENTRIES)),
        "{wake:?}"
    );
}

#[test]
fn map_changes_of_a_job_are_written_back_once_when_the_job_ends() {
    let mut core = setup().core();
    let mut mapping = Some(mapping(&core, 1));
    Map::keep_entry(&mut mapping, &mut core, Lpn(ENTRIES));
    // Two entries of translation page 0, one of page 2, and one of page 1, which is the only cached entry.
    for lpn in [0, 3, 2 * ENTRIES, ENTRIES] {
        Map::on_moved(&mut mapping, &mut core, LANE, Lpn(lpn), true);
    }
    assert_eq!(core.live_operations(), 0, "no write-back before the end of the job");
    Map::end_job(&mut mapping, &mut core, LANE);
    let mut mapping = mapping.unwrap();
    run(&mut mapping, &mut core);
    assert_eq!(mapping_operations(&core), [0, 2]);
    assert!([0, 2].into_iter().all(|page| !mapping.demand.has_changes(Tvpn(page))));
    assert!(
        mapping.demand.has_changes(Tvpn(1)),
        "the change of translation page 1 remains in the cached entry until its eviction"
    );
    mapping.audit_at_rest().unwrap();
}

#[test]
fn a_change_made_while_its_translation_page_is_programmed_is_written_back_again() {
    let mut core = setup().core();
    let mut mapping = mapping(&core, 1);
    mapping.write_back(&mut core, Tvpn(0));
    for _ in 0..3 {
        // The entry of LPN 1 is not cached, so its translation page becomes stale.
        let page = mapping.demand.on_changed(Lpn(1)).unwrap();
        mapping.write_back(&mut core, page);
    }
    assert_eq!(core.live_operations(), 1);
    run(&mut mapping, &mut core);
    // The second write-back reads the page that the first one has programmed.
    assert_eq!((mapping_operations(&core), mapping.stats.write_backs), ([1, 2], 2));
    assert!(!mapping.demand.has_changes(Tvpn(0)));
}

#[test]
fn a_written_unit_has_read_level_1() {
    let mut core = setup().core();
    let mut mapping = Some(mapping(&core, 1));
    Map::keep_entry(&mut mapping, &mut core, Lpn(0));
    Map::set_level(&mut mapping, &mut core, Lpn(0), 3);
    assert_eq!(Map::level(&mapping, &core, Lpn(0)), 3);
    Map::on_written(&mut mapping, &mut core, Lpn(0));
    assert_eq!(Map::level(&mapping, &core, Lpn(0)), 1);
}

#[test]
fn a_write_back_leaves_a_job_the_room_for_its_translation_pages() {
    let mut core = Setup { superblocks: 4, ..setup() }.core();
    let mapping = mapping(&core, 1);
    // Superblock 0 has eight translation pages. Superblock 1 has new versions of five of them and three erased units.
    // GC's units fill the other two superblocks.
    for page in (0..8).chain(0..5) {
        put_in_flash(&mut core, &mapping, page);
    }
    fill(&mut core, StreamId::GC, 0..16);
    assert_eq!((core.lane(LaneId(0)).free.len(), core.valid_units(SuperblockId(0))), (0, 3));
    assert!(core.has_mapping_room(LANE), "no job needs the three units");
    core.set_victim(LANE, Some(SuperblockId(0)));
    assert!(!core.has_mapping_room(LANE), "the job needs all three units");
    unmap(&mut core, mapping.demand.lpn_of(Tvpn(5)).0);
    assert!(core.has_mapping_room(LANE), "the job needs two of the three units");
}

#[test]
fn a_write_that_has_waited_for_room_brings_its_evicted_entry_back() {
    let mut core = Setup { superblocks: 4, ..setup() }.core();
    let mut mapping = Some(mapping(&core, 1));
    let mut writes = Writes::new(&core);
    let mut host = Host::new(&HostSpec::default(), 0, MS, &setup().core());
    let (lpn, owner) = (Lpn(6 * ENTRIES), Owner::Request(RequestId(0)));
    fill(&mut core, StreamId::GC, 0..24);
    assert!(Map::has_entry(&mut mapping, &mut core, lpn, owner, Wants::Write));
    writes.program_unit(&mut core, &mut host, &mut mapping, None::<&mut Caching>, owner, lpn);
    assert_eq!(writes.count, 1);
    Map::keep_entry(&mut mapping, &mut core, Lpn(7 * ENTRIES));
    assert!(!mapping.as_ref().unwrap().demand.cache.contains(lpn));
    // Of the three free superblocks two are the reserve.
    clear(&mut core, SuperblockId(0));
    clear(&mut core, SuperblockId(1));
    writes.resume(&mut core, &mut host, &mut mapping, None::<&mut Caching>, LANE);
    assert_eq!(writes.count, 0);
    let mapping = mapping.unwrap();
    assert!(mapping.demand.cache.contains(lpn) && mapping.demand.has_changes(Tvpn(6)));
    mapping.audit_at_rest().expect("the change is that of a cached entry");
}
