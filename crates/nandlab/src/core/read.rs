//! The verb that reads flash, and the choice of read levels.

use super::{Core, KnownErrors, Map};
use crate::base::geometry::{DieId, Lpn, SuperblockId, UnitId};
use crate::base::units::{Span, Time};
use crate::flash::{AgeStamp, Condition, Copied, Ecc, Hints, RBER_MAX, Reliability, ShapeId, Stamp};
use crate::probe::Probe;
use crate::sched::{Cause, Class, FlashOp, Owner, Slot, Start, Transaction};
use std::iter::successors;

/// A programmed unit to be read.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Read {
    pub(crate) unit: UnitId,
    pub(crate) lpn: Lpn,
    pub(crate) owner: Owner,
    pub(crate) cause: Cause,
    pub(crate) class: Class,
    pub(crate) start: Start,
    /// The read level that the map entry of the unit has; 0: none ([`Map::level`](super::Map::level)).
    pub(crate) unit_level: u8,
}

/// The sub-read of a combination page: the unit, its LPN, the bytes to transfer, and the level at which the sub-read
/// starts.
#[derive(Clone, Copy, Debug)]
pub(super) struct SubRead {
    unit: UnitId,
    lpn: Lpn,
    bytes: u32,
    start: Start,
}

/// The read levels of a read, as in [`Transaction`].
#[derive(Clone, Copy, Debug)]
struct Levels {
    start: Start,
    level: u8,
    needed: u8,
    is_beyond: bool,
}

impl Levels {
    /// A read with these levels.
    #[inline(always)]
    fn of(self, read: Transaction) -> Transaction {
        let Self { start, level, needed, is_beyond } = self;
        Transaction { start, level, needed, is_beyond, ..read }
    }
}

impl<P: Probe> Core<P> {
    /// Prefetches the state of a unit, without its LPN, into the CPU's cache.
    #[inline(always)]
    pub(crate) fn prefetch_state(&self, unit: UnitId) {
        self.array.prefetch_state(unit);
        self.parts.prefetch(unit);
        self.read_counts.prefetch(unit);
    }

    /// Prefetches into the CPU's cache what is needed to read, or else to invalidate, the unit of `lpn`.
    #[inline(never)]
    pub(crate) fn prefetch_unit(&self, lpn: Lpn, is_read: bool) {
        if let Some(unit) = self.ftl.map.get(lpn) {
            let (superblock, index) = self.geometry.split(unit);
            self.array.superblocks.prefetch(superblock.index());
            if !is_read {
                self.ftl.prefetch_valid(superblock, index);
                self.parts.prefetch(unit);
            } else if self.array.keeps_ages() {
                self.prefetch_state(unit);
                self.physics.known.prefetch(unit);
            }
        }
    }

    /// Queues a read, which pins the superblock of its unit. The read of a linked unit has two sub-reads, the second
    /// one of the combination page.
    // Inlined, so that `read` is not passed through memory.
    #[inline(always)]
    pub(crate) fn read(&mut self, read: Read) -> Slot {
        let Read { unit, lpn, owner, cause, class, start, unit_level } = read;
        let (superblock, _) = self.geometry.split(unit);
        self.array.superblock_mut(superblock).pins += 1;
        if cause == Cause::Host {
            self.read_counts.count(unit);
        }
        let mut levels = self.choose_levels(unit, lpn, start, unit_level);
        let mut part = None;
        if self.array.superblock(superblock).linked > 0 {
            (levels, part) = self.part_of(unit, levels);
        }
        let transaction = self.transaction(FlashOp::Read, unit, lpn, owner, cause, class);
        let (extent, has_part) = (self.unit_bytes(), part.is_some());
        let slot = self.pool.insert(levels.of(Transaction { extent, has_part, ..transaction }));
        if self.goes_along(slot, part) {
            if !self.physics.ecc.has_levels() {
                // The pin of the read with which this one goes along is removed when the unit has left its die.
                self.array.superblock_mut(superblock).pins -= 1;
            }
            return slot;
        }
        self.may_go_along(slot);
        if let Some(part) = part {
            self.add_sub_read(slot, part);
        }
        self.enqueue(slot);
        slot
    }

