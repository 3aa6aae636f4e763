//! The oracle: a simple model of the data that the host may read. Every read is checked against the oracle.
//!
//! The oracle has neither blocks nor a map. For each LPN it keeps the newest admitted write, the newest acknowledged
//! write, and the newest deallocation. A read may return any write from A to B: A is the newest write acknowledged when
//! the read reaches the drive, B is the newest write admitted when the read is answered.
//!
//! After a power loss the host must be able to read everything acknowledged, except for the data that the drive reports
//! as lost. The drive may lose only data that was neither in flash nor covered by a flush that was completed by flash.
//! Data that a flush or a FUA write from the write cache covers must survive like every acknowledged write, and a
//! deallocation that such a flush covers must survive as well: if the energy of the capacitor did not suffice, the
//! drive reports them as lost. A page lost with the MSB page of its wordline may have any content; this can happen only
//! with an empty capacitor or without a capacitor. A page whose deallocation is lost may have any content as well.

use crate::base::geometry::{DriveSpec, Geometry, Lpn, RequestId};
use crate::ftl::PageMap;
use crate::probe::Probe;
use crate::sched::Watcher;
use std::collections::{BTreeMap, VecDeque};

#[derive(Clone, Copy, Debug, Default)]
struct Page {
    /// Sequence number of the newest admitted write or deallocation; 0: none.
    newest: u64,
    /// Sequence number of the newest acknowledged write or deallocation; 0: none.
    acknowledged: u64,
    /// Sequence number of the newest deallocation; 0: none.
    trimmed: u64,
    /// Sequence number of the newest write or deallocation that no power loss may lose; 0: none.
    safe: u64,
    /// Sequence number of the newest write or deallocation that a flush, or a FUA write, from the cache covers; 0:
    /// none. Power loss may lose it only if the drive reports the loss.
    backed: u64,
    /// The newest deallocation that a flush from the cache covers; 0: none.
    backed_trim: u64,
    /// The number of the newest list of [`Oracle::recent`] that includes the page.
    listed: u64,
}

impl Page {
    /// Power loss has destroyed the page or undone its deallocation: from now on the page may have any content.
    fn lose(&mut self) {
        let newest = self.newest.max(1);
        *self = Self { newest: self.newest, trimmed: newest, listed: self.listed, ..Self::default() };
    }
}

/// Checks every read, and which writes a power loss may lose. The first violations are kept; a violation makes the run
/// fail.
#[derive(Debug)]
pub struct Oracle {
    /// The state of each LPN; grows with the largest LPN.
    pages: Vec<Page>,
    /// LPNs with data from before the oracle watched the drive, one bit each.
    preconditioned: Vec<u64>,
    /// By request slot and LPN: the newest sequence number acknowledged when the read reached the drive.
    asked: BTreeMap<(RequestId, u32), u64>,
    /// LPNs with a write or deallocation acknowledged since the last flush reached the drive, each LPN once; and the
    /// number of this list.
    recent: Vec<u32>,
    recent_number: u64,
    /// The earlier lists that no flush has made durable yet, and the number of the first of these lists. A list has
    /// each LPN with the newest sequence number acknowledged when the list was closed, and whether it is the number of a
    /// deallocation.
    closed: VecDeque<Vec<(u32, u64, bool)>>,
    /// LPNs covered by flushes from the cache since the last flush that flash completed, each with its newest covered
    /// sequence number. The next flush that flash completes also covers these LPNs.
    backed: BTreeMap<u32, u64>,
    first_closed: u64,
    /// For each flush under way, the number of the first list that the flush does not cover.
    flushes: BTreeMap<u64, u64>,
    /// The number of reads checked.
    pub checked: u64,
    /// The first 16 violations.
    pub violations: Vec<String>,
}

impl Default for Oracle {
    fn default() -> Self {
        Self::new(0)
    }
}

impl Oracle {
    /// Bytes of the oracle's state per LPN, without the lists.
    pub(crate) const BYTES_PER_LPN: u64 = size_of::<Page>() as u64;

    /// The oracle of an empty drive with `logical_pages` logical pages.
    pub fn new(logical_pages: u32) -> Self {
        Self {
            pages: vec![Page::default(); logical_pages as usize],
            preconditioned: Vec::new(),
            asked: BTreeMap::new(),
            recent: Vec::with_capacity(logical_pages as usize),
            recent_number: 1,
            closed: VecDeque::new(),
            backed: BTreeMap::new(),
            first_closed: 1,
            flushes: BTreeMap::new(),
            checked: 0,
            violations: Vec::new(),
        }
    }

    /// The oracle of a fresh drive.
    pub fn of(drive: &DriveSpec) -> Self {
        Self::new(Geometry::new(drive).logical_pages)
    }

    fn page(&mut self, lpn: Lpn) -> &mut Page {
        if lpn.index() >= self.pages.len() {
            self.pages.resize((lpn.index() + 1).next_power_of_two(), Page::default());
        }
        &mut self.pages[lpn.index()]
    }

    /// Adds a page with an acknowledged write or deallocation to the list that the next flush covers.
    fn list(&mut self, lpn: Lpn) {
        let number = self.recent_number;
        if std::mem::replace(&mut self.page(lpn).listed, number) != number {
            self.recent.push(lpn.0);
        }
    }

