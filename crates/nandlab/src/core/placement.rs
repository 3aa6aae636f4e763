//! What the drive counts by placement handle, and the events of NVMe's Flexible Data Placement.
//!
//! Nothing is counted on a drive without placement handles (`[placement]`). The counts are those of the mechanism: units
//! of the host's data that are programmed, and superblocks that are erased. The data of a unit keeps the handle with
//! which the host has written it last, whatever superblock it is in (`Array::handle`).

use super::Core;
use crate::base::geometry::{LaneId, Lpn, SuperblockId, UnitId};
use crate::base::state::value;
use crate::base::units::Time;
use crate::flash::DEAD_LPN;
use crate::ftl::StreamId;
use crate::ftl::placement::{Place, Placements};
use crate::probe::Probe;
use crate::sched::{Cause, Transaction};
use std::collections::VecDeque;

/// The most host events, and the most controller events, that a drive remembers.
pub const EVENTS_MAX: usize = 64;

/// What has been done with the data of a placement handle in a reclaim group.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct HandleStats {
    /// Units programmed for the host: its writes, write-backs of the write cache, and emergency flushes.
    pub host_units: u64,
    /// Units programmed because data was moved: by GC, static wear levelling, refresh, reclaim, recovery, and a detection of
    /// the dirty budget. Copybacks are included.
    pub copied_units: u64,
    /// Units left unused in programs to superblocks that have only data of the handle.
    pub padding_units: u64,
    /// Superblocks erased that had only data of the handle.
    pub erases: u64,
    /// Reclaim units that the host has begun to fill, in each lane.
    pub reclaim_units: u64,
}

/// What has been done with the superblocks of a reclaim group in which GC mixes the data of initially isolated handles.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct MixedStats {
    /// Units moved out of such superblocks; they are part of [`HandleStats::copied_units`] of their handles.
    pub copied_units: u64,
    /// Units left unused in programs to such superblocks.
    pub padding_units: u64,
    /// Such superblocks erased.
    pub erases: u64,
}

/// A type of event of NVMe's Flexible Data Placement.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum EventKind {
    /// The host has let a handle go on in another reclaim unit (`Drive::update_handle`) before the unit was full.
    UnitNotFull,
    /// A reclaim unit was open for so long that its data is due for refresh, and has been closed before it was full.
    TimeLimit,
    /// After a power loss the handle goes on in another reclaim unit.
    ControllerReset,
    /// The host has written with a placement identifier that the drive does not have.
    InvalidIdentifier,
    /// The controller has moved data of the host from one reclaim unit to another.
    MediaReallocated,
    /// The controller has let a handle go on in another reclaim unit before the unit was full.
    HandleModified,
}

impl EventKind {
    /// All types, in the order of [`PlacementStats::events`].
    pub const ALL: [Self; 6] = [
        Self::UnitNotFull,
        Self::TimeLimit,
        Self::ControllerReset,
        Self::InvalidIdentifier,
        Self::MediaReallocated,
        Self::HandleModified,
    ];

    /// The number of the type in NVMe's log page 23h: host events from 0 on, controller events from 80h on.
    pub fn number(self) -> u8 {
        match self {
            Self::UnitNotFull => 0x00,
            Self::TimeLimit => 0x01,
            Self::ControllerReset => 0x02,
            Self::InvalidIdentifier => 0x03,
            Self::MediaReallocated => 0x80,
            Self::HandleModified => 0x81,
        }
    }

    /// Whether the host causes events of this type (NVMe: host events), or the controller does.
    pub fn is_of_host(self) -> bool {
        self.number() < 0x80
    }
}

/// An event.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Event {
    /// When it has happened.
    pub at: Time,
    /// Its type.
    pub kind: EventKind,
    /// The placement identifier. Of [`EventKind::InvalidIdentifier`] the one that the host has written with; of
    /// [`EventKind::MediaReallocated`] that of the first unit moved.
    pub identifier: u16,
    /// Of [`EventKind::MediaReallocated`]: the first logical unit moved, else 0.
    pub lpn: u32,
    /// Of [`EventKind::MediaReallocated`]: the number of units that were to be moved when the move began. Of an event
    /// about a reclaim unit that was not full: the number of units that were left. Else 0.
    pub units: u64,
}

/// What a drive has counted by placement handle.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct PlacementStats {
    /// By place ([`Placements::number`]): group by group, in each handle by handle.
    pub by_place: Vec<HandleStats>,
    /// By reclaim group.
    pub mixed: Vec<MixedStats>,
    /// The number of events, by type in the order of [`EventKind::ALL`].
    pub events: [u64; 6],
    /// The latest events, oldest first: at most [`EVENTS_MAX`] host events and as many controller events.
    pub recent: VecDeque<Event>,
}

