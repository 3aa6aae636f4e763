//! Which virtual pages the workload has written, and what its reads met.

use super::Extent;

/// The pages written so far, in the order of their first write.
#[derive(Debug)]
pub(super) struct Written {
    bits: Vec<u64>,
    order: Vec<u64>,
    /// Share of the page reads that are to meet a page not written.
    old_share: f64,
    /// Page reads in which a deviation of the share is made up for.
    held_over: f64,
    reads: f64,
    old_reads: f64,
}

impl Written {
    pub(super) fn new(old_share: f64, held_over: f64, pages: u64) -> Self {
        let bits = vec![0; pages.div_ceil(64) as usize];
        Self { bits, order: Vec::new(), old_share, held_over, reads: 0.0, old_reads: 0.0 }
    }

    pub(super) fn is_empty(&self) -> bool {
        self.order.is_empty()
    }

    pub(super) fn len(&self) -> u64 {
        self.order.len() as u64
    }

    /// The page that was the `n`th to be written first.
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

    /// How many of `n` pages from `start` are of the kind of the first: written, or not.
    pub(super) fn same_kind(&self, start: u64, n: u64) -> u64 {
        let kind = self.has(start);
        (start..start + n).take_while(|&page| self.has(page) == kind).count() as u64
    }

    /// The chance of a read of pages not written that leads back to the share wanted.
    pub(super) fn old_share_now(&self) -> f64 {
        self.old_share + (self.old_share * self.reads - self.old_reads) / self.held_over
    }

    pub(super) fn count(&mut self, (start, n): Extent) {
        self.reads += n as f64;
        self.old_reads += if self.has(start) { 0.0 } else { n as f64 };
    }
}
