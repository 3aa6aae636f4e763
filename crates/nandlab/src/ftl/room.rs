//! The room that a lane has for each stream, and the free superblocks that it must keep.
//!
//! Units outside the lane of their LPN, after an emergency flush or under dynamic allocation, go to a lane only while
//! more than half a superblock's worth of garbage remains in it (`Ftl::is_overfull`); other lanes take the rest.

use super::allocation::Allocator;
use super::lane::{Lane, OpenSuperblock};
use super::placement::Place;
use super::streams::Writer;
use super::{FLUSH_KEEPS_SUPERBLOCKS, Ftl, StreamId};
use crate::base::geometry::{DieId, LaneId, Lpn, SuperblockId, UnitId};
use crate::sched::Device;
use std::cell::OnceCell;

impl Ftl {
    /// The numbers that no operation changes.
    pub(crate) fn fixed(&self) -> impl std::fmt::Debug + use<> {
        let lpns = (self.translation.clone(), self.first_combination, self.combination_pages);
        let superblocks = (
            self.reserve_superblocks,
            self.flush_reserve_superblocks,
            self.job_superblocks,
            self.taken_superblocks,
        );
        let placements = self.placements;
        (
            lpns,
            superblocks,
            self.needs.clone(),
            self.levelling,
            self.shares_first_superblock,
            placements,
            self.slc,
            self.flush_shape,
        )
    }

    /// The reclaim group of a die.
    pub fn group_of_die(&self, die: DieId) -> u16 {
        let lane = self.geometry.lanes_of(die).next();
        lane.map_or(0, |lane| self.placements.group_of(lane))
    }

    /// Whether a die is in a reclaim group.
    #[inline]
    pub fn is_in_group(&self, die: DieId, group: u16) -> bool {
        self.placements.groups == 1 || self.group_of_die(die) == group
    }

    /// Free superblocks of a lane that an emergency flush may take.
    pub fn flush_superblocks(&self, lane: LaneId) -> u32 {
        self.lanes[lane.index()].free.len().saturating_sub(FLUSH_KEEPS_SUPERBLOCKS)
    }

    /// Free superblocks of every lane that are certain to be available to an emergency flush.
    pub fn flush_room_superblocks(&self) -> u32 {
        self.flush_reserve_superblocks.saturating_sub(FLUSH_KEEPS_SUPERBLOCKS)
    }

    /// Free superblocks that every lane keeps for an emergency flush.
    pub fn flush_reserve_superblocks(&self) -> u32 {
        self.flush_reserve_superblocks
    }

    /// The invalid units that a full superblock has on average, at least, in a lane of superblocks that are not
    /// retired, when less than `foreground_free` of the units that can become free for the host is free; at least 1. A
    /// superblock's worth of garbage may be in the victim of a job and another one in open superblocks.
    pub fn garbage_per_superblock(&self, foreground_free: f64) -> u32 {
        let (superblocks, units_per_superblock) =
            (self.geometry.fewest_superblocks(), self.shapes.first().units);
        let spare = self.needs.usable_units(superblocks.into()).saturating_sub(self.needs.valid_units());
        let garbage = spare as f64 * (1.0 - foreground_free) - 2.0 * f64::from(units_per_superblock);
        ((garbage / f64::from(superblocks)) as u32).clamp(1, units_per_superblock)
    }

    /// Whether a lane keeps the flush reserve even if its job takes all free superblocks that it may take, of which the
    /// job has taken `taken` already.
    pub fn has_flush_reserve(&self, lane: LaneId, taken: u32) -> bool {
        self.lanes[lane.index()].free.len() + taken >= self.flush_reserve_superblocks + self.job_superblocks
    }

    /// Whether a translation page can be written back to `lane` without taking a free superblock that the job under way
    /// may need or that is kept for an emergency flush.
    pub fn has_mapping_room(&self, lane: LaneId) -> bool {
        let Some(stream) = self.streams.map() else { return false };
        let state = &self.lanes[lane.index()];
        let open = state.open[stream.index()];
        !open.is_full() || state.free_superblocks() > self.job_superblocks + self.flush_reserve_superblocks
    }

    /// Whether a combination page can be written to its `stream` of `lane` without taking a free superblock that the job under way,
    /// translation pages or an emergency flush may need. The lane must also have enough garbage for GC to gain units.
    pub fn has_combination_room(&self, lane: LaneId, stream: StreamId) -> bool {
        let state = &self.lanes[lane.index()];
        // Host units and translation pages count at their maximum, because every LPN may be mapped later.
        let units = self.needs.valid_units() as u32 + state.combinations;
        if self.is_overfull(lane)
            || state.leaves_little_garbage(self.shapes.first(), self.taken_superblocks, units)
        {
            return false;
        }
        let open = state.open[stream.index()];
        let keep = self.job_superblocks + self.flush_reserve_superblocks + self.map_superblocks;
        !open.is_full() || state.free_superblocks() > keep
    }

