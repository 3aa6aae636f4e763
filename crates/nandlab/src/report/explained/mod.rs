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
//! `other`. The requests that took longest keep their path, by stretches ([`Step`]).

mod part;
#[cfg(test)]
mod tests;

pub use part::{Own, PARTS, Part, Parts};

use crate::base::geometry::{DieId, RequestId};
use crate::base::request::{Completion, Op, Request};
use crate::base::units::Time;
use crate::probe::Probe;
use crate::sched::{Cause, FlashOp, Owner, Phase, Transaction, Watcher};
use serde_json::{Value, json};
use std::cmp::Reverse;
use std::collections::{BinaryHeap, VecDeque};

/// The length of the rings of operations and of holds.
const RING: usize = 1 << 13;
/// The most holds and operations that the path of one request looks at; the rest is `other`.
const LOOKS_MAX: u32 = 4096;
/// The most steps that are kept of a request, the last ones; what is before them is one step more.
const STEPS_MAX: usize = 64;

/// The most lists of holds that the wait of an operation looks at: that of its die and those of its planes.
const LISTS_MAX: usize = 17;

/// What the drive acts upon: the end of an operation, by number, or one of the constants.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Trigger(u64);

impl Trigger {
    /// Nothing that is known.
    const UNKNOWN: Self = Self(u64::MAX);
    /// The beginning of a request.
    const REQUEST: Self = Self(u64::MAX - 1);
    /// A time that has come.
    const TIMER: Self = Self(u64::MAX - 2);
}

/// The number of no request.
const NOBODY: u64 = u64::MAX;

/// From a time to another one, in nanoseconds; [`NONE`] while it has not begun.
type Stretch = (u64, u64);

const NONE: Stretch = (u64::MAX, u64::MAX);

/// A flash operation, a try of a read, or an access to the DRAM of the write cache.
#[derive(Clone, Copy, Debug)]
struct Operation {
    number: u64,
    queued: u64,
    issued: u64,
    ended: u64,
    trigger: Trigger,
    /// Command or transfer in, array operation, transfer out, decoding.
    phases: [Stretch; 4],
    /// The number of its last hold of the die.
    hold: u64,
    /// The last holds of its die and of its station before it was issued ([`Station::last`]).
    before: [u64; 2],
    station: u32,
    die: u32,
    /// The number of the request to which it belongs; [`NOBODY`] for none.
    request: u64,
    lpn: u32,
    /// `None` for an access to DRAM.
    kind: Option<FlashOp>,
    cause: Cause,
    tries: u8,
}

impl Operation {
    /// An operation that has no number yet, and has neither been issued nor ended.
    const NONE: Self = Self {
        number: u64::MAX,
        queued: 0,
        issued: u64::MAX,
        ended: u64::MAX,
        trigger: Trigger::UNKNOWN,
        phases: [NONE; 4],
        hold: u64::MAX,
        before: [0; 2],
        station: 0,
        die: 0,
        request: NOBODY,
        lpn: 0,
        kind: None,
        cause: Cause::Host,
        tries: 0,
    };
}

impl Operation {
    /// It begins on a station. The program of a copyback follows its sense, which was issued before.
    fn issue(&mut self, now: Time, id: DieId, before: [u64; 2]) {
        if self.issued == u64::MAX {
            (self.issued, self.station, self.before) = (now.ns(), id.0, before);
        }
    }
}

/// A time for which an operation held its die, or the planes of a die that read at their own times. It fills a line of the
/// processor's cache.
#[derive(Clone, Copy, Debug)]
#[repr(align(64))]
struct Hold {
    number: u64,
    start: u64,
    end: u64,
    /// The number of the hold before it.
    before: u64,
    operation: u64,
    /// The number of the request to which the operation belongs; [`NOBODY`] for none.
    request: u64,
    die: u32,
    lpn: u32,
    kind: FlashOp,
    cause: Cause,
    /// The die gets ready for reads: the operation is being suspended.
    is_suspension: bool,
}

