//! The body of the event loop: notifies the mechanisms of events, and serves wakes.
//!
//! An event is the expiry of one clock of the agenda: of a die, a decoder, idleness, the write cache's DRAM, the link, the controller,
//! power, or refresh. A notified mechanism acts on the core and leaves a [`Wake`] for other mechanisms. Wakes are
//! served in order before the next event. No mechanism calls back into this file.
//!
//! The receivers of an event act in the order of this table:
//!
//! | event | receivers |
//! |---|---|
//! | a page has left its die | `Reads`: `Array` counts the read, decoding begins; `Mechanism::on_read`: `Reclaim`; if decoding takes no time, the receivers of the next row |
//! | decoding has ended | `Reads`: queues another try, or remembers the level; after the last try `ErrorCache` (host reads), the pin, the owner |
//! | a program or copyback has ended | `Operations`; then for each unit: after a copyback `Drive::on_copied_back`; `Array`; `Ftl` when the superblock is full; `ReadCounts`; `Slc`; `Partial`; for the replaced unit `Refreshing::on_unit_obsolete` and its pin; the owner; when the superblock is full the check for a dead superblock, `Partial` and `Wake::Space`; `Refresh` (age of the superblock). At the end `PowerBackup` while the capacitor is not charged |
//! | a program in place has ended | `Operations`, `Refresh`, the job; `PowerBackup` while the capacitor is not charged |
//! | an erase has ended | `Operations`, `Array`, `Ftl`; `Background`; `Refreshing`, the read level of the superblock; `Slc`; `PowerBackup`; the waiting translation pages, then the waiting writes; the next job of the lane |
//! | the host is idle | `Slc`; the programming units that gather for `ftl.buffer`, `Caching`, `Background`, `PowerBackup` |
//! | the clock of DRAM, link, power, refresh | `Caching`, `Host`, `PowerBackup` (or power fails), `Refresh` |
//!
//! Writes that wait for room continue before GC does.

use super::together::Path;
use super::{Drive, Failure};
use crate::background::IN_VAIN_MAX;
use crate::base::geometry::{DieId, LaneId, SuperblockId};
use crate::base::steps::step;
use crate::base::units::Time;
use crate::capacitor::Stage;
use crate::core::{Programmed, State, Wake};
use crate::flash::SuperblockState;
use crate::probe::Probe;
use crate::sched::{Cause, Ended, FlashOp, NEVER, Owner, Slot, Transaction};
use crate::write_cache::Caching;

impl<P: Probe> Drive<P> {
    /// No event is left and a unit waits for room. Tries again to make room in every lane. If no lane gets room, fails
    /// the writes that wait for worn-out lanes and gives up write-backs of translation pages. Returns `false` if the
    /// drive cannot continue after all this and has failed.
    pub(super) fn give_up(&mut self) -> bool {
        // A job that waits for the host goes on: the host may wait for what the job keeps.
        if self.with_background(|jobs, core, path, around| jobs.catch_up_everywhere(core, path, around)) {
            self.serve();
            return true;
        }
        if self.failure.is_some() {
            return false;
        }
        self.core.look_at_wear();
        for lane in (0..self.core.geometry().lanes).map(LaneId) {
            self.check_space(lane);
            self.resume_write_backs(lane);
            self.resume_writes(lane);
        }
        self.serve();
        let (time, clock) = self.core.next_clock();
        if !self.is_rest(time, clock) {
            return true;
        }
        let before = self.given_up();
        if let Some(mapping) = &mut self.path.map {
            mapping.give_up_write_backs(&mut self.core);
        }
        self.path.writes.fail_worn_out(&mut self.core, &mut self.path.host, self.caching.as_mut());
        self.serve();
        // After a failed write another unit may wait for room, such as a unit that waited for the write cache before.
        let has_failed_some = self.given_up() > before;
        let (time, clock) = self.core.next_clock();
        if !has_failed_some && self.is_rest(time, clock) && self.is_stuck() {
            self.failure = Some(Box::new(self.shortage()));
        }
        self.failure.is_none()
    }

    /// Returns the number of failed units plus the number of write-backs of translation pages that have been given up.
    fn given_up(&self) -> u64 {
        let of_map = self.path.map.as_ref().map_or(0, |mapping| mapping.stats.given_up);
        self.path.writes.counters.failed_pages + of_map
    }

