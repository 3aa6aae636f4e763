//! The link between host and drive (`host.link`): a bandwidth in each direction, and a latency one way.
//!
//! To the drive, the data of writes crosses one request after another, in the order of submission. The data of a write
//! starts when the data before it has crossed, and takes its bytes divided by the bandwidth, rounded up once per
//! request. The write arrives `latency` after its last byte. TRIMs and flushes have no data. They are sent when the
//! data before them has crossed, so they overtake no write. Reads have no data in this direction and arrive `latency`
//! after their submission. To the host, the data of reads crosses in the same way, in the order in which the drive has
//! completed the reads. Completions without data, including those of failed reads, arrive `latency` after the drive has
//! completed the request. The two directions are independent. Requests that arrive at the same time arrive in the order
//! in which they were sent.
//!
//! A request has its slot and its id from submission on. Flush epochs, the map and the oracle see it only once it has
//! reached the drive (`Drive::begin`), so at a power loss a request on its way to the drive has changed nothing.
//! `Host::complete` sends the completion; `Host::report` is its arrival at the host. The twin in the tests is a drive
//! without a link, placed between two queues.

use super::spec::LinkSpec;
use super::{Host, Op};
use crate::base::geometry::RequestId;
use crate::base::state::{state, value};
use crate::base::units::{Span, Time, transfer_ns};
use crate::core::Core;
use crate::probe::Probe;
use crate::sched::NEVER;
use std::collections::VecDeque;

/// The present state of one direction of the link.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LinkDirection {
    /// Number of requests, or of completions to the host, that have been sent in this direction and have not arrived.
    pub requests: u32,
    /// Time so far during which data has crossed in this direction.
    pub busy: Span,
}

/// The present state of the link between host and drive.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LinkState {
    /// The direction of requests and of the data of writes.
    pub to_drive: LinkDirection,
    /// The direction of completions and of the data of reads.
    pub to_host: LinkDirection,
}

/// The end of the link to which a request or completion is sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum LinkEnd {
    Drive,
    Host,
}

/// The way of a request over the link.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Route {
    /// After the data that was sent before, with this many bytes.
    InOrder(u64),
    /// Past the data that was sent before, without data.
    Bypass,
}

/// A request, or its completion, on the link.
#[derive(Clone, Copy, Debug)]
struct Crossing {
    arrives: Time,
    /// The number of requests and completions sent before this one, in both directions.
    number: u64,
    request: RequestId,
}

/// The use of the link's bandwidth in one direction.
#[derive(Debug, Default)]
struct Line {
    /// The time at which all data sent so far will have crossed.
    free: Time,
    /// The time that all data sent so far takes to cross.
    busy: Span,
}

impl Line {
    /// Time until `now` during which data has crossed. From `now` until the line is free, data crosses without a break.
    fn busy(&self, now: Time) -> Span {
        self.busy - self.free.saturating_sub(now)
    }
}

/// The link between host and drive.
#[derive(Debug)]
pub(crate) struct Link {
    ns_per_byte: f64,
    latency: Span,
    /// The line of each direction.
    lines: [Line; 2],
    /// For each direction two queues: the requests in order with the data, and the requests that pass the data. In each
    /// queue the arrival times ascend.
    crossing: [VecDeque<Crossing>; 4],
    sent: u64,
}

impl Link {
    pub(crate) fn new(spec: &LinkSpec) -> Self {
        Self {
            ns_per_byte: 1e9 / spec.bytes_per_s,
            latency: spec.latency_ns,
            lines: Default::default(),
            crossing: Default::default(),
            sent: 0,
        }
    }

    /// Drops all requests on the link at power loss.
    pub(crate) fn clear(&mut self, now: Time) {
        for line in &mut self.lines {
            *line = Line { free: Time::START, busy: line.busy(now) };
        }
        self.crossing.iter_mut().for_each(VecDeque::clear);
    }

    pub(crate) fn state(&self, now: Time) -> LinkState {
        let direction = |to: LinkEnd| LinkDirection {
            requests: (self.crossing[2 * to as usize].len() + self.crossing[2 * to as usize + 1].len())
                as u32,
            busy: self.lines[to as usize].busy(now),
        };
        LinkState { to_drive: direction(LinkEnd::Drive), to_host: direction(LinkEnd::Host) }
    }

    fn send<P: Probe>(&mut self, core: &mut Core<P>, to: LinkEnd, route: Route, request: RequestId) {
        let line = &mut self.lines[to as usize];
        let (queue, leaves) = match route {
            Route::InOrder(bytes) => {
                let start = line.free.max(core.now());
                line.free = start.saturating_add(transfer_ns(bytes, self.ns_per_byte)).min(Host::LATEST);
                line.busy += line.free - start;
                (2 * to as usize, line.free)
            }
            Route::Bypass => (2 * to as usize + 1, core.now()),
        };
        let arrives = leaves.saturating_add(self.latency).min(Host::LATEST);
        self.crossing[queue].push_back(Crossing { arrives, number: self.sent, request });
        self.sent += 1;
        if arrives < core.clock(core.link_clock()) {
            core.set_clock(core.link_clock(), arrives);
        }
    }

    /// The queue of the next arrival, and the time of the arrival.
    fn next(&self) -> Option<(usize, Time)> {
        let first = |(queue, crossing): (usize, &VecDeque<Crossing>)| {
            crossing.front().map(|first| ((first.arrives, first.number), queue))
        };
        let ((arrives, _), queue) = self.crossing.iter().enumerate().filter_map(first).min()?;
        Some((queue, arrives))
    }

    /// Removes and returns the next arrival: the end of the link where it arrives, and the request.
    pub(crate) fn receive<P: Probe>(&mut self, core: &mut Core<P>) -> (LinkEnd, RequestId) {
        let (queue, _) = self.next().expect("the link's clock is set for an arrival");
        let Crossing { request, .. } =
            self.crossing[queue].pop_front().expect("the queue of an arrival is not empty");
        let next = self.next().map_or(NEVER, |(_, arrives)| arrives);
        core.set_clock(core.link_clock(), next);
        (if queue < 2 { LinkEnd::Drive } else { LinkEnd::Host }, request)
    }
}

impl Host {
    /// Sends a request to the drive.
    pub(crate) fn send_to_drive<P: Probe>(&mut self, core: &mut Core<P>, id: RequestId) {
        let request = self.requests.request(id);
        let route = match request.op {
            Op::Read => Route::Bypass,
            Op::Write => Route::InOrder(request.len),
            Op::Trim | Op::Flush => Route::InOrder(0),
        };
        self.link.as_mut().expect("the drive has a link").send(core, LinkEnd::Drive, route, id);
    }

    /// Sends a completion to the host, with the data of a read.
    pub(crate) fn send_to_host<P: Probe>(&mut self, core: &mut Core<P>, id: RequestId) {
        let work = self.requests.get(id);
        // The request is under way until the host has its completion.
        work.units_left = 1;
        let route = match (work.request.op, work.failed) {
            (Op::Read, None) => Route::InOrder(work.request.len),
            _ => Route::Bypass,
        };
        self.link.as_mut().expect("the drive has a link").send(core, LinkEnd::Host, route, id);
    }
}

value! { LinkDirection { requests, busy } }
value! { LinkState { to_drive, to_host } }
value! { Crossing { arrives, number, request } }
value! { Line { free, busy } }
state! { Link { lines, crossing, sent } fixed { ns_per_byte, latency } }
