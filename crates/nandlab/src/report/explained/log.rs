//! The operations so far, and the times for which they held a die.

use super::NOBODY;
use super::part::{Own, Part};
use crate::base::geometry::DieId;
use crate::base::units::Time;
use crate::sched::{Cause, FlashOp, Phase, Transaction};
use std::ops::{Index, IndexMut};

/// The length of the rings of operations and of holds in a run. It is a power of two.
pub(super) const RING: usize = 1 << 13;
/// The shortest in a live drive: rings that fit the processor's cache halve the time that explaining takes.
const RING_LIVE: usize = 1 << 11;

/// The length of the rings in a live drive. The more dies, the more operations begin while a write waits.
pub(super) fn ring_live(dies: u32) -> usize {
    (dies as usize * 256).next_power_of_two().clamp(RING_LIVE, RING)
}

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
    /// [`Transaction::order`]; `u64::MAX` for an access to DRAM.
    order: u64,
    pub(super) queued: u64,
    pub(super) issued: u64,
    pub(super) ended: u64,
    pub(super) trigger: Trigger,
    /// The number of the request to which it belongs; [`NOBODY`] for none.
    pub(super) request: u64,
    /// The number of its last hold of the die.
    pub(super) hold: u64,
    /// The last hold of its die when it was queued ([`Station::last`]).
    since: u64,
    /// The last holds of its die and of its station before it was issued.
    before: [u64; 2],
    station: u32,
    pub(super) die: u32,
    pub(super) lpn: u32,
    /// `None` for an access to DRAM.
    pub(super) kind: Option<FlashOp>,
    pub(super) cause: Cause,
    pub(super) tries: u8,
    /// By bit which phases have a time.
    pub(super) seen: u8,
    /// Command or transfer in, array operation, transfer out, decoding, as far as they are `seen`. Only those of
    /// operations for the host or for the write cache are parts.
    pub(super) phases: [Stretch; 4],
}

