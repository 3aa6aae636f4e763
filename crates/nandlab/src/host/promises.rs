//! What the drive has promised to the host about each unit (`base/lost.rs`), for the lists of lost writes.
//!
//! A write or TRIM becomes a promise when its request completes. A flush covers the requests that reached the drive
//! before the flush: those of its epoch and of all earlier epochs (`epochs.rs`; requests and flushes reach the drive in
//! the order of their submission). So a unit needs the newest operation of a completed request, the epoch of this
//! request, and the newest covered operation. An operation that a newer one of a later epoch overtakes is kept in the
//! list of its epoch until the flush of the epoch completes.
//!
//! A drive without sequence numbers cannot lose power and keeps no promises.

use super::{InWork, Op};
use crate::base::geometry::{Lpn, UnitId};
use crate::base::huge::Huge;
use crate::base::lost::{Lost, Promise};
use crate::base::slab::{Id, Node, Slab};
use crate::base::state::{state, value};
use crate::ftl::UnitMap;
use std::collections::{BTreeMap, VecDeque};

/// An operation on a unit: of an outstanding request, or overtaken by a newer one.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Operation {
    lpn: Lpn,
    sequence: u64,
    next: Option<Id<Self>>,
}

impl Node for Operation {
    const EMPTY: Self = Self { lpn: Lpn(0), sequence: 0, next: None };

    fn next(&mut self) -> &mut Option<Id<Self>> {
        &mut self.next
    }
}

/// The promises about a unit, in the array [`Promises::units`].
const COVERED: usize = 0;
const ACKNOWLEDGED: usize = 1;
const EPOCH: usize = 2;
const FIELDS: usize = 3;

/// The promises of the drive.
#[derive(Debug)]
pub(crate) struct Promises {
    /// For each LPN the sequence number of the newest covered operation (0: none), that of the newest acknowledged
    /// operation (0: none), and the epoch of the latter. Once the flush of this epoch has completed, the acknowledged
    /// operation is covered as well.
    units: Huge<u64>,
    /// LPNs with data from before the workload, one bit each.
    at_rest: Vec<u64>,
    operations: Slab<Operation>,
    /// By epoch, from `flushed` on, the list of the acknowledged operations that newer ones have overtaken.
    overtaken: VecDeque<Option<Id<Operation>>>,
    /// The number of the first epoch that no completed flush covers.
    flushed: u64,
    /// The number of the first epoch since power was on.
    first: u64,
}

impl Promises {
    /// Bytes for each LPN that the host writes.
    pub(crate) const BYTES_PER_LPN: u64 = (FIELDS * size_of::<u64>()) as u64;

    pub(crate) fn new(logical_units: u32) -> Self {
        Self {
            units: Huge::zeroed(FIELDS * logical_units as usize),
            at_rest: Vec::new(),
            operations: Slab::default(),
            overtaken: VecDeque::new(),
            flushed: 0,
            first: 0,
        }
    }

    /// Bytes of the array by LPN.
    pub(crate) fn bytes(&self) -> u64 {
        self.units.bytes()
    }

    fn unit(&mut self, lpn: Lpn) -> &mut [u64] {
        &mut self.units[FIELDS * lpn.index()..][..FIELDS]
    }

    /// The sequence number of the newest covered operation on a unit; 0: none.
    fn covered(&self, lpn: Lpn) -> u64 {
        let unit = &self.units[FIELDS * lpn.index()..][..FIELDS];
        if unit[EPOCH] < self.flushed { unit[COVERED].max(unit[ACKNOWLEDGED]) } else { unit[COVERED] }
    }

    fn cover(&mut self, lpn: Lpn, sequence: u64) {
        let unit = self.unit(lpn);
        unit[COVERED] = unit[COVERED].max(sequence);
        unit[ACKNOWLEDGED] = unit[ACKNOWLEDGED].max(sequence);
    }

    /// The workload begins: every LPN mapped in `map` has data at rest, however it got there. `sequence`: the sequence
    /// number of the write in a unit; 0: none.
    pub(crate) fn note_at_rest(&mut self, map: &UnitMap, sequence: impl Fn(UnitId) -> u64) {
        let lpns = self.units.len() / FIELDS;
        self.units = Huge::zeroed(self.units.len());
        self.at_rest = vec![0; lpns.div_ceil(64)];
        for lpn in (0..lpns as u32).map(Lpn) {
            let Some(unit) = map.get(lpn) else { continue };
            self.at_rest[lpn.index() / 64] |= 1 << (lpn.0 % 64);
            // Most data is from preconditioning, which does not number its writes: their entries stay untouched.
            let sequence = sequence(unit);
            if sequence > 0 {
                self.cover(lpn, sequence);
            }
        }
    }

