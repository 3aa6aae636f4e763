//! Checkpoints of a served drive, from which a session goes on in a new recording. A checkpoint has the drive, and says where
//! its data is in the file of the data, which is beside it and stays from checkpoint to checkpoint (`places.rs`).
//!
//! A checkpoint is taken when no request is outstanding: the requests that are, are completed first. Therefore the recording
//! has a gap there, in simulated time only: replies leave when they are due, and requests that come earlier wait.
//!
//! Clients wait while the state is copied to memory. They do not wait for the disk: another thread writes the copy, and waits
//! until the file is on the disk. Until then the session is recorded twice: in the old recording, which goes on from the checkpoint before, and in a new one, which
//! goes on from this one. The names say which pair counts. First the checkpoint takes its place; it says which recording
//! follows it (`id` of the header). Then the new recording takes the place of the old one. Whenever the process ends, the
//! checkpoint with its name and the recording that follows it, which may still be beside the old one, are on the disk.
//!
//! Checkpoints are written by themselves while a drive works ([`Kept::replay_max`]).

use std::fs::{File, OpenOptions};
use std::io::{self, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};
use std::sync::mpsc::{Receiver, Sender, SyncSender, sync_channel};
use std::thread::JoinHandle;

use nandlab::base::state::value;
use nandlab::base::units::{Span, Time};
use nandlab::drive::SaveError;
use nandlab_base::recording::{Header, fresh_id};
use serde_json::{Value, json};

use super::cost::{machine_time, processor_time, reading};
use super::{POWER, PtsOutcome, Simulated};
use crate::recording::{NO_LIMIT, Recorded, Recorder, sync_folder};

/// A drive without requests for so long is in a quiet moment.
const QUIET: Span = Span::from_ns(20_000_000);
/// Bytes of a checkpoint that are passed on together: those of the buffer that the drive writes with.
const PASSED: u64 = 1 << 20;
/// How soon the server looks again whether a checkpoint is on the disk.
const LOOK: Span = Span::from_ns(10_000_000);

/// Where the checkpoints of a drive are kept.
#[derive(Clone, Debug)]
pub struct Kept {
    /// The file of the checkpoint.
    pub path: PathBuf,
    /// The recording, which begins anew after each checkpoint.
    pub recorded: Recorded,
    /// The header of a new recording, but for its `id`.
    pub header: Header,
    /// A session that ends with a recording of at least so many bytes ends with a checkpoint.
    pub from_bytes: u64,
    /// A checkpoint is written when going on without one would take longer: the processor time that the drive took for what
    /// would have to be done again, and the time of reading its recording at 1 GB/s. It is written in a quiet moment, if one
    /// comes when three quarters of this time are reached. The next one also waits until the time is longer than the processor
    /// time that the last one took: saving takes no more than it saves.
    pub replay_max: Span,
    /// The most bytes of a checkpoint that wait in memory for the disk. Beyond them clients wait for the disk.
    pub memory_max: u64,
    /// Gets a text when a checkpoint that was not asked for fails.
    pub notices: Option<Sender<String>>,
}

/// How a checkpoint came to the disk.
#[derive(Debug)]
enum Outcome {
    /// Checkpoint and recording have their places.
    Saved,
    /// The checkpoint has not taken its place, so the old recording goes on.
    Failed(io::Error),
    /// The checkpoint has taken its place, and the recording that follows it has not.
    Half(io::Error),
}

/// A checkpoint that is on its way to the disk.
#[derive(Debug)]
pub(super) struct Saving {
    thread: JoinHandle<Outcome>,
    /// The recording that follows.
    pub(super) next: Recorder,
    bytes: u64,
    at: Time,
    /// The processor time that the checkpoint saves the next start.
    replay: Span,
}

/// Passes the bytes of a checkpoint on to the thread that writes them.
struct Passed {
    to: SyncSender<Vec<u8>>,
    bytes: u64,
}

impl Write for Passed {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.to.send(bytes.to_vec()).map_err(|_| io::ErrorKind::BrokenPipe)?;
        self.bytes += bytes.len() as u64;
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// The checkpoints of this server.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Checkpoints {
    count: u64,
    bytes: u64,
    /// How long clients waited for the last one, and for the longest one.
    pause: Span,
    pause_max: Span,
    /// The processor time of the last one: no further one is written by itself before this replay time.
    from: Span,
    /// After one that failed, none before this replay time.
    again: Span,
    failed: u64,
}

