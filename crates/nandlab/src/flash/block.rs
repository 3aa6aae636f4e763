//! The records of a block and of a page in the flash array.

use super::AgeStamp;
use crate::base::units::Time;

/// The LPN in the OOB of a page that holds no LPN's data: padding, garbage from preconditioning and, if the array keeps
/// sequence numbers, an erased page.
pub const DEAD_LPN: u32 = u32::MAX;

/// The use of a block.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[repr(u8)]
pub enum BlockState {
    /// Erased, in its plane's free list.
    #[default]
    Free,
    /// Filled by a stream.
    Open,
    /// Closed: all pages are programmed, or remain erased until the next erase. A candidate for GC.
    Full,
    /// Being emptied by GC, the wear leveller or refresh.
    Victim,
    /// Worn out, no longer used.
    Retired,
    /// Not there: a plane of the block has too few good flash blocks ([`Geometry::blocks_in`](crate::base::geometry::Geometry::blocks_in)). Never used.
    Bad,
}

impl BlockState {
    /// Whether the block holds data, or can after an erase.
    pub fn is_usable(self) -> bool {
        !matches!(self, Self::Retired | Self::Bad)
    }
}

/// One block: the NAND's own state (P/E cycles, reads, programmed pages) and the controller's record of the block. Two
/// blocks of 32 bytes share a cache line; what is rarely read is in [`Rare`].
#[derive(Clone, Debug, Default)]
pub struct Block {
    /// The time at which the block was closed.
    pub closed_at: Time,
    /// Program/erase cycles.
    pub pe_cycles: u32,
    /// Page reads since the last erase, of a superblock those of its most-read flash block. If pages have been copied
    /// back to the block, at least the reads that each source block had at the copyback.
    pub reads: u32,
    /// Operations under way or queued that need the block not to be erased. A block with pins cannot be erased.
    pub pins: u32,
    /// Pages programmed or skipped since the last erase. In a block on one die also the number of the next page that
    /// may be programmed; see [`Array::is_programmed`](super::Array::is_programmed).
    pub programmed: u32,
    /// Valid pages.
    pub valid: u32,
    /// The use of the block.
    pub state: BlockState,
    /// Consecutive copybacks without correction that every page of the block has gone through.
    pub copybacks: u8,
    /// The block's pages whose susceptible bits are in a combination page.
    pub linked: u16,
}

const _: () = assert!(size_of::<Block>() == 32);

/// The part of a block's state that only refresh reads and writes.
#[derive(Clone, Copy, Debug, Default)]
pub struct Rare {
    /// Programs in place since the last erase, at most 65,535. If pages have been copied back to the block, at least
    /// the programs in place that each source block had at the copyback.
    pub reprograms: u16,
    /// Whether the block has been refreshed partially since the last erase.
    pub is_partial: bool,
}

/// The contents of a page's OOB other than the LPN.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Stamp {
    /// Sequence number of the write, by the host or by the controller, that produced the page's data. A copy keeps the
    /// number of its source. 0 for data from before the run.
    pub sequence: u64,
    /// The age stamp at which the data was last corrected and written. The age of the data counts from this stamp. A
    /// copyback does not correct, so the copy keeps the age stamp of the source.
    pub corrected: AgeStamp,
}

/// What a copyback has done to a page (`reliability.copyback = "propagate"`).
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Copied {
    /// RBER of the errors in the data that the copyback programmed, 0 to 0.5.
    pub rber: f32,
    /// The age stamp at which the copyback programmed the cells. Their retention counts from this stamp, the age of
    /// the data from [`Stamp::corrected`].
    pub programmed: AgeStamp,
}

/// The fields of [`Stamp`] that the array keeps. A field that no part of the drive reads is not kept.
#[derive(Clone, Copy, Debug)]
pub struct Keeps {
    /// [`Stamp::sequence`]: 8 bytes per page.
    pub sequences: bool,
    /// [`Stamp::corrected`]: 4 bytes per `pages_per_age` pages.
    pub ages: bool,
    /// [`Copied`]: 8 bytes per `pages_per_age` pages.
    pub copied: bool,
    /// Consecutive pages that have a common age, because they are always programmed and corrected together: a power of
    /// two. The stamp is that of the page staged last.
    pub pages_per_age: u32,
}

impl Default for Keeps {
    fn default() -> Self {
        Self { sequences: false, ages: false, copied: false, pages_per_age: 1 }
    }
}
