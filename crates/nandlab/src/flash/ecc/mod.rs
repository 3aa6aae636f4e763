//! Error correction: which read level decodes a unit, and at which level a read starts.
//!
//! Level L senses with L references between neighbouring states (LaLDPC, Section II-B), costs more than level L - 1 and
//! decodes more errors. A read that does not decode is tried again one level higher; a unit that the last level does
//! not decode is uncorrectable. The cost of each try is in `sched::Timing`.
//!
//! Of a read-retry table (`ecc.levels = { retry = ... }`) level L is an entry: a read with other references. All
//! entries decode the same RBER, but each finds another RBER in the unit. An entry beyond the needed one may not decode
//! the unit, so no read starts there (`read_levels/spec.rs`).
//!
//! Of a code (`ecc.levels = { codec = ... }`) level L is a read with L references at each boundary. All levels decode the
//! same equivalent RBER, and a higher level finds a lower one in the unit (`reliability/soft.rs`, `codec.rs`).

mod codec;
mod start;

pub use codec::{Codec, CodecSpec, Failures};
pub use start::{Hints, RETRY_ROWS_MAX, ReadView, RetryRow, RetryTable, StartPolicy};

use super::reliability::{Condition, Entry, Reliability};
use crate::base::geometry::KindTimes;
use crate::base::units::Span;

/// Section `[ecc]` of the spec: read levels, start policy and retries.
#[derive(Clone, Debug, PartialEq)]
pub struct EccSpec {
    /// Read levels, from level 1. If empty, a read has the times of `[timing]` and decodes any RBER.
    pub levels: Vec<LevelSpec>,
    /// The level at which a read starts.
    pub start: StartLevel,
    /// The cost of a further try.
    pub retry: Retry,
    /// The code, if the levels are those of a code.
    pub codec: Option<CodecSpec>,
    /// Decoders of the controller, each of which decodes one read at a time; `None`: one for every read.
    pub decoders: Option<u32>,
}

impl EccSpec {
    /// Read levels that are not those of a code, whole reads as further tries, and decoders for all reads.
    pub fn of(levels: Vec<LevelSpec>, start: StartLevel) -> Self {
        Self { levels, start, retry: Retry::Full, codec: None, decoders: None }
    }
}

/// A read level: the RBER that it decodes, and the cost of a read at this level. A time that is `None` is that of
/// `[timing]`.
#[derive(Clone, Copy, Debug, PartialEq)]
#[allow(missing_docs)]
pub struct LevelSpec {
    /// The level decodes every RBER below this limit.
    pub rber_max: f64,
    /// Time of the sensing on the die; `None`: tR.
    pub sense: Option<KindTimes>,
    /// Time of a page's transfer on the channel; `None`: that of the channel's rate. A part of a page takes its share.
    pub transfer_ns: Option<Span>,
    /// Time of decoding a page or a part of it; `None`: that of `[timing]`.
    pub decode_ns: Option<Span>,
    /// Of an entry of a read-retry table and of a level of a code: the references with which the level reads. `None`:
    /// with the optimal references of the page.
    pub entry: Option<Entry>,
    /// Time of sensing in addition to `sense`.
    pub further: KindTimes,
    /// Transfers of a page.
    pub transfers: u32,
    /// Whether an incremental retry adds to the level before; a read with other references does not.
    pub adds: bool,
}

impl LevelSpec {
    /// The level that decodes every RBER below a limit, with the times of `[timing]`.
    pub fn new(rber_max: f64) -> Self {
        let further = KindTimes::uniform(Span::ZERO);
        Self {
            rber_max,
            sense: None,
            transfer_ns: None,
            decode_ns: None,
            entry: None,
            further,
            transfers: 1,
            adds: true,
        }
    }
}

