//! Policies from outside: those that fill a slot in place of the policy that the spec names.

use super::Drive;
use super::spec::{CacheSpec, DirtyBudget, Eviction, MapSpec, Spec, StreamsSpec};
use crate::background::{Laggard, gc};
use crate::base::geometry::Geometry;
use crate::base::policy::{PolicyInfo, PolicySlot};
use crate::base::rng::Stream;
use crate::demand_map::MapEviction;
use crate::flash::{StartLevel, StartPolicy};
use crate::ftl::{VictimPolicy, WearLevelling};
use crate::host;
use crate::host::streams::{AddedStreams, Classes, StreamPolicy};
use crate::migration::{self, MigrationPolicy};
use crate::probe::Probe;
use crate::write_cache::CachePolicies;
use crate::write_cache::eviction::{self, EvictionPolicy};
use crate::write_cache::sync::{self, SyncPolicy};

type MakeVictim = dyn Fn(gc::Context) -> Box<dyn VictimPolicy> + Send + Sync;
type MakeMigration = dyn Fn() -> Box<dyn MigrationPolicy> + Send + Sync;
type MakeSync = dyn Fn() -> Box<dyn SyncPolicy> + Send + Sync;
type MakeEviction = dyn Fn() -> Box<dyn EvictionPolicy> + Send + Sync;
type MakeStart = dyn Fn(u8) -> Box<dyn StartPolicy> + Send + Sync;
type MakeStreams = dyn Fn() -> Box<dyn StreamPolicy> + Send + Sync;
type MakeMapEviction = dyn Fn(u32) -> Box<dyn MapEviction> + Send + Sync;

/// A policy from outside.
struct Outside<Make: ?Sized> {
    /// The name that the results state.
    name: String,
    /// Makes the policy: when the drive is built, and after every power loss, which destroys its state.
    make: Box<Make>,
}

/// The policies of a drive that come from outside. Where there is none, the spec names the policy.
///
/// A policy from outside fills the slot alone. The other settings of the spec keep their effect, so the spec must have
/// what the policy decides on: see the methods.
#[derive(Default)]
pub struct Policies {
    streams: Option<Outside<MakeStreams>>,
    start: Option<Outside<MakeStart>>,
    victim: Option<Outside<MakeVictim>>,
    wear: Option<Outside<MakeVictim>>,
    migration: Option<Outside<MakeMigration>>,
    sync: Option<Outside<MakeSync>>,
    eviction: Option<Outside<MakeEviction>>,
    map_eviction: Option<Outside<MakeMapEviction>>,
}

impl std::fmt::Debug for Policies {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_map().entries(self.names()).finish()
    }
}

/// Why a drive cannot be built: a policy from outside does not fit the spec.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BuildError {
    slot: PolicySlot,
    name: String,
    text: &'static str,
}

impl std::fmt::Display for BuildError {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "the policy {} cannot be {} of this drive: {}", self.name, self.slot.key(), self.text)
    }
}

impl std::error::Error for BuildError {}

impl Policies {
    /// The policy `name` picks the victims of GC, in place of `gc.victim`.
    #[must_use]
    pub fn with_victim(
        mut self,
        name: impl Into<String>,
        make: impl Fn(gc::Context) -> Box<dyn VictimPolicy> + Send + Sync + 'static,
    ) -> Self {
        self.victim = Some(Outside { name: name.into(), make: Box::new(make) });
        self
    }

    /// The policy `name` picks the superblock that static wear levelling moves, in place of the least worn one that
    /// `ftl.wear_gap` allows. It is asked once for an eighth of a lane's superblocks erased, and is not told which
    /// superblocks become full. Needs `ftl.wear_levelling = "static"`.
    #[must_use]
    pub fn with_wear_levelling(
        mut self,
        name: impl Into<String>,
        make: impl Fn(gc::Context) -> Box<dyn VictimPolicy> + Send + Sync + 'static,
    ) -> Self {
        self.wear = Some(Outside { name: name.into(), make: Box::new(make) });
        self
    }

