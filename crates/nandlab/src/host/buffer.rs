//! `ftl.buffer`: a write buffer, which gathers the mapping units of small host writes until they fill a flash page.
//!
//! A page of a host write is in the buffer from its admission until its program has ended. It is acknowledged as soon as
//! the buffer has room for it. The flash page that it shares with others is programmed when it is full; before that,
//! when a flush asks for it, when the host is idle (`gc.idle_after`), when GC waits for a page that it replaces, or when
//! the buffer is full of pages whose flash pages are not. FUA writes do not use the buffer.
//!
//! The buffer is volatile: power loss destroys the acknowledged pages whose program has not ended, unless a capacitor has
//! the energy to flush them. While the capacitor is empty, no page is acknowledged before its program has ended.

use super::Host;
use crate::base::geometry::{Lpn, RequestId};
use crate::base::list::{Link, List, ListLinks};
use crate::base::slab::{Id, Node, Slab};
use crate::core::Core;
use crate::probe::Probe;
use crate::sched::{Owner, Transaction};
use std::collections::BTreeMap;

/// The pages in the write buffer, and those that wait for room in it.
#[derive(Debug)]
pub(crate) struct Buffer {
    /// The number of pages for which the buffer has room.
    capacity: u32,
    /// The largest number of acknowledged pages whose program has not ended: the capacity, or less while the capacitor
    /// could not save so many.
    budget: u32,
    /// The number of these pages.
    pages: u32,
    /// The pages whose program has not ended; [`Owner::Buffered`] has the slot.
    slots: Slab<Buffered>,
    /// Of these, the pages that found the buffer full. The page admitted first is the last.
    waiting: List,
}

/// A page of a host write from its admission until its program has ended.
#[derive(Clone, Copy, Debug)]
struct Buffered {
    lpn: Lpn,
    /// The flush epoch of the write.
    epoch: u32,
    /// The write that is acknowledged once the buffer has room for the page, by request and sequence number; `None` if
    /// it has been acknowledged.
    write: Option<(RequestId, u64)>,
    /// The neighbours in [`Buffer::waiting`].
    link: Link,
    next: Option<Id<Self>>,
}

impl Node for Buffered {
    const EMPTY: Self = Self { lpn: Lpn(0), epoch: 0, write: None, link: Link::FREE, next: None };

    #[inline(always)]
    fn next(&mut self) -> &mut Option<Id<Self>> {
        &mut self.next
    }
}

impl ListLinks for Slab<Buffered> {
    #[inline(always)]
    fn link(&mut self, slot: u32) -> &mut Link {
        &mut self[Id::new(slot as usize)].link
    }
}

impl Buffer {
    /// A buffer of `bytes` bytes; `None` if it has no room for a page of `page_bytes` bytes.
    pub(crate) fn new(bytes: u64, page_bytes: u32) -> Option<Self> {
        let capacity = u32::try_from(bytes / u64::from(page_bytes)).unwrap_or(u32::MAX);
        (capacity > 0).then(|| Self {
            capacity,
            budget: capacity,
            pages: 0,
            slots: Slab::default(),
            waiting: List::default(),
        })
    }

    /// The number of pages for which the buffer has room.
    pub(crate) fn capacity(&self) -> u32 {
        self.capacity
    }

    /// Sets the largest number of acknowledged pages whose program has not ended.
    pub(crate) fn set_budget(&mut self, pages: u32) {
        self.budget = pages;
    }

    /// Checks the numbers of pages that wait and of acknowledged pages.
    pub(crate) fn audit<P: Probe>(&self, core: &Core<P>) -> Result<(), String> {
        let (mut waiting, mut acknowledged) = (0, 0);
        for page in core.pages_to_program() {
            let Owner::Buffered(slot) = page.owner else { continue };
            let buffered = &self.slots[Id::new(slot as usize)];
            if buffered.lpn != page.lpn {
                return Err(format!(
                    "LPN {} in the slot of LPN {} of the write buffer",
                    buffered.lpn.0, page.lpn.0
                ));
            }
            *(if buffered.write.is_some() { &mut waiting } else { &mut acknowledged }) += 1;
        }
        let counts = [
            (waiting, self.waiting.len()),
            (acknowledged, self.pages),
            (waiting + acknowledged, self.slots.live()),
        ];
        if counts.iter().any(|(found, expected)| found != expected) {
            return Err(format!(
                "waiting, acknowledged and all pages of the write buffer, found and counted: {counts:?}"
            ));
        }
        Ok(())
    }

