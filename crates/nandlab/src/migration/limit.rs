//! The limit to the number of copybacks in a row of a unit.

use super::{COPYBACKS_MAX, CopybackLimitSpec};
use crate::base::units::SECOND;
use crate::flash::{Condition, Ecc, Reliability};

/// The limit to the number of copybacks in a row: the parameter `limit` of `migration.policy`.
#[derive(Clone, Debug)]
pub enum CopybackLimit {
    /// The same number of copybacks for every superblock.
    Fixed(u8),
    /// A number by the P/E cycles of the destination superblock: each line is (highest P/E cycles, copybacks).
    /// Superblocks with more P/E cycles than the last line take no copybacks (Table 1 of the rcopyback paper).
    Table(Box<[(u32, u8)]>),
    /// A copyback is allowed if the copy still decodes at `level` or below after `within_s` more seconds of retention.
    Measured {
        /// Seconds of retention for which the unit has to stay readable.
        within_s: u32,
        /// The highest read level that the unit may need at the end of that time.
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

    /// The highest number of copybacks in a row that the limit allows for any unit (Mcpb). A lane may have one open
    /// superblock for each number from 1 to Mcpb.
    pub fn copybacks_max(&self) -> u8 {
        match self {
            Self::Fixed(n) => *n,
            Self::Table(lines) => lines.iter().map(|&(_, n)| n).max().unwrap_or(0),
            Self::Measured { .. } => COPYBACKS_MAX,
        }
    }

    /// Whether the limit depends on the RBER of the copy.
    pub(crate) fn is_measured(&self) -> bool {
        matches!(self, Self::Measured { .. })
    }

    /// Whether the limit allows a copyback that leaves the copy in the state `condition`; `condition.copybacks`
    /// includes this copyback. `carried`: the RBER of the errors that the copy takes over, 0 to 0.5, if `condition` does
    /// not include them.
    pub fn allows(
        &self,
        condition: &Condition,
        carried: f64,
        ecc: &Ecc,
        reliability: &mut Reliability,
    ) -> bool {
        let limit = match self {
            Self::Fixed(n) => *n,
            Self::Table(lines) => {
                lines.iter().find(|&&(pe, _)| condition.pe_cycles <= pe).map_or(0, |&(_, n)| n)
            }
            Self::Measured { within_s, level } => {
                let later = Condition { age_s: condition.age_s.saturating_add(*within_s), ..*condition };
                return condition.copybacks <= COPYBACKS_MAX
                    && ecc.level_at(reliability, &later, carried) <= (*level).min(ecc.levels());
            }
        };
        condition.copybacks <= limit
    }
}