    /// The read level that the map entry of `lpn` has; 0 if the drive has no read levels.
    #[inline(always)]
    pub(crate) fn unit_level(&self, map: &impl Map<P>, lpn: Lpn) -> u8 {
        if self.physics.ecc.has_levels() { map.level(self, lpn) } else { 0 }
    }

    /// Whether a read level may be kept for `lpn`. No level is kept for combination pages, and none for translation
    /// pages if only the entries of the mapping cache carry levels.
    #[inline]
    pub(crate) fn keeps_level(&self, lpn: Lpn) -> bool {
        !self.ftl.is_combination(lpn) && !self.is_forgotten(lpn)
    }

    /// Whether `lpn` is a translation page whose reads start at level 1 because no level is kept for translation pages.
    #[inline(always)]
    fn is_forgotten(&self, lpn: Lpn) -> bool {
        self.levels.forgets_translation_pages && self.ftl.is_translation(lpn)
    }

    /// Determines the level that a read needs and the level at which it starts.
    #[inline(always)]
    fn choose_levels(&mut self, unit: UnitId, lpn: Lpn, start: Start, unit_level: u8) -> Levels {
        if self.physics.ecc.has_levels() {
            self.choose_level(unit, lpn, start, unit_level)
        } else {
            Levels { start, level: 1, needed: 1, is_beyond: false }
        }
    }

    /// As [`Core::choose_levels`], on a drive with read levels.
    #[inline(never)]
    fn choose_level(&mut self, unit: UnitId, lpn: Lpn, start: Start, unit_level: u8) -> Levels {
        let (superblock, index) = self.geometry.split(unit);
        let needed = self.needed_level(unit, superblock, index);
        let (pe_cycles, age_s) =
            if self.physics.ecc.needs_condition() { self.wear_and_age(unit, superblock) } else { (0, 0) };
        let (of_superblock, drive) = (self.levels.superblock(superblock), self.levels.drive());
        let hints = Hints { unit: unit_level, superblock: of_superblock, drive, needed, pe_cycles, age_s };
        let level = match start {
            Start::Policy if self.is_forgotten(lpn) => self.physics.ecc.start_without_hints(&hints),
            Start::Policy => match self.physics.ecc.start_level(&hints) {
                Some(level) => level,
                None => self.start_from_outside(unit, lpn, hints),
            },
            Start::First => 1,
            Start::Last => self.physics.ecc.levels(),
        };
        let levels = Levels { start, level, needed, is_beyond: false };
        if level > 1 && self.physics.ecc.wraps_around() { self.search_on(unit, levels) } else { levels }
    }

    /// Determines the entry that decodes a unit whose read starts after the first entry of the read-retry table.
    #[cold]
    fn search_on(&mut self, unit: UnitId, levels: Levels) -> Levels {
        let (superblock, index) = self.geometry.split(unit);
        let corrected = self.array.stamp(unit).corrected;
        let is_decodable = levels.needed <= self.physics.ecc.levels();
        let known = self.known_errors(unit, superblock);
        let first =
            |core: &mut Self| core.first_entry(unit, superblock, index, corrected, levels.level - 1, known);
        match if is_decodable { first(self) } else { None } {
            Some(needed) => Levels { needed, ..levels },
            None => Levels { is_beyond: true, ..levels },
        }
    }

    /// The P/E cycles of `superblock` and the age in seconds of the cells of its unit `unit`. The age is 0 if the drive
    /// keeps no ages, because it has no bit errors, and for lost data, which no level decodes.
    #[cold]
    fn wear_and_age(&self, unit: UnitId, superblock: SuperblockId) -> (u32, u32) {
        let corrected =
            if self.array.keeps_ages() { self.array.stamp(unit).corrected } else { AgeStamp::LOST };
        let is_known = corrected != AgeStamp::LOST;
        let age_s = if is_known {
            self.array.cells_since(unit).age_s(self.physics.age_clock.at(self.now))
        } else {
            0
        };
        (self.array.superblock(superblock).pe_cycles, age_s)
    }

