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
use crate::ftl::map::{TranslationPage, Tvpn, WriteBack};
use crate::ftl::{Place, WriteStream};
use crate::geometry::{Lpn, PlaneId, Ppn};
use crate::nand::Stamp;
use crate::probe::Probe;
use crate::sched::{Cause, Class, Fifo, Kind, Slot, Transaction};
use std::collections::VecDeque;

/// Translation pages being written back at which the host's misses begin to wait.
const WRITE_BACKS_MAX: u32 = 64;

/// What the drive keeps for the demand map beside [`DemandMap`](crate::ftl::map::DemandMap).
#[derive(Debug, Default)]
pub(super) struct Mapping {
    /// Misses that wait because too much is being written back.
    throttled: Fifo,
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
    /// Whether the map entry of `lpn` is at hand for a page of a host request, or for the write cache's `owner` (cause
    /// `Sync`). If not, the page waits for it, and goes on in [`Drive::on_entry`].
    #[inline]
    pub(super) fn has_entry(
        &mut self,
        lpn: Lpn,
        owner: u32,
        kind: Kind,
        cause: Cause,
        is_partial: bool,
    ) -> bool {
        let Some(demand) = &mut self.ftl.demand else { return true };
        let is_hit = demand.cache.touch(lpn);
        self.stats.map.on_lookup(kind, is_hit);
        if !is_hit {
            self.miss(lpn, owner, kind, cause, is_partial);
        }
        is_hit
    }

    fn miss(&mut self, lpn: Lpn, owner: u32, kind: Kind, cause: Cause, is_partial: bool) {
        let class = if kind == Kind::Read { Class::HostRead } else { Class::HostWrite };
        let mut waiter = self.transaction(kind, Ppn(0), lpn, owner, cause, class);
        waiter.merges = is_partial;
        if kind == Kind::Read && cause == Cause::Host {
            self.requests.get(owner).pages_left += 1;
        }
        let slot = self.pool.insert(waiter);
        if self.mapping.write_backs >= WRITE_BACKS_MAX {
            self.stats.map.throttled += 1;
            self.mapping.throttled.push(&mut self.pool, slot);
        } else {
            self.wait_for_entry(slot);
        }
    }

    /// Lets a page request wait for its translation page, which is read unless it is at hand.
    fn wait_for_entry(&mut self, slot: Slot) {
        let demand = self.ftl.demand.as_mut().expect("only a demand map misses");
        let page = demand.page_of(self.pool[slot].lpn);
        demand.pages[page as usize].waiting.push(&mut self.pool, slot);
        if !demand.pages[page as usize].is_read && !self.read_translation_page(page, Class::HostRead) {
            self.serve_waiting(page, false);
        }
    }

    /// Reads a translation page; `false` when its content is in RAM: never written, or about to be programmed.
    fn read_translation_page(&mut self, page: Tvpn, class: Class) -> bool {
        let demand = self.ftl.demand.as_ref().expect("only a demand map has translation pages");
        let lpn = demand.lpn_of(page);
        let is_merged = demand.pages[page as usize].write_back == WriteBack::Room;
        let Some(ppn) = self.ftl.map.get(lpn) else { return false };
        if is_merged || self.is_in_flight(ppn) {
            return false;
        }
        let demand = self.ftl.demand.as_mut().expect("only a demand map has translation pages");
        demand.pages[page as usize].is_read = true;
        self.read_page(ppn, lpn, page, Cause::Mapping, class, false);
        true
    }

    pub(super) fn on_translation_read(&mut self, read: &Transaction) {
        let page: Tvpn = read.owner;
        let demand = self.ftl.demand.as_mut().expect("only a demand map has translation pages");
        let state = &mut demand.pages[page as usize];
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
        let demand = self.ftl.demand.as_mut().expect("only a demand map has translation pages");
        let mut waiting = std::mem::take(&mut demand.pages[page as usize].waiting);
        while let Some(slot) = waiting.pop(&self.pool) {
            let waiter = self.pool.remove(slot);
            if is_lost && waiter.cause == Cause::Host {
                self.fail_page(waiter.owner);
                if waiter.kind == Kind::Read {
                    self.probe.on_read_failed(waiter.owner, waiter.lpn);
                }
                self.page_done(waiter.owner);
                continue;
            }
            self.keep_entry(waiter.lpn);
            self.on_entry(&waiter);
        }
    }

