//! The section `[migration]` of the spec.

use super::{COPYBACKS_MAX, CopybackLimit, POLICIES};
use crate::base::policy::PolicyInfo;
use crate::base::units::Span;
use crate::ftl::needs::Need;
use crate::ftl::streams::{StreamSpec, Writer};
use crate::host::Occupancy;
use crate::sched::CopybackGap;
use crate::spec::{
    AGE, Check, Choices, FromVal, Param, Policy, Rule, Val, ValueKind, choices, int, key, num, param, plain,
    section, with,
};
use std::sync::LazyLock;

/// The stream of the units that have been copied back `copybacks` times in a row: an open superblock. The first of these
/// streams also needs a free superblock, so that a job may open both a superblock for copybacks and a superblock for
/// units that it moves off-chip.
pub(crate) fn stream(copybacks: u8) -> StreamSpec {
    let need = Need::new("copyback", "copybacks", 1, u64::from(copybacks == 1));
    StreamSpec::new(4 + copybacks, Writer::Job, need).marked(copybacks)
}

section! {
    /// `[migration]`: how background jobs move units.
    #[derive(Clone, Debug, PartialEq)]
    pub struct MigrationSpec {
        /// The migration policy, with the limit to the number of copybacks in a row.
        pub policy: MigrationPolicySpec = key(
            "migration.policy",
            ValueKind::Registered(policies),
            "\"off-chip\"",
            "how GC, wear levelling and folding move pages: off-chip, or by copyback within the plane",
        ),
        /// The largest number of programming units whose copies a background job has under way at a time, on each of its
        /// dies.
        pub in_flight: u32 = key(
            "migration.in_flight",
            int(1, 256),
            "4",
            "most copies of a background job under way at a time",
        ),
        /// The share of the units of a page that must be valid for a copyback.
        pub valid_min: f64 = key(
            "migration.valid_min",
            num(0.0, 1.0),
            "1",
            "least share of a page's mapping units that must be valid for a copyback, which copies all of them",
        ),
        /// The open superblock to which GC moves units off-chip.
        pub first_block: FirstBlock = key(
            "migration.first_block",
            ValueKind::Slot(FirstBlock::CHOICES),
            "\"own\"",
            "the open block to which GC moves pages off-chip: its own, or that of host writes",
        ),
        /// Whether host reads may come between the sense and the program of a copyback.
        pub copyback: CopybackCourse = key(
            "migration.copyback",
            ValueKind::Slot(CopybackCourse::CHOICES),
            "\"whole\"",
            "whether host reads may come between the sense and the program of a copyback",
        ),
    }
}

choices! {
    /// `migration.copyback`: the course of a copyback on its die.
    #[derive(Clone, Copy, Debug, PartialEq, Eq)]
    pub enum CopybackCourse {
        /// Nothing comes between the sense and the program.
        Whole = "whole": "a copyback occupies its die from the sense to the end of the program",
        /// Waiting host reads come between the sense and the program.
        Split = "split": "host reads may come between the sense and the program: of other planes, or with drive.registers = 2 of all",
    }
}

choices! {
    /// `migration.first_block`: the open superblock to which GC moves units off-chip, b(0) of the rcopyback paper.
    #[derive(Clone, Copy, Debug, PartialEq, Eq)]
    pub enum FirstBlock {
        /// An open superblock of its own in each lane.
        Own = "own": "GC has an open block of its own in each plane",
        /// The open superblock of host writes.
        Shared = "shared": "GC moves pages to the open block of host writes, with their priority",
    }
}

impl MigrationSpec {
    /// Whether GC moves units to the open superblock of host writes.
    pub(crate) fn shares_first_block(&self) -> bool {
        self.first_block == FirstBlock::Shared
    }

    /// The host reads that may come between the sense and the program of a copyback, on planes with this number of page
    /// registers. `None`: no reads.
    pub fn gap(&self, registers: u32) -> Option<CopybackGap> {
        match (self.copyback, registers) {
            (CopybackCourse::Whole, _) => None,
            (CopybackCourse::Split, 1) => Some(CopybackGap::OtherPlanes),
            (CopybackCourse::Split, _) => Some(CopybackGap::AllPlanes),
        }
    }
}