    /// The second sub-read that the read of the linked unit `base` needs; `None` for another unit, and while the
    /// combination page is being programmed, because its data is still in the controller. Of `levels`, returns the
    /// levels of the base unit: with full strength only the sub-read starts at the last level.
    #[cold]
    fn part_of(&self, base: UnitId, levels: Levels) -> (Levels, Option<SubRead>) {
        let Some((lpn, bytes)) = self.parts.of(base) else { return (levels, None) };
        let start = levels.start;
        let unit = self.ftl.map.get(lpn).expect("a linked combination page is mapped");
        let part = (!self.is_in_flight(unit)).then_some(SubRead { unit, lpn, bytes, start });
        if start == Start::Last {
            // The errors from before the partial refresh are known, so the base unit hardly needs more than level 1.
            return (Levels { start: Start::First, level: 1, ..levels }, part);
        }
        (levels, part)
    }

    /// Whether a read that needs the sub-read `part` can be added to the read `lead`. A flash read has at most one
    /// sub-read.
    pub(super) fn shares_part(&self, lead: &Transaction, part: Option<SubRead>) -> bool {
        match (part, lead.partner) {
            (Some(part), Some(partner)) => {
                let partner = &self.pool[partner];
                (partner.unit, partner.start) == (part.unit, part.start)
            }
            _ => true,
        }
    }

    /// Adds the sub-read `part` to the read in `slot`, or the bytes of `part` to a sub-read of the same unit.
    #[cold]
    pub(super) fn add_sub_read(&mut self, slot: Slot, part: SubRead) {
        let read = self.pool[slot];
        let SubRead { unit, lpn, bytes, start } = part;
        let is_same = |&sub: &Slot| (self.pool[sub].unit, self.pool[sub].start) == (unit, start);
        let same = self.sub_reads(slot).skip(1).find(is_same);
        if let Some(same) = same {
            let same = &mut self.pool[same];
            same.extent = (same.extent + bytes).min(self.geometry.unit_bytes);
            return;
        }
        self.pin(unit);
        let levels = self.choose_levels(unit, lpn, start, 0);
        let part = self.transaction(FlashOp::Read, unit, lpn, read.owner, read.cause, read.class);
        let next = read.partner.or(Some(slot));
        let part = levels.of(Transaction { extent: bytes, partner: next, ..part });
        let part = self.pool.insert(part);
        self.pool[slot].partner = Some(part);
        self.enqueue(part);
    }

    /// The sub-reads of a read, from the one in `slot` on: those of the ring ([`Transaction::partner`]).
    pub(crate) fn sub_reads(&self, slot: Slot) -> impl Iterator<Item = Slot> {
        successors(Some(slot), move |&sub| self.pool[sub].partner.filter(|&next| next != slot))
    }

    /// Counts that the page of unit `index` of a superblock has been sensed, which disturbs its block.
    #[inline(always)]
    pub(crate) fn count_sensed(&mut self, superblock: SuperblockId, index: u32) {
        self.array.read(&self.geometry, superblock, index);
    }

    /// Reports to the probe that decoding of a try at `level` begins at `start` and ends at `end`.
    #[inline(always)]
    pub(crate) fn tell_decode(&mut self, start: Time, end: Time, die: DieId, level: u8, slot: Slot) {
        let channel = self.geometry.channel_of(die);
        self.probe.on_decode(start, end, channel, level, &self.pool[slot]);
    }

    /// Keeps `level` as the read level of an LPN.
    #[inline]
    pub(crate) fn set_unit_level(&mut self, lpn: Lpn, level: u8) {
        self.levels.set_unit(lpn, level);
    }

    /// Keeps `level` as the read level of a superblock.
    #[inline]
    pub(crate) fn set_superblock_level(&mut self, superblock: SuperblockId, level: u8) {
        self.levels.set_superblock(superblock, level);
    }

    /// Keeps `level` as the read level of the drive.
    #[inline]
    pub(crate) fn set_drive_level(&mut self, level: u8) {
        self.levels.set_drive(level);
    }

    /// The known errors of units, which the cache of known errors keeps.
    pub(crate) fn known_mut(&mut self) -> &mut KnownErrors {
        &mut self.physics.known
    }

    /// The read levels, and the model of bit errors.
    pub(crate) fn error_models(&mut self) -> (&Ecc, &mut Reliability) {
        (&self.physics.ecc, &mut self.physics.reliability)
    }

    /// Drops the counts of host reads, which were in RAM only.
    pub(crate) fn forget_read_counts(&mut self) {
        self.read_counts.forget();
    }

