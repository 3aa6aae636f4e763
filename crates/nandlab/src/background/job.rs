//! The operations of a job. A job has a few copies under way at a time. A copy is a copyback, or a read and, if the
//! page is still valid after the read, a program in the same plane. The victim is erased when it has neither valid
//! pages nor pins.

use super::copybacks::numbers;
use super::{Around, Background, Job, PREFETCH_PAGES};
use crate::base::geometry::{BlockId, Lpn, PlaneId, Ppn};
use crate::core::{
    CopyBack, Core, Map, Maps, NextJob, Part, Program, Read, Refreshed, To, VictimTimes, Wake, Work,
};
use crate::ftl::WriteStream;
use crate::host::DataPath;
use crate::probe::Probe;
use crate::sched::{Cause, Class, Owner, Start, Transaction};
use std::ops::Range;

/// A step of a job.
enum Step {
    /// This page of the victim is moved off-chip.
    Read(u32),
    /// A flash page has been copied back, or waits for others that are copied back with it, or has to be moved
    /// off-chip.
    CopiedBack,
    /// No page is left.
    Over,
}

impl Job {
    /// The copy of a page of the victim begins: prefetches into the CPU's cache the map entries that the copies of later
    /// pages need, if that is due.
    #[inline(always)]
    fn prefetch<P: Probe>(&mut self, core: &Core<P>, map: &impl Map<P>, victim: BlockId) {
        if core.has_page_state
            && let Some(page) = core.ftl.next_valid(&core.geometry, victim, self.next_page)
        {
            // The jobs of many planes take turns, so what has been prefetched eight pages ago has left the nearest cache.
            let ppn = core.geometry.page(victim, page);
            core.prefetch_state(ppn);
            if !self.stays {
                map.prefetch_move(core.array.lpn(ppn));
            }
        }
        if self.next_page > self.prefetch_at {
            self.prefetch_next(core, map, victim);
        }
    }

    /// Prefetches the map entries of the next [`PREFETCH_PAGES`] valid pages. A profile shows that the CPU waits at a
    /// prefetch, presumably for the physical address of the entry. Prefetches that follow each other wait at the same time:
    /// on a drive of 1 TiB 13 instead of 33 ns a page operation.
    #[inline(never)]
    fn prefetch_next<P: Probe>(&mut self, core: &Core<P>, map: &impl Map<P>, victim: BlockId) {
        let mut lpns = [Lpn(0); PREFETCH_PAGES];
        let mut count = 0;
        let mut from = self.prefetched.max(self.next_page);
        self.prefetch_at = u32::MAX;
        if self.stays {
            // Most pages of the block are not moved, so their entries are not needed.
            return;
        }
        while count < PREFETCH_PAGES
            && let Some(page) = core.ftl.next_valid(&core.geometry, victim, from)
        {
            self.prefetch_at = self.prefetch_at.min(page);
            from = page + 1;
            let ppn = core.geometry.page(victim, page);
            // A line has the LPNs of 16 pages; behind the block nothing is read.
            core.array.prefetch_lpn(Ppn(ppn.0 + 16));
            lpns[count] = core.array.lpn(ppn);
            count += 1;
        }
        self.prefetched = from;
        let lpns = &lpns[..count];
        lpns.iter().for_each(|&lpn| core.ftl.map.prefetch(lpn));
        lpns.iter().for_each(|&lpn| map.prefetch_move(lpn));
    }
}

