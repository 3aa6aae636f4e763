//! How a trace is understood: its format, the units of its fields, and its first record.

use crate::detect::other_readings;
use crate::error::TraceError;
use crate::format::{Parsed, Raw, find, head_lines};
use crate::input::Content;
use crate::records::Records;
use nandlab_base::base::request::Op;
use nandlab_base::workload::{TraceFormat, TraceSpec};
use serde_json::{Value, json};

/// How a trace is understood.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Reading {
    /// The trace format.
    pub format: &'static str,
    /// The fields of a record and their units.
    pub units: String,
    /// Whether the user named the format, or described the columns.
    pub is_named: bool,
    /// The first record, of any device; `None` if the start of the file has no request.
    pub first: Option<FirstRecord>,
    /// The formats that make other requests of the lines at the start of the file. Empty if the format or its unit of time
    /// is named.
    pub others: Vec<OtherReading>,
}

/// Another format that reads the lines at the start of the file, as other requests.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct OtherReading {
    /// The trace format.
    pub format: &'static str,
    /// The fields of a record and their units.
    pub units: String,
    /// The unit of time with which the format reads the lines, if it is not the unit of the format.
    pub time_unit: Option<&'static str>,
    /// The first record that differs, in the format that is used.
    pub here: FirstRecord,
    /// The same record in this format.
    pub there: FirstRecord,
}

/// A record as a format understands it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FirstRecord {
    /// The line, or the number of the record in a binary format, from 1.
    pub number: u64,
    /// Nanoseconds since the time origin of the format.
    pub time_ns: u64,
    /// The device; empty if the format names none.
    pub device: String,
    /// The operation.
    pub op: Op,
    /// The address in bytes.
    pub offset: u64,
    /// The length in bytes.
    pub len: u64,
}

impl FirstRecord {
    /// The record `number`, with the key of the device in place of its name.
    pub(crate) fn of(raw: &Raw<'_>, number: u64) -> Self {
        let device = raw.device.escape_ascii().to_string();
        Self { number, time_ns: raw.time_ns, device, op: raw.op, offset: raw.offset, len: raw.len }
    }

    /// The record in one line: `0.0005 s, device 0, read, offset 4096, length 4096`.
    pub fn text(&self) -> String {
        let decimals = format!("{:09}", self.time_ns % 1_000_000_000);
        let (whole, decimals) = (self.time_ns / 1_000_000_000, decimals.trim_end_matches('0'));
        let point = if decimals.is_empty() { "" } else { "." };
        let device = match self.device.get(..40) {
            None if self.device.is_empty() => String::new(),
            None => format!("device {}, ", self.device),
            Some(start) => format!("device {start}..., "),
        };
        let op = self.op.name();
        format!("{whole}{point}{decimals} s, {device}{op}, offset {}, length {}", self.offset, self.len)
    }

    fn to_json(&self) -> Value {
        json!({
            "record": self.number,
            "time_ns": self.time_ns,
            "device": self.device,
            "op": self.op.name(),
            "offset": self.offset,
            "length": self.len,
            "text": self.text(),
        })
    }
}

impl Reading {
    /// The reading as JSON.
    pub fn to_json(&self) -> Value {
        let others: Vec<_> = self
            .others
            .iter()
            .map(|other| {
                json!({
                    "format": other.format,
                    "units": other.units,
                    "time_unit": other.time_unit,
                    "here": other.here.to_json(),
                    "there": other.there.to_json(),
                })
            })
            .collect();
        json!({
            "format": self.format,
            "units": self.units,
            "named": self.is_named,
            "first": self.first.as_ref().map(FirstRecord::to_json),
            "others": others,
        })
    }
}

/// How the file of `trace`, or `content` instead of it, is understood. Only the start of the file is read.
///
/// # Errors
/// Those of [`crate::open`] for a file whose format cannot be told.
pub fn reading(trace: &TraceSpec, content: Option<&Content>) -> Result<Reading, TraceError> {
    let mut records = Records::open(trace, content, false)?;
    let head = records.input.head().to_vec();
    let options = records.options;
    let (units, others) = match (&trace.format, find(records.format)) {
        (Some(TraceFormat::Columns(text)), _) => (text.clone(), Vec::new()),
        (None, Some(info)) if options.time_unit_ns.is_none() => {
            (info.units_with(&options), other_readings(info, &head, &options))
        }
        (_, info) => (info.map_or(String::new(), |info| info.units_with(&options)), Vec::new()),
    };
    let mut first = None;
    let found: Box<dyn Iterator<Item = &[u8]>> = match records.record_bytes() {
        Some(size) => Box::new(head.chunks_exact(size)),
        None => Box::new(head_lines(&head)),
    };
    for (record, number) in found.zip(1..) {
        match records.reader.parse(record, number) {
            Ok(Parsed::Request(raw)) => {
                first = Some(FirstRecord::of(&raw, number));
                break;
            }
            Ok(Parsed::End) => break,
            _ => {}
        }
    }
    if let Some(first) = &mut first {
        first.device = records.reader.device_name(first.device.as_bytes());
    }
    Ok(Reading { format: records.format, units, is_named: trace.format.is_some(), first, others })
}
