//! A trace as batches of requests. The batches come from a thread that parses the file, or from a kept trace, and are
//! used again when they have been played: no memory is allocated per request.
//!
//! The parser's thread and the thread of the simulation exchange four batches, so the memory is bounded. The position
//! of every count of skipped records is part of the batch. So [`Source::tally`] is the same after each request as if
//! the thread of the simulation parsed the trace itself.

use crate::batch::Batch;
use crate::error::{ErrorKind, TraceError};
use crate::kept::{Keeper, KeptReader, KeptTraces};
use crate::source::Source;
use crate::tally::Tally;
use crate::trace::TraceSource;
use nandlab_base::base::request::Request;
use nandlab_base::base::units::Time;
use nandlab_base::workload::TraceSpec;
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::thread::JoinHandle;

/// Number of batches that the two threads exchange.
const BATCHES: usize = 4;

/// A trace whose requests come in batches.
pub(crate) struct Batches {
    feed: Feed,
    format: &'static str,
    devices: Vec<String>,
    batch: Batch,
    /// Index in the batch of the next request.
    at: usize,
    /// Index in [`Batch::skips`] of the next entry, and the index of its request; `u64::MAX` without a next entry.
    next_skip: (usize, u64),
    tally: Tally,
    /// Requests of the batches before, and requests up to that of `tally`.
    before: u64,
    at_tally: u64,
    /// Whether the times of the records are used, and all requests of the batches so far arrive at the start.
    has_one_time: bool,
    has_ended: bool,
}

/// The origin of the batches.
enum Feed {
    Parser(Parser),
    Kept(KeptReader),
}

impl Batches {
    /// Plays the kept trace, or parses the file on a thread of its own.
    pub(crate) fn open(trace: &TraceSpec, kept: Option<&KeptTraces>) -> Result<Self, TraceError> {
        if let Some((reader, described)) = kept.and_then(|kept| kept.find(trace)) {
            return Ok(Self::new(Feed::Kept(reader), described.format, described.devices, trace.uses_times));
        }
        let keeper = kept.and_then(|kept| kept.keeper(trace));
        let source = TraceSource::open(trace, None, keeper.is_some())?;
        let (format, devices) = (source.format_name(), source.devices());
        let parser = Parser::start(source, keeper).map_err(|e| {
            TraceError::new(
                ErrorKind::Io,
                format!("cannot be read on a thread of its own: {e}"),
                "end other programs",
            )
            .in_file(&trace.path)
        })?;
        Ok(Self::new(Feed::Parser(parser), format, devices, trace.uses_times))
    }

    fn new(feed: Feed, format: &'static str, devices: Vec<String>, uses_times: bool) -> Self {
        let (batch, next_skip) = (Batch::default(), (0, u64::MAX));
        Self {
            feed,
            format,
            devices,
            batch,
            at: 0,
            next_skip,
            tally: Tally::default(),
            before: 0,
            at_tally: 0,
            has_one_time: uses_times,
            has_ended: false,
        }
    }

    /// Whether the requests come from a kept trace.
    #[cfg(test)]
    pub(crate) fn is_kept(&self) -> bool {
        matches!(self.feed, Feed::Kept(_))
    }

    /// The address of the buffer of the current batch.
    #[cfg(test)]
    pub(crate) fn buffer(&self) -> usize {
        self.batch.requests.as_ptr().addr()
    }

    /// Continues after the last request of the batch: with the next batch (`Ok(true)`), or with the end.
    #[cold]
    fn go_on(&mut self) -> Result<bool, TraceError> {
        if self.has_ended {
            return Ok(false);
        }
        if let Some(end) = self.batch.end.take() {
            self.has_ended = true;
            self.tally = end.tally;
            return end.error.map_or(Ok(false), Err);
        }
        self.before += self.at as u64;
        self.at = 0;
        let next = match &mut self.feed {
            Feed::Parser(parser) => {
                parser.next(&mut self.batch);
                Ok(())
            }
            Feed::Kept(reader) => reader.next(&mut self.batch),
        };
        if let Err(error) = next {
            self.has_ended = true;
            self.batch.clear();
            return Err(error);
        }
        if !self.batch.devices.is_empty() {
            self.devices = std::mem::take(&mut self.batch.devices);
        }
        self.has_one_time &= self.batch.requests.last().is_none_or(|last| last.arrival == Time::START);
        self.find_skip(0);
        Ok(true)
    }