/// A die, or the planes of a die that read at their own times.
#[derive(Clone, Debug, Default)]
struct Station {
    /// The number of the last hold, plus 1.
    last: u64,
    /// The numbers of the operations under way, and of those that are suspended.
    batch: Vec<u64>,
    suspended: Vec<u64>,
    /// Of a die, the numbers of the stations of its planes.
    planes: Vec<u32>,
}

/// A request in the drive.
#[derive(Clone, Debug)]
struct Outstanding {
    id: u64,
    arrival: u64,
    reached: u64,
    begun: u64,
    done: u64,
    /// Its parts so far: the number of each with its time.
    parts: Vec<(u8, u64)>,
    /// Whether `slow` has the steps of the request.
    has_steps: bool,
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

/// Records what each request waited for.
#[derive(Debug)]
pub struct Explainer {
    /// The number of requests that keep their path.
    slowest_max: usize,
    slowest: BinaryHeap<Reverse<Explained>>,
    sums: [Sums; 4],
    trigger: Trigger,
    operations: Box<[Operation]>,
    /// Number of operations so far.
    begun: u64,
    /// By place of the order of a transaction in a ring, order and number of its operation.
    of_order: Box<[(u64, u64)]>,
    holds: Box<[Hold]>,
    /// Number of holds so far.
    held: u64,
    stations: Vec<Station>,
    slots: Vec<Outstanding>,
    /// The numbers of the accesses to DRAM under way.
    accesses: VecDeque<u64>,
    /// The paths of requests whose completion is on the link.
    crossing: Vec<(u32, Vec<Step>)>,
}

/// Adds a time to the list of a request's parts, which are few.
fn add(parts: &mut Vec<(u8, u64)>, part: Part, ns: u64) {
    let number = part.index() as u8;
    match parts.iter_mut().find(|of| of.0 == number) {
        Some(of) => of.1 += ns,
        None => parts.push((number, ns)),
    }
}

/// The path of a request, followed back from its end.
struct Path {
    /// The beginning and the arrival.
    begun: u64,
    arrival: u64,
    request: u64,
    parts: Vec<(u8, u64)>,
    looks: u32,
    steps: Option<Vec<Step>>,
}

impl Path {
    /// Adds a stretch, as far as it is after the beginning.
    fn add(&mut self, (from, to): Stretch, part: Part, of: Option<(u32, u32)>) {
        let from = from.max(self.begun);
        if from >= to {
            return;
        }
        add(&mut self.parts, part, to - from);
        let arrival = self.arrival;
        let Some(steps) = &mut self.steps else { return };
        let step = Step {
            from_ns: from - arrival,
            to_ns: to - arrival,
            part: Some(part),
            die: of.map(|(die, _)| die),
            lpn: of.map(|(_, lpn)| lpn),
        };
        match steps.last_mut() {
            Some(last) if last.part == step.part && last.die == step.die && last.lpn == step.lpn => {
                last.from_ns = step.from_ns;
            }
            _ => steps.push(step),
        }
    }

    fn own(&mut self, stretch: Stretch, own: Own) {
        self.add(stretch, Part::Own(own), None);
    }
}

impl Explainer {
    /// Keeps the path of the `slowest` requests that took longest.
    pub fn new(slowest: u32) -> Self {
        let hold = Hold {
            number: u64::MAX,
            start: 0,
            end: 0,
            before: 0,
            operation: u64::MAX,
            die: 0,
            lpn: 0,
            request: NOBODY,
            kind: FlashOp::Read,
            cause: Cause::Host,
            is_suspension: false,
        };
        Self {
            slowest_max: slowest as usize,
            slowest: BinaryHeap::with_capacity(slowest as usize + 1),
            sums: [Sums::default(); 4],
            trigger: Trigger::UNKNOWN,
            operations: vec![Operation::NONE; RING].into(),
            begun: 0,
            of_order: vec![(u64::MAX, u64::MAX); RING].into(),
            holds: vec![hold; RING].into(),
            held: 0,
            stations: Vec::new(),
            slots: Vec::new(),
            accesses: VecDeque::new(),
            crossing: Vec::new(),
        }
    }

