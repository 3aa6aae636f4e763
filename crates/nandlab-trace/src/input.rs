//! Opens a file, plain, compressed or in an archive (`unpack`), and returns its lines or fixed-size records.
//!
//! A reader thread reads and decompresses the file in chunks. The reader thread sends filled chunks to the parser's
//! thread and gets used chunks back, four in all. So reading and parsing overlap, and memory is bounded for files of
//! any size. A line is a slice of its chunk; only a line or record that crosses the end of a chunk is copied.

use crate::error::{ErrorKind, Position, TraceError};
use crate::stamp::{ReadBytes, Stamp};
use crate::unpack::{Open, Refusal, unpack};
use nandlab_base::base::kept_folder::now;
use nandlab_base::recording::RecordingError;
use std::fs::File;
use std::io::{self, Read};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::sync::{Arc, Mutex};
use std::thread::JoinHandle;
use std::time::SystemTime;
use twox_hash::XxHash3_128;

/// Bytes of one chunk of decompressed content.
pub(crate) const CHUNK_BYTES: usize = 1 << 18;
/// Number of chunks that the two threads exchange.
const CHUNKS: usize = 4;
/// Bytes of the longest line: content with a longer line is no text trace.
const LINE_BYTES_MAX: usize = 1 << 20;

type Filled = Result<Vec<u8>, TraceError>;

/// The decompressed content of a file.
pub(crate) struct Input {
    path: PathBuf,
    filled: Receiver<Filled>,
    spent: SyncSender<Vec<u8>>,
    chunk: Vec<u8>,
    /// Index in `chunk` of the first byte of the next line or record.
    at: usize,
    /// The bytes so far of a line or record that crosses the end of a chunk.
    carry: Vec<u8>,
    in_carry: bool,
    current: std::ops::Range<usize>,
    number: u64,
    bytes_before: u64,
    ended: bool,
    bytes_read: Arc<AtomicU64>,
    bytes_total: u64,
    hashed: Option<Hashed>,
    /// Must be the last field: the fields are dropped in their order. So the channels, which are fields above, are
    /// closed before this field waits for the thread to end.
    _thread: Joined,
}

/// Waits for the reader thread when dropped, so that the thread does not outlive its input.
struct Joined(Option<JoinHandle<()>>);

impl Drop for Joined {
    fn drop(&mut self) {
        if let Some(thread) = self.0.take() {
            let _ = thread.join();
        }
    }
}

/// The bytes of a file that is in memory.
pub(crate) type Content = Arc<[u8]>;

/// Counts, and if need be hashes, the bytes read from the file, before decompression.
struct CountedRead {
    file: Box<dyn Read + Send>,
    count: Arc<AtomicU64>,
    hash: Option<SharedHash>,
}

type SharedHash = Arc<Mutex<XxHash3_128>>;

/// The hash of a file that is being read.
struct Hashed {
    hash: SharedHash,
    /// The file that is read.
    file: File,
    before: Stamp,
    opened: SystemTime,
}

impl Hashed {
    fn new(file: &File) -> io::Result<Self> {
        let opened = now();
        Ok(Self { hash: SharedHash::default(), file: file.try_clone()?, before: Stamp::of(file)?, opened })
    }
}

impl Read for CountedRead {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let n = self.file.read(buffer)?;
        self.count.fetch_add(n as u64, Ordering::Relaxed);
        if let Some(Ok(mut hash)) = self.hash.as_ref().map(|hash| hash.lock()) {
            hash.write(&buffer[..n]);
        }
        Ok(n)
    }
}

