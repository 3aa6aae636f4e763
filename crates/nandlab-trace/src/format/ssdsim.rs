//! SSDsim ascii traces.
//!
//! Columns: `time device sector sectors op`, separated by blanks. time is integer nanoseconds. sector is the first
//! sector of the request and sectors its length, in sectors of 512 B. op 1 is a READ, 0 a write. The format is not
//! detected by content: an MQSim trace in nanoseconds has the same columns with the same meaning, so detection returns
//! `mqsim` for files of both formats.
//!
//! Source: SSDsim's README.

use super::{FormatInfo, Order, Parsed, Reader, TEXT, Target, plain};
use crate::error::TraceError;
use crate::parse::{Words, bad, push_number, sectors, ticks};
use nandlab_base::base::request::{Op, Request};
use nandlab_base::base::units::SECTOR;
use nandlab_base::workload::Format;

pub(super) static INFO: FormatInfo = FormatInfo {
    format: Format::Ssdsim,
    units: "time (ns), device, sector (512 B), sectors, op (1 = read, 0 = write)",
    order: Order::Ascending,
    sniff: |_| false,
    reader: |_, _| Ok(Box::new(Ssdsim)),
    writer: Some(FIVE_COLUMNS),
};

/// The target of SSDsim and MQSim, which have the same columns.
pub(super) const FIVE_COLUMNS: Target =
    Target { offset_unit: SECTOR, len_unit: SECTOR, write: write_line, ..TEXT };

fn write_line(out: &mut Vec<u8>, request: &Request, _: u64) {
    push_number(out, request.arrival.ns());
    out.extend_from_slice(b" 0 ");
    push_number(out, request.offset / SECTOR);
    out.push(b' ');
    push_number(out, request.len / SECTOR);
    out.extend_from_slice(if request.op == Op::Read { b" 1\n" } else { b" 0\n" });
}

/// Parses the five columns; `None` for a blank line.
#[inline]
pub(super) fn five_columns<'a>(line: &'a [u8]) -> Result<Option<FiveColumns<'a>>, TraceError> {
    plain_columns(line).map_or_else(|| any_columns(line), |columns| Ok(Some(columns)))
}

/// Parses five columns in one pass; `None` if they need [`any_columns`].
#[inline]
fn plain_columns<'a>(line: &'a [u8]) -> Option<FiveColumns<'a>> {
    let mut words = Words(line);
    let (_, ticks) = words.number()?;
    let (device, _) = words.number()?;
    let (_, offset) = words.number()?;
    let (_, len) = words.number()?;
    let (_, op) = words.number().filter(|&(word, op)| op < 2 && word.len() == 1)?;
    let (offset, len) = (offset.checked_mul(SECTOR)?, len.checked_mul(SECTOR)?);
    words.optional().is_none().then_some(FiveColumns { ticks, device, offset, len, read: op == 1 })
}

/// Parses the five columns, and names what is wrong with them.
#[cold]
#[inline(never)]
fn any_columns<'a>(line: &'a [u8]) -> Result<Option<FiveColumns<'a>>, TraceError> {
    let mut words = Words(line);
    let Some(time) = words.optional() else { return Ok(None) };
    let device = words.next("device")?;
    if device.iter().any(|b| !b.is_ascii_digit()) {
        return Err(bad("device", device, "a device number"));
    }
    let offset = sectors("sector", words.next("sector")?)?;
    let len = sectors("sectors", words.next("sectors")?)?;
    let read = match words.next("op")? {
        b"1" => true,
        b"0" => false,
        other => return Err(bad("op", other, "1 (read) or 0 (write)")),
    };
    words.end()?;
    let ticks = ticks("time", time, 1)?;
    Ok(Some(FiveColumns { ticks, device, offset, len, read }))
}

/// The columns of a line. The time is a number of ticks, because the unit of an MQSim time is a setting.
pub(super) struct FiveColumns<'a> {
    pub(super) ticks: u64,
    pub(super) device: &'a [u8],
    pub(super) offset: u64,
    pub(super) len: u64,
    pub(super) read: bool,
}

struct Ssdsim;

impl Reader for Ssdsim {
    #[inline]
    fn parse<'a>(&mut self, line: &'a [u8], _: u64) -> Result<Parsed<'a>, TraceError> {
        let Some(c) = five_columns(line)? else { return Ok(Parsed::Nothing) };
        Ok(plain(c.ticks, c.device, c.read, c.offset, c.len))
    }
}

#[cfg(test)]
mod tests {
    use super::super::testing::{error, parse};
    use super::*;

    #[test]
    fn one_is_a_read() {
        let raw = parse("ssdsim", b"97900000 0 287641400 128 1").unwrap().unwrap();
        assert_eq!((raw.op, raw.time_ns), (Op::Read, 97_900_000));
        assert_eq!((raw.offset, raw.len), (287_641_400 * 512, 128 * 512));
        assert_eq!(parse("ssdsim", b"97900000 0 1 128 0").unwrap().unwrap().op, Op::Write);
    }

    #[test]
    fn each_field_is_checked() {
        for (line, field) in [
            ("x 0 1 8 1", "time"),
            ("1.5 0 1 8 1", "time"),
            ("1 a 1 8 1", "device"),
            ("1 0 a 8 1", "sector"),
            ("1 0 1 -8 1", "sectors"),
            ("1 0 1 8 2", "op"),
            ("1 0 1 8", "op"),
            ("1 0 1 8 1 1", "(end of line)"),
        ] {
            assert_eq!(error("ssdsim", line.as_bytes()).0, field, "{line}");
        }
    }
}
