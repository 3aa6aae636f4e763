//! The session of a drive as a recording: writing it, and playing it again.

use std::fs::{File, Metadata};
use std::io::{BufReader, Read};
use std::os::unix::fs::MetadataExt;

use nandlab_base::recording::{Header, Recording, RecordingError};

use super::cost::processor_time;
use super::{Backend, DriveOp, Entry, Event, Pace, Purpose, Simulated, Time, units_of};
use crate::player::Player;
use crate::recording::{Recorded, Recorder, RecorderError};

/// Records that are played between two looks at whether to stop.
const WATCHED: u64 = 1024;

const NO_CHECKPOINT: &str = "the recording goes on from a checkpoint, which is missing\n  remedy: put the file of the \
                             checkpoint back beside it";

/// Why a session is not resumed.
#[derive(Debug)]
pub enum Unresumed {
    /// The recording cannot be read or written.
    Recorder(RecorderError),
    /// The drive would not be the one of the recording; the text says why, with a remedy.
    Another(String),
    /// The drive refuses a record, or has no room for its data; the text says why.
    Refused(String),
    /// The resumption was stopped.
    Stopped,
}

impl From<RecorderError> for Unresumed {
    fn from(error: RecorderError) -> Self {
        Self::Recorder(error)
    }
}

/// A session that was resumed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Resumed {
    /// Records of the session.
    pub records: u64,
    /// Bytes of a torn tail, which were dropped.
    pub torn: u64,
    /// Whether the session had ended cleanly. Otherwise its requests were completed, and then power failed.
    pub was_clean: bool,
}

impl Simulated {
    /// Records the session from now on.
    pub fn record_to(&mut self, recorder: Recorder) {
        self.recorder = Some(recorder);
    }

    /// Records what the drive is given now.
    pub(super) fn record(&mut self, event: Event, data: &[u8]) {
        let at = self.drive.now();
        let entry = Entry { at, event, data };
        if let Some(recorder) = &mut self.recorder {
            recorder.add(&entry);
        }
        if let Some(saving) = &mut self.saving {
            saving.next.add(&entry);
            self.make_room();
        }
    }

    /// Whether everything that the drive was given is recorded, as the reply to a request needs it. `is_promise`: the request
    /// is a flush, or a write with FUA.
    pub(super) fn is_recorded(&mut self, is_promise: bool) -> bool {
        let write = |recorder: &mut Recorder| recorder.commit() && (!is_promise || recorder.sync());
        let mut is_recorded = self.recorder.as_mut().is_none_or(write);
        if let Some(saving) = &mut self.saving {
            write(&mut saving.next);
            is_recorded = self.make_room() && self.recorder.as_mut().is_none_or(write);
        }
        is_recorded
    }

    /// Ends the session at the time `now`: all requests are completed, and the recording is on the disk.
    ///
    /// # Errors
    /// Why the recording has not taken the whole session.
    pub fn end(&mut self, now: Time) -> Result<(), String> {
        if !self.is_off {
            if self.pace() == Pace::Clock {
                self.advance(now);
            }
            self.complete_all();
        }
        self.end_saving();
        self.record(Event::Stop, &[]);
        self.recorder.as_mut().map_or(Ok(()), Recorder::end)?;
        self.save_at_end();
        Ok(())
    }

    /// Lets time pass until no request is outstanding, with the events of the time at which the last one has ended.
    pub(super) fn complete_all(&mut self) {
        let before = self.power_losses;
        while self.open > 0 && self.power_losses == before {
            if !self.drive.advance_to_completion(Time::NEVER) {
                self.fail_all();
            }
            self.collect();
        }
        self.drive.advance(self.drive.now());
        self.collect();
    }

