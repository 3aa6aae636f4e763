//! Static wear levelling: which cold block is moved.
//!
//! It looks, at times, for a full block that has fallen behind the plane's mean by `ftl.wear_gap` cycles, and moves its
//! (cold) data into the most worn free block, so that the young block takes part again. Y.-H. Chang, J.-W. Hsieh
//! and T.-W. Kuo, "Endurance enhancement of flash-memory storage systems: an efficient static wear leveling
//! design", DAC 2007.

use crate::flash::{Block, BlockState};

/// The block of a plane that static wear levelling should move: the least worn full one, if it lags the mean by
/// more than `gap` cycles.
pub(super) fn laggard(blocks: &[Block], gap: u32) -> Option<u32> {
    let total: u64 = blocks.iter().map(|b| u64::from(b.pe_cycles)).sum();
    let mean = total / blocks.len() as u64;
    let full = blocks.iter().enumerate().filter(|(_, b)| b.state == BlockState::Full);
    let (index, least) = full.min_by_key(|(_, b)| b.pe_cycles)?;
    (u64::from(least.pe_cycles) + u64::from(gap) < mean).then_some(index as u32)
}