/// `ecc.start`: the level at which a read starts.
///
/// No try is below the start level, so a read of a unit that needs a lower level decodes at the start level, and this
/// is the level that is remembered. Therefore no read lowers a remembered level that it started at.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum StartLevel {
    /// LDPC-in-SSD: level 1.
    First,
    /// The needed level of the unit, which a real controller cannot know.
    Ideal,
    /// LaLDPC: the level that last decoded the unit if the unit's map entry is cached, else level 1. The level is 1
    /// again when the unit's data is written or corrected, and after an uncorrectable read; it is forgotten when the
    /// entry is evicted.
    LastLevel,
    /// As `LastLevel`, but for a unit without a cached map entry the level that last decoded a unit of its superblock.
    /// The level of the superblock falls with a read that started lower, such as one that started at the lower level of
    /// its unit, and is forgotten when the superblock is erased or refreshed in place.
    SuperblockLevel,
    /// The level that last decoded a unit of the superblock; level 1 if none has since the last erase or power loss. No
    /// level is kept by unit. Of a read-retry table the tries go on from this entry to the last one, and then from the
    /// first one on. Of read levels the level of a superblock does not fall before its erase, but by a read that
    /// started lower.
    LastGood,
    /// The level of the drive's last read that decoded its unit, whatever unit that was; level 1 before the first such
    /// read and after a power loss. The level falls only with a read that started lower: a read that was queued before
    /// the level rose; a read of a refresh without full strength, which starts at level 1; and with
    /// `translation_level = "cached-only"` a read of a translation page. Neither a write nor a correction lowers it.
    DriveLevel,
    /// A read-retry table as vendors ship it: the start level by the P/E cycles of the superblock and the age of the
    /// unit's data. The table is constant, so reads change no level and a power loss forgets none. A level of the table
    /// that is too high costs every read of the row the time of this level.
    Table(RetryTable),
    /// A policy from outside (`Policies::with_read_start`). The levels of units, superblocks and drive are remembered
    /// for it. Of a read-retry table the tries wrap around, as with `LastGood`.
    Outside,
}

/// `ecc.retry`: the cost of a further try.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Retry {
    /// A whole read at the higher level.
    Full,
    /// The sensing and transfer that the higher level adds to the level below, and a whole decoding.
    Incremental,
}

/// The largest number of read levels.
pub const LEVELS_MAX: usize = 48;

/// The read levels and the start policy of a drive.
#[derive(Clone, Debug)]
pub struct Ecc {
    /// The limit of each level, from level 1: the level decodes every RBER below its limit. A drive without a level
    /// table has a single infinite limit.
    rber_max: Box<[f64]>,
    has_levels: bool,
    /// Of a read-retry table and of a code, by level from level 1, the references.
    entries: Box<[Entry]>,
    codec: Option<Codec>,
    start: StartLevel,
}

impl Ecc {
    /// The read levels and start policy of a validated `[ecc]` section.
    pub fn new(spec: &EccSpec) -> Self {
        let limits: Vec<f64> = spec.levels.iter().map(|level| level.rber_max).collect();
        let has_levels = !limits.is_empty();
        let rber_max = if has_levels { limits } else { vec![f64::INFINITY] };
        let entries = spec.levels.iter().filter_map(|level| level.entry).collect();
        let codec = spec.codec.as_ref().map(Codec::new);
        Self { rber_max: rber_max.into(), has_levels, entries, codec, start: spec.start }
    }

    /// The number of levels.
    #[inline(always)]
    pub fn levels(&self) -> u8 {
        self.rber_max.len() as u8
    }

    /// Whether the drive has a level table. Without a level table every read decodes at its first try.
    #[inline(always)]
    pub fn has_levels(&self) -> bool {
        self.has_levels
    }

    /// The least level that decodes `rber`; the number of levels + 1 if no level does.
    #[inline]
    pub fn level_for(&self, rber: f64) -> u8 {
        self.rber_max.iter().take_while(|&&limit| rber >= limit).count() as u8 + 1
    }

