//! The host requests the drive is working on.

use super::{FailReason, Op, Request};
use crate::base::geometry::RequestId;

#[derive(Clone, Debug)]
pub(crate) struct InWork {
    pub(crate) request: Request,
    pub(crate) id: u64,
    /// Pages not done yet; 1 of a request on the link.
    pub(crate) pages_left: u32,
    /// The flush epoch of a write, from when it has reached the drive.
    pub(crate) epoch: u64,
    pub(crate) failed: Option<FailReason>,
    next_free: u32,
}

/// A slab of requests.
#[derive(Debug, Default)]
pub(crate) struct Requests {
    slots: Vec<InWork>,
    /// Slot + 1 of the first free one; 0: none.
    free: u32,
    live: u32,
    accepted: u64,
}

impl Requests {
    pub(crate) fn live(&self) -> u32 {
        self.live
    }

    /// Requests that are over.
    #[inline(always)]
    pub(crate) fn completed(&self) -> u64 {
        self.accepted - u64::from(self.live)
    }

    /// Takes all requests out that are in work, in the order of their numbers.
    pub(crate) fn take_all(&mut self) -> Vec<InWork> {
        let mut all: Vec<InWork> =
            self.slots.iter().filter(|request| request.pages_left > 0).cloned().collect();
        all.sort_by_key(|request| request.id);
        *self = Self { accepted: self.accepted, ..Self::default() };
        all
    }

    /// Puts a request in, with one page left: the caller's own, until everything has been handed out.
    #[inline]
    pub(crate) fn insert(&mut self, request: &Request) -> RequestId {
        let id = self.accepted;
        let entry = InWork { request: *request, id, pages_left: 1, epoch: 0, failed: None, next_free: 0 };
        self.accepted += 1;
        self.live += 1;
        if self.free == 0 {
            self.slots.push(entry);
            RequestId(self.slots.len() as u32 - 1)
        } else {
            let slot = self.free - 1;
            self.free = self.slots[slot as usize].next_free;
            self.slots[slot as usize] = entry;
            RequestId(slot)
        }
    }

    /// Takes a request out.
    #[inline]
    pub(crate) fn remove(&mut self, id: RequestId) -> InWork {
        let entry = &mut self.slots[id.index()];
        entry.next_free = self.free;
        self.free = id.0 + 1;
        self.live -= 1;
        entry.clone()
    }

    /// A request will fail; the first reason counts.
    pub(crate) fn fail(&mut self, id: RequestId, reason: FailReason) {
        self.get(id).failed.get_or_insert(reason);
    }

    #[inline(always)]
    pub(crate) fn get(&mut self, id: RequestId) -> &mut InWork {
        &mut self.slots[id.index()]
    }

    /// What the host asked for.
    #[inline(always)]
    pub(crate) fn request(&self, id: RequestId) -> Request {
        self.slots[id.index()].request
    }

    /// The op of a request.
    #[inline(always)]
    pub(crate) fn op(&self, id: RequestId) -> Op {
        self.slots[id.index()].request.op
    }
}
