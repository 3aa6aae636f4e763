//! What a power loss has destroyed, by what the drive had promised to the host.
//!
//! Writes and TRIMs share one numbering, so of two operations on a unit the one with the higher sequence number is the
//! newer one. After recovery a unit has the data of one write, or none. A promise about a unit is broken if the unit
//! has older data than the promised operation; for a unit without data, the number of the newest TRIM of which the drive
//! has the record stands for the data. A unit counts once, under the strongest promise that is broken, with the newest
//! operation to which this promise was given:
//!
//! - *covered*: the request was complete, and so was a FUA flag of its own or a flush that was submitted later. What a
//!   unit had before the run counts as covered; data of preconditioning has the sequence number 0.
//! - *acknowledged*: the request was complete. If the drive has admitted a TRIM since, nothing is lost: until a flush
//!   covers the TRIM, the unit may have old data or none.
//! - *in flight*: the request was outstanding. A unit that the drive had not admitted yet has the sequence number 0. A
//!   TRIM in flight promises nothing.
//!
//! A request is complete when the host has its completion. A request that has failed promises nothing.

use super::ids::Lpn;
use super::state::value;

/// The strength of a promise, the strongest first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Promise {
    /// A completed flush, or a FUA flag of the completed request, covers the operation.
    Covered,
    /// The request has completed.
    Acknowledged,
    /// The request was outstanding.
    InFlight,
}

/// A unit about which a power loss has broken a promise.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Lost {
    /// The unit.
    pub lpn: Lpn,
    /// The strongest promise that is broken.
    pub promise: Promise,
    /// Sequence number of the newest lost operation to which this promise was given; 0: data of preconditioning, or in
    /// flight a unit that the drive had not admitted.
    pub sequence: u64,
    /// Whether the operation is a TRIM, which is undone.
    pub is_trim: bool,
    /// Whether flash had this or newer data of the unit, and a torn program or reprogram has destroyed it; otherwise
    /// the data was only in RAM, or had not reached the drive.
    pub was_in_flash: bool,
}

/// The content of a unit after recovery.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Content {
    /// No data, and the drive has no record of a TRIM.
    Nothing,
    /// No data; the newest recorded TRIM has this sequence number.
    Trimmed(u64),
    /// The data of the write with this sequence number; 0: data from before the run.
    Write(u64),
    /// Reads of the unit fail, because recovery could not complete the unit.
    Unreadable,
}

impl Content {
    /// The sequence number of the operation whose result the unit has; `None`: it has nothing, or nothing readable.
    pub fn held(self) -> Option<u64> {
        match self {
            Self::Write(sequence) | Self::Trimmed(sequence) => Some(sequence),
            Self::Nothing | Self::Unreadable => None,
        }
    }
}

/// The drive after recovery.
#[derive(Clone, Copy)]
pub struct Recovered<'a> {
    /// Number of units that the host may address.
    pub units: u32,
    /// Bytes of a unit.
    pub unit_bytes: u32,
    /// The writes that torn programs have destroyed in flash: LPN and sequence number (0: data from before the run).
    pub destroyed: &'a [(Lpn, u64)],
    /// Returns the content of a unit.
    pub content: &'a dyn Fn(Lpn) -> Content,
    /// The units of which this may differ from the newest write or deallocation that the drive has admitted, some of them
    /// several times; `None`: any unit.
    pub changed: Option<&'a [Lpn]>,
}

value! { Promise enum { Covered, Acknowledged, InFlight } }
value! { Lost { lpn, promise, sequence, is_trim, was_in_flash } }
