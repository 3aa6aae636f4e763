//! From layers to one value for every key: defaults, keys that follow from others, keys without a meaning here.

use super::error::SpecError;
use super::key::{Content, Follows, Key, OneOf, When};
use super::kind::Val;
use super::layers::{KeyValue, Layers, Location};
use super::node::parse_value;
use super::read::Reader;
use super::section::FromVal;
use std::collections::{BTreeMap, BTreeSet};
use std::path::{Component, Path, PathBuf};

/// The value of a key and where it was written.
#[derive(Clone, Debug)]
pub(super) struct Item {
    /// `None`: it could not be read.
    pub(super) val: Option<Val>,
    /// `None`: the default.
    pub(super) place: Option<Location>,
}

/// One value for every key that has one.
#[derive(Clone, Debug)]
pub(crate) struct Resolved {
    /// Keys that are set, by default or by a layer.
    pub(super) items: BTreeMap<&'static str, Item>,
    pub(super) presets: Vec<&'static str>,
    /// What the files hold that belong to values of keys, by key.
    pub(super) contents: BTreeMap<&'static str, Content>,
    /// What relative paths are resolved against.
    dir: PathBuf,
}

impl Resolved {
    /// The value of a key, when it is set and could be read.
    pub(crate) fn get(&self, path: &str) -> Option<&Val> {
        self.items.get(path)?.val.as_ref()
    }

    /// The value of a key that always has one once there are no errors.
    pub(crate) fn val(&self, path: &str) -> &Val {
        self.get(path).unwrap_or_else(|| panic!("{path} has a default"))
    }

    /// What that value becomes.
    pub(crate) fn read<T: FromVal>(&self, path: &str) -> T {
        T::from_val(self.val(path))
    }

    /// A file as a value names it: below the spec's folder, without `.` parts. `..` stays: behind a link it does not cancel
    /// the name before it.
    pub(crate) fn file(&self, name: &str) -> PathBuf {
        self.dir.join(name).components().filter(|part| *part != Component::CurDir).collect()
    }

    /// What the file holds that belongs to the value of a key.
    ///
    /// # Panics
    /// When it has none of this type.
    pub(crate) fn content<T: Clone + 'static>(&self, path: &str) -> T {
        let content = self.contents.get(path).and_then(|content| content.value.downcast_ref::<T>());
        content.unwrap_or_else(|| panic!("the file of {path} has been read")).clone()
    }

    /// The presets used, base first.
    pub(crate) fn presets(&self) -> &[&'static str] {
        &self.presets
    }

    /// Where the value of a key was written, and on which line. `None`: the default.
    pub(crate) fn origin(&self, key: &str) -> Option<(&str, Option<u32>)> {
        let place = self.items.get(key)?.place.as_ref()?;
        Some((&place.origin, place.line))
    }
}

/// The default of a key, or what another key makes of it.
fn default_of(key: &'static Key, layers: &Layers) -> Item {
    let toml = match key.follows {
        Follows::Nothing => key.default,
        Follows::Beside { key, then, .. } if layers.entries.contains_key(key) => then,
        Follows::Beside { otherwise, .. } => otherwise,
        Follows::Choice { of, otherwise } => return choice(of, otherwise, layers),
    };
    let read = |node| Reader::default().read(&key.kind, &node, key.path);
    Item { val: parse_value(toml).and_then(read), place: None }
}

/// Setting a key that belongs to a choice makes that choice.
fn choice(of: &[(&str, &'static str)], otherwise: &'static str, layers: &Layers) -> Item {
    let chosen = of
        .iter()
        .filter_map(|(path, name)| Some((&layers.entries.get(path)?.place, *name)))
        .max_by_key(|(place, _)| place.rank);
    let (place, name) = match chosen {
        Some((place, name)) => (Some(place.clone()), name),
        None => (None, otherwise),
    };
    Item { val: Some(Val::Tag(name, None)), place }
}

/// Resolves all keys; errors are added to `layers`.
pub(super) fn resolve(layers: &mut Layers, dir: &Path) -> Resolved {
    let table = layers.table;
    one_of_each_group(layers);
    let without: Vec<&str> =
        table.one_of.iter().filter(|one_of| !has_one(one_of, layers)).map(|one_of| one_of.section).collect();
    let mut resolved = Resolved {
        items: BTreeMap::new(),
        presets: layers.presets.clone(),
        contents: BTreeMap::new(),
        dir: dir.to_owned(),
    };
    for key in table.keys() {
        let meaning = meaning(key, layers);
        let entry = layers.entries.get(key.path).cloned();
        match (meaning, entry) {
            (Meaning::Yes, Some(KeyValue { val, place, .. })) => {
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
                let silent = entry.place.rank < rank || without.contains(&key.section());
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

fn meaning(key: &Key, layers: &Layers) -> Meaning {
    let table = layers.table;
    // The default of the one would stand beside the other.
    let groups = table.exclusive.iter().filter(|group| group.contains(&key.path));
    let mut others = groups.copied().flatten().filter(|other| **other != key.path);
    if let Some(other) = others.find_map(|other| layers.entries.get(other)) {
        return Meaning::No { rank: other.place.rank, message: String::new(), remedy: String::new() };
    }
    match key.when {
        When::Always => Meaning::Yes,
        When::Set(paths) => {
            if paths.iter().any(|path| layers.entries.contains_key(path)) {
                return Meaning::Yes;
            }
            let Some(one_of) = table.one_of.iter().find(|one_of| one_of.keys.contains(&paths[0])) else {
                return Meaning::Yes;
            };
            let present =
                one_of.keys.iter().find_map(|path| Some((path, layers.entries.get(path)?.place.rank)));
            let (which, rank) = present.map_or((one_of.without, 0), |(path, rank)| (*path, rank));
            Meaning::No {
                rank,
                message: format!("belongs to {}, but {} is {which}", paths[0], one_of.what),
                remedy: format!("take the line out, or give {} instead", paths[0]),
            }
        }
        When::Is(controlling, values) => {
            let Some(control) = table.find(controlling) else { return Meaning::Yes };
            if let Meaning::No { rank, .. } = meaning(control, layers) {
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

/// `section.name = "one" or "another"`.
pub(super) fn any_of(path: &str, values: &[&str]) -> String {
    let quoted: Vec<String> = values.iter().map(|v| format!("\"{v}\"")).collect();
    format!("{path} = {}", quoted.join(" or "))
}

/// Of exclusive keys one layer may set one.
fn one_of_each_group(layers: &mut Layers) {
    for group in layers.table.exclusive {
        let mut present: Vec<(&'static str, Location)> =
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

/// A section that says anything must have one of its keys of which it needs one.
fn has_one(one_of: &OneOf, layers: &mut Layers) -> bool {
    if one_of.keys.iter().any(|path| layers.entries.contains_key(path)) {
        return true;
    }
    let is_of_section =
        |path: &str| path.split_once('.').is_some_and(|(section, _)| section == one_of.section);
    let without = layers.entries.iter().find(|(path, _)| is_of_section(path));
    let place = without.map(|(_, entry)| entry.place.clone());
    if let Some(place) = place {
        let keys = one_of.keys.join(", ");
        let remedy = format!("give exactly one of {keys}, or take the section's keys out");
        layers.error(&place, one_of.section, one_of.missing, remedy);
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
