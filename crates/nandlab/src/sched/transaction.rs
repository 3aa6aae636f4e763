//! Flash transactions: the operations that the controller queues on the dies.

use crate::base::geometry::{CacheSlot, DieId, LaneId, Lpn, MissId, RequestId, Tvpn, UnitId};
use crate::base::slab::{Id, Node, Slab};
use crate::base::state::{state, value};
use crate::flash::ShapeId;

/// A flash operation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub enum FlashOp {
    /// Senses a page, transfers the page or some of its units out, and decodes them.
    Read,
    /// Transfers the pages of a programming unit in and programs them.
    Program,
    /// Erases the blocks that a superblock has on a die.
    Erase,
    /// Senses pages and programs them elsewhere in their planes as a programming unit, without a transfer.
    Copyback,
}

impl FlashOp {
    /// Whether the operation programs pages.
    #[inline(always)]
    pub fn programs(self) -> bool {
        matches!(self, FlashOp::Program | FlashOp::Copyback)
    }
}

macro_rules! causes {
    ($($(#[doc = $doc:literal])+ $cause:ident $name:literal, $words:literal $(, jobs $verb:literal)?;)+) => {
        /// The reason of a flash operation. Every programmed page is counted under exactly one cause.
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        #[repr(u8)]
        pub enum Cause {$(
            $(#[doc = $doc])+
            $cause,
        )+}

        impl Cause {
            /// All causes, in the order of their numbers.
            pub const ALL: [Cause; [$($name),+].len()] = [$(Cause::$cause),+];

            /// The cause's name in results.
            pub fn name(self) -> &'static str {
                match self { $(Cause::$cause => $name,)+ }
            }

            /// The cause in words: what the operation is done for.
            pub fn words(self) -> &'static str {
                match self { $(Cause::$cause => $words,)+ }
            }

            /// The description of the operations of this cause.
            pub fn doc(self) -> &'static str {
                match self { $(Cause::$cause => concat!($($doc),+).trim_ascii(),)+ }
            }

            /// The column of `life.parquet` with the pages programmed for this cause, and its description.
            pub fn programs(self) -> [&'static str; 2] {
                match self {$(
                    Cause::$cause => {
                        [concat!("program_", $name), concat!("Pages programmed for `", $name, "`:", $($doc),+)]
                    }
                )+}
            }

            /// What background jobs of the cause do to lanes: "planes are being ..."; `None` without such jobs.
            pub fn job_verb(self) -> Option<&'static str> {
                match self { $($(Cause::$cause => Some($verb),)?)+ _ => None }
            }
        }

        value! { Cause enum { $($cause),+ } }
    };
}

causes! {
    /// Host requests, including the reads of read-modify-writes.
    Host "host", "the host";
    /// Garbage collection.
    Gc "gc", "garbage collection", jobs "collected";
    /// Static wear levelling.
    Wear "wear", "wear levelling", jobs "levelled";
    /// Refresh of ageing data.
    Refresh "refresh", "refresh", jobs "refreshed";
    /// Read reclaim.
    Reclaim "reclaim", "read reclaim", jobs "reclaimed";
    /// Folding: moves out of superblocks in SLC mode.
    Fold "fold", "folding", jobs "folded";
    /// Translation pages of the demand map.
    Mapping "mapping", "the mapping table";
    /// Write-backs from the write cache.
    Sync "sync", "cache sync";
    /// Emergency flushes, recoveries and budget detections.
    Flush "flush", "the emergency flush";
}

/// The queue of a die in which a transaction waits; the scheduler decides the order between the queues.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[repr(u8)]
pub enum Class {
    /// Refresh that precedes the host (`refresh.priority = "first"`).
    First,
    /// Reads for which the host waits.
    HostRead,
    /// Refresh that precedes host writes (`refresh.priority = "before-writes"`).
    BeforeWrites,
    /// Writes for which the host waits.
    HostWrite,
    /// All other operations.
    #[default]
    Background,
}

