//! The superblocks that a lane needs. With exactly the superblocks of `SuperblockNeeds` writes can always proceed; with
//! one superblock fewer there is a state in which no write can. Both are tested for each mechanism alone, and for all
//! mechanisms together.

use crate::common::{IDLE, MS, at, oracle_and, request, seen, spec};
use nandlab::base::geometry::{DieId, LaneId, Lpn};
use nandlab::base::rng::Stream;
use nandlab::base::units::Time;
use nandlab::drive::spec::{Spec, superblock_needs};
use nandlab::drive::{Drive, Failure};
use nandlab::flash::{DEAD_LPN, Stamp};
use nandlab::ftl::StreamId;
use nandlab::ftl::needs::SuperblockNeeds;
use nandlab::host::{Op, Oracle};
use nandlab::probe::Probe;
use nandlab::sched::{FlashOp, Phase, Transaction, Watcher};

/// Units of a superblock.
const UNITS: u64 = 4;
/// Valid units of the host and of the map, a whole number of superblocks.
const VALID: u64 = 32;

/// Returns the spec of a drive of one plane with `settings`, and its needs. The plane has `more` superblocks beyond
/// those of `SuperblockNeeds`, or fewer if `more` is negative.
fn drive(settings: &[&str], more: i64) -> (Spec, SuperblockNeeds) {
    let text = "[drive]\nchannels = 1\nchips_per_channel = 1\ndies_per_chip = 1\nplanes_per_die = 1\nblocks_per_plane = 64\npages_per_block = 4\n\
                page_size = '4KiB'\nop = 4.0\nendurance = 1000000\n[gc]\nidle_after = '1h'\n";
    let mut spec = spec(text, settings);
    let needs = superblock_needs(&spec);
    let logical = VALID - needs.of("mapping").valid_units;
    // The needs depend only on the number of logical units, which is the same for any number of superblocks.
    let mut set = |superblocks: u64| {
        spec.drive.blocks_per_plane = superblocks as u32;
        spec.drive.op = (superblocks * UNITS) as f64 / (logical as f64 + 0.5) - 1.0;
        spec.clone()
    };
    let least = (VALID / UNITS) + superblock_needs(&set(64)).superblocks();
    let exact = set(least);
    assert!(superblock_needs(&exact).fit(least) && !superblock_needs(&exact).fit(least - 1));
    let spec = set(least.checked_add_signed(more).expect("the number of blocks is positive"));
    let needs = superblock_needs(&spec);
    assert_eq!((needs.host_units, needs.valid_units()), (logical, VALID));
    (spec, needs)
}

/// Returns a drive without spare units for the host: each internal stream has an open superblock with one dead unit,
/// and all superblocks that the host's stream may take are full of valid units.
fn without_spare_units(spec: &Spec, needs: &SuperblockNeeds) -> Drive<Oracle> {
    let mut drive = Drive::with_probe(spec, Oracle::default());
    let geometry = drive.geometry().clone();
    let (array, ftl) = drive.parts_mut();
    // The host writes to the open superblock in SLC mode as long as it has units left.
    let slc = ftl.streams.slc();
    let is_written = |stream: StreamId| stream == StreamId::HOST || Some(stream) == slc;
    let streams: Vec<StreamId> = ftl.streams.ids().filter(|&stream| !is_written(stream)).collect();
    assert_eq!(streams.len() as u64, needs.open());
    let (lane, stamp) = (LaneId(0), Stamp::default());
    for stream in streams {
        let place = ftl.allocate(array, lane, stream).expect("there are free superblocks");
        let (superblock, index) = geometry.split(place.unit);
        array.stage(place.unit, Lpn(DEAD_LPN), stamp);
        array.program(superblock, index);
    }
    // Each superblock of the static part has two units, of which one is valid.
    let held = static_superblocks(needs) as u32;
    for number in 0..2 * held {
        let slc = ftl.streams.slc().expect("the SLC cache holds units");
        let place = ftl.allocate(array, lane, slc).expect("the static part has room");
        let (superblock, index) = geometry.split(place.unit);
        let is_valid = number % 2 == 0;
        array.stage(place.unit, Lpn(if is_valid { number / 2 } else { DEAD_LPN }), stamp);
        if is_valid {
            ftl.remap(array, Lpn(number / 2), place.unit);
        }
        if array.program(superblock, index) == 2 {
            ftl.close(array, superblock, Time::START);
        }
    }
    let map_units = needs.of("mapping").valid_units as u32;
    for lpn in (held..geometry.logical_units + map_units).map(Lpn) {
        let place = ftl.allocate(array, lane, StreamId::HOST).expect("the host has room");
        let (superblock, index) = geometry.split(place.unit);
        array.stage(place.unit, lpn, stamp);
        ftl.remap(array, lpn, place.unit);
        if array.program(superblock, index) == geometry.units_per_superblock {
            ftl.close(array, superblock, Time::START);
        }
    }
    let inner = drive.inner_mut();
    if let Some(demand) = inner.demand {
        demand.trust_flash(&inner.ftl.map);
    }
    drive.expect_preconditioned(|oracle| oracle);
    drive
}

