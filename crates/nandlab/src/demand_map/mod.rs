//! The demand map at work: misses wait for their translation page, changed translation pages are written back.
//!
//! A page request whose entry is not cached waits with its translation page; one read serves all that wait for it.
//! An entry that leaves the cache dirty has its translation page written back, with all other changes of it that
//! there are by then. GC changes the entries of what it moves: in the cache where they are, else in RAM until its
//! victim is empty; then each translation page it has touched is written back once. TRIM does the same.
//!
//! Changes that wait for their translation page take RAM, so there is a limit to what the host may add: beyond it,
//! misses wait.

mod cache;
mod demand;
mod spec;
mod stats;

pub use cache::{Cache, ENTRY_BYTES, Eviction};
pub use demand::{DemandMap, TranslationPage, Tvpn, WriteBack};
pub use spec::MapSpec;
pub use stats::MapStats;

use crate::base::geometry::{Lpn, PlaneId};
use crate::core::{Core, Maps, Part, Program, Queue, Read, To, Waiter, Wake, Wants};
use crate::ftl::WriteStream;
use crate::probe::Probe;
use crate::sched::{Cause, Class, Owner, Start, Transaction};
use std::collections::VecDeque;

/// Translation pages being written back at which the host's misses begin to wait.
const WRITE_BACKS_MAX: u32 = 64;

/// What the drive keeps for the demand map beside [`DemandMap`](DemandMap).
#[derive(Debug, Default)]
pub(crate) struct Mapping {
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
    pub(crate) fn new(planes: usize) -> Self {
        Self {
            for_room: vec![VecDeque::new(); planes].into(),
            deferred: vec![Vec::new(); planes].into(),
            ..Self::default()
        }
    }

    /// Nothing waits and nothing is being written back.
    pub(crate) fn is_idle(&self) -> bool {
        self.throttled.is_empty() && self.write_backs == 0 && self.deferred.iter().all(Vec::is_empty)
    }

    /// Whether something waits for room that may never come.
    pub(crate) fn waits_for_room(&self) -> bool {
        self.for_room_count > 0
    }

    /// Whether a translation page waits for room in a plane.
    pub(crate) fn waits_in(&self, plane: PlaneId) -> bool {
        self.for_room.get(plane.index()).is_some_and(|pages| !pages.is_empty())
    }
}

impl Mapping {
    /// Whether the map entry of `lpn` is at hand for a page of a host request, or of the write cache. If not, the page waits
    /// for it, and goes on with [`Wake::Entry`].
    #[inline]
    pub(crate) fn has_entry<P: Probe>(
        &mut self,
        core: &mut Core<P>,
        lpn: Lpn,
        owner: Owner,
        wants: Wants,
    ) -> bool {
        let Some(demand) = &mut core.ftl.demand else { return true };
        let is_hit = demand.cache.touch(lpn);
        core.stats.map.on_lookup(wants == Wants::Read, is_hit);
        is_hit || self.miss(core, Waiter::new(owner, lpn, wants))
    }

    /// Lets a page wait, unless the translation page with its entry is at hand; whether it is.
    #[inline(never)]
    fn miss<P: Probe>(&mut self, core: &mut Core<P>, waiter: Waiter) -> bool {
        let _inside = core.inside.enter(Part::DemandMap);
        if self.write_backs >= WRITE_BACKS_MAX {
            core.stats.map.throttled += 1;
            let waiter = core.waiters.insert(waiter);
            self.throttled.push(&mut core.waiters, waiter);
            return false;
        }
        self.is_at_hand(core, waiter)
    }

    /// Brings the entry of a page into the cache if the translation page with it is at hand; if not, the page waits for its
    /// translation page, which is read unless it is being read.
    fn is_at_hand<P: Probe>(&mut self, core: &mut Core<P>, waiter: Waiter) -> bool {
        let demand = core.ftl.demand.as_mut().expect("only a demand map misses");
        let page = demand.page_of(waiter.lpn);
        if !demand.pages[page.index()].is_read && !self.read_translation_page(core, page, Class::HostRead) {
            self.bring_in(core, waiter.lpn);
            return true;
        }
        let waiter = core.waiters.insert(waiter);
        let demand = core.ftl.demand.as_mut().expect("it is there");
        demand.pages[page.index()].waiting.push(&mut core.waiters, waiter);
        false
    }

