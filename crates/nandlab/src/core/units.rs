//! Programming units and flash pages of several pages (`drive.program_order`, `ftl.mapping_unit`): several pages are
//! programmed or read by one flash operation.
//!
//! The flash programs a programming unit once, as a whole. So the pages that are allocated one after another to the same
//! programming unit gather until it is full. A unit that is not full is closed: the rest is padding. A unit with pages
//! of the host is closed at the end of the event, because the host waits for it, unless all of them are in the write
//! buffer (`ftl.buffer`). A unit that has only pages of background jobs gathers until a job closes it; GC leaves
//! the last unit of a victim open for the copies from the next one ([`Emptied`](super::Emptied)).
//!
//! Reads that are queued in the same event for pages of the same flash page are one flash read. It transfers the pages
//! that were asked for. Of the flash reads of one flash page only the newest are looked at, as many as the flash page
//! has pages.
//!
//! Of the transactions of a flash operation only the first is in a queue; the others follow it through
//! [`Transaction::more`].

use super::joined::Joined;
use super::read::SubRead;
use super::{Core, Program};
use crate::base::counters::counters;
use crate::base::geometry::{BlockId, Geometry, Lpn, PlaneId, Ppn};
use crate::flash::{DEAD_LPN, Stamp};
use crate::ftl::{AllocatedPage, STREAMS, WriteStream};
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
struct Gathering {
    /// The transactions of its first and of its last page.
    first: Slot,
    last: Slot,
    /// Number of its pages that are in the write buffer.
    buffered: u32,
}

/// The flash operations to which further pages can be added.
#[derive(Debug)]
pub(crate) struct Units {
    /// By plane and stream; empty if a program writes one page.
    gathering: Box<[Option<Gathering>]>,
    /// The programming units to be closed at the end of the event, with the transaction of the first page.
    due: Vec<(PlaneId, WriteStream, Slot)>,
    /// The reads queued in this event.
    reads: Joined,
    /// Whether the mapping unit is smaller than the flash page.
    joins_reads: bool,
    /// Number of pages of the write buffer whose programming units are not full.
    buffered: u32,
    pub(crate) stats: UnitsStats,
}

impl Units {
    /// The state in which no programming unit gathers.
    pub(crate) fn new(geometry: &Geometry) -> Self {
        let streams = if geometry.pages_per_program == 1 { 0 } else { geometry.planes as usize * STREAMS };
        Self {
            gathering: vec![None; streams].into(),
            due: Vec::new(),
            reads: Joined::default(),
            joins_reads: geometry.units_per_page > 1,
            buffered: 0,
            stats: UnitsStats::default(),
        }
    }

    /// Whether a program writes several pages.
    #[inline(always)]
    fn are_parts(&self) -> bool {
        !self.gathering.is_empty()
    }

    /// Power loss: the pages that gather are lost. Programming units are programmed once, so these are still erased.
    pub(crate) fn forget(&mut self) {
        self.gathering.fill(None);
        self.due.clear();
        self.reads.clear();
        self.buffered = 0;
    }

    /// Number of pages of the write buffer whose programming units are not full.
    pub(crate) fn buffered(&self) -> u32 {
        self.buffered
    }
}

/// The index in [`Units::gathering`] of a stream of a plane.
#[inline(always)]
fn place_of(plane: PlaneId, stream: WriteStream) -> usize {
    plane.index() * STREAMS + stream.index()
}

impl<P: Probe> Core<P> {
    /// Queues a program to the next page of a stream, or adds it to the programming unit that gathers.
    #[inline(always)]
    pub(super) fn queue_or_gather(&mut self, slot: Slot, stream: WriteStream) {
        if self.units.are_parts() {
            self.gather(slot, stream);
        } else {
            self.enqueue(slot);
        }
    }

    #[inline(never)]
    fn gather(&mut self, slot: Slot, stream: WriteStream) {
        let Transaction { ppn, owner, .. } = self.pool[slot];
        let plane = self.geometry.plane_of(self.geometry.block_of(ppn));
        let position = self.geometry.place_in_program(ppn);
        let goes_along = position > 0;
        self.pool[slot].goes_along = goes_along;
        let place = &mut self.units.gathering[place_of(plane, stream)];
        let is_buffered = matches!(owner, Owner::Buffered(_));
        assert!(goes_along == place.is_some(), "a programming unit begins with its first page");
        let page = place.get_or_insert(Gathering { first: slot, last: slot, buffered: 0 });
        if goes_along {
            self.pool[page.last].more = Some(slot);
        }
        page.last = slot;
        page.buffered += u32::from(is_buffered);
        self.units.buffered += u32::from(is_buffered);
        let Gathering { first, buffered, .. } = *page;
        let is_full = position + 1 == self.geometry.pages_per_program;
        if is_full {
            *place = None;
            self.units.buffered -= buffered;
            self.enqueue(first);
        } else if !is_buffered && !matches!(owner, Owner::Job(_)) {
            self.units.due.push((plane, stream, first));
        }
    }

