//! Playing a recording: a drive is given what the drive of the session was given, at the same times.

use nandlab::drive::Drive;
use nandlab::power_loss::RecoveryCut;
use nandlab::probe::Probe;
use nandlab::sched::Watcher;
use nandlab_base::recording::{Entry, Event};

/// The observer of a drive on which a recording is played without contents: the drive keeps the sequence numbers that a
/// served drive keeps.
#[derive(Clone, Copy, Debug)]
pub struct Sequences;

impl Watcher for Sequences {
    fn sees_phases(&self) -> bool {
        false
    }
}

impl Probe for Sequences {
    fn needs_sequences(&self) -> bool {
        true
    }

    fn sees_work(&self) -> bool {
        false
    }
}

/// Gives a drive what a recording says.
#[derive(Clone, Copy, Debug, Default)]
pub struct Player {
    is_off: bool,
}

impl Player {
    /// Whether power is off.
    pub fn is_off(&self) -> bool {
        self.is_off
    }

    /// Lets time pass up to a record, and gives the drive what it says.
    ///
    /// # Errors
    /// Why the record is not one of a session of this drive.
    pub fn give<P: Probe>(&mut self, drive: &mut Drive<P>, entry: &Entry<'_>) -> Result<(), String> {
        if !self.is_off {
            drive.advance(entry.at);
        }
        match (entry.event, self.is_off) {
            (Event::Request(request), false) => {
                drive.submit(&request).map_err(|refused| refused.to_string())?;
            }
            (Event::Cut, false) => {
                drive.lose_power();
                self.is_off = true;
            }
            (Event::Restore, true) => {
                drive.restore_power();
                self.is_off = false;
            }
            (Event::CutInRecovery(after), true) => {
                self.is_off = drive.cut_recovery(RecoveryCut::After(after));
            }
            (Event::Detect, false) => drive.detect_budget(),
            (Event::UpdateHandle(identifier), false) => _ = drive.update_handle(identifier),
            (Event::Mark | Event::Acknowledged | Event::Stop, _) => {}
            (event, is_off) => {
                let power = if is_off { "off" } else { "on" };
                return Err(format!("{event:?} while power is {power}"));
            }
        }
        Ok(())
    }
}
