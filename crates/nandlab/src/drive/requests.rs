//! The path of host requests: requests are split into pages, pages become transactions, the last page completes the
//! request.
//!
//! Without a write cache a write is mapped when it is admitted, not when it is programmed: from its admission on it is
//! the newest data of its LPN, and reads are answered from the controller's buffer until the program has ended. Until
//! then the block of the replaced page is pinned, so acknowledged data is always in flash.

use super::Drive;
use super::together::Path;
use crate::base::geometry::{CacheSlot, Lpn, Ppn, RequestId, Tvpn};
use crate::core::{Map, Read, Waiter, Wake, Wants};
use crate::flash::DEAD_LPN;
use crate::host::{Host, Op, Request};
use crate::probe::Probe;
use crate::sched::{Cause, Class, Owner, Start, Transaction};
use crate::write_cache::Caching;
use std::collections::VecDeque;

impl<P: Probe> Drive<P> {
    /// Takes a submitted request: sends it over the link, or begins it at once. Returns its id.
    pub(crate) fn accept(&mut self, request: &Request) -> u64 {
        let host = &mut self.path.host;
        let slot = host.requests.insert(request);
        let id = host.requests.get(slot).id;
        host.record.on_submitted(self.core.now);
        self.core.probe.on_submitted(slot, id, request, self.core.pool.next_order());
        if host.link.is_some() {
            host.send_to_drive(&mut self.core, slot);
        } else {
            self.begin(slot, request);
        }
        id
    }

    /// Begins a request that has reached the drive.
    #[inline(always)]
    pub(crate) fn begin(&mut self, slot: RequestId, request: &Request) {
        let epoch = self.path.host.epochs.open();
        match request.op {
            Op::Read => self.read(slot, request),
            Op::Write => {
                self.path.host.requests.get(slot).epoch = epoch;
                self.path.host.epochs.join(epoch);
                self.write(slot, request);
            }
            Op::Trim => {
                self.path.host.requests.get(slot).epoch = epoch;
                self.trim(slot, request);
            }
            Op::Flush => {
                self.path.host.requests.get(slot).epoch = epoch;
                let id = self.path.host.requests.get(slot).id;
                self.core.probe.on_flush_asked(id);
                self.path.host.epochs.end_with(slot);
                self.path.host.flushes += 1;
                self.core.close_buffered();
                self.with_cache(Caching::sync_more);
            }
        }
        if request.op == Op::Flush {
            self.path.host.complete_flushes(&mut self.core);
        } else {
            self.path.host.page_done(&mut self.core, slot);
        }
    }

    /// A page that has waited for its map entry continues. If the translation page `is_lost`, a page of a host request
    /// fails; a page of the write cache continues, because the translation page is rebuilt from the OOB of the data
    /// pages.
    #[inline(never)]
    pub(crate) fn on_map_entry(&mut self, waiter: &Waiter, is_lost: bool) {
        if is_lost && let Owner::Request(id) = waiter.owner {
            self.path.host.fail_page(id);
            if waiter.wants == Wants::Read {
                self.core.probe.on_read_failed(id, waiter.lpn);
            }
            self.path.host.page_done(&mut self.core, id);
            return;
        }
        self.path.map.keep_entry(&mut self.core, waiter.lpn);
        match (waiter.owner, waiter.wants) {
            (Owner::CachePage(slot), Wants::Read) => {
                self.with_cache(|cache, core, path| cache.fetch_mapped(core, &path.map, slot));
            }
            (Owner::CachePage(_), _) => {
                let Path { host, map, writes } = &mut self.path;
                writes.program_page(
                    &mut self.core,
                    host,
                    map,
                    self.caching.as_mut(),
                    waiter.owner,
                    waiter.lpn,
                );
            }
            (owner, Wants::Read) => {
                self.read_mapped(owner.request(), waiter.lpn);
                self.path.host.page_done(&mut self.core, owner.request());
            }
            (owner, wants) => self.resume_write(owner.request(), waiter.lpn, wants == Wants::PartialWrite),
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
            if self.path.map.has_entry(&mut self.core, lpn, Owner::Request(id), Wants::Read) {
                self.read_mapped(id, lpn);
            } else {
                self.path.host.requests.get(id).pages_left += 1;
            }
        }
    }

