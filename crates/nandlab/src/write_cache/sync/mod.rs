//! Sync policies: when dirty units are written back ahead of their eviction.
//!
//! A policy receives the counts of [`CacheView`] and decides; the cache writes back and evicts. Each policy is one file
//! in this folder and one line of `policies!`.

use crate::base::policy::{Choice, PolicyError, PolicyInfo, maker};

/// The inputs of a sync policy: the state of the cache, with counts in units.
#[derive(Clone, Copy, Debug)]
pub struct CacheView {
    /// Dirty units, including those being written back.
    pub dirty: u32,
    /// Dirty units that are being written back.
    pub writing: u32,
    /// Dirty units allowed.
    pub budget: u32,
    /// Units that fit into the cache.
    pub capacity: u32,
    /// Whether the least recently used dirty unit is cold.
    pub oldest_dirty: Coldness,
}

/// Whether the least recently used dirty unit is cold: among the least recently used [`SyncPolicy::cold_share`] of the
/// cache.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Coldness {
    /// The cache has no dirty unit, or every dirty unit is being written back already.
    None,
    /// The unit is not cold.
    Warm,
    /// The unit is cold.
    Cold,
}

/// Decides when dirty units are written back.
pub trait SyncPolicy: std::fmt::Debug + Send + Sync {
    /// Whether the budget bounds the number of dirty units; if not, only the size of the cache bounds it.
    fn keeps_budget(&self) -> bool {
        true
    }

    /// The share of the cache that counts as cold: its least recently used units.
    fn cold_share(&self) -> f64 {
        0.0
    }

    /// Whether every unit is written back as soon as it is dirty.
    fn syncs_at_once(&self) -> bool {
        false
    }

    /// Whether the least recently used dirty unit is written back now that the drive is idle.
    ///
    /// # Errors
    /// When the policy has failed. This ends the run.
    fn syncs_when_idle(&self, _cache: &CacheView) -> Result<bool, PolicyError> {
        Ok(false)
    }

    /// Whether an eviction takes the least recently used dirty unit, whatever `cache.eviction` would take.
    ///
    /// # Errors
    /// When the policy has failed. This ends the run.
    fn evicts_dirty_first(&self, _cache: &CacheView) -> Result<bool, PolicyError> {
        Ok(false)
    }

    /// Whether updates of a unit wait while it is being written back.
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

/// Returns the policy chosen by `cache.sync`. See [`maker`] for the name of a policy from outside.
pub fn make(choice: &Choice) -> Box<dyn SyncPolicy> {
    maker(POLICIES, choice.name)(choice)
}
