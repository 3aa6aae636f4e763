//! Counters of the SLC cache.

use crate::base::counters::counters;
use crate::base::geometry::{LaneId, SuperblockId};
use crate::base::numbers::{number, ratio};
use crate::base::section::{Before, Beside, Section};
use crate::flash::{Array, ShapeId, Superblock, SuperblockState};
use crate::ftl::Ftl;
use schemars::JsonSchema;
use serde::Serialize;

counters! {
    /// The SLC cache: units that the host wrote in each mode, and units folded.
    pub struct SlcStats {
        /// Units of the host programmed in SLC mode.
        pub cached: u64, sum of units, life "slc_cached";
        /// Units of the host programmed without SLC mode.
        pub direct: u64, sum of units, life "slc_direct";
        /// Superblocks that folding began to empty.
        pub blocks: u64, sum of blocks, life "slc_folded_blocks";
        /// Valid units of the superblocks folded in idle time, when folding began.
        pub folded_idle: u64, sum of units, summary "folded.idle";
        /// Valid units of the superblocks folded above the watermark or for a waiting write, when folding began.
        pub folded_full: u64, sum of units, summary "folded.full";
        /// Valid units of the superblocks folded because a lane was short of space, when folding began.
        pub folded_space: u64, sum of units, summary "folded.space";
    }
}

impl SlcStats {
    /// The value of `slc` in the summary of a drive whose superblocks retire at `endurance` P/E cycles.
    pub(crate) fn summary(&self, array: &Array, ftl: &Ftl, endurance: u32) -> SlcSummary {
        let ids = || (0..).map(SuperblockId).zip(array.superblocks.iter());
        let good = || ids().filter(|(_, superblock)| superblock.state != SuperblockState::Bad);
        let in_mode = || good().filter(|&(id, _)| array.shape_id(id) == ShapeId::SLC);
        let cycles: u64 = good().map(|(id, _)| u64::from(array.slc_cycles(id))).sum();
        let ageing = array.shapes().ageing(ShapeId::SLC);
        let others = |(id, superblock): (SuperblockId, &Superblock)| {
            u64::from(superblock.pe_cycles) - u64::from(ageing.wear(array.slc_cycles(id)))
        };
        let native: u64 = good().map(others).sum();
        let superblocks = good().count() as f64;
        let lanes = (0..ftl.lanes.len() as u32).map(LaneId);
        let values = SlcValues {
            slc_blocks: in_mode().count() as u32,
            slc_blocks_max: lanes.map(|lane| ftl.slc_limit(lane)).sum(),
            valid_pages: in_mode().map(|(_, superblock)| superblock.valid).sum(),
            cycles_mean: number(ratio(cycles as f64, superblocks)),
            wear: SlcWear {
                slc: number(ratio(cycles as f64, superblocks * f64::from(ageing.endurance))),
                native: number(ratio(native as f64, superblocks * f64::from(endurance))),
            },
        };
        Section { counters: self.clone(), values }
    }
}

/// The SLC cache.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
#[schemars(rename = "SlcSummary")]
pub struct SlcValues {
    /// Superblocks in SLC mode at the end of the run.
    #[schemars(extend("unit" = "blocks"))]
    pub slc_blocks: u32,
    /// The number up to which the host may open further superblocks in SLC mode at the end of the run. It falls as blocks
    /// without SLC mode fill, and blocks in the mode stay in it, so it may be below their number.
    #[schemars(extend("unit" = "blocks"))]
    pub slc_blocks_max: u32,
    /// Valid units in superblocks in SLC mode at the end of the run.
    #[schemars(extend("unit" = "units"))]
    pub valid_pages: u32,
    /// P/E cycles in SLC mode, mean of the superblocks.
    pub cycles_mean: f64,
    /// Wear by mode.
    pub wear: SlcWear,
}

/// Wear by mode: P/E cycles over the endurance of the mode, mean of the superblocks. The two add up; a superblock
/// retires at 1.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct SlcWear {
    /// Wear by cycles in SLC mode.
    #[schemars(extend("unit" = "share"))]
    pub slc: f64,
    /// Wear by other cycles.
    #[schemars(extend("unit" = "share"))]
    pub native: f64,
}

impl Beside for SlcValues {
    const BEFORE: Before = &[];
}

/// The value of `slc` in the summary.
pub type SlcSummary = Section<SlcStats, SlcValues>;
