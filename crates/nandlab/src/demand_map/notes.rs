//! Notes on the demand map.

use crate::base::note::Note;
use crate::base::words::count;

/// The mapping cache has room for `entries` entries, which is enough for all `logical_pages`: nothing is ever evicted.
pub(crate) fn whole_map(entries: u32, logical_pages: u32) -> Option<Note> {
    if logical_pages > entries {
        return None;
    }
    Note::info(
        "whole-map-cached",
        format!(
            "The mapping cache has room for the whole map ({} entries): no entry ever leaves it, whatever the eviction \
             policy. A smaller ftl.map.demand.cache would show the policy.",
            count(entries.into())
        ),
    )
}
