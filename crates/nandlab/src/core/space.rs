//! The room that a plane has for the host, for jobs, and for translation and combination pages; the blocks that can be
//! emptied.

use super::{Core, VictimTimes, Wake};
use crate::base::geometry::{BlockId, PlaneId, Ppn};
use crate::flash::BlockState;
use crate::ftl::WriteStream;
use crate::probe::Probe;

/// The block and the free blocks that a plane's background job has taken.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Work {
    /// The block that the job empties, or the block that stays and whose pages the job refreshes; `None` without a job.
    pub(crate) victim: Option<BlockId>,
    /// Number of free blocks that the job has taken: at most one, or two when the job copies pages back and has to move
    /// some pages off-chip.
    pub(crate) blocks_taken: u32,
}

/// A victim of GC whose valid pages have all been read, and whose last copies gather in a programming unit that the next
/// job of the plane goes on filling. The victim is erased beside that job.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Emptied {
    pub(crate) block: BlockId,
    /// Number of its copies whose program has not ended.
    pub(crate) copies: u32,
    /// Whether it had translation pages.
    pub(crate) is_of_map: bool,
    /// Number of free blocks that its job has taken.
    pub(crate) blocks_taken: u32,
    /// Whether the die serves its last program and its erase with the priority of host writes, because space is short.
    pub(crate) is_urgent: bool,
    pub(crate) is_erasing: bool,
    /// When its job took it, and how far it has come.
    pub(crate) times: VictimTimes,
}

/// Emptied and dead blocks of a plane, and the state of GC's choice of victims.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Space {
    /// The victim before that of the plane's job, until it has been erased.
    pub(crate) emptied: Option<Emptied>,
    /// Number of blocks, dead or emptied, whose erase beside the plane's job is queued or under way.
    pub(crate) dead: u32,
    /// Number of these that become free with their erase; the others retire.
    pub(crate) soon_free: u32,
    /// Number of these whose erase has been promoted: the die serves it with the priority of host writes.
    pub(crate) urgent_erases: u32,
    /// Number of consecutive victims of the policy that had no invalid page.
    pub(crate) fully_valid_victims: u32,
    /// Whether GC takes the block with the fewest valid pages, whatever its policy picks. This begins when the plane
    /// has only its kept blocks and a translation page waits for room, or when more erases in vain than the drive has
    /// blocks have given no write a page. It ends when the host's stream may open a block.
    pub(crate) takes_fewest_valid: bool,
}

/// The space of all planes.
#[derive(Debug)]
pub(crate) struct Room {
    /// By plane, the block that its background job works on and the free blocks that the job has taken.
    pub(crate) works: Box<[Work]>,
    /// By plane, the number of its dead blocks and the state of GC's choice of victims.
    pub(crate) spaces: Box<[Space]>,
    /// Foreground GC starts in a plane when less than this share of the pages that can be free for the host is free.
    pub(crate) foreground_free: f64,
    /// With `gc.foreground = "blocking"`, by plane the submission number from which on its dies serve no host operation,
    /// while it is not yet decided whether a cleaning of the plane follows; empty with `"interleaved"`.
    pub(crate) kept_from: Box<[Option<u64>]>,
    /// P/E cycles at which a block retires.
    pub(crate) endurance: u32,
    /// Whether an emergency flush has written pages to planes other than those of their LPNs.
    pub(crate) has_displaced: bool,
}

