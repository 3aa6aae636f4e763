//! A source of requests, and whether it can be read again.

use crate::error::{ErrorKind, TraceError};
use crate::generate::Published;
use crate::notes::notes;
use crate::tally::Tally;
use nandlab_base::base::note::Note;
use nandlab_base::base::request::Request;
use nandlab_base::workload::TraceSpec;
use std::fs::FileType;
use std::os::unix::fs::FileTypeExt;

/// Requests in order of arrival.
pub trait Source: Send {
    /// The next request; `None` at the end and after an error. The arrivals of a trace are times since its first
    /// request, whatever the time origin of the file. The arrivals of a generator are times since the start of the
    /// workload.
    fn next_request(&mut self) -> Option<Result<Request, TraceError>>;

    /// The next request of client `client` of `workload.clients`; as [`Source::next_request`] for other sources.
    fn next_of(&mut self, client: usize) -> Option<Result<Request, TraceError>> {
        let _ = client;
        self.next_request()
    }

    /// Records left out so far: damaged ones (`workload.lenient`), and those that state no request.
    fn skipped(&self) -> u64 {
        self.tally().skipped()
    }

    /// Counts of the records at the last record that was left out, and at the end of the trace; 0 for generators.
    fn tally(&self) -> Tally {
        Tally::default()
    }

    /// Findings about the reading of the trace, by falling severity.
    fn notes(&self) -> Vec<Note> {
        notes(&self.tally(), self.format())
    }

    /// Share of the source that has been read, 0 to 1: of the bytes of the (compressed) file, or of the requests to
    /// generate. For a pipe, whose size is unknown, the share is 0 until the end.
    fn progress(&self) -> f64;

    /// The devices whose requests are part of the source, as far as the devices are known yet; empty for generators.
    fn devices(&self) -> Vec<String> {
        Vec::new()
    }

    /// The trace format; `None` for generators.
    fn format(&self) -> Option<&'static str> {
        None
    }

    /// The published statistics that a profile imitates; `None` for other sources.
    fn published(&self) -> Option<&'static Published> {
        None
    }
}

/// Checks that a trace can be read again, as `what` does.
///
/// # Errors
/// A file that can be read only once, such as a pipe.
pub(crate) fn trace_read_again(trace: &TraceSpec, what: &str) -> Result<(), TraceError> {
    let is_rereadable = |kind: FileType| kind.is_file() || kind.is_dir() || kind.is_block_device();
    match std::fs::metadata(&trace.path) {
        Ok(meta) if !is_rereadable(meta.file_type()) => Err(TraceError::new(
            ErrorKind::Io,
            format!("can be read only once, like a pipe, and {what} reads it again"),
            "save it in a file first",
        )
        .in_file(&trace.path)),
        // A file that does not exist is reported when it is opened.
        _ => Ok(()),
    }
}
