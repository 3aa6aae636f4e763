//! Partial refresh: the susceptible bits of the pages of a due block are written, by way of the VSM, to combination
//! pages. From then on a read of such a base page also reads its combination page (pread), to which a link leads.
//!
//! | page of the block | what happens |
//! |---|---|
//! | read-hot, too many susceptible bits, uncorrectable, or no room in the VSM | written elsewhere, as by `fcr` |
//! | any other page | its susceptible bits, corrected, go to the VSM; the page stays |
//! | a page whose bits are in flash | the page is linked: each read corrects the errors from before the refresh |
//!
//! A page keeps its errors until its susceptible bits are in flash. A block counts as refreshed when all susceptible
//! bits taken from it are in flash. If a power loss destroys the contents of the VSM, no data is lost, but the refresh
//! has to be repeated.
//!
//! A link ends when the program that replaces its base page has ended, or when the LPN is deallocated. A link does not
//! end earlier: if power is lost before the end of the program, the old page is the newest data.
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
pub use spec::{Encoding, FullStrength};
pub use vsm::Vsm;

use super::spec::RefreshPolicySpec;
use super::{Refresh, RefreshStats};
use crate::base::binomial::binomial;
use crate::base::geometry::{BlockId, Lpn, PlaneId, Ppn};
use crate::base::number_map::NumberMap;
use crate::base::rng::Stream;
use crate::base::units::{Span, Time};
use crate::core::{Core, Map, Part, Parts, Physics, Refreshed, Wake};
use crate::ftl::WriteStream;
use crate::probe::Probe;
use crate::sched::{Owner, Slot, Transaction};
use schemars::JsonSchema;
use serde::Serialize;
use spec::PartialSpec;
use std::cmp::Reverse;
use std::collections::VecDeque;

/// A block that is being refreshed partially, or has susceptible bits in the VSM.
#[derive(Debug, Default)]
struct Pending {
    /// Number of pages whose susceptible bits are not in flash yet.
    pages: u32,
    /// Whether all pages of the block have been read.
    is_read: bool,
}

impl Pending {
    /// Whether all pages of the block have been read and their susceptible bits are in flash.
    fn is_over(&self) -> bool {
        self.is_read && self.pages == 0
    }
}

/// The state of partial refresh.
#[derive(Debug)]
pub(crate) struct Partial {
    spec: PartialSpec,
    /// Random stream for the numbers of susceptible bits.
    draws: Stream,
    size: EncodedSize,
    vsm: Vsm,
    pub(crate) stats: RefreshStats,
    /// The contents of combination pages; [`Parts`](crate::core::Parts) has the combination page of each base page.
    pub(crate) links: CombinationLinks,
    /// Pages that have been read and wait for room in the VSM.
    waiting_for_room: VecDeque<(PlaneId, Transaction, SusceptibleBits)>,
    /// By block number: the blocks whose partial refresh is not complete.
    pending: NumberMap<Pending>,
    /// Whether there are enough free blocks for partial refresh.
    is_on: bool,
    /// Time of the last check of the number of free blocks.
    looked_at: Time,
    /// Time in which partial refresh was on, up to `looked_at`.
    on_ns: Span,
}

impl Partial {
    /// Returns partial refresh without links and with an empty VSM; `None` under other policies. `seed`: the seed of
    /// the drive.
    pub(crate) fn new<P: Probe>(spec: &RefreshPolicySpec, seed: u64, core: &Core<P>) -> Option<Self> {
        let (partial, geometry) = (*spec.partial()?, &core.geometry);
        let (first, most) = core.ftl.combination_lpns();
        Some(Self {
            spec: partial,
            draws: Stream::new(seed, "refresh.policy.partial"),
            size: EncodedSize::new(partial.encoding, geometry.page_bytes, partial.codeword_bits),
            vsm: Vsm::new(
                partial.vsm_pages * geometry.units_per_page,
                geometry.page_bytes,
                geometry.pages_per_program,
            ),
            links: CombinationLinks::new(first, most, geometry.pages_per_block),
            stats: RefreshStats::default(),
            waiting_for_room: VecDeque::new(),
            pending: NumberMap::default(),
            is_on: true,
            looked_at: Time::START,
            on_ns: Span::ZERO,
        })
    }
}

/// A view of the partially refreshed pages and their combination pages.
#[derive(Clone, Copy, Debug)]
pub struct Linked<'a> {
    links: &'a CombinationLinks,
    parts: &'a Parts,
}

