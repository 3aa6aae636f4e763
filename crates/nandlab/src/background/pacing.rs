//! Pacing of GC (`gc.pacing = "proportional"`): the share of a die's programs that GC gets while host writes wait.
//!
//! Take a lane that is short of space. M is the number of units that GC still has to program until the host can open
//! one more superblock, F is the number of units that the host can still program until then. GC gets the share M / (M +
//! F). With this share the superblock is free when the host needs it: not later, which would delay writes, and not much
//! earlier, which would raise the WAF. The share is updated as GC programs units. This corrects errors: M and F fall
//! together, and if the share was too small, F falls faster and the next share is larger. The share is above 0 while GC
//! has units to program, so GC progresses before the host has used up its room.
//!
//! M and F are counted in programs that have not ended, because programs are what the share divides:
//!
//! - M includes the copies whose programs are queued. Without them the share would fall to zero before the last programs
//!   of a victim, and host writes would go before these until the host had no room left.
//! - F includes the host units that are allocated and wait for their programs. F leaves out:
//!   - Three times the lane's part of the write buffer (calibrated: with twice this part the longest time without a
//!     completion was 24 ms instead of 19 on a drive of four dies). With static allocation the writes in the buffer
//!     gather on the slowest lane, which still has to program them.
//!   - What host writes take while GC has nothing to program: from the last program of a victim to the first of the
//!     next one, and from the last program of the victim whose superblock the host needs until this victim has been
//!     erased. Both numbers are measured.
//!
//! A victim whose units have all been programmed elsewhere is erased after the host writes that replace its units, and
//! after the copies of the next victim that are queued before the erase. If its superblock is the one that the host
//! needs, the share divides the die between these two, so that they end together.
//!
//! A superblock of several dies has one job, whose share changes on all dies at once. So that the dies do not all
//! program host data at the same time, and nothing for the rest of a turn, their turns are spread evenly.
//!
//! Coupling the work of GC to host writes is the idea of the tokens of Chang, Kuo and Lo (Real-time garbage collection
//! for flash-memory storage systems of real-time embedded systems, ACM TECS 3(4), 2004). Another design was tried: a
//! share that depends only on the number of free units, similar to the rate limiter of pblk, which divides a write
//! buffer according to the number of free superblocks (Bjørling, González and Bonnet, LightNVM: the Linux open-channel
//! SSD subsystem, FAST 2017). That design needs two thresholds, which fit only one drive and one WAF.
//!
//! With `gc.pacing = "none"` the operation that has waited longer goes next; behind a write cache GC then gets almost
//! no programs until the host has no room left.
//!
//! Pacing changes neither the triggers of GC nor its victims. With pacing, refresh and reclaim go before GC while the
//! host has room for at least half a superblock. Pacing does not slow down a job that is urgent because of its data: a
//! reclaim, or a refresh that begins when half of the grace is over. Reads and erases of GC are not paced. A job of GC
//! that began while the erase of the victim before was pending goes on behind the host once this erase has ended the
//! shortage (`Background::go_on`), so GC stays no victim ahead.

use crate::base::geometry::LaneId;
use crate::base::state::{state, value};
use crate::core::Core;
use crate::probe::Probe;
use crate::sched::SHARES;

/// The smallest share that host writes keep: other lanes of the die may have room.
const HOST_SHARES_MIN: u16 = SHARES / 16;

/// The state of pacing of a lane that is short of space.
#[derive(Clone, Copy, Debug, Default)]
struct Task {
    /// Valid units of the lane's last victim at the start of its job.
    valid: u32,
    /// Units that GC has to program until the host can open one more superblock (M); 0: the lane has no paced job.
    units: u32,
    /// Units that the host can still program before it needs that superblock (F).
    room: u32,
    /// Units that the host has taken from the last program of a victim to the first of the next one, a moving mean.
    between: u32,
    /// The host's room when a program of GC was last under way.
    at_program: u32,
    /// Units that the host takes from the last program of a victim, whose superblock the host needs, to the end of its
    /// erase beside the next job: the largest number of late, at most a superblock.
    lag: u32,
    /// The host's room at that last program; `None`: the host needs no victim's superblock that waits for its erase.
    at_emptied: Option<u32>,
    /// Whether a job has ended with the lane still short of space, and the next one has had no program yet.
    is_between: bool,
    /// In the task of the first lane of a die: the number of jobs for which the die's share was set.
    jobs: u32,
}

