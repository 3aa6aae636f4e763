//! Detection of a file's format from its content.
//!
//! Every text format that the start of the file allows parses the first 64 lines that are not ignored ([`Sample`]). If
//! the requests are less than a fifth of these lines, the format does not fit. A binary format that the start of the file
//! allows counts as 64 requests. The format with the most requests is detected; damaged lines are reported when the file
//! is read. `ssdsim` is never detected, because its columns have the same meaning as those of `mqsim`.
//!
//! The user has to name the format if no format fits; if several formats find equally many requests; if the requests of
//! the detected format are implausible ([`plausible`]); or if its times are finer than a nanosecond, and those of
//! another format are not. The errors show what the formats make of the file.

use crate::error::{ErrorKind, Position, TraceError, quoted};
use crate::format::{FormatInfo, Parsed, ReaderOptions, formats, head_lines, is_finer_than_ns};
use crate::reading::{FirstRecord, OtherReading};
use nandlab_base::base::request::Op;
use nandlab_base::base::units::{DAY, SECTOR};
use nandlab_base::base::words::count;
use nandlab_base::columns::{Columns, Kind};

/// Number of lines that each reader parses; ignored lines do not count.
const LINES: usize = 64;
/// Number of lines on which the nearest format is judged, if no format fits.
const NEAREST_LINES: u32 = 8;
/// No trace has more requests a second.
const RATE_MAX: u64 = 10_000_000;
/// Fewer requests are not judged.
const JUDGED_MIN: u64 = 4;
/// Further requests are judged only while a column of sectors has only multiples of [`SECTORS_STEP`].
const JUDGED_MAX: u64 = 1024;
/// Addresses and lengths in sectors that are all multiples of this number are bytes.
const SECTORS_STEP: u64 = 4096;
/// What to write instead of the name of a format, for the remedies of errors.
const DESCRIBE: &str =
    "workload.format = { columns = \"time_ms, device, offset, size, op(1=read, 0=write)\" }";

/// The first lines of a file as one format reads them.
struct Sample {
    format: &'static FormatInfo,
    options: ReaderOptions,
    requests: Vec<FirstRecord>,
    errors: usize,
    /// Whether the format is binary and allowed by the start of the file.
    is_binary: bool,
    /// Whether a time is finer than a nanosecond.
    is_finer: bool,
}

impl Sample {
    fn of(format: &'static FormatInfo, head: &[u8], options: &ReaderOptions) -> Self {
        let mut sample = Self {
            format,
            options: *options,
            requests: Vec::new(),
            errors: 0,
            is_binary: false,
            is_finer: false,
        };
        let Ok(mut reader) = format.reader(head, options) else { return sample };
        if reader.record_bytes().is_some() {
            sample.is_binary = true;
            return sample;
        }
        let columns = format.columns(options);
        let mut tried = 0;
        for (line, number) in head_lines(head).zip(1..) {
            match reader.parse(line, number) {
                Ok(Parsed::Request(raw)) => {
                    let first = FirstRecord::of(&raw, number);
                    sample.requests.push(first);
                    sample.is_finer |= columns.as_ref().is_some_and(|of| is_finer_than_ns(of, line));
                }
                Ok(Parsed::Nothing | Parsed::Without { .. }) => continue,
                Ok(Parsed::End) => break,
                Err(_) => sample.errors += 1,
            }
            tried += 1;
            if tried == LINES {
                break;
            }
        }
        sample
    }

    /// The number of requests; 0 if more than four fifths of the lines are errors.
    fn fit(&self) -> usize {
        match self.is_binary {
            true => LINES,
            false if self.requests.len() * 4 >= self.errors => self.requests.len(),
            false => 0,
        }
    }

    /// Whether both samples have the same requests, counted from the first.
    fn is_same(&self, other: &Self) -> bool {
        let since = |sample: &Self, record: &FirstRecord| {
            record.time_ns.wrapping_sub(sample.requests.first().map_or(0, |first| first.time_ns))
        };
        self.requests.len() == other.requests.len()
            && self.requests.iter().zip(&other.requests).all(|(a, b)| {
                (since(self, a), a.op, a.offset, a.len) == (since(other, b), b.op, b.offset, b.len)
            })
    }
}

