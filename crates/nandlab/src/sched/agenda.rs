//! The pending events: one clock for each part of the drive that may wait for an event.
//!
//! Every part waits for at most one event at a time, so the pending events are an array with one clock per part. A
//! tournament over the clocks finds the earliest: setting a clock takes log2(parts) comparisons and no memory. Of
//! several clocks with the same time the one with the lowest number comes first, so the order of events does not depend
//! on the order in which the clocks were set.
//!
//! A clock takes part in the tournament with one number, made of its time since a base and its own number. A clock too
//! late for this number takes part after the base has moved on.

use crate::base::state::state;
use crate::base::steps::step;
use crate::base::units::{Span, Time};

/// The time of a clock that is not set.
pub const NEVER: Time = Time::NEVER;

/// The least number of leaves of the tournament. Five rounds of a known number take fewer instructions than a number of
/// rounds that is not known.
const LEAVES_MIN: usize = 32;

/// The clocks and their tournament.
///
/// A clock takes part with one number: the time since `base`, then the number of the clock. So a comparison also decides
/// between clocks of the same time.
#[derive(Debug)]
pub struct Agenda {
    /// A binary tree in an array: node `leaves + i` is clock `i`, and node 1 has the earliest clock.
    nodes: Box<[u64]>,
    /// The time of each clock.
    times: Box<[Time]>,
    leaves: usize,
    /// The binary logarithm of `leaves`.
    shift: u32,
    /// The time from which the clocks take part. Clocks too far after it are [`Agenda::later`].
    base: Time,
    /// The time since `base` of a clock that is not set, or set too late to take part.
    later: u64,
}

impl Agenda {
    /// `clocks` clocks, none of them set.
    pub fn new(clocks: usize) -> Self {
        let leaves = clocks.next_power_of_two().max(LEAVES_MIN);
        let mut agenda = Self {
            nodes: vec![u64::MAX; 2 * leaves].into(),
            times: vec![NEVER; leaves].into(),
            leaves,
            shift: leaves.ilog2(),
            base: Time::START,
            later: u64::MAX >> leaves.ilog2(),
        };
        agenda.begin_at(Time::START);
        agenda
    }

    /// Sets `clock` to `time` (or [`NEVER`]).
    #[inline]
    pub fn set(&mut self, clock: u32, time: Time) {
        self.times[clock as usize] = time;
        if time < self.base {
            self.begin_at(time);
            return;
        }
        let since = (time - self.base).ns().min(self.later);
        let key = since << self.shift | u64::from(clock);
        // If the compiler knows the number of nodes, it also knows that no index is out of bounds.
        match <&mut [u64; 2 * LEAVES_MIN]>::try_from(&mut *self.nodes) {
            Ok(nodes) => play(nodes, LEAVES_MIN, clock, key),
            Err(_) => self.play_large(clock, key),
        }
    }

    /// [`play`] with more than [`LEAVES_MIN`] leaves.
    #[inline(never)]
    fn play_large(&mut self, clock: u32, key: u64) {
        if let Ok(nodes) = <&mut [u64; 128]>::try_from(&mut *self.nodes) {
            play(nodes, 64, clock, key);
        } else if let Ok(nodes) = <&mut [u64; 256]>::try_from(&mut *self.nodes) {
            play(nodes, 128, clock, key);
        } else {
            play(&mut self.nodes, self.leaves, clock, key);
        }
    }

    /// Lets the clocks take part with their times since `base`.
    #[cold]
    #[inline(never)]
    fn begin_at(&mut self, base: Time) {
        self.base = base;
        for clock in 0..self.leaves {
            self.set(clock as u32, self.times[clock]);
        }
    }

    /// Unsets all clocks.
    pub fn clear(&mut self) {
        *self = Self::new(self.leaves);
    }

    /// Whether no clock below `clock` is set.
    pub fn is_unset_below(&self, clock: u32) -> bool {
        self.times[..clock as usize].iter().all(|&time| time == NEVER)
    }

    /// The time to which a clock is set; [`NEVER`] for a clock that is not set.
    pub fn time(&self, clock: u32) -> Time {
        self.times[clock as usize]
    }

    /// The earliest time and its clock. The time is [`NEVER`] if no clock is set.
    #[inline(always)]
    pub fn first(&mut self) -> (Time, u32) {
        let key = self.nodes[1];
        let since = key >> self.shift;
        if since == self.later {
            return self.first_later();
        }
        (self.base + Span::from_ns(since), key as u32 & (self.leaves as u32 - 1))
    }

    /// [`Agenda::first`] if no clock takes part: the times are counted anew from the earliest clock.
    #[cold]
    #[inline(never)]
    fn first_later(&mut self) -> (Time, u32) {
        let earliest = *self.times.iter().min().expect("an agenda has a clock");
        if earliest == NEVER {
            return (NEVER, 0);
        }
        self.begin_at(earliest);
        self.first()
    }
}

/// Gives `clock`, one of `leaves`, the number `key`, and finds the least number of each subtree with the clock.
#[inline(always)]
fn play(nodes: &mut [u64], leaves: usize, clock: u32, mut key: u64) {
    let mut node = leaves + (clock as usize & (leaves - 1));
    nodes[node] = key;
    for _ in 0..leaves.ilog2() {
        step();
        key = key.min(nodes[node ^ 1]);
        node /= 2;
        nodes[node] = key;
    }
}

state! { Agenda { nodes, times, base } fixed { leaves, shift, later } }

#[cfg(test)]
mod tests {
    use super::*;
    use crate::base::rng::Stream;

    /// The naive twin of the tournament is a linear search.
    #[test]
    fn the_tournament_agrees_with_a_linear_search() {
        // The compiler knows the number of nodes of up to 128 clocks.
        for clocks in [1, 2, 3, 16, 17, 32, 33, 64, 100, 128, 129, 300] {
            let mut agenda = Agenda::new(clocks);
            let mut times = vec![NEVER; clocks];
            let mut stream = Stream::new(clocks as u64, "agenda");
            for _ in 0..2000 {
                let clock = stream.below(clocks as u64) as usize;
                // Some clocks are years away, and take part only after the others have been unset.
                let time = match stream.below(8) {
                    0 | 1 => NEVER,
                    2 => Time::from_ns(u64::MAX / (2 + stream.below(20))),
                    _ => Time::from_ns(stream.below(50)),
                };
                times[clock] = time;
                agenda.set(clock as u32, time);
                if stream.below(100) == 0 {
                    let span = Span::from_ns(stream.below(u64::MAX / 4));
                    (times, agenda) = (vec![NEVER; clocks], Agenda::new(clocks));
                    times[clock] = Time::START + span;
                    agenda.set(clock as u32, times[clock]);
                }
                let earliest = *times.iter().min().unwrap();
                let first = times.iter().position(|&t| t == earliest).unwrap();
                assert_eq!(agenda.first().0, earliest);
                if earliest != NEVER {
                    assert_eq!(agenda.first().1 as usize, first);
                }
            }
        }
    }
}
