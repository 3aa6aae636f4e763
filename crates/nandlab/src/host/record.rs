//! The statistics of the host's requests: counters, latencies, the present window of the series, and the rounds of the
//! steady-state test.

use super::{ByTag, Count, Counters, FailReason, Latency, Op, Request, Rounds, Tag};
use crate::base::state::{state, value};
use crate::base::units::{Span, Time};
use crate::core::Operations;
use crate::sched::FlashOp;

/// Statistics of the time since the last window was taken. Failed requests count only in `outstanding_ns`.
#[derive(Clone, Debug, Default)]
pub(crate) struct Window {
    /// Number of completed requests by operation.
    pub(crate) requests: [u64; 4],
    /// Bytes of completed requests by operation.
    pub(crate) bytes: [u64; 4],
    /// Sum of the latencies of completed requests by operation, in nanoseconds.
    pub(crate) latency_ns: [u128; 4],
    /// The longest latency of a completed request by operation.
    pub(crate) latency_ns_max: [Span; 4],
    /// Number of outstanding requests, integrated over time in nanoseconds.
    pub(crate) outstanding_ns: u128,
}

/// The statistics of the host's requests.
#[derive(Debug)]
pub(crate) struct Record {
    pub(crate) counters: Counters,
    /// Number of failed requests by [`FailReason`]. Failed requests count neither in latencies nor in bytes.
    pub(crate) failed: [u64; FailReason::ALL.len()],
    /// Latencies and bytes by operation.
    pub(crate) latency: [Latency; 4],
    /// The same by tag; `None` while all requests have had the tag 0.
    pub(crate) by_tag: Option<Box<ByTag>>,
    /// The rounds of the steady-state test.
    pub(crate) rounds: Rounds,
    window: Window,
    outstanding: u32,
    outstanding_since: Time,
}

impl Record {
    pub(crate) fn new(rounds: Rounds) -> Self {
        Self {
            counters: Counters::default(),
            failed: [0; FailReason::ALL.len()],
            latency: std::array::from_fn(|_| Latency::new()),
            by_tag: None,
            rounds,
            window: Window::default(),
            outstanding: 0,
            outstanding_since: Time::START,
        }
    }

    #[inline]
    fn count_outstanding(&mut self, now: Time) {
        self.window.outstanding_ns +=
            u128::from(self.outstanding) * u128::from((now - self.outstanding_since).ns());
        self.outstanding_since = now;
    }

    /// A request has been submitted.
    #[inline]
    pub(crate) fn on_submitted(&mut self, now: Time) {
        self.count_outstanding(now);
        self.outstanding += 1;
    }

    /// A request has completed.
    #[inline(always)]
    pub(crate) fn on_completed(&mut self, now: Time, request: &Request, failed: Option<FailReason>) {
        self.count_outstanding(now);
        self.outstanding -= 1;
        if let Some(reason) = failed {
            self.failed[reason as usize] += 1;
            return;
        }
        let (ns, op) = (now - request.arrival, request.op as usize);
        if request.tag != Tag::default() || self.by_tag.is_some() {
            self.count_tag(ns, request);
        }
        self.latency[op].record(ns.ns(), request.len);
        let window = &mut self.window;
        window.requests[op] += 1;
        window.bytes[op] += request.len;
        window.latency_ns[op] += u128::from(ns.ns());
        window.latency_ns_max[op] = window.latency_ns_max[op].max(ns);
    }

    #[cold]
    fn count_tag(&mut self, ns: Span, request: &Request) {
        let by_tag = self.by_tag.get_or_insert_with(|| Box::new(ByTag::after(&self.latency)));
        by_tag.record(ns, request);
    }

    /// A write of `units` units has completed without failure.
    #[inline]
    pub(crate) fn on_written(&mut self, now: Time, units: u32, operations: &Operations) {
        self.counters.host_pages_written += u64::from(units);
        if self.rounds.may_end(operations.host_pages()) {
            self.rounds.end(self.count(now, operations));
        }
    }

    /// The counts at `now` for the steady-state test.
    pub(crate) fn count(&self, now: Time, operations: &Operations) -> Count {
        let [read, written] = [Op::Read, Op::Write].map(|op| self.latency[op as usize].bytes);
        Count {
            time: now,
            host_pages: operations.host_pages(),
            pages: operations.programmed(),
            erases: operations.total(FlashOp::Erase),
            written,
            moved: read + written,
        }
    }

    /// Forgets all requests that have ended. Outstanding requests are counted when they end.
    pub(crate) fn begin_again(&mut self, now: Time, operations: &Operations) {
        self.count_outstanding(now);
        self.window = Window::default();
        (self.counters, self.failed) = (Counters::default(), [0; FailReason::ALL.len()]);
        self.latency.iter_mut().for_each(Latency::clear);
        self.by_tag = None;
        self.rounds = self.rounds.beginning_at(self.count(now, operations));
    }

    /// Forgets the work on requests, except for what is counted when a request ends
    /// ([`Counters::host_pages_written`]).
    pub(crate) fn begin_work_again(&mut self) {
        self.counters =
            Counters { host_pages_written: self.counters.host_pages_written, ..Counters::default() };
    }

    /// Power loss has ended `requests` outstanding requests.
    pub(crate) fn on_aborted(&mut self, now: Time, requests: u32) {
        self.count_outstanding(now);
        self.outstanding -= requests;
        self.failed[FailReason::PowerLost as usize] += u64::from(requests);
    }

    /// Ends the window at `end` and returns it; a new window begins.
    pub(crate) fn take_window(&mut self, end: Time) -> Window {
        self.count_outstanding(end.max(self.outstanding_since));
        std::mem::take(&mut self.window)
    }

    /// The time up to which the outstanding requests have been integrated.
    pub(crate) fn counted_until(&self) -> Time {
        self.outstanding_since
    }
}

value! { Window { requests, bytes, latency_ns, latency_ns_max, outstanding_ns } }
state! { Record { counters, failed, latency, by_tag, rounds, window, outstanding, outstanding_since } }
