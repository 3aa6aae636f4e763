//! The record of deallocations, some of which survive power loss. A deallocation is durable once any flush is complete,
//! even a flush that was asked for before the deallocation: a flush does not wait for dirty data that has been
//! deallocated, so older data of the page must not come back.
//!
//! The controller keeps the record in an area of its firmware outside the blocks modelled here; the record costs no
//! flash operations.

use crate::base::geometry::Lpn;
use std::collections::BTreeMap;

/// The record of deallocations.
#[derive(Debug, Default)]
pub(crate) struct Trims {
    /// Deallocated LPNs, each with the sequence number of the deallocation, which are lost at power loss.
    pending: Vec<(Lpn, u64)>,
    /// By LPN, the sequence number of its newest durable deallocation.
    durable: BTreeMap<u32, u64>,
}

impl Trims {
    pub(crate) fn add(&mut self, lpn: Lpn, sequence: u64) {
        self.pending.push((lpn, sequence));
    }

    /// Makes all deallocations durable: when a flush is complete, and before a block is erased. The block may hold the
    /// newest data of a deallocated page, and older data in another block must not come back.
    #[inline]
    pub(crate) fn make_durable(&mut self) {
        self.durable.extend(self.pending.drain(..).map(|(lpn, sequence)| (lpn.0, sequence)));
    }

    /// Drops the deallocations that are not durable, at power loss.
    pub(crate) fn forget_pending(&mut self) {
        self.pending.clear();
    }

    /// Whether data of `lpn` with this sequence number has been deallocated durably.
    pub(crate) fn covers(&self, lpn: Lpn, sequence: u64) -> bool {
        self.durable.get(&lpn.0).is_some_and(|&at| at > sequence)
    }
}
