//! The programs of the VSM: lines of susceptible bits become combination pages.

use super::Partial;
use crate::base::geometry::{DieId, LaneId, Lpn, SuperblockId};
use crate::core::{Component, Core, Destination, Map, Maps, Program, Refreshed, Wake};
use crate::ftl::AllocatedUnit;
use crate::probe::Probe;
use crate::sched::{Cause, Owner, Transaction};

impl Partial {
    // --------------------------------------------------------------------------------------------------------- the VSM

    /// Programs the waiting entries of the VSM as far as lanes have room, even in lines that are not full. Called when
    /// half of the grace of a superblock is over, or when the capacitor that backs up the VSM is going to be drained.
    pub(crate) fn empty_vsm<P: Probe>(&mut self, core: &mut Core<P>) {
        let _inside = core.enter(Component::PartialRefresh);
        while !self.vsm.waiting().is_empty() {
            if !self.program_lines(core) {
                return;
            }
        }
    }

    /// Whether a late superblock waits for the VSM: the superblock is being refreshed partially, or has susceptible
    /// bits in the VSM. Where a program writes several lines, the VSM is not emptied for a superblock that is still
    /// being read: more of its bits follow, and each program would be padding for the most part.
    pub(crate) fn holds_up<P: Probe>(&self, core: &Core<P>, superblock: SuperblockId) -> bool {
        let pending = self.pending.get(&superblock.0);
        pending.is_some_and(|pending| pending.is_read || core.first_shape().units_per_program == 1)
    }

    /// Whether lines are being programmed.
    pub(crate) fn has_lines_under_way(&self) -> bool {
        self.vsm.lines() > 0
    }

    /// Queues a program of lines if a lane has room for it; returns whether a program was queued. The program writes as
    /// many lines as it can, and padding if there are fewer. From the draining of the capacitor until it is charged
    /// again no line is programmed, because a torn program could destroy a line that is already in flash.
    pub(super) fn program_lines<P: Probe>(&mut self, core: &mut Core<P>) -> bool {
        if !core.state().is_charged && !core.state().is_syncing {
            return false;
        }
        let Some(first) = self.vsm.waiting().first() else { return false };
        let home = core.geometry().lane_of(core.geometry().superblock_of(first.base));
        let Some(lane) = self.lane_for_line(core, home).filter(|_| self.links.has_number()) else {
            return false;
        };
        for _ in 0..core.units_to_fill(lane, self.stream) {
            if self.vsm.waiting().is_empty() || !self.links.has_number() {
                break;
            }
            self.program_line(core, lane);
        }
        true
    }

    /// Queues the program of a line to a lane with room for it. There must be a waiting entry and a free number.
    fn program_line<P: Probe>(&mut self, core: &mut Core<P>, lane: LaneId) {
        let line = self.vsm.take_line();
        self.stats.padding_bytes += u64::from(core.geometry().unit_bytes)
            - line.iter().map(|entry| u64::from(entry.bytes)).sum::<u64>();
        let lpn = self.links.number(line).expect("has_number has found a free number");
        debug_assert!(core.unit_of(lpn).is_none(), "the number of a combination page is in use");
        let stamp = core.next_stamp();
        let (to, owner) = (Destination::Stream(lane, self.stream), Owner::CombinationPage);
        let (maps, cause, class) = (Maps::Now, Cause::Refresh, core.refresh_class());
        let queued = core.program(Program { to, lpn, stamp, maps, owner, cause, class });
        self.stats.combination_pages += 1;
        self.stage(lpn, queued.expect("lane_for_line has found room").unit);
    }

    /// The lane to which a line with data of lane `home` is programmed. Of the lanes with room, prefers, in this order:
    /// a lane other than `home`, a lane on another die, the die with the lowest load, and the lane with the most free
    /// units (so that not always the first lane of a die is chosen).
    pub(super) fn lane_for_line<P: Probe>(&self, core: &Core<P>, home: LaneId) -> Option<LaneId> {
        let g = core.geometry();
        let others = (home.0 + 1..g.lanes).chain(0..home.0).map(LaneId);
        let is_on_one_die = g.dies_per_lane == 1;
        let is_elsewhere = |&lane: &LaneId| !is_on_one_die || g.die_of(lane) != g.die_of(home);
        let has_room = |&lane: &LaneId| core.has_combination_room(lane, self.stream);
        // The lower, the earlier in the order of load and free units.
        let rank = |&lane: &LaneId| {
            let load = if is_on_one_die { core.device().load(g.die_of(lane)) } else { 0 };
            u64::from(load) << 32 | u64::from(u32::MAX - core.ftl().free_units(lane))
        };
        let elsewhere = others.clone().filter(is_elsewhere);
        let first = if is_on_one_die {
            Self::first_elsewhere(core, home)
        } else {
            elsewhere.clone().min_by_key(rank)
        };
        debug_assert_eq!(first, elsewhere.clone().min_by_key(rank), "the first lane on another die");
        // Mostly the first of all has room, so the others are not asked for theirs.
        first
            .filter(has_room)
            .or_else(|| elsewhere.filter(has_room).min_by_key(rank))
            .or_else(|| others.filter(|lane| !is_elsewhere(lane)).filter(has_room).min_by_key(rank))
            .or_else(|| Some(home).filter(has_room))
    }