    /// Lets translation pages that wait for room in `lane` continue, as far as there is room.
    fn resume_write_backs(&mut self, lane: LaneId) {
        if let Some(mapping) = &mut self.path.map {
            let has_resumed = mapping.resume_write_backs(&mut self.core, lane);
            // A write that waits may still get nothing, because translation pages take all room that GC makes.
            if has_resumed && self.path.writes.count == 0 {
                self.path.writes.erases_in_vain = 0;
            }
        }
    }

    pub(super) fn check_space(&mut self, lane: LaneId) {
        self.with_background(|jobs, core, path, around| jobs.check_space(core, path, around, lane));
    }

    /// A unit of the job of a lane that waited for its refresh stays where it is.
    fn on_refreshed(&mut self, lane: LaneId) {
        self.with_background(|jobs, core, path, around| jobs.on_refreshed(core, path, around, lane));
    }

    /// A job of a lane has copied one of its units.
    pub(super) fn on_copied(&mut self, lane: LaneId, done: &Transaction) {
        self.with_background(|jobs, core, path, around| jobs.on_copied(core, path, around, lane, done));
    }

    /// The job of a lane has ended without an erase: the next job may begin.
    pub(super) fn after_job(&mut self, lane: LaneId) {
        self.with_power(|power, core, kept| power.on_job_over(core, kept, lane));
        // Free superblocks that were reserved for the job and not used are available again.
        self.resume_write_backs(lane);
        self.resume_writes(lane);
        self.next_job(lane);
    }

    /// Starts the next job of a lane, if the lane has no job and needs one.
    fn next_job(&mut self, lane: LaneId) {
        if !self.core.has_job(lane) {
            self.with_background(|jobs, core, path, around| {
                jobs.continue_background(core, path, around, lane);
            });
        }
    }

    /// A job has erased its superblock on a die. When the superblock is erased on all its dies, the job ends, and units
    /// that wait for room continue.
    #[inline(never)]
    fn on_erased(&mut self, lane: LaneId, done: &Transaction) {
        let superblock = self.core.geometry().superblock_of(done.unit);
        if !self.core.end_erase(done.unit, done.cause) {
            return;
        }
        self.background.end_job(&mut self.core, lane);
        self.forget_superblock(superblock);
        self.on_fold_erased(lane, done);
        if done.cause == Cause::Refresh {
            self.schemes.refreshing.refresh.on_erased(&mut self.core, superblock);
        }
        self.with_power(|power, core, kept| power.on_job_over(core, kept, lane));
        self.after_erase(lane);
    }

    /// A dead superblock has been erased on a die.
    #[inline(never)]
    fn on_dead_erased(&mut self, lane: LaneId, done: &Transaction) {
        let superblock = self.core.geometry().superblock_of(done.unit);
        if !self.core.end_erase(done.unit, done.cause) {
            return;
        }
        let is_retired = self.core.superblock(superblock).state == SuperblockState::Retired;
        let had_emptied = self.core.emptied(lane).is_some();
        self.background.end_dead(&mut self.core, superblock, is_retired);
        self.forget_superblock(superblock);
        self.on_fold_erased(lane, done);
        let is_over = had_emptied && self.core.emptied(lane).is_none();
        if is_over && !self.core.has_job(lane) {
            self.with_power(|power, core, kept| power.on_job_over(core, kept, lane));
        } else {
            self.with_power(|power, core, kept| power.on_room(core, kept));
        }
        self.after_erase(lane);
        if is_over {
            self.with_background(|jobs, core, path, around| jobs.go_on(core, path, around, lane));
        }
    }

    /// A superblock of a lane has been erased. If it was in SLC mode, the host may open another one in this mode.
    fn on_fold_erased(&mut self, lane: LaneId, done: &Transaction) {
        if let Some(slc) = self.schemes.slc.as_mut().filter(|_| done.cause == Cause::Fold) {
            slc.on_erased(&mut self.core, lane);
        }
    }

