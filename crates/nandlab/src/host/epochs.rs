//! Flushes, and what a read-modify-write locks.

use crate::base::geometry::RequestId;
use std::collections::{BTreeMap, VecDeque};

/// Writes between two flushes form an epoch; a flush is done when its epoch and all before it are.
#[derive(Debug, Default)]
pub(crate) struct Epochs {
    /// The number of the first epoch in the list.
    first: u64,
    /// For each epoch its unfinished writes and the flush that ends it; the last one is still open.
    list: VecDeque<(u64, Option<RequestId>)>,
}

impl Epochs {
    pub(crate) fn open(&mut self) -> u64 {
        if self.list.is_empty() {
            self.list.push_back((0, None));
        }
        self.first + self.list.len() as u64 - 1
    }

    pub(crate) fn join(&mut self, epoch: u64) {
        self.list[(epoch - self.first) as usize].0 += 1;
    }

    pub(crate) fn leave(&mut self, epoch: u64) {
        self.list[(epoch - self.first) as usize].0 -= 1;
    }

    pub(crate) fn end_with(&mut self, flush: RequestId) {
        self.open();
        self.list.back_mut().expect("an epoch is open").1 = Some(flush);
        self.list.push_back((0, None));
    }

    /// The next flush with nothing left before it.
    pub(crate) fn done(&mut self) -> Option<RequestId> {
        let &(0, Some(flush)) = self.list.front()? else { return None };
        self.list.pop_front();
        self.first += 1;
        Some(flush)
    }
}

/// LPNs whose old data a read-modify-write is fetching. Other writes of the same LPN wait for it, else one of the
/// two would be merged with what the other has replaced.
#[derive(Debug, Default)]
pub(crate) struct Merging {
    /// For each LPN the requests that wait, and whether they cover the page only partly.
    pub(crate) waiting: BTreeMap<u32, VecDeque<(RequestId, bool)>>,
}

impl Merging {
    pub(crate) fn is_empty(&self) -> bool {
        self.waiting.is_empty()
    }
}
