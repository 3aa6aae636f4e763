//! The demand map at work: misses wait for their translation page, changed translation pages are written back.
//!
//! A page request whose entry is not cached waits with its translation page; one read serves all that wait for it.
//! An entry that leaves the cache dirty has its translation page written back, with all other changes of it that
//! there are by then. GC changes the entries of what it moves: in the cache where they are, else in RAM until its
//! victim is empty; then each translation page it has touched is written back once. TRIM does the same.
//!
//! Changes that wait for their translation page take RAM, so there is a limit to what the host may add: beyond it,
//! misses wait.

use super::Drive;
use crate::core::{Maps, Part, Program, Queue, Read, To, Waiter, Wake, Wants};
use crate::ftl::WriteStream;
use crate::ftl::map::{TranslationPage, Tvpn, WriteBack};
use crate::geometry::{Lpn, PlaneId};
use crate::probe::Probe;
use crate::sched::{Cause, Class, Owner, Start, Transaction};
use std::collections::VecDeque;

/// Translation pages being written back at which the host's misses begin to wait.
const WRITE_BACKS_MAX: u32 = 64;

/// What the drive keeps for the demand map beside [`DemandMap`](crate::ftl::map::DemandMap).
#[derive(Debug, Default)]
pub(super) struct Mapping {
    /// Misses that wait because too much is being written back.
    throttled: Queue,
    /// Translation pages being written back.
    write_backs: u32,
    /// Those of them that wait for a free page, by plane.
    for_room: Box<[VecDeque<Tvpn>]>,
    /// Those of them in [`Mapping::for_room`].
    for_room_count: u32,
    /// Translation pages that a plane's background job has changed.
    deferred: Box<[Vec<Tvpn>]>,
}

impl Mapping {
    pub(super) fn new(planes: usize) -> Self {
        Self {
            for_room: vec![VecDeque::new(); planes].into(),
            deferred: vec![Vec::new(); planes].into(),
            ..Self::default()
        }
    }

    /// Nothing waits and nothing is being written back.
    pub(super) fn is_idle(&self) -> bool {
        self.throttled.is_empty() && self.write_backs == 0 && self.deferred.iter().all(Vec::is_empty)
    }

    /// Whether something waits for room that may never come.
    pub(super) fn waits_for_room(&self) -> bool {
        self.for_room_count > 0
    }
}

impl<P: Probe> Drive<P> {
    /// Whether the map entry of `lpn` is at hand for a page of a host request, or of the write cache. If not, the page waits
    /// for it, and goes on with [`Wake::Entry`].
    #[inline]
    pub(super) fn has_entry(&mut self, lpn: Lpn, owner: Owner, wants: Wants) -> bool {
        let Some(demand) = &mut self.core.ftl.demand else { return true };
        let is_hit = demand.cache.touch(lpn);
        self.core.stats.map.on_lookup(wants == Wants::Read, is_hit);
        is_hit || self.miss(Waiter::new(owner, lpn, wants))
    }

    /// Lets a page wait, unless the translation page with its entry is at hand; whether it is.
    fn miss(&mut self, waiter: Waiter) -> bool {
        let _inside = self.core.inside.enter(Part::DemandMap);
        if self.mapping.write_backs >= WRITE_BACKS_MAX {
            self.core.stats.map.throttled += 1;
            let waiter = self.core.waiters.insert(waiter);
            self.mapping.throttled.push(&mut self.core.waiters, waiter);
            return false;
        }
        self.is_at_hand(waiter)
    }

    /// Brings the entry of a page into the cache if the translation page with it is at hand; if not, the page waits for its
    /// translation page, which is read unless it is being read.
    fn is_at_hand(&mut self, waiter: Waiter) -> bool {
        let demand = self.core.ftl.demand.as_mut().expect("only a demand map misses");
        let page = demand.page_of(waiter.lpn);
        if !demand.pages[page.index()].is_read && !self.read_translation_page(page, Class::HostRead) {
            self.bring_in(waiter.lpn);
            return true;
        }
        let waiter = self.core.waiters.insert(waiter);
        let demand = self.core.ftl.demand.as_mut().expect("it is there");
        demand.pages[page.index()].waiting.push(&mut self.core.waiters, waiter);
        false
    }

