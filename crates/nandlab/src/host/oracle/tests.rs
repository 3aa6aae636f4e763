//! Tests of the oracle.

use super::*;
use crate::base::request::FailReason;
use crate::base::units::Time;

const LPN: Lpn = Lpn(3);
const READ: RequestId = RequestId(0);
const UNIT: u64 = 4096;

/// An oracle, and the numbers of the requests and operations that it has seen.
struct Watch {
    oracle: Oracle,
    requests: u64,
    sequence: u64,
}

impl Watch {
    fn new() -> Self {
        Self { oracle: Oracle::new(8), requests: 0, sequence: 0 }
    }

    /// Submits a request for `units` units from `LPN` on. Returns its slot and the completion that it will get.
    fn submit(&mut self, op: Op, fua: bool, units: u64) -> (RequestId, Completion) {
        self.requests += 1;
        let (slot, id) = (RequestId(self.requests as u32), self.requests);
        let offset = u64::from(LPN.0) * UNIT;
        let request = Request::new(op, offset, units * UNIT).with_fua(fua);
        self.oracle.on_submitted(slot, id, &request, 0);
        if op == Op::Flush {
            self.oracle.on_flush_asked(id);
        }
        (slot, Completion { id, request, completed: Time::START, failed: None })
    }

    /// The drive admits the first `units` units of a write or TRIM.
    fn admit(&mut self, (slot, done): &(RequestId, Completion), units: u32) {
        for lpn in (LPN.0..LPN.0 + units).map(Lpn) {
            self.sequence += 1;
            if done.request.op == Op::Trim {
                self.oracle.on_trimmed(*slot, lpn, self.sequence);
            } else {
                self.oracle.on_write_admitted(Some(*slot), lpn, self.sequence);
                self.oracle.on_write_acknowledged(lpn, self.sequence);
            }
        }
    }

    fn complete(&mut self, (slot, done): &(RequestId, Completion)) {
        self.oracle.on_completed(*slot, done);
    }

    /// A request of one unit from its submission to its completion.
    fn one(&mut self, op: Op, fua: bool) {
        let asked = self.submit(op, fua, u64::from(op != Op::Flush));
        self.admit(&asked, u32::from(op != Op::Flush));
        if op == Op::Flush {
            self.oracle.on_flushed(asked.1.id, true);
        }
        self.complete(&asked);
    }

    /// Power fails, every unit has the `content`, and the drive lists `lost`. Returns the first violation.
    fn cut(mut self, content: Content, lost: &[Lost]) -> Result<(), String> {
        self.lose(content, lost);
        self.oracle.verdict()
    }

    fn lose(&mut self, content: Content, lost: &[Lost]) {
        let torn = lost.iter().filter(|lost| lost.was_in_flash);
        let destroyed: Vec<(Lpn, u64)> = torn.map(|lost| (lost.lpn, lost.sequence)).collect();
        // No other LPN is deallocated.
        let of = |lpn| {
            if matches!(content, Content::Trimmed(_)) && lpn != LPN { Content::Nothing } else { content }
        };
        let (unit_bytes, content) = (UNIT as u32, &of);
        let recovered = Recovered { units: 8, unit_bytes, destroyed: &destroyed, content, changed: None };
        self.oracle.on_power_loss(lost, &recovered);
    }
}

fn lost(promise: Promise, sequence: u64) -> Lost {
    Lost { lpn: LPN, promise, sequence, is_trim: false, was_in_flash: false }
}

#[track_caller]
fn is_caught(verdict: Result<(), String>, says: &str) {
    let text = verdict.expect_err("the oracle detected no violation");
    assert!(text.contains(says), "{text:?} does not contain {says:?}");
}

