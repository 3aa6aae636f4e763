//! A drive that is nothing but memory: the server without a simulation.
//!
//! Pages of 4 KiB are allocated when something other than zeros is written to them. Every request is completed at once.

use std::collections::VecDeque;

use nandlab_base::base::units::Time;

use crate::arena::Arena;
use crate::backend::{Backend, Completion, Errno, Extent, Failure, Features, Op, Pace, Request};
use crate::table::Table;

/// Bytes of a page.
const PAGE: u64 = 4096;
/// The table's entry of a page that reads as zeros and must not count as a hole.
const ZERO: u32 = u32::MAX;
/// What pages without memory read as.
static ZEROS: [u8; PAGE as usize] = [0; PAGE as usize];

/// A drive in memory. Pages of zeros take no memory, except 4 bytes where a client asked for them without a hole.
#[derive(Debug)]
pub struct Memory {
    size: u64,
    /// Slot + 1 of each page; 0 is a hole.
    pages: Table,
    arena: Arena,
    completions: VecDeque<Completion>,
    /// The ranges of the completed reads, in the order of their completions.
    reads: VecDeque<(u64, u32)>,
}

impl Memory {
    /// A drive of `size` bytes, all zeros. Takes 2 bytes of memory for each MiB.
    pub fn new(size: u64) -> Self {
        Self {
            size,
            pages: Table::new(size.div_ceil(PAGE)),
            arena: Arena::new(PAGE as usize),
            completions: VecDeque::new(),
            reads: VecDeque::new(),
        }
    }

    /// Bytes of memory that are allocated for pages.
    pub fn allocated_bytes(&self) -> u64 {
        self.arena.allocated_bytes()
    }

    /// Writes `data` at `offset`, a range within the drive.
    ///
    /// # Errors
    /// When 2^32 pages have memory.
    pub fn write(&mut self, offset: u64, data: &[u8]) -> Result<(), Failure> {
        let mut rest = data;
        let mut at = offset;
        while !rest.is_empty() {
            let within = (at % PAGE) as usize;
            let (part, after) = rest.split_at(rest.len().min(PAGE as usize - within));
            self.write_in_page(at / PAGE, within, part)?;
            at += part.len() as u64;
            rest = after;
        }
        Ok(())
    }

    /// Writes `part` from byte `within` of a page on.
    fn write_in_page(&mut self, page: u64, within: usize, part: &[u8]) -> Result<(), Failure> {
        match self.pages.get(page) {
            0 | ZERO => {
                if is_zero(part) {
                    return Ok(());
                }
                let slot = self.arena.take().ok_or(Failure::new(Errno::NoSpace, "no page is left"))?;
                let bytes = self.arena.bytes_mut(slot);
                bytes[..within].fill(0);
                bytes[within..within + part.len()].copy_from_slice(part);
                bytes[within + part.len()..].fill(0);
                self.pages.set(page, slot + 1);
            }
            entry => self.arena.bytes_mut(entry - 1)[within..within + part.len()].copy_from_slice(part),
        }
        Ok(())
    }

    /// Appends `len` bytes at `offset`, a range within the drive, to `out`.
    pub fn read(&self, offset: u64, len: u32, out: &mut Vec<u8>) {
        let (mut at, end) = (offset, offset + u64::from(len));
        while at < end {
            let within = (at % PAGE) as usize;
            let part = ((end - at) as usize).min(PAGE as usize - within);
            let bytes = match self.pages.get(at / PAGE) {
                0 | ZERO => &ZEROS,
                entry => self.arena.bytes(entry - 1),
            };
            out.extend_from_slice(&bytes[within..within + part]);
            at += part as u64;
        }
    }

