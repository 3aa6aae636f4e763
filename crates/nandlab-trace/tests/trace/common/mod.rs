//! Specs and readers used by several tests.
#![allow(dead_code, unreachable_pub)]

use nandlab::base::units::{DAY, Time};
use nandlab::drive::spec::{DeviceChoice, TraceSpec};
use nandlab::host::{Op, Request};
use nandlab_trace::{Source, TraceError, open_bytes};

/// A trace spec with the path `name` and default settings.
pub fn spec(name: &str) -> TraceSpec {
    TraceSpec {
        path: name.into(),
        format: None,
        device: None,
        lenient: false,
        time_unit_ns: None,
        max_gap_ns: DAY,
    }
}

/// A trace spec that names the format.
pub fn spec_of(format: &str) -> TraceSpec {
    TraceSpec { format: Some(format.into()), ..spec("trace") }
}

/// `spec` with the choice of one device.
pub fn device(spec: TraceSpec, name: &str) -> TraceSpec {
    TraceSpec { device: Some(DeviceChoice::One(name.into())), ..spec }
}

/// `spec` with `lenient`: malformed records are skipped.
pub fn lenient(spec: TraceSpec) -> TraceSpec {
    TraceSpec { lenient: true, ..spec }
}

/// All requests of the source, or its first error.
pub fn drain(source: &mut dyn Source) -> Result<Vec<Request>, TraceError> {
    std::iter::from_fn(|| source.next_request()).collect()
}

/// Reads `content` to its end; returns the requests and the number of skipped records.
pub fn read_all(spec: &TraceSpec, content: &[u8]) -> Result<(Vec<Request>, u64), TraceError> {
    let mut source = open_bytes(spec, content)?;
    let requests = drain(&mut *source)?;
    Ok((requests, source.skipped()))
}

/// Reads `content` to its end; returns the requests.
pub fn read(spec: &TraceSpec, content: &[u8]) -> Result<Vec<Request>, TraceError> {
    read_all(spec, content).map(|r| r.0)
}

/// A request without FUA.
pub fn request(arrival: u64, op: Op, offset: u64, len: u64) -> Request {
    Request { arrival: Time::from_ns(arrival), op, fua: false, offset, len }
}
