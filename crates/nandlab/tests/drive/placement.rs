//! Placement handles (NVMe FDP): data is kept apart when it is written, by GC, and by reclaim group.

use crate::common::{IDLE, MS, at, request, spec, wait_for_fewer};
use nandlab::base::geometry::{LaneId, Lpn, SuperblockId};
use nandlab::base::rng::Stream;
use nandlab::drive::Drive;
use nandlab::drive::spec::Spec;
use nandlab::drive::stats::{EventKind, PlacementStats};
use nandlab::ftl::StreamId;
use nandlab::ftl::placement::{Place, Placements};
use nandlab::host::{Op, Oracle, Tag};
use nandlab::probe::Probe;
use nandlab::sched::{Cause, FlashOp};
use std::collections::BTreeMap;

const PAGE: u64 = 4096;

/// One plane of 24 blocks of four pages: 64 logical pages.
const PLANE: &str = "[drive]\nchannels = 1\nchips_per_channel = 1\ndies_per_chip = 1\nplanes_per_die = 1\n\
    blocks_per_plane = 24\npages_per_block = 4\npage_size = '4KiB'\nop = 0.5\nendurance = 1000000\n\
    [gc]\nidle_after = '1h'\n";

/// Four dies of two planes of 20 blocks of eight pages.
const DIES: &str = "[drive]\nchannels = 2\nchips_per_channel = 2\ndies_per_chip = 1\nplanes_per_die = 2\n\
    blocks_per_plane = 20\npages_per_block = 8\npage_size = '4KiB'\nop = 0.8\nendurance = 1000000\n\
    [ftl]\nallocation = 'dynamic'\n[gc]\nidle_after = '1h'\n";

fn write<P: Probe>(drive: &mut Drive<P>, lpn: u64, pages: u64, placement: u16) {
    let tag = Tag { queue: 0, placement };
    let request = request(drive, Op::Write, lpn * PAGE, pages * PAGE).with_tag(tag);
    drive.submit(&request).unwrap();
}

fn finish<P: Probe>(drive: &mut Drive<P>) {
    drive.submit(&request(drive, Op::Flush, 0, 0)).unwrap();
    drive.run_until_idle(IDLE).unwrap();
}

fn stats<P: Probe>(drive: &Drive<P>) -> PlacementStats {
    drive.stats().placement.expect("the drive has placement handles")
}

/// The naive twin: the place of the newest write of each LPN.
#[derive(Default)]
struct Twin(BTreeMap<u64, u16>);

impl Twin {
    fn write<P: Probe>(&mut self, drive: &mut Drive<P>, lpn: u64, pages: u64, placement: u16) {
        write(drive, lpn, pages, placement);
        self.0.extend((lpn..lpn + pages).map(|lpn| (lpn, placement)));
    }

    /// The data of each LPN has the handle of its newest write, and is in the reclaim group of this write; and a superblock
    /// has data of one handle alone, or of initially isolated handles which GC mixes.
    fn check<P: Probe>(&self, drive: &Drive<P>) {
        drive.audit().unwrap();
        let (geometry, placements) = (drive.geometry(), drive.ftl().placements);
        let mut owners: BTreeMap<SuperblockId, BTreeMap<u16, u32>> = BTreeMap::new();
        for (&lpn, &placement) in &self.0 {
            let unit = drive.ftl().map.get(Lpn(lpn as u32)).expect("the LPN has been written");
            let superblock = geometry.superblock_of(unit);
            let Place { group, handle } = placements.find(placement).unwrap_or_default();
            let found = Place {
                group: placements.group_of(geometry.lane_of(superblock)),
                handle: drive.array().handle(unit).into(),
            };
            assert_eq!(found, Place { group, handle }, "LPN {lpn}, written with {placement}");
            *owners.entry(superblock).or_default().entry(handle).or_default() += 1;
        }
        let is_persistent = |handle: &u16| placements.is_persistent(*handle);
        for (superblock, handles) in owners {
            let is_mixed = handles.len() > 1;
            assert!(
                !(is_mixed && handles.keys().any(is_persistent)),
                "{superblock:?} has data of {handles:?}"
            );
        }
    }
}

