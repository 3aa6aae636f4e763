//! `gc.victim.random = { k = 8 }`: the least valid of k full superblocks drawn at random (d-choices).
//!
//! k = 1 is random cleaning; with large k the policy approaches greedy. B. Van Houdt, "A mean field model for a class
//! of garbage collection algorithms in flash-based solid state drives", SIGMETRICS 2013.

use super::{Candidates, Context, VictimPolicy};
use crate::base::policy::{Choice, ParamInfo, PolicyError, PolicyInfo};
use crate::base::rng::Stream;
use crate::base::state::{State, StateError, StateReader, StateWriter};

pub(super) const INFO: PolicyInfo = PolicyInfo {
    name: "random",
    description: "the least valid of k full blocks drawn at random",
    params: &[ParamInfo {
        name: "k",
        default: Some(8.0),
        min: 1.0,
        max: 65_536.0,
        whole: true,
        description: "blocks drawn",
    }],
};

#[derive(Clone, Debug)]
struct Random {
    k: u32,
    stream: Stream,
}

pub(super) fn make(choice: &Choice, context: Context) -> Box<dyn VictimPolicy> {
    Box::new(Random { k: choice.value(0) as u32, stream: context.stream })
}

impl VictimPolicy for Random {
    fn save(&self, out: &mut StateWriter<'_>) {
        self.stream.save_state(out);
    }

    fn load(&mut self, from: &mut StateReader<'_>) -> Result<(), StateError> {
        self.stream.load_state(from)
    }

    fn pick(&mut self, lane: &Candidates) -> Result<Option<u32>, PolicyError> {
        if lane.least_valid().is_none() {
            return Ok(None);
        }
        let mut draw = || loop {
            let superblock = self.stream.below(lane.superblocks.len() as u64) as u32;
            if lane.is_full(superblock) {
                return superblock;
            }
        };
        let mut best = draw();
        for _ in 1..self.k {
            let superblock = draw();
            if lane.superblocks[superblock as usize].valid < lane.superblocks[best as usize].valid {
                best = superblock;
            }
        }
        Ok(Some(best))
    }

    fn remembers_order(&self) -> bool {
        false
    }

    fn fork(&self) -> Box<dyn VictimPolicy> {
        Box::new(self.clone())
    }
}