    /// Bytes of memory of an explainer that keeps so many requests, with their JSON text in Rust and in Python.
    pub fn bytes(slowest: u32) -> u64 {
        let rings = RING * (size_of::<Operation>() + size_of::<Hold>() + 2 * size_of::<u64>());
        let steps = STEPS_MAX * (size_of::<Step>() + 2 * 120);
        rings as u64 + u64::from(slowest) * (size_of::<Explained>() + steps) as u64
    }

    /// The sums over the requests of a kind.
    pub fn sums(&self, op: Op) -> &Sums {
        &self.sums[op as usize]
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
        self.sums.iter().for_each(|sums| parts.add_all(&sums.parts));
        parts.to_json()
    }

    fn operation(&self, number: u64) -> Option<&Operation> {
        let operation = &self.operations[number as usize % RING];
        (operation.number == number).then_some(operation)
    }

    fn of_order(&mut self, order: u64) -> Option<&mut Operation> {
        let (found, number) = self.of_order[order as usize % RING];
        let operation = &mut self.operations[number as usize % RING];
        (found == order && operation.number == number).then_some(operation)
    }

    fn station(&mut self, id: DieId) -> &mut Station {
        if self.stations.len() <= id.index() {
            self.stations.resize_with(id.index() + 1, Station::default);
        }
        &mut self.stations[id.index()]
    }

    /// Begins an operation, and returns its number.
    fn begin(&mut self, operation: Operation) -> u64 {
        let number = self.begun;
        self.begun += 1;
        self.operations[number as usize % RING] = Operation { number, trigger: self.trigger, ..operation };
        number
    }

    /// The operation of a transaction has been issued on a station, alone or as the first of others: it holds the station.
    fn hold(&mut self, now: Time, id: DieId, t: &Transaction, before: [u64; 2]) {
        let number = self.held;
        let (operation, request) = match self.of_order(t.order) {
            Some(operation) => {
                operation.hold = number;
                operation.issue(now, id, before);
                (operation.number, operation.request)
            }
            None => (u64::MAX, self.request_of(t)),
        };
        self.holds[number as usize % RING] = Hold {
            number,
            start: now.ns(),
            end: u64::MAX,
            before: before[1],
            operation,
            request,
            die: t.die.0,
            lpn: t.lpn.0,
            kind: t.kind,
            cause: t.cause,
            is_suspension: false,
        };
        self.held += 1;
        let station = &mut self.stations[id.index()];
        station.last = number + 1;
        station.batch.clear();
        if operation != u64::MAX {
            station.batch.push(operation);
        }
    }

    /// The hold before the one with this number plus 1.
    fn hold_before(&self, last: u64) -> Option<&Hold> {
        let number = last.checked_sub(1)?;
        let hold = &self.holds[number as usize % RING];
        (hold.number == number).then_some(hold)
    }

    /// The number of the request to which a transaction belongs; [`NOBODY`] for none.
    fn request_of(&self, t: &Transaction) -> u64 {
        match t.owner {
            Owner::Request(slot) | Owner::Merge(slot) => {
                self.slots.get(slot.index()).map_or(NOBODY, |request| request.id)
            }
            _ => NOBODY,
        }
    }

