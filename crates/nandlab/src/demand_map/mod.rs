//! The demand map: the map is stored in flash, and the entries in use are cached. A miss waits for its translation
//! page; changed translation pages are written back. A. Gupta, Y. Kim and B. Urgaonkar, "DFTL: a flash translation
//! layer employing demand-based selective caching of page-level address mappings", ASPLOS 2009.
//!
//! A logical unit, of a host request or of the write cache, whose map entry is not cached waits in a queue of the
//! entry's translation page. One read of the translation page serves the whole queue; with `miss = "each"` every such
//! unit has a read of its own. When a dirty entry is evicted from the cache, its translation page is written back, with
//! all its entries that have changed by then. GC changes the entries of the units that it moves: a cached entry in the
//! cache, any other entry in RAM until the victim is empty. Then each translation page with such changes is written
//! back once. TRIM changes entries in the same way, and writes back each changed translation page once. A miss that
//! evicts a dirty entry does not wait for the write-back, except with `write_back = "before-insert"`
//! (`insertions.rs`).
//!
//! Changes that wait for the write-back of their translation page take RAM. To limit this RAM, misses wait while
//! `WRITE_BACKS_MAX` or more translation pages are being written back.
//!
//! Translation pages have LPNs above the host's and a stream of their own, so GC, valid bits and audit need no special
//! case for them. GC's copies of translation pages go through the same queue as write-backs, because a superblock is
//! programmed in order. GC never waits for a write-back, so GC and write-backs cannot deadlock.

mod cache;
mod demand;
mod insertions;
pub(crate) mod notes;
pub(crate) mod spec;
mod stats;
#[cfg(test)]
mod tests;

use crate::base::state::state;
pub use cache::{Cache, ENTRY_BYTES, MapEviction};
pub use demand::{DemandMap, TranslationPage, Tvpn, WriteBack};
pub use spec::{Eviction, MapSpec, MapWriteBack, Miss, TranslationLevel};
pub use stats::{MapStats, MapSummary};

use crate::base::geometry::{LaneId, Lpn, MissId, UnitId};
use crate::base::policy::{PolicyFault, PolicySlot};
use crate::core::{
    BeforeLoss, Component, Core, Destination, Map, Maps, Mechanism, Offline, Program, Queue, Read, Rest,
    STILL_WAITS, Section, SectionKind, SnapshotError, Waiter, WaiterId, Wake, Wants,
};
use crate::probe::Probe;
use crate::sched::{Cause, Class, Owner, Start, Transaction};
use insertions::{Flush, Insertions};
use std::collections::VecDeque;

/// While this many or more translation pages are being written back, misses wait. Jobs and TRIMs do not wait, so more
/// may be.
const WRITE_BACKS_MAX: u32 = 64;

/// The demand map with its flash operations: reads and write-backs of translation pages.
#[derive(Debug)]
pub(crate) struct Mapping {
    pub(crate) demand: DemandMap,
    pub(crate) stats: MapStats,
    miss: Miss,
    /// `None` if no miss waits for the write-back of the dirty entry that it evicts.
    insertions: Option<Insertions>,
    /// Units whose miss waits because [`WRITE_BACKS_MAX`] or more translation pages are being written back.
    held_misses: Queue,
    /// Number of translation pages being written back now.
    write_backs_under_way: u32,
    /// By lane, the translation pages whose write-back waits for a free unit.
    waiting_for_room: Box<[VecDeque<Tvpn>]>,
    /// Number of translation pages in [`Mapping::waiting_for_room`], for all lanes.
    waiting_for_room_count: u32,
    /// By lane, the translation pages of which the lane's background job has changed entries that are not cached. They
    /// are written back at the end of the job. A translation page is in the list of one lane at most.
    deferred: Box<[Vec<Tvpn>]>,
    spec: MapSpec,
    /// From a power loss until the recovered drive begins to work: the demand map before the power loss.
    before_loss: Option<Box<DemandMap>>,
    /// Until the recovered drive begins to work: the stale translation pages, which are then written back.
    stale: Vec<Tvpn>,
}

