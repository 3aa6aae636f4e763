//! The reader of text whose lines are only columns: the rows of [`super::rows`], and the columns that a user describes.
//!
//! A line is parsed in one pass that accepts the usual shape: plain numbers, one separator between columns, no quotes. A
//! line of another shape is parsed again cell by cell, which accepts values in double quotes and numbers such as `4096.0`,
//! and names what is wrong. Both give the same request for a line that the first pass accepts.

use super::{Parsed, Raw, Reader, ReaderOptions, head_lines};
use crate::error::{ErrorKind, TraceError, quoted};
use crate::parse::{
    CORRECT_RECORD, POWERS, bad, date, hexadecimal, is_blank, missing, time, trimmed, whole, whole_time,
};
use crate::tally::Reason;
use nandlab_base::base::request::Op;
use nandlab_base::columns::{Column, Columns, Kind, Ops, Separator, Unit};
use std::ops::Range;

/// Number of lines at the start of the file that decide on [`Separator::Any`].
const SEPARATOR_LINES: usize = 16;

/// Reads lines of columns.
pub(super) struct ColumnReader {
    of: Columns,
    separator: Separator,
    /// The columns for the first pass; empty if some column needs the second.
    steps: Vec<Step>,
    /// The cells of the line in the second pass.
    cells: Vec<Range<usize>>,
    /// The name of a device that several columns state.
    joined: Vec<u8>,
}

/// What the first pass does with a column. Most columns are whole numbers, which need no more than `what` and `unit`.
struct Step {
    /// What the whole number is, such as [`TIME`]; [`OTHER`] for a column of another kind.
    what: usize,
    /// The unit of the whole number.
    unit: u64,
    other: Other,
}

/// What the first pass does with a column that is no whole number, or one with a limit.
enum Other {
    Nothing,
    /// A whole number that is not used, of at most this.
    Limited(u64),
    /// A time with decimals, in units of so many nanoseconds.
    Time(u64),
    Device,
    /// An operation of one character: by character, the index of the operation in [`LETTERS`].
    Letter(Box<[u8; 256]>),
    /// An operation of at most eight characters.
    Word(Vec<([u8; 8], Option<Op>)>),
    Bit0,
    Skip,
}

const TIME: usize = 0;
const OFFSET: usize = 1;
const SIZE: usize = 2;
const DEVICE: usize = 3;
const UNUSED: usize = 4;
const PLACEMENT: usize = 5;
const OTHER: usize = 8;

/// The meanings of a character; a record with the first is ignored.
const LETTERS: [Option<Op>; 5] = [None, Some(Op::Read), Some(Op::Write), Some(Op::Trim), Some(Op::Flush)];
/// The character has no meaning.
const UNKNOWN: u8 = u8::MAX;

impl ColumnReader {
    pub(super) fn new(of: Columns, head: &[u8]) -> Self {
        let separator = match of.separator {
            Separator::Any => separator_of(&of, head),
            separator => separator,
        };
        Self::separated(of, separator)
    }

    fn separated(of: Columns, separator: Separator) -> Self {
        // The cells of two device columns are one slice only if a comma separates them.
        let devices = of.columns.iter().filter(|column| matches!(column.kind, Kind::Device)).count();
        let joins = devices > 1 && !(separator == Separator::Byte(b',') && are_neighbours(&of.columns));
        let steps = of.columns.iter().map(|column| step(&column.kind)).collect::<Option<Vec<_>>>();
        let steps = steps.filter(|_| !joins).unwrap_or_default();
        Self { of, separator, steps, cells: Vec::new(), joined: Vec::new() }
    }

