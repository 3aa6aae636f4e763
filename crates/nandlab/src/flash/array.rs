//! The flash array: the state of each superblock and the OOB of each unit.
//!
//! The array enforces the rules of NAND flash. After an erase the units of a superblock on a die are programmed in
//! order, each once; units of the order may be skipped, and then remain erased until the next erase. A program in place
//! programs a programmed unit again with its own data. Only programmed units are read. A program, program in place or
//! read that breaks a rule is a bug in the controller and panics, and so does the erase of a superblock in use.
//!
//! The array counts units that have been programmed or skipped together: a skipped unit passes for a programmed one in
//! [`Array::is_programmed`] and in the checks of reads and programs in place.
//!
//! A parameter of the type [`UnitId`] is a PPN. A unit given as a `u32` is the number of the unit in its superblock.

use super::AgeStamp;
use super::on_dies::OnDies;
use super::shape::{Shape, ShapeId, Shapes};
use super::superblock::{Copied, DEAD_LPN, Keeps, Rare, Stamp, Superblock, SuperblockState};
use crate::base::geometry::{Geometry, LaneId, Lpn, SuperblockId, UnitId};
use crate::base::huge::Huge;
use crate::base::state::state;
use std::collections::BTreeSet;
use std::ops::Range;

/// All superblocks and the OOB of all units.
#[derive(Clone, Debug)]
pub struct Array {
    /// The state of each superblock, those included that bad blocks cost ([`SuperblockState::Bad`]).
    pub superblocks: Huge<Superblock>,
    /// The rare state of each superblock.
    rare: Huge<Rare>,
    shapes: Shapes,
    /// The number of each superblock's shape.
    shape_of: Huge<u8>,
    /// P/E cycles of each superblock in SLC mode, of which [`Superblock::pe_cycles`] counts the wear
    /// ([`Ageing`](super::Ageing)); empty if the drive has no such mode.
    slc_cycles: Huge<u32>,
    /// The progress of each superblock on each of its dies; `None` if each superblock is on one die.
    on_dies: Option<Box<OnDies>>,
    /// Page reads of each block since its last erase; empty if each block is a superblock, whose [`Superblock::reads`]
    /// counts them. In a superblock of several blocks `Superblock::reads` is at least their maximum.
    reads: Huge<u32>,
    /// OOB: the LPN of each unit.
    lpn: Huge<u32>,
    /// OOB: the sequence number of each unit; empty unless [`Keeps::sequences`].
    sequences: Huge<u64>,
    /// OOB: the age stamp at which the data of units was last corrected, by [`Array::age_index`]; empty unless
    /// [`Keeps::ages`].
    corrected: Huge<AgeStamp>,
    /// What the last copyback has done to units, by [`Array::age_index`]; the default, whose age stamp is
    /// [`AgeStamp::LOST`], if their data has been corrected since. Empty unless [`Keeps::copied`].
    copied: Huge<Copied>,
    /// OOB: the placement handle of the data of each unit; empty unless [`Keeps::handles`].
    handles: Huge<u8>,
    /// The number of the reclaim unit of each superblock, or 0; empty unless [`Keeps::reclaim_units`].
    reclaim_units: Huge<u32>,
    /// The binary logarithm of [`Keeps::units_per_age`].
    age_shift: u32,
    /// Units that hold lost data, if several units have a common age stamp, which then has no mark of lost data.
    /// Usually empty.
    lost: BTreeSet<u32>,
    /// Unreadable units: power failed during the program of the unit's page or of another page of its wordline. Usually
    /// empty.
    torn: BTreeSet<u32>,
    /// OOB: units that hold only the sectors that were dirty when power failed. Usually empty. The partial refresh of a
    /// superblock ([`Rare::is_refreshed_partially`]) is something else.
    partial: BTreeSet<u32>,
}

impl Array {
    /// An erased array whose superblocks have the first of `shapes` and have gone through `pe_cycles` P/E cycles.
    pub fn new(geometry: &Geometry, shapes: Shapes, pe_cycles: u32, keeps: Keeps) -> Self {
        let superblock = Superblock { pe_cycles, ..Superblock::default() };
        let units = geometry.units as usize;
        assert!(
            keeps.units_per_age.is_power_of_two() && geometry.units.is_multiple_of(keeps.units_per_age),
            "{} units with a common age: no power of two, or no divisor of the units of the drive",
            keeps.units_per_age
        );
        let ages = units >> keeps.units_per_age.ilog2();
        let is_apart = geometry.blocks_per_superblock() > 1;
        let mut superblocks = Huge::filled(superblock, geometry.superblocks as usize);
        for lane in (0..geometry.lanes).map(LaneId) {
            let (good, first) = (geometry.superblocks_of(lane), geometry.first_superblock(lane).index());
            for superblock in &mut superblocks[good.end..first + geometry.superblocks_per_lane as usize] {
                superblock.state = SuperblockState::Bad;
            }
        }
        Self {
            reads: Huge::zeroed(if is_apart { geometry.blocks() as usize } else { 0 }),
            superblocks,
            rare: Huge::filled(Rare::default(), geometry.superblocks as usize),
            slc_cycles: Huge::zeroed(if shapes.is_single() { 0 } else { geometry.superblocks as usize }),
            shapes,
            shape_of: Huge::zeroed(geometry.superblocks as usize),
            on_dies: (geometry.dies_per_lane > 1).then(|| Box::new(OnDies::new(geometry))),
            // Recovery needs sequence numbers, and also reads the OOBs of skipped units, which are erased: the OOB of
            // an erased unit must have no LPN.
            lpn: if keeps.sequences { Huge::filled(DEAD_LPN, units) } else { Huge::zeroed(units) },
            sequences: Huge::zeroed(if keeps.sequences { units } else { 0 }),
            corrected: Huge::filled(AgeStamp::LOST, if keeps.ages { ages } else { 0 }),
            copied: Huge::filled(Copied::default(), if keeps.copied { ages } else { 0 }),
            handles: Huge::zeroed(if keeps.handles { units } else { 0 }),
            reclaim_units: Huge::zeroed(if keeps.reclaim_units { geometry.superblocks as usize } else { 0 }),
            age_shift: keeps.units_per_age.ilog2(),
            lost: BTreeSet::new(),
            torn: BTreeSet::new(),
            partial: BTreeSet::new(),
        }
    }

