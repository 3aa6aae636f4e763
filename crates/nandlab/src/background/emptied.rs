//! The emptied victim of a lane. A program writes a whole programming unit, and the last copies of a victim rarely fill
//! one. GC leaves the programming unit open for the copies from its next victim: the job ends, its victim is *emptied*,
//! and it is erased beside the lane's next job, when the programming unit has been programmed.
//!
//! A lane has at most one emptied victim, and until that is erased the next job opens no superblock. So the two take no
//! more free superblocks than a single job, whose room they share.
//!
//! The erase of the emptied victim counts as a free superblock when the room of the next job is checked, so the needs
//! of a lane do not grow. For the triggers of GC an emptied victim does not count as free before its erase is queued,
//! so GC goes on.

use super::{Background, JobSchemes};
use crate::base::geometry::{LaneId, SuperblockId, UnitId};
use crate::core::{Component, Core, Emptied, Map, Wake};
use crate::flash::SuperblockState;
use crate::host::DataPath;
use crate::probe::Probe;
use crate::sched::{Cause, Class, Transaction};

impl Background {
    /// The last copies of a job's victim gather. Ends a job of GC or of folding; its victim is erased when further copies
    /// have filled the programming unit, or it has been closed. Closes the programming unit at once if it is another job,
    /// if the lane's pages may be copied back, while power loss may tear pages of a wordline that the jobs would share,
    /// and if the victim before waits for the programming unit too.
    #[inline(never)]
    pub(super) fn leave_open<P: Probe>(
        &mut self,
        core: &mut Core<P>,
        path: &mut DataPath<impl Map<P>>,
        lane: LaneId,
        victim: SuperblockId,
    ) {
        let job = &self.jobs[lane.index()];
        let is_of_gc = job.cause() == Cause::Gc;
        let goes_on =
            (is_of_gc || job.cause() == Cause::Fold) && self.waiting.is_empty() && !core.ends_wordlines();
        let before = core.emptied(lane).map(|emptied| emptied.superblock);
        let first = core.gathering_of_jobs(lane).next().and_then(|copy| copy.replaces);
        let waits = before.is_some() && before == first.map(|old| core.geometry().superblock_of(old));
        if !goes_on || waits {
            return core.close_programs_of_job(lane);
        }
        if before.is_some() {
            // The job ends once the victim before has been erased.
            return self.update_blocking(core, lane);
        }
        let emptied = Emptied {
            superblock: victim,
            copies: job.copies,
            is_of_map: job.is_of_map,
            is_of_gc,
            superblocks_taken: core.superblocks_taken(lane),
            is_urgent: false,
            is_erasing: false,
            times: job.times,
        };
        self.end_job(core, lane);
        core.space_mut(lane).emptied = Some(emptied);
        path.map.end_job(core, lane);
        core.wake(Wake::JobOver(lane));
    }

    /// Whether the job of a lane has to wait until a copy ends, on a drive whose programs have several units.
    /// `is_full`: as many copies as allowed are under way. The unit before was read from the page that begins with
    /// `page`.
    #[inline]
    pub(super) fn pauses<P: Probe>(
        &self,
        core: &mut Core<P>,
        lane: LaneId,
        victim: SuperblockId,
        page: Option<UnitId>,
        is_full: bool,
    ) -> bool {
        let waits = is_full && !self.is_amid_page(core, lane, victim, page)
            || self.waits_for_host(core, lane, victim);
        if core.emptied(lane).is_none() {
            return waits;
        }
        let pauses = waits || self.waits_for_emptied(core, lane, victim, page);
        if pauses {
            self.close_if_stalled(core, lane);
        }
        pauses
    }