/// What a session has to remember beside the drive and its data.
#[derive(Clone, Debug, Default)]
pub(super) struct Session {
    pub(super) requests_completed: u64,
    pub(super) latency_ns: u128,
    pub(super) busy_ns: u64,
    /// How preconditioning to steady state has ended: the WAF by round, and whether it is steady.
    pub(super) pts: Option<(Vec<f64>, bool)>,
    /// The `id` of the recording that follows.
    pub(super) recording: u64,
    /// Whether the session had ended cleanly at the checkpoint.
    pub(super) was_clean: bool,
}

value! { Session { requests_completed, latency_ns, busy_ns, pts, recording, was_clean } }

impl Simulated {
    /// Keeps checkpoints from now on.
    pub fn keep(&mut self, kept: Kept) {
        self.kept = Some(kept);
    }

    /// Whether the drive goes on from a checkpoint.
    pub fn is_restored(&self) -> bool {
        self.follows.is_some()
    }

    /// Takes over what the session of a restored drive had to remember.
    pub(super) fn take_over_session(&mut self) {
        let session = self.data().session.clone();
        (self.requests_completed, self.latency_ns) = (session.requests_completed, session.latency_ns);
        self.busy_ns = session.busy_ns;
        self.power_losses = self.data().power_losses;
        self.pts = session.pts.map(|(waf, is_steady)| PtsOutcome { waf, is_steady });
        self.follows = Some((session.recording, session.was_clean));
    }

    /// Completes what is outstanding, saves drive and data, and goes on with the session in a new recording. `is_end`: the
    /// session has ended.
    ///
    /// # Errors
    /// When the drive cannot be saved now or a file cannot be written. The session then goes on as before.
    pub(super) fn save(&mut self, is_end: bool) -> Result<Value, String> {
        self.end_saving();
        self.begin_saving(is_end)?;
        let saving = self.saving.take().ok_or("the disk has no room for the recording")?;
        let (at, bytes) = self.finish_saving(saving)?;
        Ok(json!({ "at_s": at.seconds(), "bytes": bytes }))
    }

    /// Completes what is outstanding, and writes drive and data. From now on the session is recorded twice.
    fn begin_saving(&mut self, is_end: bool) -> Result<(), String> {
        let Some(kept) = self.kept.clone() else {
            return Err("the drive has no folder for a checkpoint: serve it with --data".to_owned());
        };
        if self.is_off {
            return Err(POWER.to_owned());
        }
        let (begin, used) = (machine_time(), processor_time());
        self.complete_all();
        let pts = self.pts.as_ref().map(|pts| (pts.waf.clone(), pts.is_steady));
        let session = Session {
            requests_completed: self.requests_completed,
            latency_ns: self.latency_ns,
            busy_ns: self.busy_ns,
            pts,
            recording: fresh_id(),
            was_clean: is_end,
        };
        let header = Header { id: session.recording, continues: true, ..kept.header.clone() };
        self.data().session = session;
        let new = beside(&kept.path);
        let remove = |text| {
            let _: io::Result<()> = std::fs::remove_file(&new);
            let _: io::Result<()> = std::fs::remove_file(beside(&kept.recorded.path));
            text
        };
        let failed = |error: SaveError| format!("{}: the drive is not saved: {error}", kept.path.display());
        // What the old recording needs is in the file before the checkpoint takes the room.
        self.recorder.iter_mut().for_each(|recorder| _ = recorder.commit());
        let next =
            Recorder::create_beside(&kept.recorded, &header).map_err(|error| remove(error.to_string()))?;
        let (to, from) = sync_channel((kept.memory_max / PASSED).clamp(16, 1 << 20) as usize);
        let data = self.data().contents.begin_checkpoint();
        let unsaved = |live: &mut Self, error: SaveError| {
            live.data().contents.end_checkpoint(false);
            remove(failed(error))
        };
        let begin_thread = || {
            let file = OpenOptions::new().write(true).create(true).truncate(true).mode(0o600).open(&new)?;
            let (recording, path, place) = (next.file()?, kept.path.clone(), kept.recorded.path.clone());
            let others = [data?, Some(recording)];
            std::thread::Builder::new().spawn(move || put_in_place(file, &from, &path, &others, &place))
        };
        let thread = begin_thread().map_err(|error| unsaved(self, error.into()))?;
        let mut passed = Passed { to, bytes: 0 };
        let written = self.drive.checkpoint(&mut passed);
        let Passed { to, bytes } = passed;
        // The empty end says that the checkpoint is whole. If the thread has failed, it says why.
        let is_passed = written.is_ok() && to.send(Vec::new()).is_ok();
        drop(to);
        if !is_passed {
            let why = match (thread.join(), written) {
                (Ok(Outcome::Failed(error)), Err(SaveError::Io(_)) | Ok(())) => error.into(),
                (_, Err(error)) => error,
                (_, Ok(())) => io::Error::from(io::ErrorKind::Other).into(),
            };
            return Err(unsaved(self, why));
        }
        // What is done from now on is all that would have to be done again.
        let (at, replay) = (self.drive.now(), std::mem::take(&mut self.replay));
        self.saving = Some(Saving { thread, next, bytes, at, replay });
        let pause = machine_time().saturating_sub(begin);
        (self.checkpoints.pause, self.checkpoints.bytes) = (pause, bytes);
        self.checkpoints.from = processor_time().saturating_sub(used);
        self.checkpoints.pause_max = self.checkpoints.pause_max.max(pause);
        Ok(())
    }

