//! Checkpoints of served drives: a session goes on from one as if its server had not ended, and a server may be killed at any
//! time around one.

use crate::recording::*;
use crate::simulated::*;
use nandlab::base::units::{Span, Time};
use nandlab::drive::SnapshotError;
use nandlab_base::recording::{Header, Recording};
use nandlab_live::backend::{Backend, Op, Order};
use nandlab_live::recording::{Recorded, Recorder, RecorderError};
use nandlab_live::simulated::{Kept, Options, Resumed, Simulated, Speed, Unresumed, Unserved};
use proptest::prelude::*;
use std::fs::{File, Permissions};
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::sync::mpsc::{Sender, channel};

/// The places of a drive: recording and checkpoint.
struct Folder {
    recording: Place,
    checkpoint: Place,
    /// The replay time from which the drive is saved by itself.
    replay_max_ns: u64,
    notices: Option<Sender<String>>,
}

impl Folder {
    fn new() -> Self {
        Self { recording: Place::new(), checkpoint: Place::new(), replay_max_ns: NEVER, notices: None }
    }

    /// The file of the data.
    fn data(&self) -> PathBuf {
        with_end(&self.checkpoint.0, ".data")
    }

    fn kept(&self, from_bytes: u64) -> Kept {
        let (path, recorded) = (self.checkpoint.0.clone(), self.recording.recorded());
        let replay_max = Span::from_ns(self.replay_max_ns);
        Kept {
            path,
            recorded,
            header: header(),
            from_bytes,
            replay_max,
            memory_max: 1 << 24,
            notices: self.notices.clone(),
        }
    }

    fn options(&self, speed: Speed) -> Options {
        Options { checkpoint: Some(self.checkpoint.0.clone()), ..options(speed) }
    }

    /// A drive that begins.
    fn begin(&self, sets: &[&str], speed: Speed, from_bytes: u64) -> Simulated {
        let mut drive = drive(sets, &self.options(speed));
        drive.keep(self.kept(from_bytes));
        drive.record_to(Recorder::create(&self.recording.recorded(), &header()).unwrap());
        drive
    }

    /// The drive as the next server has it.
    fn resume(&self, sets: &[&str], speed: Speed, from_bytes: u64) -> (Simulated, Resumed) {
        let mut drive = drive(sets, &self.options(speed));
        drive.keep(self.kept(from_bytes));
        let resumed = drive.resume(&self.recording.recorded(), |_| Ok(()), &mut |_| true).unwrap();
        (drive, resumed)
    }

    fn recording_header(&self) -> Header {
        Recording::open(File::open(&self.recording.0).unwrap()).unwrap().header().clone()
    }
}

const NEVER: u64 = u64::MAX;

proptest! {
    #![proptest_config(ProptestConfig::with_cases(60))]

    /// Sessions with checkpoints among their orders. The next server has the same results and the same bytes; so has the
    /// one after it, which goes on from a checkpoint at the end of the session.
    #[test]
    fn a_drive_goes_on_from_its_checkpoint(
        batches in steps(),
        mut orders in proptest::collection::vec(0..8u8, 8),
        kind in 0..KINDS.len(),
        speed in 0..SPEEDS.len(),
        by_itself in any::<bool>(),
    ) {
        let (mut folder, sets, speed) = (Folder::new(), KINDS[kind], SPEEDS[speed]);
        if by_itself {
            folder.replay_max_ns = 0;
        }
        // The session ends with power: its end is not the beginning of the next one otherwise.
        let last = batches.len().saturating_sub(1) % orders.len();
        orders[last] = 9;
        let mut first = folder.begin(sets, speed, NEVER);
        session(&mut first, &batches, &orders, speed);
        let before = results(first.drive_mut());
        drop(first);
        folder.replay_max_ns = NEVER;
        let (mut again, resumed) = folder.resume(sets, speed, NEVER);
        prop_assert!(resumed.was_clean && resumed.torn == 0);
        prop_assert_eq!(again.is_restored(), folder.checkpoint.0.exists());
        prop_assert!(results(again.drive_mut()) == before);
        drop(again);
        // Every session ends with a checkpoint now.
        let (mut second, _) = folder.resume(sets, speed, 0);
        session(&mut second, &batches, &[4, 9, 2], speed);
        let before = results(second.drive_mut());
        let stat = second.order(Time::START, Order::Stat).unwrap();
        drop(second);
        let (mut third, resumed) = folder.resume(sets, speed, 0);
        prop_assert_eq!(resumed, Resumed { records: 0, torn: 0, was_clean: true });
        prop_assert!(results(third.drive_mut()) == before);
        let now = third.order(Time::START, Order::Stat).unwrap();
        for key in ["completed", "power_losses", "busy_s", "simulated_s"] {
            prop_assert_eq!(&now[key], &stat[key], "{}", key);
        }
        let bytes = all_bytes(&mut third);
        third.end(Time::START).unwrap();
        drop(third);
        let (mut fourth, _) = folder.resume(sets, speed, NEVER);
        prop_assert!(all_bytes(&mut fourth) == bytes);
    }
}

