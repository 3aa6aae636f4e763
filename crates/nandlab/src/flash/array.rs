//! The flash array: the state of each block and the OOB of each page.
//!
//! The array enforces the rules of NAND flash. After an erase the pages of a block on a die are programmed in order, each
//! once. An exception is a program in place, which programs a programmed page again with its own data. An unprogrammed page
//! cannot be read. An operation that breaks a rule is a bug in the controller and panics.

use super::AgeStamp;
use super::block::{Block, BlockState, Copied, DEAD_LPN, Keeps, Rare, Stamp};
use super::on_dies::OnDies;
use crate::base::geometry::{BlockId, Geometry, Lpn, PlaneId, Ppn};
use crate::base::huge::Huge;
use std::collections::BTreeSet;
use std::ops::Range;

/// All blocks and the OOB of all pages.
#[derive(Clone, Debug)]
pub struct Array {
    /// The state of each block.
    pub blocks: Huge<Block>,
    /// The rare state of each block.
    rare: Huge<Rare>,
    /// The progress of each block on each of its dies; `None` if each block is on one die.
    on_dies: Option<Box<OnDies>>,
    /// Page reads of each flash block since its last erase; empty if each is a block, whose [`Block::reads`] counts them.
    reads: Huge<u32>,
    /// OOB: the LPN of each page.
    lpn: Huge<u32>,
    /// OOB: the sequence number of each page; empty unless [`Keeps::sequences`].
    sequences: Huge<u64>,
    /// OOB: the age stamp at which the data of pages was last corrected; empty unless [`Keeps::ages`].
    corrected: Huge<AgeStamp>,
    /// What the last copyback has done to pages, since their last correction; empty unless [`Keeps::copied`].
    copied: Huge<Copied>,
    /// The binary logarithm of [`Keeps::pages_per_age`].
    age_shift: u32,
    /// Pages that hold lost data, if several pages have a common age stamp. Usually empty.
    lost: BTreeSet<u32>,
    /// Unreadable pages: power failed during the program of the page or of another page of its wordline. Usually empty.
    torn: BTreeSet<u32>,
    /// OOB: pages that hold only the sectors that were dirty when power failed. Usually empty.
    partial: BTreeSet<u32>,
}

impl Array {
    /// An erased array whose blocks have gone through `pe_cycles` P/E cycles.
    pub fn new(geometry: &Geometry, pe_cycles: u32, keeps: Keeps) -> Self {
        let block = Block { pe_cycles, ..Block::default() };
        let pages = geometry.pages as usize;
        assert!(
            keeps.pages_per_age.is_power_of_two() && geometry.pages.is_multiple_of(keeps.pages_per_age),
            "an age stamp of {} pages",
            keeps.pages_per_age
        );
        let ages = pages >> keeps.pages_per_age.ilog2();
        let is_apart = geometry.flash_blocks_per_block() > 1;
        let mut blocks = Huge::filled(block, geometry.blocks as usize);
        for plane in (0..geometry.planes).map(PlaneId) {
            let (good, first) = (geometry.blocks_of(plane), geometry.first_block(plane).index());
            for block in &mut blocks[good.end..first + geometry.blocks_per_plane as usize] {
                block.state = BlockState::Bad;
            }
        }
        Self {
            reads: Huge::zeroed(if is_apart { geometry.flash_blocks() as usize } else { 0 }),
            blocks,
            rare: Huge::filled(Rare::default(), geometry.blocks as usize),
            on_dies: (geometry.dies_per_block > 1).then(|| Box::new(OnDies::new(geometry))),
            // Recovery may read the OOB of any page, so the OOB of an unprogrammed page must state that the page is
            // empty.
            lpn: if keeps.sequences { Huge::filled(DEAD_LPN, pages) } else { Huge::zeroed(pages) },
            sequences: Huge::zeroed(if keeps.sequences { pages } else { 0 }),
            corrected: Huge::filled(AgeStamp::LOST, if keeps.ages { ages } else { 0 }),
            copied: Huge::filled(Copied::default(), if keeps.copied { ages } else { 0 }),
            age_shift: keeps.pages_per_age.ilog2(),
            lost: BTreeSet::new(),
            torn: BTreeSet::new(),
            partial: BTreeSet::new(),
        }
    }