    /// Reads a translation page; `false` when its content is in RAM: never written, or about to be programmed.
    fn read_translation_page<P: Probe>(&mut self, core: &mut Core<P>, page: Tvpn, class: Class) -> bool {
        let demand = core.ftl.demand.as_ref().expect("only a demand map has translation pages");
        let lpn = demand.lpn_of(page);
        let is_merged = demand.pages[page.index()].write_back == WriteBack::Room;
        let Some(ppn) = core.ftl.map.get(lpn) else { return false };
        if is_merged || core.is_in_flight(ppn) {
            return false;
        }
        let demand = core.ftl.demand.as_mut().expect("only a demand map has translation pages");
        demand.pages[page.index()].is_read = true;
        let (owner, cause) = (Owner::TranslationPage(page), Cause::Mapping);
        core.read(Read { ppn, lpn, owner, cause, class, start: Start::Policy });
        true
    }

    #[inline(never)]
    pub(crate) fn on_translation_read<P: Probe>(
        &mut self,
        core: &mut Core<P>,
        page: Tvpn,
        read: &Transaction,
    ) {
        let _inside = core.inside.enter(Part::DemandMap);
        let demand = core.ftl.demand.as_mut().expect("only a demand map has translation pages");
        let state = &mut demand.pages[page.index()];
        state.is_read = false;
        let is_merged = state.write_back == WriteBack::Read;
        self.serve_waiting(core, page, read.is_uncorrectable());
        // A lost one is made anew, as recovery would: from the OOB of the data pages.
        if is_merged {
            self.program_translation_page(core, page);
        }
    }

    /// Those that wait for a translation page go on, or fail with it.
    fn serve_waiting<P: Probe>(&mut self, core: &mut Core<P>, page: Tvpn, is_lost: bool) {
        let demand = core.ftl.demand.as_mut().expect("only a demand map has translation pages");
        let mut waiting = std::mem::take(&mut demand.pages[page.index()].waiting);
        while let Some(waiter) = waiting.pop(&mut core.waiters) {
            let waiter = core.waiters.remove(waiter);
            core.wake(Wake::Entry { waiter, is_lost });
        }
    }

    /// Puts the entry of `lpn` into the cache; what leaves for it is written back if it was dirty.
    #[inline(never)]
    fn bring_in<P: Probe>(&mut self, core: &mut Core<P>, lpn: Lpn) {
        let level = match core.ftl.map.get(lpn) {
            Some(ppn) => core.levels.block(core.geometry.block_of(ppn)).max(1),
            None => 1,
        };
        let demand = core.ftl.demand.as_mut().expect("only a demand map has entries to bring in");
        if let Some(Some(in_flash)) = P::STAMPED.then(|| demand.in_flash(lpn)) {
            assert!(in_flash == core.ftl.map.get(lpn), "LPN {}: its translation page is out of date", lpn.0);
        }
        let loaded = demand.load(lpn, level);
        core.stats.map.evictions += u64::from(loaded.evicted);
        if let Some(page) = loaded.write_back {
            core.stats.map.dirty_evictions += 1;
            self.write_back(core, page);
        }
    }

    /// Makes sure that the entry of `lpn` is cached, which may have left while a page waited for room. The page still
    /// knows its mapping, so that costs no read.
    #[inline]
    pub(crate) fn keep_entry<P: Probe>(&mut self, core: &mut Core<P>, lpn: Lpn) {
        if core.ftl.demand.as_ref().is_some_and(|demand| !demand.cache.contains(lpn)) {
            let _inside = core.inside.enter(Part::DemandMap);
            self.bring_in(core, lpn);
        }
    }

    /// The host has written `lpn`: its entry is dirty, and its data is of the first level.
    #[inline]
    pub(crate) fn on_host_mapped<P: Probe>(&mut self, core: &mut Core<P>, lpn: Lpn) {
        if let Some(demand) = &mut core.ftl.demand {
            demand.on_changed(lpn);
        }
        core.remember_level(lpn, 1);
    }

