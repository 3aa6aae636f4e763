//! The observer that knows which write each read returns.

use nandlab::base::geometry::{Lpn, RequestId};
use nandlab::host::{Completion, Op, Request};
use nandlab::probe::Probe;
use nandlab::sched::Watcher;
use std::collections::HashMap;

/// The writes whose data a read returned, by mapping unit: the number of the request; `None` for a unit that no request has
/// written since it was deallocated or preconditioned.
pub(crate) type Returned = Vec<Option<u64>>;

/// A request that is under way.
#[derive(Debug, Default)]
struct Submitted {
    id: u64,
    first: u64,
    returned: Returned,
}

/// Follows writes by their sequence numbers, and collects for each read the writes that it returns.
#[derive(Debug)]
pub(crate) struct Versions {
    unit_bytes: u64,
    /// By slot of the drive.
    submitted: Vec<Submitted>,
    /// The first sequence number of each stretch of units that one request wrote, and the request; in order of sequence
    /// numbers.
    writes: Vec<(u64, Option<u64>)>,
    /// The reads that have ended, by the number of the request.
    ended: HashMap<u64, Returned>,
}

impl Versions {
    pub(crate) fn new(unit_bytes: u32) -> Self {
        let (submitted, writes, ended) = Default::default();
        Self { unit_bytes: unit_bytes.into(), submitted, writes, ended }
    }

    /// Takes what a read returned that has ended.
    pub(crate) fn take(&mut self, id: u64) -> Option<Returned> {
        self.ended.remove(&id)
    }

    /// The request that wrote the unit with this sequence number.
    fn writer(&self, sequence: u64) -> Option<u64> {
        let after = self.writes.partition_point(|&(first, _)| first <= sequence);
        self.writes[..after].last().and_then(|&(_, id)| id)
    }
}

impl Watcher for Versions {
    fn sees_phases(&self) -> bool {
        false
    }
}

impl Probe for Versions {
    fn needs_sequences(&self) -> bool {
        true
    }

    fn sees_work(&self) -> bool {
        false
    }

    fn on_submitted(&mut self, slot: RequestId, id: u64, request: &Request, _operations: u64) {
        if self.submitted.len() <= slot.index() {
            self.submitted.resize_with(slot.index() + 1, Submitted::default);
        }
        let submitted = &mut self.submitted[slot.index()];
        (submitted.id, submitted.first) = (id, request.offset / self.unit_bytes);
        submitted.returned.clear();
        if request.op == Op::Read {
            let end = (request.offset + request.len).div_ceil(self.unit_bytes);
            submitted.returned.resize((end - submitted.first) as usize, None);
        }
    }

    fn on_write_admitted(&mut self, request: Option<RequestId>, _lpn: Lpn, sequence: u64) {
        let id = request.map(|slot| self.submitted[slot.index()].id);
        // After a power loss the numbers of writes that it destroyed are given again.
        while self.writes.last().is_some_and(|&(first, _)| first >= sequence) {
            self.writes.pop();
        }
        if self.writes.last().is_none_or(|&(_, last)| last != id) {
            self.writes.push((sequence, id));
        }
    }

    fn on_read_answered(&mut self, request: RequestId, lpn: Lpn, sequence: Option<u64>) {
        let writer = sequence.and_then(|sequence| self.writer(sequence));
        let submitted = &mut self.submitted[request.index()];
        let index = u64::from(lpn.0).wrapping_sub(submitted.first);
        // A write of a part of a unit reads the unit too.
        if let Some(unit) = submitted.returned.get_mut(index as usize) {
            *unit = writer;
        }
    }

    fn on_completed(&mut self, slot: RequestId, done: &Completion) {
        if done.request.op == Op::Read && done.failed.is_none() {
            let returned = std::mem::take(&mut self.submitted[slot.index()].returned);
            self.ended.insert(done.id, returned);
        }
    }
}
