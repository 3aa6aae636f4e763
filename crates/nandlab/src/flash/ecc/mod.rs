//! Error correction: which read level decodes a page, and at which level a read starts.
//!
//! Level L senses with L references between neighbouring states (LaLDPC, Section II-B), costs more than level L - 1 and
//! decodes more errors. A read that does not decode is tried again one level higher; beyond the last level it is
//! uncorrectable. What each try costs is in `sched::Timing`.

mod start;

pub use start::Hints;

use crate::base::units::Span;

/// `[ecc]`.
#[derive(Clone, Debug, PartialEq)]
pub struct EccSpec {
    /// By read level, from level 1; empty: `[timing]` alone, which decodes everything.
    pub levels: Vec<LevelSpec>,
    /// The level a read starts at.
    pub start: StartLevel,
    /// What a further try costs.
    pub retry: Retry,
}

/// A read level: what it decodes and what it costs.
#[derive(Clone, Copy, Debug, PartialEq)]
#[allow(missing_docs)]
pub struct LevelSpec {
    /// Decodes every RBER below this.
    pub rber_max: f64,
    /// On the die.
    pub sense_ns: Span,
    /// On the channel, for a page.
    pub transfer_ns: Span,
    pub decode_ns: Span,
}

/// `ecc.start`: the level a read starts at.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum StartLevel {
    /// LDPC-in-SSD: always level 1.
    First,
    /// The level that decodes, as if it were known.
    Ideal,
    /// LaLDPC: the level of the page's last read while its map entry is cached, else level 1.
    LastLevel,
    /// As `LastLevel`, but without a cached entry the level that last decoded a page of the same block.
    BlockLevel,
}

/// `ecc.retry`: what a further try costs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Retry {
    /// A whole read at its level.
    Full,
    /// Only what the level adds: the added sensing and its transfer; decoding is done again.
    Incremental,
}

/// Levels there can be.
pub const LEVELS_MAX: usize = 16;

/// The level table and the start policy of a drive.
#[derive(Clone, Debug)]
pub struct Ecc {
    /// By level, from level 1: every RBER below this decodes. One infinite limit when there is no table.
    rber_max: Box<[f64]>,
    has_levels: bool,
    start: StartLevel,
}

impl Ecc {
    /// From a validated `[ecc]` section.
    pub fn new(spec: &EccSpec) -> Self {
        let limits: Vec<f64> = spec.levels.iter().map(|level| level.rber_max).collect();
        let has_levels = !limits.is_empty();
        let rber_max = if has_levels { limits } else { vec![f64::INFINITY] };
        Self { rber_max: rber_max.into(), has_levels, start: spec.start }
    }

    /// How many levels there are.
    #[inline(always)]
    pub fn levels(&self) -> u8 {
        self.rber_max.len() as u8
    }

    /// Whether reads can fail at all: without a level table everything decodes at once.
    #[inline(always)]
    pub fn has_levels(&self) -> bool {
        self.has_levels
    }

    /// The least level that decodes `rber`; one more than there are when none does.
    #[inline]
    pub fn level_for(&self, rber: f64) -> u8 {
        self.rber_max.iter().take_while(|&&limit| rber >= limit).count() as u8 + 1
    }

    /// Whether the drive has to remember the level of a page's last read.
    pub fn keeps_page_levels(&self) -> bool {
        matches!(self.start, StartLevel::LastLevel | StartLevel::BlockLevel)
    }

    /// Whether the drive has to remember the level that last decoded a page of each block.
    pub fn keeps_block_levels(&self) -> bool {
        self.start == StartLevel::BlockLevel
    }

    /// The level at which a read starts.
    #[inline]
    pub fn start_level(&self, hints: &Hints) -> u8 {
        start::level(self.start, hints).clamp(1, self.levels())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::base::units::US;

    #[test]
    fn a_level_decodes_what_is_below_its_limit() {
        let level = |rber_max| LevelSpec { rber_max, sense_ns: US, transfer_ns: US, decode_ns: US };
        let levels = [0.005, 0.006, 0.008, 0.009, 0.01, 0.012, 0.013].map(level).to_vec();
        let ecc = Ecc::new(&EccSpec { levels, start: StartLevel::First, retry: Retry::Full });
        // LaLDPC, Table II: the limits belong to the next level.
        for (rber, level) in
            [(0.0, 1), (0.00499, 1), (0.005, 2), (0.006, 3), (0.00761, 3), (0.0129, 7), (0.013, 8)]
        {
            assert_eq!(ecc.level_for(rber), level, "{rber}");
        }
        let none = Ecc::new(&EccSpec { levels: vec![], start: StartLevel::First, retry: Retry::Full });
        assert!(!none.has_levels() && none.levels() == 1 && none.level_for(0.5) == 1);
    }
}
