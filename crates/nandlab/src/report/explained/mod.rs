//! What each request waited for.
//!
//! The observer follows a request back from the event that ended it: to the operation whose end that event was, from
//! there to the event at which the operation was queued, and so on to the time at which the drive began the request. This
//! is the critical path of the request. Each stretch of the path belongs to one part ([`Part`]), so the parts of a
//! request sum to its latency, to the nanosecond:
//!
//! | stretch | part |
//! |---|---|
//! | from arrival to the beginning in the drive, and from the end there to the host | `link`, `controller` |
//! | an operation waits in its queue | what held the die meanwhile: an operation by kind and cause, other units of the same request, a suspension, or nothing (`kept`) |
//! | an operation for the host or for the write cache is under way | its phases (`transfer`, `sense`, ...), its waits for the channel (`bus`) and for a decoder, and what suspended it; further tries of a read are `retry` |
//! | an operation for another cause is under way, such as the read of a translation page or the erase that makes room | the operation, by kind and cause |
//! | an operation was queued, or the request ended, at the beginning of another request, or because a time had come | `gather`, `timer` |
//!
//! A program that the write buffer or the write cache has taken over counts as `program_host` or `program_sync`, since
//! it is not known to which requests its data belongs; the same holds for the program whose end makes room there.
//!
//! Operations and the times for which they held a die are in two rings of fixed length. What a ring has no more is
//! `other`. The requests that took longest keep their path, by stretches ([`Step`]). Of the others only the sums count,
//! so most of them are not followed: the path is one operation ([`quick`]), and what it waited for is the difference of
//! two sums ([`log::Held`]).

mod log;
mod part;
mod path;
mod quick;
#[cfg(test)]
mod tests;

pub use part::{Own, PARTS, Part, Parts};

use crate::base::geometry::{DieId, RequestId};
use crate::base::request::{Completion, Op, Request};
use crate::base::units::Time;
use crate::probe::Probe;
use crate::sched::{Owner, Phase, Transaction, Watcher};
use log::{Held, Log, Trigger};
use path::Path;
use serde_json::{Value, json};
use std::cmp::Reverse;
use std::collections::{BinaryHeap, VecDeque};

/// The most steps that are kept of a request, the last ones; what is before them is one step more.
const STEPS_MAX: usize = 64;

/// The number of no request.
const NOBODY: u64 = u64::MAX;

/// A request in the drive.
#[derive(Clone, Debug)]
struct Outstanding {
    id: u64,
    arrival: u64,
    reached: u64,
    begun: u64,
    done: u64,
    /// Number of its operations queued so far, each try of a read counted.
    operations: u32,
    /// The number of each part with its time, while its completion is on the link.
    parts: Vec<(u8, u64)>,
    /// Whether `crossing` has the steps of the request.
    has_steps: bool,
}

impl Default for Outstanding {
    /// No request.
    fn default() -> Self {
        let (arrival, reached, begun, done, operations) = Default::default();
        Self { id: NOBODY, arrival, reached, begun, done, operations, parts: Vec::new(), has_steps: false }
    }
}

/// A stretch of the path of a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Step {
    /// From the arrival of the request, in nanoseconds.
    pub from_ns: u64,
    /// From the arrival of the request, in nanoseconds.
    pub to_ns: u64,
    /// What the request waited for; `None` for the stretch before those that are kept.
    pub part: Option<Part>,
    /// The die, if an operation on a die is concerned.
    pub die: Option<u32>,
    /// The LPN of the operation's data; for an erase 0.
    pub lpn: Option<u32>,
}

/// An explained request.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Explained {
    /// The number of the request.
    pub id: u64,
    /// The request.
    pub request: Request,
    /// Its latency in nanoseconds.
    pub latency_ns: u64,
    /// Its parts, whose sum is the latency.
    pub parts: Parts,
    /// The stretches of its path, in order of time.
    pub steps: Vec<Step>,
}

impl PartialOrd for Explained {
    fn partial_cmp(&self, other: &Self) -> Option<std::cmp::Ordering> {
        Some(self.cmp(other))
    }
}