/// The format of a file that starts with `head`.
pub(crate) fn detect(head: &[u8], options: &ReaderOptions) -> Result<&'static FormatInfo, TraceError> {
    if options.time_unit_ns.is_some() {
        // The unit of time decides between a format that it concerns and a format that fixes its unit.
        let taking = formats().filter(|f| f.format.has_time_unit()).map(|f| Sample::of(f, head, options));
        if let Some(best) = taking.filter(|sample| sample.fit() > 0).max_by_key(Sample::fit) {
            return plausible(&best, head).map(|()| best.format);
        }
        return detect(head, &ReaderOptions::default());
    }
    let allowed = formats().filter(|f| (f.sniff)(head));
    let samples: Vec<_> = allowed.map(|f| Sample::of(f, head, options)).collect();
    let most = samples.iter().map(Sample::fit).max().unwrap_or(0).max(1);
    let fitting: Vec<_> = samples.iter().filter(|sample| sample.fit() == most).collect();
    match fitting[..] {
        [] => Err(unknown_content(head)),
        [one] => {
            plausible(one, head)?;
            if one.is_finer
                && let Some(other) = different(one, head).into_iter().find(|other| !other.is_finer)
            {
                return Err(tie("the times are finer than a nanosecond in one format", &[one, &other]));
            }
            Ok(one.format)
        }
        ref several => Err(tie("the content fits several formats", several)),
    }
}

/// The other formats that make other requests of the lines at the start of the file.
pub(crate) fn other_readings(
    format: &'static FormatInfo,
    head: &[u8],
    options: &ReaderOptions,
) -> Vec<OtherReading> {
    let sample = Sample::of(format, head, options);
    let others = different(&sample, head);
    let reading = |other: Sample| {
        // The first record that differs. The first records are equal if all times count from 0.
        let mut both = sample.requests.iter().zip(&other.requests);
        let (here, there) = both.find(|(here, there)| here.text() != there.text())?;
        Some(OtherReading {
            format: other.format.name(),
            units: other.format.units_with(&other.options),
            time_unit: other.options.time_unit_name(),
            here: here.clone(),
            there: there.clone(),
        })
    };
    others.into_iter().filter_map(reading).collect()
}

/// The formats that make other, plausible requests of all lines of which `chosen` makes requests.
fn different(chosen: &Sample, head: &[u8]) -> Vec<Sample> {
    let is_other = |other: &Sample| {
        other.fit() > 0
            && other.requests.len() >= chosen.requests.len()
            && !other.is_same(chosen)
            && is_plausible(other)
            && other.requests.windows(2).all(|two| two[1].time_ns.saturating_sub(two[0].time_ns) <= DAY.ns())
    };
    let others = formats().filter(|f| f.format != chosen.format.format && !chosen.is_binary);
    let of = |f: &'static FormatInfo| {
        let usual = Sample::of(f, head, &ReaderOptions::default());
        if usual.fit() > 0 || !f.format.has_time_unit() {
            return usual;
        }
        // Times with decimals are seconds in a format whose unit of time is a setting.
        Sample::of(f, head, &ReaderOptions { time_unit_ns: Some(1e9) })
    };
    others.map(of).filter(|other| !other.is_binary && is_other(other)).collect()
}

/// Whether the requests of a sample are plausible.
fn is_plausible(sample: &Sample) -> bool {
    Judge::new(sample.format).is_none_or(|mut judge| {
        for request in &sample.requests {
            judge.add(request.time_ns, request.op, request.offset, request.len);
        }
        judge.verdict().is_none()
    })
}

/// Refuses a format whose requests are implausible.
fn plausible(sample: &Sample, head: &[u8]) -> Result<(), TraceError> {
    let reader = sample.format.reader(head, &sample.options).ok().filter(|_| !sample.is_binary);
    let Some((mut reader, mut judge)) = reader.zip(Judge::new(sample.format)) else { return Ok(()) };
    for (line, number) in head_lines(head).zip(1..) {
        match reader.parse(line, number) {
            Ok(Parsed::Request(raw)) => judge.add(raw.time_ns, raw.op, raw.offset, raw.len),
            Ok(Parsed::End) => break,
            _ => {}
        }
        if judge.is_done() {
            break;
        }
    }
    let (Some(first), Some((field, why))) = (sample.requests.first(), judge.verdict()) else {
        return Ok(());
    };
    let name = sample.format.name();
    let message = format!("read as {name}, {why}; the first record would be {}", first.text());
    let error = TraceError::new(
        ErrorKind::Format,
        message,
        format!("describe the columns, {DESCRIBE}, or name the format, workload.format = \"{name}\""),
    );
    Err(error.field_name(field).at(Position::Line(first.number)))
}