    /// Reads a translation page; `false` when its content is in RAM: never written, or about to be programmed.
    fn read_translation_page(&mut self, page: Tvpn, class: Class) -> bool {
        let demand = self.core.ftl.demand.as_ref().expect("only a demand map has translation pages");
        let lpn = demand.lpn_of(page);
        let is_merged = demand.pages[page.index()].write_back == WriteBack::Room;
        let Some(ppn) = self.core.ftl.map.get(lpn) else { return false };
        if is_merged || self.core.is_in_flight(ppn) {
            return false;
        }
        let demand = self.core.ftl.demand.as_mut().expect("only a demand map has translation pages");
        demand.pages[page.index()].is_read = true;
        let (owner, cause) = (Owner::TranslationPage(page), Cause::Mapping);
        self.core.read(Read { ppn, lpn, owner, cause, class, start: Start::Policy });
        true
    }

    pub(super) fn on_translation_read(&mut self, page: Tvpn, read: &Transaction) {
        let _inside = self.core.inside.enter(Part::DemandMap);
        let demand = self.core.ftl.demand.as_mut().expect("only a demand map has translation pages");
        let state = &mut demand.pages[page.index()];
        state.is_read = false;
        let is_merged = state.write_back == WriteBack::Read;
        self.serve_waiting(page, read.is_uncorrectable());
        // A lost one is made anew, as recovery would: from the OOB of the data pages.
        if is_merged {
            self.program_translation_page(page);
        }
    }

    /// Those that wait for a translation page go on, or fail with it.
    fn serve_waiting(&mut self, page: Tvpn, is_lost: bool) {
        let demand = self.core.ftl.demand.as_mut().expect("only a demand map has translation pages");
        let mut waiting = std::mem::take(&mut demand.pages[page.index()].waiting);
        while let Some(waiter) = waiting.pop(&mut self.core.waiters) {
            let waiter = self.core.waiters.remove(waiter);
            self.core.wake(Wake::Entry { waiter, is_lost });
        }
    }

    /// A page that has waited for its map entry goes on with it, or fails with its translation page. The write cache's own
    /// go on: a lost translation page is made anew from the OOB of the data pages.
    pub(super) fn on_entry(&mut self, waiter: &Waiter, is_lost: bool) {
        if is_lost && let Owner::Request(id) = waiter.owner {
            self.fail_page(id);
            if waiter.wants == Wants::Read {
                self.core.probe.on_read_failed(id, waiter.lpn);
            }
            self.page_done(id);
            return;
        }
        self.keep_entry(waiter.lpn);
        match (waiter.owner, waiter.wants) {
            (Owner::CachePage(slot), Wants::Read) => self.fetch_mapped(slot),
            (Owner::CachePage(_), _) => self.program_page(waiter.owner, waiter.lpn),
            (owner, Wants::Read) => {
                self.read_mapped(owner.request(), waiter.lpn);
                self.page_done(owner.request());
            }
            (owner, wants) => self.write_mapped(owner.request(), waiter.lpn, wants == Wants::PartialWrite),
        }
    }

    /// Puts the entry of `lpn` into the cache; what leaves for it is written back if it was dirty.
    fn bring_in(&mut self, lpn: Lpn) {
        let level = match self.core.ftl.map.get(lpn) {
            Some(ppn) => self.core.levels.block(self.core.geometry.block_of(ppn)).max(1),
            None => 1,
        };
        let demand = self.core.ftl.demand.as_mut().expect("only a demand map has entries to bring in");
        if let Some(Some(in_flash)) = P::STAMPED.then(|| demand.in_flash(lpn)) {
            assert!(
                in_flash == self.core.ftl.map.get(lpn),
                "LPN {}: its translation page is out of date",
                lpn.0
            );
        }
        let loaded = demand.load(lpn, level);
        self.core.stats.map.evictions += u64::from(loaded.evicted);
        if let Some(page) = loaded.write_back {
            self.core.stats.map.dirty_evictions += 1;
            self.write_back(page);
        }
    }

    /// Makes sure that the entry of `lpn` is cached, which may have left while a page waited for room. The page still
    /// knows its mapping, so that costs no read.
    #[inline]
    pub(super) fn keep_entry(&mut self, lpn: Lpn) {
        if self.core.ftl.demand.as_ref().is_some_and(|demand| !demand.cache.contains(lpn)) {
            let _inside = self.core.inside.enter(Part::DemandMap);
            self.bring_in(lpn);
        }
    }