impl Linked<'_> {
    /// For a partially refreshed page: the LPN of the combination page with its susceptible bits, and its entry there.
    /// `None` for other pages.
    pub fn of(&self, base: Ppn) -> Option<(Lpn, SusceptibleBits)> {
        let (lpn, _) = self.parts.of(base)?;
        let entry = self.links.entries(lpn).iter().find(|entry| entry.base == base).copied();
        entry.map(|entry| (lpn, entry))
    }

    /// Whether a page is partially refreshed, or its susceptible bits are in the VSM.
    pub fn is_marked(&self, base: Ppn) -> bool {
        self.parts.is_marked(base)
    }

    /// Whether the susceptible bits of a page are in the VSM and not yet in flash.
    pub fn is_pending(&self, base: Ppn) -> bool {
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
    /// Number of partially refreshed pages (pages with a link to a combination page) at the end.
    #[schemars(extend("unit" = "pages"))]
    pub linked_pages: u64,
    /// Highest number of partially refreshed pages at a time.
    #[schemars(extend("unit" = "pages"))]
    pub linked_pages_max: u64,
    /// Largest size of the secondary mapping table: a bit for each page of the drive, and 52 bits for each link.
    #[schemars(extend("unit" = "bytes"))]
    pub mapping_bytes: u64,
    /// Highest fill level of the virtual shadow memory (VSM).
    #[schemars(extend("unit" = "bytes"))]
    pub vsm_bytes: u64,
    /// Share of the simulated time in which there were enough free blocks for partial refresh, 0 to 1.
    #[schemars(extend("unit" = "share"))]
    pub on_share: f64,
}

impl Partial {
    /// A view of the partially refreshed pages.
    pub(crate) fn linked<'a, P: Probe>(&'a self, core: &'a Core<P>) -> Linked<'a> {
        Linked { links: &self.links, parts: &core.parts }
    }

    /// Returns the use of RAM, and the share of time in which partial refresh was on.
    pub(crate) fn state<P: Probe>(&self, core: &Core<P>) -> PartialState {
        let links = &self.links;
        let on_ns = self.on_ns + if self.is_on { core.now - self.looked_at } else { Span::ZERO };
        PartialState {
            linked_pages: links.count(),
            linked_pages_max: links.peak(),
            mapping_bytes: (u64::from(core.geometry.pages) + links.peak() * LINK_BITS).div_ceil(8),
            vsm_bytes: self.vsm.peak_bytes,
            on_share: if core.now == Time::START { 1.0 } else { on_ns.ns() as f64 / core.now.ns() as f64 },
        }
    }

    // ------------------------------------------------------------------------------------------------------- the block

    /// Whether a due block is refreshed partially. The block must hold only host data and must not have been refreshed
    /// partially since its erase. The drive must have enough free blocks, the capacitor must be charged, and the plane
    /// must not be short of space, because the block is not erased and its pages written elsewhere may take a free
    /// block.
    pub(crate) fn takes<P: Probe>(
        &mut self,
        core: &mut Core<P>,
        block: BlockId,
        stream: WriteStream,
    ) -> bool {
        self.look_at_free_blocks(core);
        let is_plain = stream == WriteStream::Gc && !core.array.rare(block).is_partial;
        let is_on = self.is_on && !core.is_short(core.geometry.plane_of(block));
        self.stats.blocks_while_off += u64::from(is_plain && !is_on);
        is_plain && is_on && core.state.is_charged
    }

    /// A block has been opened, closed or erased: checks whether there are enough free blocks for partial refresh.
    #[inline]
    pub(crate) fn look_at_free_blocks<P: Probe>(&mut self, core: &mut Core<P>) {
        if self.is_on {
            self.on_ns += core.now - self.looked_at;
        }
        self.looked_at = core.now;
        self.is_on = core.ftl.free_share(core.soon_free()) >= self.spec.min_free_blocks;
    }

    /// A page of a block that is being refreshed partially has been read at full strength: puts the page's susceptible
    /// bits into the VSM. Returns `Refreshed::Not` if the page has to be written elsewhere as a whole, because it
    /// cannot be refreshed partially or the capacitor, which backs up the VSM, is being measured or recharged.
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

