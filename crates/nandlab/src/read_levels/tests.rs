//! Reads on a bare core with three read levels: level L senses in L x 50 us, transfers in 10 us, decodes in L x 20 us.

use super::*;
use crate::base::geometry::{Lpn, SuperblockId, UnitId};
use crate::base::units::US;
use crate::core::Read;
use crate::core::testing::{Event, LANE, MapInRam, Setup, fill, next};
use crate::flash::StartLevel;
use crate::ftl::StreamId;
use crate::probe::NoProbe;
use crate::sched::{Class, Owner};

const SUPERBLOCK: SuperblockId = SuperblockId(0);

/// A core with LPNs 0 and 1 in the first superblock.
fn core() -> Core<NoProbe> {
    core_with(StartLevel::SuperblockLevel)
}

/// As [`core`], with a start policy.
fn core_with(start: StartLevel) -> Core<NoProbe> {
    let mut core = Setup { levels: 3, start, ..Setup::default() }.core();
    fill(&mut core, StreamId::HOST, [0, 1]);
    core
}

/// Queues a read of a unit that needs level `needed`.
fn read(core: &mut Core<NoProbe>, map: &MapInRam, lpn: u32, cause: Cause, needed: u32) -> Slot {
    core.flash_mut().superblock_mut(SUPERBLOCK).reads = needed;
    let (lpn, owner, class) = (Lpn(lpn), Owner::Job(LANE), Class::HostRead);
    let unit = core.unit_of(lpn).expect("the LPN is mapped");
    let unit_level = map.level(core, lpn);
    core.read(Read { unit, lpn, owner, cause, class, start: Start::Policy, unit_level })
}

/// Serves events until none is left. Returns the reads that have ended, each with the time of its end.
fn run(core: &mut Core<NoProbe>, reads: &mut Reads, map: &mut MapInRam) -> Vec<(Transaction, Time)> {
    let mut over = Vec::new();
    while let Some(event) = next(core) {
        let decoded = match event {
            Event::Page(slot) => reads.on_page_out(core, slot),
            Event::Clock(clock) => Some(reads.on_clock(core, clock)),
            other => unreachable!("{other:?}"),
        };
        if let Some(slot) = decoded
            && reads.on_decoded(core, map, slot)
        {
            let read = core.end_operation(slot);
            over.push((read, core.now()));
        }
    }
    over
}

#[test]
fn a_read_is_tried_one_level_higher_until_it_decodes_and_the_level_is_remembered() {
    let (mut core, mut reads, mut map) = (core(), Reads::new(3, None, false), MapInRam::default());
    read(&mut core, &map, 0, Cause::Host, 3);
    let over = run(&mut core, &mut reads, &mut map);
    let [(first, at)] = over[..] else { panic!("{over:?}") };
    assert_eq!((first.level, first.tries, first.is_uncorrectable()), (3, 2, false));
    // Three tries, at levels 1 to 3: sensing and decoding take 70 us x level, each transfer takes 10 us.
    assert_eq!(at - Time::START, (70 * (1 + 2 + 3) + 30) * US);
    assert_eq!(
        core.superblock(SUPERBLOCK).reads,
        3 + 3,
        "the superblock had 3 reads, and each of the 3 tries senses the page"
    );
    assert_eq!(core.operations().total(FlashOp::Read), 1);
    assert_eq!(map.levels, [(0, 3)].into());
    // The next read of the unit starts at level 3, and so does a read of another unit of the superblock.
    for lpn in [0, 1] {
        read(&mut core, &map, lpn, Cause::Host, 3);
        let (next, _) = run(&mut core, &mut reads, &mut map)[0];
        assert_eq!((next.level, next.tries), (3, 0), "LPN {lpn}");
    }
}

#[test]
fn a_unit_whose_needed_level_is_above_the_last_level_is_uncorrectable() {
    let (mut core, mut reads, mut map) = (core(), Reads::new(3, None, false), MapInRam::default());
    read(&mut core, &map, 0, Cause::Host, 4);
    let over = run(&mut core, &mut reads, &mut map);
    let [(read, _)] = over[..] else { panic!("{over:?}") };
    assert_eq!((read.level, read.tries, read.is_uncorrectable()), (3, 2, true));
    assert_eq!(core.operations().total(FlashOp::Read), 1);
}

/// The last level was remembered for the unit and its superblock although it had not decoded the unit, so the next read
/// of the unit, and with `block-level` and `last-good` every read of the superblock, started at the last level.
#[test]
fn after_an_uncorrectable_read_no_read_starts_at_the_last_level() {
    // The level at which a read of each of the two LPNs starts after an uncorrectable read of LPN 0, if before it LPN 0
    // decoded at level 2.
    for (policy, expected) in [
        (StartLevel::LastLevel, [1, 1]),
        (StartLevel::SuperblockLevel, [1, 2]),
        (StartLevel::LastGood, [2, 2]),
        (StartLevel::DriveLevel, [2, 2]),
    ] {
        let (mut core, mut reads, mut map) =
            (core_with(policy), Reads::new(3, None, false), MapInRam::default());
        for needed in [2, 4] {
            read(&mut core, &map, 0, Cause::Host, needed);
            let (read, _) = run(&mut core, &mut reads, &mut map)[0];
            assert_eq!((read.level, read.is_uncorrectable()), (needed.min(3) as u8, needed > 3));
        }
        let starts = [0, 1].map(|lpn| {
            let slot = read(&mut core, &map, lpn, Cause::Host, 4);
            core.operation(slot).level
        });
        assert_eq!(starts, expected, "{policy:?}");
    }
}

