//! The room that a lane has for the host, for jobs, and for translation and combination pages; the superblocks that can
//! be emptied.
//!
//! Of the free superblocks of a lane the host's stream leaves the *reserve* (`Ftl::reserve_superblocks`) to internal
//! streams and the emergency flush. The part of the reserve for the flush is the *flush reserve*
//! (`Ftl::flush_reserve_superblocks`). The *kept superblocks* (`Ftl::kept_superblocks`) are the flush reserve and the
//! superblock of GC: without a job a lane must have these free. `Ftl::flush_superblocks` is how many of the superblocks
//! that are free now a flush may take.
//!
//! A *dead* superblock is full, without valid units and pins. It is erased beside the lane's job: when its dies have
//! nothing else to do or, while the lane is at its reserve, with the priority of a host write. Unless it retires, it
//! counts as free for the triggers of GC and for the switch of partial refresh, but not for the flush reserve, the
//! budget or a write. The same holds for an *emptied* superblock ([`Emptied`]) whose erase is queued. Superblocks that
//! are dead after preconditioning wait for GC.
//!
//! The triggers of GC (`gc.foreground_free`, `gc.background_free`) are shares. The share of a lane is the number of
//! units that the host can still allocate ([`Core::host_room`]: in free superblocks beyond the reserve, and in the rest
//! of the host's open superblock), divided by the number of units that can be free for the host
//! (`Ftl::host_spare_units`): the units that are not valid, less the reserve and less one superblock for each internal
//! stream.

use super::placement::EventKind;
use super::{Core, Queued, VictimTimes, Wake};
use crate::base::geometry::{LaneId, SuperblockId, UnitId};
use crate::base::state::{state, value};
use crate::flash::SuperblockState;
use crate::ftl::StreamId;
use crate::probe::Probe;

/// The superblock and the free superblocks that a lane's background job has taken.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Work {
    /// The superblock that the job empties, or the superblock that stays and whose units the job refreshes; `None`
    /// without a job.
    pub(crate) victim: Option<SuperblockId>,
    /// Number of free superblocks that the job has taken: at most one, or two when the job copies units back and has to
    /// move some units off-chip.
    pub(crate) superblocks_taken: u32,
}

/// An emptied superblock: a victim of GC whose valid units have all been read, and whose last copies gather in a
/// programming unit that the next job of the lane goes on filling. The emptied superblock is erased beside that job.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Emptied {
    pub(crate) superblock: SuperblockId,
    /// Number of units copied from it whose program has not ended.
    pub(crate) copies: u32,
    /// Whether it had translation pages.
    pub(crate) is_of_map: bool,
    /// Whether GC has emptied it.
    pub(crate) is_of_gc: bool,
    /// Number of free superblocks that the job that emptied it has taken.
    pub(crate) superblocks_taken: u32,
    /// Whether its dies serve the program of its last copies and its erase with the priority of host writes, because
    /// space is short.
    pub(crate) is_urgent: bool,
    /// Whether its erase is queued or under way.
    pub(crate) is_erasing: bool,
    /// When its job took it, and how far it has come.
    pub(crate) times: VictimTimes,
}

/// Emptied and dead superblocks of a lane, and the state of GC's choice of victims.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Space {
    /// The emptied superblock: the victim before that of the lane's job, until it has been erased.
    pub(crate) emptied: Option<Emptied>,
    /// Number of superblocks, dead or emptied, whose erase beside the lane's job is queued or under way.
    pub(crate) dead: u32,
    /// Number of those counted in `dead` that become free with their erase; the others retire.
    pub(crate) soon_free: u32,
    /// Number of those counted in `dead` whose erase has been promoted: the die serves it with the priority of host
    /// writes.
    pub(crate) urgent_erases: u32,
    /// Number of consecutive picks of GC's policy that had no invalid unit.
    pub(crate) fully_valid_victims: u32,
    /// As `fully_valid_victims`, of the victims that were emptied without simulated time.
    pub(crate) fully_valid_victims_now: u32,
    /// Whether GC selects the superblock with the fewest valid units, whatever its policy picks. This begins when the
    /// lane has only its kept superblocks and a translation page waits for room, or when more erases in succession than
    /// the drive has superblocks have given no write a unit. It ends when the host's stream may open a superblock.
    pub(crate) takes_fewest_valid: bool,
}

