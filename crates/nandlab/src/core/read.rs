//! The verb that reads flash, and the choice of read levels.

use super::{Core, Map};
use crate::base::geometry::{BlockId, Lpn, Ppn};
use crate::flash::{AgeStamp, Condition, Copied, Hints, RBER_MAX, Reliability, Stamp};
use crate::probe::Probe;
use crate::sched::{Cause, Class, FlashOp, Owner, Slot, Start, Transaction};

/// A programmed page to be read.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Read {
    pub(crate) ppn: Ppn,
    pub(crate) lpn: Lpn,
    pub(crate) owner: Owner,
    pub(crate) cause: Cause,
    pub(crate) class: Class,
    pub(crate) start: Start,
    /// The read level that the map entry of the page has; 0: none ([`Map::level`](super::Map::level)).
    pub(crate) page_level: u8,
}

/// The sub-read of a combination page: the page, its LPN, the bytes to transfer, and the level at which the sub-read
/// starts.
#[derive(Clone, Copy, Debug)]
pub(super) struct SubRead {
    ppn: Ppn,
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
    /// Prefetches the state of a page, without its LPN, into the CPU's cache.
    #[inline(always)]
    pub(crate) fn prefetch_state(&self, ppn: Ppn) {
        self.array.prefetch_state(ppn);
        self.parts.prefetch(ppn);
        self.read_counts.prefetch(ppn);
    }

    /// Prefetches into the CPU's cache what is needed to read, or else to invalidate, the page of `lpn`.
    #[inline(never)]
    pub(crate) fn prefetch_page(&self, lpn: Lpn, is_read: bool) {
        if let Some(ppn) = self.ftl.map.get(lpn) {
            let (block, page) = self.geometry.split(ppn);
            self.array.blocks.prefetch(block.index());
            if !is_read {
                self.ftl.prefetch_valid(block, page);
                self.parts.prefetch(ppn);
            } else if self.array.keeps_ages() {
                self.prefetch_state(ppn);
                self.physics.known.prefetch(ppn);
            }
        }
    }