impl Class {
    /// All classes, in the order of their priorities under [`Scheduler::ReadFirst`](super::Scheduler::ReadFirst).
    pub const ALL: [Class; 5] =
        [Class::First, Class::HostRead, Class::BeforeWrites, Class::HostWrite, Class::Background];
}

/// The read level at which a read starts.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[repr(u8)]
pub enum Start {
    /// The level that the `ecc.start` policy chooses.
    #[default]
    Policy,
    /// The first level.
    First,
    /// The last level: the read is at full strength.
    Last,
}

/// The part of the drive that requested an operation and is notified of its end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Owner {
    /// A unit of a host request.
    Request(RequestId),
    /// The read half of a read-modify-write of a host request.
    Merge(RequestId),
    /// A unit in the write buffer (`ftl.buffer`), by its slot there.
    Buffered(u32),
    /// A unit of the write cache that is fetched or written back.
    CacheUnit(CacheSlot),
    /// A translation page.
    TranslationPage(Tvpn),
    /// A unit that waits for its map entry, which reads the translation page for this unit alone.
    Miss(MissId),
    /// The background job of a lane.
    Job(LaneId),
    /// A dead superblock of a lane: a full superblock without valid units and pins, which is erased without a job.
    DeadSuperblock(LaneId),
    /// A combination page that is written for the first time. The owner of a combination page that is moved is the job
    /// that moves it.
    CombinationPage,
    /// A clean unit of the write cache that is written again in order to measure the capacitor.
    Rewrite(CacheSlot),
    /// A unit without data that is written in order to measure the capacitor.
    Dummy,
    /// A unit without data that fills a programming unit or a wordline, or an invalid unit that is copied back with its
    /// page.
    Padding,
    /// A unit of the emergency flush, by its position in the order of the flush.
    FlushUnit(u32),
}

const _: () = assert!(size_of::<Owner>() == 8);

impl Owner {
    /// The host request to which the unit belongs.
    ///
    /// # Panics
    /// If the owner is not a unit of a request.
    #[inline]
    pub fn request(self) -> RequestId {
        match self {
            Owner::Request(id) | Owner::Merge(id) => id,
            other => panic!("{other:?} is not a unit of a request"),
        }
    }
}

/// The slot of a transaction in [`Transactions`].
pub type Slot = Id<Transaction>;

/// A flash transaction: a flash operation, or the part of an operation that one unit has ([`Transaction::more`]).
#[derive(Clone, Copy, Debug)]
pub struct Transaction {
    /// Number in the order of submission, over the whole drive.
    pub order: u64,
    /// The unit to read or program, or the first unit that the superblock to erase has on the die.
    pub unit: UnitId,
    /// The LPN of the data.
    pub lpn: Lpn,
    /// The owner of the operation.
    pub owner: Owner,
    /// The unit whose data a program replaces, or that a copyback copies. The superblock of this unit must not be
    /// erased before the operation ends. For a program in place it is the programmed unit itself.
    pub replaces: Option<UnitId>,
    /// The next transaction in the list that this transaction is in.
    pub next: Option<Slot>,
    /// The next sub-read of a read of several units, in a ring that begins with the base unit's; `None` for a read of one
    /// unit.
    pub partner: Option<Slot>,
    /// The transaction of the next unit that the same operation reads, programs or copies back: of a read a unit of the
    /// same page, otherwise one of the same programming unit. The first of these transactions stands for the operation
    /// in queue and die; the others are in no queue.
    pub more: Option<Slot>,
    /// Of a read, the bytes that it transfers out, 0 for the whole page. Of a copyback, the time in ns in which it senses
    /// its pages.
    pub extent: u32,
    /// The kind of operation.
    pub kind: FlashOp,
    /// The cause under which the operation is counted.
    pub cause: Cause,
    /// The queue in which the transaction waits.
    pub class: Class,
    /// The level at which a read starts.
    pub start: Start,
    /// The read level of this try.
    pub level: u8,
    /// The level that decodes the units of a read: the least one, or of a read that starts at a later entry of a
    /// read-retry table the first one on its way.
    pub needed: u8,
    /// Whether this try of a read is at an entry of a read-retry table after all entries that decode its units.
    pub is_beyond: bool,
    /// Failed tries of a read so far.
    pub tries: u8,
    /// Number of units after the programmed unit on its die that remain erased.
    pub skips: u16,
    /// Whether the data of this sub-read has been transferred out.
    pub has_arrived: bool,
    /// Whether another transaction stands for the operation ([`Transaction::more`]).
    pub goes_along: bool,
    /// Whether the unit of a read needs bits of a combination page, which the other sub-read reads.
    pub has_part: bool,
    /// Number of the unit in its superblock.
    pub index: u32,
    /// Number in its die of the unit's plane.
    pub plane_in_die: u8,
    /// The shape of the unit's superblock.
    pub shape: ShapeId,
    /// The die.
    pub die: DieId,
}