/// The space of all lanes.
#[derive(Debug)]
pub(crate) struct Room {
    /// By lane, the superblock that its background job works on and the free superblocks that the job has taken.
    pub(crate) works: Box<[Work]>,
    /// By lane, its emptied and dead superblocks and the state of GC's choice of victims.
    pub(crate) spaces: Box<[Space]>,
    /// Foreground GC starts in a lane when less than this share of the units that can be free for the host is free.
    pub(crate) foreground_free: f64,
    /// With `gc.foreground = "blocking"`, by lane the submission number from which on its dies serve no host operation,
    /// while it is not yet decided whether a cleaning of the lane follows; empty with `"interleaved"`.
    pub(crate) kept_from: Box<[Option<u64>]>,
    /// P/E cycles at which a superblock retires.
    pub(crate) endurance: u32,
    /// Whether an emergency flush has written units to lanes other than those of their LPNs.
    pub(crate) has_displaced: bool,
}

impl Room {
    /// The space of a drive without jobs. Foreground GC starts in a lane when less than `foreground_free` of the units
    /// that can be free for the host is free. With `blocks_dies` its dies then serve GC alone. A superblock retires at
    /// `endurance` P/E cycles.
    pub(crate) fn new(lanes: u32, foreground_free: f64, blocks_dies: bool, endurance: u32) -> Self {
        Self {
            works: vec![Work::default(); lanes as usize].into(),
            spaces: vec![Space::default(); lanes as usize].into(),
            foreground_free,
            kept_from: vec![None; if blocks_dies { lanes as usize } else { 0 }].into(),
            endurance,
            has_displaced: false,
        }
    }

    /// Whether a foreground cleaning has its dies to itself (`gc.foreground = "blocking"`).
    #[inline(always)]
    pub(crate) fn blocks_dies(&self) -> bool {
        !self.kept_from.is_empty()
    }
}

/// The largest number of victims, the present one included, that [`Core::units_to_next_superblock`] counts.
const VICTIMS_AHEAD: u32 = 16;

impl<P: Probe> Core<P> {
    /// The superblock that the background job of a lane empties, or the superblock that stays and whose units the job
    /// refreshes; `None` without a job.
    #[inline]
    pub(crate) fn victim(&self, lane: LaneId) -> Option<SuperblockId> {
        self.room.works[lane.index()].victim
    }

    /// Whether a lane has a background job.
    #[inline]
    pub(crate) fn has_job(&self, lane: LaneId) -> bool {
        self.victim(lane).is_some()
    }

    /// A background job of a lane begins: it empties `victim`, or refreshes its units where they are (`stays`).
    pub(crate) fn begin_work(&mut self, lane: LaneId, victim: SuperblockId, stays: bool) {
        if !stays {
            self.on_moving(victim);
            self.begin_emptying(victim);
        }
        self.room.works[lane.index()] = Work { victim: Some(victim), superblocks_taken: 0 };
        // A job whose superblock stays takes free superblocks and returns none by an erase, so these superblocks are
        // promised to the job.
        self.ftl.lanes[lane.index()].promised_superblocks =
            if stays { self.superblocks_to_empty(lane, victim, false) } else { 0 };
    }

    /// The job of a lane has queued a program or a copyback. If this has opened a superblock, the job has taken one, of
    /// those promised to it if there are some.
    #[inline]
    pub(crate) fn on_job_queued(&mut self, lane: LaneId, queued: Queued) {
        let opened = u32::from(queued.opened);
        self.room.works[lane.index()].superblocks_taken += opened;
        let promised = &mut self.ftl.lanes[lane.index()].promised_superblocks;
        *promised = promised.saturating_sub(opened);
    }

    /// The job of a lane ends.
    pub(crate) fn end_work(&mut self, lane: LaneId) {
        self.room.works[lane.index()] = Work::default();
        self.ftl.lanes[lane.index()].promised_superblocks = 0;
    }

