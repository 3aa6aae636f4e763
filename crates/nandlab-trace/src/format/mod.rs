//! The trace formats: one file each, and one table that names them all.
//!
//! To add a format: write its file with a [`Reader`] (and a [`Writer`] if it can be written), add its line to
//! `FORMATS`, and its name to the choices of `workload.format` in nandlab's `host/spec/workload.rs`. Detection, errors, device choice, ordering, conversion, fuzzing and the round-trip tests follow.

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
use nandlab::host::{Op, Request};

/// What is known of a format.
#[derive(Clone, Copy, Debug)]
pub struct FormatInfo {
    /// The name in `workload.format`.
    pub name: &'static str,
    /// What it is, in a line.
    pub description: &'static str,
    /// Its columns and their units.
    pub units: &'static str,
    pub(crate) order: Order,
    /// Whether the content can be this format at all; lines are tried afterwards.
    pub(crate) sniff: fn(head: &[u8]) -> bool,
    pub(crate) reader: MakeReader,
    pub(crate) writer: Option<Target>,
}

/// Makes the reader of a file that starts with `head`.
pub(crate) type MakeReader = fn(head: &[u8], options: &ReaderOptions) -> Result<Box<dyn Reader>, TraceError>;

/// How a format's records follow each other in time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Order {
    /// Never backwards.
    Ascending,
    /// Sorted within a bounded window.
    Window,
    /// Whole seconds, ascending; the ties of a second are spread over it.
    Seconds,
}

/// What of the spec a reader needs.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct ReaderOptions {
    pub(crate) time_unit_ns: Option<f64>,
}

/// One request as a format's record says it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Raw<'a> {
    /// Nanoseconds since whatever the format counts from.
    pub(crate) time_ns: u64,
    /// The device, as the record spells it.
    pub(crate) device: &'a [u8],
    pub(crate) op: Op,
    pub(crate) fua: bool,
    /// A flush goes before this request.
    pub(crate) flush_first: bool,
    pub(crate) offset: u64,
    pub(crate) len: u64,
}

/// What a record turned out to be.
#[derive(Debug)]
pub(crate) enum Parsed<'a> {
    /// A request.
    Request(Raw<'a>),
    /// A header, a comment, an event that is no request.
    Nothing,
    /// The start of a summary: nothing follows.
    End,
}

/// Reads one line (or fixed-size record) at a time.
pub(crate) trait Reader: Send {
    /// Understands one record; `number` counts from 1.
    fn parse<'a>(&mut self, record: &'a [u8], number: u64) -> Result<Parsed<'a>, TraceError>;

    /// Bytes of a record of a binary format.
    fn record_bytes(&self) -> Option<usize> {
        None
    }

    /// How the record spells the device that the user calls `name`.
    fn device_key(&self, name: &str) -> Vec<u8> {
        name.as_bytes().to_vec()
    }

    /// What the user calls the device that the record spells `key`.
    fn device_name(&self, key: &[u8]) -> String {
        key.escape_ascii().to_string()
    }
}

/// What a format can say, and how it is written.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Target {
    pub(crate) trim: bool,
    pub(crate) flush: bool,
    pub(crate) fua: bool,
    /// Times are multiples of this.
    pub(crate) resolution_ns: u64,
    /// Addresses are multiples of this.
    pub(crate) offset_unit: u64,
    /// Lengths are multiples of this.
    pub(crate) len_unit: u64,
    pub(crate) len_max: u64,
    pub(crate) header: &'static [u8],
    pub(crate) write: Writer,
}

/// Appends one request, which the target's limits allow.
pub(crate) type Writer = fn(out: &mut Vec<u8>, request: &Request, number: u64);

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

/// Every format. Adding one is its file and its line here.
static FORMATS: [FormatInfo; 11] = [
    msr::INFO,
    spc::INFO,
    blkparse::INFO,
    fio_iolog::INFO,
    ssdsim::INFO,
    mqsim::INFO,
    disksim::INFO,
    alibaba::INFO,
    tencent::INFO,
    systor::INFO,
    vscsi::INFO,
];

/// Every trace format that can be read.
pub fn formats() -> &'static [FormatInfo] {
    &FORMATS
}

/// The format called `name`.
pub(crate) fn find(name: &str) -> Option<&'static FormatInfo> {
    FORMATS.iter().find(|f| f.name == name)
}

fn is_text(head: &[u8]) -> bool {
    !head.contains(&0)
}

/// The lines of the head, without a last one that the chunk's end may have cut.
pub(crate) fn head_lines(head: &[u8]) -> impl Iterator<Item = &[u8]> {
    // A byte order mark of three bytes may be missing from a full chunk.
    let is_all = head.len() + 3 < CHUNK_BYTES;
    let whole = if is_all { head } else { memchr::memrchr(b'\n', head).map_or(head, |n| &head[..n]) };
    whole.split(|&b| b == b'\n').map(|line| line.strip_suffix(b"\r").unwrap_or(line))
}

/// A read or write of a format that knows no other.
fn plain<'a>(time_ns: u64, device: &'a [u8], read: bool, offset: u64, len: u64) -> Parsed<'a> {
    let op = if read { Op::Read } else { Op::Write };
    Parsed::Request(Raw { time_ns, device, op, fua: false, flush_first: false, offset, len })
}

#[cfg(test)]
pub(crate) mod testing {
    use super::*;

    /// Parses one record of the format on its own.
    pub(crate) fn parse<'a>(format: &str, record: &'a [u8]) -> Result<Option<Raw<'a>>, TraceError> {
        let mut reader = (find(format).unwrap().reader)(record, &ReaderOptions::default())?;
        match reader.parse(record, 2)? {
            Parsed::Request(raw) => Ok(Some(raw)),
            _ => Ok(None),
        }
    }

    /// The field and message of the error that `record` gives.
    pub(crate) fn error(format: &str, record: &[u8]) -> (&'static str, String) {
        let error = parse(format, record).unwrap_err();
        (error.field().unwrap_or(""), error.message().to_owned())
    }
}
