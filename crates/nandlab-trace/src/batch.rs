//! Successive requests of a trace, which are played together.

use crate::error::TraceError;
use crate::source::Source;
use crate::tally::Tally;
use nandlab_base::base::request::Request;

/// Number of requests of a batch; the last batch of a trace may have fewer.
pub(crate) const BATCH: usize = 4096;
/// Some successive requests of a trace.
#[derive(Debug, Default)]
pub(crate) struct Batch {
    pub(crate) requests: Vec<Request>,
    /// The counts so far, for each request with another number of skipped records than the request before: (index in
    /// `requests`, counts).
    pub(crate) skips: Vec<(u64, Tally)>,
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
    /// The counts of the whole trace.
    pub(crate) tally: Tally,
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
                        self.skips.push((self.requests.len() as u64, source.tally()));
                    }
                    self.requests.push(request);
                }
                end => {
                    let error = end.and_then(Result::err);
                    self.end = Some(End { tally: source.tally(), error });
                    break;
                }
            }
        }
        self.progress = source.progress();
    }
}
