//! The trace formats: each is a variant of [`Format`].
//!
//! A format whose lines are only columns is a constant of `rows`, which `columns` reads. Another format is a file of
//! this folder with a [`Reader`] of its own. To add a format: add its variant and its constant or file (with a [`Target`]
//! if traces of the format can be written); the compiler then asks for its line in [`FormatInfo::of`]. Detection, errors,
//! device choice, ordering, conversion and fuzzing need no further code.

mod biosnoop;
mod blkparse;
mod columns;
mod etw;
mod fio_iolog;
mod ftrace;
mod recording;
mod rows;
mod vscsi;

pub(crate) use columns::{described, is_finer_than_ns};

use crate::error::{ErrorKind, TraceError};
use crate::input::CHUNK_BYTES;
use crate::tally::Reason;
use columns::ColumnReader;
use nandlab_base::base::request::{Op, Request};
use nandlab_base::columns::Columns;
use nandlab_base::spec::Listed;
use nandlab_base::workload::Format;

/// A trace format.
#[derive(Clone, Copy, Debug)]
pub struct FormatInfo {
    /// The format, with its name and description.
    pub format: Format,
    /// The columns and their units.
    pub units: &'static str,
    pub(crate) order: Order,
    /// Whether `head`, the start of the file, allows this format. Only then does detection parse the first lines in
    /// this format.
    pub(crate) sniff: fn(head: &[u8]) -> bool,
    pub(crate) readers: Readers,
    pub(crate) writer: Option<Target>,
}

/// The readers of a format.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Readers {
    /// Lines are only columns.
    Columns(fn(&ReaderOptions) -> Result<Columns, TraceError>),
    /// The format has a reader of its own. The fields are those that decide whether a line is
    /// a record, in their order.
    Own(MakeReader, &'static [&'static str]),
}

/// Makes the reader of a file that starts with `head`.
pub(crate) type MakeReader = fn(head: &[u8], options: &ReaderOptions) -> Result<Box<dyn Reader>, TraceError>;

/// The order of a format's records in time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Order {
    /// Ascending in time.
    Ascending,
    /// Nearly ascending in time: the records are sorted within a window of bounded size.
    Window,
    /// Ascending in time except for a few records, which are sorted: those that are at most a second too late in the
    /// file.
    Nearly,
    /// Ascending in whole seconds: the records of a second are spread evenly over the second.
    Seconds,
}

/// The settings of the spec that readers use.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct ReaderOptions {
    pub(crate) time_unit_ns: Option<f64>,
}

impl ReaderOptions {
    /// The name of the unit of time, if one is set that has a name.
    pub(crate) fn time_unit_name(&self) -> Option<&'static str> {
        let units = [(1e-3, "ps"), (1.0, "ns"), (1e3, "us"), (1e6, "ms"), (1e9, "s")];
        units.into_iter().find_map(|(ns, name)| (self.time_unit_ns == Some(ns)).then_some(name))
    }
}

/// A request as its record states it. Offset and length are bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Raw<'a> {
    /// Nanoseconds since the time origin of the format.
    pub(crate) time_ns: u64,
    /// The key of the device: the name of the device as the record has it.
    pub(crate) device: &'a [u8],
    pub(crate) op: Op,
    pub(crate) fua: bool,
    /// Whether the same record also states a flush before this request.
    pub(crate) flush_first: bool,
    pub(crate) offset: u64,
    pub(crate) len: u64,
    /// The placement; 0 in a format without placements.
    pub(crate) placement: u16,
}

impl<'a> Raw<'a> {
    /// A request without FUA, flush and placement.
    #[inline(always)]
    pub(crate) fn of(time_ns: u64, device: &'a [u8], op: Op, offset: u64, len: u64) -> Self {
        Self { time_ns, device, op, fua: false, flush_first: false, offset, len, placement: 0 }
    }
}

/// A parsed record.
#[derive(Debug)]
pub(crate) enum Parsed<'a> {
    /// A request.
    Request(Raw<'a>),
    /// A record without a request, such as a header, a blank line or another event. It is ignored and does not count as
    /// skipped.
    Nothing,
    /// A record that states no request although it is of a kind that should. It counts as skipped.
    Without {
        /// Why the record has no request.
        reason: Reason,
        /// The device, as in [`Raw::device`].
        device: &'a [u8],
    },
    /// The start of a summary: no records follow.
    End,
}