/// The LPNs 0 to 15 are written in order, block by block, again and again with handle 0; the other 48 at random with
/// handle 1. Every block of handle 0 is invalidated as a whole, so GC never moves its data. Without handles the two share
/// blocks, and GC moves the data of both.
#[test]
fn a_handle_that_is_written_in_order_has_a_waf_of_1() {
    let run = |settings: &[&str], random: u16| {
        let mut drive = Drive::with_probe(&spec(PLANE, settings), Oracle::default());
        let mut stream = Stream::new(5, "placement");
        for lpn in 16..64 {
            write(&mut drive, lpn, 1, random);
            wait_for_fewer(&mut drive, 1);
        }
        for round in 0..400 {
            write(&mut drive, round % 4 * 4, 4, 0);
            wait_for_fewer(&mut drive, 1);
            for _ in 0..3 {
                write(&mut drive, 16 + stream.below(48), 1, random);
                wait_for_fewer(&mut drive, 1);
            }
        }
        finish(&mut drive);
        drive.audit().unwrap();
        drive.probe().verdict().unwrap();
        drive
    };
    let without = run(&[], 0);
    let copies_of =
        |drive: &Drive<Oracle>| drive.stats().flash[FlashOp::Program as usize][Cause::Gc as usize];
    let copies_without = copies_of(&without);
    for isolation in ["'initial'", "'persistent'", "['initial', 'persistent']"] {
        let isolation = format!("placement.isolation={isolation}");
        let with = run(&["placement.handles=2", &isolation], 1);
        let stats = stats(&with);
        let [sequential, random] = [0, 1].map(|handle| stats.by_place[handle]);
        assert_eq!((sequential.host_units, sequential.copied_units), (1600, 0), "{isolation}");
        assert_eq!(random.host_units, 48 + 1200, "{isolation}");
        let copies = copies_of(&with);
        assert_eq!(random.copied_units, copies, "{isolation}: all copies are of handle 1");
        assert!(
            copies > 0 && copies < copies_without,
            "{isolation}: {copies} copies, {copies_without} without handles"
        );
        assert_eq!(stats.media_units(), 1600 + 48 + 1200 + copies, "{isolation}");
        // Of 400 blocks that handle 0 has filled, the newest four are not erased; one more may be pending.
        assert!((395..=396).contains(&sequential.erases), "{isolation}: {}", sequential.erases);
        assert_eq!(sequential.reclaim_units, 400, "{isolation}");
        let moved: u64 = stats.recent.iter().map(|event| event.units).sum();
        assert!(stats.count(EventKind::MediaReallocated) > 0 && moved > 0, "{isolation}");
        // GC mixes nothing if handle 1 alone has copies; the superblocks of GC are those of several handles only if it may.
        let may_mix = isolation.ends_with("='initial'");
        assert_eq!(stats.mixed[0].erases > 0, may_mix, "{isolation}: {stats:?}");
    }
}

/// Random writes with all identifiers of a drive, of which some are unknown, and GC under them.
fn random_writes(settings: &[&str], seed: u64, count: u32) -> (Drive<Oracle>, Twin) {
    let mut drive = Drive::with_probe(&spec(DIES, settings), Oracle::default());
    let mut stream = Stream::new(seed, "placement");
    let placements = drive.ftl().placements;
    let pages = drive.geometry().logical_bytes() / PAGE;
    let mut twin = Twin::default();
    for _ in 0..count {
        let lpn = stream.below(pages);
        // Each group has its part of the LPNs, so none overflows.
        let group = (lpn * u64::from(placements.groups) / pages) as u16;
        let handle = stream.below(placements.handles.into()) as u16;
        let identifier = placements.identifier(Place { group, handle });
        twin.write(&mut drive, lpn, 1, identifier);
        wait_for_fewer(&mut drive, 1 + stream.below(8) as u32);
    }
    finish(&mut drive);
    drive.probe().verdict().unwrap();
    (drive, twin)
}

