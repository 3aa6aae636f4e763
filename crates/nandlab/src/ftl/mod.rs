//! The state of the flash translation layer: the map, the blocks of the planes and their valid pages, the allocation of
//! pages to writes, and the room that a plane has and needs.
//!
//! The FTL executes no flash operations and has no clock. The core adds the transactions that belong to a change of the
//! FTL. Preconditioning changes the FTL without transactions.

pub mod allocation;
mod audit;
mod flush_pages;
mod free_blocks;
pub mod needs;
mod page_map;
mod plane;
mod room;
pub(crate) mod spec;
mod victim;

pub use flush_pages::{FlushMethod, FlushPages, lsb_only_wordlines, programs_per_row};
pub use free_blocks::{FreeBlocks, WearLevelling};
pub use page_map::PageMap;
pub use plane::{AllocatedPage, COPYBACKS_MAX, Plane, STREAMS, WriteStream};
use victim::Picks;
pub use victim::{Candidates, CopyPolicy, LeastValid, VictimPolicy};

use crate::base::geometry::{BlockId, DieId, Geometry, Lpn, PlaneId, Ppn};
use crate::base::huge::Huge;
use crate::base::units::Time;
use crate::flash::{Array, BlockState};
use allocation::Allocator;
use needs::BlockNeeds;
use plane::OpenBlock;

/// The configuration of the FTL of a drive.
#[derive(Debug)]
pub struct Config {
    /// The choice of the plane for a host write.
    pub allocation: allocation::Allocation,
    /// The choice of the free block that is opened next.
    pub levelling: WearLevelling,
    /// The choice of the block that is emptied next.
    pub victim: Box<dyn VictimPolicy>,
    /// The blocks that every plane needs beyond the pages of its LPNs.
    pub needs: BlockNeeds,
    /// The number of LPNs of translation pages, which follow those of the host.
    pub translation_pages: u32,
    /// The number of LPNs of combination pages, which follow those of translation pages.
    pub combination_pages: u32,
}

/// The map, the planes and their policies.
#[derive(Clone, Debug)]
pub struct Ftl {
    /// LPN to PPN: the newest mapping of every LPN. The LPNs of translation pages follow those of the host, and the
    /// LPNs of combination pages follow those of translation pages.
    pub map: PageMap,
    /// The first LPN of translation pages, the first LPN of combination pages, and the number of combination pages.
    first_translation: u32,
    first_combination: u32,
    combination_pages: u32,
    /// All planes.
    pub planes: Box<[Plane]>,
    /// The choice of the plane for a host write.
    pub allocator: Allocator,
    pub(crate) picks: Picks,
    index: LeastValid,
    /// Valid pages, one bit each; every block starts a new word.
    valid: Huge<u64>,
    words_per_block: usize,
    levelling: WearLevelling,
    /// The blocks that every plane needs beyond the pages of its LPNs.
    pub needs: BlockNeeds,
    /// Whether GC moves pages to the open block of the host.
    pub shares_first_block: bool,
    /// Free blocks of a plane that only internal streams and the emergency flush may take.
    pub reserve_blocks: u32,
    /// The part of `reserve_blocks` that is kept for an emergency flush.
    flush_reserve_blocks: u32,
    /// The part of `reserve_blocks` that the job under way may take.
    job_blocks: u32,
    /// Blocks of a plane that GC cannot collect while the host waits: those kept free, and those open for internal
    /// streams.
    taken_blocks: u32,
}

/// Free blocks that an emergency flush leaves for GC's first job after power returns.
const FLUSH_KEEPS_BLOCKS: u32 = 1;

