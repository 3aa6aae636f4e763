//! The read levels that the controller remembers outside the mapping cache.

use crate::base::geometry::{Lpn, SuperblockId};
use crate::base::huge::Huge;
use crate::base::state::state;
use crate::flash::{Ecc, StartPolicy};

/// Read levels by unit, by superblock and of the whole drive; 0: not known. The table by unit is empty if the cached
/// map entries carry the levels, and each table is empty if the start policy does not use it.
#[derive(Debug)]
pub struct ReadLevels {
    units: Huge<u8>,
    superblocks: Huge<u8>,
    drive: u8,
    /// Whether no level is kept for translation pages.
    pub forgets_translation_pages: bool,
    /// The start policy from outside.
    policy: Option<Box<dyn StartPolicy>>,
}

impl ReadLevels {
    /// Tables without a known level. With `in_entries` the entries of the mapping cache carry the levels of units, and
    /// the table by unit is empty.
    pub fn new(
        ecc: &Ecc,
        logical_units: u32,
        superblocks: u32,
        in_entries: bool,
        forgets_translation_pages: bool,
    ) -> Self {
        let of_units = ecc.keeps_unit_levels() && !in_entries;
        let of_superblocks = ecc.keeps_superblock_levels();
        Self {
            units: Huge::zeroed(if of_units { logical_units as usize } else { 0 }),
            superblocks: Huge::zeroed(if of_superblocks { superblocks as usize } else { 0 }),
            drive: 0,
            forgets_translation_pages,
            policy: None,
        }
    }

    /// From now on a policy from outside chooses the start levels.
    pub fn start_by(&mut self, policy: Box<dyn StartPolicy>) {
        self.policy = Some(policy);
    }

    /// The start policy from outside has failed.
    pub(super) fn stop_asking(&mut self) {
        self.policy = None;
    }

    /// The start policy from outside.
    pub(super) fn policy_mut(&mut self) -> Option<&mut dyn StartPolicy> {
        match &mut self.policy {
            Some(policy) => Some(&mut **policy),
            None => None,
        }
    }

    /// The level with which the mapping cache loads the entry of a unit of `superblock`.
    #[inline]
    pub fn of_loaded_entry(&self, superblock: SuperblockId) -> u8 {
        match &self.policy {
            Some(policy) if !policy.loads_superblock_level() => 1,
            _ => self.superblock(superblock).max(1),
        }
    }

    /// Bytes of the tables.
    pub(crate) fn bytes(&self) -> u64 {
        self.units.bytes() + self.superblocks.bytes()
    }

    /// Forgets all levels, at power loss.
    pub fn forget(&mut self) {
        self.units = Huge::zeroed(self.units.len());
        self.superblocks = Huge::zeroed(self.superblocks.len());
        self.drive = 0;
    }

    /// The level of the last read of `lpn`; 0: not known.
    #[inline(always)]
    pub fn unit(&self, lpn: Lpn) -> u8 {
        self.units.get(lpn.index()).copied().unwrap_or(0)
    }

    /// The level that last decoded a unit of `superblock`; 0: not known.
    #[inline(always)]
    pub fn superblock(&self, superblock: SuperblockId) -> u8 {
        self.superblocks.get(superblock.index()).copied().unwrap_or(0)
    }

    /// The level that last decoded a unit of the drive; 0: not known.
    #[inline(always)]
    pub fn drive(&self) -> u8 {
        self.drive
    }

    /// Sets the level of the drive.
    #[inline(always)]
    pub fn set_drive(&mut self, level: u8) {
        self.drive = level;
    }

    /// Sets the level of a unit.
    #[inline(always)]
    pub fn set_unit(&mut self, lpn: Lpn, level: u8) {
        if let Some(known) = self.units.get_mut(lpn.index()) {
            *known = level;
        }
    }

    /// Sets the level of a superblock.
    #[inline(always)]
    pub fn set_superblock(&mut self, superblock: SuperblockId, level: u8) {
        if let Some(known) = self.superblocks.get_mut(superblock.index()) {
            *known = level;
            if let Some(policy) = &mut self.policy {
                match level {
                    0 => policy.on_erased(superblock),
                    _ => policy.on_decoded(superblock, level),
                }
            }
        }
    }

    /// Bytes of RAM that the table by superblock takes.
    pub fn superblock_bytes(&self) -> u64 {
        self.superblocks.len() as u64
    }
}

state! { ReadLevels { units, superblocks, drive } fixed { forgets_translation_pages, policy } }