    /// Sets the levels and the tries of a read of a unit to those of the read that it went along with.
    pub(crate) fn set_tries(&mut self, slot: Slot, like: &Transaction) {
        let read = &mut self.pool[slot];
        (read.level, read.tries) = (like.level, like.tries);
    }

    /// Queues another try of a read that did not decode: one level higher, or from the last entry of a read-retry
    /// table on at its first, and at the front of its queue.
    #[inline(never)]
    pub(crate) fn try_again(&mut self, slot: Slot) {
        let last = self.physics.ecc.levels();
        let read = &mut self.pool[slot];
        if read.level == last {
            (read.level, read.is_beyond) = (1, false);
        } else {
            read.level += 1;
        }
        read.tries += 1;
        self.probe.on_queued(self.now, read);
        self.device.submit_again(&mut self.pool, slot);
    }

    /// The present RBER of a unit, including known errors. The data of the unit must not be lost.
    pub(crate) fn rber_of(&mut self, unit: UnitId) -> f64 {
        if !self.array.keeps_ages() {
            return 0.0;
        }
        let (superblock, index) = self.geometry.split(unit);
        self.rber_in(unit, superblock, index, self.array.stamp(unit).corrected)
    }

    /// The present RBER of `unit`, unit number `index` of `superblock`, whose data was last corrected at `corrected`.
    #[inline]
    fn rber_in(&mut self, unit: UnitId, superblock: SuperblockId, index: u32, corrected: AgeStamp) -> f64 {
        self.rber_by(unit, superblock, index, corrected, 1.0, Reliability::rber)
    }

    /// The RBER of `unit`, unit number `index` of `superblock`, whose data was last corrected at `corrected`: the
    /// errors of its cells by `model`, and the errors that its data had when a copyback programmed it. `gain`: the share
    /// that counts of the errors of programs in place. Errors that a copyback programmed count in full, since their
    /// cells are not near a boundary.
    #[inline]
    fn rber_by(
        &mut self,
        unit: UnitId,
        superblock: SuperblockId,
        index: u32,
        corrected: AgeStamp,
        gain: f64,
        model: impl FnOnce(&mut Reliability, &Condition) -> f64,
    ) -> f64 {
        let state = self.array.superblock(superblock);
        let copied = self.array.copied(unit).unwrap_or(Copied { rber: 0.0, programmed: corrected });
        let condition = Condition {
            pe_cycles: state.pe_cycles,
            age_s: copied.programmed.age_s(self.physics.age_clock.at(self.now)),
            reads: self.array.reads_of(&self.geometry, superblock, index),
            copybacks: state.copybacks(),
            kind: self.array.shape(superblock).kind(index),
        };
        let mut mean = model(&mut self.physics.reliability, &condition);
        let mode = self.array.shape_id(superblock);
        if mode != ShapeId::FIRST {
            mean *= self.array.shapes().ageing(mode).rber_factor;
        }
        if self.physics.reprogram_error > 0.0 {
            mean += gain * self.physics.reprogram_error * f64::from(self.array.rare(superblock).reprograms);
        }
        let of_cells = match &self.physics.variation {
            None => mean,
            Some(variation) => {
                let row = || {
                    let shape = self.array.shape(superblock);
                    // A row of a superblock in SLC mode is a whole wordline.
                    shape.row(index) * (self.first_shape().rows / shape.rows)
                };
                variation.rber(self.geometry.first_of_page(unit), mean, row)
            }
        };
        (of_cells + f64::from(copied.rber)).min(RBER_MAX)
    }

    /// The share of the bits of a unit that are susceptible to errors now, by the model of bit errors; 0 if the model
    /// has none.
    pub(crate) fn susceptible_ratio(&mut self, unit: UnitId) -> f64 {
        let (superblock, index) = self.geometry.split(unit);
        let (shape, pe_cycles) = (self.array.shape(superblock), self.array.superblock(superblock).pe_cycles);
        let now = self.physics.age_clock.at(self.now);
        let age_s = if self.array.keeps_ages() { self.array.cells_since(unit).age_s(now) } else { 0 };
        self.physics.reliability.susceptible_ratio(pe_cycles, age_s, shape.kind(index)).unwrap_or(0.0)
    }