    /// The first pass; `None` for a line that needs the second.
    #[inline(always)]
    fn plain<const BLANKS: bool>(&self, line: &[u8], separator: u8) -> Option<Record> {
        let is_separator = |b: u8| if BLANKS { is_blank(b) } else { b == separator };
        let mut op = self.of.op;
        let mut numbers = [0, 0, self.of.size.unwrap_or(0), 0, 0, 0, 0, 0];
        let mut device = 0..0;
        let mut is_ignored = false;
        let mut at = 0;
        let last = self.steps.len().checked_sub(1)?;
        for (index, step) in self.steps.iter().enumerate() {
            while is_blank(*line.get(at)?) && (BLANKS || separator != line[at]) {
                at += 1;
            }
            let start = at;
            if step.what < OTHER {
                numbers[step.what] = digits(line, &mut at)?.checked_mul(step.unit)?;
                if step.what == DEVICE {
                    device = start..at;
                }
            } else {
                match &step.other {
                    Other::Nothing => {}
                    Other::Limited(max) => _ = digits(line, &mut at).filter(|n| n <= max)?,
                    Other::Time(unit) => numbers[TIME] = decimal(line, &mut at, *unit)?,
                    Other::Letter(meanings) => {
                        let meaning = *LETTERS.get(usize::from(meanings[usize::from(line[at])]))?;
                        (op, is_ignored) = (meaning, meaning.is_none());
                        at += 1;
                    }
                    Other::Word(values) => {
                        let mut word = [0; 8];
                        while let Some(&b) = line.get(at).filter(|&&b| !is_separator(b)) {
                            *word.get_mut(at - start)? = b;
                            at += 1;
                        }
                        if at == start || line[at - 1] == 0 {
                            return None;
                        }
                        op = values.iter().find(|(value, _)| *value == word)?.1;
                        is_ignored = op.is_none();
                    }
                    Other::Bit0 => {
                        let mut bits = 0;
                        while let Some(digit) = line.get(at).and_then(|&b| (b as char).to_digit(16)) {
                            (bits, at) = (digit, at + 1);
                        }
                        if !(1..=16).contains(&(at - start)) {
                            return None;
                        }
                        op = Some(if bits & 1 == 1 { Op::Read } else { Op::Write });
                    }
                    Other::Device => {
                        while line.get(at).is_some_and(|&b| !is_separator(b)) {
                            at += 1;
                        }
                        // A quoted or empty value, and blanks after it, are for the second pass.
                        if at == start || line[start] == b'"' || is_blank(line[at - 1]) {
                            return None;
                        }
                        device = if device.is_empty() { start..at } else { device.start..at };
                    }
                    Other::Skip => {
                        if line[at] == b'"' {
                            return None;
                        }
                        while line.get(at).is_some_and(|&b| !is_separator(b)) {
                            at += 1;
                        }
                    }
                }
            }
            if index < last {
                if !is_separator(*line.get(at)?) {
                    return None;
                }
                at += 1;
            }
        }
        if self.of.is_open {
            if line.get(at).is_some_and(|&b| !is_separator(b)) {
                return None;
            }
        } else {
            while BLANKS && line.get(at).is_some_and(|&b| is_blank(b)) {
                at += 1;
            }
            if at < line.len() {
                return None;
            }
        }
        let [time_ns, offset, len, _, _, placement, ..] = numbers;
        let placement = u16::try_from(placement).ok()?;
        let op = if is_ignored { None } else { op };
        Some(Record { time_ns, device: Some(device), op, offset, len, placement })
    }

    /// The second pass.
    #[cold]
    #[inline(never)]
    fn cells<'a>(&'a mut self, line: &'a [u8], number: u64) -> Result<Parsed<'a>, TraceError> {
        let comment = &self.of.comment[..];
        if trimmed(line).is_empty() || (!comment.is_empty() && trimmed(line).starts_with(comment)) {
            return Ok(Parsed::Nothing);
        }
        if number <= self.of.header_lines {
            return Ok(Parsed::Nothing);
        }
        split(line, self.separator, &self.of, &mut self.cells)?;
        let record = match record(&self.of, line, &self.cells, &mut self.joined) {
            Ok(record) => record,
            Err(_) if number == 1 && is_header(&self.of, line, &self.cells) => return Ok(Parsed::Nothing),
            Err(error) => return Err(error),
        };
        // A blank value says nothing; another value that is ignored has a meaning.
        if record.op.is_none() && self.has_blank_op() {
            let device = record.device.map_or(&self.joined[..], |cell| &line[cell]);
            return Ok(Parsed::Without { reason: Reason::NoType, device });
        }
        Ok(record.parsed(line, &self.joined))
    }

