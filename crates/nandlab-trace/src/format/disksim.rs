//! DiskSim ascii traces.
//!
//! Columns: `time device block blocks flags`, separated by blanks. time is a decimal number of MILLISECONDS, ascending.
//! block is the first block of the request and blocks its length, in blocks of 512 B. flags is a HEXADECIMAL bit field
//! whose bit 0 is set for a READ (so `3` and `9` are reads).
//!
//! The format is detected by a decimal point in a time, or by flags other than 0 and 1, in the first 100 lines. A file
//! with integer times and no flags other than 0 and 1 is detected as `mqsim`.
//!
//! Source: the DiskSim 4.0 reference manual, section 4.1.1.

use super::{FormatInfo, Order, Parsed, Reader, TEXT, Target, head_lines, is_text, plain};
use crate::error::TraceError;
use crate::parse::{MS, Words, bad, push_decimal, push_number, sectors, time};
use nandlab_base::base::request::Op;
use nandlab_base::base::units::SECTOR;
use nandlab_base::workload::Format;

pub(super) static INFO: FormatInfo = FormatInfo {
    format: Format::Disksim,
    units: "time (ms, decimal), device, block (512 B), blocks, flags (hex; bit 0: 1 = read)",
    order: Order::Ascending,
    sniff: |head| is_text(head) && is_likely(head),
    reader: |_, _| Ok(Box::new(Disksim)),
    writer: Some(Target {
        offset_unit: SECTOR,
        len_unit: SECTOR,
        write: |out, request, _| {
            push_decimal(out, request.arrival.ns(), 6);
            out.extend_from_slice(b" 0 ");
            push_number(out, request.offset / SECTOR);
            out.push(b' ');
            push_number(out, request.len / SECTOR);
            out.extend_from_slice(if request.op == Op::Read { b" 1\n" } else { b" 0\n" });
        },
        ..TEXT
    }),
};

/// Whether one of the first 100 lines has a time with a decimal point, or hexadecimal flags other than 0 and 1.
pub(super) fn is_likely(head: &[u8]) -> bool {
    head_lines(head).take(100).any(|line| {
        let mut words = Words(line);
        let decimal = words.optional().is_some_and(|time| time.contains(&b'.'));
        let flags = (0..4).map(|_| words.optional()).last().flatten();
        decimal || flags.is_some_and(|f| f != b"0" && f != b"1" && f.len() <= 8 && hex(f).is_some())
    })
}

fn hex(value: &[u8]) -> Option<u64> {
    let digits = value.strip_prefix(b"0x").unwrap_or(value);
    if digits.is_empty() || digits.len() > 16 {
        return None;
    }
    digits.iter().try_fold(0, |n, &b| Some(n << 4 | u64::from((b as char).to_digit(16)?)))
}

struct Disksim;

impl Reader for Disksim {
    #[inline]
    fn parse<'a>(&mut self, line: &'a [u8], _: u64) -> Result<Parsed<'a>, TraceError> {
        let mut words = Words(line);
        let Some(stamp) = words.optional() else { return Ok(Parsed::Nothing) };
        let time_ns = time("time", stamp, MS)?;
        let device = words.next("device")?;
        if device.iter().any(|b| !b.is_ascii_digit()) {
            return Err(bad("device", device, "a device number"));
        }
        let offset = sectors("block", words.next("block")?)?;
        let len = sectors("blocks", words.next("blocks")?)?;
        let flags = words.next("flags")?;
        let bits = hex(flags).ok_or_else(|| bad("flags", flags, "a hexadecimal bit field"))?;
        words.end()?;
        Ok(plain(time_ns, device, bits & 1 == 1, offset, len))
    }
}

#[cfg(test)]
mod tests {
    use super::super::testing::{error, parse};
    use super::*;

    #[test]
    fn flags_are_hexadecimal_and_bit_0_is_a_read() {
        for (flags, op) in
            [("0", Op::Write), ("1", Op::Read), ("a", Op::Write), ("B", Op::Read), ("10", Op::Write)]
        {
            let line = format!("5265.313 0 6357144 8 {flags}");
            let raw = parse("disksim", line.as_bytes()).unwrap().unwrap();
            assert_eq!((raw.op, raw.time_ns), (op, 5_265_313_000), "{flags}");
            assert_eq!((raw.offset, raw.len), (6_357_144 * 512, 4096));
        }
    }

    #[test]
    fn each_field_is_checked() {
        for (line, field) in [
            ("x 0 1 8 1", "time"),
            ("1.5 0 1 8 g", "flags"),
            ("1.5 0 1 8", "flags"),
            ("1.5 b 1 8 1", "device"),
        ] {
            assert_eq!(error("disksim", line.as_bytes()).0, field, "{line}");
        }
    }
}
