//! The operations of a job. A job has a few copies under way at a time. Each is the copy of one unit of the victim. It
//! begins with the copyback of the unit's page or with the read of the unit. It ends with the end of the copyback; or,
//! after the read, when the unit has been programmed elsewhere in the lane, has been refreshed where it is, or is found
//! to be no longer valid.
//!
//! The victim is erased when it has neither valid units nor pins, and no copy is under way. While power loss may tear a
//! program, the erase also waits for the copies of the victim before (`Background::shares_wordlines`).
//!
//! With `gc.foreground = "blocking"` the dies of a lane serve only background work, and the host operations that were
//! queued before the write that has made the lane short of space, while copies or the erase of a victim are under way.
//! This write waits, and so does everything behind it: the dies are kept from the queueing of its program until the
//! wake that begins the cleaning (`Core::keep_dies`). A cleaning that ends while its lane is still short keeps the dies
//! for the next one, unless its victim gained nothing (`Core::gains`, as the job found when it began). Dies without
//! planes of the lane are not blocked.

use super::{Background, Job, JobSchemes, PREFETCH_UNITS};
use crate::base::geometry::{LaneId, Lpn, SuperblockId, UnitId};
use crate::core::{
    Component, CopyBack, Core, Destination, Map, Maps, NextJob, Program, Read, Refreshed, VictimTimes, Wake,
};
use crate::ftl::StreamId;
use crate::host::DataPath;
use crate::probe::Probe;
use crate::sched::{Cause, Class, Owner, Start, Transaction};
use std::ops::Range;

/// A step of a job.
enum Step {
    /// This unit of the victim is moved off-chip.
    Read(u32),
    /// No read begins in this step: pages are copied back, or a page waits for others that are copied back with it, or
    /// the next steps move a page off-chip.
    NoRead,
    /// The copies of all units have begun.
    Over,
}

impl Job {
    /// The copy of a unit of the victim begins: prefetches into the CPU's cache the map entries that the copies of
    /// later units need, if that is due.
    #[inline(always)]
    fn prefetch<P: Probe>(&mut self, core: &Core<P>, map: &impl Map<P>, victim: SuperblockId) {
        if core.has_unit_state()
            && let Some(index) = core.next_valid(victim, self.next_unit)
        {
            // The jobs of many lanes take turns, so what `prefetch_next` has prefetched for this unit has left the
            // nearest cache.
            let unit = core.geometry().unit(victim, index);
            core.prefetch_state(unit);
            if !self.stays {
                map.prefetch_move(core.flash().lpn(unit));
            }
        }
        if self.next_unit > self.prefetch_at {
            self.prefetch_next(core, map, victim);
        }
    }

    /// Prefetches the map entries of the next [`PREFETCH_UNITS`] valid units. A profile shows that the CPU waits at a
    /// prefetch, presumably for the physical address of the entry. Prefetches that follow each other wait at the same
    /// time: on a drive of 1 TiB 13 instead of 33 ns per operation on a unit.
    #[inline(never)]
    fn prefetch_next<P: Probe>(&mut self, core: &Core<P>, map: &impl Map<P>, victim: SuperblockId) {
        let mut lpns = [Lpn(0); PREFETCH_UNITS];
        let mut count = 0;
        let mut from = self.prefetched.max(self.next_unit);
        self.prefetch_at = u32::MAX;
        if self.stays {
            // Most units of the superblock are not moved, so their entries are not needed.
            return;
        }
        while count < PREFETCH_UNITS
            && let Some(index) = core.next_valid(victim, from)
        {
            self.prefetch_at = self.prefetch_at.min(index);
            from = index + 1;
            let unit = core.geometry().unit(victim, index);
            // A line of the CPU's cache has the LPNs of 16 units. Those behind the superblock are not needed.
            core.flash().prefetch_lpn(UnitId(unit.0 + 16));
            lpns[count] = core.flash().lpn(unit);
            count += 1;
        }
        self.prefetched = from;
        let lpns = &lpns[..count];
        lpns.iter().for_each(|&lpn| core.ftl().map.prefetch(lpn));
        lpns.iter().for_each(|&lpn| map.prefetch_move(lpn));
    }
}