impl Ftl {
    /// Creates the FTL of an erased drive.
    pub fn new(config: Config, geometry: &Geometry, array: &Array) -> Self {
        let words_per_block = (geometry.pages_per_block as usize).div_ceil(64);
        let Config { allocation, levelling, victim, needs, translation_pages, combination_pages } = config;
        let plane = |plane: u32| {
            let mut free = FreeBlocks::default();
            let blocks = geometry.blocks_of(PlaneId(plane));
            for (within, block) in (0..).zip(&array.blocks[blocks]) {
                free.push(levelling, within, block.pe_cycles);
            }
            Plane {
                free_pages: free.len() * geometry.pages_per_block,
                free,
                open: Default::default(),
                valid: 0,
                combinations: 0,
                promised_blocks: 0,
                promised_pages: 0,
                is_worn_out: false,
                usable_blocks: geometry.blocks_in(PlaneId(plane)),
                erases_unchecked: 0,
            }
        };
        let first_combination = geometry.logical_pages + translation_pages;
        Self {
            map: PageMap::new(first_combination + combination_pages),
            first_translation: geometry.logical_pages,
            first_combination,
            combination_pages,
            planes: (0..geometry.planes).map(plane).collect(),
            allocator: Allocator::new(allocation, geometry),
            picks: Picks::new(victim),
            index: LeastValid::new(geometry.planes, geometry.blocks_per_plane),
            valid: Huge::zeroed(words_per_block * geometry.blocks as usize),
            words_per_block,
            levelling,
            shares_first_block: needs.gc.open == 0,
            reserve_blocks: needs.free() as u32,
            flush_reserve_blocks: needs.flush.free as u32,
            job_blocks: needs.job() as u32,
            taken_blocks: (needs.free() + needs.open()) as u32,
            needs,
        }
    }

    /// The first LPN of combination pages, and the number of these LPNs.
    pub fn combination_lpns(&self) -> (u32, u32) {
        (self.first_combination, self.combination_pages)
    }

    /// The index in [`Plane::open`] of the open block of a stream.
    #[inline(always)]
    fn open_of(&self, stream: WriteStream) -> usize {
        if self.shares_first_block && stream == WriteStream::Gc {
            WriteStream::Host.index()
        } else {
            stream.index()
        }
    }

    /// Allocates the next page of `stream` in `plane`, if necessary in a newly opened block. The host's stream leaves
    /// the plane its reserve and, in a block shared with GC, the pages for copies ([`Plane::has_room`]). `None` if the
    /// stream has no page left and may not take a free block.
    #[inline]
    pub fn allocate(
        &mut self,
        geometry: &Geometry,
        array: &mut Array,
        plane: PlaneId,
        stream: WriteStream,
    ) -> Option<AllocatedPage> {
        let state = &self.planes[plane.index()];
        let mut keep = 0;
        if stream == WriteStream::Host {
            if self.shares_first_block && !state.has_room(self.reserve_blocks, true) {
                return None;
            }
            keep = self.reserve_blocks + state.promised_blocks;
        }
        self.allocate_keeping(geometry, array, plane, stream, keep)
    }

    /// Allocates the next page of `stream` in `plane`, and leaves the plane at least `keep` free blocks.
    #[inline]
    fn allocate_keeping(
        &mut self,
        geometry: &Geometry,
        array: &mut Array,
        plane: PlaneId,
        stream: WriteStream,
        keep: u32,
    ) -> Option<AllocatedPage> {
        let index = self.open_of(stream);
        let state = &mut self.planes[plane.index()];
        let opened = state.open[index].is_full();
        if opened {
            if state.free.len() <= keep {
                return None;
            }
            let block =
                if stream == WriteStream::Wear { state.free.pop_most_worn() } else { state.free.pop() }?;
            let block = BlockId(geometry.first_block(plane).0 + block);
            let of_block = array.block_mut(block);
            (of_block.state, of_block.copybacks) = (BlockState::Open, stream.copybacks());
            state.begin(index, geometry.page(block, 0), geometry.pages_per_block);
        }
        Some(AllocatedPage { opened, ..state.take(index, geometry) })
    }

    /// At power failure, takes back the pages allocated to programs that will never begin, in the streams to which the
    /// flush writes. `programmed` returns the number of pages of a block that will have been programmed.
    pub fn take_back_queued(&mut self, geometry: &Geometry, programmed: impl Fn(BlockId) -> u32) {
        for plane in &mut self.planes {
            for stream in [WriteStream::Host, WriteStream::Combination, WriteStream::Gc] {
                let open = &mut plane.open[stream.index()];
                // A block whose pages are all allocated may have been erased and opened for another stream by now.
                if !open.is_full() {
                    let first = open.end - geometry.pages_per_block;
                    let next = first + programmed(geometry.block_of(Ppn(first)));
                    plane.free_pages += open.next.saturating_sub(next);
                    open.next = open.next.min(next);
                }
            }
        }
    }

