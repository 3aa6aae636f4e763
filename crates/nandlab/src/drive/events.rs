//! The body of the event loop: notifies the mechanisms of events, and serves wakes.
//!
//! An event is the expiry of one clock of the agenda: of a die, a decoder, idleness, the write cache's DRAM, the link,
//! power, or refresh. A notified mechanism acts on the core and leaves a [`Wake`] for other mechanisms. Wakes are
//! served in order before the next event. No mechanism calls back into this file.

use super::together::Path;
use super::{Drive, Failure};
use crate::background::IN_VAIN_MAX;
use crate::base::geometry::{BlockId, DieId, PlaneId};
use crate::base::steps::step;
use crate::base::units::Time;
use crate::capacitor::Stage;
use crate::core::Wake;
use crate::flash::BlockState;
use crate::probe::Probe;
use crate::sched::{Cause, Ended, FlashOp, NEVER, Owner, Slot, Transaction};
use crate::write_cache::Caching;

impl<P: Probe> Drive<P> {
    /// No event is left and a page waits for room. Tries again to make room in every plane. If no plane gets room,
    /// fails the writes that wait for worn-out planes and gives up write-backs of translation pages. Returns `false` if
    /// the drive cannot continue after all this and has failed.
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
        for plane in (0..self.core.geometry.planes).map(PlaneId) {
            self.check_space(plane);
            self.resume_write_backs(plane);
            self.resume_writes(plane);
        }
        self.serve();
        let (time, clock) = self.core.agenda.first();
        if !self.is_rest(time, clock) {
            return true;
        }
        let before = self.given_up();
        if let Some(mapping) = &mut self.path.map {
            mapping.give_up_write_backs(&mut self.core);
        }
        self.path.writes.fail_worn_out(&mut self.core, &mut self.path.host, self.caching.as_mut());
        self.serve();
        // After a failed write another page may wait for room, such as a page that waited for the write cache before.
        let has_failed_some = self.given_up() > before;
        let (time, clock) = self.core.agenda.first();
        if !has_failed_some && self.is_stuck_at(time, clock) {
            self.failure = Some(Box::new(self.shortage()));
        }
        self.failure.is_none()
    }

    /// Returns the number of failed pages plus the number of write-backs of translation pages that have been given up.
    fn given_up(&self) -> u64 {
        let of_map = self.path.map.as_ref().map_or(0, |mapping| mapping.stats.given_up);
        self.path.writes.counters.failed_pages + of_map
    }

    /// Lets translation pages that wait for room in `plane` continue, as far as there is room.
    fn resume_write_backs(&mut self, plane: PlaneId) {
        if let Some(mapping) = &mut self.path.map {
            let has_resumed = mapping.resume_write_backs(&mut self.core, plane);
            // A write that waits may still get nothing, because translation pages take all room that GC makes.
            if has_resumed && self.path.writes.count == 0 {
                self.path.writes.erases_in_vain = 0;
            }
        }
    }

    pub(super) fn check_space(&mut self, plane: PlaneId) {
        self.with_background(|jobs, core, path, around| jobs.check_space(core, path, around, plane));
    }

    /// A page of the job of a plane that waited for its refresh stays where it is.
    fn on_refreshed(&mut self, plane: PlaneId) {
        self.with_background(|jobs, core, path, around| jobs.on_refreshed(core, path, around, plane));
    }

    /// A job of a plane has copied one of its pages.
    pub(super) fn on_copied(&mut self, plane: PlaneId, done: &Transaction) {
        self.with_background(|jobs, core, path, around| jobs.on_copied(core, path, around, plane, done));
    }

    /// The job of a plane has ended without an erase: the next job may begin.
    pub(super) fn after_job(&mut self, plane: PlaneId) {
        self.with_power(|power, core, kept| power.on_job_over(core, kept, plane));
        // Free blocks that were reserved for the job and not used are available again.
        self.resume_write_backs(plane);
        self.resume_writes(plane);
        self.next_job(plane);
    }

    /// Starts the next job of a plane, if the plane has no job and needs one.
    fn next_job(&mut self, plane: PlaneId) {
        if !self.core.has_job(plane) {
            self.with_background(|jobs, core, path, around| {
                jobs.continue_background(core, path, around, plane);
            });
        }
    }

    /// A job has erased its block on a die. When it is erased on all, the job ends, and pages that wait for room
    /// continue.
    #[inline(never)]
    fn on_erased(&mut self, plane: PlaneId, done: &Transaction) {
        let block = self.core.geometry.block_of(done.ppn);
        if !self.core.end_erase(done.ppn, done.cause) {
            return;
        }
        self.background.end_job(&mut self.core, plane);
        self.forget_block(block);
        if done.cause == Cause::Refresh {
            self.schemes.refreshing.refresh.on_erased(&mut self.core, block);
        }
        self.with_power(|power, core, kept| power.on_job_over(core, kept, plane));
        self.after_erase(plane);
    }

    /// A dead block has been erased on a die.
    #[inline(never)]
    fn on_dead_erased(&mut self, plane: PlaneId, done: &Transaction) {
        let block = self.core.geometry.block_of(done.ppn);
        if !self.core.end_erase(done.ppn, done.cause) {
            return;
        }
        let is_retired = self.core.array.block(block).state == BlockState::Retired;
        let had_emptied = self.core.emptied(plane).is_some();
        self.background.end_dead(&mut self.core, block, is_retired);
        self.forget_block(block);
        let is_over = had_emptied && self.core.emptied(plane).is_none();
        if is_over && !self.core.has_job(plane) {
            self.with_power(|power, core, kept| power.on_job_over(core, kept, plane));
        } else {
            self.with_power(|power, core, kept| power.on_room(core, kept));
        }
        self.after_erase(plane);
        if is_over {
            self.with_background(|jobs, core, path, around| jobs.go_on(core, path, around, plane));
        }
    }

    /// Drops the links and the read level of an erased block.
    fn forget_block(&mut self, block: BlockId) {
        self.schemes.refreshing.on_erased(&mut self.core, block);
        self.core.levels.set_block(block, 0);
    }

    /// A block of a plane has been erased: pages that wait for room continue, and the next job may begin.
    fn after_erase(&mut self, plane: PlaneId) {
        self.path.writes.erases_in_vain += u64::from(self.is_stuck());
        self.resume_write_backs(plane);
        self.resume_writes(plane);
        let erases = self.path.writes.erases_in_vain;
        if erases > IN_VAIN_MAX * u64::from(self.core.geometry.good_blocks()) {
            self.failure.get_or_insert_with(|| Box::new(Failure::InVain { erases }));
        }
        self.next_job(plane);
    }

    /// Lets writes that wait for room in `plane` continue, as far as there is room.
    pub(super) fn resume_writes(&mut self, plane: PlaneId) {
        let Path { host, map, writes } = &mut self.path;
        writes.resume(&mut self.core, host, map, self.caching.as_mut(), plane);
        // The writes start before the next operations of GC.
        self.core.start_dies();
    }

    /// Starts the dies, now that all operations of an event or a request are queued; then serves wakes until none is
    /// left.
    #[inline(always)]
    pub(super) fn serve(&mut self) {
        self.core.start_dies();
        while !self.core.wakes.is_empty() {
            self.serve_next();
            self.core.start_dies();
        }
    }

    #[inline(never)]
    fn serve_next(&mut self) {
        match self.core.wakes.pop() {
            None => {}
            Some(Wake::Space(plane)) => self.check_space(plane),
            Some(Wake::Resume(plane)) => {
                self.resume_writes(plane);
                self.check_space(plane);
            }
            Some(Wake::Emptied(plane)) => self.background.on_emptied(&mut self.core, &mut self.path, plane),
            Some(Wake::Dead(block)) => {
                self.background.erase_dead(&mut self.core, &mut self.path, block);
            }
            Some(Wake::PageDone(plane)) => self.on_refreshed(plane),
            Some(Wake::Due(plane)) => {
                self.with_background(|jobs, core, path, around| jobs.on_due(core, path, around, plane))
            }
            Some(Wake::Hurry(block)) => self.hurry(block),
            Some(Wake::WriteElsewhere { plane, read }) => self.write_elsewhere(plane, &read),
            Some(Wake::Refreshed(block)) => {
                self.schemes.refreshing.refresh.end_partial(&mut self.core, block)
            }
            Some(Wake::JobOver(plane)) => self.after_job(plane),
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
            Some(Wake::Results) if !self.core.wakes.is_empty() => self.core.wake(Wake::Results),
            Some(Wake::Results) => self.begin_results(),
            Some(Wake::CutPower) => self.cut_power_soon(),
            Some(Wake::Detection) => self.with_power(|power, core, kept| power.advance(core, kept)),
        }
    }

    /// Simulates one event.
    #[inline]
    pub(super) fn step(&mut self, time: Time, clock: u32) {
        debug_assert!(time >= self.core.now, "time runs backwards");
        step();
        if time >= self.recorder.sample_at() {
            // The last row of the series is due at the end of simulated time, so the end has to be checked only here.
            if time > self.core.end {
                self.end_time();
                return;
            }
            self.sample(time);
        }
        self.core.now = time;
        if clock < self.core.geometry.dies {
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
            self.core.agenda.set(clock, NEVER);
            self.core.state.is_idle = true;
            self.core.close_buffered();
            self.with_cache(Caching::sync_more);
            self.with_background(|jobs, core, path, around| jobs.start_background(core, path, around));
            self.with_power(|power, core, kept| power.detect_when_idle(core, kept));
        } else if clock == self.core.dram_clock() {
            self.with_cache(|cache, core, path| cache.on_dram(core, &mut path.host));
        } else if clock == self.core.link_clock() {
            self.on_link();
        } else if clock == self.core.power_clock() {
            self.on_power();
        } else {
            self.schemes.refreshing.refresh.on_clock(&mut self.core);
        }
    }

    #[inline]
    fn on_die(&mut self, die: DieId) {
        let ended = self.core.device.on_clock(
            &mut self.core.pool,
            &mut self.core.agenda,
            &mut self.core.probe,
            self.core.now,
            die,
        );
        match ended {
            Ended::Nothing => return,
            Ended::Sense(slot) => {
                self.prefetch_sensed(slot);
                return;
            }
            Ended::Page(slot) => self.on_page_out(slot),
            Ended::Batch(first) => {
                let mut rest = Some(first);
                while let Some(slot) = rest {
                    rest = self.core.pool[slot].next;
                    let done = self.core.pool.remove(slot);
                    match (done.kind, done.owner) {
                        (FlashOp::Program | FlashOp::Copyback, _) => {
                            self.on_programmed(&done);
                            let mut more = done.more;
                            while let Some(slot) = more {
                                let unit = self.core.pool.remove(slot);
                                more = unit.more;
                                self.on_page_programmed(&unit);
                            }
                        }
                        (FlashOp::Erase, Owner::Job(plane)) => self.on_erased(plane, &done),
                        (FlashOp::Erase, Owner::DeadBlock(plane)) => self.on_dead_erased(plane, &done),
                        _ => unreachable!("reads end page by page, and only jobs and dead blocks erase"),
                    }
                }
            }
        }
        // The wakes may queue operations for this die, so the die starts its next operation after them.
        self.serve();
        self.core.device.start_next(
            &mut self.core.pool,
            &mut self.core.agenda,
            &mut self.core.probe,
            self.core.now,
            die,
        );
    }

    #[inline]
    fn on_programmed(&mut self, done: &Transaction) {
        // The program that ends the stage `syncing` is not part of the measurement.
        let is_measured = self.power.is_draining();
        self.core.count_ended(done.kind, done.cause);
        match done.owner {
            Owner::Job(plane) if done.is_in_place() => self.on_reprogrammed(plane, done),
            _ => self.on_page_programmed(done),
        }
        if self.power.stage != Stage::Charged {
            self.on_programmed_uncharged(done, is_measured);
        }
    }

    /// A reprogram in place has ended.
    #[cold]
    #[inline(never)]
    fn on_reprogrammed(&mut self, plane: PlaneId, done: &Transaction) {
        self.schemes.refreshing.refresh.on_reprogrammed(&mut self.core, &mut self.path.map, done);
        self.on_refreshed(plane);
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

    /// A page has been sensed: prefetches into the CPU's cache what is needed once the page has been transferred and
    /// decoded.
    #[inline]
    fn prefetch_sensed(&self, slot: Slot) {
        let read = &self.core.pool[slot];
        self.core.ftl.map.prefetch(read.lpn);
        if self.core.has_page_state {
            self.core.prefetch_state(read.ppn);
        }
        match (read.owner, &self.path.map) {
            (Owner::TranslationPage(page), Some(mapping)) => {
                mapping.prefetch_waiting(&self.core, page, false);
            }
            // The write cache has fetched the page in order to write it back.
            (Owner::CachePage(_), Some(mapping)) => mapping.prefetch_write(read.lpn),
            _ => {}
        }
    }

    #[inline]
    fn on_page_programmed(&mut self, done: &Transaction) {
        let block = self.core.geometry.block_of(done.ppn);
        if done.kind == FlashOp::Copyback {
            self.on_copied_back(done);
        }
        let mut programmed = self.core.array.program(block, done.page);
        let is_first = programmed == 1;
        if done.skips > 0 {
            programmed = self.core.array.skip_after(block, done.page, u32::from(done.skips));
        }
        let is_closed = programmed == self.core.geometry.pages_per_block;
        if is_closed {
            self.core.ftl.close(&self.core.geometry, &mut self.core.array, block, self.core.now);
        }
        self.core.read_counts.reset(done.ppn);
        if let Some(partial) = &mut self.schemes.refreshing.partial {
            partial.on_programmed(&mut self.core, &mut self.path.map, done);
        }
        if let Some(old) = done.replaces {
            self.schemes.refreshing.on_page_obsolete(&mut self.core, old);
            self.core.unpin(self.core.geometry.block_of(old));
        }
        match done.owner {
            Owner::Request(id) | Owner::Merge(id) => self.on_host_programmed(id, done),
            Owner::CachePage(slot) => {
                self.with_cache(|cache, core, path| cache.on_written_back(core, path, slot, done));
            }
            Owner::Buffered(slot) => self.path.host.on_buffered_programmed(&mut self.core, slot, done),
            Owner::TranslationPage(page) => {
                let mapping = self.path.map.as_mut().expect("only a demand map has translation pages");
                mapping.end_write_back(&mut self.core, page);
            }
            Owner::Job(plane) => self.on_copied(plane, done),
            Owner::Rewrite(_) | Owner::Dummy => self.on_rewritten(done),
            // `partial.on_programmed` has served combination pages, padding has no owner, flush pages are programmed
            // only while power fails, dead blocks are erased, and a miss only reads.
            Owner::CombinationPage
            | Owner::Padding
            | Owner::FlushPage(_)
            | Owner::DeadBlock(_)
            | Owner::Miss(_) => {}
        }
        if is_closed {
            self.core.look_if_dead(block);
            if let Some(partial) = &mut self.schemes.refreshing.partial {
                partial.look_at_free_blocks(&mut self.core);
            }
            self.core.wake(Wake::Space(self.core.geometry.plane_of(block)));
        }
        if self.schemes.refreshing.refresh.is_on() && (is_first || done.kind == FlashOp::Copyback) {
            self.keep_age(block, done, is_first);
        }
    }

    /// A program of a detection has ended.
    #[cold]
    #[inline(never)]
    fn on_rewritten(&mut self, done: &Transaction) {
        self.with_power(|power, core, kept| power.on_rewritten(core, kept, done));
    }

    /// Sets the age of a block's data for refresh: at the first program of the block, or from the data copied back to
    /// it.
    #[inline(never)]
    fn keep_age(&mut self, block: BlockId, done: &Transaction, is_first: bool) {
        if is_first {
            self.schemes.refreshing.refresh.age_from_now(&mut self.core, block);
        }
        if done.kind == FlashOp::Copyback
            && let Some(source) = done.replaces
        {
            let source = self.core.geometry.block_of(source);
            self.schemes.refreshing.refresh.age_as(&mut self.core, block, source);
        }
    }
}