    /// The RBER of the data that a copyback of `unit` would program now.
    pub(crate) fn rber_sensed(&mut self, unit: UnitId) -> f64 {
        let corrected = self.array.stamp(unit).corrected;
        // No read decodes lost data, whatever its errors.
        if corrected == AgeStamp::LOST {
            return 0.0;
        }
        let (superblock, index) = self.geometry.split(unit);
        self.rber_by(unit, superblock, index, corrected, 1.0, Reliability::rber_sensed)
    }

    /// A copyback of unit `source` to unit `to` has ended, or is torn: `to` has the errors of `source`.
    pub(crate) fn take_over_errors(&mut self, source: UnitId, to: UnitId) {
        if self.array.keeps_copied() {
            let rber = self.rber_sensed(source) as f32;
            self.array.set_copied(to, Copied { rber, programmed: self.age_stamp_now() });
        } else {
            self.array.copy_errors(&self.geometry, to, source);
        }
    }

    /// The needed level of a unit: the lowest read level that decodes the unit now. The number of levels + 1 if no
    /// level does.
    fn needed_level(&mut self, unit: UnitId, superblock: SuperblockId, index: u32) -> u8 {
        if !self.array.keeps_ages() {
            return 1;
        }
        let corrected = self.array.stamp(unit).corrected;
        if corrected == AgeStamp::LOST {
            return self.physics.ecc.levels() + 1;
        }
        if !self.physics.ecc.entries().is_empty() {
            return self.needed_entry(unit, superblock, index, corrected);
        }
        let rber = self.rber_in(unit, superblock, index, corrected);
        self.physics.ecc.level_for((rber - self.known_errors(unit, superblock)).max(0.0))
    }

    /// The RBER of the known errors of a unit of `superblock`. If parts of units are in other units, only the errors of
    /// units with a link are known, and the count of these in the superblock is in the CPU's cache more often than the
    /// errors of a unit.
    #[inline(always)]
    fn known_errors(&self, unit: UnitId, superblock: SuperblockId) -> f64 {
        if self.parts.are_kept() && self.array.superblock(superblock).linked == 0 {
            0.0
        } else {
            self.physics.known.of(unit)
        }
    }

    /// The first entry of the read-retry table or of the code that decodes a unit now, as a level from 1. The number of
    /// levels + 1 if no entry does.
    #[inline(never)]
    fn needed_entry(
        &mut self,
        unit: UnitId,
        superblock: SuperblockId,
        index: u32,
        corrected: AgeStamp,
    ) -> u8 {
        let known = self.known_errors(unit, superblock);
        self.first_entry(unit, superblock, index, corrected, 0, known)
            .unwrap_or(self.physics.ecc.levels() + 1)
    }

    /// The first entry of the read-retry table or of the code, from index `from` on, that decodes a unit now, as a level
    /// from 1. `known`: the RBER of its errors that are known.
    fn first_entry(
        &mut self,
        unit: UnitId,
        superblock: SuperblockId,
        index: u32,
        corrected: AgeStamp,
        from: u8,
        known: f64,
    ) -> Option<u8> {
        let entries = usize::from(from)..self.physics.ecc.entries().len();
        let unknown = self.unknown_share(unit, superblock, index, corrected, known);
        let limit = self.limit_of(unit, superblock);
        let decodes =
            |&entry: &usize| self.entry_rber(unit, superblock, index, corrected, entry) * unknown < limit;
        { entries }.find(decodes).map(|entry| entry as u8 + 1)
    }

    /// The RBER below which the entry of a read-retry table or of a code decodes a unit.
    fn limit_of(&self, unit: UnitId, superblock: SuperblockId) -> f64 {
        match self.physics.ecc.codec() {
            Some(codec) => {
                let pe_cycles = self.array.superblock(superblock).pe_cycles;
                codec.limit_of(self.geometry.first_of_page(unit), pe_cycles)
            }
            None => self.physics.ecc.limit(),
        }
    }

    /// The share of the errors of a unit that is not known, if those with the RBER `known` are.
    fn unknown_share(
        &mut self,
        unit: UnitId,
        superblock: SuperblockId,
        index: u32,
        corrected: AgeStamp,
        known: f64,
    ) -> f64 {
        if known == 0.0 {
            return 1.0;
        }
        let all = self.rber_in(unit, superblock, index, corrected);
        if known < all { 1.0 - known / all } else { 0.0 }
    }

