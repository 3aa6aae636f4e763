//! The clients of a workload (`workload.clients`): when each of them submits its next request.
//!
//! A client is in at most one of two places: among those that submit at once (`ready`, in turns), or among those that
//! submit at a time to come (`timed`). A client that waits for a completion is in neither. So the cost of a request does
//! not depend on how many requests wait at the clients: only the requests that are read ahead exist, and a client knows
//! when the first of them is due.
//!
//! Times here are those of the hosts' clock, which stands still while the drive has no power and while it comes to rest.

use super::AHEAD;
use crate::base::units::{Span, Time};
use crate::drive::spec::{Arrival, ClientSpec, Due, LatencyFrom, stream_name};
use crate::host::{Op, Request, Tag};
use crate::report::Waits;
use std::cmp::Reverse;
use std::collections::{BinaryHeap, VecDeque};

/// One client.
#[derive(Debug)]
pub(super) struct Client {
    due: Due,
    start: Time,
    /// Nothing is submitted from this time on.
    pub(super) end: Time,
    is_closed: bool,
    /// The most outstanding requests.
    most: u32,
    think: Span,
    latency_from: LatencyFrom,
    tag: Tag,
    /// The next requests, read ahead; those of an open loop with the time at which they are due.
    pub(super) ahead: VecDeque<Request>,
    /// When the request before those of `ahead`, or the last one of them, is due.
    last_due: Time,
    /// Whether no further request is read ahead.
    pub(super) has_ended: bool,
    /// The number of the request that is due after the last time of the drive, counted from 1.
    pub(super) too_late: Option<u64>,
    fetched: u64,
    outstanding: u32,
    /// Of a closed loop with a think time: when each request that has completed is followed by the next one.
    thinking: VecDeque<Time>,
    /// Whether the client is in `ready` or `timed`.
    is_armed: bool,
    waits: Waits,
}

impl Client {
    fn new(spec: &ClientSpec, number: usize, seed: u64) -> Self {
        let start = Time::START + spec.start;
        Self {
            due: Due::new(spec.arrival, seed, &stream_name(number, "arrival")),
            start,
            end: spec.duration.map_or(Time::NEVER, |duration| start.saturating_add(duration)),
            is_closed: matches!(spec.arrival, Arrival::QueueDepth(_)),
            most: spec.outstanding_max(),
            think: spec.think_time,
            latency_from: spec.latency_from,
            tag: Tag { queue: number as u16, placement: spec.placement },
            ahead: VecDeque::with_capacity(AHEAD),
            last_due: start,
            has_ended: false,
            too_late: None,
            fetched: 0,
            outstanding: 0,
            thinking: VecDeque::new(),
            is_armed: false,
            waits: Waits::default(),
        }
    }

    /// Takes a request that has been read; `drive_end` is the last time of the drive.
    pub(super) fn take(&mut self, mut request: Request, drive_end: Time) {
        self.fetched += 1;
        // A flush follows its write at once.
        if !self.is_closed && request.op != Op::Flush {
            let due = self.due.next(request.arrival).map(|due| due.saturating_add(self.start - Time::START));
            match due.filter(|&due| due <= drive_end || due >= self.end) {
                Some(due) => self.last_due = due,
                None => {
                    (self.has_ended, self.too_late) = (true, Some(self.fetched));
                    return;
                }
            }
        }
        request.arrival = self.last_due;
        if request.arrival >= self.end {
            self.has_ended = true;
            return;
        }
        request.tag = self.tag;
        self.ahead.push_back(request);
    }

    /// When the client may submit its next request, which has been read; `None`: after a completion.
    fn next(&self, now: Time) -> Option<At> {
        let next = self.ahead.front()?;
        if !self.is_closed {
            // A request that is due now follows all events of this time.
            let at = if next.arrival < now { At::Once } else { At::Time(next.arrival) };
            return (self.outstanding < self.most).then_some(at);
        }
        if self.outstanding as usize + self.thinking.len() < self.most as usize {
            return Some(if self.start > now { At::Time(self.start) } else { At::Once });
        }
        self.thinking.front().map(|&until| At::Time(until))
    }

    /// The client submits nothing any more.
    fn end(&mut self) {
        self.has_ended = true;
        self.ahead.clear();
    }
}

/// When a client submits.
#[derive(Clone, Copy, Debug)]
enum At {
    /// As soon as it has its turn.
    Once,
    /// At this time, after all events of the drive at this time.
    Time(Time),
}

/// The clients of a workload.
#[derive(Debug)]
pub(super) struct Clients {
    pub(super) list: Vec<Client>,
    /// The clients that submit at once, in the order of their turns.
    ready: VecDeque<u16>,
    /// The clients that submit at a time to come; those with the same time take turns.
    timed: BinaryHeap<Reverse<(Time, u64, u16)>>,
    turns: u64,
    /// Requests that may still be submitted (`workload.requests_max`); `u64::MAX` without a limit.
    left: u64,
    pub(super) has_begun: bool,
    /// Completions that the clients have not been told of: the client, and the time.
    pub(super) completed: Vec<(u16, Time)>,
    /// The client whose requests [`Clients::take_next`] takes, and how many it has taken of it.
    taking: (usize, u64),
}

