//! Notes on the write cache.

use super::{CacheSpec, CacheStats, DirtyBudget};
use crate::base::note::Note;
use crate::base::words::{count, several};

/// No host unit found its data or a slot of its unit in the write cache.
pub(crate) fn never_hit(stats: &CacheStats) -> Option<Note> {
    let misses = stats.read_misses + stats.write_misses;
    if misses == 0 || stats.read_hits + stats.write_hits > 0 {
        return None;
    }
    Note::info(
        "cache-never-hit",
        format!(
            "The write cache had no hit in {}: it saved no program and no flash read, and only acknowledges writes before \
             they are in flash. Raise cache.size, or address fewer pages more often (workload.synthetic.address, \
             workload.repeat).",
            several(misses, "host page")
        ),
    )
}

/// The sync policy has written back no unit, and the number of dirty units never reached the budget that the policy
/// turns on. `sync`: name of the sync policy; `units`: capacity of the cache; `budget`: dirty units allowed.
pub(crate) fn never_synced(
    stats: &CacheStats,
    (cache, sync): (&CacheSpec, &str),
    [units, budget]: [u32; 2],
    measured: Option<f64>,
) -> Option<Note> {
    // `punctual` begins at the budget, and `budget-never-bound` names it.
    let is_named = matches!(sync, "none" | "punctual");
    let is_bound = stats.dirty_pages_max >= least_budget(cache, [units, budget], measured);
    if units == 0 || is_named || is_bound || stats.dirty_pages_max == 0 || stats.syncs > 0 {
        return None;
    }
    // `smart` also decides which unit is evicted.
    let effect = if sync == "smart" { "" } else { ", so the policy had no effect" };
    Note::info(
        "no-sync",
        format!(
            "cache.sync = {sync} wrote back no page ahead of eviction{effect}: with dirty pages the drive was never idle for \
             gc.idle_after, or had fewer of them than the policy starts with. Lower the load (workload.arrival, \
             workload.time_scale), or set cache.sync = \"eager\"."
        ),
    )
}

/// The lowest dirty budget of the run, in units.
fn least_budget(cache: &CacheSpec, [units, budget]: [u32; 2], measured: Option<f64>) -> u32 {
    match (cache.dirty_budget, measured) {
        // Each detection sets a budget; the lowest budget counts.
        (DirtyBudget::Measured, Some(least)) => (f64::from(units) * least) as u32,
        _ => budget,
    }
}

/// The number of dirty units never reached the budget. `sync`: name of the sync policy; `units`: capacity of the cache; `budget`: dirty units allowed;
/// `measured`: the lowest budget that a detection has set, as a share of the cache.
pub(crate) fn budget_never_bound(
    stats: &CacheStats,
    (cache, sync): (&CacheSpec, &str),
    [units, budget]: [u32; 2],
    measured: Option<f64>,
) -> Option<Note> {
    let most = stats.dirty_pages_max;
    let least = least_budget(cache, [units, budget], measured);
    // With the default budget of 1.0 the dirty units are bounded by the cache size alone; only `punctual` acts at that
    // bound.
    let is_asked = cache.dirty_budget != DirtyBudget::Share(1.0) || sync == "punctual";
    if units == 0 || !is_asked || most >= least {
        return None;
    }
    let keys = if sync == "punctual" { "cache.dirty_budget and cache.sync" } else { "cache.dirty_budget" };
    Note::info(
        "budget-never-bound",
        format!(
            "The dirty budget was never reached, so {keys} had no effect on writes: at most {} of the {} pages of the \
             write cache were dirty, and {} may be dirty. Lower cache.size or cache.dirty_budget, or submit more \
             writes at a time.",
            count(most.into()),
            count(units.into()),
            count(least.into())
        ),
    )
}