impl Background {
    /// Starts a job in a lane without a job.
    #[inline(never)]
    pub(super) fn start_job<P: Probe>(
        &mut self,
        core: &mut Core<P>,
        path: &mut DataPath<impl Map<P>>,
        schemes: &mut impl JobSchemes<P>,
        lane: LaneId,
        job: NextJob,
    ) {
        let NextJob { superblock: victim, cause, stays, is_urgent: is_hurried, corrects, start, class } = job;
        // While space is short every job is paced, so that a free superblock is ready when the host needs it. The
        // exception is a job that is urgent because of its data: pacing would slow it down.
        let is_background = class == Class::Background;
        let is_paced =
            is_background && self.pacing.is_some() && core.is_short(lane) && !(corrects && is_hurried);
        let is_urgent = is_background && is_hurried || is_paced;
        let gains = core.gains(victim);
        core.begin_work(lane, victim, stays);
        self.jobs[lane.index()] =
            Job { cause: Some(cause), class, is_urgent, is_paced, stays, start, gains, ..Job::default() };
        self.jobs[lane.index()].times = VictimTimes::new(core.now());
        let copyback =
            schemes.copyback_stream(core, &mut path.host, lane, victim, &NextJob { is_urgent, ..job });
        let stream = core.emptying_stream(victim, cause == Cause::Wear);
        if stays || class != Class::Background || !core.gathers(lane, stream) {
            core.close_programs_of_job(lane);
        }
        let job = &mut self.jobs[lane.index()];
        job.is_of_map = Some(stream) == core.streams().map();
        (job.copyback, job.promises) = (copyback, copyback.is_none() && stream == StreamId::GC);
        self.promise(core, lane);
        if is_urgent {
            core.promote(lane);
        }
        self.begin_blocking(core, lane);
        self.pace(core, lane);
        self.jobs[lane.index()].prefetch_next(core, &path.map, victim);
        self.start_copies(core, path, schemes, lane);
    }

    /// With `migration.first_block = "shared"`, reserves room in the open superblock that GC shares with the host for
    /// the units that the job of a lane still has to move off-chip. Lets the writes that wait for room continue if the
    /// job needs less room than before.
    fn promise<P: Probe>(&mut self, core: &mut Core<P>, lane: LaneId) {
        if core.ftl().shares_first_superblock {
            let units = match core.victim(lane) {
                Some(victim) if self.jobs[lane.index()].promises => core.valid_units(victim),
                _ => 0,
            };
            let before = core.promise_units(lane, units);
            core.wake(if units < before { Wake::Resume(lane) } else { Wake::Space(lane) });
        }
    }

    /// Starts copies of the job until as many units as `migration.in_flight` programming units on each die of the lane
    /// are under way. A page is read as a whole, and so is what one operation copies back, so a few more may be under
    /// way. In a job that copies pages back, the units of a page that is moved off-chip are read one by one. When no
    /// unit is left to copy, erases the victim or ends the job.
    #[inline(never)]
    pub(super) fn start_copies<P: Probe>(
        &mut self,
        core: &mut Core<P>,
        path: &mut DataPath<impl Map<P>>,
        schemes: &mut impl JobSchemes<P>,
        lane: LaneId,
    ) {
        self.copy_more(core, path, schemes, lane);
    }

    /// [`Background::start_copies`], for the most frequent caller.
    #[inline(always)]
    fn copy_more<P: Probe>(
        &mut self,
        core: &mut Core<P>,
        path: &mut DataPath<impl Map<P>>,
        schemes: &mut impl JobSchemes<P>,
        lane: LaneId,
    ) {
        let mut page = None;
        loop {
            let Some(victim) = core.victim(lane) else { return };
            let is_full = self.jobs[lane.index()].copies >= self.copies_max;
            // Where a program has one unit, no units share a page, and no victim is left open.
            let gathers = core.first_shape().units_per_program > 1;
            let pauses = if gathers { self.pauses(core, lane, victim, page, is_full) } else { is_full };
            if pauses {
                self.update_blocking(core, lane);
                return;
            }
            let index = match self.next_step(core, &path.map, schemes, lane, victim) {
                Step::Read(index) => index,
                Step::NoRead => continue,
                Step::Over => break,
            };
            let job = &mut self.jobs[lane.index()];
            job.prefetch(core, &path.map, victim);
            job.copies += 1;
            job.reads += 1;
            let (cause, start, class) = (job.cause(), job.start, job.class);
            let unit = core.geometry().unit(victim, index);
            page = Some(core.geometry().first_of_page(unit));
            let lpn = core.flash().lpn(unit);
            let owner = Owner::Job(lane);
            let unit_level = if start == Start::Policy { core.unit_level(&path.map, lpn) } else { 0 };
            core.read(Read { unit, lpn, owner, cause, class, start, unit_level });
        }
        if core.first_shape().units_per_program > 1 && self.jobs[lane.index()].reads == 0 {
            self.on_reads_ended(core, path, lane);
        }
        if self.jobs[lane.index()].stays {
            self.end_staying_job(core, path, schemes, lane);
        } else {
            self.erase_when_empty(core, path, lane);
        }
    }

