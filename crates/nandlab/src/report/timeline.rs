//! The timeline: every phase of the first operations and the requests meanwhile, as a Chrome / Perfetto trace.
//!
//! Open it in ui.perfetto.dev or chrome://tracing. Times are in microseconds, to the nanosecond.
//!
//! | process | a track for each | its slices |
//! |---|---|---|
//! | host requests | lane | requests, from arrival to completion |
//! | dies | die | array work |
//! | channels | channel | commands and transfers |
//! | decoder | read level, lane | decoding |
//!
//! The slices of a track never overlap. A die and a channel do one thing at a time; a request and a page to be decoded take
//! the first lane that is free.
//!
//! **Operations.** Recorded are the operations submitted first, with their number (`operation`), die, PPN and LPN; a read with
//! its `level`, one of a request with the number of that (`request`). Several pages of a multi-plane operation (`pages`) are
//! one slice, in the name of the first; their transfers out and their decoding are slices of their own.
//!
//! **Requests.** Recorded are those submitted before the last of these operations was: all that the operations belong to, and
//! others that needed none, of these no more than operations. A request that has not been completed when the run ends ends
//! with the run (`outstanding`); one that has failed says why (`failed`).
//!
//! **Arrows** (flow events) lead from a request to the first slice of each of its operations: reads, also for a partial
//! write, and programs of its pages. The arrow's `id` is the operation's number. A read that is tried again is one operation,
//! and each page of a multi-plane operation has its own arrow to their common slice. What the drive does by itself, from GC
//! to the write-back of its cache, belongs to no request.
//!
//! **Power loss** ends requests and decoding; what runs on a die or channel ends when the energy does, and has `power_lost`
//! then.

use crate::base::geometry::{DieId, RequestId};
use crate::base::units::{Span, Time};
use crate::base::words::size;
use crate::drive::{Completion, FailReason};
use crate::host::{Op, Request};
use crate::probe::Probe;
use crate::sched::{Cause, Kind, Owner, Phase, Transaction, Watcher};
use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet, BinaryHeap};
use std::fmt::{self, Write};
use std::ops::Range;

/// Where something happens.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Place {
    Phase(Phase),
    Decoder,
}

/// The processes, by their number in the trace.
#[derive(Clone, Copy, Debug)]
enum Process {
    Dies = 1,
    Channels = 2,
    Decoder = 3,
    Requests = 4,
}

/// A phase of an operation, or of several in different planes.
#[derive(Clone, Copy, Debug)]
struct Slice {
    start: Time,
    end: Time,
    operation: u64,
    /// The number of the request that it belongs to.
    request: Option<u64>,
    die: u32,
    ppn: u32,
    lpn: u32,
    channel: u32,
    place: Place,
    kind: Kind,
    level: u8,
    cause: Cause,
    pages: u8,
    /// Power failed before its end.
    is_cut: bool,
}

/// A request that has been recorded.
#[derive(Clone, Copy, Debug)]
struct Asked {
    id: u64,
    request: Request,
    /// `None`: it has not been completed.
    end: Option<Time>,
    failed: Option<FailReason>,
    /// It has a recorded operation.
    has_operation: bool,
}

/// From a request to a slice.
#[derive(Clone, Copy, Debug)]
struct Arrow {
    slice: usize,
    request: u64,
    operation: u64,
}

/// What a die has taken up.
#[derive(Clone, Debug, Default)]
struct UnderWay {
    pages: u8,
    /// The first of its transactions that is recorded.
    first: Option<Transaction>,
    /// Request and operation of the arrows that end in its first slice.
    arrows: Vec<(u64, u64)>,
}

/// Records the phases of the operations submitted first, and the requests meanwhile.
#[derive(Debug)]
pub struct Timeline {
    operations: u64,
    /// In the order of their start.
    slices: Vec<Slice>,
    /// In the order of their slices.
    arrows: Vec<Arrow>,
    /// Requests that are over.
    requests: Vec<Asked>,
    /// How many of them have no operation.
    idle_requests: u64,
    /// By slot, the last request there that is recorded.
    slots: Vec<Option<Asked>>,
    dies: Vec<UnderWay>,
}

impl Timeline {
    /// Records the first `operations` operations.
    pub fn new(operations: u64) -> Self {
        Self {
            operations,
            slices: Vec::new(),
            arrows: Vec::new(),
            requests: Vec::new(),
            idle_requests: 0,
            slots: Vec::new(),
            dies: Vec::new(),
        }
    }

