//! Power is back: the state of the drive is rebuilt from flash.
//!
//! The OOB of every programmed unit is read. If an LPN has several units, the unit with the highest sequence number
//! counts; a copy has the sequence number of its source, so a copy never counts instead of a newer write. Torn units
//! are ignored. Partial units of the emergency flush are completed from the units that they replace. Superblocks whose
//! erase was torn are erased again. Each stream continues in at most one partly programmed superblock; all other partly
//! programmed superblocks are closed. In a superblock on several dies, units that are still erased before a programmed
//! unit of another die remain erased. The firmware's record of the durable deallocations, and of the P/E cycles, read
//! counts and closing times of superblocks, survives power loss.
//!
//! Units that were skipped count here as programmed units without an LPN.
//!
//! Reading the OOBs takes the time of the slowest die or channel: every die senses its programmed pages one after the
//! other, and every channel transfers the OOBs of these pages. To this, recovery adds the longest time that any die
//! takes for the erases, reads and programs of recovery.
//!
//! Power may fail again during recovery (`attempt.rs`). So no step destroys what a recovery that begins anew needs: a
//! superblock is erased only when its data is elsewhere in flash, also the older unit from which a partial unit has yet
//! to be completed.

use super::Schemes;
use super::attempt::{Attempt, PowerFails};
use super::changes::{Newest, Suspects, is_known};
use super::flush::tear_program;
use crate::base::geometry::{DieId, LaneId, Lpn, SuperblockId, UnitId};
use crate::base::huge::Huge;
use crate::base::units::{Span, Time, transfer_ns};
use crate::core::Offline;
use crate::flash::{AgeStamp, DEAD_LPN, SHAPES_MAX, Stamp, SuperblockState};
use crate::ftl::{AllocatedUnit, STREAMS_MAX, StreamId};
use crate::host::Trims;
use crate::probe::Probe;
use crate::sched::{Cause, FlashOp};
use std::cmp::{Ordering, Reverse};
use std::collections::{BTreeMap, BTreeSet};

/// Bytes of OOB that recovery reads per unit: LPN, sequence number, age stamp, number of copybacks and marks.
const OOB_BYTES: u64 = 16;

/// The result of reading the OOBs of all programmed units.
pub(crate) struct Found {
    /// The newest units. They become the map.
    pub(crate) newest: Newest,
    /// By LPN, for those with a partial unit: the newest whole unit, or the partial unit if there is no whole unit.
    whole: BTreeMap<u32, UnitId>,
    /// By die: number of pages whose OOB was read.
    pub(crate) scanned: Vec<u64>,
    /// By die: time of sensing these pages.
    sensed_ns: Vec<Span>,
}

impl Found {
    /// Counts the pages of `superblocks` superblocks that have these each.
    fn count(&mut self, by_die: PagesByDie, superblocks: u64) {
        for (die, pages, ns) in by_die {
            self.scanned[die.index()] += superblocks * pages;
            self.sensed_ns[die.index()] += superblocks * ns;
        }
    }
}

/// By LPN: other units with the data of its newest unit ([`Return::copies_in`]).
type Copies = BTreeMap<u32, Vec<UnitId>>;

/// By die, a number of pages and the time of sensing them.
type PagesByDie = Vec<(DieId, u64, Span)>;

/// The drive while it is rebuilt from flash.
pub(crate) struct Return<'a, P: Probe, S> {
    pub(crate) core: Offline<'a, P>,
    pub(crate) schemes: &'a mut S,
    /// Whether data is guarded against a torn program of its wordline: in a drive with a capacitor, which is empty
    /// until it has been recharged.
    pub(crate) is_guarded: bool,
    pub(crate) attempt: &'a mut Attempt,
}

/// A partial unit of the emergency flush that recovery has read, with the older unit that has its other sectors.
struct Merge {
    lpn: Lpn,
    partial: UnitId,
    older: UnitId,
    /// The stamp of the completed unit.
    stamp: Stamp,
    /// Whether the completed unit is in flash.
    is_done: bool,
}

impl Merge {
    /// The whole unit, which is going to be programmed.
    fn complete(&mut self) -> InRam {
        self.is_done = true;
        InRam { lpn: self.lpn, stamp: self.stamp, is_partial: false }
    }
}

/// A unit that recovery has read and is going to program.
struct InRam {
    lpn: Lpn,
    stamp: Stamp,
    /// Whether the copy is partial like its source.
    is_partial: bool,
}

/// The numbers of the bits that `of` sets in each word, in ascending order.
pub(super) fn bits(words: &[u64], of: impl Fn(usize, u64) -> u64) -> impl Iterator<Item = u32> {
    words.iter().enumerate().flat_map(move |(number, &word)| {
        let mut left = of(number, word);
        std::iter::from_fn(move || {
            let bit = (left != 0).then(|| left.trailing_zeros())?;
            left &= left - 1;
            Some(number as u32 * 64 + bit)
        })
    })
}

