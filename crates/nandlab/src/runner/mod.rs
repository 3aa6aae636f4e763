//! The trace runner: plays a source of requests on a drive, in open or closed loop, or as several clients at once, each
//! in a loop of its own (`clients.rs`). [`map_reads`] maps the units that a
//! workload reads before it writes them; [`memory`] estimates the memory of a run.
//!
//! When power fails, the host stops too: all later arrivals are delayed by the duration of the outage, so no latency
//! contains the outage. Power loss ends the outstanding requests; the runner counts these as completed.
//!
//! The runner executes a power loss that is due with the last request, and [`Runner::rest`] lets the drive come to rest
//! and shifts the arrivals that follow.

mod clients;
pub mod memory;
mod prefill;

pub use prefill::map_reads;

use crate::base::units::{Span, Time};
use crate::drive::spec::{Arrival, Beyond, Due, WorkloadSpec, stream_name};
use crate::drive::{Drive, Failure, Refused};
use crate::host::{FailReason, Op, Request};
use crate::probe::Probe;
use crate::report::Waits;
use clients::Clients;
use std::collections::VecDeque;

/// Number of requests that are read ahead of their submission.
const AHEAD: usize = 8;

/// A source of requests, in order of arrival.
pub trait Source {
    /// Error of a source that cannot return its next request.
    type Error;
    /// Returns the next request; `None` at the end.
    fn next_request(&mut self) -> Option<Result<Request, Self::Error>>;
    /// Returns the next request of a client, by the client's number; a source without clients has one client.
    fn next_of(&mut self, client: usize) -> Option<Result<Request, Self::Error>> {
        let _ = client;
        self.next_request()
    }
}

/// Progress of a run.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Progress {
    /// Whether the source has ended and all submitted requests have been completed.
    pub is_done: bool,
    /// Number of completed requests, failed ones included.
    pub completed: u64,
}

