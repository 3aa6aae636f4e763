//! The whole spec: the table of the keys of all rooms, and the typed [`Spec`] from which a drive is built.
//!
//! Each room declares its keys in its own `spec.rs`; the files of this folder declare the keys that belong to no
//! mechanism, and the rules that concern several rooms. [`crate::spec`] reads, checks and shows specs by this table.

mod capacity;
mod energy;
mod geometry;
mod needs;
mod output;
mod placement;
mod precondition;
mod presets;
mod reliability;
pub(crate) mod streams;
mod times;
mod timing;
mod units;

pub use crate::background::spec::{GcForeground, GcPacing, GcSpec};
pub use crate::base::geometry::{Cell, DriveSpec, ProgramOrder, Superblock};
use crate::base::geometry::{Geometry, Layout};
pub use crate::capacitor::{BudgetSteps, CapacitorSpec, FlushMethod, FlushMode, FlushOrder};
pub use crate::demand_map::{Eviction, MapSpec, MapWriteBack, Miss, TranslationLevel};
pub use crate::flash::{
    EccSpec, LevelSpec, ProgramTime, RberSpec, ReliabilitySpec, Retention, Retry, RetryRow, RetryTable,
    StartLevel, VthSpec, VthTlcSpec,
};
use crate::flash::{LayerFactors, Shapes};
pub use crate::ftl::WearLevelling;
pub use crate::ftl::allocation::Allocation;
pub use crate::ftl::placement::{Isolation, Place, PlacementSpec};
pub use crate::host::spec::{HostSpec, LinkSpec, StreamsSpec};
pub use crate::migration::spec::{MigrationPolicySpec, MigrationSpec};
pub use crate::migration::{CopybackLimitSpec, Occupancy};
pub use crate::power_loss::spec::PowerSpec;
pub use crate::refresh::partial::spec::PartialSpec;
pub use crate::refresh::partial::{Encoding, FullStrength};
pub use crate::refresh::spec::{EcCacheSpec, FcrSpec, RefreshPolicySpec, RefreshPriority, RefreshSpec};
pub use crate::sched::{CommandTimes, OffChipRate, Scheduler, SuspendSpec, SuspendTimes, TimingSpec};
pub use crate::write_cache::{CacheSpec, DirtyBudget, FlushTo, ReadRoom};
pub use energy::EnergySpec;
pub use nandlab_base::clients::{Bound, ClientSpan, ClientSpec, LatencyFrom, stream_name};
pub use nandlab_base::workload::{
    Address, Arrival, Beyond, DeviceChoice, Due, Only, Part, ProfileSpec, SKIPPED_MAX, Source, SyntheticSpec,
    TraceFormat, TraceSpec, Window, WorkloadSpec,
};
pub use needs::{demands, fit_to_writes, op_for_waf, streams, superblock_needs};
pub use output::OutputSpec;
pub use precondition::{FillOrder, PreconditionSpec};
pub use units::MappingUnit;

use crate::base::policy::{PolicyInfo, PolicySlot};
use crate::spec::{
    Absent, Key, Named, Outside, Param, Payload, Policy, PolicyRow, Resolved, Rule, Section, SpecErrors,
    Table, canonical_json, hash, int, key, registered, section, to_toml,
};
use crate::{
    background, capacitor, demand_map, ftl, host, migration, power_loss, read_levels, refresh, write_cache,
};
use std::path::Path;
use std::sync::LazyLock;

