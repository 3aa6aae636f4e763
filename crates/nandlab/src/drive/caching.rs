//! The write cache at work: hits take DRAM time, misses find a slot, dirty pages go to flash.
//!
//! A host page that is written needs a slot and room in the dirty budget; without either it waits, in order, and a page
//! is chosen to leave or to be written back for each that waits. A write-back reads the sectors that are not in the cache
//! first, if flash has the page, then takes a place like a host write. What is updated meanwhile stays dirty; under a
//! policy that protects, updates wait instead. A read that finds some of its sectors waits until the others are there.

use super::Drive;
use crate::cache::{CacheSlot, WriteBack, WriteCache};
use crate::core::{Part, Queue, Read, Waiter, Wake, Wants};
use crate::geometry::{Lpn, RequestId};
use crate::host::Request;
use crate::probe::Probe;
use crate::sched::{Cause, Class, Owner, Start, Transaction};
use crate::units::{Span, Time};
use std::collections::{BTreeSet, VecDeque};

/// What the drive keeps for the write cache beside [`WriteCache`].
#[derive(Debug)]
pub(super) struct Caching {
    pub(super) cache: WriteCache,
    /// Host pages that wait for a slot or for the budget.
    waiting: Queue,
    waiting_len: u32,
    /// Those of them that were not cached when they came: they need a slot.
    waiting_slots: u32,
    /// Requests with a page whose DRAM access ends then, in that order.
    dram: VecDeque<(Time, RequestId)>,
    access_ns: Span,
    sector_bytes: u64,
    /// All sectors of a page.
    pub(super) whole: u64,
    /// Write-backs under way at most, of those nobody waits for.
    ahead_max: u32,
    /// Flushes that are not done.
    pub(super) flushes: u32,
    /// LPNs whose newest data was acknowledged and found no place, the drive being worn out: flash has older data.
    pub(super) lost: BTreeSet<u32>,
}

impl<P: Probe> Drive<P> {
    pub(super) fn make_caching(
        spec: &crate::spec::Spec,
        geometry: &crate::geometry::Geometry,
    ) -> Option<Caching> {
        let cache = WriteCache::new(&spec.cache, geometry.logical_pages, geometry.page_bytes)?;
        let page_bytes = u64::from(geometry.page_bytes);
        let sector_bytes = (page_bytes / 64).max(512.min(page_bytes));
        Some(Caching {
            cache,
            waiting: Queue::default(),
            waiting_len: 0,
            waiting_slots: 0,
            dram: VecDeque::new(),
            access_ns: spec.cache.access_ns,
            sector_bytes,
            whole: !0 >> (64 - page_bytes / sector_bytes),
            ahead_max: 2 * geometry.dies,
            flushes: 0,
            lost: BTreeSet::new(),
        })
    }

    #[inline(always)]
    pub(super) fn caching(&mut self) -> &mut Caching {
        self.caching.as_mut().expect("the drive has a write cache")
    }

    /// Pages of the cache have begun or ended their way to flash.
    #[inline]
    pub(super) fn tell_load(&mut self) {
        if let Some(caching) = &self.caching {
            self.migration.on_load(self.core.now, caching.cache.writing());
        }
    }

    /// The sectors of page `lpn` that a request covers wholly, and those that it touches.
    fn sectors(&self, request: &Request, lpn: Lpn) -> (u64, u64) {
        let caching = self.caching.as_ref().expect("the drive has a write cache");
        let page_bytes = u64::from(self.core.geometry.page_bytes);
        let start = u64::from(lpn.0) * page_bytes;
        let from = request.offset.saturating_sub(start);
        let to = (request.offset + request.len - start).min(page_bytes);
        let mask =
            |first: u64, end: u64| if first >= end { 0 } else { (!0 >> (64 - (end - first))) << first };
        let bytes = caching.sector_bytes;
        (mask(from.div_ceil(bytes), to / bytes), mask(from / bytes, to.div_ceil(bytes)))
    }

    /// A page of a request is done after a DRAM access.
    fn after_dram(&mut self, request: RequestId) {
        let now = self.core.now;
        let caching = self.caching();
        if caching.access_ns == Span::ZERO {
            self.page_done(request);
            return;
        }
        let at = now + caching.access_ns;
        let is_first = caching.dram.is_empty();
        caching.dram.push_back((at, request));
        if is_first {
            self.core.set_clock(self.core.dram_clock(), at);
        }
    }