/// Parses records: lines of a text format, or records of fixed size.
pub(crate) trait Reader: Send {
    /// Parses one record; `number` counts from 1.
    fn parse<'a>(&'a mut self, record: &'a [u8], number: u64) -> Result<Parsed<'a>, TraceError>;

    /// Bytes per record of a binary format; `None` for a text format.
    fn record_bytes(&self) -> Option<usize> {
        None
    }

    /// Logs in the file after the first one, so far.
    fn further_logs(&self) -> u64 {
        0
    }

    /// The key ([`Raw::device`]) of the device that the user calls `name`.
    fn device_key(&self, name: &str) -> Vec<u8> {
        name.as_bytes().to_vec()
    }

    /// The name by which the user knows the device with this key ([`Raw::device`]).
    fn device_name(&self, key: &[u8]) -> String {
        key.escape_ascii().to_string()
    }
}

/// The writing side of a format: what its records can represent, and the function that writes them.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Target {
    pub(crate) trim: bool,
    pub(crate) flush: bool,
    pub(crate) fua: bool,
    /// Unit of the times, in nanoseconds.
    pub(crate) resolution_ns: u64,
    /// Unit of the addresses, in bytes.
    pub(crate) offset_unit: u64,
    /// Unit of the lengths, in bytes.
    pub(crate) len_unit: u64,
    /// Longest length, in bytes.
    pub(crate) len_max: u64,
    pub(crate) header: &'static [u8],
    pub(crate) write: Writer,
}

/// Appends one request to `out`; the request is within the limits of the target. `number` counts the written requests,
/// from 1.
pub(crate) type Writer = fn(out: &mut Vec<u8>, request: &Request, number: u64);

/// The target of a text format that has only reads and writes, in bytes and nanoseconds. The target of each format
/// states its differences from this target.
const TEXT: Target = Target {
    trim: false,
    flush: false,
    fua: false,
    resolution_ns: 1,
    offset_unit: 1,
    len_unit: 1,
    len_max: u64::MAX,
    header: b"",
    write: |_, _, _| {},
};

impl FormatInfo {
    /// The reader, and more, of a format.
    pub fn of(format: Format) -> &'static Self {
        match format {
            Format::Msr => &rows::MSR,
            Format::Spc => &rows::SPC,
            Format::Blkparse => &blkparse::INFO,
            Format::FioIolog => &fio_iolog::INFO,
            Format::Ssdsim => &rows::SSDSIM,
            Format::Mqsim => &rows::MQSIM,
            Format::Disksim => &rows::DISKSIM,
            Format::Alibaba => &rows::ALIBABA,
            Format::Tencent => &rows::TENCENT,
            Format::Systor => &rows::SYSTOR,
            Format::Vscsi => &vscsi::INFO,
            Format::Fiu => &rows::FIU,
            Format::K5cloud => &rows::K5CLOUD,
            Format::Cloudphysics => &rows::CLOUDPHYSICS,
            Format::Etw => &etw::INFO,
            Format::Biosnoop => &biosnoop::INFO,
            Format::Ftrace => &ftrace::INFO,
            Format::Recording => &recording::INFO,
        }
    }

    /// Makes the reader of a file that starts with `head`.
    pub(crate) fn reader(
        &'static self,
        head: &[u8],
        options: &ReaderOptions,
    ) -> Result<Box<dyn Reader>, TraceError> {
        if options.time_unit_ns.is_some() && !self.format.has_time_unit() {
            return Err(TraceError::new(
                ErrorKind::Setting,
                format!(
                    "workload.time_unit has no effect: the format {} fixes the unit of time",
                    self.name()
                ),
                "leave it out, or name another format with workload.format",
            ));
        }
        match &self.readers {
            Readers::Columns(columns) => Ok(Box::new(ColumnReader::new(columns(options)?, head))),
            Readers::Own(make, _) => make(head, options),
        }
    }

    /// The columns of a format whose lines are only columns.
    pub(crate) fn columns(&self, options: &ReaderOptions) -> Option<Columns> {
        match self.readers {
            Readers::Columns(columns) => columns(options).ok(),
            Readers::Own(..) => None,
        }
    }

    /// The fields of a record, in their order; empty for a binary format.
    pub(crate) fn fields(&self) -> Vec<&'static str> {
        match self.readers {
            Readers::Columns(_) => {
                let columns = self.columns(&ReaderOptions::default());
                columns.into_iter().flat_map(|of| of.columns).map(|column| column.field).collect()
            }
            Readers::Own(_, fields) => fields.to_vec(),
        }
    }

    /// The fields of a record and their units, with the unit of time that `options` state.
    pub(crate) fn units_with(&self, options: &ReaderOptions) -> String {
        let Some((start, end)) = self.units.split_once(", or workload.time_unit") else {
            return self.units.to_owned();
        };
        let Some((before, usual)) = start.rsplit_once('(') else { return self.units.to_owned() };
        format!("{before}({}{end}", options.time_unit_name().unwrap_or(usual))
    }

    /// Whether traces of the format can be written.
    pub fn can_be_written(&self) -> bool {
        self.writer.is_some()
    }

    /// The name in `workload.format`.
    pub fn name(&self) -> &'static str {
        self.format.choice().name
    }

    /// A description, one line long.
    pub fn description(&self) -> &'static str {
        self.format.choice().doc
    }
}

