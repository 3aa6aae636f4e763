//! The operations so far, and the times for which they held a die.

use super::NOBODY;
use super::part::{Own, Part};
use crate::base::geometry::DieId;
use crate::base::units::Time;
use crate::sched::{Cause, FlashOp, Phase, Transaction};

/// The length of the rings of operations and of holds.
const RING: usize = 1 << 13;

/// What the drive acts upon: the end of an operation, by number, or one of the constants.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Trigger(pub(super) u64);

impl Trigger {
    /// Nothing that is known.
    pub(super) const UNKNOWN: Self = Self(u64::MAX);
    /// The beginning of a request.
    pub(super) const REQUEST: Self = Self(u64::MAX - 1);
    /// A time that has come.
    pub(super) const TIMER: Self = Self(u64::MAX - 2);
}

/// From a time to another one, in nanoseconds.
pub(super) type Stretch = (u64, u64);

/// The numbers of an operation's phases.
pub(super) const COMMAND: usize = 0;
pub(super) const ARRAY: usize = 1;
pub(super) const OUT: usize = 2;
pub(super) const DECODE: usize = 3;

/// A flash operation, a try of a read, or an access to the DRAM of the write cache.
#[derive(Clone, Copy, Debug)]
pub(super) struct Operation {
    pub(super) number: u64,
    pub(super) queued: u64,
    pub(super) issued: u64,
    pub(super) ended: u64,
    pub(super) trigger: Trigger,
    /// The number of the request to which it belongs; [`NOBODY`] for none.
    pub(super) request: u64,
    /// The number of its last hold of the die.
    pub(super) hold: u64,
    /// The last holds of its die and of its station before it was issued ([`Station::last`]).
    pub(super) before: [u64; 2],
    pub(super) station: u32,
    pub(super) die: u32,
    pub(super) lpn: u32,
    /// `None` for an access to DRAM.
    pub(super) kind: Option<FlashOp>,
    pub(super) cause: Cause,
    pub(super) tries: u8,
    /// By bit which phases have a time.
    pub(super) seen: u8,
    /// Command or transfer in, array operation, transfer out, decoding, as far as they are `seen`.
    pub(super) phases: [Stretch; 4],
}

impl Operation {
    /// An operation that has no number yet, and has neither been issued nor ended.
    const NONE: Self = Self {
        number: u64::MAX,
        queued: 0,
        issued: u64::MAX,
        ended: u64::MAX,
        trigger: Trigger::UNKNOWN,
        request: NOBODY,
        hold: u64::MAX,
        before: [0; 2],
        station: 0,
        die: 0,
        lpn: 0,
        kind: None,
        cause: Cause::Host,
        tries: 0,
        seen: 0,
        phases: [(0, 0); 4],
    };

    /// It begins on a station. The program of a copyback follows its sense, which was issued before.
    #[inline(always)]
    fn issue(&mut self, now: Time, id: DieId, before: [u64; 2]) {
        if self.issued == u64::MAX {
            (self.issued, self.station, self.before) = (now.ns(), id.0, before);
        }
    }

    #[inline(always)]
    fn set_phase(&mut self, number: usize, stretch: Stretch) {
        self.phases[number] = stretch;
        self.seen |= 1 << number;
    }

    #[inline(always)]
    pub(super) fn has_phase(&self, number: usize) -> bool {
        self.seen & 1 << number != 0
    }
}

/// A time for which an operation held its die, or the planes of a die that read at their own times. It fills a line of the
/// processor's cache.
#[derive(Clone, Copy, Debug)]
#[repr(align(64))]
pub(super) struct Hold {
    pub(super) number: u64,
    pub(super) start: u64,
    pub(super) end: u64,
    /// The number of the hold before it, plus 1.
    pub(super) before: u64,
    pub(super) operation: u64,
    /// The number of the request to which the operation belongs; [`NOBODY`] for none, and for a suspension.
    pub(super) request: u64,
    pub(super) die: u32,
    pub(super) lpn: u32,
    /// The number of the part to which the wait for it belongs: that of the operation, or [`Own::Suspend`] while the die
    /// gets ready for reads.
    pub(super) part: u8,
}

