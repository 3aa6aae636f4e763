//! A request from the host, and its completion.

use super::state::value;
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

/// What the host says of a request beside its bytes. Results are kept by it; a request without a tag has queue 0 and
/// placement 0.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct Tag {
    /// The queue from which the request comes.
    pub queue: u16,
    /// The placement of a write: writes with different placements go to different open superblocks.
    pub placement: u16,
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
    /// Queue and placement.
    pub tag: Tag,
}

impl Request {
    /// A request for `len` bytes at `offset`, which arrives at the start, without FUA and without a tag.
    #[inline]
    pub const fn new(op: Op, offset: u64, len: u64) -> Self {
        Self { arrival: Time::START, op, fua: false, offset, len, tag: Tag { queue: 0, placement: 0 } }
    }

    /// A read; see [`Request::new`].
    #[inline]
    pub const fn read(offset: u64, len: u64) -> Self {
        Self::new(Op::Read, offset, len)
    }

    /// A write; see [`Request::new`].
    #[inline]
    pub const fn write(offset: u64, len: u64) -> Self {
        Self::new(Op::Write, offset, len)
    }

    /// A deallocation; see [`Request::new`].
    #[inline]
    pub const fn trim(offset: u64, len: u64) -> Self {
        Self::new(Op::Trim, offset, len)
    }

    /// A flush; see [`Request::new`].
    #[inline]
    pub const fn flush() -> Self {
        Self::new(Op::Flush, 0, 0)
    }

    /// The same request with the arrival time `arrival`.
    #[inline]
    #[must_use]
    pub const fn at(self, arrival: Time) -> Self {
        Self { arrival, ..self }
    }

    /// The same request with or without FUA.
    #[inline]
    #[must_use]
    pub const fn with_fua(self, fua: bool) -> Self {
        Self { fua, ..self }
    }

    /// The same request with a tag.
    #[inline]
    #[must_use]
    pub const fn with_tag(self, tag: Tag) -> Self {
        Self { tag, ..self }
    }
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

value! { Op enum { Read, Write, Trim, Flush } }
value! { Tag { queue, placement } }
value! { Request { arrival, op, fua, offset, len, tag } }
value! { FailReason enum { Uncorrectable, WornOut, PowerLost } }
value! { Completion { id, request, completed, failed } }
