//! Waiters: units of requests and of the write cache that cannot continue yet.

use crate::base::geometry::Lpn;
use crate::base::slab::{Fifo, Id, Node, Slab};
use crate::base::state::value;
use crate::sched::Owner;

/// The operation that a waiter continues with.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Wants {
    /// Read the unit.
    Read,
    /// Write the whole unit.
    Write,
    /// Write part of the unit, after its other sectors have been read.
    PartialWrite,
    /// Write the unit into the write cache, which needs a free slot for the unit.
    Slot,
    /// Read the unit into the write cache, which needs a free slot for the unit.
    ReadSlot,
}

/// A unit that waits for a map entry, for room in flash, for a slot or the budget of the write cache, or for the
/// program of its data.
#[derive(Clone, Copy, Debug)]
pub struct Waiter {
    /// The LPN of the unit.
    pub lpn: Lpn,
    /// The owner of the unit.
    pub owner: Owner,
    /// The operation that the unit continues with.
    pub wants: Wants,
    next: Option<WaiterId>,
}

/// The slot of a waiter in [`Waiters`].
pub type WaiterId = Id<Waiter>;

impl Waiter {
    /// Makes a waiter that is in no list.
    pub fn new(owner: Owner, lpn: Lpn, wants: Wants) -> Self {
        Self { lpn, owner, wants, next: None }
    }
}

impl Node for Waiter {
    const EMPTY: Self = Self { lpn: Lpn(0), owner: Owner::Padding, wants: Wants::Read, next: None };

    #[inline(always)]
    fn next(&mut self) -> &mut Option<WaiterId> {
        &mut self.next
    }
}

/// All waiters of a drive.
pub type Waiters = Slab<Waiter>;

/// A queue of waiters, first in, first out.
pub type Queue = Fifo<Waiter>;

value! { Wants enum { Read, Write, PartialWrite, Slot, ReadSlot } }
value! { Waiter { lpn, owner, wants, next } }
