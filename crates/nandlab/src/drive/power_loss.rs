//! Power fails: what is under way ends or is torn, what is queued is gone, and the capacitor saves what it can of the
//! write cache (aging-capacitor paper, Section IV-C).
//!
//! Operations under way end on energy kept for them; without a capacitor, or with an empty one, they tear. The flush
//! begins at once on the dies that are free. A page is written only if the energy left covers it to its end, so the flush
//! itself tears nothing. Of a page that is not wholly in the cache only the sectors that are there are written, with a
//! mark in the OOB; recovery completes it.

use super::Drive;
use crate::base::geometry::{CacheSlot, Cell, DieId, Lpn, Ppn};
use crate::base::units::Time;
use crate::capacitor::FlushPages;
use crate::core::{Core, Maps, Program, To};
use crate::flash::{DEAD_LPN, Moment, Stamp};
use crate::ftl::Place;
use crate::host::FailReason;
use crate::probe::Probe;
use crate::refresh::Partial;
use crate::sched::{Cause, Class, Ended, Kind, NEVER, Owner, Phase, Transaction};
use crate::spec::{FlushMethod, FlushOrder};
use crate::stats::PowerLoss;

/// A dirty page at the moment of power loss.
#[derive(Debug)]
struct Dirty {
    lpn: Lpn,
    sequence: u64,
    /// The newest acknowledged write that flash lacks; 0: none.
    owed: u64,
    /// The write cache holds only some of its sectors, and flash has others.
    is_partial: bool,
    is_lost: bool,
    is_saved: bool,
}

/// An emergency flush under way.
struct Flush {
    pages: FlushPages,
    next: usize,
    /// Lines of the VSM, after the dirty pages, and how many of them have begun.
    lines: Vec<Lpn>,
    lines_begun: usize,
    /// Its programs under way, and when the last of those begun may end.
    under_way: u32,
    may_end: Time,
    is_over: bool,
}

impl<P: Probe> Drive<P> {
    /// Power fails at the next event.
    #[cold]
    pub(super) fn cut_power_soon(&mut self) {
        self.power.cut_at = self.core.now;
        self.power.set_clock(&mut self.core);
    }

    /// Power fails now and is back as soon as the drive has stopped; returns what happened.
    ///
    /// # Panics
    /// On a drive whose spec models no power loss and that no oracle watches: it has no sequence numbers to recover from.
    pub fn cut_power(&mut self) -> &PowerLoss {
        self.lose_power();
        self.restore_power();
        self.power.stats.losses.last().expect("power has just failed")
    }

    /// Power fails now. All that is left of the drive is in flash; see [`Drive::restore_power`].
    ///
    /// # Panics
    /// As [`Drive::cut_power`], and when power is off already.
    pub fn lose_power(&mut self) {
        assert!(
            self.core.array.is_stamped(),
            "the drive keeps no sequence numbers: its spec models no power loss"
        );
        assert!(!self.power.is_off, "power is off already");
        self.power.is_off = true;
        self.power.cut_at = NEVER;
        let mut loss = PowerLoss {
            at: self.core.now,
            energy_j: self.power.energy_j(self.core.now),
            aborted_requests: self.path.host.requests.live(),
            ..PowerLoss::default()
        };
        loss.capacitor_loss = self
            .power
            .capacitor
            .as_ref()
            .map_or(0.0, |capacitor| capacitor.loss(self.power.age_s(self.core.now)));
        let finishes = self.power.finishes();
        let mut dirty = self.dirty_at_power_loss(finishes, &mut loss);
        self.tell_what_was_lost_before(&mut loss);
        self.abort_requests();
        self.core.device.drop_queues(&self.core.pool);
        for clock in self.core.geometry.dies..=self.core.refresh_clock() {
            self.core.agenda.set(clock, NEVER);
        }
        if finishes {
            self.take_back_queued();
            self.flush_on_capacitor(&mut dirty, &mut loss);
        } else {
            self.tear(&mut loss);
        }
        self.core.device.stop(self.core.now);
        self.core.agenda.clear();
        self.core.probe.on_power_off(loss.at, self.core.now);
        for page in dirty.iter().filter(|page| page.owed != 0 && !page.is_saved) {
            loss.lost.push((page.lpn, page.owed));
        }
        self.power.stats.down_ns += self.core.now - loss.at;
        self.power.stats.losses.push(loss);
    }