macro_rules! sections {
    ($($(#[doc = $doc:literal])* $section:ident: $Section:ty,)+) => {
        /// A whole validated spec; each section of the file is a field.
        #[derive(Clone, Debug, PartialEq)]
        #[allow(missing_docs)]
        pub struct Spec {
            pub seed: u64,
            $($(#[doc = $doc])* pub $section: $Section,)+
            /// `precondition.map_reads`: units that the workload reads before it writes them are mapped at the start.
            pub map_reads: bool,
        }

        impl Spec {
            /// The keys, by section.
            const KEYS: &[&[Key]] = &[&[SEED], &[geometry::PRESET, geometry::CAPACITY], $(<$Section>::KEYS),+];

            fn of(values: &Resolved) -> Self {
                Self {
                    seed: values.read(SEED.path),
                    $($section: Section::of(values),)+
                    map_reads: values.read(precondition::MAP_READS.path),
                }
            }
        }
    };
}

// In the order in which `spec show` writes them.
sections! {
    drive: DriveSpec,
    host: HostSpec,
    timing: TimingSpec,
    ftl: FtlSpec,
    placement: PlacementSpec,
    gc: GcSpec,
    ecc: EccSpec,
    reliability: ReliabilitySpec,
    refresh: RefreshSpec,
    reclaim: crate::reclaim::spec::ReclaimSpec,
    migration: MigrationSpec,
    slc: crate::slc::spec::SlcSpec,
    cache: CacheSpec,
    capacitor: CapacitorSpec,
    power: PowerSpec,
    energy: EnergySpec,
    precondition: PreconditionSpec,
    /// `None`: the spec has no workload; the stepping interface accepts this, `run` refuses it.
    workload: Option<WorkloadSpec>,
    output: OutputSpec,
}

impl Spec {
    /// The geometry of the drive.
    pub fn geometry(&self) -> Geometry {
        let units_per_page = self.ftl.mapping_unit.per_page(&self.drive);
        Geometry::with(&self.drive, Layout { units_per_page, superblock: self.ftl.superblock })
            .with_bad_blocks(self.drive.bad_blocks, self.seed)
    }

    /// The shapes of the superblocks of the drive, which has this geometry.
    pub fn shapes(&self, geometry: &Geometry) -> Shapes {
        let mut shapes = Shapes::new(self.timing.shape(&self.drive, &self.ecc, geometry));
        if self.has_slc_mode() {
            let (shape, ageing) =
                self.slc.shape(&self.drive, &self.timing, &self.ecc, geometry, shapes.first());
            shapes.add(shape, ageing);
        }
        shapes
    }

    /// Whether the drive has superblocks in SLC mode: an SLC cache, or an emergency flush in this mode.
    pub fn has_slc_mode(&self) -> bool {
        self.slc.is_on() || self.flushes_in_slc_mode()
    }

    /// Whether an emergency flush writes in SLC mode.
    pub(crate) fn flushes_in_slc_mode(&self) -> bool {
        self.capacitor.flush_mode == FlushMode::Slc && self.capacitor.capacitance_f > 0.0
    }

    /// The factors of the RBER by layer; `None` if the layers do not differ.
    pub fn layer_factors(&self) -> Option<LayerFactors> {
        let RberSpec::VthTlc(VthTlcSpec { layers: Some(spread), .. }) = &self.reliability.rber else {
            return None;
        };
        Some(LayerFactors::new(spread, self.drive.pages_per_block, self.drive.layers))
    }

    /// Whether the spec injects a power loss or has a capacitor.
    pub fn models_power_loss(&self) -> bool {
        let power = &self.power;
        self.capacitor.capacitance_f > 0.0
            || power.cut_after_requests > 0
            || power.cut_at_ns.is_some()
            || power.cut_in_recovery_ns.is_some()
    }
}

section! {
    /// `[ftl]`: map, allocation and wear levelling.
    #[derive(Clone, Debug, PartialEq)]
    #[allow(missing_docs)]
    pub struct FtlSpec {
        pub map: MapSpec = demand_map::spec::MAP,
        pub mapping_unit: MappingUnit = units::MAPPING_UNIT,
        /// Bytes of the write buffer; 0: none.
        pub buffer_bytes: u64 = units::BUFFER,
        pub superblock: Superblock = units::SUPERBLOCK,
        pub allocation: Allocation = ftl::spec::ALLOCATION,
        /// The policy that divides the host's writes into streams.
        pub streams: StreamsSpec = host::spec::STREAMS,
        pub wear_levelling: WearLevelling = background::spec::WEAR_LEVELLING,
        /// Static wear levelling moves a superblock that lags the lane's mean P/E cycles by more than this.
        pub wear_gap: u32 = background::spec::WEAR_GAP,
    }
}

const SEED: Key = key("seed", int(0, i64::MAX as u64), "1", "seed of every random stream");

/// What other simulators or drives have and this one has not. The page docs/explanation/not-modelled.md has the same list.
const ABSENT: &[Absent] = &[
    Absent {
        names: &["zns", "zones", "zone"],
        instead: "the drive has the block interface only, without zones",
    },
    Absent {
        names: &["namespaces", "namespace"],
        instead: "the drive is one namespace: give each client a span of it",
    },
    Absent {
        names: &["dedup", "deduplication", "compression", "compress"],
        instead: "the simulation has no contents: every write takes its units, whatever it contains",
    },
    Absent {
        names: &["host_memory_buffer", "hmb"],
        instead: "the mapping cache is in the drive: set ftl.map.demand.cache to the size of both",
    },
    Absent {
        names: &["parity", "raid", "raid5"],
        instead: "no parity is written over dies: set a larger drive.op for its space",
    },
    Absent { names: &["qlc", "plc"], instead: "a cell has at most three bits" },
    Absent {
        names: &["thermal", "throttling"],
        instead: "temperature acts on the capacitor alone: set longer times for a throttled drive",
    },
];

/// The table of all keys.
static TABLE: Table = Table {
    keys: Spec::KEYS,
    preset: geometry::PRESET.path,
    presets: presets::PRESETS,
    exclusive: &[
        nandlab_base::workload::SOURCES.keys,
        nandlab_base::workload::EXCLUSIVE,
        geometry::EXCLUSIVE,
        precondition::EXCLUSIVE,
        power_loss::spec::EXCLUSIVE,
    ],
    one_of: &[nandlab_base::workload::SOURCES],
    // The slots of these sections (cell type, preconditioning, workload) are not policies.
    without_policies: &["drive", "precondition", "workload"],
    absent: ABSENT,
    example: "gc.victim=fifo",
    table_example: "gc.victim.random={k=8}",
};

/// All rules, in the order in which errors of the same line are reported.
const RULES: &[&[Rule]] = &[
    &[geometry::PAGE_SIZE],
    background::spec::RULES,
    geometry::RULES,
    nandlab_base::workload::RULES,
    times::RULES,
    timing::RULES,
    read_levels::spec::RULES,
    reliability::RULES,
    write_cache::spec::RULES,
    capacitor::spec::RULES,
    power_loss::spec::RULES,
    migration::spec::RULES,
    refresh::partial::spec::RULES,
    refresh::spec::RULES,
    crate::reclaim::spec::RULES,
    crate::slc::spec::RULES,
    units::RULES,
    placement::RULES,
    capacity::RULES,
];

/// A spec that has been read and checked, with the origin of each value.
#[derive(Clone, Debug)]
pub struct Loaded {
    /// The typed spec.
    pub spec: Spec,
    values: Resolved,
}

/// Reads a spec. `name`: the file's name in messages; `dir`: the folder at which relative paths in the spec start;
/// `sets`: overrides `path=value`, of which the last one for a key counts. Also reads the table of error rates that the
/// spec names.
pub fn load(text: &str, name: &str, dir: &Path, sets: &[String]) -> Result<Loaded, SpecErrors> {
    load_with(text, name, dir, sets, &Outside::default())
}

/// As [`load`]; the spec may also name policies from outside, whose slots are those of [`open_slots`]. The drive of such
/// a spec is built with these policies ([`Drive::build`](crate::drive::Drive::build)).
pub fn load_with(
    text: &str,
    name: &str,
    dir: &Path,
    sets: &[String],
    outside: &Outside,
) -> Result<Loaded, SpecErrors> {
    let values = crate::spec::load_values(&TABLE, RULES, text, name, dir, sets, outside)?;
    Ok(Loaded { spec: Spec::of(&values), values })
}

impl Loaded {
    /// The resolved spec as TOML: every key with its value, its description and the origin of the value. Loading this
    /// text gives the same spec.
    pub fn to_toml(&self) -> String {
        to_toml(&TABLE, &self.values)
    }

    /// Every value in base units, sorted by key, so that equivalent specs give the same text. Paths are as written in
    /// the spec; a table of error rates is represented by a hash of its contents.
    pub fn canonical_json(&self) -> String {
        canonical_json(&TABLE, &self.values)
    }

    /// Hash of [`Loaded::canonical_json`], as 16 hex digits.
    pub fn hash(&self) -> String {
        hash(&self.canonical_json())
    }

    /// The origin of a key's value (a file's name, `preset NAME`, or `--set`) and its line. `None`: the value is the
    /// default.
    pub fn origin(&self, key: &str) -> Option<(&str, Option<u32>)> {
        self.values.origin(key)
    }

    /// The policies from outside that the spec names.
    pub fn outside(&self) -> &[Named] {
        self.values.outside()
    }

    /// The presets on which the spec is based. A preset comes after the preset on which it is based itself.
    pub fn presets(&self) -> &[&'static str] {
        self.values.presets()
    }
}

/// The presets that ship with the program: name and one-line description of each.
pub fn presets() -> &'static [(&'static str, &'static str)] {
    static ALL: LazyLock<Vec<(&str, &str)>> =
        LazyLock::new(|| presets::PRESETS.iter().map(|preset| (preset.name, preset.about)).collect());
    &ALL
}

/// The JSON Schema (draft 2020-12) of a spec file.
pub fn schema() -> serde_json::Value {
    crate::spec::schema_of(&TABLE)
}

/// The policies of the controller and the models of its flash, slot by slot; slots with a single choice are left out.
pub fn policies() -> Vec<PolicyRow> {
    crate::spec::policies_of(&TABLE)
}

/// The keys of the slots that take policies from outside, and the names of the built-in policies of each.
pub fn open_slots() -> Vec<(String, Vec<&'static str>)> {
    crate::spec::open_slots(&TABLE)
}

/// A policy from outside as a choice of its slot. A policy for `migration.policy` has the parameters `limit` and
/// `occupancy` of the built-in ones before its own. Each call leaks memory, so call the function only once for each
/// policy.
pub fn outside_policy(slot: PolicySlot, info: &'static PolicyInfo) -> Policy {
    let policy = registered(info);
    if slot != PolicySlot::Migration {
        return policy;
    }
    let own: &[Param] = match policy.payload {
        Payload::Params(params) => params,
        Payload::None | Payload::Value(_) => &[],
    };
    let shared = [crate::migration::spec::LIMIT, crate::migration::spec::OCCUPANCY];
    let params: Vec<Param> = shared.into_iter().chain(own.iter().copied()).collect();
    Policy { payload: Payload::Params(params.leak()), ..policy }
}

/// The paths of all keys, in the order of the table.
pub fn key_paths() -> Vec<&'static str> {
    TABLE.paths()
}

/// The least number in `low..=high` for which `enough` holds; `None` if it does not hold for `high`. If `enough` holds
/// for a number, it must hold for all greater ones.
fn least(low: u64, high: u64, enough: impl Fn(u64) -> bool) -> Option<u64> {
    if !enough(high) {
        return None;
    }
    let (mut low, mut high) = (low, high);
    while low < high {
        let middle = low + (high - low) / 2;
        if enough(middle) { high = middle } else { low = middle + 1 }
    }
    Some(low)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::spec::When;

    #[test]
    fn every_key_is_documented_and_its_default_is_one_of_its_values() {
        for key in TABLE.keys() {
            assert!(key.doc.len() > 5, "{}", key.path);
            if !key.default.is_empty() {
                assert!(key.has_default(), "{}: {}", key.path, key.default);
            }
        }
    }

    #[test]
    fn no_key_is_declared_twice_and_conditions_name_keys() {
        let keys: Vec<&Key> = TABLE.keys().collect();
        for (i, key) in keys.iter().enumerate() {
            assert!(!keys[..i].iter().any(|other| other.path == key.path), "{}", key.path);
            match key.when {
                When::Always => {}
                When::Set(paths) => {
                    assert!(TABLE.one_of.iter().any(|one_of| paths.iter().all(|p| one_of.keys.contains(p))));
                }
                When::Holds { of, .. } => assert!(TABLE.find(of).is_some(), "{of}"),
                When::Is(path, values) => {
                    let policies = TABLE.find(path).and_then(|key| key.kind.slot()).expect(path);
                    assert!(values.iter().all(|value| policies.iter().any(|p| p.name == *value)));
                }
            }
        }
        let groups = TABLE.exclusive.iter().copied().flatten();
        assert!(groups.chain([&TABLE.preset]).all(|path| TABLE.find(path).is_some()));
    }

    /// The keys of `[precondition]` and `[workload]` are read by hand-written code.
    #[test]
    fn hand_written_code_reads_every_key_of_its_section() {
        let precondition = include_str!("precondition.rs");
        let workload = include_str!("../../../../nandlab-base/src/workload.rs");
        for (text, keys) in [(precondition, PreconditionSpec::KEYS), (workload, <Option<WorkloadSpec>>::KEYS)]
        {
            for key in keys.iter().filter(|key| key.path != precondition::MAP_READS.path) {
                let path = format!("\"{}\"", key.path);
                assert!(text.matches(&format!("({path})")).count() > 0, "{} is not read", key.path);
            }
        }
    }
}