    fn is_at_rest(&self, lpn: Lpn) -> bool {
        self.at_rest.get(lpn.index() / 64).is_some_and(|word| word >> (lpn.0 % 64) & 1 == 1)
    }

    /// A unit has been written without a request: its data is at rest.
    pub(crate) fn on_written_now(&mut self, lpn: Lpn, sequence: u64) {
        self.cover(lpn, sequence);
    }

    /// Adds an operation on a unit to those of an outstanding request.
    #[inline]
    pub(crate) fn on_admitted(&mut self, request: &mut InWork, lpn: Lpn, sequence: u64) {
        let operation = Operation { lpn, sequence, next: request.admitted };
        request.admitted = Some(self.operations.insert(operation));
    }

    /// A request has completed at the host.
    #[inline(always)]
    pub(crate) fn on_completed(&mut self, done: &InWork) {
        if done.request.op != Op::Read {
            self.on_promised(done);
        }
    }

    /// A write, TRIM or flush has completed at the host.
    #[inline(never)]
    fn on_promised(&mut self, done: &InWork) {
        let epoch = self.first + done.epoch;
        if done.request.op == Op::Flush {
            self.on_flushed(epoch);
        }
        let is_forced = done.request.fua && done.request.op == Op::Write;
        let mut next = done.admitted;
        while let Some(slot) = next {
            let Operation { lpn, sequence, next: rest } = self.operations.remove(slot);
            next = rest;
            if done.failed.is_some() {
                continue;
            }
            self.acknowledge(lpn, sequence, epoch);
            if is_forced {
                self.cover(lpn, sequence);
            }
        }
    }

    /// The request of an operation on a unit has completed; the request was of `epoch`.
    fn acknowledge(&mut self, lpn: Lpn, sequence: u64, epoch: u64) {
        let covered = self.covered(lpn);
        let unit = self.unit(lpn);
        unit[COVERED] = covered;
        let (before, its_epoch) = (unit[ACKNOWLEDGED], unit[EPOCH]);
        if sequence > before {
            (unit[ACKNOWLEDGED], unit[EPOCH]) = (sequence, epoch);
            if before > covered && its_epoch < epoch {
                self.overtake(lpn, before, its_epoch);
            }
        } else if epoch < its_epoch && sequence > covered {
            self.overtake(lpn, sequence, epoch);
        }
    }

    /// Recovery has found the data of a write that was in flight at power loss. The host can read it from now on, and flush
    /// what it has read, so it counts as acknowledged.
    pub(crate) fn on_found(&mut self, lpn: Lpn, sequence: u64) {
        if sequence > self.unit(lpn)[ACKNOWLEDGED] {
            self.acknowledge(lpn, sequence, self.first);
        }
    }

    /// Keeps an acknowledged operation, which a newer one of a later epoch has overtaken, until a flush covers `epoch`.
    fn overtake(&mut self, lpn: Lpn, sequence: u64, epoch: u64) {
        let Some(at) = epoch.checked_sub(self.flushed) else { return self.cover(lpn, sequence) };
        if self.overtaken.len() <= at as usize {
            self.overtaken.resize(at as usize + 1, None);
        }
        let list = &mut self.overtaken[at as usize];
        *list = Some(self.operations.insert(Operation { lpn, sequence, next: *list }));
    }

    /// The flush that has ended `epoch` has completed: it covers this epoch and all earlier ones.
    fn on_flushed(&mut self, epoch: u64) {
        while self.flushed <= epoch {
            self.flushed += 1;
            let mut next = self.overtaken.pop_front().flatten();
            while let Some(slot) = next {
                let Operation { lpn, sequence, next: rest } = self.operations.remove(slot);
                next = rest;
                self.cover(lpn, sequence);
            }
        }
    }

