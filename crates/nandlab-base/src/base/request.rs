//! A request from the host, and its completion.

use crate::base::units::Time;

/// The operation that the host requests.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[repr(u8)]
pub enum Op {
    /// Read `len` bytes at `offset`.
    Read,
    /// Write `len` bytes at `offset`.
    Write,
    /// Deallocate (discard, unmap) `len` bytes at `offset`.
    Trim,
    /// Make all earlier writes durable; a flush has no address.
    Flush,
}

impl Op {
    /// All operations, in the order of their numbers.
    pub const ALL: [Op; 4] = [Op::Read, Op::Write, Op::Trim, Op::Flush];

    /// The name of the operation in files and on screen.
    pub fn name(self) -> &'static str {
        match self {
            Op::Read => "read",
            Op::Write => "write",
            Op::Trim => "trim",
            Op::Flush => "flush",
        }
    }
}

/// A request of the host.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Request {
    /// Arrival time, counted from the start of the workload.
    pub arrival: Time,
    /// The operation.
    pub op: Op,
    /// Force unit access: the write is durable when it is acknowledged.
    pub fua: bool,
    /// Address of the first byte in the logical address space; 0 for a flush.
    pub offset: u64,
    /// Length in bytes; 0 for a flush only.
    pub len: u64,
}

/// Why a request has failed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
#[repr(u8)]
pub enum FailReason {
    /// No read level decodes a unit of the request, or the data of such a unit was lost or torn earlier.
    Uncorrectable,
    /// A unit of the request may be written only in lanes that are worn out.
    WornOut,
    /// The request was outstanding when power failed.
    PowerLost,
}

impl FailReason {
    /// All reasons, in the order of their numbers.
    pub const ALL: [FailReason; 3] = [FailReason::Uncorrectable, FailReason::WornOut, FailReason::PowerLost];

    /// The reason's name in results.
    pub fn name(self) -> &'static str {
        match self {
            FailReason::Uncorrectable => "uncorrectable",
            FailReason::WornOut => "worn_out",
            FailReason::PowerLost => "power_lost",
        }
    }
}

/// A request that has been completed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Completion {
    /// The number that `Drive::submit` returned.
    pub id: u64,
    /// The request.
    pub request: Request,
    /// The time at which the request was completed.
    pub completed: Time,
    /// Why the request, or a part of it, has failed; `None` for a successful request.
    pub failed: Option<FailReason>,
}