impl PlacementStats {
    /// Nothing has been counted on a drive with these placements.
    pub(super) fn new(placements: &Placements) -> Self {
        Self {
            by_place: vec![HandleStats::default(); placements.count()],
            mixed: vec![MixedStats::default(); placements.groups.into()],
            ..Self::default()
        }
    }

    /// The number of events of a type.
    pub fn count(&self, kind: EventKind) -> u64 {
        self.events[kind as usize]
    }

    /// The units programmed with data of the host, copies included (NVMe's MBMW, in units).
    pub fn media_units(&self) -> u64 {
        self.by_place.iter().map(|place| place.host_units + place.copied_units).sum()
    }

    /// The units programmed for the host.
    pub fn host_units(&self) -> u64 {
        self.by_place.iter().map(|place| place.host_units).sum()
    }

    /// Counts an event, and remembers it.
    pub(super) fn on_event(&mut self, event: Event) {
        self.events[event.kind as usize] += 1;
        self.recent.push_back(event);
        let is_alike = |other: &Event| other.kind.is_of_host() == event.kind.is_of_host();
        if self.recent.len() > EVENTS_MAX
            && self.recent.iter().filter(|other| is_alike(other)).count() > EVENTS_MAX
        {
            let oldest = self.recent.iter().position(is_alike).expect("the new event is of this kind");
            self.recent.remove(oldest);
        }
    }

    /// What was counted between `then` and now; the latest events are those since then.
    #[must_use]
    pub fn since(&self, then: &Self) -> Self {
        let by_place = self.by_place.iter().zip(&then.by_place).map(|(now, then)| HandleStats {
            host_units: now.host_units - then.host_units,
            copied_units: now.copied_units - then.copied_units,
            padding_units: now.padding_units - then.padding_units,
            erases: now.erases - then.erases,
            reclaim_units: now.reclaim_units - then.reclaim_units,
        });
        let mixed = self.mixed.iter().zip(&then.mixed).map(|(now, then)| MixedStats {
            copied_units: now.copied_units - then.copied_units,
            padding_units: now.padding_units - then.padding_units,
            erases: now.erases - then.erases,
        });
        let mut events = self.events;
        events.iter_mut().zip(then.events).for_each(|(now, then)| *now -= then);
        let later = |host: bool| {
            let of = EventKind::ALL.iter().zip(events).filter(move |(kind, _)| kind.is_of_host() == host);
            of.map(|(_, count)| count).sum::<u64>() as usize
        };
        let mut left = [later(false), later(true)];
        let mut recent: VecDeque<Event> = VecDeque::new();
        for event in self.recent.iter().rev() {
            let left = &mut left[usize::from(event.kind.is_of_host())];
            if *left > 0 {
                *left -= 1;
                recent.push_front(*event);
            }
        }
        Self { by_place: by_place.collect(), mixed: mixed.collect(), events, recent }
    }
}

impl<P: Probe> Core<P> {
    /// The placement handles and reclaim groups.
    #[inline(always)]
    pub(crate) fn placements(&self) -> &Placements {
        &self.ftl.placements
    }

    /// What has been counted by placement handle; `None` on a drive without.
    pub(crate) fn placement_stats(&self) -> Option<&PlacementStats> {
        self.placement.as_deref()
    }

    /// Nothing has been counted yet: the workload begins.
    pub(crate) fn forget_placement_counts(&mut self) {
        if let Some(stats) = &mut self.placement {
            **stats = PlacementStats::new(&self.ftl.placements);
        }
    }

    /// The place of the data of a unit: its handle, and the reclaim group in which it is.
    pub(crate) fn place_of(&self, unit: UnitId) -> Place {
        let lane = self.geometry.lane_of(self.geometry.superblock_of(unit));
        Place { group: self.placements().group_of(lane), handle: self.array.handle(unit).into() }
    }

    /// The stream of the host to which data of the handle of a unit is written.
    pub(crate) fn host_stream_of(&self, unit: UnitId) -> StreamId {
        self.ftl.streams.hosts()[usize::from(self.array.handle(unit))]
    }

    /// The handle of a unit that is going to be programmed with data of `lpn` in `stream`: that of the host's stream, or
    /// that of the data which is moved.
    pub(super) fn handle_for(&self, lpn: Lpn, stream: StreamId) -> u8 {
        if let Some(handle) = self.ftl.streams.handle_of(stream) {
            return handle as u8;
        }
        if lpn.0 == DEAD_LPN {
            return 0;
        }
        self.ftl.map.get(lpn).map_or(0, |unit| self.array.handle(unit))
    }

