//! The interface between the controller and the map: the entry of an LPN, which may have to be read from flash first,
//! and the read level kept with the entry.

use super::{Core, Wants};
use crate::base::geometry::{Lpn, PlaneId, Tvpn};
use crate::probe::Probe;
use crate::sched::Owner;

/// The map entries of a drive, in RAM or in flash. [`Ftl::map`](crate::ftl::Ftl::map) has the newest mapping of every
/// LPN; before a mechanism uses a mapping, it asks for the entry.
pub(crate) trait Map<P: Probe> {
    /// Whether the entry of `lpn` is in RAM, for a page of a host request or of the write cache. If not, the page waits
    /// for the entry, and goes on with [`Wake::MapEntry`](super::Wake::MapEntry).
    fn has_entry(&mut self, core: &mut Core<P>, lpn: Lpn, owner: Owner, wants: Wants) -> bool;

    /// Makes sure that the entry of `lpn` is in RAM, for a page that has had its entry and may have waited since.
    fn keep_entry(&mut self, core: &mut Core<P>, lpn: Lpn);

    /// `lpn` has been written: its entry has changed, and its data is new.
    fn on_written(&mut self, core: &mut Core<P>, lpn: Lpn);

    /// The background job of `plane` has moved `lpn`; `is_corrected` says whether the move has corrected the data.
    fn on_moved(&mut self, core: &mut Core<P>, plane: PlaneId, lpn: Lpn, is_corrected: bool);

    /// `lpn` has been deallocated; returns the translation page that has to be written back.
    fn on_unmapped(&mut self, core: &mut Core<P>, lpn: Lpn) -> Option<Tvpn>;

    /// The background job of `plane` has moved all pages that it had to move.
    fn end_job(&mut self, core: &mut Core<P>, plane: PlaneId);

    /// The read level that the controller remembers for `lpn`; 0: none.
    fn level(&self, core: &Core<P>, lpn: Lpn) -> u8;

    /// Remembers a read level for `lpn`, where the controller keeps levels and the entry is in RAM.
    fn set_level(&mut self, core: &mut Core<P>, lpn: Lpn, level: u8);

    /// The data of `lpn` has been corrected: its reads start at the first level again.
    fn on_corrected(&mut self, core: &mut Core<P>, lpn: Lpn) {
        if self.level(core, lpn) != 0 {
            self.set_level(core, lpn, 1);
        }
    }

    /// Whether a translation page waits for room in flash.
    fn is_waiting(&self) -> bool;

    /// Whether a translation page waits for room in `plane`.
    fn waits_in(&self, plane: PlaneId) -> bool;

    /// Prefetches into the CPU's cache what moving the page of `lpn` needs of its entry.
    fn prefetch_move(&self, lpn: Lpn);
}
