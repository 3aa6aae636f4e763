//! The demand map (DFTL: Gupta, Kim, Urgaonkar, ASPLOS 2009): the cost of misses, evictions, GC jobs and TRIMs,
//! compared with calculations by hand, and the consistency of the map.
//!
//! A page has 512 bytes, so a translation page holds 128 entries. tR is 50 us, the transfer of a page 1.28 us, decoding
//! 15 us, tPROG 900 us. So a read takes 66.28 us and a write 901.28 us.

use crate::common::{ns, one, read_everything, request, settle, spec, with_oracle};
use nandlab::base::geometry::{DieId, LaneId, Lpn, RequestId, SuperblockId};
use nandlab::base::rng::Stream;
use nandlab::base::units::Time;
use nandlab::demand_map::WriteBack;
use nandlab::drive::spec::{Arrival, Beyond, Spec};
use nandlab::drive::{Completion, Drive};
use nandlab::flash::{DEAD_LPN, Stamp, SuperblockState};
use nandlab::ftl::StreamId;
use nandlab::host::{Op, Oracle, Request};
use nandlab::probe::Probe;
use nandlab::runner::{Runner, Source, map_reads};
use nandlab::sched::{Cause, FlashOp, Transaction, Watcher};
use std::collections::BTreeMap;

const PAGE: u64 = 512;
const READ: u64 = 66_280;
const WRITE: u64 = 901_280;
const ENTRIES: u64 = 128;

/// One plane of 40 blocks of 16 pages, 320 logical pages, 3 translation pages.
const ONE_PLANE: &str = "[drive]\nchannels = 1\nchips_per_channel = 1\ndies_per_chip = 1\nplanes_per_die = 1\n\
     blocks_per_plane = 40\npages_per_block = 16\npage_size = '512B'\ncell = 'mlc'\nop = 1.0\nendurance = 1000000\n\
     [timing]\nprogram = '900us'\nerase = '3.5ms'\nchannel_ns_per_byte = 2.5\ncommand = '0us'\n\
     [ftl]\nmap = { demand = { cache = '32B' } }\n[gc]\nidle_after = '10s'\n";

fn one_plane(entries: u32, sets: &[&str]) -> Spec {
    let cache = format!("ftl.map={{ demand = {{ cache = '{}B' }} }}", 8 * entries);
    spec(ONE_PLANE, &[&[cache.as_str()], sets].concat())
}

/// Two planes on two channels: the first plane has the even LPNs and the even translation pages.
fn two_planes(entries: u32, sets: &[&str]) -> Spec {
    one_plane(entries, &[&["drive.channels=2"], sets].concat())
}

fn read<P: Probe>(drive: &mut Drive<P>, lpn: u64) -> u64 {
    one(drive, Op::Read, lpn * PAGE, PAGE)
}

/// Writes a page and lets the drive come to rest; returns the latency of the write.
fn write<P: Probe>(drive: &mut Drive<P>, lpn: u64) -> u64 {
    let latency = one(drive, Op::Write, lpn * PAGE, PAGE);
    drive.run_until_idle(nandlab::drive::IDLE_LIMIT).unwrap();
    latency
}

fn flash<P: Probe>(drive: &Drive<P>, kind: FlashOp, cause: Cause) -> u64 {
    drive.stats().flash[kind as usize][cause as usize]
}

/// Returns the numbers of translation pages read and programmed.
fn mapping<P: Probe>(drive: &Drive<P>) -> (u64, u64) {
    (flash(drive, FlashOp::Read, Cause::Mapping), flash(drive, FlashOp::Program, Cause::Mapping))
}

/// Returns a drive on which `lpns` and their translation pages are written, without simulated time.
fn prefilled<P: Probe>(spec: &Spec, probe: P, lpns: impl Iterator<Item = u32>) -> Drive<P> {
    let mut drive = Drive::with_probe(spec, probe);
    lpns.for_each(|lpn| _ = drive.write_now(Lpn(lpn)));
    drive.settle();
    drive
}

/// Checks that at rest no translation page is stale, waiting or being written back.
fn nothing_is_stale<P: Probe>(drive: &Drive<P>) {
    let pages = &drive.demand_map().unwrap().pages;
    for (number, page) in pages.iter().enumerate() {
        assert!(
            !page.is_stale && !page.is_deferred && !page.write_back_again,
            "translation page {number}: {page:?}"
        );
        assert!(page.waiting.is_empty() && page.write_back == WriteBack::None, "translation page {number}");
    }
}

#[test]
fn a_miss_costs_one_translation_read_and_a_hit_none() {
    let mut drive = prefilled(&one_plane(4, &[]), Oracle::default(), 0..200);
    assert_eq!([read(&mut drive, 0), read(&mut drive, 0)], [2 * READ, READ]);
    assert_eq!(mapping(&drive), (1, 0));
    // A miss of another entry of that translation page needs another read, and so does a miss of another translation
    // page.
    assert_eq!([read(&mut drive, 1), read(&mut drive, 130)], [2 * READ, 2 * READ]);
    assert_eq!(mapping(&drive), (3, 0));
    assert_eq!((drive.stats().map.read_hits, drive.stats().map.read_misses), (1, 3));
    // A write that misses waits for a read of the translation page; a write that hits does not.
    assert_eq!([write(&mut drive, 2), write(&mut drive, 2)], [READ + WRITE, WRITE]);
    assert_eq!(mapping(&drive), (4, 0));
    // A partial write looks up its entry once: it reads the translation page, then the old data, and then programs.
    assert_eq!(one(&mut drive, Op::Write, 150 * PAGE, PAGE - 1), 2 * READ + WRITE);
    settle(&mut drive);
}

#[test]
fn misses_of_one_translation_page_share_its_read() {
    let mut drive = prefilled(&two_planes(8, &[]), Oracle::default(), 0..200);
    for lpn in 0..2 {
        let read = request(&drive, Op::Read, lpn * PAGE, PAGE);
        drive.submit(&read).unwrap();
    }
    drive.run_until_idle(nandlab::drive::IDLE_LIMIT).unwrap();
    let ends: Vec<u64> = drive.completions().map(|done| done.completed.ns()).collect();
    assert_eq!((ends, mapping(&drive)), (vec![2 * READ, 2 * READ], (1, 0)));
    // Misses of two translation pages need two reads, which run in parallel on two dies.
    let start = drive.now();
    for lpn in [3, 128] {
        let read = request(&drive, Op::Read, lpn * PAGE, PAGE);
        drive.submit(&read).unwrap();
    }
    drive.run_until_idle(nandlab::drive::IDLE_LIMIT).unwrap();
    let ends: Vec<u64> = drive.completions().map(|done| (done.completed - start).ns()).collect();
    assert_eq!((ends, mapping(&drive)), (vec![2 * READ, 2 * READ], (3, 0)));
    settle(&mut drive);
}

