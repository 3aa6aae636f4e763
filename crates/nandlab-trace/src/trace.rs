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
use nandlab_base::base::request::{Op, Request, Tag};
use nandlab_base::base::units::{Span, Time};
use nandlab_base::base::words::duration;
use nandlab_base::workload::{DeviceChoice, TraceSpec};
use std::collections::VecDeque;

/// The format of whose files a spreadsheet often makes all times equal.
const MSR: &str = "msr";
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
    /// Places of the record whose time is checked, and of the record after it, which shows whether the time is damaged.
    slots: [Item; 2],
    /// The slot of the next record, whose time has not been checked yet.
    at: usize,
    /// Whether that slot has a record.
    has_next: bool,
    /// Records that have been read after that of the slot, in their order.
    ahead: VecDeque<Item>,
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
            slots: [Item::NONE; 2],
            at: 0,
            has_next: false,
            ahead: VecDeque::new(),
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
        self.records.format
    }

    /// The hash and state of the file ([`Input::read_bytes`]). Called after the last request. `None` also if the file
    /// was read twice and has changed in between.
    pub(crate) fn read_bytes(&mut self) -> Option<ReadBytes> {
        self.records.input.read_bytes().filter(|read| self.selection.is_of(read.hash))
    }

    /// Reads the next record of the selected devices that parses and passes [`checked_offset`] into a slot. `false`: the
    /// file has ended.
    fn read_one(&mut self, slot: usize) -> Result<bool, TraceError> {
        loop {
            if self.read_to_end || !self.records.advance()? {
                self.read_to_end = true;
                return Ok(false);
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
                    return Ok(false);
                }
                Ok(Parsed::Request(raw)) => match self.selection.pick(raw.device) {
                    Picked::Other => continue,
                    Picked::Several => {
                        let second = raw.device.to_vec();
                        let at = self.records.position(number);
                        return Err(self.selection.several(&mut self.records, &second).at(at));
                    }
                    Picked::Base(base) => match checked_offset(&raw, base) {
                        Ok(offset) => {
                            self.slots[slot] = Item {
                                time_ns: raw.time_ns,
                                number,
                                op: raw.op,
                                fua: raw.fua,
                                flush_first: raw.flush_first,
                                offset,
                                len: raw.len,
                                placement: raw.placement,
                            };
                            return Ok(true);
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

    /// Puts the next record in order of time into a slot. The [`Order`] of the format decides whether records are sorted
    /// within a window, spread over their second, or taken as they are. `false`: the trace has ended.
    #[inline]
    fn next_item(&mut self, slot: usize) -> Result<bool, TraceError> {
        let item = match self.records.order {
            Order::Ascending => return self.read_one(slot),
            Order::Window => {
                while !self.read_to_end && !self.window.is_full() && self.read_one(slot)? {
                    self.window.push(self.slots[slot]);
                }
                self.window.pop()
            }
            Order::Nearly => {
                while !self.read_to_end && !self.nearly.is_full() && self.read_one(slot)? {
                    self.nearly.push(&self.slots[slot]);
                }
                self.nearly.pop()
            }
            Order::Seconds => loop {
                if let Some(item) = self.spread.pop() {
                    break Some(item);
                }
                if self.read_to_end {
                    break None;
                }
                if !self.read_one(slot)? {
                    self.spread.finish();
                } else if !self.spread.push(self.slots[slot]) {
                    return Err(TraceError::new(
                        ErrorKind::Order,
                        format!("expected at most {SECOND_MAX} requests in one second, found more"),
                        "choose one volume with workload.device",
                    )
                    .at(self.records.position(self.slots[slot].number)));
                }
            },
        };
        match item {
            Some(item) => self.slots[slot] = item,
            None => return Ok(false),
        }
        Ok(true)
    }

    fn advance(&mut self) -> Result<Option<Request>, TraceError> {
        loop {
            let at = self.at;
            if !self.has_next && !self.pull(at) {
                if let Some(error) = self.error.take() {
                    return Err(error);
                }
                self.check_end()?;
                return Ok(None);
            }
            if !self.spec.uses_times {
                self.has_next = false;
                let time_ns = self.slots[at].time_ns;
                self.first_ns.get_or_insert(time_ns);
                self.slots[at].time_ns = time_ns.max(self.last.0);
                return self.request(at).map(Some);
            }
            self.has_next = self.pull(at ^ 1);
            self.at = at ^ 1;
            if self.is_in_order(at) || self.is_accepted(at)? {
                return self.request(at).map(Some);
            }
        }
    }

    /// Whether the record of a slot is not the first, not earlier than the record before, at most `workload.max_gap` later,
    /// and not later than the record after it.
    #[inline]
    fn is_in_order(&self, slot: usize) -> bool {
        let time_ns = self.slots[slot].time_ns;
        self.first_ns.is_some()
            && time_ns >= self.last.0
            && time_ns - self.last.0 <= self.spec.max_gap_ns.ns()
            && (!self.has_next || self.slots[self.at].time_ns >= time_ns)
    }

    /// Whether the record of a slot, whose time is not simply in order, is accepted; otherwise it is skipped or an error.
    fn is_accepted(&mut self, slot: usize) -> Result<bool, TraceError> {
        let item = self.slots[slot];
        let next = self.has_next.then_some(self.slots[self.at]);
        if self.first_ns.is_none() {
            if self.spec.lenient.is_some() && self.is_first_damaged(&item, next) {
                let is_late = next.is_some_and(|second| second.time_ns < item.time_ns);
                self.skip(if is_late { Reason::Late } else { Reason::Early });
                return Ok(false);
            }
            if self.is_outlier(&item, next) {
                self.skip_or_refuse(Reason::Late, &item, Self::ahead_of_all)?;
                return Ok(false);
            }
            self.first_ns = Some(item.time_ns);
            return Ok(true);
        }
        if item.time_ns < self.last.0 {
            self.skip_or_refuse(Reason::Early, &item, Self::backwards)?;
            return Ok(false);
        }
        if item.time_ns - self.last.0 > self.spec.max_gap_ns.ns() {
            let is_damaged = next.is_none_or(|next| next.time_ns < item.time_ns);
            if self.spec.lenient.is_some() && is_damaged {
                self.skip(Reason::Late);
                return Ok(false);
            }
            return Err(self.gap(&item).at(self.records.position(item.number)));
        }
        if self.is_outlier(&item, next) {
            self.skip_or_refuse(Reason::Late, &item, Self::ahead_of_all)?;
            return Ok(false);
        }
        Ok(true)
    }

    /// The request of the record of a slot, whose time is accepted.
    #[inline(always)]
    fn request(&mut self, slot: usize) -> Result<Request, TraceError> {
        let item = &self.slots[slot];
        let first = self.first_ns.unwrap_or(item.time_ns);
        self.all_equal &= item.time_ns == first;
        self.last = (item.time_ns, item.number);
        self.requests += 1;
        if self.all_equal && self.requests == EQUAL_TIMES && self.needs_times() {
            return Err(equal_times(EQUAL_TIMES).at(self.records.position(item.number)));
        }
        let request = Request::new(item.op, item.offset, item.len)
            .at(Time::from_ns(item.time_ns - first))
            .with_fua(item.fua)
            .with_tag(Tag { queue: 0, placement: item.placement });
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

    /// Puts the record after those that have been read into a slot. `false` at the end and at an error, which `error` then
    /// has.
    #[inline(always)]
    fn pull(&mut self, slot: usize) -> bool {
        if let Some(item) = self.ahead.pop_front() {
            self.slots[slot] = item;
            return true;
        }
        if self.error.is_some() {
            return false;
        }
        match self.next_item(slot) {
            Ok(is_there) => is_there,
            Err(error) => {
                self.error = Some(error);
                false
            }
        }
    }

    /// The record after the next one; `None` if the trace ends before it.
    #[cold]
    fn after_next(&mut self) -> Option<Item> {
        if self.ahead.is_empty() {
            // The slot of the record whose time is checked: its caller has a copy of it.
            let slot = self.at ^ 1;
            let checked = self.slots[slot];
            if self.pull(slot) {
                self.ahead.push_back(self.slots[slot]);
            }
            self.slots[slot] = checked;
        }
        self.ahead.front().copied()
    }

    /// Whether the times of two records are further apart than `workload.max_gap`.
    fn is_far(&self, a: &Item, b: &Item) -> bool {
        a.time_ns.abs_diff(b.time_ns) > self.spec.max_gap_ns.ns()
    }

    /// Whether the first record has a damaged time: the second record is far from the first ([`Self::is_far`]), and the
    /// third record is 0 to `workload.max_gap` later than the second.
    fn is_first_damaged(&mut self, first: &Item, second: Option<Item>) -> bool {
        let Some(second) = second.filter(|second| self.is_far(first, second)) else { return false };
        self.after_next()
            .is_some_and(|third| third.time_ns >= second.time_ns && !self.is_far(&second, &third))
    }

    /// Whether `item` is later than the two records after it, and these are no earlier than the record before `item`:
    /// then it is `item` that has the damaged time.
    fn is_outlier(&mut self, item: &Item, next: Option<Item>) -> bool {
        let before = if self.first_ns.is_some() { self.last.0 } else { 0 };
        let is_within = |other: &Item| (before..item.time_ns).contains(&other.time_ns);
        next.is_some_and(|next| is_within(&next)) && self.after_next().is_some_and(|after| is_within(&after))
    }

    /// Whether equal times of all records are an error.
    fn needs_times(&self) -> bool {
        self.spec.uses_times && self.records.format == MSR
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
        let next = if self.has_next { &self.slots[self.at] } else { item };
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
        let (message, remedy) = match self.records.order {
            Order::Window => (
                format!(
                    "is {back_us} µs too early: at least {WINDOW} records before this one have later times"
                ),
                "sort the file by time, or skip such records with workload.lenient = true",
            ),
            _ => (format!("is {back_us} µs earlier than that of the request before"), CORRECT_RECORD),
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
