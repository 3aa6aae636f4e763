//! The core outside simulated time: preconditioning, power loss, recovery, skipped time, and saved drives.

use super::{Core, Space, Work};
use crate::base::geometry::{DieId, Geometry, LaneId, Lpn, SuperblockId, UnitId};
use crate::base::huge::Huge;
use crate::base::policy::{PolicyError, PolicyFault, PolicySlot};
use crate::base::state::{State, StateError, StateReader, StateWriter, Value};
use crate::base::units::Time;
use crate::flash::{AgeStamp, Array, DEAD_LPN, ShapeId, Stamp, SuperblockState};
use crate::ftl::{AllocatedUnit, Config, Ftl, STREAMS_MAX, StreamId};
use crate::probe::Probe;
use crate::sched::{Cause, FlashOp, NEVER, Slot, Transaction};
use std::ops::{Deref, DerefMut, Range};

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

impl<P: Probe> DerefMut for Offline<'_, P> {
    #[inline(always)]
    fn deref_mut(&mut self) -> &mut Core<P> {
        self.0
    }
}

/// The state of the flash and of the FTL of a drive at rest, to be taken over by others.
#[derive(Clone, Debug)]
pub(crate) struct FlashState {
    array: Array,
    ftl: Ftl,
    sequence: u64,
}

impl<P: Probe> Core<P> {
    /// A copy of the state of flash and FTL.
    pub(crate) fn flash_state(&self) -> FlashState {
        FlashState { array: self.array.clone(), ftl: self.ftl.clone(), sequence: self.sequence }
    }

    /// Writes the state of flash and FTL.
    pub(crate) fn save_flash(&self, out: &mut StateWriter<'_>) {
        self.array.save_state(out);
        self.ftl.save_state(out);
        self.sequence.save(out);
    }
}

impl<'a, P: Probe> Offline<'a, P> {
    #[inline(always)]
    pub(crate) fn new(core: &'a mut Core<P>) -> Self {
        Self(core)
    }

    // ---------------------------------------------------------------------------------------------- while power fails

    /// At power failure, takes back the units allocated to programs that will never begin, in superblocks on one die.
    /// `programmed` returns the number of units of a superblock on its die, the first ones, that will have been programmed
    /// or skipped. See [`Ftl::take_back_queued`].
    pub(crate) fn take_back_queued(
        &mut self,
        programmed: impl Fn(&Geometry, &Array, SuperblockId, DieId) -> u32,
    ) {
        let Core { ftl, array, geometry, .. } = &mut *self.0;
        let die = |superblock| geometry.die_of(geometry.lane_of(superblock));
        ftl.take_back_queued(|superblock| programmed(geometry, array, superblock, die(superblock)));
    }

    /// Jobs, and erases of dead superblocks, that have not begun will not begin any more.
    pub(crate) fn drop_promises(&mut self) {
        self.0.room.spaces.iter_mut().for_each(|space| space.soon_free = 0);
        self.0.ftl.lanes.iter_mut().for_each(|lane| lane.promised_superblocks = 0);
    }

    /// All jobs are gone, with what they have taken.
    pub(crate) fn forget_jobs(&mut self) {
        let core = &mut *self.0;
        core.room.works.fill(Work::default());
        for lane in &mut core.ftl.lanes {
            (lane.promised_superblocks, lane.promised_units) = (0, 0);
        }
        core.room.spaces.fill(Space::default());
        core.room.kept_from.fill(None);
    }

    /// A program or copyback has ended, or is torn: the unit is no longer erased. A superblock whose last unit it is
    /// stays open: recovery finds out what it has.
    pub(crate) fn settle_program(&mut self, done: &Transaction) {
        let core = &mut *self.0;
        let superblock = core.geometry.superblock_of(done.unit);
        core.array.program(superblock, done.index);
        core.count_placed(done);
        let programmed = core.array.skip_after(superblock, done.index, u32::from(done.skips));
        if programmed == core.shape(superblock).units {
            core.array.superblock_mut(superblock).closed_at = core.now;
        }
    }

