//! `gc.victim = "partial-aware"`: the block with the fewest valid pages; among blocks with equally few, the one with
//! the fewest partially refreshed pages, since moving such a page takes two reads.
//!
//! J. Cui et al. call this GC scheme PGC: "Leveraging partial-refresh for performance and lifetime improvement of 3D
//! NAND flash memory in cyber-physical systems", Journal of Systems Architecture 2020.

use super::{Candidates, Context, VictimPolicy};
use crate::base::policy::{Choice, PolicyInfo};

pub(super) const INFO: PolicyInfo = PolicyInfo {
    name: "partial-aware",
    description: "the block with the fewest valid pages; among equals, with the fewest partially refreshed valid pages",
    params: &[],
};

#[derive(Debug)]
struct PartialAware;

pub(super) fn make(_choice: &Choice, _context: Context) -> Box<dyn VictimPolicy> {
    Box::new(PartialAware)
}

impl VictimPolicy for PartialAware {
    fn pick(&mut self, plane: &Candidates) -> Option<u32> {
        let first = plane.least_valid()?;
        let fewest = plane.blocks[first as usize].valid;
        let as_few = (first..plane.blocks.len() as u32)
            .filter(|&block| plane.is_full(block) && plane.blocks[block as usize].valid == fewest);
        as_few.min_by_key(|&block| plane.blocks[block as usize].linked)
    }
}
