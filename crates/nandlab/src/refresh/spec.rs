//! The section `[refresh]` of the spec.

use super::partial::spec::{FullStrength, PartialSpec};
use crate::base::units::Span;
use crate::sched::Class;
use crate::spec::{
    Check, Choices, FromVal, Params, Policy, Rule, SHARE, SOME_TIME, Val, ValueKind, choices, int, key, num,
    param, params, plain, section, with,
};

section! {
    /// `[refresh]`: how ageing data is kept readable.
    #[derive(Clone, Debug, PartialEq)]
    pub struct RefreshSpec {
        /// The refresh policy: how a due superblock is refreshed.
        pub policy: RefreshPolicySpec =
            key("refresh.policy", ValueKind::Slot(POLICIES), "\"none\"", "how ageing data is refreshed"),
        /// Refresh intervals: each line is (highest P/E cycles, time from first program or last refresh until the
        /// superblock is due). Superblocks with more P/E cycles than the last line have the interval of the last line.
        pub interval: Vec<(u32, Span)> = key(
            "refresh.interval",
            INTERVAL,
            "[{ pe = 1000, every = \"365d\" }, { pe = 2000, every = \"30d\" }, { pe = 4000, every = \"7d\" }]",
            "time from first program or last refresh until a block is due, by its P/E cycles",
        )
        .note("Table 1 of the partial refresh paper")
            => |values, path| {
                let lines = values.val(path).list().iter();
                lines.map(|line| (line.read("pe"), line.read("every"))).collect()
            },
        /// The place of a refresh job's operations on their dies.
        pub priority: RefreshPriority = key(
            "refresh.priority",
            ValueKind::Slot(RefreshPriority::CHOICES),
            "\"background\"",
            "whether the operations of refresh come before host reads and writes on their dies",
        ),
        /// Share of its interval by which a superblock may be overdue before it counts as late.
        pub grace: f64 = key(
            "refresh.grace",
            SHARE,
            "0.01",
            "share of its interval by which a block may be overdue before it counts as late",
        ),
    }
}

choices! {
    /// `refresh.priority`: the place of the operations of refresh, and of all programs of combination pages, on their
    /// dies. The places of GC, wear levelling and read reclaim do not depend on it.
    #[derive(Clone, Copy, Debug, PartialEq, Eq)]
    pub enum RefreshPriority {
        /// With the other background work, after the host.
        Background = "background": "refresh yields to the host, until half of the grace is over",
        /// After host reads, before host writes.
        BeforeWrites = "before-writes": "after host reads and before host writes, from the start of a refresh to its end",
        /// Before host reads and writes.
        First = "first": "before host reads and writes, from the start of a refresh to its end",
    }
}

impl RefreshPriority {
    /// The queue of a die in which the operations of refresh wait.
    pub(crate) fn class(self) -> Class {
        match self {
            RefreshPriority::Background => Class::Background,
            RefreshPriority::BeforeWrites => Class::BeforeWrites,
            RefreshPriority::First => Class::First,
        }
    }
}

const INTERVAL: ValueKind = ValueKind::List(
    &[
        param("pe", int(1, 10_000_000), "", "highest P/E cycles of the blocks to which the line applies"),
        param("every", SOME_TIME, "", "time from first program or last refresh until a block is due"),
    ],
    64,
);

/// `refresh.policy`: how a due superblock is refreshed.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum RefreshPolicySpec {
    /// No refresh.
    None,
    /// Every valid unit is read, corrected and programmed anew (FCR).
    Fcr(FcrSpec),
    /// FCR with a cache of the error positions of read-hot units (EC-Cache).
    EcCache(EcCacheSpec),
    /// Partial refresh: of most units only the susceptible bits are written elsewhere. Refresh reads go straight to the
    /// highest level.
    Partial(PartialSpec),
}

const POLICIES: &[Policy] = &[
    plain("none", "data is never refreshed"),
    with("fcr", FcrSpec::PARAMS, "every valid page is corrected and rewritten when its block is due"),
    with(
        "ec-cache",
        EcCacheSpec::PARAMS,
        "fcr, with a cache of known error positions of pages that are read often",
    ),
    with(
        "partial",
        PartialSpec::PARAMS,
        "partial refresh: only the susceptible bits of a page are moved, to a combination page",
    ),
];

