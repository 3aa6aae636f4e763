//! Partial refresh: the susceptible bits of the units of a due superblock are written, by way of the VSM, to
//! combination pages. A combination page is one unit with an LPN of its own. From then on a read of such a base unit (a
//! base page in the words of the paper) also reads its combination page (pread), to which a link leads.
//!
//! The spec key `vsm_pages` counts flash pages. In the names of counters and results (`linked_pages`, `hot_pages`) a
//! page is a unit.
//!
//! | unit of the superblock | what happens |
//! |---|---|
//! | a unit that cannot be refreshed partially | written elsewhere, as by `fcr` |
//! | any other unit | its susceptible bits, corrected, go to the VSM; the unit stays |
//! | a unit whose bits are in flash | the unit is linked: each read corrects the errors from before the refresh |
//!
//! A unit cannot be refreshed partially if it is read-hot, uncorrectable or marked already, if it has too many
//! susceptible bits, if the VSM has no room for them, or while the capacitor is not charged.
//!
//! A unit keeps its errors until its susceptible bits are in flash. A superblock counts as refreshed when all
//! susceptible bits taken from it are in flash. At a power loss the emergency flush programs the contents of the VSM as
//! far as its energy allows. The rest is destroyed: no data is lost, but the refresh has to be repeated.
//!
//! A link ends when the program that replaces its base unit has ended, or when the LPN is deallocated. A link does not
//! end earlier: if power is lost before the end of the program, the old unit is the newest data.
//!
//! The paper is named in `entry.rs`.
//!
//! `lines.rs` has the operations that fill and program the VSM; encodings, VSM and `CombinationLinks` have no notion of
//! time. Lines of the VSM become combination pages, which have a stream of their own and LPNs above those of
//! translation pages. Therefore map, valid bits, GC and recovery need no special case for combination pages, and the
//! move of a combination page moves all its links. `core::Parts` marks a base unit as pending, or records its
//! combination page, the bytes that a read needs of it, and the base unit's known errors. The rules:
//!
//! - A combination page without links is unmapped, and its LPN is free again.
//! - An entry of a combination page names the base unit, its LPN, its sequence number and the P/E cycles of its
//!   superblock. Recovery goes through the combination pages, the newest first, and restores the links of the entries
//!   whose four values still match: the LPN is mapped to the base unit, and sequence number and P/E cycles are those of
//!   the entry. With the oracle, each host read of a linked unit asserts that its combination page has an entry with
//!   the unit, its LPN and its sequence number.
//! - A pread is two sub-reads, each of which names the other (`Transaction::partner`). Both are queued at once, and
//!   decoding begins when the second one has left its die. A sub-read that does not decode is tried again alone. Units
//!   of one page that are read together share one flash read with at most one sub-read of a combination page: a unit
//!   that is linked to another combination page has a flash read of its own.
//! - A unit with a mark is never copied back. A superblock that has been refreshed partially, or that holds combination
//!   pages, is refreshed conventionally. Therefore no unit has its data in three places.

mod audit;
mod encoding;
mod entry;
mod lines;
mod links;
pub(crate) mod spec;
#[cfg(test)]
mod tests;
mod vsm;

use crate::base::state::{state, value};
pub use encoding::EncodedSize;
pub use entry::SusceptibleBits;
pub use links::{CombinationLinks, LINK_BITS};
pub use spec::{Encoding, FullStrength};
pub use vsm::Vsm;

use super::spec::RefreshPolicySpec;
use super::{Refresh, RefreshStats};
use crate::base::binomial::binomial;
use crate::base::geometry::{LaneId, Lpn, SuperblockId, UnitId};
use crate::base::number_map::NumberMap;
use crate::base::rng::Stream;
use crate::base::units::{Span, Time};
use crate::core::{Component, Core, Map, Parts, Refreshed, Wake};
use crate::ftl::StreamId;
use crate::probe::Probe;
use crate::sched::{Owner, Slot, Transaction};
use schemars::JsonSchema;
use serde::Serialize;
use spec::PartialSpec;
use std::cmp::Reverse;
use std::collections::VecDeque;

