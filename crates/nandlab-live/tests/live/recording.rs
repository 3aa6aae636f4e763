//! Recorded sessions: a replay is the session, and a drive goes on where its server has ended.

use crate::simulated::*;
use nandlab::base::geometry::Cell;
use nandlab::base::units::{Span, Time};
use nandlab::drive::Drive;
use nandlab::drive::spec::{self, Spec};
use nandlab::probe::Probe;
use nandlab::report::{RunFacts, Summary, Taps, power};
use nandlab_base::recording::{Event, Header, Recording};
use nandlab_live::backend::{Backend, Errno, Op, Order, Request};
use nandlab_live::player::{Player, Sequences};
use nandlab_live::recording::{NO_LIMIT, Recorded, Recorder, RecorderError, Sync};
use nandlab_live::simulated::{Cutter, Options, Resumed, Simulated, Speed, Unresumed};
use proptest::prelude::*;
use std::fs::File;
use std::io::BufReader;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU32, Ordering};

/// A file of a test that is removed at its end.
pub(crate) struct Place(pub(crate) PathBuf);

impl Place {
    pub(crate) fn new() -> Self {
        static NUMBER: AtomicU32 = AtomicU32::new(0);
        let number = NUMBER.fetch_add(1, Ordering::Relaxed);
        let path = std::env::temp_dir().join(format!("nandlab-recording-{}-{number}", std::process::id()));
        let _ = std::fs::remove_file(&path);
        Self(path)
    }

    pub(crate) fn recorded(&self) -> Recorded {
        Recorded { path: self.0.clone(), limit: NO_LIMIT, sync: Sync::None }
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        let _ = std::fs::remove_file(&self.0);
        // The data of a drive with its checkpoint here.
        let _ = std::fs::remove_file(with_end(&self.0, ".data"));
    }
}

pub(crate) fn with_end(path: &Path, end: &str) -> PathBuf {
    let mut name = path.as_os_str().to_owned();
    name.push(end);
    PathBuf::from(name)
}

pub(crate) fn spec_of(sets: &[&str]) -> Spec {
    let sets: Vec<String> = sets.iter().map(ToString::to_string).collect();
    spec::load(BASE, "test", Path::new("."), &sets).unwrap_or_else(|error| panic!("{error}")).spec
}

pub(crate) fn header() -> Header {
    Header {
        nandlab: "test".to_owned(),
        spec: String::new(),
        folder: String::new(),
        seed: 1,
        id: 5,
        continues: false,
    }
}

fn recording(sets: &[&str], options: &Options, recorded: &Recorded) -> Simulated {
    let mut drive = drive(sets, options);
    drive.record_to(Recorder::create(recorded, &header()).unwrap());
    drive
}

/// The results of a drive at the end of a session: summary, record of power losses, series and latencies.
pub(crate) fn results<P: Probe>(drive: &mut Drive<P>) -> String {
    drive.finish_stats();
    let facts = RunFacts { complete: true, ..RunFacts::default() };
    let summary = serde_json::to_string(&Summary::of(drive, &facts)).unwrap();
    let power = serde_json::to_string(&power(drive)).unwrap();
    let series = drive.stats().series.table(drive.geometry(), drive.array().shapes().first());
    format!("{summary}\n{power}\n{series:?}\n{:?}", drive.now())
}

/// The results of a replay on a drive without contents, and whether the session has ended with a stop.
fn replayed(path: &Path, sets: &[&str]) -> (String, bool) {
    let mut drive = Drive::with_probe(&spec_of(sets), Taps::default().with(Sequences));
    drive.precondition(&mut |_| true);
    let mut recording = Recording::open(BufReader::new(File::open(path).unwrap())).unwrap();
    let (mut player, mut is_stopped) = (Player::default(), false);
    while let Some(entry) = recording.next().unwrap() {
        player.give(&mut drive, &entry).unwrap();
        drive.completions();
        is_stopped = entry.event == Event::Stop;
    }
    (results(&mut drive), is_stopped)
}

