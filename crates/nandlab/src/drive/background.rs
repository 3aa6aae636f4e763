//! Background jobs: a plane's GC, static wear levelling, and refresh. A job empties one block and erases it, or refreshes
//! it and lets it stay.
//!
//! A few copies are under way at a time. A copy is a read and, if the page is still valid then, a program in the
//! same plane; the victim is erased when it holds nothing and no operation needs it any more.

use super::Drive;
use crate::core::{Maps, Part, Program, Read, To, Wake};
use crate::ftl::{WriteStream, wear_levelling};
use crate::geometry::{BlockId, PlaneId};
use crate::probe::Probe;
use crate::sched::{Cause, Class, Kind, Owner, Start, Transaction};
use crate::spec::WearLevelling;

/// Copies of a job under way at a time: enough to keep the die busy while pages cross the channel, few enough to
/// need little buffer.
const COPIES: u32 = 4;

/// Erases of every block after which what waits for room fails, when none has come of it: GC can move data and its
/// translation pages round and round without a gain.
const IN_VAIN_MAX: u64 = 16;

/// How far ahead of its copy a page's map entry is asked for.
const PREFETCH_PAGES: u32 = 8;

/// Why a block is emptied, or gone through.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) enum JobCause {
    #[default]
    Gc,
    Wear,
    Refresh,
    /// The block stays: its pages are refreshed where they are, partially or in place, as far as they can be.
    StayingRefresh,
}

/// What a plane is doing in the background.
#[derive(Clone, Debug, Default)]
pub(super) struct Job {
    cause: JobCause,
    /// Space is short, or the grace of a refresh is running out: the die serves the job as it does host writes.
    pub(super) is_urgent: bool,
    is_erasing: bool,
    /// Free blocks that it has taken. It takes one at most, or two when it copies pages back and not all may be.
    pub(super) blocks_taken: u32,
    /// Where its pages are copied back to, if they are.
    copyback: Option<WriteStream>,
    /// The block stays, with those of its pages that are not written elsewhere.
    stays: bool,
    /// The read level at which its reads start.
    start: Start,
    /// The next page of the victim to look at.
    next_page: u32,
    copies: u32,
}

impl Job {
    pub(super) fn cause(&self) -> Cause {
        match self.cause {
            JobCause::Gc => Cause::Gc,
            JobCause::Wear => Cause::Wear,
            JobCause::Refresh | JobCause::StayingRefresh => Cause::Refresh,
        }
    }
}

/// What has become of a page that is to be refreshed where it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Refreshed {
    /// Its part of the job is done.
    Now,
    /// That will be told.
    Later,
    /// It has to be written elsewhere.
    Not,
}

impl<P: Probe> Drive<P> {
    /// A block of `plane` has been opened or closed, or a write found no room: starts foreground GC if it is needed.
    pub(super) fn check_space(&mut self, plane: PlaneId) {
        let _inside = self.core.inside.enter(Part::Background);
        if !self.core.is_short(plane) {
            return;
        }
        let job = &mut self.jobs[plane.index()];
        if !self.core.has_job(plane) {
            self.start_gc(plane, true, 1.0);
        } else if !job.is_urgent {
            job.is_urgent = true;
            self.core.device.promote(self.core.geometry.die_of(plane));
        }
    }

    /// The drive is idle: starts background GC where it is worth it.
    pub(super) fn start_background(&mut self) {
        let _inside = self.core.inside.enter(Part::Background);
        for plane in (0..self.core.geometry.planes).map(PlaneId) {
            if !self.core.has_job(plane) {
                self.continue_background(plane);
            }
        }
    }

    fn continue_background(&mut self, plane: PlaneId) {
        let is_short = self.core.is_short(plane);
        // It is due seldom, and under a steady load space is always short: so it does not wait for room.
        if self.spec.ftl.wear_levelling == WearLevelling::Static && self.start_wear(plane, is_short) {
            return;
        }
        if is_short {
            self.start_gc(plane, true, 1.0);
        } else if self.start_refresh(plane) {
            // That is it.
        } else if self.core.is_idle && self.core.is_below(plane, self.spec.gc.background_free) {
            self.start_gc(plane, false, self.spec.gc.idle_valid_max);
        }
    }

