//! The host requests under way in the drive.

use super::promises::Operation;
use super::{FailReason, Op, Request};
use crate::base::geometry::RequestId;
use crate::base::slab::Id;
use crate::base::state::{state, value};

/// A host request under way.
#[derive(Clone, Debug)]
pub(crate) struct InWork {
    pub(crate) request: Request,
    pub(crate) id: u64,
    /// Number of units that are not finished; 1 for a request on the link.
    pub(crate) units_left: u32,
    /// The flush epoch of a write, TRIM or flush that has reached the drive.
    pub(crate) epoch: u64,
    pub(crate) failed: Option<FailReason>,
    /// The units that the drive has admitted, as the drive keeps [promises](super::Promises).
    pub(crate) admitted: Option<Id<Operation>>,
    next_free: u32,
}

/// The host requests under way, in slots that are reused.
#[derive(Debug, Default)]
pub(crate) struct Requests {
    slots: Vec<InWork>,
    /// Slot + 1 of the first free slot; 0: no slot is free.
    free: u32,
    live: u32,
    accepted: u64,
}

impl Requests {
    pub(crate) fn live(&self) -> u32 {
        self.live
    }

    /// Number of requests that have ended.
    #[inline(always)]
    pub(crate) fn completed(&self) -> u64 {
        self.accepted - u64::from(self.live)
    }

    /// Removes and returns all requests under way, in the order of their numbers.
    pub(crate) fn take_all(&mut self) -> Vec<InWork> {
        let mut all: Vec<InWork> =
            self.slots.iter().filter(|request| request.units_left > 0).cloned().collect();
        all.sort_by_key(|request| request.id);
        *self = Self { accepted: self.accepted, ..Self::default() };
        all
    }

    /// Adds a request with one unfinished unit. The caller finishes this unit after it has started all units of the
    /// request.
    #[inline]
    pub(crate) fn insert(&mut self, request: &Request) -> RequestId {
        let id = self.accepted;
        let (request, units_left, next_free) = (*request, 1, 0);
        let entry = InWork { request, id, units_left, epoch: 0, failed: None, admitted: None, next_free };
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

    /// Removes a request and frees its slot.
    #[inline]
    pub(crate) fn remove(&mut self, id: RequestId) -> InWork {
        let entry = &mut self.slots[id.index()];
        entry.next_free = self.free;
        self.free = id.0 + 1;
        self.live -= 1;
        entry.clone()
    }

    /// Marks a request as failed; the first reason is kept.
    pub(crate) fn fail(&mut self, id: RequestId, reason: FailReason) {
        self.get(id).failed.get_or_insert(reason);
    }

    #[inline(always)]
    pub(crate) fn get(&mut self, id: RequestId) -> &mut InWork {
        &mut self.slots[id.index()]
    }

    /// The request as the host sent it.
    #[inline(always)]
    pub(crate) fn request(&self, id: RequestId) -> Request {
        self.slots[id.index()].request
    }

    /// The operation of a request.
    #[inline(always)]
    pub(crate) fn op(&self, id: RequestId) -> Op {
        self.slots[id.index()].request.op
    }
}

value! { InWork { request, id, units_left, epoch, failed, admitted, next_free } }
state! { Requests { slots, free, live, accepted } }
