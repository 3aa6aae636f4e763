//! The host's requests as they are counted: counters and latencies, the window of the series, the rounds of the steady state.

use super::{Count, Counters, FailReason, Latency, Op, Request, Rounds};
use crate::base::geometry::Geometry;
use crate::base::units::{Span, Time};
use crate::core::Operations;
use crate::sched::FlashOp;

/// Requests completed since this was last asked, and those outstanding meanwhile.
#[derive(Clone, Debug, Default)]
pub(crate) struct Window {
    /// By operation: requests, their bytes, their latencies' sum in nanoseconds and the longest.
    pub(crate) requests: [u64; 4],
    /// See `requests`.
    pub(crate) bytes: [u64; 4],
    /// See `requests`.
    pub(crate) latency_ns: [u128; 4],
    /// See `requests`.
    pub(crate) latency_ns_max: [Span; 4],
    /// Outstanding requests, integrated over time.
    pub(crate) outstanding_ns: u128,
}

/// See the module.
#[derive(Debug)]
pub(crate) struct Record {
    pub(crate) counters: Counters,
    /// Requests that failed, by [`FailReason`]; they are in no latency and in no bytes of the host's.
    pub(crate) failed: [u64; FailReason::ALL.len()],
    /// Latency and bytes by operation.
    pub(crate) latency: [Latency; 4],
    /// For the steady-state verdict.
    pub(crate) rounds: Rounds,
    window: Window,
    outstanding: u32,
    outstanding_since: Time,
}

impl Record {
    pub(crate) fn new(geometry: &Geometry) -> Self {
        Self {
            counters: Counters::default(),
            failed: [0; FailReason::ALL.len()],
            latency: std::array::from_fn(|_| Latency::new()),
            rounds: Rounds::new(geometry),
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

    /// A request has been completed.
    #[inline]
    pub(crate) fn on_completed(&mut self, now: Time, request: &Request, failed: Option<FailReason>) {
        self.count_outstanding(now);
        self.outstanding -= 1;
        if let Some(reason) = failed {
            self.failed[reason as usize] += 1;
            return;
        }
        let (ns, op) = (now - request.arrival, request.op as usize);
        self.latency[op].record(ns.ns(), request.len);
        let window = &mut self.window;
        window.requests[op] += 1;
        window.bytes[op] += request.len;
        window.latency_ns[op] += u128::from(ns.ns());
        window.latency_ns_max[op] = window.latency_ns_max[op].max(ns);
    }

    /// A write of so many pages has been done.
    #[inline]
    pub(crate) fn on_written(&mut self, now: Time, pages: u32, operations: &Operations) {
        self.counters.host_pages_written += u64::from(pages);
        if self.rounds.may_end(operations.host_pages()) {
            self.rounds.end(self.count(now, operations));
        }
    }

    /// What has been counted by now, for the steady-state verdict.
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

    /// So many requests have ended with the power.
    pub(crate) fn on_aborted(&mut self, now: Time, requests: u32) {
        self.count_outstanding(now);
        self.outstanding -= requests;
        self.failed[FailReason::PowerLost as usize] += u64::from(requests);
    }

    /// What there has been until `end`, since this was last asked.
    pub(crate) fn take_window(&mut self, end: Time) -> Window {
        self.count_outstanding(end.max(self.outstanding_since));
        std::mem::take(&mut self.window)
    }

    /// The last moment that the window counts.
    pub(crate) fn counted_until(&self) -> Time {
        self.outstanding_since
    }
}
