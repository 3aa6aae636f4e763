//! The timeline: every phase of the first flash operations and the requests submitted meanwhile, as a Chrome / Perfetto
//! trace.
//!
//! The file opens in ui.perfetto.dev or chrome://tracing. Times are in microseconds with three decimals.
//!
//! | process | has a track for each | slices |
//! |---|---|---|
//! | host requests | lane | requests, from arrival to completion |
//! | dies | die; with `timing.plane_reads` also for the reads of each group of planes | array work |
//! | channels | channel | commands and transfers |
//! | decoder | read level, lane | decoding |
//!
//! The slices of a track never overlap. A die, a group of planes and a channel serve one operation at a time; a request
//! and a page to be decoded take the free lane with the lowest number. A lane is one of several tracks for slices that
//! overlap in time.
//!
//! **Operations.** The operations submitted first, or first after the warm-up, are recorded, each with its number
//! (`operation`), die, PPN and LPN. A read also has its read level (`level`), and an operation of a host request the
//! number of that request (`request`). The pages of a multi-plane operation (their number is `pages`) share one slice,
//! which names the first recorded page; the transfer out and the decoding of each page are slices of their own.
//!
//! **Requests.** A request is recorded if it was submitted before the last recorded operation; a request of the warm-up
//! only if it was outstanding when the warm-up ended. So every recorded operation of the host has its request. Of the
//! requests that end without a recorded operation, at most as many are recorded as operations are to be recorded
//! (`output.timeline_operations`). A request still outstanding when the run ends is drawn to the end of the run and
//! marked `outstanding`; a failed request has its reason (`failed`).
//!
//! **Arrows** (flow events) lead from a request to the first slice of each of its operations: the reads, those of a
//! read-modify-write included, and the programs of its units. The `id` of an arrow is the number of the operation. All
//! tries of a read are one operation with one arrow; each page of a multi-plane operation has its own arrow to the
//! shared slice. Background operations, from GC to the write-backs of the write cache, belong to no request and have no
//! arrow.
//!
//! **Suspension** (`timing.suspend`): an operation has a slice of array work until its die is ready for the host reads,
//! and one more from its resumption on.
//!
//! **Power loss** ends requests and decoding at the time of the failure. Slices of dies and channels end when the last
//! operation has ended or was torn; a slice that is cut short is marked `power_lost`.

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
use std::ops::Range;

/// The part of an operation that a slice shows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Stage {
    Phase(Phase),
    Decoder,
}

/// One phase of an operation; of a multi-plane operation, the phase of all its pages.
#[derive(Clone, Copy, Debug)]
struct Slice {
    start: Time,
    end: Time,
    operation: u64,
    /// The number of the request that the operation belongs to.
    request: Option<u64>,
    die: u32,
    plane: u8,
    /// The number of the die, or of the station of its planes ([`Watcher`]).
    station: u32,
    ppn: u32,
    lpn: u32,
    channel: u32,
    stage: Stage,
    kind: FlashOp,
    level: u8,
    cause: Cause,
    pages: u8,
    /// Whether power loss has cut the slice short.
    is_cut: bool,
}

/// A recorded request.
#[derive(Clone, Copy, Debug)]
struct RecordedRequest {
    id: u64,
    request: Request,
    /// Time of completion; `None` while the request is outstanding.
    end: Option<Time>,
    failed: Option<FailReason>,
    /// Whether the request has a recorded operation.
    has_operation: bool,
    /// Whether the request is recorded: it was submitted before the last recorded operation, or the warm-up ended while
    /// it was outstanding.
    is_recorded: bool,
}

/// An arrow from a request to the first slice of one of its operations.
#[derive(Clone, Copy, Debug)]
struct Arrow {
    slice: usize,
    request: u64,
    operation: u64,
}

