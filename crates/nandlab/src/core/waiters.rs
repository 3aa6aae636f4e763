//! Waiters: pages of requests and of the write cache that cannot go on yet.

use crate::base::geometry::Lpn;
use crate::base::slab::{Fifo, Id, Node, Slab};
use crate::sched::Owner;

/// The operation for which a waiter waits.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Wants {
    /// Read the page.
    Read,
    /// Write the whole page.
    Write,
    /// Write a part of the page, the rest of which has to be read first.
    PartialWrite,
    /// Write the page into the write cache, which needs a free slot for the page.
    Slot,
}

/// A page that waits for a map entry, for room in flash, for a slot or the budget of the write cache, or for the
/// program of its data.
#[derive(Clone, Copy, Debug)]
pub struct Waiter {
    /// The LPN of the page.
    pub lpn: Lpn,
    /// The owner of the page.
    pub owner: Owner,
    /// The operation for which the page waits.
    pub wants: Wants,
    next: Option<WaiterId>,
}

/// The slot of a waiter in [`Waiters`].
pub type WaiterId = Id<Waiter>;

impl Waiter {
    /// A waiter in no list.
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

/// Waiters in the order in which they came.
pub type Queue = Fifo<Waiter>;