    /// The policy `name` decides when units are copied back, in place of `migration.policy`. Needs a policy there whose
    /// `limit` allows copybacks; the limit remains.
    #[must_use]
    pub fn with_migration(
        mut self,
        name: impl Into<String>,
        make: impl Fn() -> Box<dyn MigrationPolicy> + Send + Sync + 'static,
    ) -> Self {
        self.migration = Some(Outside { name: name.into(), make: Box::new(make) });
        self
    }

    /// The policy `name` decides when dirty units are written back ahead of eviction, in place of `cache.sync`. Needs a
    /// write cache.
    #[must_use]
    pub fn with_cache_sync(
        mut self,
        name: impl Into<String>,
        make: impl Fn() -> Box<dyn SyncPolicy> + Send + Sync + 'static,
    ) -> Self {
        self.sync = Some(Outside { name: name.into(), make: Box::new(make) });
        self
    }

    /// The policy `name` picks the unit that leaves a full write cache, in place of `cache.eviction`. Needs a write
    /// cache.
    #[must_use]
    pub fn with_cache_eviction(
        mut self,
        name: impl Into<String>,
        make: impl Fn() -> Box<dyn EvictionPolicy> + Send + Sync + 'static,
    ) -> Self {
        self.eviction = Some(Outside { name: name.into(), make: Box::new(make) });
        self
    }

    /// The policy `name` picks the entry that leaves a full mapping cache, in place of `ftl.map.demand.eviction`. `make`
    /// receives the number of entries that fit into the cache. Needs a demand map.
    #[must_use]
    pub fn with_map_eviction(
        mut self,
        name: impl Into<String>,
        make: impl Fn(u32) -> Box<dyn MapEviction> + Send + Sync + 'static,
    ) -> Self {
        self.map_eviction = Some(Outside { name: name.into(), make: Box::new(make) });
        self
    }

    /// The policy `name` chooses the level at which a read starts, in place of `ecc.start`. `make` receives the number of
    /// read levels. Needs read levels.
    #[must_use]
    pub fn with_read_start(
        mut self,
        name: impl Into<String>,
        make: impl Fn(u8) -> Box<dyn StartPolicy> + Send + Sync + 'static,
    ) -> Self {
        self.start = Some(Outside { name: name.into(), make: Box::new(make) });
        self
    }

    /// The policy `name` divides the host's writes into classes, in place of `ftl.streams`. Needs a policy there, whose
    /// streams it fills: those of a policy that the spec names from outside are as many as its parameter `classes` says,
    /// or two.
    #[must_use]
    pub fn with_streams(
        mut self,
        name: impl Into<String>,
        make: impl Fn() -> Box<dyn StreamPolicy> + Send + Sync + 'static,
    ) -> Self {
        self.streams = Some(Outside { name: name.into(), make: Box::new(make) });
        self
    }

    /// The name of the policy from outside in a slot.
    pub fn name(&self, slot: PolicySlot) -> Option<&str> {
        match slot {
            PolicySlot::Streams => self.streams.as_ref().map(|outside| &*outside.name),
            PolicySlot::Start => self.start.as_ref().map(|outside| &*outside.name),
            PolicySlot::Victim => self.victim.as_ref().map(|outside| &*outside.name),
            PolicySlot::Wear => self.wear.as_ref().map(|outside| &*outside.name),
            PolicySlot::Migration => self.migration.as_ref().map(|outside| &*outside.name),
            PolicySlot::Sync => self.sync.as_ref().map(|outside| &*outside.name),
            PolicySlot::CacheEviction => self.eviction.as_ref().map(|outside| &*outside.name),
            PolicySlot::MapEviction => self.map_eviction.as_ref().map(|outside| &*outside.name),
        }
    }