    /// The fields of [`Keeps`] in their order; instead of the units of an age stamp their binary logarithm.
    pub(crate) fn keeps(&self) -> (bool, bool, bool, u32) {
        (self.keeps_sequences(), self.keeps_ages(), self.keeps_copied(), self.age_shift)
    }

    /// The superblocks that the drive has, retired ones included: all but those that bad blocks cost.
    pub fn good_superblocks(&self) -> impl Iterator<Item = &Superblock> + Clone {
        self.superblocks.iter().filter(|superblock| superblock.state != SuperblockState::Bad)
    }

    /// The state of a superblock.
    #[inline(always)]
    pub fn superblock(&self, superblock: SuperblockId) -> &Superblock {
        &self.superblocks[superblock.index()]
    }

    /// The state of a superblock, mutable.
    #[inline(always)]
    pub fn superblock_mut(&mut self, superblock: SuperblockId) -> &mut Superblock {
        &mut self.superblocks[superblock.index()]
    }

    /// The array of a drive whose shapes differ from those of this array in their times only.
    pub(crate) fn with_shapes(mut self, shapes: Shapes) -> Self {
        self.shapes = shapes;
        self
    }

    /// The shapes of the drive.
    #[inline(always)]
    pub fn shapes(&self) -> &Shapes {
        &self.shapes
    }

    /// The number of a superblock's shape.
    #[inline(always)]
    pub fn shape_id(&self, superblock: SuperblockId) -> ShapeId {
        ShapeId::of(self.shape_of[superblock.index()])
    }

    /// The shape of a superblock.
    #[inline(always)]
    pub fn shape(&self, superblock: SuperblockId) -> &Shape {
        &self.shapes[self.shape_id(superblock)]
    }