    /// Power is lost: no outstanding request completes any more. `requests`: these requests; `open`: the number of the
    /// open epoch; `units` returns the first and the last unit of a request. Returns, by LPN, the units of the
    /// outstanding writes.
    pub(crate) fn on_power_loss(
        &mut self,
        requests: &[InWork],
        open: u64,
        units: impl Fn(&InWork) -> (u32, u32),
    ) -> BTreeMap<u32, InFlight> {
        let mut in_flight: BTreeMap<u32, InFlight> = BTreeMap::new();
        for asked in requests.iter().filter(|asked| asked.request.op == Op::Write) {
            let (first, last) = units(asked);
            let mut admitted = BTreeMap::new();
            let mut next = asked.admitted;
            while let Some(slot) = next {
                let Operation { lpn, sequence, next: rest } = self.operations[slot];
                next = rest;
                admitted.insert(lpn.0, sequence);
            }
            for lpn in first..=last {
                let unit = in_flight.entry(lpn).or_default();
                match admitted.get(&lpn) {
                    Some(&sequence) => unit.admitted = unit.admitted.max(sequence),
                    None => unit.has_unadmitted = true,
                }
            }
        }
        self.operations.clear();
        // The next flush to complete covers all epochs so far.
        self.overtaken.clear();
        self.first += open + 1;
        in_flight
    }

    /// Returns the strongest promise about a unit that is broken. Only a unit `is_at_risk` can break a promise to a
    /// completed request: anything else would be an error of the recovery, which must not pass for a loss.
    pub(crate) fn broken(&self, at: &AfterLoss<'_>) -> Option<Lost> {
        let &AfterLoss { lpn, held, is_at_risk, in_flight, undone_trims, destroyed } = at;
        let lost = |promise, sequence| Lost {
            lpn,
            promise,
            sequence,
            is_trim: undone_trims.contains(&sequence),
            // In flight, 0 is a unit that has not reached the drive.
            was_in_flash: (promise, sequence) != (Promise::InFlight, 0)
                && destroyed.iter().any(|&of| of >= sequence),
        };
        let covered = self.covered(lpn);
        let acknowledged = self.units[FIELDS * lpn.index() + ACKNOWLEDGED];
        if is_at_risk {
            if (covered > 0 || self.is_at_rest(lpn)) && Some(covered) > held {
                return Some(lost(Promise::Covered, covered));
            }
            let is_broken = acknowledged > 0 && Some(acknowledged) > held;
            let is_trimmed = undone_trims.iter().any(|&trim| trim >= acknowledged);
            if is_broken && !is_trimmed {
                return Some(lost(Promise::Acknowledged, acknowledged));
            }
        }
        let InFlight { admitted, has_unadmitted } = in_flight?;
        let is_newest = admitted > acknowledged && Some(admitted) > held;
        (is_newest || has_unadmitted).then(|| lost(Promise::InFlight, if is_newest { admitted } else { 0 }))
    }

    /// What a unit has after recovery takes over the promises about newer operations.
    pub(crate) fn keep(&mut self, lpn: Lpn, held: Option<u64>) {
        let covered = self.covered(lpn);
        let unit = self.unit(lpn);
        let held_or_none = held.unwrap_or(0);
        unit[COVERED] = covered.min(held_or_none);
        unit[ACKNOWLEDGED] = unit[ACKNOWLEDGED].min(held_or_none);
        if held.is_none()
            && let Some(word) = self.at_rest.get_mut(lpn.index() / 64)
        {
            *word &= !(1 << (lpn.0 % 64));
        }
    }
}

/// The writes of a unit by outstanding requests.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct InFlight {
    /// Sequence number of the newest write that the drive has admitted; 0: none.
    admitted: u64,
    /// Whether the drive has not admitted a write.
    has_unadmitted: bool,
}

/// A unit after a power loss and the recovery.
#[derive(Clone, Copy)]
pub(crate) struct AfterLoss<'a> {
    pub(crate) lpn: Lpn,
    /// The write that the unit has; without data, the newest TRIM; `None`: neither.
    pub(crate) held: Option<u64>,
    /// Whether the power loss may have destroyed data of a completed request.
    pub(crate) is_at_risk: bool,
    pub(crate) in_flight: Option<InFlight>,
    /// The TRIMs of the unit that are undone, by their sequence numbers.
    pub(crate) undone_trims: &'a [u64],
    /// The writes of the unit that a torn program or reprogram has destroyed in flash, by their sequence numbers.
    pub(crate) destroyed: &'a [u64],
}

value! { Operation { lpn, sequence, next } }
state! { Promises { units, at_rest, operations, overtaken, flushed, first } }