/// The units that the host has taken while its room has gone from `before` to `after`: except for the host's writes,
/// the room changes by whole superblocks.
fn taken(before: u32, after: u32, units_per_superblock: u32) -> u32 {
    (before % units_per_superblock + units_per_superblock - after % units_per_superblock)
        % units_per_superblock
}

impl Task {
    /// GC has programs under way, or they have just ended, while the host has `room` units in superblocks of
    /// `units_per_superblock` units.
    fn on_programs(&mut self, room: u32, units_per_superblock: u32) {
        if std::mem::take(&mut self.is_between) {
            self.between = self.between.midpoint(taken(self.at_program, room, units_per_superblock));
        }
        self.at_program = room;
    }

    /// A victim has been erased while the host has `room` units in superblocks of `units_per_superblock` units.
    fn on_erased(&mut self, room: u32, units_per_superblock: u32) {
        let Some(before) = self.at_emptied.take() else { return };
        let taken = taken(before, room, units_per_superblock);
        // A host that has run out of room would have taken more, up to the superblock for which it waits. It had to wait
        // for this superblock, of which it has taken the rest.
        let ran_out = taken >= before % units_per_superblock;
        let more = (self.lag + self.lag / 2).min(units_per_superblock);
        let taken = if ran_out { taken.max(more) } else { taken };
        self.lag = taken.max(self.lag - self.lag / 8);
    }
}

/// The pacing of all lanes.
#[derive(Debug)]
pub(crate) struct Pacing {
    tasks: Box<[Task]>,
    /// Three times the lane's part of the units of the write buffer (`ftl.buffer`).
    buffer: u32,
}

impl Pacing {
    /// The pacing of `lanes` lanes and a write buffer of `buffer` units.
    pub(crate) fn new(lanes: u32, buffer: u32) -> Self {
        Self { tasks: vec![Task::default(); lanes as usize].into(), buffer: 3 * buffer / lanes }
    }

    /// Drops the state of all lanes at power loss.
    pub(crate) fn forget(&mut self) {
        self.tasks.fill(Task::default());
    }

    /// GC of a lane has taken a victim with `valid` valid units. The next victims are assumed to have equally many.
    pub(crate) fn on_victim(&mut self, lane: LaneId, valid: u32) {
        self.tasks[lane.index()].valid = valid;
    }

    /// The job of a lane has begun or progressed, or the lane's room for the host has changed. `programs` units of the
    /// job are being programmed, besides those of the victim before. Sets the share of GC on the lane's dies.
    #[inline(never)]
    pub(crate) fn pace<P: Probe>(&mut self, core: &mut Core<P>, lane: LaneId, programs: u32) {
        let task = &mut self.tasks[lane.index()];
        let before = (task.units, task.room);
        let emptied = core.emptied(lane).map(|emptied| (emptied.copies, emptied.is_erasing));
        let programs = programs + emptied.map_or(0, |(copies, _)| copies);
        let (host_room, host_queued) = (core.host_room(lane), core.host_units_queued(lane));
        if programs > 0 {
            task.on_programs(host_room, core.first_shape().units);
        }
        // Host writes that are queued may replace units of the victim, which then can be erased only after their
        // programs.
        let queued = core.load(lane) / core.geometry().lanes_per_die;
        let room = (host_room + host_queued).saturating_sub(queued + self.buffer);
        let is_empty = programs == 0 && core.victim(lane).is_some_and(|victim| core.valid_units(victim) == 0);
        if is_empty {
            // GC has no unit to program before the erase, which waits for the writes that replace units of the victim.
            // So host writes get nearly the whole die.
            (task.units, task.room) = (1, room.max(core.first_shape().units));
        } else {
            let (units, victims) = core.units_to_next_superblock(lane, task.valid);
            if emptied == Some((0, false)) && victims == 0 {
                // The erase gives the host its superblock. It comes after the queued programs of both sides.
                (task.units, task.room) = (programs.max(1), host_queued.max(1));
                task.at_emptied.get_or_insert(host_room);
            } else {
                task.units = (units + programs).max(1);
                task.room = room.saturating_sub(task.between.saturating_mul(victims) + task.lag);
            }
        }
        let is_changed = before != (task.units, task.room);
        let jobs = Self::jobs_beside(core, lane);
        if is_changed || jobs != *self.jobs_of(core, lane) {
            self.set_share(core, lane, jobs);
        }
    }

