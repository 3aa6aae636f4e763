//! Flush epochs, and the LPNs that a read-modify-write locks.

use crate::base::geometry::RequestId;
use std::collections::{BTreeMap, VecDeque};

/// The writes between two flushes form an epoch; a flush is complete when its epoch and all epochs before it are
/// complete.
#[derive(Debug, Default)]
pub(crate) struct Epochs {
    /// The number of the first epoch in the list.
    first: u64,
    /// For each epoch the number of its unfinished writes and the flush that ends it; the last epoch has no flush yet.
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

    /// Adds an unfinished write to `epoch`.
    pub(crate) fn join(&mut self, epoch: u64) {
        self.list[(epoch - self.first) as usize].0 += 1;
    }

    /// Takes a finished write out of `epoch`.
    pub(crate) fn leave(&mut self, epoch: u64) {
        self.list[(epoch - self.first) as usize].0 -= 1;
    }

    /// Ends the open epoch with `flush`.
    pub(crate) fn end_with(&mut self, flush: RequestId) {
        self.open();
        self.list.back_mut().expect("an epoch is open").1 = Some(flush);
        self.list.push_back((0, None));
    }

    /// Takes the next flush whose epoch, and all epochs before it, are complete.
    pub(crate) fn done(&mut self) -> Option<RequestId> {
        let &(0, Some(flush)) = self.list.front()? else { return None };
        self.list.pop_front();
        self.first += 1;
        Some(flush)
    }
}

/// LPNs whose old data a read-modify-write is reading. Other writes of such an LPN wait, because one of the two writes
/// would otherwise be merged with data that the other has replaced.
#[derive(Debug, Default)]
pub(crate) struct Merging {
    /// For each LPN the waiting requests, and whether each covers the page only partly.
    pub(crate) waiting: BTreeMap<u32, VecDeque<(RequestId, bool)>>,
}

impl Merging {
    pub(crate) fn is_empty(&self) -> bool {
        self.waiting.is_empty()
    }
}
