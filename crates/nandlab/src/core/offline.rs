//! The core outside simulated time: preconditioning, power loss, recovery, skipped time, and saved drives.

use super::Core;
use crate::base::geometry::{LaneId, Lpn, SuperblockId, UnitId};
use crate::base::policy::{PolicyError, PolicyFault, PolicySlot};
use crate::base::units::Time;
use crate::flash::{AgeStamp, DEAD_LPN, ShapeId, Stamp, SuperblockState};
use crate::ftl::{AllocatedUnit, Ftl, StreamId};
use crate::probe::Probe;
use crate::sched::NEVER;
use std::ops::Deref;

/// The most victims without invalid units that the policy may pick in succession outside simulated time, for each
/// superblock of the lane.
const FULLY_VALID_MAX: u32 = 16;

/// A superblock of a saved drive.
pub(crate) struct SavedSuperblock {
    pub(crate) pe_cycles: u32,
    /// The mark of the stream that filled it, from which its consecutive copybacks follow.
    pub(crate) mark: u8,
    pub(crate) state: SuperblockState,
    pub(crate) shape: ShapeId,
    /// The number of its units, the first ones, that have been programmed or skipped.
    pub(crate) used: u32,
}

/// The core while no simulated time passes. Only the drive makes one: it gives it to its mechanisms for what happens
/// outside simulated time.
pub(crate) struct Offline<'a, P: Probe>(&'a mut Core<P>);

impl<P: Probe> Deref for Offline<'_, P> {
    type Target = Core<P>;

    #[inline(always)]
    fn deref(&self) -> &Core<P> {
        self.0
    }
}

impl<'a, P: Probe> Offline<'a, P> {
    #[inline(always)]
    pub(crate) fn new(core: &'a mut Core<P>) -> Self {
        Self(core)
    }

    /// The core, mutable.
    #[inline(always)]
    pub(crate) fn core(&mut self) -> &mut Core<P> {
        self.0
    }

    /// Power fails: drops the operations that no die has begun, and stops the clocks of everything but the dies.
    pub(crate) fn drop_queues(&mut self) {
        let core = &mut *self.0;
        core.device.drop_queues(&core.pool);
        core.gathering.forget();
        core.array.forget_skips();
        for clock in core.geometry.dies..=core.refresh_clock() {
            core.agenda.set(clock, NEVER);
        }
    }

    /// The controller has no power any longer: stops the dies.
    pub(crate) fn stop_dies(&mut self) {
        self.0.device.stop(self.0.now);
        self.0.agenda.clear();
    }

    /// Power has returned: drops the counts of valid, pinned and linked units, which recovery finds anew.
    pub(crate) fn forget_counts(&mut self) {
        for superblock in &mut *self.0.array.superblocks {
            (superblock.valid, superblock.pins, superblock.linked) = (0, 0, 0);
        }
    }

    /// Drops the state of the core that was in RAM only, and takes a `fresh` FTL. Returns the FTL from before.
    pub(crate) fn forget_ram(&mut self, fresh: Ftl) -> Ftl {
        let core = &mut *self.0;
        core.pool.clear();
        core.gathering.forget();
        core.waiters.clear();
        core.wakes.clear();
        core.agenda.clear();
        core.levels.forget();
        core.state.is_idle = false;
        std::mem::replace(&mut core.ftl, fresh)
    }

    /// Gives a superblock of a fresh drive the state that it had when the drive was saved. Its first `used` units have
    /// been programmed or skipped. Returns the age stamp of its data; `None` if the superblock is bad in one of the
    /// drives only, or has been loaded already.
    pub(crate) fn load_superblock(&mut self, id: SuperblockId, saved: &SavedSuperblock) -> Option<AgeStamp> {
        let superblock = self.0.array.superblock_mut(id);
        let is_loaded = superblock.programmed > 0;
        if is_loaded || (saved.state == SuperblockState::Bad) != (superblock.state == SuperblockState::Bad) {
            return None;
        }
        superblock.pe_cycles = saved.pe_cycles;
        superblock.mark = saved.mark;
        superblock.state = saved.state;
        self.0.array.reshape(id, saved.shape);
        self.0.array.skip_to(id, saved.used);
        Some(self.0.physics.initial_ages.of(id))
    }