impl<P: Probe, S: Schemes<P>> Return<'_, P, S> {
    /// The rank by which the newest unit of an LPN is chosen. The unit with the highest sequence number counts. Of
    /// several copies of the same write a whole unit ranks above a partial unit, then a unit corrected later above a
    /// unit corrected earlier.
    fn rank(&self, unit: UnitId) -> (u64, bool, AgeStamp) {
        let Stamp { sequence, corrected } = self.core.flash().stamp(unit);
        (sequence, !self.core.flash().is_partial(unit), corrected)
    }

    /// Reads the OOB of all programmed units. Units whose data has been deallocated (`trims`) are ignored. `since`: the time of
    /// the power loss. `suspects`: what may have changed at it, if the map is still that from before.
    ///
    /// The simulation does not look at every unit (`changes.rs`). That changes nothing, because recovery would look at all.
    pub(crate) fn read_oobs(&self, trims: &Trims, since: Time, suspects: Option<&Suspects>) -> Found {
        let geometry = self.core.geometry();
        let (newest, whole) = match suspects {
            None => {
                let (units, whole) = self.all_units(trims, since);
                (Newest::All(units), whole)
            }
            Some(suspects) => {
                let (units, whole) = self.changed_units(trims, since, suspects, self.partial_units());
                (Newest::Changed(units), whole)
            }
        };
        if cfg!(debug_assertions) {
            let of_all = Huge::zeroed(self.core.ftl().map.len() as usize);
            let is_known = vec![false; geometry.superblocks as usize];
            let (of_all, whole_of_all) = self.newest_units(trims, of_all, &is_known, self.partial_units());
            for (lpn, &unit) in (0..).map(Lpn).zip(of_all.iter()) {
                assert_eq!(
                    self.newest_in(&newest, lpn),
                    unit,
                    "the map of before has changed the unit of {lpn:?}"
                );
            }
            assert!(whole_of_all == whole, "the map of before has changed the whole units");
        }
        let mut found = Found {
            newest,
            whole,
            scanned: vec![0; geometry.dies as usize],
            sensed_ns: vec![Span::ZERO; geometry.dies as usize],
        };
        self.count_all_pages(&mut found);
        found
    }

    /// By LPN, the partial units.
    fn partial_units(&self) -> BTreeMap<u32, UnitId> {
        let flash = self.core.flash();
        flash.partial_units().map(|unit| (flash.lpn(unit).0, unit)).collect()
    }

    /// The newest units of all LPNs, and those of the partial units that are whole. A unit of the map before the power loss is
    /// the newest one unless another one is newer, so only the others are compared.
    fn all_units(&self, trims: &Trims, since: Time) -> (Huge<u32>, BTreeMap<u32, UnitId>) {
        let superblocks = (0..self.core.geometry().superblocks).map(SuperblockId);
        let is_known: Vec<bool> =
            superblocks.map(|superblock| is_known(&self.core, superblock, since)).collect();
        let known = self.known_units(trims, &is_known);
        self.newest_units(trims, known, &is_known, self.partial_units())
    }

    /// The part of the map before the power loss that is in the superblocks of `is_known`, without the units that recovery
    /// would ignore; by LPN, 1 + the PPN of its unit.
    fn known_units(&self, trims: &Trims, is_known: &[bool]) -> Huge<u32> {
        let (flash, geometry) = (self.core.flash(), self.core.geometry());
        let mut units = self.core.ftl().map.entries().clone();
        for entry in units.iter_mut().filter(|entry| **entry > 0) {
            if !is_known[geometry.superblock_of(UnitId(*entry - 1)).index()] {
                *entry = 0;
            }
        }
        for unit in flash.torn_units() {
            let lpn = flash.lpn(unit);
            if let Some(entry) = units.get_mut(lpn.index()).filter(|entry| **entry == unit.0 + 1) {
                *entry = 0;
            }
        }
        for (lpn, at) in trims.durable() {
            let entry = &mut units[lpn.index()];
            if entry.checked_sub(1).is_some_and(|unit| self.core.sequence_of(UnitId(unit)) < at) {
                *entry = 0;
            }
        }
        units
    }

    /// Bits of 64 units of a superblock from 64 times `word` on: whether they are programmed or skipped.
    pub(super) fn programmed_bits(&self, superblock: SuperblockId, word: usize) -> u64 {
        let flash = self.core.flash();
        let (end, first) = (flash.end(superblock).min(self.core.shape(superblock).units), word as u32 * 64);
        let count = end.saturating_sub(first).min(64);
        let bits = if count == 64 { !0 } else { (1 << count) - 1 };
        if flash.are_programmed(superblock, end) {
            return bits;
        }
        (0..count)
            .filter(|&bit| flash.is_programmed(superblock, first + bit))
            .fold(0, |bits, bit| bits | 1 << bit)
    }

    /// Whether a unit counts instead of another one of its LPN. Of units of the same rank the first one counts.
    #[inline]
    pub(super) fn is_newer(&self, unit: UnitId, other: UnitId) -> bool {
        match self.core.sequence_of(unit).cmp(&self.core.sequence_of(other)) {
            Ordering::Less => false,
            Ordering::Equal => (self.rank(unit), Reverse(unit)) > (self.rank(other), Reverse(other)),
            Ordering::Greater => true,
        }
    }

    /// Whether a unit counts instead of another one, where whole units are sought.
    pub(super) fn is_newer_whole(&self, unit: UnitId, other: UnitId) -> bool {
        let flash = self.core.flash();
        !flash.is_partial(unit) && (flash.is_partial(other) || self.is_newer(unit, other))
    }

    /// By LPN, 1 + the PPN of the newest unit with this LPN, or 0; and by LPN, for those of `whole`, the newest whole unit.
    /// `units` has those of the map that are in superblocks of `is_known`; the valid units of these superblocks are not compared.
    fn newest_units(
        &self,
        trims: &Trims,
        mut units: Huge<u32>,
        is_known: &[bool],
        mut whole: BTreeMap<u32, UnitId>,
    ) -> (Huge<u32>, BTreeMap<u32, UnitId>) {
        let (flash, geometry, ftl) = (self.core.flash(), self.core.geometry(), self.core.ftl());
        for (&lpn, newest) in &mut whole {
            if let Some(unit) = units[lpn as usize].checked_sub(1).map(UnitId)
                && self.is_newer_whole(unit, *newest)
            {
                *newest = unit;
            }
        }
        for superblock in (0..geometry.superblocks).map(SuperblockId) {
            let first = geometry.unit(superblock, 0).0;
            let mask = if is_known[superblock.index()] { 0 } else { !0 };
            let others = |word, valid: u64| (!valid | mask) & self.programmed_bits(superblock, word);
            for unit in bits(ftl.valid_words(superblock), others).map(|index| UnitId(first + index)) {
                let lpn = flash.lpn(unit);
                if lpn.0 == DEAD_LPN || flash.is_torn(unit) || trims.covers(lpn, self.core.sequence_of(unit))
                {
                    continue;
                }
                let newest = &mut units[lpn.index()];
                if newest.checked_sub(1).is_none_or(|other| self.is_newer(unit, UnitId(other))) {
                    *newest = unit.0 + 1;
                }
                if let Some(newest) = whole.get_mut(&lpn.0)
                    && self.is_newer_whole(unit, *newest)
                {
                    *newest = unit;
                }
            }
        }
        (units, whole)
    }

    /// Counts the programmed pages of all superblocks, and the time of sensing them, by die. Full superblocks of a shape and a
    /// lane count together.
    fn count_all_pages(&self, found: &mut Found) {
        let (flash, geometry) = (self.core.flash(), self.core.geometry());
        for lane in (0..geometry.lanes).map(LaneId) {
            let mut full = [const { None }; SHAPES_MAX];
            for superblock in geometry.superblock_ids_of(lane) {
                if flash.superblock(superblock).programmed == 0 && !flash.is_partly_erased(superblock) {
                    continue;
                }
                if flash.are_programmed(superblock, self.core.shape(superblock).units) {
                    let (_, count) = full[flash.shape_id(superblock).index()].get_or_insert((superblock, 0));
                    *count += 1;
                } else {
                    found.count(self.pages_by_die(superblock), 1);
                }
            }
            for (superblock, count) in full.into_iter().flatten() {
                found.count(self.pages_by_die(superblock), count);
            }
        }
    }

    /// By die, the number of the programmed pages of a superblock and the time of sensing them.
    fn pages_by_die(&self, superblock: SuperblockId) -> PagesByDie {
        let (flash, geometry, shape) = (self.core.flash(), self.core.geometry(), self.core.shape(superblock));
        let mut by_die = PagesByDie::new();
        let end = flash.end(superblock).min(shape.units);
        for first in (0..end).step_by(geometry.units_per_page as usize) {
            if !flash.is_programmed(superblock, first) {
                continue;
            }
            let die = geometry.die_of_unit(superblock, first);
            match by_die.iter_mut().find(|of| of.0 == die) {
                Some((_, pages, ns)) => (*pages, *ns) = (*pages + 1, *ns + shape.read_ns(first)),
                None => by_die.push((die, 1, shape.read_ns(first))),
            }
        }
        by_die
    }

    /// Reads all OOBs, page by page, which is one step: it takes the time of the slowest die or channel.
    pub(crate) fn scan(&mut self, found: &Found, channel_ns_per_byte: f64) -> Result<(), PowerFails> {
        self.attempt.begin_scan(self.scan_ns(found, channel_ns_per_byte))?;
        self.attempt.recovery.scanned_pages += found.scanned.iter().sum::<u64>();
        Ok(())
    }

    /// Time to read all OOBs, page by page, on the slowest die or channel.
    fn scan_ns(&self, found: &Found, channel_ns_per_byte: f64) -> Span {
        let timing = self.core.device().timing();
        let oob_bytes = OOB_BYTES * u64::from(self.core.geometry().units_per_page);
        let oob_ns = transfer_ns(oob_bytes, channel_ns_per_byte);
        let of_die = found.scanned.iter().zip(&found.sensed_ns);
        let on_die = of_die.map(|(&pages, &ns)| pages * (timing.command.read_ns + oob_ns) + ns).max();
        let mut on_channel = vec![Span::ZERO; self.core.geometry().channels as usize];
        for (die, &pages) in found.scanned.iter().enumerate() {
            on_channel[self.core.geometry().channel_of(DieId(die as u32)) as usize] +=
                pages * (timing.command.read_ns + oob_ns);
        }
        on_die.unwrap_or_default().max(on_channel.into_iter().max().unwrap_or_default())
    }

    /// In each lane with fewer free superblocks than it must keep, erases superblocks whose newest units are all copies
    /// with an intact source; the sources become the newest units again. Of the partly programmed superblocks all such
    /// superblocks are erased, of the full ones as many as the lane then still lacks. The reason: a job interrupted by
    /// power loss may have taken the last free superblock, and torn units in that superblock leave too little room for
    /// the remaining units of the victim.
    pub(crate) fn take_back_copies(&mut self, found: &mut Found) -> Result<(), PowerFails> {
        let kept = self.core.ftl().kept_superblocks() as usize;
        let geometry = self.core.geometry();
        let needed: BTreeSet<SuperblockId> =
            found.whole.values().map(|&whole| geometry.superblock_of(whole)).collect();
        for lane in (0..self.core.geometry().lanes).map(LaneId) {
            let superblocks = self.core.geometry().superblock_ids_of(lane);
            let is_usable = |superblock: SuperblockId| self.core.superblock(superblock).state.is_usable();
            let programmed = |superblock: SuperblockId| self.core.superblock(superblock).programmed;
            let mut free = superblocks
                .clone()
                .filter(|&superblock| programmed(superblock) == 0 && is_usable(superblock))
                .count();
            if free >= kept {
                continue;
            }
            // The torn unit may be the last unit of the superblock that the job was filling. So full superblocks are
            // checked too, after the partly programmed superblocks.
            let (full, partly): (Vec<SuperblockId>, Vec<SuperblockId>) = superblocks
                .clone()
                .filter(|&superblock| programmed(superblock) > 0)
                .partition(|&superblock| programmed(superblock) == self.core.shape(superblock).units);
            let copies = self.copies_in(lane, found);
            for (superblock, is_full) in partly
                .iter()
                .map(|&superblock| (superblock, false))
                .chain(full.iter().map(|&superblock| (superblock, true)))
            {
                if is_full && free >= kept {
                    break;
                }
                // A unit from which a partial unit is completed must stay.
                if needed.contains(&superblock) || self.core.retires(superblock) {
                    continue;
                }
                let Some(sources) = self.sources_of(superblock, &copies, found) else { continue };
                for (lpn, source) in sources {
                    found.newest.set(lpn, source);
                }
                self.erase(superblock)?;
                free += 1;
            }
        }
        Ok(())
    }

    /// The intact units of a lane that have the same data as the newest unit of their LPN, if that is another unit of
    /// the lane; by LPN, in the order of the superblocks.
    fn copies_in(&self, lane: LaneId, found: &Found) -> Copies {
        let (array, geometry) = (self.core.flash(), self.core.geometry());
        let mut copies = Copies::new();
        let superblocks = geometry.superblock_ids_of(lane);
        for unit in superblocks.flat_map(|superblock| self.core.programmed_units(superblock)) {
            let lpn = array.lpn(unit).0;
            if lpn == DEAD_LPN {
                continue;
            }
            let newest = self.newest_in(&found.newest, Lpn(lpn)).checked_sub(1);
            let Some(newest) = newest.map(UnitId) else { continue };
            let is_copy = newest != unit
                && geometry.lane_of(geometry.superblock_of(newest)) == lane
                && array.stamp(newest).sequence == array.stamp(unit).sequence;
            if is_copy && !array.is_torn(unit) && !array.is_partial(unit) {
                copies.entry(lpn).or_default().push(unit);
            }
        }
        copies
    }

    /// Returns, for each newest unit in `superblock`, its LPN and its source: another of its copies. `None`: a unit has
    /// no source.
    fn sources_of(
        &self,
        superblock: SuperblockId,
        copies: &Copies,
        found: &Found,
    ) -> Option<Vec<(Lpn, UnitId)>> {
        let (array, geometry) = (self.core.flash(), self.core.geometry());
        let is_newest = |unit: &UnitId| {
            let lpn = array.lpn(*unit);
            lpn.0 != DEAD_LPN && self.newest_in(&found.newest, lpn) == unit.0 + 1
        };
        // Superblocks that have been erased meanwhile have no programmed units.
        let is_source = |unit: &UnitId| {
            let (other, index) = geometry.split(*unit);
            other != superblock && array.is_programmed(other, index)
        };
        let source = |unit: UnitId| {
            let lpn = array.lpn(unit);
            let source = copies.get(&lpn.0)?.iter().rev().copied().find(is_source)?;
            Some((lpn, source))
        };
        self.core.programmed_units(superblock).filter(is_newest).map(source).collect()
    }

    /// Erases the superblocks whose erase was torn, or has ended on some of their dies only.
    pub(crate) fn end_erases(&mut self) -> Result<(), PowerFails> {
        for superblock in self.attempt.torn_erases.clone() {
            self.erase(superblock)?;
            self.attempt.torn_erases.retain(|&torn| torn != superblock);
        }
        // Superblocks on one die have been erased, or not.
        if self.core.geometry().dies_per_lane > 1 {
            for superblock in (0..self.core.geometry().superblocks).map(SuperblockId) {
                if self.core.flash().is_partly_erased(superblock) {
                    self.erase(superblock)?;
                }
            }
        }
        Ok(())
    }

    /// Erases a superblock during recovery, on the dies where it is not erased.
    fn erase(&mut self, superblock: SuperblockId) -> Result<(), PowerFails> {
        self.erase_dies(superblock)?;
        self.core.erase_unlisted(superblock);
        self.schemes.on_erased(&mut self.core, superblock);
        self.attempt.recovery.erased_blocks += 1;
        Ok(())
    }

    /// The erases of a superblock on the dies where it has programmed units, each a step. The cut tears one of them.
    fn erase_dies(&mut self, superblock: SuperblockId) -> Result<(), PowerFails> {
        for index in self.core.geometry().stripes.firsts() {
            if self.core.flash().is_programmed(superblock, index) {
                let unit = self.core.geometry().unit(superblock, index);
                let erase_ns = self.core.shape(superblock).erase_ns;
                let ended = self.attempt.begin(self.die_of_unit(unit), erase_ns);
                if ended.is_err() {
                    self.attempt.tear_erase(superblock);
                    return ended;
                }
                let shape = self.core.flash().shape_id(superblock);
                self.core.count_ended(FlashOp::Erase, Cause::Gc, shape);
                self.core.end_erase_on_die(unit);
            }
        }
        Ok(())
    }

    /// Rebuilds the states of the superblocks, the map, and the open superblocks of the streams. If the map was kept, returns
    /// the LPNs that were mapped to another unit, or to none, in ascending order, with this unit.
    pub(crate) fn rebuild_map(
        &mut self,
        found: &mut Found,
        suspects: Option<&Suspects>,
    ) -> Vec<(Lpn, Option<UnitId>)> {
        match suspects {
            None => {
                (0..self.core.geometry().superblocks).map(SuperblockId).for_each(|id| self.find_state(id))
            }
            Some(suspects) => suspects.superblocks.iter().for_each(|&id| self.find_state(id)),
        }
        let changed = match std::mem::replace(&mut found.newest, Newest::Changed(Vec::new())) {
            Newest::All(units) => {
                self.core.restore_map(units);
                Vec::new()
            }
            Newest::Changed(units) => self.core.restore_changes(&units),
        };
        let superblocks = (0..self.core.geometry().superblocks).map(SuperblockId);
        let is_closed = |id: &SuperblockId| self.core.superblock(*id).state.is_closed();
        let mut full: Vec<SuperblockId> = superblocks.filter(is_closed).collect();
        for lane in (0..self.core.geometry().lanes).map(LaneId) {
            let open = self.resume_streams(lane, &mut full);
            self.core.restore_lane(lane, open);
        }
        if self.core.picks_remember_order() {
            full.sort_by_key(|&superblock| (self.core.superblock(superblock).closed_at, superblock.0));
        }
        for superblock in full {
            let closed_at = self.core.superblock(superblock).closed_at;
            self.core.close(superblock, closed_at);
        }
        changed
    }

    /// Finds the state of a superblock.
    fn find_state(&mut self, superblock: SuperblockId) {
        self.core.find_state(superblock);
        debug_assert!(
            self.core.flash().end(superblock).is_multiple_of(self.core.shape(superblock).units_per_program),
            "a programming unit is programmed as a whole"
        );
        let first = self.core.geometry().unit(superblock, 0).0;
        for range in self.core.flash().unprogrammed(superblock) {
            self.schemes.on_blank(UnitId(first + range.start), UnitId(first + range.end));
        }
    }

    /// Returns the unit at which each stream of a lane continues, `None` without a superblock in which it continues;
    /// closes all other partly programmed superblocks.
    fn resume_streams(
        &mut self,
        lane: LaneId,
        full: &mut Vec<SuperblockId>,
    ) -> [Option<UnitId>; STREAMS_MAX] {
        let superblocks = self.core.geometry().superblock_ids_of(lane);
        let mut partly: Vec<SuperblockId> = superblocks
            .filter(|&superblock| self.core.superblock(superblock).state == SuperblockState::Open)
            .collect();
        // The superblocks with the most units left first.
        partly.sort_by_key(|&superblock| (self.core.superblock(superblock).programmed, superblock.0));
        let mut open = [None; STREAMS_MAX];
        for superblock in partly {
            // While programs may be torn, the rest of a partly programmed wordline is skipped.
            let (end, shape) = (self.core.flash().end(superblock), self.core.shape(superblock));
            let left = if self.is_guarded { shape.left_in_wordlines(end) } else { 0 };
            let units = shape.units;
            let next = end + left;
            let mark = self.core.superblock(superblock).mark;
            let ftl = self.core.ftl();
            let owner = self.first_internal_lpn(superblock).and_then(|lpn| ftl.streams.owner_of(lpn));
            // GC without an open superblock of its own continues in the host's.
            let is_used = |stream: StreamId| stream != StreamId::GC || !ftl.shares_first_superblock;
            let is_free = |&stream: &StreamId| is_used(stream) && open[stream.index()].is_none();
            let stream = ftl.streams.candidates(owner, mark).find(is_free);
            match stream.filter(|_| next < units) {
                Some(stream) => {
                    self.core.skip_to(superblock, next);
                    open[stream.index()] = Some(self.core.geometry().unit(superblock, next));
                }
                None => {
                    self.core.on_reset(superblock);
                    self.core.fill_up(superblock);
                    full.push(superblock);
                    self.attempt.recovery.closed_blocks += 1;
                }
            }
        }
        open
    }

    /// The LPN of the first unit of a superblock that is a translation or combination page, if it has one.
    fn first_internal_lpn(&self, superblock: SuperblockId) -> Option<Lpn> {
        let array = self.core.flash();
        let mut lpns = self.core.programmed_units(superblock).map(|unit| array.lpn(unit));
        lpns.find(|lpn| lpn.0 != DEAD_LPN && lpn.0 >= self.core.geometry().logical_units)
    }

    /// Completes the partial units of the emergency flush that are mapped: programs the whole data to another unit.
    /// Returns the LPN and the sequence number of each that cannot be completed, because no programming unit can be
    /// allocated ([`Return::place_for_merge`]).
    pub(crate) fn merge_partial_units(&mut self, found: &Found) -> Result<Vec<(Lpn, u64)>, PowerFails> {
        let mut merges = Vec::new();
        let partial_units: Vec<UnitId> = self.core.flash().partial_units().collect();
        for partial in partial_units {
            let lpn = self.core.flash().lpn(partial);
            let older =
                found.whole.get(&lpn.0).copied().filter(|&older| !self.core.flash().is_partial(older));
            let (true, Some(older)) = (self.core.is_newest(lpn, partial), older) else { continue };
            self.read(partial)?;
            self.read(older)?;
            let is_lost = self.core.flash().is_lost(partial) || self.core.flash().is_lost(older);
            let stamp = self.stamp_in_recovery(partial, is_lost);
            merges.push(Merge { lpn, partial, older, stamp, is_done: false });
        }
        let mut next = None;
        for at in 0..merges.len() {
            // Making room for another unit may have completed this one.
            if merges[at].is_done {
                continue;
            }
            // A program writes the data of one place.
            let of = self.core.place_of(merges[at].partial);
            let stream = self.core.host_stream_of(merges[at].partial);
            let place = match next.take() {
                Some((place, same)) if same == of => Some(place),
                other => {
                    self.pad_in_recovery(other.map(|(place, _)| place));
                    self.place_for_merge(at, &mut merges)?
                }
            };
            if let Some(place) = place {
                let left = self.program_in_recovery(place, stream, &merges[at].complete())?;
                next = left.map(|left| (left, of));
                self.attempt.recovery.merged_pages += 1;
            }
        }
        self.pad_in_recovery(next.map(|(place, _)| place));
        // A partial unit must not be taken for a whole unit, so its data is lost.
        let lost = merges.iter().filter(|merge| !merge.is_done);
        Ok(lost.map(|merge| (merge.lpn, merge.stamp.sequence)).collect())
    }

    /// Reads the page of a unit, which is a step.
    fn read(&mut self, unit: UnitId) -> Result<(), PowerFails> {
        let (die, ns) = (self.die_of_unit(unit), self.time_of_read(unit));
        self.attempt.begin(die, ns)?;
        // As its programs.
        let shape = self.core.flash().shape_id(self.core.geometry().superblock_of(unit));
        self.core.count_ended(FlashOp::Read, Cause::Flush, shape);
        self.attempt.recovery.read_pages += 1;
        Ok(())
    }

    fn die_of_unit(&self, unit: UnitId) -> DieId {
        let (superblock, index) = self.core.geometry().split(unit);
        self.core.geometry().die_of_unit(superblock, index)
    }

    /// Time of a read of the page of `unit` from command to decoding, by one try at the first read level.
    fn time_of_read(&self, unit: UnitId) -> Span {
        let (superblock, index) = self.core.geometry().split(unit);
        let read = self.core.shape(superblock).read(index, 1, false);
        self.core.device().timing().command.read_ns + read.sense_ns + read.transfer_ns + read.decode_ns
    }

    /// The stamp of a new copy of the unit at `unit`, corrected now.
    fn stamp_in_recovery(&self, unit: UnitId, is_lost: bool) -> Stamp {
        let corrected = if is_lost { AgeStamp::LOST } else { self.core.age_stamp_now() };
        Stamp { corrected, ..self.core.flash().stamp(unit) }
    }

    /// Programs a unit to `place` and maps its LPN to it, without simulating queues. The units of a programming unit are
    /// passed one after another, without a step between them; the program is a step at the first one. The cut tears the
    /// programming unit. Returns the next unit of the programming unit; `None` after the last one.
    fn program_in_recovery(
        &mut self,
        place: AllocatedUnit,
        stream: StreamId,
        data: &InRam,
    ) -> Result<Option<AllocatedUnit>, PowerFails> {
        let (superblock, index) = self.core.geometry().split(place.unit);
        let shape = self.core.flash().shape_id(superblock);
        let place_in_program = self.core.shape(superblock).place_in_program(place.unit);
        if self.core.superblock(superblock).programmed == 0 {
            self.schemes.on_first_program(&mut self.core, superblock);
        }
        if place_in_program == 0 {
            let transfer_ns = self.core.device().timing().program_transfer_ns(shape);
            let ns = transfer_ns + self.core.shape(superblock).program_ns(index);
            let ended = self.attempt.begin(self.die_of_unit(place.unit), ns);
            if ended.is_err() {
                self.attempt.recovery.torn_programs += 1;
                self.core.begin_torn_program(place, data.lpn, data.stamp);
                tear_program(&mut self.core, place.unit, &mut self.attempt.destroyed);
                ended?;
            }
            // Recovery counts all its programs for the flush, those of copies too.
            self.core.count_ended(FlashOp::Program, Cause::Flush, shape);
        }
        if self.core.ftl().is_combination(data.lpn) {
            self.schemes.stage(data.lpn, place.unit);
        }
        if data.is_partial {
            self.core.mark_partial(place.unit);
        }
        if let Some(old) = self.core.program_allocated(place.unit, stream, data.lpn, data.stamp) {
            self.schemes.on_unit_obsolete(&mut self.core, old);
        }
        if place_in_program + 1 == self.core.shape(superblock).units_per_program {
            self.core.skip_after(superblock, index, u32::from(place.skips));
            return Ok(None);
        }
        Ok(Some(AllocatedUnit { unit: UnitId(place.unit.0 + 1), ..place }))
    }

    /// Makes the rest of a programming unit, from the unit `next` on, padding, which counts as skipped. `None`: no
    /// programming unit has units left.
    fn pad_in_recovery(&mut self, next: Option<AllocatedUnit>) {
        let Some(next) = next else { return };
        let (superblock, index) = self.core.geometry().split(next.unit);
        let shape = self.core.shape(superblock);
        let left = shape.units_per_program - shape.place_in_program(next.unit);
        self.core.count_padding(left);
        self.core.skip_after(superblock, index - 1, left + u32::from(next.skips));
    }

    /// Allocates a programming unit of the host's stream for the merge number `at`, preferably on the die of its partial
    /// unit, and returns its first unit. If no die of its reclaim group has room, first collects superblocks, each in the
    /// lane that has the most spare units among those with garbage. Returns `None` if no lane has garbage, a collection
    /// fails, or a collection has completed the merge.
    fn place_for_merge(
        &mut self,
        at: usize,
        merges: &mut [Merge],
    ) -> Result<Option<AllocatedUnit>, PowerFails> {
        let partial = merges[at].partial;
        let (home, stream) = (self.die_of_unit(partial).0, self.core.host_stream_of(partial));
        let group = self.core.place_of(partial).group;
        while !merges[at].is_done {
            let dies = self.core.geometry().dies;
            let mut dies = (0..dies).map(|step| DieId((home + step) % dies));
            let place = dies.find_map(|die| {
                let is_in_group = self.core.ftl().is_in_group(die, group);
                if is_in_group { self.core.allocate_for_flush(die, stream) } else { None }
            });
            if let Some(place) = place {
                return Ok(Some(place));
            }
            let Some(lane) = self
                .core
                .placements()
                .lanes_of(group)
                .filter(|&lane| self.core.ftl().has_garbage(lane) || self.core.to_fold(lane).is_some())
                .max_by_key(|&lane| (self.core.ftl().spare_units(lane), std::cmp::Reverse(lane.0)))
            else {
                return Ok(None);
            };
            if self.collect_in_recovery(lane, merges)?.is_none() {
                return Ok(None);
            }
        }
        Ok(None)
    }

    /// Empties and erases the superblock that the policy of GC picks in `lane`; `Recovery::erased_blocks` does not
    /// count it. The partial units of which it has a part are completed instead of being copied: the erase would destroy
    /// the part. Returns `None` if the policy picks none or fails, or if emptying its pick would gain nothing or finds
    /// no room.
    fn collect_in_recovery(&mut self, lane: LaneId, merges: &mut [Merge]) -> Result<Option<()>, PowerFails> {
        if self.is_guarded {
            // A torn program would destroy the copies of the superblock collected before.
            self.core.end_wordlines_in_recovery(lane);
        }
        let Some(picked) = self.core.to_fold(lane).or_else(|| self.core.pick_victim(lane)) else {
            return Ok(None);
        };
        let Some(victim) = self.collectable(lane, picked, merges) else { return Ok(None) };
        let stream = self.core.emptying_stream(victim, false);
        let per_program = self.core.first_shape().units_per_program;
        let is_of_victim = |unit: UnitId| self.core.geometry().superblock_of(unit) == victim;
        let is_partial_here = |merge: &Merge| self.core.unit_of(merge.lpn).is_some_and(is_of_victim);
        let is_here = |merge: &Merge| is_partial_here(merge) || is_of_victim(merge.older);
        let here: Vec<usize> =
            (0..merges.len()).filter(|&at| !merges[at].is_done && is_here(&merges[at])).collect();
        let more = here.iter().filter(|&&at| !is_partial_here(&merges[at])).count() as u32;
        let units = self.core.valid_units(victim) + more;
        let padded = units.next_multiple_of(per_program);
        if padded == self.core.first_shape().units || units > self.core.stream_room(lane, stream) {
            return Ok(None);
        }
        self.core.begin_emptying(victim);
        let mut batch = Vec::with_capacity(per_program as usize);
        let merged: BTreeSet<Lpn> = here.iter().map(|&at| merges[at].lpn).collect();
        for &at in &here {
            batch.push(merges[at].complete());
            self.attempt.recovery.merged_pages += 1;
            self.program_if_full(lane, stream, &mut batch)?;
        }
        let (mut next, mut sensed) = (0, None);
        while let Some(index) = self.core.next_valid(victim, next) {
            next = index + 1;
            let unit = self.core.geometry().unit(victim, index);
            let lpn = self.core.flash().lpn(unit);
            if merged.contains(&lpn) {
                continue;
            }
            let first = self.core.geometry().first_of_page(unit);
            if sensed.replace(first) != Some(first) {
                self.read(unit)?;
            }
            let stamp = self.stamp_in_recovery(unit, self.core.flash().is_lost(unit));
            batch.push(InRam { lpn, stamp, is_partial: self.core.flash().is_partial(unit) });
            self.program_if_full(lane, stream, &mut batch)?;
        }
        if !batch.is_empty() {
            self.program_batch(lane, stream, &mut batch)?;
        }
        self.erase_dies(victim)?;
        self.core.erase_now(victim);
        self.schemes.on_erased(&mut self.core, victim);
        Ok(Some(()))
    }

    /// The superblock that a collection in `lane` empties: `picked`, unless it has the older part of a unit whose data may
    /// not go where the others go, because it has another placement. Then the full superblock with the fewest valid units
    /// without such a part.
    fn collectable(&self, lane: LaneId, picked: SuperblockId, merges: &[Merge]) -> Option<SuperblockId> {
        let core = &self.core;
        let is_apart = |victim: SuperblockId| {
            let stream = core.emptying_stream(victim, false);
            merges.iter().any(|merge| {
                let of_partial = core.geometry().superblock_of(merge.partial);
                !merge.is_done
                    && core.geometry().superblock_of(merge.older) == victim
                    && (core.emptying_stream(of_partial, false) != stream
                        || core.place_of(merge.partial).group != core.placements().group_of(lane))
            })
        };
        if core.placements().is_single() || !is_apart(picked) {
            return Some(picked);
        }
        let superblocks = core.geometry().superblock_ids_of(lane);
        let full =
            superblocks.filter(|&superblock| core.superblock(superblock).state == SuperblockState::Full);
        full.filter(|&superblock| !is_apart(superblock))
            .min_by_key(|&superblock| (core.valid_units(superblock), superblock.0))
    }

    /// Programs the units that a collection has gathered, if they are as many as a program writes.
    fn program_if_full(
        &mut self,
        lane: LaneId,
        stream: StreamId,
        batch: &mut Vec<InRam>,
    ) -> Result<(), PowerFails> {
        let is_full = batch.len() as u32 == self.core.first_shape().units_per_program;
        if is_full { self.program_batch(lane, stream, batch) } else { Ok(()) }
    }

    /// Programs at most as many units as a program writes, with padding. The stream has room for them.
    fn program_batch(
        &mut self,
        lane: LaneId,
        stream: StreamId,
        batch: &mut Vec<InRam>,
    ) -> Result<(), PowerFails> {
        let per_program = self.core.first_shape().units_per_program;
        let mut allocate = || self.core.allocate(lane, stream).expect("the stream has room for the victim");
        let mut place = allocate();
        for _ in 1..per_program {
            place.skips = allocate().skips;
        }
        let mut next = Some(place);
        for data in batch.drain(..) {
            let place = next.take().expect("a batch is at most a program");
            next = self.program_in_recovery(place, stream, &data)?;
        }
        self.pad_in_recovery(next);
        Ok(())
    }
}
