//! A plane: its free blocks, and the open block of each stream.

use super::FreeBlocks;
use crate::base::geometry::{Geometry, Ppn};

/// The largest number of consecutive copybacks that a limit can allow. Each number has a stream in each plane.
pub const COPYBACKS_MAX: u8 = 8;

/// A write stream of a plane. Each stream fills an open block of its own.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum WriteStream {
    /// Host writes.
    Host,
    /// Pages that GC moves off-chip.
    Gc,
    /// Pages that static wear levelling moves off-chip.
    Wear,
    /// Translation pages of the demand map.
    Mapping,
    /// Combination pages of partial refresh.
    Combination,
    /// Pages that have been copied back this number of times in a row, at least once.
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

    /// The number of the stream.
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

    /// Whether only the background job of the plane writes to the stream. The stream of combination pages counts as
    /// such: partial refresh also writes to it without a job, but not while a program may be torn.
    pub fn is_of_jobs(self) -> bool {
        !matches!(self, WriteStream::Host | WriteStream::Mapping)
    }

    /// Consecutive copybacks that the pages of the stream have gone through.
    #[inline(always)]
    pub fn copybacks(self) -> u8 {
        match self {
            WriteStream::Copyback(copybacks) => copybacks,
            _ => 0,
        }
    }
}

/// The number of streams of a plane.
pub const STREAMS: usize = 5 + COPYBACKS_MAX as usize;

/// The open block of a stream: the next PPN, and the PPN after the last page of the block. The two are equal if the
/// stream has no open block.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct OpenBlock {
    pub(super) next: u32,
    pub(super) end: u32,
    /// Rows after each row that stay erased. Above 0 only LSB pages are used, because power loss during the program of
    /// another page would also destroy the pages of the wordline before it.
    pub(super) skips: u32,
    /// Whether all pages are used again from the next row on all dies on: some dies have skipped rows, others not yet.
    pub(super) skips_end: bool,
}

impl OpenBlock {
    /// Pages of the block that are not allocated; 0 without an open block.
    #[inline(always)]
    pub(super) fn left(&self) -> u32 {
        self.end - self.next
    }

    /// Whether no page is left to allocate.
    #[inline(always)]
    pub(super) fn is_full(&self) -> bool {
        self.left() == 0
    }

    /// Allocates the next page; a row has `row` pages on each of `dies` dies.
    #[inline(always)]
    pub(super) fn take(&mut self, row: u32, dies: u32) -> AllocatedPage {
        let ppn = Ppn(self.next);
        self.next += 1;
        let skips = if self.skips > 0 && self.next.is_multiple_of(row) { self.skip(row, dies) } else { 0 };
        AllocatedPage { ppn, opened: false, skips: skips as u16 }
    }

    /// Skips rows after a row on a die. Returns the number of pages that the die skips.
    fn skip(&mut self, row: u32, dies: u32) -> u32 {
        // The last wordline of a block may have fewer rows.
        let rows = self.skips.min(self.left() / (row * dies));
        if self.next.is_multiple_of(row * dies) {
            self.next += rows * row * dies;
            if std::mem::take(&mut self.skips_end) {
                self.skips = 0;
            }
        }
        rows * row
    }

    /// Uses only the first of 1 + `skips` rows from now on.
    pub(super) fn set_skips(&mut self, skips: u32, full_row: u32) {
        // A die that has skipped rows cannot program them.
        self.skips_end = skips == 0 && self.skips > 0 && !self.next.is_multiple_of(full_row);
        if !self.skips_end {
            self.skips = skips;
        }
    }

    /// Pages of the block that can still be allocated; a row has `row` pages on all dies.
    #[inline(always)]
    pub(super) fn room(&self, row: u32) -> u32 {
        if self.skips == 0 { self.left() } else { self.room_between_skips(row) }
    }

    #[cold]
    fn room_between_skips(&self, row: u32) -> u32 {
        let pages = self.left();
        // The rest of the present row, and the first row of every further wordline.
        let (rows, rest) = (pages / row, pages % row);
        let rows = if rest == 0 { rows } else { rows.saturating_sub(self.skips) };
        rest + row * rows.div_ceil(1 + self.skips)
    }
}

/// A page allocated to a program.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct AllocatedPage {
    /// The page.
    pub ppn: Ppn,
    /// Whether a block was opened for the page.
    pub opened: bool,
    /// Pages after the allocated page on its die that remain erased.
    pub skips: u16,
}

/// A plane.
#[derive(Clone, Debug)]
pub struct Plane {
    /// Erased blocks.
    pub free: FreeBlocks,
    pub(super) open: [OpenBlock; STREAMS],
    /// Erased pages that are not allocated to a program.
    pub(super) free_pages: u32,
    /// Free blocks that the plane's job may still take, and nobody else.
    pub promised_blocks: u32,
    /// Pages that the plane's job may still move to the open block of the host, which are kept from the host; 0 unless
    /// GC shares this block.
    pub promised_pages: u32,
    /// Valid pages in all blocks of the plane.
    pub valid: u32,
    /// Valid combination pages in all blocks of the plane.
    pub(super) combinations: u32,
    /// Whether the plane was worn out at the last check: no block was being emptied or could be emptied with a gain,
    /// and some block was retired or would retire at its next erase.
    pub is_worn_out: bool,
    /// Blocks that the plane has and that are not retired.
    pub usable_blocks: u32,
    /// Erases since the wear leveller last checked the plane.
    pub erases_unchecked: u32,
}

