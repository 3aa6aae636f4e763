//! The verbs that program and erase. Each queues one operation, or adds a page to a program.

use super::copy_back::NoRoom;
use super::{Core, Part, Wake};
use crate::base::geometry::{BlockId, Lpn, PlaneId, Ppn};
use crate::base::slab::Node;
use crate::flash::{BlockState, DEAD_LPN, Stamp};
use crate::ftl::{AllocatedPage, WriteStream};
use crate::probe::Probe;
use crate::sched::{Cause, Class, FlashOp, Owner, Slot, Transaction};

/// The page that a program writes.
#[derive(Clone, Copy, Debug)]
pub(crate) enum To {
    /// The next page of a stream of a plane.
    Stream(PlaneId, WriteStream),
    /// A page of a stream that has been allocated already.
    Allocated(AllocatedPage, WriteStream),
    /// A programmed page, which is programmed again in place with its own data.
    InPlace(Ppn),
}

/// The effect of a program on the map.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Maps {
    /// The LPN is mapped to the page: from now on the page has the newest data of the LPN.
    Now,
    /// The map does not change: the page has no data, is programmed in place, or power is off.
    Nothing,
}

/// A page to be programmed.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Program {
    pub(crate) to: To,
    pub(crate) lpn: Lpn,
    /// Sequence number and AgeStamp, which go into the OOB with the LPN.
    pub(crate) stamp: Stamp,
    pub(crate) maps: Maps,
    pub(crate) owner: Owner,
    pub(crate) cause: Cause,
    pub(crate) class: Class,
}

impl Program {
    /// A program of a page without data.
    pub(crate) fn nothing(to: To, owner: Owner, cause: Cause, class: Class) -> Self {
        Self { to, lpn: Lpn(DEAD_LPN), stamp: Stamp::default(), maps: Maps::Nothing, owner, cause, class }
    }
}

/// A page whose program or copyback is in the queue of its die.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Queued {
    pub(crate) ppn: Ppn,
    /// Whether the allocation of the page has opened a block.
    pub(crate) opened: bool,
}

impl<P: Probe> Core<P> {
    /// Queues the program of a page. If needed, the page is allocated and its OOB set first. With [`Maps::Now`] the
    /// page is mapped. The block of the replaced page is pinned until the program has ended.
    ///
    /// # Errors
    /// [`NoRoom`] when the plane has no page left for the stream; nothing has changed then.
    // Inlined, so that `program` is not passed through memory.
    #[inline(always)]
    pub(crate) fn program(&mut self, program: Program) -> Result<Queued, NoRoom> {
        let _inside = self.inside.enter(Part::Program);
        let Program { to, lpn, stamp, maps, owner, cause, class } = program;
        let (AllocatedPage { ppn, opened, skips }, stream) = match to {
            To::Stream(plane, stream) => (self.allocate(plane, stream).ok_or(NoRoom)?, Some(stream)),
            To::Allocated(page, stream) => (page, Some(stream)),
            To::InPlace(ppn) => (AllocatedPage { ppn, opened: false, skips: 0 }, None),
        };
        let mut replaces = None;
        if let To::InPlace(_) = to {
            replaces = Some(ppn);
        } else {
            self.array.stage(ppn, lpn, stamp);
        }
        if maps == Maps::Now {
            replaces = self.ftl.remap(&self.geometry, &mut self.array, lpn, ppn);
        }
        if let Some(old) = replaces {
            self.pin(old);
        }
        // No reference to the transaction is passed on, so that it is built in its slot. From a copy on the stack, written in
        // parts and read as a whole, the CPU could not forward the parts.
        let transaction = self.transaction(FlashOp::Program, ppn, lpn, owner, cause, class);
        let order = self.pool.next_order();
        let slot = self.pool.insert(Transaction { skips, replaces, ..transaction });
        match stream {
            Some(stream) => self.queue_or_gather(slot, stream),
            None => self.enqueue(slot),
        }
        // Jobs send no wake: a job begins only if there is room for the blocks that it opens.
        if opened && !matches!(owner, Owner::Job(_)) {
            let plane = self.geometry.plane_of(self.geometry.block_of(ppn));
            self.keep_dies(plane, order);
            self.wake(Wake::Space(plane));
        }
        Ok(Queued { ppn, opened })
    }

    /// The class of the programs to `stream` by a job of class `job`. The pages of a block are programmed in order, so
    /// all programs to a stream that several writers share are in one class.
    #[inline(always)]
    pub(crate) fn class_of(&self, stream: WriteStream, job: Class) -> Class {
        match stream {
            WriteStream::Mapping => Class::HostWrite,
            WriteStream::Combination => self.refresh_class,
            WriteStream::Gc if self.ftl.shares_first_block => Class::HostWrite,
            _ => job,
        }
    }

    /// Queues the erase of a block without valid pages: one transaction on each of its dies.
    pub(crate) fn erase(&mut self, block: BlockId, owner: Owner, cause: Cause, class: Class) {
        for page in self.geometry.stripes.firsts() {
            let ppn = self.geometry.page(block, page);
            let erase = self.transaction(FlashOp::Erase, ppn, Lpn(0), owner, cause, class);
            let slot = self.pool.insert(erase);
            self.enqueue(slot);
        }
    }

    /// Whether a job has to end its wordlines before its victim is erased ([`Core::end_wordlines`]).
    pub(crate) fn ends_wordlines(&self) -> bool {
        self.state.is_guarded && self.geometry.dependent_pages() > 1
    }

