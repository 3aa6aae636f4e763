//! Programs and reads of several units (`drive.program_order`, `ftl.mapping_unit`).
//!
//! The flash programs a programming unit once, as a whole. So the units that are allocated one after another to the
//! same programming unit gather until it is full. A programming unit that is not full can be closed: the rest is
//! padding. This happens at the end of the event if one of its units may not wait, such as a unit of a host request or
//! of the write cache, or a translation page that is written back. Only two kinds of units may wait. Those in the write
//! buffer (`ftl.buffer`), units that leave the write cache through it among them, gather until the buffer needs the room,
//! or a superblock whose units they replace is to be erased, or the host flushes or is idle. Those of background jobs
//! gather until a job closes the programming unit; GC leaves the last programming unit of a victim open for the copies from
//! the next victim ([`Emptied`](super::Emptied)).
//!
//! Reads that are queued in the same event for units of the same page are one flash read, if they are queued in the
//! order of the units, agree in cause, class and read levels, and need bits of at most one combination page. The flash
//! read transfers the units that were asked for. Of the flash reads of one page only the newest are looked at, as many
//! as the page has units.
//!
//! Of the transactions of a flash operation only the first is in a queue; the others follow it through
//! [`Transaction::more`].
//!
//! Each of these transactions has its own owner. The operation takes its time once, and counts as the pages that it
//! reads or programs (`Core::count_ended`). `Core::fill_program` programs a programming unit that has been allocated as
//! a whole (emergency flush, detection). At power loss an operation is torn, or ends, with all its units; units that
//! gather are dropped.

use super::joined::Joined;
use super::read::SubRead;
use super::{Core, Program};
use crate::base::counters::counters;
use crate::base::geometry::{LaneId, Lpn, SuperblockId, UnitId};
use crate::base::state::{state, value};
use crate::flash::{DEAD_LPN, Shapes, Stamp};
use crate::ftl::{AllocatedUnit, StreamId};
use crate::probe::Probe;
use crate::sched::{Owner, Slot, Transaction};
use std::iter::successors;

counters! {
    /// Programs of several mapping units (`ftl.mapping_unit`, `drive.program_order`).
    pub struct UnitsStats {
        /// Mapping units without data that filled a programming unit whose program could not wait.
        pub padding: u64, sum of units;
    }
}

/// A programming unit that is not full yet.
#[derive(Clone, Copy, Debug)]
struct OpenProgram {
    /// The transactions of its first and of its last unit.
    first: Slot,
    last: Slot,
    /// Number of its units that are in the write buffer.
    buffered: u32,
}

/// The flash operations to which further units can be added.
#[derive(Debug)]
pub(crate) struct Gathering {
    /// By lane and stream, the programming unit that gathers; empty if a program writes one unit. No two streams share
    /// an open superblock here: the spec check accepts a first superblock that GC shares with the host only where a
    /// program writes one unit.
    programs: Box<[Option<OpenProgram>]>,
    /// The number of streams of a lane.
    streams: usize,
    /// The programming units to be closed at the end of the event, with the transaction of the first unit.
    due: Vec<(LaneId, StreamId, Slot)>,
    /// The reads queued in this event.
    reads: Joined,
    /// Whether the mapping unit is smaller than the page.
    joins_reads: bool,
    /// Number of units of the write buffer whose programming units are not full.
    buffered: u32,
    /// Whether the unit that is queued next is in the write buffer, although its owner is the write cache.
    next_is_buffered: bool,
    pub(crate) stats: UnitsStats,
}

impl Gathering {
    /// The state in which no programming unit gathers, with `streams` streams in each lane.
    pub(crate) fn new(lanes: u32, shapes: &Shapes, streams: usize) -> Self {
        let count = if shapes.units_per_program_max() == 1 { 0 } else { lanes as usize * streams };
        Self {
            programs: vec![None; count].into(),
            streams,
            due: Vec::new(),
            reads: Joined::default(),
            joins_reads: shapes.first().units_per_page > 1,
            buffered: 0,
            next_is_buffered: false,
            stats: UnitsStats::default(),
        }
    }

    /// The index in [`Gathering::programs`] of a stream of a lane.
    #[inline(always)]
    fn index_of(&self, lane: LaneId, stream: StreamId) -> usize {
        lane.index() * self.streams + stream.index()
    }

    /// The programming unit that gathers in a stream of a lane.
    #[inline(always)]
    fn open(&self, lane: LaneId, stream: StreamId) -> Option<OpenProgram> {
        self.programs.get(self.index_of(lane, stream)).copied().flatten()
    }