    /// The plane of `die` to which a plain emergency flush writes next: the one with the most room.
    pub fn flush_plane(&self, geometry: &Geometry, die: DieId) -> Option<PlaneId> {
        let room = |plane: &PlaneId| self.flush_room(geometry, *plane);
        geometry.planes_of(die).reduce(|a, b| if room(&b) > room(&a) { b } else { a })
    }

    /// The pages of a plane that a plain emergency flush can write.
    pub fn flush_room(&self, geometry: &Geometry, plane: PlaneId) -> u32 {
        let open = self.planes[plane.index()].open[WriteStream::Host.index()];
        open.room(geometry.pages_per_full_row()) + self.flush_blocks(plane) * geometry.pages_per_block
    }

    /// Allocates a flash page for an emergency flush from the host's stream, in [`Ftl::flush_plane`] of `die`. Returns its
    /// first page, with the pages after the flash page that remain erased. The stream must not be amid a flash page. `None`
    /// also if the next flash page of a block on several dies is on another die.
    pub fn allocate_for_flush(
        &mut self,
        geometry: &Geometry,
        array: &mut Array,
        die: DieId,
    ) -> Option<AllocatedPage> {
        let plane = self.flush_plane(geometry, die)?;
        if self.next_die(geometry, plane, WriteStream::Host)? != die {
            return None;
        }
        self.allocate_program(geometry, array, (plane, WriteStream::Host), FLUSH_KEEPS_BLOCKS)
    }

    /// Allocates what one program writes, and leaves the plane at least `keep` free blocks. Returns its first page, with the
    /// pages after the program that remain erased. The stream must not be amid a programming unit.
    pub fn allocate_program(
        &mut self,
        geometry: &Geometry,
        array: &mut Array,
        (plane, stream): (PlaneId, WriteStream),
        keep: u32,
    ) -> Option<AllocatedPage> {
        let mut page = self.allocate_keeping(geometry, array, plane, stream, keep)?;
        debug_assert!(geometry.place_in_program(page.ppn) == 0, "the stream is amid a programming unit");
        let index = self.open_of(stream);
        for _ in 1..geometry.pages_per_program {
            page.skips = self.planes[plane.index()].take(index, geometry).skips;
        }
        Some(page)
    }

    /// Takes a free block for an emergency flush, from the plane of `die` that has the most free blocks.
    pub fn take_flush_block(
        &mut self,
        geometry: &Geometry,
        array: &mut Array,
        die: DieId,
    ) -> Option<BlockId> {
        let blocks = |plane: &PlaneId| self.flush_blocks(*plane);
        let plane = geometry.planes_of(die).reduce(|a, b| if blocks(&b) > blocks(&a) { b } else { a })?;
        if self.flush_blocks(plane) == 0 {
            return None;
        }
        let state = &mut self.planes[plane.index()];
        let within = state.free.pop()?;
        state.free_pages -= geometry.pages_per_block;
        let block = BlockId(geometry.first_block(plane).0 + within);
        array.block_mut(block).state = BlockState::Open;
        Some(block)
    }

    /// Makes the stream that fills `block` continue in another block, unless a page of `block` is allocated and not
    /// among its first `programmed` pages. Returns whether the stream has left the block.
    pub fn leave_open_block(
        &mut self,
        geometry: &Geometry,
        plane: PlaneId,
        block: BlockId,
        programmed: u32,
    ) -> bool {
        let first = geometry.page(block, 0).0;
        let end = first + geometry.pages_per_block;
        let state = &mut self.planes[plane.index()];
        match state.open.iter_mut().find(|open| !open.is_full() && open.end == end) {
            Some(open) if open.next == first + programmed => {
                state.free_pages -= open.left();
                open.next = open.end;
                true
            }
            // A page is allocated but not programmed, or the block belongs to an emergency flush.
            _ => false,
        }
    }