/// A session of random steps with orders between them: the requests of a batch are outstanding together.
pub(crate) fn session(drive: &mut Simulated, batches: &[Vec<Step>], orders: &[u8], speed: Speed) {
    let mut now = Time::START;
    let has_handles = drive.drive().ftl().placements.is_on();
    for (batch, order) in batches.iter().zip(orders.iter().cycle()) {
        for (id, step) in (0..).zip(batch) {
            now = Time::from_ns(now.ns() + 1 + u64::from(step.byte) * 1000);
            let payload = vec![step.byte; if step.kind < 4 { step.len as usize } else { 0 }];
            let op = match step.kind {
                0..4 => Op::Write,
                4..7 => Op::Read,
                7 => Op::WriteZeroes { no_hole: step.fua, fast: false },
                8 => Op::Trim,
                _ => Op::Flush,
            };
            let of = request(op, step.offset, step.len);
            // Identifiers that the drive does not have are among them.
            let placement = if has_handles { u16::from(step.byte % 5) } else { 0 };
            let of =
                if op == Op::Flush { request(op, 0, 0) } else { Request { fua: step.fua, placement, ..of } };
            if !drive.is_off() {
                let _ = drive.submit(id, now, &of, &payload);
            }
        }
        // Some requests of the batch are outstanding at the order.
        let waits = if matches!(speed, Speed::Max { .. }) { 1 + usize::from(*order) % 3 } else { 1 };
        for _ in 0..waits {
            drive.advance(now);
            while drive.completed().is_some() {}
        }
        let _ = match order {
            0 => drive.order(now, Order::Cut),
            1 if drive.is_off() => drive.order(now, Order::Restore),
            4..6 if drive.is_off() => {
                drive.order(now, Order::CutInRecovery(Span::from_ns(u64::from(*order) * 30_000 - 110_000)))
            }
            2 => drive.order(now, Order::Detect),
            3 => drive.order(now, Order::Mark("here")),
            // Only a drive with a place for checkpoints is saved.
            4 => drive.order(now, Order::Save),
            6..8 => drive
                .order(now, Order::UpdateHandle((*order).into()))
                .or(drive.order(now, Order::UpdateHandle(1))),
            _ => Ok(serde_json::Value::Null),
        };
        if drive.is_off() && *order > 3 {
            drive.order(now, Order::Restore).unwrap();
        }
        drive.take_power_loss();
    }
    drive.end(now).unwrap();
}

pub(crate) const SPEEDS: [Speed; 4] =
    [Speed::Max { gather: 1 }, Speed::Max { gather: 4 }, Speed::Factor(1.0), Speed::Factor(0.37)];

proptest! {
    #![proptest_config(ProptestConfig::with_cases(60))]

    #[test]
    fn a_replay_is_the_session(
        batches in steps(),
        orders in proptest::collection::vec(0..12u8, 8),
        kind in 0..KINDS.len(),
        speed in 0..SPEEDS.len(),
        every in any::<bool>(),
    ) {
        let place = Place::new();
        let every = (every && orders[0] % 2 == 0).then(|| nandlab::base::units::Span::from_ns(7_000_000));
        let options = Options { cut_every: every, ..options(SPEEDS[speed]) };
        let sets = KINDS[kind];
        let mut drive = recording(sets, &options, &place.recorded());
        session(&mut drive, &batches, &orders, SPEEDS[speed]);
        let expected = results(drive.drive_mut());
        let (found, is_stopped) = replayed(&place.0, sets);
        prop_assert!(is_stopped);
        prop_assert!(found == expected);
    }

    /// After a clean end the drive goes on: every byte reads as before, and both sessions together are one recording.
    #[test]
    fn a_drive_goes_on_after_a_clean_end(batches in steps(), kind in 0..KINDS.len(), speed in 0..SPEEDS.len()) {
        let place = Place::new();
        let options = options(SPEEDS[speed]);
        let mut first = recording(KINDS[kind], &options, &place.recorded());
        session(&mut first, &batches, &[9], SPEEDS[speed]);
        let before = results(first.drive_mut());
        drop(first);
        let resumed = |drive: &mut Simulated| {
            drive.resume(&place.recorded(), |_| Ok(()), &mut |_| true).unwrap()
        };
        let mut again = drive(KINDS[kind], &options);
        let Resumed { was_clean, torn, .. } = resumed(&mut again);
        prop_assert!(was_clean && torn == 0);
        prop_assert!(results(again.drive_mut()) == before);
        drop(again);
        let mut second = drive(KINDS[kind], &options);
        resumed(&mut second);
        session(&mut second, &batches, &[9], SPEEDS[speed]);
        let bytes = all_bytes(&mut second);
        second.end(Time::START).unwrap();
        let expected = results(second.drive_mut());
        drop(second);
        prop_assert!(replayed(&place.0, KINDS[kind]).0 == expected);
        let mut third = drive(KINDS[kind], &options);
        resumed(&mut third);
        prop_assert!(all_bytes(&mut third) == bytes);
    }
}

