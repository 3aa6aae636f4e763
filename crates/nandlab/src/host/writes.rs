//! How writes find a place, and those that wait for one.

use super::{Counters, FailReason, Host};
use crate::base::geometry::{CacheSlot, Geometry, Lpn, PlaneId};
use crate::core::{Core, Map, Maps, Program, Queue, To, Waiter, Wake, Wants};
use crate::flash::{AgeStamp, Stamp};
use crate::ftl::{AllocatedPage, WriteStream};
use crate::probe::Probe;
use crate::sched::{Cause, Class, Owner};

/// Whose write-backs find a place as host writes do: the write cache.
pub(crate) trait WriteBacks<P: Probe> {
    /// Whether a page that is being written back has been deallocated since.
    fn is_dropped(&self, slot: CacheSlot) -> bool;

    /// A write-back has a place: the sequence number of what is written, and whether some of it is lost.
    fn on_write_back_placed(&mut self, slot: CacheSlot) -> (u64, bool);

    /// The drive has worn out, and a write-back found no place: what it held is lost when it leaves the cache.
    fn on_write_back_failed(&mut self, core: &mut Core<P>, host: &mut Host, slot: CacheSlot);
}

/// How writes find a place, and those that wait for one.
#[derive(Debug)]
pub(crate) struct Writes {
    /// One list a plane, or one for the drive under dynamic allocation.
    pub(crate) lists: Box<[Queue]>,
    pub(crate) count: u64,
    /// Erases since a host page has got room, while something waits for it.
    pub(crate) erases_in_vain: u64,
    pub(crate) counters: Counters,
}

impl Writes {
    pub(crate) fn new(is_static: bool, geometry: &Geometry) -> Self {
        let lists = if is_static { geometry.planes as usize } else { 1 };
        Self {
            lists: vec![Queue::default(); lists].into(),
            count: 0,
            erases_in_vain: 0,
            counters: Counters::default(),
        }
    }

    /// Nobody waits any more.
    pub(crate) fn clear(&mut self) {
        self.lists.fill(Queue::default());
        (self.count, self.erases_in_vain) = (0, 0);
    }

    /// Finds a place for a page of a host request or of the write cache, or lets it wait for one.
    pub(crate) fn program_page<P: Probe>(
        &mut self,
        core: &mut Core<P>,
        map: &mut impl Map<P>,
        cache: Option<&mut impl WriteBacks<P>>,
        owner: Owner,
        lpn: Lpn,
    ) {
        if self.ends_if_dropped(core, cache.as_deref(), owner) {
            return;
        }
        let plane = self.plane_for(core, lpn);
        let list = self.stalled_list(core, plane);
        if self.lists[list].is_empty()
            && let Some(plane) = plane
            && let Some(place) = core.allocate(plane, WriteStream::Host)
        {
            self.place(core, map, cache, owner, lpn, place);
            return;
        }
        let waiter = core.waiters.insert(Waiter::new(owner, lpn, Wants::Write));
        self.lists[list].push(&mut core.waiters, waiter);
        self.count += 1;
        self.counters.waiting_writes += 1;
        if core.ftl.allocator.is_static() {
            core.wake(Wake::Space(PlaneId(list as u32)));
        } else {
            for plane in (0..core.geometry.planes).map(PlaneId) {
                core.wake(Wake::Space(plane));
            }
        }
    }

    /// A page of the write cache that has been deallocated needs no place: its write-back ends. Whether it was one.
    fn ends_if_dropped<P: Probe>(
        &mut self,
        core: &mut Core<P>,
        cache: Option<&impl WriteBacks<P>>,
        owner: Owner,
    ) -> bool {
        match owner {
            Owner::CachePage(slot) if cache.is_some_and(|cache| cache.is_dropped(slot)) => {
                core.wake(Wake::WriteBackEnded(slot));
                true
            }
            _ => false,
        }
    }

    /// The plane for a write of `lpn`; `None` when dynamic allocation finds none with room.
    #[inline]
    fn plane_for<P: Probe>(&mut self, core: &mut Core<P>, lpn: Lpn) -> Option<PlaneId> {
        let plane = core.ftl.choose_plane(&core.geometry, &core.device, lpn)?;
        if core.room.has_displaced && !core.ftl.has_room(plane) {
            return Some(core.plane_in_place_of(plane, |core, plane| core.ftl.has_room(plane)));
        }
        Some(plane)
    }

