//! The moments of a recorded session at which a power cut is worth trying.

use crate::player::Player;
use nandlab::base::geometry::{DieId, RequestId};
use nandlab::drive::Drive;
use nandlab::drive::spec::Spec;
use nandlab::host::{Completion, Op};
use nandlab::probe::Probe;
use nandlab::report::Taps;
use nandlab::sched::{Phase, Transaction, Watcher};
use nandlab_base::base::units::Time;
use nandlab_base::recording::{Entry, Recording, RecordingError};
use std::io::Read;

/// The most programs whose times are kept.
const PROGRAMS_MAX: usize = 1 << 22;

/// The observer that notes the times of programs and of flushes.
#[derive(Clone, Debug, Default)]
pub struct Moments {
    /// Beginning and end of the time in which the array of a die programs.
    pub programs: Vec<(Time, Time)>,
    /// The times at which flushes and writes with FUA have completed.
    pub flushes: Vec<Time>,
}

impl Watcher for Moments {
    fn sees_phases(&self) -> bool {
        true
    }

    fn on_phase(
        &mut self,
        start: Time,
        end: Time,
        _die: DieId,
        _channel: u32,
        phase: Phase,
        transaction: &Transaction,
    ) {
        if phase == Phase::Array && transaction.kind.programs() && self.programs.len() < PROGRAMS_MAX {
            self.programs.push((start, end));
        }
    }
}

impl Probe for Moments {
    fn needs_sequences(&self) -> bool {
        true
    }

    fn on_completed(&mut self, _slot: RequestId, done: &Completion) {
        if done.failed.is_none() && (done.request.op == Op::Flush || done.request.fua) {
            self.flushes.push(done.completed);
        }
    }
}

impl Moments {
    /// Plays a recording on a drive of the spec, and calls `each` with every record.
    ///
    /// # Errors
    /// When the recording cannot be read or is not one of this drive.
    pub fn of<R: Read>(
        recording: &mut Recording<R>,
        spec: &Spec,
        mut each: impl FnMut(&Entry<'_>),
    ) -> Result<Self, String> {
        let mut drive = Drive::with_probe(spec, Taps::default().with(Self::default()));
        drive.precondition(&mut |_| true);
        let observer = |drive: &mut Drive<Taps>| -> Self {
            std::mem::take(drive.probe_mut().observer_mut().expect("it was added above"))
        };
        // Programs of preconditioning are none of the session.
        let _ = observer(&mut drive);
        let mut player = Player::default();
        let unread = |error: RecordingError| format!("{error}\n  remedy: {}", error.remedy());
        while let Some(entry) = recording.next().map_err(unread)? {
            player.give(&mut drive, &entry)?;
            drive.completions();
            if let Some(failure) = drive.failure() {
                return Err(failure.to_string());
            }
            each(&entry);
        }
        Ok(observer(&mut drive))
    }
}