/// The entry of the drive must be exactly this one.
#[track_caller]
fn demands(watch: impl Fn() -> Watch, content: Content, expected: Option<Lost>) {
    let list: Vec<Lost> = expected.into_iter().collect();
    watch().cut(content, &list).unwrap_or_else(|e| panic!("{e}"));
    let mut wrong: Vec<Vec<Lost>> = [Promise::Covered, Promise::Acknowledged, Promise::InFlight]
        .into_iter()
        .flat_map(|promise| (0..4).map(move |sequence| vec![lost(promise, sequence)]))
        .collect();
    wrong.extend([vec![], list.iter().chain(&list).copied().collect()]);
    for wrong in wrong.into_iter().filter(|wrong| *wrong != list) {
        is_caught(watch().cut(content, &wrong), "but the completions say");
    }
}

#[test]
fn a_lost_write_is_judged_by_the_completions_of_its_request_and_of_flushes() {
    use Promise::{Acknowledged, Covered, InFlight};
    let nothing = Content::Nothing;
    // The write has been admitted and acknowledged unit by unit, and its request has not completed.
    let begun = || {
        let mut watch = Watch::new();
        let asked = watch.submit(Op::Write, false, 1);
        watch.admit(&asked, 1);
        (watch, asked)
    };
    demands(|| begun().0, nothing, Some(lost(InFlight, 1)));
    let completed = || {
        let (mut watch, asked) = begun();
        watch.complete(&asked);
        watch
    };
    demands(completed, nothing, Some(lost(Acknowledged, 1)));
    demands(completed, Content::Write(1), None);
    // A flush covers the write once the flush has completed.
    let asked_flush = || {
        let mut watch = completed();
        let flush = watch.submit(Op::Flush, false, 0);
        (watch, flush)
    };
    demands(|| asked_flush().0, nothing, Some(lost(Acknowledged, 1)));
    let flushed = || {
        let (mut watch, flush) = asked_flush();
        watch.complete(&flush);
        watch
    };
    demands(flushed, nothing, Some(lost(Covered, 1)));
    // A newer write is acknowledged: without it the unit must still have the covered one.
    let rewritten = || {
        let mut watch = flushed();
        watch.one(Op::Write, false);
        watch
    };
    demands(rewritten, Content::Write(1), Some(lost(Acknowledged, 2)));
    demands(rewritten, nothing, Some(lost(Covered, 1)));
    let forced = || {
        let mut watch = Watch::new();
        watch.one(Op::Write, true);
        watch
    };
    demands(forced, nothing, Some(lost(Covered, 1)));
    // A write that was overwritten while the flush that covers it was outstanding.
    let overtaken = || {
        let (mut watch, flush) = asked_flush();
        watch.one(Op::Write, false);
        watch.complete(&flush);
        watch
    };
    demands(overtaken, nothing, Some(lost(Covered, 1)));
    demands(overtaken, Content::Write(1), Some(lost(Acknowledged, 2)));
    demands(overtaken, Content::Unreadable, Some(lost(Covered, 1)));
}

#[test]
fn every_unit_of_an_outstanding_write_is_in_flight_and_a_failed_write_promises_nothing() {
    let begun = || {
        let mut watch = Watch::new();
        let asked = watch.submit(Op::Write, false, 3);
        watch.admit(&asked, 2);
        (watch, asked)
    };
    let of = |lpn, sequence| Lost { lpn: Lpn(lpn), ..lost(Promise::InFlight, sequence) };
    let list = [of(3, 1), of(4, 2), of(5, 0)];
    begun().0.cut(Content::Nothing, &list).unwrap();
    for left_out in 0..3 {
        let mut list = list.to_vec();
        list.remove(left_out);
        is_caught(begun().0.cut(Content::Nothing, &list), "but the completions say");
    }
    let (mut watch, (slot, done)) = begun();
    watch.complete(&(slot, Completion { failed: Some(FailReason::WornOut), ..done }));
    watch.cut(Content::Nothing, &[]).unwrap();
}