/// `migration.policy`: whether units are moved by copyback, and how often in a row.
#[derive(Clone, Debug, PartialEq)]
pub struct MigrationPolicySpec {
    /// The name of the migration policy, one of [`crate::migration::POLICIES`].
    pub name: &'static str,
    /// The limit to the number of copybacks in a row.
    pub limit: CopybackLimitSpec,
    /// Which units of the write buffer count in its utilisation.
    pub occupancy: Occupancy,
}

impl MigrationPolicySpec {
    /// The highest number of copybacks in a row that the limit allows for any unit (Mcpb).
    pub fn copybacks_max(&self) -> u8 {
        CopybackLimit::new(&self.limit).copybacks_max()
    }
}

/// The name of the policy without copybacks.
const OFF_CHIP: &str = "off-chip";

/// The name of the policy that decides by the utilisation of the write buffer.
const SELECTOR: &str = "rcopyback";

fn policies() -> &'static [Policy] {
    static ALL: LazyLock<Vec<Policy>> = LazyLock::new(|| {
        let policy = |info: &PolicyInfo| match info.name {
            OFF_CHIP => plain(info.name, info.description),
            SELECTOR => with(info.name, &[LIMIT, OCCUPANCY], info.description),
            _ => with(info.name, &[LIMIT], info.description),
        };
        POLICIES.iter().map(|(info, _)| policy(info)).collect()
    });
    &ALL
}

/// `migration.policy.*.limit`: the limit to the number of copybacks in a row.
#[derive(Clone, Debug, PartialEq)]
pub enum CopybackLimitSpec {
    /// The same number of copybacks for every superblock.
    Fixed(u8),
    /// A number by the P/E cycles of the destination superblock: each line is (highest P/E cycles, copybacks).
    /// Superblocks with more P/E cycles than the last line take no copybacks.
    Table(Vec<(u32, u8)>),
    /// As many copybacks as leave the unit readable.
    Measured {
        /// Retention for which the unit has to stay readable.
        within_ns: Span,
        /// The highest read level at which the unit has to be readable.
        level: u8,
    },
}

pub(crate) const LIMIT: Param = param(
    "limit",
    ValueKind::Either(&[
        COPYBACKS,
        ValueKind::Slot(&[
            plain("table", "a number by the P/E cycles of the destination block (rcopyback paper, Table 1)"),
            with(
                "measured",
                MEASURED,
                "as many copybacks as leave the page readable, by its RBER in the destination block",
            ),
        ]),
        ValueKind::List(LINE, 32),
    ]),
    "\"table\"",
    "most copybacks in a row: a number, a table by P/E cycles, or measured",
);

pub(crate) const OCCUPANCY: Param = param(
    "occupancy",
    ValueKind::Slot(Occupancy::CHOICES),
    "\"writing\"",
    "which pages of the write buffer (write cache or ftl.buffer) count in its utilisation",
);

choices! {
    for Occupancy {
        Writing = "writing":
            "the pages of the write cache that are being written back; none of ftl.buffer. An LRU cache keeps its pages \
             dirty whatever the load",
        Occupied = "occupied":
            "rcopyback paper, Section 4.2: all pages with data that flash lacks, as a share of all pages: the dirty pages of \
             the write cache, including those being written back, or the acknowledged pages of ftl.buffer whose program has \
             not ended",
    }
}

/// Highest number of copybacks in a row. A lane may have one open superblock for each number.
const COPYBACKS: ValueKind = int(0, COPYBACKS_MAX as u64);

const MEASURED: &[Param] = &[
    param("within", AGE, "\"365d\"", "retention for which the page has to stay readable"),
    param(
        "level",
        int(1, 16),
        "7",
        "highest read level at which the page has to be readable; at most the last level",
    ),
];

const LINE: &[Param] = &[
    param("pe", int(0, 10_000_000), "", "highest P/E cycles of the blocks to which the line applies"),
    param("copybacks", COPYBACKS, "", "most copybacks in a row"),
];

/// The limit `table`. D. Hong, M. Kim, J. Park, M. Jung and J. Kim, "Revitalizing copybacks in modern SSDs: why and
/// how", DAC 2018: Table 1, for a year of retention; the five copybacks at 0 P/E cycles are from Fig. 3(b).
const THRESHOLDS: [(u32, u8); 4] = [(0, 5), (1000, 4), (2000, 3), (3000, 2)];