#[test]
fn data_stays_with_its_handle_and_in_its_group_under_gc() {
    for settings in [
        &["placement.handles=3"][..],
        &["placement.handles=3", "placement.isolation='persistent'"],
        &["placement.handles=3", "placement.isolation=['persistent', 'initial', 'initial']"],
        &["placement.groups=2"],
        &["placement.handles=2", "placement.groups=4", "placement.isolation=['initial', 'persistent']"],
        &["placement.handles=2", "placement.reclaim_unit=3"],
        &[
            "placement.handles=2",
            "ftl.superblock='drive'",
            "timing.multi_plane=true",
            "drive.blocks_per_plane=40",
            "placement.isolation='persistent'",
        ],
        &["placement.handles=2", "ftl.superblock='die'", "timing.multi_plane=true", "placement.groups=2"],
        &[
            "placement.handles=2",
            "drive.op=1.4",
            "drive.page_size='16KiB'",
            "ftl.mapping_unit='4KiB'",
            "ftl.buffer='1MiB'",
        ],
        &["placement.handles=2", "cache.size='256KiB'", "placement.isolation=['persistent', 'initial']"],
        &[
            "placement.handles=2",
            "ftl.wear_levelling='static'",
            "ftl.wear_gap=2",
            "placement.isolation=['initial', 'persistent']",
        ],
        &[
            "placement.handles=2",
            "migration.policy={ rcopyback = { limit = 2 } }",
            "drive.blocks_per_plane=20",
        ],
    ] {
        let (drive, twin) = random_writes(settings, 11, 6000);
        twin.check(&drive);
        let (stats, gc) = (stats(&drive), &drive.stats().gc);
        assert!(gc.victims > 40 && drive.failure().is_none(), "{settings:?}");
        let copied: u64 = stats.by_place.iter().map(|place| place.copied_units).sum();
        assert!(stats.host_units() > 0 && copied > 0, "{settings:?}: {stats:?}");
        assert_eq!(stats.by_place.len(), drive.ftl().placements.count());
    }
}

#[test]
fn an_unknown_identifier_goes_to_handle_0_and_counts_an_event() {
    let mut drive =
        Drive::with_probe(&spec(DIES, &["placement.handles=2", "placement.groups=2"]), Oracle::default());
    // Two groups: the uppermost bit has the group.
    for (lpn, placement) in [(0, 1), (1, 2), (2, 0x8001), (3, 0x8002), (4, 0x4000)] {
        write(&mut drive, lpn, 1, placement);
    }
    // A read with an unknown identifier is none of the host's placement.
    let read = request(&drive, Op::Read, 0, PAGE).with_tag(Tag { queue: 0, placement: 7 });
    drive.submit(&read).unwrap();
    finish(&mut drive);
    let stats = stats(&drive);
    assert_eq!(stats.by_place.iter().map(|place| place.host_units).collect::<Vec<_>>(), [3, 1, 0, 1]);
    assert_eq!(stats.events, [0, 0, 0, 3, 0, 0]);
    let seen: Vec<u16> = stats.recent.iter().map(|event| event.identifier).collect();
    assert_eq!(seen, [2, 0x8002, 0x4000]);
}

/// A group that is full fails with its lane, and the other group goes on until then.
#[test]
fn a_group_takes_no_more_than_it_has_room_for() {
    let mut drive = Drive::with_probe(&spec(DIES, &["placement.groups=2"]), Oracle::default());
    let pages = drive.geometry().logical_bytes() / PAGE;
    let mut lpn = 0;
    while drive.failure().is_none() && lpn < pages {
        write(&mut drive, lpn, 1, 0);
        while drive.outstanding() > 0 && drive.advance_unless_at_rest() {}
        lpn += 1;
    }
    let failure = drive.failure().expect("group 0 has room for half of the drive").to_string();
    assert!(failure.contains("lane 0") && failure.contains("reclaim group 0"), "{failure}");
    assert!(lpn > pages / 2 && lpn < pages, "{lpn} of {pages} pages");
}

