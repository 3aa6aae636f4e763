//! The spec key `ftl.map`.

use crate::spec::{FromVal, Key, Policy, Val, ValueKind, int, key, param, plain, with};

/// `ftl.map`: where the mapping is kept.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum MapSpec {
    /// The whole map in RAM.
    Page,
    /// DFTL: translation pages in flash, the entries in use in a cache.
    Demand {
        /// Size of the mapping cache; an entry takes 8 bytes.
        cache_bytes: u64,
        /// Which entry leaves a full cache.
        eviction: Eviction,
    },
}

pub(crate) const MAP: Key = key("ftl.map", ValueKind::Slot(MAPS), "\"page\"", "where the mapping is kept");

const MAPS: &[Policy] = &[
    plain("page", "the whole map in RAM"),
    with(
        "demand",
        &[
            param("cache", CACHE, "\"64MiB\"", "mapping cache, 8 bytes an entry"),
            param("eviction", ValueKind::Slot(EVICTIONS), "\"lru\"", "which entry leaves a full cache"),
        ],
        "DFTL: a cached map with translation pages in flash",
    ),
];

/// From one entry to 2^32 entries, one for every possible LPN.
const CACHE: ValueKind = ValueKind::Size { min: 8, max: 8 << 32, step: 8 };

/// `eviction` of the demand map.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Eviction {
    /// The least recently used entry.
    Lru,
    /// LaLDPC, Algorithm 1: among the entries with the lowest read level the least recently used one; the `fixed` - 1
    /// most recently used entries stay.
    ReadLevel {
        /// Len_fix of Algorithm 1, in entries.
        fixed: u32,
    },
}

const EVICTIONS: &[Policy] = &[
    plain("lru", "the least recently used entry"),
    with(
        "read-level",
        &[param(
            "fixed",
            int(1, u32::MAX as u64),
            "2000",
            "Len_fix: the Len_fix - 1 most recently used entries stay",
        )],
        "LaLDPC, Algorithm 1: the least recently used entry among those with the lowest read level",
    ),
];

impl FromVal for MapSpec {
    fn from_val(val: &Val) -> Self {
        match val {
            Val::Tag("page", None) => Self::Page,
            Val::Tag("demand", Some(params)) => {
                Self::Demand { cache_bytes: params.read("cache"), eviction: params.read("eviction") }
            }
            _ => val.is_no("map"),
        }
    }
}

impl FromVal for Eviction {
    fn from_val(val: &Val) -> Self {
        match val {
            Val::Tag("lru", None) => Self::Lru,
            Val::Tag("read-level", Some(params)) => Self::ReadLevel { fixed: params.read("fixed") },
            _ => val.is_no("eviction"),
        }
    }
}