#[test]
fn with_each_every_miss_reads_its_translation_page() {
    // On two planes, each with a die: LPNs 0 and 2 and translation page 0 are on one die, LPN 1 is on the other. A read
    // occupies its die for 50 + 1.28 us, and is decoded 15 us later.
    const DIE: u64 = READ - 15_000;
    let ends_after = |lpns: &[u64], miss: &str| {
        let set = format!("ftl.map.demand.miss={miss}");
        let mut drive = prefilled(&two_planes(8, &[&set]), Oracle::default(), 0..200);
        for lpn in lpns {
            let read = request(&drive, Op::Read, lpn * PAGE, PAGE);
            drive.submit(&read).unwrap();
        }
        drive.run_until_idle(nandlab::drive::IDLE_LIMIT).unwrap();
        let ends: Vec<u64> = drive.completions().map(|done| done.completed.ns()).collect();
        let (reads, misses) = (mapping(&drive).0, drive.stats().map.read_misses);
        settle(&mut drive);
        (ends, reads, misses)
    };
    // The die of the translation page senses it for LPN 0, then for LPN 1, then the data of LPN 0. The data of LPN 1 is
    // read on the other die when the second read of the translation page has been decoded.
    assert_eq!(ends_after(&[0, 1], "shared"), (vec![2 * READ, 2 * READ], 1, 2));
    assert_eq!(ends_after(&[0, 1], "each"), (vec![2 * DIE + READ, DIE + 2 * READ], 2, 2));
    // Two requests for the same LPN: both miss, and both read the data, one after the other.
    assert_eq!(ends_after(&[2, 2], "shared"), (vec![2 * READ, DIE + 2 * READ], 1, 2));
    assert_eq!(ends_after(&[2, 2], "each"), (vec![2 * DIE + READ, 3 * DIE + READ], 2, 2));
}

#[test]
fn a_miss_of_a_translation_page_that_was_never_written_costs_no_read() {
    let mut drive = with_oracle(&one_plane(4, &[]));
    assert_eq!([read(&mut drive, 5), write(&mut drive, 5), read(&mut drive, 7)], [0, WRITE, 0]);
    assert_eq!(mapping(&drive), (0, 0));
    assert_eq!(drive.stats().map.read_misses, 2);
    settle(&mut drive);
}

#[test]
fn a_dirty_eviction_writes_back_all_dirty_entries_of_its_translation_page() {
    let mut drive = with_oracle(&one_plane(3, &[]));
    (0..3).for_each(|lpn| _ = write(&mut drive, lpn));
    assert_eq!(mapping(&drive), (0, 0), "three dirty entries do not fit in the cache");
    // The entry of LPN 3 evicts that of LPN 0. The write-back also makes the entries of LPNs 1 and 2 clean.
    write(&mut drive, 3);
    assert_eq!((mapping(&drive), drive.stats().map.written_entries), ((0, 1), 2));
    nothing_is_stale(&drive);
    // The eviction of clean entries costs nothing; each miss costs a read.
    write(&mut drive, 4);
    write(&mut drive, 5);
    assert_eq!(mapping(&drive), (2, 1));
    assert_eq!((drive.stats().map.evictions, drive.stats().map.dirty_evictions), (3, 1));
    // The evicted entry of LPN 3 is dirty: the miss takes a read, the write-back a read and a program. LPN 6 is mapped
    // before that program, so its entry is written together with those of LPNs 4 and 5.
    write(&mut drive, 6);
    assert_eq!((mapping(&drive), drive.stats().map.written_entries), ((4, 2), 5));
    assert_eq!((drive.stats().map.dirty_evictions, drive.stats().map.write_backs), (2, 2));
    settle(&mut drive);
}

#[test]
fn a_miss_of_a_translation_page_that_is_being_programmed_is_served_from_ram() {
    let mut drive = with_oracle(&one_plane(1, &[]));
    write(&mut drive, 0);
    // The entry of LPN 0 is evicted: from now on its translation page is being programmed.
    let second = request(&drive, Op::Write, PAGE, PAGE);
    drive.submit(&second).unwrap();
    assert_eq!(drive.demand_map().unwrap().pages[0].write_back, WriteBack::Program);
    let third = request(&drive, Op::Read, 9 * PAGE, PAGE);
    drive.submit(&third).unwrap();
    // The dirty entry of LPN 1 has been evicted as well: its translation page is written again after the program under
    // way.
    assert_eq!(drive.outstanding(), 1, "the read is not completed at once");
    assert!(drive.demand_map().unwrap().pages[0].write_back_again);
    settle(&mut drive);
    assert_eq!(mapping(&drive), (1, 2));
    nothing_is_stale(&drive);
}

/// The oracle, and the operations issued, in order: kind, cause, LPN.
#[derive(Default)]
struct Issued(Oracle, Vec<(FlashOp, Cause, u32)>);

impl Watcher for Issued {
    fn on_issue(&mut self, _: Time, _: DieId, t: &Transaction) {
        self.1.push((t.kind, t.cause, t.lpn.0));
    }
}

impl Probe for Issued {
    fn needs_sequences(&self) -> bool {
        true
    }
    fn on_write_admitted(&mut self, request: Option<RequestId>, lpn: Lpn, sequence: u64) {
        self.0.on_write_admitted(request, lpn, sequence);
    }
    fn on_write_acknowledged(&mut self, lpn: Lpn, sequence: u64) {
        self.0.on_write_acknowledged(lpn, sequence);
    }
    fn on_trimmed(&mut self, request: RequestId, lpn: Lpn, sequence: u64) {
        self.0.on_trimmed(request, lpn, sequence);
    }
    fn on_read_asked(&mut self, request: RequestId, lpn: Lpn) {
        self.0.on_read_asked(request, lpn);
    }
    fn on_read_answered(&mut self, request: RequestId, lpn: Lpn, sequence: Option<u64>) {
        self.0.on_read_answered(request, lpn, sequence);
    }
}