    /// The RBER of a unit read with the references of entry `entry`, including known errors.
    fn entry_rber(
        &mut self,
        unit: UnitId,
        superblock: SuperblockId,
        index: u32,
        corrected: AgeStamp,
        entry: usize,
    ) -> f64 {
        let gain = self.physics.ecc.entries()[entry].gain();
        let model = |model: &mut Reliability, at: &Condition| model.rber_read_with(at, entry);
        self.rber_by(unit, superblock, index, corrected, gain, model)
    }

    /// The lowest read level that would decode a unit now if none of its errors were known; the number of levels + 1 if
    /// none would. The data of the unit must not be lost.
    pub(crate) fn level_without_known(&mut self, unit: UnitId) -> u8 {
        if self.physics.ecc.codec().is_none() {
            let rber = self.rber_of(unit);
            return self.physics.ecc.level_for(rber);
        }
        let (superblock, index) = self.geometry.split(unit);
        let corrected = self.array.stamp(unit).corrected;
        self.first_entry(unit, superblock, index, corrected, 0, 0.0).unwrap_or(self.physics.ecc.levels() + 1)
    }

    /// The share of its limit at which the RBER of a unit is at the last read level; 1 and more: no level decodes it.
    /// Without read levels 0. The data of the unit must not be lost.
    pub(crate) fn share_of_limit(&mut self, unit: UnitId) -> f64 {
        let limit = self.physics.ecc.limit();
        if self.physics.ecc.codec().is_none() || !self.array.keeps_ages() {
            return self.rber_of(unit) / limit;
        }
        let (superblock, index) = self.geometry.split(unit);
        let corrected = self.array.stamp(unit).corrected;
        let last = self.physics.ecc.entries().len() - 1;
        self.entry_rber(unit, superblock, index, corrected, last) / limit
    }

    /// The time of decoding the data of this try of a read; `fixed` unless the read levels are those of a code.
    #[inline(always)]
    pub(crate) fn decode_ns(&mut self, slot: Slot, fixed: Span) -> Span {
        if self.physics.ecc.codec().is_none() { fixed } else { self.decode_ns_of_code(slot) }
    }

    #[inline(never)]
    fn decode_ns_of_code(&mut self, slot: Slot) -> Span {
        let Transaction { unit, level, extent, order, tries, .. } = self.pool[slot];
        let has_failed = self.pool[slot].is_uncorrectable();
        let bytes =
            if extent == 0 { self.geometry.unit_bytes * self.geometry.units_per_page } else { extent };
        let (superblock, index) = self.geometry.split(unit);
        let is_lost = self.array.keeps_ages() && self.array.stamp(unit).corrected == AgeStamp::LOST;
        let rber = if is_lost || !self.array.keeps_ages() {
            0.0
        } else {
            let (corrected, known) = (self.array.stamp(unit).corrected, self.known_errors(unit, superblock));
            let unknown = self.unknown_share(unit, superblock, index, corrected, known);
            self.entry_rber(unit, superblock, index, corrected, usize::from(level) - 1) * unknown
        };
        let codec = self.physics.ecc.codec().expect("the read levels are those of a code");
        if is_lost {
            return codec.all_failed_ns(bytes);
        }
        codec.decode_ns(rber, bytes, has_failed, order ^ u64::from(tries) << 56)
    }

    /// The AgeStamp of data that is written now.
    #[inline(always)]
    pub(crate) fn age_stamp_now(&self) -> AgeStamp {
        if self.array.keeps_ages() { self.physics.age_clock.at(self.now) } else { AgeStamp::default() }
    }

    /// The sequence number of a new write or deallocation.
    #[inline(always)]
    pub(crate) fn next_sequence(&mut self) -> u64 {
        self.sequence += 1;
        self.sequence
    }

    /// The stamp of new data of the controller: the next sequence number and the present AgeStamp.
    pub(crate) fn next_stamp(&mut self) -> Stamp {
        Stamp { sequence: self.next_sequence(), corrected: self.age_stamp_now() }
    }

    /// The stamp of a copy of the unit that `read` has read: the same sequence number, and the present AgeStamp, or
    /// [`AgeStamp::LOST`] if the unit was uncorrectable.
    pub(crate) fn stamp_of_copy(&self, read: &Transaction) -> Stamp {
        let corrected = if read.is_uncorrectable() { AgeStamp::LOST } else { self.age_stamp_now() };
        Stamp { corrected, ..self.array.stamp(read.unit) }
    }

