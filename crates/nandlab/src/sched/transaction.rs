//! Flash transactions: what the controller asks of a die, whoever asked for it.

use crate::geometry::{DieId, Lpn, Ppn};

/// A flash operation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub enum Kind {
    /// Sense a page, transfer it out, decode it.
    Read,
    /// Transfer a page in, program it.
    Program,
    /// Erase a block.
    Erase,
    /// Sense a page and program it elsewhere in the plane, without a transfer.
    Copyback,
}

/// Why a flash operation happens. Every page programmed is charged to exactly one cause.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub enum Cause {
    /// A host request (a read-modify-write's read included).
    Host,
    /// Garbage collection.
    Gc,
    /// Static wear levelling.
    Wear,
    /// Refresh of ageing data.
    Refresh,
    /// Translation pages of the demand map.
    Mapping,
    /// Write-back of the cache's dirty pages.
    Sync,
    /// Emergency flush at power loss.
    Flush,
}

impl Cause {
    /// All causes, in the order of their numbers.
    pub const ALL: [Cause; 7] =
        [Cause::Host, Cause::Gc, Cause::Wear, Cause::Refresh, Cause::Mapping, Cause::Sync, Cause::Flush];

    /// The name used in the output.
    pub fn name(self) -> &'static str {
        match self {
            Cause::Host => "host",
            Cause::Gc => "gc",
            Cause::Wear => "wear",
            Cause::Refresh => "refresh",
            Cause::Mapping => "mapping",
            Cause::Sync => "sync",
            Cause::Flush => "flush",
        }
    }
}

/// A die keeps these apart; the order between them is the scheduler's.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub enum Class {
    /// Reads the host waits for.
    HostRead,
    /// Writes the host waits for.
    HostWrite,
    /// Everything else.
    Background,
}

/// A transaction's slot in [`Transactions`].
pub type Slot = u32;

/// No slot.
pub const NONE: Slot = u32::MAX;

/// One transaction.
#[derive(Clone, Copy, Debug)]
pub struct Transaction {
    /// The order of submission, over the whole drive.
    pub order: u64,
    /// What a read reads and a program writes; an erase names its block's first page.
    pub ppn: Ppn,
    /// The data's LPN.
    pub lpn: Lpn,
    /// Whose it is: a host request's slot, or the plane of a background job.
    pub owner: u32,
    /// The page whose data this program replaces, or that a copyback copies: its block must outlive the operation. The
    /// page itself when it is reprogrammed in place.
    pub replaces: Option<Ppn>,
    /// The next one in whatever list this one is in.
    pub next: Slot,
    /// The other sub-read of a pread; [`NONE`] of a read that is whole.
    pub partner: Slot,
    /// Bytes that leave the die, of a read of a part of a page; 0: all of it.
    pub part_bytes: u32,
    /// The operation.
    pub kind: Kind,
    /// Why.
    pub cause: Cause,
    /// Which queue.
    pub class: Class,
    /// Set on the read half of a read-modify-write.
    pub merges: bool,
    /// A read's level in this try.
    pub level: u8,
    /// The least level that decodes the page read.
    pub needed: u8,
    /// Tries of a read that have failed.
    pub tries: u8,
    /// Pages behind the one programmed that stay erased.
    pub skips: u8,
    /// It is the sub-read of a combination page.
    pub is_part: bool,
    /// This sub-read has left its die.
    pub has_arrived: bool,
    /// Page number in its block, of the page programmed or read.
    pub page: u16,
    /// Plane within its die.
    pub plane_in_die: u8,
    /// The die.
    pub die: DieId,
}

impl Transaction {
    /// Whether this try of a read is in vain.
    #[inline(always)]
    pub fn is_uncorrectable(&self) -> bool {
        self.level < self.needed
    }

    /// Whether this program is of a page that is programmed already, with what it holds.
    #[inline(always)]
    pub fn is_in_place(&self) -> bool {
        self.replaces == Some(self.ppn)
    }
}

/// A first-in first-out list of transactions, threaded through [`Transaction::next`].
#[derive(Clone, Copy, Debug)]
pub struct Fifo {
    pub(crate) head: Slot,
    tail: Slot,
}

impl Default for Fifo {
    fn default() -> Self {
        Self { head: NONE, tail: NONE }
    }
}

impl Fifo {
    /// Whether the list is empty.
    #[inline(always)]
    pub fn is_empty(&self) -> bool {
        self.head == NONE
    }

    /// The first one.
    #[inline(always)]
    pub fn first(&self) -> Option<Slot> {
        (self.head != NONE).then_some(self.head)
    }

    /// Appends `slot`.
    #[inline]
    pub fn push(&mut self, pool: &mut Transactions, slot: Slot) {
        pool[slot].next = NONE;
        if self.head == NONE {
            self.head = slot;
        } else {
            pool[self.tail].next = slot;
        }
        self.tail = slot;
    }

    /// Puts `slot` first.
    #[inline]
    pub fn push_front(&mut self, pool: &mut Transactions, slot: Slot) {
        pool[slot].next = self.head;
        if self.head == NONE {
            self.tail = slot;
        }
        self.head = slot;
    }

    /// Takes the first one.
    #[inline]
    pub fn pop(&mut self, pool: &Transactions) -> Option<Slot> {
        let slot = self.head;
        if slot == NONE {
            return None;
        }
        self.head = pool[slot].next;
        Some(slot)
    }

    /// Takes `slot`, which follows `before` (or is the head).
    pub fn remove(&mut self, pool: &mut Transactions, before: Slot, slot: Slot) {
        let next = pool[slot].next;
        if before == NONE {
            self.head = next;
        } else {
            pool[before].next = next;
        }
        if self.tail == slot {
            self.tail = before;
        }
    }
}

/// All transactions of a drive: a slab whose free slots form a list.
#[derive(Debug)]
pub struct Transactions {
    slots: Vec<Transaction>,
    free: Slot,
    submitted: u64,
    live: u32,
}

impl Default for Transactions {
    fn default() -> Self {
        Self { slots: Vec::new(), free: NONE, submitted: 0, live: 0 }
    }
}

impl Transactions {
    /// Puts in a transaction and gives it its order.
    #[inline]
    pub fn insert(&mut self, mut transaction: Transaction) -> Slot {
        transaction.order = self.submitted;
        self.submitted += 1;
        self.live += 1;
        let slot = self.free;
        if slot == NONE {
            self.slots.push(transaction);
            (self.slots.len() - 1) as Slot
        } else {
            self.free = self[slot].next;
            self[slot] = transaction;
            slot
        }
    }

    /// Takes a transaction out.
    #[inline]
    pub fn remove(&mut self, slot: Slot) -> Transaction {
        let transaction = self[slot];
        self[slot].next = self.free;
        self.free = slot;
        self.live -= 1;
        transaction
    }

    /// How many there are.
    pub fn live(&self) -> u32 {
        self.live
    }

    /// The order the next one will get.
    pub fn next_order(&self) -> u64 {
        self.submitted
    }

    /// Drops all of them; orders go on.
    pub fn clear(&mut self) {
        *self = Self { submitted: self.submitted, ..Self::default() };
    }
}

impl std::ops::Index<Slot> for Transactions {
    type Output = Transaction;
    #[inline(always)]
    fn index(&self, slot: Slot) -> &Transaction {
        &self.slots[slot as usize]
    }
}

impl std::ops::IndexMut<Slot> for Transactions {
    #[inline(always)]
    fn index_mut(&mut self, slot: Slot) -> &mut Transaction {
        &mut self.slots[slot as usize]
    }
}