    /// Queues a read, which pins the block of its page. The read of a linked page has two sub-reads, the second one of
    /// the combination page.
    // Inlined, so that `read` is not passed through memory.
    #[inline(always)]
    pub(crate) fn read(&mut self, read: Read) -> Slot {
        let Read { ppn, lpn, owner, cause, class, start, page_level } = read;
        let (block, _) = self.geometry.split(ppn);
        self.array.block_mut(block).pins += 1;
        if cause == Cause::Host {
            self.read_counts.count(ppn);
        }
        let mut levels = self.choose_levels(ppn, lpn, start, page_level);
        let mut part = None;
        if self.array.block(block).linked > 0 {
            (levels, part) = self.part_of(ppn, levels);
        }
        let transaction = self.transaction(FlashOp::Read, ppn, lpn, owner, cause, class);
        let (extent, has_part) = (self.unit_bytes(), part.is_some());
        let slot = self.pool.insert(levels.of(Transaction { extent, has_part, ..transaction }));
        if self.goes_along(slot, part) {
            if !self.physics.ecc.has_levels() {
                // The pin of the read with which this one goes along is removed when the page has left its die.
                self.array.block_mut(block).pins -= 1;
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
    pub(crate) fn page_level(&self, map: &impl Map<P>, lpn: Lpn) -> u8 {
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
    fn choose_levels(&mut self, ppn: Ppn, lpn: Lpn, start: Start, page_level: u8) -> Levels {
        if self.physics.ecc.has_levels() {
            self.choose_level(ppn, lpn, start, page_level)
        } else {
            Levels { start, level: 1, needed: 1, is_beyond: false }
        }
    }

    /// As [`Core::choose_levels`], on a drive with read levels.
    #[inline(never)]
    fn choose_level(&mut self, ppn: Ppn, lpn: Lpn, start: Start, page_level: u8) -> Levels {
        let (block, page) = self.geometry.split(ppn);
        let needed = self.needed_level(ppn, block, page);
        let (pe_cycles, age_s) =
            if self.physics.ecc.has_retry_table() { self.wear_and_age(ppn, block) } else { (0, 0) };
        let (of_block, drive) = (self.levels.block(block), self.levels.drive());
        let hints = Hints { page: page_level, block: of_block, drive, needed, pe_cycles, age_s };
        let level = match start {
            Start::Policy if self.is_forgotten(lpn) => self.physics.ecc.start_without_hints(&hints),
            Start::Policy => self.physics.ecc.start_level(&hints),
            Start::First => 1,
            Start::Last => self.physics.ecc.levels(),
        };
        let levels = Levels { start, level, needed, is_beyond: false };
        if level > 1 && self.physics.ecc.wraps_around() { self.search_on(ppn, levels) } else { levels }
    }

    /// Determines the entry that decodes a page whose read starts after the first entry of the read-retry table.
    #[cold]
    fn search_on(&mut self, ppn: Ppn, levels: Levels) -> Levels {
        let (block, page) = self.geometry.split(ppn);
        let corrected = self.array.stamp(ppn).corrected;
        let is_decodable = levels.needed <= self.physics.ecc.levels();
        let first = |core: &mut Self| core.first_entry(ppn, block, page, corrected, levels.level - 1);
        match if is_decodable { first(self) } else { None } {
            Some(needed) => Levels { needed, ..levels },
            None => Levels { is_beyond: true, ..levels },
        }
    }

    /// The P/E cycles of `block` and the age in seconds of the cells of its page `ppn`. The age is 0 if the drive keeps
    /// no ages, because it has no bit errors, and for lost data, which no level decodes.
    #[cold]
    fn wear_and_age(&self, ppn: Ppn, block: BlockId) -> (u32, u32) {
        let corrected =
            if self.array.keeps_ages() { self.array.stamp(ppn).corrected } else { AgeStamp::LOST };
        let is_known = corrected != AgeStamp::LOST;
        let age_s =
            if is_known { self.array.cells_since(ppn).age_s(self.physics.age_clock.at(self.now)) } else { 0 };
        (self.array.block(block).pe_cycles, age_s)
    }

    /// The second sub-read that the read of the linked page `base` needs; `None` for another page, and while the combination
    /// page is being programmed, because its data is still in the controller. Of `levels`, returns the levels of the base
    /// page: with full strength only the sub-read starts at the last level.
    #[cold]
    fn part_of(&self, base: Ppn, levels: Levels) -> (Levels, Option<SubRead>) {
        let Some((lpn, bytes)) = self.parts.of(base) else { return (levels, None) };
        let start = levels.start;
        let ppn = self.ftl.map.get(lpn).expect("a linked combination page is mapped");
        let part = (!self.is_in_flight(ppn)).then_some(SubRead { ppn, lpn, bytes, start });
        if start == Start::Last {
            // The errors from before the partial refresh are known, so the base page hardly needs more than level 1.
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
                (partner.ppn, partner.start) == (part.ppn, part.start)
            }
            _ => true,
        }
    }

    /// Adds the sub-read `part` to the read in `slot`, or the bytes of `part` to the sub-read that the read has.
    #[cold]
    pub(super) fn add_sub_read(&mut self, slot: Slot, part: SubRead) {
        let read = self.pool[slot];
        if let Some(partner) = read.partner {
            let partner = &mut self.pool[partner];
            partner.extent = (partner.extent + part.bytes).min(self.geometry.page_bytes);
            return;
        }
        let SubRead { ppn, lpn, bytes, start } = part;
        self.pin(ppn);
        let levels = self.choose_levels(ppn, lpn, start, 0);
        let part = self.transaction(FlashOp::Read, ppn, lpn, read.owner, read.cause, read.class);
        let part = levels.of(Transaction { extent: bytes, partner: Some(slot), ..part });
        let part = self.pool.insert(part);
        self.pool[slot].partner = Some(part);
        self.enqueue(part);
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
        self.device.submit_again(&mut self.pool, slot);
    }

    /// The present RBER of a page, including known errors. The data of the page must not be lost.
    pub(crate) fn rber_of(&mut self, ppn: Ppn) -> f64 {
        if !self.array.keeps_ages() {
            return 0.0;
        }
        let (block, page) = self.geometry.split(ppn);
        self.rber_in(ppn, block, page, self.array.stamp(ppn).corrected)
    }

    /// The present RBER of `ppn`, page `page` of `block`, whose data was last corrected at `corrected`.
    #[inline]
    fn rber_in(&mut self, ppn: Ppn, block: BlockId, page: u32, corrected: AgeStamp) -> f64 {
        self.rber_by(ppn, block, page, corrected, Reliability::rber)
    }

    /// The RBER of `ppn`, page `page` of `block`, whose data was last corrected at `corrected`: the errors of its cells
    /// by `model`, and the errors that its data had when a copyback programmed it.
    #[inline]
    fn rber_by(
        &mut self,
        ppn: Ppn,
        block: BlockId,
        page: u32,
        corrected: AgeStamp,
        model: impl FnOnce(&mut Reliability, &Condition) -> f64,
    ) -> f64 {
        let state = self.array.block(block);
        let copied = self.array.copied(ppn).unwrap_or(Copied { rber: 0.0, programmed: corrected });
        let condition = Condition {
            pe_cycles: state.pe_cycles,
            age_s: copied.programmed.age_s(self.physics.age_clock.at(self.now)),
            reads: self.array.reads_of(&self.geometry, block, page),
            copybacks: state.copybacks,
            kind: self.geometry.kind(page),
        };
        let mut mean = model(&mut self.physics.reliability, &condition);
        if self.physics.reprogram_error > 0.0 {
            mean += self.physics.reprogram_error * f64::from(self.array.rare(block).reprograms);
        }
        let of_cells = match &self.physics.variation {
            None => mean,
            Some(variation) => variation.rber(self.geometry.first_unit(ppn), mean),
        };
        (of_cells + f64::from(copied.rber)).min(RBER_MAX)
    }

    /// The RBER of the data that a copyback of `ppn` would program now.
    pub(crate) fn rber_sensed(&mut self, ppn: Ppn) -> f64 {
        let corrected = self.array.stamp(ppn).corrected;
        // No read decodes lost data, whatever its errors.
        if corrected == AgeStamp::LOST {
            return 0.0;
        }
        let (block, page) = self.geometry.split(ppn);
        self.rber_by(ppn, block, page, corrected, Reliability::rber_sensed)
    }

    /// A copyback of page `source` to page `to` has ended, or is torn: `to` has the errors of `source`.
    pub(crate) fn take_over_errors(&mut self, source: Ppn, to: Ppn) {
        if self.array.keeps_copied() {
            let rber = self.rber_sensed(source) as f32;
            self.array.set_copied(to, Copied { rber, programmed: self.age_stamp_now() });
        } else {
            self.array.copy_errors(self.geometry.block_of(to), self.geometry.block_of(source));
        }
    }

    /// The needed level of a page: the lowest read level that decodes the page now. The number of levels + 1 if no
    /// level does.
    fn needed_level(&mut self, ppn: Ppn, block: BlockId, page: u32) -> u8 {
        if !self.array.keeps_ages() {
            return 1;
        }
        let corrected = self.array.stamp(ppn).corrected;
        if corrected == AgeStamp::LOST {
            return self.physics.ecc.levels() + 1;
        }
        if !self.physics.ecc.entries().is_empty() {
            return self.needed_entry(ppn, block, page, corrected);
        }
        let rber = self.rber_in(ppn, block, page, corrected);
        self.physics.ecc.level_for((rber - self.known_errors(ppn, block)).max(0.0))
    }

    /// The RBER of the known errors of a page of `block`. If parts of pages are in other pages, only the errors of pages with
    /// a link are known, and the count of these in the block is in the CPU's cache more often than the errors of a page.
    #[inline(always)]
    fn known_errors(&self, ppn: Ppn, block: BlockId) -> f64 {
        if self.array.block(block).linked > 0 { self.parts.known(ppn) } else { self.physics.known.of(ppn) }
    }

    /// The first entry of the read-retry table that decodes a page now, as a level from 1. The number of levels + 1 if no
    /// entry does.
    #[inline(never)]
    fn needed_entry(&mut self, ppn: Ppn, block: BlockId, page: u32, corrected: AgeStamp) -> u8 {
        self.first_entry(ppn, block, page, corrected, 0).unwrap_or(self.physics.ecc.levels() + 1)
    }

    /// The first entry of the read-retry table from index `from` on that decodes a page now, as a level from 1.
    fn first_entry(
        &mut self,
        ppn: Ppn,
        block: BlockId,
        page: u32,
        corrected: AgeStamp,
        from: u8,
    ) -> Option<u8> {
        let entries = usize::from(from)..self.physics.ecc.entries().len();
        let decodes = |&entry: &usize| {
            let model = |model: &mut Reliability, at: &Condition| model.rber_read_for(at, entry);
            let rber = self.rber_by(ppn, block, page, corrected, model);
            rber < self.physics.ecc.limit()
        };
        { entries }.find(decodes).map(|entry| entry as u8 + 1)
    }

    /// The AgeStamp of data that is written now.
    #[inline(always)]
    pub(crate) fn age_stamp_now(&self) -> AgeStamp {
        if self.array.keeps_ages() { self.physics.age_clock.at(self.now) } else { AgeStamp::default() }
    }

    /// The stamp of new data of the controller: the next sequence number and the present AgeStamp.
    pub(crate) fn next_stamp(&mut self) -> Stamp {
        self.sequence += 1;
        Stamp { sequence: self.sequence, corrected: self.age_stamp_now() }
    }

    /// The stamp of a copy of the page that `read` has read: the same sequence number, and the present AgeStamp, or
    /// [`AgeStamp::LOST`] if the page was uncorrectable.
    pub(crate) fn stamp_of_copy(&self, read: &Transaction) -> Stamp {
        let corrected = if read.is_uncorrectable() { AgeStamp::LOST } else { self.age_stamp_now() };
        Stamp { corrected, ..self.array.stamp(read.ppn) }
    }

    /// Notes that a sub-read has left its die. Once both sub-reads have, returns the slot of the base page's read.
    #[inline(never)]
    pub(crate) fn join(&mut self, slot: Slot, other: Slot) -> Option<Slot> {
        self.pool[slot].has_arrived = true;
        // The sub-read of the base page has been added first.
        let is_part = self.pool[slot].order > self.pool[other].order;
        self.pool[other].has_arrived.then_some(if is_part { other } else { slot })
    }

    /// Called when decoding of both sub-reads has ended. Queues another try of each sub-read that failed below the last
    /// level, and returns `true`. If there is none, removes the combination page's sub-read and returns `false`; the
    /// base page's read remains.
    #[inline(never)]
    pub(crate) fn try_again_or_part(&mut self, slot: Slot, partner: Slot) -> bool {
        let last = self.physics.ecc.levels();
        let mut again = false;
        for sub in [slot, partner] {
            if self.pool[sub].is_tried_again(last) {
                self.pool[sub].has_arrived = false;
                self.try_again(sub);
                again = true;
            }
        }
        if again {
            return true;
        }
        let part = self.pool.remove(partner);
        self.pool[slot].partner = None;
        if self.physics.ecc.has_levels() {
            self.unpin(self.geometry.block_of(part.ppn));
        }
        if part.is_uncorrectable() {
            // Without its susceptible bits a page cannot be decoded.
            self.pool[slot].level = last;
            let mut rest = Some(slot);
            while let Some(slot) = rest {
                let page = &mut self.pool[slot];
                if page.has_part {
                    page.needed = last + 1;
                }
                rest = page.more;
            }
        }
        false
    }
}
