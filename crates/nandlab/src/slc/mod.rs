//! The SLC cache: the host writes superblocks in SLC mode while there is room, and folding moves their valid units to
//! superblocks of the first shape.
//!
//! In SLC mode a cell holds one bit. A superblock then has one page for each wordline: a third of its pages with cells of
//! three bits, and half of them with cells of two. Reads, programs and erases have the times of the mode. Which
//! superblocks the host may write in it is in `ftl/slc.rs`, and the choice between the modes for a write in
//! `host/writes.rs`.
//!
//! When no superblock is left to the host in SLC mode, it writes the superblocks of the first shape (`direct`), or waits
//! until a fold has made room (`fold`). With `direct` the dynamic part of the lane stays closed to SLC mode until folds in idle
//! time or above the watermark have made room: a fold for space alone would let the host write a third of what the fold has
//! just freed, and so on for every superblock. A superblock of the static part that is erased is open to the host at once.
//!
//! A fold is a background job of the lane: its superblock is the oldest one in SLC mode, whose valid units are moved by
//! the stream of GC. Reasons, in the order in which they are looked at:
//!
//! - *idle*: the host has been idle for `slc.idle_after` (and `gc.idle_after`);
//! - *full*: more than the share `slc.watermark` of what may be in SLC mode is, or with `fold` all of it. The die serves
//!   the job with the priority of host writes. While a write waits for it, the fold also precedes refresh and reclaim, of
//!   which some may always be due;
//! - *space*: the lane is short of space. Such a fold replaces a victim of GC. The static part is left as it is.
//!
//! Published drives of this kind and their rates are in `docs/explanation/slc-cache.md`. Deviations: the static part is a
//! number of superblocks, not certain ones, so that its wear is spread; and data that is read often is folded like other
//! data.

pub(crate) mod notes;
pub(crate) mod spec;
mod stats;
#[cfg(test)]
mod tests;

pub use stats::{SlcStats, SlcSummary, SlcValues, SlcWear};

use crate::base::geometry::{LaneId, SuperblockId};
use crate::base::state::{state, value};
use crate::base::units::Span;
use crate::core::{Core, Mechanism, NextJob, Offline, Section, SectionKind, SnapshotError, Wake};
use crate::flash::ShapeId;
use crate::probe::Probe;
use crate::sched::{Cause, Transaction};
use spec::SlcSpec;

/// Why a superblock is folded.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Reason {
    Idle,
    Full,
    Space,
}

/// The folds.
#[derive(Debug)]
pub(crate) struct Slc {
    watermark: f64,
    /// How much longer than `gc.idle_after` the host is idle before folds begin.
    after_idle_ns: Span,
    /// Whether the host has been idle for that long.
    is_rested: bool,
    /// By lane, why its last fold began.
    reasons: Box<[Reason]>,
    /// By superblock, its P/E cycles in SLC mode in a file that is being loaded; else empty.
    loaded_cycles: Vec<u32>,
    /// Units that preconditioning has written in SLC mode.
    pub(crate) filled: u64,
    pub(crate) stats: SlcStats,
}

impl Slc {
    /// The SLC cache with its settings, or folding alone after flushes in SLC mode; `None` in a drive without this mode.
    /// The drive counts as idle after `idle_after`.
    pub(crate) fn new<P: Probe>(spec: &SlcSpec, idle_after: Span, core: &Core<P>) -> Option<Self> {
        core.ftl().slc().is_some().then(|| Self {
            watermark: spec.watermark,
            after_idle_ns: spec.idle_after_ns.saturating_sub(idle_after),
            is_rested: false,
            reasons: vec![Reason::Space; core.geometry().lanes as usize].into(),
            loaded_cycles: Vec::new(),
            filled: 0,
            stats: SlcStats::default(),
        })
    }

    /// The drive counts as idle, or has counted as such (`again`) for as long as folds wait.
    pub(crate) fn on_idle<P: Probe>(&mut self, core: &mut Core<P>, again: bool) {
        self.is_rested = again || self.after_idle_ns == Span::ZERO;
        if !self.is_rested {
            core.set_clock(core.idle_clock(), core.now() + self.after_idle_ns);
        }
    }

    /// The program of a unit has ended.
    #[inline]
    pub(crate) fn on_programmed(&mut self, done: &Transaction) {
        if matches!(done.cause, Cause::Host | Cause::Sync) {
            let is_slc = done.shape == ShapeId::SLC;
            self.stats.cached += u64::from(is_slc);
            self.stats.direct += u64::from(!is_slc);
        }
    }

