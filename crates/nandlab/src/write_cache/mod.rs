//! The write cache: a hit takes a DRAM access, a miss needs a slot, and dirty units are written back to flash. Sync
//! policies bound the dirty units by the number of units that a capacitor can save: C. Gao et al., "Aging capacitor
//! supported cache management scheme for solid-state drives", IEEE TCAD 39(10), 2020.
//!
//! A unit written by the host needs a slot and room in the dirty budget. If one of them is missing, the unit waits in
//! FIFO order, and for each waiting unit a cached unit is evicted or written back. A write-back first reads the sectors
//! that are not in the cache, if flash has the unit; then it allocates a physical unit like a host write. Sectors
//! updated during the write-back remain dirty; under a policy with write protection such updates wait instead. A read
//! that finds only some of its sectors in the cache waits until the missing sectors have been read from flash. A read
//! of a unit that is not cached is answered from flash, or needs a slot first (`cache.read_room`, see `reads.rs`).
//!
//! FUA writes and host flushes are acknowledged when their data is in flash, with one exception: with `cache.flush_to =
//! "cache"` and while the capacitor is charged and the budget above 0, a FUA write is acknowledged like any other
//! write, and a flush completes as soon as the writes before it are acknowledged. The capacitor saves what such a flush
//! covers: the dirty units, and the records of deallocations (`host/trims.rs`), whose units count in the dirty budget.
//! Nothing else that a flush covers is only in RAM: the OOB of a unit in flash has its LPN and its sequence number, so
//! recovery rebuilds the map, also after copies by GC and refresh, without the translation pages. A line of the VSM
//! that is not saved costs only a repeated refresh.
//!
//! `Writes::program_unit` maps the unit of a write-back like a host write, with `Cause::Sync` and with the sequence
//! number under which the host's write was acknowledged.
//!
//! Dirty sectors belong to the flush epoch of the request that wrote them, the earliest one if there are several;
//! sectors of a program under way belong to the epoch of that program. So a flush waits for a unit of an earlier
//! request that had to wait for room, and hardly ever for a later write. While the capacitor backs up the cache
//! (`Host::set_backed`) a flush waits only for the write requests of its epochs; their dirty units then belong to the
//! next epoch, for which a flush waits that flash acknowledges.
//!
//! With a write buffer (`ftl.buffer`) units leave the cache through the buffer: as many leaving units as fit into it take
//! no room of the cache, and their programs gather until they fill programming units. Such a unit remains an entry of the
//! cache until it is programmed: it is dirty under the one budget, is read from RAM, and stays if it is used again. The
//! programs do not gather while a write or a flush waits for one of them, while the budget is 0, or while the drive is
//! idle ([`WriteBacks::may_gather`](crate::host::WriteBacks::may_gather), `Core::close_if_all_gather`).
//!
//! A trimmed entry is dropped: lookups no longer find the entry, and its slot is free when the entry's operations under
//! way have ended.

mod cache;
pub mod eviction;
pub(crate) mod notes;
mod reads;
pub(crate) mod spec;
mod stats;
pub mod sync;
#[cfg(test)]
mod tests;
mod unit;
mod write_back;

use crate::base::state::state;
pub use cache::{CacheSlot, WriteCache};
pub use spec::{CacheSpec, DirtyBudget, FlushTo, ReadRoom};
pub use stats::{CacheStats, CacheSummary};
pub use unit::{CachedUnit, WriteBack};

use crate::base::geometry::{Lpn, RequestId};
use crate::base::number_map::NumberMap;
use crate::base::policy::PolicyFault;
use crate::base::units::{Span, Time};
use crate::core::{Component, Core, Map, Mechanism, Offline, Queue, Rest, Waiter, Wake, Wants};
use crate::host::Request;
use crate::host::{BufferLoad, DataPath, Host, Occupancy};
use crate::probe::Probe;
use crate::sched::Owner;
use std::collections::{BTreeMap, VecDeque};

/// What a policy has decided; `None` if it has failed, and with it the drive.
#[inline]
fn settled<T, P: Probe>(core: &mut Core<P>, decided: Result<Option<T>, Box<PolicyFault>>) -> Option<T> {
    decided.unwrap_or_else(|fault| {
        core.fail_policy(*fault);
        None
    })
}