    /// If the buffer has room, takes the first page out of those that wait for room, and returns it.
    fn take_waiting(&mut self) -> Option<(Lpn, Option<(RequestId, u64)>)> {
        let slot = self.waiting.last().filter(|_| self.pages < self.budget)?;
        self.waiting.remove(&mut self.slots, slot);
        self.pages += 1;
        let page = &mut self.slots[Id::new(slot as usize)];
        Some((page.lpn, page.write.take()))
    }

    /// Power loss: the buffer is empty.
    pub(crate) fn forget(&mut self) {
        self.pages = 0;
        self.slots.clear();
        self.waiting = List::default();
    }

    /// The acknowledged writes that are not in flash: the newest of each LPN, with its sequence number. An LPN whose
    /// newest write is in flash, or which has been deallocated since, has none.
    pub(crate) fn unflushed<P: Probe>(&self, core: &Core<P>) -> BTreeMap<u32, u64> {
        let mut newest = BTreeMap::new();
        for page in core.pages_to_program() {
            let Owner::Buffered(slot) = page.owner else { continue };
            let is_acknowledged = self.slots[Id::new(slot as usize)].write.is_none();
            let sequence = core.array.stamp(page.ppn).sequence;
            let is_in_ram = core.ftl.map.get(page.lpn).is_some_and(|ppn| core.is_in_flight(ppn));
            if is_in_ram && is_acknowledged {
                let newest = newest.entry(page.lpn.0).or_insert(sequence);
                *newest = sequence.max(*newest);
            }
        }
        newest
    }
}

impl Host {
    /// The owner of the program of a page: the write buffer instead of the request, if the page goes through the
    /// buffer. The page then joins the open flush epoch.
    #[inline]
    pub(super) fn buffered_owner(&mut self, owner: Owner, lpn: Lpn) -> Owner {
        match (owner, &mut self.buffer) {
            // While a flush is outstanding, the pages that it waits for do not wait for others.
            (Owner::Request(id), Some(buffer)) if self.flushes == 0 && !self.requests.request(id).fua => {
                let epoch = self.epochs.join_page() as u32;
                let slot = buffer.slots.insert(Buffered { lpn, epoch, ..Buffered::EMPTY });
                Owner::Buffered(slot.index() as u32)
            }
            _ => owner,
        }
    }

    /// The page in `slot`, of request `id`, has been admitted with this sequence number: acknowledges the page if the
    /// buffer has room.
    #[inline(never)]
    pub(super) fn on_buffered<P: Probe>(
        &mut self,
        core: &mut Core<P>,
        slot: u32,
        id: RequestId,
        sequence: u64,
    ) {
        let buffer = self.buffer.as_mut().expect("the page is in the write buffer");
        let page = &mut buffer.slots[Id::new(slot as usize)];
        if buffer.pages < buffer.budget {
            buffer.pages += 1;
            let lpn = page.lpn;
            self.acknowledge(core, id, lpn, sequence);
            return;
        }
        page.write = Some((id, sequence));
        buffer.waiting.push_first(&mut buffer.slots, slot);
        self.make_room(core);
    }

    /// If pages wait for room in the buffer and no program will make room, because the flash page of every page in the
    /// buffer is not full, closes the oldest flash page.
    fn make_room<P: Probe>(&self, core: &mut Core<P>) {
        if let Some(buffer) = &self.buffer
            && buffer.waiting.len() > 0
            && core.units.buffered() == buffer.pages + buffer.waiting.len()
        {
            core.close_oldest_program();
        }
    }

    fn acknowledge<P: Probe>(&mut self, core: &mut Core<P>, id: RequestId, lpn: Lpn, sequence: u64) {
        core.probe.on_write_acknowledged(lpn, sequence);
        self.page_done(core, id);
    }

    /// The program of the page in `slot` has ended.
    #[inline(never)]
    pub(crate) fn on_buffered_programmed<P: Probe>(
        &mut self,
        core: &mut Core<P>,
        slot: u32,
        done: &Transaction,
    ) {
        if P::STAMPED {
            core.probe.on_write_durable(done.lpn, core.array.stamp(done.ppn).sequence);
        }
        let buffer = self.buffer.as_mut().expect("the page is in the write buffer");
        let page = buffer.slots[Id::new(slot as usize)];
        let next = if page.write.is_some() {
            // A page that has waited until its program has ended needs no room.
            buffer.waiting.remove(&mut buffer.slots, slot);
            Some((page.lpn, page.write))
        } else {
            buffer.pages -= 1;
            buffer.take_waiting()
        };
        buffer.slots.remove(Id::new(slot as usize));
        if let Some((lpn, Some((request, sequence)))) = next {
            self.acknowledge(core, request, lpn, sequence);
        }
        self.make_room(core);
        self.epochs.leave_page(page.epoch.into());
        self.complete_flushes(core);
    }
}