    /// Drops the links and the read level of an erased superblock.
    fn forget_superblock(&mut self, superblock: SuperblockId) {
        self.schemes.refreshing.on_erased(&mut self.core, superblock);
        if let Some(classes) = &mut self.path.writes.classes {
            classes.on_erased(superblock);
        }
        self.core.set_superblock_level(superblock, 0);
    }

    /// A superblock of a lane has been erased: units that wait for room continue, and the next job may begin.
    fn after_erase(&mut self, lane: LaneId) {
        self.path.writes.erases_in_vain += u64::from(self.is_stuck());
        self.resume_write_backs(lane);
        self.resume_writes(lane);
        let erases = self.path.writes.erases_in_vain;
        if erases > IN_VAIN_MAX * u64::from(self.core.geometry().good_superblocks()) {
            self.failure.get_or_insert_with(|| Box::new(Failure::InVain { erases }));
        }
        self.next_job(lane);
    }

    /// Lets writes that wait for room in `lane` continue, as far as there is room.
    pub(super) fn resume_writes(&mut self, lane: LaneId) {
        let Path { host, map, writes } = &mut self.path;
        writes.resume(&mut self.core, host, map, self.caching.as_mut(), lane);
        // The writes start before the next operations of GC.
        self.core.start_dies();
    }

    /// Starts the dies, now that all operations of an event or a request are queued; then serves wakes until none is
    /// left.
    #[inline(always)]
    pub(super) fn serve(&mut self) {
        self.core.start_dies();
        while self.core.has_wakes() {
            self.serve_next();
            self.core.start_dies();
        }
    }

    #[inline(never)]
    fn serve_next(&mut self) {
        match self.core.next_wake() {
            None => {}
            Some(Wake::Space(lane)) => {
                self.check_space(lane);
                if let Some(slc) = &mut self.schemes.slc {
                    slc.look_at(&mut self.core, lane);
                }
            }
            Some(Wake::Resume(lane)) => {
                self.resume_writes(lane);
                self.check_space(lane);
            }
            Some(Wake::Emptied(lane)) => self.background.on_emptied(&mut self.core, &mut self.path, lane),
            Some(Wake::Dead(superblock)) => {
                self.background.erase_dead(&mut self.core, &mut self.path, superblock);
            }
            Some(Wake::UnitDone(lane)) => self.on_refreshed(lane),
            Some(Wake::Due(lane)) => {
                self.with_background(|jobs, core, path, around| jobs.on_due(core, path, around, lane))
            }
            Some(Wake::Hurry(superblock)) => self.hurry(superblock),
            Some(Wake::WriteElsewhere { lane, read }) => self.write_elsewhere(lane, &read),
            Some(Wake::Refreshed(superblock)) => {
                self.schemes.refreshing.refresh.end_partial(&mut self.core, superblock)
            }
            Some(Wake::JobOver(lane)) => self.after_job(lane),
            Some(Wake::MapEntry { waiter, is_lost }) => self.on_map_entry(&waiter, is_lost),
            Some(Wake::ReadMiss(slot)) => self.read_into_cache(slot),
            Some(Wake::SectorsArrived { slot, sequence, is_lost }) => {
                self.with_cache(|cache, core, path| cache.on_fetched(core, path, slot, sequence, is_lost));
            }
            Some(Wake::WriteBackEnded(slot)) => {
                self.with_cache(|cache, core, path| cache.end_write_back(core, path, slot));
            }
            Some(Wake::CacheRoom) => self.with_cache(Caching::resume),
            // The work of the event that completes the warm-up belongs to the warm-up.
            Some(Wake::Results) if self.core.has_wakes() => self.core.wake(Wake::Results),
            Some(Wake::Results) => self.begin_results(),
            Some(Wake::CutPower) => self.cut_power_soon(),
            Some(Wake::Detection) => self.with_power(|power, core, kept| power.advance(core, kept)),
            Some(Wake::PolicyFailed(fault)) => self.fail_policy(*fault),
        }
    }