    /// Waits until the checkpoint is on the disk, and goes on in the recording that follows it. Returns the simulated time
    /// and the bytes of the checkpoint.
    ///
    /// # Errors
    /// When that fails. The session then goes on in the old recording, unless the checkpoint has its place.
    fn finish_saving(&mut self, saving: Saving) -> Result<(Time, u64), String> {
        let Saving { thread, mut next, bytes, at, replay } = saving;
        let outcome = thread.join().unwrap_or_else(|_| Outcome::Failed(io::ErrorKind::Other.into()));
        // After one that is only half in its place, a crash of the machine may bring the one before back.
        self.data().contents.end_checkpoint(matches!(outcome, Outcome::Saved));
        let kept = self.kept.as_ref().expect("a drive with a checkpoint has a place for it");
        let path = kept.path.display();
        let saved = match outcome {
            Outcome::Failed(error) => {
                let text = format!("{path}: the drive is not saved: {error}");
                self.remove_unfinished();
                self.replay += replay;
                return Err(text);
            }
            Outcome::Half(error) => {
                next.give_up(&error.to_string());
                Err(format!("{path}: {error}"))
            }
            Outcome::Saved => {
                next.is_in_place(&kept.recorded);
                Ok((at, bytes))
            }
        };
        self.recorder = Some(next);
        self.checkpoints.count += 1;
        self.checkpoints.again = Span::ZERO;
        saved
    }

    /// Ends a checkpoint that is on its way to the disk, and waits for it.
    pub(super) fn end_saving(&mut self) {
        if let Some(saving) = self.saving.take() {
            let saved = self.finish_saving(saving);
            self.notice_failure(saved.map(|_| ()));
        }
    }

    /// The files of a checkpoint that was not finished.
    pub(super) fn remove_unfinished(&self) {
        if let Some(kept) = &self.kept {
            let _ = std::fs::remove_file(beside(&kept.path));
            let _ = std::fs::remove_file(beside(&kept.recorded.path));
        }
    }

    /// If one of two recordings cannot grow, waits for the end of the checkpoint, after which there is one recording, and
    /// room. Returns whether the session is recorded.
    pub(super) fn make_room(&mut self) -> bool {
        let has_failed = |recorder: &Recorder| recorder.failure().is_some();
        let is_old = self.recorder.as_ref().is_some_and(has_failed);
        if self.saving.as_ref().is_some_and(|saving| is_old || has_failed(&saving.next)) {
            self.end_saving();
            return self.recorder.as_mut().is_none_or(Recorder::retry);
        }
        !is_old
    }

    /// The time that playing the recording would take on this machine.
    fn replay_time(&self) -> Span {
        let bytes = self.recorder.as_ref().map_or(0, Recorder::bytes);
        self.replay + reading(bytes)
    }

    /// Begins a checkpoint if it is time for one, and ends one that is on the disk. `now` is the time of the machine.
    pub(super) fn save_if_due(&mut self, now: Time) {
        if let Some(saving) = &self.saving {
            if saving.thread.is_finished() {
                self.end_saving();
            }
            return;
        }
        let Some(due) = self.save_is_due(now) else { return };
        if due <= now && self.drive.may_checkpoint().is_ok() && !self.has_failed {
            let begun = self.begin_saving(false);
            self.notice_failure(begun);
        }
    }