/// The policies of a write cache.
#[derive(Debug)]
pub struct CachePolicies {
    /// When dirty units are written back ahead of eviction.
    pub sync: Box<dyn sync::SyncPolicy>,
    /// Which unit leaves a full cache.
    pub eviction: Box<dyn eviction::EvictionPolicy>,
}

impl CachePolicies {
    /// The policies that the spec names.
    pub fn new(spec: &CacheSpec) -> Self {
        Self { sync: sync::make(&spec.sync), eviction: eviction::make(&spec.eviction) }
    }
}

/// The write cache with its queues, DRAM accesses and flash operations.
#[derive(Debug)]
pub(crate) struct Caching {
    pub(crate) cache: WriteCache,
    pub(crate) stats: CacheStats,
    /// The highest number of dirty units, and the highest budget, since the last [`Caching::take_window`].
    window: [u32; 2],
    /// Moving average of the units that count in the utilisation of the write buffer; `None` unless
    /// [`Caching::watch_load`] has been called.
    load: Option<(BufferLoad, Occupancy)>,
    /// Host units that wait for a slot or for room in the budget, in the order of their arrival.
    waiting: Queue,
    waiting_len: u32,
    /// Number of units in `waiting` that need a slot: they were not cached when they began to wait.
    waiting_slots: u32,
    /// Number of reads in `waiting`.
    waiting_reads: u32,
    read_room: ReadRoom,
    /// End of each DRAM access under way and its request, earliest end first.
    dram: VecDeque<(Time, RequestId)>,
    access_ns: Span,
    sector_bytes: u64,
    /// Bit mask of all sectors of a unit.
    pub(crate) whole: u64,
    /// While this many units are being written back, the cache begins no write-back ahead of eviction, except under the
    /// policy `eager`.
    syncs_max: u32,
    /// LPNs whose newest data is lost. The value is the sequence number of the newest acknowledged write of the LPN, if
    /// the write-back of this write failed because of wear; 0 if no acknowledged write failed, or if the unit in flash
    /// is marked as lost.
    pub(crate) lost: BTreeMap<u32, u64>,
    /// By slot: the placement of the newest write of its unit, if it is above 0.
    placements: NumberMap<u16>,
    spec: CacheSpec,
}

impl<P: Probe> Mechanism<P> for Caching {
    /// Empties the cache, and keeps the counters.
    fn power_lost(&mut self, offline: &mut Offline<'_, P>) {
        let policies = CachePolicies::new(&self.spec);
        let fresh = Self::new(&self.spec, policies, self.cache.buffer(), &**offline)
            .expect("the spec has a write cache");
        let before = std::mem::replace(self, fresh);
        (self.stats, self.window, self.load) = (before.stats, before.window, before.load);
        self.update_load(offline.now());
    }

    fn bytes(&self) -> u64 {
        self.cache.bytes()
    }

    fn audit(&self, _core: &Core<P>, rest: Rest) -> Result<(), String> {
        self.cache.audit()?;
        if rest.is_at_rest() { self.audit_at_rest() } else { Ok(()) }
    }
}

impl Caching {
    /// `buffer_units`: size of the write buffer through which units leave the cache.
    pub(crate) fn new<P: Probe>(
        spec: &CacheSpec,
        policies: CachePolicies,
        buffer_units: u32,
        core: &Core<P>,
    ) -> Option<Self> {
        let geometry = core.geometry();
        let (units, unit_bytes) = (geometry.logical_units, geometry.unit_bytes);
        let cache = WriteCache::new(spec, policies, buffer_units, units, unit_bytes)?;
        let unit_bytes = u64::from(geometry.unit_bytes);
        let sector_bytes = (unit_bytes / 64).max(512.min(unit_bytes));
        Some(Self {
            cache,
            stats: CacheStats::default(),
            window: [0; 2],
            load: None,
            waiting: Queue::default(),
            waiting_len: 0,
            waiting_slots: 0,
            waiting_reads: 0,
            placements: NumberMap::default(),
            read_room: spec.read_room,
            dram: VecDeque::new(),
            access_ns: spec.access_ns,
            sector_bytes,
            whole: !0 >> (64 - unit_bytes / sector_bytes),
            syncs_max: 2 * geometry.dies,
            lost: BTreeMap::new(),
            spec: spec.clone(),
        })
    }