impl Operation {
    /// An operation that has no number yet, and has neither been issued nor ended.
    const NONE: Self = Self {
        number: u64::MAX,
        order: u64::MAX,
        queued: 0,
        issued: u64::MAX,
        ended: u64::MAX,
        trigger: Trigger::UNKNOWN,
        request: NOBODY,
        hold: u64::MAX,
        since: 0,
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

    /// The array operation, or what is left of it after a suspension.
    #[inline(always)]
    fn set_array(&mut self, (start, end): Stretch) {
        if !self.has_phase(ARRAY) {
            self.phases[ARRAY].0 = start;
            self.seen |= 1 << ARRAY;
        }
        self.phases[ARRAY].1 = end;
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
    /// How many holds the station had before.
    nth: u32,
    /// The number of the part to which the wait for it belongs: that of the operation, or [`Own::Suspend`] while the die
    /// gets ready for reads.
    pub(super) part: u8,
    /// The place of the part in [`Held`].
    slot: u8,
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
        nth: 0,
        part: 0,
        slot: 0,
    };
}

/// Number of times in [`Held`].
pub(super) const HELD: usize = 8;

/// The place of the times for which nothing held a station, and that of the parts that have no place of their own.
const KEPT: usize = 0;
const CROWD: usize = HELD - 1;

/// The times for which a station has been held so far, by part: what an operation waited for is the difference of two of
/// them, so no hold has to be looked at. Parts get their places in the order in which they appear.
pub(super) type Held = [u64; HELD];

/// The most holds of a wait that is such a difference: a path that looks at many more ends at a limit, so they are counted.
const HOLDS_MAX: u32 = 1024;

/// A die, or the planes of a die that read at their own times.
#[derive(Clone, Debug)]
struct Station {
    /// The number of the last hold, plus 1.
    last: u64,
    /// Number of holds so far.
    nth: u32,
    /// Up to the beginning of the last hold.
    held: Held,
    /// The number of the first of the operations under way, [`NOBODY`] for none, and those of the others.
    first: u64,
    others: Vec<u64>,
    /// The numbers of the operations that are suspended.
    suspended: Vec<u64>,
    /// Of a die, the numbers of the stations of its planes.
    planes: Vec<u32>,
    /// The number of the die.
    die: u32,
}

impl Default for Station {
    fn default() -> Self {
        let (others, suspended, planes) = Default::default();
        Self { last: 0, nth: 0, held: [0; HELD], first: NOBODY, others, suspended, planes, die: 0 }
    }
}

impl Station {
    /// Adds a hold, which is then the last one. The one before it ends now, if it has not ended yet. If the ring has that
    /// one no more, `held` is off from here on: waits that began before have to be looked at then, and for those that
    /// begin later only differences count.
    #[inline(always)]
    fn push(&mut self, holds: &mut Ring<Hold>, sums: &mut Ring<Held>, hold: Hold) {
        let before = &holds[self.last.wrapping_sub(1)];
        let end = before.end.min(hold.start);
        let of_part = &mut self.held[usize::from(before.slot) % HELD];
        *of_part = of_part.wrapping_add(end.wrapping_sub(before.start));
        self.held[KEPT] = self.held[KEPT].wrapping_add(hold.start.wrapping_sub(end));
        sums[hold.number] = self.held;
        holds[hold.number] = hold;
        self.nth = hold.nth.wrapping_add(1);
        self.last = hold.number + 1;
    }
}

/// The most stations of planes at which the wait of an operation looks.
const PLANES_MAX: usize = 16;

/// The operations so far, and their holds.
#[derive(Debug)]
pub(super) struct Log {
    pub(super) trigger: Trigger,
    operations: Ring<Operation>,
    /// Number of operations so far.
    begun: u64,
    /// Since when events are followed again, and the order of the first transaction that was queued since; 0 if they were
    /// always followed, `u64::MAX` before the first transaction.
    woken: Time,
    first_order: u64,
    /// By place of the order of a transaction in a ring, the number of its operation.
    of_order: Ring<u64>,
    holds: Ring<Hold>,
    /// By place of a hold, the times of its station up to its beginning.
    sums: Ring<Held>,
    /// Number of holds so far.
    held: u64,
    stations: Vec<Station>,
    /// Whether planes of dies have been stations.
    has_planes: bool,
    /// By part its place in [`Held`], [`KEPT`] for none yet; and by place its part.
    slot_of: [u8; 64],
    part_of: [u8; HELD],
    parts: usize,
}

/// The newest entries of a list, each in the place of its number.
#[derive(Debug)]
struct Ring<T>(Box<[T]>);

impl<T: Copy> Ring<T> {
    /// `length` is a power of two.
    fn new(length: usize, of: T) -> Self {
        debug_assert!(length.is_power_of_two());
        Self(vec![of; length].into())
    }
}

impl<T> Index<u64> for Ring<T> {
    type Output = T;

    #[inline(always)]
    fn index(&self, number: u64) -> &T {
        &self.0[number as usize & (self.0.len() - 1)]
    }
}

impl<T> IndexMut<u64> for Ring<T> {
    #[inline(always)]
    fn index_mut(&mut self, number: u64) -> &mut T {
        let place = number as usize & (self.0.len() - 1);
        &mut self.0[place]
    }
}

/// Whether the phases of an operation for this cause are parts: otherwise the operation is.
#[inline(always)]
pub(super) fn has_phases(cause: Cause) -> bool {
    (1 << Cause::Host as u32 | 1 << Cause::Sync as u32) >> cause as u32 & 1 != 0
}

impl Log {
    /// Bytes of rings of a length.
    pub(super) const fn bytes(length: usize) -> usize {
        length * (size_of::<Operation>() + size_of::<Hold>() + size_of::<Held>() + size_of::<u64>())
    }

