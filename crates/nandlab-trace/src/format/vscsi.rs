//! VMware vSCSI traces, versions 1 and 2 (binary, little-endian), the format of the CloudPhysics traces.
//!
//! Version 1, 32 bytes: u32 serial, len, nSG; u16 cmd, version; u64 lbn, ts. Version 2, 40 bytes: u16 cmd, version; u32
//! serial, len, nSG; u64 lbn, ts, rt. The high byte of the version field is the version. len is bytes, lbn 512-byte
//! blocks, ts microseconds; serial, nSG and rt are not used. One file is one disk. Records are in the order of their
//! time stamps (ts), not of their serial numbers.
//!
//! cmd is the SCSI operation code, in hexadecimal: READ 08 28 88 A8, WRITE 0A 2A 8A AA, SYNCHRONIZE CACHE 35 91 (a
//! flush). Every other code is refused. UNMAP (a TRIM) is refused too, because a record does not hold the ranges of an
//! UNMAP.
//!
//! Source: libCacheSim's reader of the CloudPhysics traces.

use super::{FormatInfo, Order, Parsed, Raw, Reader, Readers, TEXT, Target};
use crate::error::{ErrorKind, Position, TraceError};
use crate::parse::{CORRECT_RECORD, US, bad};
use nandlab_base::base::request::Op;
use nandlab_base::base::units::SECTOR;
use nandlab_base::workload::Format;

pub(super) static INFO: FormatInfo = FormatInfo {
    format: Format::Vscsi,
    units: "serial, len (B), nSG, cmd (SCSI code), version, lbn (512 B), ts (us)",
    order: Order::Ascending,
    sniff: |head| version_of(head).is_some_and(|(_, is_unanimous)| is_unanimous),
    readers: Readers::Own(
        |head, _| match version_of(head) {
            Some((1, _)) => Ok(Box::new(V1)),
            Some(_) => Ok(Box::new(V2)),
            None => Err(bad("version", head, "the start of a version 1 or 2 record")
                .at(Position::Record { number: 1, offset: 0 })),
        },
        &[],
    ),
    writer: Some(Target {
        flush: true,
        resolution_ns: US,
        offset_unit: SECTOR,
        len_unit: SECTOR,
        len_max: (u32::MAX as u64) / SECTOR * SECTOR,
        write: |out, request, number| {
            let cmd: u16 = match request.op {
                Op::Read => 0x28,
                Op::Write => 0x2a,
                Op::Trim | Op::Flush => 0x35,
            };
            out.extend_from_slice(&(number as u32).to_le_bytes());
            out.extend_from_slice(&(request.len as u32).to_le_bytes());
            out.extend_from_slice(&1u32.to_le_bytes());
            out.extend_from_slice(&cmd.to_le_bytes());
            out.extend_from_slice(&0x0100u16.to_le_bytes());
            out.extend_from_slice(&(request.offset / SECTOR).to_le_bytes());
            out.extend_from_slice(&(request.arrival.ns() / US).to_le_bytes());
        },
        ..TEXT
    }),
};

/// The version of the records in `head`, and whether all of the first 16 whole records have this version; `None` if no
/// version fits. A version fits if more than half of these records have it. If both versions fit, a version that all
/// records have is preferred.
fn version_of(head: &[u8]) -> Option<(u8, bool)> {
    let agreeing = |size: usize, at: usize, version: u8| {
        let records = || head.chunks_exact(size).take(16);
        let agree = records().filter(|r| r[at + 1] == version && r[at] == 0).count();
        (agree * 2 > records().count()).then_some((version, agree == records().count()))
    };
    let versions = [agreeing(32, 14, 1), agreeing(40, 2, 2)].into_iter().flatten();
    versions.clone().find(|(_, is_unanimous)| *is_unanimous).or_else(|| versions.clone().next())
}

struct V1;
struct V2;

fn u16_at(record: &[u8], at: usize) -> u16 {
    u16::from_le_bytes([record[at], record[at + 1]])
}

fn u32_at(record: &[u8], at: usize) -> u64 {
    u64::from(u32::from_le_bytes([record[at], record[at + 1], record[at + 2], record[at + 3]]))
}

fn u64_at(record: &[u8], at: usize) -> u64 {
    u32_at(record, at) | u32_at(record, at + 4) << 32
}