    /// The fields of [`Keeps`] in their order; instead of the pages of an age stamp their binary logarithm.
    pub(crate) fn keeps(&self) -> (bool, bool, bool, u32) {
        (self.keeps_sequences(), self.keeps_ages(), self.keeps_copied(), self.age_shift)
    }

    /// The blocks that the drive has, worn-out ones included.
    pub fn good_blocks(&self) -> impl Iterator<Item = &Block> + Clone {
        self.blocks.iter().filter(|block| block.state != BlockState::Bad)
    }

    /// The state of a block.
    #[inline(always)]
    pub fn block(&self, block: BlockId) -> &Block {
        &self.blocks[block.index()]
    }

    /// The state of a block, mutable.
    #[inline(always)]
    pub fn block_mut(&mut self, block: BlockId) -> &mut Block {
        &mut self.blocks[block.index()]
    }

    /// The rare state of a block.
    #[inline]
    pub fn rare(&self, block: BlockId) -> &Rare {
        &self.rare[block.index()]
    }

    /// The rare state of a block, mutable.
    #[inline]
    pub fn rare_mut(&mut self, block: BlockId) -> &mut Rare {
        &mut self.rare[block.index()]
    }

    /// Whether page `page` of `block` has been programmed or skipped since the last erase.
    #[inline(always)]
    pub fn is_programmed(&self, block: BlockId, page: u32) -> bool {
        match &self.on_dies {
            None => page < self.block(block).programmed,
            Some(on_dies) => on_dies.is_programmed(block, page),
        }
    }

    /// Prefetches the state of a page, without its LPN, into the CPU's cache.
    #[inline(always)]
    pub fn prefetch_state(&self, ppn: Ppn) {
        self.corrected.prefetch_if_kept(self.age_index(ppn));
        self.copied.prefetch_if_kept(self.age_index(ppn));
        self.sequences.prefetch_if_kept(ppn.index());
    }

    /// Prefetches the LPN in a page's OOB into the CPU's cache.
    #[inline(always)]
    pub fn prefetch_lpn(&self, ppn: Ppn) {
        self.lpn.prefetch(ppn.index());
    }

    /// The LPN in a page's OOB.
    #[inline(always)]
    pub fn lpn(&self, ppn: Ppn) -> Lpn {
        Lpn(self.lpn[ppn.index()])
    }

    /// The stamp in a page's OOB; a field that is not kept has its default.
    #[inline(always)]
    pub fn stamp(&self, ppn: Ppn) -> Stamp {
        Stamp {
            sequence: self.sequences.get(ppn.index()).copied().unwrap_or_default(),
            corrected: self.corrected(ppn),
        }
    }

    /// The index in `corrected` and `copied` of a page.
    #[inline(always)]
    fn age_index(&self, ppn: Ppn) -> usize {
        (ppn.0 >> self.age_shift) as usize
    }

    /// [`Stamp::corrected`] of a page.
    #[inline(always)]
    fn corrected(&self, ppn: Ppn) -> AgeStamp {
        if !self.lost.is_empty() && self.is_among_lost(ppn) {
            return AgeStamp::LOST;
        }
        self.corrected.get(self.age_index(ppn)).copied().unwrap_or_default()
    }

    #[cold]
    fn is_among_lost(&self, ppn: Ppn) -> bool {
        self.lost.contains(&ppn.0)
    }

    /// Sets [`Stamp::corrected`] of a page.
    #[inline(always)]
    fn set_corrected(&mut self, ppn: Ppn, stamp: AgeStamp) {
        let index = self.age_index(ppn);
        if self.age_shift > 0 {
            if stamp == AgeStamp::LOST {
                self.lost.insert(ppn.0);
                return;
            }
            if !self.lost.is_empty() {
                self.lost.remove(&ppn.0);
            }
        }
        self.corrected[index] = stamp;
    }

    /// Whether a page holds data that could not be corrected when it was moved.
    #[inline(always)]
    pub fn is_lost(&self, ppn: Ppn) -> bool {
        self.keeps_ages() && self.corrected(ppn) == AgeStamp::LOST
    }

    /// Whether a page is unreadable because power failed while it, or another page of its wordline, was programmed.
    #[inline(always)]
    pub fn is_torn(&self, ppn: Ppn) -> bool {
        !self.torn.is_empty() && self.torn.contains(&ppn.0)
    }

    /// Makes a page unreadable.
    pub fn tear(&mut self, ppn: Ppn) {
        self.torn.insert(ppn.0);
    }