    /// Whether a program writes several units.
    #[inline(always)]
    fn joins_programs(&self) -> bool {
        !self.programs.is_empty()
    }

    /// Power loss: the units that gather are lost. Programming units are programmed once, so these are still erased.
    pub(crate) fn forget(&mut self) {
        self.programs.fill(None);
        self.due.clear();
        self.reads.clear();
        self.buffered = 0;
    }
}

impl<P: Probe> Core<P> {
    /// Queues a program to the next unit of a stream, or adds it to the programming unit that gathers.
    #[inline(always)]
    pub(super) fn queue_or_gather(&mut self, slot: Slot, stream: StreamId) {
        if self.gathering.joins_programs() {
            self.gather(slot, stream);
        } else {
            self.enqueue(slot);
        }
    }

    #[inline(never)]
    fn gather(&mut self, slot: Slot, stream: StreamId) {
        let Transaction { unit, owner, shape, .. } = self.pool[slot];
        let lane = self.geometry.lane_of(self.geometry.superblock_of(unit));
        let shape = &self.array.shapes()[shape];
        let (position, units) = (shape.place_in_program(unit), shape.units_per_program);
        let goes_along = position > 0;
        self.pool[slot].goes_along = goes_along;
        let index = self.gathering.index_of(lane, stream);
        let open = &mut self.gathering.programs[index];
        let is_buffered =
            matches!(owner, Owner::Buffered(_)) || std::mem::take(&mut self.gathering.next_is_buffered);
        assert!(goes_along == open.is_some(), "a programming unit begins with its first unit");
        let program = open.get_or_insert(OpenProgram { first: slot, last: slot, buffered: 0 });
        if goes_along {
            self.pool[program.last].more = Some(slot);
        }
        program.last = slot;
        program.buffered += u32::from(is_buffered);
        self.gathering.buffered += u32::from(is_buffered);
        let OpenProgram { first, buffered, .. } = *program;
        let is_full = position + 1 == units;
        if is_full {
            *open = None;
            self.gathering.buffered -= buffered;
            self.enqueue(first);
        } else if !is_buffered && !matches!(owner, Owner::Job(_)) {
            self.gathering.due.push((lane, stream, first));
        }
    }

    /// The unit that is queued next leaves the write cache through the write buffer: it may wait until its programming
    /// unit is full.
    pub(crate) fn buffer_next(&mut self) {
        self.gathering.next_is_buffered = true;
    }

    /// Ends the event for programming units and reads that are still open: closes the programming units that are due.
    #[inline(always)]
    pub(super) fn end_gathering(&mut self) {
        if self.gathering.joins_programs() {
            self.gathering.reads.clear();
            if !self.gathering.due.is_empty() {
                self.close_due();
            }
        }
    }

    #[inline(never)]
    fn close_due(&mut self) {
        for index in 0..self.gathering.due.len() {
            let (lane, stream, first) = self.gathering.due[index];
            let open = self.gathering.open(lane, stream);
            if open.is_some_and(|program| program.first == first) {
                self.close_program(lane, stream);
            }
        }
        self.gathering.due.clear();
    }

    /// Closes the programming units that gather in all streams of a lane but those of the host. They have units of the lane's
    /// jobs, or translation or combination pages of others, whose programming unit would be closed at the end of the
    /// event anyway.
    #[inline(always)]
    pub(crate) fn close_programs_of_job(&mut self, lane: LaneId) {
        if self.gathering.joins_programs() {
            for stream in self.ftl.streams.ids() {
                if !self.ftl.streams.is_host(stream) {
                    self.close_program(lane, stream);
                }
            }
        }
    }

    /// Whether a programming unit gathers in a stream of a lane.
    pub(crate) fn gathers(&self, lane: LaneId, stream: StreamId) -> bool {
        self.gathering.open(lane, stream).is_some()
    }

    /// The units of the programming unit that gathers for the jobs of a lane: the one in the first stream, other than
    /// those of the host, in which one gathers.
    pub(crate) fn gathering_of_jobs(&self, lane: LaneId) -> impl Iterator<Item = &Transaction> {
        let streams = self.ftl.streams.ids().filter(|&stream| !self.ftl.streams.is_host(stream));
        let mut programs = streams.filter_map(move |stream| self.gathering.open(lane, stream));
        let first = programs.next().map(|program| program.first);
        successors(first, |&slot| self.pool[slot].more).map(|slot| &self.pool[slot])
    }

