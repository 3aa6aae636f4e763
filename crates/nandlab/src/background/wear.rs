//! Static wear levelling: the choice of the cold block that is moved.
//!
//! At intervals, static wear levelling searches for a full block whose P/E cycles lag the plane's mean by more than
//! `ftl.wear_gap`. It moves the (cold) data of this block into the most worn free block, so that the less worn block is
//! used again. Y.-H. Chang, J.-W. Hsieh and T.-W. Kuo, "Endurance enhancement of flash-memory storage systems: an
//! efficient static wear leveling design", DAC 2007.

use crate::flash::{Block, BlockState};

/// The block of a plane that static wear levelling should move: the least worn full block, if its P/E cycles lag the
/// mean of `blocks` by more than `gap`.
pub(super) fn laggard(blocks: &[Block], gap: u32) -> Option<u32> {
    let total: u64 = blocks.iter().map(|b| u64::from(b.pe_cycles)).sum();
    let mean = total / blocks.len() as u64;
    let full = blocks.iter().enumerate().filter(|(_, b)| b.state == BlockState::Full);
    let (index, least) = full.min_by_key(|(_, b)| b.pe_cycles)?;
    (u64::from(least.pe_cycles) + u64::from(gap) < mean).then_some(index as u32)
}
