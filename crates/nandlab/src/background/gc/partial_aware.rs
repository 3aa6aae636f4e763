//! `gc.victim = "partial-aware"`: the superblock with the fewest valid units; among superblocks with equally few, the
//! one with the fewest partially refreshed units, since moving such a unit takes two reads. With `linked_cost` above 0
//! it is the superblock with the smallest sum of its valid units and `linked_cost` times its partially refreshed units.
//!
//! J. Cui et al. call this GC scheme PGC: "Leveraging partial-refresh for performance and lifetime improvement of 3D
//! NAND flash memory in cyber-physical systems", Journal of Systems Architecture 2020.

use super::{Candidates, Context, VictimPolicy};
use crate::base::policy::{Choice, ParamInfo, PolicyError, PolicyInfo};

pub(super) const INFO: PolicyInfo = PolicyInfo {
    name: "partial-aware",
    description: "the block with the fewest valid pages; among equals, with the fewest partially refreshed valid pages",
    params: &[ParamInfo {
        name: "linked_cost",
        default: Some(0.0),
        min: 0.0,
        max: 100.0,
        whole: false,
        description: "cost of the second read of a partially refreshed page, in valid pages; 0: it decides among equals only",
    }],
};

#[derive(Clone, Debug)]
struct PartialAware {
    linked_cost: f64,
}

pub(super) fn make(choice: &Choice, _context: Context) -> Box<dyn VictimPolicy> {
    Box::new(PartialAware { linked_cost: choice.value(0) })
}

impl VictimPolicy for PartialAware {
    fn pick(&mut self, lane: &Candidates) -> Result<Option<u32>, PolicyError> {
        let Some(first) = lane.least_valid() else { return Ok(None) };
        if self.linked_cost > 0.0 {
            let cost = |&superblock: &u32| {
                let candidate = &lane.superblocks[superblock as usize];
                f64::from(candidate.valid) + self.linked_cost * f64::from(candidate.linked)
            };
            let full = (0..lane.superblocks.len() as u32).filter(|&superblock| lane.is_full(superblock));
            return Ok(full.min_by(|a, b| cost(a).total_cmp(&cost(b))));
        }
        let fewest = lane.superblocks[first as usize].valid;
        let as_few = (first..lane.superblocks.len() as u32).filter(|&superblock| {
            lane.is_full(superblock) && lane.superblocks[superblock as usize].valid == fewest
        });
        Ok(as_few.min_by_key(|&superblock| lane.superblocks[superblock as usize].linked))
    }

    fn remembers_order(&self) -> bool {
        false
    }

    fn fork(&self) -> Box<dyn VictimPolicy> {
        Box::new(self.clone())
    }
}
