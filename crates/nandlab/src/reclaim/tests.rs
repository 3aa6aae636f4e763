//! Read reclaim on a bare core with superblocks of four units, and on whole drives of one die together with the other
//! schemes.

use super::*;
use crate::base::geometry::Lpn;
use crate::base::units::{Span, Time};
use crate::core::testing::{LANE, Setup, clear, fill};
use crate::drive::spec::{self, Spec};
use crate::drive::{Drive, IDLE_LIMIT};
use crate::ftl::StreamId;
use crate::host::{Op, Oracle, Request};
use crate::probe::NoProbe;
use crate::sched::FlashOp;
use std::path::Path;

// ---------------------------------------------------------------------------------------------------------- bare core

const SUPERBLOCK: SuperblockId = SuperblockId(0);

fn reclaim(core: &Core<NoProbe>, policy: ReclaimPolicySpec) -> Reclaim {
    Reclaim::new(&ReclaimSpec { policy }, core)
}

/// Senses unit 0 of a superblock `count` times, and drops the wakes of other mechanisms. Returns the number of wakes of
/// reclaim.
fn sense(core: &mut Core<NoProbe>, reclaim: &mut Reclaim, superblock: SuperblockId, count: u32) -> usize {
    while core.next_wake().is_some() {}
    for _ in 0..count {
        core.count_sensed(superblock, 0);
        reclaim.on_read(core, core.geometry().unit(superblock, 0), 1);
    }
    std::iter::from_fn(|| core.next_wake()).filter(|wake| matches!(wake, Wake::Due(LANE))).count()
}

#[test]
fn a_superblock_is_reclaimed_at_its_limit_of_reads_and_not_before() {
    let mut core = Setup::default().core();
    let mut reclaim = reclaim(&core, ReclaimPolicySpec::Reads { limit: 3 });
    fill(&mut core, StreamId::HOST, 0..8);
    assert_eq!(sense(&mut core, &mut reclaim, SUPERBLOCK, 2), 0);
    assert!(reclaim.next_job(&mut core, LANE).is_none());
    assert_eq!(sense(&mut core, &mut reclaim, SUPERBLOCK, 1), 1);
    let job = reclaim.next_job(&mut core, LANE).expect("the superblock has had three reads");
    assert_eq!((job.superblock, job.cause, job.stays), (SUPERBLOCK, Cause::Reclaim, false));
    assert!(job.is_urgent && job.corrects && job.start == Start::Policy);
    assert_eq!(reclaim.stats, ReclaimStats { blocks: 1, pages: 4, samples: 0 });
    assert!(reclaim.next_job(&mut core, LANE).is_none(), "the job of a superblock is returned once");
}

#[test]
fn superblocks_are_reclaimed_in_the_order_in_which_they_pass_the_limit_and_are_queued_once() {
    let mut core = Setup::default().core();
    let mut reclaim = reclaim(&core, ReclaimPolicySpec::Reads { limit: 2 });
    fill(&mut core, StreamId::HOST, 0..12);
    for superblock in [SuperblockId(2), SuperblockId(0)] {
        assert_eq!(sense(&mut core, &mut reclaim, superblock, 5), 1);
    }
    let jobs = std::iter::from_fn(|| reclaim.next_job(&mut core, LANE)).map(|job| job.superblock);
    assert_eq!(jobs.collect::<Vec<_>>(), [SuperblockId(2), SuperblockId(0)]);
}

#[test]
fn a_sampled_read_is_compared_with_the_limit_of_the_last_read_level() {
    // A read adds 0.001 to the RBER of its superblock. The last of four levels decodes an RBER below 0.0045, half of
    // which is 0.00225: after three reads the RBER is above this. Every second read is sampled, so the fourth read is
    // the first sampled read above the limit.
    let mut core = Setup { levels: 4, ..Setup::default() }.core();
    let mut reclaim = reclaim(&core, ReclaimPolicySpec::Rber { limit: 0.5, every: 2 });
    fill(&mut core, StreamId::HOST, 0..8);
    assert_eq!(sense(&mut core, &mut reclaim, SUPERBLOCK, 3), 0);
    assert_eq!(sense(&mut core, &mut reclaim, SUPERBLOCK, 1), 1);
    assert_eq!(reclaim.next_job(&mut core, LANE).map(|job| job.superblock), Some(SUPERBLOCK));
    assert_eq!(reclaim.stats, ReclaimStats { blocks: 1, pages: 4, samples: 2 });
}

