//! The emptied victim of a plane. A program writes a whole programming unit, and the last copies of a victim rarely fill
//! one. GC leaves the unit open for the copies from its next victim: the job ends, its victim is *emptied*, and it is
//! erased beside the plane's next job, when the unit has been programmed.
//!
//! A plane has at most one emptied victim, and until that is erased the next job opens no block. So the two take no more
//! free blocks than a single job, whose room they share.

use super::{Around, Background};
use crate::base::geometry::{BlockId, PlaneId, Ppn};
use crate::core::{Core, Emptied, Map, Part, Wake};
use crate::flash::BlockState;
use crate::host::DataPath;
use crate::probe::Probe;
use crate::sched::{Cause, Class, Transaction};

impl Background {
    /// The last copies of a job's victim gather. Ends a job of GC; its victim is erased when further copies have filled
    /// the programming unit, or it has been closed. Closes the unit at once if the job is no GC, if the plane's flash
    /// pages may be copied back, while power loss may tear pages of a wordline that the jobs would share, and if the
    /// victim before waits for the unit too.
    #[inline(never)]
    pub(super) fn leave_open<P: Probe>(
        &mut self,
        core: &mut Core<P>,
        path: &mut DataPath<impl Map<P>>,
        plane: PlaneId,
        victim: BlockId,
    ) {
        let job = &self.jobs[plane.index()];
        let goes_on = job.cause() == Cause::Gc && self.waiting.is_empty() && !core.ends_wordlines();
        let before = core.emptied(plane).map(|emptied| emptied.block);
        let first = core.gathering_of_jobs(plane).next().and_then(|page| page.replaces);
        let waits = before.is_some() && before == first.map(|old| core.geometry.block_of(old));
        if !goes_on || waits {
            return core.close_programs_of_job(plane);
        }
        if before.is_some() {
            // The job ends once the victim before has been erased.
            return self.update_blocking(core, plane);
        }
        let emptied = Emptied {
            block: victim,
            copies: job.copies,
            is_of_map: job.is_of_map,
            blocks_taken: core.room.works[plane.index()].blocks_taken,
            is_urgent: false,
            is_erasing: false,
            times: job.times,
        };
        self.end_job(core, plane);
        core.room.spaces[plane.index()].emptied = Some(emptied);
        path.map.end_job(core, plane);
        core.wake(Wake::JobOver(plane));
    }

    /// Whether the job of a plane has to wait until a copy ends, on a drive whose programs have several pages. `is_full`: as
    /// many copies as allowed are under way. The page before was read from the flash page that begins with `flash_page`.
    #[inline]
    pub(super) fn pauses<P: Probe>(
        &self,
        core: &mut Core<P>,
        plane: PlaneId,
        victim: BlockId,
        flash_page: Option<Ppn>,
        is_full: bool,
    ) -> bool {
        let waits = is_full && !self.is_amid_flash_page(core, plane, victim, flash_page)
            || self.waits_for_host(core, plane, victim);
        if core.emptied(plane).is_none() {
            return waits;
        }
        let pauses = waits || self.waits_for_emptied(core, plane, victim, flash_page);
        if pauses {
            self.close_if_stalled(core, plane);
        }
        pauses
    }

    /// Whether the job of a plane has to wait for the victim before: its copies count among those under way, and until it
    /// has been erased the job opens no block. A job of another class than GC waits for the erase, because the programs of
    /// a block have to keep their order; and every job does while jobs end their wordlines. The page before was read from
    /// the flash page that begins with `flash_page`.
    #[inline(never)]
    fn waits_for_emptied<P: Probe>(
        &self,
        core: &Core<P>,
        plane: PlaneId,
        victim: BlockId,
        flash_page: Option<Ppn>,
    ) -> bool {
        debug_assert!(self.waiting.is_empty(), "a drive that copies flash pages back leaves no unit open");
        let (Some(before), job) = (core.emptied(plane), &self.jobs[plane.index()]) else { return false };
        // Without a further page, the job waits for nothing.
        let Some(next) = core.ftl.next_valid(&core.geometry, victim, job.next_page) else { return false };
        let next = core.geometry.page(victim, next);
        job.class != Class::Background
            || core.ends_wordlines() && !before.is_erasing
            || job.copies + before.copies >= self.copies_max
                && flash_page != Some(core.geometry.first_unit(next))
            || {
                let stream = core.ftl.copy_stream(core.array.lpn(next), job.cause == Some(Cause::Wear));
                job.reads >= core.ftl.pages_open(&core.geometry, plane, stream)
            }
    }

