//! Partial refresh on a bare core: three tenths of the bits of each 4 KiB unit are susceptible, so the susceptible bits
//! of three units fit into a line.

use super::*;
use crate::core::testing::{Event, LANE, MapInRam, Setup, decode, fill, next};
use crate::core::{Read, State};
use crate::ftl::StreamId;
use crate::probe::NoProbe;
use crate::sched::Start;
use crate::sched::{Cause, Class, Owner, Transaction};

const SUPERBLOCK: SuperblockId = SuperblockId(0);

fn setup() -> Setup {
    Setup { has_combinations: true, hot_reads: Some(2), superblocks: 16, ..Setup::default() }
}

fn partial(core: &Core<NoProbe>, vsm_pages: u32, max_share: f64) -> Partial {
    let spec = PartialSpec {
        susceptible_ratio: Some(0.3),
        encoding: Encoding::Paper,
        codeword_bits: 8192,
        vsm_pages,
        min_free_blocks: 0.0,
        hot_reads: 2,
        max_share,
        full_strength: FullStrength::All,
    };
    Partial::new(&RefreshPolicySpec::Partial(spec), 1, core).expect("the policy is partial refresh")
}

/// Returns a core whose first superblock has LPNs 0 to 3.
fn core() -> Core<NoProbe> {
    let mut core = setup().core();
    fill(&mut core, StreamId::HOST, 0..4);
    core
}

/// Reads the unit of an LPN for the refresh job of its superblock.
fn read(core: &mut Core<NoProbe>, lpn: u32) -> Transaction {
    let (lpn, owner, class) = (Lpn(lpn), Owner::Job(LANE), Class::Background);
    let unit = core.unit_of(lpn).expect("the LPN is mapped");
    let (cause, start) = (Cause::Refresh, Start::Last);
    let slot = core.read(Read { unit, lpn, owner, cause, class, start, unit_level: 0 });
    let read = *core.operation(slot);
    while !matches!(next(core), Some(Event::Page(index)) if index == slot) {}
    decode(core, slot);
    read
}

/// Refreshes units whose reads are over, one after the other; returns the results.
fn take<const N: usize>(
    core: &mut Core<NoProbe>,
    partial: &mut Partial,
    reads: [Transaction; N],
) -> [Refreshed; N] {
    reads.map(|read| partial.refresh_unit(core, LANE, &read))
}

/// Serves events until none is left; returns the wakes.
fn run(core: &mut Core<NoProbe>, partial: &mut Partial, map: &mut MapInRam) -> Vec<String> {
    let mut wakes = Vec::new();
    while let Some(event) = next(core) {
        match event {
            Event::Ended(done) => partial.on_programmed(core, map, &done),
            Event::Wake(Wake::Space(_)) => {}
            Event::Wake(wake) => wakes.push(format!("{wake:?}")),
            other => unreachable!("{other:?}"),
        }
    }
    wakes
}

/// The marks of units 0 to 3 of the superblock: `-` not marked, `p` pending, `l` linked.
fn marks(core: &Core<NoProbe>) -> String {
    let mark = |index: u32| match core.geometry().unit(SUPERBLOCK, index) {
        unit if core.parts().is_pending(unit) => 'p',
        unit if core.parts().of(unit).is_some() => 'l',
        _ => '-',
    };
    (0..4).map(mark).collect()
}

#[test]
fn a_line_is_programmed_when_it_is_full_and_its_units_are_linked_when_it_is_in_flash() {
    let mut core = core();
    let (mut partial, mut map) = (partial(&core, 2, 1.0), MapInRam::default());
    let reads = [0, 1, 2, 3].map(|lpn| read(&mut core, lpn));
    assert_eq!(take(&mut core, &mut partial, [reads[0], reads[1], reads[2]]), [Refreshed::Now; 3]);
    assert_eq!(
        (core.live_operations(), marks(&core)),
        (0, "ppp-".into()),
        "the bits of three units do not fill a line"
    );
    assert_eq!(take(&mut core, &mut partial, [reads[3]]), [Refreshed::Now]);
    assert_eq!((core.live_operations(), marks(&core)), (1, "pppp".into()));
    run(&mut core, &mut partial, &mut map);
    assert_eq!((marks(&core), core.superblock(SUPERBLOCK).linked), ("lllp".into(), 3));
    // The superblock counts as refreshed only when the susceptible bits of its last unit are in flash.
    partial.end_superblock(&mut core, SUPERBLOCK);
    assert!(run(&mut core, &mut partial, &mut map).is_empty());
    partial.empty_vsm(&mut core);
    assert_eq!(run(&mut core, &mut partial, &mut map), ["Refreshed(SuperblockId(0))"]);
    assert_eq!((marks(&core), partial.state(&core).linked_pages), ("llll".into(), 4));
    assert_eq!((partial.stats.combination_pages, partial.stats.partial_pages), (2, 4));
    assert_eq!(core.operations().programmed_for(Cause::Refresh), 2);
    partial.audit(&core, true).unwrap();
}