/// The LPNs of one full block: LPN 0 twice, 5 other LPNs of the first translation page, 6 of the second, 3 of the
/// third.
const VICTIM: [u32; 16] = [0, 0, 1, 2, 3, 4, 5, 128, 129, 130, 131, 132, 133, 256, 257, 258];

/// Reads the LPNs in `cached`, writes LPN 0, and lets idle GC move the other 14 pages of its block. Idle GC begins only
/// when the garbage exceeds the 32 pages of the blocks that may be open for GC and for translation pages. So 48 blocks
/// of other translation pages have one invalid page each; they have too many valid pages to be victims.
fn gc_of_one_superblock(entries: u32, cached: &[u64]) -> Drive<Issued> {
    let sets = [
        "drive.blocks_per_plane=160",
        "gc.idle_after=1ms",
        "gc.background_free=0.999",
        "gc.idle_valid_max=0.9",
    ];
    let others = (384..384 + 48 * 16).chain((0..48).map(|superblock| 384 + 16 * superblock));
    let lpns = VICTIM.into_iter().chain(others);
    let mut drive = prefilled(&one_plane(entries, &sets), Issued::default(), lpns);
    for &lpn in cached {
        read(&mut drive, lpn);
    }
    one(&mut drive, Op::Write, 0, PAGE);
    drive.probe_mut().1.clear();
    let reads = mapping(&drive).0;
    drive.run_until_idle(nandlab::drive::IDLE_LIMIT).unwrap();
    assert_eq!(
        drive.array().superblocks.iter().map(|b| b.pe_cycles).sum::<u32>(),
        1,
        "not exactly one block was emptied"
    );
    assert_eq!(
        (flash(&drive, FlashOp::Read, Cause::Gc), flash(&drive, FlashOp::Program, Cause::Gc)),
        (14, 14)
    );
    assert_eq!(
        mapping(&drive).0 - reads,
        mapping(&drive).1,
        "the write-backs have not read and programmed each translation page once"
    );
    drive.audit().unwrap();
    drive.probe().0.verdict().unwrap();
    nothing_is_stale(&drive);
    drive
}

#[test]
fn gc_writes_each_translation_page_back_once_after_its_moves() {
    let drive = gc_of_one_superblock(2, &[128]);
    assert_eq!(mapping(&drive).1, 3);
    // The cached dirty entries of LPNs 0 and 128 are written with the other entries.
    assert_eq!(drive.stats().map.written_entries, 2);
    let issued = &drive.probe().1;
    let last_move = issued.iter().rposition(|i| (i.0, i.1) == (FlashOp::Program, Cause::Gc)).unwrap();
    let first_write_back = issued.iter().position(|i| i.1 == Cause::Mapping).unwrap();
    assert!(last_move < first_write_back, "{issued:?}");
}

#[test]
fn gc_makes_cached_entries_dirty_and_writes_no_translation_page_for_them() {
    // All moved entries of the third translation page are cached, so only the other two translation pages are written
    // back.
    let drive = gc_of_one_superblock(8, &[256, 257, 258]);
    assert_eq!((mapping(&drive).1, drive.stats().map.written_entries), (2, 1));
    let demand = drive.demand_map().unwrap();
    assert!((256..259).all(|lpn| demand.in_flash(Lpn(lpn)).is_none()), "a cached entry is not dirty");
    assert!(
        [1, 5, 128, 133].iter().all(|&lpn| demand.in_flash(Lpn(lpn)).is_some()),
        "the other entries are not in flash"
    );
    // If all moved entries are cached, no translation page is written back.
    let all: Vec<u64> = VICTIM[1..].iter().map(|&lpn| lpn.into()).collect();
    assert_eq!(mapping(&gc_of_one_superblock(16, &all)).1, 0);
}

#[test]
fn trim_writes_each_translation_page_back_once() {
    let mut drive = prefilled(&one_plane(2, &[]), Oracle::default(), 0..320);
    // The entry of LPN 300 is cached: the TRIM only makes it dirty, and it is written with its translation page.
    read(&mut drive, 300);
    one(&mut drive, Op::Trim, 10 * PAGE, 300 * PAGE);
    drive.run_until_idle(nandlab::drive::IDLE_LIMIT).unwrap();
    assert_eq!((mapping(&drive), drive.stats().map.written_entries), ((1 + 3, 3), 1));
    assert_eq!(drive.stats().counters.trimmed_pages, 300);
    nothing_is_stale(&drive);
    // A TRIM of unmapped pages writes nothing.
    one(&mut drive, Op::Trim, 10 * PAGE, 290 * PAGE);
    drive.run_until_idle(nandlab::drive::IDLE_LIMIT).unwrap();
    assert_eq!(mapping(&drive).1, 3);
    // A TRIM of a page whose entry is cached needs no write-back.
    read(&mut drive, 310);
    one(&mut drive, Op::Trim, 310 * PAGE, PAGE);
    drive.run_until_idle(nandlab::drive::IDLE_LIMIT).unwrap();
    assert_eq!(mapping(&drive).1, 3);
    settle(&mut drive);
}

#[test]
fn misses_wait_while_64_translation_pages_are_being_written_back() {
    let sets = ["drive.blocks_per_plane=512", "drive.pages_per_block=64"];
    let mut drive = with_oracle(&one_plane(1, &sets));
    let pages = u64::from(drive.geometry().logical_units) / ENTRIES;
    assert_eq!(pages, 128);
    // Each write evicts the dirty entry of the write before it.
    for page in 0..pages {
        let write = request(&drive, Op::Write, page * ENTRIES * PAGE, PAGE);
        drive.submit(&write).unwrap();
    }
    let under_way = |drive: &Drive<Oracle>| {
        let pages = &drive.demand_map().unwrap().pages;
        pages.iter().filter(|page| page.write_back != WriteBack::None).count()
    };
    assert_eq!((under_way(&drive), drive.stats().map.waiting_misses), (64, pages - 65));
    // Reads that miss wait behind the writes, and continue with them.
    for lpn in 0..200 {
        let read = request(&drive, Op::Read, lpn * PAGE, PAGE);
        drive.submit(&read).unwrap();
    }
    while drive.advance_to_completion(Time::NEVER) {
        assert!(under_way(&drive) <= 64);
        if drive.completions().count() == 0 || drive.outstanding() == 0 {
            break;
        }
    }
    settle(&mut drive);
    assert_eq!((mapping(&drive).1, drive.stats().map.waiting_misses), (pages, pages - 65 + 200));
    nothing_is_stale(&drive);
    read_everything(&mut drive);
}