    fn find_skip(&mut self, index: usize) {
        self.next_skip = (index, self.batch.skips.get(index).map_or(u64::MAX, |skip| skip.0));
    }
}

impl Source for Batches {
    #[inline]
    fn next_request(&mut self) -> Option<Result<Request, TraceError>> {
        loop {
            if let Some(&request) = self.batch.requests.get(self.at) {
                if self.next_skip.1 == self.at as u64 {
                    self.at_tally = self.before + self.at as u64 + 1;
                    self.tally = self.batch.skips[self.next_skip.0].1;
                    self.find_skip(self.next_skip.0 + 1);
                }
                self.at += 1;
                return Some(Ok(request));
            }
            match self.go_on() {
                Ok(true) => {}
                Ok(false) => return None,
                Err(error) => return Some(Err(error)),
            }
        }
    }

    fn tally(&self) -> Tally {
        if self.has_ended {
            return self.tally;
        }
        // Each request since the last skipped record is of one record.
        let since = self.before + self.at as u64 - self.at_tally;
        let at_once = self.has_one_time && self.batch.requests.len() > 1;
        Tally { records: self.tally.records + since, has_one_time: at_once, ..self.tally }
    }

    fn progress(&self) -> f64 {
        self.batch.progress
    }

    fn devices(&self) -> Vec<String> {
        self.devices.clone()
    }

    fn format(&self) -> Option<&'static str> {
        Some(self.format)
    }
}

/// The thread that parses a trace.
struct Parser {
    /// The channels of filled and of used batches; `None` after the end of the thread.
    channels: Option<(Receiver<Batch>, SyncSender<Batch>)>,
    thread: Option<JoinHandle<()>>,
}

impl Parser {
    fn start(source: TraceSource, keeper: Option<Keeper>) -> std::io::Result<Self> {
        let (to_player, filled) = sync_channel(BATCHES);
        let (spent, to_parser) = sync_channel(BATCHES);
        // The player's own batch is the last one: it is empty, and is sent when the player takes its first batch.
        for _ in 1..BATCHES {
            spent.send(Batch::default()).expect("the receiver is in this function");
        }
        let thread = std::thread::Builder::new()
            .name("nandlab-trace-parser".into())
            .spawn(move || parse(source, keeper, &to_player, &to_parser))?;
        Ok(Self { channels: Some((filled, spent)), thread: Some(thread) })
    }

    /// Exchanges a used batch for the next batch.
    fn next(&mut self, batch: &mut Batch) {
        let received = self.channels.as_ref().and_then(|(filled, spent)| {
            // After the last batch the thread has ended and needs no batch.
            let _ = spent.send(std::mem::take(batch));
            filled.recv().ok()
        });
        match received {
            Some(next) => *batch = next,
            None => self.panicked(),
        }
    }

    /// The thread has ended without the end of the trace: passes its panic on.
    #[cold]
    fn panicked(&mut self) -> ! {
        self.channels = None;
        match self.thread.take().map(JoinHandle::join) {
            Some(Err(panic)) => std::panic::resume_unwind(panic),
            _ => unreachable!("the parser's thread ends with the end of the trace"),
        }
    }
}

impl Drop for Parser {
    /// Closes the channels, so that the thread ends, and waits for its end.
    fn drop(&mut self) {
        self.channels = None;
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

/// The parser's thread: fills batches until the end of the trace, or until the player is dropped.
fn parse(
    mut source: TraceSource,
    mut keeper: Option<Keeper>,
    out: &SyncSender<Batch>,
    spent: &Receiver<Batch>,
) {
    let (mut skipped, mut is_first) = (0, true);
    while let Ok(mut batch) = spent.recv() {
        batch.fill(&mut source, &mut skipped);
        if std::mem::take(&mut is_first) {
            batch.devices = source.devices();
        }
        keeper = keeper.and_then(|keeper| keeper.keep(&batch, &mut source));
        let is_last = batch.end.is_some();
        if out.send(batch).is_err() || is_last {
            return;
        }
    }
}
