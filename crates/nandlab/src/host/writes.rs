//! The allocation of units to writes of the host and of the write cache, and the writes that wait for room.

use super::streams::Classes;
use super::{Counters, FailReason, Host};
use crate::base::geometry::{CacheSlot, LaneId, Lpn};
use crate::base::policy::{PolicyFault, PolicySlot};
use crate::base::state::state;
use crate::core::{
    Core, Destination, Map, Maps, Mechanism, Offline, Program, Queue, Rest, STILL_WAITS, Waiter, Wake, Wants,
};
use crate::flash::{AgeStamp, Stamp};
use crate::ftl::{AllocatedUnit, StreamId};
use crate::probe::Probe;
use crate::sched::{Cause, Class, Owner};

/// The interface to the write cache. Its write-backs are allocated units in the same way as host writes.
pub(crate) trait WriteBacks<P: Probe> {
    /// The placement of the newest write of the unit in `slot`.
    fn placement(&self, slot: CacheSlot) -> u16;

    /// Whether the program of the unit in `slot` may wait in the write buffer until its programming unit is full.
    fn may_gather(&self, core: &Core<P>, host: &Host, slot: CacheSlot) -> bool;

    /// Whether the unit in `slot` has been deallocated since its write-back began.
    fn is_dropped(&self, slot: CacheSlot) -> bool;

    /// A unit has been allocated to a write-back. Returns the sequence number of the data, and whether some of the data
    /// is lost.
    fn on_write_back_placed(&mut self, slot: CacheSlot) -> (u64, bool);

    /// Every lane that could take a write-back is worn out. The data will be lost when it leaves the cache.
    fn on_write_back_failed(&mut self, core: &mut Core<P>, host: &mut Host, slot: CacheSlot);
}

/// The writes that wait for room.
#[derive(Debug)]
pub(crate) struct Writes {
    /// The waiting writes: one list per lane or, with dynamic allocation, per reclaim group.
    pub(crate) lists: Box<[Queue]>,
    /// The lanes whose waiting writes are in one list.
    lanes_per_list: u32,
    pub(crate) count: u64,
    /// Number of erases since a write was last allocated a unit or, while no write waits, a translation page; counted
    /// while a write or a translation page waits for room.
    pub(crate) erases_in_vain: u64,
    pub(crate) counters: Counters,
    /// The policy that divides the writes with placement handle 0; `None`: they share a stream.
    pub(crate) classes: Option<Classes>,
    /// Whether all writes go to [`Target::HOST`]: there is one placement, no SLC cache and no policy.
    has_one_target: bool,
}

/// Where a write goes.
#[derive(Clone, Copy)]
struct Target {
    stream: StreamId,
    /// The reclaim group.
    group: u16,
    /// The class, if a policy has told the write to one.
    class: Option<u8>,
}

impl Target {
    /// The stream of the host without placement handles.
    const HOST: Self = Self { stream: StreamId::HOST, group: 0, class: None };
}

impl<P: Probe> Mechanism<P> for Writes {
    /// Drops all waiting writes.
    fn power_lost(&mut self, _: &mut Offline<'_, P>) {
        self.lists.fill(Queue::default());
        (self.count, self.erases_in_vain) = (0, 0);
    }

    fn audit(&self, _core: &Core<P>, rest: Rest) -> Result<(), String> {
        if rest == Rest::Full && self.count > 0 { Err(STILL_WAITS.to_owned()) } else { Ok(()) }
    }
}

impl Writes {
    pub(crate) fn new<P: Probe>(core: &Core<P>) -> Self {
        let groups = usize::from(core.placements().groups);
        let lists = if core.has_home_lanes() { core.geometry().lanes as usize } else { groups };
        Self {
            lists: vec![Queue::default(); lists].into(),
            lanes_per_list: core.geometry().lanes / lists as u32,
            count: 0,
            erases_in_vain: 0,
            counters: Counters::default(),
            classes: None,
            has_one_target: core.placements().is_single() && core.streams().slc().is_none(),
        }
    }

