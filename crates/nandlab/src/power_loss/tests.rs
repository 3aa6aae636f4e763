//! Power loss and recovery on a bare core with superblocks of four units; a program takes 210 us including its
//! transfer.

use super::*;
use crate::base::geometry::{Cell, DieId};
use crate::base::units::{MS, Span, Time, US};
use crate::core::testing::{Event, LANE, Setup, fill, next, start, strike};
use crate::core::{Destination, Maps, Offline, Program, Read};
use crate::flash::{Stamp, SuperblockState};
use crate::ftl::placement::Place;
use crate::ftl::{FlushMethod, StreamId, WearLevelling};
use crate::host::Trims;
use crate::probe::NoProbe;
use crate::sched::{Cause, Class, FlashOp, NEVER, Owner, Phase, Start, SuspendSpec, SuspendTimes};

/// A stand-in for the other mechanisms that records the calls.
#[derive(Debug, Default)]
struct Others {
    first_programs: Vec<SuperblockId>,
    erased: Vec<SuperblockId>,
    copied_back: Vec<(SuperblockId, SuperblockId)>,
}

impl Schemes<NoProbe> for Others {
    fn on_first_program(&mut self, _: &mut Core<NoProbe>, superblock: SuperblockId) {
        self.first_programs.push(superblock);
    }

    fn on_copied_back(&mut self, to: SuperblockId, from: SuperblockId) {
        self.copied_back.push((to, from));
    }

    fn count_copyback(&mut self, _: u8) {}

    fn on_erased(&mut self, _: &mut Core<NoProbe>, superblock: SuperblockId) {
        self.erased.push(superblock);
    }

    fn on_unit_obsolete(&mut self, _: &mut Core<NoProbe>, _: UnitId) {}

    fn on_blank(&mut self, _: UnitId, _: UnitId) {}

    fn lines(&mut self, _: &[Transaction]) -> Vec<Lpn> {
        Vec::new()
    }

    fn place_lines(&mut self, _: &mut Core<NoProbe>) -> Option<AllocatedUnit> {
        None
    }

    fn stage(&mut self, _: Lpn, _: UnitId) {}
}

/// Queues a program for the host.
fn program(core: &mut Core<NoProbe>, lpn: u32) -> UnitId {
    let stamp = core.next_stamp();
    let (to, maps, owner) = (Destination::Stream(LANE, StreamId::HOST), Maps::Now, Owner::Dummy);
    let (lpn, cause, class) = (Lpn(lpn), Cause::Host, Class::HostWrite);
    core.program(Program { to, lpn, stamp, maps, owner, cause, class }).expect("the stream has room").unit
}

/// Programs a partial unit as in an emergency flush, without simulated time.
fn program_partial(core: &mut Core<NoProbe>, lpn: u32, sequence: u64) -> UnitId {
    let unit = core.allocate(LANE, StreamId::HOST).expect("the stream has room").unit;
    core.mark_partial(unit);
    let (superblock, index) = core.geometry().split(unit);
    let flash = core.flash_mut();
    flash.stage(unit, Lpn(lpn), Stamp { sequence, ..Stamp::default() });
    flash.program(superblock, index);
    unit
}

/// Serves events until the array operation of the die begins.
fn reach_array(core: &mut Core<NoProbe>) {
    start(core);
    while core.device().phase(DieId(0)) != Phase::Array {
        strike(core).expect("an operation is under way");
    }
}

/// Power fails without energy; returns the superblocks whose erase was torn.
fn tear(core: &mut Core<NoProbe>, loss: &mut PowerLoss) -> Vec<SuperblockId> {
    let torn =
        Outage { core: Offline::new(core), schemes: &mut Others::default(), remapped: Vec::new() }.tear(loss);
    core.drop_device_queues();
    Offline::new(core).stop_dies();
    torn
}

/// Rebuilds the state of the drive from flash, as when power is back.
fn recover(core: &mut Core<NoProbe>, setup: &Setup, trims: &Trims) -> Recovery {
    recover_with(core, setup, trims, &mut Others::default())
}

