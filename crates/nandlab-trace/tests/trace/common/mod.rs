//! Specs and readers used by several tests.
#![allow(dead_code, unreachable_pub)]

use nandlab_base::base::note::Note;
use nandlab_base::base::request::{Op, Request};
use nandlab_base::base::units::Time;
use nandlab_base::workload::{DeviceChoice, TraceSpec};
use nandlab_trace::{ErrorKind, KeptTraces, Position, Source, TraceError, open_bytes, open_trace};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};

/// A folder of inputs beside the repository, or in the folder that `NANDLAB_SHARED` names; `None` if there is none.
pub fn shared(folder: &str) -> Option<PathBuf> {
    let beside = || Path::new(concat!(env!("CARGO_MANIFEST_DIR"), "/../../../shared")).to_path_buf();
    let path = std::env::var_os("NANDLAB_SHARED").map_or_else(beside, PathBuf::from).join(folder);
    if !path.is_dir() {
        eprintln!("skipped: no folder {folder}");
        return None;
    }
    Some(path)
}

/// A trace spec with the path `name` and default settings.
pub fn spec(name: &str) -> TraceSpec {
    TraceSpec::new(name)
}

/// A trace spec that names the format.
pub fn spec_of(format: &str) -> TraceSpec {
    TraceSpec { format: Some(format.into()), ..spec("trace") }
}

/// `spec` with the choice of one device.
pub fn device(spec: TraceSpec, name: &str) -> TraceSpec {
    TraceSpec { device: Some(DeviceChoice::One(name.into())), ..spec }
}

/// `spec` with `lenient`: damaged records are skipped, whatever their number.
pub fn lenient(spec: TraceSpec) -> TraceSpec {
    TraceSpec { lenient: Some(1.0), ..spec }
}

/// All requests of the source, or its first error.
pub fn drain(source: &mut dyn Source) -> Result<Vec<Request>, TraceError> {
    std::iter::from_fn(|| source.next_request()).collect()
}

/// Reads `content` to its end; returns the requests and the number of skipped records. The same content in a file is
/// parsed on a thread, kept, and read from the kept trace; each time the result is the same.
pub fn read_all(spec: &TraceSpec, content: &[u8]) -> Result<(Vec<Request>, u64), TraceError> {
    let expected = play(open_bytes(spec, content));
    static COUNT: AtomicU64 = AtomicU64::new(0);
    let count = COUNT.fetch_add(1, Ordering::Relaxed);
    let folder = std::env::temp_dir().join(format!("nandlab-trace-{}-{count}", std::process::id()));
    std::fs::create_dir_all(&folder).unwrap();
    let trace = TraceSpec { path: folder.join("trace"), ..spec.clone() };
    std::fs::write(&trace.path, content).unwrap();
    let kept = KeptTraces::in_folder(folder.join("kept"));
    for kept in [None, Some(&kept), Some(&kept)] {
        match (&expected, play(open_trace(&trace, kept))) {
            (Ok(expected), Ok(found)) => assert!(*expected == found, "{spec:?}"),
            (Err(expected), Err(found)) => assert_eq!(parts(expected), parts(&found), "{spec:?}"),
            (_, found) => panic!("{spec:?}: {:?}", found.err()),
        }
    }
    assert_eq!(kept.size().traces, u64::from(expected.is_ok()), "{spec:?}");
    std::fs::remove_dir_all(&folder).unwrap();
    let (requests, _, skipped, ..) = expected?;
    Ok((requests, skipped))
}

/// What a source returns: its requests, the number of records skipped at each and at the end, devices, format and notes.
type Played = (Vec<Request>, Vec<u64>, u64, Vec<String>, Option<&'static str>, Vec<Note>);

fn play(source: Result<Box<dyn Source>, TraceError>) -> Result<Played, TraceError> {
    let mut source = source?;
    let (mut requests, mut skipped) = (Vec::new(), Vec::new());
    while let Some(request) = source.next_request() {
        requests.push(request?);
        skipped.push(source.skipped());
    }
    Ok((requests, skipped, source.skipped(), source.devices(), source.format(), source.notes()))
}

/// All of an error but the file.
fn parts(e: &TraceError) -> (ErrorKind, Option<Position>, Option<&str>, &str, &str) {
    (e.kind(), e.position(), e.field(), e.message(), e.remedy())
}

/// Reads `content` to its end; returns the requests.
pub fn read(spec: &TraceSpec, content: &[u8]) -> Result<Vec<Request>, TraceError> {
    read_all(spec, content).map(|r| r.0)
}

/// A request without FUA.
pub fn request(arrival: u64, op: Op, offset: u64, len: u64) -> Request {
    Request::new(op, offset, len).at(Time::from_ns(arrival))
}
