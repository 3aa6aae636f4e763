//! The spec key `refresh.policy.partial`.

use super::super::spec::{HOT_READS, RefreshPolicySpec};
use crate::ftl::needs::Need;
use crate::ftl::streams::{OwnLpns, StreamSpec, Writer};
use crate::spec::{
    Check, Choices, FromVal, Rule, SHARE, SHARE_ABOVE_0, Val, ValueKind, choices, int, param, params, plain,
};

/// The name of the stream of combination pages.
pub(super) const STREAM: &str = "combination";

/// The stream of combination pages: an open and a free superblock. The largest number of combination pages at a time, an
/// assumption: a quarter of all units.
pub(crate) fn stream() -> StreamSpec {
    let need = Need::new(STREAM, "combination pages of partial refresh", 1, 1);
    StreamSpec::new(4, Writer::Internal, need).with_lpns(OwnLpns::PerUnit(4))
}

params! {
    /// `refresh.policy.partial`: partial refresh.
    #[derive(Clone, Copy, Debug, PartialEq)]
    pub struct PartialSpec {
        /// Share of a unit's bits that are susceptible; `None`: computed from the RBER model.
        pub susceptible_ratio: Option<f64> = param(
            "susceptible_ratio",
            SUSCEPTIBLE,
            "0.0788",
            "share of a page's bits that are susceptible",
        ) => |val| match val {
            Val::Num(ratio) => Some(*ratio),
            Val::Tag("vth", None) => None,
            _ => val.is_no("share of susceptible bits"),
        },
        /// How the susceptible bits are encoded.
        pub encoding: Encoding = param(
            "encoding",
            ValueKind::Slot(Encoding::CHOICES),
            "\"paper\"",
            "how the susceptible bits are encoded",
        ),
        /// Bits of an LDPC codeword; used by the encoding `entries` only.
        pub codeword_bits: u32 = param(
            "codeword_bits",
            int(64, 1 << 20),
            "8192",
            "bits of an LDPC codeword; used by encoding = \"entries\" only",
        ),
        /// Size of the virtual shadow memory (VSM), in pages.
        pub vsm_pages: u32 = param("vsm_pages", int(1, 4096), "4", "size of the virtual shadow memory (VSM), in pages"),
        /// Below this share of free superblocks every refresh is conventional.
        pub min_free_blocks: f64 = param(
            "min_free_blocks",
            SHARE,
            "0.20",
            "below this share of free blocks every refresh is conventional",
        ),
        /// A unit with at least this many host reads since its program is refreshed conventionally.
        pub hot_reads: u32 = param(
            "hot_reads",
            HOT_READS,
            "8",
            "a mapping unit with at least this many host reads since its program is refreshed conventionally",
        ),
        /// A unit whose encoded susceptible bits take more than this share of a unit is refreshed conventionally.
        pub max_share: f64 = param(
            "max_share",
            SHARE_ABOVE_0,
            "1.0",
            "a mapping unit whose encoded susceptible bits take more than this share of a unit is refreshed conventionally",
        ),
        /// The refreshes whose reads go straight to the highest level.
        pub full_strength: FullStrength = param(
            "full_strength",
            ValueKind::Slot(FullStrength::CHOICES),
            "\"all\"",
            "the refreshes whose reads go straight to the highest level",
        ),
    }
}

const SUSCEPTIBLE: ValueKind = ValueKind::Either(&[
    SHARE,
    ValueKind::Slot(&[plain("vth", "computed for each page from the distributions of reliability.rber")]),
]);

choices! {
    /// `refresh.policy.partial.full_strength`: the refreshes whose reads go straight to the highest level.
    #[derive(Clone, Copy, Debug, PartialEq, Eq)]
    pub enum FullStrength {
        /// All refreshes under the policy `partial`.
        All = "all": "partial and conventional refreshes",
        /// Partial refreshes, which have to find the susceptible bits. A conventional refresh reads as under `fcr`.
        Partial = "partial": "partial refreshes only; a conventional refresh tries all levels from the first",
    }
}

choices! {
    /// `refresh.policy.partial.encoding`: how the susceptible bits of a unit are encoded.
    #[derive(Clone, Copy, Debug, PartialEq, Eq)]
    pub enum Encoding {
        /// One bit per susceptible bit, as in the evaluation of the partial refresh paper (Section 4.1).
        Paper = "paper": "one bit per susceptible bit, as in the evaluation of the partial refresh paper",
        /// An entry (offset in the codeword, and value) for each susceptible bit, and one more entry per codeword
        /// (Section 3.3 of the partial refresh paper).
        Entries = "entries": "for each susceptible bit an offset in the codeword and a value (partial refresh paper)",
        /// The entropy of the positions of the susceptible bits, and one bit for the value of each.
        Enumerative = "enumerative": "the entropy of the positions, and one bit for the value of each susceptible bit",
    }
}

pub(crate) const RULES: &[Rule] = &[susceptible_ratio];

/// `susceptible_ratio = "vth"` needs an RBER model of voltages.
fn susceptible_ratio(check: &mut Check<'_>) -> Option<()> {
    const KEY: &str = "refresh.policy";
    let policy = RefreshPolicySpec::from_val(check.get(KEY)?);
    let is_vth = policy.partial()?.susceptible_ratio.is_none();
    if is_vth && !check.tag("reliability.rber")?.starts_with("vth") {
        let message = "susceptible_ratio = \"vth\" needs reliability.rber = \"vth\" or \"vth-tlc\"";
        let remedy = "set reliability.rber to one of these, or susceptible_ratio to a number such as 0.0788";
        check.error(&[KEY, "reliability.rber"], message, remedy);
    }
    Some(())
}
