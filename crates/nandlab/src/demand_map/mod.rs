//! The demand map: the map lies in flash, the entries in use are cached. Misses wait for their translation page, changed translation
//! pages are written back. A. Gupta, Y. Kim and B. Urgaonkar, "DFTL: a flash translation layer employing demand-based selective
//! caching of page-level address mappings", ASPLOS 2009.
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
pub(crate) mod notes;
pub(crate) mod spec;
mod stats;
#[cfg(test)]
mod tests;

pub use cache::{Cache, ENTRY_BYTES};
pub use demand::{DemandMap, TranslationPage, Tvpn, WriteBack};
pub use spec::{Eviction, MapSpec};
pub use stats::MapStats;

use crate::base::geometry::{Geometry, Lpn, PlaneId};
use crate::core::{Core, Map, Maps, Part, Program, Queue, Read, To, Waiter, Wake, Wants};
use crate::ftl::WriteStream;
use crate::probe::Probe;
use crate::sched::{Cause, Class, Owner, Start, Transaction};
use std::collections::VecDeque;

/// Translation pages being written back at which the host's misses begin to wait.
const WRITE_BACKS_MAX: u32 = 64;

/// The demand map at work.
#[derive(Debug)]
pub(crate) struct Mapping {
    pub(crate) demand: DemandMap,
    pub(crate) stats: MapStats,
    /// Misses that wait because too much is being written back.
    waiting_misses: Queue,
    /// Translation pages being written back.
    write_backs: u32,
    /// Those of them that wait for a free page, by plane.
    waiting_for_room: Box<[VecDeque<Tvpn>]>,
    /// Those of them in [`Mapping::waiting_for_room`].
    for_room_count: u32,
    /// Translation pages that a plane's background job has changed.
    deferred: Box<[Vec<Tvpn>]>,
}

impl Mapping {
    /// The map of a drive, nothing cached; `None` when the whole map is in RAM. With `verified` it keeps an image of what its
    /// translation pages hold.
    pub(crate) fn new(spec: &MapSpec, geometry: &Geometry, verified: bool) -> Option<Self> {
        let &MapSpec::Demand { cache_bytes, eviction } = spec else { return None };
        let (logical_pages, page_bytes, planes) =
            (geometry.logical_pages, geometry.page_bytes, geometry.planes as usize);
        Some(Self {
            demand: DemandMap::new(cache_bytes, eviction, logical_pages, page_bytes, verified),
            stats: MapStats::default(),
            waiting_misses: Queue::default(),
            write_backs: 0,
            waiting_for_room: vec![VecDeque::new(); planes].into(),
            for_room_count: 0,
            deferred: vec![Vec::new(); planes].into(),
        })
    }

    /// Nothing waits and nothing is being written back.
    pub(crate) fn is_idle(&self) -> bool {
        self.waiting_misses.is_empty() && self.write_backs == 0 && self.deferred.iter().all(Vec::is_empty)
    }
}

impl Mapping {
    /// Whether the map entry of `lpn` is at hand for a page of a host request, or of the write cache. If not, the page waits
    /// for it, and goes on with [`Wake::MapEntry`].
    #[inline]
    fn has_entry<P: Probe>(&mut self, core: &mut Core<P>, lpn: Lpn, owner: Owner, wants: Wants) -> bool {
        let is_hit = self.demand.cache.touch(lpn);
        self.stats.on_lookup(wants == Wants::Read, is_hit);
        is_hit || self.miss(core, Waiter::new(owner, lpn, wants))
    }

    /// Asks the host machine's cache for what looking up `lpn` will need: first its slot, and some time later with `entries`
    /// its entry.
    #[inline]
    pub(crate) fn prefetch(&self, lpn: Lpn, entries: bool) {
        if entries {
            self.demand.cache.prefetch_entry(lpn);
        } else {
            self.demand.cache.prefetch(lpn);
        }
    }

    /// Lets a page wait, unless the translation page with its entry is at hand; whether it is.
    #[inline(never)]
    fn miss<P: Probe>(&mut self, core: &mut Core<P>, waiter: Waiter) -> bool {
        let _inside = core.inside.enter(Part::DemandMap);
        if self.write_backs >= WRITE_BACKS_MAX {
            self.stats.waiting_misses += 1;
            let waiter = core.waiters.insert(waiter);
            self.waiting_misses.push(&mut core.waiters, waiter);
            return false;
        }
        self.is_at_hand(core, waiter)
    }

    /// Brings the entry of a page into the cache if the translation page with it is at hand; if not, the page waits for its
    /// translation page, which is read unless it is being read.
    fn is_at_hand<P: Probe>(&mut self, core: &mut Core<P>, waiter: Waiter) -> bool {
        let page = self.demand.page_of(waiter.lpn);
        if !self.demand.pages[page.index()].is_read
            && !self.read_translation_page(core, page, Class::HostRead)
        {
            self.bring_in(core, waiter.lpn);
            return true;
        }
        let waiter = core.waiters.insert(waiter);
        self.demand.pages[page.index()].waiting.push(&mut core.waiters, waiter);
        false
    }

