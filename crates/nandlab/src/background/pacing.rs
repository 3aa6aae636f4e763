//! Pacing of GC (`gc.pacing = "proportional"`): the share of a die's programs that GC gets while host writes wait.
//!
//! Take a plane that is short of space. M is the number of pages that GC still has to move until the host can open one
//! more block, F is the number of pages that the host can still write until then. GC gets the share M / (M + F). With
//! this share the block is free when the host needs it: not later, which would delay writes, and not much earlier,
//! which would raise the WAF. The share is updated as GC moves pages. This corrects errors: M and F fall together, and
//! if the share was too small, F falls faster and the next share is larger. The share is above 0 while GC has pages to
//! move, so GC progresses before the host has used up its room.
//!
//! Coupling the work of GC to host writes is the idea of the tokens of Chang, Kuo and Lo (Real-time garbage collection
//! for flash-memory storage systems of real-time embedded systems, ACM TECS 3(4), 2004). Another design was tried: a
//! share that depends only on the number of free pages, similar to the rate limiter of pblk, which divides a write
//! buffer according to the number of free blocks (Bjørling, González and Bonnet, LightNVM: the Linux open-channel SSD
//! subsystem, FAST 2017). That design needs two thresholds, which fit only one drive and one WAF.

use crate::base::geometry::PlaneId;
use crate::core::Core;
use crate::probe::Probe;
use crate::sched::SHARES;

/// The smallest share that host writes keep: other planes of the die may have room.
const HOST_SHARES_MIN: u16 = SHARES / 16;

/// The state of pacing of a plane that is short of space.
#[derive(Clone, Copy, Debug, Default)]
struct Task {
    /// Valid pages of the plane's last victim at the start of its job.
    valid: u32,
    /// Pages that GC has to move until the host can open one more block (M); 0: the plane has no paced job.
    pages: u32,
    /// Pages that the host can still write before it needs that block (F).
    room: u32,
    /// In the task of the first plane of a die: the number of jobs for which the die's share was set.
    jobs: u32,
}

/// The pacing of all planes.
#[derive(Debug)]
pub(crate) struct Pacing {
    tasks: Box<[Task]>,
}

impl Pacing {
    pub(crate) fn new(planes: u32) -> Self {
        Self { tasks: vec![Task::default(); planes as usize].into() }
    }

    /// Drops the state of all planes at power loss.
    pub(crate) fn forget(&mut self) {
        self.tasks.fill(Task::default());
    }

    /// GC of a plane has taken a victim with `valid` valid pages. The next victims are assumed to have equally many.
    pub(crate) fn on_victim(&mut self, plane: PlaneId, valid: u32) {
        self.tasks[plane.index()].valid = valid;
    }

    /// The job of a plane has begun or progressed, or the plane's room for the host has changed. Sets the share of GC
    /// on the plane's die.
    pub(crate) fn pace<P: Probe>(&mut self, core: &mut Core<P>, plane: PlaneId) {
        let task = &mut self.tasks[plane.index()];
        let before = (task.pages, task.room);
        // Host writes that are queued have already used their part of the room. They may replace pages of the victim,
        // which then can be erased only after their programs.
        let queued = || core.load(plane) / core.geometry.planes_per_die;
        let room = core.host_room(plane);
        task.room = if room > 0 { room.saturating_sub(queued()) } else { 0 };
        if core.victim(plane).is_some_and(|victim| core.valid_pages(victim) == 0) {
            // GC has no page to program before the erase, so host writes get nearly the whole die.
            (task.pages, task.room) = (1, task.room.max(core.geometry.pages_per_block));
        } else {
            task.pages = core.pages_to_next_block(plane, task.valid).max(1);
        }
        let is_changed = before != (task.pages, task.room);
        let jobs = Self::jobs_beside(core, plane);
        if is_changed || jobs != *self.jobs_of(core, plane) {
            self.set_share(core, plane, jobs);
        }
    }

    /// The job of a plane has ended. The other planes of the die determine the share.
    pub(crate) fn end<P: Probe>(&mut self, core: &mut Core<P>, plane: PlaneId) {
        let task = &mut self.tasks[plane.index()];
        if task.pages > 0 {
            task.pages = 0;
            self.set_share(core, plane, Self::jobs_beside(core, plane));
        }
    }

    /// The number of jobs of the planes of the die of a plane.
    fn jobs_beside<P: Probe>(core: &Core<P>, plane: PlaneId) -> u32 {
        core.geometry.planes_beside(plane).map(|plane| u32::from(core.has_job(plane))).sum()
    }

    /// The number of jobs for which the share of the die of a plane was set.
    fn jobs_of<P: Probe>(&mut self, core: &Core<P>, plane: PlaneId) -> &mut u32 {
        let first = core.geometry.planes_beside(plane).next().expect("a die has planes");
        &mut self.tasks[first.index()].jobs
    }

    /// Sets the share of GC on the die of a plane, on which `jobs` jobs are under way. The jobs of the die's planes progress
    /// equally, so the largest share that a plane needs is the share of the die.
    #[inline(never)]
    fn set_share<P: Probe>(&mut self, core: &mut Core<P>, plane: PlaneId, jobs: u32) {
        *self.jobs_of(core, plane) = jobs;
        let planes = core.geometry.planes_per_die;
        let of_die = core.geometry.planes_beside(plane);
        let tasks = of_die.map(|plane| &self.tasks[plane.index()]).filter(|task| task.pages > 0);
        let shares = tasks.map(|task| {
            let (gc, host) =
                (u64::from(jobs) * u64::from(task.pages), u64::from(planes) * u64::from(task.room));
            let share = (u64::from(SHARES) * gc).div_ceil(gc + host) as u16;
            share.min(SHARES - HOST_SHARES_MIN)
        });
        let share = shares.max();
        for die in core.geometry.dies_of(plane) {
            core.device.set_share(die, share);
        }
    }
}