    /// Starts emptying the policy's victim, unless more than `valid_max` of it is valid or nothing can be gained.
    fn start_gc(&mut self, plane: PlaneId, is_urgent: bool, valid_max: f64) {
        // The capacitor is being measured: as little else as can be.
        if self.power.is_draining() && !self.is_stuck() {
            return;
        }
        let victim = self.core.ftl.pick_victim(&self.core.geometry, &self.core.array, plane, self.core.now);
        let Some(victim) = victim else { return };
        let (valid, pages) =
            (u32::from(self.core.array.block(victim).valid), self.core.geometry.pages_per_block);
        let stream = self.core.ftl.emptying_stream(&self.core.geometry, &self.core.array, victim, false);
        let fits = valid <= self.core.ftl.stream_room(&self.core.geometry, plane, stream);
        // With a demand map moving costs more pages than those moved: a block that is wholly valid loses room, which is
        // worth it only for a policy to get on to others, and only while somebody waits.
        let loses = valid == pages && self.core.ftl.demand.is_some() && !self.is_stuck();
        if f64::from(valid) > valid_max * f64::from(pages) || !fits || loses {
            return;
        }
        self.core.stats.on_victim(valid);
        self.start_job(plane, victim, JobCause::Gc, is_urgent);
    }

    /// Starts moving the plane's coldest block, if it lags far enough behind. Takes a block of the reserve and gives
    /// one back.
    fn start_wear(&mut self, plane: PlaneId, is_urgent: bool) -> bool {
        let state = &mut self.core.ftl.planes[plane.index()];
        // Often enough to keep up, seldom enough to cost nothing.
        if state.erases_unchecked < self.core.geometry.blocks_per_plane.div_ceil(8)
            || state.free.len() < self.core.ftl.reserve_blocks
        {
            return false;
        }
        state.erases_unchecked = 0;
        let first = self.core.geometry.first_block(plane);
        let blocks = &self.core.array.blocks[first.index()..][..self.core.geometry.blocks_per_plane as usize];
        let Some(within) = wear_levelling::laggard(blocks, self.spec.ftl.wear_gap) else { return false };
        let victim = BlockId(first.0 + within);
        let stream = self.core.ftl.emptying_stream(&self.core.geometry, &self.core.array, victim, true);
        if u32::from(self.core.array.block(victim).valid)
            > self.core.ftl.stream_room(&self.core.geometry, plane, stream)
        {
            return false;
        }
        self.start_job(plane, victim, JobCause::Wear, is_urgent);
        true
    }

    /// Starts to refresh the first block of a plane that is due; whether there is one.
    fn start_refresh(&mut self, plane: PlaneId) -> bool {
        let Some(due) = self.refresh.next_due(&mut self.core, self.partial.as_mut(), plane) else {
            return false;
        };
        self.start_job(plane, due.block, due.cause, due.is_urgent);
        true
    }

    /// A block of a plane is due for refresh.
    pub(super) fn on_due(&mut self, plane: PlaneId) {
        let _inside = self.core.inside.enter(Part::Background);
        if !self.core.has_job(plane) {
            self.start_refresh(plane);
        }
    }

    fn start_job(&mut self, plane: PlaneId, victim: BlockId, cause: JobCause, is_urgent: bool) {
        let stays = cause == JobCause::StayingRefresh;
        if !stays {
            self.core.ftl.begin_emptying(&self.core.geometry, &mut self.core.array, victim);
        }
        let job = &mut self.jobs[plane.index()];
        let start = match cause {
            JobCause::Gc | JobCause::Wear => Start::Policy,
            JobCause::Refresh | JobCause::StayingRefresh => self.refresh.start(),
        };
        *job = Job { cause, is_urgent, stays, start, ..Job::default() };
        self.core.victims[plane.index()] = Some(victim);
        let [buffer, ..] = self.cache_pages();
        self.jobs[plane.index()].copyback =
            self.path.migration.copyback_stream(&mut self.core, plane, victim, cause, is_urgent, buffer);
        if is_urgent {
            self.core.device.promote(self.core.geometry.die_of(plane));
        }
        for page in 0..PREFETCH_PAGES {
            self.prefetch_copy(victim, page);
        }
        self.copy_more(plane);
    }