    /// The trace as JSON text, of a run that has come to `now`.
    pub fn to_json(&self, now: Time) -> String {
        let mut requests = self.requests.clone();
        requests.extend(self.slots.iter().flatten().filter(|asked| asked.end.is_none()));
        requests.sort_unstable_by_key(|asked| (asked.request.arrival, asked.id));
        let mut lanes = Lanes::default();
        let end_of = |asked: &Asked| asked.end.unwrap_or(now.max(asked.request.arrival));
        let request_lanes: Vec<u32> =
            requests.iter().map(|asked| lanes.take(asked.request.arrival, end_of(asked))).collect();
        let mut levels: BTreeMap<u8, Lanes> = BTreeMap::new();
        let decoded = self.slices.iter().filter(|slice| slice.place == Place::Decoder);
        let decoder_lanes: Vec<u32> =
            decoded.map(|s| levels.entry(s.level).or_default().take(s.start, s.end)).collect();

        // The lanes of a level follow one another.
        let mut first_lane = 1;
        let levels: BTreeMap<u8, Range<u32>> = levels
            .into_iter()
            .map(|(level, lanes)| {
                let tracks = first_lane..first_lane + lanes.count;
                first_lane = tracks.end;
                (level, tracks)
            })
            .collect();

        let mut out = Writer::new();
        self.name_tracks(&mut out, lanes.count, &levels);
        let mut arrows: Vec<(u64, u64)> = self.arrows.iter().map(|a| (a.request, a.operation)).collect();
        arrows.sort_unstable();
        for (asked, &lane) in requests.iter().zip(&request_lanes) {
            out.request(asked, lane, end_of(asked));
            let first = arrows.partition_point(|&(request, _)| request < asked.id);
            for &(_, operation) in arrows[first..].iter().take_while(|arrow| arrow.0 == asked.id) {
                out.arrow("\"ph\":\"s\"", Process::Requests, lane, operation, asked.request.arrival);
            }
        }
        let mut decoder_lanes = decoder_lanes.into_iter();
        let mut arrows = self.arrows.iter().peekable();
        for (index, slice) in self.slices.iter().enumerate() {
            let (process, track) = match slice.place {
                Place::Phase(Phase::Array) => (Process::Dies, slice.die),
                Place::Phase(_) => (Process::Channels, slice.channel),
                Place::Decoder => {
                    let lane = decoder_lanes.next().expect("each decoding has a lane");
                    (Process::Decoder, levels[&slice.level].start + lane)
                }
            };
            out.slice(slice, process, track);
            while let Some(arrow) = arrows.next_if(|arrow| arrow.slice == index) {
                out.arrow("\"ph\":\"f\",\"bp\":\"e\"", process, track, arrow.operation, slice.start);
            }
        }
        out.end()
    }

    /// Names the processes and tracks, and says in which order they are shown.
    fn name_tracks(&self, out: &mut Writer, request_lanes: u32, levels: &BTreeMap<u8, Range<u32>>) {
        let (mut dies, mut channels) = (BTreeSet::new(), BTreeSet::new());
        for slice in &self.slices {
            match slice.place {
                Place::Phase(Phase::Array) => dies.insert(slice.die),
                Place::Phase(_) => channels.insert(slice.channel),
                Place::Decoder => continue,
            };
        }
        let processes = [
            (Process::Requests, "host requests"),
            (Process::Dies, "dies"),
            (Process::Channels, "channels"),
            (Process::Decoder, "decoder"),
        ];
        for (place, (process, name)) in processes.into_iter().enumerate() {
            out.name("process", Track(process, None), format_args!("{name}"), place as u32);
        }
        let mut name = |process, track, name: fmt::Arguments| {
            out.name("thread", Track(process, Some(track)), name, track);
        };
        for lane in 0..request_lanes {
            name(Process::Requests, lane, format_args!("lane {lane}"));
        }
        for die in dies {
            name(Process::Dies, die, format_args!("die {die}"));
        }
        for channel in channels {
            name(Process::Channels, channel, format_args!("channel {channel}"));
        }
        for (level, tracks) in levels {
            name(Process::Decoder, tracks.start, format_args!("level {level}"));
            for (lane, track) in tracks.clone().enumerate().skip(1) {
                name(Process::Decoder, track, format_args!("level {level}, lane {lane}"));
            }
        }
    }