impl Input {
    /// Opens `path`, or reads `content` instead of the file, and waits for the first chunk. With `hash` the bytes of the
    /// file are hashed on the way ([`Self::read_bytes`]).
    pub(crate) fn open(path: &Path, content: Option<&Content>, hash: bool) -> Result<Self, TraceError> {
        let failed = |e: &io::Error| {
            TraceError::new(
                ErrorKind::Io,
                format!("cannot be opened: {e}"),
                "check the path of workload.trace",
            )
            .in_file(path)
        };
        let mut hashed = None;
        let again: Option<Box<Open>> = match content {
            Some(bytes) => {
                let bytes = Arc::clone(bytes);
                Some(Box::new(move || Ok(Box::new(io::Cursor::new(Arc::clone(&bytes))))))
            }
            None if std::fs::metadata(path).is_ok_and(|meta| meta.is_file()) => {
                let path = path.to_path_buf();
                Some(Box::new(move || Ok(Box::new(File::open(&path)?))))
            }
            None => None,
        };
        let (file, bytes_total): (Box<dyn Read + Send>, u64) = match content {
            Some(bytes) => (Box::new(io::Cursor::new(Arc::clone(bytes))), bytes.len() as u64),
            None => {
                let file = File::open(path).map_err(|e| failed(&e))?;
                let meta = file.metadata().map_err(|e| failed(&e))?;
                if meta.is_dir() {
                    return Err(
                        TraceError::new(ErrorKind::Io, "is a folder", "name one trace file").in_file(path)
                    );
                }
                if hash {
                    hashed = Hashed::new(&file).ok();
                }
                (Box::new(file), meta.len())
            }
        };
        let bytes_read = Arc::new(AtomicU64::new(0));
        let (to_parser, filled) = sync_channel(CHUNKS);
        let (spent, to_reader) = sync_channel(CHUNKS);
        for _ in 0..CHUNKS {
            spent.send(Vec::with_capacity(CHUNK_BYTES)).expect("the receiver is in this function");
        }
        let counted = CountedRead {
            file,
            count: Arc::clone(&bytes_read),
            hash: hashed.as_ref().map(|hashed| Arc::clone(&hashed.hash)),
        };
        let name = path.to_path_buf();
        let thread = std::thread::Builder::new()
            .name("nandlab-trace-input".into())
            .spawn(move || pump(counted, again, &name, &to_parser, &to_reader))
            .map_err(|e| failed(&e))?;
        let mut input = Self {
            path: path.to_path_buf(),
            filled,
            spent,
            chunk: Vec::new(),
            at: 0,
            carry: Vec::new(),
            in_carry: false,
            current: 0..0,
            number: 0,
            bytes_before: 0,
            ended: false,
            bytes_read,
            bytes_total,
            hashed,
            _thread: Joined(Some(thread)),
        };
        input.refill()?;
        // Skips a byte order mark.
        if input.chunk.starts_with(b"\xef\xbb\xbf") {
            input.at = 3;
        }
        Ok(input)
    }

    /// The first chunk, for the detection of the format. Valid until the first line or record is read.
    pub(crate) fn head(&self) -> &[u8] {
        &self.chunk[self.at..]
    }

    /// The hash and state of the file, which is read to its end first. `None` if the file is not hashed or its rest
    /// cannot be read.
    pub(crate) fn read_bytes(&mut self) -> Option<ReadBytes> {
        self.hashed.as_ref()?;
        while self.refill().ok()? {}
        let Hashed { hash, file, before, opened } = self.hashed.as_ref()?;
        Some(ReadBytes {
            hash: hash.lock().ok()?.finish_128(),
            bytes: self.bytes_read.load(Ordering::Relaxed),
            before: *before,
            after: Stamp::of(file).ok()?,
            opened: *opened,
        })
    }

    /// Share of the bytes of the file that have been read, 0 to 1.
    pub(crate) fn progress(&self) -> f64 {
        if self.bytes_total == 0 {
            // The size of a pipe is unknown: 0 until the end.
            return if self.ended { 1.0 } else { 0.0 };
        }
        (self.bytes_read.load(Ordering::Relaxed) as f64 / self.bytes_total as f64).min(1.0)
    }

    /// Number of the current line or record, from 1.
    pub(crate) fn number(&self) -> u64 {
        self.number
    }

    /// The current line (without its line end) or the current record.
    #[inline]
    pub(crate) fn current(&self) -> &[u8] {
        if self.in_carry { &self.carry } else { &self.chunk[self.current.clone()] }
    }

    /// Moves to the next line; `false` at the end of the content.
    #[inline]
    pub(crate) fn next_line(&mut self) -> Result<bool, TraceError> {
        if let Some(n) = memchr::memchr(b'\n', &self.chunk[self.at..]) {
            self.current = self.at..self.at + n;
            self.at += n + 1;
            self.in_carry = false;
            if n > 0 && self.chunk[self.current.end - 1] == b'\r' {
                self.current.end -= 1;
            }
            self.number += 1;
            return Ok(true);
        }
        self.next_line_across()
    }

    #[cold]
    fn next_line_across(&mut self) -> Result<bool, TraceError> {
        self.carry.clear();
        loop {
            let rest = &self.chunk[self.at..];
            let (take, found) = memchr::memchr(b'\n', rest).map_or((rest.len(), false), |n| (n, true));
            self.carry.extend_from_slice(&rest[..take]);
            self.at += take + usize::from(found);
            if self.carry.len() > LINE_BYTES_MAX {
                return Err(TraceError::new(
                    ErrorKind::Malformed,
                    "expected a line of a text trace, found a line longer than 1 MiB",
                    "if the trace is in a binary format, name the format with workload.format",
                )
                .at(Position::Line(self.number + 1))
                .in_file(&self.path));
            }
            if found || !self.refill()? {
                if !found && self.carry.is_empty() {
                    return Ok(false);
                }
                if self.carry.last() == Some(&b'\r') {
                    self.carry.pop();
                }
                self.in_carry = true;
                self.number += 1;
                return Ok(true);
            }
        }
    }