/// Superblocks of the static part of an SLC cache.
fn static_superblocks(needs: &SuperblockNeeds) -> u64 {
    needs.of("slc").free
}

fn write(drive: &mut Drive<Oracle>, lpn: u64) {
    let write = request(drive, Op::Write, lpn * 4096, 4096).with_fua(true);
    drive.submit(&write).unwrap();
    while drive.outstanding() > 0 && drive.advance_unless_at_rest() {}
}

/// Each mechanism with its settings, and the open superblocks and the superblocks kept free that it adds to the needs
/// of a drive without mechanisms.
const MECHANISMS: [(&str, &[&str], u64, u64); 9] = [
    ("GC alone", &[], 0, 0),
    // Two handles more, and GC of the persistently isolated one.
    (
        "placement handles",
        &["placement.handles=3", "placement.isolation=['initial', 'persistent', 'initial']"],
        3,
        0,
    ),
    ("static wear levelling", &["ftl.wear_levelling='static'"], 1, 0),
    ("a demand map", &["ftl.map={ demand = { cache = '64B' } }"], 1, 1),
    ("copybacks", &["migration.policy={ rcopyback = { limit = 3 } }"], 3, 1),
    (
        "partial refresh",
        &[
            "refresh.policy={ partial = { susceptible_ratio = 0.01 } }",
            "refresh.interval=[{ pe = 1000000, every = '3650d' }]",
        ],
        1,
        1,
    ),
    // At power loss the two units of the cache take one superblock of the lane; GC may have taken another one.
    ("a capacitor", &["cache.size='8KiB'", "cache.flush_to=flash", "capacitor.capacitance='60mF'"], 0, 2),
    // A superblock in SLC mode has two units. All of them but those of the static part are folded when space is short.
    ("a dynamic SLC cache", &["slc.dynamic=1.0"], 0, 0),
    ("a static SLC cache of four superblocks", &["slc.static='32KiB'"], 0, 4),
];

fn with(settings: &[&str]) -> Vec<String> {
    settings.iter().map(|setting| (*setting).to_owned()).collect()
}

fn check(name: &str, settings: &[&str]) {
    let (spec, needs) = drive(settings, 0);
    let mut exact = without_spare_units(&spec, &needs);
    let mut stream = Stream::new(7, "space");
    for _ in 0..600 {
        write(&mut exact, stream.below(needs.host_units));
        assert!(exact.failure().is_none(), "{name}: {}", exact.failure().expect("the drive has failed"));
    }
    assert_eq!(exact.stats().failed, [0; 3], "{name}");
    exact.audit().unwrap_or_else(|e| panic!("{name}: {e}"));
    exact.probe().verdict().unwrap_or_else(|e| panic!("{name}: {e}"));
    // The need does not count on the valid units in the static part of an SLC cache.
    let held = static_superblocks(&needs);
    let (spec, needs) = drive(settings, -1 - (held / UNITS) as i64);
    let mut short = without_spare_units(&spec, &needs);
    // The static part of an SLC cache is full.
    assert_eq!(u64::from(short.ftl().lanes[0].free.len()), needs.free() - held, "{name}");
    write(&mut short, needs.host_units - 1);
    let failure =
        short.failure().unwrap_or_else(|| panic!("{name}: a write succeeds with one superblock fewer"));
    assert!(matches!(failure, Failure::Shortage { lane: LaneId(0), .. }), "{name}: {failure}");
}