    /// Free superblocks that a lane must have when no job is under way: GC's superblock and the flush reserve.
    pub fn kept_superblocks(&self) -> u32 {
        self.gc_superblocks + self.flush_reserve_superblocks
    }

    /// Whether a lane has so many valid units that GC may gain nothing: at most half a superblock's worth of garbage is
    /// left, whereas GC needs one superblock's worth.
    pub fn is_overfull(&self, lane: LaneId) -> bool {
        let state = &self.lanes[lane.index()];
        state.leaves_little_garbage(self.shapes.first(), self.taken_superblocks, state.valid)
    }

    /// The share of the drive's superblocks that are free, among the superblocks that are not retired. `soon_free`
    /// superblocks more count as free.
    pub fn free_share(&self, soon_free: u32) -> f64 {
        let (free, usable) = self
            .lanes
            .iter()
            .fold((0, 0), |(free, usable), lane| (free + lane.free.len(), usable + lane.usable_superblocks));
        f64::from(free + soon_free) / f64::from(usable.max(1))
    }

    /// The lane for a host write of `lpn` to `stream` in a reclaim group; `None` if dynamic allocation finds no lane with
    /// room. Under static allocation the drive has one group.
    #[inline]
    pub fn choose_lane(&mut self, device: &Device, lpn: Lpn, stream: StreamId, group: u16) -> Option<LaneId> {
        if self.allocator.is_static() {
            return Some(self.allocator.home(lpn));
        }
        self.choose_any_lane(device, stream, group)
    }

    /// The lane for a host write under dynamic allocation.
    #[inline(never)]
    fn choose_any_lane(&mut self, device: &Device, stream: StreamId, group: u16) -> Option<LaneId> {
        let handle = self.streams.handle_of(stream).unwrap_or(0);
        let placement = self.placements.number(Place { group, handle });
        if let Allocator::Dynamic { lanes, .. } = &self.allocator
            && let Some(lane) = lanes[placement]
            && self.is_amid_program(lane, stream)
        {
            return Some(lane);
        }
        // Two copies, so that each asks its lanes inline.
        match self.slc {
            Some(slc) if self.streams.slc() == Some(stream) => {
                self.choose_with_room(device, stream, group, placement, |state| slc.has_room(state, stream))
            }
            _ => {
                let shares = self.shares_first_superblock;
                self.choose_with_room(device, stream, group, placement, |state| {
                    state.has_room(stream, shares)
                })
            }
        }
    }

    /// The lane for a write with the placement of this number, among those for which `has_room` is true.
    #[inline(always)]
    fn choose_with_room(
        &mut self,
        device: &Device,
        stream: StreamId,
        group: u16,
        placement: usize,
        has_room: impl Fn(&Lane) -> bool,
    ) -> Option<LaneId> {
        let Self { geometry, allocator, lanes, shapes, taken_superblocks, placements, .. } = self;
        let shape = shapes.first();
        let has_little = |state: &Lane| state.leaves_little_garbage(shape, *taken_superblocks, state.valid);
        let of_group = placements.lane_range(group);
        let first = of_group.start;
        let of_group = &lanes[of_group];
        let is_any_ample = OnceCell::new();
        // While another lane has enough garbage for GC, a lane with little garbage takes no more writes.
        let is_full = |state: &Lane| {
            let is_ample = |state: &Lane| !state.is_worn_out && !has_little(state);
            has_little(state) && *is_any_ample.get_or_init(|| of_group.iter().any(is_ample))
        };
        // While writes wait, mostly no lane or one lane has room, which this search finds out faster than a choice by
        // load.
        let index = of_group.iter().position(&has_room)?;
        let is_only = !of_group[index + 1..].iter().any(&has_room);
        if is_only && geometry.dies_per_lane == 1 {
            let lane = LaneId((first + index) as u32);
            return (!is_full(&of_group[index]))
                .then(|| allocator.take(geometry.die_of(lane), lane, placement));
        }
        allocator.choose(geometry, device, placement, |lane| {
            let state = &lanes[lane.index()];
            let open = state.open[stream.index()];
            (placements.is_in(lane, group) && has_room(state) && !is_full(state))
                .then(|| state.free_superblocks() * shape.units + open.room(shape.units_per_full_row))
        })
    }

    /// Whether the last programming unit of a stream has units left.
    #[inline]
    pub fn is_amid_program(&self, lane: LaneId, stream: StreamId) -> bool {
        let open = self.lanes[lane.index()].open[self.open_of(stream)];
        !open.is_full() && self.shapes[open.shape].place_in_program(UnitId(open.next)) > 0
    }