/// The slower request is greater, of two equal ones the earlier one.
impl Ord for Explained {
    fn cmp(&self, other: &Self) -> std::cmp::Ordering {
        (self.latency_ns, Reverse(self.id)).cmp(&(other.latency_ns, Reverse(other.id)))
    }
}

impl Explained {
    /// The request as JSON.
    pub fn to_json(&self) -> Value {
        let steps = self.steps.iter().map(|step| {
            json!({
                "from_ns": step.from_ns,
                "to_ns": step.to_ns,
                "part": step.part.map(Part::name),
                "die": step.die,
                "lpn": step.lpn,
            })
        });
        json!({
            "request": self.id,
            "op": self.request.op.name(),
            "offset": self.request.offset,
            "length": self.request.len,
            "arrival_ns": self.request.arrival.ns(),
            "latency_ns": self.latency_ns,
            "parts_ns": self.parts.to_json(),
            "steps": steps.collect::<Vec<_>>(),
        })
    }
}

/// The requests of one kind that completed without failure.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Sums {
    /// Number of requests.
    pub requests: u64,
    /// Sum of the latencies in nanoseconds.
    pub latency_ns: u64,
    /// The sum by part.
    pub parts: Parts,
}

/// The sums over requests; what `held` has is not in `sums` yet.
#[derive(Clone, Copy, Debug, Default)]
struct Total {
    sums: Sums,
    held: Held,
}

/// The request that the drive has done last, until its path is followed.
#[derive(Clone, Copy, Debug)]
struct Last {
    /// Its slot; [`Last::NOBODY`] for none.
    slot: u32,
    /// Whether it is among the slowest already.
    is_slow: bool,
    /// The event at which the drive did it.
    trigger: Trigger,
}

impl Last {
    /// The slot of no request.
    const NOBODY: u32 = u32::MAX;
    const NONE: Self = Self { slot: Self::NOBODY, is_slow: false, trigger: Trigger::UNKNOWN };
}

/// Records what each request waited for.
#[derive(Debug)]
pub struct Explainer {
    /// The number of requests that keep their path.
    slowest_max: usize,
    slowest: BinaryHeap<Reverse<Explained>>,
    /// The least latency with which a request is among the slowest so far.
    slow_from: u64,
    totals: [Total; 4],
    log: Log,
    /// A request is followed when it completes, or before when the drive has done another one.
    last: Last,
    path: Path,
    slots: Vec<Outstanding>,
    /// The numbers of the accesses to DRAM under way.
    accesses: VecDeque<u64>,
    /// The steps of slow requests whose completion is on the link.
    crossing: Vec<(u32, Vec<Step>)>,
    /// Whether requests that are submitted are explained.
    accepts: bool,
    /// Requests to be explained that have not completed.
    outstanding: u32,
}

impl Explainer {
    /// Keeps the path of the `slowest` requests that took longest.
    pub fn new(slowest: u32) -> Self {
        Self::with_rings(slowest, log::RING)
    }

    /// The same for a live drive with so many dies. It remembers fewer operations, which takes less processor time: what
    /// came more than 2,048 operations before the end of a request is `other`, with more than 8 dies more than 256 times
    /// their number, at most 8,192.
    pub fn live(slowest: u32, dies: u32) -> Self {
        Self::with_rings(slowest, log::ring_live(dies))
    }

    fn with_rings(slowest: u32, length: usize) -> Self {
        Self {
            slowest_max: slowest as usize,
            slowest: BinaryHeap::with_capacity(slowest as usize + 1),
            slow_from: if slowest == 0 { u64::MAX } else { 0 },
            totals: [Total::default(); 4],
            log: Log::new(length),
            last: Last::NONE,
            path: Path::new(),
            slots: Vec::new(),
            accesses: VecDeque::new(),
            crossing: Vec::new(),
            accepts: true,
            outstanding: 0,
        }
    }

    /// Whether requests that are submitted from now on are explained. Others have no part in the sums.
    pub fn accept(&mut self, accepts: bool) {
        self.accepts = accepts;
    }

    /// Whether requests that are submitted are explained.
    pub fn accepts(&self) -> bool {
        self.accepts
    }

