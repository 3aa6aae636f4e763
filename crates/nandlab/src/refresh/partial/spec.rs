//! `refresh.policy.partial`.

use super::super::spec::{HOT_READS, RefreshPolicySpec};
use crate::spec::{
    Check, Choices, FromVal, Rule, SHARE, SHARE_ABOVE_0, Val, ValueKind, choices, int, param, params, plain,
};

params! {
    /// `refresh.policy.partial`.
    #[derive(Clone, Copy, Debug, PartialEq)]
    pub struct PartialSpec {
        /// Share of a page's bits that are susceptible; `None`: by the `vth` model.
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
        /// How they are written down.
        pub encoding: Encoding = param(
            "encoding",
            ValueKind::Slot(Encoding::CHOICES),
            "\"paper\"",
            "how the susceptible bits are written down",
        ),
        /// Bits of an LDPC codeword.
        pub codeword_bits: u32 =
            param("codeword_bits", int(64, 1 << 20), "8192", "bits of an LDPC codeword"),
        /// Pages of the virtual shadow memory.
        pub vsm_pages: u32 = param("vsm_pages", int(1, 4096), "4", "pages of the virtual shadow memory"),
        /// Below this share of free blocks all refreshes are conventional.
        pub min_free_blocks: f64 = param(
            "min_free_blocks",
            SHARE,
            "0.20",
            "below this share of free blocks every refresh is conventional",
        ),
        /// A page that has been read so often since it was programmed is refreshed conventionally.
        pub hot_reads: u32 = param(
            "hot_reads",
            HOT_READS,
            "8",
            "pages read so often since they were programmed are refreshed conventionally",
        ),
        /// A page whose susceptible data takes more than this share of a page is refreshed conventionally.
        pub max_share: f64 = param(
            "max_share",
            SHARE_ABOVE_0,
            "1.0",
            "pages whose susceptible data takes more than this share of a page are refreshed conventionally",
        ),
    }
}

const SUSCEPTIBLE: ValueKind = ValueKind::Either(&[
    SHARE,
    ValueKind::Slot(&[plain("vth", "by the distributions of reliability.rber.vth, page by page")]),
]);

choices! {
    /// `refresh.policy.partial.encoding`.
    #[derive(Clone, Copy, Debug, PartialEq, Eq)]
    pub enum Encoding {
        /// As many bits as are susceptible, as the paper's evaluation counts.
        Paper = "paper": "as many bits as are susceptible, as the paper's evaluation counts",
        /// An offset and a value for each bit, and an entry for each codeword (Section 3.3).
        Entries = "entries": "an offset in the codeword and a value for each bit (Section 3.3 of the paper)",
        /// Positions and values at their entropy.
        Enumerative = "enumerative": "positions and values at their entropy",
    }
}

pub(crate) const RULES: &[Rule] = &[susceptible_ratio];

/// Susceptible bits by the model need the model.
fn susceptible_ratio(check: &mut Check<'_>) -> Option<()> {
    const KEY: &str = "refresh.policy";
    let policy = RefreshPolicySpec::from_val(check.get(KEY)?);
    let is_vth = policy.partial()?.susceptible_ratio.is_none();
    if is_vth && check.tag("reliability.rber")? != "vth" {
        let message = "susceptible_ratio = \"vth\" asks for the voltage model, and there is none";
        let remedy = "set reliability.rber = \"vth\", or a number such as 0.0788";
        check.error(&[KEY, "reliability.rber"], message, remedy);
    }
    Some(())
}
