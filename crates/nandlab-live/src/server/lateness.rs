//! How late replies are, beside a timer alone.

use hdrhistogram::Histogram;
use nandlab_base::base::units::{Span, Time};
use rustix::event::{PollFd, PollFlags, poll};
use serde_json::{Value, json};

use super::clock::{Clock, SECOND, Timer};

/// The longest lateness that percentiles distinguish: an hour.
const MAX: u64 = 3600 * SECOND;
/// Waits of the timer alone, and the length of each.
const WAITS: (u32, Span) = (200, Span::from_ns(100_000));
/// The share of a request's time by which replies may be late on average.
const SHARE_MAX: f64 = 0.1;

/// Lateness of replies: from the time at which they are due to that at which they are handed to the system.
#[derive(Debug)]
pub(super) struct Lateness {
    replies: Histogram<u64>,
    /// Of a timer of the same machine, to which nothing else is done.
    timer: Histogram<u64>,
    late_ns: u128,
    /// Sum of the times from the arrival of the requests until their replies were due.
    due_ns: u128,
    /// Due times of replies that are about to be sent.
    pending: Vec<Time>,
}

fn histogram() -> Histogram<u64> {
    Histogram::new_with_bounds(1, MAX, 3).expect("the bounds are in order")
}

impl Lateness {
    pub(super) fn new() -> Self {
        Self { replies: histogram(), timer: histogram(), late_ns: 0, due_ns: 0, pending: Vec::new() }
    }

    /// Measures the timer alone. Takes about 20 ms.
    pub(super) fn measure_timer(&mut self, clock: &Clock) -> rustix::io::Result<()> {
        let mut timer = Timer::new()?;
        for _ in 0..WAITS.0 {
            let due = clock.now().saturating_add(WAITS.1);
            timer.set(clock, Some(due))?;
            match poll(&mut [PollFd::new(&timer, PollFlags::IN)], None) {
                Ok(_) => self.timer.saturating_record(clock.now().saturating_sub(due).ns()),
                Err(rustix::io::Errno::INTR) => {}
                Err(error) => return Err(error),
            }
            timer.rang();
        }
        Ok(())
    }

    /// A reply to a request that arrived at `arrival` is due at `due` and about to be sent.
    pub(super) fn add(&mut self, arrival: Time, due: Time) {
        self.due_ns += u128::from(due.saturating_sub(arrival).ns());
        self.pending.push(due);
    }

    /// The replies are handed to the system at the time that `now` returns.
    pub(super) fn sent(&mut self, now: impl FnOnce() -> Time) {
        if self.pending.is_empty() {
            return;
        }
        let now = now();
        for due in self.pending.drain(..) {
            let late = now.saturating_sub(due).ns();
            self.late_ns += u128::from(late);
            self.replies.saturating_record(late);
        }
    }

    /// The lateness in us, and whether the machine keeps up: by which share of their times requests are late, and by which
    /// factor a lower speed would be low enough.
    pub(super) fn json(&self) -> Value {
        let us = |of: &Histogram<u64>| {
            let quantile = |share| of.value_at_quantile(share) as f64 * 1e-3;
            json!({ "p50": quantile(0.5), "p99": quantile(0.99), "max": of.max() as f64 * 1e-3, "count": of.len() })
        };
        let share = if self.due_ns > 0 { self.late_ns as f64 / self.due_ns as f64 } else { 0.0 };
        json!({
            "late_us": us(&self.replies),
            "timer_us": us(&self.timer),
            "late_share": share,
            "keeps_up": share <= SHARE_MAX,
            "slower_by": (share / SHARE_MAX).max(1.0),
        })
    }
}
