//! Notes on the demand map.

use crate::base::note::Note;
use crate::base::words::count;

/// The mapping cache has room for `entries` entries, enough for all `logical_pages`: no entry is ever evicted.
pub(crate) fn whole_map(entries: u32, logical_pages: u32) -> Option<Note> {
    if logical_pages > entries {
        return None;
    }
    Note::info(
        "whole-map-cached",
        format!(
            "The mapping cache has room for the whole map ({} entries): no entry is ever evicted, so the eviction \
             policy has no effect. With a smaller ftl.map.demand.cache it has one.",
            count(entries.into())
        ),
    )
}