    /// The shapes of the superblocks with these ids as array indices.
    pub fn shapes_of(&self, superblocks: Range<usize>) -> ShapesOf<'_> {
        ShapesOf { shapes: &self.shapes, of: &self.shape_of[superblocks] }
    }

    /// Gives an erased superblock another shape. Free superblocks have the first shape: a superblock is reshaped when it
    /// has been taken from them, and again if it is given back without an erase.
    ///
    /// # Panics
    /// If a unit of the superblock is programmed, skipped, valid or needed by an operation.
    pub fn reshape(&mut self, superblock: SuperblockId, shape: ShapeId) {
        let state = self.superblock(superblock);
        assert!(
            state.programmed == 0
                && state.valid == 0
                && state.pins == 0
                && !self.is_partly_erased(superblock),
            "superblock {} is not erased and cannot be reshaped",
            superblock.0
        );
        self.shape_of[superblock.index()] = shape.number();
    }

    /// P/E cycles of a superblock in SLC mode; 0 in a drive without this mode.
    pub fn slc_cycles(&self, superblock: SuperblockId) -> u32 {
        self.slc_cycles.get(superblock.index()).copied().unwrap_or_default()
    }

    /// Sets [`Array::slc_cycles`] of a superblock, in a drive with this mode.
    pub(crate) fn set_slc_cycles(&mut self, superblock: SuperblockId, cycles: u32) {
        self.slc_cycles[superblock.index()] = cycles;
    }

    /// The P/E cycles of the first shape that the next erase of a superblock counts: 1, or in SLC mode the wear of its
    /// cycle.
    #[inline(always)]
    pub fn cycles_of_erase(&self, superblock: SuperblockId) -> u32 {
        let shape = self.shape_id(superblock);
        if shape == ShapeId::FIRST { 1 } else { self.wear_of_erase(superblock, shape) }
    }

    #[cold]
    fn wear_of_erase(&self, superblock: SuperblockId, shape: ShapeId) -> u32 {
        self.shapes.ageing(shape).wear_of_next(self.slc_cycles(superblock))
    }

    /// The rare state of a superblock.
    #[inline]
    pub fn rare(&self, superblock: SuperblockId) -> &Rare {
        &self.rare[superblock.index()]
    }

    /// The rare state of a superblock, mutable.
    #[inline]
    pub fn rare_mut(&mut self, superblock: SuperblockId) -> &mut Rare {
        &mut self.rare[superblock.index()]
    }

    /// Whether unit `unit` of `superblock` has been programmed or skipped since the last erase.
    #[inline(always)]
    pub fn is_programmed(&self, superblock: SuperblockId, unit: u32) -> bool {
        match &self.on_dies {
            None => unit < self.superblock(superblock).programmed,
            Some(on_dies) => on_dies.is_programmed(superblock, unit),
        }
    }

    /// Whether all units of `superblock` before unit `end` have been programmed or skipped since the last erase.
    pub fn are_programmed(&self, superblock: SuperblockId, end: u32) -> bool {
        match &self.on_dies {
            None => end <= self.superblock(superblock).programmed,
            Some(on_dies) => on_dies.are_programmed(superblock, end),
        }
    }

    /// Prefetches the state of a unit, without its LPN, into the CPU's cache.
    #[inline(always)]
    pub fn prefetch_state(&self, unit: UnitId) {
        self.corrected.prefetch_if_kept(self.age_index(unit));
        self.copied.prefetch_if_kept(self.age_index(unit));
        self.sequences.prefetch_if_kept(unit.index());
    }

    /// Prefetches the LPN in a unit's OOB into the CPU's cache.
    #[inline(always)]
    pub fn prefetch_lpn(&self, unit: UnitId) {
        self.lpn.prefetch(unit.index());
    }

    /// The LPN in a unit's OOB.
    #[inline(always)]
    pub fn lpn(&self, unit: UnitId) -> Lpn {
        Lpn(self.lpn[unit.index()])
    }

    /// The stamp in a unit's OOB; a field that is not kept has its default. The default age stamp equals
    /// [`AgeStamp::LOST`]; [`Array::is_lost`] states whether data is lost.
    #[inline(always)]
    pub fn stamp(&self, unit: UnitId) -> Stamp {
        Stamp {
            sequence: self.sequences.get(unit.index()).copied().unwrap_or_default(),
            corrected: self.corrected(unit),
        }
    }

    /// The index of a unit in `corrected` and `copied`, common to the [`Keeps::units_per_age`] units with a common age.
    #[inline(always)]
    fn age_index(&self, unit: UnitId) -> usize {
        (unit.0 >> self.age_shift) as usize
    }

    /// [`Stamp::corrected`] of a unit: that of its own if its data is lost, otherwise the common one of the units with
    /// its age.
    #[inline(always)]
    fn corrected(&self, unit: UnitId) -> AgeStamp {
        if !self.lost.is_empty() && self.is_among_lost(unit) {
            return AgeStamp::LOST;
        }
        self.corrected.get(self.age_index(unit)).copied().unwrap_or_default()
    }

    #[cold]
    fn is_among_lost(&self, unit: UnitId) -> bool {
        self.lost.contains(&unit.0)
    }

    /// Sets [`Stamp::corrected`] of a unit.
    #[inline(always)]
    fn set_corrected(&mut self, unit: UnitId, stamp: AgeStamp) {
        let index = self.age_index(unit);
        if self.age_shift > 0 {
            if stamp == AgeStamp::LOST {
                self.lost.insert(unit.0);
                return;
            }
            if !self.lost.is_empty() {
                self.lost.remove(&unit.0);
            }
        }
        self.corrected[index] = stamp;
    }

    /// Whether a programmed unit holds lost data ([`AgeStamp::LOST`]), which no read decodes. `false` if the array
    /// keeps no ages.
    #[inline(always)]
    pub fn is_lost(&self, unit: UnitId) -> bool {
        self.keeps_ages() && self.corrected(unit) == AgeStamp::LOST
    }

    /// Whether a unit is unreadable because power failed while its page, or another page of its wordline, was
    /// programmed.
    #[inline(always)]
    pub fn is_torn(&self, unit: UnitId) -> bool {
        !self.torn.is_empty() && self.torn.contains(&unit.0)
    }

    /// The torn units, in ascending order.
    pub fn torn_units(&self) -> impl Iterator<Item = UnitId> + use<'_> {
        self.torn.iter().copied().map(UnitId)
    }

    /// Makes a unit unreadable.
    pub fn tear(&mut self, unit: UnitId) {
        self.torn.insert(unit.0);
    }

    /// Makes every torn unit readable. Only for the test that proves that such a wrong drive is detected.
    #[doc(hidden)]
    pub fn forget_torn(&mut self) {
        self.torn.clear();
    }

    /// Replaces the sequence number in a unit's OOB. Only for the tests that prove that recovery needs this number.
    #[doc(hidden)]
    pub fn set_sequence(&mut self, unit: UnitId, sequence: u64) {
        self.sequences[unit.index()] = sequence;
    }

    /// Whether a unit holds only the sectors that were dirty when power failed.
    pub fn is_partial(&self, unit: UnitId) -> bool {
        self.partial.contains(&unit.0)
    }

    /// Marks a unit, before its program, as a unit that will hold only the sectors that were dirty when power failed.
    pub fn mark_partial(&mut self, unit: UnitId) {
        self.partial.insert(unit.0);
    }

    /// The units that hold only the sectors that were dirty when power failed.
    pub fn partial_units(&self) -> impl Iterator<Item = UnitId> + '_ {
        self.partial.iter().copied().map(UnitId)
    }

    /// Bytes of the arrays by superblock, block and unit.
    pub fn bytes(&self) -> u64 {
        let by_superblock = self.superblocks.bytes()
            + self.rare.bytes()
            + self.shape_of.bytes()
            + self.reclaim_units.bytes()
            + self.slc_cycles.bytes();
        let by_unit = self.lpn.bytes()
            + self.sequences.bytes()
            + self.corrected.bytes()
            + self.copied.bytes()
            + self.handles.bytes();
        by_superblock + self.reads.bytes() + by_unit + self.on_dies.as_deref().map_or(0, OnDies::bytes)
    }

    /// The placement handle of the data of a unit; 0 if the array keeps none.
    #[inline(always)]
    pub fn handle(&self, unit: UnitId) -> u8 {
        self.handles.get(unit.index()).copied().unwrap_or(0)
    }

    /// Writes the placement handle of its data into the OOB of a unit, if the array keeps it.
    #[inline(always)]
    pub fn set_handle(&mut self, unit: UnitId, handle: u8) {
        if let Some(of_unit) = self.handles.get_mut(unit.index()) {
            *of_unit = handle;
        }
    }

    /// The number of the reclaim unit of a superblock; 0 for a superblock that is in none, and if the array keeps none.
    #[inline]
    pub fn reclaim_unit(&self, superblock: SuperblockId) -> u32 {
        self.reclaim_units.get(superblock.index()).copied().unwrap_or(0)
    }

    /// Sets the number of the reclaim unit of a superblock, if the array keeps it. An erase sets it to 0.
    pub fn set_reclaim_unit(&mut self, superblock: SuperblockId, number: u32) {
        if let Some(of_superblock) = self.reclaim_units.get_mut(superblock.index()) {
            *of_superblock = number;
        }
    }

    /// Whether the OOB of each unit has a sequence number.
    pub fn keeps_sequences(&self) -> bool {
        !self.sequences.is_empty()
    }

    /// Whether the OOB of each unit has an age stamp.
    pub fn keeps_ages(&self) -> bool {
        !self.corrected.is_empty()
    }

    /// Whether the array keeps what copybacks have done to units.
    pub fn keeps_copied(&self) -> bool {
        !self.copied.is_empty()
    }

    /// What the last copyback has done to a unit; `None` if the unit's data has been corrected since then, was never
    /// copied back, or if the array does not keep what copybacks do.
    #[inline(always)]
    pub fn copied(&self, unit: UnitId) -> Option<Copied> {
        self.copied.get(self.age_index(unit)).copied().filter(|copied| copied.programmed != AgeStamp::LOST)
    }

    /// The age stamp from which the retention of a unit's cells counts.
    #[inline(always)]
    pub fn cells_since(&self, unit: UnitId) -> AgeStamp {
        self.copied(unit).map_or_else(|| self.stamp(unit).corrected, |copied| copied.programmed)
    }

    /// Records what a copyback has done to a unit, for all units with its age. If these are several, nothing is
    /// recorded of a unit with lost data.
    pub fn set_copied(&mut self, unit: UnitId, copied: Copied) {
        if self.age_shift == 0 || !self.is_lost(unit) {
            let index = self.age_index(unit);
            self.copied[index] = copied;
        }
    }

    /// The data of a unit has been corrected where it is.
    fn forget_copied(&mut self, unit: UnitId) {
        let index = self.age_index(unit);
        if let Some(copied) = self.copied.get_mut(index) {
            *copied = Copied::default();
        }
    }

    /// Writes the OOB of `unit` before the program of this unit.
    #[inline(always)]
    pub fn stage(&mut self, unit: UnitId, lpn: Lpn, stamp: Stamp) {
        self.lpn[unit.index()] = lpn.0;
        if !self.sequences.is_empty() {
            self.sequences[unit.index()] = stamp.sequence;
        }
        if !self.corrected.is_empty() {
            self.set_corrected(unit, stamp.corrected);
        }
    }

    /// Counts the program of unit `unit` of `superblock`, which has ended. Returns the number of units of the
    /// superblock, on all its dies, that have been programmed or skipped so far.
    #[inline(always)]
    pub fn program(&mut self, superblock: SuperblockId, unit: u32) -> u32 {
        if self.on_dies.is_some() {
            return self.program_on_die(superblock, unit);
        }
        debug_assert!(unit < self.shape(superblock).units, "unit {unit} is beyond its superblock");
        let state = self.superblock_mut(superblock);
        assert!(
            state.programmed == unit && state.state == SuperblockState::Open,
            "illegal program of unit {unit} of superblock {} ({:?}, next unit {})",
            superblock.0,
            state.state,
            state.programmed,
        );
        state.programmed += 1;
        unit + 1
    }

    /// [`Array::program`] of `count` units from `unit` on, in a superblock on one die.
    pub fn program_run(&mut self, superblock: SuperblockId, unit: u32, count: u32) -> u32 {
        assert!(
            self.on_dies.is_none() && unit + count <= self.shape(superblock).units,
            "a run is on one die"
        );
        if count > 0 {
            self.program(superblock, unit);
            self.superblock_mut(superblock).programmed += count - 1;
        }
        unit + count
    }

    /// [`Array::program`] in a superblock on several dies.
    #[inline(never)]
    fn program_on_die(&mut self, superblock: SuperblockId, unit: u32) -> u32 {
        let on_dies = self.on_dies.as_mut().expect("the superblock is on several dies");
        let state = &mut self.superblocks[superblock.index()];
        let counted = on_dies.count(superblock, unit).filter(|_| state.state == SuperblockState::Open);
        state.programmed += counted.unwrap_or_else(|| {
            panic!(
                "illegal program of unit {unit} of superblock {} ({:?}), which is not the next on its die",
                superblock.0, state.state,
            )
        });
        state.programmed
    }

    /// Records that the unit `source` has been copied back to the unit `to`. The copy keeps the errors that reads and
    /// programs in place have caused, so the reads of its block ([`Array::reads_of`]) and [`Rare::reprograms`] of its
    /// superblock become at least those of `source`.
    pub fn copy_errors(&mut self, geometry: &Geometry, to: UnitId, source: UnitId) {
        let ((superblock, unit), (from, of_source)) = (geometry.split(to), geometry.split(source));
        let (reads, reprograms) = (self.reads_of(geometry, from, of_source), self.rare(from).reprograms);
        if !self.reads.is_empty() {
            let of_block = &mut self.reads[block(geometry, superblock, unit)];
            *of_block = reads.max(*of_block);
        }
        let state = self.superblock_mut(superblock);
        state.reads = state.reads.max(reads);
        let rare = self.rare_mut(superblock);
        rare.reprograms = rare.reprograms.max(reprograms);
    }

    /// Records that `unit`, number `index` in `superblock`, has been programmed in place with its own data, which was
    /// corrected at `corrected`.
    pub fn reprogram(&mut self, superblock: SuperblockId, index: u32, unit: UnitId, corrected: AgeStamp) {
        assert!(
            self.is_programmed(superblock, index),
            "reprogram of unprogrammed unit {index} of superblock {}",
            superblock.0
        );
        let rare = self.rare_mut(superblock);
        rare.reprograms = rare.reprograms.saturating_add(1);
        self.forget_copied(unit);
        if self.keeps_ages() {
            self.set_corrected(unit, corrected);
        }
    }

    /// Clears the LPNs, the sequence numbers and the marks of [`Array::mark_partial`] in the OOBs of the units of
    /// `superblock` that are neither programmed nor skipped. Power loss prevented the programs for which they were
    /// staged.
    pub fn blank_unprogrammed(&mut self, geometry: &Geometry, superblock: SuperblockId) {
        let first = geometry.unit(superblock, 0).index();
        for range in self.unprogrammed(superblock) {
            let units = first + range.start as usize..first + range.end as usize;
            self.lpn[units.clone()].fill(DEAD_LPN);
            if self.keeps_sequences() {
                self.sequences[units.clone()].fill(0);
            }
            if !self.partial.is_empty() {
                units.for_each(|unit| _ = self.partial.remove(&(unit as u32)));
            }
        }
    }

    /// The units of a superblock that have been programmed or skipped since the last erase, by their numbers in the
    /// superblock, in ascending order.
    pub fn programmed(&self, superblock: SuperblockId) -> impl Iterator<Item = u32> + use<'_> {
        let units = 0..self.end(superblock).min(self.shape(superblock).units);
        units.filter(move |&unit| self.is_programmed(superblock, unit))
    }

    /// The units of a superblock that are neither programmed nor skipped, as ranges of their numbers in the superblock,
    /// in ascending order: a range for each of them before [`Array::end`], and the range from there to the end of the
    /// superblock, which may be empty.
    pub fn unprogrammed(&self, superblock: SuperblockId) -> Vec<Range<u32>> {
        let end = self.end(superblock);
        let before = if self.on_dies.is_some() { end } else { 0 };
        let gaps =
            (0..before).filter(|&unit| !self.is_programmed(superblock, unit)).map(|unit| unit..unit + 1);
        gaps.chain(std::iter::once(end..self.shape(superblock).units)).collect()
    }

    /// The number in `superblock` of the unit after the last one that has been programmed or skipped. On several dies
    /// units before it may be neither.
    pub fn end(&self, superblock: SuperblockId) -> u32 {
        self.on_dies
            .as_ref()
            .map_or_else(|| self.superblock(superblock).programmed, |on_dies| on_dies.end(superblock))
    }

    /// The number of units of `superblock` that have been programmed or skipped on one of its dies, which has the
    /// number `die` among them.
    pub fn programmed_on(&self, superblock: SuperblockId, die: u32) -> u32 {
        let of_die = |on_dies: &OnDies| on_dies.of(superblock)[die as usize];
        self.on_dies.as_deref().map_or_else(|| self.superblock(superblock).programmed, of_die)
    }

    /// Advances the age stamp of a unit's data to `stamp`, at which the data was corrected. A later age stamp and the
    /// mark of lost data remain.
    pub fn correct_since(&mut self, unit: UnitId, stamp: AgeStamp) {
        if self.keeps_ages() {
            let corrected = self.corrected(unit);
            if corrected != AgeStamp::LOST && corrected < stamp {
                self.set_corrected(unit, stamp);
                self.forget_copied(unit);
            }
        }
    }

    /// Skips the `units` units from unit `unit` on of an open superblock: they remain erased and cannot be programmed
    /// before the next erase of the superblock. In a superblock on one die all units before them must have been
    /// programmed or skipped, which is not checked; otherwise each die skips its units once those before them on the
    /// die have been programmed or skipped. No unit behind the skipped ones may be allocated yet. Returns the number of
    /// units of the superblock that have been programmed or skipped so far.
    pub fn skip(&mut self, superblock: SuperblockId, unit: u32, units: u32) -> u32 {
        let state = &mut self.superblocks[superblock.index()];
        state.programmed += match &mut self.on_dies {
            None => units,
            Some(on_dies) => (unit..unit + units).map(|unit| on_dies.skip(superblock, unit)).sum(),
        };
        state.programmed
    }

    /// Power loss: units that a die was to skip once the units before them were programmed are no longer to be skipped.
    pub fn forget_skips(&mut self) {
        if let Some(on_dies) = &mut self.on_dies {
            on_dies.forget_ahead();
        }
    }

    /// Skips, like [`Array::skip`], the next `units` units on the die of unit `unit`, which must be the last one
    /// programmed or skipped on this die.
    #[inline(always)]
    pub fn skip_after(&mut self, superblock: SuperblockId, unit: u32, units: u32) -> u32 {
        let state = &mut self.superblocks[superblock.index()];
        state.programmed += match &mut self.on_dies {
            None => units,
            Some(on_dies) => on_dies.skip_after(superblock, unit, units),
        };
        state.programmed
    }

    /// Skips all units before unit `end` that are not programmed, on every die. No unit from `end` on may be programmed
    /// or skipped.
    pub fn skip_to(&mut self, superblock: SuperblockId, end: u32) {
        if let Some(on_dies) = &mut self.on_dies {
            on_dies.skip_to(superblock, end);
        }
        self.superblock_mut(superblock).programmed = end;
    }

    /// Records that the blocks of `superblock` on the die of unit `unit` have been erased, and returns whether all
    /// blocks of the superblock are erased now. [`Array::erase`] must follow then; it alone counts the P/E cycle.
    #[inline]
    pub fn erase_on_die(&mut self, superblock: SuperblockId, unit: u32) -> bool {
        self.on_dies.as_mut().is_none_or(|on_dies| on_dies.erase(superblock, unit))
    }

    /// Whether the blocks of `superblock` have been erased on some of its dies, and [`Array::erase`] has not followed
    /// yet.
    pub fn is_partly_erased(&self, superblock: SuperblockId) -> bool {
        let on_dies = self.on_dies.as_ref();
        on_dies.is_some_and(|on_dies| {
            on_dies.of(superblock).iter().sum::<u32>() != self.superblock(superblock).programmed
        })
    }

    /// Whether the units programmed or skipped on the dies of `superblock` add up to those of the superblock. While the
    /// superblock is being erased they need not, because some of its dies have none any more.
    pub fn adds_up(&self, superblock: SuperblockId) -> bool {
        self.superblock(superblock).state == SuperblockState::Victim || !self.is_partly_erased(superblock)
    }

    /// Counts the sensing of the page of unit `unit` of `superblock` as a read of the page's block.
    #[inline(always)]
    pub fn read(&mut self, geometry: &Geometry, superblock: SuperblockId, unit: u32) {
        assert!(
            self.is_programmed(superblock, unit),
            "read of unprogrammed unit {unit} of superblock {}",
            superblock.0
        );
        let state = &mut self.superblocks[superblock.index()];
        if self.reads.is_empty() {
            state.reads += 1;
        } else {
            let reads = &mut self.reads[block(geometry, superblock, unit)];
            *reads += 1;
            state.reads = state.reads.max(*reads);
        }
    }

    /// Page reads of the block of unit `unit` of `superblock` since the last erase.
    #[inline(always)]
    pub fn reads_of(&self, geometry: &Geometry, superblock: SuperblockId, unit: u32) -> u32 {
        if self.reads.is_empty() {
            self.superblock(superblock).reads
        } else {
            self.reads[block(geometry, superblock, unit)]
        }
    }

    /// Counts the erase of `superblock`, which has ended on all its dies. Clears what has been counted since the last
    /// erase, the lists of torn, lost and partial units, and the records of copybacks. The superblock has the first shape
    /// again. If the array keeps sequence
    /// numbers, also clears the LPN and the sequence number of each unit. The [`SuperblockState`], the time of closing
    /// and the age stamps remain.
    pub fn erase(&mut self, geometry: &Geometry, superblock: SuperblockId) {
        let cycles = self.cycles_of_erase(superblock);
        if let Some(in_slc_mode) = self.slc_cycles.get_mut(superblock.index()) {
            *in_slc_mode += u32::from(self.shape_of[superblock.index()] == ShapeId::SLC.number());
        }
        let state = self.superblock_mut(superblock);
        assert!(
            state.valid == 0 && state.pins == 0 && state.linked == 0,
            "erase of superblock {} in use",
            superblock.0
        );
        state.pe_cycles += cycles;
        state.reads = 0;
        state.programmed = 0;
        state.mark = 0;
        *self.rare_mut(superblock) = Rare::default();
        self.set_reclaim_unit(superblock, 0);
        self.shape_of[superblock.index()] = ShapeId::FIRST.number();
        if let Some(on_dies) = &mut self.on_dies {
            on_dies.of_mut(superblock).fill(0);
        }
        if !self.reads.is_empty() {
            let first = block(geometry, superblock, 0);
            self.reads[first..first + geometry.blocks_per_superblock() as usize].fill(0);
        }
        let first = geometry.unit(superblock, 0).index();
        let units = first..first + geometry.units_per_superblock as usize;
        if self.keeps_sequences() {
            // So a read of an erased unit is detected, and recovery finds no data in units that remain erased.
            self.lpn[units.clone()].fill(DEAD_LPN);
            self.sequences[units.clone()].fill(0);
        }
        if self.keeps_copied() {
            self.copied[units.start >> self.age_shift..units.end >> self.age_shift].fill(Copied::default());
        }
        if !self.torn.is_empty() || !self.partial.is_empty() || !self.lost.is_empty() {
            let first = geometry.unit(superblock, 0).0;
            for unit in first..first + geometry.units_per_superblock {
                self.torn.remove(&unit);
                self.partial.remove(&unit);
                self.lost.remove(&unit);
            }
        }
    }
}