    /// The same, with a policy that divides the writes with placement handle 0.
    pub(crate) fn divided_by(self, classes: Option<Classes>) -> Self {
        Self { has_one_target: self.has_one_target && classes.is_none(), classes, ..self }
    }

    /// Allocates a unit to a write of a host request or of the write cache and queues its program, or lets the write
    /// wait for room.
    pub(crate) fn program_unit<P: Probe>(
        &mut self,
        core: &mut Core<P>,
        host: &mut Host,
        map: &mut impl Map<P>,
        cache: Option<&mut impl WriteBacks<P>>,
        owner: Owner,
        lpn: Lpn,
    ) {
        if self.ends_if_dropped(core, cache.as_deref(), owner) {
            return;
        }
        let mut target = self.target(core, host, cache.as_deref(), owner, lpn);
        let Target { group, .. } = target;
        // Under dynamic allocation a write goes behind those that wait in its group, whatever room there is.
        let waits = !core.has_home_lanes() && !self.lists[usize::from(group)].is_empty();
        let lane = if waits { None } else { self.lane_for(core, lpn, &mut target) };
        let list = self.list_of(core, lane, group);
        if self.lists[list].is_empty()
            && let Some(lane) = lane
            && let Some(unit) = core.allocate(lane, target.stream)
        {
            self.program_in(core, host, map, cache, (owner, lpn), (unit, target));
            return;
        }
        let is_first = self.lists[list].is_empty();
        let waiter = core.waiters.insert(Waiter::new(owner, lpn, Wants::Write));
        self.lists[list].push(&mut core.waiters, waiter);
        self.count += 1;
        self.counters.waiting_writes += 1;
        if core.has_home_lanes() {
            core.wake_space(LaneId(list as u32));
        } else if is_first {
            for lane in core.placements().lanes_of(group) {
                core.wake_space(lane);
            }
        }
    }

    /// If `owner` is a cached unit that has been deallocated since its write-back began, ends the write-back and
    /// returns `true`.
    fn ends_if_dropped<P: Probe>(
        &mut self,
        core: &mut Core<P>,
        cache: Option<&impl WriteBacks<P>>,
        owner: Owner,
    ) -> bool {
        match owner {
            Owner::CacheUnit(slot) if cache.is_some_and(|cache| cache.is_dropped(slot)) => {
                core.wake(Wake::WriteBackEnded(slot));
                true
            }
            _ => false,
        }
    }

    /// The stream and the reclaim group to which a write of `owner` goes: those of its placement or, with handle 0, the
    /// stream of its class.
    #[inline(never)]
    fn target_of<P: Probe>(
        &mut self,
        core: &mut Core<P>,
        host: &Host,
        cache: Option<&impl WriteBacks<P>>,
        owner: Owner,
        lpn: Lpn,
    ) -> Target {
        let mut target = Target::HOST;
        if !core.placements().is_single() {
            let placement = match owner {
                Owner::Request(id) => host.requests.request(id).tag.placement,
                Owner::CacheUnit(slot) => cache.map_or(0, |cache| cache.placement(slot)),
                _ => 0,
            };
            let place = core.placements().place(placement);
            target.stream = core.streams().of_handle(place.handle);
            target.group = place.group;
        }
        if self.classes.is_some() && target.stream == StreamId::HOST {
            self.classify(core, &mut target, lpn);
        }
        target
    }

    /// Asks the policy of `ftl.streams` for the class of a write.
    #[inline(never)]
    fn classify<P: Probe>(&mut self, core: &mut Core<P>, target: &mut Target, lpn: Lpn) {
        let Some(classes) = &mut self.classes else { return };
        match classes.class(lpn) {
            Ok(class) => {
                target.stream = core.streams().of_class(class);
                target.class = Some(class);
            }
            Err(error) => core.fail_policy(PolicyFault { slot: PolicySlot::Streams, lane: None, error }),
        }
    }