    /// In the open superblock that GC shares with the host, keeps room for `units` units that the job of a lane has to
    /// move. Returns how many it has kept before.
    pub(crate) fn promise_units(&mut self, lane: LaneId, units: u32) -> u32 {
        std::mem::replace(&mut self.ftl.lanes[lane.index()].promised_units, units)
    }

    /// Makes a full superblock a victim: its valid units are going to be moved.
    pub(crate) fn begin_emptying(&mut self, superblock: SuperblockId) {
        self.ftl.begin_emptying(&mut self.array, superblock);
    }

    /// All valid units of a superblock have been programmed again in place. No read level is kept for it.
    pub(crate) fn end_in_place(&mut self, superblock: SuperblockId) {
        self.levels.set_superblock(superblock, 0);
        self.array.superblock_mut(superblock).on_corrected();
    }

    /// A partial refresh has read all units of a superblock. The superblock counts as partially refreshed until it is
    /// erased.
    pub(crate) fn mark_partially_refreshed(&mut self, superblock: SuperblockId) {
        self.array.rare_mut(superblock).is_refreshed_partially = true;
    }

    /// Number of valid units of a superblock.
    #[inline]
    pub(crate) fn valid_units(&self, superblock: SuperblockId) -> u32 {
        self.array.superblock(superblock).valid
    }

    /// The emptied superblock of a lane: the victim before that of its job, until it has been erased.
    #[inline]
    pub(crate) fn emptied(&self, lane: LaneId) -> Option<&Emptied> {
        self.room.spaces[lane.index()].emptied.as_ref()
    }

    /// The emptied and dead superblocks of a lane, which the background jobs keep.
    #[inline]
    pub(crate) fn space_mut(&mut self, lane: LaneId) -> &mut Space {
        &mut self.room.spaces[lane.index()]
    }

    /// Whether host units are in lanes other than those of their LPNs.
    #[inline(always)]
    pub(crate) fn has_displaced(&self) -> bool {
        self.room.has_displaced
    }

    /// From now on host units may be in lanes other than those of their LPNs, as a flush writes them.
    pub(crate) fn displace(&mut self) {
        self.room.has_displaced |= self.has_home_lanes();
    }

    /// Whether a foreground cleaning has its dies to itself.
    #[inline(always)]
    pub(crate) fn blocks_dies(&self) -> bool {
        self.room.blocks_dies()
    }

    /// With `gc.foreground = "blocking"`, the submission number from which on the dies of a lane serve no host operation,
    /// while it is not yet decided whether a cleaning of the lane follows. The outer `None`: with `"interleaved"`.
    #[inline]
    pub(crate) fn kept_from(&self, lane: LaneId) -> Option<Option<u64>> {
        self.room.kept_from.get(lane.index()).copied()
    }

    /// The dies of a lane serve no host operation with the submission number `from` or a higher one.
    pub(crate) fn block_dies(&mut self, lane: LaneId, from: u64) {
        for die in self.geometry.dies_of(lane) {
            self.device.begin_cleaning(die, from);
        }
    }

    /// Undoes one [`Core::block_dies`].
    pub(crate) fn unblock_dies(&mut self, lane: LaneId) {
        for die in self.geometry.dies_of(lane) {
            self.device.end_cleaning(die);
        }
    }

    /// Sets the share of background operations on each die of a lane.
    pub(crate) fn set_share(&mut self, lane: LaneId, share: Option<u16>) {
        let dies = self.geometry.dies_per_lane;
        for (number, die) in self.geometry.dies_of(lane).enumerate() {
            self.device.set_share(die, share, (number as u32, dies));
        }
    }

    /// The erase of the emptied superblock of a lane is going to be queued.
    pub(crate) fn begin_erase_of_emptied(&mut self, lane: LaneId) {
        let emptied = self.room.spaces[lane.index()].emptied.as_mut();
        let emptied = emptied.expect("the lane has an emptied superblock");
        emptied.is_erasing = true;
        emptied.times.begin_erase(self.now);
        let superblock = emptied.superblock;
        self.count_dead(superblock);
    }

