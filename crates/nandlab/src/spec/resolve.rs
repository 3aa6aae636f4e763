//! From layers to one value for every key: defaults, keys that follow from others, keys without a meaning here.

use super::error::SpecError;
use super::keys::{EXCLUSIVE, KEYS, Key, SOURCES, When, find};
use super::kind::Val;
use super::layers::{Entry, Layers, Place};
use super::node::parse_value;
use super::read::Reader;
use crate::flash::RberTable;
use std::collections::{BTreeMap, BTreeSet};

/// The value of a key and where it was written.
#[derive(Clone, Debug)]
pub(super) struct Item {
    /// `None`: it could not be read.
    pub(super) val: Option<Val>,
    /// `None`: the default.
    pub(super) place: Option<Place>,
}

/// One value for every key that has one.
#[derive(Clone, Debug, Default)]
pub(super) struct Resolved {
    /// Keys that are set, by default or by a layer.
    pub(super) items: BTreeMap<&'static str, Item>,
    pub(super) presets: Vec<&'static str>,
    /// What the file of `reliability.rber.table` holds.
    pub(super) table: Option<RberTable>,
}

impl Resolved {
    /// The value of a key, when it is set and could be read.
    pub(super) fn get(&self, path: &str) -> Option<&Val> {
        self.items.get(path)?.val.as_ref()
    }

    /// The value of a key that always has one once there are no errors.
    pub(super) fn val(&self, path: &str) -> &Val {
        self.get(path).unwrap_or_else(|| panic!("{path} has a default"))
    }
}

/// The default of a key, or what another key makes of it.
fn default_of(key: &Key, layers: &Layers) -> Item {
    let toml = match key.path {
        "precondition.method" => return method(layers),
        "workload.arrival" if layers.entries.contains_key("workload.synthetic") => "{ queue_depth = 32 }",
        "workload.arrival" => "\"trace\"",
        _ => key.default,
    };
    Item { val: read_default(key, toml), place: None }
}

fn read_default(key: &Key, toml: &str) -> Option<Val> {
    let node = parse_value(toml)?;
    // Looked up again for its 'static life.
    Reader::default().read(&find(key.path)?.kind, &node, key.path)
}

/// Naming a parameter of a method chooses it.
fn method(layers: &Layers) -> Item {
    let named = [
        ("precondition.used", "fill"),
        ("precondition.valid", "fill"),
        ("precondition.order", "fill"),
        ("precondition.rounds_max", "pts"),
    ];
    let chosen = named
        .iter()
        .filter_map(|(path, method)| Some((&layers.entries.get(path)?.place, *method)))
        .max_by_key(|(place, _)| place.rank);
    let (place, name) = match chosen {
        Some((place, name)) => (Some(place.clone()), name),
        None => (None, "none"),
    };
    Item { val: Some(Val::Tag(name, None)), place }
}

/// Resolves all keys; errors are added to `layers`.
pub(super) fn resolve(layers: &mut Layers) -> Resolved {
    one_of_each_group(layers);
    let has_source = one_source(layers);
    let mut resolved = Resolved { presets: layers.presets.clone(), ..Resolved::default() };
    for key in KEYS {
        let meaning = meaning(key, layers);
        let entry = layers.entries.get(key.path).cloned();
        match (meaning, entry) {
            (Meaning::Yes, Some(Entry { val, place, .. })) => {
                resolved.items.insert(key.path, Item { val, place: Some(place) });
            }
            (Meaning::Yes, None) => {
                let item = default_of(key, layers);
                if item.val.is_some() {
                    resolved.items.insert(key.path, item);
                }
            }
            (Meaning::No { rank, message, remedy }, Some(entry)) => {
                // A higher layer that made a lower layer's key meaningless has replaced it.
                let silent = entry.place.rank < rank || (!has_source && key.section() == "workload");
                if !silent {
                    layers.error(&entry.place, key.path, message, remedy);
                }
            }
            (Meaning::No { .. }, None) => {}
        }
    }
    resolved
}

enum Meaning {
    Yes,
    /// `rank`: of the layer that decided so.
    No {
        rank: usize,
        message: String,
        remedy: String,
    },
}

/// Without a meaning beside the key that excludes it.
fn no_default() -> Meaning {
    Meaning::No { rank: usize::MAX, message: String::new(), remedy: String::new() }
}

