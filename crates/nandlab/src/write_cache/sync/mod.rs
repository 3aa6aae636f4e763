//! Sync policies: when dirty pages are written back ahead of their eviction.
//!
//! A policy sees the counts of [`CacheView`] and answers questions; the cache acts. Each policy is one file in this
//! folder and one line of [`POLICIES`].

use crate::base::policy::{Choice, PolicyInfo};

/// The state of the cache that a sync policy may look at; counts are in pages.
#[derive(Clone, Copy, Debug)]
pub struct CacheView {
    /// Dirty pages, those being written back included.
    pub dirty: u32,
    /// Dirty pages that are being written back.
    pub writing: u32,
    /// Dirty pages allowed.
    pub budget: u32,
    /// Pages that fit.
    pub capacity: u32,
    /// Whether the least recently used dirty page is cold.
    pub oldest_dirty: Coldness,
}

/// Whether the least recently used dirty page is cold: among the least recently used [`SyncPolicy::cold_share`] of the
/// cache.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Coldness {
    /// Every dirty page is being written back already.
    None,
    /// The page is not cold.
    Warm,
    /// The page is cold.
    Cold,
}

/// Decides when dirty pages are written back.
pub trait SyncPolicy: std::fmt::Debug + Send + Sync {
    /// Whether the budget bounds the dirty pages; if not, only the cache size does.
    fn keeps_budget(&self) -> bool {
        true
    }

    /// The share of the cache, least recently used, whose pages count as cold.
    fn cold_share(&self) -> f64 {
        0.0
    }

    /// Whether every page is written back as soon as it is dirty.
    fn syncs_at_once(&self) -> bool {
        false
    }

    /// Whether the least recently used dirty page is written back now that the drive is idle.
    fn syncs_when_idle(&self, _cache: &CacheView) -> bool {
        false
    }

    /// Whether an eviction takes the least recently used dirty page before clean pages used less recently.
    fn evicts_dirty_first(&self, _cache: &CacheView) -> bool {
        false
    }

    /// Whether updates of a page wait while it is being written back.
    fn protects(&self) -> bool {
        false
    }
}

type Make = fn(&Choice) -> Box<dyn SyncPolicy>;

/// Declares a module and a table entry for each line.
macro_rules! policies {
    ($($file:ident,)*) => {
        $(mod $file;)*

        /// Every sync policy: its description and its constructor.
        pub const POLICIES: &[(PolicyInfo, Make)] = &[$(($file::INFO, $file::make),)*];
    };
}

policies! {
    none,
    eager,
    punctual,
    greedy,
    smart,
}

/// The policy chosen by `cache.sync`.
///
/// # Panics
/// When the choice names no policy of the table; the spec reader accepts only policies of the table.
pub fn make(choice: &Choice) -> Box<dyn SyncPolicy> {
    let (_, make) = POLICIES
        .iter()
        .find(|(info, _)| info.name == choice.name)
        .expect("the spec reader accepts only policies of the table");
    make(choice)
}