    /// Whether the operation of the line in `cells` is blank.
    fn has_blank_op(&self) -> bool {
        let at = self.of.columns.iter().position(|column| matches!(column.kind, Kind::Op(_)));
        at.and_then(|at| self.cells.get(at)).is_some_and(Range::is_empty)
    }
}

impl Reader for ColumnReader {
    #[inline]
    fn parse<'a>(&'a mut self, line: &'a [u8], number: u64) -> Result<Parsed<'a>, TraceError> {
        if number > self.of.header_lines {
            let record = match self.separator {
                Separator::Byte(separator) => self.plain::<false>(line, separator),
                _ => self.plain::<true>(line, b' '),
            };
            if let Some(record) = record
                && (self.of.comment.is_empty() || !trimmed(line).starts_with(&self.of.comment))
            {
                return Ok(record.parsed(line, b""));
            }
        }
        self.cells(line, number)
    }

    fn device_key(&self, name: &str) -> Vec<u8> {
        let parts = self.of.columns.iter().filter(|column| matches!(column.kind, Kind::Device)).count();
        // The device of an MSR trace is named HOST_DISK, and the name of a host may have a `_`.
        let mut key: Vec<&str> = name.rsplitn(parts.max(1), '_').collect();
        key.reverse();
        key.join(",").into_bytes()
    }

    fn device_name(&self, key: &[u8]) -> String {
        let parts = self.of.columns.iter().filter(|column| matches!(column.kind, Kind::Device)).count();
        key.escape_ascii().to_string().replacen(',', "_", parts.saturating_sub(1))
    }
}

/// Whether the columns that name the device follow one another.
fn are_neighbours(columns: &[Column]) -> bool {
    let mut of_device = columns.iter().map(|column| matches!(column.kind, Kind::Device));
    of_device.by_ref().find(|is_device| *is_device);
    !of_device.skip_while(|is_device| *is_device).any(|is_device| is_device)
}

fn step(kind: &Kind) -> Option<Step> {
    let number = |what, unit| Some(Step { what, unit, other: Other::Nothing });
    let other = match kind {
        Kind::Ticks(unit) => return number(TIME, *unit),
        Kind::DeviceNumber => return number(DEVICE, 1),
        Kind::Offset(Unit { bytes, hex: false }) => return number(OFFSET, *bytes),
        Kind::Size(Unit { bytes, hex: false }) => return number(SIZE, *bytes),
        Kind::Placement => return number(PLACEMENT, 1),
        Kind::Number(u64::MAX) => return number(UNUSED, 1),
        Kind::Number(max) => Other::Limited(*max),
        Kind::Time(unit) => Other::Time(*unit),
        Kind::Device => Other::Device,
        Kind::Op(Ops::Bit0) => Other::Bit0,
        // Values of other lengths and cases are for the second pass.
        Kind::Op(Ops::Values { values, .. }) => {
            let of_length =
                |most: usize| values.iter().filter(move |(value, _)| (1..=most).contains(&value.len()));
            if of_length(1).count() == of_length(8).count() {
                let mut meanings = Box::new([UNKNOWN; 256]);
                for (value, op) in of_length(1) {
                    let index = LETTERS.iter().position(|letter| letter == op)?;
                    meanings[usize::from(value.as_bytes()[0])] = index as u8;
                }
                Other::Letter(meanings)
            } else {
                let word = |value: &str| {
                    let mut word = [0; 8];
                    word[..value.len()].copy_from_slice(value.as_bytes());
                    word
                };
                Other::Word(of_length(8).map(|(value, op)| (word(value), *op)).collect())
            }
        }
        Kind::Skip | Kind::Words => Other::Skip,
        Kind::Parts(_) | Kind::Date | Kind::Offset(_) | Kind::Size(_) => return None,
    };
    Some(Step { what: OTHER, unit: 0, other })
}

