//! Static wear levelling: the choice of the cold superblock that is moved.
//!
//! At intervals, static wear levelling searches for a full superblock whose P/E cycles lag the lane's mean by more than
//! `ftl.wear_gap`. It moves the (cold) data of this superblock into the most worn free superblock, so that the less
//! worn superblock is used again. Y.-H. Chang, J.-W. Hsieh and T.-W. Kuo, "Endurance enhancement of flash-memory
//! storage systems: an efficient static wear leveling design", DAC 2007.

use crate::flash::{Superblock, SuperblockState};

/// The superblock of a lane that static wear levelling should move: the least worn full superblock, if its P/E cycles
/// lag the mean of `superblocks` by more than `gap`.
pub(super) fn laggard(superblocks: &[Superblock], gap: u32) -> Option<u32> {
    let total: u64 = superblocks.iter().map(|b| u64::from(b.pe_cycles)).sum();
    let mean = total / superblocks.len() as u64;
    let full = superblocks.iter().enumerate().filter(|(_, b)| b.state == SuperblockState::Full);
    let (index, least) = full.min_by_key(|(_, b)| b.pe_cycles)?;
    (u64::from(least.pe_cycles) + u64::from(gap) < mean).then_some(index as u32)
}