    /// The host has written `lpn`: its entry is dirty, and its data is of the first level.
    #[inline]
    pub(super) fn on_host_mapped(&mut self, lpn: Lpn) {
        if let Some(demand) = &mut self.core.ftl.demand {
            demand.on_changed(lpn);
        }
        self.core.remember_level(lpn, 1);
    }

    /// A background job of `plane` has moved `lpn`. Data that has been corrected reads at the first level again.
    #[inline]
    pub(super) fn on_moved(&mut self, plane: PlaneId, lpn: Lpn, is_corrected: bool) {
        if is_corrected {
            self.core.on_corrected(lpn);
        }
        let Some(demand) = &mut self.core.ftl.demand else { return };
        // Not of the host's: a translation page, or a combination page.
        if lpn.0 >= self.core.geometry.logical_pages {
            return;
        }
        if let Some(page) = demand.on_changed(lpn) {
            let state = &mut demand.pages[page.index()];
            if !std::mem::replace(&mut state.is_deferred, true) {
                self.mapping.deferred[plane.index()].push(page);
            }
        }
    }

    /// The host has deallocated `lpn`; returns the translation page that has to be written back.
    pub(super) fn on_unmapped(&mut self, lpn: Lpn) -> Option<Tvpn> {
        self.core.remember_level(lpn, 1);
        self.core.ftl.demand.as_mut()?.on_changed(lpn)
    }

    /// A background job of `plane` has emptied its victim: what it has changed is written back.
    pub(super) fn write_back_deferred(&mut self, plane: PlaneId) {
        if self.core.ftl.demand.is_none() {
            return;
        }
        let mut pages = std::mem::take(&mut self.mapping.deferred[plane.index()]);
        for page in pages.drain(..) {
            let demand = self.core.ftl.demand.as_mut().expect("it is there");
            let state = &mut demand.pages[page.index()];
            state.is_deferred = false;
            // Unless it has been written back since.
            if state.is_stale {
                self.write_back(page);
            }
        }
        // Keeps its memory.
        self.mapping.deferred[plane.index()] = pages;
    }

    /// Writes a translation page back: reads what it does not change, programs it anew.
    pub(super) fn write_back(&mut self, page: Tvpn) {
        let demand = self.core.ftl.demand.as_mut().expect("only a demand map has translation pages");
        let state = &mut demand.pages[page.index()];
        if state.write_back != WriteBack::None {
            // Before the program is queued, whatever changes goes with it.
            state.again |= state.write_back == WriteBack::Program;
            return;
        }
        self.mapping.write_backs += 1;
        state.write_back = WriteBack::Read;
        // A read for those that wait serves this too.
        if !state.is_read && !self.read_translation_page(page, Class::HostWrite) {
            self.program_translation_page(page);
        }
    }

    /// Queues the program of a translation page, when its plane has room.
    fn program_translation_page(&mut self, page: Tvpn) {
        let mut plane = self.core.ftl.allocator.home(Lpn(page.0), self.core.geometry.planes);
        if self.core.has_displaced && !self.has_mapping_room(plane) {
            plane = self.plane_in_place_of(plane, |drive, plane| drive.has_mapping_room(plane));
        }
        let has_room = self.has_mapping_room(plane);
        let demand = self.core.ftl.demand.as_mut().expect("only a demand map has translation pages");
        let lpn = demand.lpn_of(page);
        if !has_room {
            demand.pages[page.index()].write_back = WriteBack::Room;
            self.mapping.for_room[plane.index()].push_back(page);
            self.mapping.for_room_count += 1;
            self.core.wake(Wake::Space(plane));
            return;
        }
        let entries = demand.write(page, &self.core.ftl.map);
        demand.pages[page.index()].write_back = WriteBack::Program;
        self.core.stats.map.write_backs += 1;
        self.core.stats.map.written_entries += u64::from(entries);
        let stamp = self.core.next_stamp();
        self.core.remember_level(lpn, 1);
        let (to, owner) = (To::Stream(plane, WriteStream::Mapping), Owner::TranslationPage(page));
        let (maps, cause, class) = (Maps::Now, Cause::Mapping, Class::HostWrite);
        let queued = self.core.program(Program { to, lpn, stamp, maps, owner, cause, class });
        queued.expect("the plane has room for translation pages");
    }