fn recover_with(core: &mut Core<NoProbe>, setup: &Setup, trims: &Trims, schemes: &mut Others) -> Recovery {
    let mut attempt = attempt(None);
    assert!(begin(core, setup, trims, schemes, false, &mut attempt).expect("power is on").is_empty());
    core.audit().unwrap();
    attempt.recovery
}

fn attempt(cut: Option<RecoveryCut>) -> Attempt {
    Attempt::new(1, cut, Recovery::default(), Vec::new())
}

/// Begins recovery. Returns the units that cannot be completed, or that power has failed again.
fn begin(
    core: &mut Core<NoProbe>,
    setup: &Setup,
    trims: &Trims,
    schemes: &mut Others,
    is_guarded: bool,
    attempt: &mut Attempt,
) -> Result<Vec<(Lpn, u64)>, PowerFails> {
    for superblock in &mut *core.flash_mut().superblocks {
        (superblock.valid, superblock.pins) = (0, 0);
    }
    let ftl = setup.ftl(core.geometry(), core.flash());
    let mut power = Return { core: Offline::new(core), schemes, is_guarded, attempt };
    power.end_erases()?;
    let mut found = power.read_oobs(trims, Time::START);
    power.scan(&found, 0.0)?;
    power.core.forget_operations(ftl);
    power.rebuild_map(&mut found);
    if is_guarded {
        power.core.set_host_lsb_only(LANE, true);
    }
    power.merge_partial_units(&found)
}

#[test]
fn a_torn_msb_page_destroys_the_lsb_page_of_its_wordline() {
    for (cell, lost) in [(Cell::Slc, vec![]), (Cell::Mlc, vec![(Lpn(7), 1)])] {
        let setup = Setup { cell, ..Setup::default() };
        let mut core = setup.core();
        let lsb = fill(&mut core, StreamId::HOST, [7]);
        let msb = program(&mut core, 8);
        assert_eq!(msb.0, lsb.0 + 1);
        reach_array(&mut core);
        let mut loss = PowerLoss::default();
        assert!(tear(&mut core, &mut loss).is_empty());
        assert_eq!((loss.torn_programs, &loss.destroyed), (1, &lost), "{cell:?}");
        assert_eq!([lsb, msb].map(|unit| core.flash().is_torn(unit)), [!lost.is_empty(), true], "{cell:?}");
        recover(&mut core, &setup, &Trims::default());
        let found = [7, 8].map(|lpn| core.unit_of(Lpn(lpn)));
        assert_eq!(found, [if lost.is_empty() { Some(lsb) } else { None }, None], "{cell:?}");
    }
}

/// The CSB page of planar TLC takes the LSB page with it, the MSB page both.
#[test]
fn a_torn_page_of_planar_tlc_destroys_the_pages_of_its_wordline_before_it() {
    for before in 0..3u64 {
        let setup = Setup { cell: Cell::Tlc, units: 9, ..Setup::default() };
        let mut core = setup.core();
        // The first wordline is complete.
        fill(&mut core, StreamId::HOST, 1..4 + before as u32);
        let torn = program(&mut core, 8);
        reach_array(&mut core);
        let mut loss = PowerLoss::default();
        tear(&mut core, &mut loss);
        let mut lost: Vec<_> = (4..4 + before).map(|number| (Lpn(number as u32), number)).collect();
        lost.sort_unstable();
        loss.destroyed.sort_unstable();
        assert_eq!((loss.torn_programs, &loss.destroyed), (1, &lost));
        let first = torn.0 - 3 - before as u32;
        let found: Vec<u64> =
            (first..=torn.0).map(|unit| core.flash().is_torn(UnitId(unit)).into()).collect();
        assert_eq!(found, [vec![0; 3], vec![1; 1 + before as usize]].concat());
        recover(&mut core, &setup, &Trims::default());
        let found: Vec<_> = (4..4 + before).map(|lpn| core.unit_of(Lpn(lpn as u32))).collect();
        assert!(found.iter().all(Option::is_none), "{found:?}");
    }
}

