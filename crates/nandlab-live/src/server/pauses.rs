//! Pauses in which requests gather.
//!
//! A client with many outstanding requests sends the next one as soon as it has read a reply. A server that is quicker than
//! the client then wakes up for each request, and a wake-up costs more than the request: on an idle machine 11 us of
//! processor time a write instead of 5, and the client pays for waking the server too. A short pause before each wait lets
//! requests gather. A client with few outstanding requests would only wait longer. Therefore pauses are tried for a while,
//! and kept only while they do not cost throughput and several requests come in each.

use std::time::Duration;

use nandlab_base::base::units::{Span, Time};

/// Requests of a window, over which throughput is measured.
const WINDOW: u64 = 1024;
/// Requests that have to come in a pause on average.
const GATHERED_MIN: u64 = 4;
/// Rounds after which a window with fewer requests is given up.
const ROUNDS_MIN: u64 = 16;
/// Windows between two trials: after a change of mind, and at most.
const SPACING: (u32, u32) = (4, 1024);

/// What a window is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Phase {
    /// No pauses, for some windows more.
    Off(u32),
    /// Pauses, to be compared with the last window without.
    Trial,
    /// Pauses, for some windows more.
    On(u32),
}

/// Decides about pauses.
#[derive(Clone, Debug)]
pub(super) struct Pauses {
    pause: Duration,
    phase: Phase,
    /// The phase before the last trial was with pauses.
    was_on: bool,
    spacing: u32,
    /// Time that the last window without pauses took.
    without: Span,
    /// When the window began; `None` before the first request.
    began: Option<Time>,
    requests: u64,
    rounds: u64,
}

impl Pauses {
    /// Pauses of a length; with 0 there are none. The system adds its slack of about 50 us.
    pub(super) fn new(pause: Span) -> Self {
        Self {
            pause: Duration::from_nanos(pause.ns()),
            phase: Phase::Off(0),
            was_on: false,
            spacing: SPACING.0,
            without: Span::MAX,
            began: None,
            requests: 0,
            rounds: 0,
        }
    }

    /// The pause to be made now, if any.
    pub(super) fn pause(&self) -> Option<Duration> {
        (!self.pause.is_zero() && !matches!(self.phase, Phase::Off(_))).then_some(self.pause)
    }

    /// Takes note that a round has served some requests. `now` is asked for at the ends of windows only.
    pub(super) fn served(&mut self, requests: u64, now: impl Fn() -> Time) {
        if self.pause.is_zero() || requests == 0 {
            return;
        }
        let began = *self.began.get_or_insert_with(&now);
        self.requests += requests;
        self.rounds += 1;
        let gathers = self.requests >= GATHERED_MIN * self.rounds;
        let is_vain =
            self.phase != Phase::Off(0) && self.pause().is_some() && self.rounds >= ROUNDS_MIN && !gathers;
        if self.requests < WINDOW && !is_vain {
            return;
        }
        let now = now();
        let took = now.saturating_sub(began);
        (self.began, self.requests, self.rounds) = (Some(now), 0, 0);
        self.phase = match self.phase {
            Phase::Off(0) => {
                self.without = took;
                Phase::Trial
            }
            Phase::Off(left) => Phase::Off(left - 1),
            Phase::Trial => {
                let is_on = gathers && took.ns() <= self.without.ns().saturating_add(self.without.ns() / 10);
                self.spacing =
                    if is_on == self.was_on { (self.spacing * 2).min(SPACING.1) } else { SPACING.0 };
                self.was_on = is_on;
                if is_on { Phase::On(self.spacing) } else { Phase::Off(self.spacing) }
            }
            // A window without pauses follows, and then a trial.
            Phase::On(left) if gathers && left > 0 => Phase::On(left - 1),
            Phase::On(_) => Phase::Off(0),
        };
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::cell::Cell;

    /// Runs a client that has `depth` requests outstanding and takes `client_ns` for each, against a server that takes
    /// `round_ns` for a round. Returns the time and the number of rounds of `total` requests.
    fn run(pauses: &mut Pauses, depth: u64, client_ns: u64, round_ns: u64, total: u64) -> (u64, u64) {
        let now = Cell::new(1_000_000u64);
        let began = now.get();
        // The client works on its queue of replies; each is followed by a request.
        let (mut replies, mut waiting, mut done, mut rounds) = (0u64, depth, 0u64, 0u64);
        let mut client_at = now.get();
        while done < total {
            let wait = pauses.pause().map_or(0, |pause| pause.as_nanos() as u64 + 50_000);
            now.set(now.get() + wait);
            loop {
                while replies > 0 && client_at + client_ns <= now.get() {
                    client_at += client_ns;
                    replies -= 1;
                    waiting += 1;
                }
                if waiting > 0 {
                    break;
                }
                now.set(client_at + client_ns);
            }
            now.set(now.get() + round_ns);
            if replies == 0 {
                client_at = now.get();
            }
            replies += waiting;
            done += waiting;
            pauses.served(waiting, || Time::from_ns(now.get()));
            waiting = 0;
            rounds += 1;
        }
        (now.get() - began, rounds)
    }

    #[test]
    fn a_deep_queue_gathers_and_a_shallow_one_does_not_wait() {
        for (depth, gathers) in [(1, false), (2, false), (4, false), (32, true), (256, true)] {
            let total = 200_000;
            let (plain, plain_rounds) = run(&mut Pauses::new(Span::ZERO), depth, 8_000, 3_000, total);
            let (time, rounds) = run(&mut Pauses::new(Span::from_ns(20_000)), depth, 8_000, 3_000, total);
            assert!(time as f64 <= 1.11 * plain as f64, "depth {depth}: {time} ns instead of {plain}");
            assert_eq!(
                rounds * 3 < plain_rounds,
                gathers,
                "depth {depth}: {rounds} rounds instead of {plain_rounds}"
            );
        }
    }

    #[test]
    fn a_client_whose_queue_becomes_shallow_waits_no_longer() {
        let mut pauses = Pauses::new(Span::from_ns(20_000));
        run(&mut pauses, 32, 8_000, 3_000, 200_000);
        assert!(pauses.pause().is_some());
        let (plain, _) = run(&mut Pauses::new(Span::ZERO), 1, 8_000, 3_000, 10_000);
        let (time, _) = run(&mut pauses, 1, 8_000, 3_000, 10_000);
        assert!(time as f64 <= 1.11 * plain as f64, "{time} ns instead of {plain}");
    }

    #[test]
    fn without_a_length_there_are_no_pauses() {
        let mut pauses = Pauses::new(Span::ZERO);
        run(&mut pauses, 32, 8_000, 3_000, 10_000);
        assert_eq!(pauses.pause(), None);
    }
}