    /// With rings of this length.
    pub(super) fn new(length: usize) -> Self {
        Self {
            trigger: Trigger::UNKNOWN,
            operations: Ring::new(length, Operation::NONE),
            begun: 0,
            woken: Time::START,
            first_order: 0,
            of_order: Ring::new(length, u64::MAX),
            holds: Ring::new(length, Hold::NONE),
            sums: Ring::new(length, [0; HELD]),
            held: 0,
            stations: Vec::new(),
            has_planes: false,
            slot_of: [KEPT as u8; 64],
            part_of: [Own::Kept as u8; HELD],
            parts: KEPT + 1,
        }
    }

    /// The operation with this number.
    #[inline(always)]
    pub(super) fn operation(&self, number: u64) -> Option<&Operation> {
        let operation = &self.operations[number];
        (operation.number == number).then_some(operation)
    }

    /// The hold before the one with this number plus 1.
    #[inline(always)]
    pub(super) fn hold_before(&self, last: u64) -> Option<&Hold> {
        let number = last.checked_sub(1)?;
        let hold = &self.holds[number];
        (hold.number == number).then_some(hold)
    }

    /// Of the lists of holds that explain the wait of an operation, that with this number by its last hold
    /// ([`Station::last`]). First comes that of the die, then those of the stations that share the die with it.
    pub(super) fn list(&self, operation: &Operation, number: usize) -> Option<u64> {
        let is_issued = operation.issued != u64::MAX;
        let [of_die, of_station] = if is_issued { operation.before } else { [0; 2] };
        if number == 0 {
            return Some(of_die);
        }
        if is_issued && operation.station != operation.die {
            return (number == 1).then_some(of_station);
        }
        let planes = &self.stations.get(operation.die as usize)?.planes;
        let &id = planes.get(number - 1).filter(|_| number <= PLANES_MAX)?;
        Some(self.stations.get(id as usize).map_or(0, |station| station.last))
    }

    /// Adds what held the die of an operation from the time at which it was queued to that at which it was issued.
    /// Returns the number of holds meanwhile; `None`, and nothing is added, if they have to be looked at.
    #[inline(never)]
    pub(super) fn add_wait(&self, operation: &Operation, to: &mut Held) -> Option<u32> {
        let (queued, issued) = (operation.queued, operation.issued);
        let first = self.hold_before(operation.since)?;
        let last = self.hold_before(operation.before[0])?;
        let holds = last.nth.wrapping_sub(first.nth);
        let (at_first, at_last) = (&self.sums[first.number], &self.sums[last.number]);
        let is_crowd = usize::from(first.slot.max(last.slot)) == CROWD || at_first[CROWD] != at_last[CROWD];
        if self.has_planes || holds > HOLDS_MAX || is_crowd {
            return None;
        }
        for place in 0..HELD {
            to[place] = to[place].wrapping_add(at_last[place].wrapping_sub(at_first[place]));
        }
        // With the last hold before the operation was issued, and without what came before it was queued.
        let (end, slot) = (last.end.min(issued), usize::from(last.slot) % HELD);
        to[slot] = to[slot].wrapping_add(end - last.start);
        to[KEPT] = to[KEPT].wrapping_add(issued - end);
        let (end, slot) = (first.end.min(queued), usize::from(first.slot) % HELD);
        to[slot] = to[slot].wrapping_sub(end - first.start);
        to[KEPT] = to[KEPT].wrapping_sub(queued - end);
        Some(holds + 1)
    }

    /// Whether the array operation has not been suspended: one hold, or for operations that run with another one none, is
    /// as long.
    #[inline(always)]
    pub(super) fn is_at_once(&self, operation: &Operation) -> bool {
        let (start, end) = operation.phases[ARRAY];
        match self.hold_before(operation.hold.wrapping_add(1)) {
            Some(hold) => hold.operation == operation.number && hold.start <= start && hold.end >= end,
            None => true,
        }
    }

    /// The part of each of these times.
    pub(super) fn parts_of<'a>(&'a self, held: &'a Held) -> impl Iterator<Item = (u8, u64)> + 'a {
        (0..HELD).map(|place| (self.part_of[place], held[place]))
    }

