//! SPC trace format, the format of the UMass Financial and WebSearch traces (CSV).
//!
//! Columns: `ASU,LBA,Size,Opcode,Timestamp`; further columns are ignored. ASU (application storage unit) is the device.
//! LBA counts 512-byte blocks WITHIN the ASU: every ASU is an address space of its own, so a file with several ASUs
//! needs `workload.device`. Size is bytes and need not be a multiple of 512. The format allows a size of 0, but the
//! reader refuses this size. Opcode is `R` or `W`, in upper or lower case. Timestamp is seconds since the start,
//! non-decreasing. Blanks around a value are allowed.
//!
//! Source: "SPC Trace File Format Specification", revision 1.0.1.

use super::{FormatInfo, Order, Parsed, Reader, TEXT, Target, is_text, plain};
use crate::error::TraceError;
use crate::parse::{Columns, SECOND, bad, integer, push_decimal, push_number, sectors, time};
use nandlab_base::base::request::Op;
use nandlab_base::base::units::SECTOR;
use nandlab_base::workload::Format;

pub(super) static INFO: FormatInfo = FormatInfo {
    format: Format::Spc,
    units: "ASU, LBA (512 B, within the ASU), Size (B), Opcode (R/W), Timestamp (s), further columns ignored",
    order: Order::Ascending,
    sniff: is_text,
    reader: |_, _| Ok(Box::new(Spc)),
    writer: Some(Target {
        offset_unit: SECTOR,
        write: |out, request, _| {
            out.extend_from_slice(b"0,");
            push_number(out, request.offset / SECTOR);
            out.push(b',');
            push_number(out, request.len);
            out.extend_from_slice(if request.op == Op::Read { b",R," } else { b",W," });
            push_decimal(out, request.arrival.ns(), 9);
            out.push(b'\n');
        },
        ..TEXT
    }),
};

struct Spc;

impl Reader for Spc {
    #[inline]
    fn parse<'a>(&mut self, line: &'a [u8], _: u64) -> Result<Parsed<'a>, TraceError> {
        if line.is_empty() {
            return Ok(Parsed::Nothing);
        }
        let mut columns = Columns::comma(line);
        let asu = columns.next("ASU")?;
        integer("ASU", asu, "a number")?;
        let offset = sectors("LBA", columns.next("LBA")?)?;
        let len = integer("Size", columns.next("Size")?, "a number of bytes")?;
        let read = match columns.next("Opcode")? {
            b"R" | b"r" => true,
            b"W" | b"w" => false,
            other => return Err(bad("Opcode", other, "R or W")),
        };
        let time_ns = time("Timestamp", columns.next("Timestamp")?, SECOND)?;
        Ok(plain(time_ns, asu, read, offset, len))
    }
}

#[cfg(test)]
mod tests {
    use super::super::testing::{error, parse};
    use super::*;

    #[test]
    fn published_lines_are_parsed() {
        let raw = parse("spc", b"0,20941264,8192,W,0.551706,Alpha/NT").unwrap().unwrap();
        assert_eq!(
            (raw.op, raw.offset, raw.len, raw.time_ns),
            (Op::Write, 20_941_264 * 512, 8192, 551_706_000)
        );
        let raw = parse("spc", b"0,303567,3584,w,0.000000").unwrap().unwrap();
        assert_eq!((raw.op, raw.len, raw.time_ns), (Op::Write, 3584, 0));
        let raw = parse("spc", b"3, 8, 100, r, 1.5").unwrap().unwrap();
        assert_eq!((raw.op, raw.device, raw.offset, raw.len), (Op::Read, &b"3"[..], 4096, 100));
    }

    #[test]
    fn each_field_is_checked() {
        for (line, field, what) in [
            ("0,1,2,x,0.5", "Opcode", "expected R or W, found \"x\""),
            ("0,1,2,R", "Timestamp", "expected a value, found the end of the line"),
            ("0,1,2,R,-0.5", "Timestamp", "negative"),
            ("0,99999999999999999,2,R,0", "LBA", "whose byte address is below 2^64"),
            ("a,1,2,R,0", "ASU", "expected a number, found \"a\""),
        ] {
            let (at, message) = error("spc", line.as_bytes());
            assert_eq!(at, field);
            assert!(message.contains(what), "{message}");
        }
    }
}
