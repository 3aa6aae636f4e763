//! Saved drives: a loaded drive has the map, the wear and the superblocks of the saved drive, and damaged or foreign
//! files are refused.

use crate::common::{TINY, request, settle, spec, summary_at_the_end, wait_for_fewer, with_oracle};
use nandlab::base::geometry::Lpn;
use nandlab::base::rng::Stream;
use nandlab::base::units::Time;
use nandlab::drive::{Drive, IDLE_LIMIT, SnapshotError};
use nandlab::flash::SuperblockState;
use nandlab::ftl::streams::FIXED_NUMBERS;
use nandlab::host::{Op, Oracle, Request};
use nandlab::probe::Probe;
use nandlab::sched::Cause;
use std::path::PathBuf;

const FILL: &str = "[precondition]\nused = 0.7\nvalid = 0.8\n";
const PTS: &str = "[precondition]\nmethod = 'pts'\nrounds_max = 6\n";

fn text(precondition: &str) -> String {
    format!("{TINY}{precondition}")
}

fn preconditioned(precondition: &str, sets: &[&str]) -> Drive {
    let mut drive = Drive::new(&spec(&text(precondition), sets));
    assert!(drive.precondition(&mut |_| true).0);
    drive
}

fn saved<P: Probe>(drive: &Drive<P>) -> Vec<u8> {
    let mut bytes = Vec::new();
    drive.save(&mut bytes).unwrap();
    bytes
}

fn load(bytes: &[u8], sets: &[&str]) -> Result<Drive, SnapshotError> {
    let mut drive = Drive::new(&spec(TINY, sets));
    drive.load(bytes)?;
    Ok(drive)
}

fn map<P: Probe>(drive: &Drive<P>) -> Vec<Option<u32>> {
    (0..drive.geometry().logical_units).map(|lpn| drive.ftl().map.get(Lpn(lpn)).map(|unit| unit.0)).collect()
}

fn superblocks<P: Probe>(drive: &Drive<P>) -> Vec<(u32, u32, u32, SuperblockState)> {
    drive.array().superblocks.iter().map(|b| (b.pe_cycles, b.programmed, b.valid, b.state)).collect()
}

/// Serves a mixed workload; returns the text of the summary.
fn continue_with<P: Probe>(drive: &mut Drive<P>) -> String {
    let mut stream = Stream::new(3, "continue");
    let capacity = drive.geometry().logical_bytes();
    for _ in 0..3000 {
        wait_for_fewer(drive, 12);
        let op = [Op::Write, Op::Write, Op::Write, Op::Read, Op::Trim, Op::Flush][stream.below(6) as usize];
        let offset = stream.below(capacity / 512 - 24) * 512;
        let len = 512 * (1 + stream.below(24));
        let (offset, len) = if op == Op::Flush { (0, 0) } else { (offset, len) };
        drive.submit(&Request::new(op, offset, len).at(drive.now())).unwrap();
    }
    summary_at_the_end(drive)
}

#[test]
fn a_loaded_drive_has_the_map_the_wear_and_the_superblocks_of_the_saved_one() {
    for (precondition, sets) in [
        (FILL, vec![]),
        (PTS, vec![]),
        (PTS, vec!["ftl.allocation=dynamic", "gc.victim=fifo"]),
        (PTS, vec!["ftl.wear_levelling=none", "gc.victim={ random = { k = 3 } }"]),
        (PTS, vec!["ftl.wear_levelling=static", "drive.op=0.7", "ftl.allocation=PDWC"]),
        ("", vec![]),
    ] {
        let drive = preconditioned(precondition, &sets);
        let bytes = saved(&drive);
        let loaded = load(&bytes, &sets).unwrap();
        loaded.audit().unwrap();
        assert_eq!(map(&loaded), map(&drive));
        assert_eq!(superblocks(&loaded), superblocks(&drive));
        for (mine, theirs) in loaded.ftl().lanes.iter().zip(&drive.ftl().lanes) {
            assert_eq!(mine.open_superblocks(), theirs.open_superblocks());
            assert_eq!((mine.valid, mine.usable_superblocks), (theirs.valid, theirs.usable_superblocks));
            let sorted = |free: &nandlab::ftl::FreeSuperblocks| {
                let mut free: Vec<u32> = free.iter().collect();
                free.sort_unstable();
                free
            };
            assert_eq!(sorted(&mine.free), sorted(&theirs.free));
        }
        assert_eq!(saved(&loaded), bytes, "the loaded drive is saved as a different file");
        assert_eq!(loaded.now(), Time::START);
    }
}

