//! The section `[precondition]` of the spec.

use super::Loaded;
use crate::base::policy::PolicySlot;
use crate::spec::hash;
use crate::spec::{
    Choices, Follows, Key, Policy, Resolved, SHARE, Section, ValueKind, When, choices, int, key, plain,
};
use serde_json::Value as Json;
use std::path::PathBuf;

const FILL: When = When::Is("precondition.method", &["fill"]);
const PTS: When = When::Is("precondition.method", &["pts"]);

/// At most one of these keys may be set.
pub(super) const EXCLUSIVE: &[&str] = &["precondition.method", "precondition.load"];

/// `precondition.map_reads`: whether units that the workload reads before it writes them are mapped at the start. The
/// runner maps them, so the key is a field of the spec of its own.
pub(super) const MAP_READS: Key = key(
    "precondition.map_reads",
    ValueKind::Bool,
    "false",
    "pages that the workload reads before it writes them have data at the start",
);

const METHODS: &[Policy] = &[
    plain("none", "a fresh drive"),
    plain("fill", "filled to a used and a valid share, without simulating time"),
    plain("pts", "SNIA PTS: sequential fill, then random overwrite until the WAF is steady"),
];

/// Setting a parameter of a method chooses the method.
const METHOD_OF: Follows = Follows::Choice {
    of: &[
        ("precondition.used", "fill"),
        ("precondition.valid", "fill"),
        ("precondition.order", "fill"),
        ("precondition.rounds_max", "pts"),
    ],
    otherwise: "none",
};

impl Section for PreconditionSpec {
    const KEYS: &'static [Key] = &[
        key(
            "precondition.method",
            ValueKind::Slot(METHODS),
            "",
            "how the drive is filled before the workload; by default the method whose parameters are given, else none",
        )
        .follows(METHOD_OF),
        key("precondition.used", SHARE, "0.95", "filled share of the physical pages").when(FILL),
        key("precondition.valid", SHARE, "0.80", "valid share of the filled pages").when(FILL),
        key(
            "precondition.order",
            ValueKind::Slot(FillOrder::CHOICES),
            "\"random\"",
            "order of the LPNs in the filled pages",
        )
        .when(FILL),
        key(
            "precondition.rounds_max",
            int(0, 1000),
            "10",
            "highest number of overwrites of the logical capacity; 0: the sequential fill alone",
        )
        .when(PTS)
        .note("assumption"),
        key("precondition.load", ValueKind::Path, "", "file of a drive saved earlier"),
        MAP_READS,
    ];

    fn of(values: &Resolved) -> Self {
        if let Some(file) = values.get("precondition.load") {
            return Self::Load(values.file(file.text()));
        }
        let method = values.val("precondition.method");
        match method.tag() {
            "none" => Self::None,
            "fill" => Self::Fill {
                used: values.read("precondition.used"),
                valid: values.read("precondition.valid"),
                order: values.read("precondition.order"),
            },
            "pts" => Self::Pts { rounds_max: values.read("precondition.rounds_max") },
            _ => method.is_no("method"),
        }
    }
}

/// `[precondition]`: how the drive is filled before the workload.
#[derive(Clone, Debug, PartialEq)]
pub enum PreconditionSpec {
    /// A fresh drive.
    None,
    /// A share of the physical units is filled, and a share of the filled units is valid.
    Fill {
        /// Filled share of the physical units.
        used: f64,
        /// Valid share of the filled units.
        valid: f64,
        /// Order of the LPNs in the filled units.
        order: FillOrder,
    },
    /// SNIA PTS: sequential fill, then uniform random overwrite until the WAF is steady.
    Pts {
        /// Highest number of overwrites of the logical capacity; 0: the sequential fill alone.
        rounds_max: u32,
    },
    /// The file of a drive saved earlier.
    Load(PathBuf),
}

/// The sections that preconditioning sees as a whole. Settings of other sections act on it only through the numbers of
/// the FTL and the fields of the OOB, which `Drive::precondition_like` compares.
const SEEN: &[&str] = &["seed", "drive", "ftl", "gc", "precondition"];

impl Loaded {
    /// A hash of all that preconditioning depends on: specs with the same key may share a preconditioned drive
    /// ([`Drive::precondition_like`](crate::drive::Drive::precondition_like)). `None` if the spec asks for none, or
    /// names the file of a saved drive.
    ///
    /// With `precondition.map_reads`, the workload counts by the settings and names in the spec, not by the content of
    /// its files.
    pub fn precondition_key(&self) -> Option<String> {
        let is_mapped = self.spec.map_reads && self.spec.precondition == PreconditionSpec::None;
        (self.is_filled() || is_mapped).then(|| self.key(self.spec.map_reads))
    }

    /// A hash of all that the method of preconditioning depends on: as [`Loaded::precondition_key`], but of the drive
    /// before `precondition.map_reads`. `None` if the spec chooses no method.
    pub fn fill_key(&self) -> Option<String> {
        self.is_filled().then(|| self.key(false))
    }

    fn is_filled(&self) -> bool {
        matches!(self.spec.precondition, PreconditionSpec::Fill { .. } | PreconditionSpec::Pts { .. })
    }

    /// The hash, of the workload too if it is `mapped`.
    fn key(&self, mapped: bool) -> String {
        let all: Json = serde_json::from_str(&self.canonical_json()).expect("the canonical spec is JSON");
        let mut seen: Vec<Json> = SEEN.iter().map(|&section| all[section].clone()).collect();
        // Of a demand map, only its presence counts.
        let [_, _, ftl, ..] = &mut seen[..] else { unreachable!("SEEN has five sections") };
        if let Some(name) = ftl["map"].as_object().and_then(|map| map.keys().next().cloned()) {
            ftl["map"] = name.into();
        }
        seen.extend(["pe_cycles", "retention"].map(|key| all["reliability"][key].clone()));
        if self.spec.placement.is_on() {
            seen.push(all["placement"].clone());
        }
        // The victims of preconditioning are those of the policy, whatever code has its name.
        seen.extend(all["policies"].get(PolicySlot::Victim.key()).cloned());
        if self.spec.has_slc_mode() {
            seen.push(all["slc"].clone());
        }
        if mapped {
            let mut workload = all["workload"].clone();
            // When requests arrive, and which ones count, does not change what they read.
            for later in ["arrival", "time_scale", "warm_up"] {
                workload.as_object_mut().map(|workload| workload.remove(later));
            }
            seen.push(workload);
        }
        hash(&Json::Array(seen).to_string())
    }
}

choices! {
    /// `precondition.order`: the order of the LPNs in the filled units. The order affects write amplification until the
    /// workload has written the drive several times over: units that are invalidated together are in the same
    /// superblocks after a sequential fill, and spread over many superblocks after a random fill.
    #[derive(Clone, Copy, Debug, PartialEq, Eq)]
    pub enum FillOrder {
        /// Random order.
        Random = "random": "LPNs in random order: cold and hot data side by side, as after years of random writes",
        /// Ascending order.
        Sequential = "sequential": "LPNs in ascending order, as after one sequential write of the drive",
    }
}
