//! Copybacks: a page is sensed and programmed elsewhere in its plane, with its bit errors, without leaving the die.
//!
//! The map changes at the end of a copyback, because until then the page can be read only at its old place. Translation
//! pages, combination pages, partially refreshed pages, and the pages that refresh or read reclaim moves are always
//! moved off-chip.
//!
//! D. Hong, M. Kim, J. Park, M. Jung and J. Kim, "Revitalizing copybacks in modern SSDs: why and how", DAC 2018.
//! `policy/` decides when copybacks are used; `limit.rs` bounds the number of copybacks in a row of a page.

mod limit;
pub(crate) mod notes;
mod policy;
pub(crate) mod spec;
mod stats;
#[cfg(test)]
mod tests;

pub use limit::CopybackLimit;
pub use policy::{COPYBACKS_MAX, MigrationPolicy, POLICIES, VictimView, make};
pub use spec::CopybackLimitSpec;
pub use stats::{MigrationStats, MigrationSummary};

use crate::base::geometry::{BlockId, PlaneId, Ppn};
use crate::core::{CopyBack, Core, NextJob, Part, Physics, Queued, Scheme};
use crate::flash::{AgeStamp, Block, Condition};
use crate::ftl::WriteStream;
use crate::probe::Probe;
use crate::sched::Cause;
use spec::MigrationPolicySpec;

/// The migration policy with its limit and counters.
#[derive(Debug)]
pub(crate) struct Migration {
    policy: Box<dyn MigrationPolicy>,
    limit: CopybackLimit,
    /// The highest number of copybacks in a row that the limit allows (Mcpb); 0: no copybacks.
    copybacks_max: u8,
    pub(crate) stats: MigrationStats,
}

impl<P: Probe> Scheme<P> for Migration {}

impl Migration {
    pub(crate) fn new(spec: &MigrationPolicySpec) -> Self {
        Self {
            policy: make(spec.name),
            limit: CopybackLimit::new(&spec.limit),
            copybacks_max: spec.copybacks_max(),
            stats: MigrationStats::default(),
        }
    }

    /// Whether the policy uses the utilisation of the write buffer.
    pub(crate) fn watches_buffer(&self) -> bool {
        self.policy.watches_buffer()
    }
}

impl Migration {
    /// Returns the stream to which the pages of a victim are copied back. `None`: the pages are moved off-chip, because
    /// the job is a refresh or a reclaim, the victim has reached the limit or holds translation or combination pages,
    /// the policy chooses off-chip, or the plane has no room for copybacks. `buffer` returns the utilisation of the
    /// write buffer ([`VictimView::buffer`]).
    #[inline(never)]
    pub(crate) fn copyback_stream<P: Probe>(
        &mut self,
        core: &mut Core<P>,
        plane: PlaneId,
        victim: BlockId,
        job: &NextJob,
        buffer: impl FnOnce(&Core<P>) -> f64,
    ) -> Option<WriteStream> {
        let _inside = core.inside.enter(Part::Copyback);
        // Data is corrected off-chip.
        if job.corrects {
            return None;
        }
        let copybacks = core.array.block(victim).copybacks + 1;
        if copybacks > self.copybacks_max {
            return None;
        }
        let off_chip = core.emptying_stream(victim, job.cause == Cause::Wear);
        if matches!(off_chip, WriteStream::Mapping | WriteStream::Combination) {
            return None;
        }
        let view = VictimView { is_urgent: job.is_urgent, buffer: buffer(core) };
        if !self.policy.copies_back(&view) {
            self.stats.victims_off_chip += 1;
            return None;
        }
        // Pages refused by the limit go off-chip, so both streams need room for all valid pages of the victim. The host
        // may use up an open block that it shares before the first page is refused, so this room counts as none.
        let stream = WriteStream::Copyback(copybacks);
        let valid = core.valid_pages(victim);
        let free = core.ftl.planes[plane.index()].free.len();
        let blocks = |stream| core.ftl.blocks_for(&core.geometry, plane, stream, valid);
        let is_shared = core.ftl.shares_first_block && off_chip == WriteStream::Gc;
        let off_chip_blocks = if is_shared { 1 } else { blocks(off_chip) };
        if blocks(stream) + off_chip_blocks + core.ftl.flush_reserve_blocks() > free {
            self.stats.victims_without_room += 1;
            return None;
        }
        self.stats.victims_copied_back += 1;
        Some(stream)
    }

    /// Queues the copyback of a page; returns `None` if the limit does not allow the copyback or the page is partially
    /// refreshed.
    #[inline(never)]
    pub(crate) fn copy_back<P: Probe>(&mut self, core: &mut Core<P>, copyback: CopyBack) -> Option<Queued> {
        let CopyBack { plane, stream, source, .. } = copyback;
        let _inside = core.inside.enter(Part::Copyback);
        // A partially refreshed page has to be merged with its susceptible bits, off-chip.
        if core.parts.is_marked(source) {
            return None;
        }
        let destination = core.ftl.next_page(&core.geometry, plane, stream);
        if !destination.is_some_and(|page| self.may_copy_back(core, source, page, stream.copybacks())) {
            self.stats.refused += 1;
            return None;
        }
        let queued = core.copy_back(copyback);
        let queued = queued.expect("copyback_stream has found room for all pages of the victim");
        let block = core.geometry.block_of(queued.ppn);
        // This is also checked in release builds, because a page copied back too often may be uncorrectable.
        assert!(
            core.array.block(block).copybacks == stream.copybacks()
                && self.may_copy_back(core, source, queued.ppn, stream.copybacks()),
            "{} is copied back beyond its limit",
            core.geometry.show(source),
        );
        Some(queued)
    }

    /// Whether the limit allows copying the page at `source` back to the page `destination`; this is copyback number
    /// `copybacks` in a row.
    fn may_copy_back<P: Probe>(
        &mut self,
        core: &mut Core<P>,
        source: Ppn,
        destination: Ppn,
        copybacks: u8,
    ) -> bool {
        let (block, page) = core.geometry.split(destination);
        let from = core.geometry.block_of(source);
        let reads_from = core.array.block(from).reads;
        let Block { pe_cycles, reads, .. } = *core.array.block(block);
        let [reprograms_from, reprograms] = [from, block].map(|block| core.array.rare(block).reprograms);
        let (age_s, reads, carried) = if core.array.keeps_copied() {
            // The retention of the copy begins with the copyback.
            (0, reads, if self.limit.is_measured() { core.rber_sensed(source) } else { 0.0 })
        } else {
            let corrected = core.array.stamp(source).corrected;
            let knows_age = core.array.keeps_ages() && corrected != AgeStamp::LOST;
            let age_s = if knows_age { corrected.age_s(core.physics.age_clock.at(core.now)) } else { 0 };
            // The copy takes over the reads and the programs in place of its source (`Core::take_over_errors`).
            let reprograms = f64::from(reprograms.max(reprograms_from));
            (age_s, reads.max(reads_from), core.physics.reprogram_error * reprograms)
        };
        let condition = Condition { pe_cycles, age_s, reads, copybacks, kind: core.geometry.kind(page) };
        let Physics { ecc, reliability, .. } = &mut core.physics;
        self.limit.allows(&condition, carried, ecc, reliability)
    }
}