    /// What a worn-out drive could not write back it has lost before; from now on nobody remembers that. Of what no read
    /// level decoded the OOB does.
    fn tell_what_was_lost_before(&mut self, loss: &mut PowerLoss) {
        let Self { caching, core, .. } = self;
        let Core { ftl, array, .. } = core;
        let lost = caching.as_mut().map(|caching| std::mem::take(&mut caching.lost));
        let is_marked = |lpn: Lpn| ftl.map.get(lpn).is_some_and(|ppn| array.is_lost(ppn));
        let lost = lost.into_iter().flatten().map(|(lpn, sequence)| (Lpn(lpn), sequence));
        loss.lost.extend(lost.filter(|&(lpn, acknowledged)| acknowledged != 0 && !is_marked(lpn)));
    }

    /// The dirty pages in the order in which they are flushed, without those that an operation under way brings to flash.
    fn dirty_at_power_loss(&self, finishes: bool, loss: &mut PowerLoss) -> Vec<Dirty> {
        let Some(caching) = &self.caching else { return Vec::new() };
        let cache = &caching.cache;
        let capacitor = &self.spec.capacitor;
        let metadata = (capacitor.metadata_bytes / u64::from(self.core.geometry.page_bytes)) as u32;
        let is_first = |lpn: Lpn| capacitor.flush_order == FlushOrder::Metadata && lpn.0 < metadata;
        let order = cache.flush_order(capacitor.flush_order == FlushOrder::Newest, is_first);
        (loss.dirty_pages, loss.owed_pages) = (order.len() as u32, cache.owed());
        let mut landing = vec![false; cache.slots_used()];
        if finishes {
            for transaction in self.under_way() {
                if let (Kind::Program, Owner::CachePage(slot)) = (transaction.kind, transaction.owner) {
                    landing[slot.index()] = true;
                }
            }
        }
        let needs_flush = |&slot: &CacheSlot| cache.entry(slot).dirty != 0 || !landing[slot.index()];
        let dirty = |slot: CacheSlot| {
            let entry = cache.entry(slot);
            Dirty {
                lpn: entry.lpn,
                sequence: entry.sequence,
                owed: if landing[slot.index()] { entry.acknowledged } else { entry.owed() },
                is_partial: entry.valid != caching.whole && self.core.ftl.map.get(entry.lpn).is_some(),
                is_lost: entry.lost != 0,
                is_saved: false,
            }
        };
        order.into_iter().filter(needs_flush).map(dirty).collect()
    }

    /// What the dies have taken up, die by die.
    pub(super) fn under_way(&self) -> Vec<Transaction> {
        let mut all = Vec::new();
        for die in (0..self.core.geometry.dies).map(DieId) {
            let mut rest = self.core.device.under_way(die);
            while let Some(slot) = rest {
                all.push(self.core.pool[slot]);
                rest = self.core.pool[slot].next;
            }
        }
        all
    }

    /// The pages of programs that were queued are erased still.
    fn take_back_queued(&mut self) {
        let mut ends = std::collections::BTreeMap::new();
        for transaction in self.under_way() {
            if transaction.kind == Kind::Program {
                let block = self.core.geometry.block_of(transaction.ppn);
                ends.insert(block, u32::from(transaction.page) + 1 + u32::from(transaction.skips));
            }
        }
        let Core { ftl, array, geometry, .. } = &mut self.core;
        ftl.take_back_queued(geometry, |block| {
            ends.get(&block).copied().unwrap_or_else(|| u32::from(array.block(block).programmed))
        });
    }

    /// The host's requests end with the power.
    fn abort_requests(&mut self) {
        let aborted = self.path.host.requests.take_all();
        if let Some(link) = &mut self.path.host.link {
            link.clear(self.core.now);
        }
        self.path.host.record.on_aborted(self.core.now, aborted.len() as u32);
        for request in aborted {
            let crate::host::InWork { id, request, .. } = request;
            let completion = super::Completion {
                id,
                request,
                completed: self.core.now,
                failed: Some(FailReason::PowerLost),
            };
            self.path.host.completions.push(completion);
        }
    }

    /// There is no energy: what is under way in an array is torn.
    fn tear(&mut self, loss: &mut PowerLoss) {
        for transaction in self.under_way() {
            if self.core.device.phase(transaction.die) != Phase::Array {
                continue;
            }
            match transaction.kind {
                Kind::Read => {}
                Kind::Erase => {
                    loss.torn_erases += 1;
                    self.power.torn_erases.push(self.core.geometry.block_of(transaction.ppn));
                }
                Kind::Program | Kind::Copyback => {
                    loss.torn_programs += 1;
                    self.end_program(&transaction);
                    if transaction.is_in_place() {
                        self.tell_torn(transaction.ppn, loss);
                    }
                    self.tear_page(transaction.ppn, loss);
                }
            }
        }
    }

