//! The flash operations of the write cache: fetches of the sectors that an entry lacks, and write-backs of dirty units.

use super::{CacheSlot, Caching, WriteBack};
use crate::base::geometry::UnitId;
use crate::base::policy::{PolicyFault, PolicySlot};
use crate::core::{Component, Core, Map, Queue, Read, Waiter, Wake, Wants};
use crate::host::{DataPath, FailReason, Host, WriteBacks};
use crate::probe::Probe;
use crate::sched::{Cause, Class, Owner, Start, Transaction};

impl Caching {
    /// Begins the write-back of a unit if the unit is dirty and no write-back of the unit is under way.
    pub(super) fn begin_write_back<P: Probe>(
        &mut self,
        core: &mut Core<P>,
        path: &mut DataPath<impl Map<P>>,
        slot: CacheSlot,
    ) {
        let cache = &mut self.cache;
        if cache.entry(slot).write_back == WriteBack::None && cache.entry(slot).dirty != 0 {
            cache.begin_write_back(slot);
            self.update_load(core.now());
            self.continue_write_back(core, path, slot);
        }
    }

    /// Takes the next step of a write-back. The steps are: fetch the sectors that are not in the cache, get the map
    /// entry, allocate a physical unit and queue the program.
    pub(super) fn continue_write_back<P: Probe>(
        &mut self,
        core: &mut Core<P>,
        path: &mut DataPath<impl Map<P>>,
        slot: CacheSlot,
    ) {
        let whole = self.whole;
        let entry = self.cache.entry(slot);
        let (lpn, lacks) = (entry.lpn, entry.valid & whole != whole);
        if entry.is_being_fetched {
            return;
        }
        if lacks {
            self.fetch(core, path, slot);
        } else if path.map.has_entry(core, lpn, Owner::CacheUnit(slot), Wants::Write) {
            let DataPath { host, map, writes } = path;
            writes.program_unit(core, host, map, Some(self), Owner::CacheUnit(slot), lpn);
        }
    }

    /// Fetches the sectors of an entry that are not in the cache, unless they are already being fetched.
    pub(super) fn fetch<P: Probe>(
        &mut self,
        core: &mut Core<P>,
        path: &mut DataPath<impl Map<P>>,
        slot: CacheSlot,
    ) {
        let entry = self.cache.entry_mut(slot);
        let lpn = entry.lpn;
        if !std::mem::replace(&mut entry.is_being_fetched, true)
            && path.map.has_entry(core, lpn, Owner::CacheUnit(slot), Wants::Read)
        {
            self.fetch_mapped(core, &path.map, slot);
        }
    }

    /// Continues [`Caching::fetch`] when the map entry is available: reads the physical unit, if there is one to read.
    /// The drive reads the unit of a read that missed, because such a read counts as a host read.
    pub(crate) fn fetch_mapped<P: Probe>(&mut self, core: &mut Core<P>, map: &impl Map<P>, slot: CacheSlot) {
        let (lpn, is_read_miss) = (self.cache.entry(slot).lpn, self.cache.entry(slot).is_read_miss);
        if is_read_miss {
            core.wake(Wake::ReadMiss(slot));
        } else if let Some(unit) = self.unit_to_fetch(core, slot) {
            let (owner, cause, class) = (Owner::CacheUnit(slot), Cause::Sync, Class::HostRead);
            let unit_level = core.unit_level(map, lpn);
            core.read(Read { unit, lpn, owner, cause, class, start: Start::Policy, unit_level });
        }
    }

    /// The physical unit that the fetch of an entry has to read. If the data is lost or still in the program under way,
    /// or the LPN is unmapped, queues the wake that ends the fetch and returns `None`.
    pub(crate) fn unit_to_fetch<P: Probe>(&self, core: &mut Core<P>, slot: CacheSlot) -> Option<UnitId> {
        let lpn = self.cache.entry(slot).lpn;
        let (sequence, is_lost) = match core.unit_of(lpn) {
            _ if self.lost.contains_key(&lpn.0) => (Some(0), true),
            Some(unit) if !core.is_in_flight(unit) => return Some(unit),
            Some(unit) => (Some(core.sequence_of(unit)), core.flash().is_lost(unit)),
            None => (None, false),
        };
        core.wake(Wake::SectorsArrived { slot, sequence, is_lost });
        None
    }

