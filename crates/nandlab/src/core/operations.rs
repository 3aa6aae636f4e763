//! Counts of flash operations.

use crate::base::state::value;
use crate::sched::{Cause, FlashOp};

/// The pages that have been read, programmed and copied back, and the blocks that have been erased, by kind of
/// operation and cause.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Operations(pub [[u64; Cause::ALL.len()]; 4]);

impl Operations {
    /// Counts an operation that has ended, on `count` pages or, for an erase, blocks.
    #[inline(always)]
    pub(super) fn on_ended(&mut self, kind: FlashOp, cause: Cause, count: u32) {
        self.0[kind as usize][cause as usize] += u64::from(count);
    }

    /// The operations that have ended since `then`.
    #[must_use]
    pub fn since(&self, then: &Self) -> Self {
        let of = |kind: usize, cause: usize| self.0[kind][cause] - then.0[kind][cause];
        Self(std::array::from_fn(|kind| std::array::from_fn(|cause| of(kind, cause))))
    }

    /// Number of pages, for erases of blocks, of the operations of a kind, for all causes.
    pub fn total(&self, kind: FlashOp) -> u64 {
        self.0[kind as usize].iter().sum()
    }

    /// Number of pages programmed for a cause, including copybacks.
    pub fn programmed_for(&self, cause: Cause) -> u64 {
        self.0[FlashOp::Program as usize][cause as usize] + self.0[FlashOp::Copyback as usize][cause as usize]
    }

    /// Number of pages programmed for all causes, including copybacks.
    pub fn programmed(&self) -> u64 {
        self.total(FlashOp::Program) + self.total(FlashOp::Copyback)
    }

    /// Number of pages programmed for host writes and for write-backs of the write cache.
    #[inline(always)]
    pub fn host_pages(&self) -> u64 {
        let programs = &self.0[FlashOp::Program as usize];
        programs[Cause::Host as usize] + programs[Cause::Sync as usize]
    }
}

value! { Operations { ..tuple counts } }