#[test]
fn a_predicted_rber_at_the_limit_passes_it() {
    let mut core = Setup { levels: 4, ..Setup::default() }.core();
    fill(&mut core, StreamId::HOST, 0..8);
    core.flash_mut().superblock_mut(SUPERBLOCK).reads = 4;
    let (rber, last) = (core.rber_of(core.geometry().unit(SUPERBLOCK, 0)), core.ecc().limit());
    let limit = rber / last;
    assert_eq!(limit * last, rber);
    let mut reclaim = reclaim(&core, ReclaimPolicySpec::Rber { limit, every: 4 });
    core.flash_mut().superblock_mut(SUPERBLOCK).reads = 3;
    assert_eq!(sense(&mut core, &mut reclaim, SUPERBLOCK, 1), 1);
}

#[test]
fn a_limit_of_rber_needs_an_rber() {
    let sets = ["reclaim.policy=rber".to_owned()];
    let errors = spec::load(DRIVE, "test.toml", Path::new("."), &sets).expect_err("the spec has no RBER");
    assert!(
        errors.to_string().contains("\"rber\" has no effect with reliability.rber = \"none\""),
        "{errors}"
    );
}

#[test]
fn an_open_superblock_is_closed_early_and_reclaimed() {
    let mut core = Setup::default().core();
    let mut reclaim = reclaim(&core, ReclaimPolicySpec::Reads { limit: 2 });
    fill(&mut core, StreamId::HOST, 0..2);
    assert_eq!(core.superblock(SUPERBLOCK).state, SuperblockState::Open);
    assert_eq!(sense(&mut core, &mut reclaim, SUPERBLOCK, 2), 1);
    assert_eq!(reclaim.next_job(&mut core, LANE).map(|job| job.superblock), Some(SUPERBLOCK));
    assert_eq!(core.superblock(SUPERBLOCK).state, SuperblockState::Full);
    assert_eq!(reclaim.stats, ReclaimStats { blocks: 1, pages: 2, samples: 0 });
}

#[test]
fn a_superblock_that_was_erased_or_has_no_valid_units_is_not_reclaimed() {
    let mut core = Setup::default().core();
    let mut reclaim = reclaim(&core, ReclaimPolicySpec::Reads { limit: 2 });
    fill(&mut core, StreamId::HOST, 0..8);
    sense(&mut core, &mut reclaim, SUPERBLOCK, 2);
    clear(&mut core, SUPERBLOCK);
    // The free superblocks are filled until the erased superblock holds data again. Then this data is read once.
    while core.superblock(SUPERBLOCK).state != SuperblockState::Full {
        fill(&mut core, StreamId::GC, 0..4);
    }
    // A further free superblock, so that the lane has room for a job.
    clear(&mut core, SuperblockId(2));
    sense(&mut core, &mut reclaim, SUPERBLOCK, 1);
    assert!(reclaim.next_job(&mut core, LANE).is_none());
    sense(&mut core, &mut reclaim, SuperblockId(1), 2);
    for lpn in 4..8 {
        crate::core::testing::unmap(&mut core, lpn);
    }
    assert!(reclaim.next_job(&mut core, LANE).is_none());
    assert_eq!(reclaim.stats, ReclaimStats::default());
    assert!(reclaim.queues[0].is_empty());
}

#[test]
fn a_superblock_that_finds_no_free_superblock_is_queued_again_by_its_next_read() {
    let mut core = Setup::default().core();
    let mut reclaim = reclaim(&core, ReclaimPolicySpec::Reads { limit: 2 });
    // Eight superblocks of four units: the sixteen LPNs are written twice, so superblocks 0 to 3 hold no valid unit.
    // The host may not take the last superblock.
    fill(&mut core, StreamId::HOST, (0..16).chain(0..12));
    fill(&mut core, StreamId::GC, 12..16);
    let superblock = SuperblockId(4);
    sense(&mut core, &mut reclaim, superblock, 2);
    assert!(reclaim.next_job(&mut core, LANE).is_none(), "no superblock is free");
    clear(&mut core, SUPERBLOCK);
    assert_eq!(sense(&mut core, &mut reclaim, superblock, 1), 1);
    assert_eq!(reclaim.next_job(&mut core, LANE).map(|job| job.superblock), Some(superblock));
}

