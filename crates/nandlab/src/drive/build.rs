//! Makes the configurations of core, FTL and dirty budget, and the demand map, from spec and policies. The other
//! mechanisms are made directly from their sections of the spec.

use super::Policies;
use super::spec::{DirtyBudget, MapSpec, Spec, TranslationLevel};
use super::spec::{streams, superblock_needs};
use crate::background::spec::GcForeground;
use crate::base::geometry::Geometry;
use crate::base::policy::PolicySlot;
use crate::capacitor::Budget;
use crate::core::{self, Core};
use crate::demand_map::Mapping;
use crate::flash::{AgeClock, Array, Ecc, EccSpec, InitialAges, PageVariation, Reliability, StartLevel};
use crate::ftl::placement::Placements;
use crate::ftl::{self, Ftl};
use crate::probe::Probe;
use crate::sched::Timing;

/// The configuration of the core. The OOB has sequence numbers (`keeps_sequences`) if the drive `is_watched` by an
/// oracle or its spec models power loss.
pub(super) fn core(spec: &Spec, policies: &Policies, is_watched: bool) -> core::Config {
    let geometry = spec.geometry();
    let policy = &spec.refresh.policy;
    core::Config {
        timing: Timing::new(&spec.timing, &geometry, spec.shapes(&geometry)),
        scheduler: spec.timing.scheduler,
        multi_plane: spec.timing.multi_plane,
        copies_back: spec.migration.policy.copybacks_max() > 0,
        copyback_gap: spec.migration.gap(spec.drive.registers),
        ecc: match policies.name(PolicySlot::Start) {
            Some(_) => Ecc::new(&EccSpec { start: StartLevel::Outside, ..spec.ecc.clone() }),
            None => Ecc::new(&spec.ecc),
        },
        reliability: Reliability::new(&spec.reliability).with_entries(Ecc::new(&spec.ecc).entries()),
        variation: PageVariation::new(spec.reliability.page_variation, spec.layer_factors(), spec.seed),
        age_clock: AgeClock::new(spec.reliability.clock_scale),
        initial_ages: InitialAges::new(&spec.reliability.retention, spec.seed),
        pe_cycles: spec.reliability.pe_cycles,
        endurance: spec.drive.endurance,
        keeps_sequences: is_watched || spec.models_power_loss(),
        placements: Placements::of(&spec.placement, geometry.lanes),
        foreground_free: spec.gc.foreground_free,
        blocks_dies: spec.gc.foreground == GcForeground::Blocking,
        levels_in_entries: spec.ftl.map != MapSpec::Page,
        forgets_translation_levels: matches!(
            spec.ftl.map,
            MapSpec::Demand { translation_level: TranslationLevel::CachedOnly, .. }
        ),
        knows_errors: policy.ec_cache().is_some(),
        has_parts: policy.partial().is_some(),
        reprogram_error: policy.in_place().map_or(0.0, |fcr| fcr.reprogram_error),
        hot_reads: policy.hot_reads(),
        refresh_class: spec.refresh.priority.class(),
        geometry,
    }
}

/// The demand map of a drive, with an empty cache; `None` if the whole map is in RAM.
pub(super) fn mapping<P: Probe>(spec: &Spec, policies: &Policies, core: &Core<P>) -> Option<Mapping> {
    let mut mapping = Mapping::new(&spec.ftl.map, core)?;
    let cache = &mut mapping.demand.cache;
    if let Some(policy) = policies.map_eviction(cache.capacity()) {
        cache.evict_by(policy);
    }
    Some(mapping)
}

/// The FTL of a drive with the flash array `array`.
pub(super) fn ftl(spec: &Spec, policies: &Policies, geometry: &Geometry, array: &Array) -> Ftl {
    let config = ftl::Config {
        allocation: spec.ftl.allocation,
        levelling: spec.ftl.wear_levelling,
        victim: policies.victim(spec, geometry.lanes),
        needs: superblock_needs(spec),
        streams: streams(spec),
        placements: Placements::of(&spec.placement, geometry.lanes),
    };
    Ftl::new(config, geometry, array)
}

/// The share of the write cache that may be dirty.
pub(super) fn budget(spec: &Spec) -> Budget {
    match spec.cache.dirty_budget {
        DirtyBudget::Share(share) => Budget::Share(share),
        DirtyBudget::Measured => Budget::Measured,
    }
}