    /// Simulates one event.
    #[inline]
    pub(super) fn step(&mut self, time: Time, clock: u32) {
        debug_assert!(time >= self.core.now(), "time runs backwards");
        step();
        if time >= self.recorder.sample_at() {
            // The last row of the series is due at the end of simulated time, so the end has to be checked only here.
            if time > self.core.end() {
                self.end_time();
                return;
            }
            self.sample(time);
        }
        self.core.advance_to(time);
        if clock < self.core.first_decoder_clock() {
            self.on_die(DieId(clock));
            return;
        } else if clock < self.core.idle_clock() {
            let slot = self.reads.on_clock(&mut self.core, clock);
            self.on_decoded(slot);
        } else {
            self.on_rare_clock(clock);
        }
        self.serve();
    }

    // Rare events are kept out of the code that runs for every operation, which has to fit the instruction cache.
    #[cold]
    #[inline(never)]
    fn on_rare_clock(&mut self, clock: u32) {
        if clock == self.core.idle_clock() {
            self.core.probe.on_timer(self.core.now());
            self.core.set_clock(clock, NEVER);
            let was_idle = self.core.state().is_idle;
            if let Some(slc) = &mut self.schemes.slc {
                slc.on_idle(&mut self.core, was_idle);
            }
            if was_idle {
                // The host has been idle for `slc.idle_after` too.
                self.with_background(|jobs, core, path, around| jobs.start_background(core, path, around));
                return;
            }
            self.core.set_state(State { is_idle: true, ..*self.core.state() });
            self.core.close_buffered();
            self.with_cache(Caching::sync_more);
            self.with_background(|jobs, core, path, around| jobs.start_background(core, path, around));
            self.with_power(|power, core, kept| power.detect_when_idle(core, kept));
        } else if clock == self.core.dram_clock() {
            self.with_cache(|cache, core, path| cache.on_dram(core, &mut path.host));
        } else if clock == self.core.link_clock() {
            self.on_link();
        } else if clock == self.core.power_clock() {
            self.core.probe.on_timer(self.core.now());
            self.on_power();
        } else if clock == self.core.controller_clock() {
            self.on_controller();
        } else {
            self.core.probe.on_timer(self.core.now());
            self.schemes.refreshing.refresh.on_clock(&mut self.core);
        }
    }

    #[inline]
    fn on_die(&mut self, die: DieId) {
        match self.core.on_die(die) {
            Ended::Nothing => return,
            Ended::Sense(slot) => {
                self.prefetch_sensed(slot);
                return;
            }
            Ended::Page(slot) => self.on_page_out(slot),
            Ended::Batch(first) => {
                let mut rest = Some(first);
                while let Some(slot) = rest {
                    rest = self.core.operation(slot).next;
                    let done = self.core.end_operation(slot);
                    self.core.probe.on_ended(self.core.now(), &done);
                    match (done.kind, done.owner) {
                        (FlashOp::Program | FlashOp::Copyback, _) => {
                            self.on_programmed(&done);
                            let mut more = done.more;
                            while let Some(slot) = more {
                                let unit = self.core.end_operation(slot);
                                more = unit.more;
                                self.on_unit_programmed(&unit);
                            }
                        }
                        (FlashOp::Erase, Owner::Job(lane)) => self.on_erased(lane, &done),
                        (FlashOp::Erase, Owner::DeadSuperblock(lane)) => self.on_dead_erased(lane, &done),
                        _ => unreachable!("reads end unit by unit, and only jobs and dead superblocks erase"),
                    }
                }
            }
        }
        // The wakes may queue operations for this die, so the die starts its next operation after them.
        self.serve();
        self.core.start_next(die);
    }

    #[inline]
    fn on_programmed(&mut self, done: &Transaction) {
        // The program that ends the stage `syncing` is not part of the measurement.
        let is_measured = self.power.is_draining();
        self.core.count_ended(done.kind, done.cause, done.shape);
        match done.owner {
            Owner::Job(lane) if done.is_in_place() => self.on_reprogrammed(lane, done),
            _ => self.on_unit_programmed(done),
        }
        if self.power.stage != Stage::Charged {
            self.on_programmed_uncharged(done, is_measured);
        }
    }

    /// A reprogram in place has ended.
    #[cold]
    #[inline(never)]
    fn on_reprogrammed(&mut self, lane: LaneId, done: &Transaction) {
        self.schemes.refreshing.refresh.on_reprogrammed(&mut self.core, &mut self.path.map, done);
        self.on_refreshed(lane);
    }