/// A superblock whose partial refresh is not complete: from its first susceptible bits in the VSM on, until the refresh
/// job has read all its units and these bits are in flash or no longer needed.
#[derive(Debug, Default)]
struct Pending {
    /// Number of units whose susceptible bits have been put into the VSM, are not in flash yet and are still needed.
    units: u32,
    /// Whether the refresh job has read all valid units of the superblock and has refreshed them or written them
    /// elsewhere.
    is_read: bool,
}

impl Pending {
    /// Whether the partial refresh of the superblock is complete.
    fn is_over(&self) -> bool {
        self.is_read && self.units == 0
    }
}

/// The state of partial refresh.
#[derive(Debug)]
pub(crate) struct Partial {
    spec: PartialSpec,
    /// The stream of combination pages.
    stream: StreamId,
    /// Random stream for the numbers of susceptible bits.
    draws: Stream,
    size: EncodedSize,
    vsm: Vsm,
    pub(crate) stats: RefreshStats,
    /// The contents of combination pages; [`Parts`](crate::core::Parts) has the combination page of each base unit.
    pub(crate) links: CombinationLinks,
    /// Units that have been read and wait for room in the VSM.
    waiting_for_room: VecDeque<(LaneId, Transaction, SusceptibleBits)>,
    /// The superblocks whose partial refresh is not complete, by [`SuperblockId`].
    pending: NumberMap<Pending>,
    /// Whether the drive has enough free superblocks for partial refresh (`min_free_blocks`).
    is_on: bool,
    /// Time of the last check of the number of free superblocks.
    looked_at: Time,
    /// Time in which partial refresh was on, up to `looked_at`.
    on_ns: Span,
}

impl Partial {
    /// Returns partial refresh without links and with an empty VSM; `None` under other policies. `seed`: the seed of
    /// the drive.
    pub(crate) fn new<P: Probe>(spec: &RefreshPolicySpec, seed: u64, core: &Core<P>) -> Option<Self> {
        let (partial, geometry) = (*spec.partial()?, core.geometry());
        let stream = core.streams().named(spec::STREAM);
        let lpns = core.streams().lpns(stream);
        Some(Self {
            spec: partial,
            stream,
            draws: Stream::new(seed, "refresh.policy.partial"),
            size: EncodedSize::new(partial.encoding, geometry.unit_bytes, partial.codeword_bits),
            // A line of the VSM has the size of a unit.
            vsm: Vsm::new(
                partial.vsm_pages * geometry.units_per_page,
                geometry.unit_bytes,
                core.first_shape().units_per_program,
            ),
            links: CombinationLinks::new(lpns.start, lpns.end - lpns.start, geometry.by_superblock()),
            stats: RefreshStats::default(),
            waiting_for_room: VecDeque::new(),
            pending: NumberMap::default(),
            is_on: true,
            looked_at: Time::START,
            on_ns: Span::ZERO,
        })
    }
}

/// A view of the partially refreshed units and their combination pages.
#[derive(Clone, Copy, Debug)]
pub struct Linked<'a> {
    links: &'a CombinationLinks,
    parts: &'a Parts,
}

impl Linked<'_> {
    /// For a partially refreshed unit: the LPN of the combination page with its susceptible bits, and its entry there.
    /// `None` for other units.
    pub fn of(&self, base: UnitId) -> Option<(Lpn, SusceptibleBits)> {
        let (lpn, _) = self.parts.of(base)?;
        let entry = self.links.entries(lpn).iter().find(|entry| entry.base == base).copied();
        entry.map(|entry| (lpn, entry))
    }

    /// Whether a unit is partially refreshed, or its susceptible bits are in the VSM.
    pub fn is_marked(&self, base: UnitId) -> bool {
        self.parts.is_marked(base)
    }

    /// Whether the susceptible bits of a unit are in the VSM and not yet in flash.
    pub fn is_pending(&self, base: UnitId) -> bool {
        self.parts.is_pending(base)
    }
}