    /// Returns a block from [`Ftl::take_flush_block`] to the free blocks. No page of the block may be programmed.
    pub fn give_back(&mut self, geometry: &Geometry, array: &mut Array, block: BlockId) {
        let plane = geometry.plane_of(block);
        let of_block = array.block_mut(block);
        of_block.state = BlockState::Free;
        let within = block.0 - geometry.first_block(plane).0;
        let state = &mut self.planes[plane.index()];
        state.free.push(self.levelling, within, of_block.pe_cycles);
        state.free_pages += geometry.pages_per_block;
    }

    /// Whether a stream uses only LSB pages.
    pub fn is_lsb_only(&self, plane: PlaneId, stream: WriteStream) -> bool {
        self.planes[plane.index()].open[self.open_of(stream)].skips > 0
    }

    /// Whether pages of a wordline that a stream has not filled are allocated, and other pages depend on them
    /// ([`Geometry::left_in_wordlines`]).
    pub fn is_amid_wordline(&self, geometry: &Geometry, plane: PlaneId, stream: WriteStream) -> bool {
        let open = self.planes[plane.index()].open[self.open_of(stream)];
        !open.is_full() && geometry.left_in_wordlines(geometry.split(Ppn(open.next)).1) > 0
    }

    /// Makes a stream use only LSB pages, or all pages again. To use only LSB pages, the stream must not be amid a
    /// wordline ([`Ftl::is_amid_wordline`]).
    pub fn set_lsb_only(&mut self, geometry: &Geometry, plane: PlaneId, stream: WriteStream, is_on: bool) {
        debug_assert!(
            !is_on || !self.is_amid_wordline(geometry, plane, stream),
            "the stream is amid a wordline"
        );
        let index = self.open_of(stream);
        let skips = if is_on { geometry.dependent_pages() - 1 } else { 0 };
        self.planes[plane.index()].open[index].set_skips(skips, geometry.pages_per_full_row());
    }

    /// Whether an LPN is the LPN of a combination page.
    #[inline(always)]
    pub fn is_combination(&self, lpn: Lpn) -> bool {
        // `DEAD_LPN`, which a page without data has, is beyond all LPNs.
        lpn.0.wrapping_sub(self.first_combination) < self.combination_pages
    }

    /// Whether an LPN is the LPN of a translation page.
    #[inline(always)]
    pub fn is_translation(&self, lpn: Lpn) -> bool {
        (self.first_translation..self.first_combination).contains(&lpn.0)
    }

    /// The stream to which a job moves a page of `lpn` off-chip.
    #[inline]
    pub fn copy_stream(&self, lpn: Lpn, is_wear: bool) -> WriteStream {
        if lpn.0 >= self.first_translation {
            if self.is_translation(lpn) {
                return WriteStream::Mapping;
            } else if self.is_combination(lpn) {
                return WriteStream::Combination;
            }
        }
        if is_wear { WriteStream::Wear } else { WriteStream::Gc }
    }

    /// The stream to which a job moves the pages of `block` off-chip. It follows from one page, because translation
    /// pages and data never share a block.
    pub fn emptying_stream(
        &self,
        geometry: &Geometry,
        array: &Array,
        block: BlockId,
        is_wear: bool,
    ) -> WriteStream {
        let page = self.next_valid(geometry, block, 0);
        let lpn = page.map_or(Lpn(0), |page| array.lpn(geometry.page(block, page)));
        self.copy_stream(lpn, is_wear)
    }

    /// The number of mapped logical pages of the host.
    pub fn host_pages_mapped(&self) -> u32 {
        let others = (self.first_translation..self.map.len()).filter(|&lpn| self.map.get(Lpn(lpn)).is_some());
        self.map.mapped() - others.count() as u32
    }

    #[inline(always)]
    fn bit(&self, block: BlockId, page: u32) -> (usize, u64) {
        (block.index() * self.words_per_block + page as usize / 64, 1 << (page % 64))
    }

    /// Prefetches into the CPU's cache whether a page is valid.
    #[inline(always)]
    pub(crate) fn prefetch_valid(&self, block: BlockId, page: u32) {
        self.valid.prefetch(self.bit(block, page).0);
    }

