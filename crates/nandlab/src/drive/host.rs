//! The host's path: requests are split into pages, pages become transactions, the last page completes the request.
//!
//! A write is mapped when it is admitted, not when it is programmed: from then on it is the page's newest data, and
//! a read of it is answered from the controller's buffer until the program is done. The block that holds what it
//! replaces cannot be erased before that, so what has been acknowledged is always in flash.

use super::caching::Caching;
use super::link::Link;
use super::mapping::Mapping;
use super::requests::{Completion, FailReason, InWork, Requests};
use super::trims::Trims;
use super::{DataPath, Drive};
use crate::base::geometry::{Geometry, Lpn, PlaneId, Ppn, RequestId};
use crate::base::units::Span;
use crate::core::{Core, Maps, Program, Queue, Read, To, Waiter, Wake, Wants};
use crate::flash::{DEAD_LPN, Moment, Stamp};
use crate::ftl::{Place, WriteStream};
use crate::host::{Op, Request};
use crate::probe::Probe;
use crate::sched::{Cause, Class, Owner, Start, Transaction};
use crate::spec::Spec;
use std::collections::{BTreeMap, VecDeque};

/// Writes between two flushes form an epoch; a flush is done when its epoch and all before it are.
#[derive(Debug, Default)]
pub(super) struct Epochs {
    /// The number of the first epoch in the list.
    first: u64,
    /// For each epoch its unfinished writes and the flush that ends it; the last one is still open.
    list: VecDeque<(u64, Option<RequestId>)>,
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

    fn end_with(&mut self, flush: RequestId) {
        self.open();
        self.list.back_mut().expect("an epoch is open").1 = Some(flush);
        self.list.push_back((0, None));
    }

    /// The next flush with nothing left before it.
    fn done(&mut self) -> Option<RequestId> {
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
    waiting: BTreeMap<u32, VecDeque<(RequestId, bool)>>,
}

impl Merging {
    pub(super) fn is_empty(&self) -> bool {
        self.waiting.is_empty()
    }
}

/// What the drive keeps for the host.
#[derive(Debug)]
pub(super) struct Host {
    pub(super) requests: Requests,
    /// What is between the host and the drive; `None` without one.
    pub(super) link: Option<Box<Link>>,
    pub(super) epochs: Epochs,
    pub(super) merging: Merging,
    /// Requests that have been completed and not been fetched.
    pub(super) completions: Vec<Completion>,
    pub(super) trims: Trims,
    /// Flushes that are not done.
    pub(super) flushes: u32,
    /// Completed requests at which power fails.
    pub(super) cut_after: u64,
    /// How long after its last request the drive is idle.
    pub(super) idle_after_ns: Span,
}

impl Host {
    pub(super) fn new(spec: &Spec) -> Self {
        let cut_after = spec.power.cut_after_requests;
        Self {
            requests: Requests::default(),
            link: spec.host.link.as_ref().map(|link| Box::new(Link::new(link))),
            epochs: Epochs::default(),
            merging: Merging::default(),
            completions: Vec::new(),
            trims: Trims::default(),
            flushes: 0,
            cut_after: if cut_after == 0 { u64::MAX } else { cut_after },
            idle_after_ns: spec.gc.idle_after_ns,
        }
    }

    #[inline]
    fn pages<P: Probe>(core: &Core<P>, request: &Request) -> (u32, u32) {
        let bytes = u64::from(core.geometry.page_bytes);
        ((request.offset / bytes) as u32, ((request.offset + request.len - 1) / bytes) as u32)
    }

    /// What a partial write would complete is lost: writing it would make a page that is partly lost look whole.
    #[inline(never)]
    fn fail_merge<P: Probe>(&mut self, core: &mut Core<P>, request: RequestId) {
        self.fail_page(core, request);
        self.page_done(core, request);
    }

    /// A page of a request is lost: the request will fail.
    #[inline(never)]
    pub(super) fn fail_page<P: Probe>(&mut self, core: &mut Core<P>, request: RequestId) {
        core.stats.counters.media_errors += 1;
        self.requests.fail(request, FailReason::Uncorrectable);
    }