/// By hand: a block of four pages, and reclaim units of two blocks. After three pages five are left; the update leaves them
/// unused, and the next page goes to a new unit.
#[test]
fn the_host_lets_a_handle_go_on_in_a_new_reclaim_unit() {
    let settings = ["placement.handles=2", "placement.reclaim_unit=2"];
    let mut drive = Drive::with_probe(&spec(PLANE, &settings), Oracle::default());
    let left = |drive: &Drive<Oracle>, handle| drive.available_media_writes(handle).unwrap() / PAGE;
    assert_eq!([0, 1].map(|handle| left(&drive, handle)), [8, 8]);
    assert_eq!(drive.available_media_writes(2), None);
    for lpn in 0..3 {
        write(&mut drive, lpn, 1, 1);
    }
    finish(&mut drive);
    assert_eq!([0, 1].map(|handle| left(&drive, handle)), [8, 5]);
    assert!(!drive.update_handle(2) && drive.update_handle(1));
    assert_eq!(left(&drive, 1), 8);
    let counted = stats(&drive);
    assert_eq!((counted.count(EventKind::UnitNotFull), counted.recent[0].units), (1, 5));
    // A whole unit and a page more; an update of a handle without an open unit changes nothing.
    for lpn in 3..12 {
        write(&mut drive, lpn, 1, 1);
    }
    assert!(drive.update_handle(0));
    finish(&mut drive);
    assert_eq!(left(&drive, 1), 7);
    let counted = stats(&drive);
    assert_eq!((counted.events.iter().sum::<u64>(), counted.by_place[1].reclaim_units), (1, 3));
    drive.audit().unwrap();
    drive.probe().verdict().unwrap();
}

/// The programs of four writes are under way when the host updates the handle: they end in the old unit.
#[test]
fn writes_in_flight_end_in_the_unit_that_the_host_has_left() {
    let mut drive = Drive::with_probe(&spec(PLANE, &["placement.handles=2"]), Oracle::default());
    for lpn in 0..2 {
        write(&mut drive, lpn, 1, 1);
    }
    assert!(drive.update_handle(1) && drive.outstanding() == 2);
    write(&mut drive, 2, 1, 1);
    finish(&mut drive);
    let superblock = |lpn| drive.geometry().superblock_of(drive.ftl().map.get(Lpn(lpn)).unwrap());
    assert!(superblock(0) == superblock(1) && superblock(1) != superblock(2));
    let old = drive.array().superblock(superblock(0));
    assert_eq!((old.state.name(), old.valid), ("full", 2));
    drive.audit().unwrap();
    drive.probe().verdict().unwrap();
}

/// A drive of handles is saved and loaded, and goes on with its open superblocks; one with other handles refuses it.
#[test]
fn a_saved_drive_keeps_the_handles_of_its_data() {
    let settings = [
        "placement.handles=3",
        "placement.isolation=['initial', 'persistent', 'initial']",
        "placement.reclaim_unit=2",
    ];
    let (drive, mut twin) = random_writes(&settings, 3, 3000);
    let mut bytes = Vec::new();
    drive.save(&mut bytes).unwrap();
    let mut loaded = Drive::with_probe(&spec(DIES, &settings), Oracle::default());
    loaded.load(bytes.as_slice()).unwrap();
    loaded.expect_preconditioned(|oracle| oracle);
    twin.check(&loaded);
    for handle in 0..3 {
        assert_eq!(loaded.available_media_writes(handle), drive.available_media_writes(handle));
    }
    let pages = loaded.geometry().logical_bytes() / PAGE;
    let mut stream = Stream::new(4, "after");
    for _ in 0..3000 {
        twin.write(&mut loaded, stream.below(pages), 1, stream.below(3) as u16);
        wait_for_fewer(&mut loaded, 4);
    }
    finish(&mut loaded);
    twin.check(&loaded);
    loaded.probe().verdict().unwrap();
    for (settings, says) in [
        (vec!["placement.handles=2"], "placement.handles"),
        (vec!["placement.handles=3"], "placement.isolation"),
        (vec![], "placement"),
    ] {
        let mut other: Drive = Drive::new(&spec(DIES, &settings));
        let error = other.load(bytes.as_slice()).unwrap_err().to_string();
        assert!(error.contains(says), "{error}");
    }
}