    /// Reads a translation page; `false` when its content is in RAM: never written, or about to be programmed.
    fn read_translation_page<P: Probe>(&mut self, core: &mut Core<P>, page: Tvpn, class: Class) -> bool {
        let lpn = self.demand.lpn_of(page);
        let state = &self.demand.pages[page.index()];
        let (is_merged, page_level) = (state.write_back == WriteBack::Room, state.level);
        let Some(ppn) = core.ftl.map.get(lpn) else { return false };
        if is_merged || core.is_in_flight(ppn) {
            return false;
        }
        self.demand.pages[page.index()].is_read = true;
        let (owner, cause) = (Owner::TranslationPage(page), Cause::Mapping);
        core.read(Read { ppn, lpn, owner, cause, class, start: Start::Policy, page_level });
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
        let state = &mut self.demand.pages[page.index()];
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
        let mut waiting = std::mem::take(&mut self.demand.pages[page.index()].waiting);
        while let Some(waiter) = waiting.pop(&mut core.waiters) {
            let waiter = core.waiters.remove(waiter);
            core.wake(Wake::MapEntry { waiter, is_lost });
        }
    }

    /// Puts the entry of `lpn` into the cache; what leaves for it is written back if it was dirty.
    #[inline(never)]
    fn bring_in<P: Probe>(&mut self, core: &mut Core<P>, lpn: Lpn) {
        let level = match core.ftl.map.get(lpn) {
            Some(ppn) => core.levels.block(core.geometry.block_of(ppn)).max(1),
            None => 1,
        };
        if let Some(Some(in_flash)) = P::STAMPED.then(|| self.demand.in_flash(lpn)) {
            assert!(in_flash == core.ftl.map.get(lpn), "LPN {}: its translation page is out of date", lpn.0);
        }
        let loaded = self.demand.load(lpn, level);
        self.stats.evictions += u64::from(loaded.evicted);
        if let Some(page) = loaded.write_back {
            self.stats.dirty_evictions += 1;
            self.write_back(core, page);
        }
    }

    /// Makes sure that the entry of `lpn` is cached, which may have left while a page waited for room. The page still
    /// knows its mapping, so that costs no read.
    #[inline]
    fn keep_entry<P: Probe>(&mut self, core: &mut Core<P>, lpn: Lpn) {
        if !self.demand.cache.contains(lpn) {
            let _inside = core.inside.enter(Part::DemandMap);
            self.bring_in(core, lpn);
        }
    }

    /// A background job of `plane` has moved `lpn`.
    #[inline]
    fn on_moved(&mut self, plane: PlaneId, lpn: Lpn) {
        if let Some(page) = self.demand.on_changed(lpn) {
            let state = &mut self.demand.pages[page.index()];
            if !std::mem::replace(&mut state.is_deferred, true) {
                self.deferred[plane.index()].push(page);
            }
        }
    }

