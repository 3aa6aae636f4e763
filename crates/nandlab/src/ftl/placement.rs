//! `[placement]`: placement handles, NVMe's Flexible Data Placement (FDP).
//!
//! The host names with each write a *placement handle*. In each lane every handle fills an open superblock of its own, so
//! data of different handles shares no superblock when it is written. What GC does with it is the handle's *isolation*:
//! GC mixes the data of initially isolated handles in superblocks of its own, and keeps the data of a persistently
//! isolated handle by itself. *Reclaim groups* divide the drive: data is written, and moved, only within its group, which
//! is the lanes of consecutive dies.
//!
//! A request has a *placement identifier* of 16 bits: the reclaim group in the upper bits, as many as the number of a
//! group needs, and the handle in the others. With one group the identifier is the handle.
//!
//! NVM Express Base Specification 2.1, sections 3.2.4 and 8.1.10 (TP4146): reclaim unit handles, their types
//! `initially isolated` and `persistently isolated`, reclaim groups, and the format of the identifier.

use crate::base::geometry::LaneId;
use crate::spec::{
    Choices, FromVal, Listed, Params, Val, ValueKind, choices, int, key, param, params, section,
};
use nandlab_base::clients::{BOUND, Bound};
use std::ops::Range;

/// The largest number of handles.
pub const HANDLES_MAX: u16 = 16;

/// The largest number of reclaim groups.
pub const GROUPS_MAX: u16 = 64;

/// The largest number of superblocks of a reclaim unit.
pub const RECLAIM_UNIT_MAX: u32 = 4096;

choices! {
    /// An item of `placement.isolation`: what GC does with the data of a handle.
    #[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
    pub enum Isolation {
        /// GC mixes the data with that of other initially isolated handles of the reclaim group.
        #[default]
        Initial = "initial": "GC mixes the data with that of other initially isolated handles of the group",
        /// GC keeps the data of the handle by itself.
        Persistent = "persistent": "GC keeps the data of the handle by itself",
    }
}

impl Isolation {
    /// The isolation in a word, as in the spec.
    pub fn name(self) -> &'static str {
        self.choice().name
    }
}

pub(crate) const ISOLATION: &str = "placement.isolation";
pub(crate) const RANGES: &str = "placement.ranges";

/// The largest number of ranges of addresses.
const RANGES_MAX: usize = 256;

const ISOLATIONS: ValueKind =
    ValueKind::Either(&[ValueKind::Slot(Isolation::CHOICES), ValueKind::Texts(HANDLES_MAX as usize)]);

section! {
    /// `[placement]`: placement handles (NVMe FDP).
    #[derive(Clone, Debug, PartialEq)]
    pub struct PlacementSpec {
        /// Placement handles; 1: writes are not told apart.
        pub handles: u16 = key(
            "placement.handles",
            int(1, HANDLES_MAX as u64),
            "1",
            "placement handles (NVMe FDP), each with an open block of its own in every plane; 1: none",
        ) => |values, path| values.get(path).map_or(1, Val::int) as u16,
        /// Reclaim groups, each the lanes of as many consecutive dies.
        pub groups: u16 = key(
            "placement.groups",
            int(1, GROUPS_MAX as u64),
            "1",
            "reclaim groups, each of as many consecutive dies; data never leaves its group",
        ) => |values, path| values.get(path).map_or(1, Val::int) as u16,
        /// The isolation of every handle (one item), or of each handle.
        pub isolation: Vec<Isolation> = key(
            "placement.isolation",
            ISOLATIONS,
            "\"initial\"",
            "whether GC mixes the data of handles (initial) or keeps it by itself (persistent): one value, or a list with \
             one for each handle",
        ) => |values, path| values.get(path).map_or_else(Vec::new, isolations),
        /// Superblocks of a lane that a handle fills, and GC empties, together.
        pub reclaim_unit: u32 = key(
            "placement.reclaim_unit",
            int(1, RECLAIM_UNIT_MAX as u64),
            "1",
            "blocks of a plane (ftl.superblock) that a handle fills, and GC empties, one after another",
        ),
        /// Ranges of addresses whose writes have a placement, unless the request names one.
        pub ranges: Vec<PlacementRange> = key(
            "placement.ranges",
            ValueKind::List(PlacementRange::PARAMS, RANGES_MAX),
            "",
            "ranges of addresses whose writes have a placement, unless the request names one above 0",
        ) => |values, path| values.get(path).map_or_else(Vec::new, |ranges| {
            ranges.list().iter().map(PlacementRange::from_val).collect()
        }),
    }
}

