//! How often the host has read each page since it was programmed: for policies that ask which pages are read often.

use crate::base::geometry::{Geometry, Ppn};
use crate::base::huge::Huge;

/// Host reads of each page since it was programmed, up to 255; empty where nothing asks for them.
#[derive(Debug)]
pub(crate) struct ReadCounts {
    reads: Huge<u8>,
    hot_reads: u32,
}

impl ReadCounts {
    /// `hot_reads` of a page are often; `None`: nobody asks for that.
    pub(crate) fn new(hot_reads: Option<u32>, geometry: &Geometry) -> Self {
        let pages = hot_reads.map_or(0, |_| geometry.pages as usize);
        Self { reads: Huge::filled(0, pages), hot_reads: hot_reads.unwrap_or(u32::MAX) }
    }

    /// The host reads a page.
    #[inline]
    pub(crate) fn count(&mut self, ppn: Ppn) {
        if let Some(reads) = self.reads.get_mut(ppn.index()) {
            *reads = reads.saturating_add(1);
        }
    }

    /// Whether the host reads a page often.
    pub(crate) fn is_hot(&self, ppn: Ppn) -> bool {
        self.reads.get(ppn.index()).is_some_and(|&reads| u32::from(reads) >= self.hot_reads)
    }

    /// A page has been programmed.
    #[inline]
    pub(crate) fn reset(&mut self, ppn: Ppn) {
        if let Some(reads) = self.reads.get_mut(ppn.index()) {
            *reads = 0;
        }
    }

    /// Power is gone, and the counts with it.
    pub(crate) fn forget(&mut self) {
        self.reads.fill(0);
    }
}