impl std::ops::Deref for Linked<'_> {
    type Target = CombinationLinks;

    fn deref(&self) -> &CombinationLinks {
        self.links
    }
}

/// The use of the controller's RAM by partial refresh, and the share of time in which it was on.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, JsonSchema)]
pub struct PartialState {
    /// Number of partially refreshed units (units with a link to a combination page) at the end.
    #[schemars(extend("unit" = "pages"))]
    pub linked_pages: u64,
    /// Highest number of partially refreshed units at a time.
    #[schemars(extend("unit" = "pages"))]
    pub linked_pages_max: u64,
    // 52 is `LINK_BITS`.
    /// Largest size of the secondary mapping table: a bit for each unit of the drive, and 52 bits for each link.
    #[schemars(extend("unit" = "bytes"))]
    pub mapping_bytes: u64,
    /// Highest fill level of the virtual shadow memory (VSM).
    #[schemars(extend("unit" = "bytes"))]
    pub vsm_bytes: u64,
    /// Share of the simulated time in which there were enough free superblocks for partial refresh, 0 to 1.
    #[schemars(extend("unit" = "share"))]
    pub on_share: f64,
}

impl Partial {
    /// A view of the partially refreshed units.
    pub(crate) fn linked<'a, P: Probe>(&'a self, core: &'a Core<P>) -> Linked<'a> {
        Linked { links: &self.links, parts: core.parts() }
    }

    /// Returns the use of RAM, and the share of time in which partial refresh was on.
    pub(crate) fn state<P: Probe>(&self, core: &Core<P>) -> PartialState {
        let links = &self.links;
        let on_ns = self.on_ns + if self.is_on { core.now() - self.looked_at } else { Span::ZERO };
        PartialState {
            linked_pages: links.count(),
            linked_pages_max: links.peak(),
            mapping_bytes: (u64::from(core.geometry().units) + links.peak() * LINK_BITS).div_ceil(8),
            vsm_bytes: self.vsm.peak_bytes,
            on_share: if core.now() == Time::START {
                1.0
            } else {
                on_ns.ns() as f64 / core.now().ns() as f64
            },
        }
    }

    // -------------------------------------------------------------------------------------------------- the superblock

    /// Whether a due superblock is refreshed partially; `stream`: the stream to which a job would move its units. The
    /// superblock must hold only host data and must not have been refreshed partially since its erase. The drive must
    /// have enough free superblocks, and the lane must not be short of space, because the superblock is not erased and
    /// its units written elsewhere may take a free superblock; a superblock that fails one of these two is counted in
    /// `blocks_while_off`. The capacitor must be charged.
    pub(crate) fn takes<P: Probe>(
        &mut self,
        core: &mut Core<P>,
        superblock: SuperblockId,
        stream: StreamId,
    ) -> bool {
        self.look_at_free_superblocks(core);
        let is_plain = core.streams().is_gc(stream) && !core.flash().rare(superblock).is_refreshed_partially;
        let has_space = self.is_on && !core.is_short(core.geometry().lane_of(superblock));
        self.stats.blocks_while_off += u64::from(is_plain && !has_space);
        is_plain && has_space && core.state().is_charged
    }

    /// A superblock has been opened, closed or erased: checks whether the drive's share of free superblocks is at least
    /// `min_free_blocks`, a share too.
    #[inline]
    pub(crate) fn look_at_free_superblocks<P: Probe>(&mut self, core: &mut Core<P>) {
        if self.is_on {
            self.on_ns += core.now() - self.looked_at;
        }
        self.looked_at = core.now();
        self.is_on = core.ftl().free_share(core.soon_free()) >= self.spec.min_free_blocks;
    }

