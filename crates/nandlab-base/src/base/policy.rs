//! Descriptions of policies. The spec key of a slot, its errors and its listings are generated from them.
//!
//! A *slot* is a place in the drive that a policy fills; the spec key selects the policy. A policy returns a decision;
//! the mechanism checks and executes the decision. A policy that is called once per victim is a `dyn`, with its loop
//! over superblocks inside; a choice that is made once per unit is an enum.
//!
//! A policy that fails, or that names a victim which the mechanism cannot take, ends the run: the mechanism pushes a
//! [`PolicyFault`] as a wake, and the drive fails.
//!
//! | slot (spec) | form | where | inputs |
//! |---|---|---|---|
//! | `gc.victim` | `Box<dyn VictimPolicy>`, table `policies!` | `background/gc/`; the trait in `ftl/victim.rs` | one lane's superblocks (`Candidates`), its own state and random stream |
//! | `gc.pacing`, `gc.foreground` | enums | `background/pacing.rs`, `background/job.rs` | a lane's room, the units that its job has to move |
//! | `ftl.allocation` | enum | `ftl/allocation/` | LPN; `dynamic` also die load and room |
//! | `ftl.streams` | enum; from outside `Box<dyn StreamPolicy>` | `host/streams/` | LPN, units written by the host; which superblocks are opened and erased |
//! | `ftl.wear_levelling` | enum; for the cold superblock `Box<dyn VictimPolicy>` | `ftl/free_superblocks.rs` (next free superblock), `background/wear.rs` (cold superblock) | a lane's P/E cycles |
//! | `timing.scheduler` | enum | `sched/pick.rs` | the head of each of a die's five queues, one for each class of operations, and whether background work is urgent |
//! | `ftl.map` | `core::Map`; `UnitMap`, with `demand` also `DemandMap` | `ftl/unit_map.rs`, `demand_map/` | |
//! | `ftl.map.demand.eviction` | enum; from outside `Box<dyn MapEviction>` | `demand_map/cache/` | the cached entries: read level and order of use |
//! | `ftl.map.demand.translation_level` | enum | `Core::keeps_level` in `core/read.rs` | whether the unit is a translation page |
//! | `ftl.map.demand.miss` | enum | `demand_map/mod.rs` | whether the translation page is being read |
//! | `ftl.map.demand.write_back` | enum | `demand_map/insertions.rs` | whether the evicted entry is dirty, the stage of its write-back |
//! | `ecc.start` | enum; from outside `Box<dyn StartPolicy>` | `flash/ecc/start.rs` | the level remembered for the unit, the level of its superblock or of the drive; for `ideal` the level that the unit needs; for `table` P/E cycles and age |
//! | `reliability.copyback` | enum | `Core::take_over_errors` in `core/read.rs`, `Reliability::rber_sensed` | the RBER of the source at the time of the copyback |
//! | `reliability.rber` | enum | `flash/reliability/` | P/E cycles, age, reads, copybacks, page kind |
//! | `migration.policy` | `Box<dyn MigrationPolicy>`, table `policies!` | `migration/policy/` | urgency, load of the write buffer (`VictimView`) |
//! | `migration.policy.rcopyback.occupancy` | enum | `host/load.rs`; `Caching::update_load`, `Buffer::update_load` | units being written back, dirty units; acknowledged units of `ftl.buffer` |
//! | `refresh.policy` | enum; code queries its properties (`in_place`, `partial`, `hot_reads`), not its name | `refresh/spec.rs` | |
//! | `reclaim.policy` | enum | `reclaim/mod.rs` | read count of the superblock, predicted RBER of a sampled read |
//! | `cache.sync` | `Box<dyn SyncPolicy>`, table `policies!` | `write_cache/sync/` | counts of the write cache (`CacheView`) |
//! | `cache.eviction` | `Box<dyn EvictionPolicy>`, table `policies!` | `write_cache/eviction/` | the cached units by use (`CachedOrder`) |
//! | `capacitor.flush` | enum | `ftl/flush_programs.rs`; its cost in `capacitor/cost.rs` | free superblocks, open superblocks, page kinds |
//! | probe | generic parameter `P` | `probe/`, `host/oracle.rs`, `report/timeline/` | every event |