    /// The units whose program has not ended, those that gather included.
    pub(crate) fn units_to_program(&self) -> impl Iterator<Item = &Transaction> {
        let gathering = self.gathering.programs.iter().flatten().map(|program| program.first);
        let operations = self.device.operations(&self.pool).chain(gathering);
        let units = operations.flat_map(|first| successors(Some(first), |&slot| self.pool[slot].more));
        units.map(|slot| &self.pool[slot]).filter(|unit| unit.kind.programs())
    }

    /// Whether the die of `unit`, which is to be programmed, has begun the program of the unit's programming unit.
    pub(crate) fn has_begun_program(&self, unit: UnitId) -> bool {
        let (superblock, index) = self.geometry.split(unit);
        let first = UnitId(unit.0 - self.shape(superblock).place_in_program(unit));
        self.device.has_begun(&self.pool, self.geometry.die_of_unit(superblock, index), first)
    }

    /// Closes all programming units that gather in the streams of the host, if any of them has units of the write
    /// buffer.
    #[inline(always)]
    pub(crate) fn close_buffered(&mut self) {
        if self.gathering.buffered > 0 {
            self.close_programs_of_host();
        }
    }

    /// Closes all programming units that gather in the streams of the host, whether or not their units are in the write
    /// buffer.
    pub(crate) fn close_programs_of_host(&mut self) {
        for lane in (0..self.geometry.lanes).map(LaneId) {
            for number in 0..self.ftl.streams.hosts().len() {
                self.close_program(lane, self.ftl.streams.hosts()[number]);
            }
        }
    }

    /// The host waits until one of `units` is programmed. If all of these gather in the write buffer, no program is under
    /// way that the host could wait for: closes the one of their programming units that has gathered for the longest time.
    #[inline]
    pub(crate) fn close_if_all_gather(&mut self, units: u32) {
        if units > 0 && self.gathering.buffered == units {
            self.close_oldest_program();
        }
    }

    /// Closes the programming unit with units of the write buffer that has gathered for the longest time in a stream of the
    /// host. Others are closed at the end of the event.
    #[cold]
    fn close_oldest_program(&mut self) {
        let age = |&(lane, stream): &(LaneId, StreamId)| {
            let open = self.gathering.open(lane, stream).filter(|program| program.buffered > 0);
            open.map_or(u64::MAX, |program| self.pool[program.first].order)
        };
        let hosts = |lane| self.ftl.streams.hosts().iter().map(move |&stream| (lane, stream));
        let oldest = (0..self.geometry.lanes).map(LaneId).flat_map(hosts).min_by_key(age);
        let (lane, stream) = oldest.expect("a drive has lanes");
        self.close_program(lane, stream);
    }

    /// Closes the programming units of the host's streams that have units of the write buffer which replace units of
    /// `superblock`: the erase of `superblock` waits for them.
    #[inline(always)]
    pub(crate) fn close_replacing(&mut self, superblock: SuperblockId) {
        if self.gathering.buffered > 0 {
            self.close_all_replacing(superblock);
        }
    }

    #[inline(never)]
    fn close_all_replacing(&mut self, superblock: SuperblockId) {
        for lane in (0..self.geometry.lanes).map(LaneId) {
            for number in 0..self.ftl.streams.hosts().len() {
                let stream = self.ftl.streams.hosts()[number];
                let mut rest = self.gathering.open(lane, stream).map(|program| program.first);
                while let Some(slot) = rest {
                    let unit = &self.pool[slot];
                    if unit.replaces.is_some_and(|old| self.geometry.superblock_of(old) == superblock) {
                        self.close_program(lane, stream);
                        break;
                    }
                    rest = unit.more;
                }
            }
        }
    }

    /// The number of units that are left in the programming unit to which `stream` of a lane writes next.
    pub(crate) fn units_to_fill(&self, lane: LaneId, stream: StreamId) -> u32 {
        let open = self.gathering.open(lane, stream);
        open.map_or(self.first_shape().units_per_program, |program| self.units_left(&program))
    }

    /// Fills the programming unit that gathers in a stream of a lane with padding, if there is one, and queues its
    /// program.
    pub(crate) fn close_program(&mut self, lane: LaneId, stream: StreamId) {
        let index = self.gathering.index_of(lane, stream);
        let Some(open) = self.gathering.programs.get_mut(index) else { return };
        let Some(program) = open.take() else { return };
        let (mut left, mut skips) = (self.units_left(&program), 0);
        while left > 0 {
            let unit = self.allocate(lane, stream).expect("a programming unit that gathers has units left");
            (left, skips) = (left - 1, unit.skips);
        }
        self.pad(program, skips);
    }

    /// The number of units of a programming unit that do not have a transaction yet.
    fn units_left(&self, program: &OpenProgram) -> u32 {
        let last = &self.pool[program.last];
        let shape = &self.array.shapes()[last.shape];
        shape.units_per_program - shape.place_in_program(last.unit) - 1
    }

