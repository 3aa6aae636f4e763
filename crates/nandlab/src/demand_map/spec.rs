//! `ftl.map`.

use super::Eviction;

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