fn request<'a>(
    cmd: u16,
    version: u16,
    len: u64,
    lbn: u64,
    ts: u64,
    expected: u16,
) -> Result<Parsed<'a>, TraceError> {
    #[cold]
    fn wrong(field: &'static str, message: String) -> TraceError {
        TraceError::new(ErrorKind::Malformed, message, CORRECT_RECORD).field_name(field)
    }
    if version >> 8 != expected {
        return Err(wrong("version", format!("expected version {expected}, found {version:#06x}")));
    }
    let op = match cmd {
        0x08 | 0x28 | 0x88 | 0xa8 => Op::Read,
        0x0a | 0x2a | 0x8a | 0xaa => Op::Write,
        0x35 | 0x91 => Op::Flush,
        _ => {
            return Err(wrong(
                "cmd",
                format!("expected the SCSI code of a read, write or cache synchronization, found {cmd:#04x}"),
            ));
        }
    };
    let time_ns = ts
        .checked_mul(US)
        .ok_or_else(|| wrong("ts", format!("expected a time within 64-bit nanoseconds, found {ts} µs")))?;
    let (mut offset, mut bytes) = (0, 0);
    if op != Op::Flush {
        let overflow =
            || wrong("lbn", format!("expected a block whose byte address is below 2^64, found block {lbn}"));
        offset = lbn.checked_mul(SECTOR).ok_or_else(overflow)?;
        bytes = len;
    }
    Ok(Parsed::Request(Raw::of(time_ns, b"", op, offset, bytes)))
}

impl Reader for V1 {
    fn parse<'a>(&'a mut self, r: &'a [u8], _: u64) -> Result<Parsed<'a>, TraceError> {
        if r.len() < 32 {
            return Err(bad("record", r, "32 bytes"));
        }
        request(u16_at(r, 12), u16_at(r, 14), u32_at(r, 4), u64_at(r, 16), u64_at(r, 24), 1)
    }

    fn record_bytes(&self) -> Option<usize> {
        Some(32)
    }
}

impl Reader for V2 {
    fn parse<'a>(&'a mut self, r: &'a [u8], _: u64) -> Result<Parsed<'a>, TraceError> {
        if r.len() < 40 {
            return Err(bad("record", r, "40 bytes"));
        }
        request(u16_at(r, 0), u16_at(r, 2), u32_at(r, 8), u64_at(r, 16), u64_at(r, 24), 2)
    }

    fn record_bytes(&self) -> Option<usize> {
        Some(40)
    }
}

#[cfg(test)]
mod tests {
    use super::super::testing::{error, parse};
    use super::*;

    fn v1(cmd: u16, len: u32, lbn: u64, ts: u64) -> Vec<u8> {
        let mut r = Vec::new();
        for word in [1u32, len, 1] {
            r.extend_from_slice(&word.to_le_bytes());
        }
        r.extend_from_slice(&cmd.to_le_bytes());
        r.extend_from_slice(&0x0100u16.to_le_bytes());
        r.extend_from_slice(&lbn.to_le_bytes());
        r.extend_from_slice(&ts.to_le_bytes());
        r
    }

    #[test]
    fn published_record_is_parsed() {
        let record = v1(42, 512, 42_932_745, 5_633_898_368_802);
        let raw = parse("vscsi", &record).unwrap().unwrap();
        assert_eq!((raw.op, raw.offset, raw.len), (Op::Write, 42_932_745 * 512, 512));
        assert_eq!(raw.time_ns, 5_633_898_368_802_000);
    }

    #[test]
    fn version_2_has_its_own_layout() {
        let mut r = vec![0x88, 0, 0, 2];
        for word in [1u32, 8192, 1] {
            r.extend_from_slice(&word.to_le_bytes());
        }
        for word in [16u64, 1000, 5] {
            r.extend_from_slice(&word.to_le_bytes());
        }
        let raw = parse("vscsi", &r).unwrap().unwrap();
        assert_eq!((raw.op, raw.offset, raw.len, raw.time_ns), (Op::Read, 8192, 8192, 1_000_000));
    }

    #[test]
    fn each_field_is_checked() {
        assert_eq!(error("vscsi", &v1(0x12, 512, 0, 0)).0, "cmd");
        assert_eq!(error("vscsi", &v1(0x2a, 512, u64::MAX, 0)).0, "lbn");
        assert_eq!(error("vscsi", &v1(0x2a, 512, 0, u64::MAX)).0, "ts");
        assert_eq!(error("vscsi", &[7; 32]).0, "version");
    }
}