impl Plane {
    /// Makes the block with the pages from `first` on the open block number `index`.
    pub(super) fn begin(&mut self, index: usize, first: Ppn, pages: u32) {
        let open = &mut self.open[index];
        (open.next, open.end) = (first.0, first.0 + pages);
    }

    /// Allocates the next page of the open block with number `index`.
    #[inline(always)]
    pub(super) fn take(&mut self, index: usize, geometry: &Geometry) -> AllocatedPage {
        let open = &mut self.open[index];
        let before = open.left();
        let page = open.take(geometry.pages_per_row, geometry.dies_per_block);
        self.free_pages -= before - open.left();
        page
    }

    pub(super) fn count_free_pages(&self, pages_per_block: u32) -> u32 {
        self.free.len() * pages_per_block + self.open.iter().map(OpenBlock::left).sum::<u32>()
    }

    /// Whether, with `valid` valid pages, at most half a block's worth of garbage is left for GC. The pages of
    /// `taken_blocks` blocks are not counted, because GC cannot collect them. Garbage that is less than a flash page in
    /// each block is not counted either: GC gains nothing from it.
    pub(super) fn leaves_little_garbage(&self, geometry: &Geometry, taken_blocks: u32, valid: u32) -> bool {
        let blocks = self.usable_blocks.saturating_sub(taken_blocks);
        let thin = blocks * (geometry.units_per_page - 1);
        valid + thin + geometry.pages_per_block / 2 >= blocks * geometry.pages_per_block
    }

    /// Whether the host's stream can allocate a page and leave the job the pages promised to it. A free block beyond the
    /// reserve has room for all of these. `shares_first_block`: GC moves pages to the open block of the host. Without a
    /// free block this block then takes copies only, because recovery can erase a block of copies to regain a free block.
    #[inline]
    pub(super) fn has_room(&self, reserve_blocks: u32, shares_first_block: bool) -> bool {
        let open = self.open[WriteStream::Host.index()];
        let is_for_copies = shares_first_block && self.free.is_empty();
        open.left() > self.promised_pages && !is_for_copies
            || self.free.len() > self.promised_blocks + reserve_blocks
    }

    /// Erased blocks that are not promised to a job.
    #[inline]
    pub fn free_blocks(&self) -> u32 {
        self.free.len().saturating_sub(self.promised_blocks)
    }

    /// For each stream 1 + the next PPN to allocate; 0 for a stream without an open block.
    pub fn open_blocks(&self) -> [u64; STREAMS] {
        self.open.map(|open| if open.is_full() { 0 } else { u64::from(open.next) + 1 })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A block of nine rows, of which the first of two or three is used, or all. The room is the number of pages that can be
    /// taken, from every page on.
    #[test]
    fn the_room_of_a_block_is_the_number_of_pages_that_can_be_taken() {
        let of_row = |row: u32| [0, 1, 2].map(|skips| [1, 3].map(|dies| (row, dies, skips)));
        for (row, dies, skips) in [1, 4].into_iter().flat_map(of_row).flatten() {
            let (full, end) = (row * dies, 9 * row * dies);
            let is_used = |page: &u32| (page / full).is_multiple_of(1 + skips);
            for next in (0..=end).filter(|page| is_used(page) || *page == end) {
                let mut open = OpenBlock { next, end, skips, skips_end: false };
                let room = open.room(full);
                let (mut taken, mut skipped) = (Vec::new(), 0);
                while open.next < open.end {
                    let page = open.take(row, dies);
                    skipped += u32::from(page.skips);
                    taken.push(page.ppn.0);
                }
                assert_eq!(taken, (next..end).filter(is_used).collect::<Vec<_>>());
                assert_eq!(room as usize, taken.len(), "rows of {row} pages from {next}, {skips} skipped");
                // From the beginning of a row on, the dies skip what is not taken.
                if next.is_multiple_of(full) {
                    assert_eq!(skipped, end - next - room);
                }
            }
        }
    }

    /// Two dies with rows of two pages use every second row. The second die is in the first row when all pages may be used
    /// again: it skips the second row, as the first die has.
    #[test]
    fn all_pages_are_used_again_when_every_die_has_skipped_the_same_rows() {
        let mut open = OpenBlock { next: 0, end: 32, skips: 1, skips_end: false };
        let take = |open: &mut OpenBlock| {
            let page = open.take(2, 2);
            (page.ppn.0, page.skips)
        };
        assert_eq!([(); 3].map(|()| take(&mut open)), [(0, 0), (1, 2), (2, 0)]);
        open.set_skips(0, 4);
        assert_eq!([(); 3].map(|()| take(&mut open)), [(3, 2), (8, 0), (9, 0)]);
        assert_eq!([(); 3].map(|()| take(&mut open)), [(10, 0), (11, 0), (12, 0)]);
    }
}