const _: () = assert!(size_of::<Transaction>() <= 72);

impl Transaction {
    /// Whether this try of a read fails: its level is below the needed level, or beyond all entries that decode.
    #[inline(always)]
    pub fn is_uncorrectable(&self) -> bool {
        self.level < self.needed || self.is_beyond
    }

    /// Whether this try of a read fails and another one, of `levels` levels, follows.
    #[inline(always)]
    pub fn is_tried_again(&self, levels: u8) -> bool {
        self.is_uncorrectable() && (self.level < levels || self.is_beyond) && self.tries + 1 < levels
    }

    /// Whether this is a program in place: a program of a unit that is programmed already, with its own data.
    #[inline(always)]
    pub fn is_in_place(&self) -> bool {
        self.replaces == Some(self.unit)
    }
}

impl Node for Transaction {
    const EMPTY: Self = Self {
        order: 0,
        unit: UnitId(0),
        lpn: Lpn(0),
        owner: Owner::Padding,
        replaces: None,
        next: None,
        partner: None,
        more: None,
        extent: 0,
        kind: FlashOp::Read,
        cause: Cause::Host,
        class: Class::HostRead,
        start: Start::Policy,
        level: 1,
        needed: 1,
        is_beyond: false,
        tries: 0,
        skips: 0,
        has_arrived: false,
        goes_along: false,
        has_part: false,
        index: 0,
        plane_in_die: 0,
        shape: ShapeId::FIRST,
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
    /// Adds a transaction and gives it the next submission number.
    #[inline(always)]
    pub fn insert(&mut self, mut transaction: Transaction) -> Slot {
        transaction.order = self.submitted;
        self.submitted += 1;
        self.slab.insert(transaction)
    }

    /// Removes a transaction.
    #[inline(always)]
    pub fn remove(&mut self, slot: Slot) -> Transaction {
        self.slab.remove(slot)
    }

    /// The number of transactions that wait or are under way.
    pub fn live(&self) -> u32 {
        self.slab.live()
    }

    /// The submission number that the next transaction will get.
    pub fn next_order(&self) -> u64 {
        self.submitted
    }

    /// Removes all transactions. The submission numbers do not start again.
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

value! { FlashOp enum { Read, Program, Erase, Copyback } }
value! { Class enum { First, HostRead, BeforeWrites, HostWrite, Background } }
value! { Start enum { Policy, First, Last } }
value! {
    Owner enum {
        Request(request),
        Merge(request),
        Buffered(slot),
        CacheUnit(slot),
        TranslationPage(page),
        Miss(miss),
        Job(lane),
        DeadSuperblock(lane),
        CombinationPage,
        Rewrite(slot),
        Dummy,
        Padding,
        FlushUnit(number),
    }
}
value! {
    Transaction {
        order,
        unit,
        lpn,
        owner,
        replaces,
        next,
        partner,
        more,
        extent,
        kind,
        cause,
        class,
        start,
        level,
        needed,
        is_beyond,
        tries,
        skips,
        has_arrived,
        goes_along,
        has_part,
        index,
        plane_in_die,
        shape,
        die,
    }
}
state! { Transactions { slab, submitted } }