    /// A program has ended while the capacitor is being measured or recharged.
    #[cold]
    #[inline(never)]
    fn on_programmed_uncharged(&mut self, done: &Transaction, is_measured: bool) {
        if is_measured {
            self.with_power(|power, core, kept| power.on_program_in_detection(core, kept, done));
        }
        self.core.wake(Wake::Detection);
    }

    /// A read has been sensed: prefetches into the CPU's cache what is needed once its unit has been transferred and
    /// decoded.
    #[inline]
    fn prefetch_sensed(&self, slot: Slot) {
        let read = self.core.operation(slot);
        self.core.ftl().map.prefetch(read.lpn);
        if self.core.has_unit_state() {
            self.core.prefetch_state(read.unit);
        }
        match (read.owner, &self.path.map) {
            (Owner::TranslationPage(tvpn), Some(mapping)) => {
                mapping.prefetch_waiting(&self.core, tvpn, false);
            }
            // The write cache has fetched the unit in order to write it back.
            (Owner::CacheUnit(_), Some(mapping)) => mapping.prefetch_write(read.lpn),
            _ => {}
        }
    }

    #[inline]
    fn on_unit_programmed(&mut self, done: &Transaction) {
        let superblock = self.core.geometry().superblock_of(done.unit);
        if done.kind == FlashOp::Copyback {
            self.on_copied_back(done);
        }
        let Programmed { is_first, is_closed } = self.core.end_program(done);
        if let Some(slc) = &mut self.schemes.slc {
            slc.on_programmed(done);
        }
        if let Some(partial) = &mut self.schemes.refreshing.partial {
            partial.on_programmed(&mut self.core, &mut self.path.map, done);
        }
        if let Some(old) = done.replaces {
            self.schemes.refreshing.on_unit_obsolete(&mut self.core, old);
            self.core.unpin(self.core.geometry().superblock_of(old));
        }
        match done.owner {
            Owner::Request(id) | Owner::Merge(id) => self.on_host_programmed(id, done),
            Owner::CacheUnit(slot) => {
                self.with_cache(|cache, core, path| cache.on_written_back(core, path, slot, done));
            }
            Owner::Buffered(slot) => self.path.host.on_buffered_programmed(&mut self.core, slot, done),
            Owner::TranslationPage(tvpn) => {
                let mapping = self.path.map.as_mut().expect("only a demand map has translation pages");
                mapping.end_write_back(&mut self.core, tvpn);
            }
            Owner::Job(lane) => self.on_copied(lane, done),
            Owner::Rewrite(_) | Owner::Dummy => self.on_rewritten(done),
            // `partial.on_programmed` has served combination pages, padding has no owner, flush units are programmed
            // only while power fails, dead superblocks are erased, and a miss only reads.
            Owner::CombinationPage
            | Owner::Padding
            | Owner::FlushUnit(_)
            | Owner::DeadSuperblock(_)
            | Owner::Miss(_) => {}
        }
        if is_closed {
            self.core.look_if_dead(superblock);
            if let Some(partial) = &mut self.schemes.refreshing.partial {
                partial.look_at_free_superblocks(&mut self.core);
            }
            self.core.wake(Wake::Space(self.core.geometry().lane_of(superblock)));
        }
        if self.schemes.refreshing.refresh.is_on() && (is_first || done.kind == FlashOp::Copyback) {
            self.keep_age(superblock, done, is_first);
        }
    }

    /// A program of a detection has ended.
    #[cold]
    #[inline(never)]
    fn on_rewritten(&mut self, done: &Transaction) {
        self.with_power(|power, core, kept| power.on_rewritten(core, kept, done));
    }

    /// Sets the age of a superblock's data for refresh: at the first program of the superblock, or from the data copied
    /// back to it.
    #[inline(never)]
    fn keep_age(&mut self, superblock: SuperblockId, done: &Transaction, is_first: bool) {
        if is_first {
            self.schemes.refreshing.refresh.age_from_now(&mut self.core, superblock);
        }
        if done.kind == FlashOp::Copyback
            && let Some(source) = done.replaces
        {
            let source = self.core.geometry().superblock_of(source);
            self.schemes.refreshing.refresh.age_as(&mut self.core, superblock, source);
        }
    }
}
