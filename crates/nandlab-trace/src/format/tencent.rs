//! Tencent CBS block traces (CSV).
//!
//! Columns: `Timestamp,Offset,Size,IOType,VolumeID`. Timestamp is a Unix time in whole SECONDS. Offset and Size are in
//! 512-byte SECTORS. IOType 0 is a read and 1 a WRITE (the opposite of SSDsim and MQSim). VolumeID is the device. A
//! file mixes the records of thousands of volumes.
//!
//! Traps: all requests of a second have the same time. The reader spreads the requests of the chosen volumes evenly
//! over the second, in the order of the file.
//!
//! Source: the README that SNIA IOTTA ships with the traces.

use super::{FormatInfo, Order, Parsed, Reader, TEXT, Target, is_text, plain};
use crate::error::TraceError;
use crate::parse::{Columns, SECOND, bad, integer, push_number, sectors, ticks};
use nandlab_base::base::request::Op;
use nandlab_base::base::units::SECTOR;
use nandlab_base::workload::Format;

/// In a written trace arrival 0 has this Unix time, in seconds: a time within the period of the recording (2018-10-01
/// 00:00 in UTC+8).
const BASE_S: u64 = 1_538_323_200;

pub(super) static INFO: FormatInfo = FormatInfo {
    format: Format::Tencent,
    units: "Timestamp (s, Unix epoch), Offset (512 B), Size (512 B), IOType (0 = read, 1 = write), VolumeID",
    order: Order::Seconds,
    sniff: is_text,
    reader: |_, _| Ok(Box::new(Tencent)),
    writer: Some(Target {
        resolution_ns: SECOND,
        offset_unit: SECTOR,
        len_unit: SECTOR,
        write: |out, request, _| {
            push_number(out, BASE_S + request.arrival.ns() / SECOND);
            out.push(b',');
            push_number(out, request.offset / SECTOR);
            out.push(b',');
            push_number(out, request.len / SECTOR);
            out.extend_from_slice(if request.op == Op::Read { b",0,0\n" } else { b",1,0\n" });
        },
        ..TEXT
    }),
};

struct Tencent;

impl Reader for Tencent {
    #[inline]
    fn parse<'a>(&mut self, line: &'a [u8], number: u64) -> Result<Parsed<'a>, TraceError> {
        if line.is_empty() || (number == 1 && line.starts_with(b"Timestamp")) {
            return Ok(Parsed::Nothing);
        }
        let mut columns = Columns::comma(line);
        let time_ns = ticks("Timestamp", columns.next("Timestamp")?, SECOND)?;
        let offset = sectors("Offset", columns.next("Offset")?)?;
        let len = sectors("Size", columns.next("Size")?)?;
        let read = match columns.next("IOType")? {
            b"0" => true,
            b"1" => false,
            other => return Err(bad("IOType", other, "0 (read) or 1 (write)")),
        };
        let volume = columns.next("VolumeID")?;
        integer("VolumeID", volume, "a volume number")?;
        columns.end()?;
        Ok(plain(time_ns, volume, read, offset, len))
    }
}

#[cfg(test)]
mod tests {
    use super::super::testing::{error, parse};
    use super::*;

    #[test]
    fn one_is_a_write_and_addresses_are_sectors() {
        let raw = parse("tencent", b"1538323200,12910952,128,0,1063").unwrap().unwrap();
        assert_eq!((raw.op, raw.offset, raw.len), (Op::Read, 12_910_952 * 512, 65_536));
        assert_eq!((raw.time_ns, raw.device), (1_538_323_200 * SECOND, &b"1063"[..]));
        assert_eq!(parse("tencent", b"1538323200,1,1,1,1").unwrap().unwrap().op, Op::Write);
    }

    #[test]
    fn each_field_is_checked() {
        for (line, field) in [
            ("1.5,1,1,0,1", "Timestamp"),
            ("1,x,1,0,1", "Offset"),
            ("1,1,,0,1", "Size"),
            ("1,1,1,2,1", "IOType"),
            ("1,1,1,1", "VolumeID"),
        ] {
            assert_eq!(error("tencent", line.as_bytes()).0, field, "{line}");
        }
    }
}
