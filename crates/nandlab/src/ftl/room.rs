//! The room that a plane has for each stream, and the free blocks that it must keep.

use super::allocation::Allocator;
use super::plane::{OpenBlock, Plane};
use super::{FLUSH_KEEPS_BLOCKS, Ftl, WriteStream};
use crate::base::geometry::{BlockId, DieId, Geometry, Lpn, PlaneId, Ppn};
use crate::sched::Device;
use std::cell::OnceCell;

impl Ftl {
    /// The numbers that no operation changes.
    pub(crate) fn fixed(&self) -> impl std::fmt::Debug + use<> {
        let lpns = (self.first_translation, self.first_combination, self.combination_pages);
        let blocks = (self.reserve_blocks, self.flush_reserve_blocks, self.job_blocks, self.taken_blocks);
        (lpns, blocks, self.needs, self.levelling, self.shares_first_block)
    }

    /// Free blocks of a plane that an emergency flush may take.
    pub fn flush_blocks(&self, plane: PlaneId) -> u32 {
        self.planes[plane.index()].free.len().saturating_sub(FLUSH_KEEPS_BLOCKS)
    }

    /// Free blocks of every plane that are certain to be available to an emergency flush.
    pub fn flush_room_blocks(&self) -> u32 {
        self.flush_reserve_blocks.saturating_sub(FLUSH_KEEPS_BLOCKS)
    }

    /// Free blocks that every plane keeps for an emergency flush.
    pub fn flush_reserve_blocks(&self) -> u32 {
        self.flush_reserve_blocks
    }

    /// The invalid pages that a full block has on average, at least, in a plane of blocks that are not retired, when
    /// less than `foreground_free` of the pages that can become free for the host is free; at least 1. A block's worth
    /// of garbage may be in the victim of a job and another one in open blocks.
    pub fn garbage_per_block(&self, geometry: &Geometry, foreground_free: f64) -> u32 {
        let (blocks, pages_per_block) = (geometry.fewest_blocks(), geometry.pages_per_block);
        let spare = self.needs.usable_pages(blocks.into()).saturating_sub(self.needs.valid_pages());
        let garbage = spare as f64 * (1.0 - foreground_free) - 2.0 * f64::from(pages_per_block);
        ((garbage / f64::from(blocks)) as u32).clamp(1, pages_per_block)
    }

    /// Whether a plane keeps the flush reserve even if its job takes all free blocks that it may take, of which the job
    /// has taken `taken` already.
    pub fn has_flush_reserve(&self, plane: PlaneId, taken: u32) -> bool {
        self.planes[plane.index()].free.len() + taken >= self.flush_reserve_blocks + self.job_blocks
    }

    /// Whether a translation page can be written back to `plane` without taking a free block that the job under way may
    /// need or that is kept for an emergency flush.
    pub fn has_mapping_room(&self, plane: PlaneId) -> bool {
        let state = &self.planes[plane.index()];
        let open = state.open[WriteStream::Mapping.index()];
        !open.is_full() || state.free_blocks() > self.job_blocks + self.flush_reserve_blocks
    }

    /// Whether a combination page can be written to `plane` without taking a free block that the job under way,
    /// translation pages or an emergency flush may need. The plane must also have enough garbage for GC to gain pages.
    pub fn has_combination_room(&self, geometry: &Geometry, plane: PlaneId) -> bool {
        let state = &self.planes[plane.index()];
        // Host pages and translation pages count at their maximum, because every LPN may be mapped later.
        let pages = self.needs.valid_pages() as u32 + state.combinations;
        if self.is_overfull(geometry, plane)
            || state.leaves_little_garbage(geometry, self.taken_blocks, pages)
        {
            return false;
        }
        let open = state.open[WriteStream::Combination.index()];
        let keep = self.job_blocks + self.flush_reserve_blocks + self.needs.mapping.open as u32;
        !open.is_full() || state.free_blocks() > keep
    }

    /// Free blocks that a plane must have when no job is under way: GC's block and the flush reserve.
    pub fn kept_blocks(&self) -> u32 {
        self.needs.gc.free as u32 + self.flush_reserve_blocks
    }

