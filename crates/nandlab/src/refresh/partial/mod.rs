//! Partial refresh: the susceptible bits of the pages of a due block, through the VSM to combination pages; reads of two
//! pages in one (pread); and what becomes of links when pages are written anew.
//!
//! | a page of the block | what happens to it |
//! |---|---|
//! | is read often, has too many susceptible bits, could not be decoded | it is written elsewhere, as by `fcr` |
//! | else | its susceptible bits, corrected, go to the VSM; the page stays |
//! | its bits have been programmed | it is linked: its errors of before are corrected at each read |
//!
//! A block counts as refreshed when all that was taken of it is in flash. Until then, and for ever if power fails before, its
//! pages are what they were: nothing is lost with the VSM but the work.
//!
//! A link ends when the program that replaces its page has ended, or with a TRIM. (Not before: if power fails meanwhile, the
//! old page is the data that counts.)
//!
//! The paper is named in `entry.rs`.

mod audit;
mod encoding;
mod entry;
mod lines;
mod links;
pub(crate) mod spec;
#[cfg(test)]
mod tests;
mod vsm;

pub use encoding::EncodedSize;
pub use entry::SusceptibleBits;
pub use links::{CombinationLinks, LINK_BITS};
pub use spec::Encoding;
pub use vsm::Vsm;

use super::spec::RefreshPolicySpec;
use super::{Refresh, RefreshStats};
use crate::base::geometry::{BlockId, Lpn, PlaneId, Ppn};
use crate::base::rng::Stream;
use crate::base::units::{Span, Time};
use crate::core::{Core, Map, Part, Parts, Physics, Refreshed, Wake};
use crate::flash::binomial;
use crate::ftl::WriteStream;
use crate::probe::Probe;
use crate::sched::{Cause, Owner, Slot, Transaction};
use spec::PartialSpec;
use std::cmp::Reverse;
use std::collections::{BTreeMap, VecDeque};

/// A block that is being refreshed partially, or has data in the VSM.
#[derive(Debug, Default)]
struct Pending {
    /// Its pages whose susceptible data is on its way.
    pages: u32,
    /// All its pages have been read.
    is_read: bool,
}

/// What partial refresh keeps.
#[derive(Debug)]
pub(crate) struct Partial {
    spec: PartialSpec,
    /// How many bits of each page are susceptible.
    draws: Stream,
    size: EncodedSize,
    vsm: Vsm,
    pub(crate) stats: RefreshStats,
    /// Where the susceptible data of pages is; which pages, [`Parts`](crate::core::Parts) says.
    pub(crate) links: CombinationLinks,
    /// Pages that have been read and wait for room in the VSM.
    waiting_for_room: VecDeque<(PlaneId, Transaction, SusceptibleBits)>,
    pending: BTreeMap<u32, Pending>,
    /// Whether there are enough free blocks, since when, and how long there were before.
    is_on: bool,
    looked_at: Time,
    on_ns: Span,
}

impl Partial {
    /// `seed` is that of the drive.
    pub(crate) fn new<P: Probe>(spec: &RefreshPolicySpec, seed: u64, core: &Core<P>) -> Option<Self> {
        let (partial, geometry) = (*spec.partial()?, &core.geometry);
        let (first, most) = core.ftl.combination_lpns();
        Some(Self {
            spec: partial,
            draws: Stream::new(seed, "refresh.policy.partial"),
            size: EncodedSize::new(partial.encoding, geometry.page_bytes, partial.codeword_bits),
            vsm: Vsm::new(partial.vsm_pages, geometry.page_bytes),
            links: CombinationLinks::new(first, most),
            stats: RefreshStats::default(),
            waiting_for_room: VecDeque::new(),
            pending: BTreeMap::new(),
            is_on: true,
            looked_at: Time::START,
            on_ns: Span::ZERO,
        })
    }
}

/// Which pages are partially refreshed, and where their susceptible data is.
#[derive(Clone, Copy, Debug)]
pub struct Linked<'a> {
    links: &'a CombinationLinks,
    parts: &'a Parts,
}

impl Linked<'_> {
    /// The combination page of a page that is partially refreshed, and what it holds of it.
    pub fn of(&self, base: Ppn) -> Option<(Lpn, SusceptibleBits)> {
        let (lpn, _) = self.parts.of(base)?;
        let entry = self.links.entries(lpn).iter().find(|entry| entry.base == base).copied();
        entry.map(|entry| (lpn, entry))
    }

    /// Whether a page is partially refreshed, or its susceptible data on its way.
    pub fn is_marked(&self, base: Ppn) -> bool {
        self.parts.is_marked(base)
    }

    /// Whether the susceptible data of a page is on its way to a combination page.
    pub fn is_on_its_way(&self, base: Ppn) -> bool {
        self.parts.is_pending(base)
    }
}

