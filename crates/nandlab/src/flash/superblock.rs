//! The records of a superblock and of a unit in the flash array.

use super::AgeStamp;
use crate::base::state::value;
use crate::base::units::Time;

/// The LPN in the OOB of a unit that holds no LPN's data: padding, garbage from preconditioning and, if the array keeps
/// sequence numbers, an erased unit.
pub const DEAD_LPN: u32 = u32::MAX;

/// The use of a superblock.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[repr(u8)]
pub enum SuperblockState {
    /// Erased, in its lane's free list.
    #[default]
    Free,
    /// Filled by a stream.
    Open,
    /// Closed: every unit is programmed, or remains erased until the next erase. A candidate for GC.
    Full,
    /// Being emptied by GC, the wear leveller or refresh.
    Victim,
    /// Worn out, no longer used.
    Retired,
    /// Not there: a plane of the superblock's lane has too few good blocks
    /// ([`Geometry::superblocks_in`](crate::base::geometry::Geometry::superblocks_in)). Never used.
    Bad,
}

impl SuperblockState {
    /// The state in a word.
    pub fn name(self) -> &'static str {
        match self {
            Self::Free => "free",
            Self::Open => "open",
            Self::Full => "full",
            Self::Victim => "victim",
            Self::Retired => "retired",
            Self::Bad => "bad",
        }
    }

    /// Whether the superblock holds data, or can after an erase.
    pub fn is_usable(self) -> bool {
        !matches!(self, Self::Retired | Self::Bad)
    }
}

/// A superblock: the NAND's own state (P/E cycles, reads, programmed units) and the controller's record of the
/// superblock. Two superblocks of 32 bytes share a cache line; what is rarely read is in [`Rare`].
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Superblock {
    /// The time at which the superblock was closed.
    pub closed_at: Time,
    /// Program/erase cycles.
    pub pe_cycles: u32,
    /// Page reads since the last erase, those of the most-read block of the superblock. If pages have been copied back
    /// to the superblock, at least the reads that each source superblock had at the copyback.
    pub reads: u32,
    /// Operations under way or queued that need the superblock not to be erased. A superblock with pins cannot be
    /// erased.
    pub pins: u32,
    /// Units programmed or skipped since the last erase; in a superblock on one die also the number of the next unit
    /// that may be programmed: see [`Array::is_programmed`](super::Array::is_programmed).
    pub programmed: u32,
    /// Valid units.
    pub valid: u32,
    /// The use of the superblock.
    pub state: SuperblockState,
    /// The mark that the stream which fills the superblock has put into the OOB of its units: up to [`COPYBACKS_MAX`]
    /// the number of consecutive copybacks ([`Superblock::copybacks`]), above it the number of a stream.
    pub mark: u8,
    /// Units of the superblock whose susceptible bits are in a combination page.
    pub linked: u16,
}

const _: () = assert!(size_of::<Superblock>() == 32);

/// The largest number of consecutive copybacks that a limit can allow. Each number has a stream in each lane.
pub const COPYBACKS_MAX: u8 = 8;

impl Superblock {
    /// Consecutive copybacks without correction that every unit of the superblock has gone through.
    #[inline(always)]
    pub fn copybacks(&self) -> u8 {
        copybacks_of(self.mark)
    }

    /// The data of all valid units has been corrected: the copybacks count no longer.
    pub fn on_corrected(&mut self) {
        if self.mark <= COPYBACKS_MAX {
            self.mark = 0;
        }
    }
}

/// The number of consecutive copybacks that a mark stands for.
#[inline(always)]
pub fn copybacks_of(mark: u8) -> u8 {
    if mark <= COPYBACKS_MAX { mark } else { 0 }
}

/// The part of a superblock's state that only refresh reads and writes.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Rare {
    /// Programs in place since the last erase, at most 65,535. If pages have been copied back to the superblock, at
    /// least the programs in place that each source superblock had at the copyback.
    pub reprograms: u16,
    /// Whether the superblock has been refreshed partially since the last erase.
    pub is_refreshed_partially: bool,
}

/// The contents of a unit's OOB other than the LPN.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Stamp {
    /// Sequence number of the write, by the host or by the controller, that produced the unit's data. A copy keeps the
    /// number of its source. 0 for data from before the run.
    pub sequence: u64,
    /// The age stamp at which the data was last corrected and written. The age of the data counts from this stamp. A
    /// copyback does not correct, so the copy keeps the age stamp of the source.
    pub corrected: AgeStamp,
}

/// What a copyback has done to a unit (`reliability.copyback = "propagate"`).
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Copied {
    /// RBER of the errors in the data that the copyback programmed, 0 to 0.5.
    pub rber: f32,
    /// The age stamp at which the copyback programmed the cells. Their retention counts from this stamp, the age of
    /// the data from [`Stamp::corrected`].
    pub programmed: AgeStamp,
}

/// The fields of [`Stamp`] that the array keeps. A field that no part of the drive reads is not kept.
#[derive(Clone, Copy, Debug)]
pub struct Keeps {
    /// [`Stamp::sequence`]: 8 bytes per unit.
    pub sequences: bool,
    /// [`Stamp::corrected`]: 4 bytes per `units_per_age` units.
    pub ages: bool,
    /// [`Copied`]: 8 bytes per `units_per_age` units.
    pub copied: bool,
    /// Consecutive units that have a common age, because they are always programmed and corrected together: a power of
    /// two. Their age stamp is that of the unit staged last.
    pub units_per_age: u32,
    /// The placement handle of the data: 1 byte per unit.
    pub handles: bool,
    /// The reclaim unit: 4 bytes per superblock.
    pub reclaim_units: bool,
}

impl Default for Keeps {
    fn default() -> Self {
        Self {
            sequences: false,
            ages: false,
            copied: false,
            units_per_age: 1,
            handles: false,
            reclaim_units: false,
        }
    }
}

value! { SuperblockState enum { Free, Open, Full, Victim, Retired, Bad } }
value! { Superblock { closed_at, pe_cycles, reads, pins, programmed, valid, state, mark, linked } }
value! { Rare { reprograms, is_refreshed_partially } }
value! { Copied { rber, programmed } }
