//! The virtual pages that the workload has written, and the share of the page reads that find pages not written yet
//! ("old" data).

use super::Extent;

/// The pages written so far, in the order of their first write.
#[derive(Debug)]
pub(super) struct Written {
    bits: Vec<u64>,
    order: Vec<u64>,
    /// Target share of the page reads that find old data.
    old_share: f64,
    /// Number of page reads over which a deviation from the target share is corrected.
    correction_pages: f64,
    reads: f64,
    old_reads: f64,
}

impl Written {
    pub(super) fn new(old_share: f64, correction_pages: f64, pages: u64) -> Self {
        let bits = vec![0; pages.div_ceil(64) as usize];
        Self { bits, order: Vec::new(), old_share, correction_pages, reads: 0.0, old_reads: 0.0 }
    }

    pub(super) fn is_empty(&self) -> bool {
        self.order.is_empty()
    }

    pub(super) fn len(&self) -> u64 {
        self.order.len() as u64
    }

    /// The page at place `n` (from 0) in the order of first writes.
    pub(super) fn nth(&self, n: u64) -> u64 {
        self.order[n as usize]
    }

    pub(super) fn has(&self, page: u64) -> bool {
        self.bits.get((page / 64) as usize).is_some_and(|word| word >> (page % 64) & 1 == 1)
    }

    pub(super) fn write(&mut self, (start, n): Extent) {
        for page in start..start + n {
            if let Some(word) = self.bits.get_mut((page / 64) as usize)
                && *word >> (page % 64) & 1 == 0
            {
                *word |= 1 << (page % 64);
                self.order.push(page);
            }
        }
    }

    /// The number of pages of the longest extent from `start` whose pages are all written or all not written; at most
    /// `n`.
    pub(super) fn same_kind(&self, start: u64, n: u64) -> u64 {
        let is_written = self.has(start);
        (start..start + n).take_while(|&page| self.has(page) == is_written).count() as u64
    }

    /// The probability with which the next read has to be of old data to keep the target share. A value below 0 means
    /// 0, a value above 1 means 1.
    pub(super) fn old_share_now(&self) -> f64 {
        self.old_share + (self.old_share * self.reads - self.old_reads) / self.correction_pages
    }

    /// Counts a read of `n` pages from `start`, which are all written or all not written.
    pub(super) fn count_read(&mut self, (start, n): Extent) {
        self.reads += n as f64;
        self.old_reads += if self.has(start) { 0.0 } else { n as f64 };
    }
}