    /// A page request goes on with its entry.
    fn on_entry(&mut self, waiter: &Transaction) {
        match (waiter.cause, waiter.kind) {
            (Cause::Sync, Kind::Read) => self.fetch_mapped(waiter.owner),
            (Cause::Sync, _) => self.program_page(waiter.owner, waiter.lpn, Cause::Sync),
            (_, Kind::Read) => {
                self.read_mapped(waiter.owner, waiter.lpn);
                self.page_done(waiter.owner);
            }
            _ => self.write_mapped(waiter.owner, waiter.lpn, waiter.merges),
        }
    }

    /// Puts the entry of `lpn` into the cache; what leaves for it is written back if it was dirty.
    fn bring_in(&mut self, lpn: Lpn) {
        let level = match self.ftl.map.get(lpn) {
            Some(ppn) => self.levels.block(self.geometry.block_of(ppn)).max(1),
            None => 1,
        };
        let demand = self.ftl.demand.as_mut().expect("only a demand map has entries to bring in");
        if let Some(Some(in_flash)) = P::STAMPED.then(|| demand.in_flash(lpn)) {
            assert!(in_flash == self.ftl.map.get(lpn), "LPN {}: its translation page is out of date", lpn.0);
        }
        let loaded = demand.load(lpn, level);
        self.stats.map.evictions += u64::from(loaded.evicted);
        if let Some(page) = loaded.write_back {
            self.stats.map.dirty_evictions += 1;
            self.write_back(page);
        }
    }

    /// Makes sure that the entry of `lpn` is cached, which may have left while a page waited for room. The page still
    /// knows its mapping, so that costs no read.
    #[inline]
    pub(super) fn keep_entry(&mut self, lpn: Lpn) {
        if self.ftl.demand.as_ref().is_some_and(|demand| !demand.cache.contains(lpn)) {
            self.bring_in(lpn);
        }
    }

    /// The host has written `lpn`: its entry is dirty, and its data is of the first level.
    #[inline]
    pub(super) fn on_host_mapped(&mut self, lpn: Lpn) {
        if let Some(demand) = &mut self.ftl.demand {
            demand.on_changed(lpn);
        }
        self.remember_level(lpn, 1);
    }

    /// A background job of `plane` has moved `lpn`. Data that has been corrected reads at the first level again.
    #[inline]
    pub(super) fn on_moved(&mut self, plane: PlaneId, lpn: Lpn, is_corrected: bool) {
        if is_corrected {
            self.on_corrected(lpn);
        }
        let Some(demand) = &mut self.ftl.demand else { return };
        // Not of the host's: a translation page, or a combination page.
        if lpn.0 >= self.geometry.logical_pages {
            return;
        }
        if let Some(page) = demand.on_changed(lpn) {
            let state = &mut demand.pages[page as usize];
            if !std::mem::replace(&mut state.is_deferred, true) {
                self.mapping.deferred[plane.index()].push(page);
            }
        }
    }

    /// The data of `lpn` has been corrected: it is as new.
    pub(super) fn on_corrected(&mut self, lpn: Lpn) {
        if self.known_level(lpn) != 0 {
            self.remember_level(lpn, 1);
        }
    }

    /// The host has deallocated `lpn`; returns the translation page that has to be written back.
    pub(super) fn on_unmapped(&mut self, lpn: Lpn) -> Option<Tvpn> {
        self.remember_level(lpn, 1);
        self.ftl.demand.as_mut()?.on_changed(lpn)
    }