    /// The spec keys of the slots with a policy from outside, and the names of these policies.
    pub fn names(&self) -> impl Iterator<Item = (&'static str, &str)> {
        PolicySlot::ALL.into_iter().filter_map(|slot| Some((slot.key(), self.name(slot)?)))
    }

    /// Checks that the spec has what each policy from outside decides on, and that what a policy says of itself is
    /// possible.
    pub(super) fn check(&self, spec: &Spec, unit_bytes: u32) -> Result<(), BuildError> {
        if let Some((slot, name)) = named_outside(spec).find(|(slot, _)| self.name(*slot).is_none()) {
            let text = "it is not built in, and no policy from outside has been given for the slot";
            return Err(BuildError { slot, name: name.to_owned(), text });
        }
        let has_cache = spec.cache.size_bytes >= u64::from(unit_bytes);
        let sync = self.sync.as_ref().filter(|_| has_cache).map(|sync| (sync.make)());
        let share_is_wrong = sync.as_ref().is_some_and(|sync| !(0.0..=1.0).contains(&sync.cold_share()));
        let keeps_no_budget = sync.is_some_and(|sync| !sync.keeps_budget());
        let without_cache = "the spec has no write cache; set cache.size";
        let refused = [
            (
                PolicySlot::Streams,
                spec.ftl.streams.added == AddedStreams::default(),
                "the spec has one stream of the host; set ftl.streams to a policy whose streams it fills",
            ),
            (PolicySlot::Start, spec.ecc.levels.is_empty(), "the spec has no read levels; set ecc.levels"),
            (
                PolicySlot::Wear,
                spec.ftl.wear_levelling != WearLevelling::Static,
                "set ftl.wear_levelling = \"static\", which moves the superblocks that it picks",
            ),
            (
                PolicySlot::Migration,
                spec.migration.policy.copybacks_max() == 0,
                "the spec allows no copybacks; set migration.policy with a limit, such as \"rcopyback\"",
            ),
            (PolicySlot::Sync, !has_cache, without_cache),
            (PolicySlot::Sync, share_is_wrong, "its cold share is not a share from 0 to 1"),
            (
                PolicySlot::Sync,
                keeps_no_budget && spec.cache.dirty_budget == DirtyBudget::Measured,
                "it keeps no budget, but cache.dirty_budget is \"measured\"",
            ),
            (PolicySlot::CacheEviction, !has_cache, without_cache),
            (
                PolicySlot::MapEviction,
                spec.ftl.map == MapSpec::Page,
                "the spec has no mapping cache; set ftl.map.demand",
            ),
        ];
        for (slot, is_refused, text) in refused {
            if let Some(name) = self.name(slot).filter(|_| is_refused) {
                return Err(BuildError { slot, name: name.to_owned(), text });
            }
        }
        Ok(())
    }

    /// A fresh policy for the victims of GC.
    pub(super) fn victim(&self, spec: &Spec, lanes: u32) -> Box<dyn VictimPolicy> {
        let context = Self::context(PolicySlot::Victim, spec, lanes);
        match &self.victim {
            Some(outside) => (outside.make)(context),
            None => gc::make(&spec.gc.victim, context),
        }
    }

    /// A fresh policy for static wear levelling; `None` without it.
    pub(super) fn wear(&self, spec: &Spec, lanes: u32) -> Option<Box<dyn VictimPolicy>> {
        if spec.ftl.wear_levelling != WearLevelling::Static {
            return None;
        }
        Some(match &self.wear {
            Some(outside) => (outside.make)(Self::context(PolicySlot::Wear, spec, lanes)),
            None => Box::new(Laggard { gap: spec.ftl.wear_gap }),
        })
    }

    /// Lanes, and the random stream of a slot.
    fn context(slot: PolicySlot, spec: &Spec, lanes: u32) -> gc::Context {
        gc::Context { lanes, stream: Stream::new(spec.seed, slot.key()) }
    }

