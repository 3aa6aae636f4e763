//! Flush epochs, and the LPNs that are locked by a read-modify-write.

use crate::base::geometry::RequestId;
use crate::base::state::value;
use std::collections::{BTreeMap, VecDeque};

/// The flush epochs that are not complete. The writes between two flushes form an epoch. A flush is complete when its
/// epoch and all earlier epochs are complete. For a flush that is acknowledged from the write cache the write requests
/// of these epochs are complete; their dirty units then belong to the next epoch.
#[derive(Debug, Default)]
pub(crate) struct Epochs {
    /// The number of the first epoch in the list.
    first: u64,
    /// The epochs in the order of time. The last epoch is open and has no flush yet.
    list: VecDeque<Epoch>,
}

#[derive(Clone, Copy, Debug, Default)]
struct Epoch {
    /// Number of write requests that are not complete.
    requests: u64,
    /// Number of units of the write cache with data of the epoch that is not in flash.
    units: u64,
    /// The flush that ends the epoch; `None`: the epoch is open.
    flush: Option<RequestId>,
}

impl Epochs {
    /// The number of the open epoch.
    pub(crate) fn open(&mut self) -> u64 {
        if self.list.is_empty() {
            self.list.push_back(Epoch::default());
        }
        self.first + self.list.len() as u64 - 1
    }

    /// Adds an incomplete write request to `epoch`.
    pub(crate) fn join(&mut self, epoch: u64) {
        self.list[(epoch - self.first) as usize].requests += 1;
    }

    /// Removes a completed write request from `epoch`.
    pub(crate) fn leave(&mut self, epoch: u64) {
        self.list[(epoch - self.first) as usize].requests -= 1;
    }

    /// Adds a dirty unit of the write cache to `epoch`, which is not complete.
    pub(crate) fn join_unit(&mut self, epoch: u64) {
        self.list[(epoch - self.first) as usize].units += 1;
    }

    /// The data of `epoch` in a unit of the write cache is in flash, or no longer needed. A flush acknowledged from the
    /// cache may have ended the epoch.
    pub(crate) fn leave_unit(&mut self, epoch: u64) {
        self.list[epoch.saturating_sub(self.first) as usize].units -= 1;
    }

    /// Ends the open epoch with `flush`.
    pub(crate) fn end_with(&mut self, flush: RequestId) {
        self.open();
        self.list.back_mut().expect("an epoch is open").flush = Some(flush);
        self.list.push_back(Epoch::default());
    }

    /// Removes the oldest epoch and returns its flush, if a flush ends this epoch, all its write requests are complete,
    /// and all its units are in flash. If flushes are acknowledged `from_cache`, the units may still be dirty; then
    /// they belong to the next epoch.
    pub(crate) fn done(&mut self, from_cache: bool) -> Option<RequestId> {
        let &Epoch { requests: 0, units, flush: Some(flush) } = self.list.front()? else { return None };
        if units > 0 && !from_cache {
            return None;
        }
        self.list.pop_front();
        self.list.front_mut().expect("an epoch is open").units += units;
        self.first += 1;
        Some(flush)
    }
}

/// LPNs whose old data is being read for a read-modify-write. Other writes of such an LPN wait, because otherwise one
/// of the two writes would be merged with data that the other one has replaced.
#[derive(Debug, Default)]
pub(crate) struct Merging {
    /// By LPN, the waiting requests. The flag states whether the request writes only part of the unit.
    pub(crate) waiting: BTreeMap<u32, VecDeque<(RequestId, bool)>>,
}

impl Merging {
    pub(crate) fn is_empty(&self) -> bool {
        self.waiting.is_empty()
    }
}

value! { Epoch { requests, units, flush } }
value! { Epochs { first, list } }
value! { Merging { waiting } }

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_flush_from_the_cache_leaves_its_dirty_units_to_the_next_flush() {
        let mut epochs = Epochs::default();
        let first = epochs.open();
        epochs.join(first);
        epochs.join_unit(first);
        epochs.end_with(RequestId(1));
        let second = epochs.open();
        epochs.join_unit(second);
        epochs.end_with(RequestId(2));
        assert_eq!(epochs.done(true), None, "a write request is not complete");
        epochs.leave(first);
        assert_eq!((epochs.done(false), epochs.done(true)), (None, Some(RequestId(1))));
        // From now on flushes are acknowledged from flash: the second flush waits for both units.
        epochs.leave_unit(second);
        assert_eq!(epochs.done(false), None);
        epochs.leave_unit(first);
        assert_eq!((epochs.done(false), epochs.done(false)), (Some(RequestId(2)), None));
    }
}