/// A drive with 60 numbered writes, the last of them flushed, a checkpoint, and 20 further writes. Returns the files before
/// the checkpoint, after it, and at the end: the recording and the checkpoint.
fn around_a_checkpoint(folder: &Folder, sets: &[&str]) -> [(Vec<u8>, Option<Vec<u8>>); 3] {
    let files = || (std::fs::read(&folder.recording.0).unwrap(), std::fs::read(&folder.checkpoint.0).ok());
    let mut drive = folder.begin(sets, MAX, NEVER);
    for number in 1..=60 {
        write(&mut drive, number * 7 % 30 * UNIT, &stamped(number * 7 % 30, number));
    }
    one(&mut drive, request(Op::Flush, 0, 0), &[]).unwrap();
    let before = files();
    let saved = drive.order(Time::START, Order::Save).unwrap();
    let after = files();
    assert_eq!(saved["bytes"], after.1.as_ref().unwrap().len());
    for number in 61..=80 {
        write(&mut drive, number * 7 % 30 * UNIT, &stamped(number * 7 % 30, number));
    }
    one(&mut drive, request(Op::Flush, 0, 0), &[]).unwrap();
    [before, after, files()]
}

/// The newest write of each LPN among the first `count`.
fn newest(count: u64) -> [u64; 30] {
    let mut newest = [0; 30];
    (1..=count).for_each(|number| newest[(number * 7 % 30) as usize] = number);
    newest
}

/// The name of a file that is to take the place of another.
fn new(path: &Path) -> PathBuf {
    with_end(path, ".new")
}

fn put(path: &Path, bytes: Option<&[u8]>) {
    match bytes {
        Some(bytes) => std::fs::write(path, bytes).unwrap(),
        None => _ = std::fs::remove_file(path),
    }
}

/// A server may be killed before, in and after a checkpoint: what was flushed is there.
#[test]
fn flushed_data_outlives_a_server_that_is_killed_around_a_checkpoint() {
    for sets in kinds_that_keep_flushed_data() {
        let folder = Folder::new();
        let [before, after, end] = around_a_checkpoint(&folder, sets);
        // The data of the end goes with the checkpoint too. Without a checkpoint the recording has the data.
        let data = std::fs::read(folder.data()).unwrap();
        assert!(after.0.len() < before.0.len() / 4, "the recording begins anew");
        let (old, anew, checkpoint) = (Some(&*before.0), Some(&*after.0), after.1.as_deref());
        let (later, torn) = (Some(&*end.0), checkpoint.map(|bytes| &bytes[..bytes.len() / 2]));
        // The recording, that beside it, the checkpoint, that beside it, and the newest write that was flushed.
        for (recording, next, checkpoint, unfinished, flushed) in [
            (old, None, None, None, 60),
            // While the checkpoint is written, and when it has no name yet: both recordings have all records.
            (old, anew, None, torn, 60),
            (old, anew, None, checkpoint, 60),
            // Between the checkpoint and the recording that follows it: the old recording is not played.
            (old, anew, checkpoint, None, 60),
            (old, later, checkpoint, None, 80),
            (old, None, checkpoint, None, 60),
            (None, None, checkpoint, None, 60),
            (anew, None, checkpoint, None, 60),
            (later, None, checkpoint, None, 80),
            // While the next checkpoint is written.
            (later, anew, checkpoint, torn, 80),
            (later, old, checkpoint, torn, 80),
        ] {
            put(&folder.recording.0, recording);
            put(&new(&folder.recording.0), next);
            put(&folder.checkpoint.0, checkpoint);
            put(&new(&folder.checkpoint.0), unfinished);
            put(&folder.data(), Some(&data));
            let (mut drive, resumed) = folder.resume(sets, MAX, NEVER);
            assert!(!resumed.was_clean);
            assert!(!new(&folder.recording.0).exists() && !new(&folder.checkpoint.0).exists());
            assert_eq!(drive.drive().stats().power.losses.len(), 1);
            assert_eq!(drive.is_restored(), checkpoint.is_some());
            let expected = newest(flushed);
            for lpn in 0..30 {
                assert_eq!(
                    number_of(lpn, &read(&mut drive, lpn * UNIT, UNIT).unwrap()),
                    expected[lpn as usize]
                );
            }
            drive.end(Time::START).unwrap();
            let results_before = results(drive.drive_mut());
            drop(drive);
            assert_eq!(folder.recording_header().continues, checkpoint.is_some());
            let (mut again, resumed) = folder.resume(sets, MAX, NEVER);
            assert!(resumed.was_clean);
            assert!(results(again.drive_mut()) == results_before);
        }
    }
}