    /// Writes the handle of a staged unit of `stream` into its OOB. The LPN must not be mapped to the unit yet.
    #[inline(always)]
    pub(super) fn stage_handle(&mut self, unit: UnitId, lpn: Lpn, stream: Option<StreamId>) {
        if self.placement.is_some()
            && let Some(stream) = stream
        {
            let handle = self.handle_for(lpn, stream);
            self.array.set_handle(unit, handle);
        }
    }

    /// A stream has opened a superblock, with this unit.
    #[inline(always)]
    pub(super) fn count_opened(&mut self, unit: UnitId, stream: Option<StreamId>) {
        if self.placement.is_some()
            && let Some(stream) = stream
        {
            self.count_unit_begun(unit, stream);
        }
    }

    #[inline(never)]
    fn count_unit_begun(&mut self, unit: UnitId, stream: StreamId) {
        let Some(handle) = self.ftl.streams.handle_of(stream) else { return };
        let lane = self.geometry.lane_of(self.geometry.superblock_of(unit));
        if self.ftl.superblocks_left_in_unit(lane, stream) + 1 == self.ftl.superblocks_of_unit() {
            let place = Place { group: self.placements().group_of(lane), handle };
            let number = self.placements().number(place);
            if let Some(stats) = &mut self.placement {
                stats.by_place[number].reclaim_units += 1;
            }
        }
    }

    /// GC empties the reclaim unit of `victim`.
    #[inline]
    pub(crate) fn begin_unit(&mut self, victim: SuperblockId) {
        if let Some((stream, left)) = self.ftl.begin_unit(&mut self.array, victim)
            && let Some(handle) = self.ftl.streams.handle_of(stream)
        {
            self.on_unit_left(EventKind::HandleModified, self.geometry.lane_of(victim), handle, left.into());
        }
    }

    /// The open superblock of a stream, with `left` units left, is closed early. If the host fills it, the handle goes on in
    /// another unit.
    pub(super) fn on_superblock_left(&mut self, why: EventKind, lane: LaneId, stream: StreamId, left: u32) {
        if self.placement.is_some()
            && let Some(handle) = self.ftl.streams.handle_of(stream)
        {
            self.ftl.end_unit(lane, stream);
            self.on_unit_left(why, lane, handle, left.into());
        }
    }

    /// Recovery closes a superblock that is not full. If the host has filled it, the handle goes on in another unit.
    pub(crate) fn on_reset(&mut self, superblock: SuperblockId) {
        let left = self.shape(superblock).units - self.array.superblock(superblock).programmed;
        let mark = self.array.superblock(superblock).mark;
        let is_filled = |stream: &&StreamId| self.ftl.streams.spec(**stream).mark == mark;
        // With one handle GC's superblocks have the same mark.
        if self.placements().handles > 1
            && let Some(&stream) = self.ftl.streams.hosts().iter().find(is_filled)
        {
            let lane = self.geometry.lane_of(superblock);
            self.on_superblock_left(EventKind::ControllerReset, lane, stream, left);
        }
    }

    /// The units that a handle of a reclaim group can still write to its present reclaim unit in each of its lanes (NVMe's
    /// RUAMW). A lane in which the handle has no unit open has a whole one.
    pub(crate) fn available_units(&self, place: Place) -> u64 {
        let stream = self.ftl.streams.of_handle(place.handle);
        let units = self.first_shape().units;
        let of_lane = |lane: LaneId| {
            let (open, further) =
                (self.ftl.units_open(lane, stream), self.ftl.superblocks_left_in_unit(lane, stream));
            let superblocks = if open + further == 0 { self.ftl.superblocks_of_unit() } else { further };
            u64::from(open) + u64::from(superblocks) * u64::from(units)
        };
        self.placements().lanes_of(place.group).map(of_lane).sum()
    }

    /// The host lets a handle go on in new reclaim units (NVMe's Reclaim Unit Handle Update).
    pub(crate) fn update_handle(&mut self, place: Place) {
        let mut left = 0;
        for stream in self.ftl.streams.ids() {
            if self.ftl.streams.handle_of(stream) == Some(place.handle) {
                left += self.leave_units(place.group, stream);
            }
        }
        if left > 0 {
            self.note(EventKind::UnitNotFull, self.placements().identifier(place), Lpn(0), left);
        }
    }

