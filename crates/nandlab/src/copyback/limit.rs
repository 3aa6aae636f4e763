//! How many copybacks in a row a page may go through.

use super::{COPYBACKS_MAX, CopybackLimitSpec};
use crate::base::units::SECOND;
use crate::flash::{Condition, Ecc, Reliability};

/// The limit of `migration.policy`'s `limit`.
#[derive(Clone, Debug)]
pub enum CopybackLimit {
    /// The same for every block.
    Fixed(u8),
    /// By the P/E cycles of the destination: up to so many cycles, so many copybacks; beyond the last line none (Table 1).
    Table(Box<[(u32, u8)]>),
    /// As many as the destination, kept for so many seconds more, still decodes at this level.
    Measured {
        /// Seconds that the data has to stay readable.
        within_s: u32,
        /// The highest read level it may need then.
        level: u8,
    },
}

impl CopybackLimit {
    /// The limit of a validated spec.
    pub fn new(spec: &CopybackLimitSpec) -> Self {
        match spec {
            CopybackLimitSpec::Fixed(n) => Self::Fixed(*n),
            CopybackLimitSpec::Table(lines) => Self::Table(lines.clone().into()),
            CopybackLimitSpec::Measured { within_ns, level } => Self::Measured {
                within_s: u32::try_from(*within_ns / SECOND).unwrap_or(u32::MAX),
                level: *level,
            },
        }
    }

    /// The most copybacks in a row of any page (Mcpb): so many blocks are open for them in a plane.
    pub fn most(&self) -> u8 {
        match self {
            Self::Fixed(n) => *n,
            Self::Table(lines) => lines.iter().map(|&(_, n)| n).max().unwrap_or(0),
            Self::Measured { .. } => COPYBACKS_MAX,
        }
    }

    /// Whether a page may go through its copyback number `condition.copybacks` in a row and end up in that condition.
    pub fn allows(&self, condition: &Condition, ecc: &Ecc, reliability: &mut Reliability) -> bool {
        let limit = match self {
            Self::Fixed(n) => *n,
            Self::Table(lines) => {
                lines.iter().find(|&&(pe, _)| condition.pe_cycles <= pe).map_or(0, |&(_, n)| n)
            }
            Self::Measured { within_s, level } => {
                let later = Condition { age_s: condition.age_s.saturating_add(*within_s), ..*condition };
                return condition.copybacks <= COPYBACKS_MAX
                    && ecc.level_for(reliability.rber(&later)) <= *level;
            }
        };
        condition.copybacks <= limit
    }
}
