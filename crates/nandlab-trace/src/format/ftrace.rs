//! Block events of the kernel's function tracer: the file trace or trace_pipe of tracefs, and the output of trace-cmd and `perf
//! script`.
//!
//! A line is `TASK-PID [CPU] FLAGS SECONDS: EVENT: ...`. The reader takes the event `block_rq_issue`, whose fields are
//! `maj,min RWBS bytes (command) sector + sectors [process]`: the request as the device receives it. If the first 256 KiB
//! of the decompressed file do not have this event, the reader takes `block_rq_complete`. Other events are ignored.
//! `maj,min` is the device, RWBS as in `blkparse`. A line that says that the kernel lost events is refused. The events are
//! nearly in order of time; the reader sorts them within a window of 65,536 records.
//!
//! Source: include/trace/events/block.h of Linux.

use super::blkparse::rwbs;
use super::{FormatInfo, Order, Parsed, Raw, Reader, Readers, is_text};
use crate::error::{ErrorKind, TraceError};
use crate::parse::{CORRECT_RECORD, SECOND, Words, bad, integer, missing, sectors, time};
use memchr::memmem;
use nandlab_base::base::request::Op;
use nandlab_base::workload::Format;

const ISSUE: &[u8] = b"block_rq_issue:";
const COMPLETE: &[u8] = b"block_rq_complete:";
/// The other events whose names begin with `block_`.
const OTHERS: [&[u8]; 22] = [
    b"rq_insert:",
    b"rq_requeue:",
    b"rq_merge:",
    b"rq_error:",
    b"rq_remap:",
    b"rq_issue:",
    b"rq_complete:",
    b"bio_queue:",
    b"bio_bounce:",
    b"bio_complete:",
    b"bio_backmerge:",
    b"bio_frontmerge:",
    b"bio_remap:",
    b"getrq:",
    b"plug:",
    b"unplug:",
    b"split:",
    b"touch_buffer:",
    b"dirty_buffer:",
    b"io_start:",
    b"io_done:",
    b"sleeprq:",
];

pub(super) static INFO: FormatInfo = FormatInfo {
    format: Format::Ftrace,
    units: "task, cpu, time (s), event, maj,min, RWBS, bytes, (command), sector (512 B) + sectors, [process]",
    order: Order::Window,
    sniff: |head| is_text(head) && event_of(head).is_some(),
    readers: Readers::Own(
        |head, _| Ok(Box::new(Ftrace { event: event_of(head).unwrap_or(ISSUE) })),
        &["time", "event", "device", "RWBS", "bytes", "sector", "+", "sectors"],
    ),
    writer: None,
};

fn event_of(head: &[u8]) -> Option<&'static [u8]> {
    [ISSUE, COMPLETE].into_iter().find(|event| memmem::find(head, event).is_some())
}

struct Ftrace {
    event: &'static [u8],
}

impl Reader for Ftrace {
    fn parse<'a>(&'a mut self, line: &'a [u8], _: u64) -> Result<Parsed<'a>, TraceError> {
        let Some(at) = memmem::find(line, self.event) else { return other(line) };
        let before = &line[..at];
        let before = before.strip_suffix(b"block:").unwrap_or(before);
        let mut words = Words(before);
        let stamp = std::iter::from_fn(|| words.optional()).last().ok_or_else(|| missing("time"))?;
        let stamp = stamp.strip_suffix(b":").ok_or_else(|| bad("time", stamp, "a time and a colon"))?;
        let time_ns = time("time", stamp, SECOND)?;
        let mut words = Words(&line[at + self.event.len()..]);
        let device = words.next("device")?;
        let comma = device.iter().position(|&b| b == b',').unwrap_or(0);
        if comma == 0 || device.iter().any(|b| !b.is_ascii_digit() && *b != b',') {
            return Err(bad("device", device, "major,minor"));
        }
        let (flush_first, op, fua) = rwbs("RWBS", words.next("RWBS")?)?;
        if self.event == ISSUE {
            integer("bytes", words.next("bytes")?, "a number of bytes")?;
        }
        let mut command = words.next("(command)")?;
        if !command.starts_with(b"(") {
            return Err(bad("(command)", command, "a command in parentheses"));
        }
        while !command.ends_with(b")") {
            command = words.next("(command)")?;
        }
        let sector = words.next("sector")?;
        match words.next("+")? {
            b"+" => {}
            word => return Err(bad("+", word, "+")),
        }
        let len = sectors("sectors", words.next("sectors")?)?;
        let flush = Raw::of(time_ns, device, Op::Flush, 0, 0);
        match op {
            Some(op) if len > 0 || !flush_first => {
                let offset = sectors("sector", sector)?;
                Ok(Parsed::Request(Raw { fua, flush_first, ..Raw::of(time_ns, device, op, offset, len) }))
            }
            _ if flush_first => Ok(Parsed::Request(flush)),
            _ => Ok(Parsed::Nothing),
        }
    }
}

/// A line without the event that is read.
fn other(line: &[u8]) -> Result<Parsed<'static>, TraceError> {
    if memmem::find(line, b"LOST").is_some() && memmem::find(line, b"EVENTS").is_some() {
        let message = "the kernel lost events here, because its buffer was full";
        return Err(TraceError::new(
            ErrorKind::Malformed,
            message,
            "record again with a larger buffer (buffer_size_kb), or skip such lines with workload.lenient = true",
        )
        .field_name("event"));
    }
    let text = crate::parse::trimmed(line);
    if text.is_empty() || text.starts_with(b"#") {
        return Ok(Parsed::Nothing);
    }
    let mut words = Words(line);
    let mut is_event = false;
    while let Some(word) = words.optional() {
        if let Some(name) = word.strip_prefix(b"block:").unwrap_or(word).strip_prefix(b"block_") {
            if OTHERS.contains(&name) {
                return Ok(Parsed::Nothing);
            }
            return Err(bad("event", word, "the name of a block event"));
        }
        // Any other event: a time and a name, each with a colon.
        is_event |= word.len() > 1 && word.ends_with(b":") && word[0].is_ascii_digit();
    }
    if is_event {
        return Ok(Parsed::Nothing);
    }
    let message = format!("expected an event, found {}", crate::error::quoted(text));
    Err(TraceError::new(ErrorKind::Malformed, message, CORRECT_RECORD).field_name("event"))
}
