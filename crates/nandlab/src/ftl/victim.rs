//! The trait of victim policies, the view that is a policy's input, and the index that finds the block with the fewest
//! valid pages.

use crate::base::geometry::PlaneId;
use crate::base::units::Time;
use crate::flash::{Block, BlockState};

/// A policy that picks victims. One object serves all planes of a drive.
pub trait VictimPolicy: CopyPolicy + std::fmt::Debug + Send + Sync {
    /// The block to empty next, counted within the plane; `None` if no block is full. The block must be in
    /// [`BlockState::Full`](crate::flash::BlockState::Full).
    fn pick(&mut self, plane: &Candidates) -> Option<u32>;

    /// `block`, counted within `plane`, has become full.
    fn on_closed(&mut self, _plane: PlaneId, _block: u32) {}
}

/// A copy of a victim policy with its state. Every policy that is [`Clone`] has it.
pub trait CopyPolicy {
    /// The copy.
    fn copy(&self) -> Box<dyn VictimPolicy>;
}

impl<T: VictimPolicy + Clone + 'static> CopyPolicy for T {
    fn copy(&self) -> Box<dyn VictimPolicy> {
        Box::new(self.clone())
    }
}

impl Clone for Box<dyn VictimPolicy> {
    fn clone(&self) -> Self {
        (**self).copy()
    }
}

/// The victim policy of a drive, compared with `greedy`.
#[derive(Clone, Debug)]
pub(crate) struct Picks {
    policy: Box<dyn VictimPolicy>,
    /// Whether every block that the policy has picked so far, in preconditioning too, is the one that `greedy` would
    /// have picked.
    pub(crate) are_as_greedy: bool,
}

impl Picks {
    pub(super) fn new(policy: Box<dyn VictimPolicy>) -> Self {
        Self { policy, are_as_greedy: true }
    }

    pub(super) fn pick(&mut self, plane: &Candidates) -> Option<u32> {
        let within = self.policy.pick(plane)?;
        assert!(plane.is_full(within), "{:?} picked a block that is not full", self.policy);
        self.are_as_greedy = self.are_as_greedy && plane.least_valid() == Some(within);
        Some(within)
    }

    pub(super) fn on_closed(&mut self, plane: PlaneId, block: u32) {
        self.policy.on_closed(plane, block);
    }
}

/// The number of blocks in a group of [`LeastValid`], and of groups in a row.
const GROUP: usize = 64;

/// An index of full blocks by valid pages: for each group of 64 blocks of a plane, and for each row of 64 groups, the
/// fewest valid pages of any full block.
///
/// The index is always exact. The number of valid pages of a full block only decreases, so a change takes one `min`, and
/// another one if it is the lowest of its group. Only when a block ceases to be full are its group and its row searched.
/// To find the block with the fewest valid pages among the n blocks of a plane, n / 4096 rows, one row and one group are
/// searched.
#[derive(Clone, Debug)]
pub struct LeastValid {
    groups: Box<[u32]>,
    groups_per_plane: usize,
    rows: Box<[u32]>,
    rows_per_plane: usize,
}

impl LeastValid {
    /// An index of `planes` planes without full blocks.
    pub fn new(planes: u32, blocks_per_plane: u32) -> Self {
        let groups_per_plane = (blocks_per_plane as usize).div_ceil(GROUP);
        let rows_per_plane = groups_per_plane.div_ceil(GROUP);
        let without = |count: usize| vec![u32::MAX; count * planes as usize].into();
        Self {
            groups: without(groups_per_plane),
            groups_per_plane,
            rows: without(rows_per_plane),
            rows_per_plane,
        }
    }

    #[inline(always)]
    fn group(&self, plane: PlaneId, block: u32) -> usize {
        plane.index() * self.groups_per_plane + block as usize / GROUP
    }

    #[inline(always)]
    fn row(&self, plane: PlaneId, block: u32) -> usize {
        plane.index() * self.rows_per_plane + block as usize / (GROUP * GROUP)
    }

    /// Records that `block` of `plane` is full and has `valid` valid pages, fewer than before if it was full already.
    #[inline(always)]
    pub fn lower(&mut self, plane: PlaneId, block: u32, valid: u32) {
        let group = &mut self.groups[self.group(plane, block)];
        if valid < *group {
            *group = valid;
            let row = &mut self.rows[self.row(plane, block)];
            *row = (*row).min(valid);
        }
    }