/// Whether requests are plausible.
struct Judge {
    time: &'static str,
    /// The columns that count sectors.
    offset: Option<&'static str>,
    size: Option<&'static str>,
    requests: u64,
    first_ns: u64,
    last_ns: u64,
    offsets: Multiples,
    sizes: Multiples,
}

impl Judge {
    /// `None` for a format whose lines are not only columns.
    fn new(format: &FormatInfo) -> Option<Self> {
        let mut judge = Self {
            time: "time",
            offset: None,
            size: None,
            requests: 0,
            first_ns: u64::MAX,
            last_ns: 0,
            offsets: Multiples::default(),
            sizes: Multiples::default(),
        };
        for column in format.columns(&ReaderOptions::default())?.columns {
            match column.kind {
                Kind::Time(_) | Kind::Ticks(_) => judge.time = column.field,
                Kind::Offset(unit) if unit.bytes == SECTOR => judge.offset = Some(column.field),
                Kind::Size(unit) if unit.bytes == SECTOR => judge.size = Some(column.field),
                _ => {}
            }
        }
        Some(judge)
    }

    fn add(&mut self, time_ns: u64, op: Op, offset: u64, len: u64) {
        if op == Op::Flush {
            return;
        }
        self.requests += 1;
        self.first_ns = self.first_ns.min(time_ns);
        self.last_ns = self.last_ns.max(time_ns);
        self.offsets.add(offset);
        self.sizes.add(len);
    }

    /// Whether further requests are not needed.
    fn is_done(&self) -> bool {
        self.requests >= JUDGED_MAX
            && (self.offset.is_none() || self.offsets.has_other)
            && (self.size.is_none() || self.sizes.has_other)
    }

    /// The field and the reason why the requests are implausible; `None` if they are not.
    fn verdict(&self) -> Option<(&'static str, String)> {
        let n = self.requests;
        if n < JUDGED_MIN {
            return None;
        }
        let span = u128::from(self.last_ns - self.first_ns);
        let rate = (u128::from(n - 1) * 1_000_000_000).checked_div(span).unwrap_or(0);
        if rate > u128::from(RATE_MAX) {
            let rate = count(u64::try_from(rate).unwrap_or(u64::MAX));
            return Some((self.time, format!("the first {} requests come at {rate} a second", count(n))));
        }
        for (column, found) in [(self.offset, &self.offsets), (self.size, &self.sizes)] {
            if let Some(field) = column.filter(|_| found.is_bytes()) {
                let step = count(SECTORS_STEP);
                return Some((
                    field,
                    format!("all numbers of sectors in this column are multiples of {step}, like bytes"),
                ));
            }
        }
        None
    }
}

/// Whether numbers of sectors are all multiples of [`SECTORS_STEP`].
#[derive(Default)]
struct Multiples {
    has_other: bool,
    has_multiple: bool,
}

impl Multiples {
    fn add(&mut self, bytes: u64) {
        let is_multiple = bytes.is_multiple_of(SECTORS_STEP * SECTOR);
        self.has_other |= !is_multiple;
        self.has_multiple |= is_multiple && bytes > 0;
    }

    fn is_bytes(&self) -> bool {
        self.has_multiple && !self.has_other
    }
}

/// The error if several formats have an equal claim.
fn tie(what: &str, samples: &[&Sample]) -> TraceError {
    let shown = samples.iter().filter_map(|sample| {
        let unit =
            sample.options.time_unit_name().map_or(String::new(), |unit| format!(" with time_unit {unit}"));
        let first = sample.requests.first()?.text();
        Some(format!("{}{unit} reads the first record as {first}", sample.format.name()))
    });
    let shown: Vec<_> = shown.collect();
    let names = samples.iter().map(|sample| match sample.options.time_unit_name() {
        None => sample.format.name().to_owned(),
        Some(unit) => format!("{} with workload.time_unit = \"{unit}\"", sample.format.name()),
    });
    let names: Vec<_> = names.collect();
    let line = samples.iter().find_map(|sample| sample.requests.first()).map_or(1, |first| first.number);
    let error = TraceError::new(
        ErrorKind::Format,
        format!("{what}: {}", if shown.is_empty() { names.join(", ") } else { shown.join("; ") }),
        format!("name one with workload.format: {}; or describe the columns, {DESCRIBE}", names.join(", ")),
    );
    error.field_name("time").at(Position::Line(line))
}

