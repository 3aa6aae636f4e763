//! Tests of the checks: the oracle and the audit detect violations by a broken drive, and report no violation for legal
//! behaviour.
//!
//! The tests pass events to the oracle as a drive would. A violation that the oracle did not detect here would also
//! remain undetected in the runs of other tests.

use crate::common::{self, TINY, ns, one, spec};
use nandlab::base::geometry::{Lpn, RequestId, SuperblockId};
use nandlab::base::rng::Stream;
use nandlab::drive::Drive;
use nandlab::host::{Op, Oracle, Request};
use nandlab::probe::{NoProbe, Probe};
use nandlab::sched::Watcher;

const A: Lpn = Lpn(7);
const B: Lpn = Lpn(8);

/// An event at the host interface.
#[derive(Clone, Copy, Debug)]
enum Event {
    Admitted(Lpn, u64),
    Acknowledged(Lpn, u64),
    Trimmed(Lpn, u64),
    Asked(u32, Lpn),
    Answered(u32, Lpn, Option<u64>),
}
use Event::{Acknowledged, Admitted, Answered, Asked, Trimmed};

fn tell(oracle: &mut Oracle, events: &[Event]) {
    for &event in events {
        match event {
            Admitted(lpn, sequence) => oracle.on_write_admitted(None, lpn, sequence),
            Acknowledged(lpn, sequence) => oracle.on_write_acknowledged(lpn, sequence),
            Trimmed(lpn, sequence) => oracle.on_trimmed(RequestId(0), lpn, sequence),
            Asked(request, lpn) => oracle.on_read_asked(RequestId(request), lpn),
            Answered(request, lpn, sequence) => {
                oracle.on_read_answered(RequestId(request), lpn, sequence);
            }
        }
    }
}

fn verdict(events: &[Event]) -> Result<(), String> {
    let mut oracle = Oracle::default();
    tell(&mut oracle, events);
    oracle.verdict()
}

/// Returns the verdict of an oracle that expects LPN `A` to be mapped before the first event, and `B` to be unmapped.
fn preconditioned(events: &[Event]) -> Result<(), String> {
    let mut map = nandlab::ftl::UnitMap::new(16);
    map.set(A, nandlab::base::geometry::UnitId(3));
    let mut oracle = Oracle::default();
    oracle.expect_preconditioned(&map);
    tell(&mut oracle, events);
    oracle.verdict()
}

#[track_caller]
fn is_caught(verdict: Result<(), String>, says: &str) {
    let text = verdict.expect_err("the oracle detected no violation");
    assert!(text.contains(says), "{text:?} does not contain {says:?}");
}

#[test]
fn a_stale_read_is_caught() {
    let events = [
        Admitted(A, 1),
        Acknowledged(A, 1),
        Admitted(A, 2),
        Acknowledged(A, 2),
        Asked(0, A),
        Answered(0, A, Some(1)),
    ];
    is_caught(verdict(&events), "LPN 7: read returned write 1, expected sequence numbers 2");
}

#[test]
fn a_lost_write_is_caught() {
    let events = [Admitted(A, 1), Acknowledged(A, 1), Asked(0, A), Answered(0, A, None)];
    is_caught(verdict(&events), "read returned nothing");
    // The write is also lost if the unit was mapped before the run.
    is_caught(preconditioned(&events), "read returned nothing");
    is_caught(preconditioned(&[Asked(0, A), Answered(0, A, None)]), "read returned nothing");
}

#[test]
fn a_read_of_overwritten_data_from_before_the_run_is_caught() {
    let events = [Admitted(A, 1), Acknowledged(A, 1), Asked(0, A), Answered(0, A, Some(0))];
    is_caught(preconditioned(&events), "read returned write 0");
}

#[test]
fn data_that_was_never_written_is_caught() {
    is_caught(verdict(&[Asked(0, A), Answered(0, A, Some(0))]), "read returned write 0");
    is_caught(verdict(&[Asked(0, A), Answered(0, A, Some(5))]), "read returned write 5");
    is_caught(preconditioned(&[Asked(0, B), Answered(0, B, Some(0))]), "read returned write 0");
    // The read returns the data of a write that was never submitted, on a unit that was written.
    let events = [Admitted(A, 1), Acknowledged(A, 1), Asked(0, A), Answered(0, A, Some(2))];
    is_caught(verdict(&events), "read returned write 2");
}

#[test]
fn trimmed_data_that_comes_back_is_caught() {
    let events = [Admitted(A, 1), Acknowledged(A, 1), Trimmed(A, 2), Asked(0, A), Answered(0, A, Some(1))];
    is_caught(verdict(&events), "read returned write 1, expected sequence numbers 2");
    let events = [Trimmed(A, 1), Asked(0, A), Answered(0, A, Some(0))];
    is_caught(preconditioned(&events), "read returned write 0");
}

