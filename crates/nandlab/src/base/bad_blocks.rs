//! Blocks that are bad from the factory (`drive.bad_blocks`), and the superblocks that they cost.
//!
//! A superblock takes a good block of each plane of its lane: in place of a bad one, another one of the same plane. The
//! blocks of a plane are alike, so only their number counts. A lane has as many superblocks as its plane with the
//! fewest good blocks has blocks; the other planes keep good blocks that no superblock uses.
//!
//! The superblocks that cannot be formed are those with the highest numbers of their lane. They are in
//! `SuperblockState::Bad` from the start, and [`Geometry::superblocks_in`] leaves them out. The spec check draws as
//! well: the needs (`SuperblockNeeds`) must fit the lane with the fewest superblocks.

use crate::base::binomial::binomial;
use crate::base::geometry::{Geometry, LaneId};
use crate::base::rng::Stream;
use std::collections::BTreeMap;

/// The planes of a drive, their blocks, and the planes of a lane.
#[derive(Clone, Copy, Debug)]
pub struct Planes {
    /// Planes of the drive.
    pub count: u32,
    /// Blocks of a plane, bad ones included: the superblocks of a lane, missing ones included.
    pub blocks: u32,
    /// Planes of a lane. They are consecutive.
    pub per_lane: u32,
}

/// The bad blocks of a drive. The default has none.
#[derive(Clone, Debug, Default)]
pub struct BadBlocks {
    /// Bad blocks of the drive.
    pub blocks: u64,
    /// Good blocks that no superblock uses.
    pub unused: u64,
    /// Superblocks of the drive that cannot be formed.
    pub missing: u64,
    /// Superblocks that cannot be formed in the lane that lacks the most.
    pub most_missing: u32,
    /// By lane: superblocks that cannot be formed. Empty without `drive.bad_blocks`.
    by_lane: Box<[u32]>,
}

impl BadBlocks {
    /// Draws the number of bad blocks of each plane, each block with probability `share`. The draws do not depend on
    /// the lanes.
    pub fn draw(share: f64, seed: u64, planes: Planes) -> Self {
        if share == 0.0 {
            return Self::default();
        }
        let mut stream = Stream::new(seed, "drive.bad_blocks");
        let mut blocks = 0;
        let of_lane = |_| {
            let drawn = (0..planes.per_lane).map(|_| binomial(&mut stream, planes.blocks, share));
            drawn.inspect(|&bad| blocks += u64::from(bad)).max().unwrap_or(0)
        };
        let by_lane: Box<[u32]> = (0..planes.count / planes.per_lane).map(of_lane).collect();
        let missing = by_lane.iter().map(|&missing| u64::from(missing)).sum();
        Self {
            blocks,
            unused: missing * u64::from(planes.per_lane) - blocks,
            missing,
            most_missing: by_lane.iter().copied().max().unwrap_or(0),
            by_lane,
        }
    }

    /// Number of superblocks of a lane that cannot be formed.
    #[inline]
    pub fn missing_in(&self, lane: LaneId) -> u32 {
        self.by_lane.get(lane.index()).copied().unwrap_or(0)
    }

    /// The mean over all lanes of what `of` returns for the number of superblocks of a lane that cannot be formed.
    /// `None` if `of` returns `None` for a lane.
    pub fn mean(&self, of: impl Fn(u32) -> Option<f64>) -> Option<f64> {
        let mut counts = BTreeMap::new();
        for &missing in &self.by_lane {
            *counts.entry(missing).or_insert(0u32) += 1;
        }
        // Without bad blocks, and with one lane, exactly the value of a lane.
        if counts.len() <= 1 {
            return of(self.most_missing);
        }
        let sum = counts
            .iter()
            .map(|(&missing, &lanes)| Some(of(missing)? * f64::from(lanes)))
            .sum::<Option<f64>>();
        Some(sum? / self.by_lane.len() as f64)
    }

    /// A number that two drives share if each of their lanes has the same superblocks; 0 without bad blocks.
    pub fn fingerprint(&self) -> u64 {
        self.by_lane.iter().fold(0, |hash: u64, &missing| {
            (hash ^ u64::from(missing)).wrapping_mul(0x0000_0100_0000_01b3).rotate_left(17)
        })
    }
}

impl Geometry {
    /// The same geometry with a share `share` of the blocks bad, drawn from `seed`.
    pub fn with_bad_blocks(mut self, share: f64, seed: u64) -> Self {
        let planes = Planes {
            count: self.lanes * self.blocks_per_superblock(),
            blocks: self.superblocks_per_lane,
            per_lane: self.blocks_per_superblock(),
        };
        self.bad = BadBlocks::draw(share, seed, planes);
        self
    }

    /// Number of superblocks that a lane has.
    #[inline]
    pub fn superblocks_in(&self, lane: LaneId) -> u32 {
        self.superblocks_per_lane - self.bad.missing_in(lane)
    }

    /// Number of superblocks that the drive has.
    pub fn good_superblocks(&self) -> u32 {
        self.superblocks - self.bad.missing as u32
    }

    /// Number of units of the superblocks that the drive has.
    pub fn good_units(&self) -> u32 {
        self.good_superblocks() * self.units_per_superblock
    }

    /// Number of superblocks of the lane that has the fewest.
    pub fn fewest_superblocks(&self) -> u32 {
        self.superblocks_per_lane - self.bad.most_missing
    }
}
