//! Copybacks: a page is sensed and programmed elsewhere in its plane, errors and all, without leaving the die.
//!
//! The map changes when the copyback is done, because until then the page can only be read where it was. Translation pages
//! are always moved off-chip.

use super::Drive;
use super::background::JobCause;
use crate::core::{CopyBack, Core, Part};
use crate::ftl::WriteStream;
use crate::ftl::migration::{self, BufferLoad, CopybackLimit, MigrationPolicy, View};
use crate::geometry::{BlockId, Geometry, Lpn, PlaneId, Ppn};
use crate::nand::{Condition, Moment, Timing};
use crate::probe::Probe;
use crate::sched::{Cause, Transaction};
use crate::spec::Spec;
use crate::units::Span;

/// What the drive keeps for its migration policy.
#[derive(Debug)]
pub(super) struct Migration {
    policy: Box<dyn MigrationPolicy>,
    limit: CopybackLimit,
    /// Most copybacks in a row (Mcpb); 0: none at all.
    most: u8,
    /// Pages of the write buffer on their way to flash, where the policy asks for it.
    load: Option<BufferLoad>,
}

impl Migration {
    pub(super) fn new(spec: &Spec, geometry: &Geometry) -> Self {
        let policy = migration::make(spec.migration.policy);
        let limit = CopybackLimit::new(&spec.migration.limit);
        // One block write time.
        let timing = Timing::new(&spec.timing, &spec.ecc, geometry);
        let block_ns: Span =
            (0..geometry.pages_per_block).map(|page| timing.transfer_ns + timing.program_ns(page)).sum();
        let load = policy.watches_buffer().then(|| BufferLoad::new(block_ns));
        Self { policy, most: spec.migration.copybacks_max(), limit, load }
    }
}

impl<P: Probe> Drive<P> {
    /// Pages of the write buffer have begun or ended their way to flash.
    #[inline]
    pub(super) fn watch_buffer(&mut self) {
        if let (Some(load), Some(caching)) = (&mut self.migration.load, &self.caching) {
            load.set(self.core.now, caching.cache.writing());
        }
    }

    /// The stream that the pages of a victim are copied back to, if the policy wants copybacks and there is room for them.
    pub(super) fn copyback_stream(
        &mut self,
        plane: PlaneId,
        victim: BlockId,
        cause: JobCause,
        is_urgent: bool,
    ) -> Option<WriteStream> {
        let _inside = self.core.inside.enter(Part::Copyback);
        // Refresh corrects, so it goes off-chip.
        if matches!(cause, JobCause::Refresh | JobCause::StayingRefresh) {
            return None;
        }
        let copybacks = self.core.array.block(victim).copybacks + 1;
        if copybacks > self.migration.most {
            return None;
        }
        let off_chip = self.core.ftl.emptying_stream(
            &self.core.geometry,
            &self.core.array,
            victim,
            cause == JobCause::Wear,
        );
        if matches!(off_chip, WriteStream::Mapping | WriteStream::Combination) {
            return None;
        }
        let capacity = f64::from(self.cache_pages()[0].max(1));
        let buffer = self.migration.load.as_mut().map_or(0.0, |load| load.mean(self.core.now) / capacity);
        if !self.migration.policy.copies_back(&View { is_urgent, buffer }) {
            self.core.stats.migration.victims_off_chip += 1;
            return None;
        }
        // A page that may not be copied back after all goes off-chip, so both ways need room.
        let stream = WriteStream::Copyback(copybacks);
        let valid = u32::from(self.core.array.block(victim).valid);
        let free = self.core.ftl.planes[plane.index()].free.len();
        let blocks = |stream| self.core.ftl.blocks_for(&self.core.geometry, plane, stream, valid);
        if blocks(stream) + blocks(off_chip) > free {
            self.core.stats.migration.victims_without_room += 1;
            return None;
        }
        self.core.stats.migration.victims_copied_back += 1;
        Some(stream)
    }

    /// Copies a page back, if its limit allows it; whether it does.
    pub(super) fn copy_back(
        &mut self,
        plane: PlaneId,
        stream: WriteStream,
        source: Ppn,
        lpn: Lpn,
        cause: Cause,
    ) -> bool {
        let _inside = self.core.inside.enter(Part::Copyback);
        // A partially refreshed page has to be merged.
        if self.core.ftl.links.as_ref().is_some_and(|links| links.is_marked(source)) {
            return false;
        }
        let destination = self.core.ftl.next_block(&self.core.geometry, plane, stream);
        if !destination.is_some_and(|block| self.may_copy_back(source, block, stream.copybacks())) {
            self.core.stats.migration.refused += 1;
            return false;
        }
        let queued = self.core.copy_back(CopyBack { plane, stream, source, lpn, cause });
        let queued = queued.expect("a free block has been counted on");
        self.jobs[plane.index()].blocks_taken += u32::from(queued.opened);
        let block = self.core.geometry.block_of(queued.ppn);
        // In release builds too: nobody could read a page that has been copied back too often.
        assert!(
            self.core.array.block(block).copybacks == stream.copybacks()
                && self.may_copy_back(source, block, stream.copybacks()),
            "{} is copied back beyond its limit",
            self.core.geometry.show(source),
        );
        true
    }

    /// Whether the page at `source` may go to `block` by its copyback number `copybacks` in a row.
    fn may_copy_back(&mut self, source: Ppn, block: BlockId, copybacks: u8) -> bool {
        let corrected = self.core.array.stamp(source).corrected;
        let knows_age = self.core.array.keeps_ages() && corrected != Moment::LOST;
        let condition = Condition {
            pe_cycles: self.core.array.block(block).pe_cycles,
            age_s: if knows_age { corrected.age_s(self.core.age_clock.at(self.core.now)) } else { 0 },
            reads: self
                .core
                .array
                .block(block)
                .reads
                .max(self.core.array.block(self.core.geometry.block_of(source)).reads),
            copybacks,
            kind: self.core.geometry.kind(self.core.geometry.split(source).1),
        };
        let Self { migration, core, .. } = self;
        let Core { ecc, reliability, .. } = core;
        migration.limit.allows(&condition, ecc, reliability)
    }

    /// A copyback has been programmed: the map follows.
    pub(super) fn on_copied_back(&mut self, done: &Transaction) {
        let source = done.replaces.expect("a copyback has a source");
        let (from, page) = self.core.geometry.split(source);
        self.core
            .stats
            .migration
            .on_copyback(self.core.array.block(self.core.geometry.block_of(done.ppn)).copybacks);
        self.core.array.read(from, page);
        self.core.array.copy_errors(self.core.geometry.block_of(done.ppn), from);
        // Unless the host has written the page meanwhile.
        if self.core.ftl.map.get(done.lpn) == Some(source) {
            self.core.ftl.remap(&self.core.geometry, &mut self.core.array, done.lpn, done.ppn);
            self.on_moved(self.core.geometry.plane_of(from), done.lpn, false);
            if let Some(cache) = &mut self.error_cache {
                cache.move_page(&mut self.core.known, source, done.ppn);
            }
        }
    }
}