#[test]
fn a_drive_that_has_run_can_be_saved() {
    let sets = ["drive.endurance=40"];
    let mut drive = preconditioned(PTS, &sets);
    continue_with(&mut drive);
    assert!(drive.now() > Time::START);
    let loaded = load(&saved(&drive), &sets).unwrap();
    loaded.audit().unwrap();
    assert_eq!((map(&loaded), superblocks(&loaded)), (map(&drive), superblocks(&drive)));
}

#[test]
fn retired_superblocks_are_retired_after_loading() {
    let sets = ["drive.endurance=6"];
    let mut drive = Drive::new(&spec(TINY, &sets));
    let mut stream = Stream::new(3, "wear out");
    let units = u64::from(drive.geometry().logical_units);
    while drive.array().superblocks.iter().filter(|b| b.state == SuperblockState::Retired).count() < 5 {
        let offset = stream.below(units) * 4096;
        drive.submit(&Request::write(offset, 4096).at(drive.now())).unwrap();
        drive.run_until_idle(nandlab::drive::IDLE_LIMIT).unwrap();
        // GC does not take a superblock whose next erase is its last. After a TRIM of all its units the superblock is
        // dead: it is erased once more, and retires.
        if drive.completions().any(|done| done.failed.is_some()) {
            drive.submit(&request(&drive, Op::Trim, 0, units * 4096)).unwrap();
            drive.run_until_idle(nandlab::drive::IDLE_LIMIT).unwrap();
        }
    }
    let loaded = load(&saved(&drive), &sets).unwrap();
    loaded.audit().unwrap();
    assert_eq!(superblocks(&loaded), superblocks(&drive));
    let usable: u32 = loaded.ftl().lanes.iter().map(|lane| lane.usable_superblocks).sum();
    assert_eq!(
        usable as usize,
        superblocks(&drive).iter().filter(|b| b.3 != SuperblockState::Retired).count()
    );
}

/// A fill writes superblocks in order and frees none. So after a fill a loaded drive behaves exactly like the saved
/// drive.
#[test]
fn a_loaded_fill_behaves_like_the_saved_drive() {
    for sets in [
        vec![],
        vec!["gc.victim=fifo"],
        vec!["gc.victim={ random = { k = 2 } }"],
        vec!["ftl.allocation=dynamic"],
    ] {
        let mut drive = preconditioned(FILL, &sets);
        let mut loaded = load(&saved(&drive), &sets).unwrap();
        assert_eq!(continue_with(&mut loaded), continue_with(&mut drive), "{sets:?}");
        assert_eq!(map(&loaded), map(&drive));
    }
}

/// After PTS a loaded drive may behave differently from the saved drive. The file lacks three values that are not
/// stored in flash: the order in which superblocks of equal wear were freed, the order in which superblocks were closed
/// (all at time 0; `fifo` uses this order), and the position of the random streams. But two drives loaded from one file
/// behave alike.
#[test]
fn two_drives_loaded_from_one_file_behave_alike() {
    for sets in [
        vec![],
        vec!["gc.victim=fifo"],
        vec!["gc.victim={ random = { k = 2 } }"],
        vec!["ftl.allocation=dynamic"],
    ] {
        let bytes = saved(&preconditioned(PTS, &sets));
        let mut one = load(&bytes, &sets).unwrap();
        let mut two = load(&bytes, &sets).unwrap();
        assert_eq!(continue_with(&mut one), continue_with(&mut two), "{sets:?}");
        assert_eq!((map(&one), superblocks(&one)), (map(&two), superblocks(&two)));
    }
}

#[test]
fn every_read_of_a_loaded_drive_returns_the_right_data() {
    for precondition in [FILL, PTS] {
        let bytes = saved(&preconditioned(precondition, &[]));
        let mut drive = Drive::with_probe(&spec(TINY, &[]), Oracle::default());
        drive.load(bytes.as_slice()).unwrap();
        drive.expect_preconditioned(|oracle| oracle);
        continue_with(&mut drive);
        settle(&mut drive);
        assert!(drive.probe().checked > 100);
    }
}

#[test]
fn a_snapshot_is_equal_with_and_without_the_oracle() {
    let watched = with_oracle(&spec(&text(FILL), &[]));
    assert_eq!(saved(&watched), saved(&preconditioned(FILL, &[])));
}

