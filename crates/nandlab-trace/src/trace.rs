//! A trace file as a [`Source`]: choice of format and device, order in time, and the checks common to all formats.

use crate::device::{Picked, Selection};
use crate::error::{ErrorKind, Position, TraceError};
use crate::format::{Order, Parsed};
use crate::input::Content;
use crate::order::{Item, Nearly, SECOND_MAX, SecondSpread, WINDOW, Window};
use crate::parse::CORRECT_RECORD;
use crate::records::{Records, empty};
use crate::source::Source;
use crate::stamp::ReadBytes;
use crate::tally::{Reason, Tally};
use nandlab_base::base::request::{Op, Request};
use nandlab_base::base::units::{Span, Time};
use nandlab_base::base::words::duration;
use nandlab_base::workload::{DeviceChoice, Format, TraceSpec};
use std::collections::VecDeque;

/// An MSR trace whose first 1000 requests all have the same time is damaged.
const EQUAL_TIMES: u64 = 1000;
/// A shorter MSR trace is damaged if it has at least 50 requests and all have the same time.
const EQUAL_TIMES_WHOLE: u64 = 50;

/// Bytes of the longest read or write that is accepted, 4 GiB. A real device has no longer request, and the drive would
/// simulate every page of such a request.
const LEN_MAX: u64 = 1 << 32;

/// A trace file that is being read.
pub(crate) struct TraceSource {
    records: Records,
    spec: TraceSpec,
    selection: Selection,
    window: Window,
    nearly: Nearly,
    spread: SecondSpread,
    ready: VecDeque<Request>,
    /// Records that have been read and not yet turned into requests, in their order. The records after a record show
    /// whether its time is damaged.
    ahead: VecDeque<Item>,
    /// The next record, whose time has not been checked yet.
    next: Option<Item>,
    /// The error after the last record that was read.
    error: Option<TraceError>,
    /// Time of the first accepted record, which is arrival 0.
    first_ns: Option<u64>,
    /// Time in nanoseconds, and number, of the last accepted record.
    last: (u64, u64),
    requests: u64,
    all_equal: bool,
    tally: Tally,
    skipped: u64,
    read_to_end: bool,
    failed: bool,
}

impl TraceSource {
    /// Opens a file, or `content` instead of it. With `hash` the bytes of the file are hashed ([`Self::read_bytes`]).
    pub(crate) fn open(spec: &TraceSpec, content: Option<&Content>, hash: bool) -> Result<Self, TraceError> {
        let twice = match spec.device {
            Some(DeviceChoice::Concatenate) => Some("workload.device = \"concatenate\""),
            Some(DeviceChoice::These(_)) => Some("workload.devices"),
            _ => None,
        };
        if let Some(key) = twice.filter(|_| content.is_none()) {
            crate::source::trace_read_again(spec, key)?;
        }
        let records = Records::open(spec, content, hash)?;
        let selection = Selection::new(spec, &records, content, hash)?;
        Ok(Self {
            records,
            spec: spec.clone(),
            selection,
            window: Window::default(),
            nearly: Nearly::default(),
            spread: SecondSpread::default(),
            ready: VecDeque::new(),
            ahead: VecDeque::new(),
            next: None,
            error: None,
            first_ns: None,
            last: (0, 0),
            requests: 0,
            all_equal: true,
            tally: Tally::default(),
            skipped: 0,
            read_to_end: false,
            failed: false,
        })
    }