    /// The DRAM's clock has struck.
    pub(super) fn on_dram(&mut self) {
        let clock = self.core.dram_clock();
        let caching = self.caching();
        let (_, request) = caching.dram.pop_front().expect("the DRAM's clock is set for a page");
        let next = caching.dram.front().map_or(crate::sched::NEVER, |&(at, _)| at);
        self.core.agenda.set(clock, next);
        self.page_done(request);
    }

    /// Whether the cache answers a page of a read, now or later; if not, flash does.
    pub(super) fn read_cached(&mut self, request: RequestId, lpn: Lpn) -> bool {
        let _inside = self.core.inside.enter(Part::WriteCache);
        let Some(caching) = &self.caching else { return false };
        let Some(slot) = caching.cache.find(lpn) else {
            self.core.stats.cache.read_misses += 1;
            let is_lost = caching.lost.contains(&lpn.0);
            if is_lost {
                self.fail_page(request);
                self.core.probe.on_read_failed(request, lpn);
            }
            return is_lost;
        };
        let (_, sectors) = self.sectors(&self.host.requests.request(request), lpn);
        self.host.requests.get(request).pages_left += 1;
        let caching = self.caching();
        if !caching.cache.entry(slot).leaves {
            caching.cache.touch(slot);
        }
        if sectors & !caching.cache.entry(slot).valid == 0 {
            self.core.stats.cache.read_hits += 1;
            self.answer_cached(request, lpn, slot);
        } else {
            self.core.stats.cache.read_misses += 1;
            self.wait_for(slot, request, Wants::Read);
            self.fetch(slot);
        }
        true
    }

    /// Answers a read whose sectors are all there, or says that some of them are lost.
    fn answer_cached(&mut self, request: RequestId, lpn: Lpn, slot: CacheSlot) {
        let (_, sectors) = self.sectors(&self.host.requests.request(request), lpn);
        let entry = self.caching().cache.entry(slot);
        let (sequence, is_lost) = ((!entry.is_blank).then_some(entry.sequence), sectors & entry.lost != 0);
        if is_lost {
            self.fail_page(request);
            self.core.probe.on_read_failed(request, lpn);
        } else {
            self.core.probe.on_read_answered(request, lpn, sequence);
        }
        self.after_dram(request);
    }

    /// Lets a page of a request wait for what is under way for an entry.
    fn wait_for(&mut self, slot: CacheSlot, request: RequestId, wants: Wants) {
        let caching = self.caching.as_mut().expect("the drive has a write cache");
        let entry = caching.cache.entry_mut(slot);
        let waiter = self.core.waiters.insert(Waiter::new(Owner::Request(request), entry.lpn, wants));
        entry.waiting.push(&mut self.core.waiters, waiter);
    }

    /// A page of a write.
    pub(super) fn write_cached(&mut self, request: RequestId, lpn: Lpn) {
        let _inside = self.core.inside.enter(Part::WriteCache);
        if self.try_write(request, lpn, false) {
            return;
        }
        self.stall_cached(request, lpn);
        self.core.wake(Wake::CacheRoom);
    }

    /// Lets a page of a write wait for a slot or for the budget.
    fn stall_cached(&mut self, request: RequestId, lpn: Lpn) {
        let caching = self.caching.as_mut().expect("the drive has a write cache");
        let needs_slot = caching.cache.find(lpn).is_none();
        let wants = if needs_slot { Wants::Slot } else { Wants::Write };
        let waiter = self.core.waiters.insert(Waiter::new(Owner::Request(request), lpn, wants));
        caching.waiting.push(&mut self.core.waiters, waiter);
        caching.waiting_len += 1;
        caching.waiting_slots += u32::from(needs_slot);
        self.core.stats.cache.stalled_writes += 1;
    }

