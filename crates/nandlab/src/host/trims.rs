//! The record of deallocations. Only durable deallocations survive power loss. A deallocation becomes durable when the
//! next flush completes, even if this flush was submitted before the deallocation: the flush does not wait for dirty
//! data that has been deallocated meanwhile, so older data of the page must not come back.
//!
//! The controller keeps the record in a firmware area outside the blocks that are modelled here, so the record takes no
//! flash operations.

use crate::base::geometry::Lpn;
use std::collections::BTreeMap;

/// The record of deallocations.
#[derive(Debug, Default)]
pub(crate) struct Trims {
    /// Deallocations that power loss would undo: each LPN with the sequence number of its deallocation.
    pending: Vec<(Lpn, u64)>,
    /// By LPN, the sequence number of its newest durable deallocation.
    durable: BTreeMap<u32, u64>,
}

impl Trims {
    pub(crate) fn add(&mut self, lpn: Lpn, sequence: u64) {
        self.pending.push((lpn, sequence));
    }

    /// Makes all deallocations durable. Called when a flush is complete, and before a block is erased: the block may
    /// hold the newest data of a deallocated page, and older data in another block must not come back.
    #[inline]
    pub(crate) fn make_durable(&mut self) {
        self.durable.extend(self.pending.drain(..).map(|(lpn, sequence)| (lpn.0, sequence)));
    }

    /// Drops, at power loss, the deallocations that are not durable.
    pub(crate) fn forget_pending(&mut self) {
        self.pending.clear();
    }

    /// Whether a durable deallocation of `lpn` is newer than data with this sequence number.
    pub(crate) fn covers(&self, lpn: Lpn, sequence: u64) -> bool {
        self.durable.get(&lpn.0).is_some_and(|&at| at > sequence)
    }
}
