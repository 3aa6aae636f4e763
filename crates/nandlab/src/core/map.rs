//! The interface between the controller and the map: the map entry of an LPN, which may have to be read from flash
//! first, and the read level that is kept with the entry.

use super::{Core, Wants};
use crate::base::geometry::{LaneId, Lpn, Tvpn};
use crate::probe::Probe;
use crate::sched::Owner;

/// The map entries of a drive, in RAM or in flash. [`Ftl::map`](crate::ftl::Ftl::map) always has the newest mapping of
/// every LPN, but a mechanism may use a mapping only after it has requested the entry here.
pub(crate) trait Map<P: Probe> {
    /// Requests the entry of `lpn` for a unit of a host request or of the write cache. Returns whether the entry is in
    /// RAM. If not, the unit waits for the entry, and continues with [`Wake::MapEntry`](super::Wake::MapEntry).
    fn has_entry(&mut self, core: &mut Core<P>, lpn: Lpn, owner: Owner, wants: Wants) -> bool;

    /// Puts the entry of `lpn` back into RAM if it has been evicted while its unit waited.
    fn keep_entry(&mut self, core: &mut Core<P>, lpn: Lpn);

    /// `lpn` has been written: its entry has changed, and its data is new.
    fn on_written(&mut self, core: &mut Core<P>, lpn: Lpn);

    /// The background job of `lane` has moved `lpn`. `is_corrected`: whether the move has corrected the data.
    fn on_moved(&mut self, core: &mut Core<P>, lane: LaneId, lpn: Lpn, is_corrected: bool);

    /// `lpn` has been deallocated. Returns the translation page that has to be written back, if any.
    fn on_unmapped(&mut self, core: &mut Core<P>, lpn: Lpn) -> Option<Tvpn>;

    /// The background job of `lane` has moved all its units.
    fn end_job(&mut self, core: &mut Core<P>, lane: LaneId);

    /// `lpn` has been mapped outside simulated time.
    #[inline(always)]
    fn on_mapped_now(&mut self, _lpn: Lpn) {}

    /// The remembered read level of `lpn`; 0: none.
    fn level(&self, core: &Core<P>, lpn: Lpn) -> u8;

    /// Sets the remembered read level of `lpn`, if the controller keeps levels and the entry is in RAM.
    fn set_level(&mut self, core: &mut Core<P>, lpn: Lpn, level: u8);

    /// The data of `lpn` has been corrected, so its next read starts at the first level again.
    #[inline(always)]
    fn on_corrected(&mut self, core: &mut Core<P>, lpn: Lpn) {
        if self.level(core, lpn) != 0 {
            self.set_level(core, lpn, 1);
        }
    }

    /// Whether a translation page waits for room in flash.
    fn is_waiting(&self) -> bool;

    /// Whether a translation page waits for room in `lane`.
    fn waits_in(&self, lane: LaneId) -> bool;

    /// Prefetches into the CPU's cache the parts of the entry of `lpn` that a move of its unit needs.
    fn prefetch_move(&self, lpn: Lpn);
}
