//! fio I/O logs, versions 2 and 3.
//!
//! Line 1 is `fio version N iolog`. The other lines of version 2 are `file action [offset length]`, those of version 3
//! (since fio 3.31) `time file action [offset length]`. Offset and length are bytes. The column `file` is the device.
//! The actions `read`, `write` and `trim` are requests; `sync` and `datasync` are flushes. `add`, `open` and `close`
//! are no requests and are ignored.
//!
//! Time: version 3 gives microseconds since the start of the run. Version 2 has `wait` lines instead of times.
//! According to the manual, the number of a `wait` line (in the column of the offset) is the time since the previous
//! `wait` line in microseconds. So the requests between two `wait` lines all arrive at the same time, and in a log
//! without `wait` lines all requests arrive at 0. When fio itself replays a log, fio compares the number with the
//! milliseconds since the start; this reader follows the manual. Some programs write such logs in another unit, which
//! `workload.time_unit` gives.
//!
//! Several jobs, or a second run, append a log with a header of its own to the same file. The times of each log then go
//! on from the last time of the log before.
//!
//! Source: fio(1) of fio 3.33.

use super::{
    FormatInfo, Order, Parsed, Raw, Reader, ReaderOptions, Readers, TEXT, Target, head_lines, is_text,
};
use crate::error::{ErrorKind, TraceError};
use crate::parse::{US, Words, bad, integer, push_number, ticks};
use nandlab_base::base::request::Op;
use nandlab_base::workload::Format;

pub(super) static INFO: FormatInfo = FormatInfo {
    format: Format::FioIolog,
    units: "[v3: time (us, or workload.time_unit)], file, action, offset (B), length (B)",
    order: Order::Ascending,
    sniff: |head| is_text(head) && head.starts_with(b"fio version "),
    // Line 1 states the version. If line 1 is damaged, the next line that is not blank shows the version: it begins
    // with a time only in version 3.
    readers: Readers::Own(
        |head, options| {
            let unit_ns = unit_ns(options)?;
            Ok(Box::new(FioIolog {
                timed: has_times(head),
                unit_ns,
                now_ns: 0,
                start_ns: 0,
                further_logs: 0,
            }))
        },
        &["version", "action", "offset", "length"],
    ),
    writer: Some(Target {
        trim: true,
        flush: true,
        resolution_ns: US,
        header: b"fio version 3 iolog\n0 nandlab add\n0 nandlab open\n",
        write: |out, request, _| {
            push_number(out, request.arrival.ns() / US);
            out.extend_from_slice(match request.op {
                Op::Read => b" nandlab read ",
                Op::Write => b" nandlab write ",
                Op::Trim => b" nandlab trim ",
                Op::Flush => b" nandlab sync 0 0\n",
            });
            if request.op != Op::Flush {
                push_number(out, request.offset);
                out.push(b' ');
                push_number(out, request.len);
                out.push(b'\n');
            }
        },
        ..TEXT
    }),
};

/// Nanoseconds of the unit of time.
fn unit_ns(options: &ReaderOptions) -> Result<u64, TraceError> {
    match options.time_unit_ns {
        None => Ok(US),
        Some(unit) if (1.0..=1e12).contains(&unit) && libm::floor(unit) == unit => Ok(unit as u64),
        Some(unit) => Err(TraceError::new(
            ErrorKind::Setting,
            format!("workload.time_unit: expected a whole number of ns, found {unit} ns"),
            "use ns, us, ms or s",
        )),
    }
}

fn has_times(head: &[u8]) -> bool {
    let first_word = head_lines(head).skip(1).find_map(|line| Words(line).optional());
    first_word.is_none_or(|word| word.iter().all(u8::is_ascii_digit))
}

struct FioIolog {
    /// Whether lines begin with a time, as in version 3.
    timed: bool,
    unit_ns: u64,
    /// The last time so far. In version 2 this is the sum of the waits, and the time of the next request.
    now_ns: u64,
    /// The start of the current log of the file.
    start_ns: u64,
    /// Logs of the file after the first one.
    further_logs: u64,
}

impl FioIolog {
    /// Begins the first or another log of the file, whose header is `line`.
    #[cold]
    #[inline(never)]
    fn begin<'a>(&mut self, line: &'a [u8], number: u64) -> Result<Parsed<'a>, TraceError> {
        self.timed = match line {
            b"fio version 3 iolog" => true,
            b"fio version 2 iolog" => false,
            _ => return Err(bad("version", line, "fio version 2 iolog or fio version 3 iolog")),
        };
        self.start_ns = self.now_ns;
        self.further_logs += u64::from(number > 1);
        Ok(Parsed::Nothing)
    }
}