    /// Whether the job of a plane has to wait for the host: it is ahead of the host and has a further page to copy, and the
    /// next block that it opens would bring the plane to its reserve.
    #[inline]
    fn waits_for_host<P: Probe>(&self, core: &Core<P>, plane: PlaneId, victim: BlockId) -> bool {
        let job = &self.jobs[plane.index()];
        job.is_ahead && core.would_lack_blocks(plane) && self.has_more(core, plane, victim) && {
            let stream = core.emptying_stream(victim, false);
            job.reads >= core.ftl.pages_open(&core.geometry, plane, stream)
        }
    }

    /// Whether the job of a plane goes on behind the host ([`Background::go_on`]). It may wait with nothing under way until
    /// the host has written more, or is idle.
    pub(crate) fn is_ahead(&self, plane: PlaneId) -> bool {
        self.jobs[plane.index()].is_ahead
    }

    /// The job of a plane is no longer ahead of the host: space is short, a write finds no room, or the drive is idle.
    #[cold]
    pub(super) fn catch_up<P: Probe>(
        &mut self,
        core: &mut Core<P>,
        path: &mut DataPath<impl Map<P>>,
        around: &mut impl Around<P>,
        plane: PlaneId,
    ) {
        self.jobs[plane.index()].is_ahead = false;
        self.start_copies(core, path, around, plane);
    }

    /// No job is ahead of the host any more. Returns whether one was.
    pub(crate) fn catch_up_everywhere<P: Probe>(
        &mut self,
        core: &mut Core<P>,
        path: &mut DataPath<impl Map<P>>,
        around: &mut impl Around<P>,
    ) -> bool {
        let mut has_caught_up = false;
        for plane in (0..core.geometry.planes).map(PlaneId) {
            if self.jobs[plane.index()].is_ahead {
                self.catch_up(core, path, around, plane);
                has_caught_up = true;
            }
        }
        has_caught_up
    }

    /// Closes the programming unit in which copies of the plane's job and of the victim before gather, if the job waits for
    /// this victim and nothing but the unit would bring the erase about.
    #[inline(never)]
    pub(super) fn close_if_stalled<P: Probe>(&self, core: &mut Core<P>, plane: PlaneId) {
        let (Some(before), Some(victim)) = (core.emptied(plane), core.victim(plane)) else { return };
        let job = &self.jobs[plane.index()];
        if job.reads == 0 && self.waits_for_emptied(core, plane, victim, None) {
            let under_way = job.copies + before.copies;
            if core.ends_wordlines() || core.gathering_of_jobs(plane).count() == under_way as usize {
                core.close_programs_of_job(plane);
            }
        }
    }

    /// Space is short, or the drive is idle: the erase of an emptied victim must not wait for a programming unit that no
    /// job fills. While space is short, the die serves its program and the erase with the priority of host writes.
    #[inline(always)]
    pub(super) fn hurry_emptied<P: Probe>(&mut self, core: &mut Core<P>, plane: PlaneId) {
        if core.emptied(plane).is_some() {
            self.hurry_erase(core, plane);
        }
    }

    #[inline(never)]
    fn hurry_erase<P: Probe>(&mut self, core: &mut Core<P>, plane: PlaneId) {
        let is_short = core.is_short(plane);
        if !is_short && !core.state.is_idle {
            return;
        }
        let Some(emptied) = &mut core.room.spaces[plane.index()].emptied else { return };
        if is_short && !std::mem::replace(&mut emptied.is_urgent, true) {
            core.promote(plane);
        }
        if !core.has_job(plane) {
            core.close_programs_of_job(plane);
        }
    }

    /// While jobs end their wordlines: whether the job of a plane has to wait until the copies from the victim before have
    /// been programmed. Closes the programming unit in which they gather.
    pub(super) fn shares_wordlines<P: Probe>(core: &mut Core<P>, plane: PlaneId) -> bool {
        let shares = core.ends_wordlines() && core.emptied(plane).is_some_and(|emptied| emptied.copies > 0);
        if shares {
            core.close_programs_of_job(plane);
        }
        shares
    }