    /// The fetch of a unit has ended: every sector is valid or lost. `sequence` is the sequence number of the unit's
    /// data in flash; `None` if the LPN was unmapped.
    #[inline(never)]
    pub(crate) fn on_fetched<P: Probe>(
        &mut self,
        core: &mut Core<P>,
        path: &mut DataPath<impl Map<P>>,
        slot: CacheSlot,
        sequence: Option<u64>,
        is_lost: bool,
    ) {
        let _inside = core.enter(Component::WriteCache);
        let whole = self.whole;
        let entry = self.cache.entry_mut(slot);
        entry.is_being_fetched = false;
        let is_read_miss = std::mem::take(&mut entry.is_read_miss);
        if is_lost {
            entry.lost |= whole & !entry.valid;
        }
        entry.valid = whole;
        if let Some(sequence) = sequence {
            entry.sequence = entry.sequence.max(sequence);
            entry.is_blank = false;
        }
        // Only a write-back that was scheduled before `serve_entry` has to be continued here: a write-back that
        // `serve_entry` begins continues by itself.
        let is_scheduled = entry.write_back == WriteBack::Scheduled;
        self.serve_entry(core, path, slot);
        if is_scheduled {
            self.continue_write_back(core, path, slot);
        }
        // Lost data does not stay in the cache for later reads. A unit written meanwhile stays.
        let entry = self.cache.entry(slot);
        if is_read_miss && is_lost && !entry.is_dirty() && !entry.is_leaving {
            self.cache.leave(slot);
        }
        self.end_of_use(core, slot);
    }

    /// Host units that wait for an entry continue: first the reads are answered, then the writes are tried again. These
    /// writes have a slot, so they do not queue behind the units that wait for a slot.
    pub(super) fn serve_entry<P: Probe>(
        &mut self,
        core: &mut Core<P>,
        path: &mut DataPath<impl Map<P>>,
        slot: CacheSlot,
    ) {
        let mut waiting = std::mem::take(&mut self.cache.entry_mut(slot).waiting);
        let mut writes = Queue::default();
        while let Some(waiter) = waiting.pop(&mut core.waiters) {
            if core.waiters[waiter].wants == Wants::Read {
                let Waiter { owner, lpn, .. } = core.waiters.remove(waiter);
                self.answer_cached(core, &mut path.host, owner.request(), lpn, slot);
            } else {
                writes.push(&mut core.waiters, waiter);
            }
        }
        while let Some(waiter) = writes.pop(&mut core.waiters) {
            let Waiter { owner, lpn, .. } = core.waiters.remove(waiter);
            if !self.try_write(core, path, owner.request(), lpn, true) {
                self.wait_for_room(core, owner.request(), lpn);
            }
        }
    }

    /// The program of a write-back has ended.
    #[inline(never)]
    pub(crate) fn on_written_back<P: Probe>(
        &mut self,
        core: &mut Core<P>,
        path: &mut DataPath<impl Map<P>>,
        slot: CacheSlot,
        done: &Transaction,
    ) {
        self.stats.write_backs += 1;
        core.tell_durable(done);
        self.end_write_back(core, path, slot);
    }

    /// Completes write-throughs, because their data is in flash or no longer needed, or because their write-back has
    /// failed for the reason `failed`.
    pub(super) fn end_write_throughs<P: Probe>(
        &mut self,
        core: &mut Core<P>,
        host: &mut Host,
        mut units: Queue,
        failed: Option<FailReason>,
    ) {
        while let Some(waiter) = units.pop(&mut core.waiters) {
            let request = core.waiters.remove(waiter).owner.request();
            if let Some(reason) = failed {
                host.requests.fail(request, reason);
            }
            host.unit_done(core, request);
        }
    }

    /// A write-back has ended: its program has ended, the unit got no physical unit because of wear, or the unit was
    /// deallocated before it got a physical unit.
    #[inline(never)]
    pub(crate) fn end_write_back<P: Probe>(
        &mut self,
        core: &mut Core<P>,
        path: &mut DataPath<impl Map<P>>,
        slot: CacheSlot,
    ) {
        let _inside = core.enter(Component::WriteCache);
        let entry = self.cache.entry_mut(slot);
        let was_placed = entry.write_back == WriteBack::Program;
        let epoch = if was_placed { entry.placed_epoch } else { entry.epoch };
        let programmed = std::mem::take(&mut entry.awaiting_program);
        // The data of a deallocated unit need not reach flash.
        let dropped =
            if entry.is_dropped { std::mem::take(&mut entry.awaiting_flash) } else { Queue::default() };
        if !dropped.is_empty() {
            // A FUA write completes without its data in flash, so older data must not come back.
            path.host.trims.make_durable();
        }
        let is_clean = self.cache.end_write_back(slot);
        self.update_load(core.now());
        path.host.epochs.leave_unit(epoch);
        self.end_write_throughs(core, &mut path.host, programmed, None);
        self.end_write_throughs(core, &mut path.host, dropped, None);
        path.host.complete_flushes(core);
        // The unit was updated during the write-back: it is written back again if it is leaving or has write-throughs.
        let entry = self.cache.entry(slot);
        if !is_clean && (entry.is_leaving || !entry.awaiting_flash.is_empty()) {
            self.begin_write_back(core, path, slot);
        }
        self.serve_entry(core, path, slot);
        self.end_of_use(core, slot);
        self.sync_units(core, path);
        core.wake(Wake::Detection);
    }