impl std::ops::Deref for Linked<'_> {
    type Target = CombinationLinks;

    fn deref(&self) -> &CombinationLinks {
        self.links
    }
}

/// What partial refresh takes of the controller's RAM, and when it was on.
#[derive(Clone, Copy, Debug)]
pub struct PartialState {
    /// Pages that are partially refreshed now, and the most there have been.
    pub linked_pages: u64,
    /// See `linked_pages`.
    pub linked_pages_max: u64,
    /// The secondary mapping table at its largest, in bytes: a bit for each page, and the links.
    pub mapping_bytes: u64,
    /// The most that the VSM has held, in bytes.
    pub vsm_bytes: u64,
    /// Share of the time in which there were enough free blocks for it, 0 to 1.
    pub on_share: f64,
}

impl Partial {
    /// Which pages are linked.
    pub(crate) fn linked<'a, P: Probe>(&'a self, core: &'a Core<P>) -> Linked<'a> {
        Linked { links: &self.links, parts: &core.parts }
    }

    /// How it is.
    pub(crate) fn state<P: Probe>(&self, core: &Core<P>) -> PartialState {
        let links = &self.links;
        let on_ns = self.on_ns + if self.is_on { core.now - self.looked_at } else { Span::ZERO };
        PartialState {
            linked_pages: links.count(),
            linked_pages_max: links.peak(),
            mapping_bytes: (u64::from(core.geometry.pages) + links.peak() * LINK_BITS).div_ceil(8),
            vsm_bytes: self.vsm.peak_bytes.into(),
            on_share: if core.now == Time::START { 1.0 } else { on_ns.ns() as f64 / core.now.ns() as f64 },
        }
    }

    // ------------------------------------------------------------------------------------------------------- the block

    /// Whether a block that is due is refreshed partially: unless it has been already, holds what is no host data, or free
    /// blocks are few. In its plane too: it gives none back, and those of its pages that are written elsewhere take one.
    pub(crate) fn takes<P: Probe>(
        &mut self,
        core: &mut Core<P>,
        block: BlockId,
        stream: WriteStream,
    ) -> bool {
        self.look_at_free_blocks(core);
        let is_plain = stream == WriteStream::Gc && !core.array.block(block).is_partial;
        let is_on = self.is_on && !core.is_short(core.geometry.plane_of(block));
        self.stats.blocks_while_off += u64::from(is_plain && !is_on);
        is_plain && is_on && core.state.is_charged
    }

    /// A block has been opened, closed or erased: there may be enough free ones for partial refresh, or no longer.
    #[inline]
    pub(crate) fn look_at_free_blocks<P: Probe>(&mut self, core: &mut Core<P>) {
        if self.is_on {
            self.on_ns += core.now - self.looked_at;
        }
        self.looked_at = core.now;
        self.is_on = core.ftl.free_share(core.soon_free()) >= self.spec.min_free_blocks;
    }

    /// A page of a block that is being refreshed partially has been read at full strength. A page that
    /// cannot be is written elsewhere as a whole. So is each page while the capacitor, which keeps the VSM, is measured or charged.
    #[inline(never)]
    pub(crate) fn refresh_page<P: Probe>(
        &mut self,
        core: &mut Core<P>,
        plane: PlaneId,
        read: &Transaction,
    ) -> Refreshed {
        let _inside = core.inside.enter(Part::PartialRefresh);
        if read.is_uncorrectable() || core.parts.is_marked(read.ppn) {
            return Refreshed::Not;
        }
        if core.read_counts.is_hot(read.ppn) {
            self.stats.hot_pages += 1;
            return Refreshed::Not;
        }
        let max_share = self.spec.max_share;
        let bytes = self.susceptible_bytes(core, read.ppn);
        if f64::from(bytes) > max_share * f64::from(core.geometry.page_bytes) {
            self.stats.too_susceptible += 1;
            return Refreshed::Not;
        }
        let block = core.geometry.block_of(read.ppn);
        let entry = SusceptibleBits {
            base: read.ppn,
            lpn: read.lpn,
            sequence: core.array.stamp(read.ppn).sequence,
            pe_cycles: core.array.block(block).pe_cycles,
            offset: 0,
            bytes,
            rber: core.rber_of(read.ppn),
        };
        self.enter_vsm(core, plane, read, entry)
    }

