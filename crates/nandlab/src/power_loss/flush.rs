//! Power fails: operations under way end or are torn, queued operations are dropped, and an emergency flush on the
//! capacitor's energy writes dirty units to flash (aging-capacitor paper, Section IV-C).
//!
//! Operations under way end on energy reserved for them. Without a capacitor, or with an empty capacitor, programs,
//! copybacks and erases in their array phase are torn, and so are suspended ones (`timing.suspend`). The flush begins
//! at once on the idle dies. A program begins only if the remaining energy covers the program to its end, so the flush
//! tears no page. If only a part of a unit is in the cache, the valid sectors are written, with a mark in the OOB;
//! recovery completes such a unit. GC stops, unless it goes on during a plain flush (`cleaning.rs`).

use super::cleaning::{Cleanings, GcMeans};
use super::{Outage, PowerLoss, Schemes};
use crate::base::geometry::{Cell, DieId, Geometry, LaneId, Lpn, SuperblockId, UnitId};
use crate::base::units::{Span, Time};
use crate::core::{Core, Destination, Maps, Offline, Program};
use crate::flash::{AgeStamp, Array, DEAD_LPN, ShapeId, Stamp};
use crate::ftl::placement::{Place, Placements};
use crate::ftl::{AllocatedUnit, FlushMethod, FlushPrograms, StreamId};
use crate::probe::Probe;
use crate::sched::{Cause, Class, Device, Ended, FlashOp, NEVER, Owner, Transaction};
use std::collections::BTreeMap;

/// The data of one unit that the flush writes: a unit that was dirty at the time of power loss, or records of
/// deallocations, as many as a unit has room for.
#[derive(Debug)]
pub(crate) struct Dirty {
    /// The LPN of the dirty unit; [`DEAD_LPN`] for records of deallocations.
    pub(crate) lpn: Lpn,
    /// The placement handle of the data, and its reclaim group.
    pub(crate) place: Place,
    pub(crate) sequence: u64,
    /// Whether the unit has an acknowledged write that is not in flash.
    pub(crate) has_unflushed: bool,
    /// Whether the write cache has only some of the unit's sectors and flash has the others.
    pub(crate) is_partial: bool,
    pub(crate) is_lost: bool,
    pub(crate) is_saved: bool,
}

impl Dirty {
    /// A unit of records of deallocations.
    pub(crate) fn trims() -> Self {
        Self {
            lpn: Lpn(DEAD_LPN),
            place: Place::default(),
            sequence: 0,
            has_unflushed: false,
            is_partial: false,
            is_lost: false,
            is_saved: false,
        }
    }

    /// Whether the unit has records of deallocations.
    pub(crate) fn is_trims(&self) -> bool {
        self.lpn.0 == DEAD_LPN
    }
}

/// The units to be flushed in the order in which programs write them. A program writes the data of one place, so where it
/// writes several units, those of a place that it writes together follow one another. Programs that are not full are the
/// last.
pub(crate) fn in_order_of_programs(
    dirty: Vec<Dirty>,
    placements: &Placements,
    units_per_program: u32,
) -> Vec<Dirty> {
    if placements.is_single() || units_per_program == 1 {
        return dirty;
    }
    let mut by_place: Vec<Vec<Dirty>> = (0..placements.count()).map(|_| Vec::new()).collect();
    let mut ordered = Vec::with_capacity(dirty.len());
    for item in dirty {
        let of_place = &mut by_place[placements.number(item.place)];
        of_place.push(item);
        if of_place.len() == units_per_program as usize {
            ordered.append(of_place);
        }
    }
    by_place.iter_mut().for_each(|of_place| ordered.append(of_place));
    ordered
}

/// Returns the transactions that the dies have begun, die by die, suspended ones included. The transactions of the
/// units of one flash operation ([`Transaction::more`]) follow one another. A multi-plane operation has several such
/// groups ([`Transaction::next`]).
pub(crate) fn under_way<P: Probe>(core: &Core<P>) -> Vec<Transaction> {
    let mut all = Vec::new();
    for die in (0..core.geometry().dies).map(DieId) {
        for first in [core.device().suspended(die), core.device().under_way(die)] {
            let mut rest = first;
            while let Some(slot) = rest {
                all.push(*core.operation(slot));
                let mut more = core.operation(slot).more;
                while let Some(slot) = more {
                    all.push(*core.operation(slot));
                    more = core.operation(slot).more;
                }
                rest = core.operation(slot).next;
            }
        }
    }
    all
}

