//! `gc.victim = "cost-benefit"`: the block with the largest age * (1 - u) / (2 u), where u is its valid share and
//! "age" is the time since the block was filled.
//!
//! The policy leaves recently filled blocks time to lose more valid pages, and takes cold blocks at a higher u than hot
//! blocks. A. Kawaguchi, S. Nishioka and H. Motoda, "A flash-memory based file system", USENIX 1995, after M. Rosenblum
//! and J. Ousterhout's log-structured file system. Each choice compares all blocks of the plane.

use super::{Candidates, Context, VictimPolicy};
use crate::base::policy::{Choice, PolicyInfo};

pub(super) const INFO: PolicyInfo = PolicyInfo {
    name: "cost-benefit",
    description: "the block with the largest age * (1 - u) / (2 u), u being its valid share",
    params: &[],
};

#[derive(Clone, Debug)]
struct CostBenefit;

pub(super) fn make(_choice: &Choice, _context: Context) -> Box<dyn VictimPolicy> {
    Box::new(CostBenefit)
}

impl VictimPolicy for CostBenefit {
    fn pick(&mut self, plane: &Candidates) -> Option<u32> {
        let pages = f64::from(plane.pages_per_block);
        let mut best: Option<(f64, u32)> = None;
        for block in 0..plane.blocks.len() as u32 {
            if !plane.is_full(block) {
                continue;
            }
            let candidate = &plane.blocks[block as usize];
            let used = f64::from(candidate.valid) / pages;
            // One nanosecond is added, so that blocks filled at `now` still differ by u.
            let age = ((plane.now - candidate.closed_at).ns() + 1) as f64;
            let score = age * (1.0 - used) / (2.0 * used);
            if best.is_none_or(|(highest, _)| score > highest) {
                best = Some((score, block));
            }
        }
        best.map(|(_, block)| block)
    }
}
