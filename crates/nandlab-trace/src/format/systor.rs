//! Systor '17 (VDI) block traces (CSV).
//!
//! Columns: `Timestamp,Response,IOType,LUN,Offset,Size`, with a header line. Timestamp is a Unix time in seconds with
//! nine decimals. Response is in seconds and is not used. IOType is `R`, `W` or blank. LUN is the device. Offset and
//! Size are bytes.
//!
//! Traps: about a fifth of the records are out of order, so the reader sorts the records within a window of 65,536
//! records. In a record with a blank IOType no response was recorded. Such a record may be a read or a write, so it is
//! left out; it counts as skipped.
//!
//! Source: the README that SNIA IOTTA ships with the traces.

use super::{FormatInfo, Order, Parsed, Reader, TEXT, Target, is_text, plain};
use crate::error::TraceError;
use crate::parse::{Columns, SECOND, bad, integer, push_decimal, push_number, time};
use crate::tally::Reason;
use nandlab_base::base::request::Op;
use nandlab_base::workload::Format;

/// In a written trace arrival 0 has this Unix time, in nanoseconds: a time within the period of the recording.
const BASE_NS: u64 = 1_456_095_145 * SECOND;

pub(super) static INFO: FormatInfo = FormatInfo {
    format: Format::Systor,
    units: "Timestamp (s, Unix epoch), Response (s), IOType (R/W/blank), LUN, Offset (B), Size (B)",
    order: Order::Window,
    sniff: is_text,
    reader: |_, _| Ok(Box::new(Systor)),
    writer: Some(Target {
        header: b"Timestamp,Response,IOType,LUN,Offset,Size\n",
        write: |out, request, _| {
            push_decimal(out, BASE_NS + request.arrival.ns(), 9);
            out.extend_from_slice(if request.op == Op::Read { b",0,R,0," } else { b",0,W,0," });
            push_number(out, request.offset);
            out.push(b',');
            push_number(out, request.len);
            out.push(b'\n');
        },
        ..TEXT
    }),
};

struct Systor;

impl Reader for Systor {
    #[inline]
    fn parse<'a>(&mut self, line: &'a [u8], number: u64) -> Result<Parsed<'a>, TraceError> {
        if line.is_empty() || (number == 1 && line.starts_with(b"Timestamp")) {
            return Ok(Parsed::Nothing);
        }
        let mut columns = Columns::comma(line);
        let time_ns = time("Timestamp", columns.next("Timestamp")?, SECOND)?;
        columns.next("Response")?;
        let kind = columns.next("IOType")?;
        let lun = columns.next("LUN")?;
        let offset = integer("Offset", columns.next("Offset")?, "a byte address")?;
        let len = integer("Size", columns.next("Size")?, "a number of bytes")?;
        columns.end()?;
        match kind {
            b"R" => Ok(plain(time_ns, lun, true, offset, len)),
            b"W" => Ok(plain(time_ns, lun, false, offset, len)),
            b"" => Ok(Parsed::Without { reason: Reason::NoType, device: lun }),
            other => Err(bad("IOType", other, "R, W or blank")),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::testing::{error, parse};
    use super::*;

    #[test]
    fn published_line_is_parsed_and_a_blank_type_is_ignored() {
        let raw =
            parse("systor", b"1456095145.133076000,0.000806000,R,0,899056122368,131072").unwrap().unwrap();
        assert_eq!((raw.op, raw.offset, raw.len), (Op::Read, 899_056_122_368, 131_072));
        assert_eq!(raw.time_ns, 1_456_095_145_133_076_000);
        assert_eq!(parse("systor", b"1456095145.133076000,,,0,899056122368,131072").unwrap(), None);
    }

    #[test]
    fn each_field_is_checked() {
        for (line, field) in [
            ("x,0,R,0,1,1", "Timestamp"),
            ("1,0,X,0,1,1", "IOType"),
            ("1,0,R,0,x,1", "Offset"),
            ("1,0,R,0,1", "Size"),
            ("Timestamp,Response,IOType,LUN,Offset,Size", "Timestamp"),
        ] {
            assert_eq!(error("systor", line.as_bytes()).0, field, "{line}");
        }
    }
}
