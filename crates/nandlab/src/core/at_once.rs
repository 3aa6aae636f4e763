//! Programs and erases outside simulated time, for preconditioning.

use super::Core;
use crate::base::geometry::{LaneId, Lpn};
use crate::flash::{DEAD_LPN, Stamp, SuperblockState};
use crate::ftl::{AllocatedUnit, WriteStream};
use crate::probe::Probe;

impl<P: Probe> Core<P> {
    /// Programs a unit without simulated time, and calls `on_mapped` if the unit has an LPN. Returns whether the
    /// allocation has opened a superblock.
    #[inline]
    pub(crate) fn program_now(
        &mut self,
        lane: LaneId,
        stream: WriteStream,
        lpn: Lpn,
        sequence: u64,
        mut on_mapped: impl FnMut(Lpn),
    ) -> bool {
        let AllocatedUnit { unit, opened, .. } = self.allocate(lane, stream).expect("the lane has room");
        let (superblock, index) = self.geometry.split(unit);
        self.array.stage(
            unit,
            lpn,
            Stamp { sequence, corrected: self.physics.initial_ages.of_next(superblock) },
        );
        let is_closed = self.array.program(superblock, index) == self.geometry.units_per_superblock;
        if lpn.0 != DEAD_LPN {
            self.ftl.remap(&self.geometry, &mut self.array, lpn, unit);
            on_mapped(lpn);
        }
        if is_closed {
            self.ftl.close(&self.geometry, &mut self.array, superblock, self.now);
        }
        opened
    }

    /// Empties and erases a victim without simulated time. Returns the number of units moved, or `None` if there is no
    /// victim or no room for its units.
    pub(crate) fn collect_now(&mut self, lane: LaneId, mut on_mapped: impl FnMut(Lpn)) -> Option<u64> {
        let victim = self.ftl.pick_victim(&self.geometry, &self.array, lane, self.now)?;
        let moved = self.valid_units(victim);
        let stream = self.emptying_stream(victim, false);
        if moved > self.stream_room(lane, stream) {
            return None;
        }
        self.ftl.begin_emptying(&self.geometry, &mut self.array, victim);
        let mut index = 0;
        while let Some(next) = self.ftl.next_valid(&self.geometry, victim, index) {
            index = next + 1;
            let unit = self.geometry.unit(victim, next);
            let (lpn, sequence) = (self.array.lpn(unit), self.array.stamp(unit).sequence);
            self.program_now(lane, stream, lpn, sequence, &mut on_mapped);
        }
        debug_assert!(self.array.superblock(victim).state == SuperblockState::Victim);
        self.array.erase(&self.geometry, victim);
        self.ftl.release(&self.geometry, &mut self.array, victim, self.room.endurance);
        Some(u64::from(moved))
    }
}
