//! Lanes: tracks for what may overlap.

use crate::base::units::{Span, Time};
use std::cmp::Reverse;
use std::collections::{BTreeSet, BinaryHeap};

/// Lanes of a track: what begins takes the first one that is free.
#[derive(Debug, Default)]
pub(super) struct Lanes {
    pub(super) count: u32,
    free: BTreeSet<u32>,
    taken: BinaryHeap<Reverse<(Time, u32)>>,
}

impl Lanes {
    /// The lane of what begins at `start`, no earlier than the last one. What takes no time has its lane for a nanosecond:
    /// else an arrow could begin at either of two slices.
    pub(super) fn take(&mut self, start: Time, end: Time) -> u32 {
        while let Some(&Reverse((until, lane))) = self.taken.peek()
            && until <= start
        {
            self.taken.pop();
            self.free.insert(lane);
        }
        let lane = self.free.pop_first().unwrap_or_else(|| {
            self.count += 1;
            self.count - 1
        });
        self.taken.push(Reverse((end.max(start + Span::from_ns(1)), lane)));
        lane
    }
}