    /// The next step of a job: the read of a unit, or a step of a job that copies pages back. [`Step::Over`] if the
    /// copies of all units have begun.
    #[inline(always)]
    fn next_step<P: Probe>(
        &mut self,
        core: &mut Core<P>,
        map: &impl Map<P>,
        schemes: &mut impl JobSchemes<P>,
        lane: LaneId,
        victim: SuperblockId,
    ) -> Step {
        let job = &mut self.jobs[lane.index()];
        if let Some(stream) = job.copyback {
            return self.next_step_of_copybacks(core, map, schemes, lane, victim, stream);
        }
        match core.next_valid(victim, job.next_unit) {
            Some(index) => {
                job.next_unit = index + 1;
                Step::Read(index)
            }
            None => Step::Over,
        }
    }

    /// As [`Background::next_step`], in a job that copies pages back where the limit allows it. A page waits until
    /// others fill the programming unit with it. Those that wait when no other follows are moved off-chip.
    fn next_step_of_copybacks<P: Probe>(
        &mut self,
        core: &mut Core<P>,
        map: &impl Map<P>,
        schemes: &mut impl JobSchemes<P>,
        lane: LaneId,
        victim: SuperblockId,
        stream: StreamId,
    ) -> Step {
        let (job, waiting) = (&mut self.jobs[lane.index()], &mut self.waiting[lane.index()]);
        if !job.rest.is_empty() {
            let index = core.next_valid(victim, job.rest.start);
            if let Some(index) = index.filter(|index| job.rest.contains(index)) {
                job.rest.start = index + 1;
                return Step::Read(index);
            }
            job.rest = Range::default();
        }
        if let Some(destination) = core.ftl().next_unit(lane, stream)
            && let Some(sources) = waiting.take(core, destination)
        {
            // Pages that have waited have grown older, and units of them may have become invalid.
            let waits = core.first_shape().copybacks_wait();
            let mut refused = sources.iter().copied().filter(|_| waits);
            if let Some(refused) = refused.find(|&first| !schemes.may_copy_back(core, lane, stream, first)) {
                waiting.give_back(core, refused);
                self.leave(core, lane, refused);
                return Step::NoRead;
            }
            // The invalid units of the pages are copied too, but do not count as copies of the job.
            job.copies += sources.iter().map(|&first| core.valid_in_page(first)).sum::<u32>();
            let queued = schemes.copy_back(core, CopyBack { lane, stream, sources, cause: job.cause() });
            core.on_job_queued(lane, queued);
            return Step::NoRead;
        }
        let Some(index) = core.next_valid(victim, job.next_unit) else {
            let Some(first) = waiting.pop() else { return Step::Over };
            job.rest = core.geometry().numbers_of_page(first);
            schemes.on_left_over();
            return Step::NoRead;
        };
        let first = core.geometry().first_of_page(core.geometry().unit(victim, index));
        job.next_unit = core.geometry().numbers_of_page(first).end;
        job.prefetch(core, map, victim);
        if schemes.may_copy_back(core, lane, stream, first) {
            waiting.push(core, first);
        } else {
            self.leave(core, lane, first);
        }
        Step::NoRead
    }

    /// Leaves the page that begins with `first` to be moved off-chip.
    fn leave<P: Probe>(&mut self, core: &mut Core<P>, lane: LaneId, first: UnitId) {
        let job = &mut self.jobs[lane.index()];
        job.rest = core.geometry().numbers_of_page(first);
        // From now on units may be moved off-chip. Before, the host may have used up the open superblock that it shares
        // with GC. For this case the lane has a free superblock that the host cannot open.
        job.promises = true;
        self.promise(core, lane);
    }

