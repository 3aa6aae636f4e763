//! `workload.only` and `workload.window`: a part of the requests of a trace.

use crate::generate::Published;
use crate::tally::Tally;
use crate::{ErrorKind, Source, TraceError};
use nandlab_base::base::request::{Op, Request};
use nandlab_base::base::units::Time;
use nandlab_base::base::words::duration;
use nandlab_base::workload::{Only, Part, TraceSpec, Window};
use std::path::PathBuf;

/// The part of `source` that the settings of its trace choose.
pub(crate) fn of(trace: &TraceSpec, source: impl Source + 'static) -> Box<dyn Source> {
    if trace.part == Part::default() {
        return Box::new(source);
    }
    Box::new(Chosen {
        inner: source,
        part: trace.part,
        path: trace.path.clone(),
        lenient: trace.lenient,
        first: None,
        last: Time::START,
        has_ended: false,
    })
}

/// Some of the requests of another source. The first of them arrives at 0.
struct Chosen<S> {
    inner: S,
    part: Part,
    path: PathBuf,
    /// The largest share of damaged records.
    lenient: Option<f64>,
    /// The arrival in the trace of the first chosen request.
    first: Option<Time>,
    /// The arrival of the last request of the trace that was read.
    last: Time,
    has_ended: bool,
}

impl<S: Source> Chosen<S> {
    fn is_chosen(&self, request: &Request) -> bool {
        let is_op = match self.part.only {
            None => true,
            Some(Only::Reads) => request.op == Op::Read,
            Some(Only::Writes) => request.op == Op::Write,
        };
        is_op && self.part.window.is_none_or(|window| request.arrival - Time::START >= window.from)
    }

    fn is_after(&self, request: &Request) -> bool {
        let to = self.part.window.and_then(|window| window.to);
        to.is_some_and(|to| request.arrival - Time::START >= to)
    }

    /// Ends the source: with an error if no request was chosen.
    fn end(&mut self) -> Option<Result<Request, TraceError>> {
        self.has_ended = true;
        let checked = match (self.first, self.lenient) {
            (None, _) => Err(self.nothing()),
            (Some(_), Some(at_most)) => self.inner.tally().check(at_most),
            (Some(_), None) => Ok(()),
        };
        checked.err().map(|error| Err(error.in_file(&self.path)))
    }

    #[cold]
    fn nothing(&self) -> TraceError {
        let ops = match self.part.only {
            None => "request",
            Some(Only::Reads) => "read",
            Some(Only::Writes) => "write",
        };
        let last = duration((self.last - Time::START).seconds());
        let (where_, remedy) = match self.part.window {
            Some(Window { .. }) => (
                format!(" in workload.window: the last request that was read arrives {last} after the first"),
                "choose another workload.window",
            ),
            None => (String::new(), "leave workload.only out"),
        };
        TraceError::new(ErrorKind::Empty, format!("expected requests, found no {ops}{where_}"), remedy)
    }
}

impl<S: Source> Source for Chosen<S> {
    fn next_request(&mut self) -> Option<Result<Request, TraceError>> {
        if self.has_ended {
            return None;
        }
        loop {
            let mut request = match self.inner.next_request() {
                Some(Ok(request)) => request,
                Some(Err(error)) => {
                    self.has_ended = true;
                    return Some(Err(error));
                }
                None => return self.end(),
            };
            self.last = request.arrival;
            if self.is_after(&request) {
                return self.end();
            }
            if self.is_chosen(&request) {
                let first = *self.first.get_or_insert(request.arrival);
                request.arrival = Time::START + (request.arrival - first);
                return Some(Ok(request));
            }
        }
    }

    fn tally(&self) -> Tally {
        self.inner.tally()
    }

    fn skipped(&self) -> u64 {
        self.inner.skipped()
    }

    fn progress(&self) -> f64 {
        if self.has_ended { 1.0 } else { self.inner.progress() }
    }

    fn devices(&self) -> Vec<String> {
        self.inner.devices()
    }

    fn format(&self) -> Option<&'static str> {
        self.inner.format()
    }

    fn published(&self) -> Option<&'static Published> {
        self.inner.published()
    }
}