    /// A unit of a superblock that is being refreshed partially has been read at full strength: puts the unit's
    /// susceptible bits into the VSM. Returns `Refreshed::Not` if the unit has to be written elsewhere as a whole,
    /// because it cannot be refreshed partially, the VSM has no room, or the capacitor, which backs up the VSM, is
    /// being measured or recharged.
    #[inline(never)]
    pub(crate) fn refresh_unit<P: Probe>(
        &mut self,
        core: &mut Core<P>,
        lane: LaneId,
        read: &Transaction,
    ) -> Refreshed {
        let _inside = core.enter(Component::PartialRefresh);
        if read.is_uncorrectable() || core.parts().is_marked(read.unit) {
            return Refreshed::Not;
        }
        if core.is_hot(read.unit) {
            self.stats.hot_pages += 1;
            return Refreshed::Not;
        }
        let max_share = self.spec.max_share;
        let bytes = self.susceptible_bytes(core, read.unit);
        if f64::from(bytes) > max_share * f64::from(core.geometry().unit_bytes) {
            self.stats.too_susceptible += 1;
            return Refreshed::Not;
        }
        let superblock = core.geometry().superblock_of(read.unit);
        let entry = SusceptibleBits {
            base: read.unit,
            lpn: read.lpn,
            sequence: core.sequence_of(read.unit),
            pe_cycles: core.superblock(superblock).pe_cycles,
            offset: 0,
            bytes,
            rber: core.rber_of(read.unit),
        };
        self.enter_vsm(core, lane, read, entry)
    }

    /// Puts the susceptible bits of a unit into the VSM, or lets the unit wait while a line is being programmed.
    /// Returns `Refreshed::Not` if the VSM is full and no line can be programmed, or the capacitor is not charged.
    fn enter_vsm<P: Probe>(
        &mut self,
        core: &mut Core<P>,
        lane: LaneId,
        read: &Transaction,
        entry: SusceptibleBits,
    ) -> Refreshed {
        if !core.state().is_charged {
            return Refreshed::Not;
        }
        if !self.vsm.has_room(entry.bytes) {
            if !self.has_lines_under_way() && !self.program_lines(core) {
                self.stats.without_room += 1;
                return Refreshed::Not;
            }
            if !self.vsm.has_room(entry.bytes) {
                self.waiting_for_room.push_back((lane, *read, entry));
                return Refreshed::Later;
            }
        }
        self.put(core, entry);
        Refreshed::Now
    }

    /// Puts the susceptible bits of a unit into the VSM, which has room for them, and programs lines if the VSM now has
    /// what one program writes.
    fn put<P: Probe>(&mut self, core: &mut Core<P>, entry: SusceptibleBits) {
        self.vsm.push(entry);
        self.pending.entry(core.geometry().superblock_of(entry.base).0).or_default().units += 1;
        core.mark_pending(entry.base);
        self.stats.partial_pages += 1;
        self.stats.susceptible_bytes += u64::from(entry.bytes);
        if self.vsm.fills_program() {
            self.program_lines(core);
        }
    }

    /// Draws the number of susceptible bits of a unit; returns their encoded size in bytes.
    fn susceptible_bytes<P: Probe>(&mut self, core: &mut Core<P>, unit: UnitId) -> u32 {
        let ratio = self.spec.susceptible_ratio.unwrap_or_else(|| core.susceptible_ratio(unit));
        self.size.bytes_once(binomial(&mut self.draws, core.geometry().unit_bytes * 8, ratio)).max(1)
    }

    /// All units of a superblock have been read by the refresh job, and refreshed or written elsewhere: completes the
    /// refresh of the superblock, unless susceptible bits of the superblock are not yet in flash.
    #[inline(never)]
    pub(crate) fn end_superblock<P: Probe>(&mut self, core: &mut Core<P>, superblock: SuperblockId) {
        let _inside = core.enter(Component::PartialRefresh);
        core.mark_partially_refreshed(superblock);
        let pending = self.pending.entry(superblock.0).or_default();
        pending.is_read = true;
        if pending.is_over() {
            self.complete(core, superblock);
        }
    }

    /// Completes the refresh of a superblock.
    fn complete<P: Probe>(&mut self, core: &mut Core<P>, superblock: SuperblockId) {
        self.pending.remove(&superblock.0);
        core.set_superblock_level(superblock, 0);
        core.wake(Wake::Refreshed(superblock));
    }