    /// Counts a superblock without valid units, whose erase beside the jobs is going to be queued.
    fn count_dead(&mut self, superblock: SuperblockId) {
        let soon_free = u32::from(!self.retires(superblock));
        let space = &mut self.room.spaces[self.geometry.lane_of(superblock).index()];
        space.dead += 1;
        space.soon_free += soon_free;
    }

    /// Number of free superblocks that the jobs of a lane have taken and not given back by an erase: the present job
    /// and the job of the emptied superblock.
    pub(crate) fn superblocks_taken(&self, lane: LaneId) -> u32 {
        let before = self.emptied(lane).map_or(0, |emptied| emptied.superblocks_taken);
        self.room.works[lane.index()].superblocks_taken + before
    }

    /// Number of free superblocks of a lane that are not promised to its job, and of dead and emptied superblocks that
    /// become free with a queued erase.
    fn free_soon(&self, lane: LaneId) -> u32 {
        self.ftl.lanes[lane.index()].free_superblocks() + self.room.spaces[lane.index()].soon_free
    }

    /// Number of dead and emptied superblocks of the drive that become free with a queued erase.
    pub(crate) fn soon_free(&self) -> u32 {
        self.room.spaces.iter().map(|space| space.soon_free).sum()
    }

    /// Whether the lane remains at its reserve even when the queued erases of dead and emptied superblocks have ended.
    pub(crate) fn lacks_superblocks(&self, lane: LaneId) -> bool {
        self.free_soon(lane) <= self.ftl.reserve_of(lane)
    }

    /// Whether foreground GC has to make room in `lane`.
    pub(crate) fn is_short(&self, lane: LaneId) -> bool {
        self.lacks_superblocks(lane) || self.is_below(lane, self.room.foreground_free)
    }

    /// [`Core::lacks_superblocks`] with one free superblock fewer.
    pub(crate) fn would_lack_superblocks(&self, lane: LaneId) -> bool {
        self.free_soon(lane) <= self.ftl.reserve_of(lane) + 1
    }

    /// With `gc.foreground = "blocking"`, keeps the dies of a lane that is short of space from all host operations with
    /// the submission number `order` or a higher one, until [`Core::release_dies`]. By then the cleaning of the lane
    /// has begun, or none is possible. Cleanings that follow each other keep the dies from the operations that the
    /// first one has kept waiting. No cleaning follows a superblock that an emergency flush opens.
    #[inline]
    pub(crate) fn keep_dies(&mut self, lane: LaneId, order: u64) {
        let may_keep = self.room.blocks_dies() && !self.state.is_off;
        if may_keep && self.room.kept_from[lane.index()].is_none() && self.is_short(lane) {
            self.room.kept_from[lane.index()] = Some(order);
            for die in self.geometry.dies_of(lane) {
                self.device.begin_cleaning(die, order);
            }
        }
    }

    /// Undoes [`Core::keep_dies`].
    #[inline(always)]
    pub(crate) fn release_dies(&mut self, lane: LaneId) {
        if self.room.blocks_dies() {
            self.release_kept_dies(lane);
        }
    }

    #[inline(never)]
    fn release_kept_dies(&mut self, lane: LaneId) {
        let kept_from = self.room.kept_from.get_mut(lane.index());
        if kept_from.is_some_and(|order| order.take().is_some()) {
            for die in self.geometry.dies_of(lane) {
                self.device.end_cleaning(die);
            }
        }
    }

    /// Whether the lane is at its reserve, superblocks that become free soon not counted: the host's stream may open no
    /// further superblock of `lane` now.
    pub(crate) fn is_at_reserve(&self, lane: LaneId) -> bool {
        self.ftl.lanes[lane.index()].free_superblocks() <= self.ftl.reserve_of(lane)
    }

    /// Number of units of a lane that are free for the host, those of superblocks that become free soon included.
    #[inline]
    pub(crate) fn host_room(&self, lane: LaneId) -> u32 {
        let superblocks = self.free_soon(lane).saturating_sub(self.ftl.reserve_of(lane));
        superblocks * self.first_shape().units + self.ftl.host_units_open(lane)
    }

