//! Alibaba block traces 2020 (CSV).
//!
//! Columns: `device_id,opcode,offset,length,timestamp`. opcode is `R` or `W`. offset and length are bytes. timestamp is
//! a Unix time in microseconds. A file mixes the records of a thousand disks. The records are nearly in order of time;
//! the reader sorts them within a window of 65,536 records.
//!
//! Source: the README of alibaba/block-traces.

use super::{FormatInfo, Order, Parsed, Reader, TEXT, Target, is_text, plain};
use crate::error::TraceError;
use crate::parse::{Columns, US, bad, integer, push_number, ticks};
use nandlab_base::base::request::Op;
use nandlab_base::workload::Format;

/// In a written trace arrival 0 has this Unix time, in microseconds: a time within the period of the recording
/// (2020-01-01 00:00 in UTC+8).
const BASE_US: u64 = 1_577_808_000_000_000;

pub(super) static INFO: FormatInfo = FormatInfo {
    format: Format::Alibaba,
    units: "device_id, opcode (R/W), offset (B), length (B), timestamp (us, Unix epoch)",
    order: Order::Window,
    sniff: is_text,
    reader: |_, _| Ok(Box::new(Alibaba)),
    writer: Some(Target {
        resolution_ns: US,
        write: |out, request, _| {
            out.extend_from_slice(if request.op == Op::Read { b"0,R," } else { b"0,W," });
            push_number(out, request.offset);
            out.push(b',');
            push_number(out, request.len);
            out.push(b',');
            push_number(out, BASE_US + request.arrival.ns() / US);
            out.push(b'\n');
        },
        ..TEXT
    }),
};

struct Alibaba;

impl Reader for Alibaba {
    #[inline]
    fn parse<'a>(&mut self, line: &'a [u8], number: u64) -> Result<Parsed<'a>, TraceError> {
        if line.is_empty() || (number == 1 && line.starts_with(b"device_id")) {
            return Ok(Parsed::Nothing);
        }
        let mut columns = Columns::comma(line);
        let device = columns.next("device_id")?;
        let read = match columns.next("opcode")? {
            b"R" => true,
            b"W" => false,
            other => return Err(bad("opcode", other, "R or W")),
        };
        let offset = integer("offset", columns.next("offset")?, "a byte address")?;
        let len = integer("length", columns.next("length")?, "a number of bytes")?;
        let time_ns = ticks("timestamp", columns.next("timestamp")?, US)?;
        columns.end()?;
        Ok(plain(time_ns, device, read, offset, len))
    }
}

#[cfg(test)]
mod tests {
    use super::super::testing::{error, parse};
    use super::*;

    #[test]
    fn line_of_the_readme_is_parsed() {
        let raw = parse("alibaba", b"0,R,126703644672,4096,1577808000000626").unwrap().unwrap();
        assert_eq!((raw.op, raw.offset, raw.len), (Op::Read, 126_703_644_672, 4096));
        assert_eq!(raw.time_ns, 1_577_808_000_000_626_000);
    }

    #[test]
    fn each_field_is_checked() {
        for (line, field) in [
            ("0,X,1,4096,1", "opcode"),
            ("0,R,x,4096,1", "offset"),
            ("0,R,1,-1,1", "length"),
            ("0,R,1,4096", "timestamp"),
            ("0,R,1,4096,99999999999999999999", "timestamp"),
        ] {
            assert_eq!(error("alibaba", line.as_bytes()).0, field, "{line}");
        }
    }
}