#[test]
fn a_program_still_in_its_transfer_tears_no_page() {
    let mut core = Setup { cell: Cell::Mlc, ..Setup::default() }.core();
    fill(&mut core, StreamId::HOST, [7]);
    let unit = program(&mut core, 8);
    start(&mut core);
    assert_eq!(core.device().phase(DieId(0)), Phase::TransferIn);
    let mut loss = PowerLoss::default();
    tear(&mut core, &mut loss);
    assert_eq!((loss.torn_programs, core.flash().is_torn(unit)), (0, false));
    assert_eq!(core.superblock(core.geometry().superblock_of(unit)).programmed, 1);
}

/// A core that programs LPN 8, and at 110 us, in the middle of the program, suspends the program for a host read. The
/// die is ready for the read at 120 us, and has taken the program up again at 185 us.
fn suspend_program(setup: &Setup) -> (Core<NoProbe>, UnitId) {
    let times = SuspendTimes { enter_ns: 10 * US, resume_ns: 5 * US, min_progress_ns: Span::ZERO, max: 1 };
    let suspend = SuspendSpec { program: Some(times), erase: None };
    let mut core = Setup { suspend, ..setup.clone() }.core();
    let other = fill(&mut core, StreamId::HOST, [7]);
    let unit = program(&mut core, 8);
    reach_array(&mut core);
    core.advance_to(core.now() + 100 * US);
    let (owner, cause, class, start_level) = (Owner::Dummy, Cause::Host, Class::HostRead, Start::Policy);
    core.read(Read { unit: other, lpn: Lpn(7), owner, cause, class, start: start_level, unit_level: 0 });
    start(&mut core);
    assert_eq!(core.clock(0), Time::START + 120 * US);
    (core, unit)
}

/// Serves the events of the die up to `us` microseconds.
fn serve_until(core: &mut Core<NoProbe>, us: u64) {
    while core.clock(0) <= Time::START + us * US {
        strike(core).expect("an operation is under way");
        start(core);
    }
    core.advance_to(Time::START + us * US);
}

#[test]
fn a_suspended_program_is_torn() {
    let setup = Setup { cell: Cell::Mlc, ..Setup::default() };
    // The die suspends the program, senses a page, transfers it out, takes the program up again, programs.
    let times = [
        (115, Phase::Array),
        (150, Phase::Array),
        (175, Phase::TransferOut),
        (182, Phase::Array),
        (200, Phase::Array),
    ];
    for (us, phase) in times {
        let (mut core, unit) = suspend_program(&setup);
        serve_until(&mut core, us);
        assert_eq!(core.device().phase(DieId(0)), phase, "{us} us");
        assert_eq!(core.device().suspended(DieId(0)).is_some(), us == 150 || us == 175);
        let mut loss = PowerLoss::default();
        tear(&mut core, &mut loss);
        assert_eq!((loss.torn_programs, core.flash().is_torn(unit)), (1, true), "{us} us");
        // The MSB program tears the LSB page of its wordline.
        assert_eq!(loss.destroyed, [(Lpn(7), 1)]);
        assert_eq!(core.device().load(DieId(0)), 0);
    }
    // The drive continues after recovery.
    let (mut core, _) = suspend_program(&setup);
    serve_until(&mut core, 150);
    tear(&mut core, &mut PowerLoss::default());
    recover(&mut core, &setup, &Trims::default());
    assert_eq!(core.device().suspended(DieId(0)), None);
}

/// The die serves the read under way, takes the program up again and ends it; then the flush programs one unit.
#[test]
fn a_suspended_program_ends_on_the_energy_of_a_capacitor() {
    let setup = Setup { flushed_units: Some(5), ..Setup::default() };
    let (mut core, unit) = suspend_program(&setup);
    serve_until(&mut core, 150);
    let begun = under_way(&core);
    assert_eq!(begun.iter().map(|t| t.kind).collect::<Vec<_>>(), [FlashOp::Program, FlashOp::Read]);
    assert!(core.has_program_before(u64::MAX));
    core.drop_device_queues();
    assert_eq!(core.device().load(DieId(0)), 2);
    let mut loss = PowerLoss { at: core.now(), energy_j: 1.0, ..PowerLoss::default() };
    let (lpn, sequence) = (Lpn(9), 9);
    let (has_unflushed, is_partial, is_lost) = (true, false, false);
    let place = Place::default();
    let mut dirty = [Dirty { lpn, place, sequence, has_unflushed, is_partial, is_lost, is_saved: false }];
    let means = Means { method: FlushMethod::Plain, at_a_time: 1, spent_j: &|_, _| 0.0, gc: None };
    let mut others = Others::default();
    let mut outage = Outage { core: Offline::new(&mut core), schemes: &mut others, remapped: Vec::new() };
    outage.flush(&means, &mut dirty, &mut loss, |_, _| {});
    // The read ends at 180 us, and of the program 100 us were left.
    assert_eq!(loss.finish_ns, (185 + 100 - 150) * US);
    assert_eq!(loss.flush_ns, loss.finish_ns + 210 * US);
    assert_eq!(core.superblock(core.geometry().superblock_of(unit)).programmed, 3);
    assert!(dirty[0].is_saved && core.clock(0) == NEVER);
}

