//! When dirty pages are written back before they are evicted.
//!
//! A policy looks at the cache as a whole and answers questions; the cache acts. Policies are listed in [`POLICIES`], one
//! line each; a policy is one file in this folder.

use crate::base::policy::{Choice, PolicyInfo};

/// What a sync policy may look at. All in pages.
#[derive(Clone, Copy, Debug)]
pub struct CacheView {
    /// Dirty pages, those being written back included.
    pub dirty: u32,
    /// Those of them that are being written back.
    pub writing: u32,
    /// Dirty pages allowed.
    pub budget: u32,
    /// Pages that fit.
    pub capacity: u32,
    /// Where the least recently used dirty page is.
    pub oldest_dirty: Coldness,
}

/// Whether the least recently used dirty page is among the last of the order of use.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Coldness {
    /// There is no dirty page that is not being written back.
    None,
    /// It is not.
    Warm,
    /// It is.
    Cold,
}

/// Decides when dirty pages are written back.
pub trait SyncPolicy: std::fmt::Debug + Send + Sync {
    /// Whether dirty pages are bounded by the budget; else by the cache alone.
    fn keeps_budget(&self) -> bool {
        true
    }

    /// The share of the cache, from the end of the order of use, whose pages count as cold.
    fn cold_share(&self) -> f64 {
        0.0
    }

    /// Whether every dirty page is written back as soon as it is dirty.
    fn syncs_at_once(&self) -> bool {
        false
    }

    /// The drive is idle: whether the least recently used dirty page is written back now.
    fn syncs_when_idle(&self, _cache: &CacheView) -> bool {
        false
    }

    /// Room is needed: whether a dirty page leaves before pages used less recently that are clean.
    fn evicts_dirty_first(&self, _cache: &CacheView) -> bool {
        false
    }

    /// Whether updates of a page wait while it is being written back.
    fn protects(&self) -> bool {
        false
    }
}

type Make = fn(&Choice) -> Box<dyn SyncPolicy>;

/// Makes a module and a table entry of each line.
macro_rules! policies {
    ($($file:ident,)*) => {
        $(mod $file;)*

        /// Every sync policy: what it says of itself and how it is made.
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
/// When the choice names no policy of the table; the spec only makes choices from it.
pub fn make(choice: &Choice) -> Box<dyn SyncPolicy> {
    let (_, make) =
        POLICIES.iter().find(|(info, _)| info.name == choice.name).expect("a policy of the table");
    make(choice)
}
