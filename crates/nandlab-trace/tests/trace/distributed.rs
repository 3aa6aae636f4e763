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