impl Mapping {
    /// The demand map of a drive, with an empty cache; `None` if the whole map is in RAM. For a probe that checks data
    /// the demand map keeps an image of the contents of its translation pages.
    pub(crate) fn new<P: Probe>(spec: &MapSpec, core: &Core<P>) -> Option<Self> {
        let &MapSpec::Demand { cache_bytes, eviction, miss, write_back, .. } = spec else { return None };
        let (logical_units, unit_bytes, lanes) =
            (core.geometry().logical_units, core.geometry().unit_bytes, core.geometry().lanes as usize);
        let is_verified = core.probe.needs_sequences();
        let demand = DemandMap::new(cache_bytes, eviction, logical_units, unit_bytes, is_verified);
        let waits = write_back == MapWriteBack::BeforeInsert;
        Some(Self {
            insertions: waits.then(|| Insertions::new(demand.pages.len())),
            demand,
            stats: MapStats::default(),
            miss,
            held_misses: Queue::default(),
            write_backs_under_way: 0,
            waiting_for_room: vec![VecDeque::new(); lanes].into(),
            waiting_for_room_count: 0,
            deferred: vec![Vec::new(); lanes].into(),
            spec: *spec,
            before_loss: None,
            stale: Vec::new(),
        })
    }

    /// Bytes of the simulator's RAM that the state of a translation page takes.
    pub(crate) fn bytes_per_page(write_back: MapWriteBack) -> u64 {
        let waits = write_back == MapWriteBack::BeforeInsert;
        size_of::<TranslationPage>() as u64 + if waits { Insertions::BYTES_PER_PAGE } else { 0 }
    }

    /// Whether no miss waits, no translation page is being written back, and no job has changes to write back.
    pub(crate) fn is_idle(&self) -> bool {
        self.held_misses.is_empty()
            && self.write_backs_under_way == 0
            && self.deferred.iter().all(Vec::is_empty)
            && self.insertions.as_ref().is_none_or(Insertions::is_empty)
    }
}

impl Mapping {
    /// Returns whether the map entry of `lpn` is cached, for a unit of a host request or of the write cache. If not,
    /// the unit waits for the entry and continues with [`Wake::MapEntry`].
    #[inline]
    fn has_entry<P: Probe>(&mut self, core: &mut Core<P>, lpn: Lpn, owner: Owner, wants: Wants) -> bool {
        let is_hit = self.hits(lpn);
        self.stats.on_lookup(wants == Wants::Read, is_hit);
        is_hit || self.miss(core, Waiter::new(owner, lpn, wants))
    }

    /// Whether the map entry of `lpn` is cached and can be used.
    #[inline]
    fn hits(&mut self, lpn: Lpn) -> bool {
        self.demand.cache.touch(lpn) && !self.insertions.as_ref().is_some_and(|entries| entries.has(lpn))
    }

    /// Prefetches into the CPU's cache the data that a lookup of `lpn` needs: the number of the cached entry's slot, or
    /// with `entries` (in a later call) the entry itself.
    #[inline]
    pub(crate) fn prefetch(&self, lpn: Lpn, entries: bool) {
        if entries {
            self.demand.cache.prefetch_entry(lpn);
        } else {
            self.demand.cache.prefetch(lpn);
        }
    }

    /// Prefetches into the CPU's cache what a lookup and a change of the entry of `lpn` need.
    pub(crate) fn prefetch_write(&self, lpn: Lpn) {
        self.demand.cache.prefetch(lpn);
        self.demand.prefetch_dirty(lpn);
    }

    /// Prefetches into the CPU's cache what the first logical unit that waits for a translation page needs: its map
    /// entry, or with `units` (in a later call) the state of the physical unit to which it is mapped.
    pub(crate) fn prefetch_waiting<P: Probe>(&self, core: &Core<P>, page: Tvpn, units: bool) {
        let Some(first) = self.demand.pages[page.index()].waiting.first() else { return };
        let Waiter { lpn, wants, .. } = core.waiters[first];
        if units {
            core.prefetch_unit(lpn, matches!(wants, Wants::Read | Wants::ReadSlot));
        } else {
            core.ftl().map.prefetch(lpn);
            self.demand.cache.prefetch(lpn);
        }
    }

