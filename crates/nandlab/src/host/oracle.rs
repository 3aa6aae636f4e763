//! The oracle: a simple model of the data that the host may read, and of what the drive has promised to the host. Every
//! read is checked against the oracle, and after a power loss every entry of the drive's lists of lost writes.
//!
//! The oracle has neither superblocks nor a map. For each LPN it keeps the newest admitted write, the newest
//! acknowledged write, and the newest deallocation. A read may return any write from A to B: A is the newest write
//! acknowledged when the read reaches the drive, B is the newest write admitted when the read is answered.
//!
//! For each LPN the oracle also keeps the writes and deallocations about which the host may still ask, with the request
//! of each. A request that completes acknowledges its writes and deallocations. A flush that completes covers those of
//! the requests that were submitted before the flush; a FUA write that completes covers itself. After a power loss the
//! oracle compares these promises with the data that the drive says it has recovered (`base/lost.rs` has the rules), and
//! the broken ones with the list of the drive, entry by entry. From then on each LPN must read as the drive has said.
//!
//! A power loss must not destroy what is safe: a write that has been programmed, and everything that a flush completed
//! by flash covers, unless a torn program has destroyed it in flash. What is only in the write cache, also if a flush or
//! a FUA write from the cache covers it, may be lost if the drive says so.

use crate::base::geometry::{DriveSpec, Geometry, Lpn, RequestId};
use crate::base::lost::{Content, Lost, Promise, Recovered};
use crate::base::request::{Completion, Op, Request};
use crate::base::state::{State as _, StateError, StateReader, StateWriter, state, value};
use crate::ftl::UnitMap;
use crate::probe::Probe;
use crate::sched::Watcher;
use std::collections::BTreeMap;

/// What the drive has promised about a version of a unit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum State {
    /// The request is outstanding.
    InFlight,
    /// The request has completed.
    Acknowledged,
    /// The request has completed, and no flush needs to cover it: a FUA write, or data at rest.
    Forced,
}

/// A write or deallocation of a unit.
#[derive(Clone, Copy, Debug)]
struct Version {
    sequence: u64,
    is_trim: bool,
    state: State,
    /// Number of flushes submitted before the request.
    flushes: u64,
}

impl Version {
    /// Whether a flush covers the version, when the first `completed` flushes have completed; or no flush needs to.
    fn is_covered(&self, completed: u64) -> bool {
        match self.state {
            State::InFlight => false,
            State::Acknowledged => self.flushes < completed,
            State::Forced => true,
        }
    }

    /// Whether `newer` is promised whenever this version is promised.
    fn is_replaced_by(&self, newer: &Self) -> bool {
        let is_as_strong = match newer.state {
            State::InFlight => false,
            State::Acknowledged => self.state == State::Acknowledged && newer.flushes <= self.flushes,
            State::Forced => true,
        };
        self.state != State::InFlight && self.sequence < newer.sequence && is_as_strong
    }
}

#[derive(Clone, Debug, Default)]
struct Unit {
    /// Sequence number of the newest admitted write or deallocation; 0: none.
    newest: u64,
    /// Sequence number of the newest acknowledged write or deallocation; 0: none.
    acknowledged: u64,
    /// Sequence number of the newest deallocation; 0: none.
    trimmed: u64,
    /// Sequence number of the newest deallocation before any power loss undid it; 0: none.
    newest_trim: u64,
    /// Sequence number of the newest write that has been programmed; 0: none.
    programmed: u64,
    /// The writes and deallocations that are in flight or promised, without those that a newer one replaces.
    versions: Vec<Version>,
}

/// A write, deallocation or flush that is outstanding.
#[derive(Clone, Debug)]
struct Outstanding {
    request: Request,
    /// Number of flushes submitted before the request.
    flushes: u64,
    /// The units that the drive has admitted, with their sequence numbers.
    admitted: Vec<(Lpn, u64)>,
}

