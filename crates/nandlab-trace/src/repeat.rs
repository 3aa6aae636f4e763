//! `workload.repeat` and `workload.requests_max`: a source that plays another source several times, or plays only the
//! first requests of the other source.

use crate::generate::Published;
use crate::tally::Tally;
use crate::{Source, TraceError};
use nandlab_base::base::request::Request;
use nandlab_base::base::units::{Time, US};
use std::path::PathBuf;

type Reopen = Box<dyn FnMut() -> Result<Box<dyn Source>, TraceError> + Send>;

/// Plays the source `inner` `rounds` times, and ends after `requests_max` requests in all (0: no limit).
pub(crate) struct Repeat {
    inner: Box<dyn Source>,
    reopen: Reopen,
    rounds: u32,
    round: u32,
    requests_max: u64,
    requests: u64,
    requests_round: u64,
    /// Start of the current round: arrival 0 of the inner source is at this time.
    base: Time,
    last: Time,
    tally_before: Tally,
    done: bool,
    /// The largest share of damaged records (`workload.lenient`), and the file of the trace.
    lenient: Option<(f64, PathBuf)>,
}

impl Repeat {
    pub(crate) fn new(
        inner: Box<dyn Source>,
        reopen: Reopen,
        rounds: u32,
        requests_max: u64,
        lenient: Option<(f64, PathBuf)>,
    ) -> Self {
        Self {
            inner,
            reopen,
            rounds,
            round: 0,
            requests_max,
            requests: 0,
            requests_round: 0,
            base: Time::START,
            last: Time::START,
            tally_before: Tally::default(),
            done: false,
            lenient,
        }
    }
}

impl Source for Repeat {
    fn next_request(&mut self) -> Option<Result<Request, TraceError>> {
        if self.done {
            return None;
        }
        if self.requests_max > 0 && self.requests == self.requests_max {
            self.done = true;
            let (at_most, path) = self.lenient.as_ref()?;
            return self.inner.tally().check(*at_most).err().map(|error| Err(error.in_file(path)));
        }
        loop {
            match self.inner.next_request() {
                Some(Ok(mut request)) => {
                    request.arrival = self.base.saturating_add(request.arrival - Time::START);
                    self.last = request.arrival;
                    self.requests += 1;
                    self.requests_round += 1;
                    return Some(Ok(request));
                }
                Some(Err(error)) => {
                    self.done = true;
                    return Some(Err(error));
                }
                None => {
                    // If a round has no requests, no later round has any.
                    if self.round + 1 >= self.rounds || self.requests_round == 0 {
                        self.done = true;
                        return None;
                    }
                    // At least 1 us between rounds, so that time advances if all requests of a round arrive at once.
                    let gap = ((self.last - self.base) / (self.requests_round - 1).max(1)).max(US);
                    self.base = self.last.saturating_add(gap);
                    self.round += 1;
                    self.requests_round = 0;
                    self.tally_before = self.tally();
                    match (self.reopen)() {
                        Ok(source) => self.inner = source,
                        Err(error) => {
                            self.done = true;
                            return Some(Err(error));
                        }
                    }
                }
            }
        }
    }

    fn tally(&self) -> Tally {
        self.tally_before + self.inner.tally()
    }

    fn progress(&self) -> f64 {
        let rounds = (f64::from(self.round) + self.inner.progress()) / f64::from(self.rounds);
        if self.requests_max == 0 {
            return rounds;
        }
        rounds.max(self.requests as f64 / self.requests_max as f64)
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
