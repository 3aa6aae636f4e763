//! What a page passes on its way between the host and flash, whether a request or the write cache sends it.

use super::{Host, Writes};
use crate::base::geometry::PlaneId;
use crate::core::Map;
use crate::probe::Probe;

/// The host's requests, the map, and the writes that look for a place.
#[derive(Debug)]
pub(crate) struct DataPath<M> {
    pub(crate) host: Host,
    pub(crate) map: M,
    pub(crate) writes: Writes,
}

impl<M> DataPath<M> {
    /// Whether something waits for room: with no event left none will come.
    pub(crate) fn is_stuck<P: Probe>(&self) -> bool
    where
        M: Map<P>,
    {
        self.writes.count > 0 || self.map.is_waiting()
    }

    /// Whether something waits for room in a plane.
    pub(crate) fn waits_in<P: Probe>(&self, plane: PlaneId) -> bool
    where
        M: Map<P>,
    {
        self.writes.wait_in(plane) || self.map.waits_in(plane)
    }
}
