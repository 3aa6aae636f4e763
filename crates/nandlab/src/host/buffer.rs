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
use crate::base::geometry::{Lpn, Ppn, RequestId};
use crate::core::Core;
use crate::probe::Probe;
use crate::sched::{Owner, Transaction};
use std::collections::{BTreeMap, BTreeSet, VecDeque};

/// The pages in the write buffer.
#[derive(Debug)]
pub(crate) struct Buffer {
    /// The number of pages for which the buffer has room.
    capacity: u32,
    /// The largest number of acknowledged pages whose program has not ended: the capacity, or less while the capacitor
    /// could not save so many.
    budget: u32,
    /// The number of these pages.
    pages: u32,
    /// The pages that found the buffer full, in the order of admission.
    waiting: VecDeque<Waiting>,
}

/// A page that waits for room in the buffer.
#[derive(Clone, Copy, Debug)]
struct Waiting {
    request: RequestId,
    lpn: Lpn,
    sequence: u64,
    ppn: Ppn,
}

impl Buffer {
    /// A buffer of `bytes` bytes; `None` if it has no room for a page of `page_bytes` bytes.
    pub(crate) fn new(bytes: u64, page_bytes: u32) -> Option<Self> {
        let capacity = u32::try_from(bytes / u64::from(page_bytes)).unwrap_or(u32::MAX);
        (capacity > 0).then(|| Self { capacity, budget: capacity, pages: 0, waiting: VecDeque::new() })
    }

    /// The number of pages for which the buffer has room.
    pub(crate) fn capacity(&self) -> u32 {
        self.capacity
    }

    /// Sets the largest number of acknowledged pages whose program has not ended.
    pub(crate) fn set_budget(&mut self, pages: u32) {
        self.budget = pages;
    }

    /// Checks the number of acknowledged pages whose program has not ended.
    pub(crate) fn audit<P: Probe>(&self, core: &Core<P>) -> Result<(), String> {
        let is_waiting = |ppn| self.waiting.iter().any(|page| page.ppn == ppn);
        let buffered = core.pages_to_program().filter(|page| matches!(page.owner, Owner::Buffered(_)));
        let (waiting, acknowledged): (Vec<Ppn>, Vec<Ppn>) =
            buffered.map(|page| page.ppn).partition(|&ppn| is_waiting(ppn));
        let counts = [(waiting.len(), self.waiting.len()), (acknowledged.len(), self.pages as usize)];
        if counts.iter().any(|(found, expected)| found != expected) {
            return Err(format!(
                "waiting and acknowledged pages of the write buffer, found and counted: {counts:?}"
            ));
        }
        Ok(())
    }

    /// Power loss: the buffer is empty.
    pub(crate) fn forget(&mut self) {
        self.pages = 0;
        self.waiting.clear();
    }

    /// The acknowledged writes that are not in flash: the newest of each LPN, with its sequence number. An LPN whose
    /// newest write is in flash, or which has been deallocated since, has none.
    pub(crate) fn unflushed<P: Probe>(&self, core: &Core<P>) -> BTreeMap<u32, u64> {
        let waiting: BTreeSet<Ppn> = self.waiting.iter().map(|page| page.ppn).collect();
        let mut newest = BTreeMap::new();
        for page in core.pages_to_program().filter(|page| matches!(page.owner, Owner::Buffered(_))) {
            let sequence = core.array.stamp(page.ppn).sequence;
            let is_in_ram = core.ftl.map.get(page.lpn).is_some_and(|ppn| core.is_in_flight(ppn));
            if is_in_ram && !waiting.contains(&page.ppn) {
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
    pub(super) fn buffered_owner(&mut self, owner: Owner) -> Owner {
        match owner {
            // While a flush is outstanding, the pages that it waits for do not wait for others.
            Owner::Request(id)
                if self.buffer.is_some() && self.flushes == 0 && !self.requests.request(id).fua =>
            {
                Owner::Buffered(self.epochs.join_page() as u32)
            }
            other => other,
        }
    }

    /// A page of request `id` has been admitted with this sequence number: acknowledges the page if the buffer has room.
    #[inline(never)]
    pub(super) fn on_buffered<P: Probe>(
        &mut self,
        core: &mut Core<P>,
        id: RequestId,
        lpn: Lpn,
        sequence: u64,
        ppn: Ppn,
    ) {
        let buffer = self.buffer.as_mut().expect("the page is in the write buffer");
        if buffer.pages < buffer.budget {
            buffer.pages += 1;
            self.acknowledge(core, id, lpn, sequence);
            return;
        }
        buffer.waiting.push_back(Waiting { request: id, lpn, sequence, ppn });
        self.make_room(core);
    }

    /// If pages wait for room in the buffer and no program will make room, because the flash page of every page in the
    /// buffer is not full, closes the oldest flash page.
    fn make_room<P: Probe>(&self, core: &mut Core<P>) {
        if let Some(buffer) = &self.buffer
            && !buffer.waiting.is_empty()
            && core.units.buffered() == buffer.pages + buffer.waiting.len() as u32
        {
            core.close_oldest_program();
        }
    }

    fn acknowledge<P: Probe>(&mut self, core: &mut Core<P>, id: RequestId, lpn: Lpn, sequence: u64) {
        core.probe.on_write_acknowledged(lpn, sequence);
        self.page_done(core, id);
    }

    /// The program of a page of the buffer has ended; the page belongs to `epoch`.
    #[inline(never)]
    pub(crate) fn on_buffered_programmed<P: Probe>(
        &mut self,
        core: &mut Core<P>,
        epoch: u32,
        done: &Transaction,
    ) {
        if P::STAMPED {
            core.probe.on_write_durable(done.lpn, core.array.stamp(done.ppn).sequence);
        }
        let buffer = self.buffer.as_mut().expect("the page is in the write buffer");
        // A page that has waited until its program has ended needs no room.
        let own = buffer.waiting.iter().position(|page| page.ppn == done.ppn);
        buffer.pages -= u32::from(own.is_none());
        let next = match own {
            Some(index) => buffer.waiting.remove(index),
            None if buffer.pages < buffer.budget => {
                let next = buffer.waiting.pop_front();
                buffer.pages += u32::from(next.is_some());
                next
            }
            None => None,
        };
        if let Some(Waiting { request, lpn, sequence, .. }) = next {
            self.acknowledge(core, request, lpn, sequence);
        }
        self.make_room(core);
        self.epochs.leave_page(epoch.into());
        self.complete_flushes(core);
    }
}
