//! The limit to the number of copybacks in a row that a page may go through.

use super::{COPYBACKS_MAX, CopybackLimitSpec};
use crate::base::units::SECOND;
use crate::flash::{Condition, Ecc, Reliability};

/// The limit set by the parameter `limit` of `migration.policy`.
#[derive(Clone, Debug)]
pub enum CopybackLimit {
    /// This number for every block.
    Fixed(u8),
    /// By the P/E cycles of the destination block: each line is (highest P/E cycles, copybacks); beyond the last line
    /// no copybacks (Table 1 of the rcopyback paper).
    Table(Box<[(u32, u8)]>),
    /// As long as the copied page, after `within_s` more seconds of retention, still decodes at `level` or below.
    Measured {
        /// Seconds of retention for which the page has to stay readable.
        within_s: u32,
        /// The highest read level that the page may need at the end of that time.
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

    /// The most copybacks in a row of any page (Mcpb), which is the number of blocks open for copybacks in a plane.
    pub fn copybacks_max(&self) -> u8 {
        match self {
            Self::Fixed(n) => *n,
            Self::Table(lines) => lines.iter().map(|&(_, n)| n).max().unwrap_or(0),
            Self::Measured { .. } => COPYBACKS_MAX,
        }
    }

    /// Whether a copyback is allowed after which the page has the condition `condition`; `condition.copybacks` is the
    /// number of copybacks in a row, this one included.
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
