use super::lanes::Lanes;
use super::*;
use crate::base::geometry::{Lpn, UnitId};
use crate::base::slab::Node;
use crate::host::Op;

const DIE: DieId = DieId(1);

fn at(us: u64) -> Time {
    Time::from_ns(us * 1000)
}

fn request(op: Op, us: u64, len: u64) -> Request {
    Request::new(op, 8192, len).at(at(us))
}

fn read(order: u64, owner: Owner) -> Transaction {
    let (unit, lpn) = (UnitId(10 + order as u32), Lpn(order as u32));
    Transaction { order, owner, unit, lpn, ..Transaction::EMPTY }
}

fn complete(timeline: &mut Timeline, slot: u32, id: u64, request: Request, us: u64) {
    let done = Completion { id, request, completed: at(us), failed: None };
    timeline.on_completed(RequestId(slot), &done);
}

/// All events except those that name tracks, each as a short text: name (`s` and `f` for the start and the end of an
/// arrow), number of the operation or request, process:track, start-end in us, flags.
fn events(timeline: &Timeline, now: u64) -> Vec<String> {
    let trace: serde_json::Value = serde_json::from_str(&timeline.to_json(at(now))).expect("it is JSON");
    let events = trace["traceEvents"].as_array().expect("it has events");
    let short = |e: &serde_json::Value| {
        let (args, id) = (&e["args"], &e["id"]);
        let number = [&args["operation"], &args["request"], id].into_iter().find(|n| n.is_number()).unwrap();
        let name = if e["ph"] == "X" { &e["name"] } else { &e["ph"] }.as_str().unwrap();
        let end =
            e["dur"].as_f64().map_or(String::new(), |dur| format!("-{}", e["ts"].as_f64().unwrap() + dur));
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
fn an_arrow_leads_to_each_recorded_page_at_its_first_try() {
    let mut timeline = Timeline::new(3);
    let (first, second) = (request(Op::Read, 0, 4096), request(Op::Read, 1, 8192));
    timeline.on_submitted(RequestId(0), 5, &first, 0);
    timeline.on_submitted(RequestId(1), 6, &second, 1);
    // This request is submitted after the last recorded operation.
    timeline.on_submitted(RequestId(2), 7, &second, 3);
    // A multi-plane read of three pages: the first page is not recorded, the other two are.
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
    // Slot 0 is used again. The second try of the second request's read has no arrow, and neither has an erase of GC.
    timeline.on_submitted(RequestId(0), 8, &first, 4);
    let again = Transaction { level: 2, tries: 1, ..other };
    timeline.on_issue(at(10), DIE, &again);
    timeline.on_phase(at(10), at(12), DIE, 0, Phase::Array, &again);
    let gc = Transaction { cause: Cause::Gc, kind: FlashOp::Erase, ..read(2, Owner::Padding) };
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
fn a_suspended_operation_has_a_slice_before_and_after_the_suspension() {
    let mut timeline = Timeline::new(10);
    let write = request(Op::Write, 0, 4096);
    timeline.on_submitted(RequestId(0), 0, &write, 0);
    let program = Transaction { kind: FlashOp::Program, ..read(0, Owner::Request(RequestId(0))) };
    let partner = Transaction { kind: FlashOp::Program, ..read(1, Owner::Padding) };
    timeline.on_issue(at(0), DIE, &program);
    timeline.on_joined(at(0), DIE, &program, &partner);
    timeline.on_phase(at(0), at(9), DIE, 0, Phase::Array, &program);
    timeline.on_suspend(at(2), at(3), DIE);
    let other = read(2, Owner::Padding);
    timeline.on_issue(at(3), DIE, &other);
    timeline.on_phase(at(3), at(5), DIE, 0, Phase::Array, &other);
    timeline.on_resume(at(5), DIE);
    timeline.on_phase(at(5), at(13), DIE, 0, Phase::Array, &program);
    // The second suspension lasts until after the warm-up, so nothing of the program is drawn.
    timeline.on_suspend(at(6), at(7), DIE);
    complete(&mut timeline, 0, 0, write, 13);
    assert_eq!(
        events(&timeline, 13),
        [
            "write 4 KiB 0 4:0 0-13",
            "s 0 4:0 0",
            "program 0 1:1 0-3 pages=2",
            "f 0 1:1 0",
            "sense 2 1:1 3-5",
            "program 0 1:1 5-7 pages=2",
        ]
    );
    timeline.on_results(3);
    timeline.on_resume(at(8), DIE);
    timeline.on_phase(at(8), at(15), DIE, 0, Phase::Array, &program);
    assert_eq!(events(&timeline, 15), Vec::<String>::new());
}

#[test]
fn power_loss_ends_requests_decoding_and_operations() {
    let mut timeline = Timeline::new(10);
    let write = request(Op::Write, 0, 4096);
    timeline.on_submitted(RequestId(0), 0, &write, 0);
    let program = Transaction { kind: FlashOp::Program, ..read(0, Owner::Request(RequestId(0))) };
    timeline.on_issue(at(0), DIE, &program);
    timeline.on_phase(at(0), at(1), DIE, 0, Phase::TransferIn, &program);
    timeline.on_decode(at(0), at(4), 0, 1, &read(1, Owner::Padding));
    // The array phase of the program begins after the power loss, and is torn.
    timeline.on_phase(at(3), at(9), DIE, 0, Phase::Array, &program);
    timeline.on_power_off(at(2), at(7));
    // A request takes the same slot after the power loss.
    timeline.on_submitted(RequestId(0), 1, &request(Op::Flush, 8, 0), 2);
    complete(&mut timeline, 0, 1, request(Op::Flush, 8, 0), 8);
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
fn requests_without_operations_are_recorded_up_to_the_number_of_operations_to_record() {
    let mut timeline = Timeline::new(2);
    for id in 0..5 {
        let trim = request(Op::Trim, id, 4096);
        timeline.on_submitted(RequestId(0), id, &trim, 0);
        complete(&mut timeline, 0, id, trim, id);
    }
    assert_eq!(events(&timeline, 5), ["trim 0 4:0 0-0", "trim 1 4:0 1-1"]);
}

#[test]
fn a_slice_takes_the_free_lane_with_the_lowest_number() {
    let mut lanes = Lanes::default();
    let spans = [(0, 9), (1, 3), (1, 2), (2, 2), (2, 5), (3, 4), (9, 9), (9, 10)];
    let taken = spans.map(|(start, end)| lanes.take(at(start), at(end)));
    // A slice of no length takes its lane for a nanosecond.
    assert_eq!(taken, [0, 1, 2, 2, 3, 1, 0, 1]);
    assert_eq!(lanes.count, 4);
}