#[test]
fn a_recording_without_its_checkpoint_is_not_resumed() {
    let folder = Folder::new();
    around_a_checkpoint(&folder, &[]);
    put(&folder.checkpoint.0, None);
    let mut alone = drive(&[], &folder.options(MAX));
    alone.keep(folder.kept(NEVER));
    match alone.resume(&folder.recording.recorded(), |_| Ok(()), &mut |_| true) {
        Err(Unresumed::Another(text)) => assert!(text.contains("which is missing"), "{text}"),
        other => panic!("{other:?}"),
    }
}

/// Two servers begin at the same time: the one that has read the checkpoint does not go on from it when the other one, which
/// had the recording first, has saved the drive again meanwhile.
#[test]
fn a_server_that_was_too_late_does_not_go_on() {
    let folder = Folder::new();
    let mut late = drive(&[], &folder.options(MAX));
    for _ in 0..2 {
        late.keep(folder.kept(NEVER));
        if folder.recording.0.exists() {
            let (mut other, _) = folder.resume(&[], MAX, 0);
            write(&mut other, 0, &stamped(0, 200));
            other.end(Time::START).unwrap();
        } else {
            around_a_checkpoint(&folder, &[]);
        }
        let error = late.resume(&folder.recording.recorded(), |_| Ok(()), &mut |_| true).unwrap_err();
        assert!(matches!(error, Unresumed::Recorder(RecorderError::Locked(_))), "{error:?}");
        late = drive(&[], &folder.options(MAX));
    }
    let (mut last, _) = folder.resume(&[], MAX, NEVER);
    assert_eq!(number_of(0, &read(&mut last, 0, UNIT).unwrap()), 200);
}

#[test]
fn a_checkpoint_of_another_drive_is_refused() {
    let folder = Folder::new();
    around_a_checkpoint(&folder, &[]);
    match Simulated::build(&spec_of(KINDS[2]), &folder.options(MAX), &mut |_| true) {
        Err(Unserved::Restore(path, SnapshotError::OtherSpec)) => assert_eq!(path, folder.checkpoint.0),
        other => panic!("{other:?}"),
    }
    let bytes = std::fs::read(&folder.checkpoint.0).unwrap();
    put(&folder.checkpoint.0, Some(&bytes[..bytes.len() / 2]));
    match Simulated::build(&spec_of(&[]), &folder.options(MAX), &mut |_| true) {
        Err(Unserved::Restore(_, error)) => assert!(error.to_string().contains("ends too early"), "{error}"),
        other => panic!("{other:?}"),
    }
}