    /// The name of the trace format.
    pub(crate) fn format_name(&self) -> &'static str {
        self.records.info.name()
    }

    /// The hash and state of the file ([`Input::read_bytes`]). Called after the last request. `None` also if the file
    /// was read twice and has changed in between.
    pub(crate) fn read_bytes(&mut self) -> Option<ReadBytes> {
        self.records.input.read_bytes().filter(|read| self.selection.is_of(read.hash))
    }

    /// The next record of the selected devices that parses and passes [`checked_offset`].
    fn read_one(&mut self) -> Result<Option<Item>, TraceError> {
        loop {
            if self.read_to_end || !self.records.advance()? {
                self.read_to_end = true;
                return Ok(None);
            }
            let number = self.records.input.number();
            let parsed = self.records.reader.parse(self.records.input.current(), number);
            self.tally.records += 1;
            let error = match parsed {
                Ok(Parsed::Nothing) => {
                    self.tally.records -= 1;
                    continue;
                }
                Ok(Parsed::Without { reason, device }) => {
                    if self.selection.has(device) {
                        self.tally.skip(reason);
                        self.skipped += 1;
                    }
                    continue;
                }
                Ok(Parsed::End) => {
                    self.tally.records -= 1;
                    self.read_to_end = true;
                    return Ok(None);
                }
                Ok(Parsed::Request(raw)) => match self.selection.pick(raw.device) {
                    Picked::Other => continue,
                    Picked::Several => {
                        let at = self.records.position(number);
                        let second = raw.device.to_vec();
                        return Err(self.selection.several(&mut self.records, &second).at(at));
                    }
                    Picked::Base(base) => match checked_offset(&raw, base) {
                        Ok(offset) => {
                            return Ok(Some(Item {
                                time_ns: raw.time_ns,
                                number,
                                op: raw.op,
                                fua: raw.fua,
                                flush_first: raw.flush_first,
                                offset,
                                len: raw.len,
                            }));
                        }
                        Err(error) => error,
                    },
                },
                Err(error) => error,
            };
            if self.spec.lenient.is_none() {
                return Err(error.at(self.records.position(number)));
            }
            self.skip(Reason::Malformed);
        }
    }

    fn skip(&mut self, reason: Reason) {
        self.tally.skip(reason);
        self.skipped += 1;
    }

    /// The next record in order of time. The [`Order`] of the format decides whether records are sorted within a
    /// window, spread over their second, or taken as they are.
    #[inline]
    fn next_item(&mut self) -> Result<Option<Item>, TraceError> {
        match self.records.info.order {
            Order::Ascending => self.read_one(),
            Order::Window => {
                while !self.read_to_end && !self.window.is_full() {
                    match self.read_one()? {
                        Some(item) => self.window.push(item),
                        None => break,
                    }
                }
                Ok(self.window.pop())
            }
            Order::Nearly => {
                while !self.read_to_end && !self.nearly.is_full() {
                    match self.read_one()? {
                        Some(item) => self.nearly.push(item),
                        None => break,
                    }
                }
                Ok(self.nearly.pop())
            }
            Order::Seconds => loop {
                if let Some(item) = self.spread.pop() {
                    return Ok(Some(item));
                }
                if self.read_to_end {
                    return Ok(None);
                }
                match self.read_one()? {
                    Some(item) => {
                        if !self.spread.push(item) {
                            return Err(TraceError::new(
                                ErrorKind::Order,
                                format!("expected at most {SECOND_MAX} requests in one second, found more"),
                                "choose one volume with workload.device",
                            )
                            .at(self.records.position(item.number)));
                        }
                    }
                    None => self.spread.finish(),
                }
            },
        }
    }

    fn advance(&mut self) -> Result<Option<Request>, TraceError> {
        loop {
            let Some(item) = self.next.take().or_else(|| self.pull()) else {
                if let Some(error) = self.error.take() {
                    return Err(error);
                }
                self.check_end()?;
                return Ok(None);
            };
            if !self.spec.uses_times {
                self.first_ns.get_or_insert(item.time_ns);
                return self.request(&Item { time_ns: item.time_ns.max(self.last.0), ..item }).map(Some);
            }
            self.next = self.pull();
            if self.first_ns.is_none() {
                if self.spec.lenient.is_some() && self.is_first_damaged(&item) {
                    let is_late = self.next.is_some_and(|second| second.time_ns < item.time_ns);
                    self.skip(if is_late { Reason::Late } else { Reason::Early });
                    continue;
                }
                if self.is_outlier(&item) {
                    self.skip_or_refuse(Reason::Late, &item, Self::ahead_of_all)?;
                    continue;
                }
                self.first_ns = Some(item.time_ns);
                self.last = (item.time_ns, item.number);
            } else if item.time_ns < self.last.0 {
                self.skip_or_refuse(Reason::Early, &item, Self::backwards)?;
                continue;
            } else if item.time_ns - self.last.0 > self.spec.max_gap_ns.ns() {
                if self.spec.lenient.is_some() && self.is_damaged(&item) {
                    self.skip(Reason::Late);
                    continue;
                }
                return Err(self.gap(&item).at(self.records.position(item.number)));
            } else if self.is_outlier(&item) {
                self.skip_or_refuse(Reason::Late, &item, Self::ahead_of_all)?;
                continue;
            }
            return self.request(&item).map(Some);
        }
    }

    /// The request of a record whose time is accepted.
    #[inline]
    fn request(&mut self, item: &Item) -> Result<Request, TraceError> {
        let first = self.first_ns.unwrap_or(item.time_ns);
        self.all_equal &= item.time_ns == first;
        self.last = (item.time_ns, item.number);
        self.requests += 1;
        if self.all_equal && self.requests == EQUAL_TIMES && self.needs_times() {
            return Err(equal_times(EQUAL_TIMES).at(self.records.position(item.number)));
        }
        let request = Request::new(item.op, item.offset, item.len)
            .at(Time::from_ns(item.time_ns - first))
            .with_fua(item.fua);
        if item.flush_first {
            self.ready.push_back(request);
            return Ok(Request::flush().at(request.arrival));
        }
        Ok(request)
    }

    /// Skips a record with `lenient`; without it, the record is an error.
    #[cold]
    fn skip_or_refuse(
        &mut self,
        reason: Reason,
        item: &Item,
        error: fn(&Self, &Item) -> TraceError,
    ) -> Result<(), TraceError> {
        if self.spec.lenient.is_none() {
            return Err(error(self, item).at(self.records.position(item.number)));
        }
        self.skip(reason);
        Ok(())
    }

    /// The record after those that have been read; `None` at the end and at an error, which `error` then has.
    #[inline]
    fn pull(&mut self) -> Option<Item> {
        if let Some(item) = self.ahead.pop_front() {
            return Some(item);
        }
        if self.error.is_some() {
            return None;
        }
        match self.next_item() {
            Ok(item) => item,
            Err(error) => {
                self.error = Some(error);
                None
            }
        }
    }

    /// The record after `next`; `None` if the trace ends before it.
    fn after_next(&mut self) -> Option<Item> {
        if self.ahead.is_empty()
            && let Some(item) = self.pull()
        {
            self.ahead.push_back(item);
        }
        self.ahead.front().copied()
    }

    /// Whether the times of two records are further apart than `workload.max_gap`.
    fn is_far(&self, a: &Item, b: &Item) -> bool {
        a.time_ns.abs_diff(b.time_ns) > self.spec.max_gap_ns.ns()
    }

    /// Whether the first record has a damaged time: the second record is far from the first ([`Self::is_far`]), and the
    /// third record is 0 to `workload.max_gap` later than the second.
    #[cold]
    fn is_first_damaged(&mut self, first: &Item) -> bool {
        let Some(second) = self.next.filter(|second| self.is_far(first, second)) else { return false };
        self.after_next()
            .is_some_and(|third| third.time_ns >= second.time_ns && !self.is_far(&second, &third))
    }

    /// Whether `item`, the record after a gap, has a damaged time: the next record is earlier than `item`, or there is
    /// no next record.
    #[cold]
    fn is_damaged(&self, item: &Item) -> bool {
        self.next.is_none_or(|next| next.time_ns < item.time_ns)
    }

    /// Whether `item` is later than the two records after it, and these are no earlier than the record before `item`:
    /// then it is `item` that has the damaged time.
    #[inline]
    fn is_outlier(&mut self, item: &Item) -> bool {
        match self.next {
            Some(next) if next.time_ns < item.time_ns => self.is_later_than_two(item, &next),
            _ => false,
        }
    }

    #[cold]
    fn is_later_than_two(&mut self, item: &Item, next: &Item) -> bool {
        let before = if self.first_ns.is_some() { self.last.0 } else { 0 };
        let is_within = |other: &Item| (before..item.time_ns).contains(&other.time_ns);
        is_within(next) && self.after_next().is_some_and(|after| is_within(&after))
    }

    /// Whether equal times of all records are an error.
    fn needs_times(&self) -> bool {
        self.spec.uses_times && self.records.info.format == Format::Msr
    }

    fn check_end(&self) -> Result<(), TraceError> {
        if self.requests == 0 {
            return Err(self.selection.missing(&self.records).unwrap_or_else(|| empty(self.skipped)));
        }
        if let Some(at_most) = self.spec.lenient {
            self.tally.check(at_most)?;
        }
        if self.all_equal && self.requests >= EQUAL_TIMES_WHOLE && self.needs_times() {
            return Err(equal_times(self.requests));
        }
        Ok(())
    }

    /// `line 7`, or `record 7` of a binary format.
    fn named(&self, number: u64) -> String {
        match self.records.position(number) {
            Position::Line(line) => format!("line {line}"),
            Position::Record { number, .. } => format!("record {number}"),
        }
    }

    /// The error for a record that is an outlier ([`Self::is_outlier`]).
    #[cold]
    fn ahead_of_all(&self, item: &Item) -> TraceError {
        let next = self.next.as_ref().unwrap_or(item);
        let later = duration(Span::from_ns(item.time_ns - next.time_ns).seconds());
        let message = format!(
            "is {later} later than that of {}, and the record after that is earlier too",
            self.named(next.number)
        );
        TraceError::new(ErrorKind::Order, message, CORRECT_RECORD).field_name("time")
    }

    #[cold]
    fn gap(&self, item: &Item) -> TraceError {
        let gap_ns = item.time_ns - self.last.0;
        let before = self.named(self.last.1);
        let span = duration(Span::from_ns(gap_ns).seconds());
        let mut message = format!("is {span} later than that of {before}");
        let mut remedy = "correct the damaged one of these two records".to_owned();
        if self.spec.lenient.is_some() {
            message.push_str(", and the next record is no earlier");
        } else {
            remedy.push_str(", or skip such records with workload.lenient = true");
        }
        if gap_ns <= Span::LIMIT.ns() {
            remedy.push_str(&format!(
                ", or allow the gap with workload.max_gap = \"{}d\"",
                gap_ns.div_ceil(DAY_NS)
            ));
        }
        TraceError::new(ErrorKind::Order, message, remedy).field_name("time")
    }

    #[cold]
    fn backwards(&self, item: &Item) -> TraceError {
        let back_us = (self.last.0 - item.time_ns) as f64 / 1e3;
        let (message, remedy) = match self.records.info.order {
            Order::Window => (
                format!(
                    "is {back_us} us too early: at least {WINDOW} records before this one have later times"
                ),
                "sort the file by time, or skip such records with workload.lenient = true",
            ),
            _ => (format!("is {back_us} us earlier than that of the request before"), CORRECT_RECORD),
        };
        TraceError::new(ErrorKind::Order, message, remedy).field_name("time")
    }
}

