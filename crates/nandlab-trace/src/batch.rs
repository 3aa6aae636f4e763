//! Successive requests of a trace, which are played together.

use crate::error::TraceError;
use crate::source::Source;
use nandlab_base::base::request::Request;

/// Number of requests of a batch; the last batch of a trace may have fewer.
pub(crate) const BATCH: usize = 4096;
/// Some successive requests of a trace.
#[derive(Debug, Default)]
pub(crate) struct Batch {
    pub(crate) requests: Vec<Request>,
    /// The number of records skipped so far, for each request whose number differs from that of the request before:
    /// (index in `requests`, number).
    pub(crate) skips: Vec<(u64, u64)>,
    /// [`Source::devices`], in the first batch.
    pub(crate) devices: Vec<String>,
    /// [`Source::progress`] after the last request of the batch.
    pub(crate) progress: f64,
    /// The end of the trace, in the last batch.
    pub(crate) end: Option<End>,
}

/// The end of a trace.
#[derive(Debug)]
pub(crate) struct End {
    /// The number of records skipped in the whole trace.
    pub(crate) skipped: u64,
    /// The error that ends the trace.
    pub(crate) error: Option<TraceError>,
}

impl Batch {
    pub(crate) fn clear(&mut self) {
        self.requests.clear();
        self.skips.clear();
        self.devices.clear();
        self.end = None;
    }

    /// Replaces the content by the next requests of `source`. `skipped` is the number of skipped records at the last
    /// request so far.
    pub(crate) fn fill(&mut self, source: &mut impl Source, skipped: &mut u64) {
        self.clear();
        while self.requests.len() < BATCH {
            match source.next_request() {
                Some(Ok(request)) => {
                    if source.skipped() != *skipped {
                        *skipped = source.skipped();
                        self.skips.push((self.requests.len() as u64, *skipped));
                    }
                    self.requests.push(request);
                }
                end => {
                    let error = end.and_then(Result::err);
                    self.end = Some(End { skipped: source.skipped(), error });
                    break;
                }
            }
        }
        self.progress = source.progress();
    }
}
