//! What a power loss may have changed of the map: the superblocks and LPNs that the simulation of a recovery looks at.
//!
//! A recovery reads the OOBs of all programmed units and takes the newest unit of each LPN. The result is known in advance
//! for most of them: in a superblock that was full before the power loss, and has not been erased since, the units that the
//! map has are the newest ones. So the simulation finds out only what may differ. It compares
//!
//! - all programmed units of the other superblocks, which are open, being emptied, or closed at the power loss,
//! - the invalid units of superblocks with pins: a program that power loss has dropped or torn replaced one of them,
//! - the invalid units of superblocks that had been open or partly emptied at an earlier power loss (`twins`): only these may
//!   have the same write as a valid unit of another superblock,
//! - the invalid units of all superblocks, for the LPNs concerned, if a TRIM was not durable, a torn program has destroyed
//!   units programmed before it, a partial unit has no whole unit yet, or a dropped or torn program replaced a unit of a
//!   victim that a copyback may have copied when it was invalid already.
//!
//! This holds unless units are unmapped or moved without an erase, as refresh does: with refresh, and when power may fail
//! again during the recovery, the simulation looks at all units. Builds with debug assertions compare both results.

use super::recovery::bits;
use super::{Losses, Return, Schemes};
use crate::base::geometry::{Lpn, SuperblockId, UnitId};
use crate::base::huge::Huge;
use crate::base::units::Time;
use crate::core::Core;
use crate::flash::{DEAD_LPN, SuperblockState};
use crate::host::Trims;
use crate::probe::Probe;
use std::collections::{BTreeMap, BTreeSet};

/// By LPN, 1 + the PPN of the newest unit, or 0.
#[derive(Debug)]
pub(crate) enum Newest {
    /// Of all LPNs.
    All(Huge<u32>),
    /// Of some LPNs, in ascending order. The map, which is that from before the power loss, is right for the others.
    Changed(Vec<(Lpn, u32)>),
}

impl Newest {
    /// Another unit of an LPN counts as the newest one.
    pub(super) fn set(&mut self, lpn: Lpn, unit: UnitId) {
        match self {
            Self::All(units) => units[lpn.index()] = unit.0 + 1,
            Self::Changed(units) => match units.binary_search_by_key(&lpn, |of| of.0) {
                Ok(at) => units[at].1 = unit.0 + 1,
                Err(at) => units.insert(at, (lpn, unit.0 + 1)),
            },
        }
    }
}

/// What may have changed at a power loss.
#[derive(Debug, Default)]
pub(crate) struct Suspects {
    /// The superblocks of which the map may be wrong.
    pub(super) superblocks: Vec<SuperblockId>,
    /// Others whose invalid units are compared.
    compared: Vec<SuperblockId>,
    /// The LPNs whose entry may be wrong, some of them several times.
    lpns: Vec<Lpn>,
    /// Those of `lpns` of which an older unit may be anywhere.
    anywhere: BTreeSet<Lpn>,
}

/// Whether the map before the power loss at `since` is right for a superblock: it was full then, and has not been erased
/// since. Units of the others may have been queued for one LPN, and programmed for another one by the emergency flush.
pub(super) fn is_known<P: Probe>(core: &Core<P>, superblock: SuperblockId, since: Time) -> bool {
    let of = core.superblock(superblock);
    of.state.is_closed()
        && of.closed_at < since
        && core.flash().are_programmed(superblock, core.shape(superblock).units)
}

/// All superblocks that may have programmed units.
fn in_use<P: Probe>(core: &Core<P>) -> impl Iterator<Item = SuperblockId> {
    let superblocks = (0..core.geometry().superblocks).map(SuperblockId);
    superblocks.filter(|&superblock| {
        let state = core.superblock(superblock).state;
        state.is_usable() && state != SuperblockState::Free
    })
}

impl Losses {
    /// Power fails: notes the LPNs whose units are in superblocks that are not full. The flush may write other data to the
    /// units of queued programs.
    pub(crate) fn note_mapped<P: Probe>(&mut self, core: &Core<P>) {
        let now = core.now();
        let open = in_use(core).filter(|&superblock| !is_known(core, superblock, now));
        self.mapped = open.flat_map(|superblock| core.valid_lpns(superblock)).collect();
    }