    /// Fills a programming unit, all units of which are allocated, with padding, and queues its program. After the
    /// programming unit `skips` units remain erased.
    fn pad(&mut self, program: OpenProgram, skips: u16) {
        let left = self.units_left(&program);
        self.gathering.buffered -= program.buffered;
        let last = self.pool[program.last].unit;
        for behind in 1..=left {
            self.array.stage(UnitId(last.0 + behind), Lpn(DEAD_LPN), Stamp::default());
        }
        // Padding has no transactions, so the last transaction counts the padding as skipped.
        self.pool[program.last].skips += left as u16 + skips;
        self.gathering.stats.padding += u64::from(left);
        self.count_padding_of(self.geometry.superblock_of(last), left);
        self.enqueue(program.first);
    }

    /// Queues the program of a programming unit that has been allocated as a whole: from `first` on, with the `skips`
    /// of the last unit. `next` returns the program of each unit, or `None`: this unit and all after it are padding.
    /// The first unit must have a program. The units gather in `stream`, one of the host's, in which no other programming
    /// unit may gather.
    pub(crate) fn fill_program(
        &mut self,
        first: AllocatedUnit,
        stream: StreamId,
        mut next: impl FnMut(&mut Self, AllocatedUnit) -> Option<Program>,
    ) {
        let units = self.shape(self.geometry.superblock_of(first.unit)).units_per_program;
        for number in 0..units {
            let allocated = AllocatedUnit {
                unit: UnitId(first.unit.0 + number),
                opened: first.opened && number == 0,
                skips: if number + 1 == units { first.skips } else { 0 },
            };
            let Some(program) = next(self, allocated) else {
                let lane = self.geometry.lane_of(self.geometry.superblock_of(first.unit));
                let index = self.gathering.index_of(lane, stream);
                let open = &mut self.gathering.programs[index];
                if let Some(program) = open.take() {
                    self.pad(program, first.skips);
                }
                return;
            };
            self.program(program).expect("the unit is allocated");
        }
    }

    /// Tries to add the read in `slot` to an earlier flash read of this event of the same page; returns whether it has
    /// been added. If not, the read is a flash operation of its own.
    #[inline(always)]
    pub(super) fn goes_along(&mut self, slot: Slot, part: Option<SubRead>) -> bool {
        self.gathering.joins_reads && !self.gathering.reads.is_empty() && self.join_read(slot, part)
    }

    #[inline(never)]
    fn join_read(&mut self, slot: Slot, part: Option<SubRead>) -> bool {
        let (pool, geometry, read) = (&self.pool, &self.geometry, &self.pool[slot]);
        let takes = |(first, last): (Slot, Slot)| {
            let lead = &pool[first];
            // Units that need different levels, because the data of one is lost, are read separately.
            pool[last].unit < read.unit
                && (lead.cause, lead.class, lead.start, lead.needed, lead.is_beyond)
                    == (read.cause, read.class, read.start, read.needed, read.is_beyond)
                && self.shares_part(lead, part)
        };
        let newest =
            self.gathering.reads.of(geometry.first_of_page(read.unit)).take(geometry.units_per_page as usize);
        let Some((index, (first, last))) = { newest }.find(|&(_, ends)| takes(ends)) else { return false };
        let (level, extent) = (read.level, read.extent);
        self.pool[slot].goes_along = true;
        self.pool[last].more = Some(slot);
        let lead = &mut self.pool[first];
        lead.level = lead.level.max(level);
        lead.extent += extent;
        self.gathering.reads.set_last(index, slot);
        if let Some(part) = part {
            self.add_sub_read(first, part);
        }
        true
    }

    /// Notes that `slot` is a read of its own, to which reads of the same page may be added.
    #[inline(always)]
    pub(super) fn may_go_along(&mut self, slot: Slot) {
        if self.gathering.joins_reads {
            let first = self.geometry.first_of_page(self.pool[slot].unit);
            self.gathering.reads.push(first, slot);
        }
    }

    /// The [`Transaction::extent`] of the read of one unit: the bytes of the unit or, if the unit is the page, 0, which
    /// stands for the whole page.
    #[inline(always)]
    pub(super) fn unit_bytes(&self) -> u32 {
        if self.gathering.joins_reads { self.geometry.unit_bytes } else { 0 }
    }
}

value! { OpenProgram { first, last, buffered } }
state! {
    Gathering { programs, due, reads, buffered, next_is_buffered, stats }
    fixed { streams, joins_reads }
}
