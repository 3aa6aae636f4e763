//! The counters that the rooms declare, by section of the summary.

use crate::base::counters::{CounterSet, Declared};
use crate::drive::stats::{Counted, LossCounts};

/// Every declared counter, by its section of the summary.
pub fn counters() -> impl Iterator<Item = (&'static str, &'static [Declared])> {
    Counted::DECLARED.iter().copied().chain([("power", LossCounts::DECLARED)])
}