/// The digits at `at`, at most 19, as a number. Eight bytes are read at once where the line has them.
#[inline(always)]
fn digits(line: &[u8], at: &mut usize) -> Option<u64> {
    let start = *at;
    let value = |at: usize| line.get(at).map_or(u8::MAX, |b| b.wrapping_sub(b'0'));
    let (first, second) = (value(start), value(start + 1));
    if second > 9 {
        *at += usize::from(first <= 9);
        return (first <= 9).then_some(first.into());
    }
    let mut n = 0u64;
    while let Some(bytes) = line.get(*at..).and_then(<[u8]>::first_chunk) {
        // A digit becomes its value; the high bit of a byte that is no digit is set in `others`.
        let values = u64::from_le_bytes(*bytes) ^ 0x3030_3030_3030_3030;
        let others =
            (((values & 0x7f7f_7f7f_7f7f_7f7f) + 0x7676_7676_7676_7676) | values) & 0x8080_8080_8080_8080;
        let count = (others.trailing_zeros() / 8) as usize;
        if count == 0 {
            break;
        }
        n = n.wrapping_mul(POWERS[count]).wrapping_add(eight_digits(values << (64 - 8 * count)));
        *at += count;
        if count < 8 {
            return (*at - start <= 19).then_some(n);
        }
    }
    while let Some(&b) = line.get(*at) {
        let digit = b.wrapping_sub(b'0');
        if digit > 9 {
            break;
        }
        n = n.wrapping_mul(10).wrapping_add(digit.into());
        *at += 1;
    }
    (1..=19).contains(&(*at - start)).then_some(n)
}

/// The number of the eight digits whose values are the bytes of `values`, the first digit in the lowest byte. Neighbours
/// are joined to pairs, pairs to fours, fours to eight, with two pairs in each multiplication.
#[inline(always)]
fn eight_digits(values: u64) -> u64 {
    const PAIRS: u64 = 0x0000_00ff_0000_00ff;
    let pairs = values.wrapping_mul(10).wrapping_add(values >> 8);
    let even = (pairs & PAIRS).wrapping_mul(100 + (1_000_000 << 32));
    let odd = ((pairs >> 16) & PAIRS).wrapping_mul(1 + (10_000 << 32));
    even.wrapping_add(odd) >> 32
}

/// The number at `at`, with at most nine decimals, in units of `unit` nanoseconds, rounded to a nanosecond.
#[inline(always)]
fn decimal(line: &[u8], at: &mut usize, unit: u64) -> Option<u64> {
    let ns = digits(line, at)?.checked_mul(unit)?;
    if line.get(*at) != Some(&b'.') {
        return Some(ns);
    }
    *at += 1;
    let start = *at;
    let n = digits(line, at)?;
    let scale = *POWERS[..=9].get(*at - start)?;
    ns.checked_add((n * unit + scale / 2) / scale)
}

/// What the columns of a line state.
struct Record {
    time_ns: u64,
    /// The cell of the device; `None` if several cells name it together.
    device: Option<Range<usize>>,
    /// `None`: the record is ignored.
    op: Option<Op>,
    offset: u64,
    len: u64,
    placement: u16,
}

impl Record {
    /// The record of `line`; `joined` is the name of a device that several cells state. A flush has no address.
    #[inline(always)]
    fn parsed<'a>(self, line: &'a [u8], joined: &'a [u8]) -> Parsed<'a> {
        let Some(op) = self.op else { return Parsed::Nothing };
        let device = match self.device {
            Some(cell) => &line[cell],
            None => joined,
        };
        let (offset, len) = if op == Op::Flush { (0, 0) } else { (self.offset, self.len) };
        Parsed::Request(Raw { placement: self.placement, ..Raw::of(self.time_ns, device, op, offset, len) })
    }
}