/// Checks every read, and which writes a power loss may lose. The first violations are kept; a violation makes the run
/// fail.
#[derive(Debug, Default)]
pub struct Oracle {
    /// The state of each LPN; grows with the largest LPN.
    units: Vec<Unit>,
    /// LPNs with data from before the oracle watched the drive, one bit each.
    preconditioned: Vec<u64>,
    /// By request slot and LPN: the newest sequence number acknowledged when the read reached the drive.
    asked: BTreeMap<(RequestId, u32), u64>,
    /// By request slot, the outstanding writes, deallocations and flushes.
    outstanding: BTreeMap<RequestId, Outstanding>,
    /// Number of flushes submitted.
    flushes: u64,
    /// Number of the first flushes of which the newest has completed, at the host; and in the drive, by flash.
    flushes_completed: u64,
    flushes_to_flash: u64,
    /// The flushes that have reached the drive and are not complete there, by the number of their request; each with
    /// the number of flushes submitted before.
    asked_flushes: BTreeMap<u64, u64>,
    /// The number of reads checked.
    pub checked: u64,
    /// The number of lost units compared with the lists of the drive.
    pub compared: u64,
    /// The first 16 violations.
    pub violations: Vec<String>,
}

impl Oracle {
    /// Bytes of the oracle's state per LPN, and per LPN that has been written.
    pub(crate) const BYTES_PER_LPN: u64 = size_of::<Unit>() as u64;
    pub(crate) const BYTES_PER_WRITTEN_LPN: u64 = 2 * size_of::<Version>() as u64 + 16;

    /// The oracle of an empty drive with `logical_units` logical units.
    pub fn new(logical_units: u32) -> Self {
        Self { units: vec![Unit::default(); logical_units as usize], ..Self::default() }
    }

    /// The oracle of a fresh drive.
    pub fn of(drive: &DriveSpec) -> Self {
        Self::new(Geometry::new(drive).logical_units)
    }

    fn unit(&mut self, lpn: Lpn) -> &mut Unit {
        if lpn.index() >= self.units.len() {
            self.units.resize((lpn.index() + 1).next_power_of_two(), Unit::default());
        }
        &mut self.units[lpn.index()]
    }

    /// Adds what a request has written or deallocated; `None`: what is at rest in flash.
    fn add_version(&mut self, request: Option<RequestId>, lpn: Lpn, sequence: u64, is_trim: bool) {
        let version = |state, flushes| Version { sequence, is_trim, state, flushes };
        let version = match request {
            None => version(State::Forced, 0),
            Some(slot) => {
                // Without a submission the oracle knows no request to which the drive could promise something.
                let Some(asked) = self.outstanding.get_mut(&slot) else { return };
                asked.admitted.push((lpn, sequence));
                version(State::InFlight, asked.flushes)
            }
        };
        let versions = &mut self.unit(lpn).versions;
        versions.retain(|older| !older.is_replaced_by(&version));
        if versions.capacity() == versions.len() {
            versions.reserve_exact(1);
        }
        versions.push(version);
    }

    /// The request has completed: what it has written or deallocated is promised, unless the request has failed.
    fn end(&mut self, ended: &Outstanding, has_failed: bool) {
        let is_forced = ended.request.fua && ended.request.op == Op::Write;
        let state = if is_forced { State::Forced } else { State::Acknowledged };
        for &(lpn, sequence) in &ended.admitted {
            let versions = &mut self.unit(lpn).versions;
            let Some(at) = versions.iter().position(|version| version.sequence == sequence) else { continue };
            if has_failed {
                versions.remove(at);
                continue;
            }
            versions[at].state = state;
            let promised = versions[at];
            let is_replaced = versions.iter().any(|newer| promised.is_replaced_by(newer));
            versions.retain(|older| !older.is_replaced_by(&promised));
            if is_replaced {
                versions.retain(|version| version.sequence != sequence);
            }
        }
    }

    /// By LPN, the units of the outstanding writes: the newest admitted write, and whether the drive has not admitted a
    /// write of the unit yet.
    fn in_flight(&self, unit_bytes: u32) -> BTreeMap<u32, (Option<u64>, bool)> {
        let mut units: BTreeMap<u32, (Option<u64>, bool)> = BTreeMap::new();
        for Outstanding { request, admitted, .. } in self.outstanding.values() {
            if request.op != Op::Write {
                continue;
            }
            let unit = |offset: u64| (offset / u64::from(unit_bytes)) as u32;
            for lpn in unit(request.offset)..=unit(request.offset + request.len - 1) {
                let own = admitted.iter().find(|&&(of, _)| of.0 == lpn).map(|&(_, sequence)| sequence);
                let (newest, is_unknown) = units.entry(lpn).or_default();
                *newest = own.max(*newest);
                *is_unknown |= own.is_none();
            }
        }
        units
    }

