//! The way of a flash read: the level it starts at, the tries until it decodes, what is remembered of it.

use super::Drive;
use crate::geometry::{BlockId, Lpn, Ppn};
use crate::nand::{Condition, Hints, Moment, Stamp};
use crate::probe::Probe;
use crate::sched::{Cause, Class, Kind, NONE, Slot, Transaction};
use crate::units::Span;

impl<P: Probe> Drive<P> {
    /// Queues a read of a programmed page, which keeps its block from being erased.
    #[inline]
    pub(super) fn read_page(
        &mut self,
        ppn: Ppn,
        lpn: Lpn,
        owner: u32,
        cause: Cause,
        class: Class,
        merges: bool,
    ) {
        let (block, _) = self.geometry.split(ppn);
        self.array.block_mut(block).holds += 1;
        let mut transaction = self.transaction(Kind::Read, ppn, lpn, owner, cause, class);
        transaction.merges = merges;
        if cause == Cause::Host {
            self.read_counts.count(ppn);
        }
        if self.ecc.has_levels() {
            self.aim(&mut transaction, block);
            if cause == Cause::Host {
                self.stats.ecc.on_host_start(transaction.level, transaction.needed);
            }
        }
        let slot = self.pool.insert(transaction);
        if self.array.block(block).linked > 0 {
            self.add_sub_read(slot);
        }
        self.enqueue(slot);
    }

    /// Works out which level a read needs and at which it starts.
    #[inline]
    pub(super) fn aim(&mut self, read: &mut Transaction, block: BlockId) {
        read.needed = self.needed_level(read.ppn, block, u32::from(read.page));
        let hints =
            Hints { page: self.known_level(read.lpn), block: self.levels.block(block), needed: read.needed };
        read.level = match read.cause {
            Cause::Refresh => self.refresh_level(),
            _ => self.ecc.start_level(&hints),
        };
        if read.cause == Cause::Host && self.error_cache.is_some() {
            self.count_cached_read(read);
        }
    }

    /// The RBER of a page now, that of known errors included; it must not be lost.
    pub(super) fn rber_of(&mut self, ppn: Ppn) -> f64 {
        if !self.array.keeps_ages() {
            return 0.0;
        }
        let (block, page) = self.geometry.split(ppn);
        self.rber_in(block, page, self.array.stamp(ppn).corrected)
    }

    /// The RBER now of a page of `block` that was corrected then.
    #[inline]
    fn rber_in(&mut self, block: BlockId, page: u32, corrected: Moment) -> f64 {
        let state = self.array.block(block);
        let condition = Condition {
            pe_cycles: state.pe_cycles,
            age_s: corrected.age_s(self.age_clock.at(self.now)),
            reads: state.reads,
            copybacks: state.copybacks,
            kind: self.geometry.kind(page),
        };
        self.reliability.rber(&condition) + self.refresh.disturbance(state)
    }

    /// The errors of a page that are known from before, and thus not there any more, as a part of its RBER.
    #[inline]
    fn known_rber(&self, ppn: Ppn, block: BlockId) -> f64 {
        if self.array.block(block).linked > 0
            && let Some((_, entry)) = self.ftl.links.as_ref().and_then(|links| links.of(ppn))
        {
            return entry.rber;
        }
        self.cached_rber(ppn).unwrap_or(0.0)
    }

    /// The least read level that decodes a page now; one more than there are when none does.
    fn needed_level(&mut self, ppn: Ppn, block: BlockId, page: u32) -> u8 {
        if !self.array.keeps_ages() {
            return 1;
        }
        let corrected = self.array.stamp(ppn).corrected;
        if corrected == Moment::LOST {
            return self.ecc.levels() + 1;
        }
        let rber = self.rber_in(block, page, corrected);
        self.ecc.level_for((rber - self.known_rber(ppn, block)).max(0.0))
    }

    /// The level of the last read of `lpn`, where something remembers it.
    #[inline]
    pub(super) fn known_level(&self, lpn: Lpn) -> u8 {
        if self.ftl.is_combination(lpn) {
            return 0;
        }
        match &self.ftl.demand {
            Some(demand) => demand.level(lpn),
            None => self.levels.page(lpn),
        }
    }

    /// Remembers the level of the last read of `lpn`, where there is a place for it.
    #[inline]
    pub(super) fn remember_level(&mut self, lpn: Lpn, level: u8) {
        if self.ftl.is_combination(lpn) {
            return;
        }
        match &mut self.ftl.demand {
            Some(demand) => demand.set_level(lpn, level),
            None => self.levels.set_page(lpn, level),
        }
    }