    /// When the next checkpoint is to be begun, or to be looked after.
    pub(super) fn next_save(&self) -> Option<Time> {
        match self.saving {
            Some(_) => Some(self.looked.saturating_add(LOOK)),
            None => self.save_is_due(self.looked),
        }
    }

    /// When the next checkpoint is to be begun, if nothing changes until then; `None`: not at all.
    fn save_is_due(&self, now: Time) -> Option<Time> {
        let kept = self.kept.as_ref()?;
        if self.is_off || self.drive.failure().is_some() || self.recorder.as_ref()?.failure().is_some() {
            return None;
        }
        let (time, recorder) = (self.replay_time(), self.recorder.as_ref()?);
        let Checkpoints { from, again, .. } = self.checkpoints;
        let most = kept.replay_max.max(from).max(again);
        // A recording with a limit begins anew before it ends the session.
        let is_long = recorder.limit() < NO_LIMIT && recorder.bytes() > recorder.limit() / 2;
        if time >= most || is_long && time >= again {
            return Some(now);
        }
        let is_near = time.ns() >= most.ns() / 4 * 3;
        let is_quiet = self.open == 0 && self.ready.is_empty();
        (is_near && is_quiet).then(|| self.submitted.saturating_add(QUIET))
    }

    /// Tells the user that a checkpoint has failed. The next one is tried when the replay would take twice as long.
    fn notice_failure(&mut self, saved: Result<(), String>) {
        let Err(why) = saved else { return };
        self.checkpoints.failed += 1;
        self.checkpoints.again = Span::from_ns(2 * self.replay_time().ns());
        let notices = self.kept.as_ref().and_then(|kept| kept.notices.as_ref());
        // Without a listener nobody is told.
        let _ = notices.map(|notices| {
            notices.send(format!("{why}; the recording goes on, and the next start takes longer"))
        });
    }

    /// The checkpoints of this server, for its state.
    pub(super) fn checkpoints(&self) -> Option<Value> {
        self.kept.as_ref()?;
        let of = &self.checkpoints;
        Some(json!({
            "count": of.count,
            "failed": of.failed,
            "bytes": of.bytes,
            "pause_s": of.pause.seconds(),
            "pause_max_s": of.pause_max.seconds(),
            "replay_s": self.replay_time().seconds(),
        }))
    }

    /// Ends a session whose recording is long with a checkpoint, so that the next one begins soon. If that fails, the
    /// recording still has the whole session.
    pub(super) fn save_at_end(&mut self) {
        let Some(kept) = &self.kept else { return };
        let is_long = self.recorder.as_ref().is_some_and(|recorder| recorder.bytes() >= kept.from_bytes)
            || self.replay_time() >= kept.replay_max;
        if is_long && !self.is_off && self.drive.may_checkpoint().is_ok() {
            let saved = self.save(true);
            self.notice_failure(saved.map(|_| ()));
        }
    }
}

/// Writes a checkpoint, waits until it, the data that it names and the recording that follows it (`others`) are on the disk,
/// and gives them their places.
fn put_in_place(
    mut file: File,
    from: &Receiver<Vec<u8>>,
    path: &Path,
    others: &[Option<File>],
    place: &Path,
) -> Outcome {
    let mut write = || {
        loop {
            let bytes = from.recv().map_err(|_| io::Error::from(io::ErrorKind::UnexpectedEof))?;
            if bytes.is_empty() {
                break;
            }
            file.write_all(&bytes)?;
        }
        file.sync_all()?;
        others.iter().flatten().try_for_each(File::sync_all)?;
        std::fs::rename(beside(path), path)
    };
    if let Err(error) = write() {
        return Outcome::Failed(error);
    }
    let rest = sync_folder(path).and_then(|()| std::fs::rename(beside(place), place));
    match rest.and_then(|()| sync_folder(place)) {
        Ok(()) => Outcome::Saved,
        Err(error) => Outcome::Half(error),
    }
}

/// The file of the data of a drive whose checkpoint is `path`.
pub(super) fn data_beside(path: &Path) -> PathBuf {
    with_end(path, ".data")
}

/// The name of a file that will take the place of another.
pub(crate) fn beside(path: &Path) -> PathBuf {
    with_end(path, ".new")
}

fn with_end(path: &Path, end: &str) -> PathBuf {
    let mut name = path.file_name().unwrap_or_default().to_owned();
    name.push(end);
    path.with_file_name(name)
}