#[test]
fn a_flush_writes_as_many_units_as_the_energy_covers() {
    for (units_of_energy, saved) in [(0.9, 0), (1.1, 1), (3.5, 3), (5.0, 5), (9.0, 5)] {
        let mut core = Setup { flushed_units: Some(5), ..Setup::default() }.core();
        // The controller takes 1 W and programs take no energy, so a unit takes the energy of 210 us.
        let spent_j = |flush: Span, _: Span| flush.seconds();
        let energy_j = units_of_energy * (210 * US).seconds() + 1e-12;
        let dirty = |lpn: u32| Dirty {
            lpn: Lpn(lpn),
            place: Place::default(),
            sequence: 10 + u64::from(lpn),
            has_unflushed: true,
            is_partial: false,
            is_lost: false,
            is_saved: false,
        };
        let mut dirty = [5, 4, 3, 2, 1].map(dirty);
        let mut loss = PowerLoss { energy_j, ..PowerLoss::default() };
        let means = Means { method: FlushMethod::Plain, at_a_time: 1, spent_j: &spent_j, gc: None };
        let mut others = Others::default();
        Outage { core: Offline::new(&mut core), schemes: &mut others, remapped: Vec::new() }.flush(
            &means,
            &mut dirty,
            &mut loss,
            |_, _| {},
        );
        let is_saved: Vec<bool> = dirty.iter().map(|unit| unit.is_saved).collect();
        assert_eq!(is_saved, [0, 1, 2, 3, 4].map(|at| at < saved), "{units_of_energy} units of energy");
        assert_eq!(loss.flushed_pages, saved);
        assert_eq!(
            (loss.flush_ns, loss.program_ns),
            (u64::from(saved) * 210 * US, u64::from(saved) * 200 * US)
        );
        assert_eq!(others.first_programs.len() as u32, saved.div_ceil(4));
    }
}

#[test]
fn a_program_under_way_ends_and_the_unit_of_a_queued_program_is_used_by_the_flush() {
    let mut core = Setup { flushed_units: Some(5), ..Setup::default() }.core();
    let [first, second] = [0, 1].map(|lpn| program(&mut core, lpn));
    reach_array(&mut core);
    core.drop_device_queues();
    let mut loss = PowerLoss { at: core.now(), energy_j: 1.0, ..PowerLoss::default() };
    let mut dirty = [Dirty {
        lpn: Lpn(9),
        place: Place::default(),
        sequence: 9,
        has_unflushed: true,
        is_partial: false,
        is_lost: false,
        is_saved: false,
    }];
    let means = Means { method: FlushMethod::Plain, at_a_time: 1, spent_j: &|_, _| 0.0, gc: None };
    let mut others = Others::default();
    let mut outage = Outage { core: Offline::new(&mut core), schemes: &mut others, remapped: Vec::new() };
    outage.flush(&means, &mut dirty, &mut loss, |_, _| {});
    // The first program is past its transfer and takes 200 us more; then the flush programs one unit.
    assert_eq!((loss.finish_ns, loss.flush_ns), (200 * US, (200 + 210) * US));
    assert_eq!((core.flash().lpn(first), core.flash().lpn(second)), (Lpn(0), Lpn(9)));
    assert!(dirty[0].is_saved && core.superblock(core.geometry().superblock_of(first)).programmed == 2);
}

