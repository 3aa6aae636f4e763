//! Copybacks: a page is sensed and programmed elsewhere in its plane, errors and all, without leaving the die.
//!
//! The map changes when the copyback is done, because until then the page can only be read where it was. Translation pages
//! are always moved off-chip.

mod buffer;
mod limit;
mod policy;
mod stats;

pub use buffer::BufferLoad;
pub use limit::{CopybackLimit, CopybackLimitSpec};
pub use policy::{COPYBACKS_MAX, MigrationPolicy, POLICIES, View, make};
pub use stats::MigrationStats;

use crate::background::JobCause;
use crate::base::geometry::{BlockId, Geometry, Lpn, PlaneId, Ppn};
use crate::base::units::{Span, Time};
use crate::core::{CopyBack, Core, Part, Queued};
use crate::flash::{Condition, Moment};
use crate::ftl::WriteStream;
use crate::probe::Probe;
use crate::sched::{Cause, Timing};
use crate::spec::Spec;

/// What the drive keeps for its migration policy.
#[derive(Debug)]
pub(crate) struct Migration {
    policy: Box<dyn MigrationPolicy>,
    limit: CopybackLimit,
    /// Most copybacks in a row (Mcpb); 0: none at all.
    most: u8,
    /// Pages of the write buffer.
    pub(crate) buffer_pages: u32,
    /// Pages of the write buffer on their way to flash, where the policy asks for it.
    load: Option<BufferLoad>,
}

impl Migration {
    pub(crate) fn new(spec: &Spec, geometry: &Geometry) -> Self {
        let policy = make(spec.migration.policy);
        let limit = CopybackLimit::new(&spec.migration.limit);
        // One block write time.
        let timing = Timing::new(&spec.timing, &spec.ecc, geometry);
        let block_ns: Span =
            (0..geometry.pages_per_block).map(|page| timing.transfer_ns + timing.program_ns(page)).sum();
        let load = policy.watches_buffer().then(|| BufferLoad::new(block_ns));
        Self { policy, most: spec.migration.copybacks_max(), limit, buffer_pages: 0, load }
    }
}

impl Migration {
    /// So many pages of the write buffer are on their way to flash.
    #[inline]
    pub(crate) fn on_load(&mut self, now: Time, pages: u32) {
        if let Some(load) = &mut self.load {
            load.set(now, pages);
        }
    }

    /// The stream that the pages of a victim are copied back to, if the policy wants copybacks and there is room for them.
    #[inline(never)]
    pub(crate) fn copyback_stream<P: Probe>(
        &mut self,
        core: &mut Core<P>,
        plane: PlaneId,
        victim: BlockId,
        cause: JobCause,
        is_urgent: bool,
    ) -> Option<WriteStream> {
        let _inside = core.inside.enter(Part::Copyback);
        // Refresh corrects, so it goes off-chip.
        if matches!(cause, JobCause::Refresh | JobCause::StayingRefresh) {
            return None;
        }
        let copybacks = core.array.block(victim).copybacks + 1;
        if copybacks > self.most {
            return None;
        }
        let off_chip = core.emptying_stream(victim, cause == JobCause::Wear);
        if matches!(off_chip, WriteStream::Mapping | WriteStream::Combination) {
            return None;
        }
        let capacity = f64::from(self.buffer_pages.max(1));
        let buffer = self.load.as_mut().map_or(0.0, |load| load.mean(core.now) / capacity);
        if !self.policy.copies_back(&View { is_urgent, buffer }) {
            core.stats.migration.victims_off_chip += 1;
            return None;
        }
        // A page that may not be copied back after all goes off-chip, so both ways need room.
        let stream = WriteStream::Copyback(copybacks);
        let valid = core.valid_pages(victim);
        let free = core.ftl.planes[plane.index()].free.len();
        let blocks = |stream| core.ftl.blocks_for(&core.geometry, plane, stream, valid);
        if blocks(stream) + blocks(off_chip) + core.ftl.flush_reserve_blocks() > free {
            core.stats.migration.victims_without_room += 1;
            return None;
        }
        core.stats.migration.victims_copied_back += 1;
        Some(stream)
    }

    /// Copies a page back, if its limit allows it.
    #[inline(never)]
    pub(crate) fn copy_back<P: Probe>(
        &mut self,
        core: &mut Core<P>,
        plane: PlaneId,
        stream: WriteStream,
        source: Ppn,
        lpn: Lpn,
        cause: Cause,
    ) -> Option<Queued> {
        let _inside = core.inside.enter(Part::Copyback);
        // A partially refreshed page has to be merged.
        if core.ftl.links.as_ref().is_some_and(|links| links.is_marked(source)) {
            return None;
        }
        let destination = core.ftl.next_block(&core.geometry, plane, stream);
        if !destination.is_some_and(|block| self.may_copy_back(core, source, block, stream.copybacks())) {
            core.stats.migration.refused += 1;
            return None;
        }
        let queued = core.copy_back(CopyBack { plane, stream, source, lpn, cause });
        let queued = queued.expect("a free block has been counted on");
        let block = core.geometry.block_of(queued.ppn);
        // In release builds too: nobody could read a page that has been copied back too often.
        assert!(
            core.array.block(block).copybacks == stream.copybacks()
                && self.may_copy_back(core, source, block, stream.copybacks()),
            "{} is copied back beyond its limit",
            core.geometry.show(source),
        );
        Some(queued)
    }

    /// Whether the page at `source` may go to `block` by its copyback number `copybacks` in a row.
    fn may_copy_back<P: Probe>(
        &mut self,
        core: &mut Core<P>,
        source: Ppn,
        block: BlockId,
        copybacks: u8,
    ) -> bool {
        let corrected = core.array.stamp(source).corrected;
        let knows_age = core.array.keeps_ages() && corrected != Moment::LOST;
        let condition = Condition {
            pe_cycles: core.array.block(block).pe_cycles,
            age_s: if knows_age { corrected.age_s(core.age_clock.at(core.now)) } else { 0 },
            reads: core.array.block(block).reads.max(core.array.block(core.geometry.block_of(source)).reads),
            copybacks,
            kind: core.geometry.kind(core.geometry.split(source).1),
        };
        let Core { ecc, reliability, .. } = core;
        self.limit.allows(&condition, ecc, reliability)
    }
}