    /// Remembers the level at which a read has been decoded. What GC and wear levelling read is left out: it is not
    /// a use of the page, and moves it.
    fn remember(&mut self, read: &Transaction) {
        // A read at full strength says nothing of the level that its block needs.
        if read.cause != Cause::Refresh || !self.refresh.reads_full_strength() {
            self.levels.set_block(self.geometry.block_of(read.ppn), read.level);
        }
        let is_use = matches!(read.cause, Cause::Host | Cause::Sync | Cause::Mapping);
        // It may have been written since.
        if is_use && self.ftl.map.get(read.lpn) == Some(read.ppn) {
            self.remember_level(read.lpn, read.level);
        }
    }

    /// Now, for the stamp of a page that is written.
    #[inline(always)]
    pub(super) fn moment(&self) -> Moment {
        if self.array.keeps_ages() { self.age_clock.at(self.now) } else { Moment::default() }
    }

    /// The stamp of a page that has been read and is written elsewhere: young again if it could be corrected, and
    /// still the same host write.
    pub(super) fn stamp_of_copy(&self, read: &Transaction) -> Stamp {
        let corrected = if read.is_uncorrectable() { Moment::LOST } else { self.moment() };
        Stamp { corrected, ..self.array.stamp(read.ppn) }
    }

    /// A page has left its die; decoding follows.
    #[inline]
    pub(super) fn on_page_out(&mut self, slot: Slot) {
        let read = &self.pool[slot];
        let (block, page, cause, die) =
            (self.geometry.block_of(read.ppn), u32::from(read.page), read.cause, read.die);
        let (level, is_retry) = (read.level, read.tries > 0);
        let (is_whole, part_bytes) = (read.partner == NONE, read.part_bytes);
        self.array.read(block, page);
        if !read.is_uncorrectable() || level == self.ecc.levels() {
            self.stats.on_flash(Kind::Read, cause);
            if self.ecc.has_levels() {
                self.stats.ecc.on_last_try(read);
            }
        }
        let cost = *self.device.timing().read(level, is_retry);
        if !self.ecc.has_levels() {
            // No other try can follow: the data in flash is not needed any more, unless the other half of a pread is to come.
            if is_whole {
                self.let_go(block);
            }
        } else if cause == Cause::Host {
            self.stats.ecc.host_flash_ns +=
                cost.sense_ns + self.device.timing().of_part(cost.transfer_ns, part_bytes);
        }
        let (slot, level, decode_ns) = if is_whole {
            (slot, level, cost.decode_ns)
        } else {
            let Some(first) = self.join(slot) else { return };
            let (read, part) = (self.pool[first], self.pool[self.pool[first].partner]);
            if !self.ecc.has_levels() {
                self.let_go(self.geometry.block_of(read.ppn));
                self.let_go(self.geometry.block_of(part.ppn));
            }
            let level = read.level.max(part.level);
            (first, level, self.device.timing().read(level, false).decode_ns)
        };
        if self.ecc.has_levels() && cause == Cause::Host {
            self.stats.ecc.host_flash_ns += decode_ns;
        }
        let end = self.now + decode_ns;
        self.probe.on_decode(self.now, end, self.geometry.channel_of(die), &self.pool[slot]);
        if decode_ns == Span::ZERO {
            self.on_decoded(slot);
            return;
        }
        let line = &mut self.decoding[usize::from(level) - 1];
        if line.is_empty() {
            self.agenda.set(self.geometry.dies + u32::from(level) - 1, end);
        }
        line.push_back((end, slot));
    }

    /// Decoding has ended: with the data, or with another try one level higher.
    #[inline]
    pub(super) fn on_decoded(&mut self, slot: Slot) {
        if self.pool[slot].partner != NONE && self.try_again_or_part(slot) {
            return;
        }
        if self.ecc.has_levels() {
            let read = self.pool[slot];
            if read.is_uncorrectable() && read.level < self.ecc.levels() {
                self.pool[slot].level += 1;
                self.pool[slot].tries += 1;
                let Self { device, pool, agenda, probe, now, .. } = self;
                device.submit_again(pool, agenda, probe, *now, slot);
                return;
            }
            self.remember(&read);
            if read.cause == Cause::Host && self.error_cache.is_some() {
                self.remember_errors(&read);
            }
            self.let_go(self.geometry.block_of(read.ppn));
        }
        let read = self.pool.remove(slot);
        match read.cause {
            Cause::Host => self.on_host_read(&read),
            Cause::Mapping => self.on_translation_read(&read),
            Cause::Sync => {
                let sequence = self.array.stamp(read.ppn).sequence;
                self.on_fetched(read.owner, Some(sequence), read.is_uncorrectable());
            }
            _ => self.on_background_read(&read),
        }
    }
}