#[test]
fn a_write_back_cleans_the_entries_of_its_page_and_no_others() {
    let mut drive = with_oracle(&one_plane(4, &[]));
    // The entries are at the end of the first translation page and at the beginning of the second.
    [0, 126, 127, 128].iter().for_each(|&lpn| _ = write(&mut drive, lpn));
    write(&mut drive, 300);
    assert_eq!((mapping(&drive), drive.stats().map.written_entries), ((0, 1), 2));
    let demand = drive.demand_map().unwrap();
    assert_eq!([126, 127].map(|lpn| demand.in_flash(Lpn(lpn)).is_some()), [true; 2]);
    assert_eq!([128, 300].map(|lpn| demand.in_flash(Lpn(lpn)).is_some()), [false; 2]);
    settle(&mut drive);
}

#[test]
fn a_write_back_uses_the_read_that_misses_wait_for_unless_each_has_its_own() {
    for (miss, reads) in [("shared", 2), ("each", 3)] {
        let set = format!("ftl.map.demand.miss={miss}");
        let mut drive = prefilled(&two_planes(1, &[&set]), Oracle::default(), 0..200);
        write(&mut drive, 0);
        let before = mapping(&drive);
        // The entry of LPN 130 evicts the dirty entry of LPN 0, while LPN 2 waits for the translation page of that
        // entry. With "each" the write-back reads that translation page by itself.
        for lpn in [130, 2] {
            let read = request(&drive, Op::Read, lpn * PAGE, PAGE);
            drive.submit(&read).unwrap();
            drive.advance(drive.now() + ns(1000));
        }
        settle(&mut drive);
        assert_eq!(mapping(&drive), (before.0 + reads, before.1 + 1), "{miss}");
        nothing_is_stale(&drive);
    }
}

#[test]
fn a_translation_page_is_pinned_until_its_replacement_is_programmed() {
    let mut drive = prefilled(&one_plane(1, &[]), Oracle::default(), 0..200);
    let old = drive.geometry().superblock_of(drive.ftl().map.get(Lpn(320)).unwrap());
    write(&mut drive, 0);
    assert_eq!(drive.array().superblock(old).pins, 0);
    let read = request(&drive, Op::Read, PAGE, PAGE);
    drive.submit(&read).unwrap();
    while drive.demand_map().unwrap().pages[0].write_back != WriteBack::Program {
        drive.advance(drive.now() + ns(1000));
    }
    // LPN 1 is in another block, so the pin is that of the translation page's program.
    assert_eq!(drive.array().superblock(old).pins, 1);
    settle(&mut drive);
}

#[test]
fn a_translation_page_keeps_its_read_level_until_a_write_back_makes_it_young() {
    let old = "[ecc]\nlevels = 'laldpc'\nstart = 'last-level'\n[reliability]\npe_cycles = 10000\n\
         retention = '365d'\nrber.vth = { dvpp = 0.38, cell_to_cell = 0.05 }\n";
    let mut drive = prefilled(&spec(&format!("{ONE_PLANE}{old}"), &[]), Oracle::default(), 0..200);
    let level = |drive: &Drive<Oracle>| drive.demand_map().unwrap().pages[0].level;
    assert_eq!(level(&drive), 0, "a translation page that was never read has a level");
    // A read takes 327 us if it starts at level 1, and 133 us if it starts at level 3. Each miss reads the translation
    // page, then the data.
    assert_eq!(
        [read(&mut drive, 0), level(&drive).into(), read(&mut drive, 1)],
        [654_000, 3, 133_000 + 327_000]
    );
    // The cache has four entries. The fifth evicts the dirty entry of LPN 0, and the write-back makes the translation
    // page young. A deallocated page has level 1.
    write(&mut drive, 0);
    (2..6).for_each(|lpn| _ = read(&mut drive, lpn));
    drive.run_until_idle(nandlab::drive::IDLE_LIMIT).unwrap();
    assert_eq!((mapping(&drive).1, level(&drive)), (1, 1));
    assert_eq!(read(&mut drive, 0), 85_000 + 85_000);
    one(&mut drive, Op::Trim, 0, PAGE);
    assert_eq!(drive.demand_map().unwrap().level(Lpn(0)), 1);
    settle(&mut drive);
}

#[test]
fn the_read_level_of_a_translation_page_is_forgotten_with_cached_only() {
    // A miss reads the translation page, then the data. A read takes 327 us if it starts at level 1 and ends at level
    // 3, and 133 us if it starts at level 3. LPNs 0 and 1 share their translation page and their block, and the entry
    // of LPN 0 is cached after its first read.
    const TABLE: &str = "{ table = { rows = [{ pe = 0, age = '1d', level = 3 }] } }";
    for (start, remembered, cached_only) in [
        ("first", [327 + 327, 327 + 327, 327], [327 + 327, 327 + 327, 327]),
        ("ideal", [133 + 133, 133 + 133, 133], [133 + 133, 133 + 133, 133]),
        // The level of the translation page is 3 after the first miss, that of LPN 1 is unknown.
        ("last-level", [327 + 327, 133 + 327, 133], [327 + 327, 327 + 327, 133]),
        // With "drive-level" all reads after the first one start at level 3; with "cached-only" the translation page is
        // read from level 1 on and leaves the drive at level 3. A table is used for the data only.
        ("drive-level", [327 + 133, 133 + 133, 133], [327 + 133, 327 + 133, 133]),
        (TABLE, [133 + 133, 133 + 133, 133], [327 + 133, 327 + 133, 133]),
        // The level of the block is 3 for LPN 1.
        ("block-level", [327 + 327, 133 + 133, 133], [327 + 327, 327 + 133, 133]),
    ] {
        for (policy, expected) in [("remembered", remembered), ("cached-only", cached_only)] {
            let old = "[ecc]\nlevels = 'laldpc'\n[reliability]\npe_cycles = 10000\nretention = '365d'\n\
                 rber.vth = { dvpp = 0.38, cell_to_cell = 0.05 }\n";
            let sets = [format!("ftl.map.demand.translation_level={policy}"), format!("ecc.start={start}")];
            let spec = spec(&format!("{ONE_PLANE}{old}"), &[&sets[0], &sets[1]]);
            let mut drive = prefilled(&spec, Oracle::default(), 0..200);
            let found = [read(&mut drive, 0), read(&mut drive, 1), read(&mut drive, 0)];
            assert_eq!(found.map(|latency_ns| latency_ns / 1000), expected, "{start}, {policy}");
            let level = drive.demand_map().unwrap().pages[0].level;
            assert_eq!(level, if policy == "remembered" { 3 } else { 0 }, "{start}, {policy}");
            settle(&mut drive);
        }
    }
}

