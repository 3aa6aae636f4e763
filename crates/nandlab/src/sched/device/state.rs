//! The state of a die, and what an event of a die ends.

use crate::base::geometry::DieId;
use crate::base::slab::Fifo;
use crate::base::state::value;
use crate::base::units::{Span, Time};
use crate::sched::pick::Turns;
use crate::sched::{Class, FlashOp, Slot, Transaction};

/// The phase of a die.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub enum Phase {
    /// No operation.
    Idle,
    /// Command and address cycles of a read, erase or copyback, on the channel.
    Command,
    /// Command and address cycles of a program, then data from the controller into the page register, on the channel.
    TransferIn,
    /// The array senses, programs or erases.
    Array,
    /// Data from the page register to the controller, on the channel.
    TransferOut,
}

#[derive(Clone, Debug)]
pub(super) struct Die {
    pub(super) queues: [Fifo<Transaction>; Class::ALL.len()],
    /// The transactions under way: one, or in a multi-plane operation several in different planes.
    pub(super) batch: Fifo<Transaction>,
    /// The copyback whose pages have been sensed, while host reads go before its program.
    pub(super) held: Option<Slot>,
    /// Whether the copyback under way has sensed its pages.
    pub(super) is_sensed: bool,
    pub(super) kind: FlashOp,
    /// Pages, or for an erase blocks, of each transaction of the operation that the die started last.
    pub(super) width: u32,
    pub(super) phase: Phase,
    pub(super) channel: u16,
    /// Number of lanes of the die for which background work is urgent.
    pub(super) promoted: u16,
    pub(super) turns: Turns,
    /// Cleanings that have the die to themselves (`gc.foreground = "blocking"`).
    pub(super) cleanings: u16,
    /// The next die that waits for the same channel.
    pub(super) next_waiting: Option<DieId>,
    /// Transactions queued or under way.
    pub(super) load: u32,
    /// Whether the die is in [`Device::marked`].
    pub(super) is_marked: bool,
    /// The time at which the die last started an operation.
    pub(super) since: Time,
    pub(super) busy_ns: Span,
}

impl Die {
    /// An idle die of a channel.
    pub(super) fn new(channel: u32) -> Self {
        Self {
            queues: [Fifo::default(); Class::ALL.len()],
            batch: Fifo::default(),
            held: None,
            is_sensed: false,
            kind: FlashOp::Read,
            width: 1,
            phase: Phase::Idle,
            channel: channel as u16,
            promoted: 0,
            turns: Turns::default(),
            cleanings: 0,
            next_waiting: None,
            load: 0,
            is_marked: false,
            since: Time::START,
            busy_ns: Span::ZERO,
        }
    }
}

/// The part of an operation that has ended on a die.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ended {
    /// Only a phase: the operation continues with its next phase.
    Nothing,
    /// The sensing of the pages of the reads in the list that starts at this slot; the pages are transferred out next.
    Sense(Slot),
    /// The transfer out of the page of this read, or of some units of the page, which have yet to be decoded.
    Page(Slot),
    /// The array operation of every transaction in the list that starts at this slot.
    Batch(Slot),
}

value! { Phase enum { Idle, Command, TransferIn, Array, TransferOut } }
value! {
    Die {
        queues,
        batch,
        held,
        is_sensed,
        kind,
        width,
        phase,
        channel,
        promoted,
        turns,
        cleanings,
        next_waiting,
        load,
        is_marked,
        since,
        busy_ns,
    }
}
