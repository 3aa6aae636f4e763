//! Block traces and workload generators.
//!
//! [`open`] turns the `[workload]` section of a spec into a [`Source`] of requests in order of arrival. A source is a
//! trace file in one of [`formats`], a look-alike of a published or recorded trace ([`profiles`]), or a synthetic
//! workload. A trace file may be compressed or inside an archive, which is recognized by content. [`reading`]
//! tells how a trace is understood. A trace is parsed on a thread of
//! its own, and what was parsed is kept for the next run ([`KeptTraces`]). [`stat`] computes the statistics of a source;
//! [`convert`] writes a source in a trace format.
//!
//! Reading order: this file, `trace`, `format/mod`, `format/rows` and `format/columns`, `input`, `batch`, `kept/mod`, `generate/profile`.
//!
//! A first thread reads and decompresses the file (`input`, `unpack`), a second one parses it, brings it into order of time and
//! checks it (`trace`, `order`, `device`, `format`), and the thread of the simulation takes its requests in batches
//! (`batch`). Both exchanges use again what has been used, so memory is bounded and nothing is allocated per request. A
//! batch holds the positions of the counts of skipped records and ends with the error, so a source returns the same at
//! each request whichever thread parses. Repetitions of a trace and generators do not know of kept traces.

mod batch;
mod by_device;
mod convert;
mod detect;
mod device;
mod error;
mod format;
pub mod generate;
mod input;
mod kept;
mod notes;
mod order;
mod parse;
mod part;
mod play;
mod reading;
mod recorded;
mod records;
mod repeat;
mod source;
mod stamp;
mod stat;
mod tally;
mod trace;
mod unpack;

pub use by_device::{DeviceStat, stat_by_device};
pub use convert::{Conversion, ConvertOptions, convert};
pub use error::{ErrorKind, Position, TraceError};
pub use format::{FormatInfo, formats};
pub use generate::{Published, profile, profiles};
pub use kept::{KeptSize, KeptTraces};
pub use reading::{FirstRecord, OtherReading, Reading, reading};
pub use source::Source;
pub use stat::{TraceStat, stat};
pub use tally::{Reason, Tally};

use nandlab_base::workload::{self as spec, TraceSpec, WorkloadSpec};
use std::sync::Arc;

/// Opens the source that `[workload]` names, for a drive of `logical_bytes`, with the run's `seed`.
///
/// With `repeat` the source is played several times from its start. Each round begins one mean inter-arrival time, at
/// least 1 us, after the last request of the previous round. `requests_max` ends the source after that many requests
/// (0: no limit).
///
/// A trace that `kept` has is read from there; another trace is parsed on a thread of its own, and `kept` keeps it if it
/// is read to its end. Requests, skipped records and errors are the same in each case.
///
/// # Errors
/// A file that cannot be opened; a trace that a setting reads again but that can be read only once; a file whose format
/// is not recognized; an unknown format or profile; an impossible setting. With `workload.device = "concatenate"` and with
/// `workload.devices` the whole file is read once here, so a malformed record is an error too, unless `lenient` skips
/// the record. [`Source::next_request`] returns all other errors inside a file.
pub fn open(
    workload: &WorkloadSpec,
    logical_bytes: u64,
    seed: u64,
    kept: Option<&KeptTraces>,
) -> Result<Box<dyn Source>, TraceError> {
    if workload.repeat > 1 {
        read_again(&workload.source, &format!("workload.repeat = {}", workload.repeat))?;
    }
    if let spec::Source::Clients(clients) = &workload.source {
        let limits = generate::Limits { rounds: workload.repeat.max(1), requests_max: workload.requests_max };
        return Ok(Box::new(generate::ClientsSource::open(clients, logical_bytes, seed, limits)?));
    }
    let first = open_source(&workload.source, logical_bytes, seed, kept)?;
    if workload.repeat <= 1 && workload.requests_max == 0 {
        return Ok(first);
    }
    let lenient = match &workload.source {
        spec::Source::Trace(trace) => trace.lenient.map(|at_most| (at_most, trace.path.clone())),
        _ => None,
    };
    let (source, kept) = (workload.source.clone(), kept.cloned());
    let reopen = Box::new(move || open_source(&source, logical_bytes, seed, kept.as_ref()));
    Ok(Box::new(repeat::Repeat::new(first, reopen, workload.repeat.max(1), workload.requests_max, lenient)))
}

/// Refuses a trace that can be read only once, such as a pipe, and clients whose number of requests is known only after
/// the run. `what` is the setting that reads the workload again, for the message. Other sources can always be read
/// again. The file is not opened, because opening a pipe waits for the writer of the pipe.
///
/// # Errors
/// The trace can be read only once, or a client has a duration.
pub fn read_again(source: &spec::Source, what: &str) -> Result<(), TraceError> {
    match source {
        spec::Source::Trace(trace) => source::trace_read_again(trace, what),
        spec::Source::Clients(clients) => generate::read_again(clients, what),
        spec::Source::Profile(_) | spec::Source::Synthetic(_) => Ok(()),
    }
}

/// Opens one trace file, with `kept` as in [`open`].
///
/// # Errors
/// As [`open`].
pub fn open_trace(trace: &TraceSpec, kept: Option<&KeptTraces>) -> Result<Box<dyn Source>, TraceError> {
    Ok(part::of(trace, play::Batches::open(trace, kept)?))
}

/// Reads `content` (compressed or not) as [`open_trace`] reads a file, but on the thread of the caller. The path of the
/// spec only names the content in messages.
///
/// # Errors
/// As [`open`].
pub fn open_bytes(trace: &TraceSpec, content: impl Into<Arc<[u8]>>) -> Result<Box<dyn Source>, TraceError> {
    Ok(part::of(trace, trace::TraceSource::open(trace, Some(&content.into()), false)?))
}

fn open_source(
    source: &spec::Source,
    logical_bytes: u64,
    seed: u64,
    kept: Option<&KeptTraces>,
) -> Result<Box<dyn Source>, TraceError> {
    match source {
        spec::Source::Trace(trace) => open_trace(trace, kept),
        spec::Source::Profile(profile) => {
            Ok(Box::new(generate::ProfileSource::open(profile, logical_bytes, seed)?))
        }
        spec::Source::Synthetic(synthetic) => {
            Ok(Box::new(generate::SyntheticSource::open(synthetic, logical_bytes, seed)?))
        }
        spec::Source::Clients(clients) => {
            let limits = generate::Limits { rounds: 1, requests_max: 0 };
            Ok(Box::new(generate::ClientsSource::open(clients, logical_bytes, seed, limits)?))
        }
    }
}