impl Background {
    /// Starts a job in a plane without a job.
    #[inline(never)]
    pub(super) fn start_job<P: Probe>(
        &mut self,
        core: &mut Core<P>,
        path: &mut DataPath<impl Map<P>>,
        around: &mut impl Around<P>,
        plane: PlaneId,
        job: NextJob,
    ) {
        let NextJob { block: victim, cause, stays, is_urgent: is_hurried, corrects, start, class } = job;
        // While space is short every job is paced, so that a free block is ready when the host needs it. The exception
        // is a job that is urgent because of its data: pacing would slow it down.
        let is_background = class == Class::Background;
        let is_paced =
            is_background && self.pacing.is_some() && core.is_short(plane) && !(corrects && is_hurried);
        let is_urgent = is_background && is_hurried || is_paced;
        let gains = core.gains(victim);
        if !stays {
            core.ftl.begin_emptying(&core.geometry, &mut core.array, victim);
        }
        self.jobs[plane.index()] =
            Job { cause: Some(cause), class, is_urgent, is_paced, stays, start, gains, ..Job::default() };
        self.jobs[plane.index()].times = VictimTimes::new(core.now);
        core.room.works[plane.index()] = Work { victim: Some(victim), blocks_taken: 0 };
        // A job whose block stays takes free blocks and returns none by an erase, so these blocks are promised to the
        // job.
        core.ftl.planes[plane.index()].promised_blocks =
            if stays { core.blocks_to_empty(plane, victim, false) } else { 0 };
        let copyback =
            around.copyback_stream(core, &mut path.host, plane, victim, &NextJob { is_urgent, ..job });
        let stream = core.emptying_stream(victim, cause == Cause::Wear);
        if stays || class != Class::Background || !core.gathers(plane, stream) {
            core.close_programs_of_job(plane);
        }
        let job = &mut self.jobs[plane.index()];
        job.is_of_map = stream == WriteStream::Mapping;
        (job.copyback, job.promises) = (copyback, copyback.is_none() && stream == WriteStream::Gc);
        self.promise(core, plane);
        if is_urgent {
            core.promote(plane);
        }
        self.begin_blocking(core, plane);
        self.pace(core, plane);
        self.jobs[plane.index()].prefetch_next(core, &path.map, victim);
        self.start_copies(core, path, around, plane);
    }

    /// With `migration.first_block = "shared"`, keeps the pages that the job of a plane still has to move from the host.
    /// Lets the writes that wait for room continue if the job needs fewer pages than before.
    fn promise<P: Probe>(&mut self, core: &mut Core<P>, plane: PlaneId) {
        if core.ftl.shares_first_block {
            let pages = match core.victim(plane) {
                Some(victim) if self.jobs[plane.index()].promises => core.valid_pages(victim),
                _ => 0,
            };
            let before = std::mem::replace(&mut core.ftl.planes[plane.index()].promised_pages, pages);
            core.wake(if pages < before { Wake::Resume(plane) } else { Wake::Space(plane) });
        }
    }

    /// Starts copies of the job until `migration.in_flight` are under way; a flash page is read as a whole. When no page is
    /// left to copy, erases the victim or ends the job.
    #[inline(never)]
    pub(super) fn start_copies<P: Probe>(
        &mut self,
        core: &mut Core<P>,
        path: &mut DataPath<impl Map<P>>,
        around: &mut impl Around<P>,
        plane: PlaneId,
    ) {
        self.copy_more(core, path, around, plane);
    }

    /// [`Background::start_copies`], for the most frequent caller.
    #[inline(always)]
    fn copy_more<P: Probe>(
        &mut self,
        core: &mut Core<P>,
        path: &mut DataPath<impl Map<P>>,
        around: &mut impl Around<P>,
        plane: PlaneId,
    ) {
        let mut flash_page = None;
        loop {
            let Some(victim) = core.victim(plane) else { return };
            let is_full = self.jobs[plane.index()].copies >= self.copies_max;
            // Where a program has one page, no pages share a flash page, and no victim is left open.
            let has_units = core.geometry.pages_per_program > 1;
            let pauses =
                if has_units { self.pauses(core, plane, victim, flash_page, is_full) } else { is_full };
            if pauses {
                self.update_blocking(core, plane);
                return;
            }
            let page = match self.next_step(core, &path.map, around, plane, victim) {
                Step::Read(page) => page,
                Step::CopiedBack => continue,
                Step::Over => break,
            };
            let job = &mut self.jobs[plane.index()];
            job.prefetch(core, &path.map, victim);
            job.copies += 1;
            job.reads += 1;
            let (cause, start, class) = (job.cause(), job.start, job.class);
            let ppn = core.geometry.page(victim, page);
            flash_page = Some(core.geometry.first_unit(ppn));
            let lpn = core.array.lpn(ppn);
            let owner = Owner::Job(plane);
            let page_level = if start == Start::Policy { core.page_level(&path.map, lpn) } else { 0 };
            core.read(Read { ppn, lpn, owner, cause, class, start, page_level });
        }
        if core.geometry.pages_per_program > 1 && self.jobs[plane.index()].reads == 0 {
            self.end_copies(core, path, plane);
        }
        if self.jobs[plane.index()].stays {
            self.end_staying_job(core, path, around, plane);
        } else {
            self.erase_when_empty(core, path, plane);
        }
    }

