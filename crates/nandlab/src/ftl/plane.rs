//! A plane: its free blocks, and what is open of each stream.

use super::FreeBlocks;
use crate::base::geometry::{Geometry, Ppn};

/// Copybacks in a row at most, whatever the limit: blocks open for them in each plane.
pub const COPYBACKS_MAX: u8 = 8;

/// The streams of a plane: each fills a block of its own.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum WriteStream {
    /// What the host writes.
    Host,
    /// What GC moves off-chip.
    Gc,
    /// What static wear levelling moves off-chip.
    Wear,
    /// Translation pages of the demand map.
    Mapping,
    /// Combination pages of partial refresh.
    Combination,
    /// What has been copied back so many times in a row, at least once.
    Copyback(u8),
}

impl WriteStream {
    /// All streams, in the order of their numbers.
    pub fn all() -> impl Iterator<Item = WriteStream> {
        let copybacks = (1..=COPYBACKS_MAX).map(WriteStream::Copyback);
        [
            WriteStream::Host,
            WriteStream::Gc,
            WriteStream::Wear,
            WriteStream::Mapping,
            WriteStream::Combination,
        ]
        .into_iter()
        .chain(copybacks)
    }

    /// Its number.
    #[inline(always)]
    pub fn index(self) -> usize {
        match self {
            WriteStream::Host => 0,
            WriteStream::Gc => 1,
            WriteStream::Wear => 2,
            WriteStream::Mapping => 3,
            WriteStream::Combination => 4,
            WriteStream::Copyback(copybacks) => 4 + usize::from(copybacks),
        }
    }

    /// Whether only the background job of the plane writes to it. Combination pages are written by others too, but not
    /// while a program may be torn.
    pub fn is_of_jobs(self) -> bool {
        !matches!(self, WriteStream::Host | WriteStream::Mapping)
    }

    /// Copybacks in a row that its pages have gone through.
    #[inline(always)]
    pub fn copybacks(self) -> u8 {
        match self {
            WriteStream::Copyback(copybacks) => copybacks,
            _ => 0,
        }
    }
}

/// Streams of every plane.
pub const STREAMS: usize = 5 + COPYBACKS_MAX as usize;

/// The block a stream is filling: the next PPN and the end of the block; equal when it has none.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct OpenBlock {
    pub(super) next: u32,
    pub(super) end: u32,
    /// Only LSB pages are used: a program under way may not finish, and would take its wordline's LSB page with it.
    pub(super) lsb_only: bool,
}

impl OpenBlock {
    /// Takes the next page.
    #[inline(always)]
    pub(super) fn take(&mut self) -> AllocatedPage {
        let ppn = Ppn(self.next);
        // The last wordline of a block with an odd number of pages has one.
        let skips = u32::from(self.lsb_only && self.next + 1 < self.end);
        self.next += 1 + skips;
        AllocatedPage { ppn, opened: false, skips: skips as u8 }
    }

    /// Pages it will still be given.
    #[inline(always)]
    pub(super) fn room(&self) -> u32 {
        let pages = self.end - self.next;
        if self.lsb_only { pages.div_ceil(2) } else { pages }
    }
}

/// A page that has been given to a program.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct AllocatedPage {
    /// The page.
    pub ppn: Ppn,
    /// A block has been opened for it.
    pub opened: bool,
    /// Pages behind it that stay erased.
    pub skips: u8,
}

/// A plane.
#[derive(Debug)]
pub struct Plane {
    /// Erased blocks.
    pub free: FreeBlocks,
    pub(super) open: [OpenBlock; STREAMS],
    /// Free blocks that its job may yet take and gives nothing back for: nobody else takes them.
    pub promised_blocks: u32,
    /// Valid pages in all its blocks, and those of them that are combination pages.
    pub valid: u32,
    pub(super) combinations: u32,
    /// It has worn out: when it was last asked no block of it could be emptied with a gain.
    pub is_worn_out: bool,
    /// Blocks not retired.
    pub usable_blocks: u32,
    /// Erases since the wear leveller last looked.
    pub erases_unchecked: u32,
}

impl Plane {
    /// Whether so many valid pages leave less than half a block's worth of garbage, if so many blocks hold none that can be
    /// collected.
    pub(super) fn leaves_little(&self, geometry: &Geometry, taken_blocks: u32, valid: u32) -> bool {
        let blocks = self.usable_blocks.saturating_sub(taken_blocks);
        valid + geometry.pages_per_block / 2 >= blocks * geometry.pages_per_block
    }

    #[inline]
    pub(super) fn has_room(&self, reserve_blocks: u32) -> bool {
        let open = self.open[WriteStream::Host.index()];
        open.next < open.end || self.free_blocks() > reserve_blocks
    }

    /// Erased blocks that are not promised to a job.
    #[inline]
    pub fn free_blocks(&self) -> u32 {
        self.free.len().saturating_sub(self.promised_blocks)
    }

    /// For each stream the next PPN it will be given, plus 1; 0 when it has no block open.
    pub fn open_blocks(&self) -> [u64; STREAMS] {
        self.open.map(|open| if open.next < open.end { u64::from(open.next) + 1 } else { 0 })
    }
}