    #[inline]
    pub(super) fn page_done<P: Probe>(&mut self, core: &mut Core<P>, id: RequestId) {
        let request = self.requests.get(id);
        request.pages_left -= 1;
        if request.pages_left == 0 {
            self.complete(core, id);
        }
    }

    /// The drive has done a request.
    fn complete<P: Probe>(&mut self, core: &mut Core<P>, id: RequestId) {
        let (is_write, epoch) = (self.requests.op(id) == Op::Write, self.requests.get(id).epoch);
        if self.link.is_some() {
            self.send_to_host(core, id);
        } else {
            self.report(core, id);
        }
        if is_write {
            self.epochs.leave(epoch);
            self.complete_flushes(core);
        }
    }

    /// The host hears that a request is completed.
    #[inline(always)]
    pub(super) fn report<P: Probe>(&mut self, core: &mut Core<P>, id: RequestId) {
        let is_write = self.requests.op(id) == Op::Write;
        let done = self.requests.remove(id);
        core.stats.on_completed(core.now, &done.request, done.failed);
        if is_write && done.failed.is_none() {
            let (first, last) = Self::pages(core, &done.request);
            core.stats.on_written(core.now, last - first + 1);
        }
        let InWork { id: number, request, failed, .. } = done;
        let completion = Completion { id: number, request, completed: core.now, failed };
        core.probe.on_completed(id, &completion);
        self.completions.push(completion);
        if self.requests.completed() >= self.cut_after {
            self.cut_after = u64::MAX;
            core.wake(Wake::CutPower);
        }
        if self.requests.live() == 0 {
            core.set_clock(core.idle_clock(), core.now + self.idle_after_ns);
        }
    }

    #[inline]
    pub(super) fn complete_flushes<P: Probe>(&mut self, core: &mut Core<P>) {
        while let Some(flush) = self.epochs.done() {
            self.trims.make_durable();
            core.probe.on_flushed(self.requests.get(flush).id);
            self.flushes -= 1;
            self.page_done(core, flush);
        }
    }
}

/// How writes find a place, and those that wait for one.
#[derive(Debug)]
pub(super) struct Writes {
    /// One list a plane, or one for the drive under dynamic allocation.
    pub(super) lists: Box<[Queue]>,
    pub(super) count: u64,
    /// Erases since a host page has got room, while something waits for it.
    pub(super) erases_in_vain: u64,
}

impl Writes {
    pub(super) fn new(is_static: bool, geometry: &Geometry) -> Self {
        let lists = if is_static { geometry.planes as usize } else { 1 };
        Self { lists: vec![Queue::default(); lists].into(), count: 0, erases_in_vain: 0 }
    }

    /// Nobody waits any more.
    pub(super) fn clear(&mut self) {
        self.lists.fill(Queue::default());
        (self.count, self.erases_in_vain) = (0, 0);
    }

    /// Finds a place for a page of a host request or of the write cache, or lets it wait for one.
    pub(super) fn program_page<P: Probe>(
        &mut self,
        core: &mut Core<P>,
        mapping: &mut Mapping,
        cache: Option<&mut Caching>,
        owner: Owner,
        lpn: Lpn,
    ) {
        if self.ends_if_dropped(core, cache.as_deref(), owner) {
            return;
        }
        let plane = self.plane_for(core, lpn);
        let list = self.stalled_list(core, plane);
        if self.lists[list].is_empty()
            && let Some(plane) = plane
            && let Some(place) = core.allocate(plane, WriteStream::Host)
        {
            self.place(core, mapping, cache, owner, lpn, place);
            return;
        }
        let waiter = core.waiters.insert(Waiter::new(owner, lpn, Wants::Write));
        self.lists[list].push(&mut core.waiters, waiter);
        self.count += 1;
        core.stats.counters.stalled_writes += 1;
        if core.ftl.allocator.is_static() {
            core.wake(Wake::Space(PlaneId(list as u32)));
        } else {
            for plane in (0..core.geometry.planes).map(PlaneId) {
                core.wake(Wake::Space(plane));
            }
        }
    }