    /// A lookup has missed. Brings the entry into the cache and returns `true` if this takes no read and misses need
    /// not wait; else the unit waits.
    #[inline(never)]
    fn miss<P: Probe>(&mut self, core: &mut Core<P>, waiter: Waiter) -> bool {
        let _inside = core.enter(Component::DemandMap);
        if self.write_backs_under_way >= WRITE_BACKS_MAX {
            self.stats.waiting_misses += 1;
            let waiter = core.waiters.insert(waiter);
            self.held_misses.push(&mut core.waiters, waiter);
            return false;
        }
        self.bring_in_or_wait(core, waiter)
    }

    /// Brings the map entry of a unit into the cache and returns `true` if the content of its translation page is in
    /// RAM and nothing else has to be waited for. If not, the unit waits for the read of the translation page. With
    /// [`Miss::Shared`] this read is queued only if none is under way, with [`Miss::Each`] always.
    fn bring_in_or_wait<P: Probe>(&mut self, core: &mut Core<P>, waiter: Waiter) -> bool {
        let page = self.demand.page_of(waiter.lpn);
        if self.miss == Miss::Each {
            return self.bring_in_or_read(core, waiter, page);
        }
        if !self.demand.pages[page.index()].is_being_read
            && !self.read_translation_page(core, page, Class::HostRead)
        {
            return self.insert(core, waiter);
        }
        let waiter = core.waiters.insert(waiter);
        self.demand.pages[page.index()].waiting.push(&mut core.waiters, waiter);
        false
    }

    /// As [`Mapping::bring_in_or_wait`], with a read of `page` that serves only this waiter.
    fn bring_in_or_read<P: Probe>(&mut self, core: &mut Core<P>, waiter: Waiter, page: Tvpn) -> bool {
        let Some(unit) = self.in_flash(core, page) else {
            return self.insert(core, waiter);
        };
        let waiter = core.waiters.insert(waiter);
        let owner = Owner::Miss(MissId(waiter.index() as u32));
        self.queue_read(core, page, unit, owner, Class::HostRead);
        false
    }

    /// The content of the translation page of a miss is in RAM: brings the entry into the cache. Returns whether the
    /// unit may go on; if not, it waits until the dirty entry that had to be evicted is in flash.
    fn insert<P: Probe>(&mut self, core: &mut Core<P>, waiter: Waiter) -> bool {
        let flush = self.bring_in(core, waiter.lpn);
        self.insertions.as_mut().is_none_or(|entries| entries.insert(core, waiter, flush))
    }

    /// A translation page has been read for a miss, which continues with its entry, or with the mark `is_lost` if the
    /// translation page was uncorrectable.
    fn end_miss<P: Probe>(&mut self, core: &mut Core<P>, waiter: Waiter, is_lost: bool) {
        // Without insertions to wait for, the entry is brought in when the wake is served. A request fails without it.
        let needs_entry = !is_lost || !matches!(waiter.owner, Owner::Request(_));
        if self.insertions.is_none() || !needs_entry || self.insert(core, waiter) {
            core.wake(Wake::MapEntry { waiter, is_lost });
        }
    }

    /// The physical unit to be read for the content of a translation page; `None` if this content is in RAM: the
    /// translation page has never been written, or its program waits for room or has not ended.
    fn in_flash<P: Probe>(&self, core: &Core<P>, page: Tvpn) -> Option<UnitId> {
        let waits_for_room = self.demand.pages[page.index()].write_back == WriteBack::Room;
        let unit = core.unit_of(self.demand.lpn_of(page))?;
        (!waits_for_room && !core.is_in_flight(unit)).then_some(unit)
    }

