//! Notes on the write cache.

use super::{CacheSpec, CacheStats, DirtyBudget};
use crate::base::note::Note;
use crate::base::words::count;

/// The number of dirty pages never reached the budget. `pages`: capacity of the cache; `budget`: dirty pages allowed;
/// `measured`: the lowest budget that a detection has set, as a share of the cache.
pub(crate) fn budget_never_bound(
    stats: &CacheStats,
    cache: &CacheSpec,
    [pages, budget]: [u32; 2],
    measured: Option<f64>,
) -> Option<Note> {
    let most = stats.dirty_pages_max;
    let least = match (cache.dirty_budget, measured) {
        // Each detection sets a budget; the lowest budget counts.
        (DirtyBudget::Measured, Some(least)) => (f64::from(pages) * least) as u32,
        _ => budget,
    };
    // With the default budget of 1.0 the dirty pages are bounded by the cache size alone; only `punctual` acts at that
    // bound.
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
            "The dirty budget was never reached, so {keys} had no effect on writes: at most {} of the {} pages of the \
             write cache were dirty, and {} may be dirty. Lower cache.size or cache.dirty_budget, or submit more \
             writes at a time.",
            count(most.into()),
            count(pages.into()),
            count(least.into())
        ),
    )
}
