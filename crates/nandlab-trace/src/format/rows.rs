//! The formats whose lines are only columns. Each is a constant with its columns; the documentation of a format is its
//! comment.

use super::{FormatInfo, Order, ReaderOptions, Readers, TEXT, Target, head_lines, is_text};
use crate::error::{ErrorKind, TraceError};
use crate::parse::{MS, SECOND, US, Words, push_decimal, push_number};
use nandlab_base::base::request::{Op, Request};
use nandlab_base::base::units::SECTOR;
use nandlab_base::columns::{Column, Columns, Kind, Ops, Separator, Unit};
use nandlab_base::workload::Format;

fn column(field: &'static str, kind: Kind) -> Column {
    Column { field, kind }
}

/// A column of operations, each value with its meaning; `None`: the record is ignored.
fn op(field: &'static str, values: &[(&str, Option<Op>)]) -> Column {
    let values = values.iter().map(|&(value, op)| (value.to_owned(), op)).collect();
    column(field, Kind::Op(Ops::Values { values, any_case: false, ignore_others: false }))
}

fn offset(field: &'static str, unit: u64) -> Column {
    column(field, Kind::Offset(Unit::of(unit)))
}

fn size(field: &'static str, unit: u64) -> Column {
    column(field, Kind::Size(Unit::of(unit)))
}

fn columns<const N: usize>(separator: Separator, columns: [Column; N]) -> Columns {
    Columns {
        columns: columns.into(),
        is_open: false,
        separator,
        header_lines: 0,
        comment: Vec::new(),
        op: None,
        size: None,
    }
}

const COMMA: Separator = Separator::Byte(b',');

const READ: Option<Op> = Some(Op::Read);
const WRITE: Option<Op> = Some(Op::Write);

