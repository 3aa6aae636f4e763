//! The audit of the FTL's state.

use super::Ftl;
use crate::base::geometry::{LaneId, Lpn, SuperblockId};
use crate::flash::{Array, ShapeId, SuperblockState};

impl Ftl {
    /// Audits the FTL of the whole drive: map and OOBs agree, every LPN has at most one valid unit, counters have the
    /// counted values, and every superblock's state agrees with the free list and the superblock's units.
    ///
    /// # Errors
    /// The first contradiction found.
    pub fn audit(&self, array: &Array) -> Result<(), String> {
        let mut mapped = 0;
        for lpn in (0..self.map.len()).map(Lpn) {
            let Some(unit) = self.map.get(lpn) else { continue };
            mapped += 1;
            if array.lpn(unit) != lpn {
                return Err(format!(
                    "LPN {} maps to {}, whose OOB has LPN {}",
                    lpn.0,
                    self.geometry.show(unit),
                    array.lpn(unit).0
                ));
            }
            if !self.is_valid(unit) {
                return Err(format!("LPN {} maps to {}, which is invalid", lpn.0, self.geometry.show(unit)));
            }
        }
        if mapped != self.map.mapped() {
            return Err(format!("{mapped} LPNs are mapped, but the map's counter is {}", self.map.mapped()));
        }
        let mut valid_in_drive = 0;
        for (lane, state) in self.lanes.iter().enumerate() {
            let first = self.geometry.first_superblock(LaneId(lane as u32)).index();
            let superblocks = &array.superblocks[first..first + self.geometry.superblocks_per_lane as usize];
            let mut in_list = vec![false; superblocks.len()];
            for superblock in state.free.iter() {
                if std::mem::replace(&mut in_list[superblock as usize], true) {
                    return Err(format!("superblock {superblock} of lane {lane} is in the free list twice"));
                }
            }
            if !state.free.agrees(self.levelling, |within| superblocks[within as usize].pe_cycles) {
                return Err(format!(
                    "lane {lane}: the order of the free superblocks does not follow from their P/E cycles"
                ));
            }
            let free_units = state.count_free_units(self.shapes.first());
            if state.free_units != free_units {
                return Err(format!(
                    "lane {lane}: {free_units} units are free, but the lane's counter is {}",
                    state.free_units
                ));
            }
            let is_bad = |within: &usize| superblocks[*within].state == SuperblockState::Bad;
            let good = self.geometry.superblocks_in(LaneId(lane as u32)) as usize;
            if (0..superblocks.len()).any(|within| is_bad(&within) != (within >= good)) {
                return Err(format!(
                    "lane {lane} has {good} superblocks, which the states of its superblocks contradict"
                ));
            }
            let (mut valid, mut slc) = (0, 0);
            let mut fewest = vec![u32::MAX; superblocks.len().div_ceil(64)];
            for (within, superblock) in superblocks.iter().enumerate() {
                let words =
                    &self.valid[(first + within) * self.words_per_superblock..][..self.words_per_superblock];
                let bits: u32 = words.iter().map(|w| w.count_ones()).sum();
                let name = format!("superblock {within} of lane {lane} ({:?})", superblock.state);
                if bits != superblock.valid {
                    return Err(format!(
                        "{name} has {bits} valid units, but its counter is {}",
                        superblock.valid
                    ));
                }
                valid += bits;
                if in_list[within] != (superblock.state == SuperblockState::Free) {
                    let place = if in_list[within] { "in" } else { "missing from" };
                    return Err(format!("{name} is {place} the free list"));
                }
                let (id, units) = (SuperblockId((first + within) as u32), superblock.programmed);
                let fits = match superblock.state {
                    SuperblockState::Free | SuperblockState::Retired | SuperblockState::Bad => {
                        units == 0 && bits == 0 && superblock.pins == 0 && superblock.mark == 0
                    }
                    SuperblockState::Open => true,
                    SuperblockState::Full | SuperblockState::Cached | SuperblockState::Victim => {
                        units == array.shape(id).units
                    }
                };
                let is_slc = array.shape_id(id) == ShapeId::SLC;
                slc += u32::from(is_slc);
                let fits_mode = match superblock.state {
                    SuperblockState::Open | SuperblockState::Victim => true,
                    state => is_slc == (state == SuperblockState::Cached),
                };
                if !fits || !fits_mode {
                    return Err(format!(
                        "{name} contradicts its state: {units} units programmed, {bits} valid, {} pins, {} copybacks",
                        superblock.pins,
                        superblock.copybacks()
                    ));
                }
                if !array.adds_up(id) {
                    return Err(format!("{name}: the programmed units of its dies do not add up to {units}"));
                }
                if superblock.state == SuperblockState::Full {
                    fewest[within / 64] = fewest[within / 64].min(superblock.valid);
                }
            }
            if slc != state.slc_superblocks {
                return Err(format!(
                    "lane {lane} has {slc} superblocks in SLC mode, but its counter is {}",
                    state.slc_superblocks
                ));
            }
            if valid != state.valid {
                return Err(format!(
                    "lane {lane} has {valid} valid units, but its counter is {}",
                    state.valid
                ));
            }
            if !self.index.agrees(LaneId(lane as u32), &fewest) {
                return Err(format!(
                    "lane {lane}: the index of the superblocks with the fewest valid units is wrong"
                ));
            }
            valid_in_drive += valid;
        }
        if valid_in_drive != mapped {
            return Err(format!("{mapped} LPNs are mapped, but {valid_in_drive} units are valid"));
        }
        Ok(())
    }
}