    /// Goes on with the session of a recording: plays it, and, unless the session had ended cleanly, completes its requests
    /// and lets power fail. The further session is recorded in the same file. `check` says why the recording is of another
    /// drive, if it is. `watch` is called with the share that is done, and stops the resumption when it returns `false`.
    ///
    /// # Errors
    /// See [`Unresumed`].
    pub fn resume(
        &mut self,
        recorded: &Recorded,
        check: impl FnOnce(&Header) -> Result<(), String>,
        watch: &mut dyn FnMut(f64) -> bool,
    ) -> Result<Resumed, Unresumed> {
        let begin = processor_time();
        let (mut was_clean, mut torn, mut records) = (false, 0, 0);
        let follows = self.follows.zip(self.kept.as_ref());
        let follows = follows.map(|((id, was_clean), kept)| {
            (Header { id, continues: true, ..kept.header.clone() }, was_clean)
        });
        if let Some((header, _)) = &follows {
            Recorder::find(recorded, header.id)?;
            if !recorded.path.exists() {
                Recorder::replace(recorded, header)?;
            }
        }
        let mut is_older = false;
        let checkpoint = self.kept.as_ref().map(|kept| kept.path.clone());
        let read = |recording: &mut Recording<BufReader<File>>, bytes: u64| {
            check(recording.header()).map_err(Unresumed::Another)?;
            if follows.is_none() && recording.header().continues {
                // Another server has made the first checkpoint, and ended, since this one looked for one.
                if checkpoint.as_ref().is_some_and(|path| path.exists()) {
                    return Err(RecorderError::Locked(recorded.path.clone()).into());
                }
                return Err(Unresumed::Another(NO_CHECKPOINT.to_owned()));
            }
            // The server was killed between a checkpoint and the recording that follows it.
            if follows.as_ref().is_some_and(|(header, _)| header.id != recording.header().id) {
                is_older = true;
                return Ok(());
            }
            was_clean = self.play(recording, &recorded.path, bytes, watch)?;
            (torn, records) = (recording.torn(), recording.records());
            Ok(())
        };
        let mut recorder = Recorder::resume::<Unresumed>(recorded, read)?;
        // Another server may have saved the drive, and ended, while this one read the checkpoint before.
        if let (Some(read), Some(kept)) = (self.read_from.take(), &self.kept) {
            let number = |of: Metadata| (of.dev(), of.ino());
            if read.metadata().ok().map(number) != kept.path.metadata().ok().map(number) {
                return Err(RecorderError::Locked(recorded.path.clone()).into());
            }
        }
        if let Some((header, _)) = follows.as_ref().filter(|_| is_older) {
            recorder = Recorder::replace(recorded, header)?;
        }
        self.record_to(recorder);
        self.remove_unfinished();
        if records == 0 {
            was_clean = follows.is_none_or(|(_, was_clean)| was_clean);
        }
        if !self.is_off && !was_clean && self.drive.failure().is_none() {
            self.complete_all();
            self.lose_power();
        }
        if self.is_off {
            self.restore_power();
        }
        self.ready.clear();
        self.has_failed = false;
        self.origin = (Time::START, self.drive.now());
        self.released = self.released.max(self.drive.now());
        self.next_cut = self.cut_every.map(|every| self.drive.now().saturating_add(every));
        if !self.is_recorded(true) {
            let why = self.recorder.as_ref().and_then(Recorder::failure).unwrap_or_default();
            return Err(Unresumed::Refused(why.to_owned()));
        }
        self.begin_snapshot();
        self.replay += processor_time().saturating_sub(begin);
        Ok(Resumed { records, torn, was_clean })
    }

    /// Gives the drive what the recording says, at the times that it says. Returns whether the session has ended with its
    /// stop.
    fn play<R: Read>(
        &mut self,
        recording: &mut Recording<R>,
        path: &std::path::Path,
        bytes: u64,
        watch: &mut dyn FnMut(f64) -> bool,
    ) -> Result<bool, Unresumed> {
        let (mut was_clean, mut player) = (false, Player::default());
        let unread =
            |error: RecordingError| Unresumed::Recorder(RecorderError::Unread(path.to_owned(), error));
        loop {
            if recording.records().is_multiple_of(WATCHED)
                && !watch(recording.whole() as f64 / bytes.max(1) as f64)
            {
                return Err(Unresumed::Stopped);
            }
            let number = recording.records();
            let Some(entry) = recording.next().map_err(unread)? else { return Ok(was_clean) };
            was_clean = entry.event == Event::Stop;
            self.give_entry(&mut player, &entry)
                .map_err(|why| Unresumed::Refused(format!("record {number}: {why}")))?;
        }
    }

    /// Gives the drive what a record says. On an error returns why that is not possible.
    pub(super) fn give_entry(&mut self, player: &mut Player, entry: &Entry<'_>) -> Result<(), String> {
        if let Event::Request(request) = entry.event {
            let units = match request.op {
                DriveOp::Write => units_of(&request, self.unit_bytes),
                _ => 0,
            };
            if !self.data().reserve(units) {
                self.sweep_if_worth_it();
                if !self.data().reserve(units) {
                    return Err(super::NO_ROOM.to_owned());
                }
            }
            self.data().give(Purpose::Nobody, entry.data);
        }
        player.give(&mut self.drive, entry)?;
        if let Event::Request(_) = entry.event {
            self.open += 1;
            self.busy_since.get_or_insert(entry.at);
        }
        self.collect();
        self.is_off = player.is_off();
        Ok(())
    }
}