#[test]
fn a_trim_is_lost_only_if_a_completed_flush_covers_it() {
    let trimmed = |is_flushed: bool| {
        let mut watch = Watch::new();
        watch.one(Op::Write, false);
        watch.one(Op::Flush, false);
        watch.one(Op::Trim, false);
        if is_flushed {
            watch.one(Op::Flush, false);
        }
        watch
    };
    trimmed(false).cut(Content::Write(1), &[]).unwrap();
    trimmed(false).cut(Content::Trimmed(2), &[]).unwrap();
    trimmed(true).cut(Content::Trimmed(2), &[]).unwrap();
    is_caught(trimmed(false).cut(Content::Nothing, &[]), "but the completions say");
    is_caught(trimmed(true).cut(Content::Trimmed(3), &[]), "but the newest was 2");
    is_caught(trimmed(true).cut(Content::Write(1), &[]), "but the completions say");
    let undone = Lost { is_trim: true, ..lost(Promise::Covered, 2) };
    trimmed(true).cut(Content::Write(1), &[undone]).unwrap();
    // The TRIM is undone, and data from before the covered write is back.
    trimmed(false).cut(Content::Write(0), &[lost(Promise::Covered, 1)]).unwrap();
}

#[test]
fn what_was_safe_may_be_lost_only_with_a_torn_program() {
    let safe = |in_flash: bool| {
        let mut watch = Watch::new();
        watch.one(Op::Write, false);
        if in_flash {
            watch.oracle.on_write_durable(LPN, 1);
        }
        let flush = watch.submit(Op::Flush, false, 0);
        watch.oracle.on_flushed(flush.1.id, false);
        watch.complete(&flush);
        watch
    };
    for in_flash in [false, true] {
        let entry = lost(Promise::Covered, 1);
        is_caught(safe(in_flash).cut(Content::Nothing, &[entry]), "but 1 was safe");
        let torn = Lost { was_in_flash: true, ..entry };
        safe(in_flash).cut(Content::Nothing, &[torn]).unwrap();
    }
}

#[test]
fn after_a_power_loss_a_unit_reads_as_the_drive_has_said() {
    let accepts = |content: Content, found: Option<u64>| {
        let mut watch = Watch::new();
        (0..3).for_each(|_| watch.one(Op::Write, false));
        let list = match content {
            Content::Write(3) => vec![],
            _ => vec![lost(Promise::Acknowledged, 3)],
        };
        watch.lose(content, &list);
        watch.oracle.verdict().unwrap();
        watch.oracle.on_read_asked(READ, LPN);
        watch.oracle.on_read_answered(READ, LPN, found);
        watch.oracle.verdict().is_ok()
    };
    for (content, accepted) in [
        (Content::Write(3), [false, false, false, true]),
        (Content::Write(2), [false, false, true, false]),
        (Content::Nothing, [true, false, false, false]),
    ] {
        let found = [None, Some(1), Some(2), Some(3)].map(|found| accepts(content, found));
        assert_eq!(found, accepted, "{content:?}");
    }
}

/// What the unit has after a loss takes over the promise: losing it, too, is another loss.
#[test]
fn a_loss_is_listed_once() {
    let mut watch = Watch::new();
    (0..2).for_each(|_| watch.one(Op::Write, false));
    let mut cut = |content: Content, lost: &[Lost]| {
        watch.lose(content, lost);
        watch.oracle.verdict().unwrap_or_else(|e| panic!("{e}"));
    };
    cut(Content::Write(1), &[lost(Promise::Acknowledged, 2)]);
    cut(Content::Write(1), &[]);
    cut(Content::Nothing, &[lost(Promise::Acknowledged, 1)]);
    cut(Content::Nothing, &[]);
}

/// A TRIM in flight that has taken effect stands for no data, also after a newer write has been recovered and lost.
#[test]
fn a_recorded_trim_is_older_than_the_write_that_was_lost_after_it() {
    let mut watch = Watch::new();
    watch.one(Op::Write, true);
    let trim = watch.submit(Op::Trim, false, 1);
    watch.admit(&trim, 1);
    watch.lose(Content::Trimmed(2), &[]);
    watch.one(Op::Write, false);
    watch.lose(Content::Write(3), &[]);
    watch.one(Op::Write, false);
    watch.cut(Content::Trimmed(2), &[lost(Promise::Acknowledged, 4)]).unwrap();
}