params! {
    /// An item of `placement.ranges`: a write whose first byte is in the range has the placement.
    #[derive(Clone, Debug, PartialEq)]
    pub struct PlacementRange {
        /// The beginning.
        pub from: Bound =
            param("from", BOUND, "0.0", "beginning of the range, as a share of the logical space or a size"),
        /// The end, which does not belong to the range.
        pub to: Bound = param("to", BOUND, "1.0", "end of the range, as a share of the logical space or a size"),
        /// The placement identifier.
        pub placement: u16 =
            param("placement", int(0, u16::MAX as u64), "", "placement identifier of the writes")
            => |val| val.int() as u16,
    }
}

/// The items of `placement.isolation`. A text that is no isolation, which a rule refuses, counts as `initial`.
pub(crate) fn isolations(val: &Val) -> Vec<Isolation> {
    let of_text = |text: &str| {
        let is_named = |isolation: &&Isolation| isolation.name() == text;
        Isolation::ALL.iter().find(is_named).copied().unwrap_or_default()
    };
    match val {
        Val::List(items) => items.iter().map(|item| of_text(item.text())).collect(),
        one => vec![Isolation::from_val(one)],
    }
}

/// A placement identifier in its parts.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct Place {
    /// The reclaim group.
    pub group: u16,
    /// The placement handle.
    pub handle: u16,
}

impl PlacementSpec {
    /// Whether the drive has placement handles: more than one handle or group, or reclaim units of several superblocks.
    pub fn is_on(&self) -> bool {
        self.handles > 1 || self.groups > 1 || self.reclaim_unit > 1
    }

    /// The isolation of a handle.
    pub fn isolation_of(&self, handle: u16) -> Isolation {
        match self.isolation[..] {
            [every] => every,
            ref each => each.get(usize::from(handle)).copied().unwrap_or_default(),
        }
    }

    /// One bit for each persistently isolated handle.
    pub fn persistent_bits(&self) -> u16 {
        let is_persistent = |handle: &u16| self.isolation_of(*handle) == Isolation::Persistent;
        (0..self.handles).filter(is_persistent).map(|handle| 1 << handle).sum()
    }

    /// The bits of an identifier that have the reclaim group (NVMe's RGIF).
    pub fn group_bits(&self) -> u32 {
        u32::from(self.groups).next_power_of_two().trailing_zeros()
    }

    /// The parts of an identifier; `None` if the drive has no such handle or no such group.
    pub fn find(&self, identifier: u16) -> Option<Place> {
        Placements::of(self, 1).find(identifier)
    }

    /// The identifier of a place.
    pub fn identifier(&self, place: Place) -> u16 {
        Placements::of(self, 1).identifier(place)
    }
}

impl Default for PlacementSpec {
    fn default() -> Self {
        Self {
            handles: 1,
            groups: 1,
            isolation: vec![Isolation::Initial],
            reclaim_unit: 1,
            ranges: Vec::new(),
        }
    }
}

/// The handles and groups of a drive.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Placements {
    /// Placement handles.
    pub handles: u16,
    /// Reclaim groups.
    pub groups: u16,
    /// Superblocks of a reclaim unit in each lane.
    pub reclaim_unit: u32,
    /// One bit for each persistently isolated handle.
    pub persistent: u16,
    /// Bits of an identifier that have the group.
    group_bits: u32,
    lanes_per_group: u32,
    is_single: bool,
}

impl Placements {
    /// The placements of a drive with `lanes` lanes.
    pub fn of(spec: &PlacementSpec, lanes: u32) -> Self {
        Self {
            handles: spec.handles,
            groups: spec.groups,
            reclaim_unit: spec.reclaim_unit,
            persistent: spec.persistent_bits(),
            group_bits: spec.group_bits(),
            lanes_per_group: lanes / u32::from(spec.groups),
            is_single: spec.handles == 1 && spec.groups == 1,
        }
    }

    /// [`PlacementSpec::is_on`].
    pub fn is_on(&self) -> bool {
        self.handles > 1 || self.groups > 1 || self.reclaim_unit > 1
    }

    /// Whether all writes go to the same open superblocks: the drive has one handle and one group.
    #[inline(always)]
    pub fn is_single(&self) -> bool {
        self.is_single
    }

    /// The parts of an identifier; those of identifier 0 if the drive has no such handle or no such group.
    #[inline]
    pub fn place(&self, identifier: u16) -> Place {
        self.find(identifier).unwrap_or_default()
    }

    /// The number of identifiers.
    pub fn count(&self) -> usize {
        usize::from(self.groups) * usize::from(self.handles)
    }

    /// The parts of an identifier; `None` if the drive has no such handle or no such group.
    #[inline]
    pub fn find(&self, identifier: u16) -> Option<Place> {
        let handle_bits = u16::BITS - self.group_bits;
        let identifier = u32::from(identifier);
        let (group, handle) = (identifier >> handle_bits, identifier & ((1 << handle_bits) - 1));
        let is_known = group < u32::from(self.groups) && handle < u32::from(self.handles);
        is_known.then_some(Place { group: group as u16, handle: handle as u16 })
    }

