//! Flash operations that have ended.

use crate::sched::{Cause, FlashOp};

/// How many there have been, by kind and cause.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Operations(pub [[u64; Cause::ALL.len()]; 4]);

impl Operations {
    /// One has ended.
    #[inline(always)]
    pub(crate) fn on_ended(&mut self, kind: FlashOp, cause: Cause) {
        self.0[kind as usize][cause as usize] += 1;
    }

    /// Operations of a kind, all causes.
    pub fn total(&self, kind: FlashOp) -> u64 {
        self.0[kind as usize].iter().sum()
    }

    /// Pages programmed for a cause, by copyback or not.
    pub fn programmed_for(&self, cause: Cause) -> u64 {
        self.0[FlashOp::Program as usize][cause as usize] + self.0[FlashOp::Copyback as usize][cause as usize]
    }

    /// Pages programmed, by copyback or not.
    pub fn programmed(&self) -> u64 {
        self.total(FlashOp::Program) + self.total(FlashOp::Copyback)
    }

    /// Pages programmed for the host, whether a cache has held them or not.
    #[inline(always)]
    pub fn host_pages(&self) -> u64 {
        let programs = &self.0[FlashOp::Program as usize];
        programs[Cause::Host as usize] + programs[Cause::Sync as usize]
    }
}
