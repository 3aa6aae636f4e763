//! The verbs that program and erase. Each queues one operation, or adds a unit to a program.

use super::copy_back::NoRoom;
use super::{Component, Core, Wake};
use crate::base::geometry::{DieId, LaneId, Lpn, SuperblockId, UnitId};
use crate::base::slab::Node;
use crate::flash::{DEAD_LPN, ShapeId, Stamp, SuperblockState};
use crate::ftl::placement::Place;
use crate::ftl::{AllocatedUnit, FlushPrograms, StreamId};
use crate::probe::Probe;
use crate::sched::{Cause, Class, Device, Ended, FlashOp, Owner, Slot, Transaction};

/// The unit that a program writes.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Destination {
    /// The next unit of a stream of a lane.
    Stream(LaneId, StreamId),
    /// A unit of a stream that has been allocated already.
    Allocated(AllocatedUnit, StreamId),
    /// A programmed unit, which is programmed again in place with its own data.
    InPlace(UnitId),
}

/// The effect of a program on the map.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Maps {
    /// The LPN is mapped to the unit: from now on the unit has the newest data of the LPN.
    Now,
    /// The map does not change: the unit has no data, is programmed in place, or power is off.
    Nothing,
}

/// A unit to be programmed.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Program {
    pub(crate) to: Destination,
    pub(crate) lpn: Lpn,
    /// Sequence number and AgeStamp, which go into the OOB with the LPN.
    pub(crate) stamp: Stamp,
    pub(crate) maps: Maps,
    pub(crate) owner: Owner,
    pub(crate) cause: Cause,
    pub(crate) class: Class,
}

impl Program {
    /// A program of a unit without data.
    pub(crate) fn nothing(to: Destination, owner: Owner, cause: Cause, class: Class) -> Self {
        Self { to, lpn: Lpn(DEAD_LPN), stamp: Stamp::default(), maps: Maps::Nothing, owner, cause, class }
    }
}

/// A unit whose program or copyback is in the queue of its die.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Queued {
    pub(crate) unit: UnitId,
    /// Whether the allocation of the unit has opened a superblock.
    pub(crate) opened: bool,
}

/// What the end of a program means for its superblock.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Programmed {
    /// Whether the unit is the first one since the superblock was erased.
    pub(crate) is_first: bool,
    /// Whether the superblock has become full.
    pub(crate) is_closed: bool,
}

impl<P: Probe> Core<P> {
    /// Queues the program of a unit. If needed, the unit is allocated and its OOB set first. With [`Maps::Now`] the
    /// unit is mapped. The superblock of the replaced unit is pinned until the program has ended.
    ///
    /// # Errors
    /// [`NoRoom`] when the lane has no unit left for the stream; nothing has changed then.
    // Inlined, so that `program` is not passed through memory.
    #[inline(always)]
    pub(crate) fn program(&mut self, program: Program) -> Result<Queued, NoRoom> {
        let _inside = self.inside.enter(Component::Program);
        let Program { to, lpn, stamp, maps, owner, cause, class } = program;
        let (AllocatedUnit { unit, opened, skips }, stream) = match to {
            Destination::Stream(lane, stream) => (self.allocate(lane, stream).ok_or(NoRoom)?, Some(stream)),
            Destination::Allocated(allocated, stream) => (allocated, Some(stream)),
            Destination::InPlace(unit) => (AllocatedUnit { unit, opened: false, skips: 0 }, None),
        };
        let mut replaces = None;
        if let Destination::InPlace(_) = to {
            replaces = Some(unit);
        } else {
            self.array.stage(unit, lpn, stamp);
            self.stage_handle(unit, lpn, stream);
        }
        if maps == Maps::Now {
            replaces = self.ftl.remap(&mut self.array, lpn, unit);
        }
        if let Some(old) = replaces {
            self.pin(old);
        }
        // No reference to the transaction is passed on, so that it is built in its slot. From a copy on the stack,
        // written in parts and read as a whole, the CPU could not forward the parts.
        let transaction = self.transaction(FlashOp::Program, unit, lpn, owner, cause, class);
        let order = self.pool.next_order();
        let slot = self.pool.insert(Transaction { skips, replaces, ..transaction });
        match stream {
            Some(stream) => self.queue_or_gather(slot, stream),
            None => self.enqueue(slot),
        }
        // Jobs send no wake: a job begins only if there is room for the superblocks that it opens.
        if opened {
            self.count_opened(unit, stream);
        }
        if opened && !matches!(owner, Owner::Job(_)) {
            let lane = self.geometry.lane_of(self.geometry.superblock_of(unit));
            self.keep_dies(lane, order);
            self.wake(Wake::Space(lane));
        }
        Ok(Queued { unit, opened })
    }

