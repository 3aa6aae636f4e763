//! `[refresh]`.

use super::partial::spec::PartialSpec;
use crate::base::units::Span;
use crate::spec::{
    Check, FromVal, Params, Policy, Rule, SHARE, SOME_TIME, Val, ValueKind, int, key, num, param, params,
    plain, section, with,
};

section! {
    /// `[refresh]`: how ageing data is kept readable.
    #[derive(Clone, Debug, PartialEq)]
    pub struct RefreshSpec {
        /// What is done with a block that is due.
        pub policy: RefreshPolicySpec =
            key("refresh.policy", ValueKind::Slot(POLICIES), "\"none\"", "how ageing data is refreshed"),
        /// Up to so many P/E cycles a block is due so long after its first program or its last refresh; beyond the last
        /// line as in it.
        pub interval: Vec<(u32, Span)> = key(
            "refresh.interval",
            INTERVAL,
            "[{ pe = 1000, every = \"365d\" }, { pe = 2000, every = \"30d\" }, { pe = 4000, every = \"7d\" }]",
            "when a block is due, by its P/E cycles",
        )
        .note("Table 1 of the partial refresh paper")
            => |values, path| {
                let lines = values.val(path).list().iter();
                lines.map(|line| (line.read("pe"), line.read("every"))).collect()
            },
        /// How much of its interval a block may be overdue.
        pub grace: f64 =
            key("refresh.grace", SHARE, "0.01", "share of its interval that a block may be overdue"),
    }
}

const INTERVAL: ValueKind = ValueKind::List(
    &[
        param("pe", int(1, 10_000_000), "", "up to this many P/E cycles"),
        param("every", SOME_TIME, "", "a block is due after this time"),
    ],
    64,
);

/// `refresh.policy`.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum RefreshPolicySpec {
    /// Nothing.
    None,
    /// Every valid page is read, corrected and programmed anew (FCR).
    Fcr(FcrSpec),
    /// As FCR, and the error positions of pages that are read often are kept (EC-Cache).
    EcCache(EcCacheSpec),
    /// Only susceptible bits are written elsewhere (PR); reads as with `full_strength`.
    Partial(PartialSpec),
}

const POLICIES: &[Policy] = &[
    plain("none", "data is never refreshed"),
    with("fcr", FcrSpec::PARAMS, "every valid page is remapped when its block is due"),
    with(
        "ec-cache",
        EcCacheSpec::PARAMS,
        "fcr, with a cache of known error positions of pages that are read often",
    ),
    with(
        "partial",
        PartialSpec::PARAMS,
        "PR: only the susceptible bits of a page are moved, to pages that many share",
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
    /// How it refreshes partially, if it does.
    pub fn partial(&self) -> Option<&PartialSpec> {
        match self {
            RefreshPolicySpec::Partial(partial) => Some(partial),
            _ => None,
        }
    }

    /// Whether its reads go straight to the highest level.
    pub fn reads_full_strength(&self) -> bool {
        match self {
            RefreshPolicySpec::Fcr(fcr) => fcr.full_strength,
            RefreshPolicySpec::Partial(_) => true,
            RefreshPolicySpec::None | RefreshPolicySpec::EcCache(_) => false,
        }
    }

    /// How it reprograms pages in place, if it does.
    pub fn in_place(&self) -> Option<&FcrSpec> {
        match self {
            RefreshPolicySpec::Fcr(fcr) => Some(fcr).filter(|fcr| fcr.in_place),
            _ => None,
        }
    }

    /// The cache of known error positions, if it has one.
    pub fn ec_cache(&self) -> Option<&EcCacheSpec> {
        match self {
            RefreshPolicySpec::EcCache(cache) => Some(cache),
            _ => None,
        }
    }

    /// Whether it comes to know errors of pages that stay where they are.
    pub fn knows_errors(&self) -> bool {
        matches!(self, RefreshPolicySpec::EcCache(_) | RefreshPolicySpec::Partial(_))
    }

    /// From how many host reads since it was programmed a page is read often, if that counts here.
    pub fn hot_reads(&self) -> Option<u32> {
        match self {
            RefreshPolicySpec::EcCache(cache) => Some(cache.hot_reads),
            RefreshPolicySpec::Partial(partial) => Some(partial.hot_reads),
            RefreshPolicySpec::None | RefreshPolicySpec::Fcr(_) => None,
        }
    }
}

params! {
    /// `refresh.policy.fcr`.
    #[derive(Clone, Copy, Debug, PartialEq)]
    pub struct FcrSpec {
        /// Its reads go straight to the highest level instead of trying all from the first.
        pub full_strength: bool =
            param("full_strength", ValueKind::Bool, "false", "refresh reads go straight to the highest level"),
        /// Pages are reprogrammed where they are, instead of being written elsewhere and their block erased.
        pub in_place: bool = param(
            "in_place",
            ValueKind::Bool,
            "false",
            "pages are reprogrammed where they are, nothing is erased",
        ),
        /// RBER that every page reprogrammed in place adds to all pages of its block until the erase, 0 to 0.01.
        pub reprogram_error: f64 = param(
            "reprogram_error",
            num(0.0, 1e-2),
            "0.0",
            "RBER that every page reprogrammed in place adds to all pages of its block until its erase: its \
             neighbours are disturbed, those of 3D flash most",
        ),
    }
}

params! {
    /// `refresh.policy.ec-cache`.
    #[derive(Clone, Copy, Debug, PartialEq)]
    pub struct EcCacheSpec {
        /// RAM for error positions, in bytes.
        pub size_bytes: u64 = param(
            "size",
            ValueKind::Size { min: 512, max: 1 << 40, step: 512 },
            "\"1MiB\"",
            "RAM for error positions",
        ),
        /// Host reads of a page since it was programmed from which on its error positions are kept, 1 to 255.
        pub hot_reads: u32 = param(
            "hot_reads",
            HOT_READS,
            "8",
            "host reads of a page since it was programmed from which on its error positions are kept",
        ),
    }
}

/// Counted in a byte a page.
pub(super) const HOT_READS: ValueKind = int(1, 255);

pub(crate) const RULES: &[Rule] = &[known_errors, in_place];

/// Without errors there are no positions to keep.
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

/// A page that is reprogrammed in place is nowhere else: its program must not be torn.
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
    let is_cut = check.int("power.cut_after_requests").is_some_and(|requests| requests > 0)
        || check.get("power.cut_at").is_some();
    if fcr.in_place && is_cut && check.num("capacitor.capacitance")? == 0.0 {
        let message = "in_place = true loses data when power fails amid a program, and there is no capacitor";
        let remedy = "set capacitor.capacitance, such as \"75mF\", or in_place = false";
        check.error(&[KEY, "capacitor.capacitance"], message, remedy);
    }
    Some(())
}