    /// Whether a plane has so many valid pages that GC may gain nothing: at most half a block's worth of garbage is
    /// left, whereas GC needs one block's worth.
    pub fn is_overfull(&self, geometry: &Geometry, plane: PlaneId) -> bool {
        let state = &self.planes[plane.index()];
        state.leaves_little_garbage(geometry, self.taken_blocks, state.valid)
    }

    /// The share of the drive's blocks that are free, among the blocks that are not retired. `soon_free` blocks more
    /// count as free.
    pub fn free_share(&self, soon_free: u32) -> f64 {
        let (free, usable) = self
            .planes
            .iter()
            .fold((0, 0), |(free, usable), plane| (free + plane.free.len(), usable + plane.usable_blocks));
        f64::from(free + soon_free) / f64::from(usable.max(1))
    }

    /// The plane for a host write of `lpn`; `None` if dynamic allocation finds no plane with room.
    #[inline]
    pub fn choose_plane(&mut self, geometry: &Geometry, device: &Device, lpn: Lpn) -> Option<PlaneId> {
        if self.allocator.is_static() {
            return Some(self.allocator.home(lpn, geometry));
        }
        self.choose_any_plane(geometry, device)
    }

    /// The plane for a host write under dynamic allocation.
    #[inline(never)]
    fn choose_any_plane(&mut self, geometry: &Geometry, device: &Device) -> Option<PlaneId> {
        if let Allocator::Dynamic { plane: Some(plane), .. } = self.allocator
            && self.is_amid_program(geometry, plane, WriteStream::Host)
        {
            return Some(plane);
        }
        let Self { allocator, planes, reserve_blocks, taken_blocks, shares_first_block, .. } = self;
        let has_room = |state: &Plane| state.has_room(*reserve_blocks, *shares_first_block);
        let has_little = |state: &Plane| state.leaves_little_garbage(geometry, *taken_blocks, state.valid);
        let is_any_ample = OnceCell::new();
        // While another plane has enough garbage for GC, a plane with little garbage takes no more writes.
        let is_full = |state: &Plane| {
            let is_ample = |state: &Plane| !state.is_worn_out && !has_little(state);
            has_little(state) && *is_any_ample.get_or_init(|| planes.iter().any(is_ample))
        };
        // While writes wait, mostly no plane or one plane has room, which this search finds out faster than a choice by load.
        let mut with_room = planes.iter().zip(0..).filter(|(state, _)| has_room(state));
        let (first, plane) = with_room.next()?;
        if with_room.next().is_none() && geometry.dies_per_block == 1 {
            let plane = PlaneId(plane);
            return (!is_full(first)).then(|| allocator.take(geometry.die_of(plane), plane));
        }
        allocator.choose(geometry, device, |plane| {
            let state = &planes[plane.index()];
            let open = state.open[WriteStream::Host.index()];
            (has_room(state) && !is_full(state)).then(|| {
                state.free_blocks() * geometry.pages_per_block + open.room(geometry.pages_per_full_row())
            })
        })
    }

    /// Whether the last programming unit of a stream has pages left.
    #[inline]
    pub fn is_amid_program(&self, geometry: &Geometry, plane: PlaneId, stream: WriteStream) -> bool {
        let open = self.planes[plane.index()].open[self.open_of(stream)];
        !open.is_full() && geometry.place_in_program(Ppn(open.next)) > 0
    }

    /// Whether the host's stream can allocate a page in `plane` now.
    #[inline]
    pub fn has_room(&self, plane: PlaneId) -> bool {
        self.planes[plane.index()].has_room(self.reserve_blocks, self.shares_first_block)
    }

    /// The page that `stream` would allocate now in `plane`; `None` if there is no such page.
    pub fn next_page(&self, geometry: &Geometry, plane: PlaneId, stream: WriteStream) -> Option<Ppn> {
        let state = &self.planes[plane.index()];
        let open = state.open[self.open_of(stream)];
        if !open.is_full() {
            return Some(Ppn(open.next));
        }
        let first = geometry.first_block(plane).0;
        state.free.next().map(|within| geometry.page(BlockId(first + within), 0))
    }