#[test]
fn recovery_maps_the_unit_with_the_highest_sequence_number_that_is_neither_torn_nor_deallocated() {
    let setup = Setup::default();
    let mut core = setup.core();
    let mut units = Vec::new();
    for (lpn, sequence) in [(0, 5), (0, 9), (1, 3), (0, 7), (0, 11), (2, 20), (1, 4)] {
        Offline::new(&mut core).program_now(LANE, StreamId::HOST, Lpn(lpn), sequence, |_| ());
        units.push(core.unit_of(Lpn(lpn)).unwrap());
    }
    core.flash_mut().tear(units[4]);
    let mut trims = Trims::default();
    trims.add(Lpn(2), 21);
    trims.make_durable();
    trims.add(Lpn(1), 22);
    let recovery = recover(&mut core, &setup, &trims);
    // The unit with sequence number 11 is torn, so 9 counts for LPN 0. The deallocation of LPN 2 was durable, that of
    // LPN 1 was not.
    let found = [0, 1, 2].map(|lpn| core.unit_of(Lpn(lpn)));
    assert_eq!(found, [Some(units[1]), Some(units[6]), None]);
    assert_eq!(recovery.merged_pages, 0);
    assert_eq!(core.superblock(SuperblockId(0)).state, SuperblockState::Full);
    // A stream continues at the first unprogrammed unit of the open superblock.
    assert_eq!(core.allocate(LANE, StreamId::GC).unwrap().unit, UnitId(7));
}

/// Streams without a mark cannot be told apart: without placement handles, GC continues in the superblock of the host. With
/// handles, the streams of the host continue where they were, and so do those of copybacks and translation pages.
#[test]
fn recovery_knows_the_open_superblock_of_a_stream_by_its_mark_or_its_lpns() {
    for handles in [1, 2] {
        let setup = Setup { handles, copybacks_max: 1, has_demand_map: true, ..Setup::default() };
        let mut core = setup.core();
        let of_host = core.streams().hosts().to_vec();
        let others = [core.streams().named("copyback"), core.streams().named("mapping")];
        for (stream, lpn) in
            of_host.iter().chain(&others).zip([0, 1, 2].into_iter().take(of_host.len() + 1).chain([16]))
        {
            fill(&mut core, *stream, [lpn]);
        }
        recover(&mut core, &setup, &Trims::default());
        let next = |stream: &StreamId| core.ftl().next_unit(LANE, *stream);
        let known = if handles == 1 { vec![StreamId::GC] } else { of_host };
        let found: Vec<_> = known.iter().chain(&others).map(next).collect();
        let expected: Vec<_> =
            [1, 5, 9, 13].into_iter().take(found.len()).map(|unit| Some(UnitId(unit))).collect();
        assert_eq!(found, expected, "{handles} handles");
        let [next_free, opens] = [4 * found.len() as u32, if handles == 1 { 0 } else { 1 }];
        let opens = [StreamId::HOST, StreamId::GC][opens as usize];
        assert_eq!(next(&opens), Some(UnitId(next_free)), "{handles} handles: another superblock is opened");
    }
}

#[test]
fn a_partial_unit_of_the_flush_is_completed_from_the_unit_that_it_replaces() {
    let setup = Setup::default();
    let mut core = setup.core();
    let whole = fill(&mut core, StreamId::HOST, [3]);
    let partial = program_partial(&mut core, 3, 8);
    let mut others = Others::default();
    let recovery = recover_with(&mut core, &setup, &Trims::default(), &mut others);
    let now = core.unit_of(Lpn(3)).unwrap();
    assert!(now != whole && now != partial && !core.flash().is_partial(now));
    assert_eq!((recovery.merged_pages, core.sequence_of(now)), (1, 8));
    // GC's stream continues in the superblock of the two units, so the host's stream opens the next superblock.
    assert_eq!((now, others.first_programs), (UnitId(4), vec![SuperblockId(1)]));
}