#[test]
fn links_end_with_their_base_units_and_the_combination_page_with_its_last_link() {
    let mut core = core();
    let (mut partial, mut map) = (partial(&core, 2, 1.0), MapInRam::default());
    let reads = [0, 1, 2].map(|lpn| read(&mut core, lpn));
    take(&mut core, &mut partial, reads);
    partial.empty_vsm(&mut core);
    run(&mut core, &mut partial, &mut map);
    let (combination, bytes) = core.parts().of(reads[0].unit).expect("the unit is linked");
    // The number of susceptible bits is drawn at random; its mean is three tenths of the bits of the unit.
    assert!(bytes.abs_diff(4096 * 3 / 10) < 60, "{bytes} bytes");
    assert!(core.unit_of(combination).is_some());
    for (lpn, marks_then) in [(1, "l-l-"), (0, "--l-"), (2, "----")] {
        assert!(core.unit_of(combination).is_some(), "LPN {lpn} is still linked");
        fill(&mut core, StreamId::GC, [lpn]);
        partial.unlink_marked(&mut core, reads[lpn as usize].unit);
        assert_eq!(marks(&core), marks_then);
        partial.audit(&core, true).unwrap();
    }
    assert_eq!(core.unit_of(combination), None);
    assert_eq!((partial.state(&core).linked_pages, core.superblock(SUPERBLOCK).linked), (0, 0));
}

#[test]
fn a_unit_that_is_replaced_while_its_bits_are_in_the_vsm_is_not_linked() {
    let mut core = core();
    let (mut partial, mut map) = (partial(&core, 2, 1.0), MapInRam::default());
    let reads = [0, 1, 2, 3].map(|lpn| read(&mut core, lpn));
    take(&mut core, &mut partial, [reads[0], reads[1]]);
    // LPN 0 is replaced while its susceptible bits wait in the VSM, LPN 1 while its line is being programmed.
    fill(&mut core, StreamId::GC, [0]);
    partial.unlink_marked(&mut core, reads[0].unit);
    take(&mut core, &mut partial, [reads[2], reads[3]]);
    assert_eq!((core.live_operations(), marks(&core)), (0, "-ppp".into()));
    partial.empty_vsm(&mut core);
    fill(&mut core, StreamId::GC, [1]);
    partial.unlink_marked(&mut core, reads[1].unit);
    run(&mut core, &mut partial, &mut map);
    assert_eq!((marks(&core), core.superblock(SUPERBLOCK).linked), ("--ll".into(), 2));
    partial.audit(&core, true).unwrap();
}

#[test]
fn a_unit_waits_for_room_in_the_vsm_while_a_line_is_programmed() {
    let mut core = setup().core();
    fill(&mut core, StreamId::HOST, 0..8);
    // The VSM has the size of one unit. The susceptible bits of three units fit; for the fourth unit the line of these
    // three is programmed, which takes the whole VSM.
    let (mut partial, mut map) = (partial(&core, 1, 1.0), MapInRam::default());
    let reads = [0, 1, 2, 3, 4].map(|lpn| read(&mut core, lpn));
    let taken = take(&mut core, &mut partial, reads);
    assert_eq!(taken[..3], [Refreshed::Now; 3]);
    assert_eq!(taken[3..], [Refreshed::Later; 2]);
    assert_eq!(run(&mut core, &mut partial, &mut map), ["UnitDone(LaneId(0))"; 2]);
    assert_eq!(marks(&core), "lllp");
    // While the capacitor is empty the VSM takes no further entries.
    core.set_state(State { is_charged: false, ..*core.state() });
    let last = read(&mut core, 5);
    assert_eq!(take(&mut core, &mut partial, [last]), [Refreshed::Not]);
}

#[test]
fn read_hot_too_susceptible_and_uncorrectable_units_are_written_elsewhere() {
    let mut core = core();
    let mut often = partial(&core, 2, 1.0);
    let mut susceptible = partial(&core, 2, 0.25);
    let first = read(&mut core, 0);
    core.count_host_read(first.unit);
    assert_eq!(take(&mut core, &mut susceptible, [first]), [Refreshed::Not], "three tenths exceed max_share");
    core.count_host_read(first.unit);
    let undecoded = Transaction { needed: 2, level: 1, ..read(&mut core, 1) };
    assert_eq!(take(&mut core, &mut often, [first, undecoded]), [Refreshed::Not; 2]);
    assert_eq!((susceptible.stats.too_susceptible, often.stats.hot_pages), (1, 1));
    let last = read(&mut core, 2);
    assert_eq!(take(&mut core, &mut often, [last]), [Refreshed::Now]);
    // A unit that is already pending is not refreshed partially again.
    assert_eq!(take(&mut core, &mut often, [last]), [Refreshed::Not]);
}

#[test]
fn a_superblock_is_refreshed_partially_once_and_only_if_it_has_host_data() {
    let mut core = core();
    let mut partial = partial(&core, 2, 1.0);
    assert!(partial.takes(&mut core, SUPERBLOCK, StreamId::GC));
    let combination = core.streams().named("combination");
    assert!(!partial.takes(&mut core, SUPERBLOCK, combination));
    core.set_state(State { is_charged: false, ..*core.state() });
    assert!(
        !partial.takes(&mut core, SUPERBLOCK, StreamId::GC),
        "an empty capacitor does not back up the VSM"
    );
    core.set_state(State { is_charged: true, ..*core.state() });
    partial.end_superblock(&mut core, SUPERBLOCK);
    assert!(
        !partial.takes(&mut core, SUPERBLOCK, StreamId::GC),
        "the superblock has been refreshed partially already"
    );
    partial.spec.min_free_blocks = 15.0 / 16.0;
    core.flash_mut().rare_mut(SUPERBLOCK).is_refreshed_partially = false;
    assert!(partial.takes(&mut core, SUPERBLOCK, StreamId::GC), "15 of 16 superblocks are free");
    partial.spec.min_free_blocks = 0.95;
    assert!(!partial.takes(&mut core, SUPERBLOCK, StreamId::GC));
    assert_eq!(partial.stats.blocks_while_off, 1);
}