#[test]
fn a_write_after_a_trim_must_not_read_as_nothing() {
    let events = [Trimmed(A, 1), Admitted(A, 2), Acknowledged(A, 2), Asked(0, A), Answered(0, A, None)];
    is_caught(verdict(&events), "read returned nothing");
}

#[test]
fn an_answer_without_a_read_is_caught() {
    is_caught(verdict(&[Answered(0, A, None)]), "answered twice, or was never submitted");
    let twice = [Asked(0, A), Answered(0, A, None), Answered(0, A, None)];
    is_caught(verdict(&twice), "answered twice");
    is_caught(verdict(&[Asked(0, A), Answered(1, A, None)]), "never submitted");
    is_caught(verdict(&[Asked(0, A), Answered(0, B, None)]), "never submitted");
}

#[test]
fn admission_out_of_order_is_caught() {
    is_caught(verdict(&[Admitted(A, 2), Admitted(A, 1)]), "write 1 admitted after 2");
    is_caught(verdict(&[Admitted(A, 2), Admitted(A, 2)]), "write 2 admitted after 2");
    is_caught(verdict(&[Trimmed(A, 3), Admitted(A, 2)]), "write 2 admitted after 3");
}

#[test]
fn the_oracle_keeps_the_first_sixteen_violations() {
    let mut oracle = Oracle::default();
    for request in 0..100 {
        oracle.on_read_answered(RequestId(request), Lpn(request), None);
    }
    assert_eq!(oracle.checked, 100);
    assert_eq!(oracle.violations.len(), 16);
    assert!(oracle.verdict().unwrap_err().starts_with("LPN 0:"));
}

#[test]
fn legal_interleavings_are_accepted() {
    let legal: [&[Event]; 11] = [
        // A read of a unit that was never written gets no data.
        &[Asked(0, A), Answered(0, A, None)],
        // A read between admission and acknowledgement may get the new data ...
        &[
            Admitted(A, 1),
            Acknowledged(A, 1),
            Admitted(A, 2),
            Asked(0, A),
            Answered(0, A, Some(2)),
            Acknowledged(A, 2),
        ],
        // ... or the old data.
        &[
            Admitted(A, 1),
            Acknowledged(A, 1),
            Admitted(A, 2),
            Asked(0, A),
            Answered(0, A, Some(1)),
            Acknowledged(A, 2),
        ],
        // A read may get the data from before a write that is acknowledged during the read ...
        &[
            Admitted(A, 1),
            Acknowledged(A, 1),
            Asked(0, A),
            Admitted(A, 2),
            Acknowledged(A, 2),
            Answered(0, A, Some(1)),
        ],
        // ... or the data of that write.
        &[
            Admitted(A, 1),
            Acknowledged(A, 1),
            Asked(0, A),
            Admitted(A, 2),
            Acknowledged(A, 2),
            Answered(0, A, Some(2)),
        ],
        // Writes may be acknowledged in another order than that of their admission.
        &[
            Admitted(A, 1),
            Admitted(A, 2),
            Acknowledged(A, 2),
            Acknowledged(A, 1),
            Asked(0, A),
            Answered(0, A, Some(2)),
        ],
        // A read during which the unit is deallocated may get the old data or none.
        &[Admitted(A, 1), Acknowledged(A, 1), Asked(0, A), Trimmed(A, 2), Answered(0, A, Some(1))],
        &[Admitted(A, 1), Acknowledged(A, 1), Asked(0, A), Trimmed(A, 2), Answered(0, A, None)],
        // A read of a deallocated unit gets no data.
        &[Admitted(A, 1), Acknowledged(A, 1), Trimmed(A, 2), Asked(0, A), Answered(0, A, None)],
        // A read after a deallocation and a later write gets the data of the write.
        &[Trimmed(A, 1), Admitted(A, 2), Acknowledged(A, 2), Asked(0, A), Answered(0, A, Some(2))],
        // A request may read several units, and requests one after another may have the same id.
        &[
            Admitted(A, 1),
            Acknowledged(A, 1),
            Asked(0, A),
            Asked(0, B),
            Answered(0, B, None),
            Answered(0, A, Some(1)),
            Asked(0, A),
            Answered(0, A, Some(1)),
        ],
    ];
    for events in legal {
        verdict(events).unwrap_or_else(|e| panic!("{events:?}: {e}"));
    }
    let legal: [&[Event]; 4] = [
        &[Asked(0, A), Answered(0, A, Some(0))],
        &[Asked(0, B), Answered(0, B, None)],
        &[Asked(0, A), Admitted(A, 1), Acknowledged(A, 1), Answered(0, A, Some(0))],
        &[Trimmed(A, 1), Asked(0, A), Answered(0, A, None)],
    ];
    for events in legal {
        preconditioned(events).unwrap_or_else(|e| panic!("{events:?}: {e}"));
    }
}