    /// Returns `Ok` if the oracle has found no violation so far.
    ///
    /// # Errors
    /// The first violation, if there is one.
    pub fn verdict(&self) -> Result<(), String> {
        self.violations.first().map_or(Ok(()), |first| Err(first.clone()))
    }

    /// Notes that every LPN mapped in `map` has data from before the oracle watched the drive.
    pub fn expect_preconditioned(&mut self, map: &PageMap) {
        self.preconditioned = vec![0; map.len().div_ceil(64) as usize];
        for lpn in (0..map.len()).filter(|&lpn| map.get(Lpn(lpn)).is_some()) {
            self.preconditioned[lpn as usize / 64] |= 1 << (lpn % 64);
        }
    }

    fn is_preconditioned(&self, lpn: Lpn) -> bool {
        self.preconditioned.get(lpn.index() / 64).is_some_and(|word| word >> (lpn.0 % 64) & 1 == 1)
    }

    fn violation(&mut self, text: String) {
        if self.violations.len() < 16 {
            self.violations.push(text);
        }
    }
}

impl Watcher for Oracle {
    const SEES_PHASES: bool = false;
}

impl Probe for Oracle {
    const STAMPED: bool = true;

    fn on_write_admitted(&mut self, lpn: Lpn, sequence: u64) {
        let page = self.page(lpn);
        let newest = std::mem::replace(&mut page.newest, sequence);
        if newest >= sequence {
            self.violation(format!("LPN {}: write {sequence} admitted after {newest}", lpn.0));
        }
    }

    fn on_write_acknowledged(&mut self, lpn: Lpn, sequence: u64) {
        let page = self.page(lpn);
        page.acknowledged = page.acknowledged.max(sequence);
        self.list(lpn);
    }

    fn on_write_durable(&mut self, lpn: Lpn, sequence: u64) {
        let page = self.page(lpn);
        page.safe = page.safe.max(sequence);
    }

    fn on_flush_asked(&mut self, id: u64) {
        let recent = std::mem::take(&mut self.recent);
        let covered = |lpn: u32| {
            let Page { acknowledged, trimmed, .. } = self.pages[lpn as usize];
            (lpn, acknowledged, acknowledged == trimmed)
        };
        self.closed.push_back(recent.into_iter().map(covered).collect());
        self.recent_number += 1;
        self.flushes.insert(id, self.recent_number);
    }

    fn on_flushed(&mut self, id: u64, from_cache: bool) {
        let Some(until) = self.flushes.remove(&id) else {
            self.violation(format!("flush {id} has completed, but was never submitted"));
            return;
        };
        while self.first_closed < until
            && let Some(list) = self.closed.pop_front()
        {
            self.first_closed += 1;
            for (lpn, sequence, is_trim) in list {
                let page = self.page(Lpn(lpn));
                if from_cache {
                    page.backed = page.backed.max(sequence);
                    page.backed_trim = if is_trim { sequence } else { page.backed_trim };
                    self.backed.insert(lpn, sequence);
                } else {
                    page.safe = page.safe.max(sequence);
                }
            }
        }
        if !from_cache {
            for (lpn, sequence) in std::mem::take(&mut self.backed) {
                let page = self.page(Lpn(lpn));
                page.safe = page.safe.max(sequence);
            }
        }
    }

    fn on_fua_cached(&mut self, lpn: Lpn, sequence: u64) {
        let page = self.page(lpn);
        page.backed = page.backed.max(sequence);
    }

    fn on_power_loss(
        &mut self,
        lost: &[(Lpn, u64)],
        lost_with_wordline: &[(Lpn, u64)],
        lost_trims: &[(Lpn, u64)],
    ) {
        self.asked.clear();
        self.flushes.clear();
        self.backed.clear();
        (self.closed, self.recent) = (VecDeque::new(), Vec::new());
        self.recent_number += 1;
        self.first_closed = self.recent_number;
        for &(lpn, sequence) in lost {
            let page = self.page(lpn);
            if sequence != 0 && sequence <= page.safe {
                let safe = page.safe;
                self.violation(format!("LPN {}: write {sequence} is lost, but write {safe} was safe", lpn.0));
            }
            let page = self.page(lpn);
            // A deallocation before the lost write has been saved, unless the drive reports it as lost, too.
            page.backed = page.backed_trim;
            page.acknowledged = page.safe.max(page.backed);
        }
        for page in &mut self.pages {
            // A deallocation that no completed flush covers may be undone.
            let covered = page.safe.max(page.backed);
            if page.trimmed == page.acknowledged && covered < page.trimmed {
                page.acknowledged = covered;
            }
        }
        for &(lpn, sequence) in lost_trims {
            let safe = self.page(lpn).safe;
            if sequence <= safe {
                self.violation(format!("LPN {}: TRIM {sequence} is lost, but {safe} was safe", lpn.0));
            }
            if self.page(lpn).acknowledged <= sequence {
                self.page(lpn).lose();
            }
        }
        for &(lpn, _) in lost_with_wordline {
            self.page(lpn).lose();
        }
    }