    /// Whether `stream`, one of the host's by placement, can allocate a unit in `lane` now.
    #[inline]
    pub fn has_room(&self, lane: LaneId, stream: StreamId) -> bool {
        self.lanes[lane.index()].has_room(stream, self.shares_first_superblock)
    }

    /// The unit that `stream` would allocate now in `lane`; `None` if there is no such unit.
    pub fn next_unit(&self, lane: LaneId, stream: StreamId) -> Option<UnitId> {
        let state = &self.lanes[lane.index()];
        let open = state.open[self.open_of(stream)];
        if !open.is_full() {
            return Some(UnitId(open.next));
        }
        let first = self.geometry.first_superblock(lane).0;
        state.free.next().map(|within| self.geometry.unit(SuperblockId(first + within), 0))
    }

    /// The die of the unit that `stream` would allocate now in `lane`; `None` if there is no such unit.
    pub fn next_die(&self, lane: LaneId, stream: StreamId) -> Option<DieId> {
        let (superblock, index) = self.geometry.split(self.next_unit(lane, stream)?);
        Some(self.geometry.die_of_unit(superblock, index))
    }

    /// The number of free superblocks that `stream` must open in `lane` for `units` units.
    pub fn superblocks_for(&self, lane: LaneId, stream: StreamId, units: u32) -> u32 {
        let open = self.lanes[lane.index()].open[self.open_of(stream)];
        let of_superblock = OpenSuperblock { next: 0, end: self.shapes.first().units, ..open };
        let row = self.shapes.first().units_per_full_row;
        units.saturating_sub(open.room(row)).div_ceil(of_superblock.room(row))
    }

    /// The number of units that an internal `stream` of `lane` can still allocate.
    pub fn stream_room(&self, lane: LaneId, stream: StreamId) -> u32 {
        let state = &self.lanes[lane.index()];
        let open = state.open[self.open_of(stream)];
        let of_superblock = OpenSuperblock { next: 0, end: self.shapes.first().units, ..open };
        let row = self.shapes.first().units_per_full_row;
        open.room(row) + state.free.len() * of_superblock.room(row)
    }

    /// The number of erased units of a lane that are not allocated to a program.
    #[inline]
    pub fn free_units(&self, lane: LaneId) -> u32 {
        let state = &self.lanes[lane.index()];
        debug_assert_eq!(state.free_units, state.count_free_units(self.shapes.first()), "free units");
        state.free_units
    }

    /// The number of units of the host's open superblocks that are not allocated.
    pub fn host_units_open(&self, lane: LaneId) -> u32 {
        let open = &self.lanes[lane.index()].open;
        self.streams.sum_of_hosts(|stream| open[stream.index()].left())
    }

    /// The number of units that `stream` of `lane` can allocate without opening a superblock.
    pub fn units_open(&self, lane: LaneId, stream: StreamId) -> u32 {
        let open = self.lanes[lane.index()].open[self.open_of(stream)];
        open.room(self.shapes.first().units_per_full_row)
    }

    /// The latest superblock of `stream` in a lane, and the number of its units that are allocated.
    pub fn latest_superblock(&self, lane: LaneId, stream: StreamId) -> Option<(SuperblockId, u32)> {
        let open = self.lanes[lane.index()].open[stream.index()];
        let last = UnitId(open.end.checked_sub(1)?);
        Some((self.geometry.superblock_of(last), self.shapes[open.shape].units - open.left()))
    }

    /// The number of units that can be allocated in the open superblocks for GC, wear levelling and copybacks.
    pub fn job_units_open(&self, lane: LaneId) -> u32 {
        let open = &self.lanes[lane.index()].open;
        let is_of_job = |&stream: &StreamId| self.streams.spec(stream).writer == Writer::Job;
        let room = |stream: StreamId| open[self.open_of(stream)].room(self.shapes.first().units_per_full_row);
        self.streams.ids().filter(is_of_job).map(room).sum()
    }

    /// The number of units of a lane that can become free for the host: units that are not valid, without those of the
    /// superblocks that are kept from the host or may be open for internal streams.
    pub fn host_spare_units(&self, lane: LaneId) -> u32 {
        self.spare_units(lane).saturating_sub(self.taken_superblocks * self.shapes.first().units)
    }

    /// The number of units of a lane that are not valid and can become free; units of retired superblocks do not count.
    #[inline]
    pub fn spare_units(&self, lane: LaneId) -> u32 {
        let state = &self.lanes[lane.index()];
        (state.usable_superblocks * self.shapes.first().units).saturating_sub(state.valid)
    }
}
