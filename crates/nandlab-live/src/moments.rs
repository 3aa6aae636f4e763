//! The moments of a recorded session at which a power cut is worth trying.

use nandlab::base::geometry::{DieId, RequestId};
use nandlab::host::{Completion, Op};
use nandlab::probe::Probe;
use nandlab::sched::{Phase, Transaction, Watcher};
use nandlab_base::base::units::Time;

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
