//! The section `[reclaim]` of the spec.

use crate::spec::{
    Check, FromVal, Params, Policy, Rule, SHARE_ABOVE_0, Val, ValueKind, int, key, param, params, plain,
    section, with,
};

section! {
    /// `[reclaim]`: when the data of superblocks that are read often is moved.
    #[derive(Clone, Debug, PartialEq)]
    pub struct ReclaimSpec {
        /// The condition on which a superblock is reclaimed.
        pub policy: ReclaimPolicySpec = key(
            "reclaim.policy",
            ValueKind::Slot(POLICIES),
            "\"none\"",
            "when the data of a block that is read often is moved to another block",
        ),
    }
}

/// `reclaim.policy`: the condition on which a superblock is reclaimed.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum ReclaimPolicySpec {
    /// Never.
    None,
    /// At a number of reads since the superblock's erase.
    Reads {
        /// The number of reads, at least 1.
        limit: u32,
    },
    /// At a predicted RBER of a sampled read.
    Rber {
        /// Share of the RBER that the last read level decodes, above 0 and at most 1.
        limit: f64,
        /// A read is sampled if it makes the read count of its superblock a multiple of this number, which is at least
        /// 1.
        every: u32,
    },
}

impl ReclaimSpec {
    /// Whether superblocks are reclaimed.
    pub fn is_on(&self) -> bool {
        self.policy != ReclaimPolicySpec::None
    }
}

params! {
    /// `reclaim.policy.reads`.
    struct ReadsSpec {
        limit: u32 = param("limit", int(1, u32::MAX as u64), "100000", "reads of a block since its erase"),
    }
}

params! {
    /// `reclaim.policy.rber`.
    struct SampledSpec {
        limit: f64 = param(
            "limit",
            SHARE_ABOVE_0,
            "0.9",
            "predicted RBER of a sampled read, as a share of what the last read level decodes",
        ),
        every: u32 = param("every", int(1, 1 << 20), "256", "reads of a block per sampled read"),
    }
}

const POLICIES: &[Policy] = &[
    plain("none", "blocks are not reclaimed"),
    with("reads", ReadsSpec::PARAMS, "a block is reclaimed at a number of reads since its erase"),
    with(
        "rber",
        SampledSpec::PARAMS,
        "a block is reclaimed when a sampled read has too high a predicted RBER",
    ),
];

impl FromVal for ReclaimPolicySpec {
    fn from_val(val: &Val) -> Self {
        match val {
            Val::Tag("none", None) => Self::None,
            Val::Tag("reads", Some(params)) => Self::Reads { limit: ReadsSpec::from_val(params).limit },
            Val::Tag("rber", Some(params)) => {
                let SampledSpec { limit, every } = SampledSpec::from_val(params);
                Self::Rber { limit, every }
            }
            _ => val.is_no("reclaim policy"),
        }
    }
}

pub(crate) const RULES: &[Rule] = &[predicts_errors];

/// `rber` needs bit errors.
fn predicts_errors(check: &mut Check<'_>) -> Option<()> {
    const KEY: &str = "reclaim.policy";
    let is_rber = matches!(ReclaimPolicySpec::from_val(check.get(KEY)?), ReclaimPolicySpec::Rber { .. });
    if is_rber && check.is("reliability.rber", "none") {
        let message = "\"rber\" has no effect with reliability.rber = \"none\"";
        let remedy = "set reliability.rber, such as \"vth\", or reclaim.policy = \"reads\"";
        check.error(&[KEY, "reliability.rber"], message, remedy);
    }
    Some(())
}
