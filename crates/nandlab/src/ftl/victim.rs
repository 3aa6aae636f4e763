//! The trait of victim policies, the view that is a policy's input, and the index that finds the block with the fewest
//! valid pages.

use crate::base::geometry::PlaneId;
use crate::base::units::Time;
use crate::flash::{Block, BlockState};

/// A policy that picks victims. One object serves all planes of a drive.
pub trait VictimPolicy: std::fmt::Debug + Send + Sync {
    /// The block to empty next, counted within the plane; `None` if no block is full. The block must be in
    /// [`BlockState::Full`](crate::flash::BlockState::Full).
    fn pick(&mut self, plane: &Candidates) -> Option<u32>;

    /// `block`, counted within `plane`, has become full.
    fn on_closed(&mut self, _plane: PlaneId, _block: u32) {}
}

/// The number of blocks in a group of [`LeastValid`].
const GROUP: usize = 64;

/// An index of full blocks by valid pages: for each group of 64 blocks of a plane the fewest valid pages of any full
/// block.
///
/// The index is always exact. The number of valid pages of a full block only decreases, so a change takes one `min`.
/// Only when a block ceases to be full is its group searched. To find the block with the fewest valid pages among the n
/// blocks of a plane, n / 64 groups and the blocks of one group are searched.
#[derive(Debug)]
pub struct LeastValid {
    groups: Box<[u32]>,
    groups_per_plane: usize,
}

impl LeastValid {
    /// An index of `planes` planes without full blocks.
    pub fn new(planes: u32, blocks_per_plane: u32) -> Self {
        let groups_per_plane = (blocks_per_plane as usize).div_ceil(GROUP);
        Self { groups: vec![u32::MAX; groups_per_plane * planes as usize].into(), groups_per_plane }
    }

    #[inline(always)]
    fn group(&self, plane: PlaneId, block: u32) -> usize {
        plane.index() * self.groups_per_plane + block as usize / GROUP
    }

    /// Records that `block` of `plane` is full and has `valid` valid pages, fewer than before if it was full already.
    #[inline(always)]
    pub fn lower(&mut self, plane: PlaneId, block: u32, valid: u32) {
        let group = &mut self.groups[self.group(plane, block)];
        *group = (*group).min(valid);
    }

    /// Removes `block` of `plane`, which is no longer full. `blocks` are the plane's blocks.
    pub fn leave(&mut self, plane: PlaneId, block: u32, blocks: &[Block]) {
        let first = block as usize / GROUP * GROUP;
        let group = blocks[first..].iter().take(GROUP);
        let group = group.filter(|b| b.state == BlockState::Full).map(|b| b.valid).min();
        self.groups[self.group(plane, block)] = group.unwrap_or(u32::MAX);
    }

    /// Whether the index of `plane` equals `fewest`, which has the fewest valid pages of each group.
    pub fn agrees(&self, plane: PlaneId, fewest: &[u32]) -> bool {
        self.of(plane) == fewest
    }

    /// The fewest valid pages of any full block of `plane`; `u32::MAX` if no block is full.
    pub fn fewest(&self, plane: PlaneId) -> u32 {
        self.of(plane).iter().copied().min().unwrap_or(u32::MAX)
    }

    fn of(&self, plane: PlaneId) -> &[u32] {
        &self.groups[plane.index() * self.groups_per_plane..][..self.groups_per_plane]
    }
}

/// The blocks of a plane: the input of a victim policy.
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

    /// The full block with the fewest valid pages; if there are several, the one with the lowest number.
    pub fn least_valid(&self) -> Option<u32> {
        let groups = self.index.of(self.plane);
        let fewest = self.index.fewest(self.plane);
        if fewest == u32::MAX {
            return None;
        }
        let first = groups.iter().position(|&valid| valid == fewest)? * GROUP;
        let is_least = |b: &Block| b.state == BlockState::Full && b.valid == fewest;
        let within = self.blocks[first..].iter().take(GROUP).position(is_least);
        Some((first + within.expect("the index agrees with the blocks")) as u32)
    }
}