#[test]
fn truncated_snapshots_are_errors() {
    for precondition in [FILL, ""] {
        let bytes = saved(&preconditioned(precondition, &[]));
        for len in 0..bytes.len() {
            // Tests every length near both ends, and every 7th length between them.
            if len > 200 && len < bytes.len() - 200 && len % 7 != 0 {
                continue;
            }
            let error = load(&bytes[..len], &[]).err().unwrap_or_else(|| panic!("{len} bytes are accepted"));
            assert!(matches!(error, SnapshotError::Damaged(_)), "{len} bytes: {error:?}");
        }
        load(&bytes, &[]).unwrap();
    }
}

/// Bytes after the end were ignored: two files one after the other, or a file with the rest of a longer one, loaded.
#[test]
fn bytes_after_the_end_are_an_error() {
    let whole = saved(&preconditioned("[precondition]\nused = 0.5\nvalid = 0.5\n", &[]));
    assert!(load(&whole, &[]).is_ok());
    for more in [&[0][..], &[255; 4096], &whole] {
        let error = load(&[&whole[..], more].concat(), &[]).unwrap_err();
        assert!(matches!(error, SnapshotError::Damaged("bytes follow its end")), "{error:?}");
    }
}

#[test]
fn snapshots_with_a_flipped_bit_are_errors() {
    for precondition in [FILL, PTS] {
        let mut bytes = saved(&preconditioned(precondition, &[]));
        let mut stream = Stream::new(8, "flip");
        let head = 8 * 120;
        for flip in 0..head + 1500 {
            // Flips every bit of the head, then random bits, some of them in the checksum at the end.
            let bit = if flip < head { flip } else { stream.below(bytes.len() as u64 * 8) };
            let (byte, mask) = ((bit / 8) as usize, 1 << (bit % 8));
            bytes[byte] ^= mask;
            assert!(
                load(&bytes, &[]).is_err(),
                "the file is accepted with bit {bit} of {} flipped",
                bytes.len() * 8
            );
            bytes[byte] ^= mask;
        }
        load(&bytes, &[]).unwrap();
    }
}

#[test]
fn garbage_and_shuffled_snapshots_are_errors() {
    let bytes = saved(&preconditioned(FILL, &[]));
    let mut stream = Stream::new(9, "garbage");
    for _ in 0..1500 {
        let mut damaged = bytes.clone();
        match stream.below(4) {
            // Exchanges words, overwrites a range, repeats a range, or writes random bytes from a place to the end.
            0 => {
                let words = damaged.len() as u64 / 4;
                let (a, b) = (stream.below(words) as usize * 4, stream.below(words) as usize * 4);
                for i in 0..4 {
                    damaged.swap(a + i, b + i);
                }
            }
            1 => {
                let at = stream.below(damaged.len() as u64 - 40) as usize;
                let value = stream.bits() as u8;
                damaged[at..at + 40].fill(value);
            }
            2 => {
                let (from, to) =
                    (stream.below(damaged.len() as u64 - 64), stream.below(damaged.len() as u64 - 64));
                damaged.copy_within(from as usize..from as usize + 64, to as usize);
            }
            _ => {
                let at = stream.below(damaged.len() as u64) as usize;
                damaged[at..].iter_mut().for_each(|byte| *byte = stream.bits() as u8);
            }
        }
        if damaged != bytes {
            assert!(load(&damaged, &[]).is_err());
        }
    }
}

