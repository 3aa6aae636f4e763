//! Refresh on a bare core with superblocks of four units. The interval is 100 s and the grace 10 s; the scaled clock
//! runs at the speed of simulated time.

use super::spec::{EcCacheSpec, FcrSpec, RefreshPriority};
use super::*;
use crate::base::geometry::Lpn;
use crate::core::testing::{Event, LANE, MapInRam, Setup, decode, fill, next};
use crate::core::{Read, State};
use crate::ftl::StreamId;
use crate::probe::NoProbe;
use crate::sched::{Class, FlashOp};

const SUPERBLOCK: SuperblockId = SuperblockId(0);

fn at(seconds: u64) -> Time {
    Time::START + seconds * SECOND
}

fn refreshing(core: &Core<NoProbe>, policy: RefreshPolicySpec) -> Refreshing {
    let (interval, priority) = (vec![(1000, 100 * SECOND)], RefreshPriority::Background);
    let spec = RefreshSpec { policy, interval, priority, grace: 0.1 };
    Refreshing::new(&spec, 1, core)
}

fn fcr(in_place: bool) -> RefreshPolicySpec {
    RefreshPolicySpec::Fcr(FcrSpec {
        full_strength: false,
        in_place,
        reprogram_error: 0.0,
        remap_above: None,
    })
}

/// Returns a core whose first superblock has been programmed with the first `lpns` LPNs at 10 s, so the superblock is
/// due at 110 s.
fn programmed_at_10_s(setup: &Setup, policy: RefreshPolicySpec, lpns: u32) -> (Core<NoProbe>, Refreshing) {
    let mut core = setup.core();
    let mut refreshing = refreshing(&core, policy);
    refreshing.refresh.begin(&mut core);
    refreshing.refresh.on_clock(&mut core);
    core.advance_to(at(10));
    fill(&mut core, StreamId::HOST, 0..lpns);
    refreshing.refresh.age_from_now(&mut core, SUPERBLOCK);
    (core, refreshing)
}

/// Advances to the next expiry of the refresh clock; returns the wakes that the expiry has queued.
fn expire(core: &mut Core<NoProbe>, refresh: &mut Refresh) -> Vec<String> {
    core.advance_to(core.clock(core.refresh_clock()));
    refresh.on_clock(core);
    std::iter::from_fn(|| core.next_wake()).map(|wake| format!("{wake:?}")).collect()
}

#[test]
fn a_superblock_is_due_its_interval_after_its_first_program_and_not_before() {
    let (mut core, mut refreshing) = programmed_at_10_s(&Setup::default(), fcr(false), 2);
    core.advance_to(at(109));
    refreshing.refresh.on_clock(&mut core);
    assert!(!core.has_wakes() && refreshing.next_job(&mut core, LANE).is_none());
    assert_eq!(core.clock(core.refresh_clock()), at(110));
    assert_eq!(expire(&mut core, &mut refreshing.refresh), ["Due(LaneId(0))"]);
    let job = refreshing.next_job(&mut core, LANE).expect("the superblock is due");
    assert_eq!(
        (job.superblock, job.cause, job.stays, job.is_urgent),
        (SUPERBLOCK, Cause::Refresh, false, false)
    );
    // The open superblock has been closed.
    assert_eq!(core.superblock(SUPERBLOCK).state, SuperblockState::Full);
    assert!(refreshing.next_job(&mut core, LANE).is_none(), "a due superblock is given out once");
    assert_eq!((refreshing.stats().blocks, refreshing.stats().pages), (1, 2));
}

#[test]
fn the_hurry_alarm_of_a_due_superblock_strikes_at_half_of_its_grace_and_repeats_until_the_refresh() {
    let (mut core, mut refreshing) = programmed_at_10_s(&Setup::default(), fcr(false), 4);
    expire(&mut core, &mut refreshing.refresh);
    // Half of the grace is over at 115 s. The alarm repeats after an eighth of the grace, in whole seconds.
    for second in [115, 116, 117] {
        assert_eq!(expire(&mut core, &mut refreshing.refresh), ["Hurry(SuperblockId(0))"]);
        assert_eq!(core.now(), at(second));
    }
    assert_eq!(refreshing.refresh.overdue(&core).count(), 0);
    core.advance_to(at(121));
    assert_eq!(refreshing.refresh.overdue(&core).collect::<Vec<_>>(), [SUPERBLOCK]);
    assert!(refreshing.next_job(&mut core, LANE).is_some_and(|job| job.is_urgent));
    // The data of the superblock is moved to another superblock.
    fill(&mut core, StreamId::GC, 0..4);
    core.begin_emptying(SUPERBLOCK);
    core.end_erase(core.geometry().unit(SUPERBLOCK, 0), Cause::Refresh);
    refreshing.refresh.on_erased(&mut core, SUPERBLOCK);
    assert!(expire(&mut core, &mut refreshing.refresh).is_empty());
    // The refresh has ended at 121 s; the superblock was due at 110 s.
    assert_eq!((refreshing.stats().late_blocks, refreshing.stats().overdue_max_s), (1, 11));
}

