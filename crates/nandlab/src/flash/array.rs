//! The flash array: per block what it has been through, per page its OOB.
//!
//! The array enforces what flash enforces: a page is programmed once after each erase and in order within its
//! block, an unprogrammed page cannot be read. Breaking that is a bug in the controller and panics.

use crate::base::geometry::{BlockId, Geometry, Lpn, Ppn};
use crate::base::huge::Huge;
use crate::base::units::Time;
use crate::flash::AgeStamp;
use std::collections::BTreeSet;

/// The OOB logical page number of a page that holds nothing of the host's.
pub const DEAD_LPN: u32 = u32::MAX;

/// What a block is being used for.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[repr(u8)]
pub enum BlockState {
    /// Erased, in its plane's free list.
    #[default]
    Free,
    /// Taking programs.
    Open,
    /// Every page programmed; a candidate for GC.
    Full,
    /// Being emptied by GC or the wear leveller.
    Victim,
    /// Worn out.
    Retired,
}

/// One block. Sixteen of these bytes are the NAND's own (wear, reads, what is programmed), the rest is what the
/// controller keeps about it; together they share a cache line with one neighbour.
#[derive(Clone, Debug, Default)]
pub struct Block {
    /// When its last page was programmed.
    pub closed_at: Time,
    /// Program/erase cycles.
    pub pe_cycles: u32,
    /// Page reads since the last erase; where pages were copied back to, those that they had been through before count too.
    pub reads: u32,
    /// Operations under way that need the block to stay as it is: it cannot be erased while this is not 0.
    pub pins: u32,
    /// Pages programmed since the last erase; also the next page that may be programmed.
    pub programmed: u16,
    /// Valid pages.
    pub valid: u16,
    /// What the block is being used for.
    pub state: BlockState,
    /// Consecutive copybacks that all its pages have gone through without correction.
    pub copybacks: u8,
    /// It has been refreshed partially since the last erase.
    pub is_partial: bool,
    /// Its pages that have their susceptible data elsewhere.
    pub linked: u16,
    /// Programs of pages that were programmed already, since the last erase; 65,535 stands for more, too. Of pages copied
    /// back as of [`Block::reads`].
    pub reprograms: u16,
}

/// What a page's OOB says beside its LPN.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Stamp {
    /// Sequence number of the host write the page carries; a copy keeps its source's. 0: from before the run.
    pub sequence: u64,
    /// When the data was last corrected and written: its age counts from then. A copyback does not correct, so it
    /// keeps its source's.
    pub corrected: AgeStamp,
}

/// What of the OOB's stamps is kept, because something asks for it.
#[derive(Clone, Copy, Debug, Default)]
pub struct Keeps {
    /// [`Stamp::sequence`]: 8 bytes a page.
    pub sequences: bool,
    /// [`Stamp::corrected`]: 4 bytes a page.
    pub ages: bool,
}

/// All blocks and the OOB of all pages.
#[derive(Debug)]
pub struct Array {
    /// Per block.
    pub blocks: Huge<Block>,
    /// OOB: the LPN of each page.
    lpn: Huge<u32>,
    /// OOB: the sequence number of each page; empty unless something asks for it.
    sequences: Huge<u64>,
    /// OOB: when the data of each page was last corrected; empty unless something asks for it.
    corrected: Huge<AgeStamp>,
    /// Programmed pages that nobody can read, because power failed during their program or their wordline's. Seldom any.
    torn: BTreeSet<u32>,
    /// OOB: pages of which only the sectors are there that were dirty when power failed. Seldom any.
    partial: BTreeSet<u32>,
}

impl Array {
    /// An erased array whose blocks have `pe_cycles` behind them.
    pub fn new(geometry: &Geometry, pe_cycles: u32, keeps: Keeps) -> Self {
        let block = Block { pe_cycles, ..Block::default() };
        let pages = geometry.pages as usize;
        Self {
            blocks: Huge::filled(block, geometry.blocks as usize),
            // What recovery may read has to say that it holds nothing.
            lpn: if keeps.sequences { Huge::filled(DEAD_LPN, pages) } else { Huge::zeroed(pages) },
            sequences: Huge::zeroed(if keeps.sequences { pages } else { 0 }),
            corrected: Huge::zeroed(if keeps.ages { pages } else { 0 }),
            torn: BTreeSet::new(),
            partial: BTreeSet::new(),
        }
    }

    /// The block.
    #[inline(always)]
    pub fn block(&self, block: BlockId) -> &Block {
        &self.blocks[block.index()]
    }

    /// The block, to change.
    #[inline(always)]
    pub fn block_mut(&mut self, block: BlockId) -> &mut Block {
        &mut self.blocks[block.index()]
    }

    /// Asks the cache for what reading a page needs.
    #[inline(always)]
    pub fn prefetch(&self, block: BlockId, ppn: Ppn) {
        self.blocks.prefetch(block.index());
        if !self.corrected.is_empty() {
            self.corrected.prefetch(ppn.index());
        }
    }

    /// The LPN in a page's OOB.
    #[inline(always)]
    pub fn lpn(&self, ppn: Ppn) -> Lpn {
        Lpn(self.lpn[ppn.index()])
    }

    /// The stamp in a page's OOB, as far as it is kept.
    #[inline(always)]
    pub fn stamp(&self, ppn: Ppn) -> Stamp {
        Stamp {
            sequence: self.sequences.get(ppn.index()).copied().unwrap_or_default(),
            corrected: self.corrected.get(ppn.index()).copied().unwrap_or_default(),
        }
    }

    /// Whether a page holds data that could not be corrected when it was moved.
    #[inline(always)]
    pub fn is_lost(&self, ppn: Ppn) -> bool {
        self.corrected.get(ppn.index()).is_some_and(|&moment| moment == AgeStamp::LOST)
    }