    /// Number of units of the host's open superblocks that are allocated and whose programs have not ended.
    pub(crate) fn host_units_queued(&self, lane: LaneId) -> u32 {
        self.ftl.streams.sum_of_hosts(|stream| {
            self.ftl.latest_superblock(lane, stream).map_or(0, |(superblock, allocated)| {
                allocated.saturating_sub(self.array.superblock(superblock).programmed)
            })
        })
    }

    /// Number of units that GC has to move in a lane until the host's stream can open one more superblock than now, and
    /// number of victims, the present one included, that GC has to erase for it, if every victim after the present one
    /// has `valid` valid units. Counts at most [`VICTIMS_AHEAD`] victims.
    pub(crate) fn units_to_next_superblock(&self, lane: LaneId, valid: u32) -> (u32, u32) {
        let units_per_superblock = self.first_shape().units;
        // The victims may have slightly more valid units than expected. So GC is assumed to open a new superblock
        // already if fewer than `slack` units would be left in its open superblocks.
        let slack = units_per_superblock / 16;
        let mut free = self.free_soon(lane);
        let enough = free.max(self.ftl.reserve_of(lane)) + 1;
        // The emptied superblock becomes free without further copies. If its erase is queued, it is counted already.
        free += self
            .emptied(lane)
            .map_or(0, |emptied| u32::from(!emptied.is_erasing && !self.retires(emptied.superblock)));
        if free >= enough {
            return (0, 0);
        }
        let mut room = self.ftl.job_units_open(lane);
        let mut left = self.victim(lane).map_or(valid, |victim| self.valid_units(victim));
        let (mut moved, mut victims) = (0, 0);
        while victims < VICTIMS_AHEAD {
            victims += 1;
            moved += left;
            if left + slack > room {
                free = free.saturating_sub(1);
                room += units_per_superblock;
            }
            room = room.saturating_sub(left);
            free += 1;
            if free >= enough {
                break;
            }
            left = valid;
        }
        (moved, victims)
    }

    /// Whether less than `share` of the units that can become free for the host in `lane` are free
    /// ([`Core::host_room`]).
    #[inline]
    pub(crate) fn is_below(&self, lane: LaneId, share: f64) -> bool {
        let free = self.host_room(lane);
        f64::from(free) < share * f64::from(self.ftl.host_spare_units(lane))
    }

    /// The invalid units that a full superblock has on average, at least, when foreground GC starts
    /// ([`Ftl::garbage_per_superblock`](crate::ftl::Ftl::garbage_per_superblock)).
    pub(crate) fn garbage_per_superblock(&self) -> u32 {
        self.ftl.garbage_per_superblock(self.room.foreground_free)
    }

    /// Whether a superblock retires with its next erase.
    pub(crate) fn retires(&self, superblock: SuperblockId) -> bool {
        let cycles = self.array.cycles_of_erase(superblock);
        self.array.superblock(superblock).pe_cycles + cycles >= self.room.endurance
    }

    /// Whether a job may empty a superblock: there is room for its valid units, and GC keeps the free superblocks that
    /// it needs. GC keeps them if the job takes no more free superblocks than its erase returns, or leaves
    /// [`Ftl::kept_superblocks`](crate::ftl::Ftl::kept_superblocks) free superblocks. The emptied superblock counts as
    /// free unless it retires, because the job opens a superblock only after the erase of the emptied one.
    pub(crate) fn may_empty(&self, lane: LaneId, superblock: SuperblockId, is_wear: bool) -> bool {
        let given = u32::from(!self.retires(superblock));
        let emptied_is_given = self.emptied(lane).is_some_and(|emptied| !self.retires(emptied.superblock));
        self.leaves_enough(lane, superblock, is_wear, given, u32::from(emptied_is_given))
    }

    /// Whether a job whose superblock stays may write all valid units of the superblock to other superblocks. The rule
    /// is that of [`Core::may_empty`], except that the job erases nothing and so returns no superblock.
    pub(crate) fn may_rewrite(&self, lane: LaneId, superblock: SuperblockId) -> bool {
        self.leaves_enough(lane, superblock, false, 0, 0)
    }

