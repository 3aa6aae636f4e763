//! `gc.victim = "fifo"`: the block that was filled first, whatever its valid pages.
//!
//! Also known as LRU or circular cleaning. Under uniform random writes its write amplification is
//! a / (a + W(-a e^-a)) with a = 1 + effective over-provisioning and W the Lambert function: L. Xiang and
//! B. Kurkoski, "An improved analytic expression for write amplification in NAND flash", ICNC 2012; the same result in
//! P. Desnoyers, "Analytic models of SSD write performance", ACM TOS 10 (2014).

use super::{Candidates, Context, VictimPolicy};
use crate::base::geometry::PlaneId;
use crate::base::policy::{Choice, PolicyInfo};
use std::collections::VecDeque;

pub(super) const INFO: PolicyInfo =
    PolicyInfo { name: "fifo", description: "the block that was filled first", params: &[] };

#[derive(Clone, Debug)]
struct Fifo {
    /// By plane, its blocks in the order in which they were filled.
    filled: Vec<VecDeque<u32>>,
}

pub(super) fn make(_choice: &Choice, context: Context) -> Box<dyn VictimPolicy> {
    Box::new(Fifo { filled: vec![VecDeque::new(); context.planes as usize] })
}

impl VictimPolicy for Fifo {
    fn pick(&mut self, plane: &Candidates) -> Option<u32> {
        let filled = &mut self.filled[plane.plane.index()];
        // A block that another job has emptied in the meantime is no longer full.
        while filled.front().is_some_and(|&block| !plane.is_full(block)) {
            filled.pop_front();
        }
        // The block stays in the list, because the drive may reject the victim.
        filled.front().copied()
    }

    fn on_closed(&mut self, plane: PlaneId, block: u32) {
        let filled = &mut self.filled[plane.index()];
        // An older entry of the block is out of date: the block has been erased since.
        filled.retain(|&other| other != block);
        filled.push_back(block);
    }
}
