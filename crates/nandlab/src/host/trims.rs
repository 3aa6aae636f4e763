//! The record of deallocations. Only durable deallocations survive power loss. A deallocation becomes durable when the
//! next flush completes, even if this flush was submitted before the deallocation: the flush does not wait for dirty
//! data that has been deallocated meanwhile, so older data of the unit must not come back. The same is true of a FUA
//! write whose data has been deallocated before a physical unit was allocated to it.
//!
//! The controller keeps the record in a firmware area outside the superblocks that are modelled here, so the record
//! takes no flash operations.
//!
//! While the capacitor backs up the write cache (`cache.flush_to = "cache"`), a flush writes no record. The pending
//! records stay in RAM, and at power loss the emergency flush writes them to flash. Their units count in the dirty
//! budget. The records are written to the firmware area when they fill a unit, when the budget has no room for their
//! unit, before an erase, and before the capacitor stops to back up the cache. While a detection writes back what the
//! cache has acknowledged, they are written at each deallocation.

use crate::base::geometry::Lpn;
use crate::base::state::state;
use std::collections::BTreeMap;

/// The record of deallocations.
#[derive(Debug, Default)]
pub(crate) struct Trims {
    /// Deallocations that are only in RAM: each LPN with the sequence number of its deallocation.
    pending: Vec<(Lpn, u64)>,
    /// Number of records that the pending deallocations take.
    records: u32,
    /// By LPN, the sequence number of its newest durable deallocation.
    durable: BTreeMap<u32, u64>,
}

/// Bytes of a record, which covers a range of LPNs with consecutive sequence numbers: first LPN (4), number of LPNs (4)
/// and first sequence number (8). Assumption.
const RECORD_BYTES: u32 = 16;

impl Trims {
    pub(crate) fn add(&mut self, lpn: Lpn, sequence: u64) {
        let follows =
            |&(last, number): &(Lpn, u64)| last.0.checked_add(1) == Some(lpn.0) && number + 1 == sequence;
        self.records += u32::from(!self.pending.last().is_some_and(follows));
        self.pending.push((lpn, sequence));
    }

    /// Number of units that the pending records take in an emergency flush.
    #[inline]
    pub(crate) fn units(&self, unit_bytes: u32) -> u32 {
        self.records.div_ceil(unit_bytes / RECORD_BYTES)
    }

    /// Whether the pending records fill a unit.
    pub(crate) fn fill_unit(&self, unit_bytes: u32) -> bool {
        self.records >= unit_bytes / RECORD_BYTES
    }

    /// The sequence number of the newest durable deallocation of `lpn`.
    pub(crate) fn newest(&self, lpn: Lpn) -> Option<u64> {
        self.durable.get(&lpn.0).copied()
    }

    /// The LPNs with a durable deallocation, and its sequence number.
    pub(crate) fn durable(&self) -> impl Iterator<Item = (Lpn, u64)> {
        self.durable.iter().map(|(&lpn, &sequence)| (Lpn(lpn), sequence))
    }

    /// Makes all deallocations durable. Called when a flush to flash is complete, and before a superblock is erased:
    /// the superblock may hold the newest data of a deallocated unit, and older data in another superblock must not
    /// come back.
    #[inline]
    pub(crate) fn make_durable(&mut self) {
        self.records = 0;
        self.durable.extend(self.pending.drain(..).map(|(lpn, sequence)| (lpn.0, sequence)));
    }

    /// Takes away, at power loss, the deallocations that are not durable: each LPN with its sequence number, in the
    /// order of the numbers.
    pub(crate) fn take_pending(&mut self) -> Vec<(Lpn, u64)> {
        self.records = 0;
        std::mem::take(&mut self.pending)
    }

    /// Keeps a deallocation that was not durable when power failed, of a unit of which flash has no data. Without data
    /// the unit reads as deallocated, with the record or without it.
    pub(crate) fn keep(&mut self, lpn: Lpn, sequence: u64) {
        let newest = self.durable.entry(lpn.0).or_insert(0);
        *newest = sequence.max(*newest);
    }

    /// Whether a durable deallocation of `lpn` is newer than data with this sequence number.
    pub(crate) fn covers(&self, lpn: Lpn, sequence: u64) -> bool {
        self.durable.get(&lpn.0).is_some_and(|&at| at > sequence)
    }
}

state! { Trims { pending, records, durable } }

#[cfg(test)]
mod tests {
    use super::*;

    /// A unit of 512 bytes has 32 records of 16 bytes.
    #[test]
    fn a_record_covers_consecutive_lpns_with_consecutive_sequence_numbers() {
        let mut trims = Trims::default();
        assert_eq!((trims.units(512), trims.fill_unit(512)), (0, false));
        for (lpn, sequence) in [(4, 7), (5, 8), (6, 9), (7, 11), (9, 12), (4, 13)] {
            trims.add(Lpn(lpn), sequence);
        }
        assert_eq!((trims.records, trims.units(512)), (4, 1));
        (0..28).for_each(|n| trims.add(Lpn(20 - n % 2), 20 + 2 * u64::from(n)));
        assert_eq!((trims.records, trims.units(512), trims.fill_unit(512)), (32, 1, true));
        trims.add(Lpn(0), 99);
        assert_eq!(trims.units(512), 2);
        trims.make_durable();
        assert_eq!((trims.units(512), trims.take_pending()), (0, vec![]));
        assert!(trims.covers(Lpn(4), 12) && !trims.covers(Lpn(4), 13));
        trims.add(Lpn(4), 200);
        trims.add(Lpn(5), 201);
        assert_eq!(trims.take_pending(), [(Lpn(4), 200), (Lpn(5), 201)]);
        assert_eq!((trims.units(512), trims.newest(Lpn(4)), trims.newest(Lpn(6))), (0, Some(13), Some(9)));
        [(4, 200), (3, 199)].into_iter().for_each(|(lpn, sequence)| trims.keep(Lpn(lpn), sequence));
        assert_eq!([3, 4].map(|lpn| trims.newest(Lpn(lpn))), [Some(199), Some(200)]);
    }
}