    /// Why a superblock of a lane is to be folded now, unless the lane is short of space; `None`: none is.
    fn reason<P: Probe>(&self, core: &Core<P>, lane: LaneId) -> Option<Reason> {
        if self.is_rested && core.state().is_idle {
            return Some(Reason::Idle);
        }
        let ftl = core.ftl();
        let (now, limit) = (core.lane(lane).slc_superblocks, ftl.slc_limit(lane));
        let is_above = f64::from(now) > self.watermark * f64::from(limit.max(now));
        (is_above || Self::lacks_room(core, lane)).then_some(Reason::Full)
    }

    /// Whether writes wait until a fold has made room in a lane: it has no room in SLC mode.
    fn lacks_room<P: Probe>(core: &Core<P>, lane: LaneId) -> bool {
        let ftl = core.ftl();
        ftl.slc().is_some_and(|slc| slc.waits) && !ftl.has_slc_room(lane)
    }

    /// A superblock of a lane has been opened or closed, or a write has found no room. If a superblock is to be folded
    /// while the host is busy, the lane starts its next job.
    pub(crate) fn look_at<P: Probe>(&mut self, core: &mut Core<P>, lane: LaneId) {
        if !core.has_job(lane) && self.reason(core, lane).is_some() && core.oldest_cached(lane).is_some() {
            core.wake(Wake::Due(lane));
        }
    }

    /// The fold for which a write waits.
    pub(crate) fn awaited_fold<P: Probe>(&mut self, core: &Core<P>, lane: LaneId) -> Option<NextJob> {
        let superblock = core.oldest_cached(lane).filter(|_| Self::lacks_room(core, lane))?;
        Some(self.begin(core, lane, superblock, Reason::Full))
    }

    /// The fold of a superblock for space.
    pub(crate) fn fold_for_room<P: Probe>(&mut self, core: &Core<P>, lane: LaneId) -> Option<NextJob> {
        let superblock = core.to_fold(lane)?;
        Some(self.begin(core, lane, superblock, Reason::Space))
    }

    /// The job that folds `superblock`, which begins.
    fn begin<P: Probe>(
        &mut self,
        core: &Core<P>,
        lane: LaneId,
        superblock: SuperblockId,
        reason: Reason,
    ) -> NextJob {
        self.stats.blocks += 1;
        *match reason {
            Reason::Idle => &mut self.stats.folded_idle,
            Reason::Full => &mut self.stats.folded_full,
            Reason::Space => &mut self.stats.folded_space,
        } += u64::from(core.valid_units(superblock));
        self.reasons[lane.index()] = reason;
        NextJob::emptying(superblock, Cause::Fold, reason != Reason::Idle)
    }

    /// A superblock in SLC mode has been erased.
    pub(crate) fn on_erased<P: Probe>(&mut self, core: &mut Core<P>, lane: LaneId) {
        if self.reasons[lane.index()] != Reason::Space {
            core.open_slc(lane);
        }
    }
}

/// The P/E cycles in SLC mode of every superblock.
const SECTION: SectionKind = SectionKind { name: "slc", version: 1 };

impl<P: Probe> Mechanism<P> for Slc {
    const SECTION: Option<SectionKind> = Some(SECTION);

    fn save(&self, core: &Core<P>) -> Option<Section> {
        let mut section = Section::new(SECTION);
        for superblock in (0..core.geometry().superblocks).map(SuperblockId) {
            section.put(core.flash().slc_cycles(superblock).into());
        }
        Some(section)
    }

    /// Without a section no superblock has been in SLC mode.
    fn load(&mut self, core: &Core<P>, from: Option<&mut Section>) -> Result<(), SnapshotError> {
        let Some(section) = from else { return Ok(()) };
        let cycles = (0..core.geometry().superblocks).map(|_| section.get());
        let cycles = cycles.map(|cycles| cycles.map(|cycles| cycles as u32));
        self.loaded_cycles = cycles.collect::<Result<_, _>>()?;
        Ok(())
    }

    fn loaded(&mut self, offline: &mut Offline<'_, P>) {
        for (superblock, cycles) in (0..).map(SuperblockId).zip(std::mem::take(&mut self.loaded_cycles)) {
            offline.set_slc_cycles(superblock, cycles);
        }
    }

    fn next_job(&mut self, core: &mut Core<P>, lane: LaneId) -> Option<NextJob> {
        let reason = self.reason(core, lane)?;
        let Some(superblock) = core.oldest_cached(lane) else {
            if reason == Reason::Idle {
                core.open_slc(lane);
            }
            return None;
        };
        Some(self.begin(core, lane, superblock, reason))
    }

    fn power_lost(&mut self, _: &mut Offline<'_, P>) {
        self.is_rested = false;
        self.reasons.fill(Reason::Space);
    }
}

value! { Reason enum { Idle, Full, Space } }
state! { Slc { is_rested, reasons, filled, stats } fixed { watermark, after_idle_ns, loaded_cycles } }