/// The shapes of some consecutive superblocks.
#[derive(Clone, Copy, Debug)]
pub struct ShapesOf<'a> {
    shapes: &'a Shapes,
    of: &'a [u8],
}

impl ShapesOf<'_> {
    /// The shape of all superblocks of the drive; `None` if the drive has several.
    pub fn only(&self) -> Option<&Shape> {
        (self.shapes.iter().len() == 1).then(|| self.shapes.first())
    }

    /// The shape of the superblock with number `at` among these.
    #[inline(always)]
    pub fn at(&self, at: u32) -> &Shape {
        &self.shapes[ShapeId::of(self.of[at as usize])]
    }
}

/// The index of the block of unit `unit` of `superblock`.
#[inline(always)]
fn block(geometry: &Geometry, superblock: SuperblockId, unit: u32) -> usize {
    (superblock.0 * geometry.blocks_per_superblock() + geometry.member(unit)) as usize
}

state! {
    Array { superblocks, rare, shape_of, slc_cycles, reads, lpn, sequences, corrected, copied, lost, torn, partial, handles, reclaim_units }
    parts { on_dies }
    fixed { shapes, age_shift }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::base::geometry::{Cell, DriveSpec, Layout, ProgramOrder, Superblock};
    use crate::core::testing::{Setup, shapes};

    /// An array whose first superblock has a unit of LPN 7 with this stamp.
    fn with_unit(stamp: Stamp) -> (Geometry, Array) {
        let core = Setup::default().core();
        let (geometry, shapes) = (core.geometry().clone(), core.flash().shapes().clone());
        let keeps = Keeps { sequences: true, ages: true, ..Keeps::default() };
        let mut array = Array::new(&geometry, shapes, 0, keeps);
        array.superblock_mut(SuperblockId(0)).state = SuperblockState::Open;
        array.stage(UnitId(0), Lpn(7), stamp);
        array.program(SuperblockId(0), 0);
        (geometry, array)
    }

    #[test]
    fn an_erase_clears_lpn_and_sequence_number_of_every_unit() {
        let (geometry, mut array) = with_unit(Stamp { sequence: 5, corrected: AgeStamp::START });
        assert_eq!((array.lpn(UnitId(0)), array.stamp(UnitId(0)).sequence), (Lpn(7), 5));
        array.erase(&geometry, SuperblockId(0));
        assert_eq!((array.lpn(UnitId(0)), array.stamp(UnitId(0)).sequence), (Lpn(DEAD_LPN), 0));
    }

    #[test]
    fn units_with_a_common_age_have_the_stamp_of_the_last_one_but_lose_their_data_alone() {
        let core = Setup { units: 8, ..Setup::default() }.core();
        let (geometry, shapes) = (core.geometry().clone(), core.flash().shapes().clone());
        let keeps = Keeps { sequences: true, ages: true, copied: true, units_per_age: 4, ..Keeps::default() };
        let mut array = Array::new(&geometry, shapes, 0, keeps);
        let after = |seconds| AgeStamp::START.plus_s(seconds);
        let stamp = |array: &Array, unit| array.stamp(UnitId(unit)).corrected;
        array.superblock_mut(SuperblockId(0)).state = SuperblockState::Open;
        let stamps = [after(3), AgeStamp::LOST, after(4), AgeStamp::LOST, after(9)];
        for (index, corrected) in (0..).zip(stamps) {
            array.stage(UnitId(index), Lpn(7), Stamp { sequence: 1, corrected });
            array.program(SuperblockId(0), index);
        }
        let of_units = [0, 1, 2, 3, 4].map(|unit| stamp(&array, unit));
        assert_eq!(of_units, [after(4), AgeStamp::LOST, after(4), AgeStamp::LOST, after(9)]);
        assert!((0..5).filter(|&unit| array.is_lost(UnitId(unit))).eq([1, 3]));
        // The errors of a copy of lost data do not hide those of the others.
        array.set_copied(UnitId(0), Copied { rber: 0.25, programmed: after(5) });
        array.set_copied(UnitId(1), Copied { rber: 0.0, programmed: after(5) });
        assert_eq!(array.copied(UnitId(2)).map(|copied| copied.rber), Some(0.25));
        array.correct_since(UnitId(2), after(6));
        assert_eq!((stamp(&array, 0), array.copied(UnitId(0))), (after(6), None));
        // After an erase no data is lost, and a unit is staged anew.
        array.erase(&geometry, SuperblockId(0));
        assert!(!array.is_lost(UnitId(1)) && !array.is_lost(UnitId(3)));
        array.stage(UnitId(1), Lpn(7), Stamp { sequence: 2, corrected: after(20) });
        assert_eq!((stamp(&array, 1), stamp(&array, 3), stamp(&array, 4)), (after(20), after(20), after(9)));
    }

    /// A drive of four pages a block.
    fn drive(dies_per_chip: u32, planes_per_die: u32) -> DriveSpec {
        DriveSpec {
            channels: 1,
            chips_per_channel: 1,
            dies_per_chip,
            planes_per_die,
            blocks_per_plane: 3,
            pages_per_block: 4,
            page_size_bytes: 4096,
            cell: Cell::Slc,
            layers: 1,
            op: 0.5,
            bad_blocks: 0.0,
            endurance: 10,
            registers: 1,
            program_order: ProgramOrder::Page,
        }
    }

    /// The number of units programmed or skipped was taken as the number of units without a gap: a superblock was left,
    /// and its other pages skipped, while a unit was being programmed.
    #[test]
    fn units_that_a_die_has_skipped_do_not_stand_for_those_of_another_die() {
        let drive = drive(2, 1);
        let geometry = Geometry::with(&drive, Layout { units_per_page: 1, superblock: Superblock::Drive });
        let mut array = Array::new(&geometry, shapes(&drive, &geometry), 0, Keeps::default());
        let superblock = SuperblockId(0);
        array.superblock_mut(superblock).state = SuperblockState::Open;
        // Units 0 and 2 are on the first die, 1 and 3 on the second one.
        array.program(superblock, 0);
        assert_eq!(array.skip_after(superblock, 0, 1), 2);
        assert!(array.are_programmed(superblock, 1) && !array.are_programmed(superblock, 2));
        array.program(superblock, 1);
        assert!(array.are_programmed(superblock, 3) && !array.are_programmed(superblock, 4));
    }

    #[test]
    fn a_copy_has_the_reads_of_the_block_of_its_source_alone() {
        let drive = drive(1, 2);
        let geometry = Geometry::with(&drive, Layout { units_per_page: 1, superblock: Superblock::Die });
        let mut array = Array::new(&geometry, shapes(&drive, &geometry), 0, Keeps::default());
        let [source, to] = [SuperblockId(0), SuperblockId(1)];
        for superblock in [source, to] {
            array.superblock_mut(superblock).state = SuperblockState::Open;
            for unit in 0..4 {
                array.program(superblock, unit);
            }
        }
        // Units 0 and 2 are in plane 0, units 1 and 3 in plane 1.
        for (unit, reads) in [(1, 7), (2, 2)] {
            for _ in 0..reads {
                array.read(&geometry, source, unit);
            }
        }
        let reads = |array: &Array, unit| array.reads_of(&geometry, to, unit);
        array.copy_errors(&geometry, geometry.unit(to, 0), geometry.unit(source, 2));
        assert_eq!((reads(&array, 0), reads(&array, 1), array.superblock(to).reads), (2, 0, 2));
        array.copy_errors(&geometry, geometry.unit(to, 1), geometry.unit(source, 3));
        assert_eq!((reads(&array, 2), reads(&array, 3), array.superblock(to).reads), (2, 7, 7));
        // A copy of a block that is read less keeps what the destination has.
        array.copy_errors(&geometry, geometry.unit(to, 3), geometry.unit(source, 0));
        assert_eq!((reads(&array, 2), reads(&array, 3)), (2, 7));
    }

    #[test]
    fn an_age_stamp_advances_and_the_mark_of_lost_data_remains() {
        let after = |seconds| AgeStamp::START.plus_s(seconds);
        for (corrected, since, then) in [
            (after(10), after(20), after(20)),
            (after(20), after(10), after(20)),
            (AgeStamp::LOST, after(10), AgeStamp::LOST),
        ] {
            let (_, mut array) = with_unit(Stamp { sequence: 1, corrected });
            array.correct_since(UnitId(0), since);
            assert_eq!(array.stamp(UnitId(0)).corrected, then);
        }
    }
}