/// A file with a correct checksum may still have wrong content. Whatever the change, loading either returns an error or
/// gives a drive that passes the audit.
#[test]
fn wrong_content_with_a_correct_checksum_is_an_error_or_passes_the_audit() {
    let sum_of = |words: &mut dyn Iterator<Item = u64>| {
        words.fold(0xcbf2_9ce4_8422_2325_u64, |sum, word| {
            (sum ^ word).wrapping_mul(0x0000_0100_0000_01b3).rotate_left(17)
        })
    };
    let drive = preconditioned(FILL, &[]);
    let bytes = saved(&drive);
    let parts = sections(&bytes);
    let [(_, _, head), (_, _, superblocks), (_, _, lanes)] = &parts[..] else { panic!("{parts:?}") };
    assert_eq!(lanes.len(), drive.geometry().lanes as usize * usize::from(FIXED_NUMBERS) * 8);
    let middle = 16 + 32 + head.len() + 32;
    let open = middle + superblocks.len();
    let sum = |bytes: &[u8]| {
        let long = |range: std::ops::Range<usize>| {
            bytes[range].chunks(8).map(|w| u64::from_le_bytes(w.try_into().unwrap())).collect::<Vec<_>>()
        };
        let short =
            bytes[middle..open].chunks(4).map(|w| u64::from(u32::from_le_bytes(w.try_into().unwrap())));
        let (head, tail) = (long(8..middle), long(open..bytes.len() - 8));
        sum_of(&mut head.into_iter().chain(short).chain(tail))
    };
    let end = bytes.len() - 8;
    assert_eq!(
        sum(&bytes),
        u64::from_le_bytes(bytes[end..].try_into().unwrap()),
        "the test computes another checksum than the drive"
    );
    let mut stream = Stream::new(10, "forged");
    let (mut accepted, mut panics, mut unsound) = (0, 0, Vec::new());
    for _ in 0..1500 {
        let mut forged = bytes.clone();
        for _ in 0..1 + stream.below(2) {
            let at = middle + 4 * stream.below((end - middle) as u64 / 4) as usize;
            let old = u32::from_le_bytes(forged[at..at + 4].try_into().unwrap());
            let new = match stream.below(5) {
                0 => old ^ (1 << stream.below(32)),
                1 => old.wrapping_add(1),
                2 => old.wrapping_sub(1),
                3 => stream.below(600) as u32,
                _ => u32::MAX,
            };
            forged[at..at + 4].copy_from_slice(&new.to_le_bytes());
        }
        let right = sum(&forged);
        forged[end..].copy_from_slice(&right.to_le_bytes());
        match std::panic::catch_unwind(|| load(&forged, &[])) {
            Err(_) => panics += 1,
            Ok(Err(_)) => {}
            Ok(Ok(drive)) => {
                accepted += 1;
                if let Err(wrong) = drive.audit() {
                    unsound.push(wrong);
                }
            }
        }
    }
    println!("{accepted} of 1500 forged snapshots are accepted");
    assert_eq!(panics, 0, "a forged snapshot makes the loader panic");
    let some = &unsound[..unsound.len().min(3)];
    assert!(unsound.is_empty(), "{} unsound drives of 1500, such as {some:?}", unsound.len());
}

#[test]
fn a_snapshot_of_another_drive_is_refused_with_the_difference() {
    let bytes = saved(&preconditioned(FILL, &[]));
    for (set, says) in [
        ("drive.channels=1", "lanes = 4, but this drive has 2"),
        ("drive.planes_per_die=4", "drive.planes_per_die = 2, but this drive has 4"),
        ("drive.blocks_per_plane=17", "drive.blocks_per_plane = 16, but this drive has 17"),
        ("drive.pages_per_block=9", "drive.pages_per_block = 8, but this drive has 9"),
        ("drive.page_size=8KiB", "drive.page_size (bytes) = 4096, but this drive has 8192"),
        ("drive.op=0.6", "logical units = 341, but this drive has 320"),
        ("ftl.mapping_unit=2KiB", "ftl.mapping_unit (units of a page) = 1, but this drive has 2"),
        ("ftl.superblock=die", "ftl.superblock (blocks) = 1, but this drive has 2"),
        (
            "drive.program_order=one-shot",
            "drive.program_order (pages of a program) = 1, but this drive has 2",
        ),
        ("ftl.allocation=PDWC", "static allocation order"),
        ("ftl.allocation=dynamic", "static allocation order"),
    ] {
        let sets = [set, "timing.multi_plane=true"];
        let error = load(&bytes, &sets).err().unwrap_or_else(|| panic!("{set} is accepted"));
        assert!(matches!(error, SnapshotError::Mismatch(..)), "{set}: {error:?}");
        assert!(error.to_string().contains(says), "{set}: {error}");
    }
    // Settings that the saved state does not depend on may differ.
    for set in ["timing.read=70us", "gc.victim=fifo", "drive.endurance=5000", "seed=9", "drive.cell=slc"] {
        load(&bytes, &[set]).unwrap_or_else(|e| panic!("{set}: {e}"));
    }
}

