//! The counters of all rooms, with the section of the summary in which each is.

use crate::base::counters::{CounterSet, Declared};
use crate::drive::stats::{LossCounts, RoomCounters};

/// The counters that each room declares, after the name of their section of the summary.
pub fn counters() -> impl Iterator<Item = (&'static str, &'static [Declared])> {
    RoomCounters::DECLARED.iter().copied().chain([("power", LossCounts::DECLARED)])
}
