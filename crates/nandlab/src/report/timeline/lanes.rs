//! Lanes: the tracks on which slices that overlap in time are laid out.

use crate::base::units::{Span, Time};
use std::cmp::Reverse;
use std::collections::{BTreeSet, BinaryHeap};

/// The lanes of one group of slices; a slice takes the free lane with the lowest number.
#[derive(Debug, Default)]
pub(super) struct Lanes {
    pub(super) count: u32,
    free: BTreeSet<u32>,
    taken: BinaryHeap<Reverse<(Time, u32)>>,
}

impl Lanes {
    /// Returns the lane of a slice from `start` to `end`. Calls must be in the order of `start`. A slice of no length
    /// occupies its lane for a nanosecond, so that no two slices of a lane start at the same time: an arrow from them
    /// would have no defined origin.
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