/// A saved drive without handles is loaded by one with handles: its data is that of handle 0.
#[test]
fn a_drive_with_handles_loads_one_without() {
    let (drive, saved) = random_writes(&[], 3, 3000);
    let mut bytes = Vec::new();
    drive.save(&mut bytes).unwrap();
    for isolation in ["'initial'", "'persistent'", "['persistent', 'initial']"] {
        let mut twin = Twin(saved.0.clone());
        let isolation = format!("placement.isolation={isolation}");
        let mut loaded =
            Drive::with_probe(&spec(DIES, &["placement.handles=2", &isolation]), Oracle::default());
        loaded.load(bytes.as_slice()).unwrap();
        loaded.expect_preconditioned(|oracle| oracle);
        twin.check(&loaded);
        let pages = loaded.geometry().logical_bytes() / PAGE;
        let mut stream = Stream::new(4, "after");
        for _ in 0..2000 {
            twin.write(&mut loaded, stream.below(pages), 1, stream.below(2) as u16);
            wait_for_fewer(&mut loaded, 4);
        }
        finish(&mut loaded);
        twin.check(&loaded);
    }
}

/// After a power loss each handle goes on in its superblock, and GC keeps the data of a persistently isolated one by itself.
#[test]
fn isolation_survives_power_losses() {
    for settings in [
        &["placement.handles=3", "placement.isolation=['persistent', 'initial', 'initial']"][..],
        &[
            "placement.handles=3",
            "cache.size='128KiB'",
            "cache.flush_to=flash",
            "capacitor.capacitance='60mF'",
        ],
        &[
            "placement.handles=2",
            "placement.groups=2",
            "placement.isolation='persistent'",
            "cache.size='128KiB'",
            "cache.flush_to=flash",
            "capacitor.capacitance='60mF'",
            "drive.blocks_per_plane=24",
        ],
    ] {
        let settings = [settings, &["drive.op=1.2"]].concat();
        let mut drive = Drive::with_probe(&spec(DIES, &settings), Oracle::default());
        let placements = drive.ftl().placements;
        let pages = drive.geometry().logical_bytes() / PAGE;
        let mut stream = Stream::new(9, "cuts");
        for cut in 0..12 {
            for _ in 0..500 {
                let lpn = stream.below(pages);
                let group = (lpn * u64::from(placements.groups) / pages) as u16;
                let handle = stream.below(placements.handles.into()) as u16;
                write(&mut drive, lpn, 1, placements.identifier(Place { group, handle }));
                wait_for_fewer(&mut drive, 6);
            }
            let open = |drive: &Drive<Oracle>, placements: Placements| -> Vec<_> {
                let of_lane = |lane| {
                    let streams = drive.ftl().streams.hosts().iter();
                    streams
                        .map(move |&stream| drive.ftl().latest_superblock(lane, stream))
                        .collect::<Vec<_>>()
                };
                placements.lanes_of(0).take(1).flat_map(of_lane).collect()
            };
            assert!(open(&drive, placements).len() == usize::from(placements.handles));
            drive.cut_power();
            drive.completions();
            drive.audit().unwrap_or_else(|error| panic!("{settings:?}, cut {cut}: {error}"));
        }
        finish(&mut drive);
        drive.audit().unwrap();
        drive.probe().verdict().unwrap();
    }
}

/// Each handle's dirty units go to superblocks of its own, so a flush of two handles takes a program more than one of the
/// same units of one handle. By hand: pages of four units; five dirty units are two programs, and three and two of each of
/// two handles also two; four and one of two handles are two, eight of one handle two, and seven and one of two three.
#[test]
fn an_emergency_flush_pads_the_last_program_of_each_handle() {
    for (dirty, programs) in [([5, 0], 2), ([3, 2], 2), ([4, 1], 2), ([8, 0], 2), ([7, 1], 3)] {
        let settings = [
            "placement.handles=2",
            "drive.page_size='16KiB'",
            "drive.op=1.4",
            "ftl.mapping_unit='4KiB'",
            "drive.blocks_per_plane=40",
            "cache.size='256KiB'",
            "cache.flush_to='cache'",
            "capacitor.capacitance='60mF'",
        ];
        let mut drive = Drive::with_probe(&spec(PLANE, &settings), Oracle::default());
        let mut lpn = 0;
        for (handle, units) in dirty.into_iter().enumerate() {
            for _ in 0..units {
                write(&mut drive, lpn, 1, handle as u16);
                lpn += 1;
            }
        }
        drive.advance(at(drive.now().ns() + MS));
        let before = drive.stats().flash[1].iter().sum::<u64>();
        let loss = drive.cut_power();
        assert_eq!(u64::from(loss.flushed_pages), lpn, "{dirty:?}");
        assert_eq!(drive.stats().flash[1].iter().sum::<u64>() - before, programs, "{dirty:?}");
        drive.completions();
        drive.audit().unwrap();
        for lpn in 0..lpn {
            let unit = drive.ftl().map.get(Lpn(lpn as u32)).unwrap();
            assert_eq!(
                u64::from(drive.array().handle(unit)),
                u64::from(lpn >= dirty[0]),
                "{dirty:?}: LPN {lpn}"
            );
        }
        drive.probe().verdict().unwrap();
    }
}

