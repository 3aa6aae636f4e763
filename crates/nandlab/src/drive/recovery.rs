//! Power is back: everything the drive knows it learns from flash.
//!
//! The OOB of every programmed page is read. Of several pages of an LPN the one with the highest sequence number counts;
//! copies carry the number of the host write they hold, so none wins over a newer write. Torn pages hold nothing. Pages of
//! the emergency flush that lack sectors are completed from the page they replace. Blocks whose erase was torn are erased
//! again. Of the blocks partly programmed each stream goes on with one; the others take no more programs. The P/E cycles
//! and read counts of blocks, and the record of deallocations, are the firmware's own and survive.
//!
//! The time this takes: every die senses the pages it holds one after the other, and every channel carries their OOB; the
//! slowest of them counts. Then come torn erases and completed pages, die by die.

use super::{Drive, build};
use crate::base::geometry::{BlockId, Cell, DieId, Lpn, PlaneId, Ppn, Tvpn};
use crate::base::huge::Huge;
use crate::base::units::{Span, transfer_ns};
use crate::core::{Core, ReadLevels, Wake};
use crate::demand_map::Mapping;
use crate::flash::{BlockState, DEAD_LPN, Moment, Stamp};
use crate::ftl::{Ftl, Place, STREAMS, WriteStream};
use crate::host::{Epochs, Merging};
use crate::probe::Probe;
use crate::sched::{Cause, Kind};
use crate::stats::Recovery;
use std::collections::BTreeMap;

/// Bytes of OOB that recovery reads of a page: LPN, sequence number, read count and marks.
const OOB_BYTES: u64 = 16;

/// What the OOBs say.
struct Found {
    /// For each LPN its page + 1; 0: none.
    pages: Huge<u32>,
    /// The newest whole page of an LPN whose newest page is partial.
    whole: BTreeMap<u32, Ppn>,
    /// Pages read on each die.
    scanned: Vec<u64>,
}

impl<P: Probe> Drive<P> {
    /// Power comes back: recovers, and goes on with an empty capacitor that is being charged.
    ///
    /// # Panics
    /// When power is not off.
    pub fn restore_power(&mut self) {
        assert!(std::mem::take(&mut self.power.is_off), "power is on");
        let mut recovery = Recovery::default();
        let torn_erases = std::mem::take(&mut self.power.torn_erases);
        for block in &mut *self.core.array.blocks {
            (block.valid, block.holds, block.linked) = (0, 0, 0);
        }
        let mut busy_ns = vec![Span::ZERO; self.core.geometry.dies as usize];
        for &block in &torn_erases {
            self.erase_in_recovery(block, &mut busy_ns, &mut recovery);
        }
        let mut found = self.read_oobs();
        recovery.scanned_pages = found.scanned.iter().sum();
        let scan_ns = self.scan_ns(&found.scanned);
        let before = self.start_afresh();
        self.take_back_copies(&mut found, &mut busy_ns, &mut recovery);
        let stale = self.rebuild_map(&found, &before, &mut recovery);
        drop(before);
        self.tell_what_is_lost();
        if self.power.capacitor.is_some() {
            self.use_lsb_pages_alone();
        }
        self.merge_partial_pages(&found, &mut busy_ns, &mut recovery);
        for block in (0..self.core.geometry.blocks).map(BlockId) {
            self.core.look_if_dead(block);
        }
        recovery.ns = scan_ns + busy_ns.iter().copied().max().unwrap_or(Span::ZERO);
        self.core.now += recovery.ns;
        self.power.stats.down_ns += recovery.ns;
        if self.power.capacitor.is_some() {
            let recharge_ns = self.spec.capacitor.recharge_ns;
            self.power.begin_recharge(&mut self.core, recharge_ns);
            if let Some(caching) = &mut self.caching {
                caching.cache.set_budget(0);
            }
        } else {
            self.with_power(|power, core, kept| power.restore_budget(core, kept));
        }
        self.core.set_clock(self.core.idle_clock(), self.core.now + self.spec.gc.idle_after_ns);
        self.power.set_clock(&mut self.core);
        self.refreshing.refresh.begin(&mut self.core);
        recovery.stale_translation_pages = stale.len() as u32;
        for page in stale {
            self.write_back(page);
        }
        for plane in (0..self.core.geometry.planes).map(PlaneId) {
            self.core.wake(Wake::Space(plane));
        }
        self.serve();
        let loss = self.power.stats.losses.last_mut().expect("power has failed");
        loss.recovery = Some(recovery);
    }

