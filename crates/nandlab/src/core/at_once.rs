//! Programs and erases outside simulated time, for preconditioning.

use super::Core;
use crate::base::geometry::{Lpn, PlaneId};
use crate::flash::{BlockState, DEAD_LPN, Stamp};
use crate::ftl::{AllocatedPage, WriteStream};
use crate::probe::Probe;

impl<P: Probe> Core<P> {
    /// Programs a page without simulated time, and calls `on_mapped` if the page has an LPN. Returns whether the
    /// allocation has opened a block.
    #[inline]
    pub(crate) fn program_now(
        &mut self,
        plane: PlaneId,
        stream: WriteStream,
        lpn: Lpn,
        sequence: u64,
        mut on_mapped: impl FnMut(Lpn),
    ) -> bool {
        let AllocatedPage { ppn, opened, .. } = self.allocate(plane, stream).expect("the plane has room");
        let (block, page) = self.geometry.split(ppn);
        self.array.stage(ppn, lpn, Stamp { sequence, corrected: self.physics.initial_ages.of_next(block) });
        let is_closed = self.array.program(block, page) == self.geometry.pages_per_block;
        if lpn.0 != DEAD_LPN {
            self.ftl.remap(&self.geometry, &mut self.array, lpn, ppn);
            on_mapped(lpn);
        }
        if is_closed {
            self.ftl.close(&self.geometry, &mut self.array, block, self.now);
        }
        opened
    }

    /// Empties and erases a victim without simulated time. Returns the number of pages moved, or `None` if there is no
    /// victim or no room for its pages.
    pub(crate) fn collect_now(&mut self, plane: PlaneId, mut on_mapped: impl FnMut(Lpn)) -> Option<u64> {
        let victim = self.ftl.pick_victim(&self.geometry, &self.array, plane, self.now)?;
        let moved = self.valid_pages(victim);
        let stream = self.emptying_stream(victim, false);
        if moved > self.stream_room(plane, stream) {
            return None;
        }
        self.ftl.begin_emptying(&self.geometry, &mut self.array, victim);
        let mut page = 0;
        while let Some(next) = self.ftl.next_valid(&self.geometry, victim, page) {
            page = next + 1;
            let ppn = self.geometry.page(victim, next);
            let (lpn, sequence) = (self.array.lpn(ppn), self.array.stamp(ppn).sequence);
            self.program_now(plane, stream, lpn, sequence, &mut on_mapped);
        }
        debug_assert!(self.array.block(victim).state == BlockState::Victim);
        self.array.erase(&self.geometry, victim);
        self.ftl.release(&self.geometry, &mut self.array, victim, self.room.endurance);
        Some(u64::from(moved))
    }
}