#[test]
fn recovery_collects_superblocks_with_invalid_units_if_no_unit_is_free_for_a_completed_unit() {
    let setup = Setup { superblocks: 4, ..Setup::default() };
    let mut core = setup.core();
    fill_and_save_a_partial_unit(&mut core);
    let mut others = Others::default();
    let recovery = recover_with(&mut core, &setup, &Trims::default(), &mut others);
    // GC moves LPN 4 to superblock 3. Then it picks superblock 1, which has the older unit of LPN 0: the completed unit
    // follows LPN 4, before LPN 5.
    assert_eq!(others.erased, [SuperblockId(0), SuperblockId(1)]);
    assert_eq!([4, 0, 5].map(|lpn| core.unit_of(Lpn(lpn))), [12, 13, 14].map(|unit| Some(UnitId(unit))));
    let now = core.unit_of(Lpn(0)).unwrap();
    assert_eq!(others.first_programs, [SuperblockId(3)]);
    assert_eq!((recovery.merged_pages, core.sequence_of(now)), (1, 12));
    assert!(!core.flash().is_partial(now));
}

/// Superblock 0 has one valid unit (LPN 4), superblock 1 one (LPN 5) and the older unit of LPN 0, superblock 2 three and
/// the partial unit of LPN 0. Superblock 3 is free and kept for GC.
fn fill_and_save_a_partial_unit(core: &mut Core<NoProbe>) {
    fill(core, StreamId::HOST, [0, 4, 1, 2, 1, 2, 0, 5, 1, 2, 3]);
    assert_eq!(program_partial(core, 0, 12), UnitId(11));
}

/// The steps: the OOBs are read, then both parts of LPN 0. LPN 4 is read and programmed, and superblock 0 is erased. LPN 0
/// is programmed, LPN 5 is read and programmed, and superblock 1 is erased.
#[test]
fn a_cut_at_any_step_of_a_recovery_loses_nothing_and_tears_the_step() {
    for cell in [Cell::Slc, Cell::Mlc] {
        let setup = Setup { superblocks: 4, cell, ..Setup::default() };
        let torn_programs = [5, 7, 9];
        let torn_erases = [6, 10];
        for first in 1..=11 {
            for second in 1..=11 {
                let mut core = setup.core();
                fill_and_save_a_partial_unit(&mut core);
                let mut others = Others::default();
                let mut torn = Vec::new();
                for cut in [first, second] {
                    let mut attempt = attempt(Some(RecoveryCut::Step(cut)));
                    attempt.torn_erases.append(&mut torn);
                    let trims = Trims::default();
                    let lost = begin(&mut core, &setup, &trims, &mut others, true, &mut attempt);
                    let Recovery { torn_programs: programs, torn_erases: erases, .. } = attempt.recovery;
                    assert!(lost.is_err() || lost.is_ok_and(|lost| lost.is_empty()));
                    if cut == first && torn.is_empty() && second == 1 && first < 11 {
                        let is_among = |steps: &[u64]| u32::from(steps.contains(&cut));
                        let expected = (is_among(&torn_programs), is_among(&torn_erases));
                        assert_eq!((programs, erases), expected, "step {cut}");
                    }
                    torn = attempt.torn_erases;
                }
                let mut attempt = attempt(None);
                attempt.torn_erases = torn;
                let lost = begin(&mut core, &setup, &Trims::default(), &mut others, true, &mut attempt);
                assert_eq!(lost.expect("power is on"), []);
                core.audit().unwrap();
                for (lpn, sequence) in [(0, 12), (1, 9), (2, 10), (3, 11), (4, 2), (5, 8)] {
                    let unit = core.unit_of(Lpn(lpn)).expect("nothing is lost");
                    let found = (core.sequence_of(unit), core.flash().is_partial(unit));
                    assert_eq!(found, (sequence, false), "{cell:?}, steps {first} and {second}, LPN {lpn}");
                }
            }
        }
    }
}