    /// A background job of `plane` has emptied its victim: what it has changed is written back.
    #[inline(never)]
    fn write_back_deferred<P: Probe>(&mut self, core: &mut Core<P>, plane: PlaneId) {
        let mut pages = std::mem::take(&mut self.deferred[plane.index()]);
        for page in pages.drain(..) {
            let state = &mut self.demand.pages[page.index()];
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
        let state = &mut self.demand.pages[page.index()];
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
        let may_be_full = core.room.has_displaced || !core.ftl.allocator.is_static();
        if may_be_full && !core.has_mapping_room(plane) {
            plane = core.plane_in_place_of(plane, Core::has_mapping_room);
        }
        let has_room = core.has_mapping_room(plane);
        let lpn = self.demand.lpn_of(page);
        if !has_room {
            self.demand.pages[page.index()].write_back = WriteBack::Room;
            self.waiting_for_room[plane.index()].push_back(page);
            self.for_room_count += 1;
            core.wake(Wake::Space(plane));
            return;
        }
        let entries = self.demand.write(page, &core.ftl.map);
        self.demand.pages[page.index()].write_back = WriteBack::Program;
        self.stats.write_backs += 1;
        self.stats.written_entries += u64::from(entries);
        let stamp = core.next_stamp();
        self.demand.set_level(lpn, 1);
        let (to, owner) = (To::Stream(plane, WriteStream::Mapping), Owner::TranslationPage(page));
        let (maps, cause, class) = (Maps::Now, Cause::Mapping, Class::HostWrite);
        let queued = core.program(Program { to, lpn, stamp, maps, owner, cause, class });
        queued.expect("the plane has room for translation pages");
    }

    /// A translation page has been programmed, or will not be.
    pub(crate) fn end_write_back<P: Probe>(&mut self, core: &mut Core<P>, page: Tvpn) {
        let _inside = core.inside.enter(Part::DemandMap);
        let state = &mut self.demand.pages[page.index()];
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
            && let Some(waiter) = self.waiting_misses.pop(&mut core.waiters)
        {
            let waiter = core.waiters.remove(waiter);
            // Another miss may have brought it in.
            if self.demand.cache.touch(waiter.lpn) || self.is_at_hand(core, waiter) {
                core.wake(Wake::MapEntry { waiter, is_lost: false });
            }
        }
    }

    /// Gives translation pages that wait for room in `plane` what there is now.
    pub(crate) fn resume_write_backs<P: Probe>(&mut self, core: &mut Core<P>, plane: PlaneId) {
        let _inside = core.inside.enter(Part::DemandMap);
        let waiting = self.waiting_for_room.get(plane.index()).map_or(0, VecDeque::len);
        for _ in 0..waiting {
            if !core.has_mapping_room(plane) {
                break;
            }
            let page = self.waiting_for_room[plane.index()].pop_front().expect("it has been counted");
            self.for_room_count -= 1;
            self.program_translation_page(core, page);
        }
    }

    /// No room will come any more, the drive has worn out: changes stay in RAM, and what waited for them goes on.
    pub(crate) fn give_up_write_backs<P: Probe>(&mut self, core: &mut Core<P>) {
        for plane in 0..self.waiting_for_room.len() {
            if !core.is_worn_out(PlaneId(plane as u32)) {
                continue;
            }
            for page in std::mem::take(&mut self.waiting_for_room[plane]) {
                self.for_room_count -= 1;
                self.stats.given_up += 1;
                self.end_write_back(core, page);
            }
        }
    }

    /// Writes every translation page that is out of date at once, without simulating time: after preconditioning.
    pub(crate) fn settle<P: Probe>(&mut self, core: &mut Core<P>) {
        let mut is_settled = false;
        // Making room for one may change others.
        while !std::mem::replace(&mut is_settled, true) {
            for page in self.demand.numbers() {
                if !self.demand.has_changes(page) {
                    continue;
                }
                let lpn = self.demand.lpn_of(page);
                if core.ftl.map.get(lpn).is_none() && !self.demand.has_entries(page, &core.ftl.map) {
                    self.demand.write(page, &core.ftl.map);
                    continue;
                }
                is_settled = false;
                let plane = core.ftl.allocator.home(Lpn(page.0), core.geometry.planes);
                while !core.has_mapping_room(plane) {
                    let moved = core.collect_now(plane, |lpn| self.demand.on_mapped_now(lpn));
                    moved.expect("the drive has room left");
                }
                self.demand.write(page, &core.ftl.map);
                // Of two that are written here the later one counts.
                core.sequence += 1;
                core.program_now(plane, WriteStream::Mapping, lpn, core.sequence, |_| ());
            }
        }
    }

    /// With nothing under way every change that RAM holds is in a cached entry, unless the drive has worn out.
    ///
    /// # Errors
    /// The first translation page that is out of date.
    pub(crate) fn audit_at_rest(&self) -> Result<(), String> {
        let is_forgotten = |page: &TranslationPage| page.is_stale || page.again || page.is_deferred;
        match self.demand.pages.iter().position(is_forgotten) {
            Some(page) if self.stats.given_up == 0 => {
                Err(format!("translation page {page} has changed and nobody writes it back"))
            }
            _ => Ok(()),
        }
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
            None => core.levels.set_page(lpn, 1),
        }
    }

    #[inline]
    fn on_moved(&mut self, core: &mut Core<P>, plane: PlaneId, lpn: Lpn, is_corrected: bool) {
        if is_corrected {
            self.on_corrected(core, lpn);
        }
        // Not of the host's: a translation page, or a combination page.
        if let Some(mapping) = self
            && lpn.0 < core.geometry.logical_pages
        {
            mapping.on_moved(plane, lpn);
        }
    }

    fn on_unmapped(&mut self, core: &mut Core<P>, lpn: Lpn) -> Option<Tvpn> {
        match self {
            Some(mapping) => {
                mapping.demand.set_level(lpn, 1);
                mapping.demand.on_changed(lpn)
            }
            None => {
                core.levels.set_page(lpn, 1);
                None
            }
        }
    }

    fn end_job(&mut self, core: &mut Core<P>, plane: PlaneId) {
        if let Some(mapping) = self {
            mapping.write_back_deferred(core, plane);
        }
    }

    #[inline]
    fn level(&self, core: &Core<P>, lpn: Lpn) -> u8 {
        match self {
            // Neither the host's nor the map's: a combination page.
            Some(_) if core.ftl.is_combination(lpn) => 0,
            Some(mapping) => mapping.demand.level(lpn),
            None => core.levels.page(lpn),
        }
    }

    #[inline]
    fn set_level(&mut self, core: &mut Core<P>, lpn: Lpn, level: u8) {
        match self {
            Some(_) if core.ftl.is_combination(lpn) => {}
            Some(mapping) => mapping.demand.set_level(lpn, level),
            None => core.levels.set_page(lpn, level),
        }
    }

    fn is_waiting(&self) -> bool {
        self.as_ref().is_some_and(|mapping| mapping.for_room_count > 0)
    }

    fn waits_in(&self, plane: PlaneId) -> bool {
        self.as_ref().is_some_and(|mapping| !mapping.waiting_for_room[plane.index()].is_empty())
    }

    #[inline]
    fn prefetch_move(&self, lpn: Lpn) {
        if let Some(mapping) = self {
            mapping.demand.cache.prefetch_level(lpn);
        }
    }
}
