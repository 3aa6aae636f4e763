//! Flush epochs, and the LPNs that are locked by a read-modify-write.

use crate::base::geometry::RequestId;
use std::collections::{BTreeMap, VecDeque};

/// The flush epochs that are not complete. The writes between two flushes form an epoch. A flush is complete when its
/// epoch and all earlier epochs are complete.
#[derive(Debug, Default)]
pub(crate) struct Epochs {
    /// The number of the first epoch in the list.
    first: u64,
    /// For each epoch, the number of its incomplete writes and the flush that ends the epoch. The last epoch is open
    /// and has no flush yet.
    list: VecDeque<(u64, Option<RequestId>)>,
}

impl Epochs {
    /// The number of the open epoch.
    pub(crate) fn open(&mut self) -> u64 {
        if self.list.is_empty() {
            self.list.push_back((0, None));
        }
        self.first + self.list.len() as u64 - 1
    }

    /// Adds an incomplete write to `epoch`.
    pub(crate) fn join(&mut self, epoch: u64) {
        self.list[(epoch - self.first) as usize].0 += 1;
    }

    /// Removes a completed write from `epoch`.
    pub(crate) fn leave(&mut self, epoch: u64) {
        self.list[(epoch - self.first) as usize].0 -= 1;
    }

    /// Ends the open epoch with `flush`.
    pub(crate) fn end_with(&mut self, flush: RequestId) {
        self.open();
        self.list.back_mut().expect("an epoch is open").1 = Some(flush);
        self.list.push_back((0, None));
    }

    /// Removes the oldest epoch and returns its flush, if a flush ends this epoch and all its writes are complete.
    pub(crate) fn done(&mut self) -> Option<RequestId> {
        let &(0, Some(flush)) = self.list.front()? else { return None };
        self.list.pop_front();
        self.first += 1;
        Some(flush)
    }
}

/// LPNs whose old data is being read for a read-modify-write. Other writes of such an LPN wait, because otherwise one
/// of the two writes would be merged with data that the other one has replaced.
#[derive(Debug, Default)]
pub(crate) struct Merging {
    /// By LPN, the waiting requests. The flag states whether the request writes only part of the page.
    pub(crate) waiting: BTreeMap<u32, VecDeque<(RequestId, bool)>>,
}

impl Merging {
    pub(crate) fn is_empty(&self) -> bool {
        self.waiting.is_empty()
    }
}
