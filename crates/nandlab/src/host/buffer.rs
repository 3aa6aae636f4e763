//! `ftl.buffer`: a write buffer, which gathers the units of small host writes until they fill a programming unit.
//!
//! A unit of a host write is in the buffer from its admission until its program has ended. It is acknowledged at its
//! admission if the buffer has room, that is, if it has fewer acknowledged units than its budget: its size, or less if
//! the capacitor could not save so many. Otherwise the unit waits for room, in the buffer, until the program of an
//! acknowledged unit has ended, or its own.
//!
//! Units gather, whether they wait or not, until they fill a programming unit, which is then programmed. It is
//! programmed before that when a flush asks for it, when the host is idle (`gc.idle_after`), when GC waits for a unit
//! that it replaces, or when units wait for room and all units in the buffer still gather. FUA writes do not use the
//! buffer, and no write does while a flush is outstanding.
//!
//! With `cache.flush_to = "cache"` and while a capacitor is charged and the budget above 0, the buffer is protected
//! ([`Host::set_backed`]): FUA writes are acknowledged from it like any other write, and a flush completes as soon as
//! the writes before it are acknowledged. It asks for no program, and later writes use the buffer. Records of
//! deallocations take units of the budget, as with a write cache.
//!
//! A write of an LPN whose newest data is a unit in the buffer replaces the data in place, if the die of the unit has
//! not begun the program: the unit keeps its PPN, its slot and its turn if it waits, and gets the sequence number of
//! the new write. Neither flash nor the map entry is read, also if the new write is of only part of the unit. If the
//! unit waits for room, the new write is acknowledged together with the older one. The unit stays in the flush epoch of
//! its first write. A flush that has to wait for the program of the unit so waits for the data of both: flushes complete
//! in the order of their epochs.
//!
//! Power loss destroys the acknowledged units whose program has not ended, unless a capacitor has the energy to flush
//! them: the budget is never above what a full capacitor can save ([`Buffer::budget_of`]). While the capacitor is empty,
//! no unit is acknowledged before its program has ended.

use super::{BufferLoad, Host};
use crate::base::counters::counters;
use crate::base::geometry::{Lpn, RequestId, UnitId};
use crate::base::list::{Link, Linked, List};
use crate::base::number_map::NumberMap;
use crate::base::slab::{Fifo, Id, Node, Slab};
use crate::base::state::{state, value};
use crate::base::units::{Span, Time, share_of};
use crate::core::Core;
use crate::probe::Probe;
use crate::sched::{Owner, Transaction};
use std::collections::BTreeMap;

counters! {
    /// The write buffer (`ftl.buffer`).
    pub struct BufferStats {
        /// Units of host writes that replaced the data of a unit in the write buffer before its program began.
        pub replaced: u64, sum of units;
    }
}

/// The write buffer.
#[derive(Debug)]
pub(crate) struct Buffer {
    /// The size of the buffer in units.
    capacity: u32,
    /// The buffer has room while `acknowledged` is below this number: the capacity, or less while the capacitor could
    /// not save so many units.
    budget: u32,
    /// The number of acknowledged units in the buffer.
    acknowledged: u32,
    /// All units in the buffer; [`Owner::Buffered`] has the slot.
    slots: Slab<Buffered>,
    /// The slots by PPN.
    of: NumberMap<Id<Buffered>>,
    /// The units that wait for room. The unit admitted first is the last.
    waiting: List,
    /// The writes of the units that wait.
    writes: Slab<Write>,
    /// The moving average of `acknowledged`; `None` if no policy uses it.
    load: Option<Box<BufferLoad>>,
    pub(crate) stats: BufferStats,
}

/// A unit in the buffer.
#[derive(Clone, Copy, Debug)]
struct Buffered {
    lpn: Lpn,
    unit: UnitId,
    /// The flush epoch of the first write of the unit.
    epoch: u32,
    /// The writes of the unit that wait with it; empty if the unit is acknowledged.
    writes: Fifo<Write>,
    /// The neighbours in [`Buffer::waiting`].
    link: Link,
    next: Option<Id<Self>>,
}

impl Node for Buffered {
    const EMPTY: Self =
        Self { lpn: Lpn(0), unit: UnitId(0), epoch: 0, writes: Fifo::EMPTY, link: Link::FREE, next: None };

    #[inline(always)]
    fn next(&mut self) -> &mut Option<Id<Self>> {
        &mut self.next
    }
}

