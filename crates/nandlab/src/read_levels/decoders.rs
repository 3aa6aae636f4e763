//! The decoders of the controller: when the decoding of a read begins and ends.
//!
//! A decoder decodes one read at a time. A read that has left its die takes the decoder that is free first, so reads are
//! decoded in the order of their arrival. Since the time of a decoding is known at its beginning, so is its end at the
//! arrival of the read, and no queue of waiting reads is needed.

use crate::base::state::{state, value};
use crate::base::units::{Span, Time};
use crate::sched::Slot;
use std::cmp::Reverse;
use std::collections::BinaryHeap;

/// Decoders with the reads that they decode or will decode.
#[derive(Debug)]
pub(super) struct Decoders {
    /// When each decoder is free; empty if there is one for every read.
    free: BinaryHeap<Reverse<Time>>,
    /// The ends of decodings with the order of arrival and the slots of the reads.
    ends: BinaryHeap<Reverse<End>>,
    arrivals: u64,
}

/// The end of a decoding.
#[derive(Clone, Copy, Debug)]
struct End {
    at: Time,
    arrival: u64,
    slot: Slot,
}

state! { Decoders { free, ends, arrivals } }
value! { End { at, arrival, slot } }

impl Ord for End {
    fn cmp(&self, other: &Self) -> std::cmp::Ordering {
        (self.at, self.arrival).cmp(&(other.at, other.arrival))
    }
}

impl PartialOrd for End {
    fn partial_cmp(&self, other: &Self) -> Option<std::cmp::Ordering> {
        Some(self.cmp(other))
    }
}

impl PartialEq for End {
    fn eq(&self, other: &Self) -> bool {
        self.cmp(other).is_eq()
    }
}

impl Eq for End {}

impl Decoders {
    /// Free decoders; `None`: one for every read.
    pub(super) fn new(count: Option<u32>) -> Self {
        let count = count.unwrap_or(0) as usize;
        let free = BinaryHeap::from(vec![Reverse(Time::START); count]);
        Self { free, ends: BinaryHeap::with_capacity(256), arrivals: 0 }
    }

    /// A read has arrived at `now` whose decoding takes `takes`. Returns when its decoding begins and ends.
    pub(super) fn add(&mut self, now: Time, takes: Span, slot: Slot) -> (Time, Time) {
        let start = match self.free.peek_mut() {
            Some(mut first) => {
                let start = first.0.max(now);
                first.0 = start + takes;
                start
            }
            None => now,
        };
        let end = start + takes;
        self.ends.push(Reverse(End { at: end, arrival: self.arrivals, slot }));
        self.arrivals += 1;
        (start, end)
    }

    /// The end of the next decoding.
    pub(super) fn next(&self) -> Option<Time> {
        self.ends.peek().map(|Reverse(end)| end.at)
    }

    /// Removes the read whose decoding ends next.
    pub(super) fn pop(&mut self) -> Option<Slot> {
        self.ends.pop().map(|Reverse(end)| end.slot)
    }

    /// Drops all reads, at power loss.
    pub(super) fn clear(&mut self) {
        self.ends.clear();
        let count = self.free.len();
        self.free.clear();
        self.free.extend(std::iter::repeat_n(Reverse(Time::START), count));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::base::units::US;
    use crate::sched::{Transaction, Transactions};

    /// A naive twin: each decoder has the list of its reads.
    #[test]
    fn reads_take_the_decoder_that_is_free_first() {
        let mut pool = Transactions::default();
        let slots: Vec<Slot> =
            (0..6).map(|_| pool.insert(<Transaction as crate::base::slab::Node>::EMPTY)).collect();
        let at = |us: u64| Time::START + us * US;
        // Arrival and decode time in us.
        let reads = [(0, 10), (1, 3), (2, 1), (3, 5), (20, 2), (20, 2)];
        for (count, ends) in [
            (Some(1), [10, 13, 14, 19, 22, 24]),
            // The second decoder takes the third read at 4 and the fourth one at 5; the first one is free at 10.
            (Some(2), [10, 4, 5, 10, 22, 22]),
            (None, [10, 4, 3, 8, 22, 22]),
        ] {
            let mut decoders = Decoders::new(count);
            for (&(now, takes), (&slot, end)) in reads.iter().zip(slots.iter().zip(ends)) {
                let (start, ended) = decoders.add(at(now), takes * US, slot);
                assert_eq!((start + takes * US, ended), (at(end), at(end)), "{count:?}");
            }
            let mut order: Vec<usize> = (0..6).collect();
            order.sort_by_key(|&read| (ends[read], read));
            for read in order {
                assert_eq!(decoders.next(), Some(at(ends[read])));
                assert_eq!(decoders.pop(), Some(slots[read]));
            }
            assert_eq!((decoders.next(), decoders.pop()), (None, None));
            decoders.add(at(30), 50 * US, slots[0]);
            decoders.clear();
            assert_eq!(decoders.add(at(31), US, slots[0]), (at(31), at(32)), "power loss frees the decoders");
        }
    }
}