    /// Follows a request back from `done`, at which the drive has completed it.
    fn follow(&self, path: &mut Path, done: u64) {
        let (mut at, mut trigger) = (done, self.trigger);
        while at > path.begun {
            path.looks += 1;
            let number = match trigger {
                Trigger::REQUEST => return path.own((path.begun, at), Own::Gather),
                Trigger::TIMER => return path.own((path.begun, at), Own::Timer),
                Trigger::UNKNOWN => return path.own((path.begun, at), Own::Other),
                Trigger(number) if path.looks < LOOKS_MAX => number,
                Trigger(_) => return path.own((path.begun, at), Own::Other),
            };
            let Some(operation) = self.operation(number).filter(|operation| operation.ended <= at) else {
                return path.own((path.begun, at), Own::Other);
            };
            path.own((operation.ended, at), Own::Other);
            self.work(path, operation);
            let issued = operation.issued.min(operation.ended);
            if issued > path.begun {
                let mut lists = [0; LISTS_MAX];
                let number = self.lists(operation, &mut lists);
                self.blame(path, &lists[..number], (operation.queued.max(path.begun), issued));
            }
            (at, trigger) = (operation.queued, operation.trigger);
        }
    }

    /// The last holds of the station of an operation that was queued, and of those that its die shares with it: first
    /// that of the die.
    fn lists(&self, operation: &Operation, lists: &mut [u64; LISTS_MAX]) -> usize {
        let [of_die, of_station] = operation.before;
        (lists[0], lists[1]) = (of_die, of_station);
        if operation.station != operation.die {
            return 2;
        }
        let station = self.stations.get(operation.die as usize);
        let planes = station.map_or(&[][..], |station| &station.planes[..]);
        let planes = &planes[..planes.len().min(LISTS_MAX - 1)];
        for (list, &id) in lists[1..].iter_mut().zip(planes) {
            *list = self.stations.get(id as usize).map_or(0, |station| station.last);
        }
        1 + planes.len()
    }

    /// Divides the wait of an operation in its queue among what held its die. What no hold of the first list explains,
    /// those of the next list may.
    fn blame(&self, path: &mut Path, lists: &[u64], (from, mut to): Stretch) {
        let Some((&last, others)) = lists.split_first() else {
            return path.own((from, to), Own::Kept);
        };
        let mut next = last;
        while from < to {
            path.looks += 1;
            if path.looks >= LOOKS_MAX || next > 0 && self.hold_before(next).is_none() {
                return path.own((from, to), Own::Other);
            }
            let Some(hold) = self.hold_before(next) else {
                return self.blame(path, others, (from, to));
            };
            next = hold.before;
            if hold.start >= to {
                continue;
            }
            let end = hold.end.min(to);
            if end <= from {
                return self.blame(path, others, (from, to));
            }
            if end < to {
                self.blame(path, others, (end, to));
            }
            let part = if hold.is_suspension {
                Part::Own(Own::Suspend)
            } else if hold.request == path.request {
                Part::Own(Own::Units)
            } else {
                Part::Operation(hold.kind, hold.cause)
            };
            let start = hold.start.max(from);
            path.add((start, end), part, Some((hold.die, hold.lpn)));
            to = start;
        }
    }

    /// Adds the time for which an operation was under way, from its end back to its beginning.
    fn work(&self, path: &mut Path, operation: &Operation) {
        let of = Some((operation.die, operation.lpn));
        let issued = operation.issued.min(operation.ended);
        let all = (issued, operation.ended);
        let Some(kind) = operation.kind else { return path.own(all, Own::Dram) };
        let is_own = operation.request == path.request;
        let is_for_host = matches!(operation.cause, Cause::Host | Cause::Sync);
        if !is_for_host {
            return path.add(all, Part::Operation(kind, operation.cause), of);
        }
        let (is_read, is_retry) = (kind == FlashOp::Read, operation.tries > 0);
        let part = |own: Own| Part::Own(if is_retry { Own::Retry } else { own });
        let array = match is_read {
            true => part(Own::Sense),
            false if is_own => Part::Own(Own::Program),
            false => Part::Operation(kind, operation.cause),
        };
        let [command, sense, out, decode] = operation.phases;
        let mut at = operation.ended;
        for (phase, part, before) in [
            (decode, part(Own::Decode), Own::Other),
            (out, part(Own::Transfer), Own::Decoder),
            (sense, array, if is_read { Own::Bus } else { Own::Other }),
            (command, part(Own::Transfer), Own::Other),
        ] {
            if phase == NONE {
                continue;
            }
            path.own((phase.1, at), before);
            let (from, to) = (phase.0, phase.1.min(at));
            // An array operation that was suspended has had several holds.
            if phase == sense && !is_read {
                self.array(path, operation, (from, to), array);
            } else {
                path.add((from, to), part, of);
            }
            at = from.min(at);
        }
        path.own((issued, at), Own::Bus);
    }