#[test]
fn power_loss_drops_the_queue_and_the_next_read_queues_the_superblock_again() {
    let mut core = Setup::default().core();
    let mut reclaim = reclaim(&core, ReclaimPolicySpec::Reads { limit: 2 });
    fill(&mut core, StreamId::HOST, 0..8);
    sense(&mut core, &mut reclaim, SUPERBLOCK, 2);
    reclaim.power_lost(&mut Offline::new(&mut core));
    assert!(reclaim.next_job(&mut core, LANE).is_none());
    assert_eq!(sense(&mut core, &mut reclaim, SUPERBLOCK, 1), 1);
    assert!(reclaim.next_job(&mut core, LANE).is_some());
}

// ------------------------------------------------------------------------------------------------------- whole drives

const UNIT: u64 = 4096;

/// One lane of 40 superblocks of 16 units.
const DRIVE: &str = "[drive]\nchannels = 1\nchips_per_channel = 1\ndies_per_chip = 1\nplanes_per_die = 1\n\
     blocks_per_plane = 40\npages_per_block = 16\npage_size = '4KiB'\ncell = 'mlc'\nop = 1.0\nendurance = 1000000\n\
     [timing]\nread = '50us'\nprogram = '900us'\nerase = '3.5ms'\nchannel_ns_per_byte = 2.5\ncommand = '0us'\n\
     decode = '15us'\n[ftl]\nwear_levelling = 'none'\n[reclaim]\npolicy.reads = { limit = 40 }\n";

fn load(sets: &[&str]) -> Spec {
    let sets: Vec<String> = sets.iter().map(|set| (*set).to_owned()).collect();
    spec::load(DRIVE, "test.toml", Path::new("."), &sets)
        .map_or_else(|errors| panic!("{errors}"), |found| found.spec)
}

/// A drive whose reads the oracle checks.
struct Bench(Drive<Oracle>);

impl Bench {
    fn new(sets: &[&str]) -> Self {
        Self(Drive::with_probe(&load(sets), Oracle::default()))
    }

    /// Submits a request of one unit, and simulates until it is completed. Returns the latency.
    fn one(&mut self, op: Op, lpn: u32) -> Span {
        let (arrival, offset) = (self.0.now(), u64::from(lpn) * UNIT);
        self.0.submit(&Request::new(op, offset, UNIT).at(arrival)).expect("the request fits");
        assert!(self.0.advance_to_completion(Time::NEVER));
        let done = self.0.completions().next().expect("a request is completed");
        assert!(done.failed.is_none(), "{done:?}");
        done.completed - arrival
    }

    fn write(&mut self, lpns: impl IntoIterator<Item = u32>) {
        lpns.into_iter().for_each(|lpn| _ = self.one(Op::Write, lpn));
    }

    fn rest(&mut self) {
        self.0.run_until_idle(IDLE_LIMIT).expect("the drive comes to rest");
        self.0.audit().expect("the drive is consistent");
        assert_eq!(self.0.probe().violations, [] as [String; 0]);
    }

    fn superblock(&self, lpn: u32) -> SuperblockId {
        self.0.geometry().superblock_of(self.0.ftl().map.get(Lpn(lpn)).expect("the LPN is mapped"))
    }

    fn reads(&self, lpn: u32) -> u32 {
        self.0.array().superblock(self.superblock(lpn)).reads
    }

    fn flash(&self, kind: FlashOp, cause: Cause) -> u64 {
        self.0.stats().flash[kind as usize][cause as usize]
    }

    fn reclaimed(&self) -> (u64, u64) {
        let stats = self.0.stats();
        (stats.reclaim.blocks, stats.reclaim.pages)
    }
}

