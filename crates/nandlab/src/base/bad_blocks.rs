//! Flash blocks that are bad from the factory (`drive.bad_blocks`), and the blocks that they cost.
//!
//! A block takes a good flash block of each of its planes: in place of a bad one, another one of the same plane. The
//! flash blocks of a plane are alike, so only their number counts. A group of planes has as many blocks as the plane with
//! the fewest good flash blocks; the other planes keep good flash blocks that no block uses.

use crate::base::binomial::binomial;
use crate::base::geometry::{Geometry, PlaneId};
use crate::base::rng::Stream;
use std::collections::BTreeMap;

/// The flash planes of a drive, their flash blocks, and the flash planes that have a block together.
#[derive(Clone, Copy, Debug)]
pub struct FlashPlanes {
    /// Flash planes of the drive.
    pub count: u32,
    /// Flash blocks of a flash plane, and blocks of a plane without bad ones.
    pub blocks: u32,
    /// Consecutive flash planes that are a plane.
    pub per_plane: u32,
}

/// The bad flash blocks of a drive. The default has none.
#[derive(Clone, Debug, Default)]
pub struct BadBlocks {
    /// Bad flash blocks of the drive.
    pub flash_blocks: u64,
    /// Good flash blocks that no block uses.
    pub unused: u64,
    /// Blocks of the drive that cannot be formed.
    pub missing: u64,
    /// Blocks that cannot be formed in the plane that lacks the most.
    pub most_missing: u32,
    /// By plane: blocks that cannot be formed. Empty without `drive.bad_blocks`.
    by_plane: Box<[u32]>,
}

impl BadBlocks {
    /// Draws the number of bad flash blocks of each flash plane, each flash block with probability `share`. The draws do
    /// not depend on how the planes are grouped.
    pub fn draw(share: f64, seed: u64, planes: FlashPlanes) -> Self {
        if share == 0.0 {
            return Self::default();
        }
        let mut stream = Stream::new(seed, "drive.bad_blocks");
        let mut flash_blocks = 0;
        let of_group = |_| {
            let drawn = (0..planes.per_plane).map(|_| binomial(&mut stream, planes.blocks, share));
            drawn.inspect(|&bad| flash_blocks += u64::from(bad)).max().unwrap_or(0)
        };
        let by_plane: Box<[u32]> = (0..planes.count / planes.per_plane).map(of_group).collect();
        let missing = by_plane.iter().map(|&missing| u64::from(missing)).sum();
        Self {
            flash_blocks,
            unused: missing * u64::from(planes.per_plane) - flash_blocks,
            missing,
            most_missing: by_plane.iter().copied().max().unwrap_or(0),
            by_plane,
        }
    }

    /// The blocks of a plane that cannot be formed.
    #[inline]
    pub fn missing_in(&self, plane: PlaneId) -> u32 {
        self.by_plane.get(plane.index()).copied().unwrap_or(0)
    }

    /// The mean over all planes of what `of` returns for the blocks of a plane that cannot be formed. `None` if it
    /// returns `None` for a plane.
    pub fn mean(&self, of: impl Fn(u32) -> Option<f64>) -> Option<f64> {
        let mut counts = BTreeMap::new();
        for &missing in &self.by_plane {
            *counts.entry(missing).or_insert(0u32) += 1;
        }
        // Without bad flash blocks, and with one group of planes, exactly the value of a plane.
        if counts.len() <= 1 {
            return of(self.most_missing);
        }
        let sum = counts
            .iter()
            .map(|(&missing, &planes)| Some(of(missing)? * f64::from(planes)))
            .sum::<Option<f64>>();
        Some(sum? / self.by_plane.len() as f64)
    }

    /// A number that two drives share if each of their planes has the same blocks; 0 without bad flash blocks.
    pub fn fingerprint(&self) -> u64 {
        self.by_plane.iter().fold(0, |hash: u64, &missing| {
            (hash ^ u64::from(missing)).wrapping_mul(0x0000_0100_0000_01b3).rotate_left(17)
        })
    }
}

impl Geometry {
    /// The same geometry with a share `share` of the flash blocks bad, drawn from `seed`.
    pub fn with_bad_blocks(mut self, share: f64, seed: u64) -> Self {
        let planes = FlashPlanes {
            count: self.planes * self.flash_blocks_per_block(),
            blocks: self.blocks_per_plane,
            per_plane: self.flash_blocks_per_block(),
        };
        self.bad = BadBlocks::draw(share, seed, planes);
        self
    }

    /// The blocks that a plane has.
    #[inline]
    pub fn blocks_in(&self, plane: PlaneId) -> u32 {
        self.blocks_per_plane - self.bad.missing_in(plane)
    }

    /// The blocks that the drive has.
    pub fn good_blocks(&self) -> u32 {
        self.blocks - self.bad.missing as u32
    }

    /// The pages of the blocks that the drive has.
    pub fn good_pages(&self) -> u32 {
        self.good_blocks() * self.pages_per_block
    }

    /// The blocks of the plane that has the fewest.
    pub fn fewest_blocks(&self) -> u32 {
        self.blocks_per_plane - self.bad.most_missing
    }
}
