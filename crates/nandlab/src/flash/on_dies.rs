//! The progress of blocks on several dies (`ftl.superblock = "drive"`): each die programs its pages of a block in order.

use crate::base::geometry::{BlockId, Geometry, Stripes};
use crate::base::huge::Huge;

/// By block and die, the number of pages programmed or skipped since the last erase.
#[derive(Debug)]
pub(super) struct OnDies {
    programmed: Huge<u32>,
    stripes: Stripes,
}

impl OnDies {
    pub(super) fn new(geometry: &Geometry) -> Self {
        let dies = (geometry.blocks * geometry.dies_per_block) as usize;
        Self { programmed: Huge::zeroed(dies), stripes: geometry.stripes }
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

    /// Counts page `page` of `block` as programmed or skipped, if it is the next one on its die. Returns whether it is.
    pub(super) fn count(&mut self, block: BlockId, page: u32) -> bool {
        let (on_die, place) = self.place(block, page);
        let programmed = &mut self.programmed[on_die];
        let is_next = *programmed == place;
        *programmed += u32::from(is_next);
        is_next
    }

    /// The flash blocks of `block` on the die of page `page` have been erased. Returns whether those on all dies are.
    pub(super) fn erase(&mut self, block: BlockId, page: u32) -> bool {
        let (on_die, _) = self.place(block, page);
        self.programmed[on_die] = 0;
        self.of(block).iter().all(|&programmed| programmed == 0)
    }
}
