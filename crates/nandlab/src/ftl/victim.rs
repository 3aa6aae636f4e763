//! The trait of victim policies, the view that a policy gets, and the index that finds the block with the fewest valid
//! pages.

use crate::base::geometry::PlaneId;
use crate::base::units::Time;
use crate::flash::{Block, BlockState};

/// A policy that picks victims. One object serves all planes of a drive.
pub trait VictimPolicy: std::fmt::Debug + Send + Sync {
    /// The block, counted within the plane, to empty next; `None` when no block is full. The block must be in
    /// [`BlockState::Full`](crate::flash::BlockState::Full).
    fn pick(&mut self, plane: &Candidates) -> Option<u32>;

    /// The last page of `block` (counted within `plane`) has been programmed.
    fn on_closed(&mut self, _plane: PlaneId, _block: u32) {}
}

/// Blocks of a group in [`LeastValid`].
const GROUP: usize = 64;

/// The fewest valid pages of any full block, for each group of 64 blocks of a plane.
///
/// The index is always exact: the valid pages of a full block only become fewer, so a change takes one `min`; only a
/// block that is no longer full takes a search of its group. Finding the block of a plane with the fewest valid pages
/// takes a look at n / 64 groups and at the blocks of one group.
#[derive(Debug)]
pub struct LeastValid {
    groups: Box<[u16]>,
    groups_per_plane: usize,
}

impl LeastValid {
    /// An index of `planes` planes without full blocks.
    pub fn new(planes: u32, blocks_per_plane: u32) -> Self {
        let groups_per_plane = (blocks_per_plane as usize).div_ceil(GROUP);
        Self { groups: vec![u16::MAX; groups_per_plane * planes as usize].into(), groups_per_plane }
    }

    #[inline(always)]
    fn group(&self, plane: PlaneId, block: u32) -> usize {
        plane.index() * self.groups_per_plane + block as usize / GROUP
    }

    /// Takes into account that `block` of `plane` is full and has `valid` valid pages.
    #[inline(always)]
    pub fn lower(&mut self, plane: PlaneId, block: u32, valid: u16) {
        let group = &mut self.groups[self.group(plane, block)];
        *group = (*group).min(valid);
    }

    /// Takes out `block` of `plane`, which is no longer full; `blocks` are the plane's blocks.
    pub fn leave(&mut self, plane: PlaneId, block: u32, blocks: &[Block]) {
        let first = block as usize / GROUP * GROUP;
        let group = blocks[first..].iter().take(GROUP);
        let group = group.filter(|b| b.state == BlockState::Full).map(|b| b.valid).min();
        self.groups[self.group(plane, block)] = group.unwrap_or(u16::MAX);
    }

    /// Whether the index has the counts of `fewest`, one for each group of `plane`.
    pub fn agrees(&self, plane: PlaneId, fewest: &[u16]) -> bool {
        self.of(plane) == fewest
    }

    /// The fewest valid pages of any full block of `plane`; `u16::MAX` when none is full.
    pub fn fewest(&self, plane: PlaneId) -> u16 {
        self.of(plane).iter().copied().min().unwrap_or(u16::MAX)
    }

    fn of(&self, plane: PlaneId) -> &[u16] {
        &self.groups[plane.index() * self.groups_per_plane..][..self.groups_per_plane]
    }
}

/// The blocks of a plane, as a victim policy sees them.
#[derive(Debug)]
pub struct Candidates<'a> {
    /// The plane.
    pub plane: PlaneId,
    /// The plane's blocks; a block in [`BlockState::Full`] may be picked.
    pub blocks: &'a [Block],
    /// Pages of a block.
    pub pages_per_block: u32,
    /// The current simulated time.
    pub now: Time,
    pub(crate) index: &'a LeastValid,
}

impl Candidates<'_> {
    /// Whether `block` may be picked.
    #[inline(always)]
    pub fn is_full(&self, block: u32) -> bool {
        self.blocks[block as usize].state == BlockState::Full
    }

    /// The full block with the fewest valid pages; the lowest-numbered of several.
    pub fn least_valid(&self) -> Option<u32> {
        let groups = self.index.of(self.plane);
        let fewest = self.index.fewest(self.plane);
        if fewest == u16::MAX {
            return None;
        }
        let first = groups.iter().position(|&valid| valid == fewest)? * GROUP;
        let is_least = |b: &Block| b.state == BlockState::Full && b.valid == fewest;
        let within = self.blocks[first..].iter().take(GROUP).position(is_least);
        Some((first + within.expect("the index agrees with the blocks")) as u32)
    }
}
