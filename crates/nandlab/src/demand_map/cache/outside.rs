//! An eviction policy from outside: the trait, and the policy in its slot.

use super::entries::MapEntries;
use crate::base::geometry::Lpn;
use crate::base::policy::PolicyError;
use crate::base::state::{State, StateError, StateReader, StateWriter};

/// Chooses the entry that leaves a full mapping cache. The policy knows the entries by their LPNs.
pub trait MapEviction: std::fmt::Debug + Send + Sync {
    /// A request needs the entry of `lpn`, which is cached.
    fn on_hit(&mut self, lpn: Lpn);

    /// The entry of `lpn` has been brought into the cache with the level bits `level`.
    fn on_inserted(&mut self, lpn: Lpn, level: u8);

    /// The level bits of the cached entry of `lpn` have changed.
    fn on_level(&mut self, _lpn: Lpn, _level: u8) {}

    /// The LPN whose entry leaves the cache, which is full.
    ///
    /// # Errors
    /// When the policy has failed. This ends the run, and so does an LPN whose entry is not cached.
    fn evict(&mut self) -> Result<Lpn, PolicyError>;
}

/// The policy in its slot.
#[derive(Debug)]
pub(super) struct Outside(pub(super) Box<dyn MapEviction>);

impl Outside {
    pub(super) fn on_hit(&mut self, entries: &mut MapEntries, slot: u32) {
        self.0.on_hit(entries[slot].lpn);
    }

    pub(super) fn on_inserted(&mut self, entries: &mut MapEntries, slot: u32) {
        self.0.on_inserted(entries[slot].lpn, entries[slot].level);
    }

    pub(super) fn on_level(&mut self, entries: &mut MapEntries, slot: u32, level: u8) {
        entries[slot].level = level;
        self.0.on_level(entries[slot].lpn, level);
    }
}

/// A drive with a policy from outside has no checkpoints.
impl State for Outside {
    fn save_state(&self, _: &mut StateWriter<'_>) {}

    fn load_state(&mut self, _: &mut StateReader<'_>) -> Result<(), StateError> {
        Ok(())
    }
}
