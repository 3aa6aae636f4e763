//! The events of flash reads: notifies the mechanisms concerned.

use super::Drive;
use crate::probe::Probe;
use crate::read_levels::Reads;
use crate::sched::{Cause, Owner, Slot, Transaction};

impl<P: Probe> Drive<P> {
    /// A page has been transferred out of its die: begins decoding.
    #[inline]
    pub(super) fn on_page_out(&mut self, slot: Slot) {
        let Transaction { ppn, level, owner, .. } = self.core.pool[slot];
        if let (Owner::TranslationPage(page), Some(mapping)) = (owner, &self.path.map) {
            mapping.prefetch_waiting(&self.core, page, true);
        }
        let decoded = self.reads.on_page_out(&mut self.core, slot);
        self.schemes.on_read(&mut self.core, ppn, level);
        if let Some(slot) = decoded {
            self.on_decoded(slot);
        }
    }

    /// A try has been decoded. If the read is over, notifies its owner; otherwise another try has been queued.
    #[inline]
    pub(super) fn on_decoded(&mut self, slot: Slot) {
        if !self.reads.on_decoded(&mut self.core, &mut self.path.map, slot) {
            return;
        }
        let read = self.core.pool.remove(slot);
        self.on_read(&read);
        let mut more = read.more;
        while let Some(slot) = more {
            (self.core.pool[slot].level, self.core.pool[slot].tries) = (read.level, read.tries);
            Reads::remember(&mut self.core, &mut self.path.map, slot);
            let unit = self.core.pool.remove(slot);
            more = unit.more;
            self.on_read(&unit);
        }
    }

    /// The read of a page has ended: notifies the owner.
    #[inline]
    fn on_read(&mut self, read: &Transaction) {
        if self.core.physics.ecc.has_levels() {
            if read.cause == Cause::Host
                && let Some(cache) = &mut self.schemes.refreshing.error_cache
            {
                cache.on_decoded(&mut self.core, &mut self.path.map, read);
            }
            self.core.unpin(self.core.geometry.block_of(read.ppn));
        }
        match read.owner {
            Owner::Request(_) | Owner::Merge(_) => self.on_host_read(read),
            Owner::TranslationPage(page) => {
                let mapping = self.path.map.as_mut().expect("only a demand map has translation pages");
                mapping.on_translation_read(&mut self.core, page, read);
            }
            Owner::Miss(miss) => {
                let mapping = self.path.map.as_mut().expect("only a demand map has misses");
                mapping.on_miss_read(&mut self.core, miss, read);
            }
            Owner::CachePage(slot) => {
                let sequence = self.core.array.stamp(read.ppn).sequence;
                self.with_cache(|cache, core, path| {
                    cache.on_fetched(core, path, slot, Some(sequence), read.is_uncorrectable());
                });
            }
            Owner::Job(plane) => self.with_background(|jobs, core, path, around| {
                jobs.on_background_read(core, path, around, plane, read);
            }),
            other => unreachable!("{other:?} queues no reads"),
        }
    }
}