#[test]
fn a_loaded_entry_starts_at_the_level_of_its_superblock() {
    let old = "[ecc]\nlevels = 'laldpc'\nstart = 'block-level'\n[reliability]\npe_cycles = 10000\n\
         retention = '365d'\nrber.vth = { dvpp = 0.38, cell_to_cell = 0.05 }\n";
    let mut drive = prefilled(&spec(&format!("{ONE_PLANE}{old}"), &[]), Oracle::default(), 0..200);
    // LPNs 0 and 1 share a block: both reads of the second request, of its translation page and of its data, start at
    // level 3.
    assert_eq!([read(&mut drive, 0), read(&mut drive, 1)], [654_000, 266_000]);
    settle(&mut drive);
}

/// Plays a busy random load of writes, reads and TRIMs, then lets the drive come to rest.
fn load<P: Probe>(drive: &mut Drive<P>, seed: u64, requests: u32, depth: u32) {
    let mut stream = Stream::new(seed, "load");
    let units = u64::from(drive.geometry().logical_units);
    for _ in 0..requests {
        while drive.outstanding() >= depth {
            assert!(drive.advance_to_completion(Time::NEVER));
            drive.completions().for_each(drop);
        }
        let op = [Op::Write, Op::Write, Op::Write, Op::Read, Op::Read, Op::Trim][stream.below(6) as usize];
        let lpn = stream.below(units);
        let count = (1 + stream.below(4)).min(units - lpn);
        drive.submit(&request(drive, op, lpn * PAGE, count * PAGE)).unwrap();
    }
    drive.run_until_idle(nandlab::drive::IDLE_LIMIT).unwrap();
    drive.completions().for_each(drop);
}

#[test]
fn translation_pages_and_data_never_share_a_superblock_and_every_operation_has_one_cause() {
    for (eviction, levelling) in [("", "none"), (", eviction = { read-level = { fixed = 3 } }", "static")] {
        let sets = [
            format!("ftl.map={{ demand = {{ cache = '64B'{eviction} }} }}"),
            format!("ftl.wear_levelling={levelling}"),
            "ftl.wear_gap=2".to_owned(),
        ];
        let sets: Vec<&str> = sets.iter().map(String::as_str).collect();
        let mut drive = Drive::with_probe(&two_planes(8, &sets), Issued::default());
        load(&mut drive, 1, 6000, 16);
        drive.audit().unwrap();
        drive.probe().0.verdict().unwrap();
        nothing_is_stale(&drive);
        let geometry = drive.geometry();
        for superblock in (0..geometry.superblocks).map(SuperblockId) {
            let programmed = drive.array().superblock(superblock).programmed;
            let lpns = (0..programmed).map(|unit| drive.array().lpn(geometry.unit(superblock, unit)).0);
            let of_map: Vec<bool> =
                lpns.filter(|&lpn| lpn != DEAD_LPN).map(|lpn| lpn >= geometry.logical_units).collect();
            assert!(of_map.windows(2).all(|pair| pair[0] == pair[1]), "block {}: {of_map:?}", superblock.0);
        }
        // The operations issued equal the counters for each kind and cause.
        let issued = &drive.probe().1;
        for kind in [FlashOp::Read, FlashOp::Program, FlashOp::Erase] {
            for cause in Cause::ALL {
                let count = issued.iter().filter(|i| (i.0, i.1) == (kind, cause)).count() as u64;
                assert_eq!(flash(&drive, kind, cause), count, "{kind:?} {cause:?}");
            }
        }
        assert_eq!(flash(&drive, FlashOp::Program, Cause::Mapping), drive.stats().map.write_backs);
        // GC also moves translation pages, under its own cause.
        let moves = |cause| issued.iter().filter(move |i| i.0 == FlashOp::Program && i.1 == cause);
        assert!(moves(Cause::Gc).any(|i| i.2 >= geometry.logical_units), "GC never moved a translation page");
        assert!(moves(Cause::Mapping).all(|i| i.2 >= geometry.logical_units));
        assert!(moves(Cause::Host).all(|i| i.2 < geometry.logical_units));
    }
}

#[test]
fn a_cache_of_one_entry_loses_no_data() {
    for eviction in
        ["", ", eviction = { read-level = { fixed = 1 } }", ", eviction = { read-level = { fixed = 9 } }"]
    {
        let set = format!("ftl.map={{ demand = {{ cache = '8B'{eviction} }} }}");
        let mut drive = with_oracle(&two_planes(1, &[&set]));
        load(&mut drive, 2, 3000, 24);
        settle(&mut drive);
        assert_eq!(drive.demand_map().unwrap().cache.len(), 1);
        nothing_is_stale(&drive);
        read_everything(&mut drive);
    }
}

/// A probe that records the answers to the host's reads by version, that is the number of the write among the writes of
/// its LPN. The units of a request are sorted.
#[derive(Default)]
struct Answers {
    writes: BTreeMap<u64, u32>,
    versions: BTreeMap<u32, u32>,
    answers: Vec<(u32, Option<u32>)>,
    completed: usize,
}

impl Watcher for Answers {}

impl Probe for Answers {
    fn needs_sequences(&self) -> bool {
        true
    }
    fn on_write_admitted(&mut self, _: Option<RequestId>, lpn: Lpn, sequence: u64) {
        let version = self.versions.entry(lpn.0).or_default();
        *version += 1;
        self.writes.insert(sequence, *version);
    }
    fn on_read_answered(&mut self, _: RequestId, lpn: Lpn, sequence: Option<u64>) {
        self.answers.push((lpn.0, sequence.map(|sequence| self.writes[&sequence])));
    }
    fn on_completed(&mut self, _: RequestId, _: &Completion) {
        self.answers[self.completed..].sort_unstable();
        self.completed = self.answers.len();
    }
}

