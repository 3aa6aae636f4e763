//! `gc.victim = "greedy"`: the superblock with the fewest valid units.
//!
//! The policy moves the fewest units now. It is optimal under uniform random writes; its write amplification is derived
//! in W. Bux and I. Iliadis, "Performance of greedy garbage collection in flash-based solid-state drives", Performance
//! Evaluation 67 (2010), and P. Desnoyers, "Analytic models of SSD write performance", ACM TOS 10 (2014).

use super::{Candidates, Context, VictimPolicy};
use crate::base::policy::{Choice, PolicyError, PolicyInfo};

pub(super) const INFO: PolicyInfo =
    PolicyInfo { name: "greedy", description: "the block with the fewest valid pages", params: &[] };

#[derive(Clone, Debug)]
struct Greedy;

pub(super) fn make(_choice: &Choice, _context: Context) -> Box<dyn VictimPolicy> {
    Box::new(Greedy)
}

impl VictimPolicy for Greedy {
    fn pick(&mut self, lane: &Candidates) -> Result<Option<u32>, PolicyError> {
        Ok(lane.least_valid())
    }

    fn remembers_order(&self) -> bool {
        false
    }

    fn fork(&self) -> Box<dyn VictimPolicy> {
        Box::new(self.clone())
    }
}