impl FromVal for RefreshPolicySpec {
    fn from_val(val: &Val) -> Self {
        match val {
            Val::Tag("none", None) => Self::None,
            Val::Tag("fcr", Some(params)) => Self::Fcr(FcrSpec::from_val(params)),
            Val::Tag("ec-cache", Some(params)) => Self::EcCache(EcCacheSpec::from_val(params)),
            Val::Tag("partial", Some(params)) => Self::Partial(PartialSpec::from_val(params)),
            _ => val.is_no("refresh policy"),
        }
    }
}

impl RefreshPolicySpec {
    /// The parameters of partial refresh; `None` under other policies.
    pub fn partial(&self) -> Option<&PartialSpec> {
        match self {
            RefreshPolicySpec::Partial(partial) => Some(partial),
            _ => None,
        }
    }

    /// Whether the reads of a refresh go straight to the highest level; `is_partial`: the superblock is refreshed
    /// partially.
    pub fn reads_full_strength(&self, is_partial: bool) -> bool {
        match self {
            RefreshPolicySpec::Fcr(fcr) => fcr.full_strength,
            RefreshPolicySpec::Partial(partial) => is_partial || partial.full_strength == FullStrength::All,
            RefreshPolicySpec::None | RefreshPolicySpec::EcCache(_) => false,
        }
    }

    /// The parameters of `fcr` if `fcr` reprograms units in place; otherwise `None`.
    pub fn in_place(&self) -> Option<&FcrSpec> {
        match self {
            RefreshPolicySpec::Fcr(fcr) => Some(fcr).filter(|fcr| fcr.in_place),
            _ => None,
        }
    }

    /// The parameters of the cache of known error positions; `None` under other policies.
    pub fn ec_cache(&self) -> Option<&EcCacheSpec> {
        match self {
            RefreshPolicySpec::EcCache(cache) => Some(cache),
            _ => None,
        }
    }

    /// The lowest number of host reads since its program at which a unit is read-hot; `None` if the policy does not
    /// count reads.
    pub fn hot_reads(&self) -> Option<u32> {
        match self {
            RefreshPolicySpec::EcCache(cache) => Some(cache.hot_reads),
            RefreshPolicySpec::Partial(partial) => Some(partial.hot_reads),
            RefreshPolicySpec::None | RefreshPolicySpec::Fcr(_) => None,
        }
    }
}

params! {
    /// `refresh.policy.fcr`: every valid unit of a due superblock is read, corrected and programmed anew.
    #[derive(Clone, Copy, Debug, PartialEq)]
    pub struct FcrSpec {
        /// Refresh reads go straight to the highest level instead of trying all levels from the first.
        pub full_strength: bool =
            param("full_strength", ValueKind::Bool, "false", "refresh reads go straight to the highest level"),
        /// Units are reprogrammed where they are, and the superblock is not erased.
        pub in_place: bool = param(
            "in_place",
            ValueKind::Bool,
            "false",
            "pages are reprogrammed where they are, and the block is not erased",
        ),
        /// RBER that every unit reprogrammed in place adds to all units of its superblock until the erase, 0 to 0.01.
        pub reprogram_error: f64 = param(
            "reprogram_error",
            num(0.0, 1e-2),
            "0.0",
            "RBER that every page reprogrammed in place adds to all pages of its block until the erase: a program \
             disturbs the neighbouring pages, most strongly in 3D flash",
        ),
        /// RBER from programs in place above which a due superblock is remapped: its units are written elsewhere and
        /// the superblock is erased (the hybrid of the FCR paper). `None`: never.
        pub remap_above: Option<f64> = param(
            "remap_above",
            REMAP_ABOVE,
            "\"never\"",
            "RBER from programs in place above which the pages of a due block are written elsewhere and the block is \
             erased",
        ) => |val| match val {
            Val::Num(rber) => Some(*rber),
            Val::Tag("never", None) => None,
            _ => val.is_no("RBER"),
        },
    }
}