    /// Called when the job of a plane has copied all pages and is about to erase its victim, or to end, and after a
    /// recovery, which may have emptied blocks. While power loss may tear a program, no later page of a stream of jobs
    /// may share a wordline with a copy, so the rest of such a wordline stays erased, in a superblock that of the
    /// wordlines of all flash blocks.
    pub(crate) fn end_wordlines(&mut self, plane: PlaneId) {
        if !self.ends_wordlines() {
            return;
        }
        for stream in WriteStream::all().filter(|stream| stream.is_of_jobs()) {
            while self.ftl.is_amid_wordline(&self.geometry, plane, stream) {
                let skipped = self.allocate(plane, stream).expect("a stream amid a wordline has a page left");
                debug_assert!(
                    self.geometry.place_in_program(skipped.ppn) == 0,
                    "a job has closed its programs"
                );
                for _ in 1..self.geometry.units_per_page {
                    self.allocate(plane, stream);
                }
                let (block, page) = self.geometry.split(skipped.ppn);
                let pages = self.geometry.units_per_page;
                if self.array.skip(block, page, pages) == self.geometry.pages_per_block {
                    self.ftl.close(&self.geometry, &mut self.array, block, self.now);
                    self.wake(Wake::Space(plane));
                    self.look_if_dead(block);
                }
            }
        }
    }

    /// Allocates the next page of `stream` in `plane`; `None` without room.
    #[inline(always)]
    pub(crate) fn allocate(&mut self, plane: PlaneId, stream: WriteStream) -> Option<AllocatedPage> {
        self.ftl.allocate(&self.geometry, &mut self.array, plane, stream)
    }

    /// Queues a transaction of the pool on its die. [`Core::start_dies`] starts the die.
    #[inline(always)]
    pub(crate) fn enqueue(&mut self, slot: Slot) {
        self.device.submit(&mut self.pool, slot);
    }

    /// Starts the free dies for which transactions have been queued.
    #[inline(always)]
    pub(crate) fn start_dies(&mut self) {
        self.end_gathering();
        self.device.start(&mut self.pool, &mut self.agenda, &mut self.probe, self.now);
    }

    /// The dies of a plane serve background work with the priority of host writes, until [`Core::demote`].
    pub(crate) fn promote(&mut self, plane: PlaneId) {
        for die in self.geometry.dies_of(plane) {
            self.device.promote(die);
        }
    }

    /// Undoes one [`Core::promote`].
    pub(crate) fn demote(&mut self, plane: PlaneId) {
        for die in self.geometry.dies_of(plane) {
            self.device.demote(die);
        }
    }

    /// The number of transactions queued on the dies of a plane or under way.
    pub(crate) fn load(&self, plane: PlaneId) -> u32 {
        match self.geometry.dies_per_block {
            1 => self.device.load(self.geometry.die_of(plane)),
            _ => self.geometry.dies_of(plane).map(|die| self.device.load(die)).sum(),
        }
    }

    /// Pins the block of `page`: the block is not erased while it has pins.
    #[inline(always)]
    pub(crate) fn pin(&mut self, page: Ppn) {
        let block = self.geometry.block_of(page);
        self.array.block_mut(block).pins += 1;
    }

    /// Removes a pin of a block. Without pins, a victim or a dead block can be erased.
    #[inline]
    pub(crate) fn unpin(&mut self, block: BlockId) {
        let state = self.array.block_mut(block);
        state.pins -= 1;
        if state.pins == 0 {
            if state.state == BlockState::Victim {
                let plane = self.geometry.plane_of(block);
                self.wake(Wake::Emptied(plane));
            } else {
                self.look_if_dead(block);
            }
        }
    }

    /// Makes a transaction on the die of `ppn`.
    #[inline(always)]
    pub(crate) fn transaction(
        &self,
        kind: FlashOp,
        ppn: Ppn,
        lpn: Lpn,
        owner: Owner,
        cause: Cause,
        class: Class,
    ) -> Transaction {
        let (block, page) = self.geometry.split(ppn);
        let die = self.geometry.die_of_page(block, page);
        let plane_in_die = self.geometry.plane_in_die(block, page) as u8;
        Transaction { ppn, lpn, owner, kind, cause, class, page, plane_in_die, die, ..Transaction::EMPTY }
    }

    /// Whether the program of a mapped page has not ended yet.
    #[inline(always)]
    pub(crate) fn is_in_flight(&self, ppn: Ppn) -> bool {
        let (block, page) = self.geometry.split(ppn);
        !self.array.is_programmed(block, page)
    }

    /// Reports to the probe that a host page has been programmed: its write is durable, and acknowledged now unless the
    /// write cache has acknowledged it earlier.
    #[inline]
    pub(crate) fn tell_durable(&mut self, done: &Transaction) {
        if P::STAMPED {
            let sequence = self.array.stamp(done.ppn).sequence;
            self.probe.on_write_durable(done.lpn, sequence);
            self.probe.on_write_acknowledged(done.lpn, sequence);
        }
    }

    /// Counts a flash operation that has ended on its die.
    #[inline(always)]
    pub(crate) fn count_ended(&mut self, kind: FlashOp, cause: Cause) {
        let count = match kind {
            FlashOp::Program | FlashOp::Copyback => self.geometry.flash_pages_per_program,
            FlashOp::Erase => self.geometry.planes_per_block,
            FlashOp::Read => 1,
        };
        self.operations.on_ended(kind, cause, count);
    }

    /// Ends the erase of a block on the die of its page `first`. After the last of its dies the block becomes free, or
    /// retires. Returns whether this was the last.
    pub(crate) fn end_erase(&mut self, first: Ppn, cause: Cause) -> bool {
        self.count_ended(FlashOp::Erase, cause);
        let (block, page) = self.geometry.split(first);
        let is_erased = self.array.erase_on_die(block, page);
        if is_erased {
            self.array.erase(&self.geometry, block);
            self.ftl.release(&self.geometry, &mut self.array, block, self.room.endurance);
        }
        is_erased
    }
}