#[test]
fn copies_are_taken_back_from_partly_programmed_superblocks_before_full_superblocks() {
    let mut core = Setup { superblocks: 4, levelling: WearLevelling::Static, ..Setup::default() }.core();
    let wear = core.streams().named("wear");
    // Of the units with the same sequence number and age, that in the lowest superblock counts as the newest. So the
    // newest units of LPN 4 and 5 are in superblock 0, which is partly programmed, and those of LPN 0 to 3 in
    // superblock 1, which is full. All have another copy, in superblocks 3 and 2.
    let mut write = |stream, lpns: std::ops::Range<u32>| {
        for lpn in lpns {
            Offline::new(&mut core).program_now(LANE, stream, Lpn(lpn), u64::from(lpn) + 1, |_| ());
        }
    };
    write(StreamId::GC, 4..6);
    write(StreamId::HOST, 0..4);
    write(StreamId::HOST, 0..4);
    write(wear, 4..8);
    let (mut others, mut attempt) = (Others::default(), attempt(None));
    let (schemes, attempted) = (&mut others, &mut attempt);
    let mut power = Return { core: Offline::new(&mut core), schemes, is_guarded: false, attempt: attempted };
    let mut found = power.read_oobs(&Trims::default(), Time::START);
    let newest = |found: &recovery::Found| [0, 3, 4, 5].map(|lpn| found.units[lpn] - 1);
    assert_eq!(newest(&found), [4, 7, 0, 1]);
    power.take_back_copies(&mut found).expect("power is on");
    // No superblock was free. The erase of superblock 0 frees the superblock that GC keeps, so superblock 1 stays.
    assert_eq!((others.erased, attempt.recovery.erased_blocks), (vec![SuperblockId(0)], 1));
    assert_eq!(newest(&found), [4, 7, 12, 13]);
}

#[test]
fn a_superblock_whose_erase_is_torn_is_erased_again() {
    let setup = Setup::default();
    let mut core = setup.core();
    fill(&mut core, StreamId::HOST, [0, 1, 2, 3, 0, 1, 2, 3]);
    core.begin_emptying(SuperblockId(0));
    core.erase(SuperblockId(0), Owner::Job(LANE), Cause::Gc, Class::Background);
    reach_array(&mut core);
    let mut loss = PowerLoss::default();
    let torn = tear(&mut core, &mut loss);
    assert_eq!((&torn, loss.torn_erases), (&vec![SuperblockId(0)], 1));
    assert_eq!(core.superblock(SuperblockId(0)).pe_cycles, 0);
    let (mut others, mut attempt) = (Others::default(), attempt(None));
    attempt.torn_erases.clone_from(&torn);
    let schemes = &mut others;
    let mut power =
        Return { core: Offline::new(&mut core), schemes, is_guarded: false, attempt: &mut attempt };
    power.end_erases().expect("power is on");
    let erased = (others.erased, attempt.recovery.erased_blocks, attempt.elapsed_ns);
    assert_eq!((erased, attempt.torn_erases), ((torn, 1, MS), Vec::new()));
    let superblock = core.superblock(SuperblockId(0));
    assert_eq!(
        (superblock.pe_cycles, superblock.programmed, superblock.state),
        (1, 0, SuperblockState::Free)
    );
    recover(&mut core, &setup, &Trims::default());
    assert_eq!(core.unit_of(Lpn(0)), Some(UnitId(4)));
}

#[test]
fn a_copyback_that_ends_while_power_fails_keeps_age_and_errors_of_its_source() {
    let mut core = Setup { copybacks_max: 1, ..Setup::default() }.core();
    let source = fill(&mut core, StreamId::HOST, [0]);
    let from = core.geometry().superblock_of(source);
    core.flash_mut().superblock_mut(from).reads = 6;
    let (stream, cause) = (core.streams().named("copyback"), Cause::Gc);
    let copyback = crate::core::CopyBack { lane: LANE, stream, sources: &[source], cause };
    let queued = core.copy_back(copyback).unwrap();
    start(&mut core);
    let mut loss = PowerLoss { energy_j: 1.0, ..PowerLoss::default() };
    let means = Means { method: FlushMethod::Plain, at_a_time: 1, spent_j: &|_, _| 0.0, gc: None };
    let mut others = Others::default();
    Outage { core: Offline::new(&mut core), schemes: &mut others, remapped: Vec::new() }.flush(
        &means,
        &mut [],
        &mut loss,
        |_, _| {},
    );
    let to = core.geometry().superblock_of(queued.unit);
    assert_eq!((others.copied_back, core.superblock(to).reads), (vec![(to, from)], 6));
    assert!(
        !matches!(next(&mut core), Some(Event::Ended(_))) && core.operations().total(FlashOp::Copyback) == 1
    );
}