impl FromVal for MigrationPolicySpec {
    fn from_val(val: &Val) -> Self {
        let name = val.tag();
        let limit = match val {
            Val::Tag(OFF_CHIP, None) => CopybackLimitSpec::Fixed(0),
            // The parameters of a policy from outside that is not loaded are not known.
            Val::Tag(_, None) => CopybackLimitSpec::Table(THRESHOLDS.to_vec()),
            Val::Tag(_, Some(params)) if matches!(**params, Val::Unchecked(..)) => {
                CopybackLimitSpec::Table(THRESHOLDS.to_vec())
            }
            Val::Tag(_, Some(params)) => params.read("limit"),
            _ => val.is_no("migration policy"),
        };
        let occupancy = match val {
            Val::Tag(_, Some(params)) => {
                params.get("occupancy").map_or(Occupancy::Writing, Occupancy::from_val)
            }
            _ => Occupancy::Writing,
        };
        Self { name, limit, occupancy }
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

pub(crate) const RULES: &[Rule] = &[limit, split, shared];

/// The settings that need an open superblock of GC's own.
fn shared(check: &mut Check<'_>) -> Option<()> {
    const KEY: &str = "migration.first_block";
    if !check.is(KEY, "shared") {
        return None;
    }
    let stays = match check.get("refresh.policy")? {
        Val::Tag("partial", _) => true,
        Val::Tag("fcr", Some(fcr)) => fcr.read("in_place"),
        _ => false,
    };
    let needs = [
        (
            check.is("gc.foreground", "blocking"),
            "gc.foreground",
            "a cleaning has the die to itself, without host writes",
        ),
        (
            check.is("gc.pacing", "proportional"),
            "gc.pacing",
            "the copies of GC are queued with the host's writes, so GC cannot have a share of its own",
        ),
        (
            check.num("capacitor.capacitance")? > 0.0,
            "capacitor.capacitance",
            "the pages that a job copies must not share a wordline with host writes",
        ),
        (
            stays,
            "refresh.policy",
            "a refresh without an erase must be able to write its pages elsewhere at any time",
        ),
    ];
    for (_, key, why) in needs.into_iter().filter(|&(is_set, ..)| is_set) {
        let message = format!("\"shared\" cannot be combined with this {key}: {why}");
        check.error(&[KEY, key], message, format!("set {KEY} = \"own\", or change {key}"));
    }
    Some(())
}

/// `split` has no effect without copybacks or under `fcfs`.
fn split(check: &mut Check<'_>) -> Option<()> {
    const KEY: &str = "migration.copyback";
    const POLICY: (&str, &str) = ("migration.policy", OFF_CHIP);
    if !check.is(KEY, "split") {
        return None;
    }
    let instead = "set migration.policy, such as \"rcopyback\"";
    check.no_effect_with(KEY, POLICY, ", which makes no copybacks", instead, "whole");
    check.no_effect_with_fcfs(KEY, "whole");
    Some(())
}

fn limit(check: &mut Check<'_>) -> Option<()> {
    const KEY: &str = "migration.policy";
    match MigrationPolicySpec::from_val(check.get(KEY)?).limit {
        CopybackLimitSpec::Table(lines) => {
            if let Some(pair) = lines.windows(2).find(|pair| pair[1].0 <= pair[0].0) {
                let message = format!(
                    "limit: expected pe above the {} of the line before it, found {}",
                    pair[0].0, pair[1].0
                );
                check.error(&[KEY], message, "order the lines by rising pe");
            }
        }
        // Without read levels every unit counts as readable, so `measured` would never refuse a copyback.
        CopybackLimitSpec::Measured { .. } if check.tag("ecc.levels")? == "none" => {
            let message = "the limit \"measured\" needs read levels, but ecc.levels = \"none\"";
            let remedy = "set ecc.levels, such as \"laldpc\", or another limit";
            check.error(&[KEY, "ecc.levels"], message, remedy);
        }
        CopybackLimitSpec::Fixed(_) | CopybackLimitSpec::Measured { .. } => {}
    }
    Some(())
}