/// Parses the cells of a line. The parts of a device's name are joined by commas.
fn record(
    of: &Columns,
    line: &[u8],
    cells: &[Range<usize>],
    joined: &mut Vec<u8>,
) -> Result<Record, TraceError> {
    let mut found = Record {
        time_ns: 0,
        device: Some(0..0),
        op: of.op,
        offset: 0,
        len: of.size.unwrap_or(0),
        placement: 0,
    };
    let mut devices = 0;
    joined.clear();
    for (index, Column { field, kind }) in of.columns.iter().enumerate() {
        let cell = cells.get(index).ok_or_else(|| missing(field))?.clone();
        let value = &line[cell.clone()];
        match kind {
            Kind::Ticks(unit) => found.time_ns = whole_time(field, value, *unit)?,
            Kind::Time(unit) => found.time_ns = time(field, value, *unit)?,
            Kind::Parts(parts) => found.time_ns = whole_time(field, value, 1)? / parts,
            Kind::Date => found.time_ns = date(field, value)?,
            Kind::DeviceNumber if value.is_empty() || value.iter().any(|b| !b.is_ascii_digit()) => {
                return Err(bad(field, value, "a device number"));
            }
            Kind::Device | Kind::DeviceNumber => {
                devices += 1;
                if devices > 1 {
                    joined.push(b',');
                }
                joined.extend_from_slice(value);
                found.device = (devices == 1).then_some(cell);
            }
            Kind::Offset(unit) => {
                let what = if unit.bytes == 1 { "a byte address" } else { "a number of sectors" };
                found.offset = bytes(field, value, *unit, what)?;
            }
            Kind::Size(unit) => {
                let what = if unit.bytes == 1 { "a number of bytes" } else { "a number of sectors" };
                found.len = bytes(field, value, *unit, what)?;
            }
            Kind::Placement if value.is_empty() => {}
            Kind::Placement => {
                let number = whole(field, value, "a placement")?;
                let is_beyond = |_| bad(field, value, "a placement, from 0 to 65535");
                found.placement = number.try_into().map_err(is_beyond)?;
            }
            Kind::Op(ops) => found.op = operation(field, value, ops)?,
            Kind::Number(max) => {
                if whole(field, value, "a number")? > *max {
                    return Err(bad(field, value, &format!("a number of at most {max}")));
                }
            }
            Kind::Skip | Kind::Words => {}
        }
    }
    match cells.get(of.columns.len()) {
        Some(cell) if !of.is_open => Err(bad("(end of line)", &line[cell.clone()], "no further column")),
        _ => Ok(found),
    }
}

/// A number of units, in bytes.
fn bytes(field: &'static str, value: &[u8], unit: Unit, what: &str) -> Result<u64, TraceError> {
    let n = if unit.hex { hexadecimal(field, value)? } else { whole(field, value, what)? };
    n.checked_mul(unit.bytes)
        .ok_or_else(|| bad(field, value, &format!("{what} whose byte address is below 2^64")))
}

/// The meaning of an operation; `None` if the record is ignored.
fn operation(field: &'static str, value: &[u8], ops: &Ops) -> Result<Option<Op>, TraceError> {
    let (values, any_case, ignore_others) = match ops {
        Ops::Values { values, any_case, ignore_others } => (values, *any_case, *ignore_others),
        Ops::Bit0 => {
            let digits = value.strip_prefix(b"0x").unwrap_or(value);
            let last = digits.last().and_then(|&b| (b as char).to_digit(16));
            let is_hex = digits.len() <= 16 && digits.iter().all(u8::is_ascii_hexdigit);
            let bits = last.filter(|_| is_hex).ok_or_else(|| bad(field, value, "a hexadecimal bit field"))?;
            return Ok(Some(if bits & 1 == 1 { Op::Read } else { Op::Write }));
        }
    };
    let is_value = |known: &str| match any_case {
        true => known.as_bytes().eq_ignore_ascii_case(value),
        false => known.as_bytes() == value,
    };
    match values.iter().find(|(known, _)| is_value(known)) {
        Some((_, op)) => Ok(*op),
        None if ignore_others => Ok(None),
        None => Err(bad(field, value, &expected(values))),
    }
}

/// The values of a column of operations for a message: `1 (read) or 0 (write)`.
fn expected(values: &[(String, Option<Op>)]) -> String {
    let mut shown: Vec<String> = Vec::new();
    for (value, op) in values {
        let text = match (value.as_str(), op) {
            ("", _) => "blank".to_owned(),
            (value, None) => value.to_owned(),
            (value, Some(op)) => {
                let is_named = op.name().get(..1) == Some(&value[..1].to_ascii_lowercase());
                if is_named { value.to_owned() } else { format!("{value} ({})", op.name()) }
            }
        };
        if !shown.iter().any(|known| known.eq_ignore_ascii_case(&text)) && shown.len() < 8 {
            shown.push(text);
        }
    }
    match shown.pop() {
        Some(last) if !shown.is_empty() => format!("{} or {last}", shown.join(", ")),
        last => last.unwrap_or_default(),
    }
}

