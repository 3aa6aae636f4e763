//! GC that goes on during a plain emergency flush (`power.gc_in_flush`).
//!
//! Before the flush writes a unit to a lane where foreground GC is due, or which has no unit left, GC cleans a
//! superblock of the lane: it reads the valid units of a victim and programs them to the lane's stream of GC, one unit
//! after another, and erases the victim when all copies have ended. Meanwhile the die writes no unit of the flush. The
//! lane then takes as many units of the flush as the cleaning has gained, before the next cleaning begins.
//!
//! The victim is the full superblock with the fewest valid units. A superblock is left out if an operation that power
//! loss has dropped would have read it or replaced one of its units (these superblocks keep their pins: such a unit may
//! be the newest in flash), if it has units of the demand map or of partial refresh, if its erase would retire it, or
//! if it has fewer invalid units than the capability assumes. The victims of interrupted jobs are left to the time
//! after recovery.
//!
//! Every operation begins only if the remaining energy covers it to its end. A copy has the sequence number of its
//! source, so recovery takes the copy or the source.

use super::flush::{Flush, Needed, under_way};
use super::{Dirty, Means, Outage, PowerLoss, Schemes};
use crate::base::geometry::{DieId, LaneId, Lpn, SuperblockId, UnitId};
use crate::base::units::{Span, Time};
use crate::core::{Destination, Maps, Offline, Program, Read};
use crate::flash::SuperblockState;
use crate::ftl::StreamId;
use crate::ftl::placement::Place;
use crate::probe::Probe;
use crate::sched::{Cause, Class, FlashOp, NEVER, Owner, Slot, Start, Transaction};
use std::collections::{BTreeMap, BTreeSet};

/// GC during an emergency flush.
#[derive(Clone, Copy, Debug)]
pub(crate) struct GcMeans {
    /// Energy of a try of a read, in joules.
    pub(crate) read_j: f64,
    /// Energy of an erase, in joules.
    pub(crate) erase_j: f64,
    /// The fewest invalid units of a victim, at least 1.
    pub(crate) gain_min: u32,
}

/// A superblock that GC cleans.
#[derive(Clone, Copy, Debug)]
struct Cleaning {
    lane: LaneId,
    victim: SuperblockId,
    /// The unit of the victim at which the search for the next valid unit begins.
    next_unit: u32,
    /// The unit of the victim that is being copied.
    source: UnitId,
}

/// The cleanings of a flush.
#[derive(Debug, Default)]
pub(super) struct Cleanings {
    gc: Option<GcMeans>,
    by_die: BTreeMap<DieId, Cleaning>,
    /// By lane, the units that the flush may write before the next cleaning.
    gained: Box<[u32]>,
    /// Units in decoding, by the time at which decoding ends and the die.
    decoding: BTreeMap<(Time, DieId), Slot>,
    /// The submission number of the first operation of the flush.
    from: u64,
}

impl Cleanings {
    pub(super) fn new<P: Probe>(gc: Option<GcMeans>, core: &mut Offline<'_, P>) -> Self {
        let Some(gc) = gc else { return Self::default() };
        core.drop_promises();
        Self {
            gc: Some(gc),
            gained: vec![0; core.geometry().lanes as usize].into(),
            from: core.next_order(),
            ..Self::default()
        }
    }

    /// The number of superblocks that are being cleaned, each on its own die.
    pub(super) fn under_way(&self) -> usize {
        self.by_die.len()
    }

    /// Whether a superblock of the die is being cleaned.
    pub(super) fn is_at(&self, die: DieId) -> bool {
        self.by_die.contains_key(&die)
    }

    /// Whether a cleaning has begun this operation.
    pub(super) fn has_begun(&self, transaction: &Transaction) -> bool {
        let is_of_job = matches!(transaction.owner, Owner::Job(_));
        self.gc.is_some() && is_of_job && transaction.order >= self.from
    }

    /// The flush has written a unit to a lane.
    pub(super) fn use_gain(&mut self, lane: LaneId) {
        if let Some(units) = self.gained.get_mut(lane.index()) {
            *units = units.saturating_sub(1);
        }
    }
}

