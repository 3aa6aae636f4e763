//! `gc.victim = "partial-aware"`: the block with the fewest valid pages; among blocks with equally few, the one with
//! the fewest partially refreshed pages, since moving such a page takes two reads. With `linked_cost` above 0 it is the
//! block with the smallest sum of its valid pages and `linked_cost` times its partially refreshed pages.
//!
//! J. Cui et al. call this GC scheme PGC: "Leveraging partial-refresh for performance and lifetime improvement of 3D
//! NAND flash memory in cyber-physical systems", Journal of Systems Architecture 2020.

use super::{Candidates, Context, VictimPolicy};
use crate::base::policy::{Choice, ParamInfo, PolicyInfo};

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
    fn pick(&mut self, plane: &Candidates) -> Option<u32> {
        let first = plane.least_valid()?;
        if self.linked_cost > 0.0 {
            let cost = |&block: &u32| {
                let candidate = &plane.blocks[block as usize];
                f64::from(candidate.valid) + self.linked_cost * f64::from(candidate.linked)
            };
            let full = (0..plane.blocks.len() as u32).filter(|&block| plane.is_full(block));
            return full.min_by(|a, b| cost(a).total_cmp(&cost(b)));
        }
        let fewest = plane.blocks[first as usize].valid;
        let as_few = (first..plane.blocks.len() as u32)
            .filter(|&block| plane.is_full(block) && plane.blocks[block as usize].valid == fewest);
        as_few.min_by_key(|&block| plane.blocks[block as usize].linked)
    }
}