#[test]
fn the_level_of_a_background_read_is_remembered_only_for_the_superblock() {
    let (mut core, mut reads, mut map) = (core(), Reads::new(3, None, false), MapInRam::default());
    for (cause, of_unit) in [(Cause::Gc, None), (Cause::Refresh, None), (Cause::Sync, Some(2))] {
        core.set_superblock_level(SUPERBLOCK, 0);
        read(&mut core, &map, 0, cause, 2);
        run(&mut core, &mut reads, &mut map);
        assert_eq!(
            (map.levels.get(&0).copied(), core.levels().superblock(SUPERBLOCK)),
            (of_unit, 2),
            "{cause:?}"
        );
    }
    // The level of a read at full strength is not remembered for the superblock either.
    let (lpn, owner, class) = (Lpn(1), Owner::Job(LANE), Class::Background);
    let (cause, start) = (Cause::Refresh, Start::Last);
    core.read(Read { unit: UnitId(1), lpn, owner, cause, class, start, unit_level: 0 });
    let (read, _) = run(&mut core, &mut reads, &mut map)[0];
    assert_eq!((read.level, core.levels().superblock(SUPERBLOCK)), (3, 2));
}

#[test]
fn the_level_of_the_drive_is_that_of_the_last_read_that_decoded_its_unit() {
    let (mut core, mut reads, mut map) =
        (core_with(StartLevel::DriveLevel), Reads::new(3, None, false), MapInRam::default());
    let mut levels = |core: &mut Core<NoProbe>, lpn, cause, needed| {
        let slot = read(core, &map, lpn, cause, needed);
        let first = core.operation(slot).level;
        let (read, _) = run(core, &mut reads, &mut map)[0];
        (first, read.level, core.levels().drive())
    };
    // The first level of the read, its last level, and the level of the drive after it.
    assert_eq!(levels(&mut core, 0, Cause::Host, 2), (1, 2, 2));
    // A read of another unit starts at this level, also in a background job. A unit that needs less decodes at the
    // level at which it starts, so the level does not fall.
    assert_eq!(levels(&mut core, 1, Cause::Gc, 1), (2, 2, 2));
    assert_eq!(levels(&mut core, 1, Cause::Host, 4), (2, 3, 2), "an uncorrectable read sets no level");
    assert_eq!(levels(&mut core, 1, Cause::Host, 3), (2, 3, 3));
    // A read at full strength sets no level. A refresh that starts at level 1 sets the level that decodes its unit.
    let (lpn, owner, class, cause) = (Lpn(1), Owner::Job(LANE), Class::Background, Cause::Refresh);
    for (start, level) in [(Start::First, 2), (Start::Last, 2)] {
        core.flash_mut().superblock_mut(SUPERBLOCK).reads = 2;
        core.read(Read { unit: UnitId(1), lpn, owner, cause, class, start, unit_level: 0 });
        run(&mut core, &mut reads, &mut map);
        assert_eq!(core.levels().drive(), level, "{start:?}");
    }
    core.forget_levels();
    assert_eq!(core.levels().drive(), 0, "power loss forgets the level");
}

#[test]
fn the_level_of_a_unit_that_has_been_written_since_is_not_remembered() {
    let (mut core, mut reads, mut map) = (core(), Reads::new(3, None, false), MapInRam::default());
    read(&mut core, &map, 0, Cause::Host, 2);
    fill(&mut core, StreamId::HOST, [0]);
    run(&mut core, &mut reads, &mut map);
    assert!(map.levels.is_empty());
}

#[test]
fn the_decoder_of_each_level_ends_reads_in_the_order_of_their_arrival() {
    let (mut core, mut reads) = (core(), Reads::new(3, None, false));
    let map = MapInRam { levels: [(1, 2)].into(), ..MapInRam::default() };
    // The units leave their die 5 us apart. The first and the third are decoded at level 1, the second at level 2.
    let slots = [(0, 1), (1, 2), (0, 1)].map(|(lpn, needed)| read(&mut core, &map, lpn, Cause::Host, needed));
    for slot in slots {
        assert_eq!(reads.on_page_out(&mut core, slot), None);
        core.advance_to(core.now() + 5 * US);
    }
    let (first, second) = (core.geometry().dies, core.geometry().dies + 1);
    let at = |us: u64| Time::START + us * US;
    assert_eq!([first, second].map(|clock| core.clock(clock)), [at(20), at(45)]);
    assert_eq!(reads.on_clock(&mut core, first), slots[0]);
    assert_eq!(core.clock(first), at(30), "the third unit arrived 10 us after the first");
    assert_eq!(reads.on_clock(&mut core, first), slots[2]);
    assert_eq!(core.clock(first), NEVER);
    assert_eq!(reads.on_clock(&mut core, second), slots[1]);
}

#[test]
fn without_levels_every_unit_decodes_at_once_and_its_superblock_is_unpinned() {
    let (mut core, mut reads, mut map) =
        (Setup::default().core(), Reads::new(1, None, false), MapInRam::default());
    fill(&mut core, StreamId::HOST, [0]);
    let slot = read(&mut core, &map, 0, Cause::Host, 9);
    assert_eq!(core.superblock(SUPERBLOCK).pins, 1);
    assert_eq!(reads.on_page_out(&mut core, slot), Some(slot));
    assert_eq!(core.superblock(SUPERBLOCK).pins, 0);
    assert!(reads.on_decoded(&mut core, &mut map, slot) && !core.operation(slot).is_uncorrectable());
    assert!(map.levels.is_empty());
}

#[test]
fn a_soft_start_is_a_first_try_above_level_1() {
    let mut stats = EccStats::default();
    for (start, needed) in [(1, 1), (1, 3), (2, 1)] {
        stats.on_host_start(start, needed);
    }
    assert_eq!((stats.host_soft_starts, &stats.host_needed[1..4]), (1, &[2, 0, 1][..]));
}