    /// A background job of `plane` has emptied its victim: what it has changed is written back.
    pub(super) fn write_back_deferred(&mut self, plane: PlaneId) {
        if self.ftl.demand.is_none() {
            return;
        }
        let mut pages = std::mem::take(&mut self.mapping.deferred[plane.index()]);
        for page in pages.drain(..) {
            let demand = self.ftl.demand.as_mut().expect("it is there");
            let state = &mut demand.pages[page as usize];
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
        let demand = self.ftl.demand.as_mut().expect("only a demand map has translation pages");
        let state = &mut demand.pages[page as usize];
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
        let mut plane = self.ftl.allocator.home(Lpn(page), self.geometry.planes);
        if self.has_displaced && !self.has_mapping_room(plane) {
            plane = self.plane_in_place_of(plane, |drive, plane| drive.has_mapping_room(plane));
        }
        let demand = self.ftl.demand.as_mut().expect("only a demand map has translation pages");
        let lpn = demand.lpn_of(page);
        let place = if self.has_mapping_room(plane) {
            self.ftl.allocate(&self.geometry, &mut self.array, plane, WriteStream::Mapping)
        } else {
            None
        };
        let demand = self.ftl.demand.as_mut().expect("it is there");
        let Some(Place { ppn, opened, skips }) = place else {
            demand.pages[page as usize].write_back = WriteBack::Room;
            self.mapping.for_room[plane.index()].push_back(page);
            self.mapping.for_room_count += 1;
            self.check_space(plane);
            return;
        };
        demand.pages[page as usize].write_back = WriteBack::Program;
        let entries = demand.write(page, &self.ftl.map);
        self.stats.map.write_backs += 1;
        self.stats.map.written_entries += u64::from(entries);
        self.sequence += 1;
        let stamp = Stamp { sequence: self.sequence, corrected: self.moment() };
        self.array.stage(ppn, lpn, stamp);
        self.remember_level(lpn, 1);
        let mut program = self.transaction(Kind::Program, ppn, lpn, page, Cause::Mapping, Class::HostWrite);
        program.skips = skips;
        program.replaces = self.ftl.remap(&self.geometry, &mut self.array, lpn, ppn);
        if let Some(old) = program.replaces {
            self.hold(old);
        }
        let slot = self.pool.insert(program);
        self.enqueue(slot);
        if opened {
            self.check_space(plane);
        }
    }

    /// Whether translation pages may take a page of `plane`: not what a job that moves translation pages still needs,
    /// and not the last free block.
    fn has_mapping_room(&self, plane: PlaneId) -> bool {
        let for_job = self.pages_to_move(plane, WriteStream::Mapping);
        let room = self.ftl.stream_room(&self.geometry, plane, WriteStream::Mapping);
        room > for_job && self.ftl.has_mapping_room(plane)
    }

    pub(super) fn on_translation_programmed(&mut self, done: &Transaction) {
        let page: Tvpn = done.owner;
        self.end_write_back(page);
    }

    fn end_write_back(&mut self, page: Tvpn) {
        let demand = self.ftl.demand.as_mut().expect("only a demand map has translation pages");
        let state = &mut demand.pages[page as usize];
        state.write_back = WriteBack::None;
        self.mapping.write_backs -= 1;
        if std::mem::take(&mut state.again) && state.is_stale {
            self.write_back(page);
        }
        self.resume_throttled();
    }

    fn resume_throttled(&mut self) {
        while self.mapping.write_backs < WRITE_BACKS_MAX
            && let Some(slot) = self.mapping.throttled.pop(&self.pool)
        {
            let demand = self.ftl.demand.as_mut().expect("only a demand map misses");
            // Another miss may have brought it in.
            if demand.cache.touch(self.pool[slot].lpn) {
                let waiter = self.pool.remove(slot);
                self.on_entry(&waiter);
            } else {
                self.wait_for_entry(slot);
            }
        }
    }

    /// Gives translation pages that wait for room in `plane` what there is now.
    pub(super) fn resume_write_backs(&mut self, plane: PlaneId) {
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
                self.stats.map.given_up += 1;
                self.end_write_back(page);
            }
        }
    }

    /// Writes every translation page that is out of date at once, without simulating time: after preconditioning.
    pub fn settle_map(&mut self) {
        let Some(demand) = &self.ftl.demand else { return };
        let pages = demand.pages.len() as u32;
        let mut is_settled = false;
        // Making room for one may change others.
        while !std::mem::replace(&mut is_settled, true) {
            for page in 0..pages {
                let demand = self.ftl.demand.as_mut().expect("it is there");
                if !demand.has_changes(page) {
                    continue;
                }
                let lpn = demand.lpn_of(page);
                if self.ftl.map.get(lpn).is_none() && !demand.has_entries(page, &self.ftl.map) {
                    demand.write(page, &self.ftl.map);
                    continue;
                }
                is_settled = false;
                let plane = self.ftl.allocator.home(Lpn(page), self.geometry.planes);
                while !self.has_mapping_room(plane) {
                    self.collect_now(plane).expect("the drive has room left");
                }
                let demand = self.ftl.demand.as_mut().expect("it is there");
                demand.write(page, &self.ftl.map);
                // Of two that are written here the later one counts.
                self.sequence += 1;
                self.program_now(plane, WriteStream::Mapping, lpn, self.sequence);
            }
        }
    }

    /// With nothing under way every change that RAM holds is in a cached entry, unless the drive has worn out.
    ///
    /// # Errors
    /// The first translation page that is out of date.
    pub(super) fn audit_map_at_rest(&self) -> Result<(), String> {
        let Some(demand) = &self.ftl.demand else { return Ok(()) };
        let is_forgotten = |page: &TranslationPage| page.is_stale || page.again || page.is_deferred;
        match demand.pages.iter().position(is_forgotten) {
            Some(page) if self.stats.map.given_up == 0 => {
                Err(format!("translation page {page} has changed and nobody writes it back"))
            }
            _ => Ok(()),
        }
    }
}