#[test]
fn each_mechanism_needs_exactly_its_superblocks() {
    let (_, base) = drive(&[], 0);
    assert_eq!(
        (base.open(), base.free()),
        (1, 1),
        "GC does not need one open superblock and one superblock kept free"
    );
    for (name, settings, open, free) in MECHANISMS {
        let (_, needs) = drive(settings, 0);
        assert_eq!((needs.open() - base.open(), needs.free() - base.free()), (open, free), "{name}");
        check(name, settings);
    }
}

#[test]
fn all_mechanisms_together_need_the_sum_of_their_superblocks() {
    // An SLC cache excludes placement handles.
    let others = MECHANISMS.iter().filter(|(name, ..)| !name.contains("SLC"));
    let all: Vec<String> = others.flat_map(|(_, settings, ..)| with(settings)).collect();
    let all: Vec<&str> = all.iter().map(String::as_str).collect();
    let (_, needs) = drive(&all, 0);
    // A flush may leave a superblock of each handle part-filled.
    assert_eq!((needs.open(), needs.free()), (1 + 3 + 1 + 1 + 3 + 1, 1 + 1 + 1 + 1 + 2 + 2));
    check("all", &all);
}

/// A superblock without valid units is erased at once, without a job; until then it counts as free for GC's trigger.
#[test]
fn a_dead_superblock_is_erased_without_a_job() {
    let (spec, needs) = drive(&[], 8);
    let mut drive = without_spare_units(&spec, &needs);
    let erases = |drive: &Drive<Oracle>| drive.stats().flash.map(|by_cause| by_cause.iter().sum::<u64>())[2];
    let (victims, before) = (drive.stats().gc.victims, erases(&drive));
    // The first superblock holds LPNs 0 to 3.
    for lpn in 0..UNITS {
        write(&mut drive, lpn);
    }
    assert_eq!(drive.stats().gc.dead_blocks, 1);
    drive.advance(at(drive.now().ns() + 20 * MS));
    assert_eq!((erases(&drive) - before, drive.stats().gc.victims - victims), (1, 0));
    drive.run_until_idle(IDLE).unwrap();
}

/// Regression: a job of partial refresh, whose superblock stays, takes a free superblock for units that it writes
/// elsewhere, and frees none. During such a job the host took this superblock, and the job took GC's superblock. So a
/// drive with enough garbage could not proceed.
#[test]
fn a_superblock_promised_to_a_job_is_not_allocated_to_others() {
    let (spec, _) = drive(&["ftl.map.demand={ cache = '64B' }"], 8);
    let mut drive: Drive = Drive::new(&spec);
    let lane = LaneId(0);
    let (array, ftl) = drive.parts_mut();
    while ftl.lanes[0].free.len() > ftl.reserve_superblocks + 1 {
        ftl.allocate(array, lane, StreamId::GC).unwrap();
    }
    assert!(ftl.has_room(lane, StreamId::HOST) && ftl.has_mapping_room(lane));
    ftl.lanes[0].promised_superblocks = 1;
    assert!(!ftl.has_room(lane, StreamId::HOST));
    assert_eq!(ftl.allocate(array, lane, StreamId::HOST), None);
    while ftl.lanes[0].free.len() > 2 {
        ftl.allocate(array, lane, StreamId::GC).unwrap();
    }
    assert!(!ftl.has_mapping_room(lane));
    ftl.lanes[0].promised_superblocks = 0;
    assert!(ftl.has_mapping_room(lane));
    let state = &mut ftl.lanes[0];
    state.promised_superblocks = 1;
    while ftl.lanes[0].free.len() > 1 {
        ftl.allocate(array, lane, StreamId::GC).unwrap();
    }
    assert!(
        ftl.allocate(array, lane, StreamId::GC).is_some(),
        "the job does not get the promised superblock"
    );
}