    /// Of the pages torn with their wordline those are lost that flash has nothing as new for.
    fn tell_what_is_lost(&mut self) {
        let Self { path, core, power, .. } = self;
        let trims = &path.host.trims;
        let Core { ftl, array, probe, .. } = core;
        let loss = power.stats.losses.last_mut().expect("power has failed");
        loss.lost_with_wordline.retain(|&(lpn, sequence)| {
            let is_older = ftl.map.get(lpn).is_none_or(|ppn| array.stamp(ppn).sequence < sequence);
            is_older && !trims.covers(lpn, sequence)
        });
        probe.on_power_loss(&loss.lost, &loss.lost_with_wordline);
    }

    /// Which of two pages of an LPN is newer; of two copies of the same write a whole one, then the one corrected last.
    fn rank(&self, ppn: Ppn) -> (u64, bool, Moment) {
        let Stamp { sequence, corrected } = self.core.array.stamp(ppn);
        (sequence, !self.core.array.is_partial(ppn), corrected)
    }

    fn read_oobs(&self) -> Found {
        let mut found = Found {
            pages: Huge::zeroed(self.core.ftl.map.len() as usize),
            whole: self.core.array.partial().map(|ppn| (self.core.array.lpn(ppn).0, ppn)).collect(),
            scanned: vec![0; self.core.geometry.dies as usize],
        };
        // Until a whole page is found the partial one stands for itself.
        for block in (0..self.core.geometry.blocks).map(BlockId) {
            let programmed = u32::from(self.core.array.block(block).programmed);
            let die = self.core.geometry.die_of(self.core.geometry.plane_of(block));
            found.scanned[die.index()] += u64::from(programmed);
            for ppn in (0..programmed).map(|page| self.core.geometry.page(block, page)) {
                let lpn = self.core.array.lpn(ppn);
                if lpn.0 == DEAD_LPN || self.core.array.is_torn(ppn) {
                    continue;
                }
                let (is_partial, sequence) =
                    (self.core.array.is_partial(ppn), self.core.array.stamp(ppn).sequence);
                if self.path.host.trims.covers(lpn, sequence) {
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

    /// How long reading the OOB of so many pages on each die takes.
    fn scan_ns(&self, scanned: &[u64]) -> Span {
        let timing = self.core.device.timing();
        let oob_ns = transfer_ns(OOB_BYTES, self.spec.timing.channel_ns_per_byte);
        let sense_ns = timing.read(1, false).sense_ns;
        let on_die = scanned.iter().map(|&pages| pages * (timing.command.read_ns + sense_ns + oob_ns)).max();
        let mut on_channel = vec![Span::ZERO; self.core.geometry.channels as usize];
        for (die, &pages) in scanned.iter().enumerate() {
            on_channel[self.core.geometry.channel_of(DieId(die as u32)) as usize] +=
                pages * (timing.command.read_ns + oob_ns);
        }
        on_die.unwrap_or_default().max(on_channel.into_iter().max().unwrap_or_default())
    }

    /// All that was in RAM is gone. Returns the map that was there, from which it can be told what the translation pages
    /// in flash say.
    fn start_afresh(&mut self) -> (Ftl, Option<Mapping>) {
        let Self { core, path, caching, refreshing, spec, .. } = self;
        let fresh = build::ftl(spec, &core.geometry, &core.array);
        let ftl = std::mem::replace(&mut core.ftl, fresh);
        refreshing.forget(core);
        core.pool.clear();
        core.waiters.clear();
        core.wakes.clear();
        core.agenda.clear();
        self.reads.forget();
        core.levels = ReadLevels::new(&core.physics.ecc, &core.geometry, path.map.is_some());
        let mut mapping = Mapping::new(&spec.ftl.map, &core.geometry, P::STAMPED);
        if let (Some(now), Some(before)) = (&mut mapping, &mut path.map) {
            now.stats = std::mem::take(&mut before.stats);
        }
        let before = (ftl, std::mem::replace(&mut path.map, mapping));
        if let Some(caching) = caching {
            caching.forget(&spec.cache, &core.geometry, core.now);
        }
        path.host.flushes = 0;
        path.host.epochs = Epochs::default();
        path.host.merging = Merging::default();
        path.host.trims.forget_pending();
        path.writes.clear();
        self.background.forget(core);
        core.state.is_idle = false;
        self.power.forget_detection(core);
        before
    }

    /// A job that power loss has interrupted may have taken the last free block, and what is torn in that block is missing
    /// for the rest of its victim. So where fewer blocks are free than GC needs, blocks are erased that hold nothing but
    /// copies whose source is still there: the source counts again.
    fn take_back_copies(&mut self, found: &mut Found, busy_ns: &mut [Span], recovery: &mut Recovery) {
        let pages_per_block = self.core.geometry.pages_per_block;
        let kept = self.core.ftl.kept_blocks() as usize;
        for plane in (0..self.core.geometry.planes).map(PlaneId) {
            let blocks = self.core.geometry.block_ids_of(plane);
            let is_retired = |block: BlockId| self.core.array.block(block).state == BlockState::Retired;
            let programmed = |block: BlockId| u32::from(self.core.array.block(block).programmed);
            let mut free =
                blocks.clone().filter(|&block| programmed(block) == 0 && !is_retired(block)).count();
            if free >= kept {
                continue;
            }
            // The last page of the job's block may be torn too: such a block is full.
            let (full, partly): (Vec<BlockId>, Vec<BlockId>) = blocks
                .clone()
                .filter(|&block| programmed(block) > 0)
                .partition(|&block| programmed(block) == pages_per_block);
            for (block, is_full) in partly.iter().map(|&b| (b, false)).chain(full.iter().map(|&b| (b, true)))
            {
                if is_full && free >= kept {
                    break;
                }
                let Some(sources) = self.sources_of(block, blocks.clone(), found) else { continue };
                for (lpn, source) in sources {
                    found.pages[lpn.index()] = source.0 + 1;
                }
                self.erase_in_recovery(block, busy_ns, recovery);
                free += 1;
            }
        }
    }

    /// For each page of a block that counts, the one that it was copied from; `None` if there is one without.
    fn sources_of(
        &self,
        copies: BlockId,
        blocks: impl Iterator<Item = BlockId>,
        found: &Found,
    ) -> Option<Vec<(Lpn, Ppn)>> {
        let Core { array, geometry, .. } = &self.core;
        let pages = |block: BlockId| {
            (0..u32::from(array.block(block).programmed)).map(move |page| geometry.page(block, page))
        };
        let counts =
            |ppn: &Ppn| array.lpn(*ppn).0 != DEAD_LPN && found.pages[array.lpn(*ppn).index()] == ppn.0 + 1;
        let mut sources: BTreeMap<(u32, u64), Option<Ppn>> = pages(copies)
            .filter(counts)
            .map(|ppn| ((array.lpn(ppn).0, array.stamp(ppn).sequence), None))
            .collect();
        // What a page of the flush is completed from must stay.
        let is_needed = found.whole.values().any(|&whole| geometry.block_of(whole) == copies);
        if is_needed || self.core.retires(copies) {
            return None;
        }
        for ppn in blocks.filter(|&block| block != copies).flat_map(pages) {
            let is_whole = !array.is_torn(ppn) && !array.is_partial(ppn);
            if is_whole && let Some(source) = sources.get_mut(&(array.lpn(ppn).0, array.stamp(ppn).sequence))
            {
                *source = Some(ppn);
            }
        }
        sources.into_iter().map(|((lpn, _), source)| Some((Lpn(lpn), source?))).collect()
    }

    /// Erases a block while power comes back.
    fn erase_in_recovery(&mut self, block: BlockId, busy_ns: &mut [Span], recovery: &mut Recovery) {
        self.core.array.erase(&self.core.geometry, block);
        self.refreshing.on_erased(&mut self.core, block);
        let state = self.core.array.block_mut(block);
        let is_worn_out = state.pe_cycles >= self.spec.drive.endurance;
        state.state = if is_worn_out { BlockState::Retired } else { BlockState::Free };
        self.core.operations.on_ended(Kind::Erase, Cause::Gc);
        let die = self.core.geometry.die_of(self.core.geometry.plane_of(block));
        busy_ns[die.index()] += self.core.device.timing().erase_ns;
        recovery.erased_blocks += 1;
    }

    /// Blocks, then the map; returns the translation pages that are out of date.
    fn rebuild_map(
        &mut self,
        found: &Found,
        before: &(Ftl, Option<Mapping>),
        recovery: &mut Recovery,
    ) -> Vec<Tvpn> {
        let pages_per_block = self.core.geometry.pages_per_block;
        let mut full = Vec::new();
        for block in (0..self.core.geometry.blocks).map(BlockId) {
            self.core.array.blank_unprogrammed(&self.core.geometry, block);
            if let Some(partial) = &mut self.refreshing.partial {
                let first = self.core.geometry.page(block, 0).0;
                let programmed = u32::from(self.core.array.block(block).programmed);
                partial.links.erase(Ppn(first + programmed), Ppn(first + pages_per_block));
            }
            let state = self.core.array.block_mut(block);
            state.state = match u32::from(state.programmed) {
                0 if state.state == BlockState::Retired => BlockState::Retired,
                0 => {
                    // It may have been opened for copybacks that never began.
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
            let open = self.resume_streams(plane, &mut full, recovery);
            self.core.ftl.restore_plane(&self.core.geometry, &self.core.array, plane, open);
        }
        full.sort_by_key(|&block| (self.core.array.block(block).closed_at, block.0));
        for block in full {
            let closed_at = self.core.array.block(block).closed_at;
            self.core.ftl.close(&self.core.geometry, &mut self.core.array, block, closed_at);
        }
        if let Some(partial) = &mut self.refreshing.partial {
            partial.restore_links(&mut self.core, &mut self.refreshing.refresh);
        }
        self.find_stale_translation_pages(before)
    }

    /// The pages at which the streams of a plane go on.
    fn resume_streams(
        &mut self,
        plane: PlaneId,
        full: &mut Vec<BlockId>,
        recovery: &mut Recovery,
    ) -> [Option<Ppn>; STREAMS] {
        let pages_per_block = self.core.geometry.pages_per_block;
        let blocks = self.core.geometry.block_ids_of(plane);
        let mut partly: Vec<BlockId> =
            blocks.filter(|&b| self.core.array.block(b).state == BlockState::Open).collect();
        // The emptiest first.
        partly.sort_by_key(|&block| (self.core.array.block(block).programmed, block.0));
        let mut open = [None; STREAMS];
        for block in partly {
            // A wordline that is half used takes no program that could be torn.
            let programmed = u32::from(self.core.array.block(block).programmed);
            let is_amid = self.core.geometry.cell == Cell::Mlc && programmed % 2 == 1;
            let next = programmed + u32::from(is_amid && self.power.capacitor.is_some());
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
                // What no stream goes on with must not stay open: nothing could collect it.
                &[WriteStream::Gc, WriteStream::Host]
            };
            let stream = wanted.iter().find(|&&stream| open[stream.index()].is_none());
            match stream.filter(|_| next < pages_per_block) {
                Some(&stream) => {
                    self.core.array.skip(block, next - programmed);
                    open[stream.index()] = Some(self.core.geometry.page(block, next));
                }
                None => {
                    self.core.array.skip(block, pages_per_block - programmed);
                    let state = self.core.array.block_mut(block);
                    state.state = BlockState::Full;
                    state.closed_at = self.core.now;
                    full.push(block);
                    recovery.closed_blocks += 1;
                }
            }
        }
        open
    }

    /// The first translation or combination page of a block that has any.
    fn first_internal_page(&self, block: BlockId) -> Option<Lpn> {
        let programmed = u32::from(self.core.array.block(block).programmed);
        let mut lpns = (0..programmed).map(|page| self.core.array.lpn(self.core.geometry.page(block, page)));
        lpns.find(|lpn| lpn.0 != DEAD_LPN && lpn.0 >= self.core.geometry.logical_pages)
    }

    /// A translation page in flash is out of date where RAM held changes of it, or where the map is another one now.
    fn find_stale_translation_pages(&mut self, before: &(Ftl, Option<Mapping>)) -> Vec<Tvpn> {
        let (before, old) = before;
        let (Some(mapping), Some(old)) = (&mut self.path.map, old) else { return Vec::new() };
        let (demand, old) = (&mut mapping.demand, &old.demand);
        demand.trust_flash(&self.core.ftl.map);
        for page in demand.numbers() {
            let lpn = demand.lpn_of(page);
            if old.has_changes(page) || self.core.ftl.map.get(lpn) != before.map.get(lpn) {
                demand.pages[page.index()].is_stale = true;
            }
        }
        for lpn in (0..self.core.geometry.logical_pages).map(Lpn) {
            if self.core.ftl.map.get(lpn) != before.map.get(lpn) {
                let page = demand.page_of(lpn);
                demand.pages[page.index()].is_stale = true;
            }
        }
        demand.numbers().filter(|page| demand.pages[page.index()].is_stale).collect()
    }

    /// While the capacitor is empty a program may be torn.
    fn use_lsb_pages_alone(&mut self) {
        for plane in (0..self.core.geometry.planes).map(PlaneId) {
            self.core.ftl.set_lsb_only(&self.core.geometry, plane, WriteStream::Host, true);
        }
    }

    /// Completes the pages of the emergency flush that lack sectors.
    fn merge_partial_pages(&mut self, found: &Found, busy_ns: &mut [Span], recovery: &mut Recovery) {
        // All of them are read before any is written: making room may erase what they are completed from.
        let mut whole = Vec::new();
        for ppn in self.core.array.partial() {
            let lpn = self.core.array.lpn(ppn);
            let old = found.whole.get(&lpn.0).copied().filter(|&old| !self.core.array.is_partial(old));
            let (true, Some(old)) = (self.core.ftl.map.get(lpn) == Some(ppn), old) else { continue };
            busy_ns[self.die_of_page(ppn).index()] += self.read_ns();
            busy_ns[self.die_of_page(old).index()] += self.read_ns();
            let is_lost = self.core.array.is_lost(ppn) || self.core.array.is_lost(old);
            whole.push((lpn, ppn, self.stamp_in_recovery(ppn, is_lost)));
        }
        for (lpn, ppn, stamp) in whole {
            match self.place_for_merge(ppn, busy_ns) {
                Some(place) => {
                    self.program_in_recovery(place, lpn, stamp, busy_ns);
                    recovery.merged_pages += 1;
                }
                // Worn out: nothing may take what is there for the whole page.
                None => {
                    if let Some(caching) = &mut self.caching {
                        caching.lost.insert(lpn.0, stamp.sequence);
                    }
                }
            }
        }
    }

    fn die_of_page(&self, ppn: Ppn) -> DieId {
        self.core.geometry.die_of(self.core.geometry.plane_of(self.core.geometry.block_of(ppn)))
    }

    fn read_ns(&self) -> Span {
        let timing = self.core.device.timing();
        let read = timing.read(1, false);
        timing.command.read_ns + read.sense_ns + read.transfer_ns + read.decode_ns
    }

    /// The stamp of what is written anew of the page at `ppn`.
    fn stamp_in_recovery(&self, ppn: Ppn, is_lost: bool) -> Stamp {
        let corrected = if is_lost { Moment::LOST } else { self.core.moment() };
        Stamp { corrected, ..self.core.array.stamp(ppn) }
    }

    fn program_in_recovery(&mut self, place: Place, lpn: Lpn, stamp: Stamp, busy_ns: &mut [Span]) {
        let (block, page) = self.core.geometry.split(place.ppn);
        self.core.stage(place.ppn, lpn, stamp);
        if self.core.ftl.is_combination(lpn)
            && let Some(partial) = &mut self.refreshing.partial
        {
            partial.stage(lpn, place.ppn);
        }
        if page == 0 {
            self.refreshing.refresh.age_from_power_loss(&mut self.core, block);
        }
        self.core.array.program(block, page);
        let programmed = self.core.array.skip(block, u32::from(place.skips));
        if let Some(old) = self.core.ftl.remap(&self.core.geometry, &mut self.core.array, lpn, place.ppn) {
            self.refreshing.on_page_gone(&mut self.core, old);
        }
        if programmed == self.core.geometry.pages_per_block {
            self.core.ftl.close(&self.core.geometry, &mut self.core.array, block, self.core.now);
        }
        self.core.operations.on_ended(Kind::Program, Cause::Flush);
        let timing = self.core.device.timing();
        busy_ns[self.die_of_page(place.ppn).index()] +=
            timing.command.program_ns + timing.transfer_ns + timing.program_ns(page);
    }

    /// A place for a page, in the die of `ppn` or any other; what the flush has used up is collected for it if need be.
    fn place_for_merge(&mut self, ppn: Ppn, busy_ns: &mut [Span]) -> Option<Place> {
        let home = self.die_of_page(ppn).0;
        loop {
            let Core { ftl, geometry, array, .. } = &mut self.core;
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
            self.collect_in_recovery(plane, busy_ns)?;
        }
    }

    /// Empties and erases a block of `plane`; `None` when nothing comes of it.
    fn collect_in_recovery(&mut self, plane: PlaneId, busy_ns: &mut [Span]) -> Option<()> {
        let victim =
            self.core.ftl.pick_victim(&self.core.geometry, &self.core.array, plane, self.core.now)?;
        let stream = self.core.emptying_stream(victim, false);
        let valid = self.core.valid_pages(victim);
        if valid == self.core.geometry.pages_per_block || valid > self.core.stream_room(plane, stream) {
            return None;
        }
        self.core.ftl.begin_emptying(&self.core.geometry, &mut self.core.array, victim);
        let mut next = 0;
        while let Some(page) = self.core.ftl.next_valid(&self.core.geometry, victim, next) {
            next = page + 1;
            let ppn = self.core.geometry.page(victim, page);
            let stamp = self.stamp_in_recovery(ppn, self.core.array.is_lost(ppn));
            let (lpn, is_partial) = (self.core.array.lpn(ppn), self.core.array.is_partial(ppn));
            let place = self.core.ftl.allocate(&self.core.geometry, &mut self.core.array, plane, stream)?;
            busy_ns[self.die_of_page(ppn).index()] += self.read_ns();
            if is_partial {
                self.core.array.mark_partial(place.ppn);
            }
            self.program_in_recovery(place, lpn, stamp, busy_ns);
        }
        self.core.array.erase(&self.core.geometry, victim);
        self.core.ftl.release(&self.core.geometry, &mut self.core.array, victim, self.spec.drive.endurance);
        self.refreshing.on_erased(&mut self.core, victim);
        self.core.operations.on_ended(Kind::Erase, Cause::Gc);
        busy_ns[self.core.geometry.die_of(plane).index()] += self.core.device.timing().erase_ns;
        Some(())
    }
}
