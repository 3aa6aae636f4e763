//! The link between host and drive (`host.link`): in each direction a bandwidth, and a latency one way.
//!
//! To the drive the data of writes crosses one request after another, in the order of submission: it starts when the data
//! before it has crossed, takes its bytes by the bandwidth, rounded up once a request, and the request arrives `latency` after
//! its last byte. TRIMs and flushes have no data and are sent when the data before them has crossed, so that they overtake no
//! write. Reads have no data to the drive and arrive `latency` after their submission. To the host the data of reads crosses
//! likewise, in the order in which the drive has done them; completions without data, those of failed reads among them, arrive
//! `latency` after the drive has done the request. The two directions do not hinder each other. What arrives at the same time
//! arrives in the order in which it was sent.

use super::spec::LinkSpec;
use super::{Host, Op};
use crate::base::geometry::RequestId;
use crate::base::units::{Span, Time, transfer_ns};
use crate::core::Core;
use crate::probe::Probe;
use crate::sched::NEVER;
use std::collections::VecDeque;

/// The latest arrival: beyond the end of simulated time, which ends a drive that gets there.
const LATEST: Time = Time::from_ns(NEVER.ns() - 1);

/// One direction of the link now.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LinkDirection {
    /// Requests that have not arrived.
    pub requests: u32,
    /// How long data has crossed so far.
    pub busy: Span,
}

/// The link between host and drive now.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LinkState {
    /// Requests, and the data of writes.
    pub to_drive: LinkDirection,
    /// Completions, and the data of reads.
    pub to_host: LinkDirection,
}

/// An end of the link.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum To {
    Drive,
    Host,
}

/// How a request goes over the link.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Goes {
    /// So many bytes, after the data before them.
    InLine(u64),
    /// Without data, and past it.
    Past,
}

/// A request that has been sent.
#[derive(Clone, Copy, Debug)]
struct Crossing {
    arrives: Time,
    /// What was sent before it.
    number: u64,
    request: RequestId,
}

/// The data of one direction.
#[derive(Debug, Default)]
struct Line {
    /// When all data sent so far has crossed.
    free: Time,
    /// How long all data sent so far takes.
    busy: Span,
}

impl Line {
    /// How long data has crossed by now. From now until the line is free there is always some.
    fn busy(&self, now: Time) -> Span {
        self.busy - self.free.saturating_sub(now)
    }
}

/// See the module.
#[derive(Debug)]
pub(crate) struct Link {
    ns_per_byte: f64,
    latency: Span,
    /// By direction.
    lines: [Line; 2],
    /// By direction, what goes in line and what goes past; arrivals ascend.
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

    /// Power fails: nothing on the link arrives.
    pub(crate) fn clear(&mut self, now: Time) {
        for line in &mut self.lines {
            *line = Line { free: Time::START, busy: line.busy(now) };
        }
        self.crossing.iter_mut().for_each(VecDeque::clear);
    }

    pub(crate) fn state(&self, now: Time) -> LinkState {
        let direction = |to: To| LinkDirection {
            requests: (self.crossing[2 * to as usize].len() + self.crossing[2 * to as usize + 1].len())
                as u32,
            busy: self.lines[to as usize].busy(now),
        };
        LinkState { to_drive: direction(To::Drive), to_host: direction(To::Host) }
    }

    fn send<P: Probe>(&mut self, core: &mut Core<P>, to: To, goes: Goes, request: RequestId) {
        let line = &mut self.lines[to as usize];
        let (queue, leaves) = match goes {
            Goes::InLine(bytes) => {
                let start = line.free.max(core.now);
                line.free = start.saturating_add(transfer_ns(bytes, self.ns_per_byte)).min(LATEST);
                line.busy += line.free - start;
                (2 * to as usize, line.free)
            }
            Goes::Past => (2 * to as usize + 1, core.now),
        };
        let arrives = leaves.saturating_add(self.latency).min(LATEST);
        self.crossing[queue].push_back(Crossing { arrives, number: self.sent, request });
        self.sent += 1;
        if arrives < core.agenda.time(core.link_clock()) {
            core.set_clock(core.link_clock(), arrives);
        }
    }

    /// The queue that the next arrival is in, and when that is.
    fn next(&self) -> Option<(usize, Time)> {
        let first = |(queue, crossing): (usize, &VecDeque<Crossing>)| {
            crossing.front().map(|first| ((first.arrives, first.number), queue))
        };
        let ((arrives, _), queue) = self.crossing.iter().enumerate().filter_map(first).min()?;
        Some((queue, arrives))
    }

    /// Takes the next arrival off the link.
    pub(crate) fn receive<P: Probe>(&mut self, core: &mut Core<P>) -> (To, RequestId) {
        let (queue, _) = self.next().expect("the link's clock is set for an arrival");
        let Crossing { request, .. } = self.crossing[queue].pop_front().expect("the queue has a first one");
        let next = self.next().map_or(NEVER, |(_, arrives)| arrives);
        core.set_clock(core.link_clock(), next);
        (if queue < 2 { To::Drive } else { To::Host }, request)
    }
}

impl Host {
    /// Sends a request to the drive.
    pub(crate) fn send_to_drive<P: Probe>(&mut self, core: &mut Core<P>, id: RequestId) {
        let request = self.requests.request(id);
        let goes = match request.op {
            Op::Read => Goes::Past,
            Op::Write => Goes::InLine(request.len),
            Op::Trim | Op::Flush => Goes::InLine(0),
        };
        self.link.as_mut().expect("there is a link").send(core, To::Drive, goes, id);
    }

    /// Sends a completion to the host, with the data of a read.
    pub(crate) fn send_to_host<P: Probe>(&mut self, core: &mut Core<P>, id: RequestId) {
        let work = self.requests.get(id);
        // It is in work until the host has it.
        work.pages_left = 1;
        let goes = match (work.request.op, work.failed) {
            (Op::Read, None) => Goes::InLine(work.request.len),
            _ => Goes::Past,
        };
        self.link.as_mut().expect("there is a link").send(core, To::Host, goes, id);
    }
}
