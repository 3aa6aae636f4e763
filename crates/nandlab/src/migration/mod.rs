//! Copybacks: a page is sensed and programmed elsewhere in its plane, with its bit errors, without leaving the die.
//!
//! The map changes at the end of a copyback, because until then the units of the page can be read only at their old
//! places. Translation pages, combination pages, partially refreshed units, data of persistently isolated placement
//! handles, and the units that refresh or read reclaim moves are always moved off-chip.
//!
//! D. Hong, M. Kim, J. Park, M. Jung and J. Kim, "Revitalizing copybacks in modern SSDs: why and how", DAC 2018.
//! `policy/` decides when copybacks are used; `limit.rs` bounds the consecutive copybacks of a unit: those since its
//! data was last corrected.
//!
//! When a job starts, the migration policy decides whether the victim's units are copied back. A fold of the SLC cache is
//! such a job: its copybacks sense pages in SLC mode and program them without it.
//! `Migration::may_copy_back` then checks every page against `CopybackLimit`, under the condition that its units would
//! have in their destination superblock; `background/copybacks.rs` lets pages wait until they fill a programming unit;
//! and `Migration::copy_back` asserts the same check after the units have been allocated. A page that the limit refuses
//! is moved off-chip, so a job needs room in both streams; if one stream has no room, the whole victim is moved
//! off-chip.
//!
//! The data of a copyback is in no buffer, so a pin keeps the superblock of the source until the copyback ends. If the
//! host has written or deallocated the unit meanwhile, the copy is invalid from the start. `Superblock::copybacks`, the
//! number of consecutive copybacks, applies to all units of the superblock; after a power loss it is read with the OOB,
//! and an open superblock continues in the stream of this number. The errors of a copy are those of
//! `Core::take_over_errors`: with `reliability.copyback = "constant"` the counts of its superblock, with `"propagate"`
//! a record of the unit (`Array::copied`: the RBER that the sense found, and the age stamp of the program), which a
//! correction in place and an erase remove.

mod limit;
pub(crate) mod notes;
mod policy;
pub(crate) mod spec;
mod stats;
#[cfg(test)]
mod tests;

use crate::base::state::state;
pub use crate::host::Occupancy;
pub use limit::CopybackLimit;
pub use policy::{COPYBACKS_MAX, MigrationPolicy, POLICIES, VictimView, make};
pub use spec::CopybackLimitSpec;
pub use stats::{MigrationStats, MigrationSummary};

use crate::base::geometry::{LaneId, PageKind, SuperblockId, UnitId};
use crate::base::policy::{PolicyFault, PolicySlot};
use crate::core::{Component, CopyBack, Core, Mechanism, NextJob, Queued};
use crate::flash::{AgeStamp, Condition, Superblock};
use crate::ftl::StreamId;
use crate::ftl::streams::OwnLpns;
use crate::probe::Probe;
use crate::sched::Cause;
use spec::MigrationSpec;

/// The migration policy with its limit and counters.
#[derive(Debug)]
pub(crate) struct Migration {
    policy: Box<dyn MigrationPolicy>,
    limit: CopybackLimit,
    /// The highest number of consecutive copybacks that the limit allows (Mcpb); 0: no copybacks.
    copybacks_max: u8,
    /// The least number of valid units with which a page is copied back; `migration.valid_min` is this number as a
    /// share of the page's units.
    valid_units_min: u32,
    pub(crate) stats: MigrationStats,
}

impl<P: Probe> Mechanism<P> for Migration {}

impl Migration {
    pub(crate) fn new<P: Probe>(spec: &MigrationSpec, by: Box<dyn MigrationPolicy>, core: &Core<P>) -> Self {
        let MigrationSpec { policy, valid_min, .. } = spec;
        let units = f64::from(core.geometry().units_per_page);
        Self {
            policy: by,
            limit: CopybackLimit::new(&policy.limit),
            copybacks_max: policy.copybacks_max(),
            // 1e-9 absorbs rounding.
            valid_units_min: ((valid_min * units - 1e-9).ceil() as u32).max(1),
            stats: MigrationStats::default(),
        }
    }

    /// Whether the policy uses the utilisation of the write buffer.
    pub(crate) fn watches_buffer(&self) -> bool {
        self.policy.watches_buffer()
    }
}

