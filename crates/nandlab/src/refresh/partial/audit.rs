//! The audit of the links and the VSM.

use super::Partial;
use crate::base::geometry::UnitId;
use crate::core::Core;
use crate::probe::Probe;
use std::collections::BTreeMap;

impl Partial {
    /// Checks that every link leads to an entry of its base unit and that the counts of links are right. If
    /// `is_at_rest` (nothing is under way), also checks that all susceptible bits not yet in flash are in the VSM, that
    /// no line is being programmed and no unit waits for room, and that every combination page has links.
    ///
    /// # Errors
    /// The first inconsistency found.
    pub(crate) fn audit<P: Probe>(&self, core: &Core<P>, is_at_rest: bool) -> Result<(), String> {
        let links = &self.links;
        let mut linked = vec![0; core.geometry().superblocks as usize];
        let mut live = BTreeMap::new();
        for base in (0..core.geometry().units).map(UnitId).filter(|&base| core.parts().is_marked(base)) {
            let name = || format!("{}, partially refreshed,", core.geometry().show(base));
            let Some((lpn, bytes)) = core.parts().of(base) else {
                let waits = self.vsm.waiting().iter().any(|entry| entry.base == base);
                if is_at_rest && !waits {
                    return Err(format!("{} has neither a link nor an entry in the VSM", name()));
                }
                if !self.pending.contains_key(&core.geometry().superblock_of(base).0) {
                    return Err(format!("{} is pending, but its superblock is not", name()));
                }
                continue;
            };
            let superblock = core.geometry().superblock_of(base);
            linked[superblock.index()] += 1;
            *live.entry(lpn).or_insert(0) += 1;
            let state = core.superblock(superblock);
            let entries = links.entries(lpn);
            let Some(entry) = entries.iter().find(|entry| entry.base == base) else {
                return Err(format!(
                    "{} is linked to a combination page that has no entry of this base page: {entries:?}",
                    name()
                ));
            };
            if entry.bytes != bytes || entry.pe_cycles != state.pe_cycles {
                return Err(format!(
                    "{} differs from its entry in the size of its susceptible bits or in P/E cycles: {entry:?}",
                    name()
                ));
            }
            if entry.sequence != core.sequence_of(base) {
                return Err(format!("{} has been written since it was linked: {entry:?}", name()));
            }
            // An invalid unit keeps its link, and its superblock a pin, until the program that replaces the unit has
            // ended.
            let is_newest = core.is_newest(entry.lpn, base);
            if !is_newest && (is_at_rest || state.pins == 0) {
                return Err(format!(
                    "{} is linked, but is not the newest page of LPN {}",
                    name(),
                    entry.lpn.0
                ));
            }
            let apn = core.unit_of(lpn).ok_or_else(|| format!("{} has lost its combination page", name()))?;
            if core.flash().lpn(apn) != lpn || links.content(apn) != Some(links.entries(lpn)) {
                return Err(format!(
                    "{} is linked to {}, whose entries are {:?}, expected {:?}",
                    name(),
                    core.geometry().show(apn),
                    links.content(apn),
                    links.entries(lpn)
                ));
            }
        }
        for (superblock, (state, &count)) in core.flash().superblocks.iter().zip(&linked).enumerate() {
            if u32::from(state.linked) != count {
                return Err(format!(
                    "the count of linked units of superblock {superblock} is {}, but {count} units of the superblock are \
                     linked",
                    state.linked
                ));
            }
        }
        for lpn in links.combinations() {
            let count = live.get(&lpn).copied().unwrap_or(0);
            if links.live(lpn) != count || is_at_rest && count == 0 {
                return Err(format!(
                    "combination page {}: its count of links is {}, found {count} links; at rest it needs at least one",
                    lpn.0,
                    links.live(lpn)
                ));
            }
        }
        if is_at_rest && (self.vsm.lines() > 0 || !self.waiting_for_room.is_empty()) {
            return Err(
                "nothing is under way, but the VSM has lines being programmed or units waiting for room"
                    .to_owned(),
            );
        }
        Ok(())
    }
}