#[test]
fn a_reclaim_reads_and_programs_every_valid_unit_and_erases_the_superblock() {
    let mut bench = Bench::new(&[]);
    bench.write(0..17);
    // Four units of the superblock are written again, to the superblock that LPN 16 has opened.
    bench.write(0..4);
    let superblock = bench.superblock(4);
    for _ in 0..39 {
        bench.one(Op::Read, 4);
    }
    bench.rest();
    assert_eq!((bench.reads(4), bench.reclaimed()), (39, (0, 0)));
    bench.one(Op::Read, 4);
    bench.rest();
    assert_eq!(bench.reclaimed(), (1, 12));
    for (kind, count) in
        [(FlashOp::Read, 12), (FlashOp::Program, 12), (FlashOp::Erase, 1), (FlashOp::Copyback, 0)]
    {
        assert_eq!(bench.flash(kind, Cause::Reclaim), count, "{kind:?}");
    }
    assert!(bench.superblock(4) != superblock && bench.reads(4) == 0);
    assert_eq!(bench.0.array().superblock(superblock).state, SuperblockState::Free);
    for lpn in 0..17 {
        bench.one(Op::Read, lpn);
    }
    bench.rest();
}

/// Together with LaLDPC.
#[test]
fn a_reclaimed_unit_is_read_at_level_1_again() {
    // A read adds 0.0002 to the RBER of its superblock. From 25 reads on the RBER is at least 0.005, so a higher level
    // is needed.
    let sets = [
        "ftl.map=demand",
        "ecc.levels='laldpc'",
        "ecc.start=last-level",
        "reliability.rber='vth'",
        "reliability.read_disturb=2e-4",
    ];
    let mut bench = Bench::new(&sets);
    bench.write(0..16);
    let young = bench.one(Op::Read, 0);
    let mut disturbed = young;
    while bench.reclaimed() == (0, 0) {
        disturbed = bench.one(Op::Read, 0);
    }
    bench.rest();
    assert_eq!(bench.reclaimed(), (1, 16));
    assert!(disturbed > young && bench.one(Op::Read, 0) == young, "{young:?} {disturbed:?}");
}

/// Together with LaLDPC: without reclaim the unit would become unreadable.
#[test]
fn reclaim_by_rber_moves_a_superblock_before_no_level_decodes_it() {
    let disturbed = |policy: &str| {
        let sets = [
            policy,
            "ecc.levels='laldpc'",
            "ecc.start=ideal",
            "reliability.rber='vth'",
            "reliability.read_disturb=1e-4",
        ];
        let mut bench = Bench::new(&sets);
        bench.write(0..16);
        for _ in 0..300 {
            let request = Request::read(0, UNIT).at(bench.0.now());
            bench.0.submit(&request).expect("the request fits");
            // A reclaim takes less than 30 ms.
            bench.0.advance(bench.0.now() + Span::from_ns(30_000_000));
            assert_eq!(bench.0.completions().len(), 1);
        }
        bench.rest();
        (bench.0.stats().ecc.uncorrectable, bench.reclaimed().0)
    };
    // The last level decodes an RBER below 0.013. Without reads a unit has an RBER of 0.0003 to 0.0004, so after 127
    // reads the RBER is too high: the other 173 of 300 reads fail.
    assert_eq!(disturbed("reclaim.policy=none"), (173, 0));
    // Eight tenths of the limit, 0.0104, are passed after 101 reads. The next sampled read is number 104, so 300 reads
    // cause two reclaims. The sixteen reads of the job disturb the superblock as well: with 120 reads it is still
    // readable.
    assert_eq!(disturbed("reclaim.policy.rber={ limit = 0.8, every = 8 }"), (0, 2));
    // With a limit of nine tenths the job begins at 120 reads, and its last units are lost by its own reads.
    let (lost, _) = disturbed("reclaim.policy.rber={ limit = 0.9, every = 8 }");
    assert!(lost > 0);
}

/// Together with partial refresh.
#[test]
fn a_reclaimed_superblock_of_linked_units_is_merged() {
    let mut bench = partially_refreshed(16);
    // The refresh has read the sixteen units once.
    assert_eq!(bench.reads(0), 16);
    for _ in 16..40 {
        bench.one(Op::Read, 0);
    }
    bench.rest();
    assert_eq!(bench.reclaimed(), (1, 16));
    assert_eq!(bench.0.partial_refresh().expect("refresh is partial").linked_pages, 0);
    assert_eq!(bench.0.stats().refresh.promoted_pages, 16);
    bench.one(Op::Read, 0);
}