impl Migration {
    /// Returns the stream to which the units of a victim are copied back. `None`: the units are moved off-chip, because
    /// the job is a refresh or a reclaim, the victim has the highest number of copybacks, or holds translation or
    /// combination pages or data of a persistently isolated placement handle, the policy chooses off-chip, the erase
    /// would gain nothing after copybacks, or the lane has no room for copybacks. `buffer` returns the utilisation of the write buffer ([`VictimView::buffer`]).
    #[inline(never)]
    pub(crate) fn copyback_stream<P: Probe>(
        &mut self,
        core: &mut Core<P>,
        lane: LaneId,
        victim: SuperblockId,
        job: &NextJob,
        buffer: impl FnOnce(&Core<P>) -> f64,
    ) -> Option<StreamId> {
        let _inside = core.enter(Component::Migration);
        // Data is corrected off-chip.
        if job.corrects {
            return None;
        }
        let copybacks = core.superblock(victim).copybacks() + 1;
        if copybacks > self.copybacks_max {
            return None;
        }
        let off_chip = core.emptying_stream(victim, job.cause == Cause::Wear);
        let spec = core.streams().spec(off_chip);
        if spec.lpns != OwnLpns::None || spec.gc_of.is_some() || spec.class > 0 {
            return None;
        }
        let view = VictimView { is_urgent: job.is_urgent, buffer: buffer(core) };
        match self.policy.copies_back(&view) {
            Ok(true) => {}
            Ok(false) => {
                self.stats.victims_off_chip += 1;
                return None;
            }
            Err(error) => {
                core.fail_policy(PolicyFault { slot: PolicySlot::Migration, lane: Some(lane), error });
                return None;
            }
        }
        // Both streams need room: the stream of copybacks for all pages that may be copied back, the off-chip stream
        // for all valid units, because the limit may refuse every page. If the off-chip stream shares the open
        // superblock of the host, the room in it does not count: the host may use it up before the first refusal.
        let stream = core.streams().marked(copybacks).expect("migration has declared a stream for it");
        let valid = core.valid_units(victim);
        let (copied, left) = self.units_to_copy_back(core, victim, valid);
        // Copybacks also copy units without valid data, which must not take all units that the erase gives. A
        // superblock in SLC mode leaves the mode when it is erased.
        let moved = copied + left;
        if moved > valid && moved + core.first_shape().units_per_program > core.first_shape().units {
            self.stats.victims_without_gain += 1;
            return None;
        }
        let free = core.lane(lane).free.len();
        let superblocks = |stream| {
            let units = if stream == off_chip { valid } else { copied };
            core.ftl().superblocks_for(lane, stream, units)
        };
        let is_shared = core.ftl().shares_first_superblock && off_chip == StreamId::GC;
        let off_chip_superblocks = if is_shared { 1 } else { superblocks(off_chip) };
        if superblocks(stream) + off_chip_superblocks + core.ftl().flush_reserve_superblocks() > free {
            self.stats.victims_without_room += 1;
            return None;
        }
        self.stats.victims_copied_back += 1;
        Some(stream)
    }

    /// Returns the number of units, valid or not, of the pages of a victim that have enough valid units for a copyback,
    /// and the number of valid units of the other pages. `valid`: the number of valid units of the victim.
    fn units_to_copy_back<P: Probe>(&self, core: &Core<P>, victim: SuperblockId, valid: u32) -> (u32, u32) {
        let units = core.geometry().units_per_page;
        if units == 1 {
            return (valid, 0);
        }
        let firsts = (0..core.shape(victim).units).step_by(units as usize);
        let valid_by_page = firsts.map(|index| core.valid_in_page(core.geometry().unit(victim, index)));
        valid_by_page.fold((0, 0), |(copied, left), valid| {
            if valid >= self.valid_units_min { (copied + units, left) } else { (copied, left + valid) }
        })
    }

    /// Whether the page that begins with `first` may be copied back to `stream`: the limit allows the copyback of all
    /// its valid units, enough of its units are valid, and none is partially refreshed.
    #[inline(never)]
    pub(crate) fn may_copy_back<P: Probe>(
        &mut self,
        core: &mut Core<P>,
        lane: LaneId,
        stream: StreamId,
        first: UnitId,
    ) -> bool {
        let _inside = core.enter(Component::Migration);
        // A partially refreshed unit has to be merged with its susceptible bits, off-chip.
        if core.geometry().units_of_page(first).any(|unit| core.parts().is_marked(unit)) {
            return false;
        }
        if core.valid_in_page(first) < self.valid_units_min {
            self.stats.too_few_valid += 1;
            return false;
        }
        let next = core.ftl().next_unit(lane, stream);
        let copybacks = core.streams().spec(stream).copybacks();
        let may = next.is_some_and(|next| self.limit_allows(core, first, next, copybacks));
        self.stats.refused += u64::from(!may);
        may
    }