    /// Number of free superblocks that a job takes at most to write all valid units of a superblock to other
    /// superblocks.
    pub(super) fn superblocks_to_empty(&self, lane: LaneId, superblock: SuperblockId, is_wear: bool) -> u32 {
        let stream = self.emptying_stream(superblock, is_wear);
        self.ftl.superblocks_for(lane, stream, self.valid_units(superblock))
    }

    /// The rule of [`Core::may_empty`]. The erase of the job gives `given` free superblocks, and that of the emptied
    /// superblock `emptied_gives`.
    fn leaves_enough(
        &self,
        lane: LaneId,
        superblock: SuperblockId,
        is_wear: bool,
        given: u32,
        emptied_gives: u32,
    ) -> bool {
        let taken = self.superblocks_to_empty(lane, superblock, is_wear);
        let free = self.ftl.lanes[lane.index()].free.len() + emptied_gives;
        taken <= free && (taken <= given || free + given >= taken + self.ftl.kept_superblocks())
    }

    /// Whether emptying a superblock gains units. The superblock then has the units of the first shape. The job may have
    /// to leave units unused: the rest of its last programming unit and, while power loss may tear a program, all pages
    /// but one of its last wordlines, of which every block of the superblock has one.
    pub(crate) fn gains(&self, superblock: SuperblockId) -> bool {
        let to = self.first_shape();
        let is_guarded = self.state.is_guarded && to.dependent_pages() > 1;
        let unused = if is_guarded { to.units_per_wordlines() - self.geometry.units_per_page } else { 0 };
        // The job may leave its last programming unit with only one unit of data.
        let padding = to.units_per_program - 1;
        self.valid_units(superblock) + unused + padding < to.units
    }

    /// Number of valid units of the page that begins with `first`.
    pub(crate) fn valid_in_page(&self, first: UnitId) -> u32 {
        let units = self.geometry.units_of_page(first);
        units.filter(|&unit| self.ftl.is_valid(unit)).count() as u32
    }

    /// The superblock with the fewest valid units of a lane, among the full superblocks that a job may empty with a
    /// gain and that do not retire with their next erase.
    #[cold]
    pub(crate) fn fewest_valid(&self, lane: LaneId) -> Option<SuperblockId> {
        let superblocks = self.geometry.superblock_ids_of(lane);
        let full = superblocks
            .filter(|&superblock| self.array.superblock(superblock).state == SuperblockState::Full);
        full.filter(|&superblock| {
            self.gains(superblock) && !self.retires(superblock) && self.may_empty(lane, superblock, false)
        })
        .min_by_key(|&superblock| (self.array.superblock(superblock).valid, superblock.0))
    }

    /// The superblock of a lane that is folded for room; `None` if there is none, the lane has no room for its valid
    /// units, or it would retire.
    pub(crate) fn to_fold(&self, lane: LaneId) -> Option<SuperblockId> {
        let superblock = self.ftl.to_fold(&self.array, lane)?;
        let may_fold = self.may_empty(lane, superblock, false) && !self.retires(superblock);
        may_fold.then_some(superblock)
    }

    /// The superblock in SLC mode that was closed first in a lane, if there is room to fold it.
    pub(crate) fn oldest_cached(&self, lane: LaneId) -> Option<SuperblockId> {
        let superblock = self.ftl.oldest_cached(&self.array, lane)?;
        self.may_empty(lane, superblock, false).then_some(superblock)
    }

    /// No superblock is left to the host in SLC mode in a lane. Until it is opened again ([`Core::open_slc`]) the host
    /// writes to it without SLC mode, unless its writes wait for folds.
    pub(crate) fn close_slc(&mut self, lane: LaneId) {
        if self.ftl.slc().is_some_and(|slc| !slc.waits) {
            self.ftl.close_slc(lane, true);
        }
    }

    /// The host may open superblocks of a lane in SLC mode again.
    pub(crate) fn open_slc(&mut self, lane: LaneId) {
        self.ftl.close_slc(lane, false);
    }

    /// Whether a write waits until a fold has made room in a lane in SLC mode: the lane has superblocks in this mode, and a
    /// job is under way, or a fold can begin.
    pub(crate) fn waits_for_fold(&self, lane: LaneId) -> bool {
        self.ftl.slc().is_some_and(|slc| slc.waits)
            && self.lane(lane).slc_superblocks > 0
            && (self.has_job(lane) || self.oldest_cached(lane).is_some())
    }

