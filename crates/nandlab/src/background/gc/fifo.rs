//! `gc.victim = "fifo"`: the superblock that was filled first, whatever its valid units.
//!
//! Also known as LRU or circular cleaning. Under uniform random writes its write amplification is
//! a / (a + W(-a e^-a)) with a = 1 + effective over-provisioning and W the Lambert function: L. Xiang and
//! B. Kurkoski, "An improved analytic expression for write amplification in NAND flash", ICNC 2012; the same result in
//! P. Desnoyers, "Analytic models of SSD write performance", ACM TOS 10 (2014).

use super::{Candidates, Context, VictimPolicy};
use crate::base::geometry::LaneId;
use crate::base::policy::{Choice, PolicyError, PolicyInfo};
use crate::base::state::{State, StateError, StateReader, StateWriter};
use std::collections::VecDeque;

pub(super) const INFO: PolicyInfo =
    PolicyInfo { name: "fifo", description: "the block that was filled first", params: &[] };

#[derive(Clone, Debug)]
struct Fifo {
    /// By lane, its superblocks in the order in which they were filled.
    filled: Vec<VecDeque<u32>>,
}

pub(super) fn make(_choice: &Choice, context: Context) -> Box<dyn VictimPolicy> {
    Box::new(Fifo { filled: vec![VecDeque::new(); context.lanes as usize] })
}

impl VictimPolicy for Fifo {
    fn save(&self, out: &mut StateWriter<'_>) {
        self.filled.save_state(out);
    }

    fn load(&mut self, from: &mut StateReader<'_>) -> Result<(), StateError> {
        self.filled.load_state(from)
    }

    fn pick(&mut self, lane: &Candidates) -> Result<Option<u32>, PolicyError> {
        let filled = &mut self.filled[lane.lane.index()];
        // A superblock that another job has emptied in the meantime is no longer full.
        while filled.front().is_some_and(|&superblock| !lane.is_full(superblock)) {
            filled.pop_front();
        }
        // The superblock stays in the list, because the drive may reject the victim.
        Ok(filled.front().copied())
    }

    fn on_closed(&mut self, lane: LaneId, superblock: u32) {
        let filled = &mut self.filled[lane.index()];
        // An older entry of the superblock is out of date: the superblock has been erased since.
        filled.retain(|&other| other != superblock);
        filled.push_back(superblock);
    }

    fn fork(&self) -> Box<dyn VictimPolicy> {
        Box::new(self.clone())
    }
}