    /// The die of the page that `stream` would allocate now in `plane`; `None` if there is no such page.
    pub fn next_die(&self, geometry: &Geometry, plane: PlaneId, stream: WriteStream) -> Option<DieId> {
        let (block, page) = geometry.split(self.next_page(geometry, plane, stream)?);
        Some(geometry.die_of_page(block, page))
    }

    /// The number of free blocks that `stream` must open in `plane` for `pages` pages.
    pub fn blocks_for(&self, geometry: &Geometry, plane: PlaneId, stream: WriteStream, pages: u32) -> u32 {
        let open = self.planes[plane.index()].open[self.open_of(stream)];
        let of_block = OpenBlock { next: 0, end: geometry.pages_per_block, ..open };
        let row = geometry.pages_per_full_row();
        pages.saturating_sub(open.room(row)).div_ceil(of_block.room(row))
    }

    /// The number of pages that an internal `stream` of `plane` can still allocate.
    pub fn stream_room(&self, geometry: &Geometry, plane: PlaneId, stream: WriteStream) -> u32 {
        let state = &self.planes[plane.index()];
        let open = state.open[self.open_of(stream)];
        let of_block = OpenBlock { next: 0, end: geometry.pages_per_block, ..open };
        let row = geometry.pages_per_full_row();
        open.room(row) + state.free.len() * of_block.room(row)
    }

    /// The number of erased pages of a plane that are not allocated to a program.
    #[inline]
    pub fn free_pages(&self, geometry: &Geometry, plane: PlaneId) -> u32 {
        let state = &self.planes[plane.index()];
        debug_assert_eq!(state.free_pages, state.count_free_pages(geometry.pages_per_block), "free pages");
        state.free_pages
    }

    /// The number of pages of the host's open block that are not allocated.
    pub fn host_pages_open(&self, plane: PlaneId) -> u32 {
        let open = self.planes[plane.index()].open[WriteStream::Host.index()];
        open.left()
    }

    /// The number of pages that `stream` of `plane` can allocate without opening a block.
    pub fn pages_open(&self, geometry: &Geometry, plane: PlaneId, stream: WriteStream) -> u32 {
        self.planes[plane.index()].open[self.open_of(stream)].room(geometry.pages_per_full_row())
    }

    /// The latest block of the host's stream in a plane, and the number of its pages that are allocated.
    pub fn host_open_block(&self, geometry: &Geometry, plane: PlaneId) -> Option<(BlockId, u32)> {
        let open = self.planes[plane.index()].open[WriteStream::Host.index()];
        let last = Ppn(open.end.checked_sub(1)?);
        Some((geometry.block_of(last), geometry.pages_per_block - open.left()))
    }

    /// The number of pages that can be allocated in the open blocks for GC, wear levelling and copybacks.
    pub fn job_pages_open(&self, geometry: &Geometry, plane: PlaneId) -> u32 {
        let open = &self.planes[plane.index()].open;
        let room = |open: &OpenBlock| open.room(geometry.pages_per_full_row());
        let of_gc = room(&open[self.open_of(WriteStream::Gc)]) + room(&open[WriteStream::Wear.index()]);
        if self.needs.copyback.open == 0 {
            return of_gc;
        }
        let copybacks = &open[WriteStream::Copyback(1).index()..];
        of_gc + copybacks.iter().map(room).sum::<u32>()
    }

    /// The number of pages of a plane that can become free for the host: pages that are not valid, without those of the
    /// blocks that are kept from the host or may be open for internal streams.
    pub fn host_spare_pages(&self, geometry: &Geometry, plane: PlaneId) -> u32 {
        self.spare_pages(geometry, plane).saturating_sub(self.taken_blocks * geometry.pages_per_block)
    }

    /// The number of pages of a plane that are not valid and can become free; pages of retired blocks do not count.
    #[inline]
    pub fn spare_pages(&self, geometry: &Geometry, plane: PlaneId) -> u32 {
        let state = &self.planes[plane.index()];
        (state.usable_blocks * geometry.pages_per_block).saturating_sub(state.valid)
    }
}