    /// Ends the event for programming units and reads that are still open: closes the programming units for which the
    /// host waits.
    #[inline(always)]
    pub(super) fn end_gathering(&mut self) {
        if self.units.are_parts() {
            self.units.reads.clear();
            if !self.units.due.is_empty() {
                self.close_due();
            }
        }
    }

    #[inline(never)]
    fn close_due(&mut self) {
        for index in 0..self.units.due.len() {
            let (plane, stream, first) = self.units.due[index];
            let place = self.units.gathering[place_of(plane, stream)];
            if place.is_some_and(|page| page.first == first) {
                self.close_program(plane, stream);
            }
        }
        self.units.due.clear();
    }

    /// Closes the programming units of a plane that gather pages of its jobs. Translation pages and data are never in one
    /// block, so the unit of another stream than the job's is due at the end of the event.
    #[inline(always)]
    pub(crate) fn close_programs_of_job(&mut self, plane: PlaneId) {
        if self.units.are_parts() {
            for stream in WriteStream::all().filter(|&stream| stream != WriteStream::Host) {
                self.close_program(plane, stream);
            }
        }
    }

    /// Whether a programming unit gathers in a stream of a plane.
    pub(crate) fn gathers(&self, plane: PlaneId, stream: WriteStream) -> bool {
        self.units.gathering.get(place_of(plane, stream)).is_some_and(Option::is_some)
    }

    /// The pages of the programming unit that gathers for the jobs of a plane.
    pub(crate) fn gathering_of_jobs(&self, plane: PlaneId) -> impl Iterator<Item = &Transaction> {
        let streams = WriteStream::all().filter(|&stream| stream != WriteStream::Host);
        let mut units =
            streams.filter_map(move |stream| *self.units.gathering.get(place_of(plane, stream))?);
        let first = units.next().map(|unit| unit.first);
        successors(first, |&slot| self.pool[slot].more).map(|slot| &self.pool[slot])
    }

    /// The pages whose program has not ended, those that gather included.
    pub(crate) fn pages_to_program(&self) -> impl Iterator<Item = &Transaction> {
        let gathering = self.units.gathering.iter().flatten().map(|page| page.first);
        let operations = self.device.operations(&self.pool).chain(gathering);
        let pages = operations.flat_map(|first| successors(Some(first), |&slot| self.pool[slot].more));
        pages.map(|slot| &self.pool[slot]).filter(|page| page.kind.programs())
    }

    /// Whether the die of a page that is to be programmed has begun the program of its programming unit.
    pub(crate) fn has_begun_program(&self, ppn: Ppn) -> bool {
        let (block, page) = self.geometry.split(ppn);
        let first = Ppn(ppn.0 - self.geometry.place_in_program(ppn));
        self.device.has_begun(&self.pool, self.geometry.die_of_page(block, page), first)
    }

    /// Closes all programming units that gather pages of the write buffer.
    #[inline(always)]
    pub(crate) fn close_buffered(&mut self) {
        if self.units.buffered > 0 {
            self.close_programs_of_host();
        }
    }

    /// Closes all programming units that gather pages of the host's stream.
    pub(crate) fn close_programs_of_host(&mut self) {
        for plane in (0..self.geometry.planes).map(PlaneId) {
            self.close_program(plane, WriteStream::Host);
        }
    }

    /// Closes the programming unit that has gathered pages of the write buffer for the longest time.
    #[cold]
    pub(crate) fn close_oldest_program(&mut self) {
        let age = |plane: &PlaneId| {
            let place = self.units.gathering[place_of(*plane, WriteStream::Host)];
            place.map_or(u64::MAX, |page| self.pool[page.first].order)
        };
        let oldest = (0..self.geometry.planes).map(PlaneId).min_by_key(age);
        self.close_program(oldest.expect("a drive has planes"), WriteStream::Host);
    }

    /// Closes the programming units with pages of the write buffer that replace pages of `block`, whose erase waits for
    /// them.
    #[inline(always)]
    pub(crate) fn close_replacing(&mut self, block: BlockId) {
        if self.units.buffered > 0 {
            self.close_all_replacing(block);
        }
    }

    #[inline(never)]
    fn close_all_replacing(&mut self, block: BlockId) {
        for plane in (0..self.geometry.planes).map(PlaneId) {
            let place = self.units.gathering[place_of(plane, WriteStream::Host)];
            let mut rest = place.map(|page| page.first);
            while let Some(slot) = rest {
                let unit = &self.pool[slot];
                if unit.replaces.is_some_and(|old| self.geometry.block_of(old) == block) {
                    self.close_program(plane, WriteStream::Host);
                    break;
                }
                rest = unit.more;
            }
        }
    }