    /// Unmaps a combination page without links and frees its LPN. Does nothing if the combination page has links.
    fn free_if_unlinked<P: Probe>(&mut self, core: &mut Core<P>, lpn: Lpn) {
        if self.links.live(lpn) == 0 {
            self.links.free(lpn);
            if let Some(old) = core.unmap(lpn) {
                core.look_if_dead(core.geometry().superblock_of(old));
            }
        }
    }

    // ------------------------------------------------------------------------------------------------------- the links

    /// Links the base unit of entry number `entry` of the combination page `lpn`, which is in flash, to this
    /// combination page: the errors that the base unit had before the refresh are known from now on.
    fn link<P: Probe>(&mut self, core: &mut Core<P>, lpn: Lpn, entry: usize) {
        let SusceptibleBits { base, bytes, rber, .. } = self.links.link(lpn, entry);
        core.link(base, lpn, bytes, rber);
    }

    /// A program of combination page `lpn` to the unit `to` has been queued: records the entries of `to`.
    pub(crate) fn stage(&mut self, lpn: Lpn, to: UnitId) {
        self.links.stage(to, self.links.entries(lpn).clone());
    }

    /// A host read of a unit has been queued: counts the read as a pread if the unit is linked.
    ///
    /// # Panics
    /// With the oracle, if the unit's link leads to no entry of the unit: the read would get the bits of another unit.
    pub(crate) fn on_host_read<P: Probe>(&mut self, core: &Core<P>, slot: Slot) {
        let read = core.operation(slot);
        if core.superblock(core.geometry().superblock_of(read.unit)).linked == 0 {
            return;
        }
        let Some((lpn, _)) = core.parts().of(read.unit) else { return };
        self.stats.host_preads += 1;
        self.stats.merge_preads += u64::from(matches!(read.owner, Owner::Merge(_)));
        if !core.probe.needs_sequences() {
            return;
        }
        let entries = self.links.entries(lpn);
        let sequence = core.sequence_of(read.unit);
        let is_of_unit = |entry: &SusceptibleBits| {
            entry.base == read.unit && entry.lpn == read.lpn && entry.sequence == sequence
        };
        assert!(
            entries.iter().any(is_of_unit),
            "{} is linked to a combination page that has no entry of this base page",
            core.geometry().show(read.unit)
        );
    }

    /// The data of a unit is no longer needed: ends its link, or drops its susceptible bits from the VSM.
    #[inline]
    pub(crate) fn unlink_marked<P: Probe>(&mut self, core: &mut Core<P>, unit: UnitId) {
        // The mark of a unit, out of all units of the drive, is rarely in the CPU's cache; the counts of its superblock
        // are.
        let superblock = core.geometry().superblock_of(unit);
        let may_be_marked =
            core.superblock(superblock).linked > 0 || self.pending.contains_key(&superblock.0);
        if may_be_marked && core.parts().is_marked(unit) {
            self.unlink(core, unit);
        }
    }

    #[cold]
    fn unlink<P: Probe>(&mut self, core: &mut Core<P>, unit: UnitId) {
        let _inside = core.enter(Component::PartialRefresh);
        let Some(combination) = core.unlink(unit) else {
            self.vsm.forget(unit);
            self.on_entry_done(core, core.geometry().superblock_of(unit));
            return;
        };
        if self.links.unlink(combination) {
            self.free_if_unlinked(core, combination);
        }
    }

    /// A unit has been programmed. If a job has copied a partially refreshed unit whose link still exists, counts the
    /// copy in `promoted_pages`: the data is in one unit again. If the programmed unit is a new combination page, links
    /// its base units.
    #[inline(never)]
    pub(crate) fn on_programmed<P: Probe>(
        &mut self,
        core: &mut Core<P>,
        map: &mut impl Map<P>,
        done: &Transaction,
    ) {
        if let Some(old) = done.replaces
            && core.superblock(core.geometry().superblock_of(old)).linked > 0
            && core.parts().of(old).is_some()
        {
            let is_copy = done.cause.job_verb().is_some();
            self.stats.promoted_pages += u64::from(is_copy);
        }
        if done.owner == Owner::CombinationPage {
            self.on_line_programmed(core, map, done);
        }
    }

