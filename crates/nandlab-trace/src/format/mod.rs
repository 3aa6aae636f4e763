//! The trace formats: each is a variant of [`Format`] and a file of this folder.
//!
//! To add a format: add its variant, and write its file with a [`Reader`] (and a [`Target`] if traces of the format can
//! be written); the compiler then asks for its line in [`FormatInfo::of`]. Detection, errors, device choice, ordering, conversion and fuzzing need no further code.

mod alibaba;
mod blkparse;
mod disksim;
mod fio_iolog;
mod mqsim;
mod msr;
mod spc;
mod ssdsim;
mod systor;
mod tencent;
mod vscsi;

use crate::error::TraceError;
use crate::input::CHUNK_BYTES;
use crate::tally::Reason;
use nandlab_base::base::request::{Op, Request};
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
    pub(crate) reader: MakeReader,
    pub(crate) writer: Option<Target>,
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
    fn parse<'a>(&mut self, record: &'a [u8], number: u64) -> Result<Parsed<'a>, TraceError>;

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
            Format::Msr => &msr::INFO,
            Format::Spc => &spc::INFO,
            Format::Blkparse => &blkparse::INFO,
            Format::FioIolog => &fio_iolog::INFO,
            Format::Ssdsim => &ssdsim::INFO,
            Format::Mqsim => &mqsim::INFO,
            Format::Disksim => &disksim::INFO,
            Format::Alibaba => &alibaba::INFO,
            Format::Tencent => &tencent::INFO,
            Format::Systor => &systor::INFO,
            Format::Vscsi => &vscsi::INFO,
        }
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

/// The format called `name`.
pub(crate) fn find(name: &str) -> Option<&'static FormatInfo> {
    formats().find(|info| info.name() == name)
}

fn is_text(head: &[u8]) -> bool {
    !head.contains(&0)
}

/// The lines of the head, without the last line if the end of the chunk may have cut it.
pub(crate) fn head_lines(head: &[u8]) -> impl Iterator<Item = &[u8]> {
    // The head of a full chunk is three bytes shorter if a byte order mark has been skipped.
    let is_all = head.len() + 3 < CHUNK_BYTES;
    let whole = if is_all { head } else { memchr::memrchr(b'\n', head).map_or(head, |n| &head[..n]) };
    whole.split(|&b| b == b'\n').map(|line| line.strip_suffix(b"\r").unwrap_or(line))
}

/// A read or write of a format without flushes, TRIMs and FUA.
fn plain<'a>(time_ns: u64, device: &'a [u8], read: bool, offset: u64, len: u64) -> Parsed<'a> {
    let op = if read { Op::Read } else { Op::Write };
    Parsed::Request(Raw { time_ns, device, op, fua: false, flush_first: false, offset, len })
}

#[cfg(test)]
pub(crate) mod testing {
    use super::*;

    /// Parses one record with a new reader of the format.
    pub(crate) fn parse<'a>(format: &str, record: &'a [u8]) -> Result<Option<Raw<'a>>, TraceError> {
        let mut reader = (find(format).unwrap().reader)(record, &ReaderOptions::default())?;
        match reader.parse(record, 2)? {
            Parsed::Request(raw) => Ok(Some(raw)),
            _ => Ok(None),
        }
    }

    /// The field and message of the error for `record`.
    pub(crate) fn error(format: &str, record: &[u8]) -> (&'static str, String) {
        let error = parse(format, record).unwrap_err();
        (error.field().unwrap_or(""), error.message().to_owned())
    }
}
