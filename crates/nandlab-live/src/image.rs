//! An image of a drive in a file, some units of which cannot be read: reads of these fail as they do on the drive.

use std::collections::{BTreeSet, VecDeque};
use std::fs::{File, OpenOptions};
use std::io;
use std::os::unix::fs::FileExt;
use std::path::Path;

use nandlab_base::base::units::Time;

use crate::backend::{Backend, Completion, Errno, Failure, Features, Op, Pace, Request};

/// The text of a read that fails.
const UNREADABLE: &str = "the data was lost with the power";
/// The text of a request that the file of the image does not allow.
const FILE: &str = "the file of the image cannot be read or written";
/// Bytes of a write of zeros to the file.
const ZEROS: usize = 64 << 10;

/// An image behind the server. Every request is completed at once; writes go to the file. A unit that cannot be read can be
/// read again when it is written as a whole, and stays unreadable when only a part of it is written, as on the drive.
#[derive(Debug)]
pub struct Image {
    file: File,
    size: u64,
    unit_bytes: u64,
    unreadable: BTreeSet<u64>,
    completions: VecDeque<Completion>,
    /// The data of the completed reads, in the order of their completions.
    reads: VecDeque<Vec<u8>>,
}

impl Image {
    /// The image in a file, of whose units of `unit_bytes` bytes those with the numbers `unreadable` cannot be read.
    ///
    /// # Errors
    /// When the file cannot be opened.
    ///
    /// # Panics
    /// When a unit has no bytes.
    pub fn open(path: &Path, unit_bytes: u64, unreadable: BTreeSet<u64>) -> io::Result<Self> {
        assert!(unit_bytes > 0, "a unit has at least 1 byte");
        let file = OpenOptions::new().read(true).write(true).open(path)?;
        let size = file.metadata()?.len();
        Ok(Self { file, size, unit_bytes, unreadable, completions: VecDeque::new(), reads: VecDeque::new() })
    }

    /// The first byte of a range that cannot be read, if there is one.
    fn unreadable_in(&self, offset: u64, len: u64) -> Option<u64> {
        let units = offset / self.unit_bytes..(offset + len).div_ceil(self.unit_bytes);
        self.unreadable.range(units).next().map(|unit| (unit * self.unit_bytes).max(offset))
    }

    /// Writes bytes to the file. Units of which all bytes are written can be read from then on.
    fn write(&mut self, offset: u64, payload: &[u8]) -> io::Result<()> {
        self.file.write_all_at(payload, offset)?;
        let end = offset + payload.len() as u64;
        // The last unit of an image may be shorter.
        let whole_end = if end == self.size { end.div_ceil(self.unit_bytes) } else { end / self.unit_bytes };
        let whole = offset.div_ceil(self.unit_bytes)..whole_end;
        self.unreadable.retain(|unit| !whole.contains(unit));
        Ok(())
    }

    fn serve(&mut self, request: &Request, payload: &[u8]) -> Result<(), Failure> {
        let file = |_| Failure::new(Errno::Io, FILE);
        match request.op {
            Op::Read => {
                if let Some(at) = self.unreadable_in(request.offset, request.len.into()) {
                    return Err(Failure { at: Some(at), ..Failure::new(Errno::Io, UNREADABLE) });
                }
                let mut data = vec![0; request.len as usize];
                self.file.read_exact_at(&mut data, request.offset).map_err(file)?;
                self.reads.push_back(data);
            }
            Op::Write => self.write(request.offset, payload).map_err(file)?,
            Op::WriteZeroes { .. } => {
                // A multiple of the unit, so that each whole unit is written in one piece.
                let piece = ZEROS.next_multiple_of(self.unit_bytes as usize);
                let (mut at, end) = (request.offset, request.offset + u64::from(request.len));
                while at < end {
                    let until = ((at + 1).next_multiple_of(piece as u64)).min(end);
                    self.write(at, &vec![0; (until - at) as usize]).map_err(file)?;
                    at = until;
                }
            }
            // The image lasts no longer than its server.
            Op::Trim | Op::Flush => {}
        }
        Ok(())
    }
}

impl Backend for Image {
    fn features(&self) -> Features {
        Features { size: self.size, preferred: 4096, trim: false, fast_zero: false }
    }

    fn pace(&self) -> Pace {
        Pace::None
    }

    fn submit(&mut self, id: u64, _now: Time, request: &Request, payload: &[u8]) -> Result<(), Failure> {
        self.serve(request, payload)?;
        self.completions.push_back(Completion { id, result: Ok(()), due: None });
        Ok(())
    }

    fn completed(&mut self) -> Option<Completion> {
        self.completions.pop_front()
    }

    fn take(&mut self, _id: u64, out: &mut Vec<u8>) {
        out.extend(self.reads.pop_front().unwrap_or_default());
    }
}
