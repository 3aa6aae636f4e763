//! Reads of host units: from the cache, and from flash into the cache.
//!
//! A read that finds all its sectors in the cache never waits. Under `cache.read_room = "skip"` a read of a unit that
//! is not cached is answered from flash; the unit is cached afterwards if there is a slot. Under `wait` such a read
//! first takes a slot: a free slot, or the slot of a clean victim. Without one it waits, in order with the writes that
//! wait, until a victim has been written back ("the required data of incoming requests only can be inserted into the
//! cache when dirty pages have been evicted", Section III-B of the aging-capacitor paper). Then the map entry is looked
//! up, and the unit is read into the slot with the cause and the statistics of a host read. The read is answered from
//! the slot, which takes a DRAM access. The details of `wait`:
//!
//! - Reads of a unit that is being read into its slot wait for that read of flash. After it all sectors of the unit are
//!   valid.
//! - A read that waits behind a write of the same unit returns the data of that write, without a read of flash. Of
//!   several reads that wait for one unit, each counts as needing a slot, although only the first one takes a slot.
//! - A read of an unmapped unit needs no slot: there is no data to insert. The same holds for a read whose unit is
//!   deallocated while the read waits: it is answered when it is the first in line.
//! - A read of a lost unit fails, and the unit does not stay in the cache.
//! - A waiting read needs no room in the dirty budget. With a budget of 0 the dirty units for which it may have to wait
//!   are those that are being written through.
//! - A power loss aborts waiting reads like all outstanding requests.

use super::{CacheSlot, Caching, ReadRoom, settled};
use crate::base::geometry::{Lpn, RequestId};
use crate::core::{Component, Core, Map, Wake, Wants};
use crate::host::{DataPath, Host};
use crate::probe::Probe;
use crate::sched::Transaction;

impl Caching {
    /// Reads a unit. Returns whether the cache answers or fails the read, now or later; if not, flash has to be read.
    #[inline(never)]
    pub(crate) fn read<P: Probe>(
        &mut self,
        core: &mut Core<P>,
        path: &mut DataPath<impl Map<P>>,
        request: RequestId,
        lpn: Lpn,
    ) -> bool {
        let _inside = core.enter(Component::WriteCache);
        if let Some(slot) = self.cache.find(lpn) {
            path.host.requests.get(request).units_left += 1;
            let is_hit = self.read_slot(core, path, request, lpn, slot);
            self.stats.read_hits += u64::from(is_hit);
            self.stats.read_misses += u64::from(!is_hit);
            return true;
        }
        self.stats.read_misses += 1;
        let waits = self.read_room == ReadRoom::Wait && core.unit_of(lpn).is_some();
        if !waits {
            let is_lost = self.lost.contains_key(&lpn.0);
            if is_lost {
                path.host.fail_unit(request);
                core.probe.on_read_failed(request, lpn);
            }
            return is_lost;
        }
        path.host.requests.get(request).units_left += 1;
        if !self.try_read(core, path, request, lpn, false) {
            self.wait_in_line(core, request, lpn, Wants::ReadSlot);
            self.stats.waiting_reads += 1;
            core.wake(Wake::CacheRoom);
        }
        true
    }

    /// Reads a unit of a request that waits for a slot or needs one now. Returns `false` if the unit must wait for a
    /// slot; unless `is_first`, it must also wait if it needs a slot and other units are waiting already. If the unit
    /// has been cached, lost or deallocated since the read missed, the read needs no slot.
    pub(super) fn try_read<P: Probe>(
        &mut self,
        core: &mut Core<P>,
        path: &mut DataPath<impl Map<P>>,
        request: RequestId,
        lpn: Lpn,
        is_first: bool,
    ) -> bool {
        if let Some(slot) = self.cache.find(lpn) {
            self.read_slot(core, path, request, lpn, slot);
            return true;
        }
        if self.lost.contains_key(&lpn.0) {
            path.host.fail_unit(request);
            core.probe.on_read_failed(request, lpn);
            path.host.unit_done(core, request);
            return true;
        }
        if core.unit_of(lpn).is_none() {
            path.host.record.counters.unmapped_reads += 1;
            core.probe.on_read_answered(request, lpn, None);
            path.host.unit_done(core, request);
            return true;
        }
        if self.waiting_len > 0 && !is_first {
            return false;
        }
        let Some((slot, has_evicted)) = self.take_slot(core) else { return false };
        self.stats.evictions += u64::from(has_evicted);
        self.cache.insert(slot, lpn);
        self.cache.entry_mut(slot).is_read_miss = true;
        self.wait_for(core, slot, request, Wants::Read);
        self.fetch(core, path, slot);
        true
    }