/// What each unit of the part of the drive that sessions use reads as. A unit may be unreadable on planar MLC alone, of which
/// a power cut destroys flushed pages with the programs that it tears.
pub(crate) fn all_bytes(drive: &mut Simulated) -> Vec<Outcome> {
    // A drive that follows the clock needs times that go on.
    let mut now = drive.next_event().unwrap_or(Time::START);
    let is_planar_mlc = drive.drive().spec().drive.cell == Cell::Mlc;
    let mut unit = |offset: u64| {
        drive.submit(99, now, &request(Op::Read, offset, UNIT), &[]).unwrap();
        loop {
            drive.advance(now);
            if let Some(done) = drive.completed().filter(|done| done.id == 99) {
                assert!(done.result.is_ok() || is_planar_mlc, "{:?}", done.result);
                let mut data = Vec::new();
                drive.take(99, &mut data);
                return done.result.map(|()| data);
            }
            now = Time::from_ns(now.ns().max(drive.next_event().unwrap_or(now).ns()) + 100_000);
        }
    };
    (0..USED / UNIT).map(|number| unit(number * UNIT)).collect()
}

/// A process that is killed leaves the file as it is. Whatever was flushed before the file had this length is there
/// after the drive has been resumed from it.
#[test]
fn flushed_data_outlives_a_killed_server() {
    for sets in kinds_that_keep_flushed_data() {
        let place = Place::new();
        let mut first = recording(sets, &options(MAX), &place.recorded());
        // By flush: bytes of the file when its reply could leave, and the number of the newest write of each LPN before it.
        let mut flushed: Vec<(u64, [u64; 30])> = Vec::new();
        let mut newest = [0u64; 30];
        for number in 1..400u64 {
            let lpn = number * 7 % 30;
            write(&mut first, lpn * UNIT, &stamped(lpn, number));
            newest[lpn as usize] = number;
            if number % 13 == 0 {
                one(&mut first, request(Op::Flush, 0, 0), &[]).unwrap();
                flushed.push((std::fs::metadata(&place.0).unwrap().len(), newest));
            }
        }
        let bytes = std::fs::read(&place.0).unwrap();
        drop(first);
        let mut ends: Vec<usize> = flushed.iter().map(|&(end, _)| end as usize).collect();
        // Also in the middle of a record.
        ends.extend([ends[3] + 5, ends[10] + 1000, ends[20] + 4100]);
        for end in ends {
            std::fs::write(&place.0, &bytes[..end]).unwrap();
            let mut second = drive(sets, &options(MAX));
            let Resumed { was_clean, .. } =
                second.resume(&place.recorded(), |_| Ok(()), &mut |_| true).unwrap();
            assert!(!was_clean);
            let (_, before) = flushed.iter().rev().find(|&&(other, _)| other as usize <= end).unwrap();
            for lpn in 0..30 {
                let found = number_of(lpn, &read(&mut second, lpn * UNIT, UNIT).unwrap());
                let least = before[lpn as usize];
                assert!(found >= least, "LPN {lpn} has write {found}, and {least} was flushed");
            }
            // The cut that the resumption has made is in the recording.
            let power = second.drive().stats().power.losses.len();
            assert_eq!(power, 1);
            second.end(Time::START).unwrap();
            let expected = results(second.drive_mut());
            drop(second);
            assert_eq!(replayed(&place.0, sets).0, expected);
        }
    }
}

#[test]
fn a_file_that_cannot_grow_ends_the_session_with_errors() {
    let place = Place::new();
    let small = Recorded { limit: 100_000, sync: Sync::Data, ..place.recorded() };
    let mut first = recording(&[], &options(MAX), &small);
    let mut done = 0;
    let failure = loop {
        // Bytes that cannot be compressed.
        let mix = |at: u64| (at + UNIT * done).wrapping_mul(0x9e37_79b9_7f4a_7c15);
        let payload: Vec<u8> = (0..UNIT).map(|at| (mix(mix(at) >> 7) >> 56) as u8).collect();
        match one(&mut first, request(Op::Write, done % 30 * UNIT, UNIT), &payload) {
            Ok(_) => done += 1,
            Err(failure) => break failure,
        }
    };
    assert!((10..30).contains(&done), "{done} writes have room");
    assert_eq!(failure.errno, Errno::Io);
    assert!(first.has_ended());
    assert!(first.submit(1, Time::START, &request(Op::Read, 0, UNIT), &[]).is_err());
    let why = first.end(Time::START).unwrap_err();
    assert!(why.contains("cannot grow"), "{why}");
    drop(first);
    let mut second = drive(&[], &options(MAX));
    let resumed = second.resume(&place.recorded(), |_| Ok(()), &mut |_| true).unwrap();
    assert!(!resumed.was_clean && resumed.torn == 0 && resumed.records == done, "{resumed:?}");
    write(&mut second, 0, &stamped(0, 1));
}