    /// The next step of a job that has not finished with all pages of its victim.
    #[inline(always)]
    fn next_step<P: Probe>(
        &mut self,
        core: &mut Core<P>,
        map: &impl Map<P>,
        around: &mut impl Around<P>,
        plane: PlaneId,
        victim: BlockId,
    ) -> Step {
        let job = &mut self.jobs[plane.index()];
        if let Some(stream) = job.copyback {
            return self.next_step_of_copybacks(core, map, around, plane, victim, stream);
        }
        match core.ftl.next_valid(&core.geometry, victim, job.next_page) {
            Some(page) => {
                job.next_page = page + 1;
                Step::Read(page)
            }
            None => Step::Over,
        }
    }

    /// As [`Background::next_step`], in a job that copies flash pages back where the limit allows it. A flash page waits
    /// until others fill the programming unit with it. Those that wait when no other follows are moved off-chip.
    fn next_step_of_copybacks<P: Probe>(
        &mut self,
        core: &mut Core<P>,
        map: &impl Map<P>,
        around: &mut impl Around<P>,
        plane: PlaneId,
        victim: BlockId,
        stream: WriteStream,
    ) -> Step {
        let (job, waiting) = (&mut self.jobs[plane.index()], &mut self.waiting[plane.index()]);
        if !job.rest.is_empty() {
            let page = core.ftl.next_valid(&core.geometry, victim, job.rest.start);
            if let Some(page) = page.filter(|page| job.rest.contains(page)) {
                job.rest.start = page + 1;
                return Step::Read(page);
            }
            job.rest = Range::default();
        }
        if let Some(next) = core.ftl.next_page(&core.geometry, plane, stream)
            && let Some(sources) = waiting.take(&core.geometry, next)
        {
            // Pages that have waited have grown older, and pages of them may have become invalid.
            let waits = core.geometry.copybacks_wait();
            let mut refused = sources.iter().copied().filter(|_| waits);
            if let Some(refused) = refused.find(|&page| !around.may_copy_back(core, plane, stream, page)) {
                waiting.give_back(&core.geometry, refused);
                self.leave(core, plane, refused);
                return Step::CopiedBack;
            }
            job.copies += sources.iter().map(|&first| core.valid_in_flash_page(first)).sum::<u32>();
            let queued = around.copy_back(core, CopyBack { plane, stream, sources, cause: job.cause() });
            core.room.works[plane.index()].blocks_taken += u32::from(queued.opened);
            return Step::CopiedBack;
        }
        let Some(page) = core.ftl.next_valid(&core.geometry, victim, job.next_page) else {
            let Some(first) = waiting.pop() else { return Step::Over };
            job.rest = numbers(&core.geometry, first);
            around.on_left_over();
            return Step::CopiedBack;
        };
        let first = core.geometry.first_unit(core.geometry.page(victim, page));
        job.next_page = numbers(&core.geometry, first).end;
        job.prefetch(core, map, victim);
        if around.may_copy_back(core, plane, stream, first) {
            waiting.push(&core.geometry, first);
        } else {
            self.leave(core, plane, first);
        }
        Step::CopiedBack
    }

    /// Leaves the flash page that begins with `first` to be moved off-chip.
    fn leave<P: Probe>(&mut self, core: &mut Core<P>, plane: PlaneId, first: Ppn) {
        let job = &mut self.jobs[plane.index()];
        job.rest = numbers(&core.geometry, first);
        // From now on pages may go off-chip. The host cannot open the block kept for them.
        job.promises = true;
        self.promise(core, plane);
    }

    /// Whether the next page that the job of a plane reads is in the same flash page as the one before, which begins with
    /// `flash_page`.
    #[inline]
    pub(super) fn is_amid_flash_page<P: Probe>(
        &self,
        core: &Core<P>,
        plane: PlaneId,
        victim: BlockId,
        flash_page: Option<Ppn>,
    ) -> bool {
        let job = &self.jobs[plane.index()];
        core.geometry.units_per_page > 1 && flash_page.is_some() && job.copyback.is_none() && {
            let next = core.ftl.next_valid(&core.geometry, victim, job.next_page);
            next.map(|page| core.geometry.first_unit(core.geometry.page(victim, page))) == flash_page
        }
    }

