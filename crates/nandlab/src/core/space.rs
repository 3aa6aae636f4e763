//! What room a plane has, for whom.

use super::{Core, Wake};
use crate::ftl::WriteStream;
use crate::geometry::{BlockId, PlaneId};
use crate::probe::Probe;

/// What the background job of a plane has to do with its space.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Work {
    /// The block that it empties, or goes through; `None` without a job.
    pub(crate) victim: Option<BlockId>,
    /// Free blocks that it has taken. It takes one at most, or two when it copies pages back and not all may be.
    pub(crate) blocks_taken: u32,
}

impl<P: Probe> Core<P> {
    /// The block that the background job of a plane empties, or goes through; `None` without a job.
    #[inline]
    pub(crate) fn victim(&self, plane: PlaneId) -> Option<BlockId> {
        self.works[plane.index()].victim
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

    /// Whether foreground GC has to make room in `plane`.
    pub(crate) fn is_short(&self, plane: PlaneId) -> bool {
        let blocks = self.ftl.planes[plane.index()].free.len();
        blocks <= self.ftl.reserve_blocks || self.is_below(plane, self.foreground_free)
    }

    /// Whether less than `share` of the pages that can be free in `plane` are free.
    pub(crate) fn is_below(&self, plane: PlaneId, share: f64) -> bool {
        let free = self.ftl.free_pages(&self.geometry, plane);
        f64::from(free) < share * f64::from(self.ftl.spare_pages(&self.geometry, plane))
    }

    /// Pages that an internal `stream` of `plane` can still be given.
    pub(crate) fn stream_room(&self, plane: PlaneId, stream: WriteStream) -> u32 {
        self.ftl.stream_room(&self.geometry, plane, stream)
    }

    /// The stream that the pages of a block go to when they are moved off-chip.
    pub(crate) fn emptying_stream(&self, block: BlockId, is_wear: bool) -> WriteStream {
        self.ftl.emptying_stream(&self.geometry, &self.array, block, is_wear)
    }

    /// Pages of `stream`, that of translation pages or of combination pages, that the job of `plane` has not moved yet.
    fn pages_to_move(&self, plane: PlaneId, stream: WriteStream) -> u32 {
        let Some(victim) = self.victim(plane) else { return 0 };
        if self.emptying_stream(victim, false) == stream { self.valid_pages(victim) } else { 0 }
    }

    /// Whether translation pages may take a page of `plane`: not what a job that moves translation pages still needs,
    /// and not the last free block.
    pub(crate) fn has_mapping_room(&self, plane: PlaneId) -> bool {
        let stream = WriteStream::Mapping;
        self.stream_room(plane, stream) > self.pages_to_move(plane, stream)
            && self.ftl.has_mapping_room(plane)
    }

    /// Whether a combination page may take a page of `plane`: not what a job that moves combination pages still needs.
    pub(crate) fn has_combination_room(&self, plane: PlaneId) -> bool {
        let stream = WriteStream::Combination;
        self.stream_room(plane, stream) > self.pages_to_move(plane, stream)
            && self.ftl.has_combination_room(&self.geometry, plane)
    }

    /// An emergency flush writes where there is room, so a plane may hold pages of others and have no room left for its
    /// own, nor any to gain. Then others have more.
    #[cold]
    pub(crate) fn plane_in_place_of(
        &self,
        plane: PlaneId,
        has_room: impl Fn(&Self, PlaneId) -> bool,
    ) -> PlaneId {
        if self.ftl.has_garbage(&self.geometry, plane) || self.has_job(plane) {
            return plane;
        }
        let planes = (0..self.geometry.planes).map(PlaneId).filter(|&plane| has_room(self, plane));
        planes.max_by_key(|&plane| (self.ftl.free_pages(&self.geometry, plane), plane.0)).unwrap_or(plane)
    }

    /// Leaves the rest of an open block erased: it is full.
    pub(crate) fn close_early(&mut self, block: BlockId) {
        let programmed = u32::from(self.array.block(block).programmed);
        let left = self.geometry.pages_per_block - programmed;
        if programmed == 0 {
            self.ftl.give_back(&self.geometry, &mut self.array, block);
        } else if left > 0 {
            self.array.skip(block, left);
            self.ftl.close(&self.geometry, &mut self.array, block, self.now);
            self.wake(Wake::Space(self.geometry.plane_of(block)));
        }
    }
}