/// Whether a line that is no record names the columns: it has as many cells, and every number is a word.
fn is_header(of: &Columns, line: &[u8], cells: &[Range<usize>]) -> bool {
    let is_number = |kind: &Kind| !matches!(kind, Kind::Device | Kind::Op(_) | Kind::Skip | Kind::Words);
    let is_word = |cell: &Range<usize>| line[cell.clone()].first().is_some_and(u8::is_ascii_alphabetic);
    let has_columns = cells.len() == of.columns.len() || (of.is_open && cells.len() > of.columns.len());
    has_columns
        && of.columns.iter().zip(cells).all(|(column, cell)| !is_number(&column.kind) || is_word(cell))
}

/// Splits a line into `cells`.
fn split(
    line: &[u8],
    separator: Separator,
    of: &Columns,
    cells: &mut Vec<Range<usize>>,
) -> Result<(), TraceError> {
    cells.clear();
    let Separator::Byte(separator) = separator else {
        words(line, of, cells);
        return Ok(());
    };
    let mut at = 0;
    loop {
        while line.get(at).is_some_and(|&b| is_blank(b) && b != separator) {
            at += 1;
        }
        let end = if line.get(at) == Some(&b'"') {
            let close = at + 1 + memchr::memchr(b'"', &line[at + 1..]).ok_or_else(|| open_quote(line, at))?;
            let end = line[close..].iter().position(|&b| b == separator).map_or(line.len(), |n| close + n);
            if !trimmed(&line[close + 1..end]).is_empty() {
                return Err(open_quote(line, at));
            }
            cells.push(at + 1..close);
            end
        } else {
            let end = line[at..].iter().position(|&b| b == separator).map_or(line.len(), |n| at + n);
            cells.push(at..at + trimmed(&line[at..end]).len());
            end
        };
        if end == line.len() {
            return Ok(());
        }
        at = end + 1;
    }
}

#[cold]
fn open_quote(line: &[u8], at: usize) -> TraceError {
    let message = format!("expected a value in quotes, found {}", quoted(&line[at..]));
    TraceError::new(ErrorKind::Malformed, message, CORRECT_RECORD).field_name("(quotes)")
}

/// Splits a line into words. Surplus words belong to the column that may have several.
fn words(line: &[u8], of: &Columns, cells: &mut Vec<Range<usize>>) {
    let mut at = 0;
    let word = |at: &mut usize| {
        let start = *at + line[*at..].iter().position(|&b| !is_blank(b))?;
        *at = line[start..].iter().position(|&b| is_blank(b)).map_or(line.len(), |n| start + n);
        Some(start..*at)
    };
    while let Some(mut cell) = word(&mut at) {
        // A date and its time of day are one column, with a blank between them.
        if of.columns.get(cells.len()).is_some_and(|column| column.kind == Kind::Date)
            && !line[cell.clone()].contains(&b':')
            && let Some(time_of_day) = word(&mut at)
        {
            cell.end = time_of_day.end;
        }
        cells.push(cell);
    }
    let surplus = cells.len().saturating_sub(of.columns.len());
    let several = of.columns.iter().position(|column| column.kind == Kind::Words).filter(|_| surplus > 0);
    // A number is more likely a column too many than a part of a name.
    let is_number = |index: usize| line[cells[index + surplus].clone()].iter().all(u8::is_ascii_digit);
    if let Some(index) = several.filter(|&index| !is_number(index)) {
        cells[index].end = cells[index + surplus].end;
        cells.drain(index + 1..=index + surplus);
    }
}