/// The spec of the first tests is small enough for every count by hand.
#[test]
fn a_drive_without_placement_counts_nothing() {
    let spec: Spec = spec(PLANE, &[]);
    assert!(!spec.placement.is_on());
    let mut drive: Drive = Drive::new(&spec);
    write(&mut drive, 0, 1, 0);
    drive.run_until_idle(IDLE).unwrap();
    assert!(drive.stats().placement.is_none() && !drive.update_handle(1));
    assert_eq!(drive.ftl().streams.spec(drive.ftl().streams.host(0).unwrap()).mark, 0);
    assert_eq!(drive.ftl().placements.group_of(LaneId(0)), 0);
}

/// Copybacks mix the data of all handles that they copy, so that of a persistently isolated one goes off-chip.
#[test]
fn data_of_a_persistent_handle_is_never_copied_back() {
    let settings = [
        "placement.handles=2",
        "placement.isolation=['initial', 'persistent']",
        "migration.policy.rcopyback-greedy={ limit = 2 }",
        "drive.blocks_per_plane=28",
        "drive.op=0.7",
    ];
    let copies = |placement: u16| {
        let mut drive = Drive::with_probe(&spec(PLANE, &settings), Oracle::default());
        let pages = drive.geometry().logical_bytes() / PAGE;
        let mut stream = Stream::new(2, "copybacks");
        for _ in 0..1500 {
            write(&mut drive, stream.below(pages), 1, placement);
            wait_for_fewer(&mut drive, 4);
        }
        finish(&mut drive);
        drive.audit().unwrap();
        drive.probe().verdict().unwrap();
        let by_handle = stats(&drive).by_place[usize::from(placement)];
        assert!(by_handle.copied_units > 100, "{by_handle:?}");
        (drive.stats().flash_total(FlashOp::Copyback), by_handle.copied_units)
    };
    assert_eq!(copies(1).0, 0);
    let (copybacks, copied) = copies(0);
    assert!(copybacks > 0 && copybacks <= copied, "{copybacks} copybacks, {copied} copies");
}

/// Seven days are 605 ms of simulated time. Two of four pages of the block of handle 1 are written when its data is due: the
/// block is closed, and its data refreshed.
#[test]
fn a_reclaim_unit_that_is_open_too_long_is_closed() {
    let settings = [
        "placement.handles=2",
        "refresh.policy=fcr",
        "refresh.interval=[{ pe = 1000000, every = '7d' }]",
        "reliability.clock_scale=1_000_000",
    ];
    let mut drive = Drive::with_probe(&spec(PLANE, &settings), Oracle::default());
    for lpn in 0..2 {
        write(&mut drive, lpn, 1, 1);
    }
    drive.advance(at(700 * MS));
    let stats = stats(&drive);
    assert_eq!(stats.count(EventKind::TimeLimit), 1, "{stats:?}");
    let event = stats.recent.iter().find(|event| event.kind == EventKind::TimeLimit).unwrap();
    assert_eq!((event.identifier, event.units), (1, 2));
    let moved = stats.recent.iter().find(|event| event.kind == EventKind::MediaReallocated).unwrap();
    assert_eq!((moved.identifier, moved.lpn, moved.units), (1, 0, 2));
    assert_eq!((stats.by_place[1].host_units, stats.by_place[1].copied_units), (2, 2));
    write(&mut drive, 2, 1, 1);
    drive.advance(at(710 * MS));
    drive.audit().unwrap();
    drive.probe().verdict().unwrap();
}

