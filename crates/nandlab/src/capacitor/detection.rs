//! Dirty page budget detection (DPBD) in the running drive (aging-capacitor paper, Section IV-A).
//!
//! | stage | what happens | until |
//! |---|---|---|
//! | charged | the budget applies | a due detection finds the drive idle or its grace (a day) ends, or on command |
//! | syncing | host writes are write-through; dirty units and the VSM are written back | all acknowledged data is in flash |
//! | draining | on the capacitor, clean units are programmed as in an emergency flush | the capacitor is empty |
//! | settling | operations under way end on energy reserved for them | no torn program could destroy older data |
//! | recharging | host writes are still write-through | the capacitor is full |
//!
//! The result is computed from the drained energy, not from the number of programmed pages: a page on a slow wordline,
//! or a page that GC moves meanwhile, takes more energy than a page on a fast wordline. So the energy taken by
//! controller and programs is converted into the number of units that a flush could program with it into its reserved
//! free superblocks. The paper uses the number of programmed pages. Under `csw` this number would be too high: a
//! detection may find more free fast pages than a flush after a power loss.
//!
//! While the capacitor is empty, a power loss tears the programs under way, and a torn MSB page destroys the LSB page
//! of its wordline. So before the recharge begins, every stream fills its open wordline, and the host stream uses only
//! LSB pages until the capacitor is full. The streams of a job fill their wordline only when the job ends, because the
//! job needs their free units.

use super::{BackedSchemes, Detection, FlushMethod, PowerBackup, Stage};
use crate::base::geometry::LaneId;
use crate::base::units::Span;
use crate::core::{Component, Core, Destination, Maps, Program, Wake};
use crate::flash::{ShapeId, Stamp};
use crate::ftl::placement::Place;
use crate::ftl::{AllocatedUnit, FlushPrograms, StreamId};
use crate::probe::Probe;
use crate::sched::{Cause, Class, Owner, Transaction};

impl PowerBackup {
    pub(crate) fn begin_detection<P: Probe>(
        &mut self,
        core: &mut Core<P>,
        backed: &mut impl BackedSchemes<P>,
    ) {
        let due = if self.is_overdue { self.now.due } else { core.now().min(self.due) };
        self.now = Detection { due, began: core.now(), ..Detection::default() };
        self.is_overdue = false;
        self.wants_room = false;
        self.enter_stage(core, Stage::Syncing);
        self.set_budget(core, backed, 0);
        backed.begin_sync(core);
        core.wake(Wake::Detection);
    }

    /// Begins the next stage if the present one is over; while draining, queues further programs.
    #[inline]
    pub(crate) fn advance<P: Probe>(&mut self, core: &mut Core<P>, backed: &mut impl BackedSchemes<P>) {
        let _inside = core.enter(Component::Capacitor);
        match self.stage {
            Stage::Charged | Stage::Recharging => {}
            Stage::Draining => self.rewrite_more(core, backed),
            Stage::Syncing => {
                if backed.is_synced() {
                    self.begin_draining(core, backed);
                }
            }
            Stage::Settling => self.settle(core, backed),
        }
    }

    pub(super) fn begin_draining<P: Probe>(
        &mut self,
        core: &mut Core<P>,
        backed: &mut impl BackedSchemes<P>,
    ) {
        let units = backed.cache_units();
        self.enter_stage(core, Stage::Draining);
        core.displace();
        self.now.drained_from = core.now();
        self.now.energy_j = self.capacitor.as_ref().map_or(0.0, |c| c.energy_j(self.age_s(core.now())));
        (self.drain.program_ns, self.drain.with_transfers_ns) = (Span::ZERO, Span::ZERO);
        // A detection writes as a flush does that finds only its reserved superblocks. All free superblocks layer by
        // layer would leave the drive without free superblocks.
        let together = Some(core.ftl().flush_room_superblocks() * core.geometry().lanes_per_die);
        // The units of a detection have handle 0, in all reclaim groups alike.
        let placements = *core.placements();
        let of_place = |place: Place| match place.handle {
            0 => units.div_ceil(placements.groups.into()),
            _ => 0,
        };
        let units: Vec<u32> = placements.places().map(of_place).collect();
        self.drain.units = Some(FlushPrograms::new(self.spec.flush, core.ftl(), &units, together));
        self.drain.next_slot = 0;
        self.rewrite_more(core, backed);
        self.set_clock(core);
    }