    /// Whether a lane can gain no more units: no superblock is being emptied, and none can be emptied with a gain.
    fn is_spent(&self, lane: LaneId) -> bool {
        let Space { emptied, dead, .. } = self.room.spaces[lane.index()];
        let is_at_work = self.has_job(lane) || emptied.is_some() || dead > 0;
        !is_at_work && self.fewest_valid(lane).is_none() && self.to_fold(lane).is_none()
    }

    /// Whether a superblock of a lane has retired, or will retire with its next erase.
    fn has_worn_superblocks(&self, lane: LaneId) -> bool {
        self.geometry.superblock_ids_of(lane).any(|superblock| {
            self.array.superblock(superblock).state == SuperblockState::Retired || self.retires(superblock)
        })
    }

    /// Whether a write that waits for room in a lane will get none because of wear: neither this lane nor any other
    /// lane to which the unit may go has a superblock that can be emptied with a gain.
    pub(crate) fn is_worn_out(&self, lane: LaneId) -> bool {
        let of_one = |lane: LaneId| self.is_spent(lane) && self.has_worn_superblocks(lane);
        if self.ftl.allocator.is_static() && of_one(lane) {
            return true;
        }
        let mut lanes = self.placements().lanes_of(self.placements().group_of(lane));
        (!self.ftl.allocator.is_static() || self.room.has_displaced)
            && lanes.clone().all(|lane| self.is_spent(lane))
            && lanes.any(|lane| self.has_worn_superblocks(lane))
    }

    /// Marks the worn-out lanes, whose room dynamic allocation ignores.
    pub(crate) fn look_at_wear(&mut self) {
        for lane in (0..self.geometry.lanes).map(LaneId) {
            self.ftl.lanes[lane.index()].is_worn_out = self.is_spent(lane) && self.has_worn_superblocks(lane);
        }
    }

    /// Queues the erase of a superblock if the superblock is dead: full, without valid units and pins. While the
    /// capacitor is measured, such erases wait, as GC does, because they would delay the programs of the detection.
    /// With `gc.foreground = "blocking"` a dead superblock waits for GC as well, for which the host waits.
    #[inline]
    pub(crate) fn look_if_dead(&mut self, superblock: SuperblockId) {
        let state = self.array.superblock(superblock);
        let is_dead = state.valid == 0 && state.pins == 0 && state.state.is_closed();
        if is_dead && !self.state.is_draining && !self.room.blocks_dies() {
            self.found_dead(superblock);
        }
    }

    /// Queues the erase of all dead superblocks, after a measurement of the capacitor.
    #[cold]
    pub(crate) fn look_for_dead(&mut self) {
        for superblock in (0..self.geometry.superblocks).map(SuperblockId) {
            self.look_if_dead(superblock);
        }
    }

    #[cold]
    #[inline(never)]
    fn found_dead(&mut self, superblock: SuperblockId) {
        self.begin_emptying(superblock);
        self.count_dead(superblock);
        self.wake(Wake::Dead(superblock));
    }

    /// Number of units that an internal `stream` of `lane` can still allocate.
    pub(crate) fn stream_room(&self, lane: LaneId, stream: StreamId) -> u32 {
        self.ftl.stream_room(lane, stream)
    }

    /// The stream to which a job writes the units of a superblock when it moves them off-chip.
    pub(crate) fn emptying_stream(&self, superblock: SuperblockId, is_wear: bool) -> StreamId {
        self.ftl.emptying_stream(&self.array, superblock, is_wear)
    }

    /// Number of units that the job of `lane` still has to move to `stream`, the stream of translation pages or of
    /// combination pages.
    fn units_to_move(&self, lane: LaneId, stream: StreamId) -> u32 {
        let Some(victim) = self.victim(lane) else { return 0 };
        if self.emptying_stream(victim, false) == stream { self.valid_units(victim) } else { 0 }
    }

