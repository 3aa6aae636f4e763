//! The trace runner: plays a source of requests on a drive, in open or closed loop; what a workload reads and never wrote is there
//! before it (`prefill.rs`). [`memory`] says what a run takes.
//!
//! When power fails the host stops too: the arrivals that follow are later by the time the drive was down, so that no
//! latency is that of the outage. What was under way has ended, and counts as completed.

pub mod memory;
mod prefill;

pub use prefill::map_reads;

use crate::base::units::{Span, Time};
use crate::drive::spec::{Arrival, Beyond};
use crate::drive::{Drive, Failure, Refused};
use crate::host::{Op, Request};
use crate::probe::Probe;
use std::collections::VecDeque;

/// Requests read ahead.
const AHEAD: usize = 8;

/// Where requests come from, in order of arrival.
pub trait Source {
    /// What can go wrong with it.
    type Error;
    /// The next request, `None` at the end.
    fn next_request(&mut self) -> Option<Result<Request, Self::Error>>;
}

/// How far a run is.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Progress {
    /// Whether the source has ended and everything submitted has been completed.
    pub is_done: bool,
    /// Requests completed.
    pub completed: u64,
}

/// Why a run stopped.
#[derive(Debug)]
pub enum Stopped<E> {
    /// The source failed.
    Source(E),
    /// The drive has failed.
    Failed(Failure),
    /// Request `number` (counted from 1) arrives after `end`, the last simulated time of the drive.
    TooLate {
        /// Which request.
        number: u64,
        /// See above.
        end: Time,
    },
    /// Request `number` (counted from 1) does not fit the drive.
    Refused {
        /// Which request.
        number: u64,
        /// The request.
        request: Request,
        /// Why.
        refused: Refused,
    },
}

/// Plays a source on a drive, open or closed loop.
#[derive(Debug)]
pub struct Runner<S: Source> {
    source: S,
    arrival: Arrival,
    beyond: Beyond,
    /// The next requests: read ahead, so that the drive can prefetch for them.
    ahead: VecDeque<Request>,
    has_ended: bool,
    fetched: u64,
    /// An error of the source, or a request that arrives too late, kept until what came before has been played.
    failed: Option<Stopped<S::Error>>,
    has_failed: bool,
    submitted: u64,
    completed: u64,
    /// So much later do the requests to come arrive.
    delay_ns: Span,
    /// Requests whose addresses were taken modulo the capacity.
    pub wrapped: u64,
}

impl<S: Source> Runner<S> {
    /// A runner of `source`: how its requests arrive, and what happens to those beyond the drive.
    pub fn new(source: S, arrival: Arrival, beyond: Beyond) -> Self {
        Self {
            source,
            arrival,
            beyond,
            ahead: VecDeque::with_capacity(AHEAD),
            has_ended: false,
            fetched: 0,
            failed: None,
            has_failed: false,
            submitted: 0,
            completed: 0,
            delay_ns: Span::ZERO,
            wrapped: 0,
        }
    }

    /// The source.
    pub fn source(&self) -> &S {
        &self.source
    }

    /// Requests completed so far.
    pub fn completed(&self) -> u64 {
        self.completed
    }

    /// How far it is.
    pub fn progress<P: Probe>(&self, drive: &Drive<P>) -> Progress {
        Progress {
            is_done: self.has_ended && !self.has_failed && self.ahead.is_empty() && drive.outstanding() == 0,
            completed: self.completed,
        }
    }

