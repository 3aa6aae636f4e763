//! The times of a victim, from the moment at which its job took it.

use crate::base::state::value;
use crate::base::units::{Span, Time};

/// When a job took its victim, had moved its last unit, and queued its erase.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct VictimTimes {
    taken: Time,
    copied: Option<Time>,
    erasing: Option<Time>,
}

impl VictimTimes {
    /// A job selects its victim now.
    pub(crate) fn new(now: Time) -> Self {
        Self { taken: now, copied: None, erasing: None }
    }

    /// The last copy of the victim has ended, now or earlier.
    pub(crate) fn end_copies(&mut self, now: Time) {
        self.copied.get_or_insert(now);
    }

    /// The erase of the victim is queued.
    pub(crate) fn begin_erase(&mut self, now: Time) {
        self.end_copies(now);
        self.erasing = Some(now);
    }

    /// The victim has been erased: the times of its copies, from then to the queueing of the erase, and of the erase.
    pub(crate) fn spans(&self, now: Time) -> [Span; 3] {
        let copied = self.copied.unwrap_or(now);
        let erasing = self.erasing.unwrap_or(now);
        [copied - self.taken, erasing - copied, now - erasing]
    }
}

value! { VictimTimes { taken, copied, erasing } }
