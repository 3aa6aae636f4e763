//! Reclaim units of several superblocks (`placement.reclaim_unit`): superblocks of a lane that a stream fills one after
//! another, and that GC empties one after another.
//!
//! The number of its unit is in the OOB of a superblock (`Array::reclaim_unit`). GC selects the superblocks of the unit from
//! which it has taken a victim before the policy picks again. If a superblock of a unit becomes a victim while a stream
//! still fills the unit, the stream goes on in a new one.

use super::Ftl;
use super::streams::{OwnLpns, StreamId, Streams};
use crate::base::geometry::{Geometry, LaneId, SuperblockId, UnitId};
use crate::base::state::{state, value};
use crate::flash::{Array, SuperblockState};

/// The reclaim unit that a stream of a lane fills.
#[derive(Clone, Copy, Debug, Default)]
struct OpenUnit {
    /// The number of the unit; 0: the stream has filled none yet.
    number: u32,
    /// Superblocks that it still takes, beside those that it has.
    left: u32,
}

/// The reclaim units of a drive.
#[derive(Clone, Debug)]
pub(super) struct ReclaimUnits {
    /// Superblocks of a unit.
    size: u32,
    /// Streams of the drive.
    streams: usize,
    /// By lane and stream.
    open: Box<[OpenUnit]>,
    /// By lane, the unit that GC empties; 0: none.
    emptied: Box<[u32]>,
    /// The number of the newest unit.
    newest: u32,
}

impl ReclaimUnits {
    /// The units of a drive with this flash array; `None` if each unit is one superblock.
    pub(super) fn new(size: u32, streams: &Streams, geometry: &Geometry, array: &Array) -> Option<Self> {
        let (lanes, streams) = (geometry.lanes as usize, streams.count());
        let numbers =
            (0..geometry.superblocks).map(|superblock| array.reclaim_unit(SuperblockId(superblock)));
        (size > 1).then(|| Self {
            size,
            streams,
            open: vec![OpenUnit::default(); lanes * streams].into(),
            emptied: vec![0; lanes].into(),
            newest: numbers.max().unwrap_or(0),
        })
    }

    fn open_of(&mut self, lane: LaneId, stream: StreamId) -> &mut OpenUnit {
        &mut self.open[lane.index() * self.streams + stream.index()]
    }

    /// A stream of a lane begins a new unit with this superblock.
    fn begin(&mut self, array: &mut Array, lane: LaneId, stream: StreamId, superblock: SuperblockId) {
        self.newest += 1;
        let begun = OpenUnit { number: self.newest, left: self.size - 1 };
        *self.open_of(lane, stream) = begun;
        array.set_reclaim_unit(superblock, begun.number);
    }
}

impl Ftl {
    /// A stream has opened a superblock: it belongs to the unit that the stream fills, or begins a new one.
    #[cold]
    pub(super) fn add_to_unit(&mut self, array: &mut Array, stream: StreamId, superblock: SuperblockId) {
        let Some(units) = &mut self.units else { return };
        if self.streams.spec(stream).lpns != OwnLpns::None {
            return;
        }
        let lane = self.geometry.lane_of(superblock);
        let open = units.open_of(lane, stream);
        match open.left.checked_sub(1) {
            Some(left) => {
                open.left = left;
                array.set_reclaim_unit(superblock, open.number);
            }
            None => units.begin(array, lane, stream, superblock),
        }
    }

    /// The number of the unit that a stream fills, and the superblocks that it still takes.
    pub(crate) fn open_unit(&self, lane: LaneId, stream: StreamId) -> (u32, u32) {
        let open = |units: &ReclaimUnits| units.open[lane.index() * units.streams + stream.index()];
        let open = self.units.as_ref().map(open).unwrap_or_default();
        (open.number, open.left)
    }

    /// Sets [`Ftl::open_unit`].
    pub(crate) fn set_open_unit(&mut self, lane: LaneId, stream: StreamId, (number, left): (u32, u32)) {
        if let Some(units) = &mut self.units {
            *units.open_of(lane, stream) = OpenUnit { number, left };
            units.newest = units.newest.max(number);
        }
    }

    /// Superblocks that the unit which a stream fills takes beside those that it has.
    pub fn superblocks_left_in_unit(&self, lane: LaneId, stream: StreamId) -> u32 {
        self.open_unit(lane, stream).1
    }

    /// The superblocks of a reclaim unit.
    pub fn superblocks_of_unit(&self) -> u32 {
        self.units.as_ref().map_or(1, |units| units.size)
    }

    /// Ends the unit that a stream fills: the next superblock that the stream opens begins another.
    pub fn end_unit(&mut self, lane: LaneId, stream: StreamId) {
        if let Some(units) = &mut self.units {
            units.open_of(lane, stream).left = 0;
        }
    }

    /// GC empties `victim`, and then the other superblocks of its unit. If a stream still fills this unit, it goes on in a
    /// new one, which begins with the superblock that it has open. Returns this stream, and the units that were left.
    pub fn begin_unit(&mut self, array: &mut Array, victim: SuperblockId) -> Option<(StreamId, u32)> {
        let (lane, number) = (self.geometry.lane_of(victim), array.reclaim_unit(victim));
        let units = self.units.as_mut()?;
        units.emptied[lane.index()] = number;
        let mut filling = self.streams.ids();
        let stream = filling.find(|&stream| number > 0 && units.open_of(lane, stream).number == number)?;
        let open = self.lanes[lane.index()].open[stream.index()];
        let left = units.open_of(lane, stream).left * self.shapes.first().units + open.left();
        if left == 0 {
            return None;
        }
        *units.open_of(lane, stream) = OpenUnit::default();
        if !open.is_full() {
            let superblock = self.geometry.superblock_of(UnitId(open.next));
            units.begin(array, lane, stream, superblock);
        }
        Some((stream, left))
    }

    /// A full superblock of the unit that GC empties in a lane: the one with the lowest number.
    pub(super) fn rest_of_unit(&self, array: &Array, lane: LaneId) -> Option<SuperblockId> {
        let number = self.units.as_ref()?.emptied[lane.index()];
        if number == 0 {
            return None;
        }
        let mut superblocks = self.geometry.superblock_ids_of(lane);
        superblocks.find(|&superblock| {
            array.reclaim_unit(superblock) == number
                && array.superblock(superblock).state == SuperblockState::Full
        })
    }

    /// After a recovery or a load: the streams of a lane go on in the units of their open superblocks. A stream without one
    /// begins a new unit: nothing in the OOB tells whether its last unit had ended early.
    pub(super) fn resume_units(&mut self, array: &Array, lane: LaneId) {
        let Some(units) = &mut self.units else { return };
        let superblocks = || self.geometry.superblock_ids_of(lane);
        let number_of = |superblock: SuperblockId| array.reclaim_unit(superblock);
        units.newest = units.newest.max(superblocks().map(number_of).max().unwrap_or(0));
        for stream in self.streams.ids() {
            let open = self.lanes[lane.index()].open[stream.index()];
            let number = match open.is_full() {
                false => number_of(self.geometry.superblock_of(UnitId(open.next))),
                true => 0,
            };
            let taken = superblocks().filter(|&superblock| number_of(superblock) == number).count() as u32;
            let left = if number > 0 { units.size.saturating_sub(taken) } else { 0 };
            *units.open_of(lane, stream) = OpenUnit { number, left };
        }
    }
}

value! { OpenUnit { number, left } }
state! { ReclaimUnits { open, emptied, newest } fixed { size, streams } }