    /// The number of pages that the programming unit still lacks to which `stream` of a plane writes next.
    pub(crate) fn pages_to_fill(&self, plane: PlaneId, stream: WriteStream) -> u32 {
        let gathering = self.units.gathering.get(place_of(plane, stream)).copied().flatten();
        gathering.map_or(self.geometry.pages_per_program, |unit| self.pages_left(&unit))
    }

    /// Fills the programming unit that gathers in a stream of a plane with padding, if there is one, and queues its
    /// program.
    pub(crate) fn close_program(&mut self, plane: PlaneId, stream: WriteStream) {
        let Some(place) = self.units.gathering.get_mut(place_of(plane, stream)) else { return };
        let Some(unit) = place.take() else { return };
        let (mut left, mut skips) = (self.pages_left(&unit), 0);
        while left > 0 {
            let page = self.allocate(plane, stream).expect("a programming unit that gathers has pages left");
            (left, skips) = (left - 1, page.skips);
        }
        self.pad(unit, skips);
    }

    /// The number of pages that a programming unit still lacks.
    fn pages_left(&self, unit: &Gathering) -> u32 {
        self.geometry.pages_per_program - self.geometry.place_in_program(self.pool[unit.last].ppn) - 1
    }

    /// Fills a programming unit, all pages of which are allocated, with padding, and queues its program. After the unit
    /// `skips` pages remain erased.
    fn pad(&mut self, unit: Gathering, skips: u16) {
        let left = self.pages_left(&unit);
        self.units.buffered -= unit.buffered;
        let last = self.pool[unit.last].ppn;
        for behind in 1..=left {
            self.array.stage(Ppn(last.0 + behind), Lpn(DEAD_LPN), Stamp::default());
        }
        self.pool[unit.last].skips += left as u16 + skips;
        self.units.stats.padding += u64::from(left);
        self.enqueue(unit.first);
    }

    /// Queues the program of a programming unit of the host's stream that has been allocated as a whole (`place`). `next`
    /// returns the program of each page; after the first `None` the rest is padding.
    pub(crate) fn program_unit(
        &mut self,
        place: AllocatedPage,
        mut next: impl FnMut(&mut Self, AllocatedPage) -> Option<Program>,
    ) {
        let pages = self.geometry.pages_per_program;
        for number in 0..pages {
            let page = AllocatedPage {
                ppn: Ppn(place.ppn.0 + number),
                opened: place.opened && number == 0,
                skips: if number + 1 == pages { place.skips } else { 0 },
            };
            let Some(program) = next(self, page) else {
                let plane = self.geometry.plane_of(self.geometry.block_of(place.ppn));
                let gathering = &mut self.units.gathering[place_of(plane, WriteStream::Host)];
                if let Some(unit) = gathering.take() {
                    self.pad(unit, place.skips);
                }
                return;
            };
            self.program(program).expect("the page is allocated");
        }
    }

    /// Adds the read in `slot` to an earlier one of this event, if both are of the same flash page; returns whether it has
    /// been added. If not, the read is a flash operation of its own.
    #[inline(always)]
    pub(super) fn goes_along(&mut self, slot: Slot, part: Option<SubRead>) -> bool {
        self.units.joins_reads && !self.units.reads.is_empty() && self.join_read(slot, part)
    }

    #[inline(never)]
    fn join_read(&mut self, slot: Slot, part: Option<SubRead>) -> bool {
        let (pool, geometry, read) = (&self.pool, &self.geometry, &self.pool[slot]);
        let takes = |(first, last): (Slot, Slot)| {
            let lead = &pool[first];
            // Pages that need different levels, because the data of one is lost, are read separately.
            pool[last].ppn < read.ppn
                && (lead.cause, lead.class, lead.start, lead.needed, lead.is_beyond)
                    == (read.cause, read.class, read.start, read.needed, read.is_beyond)
                && self.shares_part(lead, part)
        };
        let newest =
            self.units.reads.of(geometry.first_unit(read.ppn)).take(geometry.units_per_page as usize);
        let Some((index, (first, last))) = { newest }.find(|&(_, ends)| takes(ends)) else { return false };
        let (level, extent) = (read.level, read.extent);
        self.pool[slot].goes_along = true;
        self.pool[last].more = Some(slot);
        let lead = &mut self.pool[first];
        lead.level = lead.level.max(level);
        lead.extent += extent;
        self.units.reads.set_last(index, slot);
        if let Some(part) = part {
            self.add_sub_read(first, part);
        }
        true
    }

    /// Notes that `slot` is a read of its own, to which reads of the same flash page may be added.
    #[inline(always)]
    pub(super) fn may_go_along(&mut self, slot: Slot) {
        if self.units.joins_reads {
            let page = self.geometry.first_unit(self.pool[slot].ppn);
            self.units.reads.push(page, slot);
        }
    }

    /// Bytes that the read of one page transfers; 0 if the page is the flash page.
    #[inline(always)]
    pub(super) fn unit_bytes(&self) -> u32 {
        if self.units.joins_reads { self.geometry.page_bytes } else { 0 }
    }
}