/// A unit keeps its number of copybacks in a row, and superblocks that are open for copybacks stay open. In a drive
/// that makes no such copybacks these superblocks are closed.
#[test]
fn a_loaded_drive_has_the_copybacks_of_the_saved_one() {
    const LIMIT: &str = "migration.policy.rcopyback-greedy.limit=3";
    let sets = [LIMIT, "drive.op=1.5", "gc.pacing=none"];
    let mut drive = preconditioned("[precondition]\nused = 0.6\nvalid = 0.5\n", &sets);
    continue_with(&mut drive);
    let copybacks =
        |drive: &Drive| drive.array().superblocks.iter().map(|b| b.copybacks()).collect::<Vec<_>>();
    let open =
        |drive: &Drive| drive.array().superblocks.iter().filter(|b| b.state == SuperblockState::Open).count();
    assert!(copybacks(&drive).contains(&3), "no unit was copied back three times");
    let bytes = saved(&drive);
    for changed in ["seed=1", "migration.policy=off-chip"] {
        let sets = [&sets[..], &[changed]].concat();
        let mut loaded = load(&bytes, &sets).unwrap_or_else(|e| panic!("{changed}: {e}"));
        assert_eq!(copybacks(&loaded), copybacks(&drive), "{changed}");
        match changed {
            "seed=1" => assert_eq!(open(&loaded), open(&drive)),
            _ => assert!(open(&loaded) < open(&drive), "{changed}: {} superblocks are open", open(&loaded)),
        }
        continue_with(&mut loaded);
    }
}

/// Compares two dies of two planes with four dies of one plane: the number of planes is equal, and so is their order
/// under CWDP.
#[test]
fn a_snapshot_of_a_drive_with_other_dies_is_refused() {
    let bytes = saved(&preconditioned(FILL, &[]));
    for sets in [
        ["drive.chips_per_channel=2", "drive.planes_per_die=1"],
        ["drive.dies_per_chip=2", "drive.planes_per_die=1"],
    ] {
        assert!(load(&bytes, &sets).is_err(), "{sets:?} is accepted");
    }
}

#[test]
fn other_files_are_refused_with_a_reason() {
    for (bytes, says) in [
        (&b""[..], "it ends too early"),
        (b"nandlab", "it ends too early"),
        (b"nandlab8", "it ends too early"),
        (
            b"nandlab7 and more",
            "saved in format 7, but this version of nandlab reads format 8: save the drive again",
        ),
        (b"nandlab9", "saved in format 9, but this version of nandlab reads format 8: save the drive again"),
        (b"nandlab and more", "it does not begin with the magic number"),
        (b"PK\x03\x04 a zip file", "it does not begin with the magic number"),
    ] {
        let error = load(bytes, &[]).expect_err("it is no snapshot");
        assert!(error.to_string().contains(says), "{error}");
    }
}

/// The sections of a file: name, version and content.
fn sections(bytes: &[u8]) -> Vec<(String, u64, Vec<u8>)> {
    let number = |at: usize| u64::from_le_bytes(bytes[at..at + 8].try_into().unwrap());
    let mut at = 16;
    let mut sections = Vec::new();
    for _ in 0..number(8) {
        let name = String::from_utf8(bytes[at..at + 16].to_vec()).unwrap();
        let (version, len) = (number(at + 16), number(at + 24) as usize);
        sections.push((
            name.trim_end_matches('\0').to_owned(),
            version,
            bytes[at + 32..at + 32 + len].to_vec(),
        ));
        at += 32 + len;
    }
    assert_eq!(at + 8, bytes.len(), "a checksum of eight bytes follows the sections");
    sections
}

/// The file with these sections and the right checksum.
fn with_sections(sections: &[(String, u64, Vec<u8>)]) -> Vec<u8> {
    let mut bytes = b"nandlab8".to_vec();
    let mut sum = 0xcbf2_9ce4_8422_2325_u64;
    let mut put = |number: u64, content: &[u8]| {
        sum = (sum ^ number).wrapping_mul(0x0000_0100_0000_01b3).rotate_left(17);
        bytes.extend(content);
    };
    let long = |bytes: &[u8]| u64::from_le_bytes(bytes.try_into().unwrap());
    let short = |bytes: &[u8]| u32::from_le_bytes(bytes.try_into().unwrap()).into();
    let count = sections.len() as u64;
    put(count, &count.to_le_bytes());
    for (name, version, content) in sections {
        let mut head = format!("{name:\0<16}").into_bytes();
        head.extend([version.to_le_bytes(), (content.len() as u64).to_le_bytes()].concat());
        head.chunks(8).for_each(|number| put(long(number), number));
        // Only the superblocks have numbers of four bytes.
        if name == "superblocks" {
            content.chunks(4).for_each(|number| put(short(number), number));
        } else {
            content.chunks(8).for_each(|number| put(long(number), number));
        }
    }
    bytes.extend(sum.to_le_bytes());
    bytes
}