impl Hold {
    const NONE: Self = Self {
        number: u64::MAX,
        start: 0,
        end: 0,
        before: 0,
        operation: u64::MAX,
        request: NOBODY,
        die: 0,
        lpn: 0,
        part: 0,
    };
}

/// A die, or the planes of a die that read at their own times.
#[derive(Clone, Debug, Default)]
struct Station {
    /// The number of the last hold, plus 1.
    last: u64,
    /// The numbers of the operations under way, and of those that are suspended.
    batch: Vec<u64>,
    suspended: Vec<u64>,
    /// Of a die, the numbers of the stations of its planes.
    planes: Vec<u32>,
}

/// The most stations of planes at which the wait of an operation looks.
const PLANES_MAX: usize = 16;

/// The operations so far, and their holds.
#[derive(Debug)]
pub(super) struct Log {
    pub(super) trigger: Trigger,
    operations: Box<[Operation; RING]>,
    /// Number of operations so far.
    begun: u64,
    /// By place of the order of a transaction in a ring, order and number of its operation.
    of_order: Box<[(u64, u64); RING]>,
    holds: Box<[Hold; RING]>,
    /// Number of holds so far.
    held: u64,
    stations: Vec<Station>,
}

/// A ring of its length, which the compiler knows: no access to it needs a check.
fn ring<T: Copy>(of: T) -> Box<[T; RING]> {
    let ring = vec![of; RING].into_boxed_slice();
    ring.try_into().unwrap_or_else(|_| unreachable!("it has this length"))
}

/// The place of a number in a ring.
#[inline(always)]
fn place(number: u64) -> usize {
    number as usize % RING
}

impl Log {
    /// Bytes of the rings.
    pub(super) const BYTES: usize =
        RING * (size_of::<Operation>() + size_of::<Hold>() + size_of::<(u64, u64)>());

    pub(super) fn new() -> Self {
        Self {
            trigger: Trigger::UNKNOWN,
            operations: ring(Operation::NONE),
            begun: 0,
            of_order: ring((u64::MAX, u64::MAX)),
            holds: ring(Hold::NONE),
            held: 0,
            stations: Vec::new(),
        }
    }

    /// The operation with this number.
    #[inline(always)]
    pub(super) fn operation(&self, number: u64) -> Option<&Operation> {
        let operation = &self.operations[place(number)];
        (operation.number == number).then_some(operation)
    }

    /// The hold before the one with this number plus 1.
    #[inline(always)]
    pub(super) fn hold_before(&self, last: u64) -> Option<&Hold> {
        let number = last.checked_sub(1)?;
        let hold = &self.holds[place(number)];
        (hold.number == number).then_some(hold)
    }

    /// Of the lists of holds that explain the wait of an operation, that with this number by its last hold
    /// ([`Station::last`]). First comes that of the die, then those of the stations that share the die with it.
    pub(super) fn list(&self, operation: &Operation, number: usize) -> Option<u64> {
        let [of_die, of_station] = operation.before;
        if number == 0 {
            return Some(of_die);
        }
        if operation.station != operation.die {
            return (number == 1).then_some(of_station);
        }
        let planes = &self.stations.get(operation.die as usize)?.planes;
        let &id = planes.get(number - 1).filter(|_| number <= PLANES_MAX)?;
        Some(self.stations.get(id as usize).map_or(0, |station| station.last))
    }

    #[inline(always)]
    fn of_order(&mut self, order: u64) -> Option<&mut Operation> {
        let (found, number) = self.of_order[place(order)];
        let operation = &mut self.operations[place(number)];
        (found == order && operation.number == number).then_some(operation)
    }

    #[inline(always)]
    fn station(&mut self, id: DieId) -> &mut Station {
        if self.stations.len() <= id.index() {
            self.add_stations(id);
        }
        &mut self.stations[id.index()]
    }

