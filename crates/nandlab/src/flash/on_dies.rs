//! The progress of superblocks on several dies (`ftl.superblock = "drive"`): each die programs its units of a
//! superblock in order.
//!
//! `Array::is_programmed` decides whether a unit of such a superblock is programmed; `Superblock::programmed` only
//! counts. An erase is a transaction on each die, and `Core::end_erase` returns whether the last of them has ended.
//! After a power loss the programmed units of a superblock may have gaps, which `Array::skip_to` closes.

use crate::base::geometry::{Geometry, Stripes, SuperblockId};
use crate::base::huge::Huge;
use crate::base::state::state;
use std::collections::BTreeMap;

/// By superblock and die, the number of units programmed or skipped since the last erase.
#[derive(Clone, Debug)]
pub(super) struct OnDies {
    programmed: Huge<u32>,
    /// Units that a die skips once the units before them are programmed: the number of the first of them among the
    /// units on the die, and the number behind the last, by the index in `programmed`. Usually empty.
    ahead: BTreeMap<usize, (u32, u32)>,
    stripes: Stripes,
}

impl OnDies {
    pub(super) fn new(geometry: &Geometry) -> Self {
        let dies = (geometry.superblocks * geometry.dies_per_lane) as usize;
        Self { programmed: Huge::zeroed(dies), ahead: BTreeMap::new(), stripes: geometry.stripes }
    }

    /// Bytes of the array by superblock and die.
    pub(super) fn bytes(&self) -> u64 {
        self.programmed.bytes()
    }

    /// The index in `programmed` of the die of unit `unit` of `superblock`, and the unit's number among those on this
    /// die.
    fn place(&self, superblock: SuperblockId, unit: u32) -> (usize, u32) {
        let (die, place) = self.stripes.split(unit);
        ((superblock.0 * self.stripes.dies + die) as usize, place)
    }

    fn range(&self, superblock: SuperblockId) -> std::ops::Range<usize> {
        let first = (superblock.0 * self.stripes.dies) as usize;
        first..first + self.stripes.dies as usize
    }

    /// By die, the number of units of a superblock that have been programmed or skipped.
    pub(super) fn of(&self, superblock: SuperblockId) -> &[u32] {
        &self.programmed[self.range(superblock)]
    }

    /// [`OnDies::of`], mutable.
    pub(super) fn of_mut(&mut self, superblock: SuperblockId) -> &mut [u32] {
        let range = self.range(superblock);
        &mut self.programmed[range]
    }

    /// Whether unit `unit` of `superblock` has been programmed or skipped since the last erase.
    #[inline(never)]
    pub(super) fn is_programmed(&self, superblock: SuperblockId, unit: u32) -> bool {
        let (on_die, place) = self.place(superblock, unit);
        place < self.programmed[on_die]
    }

    /// Whether all units of `superblock` before unit `end` have been programmed or skipped since the last erase.
    pub(super) fn are_programmed(&self, superblock: SuperblockId, end: u32) -> bool {
        (0..).zip(self.of(superblock)).all(|(die, &programmed)| programmed >= self.stripes.before(end, die))
    }

    /// Counts the `units` units from number `place` on of a die, and those that the die skips behind them. Returns the
    /// number of units counted, or `None` if the unit with number `place` is not the next one.
    fn count_on(&mut self, on_die: usize, place: u32, units: u32) -> Option<u32> {
        let programmed = &mut self.programmed[on_die];
        if *programmed != place {
            return None;
        }
        *programmed += units;
        if !self.ahead.is_empty()
            && let Some(&(from, to)) = self.ahead.get(&on_die)
            && from == *programmed
        {
            *programmed = to;
            self.ahead.remove(&on_die);
        }
        Some(*programmed - place)
    }

    /// Counts unit `unit` of `superblock` as programmed. Returns the number of units counted, with those that are
    /// skipped behind it, or `None` if the unit is not the next one on its die.
    pub(super) fn count(&mut self, superblock: SuperblockId, unit: u32) -> Option<u32> {
        let (on_die, place) = self.place(superblock, unit);
        self.count_on(on_die, place, 1)
    }

    /// Counts the next `units` units of `superblock` on the die of unit `unit`, which is the last one counted, as
    /// skipped. Returns the number of units counted, with those that are skipped behind them.
    pub(super) fn skip_after(&mut self, superblock: SuperblockId, unit: u32, units: u32) -> u32 {
        let (on_die, place) = self.place(superblock, unit);
        let counted = self.count_on(on_die, place + 1, units);
        counted.unwrap_or_else(|| {
            panic!("units after unit {unit} of superblock {} are skipped out of order", superblock.0)
        })
    }

    /// Skips unit `unit` of `superblock`, now or once the units before it on its die are programmed. No later unit on
    /// its die is allocated. Returns the number of units counted now.
    pub(super) fn skip(&mut self, superblock: SuperblockId, unit: u32) -> u32 {
        let (on_die, place) = self.place(superblock, unit);
        if let Some(counted) = self.count_on(on_die, place, 1) {
            return counted;
        }
        let (_, to) = self.ahead.entry(on_die).or_insert((place, place));
        assert!(*to == place, "unit {unit} of superblock {} is skipped out of order", superblock.0);
        *to += 1;
        0
    }

    /// Power loss: the units before those that were to be skipped may never be programmed.
    pub(super) fn forget_ahead(&mut self) {
        self.ahead.clear();
    }

    /// The number of the unit after the last one of `superblock` that has been programmed or skipped.
    pub(super) fn end(&self, superblock: SuperblockId) -> u32 {
        let last = |(die, &programmed): (u32, &u32)| {
            programmed.checked_sub(1).map_or(0, |place| self.stripes.unit(die, place) + 1)
        };
        (0..).zip(self.of(superblock)).map(last).max().unwrap_or(0)
    }

    /// Counts the units of `superblock` before unit `end` as skipped, unless they are programmed. No unit from `end` on
    /// is programmed.
    pub(super) fn skip_to(&mut self, superblock: SuperblockId, end: u32) {
        let stripes = self.stripes;
        for (die, programmed) in (0..).zip(self.of_mut(superblock)) {
            let before = stripes.before(end, die);
            assert!(
                *programmed <= before,
                "a unit of superblock {} from unit {end} on is programmed",
                superblock.0
            );
            *programmed = before;
        }
    }

    /// The blocks of `superblock` on the die of unit `unit` have been erased. Returns whether the blocks on all dies
    /// are.
    pub(super) fn erase(&mut self, superblock: SuperblockId, unit: u32) -> bool {
        let (on_die, _) = self.place(superblock, unit);
        self.programmed[on_die] = 0;
        self.of(superblock).iter().all(|&programmed| programmed == 0)
    }
}

state! { OnDies { programmed, ahead } fixed { stripes } }