    /// The place of a part in [`Held`].
    fn slot_of(&mut self, part: u8) -> u8 {
        match self.slot_of[usize::from(part) % 64] {
            0 => self.new_slot(part),
            slot => slot,
        }
    }

    #[cold]
    #[inline(never)]
    fn new_slot(&mut self, part: u8) -> u8 {
        let slot = self.parts.min(CROWD);
        self.parts = slot + 1;
        self.part_of[slot] = part;
        self.slot_of[usize::from(part) % 64] = slot as u8;
        slot as u8
    }

    #[inline(always)]
    fn of_order(&mut self, order: u64) -> Option<&mut Operation> {
        let operation = &mut self.operations[self.of_order[order]];
        (operation.order == order).then_some(operation)
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
        for die in self.stations.len() as u32..=id.0 {
            self.stations.push(Station { die, ..Station::default() });
        }
    }

    /// An operation for this request has been queued.
    #[inline]
    pub(super) fn queue(&mut self, now: Time, request: u64, t: &Transaction) {
        let number = self.begun;
        self.begun += 1;
        let since = self.stations.get(t.die.index()).map_or(0, |station| station.last);
        let of = &mut self.operations[number];
        // What only an operation that is issued, ends or has phases has is left as it is.
        (of.number, of.order, of.queued, of.issued) = (number, t.order, now.ns(), u64::MAX);
        (of.trigger, of.request, of.since) = (self.trigger, request, since);
        (of.die, of.lpn) = (t.die.0, t.lpn.0);
        (of.kind, of.cause, of.tries, of.seen) = (Some(t.kind), t.cause, t.tries, 0);
        if t.tries > 0 {
            self.retry(now, number, t);
        } else if self.first_order == u64::MAX {
            self.first_order = t.order;
        }
        self.of_order[t.order] = number;
    }

    /// The try before ended with its decoding, which is why this one is queued.
    #[cold]
    #[inline(never)]
    fn retry(&mut self, now: Time, number: u64, t: &Transaction) {
        let trigger = self.of_order(t.order).map_or(Trigger::UNKNOWN, |before| {
            before.ended = now.ns();
            Trigger(before.number)
        });
        self.operations[number].trigger = trigger;
    }

    /// An access to DRAM for this request begins; returns its number.
    pub(super) fn access(&mut self, now: Time, end: Time, request: u64) -> u64 {
        let (number, trigger) = (self.begun, self.trigger);
        self.begun += 1;
        let (queued, ended) = (now.ns(), end.ns());
        self.operations[number] =
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
        if has_phases(t.cause)
            && let Some(operation) = self.of_order(t.order)
        {
            operation.set_phase(DECODE, (start.ns(), end.ns()));
        }
    }

    /// The operation of a transaction has been issued on a station, alone or as the first of others: it holds the station.
    /// Returns whether this is noted: what is rare is left to [`Log::issue_any`], so that this function needs few registers.
    #[inline]
    pub(super) fn issue(&mut self, now: Time, id: DieId, t: &Transaction) -> bool {
        let Some(station) = self.stations.get_mut(id.index()) else { return false };
        let operation = &mut self.operations[self.of_order[t.order]];
        let part = Part::Operation(t.kind, t.cause).index() as u8;
        let slot = self.slot_of[usize::from(part) % 64];
        if operation.order != t.order || usize::from(slot) == KEPT || id != t.die {
            return false;
        }
        let number = self.held;
        self.held = number + 1;
        operation.hold = number;
        operation.issue(now, id, [station.last; 2]);
        let hold = Hold {
            number,
            start: now.ns(),
            end: u64::MAX,
            before: station.last,
            operation: operation.number,
            request: operation.request,
            die: t.die.0,
            lpn: t.lpn.0,
            nth: station.nth,
            part,
            slot,
        };
        station.push(&mut self.holds, &mut self.sums, hold);
        station.first = hold.operation;
        if !station.others.is_empty() {
            station.others.clear();
        }
        true
    }