    /// A page of the write cache that has been deallocated needs no place: its write-back ends. Whether it was one.
    fn ends_if_dropped<P: Probe>(
        &mut self,
        core: &mut Core<P>,
        cache: Option<&Caching>,
        owner: Owner,
    ) -> bool {
        match owner {
            Owner::CachePage(slot) if cache.is_some_and(|cache| cache.is_dropped(slot)) => {
                core.wake(Wake::WriteBackEnded(slot));
                true
            }
            _ => false,
        }
    }

    /// The plane for a write of `lpn`; `None` when dynamic allocation finds none with room.
    #[inline]
    fn plane_for<P: Probe>(&mut self, core: &mut Core<P>, lpn: Lpn) -> Option<PlaneId> {
        let plane = core.ftl.choose_plane(&core.geometry, &core.device, lpn)?;
        if core.has_displaced && !core.ftl.has_room(plane) {
            return Some(core.plane_in_place_of(plane, |core, plane| core.ftl.has_room(plane)));
        }
        Some(plane)
    }

    #[inline]
    fn stalled_list<P: Probe>(&self, core: &Core<P>, plane: Option<PlaneId>) -> usize {
        plane.filter(|_| core.ftl.allocator.is_static()).map_or(0, PlaneId::index)
    }

    /// Maps a host page to the place it got and queues its program.
    #[inline]
    fn place<P: Probe>(
        &mut self,
        core: &mut Core<P>,
        mapping: &mut Mapping,
        cache: Option<&mut Caching>,
        owner: Owner,
        lpn: Lpn,
        place: Place,
    ) {
        let (cause, sequence, is_lost) = if let Owner::CachePage(slot) = owner {
            let cache = cache.expect("the drive has a write cache");
            let (sequence, is_lost) = cache.on_write_back_placed(slot);
            (Cause::Sync, sequence, is_lost)
        } else {
            core.sequence += 1;
            (Cause::Host, core.sequence, false)
        };
        let corrected = if is_lost { Moment::LOST } else { core.moment() };
        mapping.keep_entry(core, lpn);
        let stamp = Stamp { sequence, corrected };
        let (to, maps, class) = (To::Place(place), Maps::Now, Class::HostWrite);
        let queued = core.program(Program { to, lpn, stamp, maps, owner, cause, class });
        queued.expect("it has its place");
        self.erases_in_vain = 0;
        mapping.on_host_mapped(core, lpn);
        if cause == Cause::Host {
            core.probe.on_write_admitted(lpn, sequence);
        }
    }

    /// Gives the writes that wait for `plane` the room there is now.
    pub(super) fn resume<P: Probe>(
        &mut self,
        core: &mut Core<P>,
        mapping: &mut Mapping,
        mut cache: Option<&mut Caching>,
        plane: PlaneId,
    ) {
        let list = self.stalled_list(core, Some(plane));
        while let Some(first) = self.lists[list].first() {
            let Waiter { lpn, owner, .. } = core.waiters[first];
            if self.ends_if_dropped(core, cache.as_deref(), owner) {
                self.unstall(core, list);
                continue;
            }
            let Some(plane) = self.plane_for(core, lpn) else { return };
            let now_in = self.stalled_list(core, Some(plane));
            if now_in != list {
                // The plane that it has waited for has been filled by others.
                let waiter = self.lists[list].pop(&mut core.waiters).expect("somebody waits");
                self.lists[now_in].push(&mut core.waiters, waiter);
                core.wake(Wake::Resume(plane));
                continue;
            }
            let Some(place) = core.allocate(plane, WriteStream::Host) else { return };
            self.unstall(core, list);
            self.place(core, mapping, cache.as_deref_mut(), owner, lpn, place);
        }
    }

    /// Takes the first one off a list of writes that wait for room.
    fn unstall<P: Probe>(&mut self, core: &mut Core<P>, list: usize) {
        let first = self.lists[list].pop(&mut core.waiters).expect("somebody waits");
        core.waiters.remove(first);
        self.count -= 1;
    }