    /// Queues the copyback of pages that may be copied back.
    #[inline(never)]
    pub(crate) fn copy_back<P: Probe>(&mut self, core: &mut Core<P>, copyback: CopyBack<'_>) -> Queued {
        let CopyBack { stream, sources, .. } = copyback;
        let _inside = core.enter(Component::Migration);
        let queued = core.copy_back(copyback);
        let queued = queued.expect("copyback_stream has found room for all units of the victim");
        let superblock = core.geometry().superblock_of(queued.unit);
        let copybacks = core.streams().spec(stream).copybacks();
        // This is also checked in release builds, because a unit copied back too often may be uncorrectable.
        for &source in sources {
            assert!(
                core.superblock(superblock).copybacks() == copybacks
                    && self.limit_allows(core, source, queued.unit, copybacks),
                "{} is copied back beyond its limit",
                core.geometry().show(source),
            );
            self.stats.dead_units += u64::from(core.geometry().units_per_page - core.valid_in_page(source));
        }
        queued
    }

    /// Whether the limit allows copying the valid units of the page that begins with `first` back to the page of unit
    /// `next`. For a page that waits for others, as many pages are checked as a wordline has, each a row of units after
    /// the one before it; in a superblock on one die these are pages of every kind.
    fn limit_allows<P: Probe>(
        &mut self,
        core: &mut Core<P>,
        first: UnitId,
        next: UnitId,
        copybacks: u8,
    ) -> bool {
        let (superblock, index) = core.geometry().split(next);
        let units_per_row = core.geometry().units_per_row;
        // A page that waits for others may go to a page of another kind.
        let shape = core.shape(superblock);
        let rows = if shape.copybacks_wait() { shape.pages_per_wordline() } else { 1 };
        let sources = core.geometry().units_of_page(first);
        let mut pairs =
            sources.flat_map(|source| (0..rows).map(move |row| (source, index + row * units_per_row)));
        pairs.all(|(source, index)| {
            let kind = core.shape(superblock).kind(index);
            !core.is_valid(source) || self.allows(core, source, superblock, kind, copybacks)
        })
    }

    /// Whether the limit allows copying the unit at `source` back to a page of `kind` of `superblock`; it is the
    /// `copybacks`-th consecutive copyback of the unit.
    fn allows<P: Probe>(
        &mut self,
        core: &mut Core<P>,
        source: UnitId,
        superblock: SuperblockId,
        kind: PageKind,
        copybacks: u8,
    ) -> bool {
        let (from, of_source) = core.geometry().split(source);
        let reads_from = core.flash().reads_of(core.geometry(), from, of_source);
        let Superblock { pe_cycles, reads, .. } = *core.superblock(superblock);
        let [reprograms_from, reprograms] =
            [from, superblock].map(|superblock| core.flash().rare(superblock).reprograms);
        let (age_s, reads, carried) = if core.flash().keeps_copied() {
            // The retention of the copy begins with the copyback.
            (0, reads, if self.limit.is_measured() { core.rber_sensed(source) } else { 0.0 })
        } else {
            let corrected = core.flash().stamp(source).corrected;
            let knows_age = core.flash().keeps_ages() && corrected != AgeStamp::LOST;
            let age_s = if knows_age { corrected.age_s(core.age_now()) } else { 0 };
            // The copy takes over the reads and the programs in place of its source (`Core::take_over_errors`).
            let reprograms = f64::from(reprograms.max(reprograms_from));
            (age_s, reads.max(reads_from), core.reprogram_error() * reprograms)
        };
        let condition = Condition { pe_cycles, age_s, reads, copybacks, kind };
        let (ecc, reliability) = core.error_models();
        self.limit.allows(&condition, carried, ecc, reliability)
    }
}

state! { Migration { stats } fixed { policy, limit, copybacks_max, valid_units_min } }