    /// Queues the erase of the victim before that of a plane's job, if its copies have been programmed. While jobs end their
    /// wordlines, no copy of the job may be under way, because it may be in a wordline of copies from this victim.
    pub(super) fn erase_emptied<P: Probe>(
        &mut self,
        core: &mut Core<P>,
        path: &mut DataPath<impl Map<P>>,
        plane: PlaneId,
    ) {
        let ends_wordlines = core.ends_wordlines();
        let Some(emptied) = &mut core.room.spaces[plane.index()].emptied else { return };
        let block = core.array.block(emptied.block);
        debug_assert!(block.valid == 0, "all pages of an emptied block have been copied");
        if emptied.is_erasing || block.pins > 0 {
            return;
        }
        if ends_wordlines && self.jobs[plane.index()].copies > 0 {
            return core.close_programs_of_job(plane);
        }
        emptied.is_erasing = true;
        emptied.times.begin_erase(core.now);
        let block = emptied.block;
        let soon_free = u32::from(!core.retires(block));
        let space = &mut core.room.spaces[plane.index()];
        space.dead += 1;
        space.soon_free += soon_free;
        core.end_wordlines(plane);
        Self::erase_beside(core, path, block);
    }

    /// The victim before that of a plane's job has been erased: the job may continue. If space is no longer short, a job of
    /// GC continues behind the host's operations until it is short again. So GC stays no victim ahead of the host.
    pub(crate) fn go_on<P: Probe>(
        &mut self,
        core: &mut Core<P>,
        path: &mut DataPath<impl Map<P>>,
        around: &mut impl Around<P>,
        plane: PlaneId,
    ) {
        let _inside = core.inside.enter(Part::Background);
        if let Some(pacing) = &mut self.pacing {
            pacing.on_erased(core, plane);
        }
        let job = &mut self.jobs[plane.index()];
        let is_ahead = job.is_urgent && job.cause == Some(Cause::Gc) && job.blocks_from.is_none();
        if is_ahead && !core.state.is_idle && !core.is_short(plane) && !path.waits_in(plane) {
            (job.is_urgent, job.is_paced, job.is_ahead) = (false, false, true);
            core.demote(plane);
            if let Some(pacing) = &mut self.pacing {
                pacing.end(core, plane);
            }
        }
        self.start_copies(core, path, around, plane);
    }

    /// Whether the program that has ended is a copy from the victim before that of the plane's job. Counts it.
    pub(super) fn is_from_emptied<P: Probe>(core: &mut Core<P>, plane: PlaneId, done: &Transaction) -> bool {
        let Core { room, geometry, now, .. } = &mut *core;
        let Some(emptied) = &mut room.spaces[plane.index()].emptied else { return false };
        let is_from_emptied = done.replaces.is_some_and(|old| geometry.block_of(old) == emptied.block);
        if is_from_emptied {
            emptied.copies -= 1;
            if emptied.copies == 0 {
                emptied.times.end_copies(*now);
                let block = emptied.block;
                if core.array.block(block).pins > 0 {
                    core.close_replacing(block);
                }
            }
        }
        is_from_emptied
    }

    /// Checks the emptied victims.
    ///
    /// # Errors
    /// If an emptied victim is not empty, or its erase, for which its plane waits, waits for a programming unit that no
    /// job fills.
    pub(crate) fn audit<P: Probe>(&self, core: &Core<P>) -> Result<(), String> {
        for plane in (0..core.geometry.planes).map(PlaneId) {
            let Some(emptied) = core.emptied(plane) else { continue };
            let block = core.array.block(emptied.block);
            let is_empty = block.state == BlockState::Victim && block.valid == 0;
            if !is_empty || block.pins < emptied.copies || emptied.is_erasing && block.pins > 0 {
                return Err(format!("plane {} erases a victim that is not empty: {emptied:?}", plane.0));
            }
            let mut open = core.gathering_of_jobs(plane).filter_map(|page| page.replaces);
            let waits = open.any(|page| core.geometry.block_of(page) == emptied.block);
            if waits && !core.has_job(plane) && core.lacks_blocks(plane) {
                return Err(format!(
                    "plane {} needs the erase of a victim whose last copies gather without a job",
                    plane.0
                ));
            }
        }
        Ok(())
    }
}