    /// Adds the array operation of a program, without the times for which it was suspended.
    fn array(&self, path: &mut Path, operation: &Operation, (from, mut to): Stretch, part: Part) {
        let of = Some((operation.die, operation.lpn));
        let mut next = operation.hold.wrapping_add(1);
        while from < to {
            path.looks += 1;
            let hold = self.hold_before(next).filter(|_| path.looks < LOOKS_MAX);
            let Some(hold) = hold.filter(|hold| hold.end > from) else {
                // Of a multi-plane operation, the first transaction alone has holds.
                return path.add((from, to), part, of);
            };
            let (start, end) = (hold.start.max(from), hold.end.min(to));
            next = hold.before;
            path.own((end, to), Own::Kept);
            if hold.operation == operation.number {
                path.add((start, end), part, of);
            } else if hold.is_suspension {
                path.own((start, end), Own::Suspend);
            } else {
                path.add((start, end), Part::Operation(hold.kind, hold.cause), Some((hold.die, hold.lpn)));
            }
            to = start;
        }
    }

    /// Whether a request with this latency is among the slowest so far.
    fn is_slow(&self, latency: u64) -> bool {
        self.slowest.len() < self.slowest_max
            || self.slowest.peek().is_some_and(|Reverse(least)| latency > least.latency_ns)
    }

    /// Completes an explained request.
    fn complete(&mut self, slot: RequestId, done: &Completion) {
        let Some(request) = self.slots.get_mut(slot.index()).filter(|request| request.id == done.id) else {
            return;
        };
        let latency_ns = (done.completed - done.request.arrival).ns();
        let on_link = done.completed.ns() - request.done;
        if on_link > 0 {
            add(&mut request.parts, Part::Own(Own::Link), on_link);
        }
        let (since, has_steps) = (request.done - request.arrival, std::mem::take(&mut request.has_steps));
        let crossed = has_steps.then(|| self.crossing.iter().position(|&(of, _)| of == slot.0)).flatten();
        let steps = crossed.map(|index| self.crossing.swap_remove(index).1);
        if done.failed.is_some() {
            return;
        }
        let sums = &mut self.sums[done.request.op as usize];
        sums.requests += 1;
        sums.latency_ns += latency_ns;
        for &(part, ns) in &request.parts {
            sums.parts.0[usize::from(part)] += ns;
        }
        if self.slowest_max == 0 || !self.is_slow(latency_ns) {
            return;
        }
        let mut parts = Parts::default();
        for &(part, ns) in &self.slots[slot.index()].parts {
            parts.0[usize::from(part)] = ns;
        }
        let mut steps = steps.unwrap_or_default();
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
        let explained = Explained { id: done.id, request: done.request, latency_ns, parts, steps };
        self.slowest.push(Reverse(explained));
    }
}

impl Watcher for Explainer {
    fn on_issue(&mut self, now: Time, die: DieId, t: &Transaction) {
        let mut of_die = self.station(die).last;
        let of_station = of_die;
        if die != t.die {
            let whole = self.station(t.die);
            of_die = whole.last;
            if !whole.planes.contains(&die.0) {
                whole.planes.push(die.0);
            }
        }
        self.hold(now, die, t, [of_die, of_station]);
    }

    fn on_joined(&mut self, now: Time, die: DieId, _: &Transaction, t: &Transaction) {
        // The hold of the operation is that of its first transaction. Planes that read at their own times join nothing.
        let last = self.station(die).last;
        let before = self.hold_before(last).map_or(0, |hold| hold.before);
        let number = self.of_order(t.order).map(|operation| {
            operation.issue(now, die, [before; 2]);
            operation.number
        });
        self.stations[die.index()].batch.extend(number);
    }