/// Tears a program that was under way, with its padding: the units of the programming unit of `first`. Also tears the
/// pages of the wordline on which they depend ([`Shape::depends_on`](crate::flash::Shape::depends_on)), and records in
/// `destroyed` what they had. Recovery finds out whether their units had the newest data of their LPNs.
pub(super) fn tear_program<P: Probe>(
    core: &mut Offline<'_, P>,
    first: UnitId,
    destroyed: &mut Vec<(Lpn, u64)>,
) {
    let (superblock, index) = core.geometry().split(first);
    for number in 0..core.shape(superblock).units_per_program {
        core.tear(UnitId(first.0 + number));
    }
    let shape = core.shape(superblock);
    let (pages, row) = (shape.depends_on(index), shape.units_per_full_row);
    for before in 1..=pages {
        let partner = UnitId(first.0 - before * row);
        for partner in core.geometry().units_of_page(partner) {
            record_torn(core, partner, destroyed);
            core.tear(partner);
        }
    }
}

/// Records the data of a programmed unit that is going to be torn, if it is data of the host and not torn already.
fn record_torn<P: Probe>(core: &Core<P>, unit: UnitId, destroyed: &mut Vec<(Lpn, u64)>) {
    let (lpn, sequence) = (core.flash().lpn(unit), core.sequence_of(unit));
    // The others are no loss: a unit with `DEAD_LPN` has no data, a torn translation page is rebuilt from the OOB of the
    // data units, and a torn combination page costs only a repeated refresh.
    let is_of_host = lpn.0 < core.geometry().logical_units;
    if !core.flash().is_torn(unit) && is_of_host {
        destroyed.push((lpn, sequence));
    }
}

/// The method and the energy of an emergency flush.
pub(crate) struct Means<'a> {
    pub(crate) method: FlushMethod,
    /// Highest number of programs of dirty units under way at a time; a cleaning of GC counts as one. Programs of lines
    /// of the VSM are not held back.
    pub(crate) at_a_time: u32,
    /// Returns the energy, in joules, of a flush from its duration and the sum of its program times (Eq. 3 to 5 of the
    /// aging-capacitor paper).
    pub(crate) spent_j: &'a dyn Fn(Span, Span) -> f64,
    /// GC during the flush; `None`: GC has stopped.
    pub(crate) gc: Option<GcMeans>,
}

/// A program of the flush to `stream`. It does not change the map; recovery rebuilds the map.
fn flush_program(
    (allocated, stream): (AllocatedUnit, StreamId),
    lpn: Lpn,
    stamp: Stamp,
    owner: Owner,
) -> Program {
    let (to, maps) = (Destination::Allocated(allocated, stream), Maps::Nothing);
    Program { to, lpn, stamp, maps, owner, cause: Cause::Flush, class: Class::HostWrite }
}

/// The time and the energy that an operation of the flush needs.
pub(super) struct Needed {
    /// Time on the die, in the array and for decoding, after the transfers.
    pub(super) ns: Span,
    /// The part of `ns` in which the die programs.
    pub(super) program_ns: Span,
    /// Energy of a read or an erase, in joules.
    pub(super) joules: f64,
}

impl Needed {
    /// A try of a read. Its transfer out waits for the channel again: `wait_ns` in the worst case.
    pub(super) fn read(wait_ns: Span, try_ns: Span, joules: f64) -> Self {
        Self { ns: wait_ns + try_ns, program_ns: Span::ZERO, joules }
    }
}

/// An emergency flush under way.
pub(super) struct Flush {
    units: FlushPrograms,
    /// Index of the next dirty unit.
    pub(super) next: usize,
    /// The lines of the VSM, which are written after the dirty units: the LPNs of the combination pages that they
    /// become. Each is the data of one unit.
    lines: Vec<Lpn>,
    /// Number of lines whose program has begun.
    lines_begun: usize,
    /// Number of programs of dirty units and lines that are under way.
    pub(super) under_way: u32,
    /// Time at which all programs begun so far have ended in the worst case.
    may_end: Time,
    /// Whether the remaining energy is too low for another operation.
    pub(super) is_over: bool,
    pub(super) cleanings: Cleanings,
}

