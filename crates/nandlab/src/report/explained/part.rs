//! The parts of a request's latency: what the request waited for.

use crate::sched::{Cause, FlashOp};
use serde_json::Value;

/// A part of the latency of a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Part {
    /// One of the parts that have a line in the table of this file.
    Own(Own),
    /// Operations of this kind for this cause: they held the die of an operation that the request needed, or the request
    /// waited for their end.
    Operation(FlashOp, Cause),
}

macro_rules! own {
    ($($(#[doc = $doc:literal])+ $part:ident $name:literal;)+) => {
        /// A part of the latency that is no other operation.
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        #[repr(u8)]
        pub enum Own {$(
            $(#[doc = $doc])+
            $part,
        )+}

        impl Own {
            const ALL: [(Own, &str, &str); [$($name),+].len()] =
                [$((Own::$part, $name, concat!($($doc),+))),+];
        }
    };
}

own! {
    /// The link between host and drive, in both directions, with the wait for data that crosses before.
    Link "link";
    /// The controller: the wait for a processor and for a place, and the work on the command.
    Controller "controller";
    /// The DRAM of the write cache.
    Dram "dram";
    /// Command cycles and transfers of operations on the channel, with their wait for the off-chip path.
    Transfer "transfer";
    /// The wait for the channel, which other operations use.
    Bus "bus";
    /// Sensing the pages that the request reads.
    Sense "sense";
    /// Decoding the data that the request reads.
    Decode "decode";
    /// The wait for a decoder, or for another part of the data.
    Decoder "decoder";
    /// Further tries of reads that did not decode: their commands, senses, transfers and decodings.
    Retry "retry";
    /// Programming the data of the request.
    Program "program";
    /// The die works for other units of the same request.
    Units "units";
    /// The die suspends a program or an erase for a read.
    Suspend "suspend";
    /// The drive waited for other requests, for example until writes filled a programming unit.
    Gather "gather";
    /// The drive waited for a time, for example until it counted as idle.
    Timer "timer";
    /// The die was free, but kept for other work, for example for GC whose turn it was.
    Kept "kept";
    /// What the observer has not seen: operations that began before it or too long ago, and power-up.
    Other "other";
}

/// The number of parts.
pub const PARTS: usize = Own::ALL.len() + 4 * Cause::ALL.len();

/// The kinds of operations in the order of their numbers, with their names.
const KINDS: [(FlashOp, &str); 4] = [
    (FlashOp::Read, "read"),
    (FlashOp::Program, "program"),
    (FlashOp::Erase, "erase"),
    (FlashOp::Copyback, "copyback"),
];

impl Part {
    /// The number of the part, below [`PARTS`].
    #[inline]
    pub fn index(self) -> usize {
        match self {
            Part::Own(own) => own as usize,
            Part::Operation(kind, cause) => {
                Own::ALL.len() + kind as usize * Cause::ALL.len() + cause as usize
            }
        }
    }

    /// The part with this number.
    pub fn of(index: usize) -> Self {
        match index.checked_sub(Own::ALL.len()) {
            None => Part::Own(Own::ALL[index].0),
            Some(rest) => {
                Part::Operation(KINDS[rest / Cause::ALL.len()].0, Cause::ALL[rest % Cause::ALL.len()])
            }
        }
    }

    /// The name of the part in results: that of its line, or kind and cause, such as `erase_gc`.
    pub fn name(self) -> String {
        match self {
            Part::Own(own) => Own::ALL[own as usize].1.to_owned(),
            Part::Operation(kind, cause) => format!("{}_{}", KINDS[kind as usize].1, cause.name()),
        }
    }

    /// A description of the part.
    pub fn doc(self) -> String {
        match self {
            Part::Own(own) => Own::ALL[own as usize].2.trim().to_owned(),
            Part::Operation(kind, cause) => {
                format!("Operations that {} for {}.", KINDS[kind as usize].1, cause.words())
            }
        }
    }
}

/// Times by part.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Parts(pub [u64; PARTS]);

impl Default for Parts {
    fn default() -> Self {
        Self([0; PARTS])
    }
}

impl Parts {
    /// The sum of all parts, in nanoseconds.
    pub fn sum_ns(&self) -> u64 {
        self.0.iter().sum()
    }

    /// The time of a part, in nanoseconds.
    pub fn ns(&self, part: Part) -> u64 {
        self.0[part.index()]
    }

    #[cfg(test)]
    pub(super) fn add(&mut self, part: Part, ns: u64) {
        self.0[part.index()] += ns;
    }

    pub(super) fn add_all(&mut self, other: &Self) {
        self.0.iter_mut().zip(other.0).for_each(|(sum, ns)| *sum += ns);
    }

    /// The parts that are not 0, by name, longest first.
    pub(super) fn to_json(self) -> Value {
        let mut parts: Vec<(usize, u64)> = self.0.into_iter().enumerate().filter(|&(_, ns)| ns > 0).collect();
        parts.sort_by_key(|&(index, ns)| (std::cmp::Reverse(ns), index));
        parts.into_iter().map(|(index, ns)| (Part::of(index).name(), Value::from(ns))).collect()
    }
}
