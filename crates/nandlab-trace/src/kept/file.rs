//! The file of a kept trace, all numbers little-endian:
//!
//! | part | content |
//! |---|---|
//! | blocks | one for each [`Batch`]: its number of requests n and of skips k, and the bytes of what follows (`u32` each); the columns ([`column`]) arrival in ns, offset and length in bytes, and operation (bits 0 and 1) with FUA (bit 2) and placement (from bit 3 on); k entries of [`Batch::skips`], an index and the numbers of a [`Tally`] (`u64` each) |
//! | description | JSON: format and devices |
//! | trailer | number of requests, bytes of the blocks, bytes of the description, the numbers of the [`Tally`] of the whole trace (`u64` each); XXH3 (128 bits) of all bytes before; [`MAGIC`] |
//!
//! The reader checks the hash of the whole file before it returns a request. So a file that was cut short or damaged is
//! no kept trace.

use super::column::{self, Column};
use crate::batch::{BATCH, Batch, End};
use crate::error::{ErrorKind, TraceError};
use crate::format::name_of;
use crate::tally::{NUMBERS, Tally};
use nandlab_base::base::kept_folder::IncompleteFile;
use nandlab_base::base::request::{Op, Request, Tag};
use nandlab_base::base::units::Time;
use serde_json::{Value, json};
use std::fs::File;
use std::io::{self, Read, Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};
use twox_hash::XxHash3_128;

/// The last bytes of the file, with the version of its layout.
const MAGIC: [u8; 8] = *b"nlTrace3";
/// Numbers of the trailer.
const ENDS: usize = 3 + NUMBERS;
const TRAILER: usize = ENDS * 8 + 16 + MAGIC.len();
/// Bytes of a block before its columns.
const BLOCK_HEAD: usize = 3 * 4;
const COLUMNS: usize = 4;
/// Bytes of an entry of [`Batch::skips`].
const SKIP: usize = 8 * (1 + NUMBERS);
const FUA: u64 = 1 << 2;
/// The lowest bit of the placement.
const PLACEMENT: u32 = 3;
/// Requests that are put together from their columns at once.
const ROWS: usize = 256;
/// Bytes read at once to check a file.
const CHUNK: usize = 1 << 18;

/// Writes a kept trace to a file that gets its name when it is complete.
pub(super) struct Writer {
    to: IncompleteFile,
    hash: XxHash3_128,
    block: Vec<u8>,
    requests: u64,
    bytes: u64,
    bytes_max: u64,
}

impl Writer {
    /// A writer to the file `to`, which may have `bytes_max` bytes.
    pub(super) fn new(to: IncompleteFile, bytes_max: u64) -> Self {
        let hash = XxHash3_128::new();
        let block = Vec::with_capacity(BLOCK_HEAD + COLUMNS * column::bytes_max(BATCH));
        Self { to, hash, block, requests: 0, bytes: 0, bytes_max }
    }

    /// Appends the requests of a batch.
    pub(super) fn push(&mut self, batch: &Batch) -> io::Result<()> {
        if batch.requests.is_empty() {
            return Ok(());
        }
        let block = &mut self.block;
        block.clear();
        block.resize(BLOCK_HEAD, 0);
        let columns: [fn(&Request) -> u64; COLUMNS] = [
            |request| request.arrival.ns(),
            |request| request.offset,
            |request| request.len,
            |request| {
                let fua = if request.fua { FUA } else { 0 };
                request.op as u64 | fua | u64::from(request.tag.placement) << PLACEMENT
            },
        ];
        for of in columns {
            column::write(block, batch.requests.iter().map(of));
        }
        for (at, tally) in &batch.skips {
            block.extend([*at].into_iter().chain(tally.numbers()).flat_map(u64::to_le_bytes));
        }
        let head = [batch.requests.len(), batch.skips.len(), block.len() - BLOCK_HEAD];
        for (bytes, number) in block.chunks_exact_mut(4).zip(head) {
            bytes.copy_from_slice(&(number as u32).to_le_bytes());
        }
        self.requests += batch.requests.len() as u64;
        self.write()
    }

    /// Writes `block`.
    fn write(&mut self) -> io::Result<()> {
        self.bytes += self.block.len() as u64;
        if self.bytes > self.bytes_max {
            return Err(io::Error::from(io::ErrorKind::QuotaExceeded));
        }
        self.hash.write(&self.block);
        self.to.file.write_all(&self.block)
    }

    /// Completes the file and renames it to `name`.
    pub(super) fn finish(
        mut self,
        name: &Path,
        format: &str,
        devices: &[String],
        tally: &Tally,
    ) -> io::Result<()> {
        let blocks = self.bytes;
        let description = json!({ "format": format, "devices": devices }).to_string();
        self.block.clear();
        self.block.extend_from_slice(description.as_bytes());
        let ends = [self.requests, blocks, description.len() as u64];
        for number in ends.into_iter().chain(tally.numbers()) {
            self.block.extend_from_slice(&number.to_le_bytes());
        }
        self.write()?;
        let hash = self.hash.finish_128();
        self.to.file.write_all(&[&hash.to_le_bytes()[..], &MAGIC].concat())?;
        self.to.publish(name)
    }
}

/// Reads a kept trace, one block at a time.
pub(crate) struct KeptReader {
    file: File,
    /// The file of the trace, for messages.
    trace: PathBuf,
    block: Vec<u8>,
    blocks_left: u64,
    requests: u64,
    read: u64,
    tally: Tally,
}

/// What a kept trace states about itself.
pub(crate) struct Description {
    pub(crate) format: &'static str,
    pub(crate) devices: Vec<String>,
}