    /// Whether the job of a lane has to wait for the victim before: its copies count among those under way, and until
    /// it has been erased the job opens no superblock. A job of another class than GC waits for the erase, because the
    /// programs of a superblock have to keep their order; and every job does while jobs end their wordlines. The unit
    /// before was read from the page that begins with `page`.
    #[inline(never)]
    fn waits_for_emptied<P: Probe>(
        &self,
        core: &Core<P>,
        lane: LaneId,
        victim: SuperblockId,
        page: Option<UnitId>,
    ) -> bool {
        debug_assert!(
            self.waiting.is_empty(),
            "a drive that copies pages back leaves no programming unit open"
        );
        let (Some(before), job) = (core.emptied(lane), &self.jobs[lane.index()]) else { return false };
        // Without a further unit, the job waits for nothing.
        let Some(next) = core.next_valid(victim, job.next_unit) else { return false };
        let next = core.geometry().unit(victim, next);
        job.class != Class::Background
            || core.ends_wordlines() && !before.is_erasing
            || job.copies + before.copies >= self.copies_max
                && page != Some(core.geometry().first_of_page(next))
            || {
                let mark = || core.superblock(victim).mark;
                let is_wear = job.cause == Some(Cause::Wear);
                let stream = core.ftl().copy_stream(core.flash().lpn(next), mark, is_wear);
                job.reads >= core.ftl().units_open(lane, stream)
            }
    }

    /// Whether the job of a lane has to wait for the host: it is ahead of the host and has a further unit to copy, and
    /// the next superblock that it opens would bring the lane to its reserve.
    #[inline]
    fn waits_for_host<P: Probe>(&self, core: &Core<P>, lane: LaneId, victim: SuperblockId) -> bool {
        let job = &self.jobs[lane.index()];
        job.is_ahead && core.would_lack_superblocks(lane) && self.has_more(core, lane, victim) && {
            let stream = core.emptying_stream(victim, false);
            job.reads >= core.ftl().units_open(lane, stream)
        }
    }

    /// The job of a lane is no longer ahead of the host: space is short, a write finds no room, or the drive is idle.
    #[cold]
    pub(super) fn catch_up<P: Probe>(
        &mut self,
        core: &mut Core<P>,
        path: &mut DataPath<impl Map<P>>,
        schemes: &mut impl JobSchemes<P>,
        lane: LaneId,
    ) {
        self.jobs[lane.index()].is_ahead = false;
        self.start_copies(core, path, schemes, lane);
    }

    /// No job is ahead of the host any more. Returns whether one was.
    pub(crate) fn catch_up_everywhere<P: Probe>(
        &mut self,
        core: &mut Core<P>,
        path: &mut DataPath<impl Map<P>>,
        schemes: &mut impl JobSchemes<P>,
    ) -> bool {
        let mut has_caught_up = false;
        for lane in (0..core.geometry().lanes).map(LaneId) {
            if self.jobs[lane.index()].is_ahead {
                self.catch_up(core, path, schemes, lane);
                has_caught_up = true;
            }
        }
        has_caught_up
    }

    /// Closes the programming unit in which copies of the lane's job and of the victim before gather, if the job waits
    /// for this victim and nothing but this programming unit would bring the erase about.
    #[inline(never)]
    pub(super) fn close_if_stalled<P: Probe>(&self, core: &mut Core<P>, lane: LaneId) {
        let (Some(before), Some(victim)) = (core.emptied(lane), core.victim(lane)) else { return };
        let job = &self.jobs[lane.index()];
        if job.reads == 0 && self.waits_for_emptied(core, lane, victim, None) {
            let under_way = job.copies + before.copies;
            if core.ends_wordlines() || core.gathering_of_jobs(lane).count() == under_way as usize {
                core.close_programs_of_job(lane);
            }
        }
    }

    /// Space is short, or the drive is idle: the erase of an emptied victim must not wait for a programming unit that no
    /// job fills. While space is short, the die serves its program and the erase with the priority of host writes.
    #[inline(always)]
    pub(super) fn hurry_emptied<P: Probe>(&mut self, core: &mut Core<P>, lane: LaneId) {
        if core.emptied(lane).is_some() {
            self.hurry_erase(core, lane);
        }
    }

    #[inline(never)]
    fn hurry_erase<P: Probe>(&mut self, core: &mut Core<P>, lane: LaneId) {
        let is_short = core.is_short(lane);
        if !is_short && !core.state().is_idle {
            return;
        }
        let Some(emptied) = &mut core.space_mut(lane).emptied else { return };
        if is_short && !std::mem::replace(&mut emptied.is_urgent, true) {
            core.promote(lane);
        }
        if !core.has_job(lane) {
            core.close_programs_of_job(lane);
        }
    }

    /// While jobs end their wordlines: whether the job of a lane has to wait until the copies from the victim before
    /// have been programmed. Closes the programming unit in which they gather.
    pub(super) fn shares_wordlines<P: Probe>(core: &mut Core<P>, lane: LaneId) -> bool {
        let shares = core.ends_wordlines() && core.emptied(lane).is_some_and(|emptied| emptied.copies > 0);
        if shares {
            core.close_programs_of_job(lane);
        }
        shares
    }