    /// The broken promise about a unit, which has the data of the write or deallocation `held`; `None`: it has nothing.
    /// `in_flight`: the newest admitted write of an outstanding request, and whether the drive has not admitted a write
    /// of an outstanding request yet. The last field of the result is not judged.
    fn broken(&self, lpn: Lpn, held: Option<u64>, in_flight: Option<(Option<u64>, bool)>) -> Option<Lost> {
        let versions = self.units.get(lpn.index()).map_or(&[][..], |unit| &unit.versions);
        let newest = |of: &dyn Fn(&Version) -> bool| {
            versions.iter().filter(|version| of(version)).max_by_key(|version| version.sequence)
        };
        let lost = |promise, sequence, is_trim| Lost { lpn, promise, sequence, is_trim, was_in_flash: false };
        let covered = newest(&|version| version.is_covered(self.flushes_completed));
        let before = self.is_preconditioned(lpn).then_some(0);
        if covered.map(|version| version.sequence).or(before) > held {
            let is_trim = covered.is_some_and(|version| version.is_trim);
            return Some(lost(Promise::Covered, covered.map_or(0, |version| version.sequence), is_trim));
        }
        let completed = newest(&|version| version.state != State::InFlight);
        let trimmed = newest(&|version| version.is_trim).map_or(0, |version| version.sequence);
        let is_broken = |version: &&Version| Some(version.sequence) > held && version.sequence > trimmed;
        if let Some(version) = completed.filter(is_broken) {
            return Some(lost(Promise::Acknowledged, version.sequence, false));
        }
        let (admitted, is_unknown) = in_flight?;
        let replaced_by = held.max(completed.map(|version| version.sequence));
        let admitted = admitted.filter(|&sequence| Some(sequence) > replaced_by);
        (admitted.is_some() || is_unknown).then(|| lost(Promise::InFlight, admitted.unwrap_or(0), false))
    }

    /// The newest write or deallocation of a unit that no power loss may lose; 0: none.
    fn safe(&self, lpn: Lpn) -> u64 {
        let Some(unit) = self.units.get(lpn.index()) else { return 0 };
        let flushed = unit.versions.iter().filter(|version| version.flushes < self.flushes_to_flash);
        flushed.map(|version| version.sequence).fold(unit.programmed, u64::max)
    }

    /// Compares the list of the drive with the promises about a unit that are broken. `destroyed`: the writes of the
    /// unit that torn programs have destroyed, by their sequence numbers.
    fn compare(
        &mut self,
        lpn: Lpn,
        held: Option<u64>,
        expected: Option<Lost>,
        listed: &[Lost],
        destroyed: &[u64],
    ) {
        self.compared += u64::from(expected.is_some());
        let known = |lost: &Lost| (lost.promise, lost.sequence, lost.is_trim);
        let is_equal = match (listed, &expected) {
            ([], None) => true,
            ([one], Some(expected)) => known(one) == known(expected),
            _ => false,
        };
        if !is_equal {
            self.violation(format!(
                "LPN {}: the drive lists {listed:?} as lost, but the completions say {expected:?}; recovered: {held:?}",
                lpn.0
            ));
        }
        let is_destroyed = |sequence: u64| destroyed.iter().any(|&of| of >= sequence);
        let safe = self.safe(lpn);
        if safe != 0 && Some(safe) > held && !is_destroyed(safe) {
            self.violation(format!("LPN {}: {held:?} is recovered, but {safe} was safe", lpn.0));
        }
        for lost in listed {
            let is_unknown = lost.promise == Promise::InFlight && lost.sequence == 0;
            if lost.was_in_flash != (!is_unknown && is_destroyed(lost.sequence)) {
                self.violation(format!("LPN {}: {lost:?}, but torn programs destroyed {destroyed:?}", lpn.0));
            }
        }
    }

    /// The drive cannot have the record of a deallocation newer than the newest that it has admitted.
    fn check_record(&mut self, lpn: Lpn, content: Content) {
        let Content::Trimmed(sequence) = content else { return };
        let newest = self.unit(lpn).newest_trim;
        if !(1..=newest).contains(&sequence) {
            self.violation(format!(
                "LPN {}: TRIM {sequence} is recovered, but the newest was {newest}",
                lpn.0
            ));
        }
    }

