//! The table of `biosnoop` of bcc and libbpf-tools.
//!
//! The first line names the columns, such as `TIME(s) COMM PID DISK T SECTOR BYTES LAT(ms)`; the reader takes the columns by
//! their names. TIME is seconds since the first event, or milliseconds if the name is `TIME(ms)`: the time at which a
//! request ends. COMM is the name of a process, which may have blanks. DISK is the device. T is the operation: `R`, `W`, or
//! letters as in the RWBS column of `blkparse`. SECTOR is the address in 512-byte sectors, BYTES the length. A table
//! without SECTOR, BYTES or T, such as that of biosnoop of bpftrace, is refused. The records are nearly in order of
//! time; the reader sorts them within a window of 65,536 records.
//!
//! Source: biosnoop.py of bcc and biosnoop.c of its libbpf-tools.

use super::blkparse::rwbs;
use super::{FormatInfo, Order, Parsed, Raw, Reader, Readers, head_lines, is_text};
use crate::error::{ErrorKind, TraceError};
use crate::parse::{MS, SECOND, Words, bad, integer, missing, sectors, time};
use nandlab_base::base::request::Op;
use nandlab_base::workload::Format;

pub(super) static INFO: FormatInfo = FormatInfo {
    format: Format::Biosnoop,
    units: "TIME (s), COMM, PID, DISK, T (R/W), SECTOR (512 B), BYTES, further columns ignored",
    order: Order::Window,
    sniff: |head| is_text(head) && head_lines(head).take(2).any(|line| line.starts_with(b"TIME(")),
    readers: Readers::Own(
        |head, _| {
            let header = head_lines(head).take(2).find(|line| line.starts_with(b"TIME("));
            Ok(Box::new(Biosnoop { table: header.map(Table::new).unwrap_or_default() }))
        },
        &["TIME", "COMM", "PID", "DISK", "T", "SECTOR", "BYTES"],
    ),
    writer: None,
};

struct Biosnoop {
    table: Table,
}

/// The numbers of the columns, from 0.
struct Table {
    unit_ns: u64,
    columns: usize,
    process: Option<usize>,
    disk: Option<usize>,
    op: Option<usize>,
    sector: Option<usize>,
    bytes: Option<usize>,
}

impl Default for Table {
    fn default() -> Self {
        Self::new(b"TIME(s) COMM PID DISK T SECTOR BYTES LAT(ms)")
    }
}

impl Table {
    fn new(header: &[u8]) -> Self {
        let mut words = Words(header);
        let names: Vec<_> = std::iter::from_fn(|| words.optional()).collect();
        let of = |name: &[u8]| names.iter().position(|known| *known == name);
        Self {
            unit_ns: if names.first() == Some(&&b"TIME(ms)"[..]) { MS } else { SECOND },
            columns: names.len(),
            process: of(b"COMM"),
            disk: of(b"DISK").or(of(b"DEV")),
            op: of(b"T"),
            sector: of(b"SECTOR"),
            bytes: of(b"BYTES"),
        }
    }
}

impl Reader for Biosnoop {
    fn parse<'a>(&'a mut self, line: &'a [u8], number: u64) -> Result<Parsed<'a>, TraceError> {
        if number <= 2 && line.starts_with(b"TIME(") {
            let Table { op, sector, bytes, .. } = self.table;
            for (name, column) in [("T", op), ("SECTOR", sector), ("BYTES", bytes)] {
                if column.is_none() {
                    return Err(TraceError::new(
                        ErrorKind::Malformed,
                        format!("expected a table with the column {name}, found a table without it"),
                        "record the requests with biosnoop of bcc, or with blktrace",
                    )
                    .field_name(name));
                }
            }
            return Ok(Parsed::Nothing);
        }
        let mut words = Words(line);
        let cells: Vec<&[u8]> = std::iter::from_fn(|| words.optional()).collect();
        // "Tracing block device I/O... Hit Ctrl-C to end." comes before the table.
        if cells.is_empty() || (number == 1 && line.starts_with(b"Tracing")) {
            return Ok(Parsed::Nothing);
        }
        let Table { unit_ns, columns, process, disk, op, sector, bytes } = self.table;
        let surplus = cells.len().saturating_sub(columns);
        if surplus > 0 && process.is_none_or(|at| cells[at + surplus].iter().all(u8::is_ascii_digit)) {
            return Err(bad("(end of line)", cells[columns], "no further column"));
        }
        // Surplus words belong to the name of the process.
        let cell = |name: &'static str, column: Option<usize>| {
            let column = column.ok_or_else(|| missing(name))?;
            let at = column + if process.is_some_and(|process| column > process) { surplus } else { 0 };
            cells.get(at).copied().ok_or_else(|| missing(name))
        };
        let time_ns = time("TIME", cells[0], unit_ns)?;
        let device = disk.map_or(Ok(&b""[..]), |disk| cell("DISK", Some(disk)))?;
        let (flush_first, op, fua) = rwbs("T", cell("T", op)?)?;
        let (mut offset, mut len) = (0, 0);
        if op.is_some() {
            offset = sectors("SECTOR", cell("SECTOR", sector)?)?;
            len = integer("BYTES", cell("BYTES", bytes)?, "a number of bytes")?;
        }
        if cells.len() < columns {
            return Err(missing("(last column)"));
        }
        let op = match op {
            Some(op) if len > 0 || !flush_first => op,
            _ if flush_first => Op::Flush,
            _ => return Ok(Parsed::Nothing),
        };
        let is_flush = op == Op::Flush;
        let (offset, flush_first) = if is_flush { (0, false) } else { (offset, flush_first) };
        Ok(Parsed::Request(Raw { fua, flush_first, ..Raw::of(time_ns, device, op, offset, len) }))
    }
}