    /// A background job of `plane` has moved `lpn`. Data that has been corrected reads at the first level again.
    #[inline]
    pub(crate) fn on_moved<P: Probe>(
        &mut self,
        core: &mut Core<P>,
        plane: PlaneId,
        lpn: Lpn,
        is_corrected: bool,
    ) {
        if is_corrected {
            core.on_corrected(lpn);
        }
        let Some(demand) = &mut core.ftl.demand else { return };
        // Not of the host's: a translation page, or a combination page.
        if lpn.0 >= core.geometry.logical_pages {
            return;
        }
        if let Some(page) = demand.on_changed(lpn) {
            let state = &mut demand.pages[page.index()];
            if !std::mem::replace(&mut state.is_deferred, true) {
                self.deferred[plane.index()].push(page);
            }
        }
    }

    /// The host has deallocated `lpn`; returns the translation page that has to be written back.
    pub(crate) fn on_unmapped<P: Probe>(&mut self, core: &mut Core<P>, lpn: Lpn) -> Option<Tvpn> {
        core.remember_level(lpn, 1);
        core.ftl.demand.as_mut()?.on_changed(lpn)
    }

    /// A background job of `plane` has emptied its victim: what it has changed is written back.
    #[inline(never)]
    pub(crate) fn write_back_deferred<P: Probe>(&mut self, core: &mut Core<P>, plane: PlaneId) {
        if core.ftl.demand.is_none() {
            return;
        }
        let mut pages = std::mem::take(&mut self.deferred[plane.index()]);
        for page in pages.drain(..) {
            let demand = core.ftl.demand.as_mut().expect("it is there");
            let state = &mut demand.pages[page.index()];
            state.is_deferred = false;
            // Unless it has been written back since.
            if state.is_stale {
                self.write_back(core, page);
            }
        }
        // Keeps its memory.
        self.deferred[plane.index()] = pages;
    }

    /// Writes a translation page back: reads what it does not change, programs it anew.
    pub(crate) fn write_back<P: Probe>(&mut self, core: &mut Core<P>, page: Tvpn) {
        let demand = core.ftl.demand.as_mut().expect("only a demand map has translation pages");
        let state = &mut demand.pages[page.index()];
        if state.write_back != WriteBack::None {
            // Before the program is queued, whatever changes goes with it.
            state.again |= state.write_back == WriteBack::Program;
            return;
        }
        self.write_backs += 1;
        state.write_back = WriteBack::Read;
        // A read for those that wait serves this too.
        if !state.is_read && !self.read_translation_page(core, page, Class::HostWrite) {
            self.program_translation_page(core, page);
        }
    }

    /// Queues the program of a translation page, when its plane has room.
    #[inline(never)]
    fn program_translation_page<P: Probe>(&mut self, core: &mut Core<P>, page: Tvpn) {
        let mut plane = core.ftl.allocator.home(Lpn(page.0), core.geometry.planes);
        // Dynamic allocation, too, may have filled a plane.
        let may_be_full = core.has_displaced || !core.ftl.allocator.is_static();
        if may_be_full && !core.has_mapping_room(plane) {
            plane = core.plane_in_place_of(plane, Core::has_mapping_room);
        }
        let has_room = core.has_mapping_room(plane);
        let demand = core.ftl.demand.as_mut().expect("only a demand map has translation pages");
        let lpn = demand.lpn_of(page);
        if !has_room {
            demand.pages[page.index()].write_back = WriteBack::Room;
            self.for_room[plane.index()].push_back(page);
            self.for_room_count += 1;
            core.wake(Wake::Space(plane));
            return;
        }
        let entries = demand.write(page, &core.ftl.map);
        demand.pages[page.index()].write_back = WriteBack::Program;
        core.stats.map.write_backs += 1;
        core.stats.map.written_entries += u64::from(entries);
        let stamp = core.next_stamp();
        core.remember_level(lpn, 1);
        let (to, owner) = (To::Stream(plane, WriteStream::Mapping), Owner::TranslationPage(page));
        let (maps, cause, class) = (Maps::Now, Cause::Mapping, Class::HostWrite);
        let queued = core.program(Program { to, lpn, stamp, maps, owner, cause, class });
        queued.expect("the plane has room for translation pages");
    }