    /// The erase of a superblock has ended on the die of its unit `first`. Returns whether this was the last of its dies.
    pub(crate) fn end_erase_on_die(&mut self, first: UnitId) -> bool {
        let (superblock, index) = self.geometry.split(first);
        self.0.array.erase_on_die(superblock, index)
    }

    /// Tears a unit: it is programmed, and its data and its OOB are lost.
    pub(crate) fn tear(&mut self, unit: UnitId) {
        self.0.array.tear(unit);
    }

    /// Ends the read of a job after its last try.
    pub(crate) fn end_read(&mut self, slot: Slot) -> Transaction {
        let core = &mut *self.0;
        let read = core.pool.remove(slot);
        let superblock = core.geometry.superblock_of(read.unit);
        core.array.superblock_mut(superblock).pins -= 1;
        core.count_ended(FlashOp::Read, Cause::Gc, read.shape);
        core.count_sensed(superblock, read.index);
        read
    }

    // ------------------------------------------------------------------------------------------------ what flash takes

    /// Maps an LPN to a unit, whose program has ended. Returns the unit that had its data before.
    #[inline]
    pub(crate) fn remap(&mut self, lpn: Lpn, unit: UnitId) -> Option<UnitId> {
        self.0.ftl.remap(&mut self.0.array, lpn, unit)
    }

    /// Programs an allocated unit of a stream and maps its LPN to it, without simulated time. Returns the unit that had
    /// the data before.
    pub(crate) fn program_allocated(
        &mut self,
        unit: UnitId,
        stream: StreamId,
        lpn: Lpn,
        stamp: Stamp,
    ) -> Option<UnitId> {
        let core = &mut *self.0;
        let (superblock, index) = core.geometry.split(unit);
        core.array.stage(unit, lpn, stamp);
        core.stage_handle(unit, lpn, Some(stream));
        core.count_recovered(unit, lpn);
        core.array.program(superblock, index);
        core.ftl.remap(&mut core.array, lpn, unit)
    }

    /// Power fails while the program to an allocated programming unit is under way: its units are no longer erased. `lpn`
    /// and `stamp` are those of its first unit.
    pub(crate) fn begin_torn_program(&mut self, place: AllocatedUnit, lpn: Lpn, stamp: Stamp) {
        let core = &mut *self.0;
        let (superblock, index) = core.geometry.split(place.unit);
        let units = core.shape(superblock).units_per_program;
        core.array.stage(place.unit, lpn, stamp);
        for index in index..index + units {
            core.array.program(superblock, index);
        }
        core.array.skip_after(superblock, index + units - 1, u32::from(place.skips));
        core.array.superblock_mut(superblock).closed_at = core.now;
    }

    /// Skips the next `count` units after the unit with number `index` in a superblock on its die, and closes the
    /// superblock if no unit is left.
    pub(crate) fn skip_after(&mut self, superblock: SuperblockId, index: u32, count: u32) {
        let core = &mut *self.0;
        if core.array.skip_after(superblock, index, count) == core.shape(superblock).units {
            core.ftl.close(&mut core.array, superblock, core.now);
        }
    }

    /// In recovery, with an empty capacitor: no later unit of a stream of jobs may share a wordline with a copy.
    pub(crate) fn end_wordlines_in_recovery(&mut self, lane: LaneId) {
        if self.array.shapes().have_dependent_pages() {
            self.skip_wordlines(lane);
        }
    }

    /// Skips the units of an open superblock up to number `end`.
    pub(crate) fn skip_to(&mut self, superblock: SuperblockId, end: u32) {
        self.0.array.skip_to(superblock, end);
    }

    /// Counts units that are programmed without data.
    pub(crate) fn count_padding(&mut self, units: u32) {
        self.0.gathering.stats.padding += u64::from(units);
    }

    /// Allocates a programming unit of a stream of the host on a die for an emergency flush ([`Ftl::allocate_for_flush`]).
    pub(crate) fn allocate_for_flush(&mut self, die: DieId, stream: StreamId) -> Option<AllocatedUnit> {
        self.0.ftl.allocate_for_flush(&mut self.0.array, die, stream)
    }