/// The operation that a die executes: a single transaction, or the transactions of a multi-plane operation.
#[derive(Clone, Debug, Default)]
struct UnderWay {
    /// Number of transactions.
    pages: u8,
    /// The first transaction that is recorded.
    first: Option<Transaction>,
    /// Request and operation of each arrow that ends at the next slice.
    arrows: Vec<(u64, u64)>,
    /// The index of the last slice of the operation.
    slice: Option<usize>,
}

/// Records the phases of the operations submitted first, and the requests submitted meanwhile.
#[derive(Debug)]
pub struct Timeline {
    /// The numbers of the operations to record.
    operations: Range<u64>,
    /// The slices, in the order in which they began.
    slices: Vec<Slice>,
    /// The arrows, in the order of their slices.
    arrows: Vec<Arrow>,
    /// The recorded requests that have been completed or have failed.
    requests: Vec<RecordedRequest>,
    /// Number of requests that have ended without a recorded operation.
    idle_requests: u64,
    /// By slot of the host's requests: the last request in the slot.
    slots: Vec<Option<RecordedRequest>>,
    dies: Vec<UnderWay>,
    /// By die the operation that is suspended; empty without suspensions.
    suspended: Vec<UnderWay>,
}

impl Timeline {
    /// Records the first `operations` operations.
    pub fn new(operations: u64) -> Self {
        Self {
            operations: 0..operations,
            slices: Vec::new(),
            arrows: Vec::new(),
            requests: Vec::new(),
            idle_requests: 0,
            slots: Vec::new(),
            dies: Vec::new(),
            suspended: Vec::new(),
        }
    }

    /// Adds a transaction to the operation that the die begins.
    fn begin(&mut self, die: DieId, transaction: &Transaction) {
        let work = &mut self.dies[die.index()];
        work.pages += 1;
        if !self.operations.contains(&transaction.order) {
            return;
        }
        work.first.get_or_insert(*transaction);
        if transaction.tries == 0
            && let Some(request) = Self::request_of(&mut self.slots, transaction)
        {
            request.has_operation = true;
            work.arrows.push((request.id, transaction.order));
        }
    }

    /// The recorded request that a transaction belongs to.
    fn request_of<'a>(
        slots: &'a mut [Option<RecordedRequest>],
        transaction: &Transaction,
    ) -> Option<&'a mut RecordedRequest> {
        match transaction.owner {
            Owner::Request(slot) | Owner::Merge(slot) => {
                slots.get_mut(slot.index())?.as_mut().filter(|request| request.is_recorded)
            }
            _ => None,
        }
    }

    fn record(
        &mut self,
        [start, end]: [Time; 2],
        station: DieId,
        channel: u32,
        stage: Stage,
        pages: u8,
        t: &Transaction,
    ) {
        let request = Self::request_of(&mut self.slots, t).map(|request| request.id);
        let (ppn, lpn) = (t.unit.0, t.lpn.0);
        self.slices.push(Slice {
            start,
            end,
            operation: t.order,
            request,
            die: t.die.0,
            plane: t.plane_in_die,
            station: station.0,
            ppn,
            lpn,
            channel,
            stage,
            kind: t.kind,
            level: t.level,
            cause: t.cause,
            pages,
            is_cut: false,
        });
    }

    /// Records the end of the request in `slot`.
    fn end_request(&mut self, slot: usize, end: Time, failed: Option<FailReason>) {
        let Some(request) = self.slots.get_mut(slot).and_then(Option::as_mut) else { return };
        (request.end, request.failed) = (Some(end), failed);
        if !request.is_recorded {
            return;
        }
        if !request.has_operation {
            self.idle_requests += 1;
            if self.idle_requests > self.operations.end - self.operations.start {
                return;
            }
        }
        self.requests.push(*request);
    }
}

impl Watcher for Timeline {
    fn on_issue(&mut self, _: Time, die: DieId, transaction: &Transaction) {
        if self.dies.len() <= die.index() {
            self.dies.resize(die.index() + 1, UnderWay::default());
        }
        let work = &mut self.dies[die.index()];
        (work.pages, work.first, work.slice) = (0, None, None);
        work.arrows.clear();
        self.begin(die, transaction);
    }

