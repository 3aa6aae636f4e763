//! The placement handles in a saved drive: a section of its own, on drives with handles only.
//!
//! A drive without handles refuses the section. A drive with handles loads a file without it: all data is that of handle
//! 0 then. Handles, groups, isolation and reclaim units must be those of the drive that was saved.

use super::Drive;
use crate::base::geometry::{LaneId, SuperblockId, UnitId};
use crate::core::{Offline, Section, SectionKind, SnapshotError};
use crate::flash::SuperblockState;
use crate::ftl::StreamId;
use crate::ftl::streams::OwnLpns;
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

    /// The streams of the host in all lanes.
    fn host_streams(&self) -> Vec<(LaneId, StreamId)> {
        let streams = self.core.streams().hosts();
        let lanes = (0..self.core.geometry().lanes).map(LaneId);
        lanes.flat_map(|lane| streams.iter().map(move |&stream| (lane, stream))).collect()
    }

    /// The section of the drive; `None` without handles.
    pub(super) fn save_placement(&self) -> Option<Section> {
        self.core.placement_stats()?;
        let mut section = Section::new(PLACEMENT);
        self.placement_settings().iter().for_each(|&(_, value)| section.put(value));
        let units = self.core.geometry().units;
        for first in (0..units).step_by(UNITS) {
            let of_word = (first..units.min(first + UNITS as u32)).rev().map(UnitId);
            let handles = of_word.map(|unit| u64::from(self.core.flash().handle(unit)));
            section.put(handles.fold(0, |word, handle| word << 8 | handle));
        }
        if self.core.placements().reclaim_unit > 1 {
            for superblock in (0..self.core.geometry().superblocks).map(SuperblockId) {
                section.put(self.core.flash().reclaim_unit(superblock).into());
            }
            for (lane, stream) in self.host_streams() {
                let (number, left) = self.core.ftl().open_unit(lane, stream);
                section.put(u64::from(number) << 32 | u64::from(left));
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

    /// Loads the handles and the reclaim units of the superblocks, after the superblocks.
    ///
    /// # Errors
    /// When the section is too short. What it has is checked by the audit.
    pub(super) fn load_placement(&mut self, section: &mut Option<Section>) -> Result<(), SnapshotError> {
        if self.core.placement_stats().is_none() {
            return Ok(());
        }
        let (units, superblocks) = (self.core.geometry().units, self.core.geometry().superblocks);
        let has_units = self.core.placements().reclaim_unit > 1;
        let mut offline = Offline::new(&mut self.core);
        let Some(section) = section else {
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
        Ok(())
    }

    /// Whether a stream may go on at the unit `next` of a loaded superblock: on a drive with handles, data of a drive without
    /// may be in a superblock of the host, which other streams do not fill.
    pub(super) fn may_continue(&self, stream: StreamId, next: UnitId) -> bool {
        let spec = self.core.streams().spec(stream);
        let mark = self.core.superblock(self.core.geometry().superblock_of(next)).mark;
        self.core.placement_stats().is_none() || spec.lpns != OwnLpns::None || spec.mark == mark
    }

    /// Loads the reclaim units that the handles fill, after the lanes.
    ///
    /// # Errors
    /// When the section is too short or too long, or has impossible units.
    pub(super) fn load_open_units(&mut self, section: Option<Section>) -> Result<(), SnapshotError> {
        let Some(mut section) = section else { return Ok(()) };
        let size = self.core.placements().reclaim_unit;
        for (lane, stream) in if size > 1 { self.host_streams() } else { Vec::new() } {
            let open = section.get()?;
            let (number, left) = ((open >> 32) as u32, open as u32);
            if left >= size || number == 0 && left > 0 {
                return Err(SnapshotError::Damaged("a reclaim unit is out of range"));
            }
            Offline::new(&mut self.core).set_open_unit(lane, stream, (number, left));
        }
        section.end()
    }
}