    fn on_phase(&mut self, start: Time, end: Time, die: DieId, _: u32, phase: Phase, t: &Transaction) {
        let stretch = (start.ns(), end.ns());
        let last = self.station(die).last;
        if phase == Phase::TransferOut {
            if let Some(operation) = self.of_order(t.order) {
                operation.phases[2] = stretch;
            }
        } else {
            let number = usize::from(phase == Phase::Array);
            for &operation in &self.stations[die.index()].batch {
                let of = &mut self.operations[operation as usize % RING];
                if of.number == operation {
                    let begun = if number == 1 && of.phases[1] != NONE { of.phases[1].0 } else { stretch.0 };
                    of.phases[number] = (begun, stretch.1);
                }
            }
        }
        // The last phase of an operation ends its hold; a phase before it does not.
        let is_last =
            if t.kind == FlashOp::Read { phase == Phase::TransferOut } else { phase == Phase::Array };
        if is_last && let Some(number) = last.checked_sub(1) {
            let hold = &mut self.holds[number as usize % RING];
            if hold.number == number {
                hold.end = end.ns();
            }
        }
    }

    fn on_suspend(&mut self, now: Time, ready: Time, die: DieId) {
        let station = self.station(die);
        let batch = std::mem::take(&mut station.batch);
        station.suspended = batch;
        let Some(&first) = station.suspended.first() else { return };
        let last = station.last;
        let of = self.hold_before(last).copied();
        let Some(mut hold) = of.filter(|hold| hold.operation == first) else { return };
        self.holds[hold.number as usize % RING].end = now.ns();
        hold = Hold {
            number: self.held,
            start: now.ns(),
            end: ready.ns(),
            before: last,
            operation: u64::MAX,
            is_suspension: true,
            ..hold
        };
        self.holds[hold.number as usize % RING] = hold;
        self.held += 1;
        self.station(die).last = hold.number + 1;
    }

    fn on_resume(&mut self, now: Time, die: DieId) {
        let (number, station) = (self.held, self.station(die));
        station.batch = std::mem::take(&mut station.suspended);
        let (before, first) = (station.last, station.batch.first().copied());
        let Some(operation) = first.and_then(|first| self.operation(first)) else { return };
        let (kind, cause) = (operation.kind.unwrap_or(FlashOp::Program), operation.cause);
        let hold = Hold {
            number,
            start: now.ns(),
            end: u64::MAX,
            before,
            operation: operation.number,
            die: operation.die,
            lpn: operation.lpn,
            request: operation.request,
            kind,
            cause,
            is_suspension: false,
        };
        let at = operation.number as usize % RING;
        self.operations[at].hold = number;
        self.holds[number as usize % RING] = hold;
        self.held += 1;
        self.station(die).last = number + 1;
    }
}

impl Probe for Explainer {
    fn on_submitted(&mut self, slot: RequestId, id: u64, request: &Request, _: u64) {
        let arrival = request.arrival.ns();
        let mut parts = Vec::new();
        if let Some(before) = self.slots.get_mut(slot.index()) {
            parts = std::mem::take(&mut before.parts);
            parts.clear();
        }
        let outstanding = Outstanding {
            id,
            arrival,
            reached: arrival,
            begun: arrival,
            done: arrival,
            parts,
            has_steps: false,
        };
        match self.slots.get_mut(slot.index()) {
            Some(of) => *of = outstanding,
            None => {
                let none = Outstanding { id: u64::MAX, parts: Vec::new(), ..outstanding };
                self.slots.resize(slot.index(), none);
                self.slots.push(outstanding);
            }
        }
    }

    /// The requests and operations under way are followed further; the sums begin again.
    fn on_results(&mut self, _: u64) {
        self.sums = [Sums::default(); 4];
        self.slowest.clear();
    }