/// One day in nanoseconds.
const DAY_NS: u64 = nandlab_base::base::units::DAY.ns();

/// Checks length and address of a record. Returns the address plus `base`, or 0 for a flush.
#[inline]
pub(crate) fn checked_offset(raw: &crate::format::Raw<'_>, base: u64) -> Result<u64, TraceError> {
    if raw.op == Op::Flush {
        return Ok(0);
    }
    if raw.len == 0 {
        return Err(TraceError::new(
            ErrorKind::Malformed,
            "expected a length above 0, found 0",
            CORRECT_RECORD,
        )
        .field_name("length"));
    }
    if raw.len > LEN_MAX && raw.op != Op::Trim {
        let message = format!("expected a length of at most 4 GiB, found {} bytes", raw.len);
        return Err(TraceError::new(ErrorKind::Malformed, message, CORRECT_RECORD).field_name("length"));
    }
    match raw.offset.checked_add(base) {
        Some(offset) if offset.checked_add(raw.len).is_some() => Ok(offset),
        _ => Err(TraceError::new(
            ErrorKind::Malformed,
            "expected a request that ends below 2^64 bytes, found a request that ends beyond",
            CORRECT_RECORD,
        )
        .field_name("offset")),
    }
}

fn equal_times(n: u64) -> TraceError {
    TraceError::new(
        ErrorKind::Malformed,
        format!("all {n} requests so far have the same time: a spreadsheet has rounded the times"),
        "fetch the original trace: this copy has lost the times; or play it without times, with workload.arrival = { \
         queue_depth = 32 }",
    )
    .field_name("Timestamp")
}

impl Source for TraceSource {
    #[inline]
    fn next_request(&mut self) -> Option<Result<Request, TraceError>> {
        if let Some(request) = self.ready.pop_front() {
            return Some(Ok(request));
        }
        if self.failed {
            return None;
        }
        match self.advance() {
            Ok(request) => request.map(Ok),
            Err(error) => {
                self.failed = true;
                Some(Err(error.in_file(&self.spec.path)))
            }
        }
    }

    fn skipped(&self) -> u64 {
        self.skipped
    }

    fn tally(&self) -> Tally {
        Tally {
            further_logs: self.records.reader.further_logs(),
            sorted: self.nearly.sorted,
            has_one_time: self.all_equal && self.requests > 1 && self.spec.uses_times,
            ..self.tally
        }
    }

    fn progress(&self) -> f64 {
        self.records.input.progress()
    }

    fn devices(&self) -> Vec<String> {
        self.selection.names(&self.records)
    }

    fn format(&self) -> Option<&'static str> {
        Some(self.format_name())
    }
}