/// With one handle the superblocks of the host and of GC have the same mark. Both have one open when its data is due, and only
/// that of the host is an event.
#[test]
fn a_superblock_of_gc_that_is_closed_ends_no_unit_of_the_host() {
    let settings = [
        "placement.reclaim_unit=2",
        "refresh.policy=fcr",
        "refresh.interval=[{ pe = 1000000, every = '7d' }]",
        "reliability.clock_scale=1_000_000",
    ];
    let mut drive = Drive::with_probe(&spec(PLANE, &settings), Oracle::default());
    let pages = drive.geometry().logical_bytes() / PAGE;
    let mut stream = Stream::new(1, "pages");
    let lane = LaneId(0);
    let mut writes = 0;
    let is_amid = |drive: &Drive<Oracle>, stream| (1..4).contains(&drive.ftl().units_open(lane, stream));
    while !([StreamId::HOST, StreamId::GC].iter().all(|&stream| is_amid(&drive, stream))) {
        write(&mut drive, stream.below(pages), 1, 0);
        writes += 1;
        drive.advance(at(writes * MS));
        assert!(writes < 300, "GC has never a block open beside the host's");
    }
    let left = u64::from(drive.ftl().units_open(lane, StreamId::HOST));
    drive.advance(at(1000 * MS));
    let stats = stats(&drive);
    let events: Vec<_> = stats.recent.iter().filter(|event| event.kind == EventKind::TimeLimit).collect();
    assert_eq!(events.iter().map(|event| event.units).collect::<Vec<_>>(), [left], "{events:?}");
    drive.audit().unwrap();
    drive.probe().verdict().unwrap();
}

/// A handle goes on in the unit whose superblock is open when power fails. One without an open superblock begins another
/// unit, whether or not the host has made it leave the last one.
#[test]
fn after_a_power_loss_an_ended_unit_stays_ended() {
    let settings = ["placement.handles=2", "placement.reclaim_unit=3"];
    let mut drive = Drive::with_probe(&spec(PLANE, &settings), Oracle::default());
    let left = |drive: &Drive<Oracle>| drive.available_media_writes(1).unwrap() / PAGE;
    for lpn in 0..5 {
        write(&mut drive, lpn, 1, 1);
    }
    finish(&mut drive);
    assert_eq!(left(&drive), 7);
    assert!(drive.update_handle(1));
    drive.cut_power();
    finish(&mut drive);
    assert_eq!(left(&drive), 12);
    for lpn in 5..17 {
        write(&mut drive, lpn, 1, 1);
    }
    finish(&mut drive);
    let units = |lpns: std::ops::Range<u32>| {
        let unit_of = |lpn| {
            drive.array().reclaim_unit(drive.geometry().superblock_of(drive.ftl().map.get(Lpn(lpn)).unwrap()))
        };
        lpns.map(unit_of).collect::<std::collections::BTreeSet<_>>()
    };
    assert!(units(5..17).len() == 1 && units(0..17).len() == 2);
    drive.audit().unwrap();
    drive.probe().verdict().unwrap();
}

/// The audit finds data in a superblock of another handle, or of a persistently isolated one among mixed data.
#[test]
fn the_audit_finds_data_in_the_superblock_of_another_handle() {
    let settings = ["placement.handles=3", "placement.isolation=['initial', 'persistent', 'initial']"];
    let (mut drive, twin) = random_writes(&settings, 5, 3000);
    twin.check(&drive);
    let (mut apart, mut mixed) = (0, 0);
    for (&lpn, &placement) in &twin.0 {
        let unit = drive.ftl().map.get(Lpn(lpn as u32)).unwrap();
        let mark = drive.array().superblock(drive.geometry().superblock_of(unit)).mark;
        // Initially isolated data in a superblock of GC may be of either of the two.
        let is_mixed = mark == 0;
        let other = if is_mixed { 1 } else { (placement + 1) % 3 };
        drive.parts_mut().0.set_handle(unit, other as u8);
        let error = drive.audit().expect_err("the handle is another one");
        assert!(error.contains(&format!("has data of placement handle {other}")), "{error}");
        drive.parts_mut().0.set_handle(unit, placement as u8);
        (apart, mixed) = (apart + u32::from(!is_mixed), mixed + u32::from(is_mixed));
        if apart > 20 && mixed > 20 {
            break;
        }
    }
    assert!(apart > 20 && mixed > 0, "{apart} units apart, {mixed} mixed");
    drive.audit().unwrap();
}