    fn on_reached(&mut self, now: Time, slot: RequestId) {
        self.trigger = Trigger::REQUEST;
        if let Some(request) = self.slots.get_mut(slot.index()) {
            request.reached = now.ns();
        }
    }

    fn on_begun(&mut self, now: Time, slot: RequestId) {
        self.trigger = Trigger::REQUEST;
        if let Some(request) = self.slots.get_mut(slot.index()) {
            request.begun = now.ns();
        }
    }

    fn on_queued(&mut self, now: Time, t: &Transaction) {
        let request = self.request_of(t);
        let number = self.begin(Operation {
            queued: now.ns(),
            station: t.die.0,
            die: t.die.0,
            request,
            lpn: t.lpn.0,
            kind: Some(t.kind),
            cause: t.cause,
            tries: t.tries,
            ..Operation::NONE
        });
        if t.tries > 0 {
            // The try before ended with its decoding, which is why this one is queued.
            if let Some(before) = self.of_order(t.order) {
                before.ended = now.ns();
                let before = before.number;
                self.operations[number as usize % RING].trigger = Trigger(before);
            }
        }
        self.of_order[t.order as usize % RING] = (t.order, number);
    }

    fn on_ended(&mut self, now: Time, t: &Transaction) {
        self.trigger = match self.of_order(t.order) {
            Some(operation) => {
                operation.ended = now.ns();
                Trigger(operation.number)
            }
            None => Trigger::UNKNOWN,
        };
    }

    fn on_access(&mut self, now: Time, end: Time, slot: RequestId) {
        let request = self.slots.get(slot.index()).map_or(NOBODY, |request| request.id);
        let number = self.begin(Operation {
            queued: now.ns(),
            issued: now.ns(),
            ended: end.ns(),
            request,
            ..Operation::NONE
        });
        self.accesses.push_back(number);
    }

    fn on_accessed(&mut self, _: RequestId) {
        self.trigger = self.accesses.pop_front().map_or(Trigger::UNKNOWN, Trigger);
    }

    fn on_timer(&mut self, _: Time) {
        self.trigger = Trigger::TIMER;
    }

    fn on_decode(&mut self, start: Time, end: Time, _: u32, _: u8, t: &Transaction) {
        if let Some(operation) = self.of_order(t.order) {
            operation.phases[3] = (start.ns(), end.ns());
        }
    }

    fn on_done(&mut self, now: Time, slot: RequestId) {
        let Some(request) = self.slots.get_mut(slot.index()) else { return };
        let (arrival, reached, begun, id) = (request.arrival, request.reached, request.begun, request.id);
        let parts = std::mem::take(&mut request.parts);
        let is_slow = self.slowest_max > 0 && self.is_slow(now.ns() - arrival);
        let mut path = Path { begun, arrival, request: id, parts, looks: 0, steps: is_slow.then(Vec::new) };
        self.follow(&mut path, now.ns());
        path.begun = arrival;
        path.own((reached, begun), Own::Controller);
        path.own((arrival, reached), Own::Link);
        if let Some(steps) = path.steps.take() {
            self.crossing.push((slot.0, steps));
        }
        let of = &mut self.slots[slot.index()];
        (of.done, of.parts, of.has_steps) = (now.ns(), path.parts, is_slow);
    }

    fn on_completed(&mut self, slot: RequestId, done: &Completion) {
        self.complete(slot, done);
    }

    /// All requests and operations have ended.
    fn on_power_off(&mut self, _: Time, _: Time) {
        self.trigger = Trigger::UNKNOWN;
        self.accesses.clear();
        self.crossing.clear();
        for operation in &mut self.operations {
            operation.number = u64::MAX;
        }
        for hold in &mut self.holds {
            hold.number = u64::MAX;
        }
        self.stations.clear();
        self.slots.iter_mut().for_each(|request| request.id = u64::MAX);
    }
}