    /// A page that was being programmed, and the LSB page of its wordline if it is the MSB page. Whether that held the
    /// newest data of its LPN recovery will see.
    fn tear_page(&mut self, ppn: Ppn, loss: &mut PowerLoss) {
        self.core.array.tear(ppn);
        let (_, page) = self.core.geometry.split(ppn);
        if self.core.geometry.cell == Cell::Mlc && page % 2 == 1 {
            let partner = Ppn(ppn.0 - 1);
            self.tell_torn(partner, loss);
            self.core.array.tear(partner);
        }
    }

    /// A page is going to be torn that was programmed before.
    fn tell_torn(&self, ppn: Ppn, loss: &mut PowerLoss) {
        let (lpn, sequence) = (self.core.array.lpn(ppn), self.core.array.stamp(ppn).sequence);
        // A translation page is made anew, from the OOB of the data pages.
        let is_translation = self.core.ftl.is_translation(lpn);
        // Nobody needs a combination page whose entries are all dead.
        let ftl = &self.core.ftl;
        let is_dead = ftl.is_combination(lpn) && ftl.map.get(lpn).is_none();
        if !self.core.array.is_torn(ppn) && lpn.0 != DEAD_LPN && !is_translation && !is_dead {
            loss.lost_with_wordline.push((lpn, sequence));
        }
    }

    /// The page is not erased any more; one that was programmed before is young again.
    fn end_program(&mut self, program: &Transaction) {
        let (block, page) = self.core.geometry.split(program.ppn);
        if program.is_in_place() {
            self.core.array.reprogram(block, page, program.ppn, self.core.moment());
            return;
        }
        if page == 0 {
            self.refreshing.refresh.age_from_power_loss(&mut self.core, block);
        }
        if program.kind == Kind::Copyback
            && let Some(source) = program.replaces
        {
            let source = self.core.geometry.block_of(source);
            self.refreshing.refresh.age_as_from_power_loss(block, source);
            self.core.array.copy_errors(block, source);
        }
        self.core.array.program(block, page);
        let programmed = self.core.array.skip(block, u32::from(program.skips));
        if programmed == self.core.geometry.pages_per_block {
            self.core.array.block_mut(block).closed_at = self.core.now;
        }
    }

    /// Lets what is under way end, and writes dirty pages as far as the energy goes.
    fn flush_on_capacitor(&mut self, dirty: &mut [Dirty], loss: &mut PowerLoss) {
        let method = self.spec.capacitor.flush;
        let pages = FlushPages::new(method, &self.core.geometry, &self.core.ftl, dirty.len() as u32);
        let under_way = self.under_way();
        let lines = match &mut self.refreshing.partial {
            Some(partial) => partial.lines_at_power_loss(&under_way),
            None => Vec::new(),
        };
        loss.vsm_lines = lines.len() as u32;
        let mut flush =
            Flush { pages, next: 0, lines, lines_begun: 0, under_way: 0, may_end: loss.at, is_over: false };
        loop {
            self.begin_flush_programs(&mut flush, dirty, loss);
            if flush.next == dirty.len() {
                self.begin_line_programs(&mut flush, loss);
            }
            let (time, clock) = self.core.agenda.next();
            if time == NEVER {
                break;
            }
            self.core.now = time;
            let Core { device, pool, agenda, probe, now, .. } = &mut self.core;
            let ended = device.on_clock(pool, agenda, probe, *now, DieId(clock));
            device.start_next(pool, agenda, probe, *now, DieId(clock));
            match ended {
                Ended::Nothing => {}
                Ended::Page(_) => loss.finish_ns = self.core.now - loss.at,
                Ended::Batch(first) => {
                    let mut rest = Some(first);
                    while let Some(slot) = rest {
                        let done = self.core.pool[slot];
                        rest = done.next;
                        self.core.operations.on_ended(done.kind, done.cause);
                        if done.kind == Kind::Erase {
                            let block = self.core.geometry.block_of(done.ppn);
                            self.refreshing.on_erased(&mut self.core, block);
                            self.core.array.erase(&self.core.geometry, block);
                            let endurance = self.spec.drive.endurance;
                            self.core.ftl.release(
                                &self.core.geometry,
                                &mut self.core.array,
                                block,
                                endurance,
                            );
                        } else {
                            self.end_program(&done);
                        }
                        if done.kind == Kind::Copyback {
                            // Which of the two copies counts recovery decides.
                            let block = self.core.geometry.block_of(done.ppn);
                            self.copyback.stats.on_copyback(self.core.array.block(block).copybacks);
                        }
                        match done.owner {
                            Owner::FlushPage(at) => {
                                dirty[at as usize].is_saved = true;
                                loss.flushed_pages += 1;
                            }
                            Owner::CombinationPage if done.cause == Cause::Flush => loss.vsm_lines_saved += 1,
                            _ => {
                                loss.finish_ns = self.core.now - loss.at;
                                continue;
                            }
                        }
                        flush.under_way -= 1;
                        loss.flush_ns = self.core.now - loss.at;
                    }
                }
            }
        }
        if let Some(capacitor) = &mut self.power.capacitor {
            loss.spent_j = capacitor.spent_j(loss.flush_ns.ns() as f64, loss.program_ns.ns() as f64);
            capacitor.cycle(1);
        }
    }