    /// The class of the programs to `stream` by a job of class `job`. The units of a superblock are programmed in
    /// order, so all programs to a stream that several writers share are in one class.
    #[inline(always)]
    pub(crate) fn class_of(&self, stream: StreamId, job: Class) -> Class {
        let streams = &self.ftl.streams;
        if stream == StreamId::GC {
            return if self.ftl.shares_first_superblock { Class::HostWrite } else { job };
        }
        if streams.is_host(stream) || streams.map() == Some(stream) {
            Class::HostWrite
        } else if streams.is_internal(stream) {
            self.refresh_class
        } else {
            job
        }
    }

    /// Queues the erase of a superblock without valid units: one transaction on each of its dies.
    pub(crate) fn erase(&mut self, superblock: SuperblockId, owner: Owner, cause: Cause, class: Class) {
        for index in self.geometry.stripes.firsts() {
            let unit = self.geometry.unit(superblock, index);
            let erase = self.transaction(FlashOp::Erase, unit, Lpn(0), owner, cause, class);
            let slot = self.pool.insert(erase);
            self.enqueue(slot);
        }
    }

    /// Whether a job has to end its wordlines before its victim is erased ([`Core::end_wordlines`]).
    pub(crate) fn ends_wordlines(&self) -> bool {
        self.state.is_guarded && self.array.shapes().have_dependent_pages()
    }

    /// Called when the job of a lane has copied all units and is about to erase its victim, or to end, and after a
    /// recovery, which may have emptied superblocks. While power loss may tear a program, no later unit of a stream of
    /// jobs may share a wordline with a copy, so the rest of such a wordline stays erased, in a superblock that of the
    /// wordlines of all blocks.
    pub(crate) fn end_wordlines(&mut self, lane: LaneId) {
        if self.ends_wordlines() {
            self.skip_wordlines(lane);
        }
    }

    /// The rest of the wordlines that the streams of jobs of a lane have begun stays erased.
    pub(super) fn skip_wordlines(&mut self, lane: LaneId) {
        for stream in self.ftl.streams.ids() {
            if !self.ftl.streams.is_of_jobs(stream) {
                continue;
            }
            while self.ftl.is_amid_wordline(lane, stream) {
                let skipped = self.allocate(lane, stream).expect("a stream amid a wordline has a page left");
                for _ in 1..self.geometry.units_per_page {
                    self.allocate(lane, stream);
                }
                let (superblock, index) = self.geometry.split(skipped.unit);
                debug_assert!(
                    self.shape(superblock).place_in_program(skipped.unit) == 0,
                    "a job has closed its programs"
                );
                let units = self.geometry.units_per_page;
                if self.array.skip(superblock, index, units) == self.shape(superblock).units {
                    self.ftl.close(&mut self.array, superblock, self.now);
                    self.wake(Wake::Space(lane));
                    self.look_if_dead(superblock);
                }
            }
        }
    }

    /// Allocates the next unit of `stream` in `lane`; `None` without room.
    #[inline(always)]
    pub(crate) fn allocate(&mut self, lane: LaneId, stream: StreamId) -> Option<AllocatedUnit> {
        self.ftl.allocate(&mut self.array, lane, stream)
    }

    /// Allocates the next programming unit of `stream` in `lane`; `None` without room.
    pub(crate) fn allocate_program(&mut self, lane: LaneId, stream: StreamId) -> Option<AllocatedUnit> {
        self.ftl.allocate_program(&mut self.array, (lane, stream), 0)
    }

    /// Queues a transaction of the pool on its die. [`Core::start_dies`] starts the die.
    #[inline(always)]
    pub(super) fn enqueue(&mut self, slot: Slot) {
        self.probe.on_queued(self.now, &self.pool[slot]);
        self.device.submit(&mut self.pool, slot);
    }