    /// Makes every torn page readable. Only for the test that proves that such a wrong drive is detected.
    #[doc(hidden)]
    pub fn forget_torn(&mut self) {
        self.torn.clear();
    }

    /// Replaces the sequence number in a page's OOB. Only for the tests that prove that recovery needs this number.
    #[doc(hidden)]
    pub fn set_sequence(&mut self, ppn: Ppn, sequence: u64) {
        self.sequences[ppn.index()] = sequence;
    }

    /// Whether a page holds only the sectors that were dirty when power failed.
    pub fn is_partial(&self, ppn: Ppn) -> bool {
        self.partial.contains(&ppn.0)
    }

    /// Marks a page, before its program, as a page that holds only the sectors that were dirty when power failed.
    pub fn mark_partial(&mut self, ppn: Ppn) {
        self.partial.insert(ppn.0);
    }

    /// The pages that hold only the sectors that were dirty when power failed.
    pub fn partial_pages(&self) -> impl Iterator<Item = Ppn> + '_ {
        self.partial.iter().copied().map(Ppn)
    }

    /// Whether the OOB of each page has a sequence number.
    pub fn keeps_sequences(&self) -> bool {
        !self.sequences.is_empty()
    }

    /// Whether the OOB of each page has an age stamp.
    pub fn keeps_ages(&self) -> bool {
        !self.corrected.is_empty()
    }

    /// Whether the array keeps what copybacks have done to pages.
    pub fn keeps_copied(&self) -> bool {
        !self.copied.is_empty()
    }

    /// What the last copyback has done to a page; `None` if the data has been corrected since, or is not kept.
    #[inline(always)]
    pub fn copied(&self, ppn: Ppn) -> Option<Copied> {
        self.copied.get(self.age_index(ppn)).copied().filter(|copied| copied.programmed != AgeStamp::LOST)
    }

    /// The age stamp from which the retention of a page's cells counts.
    #[inline(always)]
    pub fn cells_since(&self, ppn: Ppn) -> AgeStamp {
        self.copied(ppn).map_or_else(|| self.stamp(ppn).corrected, |copied| copied.programmed)
    }

    /// Records what a copyback has done to a page. Of pages with a common age stamp the data that is not lost counts.
    pub fn set_copied(&mut self, ppn: Ppn, copied: Copied) {
        if self.age_shift == 0 || !self.is_lost(ppn) {
            let index = self.age_index(ppn);
            self.copied[index] = copied;
        }
    }

    /// The data of a page has been corrected in place.
    fn forget_copied(&mut self, ppn: Ppn) {
        let index = self.age_index(ppn);
        if let Some(copied) = self.copied.get_mut(index) {
            *copied = Copied::default();
        }
    }

    /// Writes the OOB of `ppn` before the program of this page.
    #[inline(always)]
    pub fn stage(&mut self, ppn: Ppn, lpn: Lpn, stamp: Stamp) {
        self.lpn[ppn.index()] = lpn.0;
        if !self.sequences.is_empty() {
            self.sequences[ppn.index()] = stamp.sequence;
        }
        if !self.corrected.is_empty() {
            self.set_corrected(ppn, stamp.corrected);
        }
    }

    /// Counts the program of page `page` of `block`, which has ended. Returns the number of pages programmed or skipped
    /// so far.
    #[inline(always)]
    pub fn program(&mut self, block: BlockId, page: u32) -> u32 {
        if self.on_dies.is_some() {
            return self.program_on_die(block, page);
        }
        let state = self.block_mut(block);
        assert!(
            state.programmed == page && state.state == BlockState::Open,
            "illegal program of page {page} of block {} ({:?}, next page {})",
            block.0,
            state.state,
            state.programmed,
        );
        state.programmed += 1;
        page + 1
    }

    /// [`Array::program`] in a block on several dies.
    #[inline(never)]
    fn program_on_die(&mut self, block: BlockId, page: u32) -> u32 {
        let on_dies = self.on_dies.as_mut().expect("the block is on several dies");
        let state = &mut self.blocks[block.index()];
        let counted = on_dies.count(block, page).filter(|_| state.state == BlockState::Open);
        state.programmed += counted.unwrap_or_else(|| {
            panic!(
                "illegal program of page {page} of block {} ({:?}), which is not the next on its die",
                block.0, state.state,
            )
        });
        state.programmed
    }

    /// Records that a page of `source` has been copied back to `block`. The copy keeps the errors that reads and
    /// programs in place have caused, so each of these counts of `block` becomes at least that of `source`.
    pub fn copy_errors(&mut self, block: BlockId, source: BlockId) {
        let (reads, reprograms) = (self.block(source).reads, self.rare(source).reprograms);
        let state = self.block_mut(block);
        state.reads = state.reads.max(reads);
        let rare = self.rare_mut(block);
        rare.reprograms = rare.reprograms.max(reprograms);
    }

    /// Records that page `page` of `block`, at `ppn`, has been programmed in place with its own corrected data.
    pub fn reprogram(&mut self, block: BlockId, page: u32, ppn: Ppn, corrected: AgeStamp) {
        assert!(
            self.is_programmed(block, page),
            "reprogram of unprogrammed page {page} of block {}",
            block.0
        );
        let rare = self.rare_mut(block);
        rare.reprograms = rare.reprograms.saturating_add(1);
        self.forget_copied(ppn);
        if self.keeps_ages() {
            self.set_corrected(ppn, corrected);
        }
    }

    /// Clears the LPNs, sequence numbers and marks in the OOBs of the unprogrammed pages of `block`. These OOBs were staged
    /// for programs that power loss prevented.
    pub fn blank_unprogrammed(&mut self, geometry: &Geometry, block: BlockId) {
        let first = geometry.page(block, 0).index();
        for range in self.unprogrammed(geometry, block) {
            let pages = first + range.start as usize..first + range.end as usize;
            self.lpn[pages.clone()].fill(DEAD_LPN);
            if self.keeps_sequences() {
                self.sequences[pages.clone()].fill(0);
            }
            for page in pages {
                self.partial.remove(&(page as u32));
            }
        }
    }

    /// The pages of a block that have been programmed or skipped since the last erase, in ascending order.
    pub fn programmed(&self, geometry: &Geometry, block: BlockId) -> impl Iterator<Item = u32> + use<'_> {
        let pages = 0..self.end(block).min(geometry.pages_per_block);
        pages.filter(move |&page| self.is_programmed(block, page))
    }

    /// The other pages of a block, as ranges in ascending order. Only the last range, which ends with the block, may have
    /// more than one page.
    pub fn unprogrammed(&self, geometry: &Geometry, block: BlockId) -> Vec<Range<u32>> {
        let end = self.end(block);
        let before = if self.on_dies.is_some() { end } else { 0 };
        let gaps = (0..before).filter(|&page| !self.is_programmed(block, page)).map(|page| page..page + 1);
        gaps.chain(std::iter::once(end..geometry.pages_per_block)).collect()
    }

    /// The number of the page after the last page of `block` that has been programmed or skipped.
    pub fn end(&self, block: BlockId) -> u32 {
        self.on_dies.as_ref().map_or_else(|| self.block(block).programmed, |on_dies| on_dies.end(block))
    }

    /// The number of pages of `block` on die number `die` of its dies that have been programmed or skipped.
    pub fn programmed_on(&self, block: BlockId, die: u32) -> u32 {
        let of_die = |on_dies: &OnDies| on_dies.of(block)[die as usize];
        self.on_dies.as_deref().map_or_else(|| self.block(block).programmed, of_die)
    }

    /// Advances the age stamp of a page's data to `stamp`: the data has been corrected in between. A later age stamp
    /// and the mark of lost data remain.
    pub fn correct_since(&mut self, ppn: Ppn, stamp: AgeStamp) {
        if self.keeps_ages() {
            let corrected = self.corrected(ppn);
            if corrected != AgeStamp::LOST && corrected < stamp {
                self.set_corrected(ppn, stamp);
                self.forget_copied(ppn);
            }
        }
    }

    /// Skips the `pages` pages from `page` on of an open block: they remain erased and cannot be programmed before the next
    /// erase of the block. In a block on one die all earlier pages are programmed; otherwise a die skips its pages once those
    /// before them are. No later page is allocated. Returns the number of pages programmed or skipped so far.
    pub fn skip(&mut self, block: BlockId, page: u32, pages: u32) -> u32 {
        let state = &mut self.blocks[block.index()];
        state.programmed += match &mut self.on_dies {
            None => pages,
            Some(on_dies) => (page..page + pages).map(|page| on_dies.skip(block, page)).sum(),
        };
        state.programmed
    }

    /// Power loss: pages that were to be skipped after others are no longer.
    pub fn forget_skips(&mut self) {
        if let Some(on_dies) = &mut self.on_dies {
            on_dies.forget_ahead();
        }
    }

    /// Skips the next `pages` pages on the die of page `page`, which is the last one programmed on this die, like
    /// [`Array::skip`].
    #[inline(always)]
    pub fn skip_after(&mut self, block: BlockId, page: u32, pages: u32) -> u32 {
        let state = &mut self.blocks[block.index()];
        state.programmed += match &mut self.on_dies {
            None => pages,
            Some(on_dies) => on_dies.skip_after(block, page, pages),
        };
        state.programmed
    }

    /// Skips all pages before page `end` that are not programmed, on every die. No page from `end` on is programmed.
    pub fn skip_to(&mut self, block: BlockId, end: u32) {
        if let Some(on_dies) = &mut self.on_dies {
            on_dies.skip_to(block, end);
        }
        self.block_mut(block).programmed = end;
    }

    /// Counts the erase of the flash blocks of `block` on the die of page `page`, and returns whether all flash blocks of
    /// the block are erased now.
    #[inline]
    pub fn erase_on_die(&mut self, block: BlockId, page: u32) -> bool {
        self.on_dies.as_mut().is_none_or(|on_dies| on_dies.erase(block, page))
    }

    /// Whether the flash blocks of `block` on some of its dies have been erased, and on others not.
    pub fn is_partly_erased(&self, block: BlockId) -> bool {
        let on_dies = self.on_dies.as_ref();
        on_dies.is_some_and(|on_dies| on_dies.of(block).iter().sum::<u32>() != self.block(block).programmed)
    }

    /// Whether the programmed pages of the dies of `block` add up to those of the block. While the block is being erased,
    /// some of its dies have no programmed pages.
    pub fn adds_up(&self, block: BlockId) -> bool {
        self.block(block).state == BlockState::Victim || !self.is_partly_erased(block)
    }

    /// Counts the sensing of page `page` of `block`.
    #[inline(always)]
    pub fn read(&mut self, geometry: &Geometry, block: BlockId, page: u32) {
        assert!(self.is_programmed(block, page), "read of unprogrammed page {page} of block {}", block.0);
        let state = &mut self.blocks[block.index()];
        if self.reads.is_empty() {
            state.reads += 1;
        } else {
            let reads = &mut self.reads[flash_block(geometry, block, page)];
            *reads += 1;
            state.reads = state.reads.max(*reads);
        }
    }

    /// Page reads of the flash block of page `page` of `block` since its last erase.
    #[inline(always)]
    pub fn reads_of(&self, geometry: &Geometry, block: BlockId, page: u32) -> u32 {
        if self.reads.is_empty() {
            self.block(block).reads
        } else {
            self.reads[flash_block(geometry, block, page)]
        }
    }

    /// Counts the erase of `block`, which has ended, and makes its pages readable and unmarked. If the array keeps sequence
    /// numbers, also clears the LPN and the sequence number of each page.
    pub fn erase(&mut self, geometry: &Geometry, block: BlockId) {
        let state = self.block_mut(block);
        assert!(
            state.valid == 0 && state.pins == 0 && state.linked == 0,
            "erase of block {} in use",
            block.0
        );
        state.pe_cycles += 1;
        state.reads = 0;
        state.programmed = 0;
        state.copybacks = 0;
        *self.rare_mut(block) = Rare::default();
        if let Some(on_dies) = &mut self.on_dies {
            on_dies.of_mut(block).fill(0);
        }
        if !self.reads.is_empty() {
            let first = flash_block(geometry, block, 0);
            self.reads[first..first + geometry.flash_blocks_per_block() as usize].fill(0);
        }
        let first = geometry.page(block, 0).index();
        let pages = first..first + geometry.pages_per_block as usize;
        if self.keeps_sequences() {
            // So a read of an erased page is detected, and recovery finds no data in pages that remain erased.
            self.lpn[pages.clone()].fill(DEAD_LPN);
            self.sequences[pages.clone()].fill(0);
        }
        if self.keeps_copied() {
            self.copied[pages.start >> self.age_shift..pages.end >> self.age_shift].fill(Copied::default());
        }
        if !self.torn.is_empty() || !self.partial.is_empty() || !self.lost.is_empty() {
            let first = geometry.page(block, 0).0;
            for page in first..first + geometry.pages_per_block {
                self.torn.remove(&page);
                self.partial.remove(&page);
                self.lost.remove(&page);
            }
        }
    }
}

