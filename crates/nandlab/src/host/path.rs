//! The data path: the state that is needed to move a unit between host and flash, for a request or for the write cache.

use super::{Host, Writes};
use crate::base::geometry::LaneId;
use crate::core::Map;
use crate::probe::Probe;

/// The host's requests, the map, and the writes that need room in flash.
#[derive(Debug)]
pub(crate) struct DataPath<M> {
    pub(crate) host: Host,
    pub(crate) map: M,
    pub(crate) writes: Writes,
}

impl<M> DataPath<M> {
    /// Whether a write or a translation page waits for room. If no event is left, it will wait for ever.
    pub(crate) fn is_stuck<P: Probe>(&self) -> bool
    where
        M: Map<P>,
    {
        self.writes.count > 0 || self.map.is_waiting()
    }

    /// Whether a write or a translation page waits for room in a lane.
    pub(crate) fn waits_in<P: Probe>(&self, lane: LaneId) -> bool
    where
        M: Map<P>,
    {
        self.writes.wait_in(lane) || self.map.waits_in(lane)
    }
}