    /// Whether power failed while a page or its wordline was programmed: nobody can read it.
    #[inline(always)]
    pub fn is_torn(&self, ppn: Ppn) -> bool {
        !self.torn.is_empty() && self.torn.contains(&ppn.0)
    }

    /// Makes a page unreadable.
    pub fn tear(&mut self, ppn: Ppn) {
        self.torn.insert(ppn.0);
    }

    /// Takes every torn page for a good one: for the test that shows that this is noticed.
    #[doc(hidden)]
    pub fn forget_torn(&mut self) {
        self.torn.clear();
    }

    /// Replaces the sequence number in a page's OOB: for the tests that show that recovery needs it.
    #[doc(hidden)]
    pub fn set_sequence(&mut self, ppn: Ppn, sequence: u64) {
        self.sequences[ppn.index()] = sequence;
    }

    /// Whether a page holds only the sectors that were dirty when power failed.
    pub fn is_partial(&self, ppn: Ppn) -> bool {
        self.partial.contains(&ppn.0)
    }

    /// Marks a page that is going to be programmed as one that holds only some of its sectors.
    pub fn mark_partial(&mut self, ppn: Ppn) {
        self.partial.insert(ppn.0);
    }

    /// Pages marked so.
    pub fn partial(&self) -> impl Iterator<Item = Ppn> + '_ {
        self.partial.iter().copied().map(Ppn)
    }

    /// Whether sequence numbers are kept.
    pub fn is_stamped(&self) -> bool {
        !self.sequences.is_empty()
    }

    /// Whether ages are kept.
    pub fn keeps_ages(&self) -> bool {
        !self.corrected.is_empty()
    }

    /// Fixes what the coming program of `ppn` will leave in the OOB.
    #[inline(always)]
    pub fn stage(&mut self, ppn: Ppn, lpn: Lpn, stamp: Stamp) {
        self.lpn[ppn.index()] = lpn.0;
        if !self.sequences.is_empty() {
            self.sequences[ppn.index()] = stamp.sequence;
        }
        if !self.corrected.is_empty() {
            self.corrected[ppn.index()] = stamp.corrected;
        }
    }

    /// A program of page `page` of `block` has ended; returns the pages programmed so far.
    #[inline(always)]
    pub fn program(&mut self, block: BlockId, page: u32) -> u32 {
        let state = self.block_mut(block);
        assert!(
            u32::from(state.programmed) == page && state.state == BlockState::Open,
            "illegal program of page {page} of block {} ({:?}, next page {})",
            block.0,
            state.state,
            state.programmed,
        );
        state.programmed += 1;
        page + 1
    }

    /// A page of `source` has been copied back to `block`: the errors that reads and reprograms have left in it come along.
    pub fn copy_errors(&mut self, block: BlockId, source: BlockId) {
        let Block { reads, reprograms, .. } = *self.block(source);
        let state = self.block_mut(block);
        (state.reads, state.reprograms) = (state.reads.max(reads), state.reprograms.max(reprograms));
    }

    /// A page of `block` has been programmed once more with what it holds, corrected.
    pub fn reprogram(&mut self, block: BlockId, page: u32, ppn: Ppn, corrected: AgeStamp) {
        let state = self.block_mut(block);
        assert!(
            page < u32::from(state.programmed),
            "reprogram of unprogrammed page {page} of block {}",
            block.0
        );
        state.reprograms = state.reprograms.saturating_add(1);
        if let Some(moment) = self.corrected.get_mut(ppn.index()) {
            *moment = corrected;
        }
    }

    /// Power is gone: what programs that never began would have left in a block's OOBs is not there.
    pub fn blank_unprogrammed(&mut self, geometry: &Geometry, block: BlockId) {
        let first = geometry.page(block, 0).index();
        let programmed = usize::from(self.block(block).programmed);
        let pages = first + programmed..first + geometry.pages_per_block as usize;
        self.lpn[pages.clone()].fill(DEAD_LPN);
        if self.is_stamped() {
            self.sequences[pages.clone()].fill(0);
        }
        for page in pages {
            self.partial.remove(&(page as u32));
        }
    }

    /// The data of a page counts as corrected then, if it has not been later; what is lost stays lost.
    pub fn correct_since(&mut self, ppn: Ppn, moment: AgeStamp) {
        if let Some(corrected) = self.corrected.get_mut(ppn.index())
            && *corrected != AgeStamp::LOST
        {
            *corrected = moment.max(*corrected);
        }
    }

    /// The next `pages` of an open block stay erased; they can no longer be programmed before the block is erased.
    #[inline(always)]
    pub fn skip(&mut self, block: BlockId, pages: u32) -> u32 {
        let state = self.block_mut(block);
        state.programmed += pages as u16;
        u32::from(state.programmed)
    }

    /// A page of `block` has been sensed.
    #[inline(always)]
    pub fn read(&mut self, block: BlockId, page: u32) {
        let state = self.block_mut(block);
        assert!(page < u32::from(state.programmed), "read of unprogrammed page {page} of block {}", block.0);
        state.reads += 1;
    }

    /// An erase of `block` has ended.
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
        state.is_partial = false;
        state.reprograms = 0;
        if self.is_stamped() {
            // So that a read of what is gone shows, and that a page that stays erased holds nothing.
            let first = geometry.page(block, 0).index();
            let pages = first..first + geometry.pages_per_block as usize;
            self.lpn[pages.clone()].fill(DEAD_LPN);
            self.sequences[pages].fill(0);
        }
        if !self.torn.is_empty() || !self.partial.is_empty() {
            let first = geometry.page(block, 0).0;
            for page in first..first + geometry.pages_per_block {
                self.torn.remove(&page);
                self.partial.remove(&page);
            }
        }
    }
}