/// Columns: `Timestamp,Hostname,DiskNumber,Type,Offset,Size,ResponseTime`. The published files have no header line; a
/// header as line 1 is ignored. Timestamp is a Windows FILETIME: ticks of 100 ns since 1601-01-01 UTC. Type is `Read`
/// or `Write`, in upper or lower case. Offset and Size are bytes. ResponseTime (ticks) is not used.
///
/// Traps: a spreadsheet turns the timestamps into `1.28166E+17`, or makes all timestamps equal; the reader refuses
/// both. A device is named `HOST_DISK`, like the published file of that device.
///
/// Source: the README that SNIA IOTTA ships with the traces.
pub(super) static MSR: FormatInfo = FormatInfo {
    format: Format::Msr,
    units: "Timestamp (FILETIME, 100 ns), Hostname, DiskNumber, Type (Read/Write), Offset (B), Size (B), ResponseTime",
    order: Order::Ascending,
    sniff: is_text,
    readers: Readers::Columns(|_| {
        Ok(columns(
            COMMA,
            [
                column("Timestamp", Kind::Ticks(TICK_NS)),
                column("Hostname", Kind::Device),
                column("DiskNumber", Kind::Device),
                op("Type", &[("Read", READ), ("Write", WRITE)]).in_any_case(),
                offset("Offset", 1),
                size("Size", 1),
                column("ResponseTime", Kind::Skip),
            ],
        ))
    }),
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

/// Nanoseconds of a FILETIME tick.
const TICK_NS: u64 = 100;
/// In a written MSR trace arrival 0 has this FILETIME, in ticks: a time within the week of the recording (2007-02-22 17:00
/// UTC).
const BASE_TICKS: u64 = 128_166_372_000_000_000;

/// Columns: `ASU,LBA,Size,Opcode,Timestamp`; further columns are ignored, and so is a header as line 1. ASU (application
/// storage unit) is the device. LBA counts 512-byte blocks WITHIN the ASU: every ASU is an address space of its own, so a
/// file with several ASUs needs `workload.device`. Size is bytes and need not be a multiple of 512. The format allows a
/// size of 0, but the reader refuses this size. Opcode is `R` or `W`, in upper or lower case. Timestamp is seconds since
/// the start, non-decreasing. Blanks around a value are allowed.
///
/// Source: "SPC Trace File Format Specification", revision 1.0.1.
pub(super) static SPC: FormatInfo = FormatInfo {
    format: Format::Spc,
    units: "ASU, LBA (512 B, within the ASU), Size (B), Opcode (R/W), Timestamp (s), further columns ignored",
    order: Order::Ascending,
    sniff: is_text,
    readers: Readers::Columns(|_| {
        Ok(Columns {
            is_open: true,
            ..columns(
                COMMA,
                [
                    column("ASU", Kind::DeviceNumber),
                    offset("LBA", SECTOR),
                    size("Size", 1),
                    op("Opcode", &[("R", READ), ("r", READ), ("W", WRITE), ("w", WRITE)]),
                    column("Timestamp", Kind::Time(SECOND)),
                ],
            )
        })
    }),
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

/// Columns: `time device sector sectors op`, separated by blanks. time is integer nanoseconds. sector is the first
/// sector of the request and sectors its length, in sectors of 512 B. op 1 is a READ, 0 a write. The format is not
/// detected by content: an MQSim trace in nanoseconds has the same columns with the same meaning, so detection returns
/// `mqsim` for files of both formats.
///
/// Source: SSDsim's README.
pub(super) static SSDSIM: FormatInfo = FormatInfo {
    format: Format::Ssdsim,
    units: "time (ns), device, sector (512 B), sectors, op (1 = read, 0 = write)",
    order: Order::Ascending,
    sniff: |_| false,
    readers: Readers::Columns(|_| Ok(five_columns(Kind::Ticks(1)))),
    writer: Some(FIVE_TARGET),
};

/// The columns of SSDsim and MQSim.
fn five_columns(time: Kind) -> Columns {
    columns(
        Separator::Blanks,
        [
            column("time", time),
            column("device", Kind::DeviceNumber),
            offset("sector", SECTOR),
            size("sectors", SECTOR),
            op("op", &[("1", READ), ("0", WRITE)]),
        ],
    )
}

const FIVE_TARGET: Target = Target { offset_unit: SECTOR, len_unit: SECTOR, write: write_five, ..TEXT };

fn write_five(out: &mut Vec<u8>, request: &Request, _: u64) {
    push_number(out, request.arrival.ns());
    out.extend_from_slice(b" 0 ");
    push_number(out, request.offset / SECTOR);
    out.push(b' ');
    push_number(out, request.len / SECTOR);
    out.extend_from_slice(if request.op == Op::Read { b" 1\n" } else { b" 0\n" });
}

/// Columns: `time device sector sectors op`, separated by blanks. sector is the first sector of the request and sectors
/// its length, in sectors of 512 B. op 1 is a READ, 0 a write. A header as line 1 is ignored. The trace does not state
/// the unit of its times; MQSim has the unit in its workload XML (`Time_Unit`). The reader assumes whole nanoseconds
/// unless `workload.time_unit` gives another unit; a time in `us`, `ms` or `s` may have decimals.
///
/// Source: MQSim's README.
pub(super) static MQSIM: FormatInfo = FormatInfo {
    format: Format::Mqsim,
    units: "time (ns, or workload.time_unit), device, sector (512 B), sectors, op (1 = read, 0 = write)",
    order: Order::Ascending,
    sniff: |head| is_text(head) && !is_disksim(head),
    readers: Readers::Columns(|options| Ok(five_columns(mqsim_time(options)?))),
    writer: Some(FIVE_TARGET),
};

/// The unit of the times of an MQSim trace. Parts of a nanosecond are a whole number, so that picoseconds are exact.
fn mqsim_time(options: &ReaderOptions) -> Result<Kind, TraceError> {
    let Some(unit) = options.time_unit_ns else { return Ok(Kind::Ticks(1)) };
    if unit == 1.0 {
        return Ok(Kind::Ticks(1));
    }
    if (1.0..=1e12).contains(&unit) && libm::floor(unit) == unit {
        return Ok(Kind::Time(unit as u64));
    }
    let parts = libm::round(1.0 / unit);
    if unit > 0.0 && unit < 1.0 && parts <= 1e9 && libm::fabs(parts * unit - 1.0) < 1e-9 {
        return Ok(Kind::Parts(parts as u64));
    }
    Err(TraceError::new(
        ErrorKind::Setting,
        format!(
            "workload.time_unit: expected a whole number of ns, or 1 ns divided by a whole number, found {unit} ns"
        ),
        "use 0.001 ns (ps), 1 ns or 1000 ns (us)",
    ))
}

/// Columns: `time device block blocks flags`, separated by blanks. time is a decimal number of MILLISECONDS, ascending.
/// block is the first block of the request and blocks its length, in blocks of 512 B. flags is a HEXADECIMAL bit field
/// whose bit 0 is set for a READ (so `3` and `9` are reads).
///
/// The format is detected by a decimal point in a time, or by flags other than 0 and 1, in the first 100 lines. A file
/// with integer times and no flags other than 0 and 1 is detected as `mqsim`.
///
/// Source: the DiskSim 4.0 reference manual, section 4.1.1.
pub(super) static DISKSIM: FormatInfo = FormatInfo {
    format: Format::Disksim,
    units: "time (ms, decimal), device, block (512 B), blocks, flags (hex; bit 0: 1 = read)",
    order: Order::Ascending,
    sniff: |head| is_text(head) && is_disksim(head),
    readers: Readers::Columns(|_| {
        Ok(columns(
            Separator::Blanks,
            [
                column("time", Kind::Time(MS)),
                column("device", Kind::DeviceNumber),
                offset("block", SECTOR),
                size("blocks", SECTOR),
                column("flags", Kind::Op(Ops::Bit0)),
            ],
        ))
    }),
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
fn is_disksim(head: &[u8]) -> bool {
    let is_hex = |flags: &[u8]| {
        let digits = flags.strip_prefix(b"0x").unwrap_or(flags);
        !digits.is_empty() && digits.iter().all(u8::is_ascii_hexdigit)
    };
    head_lines(head).take(100).any(|line| {
        let mut words = Words(line);
        let decimal = words.optional().is_some_and(|time| time.contains(&b'.'));
        let flags = (0..4).map(|_| words.optional()).last().flatten();
        decimal || flags.is_some_and(|f| f != b"0" && f != b"1" && f.len() <= 8 && is_hex(f))
    })
}

/// Columns: `device_id,opcode,offset,length,timestamp`. opcode is `R` or `W`. offset and length are bytes. timestamp is
/// a Unix time in microseconds. A file mixes the records of a thousand disks. The records are nearly in order of time;
/// the reader sorts them within a window of 65,536 records.
///
/// Source: the README of alibaba/block-traces.
pub(super) static ALIBABA: FormatInfo = FormatInfo {
    format: Format::Alibaba,
    units: "device_id, opcode (R/W), offset (B), length (B), timestamp (us, Unix epoch)",
    order: Order::Window,
    sniff: is_text,
    readers: Readers::Columns(|_| {
        Ok(columns(
            COMMA,
            [
                column("device_id", Kind::Device),
                op("opcode", &[("R", READ), ("W", WRITE)]),
                offset("offset", 1),
                size("length", 1),
                column("timestamp", Kind::Ticks(US)),
            ],
        ))
    }),
    writer: Some(Target {
        resolution_ns: US,
        write: |out, request, _| {
            out.extend_from_slice(if request.op == Op::Read { b"0,R," } else { b"0,W," });
            push_number(out, request.offset);
            out.push(b',');
            push_number(out, request.len);
            out.push(b',');
            push_number(out, ALIBABA_BASE_US + request.arrival.ns() / US);
            out.push(b'\n');
        },
        ..TEXT
    }),
};

/// In a written Alibaba trace arrival 0 has this Unix time, in microseconds: a time within the period of the recording
/// (2020-01-01 00:00 in UTC+8).
const ALIBABA_BASE_US: u64 = 1_577_808_000_000_000;

/// Columns: `Timestamp,Offset,Size,IOType,VolumeID`. Timestamp is a Unix time in whole SECONDS. Offset and Size are in
/// 512-byte SECTORS. IOType 0 is a read and 1 a WRITE (the opposite of SSDsim and MQSim). VolumeID is the device. A
/// file mixes the records of thousands of volumes.
///
/// Traps: all requests of a second have the same time. The reader spreads the requests of the chosen volumes evenly
/// over the second, in the order of the file.
///
/// Source: the README that SNIA IOTTA ships with the traces.
pub(super) static TENCENT: FormatInfo = FormatInfo {
    format: Format::Tencent,
    units: "Timestamp (s, Unix epoch), Offset (512 B), Size (512 B), IOType (0 = read, 1 = write), VolumeID",
    order: Order::Seconds,
    sniff: is_text,
    readers: Readers::Columns(|_| {
        Ok(columns(
            COMMA,
            [
                column("Timestamp", Kind::Ticks(SECOND)),
                offset("Offset", SECTOR),
                size("Size", SECTOR),
                op("IOType", &[("0", READ), ("1", WRITE)]),
                column("VolumeID", Kind::DeviceNumber),
            ],
        ))
    }),
    writer: Some(Target {
        resolution_ns: SECOND,
        offset_unit: SECTOR,
        len_unit: SECTOR,
        write: |out, request, _| {
            push_number(out, TENCENT_BASE_S + request.arrival.ns() / SECOND);
            out.push(b',');
            push_number(out, request.offset / SECTOR);
            out.push(b',');
            push_number(out, request.len / SECTOR);
            out.extend_from_slice(if request.op == Op::Read { b",0,0\n" } else { b",1,0\n" });
        },
        ..TEXT
    }),
};

/// In a written Tencent trace arrival 0 has this Unix time, in seconds: a time within the period of the recording
/// (2018-10-01 00:00 in UTC+8).
const TENCENT_BASE_S: u64 = 1_538_323_200;

/// Columns: `Timestamp,Response,IOType,LUN,Offset,Size`, with a header line. Timestamp is a Unix time in seconds with
/// nine decimals. Response is in seconds and is not used. IOType is `R`, `W` or blank. LUN is the device. Offset and
/// Size are bytes.
///
/// Traps: about a fifth of the records are out of order, so the reader sorts the records within a window of 65,536
/// records. In a record with a blank IOType no response was recorded. Such a record may be a read or a write, so it is
/// left out; it counts as skipped.
///
/// Source: the README that SNIA IOTTA ships with the traces.
pub(super) static SYSTOR: FormatInfo = FormatInfo {
    format: Format::Systor,
    units: "Timestamp (s, Unix epoch), Response (s), IOType (R/W/blank), LUN, Offset (B), Size (B)",
    order: Order::Window,
    sniff: is_text,
    readers: Readers::Columns(|_| {
        Ok(columns(
            COMMA,
            [
                column("Timestamp", Kind::Time(SECOND)),
                column("Response", Kind::Skip),
                op("IOType", &[("R", READ), ("W", WRITE), ("", None)]),
                column("LUN", Kind::Device),
                offset("Offset", 1),
                size("Size", 1),
            ],
        ))
    }),
    writer: Some(Target {
        header: b"Timestamp,Response,IOType,LUN,Offset,Size\n",
        write: |out, request, _| {
            push_decimal(out, SYSTOR_BASE_NS + request.arrival.ns(), 9);
            out.extend_from_slice(if request.op == Op::Read { b",0,R,0," } else { b",0,W,0," });
            push_number(out, request.offset);
            out.push(b',');
            push_number(out, request.len);
            out.push(b'\n');
        },
        ..TEXT
    }),
};

/// In a written Systor trace arrival 0 has this Unix time, in nanoseconds: a time within the period of the recording.
const SYSTOR_BASE_NS: u64 = 1_456_095_145 * SECOND;

/// Columns: `time pid process sector sectors op major minor md5`, separated by blanks. time is nanoseconds. sector is the
/// first sector of the request and sectors its length, in sectors of 512 B. op is `R` or `W`. The device is named
/// by its numbers, such as `8_0`. pid, process (whose name may have blanks) and md5 are not used. The records are nearly in order of time;
/// the reader sorts them within a window of 65,536 records.
///
/// Source: the README of the FIU IODedup traces, which SNIA IOTTA distributes.
pub(super) static FIU: FormatInfo = FormatInfo {
    format: Format::Fiu,
    units: "time (ns), pid, process, sector (512 B), sectors, op (R/W), major, minor, md5",
    order: Order::Window,
    sniff: is_text,
    readers: Readers::Columns(|_| {
        Ok(columns(
            Separator::Blanks,
            [
                column("time", Kind::Ticks(1)),
                column("pid", Kind::Number(u64::MAX)),
                column("process", Kind::Words),
                offset("sector", SECTOR),
                size("sectors", SECTOR),
                op("op", &[("R", READ), ("W", WRITE)]),
                column("major", Kind::Device),
                column("minor", Kind::Device),
                column("md5", Kind::Skip),
            ],
        ))
    }),
    writer: None,
};

/// Columns: `volume,time,op,offset,length`. volume is the device. time is seconds, with decimals. op is `R` or `W`. offset
/// and length are bytes. The records are nearly in order of time; the reader sorts them within a window of 65,536 records.
///
/// Source: the Fujitsu K5 cloud storage traces, which SNIA IOTTA distributes.
pub(super) static K5CLOUD: FormatInfo = FormatInfo {
    format: Format::K5cloud,
    units: "volume, time (s), op (R/W), offset (B), length (B)",
    order: Order::Window,
    sniff: is_text,
    readers: Readers::Columns(|_| {
        Ok(columns(
            COMMA,
            [
                column("volume", Kind::DeviceNumber),
                column("time", Kind::Time(SECOND)),
                op("op", &[("R", READ), ("W", WRITE)]),
                offset("offset", 1),
                size("length", 1),
            ],
        ))
    }),
    writer: None,
};

/// Columns: `version,time,op,size,lbn`, with a header line. version is that of the vSCSI trace from which the file was made, 1 or 2.
/// time is seconds, with decimals. op is the SCSI operation code in decimal digits: READ 8, 40, 136, 168, WRITE 10, 42, 138,
/// 170, SYNCHRONIZE CACHE 53, 145 (a flush). size is bytes, lbn 512-byte blocks.
///
/// Source: libCacheSim's CSV form of the CloudPhysics traces.
pub(super) static CLOUDPHYSICS: FormatInfo = FormatInfo {
    format: Format::Cloudphysics,
    units: "version, time (s), op (SCSI code), size (B), lbn (512 B)",
    order: Order::Ascending,
    sniff: is_text,
    readers: Readers::Columns(|_| {
        Ok(columns(
            COMMA,
            [
                column("version", Kind::Number(2)),
                column("time", Kind::Time(SECOND)),
                op(
                    "op",
                    &[
                        ("40", READ),
                        ("42", WRITE),
                        ("8", READ),
                        ("10", WRITE),
                        ("136", READ),
                        ("138", WRITE),
                        ("168", READ),
                        ("170", WRITE),
                        ("53", Some(Op::Flush)),
                        ("145", Some(Op::Flush)),
                    ],
                ),
                size("size", 1),
                offset("lbn", SECTOR),
            ],
        ))
    }),
    writer: None,
};
