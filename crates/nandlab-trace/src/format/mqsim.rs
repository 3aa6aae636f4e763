//! MQSim ascii traces.
//!
//! Columns: `time device sector sectors op`, separated by blanks. sector is the first sector of the request and sectors
//! its length, in sectors of 512 B. op 1 is a READ, 0 a write. The trace does not state the unit of its times; MQSim
//! has the unit in its workload XML (`Time_Unit`). The reader assumes nanoseconds unless `workload.time_unit` gives
//! another unit.
//!
//! Source: MQSim's README.

use super::ssdsim::{FIVE_COLUMNS, five_columns};
use super::{FormatInfo, Order, Parsed, Reader, ReaderOptions, disksim, is_text, plain};
use crate::error::{ErrorKind, TraceError};
use crate::parse::bad;
use nandlab_base::workload::Format;

pub(super) static INFO: FormatInfo = FormatInfo {
    format: Format::Mqsim,
    units: "time (ns, or workload.time_unit), device, sector (512 B), sectors, op (1 = read, 0 = write)",
    order: Order::Ascending,
    sniff: |head| is_text(head) && !disksim::is_likely(head),
    reader: |_, options| Ok(Box::new(Mqsim { unit: Unit::new(options)? })),
    writer: Some(FIVE_COLUMNS),
};

struct Mqsim {
    unit: Unit,
}

/// The unit of time: `ns / per` nanoseconds. The unit is a fraction so that picoseconds are exact. A time is rounded
/// down to a whole nanosecond.
#[derive(Clone, Copy)]
struct Unit {
    ns: u64,
    per: u64,
}

impl Unit {
    fn new(options: &ReaderOptions) -> Result<Self, TraceError> {
        let Some(unit) = options.time_unit_ns else { return Ok(Self { ns: 1, per: 1 }) };
        if (1.0..=1e12).contains(&unit) && libm::floor(unit) == unit {
            return Ok(Self { ns: unit as u64, per: 1 });
        }
        let per = libm::round(1.0 / unit);
        if unit > 0.0 && unit < 1.0 && per <= 1e9 && libm::fabs(per * unit - 1.0) < 1e-9 {
            return Ok(Self { ns: 1, per: per as u64 });
        }
        Err(TraceError::new(
            ErrorKind::Setting,
            format!(
                "workload.time_unit: expected a whole number of ns, or 1 ns divided by a whole number, found {unit} ns"
            ),
            "use 0.001 ns (ps), 1 ns or 1000 ns (us)",
        ))
    }
}

impl Reader for Mqsim {
    #[inline]
    fn parse<'a>(&mut self, line: &'a [u8], _: u64) -> Result<Parsed<'a>, TraceError> {
        let Some(c) = five_columns(line)? else { return Ok(Parsed::Nothing) };
        let n = c.ticks;
        let time_ns = match self.unit {
            Unit { ns: 1, per: 1 } => n,
            Unit { ns, per: 1 } => {
                let error = || bad("time", n.to_string().as_bytes(), "a time within 64-bit nanoseconds");
                n.checked_mul(ns).ok_or_else(error)?
            }
            Unit { per, .. } => n / per,
        };
        Ok(plain(time_ns, c.device, c.read, c.offset, c.len))
    }
}

#[cfg(test)]
mod tests {
    use super::super::testing::parse;
    use super::*;
    use nandlab_base::base::request::Op;

    #[test]
    fn line_of_the_readme_is_a_read() {
        let raw = parse("mqsim", b"11413000 0 657728 16 1").unwrap().unwrap();
        assert_eq!((raw.op, raw.time_ns, raw.offset, raw.len), (Op::Read, 11_413_000, 657_728 * 512, 8192));
    }

    #[test]
    fn unit_of_time_is_a_setting() {
        for (unit, expected) in [(0.001, 11_413), (1.0, 11_413_000), (1000.0, 11_413_000_000)] {
            let options = ReaderOptions { time_unit_ns: Some(unit) };
            let mut reader = (INFO.reader)(b"", &options).unwrap();
            let Parsed::Request(raw) = reader.parse(b"11413000 0 1 1 1", 1).unwrap() else { panic!() };
            assert_eq!(raw.time_ns, expected);
        }
        for unit in [0.0, -1.0, 1.5, f64::NAN, f64::INFINITY] {
            assert!((INFO.reader)(b"", &ReaderOptions { time_unit_ns: Some(unit) }).is_err());
        }
    }
}