impl<P: Probe, S: Schemes<P>> Outage<'_, P, S> {
    /// The units to which the flush writes. Where superblocks are on one die, takes back the units allocated to queued
    /// programs that have not begun: these units are still erased. In superblocks on several dies, each die goes on
    /// behind the units that it has programmed (`plain`), or the flush uses other superblocks (`csw`).
    fn units_for(&mut self, method: FlushMethod, dirty: &[Dirty]) -> FlushPrograms {
        // By superblock and die, the number of units there that will have been programmed or skipped when the program
        // under way has ended.
        let mut ends = BTreeMap::new();
        for transaction in under_way(&self.core) {
            if transaction.kind == FlashOp::Program {
                let superblock = self.core.geometry().superblock_of(transaction.unit);
                let (_, on_die) = self.core.geometry().stripes.split(transaction.index);
                ends.insert((superblock, transaction.die), on_die + 1 + u32::from(transaction.skips));
            }
        }
        let dies_per_lane = self.core.geometry().dies_per_lane;
        let programmed = |geometry: &Geometry, array: &Array, superblock: SuperblockId, die: DieId| {
            let now = || array.programmed_on(superblock, geometry.die_in_lane(die));
            ends.get(&(superblock, die)).copied().unwrap_or_else(now)
        };
        if dies_per_lane == 1 {
            self.core.take_back_queued(programmed);
        }
        let placements = *self.core.placements();
        let mut by_place = vec![0; placements.count()];
        for item in dirty {
            by_place[placements.number(item.place)] += 1;
        }
        let mut units = FlushPrograms::new(method, self.core.ftl(), &by_place, None);
        let is_native = self.core.ftl().flush_shape() == ShapeId::FIRST;
        if dies_per_lane > 1 && method == FlushMethod::Plain && is_native {
            let next_ppns_plus_1 = self.core.lane(LaneId(0)).open_superblocks();
            let (geometry, array) = (self.core.geometry(), self.core.flash());
            let open = self.core.streams().natives().iter().map(|stream| {
                let next = next_ppns_plus_1[stream.index()].checked_sub(1).map(|ppn| UnitId(ppn as u32));
                next.map(|next| geometry.superblock_of(next))
            });
            units.continue_by_die(open, |superblock, die| programmed(geometry, array, superblock, die));
        }
        units
    }

    /// Without energy: tears the programs, copybacks and erases that are in their array phase. Returns the superblocks
    /// whose erase was torn.
    pub(crate) fn tear(&mut self, loss: &mut PowerLoss) -> Vec<SuperblockId> {
        let mut torn_erases = Vec::new();
        for transaction in under_way(&self.core) {
            if !self.core.device().is_torn_now(transaction.die) {
                continue;
            }
            match transaction.kind {
                FlashOp::Read => {}
                FlashOp::Erase => {
                    // A superblock on several dies has an erase on each.
                    loss.torn_erases += 1;
                    let superblock = self.core.geometry().superblock_of(transaction.unit);
                    if !torn_erases.contains(&superblock) {
                        torn_erases.push(superblock);
                    }
                }
                FlashOp::Program | FlashOp::Copyback => {
                    loss.torn_programs += u32::from(!transaction.goes_along);
                    self.end_program(&transaction);
                    if transaction.is_in_place() {
                        record_torn(&self.core, transaction.unit, &mut loss.destroyed);
                    }
                    // The first unit of a programming unit always has a transaction: padding is at the end.
                    if self.core.flash().shapes()[transaction.shape].place_in_program(transaction.unit) == 0 {
                        tear_program(&mut self.core, transaction.unit, &mut loss.destroyed);
                    }
                }
            }
        }
        torn_erases
    }

    /// A program or copyback has ended, or is torn: the unit is no longer erased. A unit reprogrammed in place gets a
    /// new age stamp.
    fn end_program(&mut self, program: &Transaction) {
        let superblock = self.core.geometry().superblock_of(program.unit);
        if program.is_in_place() {
            self.core.end_reprogram(program);
            return;
        }
        if self.core.superblock(superblock).programmed == 0 {
            self.schemes.on_first_program(&mut self.core, superblock);
        }
        if program.kind == FlashOp::Copyback
            && let Some(source) = program.replaces
        {
            self.schemes.on_copied_back(superblock, self.core.geometry().superblock_of(source));
            self.core.take_over_errors(source, program.unit);
        }
        self.core.settle_program(program);
    }

    /// Lets operations under way end. Programs dirty units, and then lines of the VSM, as far as the energy allows.
    /// Calls `on_time` before simulated time moves on.
    pub(crate) fn flush(
        &mut self,
        means: &Means,
        dirty: &mut [Dirty],
        loss: &mut PowerLoss,
        mut on_time: impl FnMut(&Core<P>, Time),
    ) {
        let units = self.units_for(means.method, dirty);
        if means.gc.is_some() {
            self.unmap_queued();
        }
        let under_way = under_way(&self.core);
        let lines = self.schemes.lines(&under_way);
        loss.vsm_lines = lines.len() as u32;
        let cleanings = Cleanings::new(means.gc, &mut self.core);
        let mut flush = Flush {
            units,
            next: 0,
            lines,
            lines_begun: 0,
            under_way: 0,
            may_end: loss.at,
            is_over: false,
            cleanings,
        };
        loop {
            self.begin_flush_programs(means, &mut flush, dirty, loss);
            if flush.next == dirty.len() {
                self.begin_line_programs(means, &mut flush, loss);
            }
            let (time, clock) = self.core.next_clock();
            if time == NEVER {
                break;
            }
            on_time(&self.core, time);
            self.core.advance_to(time);
            // While power is off, the idle clock has the ends of decoding (`set_decoder`).
            if clock == self.core.idle_clock() {
                self.on_decoded(means, &mut flush, dirty.len(), loss);
                continue;
            }
            let ended = self.core.on_die(DieId(clock));
            self.core.start_next(DieId(clock));
            match ended {
                Ended::Nothing | Ended::Sense(_) => {}
                Ended::Page(slot) if flush.cleanings.has_begun(self.core.operation(slot)) => {
                    self.decode(&mut flush, slot, loss);
                }
                Ended::Page(_) => loss.finish_ns = self.core.now() - loss.at,
                Ended::Batch(first) => {
                    let mut rest = Some(first);
                    while let Some(slot) = rest {
                        rest = self.core.operation(slot).next;
                        let mut unit = Some(slot);
                        while let Some(slot) = unit {
                            let done = *self.core.operation(slot);
                            unit = done.more;
                            self.end_in_flush(means, &mut flush, dirty, loss, &done);
                        }
                    }
                }
            }
        }
    }

    /// A program, copyback or erase has ended while power fails. `done` is the transaction of one unit of the
    /// operation, or of the erase of a superblock on one die.
    fn end_in_flush(
        &mut self,
        means: &Means,
        flush: &mut Flush,
        dirty: &mut [Dirty],
        loss: &mut PowerLoss,
        done: &Transaction,
    ) {
        // The first transaction stands for the operation.
        let is_first = !done.goes_along;
        if is_first {
            self.core.count_ended(done.kind, done.cause, done.shape);
        }
        if done.kind == FlashOp::Erase {
            if self.core.end_erase_on_die(done.unit) {
                let superblock = self.core.geometry().superblock_of(done.unit);
                self.schemes.on_erased(&mut self.core, superblock);
                self.core.erase_now(superblock);
            }
        } else {
            self.end_program(done);
        }
        if done.kind == FlashOp::Copyback && self.core.geometry().first_of_page(done.unit) == done.unit {
            // The map is not changed here: recovery chooses between source and copy.
            let superblock = self.core.geometry().superblock_of(done.unit);
            self.schemes.count_copyback(self.core.superblock(superblock).copybacks());
        }
        match done.owner {
            Owner::FlushUnit(at) => {
                dirty[at as usize].is_saved = true;
                let item = &dirty[at as usize];
                // The counters named for pages count units, `fast_pages` too.
                loss.flushed_pages += u32::from(!item.is_trims());
                loss.trim_pages_saved += u32::from(item.is_trims());
                // Recovery completes a partial unit from the unit that it replaces.
                if means.gc.is_some() && !item.is_partial && !item.is_trims() {
                    self.remap(done.lpn, done.unit);
                }
            }
            Owner::Job(_) if flush.cleanings.has_begun(done) => {
                self.on_cleaned(means, flush, dirty.len(), loss, done);
                loss.flush_ns = self.core.now() - loss.at;
                return;
            }
            Owner::CombinationPage if done.cause == Cause::Flush => loss.vsm_lines_saved += 1,
            _ => {
                loss.finish_ns = self.core.now() - loss.at;
                return;
            }
        }
        flush.under_way -= u32::from(is_first);
        loss.flush_ns = self.core.now() - loss.at;
    }

    /// Begins programs of dirty units on idle dies.
    fn begin_flush_programs(
        &mut self,
        means: &Means,
        flush: &mut Flush,
        dirty: &[Dirty],
        loss: &mut PowerLoss,
    ) {
        self.begin_cleanings(means, flush, dirty, loss);
        while !flush.is_over
            && flush.next + flush.cleanings.under_way() < dirty.len()
            && flush.under_way + (flush.cleanings.under_way() as u32) < means.at_a_time
        {
            let cleanings = &flush.cleanings;
            let is_busy = |device: &Device, die| !device.is_free(die) || cleanings.is_at(die);
            let place = dirty[flush.next].place;
            let stream = self.core.streams().of_handle(place.handle);
            let Some(program) = self.core.next_of_flush(&mut flush.units, place, is_busy) else {
                return;
            };
            if !self.take_energy_for(means, flush, loss, program.unit) {
                return;
            }
            let (superblock, index) = self.core.geometry().split(program.unit);
            flush.cleanings.use_gain(self.core.geometry().lane_of(superblock));
            self.core.displace();
            let is_fast = self.is_fast(superblock, index);
            self.core.fill_program(program, stream, |core, allocated| {
                let item = dirty.get(flush.next).filter(|item| item.place == place)?;
                loss.fast_pages += u32::from(is_fast && !item.is_trims());
                let corrected = if item.is_lost { AgeStamp::LOST } else { core.age_stamp_now() };
                let stamp = Stamp { sequence: item.sequence, corrected };
                if item.is_partial {
                    core.mark_partial(allocated.unit);
                }
                let owner = Owner::FlushUnit(flush.next as u32);
                flush.next += 1;
                Some(flush_program((allocated, stream), item.lpn, stamp, owner))
            });
            // The flush writes only to idle dies, so the program begins at once.
            self.core.start_dies();
            flush.under_way += 1;
        }
    }

    /// Whether the remaining energy covers one more program to its end; if so, reserves the energy. If not, the flush
    /// is over. `first`: the first unit that the program writes.
    pub(super) fn take_energy_for(
        &self,
        means: &Means,
        flush: &mut Flush,
        loss: &mut PowerLoss,
        first: UnitId,
    ) -> bool {
        let (superblock, index) = self.core.geometry().split(first);
        let program_ns = self.core.shape(superblock).program_ns(index);
        self.take_energy(means, flush, loss, Needed { ns: program_ns, program_ns, joules: 0.0 })
    }

    /// Whether the remaining energy covers an operation to its end; if so, reserves the energy. If not, the flush is
    /// over.
    pub(super) fn take_energy(
        &self,
        means: &Means,
        flush: &mut Flush,
        loss: &mut PowerLoss,
        needed: Needed,
    ) -> bool {
        let may_end = flush.may_end.max(self.core.now() + self.wait_ns() + needed.ns);
        let (programs_ns, gc_j) = (loss.program_ns + needed.program_ns, loss.gc_j + needed.joules);
        if (means.spent_j)(may_end - loss.at, programs_ns) + gc_j > loss.energy_j {
            flush.is_over = true;
            return false;
        }
        flush.may_end = may_end;
        (loss.program_ns, loss.gc_j) = (programs_ns, gc_j);
        true
    }

    /// The longest time that a die waits for its channel and the off-chip path and then transfers.
    pub(super) fn wait_ns(&self) -> Span {
        self.core.device().timing().longest_wait_ns()
    }

    /// Begins programs of lines of the VSM on idle dies. A unit whose line is not saved keeps the errors that it had
    /// before its refresh.
    fn begin_line_programs(&mut self, means: &Means, flush: &mut Flush, loss: &mut PowerLoss) {
        while !flush.is_over && flush.lines_begun < flush.lines.len() {
            let Some(program) = self.schemes.place_lines(&mut self.core) else { return };
            if !self.take_energy_for(means, flush, loss, program.unit) {
                return;
            }
            let schemes = &mut *self.schemes;
            let stream = StreamId::HOST;
            self.core.fill_program(program, stream, |core, allocated| {
                let &lpn = flush.lines.get(flush.lines_begun)?;
                flush.lines_begun += 1;
                schemes.stage(lpn, allocated.unit);
                Some(flush_program((allocated, stream), lpn, core.next_stamp(), Owner::CombinationPage))
            });
            self.core.start_dies();
            flush.under_way += 1;
        }
    }

    /// Whether the page of unit `unit` of `superblock` counts as fast: any SLC page, an LSB page of planar MLC or TLC,
    /// any page of one-shot programs of these cells, or on 3D flash a page in the first half of its block, which has
    /// the lower and faster layers.
    fn is_fast(&self, superblock: SuperblockId, unit: u32) -> bool {
        let shape = self.core.shape(superblock);
        match shape.cell {
            Cell::Slc => true,
            Cell::Mlc | Cell::Tlc => shape.depends_on(unit) == 0,
            Cell::Mlc3d | Cell::Tlc3d => 2 * unit < shape.units,
        }
    }
}