const LARGER: &str = "drive.blocks_per_plane=64";
/// A drive with two translation pages.
const DEMAND_MAP: [&str; 2] = ["ftl.map.demand={ cache = '256B' }", LARGER];

#[test]
fn a_drive_has_three_sections_and_a_mechanism_with_a_state_one_more() {
    for (sets, names) in [
        (&[][..], &["drive", "superblocks", "lanes"][..]),
        (&DEMAND_MAP, &["drive", "demand map", "superblocks", "lanes"]),
        (&["cache.size=64KiB"], &["drive", "superblocks", "lanes"]),
    ] {
        let bytes = saved(&preconditioned(FILL, sets));
        let found = sections(&bytes);
        assert_eq!(found.iter().map(|(name, ..)| name.as_str()).collect::<Vec<_>>(), names);
        assert!(with_sections(&found) == bytes, "the test writes another file than the drive");
    }
}

#[test]
fn a_missing_section_is_refused_unless_the_mechanism_can_begin_empty() {
    let sets = DEMAND_MAP;
    let whole = sections(&saved(&preconditioned(FILL, &sets)));
    for (missing, says) in [
        ("drive", "it has no section \"drive\""),
        // The translation pages are in flash: a map without any would lose data.
        ("demand map", "translation pages (ftl.map) = 0, but this drive has 2"),
        ("superblocks", "it has no section \"superblocks\""),
        ("lanes", "it has no section \"lanes\""),
    ] {
        let mut rest = whole.clone();
        rest.retain(|(name, ..)| name != missing);
        assert_eq!(rest.len() + 1, whole.len());
        let error = load(&with_sections(&rest), &sets).err().unwrap_or_else(|| panic!("without {missing}"));
        assert!(error.to_string().contains(says), "{error}");
    }
    // The write cache saves nothing, so a drive with one also loads a file without.
    load(&saved(&preconditioned(FILL, &[])), &["cache.size=64KiB"]).unwrap();
}

#[test]
fn an_unknown_section_is_refused_with_the_remedy() {
    let whole = sections(&saved(&preconditioned(FILL, &[])));
    for content in [vec![], vec![1; 8], vec![7; 4096]] {
        let mut more = whole.clone();
        more.insert(1, ("a new mechanism".to_owned(), 1, content));
        let error = load(&with_sections(&more), &[]).expect_err("nothing loads the section");
        assert!(matches!(&error, SnapshotError::UnknownSection(name) if name == "a new mechanism"));
        assert!(error.to_string().ends_with("or save the drive again with this version"), "{error}");
    }
    // A section that is known, but not after the last one.
    let mut more = whole.clone();
    more.push(whole[2].clone());
    let error = load(&with_sections(&more), &[]).unwrap_err();
    assert!(matches!(error, SnapshotError::Damaged("a section follows the last one")), "{error}");
    // A section of a mechanism that this drive does not have.
    let error = load(&saved(&preconditioned(FILL, &DEMAND_MAP)), &[LARGER]).unwrap_err();
    assert!(error.to_string().contains("a drive with a demand map, but this drive has none"), "{error}");
}

#[test]
fn a_section_of_another_version_is_refused_with_the_remedy() {
    let sets = DEMAND_MAP;
    let whole = sections(&saved(&preconditioned(FILL, &sets)));
    load(&with_sections(&whole), &sets).unwrap();
    for at in 0..whole.len() {
        let mut other = whole.clone();
        other[at].1 = 2;
        let name = whole[at].0.as_str();
        let error = load(&with_sections(&other), &sets).expect_err(name);
        assert!(matches!(error, SnapshotError::SectionVersion(of, 2, 1) if of == name), "{name}: {error}");
        assert!(error.to_string().ends_with("reads version 1: save the drive again with this version"));
    }
}