    /// Starts the free dies for which transactions have been queued.
    #[inline(always)]
    pub(crate) fn start_dies(&mut self) {
        self.end_gathering();
        self.device.start(&mut self.pool, &mut self.agenda, &mut self.probe, self.now);
    }

    /// The dies of a lane serve background work with the priority of host writes, until [`Core::demote`].
    pub(crate) fn promote(&mut self, lane: LaneId) {
        for die in self.geometry.dies_of(lane) {
            self.device.promote(die);
        }
    }

    /// Undoes one [`Core::promote`].
    pub(crate) fn demote(&mut self, lane: LaneId) {
        for die in self.geometry.dies_of(lane) {
            self.device.demote(die);
        }
    }

    /// The number of transactions queued on the dies of a lane or under way.
    pub(crate) fn load(&self, lane: LaneId) -> u32 {
        match self.geometry.dies_per_lane {
            1 => self.device.load(self.geometry.die_of(lane)),
            _ => self.geometry.dies_of(lane).map(|die| self.device.load(die)).sum(),
        }
    }

    /// Pins the superblock of `unit`: the superblock is not erased while it has pins.
    #[inline(always)]
    pub(super) fn pin(&mut self, unit: UnitId) {
        let superblock = self.geometry.superblock_of(unit);
        self.array.superblock_mut(superblock).pins += 1;
    }

    /// Removes a pin of a superblock. Without pins, a victim or a dead superblock can be erased.
    #[inline]
    pub(crate) fn unpin(&mut self, superblock: SuperblockId) {
        let state = self.array.superblock_mut(superblock);
        state.pins -= 1;
        if state.pins == 0 {
            if state.state == SuperblockState::Victim {
                let lane = self.geometry.lane_of(superblock);
                self.wake(Wake::Emptied(lane));
            } else {
                self.look_if_dead(superblock);
            }
        }
    }

    /// Makes a transaction on the die of `unit`.
    #[inline(always)]
    pub(super) fn transaction(
        &self,
        kind: FlashOp,
        unit: UnitId,
        lpn: Lpn,
        owner: Owner,
        cause: Cause,
        class: Class,
    ) -> Transaction {
        let (superblock, index) = self.geometry.split(unit);
        let die = self.geometry.die_of_unit(superblock, index);
        let plane_in_die = self.geometry.plane_in_die(superblock, index) as u8;
        let shape = self.array.shape_id(superblock);
        Transaction {
            unit,
            lpn,
            owner,
            kind,
            cause,
            class,
            index,
            plane_in_die,
            shape,
            die,
            ..Transaction::EMPTY
        }
    }

    /// Whether the program of a mapped unit has not ended yet.
    #[inline(always)]
    pub(crate) fn is_in_flight(&self, unit: UnitId) -> bool {
        let (superblock, index) = self.geometry.split(unit);
        !self.array.is_programmed(superblock, index)
    }

    /// Reports to the probe that a host unit has been programmed: its write is durable, and acknowledged now unless the
    /// write cache has acknowledged it earlier.
    #[inline]
    pub(crate) fn tell_durable(&mut self, done: &Transaction) {
        if self.probe.needs_sequences() {
            let sequence = self.array.stamp(done.unit).sequence;
            self.probe.on_write_durable(done.lpn, sequence);
            self.probe.on_write_acknowledged(done.lpn, sequence);
        }
    }

    /// Counts a flash operation on a superblock of this shape that has ended on its die.
    #[inline(always)]
    pub(crate) fn count_ended(&mut self, kind: FlashOp, cause: Cause, shape: ShapeId) {
        let count = match kind {
            FlashOp::Program | FlashOp::Copyback => self.array.shapes()[shape].pages_per_program,
            FlashOp::Erase => self.geometry.planes_per_lane,
            FlashOp::Read => 1,
        };
        self.operations.on_ended(kind, cause, count);
    }

    /// Ends the program or the copyback of a unit in flash. The last unit of a superblock closes it.
    #[inline(always)]
    pub(crate) fn end_program(&mut self, done: &Transaction) -> Programmed {
        let superblock = self.geometry.superblock_of(done.unit);
        let mut programmed = self.array.program(superblock, done.index);
        let is_first = programmed == 1;
        if done.skips > 0 {
            programmed = self.array.skip_after(superblock, done.index, u32::from(done.skips));
        }
        let is_closed = programmed == self.shape(superblock).units;
        if is_closed {
            self.ftl.close(&mut self.array, superblock, self.now);
        }
        self.read_counts.reset(done.unit);
        self.on_placed(done);
        Programmed { is_first, is_closed }
    }