/// The separator with which most lines at the start of the file are records. Among equals, the separator with which most
/// lines have the described columns, and then the one that finds most of the columns.
fn separator_of(of: &Columns, head: &[u8]) -> Separator {
    let candidates = [b',', b'\t', b';', b'|'].map(Separator::Byte).into_iter().chain([Separator::Blanks]);
    let mut best = (Separator::Blanks, (0, 0, 0));
    for separator in candidates {
        let mut reader = ColumnReader::separated(of.clone(), separator);
        let (mut records, mut fitting, mut cells) = (0, 0, 0);
        for (line, number) in head_lines(head).zip(1..).skip(of.header_lines as usize).take(SEPARATOR_LINES) {
            records += usize::from(matches!(reader.cells(line, number), Ok(Parsed::Request(_))));
            fitting += usize::from(reader.cells.len() == of.columns.len());
            cells += reader.cells.len().min(of.columns.len());
        }
        if (records, fitting, cells) > best.1 {
            best = (separator, (records, fitting, cells));
        }
    }
    best.0
}

/// Whether a time of the line is finer than a nanosecond.
pub(crate) fn is_finer_than_ns(of: &Columns, line: &[u8]) -> bool {
    let mut cells = Vec::new();
    if split(line, of.separator, of, &mut cells).is_err() {
        return false;
    }
    of.columns.iter().zip(&cells).any(|(column, cell)| {
        let Kind::Time(unit) = column.kind else { return false };
        let value = &line[cell.clone()];
        let dot = value.iter().position(|&b| b == b'.').map_or(value.len(), |dot| dot + 1);
        let decimals = value[dot..].iter().rposition(|&b| b != b'0').map_or(0, |last| last + 1);
        decimals > unit.ilog10() as usize
    })
}

/// Makes the reader of the columns that a user describes.
pub(crate) fn described(
    text: &str,
    head: &[u8],
    options: &ReaderOptions,
) -> Result<Box<dyn Reader>, TraceError> {
    let setting = |key: &str, message: String, remedy: String| {
        TraceError::new(ErrorKind::Setting, format!("{key}: {message}"), remedy)
    };
    let of = Columns::parse(text).map_err(|e| setting("workload.format.columns", e.message, e.remedy))?;
    if options.time_unit_ns.is_some() {
        let message = "has no effect: the columns state the unit of time".to_owned();
        return Err(setting("workload.time_unit", message, "leave it out".to_owned()));
    }
    Ok(Box::new(ColumnReader::new(of, head)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn digits_of_every_length_are_read_with_any_text_after_them() {
        let number = "1234567890987654321";
        for length in 0..=19 {
            for after in ["", ",", " 77", "/0000000", ":5", "x12345678", "\u{b1}99999999"] {
                let text = format!("{}{after}", &number[..length]);
                let mut at = 0;
                let expected = number[..length].parse().ok();
                assert_eq!(digits(text.as_bytes(), &mut at), expected, "{text}");
                assert_eq!(at, length, "{text}");
            }
        }
        for zeros in 0..=19 {
            let text = format!("{}7,", "0".repeat(zeros));
            assert_eq!(digits(text.as_bytes(), &mut 0), (zeros < 19).then_some(7), "{text}");
        }
        assert_eq!(digits(b"12345678901234567890,", &mut 0), None);
        assert_eq!(digits(b"18446744073709551616000000001", &mut 0), None);
    }

    #[test]
    fn both_passes_give_the_same() {
        use nandlab_base::base::rng::Stream;
        let of =
            Columns::parse("time_ms, device, lba*512, size, op(R=read, W=write), placement, skip").unwrap();
        let mut random = Stream::new(1, "both passes");
        let mut accepted = 0;
        for _ in 0..20_000 {
            let mut line = b"17.25,dev,4096,512,R,70,rest".to_vec();
            for _ in 0..random.below(3) {
                let at = random.below(line.len() as u64) as usize;
                line[at] = b"0123456789.,,\"- RWx"[random.below(19) as usize];
            }
            let mut reader = ColumnReader::separated(of.clone(), Separator::Byte(b','));
            let plain =
                reader.plain::<false>(&line, b',').map(|record| format!("{:?}", record.parsed(&line, b"")));
            let cells = reader.cells(&line, 2).map(|parsed| format!("{parsed:?}"));
            if let Some(plain) = plain {
                assert_eq!(plain, cells.unwrap(), "{}", line.escape_ascii());
                accepted += 1;
            }
        }
        assert!(accepted > 5_000, "{accepted}");
    }
}