    /// Erases a superblock without simulated time: it becomes free, or retires.
    pub(crate) fn erase_now(&mut self, superblock: SuperblockId) {
        self.0.end_erases(superblock);
    }

    // ---------------------------------------------------------------------------------------------- when power is back

    /// Takes the map of an FTL that maps nothing: `entries` has 1 + the PPN of each LPN, or 0.
    pub(crate) fn restore_map(&mut self, entries: Huge<u32>) {
        self.0.ftl.restore_map(&mut self.0.array, entries);
    }

    /// Maps some LPNs anew ([`Ftl::restore_changes`]).
    pub(crate) fn restore_changes(&mut self, entries: &[(Lpn, u32)]) -> Vec<(Lpn, Option<UnitId>)> {
        self.0.ftl.restore_changes(&mut self.0.array, entries)
    }

    /// Whether the victim policy remembers in which order the superblocks have become full.
    pub(crate) fn picks_remember_order(&mut self) -> bool {
        self.0.ftl.picks_remember_order()
    }

    /// Erases a superblock whose lane has no list of free superblocks yet: it becomes free, or retires, when the lists
    /// are rebuilt.
    pub(crate) fn erase_unlisted(&mut self, superblock: SuperblockId) {
        let core = &mut *self.0;
        core.count_erase(superblock);
        // If the map was kept, its entries of this superblock are among those that change.
        core.array.superblock_mut(superblock).valid = 0;
        core.array.erase(&core.geometry, superblock);
        let state = core.array.superblock_mut(superblock);
        let is_worn_out = state.pe_cycles >= core.room.endurance;
        state.state = if is_worn_out { SuperblockState::Retired } else { SuperblockState::Free };
    }

    /// Gives a superblock the state that follows from its programmed units, and forgets what the OOB of the others had.
    pub(crate) fn find_state(&mut self, superblock: SuperblockId) {
        let core = &mut *self.0;
        core.array.blank_unprogrammed(&core.geometry, superblock);
        let (units, shape) = (core.shape(superblock).units, core.array.shape_id(superblock));
        let closed = Self::closed(shape);
        let state = core.array.superblock_mut(superblock);
        state.state = match state.programmed {
            0 if !state.state.is_usable() => state.state,
            0 => {
                // The superblock may have been opened for programs that had not begun when power failed.
                state.mark = 0;
                SuperblockState::Free
            }
            programmed if programmed == units => closed,
            _ => SuperblockState::Open,
        };
        let found = state.state;
        if state.programmed == 0 && shape != ShapeId::FIRST {
            // If the map was kept, its entries of this superblock are among those that change.
            state.valid = 0;
            core.array.reshape(superblock, ShapeId::FIRST);
        }
        if found == SuperblockState::Free {
            core.array.set_reclaim_unit(superblock, 0);
        }
    }

    /// The state of a closed superblock of this shape.
    fn closed(shape: ShapeId) -> SuperblockState {
        if shape == ShapeId::SLC { SuperblockState::Cached } else { SuperblockState::Full }
    }

    /// Makes an open superblock full from now on: the rest of its units stay erased. The lists of its lane are rebuilt
    /// later.
    pub(crate) fn fill_up(&mut self, superblock: SuperblockId) {
        let core = &mut *self.0;
        let units = core.shape(superblock).units;
        let closed = Self::closed(core.array.shape_id(superblock));
        core.array.skip_to(superblock, units);
        let state = core.array.superblock_mut(superblock);
        (state.state, state.closed_at) = (closed, core.now);
    }

    /// Rebuilds the lists of a lane from the states of its superblocks. `open` has the next unit of each stream; `None`
    /// for a stream without an open superblock.
    pub(crate) fn restore_lane(&mut self, lane: LaneId, open: [Option<UnitId>; STREAMS_MAX]) {
        self.0.ftl.restore_lane(&self.0.array, lane, open);
    }

    /// Makes a superblock whose units are all programmed or skipped full, and a candidate of GC, as of `time`.
    pub(crate) fn close(&mut self, superblock: SuperblockId, time: Time) {
        let core = &mut *self.0;
        core.ftl.close(&mut core.array, superblock, time);
    }