/// The write of one unit by a host request. The unit waits for room in the buffer.
#[derive(Clone, Copy, Debug)]
struct Write {
    request: RequestId,
    sequence: u64,
    next: Option<Id<Self>>,
}

impl Node for Write {
    const EMPTY: Self = Self { request: RequestId(0), sequence: 0, next: None };

    #[inline(always)]
    fn next(&mut self) -> &mut Option<Id<Self>> {
        &mut self.next
    }
}

impl Linked for Buffered {
    #[inline(always)]
    fn link(&mut self) -> &mut Link {
        &mut self.link
    }
}

impl Buffer {
    /// A buffer of `bytes` bytes; `None` if it is smaller than a unit of `unit_bytes` bytes.
    pub(crate) fn new(bytes: u64, unit_bytes: u32) -> Option<Self> {
        let capacity = u32::try_from(bytes / u64::from(unit_bytes)).unwrap_or(u32::MAX);
        (capacity > 0).then(|| Self {
            capacity,
            budget: capacity,
            acknowledged: 0,
            slots: Slab::default(),
            of: NumberMap::default(),
            waiting: List::default(),
            writes: Slab::default(),
            load: None,
            stats: BufferStats::default(),
        })
    }

    /// The size of the buffer in units.
    pub(crate) fn capacity(&self) -> u32 {
        self.capacity
    }

    /// The number of acknowledged units up to which the buffer has room.
    pub(crate) fn budget(&self) -> u32 {
        self.budget
    }

    /// The number of acknowledged units in the buffer.
    pub(crate) fn acknowledged(&self) -> u32 {
        self.acknowledged
    }

    /// The budget that is `share` of the buffer (0 to 1), and at most the `saved` units that the capacitor can save.
    pub(crate) fn budget_of(&self, share: f64, saved: f64) -> u32 {
        share_of(share, self.capacity).min(saved as u32)
    }

    /// From now on keeps a moving average of the number of acknowledged units in the buffer, over the time `window`.
    pub(crate) fn watch_load(&mut self, window: Span) {
        self.load = Some(Box::new(BufferLoad::new(window)));
    }

    /// The moving average of the acknowledged units, as a share of the buffer's size, 0 to 1; 0 if
    /// [`Buffer::watch_load`] has not been called.
    pub(crate) fn load(&mut self, now: Time) -> f64 {
        self.load.as_mut().map_or(0.0, |load| load.mean(now) / f64::from(self.capacity))
    }

    #[inline]
    fn update_load(&mut self, now: Time) {
        if let Some(load) = &mut self.load {
            load.set(now, self.acknowledged);
        }
    }

    /// Sets the budget: the buffer has room while it has fewer than `units` acknowledged units. A lower budget takes no
    /// acknowledgement back. With a higher one, units that wait are not acknowledged before the program of an
    /// acknowledged unit, or their own, has ended.
    pub(crate) fn set_budget(&mut self, units: u32) {
        self.budget = units;
    }

    /// Checks the slots, and the numbers of units that wait and of acknowledged units.
    pub(crate) fn audit<P: Probe>(&self, core: &Core<P>) -> Result<(), String> {
        let (mut waiting, mut acknowledged) = (0, 0);
        for &Transaction { owner, lpn, unit, .. } in core.units_to_program() {
            let Owner::Buffered(slot) = owner else { continue };
            let buffered = &self.slots[Id::new(slot as usize)];
            let is_found = self.of.get(&unit.0).is_some_and(|found| found.index() == slot as usize);
            if !is_found || (buffered.lpn, buffered.unit) != (lpn, unit) {
                return Err(format!("the slot of LPN {} of the write buffer has {buffered:?}", lpn.0));
            }
            *(if buffered.writes.is_empty() { &mut acknowledged } else { &mut waiting }) += 1;
        }
        let counts = [
            (waiting, self.waiting.len()),
            (acknowledged, self.acknowledged),
            (waiting + acknowledged, self.slots.live()),
            (waiting + acknowledged, self.of.len() as u32),
        ];
        if counts.iter().any(|(found, expected)| found != expected) {
            return Err(format!(
                "waiting, acknowledged, all and known units of the write buffer, found and counted: {counts:?}"
            ));
        }
        Ok(())
    }