/// Together with partial refresh.
#[test]
fn the_superblock_of_combination_pages_is_reclaimed_by_the_reads_of_the_linked_units() {
    let mut bench = partially_refreshed(32);
    // Two base superblocks have been read sixteen times each by their refresh. Twenty host reads of a unit of each base
    // superblock read the superblock of the two combination pages forty times.
    for _ in 0..20 {
        bench.one(Op::Read, 0);
        bench.one(Op::Read, 16);
    }
    bench.rest();
    assert_eq!((bench.reads(0), bench.reads(16)), (36, 36));
    assert_eq!(bench.reclaimed(), (1, 2));
    assert_eq!(bench.0.partial_refresh().expect("refresh is partial").linked_pages, 32);
    for lpn in 0..32 {
        bench.one(Op::Read, lpn);
    }
    bench.rest();
}

/// A drive with `units` units in full superblocks, all of them linked to combination pages. A line of the VSM takes
/// sixteen units.
fn partially_refreshed(units: u32) -> Bench {
    let sets = [
        "ecc.levels='laldpc'",
        "reliability.rber='vth'",
        "reliability.pe_cycles=1500",
        "reliability.clock_scale=86400.0",
        "refresh.interval=[{ pe = 1000000, every = '10d' }]",
        "refresh.policy.partial={ susceptible_ratio = 0.0, encoding = 'entries', codeword_bits = 128 }",
        "gc.foreground_free=0.0",
        "gc.background_free=0.001",
    ];
    let mut bench = Bench::new(&sets);
    bench.write(0..units);
    // A day takes a second, so the superblocks are due after ten seconds.
    bench.0.advance(Time::START + Span::from_ns(10_500_000_000));
    assert_eq!(bench.0.partial_refresh().expect("refresh is partial").linked_pages, u64::from(units));
    bench
}

/// Together with rcopyback.
#[test]
fn reclaim_moves_units_off_chip_while_gc_copies_units_back() {
    let mut bench = Bench::new(&[
        "migration.policy.rcopyback-greedy={ limit = 3 }",
        "gc.foreground_free=0.2",
        "gc.background_free=0.3",
    ]);
    let units = bench.0.geometry().logical_units;
    bench.write(0..units);
    // Reads of a unit that is never written again, among writes that make GC copy its superblock back.
    let mut round = 0;
    while bench.flash(FlashOp::Program, Cause::Reclaim) < 64 {
        bench.write((0..units).filter(|lpn| lpn % 4 == round % 3 + 1));
        for _ in 0..8 {
            bench.one(Op::Read, 0);
        }
        round += 1;
        assert!(round < 100, "the reads of LPN 0 reach the limit");
    }
    bench.rest();
    assert!(bench.flash(FlashOp::Copyback, Cause::Gc) > 0);
    assert_eq!(bench.flash(FlashOp::Copyback, Cause::Reclaim), 0);
}

/// Together with the capacitor-aware write cache.
#[test]
fn reads_that_hit_the_write_cache_disturb_no_superblock() {
    let mut bench = Bench::new(&["cache.size=256KiB"]);
    bench.write(0..16);
    for _ in 0..100 {
        bench.one(Op::Read, 0);
    }
    bench.rest();
    assert_eq!(bench.reclaimed(), (0, 0));
}

/// Together with power loss, with and without a capacitor.
#[test]
fn a_reclaim_that_power_loss_interrupts_is_begun_again_and_loses_nothing() {
    for capacitor in ["0F", "75mF"] {
        let mut bench = Bench::new(&[&format!("capacitor.capacitance='{capacitor}'")]);
        bench.write(0..17);
        for _ in 0..40 {
            bench.one(Op::Read, 0);
        }
        while bench.flash(FlashOp::Program, Cause::Reclaim) < 3 {
            assert!(bench.0.advance_unless_at_rest());
        }
        bench.0.cut_power();
        assert_eq!(bench.flash(FlashOp::Erase, Cause::Reclaim), 0);
        // The superblock still holds the units that were not moved.
        bench.one(Op::Read, 15);
        bench.rest();
        assert_eq!(bench.reclaimed().0, 2);
        assert_eq!(bench.flash(FlashOp::Erase, Cause::Reclaim), 1);
        for lpn in 0..17 {
            bench.one(Op::Read, lpn);
        }
    }
}