    /// From now on keeps a moving average, over the time `window`, of the number of units being written back or of
    /// dirty units.
    pub(crate) fn watch_load(&mut self, window: Span, occupancy: Occupancy) {
        self.load = Some((BufferLoad::new(window), occupancy));
    }

    /// The moving average as a share of the cache, 0 to 1; 0 if [`Caching::watch_load`] has not been called.
    pub(crate) fn load(&mut self, now: Time) -> f64 {
        let capacity = f64::from(self.cache.capacity().max(1));
        self.load.as_mut().map_or(0.0, |(load, _)| load.mean(now) / capacity)
    }

    /// Updates the moving average with the number of units that count now.
    #[inline]
    fn update_load(&mut self, now: Time) {
        if let Some((load, occupancy)) = &mut self.load {
            let units = match occupancy {
                Occupancy::Writing => self.cache.writing(),
                Occupancy::Occupied => self.cache.dirty_units(),
            };
            load.set(now, units);
        }
    }

    /// Sets the dirty budget, in units.
    pub(crate) fn set_budget(&mut self, units: u32) {
        self.cache.set_budget(units);
        self.window[1] = self.window[1].max(units);
    }

    /// Returns the highest number of dirty units, and the highest budget, since the last call.
    pub(crate) fn take_window(&mut self) -> [u32; 2] {
        let now = [self.cache.dirty_units(), self.cache.budget()];
        let most = std::mem::replace(&mut self.window, now);
        [most[0].max(now[0]), most[1].max(now[1])]
    }

    /// Returns the capacity of the cache, the dirty budget, and the number of dirty units, all in units.
    pub(crate) fn units(&self) -> [u32; 3] {
        [self.cache.capacity(), self.cache.budget(), self.cache.dirty_units()]
    }

    /// Returns two bit masks of sectors of unit `lpn`: the sectors that a request covers completely, and the sectors
    /// that the request touches.
    fn sectors<P: Probe>(&self, core: &Core<P>, request: &Request, lpn: Lpn) -> (u64, u64) {
        let unit_bytes = u64::from(core.geometry().unit_bytes);
        let start = u64::from(lpn.0) * unit_bytes;
        let from = request.offset.saturating_sub(start);
        let to = (request.offset + request.len - start).min(unit_bytes);
        let mask =
            |first: u64, end: u64| if first >= end { 0 } else { (!0 >> (64 - (end - first))) << first };
        let bytes = self.sector_bytes;
        (mask(from.div_ceil(bytes), to / bytes), mask(from / bytes, to.div_ceil(bytes)))
    }

    /// Completes a unit of a request when a DRAM access, which begins now, has ended.
    fn after_dram<P: Probe>(&mut self, core: &mut Core<P>, host: &mut Host, request: RequestId) {
        let now = core.now();
        if self.access_ns == Span::ZERO {
            host.unit_done(core, request);
            return;
        }
        let at = now + self.access_ns;
        core.probe.on_access(core.now(), at, request);
        let is_first = self.dram.is_empty();
        self.dram.push_back((at, request));
        if is_first {
            core.set_clock(core.dram_clock(), at);
        }
    }

    /// The DRAM clock has expired: an access has ended.
    pub(crate) fn on_dram<P: Probe>(&mut self, core: &mut Core<P>, host: &mut Host) {
        let clock = core.dram_clock();
        let (_, request) = self.dram.pop_front().expect("the DRAM clock strikes during an access");
        let next = self.dram.front().map_or(crate::sched::NEVER, |&(at, _)| at);
        core.set_clock(clock, next);
        core.probe.on_accessed(request);
        host.unit_done(core, request);
    }

    /// Lets a unit of a request wait for the end of the fetch or write-back of an entry.
    fn wait_for<P: Probe>(&mut self, core: &mut Core<P>, slot: CacheSlot, request: RequestId, wants: Wants) {
        let entry = self.cache.entry_mut(slot);
        let waiter = core.waiters.insert(Waiter::new(Owner::Request(request), entry.lpn, wants));
        entry.waiting.push(&mut core.waiters, waiter);
    }