    /// Makes `len` bytes at `offset` zeros, a range within the drive, and frees the memory of whole pages. With `hole`
    /// they are holes afterwards.
    pub fn zero(&mut self, offset: u64, len: u64, hole: bool) {
        let end = offset + len;
        // The last page of a drive ends with the drive.
        let whole_end = if end == self.size { end.div_ceil(PAGE) } else { end / PAGE };
        let whole = offset.div_ceil(PAGE)..whole_end;
        if whole.start > whole.end {
            return self.zero_in_page(offset, end, hole);
        }
        if hole {
            let mut from = whole.start;
            while let Some(page) = self.pages.next_used(from, whole.end) {
                self.set_without_memory(page, 0);
                from = page + 1;
            }
        } else {
            whole.clone().for_each(|page| self.set_without_memory(page, ZERO));
        }
        self.zero_in_page(offset, end.min(whole.start * PAGE), hole);
        self.zero_in_page(end.min((whole.end * PAGE).max(offset)), end, hole);
    }

    /// Makes the entry of a page one without memory.
    fn set_without_memory(&mut self, page: u64, entry: u32) {
        match self.pages.set(page, entry) {
            0 | ZERO => {}
            before => self.arena.give_back(before - 1),
        }
    }

    /// Zeros the bytes from `start` to `end`, which are in one page. Without `hole` the page is no hole afterwards.
    fn zero_in_page(&mut self, start: u64, end: u64, hole: bool) {
        if start >= end {
            return;
        }
        match self.pages.get(start / PAGE) {
            0 if hole => {}
            0 | ZERO => {
                self.pages.set(start / PAGE, ZERO);
            }
            entry => {
                let within = (start % PAGE) as usize;
                self.arena.bytes_mut(entry - 1)[within..within + (end - start) as usize].fill(0);
            }
        }
    }

    /// The status of a page, and the first page after it with another status or that cannot be skipped at once.
    fn status(&self, page: u64, end: u64) -> (bool, bool, u64) {
        match self.pages.get(page) {
            0 => (true, true, self.pages.next_used(page, end).unwrap_or(end)),
            ZERO => (false, true, page + 1),
            _ => (false, false, page + 1),
        }
    }
}

/// Whether all bytes are 0.
pub(crate) fn is_zero(bytes: &[u8]) -> bool {
    let (chunks, rest) = bytes.as_chunks::<32>();
    chunks.iter().all(|chunk| *chunk == [0; 32]) && rest.iter().all(|&byte| byte == 0)
}

impl Backend for Memory {
    fn features(&self) -> Features {
        Features { size: self.size, preferred: PAGE as u32, trim: true, fast_zero: true }
    }

    fn pace(&self) -> Pace {
        Pace::None
    }

    fn submit(&mut self, id: u64, _now: Time, request: &Request, payload: &[u8]) -> Result<(), Failure> {
        match request.op {
            Op::Read => self.reads.push_back((request.offset, request.len)),
            Op::Write => self.write(request.offset, payload)?,
            Op::Trim => self.zero(request.offset, request.len.into(), true),
            Op::WriteZeroes { no_hole, .. } => self.zero(request.offset, request.len.into(), !no_hole),
            Op::Flush => {}
        }
        self.completions.push_back(Completion { id, result: Ok(()), due: None });
        Ok(())
    }

    fn completed(&mut self) -> Option<Completion> {
        self.completions.pop_front()
    }

    fn take(&mut self, _id: u64, out: &mut Vec<u8>) {
        if let Some((offset, len)) = self.reads.pop_front() {
            self.read(offset, len, out);
        }
    }

    fn extents(&mut self, offset: u64, len: u64, max: usize, out: &mut Vec<Extent>) {
        let (mut at, end) = (offset, offset + len);
        let last_page = end.div_ceil(PAGE);
        let began = out.len();
        while at < end {
            let (hole, zero, next) = self.status(at / PAGE, last_page);
            let until = (next * PAGE).min(end);
            let number = out.len() - began;
            match out[began..].last_mut() {
                Some(last) if (last.hole, last.zero) == (hole, zero) => last.len += until - at,
                _ if number == max => break,
                _ => out.push(Extent { len: until - at, hole, zero }),
            }
            at = until;
        }
    }
}