    /// Gives a unit of a loaded superblock its LPN ([`DEAD_LPN`]: the unit is invalid) and the age stamp of its data.
    /// Returns `false` if the LPN is out of range or mapped already.
    #[inline]
    pub(crate) fn load_unit(&mut self, unit: UnitId, lpn: Lpn, corrected: AgeStamp) -> bool {
        let core = &mut *self.0;
        core.array.stage(unit, lpn, Stamp { sequence: 0, corrected });
        if lpn.0 == DEAD_LPN {
            return true;
        }
        if lpn.0 >= core.ftl.map.len() || core.ftl.map.get(lpn).is_some() {
            return false;
        }
        core.ftl.remap(&mut core.array, lpn, unit);
        true
    }

    /// Closes a loaded superblock.
    pub(crate) fn close(&mut self, superblock: SuperblockId) {
        let core = &mut *self.0;
        core.ftl.close(&mut core.array, superblock, Time::START);
    }

    /// By superblock, adds P/E cycles without an erase.
    pub(crate) fn wear(&mut self, cycles: &[u32]) {
        let core = &mut *self.0;
        for (superblock, more) in core.array.superblocks.iter_mut().zip(cycles) {
            superblock.pe_cycles += more;
        }
        core.ftl.on_worn(&core.array);
    }

    /// Programs a unit without simulated time, and calls `on_mapped` if the unit has an LPN. Returns whether the
    /// allocation has opened a superblock.
    #[inline]
    pub(crate) fn program_now(
        &mut self,
        lane: LaneId,
        stream: StreamId,
        lpn: Lpn,
        sequence: u64,
        mut on_mapped: impl FnMut(Lpn),
    ) -> bool {
        let core = &mut *self.0;
        let AllocatedUnit { unit, opened, .. } = core.allocate(lane, stream).expect("the lane has room");
        let (superblock, index) = core.geometry.split(unit);
        core.array.stage(
            unit,
            lpn,
            Stamp { sequence, corrected: core.physics.initial_ages.of_next(superblock) },
        );
        let is_closed = core.array.program(superblock, index) == core.shape(superblock).units;
        if lpn.0 != DEAD_LPN {
            core.ftl.remap(&mut core.array, lpn, unit);
            on_mapped(lpn);
        }
        if is_closed {
            core.ftl.close(&mut core.array, superblock, core.now);
        }
        opened
    }

    /// Empties and erases a victim without simulated time. Returns the number of units moved, or `None` if there is no
    /// victim or no room for its units. The policy fails if it picks too many superblocks in succession whose erase
    /// gains nothing: preconditioning would not end.
    pub(crate) fn collect_now(&mut self, lane: LaneId, mut on_mapped: impl FnMut(Lpn)) -> Option<u64> {
        let core = &mut *self.0;
        let victim = core.pick_victim(lane)?;
        let moved = core.valid_units(victim);
        let whole = &mut core.room.spaces[lane.index()].fully_valid_victims_now;
        *whole = if moved == core.array.shape(victim).units { *whole + 1 } else { 0 };
        if *whole > FULLY_VALID_MAX * core.geometry.superblocks_in(lane) {
            let text = format!(
                "it picked {whole} blocks in succession that have no invalid page, though other blocks of the lane have some"
            );
            let error = PolicyError::new(text);
            core.fail_policy(PolicyFault { slot: PolicySlot::Victim, lane: Some(lane), error });
            return None;
        }
        let stream = core.emptying_stream(victim, false);
        if moved > core.stream_room(lane, stream) {
            return None;
        }
        core.ftl.begin_emptying(&mut core.array, victim);
        let mut index = 0;
        while let Some(next) = self.ftl.next_valid(victim, index) {
            index = next + 1;
            let unit = self.geometry.unit(victim, next);
            let (lpn, sequence) = (self.array.lpn(unit), self.array.stamp(unit).sequence);
            self.program_now(lane, stream, lpn, sequence, &mut on_mapped);
        }
        let core = &mut *self.0;
        debug_assert!(core.array.superblock(victim).state == SuperblockState::Victim);
        core.array.erase(&core.geometry, victim);
        core.ftl.release(&mut core.array, victim, core.room.endurance);
        Some(u64::from(moved))
    }
}