    /// The unit has been recovered with this content. Outstanding requests have ended without a promise. What the unit
    /// has now takes over the promises about newer operations, which are broken, or about a TRIM, which is undone.
    fn recover(&mut self, lpn: Lpn, content: Content, held: Option<u64>) {
        let completed = self.flushes_completed;
        let unit = self.unit(lpn);
        unit.versions.retain(|version| version.state != State::InFlight);
        if unit.versions.iter().any(|version| Some(version.sequence) > held) {
            let newest = |is_covered: bool| {
                let of = unit.versions.iter().filter(|version| !is_covered || version.is_covered(completed));
                of.max_by_key(|version| version.sequence).copied()
            };
            let now_held = |version: Version| {
                let sequence = version.sequence.min(held?);
                let is_trim = version.is_trim && sequence == version.sequence;
                Some(Version { sequence, is_trim, ..version }).filter(|_| sequence != 0)
            };
            unit.versions =
                [newest(true), newest(false)].into_iter().flatten().filter_map(now_held).collect();
        }
        match content {
            Content::Write(sequence) => {
                let trims = unit.versions.iter().filter(|version| version.is_trim);
                unit.trimmed = trims.map(|version| version.sequence).max().unwrap_or(0);
                (unit.newest, unit.acknowledged) = (sequence, sequence);
            }
            Content::Nothing => (unit.newest, unit.acknowledged, unit.trimmed) = (0, 0, 0),
            Content::Trimmed(sequence) => {
                (unit.newest, unit.acknowledged, unit.trimmed) = (sequence, sequence, sequence);
            }
            // Until the unit is written again, the oracle does not know which of its sectors fail.
            Content::Unreadable => (unit.acknowledged, unit.trimmed) = (0, unit.newest.max(1)),
        }
        unit.programmed = unit.programmed.min(held.unwrap_or(0));
        if held.is_none()
            && let Some(word) = self.preconditioned.get_mut(lpn.index() / 64)
        {
            *word &= !(1 << (lpn.0 % 64));
        }
    }

    /// The unit had a write in flight. What recovery has found can be read, and flushed, so it is promised from now on.
    fn find(&mut self, lpn: Lpn, content: Content) {
        let (Content::Write(sequence), flushes) = (content, self.flushes) else { return };
        let versions = &mut self.unit(lpn).versions;
        if versions.iter().all(|version| version.sequence < sequence) && sequence > 0 {
            versions.push(Version { sequence, is_trim: false, state: State::Acknowledged, flushes });
        }
    }

    /// Returns `Ok` if the oracle has found no violation so far.
    ///
    /// # Errors
    /// The first violation, if there is one.
    pub fn verdict(&self) -> Result<(), String> {
        self.violations.first().map_or(Ok(()), |first| Err(first.clone()))
    }

    /// Notes that every LPN mapped in `map` has data from before the workload, and forgets how it was written.
    pub fn expect_preconditioned(&mut self, map: &UnitMap) {
        self.units.iter_mut().for_each(|unit| unit.versions.clear());
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
    #[inline(always)]
    fn sees_phases(&self) -> bool {
        false
    }
}

value! { State enum { InFlight, Acknowledged, Forced } }
value! { Version { sequence, is_trim, state, flushes } }
value! { Unit { newest, acknowledged, trimmed, newest_trim, programmed, versions } }
value! { Outstanding { request, flushes, admitted } }
state! {
    Oracle {
        units,
        preconditioned,
        asked,
        outstanding,
        flushes,
        flushes_completed,
        flushes_to_flash,
        asked_flushes,
        checked,
        compared,
        violations,
    }
}

impl Probe for Oracle {
    #[inline(always)]
    fn needs_sequences(&self) -> bool {
        true
    }

    fn save(&self, out: &mut StateWriter<'_>) {
        self.save_state(out);
    }

    fn load(&mut self, from: &mut StateReader<'_>) -> Result<(), StateError> {
        self.load_state(from)
    }

    fn on_submitted(&mut self, slot: RequestId, id: u64, request: &Request, _operations: u64) {
        if request.op == Op::Read {
            return;
        }
        let asked = Outstanding { request: *request, flushes: self.flushes, admitted: Vec::new() };
        self.outstanding.insert(slot, asked);
        if request.op == Op::Flush {
            self.asked_flushes.insert(id, self.flushes);
            self.flushes += 1;
        }
    }