    /// Moves to the next record of `size` bytes; `false` at the end of the content.
    pub(crate) fn next_record(&mut self, size: usize) -> Result<bool, TraceError> {
        if self.chunk.len() - self.at >= size {
            self.current = self.at..self.at + size;
            self.at += size;
            self.in_carry = false;
            self.number += 1;
            return Ok(true);
        }
        self.carry.clear();
        loop {
            let take = (size - self.carry.len()).min(self.chunk.len() - self.at);
            self.carry.extend_from_slice(&self.chunk[self.at..self.at + take]);
            self.at += take;
            if self.carry.len() == size {
                self.in_carry = true;
                self.number += 1;
                return Ok(true);
            }
            if !self.refill()? {
                if self.carry.is_empty() {
                    return Ok(false);
                }
                let offset = self.number * size as u64;
                return Err(TraceError::new(
                    ErrorKind::Malformed,
                    format!("the file ends after {} of the record's {size} bytes", self.carry.len()),
                    "fetch the file again: it was cut short",
                )
                .at(Position::Record { number: self.number + 1, offset })
                .in_file(&self.path));
            }
        }
    }

    /// Replaces the used-up chunk by the next chunk; `false` at the end of the content.
    fn refill(&mut self) -> Result<bool, TraceError> {
        if self.ended {
            return Ok(false);
        }
        self.bytes_before += self.chunk.len() as u64;
        self.at = 0;
        match self.filled.recv() {
            Ok(Ok(chunk)) => {
                let old = std::mem::replace(&mut self.chunk, chunk);
                if old.capacity() > 0 {
                    // If the reader thread has ended, it needs no chunk.
                    let _ = self.spent.try_send(old);
                }
                Ok(true)
            }
            Ok(Err(error)) => {
                self.chunk.clear();
                self.ended = true;
                Err(error)
            }
            Err(_) => {
                self.chunk.clear();
                self.ended = true;
                Ok(false)
            }
        }
    }
}

/// The reader thread: fills chunks until the end of the file, the first error, or the drop of the input.
fn pump(
    counted: CountedRead,
    again: Option<Box<Open>>,
    path: &Path,
    out: &SyncSender<Filled>,
    spent: &Receiver<Vec<u8>>,
) {
    let (name, mut reader) = match unpack(Box::new(counted), again.as_deref()) {
        Ok(unpacked) => unpacked,
        Err(refusal) => {
            let error = match refusal {
                Refusal::Stream(name, e) => stream_error(path, name, &e),
                Refusal::Content { message, remedy } => {
                    TraceError::new(ErrorKind::Io, message, remedy).in_file(path)
                }
            };
            let _ = out.send(Err(error));
            return;
        }
    };
    while let Ok(mut chunk) = spent.recv() {
        chunk.resize(CHUNK_BYTES, 0);
        let mut n = 0;
        let mut failed = None;
        while n < CHUNK_BYTES {
            match reader.read(&mut chunk[n..]) {
                Ok(0) => break,
                Ok(more) => n += more,
                Err(e) if e.kind() == io::ErrorKind::Interrupted => {}
                Err(e) => {
                    failed = Some(e);
                    break;
                }
            }
        }
        chunk.truncate(n);
        if n > 0 && out.send(Ok(chunk)).is_err() {
            return;
        }
        if let Some(e) = failed {
            let _ = out.send(Err(stream_error(path, name, &e)));
            return;
        }
        if n < CHUNK_BYTES {
            return;
        }
    }
}

fn stream_error(path: &Path, what: &str, e: &io::Error) -> TraceError {
    if let Some(error) = e.get_ref().and_then(|inner| inner.downcast_ref::<RecordingError>()) {
        return TraceError::new(ErrorKind::Io, error.to_string(), error.remedy()).in_file(path);
    }
    let message = if e.kind() == io::ErrorKind::UnexpectedEof {
        format!("the {what} is cut short ({e})")
    } else {
        format!("the {what} cannot be read ({e})")
    };
    TraceError::new(ErrorKind::Io, message, "fetch the file again, and compare its size with the original's")
        .in_file(path)
}