    /// Whether a write waits for room in a plane, or in any of them.
    pub(super) fn wait_in(&self, plane: PlaneId) -> bool {
        let list = self.lists.get(plane.index()).or(self.lists.first());
        list.is_some_and(|list| !list.is_empty())
    }

    /// Nothing happens any more, and writes still wait for room. Those fail that wait for a plane that has worn out, or for
    /// any where all have.
    pub(super) fn fail_worn_out<P: Probe>(
        &mut self,
        core: &mut Core<P>,
        host: &mut Host,
        mut cache: Option<&mut Caching>,
    ) {
        for list in 0..self.lists.len() {
            if self.lists[list].is_empty() || !core.is_worn_out(PlaneId(list as u32)) {
                continue;
            }
            let mut stalled = std::mem::take(&mut self.lists[list]);
            while let Some(waiter) = stalled.pop(&mut core.waiters) {
                let Waiter { owner, .. } = core.waiters.remove(waiter);
                self.count -= 1;
                if self.ends_if_dropped(core, cache.as_deref(), owner) {
                    continue;
                }
                core.stats.counters.failed_pages += 1;
                match owner {
                    Owner::CachePage(slot) => {
                        let cache = cache.as_deref_mut().expect("the drive has a write cache");
                        cache.on_write_back_failed(core, host, slot);
                    }
                    Owner::Request(id) => {
                        host.requests.fail(id, FailReason::WornOut);
                        host.page_done(core, id);
                    }
                    _ => unreachable!("only pages of requests and of the write cache wait for room"),
                }
            }
        }
    }
}

impl<P: Probe> Drive<P> {
    pub(super) fn accept(&mut self, request: &Request) -> u64 {
        let host = &mut self.path.host;
        let slot = host.requests.insert(request);
        let id = host.requests.get(slot).id;
        self.core.stats.on_submitted(self.core.now, request);
        self.core.probe.on_submitted(slot, id, request, self.core.pool.next_order());
        if host.link.is_some() {
            host.send_to_drive(&mut self.core, slot);
        } else {
            self.begin(slot, request);
        }
        id
    }

    /// A request has reached the drive.
    #[inline(always)]
    pub(super) fn begin(&mut self, slot: RequestId, request: &Request) {
        let epoch = self.path.host.epochs.open();
        match request.op {
            Op::Read => self.read(slot, request),
            Op::Write => {
                self.path.host.requests.get(slot).epoch = epoch;
                self.path.host.epochs.join(epoch);
                self.write(slot, request);
            }
            Op::Trim => self.trim(request),
            Op::Flush => {
                let id = self.path.host.requests.get(slot).id;
                self.core.probe.on_flush_asked(id);
                self.path.host.epochs.end_with(slot);
                self.path.host.flushes += 1;
                self.with_cache(Caching::sync_more);
            }
        }
        if request.op == Op::Flush {
            self.path.host.complete_flushes(&mut self.core);
        } else {
            self.path.host.page_done(&mut self.core, slot);
        }
    }

    /// A page that has waited for its map entry goes on with it, or fails with its translation page. The write cache's own
    /// go on: a lost translation page is made anew from the OOB of the data pages.
    #[inline(never)]
    pub(super) fn on_entry(&mut self, waiter: &Waiter, is_lost: bool) {
        if is_lost && let Owner::Request(id) = waiter.owner {
            self.path.host.fail_page(&mut self.core, id);
            if waiter.wants == Wants::Read {
                self.core.probe.on_read_failed(id, waiter.lpn);
            }
            self.path.host.page_done(&mut self.core, id);
            return;
        }
        self.path.mapping.keep_entry(&mut self.core, waiter.lpn);
        match (waiter.owner, waiter.wants) {
            (Owner::CachePage(slot), Wants::Read) => {
                self.with_cache(|cache, core, _| cache.fetch_mapped(core, slot));
            }
            (Owner::CachePage(_), _) => {
                let DataPath { mapping, writes, .. } = &mut self.path;
                writes.program_page(&mut self.core, mapping, self.caching.as_mut(), waiter.owner, waiter.lpn);
            }
            (owner, Wants::Read) => {
                self.read_mapped(owner.request(), waiter.lpn);
                self.path.host.page_done(&mut self.core, owner.request());
            }
            (owner, wants) => self.write_mapped(owner.request(), waiter.lpn, wants == Wants::PartialWrite),
        }
    }

