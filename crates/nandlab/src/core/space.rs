//! The room in a plane for the host, for jobs and for translation and combination pages, and the blocks that can be
//! emptied.

use super::{Core, Wake};
use crate::base::geometry::{BlockId, Cell, PlaneId};
use crate::flash::BlockState;
use crate::ftl::WriteStream;
use crate::probe::Probe;

/// The block and the free blocks that a plane's background job has taken.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Work {
    /// The block that the job empties, or whose pages it refreshes in the block; `None` without a job.
    pub(crate) victim: Option<BlockId>,
    /// Free blocks that the job has taken: at most one, or two when it copies pages back and has to move some pages
    /// off-chip.
    pub(crate) blocks_taken: u32,
}

/// Dead blocks of a plane, and the state of GC's choice of victims.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Space {
    /// Dead blocks whose erase is queued or under way.
    pub(crate) dead: u32,
    /// Of these dead blocks, those that will be free after the erase, not retired.
    pub(crate) soon_free: u32,
    /// Of these dead blocks, those whose erases have made the die's background work urgent.
    pub(crate) urgent_erases: u32,
    /// Consecutive victims of the policy without an invalid page.
    pub(crate) fully_valid_victims: u32,
    /// The plane was down to the blocks that it must keep: until the host's stream may open a block, GC takes the block
    /// with the fewest valid pages, whatever its policy picks.
    pub(crate) takes_fewest_valid: bool,
}

/// The space of all planes.
#[derive(Debug)]
pub(crate) struct Room {
    /// By plane, the block and the free blocks that its background job has taken.
    pub(crate) works: Box<[Work]>,
    /// By plane, its dead blocks and the state of GC's choice of victims.
    pub(crate) spaces: Box<[Space]>,
    /// GC has to make room in a plane where less than this share of the pages that can be free for the host is free.
    foreground_free: f64,
    /// P/E cycles at which a block retires.
    pub(crate) endurance: u32,
    /// Whether an emergency flush has written pages to planes other than those of their LPNs.
    pub(crate) has_displaced: bool,
}

impl Room {
    /// GC has to make room in a plane where less than `foreground_free` of the pages that can be free for the host are
    /// free; a block retires at `endurance` P/E cycles.
    pub(crate) fn new(planes: u32, foreground_free: f64, endurance: u32) -> Self {
        Self {
            works: vec![Work::default(); planes as usize].into(),
            spaces: vec![Space::default(); planes as usize].into(),
            foreground_free,
            endurance,
            has_displaced: false,
        }
    }
}

/// The largest number of future victims that count in [`Core::pages_to_next_block`].
const VICTIMS_AHEAD: u32 = 16;

impl<P: Probe> Core<P> {
    /// The block that the background job of a plane empties, or whose pages it refreshes in the block; `None` without a
    /// job.
    #[inline]
    pub(crate) fn victim(&self, plane: PlaneId) -> Option<BlockId> {
        self.room.works[plane.index()].victim
    }

    /// Whether a plane has a background job.
    #[inline]
    pub(crate) fn has_job(&self, plane: PlaneId) -> bool {
        self.victim(plane).is_some()
    }

    /// Valid pages of a block.
    #[inline]
    pub(crate) fn valid_pages(&self, block: BlockId) -> u32 {
        self.array.block(block).valid.into()
    }

    /// Free blocks of a plane, with the dead blocks that will be free after their erase.
    fn free_soon(&self, plane: PlaneId) -> u32 {
        self.ftl.planes[plane.index()].free_blocks() + self.room.spaces[plane.index()].soon_free
    }

    /// Dead blocks of the drive that will be free after their erase.
    pub(crate) fn soon_free(&self) -> u32 {
        self.room.spaces.iter().map(|space| space.soon_free).sum()
    }

    /// Whether foreground GC has to make room in `plane`.
    pub(crate) fn is_short(&self, plane: PlaneId) -> bool {
        self.free_soon(plane) <= self.ftl.reserve_blocks || self.is_below(plane, self.room.foreground_free)
    }