/// An oracle to which one wrong answer is reported.
struct Faulty {
    oracle: Oracle,
    /// Number of the answer to change, among the answers with data, from 1; 0: no answer is changed.
    spoil: u64,
    answers: u64,
    how: fn(u64) -> Option<u64>,
}

impl Watcher for Faulty {}

impl Probe for Faulty {
    fn needs_sequences(&self) -> bool {
        true
    }

    fn on_write_admitted(&mut self, request: Option<RequestId>, lpn: Lpn, sequence: u64) {
        self.oracle.on_write_admitted(request, lpn, sequence);
    }
    fn on_write_acknowledged(&mut self, lpn: Lpn, sequence: u64) {
        self.oracle.on_write_acknowledged(lpn, sequence);
    }
    fn on_trimmed(&mut self, request: RequestId, lpn: Lpn, sequence: u64) {
        self.oracle.on_trimmed(request, lpn, sequence);
    }
    fn on_read_asked(&mut self, request: RequestId, lpn: Lpn) {
        self.oracle.on_read_asked(request, lpn);
    }
    fn on_read_answered(&mut self, request: RequestId, lpn: Lpn, sequence: Option<u64>) {
        let answer = match sequence {
            Some(found) => {
                self.answers += 1;
                if self.answers == self.spoil { (self.how)(found) } else { sequence }
            }
            None => None,
        };
        self.oracle.on_read_answered(request, lpn, answer);
    }
}

#[test]
fn one_wrong_answer_in_a_whole_run_is_caught() {
    let faults: [fn(u64) -> Option<u64>; 3] =
        [|found| Some(found - 1), |found| Some(found + 100_000), |_| None];
    for how in faults {
        for spoil in [0, 1, 50, 400] {
            let faulty = Faulty { oracle: Oracle::default(), spoil, answers: 0, how };
            let mut drive = Drive::with_probe(&spec(TINY, &[]), faulty);
            let units = u64::from(drive.geometry().logical_units);
            for unit in 0..units {
                one(&mut drive, Op::Write, unit * 4096, 4096);
            }
            let mut stream = Stream::new(5, "sabotage");
            for _ in 0..1000 {
                let op = if stream.below(2) == 0 { Op::Read } else { Op::Write };
                one(&mut drive, op, stream.below(units) * 4096, 4096);
            }
            assert!(drive.probe().answers > 400);
            let verdict = drive.probe().oracle.verdict();
            assert_eq!(verdict.is_err(), spoil != 0, "{verdict:?}");
        }
    }
}

/// The array panics on operations that flash does not allow.
#[test]
fn the_array_refuses_illegal_operations() {
    use nandlab::base::geometry::{Geometry, SuperblockId};
    use nandlab::flash::{Array, Keeps, SuperblockState};
    let spec = spec(TINY, &[]);
    let geometry = Geometry::new(&spec.drive);
    let panics = |act: &dyn Fn(&mut Array)| {
        let mut array =
            Array::new(&geometry, spec.shapes(&geometry), 0, Keeps { sequences: true, ..Keeps::default() });
        array.superblock_mut(SuperblockId(0)).state = SuperblockState::Open;
        array.program(SuperblockId(0), 0);
        let act = std::panic::AssertUnwindSafe(|| act(&mut array));
        std::panic::catch_unwind(act).is_err()
    };
    assert!(!panics(&|array| assert!(array.program(SuperblockId(0), 1) > 0)));
    assert!(!panics(&|array| array.read(&geometry, SuperblockId(0), 0)));
    assert!(!panics(&|array| array.erase(&geometry, SuperblockId(0))));
    assert!(
        panics(&|array| assert!(array.program(SuperblockId(0), 0) > 0)),
        "the program of a programmed unit is accepted"
    );
    assert!(
        panics(&|array| assert!(array.program(SuperblockId(0), 2) > 0)),
        "a program out of order is accepted"
    );
    assert!(
        panics(&|array| assert!(array.program(SuperblockId(1), 0) > 0)),
        "a program in a superblock that is not open is accepted"
    );
    assert!(
        panics(&|array| array.read(&geometry, SuperblockId(0), 1)),
        "the read of an unprogrammed unit is accepted"
    );
    assert!(
        panics(&|array| array.read(&geometry, SuperblockId(1), 0)),
        "the read of an erased superblock is accepted"
    );
    let pinned = |array: &mut Array| {
        array.superblock_mut(SuperblockId(0)).pins = 1;
        array.erase(&geometry, SuperblockId(0));
    };
    assert!(panics(&pinned), "the erase of a pinned superblock is accepted");
    let valid = |array: &mut Array| {
        array.superblock_mut(SuperblockId(0)).valid = 1;
        array.erase(&geometry, SuperblockId(0));
    };
    assert!(panics(&valid), "the erase of valid data is accepted");
}