    /// The program of a job's first copy has ended, or those of all copies that it had begun.
    #[inline]
    pub(crate) fn on_copied<P: Probe>(&mut self, core: &Core<P>, lane: LaneId) {
        self.tasks[lane.index()].on_programs(core.host_room(lane), core.first_shape().units);
    }

    /// A victim has been erased beside the next job of its lane.
    pub(crate) fn on_erased<P: Probe>(&mut self, core: &Core<P>, lane: LaneId) {
        let units_per_superblock = core.first_shape().units;
        self.tasks[lane.index()].on_erased(core.host_room(lane), units_per_superblock);
    }

    /// The job of a lane has ended; a victim has been erased. The other lanes of the die determine the share.
    pub(crate) fn end<P: Probe>(&mut self, core: &mut Core<P>, lane: LaneId) {
        let task = &mut self.tasks[lane.index()];
        if task.units > 0 {
            task.units = 0;
            task.is_between = core.is_short(lane);
            self.set_share(core, lane, Self::jobs_beside(core, lane));
        }
    }

    /// The number of jobs of the lanes of the die of a lane.
    #[inline(always)]
    fn jobs_beside<P: Probe>(core: &Core<P>, lane: LaneId) -> u32 {
        core.geometry().lanes_beside(lane).map(|lane| u32::from(core.has_job(lane))).sum()
    }

    /// The number of jobs for which the share of the die of a lane was set.
    fn jobs_of<P: Probe>(&mut self, core: &Core<P>, lane: LaneId) -> &mut u32 {
        &mut self.tasks[core.geometry().first_lane_beside(lane).index()].jobs
    }

    /// Sets the share of GC on the die of a lane, on which `jobs` jobs are under way. The jobs of the die's lanes
    /// progress equally, so the largest share that a lane needs is the share of the die.
    #[inline(never)]
    fn set_share<P: Probe>(&mut self, core: &mut Core<P>, lane: LaneId, jobs: u32) {
        *self.jobs_of(core, lane) = jobs;
        let lanes = core.geometry().lanes_per_die;
        let of_die = core.geometry().lanes_beside(lane);
        let tasks = of_die.map(|lane| &self.tasks[lane.index()]).filter(|task| task.units > 0);
        let shares = tasks.map(|task| {
            let (gc, host) =
                (u64::from(jobs) * u64::from(task.units), u64::from(lanes) * u64::from(task.room));
            let share = (u64::from(SHARES) * gc).div_ceil(gc + host) as u16;
            share.min(SHARES - HOST_SHARES_MIN)
        });
        let share = shares.max();
        core.set_share(lane, share);
    }
}

value! { Task { valid, units, room, between, at_program, lag, at_emptied, is_between, jobs } }
state! { Pacing { tasks } fixed { buffer } }

#[cfg(test)]
mod tests {
    use super::*;

    /// The lag grew by half at each erase, until a run of some minutes ended with an overflow.
    #[test]
    fn the_lag_of_a_host_that_always_runs_out_of_room_is_at_most_a_superblock() {
        let mut task = Task::default();
        let mut lags = Vec::new();
        for _ in 0..100 {
            task.at_emptied = Some(64);
            task.on_erased(3 * 64 - 20, 64);
            lags.push(task.lag);
        }
        assert_eq!(lags[..5], [20, 30, 45, 64, 64]);
        assert!(lags[4..].iter().all(|&lag| lag == 64));
        // A host that takes little brings the lag down by an eighth at a time.
        task.at_emptied = Some(100);
        task.on_erased(90, 64);
        assert_eq!(task.lag, 56);
    }
}
