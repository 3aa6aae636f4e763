//! Saved drives: a loaded drive has the map, the wear and the superblocks of the saved drive, and damaged or foreign
//! files are refused.

use crate::common::{TINY, request, settle, spec, summary_at_the_end, wait_for_fewer, with_oracle};
use nandlab::base::geometry::Lpn;
use nandlab::base::rng::Stream;
use nandlab::base::units::Time;
use nandlab::drive::{Drive, SnapshotError};
use nandlab::flash::SuperblockState;
use nandlab::ftl::streams::FIXED_NUMBERS;
use nandlab::host::{Op, Oracle, Request};
use nandlab::probe::Probe;

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
    let lanes = drive.geometry().lanes as usize;
    let (middle, open) = (8 + 8 * 17, bytes.len() - 8 - lanes * usize::from(FIXED_NUMBERS) * 8);
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
        (b"nandlab7", "it ends too early"),
        (b"nandlab2 and more", "it does not begin with the magic number"),
        (b"PK\x03\x04 a zip file", "it does not begin with the magic number"),
    ] {
        let error = load(bytes, &[]).expect_err("it is no snapshot");
        assert!(error.to_string().contains(says), "{error}");
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
