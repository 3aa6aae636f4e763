//! Notes on the write cache.

use super::{CacheSpec, CacheStats, DirtyBudget};
use crate::base::note::Note;
use crate::base::words::count;

/// There never were as many dirty pages as the budget allows, in a cache of so many pages of which so many may be dirty.
/// `measured` is the least budget that a detection has found, as a share of the cache.
pub(crate) fn budget_never_bound(
    stats: &CacheStats,
    cache: &CacheSpec,
    [pages, budget]: [u32; 2],
    measured: Option<f64>,
) -> Option<Note> {
    let most = stats.dirty_pages_max;
    let least = match (cache.dirty_budget, measured) {
        // Each detection has set its own.
        (DirtyBudget::Measured, Some(least)) => (f64::from(pages) * least) as u32,
        _ => budget,
    };
    // Without a budget of its own the cache's size bounds the dirty pages, which nobody has asked for.
    let is_asked = cache.dirty_budget != DirtyBudget::Share(1.0) || cache.sync.name == "punctual";
    if pages == 0 || !is_asked || most >= least {
        return None;
    }
    let keys = if cache.sync.name == "punctual" {
        "cache.dirty_budget and cache.sync"
    } else {
        "cache.dirty_budget"
    };
    Note::info(
        "budget-never-bound",
        format!(
            "The dirty budget never bound, so {keys} had no effect on writes: {} of the {} pages of the write cache were \
             dirty at most, and {} may be. A smaller cache.size or cache.dirty_budget, or more writes at a time, would \
             show it.",
            count(most.into()),
            count(pages.into()),
            count(least.into())
        ),
    )
}
