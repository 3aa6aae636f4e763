//! Units with part of their data in another unit: a read needs both units.

use super::Core;
use crate::base::geometry::{Lpn, UnitId};
use crate::base::huge::Huge;
use crate::base::state::state;
use crate::probe::Probe;

/// The mark of a unit while part of its data is on its way to another unit, and not yet there.
const PENDING: u64 = 1;

/// By unit, the other unit that has part of its data: 0, [`PENDING`], or the LPN of the other unit, plus one, and the
/// number of bytes. Empty if no mechanism moves parts of units.
#[derive(Debug)]
pub struct Parts(Huge<u64>);

impl Parts {
    /// No unit has part of its data in another unit. With `units` = 0 no unit ever will.
    pub(crate) fn new(units: u32) -> Self {
        Self(Huge::filled(0, units as usize))
    }

    /// Bytes of the array by unit.
    pub(super) fn bytes(&self) -> u64 {
        self.0.bytes()
    }

    /// Prefetches what is kept of a unit into the CPU's cache.
    #[inline(always)]
    pub(crate) fn prefetch(&self, unit: UnitId) {
        self.0.prefetch_if_kept(unit.index());
    }

    #[inline(always)]
    fn mark(&self, unit: UnitId) -> u64 {
        self.0.get(unit.index()).copied().unwrap_or(0)
    }

    /// Whether a mechanism moves parts of units.
    #[inline(always)]
    pub(super) fn are_kept(&self) -> bool {
        !self.0.is_empty()
    }

    /// The LPN that has part of the data of `unit`, and the number of its bytes that a read of `unit` needs.
    pub fn of(&self, unit: UnitId) -> Option<(Lpn, u32)> {
        let mark = self.mark(unit);
        Some((Lpn(((mark >> 32) as u32).checked_sub(1)?), mark as u32))
    }

    /// Whether part of the data of a unit is in another unit, or on its way there.
    #[inline]
    pub fn is_marked(&self, unit: UnitId) -> bool {
        self.mark(unit) != 0
    }

    /// Whether part of the data of a unit is on its way to another unit.
    pub fn is_pending(&self, unit: UnitId) -> bool {
        self.mark(unit) == PENDING
    }

    /// Notes that part of the data of a unit is on its way to another unit.
    pub fn set_pending(&mut self, unit: UnitId) {
        debug_assert!(!self.is_marked(unit), "the unit has a mark already");
        self.0[unit.index()] = PENDING;
    }

    /// Notes that `bytes` bytes of the data of a unit are in the unit of `lpn` from now on.
    pub fn set(&mut self, unit: UnitId, lpn: Lpn, bytes: u32) {
        self.0[unit.index()] = u64::from(lpn.0 + 1) << 32 | u64::from(bytes);
    }

    /// Notes that the data of a unit is in one unit again, or is invalid.
    pub fn clear(&mut self, unit: UnitId) {
        self.0[unit.index()] = 0;
    }

    /// Clears all marks at power loss, because they are in RAM only.
    pub(crate) fn forget(&mut self) {
        for mark in self.0.iter_mut().filter(|mark| **mark != 0) {
            *mark = 0;
        }
    }
}

impl<P: Probe> Core<P> {
    /// Part of the data of a unit is on its way to another unit.
    pub(crate) fn mark_pending(&mut self, unit: UnitId) {
        self.parts.set_pending(unit);
    }

    /// Part of the data of a unit was on its way to another unit, and is no longer needed there, or arrives now.
    pub(crate) fn clear_mark(&mut self, unit: UnitId) {
        self.parts.clear(unit);
    }

    /// Drops all marks, which were in RAM only, with the errors known from them.
    pub(crate) fn forget_links(&mut self) {
        self.parts.forget();
        self.physics.known.clear();
    }

    /// Part of the data of a unit, `bytes` bytes, is in the unit of `lpn` from now on. The errors that the data had
    /// before, of `rber`, are known.
    pub(crate) fn link(&mut self, unit: UnitId, lpn: Lpn, bytes: u32, rber: f64) {
        self.parts.set(unit, lpn, bytes);
        self.physics.known.set(unit, rber);
        self.array.superblock_mut(self.geometry.superblock_of(unit)).linked += 1;
    }

    /// The data of a marked unit is in one unit again, or is invalid. Returns the LPN that had part of it; `None` if
    /// that part was still on its way.
    pub(crate) fn unlink(&mut self, unit: UnitId) -> Option<Lpn> {
        let part = self.parts.of(unit);
        self.parts.clear(unit);
        self.physics.known.set(unit, 0.0);
        let (lpn, _) = part?;
        self.array.superblock_mut(self.geometry.superblock_of(unit)).linked -= 1;
        Some(lpn)
    }
}

state! { Parts { ..tuple others } }