    fn read(&mut self, id: RequestId, request: &Request) {
        let (first, last) = Host::pages(&self.core, request);
        for lpn in (first..=last).map(Lpn) {
            self.core.probe.on_read_asked(id, lpn);
            if let Some(cache) = &mut self.caching
                && cache.read(&mut self.core, &mut self.path, id, lpn)
            {
                continue;
            }
            if self.path.mapping.has_entry(&mut self.core, lpn, Owner::Request(id), Wants::Read) {
                self.read_mapped(id, lpn);
            } else {
                self.path.host.requests.get(id).pages_left += 1;
            }
        }
    }

    /// Reads a page whose map entry is at hand.
    #[inline]
    pub(super) fn read_mapped(&mut self, id: RequestId, lpn: Lpn) {
        let Some(ppn) = self.core.ftl.map.get(lpn) else {
            self.core.stats.counters.unmapped_reads += 1;
            self.core.probe.on_read_answered(id, lpn, None);
            return;
        };
        if self.core.is_in_flight(ppn) {
            if self.core.array.is_lost(ppn) {
                self.path.host.fail_page(&mut self.core, id);
                self.core.probe.on_read_failed(id, lpn);
            } else {
                self.core.stats.counters.buffered_reads += 1;
                self.core.probe.on_read_answered(id, lpn, Some(self.core.array.stamp(ppn).sequence));
            }
            return;
        }
        self.path.host.requests.get(id).pages_left += 1;
        self.read_for_host(ppn, lpn, Owner::Request(id));
    }

    /// Queues a read for a host request.
    fn read_for_host(&mut self, ppn: Ppn, lpn: Lpn, owner: Owner) {
        let (cause, class) = (Cause::Host, Class::HostRead);
        let slot = self.core.read(Read { ppn, lpn, owner, cause, class, start: Start::Policy });
        if let Some(cache) = &mut self.error_cache {
            cache.on_host_read(&mut self.core, slot);
        }
    }

    fn write(&mut self, id: RequestId, request: &Request) {
        let bytes = u64::from(self.core.geometry.page_bytes);
        let (first, last) = Host::pages(&self.core, request);
        let end = request.offset + request.len;
        self.path.host.requests.get(id).pages_left += last - first + 1;
        for page in first..=last {
            if let Some(cache) = &mut self.caching {
                cache.write(&mut self.core, &mut self.path, id, Lpn(page));
                continue;
            }
            let start = u64::from(page) * bytes;
            let is_partial = request.offset > start || end < start + bytes;
            let wants = if is_partial { Wants::PartialWrite } else { Wants::Write };
            if self.path.mapping.has_entry(&mut self.core, Lpn(page), Owner::Request(id), wants) {
                self.write_mapped(id, Lpn(page), is_partial);
            }
        }
    }

    /// Writes a page whose map entry is at hand.
    #[inline]
    pub(super) fn write_mapped(&mut self, request: RequestId, lpn: Lpn, is_partial: bool) {
        if !self.path.host.merging.is_empty()
            && let Some(waiting) = self.path.host.merging.waiting.get_mut(&lpn.0)
        {
            waiting.push_back((request, is_partial));
            return;
        }
        if is_partial {
            self.core.stats.counters.partial_writes += 1;
            if let Some(ppn) = self.core.ftl.map.get(lpn) {
                if !self.core.is_in_flight(ppn) {
                    self.path.host.merging.waiting.insert(lpn.0, VecDeque::new());
                    self.read_for_host(ppn, lpn, Owner::Merge(request));
                    return;
                }
                if self.core.array.is_lost(ppn) {
                    self.path.host.fail_merge(&mut self.core, request);
                    return;
                }
            }
        }
        self.path.writes.program_page(
            &mut self.core,
            &mut self.path.mapping,
            self.caching.as_mut(),
            Owner::Request(request),
            lpn,
        );
    }