    /// Queues the read of a translation page and returns `true`, or returns `false` if its content is in RAM.
    fn read_translation_page<P: Probe>(&mut self, core: &mut Core<P>, page: Tvpn, class: Class) -> bool {
        let Some(unit) = self.in_flash(core, page) else { return false };
        self.demand.pages[page.index()].is_being_read = true;
        self.queue_read(core, page, unit, Owner::TranslationPage(page), class);
        true
    }

    fn queue_read<P: Probe>(&self, core: &mut Core<P>, page: Tvpn, unit: UnitId, owner: Owner, class: Class) {
        let (lpn, page_level) = (self.demand.lpn_of(page), self.demand.pages[page.index()].level);
        core.read(Read {
            unit,
            lpn,
            owner,
            cause: Cause::Mapping,
            class,
            start: Start::Policy,
            unit_level: page_level,
        });
    }

    /// The read of a translation page for the one unit that waits in the slot `miss` has ended. The unit continues,
    /// with the mark `is_lost` if the translation page was uncorrectable.
    #[inline(never)]
    pub(crate) fn on_miss_read<P: Probe>(&mut self, core: &mut Core<P>, miss: MissId, read: &Transaction) {
        let _inside = core.enter(Component::DemandMap);
        let waiter = core.waiters.remove(WaiterId::new(miss.index()));
        self.end_miss(core, waiter, read.is_uncorrectable());
    }

    /// The read of a translation page for all units in its queue, or for its write-back, has ended.
    #[inline(never)]
    pub(crate) fn on_translation_read<P: Probe>(
        &mut self,
        core: &mut Core<P>,
        page: Tvpn,
        read: &Transaction,
    ) {
        let _inside = core.enter(Component::DemandMap);
        let state = &mut self.demand.pages[page.index()];
        state.is_being_read = false;
        let is_for_write_back = state.write_back == WriteBack::Read;
        self.serve_waiting(core, page, read.is_uncorrectable());
        // An uncorrectable translation page is rebuilt from the OOB of the data units, as in recovery.
        if is_for_write_back {
            self.program_translation_page(core, page);
        }
    }

    /// The units that wait for a translation page continue. With `is_lost` the translation page was uncorrectable.
    fn serve_waiting<P: Probe>(&mut self, core: &mut Core<P>, page: Tvpn, is_lost: bool) {
        let mut waiting = std::mem::take(&mut self.demand.pages[page.index()].waiting);
        while let Some(waiter) = waiting.pop(&mut core.waiters) {
            let waiter = core.waiters.remove(waiter);
            self.end_miss(core, waiter, is_lost);
        }
    }

    /// Brings the entry of `lpn` into the cache. If a dirty entry is evicted for it, writes back the evicted entry's
    /// translation page, and returns this write-back.
    #[inline(never)]
    fn bring_in<P: Probe>(&mut self, core: &mut Core<P>, lpn: Lpn) -> Option<Flush> {
        let level = match core.unit_of(lpn) {
            Some(unit) => core.levels().of_loaded_entry(core.geometry().superblock_of(unit)),
            None => 1,
        };
        if let Some(Some(in_flash)) = core.probe.needs_sequences().then(|| self.demand.in_flash(lpn)) {
            assert!(
                in_flash == core.unit_of(lpn),
                "LPN {}: the mapping in its translation page in flash is out of date and not marked",
                lpn.0
            );
        }
        let loaded = match self.demand.load(lpn, level) {
            Ok(loaded) => loaded,
            Err(error) => {
                core.fail_policy(PolicyFault { slot: PolicySlot::MapEviction, lane: None, error });
                return None;
            }
        };
        self.stats.evictions += u64::from(loaded.evicted);
        let page = loaded.write_back?;
        self.stats.dirty_evictions += 1;
        let flush = Flush::new(page, self.demand.pages[page.index()].write_back);
        self.write_back(core, page);
        Some(flush)
    }

    /// Brings the entry of `lpn` back into the cache if it has been evicted while its unit waited. This takes no read,
    /// and waits for no write-back, because the mapping is known to the waiting unit.
    #[inline]
    fn keep_entry<P: Probe>(&mut self, core: &mut Core<P>, lpn: Lpn) {
        if !self.demand.cache.contains(lpn) {
            let _inside = core.enter(Component::DemandMap);
            self.bring_in(core, lpn);
        }
    }