    /// Queues programs until as many are under way as in an emergency flush.
    pub(super) fn rewrite_more<P: Probe>(&mut self, core: &mut Core<P>, backed: &mut impl BackedSchemes<P>) {
        while self.is_draining() && self.drain.under_way < self.concurrency {
            // A programming unit is allocated as a whole.
            core.close_programs_of_host();
            let Some(units) = &mut self.drain.units else { return };
            let by_die = &self.drain.by_die;
            let mut groups = 0..core.placements().groups;
            let place = groups.find_map(|group| {
                let place = Place { group, handle: 0 };
                core.next_of_flush(units, place, |_, die| by_die[die.index()] > 0)
            });
            match place {
                Some(place) => self.rewrite(core, backed, place),
                // Under `plain` GC will free units. Under `csw` the dies of the programs under way may have units left.
                None if self.spec.flush == FlushMethod::Plain || self.drain.under_way > 0 => return,
                None => {
                    self.end_draining(core, backed);
                    self.set_clock(core);
                }
            }
        }
    }

    /// Programs clean units of the cache once more, as many as one program writes, or a dummy unit if the
    /// next clean unit of the cache is not of handle 0 and the reclaim group of the program.
    pub(super) fn rewrite<P: Probe>(
        &mut self,
        core: &mut Core<P>,
        backed: &mut impl BackedSchemes<P>,
        place: AllocatedUnit,
    ) {
        let (superblock, index) = core.geometry().split(place.unit);
        let die = core.geometry().die_of_unit(superblock, index);
        let (cause, class) = (Cause::Flush, Class::HostWrite);
        let (first, mut last) = (place.unit, None);
        let group = core.placements().group_of(core.geometry().lane_of(superblock));
        core.fill_program(place, StreamId::HOST, |core, allocated| {
            // The unit before has been queued.
            if let Some(lpn) = last.take() {
                backed.on_rewrite_queued(core, lpn);
            }
            let (unit, to) = (allocated.unit, Destination::Allocated(allocated, StreamId::HOST));
            let Some((slot, lpn, sequence)) = backed.take_clean(core, &mut self.drain.next_slot, group)
            else {
                return (unit == first).then(|| Program::nothing(to, Owner::Dummy, cause, class));
            };
            last = Some(lpn);
            let stamp = Stamp { sequence, corrected: core.age_stamp_now() };
            Some(Program { to, lpn, stamp, maps: Maps::Now, owner: Owner::Rewrite(slot), cause, class })
        });
        if let Some(lpn) = last {
            backed.on_rewrite_queued(core, lpn);
        }
        self.drain.by_die[die.index()] += 1;
        self.drain.under_way += 1;
    }

    /// A program has ended during a detection.
    #[cold]
    pub(crate) fn on_program_in_detection<P: Probe>(
        &mut self,
        core: &mut Core<P>,
        backed: &mut impl BackedSchemes<P>,
        done: &Transaction,
    ) {
        let _inside = core.enter(Component::Capacitor);
        if self.is_draining() {
            let timing = core.device().timing();
            let program_ns = timing.shapes()[done.shape].program_ns(done.index);
            self.drain.program_ns += program_ns;
            self.drain.with_transfers_ns += program_ns + timing.transfer_ns + timing.command.program_ns;
            // A flush would not begin a program that the energy does not cover to its end.
            let is_covered = self.energy_j(core.now()) > 0.0;
            let is_host = matches!(done.cause, Cause::Host | Cause::Sync);
            if is_covered && (is_host || done.cause == Cause::Flush) {
                self.now.pages += 1;
                self.now.host_pages += u32::from(is_host);
            }
            // A higher result than twice the cache size would make no difference.
            let measured = self.cost.units(self.drained_j(core.now()));
            let is_plenty = measured >= 2.0 * f64::from(backed.cache_units());
            if is_plenty || !is_covered {
                self.end_draining(core, backed);
            }
            self.set_clock(core);
        }
    }

    /// The program of a unit of a detection (a clean unit or a dummy unit) has ended.
    pub(crate) fn on_rewritten<P: Probe>(
        &mut self,
        core: &mut Core<P>,
        backed: &mut impl BackedSchemes<P>,
        done: &Transaction,
    ) {
        let rewritten = match done.owner {
            Owner::Rewrite(slot) => Some(slot),
            Owner::Dummy => None,
            _ => return,
        };
        // The operation is over with its last unit.
        if done.more.is_none() {
            self.drain.by_die[done.die.index()] -= 1;
            self.drain.under_way -= 1;
        }
        if let Some(slot) = rewritten {
            if core.probe.needs_sequences() {
                core.probe.on_write_durable(done.lpn, core.sequence_of(done.unit));
            }
            backed.end_rewrite(core, slot);
        }
    }

