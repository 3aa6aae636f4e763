//! The pages to which an emergency flush writes, die by die.
//!
//! `plain` takes the next page of the host's stream, as a host write does. `csw` (capacitance-saving writing, Section
//! IV-C of the aging-capacitor paper) takes the fast pages of free blocks.
//!
//! On planar MLC the fast pages are the LSB pages. Eq. 6 gives the number of pages that the flush requires of each free
//! block. If this is at most half of a block, only LSB pages are used. If it is more, Eq. 7 gives the number of
//! wordlines at the start of the block of which only the LSB page is used. On 3D cells the fast pages are in the lowest
//! layers, and `csw` uses as many layers as the flush requires of each free block.
//!
//! Pages of one kind or layer are equally fast. So the blocks of a die are filled one after the other, each up to the
//! same page: the flush takes no longer than with all blocks in parallel, and may leave blocks free.

use super::{AllocatedPage, Ftl};
use crate::base::geometry::{BlockId, Cell, DieId, Geometry, PlaneId};
use crate::flash::Array;
use crate::spec::choices;

choices! {
    /// `capacitor.flush`: how dirty pages are written at power loss.
    #[derive(Clone, Copy, Debug, PartialEq, Eq)]
    pub enum FlushMethod {
        /// Ordinary allocation.
        Plain = "plain": "ordinary allocation",
        /// Capacitance-saving: dies in parallel, fast pages first.
        Csw = "csw": "capacitance-saving: dies in parallel, fast pages first",
    }
}

/// The free blocks that a flush has taken on a die.
#[derive(Clone, Debug, Default)]
struct OnDie {
    blocks: Vec<BlockId>,
    /// The index in `blocks` of the block that is written now, and the block's next page.
    at: usize,
    page: u32,
    /// Whether no free block is left, so that the pages beyond `depth` of the blocks taken are used.
    is_last_round: bool,
}

/// The pages to which a flush writes, one after another.
#[derive(Clone, Debug)]
pub struct FlushPages {
    method: FlushMethod,
    dies: Box<[OnDie]>,
    /// The dies in the order in which they are served, and the index of the die whose turn it is.
    order: Box<[DieId]>,
    turn: usize,
    /// The number of wordlines at the start of each block of which only the LSB page is used.
    lsb_only: u32,
    /// The number of pages of each block that are used before a further block is taken.
    depth: u32,
}

impl FlushPages {
    /// Prepares a flush of about `pages` pages on the drive in its present state.
    pub fn new(method: FlushMethod, geometry: &Geometry, ftl: &Ftl, pages: u32) -> Self {
        let die = |index: u32| match method {
            FlushMethod::Plain => DieId(index),
            // The channel varies fastest, then the die, then the chip.
            FlushMethod::Csw => {
                let (rest, channel) = (index / geometry.channels, index % geometry.channels);
                let (chip, die) = (rest / geometry.dies_per_chip, rest % geometry.dies_per_chip);
                DieId((channel * geometry.chips_per_channel + chip) * geometry.dies_per_chip + die)
            }
        };
        let required = required_pages(geometry, ftl, pages);
        let per_block = geometry.pages_per_block;
        let (lsb_only, depth) = match geometry.cell {
            Cell::Slc => (0, per_block),
            // Eq. 7: pages of a block less the pages required of the block.
            Cell::Mlc if required > per_block / 2 => (per_block.saturating_sub(required), per_block),
            Cell::Mlc => (per_block.div_ceil(2), per_block),
            Cell::Mlc3d | Cell::Tlc3d => {
                let per_layer = per_block.div_ceil(geometry.layers).max(1);
                (0, (required.div_ceil(per_layer) * per_layer).clamp(1, per_block))
            }
        };
        Self {
            method,
            dies: vec![OnDie::default(); geometry.dies as usize].into(),
            order: (0..geometry.dies).map(die).collect(),
            turn: 0,
            lsb_only,
            depth,
        }
    }

    /// The next page: on the first die, in turn, that is not `busy` and has a page left. `None` if there is no such
    /// die.
    pub fn next(
        &mut self,
        geometry: &Geometry,
        array: &mut Array,
        ftl: &mut Ftl,
        busy: impl Fn(DieId) -> bool,
    ) -> Option<AllocatedPage> {
        for step in 0..self.order.len() {
            let turn = (self.turn + step) % self.order.len();
            let die = self.order[turn];
            if busy(die) {
                continue;
            }
            let allocated = match self.method {
                FlushMethod::Plain => ftl.allocate_for_flush(geometry, array, die),
                FlushMethod::Csw => self.fast_page(die, geometry, array, ftl),
            };
            if allocated.is_some() {
                self.turn = turn + 1;
                return allocated;
            }
        }
        None
    }

    fn fast_page(
        &mut self,
        die: DieId,
        geometry: &Geometry,
        array: &mut Array,
        ftl: &mut Ftl,
    ) -> Option<AllocatedPage> {
        let end = geometry.pages_per_block;
        let on_die = &mut self.dies[die.index()];
        if !on_die.is_last_round {
            if on_die.page >= self.depth {
                (on_die.at, on_die.page) = (on_die.at + 1, 0);
            }
            if on_die.at == on_die.blocks.len() {
                match ftl.take_flush_block(geometry, array, die) {
                    Some(block) => on_die.blocks.push(block),
                    None => (on_die.is_last_round, on_die.at, on_die.page) = (true, 0, self.depth),
                }
            }
        } else if on_die.page >= end {
            (on_die.at, on_die.page) = (on_die.at + 1, self.depth);
        }
        if on_die.at >= on_die.blocks.len() || on_die.page >= end {
            return None;
        }
        let (block, page) = (on_die.blocks[on_die.at], on_die.page);
        let skips = u32::from(page % 2 == 0 && page / 2 < self.lsb_only && page + 1 < end);
        on_die.page = page + 1 + skips;
        Some(AllocatedPage { ppn: geometry.page(block, page), opened: page == 0, skips: skips as u8 })
    }

    /// The blocks taken by the flush that have unused pages.
    pub fn unfilled(&self, pages_per_block: u32) -> impl Iterator<Item = BlockId> + '_ {
        let depth = self.depth;
        self.dies.iter().flat_map(move |die| {
            let next = move |index: usize| match index.cmp(&die.at) {
                std::cmp::Ordering::Equal => die.page,
                std::cmp::Ordering::Less if die.is_last_round => pages_per_block,
                std::cmp::Ordering::Less | std::cmp::Ordering::Greater => depth,
            };
            let blocks = die.blocks.iter().enumerate();
            blocks.filter(move |&(index, _)| next(index) < pages_per_block).map(|(_, &block)| block)
        })
    }
}

/// Eq. 6: the number of pages required of each free block, if each die provides as many blocks as the die with the
/// fewest free blocks. Dies without free blocks are left out.
fn required_pages(geometry: &Geometry, ftl: &Ftl, pages: u32) -> u32 {
    let blocks = |die: u32| -> u32 {
        let first = die * geometry.planes_per_die;
        (first..first + geometry.planes_per_die).map(|plane| ftl.flush_blocks(PlaneId(plane))).sum()
    };
    let free: Vec<u32> = (0..geometry.dies).map(blocks).filter(|&blocks| blocks > 0).collect();
    match free.iter().min() {
        Some(&fewest) => pages.div_ceil(free.len() as u32 * fewest),
        None => 0,
    }
}
