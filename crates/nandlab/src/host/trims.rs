//! Deallocations that have to survive power loss: durable once a flush is done, also one that was asked for before them.
//! (A flush waits no longer for dirty data that is deallocated, and older data must not come back in its place.)
//!
//! The record of them is the controller's own, in an area of its firmware outside the blocks modelled here; it costs no
//! flash operations.

use crate::base::geometry::Lpn;
use std::collections::BTreeMap;

/// The record of deallocations.
#[derive(Debug, Default)]
pub(crate) struct Trims {
    /// What was deallocated, and its place among the writes.
    pending: Vec<(Lpn, u64)>,
    durable: BTreeMap<u32, u64>,
}

impl Trims {
    pub(crate) fn add(&mut self, lpn: Lpn, sequence: u64) {
        self.pending.push((lpn, sequence));
    }

    /// A flush is done, or a block is going to be erased: it may hold the newest data of what was deallocated, and older
    /// data elsewhere must not come back in its place.
    #[inline]
    pub(crate) fn make_durable(&mut self) {
        self.durable.extend(self.pending.drain(..).map(|(lpn, sequence)| (lpn.0, sequence)));
    }

    /// Power is gone, and what was not durable with it.
    pub(crate) fn forget_pending(&mut self) {
        self.pending.clear();
    }

    /// Whether data of `lpn` with this sequence number has been deallocated for good.
    pub(crate) fn covers(&self, lpn: Lpn, sequence: u64) -> bool {
        self.durable.get(&lpn.0).is_some_and(|&at| at > sequence)
    }
}