#[test]
fn the_hurry_alarms_of_a_superblock_that_stays_overdue_come_after_an_eighth_of_its_time_overdue() {
    let (mut core, mut refreshing) = programmed_at_10_s(&Setup::default(), fcr(false), 4);
    expire(&mut core, &mut refreshing.refresh);
    // Up to twice the grace the eighths are below two seconds. From 126 s on, 16 s after 110 s: 2 s, and so on.
    let mut strikes = Vec::new();
    while core.now() < at(10_000) {
        assert_eq!(expire(&mut core, &mut refreshing.refresh), ["Hurry(SuperblockId(0))"]);
        strikes.push(core.now().seconds() as u64);
    }
    assert_eq!(strikes[..15], [115, 116, 117, 118, 119, 120, 121, 122, 123, 124, 125, 126, 128, 130, 132]);
    // 9890 s overdue are 16 s times 1.125 to the power of 54.6; whole seconds are a little shorter.
    assert!((12 + 54..=12 + 65).contains(&strikes.len()), "{} alarms", strikes.len());
}

#[test]
fn a_job_that_begins_when_exactly_half_of_the_grace_is_over_is_urgent() {
    // The superblock is due at 110 s, and half of its grace of 10 s is over at 115 s.
    for (second, is_urgent) in [(114, false), (115, true), (116, true)] {
        let (mut core, mut refreshing) = programmed_at_10_s(&Setup::default(), fcr(false), 4);
        expire(&mut core, &mut refreshing.refresh);
        core.advance_to(at(second));
        let job = refreshing.next_job(&mut core, LANE).expect("the superblock is due");
        assert_eq!((job.superblock, job.is_urgent), (SUPERBLOCK, is_urgent), "at {second} s");
    }
}

#[test]
fn data_that_is_copied_back_keeps_its_age() {
    let setup = Setup { copybacks_max: 1, ..Setup::default() };
    let (mut core, mut refreshing) = programmed_at_10_s(&setup, fcr(false), 4);
    core.advance_to(at(50));
    let to = SuperblockId(1);
    let stream = core.streams().named("copyback");
    fill(&mut core, stream, [0]);
    refreshing.refresh.age_from_now(&mut core, to);
    refreshing.refresh.age_as(&mut core, to, SUPERBLOCK);
    // Source and destination are due at 110 s.
    assert_eq!(expire(&mut core, &mut refreshing.refresh), ["Due(LaneId(0))"; 2]);
    let due = [0, 1].map(|_| refreshing.next_job(&mut core, LANE).map(|job| job.superblock));
    assert_eq!((core.now(), due), (at(110), [Some(SUPERBLOCK), Some(to)]));
}

/// Reads all units of the superblock for its refresh job; returns the result of the refresh of each unit.
fn refresh_units(core: &mut Core<NoProbe>, refreshing: &mut Refreshing) -> Vec<Refreshed> {
    (0..4).map(|unit| refresh_unit(core, refreshing, unit)).collect()
}

fn refresh_unit(core: &mut Core<NoProbe>, refreshing: &mut Refreshing, index: u32) -> Refreshed {
    let unit = core.geometry().unit(SUPERBLOCK, index);
    let (lpn, owner, class) = (core.flash().lpn(unit), Owner::Job(LANE), Class::Background);
    let (cause, start) = (Cause::Refresh, Start::Last);
    let slot = core.read(Read { unit, lpn, owner, cause, class, start, unit_level: 0 });
    while !matches!(next(core), Some(Event::Page(read)) if read == slot) {}
    let read = decode(core, slot);
    refreshing.refresh_unit(core, LANE, &read)
}