    /// A translation page has been programmed, or will not be.
    pub(crate) fn end_write_back<P: Probe>(&mut self, core: &mut Core<P>, page: Tvpn) {
        let _inside = core.inside.enter(Part::DemandMap);
        let demand = core.ftl.demand.as_mut().expect("only a demand map has translation pages");
        let state = &mut demand.pages[page.index()];
        state.write_back = WriteBack::None;
        self.write_backs -= 1;
        if std::mem::take(&mut state.again) && state.is_stale {
            self.write_back(core, page);
        }
        self.resume_throttled(core);
    }

    #[inline(never)]
    fn resume_throttled<P: Probe>(&mut self, core: &mut Core<P>) {
        while self.write_backs < WRITE_BACKS_MAX
            && let Some(waiter) = self.throttled.pop(&mut core.waiters)
        {
            let demand = core.ftl.demand.as_mut().expect("only a demand map misses");
            let waiter = core.waiters.remove(waiter);
            // Another miss may have brought it in.
            if demand.cache.touch(waiter.lpn) || self.is_at_hand(core, waiter) {
                core.wake(Wake::Entry { waiter, is_lost: false });
            }
        }
    }

    /// Gives translation pages that wait for room in `plane` what there is now.
    pub(crate) fn resume_write_backs<P: Probe>(&mut self, core: &mut Core<P>, plane: PlaneId) {
        let _inside = core.inside.enter(Part::DemandMap);
        let waiting = self.for_room.get(plane.index()).map_or(0, VecDeque::len);
        for _ in 0..waiting {
            if !core.has_mapping_room(plane) {
                break;
            }
            let page = self.for_room[plane.index()].pop_front().expect("it has been counted");
            self.for_room_count -= 1;
            self.program_translation_page(core, page);
        }
    }

    /// No room will come any more, the drive has worn out: changes stay in RAM, and what waited for them goes on.
    pub(crate) fn give_up_write_backs<P: Probe>(&mut self, core: &mut Core<P>) {
        for plane in 0..self.for_room.len() {
            if !core.is_worn_out(PlaneId(plane as u32)) {
                continue;
            }
            for page in std::mem::take(&mut self.for_room[plane]) {
                self.for_room_count -= 1;
                core.stats.map.given_up += 1;
                self.end_write_back(core, page);
            }
        }
    }

    /// Writes every translation page that is out of date at once, without simulating time: after preconditioning.
    pub(crate) fn settle<P: Probe>(&mut self, core: &mut Core<P>) {
        let Some(demand) = &core.ftl.demand else { return };
        let pages = demand.numbers();
        let mut is_settled = false;
        // Making room for one may change others.
        while !std::mem::replace(&mut is_settled, true) {
            for page in pages.clone() {
                let demand = core.ftl.demand.as_mut().expect("it is there");
                if !demand.has_changes(page) {
                    continue;
                }
                let lpn = demand.lpn_of(page);
                if core.ftl.map.get(lpn).is_none() && !demand.has_entries(page, &core.ftl.map) {
                    demand.write(page, &core.ftl.map);
                    continue;
                }
                is_settled = false;
                let plane = core.ftl.allocator.home(Lpn(page.0), core.geometry.planes);
                while !core.has_mapping_room(plane) {
                    core.collect_now(plane).expect("the drive has room left");
                }
                let demand = core.ftl.demand.as_mut().expect("it is there");
                demand.write(page, &core.ftl.map);
                // Of two that are written here the later one counts.
                core.sequence += 1;
                core.program_now(plane, WriteStream::Mapping, lpn, core.sequence);
            }
        }
    }

    /// With nothing under way every change that RAM holds is in a cached entry, unless the drive has worn out.
    ///
    /// # Errors
    /// The first translation page that is out of date.
    pub(crate) fn audit_at_rest<P: Probe>(&self, core: &Core<P>) -> Result<(), String> {
        let Some(demand) = &core.ftl.demand else { return Ok(()) };
        let is_forgotten = |page: &TranslationPage| page.is_stale || page.again || page.is_deferred;
        match demand.pages.iter().position(is_forgotten) {
            Some(page) if core.stats.map.given_up == 0 => {
                Err(format!("translation page {page} has changed and nobody writes it back"))
            }
            _ => Ok(()),
        }
    }
}