    /// A background job of `lane` has moved the unit of `lpn`.
    #[inline]
    fn on_moved(&mut self, lane: LaneId, lpn: Lpn) {
        if let Some(page) = self.demand.on_changed(lpn) {
            let state = &mut self.demand.pages[page.index()];
            if !std::mem::replace(&mut state.is_deferred, true) {
                self.deferred[lane.index()].push(page);
            }
        }
    }

    /// A background job of `lane` has moved all its units. Writes back the translation pages in the job's list.
    #[inline(never)]
    fn write_back_deferred<P: Probe>(&mut self, core: &mut Core<P>, lane: LaneId) {
        let mut pages = std::mem::take(&mut self.deferred[lane.index()]);
        for page in pages.drain(..) {
            let state = &mut self.demand.pages[page.index()];
            state.is_deferred = false;
            // An eviction may have caused a write-back of the page in the meantime.
            if state.is_stale {
                self.write_back(core, page);
            }
        }
        // Keeps the capacity of the list.
        self.deferred[lane.index()] = pages;
    }

    /// Writes back a translation page: reads the old version for its unchanged entries, then programs the new one.
    pub(crate) fn write_back<P: Probe>(&mut self, core: &mut Core<P>, page: Tvpn) {
        let state = &mut self.demand.pages[page.index()];
        if state.write_back != WriteBack::None {
            // Changes made before the program was queued are part of it; later changes need another write-back.
            state.write_back_again |= state.write_back == WriteBack::Program;
            return;
        }
        self.write_backs_under_way += 1;
        state.write_back = WriteBack::Read;
        // If a read is already under way for waiting units, it serves the write-back as well.
        if !state.is_being_read && !self.read_translation_page(core, page, Class::HostWrite) {
            self.program_translation_page(core, page);
        }
    }

    /// Queues the program of a translation page. If its lane has no room, the program waits for room.
    #[inline(never)]
    fn program_translation_page<P: Probe>(&mut self, core: &mut Core<P>, page: Tvpn) {
        // By their numbers, translation pages are spread over the lanes as the first LPNs of the host are.
        let mut lane = core.home(Lpn(page.0));
        // A lane may be full because of displaced units, or because dynamic allocation has filled it.
        let may_be_full = core.has_displaced() || !core.has_home_lanes();
        if may_be_full && !core.has_mapping_room(lane) {
            lane = core.lane_in_place_of(lane, Core::has_mapping_room);
        }
        let has_room = core.has_mapping_room(lane);
        let lpn = self.demand.lpn_of(page);
        if !has_room {
            self.demand.pages[page.index()].write_back = WriteBack::Room;
            self.waiting_for_room[lane.index()].push_back(page);
            self.waiting_for_room_count += 1;
            core.wake(Wake::Space(lane));
            return;
        }
        let entries = self.demand.write(page, &core.ftl().map);
        self.demand.pages[page.index()].write_back = WriteBack::Program;
        self.stats.write_backs += 1;
        self.stats.written_entries += u64::from(entries);
        let stamp = core.next_stamp();
        if core.keeps_level(lpn) {
            self.demand.set_level(lpn, 1);
        }
        let stream = core.streams().map().expect("the demand map has declared its stream");
        let (to, owner) = (Destination::Stream(lane, stream), Owner::TranslationPage(page));
        let (maps, cause, class) = (Maps::Now, Cause::Mapping, Class::HostWrite);
        let queued = core.program(Program { to, lpn, stamp, maps, owner, cause, class });
        queued.expect("has_mapping_room has found room in this lane");
    }

    /// The write-back of a translation page has ended: the page has been programmed, or the write-back has been given
    /// up.
    pub(crate) fn end_write_back<P: Probe>(&mut self, core: &mut Core<P>, page: Tvpn) {
        let _inside = core.enter(Component::DemandMap);
        let state = &mut self.demand.pages[page.index()];
        state.write_back = WriteBack::None;
        self.write_backs_under_way -= 1;
        if let Some(entries) = &mut self.insertions {
            entries.end_write_back(core, page);
        }
        if std::mem::take(&mut state.write_back_again) && state.is_stale {
            self.write_back(core, page);
        }
        self.resume_misses(core);
    }