    /// The capacitor is empty except for the energy reserved for operations under way: records the result, and begins
    /// the stage `settling`.
    pub(super) fn end_draining<P: Probe>(&mut self, core: &mut Core<P>, backed: &mut impl BackedSchemes<P>) {
        // The last program may have taken more energy than was left when it began.
        let drained_j = self.drained_j(core.now()).min(self.now.energy_j);
        let measured_units = self.cost.units(drained_j);
        let capacity = backed.cache_units();
        let detection = &mut self.now;
        detection.empty = core.now();
        detection.drained_j = drained_j;
        detection.measured = measured_units / f64::from(capacity.max(1));
        self.found = Some(*detection);
        self.enter_stage(core, Stage::Settling);
        core.look_for_dead();
        self.guard.lanes_left = 0;
        self.guard.from = 0;
        if core.flash().shapes().have_dependent_pages() {
            for lane in (0..core.geometry().lanes).map(LaneId) {
                self.guard(core, lane);
            }
        }
        for lane in (0..core.geometry().lanes).map(LaneId) {
            core.wake(Wake::Space(lane));
        }
        self.settle(core, backed);
    }

    /// Makes sure that no program queued from now on in a lane can destroy older data if torn: the host stream uses
    /// only LSB pages, and all other streams begin a new wordline. If the lane has a job, or an emptied victim that is
    /// not erased, its streams do so afterwards.
    pub(super) fn guard<P: Probe>(&mut self, core: &mut Core<P>, lane: LaneId) {
        if !core.has_job(lane) {
            core.close_programs_of_job(lane);
        }
        let has_job = core.has_job(lane) || core.emptied(lane).is_some();
        self.guard.lanes_left += u32::from(has_job);
        self.guard.done[lane.index()] = !has_job;
        for stream in core.streams().ids() {
            if !has_job || core.streams().is_host(stream) {
                self.pad(core, lane, stream);
            }
        }
        core.set_host_lsb_only(lane, true);
        self.guard.from = core.next_order();
    }

    /// Fills the open programming unit and the open wordline of a stream with padding units.
    pub(super) fn pad<P: Probe>(&mut self, core: &mut Core<P>, lane: LaneId, stream: StreamId) {
        core.close_program(lane, stream);
        // Padding has the class of the stream's other programs, so that the units of the superblock are programmed in
        // order. Before the programs of a later job it needs the class of refresh, the first in which jobs program.
        let class = core.class_of(stream, core.refresh_class());
        while core.ftl().is_amid_wordline(lane, stream) {
            let to = Destination::Stream(lane, stream);
            let padding = Program::nothing(to, Owner::Padding, Cause::Flush, class);
            core.program(padding).expect("the open superblock has a unit left in its wordline");
            core.close_program(lane, stream);
        }
    }

    /// A lane's job is over.
    #[inline]
    pub(crate) fn on_job_over<P: Probe>(
        &mut self,
        core: &mut Core<P>,
        backed: &mut impl BackedSchemes<P>,
        lane: LaneId,
    ) {
        let _inside = core.enter(Component::Capacitor);
        if self.guard.lanes_left > 0 && self.stage == Stage::Settling {
            // Jobs that begin later begin and end at wordline boundaries.
            if !self.guard.done[lane.index()] {
                self.guard.lanes_left -= 1;
                self.guard(core, lane);
                self.settle(core, backed);
            }
        }
        self.on_room(core, backed);
    }

    /// Begins the recharge once no program under way could destroy older data if torn.
    pub(super) fn settle<P: Probe>(&mut self, core: &mut Core<P>, backed: &mut impl BackedSchemes<P>) {
        if self.drain.under_way > 0 || backed.is_reprogramming() {
            return;
        }
        if let Some(units) = self.drain.units.take()
            && (self.spec.flush == FlushMethod::Csw || core.ftl().flush_shape() != ShapeId::FIRST)
        {
            for superblock in units.unfilled(core.ftl()) {
                core.close_early(superblock);
            }
        }
        if self.guard.lanes_left > 0 || core.has_program_before(self.guard.from) {
            return;
        }
        let capacitor = self.capacitor.as_mut().expect("a detection needs a capacitor");
        capacitor.cycle(1);
        let recharge_ns = self.spec.recharge_ns;
        self.begin_recharge(core, recharge_ns);
        self.set_clock(core);
    }

    /// The capacitor is full again.
    pub(super) fn end_recharge<P: Probe>(&mut self, core: &mut Core<P>, backed: &mut impl BackedSchemes<P>) {
        self.enter_stage(core, Stage::Charged);
        for lane in (0..core.geometry().lanes).map(LaneId) {
            core.set_host_lsb_only(lane, false);
        }
        if let Some(detection) = self.found.take() {
            if self.is_measured {
                self.set_measured_budget(core, backed, detection.measured);
                self.due = core.now() + self.simulated(self.spec.detect_every_ns);
            }
            let (budget, recharged) = (self.budget, core.now());
            self.detections.push(Detection { budget, recharged, ..detection });
        }
        self.restore_budget(core, backed);
        for lane in (0..core.geometry().lanes).map(LaneId) {
            core.wake(Wake::Space(lane));
        }
        core.wake(Wake::CacheRoom);
        self.set_clock(core);
    }
}