    /// Writes a unit into the cache, or lets the unit wait for room.
    #[inline(never)]
    pub(crate) fn write<P: Probe>(
        &mut self,
        core: &mut Core<P>,
        path: &mut DataPath<impl Map<P>>,
        request: RequestId,
        lpn: Lpn,
    ) {
        let _inside = core.enter(Component::WriteCache);
        if self.try_write(core, path, request, lpn, false) {
            return;
        }
        self.wait_for_room(core, request, lpn);
        core.wake(Wake::CacheRoom);
    }

    /// Lets a unit of a write wait for a slot or for room in the budget.
    fn wait_for_room<P: Probe>(&mut self, core: &mut Core<P>, request: RequestId, lpn: Lpn) {
        let wants = if self.cache.find(lpn).is_none() { Wants::Slot } else { Wants::Write };
        self.wait_in_line(core, request, lpn, wants);
        self.stats.waiting_writes += 1;
    }

    /// Adds a unit of a request to the units that wait for a slot or for room in the budget.
    fn wait_in_line<P: Probe>(&mut self, core: &mut Core<P>, request: RequestId, lpn: Lpn, wants: Wants) {
        let waiter = core.waiters.insert(Waiter::new(Owner::Request(request), lpn, wants));
        self.waiting.push(&mut core.waiters, waiter);
        self.waiting_len += 1;
        self.waiting_slots += u32::from(wants != Wants::Write);
        self.waiting_reads += u32::from(wants == Wants::ReadSlot);
    }

    /// Writes a unit into the cache. Returns `false` if the unit must wait for a slot or for room in the budget; unless
    /// `is_first`, it must also wait if it needs a slot or room and other units are waiting for them already. A unit
    /// whose entry is write-protected, or lacks sectors that the write covers only in part, is put into the queue of
    /// its entry; then the result is `true`.
    #[inline(never)]
    fn try_write<P: Probe>(
        &mut self,
        core: &mut Core<P>,
        path: &mut DataPath<impl Map<P>>,
        request: RequestId,
        lpn: Lpn,
        is_first: bool,
    ) -> bool {
        let asked = path.host.requests.request(request);
        let (sectors, touched) = self.sectors(core, &asked, lpn);
        let found = self.cache.find(lpn);
        let entry = found.map(|slot| self.cache.entry(slot));
        let is_dirty = entry.is_some_and(CachedUnit::is_dirty);
        let is_unflushed = entry.is_some_and(|entry| entry.unflushed() != 0);
        // With a budget of 0 every write is a write-through.
        let through = asked.fua && !path.host.is_backed || self.cache.budget() == 0;
        if let (Some(slot), Some(entry)) = (found, entry) {
            let is_protected = self.cache.sync().protects() && entry.write_back != WriteBack::None;
            // A sector that is written in part must be in the cache.
            let lacks = touched & !sectors & !entry.valid != 0;
            if is_protected || lacks {
                self.stats.blocked_updates += u64::from(is_protected);
                self.wait_for(core, slot, request, Wants::Write);
                self.end_gathering(core);
                if lacks {
                    self.fetch(core, path, slot);
                }
                return true;
            }
        }
        let (dirty, budget) = (self.cache.dirty_units(), self.room(core, &path.host));
        // After a time with a budget of 0, write-throughs of more units than the budget allows may be under way. These
        // writes are not acknowledged. Until enough of them have ended, no clean unit may become dirty, and no unit
        // without an unflushed acknowledged write may get such a write.
        let is_over_budget = budget > 0 && (!is_dirty && dirty >= budget || !is_unflushed && dirty > budget);
        let needs_room = found.is_none() || !is_dirty;
        if needs_room && (self.waiting_len > 0 && !is_first) || is_over_budget {
            return false;
        }
        let slot = match found {
            Some(slot) => slot,
            None => {
                let Some((slot, has_evicted)) = self.take_slot(core) else { return false };
                self.stats.evictions += u64::from(has_evicted);
                self.cache.insert(slot, lpn);
                if touched != sectors {
                    // `serve_entry` tries the write again when the missing sectors have been fetched.
                    self.wait_for(core, slot, request, Wants::Write);
                    self.fetch(core, path, slot);
                    return true;
                }
                slot
            }
        };
        if found.is_some() {
            self.stats.write_hits += 1;
        } else {
            self.stats.write_misses += 1;
        }
        let sequence = core.next_sequence();
        // The data belongs to the epoch of its request, which is not the open one if the unit has waited while a flush
        // was submitted. A unit that is dirty already belongs to the earliest epoch of its data; the data in a program
        // under way has an epoch of its own.
        let epoch = path.host.requests.get(request).epoch;
        let entry = self.cache.entry_mut(slot);
        let was_dirty = entry.dirty != 0;
        if !was_dirty || epoch < entry.epoch {
            let later = std::mem::replace(&mut entry.epoch, epoch);
            path.host.epochs.join_unit(epoch);
            if was_dirty {
                path.host.epochs.leave_unit(later);
            }
        }
        self.note_placement(slot, asked.tag.placement);
        self.cache.write(slot, touched, sectors, sequence, through);
        let dirty = self.cache.dirty_units();
        self.stats.dirty_pages_max = self.stats.dirty_pages_max.max(dirty);
        self.window[0] = self.window[0].max(dirty);
        self.update_load(core.now());
        path.host.on_admitted(request, lpn, sequence);
        core.probe.on_write_admitted(Some(request), lpn, sequence);
        if through {
            let waiter = core.waiters.insert(Waiter::new(Owner::Request(request), lpn, Wants::Write));
            self.cache.entry_mut(slot).awaiting_flash.push(&mut core.waiters, waiter);
            self.begin_write_back(core, path, slot);
            self.end_gathering(core);
        } else {
            core.probe.on_write_acknowledged(lpn, sequence);
            if asked.fua {
                core.probe.on_fua_cached(lpn, sequence);
            }
            self.after_dram(core, &mut path.host, request);
            // A flush may wait for the unit, and for no other one.
            if self.cache.sync().syncs_at_once() || path.host.flushes > 0 {
                self.sync_units(core, path);
            }
        }
        true
    }