#[test]
fn the_host_reads_the_same_data_with_every_map() {
    let answers = |map: &str| {
        let mut drive = Drive::with_probe(&two_planes(1, &[&format!("ftl.map={map}")]), Answers::default());
        load(&mut drive, 3, 6000, 1);
        std::mem::take(&mut drive.probe_mut().answers)
    };
    let page = answers("'page'");
    assert!(page.len() > 2000 && page.iter().any(|a| a.1.is_none()));
    for cache in ["8B", "40B", "1KiB", "1MiB"] {
        assert_eq!(answers(&format!("{{ demand = {{ cache = '{cache}' }} }}")), page, "{cache}");
    }
}

#[test]
fn when_planes_are_worn_out_writes_fail_and_reads_succeed() {
    for (entries, levelling) in [(1, "none"), (20, "dynamic"), (1, "static")] {
        let sets = ["drive.endurance=6", &format!("ftl.wear_levelling={levelling}")];
        let mut drive = with_oracle(&two_planes(entries, &sets));
        for round in 0.. {
            assert!(round < 200, "too few writes have failed");
            load(&mut drive, round, 500, 30);
            drive.audit().unwrap();
            if drive.stats().counters.failed_pages > 20 {
                break;
            }
        }
        settle(&mut drive);
        assert_eq!(drive.stats().counters.media_errors, 0);
        read_everything(&mut drive);
        assert!(drive.completions().all(|done| done.failed.is_none()), "{entries} entries, {levelling}");
        assert!(drive.array().superblocks.iter().any(|b| b.state == SuperblockState::Retired));
        // TRIM and flush need no free page of the host's stream.
        one(&mut drive, Op::Trim, 0, 50 * PAGE);
        one(&mut drive, Op::Flush, 0, 0);
        settle(&mut drive);
    }
}

fn saved<P: Probe>(drive: &Drive<P>) -> Vec<u8> {
    let mut bytes = Vec::new();
    drive.save(&mut bytes).unwrap();
    bytes
}

const FILL: [&str; 2] = ["precondition.used=0.5", "precondition.valid=0.8"];
const PTS: [&str; 2] = ["precondition.method=pts", "precondition.rounds_max=5"];

#[test]
fn preconditioning_leaves_every_translation_page_in_flash() {
    for sets in [FILL, PTS] {
        for allocation in ["CWDP", "dynamic"] {
            let set = format!("ftl.allocation={allocation}");
            let mut drive = with_oracle(&two_planes(4, &[&sets[..], &[&set]].concat()));
            drive.audit().unwrap();
            nothing_is_stale(&drive);
            let (ftl, geometry) = (drive.ftl(), drive.geometry());
            let demand = drive.demand_map().unwrap();
            for page in demand.numbers() {
                let is_there = ftl.map.get(demand.lpn_of(page)).is_some();
                assert_eq!(is_there, demand.has_entries(page, &ftl.map), "{sets:?}: {page:?}");
            }
            for lpn in (0..geometry.logical_units).map(Lpn) {
                assert_eq!(demand.in_flash(lpn), Some(ftl.map.get(lpn)), "{sets:?}: LPN {}", lpn.0);
            }
            // In each plane a block is kept free for GC.
            assert!(ftl.lanes.iter().all(|lane| !lane.free.is_empty()));
            load(&mut drive, 4, 2000, 12);
            settle(&mut drive);
            read_everything(&mut drive);
        }
    }
}

struct Reads(std::vec::IntoIter<u64>);

impl Source for Reads {
    type Error = std::convert::Infallible;
    fn next_request(&mut self) -> Option<Result<Request, Self::Error>> {
        let lpn = self.0.next()?;
        Some(Ok(Request::read(lpn * PAGE, PAGE)))
    }
}

#[test]
fn units_mapped_for_reads_of_the_workload_have_translation_pages() {
    let mut drive = Drive::with_probe(&one_plane(4, &[]), Oracle::default());
    let reads = Reads(vec![5, 6, 5, 200].into_iter());
    let mut runner = Runner::new(reads, Arrival::QueueDepth(1), Beyond::Refuse);
    assert_eq!(map_reads(&mut runner, &mut drive, &mut |_| true).unwrap(), Some(3));
    nothing_is_stale(&drive);
    let is_there = |lpn| drive.ftl().map.get(Lpn(lpn)).is_some();
    assert_eq!([320, 321, 322].map(is_there), [true, true, false]);
    assert_eq!([read(&mut drive, 5), read(&mut drive, 5), read(&mut drive, 300)], [2 * READ, READ, 0]);
    settle(&mut drive);
}

#[test]
fn a_loaded_drive_has_the_translation_pages_of_the_saved_drive() {
    for sets in [FILL, PTS] {
        let spec = two_planes(4, &sets);
        let drive = with_oracle(&spec);
        let mut loaded = Drive::with_probe(&spec, Oracle::default());
        loaded.load(saved(&drive).as_slice()).unwrap();
        loaded.audit().unwrap();
        loaded.expect_preconditioned(|oracle| oracle);
        let all = loaded.ftl().map.len();
        assert!((0..all).map(Lpn).all(|lpn| loaded.ftl().map.get(lpn) == drive.ftl().map.get(lpn)));
        // A miss costs a read of a translation page, as on the saved drive.
        let lpn = (0..all).find(|&lpn| drive.ftl().map.get(Lpn(lpn)).is_some()).unwrap();
        assert_eq!(read(&mut loaded, lpn.into()), 2 * READ);
        load(&mut loaded, 5, 2000, 12);
        settle(&mut loaded);
        read_everything(&mut loaded);
    }
}

#[test]
fn a_snapshot_with_another_kind_of_map_is_refused() {
    let (demand, page) = (two_planes(4, &FILL), two_planes(4, &[&FILL[..], &["ftl.map='page'"]].concat()));
    for (from, to, says) in [
        (&demand, &page, "a drive with a demand map, but this drive has none"),
        (&page, &demand, "translation pages (ftl.map) = 0, but this drive has 5"),
    ] {
        let bytes = saved(&with_oracle(from));
        let error = Drive::new(to).load(bytes.as_slice()).unwrap_err();
        assert!(error.to_string().contains(says), "{error}");
    }
    // The size and the policy of the mapping cache are not saved, so they may differ.
    let bytes = saved(&with_oracle(&demand));
    Drive::new(&two_planes(9, &[])).load(bytes.as_slice()).unwrap();
}