    /// A superblock has been erased: forgets the superblock's pending refresh and the entries of its combination pages.
    #[inline(never)]
    pub(crate) fn on_erased<P: Probe>(&mut self, core: &mut Core<P>, superblock: SuperblockId) {
        // The refresh of the erased superblock no longer waits for susceptible bits.
        self.pending.remove(&superblock.0);
        self.links.erase(superblock);
        self.look_at_free_superblocks(core);
    }

    /// Fast-forward has added `more` P/E cycles to the superblock of each unit: entries get the new P/E cycles of their
    /// base units, so that they stay valid.
    pub(crate) fn on_worn(&mut self, more: impl Fn(UnitId) -> u32) {
        self.links.on_worn(&more);
        let waiting_for_room = self.waiting_for_room.iter_mut().map(|(.., entry)| entry);
        for entry in self.vsm.waiting_mut().iter_mut().chain(waiting_for_room) {
            entry.pe_cycles += more(entry.base);
        }
    }

    /// Power is lost, and the emergency flush is over: drops the contents of the VSM and the refreshes under way.
    pub(crate) fn forget(&mut self) {
        self.vsm.clear();
        self.waiting_for_room.clear();
        self.pending.clear();
    }

    /// Rebuilds the links from the combination pages in flash, the newest first. An entry becomes a link if its LPN is
    /// still mapped to its base unit, if the base unit still has the sequence number and the P/E cycles of the entry,
    /// and if no newer combination page has the link of the base unit.
    pub(crate) fn restore_links<P: Probe>(&mut self, core: &mut Core<P>, refresh: &mut Refresh) {
        let map = &core.ftl().map;
        let lpns = (core.geometry().logical_units..map.len()).map(Lpn);
        let lpns = lpns.filter(|&lpn| core.ftl().is_combination(lpn));
        let mut found: Vec<(Lpn, UnitId)> = lpns.filter_map(|lpn| Some((lpn, map.get(lpn)?))).collect();
        core.forget_links();
        self.links.restore(found.iter().copied());
        found.sort_by_key(|&(_, unit)| Reverse(core.sequence_of(unit)));
        for (lpn, _) in found {
            for (index, entry) in self.links.entries(lpn).clone().iter().enumerate() {
                let superblock = core.geometry().superblock_of(entry.base);
                let is_live = core.is_newest(entry.lpn, entry.base)
                    && core.sequence_of(entry.base) == entry.sequence
                    && core.superblock(superblock).pe_cycles == entry.pe_cycles
                    && !core.parts().is_marked(entry.base);
                if is_live {
                    self.link(core, lpn, index);
                }
            }
            self.free_if_unlinked(core, lpn);
        }
        Self::age_without_links(core, refresh);
    }

    /// Corrects the ages of partially refreshed superblocks after a power loss. A combination page may have been torn,
    /// and the age of a unit without a link counts from the last correction of the unit itself.
    fn age_without_links<P: Probe>(core: &Core<P>, refresh: &mut Refresh) {
        if !core.flash().keeps_ages() {
            return;
        }
        for superblock in (0..core.geometry().superblocks)
            .map(SuperblockId)
            .filter(|&superblock| core.flash().rare(superblock).is_refreshed_partially)
        {
            let mut next = 0;
            while let Some(index) = core.next_valid(superblock, next) {
                next = index + 1;
                let unit = core.geometry().unit(superblock, index);
                if !core.parts().is_marked(unit) && !core.flash().is_lost(unit) {
                    refresh.age_from(superblock, core.flash().stamp(unit).corrected);
                }
            }
        }
    }
}

value! { Pending { units, is_read } }
state! {
    Partial { draws, vsm, stats, links, waiting_for_room, pending, is_on, looked_at, on_ns }
    // The sizes are computed again when they are needed.
    fixed { spec, stream, size }
}