    /// Whether a page is valid.
    #[inline(always)]
    pub fn is_valid(&self, geometry: &Geometry, ppn: Ppn) -> bool {
        let (block, page) = geometry.split(ppn);
        let (word, bit) = self.bit(block, page);
        self.valid[word] & bit != 0
    }

    /// The first valid page of `block` at or after page `from`.
    #[inline]
    pub fn next_valid(&self, geometry: &Geometry, block: BlockId, from: u32) -> Option<u32> {
        let words = &self.valid[block.index() * self.words_per_block..][..self.words_per_block];
        let mut word = from as usize / 64;
        if from >= geometry.pages_per_block {
            return None;
        }
        let mut bits = words[word] & (!0 << (from % 64));
        while bits == 0 {
            word += 1;
            bits = *words.get(word)?;
        }
        Some(word as u32 * 64 + bits.trailing_zeros())
    }

    /// Maps `lpn` to `ppn`, which becomes valid. Returns the page to which `lpn` was mapped before; this page is now
    /// invalid.
    #[inline]
    pub fn remap(&mut self, geometry: &Geometry, array: &mut Array, lpn: Lpn, ppn: Ppn) -> Option<Ppn> {
        let old = self.map.set(lpn, ppn);
        let (block, page) = geometry.split(ppn);
        let (word, bit) = self.bit(block, page);
        self.valid[word] |= bit;
        array.block_mut(block).valid += 1;
        self.planes[geometry.plane_of(block).index()].valid += 1;
        if let Some(old) = old {
            self.invalidate(geometry, array, old);
        }
        if self.is_combination(lpn) {
            self.count_combination(geometry, Some(ppn), old);
        }
        old
    }

    /// Counts a combination page as valid at `now`, and no longer as valid at `before`.
    #[cold]
    fn count_combination(&mut self, geometry: &Geometry, now: Option<Ppn>, before: Option<Ppn>) {
        let plane = |ppn: Ppn| geometry.plane_of(geometry.block_of(ppn)).index();
        if let Some(ppn) = now {
            self.planes[plane(ppn)].combinations += 1;
        }
        if let Some(ppn) = before {
            self.planes[plane(ppn)].combinations -= 1;
        }
    }

    /// Unmaps `lpn`. Returns the page to which `lpn` was mapped; this page is now invalid.
    #[inline]
    pub fn unmap(&mut self, geometry: &Geometry, array: &mut Array, lpn: Lpn) -> Option<Ppn> {
        let old = self.map.clear(lpn)?;
        self.invalidate(geometry, array, old);
        if self.is_combination(lpn) {
            self.count_combination(geometry, None, Some(old));
        }
        Some(old)
    }

    #[inline]
    fn invalidate(&mut self, geometry: &Geometry, array: &mut Array, ppn: Ppn) -> BlockId {
        let (block, page) = geometry.split(ppn);
        let (word, bit) = self.bit(block, page);
        debug_assert!(
            self.valid[word] & bit != 0,
            "page {} to be invalidated is invalid already",
            geometry.show(ppn)
        );
        self.valid[word] &= !bit;
        let plane = geometry.plane_of(block);
        self.planes[plane.index()].valid -= 1;
        let state = array.block_mut(block);
        state.valid -= 1;
        if state.state == BlockState::Full {
            self.index.lower(plane, block.0 - geometry.first_block(plane).0, state.valid);
        }
        block
    }

    /// Closes `block`: the block becomes full, a candidate for GC.
    pub fn close(&mut self, geometry: &Geometry, array: &mut Array, block: BlockId, now: Time) {
        let plane = geometry.plane_of(block);
        let within = block.0 - geometry.first_block(plane).0;
        let state = array.block_mut(block);
        state.state = BlockState::Full;
        state.closed_at = now;
        self.index.lower(plane, within, state.valid);
        self.picks.on_closed(plane, within);
    }

    /// Whether GC can gain pages in `plane`, because a full block has a programming unit's worth of invalid pages.
    pub fn has_garbage(&self, geometry: &Geometry, plane: PlaneId) -> bool {
        self.index.fewest(plane).saturating_add(geometry.pages_per_program) <= geometry.pages_per_block
    }