    /// Writes a page into the cache, if it has a slot and the budget allows it; if it needs either, those that wait go
    /// first, unless it `is_first`. A page that is protected waits with its entry.
    fn try_write(&mut self, request: RequestId, lpn: Lpn, is_first: bool) -> bool {
        let asked = self.host.requests.request(request);
        let (sectors, touched) = self.sectors(&asked, lpn);
        let caching = self.caching.as_mut().expect("the drive has a write cache");
        let found = caching.cache.find(lpn);
        let is_dirty = found.is_some_and(|slot| caching.cache.entry(slot).is_dirty());
        let is_owed = found.is_some_and(|slot| caching.cache.entry(slot).owed() != 0);
        // A budget of nothing: every write goes through to flash.
        let through = asked.fua || caching.cache.budget() == 0;
        if let Some(slot) = found {
            let entry = caching.cache.entry(slot);
            let is_protected = caching.cache.sync().protects() && entry.write_back != WriteBack::None;
            // Of a sector written in part the rest has to be there.
            let lacks = touched & !sectors & !entry.valid != 0;
            if is_protected || lacks {
                self.core.stats.cache.blocked_updates += u64::from(is_protected);
                self.wait_for(slot, request, Wants::Write);
                if lacks {
                    self.fetch(slot);
                }
                return true;
            }
        }
        let (dirty, budget) = (caching.cache.dirty_pages(), caching.cache.budget());
        // After a time without a budget more pages may be on their way to flash than may be dirty now; the writes that they
        // wait for are not acknowledged, and no other one may be on top of them.
        let is_over = budget > 0 && (!is_dirty && dirty >= budget || !is_owed && dirty > budget);
        let needs_room = found.is_none() || !is_dirty;
        if needs_room && (caching.waiting_len > 0 && !is_first) || is_over {
            return false;
        }
        let slot = match found {
            Some(slot) => slot,
            None => {
                let Some((slot, has_evicted)) = caching.cache.take_slot() else { return false };
                self.core.stats.cache.evictions += u64::from(has_evicted);
                caching.cache.insert(slot, lpn);
                if touched != sectors {
                    // It comes back when the rest is there.
                    self.wait_for(slot, request, Wants::Write);
                    self.fetch(slot);
                    return true;
                }
                slot
            }
        };
        if found.is_some() {
            self.core.stats.cache.write_hits += 1;
        } else {
            self.core.stats.cache.write_misses += 1;
        }
        self.core.sequence += 1;
        let sequence = self.core.sequence;
        let caching = self.caching.as_mut().expect("the drive has a write cache");
        // What a program under way brings is of the epoch it was written in, what comes now of this one.
        if caching.cache.entry(slot).dirty == 0 {
            let epoch = self.host.epochs.open();
            self.host.epochs.join(epoch);
            caching.cache.entry_mut(slot).epoch = epoch;
        }
        caching.cache.write(slot, touched, sectors, sequence, through);
        self.core.stats.on_dirty(caching.cache.dirty_pages());
        self.core.probe.on_write_admitted(lpn, sequence);
        if through {
            let waiter = self.core.waiters.insert(Waiter::new(Owner::Request(request), lpn, Wants::Write));
            caching.cache.entry_mut(slot).durable.push(&mut self.core.waiters, waiter);
            self.begin_write_back(slot);
        } else {
            self.core.probe.on_write_durable(lpn, sequence);
            self.after_dram(request);
            if self.caching().cache.sync().syncs_at_once() {
                self.sync_pages();
            }
        }
        true
    }

    /// Chooses pages to leave for those that wait for a slot, and pages to be written back for those that wait for the
    /// budget; whether a slot is free at once.
    fn make_room(&mut self, first: Lpn) -> bool {
        loop {
            let caching = self.caching.as_mut().expect("the drive has a write cache");
            let cache = &mut caching.cache;
            // The page of the first one may have left since it came.
            let wanted = caching.waiting_slots.max(u32::from(cache.find(first).is_none()));
            if cache.leaving() + cache.free_slots() < wanted
                && let Some(slot) = cache.choose_victim()
            {
                if cache.free_if_over(slot) {
                    self.core.stats.cache.evictions += 1;
                    return true;
                }
                self.evict_dirty(slot);
                continue;
            }
            let is_over = cache.dirty_pages() >= cache.budget() && cache.writing() < caching.waiting_len;
            let Some(slot) = cache.oldest_dirty().filter(|_| is_over) else { return false };
            self.begin_write_back(slot);
        }
    }

    /// A page that leaves has to be written back first, unless it only waits for its fetch.
    fn evict_dirty(&mut self, slot: CacheSlot) {
        let is_dirty = self.caching().cache.entry(slot).is_dirty();
        self.core.stats.cache.dirty_evictions += u64::from(is_dirty);
        self.begin_write_back(slot);
    }