/// The data is in a file of its own. A checkpoint is refused without the file that it goes with. What is damaged in the file
/// is an error of the unit when it is read, and not before. The file is for its user alone, whatever was there before.
#[test]
fn a_checkpoint_goes_with_its_data() {
    let folder = Folder::new();
    put(&folder.data(), Some(b"of another drive"));
    std::fs::set_permissions(folder.data(), Permissions::from_mode(0o644)).unwrap();
    around_a_checkpoint(&folder, &[]);
    assert_eq!(std::fs::metadata(folder.data()).unwrap().permissions().mode() & 0o777, 0o600);
    let data = std::fs::read(folder.data()).unwrap();
    let refused = |bytes: Option<&[u8]>| {
        put(&folder.data(), bytes);
        match Simulated::build(&spec_of(&[]), &folder.options(MAX), &mut |_| true) {
            Err(Unserved::Restore(_, error @ SnapshotError::Io(_))) => error.to_string(),
            other => panic!("{other:?}"),
        }
    };
    let path = folder.data().display().to_string();
    assert!(refused(None).contains(&path));
    let mut another = data.clone();
    another[16] ^= 1;
    assert!(refused(Some(&another)).contains("not the file that this checkpoint goes with"));
    // The newest unit of LPN 7 is that of the 61st write.
    let wanted = stamped(7, 61);
    let at = data.windows(wanted.len()).position(|unit| unit == wanted).expect("the unit is in the file");
    let mut damaged = data.clone();
    damaged[at + 100] ^= 1;
    put(&folder.data(), Some(&damaged));
    let (mut drive, _) = folder.resume(&[], MAX, NEVER);
    for lpn in 0..30 {
        let found = read(&mut drive, lpn * UNIT, UNIT);
        // The recording has the 61st write too, and writes its unit to another place.
        assert_eq!(number_of(lpn, &found.unwrap()), newest(80)[lpn as usize]);
    }
    drive.order(Time::START, Order::Save).unwrap();
    drop(drive);
    let data = std::fs::read(folder.data()).unwrap();
    let damaged: Vec<u8> = data.iter().map(|&byte| byte.wrapping_add(1)).collect();
    put(&folder.data(), Some(&[&data[..4096], &damaged[4096..]].concat()));
    let (mut drive, _) = folder.resume(&[], MAX, NEVER);
    for lpn in 0..30 {
        assert!(read(&mut drive, lpn * UNIT, UNIT).is_err(), "LPN {lpn}");
    }
    write(&mut drive, 0, &stamped(0, 500));
    assert_eq!(number_of(0, &read(&mut drive, 0, UNIT).unwrap()), 500);
}

#[test]
fn a_drive_is_saved_only_with_power_and_with_a_place_for_it() {
    let mut without = drive(&[], &options(MAX));
    let why = without.order(Time::START, Order::Save).unwrap_err();
    assert_eq!(why, "the drive has no folder for a checkpoint: serve it with --data");
    let folder = Folder::new();
    let mut off = folder.begin(&[], MAX, 0);
    off.order(Time::START, Order::Cut).unwrap();
    assert!(off.order(Time::START, Order::Save).unwrap_err().contains("no power"));
    off.end(Time::START).unwrap();
    drop(off);
    assert!(!folder.checkpoint.0.exists(), "a session that ends without power ends without a checkpoint");
    let (_, resumed) = folder.resume(&[], MAX, 0);
    assert!(resumed.was_clean && resumed.records > 0);
}

/// A checkpoint that cannot be written changes nothing.
#[test]
fn a_session_goes_on_when_it_cannot_be_saved() {
    let folder = Folder::new();
    let mut first = folder.begin(&[], MAX, NEVER);
    write(&mut first, 0, &stamped(0, 1));
    std::fs::create_dir(&folder.checkpoint.0).unwrap();
    let why = first.order(Time::START, Order::Save).unwrap_err();
    assert!(why.contains("the drive is not saved"), "{why}");
    std::fs::remove_dir(&folder.checkpoint.0).unwrap();
    write(&mut first, UNIT, &stamped(1, 2));
    first.end(Time::START).unwrap();
    drop(first);
    let (mut second, resumed) = folder.resume(&[], MAX, NEVER);
    assert!(resumed.was_clean && !second.is_restored());
    assert_eq!(number_of(1, &read(&mut second, UNIT, UNIT).unwrap()), 2);
}

#[test]
fn a_new_recording_is_locked_before_it_has_its_name() {
    let folder = Folder::new();
    let mut first = folder.begin(&[], MAX, NEVER);
    first.order(Time::START, Order::Save).unwrap();
    let mut second = drive(&[], &folder.options(MAX));
    second.keep(folder.kept(NEVER));
    let resumed = second.resume(&folder.recording.recorded(), |_| Ok(()), &mut |_| true);
    assert!(matches!(resumed, Err(Unresumed::Recorder(RecorderError::Locked(_)))), "{resumed:?}");
}

