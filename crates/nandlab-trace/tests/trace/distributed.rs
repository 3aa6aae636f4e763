//! Files in the shapes in which people have them, each with its true content or its refusal. A test without the folder
//! of these files is skipped.

use crate::common::*;
use nandlab_base::base::request::Op;
use nandlab_base::workload::TraceSpec;
use nandlab_trace::{ErrorKind, Position};
use std::path::Path;

/// A file of the folder.
fn file(name: &str) -> Option<Vec<u8>> {
    let folder = Path::new(concat!(env!("CARGO_MANIFEST_DIR"), "/../../../shared/findings/traces"));
    let content = std::fs::read(folder.join(name)).ok();
    if content.is_none() {
        eprintln!("skipped: no {name}");
    }
    content
}

#[test]
fn one_bad_time_costs_one_record() {
    let Some(content) = file("one_bad_time.csv") else { return };
    let e = read(&spec("one_bad_time.csv"), &content).unwrap_err();
    assert_eq!(
        (e.kind(), e.position(), e.field()),
        (ErrorKind::Order, Some(Position::Line(11)), Some("time"))
    );
    let tolerant = TraceSpec { lenient: Some(0.1), ..spec("one_bad_time.csv") };
    let (requests, skipped) = read_all(&tolerant, &content).unwrap();
    assert_eq!((requests.len(), skipped), (999, 1));
    assert!(requests.iter().all(|r| (r.op, r.len) == (Op::Write, 4096)));
}

/// Reads, writes, TRIMs and flushes of a file, and the number of skipped records.
fn counts(spec: &TraceSpec, content: &[u8]) -> ([usize; 4], u64) {
    let (requests, skipped) = read_all(spec, content).unwrap();
    (Op::ALL.map(|op| requests.iter().filter(|r| r.op == op).count()), skipped)
}

#[test]
fn the_real_logs_have_their_true_content() {
    for (name, ops, skipped) in [
        ("fio_appended.log", [64, 64, 0, 0], 0),
        ("fio756.log", [0, 20, 0, 0], 0),
        ("blkparse_inputfile.txt", [10, 10, 0, 0], 0),
        ("blkparse_ooo.txt", [0, 30, 0, 0], 0),
        ("blkparse_real.txt", [2, 2, 1, 4], 1),
        ("blkparse_real_c.txt", [1, 1, 0, 1], 1),
    ] {
        let Some(content) = file(name) else { continue };
        assert_eq!(counts(&spec(name), &content), (ops, skipped), "{name}");
    }
}

#[test]
fn a_log_whose_times_begin_again_is_refused_with_its_line() {
    let Some(content) = file("fio1537.log") else { return };
    let e = read(&spec("fio1537.log"), &content).unwrap_err();
    assert_eq!(
        (e.kind(), e.position(), e.field()),
        (ErrorKind::Order, Some(Position::Line(11)), Some("time"))
    );
    let closed = TraceSpec { uses_times: false, ..spec("fio1537.log") };
    assert_eq!(counts(&closed, &content), ([13, 0, 0, 0], 0));
}

#[test]
fn equal_times_are_refused_in_an_open_loop_only() {
    let Some(content) = file("same_time.csv") else { return };
    let e = read(&spec("same_time.csv"), &content).unwrap_err();
    assert_eq!((e.line(), e.field()), (Some(1000), Some("Timestamp")));
    assert!(e.remedy().contains("workload.arrival = { queue_depth = 32 }"), "{e}");
    let closed = TraceSpec { uses_times: false, ..spec("same_time.csv") };
    assert_eq!(counts(&closed, &content), ([0, 1500, 0, 0], 0));
}