    #[cold]
    #[inline(never)]
    fn add_stations(&mut self, id: DieId) {
        self.stations.resize_with(id.index() + 1, Station::default);
    }

    /// An operation for this request has been queued.
    #[inline]
    pub(super) fn queue(&mut self, now: Time, request: u64, t: &Transaction) {
        let number = self.begun;
        self.begun += 1;
        let of = &mut self.operations[place(number)];
        // What only phases that are seen have is left as it is.
        (of.number, of.queued, of.issued, of.ended) = (number, now.ns(), u64::MAX, u64::MAX);
        (of.trigger, of.request, of.hold, of.before) = (self.trigger, request, u64::MAX, [0; 2]);
        (of.station, of.die, of.lpn) = (t.die.0, t.die.0, t.lpn.0);
        (of.kind, of.cause, of.tries, of.seen) = (Some(t.kind), t.cause, t.tries, 0);
        if t.tries > 0 {
            self.retry(now, number, t);
        }
        self.of_order[place(t.order)] = (t.order, number);
    }

    /// The try before ended with its decoding, which is why this one is queued.
    #[cold]
    #[inline(never)]
    fn retry(&mut self, now: Time, number: u64, t: &Transaction) {
        if let Some(before) = self.of_order(t.order) {
            before.ended = now.ns();
            let before = before.number;
            self.operations[place(number)].trigger = Trigger(before);
        }
    }

    /// An access to DRAM for this request begins; returns its number.
    pub(super) fn access(&mut self, now: Time, end: Time, request: u64) -> u64 {
        let (number, trigger) = (self.begun, self.trigger);
        self.begun += 1;
        let (queued, ended) = (now.ns(), end.ns());
        self.operations[place(number)] =
            Operation { number, queued, issued: queued, ended, trigger, request, ..Operation::NONE };
        number
    }

    /// The operation of a transaction has ended.
    #[inline]
    pub(super) fn end(&mut self, now: Time, t: &Transaction) {
        self.trigger = match self.of_order(t.order) {
            Some(operation) => {
                operation.ended = now.ns();
                Trigger(operation.number)
            }
            None => Trigger::UNKNOWN,
        };
    }

    /// The data of a read is decoded.
    #[inline]
    pub(super) fn decode(&mut self, start: Time, end: Time, t: &Transaction) {
        if let Some(operation) = self.of_order(t.order) {
            operation.set_phase(DECODE, (start.ns(), end.ns()));
        }
    }

    /// The operation of a transaction has been issued on a station, alone or as the first of others: it holds the station.
    /// `request` is for an operation that is not known.
    #[inline]
    pub(super) fn issue(&mut self, now: Time, id: DieId, t: &Transaction, request: impl FnOnce() -> u64) {
        let before = self.station(id).last;
        let of_die = if id == t.die { before } else { self.whole(id, t.die) };
        let number = self.held;
        self.held += 1;
        let (operation, request) = match self.of_order(t.order) {
            Some(operation) => {
                operation.hold = number;
                operation.issue(now, id, [of_die, before]);
                (operation.number, operation.request)
            }
            None => (u64::MAX, request()),
        };
        let part = Part::Operation(t.kind, t.cause).index() as u8;
        self.holds[place(number)] = Hold {
            number,
            start: now.ns(),
            end: u64::MAX,
            before,
            operation,
            request,
            die: t.die.0,
            lpn: t.lpn.0,
            part,
        };
        let station = &mut self.stations[id.index()];
        station.last = number + 1;
        station.batch.clear();
        if operation != u64::MAX {
            station.batch.push(operation);
        }
    }

    /// Notes that a station is one of planes of this die, and returns the last hold of the die.
    #[inline(never)]
    fn whole(&mut self, id: DieId, die: DieId) -> u64 {
        let whole = self.station(die);
        if !whole.planes.contains(&id.0) {
            whole.planes.push(id.0);
        }
        whole.last
    }

