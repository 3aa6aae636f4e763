//! `ftl.map`.

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

/// From one entry to one for every page number there is.
const CACHE: ValueKind = ValueKind::Size { min: 8, max: 8 << 32, step: 8 };

/// `eviction` of the demand map.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Eviction {
    /// The least recently used entry.
    Lru,
    /// LaLDPC, Algorithm 1: the lowest read level, then the least recently used; the first `fixed` - 1 stay.
    ReadLevel {
        /// Len_fix there.
        fixed: u32,
    },
}

const EVICTIONS: &[Policy] = &[
    plain("lru", "the least recently used entry"),
    with(
        "read-level",
        &[param("fixed", int(1, u32::MAX as u64), "2000", "Len_fix: the first of them, less one, stay")],
        "LaLDPC, Algorithm 1: the lowest read level, of these the least recently used",
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
