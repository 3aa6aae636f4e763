//! MSR Cambridge block traces (CSV).
//!
//! Columns: `Timestamp,Hostname,DiskNumber,Type,Offset,Size,ResponseTime`. The published files have no header line; a
//! header as line 1 is ignored. Timestamp is a Windows FILETIME: ticks of 100 ns since 1601-01-01 UTC. Type is `Read`
//! or `Write`, in upper or lower case. Offset and Size are bytes. ResponseTime (ticks) is not used.
//!
//! Traps: a spreadsheet turns the timestamps into `1.28166E+17`, or makes all timestamps equal; the reader refuses
//! both. A device is named `HOST_DISK`, like the published file of that device.
//!
//! Source: the README that SNIA IOTTA ships with the traces.

use super::{FormatInfo, Order, Parsed, Reader, TEXT, Target, is_text, plain};
use crate::error::TraceError;
use crate::parse::{Columns, bad, integer, push_number, ticks};
use nandlab_base::base::request::Op;
use nandlab_base::workload::Format;

/// Nanoseconds of a FILETIME tick.
const TICK_NS: u64 = 100;
/// In a written trace arrival 0 has this FILETIME, in ticks: a time within the week of the recording (2007-02-22 17:00
/// UTC).
const BASE_TICKS: u64 = 128_166_372_000_000_000;

pub(super) static INFO: FormatInfo = FormatInfo {
    format: Format::Msr,
    units: "Timestamp (FILETIME, 100 ns), Hostname, DiskNumber, Type (Read/Write), Offset (B), Size (B), ResponseTime",
    order: Order::Ascending,
    sniff: is_text,
    reader: |_, _| Ok(Box::new(Msr)),
    writer: Some(Target {
        resolution_ns: TICK_NS,
        write: |out, request, _| {
            push_number(out, BASE_TICKS + request.arrival.ns() / TICK_NS);
            out.extend_from_slice(if request.op == Op::Read {
                b",nandlab,0,Read,"
            } else {
                b",nandlab,0,Write,"
            });
            push_number(out, request.offset);
            out.push(b',');
            push_number(out, request.len);
            out.extend_from_slice(b",0\n");
        },
        ..TEXT
    }),
};

struct Msr;

impl Reader for Msr {
    #[inline]
    fn parse<'a>(&mut self, line: &'a [u8], number: u64) -> Result<Parsed<'a>, TraceError> {
        if line.is_empty() || (number == 1 && line.starts_with(b"Timestamp")) {
            return Ok(Parsed::Nothing);
        }
        let mut columns = Columns::comma(line);
        let time_ns = ticks("Timestamp", columns.next("Timestamp")?, TICK_NS)?;
        let host = columns.next("Hostname")?;
        let disk = columns.next("DiskNumber")?;
        let read = match columns.next("Type")? {
            b"Read" => true,
            b"Write" => false,
            other if other.eq_ignore_ascii_case(b"read") => true,
            other if other.eq_ignore_ascii_case(b"write") => false,
            other => return Err(bad("Type", other, "Read or Write")),
        };
        let offset = integer("Offset", columns.next("Offset")?, "a byte address")?;
        let len = integer("Size", columns.next("Size")?, "a number of bytes")?;
        columns.next("ResponseTime")?;
        columns.end()?;
        // The device's key is the slice `HOST,DISK` of the line: host and disk are neighbouring columns.
        let start = host.as_ptr() as usize - line.as_ptr() as usize;
        let end = disk.as_ptr() as usize - line.as_ptr() as usize + disk.len();
        Ok(plain(time_ns, &line[start..end], read, offset, len))
    }

    fn device_key(&self, name: &str) -> Vec<u8> {
        match name.rsplit_once('_') {
            Some((host, disk)) => format!("{host},{disk}").into_bytes(),
            None => name.as_bytes().to_vec(),
        }
    }

    fn device_name(&self, key: &[u8]) -> String {
        key.escape_ascii().to_string().replacen(',', "_", 1)
    }
}

#[cfg(test)]
mod tests {
    use super::super::testing::{error, parse};
    use super::*;

    #[test]
    fn published_line_is_parsed() {
        let raw = parse("msr", b"128166372011600556,mds,0,Write,3201662976,20480,45361").unwrap().unwrap();
        assert_eq!((raw.op, raw.offset, raw.len), (Op::Write, 3_201_662_976, 20_480));
        assert_eq!(raw.time_ns, 12_816_637_201_160_055_600);
        assert_eq!(Msr.device_name(raw.device), "mds_0");
        assert_eq!(Msr.device_key("mds_0"), raw.device);
    }

    #[test]
    fn each_field_is_checked() {
        for (line, field, what) in [
            ("1.28166E+17,hm,0,Write,7014912,4096,26", "Timestamp", "spreadsheet"),
            ("-5,hm,0,Write,7014912,4096,26", "Timestamp", "negative"),
            ("5,hm,0,Wrote,7014912,4096,26", "Type", "expected Read or Write, found \"Wrote\""),
            ("5,hm,0,Write,99999999999999999999,4096,26", "Offset", "expected a byte address below 2^64"),
            ("5,hm,0,Write,0,abc,26", "Size", "expected a number of bytes, found \"abc\""),
            ("5,hm,0,Write,0", "Size", "expected a value, found the end of the line"),
            ("5,hm,0,Write,0,4096,26,1", "(end of line)", "expected no further column, found \"1\""),
        ] {
            let (at, message) = error("msr", line.as_bytes());
            assert_eq!(at, field);
            assert!(message.contains(what), "{message}");
        }
    }
}
