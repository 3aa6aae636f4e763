//! The records of an open trace file.

use crate::detect;
use crate::error::{ErrorKind, Position, TraceError};
use crate::format::{COLUMNS, FormatInfo, Order, Reader, ReaderOptions, described, find};
use crate::input::{Content, Input};
use nandlab_base::workload::{TraceFormat, TraceSpec};
use std::path::Path;

/// The records of an open file, of all devices.
pub(crate) struct Records {
    pub(crate) input: Input,
    pub(crate) reader: Box<dyn Reader>,
    /// The name of the format.
    pub(crate) format: &'static str,
    pub(crate) order: Order,
    pub(crate) options: ReaderOptions,
    record_bytes: Option<usize>,
}

impl Records {
    /// With `hash` the bytes of the file are hashed.
    pub(crate) fn open(spec: &TraceSpec, content: Option<&Content>, hash: bool) -> Result<Self, TraceError> {
        let input = Input::open(&spec.path, content, hash)?;
        let options = ReaderOptions { time_unit_ns: spec.time_unit_ns };
        let in_file = |e: TraceError| e.in_file(&spec.path);
        if is_raw_blktrace(input.head()) {
            return Err(in_file(raw_blktrace(&spec.path)));
        }
        let named =
            |info: &'static FormatInfo| Ok((info.name(), info.order, info.reader(input.head(), &options)?));
        let found = match &spec.format {
            Some(TraceFormat::Columns(text)) => {
                described(text, input.head(), &options).map(|reader| (COLUMNS, Order::Ascending, reader))
            }
            Some(TraceFormat::Named(name)) => find(name).ok_or_else(|| detect::unknown(name)).and_then(named),
            None if input.head().is_empty() => Err(empty(0)),
            None => detect::detect(input.head(), &options).and_then(named),
        };
        let (format, order, reader) = match found {
            Ok(found) => found,
            Err(e) if input.head().is_empty() && e.kind() == ErrorKind::Malformed => {
                return Err(in_file(empty(0)));
            }
            Err(e) => return Err(in_file(e)),
        };
        let record_bytes = reader.record_bytes();
        Ok(Self { input, reader, format, order, options, record_bytes })
    }

    /// Bytes per record of a binary format; `None` for a text format.
    pub(crate) fn record_bytes(&self) -> Option<usize> {
        self.record_bytes
    }

    #[inline]
    pub(crate) fn advance(&mut self) -> Result<bool, TraceError> {
        match self.record_bytes {
            None => self.input.next_line(),
            Some(size) => self.input.next_record(size),
        }
    }

    pub(crate) fn position(&self, number: u64) -> Position {
        match self.record_bytes {
            None => Position::Line(number),
            Some(size) => Position::Record { number, offset: number.saturating_sub(1) * size as u64 },
        }
    }
}

/// Whether the file is the binary output of blktrace: its events begin with this number, in either byte order.
fn is_raw_blktrace(head: &[u8]) -> bool {
    head.starts_with(b"\x07tae") || head.starts_with(b"eat\x07")
}

fn raw_blktrace(path: &Path) -> TraceError {
    let file = path.file_name().map_or_else(String::new, |name| name.to_string_lossy().into_owned());
    let device = file.split(".blktrace").next().unwrap_or_default();
    TraceError::new(
        ErrorKind::Format,
        "is the binary output of blktrace, one of several files",
        format!("convert them to text with blkparse -i {device} -o {device}.txt, and name that file"),
    )
}

/// The error of a file without a request; `skipped` malformed records have been skipped.
pub(crate) fn empty(skipped: u64) -> TraceError {
    let message = match skipped {
        0 => "expected requests, found none".to_owned(),
        n => format!("expected requests, found only malformed records ({n} skipped)"),
    };
    TraceError::new(ErrorKind::Empty, message, "check workload.trace and workload.format")
}