/// Refresh falls behind, so it erases superblock after superblock. The host's write gets no unit, because the reserve
/// is larger than the drive.
#[test]
fn a_drive_fails_after_16_erases_per_superblock_that_give_a_waiting_write_no_unit() {
    // A superblock comes due every 605 us. The refresh of its four units takes more than 4 x 200 us.
    let text = "[drive]\nchannels = 1\nchips_per_channel = 1\ndies_per_chip = 1\nplanes_per_die = 1\n\
                blocks_per_plane = 8\npages_per_block = 4\npage_size = '4KiB'\ncell = 'slc'\nop = 1.0\n\
                endurance = 1000000\n[timing]\nprogram = '200us'\nerase = '1ms'\n\
                [reliability]\nclock_scale = 1e9\n\
                [refresh]\npolicy = 'fcr'\ninterval = [{ pe = 1000000, every = '7d' }]\n";
    let mut drive: Drive = Drive::new(&spec(text, &[]));
    let submit = |drive: &mut Drive, lpn: u64| {
        let write = request(drive, Op::Write, lpn * 4096, 4096);
        drive.submit(&write).unwrap();
    };
    // Two full superblocks.
    for lpn in 0..8 {
        submit(&mut drive, lpn);
        assert!(drive.advance_to_completion(Time::NEVER));
    }
    drive.parts_mut().1.lanes[0].reserve_superblocks = 9;
    submit(&mut drive, 8);
    let failure = drive.run_until_idle(IDLE).unwrap_err();
    assert_eq!(failure, Failure::InVain { erases: 16 * 8 + 1 });
}

/// Power fails at each event in turn, on a drive without a capacitor whose GC shares the open superblock of the host. A
/// torn program takes a unit of the open superblock that GC needs if the lane has no free superblock.
#[test]
fn gc_in_a_shared_superblock_continues_after_a_torn_program() {
    const CUTS: u64 = 600;
    let (spec, needs) = drive(&["migration.first_block='shared'", "gc.pacing='none'", "drive.cell='slc'"], 0);
    assert_eq!(spec.capacitor.capacitance_f, 0.0);
    let (mut torn, mut torn_without_free_superblock) = (0, 0);
    for cut in 0..CUTS {
        let mut drive = Drive::with_probe(&spec, Oracle::default());
        let mut stream = Stream::new(7, "shared");
        for lpn in 0..needs.host_units {
            write(&mut drive, lpn);
        }
        for _ in 0..200 + cut {
            while drive.outstanding() < 8 {
                let lpn = stream.below(needs.host_units);
                let request = request(&drive, Op::Write, lpn * 4096, 4096);
                drive.submit(&request).unwrap();
            }
            assert!(drive.advance_unless_at_rest(), "cut {cut}: {:?}", drive.failure());
            drive.completions();
        }
        let has_free_superblock = !drive.ftl().lanes[0].free.is_empty();
        let loss = drive.cut_power();
        torn += loss.torn_programs;
        torn_without_free_superblock += if has_free_superblock { 0 } else { loss.torn_programs };
        for _ in 0..60 {
            write(&mut drive, stream.below(needs.host_units));
            assert!(drive.failure().is_none(), "cut {cut}: {:?}", drive.failure());
        }
        drive.audit().unwrap_or_else(|e| panic!("cut {cut}: {e}"));
    }
    println!("{torn} programs torn, {torn_without_free_superblock} of these without a free superblock");
    assert!(torn > torn_without_free_superblock && torn_without_free_superblock > 20);
}

