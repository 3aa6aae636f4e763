//! The requests of a recorded session of a live drive (`nandlab serve --record`).
//!
//! The recording itself is read by `recorded`, which makes records of fixed size of its requests.

use super::{FormatInfo, Order, Parsed, Raw, Reader, Readers};
use crate::error::TraceError;
use crate::parse::bad;
use crate::recorded::{MARK, RECORD};
use nandlab_base::base::request::Op;
use nandlab_base::workload::Format;

pub(super) static INFO: FormatInfo = FormatInfo {
    format: Format::Recording,
    units: "arrival (ns), offset (B), length (B), op, FUA, placement; power failures and marks are not part of a trace",
    // A request that follows from another one arrives when that one has ended, and may be submitted later.
    order: Order::Window,
    sniff: |head| {
        head.len() >= RECORD && head.chunks_exact(RECORD).take(16).all(|record| record.ends_with(&MARK))
    },
    readers: Readers::Own(|_, _| Ok(Box::new(Recorded)), &[]),
    writer: None,
};

struct Recorded;

impl Reader for Recorded {
    fn parse<'a>(&'a mut self, record: &'a [u8], _: u64) -> Result<Parsed<'a>, TraceError> {
        let number = |at: usize| Some(u64::from_le_bytes(record.get(at..at + 8)?.try_into().ok()?));
        let (Some(time_ns), Some(offset), Some(len), true) =
            (number(0), number(8), number(16), record.len() == RECORD && record.ends_with(&MARK))
        else {
            return Err(bad("record", record, "the recording of a live drive"));
        };
        let Some(&op) = Op::ALL.get(usize::from(record[24])) else {
            return Err(bad("op", &record[24..25], "a number from 0 to 3"));
        };
        let fua = record[25] != 0;
        let placement = u16::from_le_bytes([record[26], record[27]]);
        Ok(Parsed::Request(Raw { fua, placement, ..Raw::of(time_ns, b"", op, offset, len) }))
    }

    fn record_bytes(&self) -> Option<usize> {
        Some(RECORD)
    }
}
