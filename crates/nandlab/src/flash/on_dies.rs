//! The progress of blocks on several dies (`ftl.superblock = "drive"`): each die programs its pages of a block in order.

use crate::base::geometry::{BlockId, Geometry, Stripes};
use crate::base::huge::Huge;
use std::collections::BTreeMap;

/// By block and die, the number of pages programmed or skipped since the last erase.
#[derive(Clone, Debug)]
pub(super) struct OnDies {
    programmed: Huge<u32>,
    /// Pages that a die skips once the pages before them are programmed: their first number on the die, and the first number
    /// behind them, by the index in `programmed`. Usually empty.
    ahead: BTreeMap<usize, (u32, u32)>,
    stripes: Stripes,
}

impl OnDies {
    pub(super) fn new(geometry: &Geometry) -> Self {
        let dies = (geometry.blocks * geometry.dies_per_block) as usize;
        Self { programmed: Huge::zeroed(dies), ahead: BTreeMap::new(), stripes: geometry.stripes }
    }

    /// The index in `programmed` of the die of page `page` of `block`, and the page's number among those on this die.
    fn place(&self, block: BlockId, page: u32) -> (usize, u32) {
        let (die, place) = self.stripes.split(page);
        ((block.0 * self.stripes.dies + die) as usize, place)
    }

    fn range(&self, block: BlockId) -> std::ops::Range<usize> {
        let first = (block.0 * self.stripes.dies) as usize;
        first..first + self.stripes.dies as usize
    }

    /// The numbers of programmed pages of a block, by die.
    pub(super) fn of(&self, block: BlockId) -> &[u32] {
        &self.programmed[self.range(block)]
    }

    /// The numbers of programmed pages of a block, by die, mutable.
    pub(super) fn of_mut(&mut self, block: BlockId) -> &mut [u32] {
        let range = self.range(block);
        &mut self.programmed[range]
    }

    /// Whether page `page` of `block` has been programmed or skipped since the last erase.
    #[inline(never)]
    pub(super) fn is_programmed(&self, block: BlockId, page: u32) -> bool {
        let (on_die, place) = self.place(block, page);
        place < self.programmed[on_die]
    }

    /// Counts the `pages` pages from number `place` on of a die, and those that the die skips behind them. Returns the number
    /// of pages counted, or `None` if the page with number `place` is not the next one.
    fn count_on(&mut self, on_die: usize, place: u32, pages: u32) -> Option<u32> {
        let programmed = &mut self.programmed[on_die];
        if *programmed != place {
            return None;
        }
        *programmed += pages;
        if !self.ahead.is_empty()
            && let Some(&(from, to)) = self.ahead.get(&on_die)
            && from == *programmed
        {
            *programmed = to;
            self.ahead.remove(&on_die);
        }
        Some(*programmed - place)
    }

    /// Counts page `page` of `block` as programmed. Returns the number of pages counted, with those that are skipped behind
    /// it, or `None` if the page is not the next one on its die.
    pub(super) fn count(&mut self, block: BlockId, page: u32) -> Option<u32> {
        let (on_die, place) = self.place(block, page);
        self.count_on(on_die, place, 1)
    }

    /// Counts the next `pages` pages of `block` on the die of page `page`, which is the last one counted, as skipped. Returns
    /// the number of pages counted, with those that are skipped behind them.
    pub(super) fn skip_after(&mut self, block: BlockId, page: u32, pages: u32) -> u32 {
        let (on_die, place) = self.place(block, page);
        let counted = self.count_on(on_die, place + 1, pages);
        counted.unwrap_or_else(|| {
            panic!("pages after page {page} of block {} are skipped out of order", block.0)
        })
    }

    /// Skips page `page` of `block`, now or once the pages before it on its die are programmed. No later page on its die is
    /// allocated. Returns the number of pages counted now.
    pub(super) fn skip(&mut self, block: BlockId, page: u32) -> u32 {
        let (on_die, place) = self.place(block, page);
        if let Some(counted) = self.count_on(on_die, place, 1) {
            return counted;
        }
        let (_, to) = self.ahead.entry(on_die).or_insert((place, place));
        assert!(*to == place, "page {page} of block {} is skipped out of order", block.0);
        *to += 1;
        0
    }

    /// Power loss: the pages before those that were to be skipped may never be programmed.
    pub(super) fn forget_ahead(&mut self) {
        self.ahead.clear();
    }

    /// The number of the page after the last one of `block` that has been programmed or skipped.
    pub(super) fn end(&self, block: BlockId) -> u32 {
        let last = |(die, &programmed): (u32, &u32)| {
            programmed.checked_sub(1).map_or(0, |place| self.stripes.page(die, place) + 1)
        };
        (0..).zip(self.of(block)).map(last).max().unwrap_or(0)
    }

    /// Counts the pages of `block` before page `end` as skipped, unless they are programmed. No page from `end` on is.
    pub(super) fn skip_to(&mut self, block: BlockId, end: u32) {
        let stripes = self.stripes;
        for (die, programmed) in (0..).zip(self.of_mut(block)) {
            let before = stripes.before(end, die);
            assert!(*programmed <= before, "a page of block {} from page {end} on is programmed", block.0);
            *programmed = before;
        }
    }

    /// The flash blocks of `block` on the die of page `page` have been erased. Returns whether those on all dies are.
    pub(super) fn erase(&mut self, block: BlockId, page: u32) -> bool {
        let (on_die, _) = self.place(block, page);
        self.programmed[on_die] = 0;
        self.of(block).iter().all(|&programmed| programmed == 0)
    }
}