    /// Lets those that wait for room go on, as far as there is any.
    pub(super) fn resume_cached(&mut self) {
        let _inside = self.core.inside.enter(Part::WriteCache);
        while let Some(caching) = &self.caching
            && let Some(first) = caching.waiting.first()
        {
            let Waiter { lpn, owner, .. } = self.core.waiters[first];
            if self.try_write(owner.request(), lpn, true) {
                let caching = self.caching.as_mut().expect("the drive has a write cache");
                let done = caching.waiting.pop(&mut self.core.waiters).expect("it is the first one");
                caching.waiting_len -= 1;
                caching.waiting_slots -= u32::from(self.core.waiters.remove(done).wants == Wants::Slot);
            } else if !self.make_room(lpn) {
                break;
            }
        }
    }

    /// Writes a dirty page back, unless that is under way.
    fn begin_write_back(&mut self, slot: CacheSlot) {
        let cache = &mut self.caching().cache;
        if cache.entry(slot).write_back == WriteBack::None && cache.entry(slot).dirty != 0 {
            cache.begin_write_back(slot);
            self.tell_load();
            self.go_on_write_back(slot);
        }
    }

    /// The next step of a write-back: the map entry, the sectors that are not there, a place.
    fn go_on_write_back(&mut self, slot: CacheSlot) {
        let whole = self.caching().whole;
        let entry = self.caching().cache.entry(slot);
        let (lpn, lacks) = (entry.lpn, entry.valid & whole != whole);
        if entry.is_fetched {
            return;
        }
        if lacks {
            self.fetch(slot);
        } else if self.mapping.has_entry(&mut self.core, lpn, Owner::CachePage(slot), Wants::Write) {
            self.program_page(Owner::CachePage(slot), lpn);
        }
    }

    /// Brings in the sectors of an entry that are not there.
    fn fetch(&mut self, slot: CacheSlot) {
        let entry = self.caching().cache.entry_mut(slot);
        let lpn = entry.lpn;
        if !std::mem::replace(&mut entry.is_fetched, true)
            && self.mapping.has_entry(&mut self.core, lpn, Owner::CachePage(slot), Wants::Read)
        {
            self.fetch_mapped(slot);
        }
    }

    /// The same, with the map entry at hand.
    pub(super) fn fetch_mapped(&mut self, slot: CacheSlot) {
        let caching = self.caching();
        let lpn = caching.cache.entry(slot).lpn;
        if caching.lost.contains(&lpn.0) {
            self.core.wake(Wake::SectorsArrived { slot, sequence: Some(0), is_lost: true });
            return;
        }
        match self.core.ftl.map.get(lpn) {
            Some(ppn) if !self.core.is_in_flight(ppn) => {
                let (owner, cause, class) = (Owner::CachePage(slot), Cause::Sync, Class::HostRead);
                self.core.read(Read { ppn, lpn, owner, cause, class, start: Start::Policy });
            }
            Some(ppn) => {
                let (sequence, is_lost) = (self.core.array.stamp(ppn).sequence, self.core.array.is_lost(ppn));
                self.core.wake(Wake::SectorsArrived { slot, sequence: Some(sequence), is_lost });
            }
            None => self.core.wake(Wake::SectorsArrived { slot, sequence: None, is_lost: false }),
        }
    }

    /// All of a page is there, or lost; `sequence` says which write flash had of it, if it had the page.
    pub(super) fn on_fetched(&mut self, slot: CacheSlot, sequence: Option<u64>, is_lost: bool) {
        let _inside = self.core.inside.enter(Part::WriteCache);
        let caching = self.caching();
        let whole = caching.whole;
        let entry = caching.cache.entry_mut(slot);
        entry.is_fetched = false;
        if is_lost {
            entry.lost |= whole & !entry.valid;
        }
        entry.valid = whole;
        if let Some(sequence) = sequence {
            entry.sequence = entry.sequence.max(sequence);
            entry.is_blank = false;
        }
        // One that is begun for those that wait goes on by itself.
        let goes_on = entry.write_back == WriteBack::Scheduled;
        self.serve_entry(slot);
        if goes_on {
            self.go_on_write_back(slot);
        }
        self.end_of_use(slot);
    }