    /// Removes `block` of `plane`, which is no longer full. `blocks` are the plane's blocks.
    pub fn leave(&mut self, plane: PlaneId, block: u32, blocks: &[Block]) {
        let first = block as usize / GROUP * GROUP;
        let group = blocks[first..].iter().take(GROUP);
        let group = group.filter(|b| b.state == BlockState::Full).map(|b| b.valid).min();
        self.groups[self.group(plane, block)] = group.unwrap_or(u32::MAX);
        let least = self.of_row(plane, block as usize / (GROUP * GROUP)).iter().copied().min();
        self.rows[self.row(plane, block)] = least.unwrap_or(u32::MAX);
    }

    /// Whether the index of `plane` equals `fewest`, which has the fewest valid pages of each group.
    pub fn agrees(&self, plane: PlaneId, fewest: &[u32]) -> bool {
        let rows = fewest.chunks(GROUP).map(|row| row.iter().copied().min().unwrap_or(u32::MAX));
        self.of(plane) == fewest && self.rows_of(plane).iter().copied().eq(rows)
    }

    /// The fewest valid pages of any full block of `plane`; `u32::MAX` if no block is full.
    pub fn fewest(&self, plane: PlaneId) -> u32 {
        self.rows_of(plane).iter().copied().min().unwrap_or(u32::MAX)
    }

    /// The first group of `plane` that has a block with `valid` valid pages, the fewest of any full block.
    fn first_group(&self, plane: PlaneId, valid: u32) -> Option<usize> {
        let row = self.rows_of(plane).iter().position(|&least| least == valid)?;
        let group = self.of_row(plane, row).iter().position(|&least| least == valid)?;
        Some(row * GROUP + group)
    }

    fn of(&self, plane: PlaneId) -> &[u32] {
        &self.groups[plane.index() * self.groups_per_plane..][..self.groups_per_plane]
    }

    fn rows_of(&self, plane: PlaneId) -> &[u32] {
        &self.rows[plane.index() * self.rows_per_plane..][..self.rows_per_plane]
    }

    /// The groups of a row of `plane`.
    fn of_row(&self, plane: PlaneId, row: usize) -> &[u32] {
        let groups = &self.of(plane)[row * GROUP..];
        &groups[..groups.len().min(GROUP)]
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
        let fewest = self.index.fewest(self.plane);
        if fewest == u32::MAX {
            return None;
        }
        let first = self.index.first_group(self.plane, fewest)? * GROUP;
        let is_least = |b: &Block| b.state == BlockState::Full && b.valid == fewest;
        let within = self.blocks[first..].iter().take(GROUP).position(is_least);
        Some((first + within.expect("the index agrees with the blocks")) as u32)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::base::rng::Stream;

    /// The naive twin of the index looks at every block.
    #[test]
    fn the_index_finds_the_first_block_with_the_fewest_valid_pages() {
        for blocks_per_plane in [1, 63, 64, 65, 4096, 4097, 9000] {
            let mut stream = Stream::new(u64::from(blocks_per_plane), "least valid");
            let mut blocks = vec![Block::default(); 2 * blocks_per_plane as usize];
            let mut index = LeastValid::new(2, blocks_per_plane);
            for _ in 0..6000 {
                let plane = stream.below(2) as usize;
                let within = stream.below(blocks_per_plane.into()) as u32;
                let of_plane = &mut blocks[plane * blocks_per_plane as usize..][..blocks_per_plane as usize];
                let block = &mut of_plane[within as usize];
                let plane = PlaneId(plane as u32);
                if block.state != BlockState::Full {
                    (block.state, block.valid) = (BlockState::Full, 100 + stream.below(400) as u32);
                    index.lower(plane, within, block.valid);
                } else if stream.below(3) > 0 && block.valid > 0 {
                    block.valid -= 1 + stream.below(block.valid.min(50).into()) as u32;
                    index.lower(plane, within, block.valid);
                } else {
                    block.state = BlockState::Open;
                    index.leave(plane, within, of_plane);
                }
                let full = of_plane.iter().enumerate().filter(|(_, block)| block.state == BlockState::Full);
                let least = full.min_by_key(|(_, block)| block.valid).map(|(within, _)| within as u32);
                let candidates = Candidates {
                    plane,
                    blocks: of_plane,
                    pages_per_block: 500,
                    now: Time::START,
                    index: &index,
                };
                assert_eq!(candidates.least_valid(), least, "{blocks_per_plane} blocks");
            }
        }
    }
}