    /// Asks the host machine's cache for what copying a page of a victim will need.
    #[inline]
    fn prefetch_copy(&self, victim: BlockId, page: u32) {
        if page < self.core.geometry.pages_per_block {
            self.core.ftl.prefetch_move(self.core.array.lpn(self.core.geometry.page(victim, page)));
        }
    }

    /// Keeps the job's copies going; erases the victim when there is nothing left to copy.
    fn copy_more(&mut self, plane: PlaneId) {
        loop {
            let Some(victim) = self.core.victim(plane) else { return };
            let job = &mut self.jobs[plane.index()];
            if job.copies == COPIES {
                return;
            }
            let Some(page) = self.core.ftl.next_valid(&self.core.geometry, victim, job.next_page) else {
                break;
            };
            job.next_page = page + 1;
            job.copies += 1;
            let (cause, copyback, start) = (job.cause(), job.copyback, job.start);
            let ppn = self.core.geometry.page(victim, page);
            let lpn = self.core.array.lpn(ppn);
            self.prefetch_copy(victim, page + PREFETCH_PAGES);
            if let Some(stream) = copyback
                && let Some(queued) =
                    self.path.migration.copy_back(&mut self.core, plane, stream, ppn, lpn, cause)
            {
                self.jobs[plane.index()].blocks_taken += u32::from(queued.opened);
                continue;
            }
            let (owner, class) = (Owner::Job(plane), Class::Background);
            self.core.read(Read { ppn, lpn, owner, cause, class, start });
        }
        if self.jobs[plane.index()].stays {
            self.end_staying_job(plane);
        } else {
            self.erase_when_empty(plane);
        }
    }

    /// All pages of a block that stays have been asked for: when they are done, so is the job.
    fn end_staying_job(&mut self, plane: PlaneId) {
        let job = &self.jobs[plane.index()];
        let Some(block) = self.core.victim(plane).filter(|_| job.copies == 0) else { return };
        self.end_job(plane);
        self.core.stats.refresh.busy_ns += self.refresh.job_ns(self.core.now, plane);
        self.path.mapping.write_back_deferred(&mut self.core, plane);
        if let Some(partial) = &mut self.partial {
            partial.end_block(&mut self.core, block);
        } else {
            self.refresh.end_in_place(&mut self.core, block);
        }
        self.core.wake(Wake::JobOver(plane));
    }

    /// The job of a plane is over, and its block stays: the next one may begin.
    pub(super) fn after_job(&mut self, plane: PlaneId) {
        let _inside = self.core.inside.enter(Part::Background);
        self.on_job_over(plane);
        if !self.core.has_job(plane) {
            self.continue_background(plane);
        }
    }

    fn end_job(&mut self, plane: PlaneId) {
        let job = std::mem::take(&mut self.jobs[plane.index()]);
        self.core.victims[plane.index()] = None;
        if job.is_urgent {
            self.core.device.demote(self.core.geometry.die_of(plane));
        }
    }

    /// A page of a victim has been read: programs it elsewhere, if it is still the host's newest.
    pub(super) fn on_background_read(&mut self, plane: PlaneId, read: &Transaction) {
        let _inside = self.core.inside.enter(Part::Background);
        if self.core.ftl.map.get(read.lpn) != Some(read.ppn) {
            self.page_done_of(plane);
            return;
        }
        if self.jobs[plane.index()].stays {
            match self.refresh_where_it_is(plane, read) {
                Refreshed::Now => return self.page_done_of(plane),
                Refreshed::Later => return,
                Refreshed::Not => {}
            }
        }
        self.move_page(plane, read);
    }