#[test]
fn after_refresh_in_place_units_have_not_moved_and_the_superblock_is_due_an_interval_later() {
    let setup = Setup { levels: 8, ..Setup::default() };
    let (mut core, mut refreshing) = programmed_at_10_s(&setup, fcr(true), 4);
    expire(&mut core, &mut refreshing.refresh);
    let job = refreshing.next_job(&mut core, LANE).expect("the superblock is due");
    assert!(job.stays);
    let places = [0, 1, 2, 3].map(|lpn| core.unit_of(Lpn(lpn)));
    let mut map = MapInRam { levels: [(0, 5)].into(), ..MapInRam::default() };
    for index in 0..4 {
        assert_eq!(refresh_unit(&mut core, &mut refreshing, index), Refreshed::Later);
        assert!(refreshing.refresh.is_reprogramming());
        let Some(Event::Ended(done)) = next(&mut core) else { panic!("unit {index} is programmed") };
        assert!(done.is_in_place() && core.superblock(SUPERBLOCK).pins == 1);
        refreshing.refresh.on_reprogrammed(&mut core, &mut map, &done);
        assert_eq!(core.flash().stamp(done.unit).corrected, core.age_stamp_now());
    }
    refreshing.end_staying(&mut core, LANE, SUPERBLOCK);
    assert_eq!([0, 1, 2, 3].map(|lpn| core.unit_of(Lpn(lpn))), places);
    assert_eq!(map.levels, [(0, 1)].into(), "the unit decodes at level 1 again");
    let superblock = core.superblock(SUPERBLOCK);
    assert_eq!((core.flash().rare(SUPERBLOCK).reprograms, superblock.pins, superblock.pe_cycles), (4, 0, 0));
    assert_eq!((refreshing.stats().blocks_in_place, refreshing.stats().pages_in_place), (1, 4));
    // The hurry alarm of the first refresh is outdated, and the superblock is due an interval after its refresh, which
    // was at 110 s.
    assert!(expire(&mut core, &mut refreshing.refresh).is_empty());
    assert_eq!(expire(&mut core, &mut refreshing.refresh), ["Due(LaneId(0))"]);
    assert_eq!(core.now(), at(210));
}

#[test]
fn in_place_a_unit_is_not_reprogrammed_if_it_is_uncorrectable_or_its_program_could_be_torn() {
    let setup = Setup { levels: 2, ..Setup::default() };
    let (mut core, mut refreshing) = programmed_at_10_s(&setup, fcr(true), 4);
    core.flash_mut().superblock_mut(SUPERBLOCK).reads = 3;
    assert_eq!(refresh_unit(&mut core, &mut refreshing, 0), Refreshed::Not, "the unit decodes at no level");
    core.flash_mut().superblock_mut(SUPERBLOCK).reads = 0;
    core.set_state(State { is_charged: false, ..*core.state() });
    assert_eq!(refresh_unit(&mut core, &mut refreshing, 0), Refreshed::Not, "the capacitor is empty");
    core.set_state(State { is_charged: true, ..*core.state() });
    assert_eq!(refresh_unit(&mut core, &mut refreshing, 0), Refreshed::Later);
}

#[test]
fn without_in_place_every_unit_is_written_elsewhere() {
    let (mut core, mut refreshing) = programmed_at_10_s(&Setup::default(), fcr(false), 4);
    assert_eq!(refresh_units(&mut core, &mut refreshing), [Refreshed::Not; 4]);
    assert_eq!(core.operations().total(FlashOp::Read), 4);
}

#[test]
fn the_errors_of_a_read_hot_unit_are_known_until_the_unit_is_obsolete() {
    let setup = Setup { levels: 8, hot_reads: Some(2), ..Setup::default() };
    let mut core = setup.core();
    let policy = RefreshPolicySpec::EcCache(EcCacheSpec { size_bytes: 1 << 20, hot_reads: 2 });
    let mut refreshing = refreshing(&core, policy);
    let mut map = MapInRam { levels: [(0, 5)].into(), ..MapInRam::default() };
    let unit = fill(&mut core, StreamId::HOST, [0]);
    let mut needed = Vec::new();
    for _ in 0..4 {
        // After five reads of its superblock a unit needs level 5, at an RBER of 5 x 0.001.
        core.flash_mut().superblock_mut(SUPERBLOCK).reads = 5;
        let (lpn, owner, class) = (Lpn(0), Owner::Job(LANE), Class::HostRead);
        let (cause, start) = (Cause::Host, Start::Last);
        let slot = core.read(Read { unit, lpn, owner, cause, class, start, unit_level: 0 });
        needed.push(core.operation(slot).needed);
        let read = core.end_operation(slot);
        refreshing.error_cache.as_mut().unwrap().on_decoded(&mut core, &mut map, &read);
    }
    assert_eq!(needed, [5, 5, 1, 1], "after the second read the unit's errors are known");
    assert_eq!(map.levels, [(0, 1)].into());
    assert!((core.known_rber(unit) - 0.005).abs() < 1e-12);
    refreshing.on_unit_obsolete(&mut core, unit);
    assert_eq!(core.known_rber(unit), 0.0);
    assert!(!refreshing.error_cache.as_ref().unwrap().knows(unit));
}