    /// A die has taken up one more transaction.
    fn take_up(&mut self, die: DieId, transaction: &Transaction) {
        let work = &mut self.dies[die.index()];
        work.pages += 1;
        if transaction.order >= self.operations {
            return;
        }
        work.first.get_or_insert(*transaction);
        if transaction.tries == 0
            && let Some(asked) = Self::asked(&mut self.slots, transaction)
        {
            asked.has_operation = true;
            work.arrows.push((asked.id, transaction.order));
        }
    }

    /// The request that an operation belongs to.
    fn asked<'a>(slots: &'a mut [Option<Asked>], transaction: &Transaction) -> Option<&'a mut Asked> {
        match transaction.owner {
            Owner::Request(slot) | Owner::Merge(slot) => slots.get_mut(slot.index())?.as_mut(),
            _ => None,
        }
    }

    fn record(
        &mut self,
        [start, end]: [Time; 2],
        die: DieId,
        channel: u32,
        place: Place,
        pages: u8,
        t: &Transaction,
    ) {
        let request = Self::asked(&mut self.slots, t).map(|asked| asked.id);
        let (ppn, lpn) = (t.ppn.0, t.lpn.0);
        self.slices.push(Slice {
            start,
            end,
            operation: t.order,
            request,
            die: die.0,
            ppn,
            lpn,
            channel,
            place,
            kind: t.kind,
            level: t.level,
            cause: t.cause,
            pages,
            is_cut: false,
        });
    }

    /// A request is over.
    fn end_request(&mut self, slot: usize, end: Time, failed: Option<FailReason>) {
        let Some(asked) = self.slots.get_mut(slot).and_then(Option::as_mut) else { return };
        (asked.end, asked.failed) = (Some(end), failed);
        if !asked.has_operation {
            self.idle_requests += 1;
            if self.idle_requests > self.operations {
                return;
            }
        }
        self.requests.push(*asked);
    }
}

impl Watcher for Timeline {
    fn on_issue(&mut self, _: Time, die: DieId, transaction: &Transaction) {
        if self.dies.len() <= die.index() {
            self.dies.resize(die.index() + 1, UnderWay::default());
        }
        let work = &mut self.dies[die.index()];
        (work.pages, work.first) = (0, None);
        work.arrows.clear();
        self.take_up(die, transaction);
    }

    fn on_joined(&mut self, _: Time, die: DieId, _: &Transaction, transaction: &Transaction) {
        self.take_up(die, transaction);
    }

    fn on_phase(&mut self, start: Time, end: Time, die: DieId, channel: u32, phase: Phase, t: &Transaction) {
        let work = &mut self.dies[die.index()];
        let Some(first) = work.first else { return };
        // Pages leave a die one by one; else the phase is that of all of them.
        let (named, pages) = if phase == Phase::TransferOut { (*t, 1) } else { (first, work.pages) };
        if named.order >= self.operations {
            return;
        }
        let slice = self.slices.len();
        let arrows = work.arrows.drain(..);
        self.arrows.extend(arrows.map(|(request, operation)| Arrow { slice, request, operation }));
        self.record([start, end], die, channel, Place::Phase(phase), pages, &named);
    }
}

impl Probe for Timeline {
    fn on_submitted(&mut self, slot: RequestId, id: u64, request: &Request, operations: u64) {
        if self.slots.len() <= slot.index() {
            self.slots.resize(slot.index() + 1, None);
        }
        let is_recorded = operations < self.operations;
        let asked = Asked { id, request: *request, end: None, failed: None, has_operation: false };
        self.slots[slot.index()] = is_recorded.then_some(asked);
    }

    fn on_completed(&mut self, slot: RequestId, done: &Completion) {
        self.end_request(slot.index(), done.completed, done.failed);
    }

    fn on_decode(&mut self, start: Time, end: Time, channel: u32, level: u8, t: &Transaction) {
        if t.order < self.operations {
            let read = Transaction { level, ..*t };
            self.record([start, end], t.die, channel, Place::Decoder, 1, &read);
        }
    }

    fn on_power_off(&mut self, failed: Time, off: Time) {
        for slot in 0..self.slots.len() {
            if self.slots[slot].is_some_and(|asked| asked.end.is_none()) {
                self.end_request(slot, failed, Some(FailReason::PowerLost));
            }
        }
        for slice in &mut self.slices {
            let last = if slice.place == Place::Decoder { failed } else { off };
            if slice.end > last {
                (slice.end, slice.is_cut) = (last, true);
            }
        }
    }
}