    /// If fewer than `room` units are acknowledged, takes the unit admitted first out of those that wait for room. From
    /// now on it counts as acknowledged. Returns its LPN and its writes.
    fn take_waiting(&mut self, room: u32) -> Option<(Lpn, Fifo<Write>)> {
        let slot = self.waiting.last().filter(|_| self.acknowledged < room)?;
        self.waiting.remove(&mut self.slots, slot);
        self.acknowledged += 1;
        let buffered = &mut self.slots[Id::new(slot as usize)];
        Some((buffered.lpn, std::mem::take(&mut buffered.writes)))
    }

    /// Lets a write of the unit in `slot` wait until the buffer has room for the unit.
    fn wait(&mut self, slot: Id<Buffered>, request: RequestId, sequence: u64) {
        let write = self.writes.insert(Write { request, sequence, next: None });
        self.slots[slot].writes.push(&mut self.writes, write);
    }

    /// Power loss: the buffer is empty.
    pub(crate) fn forget(&mut self, now: Time) {
        self.acknowledged = 0;
        self.update_load(now);
        self.slots.clear();
        self.of.clear();
        self.waiting = List::default();
        self.writes.clear();
    }

    /// By LPN, the sequence number of the newest acknowledged write in the buffer. A newer write of the LPN may wait.
    /// An LPN whose newest write, acknowledged or not, is in flash, or which has been deallocated since, is left out.
    pub(crate) fn unflushed<P: Probe>(&self, core: &Core<P>) -> BTreeMap<u32, u64> {
        let mut newest = BTreeMap::new();
        for &Transaction { owner, lpn, unit, .. } in core.units_to_program() {
            let Owner::Buffered(slot) = owner else { continue };
            let is_acknowledged = self.slots[Id::new(slot as usize)].writes.is_empty();
            let sequence = core.sequence_of(unit);
            let is_in_ram = core.unit_of(lpn).is_some_and(|unit| core.is_in_flight(unit));
            if is_in_ram && is_acknowledged {
                let newest = newest.entry(lpn.0).or_insert(sequence);
                *newest = sequence.max(*newest);
            }
        }
        newest
    }
}

impl Host {
    /// Whether a unit of a write of `request` would go through the write buffer now.
    #[inline]
    fn is_buffered(&self, request: RequestId) -> bool {
        // While a flush is outstanding that waits for programs, the units that it waits for do not wait for others.
        self.buffer.is_some() && (self.is_backed || self.flushes == 0 && !self.requests.request(request).fua)
    }

    /// The number of units that may be acknowledged now: the budget without the units that records of deallocations
    /// take.
    #[inline]
    fn room_in_buffer<P: Probe>(&self, core: &Core<P>) -> u32 {
        let budget = self.buffer.as_ref().map_or(0, Buffer::budget);
        budget.saturating_sub(self.trim_units(core))
    }

    /// The owner of the program of a unit: the write buffer instead of the request, if the unit goes through the
    /// buffer. The unit then joins the open flush epoch.
    #[inline]
    pub(super) fn buffered_owner(&mut self, owner: Owner, lpn: Lpn, unit: UnitId) -> Owner {
        match owner {
            Owner::Request(id) if self.is_buffered(id) => {
                let epoch = self.epochs.open();
                self.epochs.join_unit(epoch);
                let buffer = self.buffer.as_mut().expect("the unit goes through the buffer");
                let slot =
                    buffer.slots.insert(Buffered { lpn, unit, epoch: epoch as u32, ..Buffered::EMPTY });
                buffer.of.insert(unit.0, slot);
                Owner::Buffered(slot.index() as u32)
            }
            other => other,
        }
    }

    /// If the newest data of `lpn` is in the write buffer, and its die has not begun its program, replaces this data by
    /// that of a unit of request `id`. Returns whether it has been replaced.
    #[inline]
    pub(crate) fn replace_buffered<P: Probe>(&mut self, core: &mut Core<P>, id: RequestId, lpn: Lpn) -> bool {
        self.buffer.is_some() && self.try_to_replace(core, id, lpn)
    }

