//! Sorts or spreads records in time, for formats whose records are not in order or have times in whole seconds.

use crate::parse::SECOND;
use nandlab::host::Op;
use std::cmp::Reverse;
use std::collections::{BinaryHeap, VecDeque};

/// Capacity of the sorting window, in records.
pub(crate) const WINDOW: usize = 1 << 16;
/// Largest number of records of one second; they are buffered to be spread over the second.
pub(crate) const SECOND_MAX: usize = 1 << 22;

/// A parsed record of a selected device.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Item {
    pub(crate) time_ns: u64,
    /// Number of the line or record; orders records of equal time.
    pub(crate) number: u64,
    pub(crate) op: Op,
    pub(crate) fua: bool,
    pub(crate) flush_first: bool,
    pub(crate) offset: u64,
    pub(crate) len: u64,
}

/// A sorting buffer of at most [`WINDOW`] records: `pop` returns the earliest record in it.
#[derive(Default)]
pub(crate) struct Window(BinaryHeap<Reverse<Item>>);

impl Window {
    pub(crate) fn is_full(&self) -> bool {
        self.0.len() >= WINDOW
    }

    pub(crate) fn push(&mut self, item: Item) {
        self.0.push(Reverse(item));
    }

    pub(crate) fn pop(&mut self) -> Option<Item> {
        self.0.pop().map(|Reverse(item)| item)
    }
}

/// Spreads the records of each second evenly over the second.
#[derive(Default)]
pub(crate) struct SecondSpread {
    /// Records whose times have been spread.
    ready: VecDeque<Item>,
    /// Records of the current second.
    gathering: Vec<Item>,
}

impl SecondSpread {
    pub(crate) fn pop(&mut self) -> Option<Item> {
        self.ready.pop_front()
    }

    /// Adds a record; returns `false` if its second has more than [`SECOND_MAX`] records.
    pub(crate) fn push(&mut self, item: Item) -> bool {
        if self.gathering.last().is_some_and(|last| last.time_ns != item.time_ns) {
            self.spread();
        }
        self.gathering.push(item);
        self.gathering.len() <= SECOND_MAX
    }

    /// Spreads the last second at the end of the trace.
    pub(crate) fn finish(&mut self) {
        self.spread();
    }

    fn spread(&mut self) {
        let n = self.gathering.len() as u64;
        self.ready.extend(
            self.gathering
                .drain(..)
                .zip(0u64..)
                .map(|(item, i)| Item { time_ns: item.time_ns.saturating_add(i * SECOND / n), ..item }),
        );
    }
}
