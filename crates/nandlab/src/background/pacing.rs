//! Pacing of GC (`gc.pacing = "proportional"`): which share of a die's programs GC has while host writes wait too.
//!
//! Measured are two numbers of a plane that is short of space: the pages that GC still has to move until the host can be
//! given one more block, and the pages that the host can be given until then. Set is the share of GC: as the one is to both.
//! If GC gets that share, the block is there when the host needs it, neither later, which would be a stall, nor much earlier,
//! which would cost WAF. The share is set anew as GC moves pages, so whatever was wrong with it is made up for by
//! the pages that are left: both numbers fall together, and a share that was too small raises the next one. A share of GC is
//! never 0 while it has pages to move, so there is always a next page before the host's room is used up.
//!
//! That GC pays as the host writes is the idea of the tokens of Chang, Kuo and Lo (Real-time garbage collection for
//! flash-memory storage systems of real-time embedded systems, ACM TECS 3(4), 2004). The other design tried is a share that
//! falls with the free pages alone, as the rate limiter of pblk divides a write buffer by free blocks (Bjørling, González and
//! Bonnet, LightNVM: the Linux open-channel SSD subsystem, FAST 2017): it needs two thresholds that fit one drive and one WAF.

use crate::base::geometry::PlaneId;
use crate::core::Core;
use crate::probe::Probe;
use crate::sched::SHARES;

/// What is left to host writes at least: other planes of the die may have room.
const HOST_SHARES_MIN: u16 = SHARES / 16;

/// GC of a plane that is short of space.
#[derive(Clone, Copy, Debug, Default)]
struct Task {
    /// Valid pages of the plane's last victim when GC took it.
    valid: u32,
    /// Pages to move until the host can be given one more block; 0: GC of the plane is not paced.
    pages: u32,
    /// Pages that the host can be given until then.
    room: u32,
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

    /// Power is gone, and all jobs with it.
    pub(crate) fn forget(&mut self) {
        self.tasks.fill(Task::default());
    }

    /// GC of a plane takes a victim with so many valid pages: the next ones will be like it.
    pub(crate) fn on_victim(&mut self, plane: PlaneId, valid: u32) {
        self.tasks[plane.index()].valid = valid;
    }

    /// The job of a plane begins or has got on, or the host's room in the plane has changed: sets the share of its die.
    pub(crate) fn pace<P: Probe>(&mut self, core: &mut Core<P>, plane: PlaneId) {
        let task = &mut self.tasks[plane.index()];
        // Host writes of the queue replace pages of the victim, which can be erased only when they are programmed.
        let queued = core.device.load(core.geometry.die_of(plane)) / core.geometry.planes_per_die;
        task.room = core.host_room(plane).saturating_sub(queued);
        if core.victim(plane).is_some_and(|victim| core.valid_pages(victim) == 0) {
            // GC has nothing to program before the erase: it is the turn of host writes.
            (task.pages, task.room) = (1, task.room.max(core.geometry.pages_per_block));
        } else {
            task.pages = core.pages_to_next_block(plane, task.valid).max(1);
        }
        self.share(core, plane);
    }

    /// The job of a plane is over.
    pub(crate) fn end<P: Probe>(&mut self, core: &mut Core<P>, plane: PlaneId) {
        let task = &mut self.tasks[plane.index()];
        if task.pages > 0 {
            task.pages = 0;
            self.share(core, plane);
        }
    }

    /// Shares a die: the jobs of its planes get on alike, so the plane that needs most says how much.
    fn share<P: Probe>(&self, core: &mut Core<P>, plane: PlaneId) {
        let die = core.geometry.die_of(plane);
        let planes = core.geometry.planes_per_die;
        let first = die.0 * planes;
        let jobs = (first..first + planes).filter(|&plane| core.has_job(PlaneId(plane))).count() as u64;
        let tasks = self.tasks[first as usize..][..planes as usize].iter().filter(|task| task.pages > 0);
        let shares = tasks.map(|task| {
            let (gc, host) = (jobs * u64::from(task.pages), u64::from(planes) * u64::from(task.room));
            let share = (u64::from(SHARES) * gc).div_ceil(gc + host) as u16;
            share.min(SHARES - HOST_SHARES_MIN)
        });
        core.device.set_share(die, shares.max());
    }
}
