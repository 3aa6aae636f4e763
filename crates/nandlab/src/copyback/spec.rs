//! `[migration]`.

use super::{COPYBACKS_MAX, CopybackLimit, POLICIES};
use crate::base::policy::PolicyInfo;
use crate::base::units::Span;
use crate::spec::{
    AGE, Check, FromVal, Key, Param, Policy, Resolved, Rule, Section, Val, ValueKind, int, key, param, plain,
    with,
};
use std::sync::LazyLock;

/// `[migration]`: how pages are copied inside the drive.
#[derive(Clone, Debug, PartialEq)]
pub struct MigrationSpec {
    /// A name from [`crate::copyback::POLICIES`].
    pub policy: &'static str,
    /// How many copybacks in a row a page may go through.
    pub limit: CopybackLimitSpec,
}

impl MigrationSpec {
    /// The most copybacks in a row of any page (Mcpb).
    pub fn copybacks_max(&self) -> u8 {
        CopybackLimit::new(&self.limit).most()
    }
}

impl Section for MigrationSpec {
    const KEYS: &'static [Key] = &[key(
        "migration.policy",
        ValueKind::Registered(policies),
        "\"off-chip\"",
        "how pages are copied inside the drive",
    )];

    fn of(values: &Resolved) -> Self {
        values.read("migration.policy")
    }
}

/// The one policy that copies nothing back.
const OFF_CHIP: &str = "off-chip";

fn policies() -> &'static [Policy] {
    static ALL: LazyLock<Vec<Policy>> = LazyLock::new(|| {
        let policy = |info: &PolicyInfo| match info.name {
            OFF_CHIP => plain(info.name, info.description),
            _ => with(info.name, LIMIT, info.description),
        };
        POLICIES.iter().map(|(info, _)| policy(info)).collect()
    });
    &ALL
}

/// `migration.policy.*.limit`.
#[derive(Clone, Debug, PartialEq)]
pub enum CopybackLimitSpec {
    /// The same for every block.
    Fixed(u8),
    /// Up to so many P/E cycles of the destination, so many copybacks; beyond the last line none.
    Table(Vec<(u32, u8)>),
    /// As many as leave the page readable.
    Measured {
        /// For so long.
        within_ns: Span,
        /// At this read level or a lower one.
        level: u8,
    },
}

const LIMIT: &[Param] = &[param(
    "limit",
    ValueKind::Either(&[
        COPYBACKS,
        ValueKind::Slot(&[
            plain("table", "by the P/E cycles of the destination (rcopyback paper, Table 1)"),
            with("measured", MEASURED, "as many as the RBER of the destination allows"),
        ]),
        ValueKind::List(LINE, 32),
    ]),
    "\"table\"",
    "copybacks in a row at most: a number, by P/E cycles, or measured",
)];

/// So many blocks are open for copybacks in every plane.
const COPYBACKS: ValueKind = int(0, COPYBACKS_MAX as u64);

const MEASURED: &[Param] = &[
    param("within", AGE, "\"365d\"", "the page stays readable for so long"),
    param("level", int(1, 16), "7", "at this read level or a lower one"),
];

const LINE: &[Param] = &[
    param("pe", int(0, 10_000_000), "", "up to this many P/E cycles"),
    param("copybacks", COPYBACKS, "", "copybacks in a row at most"),
];

/// D. Hong, M. Kim, J. Park, M. Jung and J. Kim, "Revitalizing copybacks in modern SSDs: why and how", DAC 2018: Table 1,
/// for a year of retention; five at 0 P/E cycles by Fig. 3(b).
const THRESHOLDS: [(u32, u8); 4] = [(0, 5), (1000, 4), (2000, 3), (3000, 2)];

impl FromVal for MigrationSpec {
    fn from_val(val: &Val) -> Self {
        let policy = val.tag();
        let limit = match val {
            Val::Tag(OFF_CHIP, None) => CopybackLimitSpec::Fixed(0),
            Val::Tag(_, Some(params)) => params.read("limit"),
            _ => val.is_no("migration policy"),
        };
        Self { policy, limit }
    }
}

impl FromVal for CopybackLimitSpec {
    fn from_val(val: &Val) -> Self {
        match val {
            Val::Int(copybacks) => Self::Fixed(*copybacks as u8),
            Val::List(lines) => {
                let line = |line: &Val| (line.read("pe"), line.field("copybacks").int() as u8);
                Self::Table(lines.iter().map(line).collect())
            }
            Val::Tag("table", None) => Self::Table(THRESHOLDS.to_vec()),
            Val::Tag("measured", Some(params)) => {
                Self::Measured { within_ns: params.read("within"), level: params.field("level").int() as u8 }
            }
            _ => val.is_no("limit of copybacks"),
        }
    }
}

pub(crate) const RULES: &[Rule] = &[limit];

fn limit(check: &mut Check<'_>) -> Option<()> {
    const KEY: &str = "migration.policy";
    match MigrationSpec::from_val(check.get(KEY)?).limit {
        CopybackLimitSpec::Table(lines) => {
            if let Some(pair) = lines.windows(2).find(|pair| pair[1].0 <= pair[0].0) {
                let message =
                    format!("limit: pe = {} is not above the {} of the line before it", pair[1].0, pair[0].0);
                check.error(&[KEY], message, "order the lines by pe, each above the last");
            }
        }
        // Without levels any page counts as readable.
        CopybackLimitSpec::Measured { .. } if check.tag("ecc.levels")? == "none" => {
            let message =
                "the limit \"measured\" asks for the read level of a page, and there are no read levels";
            let remedy = "set ecc.levels, such as \"laldpc\", or another limit";
            check.error(&[KEY, "ecc.levels"], message, remedy);
        }
        CopybackLimitSpec::Fixed(_) | CopybackLimitSpec::Measured { .. } => {}
    }
    Some(())
}
