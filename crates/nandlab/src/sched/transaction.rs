//! Flash transactions: what the controller asks of a die, whoever asked for it.

use crate::base::geometry::{CacheSlot, DieId, Lpn, PlaneId, Ppn, RequestId, Tvpn};
use crate::base::slab::{Id, Node, Slab};

/// A flash operation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub enum FlashOp {
    /// Sense a page, transfer it out, decode it.
    Read,
    /// Transfer a page in, program it.
    Program,
    /// Erase a block.
    Erase,
    /// Sense a page and program it elsewhere in the plane, without a transfer.
    Copyback,
}

impl FlashOp {
    /// Whether it programs a page.
    #[inline(always)]
    pub fn programs(self) -> bool {
        matches!(self, FlashOp::Program | FlashOp::Copyback)
    }
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

/// The read level at which a read starts.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[repr(u8)]
pub enum Start {
    /// The one that `ecc.start` says.
    #[default]
    Policy,
    /// The first.
    First,
    /// The last: the page is read at full strength.
    Last,
}

/// Whose an operation is, and to whom its end is told.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Owner {
    /// A page of a host request.
    Request(RequestId),
    /// The read half of a read-modify-write of a host request.
    Merge(RequestId),
    /// A page of the write cache that is fetched or written back.
    CachePage(CacheSlot),
    /// A translation page.
    TranslationPage(Tvpn),
    /// The background job of a plane.
    Job(PlaneId),
    /// A block without valid pages that is erased beside the job of its plane.
    DeadBlock(PlaneId),
    /// A combination page that is written for the first time; one that is moved belongs to the job that moves it.
    CombinationPage,
    /// A clean page of the write cache that is written once more to measure the capacitor.
    Rewrite(CacheSlot),
    /// A page that holds nothing and is written to measure the capacitor.
    Dummy,
    /// A page that holds nothing and fills a wordline.
    Padding,
    /// A page of the emergency flush: its place in the order of the flush.
    FlushPage(u32),
}

const _: () = assert!(size_of::<Owner>() == 8);

impl Owner {
    /// The host request whose page this is.
    ///
    /// # Panics
    /// When it is not one of a request.
    #[inline]
    pub fn request(self) -> RequestId {
        match self {
            Owner::Request(id) | Owner::Merge(id) => id,
            other => panic!("{other:?} is no page of a request"),
        }
    }
}

/// A transaction's place in [`Transactions`].
pub type Slot = Id<Transaction>;

/// One transaction.
#[derive(Clone, Copy, Debug)]
pub struct Transaction {
    /// The order of submission, over the whole drive.
    pub order: u64,
    /// What a read reads and a program writes; an erase names its block's first page.
    pub ppn: Ppn,
    /// The data's LPN.
    pub lpn: Lpn,
    /// Whose it is.
    pub owner: Owner,
    /// The page whose data this program replaces, or that a copyback copies: its block must outlive the operation. The
    /// page itself when it is reprogrammed in place.
    pub replaces: Option<Ppn>,
    /// The next one in whatever list this one is in.
    pub next: Option<Slot>,
    /// The other sub-read of a pread; `None` of a read that is whole.
    pub partner: Option<Slot>,
    /// Bytes that leave the die, of a read of a part of a page; 0: all of it.
    pub part_bytes: u32,
    /// The operation.
    pub kind: FlashOp,
    /// Why.
    pub cause: Cause,
    /// Which queue.
    pub class: Class,
    /// Where a read starts.
    pub start: Start,
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

impl Node for Transaction {
    const EMPTY: Self = Self {
        order: 0,
        ppn: Ppn(0),
        lpn: Lpn(0),
        owner: Owner::Padding,
        replaces: None,
        next: None,
        partner: None,
        part_bytes: 0,
        kind: FlashOp::Read,
        cause: Cause::Host,
        class: Class::HostRead,
        start: Start::Policy,
        level: 1,
        needed: 1,
        tries: 0,
        skips: 0,
        is_part: false,
        has_arrived: false,
        page: 0,
        plane_in_die: 0,
        die: DieId(0),
    };

    #[inline(always)]
    fn next(&mut self) -> &mut Option<Slot> {
        &mut self.next
    }
}

/// All transactions of a drive.
#[derive(Debug, Default)]
pub struct Transactions {
    slab: Slab<Transaction>,
    submitted: u64,
}

impl Transactions {
    /// Puts in a transaction and gives it its order.
    #[inline(always)]
    pub fn insert(&mut self, mut transaction: Transaction) -> Slot {
        transaction.order = self.submitted;
        self.submitted += 1;
        self.slab.insert(transaction)
    }

    /// Takes a transaction out.
    #[inline(always)]
    pub fn remove(&mut self, slot: Slot) -> Transaction {
        self.slab.remove(slot)
    }

    /// How many there are.
    pub fn live(&self) -> u32 {
        self.slab.live()
    }

    /// The order the next one will get.
    pub fn next_order(&self) -> u64 {
        self.submitted
    }

    /// Drops all of them; orders go on.
    pub fn clear(&mut self) {
        self.slab.clear();
    }
}

impl std::ops::Index<Slot> for Transactions {
    type Output = Transaction;
    #[inline(always)]
    fn index(&self, slot: Slot) -> &Transaction {
        &self.slab[slot]
    }
}

impl std::ops::IndexMut<Slot> for Transactions {
    #[inline(always)]
    fn index_mut(&mut self, slot: Slot) -> &mut Transaction {
        &mut self.slab[slot]
    }
}
