//! blkparse's default text output.
//!
//! Columns: `maj,min cpu seq seconds.nanoseconds pid action RWBS` and then, for requests, `sector + count [process]` in
//! 512-byte sectors. `maj,min` is the device.
//!
//! One request has a line for each of several actions (Q queued, D issued, C completed...), so the reader takes the
//! lines of ONE action and ignores all others. The reader takes `D`: the request as the device receives it. If the
//! first 256 KiB of the decompressed file have no `D`, the reader takes `Q`, the arrival in the block layer. If they
//! have neither `D` nor `Q`, the reader takes `C`.
//!
//! RWBS: an optional leading `F` (a flush before the request), then one of `R` `W` `D` (discard: a TRIM) `N` (none),
//! then modifiers: `F` force unit access, `S` sync, `M` metadata, `A` read-ahead, `B` barrier, `E` secure (of a
//! discard). So `FN`, `F`, `FF` and `FS` are flushes, `FWS` is a flush and a write, `WFS` a FUA write, `FWFS` a flush
//! and a FUA write. Packet commands (`N 0 (00 ..)`) are ignored. A read, write or discard without data (`WS [process]`, `WS
//! 0 [0]`, `WS 0 + 0`) counts as skipped, unless it is a flush. Reading ends at the summary (`CPUn (dev):`, `Total (dev):`,
//! `Throughput`).
//!
//! Traps: blkparse begins with a line `Input file FILE added` for each CPU, and an event may follow on the last of these
//! lines. Events of several CPUs may be slightly out of order: the reader sorts an event that is at most 1 s earlier than
//! the events before, within 512 events.
//!
//! Source: blkparse(1) of blktrace 1.2.0.

use super::{FormatInfo, Order, Parsed, Raw, Reader, Readers, TEXT, Target, head_lines, is_text};
use crate::error::TraceError;
use crate::parse::{SECOND, Words, bad, push_decimal, push_number, sectors, time};
use crate::tally::Reason;
use nandlab_base::base::request::Op;
use nandlab_base::base::units::SECTOR;
use nandlab_base::workload::Format;

pub(super) static INFO: FormatInfo = FormatInfo {
    format: Format::Blkparse,
    units: "maj,min, cpu, sequence, time (s.ns), pid, action, RWBS, sector (512 B) + count, [process]",
    order: Order::Nearly,
    sniff: |head| {
        is_text(head)
            && head_lines(head).find_map(|line| Words(event(line)).optional()).is_some_and(|word| {
                word.splitn(2, |&b| b == b',')
                    .filter(|n| !n.is_empty() && n.iter().all(u8::is_ascii_digit))
                    .count()
                    == 2
            })
    },
    readers: Readers::Own(
        |head, _| Ok(Box::new(Blkparse { action: action_of(head), device: Vec::new() })),
        &["device", "cpu", "sequence", "time", "pid", "action", "RWBS", "sector", "+", "count"],
    ),
    writer: Some(Target {
        trim: true,
        flush: true,
        fua: true,
        offset_unit: SECTOR,
        len_unit: SECTOR,
        write: |out, request, number| {
            out.extend_from_slice(b"  8,0    0 ");
            push_number(out, number);
            out.push(b' ');
            push_decimal(out, request.arrival.ns(), 9);
            out.extend_from_slice(match (request.op, request.fua) {
                (Op::Read, false) => b" 1  D   R ",
                (Op::Read, true) => b" 1  D  RF ",
                (Op::Write, false) => b" 1  D   W ",
                (Op::Write, true) => b" 1  D  WF ",
                (Op::Trim, _) => b" 1  D   D ",
                (Op::Flush, _) => b" 1  D  FN ",
            });
            if request.op != Op::Flush {
                push_number(out, request.offset / SECTOR);
                out.extend_from_slice(b" + ");
                push_number(out, request.len / SECTOR);
                out.push(b' ');
            }
            out.extend_from_slice(b"[nandlab]\n");
        },
        ..TEXT
    }),
};

struct Blkparse {
    action: u8,
    /// The device of the last line, which is known to be one.
    device: Vec<u8>,
}

/// The event of a line: the line without `Input file FILE added` at its start.
#[inline]
fn event(line: &[u8]) -> &[u8] {
    if !line.starts_with(b"Input file ") {
        return line;
    }
    memchr::memmem::find(line, b" added").map_or(line, |at| &line[at + b" added".len()..])
}

/// The action whose lines are read, by the actions in `head`: `D`, else `Q`, else `C`; `D` if `head` has none of the
/// three.
fn action_of(head: &[u8]) -> u8 {
    let (mut queued, mut completed) = (false, false);
    for line in head_lines(head) {
        let mut words = Words(event(line));
        match (0..6).map(|_| words.optional()).last().flatten() {
            Some(b"D") => return b'D',
            Some(b"Q") => queued = true,
            Some(b"C") => completed = true,
            _ => {}
        }
    }
    match (queued, completed) {
        (true, _) => b'Q',
        (false, true) => b'C',
        (false, false) => b'D',
    }
}