/// Lanes of a track: what begins takes the first one that is free.
#[derive(Debug, Default)]
struct Lanes {
    count: u32,
    free: BTreeSet<u32>,
    taken: BinaryHeap<Reverse<(Time, u32)>>,
}

impl Lanes {
    /// The lane of what begins at `start`, no earlier than the last one. What takes no time has its lane for a nanosecond:
    /// else an arrow could begin at either of two slices.
    fn take(&mut self, start: Time, end: Time) -> u32 {
        while let Some(&Reverse((until, lane))) = self.taken.peek()
            && until <= start
        {
            self.taken.pop();
            self.free.insert(lane);
        }
        let lane = self.free.pop_first().unwrap_or_else(|| {
            self.count += 1;
            self.count - 1
        });
        self.taken.push(Reverse((end.max(start + Span::from_ns(1)), lane)));
        lane
    }
}

/// Writes the events, one a line.
struct Writer {
    text: String,
}

impl Writer {
    fn new() -> Self {
        Self { text: "{\"displayTimeUnit\":\"ns\",\"traceEvents\":[".to_owned() }
    }

    fn end(mut self) -> String {
        self.text.pop();
        self.text.push_str("\n]}\n");
        self.text
    }

    fn event(&mut self, event: fmt::Arguments) {
        write!(self.text, "\n{{{event}}},").expect("a string takes all");
    }

    /// The name of a process or track, and its place among the others.
    fn name(&mut self, what: &str, track: Track, name: fmt::Arguments, place: u32) {
        self.event(format_args!(
            "\"ph\":\"M\",{track},\"name\":\"{what}_name\",\"args\":{{\"name\":\"{name}\"}}"
        ));
        self.event(format_args!(
            "\"ph\":\"M\",{track},\"name\":\"{what}_sort_index\",\"args\":{{\"sort_index\":{place}}}"
        ));
    }

    fn request(&mut self, asked: &Asked, lane: u32, end: Time) {
        let Asked { id, request, failed, .. } = asked;
        let Request { arrival, op, offset, len, fua } = *request;
        let name = match op {
            Op::Read | Op::Write => format!("{} {}", op.name(), size(len)),
            Op::Trim | Op::Flush => op.name().to_owned(),
        };
        let failed = failed.map_or(String::new(), |reason| format!(",\"failed\":\"{}\"", reason.name()));
        let more = match (fua, asked.end) {
            (false, Some(_)) => "",
            (true, Some(_)) => ",\"fua\":true",
            (false, None) => ",\"outstanding\":true",
            (true, None) => ",\"fua\":true,\"outstanding\":true",
        };
        self.event(format_args!(
            "\"ph\":\"X\",{},\"name\":\"{name}\",\"cat\":\"request\",\"ts\":{},\"dur\":{},\
             \"args\":{{\"request\":{id},\"offset\":{offset},\"len\":{len}{more}{failed}}}",
            Track(Process::Requests, Some(lane)),
            Micros(arrival.ns()),
            Micros((end - arrival).ns()),
        ));
    }

    fn slice(&mut self, slice: &Slice, process: Process, track: u32) {
        let name = match (slice.place, slice.kind) {
            (Place::Decoder, _) => "decode",
            (Place::Phase(Phase::Array), Kind::Read) => "sense",
            (Place::Phase(Phase::Array), Kind::Program) => "program",
            (Place::Phase(Phase::Array), Kind::Erase) => "erase",
            (Place::Phase(Phase::Array), Kind::Copyback) => "copyback",
            (Place::Phase(Phase::Command), _) => "command",
            (Place::Phase(Phase::TransferIn), _) => "transfer in",
            (Place::Phase(Phase::TransferOut), _) => "transfer out",
            (Place::Phase(Phase::Idle), _) => unreachable!("an idle die has no phase to record"),
        };
        self.event(format_args!(
            "\"ph\":\"X\",{},\"name\":\"{name}\",\"cat\":\"{}\",\"ts\":{},\"dur\":{},\
             \"args\":{{\"operation\":{},\"die\":{},\"ppn\":{},\"lpn\":{}{}}}",
            Track(process, Some(track)),
            slice.cause.name(),
            Micros(slice.start.ns()),
            Micros((slice.end - slice.start).ns()),
            slice.operation,
            slice.die,
            slice.ppn,
            slice.lpn,
            Details(slice),
        ));
    }