impl Room {
    /// The space of a drive without jobs. Foreground GC starts in a plane when less than `foreground_free` of the pages
    /// that can be free for the host is free. With `blocks_dies` its dies then serve GC alone. A block retires at
    /// `endurance` P/E cycles.
    pub(crate) fn new(planes: u32, foreground_free: f64, blocks_dies: bool, endurance: u32) -> Self {
        Self {
            works: vec![Work::default(); planes as usize].into(),
            spaces: vec![Space::default(); planes as usize].into(),
            foreground_free,
            kept_from: vec![None; if blocks_dies { planes as usize } else { 0 }].into(),
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

/// The largest number of future victims that count in [`Core::pages_to_next_block`].
const VICTIMS_AHEAD: u32 = 16;

impl<P: Probe> Core<P> {
    /// The block that the background job of a plane empties, or the block that stays and whose pages the job refreshes;
    /// `None` without a job.
    #[inline]
    pub(crate) fn victim(&self, plane: PlaneId) -> Option<BlockId> {
        self.room.works[plane.index()].victim
    }

    /// Whether a plane has a background job.
    #[inline]
    pub(crate) fn has_job(&self, plane: PlaneId) -> bool {
        self.victim(plane).is_some()
    }

    /// Number of valid pages of a block.
    #[inline]
    pub(crate) fn valid_pages(&self, block: BlockId) -> u32 {
        self.array.block(block).valid
    }

    /// The victim of a plane before that of its job, until it has been erased.
    #[inline]
    pub(crate) fn emptied(&self, plane: PlaneId) -> Option<&Emptied> {
        self.room.spaces[plane.index()].emptied.as_ref()
    }

    /// Number of free blocks that the jobs of a plane have taken and not given back by an erase.
    pub(crate) fn blocks_taken(&self, plane: PlaneId) -> u32 {
        let before = self.emptied(plane).map_or(0, |emptied| emptied.blocks_taken);
        self.room.works[plane.index()].blocks_taken + before
    }

    /// Number of free blocks of a plane, including the dead blocks that become free with their erase.
    fn free_soon(&self, plane: PlaneId) -> u32 {
        self.ftl.planes[plane.index()].free_blocks() + self.room.spaces[plane.index()].soon_free
    }

    /// Number of dead blocks of the drive that become free with their erase.
    pub(crate) fn soon_free(&self) -> u32 {
        self.room.spaces.iter().map(|space| space.soon_free).sum()
    }

    /// Whether the plane is at its reserve, and no erase that gives it a block is queued or under way.
    pub(crate) fn lacks_blocks(&self, plane: PlaneId) -> bool {
        self.free_soon(plane) <= self.ftl.reserve_blocks
    }

    /// Whether foreground GC has to make room in `plane`.
    pub(crate) fn is_short(&self, plane: PlaneId) -> bool {
        self.lacks_blocks(plane) || self.is_below(plane, self.room.foreground_free)
    }

    /// [`Core::lacks_blocks`] with one free block fewer.
    pub(crate) fn would_lack_blocks(&self, plane: PlaneId) -> bool {
        self.free_soon(plane) <= self.ftl.reserve_blocks + 1
    }

    /// With `gc.foreground = "blocking"`, keeps the dies of a plane that is short of space from all host operations with
    /// the submission number `order` or a higher one, until [`Core::release_dies`]. By then the cleaning of the plane has
    /// begun, or none is possible. Cleanings that follow each other keep the dies from the operations that the first one
    /// has kept waiting. No cleaning follows a block that an emergency flush opens.
    #[inline]
    pub(crate) fn keep_dies(&mut self, plane: PlaneId, order: u64) {
        let may_keep = self.room.blocks_dies() && !self.state.is_off;
        if may_keep && self.room.kept_from[plane.index()].is_none() && self.is_short(plane) {
            self.room.kept_from[plane.index()] = Some(order);
            for die in self.geometry.dies_of(plane) {
                self.device.begin_cleaning(die, order);
            }
        }
    }

    /// Undoes [`Core::keep_dies`].
    #[inline(always)]
    pub(crate) fn release_dies(&mut self, plane: PlaneId) {
        if self.room.blocks_dies() {
            self.release_kept_dies(plane);
        }
    }

    #[inline(never)]
    fn release_kept_dies(&mut self, plane: PlaneId) {
        let kept_from = self.room.kept_from.get_mut(plane.index());
        if kept_from.is_some_and(|order| order.take().is_some()) {
            for die in self.geometry.dies_of(plane) {
                self.device.end_cleaning(die);
            }
        }
    }

    /// Whether the plane is at its reserve: the host's stream may open no further block of `plane` now.
    pub(crate) fn is_at_reserve(&self, plane: PlaneId) -> bool {
        self.ftl.planes[plane.index()].free_blocks() <= self.ftl.reserve_blocks
    }

    /// Number of pages of a plane that are free for the host.
    pub(crate) fn host_room(&self, plane: PlaneId) -> u32 {
        let blocks = self.free_soon(plane).saturating_sub(self.ftl.reserve_blocks);
        blocks * self.geometry.pages_per_block + self.ftl.host_pages_open(plane)
    }

    /// Number of pages of the host's open block that are allocated and whose programs have not ended.
    pub(crate) fn host_pages_queued(&self, plane: PlaneId) -> u32 {
        self.ftl
            .host_open_block(&self.geometry, plane)
            .map_or(0, |(block, allocated)| allocated.saturating_sub(self.array.block(block).programmed))
    }

    /// Number of pages that GC has to move in a plane until the host's stream can open one more block, and number of
    /// victims that GC has to erase for it, if every victim after the present one has `valid` valid pages. Looks ahead at
    /// most [`VICTIMS_AHEAD`] victims.
    pub(crate) fn pages_to_next_block(&self, plane: PlaneId, valid: u32) -> (u32, u32) {
        let pages_per_block = self.geometry.pages_per_block;
        // The victims may have slightly more valid pages than expected. So GC is assumed to open a new block already if
        // fewer than `slack` pages would be left in its open blocks.
        let slack = pages_per_block / 16;
        let mut free = self.free_soon(plane);
        let enough = free.max(self.ftl.reserve_blocks) + 1;
        // The victim before becomes free without further copies.
        free += self
            .emptied(plane)
            .map_or(0, |emptied| u32::from(!emptied.is_erasing && !self.retires(emptied.block)));
        if free >= enough {
            return (0, 0);
        }
        let mut room = self.ftl.job_pages_open(&self.geometry, plane);
        let mut left = self.victim(plane).map_or(valid, |victim| self.valid_pages(victim));
        let (mut moved, mut victims) = (0, 0);
        while victims < VICTIMS_AHEAD {
            victims += 1;
            moved += left;
            if left + slack > room {
                free = free.saturating_sub(1);
                room += pages_per_block;
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

    /// Whether less than `share` of the pages that can become free for the host in `plane` are free now.
    pub(crate) fn is_below(&self, plane: PlaneId, share: f64) -> bool {
        let free = self.host_room(plane);
        f64::from(free) < share * f64::from(self.ftl.host_spare_pages(&self.geometry, plane))
    }

    /// Whether the next erase of a block is its last one.
    pub(crate) fn retires(&self, block: BlockId) -> bool {
        self.array.block(block).pe_cycles + 1 >= self.room.endurance
    }

    /// Whether a job may empty a block: there is room for its valid pages, and GC keeps the free blocks that it needs.
    /// GC keeps them if the job takes no more free blocks than its erase returns, or leaves
    /// [`Ftl::kept_blocks`](crate::ftl::Ftl::kept_blocks) free blocks. The victim before counts as free, because the job
    /// opens a block only after its erase.
    pub(crate) fn may_empty(&self, plane: PlaneId, block: BlockId, is_wear: bool) -> bool {
        let given = u32::from(!self.retires(block));
        let before = self.emptied(plane).is_some_and(|emptied| !self.retires(emptied.block));
        self.leaves_enough(plane, block, is_wear, given, u32::from(before))
    }

    /// Whether a job whose block stays may write all valid pages of the block to other blocks. The rule is that of
    /// [`Core::may_empty`], except that the job erases nothing and so returns no block.
    pub(crate) fn may_rewrite(&self, plane: PlaneId, block: BlockId) -> bool {
        self.leaves_enough(plane, block, false, 0, 0)
    }

    /// Number of free blocks that a job takes at most to write all valid pages of a block to other blocks.
    pub(crate) fn blocks_to_empty(&self, plane: PlaneId, block: BlockId, is_wear: bool) -> u32 {
        let stream = self.emptying_stream(block, is_wear);
        self.ftl.blocks_for(&self.geometry, plane, stream, self.valid_pages(block))
    }

    fn leaves_enough(
        &self,
        plane: PlaneId,
        block: BlockId,
        is_wear: bool,
        given: u32,
        given_before: u32,
    ) -> bool {
        let taken = self.blocks_to_empty(plane, block, is_wear);
        let free = self.ftl.planes[plane.index()].free.len() + given_before;
        taken <= free && (taken <= given || free + given >= taken + self.ftl.kept_blocks())
    }

    /// Whether emptying a block gains pages. While power loss may tear a program, the job may leave all flash pages of a
    /// wordline but one unused, in a superblock of a wordline in every flash block.
    pub(crate) fn gains(&self, block: BlockId) -> bool {
        let is_guarded = self.state.is_guarded && self.geometry.dependent_pages() > 1;
        let wordlines = self.geometry.pages_per_wordlines();
        let unused = if is_guarded { wordlines - self.geometry.units_per_page } else { 0 };
        // The job may leave its last programming unit with only one page of data.
        let padding = self.geometry.pages_per_program - 1;
        self.valid_pages(block) + unused + padding < self.geometry.pages_per_block
    }

    /// Number of valid pages of the flash page that begins with `first`.
    pub(crate) fn valid_in_flash_page(&self, first: Ppn) -> u32 {
        let pages = self.geometry.units(first);
        pages.filter(|&page| self.ftl.is_valid(&self.geometry, page)).count() as u32
    }

    /// The block with the fewest valid pages of a plane, among the full blocks that a job may empty with a gain and
    /// that do not retire with their next erase.
    #[cold]
    pub(crate) fn fewest_valid(&self, plane: PlaneId) -> Option<BlockId> {
        let blocks = self.geometry.block_ids_of(plane);
        let full = blocks.filter(|&block| self.array.block(block).state == BlockState::Full);
        full.filter(|&block| self.gains(block) && !self.retires(block) && self.may_empty(plane, block, false))
            .min_by_key(|&block| (self.array.block(block).valid, block.0))
    }

    /// Whether a plane can gain no more pages: no block is being emptied, and none can be emptied with a gain.
    fn is_spent(&self, plane: PlaneId) -> bool {
        let Space { emptied, dead, .. } = self.room.spaces[plane.index()];
        let is_at_work = self.has_job(plane) || emptied.is_some() || dead > 0;
        !is_at_work && self.fewest_valid(plane).is_none()
    }

    /// Whether a block of a plane has retired, or will retire with its next erase.
    fn has_worn_blocks(&self, plane: PlaneId) -> bool {
        self.geometry
            .block_ids_of(plane)
            .any(|block| self.array.block(block).state == BlockState::Retired || self.retires(block))
    }

    /// Whether a write that waits for room in a plane will get none because of wear: neither this plane nor any other
    /// plane to which the page may go has a block that can be emptied with a gain.
    pub(crate) fn is_worn_out(&self, plane: PlaneId) -> bool {
        let of_one = |plane: PlaneId| self.is_spent(plane) && self.has_worn_blocks(plane);
        if self.ftl.allocator.is_static() && of_one(plane) {
            return true;
        }
        let mut planes = (0..self.geometry.planes).map(PlaneId);
        (!self.ftl.allocator.is_static() || self.room.has_displaced)
            && planes.clone().all(|plane| self.is_spent(plane))
            && planes.any(|plane| self.has_worn_blocks(plane))
    }

    /// Marks the worn-out planes, whose room dynamic allocation ignores.
    pub(crate) fn look_at_wear(&mut self) {
        for plane in (0..self.geometry.planes).map(PlaneId) {
            self.ftl.planes[plane.index()].is_worn_out = self.is_spent(plane) && self.has_worn_blocks(plane);
        }
    }

    /// Queues the erase of a block if the block is dead: full, without valid pages and pins. While the capacitor is
    /// measured, such erases wait, as GC does, because they would delay the programs of the detection. With
    /// `gc.foreground = "blocking"` a dead block waits for GC as well, for which the host waits.
    #[inline]
    pub(crate) fn look_if_dead(&mut self, block: BlockId) {
        let state = self.array.block(block);
        let is_dead = state.valid == 0 && state.pins == 0 && state.state == BlockState::Full;
        if is_dead && !self.state.is_draining && !self.room.blocks_dies() {
            self.found_dead(block);
        }
    }

    /// Queues the erase of all dead blocks, after a measurement of the capacitor.
    #[cold]
    pub(crate) fn look_for_dead(&mut self) {
        for block in (0..self.geometry.blocks).map(BlockId) {
            self.look_if_dead(block);
        }
    }

    #[cold]
    #[inline(never)]
    fn found_dead(&mut self, block: BlockId) {
        let plane = self.geometry.plane_of(block);
        self.ftl.begin_emptying(&self.geometry, &mut self.array, block);
        let soon_free = u32::from(!self.retires(block));
        let space = &mut self.room.spaces[plane.index()];
        space.dead += 1;
        space.soon_free += soon_free;
        self.wake(Wake::Dead(block));
    }

    /// Number of pages that an internal `stream` of `plane` can still allocate.
    pub(crate) fn stream_room(&self, plane: PlaneId, stream: WriteStream) -> u32 {
        self.ftl.stream_room(&self.geometry, plane, stream)
    }

    /// The stream to which a job writes the pages of a block when it moves them off-chip.
    pub(crate) fn emptying_stream(&self, block: BlockId, is_wear: bool) -> WriteStream {
        self.ftl.emptying_stream(&self.geometry, &self.array, block, is_wear)
    }

    /// Number of pages that the job of `plane` still has to move to `stream`, the stream of translation pages or of
    /// combination pages.
    fn pages_to_move(&self, plane: PlaneId, stream: WriteStream) -> u32 {
        let Some(victim) = self.victim(plane) else { return 0 };
        if self.emptying_stream(victim, false) == stream { self.valid_pages(victim) } else { 0 }
    }

    /// Whether `stream` of `plane` has room for a page and for all that the job of `plane` still has to move to `stream`.
    /// The page takes a whole programming unit, and may close one that the job has begun.
    fn has_room_beside_job(&self, plane: PlaneId, stream: WriteStream) -> bool {
        let unit = self.geometry.pages_per_program;
        let room = self.stream_room(plane, stream);
        let has_room_for = |moved: u32| room >= unit + moved.next_multiple_of(unit);
        // What a job moves, which takes longer to find out, is a block at most.
        has_room_for(self.geometry.pages_per_block) || has_room_for(self.pages_to_move(plane, stream))
    }

    /// Whether a translation page may be written to `plane`. The write must leave the pages that a job needs to move
    /// translation pages, and must not take a free block that the job under way or an emergency flush may need.
    pub(crate) fn has_mapping_room(&self, plane: PlaneId) -> bool {
        self.ftl.has_mapping_room(plane) && self.has_room_beside_job(plane, WriteStream::Mapping)
    }

    /// Whether a combination page may be written to `plane`. The write must leave the pages that a job needs to move
    /// combination pages, the free blocks that others may need, and enough garbage for GC.
    pub(crate) fn has_combination_room(&self, plane: PlaneId) -> bool {
        self.ftl.has_combination_room(&self.geometry, plane)
            && self.has_room_beside_job(plane, WriteStream::Combination)
    }

    /// The plane for a write whose own plane is `plane`: `plane` itself, or, if `plane` is overfull, another plane that
    /// is not overfull. An emergency flush writes wherever there is room, so a plane may have so many pages of other
    /// planes that GC gains nothing; the other planes then have fewer valid pages.
    #[cold]
    pub(crate) fn plane_in_place_of(
        &self,
        plane: PlaneId,
        has_room: impl Fn(&Self, PlaneId) -> bool,
    ) -> PlaneId {
        if !self.ftl.is_overfull(&self.geometry, plane) {
            return plane;
        }
        let others = (0..self.geometry.planes).map(PlaneId);
        let others = others.filter(|&other| !self.ftl.is_overfull(&self.geometry, other));
        let spare = |plane: PlaneId| self.ftl.spare_pages(&self.geometry, plane);
        others.max_by_key(|&other| (has_room(self, other), spare(other), other.0)).unwrap_or(plane)
    }

    /// Closes an open block early; returns `false` if the block cannot be closed because programs in it are under way.
    /// Only for a plane without a job.
    pub(crate) fn close_open(&mut self, plane: PlaneId, block: BlockId) -> bool {
        let programmed = self.array.block(block).programmed;
        let is_left = self.ftl.leave_open_block(&self.geometry, plane, block, programmed);
        if is_left {
            self.close_early(block);
        } else if self.gathering_of_jobs(plane).any(|page| self.geometry.block_of(page.ppn) == block) {
            self.close_programs_of_job(plane);
        }
        is_left
    }

    /// Closes an open block and leaves its remaining pages erased. A block without programmed pages becomes free.
    pub(crate) fn close_early(&mut self, block: BlockId) {
        let programmed = self.array.block(block).programmed;
        let left = self.geometry.pages_per_block - programmed;
        if programmed == 0 {
            self.ftl.give_back(&self.geometry, &mut self.array, block);
        } else if left > 0 {
            self.array.skip_to(block, self.geometry.pages_per_block);
            self.ftl.close(&self.geometry, &mut self.array, block, self.now);
            self.wake(Wake::Space(self.geometry.plane_of(block)));
            self.look_if_dead(block);
        }
    }
}