/// The meaning of an RWBS field: whether a flush precedes the operation, the operation (`None`: no data), and FUA.
#[inline(always)]
pub(super) fn rwbs(field: &'static str, value: &[u8]) -> Result<(bool, Option<Op>, bool), TraceError> {
    let unknown = || bad(field, value, "a combination of R W D N and F S M A B E");
    let (flush, rest) = match value {
        [b'F', rest @ ..] => (true, rest),
        rest => (false, rest),
    };
    let (op, modifiers) = match rest {
        [b'R', rest @ ..] => (Some(Op::Read), rest),
        [b'W', rest @ ..] => (Some(Op::Write), rest),
        [b'D', rest @ ..] => (Some(Op::Trim), rest),
        [b'N', rest @ ..] => (None, rest),
        rest if flush => (None, rest),
        _ => return Err(unknown()),
    };
    let mut fua = false;
    for &b in modifiers {
        match b {
            b'F' => fua = true,
            b'S' | b'M' | b'A' | b'B' | b'E' => {}
            _ => return Err(unknown()),
        }
    }
    Ok((flush, op, fua && op == Some(Op::Write)))
}

/// Another event is ignored if its neighbouring columns are as expected. In an event without one of its columns a later
/// column, such as RWBS, stands in the place of the action.
fn other_event<'a>(pid: &[u8], words: &mut Words<'_>) -> Result<Parsed<'a>, TraceError> {
    if !pid.iter().all(u8::is_ascii_digit) {
        return Err(bad("pid", pid, "a process id"));
    }
    match words.optional() {
        Some(word) if word[0].is_ascii_digit() => Err(bad("RWBS", word, "letters")),
        _ => Ok(Parsed::Nothing),
    }
}

impl Reader for Blkparse {
    #[inline]
    fn parse<'a>(&'a mut self, line: &'a [u8], _: u64) -> Result<Parsed<'a>, TraceError> {
        let mut words = Words(event(line));
        let Some(device) = words.optional() else { return Ok(Parsed::Nothing) };
        if device != self.device {
            if device.starts_with(b"CPU") || device == b"Total" || device == b"Throughput" {
                return Ok(Parsed::End);
            }
            let comma = device.iter().position(|&b| b == b',').unwrap_or(0);
            if comma == 0 || device.iter().any(|b| !b.is_ascii_digit() && *b != b',') {
                return Err(bad("device", device, "major,minor"));
            }
            self.device.clear();
            self.device.extend_from_slice(device);
        }
        words.next("cpu")?;
        words.next("sequence")?;
        let stamp = words.next("time")?;
        let pid = words.next("pid")?;
        let action = words.next("action")?;
        if action != [self.action] {
            return match action {
                [b'A'..=b'Z' | b'm'] => other_event(pid, &mut words),
                _ => Err(bad("action", action, "an action letter")),
            };
        }
        let time_ns = time("time", stamp, SECOND)?;
        let (flush_first, op, fua) = rwbs("RWBS", words.next("RWBS")?)?;
        let request = |flush_first, op, fua, offset, len| {
            Ok(Parsed::Request(Raw { fua, flush_first, ..Raw::of(time_ns, device, op, offset, len) }))
        };
        let Some(op) = op else {
            return if flush_first { request(false, Op::Flush, false, 0, 0) } else { Ok(Parsed::Nothing) };
        };
        // A flush without data may have the letter W.
        let empty = || match flush_first {
            true => request(false, Op::Flush, false, 0, 0),
            false => Ok(Parsed::Without { reason: Reason::NoData, device }),
        };
        let offset = match words.sectors() {
            Some(offset) => offset,
            None => {
                let sector = words.next("sector")?;
                if sector.starts_with(b"[") {
                    return empty();
                }
                sectors("sector", sector)?
            }
        };
        match words.next("+")? {
            b"+" => {}
            process if offset == 0 && process.starts_with(b"[") => return empty(),
            other => return Err(bad("+", other, "+")),
        }
        let len = match words.sectors() {
            Some(len) => len,
            None => sectors("count", words.next("count")?)?,
        };
        if len == 0 {
            return empty();
        }
        request(flush_first, op, fua, offset, len)
    }
}

#[cfg(test)]
mod tests {
    use super::super::testing::{error, parse};
    use super::*;

    #[test]
    fn write_of_the_manual_is_parsed() {
        let line = b"  8,33  11       14     0.312455739  5026  D  WS 178688 + 512 [fio]";
        let raw = parse("blkparse", line).unwrap().unwrap();
        assert_eq!((raw.op, raw.offset, raw.len), (Op::Write, 178_688 * 512, 512 * 512));
        assert_eq!((raw.time_ns, &raw.device[..], raw.fua), (312_455_739, "8,33", false));
    }

