//! Lines that programs have acknowledged, from a named pipe.

use std::fs::{File, OpenOptions};
use std::io::{self, Read};
use std::os::fd::{AsFd, BorrowedFd};
use std::os::unix::fs::{FileTypeExt, OpenOptionsExt};
use std::path::Path;

/// Bytes that are read at a time.
const READ: usize = 64 << 10;
/// The most bytes of a line; a longer one is cut.
const LINE_MAX: usize = 64 << 10;

/// The reading end of the pipe.
#[derive(Debug)]
pub(super) struct Acks {
    pipe: File,
    /// The beginning of a line whose end has not come.
    rest: Vec<u8>,
    buffer: Vec<u8>,
}

impl Acks {
    /// Opens the pipe `path`.
    pub(super) fn open(path: &Path) -> io::Result<Self> {
        // A pipe that this process may write too has no end, whatever writers come and go.
        let nonblock = rustix::fs::OFlags::NONBLOCK.bits().cast_signed();
        let pipe = OpenOptions::new().read(true).write(true).custom_flags(nonblock).open(path)?;
        if !pipe.metadata()?.file_type().is_fifo() {
            return Err(io::Error::new(
                io::ErrorKind::InvalidInput,
                format!("{} is no named pipe", path.display()),
            ));
        }
        Ok(Self { pipe, rest: Vec::new(), buffer: vec![0; READ] })
    }

    /// Passes on each line that has come whole, without its end.
    pub(super) fn read(&mut self, mut each: impl FnMut(&[u8])) {
        let Ok(len) = self.pipe.read(&mut self.buffer) else { return };
        for part in self.buffer[..len].split_inclusive(|&byte| byte == b'\n') {
            let Some(end) = part.strip_suffix(b"\n") else {
                self.rest.extend_from_slice(&part[..part.len().min(LINE_MAX - self.rest.len())]);
                continue;
            };
            if self.rest.is_empty() {
                each(end);
            } else {
                self.rest.extend_from_slice(&end[..end.len().min(LINE_MAX - self.rest.len())]);
                each(&self.rest);
                self.rest.clear();
            }
        }
    }
}

impl AsFd for Acks {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.pipe.as_fd()
    }
}
