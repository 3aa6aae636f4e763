//! The oracle: a simple model of what the host may expect, against which every read is checked.
//!
//! It knows nothing of blocks or maps: for each LPN the newest write that has been admitted, the newest that has
//! been acknowledged, and the deallocations among them. A read may return any write from the newest one
//! acknowledged when it was asked for up to the newest admitted when it is answered.
//!
//! After a power loss everything acknowledged has to be there still, except for what the drive says it has lost; and that
//! may only be what was neither in flash nor covered by a flush that is done. Of pages lost with the MSB page of their
//! wordline, which only an empty capacitor or none allows, anything may be left.

use crate::base::geometry::{DriveSpec, Geometry, Lpn, RequestId};
use crate::ftl::PageMap;
use crate::probe::Probe;
use crate::sched::Watcher;
use std::collections::{BTreeMap, VecDeque};

#[derive(Clone, Copy, Debug, Default)]
struct Page {
    /// Sequence number of the newest write admitted or deallocation; 0: none.
    newest: u64,
    /// Of the newest one that is acknowledged.
    acknowledged: u64,
    /// Of the newest deallocation.
    trimmed: u64,
    /// Of the newest write or deallocation that power loss may not take.
    safe: u64,
    /// The page is in the list of what was acknowledged since the last flush was asked for, if this is its number.
    listed: u64,
}

/// Checks every read. Violations are kept, and end a run with an error.
#[derive(Debug)]
pub struct Oracle {
    /// By LPN; longer when a larger one comes.
    pages: Vec<Page>,
    /// LPNs that held data before the oracle saw anything, one bit each.
    preconditioned: Vec<u64>,
    /// What was acknowledged when a read was asked for, by request slot and LPN.
    asked: BTreeMap<(RequestId, u32), u64>,
    /// LPNs with a write or deallocation acknowledged since the last flush was asked for, each once, and the list's number.
    recent: Vec<u32>,
    recent_number: u64,
    /// The lists before it that no flush has made durable yet, with the newest write or deallocation then acknowledged, and
    /// the number of the first.
    closed: VecDeque<Vec<(u32, u64)>>,
    first_closed: u64,
    /// For each flush in work the number of the first list that it does not cover.
    flushes: BTreeMap<u64, u64>,
    /// Reads checked.
    pub checked: u64,
    /// What went wrong, the first few of it.
    pub violations: Vec<String>,
}

impl Default for Oracle {
    fn default() -> Self {
        Self::new(0)
    }
}

impl Oracle {
    /// Bytes of its state by LPN, but for those of the list of what was acknowledged.
    pub(crate) const BYTES_PER_LPN: u64 = size_of::<Page>() as u64;

    /// The oracle of a drive with so many logical pages that holds nothing.
    pub fn new(logical_pages: u32) -> Self {
        Self {
            pages: vec![Page::default(); logical_pages as usize],
            preconditioned: Vec::new(),
            asked: BTreeMap::new(),
            recent: Vec::with_capacity(logical_pages as usize),
            recent_number: 1,
            closed: VecDeque::new(),
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

    /// What is acknowledged of a page is made durable by flushes that are asked for from now on.
    fn list(&mut self, lpn: Lpn) {
        let number = self.recent_number;
        if std::mem::replace(&mut self.page(lpn).listed, number) != number {
            self.recent.push(lpn.0);
        }
    }

    /// The first violation.
    ///
    /// # Errors
    /// When there is one.
    pub fn verdict(&self) -> Result<(), String> {
        self.violations.first().map_or(Ok(()), |first| Err(first.clone()))
    }

    /// Declares that the drive holds data from before the oracle saw anything, everywhere its map says.
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

impl Watcher for Oracle {}

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
        self.closed
            .push_back(recent.into_iter().map(|lpn| (lpn, self.pages[lpn as usize].acknowledged)).collect());
        self.recent_number += 1;
        self.flushes.insert(id, self.recent_number);
    }

    fn on_flushed(&mut self, id: u64) {
        let Some(until) = self.flushes.remove(&id) else {
            self.violation(format!("flush {id} is done and was not asked for"));
            return;
        };
        while self.first_closed < until
            && let Some(list) = self.closed.pop_front()
        {
            self.first_closed += 1;
            for (lpn, sequence) in list {
                let page = self.page(Lpn(lpn));
                page.safe = page.safe.max(sequence);
            }
        }
    }

    fn on_power_loss(&mut self, lost: &[(Lpn, u64)], lost_with_wordline: &[(Lpn, u64)]) {
        self.asked.clear();
        self.flushes.clear();
        (self.closed, self.recent) = (VecDeque::new(), Vec::new());
        self.recent_number += 1;
        self.first_closed = self.recent_number;
        for &(lpn, sequence) in lost {
            let page = self.page(lpn);
            if sequence != 0 && sequence <= page.safe {
                let safe = page.safe;
                self.violation(format!("LPN {}: write {sequence} is lost, and {safe} was safe", lpn.0));
            }
            let page = self.page(lpn);
            page.acknowledged = page.safe;
        }
        for page in &mut self.pages {
            // A deallocation that no flush has made durable.
            if page.trimmed == page.acknowledged && page.safe < page.trimmed {
                page.acknowledged = page.safe;
            }
        }
        for &(lpn, _) in lost_with_wordline {
            let page = self.page(lpn);
            (page.acknowledged, page.safe, page.trimmed) = (0, 0, page.newest.max(1));
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
            self.violation(format!("LPN {}: failed, and answered before or never asked for", lpn.0));
        }
    }

    fn on_read_answered(&mut self, request: RequestId, lpn: Lpn, sequence: Option<u64>) {
        self.checked += 1;
        let Some(least) = self.asked.remove(&(request, lpn.0)) else {
            self.violation(format!("LPN {}: answered twice, or never asked for", lpn.0));
            return;
        };
        let page = self.pages.get(lpn.index()).copied().unwrap_or_default();
        let is_right = match sequence {
            // Nothing there: never written, or the newest the host knows of may be a deallocation.
            None => (least == 0 && !self.is_preconditioned(lpn)) || page.trimmed >= least.max(1),
            // Data from before the run.
            Some(0) => least == 0 && self.is_preconditioned(lpn),
            Some(found) => least <= found && found <= page.newest,
        };
        if !is_right {
            self.violation(format!(
                "LPN {}: read returned {}, the host had write {least} acknowledged and {} submitted",
                lpn.0,
                sequence.map_or("nothing".to_owned(), |s| format!("write {s}")),
                page.newest,
            ));
        }
    }
}
