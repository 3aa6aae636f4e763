//! What mechanisms read of the core. Nothing here changes the core, and each function is a reference or a few
//! instructions.
//!
//! | view | what it shows |
//! |---|---|
//! | `Core::flash` | the flash array: OOBs, states, wear, shapes |
//! | `Core::ftl` | the room of the lanes, and the map as a whole |
//! | `Core::streams` | the write streams |
//! | `Core::device` | dies and channels: phases, load, times |

use super::{Core, Operations, Parts, ReadLevels, State, UnitsStats};
use crate::base::geometry::{Geometry, LaneId, Lpn, SuperblockId, UnitId};
use crate::base::units::Time;
use crate::flash::{AgeClock, AgeStamp, Array, Ecc, Superblock};
use crate::ftl::streams::Streams;
use crate::ftl::{Ftl, Lane, UnitMap};
use crate::probe::Probe;
use crate::sched::{Class, Device, Slot, Transaction};

/// The newest data of every LPN.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Data<'a> {
    pub(crate) map: &'a UnitMap,
    flash: &'a Array,
}

impl Data<'_> {
    /// The sequence number of the newest write of an LPN; `None` if the LPN has no data.
    pub(crate) fn sequence(&self, lpn: Lpn) -> Option<u64> {
        self.map.get(lpn).map(|unit| self.flash.stamp(unit).sequence)
    }
}

impl<P: Probe> Core<P> {
    /// The addresses of the drive's units.
    #[inline(always)]
    pub(crate) fn geometry(&self) -> &Geometry {
        &self.geometry
    }

    /// The present simulated time.
    #[inline(always)]
    pub(crate) fn now(&self) -> Time {
        self.now
    }

    /// The last time that can be simulated.
    #[inline(always)]
    pub(crate) fn end(&self) -> Time {
        self.end
    }

    /// The flash array.
    #[inline(always)]
    pub(crate) fn flash(&self) -> &Array {
        &self.array
    }

    /// The state of a superblock.
    #[inline(always)]
    pub(crate) fn superblock(&self, superblock: SuperblockId) -> &Superblock {
        self.array.superblock(superblock)
    }

    /// The map and the room of the lanes.
    #[inline(always)]
    pub(crate) fn ftl(&self) -> &Ftl {
        &self.ftl
    }

    /// The free and open superblocks of a lane.
    #[inline(always)]
    pub(crate) fn lane(&self, lane: LaneId) -> &Lane {
        &self.ftl.lanes[lane.index()]
    }

    /// The write streams.
    #[inline(always)]
    pub(crate) fn streams(&self) -> &Streams {
        &self.ftl.streams
    }

    /// The unit with the newest data of an LPN, even while its program has not ended; `None` if the LPN has no data.
    #[inline(always)]
    pub(crate) fn unit_of(&self, lpn: Lpn) -> Option<UnitId> {
        self.ftl.map.get(lpn)
    }

    /// Whether a unit has the newest data of an LPN.
    #[inline(always)]
    pub(crate) fn is_newest(&self, lpn: Lpn, unit: UnitId) -> bool {
        self.unit_of(lpn) == Some(unit)
    }

    /// Whether a unit has the newest data of its LPN.
    #[inline(always)]
    pub(crate) fn is_valid(&self, unit: UnitId) -> bool {
        self.ftl.is_valid(unit)
    }

    /// The first valid unit of a superblock from its unit `from` on, by its number in the superblock.
    #[inline(always)]
    pub(crate) fn next_valid(&self, superblock: SuperblockId, from: u32) -> Option<u32> {
        self.ftl.next_valid(superblock, from)
    }