const REMAP_ABOVE: ValueKind = ValueKind::Either(&[
    num(0.0, 1e-2),
    ValueKind::Slot(&[plain("never", "blocks are refreshed in place at every interval")]),
]);

params! {
    /// `refresh.policy.ec-cache`: `fcr` with a cache of known error positions.
    #[derive(Clone, Copy, Debug, PartialEq)]
    pub struct EcCacheSpec {
        /// RAM for error positions, in bytes.
        pub size_bytes: u64 = param(
            "size",
            ValueKind::Size { min: 512, max: 1 << 40, step: 512 },
            "\"1MiB\"",
            "RAM for error positions",
        ),
        /// The error positions of a unit are kept if the unit has at least this many host reads since its program, 1 to
        /// 255.
        pub hot_reads: u32 = param(
            "hot_reads",
            HOT_READS,
            "8",
            "the error positions of a mapping unit with at least this many host reads since its program are kept",
        ),
    }
}

/// Range of `hot_reads`: the reads of a unit are counted in one byte.
pub(super) const HOT_READS: ValueKind = int(1, 255);

pub(crate) const RULES: &[Rule] = &[known_errors, in_place, priority];

/// `ec-cache` needs a model of bit errors (`reliability.rber`).
fn known_errors(check: &mut Check<'_>) -> Option<()> {
    const KEY: &str = "refresh.policy";
    RefreshPolicySpec::from_val(check.get(KEY)?).ec_cache()?;
    if check.is("reliability.rber", "none") {
        let message = "\"ec-cache\" has no effect with reliability.rber = \"none\"";
        let remedy = "set reliability.rber, such as \"vth\", or refresh.policy = \"fcr\"";
        check.error(&[KEY, "reliability.rber"], message, remedy);
    }
    Some(())
}

/// A unit reprogrammed in place has no other copy, so its program must not be torn: `in_place` with power loss needs a
/// capacitor. `reprogram_error` needs `in_place` and an RBER model.
fn in_place(check: &mut Check<'_>) -> Option<()> {
    const KEY: &str = "refresh.policy";
    let RefreshPolicySpec::Fcr(fcr) = RefreshPolicySpec::from_val(check.get(KEY)?) else { return None };
    if fcr.reprogram_error > 0.0 && !fcr.in_place {
        let message = "reprogram_error has no effect without in_place = true";
        let remedy = "set in_place = true, or reprogram_error = 0.0";
        check.error(&[KEY], message, remedy);
    }
    if fcr.reprogram_error > 0.0 && check.tag("reliability.rber")? == "none" {
        let message = "reprogram_error has no effect with reliability.rber = \"none\"";
        let remedy = "set reliability.rber, such as \"vth\", or reprogram_error = 0.0";
        check.error(&[KEY, "reliability.rber"], message, remedy);
    }
    if fcr.remap_above.is_some() && fcr.reprogram_error == 0.0 {
        let message = "remap_above has no effect without reprogram_error, the RBER that it limits";
        let remedy = "set in_place = true and reprogram_error, such as 2e-6, or remap_above = \"never\"";
        check.error(&[KEY], message, remedy);
    }
    if fcr.in_place && check.cuts_power() && check.num("capacitor.capacitance")? == 0.0 {
        let message = "in_place = true without a capacitor loses data when power fails during a program";
        let remedy = "set capacitor.capacitance, such as \"75mF\", or in_place = false";
        check.error(&[KEY, "capacitor.capacitance"], message, remedy);
    }
    Some(())
}

/// `refresh.priority` has no effect under `fcfs` or without refresh.
fn priority(check: &mut Check<'_>) -> Option<()> {
    const KEY: &str = "refresh.priority";
    if check.is(KEY, "background") {
        return None;
    }
    check.no_effect_with_fcfs(KEY, "background");
    let instead = "set refresh.policy, such as \"fcr\"";
    check.no_effect_with(KEY, ("refresh.policy", "none"), "", instead, "background");
    Some(())
}
