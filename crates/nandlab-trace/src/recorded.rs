//! The requests of a recorded session of a live drive, as records of fixed size.
//!
//! A record has 32 bytes, all numbers little-endian: the time of arrival in nanoseconds as a u64, offset and length in
//! bytes as a u64 each, the operation and whether it has FUA as a byte each, the placement as a u16, and [`MARK`]. Power failures, marks and the data
//! are not part of a trace.

use nandlab_base::recording::{Event, MAGIC, Recording, RecordingError};
use std::io::{self, Read};

/// Bytes of a record.
pub(crate) const RECORD: usize = 32;
/// The end of each record.
pub(crate) const MARK: [u8; 4] = *b"NDRQ";

/// Whether a file that begins with these bytes is a recording.
pub(crate) fn is_recording(head: &[u8]) -> bool {
    head.starts_with(&MAGIC[..7])
}

/// The requests of a recording as a stream.
pub(crate) struct Requests<R> {
    recording: Recording<R>,
    record: [u8; RECORD],
    /// Bytes of `record` that were read.
    at: usize,
}

impl<R: Read> Requests<R> {
    /// The requests of the recording `from`.
    pub(crate) fn of(from: R) -> Result<Self, RecordingError> {
        Ok(Self { recording: Recording::open(from)?, record: [0; RECORD], at: RECORD })
    }

    /// Moves to the next request; `false` at the end.
    fn next(&mut self) -> Result<bool, RecordingError> {
        while let Some(entry) = self.recording.next()? {
            let Event::Request(request) = entry.event else { continue };
            self.record[..8].copy_from_slice(&request.arrival.ns().to_le_bytes());
            self.record[8..16].copy_from_slice(&request.offset.to_le_bytes());
            self.record[16..24].copy_from_slice(&request.len.to_le_bytes());
            self.record[24] = request.op as u8;
            self.record[25] = request.fua.into();
            self.record[26..28].copy_from_slice(&request.tag.placement.to_le_bytes());
            self.record[28..].copy_from_slice(&MARK);
            self.at = 0;
            return Ok(true);
        }
        Ok(false)
    }
}

impl<R: Read> Read for Requests<R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        if self.at == RECORD && !self.next().map_err(io::Error::other)? {
            return Ok(0);
        }
        let n = buffer.len().min(RECORD - self.at);
        buffer[..n].copy_from_slice(&self.record[self.at..self.at + n]);
        self.at += n;
        Ok(n)
    }
}