    /// What may have changed at the last power loss. Power is back, and nothing has been recovered yet.
    pub(crate) fn suspects<P: Probe>(&self, core: &Core<P>) -> Suspects {
        let since = self.list.last().expect("power has failed").at;
        let mut suspects = Suspects::default();
        for superblock in in_use(core) {
            if !is_known(core, superblock, since) {
                suspects.superblocks.push(superblock);
            } else if core.superblock(superblock).pins > 0 || self.twins.contains_key(&superblock.0) {
                suspects.compared.push(superblock);
            }
        }
        let flash = core.flash();
        let lpns = &mut suspects.lpns;
        lpns.extend(self.mapped.iter().chain(&self.remapped));
        lpns.extend(flash.torn_units().chain(flash.partial_units()).map(|unit| flash.lpn(unit)));
        // GC that has gone on in the flush has emptied superblocks that were full.
        let is_victim = |id: &&SuperblockId| core.superblock(**id).state == SuperblockState::Victim;
        lpns.extend(suspects.superblocks.iter().filter(is_victim).flat_map(|&id| core.valid_lpns(id)));
        let replaced = self.at_risk.trims.iter().chain(&self.at_risk.destroyed).map(|&(lpn, _)| lpn);
        // A torn translation page is no loss, so `destroyed` does not have those that a torn program has destroyed.
        let is_of_host = |lpn: &Lpn| lpn.0 < core.geometry().logical_units;
        let torn = flash.torn_units().map(|unit| flash.lpn(unit)).filter(|lpn| !is_of_host(lpn));
        suspects.anywhere = replaced.chain(torn).filter(|lpn| lpn.0 != DEAD_LPN).collect();
        // A copyback copies the invalid units of its pages too. If the program that replaced such a unit has not ended, the
        // victim still has it, and its copy may be in a superblock that has become full.
        let streams = core.streams();
        if streams.ids().any(|stream| streams.spec(stream).copybacks() > 0) {
            let victims = suspects.superblocks.iter().filter(is_victim);
            let units =
                victims.flat_map(|&id| core.programmed_units(id)).filter(|&unit| !core.ftl().is_valid(unit));
            suspects.anywhere.extend(units.map(|unit| flash.lpn(unit)).filter(|lpn| lpn.0 != DEAD_LPN));
        }
        lpns.extend(&suspects.anywhere);
        lpns.retain(|lpn| lpn.0 != DEAD_LPN);
        suspects
    }

    /// Power is back: the superblocks that were not full at the power loss, and those whose units are no longer mapped, may
    /// have the same writes as others. `unmapped`: the units of the map before the power loss that are no longer mapped.
    pub(crate) fn note_twins<P: Probe>(
        &mut self,
        core: &Core<P>,
        suspects: &Suspects,
        unmapped: impl IntoIterator<Item = UnitId>,
    ) {
        let state = |superblock: SuperblockId| core.superblock(superblock);
        self.twins.retain(|&superblock, &mut erases| state(SuperblockId(superblock)).pe_cycles == erases);
        let unmapped = unmapped.into_iter().map(|unit| core.geometry().superblock_of(unit));
        for superblock in unmapped.chain(suspects.superblocks.iter().copied()) {
            if state(superblock).programmed > 0 {
                self.twins.insert(superblock.0, state(superblock).pe_cycles);
            }
        }
    }

    /// The P/E cycles of superblocks have risen without an erase.
    pub(crate) fn on_worn<P: Probe>(&mut self, core: &Core<P>) {
        for (&superblock, cycles) in &mut self.twins {
            *cycles = core.superblock(SuperblockId(superblock)).pe_cycles;
        }
    }
}

/// LPNs to be looked up often, most of the times in vain.
struct Sought {
    lpns: BTreeSet<Lpn>,
    /// By the last 16 bits of an LPN: whether one of `lpns` has them.
    bits: Vec<u64>,
}

impl Sought {
    fn new(lpns: BTreeSet<Lpn>) -> Self {
        let mut bits = vec![0; 1 << 10];
        for lpn in &lpns {
            bits[(lpn.0 >> 6 & 0x3ff) as usize] |= 1 << (lpn.0 & 63);
        }
        Self { lpns, bits }
    }

    fn has(&self, lpn: Lpn) -> bool {
        self.bits[(lpn.0 >> 6 & 0x3ff) as usize] >> (lpn.0 & 63) & 1 > 0 && self.lpns.contains(&lpn)
    }
}