    /// Programs a page that has been read, and is still the newest, elsewhere in its plane.
    pub(super) fn move_page(&mut self, plane: PlaneId, read: &Transaction) {
        let (lpn, cause) = (read.lpn, read.cause);
        let stream = self.core.ftl.copy_stream(lpn, cause == Cause::Wear);
        let stamp = self.core.stamp_of_copy(read);
        // Pages of a block are programmed in order, so what shares a stream shares a queue.
        let class = if stream == WriteStream::Mapping { Class::HostWrite } else { Class::Background };
        let (to, maps, owner) = (To::Stream(plane, stream), Maps::Now, Owner::Job(plane));
        let queued = self.core.program(Program { to, lpn, stamp, maps, owner, cause, class });
        let queued = queued.expect("a job starts only when its stream has room for all it moves");
        self.jobs[plane.index()].blocks_taken += u32::from(queued.opened);
        self.path.mapping.on_moved(&mut self.core, plane, lpn, !read.is_uncorrectable());
    }

    /// A page of the job of a plane is done: it has been copied, refreshed, or was not needed any more.
    pub(super) fn on_copied(&mut self, plane: PlaneId) {
        let _inside = self.core.inside.enter(Part::Background);
        self.page_done_of(plane);
    }

    fn page_done_of(&mut self, plane: PlaneId) {
        self.jobs[plane.index()].copies -= 1;
        self.copy_more(plane);
    }

    /// Refreshes a page of a block that stays, partially or in place.
    fn refresh_where_it_is(&mut self, plane: PlaneId, read: &Transaction) -> Refreshed {
        let partial = self.partial.as_mut();
        match partial.map_or(Refreshed::Not, |partial| partial.refresh_page(&mut self.core, plane, read)) {
            Refreshed::Not if self.refresh.reprogram(&mut self.core, plane, read) => Refreshed::Later,
            refreshed => refreshed,
        }
    }

    /// Nothing needs the victim of a plane's job any more.
    pub(super) fn on_emptied(&mut self, plane: PlaneId) {
        let _inside = self.core.inside.enter(Part::Background);
        self.erase_when_empty(plane);
    }

    /// Queues the erase of the job's victim if nothing needs it any more.
    fn erase_when_empty(&mut self, plane: PlaneId) {
        let Some(victim) = self.core.victim(plane) else { return };
        let job = &mut self.jobs[plane.index()];
        let block = self.core.array.block(victim);
        if job.is_erasing || job.stays || job.copies > 0 || block.valid > 0 || block.holds > 0 {
            return;
        }
        job.is_erasing = true;
        let cause = job.cause();
        self.path.host.trims.make_durable();
        self.path.mapping.write_back_deferred(&mut self.core, plane);
        self.core.erase(victim, plane, cause);
    }

    pub(super) fn on_erased(&mut self, plane: PlaneId, done: &Transaction) {
        let _inside = self.core.inside.enter(Part::Background);
        let block = self.core.geometry.block_of(done.ppn);
        self.core.stats.on_flash(Kind::Erase, done.cause);
        self.core.array.erase(&self.core.geometry, block);
        self.core.ftl.release(&self.core.geometry, &mut self.core.array, block, self.spec.drive.endurance);
        self.end_job(plane);
        if let Some(partial) = &mut self.partial {
            partial.on_erased(&mut self.core, block);
        }
        self.core.levels.set_block(block, 0);
        if done.cause == Cause::Refresh {
            self.refresh.on_erased(&mut self.core, block);
        }
        self.on_job_over(plane);
        self.path.writes.erases_in_vain += u64::from(self.is_stuck());
        self.path.mapping.resume_write_backs(&mut self.core, plane);
        self.resume_stalled(plane);
        if self.path.writes.erases_in_vain > IN_VAIN_MAX * u64::from(self.core.geometry.blocks) {
            self.fail_waiting();
        }
        if !self.core.has_job(plane) {
            self.continue_background(plane);
        }
    }
}