    /// The operation of a transaction runs with the one that was issued on the station last. The hold is that of the first
    /// transaction. Planes that read at their own times join nothing.
    pub(super) fn join(&mut self, now: Time, id: DieId, t: &Transaction) {
        let last = self.station(id).last;
        let before = self.hold_before(last).map_or(0, |hold| hold.before);
        let number = self.of_order(t.order).map(|operation| {
            operation.issue(now, id, [before; 2]);
            operation.number
        });
        self.stations[id.index()].batch.extend(number);
    }

    /// A phase runs on a station.
    #[inline]
    pub(super) fn phase(&mut self, start: Time, end: Time, id: DieId, phase: Phase, t: &Transaction) {
        let (start, end) = (start.ns(), end.ns());
        let is_last = match phase {
            Phase::TransferOut => {
                if let Some(operation) = self.of_order(t.order) {
                    operation.set_phase(OUT, (start, end));
                }
                t.kind == FlashOp::Read
            }
            _ => {
                let is_array = phase == Phase::Array;
                let number = if is_array { ARRAY } else { COMMAND };
                let batch = self.stations.get(id.index()).map_or(&[][..], |station| &station.batch[..]);
                for &operation in batch {
                    let of = &mut self.operations[place(operation)];
                    if of.number == operation {
                        let begun = if is_array && of.has_phase(ARRAY) { of.phases[ARRAY].0 } else { start };
                        of.set_phase(number, (begun, end));
                    }
                }
                is_array && t.kind != FlashOp::Read
            }
        };
        // The last phase of an operation ends its hold; a phase before it does not.
        if is_last
            && let Some(number) =
                self.stations.get(id.index()).and_then(|station| station.last.checked_sub(1))
        {
            let hold = &mut self.holds[place(number)];
            if hold.number == number {
                hold.end = end;
            }
        }
    }

    /// A station suspends its operations, and is ready for reads at `ready`.
    pub(super) fn suspend(&mut self, now: Time, ready: Time, id: DieId) {
        let station = self.station(id);
        let batch = std::mem::take(&mut station.batch);
        station.suspended = batch;
        let Some(&first) = station.suspended.first() else { return };
        let last = station.last;
        let of = self.hold_before(last).copied();
        let Some(of) = of.filter(|hold| hold.operation == first) else { return };
        self.holds[place(of.number)].end = now.ns();
        self.add_hold(
            id,
            Hold {
                start: now.ns(),
                end: ready.ns(),
                before: last,
                operation: u64::MAX,
                request: NOBODY,
                part: Own::Suspend as u8,
                ..of
            },
        );
    }

    /// A station takes its operations up again.
    pub(super) fn resume(&mut self, now: Time, id: DieId) {
        let (number, station) = (self.held, self.station(id));
        station.batch = std::mem::take(&mut station.suspended);
        let (before, first) = (station.last, station.batch.first().copied());
        let Some(first) = first else { return };
        let operation = &mut self.operations[place(first)];
        if operation.number != first {
            return;
        }
        operation.hold = number;
        let kind = operation.kind.unwrap_or(FlashOp::Program);
        let part = Part::Operation(kind, operation.cause).index() as u8;
        let (die, lpn, request) = (operation.die, operation.lpn, operation.request);
        let (start, end, operation) = (now.ns(), u64::MAX, first);
        self.add_hold(id, Hold { number, start, end, before, operation, request, die, lpn, part });
    }

    /// Adds a hold, which is the last one of a station.
    fn add_hold(&mut self, id: DieId, hold: Hold) {
        let number = self.held;
        self.held += 1;
        self.holds[place(number)] = Hold { number, ..hold };
        self.station(id).last = number + 1;
    }

    /// All operations have ended.
    pub(super) fn clear(&mut self) {
        self.trigger = Trigger::UNKNOWN;
        self.operations.iter_mut().for_each(|operation| operation.number = u64::MAX);
        self.holds.iter_mut().for_each(|hold| hold.number = u64::MAX);
        self.stations.clear();
    }
}
