//! `[cache]` of a spec.

use crate::base::policy::Choice;
use crate::base::units::Span;

/// `[cache]`: the write cache.
#[derive(Clone, Debug, PartialEq)]
pub struct CacheSpec {
    /// Below a page: none.
    pub size_bytes: u64,
    /// A DRAM access, for each page of a hit.
    pub access_ns: Span,
    /// From [`crate::write_cache::sync::POLICIES`].
    pub sync: Choice,
    /// How much of the cache may be dirty.
    pub dirty_budget: DirtyBudget,
}

/// `cache.dirty_budget`: how much of the cache may be dirty.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum DirtyBudget {
    /// A share of the cache.
    Share(f64),
    /// What budget detection finds that the capacitor can save; before the first one, what it would find at the start.
    Measured,
}