    /// Takes a slot for another unit ([`WriteCache::take_slot`]); `None` also if a policy has failed.
    #[inline]
    fn take_slot<P: Probe>(&mut self, core: &mut Core<P>) -> Option<(CacheSlot, bool)> {
        settled(core, self.cache.take_slot())
    }

    /// The placement identifier of the newest write of the unit in `slot`.
    pub(crate) fn placement_of(&self, slot: CacheSlot) -> u16 {
        self.placements.get(&slot.0).copied().unwrap_or(0)
    }

    /// A unit in `slot` has been written with this placement identifier.
    #[inline]
    fn note_placement(&mut self, slot: CacheSlot, placement: u16) {
        if placement > 0 {
            self.placements.insert(slot.0, placement);
        } else if !self.placements.is_empty() {
            self.placements.remove(&slot.0);
        }
    }

    /// The number of units that may be dirty now: the dirty budget without the units that records of deallocations
    /// take. Above 0 unless the budget is 0 (`Drive::bound_trim_records`).
    fn room<P: Probe>(&self, core: &Core<P>, host: &Host) -> u32 {
        self.cache.budget().saturating_sub(host.trim_units(core))
    }

    /// Chooses units to evict for the units that wait for a slot, and dirty units to write back for the units that wait
    /// for room in the budget. Returns whether a slot has become free.
    fn make_room<P: Probe>(
        &mut self,
        core: &mut Core<P>,
        path: &mut DataPath<impl Map<P>>,
        first: Lpn,
    ) -> bool {
        loop {
            let room = self.room(core, &path.host);
            let cache = &mut self.cache;
            // The first waiting unit may have been evicted since it began to wait, so it needs a slot now.
            let wanted = self.waiting_slots.max(u32::from(cache.find(first).is_none()));
            if cache.leaving_the_cache() + cache.free_slots() < wanted
                && let Some(slot) = settled(core, cache.choose_victim())
            {
                if cache.free_if_idle(slot) {
                    self.stats.evictions += 1;
                    return true;
                }
                self.evict_dirty(core, path, slot);
                if self.cache.buffer() > 0 && self.cache.free_slots() > 0 {
                    return true;
                }
                continue;
            }
            // Reads need no room in the budget.
            let waiting_writes = self.waiting_len - self.waiting_reads;
            let is_at_budget = cache.dirty_units() >= room && cache.writing() < waiting_writes;
            let Some(slot) = cache.oldest_dirty().filter(|_| is_at_budget) else { return false };
            self.begin_write_back(core, path, slot);
        }
    }