    /// Whether the job of a plane has pages of its victim left to copy.
    pub(super) fn has_more<P: Probe>(&self, core: &Core<P>, plane: PlaneId, victim: BlockId) -> bool {
        let job = &self.jobs[plane.index()];
        let waits = self.waiting.get(plane.index()).is_some_and(|waiting| !waiting.is_empty());
        let next = core.ftl.next_valid(&core.geometry, victim, job.next_page);
        waits || !job.rest.is_empty() || next.is_some()
    }

    /// Ends the job of a block that stays, once the job has finished with all pages.
    #[inline(never)]
    pub(super) fn end_staying_job<P: Probe>(
        &mut self,
        core: &mut Core<P>,
        path: &mut DataPath<impl Map<P>>,
        around: &mut impl Around<P>,
        plane: PlaneId,
    ) {
        let job = &self.jobs[plane.index()];
        let Some(block) = core.victim(plane).filter(|_| job.copies == 0) else { return };
        if Self::shares_wordlines(core, plane) {
            return;
        }
        core.end_wordlines(plane);
        self.end_job(core, plane);
        path.map.end_job(core, plane);
        around.end_staying(core, plane, block);
        core.wake(Wake::JobOver(plane));
    }

    /// With `gc.foreground = "blocking"`, gives the die to an urgent GC job from now until its victim is erased. The write
    /// that has opened the block and so has made space short waits for the job, and so do host operations queued after
    /// it. If no write has, those queued from now on wait. A victim of translation pages is exempt: its copies share a
    /// queue with translation pages that are being written back, and the host waits for these.
    pub(super) fn begin_blocking<P: Probe>(&mut self, core: &mut Core<P>, plane: PlaneId) {
        let job = &mut self.jobs[plane.index()];
        if let Some(kept_from) = core.room.kept_from.get(plane.index())
            && job.cause == Some(Cause::Gc)
            && job.is_urgent
            && !job.is_of_map
        {
            job.blocks_from = Some(kept_from.unwrap_or(core.pool.next_order()));
            self.update_blocking(core, plane);
        }
    }

    /// Gives a blocking job its die while its copies or its erase are under way. While the job only waits until its
    /// victim, or the one before, has no pins, the die is free for all operations, because those that hold the pins may
    /// need it; and so it is until a victim of translation pages before has been erased.
    #[inline(always)]
    pub(super) fn update_blocking<P: Probe>(&mut self, core: &mut Core<P>, plane: PlaneId) {
        if let Some(from) = self.jobs[plane.index()].blocks_from {
            self.block_from(core, plane, from);
        }
    }

    /// [`Background::update_blocking`] of a job that blocks host operations queued at the submission number `from` or later.
    #[inline(never)]
    fn block_from<P: Probe>(&mut self, core: &mut Core<P>, plane: PlaneId, from: u64) {
        let waits = core.emptied(plane).is_some()
            && core.victim(plane).is_some_and(|victim| !self.has_more(core, plane, victim));
        let is_behind_map = core.emptied(plane).is_some_and(|emptied| emptied.is_of_map);
        let job = &mut self.jobs[plane.index()];
        let blocks = !is_behind_map && (job.copies > 0 && !(waits && job.reads == 0) || job.is_erasing);
        if blocks != std::mem::replace(&mut job.is_blocking, blocks) {
            for die in core.geometry.dies_of(plane) {
                if blocks {
                    core.device.begin_cleaning(die, from);
                } else {
                    core.device.end_cleaning(die);
                }
            }
        }
    }

