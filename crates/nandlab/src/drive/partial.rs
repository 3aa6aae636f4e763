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

use super::Drive;
use super::background::Refreshed;
use crate::core::{Core, Maps, Part, Program, To, Wake};
use crate::ftl::partial::{EncodedSize, Entry, LINK_BITS, Vsm};
use crate::ftl::{Place, WriteStream};
use crate::geometry::{BlockId, Geometry, Lpn, PlaneId, Ppn};
use crate::nand::binomial;
use crate::probe::Probe;
use crate::rng::Stream;
use crate::sched::{Cause, Class, Owner, Slot, Transaction};
use crate::spec::{PartialSpec, Spec};
use crate::units::{Span, Time};
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
pub(super) struct Partial {
    spec: PartialSpec,
    /// How many bits of each page are susceptible.
    draws: Stream,
    size: EncodedSize,
    vsm: Vsm,
    /// Pages that have been read and wait for room in the VSM.
    for_room: VecDeque<(PlaneId, Transaction, Entry)>,
    pending: BTreeMap<u32, Pending>,
    /// Whether there are enough free blocks, since when, and how long there were before.
    is_on: bool,
    looked_at: Time,
    on_ns: Span,
}

impl Partial {
    pub(super) fn new(spec: &Spec, geometry: &Geometry) -> Option<Self> {
        let partial = *spec.refresh.policy.partial()?;
        Some(Self {
            spec: partial,
            draws: Stream::new(spec.seed, "refresh.policy.partial"),
            size: EncodedSize::new(partial.encoding, geometry.page_bytes, partial.codeword_bits),
            vsm: Vsm::new(partial.vsm_pages, geometry.page_bytes),
            for_room: VecDeque::new(),
            pending: BTreeMap::new(),
            is_on: true,
            looked_at: Time::START,
            on_ns: Span::ZERO,
        })
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

impl<P: Probe> Drive<P> {
    /// How partial refresh is; `None` without it.
    pub fn partial_refresh(&self) -> Option<PartialState> {
        let (partial, links) = (self.partial.as_ref()?, self.core.ftl.links.as_ref()?);
        let on_ns =
            partial.on_ns + if partial.is_on { self.core.now - partial.looked_at } else { Span::ZERO };
        Some(PartialState {
            linked_pages: links.count(),
            linked_pages_max: links.peak(),
            mapping_bytes: (u64::from(self.core.geometry.pages) + links.peak() * LINK_BITS).div_ceil(8),
            vsm_bytes: partial.vsm.peak_bytes.into(),
            on_share: if self.core.now == Time::START {
                1.0
            } else {
                on_ns.ns() as f64 / self.core.now.ns() as f64
            },
        })
    }

    // ------------------------------------------------------------------------------------------------------- the block

    /// Whether a block that is due is refreshed partially: unless it has been already, holds what is no host data, or free
    /// blocks are few. In its plane too: it gives none back, and those of its pages that are written elsewhere take one.
    pub(super) fn is_refreshed_partially(&mut self, block: BlockId, stream: WriteStream) -> bool {
        self.watch_free_blocks();
        let Some(partial) = &self.partial else { return false };
        let is_plain = stream == WriteStream::Gc && !self.core.array.block(block).is_partial;
        let is_on = partial.is_on && !self.is_short(self.core.geometry.plane_of(block));
        self.core.stats.refresh.blocks_while_off += u64::from(is_plain && !is_on);
        is_plain && is_on && self.power.stage == super::Stage::Charged
    }

    /// A block has been opened, closed or erased: there may be enough free ones for partial refresh, or no longer.
    #[inline]
    pub(super) fn watch_free_blocks(&mut self) {
        let Some(partial) = &mut self.partial else { return };
        if partial.is_on {
            partial.on_ns += self.core.now - partial.looked_at;
        }
        partial.looked_at = self.core.now;
        partial.is_on = self.core.ftl.free_share() >= partial.spec.min_free_blocks;
    }

    /// A page of a block that is being refreshed partially has been read at full strength. A page that
    /// cannot be is written elsewhere as a whole. So is each page while the capacitor, which keeps the VSM, is measured or charged.
    pub(super) fn refresh_page_partially(&mut self, plane: PlaneId, read: &Transaction) -> Refreshed {
        let _inside = self.core.inside.enter(Part::PartialRefresh);
        if read.is_uncorrectable()
            || self.core.ftl.links.as_ref().is_none_or(|links| links.is_marked(read.ppn))
        {
            return Refreshed::Not;
        }
        if self.core.read_counts.is_hot(read.ppn) {
            self.core.stats.refresh.hot_pages += 1;
            return Refreshed::Not;
        }
        let Some(partial) = &self.partial else { return Refreshed::Not };
        let max_share = partial.spec.max_share;
        let bytes = self.susceptible_bytes(read.ppn);
        if f64::from(bytes) > max_share * f64::from(self.core.geometry.page_bytes) {
            self.core.stats.refresh.too_susceptible += 1;
            return Refreshed::Not;
        }
        let block = self.core.geometry.block_of(read.ppn);
        let entry = Entry {
            base: read.ppn,
            lpn: read.lpn,
            sequence: self.core.array.stamp(read.ppn).sequence,
            pe_cycles: self.core.array.block(block).pe_cycles,
            offset: 0,
            bytes,
            rber: self.core.rber_of(read.ppn),
        };
        self.enter_vsm(plane, read, entry)
    }

    /// Puts the susceptible data of a page into the VSM, or lets it wait for a line that is being programmed; not if there
    /// will be no room.
    fn enter_vsm(&mut self, plane: PlaneId, read: &Transaction, entry: Entry) -> Refreshed {
        if self.power.stage != super::Stage::Charged {
            return Refreshed::Not;
        }
        let has_room =
            |drive: &Self| drive.partial.as_ref().is_some_and(|partial| partial.vsm.has_room(entry.bytes));
        if !has_room(self) && !self.has_lines_under_way() && !self.program_line() {
            self.core.stats.refresh.without_room += 1;
            return Refreshed::Not;
        }
        let fits = has_room(self);
        let partial = self.partial.as_mut().expect("it is there");
        if !fits {
            partial.for_room.push_back((plane, *read, entry));
            return Refreshed::Later;
        }
        partial.vsm.push(entry);
        partial.pending.entry(self.core.geometry.block_of(read.ppn).0).or_default().pages += 1;
        self.core.ftl.links.as_mut().expect("partial refresh has links").set_out(read.ppn);
        self.core.stats.refresh.partial_pages += 1;
        self.core.stats.refresh.susceptible_bytes += u64::from(entry.bytes);
        if partial.vsm.has_line() {
            self.program_line();
        }
        Refreshed::Now
    }

    /// How many bytes the susceptible bits of a page take.
    fn susceptible_bytes(&mut self, ppn: Ppn) -> u32 {
        let Self { partial, core, .. } = self;
        let Core { array, geometry, reliability, age_clock, now, .. } = core;
        let partial = partial.as_mut().expect("only partial refresh asks");
        let (block, page) = geometry.split(ppn);
        let pe_cycles = array.block(block).pe_cycles;
        let corrected = array.stamp(ppn).corrected;
        let ratio = partial.spec.susceptible_ratio.unwrap_or_else(|| {
            let age_s = if array.keeps_ages() { corrected.age_s(age_clock.at(*now)) } else { 0 };
            reliability.susceptible_ratio(pe_cycles, age_s, geometry.kind(page)).unwrap_or(0.0)
        });
        partial.size.bytes(binomial(&mut partial.draws, geometry.page_bytes * 8, ratio)).max(1)
    }

    /// All pages of a block have been read.
    pub(super) fn end_partial_refresh(&mut self, block: BlockId) {
        let _inside = self.core.inside.enter(Part::PartialRefresh);
        self.core.array.block_mut(block).is_partial = true;
        let partial = self.partial.as_mut().expect("only partial refresh ends so");
        partial.pending.entry(block.0).or_default().is_read = true;
        self.settle_partial_refresh(block);
    }

    /// The block counts as refreshed when all that was taken of it is in flash.
    fn settle_partial_refresh(&mut self, block: BlockId) {
        let partial = self.partial.as_mut().expect("only partial refresh asks");
        if partial.pending.get(&block.0).is_some_and(|pending| pending.is_read && pending.pages == 0) {
            partial.pending.remove(&block.0);
            self.core.levels.set_block(block, 0);
            self.on_block_refreshed(block, self.core.array.block(block).pe_cycles);
            if self.core.array.block(block).programmed > 0 {
                self.refresh_from_now(block);
            }
        }
    }

    // --------------------------------------------------------------------------------------------------------- the VSM

    /// Programs what waits in the VSM, though it does not fill a page: the grace of a block runs out, or the capacitor that
    /// keeps the VSM is going to be drained.
    pub(super) fn empty_vsm(&mut self) {
        let _inside = self.core.inside.enter(Part::PartialRefresh);
        while self.partial.as_ref().is_some_and(|partial| !partial.vsm.waiting().is_empty()) {
            if !self.program_line() {
                return;
            }
        }
    }

    /// Whether data of a block waits in the VSM, or is being programmed.
    pub(super) fn has_data_in_vsm(&self, block: BlockId) -> bool {
        self.partial.as_ref().is_some_and(|partial| partial.pending.contains_key(&block.0))
    }

    pub(super) fn has_lines_under_way(&self) -> bool {
        self.partial.as_ref().is_some_and(|partial| partial.vsm.lines() > 0)
    }

    /// Programs a line, if any plane has room for it; whether one has.
    fn program_line(&mut self) -> bool {
        let Some(partial) = &self.partial else { return false };
        let Some(first) = partial.vsm.waiting().first() else { return false };
        let home = self.core.geometry.plane_of(self.core.geometry.block_of(first.base));
        let has_number = self.core.ftl.links.as_ref().is_some_and(|links| links.has_number());
        let Some(plane) = self.plane_for_line(home).filter(|_| has_number) else { return false };
        let line = self.partial.as_mut().expect("it is there").vsm.take_line();
        self.core.stats.refresh.padding_bytes += u64::from(self.core.geometry.page_bytes)
            - line.iter().map(|entry| u64::from(entry.bytes)).sum::<u64>();
        let links = self.core.ftl.links.as_mut().expect("partial refresh has links");
        let lpn = links.number(line).expect("there is one");
        debug_assert!(self.core.ftl.map.get(lpn).is_none(), "the number of a combination page is in use");
        let stamp = self.core.next_stamp();
        let (to, owner) = (To::Stream(plane, WriteStream::Combination), Owner::CombinationPage);
        let (maps, cause, class) = (Maps::Now, Cause::Refresh, Class::Background);
        let queued = self.core.program(Program { to, lpn, stamp, maps, owner, cause, class });
        self.core.stats.refresh.combination_pages += 1;
        queued.expect("the plane has room");
        true
    }

    /// The plane for a line with data of `home`: on another die if there is one, idle if there is one, with room; of several
    /// the one with the most, or the first plane of each die would take them all.
    fn plane_for_line(&self, home: PlaneId) -> Option<PlaneId> {
        let g = &self.core.geometry;
        let planes = (1..=g.planes).map(|step| PlaneId((home.0 + step) % g.planes));
        planes.filter(|&plane| self.has_combination_room(plane)).min_by_key(|&plane| {
            let die = g.die_of(plane);
            let room = Reverse(self.core.ftl.free_pages(g, plane));
            (plane == home, die == g.die_of(home), self.core.device.load(die), room)
        })
    }

    /// Whether a line may take a page of `plane`: not what a job that moves combination pages still needs.
    fn has_combination_room(&self, plane: PlaneId) -> bool {
        let for_job = self.pages_to_move(plane, WriteStream::Combination);
        let room = self.core.ftl.stream_room(&self.core.geometry, plane, WriteStream::Combination);
        room > for_job && self.core.ftl.has_combination_room(&self.core.geometry, plane)
    }

    /// A line has been programmed: its pages are linked, if they are still there.
    fn on_line_programmed(&mut self, done: &Transaction) {
        let _inside = self.core.inside.enter(Part::PartialRefresh);
        let partial = self.partial.as_mut().expect("only partial refresh programs lines");
        partial.vsm.release_line();
        let links = self.core.ftl.links.as_mut().expect("partial refresh has links");
        let entries = links.entries(done.lpn);
        for (index, entry) in entries.iter().enumerate() {
            let links = self.core.ftl.links.as_mut().expect("it is there");
            if !links.is_on_its_way(entry.base) {
                continue;
            }
            links.give_up(entry.base);
            let block = self.core.geometry.block_of(entry.base);
            if self.core.ftl.map.get(entry.lpn) == Some(entry.base) {
                self.core.link(done.lpn, index);
                self.core.array.block_mut(block).linked += 1;
                self.core.on_corrected(entry.lpn);
            }
            self.on_entry_settled(block);
        }
        self.free_if_dead(done.lpn);
        self.resume_for_room();
    }

    fn on_entry_settled(&mut self, block: BlockId) {
        let partial = self.partial.as_mut().expect("only partial refresh has entries");
        if let Some(pending) = partial.pending.get_mut(&block.0) {
            pending.pages -= 1;
            self.settle_partial_refresh(block);
        }
    }

    /// Gives those that wait the room there is now, in their order.
    fn resume_for_room(&mut self) {
        while let Some(&(plane, read, entry)) =
            self.partial.as_ref().and_then(|partial| partial.for_room.front())
        {
            let partial = self.partial.as_mut().expect("it is there");
            if !partial.vsm.has_room(entry.bytes) && partial.vsm.lines() > 0 {
                return;
            }
            partial.for_room.pop_front();
            if self.core.ftl.map.get(read.lpn) != Some(read.ppn) {
                self.core.wake(Wake::PageDone(plane));
                continue;
            }
            match self.enter_vsm(plane, &read, entry) {
                Refreshed::Now => self.core.wake(Wake::PageDone(plane)),
                Refreshed::Later => {}
                Refreshed::Not => self.move_page(plane, &read),
            }
        }
    }

    fn free_if_dead(&mut self, lpn: Lpn) {
        let links = self.core.ftl.links.as_mut().expect("partial refresh has links");
        if links.live(lpn) == 0 {
            links.free(lpn);
            self.core.ftl.unmap(&self.core.geometry, &mut self.core.array, lpn);
        }
    }

    // ------------------------------------------------------------------------------------------------------- the links

    /// The data of a page is elsewhere, or nowhere: its link ends, and what is on its way of it is forgotten.
    #[inline]
    pub(super) fn unlink_marked(&mut self, ppn: Ppn) {
        if self.core.ftl.links.as_ref().is_some_and(|links| links.is_marked(ppn)) {
            self.unlink(ppn);
        }
    }

    #[cold]
    fn unlink(&mut self, ppn: Ppn) {
        let _inside = self.core.inside.enter(Part::PartialRefresh);
        let block = self.core.geometry.block_of(ppn);
        let links = self.core.ftl.links.as_mut().expect("a marked page has links");
        if links.is_on_its_way(ppn) {
            links.give_up(ppn);
            let partial = self.partial.as_mut().expect("only partial refresh has links");
            partial.vsm.forget(ppn);
            self.on_entry_settled(block);
            return;
        }
        self.core.array.block_mut(block).linked -= 1;
        self.core.known.set(ppn, 0.0);
        if let Some(combination) = links.unlink(ppn) {
            self.free_if_dead(combination);
        }
    }

    /// A page has been programmed; what it replaces still has its link.
    #[inline]
    pub(super) fn on_programmed_with_links(&mut self, done: &Transaction) {
        if self.partial.is_none() {
            return;
        }
        if let Some(old) = done.replaces
            && self.core.array.block(self.core.geometry.block_of(old)).linked > 0
            && self.core.ftl.links.as_ref().is_some_and(|links| links.of(old).is_some())
        {
            let is_copy = matches!(done.cause, Cause::Gc | Cause::Wear | Cause::Refresh);
            self.core.stats.refresh.promoted_pages += u64::from(is_copy);
        }
        if done.owner == Owner::CombinationPage {
            self.on_line_programmed(done);
        }
    }

    /// A block has been erased.
    pub(super) fn on_erased_with_links(&mut self, block: BlockId) {
        let (Some(partial), Some(links)) = (&mut self.partial, &mut self.core.ftl.links) else { return };
        // What was pending of it is void.
        partial.pending.remove(&block.0);
        let first = self.core.geometry.page(block, 0);
        links.erase(first, Ppn(first.0 + self.core.geometry.pages_per_block));
        self.watch_free_blocks();
    }

    /// Blocks have got so many P/E cycles more: what waits of their pages is still of these pages.
    pub(super) fn on_links_worn(&mut self, more: impl Fn(Ppn) -> u32) {
        if let Some(links) = &mut self.core.ftl.links {
            links.on_worn(&more);
        }
        if let Some(partial) = &mut self.partial {
            let for_room = partial.for_room.iter_mut().map(|(.., entry)| entry);
            for entry in partial.vsm.waiting_mut().iter_mut().chain(for_room) {
                entry.pe_cycles += more(entry.base);
            }
        }
    }

    /// Power is gone, and with it the VSM and all that was under way.
    pub(super) fn forget_partial(&mut self) {
        if let Some(partial) = &mut self.partial {
            partial.vsm.clear();
            partial.for_room.clear();
            partial.pending.clear();
        }
    }

    /// Rebuilds the links from the combination pages in flash, the newest first: those whose page is still the one that
    /// they name.
    pub(super) fn restore_links(&mut self) {
        let Some(links) = &mut self.core.ftl.links else { return };
        let map = &self.core.ftl.map;
        let numbers =
            (self.core.geometry.logical_pages..map.len()).map(Lpn).filter(|&lpn| links.is_combination(lpn));
        let mut found: Vec<(Lpn, Ppn)> = numbers.filter_map(|lpn| Some((lpn, map.get(lpn)?))).collect();
        links.restore(found.iter().copied());
        found.sort_by_key(|&(_, ppn)| Reverse(self.core.array.stamp(ppn).sequence));
        for (lpn, _) in found {
            let entries = self.core.ftl.links.as_ref().expect("it is there").entries(lpn);
            for (index, entry) in entries.iter().enumerate() {
                let block = self.core.geometry.block_of(entry.base);
                let links = self.core.ftl.links.as_mut().expect("it is there");
                let is_live = self.core.ftl.map.get(entry.lpn) == Some(entry.base)
                    && self.core.array.stamp(entry.base).sequence == entry.sequence
                    && self.core.array.block(block).pe_cycles == entry.pe_cycles
                    && !links.is_marked(entry.base);
                if is_live {
                    self.core.link(lpn, index);
                    self.core.array.block_mut(block).linked += 1;
                }
            }
            self.free_if_dead(lpn);
        }
        self.age_without_links();
    }

    /// A combination page may have been torn with its wordline: what is not linked any more has been ageing all the time.
    fn age_without_links(&mut self) {
        let Some(links) = self.core.ftl.links.as_ref().filter(|_| self.core.array.keeps_ages()) else {
            return;
        };
        for block in (0..self.core.geometry.blocks)
            .map(BlockId)
            .filter(|&block| self.core.array.block(block).is_partial)
        {
            let mut next = 0;
            while let Some(page) = self.core.ftl.next_valid(&self.core.geometry, block, next) {
                next = page + 1;
                let ppn = self.core.geometry.page(block, page);
                if !links.is_marked(ppn) && !self.core.array.is_lost(ppn) {
                    self.refresh.age_from(block, self.core.array.stamp(ppn).corrected);
                }
            }
        }
    }

    /// Power fails: the lines that are not in flash, those that wait for no more data included.
    pub(super) fn lines_at_power_loss(&mut self) -> Vec<Lpn> {
        let under_way: Vec<Lpn> =
            self.under_way().iter().filter(|t| t.owner == Owner::CombinationPage).map(|t| t.lpn).collect();
        let (Some(partial), Some(links)) = (&mut self.partial, &mut self.core.ftl.links) else {
            return Vec::new();
        };
        while !partial.vsm.waiting().is_empty() && links.has_number() {
            links.number(partial.vsm.take_line());
        }
        let is_in_ram = |lpn: &Lpn| links.live(*lpn) == 0 && !under_way.contains(lpn);
        links.combinations().filter(is_in_ram).collect()
    }

    /// A place for a line of the emergency flush, on a die that is free.
    pub(super) fn place_line_at_power_loss(
        &mut self,
        is_busy: impl Fn(&Self, PlaneId) -> bool,
    ) -> Option<Place> {
        let planes = (0..self.core.geometry.planes).map(PlaneId);
        let plane = planes
            .filter(|&plane| self.core.ftl.has_combination_room(&self.core.geometry, plane))
            .find(|&plane| !is_busy(self, plane))?;
        self.core.allocate(plane, WriteStream::Combination)
    }

    /// With nothing under way: every link is of a page that holds what it names, every combination page has as many links
    /// as it counts, and nothing is on its way but what waits in the VSM.
    ///
    /// # Errors
    /// The first thing that is wrong.
    pub(super) fn audit_links(&self, is_at_rest: bool) -> Result<(), String> {
        let (Some(links), Some(partial)) = (&self.core.ftl.links, &self.partial) else { return Ok(()) };
        let mut linked = vec![0; self.core.geometry.blocks as usize];
        let mut live = BTreeMap::new();
        for base in (0..self.core.geometry.pages).map(Ppn).filter(|&base| links.is_marked(base)) {
            let name = || format!("{}, partially refreshed,", self.core.geometry.show(base));
            let Some((lpn, entry)) = links.of(base) else {
                let waits = partial.vsm.waiting().iter().any(|entry| entry.base == base);
                if is_at_rest && !waits {
                    return Err(format!("{} waits for a line that nobody programs", name()));
                }
                continue;
            };
            let block = self.core.geometry.block_of(base);
            linked[block.index()] += 1;
            *live.entry(lpn).or_insert(0) += 1;
            let state = self.core.array.block(block);
            if entry.base != base || entry.pe_cycles != state.pe_cycles {
                return Err(format!("{} has the link of another page: {entry:?}", name()));
            }
            if entry.sequence != self.core.array.stamp(base).sequence {
                return Err(format!("{} has been written since it was linked: {entry:?}", name()));
            }
            // Until what replaces it is programmed a page that is invalid keeps its link, and its block is held.
            let is_newest = self.core.ftl.map.get(entry.lpn) == Some(base);
            if !is_newest && (is_at_rest || state.holds == 0) {
                return Err(format!("{} is linked and not the data of LPN {}", name(), entry.lpn.0));
            }
            let apn = self
                .core
                .ftl
                .map
                .get(lpn)
                .ok_or_else(|| format!("{} has lost its combination page", name()))?;
            if self.core.array.lpn(apn) != lpn || links.content(apn) != Some(&links.entries(lpn)) {
                return Err(format!(
                    "{} is linked to {}, which holds something else: {:?} instead of {:?}",
                    name(),
                    self.core.geometry.show(apn),
                    links.content(apn),
                    links.entries(lpn)
                ));
            }
        }
        for (block, (state, &count)) in self.core.array.blocks.iter().zip(&linked).enumerate() {
            if u32::from(state.linked) != count {
                return Err(format!("block {block} counts {} linked pages and has {count}", state.linked));
            }
        }
        for lpn in links.combinations() {
            let count = live.get(&lpn).copied().unwrap_or(0);
            if links.live(lpn) != count || is_at_rest && count == 0 {
                return Err(format!(
                    "combination page {} counts {} links and has {count}",
                    lpn.0,
                    links.live(lpn)
                ));
            }
        }
        if is_at_rest && (partial.vsm.lines() > 0 || !partial.for_room.is_empty()) {
            return Err("the VSM waits for a program that nobody does".to_owned());
        }
        Ok(())
    }

    // ----------------------------------------------------------------------------------------------------------- pread

    /// A sub-read has left its die; the other one may have too. Returns the first sub-read's slot if so.
    pub(super) fn join(&mut self, slot: Slot, other: Slot) -> Option<Slot> {
        self.core.pool[slot].has_arrived = true;
        let is_part = self.core.pool[slot].is_part;
        self.core.pool[other].has_arrived.then_some(if is_part { other } else { slot })
    }

    /// Both sub-reads have been decoded together. Whether one of them has to be tried again; else there is only the first.
    pub(super) fn try_again_or_part(&mut self, slot: Slot, partner: Slot) -> bool {
        let last = self.core.ecc.levels();
        let mut again = false;
        for sub in [slot, partner] {
            if self.core.pool[sub].is_uncorrectable() && self.core.pool[sub].level < last {
                self.core.pool[sub].has_arrived = false;
                self.core.try_again(sub);
                again = true;
            }
        }
        if again {
            return true;
        }
        let part = self.core.pool.remove(partner);
        self.core.pool[slot].partner = None;
        if self.core.ecc.has_levels() {
            self.core.let_go(self.core.geometry.block_of(part.ppn));
        }
        if part.is_uncorrectable() {
            // Without its susceptible bits the page is lost.
            let read = &mut self.core.pool[slot];
            (read.level, read.needed) = (last, last + 1);
        }
        false
    }
}