    /// The identifier of a place.
    pub fn identifier(&self, place: Place) -> u16 {
        let group = u32::from(place.group) << (u16::BITS - self.group_bits);
        group as u16 | place.handle
    }

    /// All places, group by group; the index of a place is its number.
    pub fn places(&self) -> impl Iterator<Item = Place> + use<> {
        let handles = self.handles;
        (0..self.groups).flat_map(move |group| (0..handles).map(move |handle| Place { group, handle }))
    }

    /// The number of a place in arrays by place.
    #[inline]
    pub fn number(&self, place: Place) -> usize {
        usize::from(place.group) * usize::from(self.handles) + usize::from(place.handle)
    }

    /// Whether a handle is persistently isolated.
    pub fn is_persistent(&self, handle: u16) -> bool {
        self.persistent >> handle & 1 != 0
    }

    /// The reclaim group of a lane.
    #[inline]
    pub fn group_of(&self, lane: LaneId) -> u16 {
        if self.groups == 1 { 0 } else { (lane.0 / self.lanes_per_group) as u16 }
    }

    /// Whether a lane is in a group.
    #[inline(always)]
    pub fn is_in(&self, lane: LaneId, group: u16) -> bool {
        self.groups == 1 || self.group_of(lane) == group
    }

    /// The first of `count` consecutive numbers that is in a group, if the groups share them in their order: the LPNs of
    /// preconditioned data, page by page.
    pub fn first_of(&self, group: u16, count: u32) -> u32 {
        (u64::from(group) * u64::from(count)).div_ceil(self.groups.into()) as u32
    }

    /// The group of a number among `count` consecutive ones ([`Placements::first_of`]).
    pub fn group_of_number(&self, number: u32, count: u32) -> u16 {
        (u64::from(number) * u64::from(self.groups) / u64::from(count)) as u16
    }

    /// The lanes of a group.
    pub fn lanes_of(&self, group: u16) -> impl DoubleEndedIterator<Item = LaneId> + Clone + use<> {
        self.lane_range(group).map(|lane| LaneId(lane as u32))
    }

    /// The indices of the lanes of a group.
    #[inline]
    pub fn lane_range(&self, group: u16) -> Range<usize> {
        let (first, count) = (u32::from(group) * self.lanes_per_group, self.lanes_per_group);
        first as usize..(first + count) as usize
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// NVMe: with three groups two bits have the group, so group 2 and handle 1 are 0x8001.
    #[test]
    fn an_identifier_has_the_group_in_its_upper_bits() {
        let spec = PlacementSpec { handles: 4, groups: 3, ..PlacementSpec::default() };
        assert_eq!(spec.group_bits(), 2);
        assert_eq!(spec.identifier(Place { group: 2, handle: 1 }), 0x8001);
        assert_eq!(spec.find(0x8001), Some(Place { group: 2, handle: 1 }));
        assert_eq!([spec.find(4), spec.find(0xc000), spec.find(0x0fff)], [None; 3]);
        let placements = Placements::of(&spec, 6);
        for (number, place) in placements.places().enumerate() {
            assert_eq!(placements.number(place), number);
            assert_eq!(placements.find(placements.identifier(place)), Some(place));
        }
        assert_eq!(placements.places().count(), placements.count());
        let groups: Vec<u16> = (0..6).map(|lane| placements.group_of(LaneId(lane))).collect();
        assert_eq!(groups, [0, 0, 1, 1, 2, 2]);
        assert!(placements.lanes_of(1).eq([LaneId(2), LaneId(3)]));
        for count in [3, 7, 8, 9] {
            let groups = (0..count).map(|number| placements.group_of_number(number, count));
            let by_first = (0..count).map(|number| {
                (0..3).rev().find(|&group| placements.first_of(group, count) <= number).unwrap()
            });
            assert!(groups.eq(by_first), "{count} numbers");
        }
    }

    #[test]
    fn with_one_group_the_identifier_is_the_handle() {
        let spec = PlacementSpec { handles: 3, ..PlacementSpec::default() };
        assert_eq!(spec.find(2), Some(Place { group: 0, handle: 2 }));
        assert_eq!([spec.find(3), spec.find(u16::MAX)], [None; 2]);
        assert_eq!(spec.identifier(Place { group: 0, handle: 2 }), 2);
    }

    #[test]
    fn isolation_is_of_every_handle_or_of_each() {
        use Isolation::{Initial, Persistent};
        let of = |isolation: Vec<Isolation>| {
            PlacementSpec { handles: 3, isolation, ..PlacementSpec::default() }.persistent_bits()
        };
        assert_eq!([of(vec![Initial]), of(vec![Persistent])], [0, 0b111]);
        assert_eq!(of(vec![Initial, Persistent, Initial]), 0b010);
    }
}
