//! Event traces of Windows as CSV, the format of Microsoft's production traces.
//!
//! The lines between `BeginHeader` and `EndHeader` name the columns of each event. The reader takes `DiskRead` and
//! `DiskWrite`, and `DiskFlush` as a flush; other events that the header names are ignored. TimeStamp is microseconds: the
//! time at which a request ends. ByteOffset and IOSize are bytes, in hexadecimal. DiskNum is the device. Without a header
//! the columns are `DiskRead, TimeStamp, Process Name ( PID), ThreadID, IrpPtr, ByteOffset, IOSize, ElapsedTime, DiskNum,
//! IrpFlags, DiskSvcTime, I/O Pri`. The records are nearly in order of time; the reader sorts them within a window of
//! 65,536 records.
//!
//! Source: the traces that SNIA IOTTA distributes as "Microsoft Production Server".

use super::{FormatInfo, Order, Parsed, Raw, Reader, Readers, head_lines, is_text};
use crate::error::TraceError;
use crate::parse::{US, bad, hexadecimal, missing, trimmed, whole_time};
use nandlab_base::base::request::Op;
use nandlab_base::workload::Format;

pub(super) static INFO: FormatInfo = FormatInfo {
    format: Format::Etw,
    units: "event (DiskRead/DiskWrite/DiskFlush), TimeStamp (us), ByteOffset (B, hex), IOSize (B, hex), DiskNum",
    order: Order::Window,
    sniff: |head| {
        let is_event = |line| OPS.iter().any(|(name, _)| first(line) == *name);
        is_text(head) && head_lines(head).take(HEADER_LINES).any(is_event)
    },
    readers: Readers::Own(
        |head, _| Ok(Box::new(Etw::new(head))),
        &["event", "TimeStamp", "ByteOffset", "IOSize", "DiskNum"],
    ),
    writer: None,
};

const OPS: [(&[u8], Op); 3] = [(b"DiskRead", Op::Read), (b"DiskWrite", Op::Write), (b"DiskFlush", Op::Flush)];
/// The event of a request is among so many first lines of a file.
const HEADER_LINES: usize = 1000;
/// Events that a file without a header may have.
const IGNORED: [&[u8]; 3] = [b"DiskReadInit", b"DiskWriteInit", b"DiskFlushInit"];
const DATA: &[u8] =
    b"DiskRead, TimeStamp, Process Name ( PID), ThreadID, IrpPtr, ByteOffset, IOSize, ElapsedTime, \
                      DiskNum, IrpFlags, DiskSvcTime, I/O Pri";
const FLUSH: &[u8] =
    b"DiskFlush, TimeStamp, Process Name ( PID), ThreadID, IrpPtr, ElapsedTime, DiskNum, IrpFlags, DiskSvcTime, I/O Pri";

struct Etw {
    /// The columns of each operation, in the order of [`OPS`].
    columns: [Columns; 3],
    /// The names of the events in the header.
    events: Vec<Vec<u8>>,
    in_header: bool,
}

/// The numbers of the columns of an event, from 0.
#[derive(Clone, Copy)]
struct Columns {
    count: usize,
    /// Whether the last column may have commas.
    is_open: bool,
    time: Option<usize>,
    offset: Option<usize>,
    size: Option<usize>,
    disk: Option<usize>,
}

impl Columns {
    fn new(header: &[u8]) -> Self {
        let names: Vec<_> = cells(header).collect();
        let of = |name: &[u8]| names.iter().position(|known| *known == name);
        Self {
            count: names.len(),
            is_open: names.last() == Some(&&b"FileName"[..]),
            time: of(b"TimeStamp"),
            offset: of(b"ByteOffset"),
            size: of(b"IOSize"),
            disk: of(b"DiskNum"),
        }
    }
}

impl Etw {
    fn new(head: &[u8]) -> Self {
        let mut found = Self {
            columns: [Columns::new(DATA), Columns::new(DATA), Columns::new(FLUSH)],
            events: Vec::new(),
            in_header: false,
        };
        let mut is_write_named = false;
        let header = head_lines(head).skip_while(|line| first(line) != b"BeginHeader").skip(1);
        for line in header.take_while(|line| first(line) != b"EndHeader") {
            let event = first(line);
            found.events.push(event.to_vec());
            if let Some(at) = OPS.iter().position(|(name, _)| *name == event) {
                found.columns[at] = Columns::new(line);
                is_write_named |= at == 1;
            }
        }
        if !is_write_named {
            found.columns[1] = found.columns[0];
        }
        found
    }
}

fn cells(line: &[u8]) -> impl Iterator<Item = &[u8]> {
    line.split(|&b| b == b',').map(trimmed)
}

/// The first column of a line.
fn first(line: &[u8]) -> &[u8] {
    cells(line).next().unwrap_or_default()
}

impl Reader for Etw {
    fn parse<'a>(&'a mut self, line: &'a [u8], _: u64) -> Result<Parsed<'a>, TraceError> {
        let event = first(line);
        match event {
            b"BeginHeader" => self.in_header = true,
            b"EndHeader" => self.in_header = false,
            _ => {}
        }
        let is_blank = event.is_empty() && trimmed(line).is_empty();
        let is_outside =
            self.in_header || is_blank || event == b"EndHeader" || event.starts_with(b"OS Version");
        if is_outside {
            return Ok(Parsed::Nothing);
        }
        let Some(at) = OPS.iter().position(|(name, _)| *name == event) else {
            if IGNORED.contains(&event) || self.events.iter().any(|known| known == event) {
                return Ok(Parsed::Nothing);
            }
            return Err(bad("event", event, "an event that the header names, such as DiskRead"));
        };
        let Columns { count, is_open, time, offset, size, disk } = self.columns[at];
        let found = cells(line).count();
        if found > count && !is_open {
            return Err(bad(
                "(end of line)",
                cells(line).nth(count).unwrap_or_default(),
                "no further column",
            ));
        }
        let cell = |name: &'static str, column: Option<usize>| {
            column.and_then(|column| cells(line).nth(column)).ok_or_else(|| missing(name))
        };
        let time_ns = whole_time("TimeStamp", cell("TimeStamp", time)?, US)?;
        let op = OPS[at].1;
        let (mut at, mut len) = (0, 0);
        if op != Op::Flush {
            at = hexadecimal("ByteOffset", cell("ByteOffset", offset)?)?;
            len = hexadecimal("IOSize", cell("IOSize", size)?)?;
        }
        let device = cell("DiskNum", disk)?;
        if device.is_empty() || device.iter().any(|b| !b.is_ascii_digit()) {
            return Err(bad("DiskNum", device, "a disk number"));
        }
        if found < count {
            return Err(missing("(last column)"));
        }
        Ok(Parsed::Request(Raw::of(time_ns, device, op, at, len)))
    }
}