impl Clients {
    /// The clients of a run with `seed`; they submit `requests_max` requests at most (0: no limit).
    pub(super) fn new(specs: &[ClientSpec], seed: u64, requests_max: u64) -> Self {
        let list: Vec<Client> =
            specs.iter().enumerate().map(|(number, spec)| Client::new(spec, number, seed)).collect();
        Self {
            ready: VecDeque::with_capacity(list.len()),
            timed: BinaryHeap::with_capacity(list.len()),
            list,
            turns: 0,
            left: if requests_max > 0 { requests_max } else { u64::MAX },
            has_begun: false,
            completed: Vec::new(),
            taking: (0, 0),
        }
    }

    /// Takes the requests of one client after another from `next_of`; of each as many as it may submit at most.
    pub(super) fn take_next<E>(
        &mut self,
        mut next_of: impl FnMut(usize) -> Option<Result<Request, E>>,
    ) -> Option<Result<Request, E>> {
        while self.taking.0 < self.list.len() {
            let (client, taken) = self.taking;
            if taken < self.left
                && let Some(request) = next_of(client)
            {
                self.taking.1 += 1;
                return Some(request.map(|request| request.with_tag(self.list[client].tag)));
            }
            self.taking = (client + 1, 0);
        }
        None
    }

    /// Whether no client will submit anything before a completion.
    pub(super) fn is_waiting(&self) -> bool {
        self.ready.is_empty() && self.timed.is_empty() || self.left == 0
    }

    /// Gives the client its place, if it has none and may submit a request. Its next request has been read.
    pub(super) fn arm(&mut self, number: u16, now: Time) {
        let client = &mut self.list[usize::from(number)];
        if client.is_armed {
            return;
        }
        let Some(at) = client.next(now) else { return };
        client.is_armed = true;
        match at {
            At::Once => self.ready.push_back(number),
            At::Time(time) => {
                self.timed.push(Reverse((time, self.turns, number)));
                self.turns += 1;
            }
        }
    }

    /// The client that submits at once.
    pub(super) fn pop_ready(&mut self) -> Option<u16> {
        self.ready.pop_front()
    }

    /// The next time at which a client submits.
    pub(super) fn next_time(&self) -> Option<Time> {
        self.timed.peek().map(|Reverse((time, ..))| *time)
    }

    /// The client whose time has come.
    pub(super) fn pop_timed(&mut self) -> u16 {
        let Reverse((.., number)) = self.timed.pop().expect("a client has a time");
        number
    }

    /// The request that the client submits at `now`; `None` if it has ended. `now` of the drive is `drive_now`.
    pub(super) fn submit(
        &mut self,
        number: u16,
        now: Time,
        drive_now: Time,
        counts: bool,
    ) -> Option<Request> {
        let client = &mut self.list[usize::from(number)];
        client.is_armed = false;
        if now >= client.end {
            client.end();
            return None;
        }
        if client.is_closed && client.outstanding as usize + client.thinking.len() == client.most as usize {
            client.thinking.pop_front();
        }
        let mut request = client.ahead.pop_front().expect("an armed client has a request");
        let waited = if client.is_closed { Span::ZERO } else { now.saturating_sub(request.arrival) };
        request.arrival = match client.latency_from {
            LatencyFrom::Due => drive_now.earlier_by(waited),
            LatencyFrom::Submission => drive_now,
        };
        if counts {
            client.waits.submitted += 1;
            client.waits.waited += u64::from(waited > Span::ZERO);
            client.waits.sum_ns += u128::from(waited.ns());
            client.waits.max_ns = client.waits.max_ns.max(waited);
        }
        client.outstanding += 1;
        self.left = self.left.saturating_sub(1);
        Some(request)
    }

    /// A request of the client has completed at `at`.
    pub(super) fn on_completed(&mut self, number: u16, at: Time) {
        let client = &mut self.list[usize::from(number)];
        client.outstanding -= 1;
        if client.is_closed && client.think > Span::ZERO {
            let last = client.thinking.back().copied().unwrap_or(Time::START);
            client.thinking.push_back(at.saturating_add(client.think).max(last));
        }
    }

    /// What has waited at each client.
    pub(super) fn waits(&self) -> impl Iterator<Item = Waits> {
        self.list.iter().map(|client| client.waits)
    }

    /// The time at which the last client ends, if all of them have a duration.
    pub(super) fn end(&self) -> Option<Time> {
        self.list.iter().map(|client| client.end).max().filter(|&end| end < Time::NEVER)
    }
}