    fn arrow(&mut self, end: &str, process: Process, track: u32, operation: u64, at: Time) {
        let (track, at) = (Track(process, Some(track)), Micros(at.ns()));
        self.event(format_args!(
            "{end},{track},\"name\":\"operation\",\"cat\":\"request\",\"id\":{operation},\"ts\":{at}"
        ));
    }
}

/// Nanoseconds, in microseconds.
struct Micros(u64);

impl fmt::Display for Micros {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}.{:03}", self.0 / 1000, self.0 % 1000)
    }
}

/// A process, or a track of it.
struct Track(Process, Option<u32>);

impl fmt::Display for Track {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "\"pid\":{}", self.0 as u32)?;
        self.1.map_or(Ok(()), |track| write!(f, ",\"tid\":{track}"))
    }
}

/// What only some slices have.
struct Details<'a>(&'a Slice);

impl fmt::Display for Details<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let slice = self.0;
        if slice.kind == Kind::Read {
            write!(f, ",\"level\":{}", slice.level)?;
        }
        if slice.pages > 1 {
            write!(f, ",\"pages\":{}", slice.pages)?;
        }
        if let Some(request) = slice.request {
            write!(f, ",\"request\":{request}")?;
        }
        if slice.is_cut {
            f.write_str(",\"power_lost\":true")?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::base::geometry::{Lpn, Ppn};
    use crate::base::slab::Node;

    const DIE: DieId = DieId(1);

    fn at(us: u64) -> Time {
        Time::from_ns(us * 1000)
    }

    fn asked(op: Op, us: u64, len: u64) -> Request {
        Request { arrival: at(us), op, fua: false, offset: 8192, len }
    }

    fn read(order: u64, owner: Owner) -> Transaction {
        let (ppn, lpn) = (Ppn(10 + order as u32), Lpn(order as u32));
        Transaction { order, owner, ppn, lpn, ..Transaction::EMPTY }
    }

    fn complete(timeline: &mut Timeline, slot: u32, id: u64, request: Request, us: u64) {
        let done = Completion { id, request, completed: at(us), failed: None };
        timeline.on_completed(RequestId(slot), &done);
    }

    /// The events without those that name tracks, each in short: what, where, when, and its number.
    fn events(timeline: &Timeline, now: u64) -> Vec<String> {
        let trace: serde_json::Value = serde_json::from_str(&timeline.to_json(at(now))).expect("it is JSON");
        let events = trace["traceEvents"].as_array().expect("it has events");
        let short = |e: &serde_json::Value| {
            let (args, id) = (&e["args"], &e["id"]);
            let number =
                [&args["operation"], &args["request"], id].into_iter().find(|n| n.is_number()).unwrap();
            let name = if e["ph"] == "X" { &e["name"] } else { &e["ph"] }.as_str().unwrap();
            let end = e["dur"]
                .as_f64()
                .map_or(String::new(), |dur| format!("-{}", e["ts"].as_f64().unwrap() + dur));
            let flags = ["pages", "outstanding", "failed", "power_lost"].map(|key| match &args[key] {
                serde_json::Value::Null => String::new(),
                value => format!(" {key}={value}"),
            });
            let when = e["ts"].as_f64().unwrap();
            format!("{name} {number} {}:{} {when}{end}{}", e["pid"], e["tid"], flags.concat())
        };
        events.iter().filter(|e| e["ph"] != "M").map(short).collect()
    }

    #[test]
    fn each_page_of_a_batch_and_each_first_try_has_its_arrow() {
        let mut timeline = Timeline::new(3);
        let (first, second) = (asked(Op::Read, 0, 4096), asked(Op::Read, 1, 8192));
        timeline.on_submitted(RequestId(0), 5, &first, 0);
        timeline.on_submitted(RequestId(1), 6, &second, 1);
        // Submitted after the last operation that is recorded.
        timeline.on_submitted(RequestId(2), 7, &second, 3);
        // One that is not recorded takes two along that are.
        let (unseen, one) = (read(3, Owner::Request(RequestId(2))), read(0, Owner::Request(RequestId(0))));
        let other = read(1, Owner::Request(RequestId(1)));
        timeline.on_issue(at(2), DIE, &unseen);
        timeline.on_joined(at(2), DIE, &unseen, &one);
        timeline.on_joined(at(2), DIE, &unseen, &other);
        timeline.on_phase(at(2), at(5), DIE, 0, Phase::Array, &unseen);
        timeline.on_phase(at(5), at(6), DIE, 0, Phase::TransferOut, &unseen);
        timeline.on_phase(at(6), at(7), DIE, 0, Phase::TransferOut, &one);
        timeline.on_decode(at(7), at(9), 0, 2, &one);
        timeline.on_phase(at(7), at(8), DIE, 0, Phase::TransferOut, &other);
        timeline.on_decode(at(8), at(10), 0, 2, &other);
        complete(&mut timeline, 0, 5, first, 9);
        // The slot is used again; the read of the second request is tried again; GC has no arrow.
        timeline.on_submitted(RequestId(0), 8, &first, 4);
        let again = Transaction { level: 2, tries: 1, ..other };
        timeline.on_issue(at(10), DIE, &again);
        timeline.on_phase(at(10), at(12), DIE, 0, Phase::Array, &again);
        let gc = Transaction { cause: Cause::Gc, kind: Kind::Erase, ..read(2, Owner::Padding) };
        timeline.on_issue(at(12), DIE, &gc);
        timeline.on_phase(at(12), at(20), DIE, 0, Phase::Array, &gc);
        assert_eq!(
            events(&timeline, 15),
            [
                "read 4 KiB 5 4:0 0-9",
                "s 0 4:0 0",
                "read 8 KiB 6 4:1 1-15 outstanding=true",
                "s 1 4:1 1",
                "sense 0 1:1 2-5 pages=3",
                "f 0 1:1 2",
                "f 1 1:1 2",
                "transfer out 0 2:0 6-7",
                "decode 0 3:1 7-9",
                "transfer out 1 2:0 7-8",
                "decode 1 3:2 8-10",
                "sense 1 1:1 10-12",
                "erase 2 1:1 12-20",
            ]
        );
    }

    #[test]
    fn power_loss_ends_what_is_under_way() {
        let mut timeline = Timeline::new(10);
        let write = asked(Op::Write, 0, 4096);
        timeline.on_submitted(RequestId(0), 0, &write, 0);
        let program = Transaction { kind: Kind::Program, ..read(0, Owner::Request(RequestId(0))) };
        timeline.on_issue(at(0), DIE, &program);
        timeline.on_phase(at(0), at(1), DIE, 0, Phase::TransferIn, &program);
        timeline.on_decode(at(0), at(4), 0, 1, &read(1, Owner::Padding));
        // The program begins after the loss, and is torn.
        timeline.on_phase(at(3), at(9), DIE, 0, Phase::Array, &program);
        timeline.on_power_off(at(2), at(7));
        // The same slot after the loss.
        timeline.on_submitted(RequestId(0), 1, &asked(Op::Flush, 8, 0), 2);
        complete(&mut timeline, 0, 1, asked(Op::Flush, 8, 0), 8);
        assert_eq!(
            events(&timeline, 8),
            [
                "write 4 KiB 0 4:0 0-2 failed=\"power_lost\"",
                "s 0 4:0 0",
                "flush 1 4:0 8-8",
                "transfer in 0 2:0 0-1",
                "f 0 2:0 0",
                "decode 1 3:1 0-2 power_lost=true",
                "program 0 1:1 3-7 power_lost=true",
            ]
        );
    }

    #[test]
    fn requests_without_operations_are_no_more_than_operations() {
        let mut timeline = Timeline::new(2);
        for id in 0..5 {
            let trim = asked(Op::Trim, id, 4096);
            timeline.on_submitted(RequestId(0), id, &trim, 0);
            complete(&mut timeline, 0, id, trim, id);
        }
        assert_eq!(events(&timeline, 5), ["trim 0 4:0 0-0", "trim 1 4:0 1-1"]);
    }

    #[test]
    fn the_first_free_lane_is_taken() {
        let mut lanes = Lanes::default();
        let spans = [(0, 9), (1, 3), (1, 2), (2, 2), (2, 5), (3, 4), (9, 9), (9, 10)];
        let taken = spans.map(|(start, end)| lanes.take(at(start), at(end)));
        // What takes no time has its lane for itself at that time.
        assert_eq!(taken, [0, 1, 2, 2, 3, 1, 0, 1]);
        assert_eq!(lanes.count, 4);
    }
}
