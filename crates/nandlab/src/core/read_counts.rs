//! Number of host reads of each unit since its program, for policies that treat often-read units differently.

use crate::base::geometry::UnitId;
use crate::base::huge::Huge;
use crate::base::state::state;

/// Number of host reads of each unit since its program, up to 255; empty if no mechanism needs the counts.
#[derive(Debug)]
pub(crate) struct ReadCounts {
    reads: Huge<u8>,
    hot_reads: u32,
}

impl ReadCounts {
    /// `hot_reads`: number of reads from which on a unit counts as often read; `None`: no mechanism needs the counts.
    pub(crate) fn new(hot_reads: Option<u32>, units: u32) -> Self {
        let units = hot_reads.map_or(0, |_| units as usize);
        Self { reads: Huge::filled(0, units), hot_reads: hot_reads.unwrap_or(u32::MAX) }
    }

    /// Bytes of the counts.
    pub(super) fn bytes(&self) -> u64 {
        self.reads.bytes()
    }

    /// Prefetches the count of a unit into the CPU's cache.
    #[inline(always)]
    pub(super) fn prefetch(&self, unit: UnitId) {
        self.reads.prefetch_if_kept(unit.index());
    }

    /// Counts a host read of a unit.
    #[inline]
    pub(crate) fn count(&mut self, unit: UnitId) {
        if let Some(reads) = self.reads.get_mut(unit.index()) {
            *reads = reads.saturating_add(1);
        }
    }

    /// Whether the host has read a unit at least `hot_reads` times since its program.
    pub(crate) fn is_hot(&self, unit: UnitId) -> bool {
        self.reads.get(unit.index()).is_some_and(|&reads| u32::from(reads) >= self.hot_reads)
    }

    /// Resets the count of a unit that has been programmed.
    #[inline]
    pub(crate) fn reset(&mut self, unit: UnitId) {
        if let Some(reads) = self.reads.get_mut(unit.index()) {
            *reads = 0;
        }
    }

    /// Resets all counts at power loss.
    pub(crate) fn forget(&mut self) {
        self.reads.fill(0);
    }
}

state! { ReadCounts { reads } fixed { hot_reads } }
