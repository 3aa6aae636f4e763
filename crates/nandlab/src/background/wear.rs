//! Static wear levelling: the choice of the cold superblock that is moved.
//!
//! At intervals, static wear levelling searches for a full superblock whose P/E cycles lag the lane's mean by more than
//! `ftl.wear_gap`. It moves the (cold) data of this superblock into the most worn free superblock, so that the less
//! worn superblock is used again. Y.-H. Chang, J.-W. Hsieh and T.-W. Kuo, "Endurance enhancement of flash-memory
//! storage systems: an efficient static wear leveling design", DAC 2007.

use crate::base::policy::PolicyError;
use crate::ftl::{Candidates, VictimPolicy};

/// Picks the least worn full superblock of a lane, if its P/E cycles lag the mean of the lane by more than `gap`.
#[derive(Clone, Debug)]
pub(crate) struct Laggard {
    pub(crate) gap: u32,
}

impl VictimPolicy for Laggard {
    fn pick(&mut self, lane: &Candidates) -> Result<Option<u32>, PolicyError> {
        let total: u64 = lane.superblocks.iter().map(|b| u64::from(b.pe_cycles)).sum();
        let mean = total / lane.superblocks.len() as u64;
        let full = (0..lane.superblocks.len() as u32).filter(|&superblock| lane.is_full(superblock));
        let pe_cycles = |superblock: u32| lane.superblocks[superblock as usize].pe_cycles;
        let least = full.min_by_key(|&superblock| pe_cycles(superblock));
        Ok(least.filter(|&least| u64::from(pe_cycles(least)) + u64::from(self.gap) < mean))
    }

    fn fork(&self) -> Box<dyn VictimPolicy> {
        Box::new(self.clone())
    }
}
