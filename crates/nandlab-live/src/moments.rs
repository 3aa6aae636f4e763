//! The moments of a recorded session at which a power cut is worth trying.

use crate::player::Player;
use nandlab::base::geometry::{DieId, Lpn, RequestId};
use nandlab::drive::Drive;
use nandlab::drive::spec::Spec;
use nandlab::host::{Completion, Op, Request};
use nandlab::probe::Probe;
use nandlab::report::Taps;
use nandlab::sched::{Phase, Transaction, Watcher};
use nandlab_base::base::units::Time;
use nandlab_base::recording::{Entry, Recording, RecordingError};
use std::collections::BTreeMap;
use std::io::Read;

/// The most programs whose times are kept.
const PROGRAMS_MAX: usize = 1 << 22;

/// When a request was acknowledged, and when all its units were in flash; [`Time::NEVER`]: not in the session, or, of a request
/// that writes nothing, no unit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Reached {
    /// The time of the completion.
    pub acknowledged: Time,
    /// The time at which the last unit of a write was programmed.
    pub in_flash: Time,
}

/// The observer that notes the times of programs, of flushes and of the requests.
#[derive(Clone, Debug, Default)]
pub struct Moments {
    /// Beginning and end of the time in which the array of a die programs.
    pub programs: Vec<(Time, Time)>,
    /// The times at which flushes and writes with FUA have completed.
    pub flushes: Vec<Time>,
    /// By request, in the order of submission.
    pub reached: Vec<Reached>,
    /// By slot of the drive the number of its request.
    slots: Vec<usize>,
    /// The requests of writes that are admitted and not programmed, by LPN and version.
    admitted: BTreeMap<(u32, u64), usize>,
    /// By request the units that are not programmed yet.
    left: Vec<u32>,
    /// The requests whose last unit the present event has programmed.
    programmed: Vec<usize>,
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

    fn on_submitted(&mut self, slot: RequestId, _id: u64, _request: &Request, _operations: u64) {
        if self.slots.len() <= slot.index() {
            self.slots.resize(slot.index() + 1, usize::MAX);
        }
        self.slots[slot.index()] = self.reached.len();
        self.reached.push(Reached { acknowledged: Time::NEVER, in_flash: Time::NEVER });
        self.left.push(0);
    }

    fn on_write_admitted(&mut self, request: Option<RequestId>, lpn: Lpn, version: u64) {
        let Some(&number) = request.and_then(|slot| self.slots.get(slot.index())) else { return };
        if number < self.left.len() {
            self.admitted.insert((lpn.0, version), number);
            self.left[number] += 1;
        }
    }

    fn on_write_durable(&mut self, lpn: Lpn, version: u64) {
        let Some(number) = self.admitted.remove(&(lpn.0, version)) else { return };
        self.left[number] -= 1;
        if self.left[number] == 0 {
            self.programmed.push(number);
        }
    }

    fn on_completed(&mut self, slot: RequestId, done: &Completion) {
        if let Some(reached) = self.slots.get(slot.index()).and_then(|&number| self.reached.get_mut(number))
            && done.failed.is_none()
        {
            reached.acknowledged = done.completed;
        }
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
            while !player.is_off() && drive.advance_by_event(entry.at) {
                note_programmed(&mut drive);
                drive.completions();
            }
            player.give(&mut drive, &entry)?;
            note_programmed(&mut drive);
            drive.completions();
            if let Some(failure) = drive.failure() {
                return Err(failure.to_string());
            }
            each(&entry);
        }
        Ok(observer(&mut drive))
    }
}

/// Notes the present time of the requests whose last unit has been programmed.
fn note_programmed(drive: &mut Drive<Taps>) {
    let now = drive.now();
    if let Some(moments) = drive.probe_mut().observer_mut::<Moments>() {
        for number in moments.programmed.drain(..) {
            moments.reached[number].in_flash = now;
        }
    }
}
