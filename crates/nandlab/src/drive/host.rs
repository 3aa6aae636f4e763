//! The host's path: requests are split into pages, pages become transactions, the last page completes the request.
//!
//! A write is mapped when it is admitted, not when it is programmed: from then on it is the page's newest data, and
//! a read of it is answered from the controller's buffer until the program is done. The block that holds what it
//! replaces cannot be erased before that, so what has been acknowledged is always in flash.

use super::Drive;
use super::requests::Completion;
use crate::ftl::{Place, WriteStream};
use crate::geometry::{DieId, Lpn, PlaneId, Ppn};
use crate::host::{Op, Request};
use crate::nand::{DEAD_LPN, Moment, Stamp};
use crate::probe::Probe;
use crate::sched::{Cause, Class, Kind, NONE, Transaction};
use std::collections::{BTreeMap, VecDeque};

/// Writes between two flushes form an epoch; a flush is done when its epoch and all before it are.
#[derive(Debug, Default)]
pub(super) struct Epochs {
    /// The number of the first epoch in the list.
    first: u64,
    /// For each epoch its unfinished writes and the flush that ends it; the last one is still open.
    list: VecDeque<(u64, Option<u32>)>,
}

impl Epochs {
    pub(super) fn open(&mut self) -> u64 {
        if self.list.is_empty() {
            self.list.push_back((0, None));
        }
        self.first + self.list.len() as u64 - 1
    }

    pub(super) fn join(&mut self, epoch: u64) {
        self.list[(epoch - self.first) as usize].0 += 1;
    }

    pub(super) fn leave(&mut self, epoch: u64) {
        self.list[(epoch - self.first) as usize].0 -= 1;
    }

    fn end_with(&mut self, flush: u32) {
        self.open();
        self.list.back_mut().expect("an epoch is open").1 = Some(flush);
        self.list.push_back((0, None));
    }

    /// The next flush with nothing left before it.
    fn done(&mut self) -> Option<u32> {
        let &(0, Some(flush)) = self.list.front()? else { return None };
        self.list.pop_front();
        self.first += 1;
        Some(flush)
    }
}

/// LPNs whose old data a read-modify-write is fetching. Other writes of the same LPN wait for it, else one of the
/// two would be merged with what the other has replaced.
#[derive(Debug, Default)]
pub(super) struct Merging {
    /// For each LPN the requests that wait, and whether they cover the page only partly.
    waiting: BTreeMap<u32, VecDeque<(u32, bool)>>,
}

impl Merging {
    pub(super) fn is_empty(&self) -> bool {
        self.waiting.is_empty()
    }
}

impl<P: Probe> Drive<P> {
    pub(super) fn accept(&mut self, request: &Request) -> u64 {
        let epoch = self.epochs.open();
        let slot = self.requests.insert(request, epoch);
        let id = self.requests.get(slot).id;
        self.stats.on_submitted(self.now, request);
        match request.op {
            Op::Read => self.read(slot, request),
            Op::Write => {
                self.epochs.join(epoch);
                self.write(slot, request);
            }
            Op::Trim => self.trim(request),
            Op::Flush => {
                self.probe.on_flush_asked(id);
                self.epochs.end_with(slot);
                self.flush_cached();
            }
        }
        if request.op == Op::Flush {
            self.complete_flushes();
        } else {
            self.page_done(slot);
        }
        id
    }

    #[inline]
    fn pages(&self, request: &Request) -> (u32, u32) {
        let bytes = u64::from(self.geometry.page_bytes);
        ((request.offset / bytes) as u32, ((request.offset + request.len - 1) / bytes) as u32)
    }

    fn read(&mut self, slot: u32, request: &Request) {
        let (first, last) = self.pages(request);
        for lpn in (first..=last).map(Lpn) {
            self.probe.on_read_asked(slot, lpn);
            if self.read_cached(slot, lpn) {
                continue;
            }
            if self.has_entry(lpn, slot, Kind::Read, Cause::Host, false) {
                self.read_mapped(slot, lpn);
            }
        }
    }

    /// Reads a page whose map entry is at hand.
    #[inline]
    pub(super) fn read_mapped(&mut self, slot: u32, lpn: Lpn) {
        let Some(ppn) = self.ftl.map.get(lpn) else {
            self.stats.counters.unmapped_reads += 1;
            self.probe.on_read_answered(slot, lpn, None);
            return;
        };
        if self.is_in_flight(ppn) {
            if self.array.is_lost(ppn) {
                self.fail_page(slot);
                self.probe.on_read_failed(slot, lpn);
            } else {
                self.stats.counters.buffered_reads += 1;
                self.probe.on_read_answered(slot, lpn, Some(self.array.stamp(ppn).sequence));
            }
            return;
        }
        self.requests.get(slot).pages_left += 1;
        self.read_page(ppn, lpn, slot, Cause::Host, Class::HostRead, false);
    }