    fn on_completed(&mut self, slot: RequestId, done: &Completion) {
        if let Some(ended) = self.outstanding.remove(&slot) {
            self.end(&ended, done.failed.is_some());
            if ended.request.op == Op::Flush && done.failed.is_none() {
                self.flushes_completed = self.flushes_completed.max(ended.flushes + 1);
            }
        }
    }

    fn on_write_admitted(&mut self, request: Option<RequestId>, lpn: Lpn, sequence: u64) {
        let unit = self.unit(lpn);
        let newest = std::mem::replace(&mut unit.newest, sequence);
        if newest >= sequence {
            self.violation(format!("LPN {}: write {sequence} admitted after {newest}", lpn.0));
        }
        self.add_version(request, lpn, sequence, false);
    }

    fn on_write_acknowledged(&mut self, lpn: Lpn, sequence: u64) {
        let unit = self.unit(lpn);
        unit.acknowledged = unit.acknowledged.max(sequence);
    }

    fn on_write_durable(&mut self, lpn: Lpn, sequence: u64) {
        let unit = self.unit(lpn);
        unit.programmed = unit.programmed.max(sequence);
    }

    fn on_flushed(&mut self, id: u64, from_cache: bool) {
        let Some(before) = self.asked_flushes.remove(&id) else {
            self.violation(format!("flush {id} has completed, but was never submitted"));
            return;
        };
        if !from_cache {
            self.flushes_to_flash = self.flushes_to_flash.max(before + 1);
        }
    }

    fn on_power_loss(&mut self, lost: &[Lost], recovered: &Recovered<'_>) {
        let in_flight = self.in_flight(recovered.unit_bytes);
        let (mut listed, mut destroyed) = (BTreeMap::new(), BTreeMap::new());
        for &lost in lost {
            listed.entry(lost.lpn).or_insert_with(Vec::new).push(lost);
        }
        for &(lpn, sequence) in recovered.destroyed {
            destroyed.entry(lpn).or_insert_with(Vec::new).push(sequence);
        }
        for lpn in (0..recovered.units).map(Lpn) {
            let content = (recovered.content)(lpn);
            self.check_record(lpn, content);
            let held = content.held();
            let of_requests = in_flight.get(&lpn.0).copied();
            let expected = self.broken(lpn, held, of_requests);
            let listed = listed.remove(&lpn).unwrap_or_default();
            let destroyed = destroyed.get(&lpn).map_or(&[][..], |list| list);
            self.compare(lpn, held, expected, &listed, destroyed);
            self.recover(lpn, content, held);
            if of_requests.is_some() {
                self.find(lpn, content);
            }
        }
        for lost in listed.into_values().flatten() {
            self.violation(format!("the drive lists {lost:?}, but has no such unit"));
        }
        self.asked.clear();
        self.outstanding.clear();
        self.asked_flushes.clear();
    }

    fn on_trimmed(&mut self, request: RequestId, lpn: Lpn, sequence: u64) {
        let unit = self.unit(lpn);
        (unit.newest, unit.acknowledged, unit.trimmed) = (sequence, sequence, sequence);
        unit.newest_trim = sequence;
        self.add_version(Some(request), lpn, sequence, true);
    }

    fn on_read_asked(&mut self, request: RequestId, lpn: Lpn) {
        let acknowledged = self.units.get(lpn.index()).map_or(0, |unit| unit.acknowledged);
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
        let (trimmed, newest) =
            self.units.get(lpn.index()).map_or((0, 0), |unit| (unit.trimmed, unit.newest));
        let is_right = match sequence {
            // No data is right if the unit was never written, or if its newest deallocation is not older than `least`.
            None => (least == 0 && !self.is_preconditioned(lpn)) || trimmed >= least.max(1),
            // Data from before the run is right only if nothing newer was acknowledged.
            Some(0) => least == 0 && self.is_preconditioned(lpn),
            Some(found) => least <= found && found <= newest,
        };
        if !is_right {
            self.violation(format!(
                "LPN {}: read returned {}, expected sequence numbers {least} (newest acknowledged) to {} (newest \
                 admitted)",
                lpn.0,
                sequence.map_or("nothing".to_owned(), |s| format!("write {s}")),
                newest,
            ));
        }
    }
}

#[cfg(test)]
mod tests;