    /// Ends the job of a plane.
    pub(crate) fn end_job<P: Probe>(&mut self, core: &mut Core<P>, plane: PlaneId) {
        let job = std::mem::take(&mut self.jobs[plane.index()]);
        if job.is_erasing && job.cause() == Cause::Gc {
            self.victim_stats.on_erased(job.times.spans(core.now));
        }
        if let Some(from) = job.blocks_from.filter(|_| job.gains) {
            // While space is short, the next cleaning comes before the writes that have waited for this one.
            core.keep_dies(plane, from);
        }
        if job.is_blocking {
            for die in core.geometry.dies_of(plane) {
                core.device.end_cleaning(die);
            }
        }
        core.room.works[plane.index()] = Work::default();
        core.ftl.planes[plane.index()].promised_blocks = 0;
        self.promise(core, plane);
        if job.is_urgent {
            core.demote(plane);
        }
        if let Some(pacing) = &mut self.pacing {
            pacing.end(core, plane);
        }
    }

    /// The job of a plane has begun or progressed, or the plane's room for the host has changed. Sets the job's share
    /// of the die.
    #[inline(always)]
    pub(super) fn pace<P: Probe>(&mut self, core: &mut Core<P>, plane: PlaneId) {
        let job = &self.jobs[plane.index()];
        if let Some(pacing) = self.pacing.as_mut().filter(|_| job.is_paced) {
            pacing.pace(core, plane, job.copies - job.reads);
        }
    }

    /// A page of a victim has been read. If the page is still valid, refreshes it in place or programs it elsewhere.
    pub(crate) fn on_background_read<P: Probe>(
        &mut self,
        core: &mut Core<P>,
        path: &mut DataPath<impl Map<P>>,
        around: &mut impl Around<P>,
        plane: PlaneId,
        read: &Transaction,
    ) {
        let _inside = core.inside.enter(Part::Background);
        let is_valid = core.ftl.map.get(read.lpn) == Some(read.ppn);
        if is_valid && !self.jobs[plane.index()].stays {
            return self.write_elsewhere(core, path, around, plane, read);
        }
        match if is_valid { around.refresh_page(core, plane, read) } else { Refreshed::Now } {
            Refreshed::Now => {
                self.jobs[plane.index()].reads -= 1;
                self.on_page_done(core, path, around, plane);
            }
            Refreshed::Later => {}
            Refreshed::Not => self.write_elsewhere(core, path, around, plane, read),
        }
    }

    /// A page that waited for its refresh stays where it is, because it has been refreshed there or is no longer valid.
    pub(crate) fn on_refreshed<P: Probe>(
        &mut self,
        core: &mut Core<P>,
        path: &mut DataPath<impl Map<P>>,
        around: &mut impl Around<P>,
        plane: PlaneId,
    ) {
        let _inside = core.inside.enter(Part::Background);
        self.jobs[plane.index()].reads -= 1;
        self.on_page_done(core, path, around, plane);
    }

    /// Programs a page of a victim, which has been read and is still valid, elsewhere.
    pub(crate) fn write_elsewhere<P: Probe>(
        &mut self,
        core: &mut Core<P>,
        path: &mut DataPath<impl Map<P>>,
        around: &mut impl Around<P>,
        plane: PlaneId,
        read: &Transaction,
    ) {
        self.jobs[plane.index()].reads -= 1;
        self.move_page(core, path, around, plane, read);
        if core.geometry.pages_per_program > 1 && self.jobs[plane.index()].reads == 0 {
            self.end_copies(core, path, plane);
            self.close_if_stalled(core, plane);
        }
    }

    /// No page of the job of a plane is being read. Once it has read the last page of its victim, no page of the job follows
    /// in the programming unit that gathers. GC goes on filling the unit from its next victim; other jobs close it.
    #[inline(never)]
    fn end_copies<P: Probe>(&mut self, core: &mut Core<P>, path: &mut DataPath<impl Map<P>>, plane: PlaneId) {
        if self.jobs[plane.index()].copies > 0
            && let Some(victim) = core.victim(plane)
            && !self.has_more(core, plane, victim)
            && core.gathering_of_jobs(plane).next().is_some()
        {
            self.leave_open(core, path, plane, victim);
        }
    }