    /// Puts the susceptible data of a page into the VSM, or lets it wait for a line that is being programmed; not if there
    /// will be no room.
    fn enter_vsm<P: Probe>(
        &mut self,
        core: &mut Core<P>,
        plane: PlaneId,
        read: &Transaction,
        entry: SusceptibleBits,
    ) -> Refreshed {
        if !core.state.is_charged {
            return Refreshed::Not;
        }
        let has_room = |partial: &Self| partial.vsm.has_room(entry.bytes);
        if !has_room(self) && !self.has_lines_under_way() && !self.program_line(core) {
            self.stats.without_room += 1;
            return Refreshed::Not;
        }
        let fits = has_room(self);
        if !fits {
            self.waiting_for_room.push_back((plane, *read, entry));
            return Refreshed::Later;
        }
        self.vsm.push(entry);
        self.pending.entry(core.geometry.block_of(read.ppn).0).or_default().pages += 1;
        core.parts.set_pending(read.ppn);
        self.stats.partial_pages += 1;
        self.stats.susceptible_bytes += u64::from(entry.bytes);
        if self.vsm.has_line() {
            self.program_line(core);
        }
        Refreshed::Now
    }

    /// How many bytes the susceptible bits of a page take.
    fn susceptible_bytes<P: Probe>(&mut self, core: &mut Core<P>, ppn: Ppn) -> u32 {
        let Core { array, geometry, physics, now, .. } = core;
        let Physics { reliability, age_clock, .. } = physics;
        let (block, page) = geometry.split(ppn);
        let pe_cycles = array.block(block).pe_cycles;
        let corrected = array.stamp(ppn).corrected;
        let ratio = self.spec.susceptible_ratio.unwrap_or_else(|| {
            let age_s = if array.keeps_ages() { corrected.age_s(age_clock.at(*now)) } else { 0 };
            reliability.susceptible_ratio(pe_cycles, age_s, geometry.kind(page)).unwrap_or(0.0)
        });
        self.size.bytes(binomial(&mut self.draws, geometry.page_bytes * 8, ratio)).max(1)
    }

    /// All pages of a block have been read.
    #[inline(never)]
    pub(crate) fn end_block<P: Probe>(&mut self, core: &mut Core<P>, block: BlockId) {
        let _inside = core.inside.enter(Part::PartialRefresh);
        core.array.block_mut(block).is_partial = true;
        self.pending.entry(block.0).or_default().is_read = true;
        self.settle(core, block);
    }

    /// The block counts as refreshed when all that was taken of it is in flash.
    fn settle<P: Probe>(&mut self, core: &mut Core<P>, block: BlockId) {
        if self.pending.get(&block.0).is_some_and(|pending| pending.is_read && pending.pages == 0) {
            self.pending.remove(&block.0);
            core.levels.set_block(block, 0);
            core.wake(Wake::Refreshed(block));
        }
    }

    fn free_if_dead<P: Probe>(&mut self, core: &mut Core<P>, lpn: Lpn) {
        if self.links.live(lpn) == 0 {
            self.links.free(lpn);
            if let Some(old) = core.ftl.unmap(&core.geometry, &mut core.array, lpn) {
                core.look_if_dead(core.geometry.block_of(old));
            }
        }
    }

    // ------------------------------------------------------------------------------------------------------- the links

    /// CombinationLinks the page of one of the entries of a combination page that is in flash: its errors of before are known.
    fn link<P: Probe>(&mut self, core: &mut Core<P>, lpn: Lpn, index: usize) {
        let SusceptibleBits { base, bytes, rber, .. } = self.links.link(lpn, index);
        core.parts.set(base, lpn, bytes);
        core.physics.known.set(base, rber);
        core.array.block_mut(core.geometry.block_of(base)).linked += 1;
    }

    /// A combination page will be at `to`, wherever it has been.
    pub(crate) fn stage(&mut self, lpn: Lpn, to: Ppn) {
        self.links.stage(to, self.links.entries(lpn));
    }

    /// The host reads a page.
    ///
    /// # Panics
    /// When its link is that of another page: the read would get bits that are not its own.
    pub(crate) fn on_host_read<P: Probe>(&mut self, core: &Core<P>, slot: Slot) {
        let read = &core.pool[slot];
        let Some((lpn, _)) = core.parts.of(read.ppn) else { return };
        self.stats.host_preads += 1;
        let entries = self.links.entries(lpn);
        let sequence = core.array.stamp(read.ppn).sequence;
        let is_its = |entry: &SusceptibleBits| {
            entry.base == read.ppn && entry.lpn == read.lpn && entry.sequence == sequence
        };
        assert!(entries.iter().any(is_its), "the link of {} is another page's", core.geometry.show(read.ppn));
    }

    /// The data of a page is elsewhere, or nowhere: its link ends, and what is on its way of it is forgotten.
    #[inline]
    pub(crate) fn unlink_marked<P: Probe>(&mut self, core: &mut Core<P>, ppn: Ppn) {
        if core.parts.is_marked(ppn) {
            self.unlink(core, ppn);
        }
    }