    /// Whether the host's stream may open no further block of `plane` now.
    pub(crate) fn is_at_reserve(&self, plane: PlaneId) -> bool {
        self.ftl.planes[plane.index()].free_blocks() <= self.ftl.reserve_blocks
    }

    /// Pages of a plane that are free for the host.
    pub(crate) fn host_room(&self, plane: PlaneId) -> u32 {
        let blocks = self.free_soon(plane).saturating_sub(self.ftl.reserve_blocks);
        blocks * self.geometry.pages_per_block + self.ftl.host_pages_open(plane)
    }

    /// Pages that GC has to move in a plane until the host's stream can open one more block, if the victims after the
    /// present one hold `valid` pages each. Counts at most [`VICTIMS_AHEAD`] victims.
    pub(crate) fn pages_to_next_block(&self, plane: PlaneId, valid: u32) -> u32 {
        let pages_per_block = self.geometry.pages_per_block;
        // The victims may hold slightly more than expected, so a block counts as opened before the room is quite used
        // up.
        let slack = pages_per_block / 16;
        let mut free = self.free_soon(plane);
        let enough = free.max(self.ftl.reserve_blocks) + 1;
        let mut room = self.ftl.job_pages_open(plane);
        let mut left = self.victim(plane).map_or(valid, |victim| self.valid_pages(victim));
        let mut moved = 0;
        for _ in 0..VICTIMS_AHEAD {
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
        moved
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

    /// Whether a job may empty a block: its valid pages find room, and GC keeps the free blocks that it needs. For this
    /// the job takes no more free blocks than its erase frees, or leaves
    /// [`Ftl::kept_blocks`](crate::ftl::Ftl::kept_blocks).
    pub(crate) fn may_empty(&self, plane: PlaneId, block: BlockId, is_wear: bool) -> bool {
        let given = u32::from(!self.retires(block));
        self.leaves_enough(plane, block, is_wear, given)
    }

    /// Whether a job whose block stays may write the block's valid pages to other blocks, by the rule of
    /// [`Core::may_empty`]; such a job erases nothing.
    pub(crate) fn may_rewrite(&self, plane: PlaneId, block: BlockId) -> bool {
        self.leaves_enough(plane, block, false, 0)
    }

    /// The largest number of free blocks that a job takes to write all valid pages of a block to other blocks.
    pub(crate) fn blocks_to_empty(&self, plane: PlaneId, block: BlockId, is_wear: bool) -> u32 {
        let stream = self.emptying_stream(block, is_wear);
        self.ftl.blocks_for(&self.geometry, plane, stream, self.valid_pages(block))
    }

    fn leaves_enough(&self, plane: PlaneId, block: BlockId, is_wear: bool, given: u32) -> bool {
        let taken = self.blocks_to_empty(plane, block, is_wear);
        let free = self.ftl.planes[plane.index()].free.len();
        taken <= free && (taken <= given || free + given >= taken + self.ftl.kept_blocks())
    }

    /// Whether emptying a block gains pages. While a program may be torn the job may leave one page of a wordline
    /// unused.
    pub(crate) fn gains(&self, block: BlockId) -> bool {
        let unused = u32::from(self.state.is_guarded && self.geometry.cell == Cell::Mlc);
        self.valid_pages(block) + unused < self.geometry.pages_per_block
    }

    /// The block of a plane with the fewest valid pages among those from which GC can gain pages while space is short.
    #[cold]
    pub(crate) fn fewest_valid(&self, plane: PlaneId) -> Option<BlockId> {
        let blocks = self.geometry.block_ids_of(plane);
        let full = blocks.filter(|&block| self.array.block(block).state == BlockState::Full);
        full.filter(|&block| self.gains(block) && !self.retires(block) && self.may_empty(plane, block, false))
            .min_by_key(|&block| (self.array.block(block).valid, block.0))
    }

    /// Whether no block of a plane is being emptied or can be emptied with a gain.
    fn is_spent(&self, plane: PlaneId) -> bool {
        let is_at_work = self.has_job(plane) || self.room.spaces[plane.index()].dead > 0;
        !is_at_work && self.fewest_valid(plane).is_none()
    }

    /// Whether blocks of a plane have retired, or will retire at their next erase.
    fn has_worn_blocks(&self, plane: PlaneId) -> bool {
        self.geometry
            .block_ids_of(plane)
            .any(|block| self.array.block(block).state == BlockState::Retired || self.retires(block))
    }

    /// Whether a write that waits for room in a plane will get none because of wear: no block can be emptied with a
    /// gain, in the plane nor in any other plane to which the page may go.
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

    /// Marks the planes that have worn out; dynamic allocation does not count on the room of these planes.
    pub(crate) fn look_at_wear(&mut self) {
        for plane in (0..self.geometry.planes).map(PlaneId) {
            self.ftl.planes[plane.index()].is_worn_out = self.is_spent(plane) && self.has_worn_blocks(plane);
        }
    }

    /// Has a block erased if it is dead: full, without valid pages and pins. While the capacitor is measured, erases
    /// wait as GC does, because the programs of the detection would wait for them.
    #[inline]
    pub(crate) fn look_if_dead(&mut self, block: BlockId) {
        let state = self.array.block(block);
        if state.valid == 0 && state.pins == 0 && state.state == BlockState::Full && !self.state.is_draining {
            self.found_dead(block);
        }
    }

    /// Checks all blocks after a measurement of the capacitor.
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

    /// Pages that an internal `stream` of `plane` can still allocate.
    pub(crate) fn stream_room(&self, plane: PlaneId, stream: WriteStream) -> u32 {
        self.ftl.stream_room(&self.geometry, plane, stream)
    }

    /// The stream to which the pages of a block are written when they are moved off-chip.
    pub(crate) fn emptying_stream(&self, block: BlockId, is_wear: bool) -> WriteStream {
        self.ftl.emptying_stream(&self.geometry, &self.array, block, is_wear)
    }

    /// Pages of `stream`, which is that of translation pages or of combination pages, that the job of `plane` still has
    /// to move.
    fn pages_to_move(&self, plane: PlaneId, stream: WriteStream) -> u32 {
        let Some(victim) = self.victim(plane) else { return 0 };
        if self.emptying_stream(victim, false) == stream { self.valid_pages(victim) } else { 0 }
    }

    /// Whether a translation page may be written to `plane`: a job that moves translation pages keeps the pages that it
    /// needs, and the last free block is left.
    pub(crate) fn has_mapping_room(&self, plane: PlaneId) -> bool {
        let stream = WriteStream::Mapping;
        self.stream_room(plane, stream) > self.pages_to_move(plane, stream)
            && self.ftl.has_mapping_room(plane)
    }

    /// Whether a combination page may be written to `plane`: a job that moves combination pages keeps the pages that it
    /// needs.
    pub(crate) fn has_combination_room(&self, plane: PlaneId) -> bool {
        let stream = WriteStream::Combination;
        self.stream_room(plane, stream) > self.pages_to_move(plane, stream)
            && self.ftl.has_combination_room(&self.geometry, plane)
    }

    /// The plane to write to in place of `plane`, which is returned itself unless it is overfull. An emergency flush
    /// writes wherever there is room, so a plane may hold so many pages of other planes that GC gains nothing; the
    /// other planes have fewer valid pages then.
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

    /// Closes an open block early; returns `false` if that is not possible because programs in it are under way.
    pub(crate) fn close_open(&mut self, plane: PlaneId, block: BlockId) -> bool {
        let programmed = self.array.block(block).programmed;
        let is_left = self.ftl.leave_open_block(&self.geometry, plane, block, programmed);
        if is_left {
            self.close_early(block);
        }
        is_left
    }

    /// Leaves the rest of an open block erased, so that the block is full; a block without programmed pages becomes
    /// free.
    pub(crate) fn close_early(&mut self, block: BlockId) {
        let programmed = u32::from(self.array.block(block).programmed);
        let left = self.geometry.pages_per_block - programmed;
        if programmed == 0 {
            self.ftl.give_back(&self.geometry, &mut self.array, block);
        } else if left > 0 {
            self.array.skip(block, left);
            self.ftl.close(&self.geometry, &mut self.array, block, self.now);
            self.wake(Wake::Space(self.geometry.plane_of(block)));
            self.look_if_dead(block);
        }
    }
}
