//! What mechanisms read of the core. Nothing here changes the core, and each function is a reference or a few
//! instructions.
//!
//! | view | what it shows |
//! |---|---|
//! | `Core::flash` | the flash array: OOBs, states, wear, shapes |
//! | `Core::ftl` | the room of the lanes, and the map as a whole |
//! | `Core::streams` | the write streams |
//! | `Core::device` | dies and channels: phases, load, times |

use super::{Core, Parts};
use crate::base::geometry::{Geometry, LaneId, Lpn, SuperblockId, UnitId};
use crate::base::units::Time;
use crate::flash::{Array, Superblock};
use crate::ftl::streams::Streams;
use crate::ftl::{Ftl, Lane, UnitMap};
use crate::probe::Probe;
use crate::sched::{Device, Slot, Transaction};

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