    /// Whether the next unit that the job of a lane reads is in the same page as the one before, which begins with
    /// `page`. `false` in a job that copies pages back.
    #[inline]
    pub(super) fn is_amid_page<P: Probe>(
        &self,
        core: &Core<P>,
        lane: LaneId,
        victim: SuperblockId,
        page: Option<UnitId>,
    ) -> bool {
        let job = &self.jobs[lane.index()];
        core.geometry().units_per_page > 1 && page.is_some() && job.copyback.is_none() && {
            let next = core.next_valid(victim, job.next_unit);
            next.map(|index| core.geometry().first_of_page(core.geometry().unit(victim, index))) == page
        }
    }

    /// Whether the job of a lane may have to begin further copies: the victim has further valid units, or a page of it
    /// waits for a copyback or is being moved off-chip. The units of such a page may have become invalid.
    pub(super) fn has_more<P: Probe>(&self, core: &Core<P>, lane: LaneId, victim: SuperblockId) -> bool {
        let job = &self.jobs[lane.index()];
        let waits = self.waiting.get(lane.index()).is_some_and(|waiting| !waiting.is_empty());
        let next = core.next_valid(victim, job.next_unit);
        waits || !job.rest.is_empty() || next.is_some()
    }

    /// Ends the job of a superblock that stays, if all its copies have ended and the copies of the victim before need
    /// not be waited for ([`Background::shares_wordlines`]).
    #[inline(never)]
    pub(super) fn end_staying_job<P: Probe>(
        &mut self,
        core: &mut Core<P>,
        path: &mut DataPath<impl Map<P>>,
        schemes: &mut impl JobSchemes<P>,
        lane: LaneId,
    ) {
        let job = &self.jobs[lane.index()];
        let Some(superblock) = core.victim(lane).filter(|_| job.copies == 0) else { return };
        if Self::shares_wordlines(core, lane) {
            return;
        }
        core.end_wordlines(lane);
        self.end_job(core, lane);
        path.map.end_job(core, lane);
        schemes.end_staying(core, lane, superblock);
        core.wake(Wake::JobOver(lane));
    }

    /// With `gc.foreground = "blocking"`, gives the dies of the lane to an urgent GC job from now until its victim is
    /// erased. The write that has opened a superblock and so has made space short waits for the job, and so do host
    /// operations queued after it. If no write has, those queued from now on wait. A victim of translation pages is
    /// exempt: its copies share a queue with translation pages that are being written back, and the host waits for
    /// these.
    pub(super) fn begin_blocking<P: Probe>(&mut self, core: &mut Core<P>, lane: LaneId) {
        let job = &mut self.jobs[lane.index()];
        if let Some(kept_from) = core.kept_from(lane)
            && job.cause == Some(Cause::Gc)
            && job.is_urgent
            && !job.is_of_map
        {
            job.blocks_from = Some(kept_from.unwrap_or(core.next_order()));
            self.update_blocking(core, lane);
        }
    }

    /// Gives a blocking job the dies of its lane while its copies or its erase are under way. While the job only waits
    /// until its victim, or the one before, has no pins, the dies serve all operations, because those that hold the
    /// pins may need them; and so they do until a victim of translation pages before has been erased.
    #[inline(always)]
    pub(super) fn update_blocking<P: Probe>(&mut self, core: &mut Core<P>, lane: LaneId) {
        if let Some(from) = self.jobs[lane.index()].blocks_from {
            self.block_from(core, lane, from);
        }
    }

    /// [`Background::update_blocking`] of a job that blocks host operations with the submission number `from` or a
    /// higher one.
    #[inline(never)]
    fn block_from<P: Probe>(&mut self, core: &mut Core<P>, lane: LaneId, from: u64) {
        let waits = core.emptied(lane).is_some()
            && core.victim(lane).is_some_and(|victim| !self.has_more(core, lane, victim));
        let is_behind_map = core.emptied(lane).is_some_and(|emptied| emptied.is_of_map);
        let job = &mut self.jobs[lane.index()];
        let blocks = !is_behind_map && (job.copies > 0 && !(waits && job.reads == 0) || job.is_erasing);
        if blocks != std::mem::replace(&mut job.is_blocking, blocks) {
            if blocks {
                core.block_dies(lane, from);
            } else {
                core.unblock_dies(lane);
            }
        }
    }