    /// A stream of the host goes on in new reclaim units in each lane of a group. Returns the units left in the present ones.
    fn leave_units(&mut self, group: u16, stream: StreamId) -> u64 {
        let mut left = 0;
        for lane in self.placements().lanes_of(group) {
            self.close_program(lane, stream);
            left += u64::from(self.ftl.superblocks_left_in_unit(lane, stream))
                * u64::from(self.first_shape().units);
            self.ftl.end_unit(lane, stream);
            if let Some((superblock, allocated)) = self.ftl.abandon_open(lane, stream) {
                left += u64::from(self.shape(superblock).units - allocated);
                self.abandoned.push((superblock, allocated));
                self.close_abandoned(superblock);
            }
        }
        left
    }

    /// A unit of `superblock` has been programmed: closes the superblock if the host has abandoned it, and all its allocated
    /// units are programmed now.
    #[cold]
    pub(super) fn close_abandoned(&mut self, superblock: SuperblockId) {
        let Some(at) = self.abandoned.iter().position(|&(of, _)| of == superblock) else { return };
        if self.array.are_programmed(superblock, self.abandoned[at].1) {
            self.abandoned.swap_remove(at);
            self.close_early(superblock);
        }
    }

    /// The program or the copyback of a unit has ended.
    #[inline(always)]
    pub(super) fn on_placed(&mut self, done: &Transaction) {
        if self.placement.is_some() {
            self.count_placed(done);
            if !self.abandoned.is_empty() {
                self.close_abandoned(self.geometry.superblock_of(done.unit));
            }
        }
    }

    /// Counts the program or copyback of a unit of the host's data that has ended.
    #[inline(never)]
    pub(super) fn count_placed(&mut self, done: &Transaction) {
        if self.placement.is_none() || done.lpn.0 >= self.geometry.logical_units {
            return;
        }
        let place = self.place_of(done.unit);
        let number = self.placements().number(place);
        let is_of_host = matches!(done.cause, Cause::Host | Cause::Sync)
            || done.cause == Cause::Flush && self.state.is_off;
        let from = done.replaces.filter(|_| !is_of_host).map(|old| self.geometry.superblock_of(old));
        let is_mixed = from.is_some_and(|from| self.only_handle_in(from).is_none());
        let Some(stats) = &mut self.placement else { return };
        let of_place = &mut stats.by_place[number];
        if is_of_host {
            of_place.host_units += 1;
        } else {
            of_place.copied_units += 1;
            stats.mixed[usize::from(place.group)].copied_units += u64::from(is_mixed);
        }
    }

    /// Recovery has programmed a unit of `lpn`.
    pub(super) fn count_recovered(&mut self, unit: UnitId, lpn: Lpn) {
        let number = self.placements().number(self.place_of(unit));
        if let Some(stats) = &mut self.placement
            && lpn.0 < self.geometry.logical_units
        {
            stats.by_place[number].copied_units += 1;
        }
    }

    /// The only handle whose data a superblock may have; `None` if GC mixes the data of several handles in it.
    fn only_handle_in(&self, superblock: SuperblockId) -> Option<u16> {
        if self.placements().handles == 1 {
            return Some(0);
        }
        let handles = self.ftl.streams.handles_in(self.array.superblock(superblock).mark);
        handles.is_power_of_two().then(|| handles.trailing_zeros() as u16)
    }

    /// Counts units of a superblock that are padding.
    pub(super) fn count_padding_of(&mut self, superblock: SuperblockId, units: u32) {
        self.count_of(superblock, |place| &mut place.padding_units, |mixed| &mut mixed.padding_units, units);
    }

    /// A superblock is going to be erased.
    pub(super) fn count_erase(&mut self, superblock: SuperblockId) {
        self.count_of(superblock, |place| &mut place.erases, |mixed| &mut mixed.erases, 1);
    }

    /// Adds `count` for the handle that alone has data in a superblock of the host, or for the mixed data of its group.
    #[inline]
    fn count_of(
        &mut self,
        superblock: SuperblockId,
        of_place: impl Fn(&mut HandleStats) -> &mut u64,
        of_mixed: impl Fn(&mut MixedStats) -> &mut u64,
        count: u32,
    ) {
        if self.placement.is_none() || !self.has_data_of_host(superblock) {
            return;
        }
        let group = self.placements().group_of(self.geometry.lane_of(superblock));
        let handle = self.only_handle_in(superblock);
        let number = handle.map(|handle| self.placements().number(Place { group, handle }));
        let Some(stats) = &mut self.placement else { return };
        *match number {
            Some(number) => of_place(&mut stats.by_place[number]),
            None => of_mixed(&mut stats.mixed[usize::from(group)]),
        } += u64::from(count);
    }

