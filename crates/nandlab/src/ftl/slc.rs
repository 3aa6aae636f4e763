//! The superblocks of a lane that the host writes in SLC mode (`[slc]`).
//!
//! A superblock is in SLC mode from its opening to its erase. Any superblock may be: those of the *static part* are a
//! number of superblocks, not certain ones. The other streams of the host leave the lane its static part
//! ([`Lane::reserve_superblocks`]); the *dynamic part* is a share of the superblocks that are free for the host or in SLC
//! mode beyond the static part. So data that is written without SLC mode makes the dynamic part smaller.
//!
//! A superblock in SLC mode has fewer units than it gives when it is erased. So folding it, which moves its valid units
//! to superblocks of the first shape, always gains units. A lane in which writes wait for room folds the superblocks
//! beyond the static part before GC looks for a victim; without them it is a lane of fewer superblocks, and the argument
//! of `needs.rs` holds for it. A write of the host waits only when the superblock that is open in SLC mode has no unit
//! left, so that it can be folded too.

use super::lane::{AllocatedUnit, Lane};
use super::{Ftl, StreamId};
use crate::base::geometry::{LaneId, SuperblockId};
use crate::flash::{Array, ShapeId, SuperblockState};

/// How many superblocks of a lane the host may have in SLC mode.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct SlcShare {
    /// Superblocks of the static part.
    pub fixed: u32,
    /// The share of the dynamic part, from 0 to 1.
    pub dynamic: f64,
    /// Whether a write waits for a fold when no superblock is left to it (`slc.when_full = "fold"`).
    pub waits: bool,
}

impl SlcShare {
    /// The most superblocks of a lane that may be in SLC mode now.
    fn limit(&self, lane: &Lane) -> u32 {
        let beyond = lane.slc_superblocks.saturating_sub(self.fixed);
        let free = lane.free.len().saturating_sub(lane.reserve_superblocks + lane.promised_superblocks);
        // 1e-9 absorbs rounding, so that 0.29 of 100 superblocks are 29.
        self.fixed + (self.dynamic * f64::from(beyond + free) + 1e-9) as u32
    }

    /// Whether the host may open a further superblock of a lane in SLC mode.
    fn may_open(&self, lane: &Lane) -> bool {
        let is_fixed = lane.slc_superblocks < self.fixed;
        // Beyond the static part the host leaves itself a superblock to open without SLC mode.
        let keep = lane.reserve_superblocks + lane.promised_superblocks + u32::from(!is_fixed);
        let keep = keep.saturating_sub(self.fixed.saturating_sub(lane.slc_superblocks));
        // No other stream of the host may take a superblock of the static part, so it is never closed.
        (is_fixed || !lane.is_slc_closed) && lane.free.len() > keep && lane.slc_superblocks < self.limit(lane)
    }

    /// Whether `stream`, that of the host in SLC mode, can allocate a unit.
    pub(super) fn has_room(&self, lane: &Lane, stream: StreamId) -> bool {
        !lane.open[stream.index()].is_full() || self.may_open(lane)
    }
}

impl Lane {
    /// `more` further superblocks are in SLC mode, or fewer if it is negative. `reserve`: the reserve of every lane.
    pub(super) fn count_slc(&mut self, reserve: u32, slc: Option<&SlcShare>, more: i32) {
        self.slc_superblocks = self.slc_superblocks.saturating_add_signed(more);
        self.reserve_superblocks = reserve - slc.map_or(0, |slc| slc.fixed.min(self.slc_superblocks));
    }
}

impl Ftl {
    /// Allocates the next unit of the host in SLC mode.
    #[inline(never)]
    pub(super) fn allocate_slc(
        &mut self,
        array: &mut Array,
        lane: LaneId,
        stream: StreamId,
    ) -> Option<AllocatedUnit> {
        let has_room = self.slc.as_ref()?.has_room(&self.lanes[lane.index()], stream);
        if has_room { self.allocate_keeping(array, lane, stream, 0) } else { None }
    }

    /// How many superblocks of a lane the host may have in SLC mode; `None` without this mode.
    pub fn slc(&self) -> Option<&SlcShare> {
        self.slc.as_ref()
    }

    /// Whether the host can allocate a unit of a lane in SLC mode.
    pub fn has_slc_room(&self, lane: LaneId) -> bool {
        let (Some(slc), Some(stream)) = (&self.slc, self.streams.slc()) else { return false };
        slc.has_room(&self.lanes[lane.index()], stream)
    }

    /// The most superblocks of a lane that may be in SLC mode now; 0 without this mode.
    pub fn slc_limit(&self, lane: LaneId) -> u32 {
        self.slc.as_ref().map_or(0, |slc| slc.limit(&self.lanes[lane.index()]))
    }

    /// Makes the host open no further superblock of a lane in SLC mode, or allows it again.
    pub fn close_slc(&mut self, lane: LaneId, is_closed: bool) {
        self.lanes[lane.index()].is_slc_closed = is_closed;
    }

    /// The full superblock in SLC mode that was closed first in a lane; `None` if no such superblock has been closed.
    pub fn oldest_cached(&self, array: &Array, lane: LaneId) -> Option<SuperblockId> {
        if self.lanes[lane.index()].slc_superblocks == 0 {
            return None;
        }
        let cached = self.geometry.superblock_ids_of(lane);
        let cached = cached.filter(|&id| array.superblock(id).state == SuperblockState::Cached);
        cached.min_by_key(|&id| (array.superblock(id).closed_at, id.0))
    }

    /// The superblock of a lane that is folded for room: the oldest one in SLC mode, if the lane has some beyond its
    /// static part.
    pub fn to_fold(&self, array: &Array, lane: LaneId) -> Option<SuperblockId> {
        let slc = self.slc.as_ref()?;
        let is_beyond = self.lanes[lane.index()].slc_superblocks > slc.fixed;
        if is_beyond { self.oldest_cached(array, lane) } else { None }
    }

    /// Free superblocks of a lane that only internal streams, the emergency flush and the host in SLC mode may take.
    #[inline(always)]
    pub fn reserve_of(&self, lane: LaneId) -> u32 {
        self.lanes[lane.index()].reserve_superblocks
    }

    /// `superblock` leaves SLC mode, if it is in it. Of an erased superblock that is to become free again.
    pub(super) fn leave_slc(&mut self, array: &mut Array, superblock: SuperblockId) {
        if array.shape_id(superblock) == ShapeId::SLC {
            array.reshape(superblock, ShapeId::FIRST);
            self.end_slc(superblock);
        }
    }

    /// `superblock`, which has been free, is in SLC mode.
    pub(super) fn begin_slc(&mut self, superblock: SuperblockId) {
        let lane = self.geometry.lane_of(superblock).index();
        self.lanes[lane].count_slc(self.reserve_superblocks, self.slc.as_ref(), 1);
    }

    /// `superblock`, which was in SLC mode, has been erased.
    #[cold]
    pub(crate) fn end_slc(&mut self, superblock: SuperblockId) {
        let lane = self.geometry.lane_of(superblock).index();
        self.lanes[lane].count_slc(self.reserve_superblocks, self.slc.as_ref(), -1);
    }
}
