//! Power is back: the state of the drive is rebuilt from flash.
//!
//! The OOB of every programmed page is read. If an LPN has several pages, the page with the highest sequence number
//! counts; a copy has the sequence number of its host write, so a copy never counts instead of a newer write. Torn
//! pages are ignored. Partial pages of the emergency flush are completed from the pages that they replace. Blocks whose
//! erase was torn are erased again. Each stream continues in at most one partly programmed block; all other partly
//! programmed blocks are closed. In a block on several dies, pages that are still erased before a programmed page of another
//! die remain erased. The firmware keeps a record of the P/E cycles, read counts and ages of blocks and of
//! the durable deallocations; this record survives power loss.
//!
//! Recovery takes the time of the slowest die or channel: every die senses its programmed pages one after the other,
//! and every channel transfers the OOB of these pages. The longest time that any die takes for erases and completed
//! pages is added.

use super::Recovery;
use super::Schemes;
use crate::base::geometry::{BlockId, DieId, Geometry, Lpn, PlaneId, Ppn};
use crate::base::huge::Huge;
use crate::base::units::{Span, transfer_ns};
use crate::core::Core;
use crate::flash::{AgeStamp, Array, BlockState, DEAD_LPN, Stamp};
use crate::ftl::{AllocatedPage, STREAMS, WriteStream};
use crate::host::Trims;
use crate::probe::Probe;
use crate::sched::{Cause, FlashOp};
use std::collections::{BTreeMap, BTreeSet};

/// Bytes of OOB that recovery reads per page: LPN, sequence number, read count and marks.
const OOB_BYTES: u64 = 16;

/// The result of reading the OOB of all pages.
pub(crate) struct Found {
    /// For each LPN the PPN of its newest page + 1; 0: none.
    pub(crate) pages: Huge<u32>,
    /// For each LPN with a partial page: its newest whole page, or the partial page if there is no whole page.
    whole: BTreeMap<u32, Ppn>,
    /// By die: number of flash pages whose OOB was read.
    pub(crate) scanned: Vec<u64>,
    /// By die: time of sensing these pages.
    sensed_ns: Vec<Span>,
}

/// By LPN: pages with the same data.
type Copies = BTreeMap<u32, Vec<Ppn>>;

/// The programmed pages of a block.
fn programmed_pages(geometry: &Geometry, array: &Array, block: BlockId) -> impl Iterator<Item = Ppn> {
    array.programmed(geometry, block).map(move |page| geometry.page(block, page))
}

/// The drive while it is rebuilt from flash.
pub(crate) struct Return<'a, P: Probe, S> {
    pub(crate) core: &'a mut Core<P>,
    pub(crate) schemes: &'a mut S,
    /// Whether the drive has a capacitor. The capacitor is empty now, so the next power loss could tear programs.
    pub(crate) is_guarded: bool,
    /// By die: duration of the erases, reads and programs of the recovery.
    pub(crate) busy_ns: &'a mut [Span],
    pub(crate) recovery: &'a mut Recovery,
}