    /// The LPNs with a valid unit in a superblock, in the order of the units.
    pub(crate) fn valid_lpns(&self, superblock: SuperblockId) -> impl Iterator<Item = Lpn> + use<'_, P> {
        let first = self.next_valid(superblock, 0);
        let units = std::iter::successors(first, move |&index| self.next_valid(superblock, index + 1));
        units.map(move |index| self.array.lpn(self.geometry.unit(superblock, index)))
    }

    /// The units of a superblock that have been programmed or skipped since its last erase.
    pub(crate) fn programmed_units(
        &self,
        superblock: SuperblockId,
    ) -> impl Iterator<Item = UnitId> + use<'_, P> {
        self.array.programmed(superblock).map(move |index| self.geometry.unit(superblock, index))
    }

    /// The sequence number of the write whose data a unit has.
    #[inline(always)]
    pub(crate) fn sequence_of(&self, unit: UnitId) -> u64 {
        self.array.stamp(unit).sequence
    }

    /// Whether the lane of a host unit follows from its LPN (static allocation).
    #[inline(always)]
    pub(crate) fn has_home_lanes(&self) -> bool {
        self.ftl.allocator.is_static()
    }

    /// The home lane of an LPN. Under dynamic allocation the lane to which preconditioning writes it.
    #[inline(always)]
    pub(crate) fn home(&self, lpn: Lpn) -> LaneId {
        self.ftl.allocator.home(lpn)
    }

    /// The dies and channels.
    #[inline(always)]
    pub(crate) fn device(&self) -> &Device {
        &self.device
    }

    /// The state of the drive that every mechanism has to respect.
    #[inline(always)]
    pub(crate) fn state(&self) -> &State {
        &self.state
    }

    /// The read levels and their limits.
    #[inline(always)]
    pub(crate) fn ecc(&self) -> &Ecc {
        &self.physics.ecc
    }

    /// Translates simulated time into ages of data.
    #[inline(always)]
    pub(crate) fn age_clock(&self) -> &AgeClock {
        &self.physics.age_clock
    }

    /// The present time on the age clock.
    #[inline(always)]
    pub(crate) fn age_now(&self) -> AgeStamp {
        self.physics.age_clock.at(self.now)
    }

    /// The age stamp of the data that a superblock has had since before the run.
    pub(crate) fn initial_age(&self, superblock: SuperblockId) -> AgeStamp {
        self.physics.initial_ages.of(superblock)
    }

    /// RBER that every program in place adds to the units of its superblock.
    pub(crate) fn reprogram_error(&self) -> f64 {
        self.physics.reprogram_error
    }

    /// RBER of the known errors of a unit.
    pub(crate) fn known_rber(&self, unit: UnitId) -> f64 {
        self.physics.known.of(unit)
    }

    /// The read levels that are kept.
    #[inline(always)]
    pub(crate) fn levels(&self) -> &ReadLevels {
        &self.levels
    }

    /// The units with part of their data in another unit.
    #[inline(always)]
    pub(crate) fn parts(&self) -> &Parts {
        &self.parts
    }

    /// Whether the host has read a unit often since its program.
    pub(crate) fn is_hot(&self, unit: UnitId) -> bool {
        self.read_counts.is_hot(unit)
    }

    /// Whether units have more state than an LPN and an age stamp.
    #[inline(always)]
    pub(crate) fn has_unit_state(&self) -> bool {
        self.has_unit_state
    }

    /// The sequence number of the newest write or deallocation.
    #[inline(always)]
    pub(crate) fn sequence(&self) -> u64 {
        self.sequence
    }

    /// The flash operations that have ended.
    #[inline(always)]
    pub(crate) fn operations(&self) -> &Operations {
        &self.operations
    }

    /// Programming units that gathered, and units without data that filled them.
    pub(crate) fn units_stats(&self) -> &UnitsStats {
        &self.gathering.stats
    }

    /// The class of the operations of refresh.
    #[inline(always)]
    pub(crate) fn refresh_class(&self) -> Class {
        self.refresh_class
    }

    /// The time of a clock; [`NEVER`](crate::sched::NEVER) if it is not set.
    #[inline(always)]
    pub(crate) fn clock(&self, clock: u32) -> Time {
        self.agenda.time(clock)
    }

    /// Whether no clock with a lower number is set.
    pub(crate) fn has_no_clock_below(&self, clock: u32) -> bool {
        self.agenda.is_unset_below(clock)
    }

    /// Whether a wake has to be served.
    #[inline(always)]
    pub(crate) fn has_wakes(&self) -> bool {
        !self.wakes.is_empty()
    }

    /// An operation on a unit, queued or under way.
    #[inline(always)]
    pub(crate) fn operation(&self, slot: Slot) -> &Transaction {
        &self.pool[slot]
    }

    /// The number of operations that are queued or under way.
    #[inline(always)]
    pub(crate) fn live_operations(&self) -> u32 {
        self.pool.live()
    }

    /// The number that the next operation gets. Later operations have higher numbers.
    #[inline(always)]
    pub(crate) fn next_order(&self) -> u64 {
        self.pool.next_order()
    }

    /// The probe, mutable, with the data to show it.
    pub(crate) fn probe_and_data(&mut self) -> (&mut P, Data<'_>) {
        (&mut self.probe, Data { map: &self.ftl.map, flash: &self.array })
    }

    /// Audits map, lanes, superblocks and dies.
    ///
    /// # Errors
    /// The first contradiction found.
    pub(crate) fn audit(&self) -> Result<(), String> {
        self.ftl.audit(&self.array)?;
        self.device.audit(&self.pool)
    }

    /// Flash, FTL and links, mutable, for tests that corrupt them.
    pub(crate) fn inner_mut(&mut self) -> (&mut Array, &mut Ftl, &mut Parts) {
        (&mut self.array, &mut self.ftl, &mut self.parts)
    }
}