    /// The number of requests to be explained that have not completed.
    pub fn outstanding(&self) -> u32 {
        self.outstanding
    }

    /// Follows events again, after some that it has not been told of. What the operations under way do is not known, so a
    /// wait for one of them is `other`.
    pub(super) fn wake(&mut self, now: Time) {
        self.forget();
        self.log.wake(now);
    }

    /// Explains none of the requests so far, as far as they have not completed.
    fn forget(&mut self) {
        self.accesses.clear();
        self.crossing.clear();
        self.last = Last::NONE;
        self.outstanding = 0;
        self.slots.iter_mut().for_each(|request| request.id = NOBODY);
    }

    /// Bytes of memory of an explainer that keeps so many requests, with their JSON text in Rust and in Python.
    pub fn bytes(slowest: u32) -> u64 {
        let steps = STEPS_MAX * (size_of::<Step>() + 2 * 120);
        Log::bytes(log::RING) as u64 + u64::from(slowest) * (size_of::<Explained>() + steps) as u64
    }

    /// The sums over the requests of a kind.
    pub fn sums(&self, op: Op) -> Sums {
        let Total { mut sums, held } = self.totals[op as usize];
        for (part, ns) in self.log.parts_of(&held) {
            sums.parts.0[usize::from(part)] += ns;
        }
        sums
    }

    /// The requests that took longest, slowest first.
    pub fn slowest(&self) -> Vec<&Explained> {
        let mut slowest: Vec<&Explained> = self.slowest.iter().map(|Reverse(of)| of).collect();
        slowest.sort_unstable_by(|a, b| b.cmp(a));
        slowest
    }

    /// Takes the requests that took longest since the last call, slowest first.
    pub fn take_slowest(&mut self) -> Vec<Explained> {
        let mut slowest: Vec<Explained> = self.slowest.drain().map(|Reverse(of)| of).collect();
        slowest.sort_unstable_by(|a, b| b.cmp(a));
        self.note_slow();
        slowest
    }

    /// What is in `explained.json`.
    pub fn to_json(&self) -> Value {
        let sums = Op::ALL.map(|op| {
            let of = self.sums(op);
            json!({
                "op": op.name(),
                "requests": of.requests,
                "latency_ns": of.latency_ns,
                "parts_ns": of.parts.to_json(),
            })
        });
        json!({
            "sums": sums,
            "slowest": self.slowest().into_iter().map(Explained::to_json).collect::<Vec<_>>(),
        })
    }

    /// The sums over the requests of all kinds, by part, as JSON.
    pub fn parts_json(&self) -> Value {
        let mut parts = Parts::default();
        Op::ALL.into_iter().for_each(|op| parts.add_all(&self.sums(op).parts));
        parts.to_json()
    }

    /// Notes the least latency with which a request is among the slowest.
    fn note_slow(&mut self) {
        self.slow_from = match self.slowest.peek() {
            _ if self.slowest_max == 0 => u64::MAX,
            Some(Reverse(least)) if self.slowest.len() >= self.slowest_max => least.latency_ns + 1,
            _ => 0,
        };
    }

    /// Follows the request that the drive has done last: its path is in `path`.
    #[inline(never)]
    fn follow(&mut self) {
        let Last { slot, is_slow, trigger } = std::mem::replace(&mut self.last, Last::NONE);
        let request = &self.slots[slot as usize];
        let (arrival, begun) = (request.arrival, request.begun);
        let path = &mut self.path;
        path.begin(request.id, request.operations, is_slow.then(Vec::new));
        (path.arrival, path.begun) = (arrival, begun);
        self.log.follow(path, request.done, trigger);
        if path.is_cut() && !is_slow {
            path.end(|_, _| {});
            path.begin(request.id, u32::MAX, None);
            self.log.follow(path, request.done, trigger);
        }
        path.begun = arrival;
        path.own((request.reached, begun), Own::Controller);
        path.own((arrival, request.reached), Own::Link);
    }

