//! The counters that the rooms declare, by section of the summary.

use crate::base::counters::{CounterSet, Declared};
use crate::drive::stats::{
    CacheStats, Counters, EccStats, GcStats, LossCounts, MapStats, MigrationStats, RefreshStats,
};

/// Every declared counter, by its section of the summary, in the order of that.
pub fn counters() -> [(&'static str, &'static [Declared]); 8] {
    [
        ("ecc", EccStats::DECLARED),
        ("map", MapStats::DECLARED),
        ("cache", CacheStats::DECLARED),
        ("power", LossCounts::DECLARED),
        ("migration", MigrationStats::DECLARED),
        ("refresh", RefreshStats::DECLARED),
        ("counters", Counters::DECLARED),
        ("counters", GcStats::DECLARED),
    ]
}