    /// Where a write of `owner` goes, unless it is written in SLC mode.
    #[inline(always)]
    fn target<P: Probe>(
        &mut self,
        core: &mut Core<P>,
        host: &Host,
        cache: Option<&impl WriteBacks<P>>,
        owner: Owner,
        lpn: Lpn,
    ) -> Target {
        if self.has_one_target { Target::HOST } else { self.target_of(core, host, cache, owner, lpn) }
    }

    /// The lane for a write of `lpn` to `target`; `None` when dynamic allocation finds no lane with room. While there is
    /// room in SLC mode, the stream in this mode becomes the target.
    #[inline(always)]
    fn lane_for<P: Probe>(&self, core: &mut Core<P>, lpn: Lpn, target: &mut Target) -> Option<LaneId> {
        if !self.has_one_target
            && let Some(slc) = core.streams().slc()
            && let Some(lane) = Self::lane_in_slc_mode(core, lpn, slc)
        {
            target.stream = slc;
            return Some(lane);
        }
        let Target { stream, group, .. } = *target;
        let lane = core.choose_lane(lpn, stream, group)?;
        if core.has_displaced() && !core.ftl().has_room(lane, stream) {
            return Some(core.lane_in_place_of(lane, |core, lane| core.ftl().has_room(lane, stream)));
        }
        Some(lane)
    }

    /// The lane for a write of `lpn` in SLC mode, to the stream `slc`. If the lane has no room in this mode, the write
    /// waits for a fold (`slc.when_full = "fold"`), or it is written without SLC mode (`None`).
    #[inline(never)]
    fn lane_in_slc_mode<P: Probe>(core: &mut Core<P>, lpn: Lpn, slc: StreamId) -> Option<LaneId> {
        // A drive with SLC mode has one placement.
        if let Some(lane) = core.choose_lane(lpn, slc, 0) {
            let has_room = core.ftl().has_slc_room(lane);
            let is_overfull = core.has_displaced() && core.ftl().is_overfull(lane);
            if !is_overfull && (has_room || core.waits_for_fold(lane)) {
                return Some(lane);
            }
            if !has_room {
                core.close_slc(lane);
            }
            return None;
        }
        // With dynamic allocation a write may wait in any lane.
        let lanes = (0..core.geometry().lanes).map(LaneId);
        let waits = lanes.clone().find(|&lane| core.waits_for_fold(lane));
        if waits.is_none() {
            lanes.for_each(|lane| core.close_slc(lane));
        }
        waits
    }

    /// The number of the list of writes that wait for room in `lane`, or in a reclaim group.
    #[inline]
    fn list_of<P: Probe>(&self, core: &Core<P>, lane: Option<LaneId>, group: u16) -> usize {
        lane.filter(|_| core.has_home_lanes()).map_or(group.into(), LaneId::index)
    }

    /// Maps the unit that has been allocated to a write, and queues its program.
    #[inline]
    fn program_in<P: Probe>(
        &mut self,
        core: &mut Core<P>,
        host: &mut Host,
        map: &mut impl Map<P>,
        cache: Option<&mut impl WriteBacks<P>>,
        (asked_by, lpn): (Owner, Lpn),
        (allocated, target): (AllocatedUnit, Target),
    ) {
        if let (Some(class), Some(classes)) = (target.class, &mut self.classes) {
            let superblock = core.geometry().superblock_of(allocated.unit);
            classes.on_written(lpn, class, superblock, allocated.opened);
        }
        let stream = target.stream;
        let owner = host.buffered_owner(asked_by, lpn, allocated.unit);
        let (cause, sequence, is_lost) = if let Owner::CacheUnit(slot) = owner {
            let cache = cache.expect("the drive has a write cache");
            if cache.may_gather(core, host, slot) {
                core.buffer_next();
                // Units may wait for room that this program does not make before it is full.
                core.wake(Wake::CacheRoom);
            }
            let (sequence, is_lost) = cache.on_write_back_placed(slot);
            (Cause::Sync, sequence, is_lost)
        } else {
            (Cause::Host, core.next_sequence(), false)
        };
        let corrected = if is_lost { AgeStamp::LOST } else { core.age_stamp_now() };
        map.keep_entry(core, lpn);
        let stamp = Stamp { sequence, corrected };
        let (to, maps, class) = (Destination::Allocated(allocated, stream), Maps::Now, Class::HostWrite);
        let queued = core.program(Program { to, lpn, stamp, maps, owner, cause, class });
        queued.expect("the unit is allocated");
        self.erases_in_vain = 0;
        map.on_written(core, lpn);
        if let Owner::Request(id) = asked_by {
            host.on_admitted(id, lpn, sequence);
            core.probe.on_write_admitted(Some(id), lpn, sequence);
        }
        if let (Owner::Buffered(slot), Owner::Request(id)) = (owner, asked_by) {
            host.on_buffered(core, slot, id, sequence);
        }
    }