    /// The completion of the last request has yet to cross the link when the drive has done another one: its path goes to
    /// the request.
    #[cold]
    #[inline(never)]
    fn put_aside(&mut self) {
        let slot = self.last.slot;
        self.follow();
        let request = &mut self.slots[slot as usize];
        self.path.end(|part, ns| request.parts.push((part as u8, ns)));
        if let Some(steps) = self.path.steps.take() {
            request.has_steps = true;
            self.crossing.push((slot, steps));
        }
    }

    /// The completion of a request has crossed the link: its path is in `path` again.
    #[cold]
    #[inline(never)]
    fn take_up(&mut self, slot: RequestId) {
        let request = &mut self.slots[slot.index()];
        let crossed = std::mem::take(&mut request.has_steps)
            .then(|| self.crossing.iter().position(|&(of, _)| of == slot.0))
            .flatten();
        let steps = crossed.map(|index| self.crossing.swap_remove(index).1);
        self.path.begin(request.id, 0, steps);
        request.parts.drain(..).for_each(|(part, ns)| self.path.put(part, ns));
    }

    /// Adds a request that is among the slowest, or that has more than one operation.
    #[inline(never)]
    fn complete(&mut self, slot: RequestId, done: &Completion, left: u64) {
        if self.last.slot == slot.0 {
            self.follow();
        } else {
            self.take_up(slot);
        }
        if done.failed.is_some() {
            self.path.steps = None;
            return self.path.end(|_, _| {});
        }
        let (request, latency_ns) = (&done.request, (done.completed - done.request.arrival).ns());
        let on_link = done.completed.ns() - left;
        if on_link > 0 {
            // The way to the drive may be among the parts already; their sums count.
            self.path.put(Own::Link as u8, on_link);
        }
        if latency_ns >= self.slow_from {
            self.keep(done, latency_ns, left - request.arrival.ns());
        } else {
            // It was slow enough when the drive had done it, but slower ones have completed since.
            self.path.steps = None;
        }
        let sums = &mut self.totals[request.op as usize].sums;
        sums.requests += 1;
        sums.latency_ns += latency_ns;
        self.path.end(|part, ns| sums.parts.0[part] += ns);
    }

    /// A request is among the slowest, since it took this latency; `since` of it passed until the drive had done it.
    #[cold]
    #[inline(never)]
    fn keep(&mut self, done: &Completion, latency_ns: u64, since: u64) {
        let mut steps = self.path.steps.take().unwrap_or_default();
        steps.reverse();
        if latency_ns > since {
            let part = Some(Part::Own(Own::Link));
            steps.push(Step { from_ns: since, to_ns: latency_ns, part, die: None, lpn: None });
        }
        if steps.len() > STEPS_MAX {
            let cut = steps.len() - STEPS_MAX;
            let to_ns = steps[cut].from_ns;
            let before = Step { from_ns: 0, to_ns, part: None, die: None, lpn: None };
            steps.splice(..cut, [before]);
        }
        if self.slowest.len() == self.slowest_max {
            self.slowest.pop();
        }
        let (id, request, parts) = (done.id, done.request, self.path.parts());
        self.slowest.push(Reverse(Explained { id, request, latency_ns, parts, steps }));
        self.note_slow();
    }
}

/// The number of the request to which a transaction belongs; [`NOBODY`] for none.
#[inline(always)]
fn request_of(slots: &[Outstanding], t: &Transaction) -> u64 {
    match t.owner {
        Owner::Request(slot) | Owner::Merge(slot) => {
            slots.get(slot.index()).map_or(NOBODY, |request| request.id)
        }
        _ => NOBODY,
    }
}

impl Watcher for Explainer {
    fn on_issue(&mut self, now: Time, die: DieId, t: &Transaction) {
        if !self.log.issue(now, die, t) {
            self.log.issue_any(now, die, t, request_of(&self.slots, t));
        }
    }

    fn on_joined(&mut self, now: Time, die: DieId, _: &Transaction, t: &Transaction) {
        self.log.join(now, die, t);
    }

    fn on_phase(&mut self, start: Time, end: Time, die: DieId, _: u32, phase: Phase, t: &Transaction) {
        self.log.phase(start, end, die, phase, t);
    }