    /// The victim that the policy picks; `None` if no full block has an invalid page. The policy may pick a full block
    /// without invalid pages, as `fifo` does.
    pub fn pick_victim(
        &mut self,
        geometry: &Geometry,
        array: &Array,
        plane: PlaneId,
        now: Time,
    ) -> Option<BlockId> {
        if !self.has_garbage(geometry, plane) {
            return None;
        }
        let candidates = Self::candidates(geometry, array, plane, now, &self.index);
        let within = self.picks.pick(&candidates)?;
        Some(BlockId(geometry.first_block(plane).0 + within))
    }

    /// The full block with the fewest valid pages, which the policy `greedy` picks; `None` without full blocks.
    pub fn least_valid(
        &self,
        geometry: &Geometry,
        array: &Array,
        plane: PlaneId,
        now: Time,
    ) -> Option<BlockId> {
        let within = Self::candidates(geometry, array, plane, now, &self.index).least_valid()?;
        Some(BlockId(geometry.first_block(plane).0 + within))
    }

    fn candidates<'a>(
        geometry: &Geometry,
        array: &'a Array,
        plane: PlaneId,
        now: Time,
        index: &'a LeastValid,
    ) -> Candidates<'a> {
        let blocks = &array.blocks[geometry.blocks_of(plane)];
        Candidates { plane, blocks, pages_per_block: geometry.pages_per_block, now, index }
    }

    /// Makes `block` a victim: it is no longer a candidate.
    pub fn begin_emptying(&mut self, geometry: &Geometry, array: &mut Array, block: BlockId) {
        array.block_mut(block).state = BlockState::Victim;
        let plane = geometry.plane_of(block);
        let first = geometry.first_block(plane);
        let blocks = &array.blocks[geometry.blocks_of(plane)];
        self.index.leave(plane, block.0 - first.0, blocks);
    }

    /// Makes `block`, which has been erased, free. Retires it instead if it has reached `endurance` P/E cycles.
    pub fn release(&mut self, geometry: &Geometry, array: &mut Array, block: BlockId, endurance: u32) {
        let plane = geometry.plane_of(block);
        let within = block.0 - geometry.first_block(plane).0;
        let state = &mut self.planes[plane.index()];
        state.erases_unchecked += 1;
        let block = array.block_mut(block);
        if block.pe_cycles >= endurance {
            block.state = BlockState::Retired;
            state.usable_blocks -= 1;
        } else {
            block.state = BlockState::Free;
            state.free.push(self.levelling, within, block.pe_cycles);
            state.free_pages += geometry.pages_per_block;
            state.is_worn_out = false;
        }
    }

    /// Updates the order of the free blocks after their P/E cycles have risen without an erase.
    pub fn on_worn(&mut self, geometry: &Geometry, array: &Array) {
        for (plane, state) in (0..geometry.planes).map(PlaneId).zip(&mut self.planes) {
            let blocks = &array.blocks[geometry.blocks_of(plane)];
            state.free.on_worn(self.levelling, |within| blocks[within as usize].pe_cycles);
        }
    }

    /// Rebuilds a plane's free list from the states of its blocks, for a loaded drive, and sets its open blocks. `open`
    /// has the next page of each stream.
    pub fn restore_plane(
        &mut self,
        geometry: &Geometry,
        array: &Array,
        plane: PlaneId,
        open: [Option<Ppn>; STREAMS],
    ) {
        let blocks = &array.blocks[geometry.blocks_of(plane)];
        let state = &mut self.planes[plane.index()];
        state.free = FreeBlocks::default();
        for (within, block) in blocks.iter().enumerate() {
            if block.state == BlockState::Free {
                state.free.push(self.levelling, within as u32, block.pe_cycles);
            }
        }
        state.usable_blocks = blocks.iter().filter(|b| b.state.is_usable()).count() as u32;
        state.open = open.map(|next| {
            next.map_or(OpenBlock::default(), |next| {
                let (block, _) = geometry.split(next);
                let end = geometry.page(block, 0).0 + geometry.pages_per_block;
                OpenBlock { next: next.0, end, ..OpenBlock::default() }
            })
        });
        state.free_pages = state.count_free_pages(geometry.pages_per_block);
    }
}