impl Reader for FioIolog {
    #[inline]
    fn parse<'a>(&'a mut self, line: &'a [u8], number: u64) -> Result<Parsed<'a>, TraceError> {
        if number == 1 || line.starts_with(b"fio ") {
            return self.begin(line, number);
        }
        let mut words = Words(line);
        let mut time_ns = self.now_ns;
        let whole = if self.timed { words.whole() } else { None };
        let in_log = whole.and_then(|n| n.checked_mul(self.unit_ns));
        let device = match in_log.and_then(|in_log| self.start_ns.checked_add(in_log)) {
            Some(at) => {
                time_ns = at;
                words.next("file")?
            }
            None => {
                words = Words(line);
                let Some(word) = words.optional() else { return Ok(Parsed::Nothing) };
                if self.timed {
                    let in_log = ticks("time", word, self.unit_ns)?;
                    let late = || {
                        bad("time", word, "a time that is within 64-bit nanoseconds after the logs before")
                    };
                    time_ns = self.start_ns.checked_add(in_log).ok_or_else(late)?;
                    words.next("file")?
                } else {
                    word
                }
            }
        };
        let action = words.next("action")?;
        let op = match action {
            b"read" => Op::Read,
            b"write" => Op::Write,
            b"trim" => Op::Trim,
            b"sync" | b"datasync" => Op::Flush,
            b"add" | b"open" | b"close" => return Ok(Parsed::Nothing),
            b"wait" if !self.timed => {
                let wait = words.next("offset")?;
                let wait_ns = ticks("offset", wait, self.unit_ns)?;
                let late = || bad("offset", wait, "waits whose sum is within 64-bit nanoseconds");
                self.now_ns = self.now_ns.checked_add(wait_ns).ok_or_else(late)?;
                return Ok(Parsed::Nothing);
            }
            other => return Err(bad("action", other, "an action of this version of the log")),
        };
        let (mut offset, mut len) = (0, 0);
        if op != Op::Flush {
            offset = match words.whole() {
                Some(offset) => offset,
                None => integer("offset", words.next("offset")?, "a byte address")?,
            };
            len = match words.whole() {
                Some(len) => len,
                None => integer("length", words.next("length")?, "a number of bytes")?,
            };
            words.end()?;
        }
        self.now_ns = time_ns;
        Ok(Parsed::Request(Raw::of(time_ns, device, op, offset, len)))
    }

    fn further_logs(&self) -> u64 {
        self.further_logs
    }
}

#[cfg(test)]
mod tests {
    use super::super::testing::{error, parse};
    use super::*;

    #[test]
    fn version_3_counts_microseconds() {
        let raw = parse("fio-iolog", b"1499 /dev/sda write 12419072 8192").unwrap().unwrap();
        assert_eq!((raw.op, raw.time_ns, raw.offset, raw.len), (Op::Write, 1_499_000, 12_419_072, 8192));
        assert_eq!(raw.device, "/dev/sda");
        assert_eq!(parse("fio-iolog", b"19 /dev/sda add").unwrap(), None);
        assert_eq!(parse("fio-iolog", b"19 /dev/sda datasync 0 0").unwrap().unwrap().op, Op::Flush);
        assert_eq!(parse("fio-iolog", b"19 /dev/sda trim 0 512").unwrap().unwrap().op, Op::Trim);
    }

    #[test]
    fn version_2_adds_up_its_waits() {
        let mut reader = INFO.reader(b"", &ReaderOptions::default()).unwrap();
        let mut times = Vec::new();
        let lines = [
            "fio version 2 iolog",
            "/dev/sda open",
            "/dev/sda write 12419072 8192",
            "/dev/sda wait 150 0",
            "/dev/sda read 0 512",
            "/dev/sda wait 200 0",
            "/dev/sda sync",
        ];
        for (line, number) in lines.iter().zip(1..) {
            if let Parsed::Request(raw) = reader.parse(line.as_bytes(), number).unwrap() {
                times.push(raw.time_ns);
            }
        }
        assert_eq!(times, [0, 150_000, 350_000]);
    }

    #[test]
    fn the_times_of_a_further_log_go_on() {
        let mut reader = INFO.reader(b"", &ReaderOptions::default()).unwrap();
        let mut times = Vec::new();
        let lines = [
            "fio version 3 iolog",
            "10 f write 0 512",
            "30 f write 0 512",
            "fio version 3 iolog",
            "0 f open",
            "5 f read 0 512",
            "fio version 2 iolog",
            "f wait 7 0",
            "f read 0 512",
        ];
        for (line, number) in lines.iter().zip(1..) {
            if let Parsed::Request(raw) = reader.parse(line.as_bytes(), number).unwrap() {
                times.push(raw.time_ns / US);
            }
        }
        assert_eq!(times, [10, 30, 35, 42]);
        assert_eq!(reader.further_logs(), 2);
        let e = reader.parse(b"fio version 4 iolog", 10).unwrap_err();
        assert_eq!(e.field(), Some("version"));
    }

    #[test]
    fn each_field_is_checked() {
        for (line, field) in [
            ("x /dev/sda write 1 2", "time"),
            ("1 /dev/sda", "action"),
            ("1 /dev/sda erase 1 2", "action"),
            ("1 /dev/sda wait 1 2", "action"),
            ("1 /dev/sda write 1", "length"),
            ("1", "file"),
        ] {
            assert_eq!(error("fio-iolog", line.as_bytes()).0, field, "{line}");
        }
    }
}