impl<P: Probe, S: Schemes<P>> Outage<'_, P, S> {
    /// Removes from the map the units whose program was queued and has been dropped: the flush may write other data to
    /// these units.
    pub(super) fn unmap_queued(&mut self) {
        let mut begun = BTreeSet::new();
        for transaction in under_way(&self.core) {
            begun.insert(transaction.unit);
        }
        let core = &mut self.core;
        for superblock in (0..core.geometry().superblocks).map(SuperblockId) {
            if core.superblock(superblock).state != SuperblockState::Open {
                continue;
            }
            for index in core.superblock(superblock).programmed..core.shape(superblock).units {
                let unit = core.geometry().unit(superblock, index);
                let lpn = core.flash().lpn(unit);
                let is_of_host = lpn.0 < core.geometry().logical_units;
                if is_of_host && core.is_newest(lpn, unit) && !begun.contains(&unit) {
                    core.unmap(lpn);
                }
            }
        }
    }

    /// Maps an LPN to the unit that the flush or its GC has programmed.
    pub(super) fn remap(&mut self, lpn: Lpn, unit: UnitId) {
        self.core.remap(lpn, unit);
        self.remapped.push(lpn);
    }

    /// Begins cleanings on idle dies that need space for the next of the dirty units: at most one for each unit that is
    /// left.
    pub(super) fn begin_cleanings(
        &mut self,
        means: &Means,
        flush: &mut Flush,
        dirty: &[Dirty],
        loss: &mut PowerLoss,
    ) {
        let Some(gc) = flush.cleanings.gc else { return };
        let units = dirty.len();
        for die in (0..self.core.geometry().dies).map(DieId) {
            let cleanings = flush.cleanings.under_way();
            let has_slot = flush.under_way + (cleanings as u32) < means.at_a_time;
            if flush.is_over || flush.next + cleanings >= units || !has_slot {
                return;
            }
            let Place { group, handle } = dirty[flush.next].place;
            let is_in_group = self.core.ftl().is_in_group(die, group);
            if !self.core.device().is_free(die) || flush.cleanings.is_at(die) || !is_in_group {
                continue;
            }
            let stream = self.core.streams().of_handle(handle);
            let Some(lane) = self.core.ftl().flush_lane(die, stream) else { continue };
            let is_full = self.core.ftl().flush_room(lane, stream) == 0;
            if flush.cleanings.gained[lane.index()] > 0 || !is_full && !self.core.is_short(lane) {
                continue;
            }
            let Some(victim) = self.victim(lane, gc.gain_min) else { continue };
            self.core.begin_emptying(victim);
            flush.cleanings.gained[lane.index()] =
                self.core.shape(victim).units - self.core.valid_units(victim);
            let source = self.core.geometry().unit(victim, 0);
            flush.cleanings.by_die.insert(die, Cleaning { lane, victim, next_unit: 0, source });
            self.continue_cleaning(means, flush, units, loss, die);
        }
    }

    /// The full superblock of a lane with the fewest valid units, among those that GC may clean during the flush.
    fn victim(&self, lane: LaneId, gain_min: u32) -> Option<SuperblockId> {
        let core = &self.core;
        let room = core.stream_room(lane, StreamId::GC);
        let may_be = |&superblock: &SuperblockId| {
            let state = core.superblock(superblock);
            let valid = state.valid;
            state.state == SuperblockState::Full
                && (state.pins, state.linked) == (0, 0)
                && valid + gain_min <= core.shape(superblock).units
                && valid <= room
                && !core.retires(superblock)
                && core.emptying_stream(superblock, false) == StreamId::GC
        };
        let superblocks = core.geometry().superblock_ids_of(lane).filter(may_be);
        superblocks.min_by_key(|&superblock| (core.superblock(superblock).valid, superblock.0))
    }

    /// Begins the next operation of the cleaning on a die. The cleaning ends if no unit of the flush is left or the
    /// energy is used up.
    fn continue_cleaning(
        &mut self,
        means: &Means,
        flush: &mut Flush,
        units: usize,
        loss: &mut PowerLoss,
        die: DieId,
    ) {
        let (Some(gc), Some(&cleaning)) = (flush.cleanings.gc, flush.cleanings.by_die.get(&die)) else {
            return;
        };
        let Cleaning { lane, victim, next_unit, .. } = cleaning;
        let next = self.core.next_valid(victim, next_unit);
        let timing = self.core.device().timing();
        let needed = match next {
            Some(_) => Needed::read(self.wait_ns(), timing.longest_try_ns(), gc.read_j),
            None => {
                Needed { ns: self.core.shape(victim).erase_ns, program_ns: Span::ZERO, joules: gc.erase_j }
            }
        };
        if flush.is_over || flush.next >= units || !self.take_energy(means, flush, loss, needed) {
            flush.cleanings.by_die.remove(&die);
            return;
        }
        let (owner, cause, class) = (Owner::Job(lane), Cause::Gc, Class::Background);
        match next {
            Some(index) => {
                let unit = self.core.geometry().unit(victim, index);
                let cleaning = Cleaning { next_unit: index + 1, source: unit, ..cleaning };
                flush.cleanings.by_die.insert(die, cleaning);
                let lpn = self.core.flash().lpn(unit);
                let start = Start::Policy;
                self.core.read(Read { unit, lpn, owner, cause, class, start, unit_level: 0 });
            }
            None => self.core.erase(victim, owner, cause, class),
        }
        self.core.start_dies();
    }

    /// A try of a read of a cleaning has left its die: decoding begins.
    pub(super) fn decode(&mut self, flush: &mut Flush, slot: Slot, loss: &mut PowerLoss) {
        let read = *self.core.operation(slot);
        let shape = &self.core.flash().shapes()[read.shape];
        let decode_ns = shape.after_sensing(read.level, read.tries > 0).decode_ns;
        flush.cleanings.decoding.insert((self.core.now() + decode_ns, read.die), slot);
        loss.flush_ns = self.core.now() - loss.at;
        self.set_decoder(flush);
    }

    fn set_decoder(&mut self, flush: &Flush) {
        let first = flush.cleanings.decoding.first_key_value().map_or(NEVER, |(&(time, _), _)| time);
        let clock = self.core.idle_clock();
        self.core.set_clock(clock, first);
    }

    /// The decoding of a try has ended: reads the unit once more, or programs the unit in another superblock.
    pub(super) fn on_decoded(
        &mut self,
        means: &Means,
        flush: &mut Flush,
        units: usize,
        loss: &mut PowerLoss,
    ) {
        let (_, slot) = flush.cleanings.decoding.pop_first().expect("a unit is being decoded");
        self.set_decoder(flush);
        loss.flush_ns = self.core.now() - loss.at;
        let read = *self.core.operation(slot);
        let is_failed = read.is_tried_again(self.core.ecc().levels());
        if is_failed && !flush.is_over && flush.next < units {
            let gc = flush.cleanings.gc.expect("GC goes on");
            let timing = self.core.device().timing();
            let needed = Needed::read(self.wait_ns(), timing.longest_try_ns(), gc.read_j);
            if self.take_energy(means, flush, loss, needed) {
                self.core.try_again(slot);
                self.core.start_dies();
                return;
            }
        }
        self.core.end_read(slot);
        if flush.is_over || flush.next >= units {
            flush.cleanings.by_die.remove(&read.die);
        } else if self.core.is_newest(read.lpn, read.unit) {
            self.copy(means, flush, loss, &read);
        } else {
            // The flush has written the unit meanwhile.
            self.continue_cleaning(means, flush, units, loss, read.die);
        }
    }

    /// Programs a unit that has been read to the stream of GC.
    fn copy(&mut self, means: &Means, flush: &mut Flush, loss: &mut PowerLoss, read: &Transaction) {
        let lane = self.core.geometry().lane_of(self.core.geometry().superblock_of(read.unit));
        let place = self.core.allocate(lane, StreamId::GC).expect("the stream has room for the victim");
        if !self.take_energy_for(means, flush, loss, place.unit) {
            flush.cleanings.by_die.remove(&read.die);
            return;
        }
        if self.core.flash().is_partial(read.unit) {
            self.core.mark_partial(place.unit);
        }
        let stamp = self.core.stamp_of_copy(read);
        let (to, maps, owner) =
            (Destination::Allocated(place, StreamId::GC), Maps::Nothing, Owner::Job(lane));
        let (lpn, cause, class) = (read.lpn, Cause::Gc, Class::Background);
        let queued = self.core.program(Program { to, lpn, stamp, maps, owner, cause, class });
        queued.expect("the program has its allocated unit");
        self.core.start_dies();
    }

    /// A program or the erase of a cleaning has ended.
    pub(super) fn on_cleaned(
        &mut self,
        means: &Means,
        flush: &mut Flush,
        units: usize,
        loss: &mut PowerLoss,
        done: &Transaction,
    ) {
        if done.kind == FlashOp::Erase {
            loss.gc_erases += 1;
            flush.cleanings.by_die.remove(&done.die);
            return;
        }
        loss.gc_pages += 1;
        if let Some(cleaning) = flush.cleanings.by_die.get(&done.die)
            && self.core.is_newest(done.lpn, cleaning.source)
        {
            self.remap(done.lpn, done.unit);
        }
        self.continue_cleaning(means, flush, units, loss, done.die);
    }
}