/// Every trace format that can be read.
pub fn formats() -> impl ExactSizeIterator<Item = &'static FormatInfo> {
    Format::ALL.iter().map(|&format| FormatInfo::of(format))
}

/// The name of the format of described columns.
pub(crate) const COLUMNS: &str = "columns";

/// The static name of a format, or of described columns.
pub(crate) fn name_of(name: &str) -> Option<&'static str> {
    if name == COLUMNS { Some(COLUMNS) } else { find(name).map(FormatInfo::name) }
}

/// The format called `name`.
pub(crate) fn find(name: &str) -> Option<&'static FormatInfo> {
    formats().find(|info| info.name() == name)
}

fn is_text(head: &[u8]) -> bool {
    memchr::memchr(0, head).is_none()
}

/// The lines of the head, without the last line if the end of the chunk may have cut it.
pub(crate) fn head_lines(head: &[u8]) -> impl Iterator<Item = &[u8]> {
    // The head of a full chunk is three bytes shorter if a byte order mark has been skipped.
    let is_all = head.len() + 3 < CHUNK_BYTES;
    let whole = if is_all { head } else { memchr::memrchr(b'\n', head).map_or(head, |n| &head[..n]) };
    whole.split(|&b| b == b'\n').map(|line| line.strip_suffix(b"\r").unwrap_or(line))
}

#[cfg(test)]
mod tests;

#[cfg(test)]
pub(crate) mod testing {
    use super::*;

    /// What a record of the format states, with the name of its device, and the device's key from this name; `None` for a
    /// record without a request.
    pub(crate) fn parse(format: &str, record: &[u8]) -> Result<Option<Stated>, TraceError> {
        let mut reader = find(format).unwrap().reader(record, &ReaderOptions::default())?;
        let (raw, key) = match reader.parse(record, 2)? {
            Parsed::Request(raw) => (Stated::of(&raw), raw.device.to_vec()),
            _ => return Ok(None),
        };
        let device = reader.device_name(&key);
        assert_eq!(reader.device_key(&device), key);
        Ok(Some(Stated { device, ..raw }))
    }

    /// What a record states.
    #[derive(Clone, Debug, PartialEq, Eq)]
    pub(crate) struct Stated {
        pub(crate) time_ns: u64,
        pub(crate) device: String,
        pub(crate) op: Op,
        pub(crate) fua: bool,
        pub(crate) flush_first: bool,
        pub(crate) offset: u64,
        pub(crate) len: u64,
    }

    impl Stated {
        fn of(raw: &Raw<'_>) -> Self {
            let Raw { time_ns, op, fua, flush_first, offset, len, placement, .. } = *raw;
            assert_eq!(placement, 0);
            Self { time_ns, device: String::new(), op, fua, flush_first, offset, len }
        }
    }

    /// The field and message of the error for `record`.
    pub(crate) fn error(format: &str, record: &[u8]) -> (&'static str, String) {
        let error = parse(format, record).unwrap_err();
        (error.field().unwrap_or(""), error.message().to_owned())
    }
}