    #[inline(never)]
    fn trim(&mut self, request: &Request) {
        let bytes = u64::from(self.core.geometry.page_bytes);
        // Only whole pages are deallocated.
        let first = request.offset.div_ceil(bytes) as u32;
        let end = ((request.offset + request.len) / bytes) as u32;
        // The translation page that the last LPNs have changed: one after the other, each is written back once.
        let mut changed = None;
        for lpn in (first..end).map(Lpn) {
            let host = &mut self.path.host;
            let was_cached = self.caching.as_mut().is_some_and(|cache| cache.trim(&mut self.core, host, lpn));
            let old = self.core.ftl.unmap(&self.core.geometry, &mut self.core.array, lpn);
            if let Some(old) = old {
                self.on_page_gone(old);
                self.core.look_if_dead(self.core.geometry.block_of(old));
            }
            if old.is_some() || was_cached {
                self.core.sequence += 1;
                self.core.stats.counters.trimmed_pages += 1;
                self.core.probe.on_trimmed(lpn, self.core.sequence);
                if self.core.array.is_stamped() {
                    self.path.host.trims.add(lpn, self.core.sequence);
                }
                let page = self.path.mapping.on_unmapped(&mut self.core, lpn);
                if let Some(before) = changed
                    && page.is_some_and(|page| page != before)
                {
                    self.path.mapping.write_back(&mut self.core, before);
                }
                changed = page.or(changed);
            }
        }
        if let Some(page) = changed {
            self.path.mapping.write_back(&mut self.core, page);
        }
        // What has gone from the write cache makes room in it, and no flush waits for it.
        if self.caching.is_some() {
            self.path.host.complete_flushes(&mut self.core);
            self.core.wake(Wake::CacheRoom);
        }
    }

    /// A page has been read for a partial write, which is done with it, or for those that waited for it.
    #[inline(never)]
    fn on_merge_read(&mut self, request: RequestId, read: &Transaction) {
        self.core.stats.counters.merge_reads += 1;
        let waiting = self.path.host.merging.waiting.remove(&read.lpn.0).expect("a merge locks its LPN");
        if read.is_uncorrectable() {
            self.path.host.fail_merge(&mut self.core, request);
        } else {
            self.path.writes.program_page(
                &mut self.core,
                &mut self.path.mapping,
                self.caching.as_mut(),
                Owner::Request(request),
                read.lpn,
            );
        }
        // The first of those that waited may lock the LPN again; the rest then waits behind it.
        for (request, is_partial) in waiting {
            self.write_mapped(request, read.lpn, is_partial);
        }
    }

    #[inline]
    pub(super) fn on_host_read(&mut self, read: &Transaction) {
        let id = match read.owner {
            Owner::Request(id) => id,
            Owner::Merge(id) => return self.on_merge_read(id, read),
            _ => unreachable!("a host read belongs to a request"),
        };
        if read.is_uncorrectable() {
            self.path.host.fail_page(&mut self.core, id);
            self.core.probe.on_read_failed(id, read.lpn);
        } else if P::STAMPED {
            // The OOB says what was read; a page that is gone says so.
            let core = &mut self.core;
            let lpn = core.array.lpn(read.ppn);
            let sequence = (lpn == read.lpn).then(|| core.array.stamp(read.ppn).sequence);
            let name = || core.geometry.show(read.ppn);
            assert!(lpn.0 != DEAD_LPN, "a host read found the erased page {}", name());
            assert!(!core.array.is_torn(read.ppn), "a host read found the torn page {}", name());
            core.probe.on_read_answered(id, read.lpn, sequence);
        }
        if !read.is_uncorrectable() {
            self.with_cache(|cache, core, path| cache.keep_read(core, path, read));
        }
        self.path.host.page_done(&mut self.core, id);
    }

    #[inline]
    pub(super) fn on_host_programmed(&mut self, id: RequestId, done: &Transaction) {
        self.core.tell_durable(done);
        self.path.host.page_done(&mut self.core, id);
    }
}
