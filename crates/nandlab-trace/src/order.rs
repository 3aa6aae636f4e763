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
    pub(crate) placement: u16,
}

impl Item {
    /// The content of a place that no record has used.
    pub(crate) const NONE: Self = Self {
        time_ns: 0,
        number: 0,
        op: Op::Read,
        fua: false,
        flush_first: false,
        offset: 0,
        len: 0,
        placement: 0,
    };
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

/// Records of [`Nearly`] at most: few enough for the first cache of a processor.
const NEARLY: usize = 1 << 9;
/// The longest time, in nanoseconds, by which [`Nearly`] takes a record forward.
const NEARLY_NS: u64 = SECOND;

/// A queue of at most [`NEARLY`] records, which takes a record forward to its place in time. A record that would be
/// taken forward by more than [`NEARLY_NS`] keeps its place in the file, so that its damaged time is found.
pub(crate) struct Nearly {
    /// A ring of the records, which begins at `first`.
    items: Box<[Item; NEARLY]>,
    first: usize,
    len: usize,
    /// Records that were taken forward.
    pub(crate) sorted: u64,
}

impl Default for Nearly {
    fn default() -> Self {
        Self { items: Box::new([Item::NONE; NEARLY]), first: 0, len: 0, sorted: 0 }
    }
}

impl Nearly {
    #[inline]
    pub(crate) fn is_full(&self) -> bool {
        self.len == NEARLY
    }

    /// The record at a place of the queue, which may be one beyond its end.
    #[inline]
    fn at(&mut self, place: usize) -> &mut Item {
        &mut self.items[(self.first + place) % NEARLY]
    }

    /// Adds a record to a queue that is not full.
    #[inline]
    pub(crate) fn push(&mut self, item: &Item) {
        let place = self.len;
        self.len += 1;
        if place > 0 && self.at(place - 1).time_ns > item.time_ns {
            self.insert(place, item);
        } else {
            *self.at(place) = *item;
        }
    }

    #[cold]
    fn insert(&mut self, last: usize, item: &Item) {
        let mut place = last;
        while place > 0 {
            let before = *self.at(place - 1);
            if before.time_ns <= item.time_ns || before.time_ns - item.time_ns > NEARLY_NS {
                break;
            }
            *self.at(place) = before;
            place -= 1;
        }
        *self.at(place) = *item;
        self.sorted += u64::from(place < last);
    }

    #[inline]
    pub(crate) fn pop(&mut self) -> Option<Item> {
        if self.len == 0 {
            return None;
        }
        let item = *self.at(0);
        self.first = (self.first + 1) % NEARLY;
        self.len -= 1;
        Some(item)
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