    /// Whether a mapped page's program is not done yet.
    #[inline(always)]
    pub(super) fn is_in_flight(&self, ppn: Ppn) -> bool {
        let (block, page) = self.geometry.split(ppn);
        page >= u32::from(self.array.block(block).programmed)
    }

    /// A transaction on the die that holds `ppn`.
    #[inline]
    pub(super) fn transaction(
        &self,
        kind: Kind,
        ppn: Ppn,
        lpn: Lpn,
        owner: u32,
        cause: Cause,
        class: Class,
    ) -> Transaction {
        let (block, page) = self.geometry.split(ppn);
        let plane = self.geometry.plane_of(block);
        let die = self.geometry.die_of(plane);
        Transaction {
            order: 0,
            ppn,
            lpn,
            owner,
            replaces: None,
            next: NONE,
            partner: NONE,
            part_bytes: 0,
            kind,
            cause,
            class,
            merges: false,
            level: 1,
            needed: 1,
            tries: 0,
            skips: 0,
            is_part: false,
            has_arrived: false,
            page: page as u16,
            plane_in_die: (plane.0 - die.0 * self.geometry.planes_per_die) as u8,
            die,
        }
    }

    fn write(&mut self, slot: u32, request: &Request) {
        let bytes = u64::from(self.geometry.page_bytes);
        let (first, last) = self.pages(request);
        let end = request.offset + request.len;
        self.requests.get(slot).pages_left += last - first + 1;
        self.stats.counters.host_pages_written += u64::from(last - first + 1);
        for page in first..=last {
            if self.caching.is_some() {
                self.write_cached(slot, Lpn(page));
                continue;
            }
            let start = u64::from(page) * bytes;
            let is_partial = request.offset > start || end < start + bytes;
            if self.has_entry(Lpn(page), slot, Kind::Program, Cause::Host, is_partial) {
                self.write_mapped(slot, Lpn(page), is_partial);
            }
        }
    }

    /// Writes a page whose map entry is at hand.
    #[inline]
    pub(super) fn write_mapped(&mut self, request: u32, lpn: Lpn, is_partial: bool) {
        if !self.merging.is_empty()
            && let Some(waiting) = self.merging.waiting.get_mut(&lpn.0)
        {
            waiting.push_back((request, is_partial));
            return;
        }
        if is_partial {
            self.stats.counters.partial_writes += 1;
            if let Some(ppn) = self.ftl.map.get(lpn) {
                if !self.is_in_flight(ppn) {
                    self.merging.waiting.insert(lpn.0, VecDeque::new());
                    self.read_page(ppn, lpn, request, Cause::Host, Class::HostRead, true);
                    return;
                }
                if self.array.is_lost(ppn) {
                    self.fail_merge(request);
                    return;
                }
            }
        }
        self.program_page(request, lpn, Cause::Host);
    }

    /// Finds a place for a page of a host request or of the write cache, or lets it wait for one.
    pub(super) fn program_page(&mut self, owner: u32, lpn: Lpn, cause: Cause) {
        if cause == Cause::Sync && self.is_dropped(owner) {
            self.end_cache_write_back(owner);
            return;
        }
        // Its place is filled in when it has one.
        let mut transaction = self.transaction(Kind::Program, Ppn(0), lpn, owner, cause, Class::HostWrite);
        transaction.die = DieId(0);
        let list = self.stalled_list(self.ftl.allocator.home(lpn, self.geometry.planes));
        if self.stalled[list].is_empty()
            && let Some(plane) = self.plane_for(lpn)
        {
            let place = self.ftl.allocate(&self.geometry, &mut self.array, plane, WriteStream::Host);
            if let Some(place) = place {
                self.place(transaction, plane, place);
                return;
            }
        }
        let slot = self.pool.insert(transaction);
        self.stalled[list].push(&mut self.pool, slot);
        self.stalled_count += 1;
        self.stats.counters.stalled_writes += 1;
        if self.ftl.allocator.is_static() {
            self.check_space(PlaneId(list as u32));
        } else {
            for plane in (0..self.geometry.planes).map(PlaneId) {
                self.check_space(plane);
            }
        }
    }

    /// The plane for a write of `lpn`; `None` when dynamic allocation finds none with room.
    #[inline]
    fn plane_for(&mut self, lpn: Lpn) -> Option<PlaneId> {
        let plane = self.ftl.choose_plane(&self.geometry, &self.device, lpn)?;
        if self.has_displaced && !self.ftl.has_room(plane) {
            return Some(self.plane_in_place_of(plane, |drive, plane| drive.ftl.has_room(plane)));
        }
        Some(plane)
    }