    /// Ends the job of a lane.
    pub(crate) fn end_job<P: Probe>(&mut self, core: &mut Core<P>, lane: LaneId) {
        let job = std::mem::take(&mut self.jobs[lane.index()]);
        if job.is_erasing && job.cause() == Cause::Gc {
            self.victim_stats.on_erased(job.times.spans(core.now()));
        }
        if let Some(from) = job.blocks_from.filter(|_| job.gains) {
            // While space is short, the next cleaning comes before the writes that have waited for this one.
            core.keep_dies(lane, from);
        }
        if job.is_blocking {
            core.unblock_dies(lane);
        }
        core.end_work(lane);
        self.promise(core, lane);
        if job.is_urgent {
            core.demote(lane);
        }
        if let Some(pacing) = &mut self.pacing {
            pacing.end(core, lane);
        }
    }

    /// The job of a lane has begun or progressed, or the lane's room for the host has changed. Sets the job's share of
    /// the dies of the lane.
    #[inline(always)]
    pub(super) fn pace<P: Probe>(&mut self, core: &mut Core<P>, lane: LaneId) {
        let job = &self.jobs[lane.index()];
        if let Some(pacing) = self.pacing.as_mut().filter(|_| job.is_paced) {
            pacing.pace(core, lane, job.copies - job.reads);
        }
    }

    /// A unit of a victim has been read. If the unit is still valid, refreshes it in place or programs it elsewhere.
    pub(crate) fn on_background_read<P: Probe>(
        &mut self,
        core: &mut Core<P>,
        path: &mut DataPath<impl Map<P>>,
        schemes: &mut impl JobSchemes<P>,
        lane: LaneId,
        read: &Transaction,
    ) {
        let _inside = core.enter(Component::Background);
        let is_valid = core.is_newest(read.lpn, read.unit);
        if is_valid && !self.jobs[lane.index()].stays {
            return self.write_elsewhere(core, path, schemes, lane, read);
        }
        // The job has also finished with a unit that is no longer valid.
        match if is_valid { schemes.refresh_unit(core, lane, read) } else { Refreshed::Now } {
            Refreshed::Now => {
                self.jobs[lane.index()].reads -= 1;
                self.on_unit_done(core, path, schemes, lane);
            }
            Refreshed::Later => {}
            Refreshed::Not => self.write_elsewhere(core, path, schemes, lane, read),
        }
    }

    /// A unit that waited for its refresh stays where it is, because it has been refreshed there or is no longer valid.
    pub(crate) fn on_refreshed<P: Probe>(
        &mut self,
        core: &mut Core<P>,
        path: &mut DataPath<impl Map<P>>,
        schemes: &mut impl JobSchemes<P>,
        lane: LaneId,
    ) {
        let _inside = core.enter(Component::Background);
        self.jobs[lane.index()].reads -= 1;
        self.on_unit_done(core, path, schemes, lane);
    }

    /// Programs a unit of a victim, which has been read and is still valid, elsewhere.
    pub(crate) fn write_elsewhere<P: Probe>(
        &mut self,
        core: &mut Core<P>,
        path: &mut DataPath<impl Map<P>>,
        schemes: &mut impl JobSchemes<P>,
        lane: LaneId,
        read: &Transaction,
    ) {
        self.jobs[lane.index()].reads -= 1;
        self.move_unit(core, path, schemes, lane, read);
        if core.first_shape().units_per_program > 1 && self.jobs[lane.index()].reads == 0 {
            self.on_reads_ended(core, path, lane);
            self.close_if_stalled(core, lane);
        }
    }

    /// No unit of the job of a lane is being read or waits for its refresh. If it was the last unit of the victim, no
    /// unit of the job follows in the programming unit that gathers. GC goes on filling the programming unit from its
    /// next victim; other jobs close it.
    #[inline(never)]
    fn on_reads_ended<P: Probe>(
        &mut self,
        core: &mut Core<P>,
        path: &mut DataPath<impl Map<P>>,
        lane: LaneId,
    ) {
        if self.jobs[lane.index()].copies > 0
            && let Some(victim) = core.victim(lane)
            && !self.has_more(core, lane, victim)
            && core.gathering_of_jobs(lane).next().is_some()
        {
            self.leave_open(core, path, lane, victim);
        }
    }