    /// Puts the susceptible bits of a page into the VSM, or lets the page wait while a line is being programmed.
    /// Returns `Refreshed::Not` if the VSM is full and no line can be programmed, or the capacitor is not charged.
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
        if !self.vsm.has_room(entry.bytes) {
            if !self.has_lines_under_way() && !self.program_lines(core) {
                self.stats.without_room += 1;
                return Refreshed::Not;
            }
            if !self.vsm.has_room(entry.bytes) {
                self.waiting_for_room.push_back((plane, *read, entry));
                return Refreshed::Later;
            }
        }
        self.put(core, entry);
        Refreshed::Now
    }

    /// Puts the susceptible bits of a page into the VSM, which has room for them, and programs lines if the VSM is full.
    fn put<P: Probe>(&mut self, core: &mut Core<P>, entry: SusceptibleBits) {
        self.vsm.push(entry);
        self.pending.entry(core.geometry.block_of(entry.base).0).or_default().pages += 1;
        core.parts.set_pending(entry.base);
        self.stats.partial_pages += 1;
        self.stats.susceptible_bytes += u64::from(entry.bytes);
        if self.vsm.fills_program() {
            self.program_lines(core);
        }
    }

    /// Draws the number of susceptible bits of a page; returns their encoded size in bytes.
    fn susceptible_bytes<P: Probe>(&mut self, core: &mut Core<P>, ppn: Ppn) -> u32 {
        let Core { array, geometry, physics, now, .. } = core;
        let Physics { reliability, age_clock, .. } = physics;
        let (block, page) = geometry.split(ppn);
        let pe_cycles = array.block(block).pe_cycles;
        let ratio = self.spec.susceptible_ratio.unwrap_or_else(|| {
            let age_s = if array.keeps_ages() { array.cells_since(ppn).age_s(age_clock.at(*now)) } else { 0 };
            reliability.susceptible_ratio(pe_cycles, age_s, geometry.kind(page)).unwrap_or(0.0)
        });
        self.size.bytes_once(binomial(&mut self.draws, geometry.page_bytes * 8, ratio)).max(1)
    }

    /// All pages of a block have been read by the refresh job, and refreshed or written elsewhere: completes the
    /// refresh of the block, unless susceptible bits of the block are not yet in flash.
    #[inline(never)]
    pub(crate) fn end_block<P: Probe>(&mut self, core: &mut Core<P>, block: BlockId) {
        let _inside = core.inside.enter(Part::PartialRefresh);
        core.array.rare_mut(block).is_partial = true;
        let pending = self.pending.entry(block.0).or_default();
        pending.is_read = true;
        if pending.is_over() {
            self.complete(core, block);
        }
    }

    /// Completes the refresh of a block.
    fn complete<P: Probe>(&mut self, core: &mut Core<P>, block: BlockId) {
        self.pending.remove(&block.0);
        core.levels.set_block(block, 0);
        core.wake(Wake::Refreshed(block));
    }

    /// Unmaps a combination page without links and frees its number.
    fn free_if_unlinked<P: Probe>(&mut self, core: &mut Core<P>, lpn: Lpn) {
        if self.links.live(lpn) == 0 {
            self.links.free(lpn);
            if let Some(old) = core.ftl.unmap(&core.geometry, &mut core.array, lpn) {
                core.look_if_dead(core.geometry.block_of(old));
            }
        }
    }

    // ------------------------------------------------------------------------------------------------------- the links

    /// Links the base page of an entry to a combination page that is in flash: the errors that the base page had before
    /// the refresh are known from now on.
    fn link<P: Probe>(&mut self, core: &mut Core<P>, lpn: Lpn, index: usize) {
        let SusceptibleBits { base, bytes, rber, .. } = self.links.link(lpn, index);
        core.parts.set(base, lpn, bytes, rber);
        core.array.block_mut(core.geometry.block_of(base)).linked += 1;
    }

    /// A program of combination page `lpn` to the page `to` has been queued: records the entries of `to`.
    pub(crate) fn stage(&mut self, lpn: Lpn, to: Ppn) {
        self.links.stage(to, self.links.entries(lpn).clone());
    }

    /// A host read of a page has been queued: counts the read if it is a pread.
    ///
    /// # Panics
    /// With the oracle, if the page's link leads to no entry of the page: the read would get the bits of another page.
    pub(crate) fn on_host_read<P: Probe>(&mut self, core: &Core<P>, slot: Slot) {
        let read = &core.pool[slot];
        if core.array.block(core.geometry.block_of(read.ppn)).linked == 0 {
            return;
        }
        let Some((lpn, _)) = core.parts.of(read.ppn) else { return };
        self.stats.host_preads += 1;
        self.stats.merge_preads += u64::from(matches!(read.owner, Owner::Merge(_)));
        if !P::STAMPED {
            return;
        }
        let entries = self.links.entries(lpn);
        let sequence = core.array.stamp(read.ppn).sequence;
        let is_of_page = |entry: &SusceptibleBits| {
            entry.base == read.ppn && entry.lpn == read.lpn && entry.sequence == sequence
        };
        assert!(
            entries.iter().any(is_of_page),
            "{} is linked to a combination page that has no entry of this base page",
            core.geometry.show(read.ppn)
        );
    }

    /// The data of a page is no longer needed: ends its link, or drops its susceptible bits from the VSM.
    #[inline]
    pub(crate) fn unlink_marked<P: Probe>(&mut self, core: &mut Core<P>, ppn: Ppn) {
        // The mark of a page, out of all pages of the drive, is rarely in the CPU's cache; the counts of its block are.
        let block = core.geometry.block_of(ppn);
        let may_be_marked = core.array.block(block).linked > 0 || self.pending.contains_key(&block.0);
        if may_be_marked && core.parts.is_marked(ppn) {
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
            self.on_entry_done(core, block);
            return;
        };
        core.array.block_mut(block).linked -= 1;
        if self.links.unlink(combination) {
            self.free_if_unlinked(core, combination);
        }
    }

    /// A page has been programmed. If the program replaces a partially refreshed page, whose link still exists, by a
    /// copy, counts the copy. If the page is a new combination page, links its base pages.
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
            let is_copy = done.cause.job_verb().is_some();
            self.stats.promoted_pages += u64::from(is_copy);
        }
        if done.owner == Owner::CombinationPage {
            self.on_line_programmed(core, map, done);
        }
    }

    /// A block has been erased: forgets the block's pending refresh and the entries of its combination pages.
    #[inline(never)]
    pub(crate) fn on_erased<P: Probe>(&mut self, core: &mut Core<P>, block: BlockId) {
        // The refresh of the erased block no longer waits for susceptible bits.
        self.pending.remove(&block.0);
        self.links.erase(block);
        self.look_at_free_blocks(core);
    }

    /// Fast-forward has added `more` P/E cycles to the block of each page: entries get the new P/E cycles of their base
    /// pages, so that they stay valid.
    pub(crate) fn on_worn(&mut self, more: impl Fn(Ppn) -> u32) {
        self.links.on_worn(&more);
        let waiting_for_room = self.waiting_for_room.iter_mut().map(|(.., entry)| entry);
        for entry in self.vsm.waiting_mut().iter_mut().chain(waiting_for_room) {
            entry.pe_cycles += more(entry.base);
        }
    }

    /// Power is lost: drops the VSM and the refreshes under way.
    pub(crate) fn forget(&mut self) {
        self.vsm.clear();
        self.waiting_for_room.clear();
        self.pending.clear();
    }

    /// Rebuilds the links from the combination pages in flash, the newest first. An entry becomes a link if its base
    /// page still has the LPN, sequence number and P/E cycles of the entry.
    pub(crate) fn restore_links<P: Probe>(&mut self, core: &mut Core<P>, refresh: &mut Refresh) {
        let map = &core.ftl.map;
        let numbers = (core.geometry.logical_pages..map.len()).map(Lpn);
        let numbers = numbers.filter(|&lpn| core.ftl.is_combination(lpn));
        let mut found: Vec<(Lpn, Ppn)> = numbers.filter_map(|lpn| Some((lpn, map.get(lpn)?))).collect();
        core.parts.forget();
        self.links.restore(found.iter().copied());
        found.sort_by_key(|&(_, ppn)| Reverse(core.array.stamp(ppn).sequence));
        for (lpn, _) in found {
            for (index, entry) in self.links.entries(lpn).clone().iter().enumerate() {
                let block = core.geometry.block_of(entry.base);
                let is_live = core.ftl.map.get(entry.lpn) == Some(entry.base)
                    && core.array.stamp(entry.base).sequence == entry.sequence
                    && core.array.block(block).pe_cycles == entry.pe_cycles
                    && !core.parts.is_marked(entry.base);
                if is_live {
                    self.link(core, lpn, index);
                }
            }
            self.free_if_unlinked(core, lpn);
        }
        Self::age_without_links(core, refresh);
    }

    /// Corrects the ages of partially refreshed blocks after a power loss. A combination page may have been torn, and
    /// the age of a page without a link counts from the last correction of the page itself.
    fn age_without_links<P: Probe>(core: &Core<P>, refresh: &mut Refresh) {
        if !core.array.keeps_ages() {
            return;
        }
        for block in (0..core.geometry.blocks).map(BlockId).filter(|&block| core.array.rare(block).is_partial)
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
