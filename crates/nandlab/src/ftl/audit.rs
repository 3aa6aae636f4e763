//! The audit of the FTL's state.

use super::Ftl;
use crate::base::geometry::{BlockId, Geometry, Lpn, PlaneId};
use crate::flash::{Array, BlockState};

impl Ftl {
    /// Audits the FTL of the whole drive: map and OOBs agree, every LPN has at most one valid page, counters have the
    /// counted values, and every block's state agrees with the free list and the block's pages.
    ///
    /// # Errors
    /// The first contradiction found.
    pub fn audit(&self, geometry: &Geometry, array: &Array) -> Result<(), String> {
        let mut mapped = 0;
        for lpn in (0..self.map.len()).map(Lpn) {
            let Some(ppn) = self.map.get(lpn) else { continue };
            mapped += 1;
            if array.lpn(ppn) != lpn {
                return Err(format!(
                    "LPN {} maps to {}, whose OOB has LPN {}",
                    lpn.0,
                    geometry.show(ppn),
                    array.lpn(ppn).0
                ));
            }
            if !self.is_valid(geometry, ppn) {
                return Err(format!("LPN {} maps to {}, which is invalid", lpn.0, geometry.show(ppn)));
            }
        }
        if mapped != self.map.mapped() {
            return Err(format!("{mapped} LPNs are mapped, but the map's counter is {}", self.map.mapped()));
        }
        let mut valid_in_drive = 0;
        for (plane, state) in self.planes.iter().enumerate() {
            let first = geometry.first_block(PlaneId(plane as u32)).index();
            let blocks = &array.blocks[first..first + geometry.blocks_per_plane as usize];
            let mut in_list = vec![false; blocks.len()];
            for block in state.free.iter() {
                if std::mem::replace(&mut in_list[block as usize], true) {
                    return Err(format!("block {block} of plane {plane} is in the free list twice"));
                }
            }
            if !state.free.agrees(self.levelling, |within| blocks[within as usize].pe_cycles) {
                return Err(format!(
                    "plane {plane}: the order of the free blocks does not follow from their P/E cycles"
                ));
            }
            let free_pages = state.count_free_pages(geometry.pages_per_block);
            if state.free_pages != free_pages {
                return Err(format!(
                    "plane {plane}: {free_pages} pages are free, but the plane's counter is {}",
                    state.free_pages
                ));
            }
            let is_bad = |within: &usize| blocks[*within].state == BlockState::Bad;
            let good = geometry.blocks_in(PlaneId(plane as u32)) as usize;
            if (0..blocks.len()).any(|within| is_bad(&within) != (within >= good)) {
                return Err(format!(
                    "plane {plane} has {good} blocks, which the states of its blocks contradict"
                ));
            }
            let mut valid = 0;
            let mut fewest = vec![u32::MAX; blocks.len().div_ceil(64)];
            for (within, block) in blocks.iter().enumerate() {
                let words = &self.valid[(first + within) * self.words_per_block..][..self.words_per_block];
                let bits: u32 = words.iter().map(|w| w.count_ones()).sum();
                let name = format!("block {within} of plane {plane} ({:?})", block.state);
                if bits != block.valid {
                    return Err(format!("{name} has {bits} valid pages, but its counter is {}", block.valid));
                }
                valid += bits;
                if in_list[within] != (block.state == BlockState::Free) {
                    let place = if in_list[within] { "in" } else { "missing from" };
                    return Err(format!("{name} is {place} the free list"));
                }
                let pages = block.programmed;
                let fits = match block.state {
                    BlockState::Free | BlockState::Retired | BlockState::Bad => {
                        pages == 0 && bits == 0 && block.pins == 0 && block.copybacks == 0
                    }
                    BlockState::Open => true,
                    BlockState::Full | BlockState::Victim => pages == geometry.pages_per_block,
                };
                if !fits {
                    return Err(format!(
                        "{name} contradicts its state: {pages} pages programmed, {bits} valid, {} pins, {} copybacks",
                        block.pins, block.copybacks
                    ));
                }
                if !array.adds_up(BlockId((first + within) as u32)) {
                    return Err(format!("{name}: the programmed pages of its dies do not add up to {pages}"));
                }
                if block.state == BlockState::Full {
                    fewest[within / 64] = fewest[within / 64].min(block.valid);
                }
            }
            if valid != state.valid {
                return Err(format!(
                    "plane {plane} has {valid} valid pages, but its counter is {}",
                    state.valid
                ));
            }
            if !self.index.agrees(PlaneId(plane as u32), &fewest) {
                return Err(format!(
                    "plane {plane}: the index of the blocks with the fewest valid pages is wrong"
                ));
            }
            valid_in_drive += valid;
        }
        if valid_in_drive != mapped {
            return Err(format!("{mapped} LPNs are mapped, but {valid_in_drive} pages are valid"));
        }
        Ok(())
    }
}
