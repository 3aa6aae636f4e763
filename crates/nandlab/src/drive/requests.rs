//! The path of host requests: requests are split into units, units become transactions, the last unit completes the
//! request.
//!
//! Without a write cache a write is mapped when it is admitted, not when it is programmed: from its admission on it is
//! the newest data of its LPN, and reads are answered from the controller's buffer until the program has ended. Until
//! then the superblock of the replaced unit is pinned, so acknowledged data is always in flash.

use super::Drive;
use super::together::Path;
use crate::base::geometry::{CacheSlot, Lpn, RequestId, Tvpn, UnitId};
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
        host.record.on_submitted(self.core.now());
        self.core.probe.on_submitted(slot, id, request, self.core.next_order());
        if host.link.is_some() {
            host.send_to_drive(&mut self.core, slot);
        } else {
            self.reach(slot, request);
        }
        id
    }

    /// A request has reached the drive: its command goes to the controller, or the request begins at once.
    #[inline(always)]
    pub(crate) fn reach(&mut self, slot: RequestId, request: &Request) {
        self.core.probe.on_reached(self.core.now(), slot);
        match &mut self.path.host.controller {
            Some(controller) => controller.take(&mut self.core, slot, request.op, request.tag.queue),
            None => self.begin(slot, request),
        }
    }

    /// Begins a request that has reached the drive, and whose command has ended.
    #[inline(always)]
    pub(crate) fn begin(&mut self, slot: RequestId, request: &Request) {
        self.core.probe.on_begun(self.core.now(), slot);
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
                if !self.path.host.is_backed {
                    self.core.close_buffered();
                }
                self.with_cache(Caching::sync_more);
            }
        }
        if request.op == Op::Flush {
            self.path.host.complete_flushes(&mut self.core);
        } else {
            self.path.host.unit_done(&mut self.core, slot);
        }
    }

    /// A unit that has waited for its map entry continues. If the translation page `is_lost`, a unit of a host request
    /// fails; a unit of the write cache continues, because the translation page is rebuilt from the OOB of the data
    /// units.
    #[inline(never)]
    pub(crate) fn on_map_entry(&mut self, waiter: &Waiter, is_lost: bool) {
        if is_lost && let Owner::Request(id) = waiter.owner {
            self.path.host.fail_unit(id);
            if waiter.wants == Wants::Read {
                self.core.probe.on_read_failed(id, waiter.lpn);
            }
            self.path.host.unit_done(&mut self.core, id);
            return;
        }
        self.path.map.keep_entry(&mut self.core, waiter.lpn);
        match (waiter.owner, waiter.wants) {
            (Owner::CacheUnit(slot), Wants::Read) => {
                self.with_cache(|cache, core, path| cache.fetch_mapped(core, &path.map, slot));
            }
            (Owner::CacheUnit(_), _) => {
                let Path { host, map, writes } = &mut self.path;
                writes.program_unit(
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
                self.path.host.unit_done(&mut self.core, owner.request());
            }
            (owner, wants) => self.resume_write(owner.request(), waiter.lpn, wants == Wants::PartialWrite),
        }
    }

    fn read(&mut self, id: RequestId, request: &Request) {
        let (first, last) = Host::units(&self.core, request);
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
                self.path.host.requests.get(id).units_left += 1;
            }
        }
    }

    /// Reads a unit whose map entry is available.
    #[inline]
    pub(crate) fn read_mapped(&mut self, id: RequestId, lpn: Lpn) {
        let Some(unit) = self.core.unit_of(lpn) else {
            self.path.host.record.counters.unmapped_reads += 1;
            self.core.probe.on_read_answered(id, lpn, None);
            return;
        };
        if self.core.is_in_flight(unit) {
            if self.core.flash().is_lost(unit) {
                self.path.host.fail_unit(id);
                self.core.probe.on_read_failed(id, lpn);
            } else {
                self.path.host.record.counters.buffered_reads += 1;
                self.core.probe.on_read_answered(id, lpn, Some(self.core.sequence_of(unit)));
            }
            return;
        }
        self.path.host.requests.get(id).units_left += 1;
        self.read_for_host(unit, lpn, Owner::Request(id));
    }

    /// Reads the unit of a read that missed the write cache from flash into the slot taken for it.
    #[inline(never)]
    pub(super) fn read_into_cache(&mut self, slot: CacheSlot) {
        let caching = self.caching.as_ref().expect("only a write cache has slots");
        let lpn = caching.cache.entry(slot).lpn;
        if let Some(unit) = caching.unit_to_fetch(&mut self.core, slot) {
            self.read_for_host(unit, lpn, Owner::CacheUnit(slot));
            return;
        }
        let (map, counters) = (&self.core.ftl().map, &mut self.path.host.record.counters);
        match map.get(lpn) {
            None => counters.unmapped_reads += 1,
            Some(unit) => counters.buffered_reads += u64::from(!self.core.flash().is_lost(unit)),
        }
    }

    /// Queues a read for a host request.
    fn read_for_host(&mut self, unit: UnitId, lpn: Lpn, owner: Owner) {
        let (cause, class) = (Cause::Host, Class::HostRead);
        let unit_level = self.core.unit_level(&self.path.map, lpn);
        let slot = self.core.read(Read { unit, lpn, owner, cause, class, start: Start::Policy, unit_level });
        self.reads.on_host_read(&self.core, slot);
        self.schemes.refreshing.on_host_read(&mut self.core, slot);
    }

    /// Writes back a translation page that a deallocation has changed, or that is stale after a power loss.
    pub(super) fn write_back(&mut self, tvpn: Tvpn) {
        let mapping = self.path.map.as_mut().expect("only a demand map has translation pages");
        mapping.write_back(&mut self.core, tvpn);
    }

    fn write(&mut self, id: RequestId, request: &Request) {
        let bytes = u64::from(self.core.geometry().unit_bytes);
        let (first, last) = Host::units(&self.core, request);
        let end = request.offset + request.len;
        self.path.host.requests.get(id).units_left += last - first + 1;
        for lpn in (first..=last).map(Lpn) {
            if let Some(cache) = &mut self.caching {
                cache.write(&mut self.core, &mut self.path, id, lpn);
                continue;
            }
            let start = u64::from(lpn.0) * bytes;
            let is_partial = request.offset > start || end < start + bytes;
            if self.replace_buffered(id, lpn, is_partial) {
                continue;
            }
            let wants = if is_partial { Wants::PartialWrite } else { Wants::Write };
            if self.path.map.has_entry(&mut self.core, lpn, Owner::Request(id), wants) {
                self.write_mapped(id, lpn, is_partial);
            }
        }
    }

    /// Replaces the data of a unit in the write buffer by that of a write, if it can be replaced. Returns whether it
    /// has been. Neither the old data nor the map entry is needed.
    #[inline]
    fn replace_buffered(&mut self, request: RequestId, lpn: Lpn, is_partial: bool) -> bool {
        let host = &mut self.path.host;
        let is_replaced = host.replace_buffered(&mut self.core, request, lpn);
        host.record.counters.partial_writes += u64::from(is_replaced && is_partial);
        is_replaced
    }

    /// Writes a unit that has waited for its map entry or for a merge.
    fn resume_write(&mut self, request: RequestId, lpn: Lpn, is_partial: bool) {
        if !self.replace_buffered(request, lpn, is_partial) {
            self.write_mapped(request, lpn, is_partial);
        }
    }

    /// Writes a unit whose map entry is available.
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
            if let Some(unit) = self.core.unit_of(lpn) {
                if !self.core.is_in_flight(unit) {
                    self.path.host.merging.waiting.insert(lpn.0, VecDeque::new());
                    self.read_for_host(unit, lpn, Owner::Merge(request));
                    return;
                }
                if self.core.flash().is_lost(unit) {
                    self.path.host.fail_merge(&mut self.core, request);
                    return;
                }
            }
        }
        self.path.writes.program_unit(
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
        let bytes = u64::from(self.core.geometry().unit_bytes);
        // Only whole units are deallocated.
        let first = request.offset.div_ceil(bytes) as u32;
        let end = ((request.offset + request.len) / bytes) as u32;
        // The translation page of the last deallocated LPN. LPNs ascend, so each changed translation page is written
        // back once.
        let mut changed = None;
        for lpn in (first..end).map(Lpn) {
            let host = &mut self.path.host;
            let was_cached = self.caching.as_mut().is_some_and(|cache| cache.trim(&mut self.core, host, lpn));
            let old = self.core.unmap(lpn);
            if let Some(old) = old {
                self.schemes.refreshing.on_unit_obsolete(&mut self.core, old);
                self.core.look_if_dead(self.core.geometry().superblock_of(old));
            }
            if old.is_some() || was_cached {
                let sequence = self.core.next_sequence();
                self.path.host.record.counters.trimmed_pages += 1;
                self.path.host.on_admitted(id, lpn, sequence);
                self.core.probe.on_trimmed(id, lpn, sequence);
                if self.core.flash().keeps_sequences() {
                    self.path.host.trims.add(lpn, sequence);
                }
                let tvpn = self.path.map.on_unmapped(&mut self.core, lpn);
                if let Some(before) = changed
                    && tvpn.is_some_and(|tvpn| tvpn != before)
                {
                    self.write_back(before);
                }
                changed = tvpn.or(changed);
            }
        }
        if let Some(tvpn) = changed {
            self.write_back(tvpn);
        }
        if self.path.host.is_backed {
            self.bound_trim_records();
        } else if self.core.state().is_syncing && self.acknowledges_from_cache() {
            // The deallocated units may have had data that a flush or a FUA write has acknowledged from the cache.
            // Older data must not come back.
            self.path.host.trims.make_durable();
        }
        // Deallocated units leave room in the write cache, and flushes need not wait for them.
        if self.caching.is_some() {
            self.path.host.complete_flushes(&mut self.core);
            self.core.wake(Wake::CacheRoom);
        }
    }

    /// The old unit has been read for a partial write: programs the merged unit; then the writes that waited for the
    /// LPN continue.
    #[inline(never)]
    fn on_merge_read(&mut self, request: RequestId, read: &Transaction) {
        self.path.host.record.counters.merge_reads += 1;
        let waiting = self.path.host.merging.waiting.remove(&read.lpn.0).expect("a merge locks its LPN");
        if read.is_uncorrectable() {
            self.path.host.fail_merge(&mut self.core, request);
        } else {
            self.path.writes.program_unit(
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
            self.path.host.fail_unit(id);
            self.core.probe.on_read_failed(id, read.lpn);
        } else if self.core.probe.needs_sequences() {
            // The OOB has the sequence number of the write that was read. An erased or torn unit must never be read.
            let core = &mut self.core;
            let lpn = core.flash().lpn(read.unit);
            let sequence = (lpn == read.lpn).then(|| core.sequence_of(read.unit));
            let name = || core.geometry().show(read.unit);
            assert!(lpn.0 != DEAD_LPN, "a host read found the erased unit {}", name());
            assert!(!core.flash().is_torn(read.unit), "a host read found the torn unit {}", name());
            core.probe.on_read_answered(id, read.lpn, sequence);
        }
        if !read.is_uncorrectable() {
            self.with_cache(|cache, core, path| cache.keep_read(core, path, read));
        }
        self.path.host.unit_done(&mut self.core, id);
    }

    #[inline]
    pub(crate) fn on_host_programmed(&mut self, id: RequestId, done: &Transaction) {
        self.core.tell_durable(done);
        self.path.host.unit_done(&mut self.core, id);
    }
}