#[test]
fn a_section_of_another_length_is_damaged() {
    let sets = DEMAND_MAP;
    let whole = sections(&saved(&preconditioned(FILL, &sets)));
    for at in 0..whole.len() {
        let len = whole[at].2.len();
        for other in [len - 8, len + 8] {
            let mut changed = whole.clone();
            changed[at].2.resize(other, 0);
            let error = load(&with_sections(&changed), &sets).expect_err(&whole[at].0);
            assert!(matches!(error, SnapshotError::Damaged(_)), "{}: {error}", whole[at].0);
        }
    }
}

/// The settings of the drive in `tests/data/mechanisms.drive`, which has every mechanism.
const MECHANISMS: [&str; 13] = [
    "drive.blocks_per_plane=64",
    "ftl.map.demand={ cache = '256B' }",
    "ftl.wear_levelling=static",
    "cache.size='64KiB'",
    "cache.flush_to=flash",
    "capacitor.capacitance='20uF'",
    "ecc.levels='laldpc'",
    "reliability.rber='vth'",
    "reliability.pe_cycles=8000",
    "reliability.clock_scale=300000",
    "migration.policy.rcopyback-greedy={ limit = 2 }",
    "reclaim.policy=reads",
    "refresh.policy.partial={ min_free_blocks = 0.0 }",
];

/// A drive that an earlier revision has saved. With the environment variable `NANDLAB_KEEP_DRIVE` the test saves it
/// anew, which only a change of the format, of a section, or of the settings above needs.
#[test]
fn a_kept_file() {
    let file = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("tests/data/mechanisms.drive");
    if std::env::var_os("NANDLAB_KEEP_DRIVE").is_some() {
        let mut drive = preconditioned(FILL, &MECHANISMS);
        continue_with(&mut drive);
        drive.submit(&request(&drive, Op::Flush, 0, 0)).unwrap();
        drive.run_until_idle(IDLE_LIMIT).unwrap();
        // A loaded drive saves its superblocks in the order of their numbers.
        let loaded = load(&saved(&drive), &MECHANISMS).unwrap();
        std::fs::write(&file, saved(&loaded)).unwrap();
    }
    let bytes = std::fs::read(&file).unwrap();
    let mut drive = load(&bytes, &MECHANISMS).unwrap();
    drive.audit().unwrap();
    let sum =
        |of: fn(&(u32, u32, u32, SuperblockState)) -> u32| superblocks(&drive).iter().map(of).sum::<u32>();
    let copied_back =
        drive.array().superblocks.iter().filter(|superblock| superblock.copybacks() > 0).count();
    let (pe_cycles, programmed, valid) = (sum(|b| b.0), sum(|b| b.1), sum(|b| b.2));
    let mapped = map(&drive).iter().flatten().count();
    assert_eq!(
        (mapped, pe_cycles, programmed, valid, copied_back),
        (1247, 2_048_783, 1772, 1247 + 2, 37),
        "LPNs with data, P/E cycles, units programmed, valid units, and superblocks of copied-back units"
    );
    assert!(saved(&drive) == bytes, "the loaded drive is saved as a different file");
    let mut again = load(&saved(&drive), &MECHANISMS).unwrap();
    assert_eq!(continue_with(&mut drive), continue_with(&mut again));
    assert_eq!((map(&drive), superblocks(&drive)), (map(&again), superblocks(&again)));
    // Every mechanism goes on working.
    let stats = drive.stats();
    let operations = |cause: Cause| stats.flash.iter().map(|of| of[cause as usize]).sum::<u64>();
    for cause in [Cause::Host, Cause::Gc, Cause::Mapping, Cause::Sync, Cause::Refresh] {
        assert!(operations(cause) > 0, "no operation of cause {cause:?}");
    }
}

#[test]
fn io_errors_are_returned() {
    struct Broken;
    impl std::io::Write for Broken {
        fn write(&mut self, _: &[u8]) -> std::io::Result<usize> {
            Err(std::io::Error::other("the disk is full"))
        }
        fn flush(&mut self) -> std::io::Result<()> {
            Ok(())
        }
    }
    impl std::io::Read for Broken {
        fn read(&mut self, _: &mut [u8]) -> std::io::Result<usize> {
            Err(std::io::Error::other("the disk is gone"))
        }
    }
    let drive = preconditioned(FILL, &[]);
    assert_eq!(drive.save(Broken).unwrap_err().to_string(), "the disk is full");
    let error = Drive::new(&spec(TINY, &[])).load(Broken).unwrap_err();
    assert_eq!(error.to_string(), "the disk is gone");
}