    /// Writes an evicted unit back if it is dirty. A clean unit that is being fetched leaves at the end of the fetch.
    fn evict_dirty<P: Probe>(
        &mut self,
        core: &mut Core<P>,
        path: &mut DataPath<impl Map<P>>,
        slot: CacheSlot,
    ) {
        let is_dirty = self.cache.entry(slot).is_dirty();
        self.stats.dirty_evictions += u64::from(is_dirty);
        self.begin_write_back(core, path, slot);
    }

    /// Lets units that wait for room continue, in order, as far as there is room.
    #[inline(never)]
    pub(crate) fn resume<P: Probe>(&mut self, core: &mut Core<P>, path: &mut DataPath<impl Map<P>>) {
        let _inside = core.enter(Component::WriteCache);
        while let Some(first) = self.waiting.first() {
            let Waiter { lpn, owner, wants, .. } = core.waiters[first];
            let has_room = match wants {
                Wants::ReadSlot => self.try_read(core, path, owner.request(), lpn, true),
                _ => self.try_write(core, path, owner.request(), lpn, true),
            };
            if has_room {
                let done = self.waiting.pop(&mut core.waiters).expect("the queue has a first unit");
                core.waiters.remove(done);
                self.waiting_len -= 1;
                self.waiting_slots -= u32::from(wants != Wants::Write);
                self.waiting_reads -= u32::from(wants == Wants::ReadSlot);
            } else if !self.make_room(core, path, lpn) {
                core.close_if_all_gather(self.cache.writing());
                break;
            }
        }
    }

    /// A write waits for the program of a unit: no unit gathers any longer.
    fn end_gathering<P: Probe>(&self, core: &mut Core<P>) {
        if self.cache.buffer() > 0 {
            core.close_buffered();
        }
    }

    /// Deallocates a unit in the cache; returns whether the unit was dirty.
    #[inline(never)]
    pub(crate) fn trim<P: Probe>(&mut self, core: &mut Core<P>, host: &mut Host, lpn: Lpn) -> bool {
        let _inside = core.enter(Component::WriteCache);
        self.lost.remove(&lpn.0);
        let Some(slot) = self.cache.find(lpn) else { return false };
        let entry = self.cache.entry(slot);
        let is_dirty = entry.is_dirty();
        // If a write-back is scheduled and has no physical unit yet, the end of the write-back leaves the epoch.
        let leaves_epoch = entry.dirty != 0 && entry.write_back != WriteBack::Scheduled;
        let epoch = entry.epoch;
        self.cache.forget(slot);
        self.update_load(core.now());
        if leaves_epoch {
            host.epochs.leave_unit(epoch);
        }
        self.cache.free_if_idle(slot);
        core.wake(Wake::Detection);
        is_dirty
    }

    /// With nothing under way, checks that no unit waits, is being accessed or written back, or is leaving.
    ///
    /// # Errors
    /// The numbers of units that wait, are being accessed or written back, or are leaving.
    pub(crate) fn audit_at_rest(&self) -> Result<(), String> {
        let cache = &self.cache;
        let (waiting, dram) = (self.waiting_len, self.dram.len());
        let (writing, leaving) = (cache.writing(), cache.leaving());
        if waiting > 0 || dram > 0 || writing > 0 || leaving > 0 {
            return Err(format!(
                "nothing is under way, but in the write cache {waiting} units wait, {dram} are being accessed, {writing} \
                 are being written back and {leaving} are leaving"
            ));
        }
        Ok(())
    }
}

state! {
    Caching {
        cache,
        stats,
        window,
        load,
        waiting,
        waiting_len,
        waiting_slots,
        waiting_reads,
        dram,
        lost,
        placements,
    }
    fixed { read_room, access_ns, sector_bytes, whole, syncs_max, spec }
}