    #[inline(never)]
    fn try_to_replace<P: Probe>(&mut self, core: &mut Core<P>, id: RequestId, lpn: Lpn) -> bool {
        if !self.is_buffered(id) {
            return false;
        }
        let (Some(buffer), Some(unit)) = (&mut self.buffer, core.unit_of(lpn)) else { return false };
        let Some(&slot) = buffer.of.get(&unit.0) else { return false };
        if core.has_begun_program(unit) {
            return false;
        }
        // A write with another placement goes to another superblock.
        if !core.placements().is_single() {
            let placement = self.requests.request(id).tag.placement;
            if core.placements().place(placement) != core.place_of(unit) {
                return false;
            }
        }
        buffer.stats.replaced += 1;
        let stamp = core.replace_staged(unit, lpn);
        let waits = !buffer.slots[slot].writes.is_empty();
        if waits {
            buffer.wait(slot, id, stamp.sequence);
        }
        self.on_admitted(id, lpn, stamp.sequence);
        core.probe.on_write_admitted(Some(id), lpn, stamp.sequence);
        if !waits {
            self.acknowledge(core, id, lpn, stamp.sequence, true);
        }
        true
    }

    /// The unit in `slot`, of request `id`, has been admitted with this sequence number: acknowledges the unit if the
    /// buffer has room, or lets it wait.
    #[inline(never)]
    pub(super) fn on_buffered<P: Probe>(
        &mut self,
        core: &mut Core<P>,
        slot: u32,
        id: RequestId,
        sequence: u64,
    ) {
        let room = self.room_in_buffer(core);
        let buffer = self.buffer.as_mut().expect("the unit is in the write buffer");
        if buffer.acknowledged < room {
            buffer.acknowledged += 1;
            buffer.update_load(core.now());
            let lpn = buffer.slots[Id::new(slot as usize)].lpn;
            self.acknowledge(core, id, lpn, sequence, true);
            return;
        }
        buffer.wait(Id::new(slot as usize), id, sequence);
        buffer.waiting.push_first(&mut buffer.slots, slot);
        self.make_room(core);
    }

    /// If units wait for room, makes sure that a program will make room.
    fn make_room<P: Probe>(&self, core: &mut Core<P>) {
        if let Some(buffer) = &self.buffer
            && !buffer.waiting.is_empty()
        {
            core.close_if_all_gather(buffer.acknowledged + buffer.waiting.len());
        }
    }

    /// Acknowledges a unit of request `id`. If the unit `is_in_ram`, its program has not ended.
    fn acknowledge<P: Probe>(
        &mut self,
        core: &mut Core<P>,
        id: RequestId,
        lpn: Lpn,
        sequence: u64,
        is_in_ram: bool,
    ) {
        core.probe.on_write_acknowledged(lpn, sequence);
        if is_in_ram && self.is_backed && self.requests.request(id).fua {
            core.probe.on_fua_cached(lpn, sequence);
        }
        self.unit_done(core, id);
    }

    /// The program of the unit in `slot` has ended.
    #[inline(never)]
    pub(crate) fn on_buffered_programmed<P: Probe>(
        &mut self,
        core: &mut Core<P>,
        slot: u32,
        done: &Transaction,
    ) {
        if core.probe.needs_sequences() {
            core.probe.on_write_durable(done.lpn, core.sequence_of(done.unit));
        }
        let room = self.room_in_buffer(core);
        let buffer = self.buffer.as_mut().expect("the unit is in the write buffer");
        let buffered = buffer.slots[Id::new(slot as usize)];
        // A unit that has waited until its own program has ended needs no room.
        let is_acknowledged = buffered.writes.is_empty();
        let (lpn, mut writes) = if is_acknowledged {
            buffer.acknowledged -= 1;
            buffer.take_waiting(room).unwrap_or((buffered.lpn, Fifo::EMPTY))
        } else {
            buffer.waiting.remove(&mut buffer.slots, slot);
            (buffered.lpn, buffered.writes)
        };
        buffer.update_load(core.now());
        buffer.slots.remove(Id::new(slot as usize));
        buffer.of.remove(&buffered.unit.0);
        while let Some(buffer) = &mut self.buffer
            && let Some(write) = writes.pop(&mut buffer.writes)
        {
            let Write { request, sequence, .. } = buffer.writes.remove(write);
            // The room of an acknowledged unit goes to the writes of another one, which is in RAM.
            self.acknowledge(core, request, lpn, sequence, is_acknowledged);
        }
        self.make_room(core);
        self.epochs.leave_unit(buffered.epoch.into());
        self.complete_flushes(core);
    }
}

value! { Buffered { lpn, unit, epoch, writes, link, next } }
value! { Write { request, sequence, next } }
state! { Buffer { budget, acknowledged, slots, of, waiting, writes, load, stats } fixed { capacity } }