    /// Of the lanes on other dies than `home`, the first in the order of [`Partial::lane_for_line`], with room or not.
    /// The lanes of a die with a higher load than another one need not be ranked.
    fn first_elsewhere<P: Probe>(core: &Core<P>, home: LaneId) -> Option<LaneId> {
        let (g, at) = (core.geometry(), core.geometry().die_of(home).0);
        let (mut first, mut least, mut most) = (None, u32::MAX, 0);
        for die in (at + 1..g.dies).chain(0..at).map(DieId) {
            let load = core.device().load(die);
            if load > least {
                continue;
            }
            for lane in g.lanes_of(die) {
                let free = core.ftl().free_units(lane);
                if load < least || free > most {
                    (first, least, most) = (Some(lane), load, free);
                }
            }
        }
        first
    }

    /// A line has been programmed: links the base units that are still the newest units of their LPNs.
    pub(super) fn on_line_programmed<P: Probe>(
        &mut self,
        core: &mut Core<P>,
        map: &mut impl Map<P>,
        done: &Transaction,
    ) {
        let _inside = core.enter(Component::PartialRefresh);
        self.vsm.release_line();
        let entries = self.links.entries(done.lpn).clone();
        for entry in entries.iter() {
            map.prefetch_move(entry.lpn);
            core.parts().prefetch(entry.base);
        }
        for (index, entry) in entries.iter().enumerate() {
            if !core.parts().is_pending(entry.base) {
                continue;
            }
            core.clear_mark(entry.base);
            let superblock = core.geometry().superblock_of(entry.base);
            if core.is_valid(entry.base) {
                self.link(core, done.lpn, index);
                map.on_corrected(core, entry.lpn);
            }
            self.on_entry_done(core, superblock);
        }
        self.free_if_unlinked(core, done.lpn);
        self.resume_for_room(core);
    }

    /// The susceptible bits of a unit are in flash, or no longer needed: completes the refresh of the unit's superblock
    /// if these bits were the last ones and all units of the superblock have been read.
    pub(super) fn on_entry_done<P: Probe>(&mut self, core: &mut Core<P>, superblock: SuperblockId) {
        if let Some(pending) = self.pending.get_mut(&superblock.0) {
            pending.units -= 1;
            if pending.is_over() {
                self.complete(core, superblock);
            }
        }
    }

    /// Lets units that wait for room in the VSM continue, in order. Ends at the first unit without room, if a line that
    /// will make room is being programmed.
    pub(super) fn resume_for_room<P: Probe>(&mut self, core: &mut Core<P>) {
        while let Some(&(lane, read, entry)) = self.waiting_for_room.front() {
            if !self.vsm.has_room(entry.bytes) && self.vsm.lines() > 0 {
                return;
            }
            self.waiting_for_room.pop_front();
            if !core.is_valid(read.unit) {
                core.wake(Wake::UnitDone(lane));
                continue;
            }
            match self.enter_vsm(core, lane, &read, entry) {
                Refreshed::Now => core.wake(Wake::UnitDone(lane)),
                Refreshed::Later => {}
                Refreshed::Not => core.wake(Wake::WriteElsewhere { lane, read: Box::new(read) }),
            }
        }
    }

    /// Power fails: makes lines of all waiting entries of the VSM. Returns the LPNs of all lines whose program has
    /// neither ended nor is under way.
    pub(crate) fn lines_at_power_loss(&mut self, under_way: &[Transaction]) -> Vec<Lpn> {
        let under_way: Vec<Lpn> =
            under_way.iter().filter(|t| t.owner == Owner::CombinationPage).map(|t| t.lpn).collect();
        let links = &mut self.links;
        while !self.vsm.waiting().is_empty() && links.has_number() {
            links.number(self.vsm.take_line());
        }
        let is_in_ram = |lpn: &Lpn| links.live(*lpn) == 0 && !under_way.contains(lpn);
        links.combinations().filter(is_in_ram).collect()
    }

    /// Allocates what one program writes, on an idle die, for lines of the emergency flush. Returns its first unit,
    /// with the units after the program that remain erased.
    pub(crate) fn place_lines_at_power_loss<P: Probe>(&self, core: &mut Core<P>) -> Option<AllocatedUnit> {
        let stream = self.stream;
        let is_idle = |&lane: &LaneId| {
            let die = core.ftl().next_die(lane, stream);
            die.is_some_and(|die| core.device().is_free(die))
        };
        let lanes = (0..core.geometry().lanes).map(LaneId);
        let lane = lanes.filter(|&lane| core.ftl().has_combination_room(lane, stream)).find(is_idle)?;
        core.allocate_program(lane, stream)
    }
}
