//! The spec key `ftl.map`.

use super::DemandMap;
use crate::ftl::needs::Need;
use crate::ftl::streams::{OwnLpns, StreamSpec, Writer};
use crate::spec::{Choices, FromVal, Key, Policy, Val, ValueKind, choices, int, key, param, plain, with};

/// `ftl.map`: where the map is kept.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum MapSpec {
    /// The whole map is in RAM.
    Page,
    /// DFTL: the map is in flash, in translation pages; the entries in use are cached.
    Demand {
        /// Size of the mapping cache in bytes; an entry takes 8 bytes.
        cache_bytes: u64,
        /// The choice of the entry that is evicted from a full cache.
        eviction: Eviction,
        /// Whether the read levels of translation pages are remembered.
        translation_level: TranslationLevel,
        /// Which misses a read of a translation page serves.
        miss: Miss,
        /// Whether a miss waits for the write-back of the dirty entry that it evicts.
        write_back: MapWriteBack,
    },
}

/// The stream of translation pages, which are units of `unit_bytes` bytes: an open superblock, a free superblock so that
/// write-backs continue while the host waits, and the translation pages themselves as valid units.
pub(crate) fn stream(unit_bytes: u32) -> StreamSpec {
    let need = Need::new("mapping", "translation pages", 1, 1);
    StreamSpec::new(3, Writer::Map, need)
        .with_lpns(OwnLpns::PerLogical(DemandMap::entries_per_page(unit_bytes)))
}

pub(crate) const MAP: Key = key("ftl.map", ValueKind::Slot(MAPS), "\"page\"", "where the map is kept");

const MAPS: &[Policy] = &[
    plain("page", "the whole map is in RAM"),
    with(
        "demand",
        &[
            param("cache", CACHE, "\"64MiB\"", "size of the mapping cache; an entry takes 8 bytes"),
            param(
                "eviction",
                ValueKind::Registered(evictions),
                "\"lru\"",
                "which entry is evicted from a full cache",
            ),
            param(
                "translation_level",
                ValueKind::Slot(TranslationLevel::CHOICES),
                "\"remembered\"",
                "whether the read levels of translation pages are remembered",
            ),
            param(
                "miss",
                ValueKind::Slot(Miss::CHOICES),
                "\"shared\"",
                "which misses a read of a translation page serves",
            ),
            param(
                "write_back",
                ValueKind::Slot(MapWriteBack::CHOICES),
                "\"async\"",
                "whether a miss that evicts a dirty entry waits until this entry is in flash",
            ),
        ],
        "DFTL: the map is in flash, in translation pages; the entries in use are cached",
    ),
];

/// From one entry to 2^32 entries, one for every possible LPN.
const CACHE: ValueKind = ValueKind::Size { min: 8, max: 8 << 32, step: 8 };

/// `eviction` of the demand map.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Eviction {
    /// The least recently used entry.
    Lru,
    /// LaLDPC, Algorithm 1: the least recently used entry among those with the lowest read level. The `fixed` - 1 most
    /// recently used entries are fixed: they are not chosen while there are other entries.
    ReadLevel {
        /// Len_fix of Algorithm 1, in entries.
        fixed: u32,
    },
    /// A policy from outside (`Policies::with_map_eviction`).
    Outside,
}

fn evictions() -> &'static [Policy] {
    EVICTIONS
}

const EVICTIONS: &[Policy] = &[
    plain("lru", "the least recently used entry"),
    with(
        "read-level",
        &[param(
            "fixed",
            int(1, u32::MAX as u64),
            "2000",
            "Len_fix of Algorithm 1: the Len_fix - 1 most recently used entries are fixed",
        )],
        "LaLDPC, Algorithm 1: the least recently used entry among those with the lowest read level",
    ),
];

choices! {
    /// `translation_level` of the demand map: whether the read levels of translation pages are remembered.
    #[derive(Clone, Copy, Debug, PartialEq, Eq)]
    pub enum TranslationLevel {
        /// RAM has the level of the last read of every translation page, beside its PPN.
        Remembered = "remembered": "in RAM, for every translation page: ecc.start chooses the level of the first try",
        /// LaLDPC, Section III-A: levels are stored in the mapping cache only, which has no entry of a translation
        /// page.
        CachedOnly = "cached-only":
            "LaLDPC, Section III-A: levels are stored in the mapping cache only, so every read of a translation page \
             starts at level 1, except with ecc.start = \"ideal\" or in a refresh at full strength",
    }
}

choices! {
    /// `miss` of the demand map: which misses a read of a translation page serves.
    #[derive(Clone, Copy, Debug, PartialEq, Eq)]
    pub enum Miss {
        /// One read serves all misses that wait for the translation page, and its write-back.
        Shared = "shared": "one read serves all misses that wait for the translation page, and its write-back",
        /// Each miss and each write-back has a read of its own.
        Each = "each": "every miss and every write-back reads the translation page by itself",
    }
}

choices! {
    /// `write_back` of the demand map: whether a miss waits for the write-back of the dirty entry that it evicts. The
    /// write-back is the same: a read of the translation page for its unchanged entries, then a program.
    #[derive(Clone, Copy, Debug, PartialEq, Eq)]
    pub enum MapWriteBack {
        /// The miss goes on, and the translation page is written back meanwhile.
        Async = "async": "the miss goes on at once; the translation page of the evicted entry is written back meanwhile",
        /// LaLDPC, Algorithm 1, line 5, whose latency Section V-C names: the miss waits.
        BeforeInsert = "before-insert":
            "LaLDPC, Algorithm 1, line 5: the evicted entry is flushed first. The miss goes on, and later lookups hit \
             its entry, when the translation page of the evicted entry has been read, for its unchanged entries, and \
             programmed",
    }
}

impl FromVal for MapSpec {
    fn from_val(val: &Val) -> Self {
        match val {
            Val::Tag("page", None) => Self::Page,
            Val::Tag("demand", Some(params)) => Self::Demand {
                cache_bytes: params.read("cache"),
                eviction: params.read("eviction"),
                translation_level: params.read("translation_level"),
                miss: params.read("miss"),
                write_back: params.read("write_back"),
            },
            _ => val.is_no("map"),
        }
    }
}

impl FromVal for Eviction {
    fn from_val(val: &Val) -> Self {
        match val {
            Val::Tag("lru", None) => Self::Lru,
            Val::Tag("read-level", Some(params)) => Self::ReadLevel { fixed: params.read("fixed") },
            Val::Tag(..) => Self::Outside,
            _ => val.is_no("eviction"),
        }
    }
}