    /// Ends the program of a unit in place: its data has been corrected now.
    pub(crate) fn end_reprogram(&mut self, done: &Transaction) {
        let superblock = self.geometry.superblock_of(done.unit);
        self.array.reprogram(superblock, done.index, done.unit, self.age_stamp_now());
    }

    /// Replaces the data of a unit whose program has not begun by newer data of its LPN. Returns the stamp of the newer
    /// data.
    pub(crate) fn replace_staged(&mut self, unit: UnitId, lpn: Lpn) -> Stamp {
        let stamp = self.next_stamp();
        self.array.stage(unit, lpn, stamp);
        stamp
    }

    /// Notes in the OOB of a unit that it has only the sectors that were dirty when power failed.
    pub(crate) fn mark_partial(&mut self, unit: UnitId) {
        self.array.mark_partial(unit);
    }

    /// Unmaps an LPN, whose data is no longer needed. Returns the unit that had it.
    #[inline]
    pub(crate) fn unmap(&mut self, lpn: Lpn) -> Option<UnitId> {
        self.ftl.unmap(&mut self.array, lpn)
    }

    /// The lane for a host write of `lpn` to `stream` in a reclaim group; `None` if dynamic allocation finds no lane with
    /// room.
    #[inline]
    pub(crate) fn choose_lane(&mut self, lpn: Lpn, stream: StreamId, group: u16) -> Option<LaneId> {
        self.ftl.choose_lane(&self.device, lpn, stream, group)
    }

    /// Makes the host's streams of a lane use only LSB pages, or all pages again.
    pub(crate) fn set_host_lsb_only(&mut self, lane: LaneId, is_on: bool) {
        self.ftl.set_host_lsb_only(lane, is_on);
    }

    /// The next programming unit for data of a place in an emergency flush, or in a detection, which writes like one: on a
    /// die that is not busy.
    pub(crate) fn next_of_flush(
        &mut self,
        units: &mut FlushPrograms,
        place: Place,
        is_busy: impl Fn(&Device, DieId) -> bool,
    ) -> Option<AllocatedUnit> {
        units.next(&mut self.array, &mut self.ftl, place, |die| is_busy(&self.device, die))
    }

    /// Whether a program that was queued before the operation with number `order` has not ended.
    pub(crate) fn has_program_before(&mut self, order: u64) -> bool {
        self.device.has_program_before(&self.pool, order)
    }

    /// Ends the phase of a die whose clock has struck. The operations that have ended are still in the pool
    /// ([`Core::end_operation`]).
    #[inline(always)]
    pub(crate) fn on_die(&mut self, die: DieId) -> Ended {
        self.device.on_clock(&mut self.pool, &mut self.agenda, &mut self.probe, self.now, die)
    }

    /// A die whose operation has ended takes the next one.
    #[inline(always)]
    pub(crate) fn start_next(&mut self, die: DieId) {
        self.device.start_next(&mut self.pool, &mut self.agenda, &mut self.probe, self.now, die);
    }

    /// Removes an operation that has ended.
    #[inline(always)]
    pub(crate) fn end_operation(&mut self, slot: Slot) -> Transaction {
        self.pool.remove(slot)
    }

    /// Ends the erase of a superblock on the die of its unit `first`. After the last of its dies the superblock becomes
    /// free, or retires. Returns whether this was the last.
    pub(crate) fn end_erase(&mut self, first: UnitId, cause: Cause) -> bool {
        let (superblock, index) = self.geometry.split(first);
        self.count_ended(FlashOp::Erase, cause, self.array.shape_id(superblock));
        let is_erased = self.array.erase_on_die(superblock, index);
        if is_erased {
            self.end_erases(superblock);
        }
        is_erased
    }

    /// All blocks of a superblock have been erased: it becomes free, or retires.
    pub(super) fn end_erases(&mut self, superblock: SuperblockId) {
        self.count_erase(superblock);
        self.array.erase(&self.geometry, superblock);
        self.ftl.release(&mut self.array, superblock, self.room.endurance);
    }
}
