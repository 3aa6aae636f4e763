//! Statistics of every device of a trace file.
//!
//! The records are counted in the order of the file; their order in time is not checked. Memory: as for the statistics of
//! a whole trace, 32 to 96 bytes per distinct page.

use crate::TraceError;
use crate::format::Parsed;
use crate::records::{Records, empty};
use crate::stat::{PAGE, Pages, share};
use crate::tally::{Reason, Tally};
use crate::trace::checked_offset;
use nandlab_base::base::request::Op;
use nandlab_base::workload::TraceSpec;
use serde_json::{Value, json};
use std::collections::HashMap;

/// Share of the page accesses that the working set takes.
const WORKING_SET: f64 = 0.9;

/// Statistics of one device.
#[derive(Clone, Debug, PartialEq)]
pub struct DeviceStat {
    /// The name by which `workload.device` chooses the device.
    pub device: String,
    /// Requests.
    pub requests: u64,
    /// Reads / (reads + writes), in requests.
    pub read_ratio: f64,
    /// Bytes read.
    pub read_bytes: u64,
    /// Bytes written.
    pub written_bytes: u64,
    /// Bytes of the distinct 4 KiB pages that are read or written.
    pub footprint_bytes: u64,
    /// Bytes of the most accessed 4 KiB pages that take 90 % of the page accesses.
    pub working_set_bytes: u64,
    /// One past the highest byte address.
    pub address_max_bytes: u64,
    /// Requests per second over the duration of the whole file; 0 for a duration of 0.
    pub iops_mean: f64,
}

impl DeviceStat {
    /// The statistics as JSON.
    pub fn to_json(&self) -> Value {
        json!({
            "device": self.device,
            "requests": self.requests,
            "read_ratio": self.read_ratio,
            "read_bytes": self.read_bytes,
            "written_bytes": self.written_bytes,
            "footprint_bytes": self.footprint_bytes,
            "working_set_bytes": self.working_set_bytes,
            "address_max_bytes": self.address_max_bytes,
            "iops_mean": self.iops_mean,
        })
    }
}

/// Counts of a device so far.
struct Counted {
    ops: [(u64, u64); 4],
    end: u64,
    pages: Pages,
    accesses: u64,
}

/// Statistics of every device of a trace file, the device with the most requests first. At most `requests_max` requests
/// are read (0: all).
///
/// # Errors
/// A file that cannot be read; a damaged record, unless `workload.lenient` skips it; too little memory to count the
/// pages.
pub fn stat_by_device(trace: &TraceSpec, requests_max: u64) -> Result<Vec<DeviceStat>, TraceError> {
    let mut records = Records::open(trace, None, false)?;
    let (mut devices, mut tally) = (HashMap::<Vec<u8>, Counted>::new(), Tally::default());
    let (mut requests, mut first, mut last) = (0, u64::MAX, 0);
    let in_file = |e: TraceError| e.in_file(&trace.path);
    while (requests_max == 0 || requests < requests_max) && records.advance().map_err(in_file)? {
        let number = records.input.number();
        let counted = match records.reader.parse(records.input.current(), number) {
            Ok(Parsed::End) => break,
            Ok(Parsed::Nothing) => continue,
            Ok(Parsed::Without { reason, .. }) => {
                tally.skip(reason);
                tally.records += 1;
                continue;
            }
            Ok(Parsed::Request(raw)) => match checked_offset(&raw, 0) {
                Ok(_) => {
                    requests += 1;
                    (first, last) = (first.min(raw.time_ns), last.max(raw.time_ns));
                    if !devices.contains_key(raw.device) {
                        devices.insert(raw.device.to_vec(), Counted::new());
                    }
                    match devices.get_mut(raw.device) {
                        Some(device) => device.count(raw.op, raw.offset, raw.len).map_err(in_file),
                        None => Ok(()),
                    }
                }
                Err(error) => Err(error),
            },
            Err(error) => Err(error),
        };
        tally.records += 1;
        match counted {
            Ok(()) => {}
            Err(_) if trace.lenient.is_some() => tally.skip(Reason::Malformed),
            Err(error) => return Err(in_file(error.at(records.position(number)))),
        }
    }
    if devices.is_empty() {
        return Err(in_file(empty(tally.skipped())));
    }
    if let Some(at_most) = trace.lenient {
        tally.check(at_most).map_err(in_file)?;
    }
    let seconds = last.saturating_sub(first) as f64 / 1e9;
    let named = |(key, counted): (Vec<u8>, Counted)| counted.stat(records.reader.device_name(&key), seconds);
    let mut stats: Vec<DeviceStat> = devices.into_iter().map(named).collect();
    stats.sort_by(|a, b| b.requests.cmp(&a.requests).then_with(|| a.device.cmp(&b.device)));
    Ok(stats)
}

impl Counted {
    fn new() -> Self {
        Self { ops: [(0, 0); 4], end: 0, pages: Pages::few(), accesses: 0 }
    }

    fn count(&mut self, op: Op, offset: u64, len: u64) -> Result<(), TraceError> {
        let (requests, bytes) = &mut self.ops[op as usize];
        *requests += 1;
        *bytes = bytes.saturating_add(len);
        if len == 0 {
            return Ok(());
        }
        let end = offset.saturating_add(len);
        self.end = self.end.max(end);
        if op == Op::Trim {
            return Ok(());
        }
        for page in offset / PAGE..=(end - 1) / PAGE {
            self.pages.slot(page)?.accesses += 1;
            self.accesses += 1;
        }
        Ok(())
    }

    fn stat(self, device: String, seconds: f64) -> DeviceStat {
        let of = |op: Op| self.ops[op as usize];
        let (reads, writes) = (of(Op::Read), of(Op::Write));
        let requests = self.ops.iter().map(|op| op.0).sum();
        let mut accesses = self.pages.accesses();
        let footprint_bytes = accesses.len() as u64 * PAGE;
        accesses.sort_unstable_by(|a, b| b.cmp(a));
        let mut left = (self.accesses as f64 * WORKING_SET).ceil() as u64;
        let working_set = accesses.iter().take_while(|&&n| {
            let is_needed = left > 0;
            left = left.saturating_sub(n.into());
            is_needed
        });
        DeviceStat {
            device,
            requests,
            read_ratio: share(reads.0, reads.0 + writes.0),
            read_bytes: reads.1,
            written_bytes: writes.1,
            footprint_bytes,
            working_set_bytes: working_set.count() as u64 * PAGE,
            address_max_bytes: self.end,
            iops_mean: if seconds > 0.0 { requests as f64 / seconds } else { 0.0 },
        }
    }
}
