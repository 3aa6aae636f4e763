//! Copybacks: a page is sensed and programmed elsewhere in its plane, errors and all, without leaving the die.
//!
//! The map changes when the copyback is done, because until then the page can only be read where it was. Translation pages
//! are always moved off-chip.

use super::Drive;
use super::background::JobCause;
use crate::ftl::migration::{self, BufferLoad, CopybackLimit, MigrationPolicy, View};
use crate::ftl::{Place, WriteStream};
use crate::geometry::{BlockId, Geometry, Lpn, PlaneId, Ppn};
use crate::nand::{Condition, Moment, Timing};
use crate::probe::Probe;
use crate::sched::{Cause, Class, Kind, Transaction};
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
            load.set(self.now, caching.cache.writing());
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
        // Refresh corrects, so it goes off-chip.
        if matches!(cause, JobCause::Refresh | JobCause::StayingRefresh) {
            return None;
        }
        let copybacks = self.array.block(victim).copybacks + 1;
        if copybacks > self.migration.most {
            return None;
        }
        let off_chip = self.ftl.emptying_stream(&self.geometry, &self.array, victim, cause == JobCause::Wear);
        if matches!(off_chip, WriteStream::Mapping | WriteStream::Combination) {
            return None;
        }
        let capacity = f64::from(self.cache_pages()[0].max(1));
        let buffer = self.migration.load.as_mut().map_or(0.0, |load| load.mean(self.now) / capacity);
        if !self.migration.policy.copies_back(&View { is_urgent, buffer }) {
            self.stats.migration.victims_off_chip += 1;
            return None;
        }
        // A page that may not be copied back after all goes off-chip, so both ways need room.
        let stream = WriteStream::Copyback(copybacks);
        let valid = u32::from(self.array.block(victim).valid);
        let free = self.ftl.planes[plane.index()].free.len();
        let blocks = |stream| self.ftl.blocks_for(&self.geometry, plane, stream, valid);
        if blocks(stream) + blocks(off_chip) > free {
            self.stats.migration.victims_without_room += 1;
            return None;
        }
        self.stats.migration.victims_copied_back += 1;
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
        // A partially refreshed page has to be merged.
        if self.ftl.links.as_ref().is_some_and(|links| links.is_marked(source)) {
            return false;
        }
        let destination = self.ftl.next_block(&self.geometry, plane, stream);
        if !destination.is_some_and(|block| self.may_copy_back(source, block, stream.copybacks())) {
            self.stats.migration.refused += 1;
            return false;
        }
        let place = self.ftl.allocate(&self.geometry, &mut self.array, plane, stream);
        let Place { ppn, opened, skips } = place.expect("a free block has been counted on");
        self.jobs[plane.index()].blocks_taken += u32::from(opened);
        let block = self.geometry.block_of(ppn);
        // In release builds too: nobody could read a page that has been copied back too often.
        assert!(
            self.array.block(block).copybacks == stream.copybacks()
                && self.may_copy_back(source, block, stream.copybacks()),
            "{} is copied back beyond its limit",
            self.geometry.show(source),
        );
        self.array.stage(ppn, lpn, self.array.stamp(source));
        let mut copyback = self.transaction(Kind::Copyback, ppn, lpn, plane.0, cause, Class::Background);
        copyback.skips = skips;
        copyback.replaces = Some(source);
        self.hold(source);
        let slot = self.pool.insert(copyback);
        self.enqueue(slot);
        true
    }

    /// Whether the page at `source` may go to `block` by its copyback number `copybacks` in a row.
    fn may_copy_back(&mut self, source: Ppn, block: BlockId, copybacks: u8) -> bool {
        let corrected = self.array.stamp(source).corrected;
        let knows_age = self.array.keeps_ages() && corrected != Moment::LOST;
        let condition = Condition {
            pe_cycles: self.array.block(block).pe_cycles,
            age_s: if knows_age { corrected.age_s(self.age_clock.at(self.now)) } else { 0 },
            reads: self.array.block(block).reads.max(self.array.block(self.geometry.block_of(source)).reads),
            copybacks,
            kind: self.geometry.kind(self.geometry.split(source).1),
        };
        let Self { migration, ecc, reliability, .. } = self;
        migration.limit.allows(&condition, ecc, reliability)
    }

    /// A copyback has been programmed: the map follows.
    pub(super) fn on_copied_back(&mut self, done: &Transaction) {
        let source = done.replaces.expect("a copyback has a source");
        let (from, page) = self.geometry.split(source);
        self.stats.migration.on_copyback(self.array.block(self.geometry.block_of(done.ppn)).copybacks);
        self.array.read(from, page);
        self.array.copy_errors(self.geometry.block_of(done.ppn), from);
        // Unless the host has written the page meanwhile.
        if self.ftl.map.get(done.lpn) == Some(source) {
            self.ftl.remap(&self.geometry, &mut self.array, done.lpn, done.ppn);
            self.on_moved(self.geometry.plane_of(from), done.lpn, false);
            if let Some(cache) = &mut self.error_cache {
                cache.move_page(source, done.ppn);
            }
        }
    }
}