impl<P: Probe, S: Schemes<P>> Return<'_, P, S> {
    /// The rank by which the newest page of an LPN is chosen. The page with the highest sequence number counts. Of
    /// several copies of the same write a whole page ranks above a partial page, then a page corrected later above a
    /// page corrected earlier.
    fn rank(&self, ppn: Ppn) -> (u64, bool, AgeStamp) {
        let Stamp { sequence, corrected } = self.core.array.stamp(ppn);
        (sequence, !self.core.array.is_partial(ppn), corrected)
    }

    /// Reads the OOB of all programmed pages. Pages whose data has been deallocated (`trims`) are ignored.
    pub(crate) fn read_oobs(&self, trims: &Trims) -> Found {
        let mut found = Found {
            pages: Huge::zeroed(self.core.ftl.map.len() as usize),
            whole: self.core.array.partial_pages().map(|ppn| (self.core.array.lpn(ppn).0, ppn)).collect(),
            scanned: vec![0; self.core.geometry.dies as usize],
            sensed_ns: vec![Span::ZERO; self.core.geometry.dies as usize],
        };
        for block in (0..self.core.geometry.blocks).map(BlockId) {
            for ppn in programmed_pages(&self.core.geometry, &self.core.array, block) {
                if self.core.geometry.first_unit(ppn) == ppn {
                    let die = self.die_of_page(ppn).index();
                    found.scanned[die] += 1;
                    let (_, page) = self.core.geometry.split(ppn);
                    found.sensed_ns[die] += self.core.device.timing().read_ns(page);
                }
                let lpn = self.core.array.lpn(ppn);
                if lpn.0 == DEAD_LPN || self.core.array.is_torn(ppn) {
                    continue;
                }
                let (is_partial, sequence) =
                    (self.core.array.is_partial(ppn), self.core.array.stamp(ppn).sequence);
                if trims.covers(lpn, sequence) {
                    continue;
                }
                let newest = &mut found.pages[lpn.index()];
                if newest.checked_sub(1).is_none_or(|page| self.rank(ppn) > self.rank(Ppn(page))) {
                    *newest = ppn.0 + 1;
                }
                if !is_partial
                    && let Some(whole) = found.whole.get_mut(&lpn.0)
                    && (self.core.array.is_partial(*whole) || self.rank(ppn) > self.rank(*whole))
                {
                    *whole = ppn;
                }
            }
        }
        found
    }

    /// Time to read all OOBs, flash page by flash page.
    pub(crate) fn scan_ns(&self, found: &Found, channel_ns_per_byte: f64) -> Span {
        let timing = self.core.device.timing();
        let oob_bytes = OOB_BYTES * u64::from(self.core.geometry.units_per_page);
        let oob_ns = transfer_ns(oob_bytes, channel_ns_per_byte);
        let of_die = found.scanned.iter().zip(&found.sensed_ns);
        let on_die = of_die.map(|(&pages, &ns)| pages * (timing.command.read_ns + oob_ns) + ns).max();
        let mut on_channel = vec![Span::ZERO; self.core.geometry.channels as usize];
        for (die, &pages) in found.scanned.iter().enumerate() {
            on_channel[self.core.geometry.channel_of(DieId(die as u32)) as usize] +=
                pages * (timing.command.read_ns + oob_ns);
        }
        on_die.unwrap_or_default().max(on_channel.into_iter().max().unwrap_or_default())
    }

    /// In each plane with fewer free blocks than it must keep, erases blocks whose newest pages are all copies with an
    /// intact source; the sources become the newest pages again. The reason: a job interrupted by power loss may have
    /// taken the last free block, and torn pages in that block leave too little room for the remaining pages of the
    /// victim.
    pub(crate) fn take_back_copies(&mut self, found: &mut Found) {
        let pages_per_block = self.core.geometry.pages_per_block;
        let kept = self.core.ftl.kept_blocks() as usize;
        let geometry = &self.core.geometry;
        let needed: BTreeSet<BlockId> = found.whole.values().map(|&whole| geometry.block_of(whole)).collect();
        for plane in (0..self.core.geometry.planes).map(PlaneId) {
            let blocks = self.core.geometry.block_ids_of(plane);
            let is_usable = |block: BlockId| self.core.array.block(block).state.is_usable();
            let programmed = |block: BlockId| self.core.array.block(block).programmed;
            let mut free = blocks.clone().filter(|&block| programmed(block) == 0 && is_usable(block)).count();
            if free >= kept {
                continue;
            }
            // The torn page may be the last page of the block that the job was filling. So full blocks are checked too,
            // after the partly programmed blocks.
            let (full, partly): (Vec<BlockId>, Vec<BlockId>) = blocks
                .clone()
                .filter(|&block| programmed(block) > 0)
                .partition(|&block| programmed(block) == pages_per_block);
            let copies = self.copies_in(plane, found);
            for (block, is_full) in partly.iter().map(|&b| (b, false)).chain(full.iter().map(|&b| (b, true)))
            {
                if is_full && free >= kept {
                    break;
                }
                // A page from which a partial page is completed must stay.
                if needed.contains(&block) || self.core.retires(block) {
                    continue;
                }
                let Some(sources) = self.sources_of(block, &copies, found) else { continue };
                for (lpn, source) in sources {
                    found.pages[lpn.index()] = source.0 + 1;
                }
                self.erase(block);
                free += 1;
            }
        }
    }

    /// The intact pages of a plane that have the same data as the newest page of their LPN, if that is another page of
    /// the plane; by LPN, in the order of the blocks.
    fn copies_in(&self, plane: PlaneId, found: &Found) -> Copies {
        let Core { array, geometry, .. } = &*self.core;
        let mut copies = Copies::new();
        let blocks = geometry.block_ids_of(plane);
        for ppn in blocks.flat_map(|block| programmed_pages(geometry, array, block)) {
            let lpn = array.lpn(ppn).0;
            if lpn == DEAD_LPN || found.pages[lpn as usize] == 0 {
                continue;
            }
            let newest = Ppn(found.pages[lpn as usize] - 1);
            let is_copy = newest != ppn
                && geometry.plane_of(geometry.block_of(newest)) == plane
                && array.stamp(newest).sequence == array.stamp(ppn).sequence;
            if is_copy && !array.is_torn(ppn) && !array.is_partial(ppn) {
                copies.entry(lpn).or_default().push(ppn);
            }
        }
        copies
    }

    /// Returns, for each newest page in `block`, its LPN and its source: another of its copies. `None`: a page has no
    /// source.
    fn sources_of(&self, block: BlockId, copies: &Copies, found: &Found) -> Option<Vec<(Lpn, Ppn)>> {
        let Core { array, geometry, .. } = &*self.core;
        let is_newest =
            |ppn: &Ppn| array.lpn(*ppn).0 != DEAD_LPN && found.pages[array.lpn(*ppn).index()] == ppn.0 + 1;
        // Blocks that have been erased meanwhile have no pages.
        let is_source = |ppn: &Ppn| {
            let (at, page) = geometry.split(*ppn);
            at != block && array.is_programmed(at, page)
        };
        let source = |ppn: Ppn| {
            let lpn = array.lpn(ppn);
            let source = copies.get(&lpn.0)?.iter().rev().copied().find(is_source)?;
            Some((lpn, source))
        };
        programmed_pages(geometry, array, block).filter(is_newest).map(source).collect()
    }

    /// Erases the blocks whose erase has ended on some of their dies only.
    pub(crate) fn end_erases(&mut self) {
        for block in (0..self.core.geometry.blocks).map(BlockId) {
            if self.core.array.is_partly_erased(block) {
                self.erase(block);
            }
        }
    }

    /// Erases a block during recovery, on the dies where it is not erased.
    pub(crate) fn erase(&mut self, block: BlockId) {
        self.erase_dies(block);
        self.core.array.erase(&self.core.geometry, block);
        self.schemes.on_erased(self.core, block);
        let state = self.core.array.block_mut(block);
        let is_worn_out = state.pe_cycles >= self.core.room.endurance;
        state.state = if is_worn_out { BlockState::Retired } else { BlockState::Free };
        self.recovery.erased_blocks += 1;
    }

    /// Counts the erases of a block on the dies where it has programmed pages.
    fn erase_dies(&mut self, block: BlockId) {
        for page in self.core.geometry.stripes.firsts() {
            if self.core.array.is_programmed(block, page) {
                self.core.count_ended(FlashOp::Erase, Cause::Gc);
                let die = self.core.geometry.die_of_page(block, page);
                self.busy_ns[die.index()] += self.core.device.timing().erase_ns;
            }
        }
    }

    /// Rebuilds the states of the blocks, the map, and the open blocks of the streams.
    pub(crate) fn rebuild_map(&mut self, found: &Found) {
        let pages_per_block = self.core.geometry.pages_per_block;
        let mut full = Vec::new();
        for block in (0..self.core.geometry.blocks).map(BlockId) {
            self.core.array.blank_unprogrammed(&self.core.geometry, block);
            debug_assert!(
                self.core.array.end(block).is_multiple_of(self.core.geometry.pages_per_program),
                "a programming unit is programmed as a whole"
            );
            let first = self.core.geometry.page(block, 0).0;
            for pages in self.core.array.unprogrammed(&self.core.geometry, block) {
                self.schemes.on_blank(Ppn(first + pages.start), Ppn(first + pages.end));
            }
            let state = self.core.array.block_mut(block);
            state.state = match state.programmed {
                0 if !state.state.is_usable() => state.state,
                0 => {
                    // The block may have been opened for copybacks that had not begun when power failed.
                    state.copybacks = 0;
                    BlockState::Free
                }
                programmed if programmed == pages_per_block => {
                    full.push(block);
                    BlockState::Full
                }
                _ => BlockState::Open,
            };
        }
        for (lpn, page) in (0..).map(Lpn).zip(found.pages.iter()) {
            if let Some(page) = page.checked_sub(1) {
                self.core.ftl.remap(&self.core.geometry, &mut self.core.array, lpn, Ppn(page));
            }
        }
        for plane in (0..self.core.geometry.planes).map(PlaneId) {
            let open = self.resume_streams(plane, &mut full);
            self.core.ftl.restore_plane(&self.core.geometry, &self.core.array, plane, open);
        }
        full.sort_by_key(|&block| (self.core.array.block(block).closed_at, block.0));
        for block in full {
            let closed_at = self.core.array.block(block).closed_at;
            self.core.ftl.close(&self.core.geometry, &mut self.core.array, block, closed_at);
        }
    }

    /// Returns the page at which each stream of a plane continues; closes all other partly programmed blocks.
    fn resume_streams(&mut self, plane: PlaneId, full: &mut Vec<BlockId>) -> [Option<Ppn>; STREAMS] {
        let pages_per_block = self.core.geometry.pages_per_block;
        let blocks = self.core.geometry.block_ids_of(plane);
        let mut partly: Vec<BlockId> =
            blocks.filter(|&b| self.core.array.block(b).state == BlockState::Open).collect();
        // The blocks with the most free pages first.
        partly.sort_by_key(|&block| (self.core.array.block(block).programmed, block.0));
        let mut open = [None; STREAMS];
        for block in partly {
            // While programs may be torn, the rest of a partly programmed wordline is skipped.
            let end = self.core.array.end(block);
            let left = if self.is_guarded { self.core.geometry.left_in_wordlines(end) } else { 0 };
            let next = end + left;
            let copybacks = self.core.array.block(block).copybacks;
            let wanted: &[WriteStream] = if let Some(lpn) = self.first_internal_page(block) {
                if self.core.ftl.is_combination(lpn) {
                    &[WriteStream::Combination]
                } else {
                    &[WriteStream::Mapping]
                }
            } else if copybacks > 0 {
                &[WriteStream::Copyback(copybacks)]
            } else if self.core.ftl.needs.wear.open > 0 {
                &[WriteStream::Gc, WriteStream::Host, WriteStream::Wear]
            } else {
                // Without static wear levelling the wear stream is not used. A block assigned to the wear stream would
                // never be filled, and GC cannot collect an open block.
                &[WriteStream::Gc, WriteStream::Host]
            };
            // GC without an open block of its own continues in the host's.
            let is_used =
                |stream: WriteStream| stream != WriteStream::Gc || !self.core.ftl.shares_first_block;
            let is_free = |&&stream: &&WriteStream| is_used(stream) && open[stream.index()].is_none();
            let stream = wanted.iter().find(is_free);
            match stream.filter(|_| next < pages_per_block) {
                Some(&stream) => {
                    self.core.array.skip_to(block, next);
                    open[stream.index()] = Some(self.core.geometry.page(block, next));
                }
                None => {
                    self.core.array.skip_to(block, pages_per_block);
                    let state = self.core.array.block_mut(block);
                    state.state = BlockState::Full;
                    state.closed_at = self.core.now;
                    full.push(block);
                    self.recovery.closed_blocks += 1;
                }
            }
        }
        open
    }

    /// The LPN of the first translation or combination page in a block, if it has one.
    fn first_internal_page(&self, block: BlockId) -> Option<Lpn> {
        let Core { array, geometry, .. } = &*self.core;
        let mut lpns = programmed_pages(geometry, array, block).map(|ppn| array.lpn(ppn));
        lpns.find(|lpn| lpn.0 != DEAD_LPN && lpn.0 >= self.core.geometry.logical_pages)
    }

    /// Completes the partial pages of the emergency flush. Returns the LPN and the sequence number of each partial page
    /// that cannot be completed because no page is free and no block can be emptied with a gain.
    pub(crate) fn merge_partial_pages(&mut self, found: &Found) -> Vec<(Lpn, u64)> {
        // All pages are read before the first page is written, because making room may erase the older pages from which
        // the partial pages are completed.
        let mut whole = Vec::new();
        for ppn in self.core.array.partial_pages() {
            let lpn = self.core.array.lpn(ppn);
            let old = found.whole.get(&lpn.0).copied().filter(|&old| !self.core.array.is_partial(old));
            let (true, Some(old)) = (self.core.ftl.map.get(lpn) == Some(ppn), old) else { continue };
            self.busy_ns[self.die_of_page(ppn).index()] += self.read_ns(ppn);
            self.busy_ns[self.die_of_page(old).index()] += self.read_ns(old);
            let is_lost = self.core.array.is_lost(ppn) || self.core.array.is_lost(old);
            whole.push((lpn, ppn, self.stamp_in_recovery(ppn, is_lost)));
        }
        let mut lost = Vec::new();
        let mut next = None;
        for (lpn, ppn, stamp) in whole {
            match next.take().or_else(|| self.place_for_merge(ppn)) {
                Some(place) => {
                    next = self.program_in_recovery(place, lpn, stamp);
                    self.recovery.merged_pages += 1;
                }
                // The partial page must not be taken for a whole page, so its data is lost.
                None => lost.push((lpn, stamp.sequence)),
            }
        }
        self.pad_in_recovery(next);
        lost
    }

    fn die_of_page(&self, ppn: Ppn) -> DieId {
        let (block, page) = self.core.geometry.split(ppn);
        self.core.geometry.die_of_page(block, page)
    }

    fn read_ns(&self, ppn: Ppn) -> Span {
        let timing = self.core.device.timing();
        let read = timing.read(self.core.geometry.split(ppn).1, 1, false);
        timing.command.read_ns + read.sense_ns + read.transfer_ns + read.decode_ns
    }

    /// The stamp of a new copy of the page at `ppn`, corrected now.
    fn stamp_in_recovery(&self, ppn: Ppn, is_lost: bool) -> Stamp {
        let corrected = if is_lost { AgeStamp::LOST } else { self.core.age_stamp_now() };
        Stamp { corrected, ..self.core.array.stamp(ppn) }
    }

    /// Programs a page and maps `lpn` to the page, without simulating queues. `place` is a page of a programming
    /// unit that is allocated as a whole. Returns the next page of this unit; `None` after its last page.
    fn program_in_recovery(&mut self, place: AllocatedPage, lpn: Lpn, stamp: Stamp) -> Option<AllocatedPage> {
        let (block, page) = self.core.geometry.split(place.ppn);
        let number = self.core.geometry.place_in_program(place.ppn);
        self.core.array.stage(place.ppn, lpn, stamp);
        if self.core.ftl.is_combination(lpn) {
            self.schemes.stage(lpn, place.ppn);
        }
        if self.core.array.block(block).programmed == 0 {
            self.schemes.on_first_program(self.core, block);
        }
        self.core.array.program(block, page);
        if let Some(old) = self.core.ftl.remap(&self.core.geometry, &mut self.core.array, lpn, place.ppn) {
            self.schemes.on_page_obsolete(self.core, old);
        }
        if number == 0 {
            self.core.count_ended(FlashOp::Program, Cause::Flush);
            let timing = self.core.device.timing();
            self.busy_ns[self.die_of_page(place.ppn).index()] +=
                timing.program_transfer_ns() + timing.program_ns(page);
        }
        if number + 1 == self.core.geometry.pages_per_program {
            self.skip_in_recovery(block, page, u32::from(place.skips));
            return None;
        }
        Some(AllocatedPage { ppn: Ppn(place.ppn.0 + 1), ..place })
    }

    /// Fills the rest of a programming unit, from the page `next` on, with padding.
    fn pad_in_recovery(&mut self, next: Option<AllocatedPage>) {
        let Some(next) = next else { return };
        let left = self.core.geometry.pages_per_program - self.core.geometry.place_in_program(next.ppn);
        self.core.units.stats.padding += u64::from(left);
        let (block, page) = self.core.geometry.split(next.ppn);
        self.skip_in_recovery(block, page - 1, left + u32::from(next.skips));
    }

    /// Skips the `pages` pages after page `page` on its die, and closes the block if no page is left.
    fn skip_in_recovery(&mut self, block: BlockId, page: u32, pages: u32) {
        if self.core.array.skip_after(block, page, pages) == self.core.geometry.pages_per_block {
            self.core.ftl.close(&self.core.geometry, &mut self.core.array, block, self.core.now);
        }
    }

    /// Allocates a programming unit, preferably on the die of `ppn`. If no die has a free page, first collects blocks. Returns
    /// `None` if no page can be freed.
    fn place_for_merge(&mut self, ppn: Ppn) -> Option<AllocatedPage> {
        let home = self.die_of_page(ppn).0;
        loop {
            let Core { ftl, geometry, array, .. } = &mut *self.core;
            let mut dies = (0..geometry.dies).map(|step| DieId((home + step) % geometry.dies));
            if let Some(place) = dies.find_map(|die| ftl.allocate_for_flush(geometry, array, die)) {
                return Some(place);
            }
            let plane = (0..self.core.geometry.planes)
                .map(PlaneId)
                .filter(|&plane| self.core.ftl.has_garbage(&self.core.geometry, plane))
                .max_by_key(|&plane| {
                    (self.core.ftl.spare_pages(&self.core.geometry, plane), std::cmp::Reverse(plane.0))
                })?;
            self.collect_in_recovery(plane)?;
        }
    }

    /// Empties and erases a block of `plane`. Returns `None` if no block can be emptied with a gain.
    fn collect_in_recovery(&mut self, plane: PlaneId) -> Option<()> {
        let victim =
            self.core.ftl.pick_victim(&self.core.geometry, &self.core.array, plane, self.core.now)?;
        let stream = self.core.emptying_stream(victim, false);
        let unit = self.core.geometry.pages_per_program;
        let valid = self.core.valid_pages(victim);
        let programs = valid.next_multiple_of(unit);
        if programs == self.core.geometry.pages_per_block || valid > self.core.stream_room(plane, stream) {
            return None;
        }
        self.core.ftl.begin_emptying(&self.core.geometry, &mut self.core.array, victim);
        let (mut next, mut sensed, mut to) = (0, None, None);
        while let Some(page) = self.core.ftl.next_valid(&self.core.geometry, victim, next) {
            next = page + 1;
            let ppn = self.core.geometry.page(victim, page);
            let stamp = self.stamp_in_recovery(ppn, self.core.array.is_lost(ppn));
            let (lpn, is_partial) = (self.core.array.lpn(ppn), self.core.array.is_partial(ppn));
            let place = self.core.allocate(plane, stream)?;
            let first = self.core.geometry.first_unit(ppn);
            if sensed.replace(first) != Some(first) {
                self.busy_ns[self.die_of_page(ppn).index()] += self.read_ns(ppn);
            }
            if is_partial {
                self.core.array.mark_partial(place.ppn);
            }
            to = self.program_in_recovery(place, lpn, stamp);
        }
        if let Some(next) = to {
            for _ in self.core.geometry.place_in_program(next.ppn)..unit {
                self.core.allocate(plane, stream)?;
            }
            self.pad_in_recovery(to);
        }
        self.erase_dies(victim);
        self.core.array.erase(&self.core.geometry, victim);
        self.core.ftl.release(&self.core.geometry, &mut self.core.array, victim, self.core.room.endurance);
        self.schemes.on_erased(self.core, victim);
        Some(())
    }
}