    /// Lets the misses in `held_misses` continue while fewer than [`WRITE_BACKS_MAX`] write-backs are under way.
    #[inline(never)]
    fn resume_misses<P: Probe>(&mut self, core: &mut Core<P>) {
        while self.write_backs_under_way < WRITE_BACKS_MAX
            && let Some(waiter) = self.held_misses.pop(&mut core.waiters)
        {
            let waiter = core.waiters.remove(waiter);
            // Another miss may have brought the entry into the cache.
            if self.hits(waiter.lpn) || self.bring_in_or_wait(core, waiter) {
                core.wake(Wake::MapEntry { waiter, is_lost: false });
            }
        }
    }

    /// Programs the translation pages that wait for room in `lane`, as far as there is room now. Returns whether one
    /// has got room.
    pub(crate) fn resume_write_backs<P: Probe>(&mut self, core: &mut Core<P>, lane: LaneId) -> bool {
        let _inside = core.enter(Component::DemandMap);
        let waiting = self.waiting_for_room.get(lane.index()).map_or(0, VecDeque::len);
        let before = self.waiting_for_room_count;
        for _ in 0..waiting {
            if !core.has_mapping_room(lane) {
                break;
            }
            let page = self.waiting_for_room[lane.index()]
                .pop_front()
                .expect("the length of the queue bounds the loop");
            self.waiting_for_room_count -= 1;
            self.program_translation_page(core, page);
        }
        self.waiting_for_room_count < before
    }

    /// Gives up the write-backs that wait for room in worn-out lanes, which will get no more room. Their changes remain
    /// in RAM, and the units that waited for these write-backs continue.
    pub(crate) fn give_up_write_backs<P: Probe>(&mut self, core: &mut Core<P>) {
        for lane in 0..self.waiting_for_room.len() {
            if !core.is_worn_out(LaneId(lane as u32)) {
                continue;
            }
            for page in std::mem::take(&mut self.waiting_for_room[lane]) {
                self.waiting_for_room_count -= 1;
                self.stats.given_up += 1;
                self.end_write_back(core, page);
            }
        }
    }

    /// Writes all translation pages that are out of date in flash, without simulated time, after preconditioning. A
    /// translation page that is not in flash and has no mapped entry is not written.
    ///
    /// # Errors
    /// A lane that has no room for a translation page, and in which GC cannot collect a superblock.
    fn settle<P: Probe>(&mut self, core: &mut Offline<'_, P>) -> Result<(), LaneId> {
        let mut is_settled = false;
        // Collecting a victim to make room for one translation page may change other translation pages.
        while !std::mem::replace(&mut is_settled, true) {
            for page in self.demand.numbers() {
                if !self.demand.has_changes(page) {
                    continue;
                }
                let lpn = self.demand.lpn_of(page);
                if core.unit_of(lpn).is_none() && !self.demand.has_entries(page, &core.ftl().map) {
                    self.demand.write(page, &core.ftl().map);
                    continue;
                }
                is_settled = false;
                // As in `program_translation_page`.
                let lane = core.home(Lpn(page.0));
                while !core.has_mapping_room(lane) {
                    core.collect_now(lane, |lpn| self.demand.on_mapped_now(lpn)).ok_or(lane)?;
                }
                self.demand.write(page, &core.ftl().map);
                // A translation page may be written twice in this loop; the higher sequence number marks the newer
                // version.
                let sequence = core.next_sequence();
                let stream = core.streams().map().expect("the demand map has declared its stream");
                core.program_now(lane, stream, lpn, sequence, |_| ());
            }
        }
        Ok(())
    }

