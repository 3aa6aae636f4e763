//! Copybacks on a bare core with superblocks of four units and at most two copybacks in a row.

use super::spec::{CopybackCourse, FirstBlock, MigrationPolicySpec};
use super::*;
use crate::base::geometry::Lpn;
use crate::core::testing::{Event, LANE, Setup, fill, next};
use crate::probe::NoProbe;
use crate::sched::{FlashOp, Owner};

const COPYBACKS: u8 = 2;

fn setup() -> Setup {
    Setup { copybacks_max: COPYBACKS, ..Setup::default() }
}

fn migration(policy: &'static str, limit: CopybackLimitSpec) -> Migration {
    let policy = MigrationPolicySpec { name: policy, limit, occupancy: Occupancy::Writing };
    let spec = MigrationSpec {
        policy,
        in_flight: 4,
        valid_min: 0.75,
        first_block: FirstBlock::Own,
        copyback: CopybackCourse::Whole,
    };
    Migration::new(&spec, make(spec.policy.name), &setup().core())
}

fn greedy() -> Migration {
    migration("rcopyback-greedy", CopybackLimitSpec::Fixed(COPYBACKS))
}

/// Returns the copyback stream for a GC victim.
fn stream(migration: &mut Migration, core: &mut Core<NoProbe>, superblock: SuperblockId) -> Option<StreamId> {
    let job = NextJob::emptying(superblock, Cause::Gc, false);
    migration.copyback_stream(core, LANE, superblock, &job, |_| 0.0)
}

/// Copies a unit back and serves events until the copyback has ended. Returns the new PPN; `None` if the copyback was
/// refused.
fn copy(migration: &mut Migration, core: &mut Core<NoProbe>, lpn: u32, stream: StreamId) -> Option<UnitId> {
    let source = core.unit_of(Lpn(lpn)).expect("the LPN is mapped");
    if !migration.may_copy_back(core, LANE, stream, source) {
        return None;
    }
    let copyback = CopyBack { lane: LANE, stream, sources: &[source], cause: Cause::Gc };
    let queued = migration.copy_back(core, copyback);
    assert_eq!(core.unit_of(Lpn(lpn)), Some(source), "the map changes at the end of the copyback");
    assert!(core.superblock(core.geometry().superblock_of(source)).pins > 0);
    loop {
        match next(core).expect("a copyback is under way") {
            Event::Ended(done) => {
                assert_eq!((done.kind, done.owner), (FlashOp::Copyback, Owner::Job(LANE)));
                return Some(queued.unit);
            }
            Event::Wake(_) => {}
            other => unreachable!("{other:?}"),
        }
    }
}

#[test]
fn each_number_of_copybacks_in_a_row_up_to_the_limit_has_its_own_stream() {
    let (mut core, mut migration) = (setup().core(), greedy());
    fill(&mut core, StreamId::HOST, 0..4);
    let sequence = core.sequence_of(UnitId(0));
    let mut victim = SuperblockId(0);
    for in_a_row in 1..=2 {
        let found = stream(&mut migration, &mut core, victim);
        let stream = core.streams().marked(in_a_row);
        assert!(found.is_some() && found == stream);
        for lpn in 0..4 {
            let to = copy(&mut migration, &mut core, lpn, stream.unwrap()).unwrap();
            assert_eq!(core.unit_of(Lpn(lpn)), Some(to));
            victim = core.geometry().superblock_of(to);
        }
        assert_eq!(core.superblock(victim).copybacks(), in_a_row);
    }
    assert_eq!(
        stream(&mut migration, &mut core, victim),
        None,
        "a third copyback in a row exceeds the limit"
    );
    assert_eq!(migration.stats.victims_copied_back, 2);
    let unit = core.unit_of(Lpn(0)).unwrap();
    assert_eq!(core.sequence_of(unit), sequence, "a copyback keeps the sequence number of the host write");
    assert_eq!(
        [FlashOp::Copyback, FlashOp::Program, FlashOp::Read].map(|kind| core.operations().total(kind)),
        [8, 0, 0]
    );
}

