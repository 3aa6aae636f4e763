//! The events of flash reads: notifies the mechanisms concerned.

use super::Drive;
use super::mechanisms::each_mechanism;
use crate::core::Mechanism;
use crate::probe::Probe;
use crate::read_levels::Reads;
use crate::sched::{Cause, Owner, Slot, Transaction};

impl<P: Probe> Drive<P> {
    /// The units of a read have been transferred out of their die: begins decoding.
    #[inline]
    pub(super) fn on_page_out(&mut self, slot: Slot) {
        let Transaction { unit, level, owner, .. } = *self.core.operation(slot);
        if let (Owner::TranslationPage(tvpn), Some(mapping)) = (owner, &self.path.map) {
            mapping.prefetch_waiting(&self.core, tvpn, true);
        }
        let decoded = self.reads.on_page_out(&mut self.core, slot);
        each_mechanism!(&mut self, |mechanism| mechanism.on_read(&mut self.core, unit, level));
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
        let read = self.core.end_operation(slot);
        self.core.probe.on_ended(self.core.now(), &read);
        self.on_read(&read);
        let mut more = read.more;
        while let Some(slot) = more {
            self.core.set_tries(slot, &read);
            Reads::remember(&mut self.core, &mut self.path.map, slot);
            let unit = self.core.end_operation(slot);
            more = unit.more;
            self.on_read(&unit);
        }
    }

    /// The read of a unit has ended: notifies the owner.
    #[inline]
    fn on_read(&mut self, read: &Transaction) {
        if self.core.ecc().has_levels() {
            if read.cause == Cause::Host
                && let Some(cache) = &mut self.schemes.refreshing.error_cache
            {
                cache.on_decoded(&mut self.core, &mut self.path.map, read);
            }
            self.core.unpin(self.core.geometry().superblock_of(read.unit));
        }
        match read.owner {
            Owner::Request(_) | Owner::Merge(_) => self.on_host_read(read),
            Owner::TranslationPage(tvpn) => {
                let mapping = self.path.map.as_mut().expect("only a demand map has translation pages");
                mapping.on_translation_read(&mut self.core, tvpn, read);
            }
            Owner::Miss(miss) => {
                let mapping = self.path.map.as_mut().expect("only a demand map has misses");
                mapping.on_miss_read(&mut self.core, miss, read);
            }
            Owner::CacheUnit(slot) => {
                let sequence = self.core.sequence_of(read.unit);
                self.with_cache(|cache, core, path| {
                    cache.on_fetched(core, path, slot, Some(sequence), read.is_uncorrectable());
                });
            }
            Owner::Job(lane) => self.with_background(|jobs, core, path, around| {
                jobs.on_background_read(core, path, around, lane, read);
            }),
            other => unreachable!("{other:?} queues no reads"),
        }
    }
}