fn meaning(key: &Key, layers: &Layers) -> Meaning {
    match key.when {
        When::Always => match key.path {
            // The default of the one would stand beside the other.
            "precondition.method" if layers.entries.contains_key("precondition.load") => no_default(),
            "power.cut_after_requests" if layers.entries.contains_key("power.cut_at") => no_default(),
            _ => Meaning::Yes,
        },
        When::Set(paths) => {
            if paths.iter().any(|path| layers.entries.contains_key(path)) {
                return Meaning::Yes;
            }
            let present = SOURCES.iter().find_map(|path| Some((path, layers.entries.get(path)?.place.rank)));
            let (what, rank) = present.map_or(("without a source", 0), |(path, rank)| (*path, rank));
            Meaning::No {
                rank,
                message: format!("belongs to {}, but the workload is {what}", paths[0]),
                remedy: format!("take the line out, or give {} instead", paths[0]),
            }
        }
        When::Is(controlling, values) => {
            let Some(control) = find(controlling) else { return Meaning::Yes };
            if let Meaning::No { rank, .. } = meaning(control, layers) {
                let rank = if rank == usize::MAX {
                    layers.entries.get("precondition.load").map_or(0, |e| e.place.rank)
                } else {
                    rank
                };
                let values = any_of(controlling, values);
                return Meaning::No {
                    rank,
                    message: format!("has a meaning only with {values}"),
                    remedy: "take the line out".into(),
                };
            }
            let item = match layers.entries.get(controlling) {
                Some(entry) => Item { val: entry.val.clone(), place: Some(entry.place.clone()) },
                None => default_of(control, layers),
            };
            match item.val {
                Some(val) if !values.contains(&val.tag()) => Meaning::No {
                    rank: item.place.map_or(0, |place| place.rank),
                    message: format!(
                        "has a meaning only with {}; it is {}",
                        any_of(controlling, values),
                        val.toml()
                    ),
                    remedy: format!("take the line out, or set {controlling} = \"{}\"", values[0]),
                },
                _ => Meaning::Yes,
            }
        }
    }
}

/// `drive.cell = "3d-mlc" or "3d-tlc"`.
pub(super) fn any_of(path: &str, values: &[&str]) -> String {
    let quoted: Vec<String> = values.iter().map(|v| format!("\"{v}\"")).collect();
    format!("{path} = {}", quoted.join(" or "))
}

/// Of exclusive keys one layer may set one.
fn one_of_each_group(layers: &mut Layers) {
    for group in EXCLUSIVE {
        let mut present: Vec<(&'static str, Place)> =
            group.iter().filter_map(|path| Some((*path, layers.entries.get(path)?.place.clone()))).collect();
        present.sort_by_key(|(_, place)| place.line);
        if let [(first, _), others @ ..] = present.as_slice() {
            for (path, place) in others {
                let message = format!("stands beside {first}");
                layers.error(place, path, message, format!("keep exactly one of {}", group.join(", ")));
                layers.entries.remove(path);
            }
        }
    }
}

/// A workload that says anything must say where its requests come from.
fn one_source(layers: &mut Layers) -> bool {
    if SOURCES.iter().any(|path| layers.entries.contains_key(path)) {
        return true;
    }
    let unsourced = layers.entries.iter().find(|(path, _)| path.starts_with("workload."));
    let place = unsourced.map(|(_, entry)| entry.place.clone());
    if let Some(place) = place {
        let remedy = format!("give exactly one of {}, or take the section's keys out", SOURCES.join(", "));
        layers.error(&place, "workload", "no source of requests", remedy);
    }
    false
}

/// Errors by layer and line, as a reader of the file meets them. Two `--set` of one table read it twice: each error is told
/// once.
pub(super) fn in_order(mut errors: Vec<(usize, SpecError)>) -> Vec<SpecError> {
    errors.sort_by_key(|(rank, error)| (*rank, error.line));
    let mut told = BTreeSet::new();
    let mut is_new = |error: &SpecError| told.insert((error.line, error.key.clone(), error.message.clone()));
    errors.into_iter().map(|(_, error)| error).filter(|error| error.line.is_some() || is_new(error)).collect()
}