    /// An operation of an entry has ended: frees the slot if the entry is leaving and idle, and lets the units that
    /// wait for room be tried again.
    pub(super) fn end_of_use<P: Probe>(&mut self, core: &mut Core<P>, slot: CacheSlot) {
        self.cache.free_if_idle(slot);
        core.wake(Wake::CacheRoom);
    }

    /// Begins write-backs ahead of eviction, for a host flush, for a budget detection, or by decision of the sync
    /// policy.
    pub(crate) fn sync_more<P: Probe>(&mut self, core: &mut Core<P>, path: &mut DataPath<impl Map<P>>) {
        let _inside = core.enter(Component::WriteCache);
        self.sync_units(core, path);
    }

    /// Whether the sync policy writes a unit back now that the drive is idle; no if it has failed.
    fn syncs_when_idle<P: Probe>(&self, core: &mut Core<P>) -> bool {
        self.cache.sync().syncs_when_idle(&self.cache.view()).unwrap_or_else(|error| {
            core.fail_policy(PolicyFault { slot: PolicySlot::Sync, lane: None, error });
            false
        })
    }

    #[inline(never)]
    pub(super) fn sync_units<P: Probe>(&mut self, core: &mut Core<P>, path: &mut DataPath<impl Map<P>>) {
        let is_idle = core.state().is_idle;
        loop {
            let at_once = self.cache.sync().syncs_at_once();
            let wants = path.host.flushes > 0 && !path.host.is_backed
                || at_once
                || core.state().is_syncing
                || is_idle && self.syncs_when_idle(core);
            let cache = &self.cache;
            if !wants || !at_once && cache.writing() >= self.syncs_max {
                return;
            }
            let Some(slot) = cache.oldest_dirty() else { return };
            self.stats.syncs += 1;
            self.begin_write_back(core, path, slot);
        }
    }
}

impl<P: Probe> WriteBacks<P> for Caching {
    fn placement(&self, slot: CacheSlot) -> u16 {
        self.placement_of(slot)
    }

    fn may_gather(&self, core: &Core<P>, host: &Host, slot: CacheSlot) -> bool {
        let entry = self.cache.entry(slot);
        let waits_for_flash = host.flushes > 0 && !host.is_backed || !entry.awaiting_flash.is_empty();
        let is_awaited = waits_for_flash || !entry.waiting.is_empty();
        self.cache.buffer() > 0 && self.cache.budget() > 0 && !is_awaited && !core.state().is_idle
    }

    fn is_dropped(&self, slot: CacheSlot) -> bool {
        self.cache.entry(slot).is_dropped
    }

    fn on_write_back_placed(&mut self, slot: CacheSlot) -> (u64, bool) {
        self.cache.on_placed(slot);
        let entry = self.cache.entry(slot);
        let (lpn, sequence, is_lost) = (entry.lpn, entry.sequence, entry.lost != 0);
        if is_lost {
            self.lost.insert(lpn.0, 0);
        } else {
            self.lost.remove(&lpn.0);
        }
        (sequence, is_lost)
    }

    fn on_write_back_failed(&mut self, core: &mut Core<P>, host: &mut Host, slot: CacheSlot) {
        let cache = &mut self.cache;
        cache.on_placed(slot);
        self.lost.insert(cache.entry(slot).lpn.0, cache.entry(slot).unflushed());
        // The write-throughs of this unit fail.
        let failed = std::mem::take(&mut cache.entry_mut(slot).awaiting_program);
        self.end_write_throughs(core, host, failed, Some(FailReason::WornOut));
        core.wake(Wake::WriteBackEnded(slot));
    }
}
