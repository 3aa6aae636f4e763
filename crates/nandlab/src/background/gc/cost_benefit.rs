//! `gc.victim = "cost-benefit"`: the superblock with the largest age * (1 - u) / (2 u), where u is its valid share and
//! "age" is the time since the superblock was filled.
//!
//! The policy leaves recently filled superblocks time to lose more valid units, and takes cold superblocks at a higher
//! u than hot superblocks. A. Kawaguchi, S. Nishioka and H. Motoda, "A flash-memory based file system", USENIX 1995,
//! after M. Rosenblum and J. Ousterhout's log-structured file system. Each choice compares all superblocks of the lane.

use super::{Candidates, Context, VictimPolicy};
use crate::base::policy::{Choice, PolicyError, PolicyInfo};

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
    fn pick(&mut self, lane: &Candidates) -> Result<Option<u32>, PolicyError> {
        Ok(match lane.shapes.only() {
            Some(shape) => best(lane, |_| shape.units),
            None => best(lane, |superblock| lane.shapes.at(superblock).units),
        })
    }

    fn remembers_order(&self) -> bool {
        false
    }

    fn fork(&self) -> Box<dyn VictimPolicy> {
        Box::new(self.clone())
    }
}

/// The superblock with the highest score; `units` returns the number of units of a superblock.
fn best(lane: &Candidates, units: impl Fn(u32) -> u32) -> Option<u32> {
    let mut best: Option<(f64, u32)> = None;
    for superblock in 0..lane.superblocks.len() as u32 {
        if !lane.is_full(superblock) {
            continue;
        }
        let candidate = &lane.superblocks[superblock as usize];
        let used = f64::from(candidate.valid) / f64::from(units(superblock));
        // One nanosecond is added, so that superblocks filled at `now` still differ by u.
        let age = ((lane.now - candidate.closed_at).ns() + 1) as f64;
        let score = age * (1.0 - used) / (2.0 * used);
        if best.is_none_or(|(highest, _)| score > highest) {
            best = Some((score, superblock));
        }
    }
    best.map(|(_, superblock)| superblock)
}