    /// Whether the units of a superblock are the host's: not translation or combination pages.
    pub(super) fn has_data_of_host(&self, superblock: SuperblockId) -> bool {
        let first = self.geometry.unit(superblock, 0);
        let lpn = self.array.lpn(first);
        lpn.0 == DEAD_LPN || lpn.0 < self.geometry.logical_units
    }

    /// The host has written with a placement identifier that the drive does not have.
    #[cold]
    pub(crate) fn on_invalid_identifier(&mut self, identifier: u16) {
        self.note(EventKind::InvalidIdentifier, identifier, Lpn(0), 0);
    }

    /// A handle goes on in another reclaim unit of a lane, though `left` units of the present one are left.
    pub(crate) fn on_unit_left(&mut self, kind: EventKind, lane: LaneId, handle: u16, left: u64) {
        let place = Place { group: self.placements().group_of(lane), handle };
        self.note(kind, self.placements().identifier(place), Lpn(0), left);
    }

    /// The valid units of a superblock are going to be moved.
    #[inline(always)]
    pub(super) fn on_moving(&mut self, superblock: SuperblockId) {
        if self.placement.is_some() {
            self.note_reallocation(superblock);
        }
    }

    #[inline(never)]
    fn note_reallocation(&mut self, superblock: SuperblockId) {
        let Some(index) = self.ftl.next_valid(superblock, 0) else { return };
        let unit = self.geometry.unit(superblock, index);
        let lpn = self.array.lpn(unit);
        if lpn.0 < self.geometry.logical_units {
            let identifier = self.placements().identifier(self.place_of(unit));
            self.note(EventKind::MediaReallocated, identifier, lpn, self.valid_units(superblock).into());
        }
    }

    fn note(&mut self, kind: EventKind, identifier: u16, lpn: Lpn, units: u64) {
        let at = self.now;
        if let Some(stats) = &mut self.placement {
            stats.on_event(Event { at, kind, identifier, lpn: lpn.0, units });
        }
    }

    /// Audits the handles: each superblock has only data of the handles that its mark allows.
    pub(crate) fn audit_placement(&self) -> Result<(), String> {
        if self.placement.is_none() {
            return Ok(());
        }
        for superblock in (0..self.geometry.superblocks).map(SuperblockId) {
            let mark = self.array.superblock(superblock).mark;
            let allowed = self.ftl.streams.handles_in(mark);
            // Without sequence numbers skipped units have the LPNs of before.
            let has_data = |unit: &UnitId| self.array.keeps_sequences() || self.ftl.is_valid(*unit);
            for unit in self.programmed_units(superblock).filter(has_data) {
                let (lpn, handle) = (self.array.lpn(unit), self.array.handle(unit));
                let is_of_host = lpn.0 < self.geometry.logical_units && !self.array.is_torn(unit);
                if is_of_host && allowed >> handle & 1 == 0 {
                    return Err(format!(
                        "{} has data of placement handle {handle}, which the mark {mark} of its superblock does not allow",
                        self.geometry.show(unit)
                    ));
                }
            }
        }
        Ok(())
    }
}

value! { HandleStats { host_units, copied_units, padding_units, erases, reclaim_units } }
value! { MixedStats { copied_units, padding_units, erases } }
value! {
    EventKind enum { UnitNotFull, TimeLimit, ControllerReset, InvalidIdentifier, MediaReallocated, HandleModified }
}
value! { Event { at, kind, identifier, lpn, units } }
value! { PlacementStats { by_place, mixed, events, recent } }

#[cfg(test)]
mod tests {
    use super::*;

    fn event(at: u64, kind: EventKind) -> Event {
        Event { at: Time::from_ns(at), kind, identifier: 0, lpn: 0, units: 0 }
    }

    #[test]
    fn the_latest_events_of_host_and_controller_are_remembered_by_themselves() {
        let mut stats = PlacementStats::default();
        stats.on_event(event(0, EventKind::InvalidIdentifier));
        for at in 1..=100 {
            stats.on_event(event(at, EventKind::MediaReallocated));
        }
        assert_eq!(stats.recent.len(), EVENTS_MAX + 1);
        assert_eq!(stats.recent[0], event(0, EventKind::InvalidIdentifier));
        assert_eq!(stats.recent[1], event(37, EventKind::MediaReallocated));
        assert_eq!(
            [EventKind::MediaReallocated, EventKind::InvalidIdentifier].map(|of| stats.count(of)),
            [100, 1]
        );
        let then = stats.clone();
        stats.on_event(event(101, EventKind::TimeLimit));
        let since = stats.since(&then);
        assert_eq!(since.recent, [event(101, EventKind::TimeLimit)]);
        assert_eq!(since.events.iter().sum::<u64>(), 1);
    }
}