#[test]
fn a_recording_has_one_writer_and_no_other_reader() {
    use std::os::unix::fs::PermissionsExt;
    let place = Place::new();
    let first = recording(&[], &options(MAX), &place.recorded());
    assert_eq!(std::fs::metadata(&place.0).unwrap().permissions().mode() & 0o777, 0o600);
    let again = Recorder::create(&place.recorded(), &header());
    assert!(matches!(again, Err(RecorderError::Exists(_))));
    let mut second = drive(&[], &options(MAX));
    let resumed = second.resume(&place.recorded(), |_| Ok(()), &mut |_| true);
    assert!(matches!(resumed, Err(Unresumed::Recorder(RecorderError::Locked(_)))), "{resumed:?}");
    drop(first);
    second.resume(&place.recorded(), |_| Ok(()), &mut |_| true).unwrap();
    let other = drive(&[], &options(MAX)).resume(&place.recorded(), |_| Ok(()), &mut |_| true);
    assert!(matches!(other, Err(Unresumed::Recorder(RecorderError::Locked(_)))), "{other:?}");
}

#[test]
fn a_recording_of_another_drive_is_not_resumed() {
    let place = Place::new();
    drop(recording(&[], &options(MAX), &place.recorded()));
    let check = |header: &Header| Err(format!("{} differs", header.nandlab));
    match drive(&[], &options(MAX)).resume(&place.recorded(), check, &mut |_| true) {
        Err(Unresumed::Another(text)) => assert_eq!(text, "test differs"),
        other => panic!("{other:?}"),
    }
    match drive(&[], &options(MAX)).resume(&place.recorded(), |_| Ok(()), &mut |_| false) {
        Err(Unresumed::Stopped) => {}
        other => panic!("{other:?}"),
    }
}

/// The bytes of an image of the drive after a cut at this time, which is the end of the recording, and what the cut has cost.
fn image_after_cut(
    place: &Place,
    at: Time,
    sets: &[&str],
    put_back: bool,
) -> (Vec<u8>, nandlab_live::simulated::Cut) {
    let recording = Recording::open(BufReader::new(File::open(&place.0).unwrap())).unwrap();
    let mut cutter = Cutter::new(recording, &spec_of(sets), 1 << 30, &mut |_| true).unwrap();
    // In two steps, as a process that forks at several instants.
    cutter.advance(Time::from_ns(at.ns() / 2)).unwrap();
    assert!(!cutter.advance(at).unwrap());
    let cut = cutter.cut(None);
    let image = Place::new();
    cutter.image(&image.0, if put_back { &cut.lost } else { &[] }).unwrap();
    assert!(cutter.image(&image.0, &[]).is_err(), "an image is not written over");
    (std::fs::read(&image.0).unwrap(), cut)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(40))]

    /// The image of a cut has the bytes that clients of the served drive read after the same cut, and the lost units put back
    /// are those of the last writes.
    #[test]
    fn an_image_is_what_clients_read_after_the_cut(
        writes in proptest::collection::vec((0..40u64, 0..8u8), 5..120),
        kind in 0..KINDS.len(),
    ) {
        let place = Place::new();
        let mut drive = recording(KINDS[kind], &options(MAX), &place.recorded());
        let mut acknowledged = [0u64; 40];
        for (number, &(lpn, what)) in (1u64..).zip(&writes) {
            if what == 0 {
                one(&mut drive, request(Op::Flush, 0, 0), &[]).unwrap();
            } else {
                write(&mut drive, lpn * UNIT, &stamped(lpn, number));
                acknowledged[lpn as usize] = number;
            }
        }
        let end = std::fs::metadata(&place.0).unwrap().len();
        let at = drive.drive().now();
        order(&mut drive, Order::Cut);
        prop_assert!(drive.take_power_loss());
        order(&mut drive, Order::Restore);
        let served: Vec<Option<Vec<u8>>> = (0..40).map(|lpn| read(&mut drive, lpn * UNIT, UNIT).ok()).collect();
        drop(drive);
        File::options().write(true).open(&place.0).unwrap().set_len(end).unwrap();
        let (image, cut) = image_after_cut(&place, at, KINDS[kind], false);
        let unit_bytes = image.len() as u64 / u64::from(spec_of(KINDS[kind]).geometry().logical_units);
        for lpn in 0..40u64 {
            let bytes = &image[(lpn * UNIT) as usize..][..UNIT as usize];
            match &served[lpn as usize] {
                Some(unit) => prop_assert!(unit == bytes, "LPN {} differs", lpn),
                None => {
                    prop_assert!(bytes.iter().all(|&byte| byte == 0));
                    prop_assert!(cut.unreadable.contains(&((lpn * UNIT / unit_bytes) as u32)), "kind {} lpn {} {} {:?}", kind, lpn, unit_bytes, &cut);
                }
            }
        }
        let (whole, _) = image_after_cut(&place, at, KINDS[kind], true);
        for lpn in 0..40u64 {
            let number = number_of(lpn, &whole[(lpn * UNIT) as usize..][..UNIT as usize]);
            prop_assert_eq!(number, acknowledged[lpn as usize], "LPN {} of {:?}", lpn, &cut.lost);
        }
    }
}
