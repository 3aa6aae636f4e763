//! The utilisation of the write buffer, which the migration policy `rcopyback` uses: a moving average over time. The
//! write buffer is the write cache or `ftl.buffer`.

use crate::base::state::value;
use crate::base::units::{Span, Time};

/// Number of parts of the averaging window; the window moves by whole parts.
const PARTS: usize = 16;

/// `migration.policy.rcopyback.occupancy`: the units of the write buffer that count in its utilisation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Occupancy {
    /// Those of the write cache that are being written back; none of `ftl.buffer`.
    Writing,
    /// Those with data that flash lacks.
    Occupied,
}

/// A moving average, over a window of time, of a count that changes in steps.
#[derive(Clone, Debug)]
pub(crate) struct BufferLoad {
    part_ns: Span,
    /// The integral of the count over time (in ns) at the end of each part; a ring with the newest part at `newest`.
    integrals: [u128; PARTS + 1],
    newest: usize,
    /// End of the newest part.
    part_end: Time,
    /// The count now.
    count: u32,
    /// The time at which `integral` ends.
    since: Time,
    /// The integral of the count over time from the start to `since`, in ns.
    integral: u128,
}

impl BufferLoad {
    /// Returns a moving average over `window_ns`, with a count of 0 so far.
    pub(crate) fn new(window_ns: Span) -> Self {
        Self {
            part_ns: (window_ns / PARTS as u64).max(Span::from_ns(1)),
            integrals: [0; PARTS + 1],
            newest: 0,
            part_end: Time::START,
            count: 0,
            since: Time::START,
            integral: 0,
        }
    }

    /// Ends all parts that are over at `now`.
    fn advance(&mut self, now: Time) {
        // After a long time without a change all parts are equal, so the loop below only runs over the last parts.
        let skipped = (now - self.part_end) / self.part_ns;
        if skipped > 2 * PARTS as u64 {
            let to = self.part_end + (skipped - PARTS as u64 - 1) * self.part_ns;
            self.integral += u128::from((to - self.since).ns()) * u128::from(self.count);
            (self.since, self.part_end) = (to, to);
            self.integrals[self.newest] = self.integral;
        }
        while self.part_end + self.part_ns <= now {
            self.part_end += self.part_ns;
            self.integral += u128::from((self.part_end - self.since).ns()) * u128::from(self.count);
            self.since = self.part_end;
            self.newest = (self.newest + 1) % self.integrals.len();
            self.integrals[self.newest] = self.integral;
        }
    }

    /// Sets the count from now on.
    pub(crate) fn set(&mut self, now: Time, count: u32) {
        if count == self.count {
            return;
        }
        self.advance(now);
        self.integral += u128::from((now - self.since).ns()) * u128::from(self.count);
        (self.since, self.count) = (now, count);
    }

    /// The mean count over the last whole window and the time of the part that has begun since.
    pub(crate) fn mean(&mut self, now: Time) -> f64 {
        self.advance(now);
        let integral = self.integral + u128::from((now - self.since).ns()) * u128::from(self.count);
        let oldest = self.integrals[(self.newest + 1) % self.integrals.len()];
        let span = self.part_ns * PARTS as u64 + (now - self.part_end);
        (integral - oldest) as f64 / span.ns().min(now.ns().max(1)) as f64
    }
}

value! { Occupancy enum { Writing, Occupied } }
value! { BufferLoad { part_ns, integrals, newest, part_end, count, since, integral } }

#[cfg(test)]
mod tests {
    use super::*;
    use crate::base::rng::Stream;

    /// The naive twin is a list with the count of every nanosecond.
    #[test]
    fn the_moving_average_agrees_with_a_list_of_all_counts() {
        let mut stream = Stream::new(1, "buffer");
        let mut load = BufferLoad::new(Span::from_ns(160));
        let (mut counts, mut count) = (Vec::new(), 0);
        for _ in 0..3000 {
            let pause = [0, 1, 3, 12, 40, 1000][stream.below(6) as usize];
            counts.extend(std::iter::repeat_n(count, pause));
            let now = counts.len() as u64;
            if stream.below(3) == 0 {
                // The window begins at the start of a part.
                let from = (now / 10 * 10).saturating_sub(160) as usize;
                let part: u64 = counts[from..].iter().sum();
                let mean = if now == 0 { 0.0 } else { part as f64 / (now as usize - from) as f64 };
                assert!(
                    (load.mean(Time::from_ns(now)) - mean).abs() < 1e-9,
                    "at {now} ns: the mean is {}, expected {mean}",
                    load.mean(Time::from_ns(now))
                );
            }
            count = stream.below(20);
            load.set(Time::from_ns(now), count as u32);
        }
    }
}