/// Why a run cannot be completed.
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
    due: Due,
    /// The clients; `None` if all requests arrive by `due`.
    clients: Option<Box<Clients>>,
    beyond: Beyond,
    whole_pages: bool,
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
    /// Delay that the rests so far ([`Self::rest`]) add to all later arrivals.
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
            due: Due::new(arrival, 0, &stream_name(0, "arrival")),
            clients: None,
            beyond,
            whole_pages: false,
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

    /// A runner of the source of a workload, in a run with `seed`.
    pub fn of(workload: &WorkloadSpec, seed: u64, source: S) -> Self {
        let clients = workload.clients();
        let due = Due::new(workload.arrival, seed, &stream_name(0, "arrival"));
        let clients =
            (!clients.is_empty()).then(|| Box::new(Clients::new(clients, seed, workload.requests_max)));
        let whole_pages = workload.whole_pages;
        Self { due, clients, whole_pages, ..Self::new(source, workload.arrival, workload.beyond) }
    }

    /// With `whole_pages` the runner widens every read, write and TRIM to whole pages (the key
    /// `workload.whole_pages`).
    #[must_use]
    pub fn widened(self, whole_pages: bool) -> Self {
        Self { whole_pages, ..self }
    }

    /// The source.
    pub fn source(&self) -> &S {
        &self.source
    }

    /// Number of requests that have been taken out of the source so far.
    pub fn fetched(&self) -> u64 {
        self.fetched
    }

    /// Number of requests that have completed so far, failed ones included.
    pub fn completed(&self) -> u64 {
        self.completed
    }

    /// What each client has submitted, and what waited at it; empty without clients.
    pub fn waits(&self) -> Vec<Waits> {
        self.clients.as_ref().map_or(Vec::new(), |clients| clients.waits().collect())
    }

    /// The share of the run's time that has passed at `now`; `None` if requests, and not only times, end the run.
    pub fn share_of_time(&self, now: Time) -> Option<f64> {
        let end = self.clients.as_ref()?.end()?;
        Some((now.seconds() / end.seconds()).min(1.0))
    }

    /// Progress of the run.
    pub fn progress<P: Probe>(&self, drive: &Drive<P>) -> Progress {
        let has_ended = match &self.clients {
            Some(clients) => clients.has_begun && clients.is_waiting() && clients.completed.is_empty(),
            None => self.has_ended && self.ahead.is_empty(),
        };
        Progress {
            is_done: has_ended && !self.has_failed && drive.outstanding() == 0,
            completed: self.completed,
        }
    }

    /// Plays until at least `requests` more requests have been completed, or the run is done. Calls `on_completed` for
    /// each completion.
    ///
    /// # Errors
    /// When the source or the drive fails, a request arrives too late, or the drive refuses a request. Requests
    /// submitted before the error are not withdrawn.
    pub fn run<P: Probe>(
        &mut self,
        drive: &mut Drive<P>,
        requests: u64,
        mut on_completed: impl FnMut(&crate::drive::Completion),
    ) -> Result<Progress, Stopped<S::Error>> {
        let until = self.completed.saturating_add(requests);
        if self.clients.is_some() {
            return self.run_clients(drive, until, on_completed);
        }
        while self.completed < until {
            let has_next = self.fetch(drive)?;
            match self.due.arrival {
                Arrival::QueueDepth(depth) if has_next && drive.outstanding() < depth => {
                    let mut request = self.ahead.pop_front().expect("a request has been fetched");
                    request.arrival = drive.now();
                    self.submit(drive, request)?;
                }
                Arrival::Trace { .. } | Arrival::Iops(_) | Arrival::Poisson(_) | Arrival::Bursts { .. }
                    if has_next =>
                {
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
                    // The run ends with the completion of its last request. Background work in the idle time after the
                    // completion is not part of the run; a power loss that the last request triggers is.
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

    /// As [`Runner::run`], for the clients of a workload, until `until` requests have been completed in all.
    fn run_clients<P: Probe>(
        &mut self,
        drive: &mut Drive<P>,
        until: u64,
        mut on_completed: impl FnMut(&crate::drive::Completion),
    ) -> Result<Progress, Stopped<S::Error>> {
        if !std::mem::replace(&mut self.clients_mut().has_begun, true) {
            for number in 0..self.clients_mut().list.len() {
                self.arm(drive, number as u16)?;
            }
        }
        // Completions while the drive came to rest.
        self.tell_clients(drive)?;
        while self.completed < until {
            let shift = self.delay_ns + drive.down_time();
            if self.clients_mut().is_waiting() {
                // As in `run`: what happens after the last completion is not part of the run.
                if drive.outstanding() == 0 && drive.is_power_failing() {
                    drive.advance(drive.now());
                }
                if drive.outstanding() == 0 || !drive.advance_to_completion(Time::NEVER) {
                    break;
                }
            } else if let Some(number) = self.clients_mut().pop_ready() {
                self.submit_of(drive, number)?;
            } else if let Some(time) = self.clients_mut().next_time() {
                // The time has passed if the drive has lost power; the client then submits at once.
                let at = time.saturating_add(shift).max(drive.now());
                if at == drive.now() || !drive.advance_to_completion(at) {
                    // No completion comes before this time. What recurs, such as a refresh, may come.
                    drive.advance(at);
                    if let Some(failure) = drive.failure() {
                        return Err(Stopped::Failed(failure.clone()));
                    }
                    if self.delay_ns + drive.down_time() == shift {
                        let number = self.clients_mut().pop_timed();
                        self.submit_of(drive, number)?;
                    }
                }
            }
            self.take_completions(drive, None, &mut on_completed);
            self.tell_clients(drive)?;
        }
        match drive.failure() {
            Some(failure) => Err(Stopped::Failed(failure.clone())),
            None => Ok(self.progress(drive)),
        }
    }

    fn clients_mut(&mut self) -> &mut Clients {
        self.clients.as_mut().expect("the workload has clients")
    }

    /// Takes the completions of the drive. `at` is the time of the hosts' clock at which all of them count; `None`: the
    /// clock runs on.
    fn take_completions<P: Probe>(
        &mut self,
        drive: &mut Drive<P>,
        at: Option<Time>,
        on_completed: &mut impl FnMut(&crate::drive::Completion),
    ) {
        let shift = self.delay_ns + drive.down_time();
        let now = drive.now();
        for completion in drive.completions() {
            self.completed += 1;
            on_completed(&completion);
            if let Some(clients) = &mut self.clients {
                // The clock of the hosts has stood still since a power loss.
                let is_lost = completion.failed == Some(FailReason::PowerLost);
                let completed = if is_lost { now } else { completion.completed };
                let at = at.unwrap_or(completed.earlier_by(shift));
                clients.completed.push((completion.request.tag.queue, at));
            }
        }
    }

    /// Tells the clients of their completions.
    fn tell_clients<P: Probe>(&mut self, drive: &Drive<P>) -> Result<(), Stopped<S::Error>> {
        for i in 0..self.clients_mut().completed.len() {
            let clients = self.clients_mut();
            let (number, at) = clients.completed[i];
            clients.on_completed(number, at);
            self.arm(drive, number)?;
        }
        self.clients_mut().completed.clear();
        Ok(())
    }

    /// The client submits its next request.
    fn submit_of<P: Probe>(&mut self, drive: &mut Drive<P>, number: u16) -> Result<(), Stopped<S::Error>> {
        let now = drive.now().earlier_by(self.delay_ns + drive.down_time());
        let (drive_now, counts) = (drive.now(), !drive.is_warming_up());
        if let Some(request) = self.clients_mut().submit(number, now, drive_now, counts) {
            self.submit(drive, request)?;
        }
        self.arm(drive, number)
    }

    /// Reads requests of the client ahead, and notes when it submits the next one.
    fn arm<P: Probe>(&mut self, drive: &Drive<P>, number: u16) -> Result<(), Stopped<S::Error>> {
        let index = usize::from(number);
        let end = drive.end();
        loop {
            let client = &self.clients_mut().list[index];
            if client.has_ended || client.ahead.len() == AHEAD {
                break;
            }
            match self.source.next_of(index) {
                None => self.clients_mut().list[index].has_ended = true,
                Some(Err(error)) => {
                    self.has_failed = true;
                    return Err(Stopped::Source(error));
                }
                Some(Ok(mut request)) => {
                    self.fetched += 1;
                    self.prepare(drive, &mut request);
                    drive.prefetch(&request, false);
                    self.clients_mut().list[index].take(request, end);
                }
            }
        }
        let client = &self.clients_mut().list[index];
        if let (true, Some(number)) = (client.ahead.is_empty(), client.too_late) {
            return Err(Stopped::TooLate { number, end });
        }
        if let Some(soon) = client.ahead.get(AHEAD / 2) {
            drive.prefetch(soon, true);
        }
        let now = drive.now().earlier_by(self.delay_ns + drive.down_time());
        self.clients_mut().arm(number, now);
        Ok(())
    }

    /// Lets the drive come to rest, for `limit` of simulated time at most: submits no requests until all operations
    /// under way have ended. All later arrivals are delayed by the time that this takes. Returns whether the drive is
    /// at rest.
    pub fn rest<P: Probe>(
        &mut self,
        drive: &mut Drive<P>,
        limit: Span,
        mut on_completed: impl FnMut(&crate::drive::Completion),
    ) -> bool {
        let (began, down_ns) = (drive.now(), drive.down_time());
        // The clock of the hosts stands still.
        let on_hosts = began.earlier_by(self.delay_ns + down_ns);
        while !drive.is_at_rest() && drive.advance_by_event(began + limit) {
            self.take_completions(drive, Some(on_hosts), &mut on_completed);
        }
        // `run` delays arrivals by outages, so an outage during the rest is subtracted here.
        self.delay_ns += drive.now() - began - (drive.down_time() - down_ns);
        drive.is_at_rest()
    }

    /// Takes the next request out of the source without submitting it. Clients come one after another, each with its number
    /// as the queue of its requests.
    pub(crate) fn take<P: Probe>(&mut self, drive: &Drive<P>) -> Result<Option<Request>, Stopped<S::Error>> {
        if let Some(mut clients) = self.clients.take() {
            let taken = clients.take_next(|client| self.source.next_of(client));
            self.clients = Some(clients);
            let mut request = taken.transpose().map_err(Stopped::Source)?;
            request.iter_mut().for_each(|request| self.prepare(drive, request));
            return Ok(request);
        }
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
                    let arrival = self.due.next(request.arrival);
                    let Some(arrival) = arrival.filter(|&at| at <= drive.end()) else {
                        self.fail(Stopped::TooLate { number: self.fetched + 1, end: drive.end() });
                        break;
                    };
                    request.arrival = arrival;
                    self.fetched += 1;
                    self.prepare(drive, &mut request);
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

    /// Gives a request the address and length with which the drive is to get it.
    #[inline]
    fn prepare<P: Probe>(&mut self, drive: &Drive<P>, request: &mut Request) {
        if request.op != Op::Flush {
            let geometry = drive.geometry();
            if self.beyond == Beyond::Wrap {
                self.wrap(request, geometry.logical_bytes());
            }
            if self.whole_pages {
                widen(request, geometry.page_bytes().into(), geometry.logical_bytes());
            }
        }
    }

    /// Ends the source with the error `why`: only the requests read ahead are still played.
    #[cold]
    fn fail(&mut self, why: Stopped<S::Error>) {
        self.failed = Some(why);
        (self.has_failed, self.has_ended) = (true, true);
    }

    /// Takes the address of a request that ends beyond the capacity modulo the capacity. If the request still ends
    /// beyond the capacity, moves it back so that it ends at the capacity.
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

/// Widens a request to whole pages. A request that the drive refuses, because it has no bytes or ends beyond the
/// capacity, is left as it is. The capacity is a number of whole units, so it may end within a page; a widened request
/// then ends with the capacity.
fn widen(request: &mut Request, page_bytes: u64, capacity: u64) {
    let end = request.offset.saturating_add(request.len);
    if request.len > 0 && end <= capacity {
        request.offset -= request.offset % page_bytes;
        request.len = end.next_multiple_of(page_bytes).min(capacity) - request.offset;
    }
}