    #[test]
    fn packet_command_is_ignored() {
        let line = b"  8,33   4        1     0.000000000  3922  D   N 0 (00 ..) [kworker/u65:0]";
        assert_eq!(parse("blkparse", line).unwrap(), None);
    }

    #[test]
    fn rwbs_letters_mean_what_the_manual_says() {
        let flush = (true, None, false);
        for (text, meaning) in [
            ("R", (false, Some(Op::Read), false)),
            ("RAM", (false, Some(Op::Read), false)),
            ("WSM", (false, Some(Op::Write), false)),
            ("WFS", (false, Some(Op::Write), true)),
            ("FWS", (true, Some(Op::Write), false)),
            ("FWFS", (true, Some(Op::Write), true)),
            ("DS", (false, Some(Op::Trim), false)),
            ("DE", (false, Some(Op::Trim), false)),
            ("FN", flush),
            ("F", flush),
            ("FF", flush),
            ("FS", flush),
            ("N", (false, None, false)),
        ] {
            assert_eq!(rwbs("RWBS", text.as_bytes()).unwrap(), meaning, "{text}");
        }
        assert!(rwbs("RWBS", b"X").is_err() && rwbs("RWBS", b"WZ").is_err());
    }

    #[test]
    fn flush_without_a_sector_and_with_an_empty_one_are_flushes() {
        for line in ["7,0 1 1 6.9 2 D FN [k]", "7,0 1 1 6.9 2 D FWS [k]", "7,0 1 1 6.9 2 D FWS 0 + 0 [k]"] {
            let raw = parse("blkparse", line.as_bytes()).unwrap().unwrap();
            assert_eq!((raw.op, raw.len, raw.flush_first), (Op::Flush, 0, false), "{line}");
        }
    }

    #[test]
    fn an_event_without_data_is_counted() {
        for line in ["7,0 1 1 6.9 2 D WS [k]", "7,0 1 1 6.9 2 D WS 0 [0]", "7,0 1 1 6.9 2 D R 8 + 0 [k]"] {
            let mut reader = INFO.reader(line.as_bytes(), &super::super::ReaderOptions::default()).unwrap();
            let parsed = reader.parse(line.as_bytes(), 1).unwrap();
            assert!(matches!(parsed, Parsed::Without { reason: Reason::NoData, device: b"7,0" }), "{line}");
        }
        let flush = parse("blkparse", b"7,0 1 1 6.9 2 D FWS 0 [0]").unwrap().unwrap();
        assert_eq!((flush.op, flush.len), (Op::Flush, 0));
    }

    #[test]
    fn an_event_after_the_name_of_an_input_file_is_read() {
        let line = b"Input file sda.blktrace.7 added  8,0 0 1 0.5 1 D R 8 + 8 [x]";
        assert_eq!(parse("blkparse", line).unwrap().unwrap().offset, 4096);
        assert_eq!(parse("blkparse", b"Input file sda.blktrace.7 added").unwrap(), None);
        assert!((INFO.sniff)(&[b"Input file sda.blktrace.0 added\n", &line[..]].concat()));
    }

    #[test]
    fn action_is_d_then_q_then_c() {
        let q = &b"8,0 0 1 0.0 1 Q R 8 + 8 [x]\n"[..];
        let c = &b"8,0 0 1 0.0 1 C R 8 + 8 [0]\n"[..];
        let d = &b"8,0 0 1 0.0 1 D R 8 + 8 [x]\n"[..];
        assert_eq!(action_of(&[q, d, c].concat()), b'D');
        assert_eq!(action_of(&[c, q].concat()), b'Q');
        assert_eq!(action_of(c), b'C');
    }

    #[test]
    fn each_field_is_checked() {
        for (line, field) in [
            ("nonsense", "device"),
            ("8,0 0 1 x 1 D R 8 + 8 [x]", "time"),
            ("8,0 0 1 0.5 1 D R 8 - 8 [x]", "+"),
            ("8,0 0 1 0.5 1 D R a + 8 [x]", "sector"),
            ("8,0 0 1 0.5 1 D R 8 [x]", "+"),
            ("8,0 0 1 0.5 1 D R 8 +", "count"),
            ("8,0 0 1 0.5 1 D Q 8 + 8", "RWBS"),
            ("8,0 0 1 0.5 1 ?? R 8 + 8", "action"),
            ("8,0 0 1 1 D R 8 + 8", "pid"),
            ("8,0 0 1 0.5 1 R 8 + 8", "RWBS"),
        ] {
            assert_eq!(error("blkparse", line.as_bytes()).0, field, "{line}");
        }
    }
}