    #[inline]
    fn stalled_list<P: Probe>(&self, core: &Core<P>, plane: Option<PlaneId>) -> usize {
        plane.filter(|_| core.ftl.allocator.is_static()).map_or(0, PlaneId::index)
    }

    /// Maps a host page to the place it got and queues its program.
    #[inline]
    fn place<P: Probe>(
        &mut self,
        core: &mut Core<P>,
        map: &mut impl Map<P>,
        cache: Option<&mut impl WriteBacks<P>>,
        owner: Owner,
        lpn: Lpn,
        place: AllocatedPage,
    ) {
        let (cause, sequence, is_lost) = if let Owner::CachePage(slot) = owner {
            let cache = cache.expect("the drive has a write cache");
            let (sequence, is_lost) = cache.on_write_back_placed(slot);
            (Cause::Sync, sequence, is_lost)
        } else {
            core.sequence += 1;
            (Cause::Host, core.sequence, false)
        };
        let corrected = if is_lost { AgeStamp::LOST } else { core.moment() };
        map.keep_entry(core, lpn);
        let stamp = Stamp { sequence, corrected };
        let (to, maps, class) = (To::Allocated(place), Maps::Now, Class::HostWrite);
        let queued = core.program(Program { to, lpn, stamp, maps, owner, cause, class });
        queued.expect("it has its place");
        self.erases_in_vain = 0;
        map.on_written(core, lpn);
        if cause == Cause::Host {
            core.probe.on_write_admitted(lpn, sequence);
        }
    }

    /// Gives the writes that wait for `plane` the room there is now.
    pub(crate) fn resume<P: Probe>(
        &mut self,
        core: &mut Core<P>,
        map: &mut impl Map<P>,
        mut cache: Option<&mut impl WriteBacks<P>>,
        plane: PlaneId,
    ) {
        let list = self.stalled_list(core, Some(plane));
        while let Some(first) = self.lists[list].first() {
            let Waiter { lpn, owner, .. } = core.waiters[first];
            if self.ends_if_dropped(core, cache.as_deref(), owner) {
                self.unstall(core, list);
                continue;
            }
            let Some(plane) = self.plane_for(core, lpn) else { return };
            let now_in = self.stalled_list(core, Some(plane));
            if now_in != list {
                // The plane that it has waited for has been filled by others.
                let waiter = self.lists[list].pop(&mut core.waiters).expect("somebody waits");
                self.lists[now_in].push(&mut core.waiters, waiter);
                core.wake(Wake::Resume(plane));
                continue;
            }
            let Some(place) = core.allocate(plane, WriteStream::Host) else { return };
            self.unstall(core, list);
            self.place(core, map, cache.as_deref_mut(), owner, lpn, place);
        }
    }

    /// Takes the first one off a list of writes that wait for room.
    fn unstall<P: Probe>(&mut self, core: &mut Core<P>, list: usize) {
        let first = self.lists[list].pop(&mut core.waiters).expect("somebody waits");
        core.waiters.remove(first);
        self.count -= 1;
    }

    /// Whether a write waits for room in a plane, or in any of them.
    pub(crate) fn wait_in(&self, plane: PlaneId) -> bool {
        let list = self.lists.get(plane.index()).or(self.lists.first());
        list.is_some_and(|list| !list.is_empty())
    }

    /// Nothing happens any more, and writes still wait for room. Those fail that wait for a plane that has worn out, or for
    /// any where all have.
    pub(crate) fn fail_worn_out<P: Probe>(
        &mut self,
        core: &mut Core<P>,
        host: &mut Host,
        mut cache: Option<&mut impl WriteBacks<P>>,
    ) {
        for list in 0..self.lists.len() {
            if self.lists[list].is_empty() || !core.is_worn_out(PlaneId(list as u32)) {
                continue;
            }
            let mut waiting = std::mem::take(&mut self.lists[list]);
            while let Some(waiter) = waiting.pop(&mut core.waiters) {
                let Waiter { owner, .. } = core.waiters.remove(waiter);
                self.count -= 1;
                if self.ends_if_dropped(core, cache.as_deref(), owner) {
                    continue;
                }
                self.counters.failed_pages += 1;
                match owner {
                    Owner::CachePage(slot) => {
                        let cache = cache.as_deref_mut().expect("the drive has a write cache");
                        cache.on_write_back_failed(core, host, slot);
                    }
                    Owner::Request(id) => {
                        host.requests.fail(id, FailReason::WornOut);
                        host.page_done(core, id);
                    }
                    _ => unreachable!("only pages of requests and of the write cache wait for room"),
                }
            }
        }
    }
}