    #[cold]
    fn unlink<P: Probe>(&mut self, core: &mut Core<P>, ppn: Ppn) {
        let _inside = core.inside.enter(Part::PartialRefresh);
        let block = core.geometry.block_of(ppn);
        let combination = core.parts.of(ppn);
        core.parts.clear(ppn);
        let Some((combination, _)) = combination else {
            self.vsm.forget(ppn);
            self.on_entry_settled(core, block);
            return;
        };
        core.array.block_mut(block).linked -= 1;
        core.physics.known.set(ppn, 0.0);
        if self.links.unlink(combination) {
            self.free_if_dead(core, combination);
        }
    }

    /// A page has been programmed; what it replaces still has its link.
    #[inline(never)]
    pub(crate) fn on_programmed<P: Probe>(
        &mut self,
        core: &mut Core<P>,
        map: &mut impl Map<P>,
        done: &Transaction,
    ) {
        if let Some(old) = done.replaces
            && core.array.block(core.geometry.block_of(old)).linked > 0
            && core.parts.of(old).is_some()
        {
            let is_copy = matches!(done.cause, Cause::Gc | Cause::Wear | Cause::Refresh);
            self.stats.promoted_pages += u64::from(is_copy);
        }
        if done.owner == Owner::CombinationPage {
            self.on_line_programmed(core, map, done);
        }
    }

    /// A block has been erased.
    #[inline(never)]
    pub(crate) fn on_erased<P: Probe>(&mut self, core: &mut Core<P>, block: BlockId) {
        // What was pending of it is void.
        self.pending.remove(&block.0);
        let first = core.geometry.page(block, 0);
        self.links.erase(first, Ppn(first.0 + core.geometry.pages_per_block));
        self.look_at_free_blocks(core);
    }

    /// Blocks have got so many P/E cycles more: what waits of their pages is still of these pages.
    pub(crate) fn on_worn(&mut self, more: impl Fn(Ppn) -> u32) {
        self.links.on_worn(&more);
        let waiting_for_room = self.waiting_for_room.iter_mut().map(|(.., entry)| entry);
        for entry in self.vsm.waiting_mut().iter_mut().chain(waiting_for_room) {
            entry.pe_cycles += more(entry.base);
        }
    }

    /// Power is gone, and with it the VSM and all that was under way.
    pub(crate) fn forget(&mut self) {
        self.vsm.clear();
        self.waiting_for_room.clear();
        self.pending.clear();
    }

    /// Rebuilds the links from the combination pages in flash, the newest first: those whose page is still the one that
    /// they name.
    pub(crate) fn restore_links<P: Probe>(&mut self, core: &mut Core<P>, refresh: &mut Refresh) {
        let map = &core.ftl.map;
        let numbers = (core.geometry.logical_pages..map.len()).map(Lpn);
        let numbers = numbers.filter(|&lpn| core.ftl.is_combination(lpn));
        let mut found: Vec<(Lpn, Ppn)> = numbers.filter_map(|lpn| Some((lpn, map.get(lpn)?))).collect();
        core.parts.forget();
        self.links.restore(found.iter().copied());
        found.sort_by_key(|&(_, ppn)| Reverse(core.array.stamp(ppn).sequence));
        for (lpn, _) in found {
            for (index, entry) in self.links.entries(lpn).iter().enumerate() {
                let block = core.geometry.block_of(entry.base);
                let is_live = core.ftl.map.get(entry.lpn) == Some(entry.base)
                    && core.array.stamp(entry.base).sequence == entry.sequence
                    && core.array.block(block).pe_cycles == entry.pe_cycles
                    && !core.parts.is_marked(entry.base);
                if is_live {
                    self.link(core, lpn, index);
                }
            }
            self.free_if_dead(core, lpn);
        }
        Self::age_without_links(core, refresh);
    }

    /// A combination page may have been torn with its wordline: what is not linked any more has been ageing all the time.
    fn age_without_links<P: Probe>(core: &Core<P>, refresh: &mut Refresh) {
        if !core.array.keeps_ages() {
            return;
        }
        for block in
            (0..core.geometry.blocks).map(BlockId).filter(|&block| core.array.block(block).is_partial)
        {
            let mut next = 0;
            while let Some(page) = core.ftl.next_valid(&core.geometry, block, next) {
                next = page + 1;
                let ppn = core.geometry.page(block, page);
                if !core.parts.is_marked(ppn) && !core.array.is_lost(ppn) {
                    refresh.age_from(block, core.array.stamp(ppn).corrected);
                }
            }
        }
    }
}