impl KeptReader {
    /// Opens and checks the file `kept` of the trace `trace`. `None`: there is no such file, or it is damaged.
    pub(super) fn open(kept: &Path, trace: &Path) -> Option<(Self, Description)> {
        let mut file = File::open(kept).ok()?;
        let length = file.metadata().ok()?.len();
        let hashed = length.checked_sub(16 + MAGIC.len() as u64)?;
        let mut block = vec![0; CHUNK];
        let mut hash = XxHash3_128::new();
        let mut left = hashed;
        while left > 0 {
            let n = left.min(CHUNK as u64) as usize;
            file.read_exact(&mut block[..n]).ok()?;
            hash.write(&block[..n]);
            left -= n as u64;
        }
        let mut end = [0; TRAILER];
        file.seek(SeekFrom::Start(length.checked_sub(TRAILER as u64)?)).ok()?;
        file.read_exact(&mut end).ok()?;
        let (numbers, check) = end.split_at(ENDS * 8);
        if check != [&hash.finish_128().to_le_bytes()[..], &MAGIC].concat() {
            return None;
        }
        let [requests, blocks, described, tally @ ..]: [u64; ENDS] =
            std::array::from_fn(|i| u64::from_le_bytes(numbers.as_chunks::<8>().0[i]));
        let tally = Tally::from_numbers(tally);
        if blocks.checked_add(described)?.checked_add(TRAILER as u64)? != length {
            return None;
        }
        file.seek(SeekFrom::Start(blocks)).ok()?;
        let mut text = vec![0; usize::try_from(described).ok()?];
        file.read_exact(&mut text).ok()?;
        let description = describe(&serde_json::from_slice(&text).ok()?)?;
        file.rewind().ok()?;
        let reader =
            Self { file, trace: trace.to_path_buf(), block, blocks_left: blocks, requests, read: 0, tally };
        Some((reader, description))
    }

    /// Replaces the content of `batch` by the next block.
    pub(crate) fn next(&mut self, batch: &mut Batch) -> Result<(), TraceError> {
        batch.clear();
        if self.blocks_left > 0 {
            self.read_block(batch).map_err(|e| {
                TraceError::new(
                    ErrorKind::Io,
                    format!("the kept copy of its requests cannot be read: {e}"),
                    "repeat the run, with the environment variable NANDLAB_CACHE=off if the error comes again",
                )
                .in_file(&self.trace)
            })?;
        }
        self.read += batch.requests.len() as u64;
        batch.progress = if self.requests == 0 { 1.0 } else { self.read as f64 / self.requests as f64 };
        if self.blocks_left == 0 {
            batch.end = Some(End { tally: self.tally, error: None });
        }
        Ok(())
    }

    fn read_block(&mut self, batch: &mut Batch) -> io::Result<()> {
        let damaged = || io::Error::from(io::ErrorKind::InvalidData);
        let mut head = [0; BLOCK_HEAD];
        self.file.read_exact(&mut head)?;
        let [n, k, bytes] = std::array::from_fn(|i| u32::from_le_bytes(head.as_chunks::<4>().0[i]) as usize);
        if n == 0 || n > BATCH || k > n || bytes > COLUMNS * column::bytes_max(n) + k * SKIP {
            return Err(damaged());
        }
        self.blocks_left = self.blocks_left.checked_sub((BLOCK_HEAD + bytes) as u64).ok_or_else(damaged)?;
        // A block may be longer than the buffer; the capacity of the buffer is kept for the next block.
        self.block.resize(bytes.max(self.block.len()), 0);
        let block = &mut self.block[..bytes];
        self.file.read_exact(block)?;
        let (arrivals, rest) = Column::split(block, n).ok_or_else(damaged)?;
        let (offsets, rest) = Column::split(rest, n).ok_or_else(damaged)?;
        let (lengths, rest) = Column::split(rest, n).ok_or_else(damaged)?;
        let (flags, skips) = Column::split(rest, n).ok_or_else(damaged)?;
        if skips.len() != k * SKIP {
            return Err(damaged());
        }
        let columns = [arrivals, offsets, lengths, flags];
        let mut rows = [[0; ROWS]; COLUMNS];
        for from in (0..n).step_by(ROWS) {
            let count = ROWS.min(n - from);
            for (column, numbers) in columns.iter().zip(&mut rows) {
                column.read(from, &mut numbers[..count]);
            }
            let [arrivals, offsets, lengths, flags] = &rows;
            let requests = arrivals[..count].iter().zip(offsets).zip(lengths).zip(flags);
            batch.requests.extend(requests.map(|(((&arrival, &offset), &len), &flags)| {
                Request::new(Op::ALL[(flags & 3) as usize], offset, len)
                    .at(Time::from_ns(arrival))
                    .with_fua(flags & FUA != 0)
                    .with_tag(Tag { queue: 0, placement: (flags >> PLACEMENT) as u16 })
            }));
        }
        let skips = skips.as_chunks::<8>().0.as_chunks::<{ 1 + NUMBERS }>().0;
        batch.skips.extend(skips.iter().map(|numbers| {
            let [at, tally @ ..] = numbers.map(u64::from_le_bytes);
            (at, Tally::from_numbers(tally))
        }));
        Ok(())
    }
}

fn describe(description: &Value) -> Option<Description> {
    let format = name_of(description["format"].as_str()?)?;
    let devices = description["devices"].as_array()?;
    let devices = devices.iter().map(|name| Some(name.as_str()?.to_owned())).collect::<Option<_>>()?;
    Some(Description { format, devices })
}