    /// As [`Log::issue`], on any station, for any part and if the operation is not known. `request` is for one that is not.
    #[cold]
    #[inline(never)]
    pub(super) fn issue_any(&mut self, now: Time, id: DieId, t: &Transaction, request: u64) {
        let before = self.station(id).last;
        let of_die = if id == t.die {
            before
        } else {
            let of_die = self.whole(id, t.die);
            self.end_other(now, t.die);
            of_die
        };
        let number = self.held;
        self.note_early(t, request);
        let (operation, request) = match self.of_order(t.order) {
            Some(operation) => {
                operation.hold = number;
                operation.issue(now, id, [of_die, before]);
                (operation.number, operation.request)
            }
            None => (NOBODY, request),
        };
        let (start, end, part) = (now.ns(), u64::MAX, Part::Operation(t.kind, t.cause).index() as u8);
        let (die, lpn) = (t.die.0, t.lpn.0);
        self.add_hold(id, Hold { start, end, operation, request, die, lpn, part, ..Hold::NONE });
        let station = &mut self.stations[id.index()];
        station.first = operation;
        station.others.clear();
    }

    /// Notes an operation that was queued before events were followed. Requests that are explained have begun later, so that
    /// the time at which it was queued does not matter.
    fn note_early(&mut self, t: &Transaction, request: u64) {
        if t.order >= self.first_order || self.of_order(t.order).is_some() {
            return;
        }
        let (number, order, queued) = (self.begun, t.order, self.woken.ns());
        self.begun += 1;
        let (die, lpn, kind, cause, tries) = (t.die.0, t.lpn.0, Some(t.kind), t.cause, t.tries);
        self.operations[number] =
            Operation { number, order, queued, request, die, lpn, kind, cause, tries, ..Operation::NONE };
        self.of_order[order] = number;
    }

    /// Notes that a station is one of planes of this die, and returns the last hold of the die.
    #[inline(never)]
    fn whole(&mut self, id: DieId, die: DieId) -> u64 {
        self.has_planes = true;
        self.stations[id.index()].die = die.0;
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
        self.note_early(t, NOBODY);
        let number = self.of_order(t.order).map(|operation| {
            operation.issue(now, id, [before; 2]);
            operation.hold = u64::MAX;
            operation.number
        });
        self.stations[id.index()].others.extend(number);
    }

    /// A phase runs on a station.
    #[inline]
    pub(super) fn phase(&mut self, start: Time, end: Time, id: DieId, phase: Phase, t: &Transaction) {
        let (stretch, is_read) = ((start.ns(), end.ns()), t.kind == FlashOp::Read);
        let Some(station) = self.stations.get(id.index()) else { return };
        match phase {
            Phase::TransferOut => {
                if has_phases(t.cause)
                    && let Some(operation) = self.of_order(t.order)
                {
                    operation.set_phase(OUT, stretch);
                }
                if is_read {
                    self.end_hold(id, stretch.1);
                }
            }
            _ if !station.others.is_empty() => self.phase_of_several(id, phase, stretch, is_read),
            Phase::Array => {
                let operation = &mut self.operations[station.first];
                if has_phases(t.cause) && operation.number == station.first {
                    operation.set_array(stretch);
                }
                if !is_read {
                    self.end_hold(id, stretch.1);
                }
            }
            _ => {
                let operation = &mut self.operations[station.first];
                if has_phases(t.cause) && operation.number == station.first {
                    operation.set_phase(COMMAND, stretch);
                }
            }
        }
    }

    /// The last phase of the operation on a station ends its hold; a phase before it does not.
    #[inline(always)]
    fn end_hold(&mut self, id: DieId, end: u64) {
        let Some(station) = self.stations.get(id.index()) else { return };
        if let Some(number) = station.last.checked_sub(1) {
            let hold = &mut self.holds[number];
            if hold.number == number {
                hold.end = end;
            }
        }
    }