    /// Allocates the units that `lane` has now to the writes that wait for them.
    pub(crate) fn resume<P: Probe>(
        &mut self,
        core: &mut Core<P>,
        host: &mut Host,
        map: &mut impl Map<P>,
        mut cache: Option<&mut impl WriteBacks<P>>,
        lane: LaneId,
    ) {
        let list = self.list_of(core, Some(lane), core.placements().group_of(lane));
        while let Some(first) = self.lists[list].first() {
            let Waiter { lpn, owner, .. } = core.waiters[first];
            let is_replaced = matches!(owner, Owner::Request(id) if host.replace_buffered(core, id, lpn));
            if is_replaced || self.ends_if_dropped(core, cache.as_deref(), owner) {
                self.remove_first(core, list);
                continue;
            }
            let mut target = self.target(core, host, cache.as_deref(), owner, lpn);
            let Some(lane) = self.lane_for(core, lpn, &mut target) else { return };
            let Target { stream, group, .. } = target;
            let now_in = self.list_of(core, Some(lane), group);
            if now_in != list {
                // Other writes have used up the lane for which this write has waited.
                let waiter = self.lists[list].pop(&mut core.waiters).expect("a write waits");
                self.lists[now_in].push(&mut core.waiters, waiter);
                core.wake(Wake::Resume(lane));
                continue;
            }
            let Some(unit) = core.allocate(lane, stream) else { return };
            self.remove_first(core, list);
            self.program_in(core, host, map, cache.as_deref_mut(), (owner, lpn), (unit, target));
        }
    }

    /// Removes the first write from a list of waiting writes.
    fn remove_first<P: Probe>(&mut self, core: &mut Core<P>, list: usize) {
        let first = self.lists[list].pop(&mut core.waiters).expect("a write waits");
        core.waiters.remove(first);
        self.count -= 1;
    }

    /// Whether a write waits for room in `lane`, or under dynamic allocation in any lane of its reclaim group.
    pub(crate) fn wait_in(&self, lane: LaneId) -> bool {
        !self.lists[(lane.0 / self.lanes_per_list) as usize].is_empty()
    }

    /// Called when no event is left and writes still wait for room. Fails the writes that wait for a worn-out lane. A
    /// write that may go to several lanes fails only if all of them have worn out.
    pub(crate) fn fail_worn_out<P: Probe>(
        &mut self,
        core: &mut Core<P>,
        host: &mut Host,
        mut cache: Option<&mut impl WriteBacks<P>>,
    ) {
        for list in 0..self.lists.len() {
            if self.lists[list].is_empty() || !core.is_worn_out(LaneId(list as u32 * self.lanes_per_list)) {
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
                    Owner::CacheUnit(slot) => {
                        let cache = cache.as_deref_mut().expect("the drive has a write cache");
                        cache.on_write_back_failed(core, host, slot);
                    }
                    Owner::Request(id) => {
                        host.requests.fail(id, FailReason::WornOut);
                        host.unit_done(core, id);
                    }
                    _ => unreachable!("only units of requests and of the write cache wait for room"),
                }
            }
        }
    }
}

state! { Writes { lists, count, erases_in_vain, counters } parts { classes } fixed { lanes_per_list, has_one_target } }
