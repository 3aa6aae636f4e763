//! Notes on the demand map.

use crate::base::note::Note;
use crate::base::words::count;

/// The mapping cache has no room for the whole map, but no entry was evicted. `most` is the number of cached entries at
/// the end, `entries` the number for which there is room.
pub(crate) fn no_eviction(evictions: u64, [most, entries, logical_units]: [u32; 3]) -> Option<Note> {
    if evictions > 0 || logical_units <= entries {
        return None;
    }
    Note::info(
        "no-eviction",
        format!(
            "No entry was evicted from the mapping cache, so the eviction policy of ftl.map.demand had no effect: the \
             workload used {} of the {} entries for which there is room. Lower ftl.map.demand.cache, or address more \
             of the drive.",
            count(most.into()),
            count(entries.into())
        ),
    )
}

/// All `entries` of the mapping cache are among the `fixed` - 1 most recently used ones, or all but one, so that the
/// eviction `read-level` is `lru`.
pub(crate) fn all_fixed(fixed: u32, entries: u32) -> Option<Note> {
    if entries > fixed {
        return None;
    }
    Note::info(
        "all-entries-fixed",
        format!(
            "The eviction policy read-level fixes {} entries (fixed = {}), and the mapping cache has room for {}: it always \
             evicts the least recently used entry, as lru does. Lower ftl.map.demand.eviction.read-level.fixed, or raise \
             ftl.map.demand.cache.",
            count(u64::from(fixed) - 1),
            count(fixed.into()),
            count(entries.into())
        ),
    )
}

/// The mapping cache has room for `entries` entries, enough for all `logical_units` units: no entry is ever evicted.
pub(crate) fn whole_map(entries: u32, logical_units: u32) -> Option<Note> {
    if logical_units > entries {
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_mapping_cache_that_evicts_nothing_or_always_as_lru_is_noted() {
        assert!(
            no_eviction(0, [7, 10, 100])
                .expect("nothing was evicted")
                .text
                .contains("used 7 of the 10 entries")
        );
        // An eviction, and a cache for the whole map, which has a note of its own.
        assert_eq!((no_eviction(1, [10, 10, 100]), no_eviction(0, [10, 100, 100])), (None, None));
        assert!(whole_map(100, 100).is_some() && whole_map(99, 100).is_none());
        // With `fixed` entries all but the least recently used one are fixed.
        assert!(
            all_fixed(10, 10).expect("one entry is not fixed").text.contains("fixes 9 entries (fixed = 10)")
        );
        assert_eq!(all_fixed(10, 11), None);
    }
}