/// Dirty entries are not saved. Loading rebuilds the map from the OOB of the data pages, so no mapping is lost.
#[test]
fn a_drive_saved_with_dirty_entries_is_loaded_with_its_whole_map() {
    let spec = two_planes(50, &[]);
    let mut drive = with_oracle(&spec);
    load(&mut drive, 6, 3000, 12);
    // The second write of LPN 3 hits.
    [3, 3].iter().for_each(|&lpn| _ = write(&mut drive, lpn));
    assert!(drive.demand_map().unwrap().in_flash(Lpn(3)).is_none(), "the entry of LPN 3 is not dirty");
    let mut loaded = Drive::with_probe(&spec, Oracle::default());
    loaded.load(saved(&drive).as_slice()).unwrap();
    loaded.expect_preconditioned(|oracle| oracle);
    for lpn in (0..drive.geometry().logical_units).map(Lpn) {
        assert_eq!(loaded.ftl().map.get(lpn), drive.ftl().map.get(lpn));
    }
    load(&mut loaded, 7, 2000, 12);
    settle(&mut loaded);
    read_everything(&mut loaded);
}

/// Returns a drive at rest, whose map is in flash except for cached dirty entries.
fn rested() -> Drive<Oracle> {
    let mut drive = with_oracle(&two_planes(20, &[]));
    load(&mut drive, 8, 3000, 12);
    drive.audit().expect("the audit holds before the sabotage");
    drive
}

#[test]
fn the_audit_detects_a_missing_dirty_bit() {
    let mut drive = rested();
    let geometry = drive.geometry().clone();
    // Moves a page as GC does, but does not notify the demand map.
    let is_settled = |lpn: &Lpn| drive.demand_map().unwrap().in_flash(*lpn).flatten().is_some();
    let lpn = (0..geometry.logical_units).map(Lpn).find(is_settled).unwrap();
    let (array, ftl) = drive.parts_mut();
    let unit = ftl.allocate(array, LaneId(0), StreamId::GC).unwrap().unit;
    array.stage(unit, lpn, Stamp { sequence: 1, ..Stamp::default() });
    let (superblock, index) = geometry.split(unit);
    if array.program(superblock, index) == geometry.units_per_superblock {
        ftl.close(array, superblock, Time::START);
    }
    ftl.remap(array, lpn, unit);
    let error = drive.audit().unwrap_err();
    assert!(error.contains("its translation page in flash has"), "{error}");
}

#[test]
fn the_audit_detects_a_change_that_is_not_written_back() {
    let mut drive = prefilled(&one_plane(1, &[]), Oracle::default(), 0..320);
    // The entries of LPNs 0 to 2 are evicted one by one, the last two while the translation page is being programmed.
    for lpn in 0..4 {
        let write = request(&drive, Op::Write, lpn * PAGE, PAGE);
        drive.submit(&write).unwrap();
    }
    while !drive.demand_map().unwrap().pages[0].is_stale {
        drive.advance(drive.now() + ns(1000));
    }
    drive.audit().unwrap();
    drive.inner_mut().demand.unwrap().pages[0].is_stale = false;
    let error = drive.audit().unwrap_err();
    assert!(error.contains("its translation page in flash has"), "{error}");
}

#[test]
fn the_audit_detects_an_evicted_dirty_entry() {
    let mut drive = with_oracle(&one_plane(1, &[]));
    write(&mut drive, 0);
    drive.audit().unwrap();
    let left = drive.inner_mut().demand.unwrap().cache.insert(Lpn(7), 1);
    assert_eq!(left, Ok(Some(Lpn(0))));
    let error = drive.audit().unwrap_err();
    assert!(error.contains("the entry of LPN 0 is dirty, but not cached"), "{error}");
}

/// The program of the translation page waits for room that the worn-out plane will not get. No host page fails.
#[test]
fn a_worn_out_drive_gives_up_a_write_back_and_continues() {
    let mut drive: Drive<Oracle> =
        Drive::with_probe(&one_plane(1, &["drive.endurance=10"]), Oracle::default());
    for lpn in 0..32 {
        drive.write_now(Lpn(lpn));
    }
    let geometry = drive.geometry().clone();
    let (array, ftl) = drive.parts_mut();
    for superblock in (0..geometry.superblocks).map(SuperblockId) {
        array.superblock_mut(superblock).pe_cycles = 9;
    }
    ftl.on_worn(array);
    // Blocks that are never filled take up all free blocks but GC's.
    while ftl.lanes[0].free.len() > ftl.kept_superblocks() {
        ftl.allocate(array, LaneId(0), StreamId::GC).expect("a block is free");
    }
    while ftl.job_units_open(LaneId(0)) > 0 {
        ftl.allocate(array, LaneId(0), StreamId::GC).expect("the block has pages");
    }
    for lpn in 0..2 {
        let trim = request(&drive, Op::Trim, lpn * PAGE, PAGE);
        drive.submit(&trim).unwrap();
        drive.run_until_idle(nandlab::drive::IDLE_LIMIT).expect("the drive continues");
        assert_eq!(drive.completions().filter(|done| done.failed.is_none()).count(), 1);
    }
    assert_eq!(
        (flash(&drive, FlashOp::Program, Cause::Mapping), drive.stats().counters.failed_pages),
        (0, 0)
    );
    assert!(drive.demand_map().expect("a demand map").has_changes(nandlab::demand_map::Tvpn(0)));
}

const BEFORE_INSERT: &str = "ftl.map.demand.write_back=before-insert";

#[test]
fn before_insert_a_miss_waits_until_the_dirty_entry_that_it_evicts_is_in_flash() {
    for (set, waits) in [("ftl.map.demand.write_back=async", 0), (BEFORE_INSERT, READ + WRITE)] {
        let mut drive = prefilled(&one_plane(1, &[set]), Oracle::default(), 0..200);
        write(&mut drive, 0);
        // The read of translation page 1, with "before-insert" the read and the program of translation page 0, then the
        // read of the data.
        assert_eq!(read(&mut drive, 130), 2 * READ + waits, "{set}");
        settle(&mut drive);
        assert_eq!(mapping(&drive), (3, 1), "{set}: the same operations");
        // The eviction of a clean entry delays no miss.
        assert_eq!(read(&mut drive, 0), 2 * READ, "{set}");
        settle(&mut drive);
    }
    // On two planes, and without a read of the translation page, which has never been written: its program and that of
    // LPN 1 are at the same time on two dies, or one after the other.
    for (set, latency) in [("ftl.map.demand.write_back=async", WRITE), (BEFORE_INSERT, 2 * WRITE)] {
        let mut drive = with_oracle(&two_planes(1, &[set]));
        write(&mut drive, 0);
        assert_eq!(one(&mut drive, Op::Write, PAGE, PAGE), latency, "{set}");
        settle(&mut drive);
    }
}