    fn on_suspend(&mut self, now: Time, ready: Time, die: DieId) {
        self.log.suspend(now, ready, die);
    }

    fn on_resume(&mut self, now: Time, die: DieId) {
        self.log.resume(now, die);
    }
}

impl Probe for Explainer {
    fn on_submitted(&mut self, slot: RequestId, id: u64, request: &Request, _: u64) {
        let arrival = request.arrival.ns();
        if self.slots.len() <= slot.index() {
            self.slots.resize(slot.index() + 1, Outstanding::default());
        }
        let of = &mut self.slots[slot.index()];
        let id = if self.accepts { id } else { NOBODY };
        self.outstanding += u32::from(self.accepts);
        (of.id, of.arrival, of.reached, of.begun, of.done) = (id, arrival, arrival, arrival, arrival);
        of.operations = 0;
        of.parts.clear();
        of.has_steps = false;
    }

    /// The requests and operations under way are followed further; the sums begin again.
    fn on_results(&mut self, _: u64) {
        self.totals = [Total::default(); 4];
        self.slowest.clear();
        self.note_slow();
    }

    #[inline]
    fn on_reached(&mut self, now: Time, slot: RequestId) {
        self.log.trigger = Trigger::REQUEST;
        if let Some(request) = self.slots.get_mut(slot.index()) {
            request.reached = now.ns();
        }
    }

    #[inline]
    fn on_begun(&mut self, now: Time, slot: RequestId) {
        self.log.trigger = Trigger::REQUEST;
        if let Some(request) = self.slots.get_mut(slot.index()) {
            request.begun = now.ns();
        }
    }

    fn on_queued(&mut self, now: Time, t: &Transaction) {
        let request = match t.owner {
            Owner::Request(slot) | Owner::Merge(slot) => self.slots.get_mut(slot.index()),
            _ => None,
        };
        let request = request.map_or(NOBODY, |request| {
            request.operations += 1;
            request.id
        });
        self.log.queue(now, request, t);
    }

    fn on_ended(&mut self, now: Time, t: &Transaction) {
        self.log.end(now, t);
    }

    fn on_access(&mut self, now: Time, end: Time, slot: RequestId) {
        let request = self.slots.get(slot.index()).map_or(NOBODY, |request| request.id);
        self.accesses.push_back(self.log.access(now, end, request));
    }

    fn on_accessed(&mut self, _: RequestId) {
        self.log.trigger = self.accesses.pop_front().map_or(Trigger::UNKNOWN, Trigger);
    }

    fn on_timer(&mut self, _: Time) {
        self.log.trigger = Trigger::TIMER;
    }

    fn on_decode(&mut self, start: Time, end: Time, _: u32, _: u8, t: &Transaction) {
        self.log.decode(start, end, t);
    }

    fn on_done(&mut self, now: Time, slot: RequestId) {
        if self.last.slot != Last::NOBODY {
            self.put_aside();
        }
        let Some(request) = self.slots.get_mut(slot.index()).filter(|of| of.id != NOBODY) else { return };
        request.done = now.ns();
        let is_slow = now.ns() - request.arrival >= self.slow_from;
        self.last = Last { slot: slot.0, is_slow, trigger: self.log.trigger };
    }

    fn on_completed(&mut self, slot: RequestId, done: &Completion) {
        let request = self.slots.get(slot.index()).filter(|request| request.id == done.id);
        let Some(request) = request else { return };
        self.outstanding -= 1;
        let (left, latency_ns) = (request.done, done.completed.ns() - request.arrival);
        let is_quick = self.last.slot == slot.0
            && !self.last.is_slow
            && latency_ns < self.slow_from
            && done.failed.is_none();
        let total = &mut self.totals[done.request.op as usize];
        if is_quick && self.log.add_quick(request, self.last.trigger, done.completed.ns(), total) {
            self.last.slot = Last::NOBODY;
            total.sums.requests += 1;
            total.sums.latency_ns += latency_ns;
        } else {
            self.complete(slot, done, left);
        }
    }

    /// All requests and operations have ended.
    fn on_power_off(&mut self, _: Time, _: Time) {
        self.log.clear();
        self.forget();
    }
}