    /// [`Log::phase`], but no transfer out, of operations that run together on a station.
    #[inline(never)]
    fn phase_of_several(&mut self, id: DieId, phase: Phase, stretch: Stretch, is_read: bool) {
        let station = &self.stations[id.index()];
        for &number in [station.first].iter().chain(&station.others) {
            let operation = &mut self.operations[number];
            if operation.number == number {
                match phase {
                    Phase::Array => operation.set_array(stretch),
                    _ => operation.set_phase(COMMAND, stretch),
                }
            }
        }
        if phase == Phase::Array && !is_read {
            self.end_hold(id, stretch.1);
        }
    }

    /// A station suspends its operations, and is ready for reads at `ready`.
    pub(super) fn suspend(&mut self, now: Time, ready: Time, id: DieId) {
        let station = self.station(id);
        let first = std::mem::replace(&mut station.first, NOBODY);
        station.suspended.clear();
        station.suspended.extend(Some(first).filter(|&first| first != NOBODY));
        station.suspended.append(&mut station.others);
        let Some(&first) = station.suspended.first() else { return self.hold_by_other(now, id) };
        let last = station.last;
        let of = self.hold_before(last).copied();
        let Some(of) = of.filter(|hold| hold.operation == first) else { return };
        self.holds[of.number].end = now.ns();
        self.add_hold(
            id,
            Hold {
                start: now.ns(),
                end: ready.ns(),
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
        let mut suspended = station.suspended.drain(..);
        station.first = suspended.next().unwrap_or(NOBODY);
        station.others.clear();
        station.others.extend(suspended);
        let first = station.first;
        if first == NOBODY {
            return self.hold_by_other(now, id);
        }
        let operation = &mut self.operations[first];
        if operation.number != first {
            return;
        }
        operation.hold = number;
        let kind = operation.kind.unwrap_or(FlashOp::Program);
        let part = Part::Operation(kind, operation.cause).index() as u8;
        let (die, lpn, request) = (operation.die, operation.lpn, operation.request);
        let (start, end, operation) = (now.ns(), u64::MAX, first);
        self.add_hold(id, Hold { start, end, operation, request, die, lpn, part, ..Hold::NONE });
    }

    /// Adds a hold, which is the last one of a station.
    fn add_hold(&mut self, id: DieId, hold: Hold) {
        let (number, slot) = (self.held, self.slot_of(hold.part));
        self.held += 1;
        let station = &mut self.stations[id.index()];
        let hold = Hold { number, before: station.last, nth: station.nth, slot, ..hold };
        station.push(&mut self.holds, &mut self.sums, hold);
    }

    /// What has happened on the stations so far, and what they do, is not known: from now on each is held by something
    /// else, until an operation is issued on it.
    pub(super) fn wake(&mut self, now: Time) {
        self.trigger = Trigger::UNKNOWN;
        (self.woken, self.first_order) = (now, u64::MAX);
        for id in (0..self.stations.len() as u32).map(DieId) {
            let station = self.station(id);
            station.first = NOBODY;
            station.others.clear();
            station.suspended.clear();
            self.hold_by_other(now, id);
        }
    }

    /// An operation is issued on a die or on planes of it: what is not known does not hold the other one any more.
    #[cold]
    #[inline(never)]
    fn end_other(&mut self, now: Time, id: DieId) {
        let Some(number) = self.stations[id.index()].last.checked_sub(1) else { return };
        let hold = &mut self.holds[number];
        if hold.number == number && hold.part == Own::Other as u8 {
            hold.end = hold.end.min(now.ns());
        }
    }

    /// Something that is not known holds a station.
    fn hold_by_other(&mut self, now: Time, id: DieId) {
        let (start, end, die, part) = (now.ns(), u64::MAX, self.station(id).die, Own::Other as u8);
        self.add_hold(id, Hold { start, end, die, part, ..Hold::NONE });
    }

    /// All operations have ended.
    pub(super) fn clear(&mut self) {
        self.trigger = Trigger::UNKNOWN;
        self.operations.0.iter_mut().for_each(|operation| *operation = Operation::NONE);
        self.holds.0.iter_mut().for_each(|hold| hold.number = u64::MAX);
        self.stations.clear();
    }
}