#[test]
fn the_audit_holds_throughout_a_busy_run() {
    let mut drive = Drive::new(&spec(TINY, &[]));
    let capacity = drive.geometry().logical_bytes();
    let mut stream = Stream::new(11, "audit");
    for _ in 0..4000 {
        let offset = stream.below(capacity / 512) * 512;
        let len = (512 * (1 + stream.below(20))).min(capacity - offset);
        let op = [Op::Write, Op::Write, Op::Read, Op::Trim][stream.below(4) as usize];
        drive.submit(&Request::new(op, offset, len).at(drive.now())).unwrap();
        drive.advance(drive.now() + ns(stream.below(300_000)));
        drive.completions().for_each(drop);
        drive.audit().unwrap();
    }
    drive.run_until_idle(nandlab::drive::IDLE_LIMIT).unwrap();
    drive.audit().unwrap();
}

/// Returns a drive at rest after many writes.
fn rested() -> Drive<NoProbe> {
    let mut drive = Drive::new(&spec(TINY, &["gc.idle_after=1ms"]));
    let mut stream = Stream::new(3, "rested");
    let units = u64::from(drive.geometry().logical_units);
    for _ in 0..2_000 {
        let request = common::request(&drive, Op::Write, stream.below(units) * 4096, 4096);
        drive.submit(&request).unwrap();
        drive.advance(drive.now() + ns(200_000));
    }
    drive.run_until_idle(nandlab::drive::IDLE_LIMIT).unwrap();
    drive.audit().expect("the audit holds before the sabotage");
    drive
}

#[test]
fn the_audit_detects_inconsistent_state() {
    use nandlab::base::geometry::{Geometry, UnitId};
    use nandlab::flash::{Array, SuperblockState};
    use nandlab::ftl::Ftl;

    type Break = fn(&Geometry, &mut Array, &mut Ftl);
    fn full(array: &Array) -> SuperblockId {
        let index = array.superblocks.iter().position(|b| b.state == SuperblockState::Full && b.valid > 0);
        SuperblockId(index.expect("some superblock is full") as u32)
    }
    let breaks: [(&str, Break); 10] = [
        ("the OOB names another LPN", |_, array, ftl| {
            array.stage(ftl.map.get(Lpn(0)).unwrap(), Lpn(1), nandlab::flash::Stamp::default());
        }),
        ("two LPNs share a unit", |_, _, ftl| {
            let unit = ftl.map.get(Lpn(1)).unwrap();
            ftl.map.set(Lpn(0), unit);
        }),
        ("the map lacks the LPN of a valid unit", |_, _, ftl| {
            ftl.map.clear(Lpn(5));
        }),
        ("an LPN maps to an invalid unit", |geometry, _, ftl| {
            let unit = (0..geometry.units).map(UnitId).find(|&unit| !ftl.is_valid(unit)).unwrap();
            ftl.map.set(Lpn(0), unit);
        }),
        ("a superblock counts a valid unit too many", |_, array, _| {
            let superblock = full(array);
            array.superblock_mut(superblock).valid += 1;
        }),
        ("a lane counts a valid unit too few", |_, _, ftl| ftl.lanes[0].valid -= 1),
        ("a full superblock is not programmed to its end", |_, array, _| {
            let superblock = full(array);
            array.superblock_mut(superblock).programmed -= 1;
        }),
        ("a superblock in use is in the free list", |_, array, ftl| {
            let superblock = full(array);
            ftl.lanes[0].free.push(nandlab::drive::spec::WearLevelling::None, superblock.0 % 16, 0);
        }),
        ("the free list lacks a free superblock", |_, _, ftl| {
            ftl.lanes[1].free.pop();
        }),
        ("a superblock has a pin at rest", |_, array, _| {
            let superblock = full(array);
            array.superblock_mut(superblock).pins = 1;
        }),
    ];
    for (what, break_it) in breaks {
        let mut drive = rested();
        let geometry = drive.geometry().clone();
        let (array, ftl) = drive.parts_mut();
        break_it(&geometry, array, ftl);
        assert!(drive.audit().is_err(), "the audit does not detect that {what}");
    }
}