    /// Queues the erase of the victim before that of a lane's job, if its copies have been programmed. While jobs end
    /// their wordlines, no copy of the job may be under way, because it may be in a wordline of copies from this
    /// victim.
    pub(super) fn erase_emptied<P: Probe>(
        &mut self,
        core: &mut Core<P>,
        path: &mut DataPath<impl Map<P>>,
        lane: LaneId,
    ) {
        let ends_wordlines = core.ends_wordlines();
        let Some(&Emptied { superblock, is_erasing, .. }) = core.emptied(lane) else { return };
        let state = core.superblock(superblock);
        debug_assert!(state.valid == 0, "all units of an emptied superblock have been copied");
        if is_erasing || state.pins > 0 {
            return;
        }
        if ends_wordlines && self.jobs[lane.index()].copies > 0 {
            return core.close_programs_of_job(lane);
        }
        core.begin_erase_of_emptied(lane);
        core.end_wordlines(lane);
        Self::erase_beside(core, path, superblock);
    }

    /// The victim before that of a lane's job has been erased: the job may continue. If space is no longer short, a job
    /// of GC continues behind the host's operations until it is short again. So GC stays no victim ahead of the host.
    pub(crate) fn go_on<P: Probe>(
        &mut self,
        core: &mut Core<P>,
        path: &mut DataPath<impl Map<P>>,
        schemes: &mut impl JobSchemes<P>,
        lane: LaneId,
    ) {
        let _inside = core.enter(Component::Background);
        if let Some(pacing) = &mut self.pacing {
            pacing.on_erased(core, lane);
        }
        let job = &mut self.jobs[lane.index()];
        let is_ahead = job.is_urgent && job.cause == Some(Cause::Gc) && job.blocks_from.is_none();
        if is_ahead && !core.state().is_idle && !core.is_short(lane) && !path.waits_in(lane) {
            (job.is_urgent, job.is_paced, job.is_ahead) = (false, false, true);
            core.demote(lane);
            if let Some(pacing) = &mut self.pacing {
                pacing.end(core, lane);
            }
        }
        self.start_copies(core, path, schemes, lane);
    }

    /// Whether the program that has ended is a copy from the victim before that of the lane's job. Counts it.
    pub(super) fn is_from_emptied<P: Probe>(core: &mut Core<P>, lane: LaneId, done: &Transaction) -> bool {
        let (now, from) = (core.now(), done.replaces.map(|old| core.geometry().superblock_of(old)));
        let Some(emptied) = &mut core.space_mut(lane).emptied else { return false };
        let is_from_emptied = from == Some(emptied.superblock);
        if is_from_emptied {
            emptied.copies -= 1;
            if emptied.copies == 0 {
                emptied.times.end_copies(now);
                let superblock = emptied.superblock;
                if core.superblock(superblock).pins > 0 {
                    core.close_replacing(superblock);
                }
            }
        }
        is_from_emptied
    }

    /// Checks the emptied victims.
    ///
    /// # Errors
    /// If an emptied victim is not empty, or its erase, for which its lane waits, waits for a programming unit that no
    /// job fills.
    pub(super) fn audit_emptied<P: Probe>(&self, core: &Core<P>) -> Result<(), String> {
        for lane in (0..core.geometry().lanes).map(LaneId) {
            let Some(emptied) = core.emptied(lane) else { continue };
            let superblock = core.superblock(emptied.superblock);
            let is_empty = superblock.state == SuperblockState::Victim && superblock.valid == 0;
            if !is_empty || superblock.pins < emptied.copies || emptied.is_erasing && superblock.pins > 0 {
                return Err(format!("lane {} erases a victim that is not empty: {emptied:?}", lane.0));
            }
            let mut open = core.gathering_of_jobs(lane).filter_map(|copy| copy.replaces);
            let waits = open.any(|old| core.geometry().superblock_of(old) == emptied.superblock);
            if waits && !core.has_job(lane) && core.lacks_superblocks(lane) {
                return Err(format!(
                    "lane {} needs the erase of a victim whose last copies gather without a job",
                    lane.0
                ));
            }
        }
        Ok(())
    }
}
