//! From a TOML file to a validated [`Spec`].
//!
//! The table of keys is in `keys.rs`, the choices of policy slots in `slots.rs`; everything else is made from the two.
//! The way of a spec: text -> `node` (a tree with lines) -> `layers` (preset, file, `--set`) -> `resolve` (defaults)
//! -> `check` (rules over several keys) -> `build` (the typed [`Spec`]).

mod build;
mod check;
mod error;
mod keys;
mod kind;
mod layers;
mod model;
mod node;
mod presets;
mod quantity;
mod read;
mod resolve;
mod schema;
mod show;
mod slots;

pub use crate::base::geometry::{Cell, DriveSpec};
pub use crate::capacitor::{BudgetSteps, CapacitorSpec, FlushMethod, FlushOrder};
pub use crate::copyback::CopybackLimitSpec;
pub use crate::demand_map::{Eviction, MapSpec};
pub use crate::flash::{EccSpec, LevelSpec, RberSpec, ReliabilitySpec, Retry, StartLevel, VthSpec};
pub use crate::ftl::WearLevelling;
pub use crate::ftl::allocation::Allocation;
pub use crate::refresh::partial::Encoding;
pub use crate::sched::{CommandTimes, ProgramTime, Scheduler, TimingSpec};
pub use crate::write_cache::{CacheSpec, DirtyBudget};
pub use error::{SpecError, SpecErrors};
pub use model::*;
pub use schema::{PolicyRow, key_paths, policies, schema};

use crate::base::units::Span;
use std::path::Path;
use std::sync::LazyLock;

/// A spec that was read and found possible, and where each of its values came from.
#[derive(Clone, Debug)]
pub struct Loaded {
    /// The typed spec.
    pub spec: Spec,
    values: resolve::Resolved,
}

/// Reads a spec. `name` is the file's name for messages, `dir` what relative paths in it are resolved against, `sets`
/// are `path=value` overrides, the last one winning. A table of error rates that the spec names is read, too.
pub fn load(text: &str, name: &str, dir: &Path, sets: &[String]) -> Result<Loaded, SpecErrors> {
    let mut layers = layers::Layers::default();
    layers.apply(text, name, sets);
    let mut values = resolve::resolve(&mut layers);
    check::check(&values, &mut layers);
    build::read_table(&mut values, dir, &mut layers);
    if !layers.errors.is_empty() {
        return Err(SpecErrors(resolve::in_order(layers.errors)));
    }
    Ok(Loaded { spec: build::build(&values, dir), values })
}

impl Loaded {
    /// The resolved spec as TOML: every key with its value, its description and where the value came from. Loading
    /// that gives the same spec.
    pub fn to_toml(&self) -> String {
        show::to_toml(&self.values)
    }

    /// Every value in base units, sorted: the same text for specs that mean the same. Paths are as written; a table of
    /// error rates is there with a hash of what it holds.
    pub fn canonical_json(&self) -> String {
        show::canonical_json(&self.values)
    }

    /// 16 hex digits of [`Loaded::canonical_json`].
    pub fn hash(&self) -> String {
        show::hash(&self.canonical_json())
    }

    /// Where the value of a key was written: its origin (a file's name, `preset NAME`, `--set`) and line. `None`: the
    /// default.
    pub fn origin(&self, key: &str) -> Option<(&str, Option<u32>)> {
        let place = self.values.items.get(key)?.place.as_ref()?;
        Some((&place.origin, place.line))
    }

    /// The presets the drive is built on, base first.
    pub fn presets(&self) -> &[&'static str] {
        &self.values.presets
    }
}

/// The drives that ship with the program: name and one line about each.
pub fn presets() -> &'static [(&'static str, &'static str)] {
    static ALL: LazyLock<Vec<(&str, &str)>> =
        LazyLock::new(|| presets::PRESETS.iter().map(|preset| (preset.name, preset.about)).collect());
    &ALL
}

/// A length of time as a spec writes it, such as `"30d"`; `None` of anything else, and beyond [`Span::LIMIT`].
pub fn span(text: &str) -> Option<Span> {
    let ns = quantity::whole(text, quantity::Dimension::Time).ok()?;
    Some(Span::from_ns(ns)).filter(|&span| span <= Span::LIMIT)
}