    /// Host pages that wait for an entry go on: reads are answered, then writes try again. They have their slot, so
    /// they do not queue for one.
    fn serve_entry(&mut self, slot: CacheSlot) {
        let mut waiting = std::mem::take(&mut self.caching().cache.entry_mut(slot).waiting);
        let mut writes = Queue::default();
        while let Some(waiter) = waiting.pop(&mut self.core.waiters) {
            if self.core.waiters[waiter].wants == Wants::Read {
                let Waiter { owner, lpn, .. } = self.core.waiters.remove(waiter);
                self.answer_cached(owner.request(), lpn, slot);
            } else {
                writes.push(&mut self.core.waiters, waiter);
            }
        }
        while let Some(waiter) = writes.pop(&mut self.core.waiters) {
            let Waiter { owner, lpn, .. } = self.core.waiters.remove(waiter);
            if !self.try_write(owner.request(), lpn, true) {
                self.stall_cached(owner.request(), lpn);
            }
        }
    }

    /// Whether a page that is being written back has been deallocated since.
    pub(super) fn is_dropped(&self, slot: CacheSlot) -> bool {
        self.caching.as_ref().is_some_and(|caching| caching.cache.entry(slot).is_dropped)
    }

    /// A write-back has a place: the sequence number of what is written, and whether some of it is lost.
    pub(super) fn on_write_back_placed(&mut self, slot: CacheSlot) -> (u64, bool) {
        let caching = self.caching();
        caching.cache.on_placed(slot);
        let entry = caching.cache.entry(slot);
        let (lpn, sequence, is_lost) = (entry.lpn, entry.sequence, entry.lost != 0);
        if is_lost {
            caching.lost.insert(lpn.0);
        } else {
            caching.lost.remove(&lpn.0);
        }
        (sequence, is_lost)
    }

    /// The drive has worn out, and a write-back found no place: what it held is lost when it leaves the cache.
    pub(super) fn on_write_back_failed(&mut self, slot: CacheSlot) {
        let caching = self.caching();
        let cache = &mut caching.cache;
        cache.on_placed(slot);
        caching.lost.insert(cache.entry(slot).lpn.0);
        // Those that waited for it to be in flash are told.
        let landing = std::mem::take(&mut cache.entry_mut(slot).landing);
        self.end_durable(landing, true);
        self.core.wake(Wake::WriteBackEnded(slot));
    }

    /// A write-back's program is done.
    pub(super) fn on_written_back(&mut self, slot: CacheSlot, done: &Transaction) {
        self.core.stats.cache.write_backs += 1;
        self.tell_durable(done);
        self.end_cache_write_back(slot);
    }

    /// Host pages that waited until flash had them are done.
    fn end_durable(&mut self, mut pages: Queue, has_failed: bool) {
        while let Some(waiter) = pages.pop(&mut self.core.waiters) {
            let request = self.core.waiters.remove(waiter).owner.request();
            self.host.requests.get(request).failed |= has_failed;
            self.page_done(request);
        }
    }

    /// A write-back is over, also one that is not needed any more.
    pub(super) fn end_cache_write_back(&mut self, slot: CacheSlot) {
        let _inside = self.core.inside.enter(Part::WriteCache);
        let caching = self.caching();
        let entry = caching.cache.entry_mut(slot);
        let was_placed = entry.write_back == WriteBack::Program;
        let epoch = if was_placed { entry.placed_epoch } else { entry.epoch };
        let landing = std::mem::take(&mut entry.landing);
        // Of a page that is deallocated flash needs nothing.
        let dropped = if entry.is_dropped { std::mem::take(&mut entry.durable) } else { Queue::default() };
        let is_clean = caching.cache.end_write_back(slot);
        self.tell_load();
        self.host.epochs.leave(epoch);
        self.end_durable(landing, false);
        self.end_durable(dropped, false);
        self.complete_flushes();
        // Updated meanwhile; what is to leave, or has to be in flash, goes again.
        let entry = self.caching().cache.entry(slot);
        if !is_clean && (entry.leaves || !entry.durable.is_empty()) {
            self.begin_write_back(slot);
        }
        self.serve_entry(slot);
        self.end_of_use(slot);
        self.sync_pages();
        self.core.wake(Wake::Detection);
    }

    /// Nothing may be under way for an entry any more: if it leaves, its slot is free, and those that wait may go on.
    fn end_of_use(&mut self, slot: CacheSlot) {
        self.caching().cache.free_if_over(slot);
        self.core.wake(Wake::CacheRoom);
    }