    /// Whether translation pages may take a page of `plane`: not what a job that moves translation pages still needs,
    /// and not the last free block.
    fn has_mapping_room(&self, plane: PlaneId) -> bool {
        let for_job = self.pages_to_move(plane, WriteStream::Mapping);
        let room = self.core.ftl.stream_room(&self.core.geometry, plane, WriteStream::Mapping);
        room > for_job && self.core.ftl.has_mapping_room(plane)
    }

    /// A translation page has been programmed, or will not be.
    pub(super) fn end_write_back(&mut self, page: Tvpn) {
        let _inside = self.core.inside.enter(Part::DemandMap);
        let demand = self.core.ftl.demand.as_mut().expect("only a demand map has translation pages");
        let state = &mut demand.pages[page.index()];
        state.write_back = WriteBack::None;
        self.mapping.write_backs -= 1;
        if std::mem::take(&mut state.again) && state.is_stale {
            self.write_back(page);
        }
        self.resume_throttled();
    }

    fn resume_throttled(&mut self) {
        while self.mapping.write_backs < WRITE_BACKS_MAX
            && let Some(waiter) = self.mapping.throttled.pop(&mut self.core.waiters)
        {
            let demand = self.core.ftl.demand.as_mut().expect("only a demand map misses");
            let waiter = self.core.waiters.remove(waiter);
            // Another miss may have brought it in.
            if demand.cache.touch(waiter.lpn) || self.is_at_hand(waiter) {
                self.core.wake(Wake::Entry { waiter, is_lost: false });
            }
        }
    }

    /// Gives translation pages that wait for room in `plane` what there is now.
    pub(super) fn resume_write_backs(&mut self, plane: PlaneId) {
        let _inside = self.core.inside.enter(Part::DemandMap);
        let waiting = self.mapping.for_room.get(plane.index()).map_or(0, VecDeque::len);
        for _ in 0..waiting {
            if !self.has_mapping_room(plane) {
                break;
            }
            let page = self.mapping.for_room[plane.index()].pop_front().expect("it has been counted");
            self.mapping.for_room_count -= 1;
            self.program_translation_page(page);
        }
    }

    /// No room will come any more, the drive has worn out: changes stay in RAM, and what waited for them goes on.
    pub(super) fn give_up_write_backs(&mut self) {
        for plane in 0..self.mapping.for_room.len() {
            for page in std::mem::take(&mut self.mapping.for_room[plane]) {
                self.mapping.for_room_count -= 1;
                self.core.stats.map.given_up += 1;
                self.end_write_back(page);
            }
        }
    }

    /// Writes every translation page that is out of date at once, without simulating time: after preconditioning.
    pub fn settle_map(&mut self) {
        let Some(demand) = &self.core.ftl.demand else { return };
        let pages = demand.numbers();
        let mut is_settled = false;
        // Making room for one may change others.
        while !std::mem::replace(&mut is_settled, true) {
            for page in pages.clone() {
                let demand = self.core.ftl.demand.as_mut().expect("it is there");
                if !demand.has_changes(page) {
                    continue;
                }
                let lpn = demand.lpn_of(page);
                if self.core.ftl.map.get(lpn).is_none() && !demand.has_entries(page, &self.core.ftl.map) {
                    demand.write(page, &self.core.ftl.map);
                    continue;
                }
                is_settled = false;
                let plane = self.core.ftl.allocator.home(Lpn(page.0), self.core.geometry.planes);
                while !self.has_mapping_room(plane) {
                    self.collect_now(plane).expect("the drive has room left");
                }
                let demand = self.core.ftl.demand.as_mut().expect("it is there");
                demand.write(page, &self.core.ftl.map);
                // Of two that are written here the later one counts.
                self.core.sequence += 1;
                self.program_now(plane, WriteStream::Mapping, lpn, self.core.sequence);
            }
        }
    }

    /// With nothing under way every change that RAM holds is in a cached entry, unless the drive has worn out.
    ///
    /// # Errors
    /// The first translation page that is out of date.
    pub(super) fn audit_map_at_rest(&self) -> Result<(), String> {
        let Some(demand) = &self.core.ftl.demand else { return Ok(()) };
        let is_forgotten = |page: &TranslationPage| page.is_stale || page.again || page.is_deferred;
        match demand.pages.iter().position(is_forgotten) {
            Some(page) if self.core.stats.map.given_up == 0 => {
                Err(format!("translation page {page} has changed and nobody writes it back"))
            }
            _ => Ok(()),
        }
    }
}
