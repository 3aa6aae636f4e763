//! The pending events: one clock for each part of the drive that may wait for an event.
//!
//! Every part waits for at most one event at a time, so the pending events are an array with one clock per part. A
//! tournament over the clocks finds the earliest: setting a clock takes log2(parts) comparisons and no memory. Of
//! several clocks with the same time the one with the lowest number comes first, so the order of events does not depend
//! on the order in which the clocks were set.

use crate::base::units::Time;

/// The time of a clock that is not set.
pub const NEVER: Time = Time::NEVER;

/// The clocks and their tournament.
#[derive(Debug)]
pub struct Agenda {
    /// A binary tree in an array: node `leaves + i` is clock `i`, and node 1 has the earliest clock.
    nodes: Box<[(Time, u32)]>,
    leaves: usize,
}

impl Agenda {
    /// `clocks` clocks, none of them set.
    pub fn new(clocks: usize) -> Self {
        let leaves = clocks.next_power_of_two();
        let mut nodes = vec![(NEVER, 0); 2 * leaves];
        for node in (1..2 * leaves).rev() {
            nodes[node].1 = if node >= leaves { (node - leaves) as u32 } else { nodes[2 * node].1 };
        }
        Self { nodes: nodes.into(), leaves }
    }

    /// Sets `clock` to `time` (or [`NEVER`]).
    #[inline]
    pub fn set(&mut self, clock: u32, time: Time) {
        let mut node = self.leaves + clock as usize;
        self.nodes[node].0 = time;
        while node > 1 {
            let (left, right) = (self.nodes[node & !1], self.nodes[node | 1]);
            node >>= 1;
            // `<=`, because the clocks of the left node have the lower numbers.
            self.nodes[node] = if left.0 <= right.0 { left } else { right };
        }
    }

    /// Unsets all clocks.
    pub fn clear(&mut self) {
        *self = Self::new(self.leaves);
    }

    /// Whether no clock below `clock` is set.
    pub fn is_unset_below(&self, clock: u32) -> bool {
        self.nodes[self.leaves..][..clock as usize].iter().all(|&(time, _)| time == NEVER)
    }

    /// The time to which a clock is set; [`NEVER`] for a clock that is not set.
    pub fn time(&self, clock: u32) -> Time {
        self.nodes[self.leaves + clock as usize].0
    }

    /// The earliest time and its clock. The time is [`NEVER`] if no clock is set.
    #[inline(always)]
    pub fn next(&self) -> (Time, u32) {
        self.nodes[1]
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::base::rng::Stream;

    /// The naive twin of the tournament is a linear search.
    #[test]
    fn the_tournament_agrees_with_a_linear_search() {
        for clocks in [1, 2, 3, 16, 17, 100] {
            let mut agenda = Agenda::new(clocks);
            let mut times = vec![NEVER; clocks];
            let mut stream = Stream::new(clocks as u64, "agenda");
            for _ in 0..2000 {
                let clock = stream.below(clocks as u64) as usize;
                let time = if stream.below(4) == 0 { NEVER } else { Time::from_ns(stream.below(50)) };
                times[clock] = time;
                agenda.set(clock as u32, time);
                let earliest = *times.iter().min().unwrap();
                let first = times.iter().position(|&t| t == earliest).unwrap();
                assert_eq!(agenda.next().0, earliest);
                if earliest != NEVER {
                    assert_eq!(agenda.next().1 as usize, first);
                }
            }
        }
    }
}