    /// Reads a unit that has a slot. If some of its sectors are not in the cache, the read waits until they have been
    /// read from flash. Returns whether all sectors are in the cache.
    fn read_slot<P: Probe>(
        &mut self,
        core: &mut Core<P>,
        path: &mut DataPath<impl Map<P>>,
        request: RequestId,
        lpn: Lpn,
        slot: CacheSlot,
    ) -> bool {
        let (_, sectors) = self.sectors(core, &path.host.requests.request(request), lpn);
        if !self.cache.entry(slot).is_leaving {
            self.cache.touch(slot);
        }
        let is_hit = sectors & !self.cache.entry(slot).valid == 0;
        if is_hit {
            self.answer_cached(core, &mut path.host, request, lpn, slot);
        } else {
            self.wait_for(core, slot, request, Wants::Read);
            self.fetch(core, path, slot);
        }
        is_hit
    }

    /// Answers a read whose sectors are all in the cache; fails the request if some of these sectors are lost.
    pub(super) fn answer_cached<P: Probe>(
        &mut self,
        core: &mut Core<P>,
        host: &mut Host,
        request: RequestId,
        lpn: Lpn,
        slot: CacheSlot,
    ) {
        let (_, sectors) = self.sectors(core, &host.requests.request(request), lpn);
        let entry = self.cache.entry(slot);
        let (sequence, is_lost) = ((!entry.is_blank).then_some(entry.sequence), sectors & entry.lost != 0);
        if is_lost {
            host.fail_unit(request);
            core.probe.on_read_failed(request, lpn);
        } else {
            core.probe.on_read_answered(request, lpn, sequence);
        }
        self.after_dram(core, host, request);
    }

    /// A unit has been read from flash for the host: caches the unit if there is a slot.
    #[inline(never)]
    pub(crate) fn keep_read<P: Probe>(
        &mut self,
        core: &mut Core<P>,
        path: &mut DataPath<impl Map<P>>,
        read: &Transaction,
    ) {
        let _inside = core.enter(Component::WriteCache);
        let is_current = core.is_newest(read.lpn, read.unit);
        if !is_current || self.waiting_len > 0 || self.cache.find(read.lpn).is_some() {
            return;
        }
        let Some((slot, has_evicted)) = self.take_slot(core) else {
            // This unit is not cached, but a slot is freed for a unit read later.
            self.make_room_for_read(core, path);
            return;
        };
        self.stats.evictions += u64::from(has_evicted);
        let whole = self.whole;
        self.cache.insert(slot, read.lpn);
        let sequence = core.sequence_of(read.unit);
        let entry = self.cache.entry_mut(slot);
        (entry.valid, entry.sequence, entry.is_blank) = (whole, sequence, false);
    }

    /// Evicts a unit to free a slot for later reads, unless a unit is already leaving.
    fn make_room_for_read<P: Probe>(&mut self, core: &mut Core<P>, path: &mut DataPath<impl Map<P>>) {
        let cache = &mut self.cache;
        if cache.leaving() == 0
            && let Some(slot) = settled(core, cache.choose_victim())
        {
            if cache.free_if_idle(slot) {
                self.stats.evictions += 1;
            } else {
                self.evict_dirty(core, path, slot);
            }
        }
    }
}