    /// Checks that, with nothing under way, no translation page has changes other than those of its cached dirty
    /// entries. Checks nothing if write-backs of translation pages were given up because their lane was worn out.
    ///
    /// # Errors
    /// The first translation page that is out of date.
    pub(crate) fn audit_at_rest(&self) -> Result<(), String> {
        let is_forgotten =
            |page: &TranslationPage| page.is_stale || page.write_back_again || page.is_deferred;
        match self.demand.pages.iter().position(is_forgotten) {
            Some(page) if self.stats.given_up == 0 => {
                Err(format!("translation page {page} has changed, but is not being written back"))
            }
            _ => Ok(()),
        }
    }
}

impl Mapping {
    /// Number of stale translation pages that the last recovery has found and that are not written back yet.
    pub(crate) fn stale_pages(&self) -> u32 {
        self.stale.len() as u32
    }

    /// Marks and lists the stale translation pages: those with changes that were only in RAM, those of which recovery
    /// has found another copy than that mapped before the power loss, and those with an LPN that recovery has mapped to
    /// another unit than before the power loss.
    fn find_stale_pages<P: Probe>(&mut self, core: &Core<P>, before: &BeforeLoss<'_>) {
        let (demand, old) = (&mut self.demand, &self.before_loss);
        let old = old.as_ref().expect("power was lost");
        demand.trust_flash(&core.ftl().map);
        for tvpn in demand.numbers() {
            let lpn = demand.lpn_of(tvpn);
            if old.has_changes(tvpn) || before.changed.binary_search(&lpn).is_ok() {
                demand.pages[tvpn.index()].is_stale = true;
            }
        }
        let is_of_host = |lpn: &&Lpn| lpn.0 < core.geometry().logical_units;
        for &lpn in before.remapped.iter().chain(before.changed.iter().filter(is_of_host)) {
            let tvpn = demand.page_of(lpn);
            demand.pages[tvpn.index()].is_stale = true;
        }
        self.stale = demand.numbers().filter(|tvpn| demand.pages[tvpn.index()].is_stale).collect();
    }
}

/// The section of a saved drive.
const SECTION: SectionKind = SectionKind { name: "demand map", version: 1 };

impl<P: Probe> Mechanism<P> for Mapping {
    const SECTION: Option<SectionKind> = Some(SECTION);

    fn preconditioned(&mut self, offline: &mut Offline<'_, P>) -> Result<(), LaneId> {
        self.settle(offline)
    }

    /// Writes back the translation pages that recovery has found stale.
    fn began(&mut self, offline: &mut Offline<'_, P>) {
        self.before_loss = None;
        for page in std::mem::take(&mut self.stale) {
            self.write_back(offline, page);
        }
    }

    /// Empties the cache, and keeps the counters.
    fn power_lost(&mut self, offline: &mut Offline<'_, P>) {
        let fresh = Self::new(&self.spec, offline).expect("the spec has a demand map");
        let before = std::mem::replace(self, fresh);
        // Power that fails during recovery leaves in flash what the first power loss has left there.
        let before_loss = before.before_loss.unwrap_or_else(|| Box::new(before.demand));
        (self.stats, self.before_loss) = (before.stats, Some(before_loss));
    }

    fn recovered(&mut self, offline: &mut Offline<'_, P>, before: &BeforeLoss<'_>) {
        self.find_stale_pages(offline, before);
    }

    /// The number of translation pages. Which of them are in flash is in the map.
    fn save(&self, _core: &Core<P>) -> Option<Section> {
        let mut section = Section::new(SECTION);
        section.put(self.demand.pages.len() as u64);
        Some(section)
    }

    /// The map in flash cannot begin empty.
    fn load(&mut self, _core: &Core<P>, from: Option<&mut Section>) -> Result<(), SnapshotError> {
        let (pages, mine) = (from.map_or(Ok(0), Section::get)?, self.demand.pages.len() as u64);
        if pages != mine {
            return Err(SnapshotError::Mismatch("translation pages (ftl.map)", pages, mine));
        }
        Ok(())
    }

    fn loaded(&mut self, offline: &mut Offline<'_, P>) {
        self.demand.trust_flash(&offline.ftl().map);
    }

