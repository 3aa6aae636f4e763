//! Number of host reads of each page since its program, for policies that treat often-read pages differently.

use crate::base::geometry::{Geometry, Ppn};
use crate::base::huge::Huge;

/// Number of host reads of each page since its program, up to 255; empty if no mechanism needs the counts.
#[derive(Debug)]
pub(crate) struct ReadCounts {
    reads: Huge<u8>,
    hot_reads: u32,
}

impl ReadCounts {
    /// `hot_reads`: number of reads from which on a page counts as often read; `None`: no mechanism needs the counts.
    pub(crate) fn new(hot_reads: Option<u32>, geometry: &Geometry) -> Self {
        let pages = hot_reads.map_or(0, |_| geometry.pages as usize);
        Self { reads: Huge::filled(0, pages), hot_reads: hot_reads.unwrap_or(u32::MAX) }
    }

    /// Prefetches the count of a page into the CPU's cache.
    #[inline(always)]
    pub(super) fn prefetch(&self, ppn: Ppn) {
        self.reads.prefetch_if_kept(ppn.index());
    }

    /// Counts a host read of a page.
    #[inline]
    pub(crate) fn count(&mut self, ppn: Ppn) {
        if let Some(reads) = self.reads.get_mut(ppn.index()) {
            *reads = reads.saturating_add(1);
        }
    }

    /// Whether the host has read a page at least `hot_reads` times since its program.
    pub(crate) fn is_hot(&self, ppn: Ppn) -> bool {
        self.reads.get(ppn.index()).is_some_and(|&reads| u32::from(reads) >= self.hot_reads)
    }

    /// Resets the count of a page that has been programmed.
    #[inline]
    pub(crate) fn reset(&mut self, ppn: Ppn) {
        if let Some(reads) = self.reads.get_mut(ppn.index()) {
            *reads = 0;
        }
    }

    /// Resets all counts at power loss.
    pub(crate) fn forget(&mut self) {
        self.reads.fill(0);
    }
}
