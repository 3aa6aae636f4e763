//! What the rest of the controller asks of the map: the entry of a page, at hand or to be waited for, and what is known with it.

use super::{Core, Wants};
use crate::base::geometry::{Lpn, PlaneId, Tvpn};
use crate::probe::Probe;
use crate::sched::Owner;

/// The map entries of a drive, wherever they are kept. [`Ftl::map`](crate::ftl::Ftl::map) has the newest mapping of every
/// LPN; whoever uses it asks for its entry first.
pub(crate) trait Map<P: Probe> {
    /// Whether the entry of `lpn` is at hand for a page of a host request, or of the write cache. If not, the page waits
    /// for it, and goes on with [`Wake::MapEntry`](super::Wake::MapEntry).
    fn has_entry(&mut self, core: &mut Core<P>, lpn: Lpn, owner: Owner, wants: Wants) -> bool;

    /// Makes sure that the entry of `lpn` is at hand, for a page that has had it and may have waited since.
    fn keep_entry(&mut self, core: &mut Core<P>, lpn: Lpn);

    /// `lpn` has been written: its entry has changed, and its data is new.
    fn on_written(&mut self, core: &mut Core<P>, lpn: Lpn);

    /// The background job of `plane` has moved `lpn`, and has corrected its data or not.
    fn on_moved(&mut self, core: &mut Core<P>, plane: PlaneId, lpn: Lpn, is_corrected: bool);

    /// `lpn` has been deallocated; returns the translation page that has to be written back.
    fn on_unmapped(&mut self, core: &mut Core<P>, lpn: Lpn) -> Option<Tvpn>;

    /// The background job of `plane` has moved all it had to.
    fn end_job(&mut self, core: &mut Core<P>, plane: PlaneId);

    /// The read level that the controller remembers of `lpn`; 0: none.
    fn level(&self, core: &Core<P>, lpn: Lpn) -> u8;

    /// Remembers it, where there is a place for it.
    fn set_level(&mut self, core: &mut Core<P>, lpn: Lpn, level: u8);

    /// The data of `lpn` has been corrected: it is of the first level again.
    fn on_corrected(&mut self, core: &mut Core<P>, lpn: Lpn) {
        if self.level(core, lpn) != 0 {
            self.set_level(core, lpn, 1);
        }
    }

    /// Whether something of the map waits for room in flash.
    fn is_waiting(&self) -> bool;

    /// Whether something of the map waits for room in a plane.
    fn waits_in(&self, plane: PlaneId) -> bool;

    /// Asks the host machine's cache for what moving the page of `lpn` will need of its entry.
    fn prefetch_move(&self, lpn: Lpn);
}
