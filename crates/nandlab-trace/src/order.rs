//! Brings records into order of time. Records that are nearly in order are sorted within a window; records with times
//! in whole seconds are spread over their second.

use crate::parse::SECOND;
use nandlab_base::base::request::Op;
use std::cmp::Reverse;
use std::collections::{BinaryHeap, VecDeque};

/// Capacity of the sorting window, in records.
pub(crate) const WINDOW: usize = 1 << 16;
/// Largest number of records of one second. The records of a second are buffered until all of them have been read; then
/// they are spread over the second.
pub(crate) const SECOND_MAX: usize = 1 << 22;

/// A parsed record of a selected device.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Item {
    pub(crate) time_ns: u64,
    /// Number of the line or record, from 1. Records of equal time are in the order of their numbers.
    pub(crate) number: u64,
    pub(crate) op: Op,
    pub(crate) fua: bool,
    /// Whether the same record also states a flush before this request.
    pub(crate) flush_first: bool,
    /// Address in bytes, with the base address of the device.
    pub(crate) offset: u64,
    /// Length in bytes.
    pub(crate) len: u64,
}

/// A sorting buffer of at most [`WINDOW`] records; `pop` returns the earliest record in the buffer.
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

/// Records of [`Nearly`] at most.
const NEARLY: usize = 1 << 12;
/// The longest time, in nanoseconds, by which [`Nearly`] takes a record forward.
const NEARLY_NS: u64 = SECOND;

/// A queue of at most [`NEARLY`] records, which takes a record forward to its place in time. A record that would be
/// taken forward by more than [`NEARLY_NS`] keeps its place in the file, so that its damaged time is found.
#[derive(Default)]
pub(crate) struct Nearly {
    items: VecDeque<Item>,
    /// Records that were taken forward.
    pub(crate) sorted: u64,
}

impl Nearly {
    pub(crate) fn is_full(&self) -> bool {
        self.items.len() >= NEARLY
    }

    #[inline]
    pub(crate) fn push(&mut self, item: Item) {
        match self.items.back() {
            Some(last) if last.time_ns > item.time_ns => self.insert(item),
            _ => self.items.push_back(item),
        }
    }

    #[cold]
    fn insert(&mut self, item: Item) {
        let is_later =
            |other: &&Item| other.time_ns > item.time_ns && other.time_ns - item.time_ns <= NEARLY_NS;
        let places = self.items.iter().rev().take_while(is_later).count();
        self.sorted += u64::from(places > 0);
        self.items.insert(self.items.len() - places, item);
    }

    #[inline]
    pub(crate) fn pop(&mut self) -> Option<Item> {
        self.items.pop_front()
    }
}

/// Spreads the records of each second evenly over the second, in the order of the file.
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

    /// Adds a record. Returns `false` if the record's second now has more than [`SECOND_MAX`] records.
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