    /// Plays until about `requests` more have been completed; `on_completed` sees each.
    ///
    /// # Errors
    /// When the source fails or a request does not fit the drive. What was submitted stays submitted.
    pub fn run<P: Probe>(
        &mut self,
        drive: &mut Drive<P>,
        requests: u64,
        mut on_completed: impl FnMut(&crate::drive::Completion),
    ) -> Result<Progress, Stopped<S::Error>> {
        let until = self.completed.saturating_add(requests);
        while self.completed < until {
            let has_next = self.fetch(drive)?;
            match self.arrival {
                Arrival::QueueDepth(depth) if has_next && drive.outstanding() < depth => {
                    let mut request = self.ahead.pop_front().expect("a request has been fetched");
                    request.arrival = drive.now();
                    self.submit(drive, request)?;
                }
                Arrival::Trace { .. } | Arrival::Iops(_) | Arrival::Bursts { .. } if has_next => {
                    let mut request = self.ahead.pop_front().expect("a request has been fetched");
                    let on_host = request.arrival;
                    loop {
                        let down_ns = drive.down_time();
                        // A time beyond the last one fails the drive.
                        request.arrival = on_host.saturating_add(self.delay_ns + down_ns);
                        drive.advance(request.arrival);
                        if let Some(failure) = drive.failure() {
                            return Err(Stopped::Failed(failure.clone()));
                        }
                        if drive.down_time() == down_ns {
                            break;
                        }
                    }
                    self.submit(drive, request)?;
                }
                _ => {
                    // The run ends with its last request; what the drive would do in the idle time after is not part
                    // of it. A power loss that comes with it is.
                    if drive.outstanding() == 0 && drive.is_power_failing() {
                        drive.advance(drive.now());
                    }
                    if drive.outstanding() == 0 || !drive.advance_to_completion(Time::NEVER) {
                        break;
                    }
                }
            }
            for completion in drive.completions() {
                self.completed += 1;
                on_completed(&completion);
            }
        }
        match drive.failure() {
            Some(failure) => Err(Stopped::Failed(failure.clone())),
            None => Ok(self.progress(drive)),
        }
    }

    /// Lets what is under way end without submitting more, for `limit` of simulated time at most; the requests to come
    /// arrive that much later. Whether the drive is at rest then.
    pub fn rest<P: Probe>(
        &mut self,
        drive: &mut Drive<P>,
        limit: Span,
        mut on_completed: impl FnMut(&crate::drive::Completion),
    ) -> bool {
        let (began, down_ns) = (drive.now(), drive.down_time());
        while !drive.is_at_rest() && drive.advance_by_event(began + limit) {
            for completion in drive.completions() {
                self.completed += 1;
                on_completed(&completion);
            }
        }
        // An outage meanwhile delays them anyway.
        self.delay_ns += drive.now() - began - (drive.down_time() - down_ns);
        drive.is_at_rest()
    }

    /// Takes the next request out without playing it.
    pub(crate) fn take<P: Probe>(&mut self, drive: &Drive<P>) -> Result<Option<Request>, Stopped<S::Error>> {
        Ok(if self.fetch(drive)? { self.ahead.pop_front() } else { None })
    }

    /// Makes sure the next request is at hand; whether there is one.
    #[inline]
    fn fetch<P: Probe>(&mut self, drive: &Drive<P>) -> Result<bool, Stopped<S::Error>> {
        while self.ahead.len() < AHEAD && !self.has_ended {
            match self.source.next_request() {
                None => self.has_ended = true,
                // What came before the error is played first.
                Some(Err(error)) => self.fail(Stopped::Source(error)),
                Some(Ok(mut request)) => {
                    let arrival = self.arrival.at(self.fetched, request.arrival);
                    let Some(arrival) = arrival.filter(|&at| at <= drive.end()) else {
                        self.fail(Stopped::TooLate { number: self.fetched + 1, end: drive.end() });
                        break;
                    };
                    request.arrival = arrival;
                    self.fetched += 1;
                    if self.beyond == Beyond::Wrap && request.op != Op::Flush {
                        self.wrap(&mut request, drive.geometry().logical_bytes());
                    }
                    drive.prefetch(&request, false);
                    self.ahead.push_back(request);
                }
            }
        }
        if self.ahead.is_empty()
            && let Some(error) = self.failed.take()
        {
            return Err(error);
        }
        if let Some(soon) = self.ahead.get(AHEAD / 2) {
            drive.prefetch(soon, true);
        }
        Ok(!self.ahead.is_empty())
    }

    /// Nothing comes after what has been read ahead.
    #[cold]
    fn fail(&mut self, why: Stopped<S::Error>) {
        self.failed = Some(why);
        (self.has_failed, self.has_ended) = (true, true);
    }

    /// Takes a request's address modulo the capacity; one that would run over the end is moved back.
    fn wrap(&mut self, request: &mut Request, capacity: u64) {
        if request.offset.saturating_add(request.len) <= capacity {
            return;
        }
        self.wrapped += 1;
        request.len = request.len.min(capacity);
        request.offset = (request.offset % capacity).min(capacity - request.len);
    }

    #[inline]
    fn submit<P: Probe>(&mut self, drive: &mut Drive<P>, request: Request) -> Result<(), Stopped<S::Error>> {
        self.submitted += 1;
        let refused = |refused| Stopped::Refused { number: self.submitted, request, refused };
        drive.submit(&request).map(|_| ()).map_err(refused)
    }
}