/// A drive of one plane with 16 translation pages, a cache of few map entries, and the fewest superblocks that it
/// needs.
fn with_translation_pages(cell: &str) -> (Spec, SuperblockNeeds) {
    const LOGICAL: u64 = 2048;
    let text = "[drive]\nchannels = 1\nchips_per_channel = 1\ndies_per_chip = 1\nplanes_per_die = 1\n\
                blocks_per_plane = 2048\npages_per_block = 4\npage_size = '512B'\nop = 3.0\nendurance = 1000000\n\
                [gc]\nidle_after = '1h'\npacing = 'none'\n[ftl]\nmap = { demand = { cache = '64B' } }\n";
    let mut spec = spec(text, &[cell]);
    let mut set = |superblocks: u64| {
        spec.drive.blocks_per_plane = superblocks as u32;
        spec.drive.op = (superblocks * UNITS) as f64 / (LOGICAL as f64 + 0.5) - 1.0;
        spec.clone()
    };
    let least = (LOGICAL / UNITS..)
        .find(|&superblocks| superblock_needs(&set(superblocks)).fit(superblocks))
        .unwrap();
    let spec = set(least);
    let needs = superblock_needs(&spec);
    assert_eq!((needs.host_units, needs.of("mapping").valid_units), (LOGICAL, 16));
    (spec, needs)
}

/// A probe that keeps the LPN of the program whose array phase began last, on the only die.
#[derive(Debug, Default)]
struct Begun(Option<Lpn>);

impl Watcher for Begun {
    fn on_phase(&mut self, _: Time, _: Time, _: DieId, _: u32, phase: Phase, transaction: &Transaction) {
        if phase == Phase::Array {
            let programs = transaction.kind == FlashOp::Program;
            self.0 = programs.then_some(transaction.lpn);
        }
    }
}

impl Probe for Begun {}

/// Power fails whenever a translation page is being programmed while the lane has no free superblock: a job may take
/// the last free superblock for translation pages, and the map writes further translation pages to it. The torn program
/// takes units of this superblock that GC needs.
#[test]
fn translation_pages_in_the_last_free_superblock_leave_gc_room_after_a_torn_program() {
    let mut torn = [0; 2];
    for (cell, torn) in ["drive.cell='slc'", "drive.cell='mlc'"].iter().zip(&mut torn) {
        let (spec, needs) = with_translation_pages(cell);
        for seed in 0..20 {
            let mut drive = Drive::with_probe(&spec, oracle_and(Begun::default()));
            let mut stream = Stream::new(seed, "translation");
            for lpn in 0..needs.host_units {
                drive.write_now(Lpn(lpn as u32));
            }
            drive.settle();
            let mut quiet = 0;
            for event in 0..6000 {
                while drive.outstanding() < 8 {
                    let lpn = stream.below(needs.host_units);
                    let request = request(&drive, Op::Write, lpn * 512, 512);
                    drive.submit(&request).unwrap();
                }
                let failure = drive.failure().cloned();
                assert!(drive.advance_unless_at_rest(), "{cell} {seed} {event}: {failure:?}");
                drive.completions();
                let begun =
                    seen::<Begun>(&drive).0.filter(|_| drive.device().phase(DieId(0)) == Phase::Array);
                let is_translation =
                    begun.is_some_and(|lpn| lpn.0 != DEAD_LPN && u64::from(lpn.0) >= needs.host_units);
                if is_translation && drive.ftl().lanes[0].free.is_empty() && event >= quiet {
                    let loss = drive.cut_power();
                    *torn += loss.torn_programs;
                    drive.completions();
                    drive.audit().unwrap_or_else(|e| panic!("{cell} {seed} {event}: {e}"));
                    quiet = event + stream.below(400);
                }
            }
        }
    }
    println!("{torn:?} translation pages torn in a lane without a free superblock");
    assert!(torn.iter().all(|&torn| torn > 100));
}
