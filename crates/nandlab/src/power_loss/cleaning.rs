//! GC that goes on during a plain emergency flush (`power.gc_in_flush`).
//!
//! Before the flush writes a page to a plane where foreground GC is due, or which has no page left, GC cleans a block
//! of the plane: it reads the valid pages of a victim and programs them to the plane's stream of GC, one page after
//! another, and erases the victim when all copies have ended. Meanwhile the die writes no page of the flush. The plane
//! then takes as many pages of the flush as the cleaning has gained, before the next cleaning begins.
//!
//! The victim is the full block with the fewest valid pages. A block is left out if an operation that power loss has
//! dropped would have read it or replaced one of its pages (these blocks keep their pins: such a page may be the newest
//! in flash), if it has pages of the demand map or of partial refresh, if its erase would retire it, or if it has fewer
//! invalid pages than the capability assumes. The victims of interrupted jobs are left to the time after recovery.
//!
//! Every operation begins only if the remaining energy covers it to its end. A copy has the sequence number of its
//! source, so recovery takes the copy or the source.

use super::flush::{Flush, Needed, under_way};
use super::{Means, Outage, PowerLoss, Schemes};
use crate::base::geometry::{BlockId, DieId, Lpn, PlaneId, Ppn};
use crate::base::units::{Span, Time};
use crate::core::{Core, Maps, Program, Read, To};
use crate::flash::BlockState;
use crate::ftl::WriteStream;
use crate::probe::Probe;
use crate::sched::{Cause, Class, FlashOp, NEVER, Owner, Phase, Slot, Start, Transaction};
use std::collections::{BTreeMap, BTreeSet};

/// GC during an emergency flush.
#[derive(Clone, Copy, Debug)]
pub(crate) struct GcMeans {
    /// Energy of a try of a read, in joules.
    pub(crate) read_j: f64,
    /// Energy of an erase, in joules.
    pub(crate) erase_j: f64,
    /// The fewest invalid pages of a victim, at least 1.
    pub(crate) gain_min: u32,
}

/// A block that GC cleans.
#[derive(Clone, Copy, Debug)]
struct Cleaning {
    plane: PlaneId,
    victim: BlockId,
    /// The page of the victim at which the search for the next valid page begins.
    next_page: u32,
    /// The page of the victim that is being copied.
    source: Ppn,
}

/// The cleanings of a flush.
#[derive(Debug, Default)]
pub(super) struct Cleanings {
    gc: Option<GcMeans>,
    by_die: BTreeMap<DieId, Cleaning>,
    /// By plane, the pages that the flush may write before the next cleaning.
    gained: Box<[u32]>,
    /// Pages in decoding, by the time at which decoding ends and the die.
    decoding: BTreeMap<(Time, DieId), Slot>,
    /// The submission number of the first operation of the flush.
    from: u64,
}

impl Cleanings {
    pub(super) fn new<P: Probe>(gc: Option<GcMeans>, core: &mut Core<P>) -> Self {
        let Some(gc) = gc else { return Self::default() };
        // Jobs and the erases of dead blocks that have not begun are dropped.
        core.room.spaces.iter_mut().for_each(|space| space.soon_free = 0);
        core.ftl.planes.iter_mut().for_each(|plane| plane.promised_blocks = 0);
        Self {
            gc: Some(gc),
            gained: vec![0; core.geometry.planes as usize].into(),
            from: core.pool.next_order(),
            ..Self::default()
        }
    }

    /// The number of blocks that are being cleaned, each on its own die.
    pub(super) fn under_way(&self) -> usize {
        self.by_die.len()
    }

    /// Whether a block of the die is being cleaned.
    pub(super) fn is_at(&self, die: DieId) -> bool {
        self.by_die.contains_key(&die)
    }

    /// Whether a cleaning has begun this operation.
    pub(super) fn has_begun(&self, transaction: &Transaction) -> bool {
        let is_of_job = matches!(transaction.owner, Owner::Job(_));
        self.gc.is_some() && is_of_job && transaction.order >= self.from
    }

    /// The flush has written a page to a plane.
    pub(super) fn use_gain(&mut self, plane: PlaneId) {
        if let Some(pages) = self.gained.get_mut(plane.index()) {
            *pages = pages.saturating_sub(1);
        }
    }
}

