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

mod lanes;
#[cfg(test)]
mod tests;
mod trace;

use crate::base::geometry::{DieId, RequestId};
use crate::base::units::Time;
use crate::drive::{Completion, FailReason};
use crate::host::Request;
use crate::probe::Probe;
use crate::sched::{Cause, FlashOp, Owner, Phase, Transaction, Watcher};

/// Where something happens.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Stage {
    Phase(Phase),
    Decoder,
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
    place: Stage,
    kind: FlashOp,
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
        place: Stage,
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
        self.record([start, end], die, channel, Stage::Phase(phase), pages, &named);
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
            self.record([start, end], t.die, channel, Stage::Decoder, 1, &read);
        }
    }

    fn on_power_off(&mut self, failed: Time, off: Time) {
        for slot in 0..self.slots.len() {
            if self.slots[slot].is_some_and(|asked| asked.end.is_none()) {
                self.end_request(slot, failed, Some(FailReason::PowerLost));
            }
        }
        for slice in &mut self.slices {
            let last = if slice.place == Stage::Decoder { failed } else { off };
            if slice.end > last {
                (slice.end, slice.is_cut) = (last, true);
            }
        }
    }
}