    // ------------------------------------------------------------------------------------ skipped time and other drives

    /// The data of a unit was last corrected at `since`.
    pub(crate) fn correct_since(&mut self, unit: UnitId, since: AgeStamp) {
        self.0.array.correct_since(unit, since);
    }

    /// Sets the sequence number of the newest write.
    pub(crate) fn set_sequence(&mut self, sequence: u64) {
        self.0.sequence = sequence;
    }

    /// Takes over the state of another drive, whose shapes may differ in their times.
    pub(crate) fn take_over(&mut self, of: &FlashState) {
        let shapes = self.0.array.shapes().clone();
        self.0.array = of.array.clone().with_shapes(shapes.clone());
        self.0.ftl = of.ftl.clone().with_shapes(shapes);
        self.0.sequence = of.sequence;
    }

    /// Restores the state of flash and FTL of a drive built alike.
    ///
    /// # Errors
    /// When reading fails, or the bytes are not such a state.
    pub(crate) fn load_flash(&mut self, from: &mut StateReader<'_>) -> Result<(), StateError> {
        self.0.array.load_state(from)?;
        self.0.ftl.load_state(from)?;
        self.0.sequence = Value::load(from)?;
        Ok(())
    }

    /// Power fails: drops the operations that no die has begun, and stops the clocks of everything but the dies.
    pub(crate) fn drop_queues(&mut self) {
        let core = &mut *self.0;
        core.device.drop_queues(&core.pool);
        core.gathering.forget();
        core.array.forget_skips();
        for clock in core.first_decoder_clock()..=core.refresh_clock() {
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

    /// Power has returned, and the map is kept: drops the counts of pinned and linked units.
    pub(crate) fn forget_pins(&mut self) {
        for superblock in &mut *self.0.array.superblocks {
            (superblock.pins, superblock.linked) = (0, 0);
        }
    }

    /// Takes the map and the valid units away from the FTL, and gives them to a new one ([`Ftl::renewed`]).
    pub(crate) fn renew_ftl(&mut self, config: Config) -> Ftl {
        self.0.ftl.renewed(config, &self.0.geometry, &self.0.array)
    }

    /// Drops the state of the core that was in RAM only, and takes a `fresh` FTL. Returns the FTL from before.
    pub(crate) fn forget_ram(&mut self, fresh: Ftl) -> Ftl {
        let core = &mut *self.0;
        core.pool.clear();
        core.abandoned.clear();
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

    /// Sets the P/E cycles in SLC mode of a superblock of a loaded drive.
    pub(crate) fn set_slc_cycles(&mut self, superblock: SuperblockId, cycles: u32) {
        self.0.array.set_slc_cycles(superblock, cycles);
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

    /// Gives a unit of a loaded superblock the placement handle of its data.
    pub(crate) fn set_handle(&mut self, unit: UnitId, handle: u8) {
        self.0.array.set_handle(unit, handle);
    }

    /// Gives a loaded superblock its reclaim unit.
    pub(crate) fn set_reclaim_unit(&mut self, superblock: SuperblockId, number: u32) {
        self.0.array.set_reclaim_unit(superblock, number);
    }

    /// Gives a stream of a loaded drive the reclaim unit that it fills: its number, and the superblocks that it still takes.
    pub(crate) fn set_open_unit(&mut self, lane: LaneId, stream: StreamId, unit: (u32, u32)) {
        self.0.ftl.set_open_unit(lane, stream, unit);
    }

    /// A loaded superblock is of a drive without placement handles: its data is that of handle 0. Where GC keeps the data of
    /// this handle by itself, the superblock gets the mark of the host's with this handle.
    pub(crate) fn make_of_handle_0(&mut self, superblock: SuperblockId) {
        let core = &mut *self.0;
        let (mark, is_of_host) =
            (core.ftl.streams.spec(StreamId::HOST).mark, core.has_data_of_host(superblock));
        let of_superblock = core.array.superblock_mut(superblock);
        if is_of_host && core.ftl.streams.handles_in(of_superblock.mark) & 1 == 0 {
            of_superblock.mark = mark;
        }
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
        core.stage_handle(unit, lpn, Some(stream));
        let is_closed = core.array.program(superblock, index) == core.shape(superblock).units;
        let mut old = None;
        if lpn.0 != DEAD_LPN {
            old = core.ftl.remap(&mut core.array, lpn, unit);
            on_mapped(lpn);
        }
        if is_closed {
            core.ftl.close(&mut core.array, superblock, core.now);
        }
        if core.ftl.slc().is_some() {
            let old = old.map(|old| core.geometry.superblock_of(old));
            old.into_iter().chain([superblock]).for_each(|superblock| self.erase_if_dead(superblock));
        }
        opened
    }

    /// Programs the next units of the host's open superblock with these LPNs, which are unmapped ([`DEAD_LPN`]: the
    /// unit is invalid), as [`Offline::program_now`] does one after another with the sequence number 0; but the caller
    /// maps the LPNs to the units ([`Offline::map_first`]). Returns the PPNs of the units, perhaps of fewer than there
    /// are LPNs: of none if no superblock is open, and where each unit needs a look at more than this superblock.
    pub(crate) fn program_run(&mut self, lane: LaneId, lpns: &[u32]) -> Range<u32> {
        let core = &mut *self.0;
        if core.geometry.dies_per_lane > 1 || core.placement.is_some() || core.ftl.slc().is_some() {
            return 0..0;
        }
        let units = core.ftl.allocate_run(lane, lpns.len() as u32);
        if units.is_empty() {
            return units;
        }
        let lpns = &lpns[..units.len()];
        let (superblock, index) = core.geometry.split(UnitId(units.start));
        let stamp = Stamp { sequence: 0, corrected: core.physics.initial_ages.of_next(superblock) };
        for (unit, &lpn) in units.clone().map(UnitId).zip(lpns) {
            core.array.stage(unit, Lpn(lpn), stamp);
        }
        core.ftl.validate_run(&mut core.array, superblock, index, lpns);
        let programmed = core.array.program_run(superblock, index, lpns.len() as u32);
        if programmed == core.shape(superblock).units {
            core.ftl.close(&mut core.array, superblock, core.now);
        }
        units
    }

    /// Maps an LPN to a unit of [`Offline::program_run`].
    #[inline]
    pub(crate) fn map_first(&mut self, lpn: Lpn, unit: UnitId) {
        self.0.ftl.map_first(lpn, unit);
    }

    /// Erases a superblock in SLC mode that has no valid unit, as [`Core::look_if_dead`] does with simulated time.
    #[inline]
    fn erase_if_dead(&mut self, superblock: SuperblockId) {
        let of = self.0.superblock(superblock);
        if of.state == SuperblockState::Cached && of.valid == 0 {
            self.0.begin_emptying(superblock);
            self.erase_now(superblock);
        }
    }

    /// Empties and erases a victim without simulated time. Returns the number of units moved, or `None` if there is no
    /// victim or no room for its units. The policy fails if it picks too many superblocks in succession whose erase
    /// gains nothing: preconditioning would not end.
    pub(crate) fn collect_now(&mut self, lane: LaneId, mut on_mapped: impl FnMut(Lpn)) -> Option<u64> {
        let core = &mut *self.0;
        let victim = match core.ftl.to_fold(&core.array, lane) {
            Some(victim) => victim,
            None => core.pick_victim(lane)?,
        };
        let moved = core.valid_units(victim);
        let units = core.first_shape().units;
        let whole = &mut core.room.spaces[lane.index()].fully_valid_victims_now;
        *whole = if moved == units { *whole + 1 } else { 0 };
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
        core.begin_unit(victim);
        core.begin_emptying(victim);
        let mut index = 0;
        while let Some(next) = self.ftl.next_valid(victim, index) {
            index = next + 1;
            let unit = self.geometry.unit(victim, next);
            let (lpn, sequence) = (self.array.lpn(unit), self.array.stamp(unit).sequence);
            self.program_now(lane, stream, lpn, sequence, &mut on_mapped);
        }
        debug_assert!(self.array.superblock(victim).state == SuperblockState::Victim);
        self.erase_now(victim);
        Some(u64::from(moved))
    }
}