/// The index of the flash block of page `page` of `block`.
#[inline(always)]
fn flash_block(geometry: &Geometry, block: BlockId, page: u32) -> usize {
    (block.0 * geometry.flash_blocks_per_block() + geometry.member(page)) as usize
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::core::testing::Setup;

    /// An array whose first block has a page of LPN 7 with this stamp.
    fn with_page(stamp: Stamp) -> (Geometry, Array) {
        let geometry = Setup::default().core().geometry;
        let mut array = Array::new(&geometry, 0, Keeps { sequences: true, ages: true, ..Keeps::default() });
        array.block_mut(BlockId(0)).state = BlockState::Open;
        array.stage(Ppn(0), Lpn(7), stamp);
        array.program(BlockId(0), 0);
        (geometry, array)
    }

    #[test]
    fn an_erase_clears_lpn_and_sequence_number_of_every_page() {
        let (geometry, mut array) = with_page(Stamp { sequence: 5, corrected: AgeStamp::START });
        assert_eq!((array.lpn(Ppn(0)), array.stamp(Ppn(0)).sequence), (Lpn(7), 5));
        array.erase(&geometry, BlockId(0));
        assert_eq!((array.lpn(Ppn(0)), array.stamp(Ppn(0)).sequence), (Lpn(DEAD_LPN), 0));
    }

    #[test]
    fn pages_with_a_common_age_have_the_stamp_of_the_last_one_but_lose_their_data_alone() {
        let geometry = Setup::default().core().geometry;
        let keeps = Keeps { sequences: true, ages: true, copied: true, pages_per_age: 4 };
        let mut array = Array::new(&geometry, 0, keeps);
        let after = |seconds| AgeStamp::START.plus_s(seconds);
        let stamp = |array: &Array, ppn| array.stamp(Ppn(ppn)).corrected;
        array.block_mut(BlockId(0)).state = BlockState::Open;
        let stamps = [after(3), AgeStamp::LOST, after(4), AgeStamp::LOST, after(9)];
        for (page, corrected) in (0..).zip(stamps) {
            array.stage(Ppn(page), Lpn(7), Stamp { sequence: 1, corrected });
            array.program(BlockId(0), page);
        }
        let of_pages = [0, 1, 2, 3, 4].map(|ppn| stamp(&array, ppn));
        assert_eq!(of_pages, [after(4), AgeStamp::LOST, after(4), AgeStamp::LOST, after(9)]);
        assert!((0..5).filter(|&ppn| array.is_lost(Ppn(ppn))).eq([1, 3]));
        // The errors of a copy of lost data do not hide those of the others.
        array.set_copied(Ppn(0), Copied { rber: 0.25, programmed: after(5) });
        array.set_copied(Ppn(1), Copied { rber: 0.0, programmed: after(5) });
        assert_eq!(array.copied(Ppn(2)).map(|copied| copied.rber), Some(0.25));
        array.correct_since(Ppn(2), after(6));
        assert_eq!((stamp(&array, 0), array.copied(Ppn(0))), (after(6), None));
        // After an erase no data is lost, and a page is staged anew.
        array.erase(&geometry, BlockId(0));
        assert!(!array.is_lost(Ppn(1)) && !array.is_lost(Ppn(3)));
        array.stage(Ppn(1), Lpn(7), Stamp { sequence: 2, corrected: after(20) });
        assert_eq!((stamp(&array, 1), stamp(&array, 3), stamp(&array, 4)), (after(20), after(20), after(9)));
    }

    #[test]
    fn an_age_stamp_advances_and_the_mark_of_lost_data_remains() {
        let after = |seconds| AgeStamp::START.plus_s(seconds);
        for (corrected, since, then) in [
            (after(10), after(20), after(20)),
            (after(20), after(10), after(20)),
            (AgeStamp::LOST, after(10), AgeStamp::LOST),
        ] {
            let (_, mut array) = with_page(Stamp { sequence: 1, corrected });
            array.correct_since(Ppn(0), since);
            assert_eq!(array.stamp(Ppn(0)).corrected, then);
        }
    }
}
