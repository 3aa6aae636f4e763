//! The records of an open trace file.

use crate::detect;
use crate::error::{ErrorKind, Position, TraceError};
use crate::format::{FormatInfo, Reader, ReaderOptions, find};
use crate::input::{Content, Input};
use nandlab_base::workload::TraceSpec;

/// The records of an open file, of all devices.
pub(crate) struct Records {
    pub(crate) input: Input,
    pub(crate) reader: Box<dyn Reader>,
    pub(crate) info: &'static FormatInfo,
    record_bytes: Option<usize>,
}

impl Records {
    /// With `hash` the bytes of the file are hashed.
    pub(crate) fn open(spec: &TraceSpec, content: Option<&Content>, hash: bool) -> Result<Self, TraceError> {
        let input = Input::open(&spec.path, content, hash)?;
        let options = ReaderOptions { time_unit_ns: spec.time_unit_ns };
        let in_file = |e: TraceError| e.in_file(&spec.path);
        let info = match &spec.format {
            Some(name) => find(name).ok_or_else(|| in_file(detect::unknown(name)))?,
            None if input.head().is_empty() => return Err(in_file(empty(0))),
            None => detect::detect(input.head(), &options).map_err(in_file)?,
        };
        let reader = match (info.reader)(input.head(), &options) {
            Ok(reader) => reader,
            Err(_) if input.head().is_empty() => return Err(in_file(empty(0))),
            Err(e) => return Err(in_file(e)),
        };
        let record_bytes = reader.record_bytes();
        Ok(Self { input, reader, info, record_bytes })
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

/// The error of a file without a request; `skipped` malformed records have been skipped.
pub(crate) fn empty(skipped: u64) -> TraceError {
    let message = match skipped {
        0 => "expected requests, found none".to_owned(),
        n => format!("expected requests, found only malformed records ({n} skipped)"),
    };
    TraceError::new(ErrorKind::Empty, message, "check workload.trace and workload.format")
}