    fn bytes(&self) -> u64 {
        let pages = self.demand.pages.len() as u64;
        self.demand.bytes() + self.insertions.as_ref().map_or(0, |_| pages * Insertions::BYTES_PER_PAGE)
    }

    fn audit(&self, core: &Core<P>, rest: Rest) -> Result<(), String> {
        self.demand.audit(&core.ftl().map)?;
        if rest == Rest::Full {
            if !self.is_idle() {
                return Err(STILL_WAITS.to_owned());
            }
            self.audit_at_rest()?;
        }
        Ok(())
    }
}

impl<P: Probe> Map<P> for Option<Mapping> {
    #[inline]
    fn has_entry(&mut self, core: &mut Core<P>, lpn: Lpn, owner: Owner, wants: Wants) -> bool {
        self.as_mut().is_none_or(|mapping| mapping.has_entry(core, lpn, owner, wants))
    }

    #[inline]
    fn keep_entry(&mut self, core: &mut Core<P>, lpn: Lpn) {
        if let Some(mapping) = self {
            mapping.keep_entry(core, lpn);
        }
    }

    #[inline]
    fn on_written(&mut self, core: &mut Core<P>, lpn: Lpn) {
        match self {
            Some(mapping) => {
                mapping.demand.on_changed(lpn);
                mapping.demand.set_level(lpn, 1);
            }
            None => core.set_unit_level(lpn, 1),
        }
    }

    #[inline]
    fn on_moved(&mut self, core: &mut Core<P>, lane: LaneId, lpn: Lpn, is_corrected: bool) {
        if is_corrected {
            self.on_corrected(core, lpn);
        }
        // LPNs from `logical_units` on are those of translation pages and combination pages, which have no map entry in
        // flash.
        if let Some(mapping) = self
            && lpn.0 < core.geometry().logical_units
        {
            mapping.on_moved(lane, lpn);
        }
    }

    fn on_unmapped(&mut self, core: &mut Core<P>, lpn: Lpn) -> Option<Tvpn> {
        match self {
            Some(mapping) => {
                mapping.demand.set_level(lpn, 1);
                mapping.demand.on_changed(lpn)
            }
            None => {
                core.set_unit_level(lpn, 1);
                None
            }
        }
    }

    fn end_job(&mut self, core: &mut Core<P>, lane: LaneId) {
        if let Some(mapping) = self {
            mapping.write_back_deferred(core, lane);
        }
    }

    #[inline]
    fn on_mapped_now(&mut self, lpn: Lpn) {
        if let Some(mapping) = self {
            mapping.demand.on_mapped_now(lpn);
        }
    }

    #[inline]
    fn level(&self, core: &Core<P>, lpn: Lpn) -> u8 {
        match self {
            Some(_) if !core.keeps_level(lpn) => 0,
            Some(mapping) => mapping.demand.level(lpn),
            None => core.levels().unit(lpn),
        }
    }

    #[inline]
    fn set_level(&mut self, core: &mut Core<P>, lpn: Lpn, level: u8) {
        match self {
            Some(_) if !core.keeps_level(lpn) => {}
            Some(mapping) => mapping.demand.set_level(lpn, level),
            None => core.set_unit_level(lpn, level),
        }
    }

    fn is_waiting(&self) -> bool {
        self.as_ref().is_some_and(|mapping| mapping.waiting_for_room_count > 0)
    }

    fn waits_in(&self, lane: LaneId) -> bool {
        self.as_ref().is_some_and(|mapping| !mapping.waiting_for_room[lane.index()].is_empty())
    }

    #[inline]
    fn prefetch_move(&self, lpn: Lpn) {
        if let Some(mapping) = self {
            mapping.demand.cache.prefetch_level(lpn);
        }
    }
}

state! {
    Mapping {
        demand,
        stats,
        held_misses,
        write_backs_under_way,
        waiting_for_room,
        waiting_for_room_count,
        deferred,
        stale,
    }
    parts { insertions }
    // A drive without power is not saved.
    fixed { miss, spec, before_loss }
}
