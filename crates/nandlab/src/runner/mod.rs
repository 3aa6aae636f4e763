//! The trace runner: plays a source of requests on a drive, in open or closed loop. [`map_reads`] maps the pages that a
//! workload reads before it writes them; [`memory`] estimates the memory of a run.
//!
//! When power fails the host stops too: later requests arrive later by the time the drive was down, so no latency
//! contains the outage. The power loss ends the requests under way; they count as completed.

pub mod memory;
mod prefill;

pub use prefill::map_reads;

use crate::base::units::{Span, Time};
use crate::drive::spec::{Arrival, Beyond};
use crate::drive::{Drive, Failure, Refused};
use crate::host::{Op, Request};
use crate::probe::Probe;
use std::collections::VecDeque;

/// Requests read ahead of the one to be submitted.
const AHEAD: usize = 8;

/// A source of requests, in order of arrival.
pub trait Source {
    /// Error of a source that cannot give its next request.
    type Error;
    /// The next request; `None` at the end.
    fn next_request(&mut self) -> Option<Result<Request, Self::Error>>;
}

/// Progress of a run.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Progress {
    /// Whether the source has ended and everything submitted has been completed.
    pub is_done: bool,
    /// Requests completed.
    pub completed: u64,
}

/// Why a run stopped before its source had ended.
#[derive(Debug)]
pub enum Stopped<E> {
    /// The source failed.
    Source(E),
    /// The drive has failed.
    Failed(Failure),
    /// A request arrives after the last time that the drive can simulate.
    TooLate {
        /// Number of the request in the workload, counted from 1.
        number: u64,
        /// The last time that the drive can simulate.
        end: Time,
    },
    /// The drive refuses a request.
    Refused {
        /// Number of the request in the workload, counted from 1.
        number: u64,
        /// The request.
        request: Request,
        /// Why the drive refuses the request.
        refused: Refused,
    },
}

/// Plays a source on a drive, open or closed loop.
#[derive(Debug)]
pub struct Runner<S: Source> {
    source: S,
    arrival: Arrival,
    beyond: Beyond,
    /// The next requests, read ahead so that the drive can prefetch their map entries.
    ahead: VecDeque<Request>,
    has_ended: bool,
    fetched: u64,
    /// An error of the source, or a request that arrives too late; reported once all requests before it have been
    /// submitted.
    failed: Option<Stopped<S::Error>>,
    has_failed: bool,
    submitted: u64,
    completed: u64,
    /// Delay of the arrivals to come, by the rests so far ([`Self::rest`]).
    delay_ns: Span,
    /// Requests whose addresses were taken modulo the capacity.
    pub wrapped: u64,
}

impl<S: Source> Runner<S> {
    /// A runner of `source`; `arrival` sets the arrival times of its requests, `beyond` the handling of requests beyond
    /// the drive's capacity.
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

    /// Progress of the run.
    pub fn progress<P: Probe>(&self, drive: &Drive<P>) -> Progress {
        Progress {
            is_done: self.has_ended && !self.has_failed && self.ahead.is_empty() && drive.outstanding() == 0,
            completed: self.completed,
        }
    }

    /// Plays until at least `requests` more requests have been completed, or the run is done; calls `on_completed` with
    /// each completion.
    ///
    /// # Errors
    /// When the source or the drive fails, a request arrives too late, or the drive refuses a request. Requests
    /// submitted before stay submitted.
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
                        // An arrival after the last simulated time makes the drive fail.
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
                    // The run ends with the completion of its last request: background work of the idle time after that
                    // is no part of the run, but a power loss that is triggered by the last request is.
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

    /// Lets the operations under way end, without submitting requests, for `limit` of simulated time at most. The
    /// requests to come arrive later by the time this takes. Returns whether the drive is at rest.
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
        // The down time of an outage during the rest is added to arrivals by `run`.
        self.delay_ns += drive.now() - began - (drive.down_time() - down_ns);
        drive.is_at_rest()
    }

    /// Takes the next request out of the source without submitting it.
    pub(crate) fn take<P: Probe>(&mut self, drive: &Drive<P>) -> Result<Option<Request>, Stopped<S::Error>> {
        Ok(if self.fetch(drive)? { self.ahead.pop_front() } else { None })
    }

    /// Reads requests ahead; returns whether there is a next request.
    #[inline]
    fn fetch<P: Probe>(&mut self, drive: &Drive<P>) -> Result<bool, Stopped<S::Error>> {
        while self.ahead.len() < AHEAD && !self.has_ended {
            match self.source.next_request() {
                None => self.has_ended = true,
                // The requests before the error are played first.
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

    /// Ends the source with `why`: only the requests read ahead are still played.
    #[cold]
    fn fail(&mut self, why: Stopped<S::Error>) {
        self.failed = Some(why);
        (self.has_failed, self.has_ended) = (true, true);
    }

    /// Takes a request's address modulo the capacity. A request that would still end beyond the capacity is moved back
    /// to end at it.
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
