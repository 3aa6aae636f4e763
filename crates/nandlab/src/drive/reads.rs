//! The way of a flash read: the level it starts at, the tries until it decodes, what is remembered of it.

use super::Drive;
use crate::base::units::Span;
use crate::probe::Probe;
use crate::sched::{Cause, Kind, Owner, Slot};

impl<P: Probe> Drive<P> {
    /// A page has left its die; decoding follows.
    #[inline]
    pub(super) fn on_page_out(&mut self, slot: Slot) {
        let read = &self.core.pool[slot];
        let (block, page, cause, die) =
            (self.core.geometry.block_of(read.ppn), u32::from(read.page), read.cause, read.die);
        let (level, is_retry) = (read.level, read.tries > 0);
        let (partner, part_bytes) = (read.partner, read.part_bytes);
        self.core.array.read(block, page);
        if !read.is_uncorrectable() || level == self.core.ecc.levels() {
            self.core.stats.on_flash(Kind::Read, cause);
            if self.core.ecc.has_levels() {
                self.core.stats.ecc.on_last_try(read);
            }
        }
        let cost = *self.core.device.timing().read(level, is_retry);
        if !self.core.ecc.has_levels() {
            // No other try can follow: the data in flash is not needed any more, unless the other half of a pread is to come.
            if partner.is_none() {
                self.core.let_go(block);
            }
        } else if cause == Cause::Host {
            self.core.stats.ecc.host_flash_ns +=
                cost.sense_ns + self.core.device.timing().of_part(cost.transfer_ns, part_bytes);
        }
        let (slot, level, decode_ns) = if let Some(other) = partner {
            let Some(first) = self.core.join(slot, other) else { return };
            let (read, part) =
                (self.core.pool[first], self.core.pool[if first == slot { other } else { slot }]);
            if !self.core.ecc.has_levels() {
                self.core.let_go(self.core.geometry.block_of(read.ppn));
                self.core.let_go(self.core.geometry.block_of(part.ppn));
            }
            let level = read.level.max(part.level);
            (first, level, self.core.device.timing().read(level, false).decode_ns)
        } else {
            (slot, level, cost.decode_ns)
        };
        if self.core.ecc.has_levels() && cause == Cause::Host {
            self.core.stats.ecc.host_flash_ns += decode_ns;
        }
        let end = self.core.now + decode_ns;
        self.core.probe.on_decode(
            self.core.now,
            end,
            self.core.geometry.channel_of(die),
            level,
            &self.core.pool[slot],
        );
        if decode_ns == Span::ZERO {
            self.on_decoded(slot);
            return;
        }
        let line = &mut self.core.decoding[usize::from(level) - 1];
        if line.is_empty() {
            self.core.agenda.set(self.core.geometry.dies + u32::from(level) - 1, end);
        }
        line.push_back((end, slot));
    }

    /// Decoding has ended: with the data, or with another try one level higher.
    #[inline]
    pub(super) fn on_decoded(&mut self, slot: Slot) {
        if let Some(partner) = self.core.pool[slot].partner
            && self.core.try_again_or_part(slot, partner)
        {
            return;
        }
        if self.core.ecc.has_levels() {
            let read = self.core.pool[slot];
            if read.is_uncorrectable() && read.level < self.core.ecc.levels() {
                self.core.try_again(slot);
                return;
            }
            self.core.remember(&read);
            if read.cause == Cause::Host
                && let Some(cache) = &mut self.error_cache
            {
                cache.on_decoded(&mut self.core, &read);
            }
            self.core.let_go(self.core.geometry.block_of(read.ppn));
        }
        let read = self.core.pool.remove(slot);
        match read.owner {
            Owner::Request(_) | Owner::Merge(_) => self.on_host_read(&read),
            Owner::TranslationPage(page) => {
                self.path.mapping.on_translation_read(&mut self.core, page, &read)
            }
            Owner::CachePage(slot) => {
                let sequence = self.core.array.stamp(read.ppn).sequence;
                self.with_cache(|cache, core, path| {
                    cache.on_fetched(core, path, slot, Some(sequence), read.is_uncorrectable());
                });
            }
            Owner::Job(plane) => self.with_background(|jobs, core, path, refreshing| {
                jobs.on_background_read(core, path, refreshing, plane, &read);
            }),
            other => unreachable!("{other:?} reads nothing"),
        }
    }
}
