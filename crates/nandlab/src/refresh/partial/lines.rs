//! The VSM at work: lines of susceptible data that become combination pages.

use super::Partial;
use crate::base::geometry::{BlockId, Lpn, PlaneId};
use crate::core::{Core, Map, Maps, Part, Program, Refreshed, To, Wake};
use crate::ftl::{AllocatedPage, WriteStream};
use crate::probe::Probe;
use crate::sched::{Cause, Class, Owner, Phase, Transaction};
use std::cmp::Reverse;

impl Partial {
    // --------------------------------------------------------------------------------------------------------- the VSM

    /// Programs what waits in the VSM, though it does not fill a page: the grace of a block runs out, or the capacitor that
    /// keeps the VSM is going to be drained.
    pub(crate) fn empty_vsm<P: Probe>(&mut self, core: &mut Core<P>) {
        let _inside = core.inside.enter(Part::PartialRefresh);
        while !self.vsm.waiting().is_empty() {
            if !self.program_line(core) {
                return;
            }
        }
    }

    /// Whether data of a block waits in the VSM, or is being programmed.
    pub(crate) fn has_data_in_vsm(&self, block: BlockId) -> bool {
        self.pending.contains_key(&block.0)
    }

    pub(crate) fn has_lines_under_way(&self) -> bool {
        self.vsm.lines() > 0
    }

    /// Programs a line, if any plane has room for it; whether one has. From the moment at which the capacitor is drained until
    /// it is charged again none does: a program may be torn then, and take a line with it that is in flash.
    pub(super) fn program_line<P: Probe>(&mut self, core: &mut Core<P>) -> bool {
        if !core.state.is_charged && !core.state.is_syncing {
            return false;
        }
        let Some(first) = self.vsm.waiting().first() else { return false };
        let home = core.geometry.plane_of(core.geometry.block_of(first.base));
        let Some(plane) = self.plane_for_line(core, home).filter(|_| self.links.has_number()) else {
            return false;
        };
        let line = self.vsm.take_line();
        self.stats.padding_bytes += u64::from(core.geometry.page_bytes)
            - line.iter().map(|entry| u64::from(entry.bytes)).sum::<u64>();
        let lpn = self.links.number(line).expect("there is one");
        debug_assert!(core.ftl.map.get(lpn).is_none(), "the number of a combination page is in use");
        let stamp = core.next_stamp();
        let (to, owner) = (To::Stream(plane, WriteStream::Combination), Owner::CombinationPage);
        let (maps, cause, class) = (Maps::Now, Cause::Refresh, Class::Background);
        let queued = core.program(Program { to, lpn, stamp, maps, owner, cause, class });
        self.stats.combination_pages += 1;
        self.stage(lpn, queued.expect("the plane has room").ppn);
        true
    }

    /// The plane for a line with data of `home`: on another die if there is one, idle if there is one, with room; of several
    /// the one with the most, or the first plane of each die would take them all.
    pub(super) fn plane_for_line<P: Probe>(&self, core: &Core<P>, home: PlaneId) -> Option<PlaneId> {
        let g = &core.geometry;
        let planes = (1..=g.planes).map(|step| PlaneId((home.0 + step) % g.planes));
        planes.filter(|&plane| core.has_combination_room(plane)).min_by_key(|&plane| {
            let die = g.die_of(plane);
            let room = Reverse(core.ftl.free_pages(g, plane));
            (plane == home, die == g.die_of(home), core.device.load(die), room)
        })
    }

    /// A line has been programmed: its pages are linked, if they are still there.
    pub(super) fn on_line_programmed<P: Probe>(
        &mut self,
        core: &mut Core<P>,
        map: &mut impl Map<P>,
        done: &Transaction,
    ) {
        let _inside = core.inside.enter(Part::PartialRefresh);
        self.vsm.release_line();
        let entries = self.links.entries(done.lpn);
        for (index, entry) in entries.iter().enumerate() {
            if !core.parts.is_pending(entry.base) {
                continue;
            }
            core.parts.clear(entry.base);
            let block = core.geometry.block_of(entry.base);
            if core.ftl.map.get(entry.lpn) == Some(entry.base) {
                self.link(core, done.lpn, index);
                map.on_corrected(core, entry.lpn);
            }
            self.on_entry_settled(core, block);
        }
        self.free_if_dead(core, done.lpn);
        self.resume_for_room(core);
    }

    pub(super) fn on_entry_settled<P: Probe>(&mut self, core: &mut Core<P>, block: BlockId) {
        if let Some(pending) = self.pending.get_mut(&block.0) {
            pending.pages -= 1;
            self.settle(core, block);
        }
    }

    /// Gives those that wait the room there is now, in their order.
    pub(super) fn resume_for_room<P: Probe>(&mut self, core: &mut Core<P>) {
        while let Some(&(plane, read, entry)) = self.waiting_for_room.front() {
            if !self.vsm.has_room(entry.bytes) && self.vsm.lines() > 0 {
                return;
            }
            self.waiting_for_room.pop_front();
            if core.ftl.map.get(read.lpn) != Some(read.ppn) {
                core.wake(Wake::PageDone(plane));
                continue;
            }
            match self.enter_vsm(core, plane, &read, entry) {
                Refreshed::Now => core.wake(Wake::PageDone(plane)),
                Refreshed::Later => {}
                Refreshed::Not => core.wake(Wake::WriteElsewhere { plane, read }),
            }
        }
    }

    /// Power fails: the lines that are not in flash, those that wait for no more data included.
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

    /// A place for a line of the emergency flush, on a die that is free.
    pub(crate) fn place_line_at_power_loss<P: Probe>(core: &mut Core<P>) -> Option<AllocatedPage> {
        let planes = (0..core.geometry.planes).map(PlaneId);
        let plane = planes
            .filter(|&plane| core.ftl.has_combination_room(&core.geometry, plane))
            .find(|&plane| core.device.phase(core.geometry.die_of(plane)) == Phase::Idle)?;
        core.allocate(plane, WriteStream::Combination)
    }
}