    /// Whether `stream` of `lane` has room for a unit and for all that the job of `lane` still has to move to `stream`.
    /// The unit takes a whole programming unit, and may close one that the job has begun.
    fn has_room_beside_job(&self, lane: LaneId, stream: StreamId) -> bool {
        let program = self.first_shape().units_per_program;
        let room = self.stream_room(lane, stream);
        let has_room_for = |moved: u32| room >= program + moved.next_multiple_of(program);
        // What a job moves, which takes longer to find out, is a superblock at most.
        has_room_for(self.first_shape().units) || has_room_for(self.units_to_move(lane, stream))
    }

    /// Whether a translation page may be written to `lane`. The write must leave the units that a job needs to move
    /// translation pages, and must not take a free superblock that the job under way or an emergency flush may need.
    pub(crate) fn has_mapping_room(&self, lane: LaneId) -> bool {
        let stream = self.ftl.streams.map();
        self.ftl.has_mapping_room(lane) && stream.is_some_and(|stream| self.has_room_beside_job(lane, stream))
    }

    /// Whether a combination page may be written to its `stream` of `lane`. The write must leave the units that a job
    /// needs to move combination pages, the free superblocks that others may need, and enough garbage for GC.
    pub(crate) fn has_combination_room(&self, lane: LaneId, stream: StreamId) -> bool {
        self.ftl.has_combination_room(lane, stream) && self.has_room_beside_job(lane, stream)
    }

    /// The lane for a write whose own lane is `lane`: `lane` itself, or, if `lane` is overfull, another lane that is
    /// not overfull. An emergency flush writes wherever there is room, so a lane may have so many units of other lanes
    /// that GC gains nothing; the other lanes then have fewer valid units.
    #[cold]
    pub(crate) fn lane_in_place_of(&self, lane: LaneId, has_room: impl Fn(&Self, LaneId) -> bool) -> LaneId {
        if !self.ftl.is_overfull(lane) {
            return lane;
        }
        let others = (0..self.geometry.lanes).map(LaneId);
        let others = others.filter(|&other| !self.ftl.is_overfull(other));
        let spare = |lane: LaneId| self.ftl.spare_units(lane);
        others.max_by_key(|&other| (has_room(self, other), spare(other), other.0)).unwrap_or(lane)
    }

    /// Closes an open superblock early; if the host fills it, this is an event of the kind `why`. Returns `false` if the
    /// superblock cannot be closed because programs in it are under way. Only for a lane without a job.
    pub(crate) fn close_open(&mut self, lane: LaneId, superblock: SuperblockId, why: EventKind) -> bool {
        let left = self.shape(superblock).units - self.array.superblock(superblock).programmed;
        let stream = self.ftl.leave_open_superblock(&self.array, lane, superblock);
        if let Some(stream) = stream {
            self.on_superblock_left(why, lane, stream, left);
            self.close_early(superblock);
        } else if self
            .gathering_of_jobs(lane)
            .any(|copy| self.geometry.superblock_of(copy.unit) == superblock)
        {
            self.close_programs_of_job(lane);
        }
        stream.is_some()
    }

    /// Closes an open superblock and leaves its remaining units erased. A superblock without programmed units becomes
    /// free.
    pub(crate) fn close_early(&mut self, superblock: SuperblockId) {
        let programmed = self.array.superblock(superblock).programmed;
        let left = self.shape(superblock).units - programmed;
        if programmed == 0 {
            self.ftl.give_back(&mut self.array, superblock);
        } else if left > 0 {
            self.array.skip_to(superblock, self.array.shape(superblock).units);
            self.ftl.close(&mut self.array, superblock, self.now);
            self.wake(Wake::Space(self.geometry.lane_of(superblock)));
            self.look_if_dead(superblock);
        }
    }
}

value! { Work { victim, superblocks_taken } }
value! { Emptied { superblock, copies, is_of_map, is_of_gc, superblocks_taken, is_urgent, is_erasing, times } }
value! {
    Space {
        emptied,
        dead,
        soon_free,
        urgent_erases,
        fully_valid_victims,
        fully_valid_victims_now,
        takes_fewest_valid,
    }
}
state! { Room { works, spaces, kept_from, has_displaced } fixed { foreground_free, endurance } }