/// The error for content that fits no format. It names the nearest format and the field where it fails. For content with
/// a zero byte, which is no text, it quotes the first line with a zero byte after the first non-empty line, else the
/// first non-empty line.
fn unknown_content(head: &[u8]) -> TraceError {
    let mut lines = (1..).zip(head_lines(head)).filter(|(_, line)| !line.is_empty());
    let first = lines.next();
    let binary = lines.find(|(_, line)| line.contains(&0));
    let (number, line) = binary.or(first).unwrap_or((1, head));
    if let Some(columns) = named_columns(line) {
        let message =
            format!("{}: the content fits no known format, and this line names its columns", quoted(line));
        let remedy = format!("describe the columns, workload.format = {{ columns = \"{columns}\" }}");
        return TraceError::new(ErrorKind::Format, message, remedy).at(Position::Line(number));
    }
    let nearest = if head.contains(&0) { None } else { nearest(head) };
    let Some(Failure { format, error, number, line, .. }) = nearest else {
        let message = format!("{}: the content fits no known format", quoted(line));
        return not_found(message, formats()).at(Position::Line(number));
    };
    let message = format!(
        "{}: the content fits no known format; the nearest is {format}, in which this field is wrong: {}",
        quoted(line),
        error.message()
    );
    let unknown = not_found(message, formats()).at(Position::Line(number));
    error.field().map_or(unknown.clone(), |field| unknown.field_name(field))
}

/// The description of the columns that a line names, if all of them have the names of the description.
fn named_columns(line: &[u8]) -> Option<String> {
    let text = std::str::from_utf8(line).ok()?.trim().to_ascii_lowercase();
    let names: Vec<&str> = text.split([',', ';', '\t']).map(str::trim).collect();
    let columns = names.join(", ");
    (names.len() > 2 && Columns::parse(&columns).is_ok()).then_some(columns)
}

/// Where the nearest format fails.
struct Failure<'a> {
    format: &'static str,
    error: TraceError,
    number: u64,
    line: &'a [u8],
}

/// The failure of the format that reads the largest share of the fields of the first lines. A format with a reader of its
/// own is considered only if the start of the file allows it.
fn nearest(head: &[u8]) -> Option<Failure<'_>> {
    let mut best: (f64, Option<Failure<'_>>) = (0.0, None);
    for format in formats().filter(|f| f.columns(&ReaderOptions::default()).is_some() || (f.sniff)(head)) {
        let fields = format.fields();
        let Some(mut reader) =
            format.reader(head, &ReaderOptions::default()).ok().filter(|_| !fields.is_empty())
        else {
            continue;
        };
        let (mut tried, mut read) = (0, 0.0);
        let mut failure: Option<Failure<'_>> = None;
        for (line, number) in head_lines(head).zip(1..) {
            let error = match reader.parse(line, number) {
                Err(error) if !line.is_empty() => Some(error),
                Ok(Parsed::Request(_)) => None,
                _ => continue,
            };
            let share = error.as_ref().map_or(1.0, |error| share_read(error, &fields));
            if let (Some(error), None) = (error, &failure) {
                failure = Some(Failure { format: format.name(), error, number, line });
            }
            (tried, read) = (tried + 1, read + share);
            if tried == NEAREST_LINES {
                break;
            }
        }
        let mean = read / f64::from(tried.max(1));
        if mean > best.0 && failure.is_some() {
            best = (mean, failure);
        }
    }
    best.1
}

/// The fields before the one with the error, as a share of all fields.
fn share_read(error: &TraceError, fields: &[&str]) -> f64 {
    let at = match error.field() {
        Some("(end of line)") => Some(fields.len()),
        Some(name) => fields.iter().position(|field| *field == name),
        None => None,
    };
    at.unwrap_or(0) as f64 / fields.len() as f64
}

/// The error if the user has to name the format; `choices` are the formats to choose from.
fn not_found(message: String, choices: impl Iterator<Item = &'static FormatInfo>) -> TraceError {
    let names: Vec<_> = choices.map(|f| f.name()).collect();
    TraceError::new(
        ErrorKind::Format,
        message,
        format!("name one with workload.format: {}; or describe the columns, {DESCRIBE}", names.join(", ")),
    )
}

/// The error for an unknown format name.
pub(crate) fn unknown(name: &str) -> TraceError {
    not_found(format!("expected the name of a trace format, found {}", quoted(name.as_bytes())), formats())
}