/// Writes until the drive has been saved `count` times, or has failed to be. Returns the number of the last write.
fn write_until(drive: &mut Simulated, mut number: u64, key: &str, count: u64) -> u64 {
    loop {
        let stat = drive.order(Time::START, Order::Stat).unwrap();
        if stat["checkpoints"][key].as_u64().unwrap() >= count {
            return number;
        }
        for _ in 0..50 {
            number += 1;
            write(drive, number * 7 % 30 * UNIT, &stamped(number * 7 % 30, number));
        }
        one(drive, request(Op::Flush, 0, 0), &[]).unwrap();
    }
}

/// How the last write of each LPN reads.
fn numbers(drive: &mut Simulated) -> Vec<u64> {
    (0..30).map(|lpn| number_of(lpn, &read(drive, lpn * UNIT, UNIT).unwrap())).collect()
}

#[test]
fn a_drive_is_saved_by_itself_when_its_replay_would_take_long() {
    for sets in KINDS {
        let folder = Folder { replay_max_ns: 1, ..Folder::new() };
        let mut drive = folder.begin(sets, MAX, NEVER);
        let number = write_until(&mut drive, 0, "count", 3);
        drive.end(Time::START).unwrap();
        let before = results(drive.drive_mut());
        drop(drive);
        let (mut again, resumed) = folder.resume(sets, MAX, NEVER);
        assert!(resumed.was_clean && again.is_restored());
        assert_eq!(results(again.drive_mut()), before, "{sets:?}");
        let stat = again.order(Time::START, Order::Stat).unwrap();
        assert!(stat["completed"].as_u64() > Some(number));
        assert_eq!(numbers(&mut again), newest(number));
    }
}

#[test]
fn a_drive_that_begins_after_a_long_replay_is_saved() {
    let folder = Folder::new();
    let mut first = folder.begin(&[], MAX, NEVER);
    (1..=60).for_each(|number| write(&mut first, number * 7 % 30 * UNIT, &stamped(number * 7 % 30, number)));
    drop(first);
    assert!(!folder.checkpoint.0.exists());
    let folder = Folder { replay_max_ns: 1, ..folder };
    let (mut second, _) = folder.resume(&[], MAX, NEVER);
    second.advance(Time::START);
    second.end(Time::START).unwrap();
    assert!(folder.checkpoint.0.exists());
    assert!(folder.recording_header().continues);
}

/// A checkpoint that fails is a notice: the session goes on in its recording, and a later checkpoint takes its place.
#[test]
fn a_checkpoint_that_fails_by_itself_is_a_notice() {
    let (tell, notices) = channel();
    let folder = Folder { replay_max_ns: 1, notices: Some(tell), ..Folder::new() };
    let mut first = folder.begin(&[], MAX, NEVER);
    std::fs::create_dir(&folder.checkpoint.0).unwrap();
    let number = write_until(&mut first, 0, "failed", 2);
    assert!(notices.try_iter().all(|text| text.contains("is not saved") && text.contains("goes on")));
    assert!(!new(&folder.checkpoint.0).exists() && !new(&folder.recording.0).exists());
    std::fs::remove_dir(&folder.checkpoint.0).unwrap();
    // The server is killed.
    drop(first);
    let (mut second, resumed) = folder.resume(&[], MAX, NEVER);
    assert!(!resumed.was_clean && !second.is_restored());
    assert_eq!(numbers(&mut second), newest(number));
    write_until(&mut second, number, "count", 1);
    second.end(Time::START).unwrap();
    drop(second);
    let (third, _) = folder.resume(&[], MAX, NEVER);
    assert!(third.is_restored());
}

/// A recording with a limit begins anew before it reaches the limit.
#[test]
fn a_drive_is_saved_before_its_recording_reaches_its_limit() {
    let folder = Folder::new();
    let recorded = Recorded { limit: 1 << 20, ..folder.recording.recorded() };
    let mut drive = drive(&[], &folder.options(MAX));
    drive.keep(Kept { recorded: recorded.clone(), ..folder.kept(NEVER) });
    drive.record_to(Recorder::create(&recorded, &header()).unwrap());
    write_until(&mut drive, 0, "count", 2);
    assert!(!drive.has_ended());
    drive.end(Time::START).unwrap();
}