    /// Programs a unit, which has been read and is still valid, elsewhere in its lane.
    fn move_unit<P: Probe>(
        &mut self,
        core: &mut Core<P>,
        path: &mut DataPath<impl Map<P>>,
        schemes: &mut impl JobSchemes<P>,
        lane: LaneId,
        read: &Transaction,
    ) {
        let (lpn, cause) = (read.lpn, read.cause);
        let mark = || core.superblock(core.geometry().superblock_of(read.unit)).mark;
        let stream = core.ftl().copy_stream(lpn, mark, cause == Cause::Wear);
        let stamp = core.stamp_of_copy(read);
        let class = core.class_of(stream, self.jobs[lane.index()].class);
        let (to, maps, owner) = (Destination::Stream(lane, stream), Maps::Now, Owner::Job(lane));
        let queued = core.program(Program { to, lpn, stamp, maps, owner, cause, class });
        let queued = queued.expect("a job starts only if its stream has room for all units that it moves");
        core.on_job_queued(lane, queued);
        if core.streams().is_internal(stream) {
            schemes.on_moved(core, lpn, queued.unit);
        }
        path.map.on_moved(core, lane, lpn, !read.is_uncorrectable());
        self.promise(core, lane);
    }

    /// The copy of a unit of a job's victim has ended.
    pub(crate) fn on_copied<P: Probe>(
        &mut self,
        core: &mut Core<P>,
        path: &mut DataPath<impl Map<P>>,
        schemes: &mut impl JobSchemes<P>,
        lane: LaneId,
        done: &Transaction,
    ) {
        let _inside = core.enter(Component::Background);
        if core.first_shape().units_per_program > 1 && Self::is_from_emptied(core, lane, done) {
            self.start_copies(core, path, schemes, lane);
        } else {
            self.on_unit_done(core, path, schemes, lane);
        }
    }

    /// A copy of the job of a lane has ended, in whichever way: the unit has been copied back, programmed elsewhere or
    /// refreshed where it is, or is no longer valid. Begins further copies.
    pub(super) fn on_unit_done<P: Probe>(
        &mut self,
        core: &mut Core<P>,
        path: &mut DataPath<impl Map<P>>,
        schemes: &mut impl JobSchemes<P>,
        lane: LaneId,
    ) {
        let job = &mut self.jobs[lane.index()];
        job.copies -= 1;
        job.copied += 1;
        let copied = job.copied;
        let were_last = job.copies == 0;
        if were_last && core.first_shape().units_per_program > 1 {
            self.erase_emptied(core, path, lane);
        }
        if (were_last || copied == 1)
            && let Some(pacing) = &mut self.pacing
        {
            pacing.on_copied(core, lane);
        }
        // The share changes slowly, so it is updated only after every fourth unit, or where a program has more than
        // four units, after as many units as a program has.
        if copied.is_multiple_of(core.first_shape().units_per_program.max(4)) {
            self.pace(core, lane);
        }
        if self.jobs[lane.index()].promises {
            self.promise(core, lane);
        }
        self.copy_more(core, path, schemes, lane);
    }

    /// The last pin of the victim of a lane's job, or of the victim before, has been removed. Erases the one that can
    /// be erased now.
    pub(crate) fn on_emptied<P: Probe>(
        &mut self,
        core: &mut Core<P>,
        path: &mut DataPath<impl Map<P>>,
        lane: LaneId,
    ) {
        let _inside = core.enter(Component::Background);
        self.erase_emptied(core, path, lane);
        self.erase_when_empty(core, path, lane);
    }

    /// Queues the erase of the job's victim if the victim has neither valid units nor pins, no copy is under way, and
    /// the copies of the victim before need not be waited for ([`Background::shares_wordlines`]).
    pub(super) fn erase_when_empty<P: Probe>(
        &mut self,
        core: &mut Core<P>,
        path: &mut DataPath<impl Map<P>>,
        lane: LaneId,
    ) {
        let Some(victim) = core.victim(lane) else { return };
        let job = &mut self.jobs[lane.index()];
        let superblock = core.superblock(victim);
        if job.is_erasing || job.stays || job.copies > 0 || superblock.valid > 0 || superblock.pins > 0 {
            if !job.is_erasing && !job.stays && job.copies == 0 && superblock.valid == 0 {
                job.times.end_copies(core.now());
                core.close_replacing(victim);
            }
            self.update_blocking(core, lane);
            return;
        }
        job.times.end_copies(core.now());
        if Self::shares_wordlines(core, lane) {
            return;
        }
        let job = &mut self.jobs[lane.index()];
        job.is_erasing = true;
        job.times.begin_erase(core.now());
        let (cause, class) = (job.cause(), job.class);
        self.update_blocking(core, lane);
        core.end_wordlines(lane);
        path.host.trims.make_durable();
        path.map.end_job(core, lane);
        core.erase(victim, Owner::Job(lane), cause, class);
    }
}