    fn on_joined(&mut self, _: Time, die: DieId, _: &Transaction, transaction: &Transaction) {
        self.begin(die, transaction);
    }

    fn on_phase(&mut self, start: Time, end: Time, die: DieId, channel: u32, phase: Phase, t: &Transaction) {
        let work = &mut self.dies[die.index()];
        let Some(first) = work.first else { return };
        // Pages are transferred out one by one; every other phase is common to all pages of a multi-plane operation.
        let (named, pages) = if phase == Phase::TransferOut { (*t, 1) } else { (first, work.pages) };
        if !self.operations.contains(&named.order) {
            return;
        }
        let slice = self.slices.len();
        let arrows = work.arrows.drain(..);
        self.arrows.extend(arrows.map(|(request, operation)| Arrow { slice, request, operation }));
        work.slice = Some(slice);
        self.record([start, end], die, channel, Stage::Phase(phase), pages, &named);
    }

    fn on_suspend(&mut self, _: Time, ready: Time, die: DieId) {
        if self.suspended.len() < self.dies.len() {
            self.suspended.resize(self.dies.len(), UnderWay::default());
        }
        let work = std::mem::take(&mut self.dies[die.index()]);
        if let Some(slice) = work.slice {
            self.slices[slice].end = ready;
        }
        self.suspended[die.index()] = work;
    }

    fn on_resume(&mut self, _: Time, die: DieId) {
        self.dies[die.index()] = std::mem::take(&mut self.suspended[die.index()]);
    }
}

impl Probe for Timeline {
    fn on_submitted(&mut self, slot: RequestId, id: u64, request: &Request, operations: u64) {
        if self.slots.len() <= slot.index() {
            self.slots.resize(slot.index() + 1, None);
        }
        let is_recorded = self.operations.contains(&operations);
        let (request, has_operation) = (*request, false);
        self.slots[slot.index()] =
            Some(RecordedRequest { id, request, end: None, failed: None, has_operation, is_recorded });
    }

    /// Drops what was recorded in the warm-up, except the outstanding requests.
    fn on_results(&mut self, operations: u64) {
        let length = self.operations.end - self.operations.start;
        let (mut dies, mut suspended) = (std::mem::take(&mut self.dies), std::mem::take(&mut self.suspended));
        for work in dies.iter_mut().chain(&mut suspended) {
            (work.first, work.slice) = (None, None);
            work.arrows.clear();
        }
        let outstanding = |request: &RecordedRequest| request.end.is_none();
        let begun = |request| RecordedRequest { has_operation: false, is_recorded: true, ..request };
        let slots = self.slots.iter().map(|slot| slot.filter(outstanding).map(begun)).collect();
        let operations = operations..operations.saturating_add(length);
        *self = Self { operations, dies, suspended, slots, ..Self::new(length) };
    }

    fn on_completed(&mut self, slot: RequestId, done: &Completion) {
        self.end_request(slot.index(), done.completed, done.failed);
    }

    fn on_decode(&mut self, start: Time, end: Time, channel: u32, level: u8, t: &Transaction) {
        if self.operations.contains(&t.order) {
            let read = Transaction { level, ..*t };
            self.record([start, end], t.die, channel, Stage::Decoder, 1, &read);
        }
    }

    fn on_power_off(&mut self, failed: Time, off: Time) {
        for slot in 0..self.slots.len() {
            if self.slots[slot].is_some_and(|request| request.end.is_none()) {
                self.end_request(slot, failed, Some(FailReason::PowerLost));
            }
        }
        for slice in &mut self.slices {
            let last = if slice.stage == Stage::Decoder { failed } else { off };
            if slice.end > last {
                (slice.end, slice.is_cut) = (last, true);
            }
        }
    }
}