    /// An emergency flush writes where there is room, so a plane may hold pages of others and have no room left for its
    /// own, nor any to gain. Then others have more.
    #[cold]
    pub(super) fn plane_in_place_of(
        &self,
        plane: PlaneId,
        has_room: impl Fn(&Self, PlaneId) -> bool,
    ) -> PlaneId {
        if self.ftl.has_garbage(&self.geometry, plane) || self.jobs[plane.index()].is_running() {
            return plane;
        }
        let planes = (0..self.geometry.planes).map(PlaneId).filter(|&plane| has_room(self, plane));
        planes.max_by_key(|&plane| (self.ftl.free_pages(&self.geometry, plane), plane.0)).unwrap_or(plane)
    }

    #[inline]
    fn stalled_list(&self, plane: PlaneId) -> usize {
        if self.ftl.allocator.is_static() { plane.index() } else { 0 }
    }

    /// Maps a host page to the place it got and queues its program.
    #[inline]
    fn place(&mut self, mut transaction: Transaction, plane: PlaneId, place: Place) {
        let Place { ppn, opened, skips } = place;
        let (_, page) = self.geometry.split(ppn);
        transaction.skips = skips;
        transaction.ppn = ppn;
        transaction.page = page as u16;
        transaction.die = self.geometry.die_of(plane);
        transaction.plane_in_die = (plane.0 - transaction.die.0 * self.geometry.planes_per_die) as u8;
        let is_host = transaction.cause == Cause::Host;
        let (sequence, is_lost) = if is_host {
            self.sequence += 1;
            (self.sequence, false)
        } else {
            self.on_write_back_placed(transaction.owner)
        };
        let corrected = if is_lost { Moment::LOST } else { self.moment() };
        self.array.stage(ppn, transaction.lpn, Stamp { sequence, corrected });
        self.keep_entry(transaction.lpn);
        transaction.replaces = self.ftl.remap(&self.geometry, &mut self.array, transaction.lpn, ppn);
        if let Some(old) = transaction.replaces {
            self.hold(old);
        }
        self.erases_in_vain = 0;
        self.on_host_mapped(transaction.lpn);
        if is_host {
            self.probe.on_write_admitted(transaction.lpn, sequence);
        }
        let slot = self.pool.insert(transaction);
        self.enqueue(slot);
        if opened {
            self.check_space(plane);
        }
    }

    /// Gives the writes that wait for `plane` the room there is now.
    pub(super) fn resume_stalled(&mut self, plane: PlaneId) {
        let list = self.stalled_list(plane);
        while let Some(first) = self.stalled[list].first() {
            let Transaction { lpn, owner, cause, .. } = self.pool[first];
            if cause == Cause::Sync && self.is_dropped(owner) {
                self.stalled[list].pop(&self.pool);
                self.stalled_count -= 1;
                self.pool.remove(first);
                self.end_cache_write_back(owner);
                continue;
            }
            let Some(plane) = self.plane_for(lpn) else { return };
            let place = self.ftl.allocate(&self.geometry, &mut self.array, plane, WriteStream::Host);
            let Some(place) = place else { return };
            let slot = self.stalled[list].pop(&self.pool).expect("the list is not empty");
            self.stalled_count -= 1;
            let transaction = self.pool.remove(slot);
            self.place(transaction, plane, place);
        }
    }

    /// Nothing happens any more, and writes still wait for room: the drive has worn out. They fail.
    pub(super) fn fail_stalled(&mut self) {
        for list in 0..self.stalled.len() {
            let mut stalled = std::mem::take(&mut self.stalled[list]);
            while let Some(slot) = stalled.pop(&self.pool) {
                let transaction = self.pool.remove(slot);
                self.stalled_count -= 1;
                if transaction.cause == Cause::Sync && self.is_dropped(transaction.owner) {
                    self.end_cache_write_back(transaction.owner);
                    continue;
                }
                self.stats.counters.failed_pages += 1;
                if transaction.cause == Cause::Sync {
                    self.on_write_back_failed(transaction.owner);
                } else {
                    self.requests.get(transaction.owner).failed = true;
                    self.page_done(transaction.owner);
                }
            }
        }
    }