    /// Gives dirty pages to the dies that are free.
    fn begin_flush_programs(&mut self, flush: &mut Flush, dirty: &[Dirty], loss: &mut PowerLoss) {
        let concurrency = match self.spec.capacitor.flush {
            FlushMethod::Plain => self.power.concurrency(),
            FlushMethod::Csw => self.core.geometry.dies,
        };
        while !flush.is_over && flush.next < dirty.len() && flush.under_way < concurrency {
            let Core { geometry, array, ftl, device, .. } = &mut self.core;
            let Some(place) = flush.pages.next(geometry, array, ftl, |die| device.phase(die) != Phase::Idle)
            else {
                return;
            };
            let (_, page) = self.core.geometry.split(place.ppn);
            if !self.has_energy_for(flush, loss, page) {
                flush.is_over = true;
                return;
            }
            self.core.room.has_displaced = self.core.ftl.allocator.is_static();
            loss.fast_pages += u32::from(self.is_fast(page));
            let item = &dirty[flush.next];
            let corrected = if item.is_lost { Moment::LOST } else { self.core.moment() };
            let stamp = Stamp { sequence: item.sequence, corrected };
            if item.is_partial {
                self.core.array.mark_partial(place.ppn);
            }
            let owner = Owner::FlushPage(flush.next as u32);
            self.program_in_flush(place, item.lpn, stamp, owner);
            flush.next += 1;
            flush.under_way += 1;
        }
    }

    /// Queues a program of the flush. The map follows when power is back.
    fn program_in_flush(&mut self, place: Place, lpn: Lpn, stamp: Stamp, owner: Owner) {
        let (to, maps, cause, class) = (To::Place(place), Maps::Nothing, Cause::Flush, Class::HostWrite);
        let queued = self.core.program(Program { to, lpn, stamp, maps, owner, cause, class });
        queued.expect("it has its place");
        // A die gets one page at a time.
        self.core.start_dies();
    }

    /// Whether what is left is enough to program one page more, to its end; if so it is taken.
    fn has_energy_for(&self, flush: &mut Flush, loss: &mut PowerLoss, page: u32) -> bool {
        let timing = self.core.device.timing();
        let program_ns = timing.program_ns(page);
        // At worst every other die of the channel transfers first, a page at the last read level.
        let dies_per_channel = u64::from(self.core.geometry.dies / self.core.geometry.channels);
        let wait_ns = dies_per_channel * timing.longest_transfer_ns()
            + u64::from(self.core.geometry.dies) * timing.off_chip_ns;
        let may_end = flush.may_end.max(self.core.now + wait_ns + program_ns);
        let programs_ns = loss.program_ns + program_ns;
        let capacitor = self.power.capacitor.as_ref().expect("only a capacitor flushes");
        if capacitor.spent_j((may_end - loss.at).ns() as f64, programs_ns.ns() as f64) > loss.energy_j {
            return false;
        }
        flush.may_end = may_end;
        loss.program_ns = programs_ns;
        true
    }

    /// Gives lines of the VSM to the dies that are free. Without them the pages they are of are what they were.
    fn begin_line_programs(&mut self, flush: &mut Flush, loss: &mut PowerLoss) {
        while !flush.is_over && flush.lines_begun < flush.lines.len() {
            let lpn = flush.lines[flush.lines_begun];
            let Some(place) = Partial::place_line_at_power_loss(&mut self.core) else { return };
            let stamp = self.core.next_stamp();
            let (_, page) = self.core.geometry.split(place.ppn);
            if !self.has_energy_for(flush, loss, page) {
                flush.is_over = true;
                return;
            }
            self.program_in_flush(place, lpn, stamp, Owner::CombinationPage);
            if let Some(partial) = &mut self.refreshing.partial {
                partial.stage(lpn, place.ppn);
            }
            flush.lines_begun += 1;
            flush.under_way += 1;
        }
    }

    fn is_fast(&self, page: u32) -> bool {
        match self.core.geometry.cell {
            Cell::Slc => true,
            Cell::Mlc => page.is_multiple_of(2),
            Cell::Mlc3d | Cell::Tlc3d => 2 * page < self.core.geometry.pages_per_block,
        }
    }
}
