//! One request from the host.

use crate::base::units::Time;

/// What the host asks for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[repr(u8)]
pub enum Op {
    /// Read `len` bytes at `offset`.
    Read,
    /// Write `len` bytes at `offset`.
    Write,
    /// Deallocate (discard, unmap) `len` bytes at `offset`.
    Trim,
    /// Make every write acknowledged so far durable; has no address.
    Flush,
}

impl Op {
    /// All operations, in the order of their numbers.
    pub const ALL: [Op; 4] = [Op::Read, Op::Write, Op::Trim, Op::Flush];

    /// The lower-case name used in files and on screen.
    pub fn name(self) -> &'static str {
        match self {
            Op::Read => "read",
            Op::Write => "write",
            Op::Trim => "trim",
            Op::Flush => "flush",
        }
    }
}

/// A request as the host sends it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Request {
    /// Arrival, counted from the start of the workload.
    pub arrival: Time,
    /// What is asked.
    pub op: Op,
    /// Force unit access: the write is durable when it is acknowledged.
    pub fua: bool,
    /// First byte of the logical address space; 0 for a flush.
    pub offset: u64,
    /// Length in bytes; 0 for a flush only.
    pub len: u64,
}