    /// Reads a page whose map entry is available.
    #[inline]
    pub(crate) fn read_mapped(&mut self, id: RequestId, lpn: Lpn) {
        let Some(ppn) = self.core.ftl.map.get(lpn) else {
            self.path.host.record.counters.unmapped_reads += 1;
            self.core.probe.on_read_answered(id, lpn, None);
            return;
        };
        if self.core.is_in_flight(ppn) {
            if self.core.array.is_lost(ppn) {
                self.path.host.fail_page(id);
                self.core.probe.on_read_failed(id, lpn);
            } else {
                self.path.host.record.counters.buffered_reads += 1;
                self.core.probe.on_read_answered(id, lpn, Some(self.core.array.stamp(ppn).sequence));
            }
            return;
        }
        self.path.host.requests.get(id).pages_left += 1;
        self.read_for_host(ppn, lpn, Owner::Request(id));
    }

    /// Reads the page of a read that missed the write cache from flash into the slot taken for it.
    #[inline(never)]
    pub(super) fn read_into_cache(&mut self, slot: CacheSlot) {
        let caching = self.caching.as_ref().expect("only a write cache has slots");
        let lpn = caching.cache.entry(slot).lpn;
        if let Some(ppn) = caching.page_to_fetch(&mut self.core, slot) {
            self.read_for_host(ppn, lpn, Owner::CachePage(slot));
            return;
        }
        let (map, counters) = (&self.core.ftl.map, &mut self.path.host.record.counters);
        match map.get(lpn) {
            None => counters.unmapped_reads += 1,
            Some(ppn) => counters.buffered_reads += u64::from(!self.core.array.is_lost(ppn)),
        }
    }

    /// Queues a read for a host request.
    fn read_for_host(&mut self, ppn: Ppn, lpn: Lpn, owner: Owner) {
        let (cause, class) = (Cause::Host, Class::HostRead);
        let page_level = self.core.page_level(&self.path.map, lpn);
        let slot = self.core.read(Read { ppn, lpn, owner, cause, class, start: Start::Policy, page_level });
        self.reads.on_host_read(&self.core, slot);
        self.schemes.refreshing.on_host_read(&mut self.core, slot);
    }