    fn trim(&mut self, request: &Request) {
        let bytes = u64::from(self.geometry.page_bytes);
        // Only whole pages are deallocated.
        let first = request.offset.div_ceil(bytes) as u32;
        let end = ((request.offset + request.len) / bytes) as u32;
        // The translation page that the last LPNs have changed: one after the other, each is written back once.
        let mut changed = None;
        for lpn in (first..end).map(Lpn) {
            let was_cached = self.trim_cached(lpn);
            let old = self.ftl.unmap(&self.geometry, &mut self.array, lpn);
            if let Some(old) = old {
                self.on_page_gone(old);
            }
            if old.is_some() || was_cached {
                self.sequence += 1;
                self.stats.counters.trimmed_pages += 1;
                self.probe.on_trimmed(lpn, self.sequence);
                if self.array.is_stamped() {
                    self.trims.add(lpn, self.sequence);
                }
                let page = self.on_unmapped(lpn);
                if let Some(before) = changed
                    && page.is_some_and(|page| page != before)
                {
                    self.write_back(before);
                }
                changed = page.or(changed);
            }
        }
        if let Some(page) = changed {
            self.write_back(page);
        }
        // What has gone from the write cache makes room in it, and no flush waits for it.
        if self.caching.is_some() {
            self.complete_flushes();
            self.resume_cached();
        }
    }

    #[inline]
    pub(super) fn on_host_read(&mut self, read: &Transaction) {
        if read.merges {
            self.stats.counters.merge_reads += 1;
            let waiting = self.merging.waiting.remove(&read.lpn.0).expect("a merge locks its LPN");
            if read.is_uncorrectable() {
                self.fail_merge(read.owner);
            } else {
                self.program_page(read.owner, read.lpn, Cause::Host);
            }
            // The first of those that waited may lock the LPN again; the rest then waits behind it.
            for (request, is_partial) in waiting {
                self.write_mapped(request, read.lpn, is_partial);
            }
            return;
        }
        if read.is_uncorrectable() {
            self.fail_page(read.owner);
            self.probe.on_read_failed(read.owner, read.lpn);
        } else if P::STAMPED {
            // The OOB says what was read; a page that is gone says so.
            let lpn = self.array.lpn(read.ppn);
            let sequence = (lpn == read.lpn).then(|| self.array.stamp(read.ppn).sequence);
            assert!(lpn.0 != DEAD_LPN, "a host read found the erased page {}", self.geometry.show(read.ppn));
            assert!(
                !self.array.is_torn(read.ppn),
                "a host read found the torn page {}",
                self.geometry.show(read.ppn)
            );
            self.probe.on_read_answered(read.owner, read.lpn, sequence);
        }
        if self.caching.is_some() && !read.is_uncorrectable() {
            self.cache_read(read);
        }
        self.page_done(read.owner);
    }

    #[inline]
    pub(super) fn on_host_programmed(&mut self, done: &Transaction) {
        if P::STAMPED {
            let sequence = self.array.stamp(done.ppn).sequence;
            self.probe.on_write_safe(done.lpn, sequence);
            self.probe.on_write_durable(done.lpn, sequence);
        }
        self.page_done(done.owner);
    }

    /// What a partial write would complete is lost: writing it would make a page that is partly lost look whole.
    fn fail_merge(&mut self, request: u32) {
        self.fail_page(request);
        self.page_done(request);
    }

    /// A page of a request is lost: the request will fail.
    pub(super) fn fail_page(&mut self, request: u32) {
        self.stats.counters.media_errors += 1;
        self.requests.get(request).failed = true;
    }

    #[inline]
    pub(super) fn page_done(&mut self, slot: u32) {
        let request = self.requests.get(slot);
        request.pages_left -= 1;
        if request.pages_left == 0 {
            self.complete(slot);
        }
    }

    fn complete(&mut self, slot: u32) {
        let is_write = self.requests.op(slot) == Op::Write;
        let done = self.requests.remove(slot);
        self.stats.on_completed(self.now, &done.request, done.failed);
        if is_write && !done.failed {
            let (first, last) = self.pages(&done.request);
            self.stats.on_written(last - first + 1);
        }
        self.probe.on_completed(done.request.op, done.request.arrival, self.now);
        let (id, request, failed) = (done.id, done.request, done.failed);
        self.completions.push(Completion { id, request, completed: self.now, failed });
        if is_write {
            self.epochs.leave(done.epoch);
            self.complete_flushes();
        }
        if self.requests.completed() >= self.power.cut_after {
            self.cut_power_soon();
        }
        if self.requests.live() == 0 {
            self.agenda.set(self.idle_clock(), self.now + self.spec.gc.idle_after_ns);
        }
    }

    pub(super) fn complete_flushes(&mut self) {
        while let Some(flush) = self.epochs.done() {
            self.trims.make_durable();
            self.probe.on_flushed(self.requests.get(flush).id);
            if let Some(caching) = &mut self.caching {
                caching.flushes -= 1;
            }
            self.page_done(flush);
        }
    }
}
