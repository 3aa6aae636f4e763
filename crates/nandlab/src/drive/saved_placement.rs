//! The placement handles in a saved drive: a section of its own, on drives with handles only.
//!
//! A drive without handles refuses the section. A drive with handles loads a file without it: all data is that of handle
//! 0 then. Handles, groups, isolation and reclaim units must be those of the drive that was saved.

use super::Drive;
use crate::base::geometry::{SuperblockId, UnitId};
use crate::core::{Offline, Section, SectionKind, SnapshotError};
use crate::flash::SuperblockState;
use crate::probe::Probe;

const PLACEMENT: SectionKind = SectionKind { name: "placement", version: 1 };

/// The units whose handles are in one number of the section.
const UNITS: usize = 8;

impl<P: Probe> Drive<P> {
    /// What the section and a drive that loads it must agree in, by the names that errors show.
    fn placement_settings(&self) -> [(&'static str, u64); 4] {
        let placements = self.core.placements();
        [
            ("placement.handles", placements.handles.into()),
            ("placement.groups", placements.groups.into()),
            ("placement.isolation (persistent handles, one bit each)", placements.persistent.into()),
            ("placement.reclaim_unit", placements.reclaim_unit.into()),
        ]
    }

    /// The section of the drive; `None` without handles.
    pub(super) fn save_placement(&self) -> Option<Section> {
        self.core.placement_stats()?;
        let mut section = Section::new(PLACEMENT);
        self.placement_settings().iter().for_each(|&(_, value)| section.put(value));
        let units: Vec<UnitId> = (0..self.core.geometry().units).map(UnitId).collect();
        for units in units.chunks(UNITS) {
            let handles = units.iter().rev().map(|&unit| u64::from(self.core.flash().handle(unit)));
            section.put(handles.fold(0, |word, handle| word << 8 | handle));
        }
        if self.core.placements().reclaim_unit > 1 {
            for superblock in (0..self.core.geometry().superblocks).map(SuperblockId) {
                section.put(self.core.flash().reclaim_unit(superblock).into());
            }
        }
        Some(section)
    }

    /// Takes the section from those of a file, and checks its settings.
    ///
    /// # Errors
    /// When the drive has no handles, or others.
    pub(super) fn take_placement(
        &self,
        sections: &mut Vec<Section>,
    ) -> Result<Option<Section>, SnapshotError> {
        let Some(mut section) = Section::take(sections, PLACEMENT)? else { return Ok(None) };
        if self.core.placement_stats().is_none() {
            return Err(SnapshotError::Unused(PLACEMENT.name));
        }
        for (what, mine) in self.placement_settings() {
            let theirs = section.get()?;
            if theirs != mine {
                return Err(SnapshotError::Mismatch(what, theirs, mine));
            }
        }
        Ok(Some(section))
    }

    /// Loads the rest of the section, after the superblocks.
    ///
    /// # Errors
    /// When the section is too short or too long. What it has is checked by the audit.
    pub(super) fn load_placement(&mut self, section: Option<Section>) -> Result<(), SnapshotError> {
        if self.core.placement_stats().is_none() {
            return Ok(());
        }
        let (units, superblocks) = (self.core.geometry().units, self.core.geometry().superblocks);
        let has_units = self.core.placements().reclaim_unit > 1;
        let mut offline = Offline::new(&mut self.core);
        let Some(mut section) = section else {
            for superblock in (0..superblocks).map(SuperblockId) {
                if offline.superblock(superblock).state != SuperblockState::Free {
                    offline.make_of_handle_0(superblock);
                }
            }
            return Ok(());
        };
        for first in (0..units).step_by(UNITS) {
            let mut word = section.get()?;
            for unit in first..units.min(first + UNITS as u32) {
                offline.set_handle(UnitId(unit), (word & 0xff) as u8);
                word >>= 8;
            }
        }
        if has_units {
            for superblock in (0..superblocks).map(SuperblockId) {
                let number = section.get()?;
                let number = u32::try_from(number)
                    .map_err(|_| SnapshotError::Damaged("a reclaim unit is out of range"))?;
                offline.set_reclaim_unit(superblock, number);
            }
        }
        section.end()
    }
}