    pub(super) fn migration(&self, spec: &Spec) -> Box<dyn MigrationPolicy> {
        match &self.migration {
            Some(outside) => (outside.make)(),
            None => migration::make(spec.migration.policy.name),
        }
    }

    /// Fresh policies for a write cache.
    pub(super) fn cache(&self, spec: &CacheSpec) -> CachePolicies {
        let CachePolicies { sync, eviction } = CachePolicies::new(spec);
        CachePolicies {
            sync: self.sync.as_ref().map_or(sync, |outside| (outside.make)()),
            eviction: self.eviction.as_ref().map_or(eviction, |outside| (outside.make)()),
        }
    }

    /// A fresh policy that divides the host's writes into classes; `None`: they are not divided.
    pub(super) fn streams(&self, spec: &Spec, geometry: &Geometry) -> Option<Classes> {
        let StreamsSpec { policy, added } = &spec.ftl.streams;
        match &self.streams {
            Some(outside) => Some(Classes::outside((outside.make)(), added.classes + 1)),
            None => Classes::new(policy, spec.seed, geometry.logical_units, geometry.superblocks),
        }
    }

    /// A fresh policy from outside for the start levels of a drive with `levels` read levels.
    pub(super) fn start(&self, levels: u8) -> Option<Box<dyn StartPolicy>> {
        self.start.as_ref().map(|outside| (outside.make)(levels))
    }

    /// A fresh policy from outside for a mapping cache of `capacity` entries.
    pub(super) fn map_eviction(&self, capacity: u32) -> Option<Box<dyn MapEviction>> {
        self.map_eviction.as_ref().map(|outside| (outside.make)(capacity))
    }
}

/// The policies that the spec names and no table has, each with its slot.
fn named_outside(spec: &Spec) -> impl Iterator<Item = (PolicySlot, &'static str)> {
    fn has<M>(table: &[(PolicyInfo, M)], name: &str) -> bool {
        table.iter().any(|(info, _)| info.name == name)
    }
    let victim = spec.gc.victim.name;
    let copies = spec.migration.policy.name;
    let CacheSpec { sync: syncs, eviction: evicts, .. } = &spec.cache;
    let is_of_map = matches!(spec.ftl.map, MapSpec::Demand { eviction: Eviction::Outside, .. });
    let streams = spec.ftl.streams.policy.name;
    let found = [
        (PolicySlot::Streams, streams, !host::streams::POLICIES.iter().any(|info| info.name == streams)),
        (PolicySlot::Start, "named by the spec", spec.ecc.start == StartLevel::Outside),
        (PolicySlot::Victim, victim, !has(gc::POLICIES, victim)),
        (PolicySlot::Migration, copies, !has(migration::POLICIES, copies)),
        (PolicySlot::Sync, syncs.name, !has(sync::POLICIES, syncs.name)),
        (PolicySlot::CacheEviction, evicts.name, !has(eviction::POLICIES, evicts.name)),
        (PolicySlot::MapEviction, "named by the spec", is_of_map),
    ];
    found.into_iter().filter(|&(.., is_outside)| is_outside).map(|(slot, name, _)| (slot, name))
}

impl<P: Probe> Drive<P> {
    /// After a power loss, which has emptied the caches: the mechanisms take fresh policies.
    pub(super) fn renew_policies(&mut self) {
        let Self { core, path, caching, background, spec, policies, .. } = self;
        if let Some(caching) = caching {
            caching.cache.set_policies(&spec.cache, policies.cache(&spec.cache));
        }
        if let Some(policy) = policies.start(core.ecc().levels()) {
            core.start_reads_by(policy);
        }
        path.writes.classes = policies.streams(spec, core.geometry());
        background.set_wear_policy(policies.wear(spec, core.geometry().lanes));
        if let Some(mapping) = &mut path.map {
            let cache = &mut mapping.demand.cache;
            if let Some(policy) = policies.map_eviction(cache.capacity()) {
                cache.evict_by(policy);
            }
        }
    }
}