use super::ids::LaneId;

/// A slot whose policy may come from outside the spec, and may fail.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PolicySlot {
    /// `ftl.streams`.
    Streams,
    /// `ecc.start`.
    Start,
    /// `gc.victim`.
    Victim,
    /// `ftl.wear_levelling = "static"`: the superblock whose data is moved.
    Wear,
    /// `migration.policy`.
    Migration,
    /// `cache.sync`.
    Sync,
    /// `cache.eviction`.
    CacheEviction,
    /// `ftl.map.demand.eviction`.
    MapEviction,
}

impl PolicySlot {
    /// All slots, in the order of the sections of a spec.
    pub const ALL: [Self; 8] = [
        Self::Start,
        Self::Streams,
        Self::Wear,
        Self::MapEviction,
        Self::Victim,
        Self::Migration,
        Self::Sync,
        Self::CacheEviction,
    ];

    /// The spec key of the slot.
    pub const fn key(self) -> &'static str {
        match self {
            Self::Streams => "ftl.streams",
            Self::Start => "ecc.start",
            Self::Victim => "gc.victim",
            Self::Wear => "ftl.wear_levelling",
            Self::Migration => "migration.policy",
            Self::Sync => "cache.sync",
            Self::CacheEviction => "cache.eviction",
            Self::MapEviction => "ftl.map.demand.eviction",
        }
    }
}

/// Why a policy has made no decision, or one that cannot be carried out.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PolicyError(Box<str>);

impl PolicyError {
    /// The error with this text. The text follows the policy's name, as in "it picked block 3, which is not full".
    pub fn new(text: impl Into<Box<str>>) -> Self {
        Self(text.into())
    }
}

impl std::fmt::Display for PolicyError {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&self.0)
    }
}

impl std::error::Error for PolicyError {}

/// The error of the policy of a slot.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PolicyFault {
    /// The slot.
    pub slot: PolicySlot,
    /// The lane for which the policy was to decide; `None` if it decides for the whole drive.
    pub lane: Option<LaneId>,
    /// The error.
    pub error: PolicyError,
}

/// A parameter of a policy.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct ParamInfo {
    /// The parameter's key.
    pub name: &'static str,
    /// The value when the key is absent; `None` if the key is required.
    pub default: Option<f64>,
    /// Smallest value allowed.
    pub min: f64,
    /// Largest value allowed.
    pub max: f64,
    /// Whether only whole numbers are allowed.
    pub whole: bool,
    /// A description in one line, with the unit.
    pub description: &'static str,
}

/// A policy of a slot.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct PolicyInfo {
    /// The policy's name in the spec.
    pub name: &'static str,
    /// A description in one line.
    pub description: &'static str,
    /// The policy's parameters.
    pub params: &'static [ParamInfo],
}

/// What makes the policy `name` of a slot's table. The name of a policy from outside, which the caller puts into the slot,
/// yields that of the first policy of the table meanwhile.
pub fn maker<'a, M>(table: &'a [(PolicyInfo, M)], name: &str) -> &'a M {
    &table.iter().find(|(info, _)| info.name == name).unwrap_or(&table[0]).1
}

/// The policy chosen for a slot: a name and a value for each parameter.
#[derive(Clone, Debug, PartialEq)]
pub struct Choice {
    /// The policy's name.
    pub name: &'static str,
    /// The parameters' values, in the order of [`PolicyInfo::params`].
    pub values: Vec<f64>,
}

impl Choice {
    /// The policy `info` with the defaults of its parameters; a required parameter has its smallest value.
    pub fn defaults(info: &PolicyInfo) -> Self {
        Self { name: info.name, values: info.params.iter().map(|p| p.default.unwrap_or(p.min)).collect() }
    }

    /// The value of parameter `index`.
    pub fn value(&self, index: usize) -> f64 {
        self.values[index]
    }
}
