//! What waits in the controller: a page of a request, or of the write cache, that cannot go on yet.

use crate::base::geometry::Lpn;
use crate::base::slab::{Fifo, Id, Node, Slab};
use crate::sched::Owner;

/// What a waiter will do when it goes on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Wants {
    /// Read the page.
    Read,
    /// Write the whole page.
    Write,
    /// Write a part of the page, the rest of which has to be read first.
    PartialWrite,
    /// Write the page into the write cache, which does not have it: it needs a slot.
    Slot,
}

/// One that waits: for a map entry, for room in flash, for a slot or the budget of the write cache, or until flash has it.
#[derive(Clone, Copy, Debug)]
pub struct Waiter {
    /// The page.
    pub lpn: Lpn,
    /// Whose it is.
    pub owner: Owner,
    /// What it waits to do.
    pub wants: Wants,
    next: Option<WaiterId>,
}

/// A waiter's place among all.
pub type WaiterId = Id<Waiter>;

impl Waiter {
    /// One that is in no list.
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

/// Waiters in their order.
pub type Queue = Fifo<Waiter>;