    fn on_trimmed(&mut self, lpn: Lpn, sequence: u64) {
        let page = self.page(lpn);
        (page.newest, page.acknowledged, page.trimmed) = (sequence, sequence, sequence);
        self.list(lpn);
    }

    fn on_read_asked(&mut self, request: RequestId, lpn: Lpn) {
        let acknowledged = self.pages.get(lpn.index()).map_or(0, |page| page.acknowledged);
        self.asked.insert((request, lpn.0), acknowledged);
    }

    fn on_read_failed(&mut self, request: RequestId, lpn: Lpn) {
        if self.asked.remove(&(request, lpn.0)).is_none() {
            self.violation(format!(
                "LPN {}: a read failed that was answered before, or was never submitted",
                lpn.0
            ));
        }
    }

    fn on_read_answered(&mut self, request: RequestId, lpn: Lpn, sequence: Option<u64>) {
        self.checked += 1;
        let Some(least) = self.asked.remove(&(request, lpn.0)) else {
            self.violation(format!("LPN {}: a read was answered twice, or was never submitted", lpn.0));
            return;
        };
        let page = self.pages.get(lpn.index()).copied().unwrap_or_default();
        let is_right = match sequence {
            // No data is right if the page was never written, or if its newest deallocation is not older than `least`.
            None => (least == 0 && !self.is_preconditioned(lpn)) || page.trimmed >= least.max(1),
            // Data from before the run is right only if nothing newer was acknowledged.
            Some(0) => least == 0 && self.is_preconditioned(lpn),
            Some(found) => least <= found && found <= page.newest,
        };
        if !is_right {
            self.violation(format!(
                "LPN {}: read returned {}, expected sequence numbers {least} (newest acknowledged) to {} (newest \
                 admitted)",
                lpn.0,
                sequence.map_or("nothing".to_owned(), |s| format!("write {s}")),
                page.newest,
            ));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const LPN: Lpn = Lpn(3);
    const READ: RequestId = RequestId(0);

    /// An oracle that has seen write 1 reach flash, write 2 and a flush acknowledged from the cache, and then, with
    /// `trims`, TRIM 3 and another such flush.
    fn after_flushes(trims: bool) -> Oracle {
        let mut oracle = Oracle::new(8);
        for sequence in [1, 2] {
            oracle.on_write_admitted(LPN, sequence);
            oracle.on_write_acknowledged(LPN, sequence);
            if sequence == 1 {
                oracle.on_write_durable(LPN, 1);
            }
        }
        oracle.on_flush_asked(7);
        oracle.on_flushed(7, true);
        if trims {
            oracle.on_trimmed(LPN, 3);
            oracle.on_flush_asked(8);
            oracle.on_flushed(8, true);
        }
        oracle
    }

    fn accepts(oracle: &mut Oracle, found: Option<u64>) -> bool {
        let violations = oracle.violations.len();
        oracle.on_read_asked(READ, LPN);
        oracle.on_read_answered(READ, LPN, found);
        oracle.violations.len() == violations
    }

    #[test]
    fn a_write_flushed_to_the_cache_survives_power_loss_unless_it_is_reported_as_lost() {
        for (lost, accepted) in [(vec![], [false, true]), (vec![(LPN, 2)], [true, true])] {
            let mut oracle = after_flushes(false);
            oracle.on_power_loss(&lost, &[], &[]);
            assert_eq!([Some(1), Some(2)].map(|found| accepts(&mut oracle, found)), accepted, "{lost:?}");
        }
        // A flush that flash completes also makes the data of earlier flushes safe.
        let mut oracle = after_flushes(false);
        oracle.on_flush_asked(8);
        oracle.on_flushed(8, false);
        oracle.on_power_loss(&[(LPN, 2)], &[], &[]);
        assert!(oracle.verdict().unwrap_err().contains("write 2 was safe"));
    }

    #[test]
    fn a_trim_flushed_to_the_cache_survives_power_loss_unless_it_is_reported_as_lost() {
        for (lost, accepted) in [(vec![], [false, true]), (vec![(LPN, 3)], [true, true])] {
            let mut oracle = after_flushes(true);
            oracle.on_power_loss(&[], &[], &lost);
            assert_eq!([Some(1), None].map(|found| accepts(&mut oracle, found)), accepted, "{lost:?}");
        }
    }

    /// No flush covers the TRIM, so power loss may undo it. The flushed write before the TRIM must then be back.
    #[test]
    fn a_trim_without_a_flush_does_not_bring_back_data_from_before_a_flushed_write() {
        for is_fua in [false, true] {
            let mut oracle = after_flushes(false);
            if is_fua {
                oracle.on_write_admitted(LPN, 3);
                oracle.on_write_acknowledged(LPN, 3);
                oracle.on_fua_cached(LPN, 3);
            }
            oracle.on_trimmed(LPN, 4);
            oracle.on_power_loss(&[], &[], &[]);
            let found = [Some(1), Some(2), Some(3), None].map(|found| accepts(&mut oracle, found));
            assert_eq!(found, [false, !is_fua, true, true]);
        }
    }
}