    /// Writes dirty pages back that nobody waits for: for a flush, or because the drive is idle.
    pub(super) fn sync_more(&mut self) {
        let _inside = self.core.inside.enter(Part::WriteCache);
        self.sync_pages();
    }

    fn sync_pages(&mut self) {
        let is_idle = self.is_idle;
        while let Some(caching) = &self.caching {
            let cache = &caching.cache;
            let at_once = cache.sync().syncs_at_once();
            let wants = caching.flushes > 0
                || at_once
                || (is_idle && cache.sync().syncs_when_idle(&cache.view()))
                || self.power.is_syncing();
            if !wants || !at_once && cache.writing() >= caching.ahead_max {
                return;
            }
            let Some(slot) = cache.oldest_dirty() else { return };
            self.core.stats.cache.syncs += 1;
            self.begin_write_back(slot);
        }
    }

    /// A page has been read from flash for the host: it is cached if there is a slot for it.
    pub(super) fn cache_read(&mut self, read: &Transaction) {
        let _inside = self.core.inside.enter(Part::WriteCache);
        let is_current = self.core.ftl.map.get(read.lpn) == Some(read.ppn);
        let Some(caching) = &mut self.caching else { return };
        if !is_current || caching.waiting_len > 0 || caching.cache.find(read.lpn).is_some() {
            return;
        }
        let Some((slot, has_evicted)) = caching.cache.take_slot() else {
            // The next one will find room.
            self.make_room_for_read();
            return;
        };
        self.core.stats.cache.evictions += u64::from(has_evicted);
        let whole = caching.whole;
        caching.cache.insert(slot, read.lpn);
        let sequence = self.core.array.stamp(read.ppn).sequence;
        let entry = self.caching().cache.entry_mut(slot);
        (entry.valid, entry.sequence, entry.is_blank) = (whole, sequence, false);
    }

    fn make_room_for_read(&mut self) {
        let cache = &mut self.caching().cache;
        if cache.leaving() == 0
            && let Some(slot) = cache.choose_victim()
        {
            if cache.free_if_over(slot) {
                self.core.stats.cache.evictions += 1;
            } else {
                self.evict_dirty(slot);
            }
        }
    }

    /// Deallocates a page in the cache; whether it held anything flash does not have.
    pub(super) fn trim_cached(&mut self, lpn: Lpn) -> bool {
        let _inside = self.core.inside.enter(Part::WriteCache);
        let Some(caching) = &mut self.caching else { return false };
        caching.lost.remove(&lpn.0);
        let Some(slot) = caching.cache.find(lpn) else { return false };
        let entry = caching.cache.entry(slot);
        let is_dirty = entry.is_dirty();
        // Before it has a place, the end of its write-back lets the epoch go.
        let leaves = entry.dirty != 0 && entry.write_back != WriteBack::Scheduled;
        let epoch = entry.epoch;
        caching.cache.forget(slot);
        if leaves {
            self.host.epochs.leave(epoch);
        }
        self.caching().cache.free_if_over(slot);
        self.core.wake(Wake::Detection);
        is_dirty
    }

    /// Requests' pages that a flush has to wait for go to flash.
    pub(super) fn flush_cached(&mut self) {
        if self.caching.is_some() {
            self.caching().flushes += 1;
            self.sync_more();
        }
    }

    /// With nothing under way nothing waits in the cache.
    ///
    /// # Errors
    /// What is left over.
    pub(super) fn audit_cache_at_rest(&self) -> Result<(), String> {
        let Some(caching) = &self.caching else { return Ok(()) };
        let cache = &caching.cache;
        let (waiting, dram) = (caching.waiting_len, caching.dram.len());
        let (writing, leaving, flushes) = (cache.writing(), cache.leaving(), caching.flushes);
        if waiting > 0 || dram > 0 || writing > 0 || leaving > 0 || flushes > 0 {
            return Err(format!(
                "nothing is under way, and in the write cache {waiting} pages wait, {dram} are accessed, {writing} are \
                 written back, {leaving} leave and {flushes} flushes wait"
            ));
        }
        Ok(())
    }

    /// Pages of the write cache: that fit, that may be dirty, that are.
    pub fn cache_pages(&self) -> [u32; 3] {
        self.caching.as_ref().map_or([0; 3], |caching| {
            [caching.cache.capacity(), caching.cache.budget(), caching.cache.dirty_pages()]
        })
    }
}