    /// The level at which a page in the state `page` would be decoded if no failure were drawn; the number of levels + 1
    /// if no level does. `carried`: the RBER of errors that `page` does not include.
    pub fn level_at(&self, reliability: &mut Reliability, page: &Condition, carried: f64) -> u8 {
        if self.codec.is_none() {
            return self.level_for(reliability.rber(page) + carried);
        }
        let decodes = |&entry: &usize| reliability.rber_read_with(page, entry) + carried < self.limit();
        (0..self.entries.len()).find(decodes).unwrap_or(self.entries.len()) as u8 + 1
    }

    /// The code whose levels these are.
    #[inline(always)]
    pub fn codec(&self) -> Option<&Codec> {
        self.codec.as_ref()
    }

    /// The references of the levels of a read-retry table or of a code, from level 1. Empty for read levels that read
    /// with the optimal references of the page.
    #[inline(always)]
    pub fn entries(&self) -> &[Entry] {
        &self.entries
    }

    /// Whether the first entry of a read-retry table follows its last one in the order of tries.
    #[inline(always)]
    pub fn wraps_around(&self) -> bool {
        matches!(self.start, StartLevel::LastGood | StartLevel::Outside)
            && !self.entries.is_empty()
            && self.codec.as_ref().is_none_or(Codec::shifts)
    }

    /// The least RBER that no level decodes, of a code the equivalent RBER; infinite without a level table.
    pub fn limit(&self) -> f64 {
        self.codec.as_ref().map_or(self.rber_max[self.rber_max.len() - 1], Codec::limit)
    }

    /// Whether the start policy needs the level of each unit's last read.
    pub fn keeps_unit_levels(&self) -> bool {
        matches!(self.start, StartLevel::LastLevel | StartLevel::SuperblockLevel | StartLevel::Outside)
    }

    /// Whether the start policy needs, for each superblock, the level that last decoded a unit of the superblock.
    pub fn keeps_superblock_levels(&self) -> bool {
        matches!(self.start, StartLevel::SuperblockLevel | StartLevel::LastGood | StartLevel::Outside)
    }

    /// Whether the start policy needs the P/E cycles of the superblock and the age of the data: a table, and a policy
    /// from outside.
    #[inline(always)]
    pub fn needs_condition(&self) -> bool {
        matches!(self.start, StartLevel::Table(_) | StartLevel::Outside)
    }

    /// Whether the start policy is from outside.
    pub fn starts_from_outside(&self) -> bool {
        self.start == StartLevel::Outside
    }

    /// The level at which a read starts; `None`: a policy from outside chooses it.
    #[inline]
    pub fn start_level(&self, hints: &Hints) -> Option<u8> {
        Some(start::level(&self.start, hints)?.clamp(1, self.levels()))
    }

    /// The level at which the read of a unit starts for which the controller keeps no level: level 1, or the needed
    /// level with `ideal`.
    pub fn start_without_hints(&self, hints: &Hints) -> u8 {
        if self.start == StartLevel::Ideal { hints.needed.clamp(1, self.levels()) } else { 1 }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_level_decodes_every_rber_below_its_limit() {
        let levels = [0.005, 0.006, 0.008, 0.009, 0.01, 0.012, 0.013].map(LevelSpec::new).to_vec();
        let ecc = Ecc::new(&EccSpec::of(levels, StartLevel::First));
        // LaLDPC, Table II: an RBER at the limit of a level needs the next level.
        for (rber, level) in
            [(0.0, 1), (0.00499, 1), (0.005, 2), (0.006, 3), (0.00761, 3), (0.0129, 7), (0.013, 8)]
        {
            assert_eq!(ecc.level_for(rber), level, "{rber}");
        }
        let none = Ecc::new(&EccSpec::of(vec![], StartLevel::First));
        assert!(!none.has_levels() && none.levels() == 1 && none.level_for(0.5) == 1);
    }
}