    /// Programs a page, which has been read and is still valid, elsewhere in its plane.
    fn move_page<P: Probe>(
        &mut self,
        core: &mut Core<P>,
        path: &mut DataPath<impl Map<P>>,
        around: &mut impl Around<P>,
        plane: PlaneId,
        read: &Transaction,
    ) {
        let (lpn, cause) = (read.lpn, read.cause);
        let stream = core.ftl.copy_stream(lpn, cause == Cause::Wear);
        let stamp = core.stamp_of_copy(read);
        let class = core.class_of(stream, self.jobs[plane.index()].class);
        let (to, maps, owner) = (To::Stream(plane, stream), Maps::Now, Owner::Job(plane));
        let queued = core.program(Program { to, lpn, stamp, maps, owner, cause, class });
        let queued = queued.expect("a job starts only if its stream has room for all pages that it moves");
        core.room.works[plane.index()].blocks_taken += u32::from(queued.opened);
        let state = &mut core.ftl.planes[plane.index()];
        state.promised_blocks = state.promised_blocks.saturating_sub(u32::from(queued.opened));
        if stream == WriteStream::Combination {
            around.on_moved(core, lpn, queued.ppn);
        }
        path.map.on_moved(core, plane, lpn, !read.is_uncorrectable());
        self.promise(core, plane);
    }

    /// The copy of a page of a job's victim has ended.
    pub(crate) fn on_copied<P: Probe>(
        &mut self,
        core: &mut Core<P>,
        path: &mut DataPath<impl Map<P>>,
        around: &mut impl Around<P>,
        plane: PlaneId,
        done: &Transaction,
    ) {
        let _inside = core.inside.enter(Part::Background);
        if core.geometry.pages_per_program > 1 && Self::is_from_emptied(core, plane, done) {
            self.start_copies(core, path, around, plane);
        } else {
            self.on_page_done(core, path, around, plane);
        }
    }

    pub(super) fn on_page_done<P: Probe>(
        &mut self,
        core: &mut Core<P>,
        path: &mut DataPath<impl Map<P>>,
        around: &mut impl Around<P>,
        plane: PlaneId,
    ) {
        let job = &mut self.jobs[plane.index()];
        job.copies -= 1;
        job.copied += 1;
        let copied = job.copied;
        let were_last = job.copies == 0;
        if were_last && core.geometry.pages_per_program > 1 {
            self.erase_emptied(core, path, plane);
        }
        if (were_last || copied == 1)
            && let Some(pacing) = &mut self.pacing
        {
            pacing.on_copied(core, plane);
        }
        // The share changes slowly, so it is updated only once per program, or once per four pages.
        if copied.is_multiple_of(core.geometry.pages_per_program.max(4)) {
            self.pace(core, plane);
        }
        if self.jobs[plane.index()].promises {
            self.promise(core, plane);
        }
        self.copy_more(core, path, around, plane);
    }

    /// The last pin of the victim of a plane's job, or of the victim before, has been removed.
    pub(crate) fn on_emptied<P: Probe>(
        &mut self,
        core: &mut Core<P>,
        path: &mut DataPath<impl Map<P>>,
        plane: PlaneId,
    ) {
        let _inside = core.inside.enter(Part::Background);
        self.erase_emptied(core, path, plane);
        self.erase_when_empty(core, path, plane);
    }

    /// Queues the erase of the job's victim if the victim has neither valid pages nor pins and no copy is under way.
    pub(super) fn erase_when_empty<P: Probe>(
        &mut self,
        core: &mut Core<P>,
        path: &mut DataPath<impl Map<P>>,
        plane: PlaneId,
    ) {
        let Some(victim) = core.victim(plane) else { return };
        let job = &mut self.jobs[plane.index()];
        let block = core.array.block(victim);
        if job.is_erasing || job.stays || job.copies > 0 || block.valid > 0 || block.pins > 0 {
            if !job.is_erasing && !job.stays && job.copies == 0 && block.valid == 0 {
                job.times.end_copies(core.now);
                core.close_replacing(victim);
            }
            self.update_blocking(core, plane);
            return;
        }
        job.times.end_copies(core.now);
        if Self::shares_wordlines(core, plane) {
            return;
        }
        let job = &mut self.jobs[plane.index()];
        job.is_erasing = true;
        job.times.begin_erase(core.now);
        let (cause, class) = (job.cause(), job.class);
        self.update_blocking(core, plane);
        core.end_wordlines(plane);
        path.host.trims.make_durable();
        path.map.end_job(core, plane);
        core.erase(victim, Owner::Job(plane), cause, class);
    }
}
