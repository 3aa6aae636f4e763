//! Reads of host pages: from the cache, and from flash into the cache.

use super::{CacheSlot, Caching};
use crate::base::geometry::{Lpn, RequestId};
use crate::core::{Core, Map, Part, Wants};
use crate::host::{DataPath, Host};
use crate::probe::Probe;
use crate::sched::Transaction;

impl Caching {
    /// Reads a page. Returns whether the cache answers or fails the read, now or later; if not, flash has to be
    /// read.
    #[inline(never)]
    pub(crate) fn read<P: Probe>(
        &mut self,
        core: &mut Core<P>,
        path: &mut DataPath<impl Map<P>>,
        request: RequestId,
        lpn: Lpn,
    ) -> bool {
        let _inside = core.inside.enter(Part::WriteCache);
        let Some(slot) = self.cache.find(lpn) else {
            self.stats.read_misses += 1;
            let is_lost = self.lost.contains_key(&lpn.0);
            if is_lost {
                path.host.fail_page(request);
                core.probe.on_read_failed(request, lpn);
            }
            return is_lost;
        };
        let (_, sectors) = self.sectors(core, &path.host.requests.request(request), lpn);
        path.host.requests.get(request).pages_left += 1;
        if !self.cache.entry(slot).is_leaving {
            self.cache.touch(slot);
        }
        if sectors & !self.cache.entry(slot).valid == 0 {
            self.stats.read_hits += 1;
            self.answer_cached(core, &mut path.host, request, lpn, slot);
        } else {
            self.stats.read_misses += 1;
            self.wait_for(core, slot, request, Wants::Read);
            self.fetch(core, path, slot);
        }
        true
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
            host.fail_page(request);
            core.probe.on_read_failed(request, lpn);
        } else {
            core.probe.on_read_answered(request, lpn, sequence);
        }
        self.after_dram(core, host, request);
    }

    /// A page has been read from flash for the host: caches the page if there is a slot.
    #[inline(never)]
    pub(crate) fn keep_read<P: Probe>(
        &mut self,
        core: &mut Core<P>,
        path: &mut DataPath<impl Map<P>>,
        read: &Transaction,
    ) {
        let _inside = core.inside.enter(Part::WriteCache);
        let is_current = core.ftl.map.get(read.lpn) == Some(read.ppn);
        if !is_current || self.waiting_len > 0 || self.cache.find(read.lpn).is_some() {
            return;
        }
        let Some((slot, has_evicted)) = self.cache.take_slot() else {
            // This page is not cached, but a slot is freed for a page read later.
            self.make_room_for_read(core, path);
            return;
        };
        self.stats.evictions += u64::from(has_evicted);
        let whole = self.whole;
        self.cache.insert(slot, read.lpn);
        let sequence = core.array.stamp(read.ppn).sequence;
        let entry = self.cache.entry_mut(slot);
        (entry.valid, entry.sequence, entry.is_blank) = (whole, sequence, false);
    }

    /// Evicts a page to free a slot for later reads, unless a page is already leaving.
    fn make_room_for_read<P: Probe>(&mut self, core: &mut Core<P>, path: &mut DataPath<impl Map<P>>) {
        let cache = &mut self.cache;
        if cache.leaving() == 0
            && let Some(slot) = cache.choose_victim()
        {
            if cache.free_if_idle(slot) {
                self.stats.evictions += 1;
            } else {
                self.evict_dirty(core, path, slot);
            }
        }
    }
}