impl<P: Probe, S: Schemes<P>> Outage<'_, P, S> {
    /// Removes from the map the pages whose program was queued and has been dropped: the flush may write other data to
    /// these pages.
    pub(super) fn unmap_queued(&mut self) {
        let mut begun = BTreeSet::new();
        for transaction in under_way(self.core) {
            begun.insert(transaction.ppn);
        }
        let Core { geometry, array, ftl, .. } = &mut *self.core;
        for block in (0..geometry.blocks).map(BlockId) {
            if array.block(block).state != BlockState::Open {
                continue;
            }
            for page in array.block(block).programmed..geometry.pages_per_block {
                let ppn = geometry.page(block, page);
                let lpn = array.lpn(ppn);
                if lpn.0 < geometry.logical_pages && ftl.map.get(lpn) == Some(ppn) && !begun.contains(&ppn) {
                    ftl.unmap(geometry, array, lpn);
                }
            }
        }
    }

    /// Maps an LPN to the page that the flush or its GC has programmed.
    pub(super) fn remap(&mut self, lpn: Lpn, ppn: Ppn) {
        let Core { geometry, array, ftl, .. } = &mut *self.core;
        ftl.remap(geometry, array, lpn, ppn);
        self.remapped.push(lpn);
    }

    /// Begins cleanings on idle dies that need space for the next of the `pages` dirty pages: at most one for each page
    /// that is left.
    pub(super) fn begin_cleanings(
        &mut self,
        means: &Means,
        flush: &mut Flush,
        pages: usize,
        loss: &mut PowerLoss,
    ) {
        let Some(gc) = flush.cleanings.gc else { return };
        for die in (0..self.core.geometry.dies).map(DieId) {
            let cleanings = flush.cleanings.under_way();
            let has_slot = flush.under_way + (cleanings as u32) < means.at_a_time;
            if flush.is_over || flush.next + cleanings >= pages || !has_slot {
                return;
            }
            if self.core.device.phase(die) != Phase::Idle || flush.cleanings.is_at(die) {
                continue;
            }
            let Some(plane) = self.core.ftl.flush_plane(&self.core.geometry, die) else { continue };
            let is_full = self.core.ftl.flush_room(&self.core.geometry, plane) == 0;
            if flush.cleanings.gained[plane.index()] > 0 || !is_full && !self.core.is_short(plane) {
                continue;
            }
            let Some(victim) = self.victim(plane, gc.gain_min) else { continue };
            let Core { geometry, array, ftl, .. } = &mut *self.core;
            ftl.begin_emptying(geometry, array, victim);
            flush.cleanings.gained[plane.index()] = geometry.pages_per_block - array.block(victim).valid;
            let source = geometry.page(victim, 0);
            flush.cleanings.by_die.insert(die, Cleaning { plane, victim, next_page: 0, source });
            self.continue_cleaning(means, flush, pages, loss, die);
        }
    }

    /// The full block of a plane with the fewest valid pages, among those that GC may clean during the flush.
    fn victim(&self, plane: PlaneId, gain_min: u32) -> Option<BlockId> {
        let core = &*self.core;
        let room = core.stream_room(plane, WriteStream::Gc);
        let may_be = |&block: &BlockId| {
            let state = core.array.block(block);
            let valid = state.valid;
            state.state == BlockState::Full
                && (state.pins, state.linked) == (0, 0)
                && valid + gain_min <= core.geometry.pages_per_block
                && valid <= room
                && !core.retires(block)
                && core.emptying_stream(block, false) == WriteStream::Gc
        };
        let blocks = core.geometry.block_ids_of(plane).filter(may_be);
        blocks.min_by_key(|&block| (core.array.block(block).valid, block.0))
    }

    /// Begins the next operation of the cleaning on a die. The cleaning ends if no page of the flush is left or the
    /// energy is used up.
    fn continue_cleaning(
        &mut self,
        means: &Means,
        flush: &mut Flush,
        pages: usize,
        loss: &mut PowerLoss,
        die: DieId,
    ) {
        let (Some(gc), Some(&cleaning)) = (flush.cleanings.gc, flush.cleanings.by_die.get(&die)) else {
            return;
        };
        let Cleaning { plane, victim, next_page, .. } = cleaning;
        let next = self.core.ftl.next_valid(&self.core.geometry, victim, next_page);
        let timing = self.core.device.timing();
        let needed = match next {
            Some(_) => Needed::read(self.wait_ns(), timing.longest_try_ns(), gc.read_j),
            None => Needed { ns: timing.erase_ns, program_ns: Span::ZERO, joules: gc.erase_j },
        };
        if flush.is_over || flush.next >= pages || !self.take_energy(means, flush, loss, needed) {
            flush.cleanings.by_die.remove(&die);
            return;
        }
        let (owner, cause, class) = (Owner::Job(plane), Cause::Gc, Class::Background);
        match next {
            Some(page) => {
                let ppn = self.core.geometry.page(victim, page);
                let cleaning = Cleaning { next_page: page + 1, source: ppn, ..cleaning };
                flush.cleanings.by_die.insert(die, cleaning);
                let lpn = self.core.array.lpn(ppn);
                let start = Start::Policy;
                self.core.read(Read { ppn, lpn, owner, cause, class, start, page_level: 0 });
            }
            None => self.core.erase(victim, owner, cause, class),
        }
        self.core.start_dies();
    }

    /// A try of a read of a cleaning has left its die: decoding begins.
    pub(super) fn decode(&mut self, flush: &mut Flush, slot: Slot, loss: &mut PowerLoss) {
        let read = self.core.pool[slot];
        let decode_ns = self.core.device.timing().read(read.page, read.level, read.tries > 0).decode_ns;
        flush.cleanings.decoding.insert((self.core.now + decode_ns, read.die), slot);
        loss.flush_ns = self.core.now - loss.at;
        self.set_decoder(flush);
    }

    fn set_decoder(&mut self, flush: &Flush) {
        let first = flush.cleanings.decoding.first_key_value().map_or(NEVER, |(&(time, _), _)| time);
        self.core.set_clock(self.core.idle_clock(), first);
    }

    /// The decoding of a try has ended: reads the page once more, or programs the page in another block.
    pub(super) fn on_decoded(
        &mut self,
        means: &Means,
        flush: &mut Flush,
        pages: usize,
        loss: &mut PowerLoss,
    ) {
        let (_, slot) = flush.cleanings.decoding.pop_first().expect("a page is being decoded");
        self.set_decoder(flush);
        loss.flush_ns = self.core.now - loss.at;
        let read = self.core.pool[slot];
        let is_failed = read.is_tried_again(self.core.physics.ecc.levels());
        if is_failed && !flush.is_over && flush.next < pages {
            let gc = flush.cleanings.gc.expect("GC goes on");
            let timing = self.core.device.timing();
            let needed = Needed::read(self.wait_ns(), timing.longest_try_ns(), gc.read_j);
            if self.take_energy(means, flush, loss, needed) {
                self.core.try_again(slot);
                self.core.start_dies();
                return;
            }
        }
        self.core.pool.remove(slot);
        let block = self.core.geometry.block_of(read.ppn);
        self.core.array.block_mut(block).pins -= 1;
        self.core.count_ended(FlashOp::Read, Cause::Gc);
        self.core.array.read(&self.core.geometry, block, read.page);
        if flush.is_over || flush.next >= pages {
            flush.cleanings.by_die.remove(&read.die);
        } else if self.core.ftl.map.get(read.lpn) == Some(read.ppn) {
            self.copy(means, flush, loss, &read);
        } else {
            // The flush has written the page meanwhile.
            self.continue_cleaning(means, flush, pages, loss, read.die);
        }
    }

    /// Programs a page that has been read to the stream of GC.
    fn copy(&mut self, means: &Means, flush: &mut Flush, loss: &mut PowerLoss, read: &Transaction) {
        let plane = self.core.geometry.plane_of(self.core.geometry.block_of(read.ppn));
        let place = self.core.allocate(plane, WriteStream::Gc).expect("the stream has room for the victim");
        let (_, page) = self.core.geometry.split(place.ppn);
        if !self.take_energy_for(means, flush, loss, page) {
            flush.cleanings.by_die.remove(&read.die);
            return;
        }
        if self.core.array.is_partial(read.ppn) {
            self.core.array.mark_partial(place.ppn);
        }
        let stamp = self.core.stamp_of_copy(read);
        let (to, maps, owner) = (To::Allocated(place, WriteStream::Gc), Maps::Nothing, Owner::Job(plane));
        let (lpn, cause, class) = (read.lpn, Cause::Gc, Class::Background);
        let queued = self.core.program(Program { to, lpn, stamp, maps, owner, cause, class });
        queued.expect("the program has its allocated page");
        self.core.start_dies();
    }

    /// A program or the erase of a cleaning has ended.
    pub(super) fn on_cleaned(
        &mut self,
        means: &Means,
        flush: &mut Flush,
        pages: usize,
        loss: &mut PowerLoss,
        done: &Transaction,
    ) {
        if done.kind == FlashOp::Erase {
            loss.gc_erases += 1;
            flush.cleanings.by_die.remove(&done.die);
            return;
        }
        loss.gc_pages += 1;
        if let Some(cleaning) = flush.cleanings.by_die.get(&done.die)
            && self.core.ftl.map.get(done.lpn) == Some(cleaning.source)
        {
            self.remap(done.lpn, done.ppn);
        }
        self.continue_cleaning(means, flush, pages, loss, done.die);
    }
}