#[test]
fn before_insert_an_entry_that_is_being_inserted_is_not_hit() {
    for (miss, reads) in [("shared", 5), ("each", 5)] {
        let miss = format!("ftl.map.demand.miss={miss}");
        let mut drive = prefilled(&two_planes(1, &[BEFORE_INSERT, &miss]), Oracle::default(), 0..200);
        write(&mut drive, 0);
        let (before, start) = (mapping(&drive), drive.now());
        let submit = |drive: &mut Drive<Oracle>| {
            let read = request(drive, Op::Read, 131 * PAGE, PAGE);
            drive.submit(&read).unwrap();
        };
        submit(&mut drive);
        // The entry of LPN 131 has evicted the dirty one of LPN 0, whose translation page is being read.
        drive.advance(start + ns(READ + 1000));
        assert_eq!(drive.demand_map().unwrap().pages[0].write_back, WriteBack::Read);
        submit(&mut drive);
        // Translation page 0 is being programmed.
        drive.advance(start + ns(2 * READ + 1000));
        assert_eq!(drive.demand_map().unwrap().pages[0].write_back, WriteBack::Program);
        submit(&mut drive);
        let misses = drive.stats().map.read_misses;
        drive.run_until_idle(nandlab::drive::IDLE_LIMIT).unwrap();
        let ends: Vec<u64> = drive.completions().map(|done| (done.completed - start).ns()).collect();
        // All three go on when the program has ended, and their data is read one after the other.
        let first = 3 * READ + WRITE;
        assert_eq!(ends, [0, 1, 2].map(|n| first + n * (READ - 15_000)), "{miss}");
        assert_eq!((misses, drive.stats().map.read_hits), (3, 0), "{miss}");
        // Each miss has read translation page 1, and the write-back translation page 0.
        assert_eq!(mapping(&drive), (before.0 + reads - 1, before.1 + 1), "{miss}");
        settle(&mut drive);
        // A later lookup hits.
        assert_eq!(read(&mut drive, 131), READ, "{miss}");
    }
}

#[test]
fn before_insert_a_miss_waits_for_the_next_write_back_if_the_program_under_way_has_the_old_entry() {
    let mut drive = prefilled(&two_planes(2, &[BEFORE_INSERT]), Oracle::default(), 0..200);
    write(&mut drive, 0);
    read(&mut drive, 2);
    let submit = |drive: &mut Drive<Oracle>, op, lpn: u64| {
        let request = request(drive, op, lpn * PAGE, PAGE);
        drive.submit(&request).unwrap();
    };
    let start = drive.now();
    submit(&mut drive, Op::Read, 130);
    drive.advance(start + ns(2 * READ + 1000));
    assert_eq!(drive.demand_map().unwrap().pages[0].write_back, WriteBack::Program);
    // The entry of LPN 2, of the same translation page, changes after its program was queued, and is evicted before the
    // program ends.
    submit(&mut drive, Op::Trim, 2);
    submit(&mut drive, Op::Read, 131);
    drive.run_until_idle(nandlab::drive::IDLE_LIMIT).unwrap();
    let ends: BTreeMap<u64, u64> =
        drive.completions().map(|done| (done.request.offset / PAGE, (done.completed - start).ns())).collect();
    // The second write-back reads what the first one has programmed, on the die of LPN 130, whose data is read next. A
    // read occupies its die until 15 us before its end.
    let (ended, die) = (2 * READ + WRITE, READ - 15_000);
    assert_eq!(ends[&130], ended + die + READ);
    assert_eq!(ends[&131], ended + 2 * die + WRITE + READ);
    assert_eq!((drive.stats().map.dirty_evictions, drive.stats().map.write_backs), (2, 2));
    settle(&mut drive);
}

/// The naive twin: a list of entries in the order of use, a set of dirty ones, and the translation pages in flash. Each
/// request is alone on the drive, so its latency is the sum of the operations for which it waits.
#[test]
fn before_insert_every_latency_is_that_of_a_naive_twin() {
    // No block is filled, so there is no erase.
    let mut drive = with_oracle(&one_plane(6, &[BEFORE_INSERT, "drive.pages_per_block=1024"]));
    let mut stream = Stream::new(1, "before insert");
    let (mut used, mut dirty, mut in_flash, mut mapped) =
        (Vec::<u64>::new(), [false; 384], [false; 3], [false; 384]);
    let (mut waited, mut clean) = (0, 0);
    for step in 0..500 {
        let (lpn, is_read) = (stream.below(3) * ENTRIES + stream.below(5), stream.below(2) == 0);
        let mut expected = 0;
        if let Some(place) = used.iter().position(|&other| other == lpn) {
            used.remove(place);
        } else {
            expected += if in_flash[(lpn / ENTRIES) as usize] { READ } else { 0 };
            if used.len() == 6 {
                let page = (used[0] / ENTRIES) as usize;
                if dirty[used.remove(0) as usize] {
                    expected += if in_flash[page] { READ + WRITE } else { WRITE };
                    in_flash[page] = true;
                    let entries = page * ENTRIES as usize..(page + 1) * ENTRIES as usize;
                    dirty[entries].fill(false);
                    waited += 1;
                } else {
                    clean += 1;
                }
            }
        }
        used.push(lpn);
        if is_read {
            expected += if mapped[lpn as usize] { READ } else { 0 };
            assert_eq!(read(&mut drive, lpn), expected, "step {step}: read of LPN {lpn}");
        } else {
            (dirty[lpn as usize], mapped[lpn as usize]) = (true, true);
            assert_eq!(write(&mut drive, lpn), expected + WRITE, "step {step}: write of LPN {lpn}");
        }
    }
    assert!(waited > 50 && clean > 50, "{waited} misses waited, {clean} evicted a clean entry");
    settle(&mut drive);
}
