//! Checkpoints of a served drive: the drive and its data in one file, from which a session goes on in a new recording.
//!
//! A checkpoint is taken when no request is outstanding: the requests that are, are completed first. Therefore the recording
//! has a gap there, in simulated time only: replies leave when they are due, and requests that come earlier wait.
//!
//! The file takes its place at once, by its name. It says which recording follows it (`id` of the header). The new recording
//! takes the place of the old one afterwards. If the process ends in between, the old recording is still there; its number
//! is not the one that follows, so it is not played.

use std::fs::{File, OpenOptions};
use std::io;
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};

use nandlab::base::state::value;
use nandlab::drive::SaveError;
use nandlab_base::recording::{Header, fresh_id};
use serde_json::{Value, json};

use super::{POWER, PtsOutcome, Simulated};
use crate::recording::{Recorded, Recorder, sync_folder};

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
    /// When the drive cannot be saved now or the file cannot be written. Unless the new recording cannot be made, the
    /// session then goes on as before.
    pub(super) fn save(&mut self, is_end: bool) -> Result<Value, String> {
        let Some(kept) = self.kept.clone() else {
            return Err("the drive has no folder for a checkpoint: serve it with --data".to_owned());
        };
        if self.is_off {
            return Err(POWER.to_owned());
        }
        self.complete_all();
        self.sweep();
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
        let failed = |error: SaveError| format!("{}: the drive is not saved: {error}", kept.path.display());
        let bytes = write_in_place(&kept.path, |file| self.drive.checkpoint(file)).map_err(failed)?;
        match Recorder::replace(&kept.recorded, &header) {
            Ok(recorder) => self.recorder = Some(recorder),
            Err(error) => {
                // The old recording does not follow the checkpoint, so nothing may be added to it.
                let text = error.to_string();
                self.recorder.iter_mut().for_each(|recorder| recorder.give_up(&text));
                return Err(text);
            }
        }
        Ok(json!({ "at_s": self.drive.now().seconds(), "bytes": bytes }))
    }

    /// Ends a session whose recording is long with a checkpoint, so that the next one begins soon. If that fails, the
    /// recording still has the whole session.
    pub(super) fn save_at_end(&mut self) {
        let from = self.kept.as_ref().map_or(u64::MAX, |kept| kept.from_bytes);
        let is_long = self.recorder.as_ref().is_some_and(|recorder| recorder.bytes() >= from);
        if is_long && !self.is_off && self.drive.may_checkpoint().is_ok() {
            let _ = self.save(true);
        }
    }
}

/// Writes a file that has its name only when it is on the disk as a whole. Returns its length in bytes.
fn write_in_place(path: &Path, write: impl FnOnce(&File) -> Result<(), SaveError>) -> Result<u64, SaveError> {
    let new = beside(path);
    let written = (|| {
        let file = OpenOptions::new().write(true).create(true).truncate(true).mode(0o600).open(&new)?;
        write(&file)?;
        file.sync_all()?;
        let bytes = file.metadata()?.len();
        std::fs::rename(&new, path)?;
        sync_folder(path)?;
        Ok(bytes)
    })();
    if written.is_err() {
        let _: io::Result<()> = std::fs::remove_file(&new);
    }
    written
}

/// The name of a file that will take the place of another.
pub(crate) fn beside(path: &Path) -> PathBuf {
    let mut name = path.file_name().unwrap_or_default().to_owned();
    name.push(".new");
    path.with_file_name(name)
}