impl<P: Probe, S: Schemes<P>> Return<'_, P, S> {
    /// 1 + the PPN of the newest unit of an LPN, or 0.
    pub(super) fn newest_in(&self, newest: &Newest, lpn: Lpn) -> u32 {
        match newest {
            Newest::All(units) => units[lpn.index()],
            Newest::Changed(units) => {
                let found = units.binary_search_by_key(&lpn, |of| of.0);
                found.map_or_else(|_| self.core.unit_of(lpn).map_or(0, |unit| unit.0 + 1), |at| units[at].1)
            }
        }
    }

    /// The unit that the map from before the power loss at `since` has for an LPN, if it is right.
    fn known_unit(&self, trims: &Trims, since: Time, lpn: Lpn) -> Option<UnitId> {
        let flash = self.core.flash();
        self.core.unit_of(lpn).filter(|&unit| {
            is_known(&self.core, self.core.geometry().superblock_of(unit), since)
                && !flash.is_torn(unit)
                && !trims.covers(lpn, self.core.sequence_of(unit))
        })
    }

    /// Whether the unit that the map has for an LPN is programmed, whole and readable: no invalid unit is newer.
    fn is_entry_whole(&self, trims: &Trims, lpn: Lpn) -> bool {
        let (flash, geometry) = (self.core.flash(), self.core.geometry());
        self.core.unit_of(lpn).is_some_and(|unit| {
            let (superblock, index) = geometry.split(unit);
            flash.is_programmed(superblock, index)
                && flash.lpn(unit) == lpn
                && !flash.is_torn(unit)
                && !flash.is_partial(unit)
                && !trims.covers(lpn, self.core.sequence_of(unit))
        })
    }

    /// The newest units that may differ from the map, and for the LPNs of `whole` the newest whole units. `since`: the time of
    /// the power loss.
    pub(super) fn changed_units(
        &self,
        trims: &Trims,
        since: Time,
        suspects: &Suspects,
        mut whole: BTreeMap<u32, UnitId>,
    ) -> (Vec<(Lpn, u32)>, BTreeMap<u32, UnitId>) {
        let (flash, geometry, ftl) = (self.core.flash(), self.core.geometry(), self.core.ftl());
        let known = |lpn: Lpn| self.known_unit(trims, since, lpn);
        for (&lpn, newest) in &mut whole {
            if let Some(unit) = known(Lpn(lpn)).filter(|&unit| self.is_newer_whole(unit, *newest)) {
                *newest = unit;
            }
        }
        let of_partial = whole.keys().copied().map(Lpn);
        let mut anywhere: BTreeSet<Lpn> = suspects.anywhere.iter().copied().chain(of_partial).collect();
        anywhere.retain(|&lpn| !self.is_entry_whole(trims, lpn));
        // LPNs with one of their units, or with 0.
        let mut found: Vec<(Lpn, u32)> = suspects.lpns.iter().map(|&lpn| (lpn, 0)).collect();
        let mut take = |unit: UnitId| {
            let lpn = flash.lpn(unit);
            if lpn.0 == DEAD_LPN || flash.is_torn(unit) || trims.covers(lpn, self.core.sequence_of(unit)) {
                return;
            }
            found.push((lpn, unit.0 + 1));
            if !whole.is_empty()
                && let Some(newest) = whole.get_mut(&lpn.0)
                && self.is_newer_whole(unit, *newest)
            {
                *newest = unit;
            }
        };
        for &superblock in &suspects.superblocks {
            self.core.programmed_units(superblock).for_each(&mut take);
        }
        let invalid = |superblock| {
            let first = geometry.unit(superblock, 0).0;
            let others = move |word, valid: u64| !valid & self.programmed_bits(superblock, word);
            bits(ftl.valid_words(superblock), others).map(move |index| UnitId(first + index))
        };
        suspects.compared.iter().flat_map(|&superblock| invalid(superblock)).for_each(&mut take);
        if !anywhere.is_empty() {
            let sought = Sought::new(anywhere);
            let others = in_use(&self.core).filter(|&superblock| is_known(&self.core, superblock, since));
            let units = others.flat_map(invalid).filter(|&unit| sought.has(flash.lpn(unit)));
            units.for_each(&mut take);
        }
        found.sort_unstable();
        let newest = |of_lpn: &[(Lpn, u32)]| {
            let lpn = of_lpn[0].0;
            let units = of_lpn.iter().filter_map(|&(_, unit)| unit.checked_sub(1).map(UnitId));
            let newest = units.chain(known(lpn)).reduce(|a, b| if self.is_newer(b, a) { b } else { a });
            (lpn, newest.map_or(0, |unit| unit.0 + 1))
        };
        (found.chunk_by(|a, b| a.0 == b.0).map(newest).collect(), whole)
    }
}