    /// Writes back a translation page that a deallocation has changed, or that is stale after a power loss.
    pub(super) fn write_back(&mut self, page: Tvpn) {
        let mapping = self.path.map.as_mut().expect("only a demand map has translation pages");
        mapping.write_back(&mut self.core, page);
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
            if self.replace_buffered(id, Lpn(page), is_partial) {
                continue;
            }
            let wants = if is_partial { Wants::PartialWrite } else { Wants::Write };
            if self.path.map.has_entry(&mut self.core, Lpn(page), Owner::Request(id), wants) {
                self.write_mapped(id, Lpn(page), is_partial);
            }
        }
    }

    /// Replaces the data of a page in the write buffer by that of a write, if it can be replaced. Returns whether it has
    /// been. Neither the old data nor the map entry is needed.
    #[inline]
    fn replace_buffered(&mut self, request: RequestId, lpn: Lpn, is_partial: bool) -> bool {
        let host = &mut self.path.host;
        let is_replaced = host.replace_buffered(&mut self.core, request, lpn);
        host.record.counters.partial_writes += u64::from(is_replaced && is_partial);
        is_replaced
    }

    /// Writes a page that has waited for its map entry or for a merge.
    fn resume_write(&mut self, request: RequestId, lpn: Lpn, is_partial: bool) {
        if !self.replace_buffered(request, lpn, is_partial) {
            self.write_mapped(request, lpn, is_partial);
        }
    }

    /// Writes a page whose map entry is available.
    #[inline]
    fn write_mapped(&mut self, request: RequestId, lpn: Lpn, is_partial: bool) {
        if !self.path.host.merging.is_empty()
            && let Some(waiting) = self.path.host.merging.waiting.get_mut(&lpn.0)
        {
            waiting.push_back((request, is_partial));
            return;
        }
        if is_partial {
            self.path.host.record.counters.partial_writes += 1;
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
            &mut self.path.host,
            &mut self.path.map,
            self.caching.as_mut(),
            Owner::Request(request),
            lpn,
        );
    }

    #[inline(never)]
    fn trim(&mut self, id: RequestId, request: &Request) {
        let bytes = u64::from(self.core.geometry.page_bytes);
        // Only whole pages are deallocated.
        let first = request.offset.div_ceil(bytes) as u32;
        let end = ((request.offset + request.len) / bytes) as u32;
        // The translation page of the last deallocated LPN. LPNs ascend, so each changed translation page is written
        // back once.
        let mut changed = None;
        for lpn in (first..end).map(Lpn) {
            let host = &mut self.path.host;
            let was_cached = self.caching.as_mut().is_some_and(|cache| cache.trim(&mut self.core, host, lpn));
            let old = self.core.ftl.unmap(&self.core.geometry, &mut self.core.array, lpn);
            if let Some(old) = old {
                self.schemes.refreshing.on_page_obsolete(&mut self.core, old);
                self.core.look_if_dead(self.core.geometry.block_of(old));
            }
            if old.is_some() || was_cached {
                self.core.sequence += 1;
                self.path.host.record.counters.trimmed_pages += 1;
                self.path.host.on_admitted(id, lpn, self.core.sequence);
                self.core.probe.on_trimmed(id, lpn, self.core.sequence);
                if self.core.array.keeps_sequences() {
                    self.path.host.trims.add(lpn, self.core.sequence);
                }
                let page = self.path.map.on_unmapped(&mut self.core, lpn);
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
        if self.path.host.is_backed {
            self.bound_trim_records();
        } else if self.core.state.is_syncing && self.acknowledges_from_cache() {
            // The deallocated pages may have had data that a flush or a FUA write has acknowledged from the cache. Older
            // data must not come back.
            self.path.host.trims.make_durable();
        }
        // Deallocated pages leave room in the write cache, and flushes need not wait for them.
        if self.caching.is_some() {
            self.path.host.complete_flushes(&mut self.core);
            self.core.wake(Wake::CacheRoom);
        }
    }

    /// The old page has been read for a partial write: programs the merged page; then the writes that waited for the
    /// LPN continue.
    #[inline(never)]
    fn on_merge_read(&mut self, request: RequestId, read: &Transaction) {
        self.path.host.record.counters.merge_reads += 1;
        let waiting = self.path.host.merging.waiting.remove(&read.lpn.0).expect("a merge locks its LPN");
        if read.is_uncorrectable() {
            self.path.host.fail_merge(&mut self.core, request);
        } else {
            self.path.writes.program_page(
                &mut self.core,
                &mut self.path.host,
                &mut self.path.map,
                self.caching.as_mut(),
                Owner::Request(request),
                read.lpn,
            );
        }
        // The first waiting write may lock the LPN again; the others then wait for that lock.
        for (request, is_partial) in waiting {
            self.resume_write(request, read.lpn, is_partial);
        }
    }

    #[inline]
    pub(crate) fn on_host_read(&mut self, read: &Transaction) {
        let id = match read.owner {
            Owner::Request(id) => id,
            Owner::Merge(id) => return self.on_merge_read(id, read),
            _ => unreachable!("a host read belongs to a request"),
        };
        if read.is_uncorrectable() {
            self.path.host.fail_page(id);
            self.core.probe.on_read_failed(id, read.lpn);
        } else if P::STAMPED {
            // The OOB has the sequence number of the write that was read. An erased or torn page must never be read.
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
    pub(crate) fn on_host_programmed(&mut self, id: RequestId, done: &Transaction) {
        self.core.tell_durable(done);
        self.path.host.page_done(&mut self.core, id);
    }
}