    /// Notes that a sub-read has left its die. Once all sub-reads have, returns the slot of the base unit's read.
    #[inline(never)]
    pub(crate) fn join(&mut self, slot: Slot) -> Option<Slot> {
        self.pool[slot].has_arrived = true;
        if !self.sub_reads(slot).all(|sub| self.pool[sub].has_arrived) {
            return None;
        }
        // The sub-read of the base unit has been added first.
        self.sub_reads(slot).min_by_key(|&sub| self.pool[sub].order)
    }

    /// Called when decoding of all sub-reads has ended. Queues another try of each sub-read that failed below the last
    /// level, and returns `true`. If there is none, removes the other sub-reads and returns `false`; the base unit's read,
    /// in `slot`, remains.
    #[inline(never)]
    pub(crate) fn try_again_or_part(&mut self, slot: Slot) -> bool {
        let last = self.physics.ecc.levels();
        let (mut again, mut next) = (false, Some(slot));
        while let Some(sub) = next {
            next = self.pool[sub].partner.filter(|&next| next != slot);
            if self.pool[sub].is_tried_again(last) {
                self.pool[sub].has_arrived = false;
                self.try_again(sub);
                again = true;
            }
        }
        if again {
            return true;
        }
        let (mut is_uncorrectable, mut next) = (false, self.pool[slot].partner.take());
        while let Some(sub) = next.filter(|&next| next != slot) {
            let part = self.pool.remove(sub);
            next = part.partner;
            if self.physics.ecc.has_levels() {
                self.unpin(self.geometry.superblock_of(part.unit));
            }
            is_uncorrectable |= part.is_uncorrectable();
        }
        if is_uncorrectable {
            // Without its susceptible bits a unit cannot be decoded.
            self.pool[slot].level = last;
            let mut rest = Some(slot);
            while let Some(slot) = rest {
                let read = &mut self.pool[slot];
                if read.has_part {
                    read.needed = last + 1;
                }
                rest = read.more;
            }
        }
        false
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::core::testing::{Setup, fill};
    use crate::ftl::StreamId;

    /// A read of a base unit and of two more, whose sub-reads end in every order, with and without a further try.
    #[test]
    fn a_read_of_three_units_ends_with_its_last_sub_read() {
        for order in [[0, 1, 2], [0, 2, 1], [1, 0, 2], [1, 2, 0], [2, 0, 1], [2, 1, 0]] {
            let mut core = Setup { levels: 3, ..Setup::default() }.core();
            fill(&mut core, StreamId::HOST, [1, 2, 3]);
            let units = [1, 2, 3].map(|lpn| core.unit_of(Lpn(lpn)).expect("the LPN is mapped"));
            let (owner, cause, class) = (Owner::Padding, Cause::Host, Class::HostRead);
            let first =
                Read { unit: units[0], lpn: Lpn(1), owner, cause, class, start: Start::First, unit_level: 0 };
            let slot = core.read(first);
            for (unit, lpn) in [(units[1], 2), (units[2], 3), (units[1], 2)] {
                core.add_sub_read(slot, SubRead { unit, lpn: Lpn(lpn), bytes: 512, start: Start::First });
            }
            let subs: Vec<Slot> = core.sub_reads(slot).collect();
            assert_eq!((subs.len(), subs[0]), (3, slot));
            let bytes = |core: &Core<_>, unit| {
                subs.iter().map(|&sub| core.operation(sub)).find(|sub| sub.unit == unit).unwrap().extent
            };
            assert_eq!([bytes(&core, units[1]), bytes(&core, units[2])], [1024, 512]);
            let ends = |core: &mut Core<_>| order.map(|number| core.join(subs[number]));
            assert_eq!(ends(&mut core), [None, None, Some(slot)], "{order:?}");
            // One of the other units needs level 2.
            core.pool[subs[2]].needed = 2;
            assert!(core.try_again_or_part(slot), "a sub-read is tried again");
            assert_eq!(core.pool[subs[2]].level, 2);
            assert_eq!(core.join(subs[2]), Some(slot));
            assert!(!core.try_again_or_part(slot));
            assert_eq!((core.operation(slot).partner, core.sub_reads(slot).count()), (None, 1));
        }
    }
}