#[test]
fn a_copyback_beyond_the_limit_of_the_destination_is_refused_and_counted() {
    let table = CopybackLimitSpec::Table(vec![(100, 2), (200, 1)]);
    for (pe_cycles, allowed) in [(100, [true, true]), (101, [true, false]), (201, [false, false])] {
        let mut core = Setup { pe_cycles, ..setup() }.core();
        let mut migration = migration("rcopyback-greedy", table.clone());
        fill(&mut core, StreamId::HOST, 0..4);
        let found = [1, 2].map(|in_a_row| {
            let stream = core.streams().marked(in_a_row).unwrap();
            copy(&mut migration, &mut core, 0, stream).is_some()
        });
        assert_eq!(found, allowed, "{pe_cycles} P/E cycles");
        let refused = allowed.iter().filter(|&&is_allowed| !is_allowed).count() as u64;
        assert_eq!(migration.stats.refused, refused, "{pe_cycles} P/E cycles");
        assert_eq!(core.live_operations(), 0);
    }
}

#[test]
fn a_measured_limit_allows_only_a_unit_that_still_decodes_at_its_level() {
    // After n reads of its superblock a unit needs level n; the drive has three levels, and level 4 does not exist.
    let within_ns = crate::base::units::SECOND;
    for (level, reads, is_allowed) in [(2, 2, true), (2, 3, false), (3, 3, true), (7, 3, true), (7, 4, false)]
    {
        let mut core = Setup { levels: 3, ..setup() }.core();
        fill(&mut core, StreamId::HOST, 0..4);
        core.flash_mut().superblock_mut(SuperblockId(0)).reads = reads;
        let limit = CopybackLimitSpec::Measured { within_ns, level };
        let mut migration = migration("rcopyback-greedy", limit);
        let stream = core.streams().named("copyback");
        let found = copy(&mut migration, &mut core, 0, stream);
        assert_eq!(found.is_some(), is_allowed, "{reads} reads, level {level}");
        assert_eq!(migration.stats.refused, u64::from(!is_allowed));
    }
}

#[test]
fn translation_pages_refreshed_data_and_partially_refreshed_units_are_never_copied_back() {
    let mut core = Setup { has_demand_map: true, has_combinations: true, ..setup() }.core();
    let mut migration = greedy();
    let stream_of_map = core.streams().named("mapping");
    fill(&mut core, stream_of_map, [16; 4]);
    let mapping = core.geometry().superblock_of(core.unit_of(Lpn(16)).unwrap());
    assert_eq!(stream(&mut migration, &mut core, mapping), None);
    let last = fill(&mut core, StreamId::HOST, 0..4);
    let data = core.geometry().superblock_of(last);
    let refresh = NextJob { corrects: true, ..NextJob::emptying(data, Cause::Refresh, true) };
    assert_eq!(migration.copyback_stream(&mut core, LANE, data, &refresh, |_| 1.0), None);
    let found = stream(&mut migration, &mut core, data);
    assert_eq!(found, core.streams().marked(1));
    core.mark_pending(core.geometry().unit(data, 1));
    let copied = [0, 1].map(|lpn| copy(&mut migration, &mut core, lpn, found.unwrap()).is_some());
    assert_eq!(copied, [true, false]);
    assert_eq!((migration.stats.victims_copied_back, migration.stats.refused), (1, 0));
}

#[test]
fn a_victim_is_copied_back_only_if_the_copyback_and_the_gc_stream_have_free_superblocks() {
    let mut core = Setup { superblocks: 4, ..setup() }.core();
    let mut migration = greedy();
    fill(&mut core, StreamId::GC, 0..8);
    assert!(stream(&mut migration, &mut core, SuperblockId(0)).is_some(), "two superblocks are free");
    fill(&mut core, StreamId::GC, 8..12);
    assert_eq!(stream(&mut migration, &mut core, SuperblockId(0)), None, "one superblock is free");
    assert_eq!((migration.stats.victims_copied_back, migration.stats.victims_without_room), (1, 1));
}

#[test]
fn the_mode_selector_copies_back_while_the_buffer_is_busy_or_space_is_short() {
    let mut core = setup().core();
    fill(&mut core, StreamId::HOST, 0..4);
    let mut migration = migration("rcopyback", CopybackLimitSpec::Fixed(2));
    assert!(migration.watches_buffer());
    let found = [(false, 0.5), (false, 0.51), (true, 0.0)].map(|(is_urgent, buffer)| {
        let job = NextJob::emptying(SuperblockId(0), Cause::Gc, is_urgent);
        migration.copyback_stream(&mut core, LANE, SuperblockId(0), &job, |_| buffer).is_some()
    });
    assert_eq!(found, [false, true, true]);
    assert_eq!((migration.stats.victims_off_chip, migration.stats.victims_copied_back), (1, 2));
}
