//! Resolves layers to one value for every key. Fills in defaults, which may depend on other keys, and finds keys that
//! other keys make meaningless.

use super::error::SpecError;
use super::key::{Content, Follows, Key, OneOf, Table, When};
use super::kind::Val;
use super::layers::{KeyValue, Layers, Location};
use super::node::parse_value;
use super::outside::Named;
use super::read::Reader;
use super::section::FromVal;
use std::collections::{BTreeMap, BTreeSet};
use std::path::{Component, Path, PathBuf};

/// The value of a key and the location where it was set.
#[derive(Clone, Debug)]
pub(super) struct Item {
    /// `None`: the value could not be read.
    pub(super) val: Option<Val>,
    /// `None`: the value is the default.
    pub(super) location: Option<Location>,
}

/// The values of all keys that have a value.
#[derive(Clone, Debug)]
pub struct Resolved {
    /// The keys that are set, by default or by a layer.
    pub(super) items: BTreeMap<&'static str, Item>,
    pub(super) presets: Vec<&'static str>,
    /// The contents of files that are part of the spec, by the key whose value names the file.
    pub(super) contents: BTreeMap<&'static str, Content>,
    /// The choices from outside that the values name, in the order of the keys.
    pub(super) outside: Vec<Named>,
    /// The folder at which relative paths start.
    dir: PathBuf,
}

impl Resolved {
    /// The value of a key; `None` if the key has no value or a value that could not be read.
    pub fn get(&self, path: &str) -> Option<&Val> {
        self.items.get(path)?.val.as_ref()
    }

    /// The value of a key that always has one in a spec without errors.
    pub fn val(&self, path: &str) -> &Val {
        self.get(path).unwrap_or_else(|| panic!("{path} has no value"))
    }

    /// The value of a key that always has one, converted to `T`.
    pub fn read<T: FromVal>(&self, path: &str) -> T {
        T::from_val(self.val(path))
    }

    /// The path of a file that a value names. A relative path starts at the spec's folder. Parts `.` are removed. Parts
    /// `..` remain, because `link/..` is not the current folder if `link` is a symbolic link.
    pub fn file(&self, name: &str) -> PathBuf {
        self.dir.join(name).components().filter(|part| *part != Component::CurDir).collect()
    }

    /// The content of the file that the value of a key names.
    ///
    /// # Panics
    /// If the key has no content of type `T`.
    pub fn content<T: Clone + 'static>(&self, path: &str) -> T {
        let content = self.contents.get(path).and_then(|content| content.value.downcast_ref::<T>());
        content.unwrap_or_else(|| panic!("the file of {path} has not been read")).clone()
    }

    /// The choices from outside that the values name, in the order of the keys.
    pub fn outside(&self) -> &[Named] {
        &self.outside
    }

    /// The presets used, base first.
    pub fn presets(&self) -> &[&'static str] {
        &self.presets
    }

    /// The origin and the line of a key's value. `None`: the value is the default.
    pub fn origin(&self, key: &str) -> Option<(&str, Option<u32>)> {
        let location = self.items.get(key)?.location.as_ref()?;
        Some((&location.origin, location.line))
    }
}

/// The default of a key, which may depend on other keys.
fn default_of(key: &'static Key, layers: &Layers) -> Item {
    let toml = match key.follows {
        Follows::Nothing | Follows::Derived { .. } => key.default,
        Follows::Beside { key, then, .. } if layers.entries.contains_key(key) => then,
        Follows::Beside { otherwise, .. } => otherwise,
        Follows::Choice { of, otherwise } => return choice(of, otherwise, layers),
    };
    let read = |node| Reader::default().read(&key.kind, &node, key.path);
    Item { val: parse_value(toml).and_then(read), location: None }
}

/// The default of a key with [`Follows::Choice`].
fn choice(of: &[(&str, &'static str)], otherwise: &'static str, layers: &Layers) -> Item {
    let chosen = of
        .iter()
        .filter_map(|(path, name)| Some((&layers.entries.get(path)?.location, *name)))
        .max_by_key(|(location, _)| location.rank);
    let (location, name) = match chosen {
        Some((location, name)) => (Some(location.clone()), name),
        None => (None, otherwise),
    };
    Item { val: Some(Val::Tag(name, None)), location }
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
        outside: Vec::new(),
        dir: dir.to_owned(),
    };
    for key in table.keys() {
        let meaning = meaning(key, layers);
        let entry = layers.entries.get(key.path).cloned();
        match (meaning, entry) {
            (Meaning::Yes, Some(KeyValue { val, location, .. })) => {
                resolved.items.insert(key.path, Item { val, location: Some(location) });
            }
            (Meaning::Yes, None) => {
                let item = default_of(key, layers);
                if item.val.is_some() {
                    resolved.items.insert(key.path, item);
                }
            }
            (Meaning::No { rank, message, remedy }, Some(entry)) => {
                // If a higher layer makes a key of a lower layer meaningless, the key is dropped without an error. All
                // `--set` are one layer here: none of them makes another one meaningless in silence.
                let is_below = entry.location.rank < rank.min(layers.sets_from);
                let silent = is_below || without.contains(&key.section());
                if !silent {
                    layers.error(&entry.location, key.path, message, remedy);
                }
            }
            (Meaning::No { .. }, None) => {}
        }
    }
    for key in table.keys() {
        if let Follows::Derived { key: other, by } = key.follows
            && let Some(entry) = layers.entries.get(other)
            && !layers.entries.contains_key(key.path)
            && resolved.items.contains_key(key.path)
            && let Some(val) = by(&resolved)
        {
            // Of two exclusive keys only the derived one remains, so that the resolved spec can be read again.
            let location = excludes(table, key.path, other).then(|| {
                resolved.items.remove(other);
                entry.location.clone()
            });
            resolved.items.insert(key.path, Item { val: Some(val), location });
        }
    }
    resolved
}

/// Whether a layer may set only one of two keys.
fn excludes(table: &Table, one: &str, other: &str) -> bool {
    table.exclusive.iter().any(|group| group.contains(&one) && group.contains(&other))
}

enum Meaning {
    Yes,
    /// `rank` is the rank of the layer that made the key meaningless.
    No {
        rank: usize,
        message: String,
        remedy: String,
    },
}

fn meaning(key: &Key, layers: &Layers) -> Meaning {
    let table = layers.table;
    // Of a group of exclusive keys only the key that is set has a meaning. Without this rule the other keys would have
    // their defaults.
    let groups = table.exclusive.iter().filter(|group| group.contains(&key.path));
    let mut others = groups.copied().flatten().filter(|other| **other != key.path);
    let follows = |other: &str| matches!(key.follows, Follows::Derived { key, .. } if key == other);
    if let Some(other) = others.find(|other| layers.entries.contains_key(*other) && !follows(other))
        && let Some(other) = layers.entries.get(other)
    {
        return Meaning::No { rank: other.location.rank, message: String::new(), remedy: String::new() };
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
                one_of.keys.iter().find_map(|path| Some((path, layers.entries.get(path)?.location.rank)));
            let (which, rank) = present.map_or((one_of.without, 0), |(path, rank)| (*path, rank));
            let owners = if present.is_some() { paths.join(" or ") } else { paths[0].to_owned() };
            Meaning::No {
                rank,
                message: format!("belongs to {owners}, but {} is {which}", one_of.what),
                remedy: format!("take the line out, or give {owners} instead"),
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
            let item = value_of(control, layers);
            match item.val {
                Some(val) if !values.contains(&val.tag()) => Meaning::No {
                    rank: item.location.map_or(0, |location| location.rank),
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
        When::Holds { of, holds, otherwise, remedy } => {
            let Some(control) = table.find(of) else { return Meaning::Yes };
            let item = value_of(control, layers);
            match item.val {
                Some(val) if !holds(&val) => Meaning::No {
                    rank: item.location.map_or(0, |location| location.rank),
                    message: otherwise.into(),
                    remedy: remedy.into(),
                },
                _ => Meaning::Yes,
            }
        }
    }
}

/// The value that a layer gives to a key, or the default.
fn value_of(key: &'static Key, layers: &Layers) -> Item {
    match layers.entries.get(key.path) {
        Some(entry) => Item { val: entry.val.clone(), location: Some(entry.location.clone()) },
        None => default_of(key, layers),
    }
}

/// The condition `section.name = "one" or "another"` as text.
pub(super) fn any_of(path: &str, values: &[&str]) -> String {
    let quoted: Vec<String> = values.iter().map(|v| format!("\"{v}\"")).collect();
    format!("{path} = {}", quoted.join(" or "))
}

/// Reports an error for a layer that sets several keys of an exclusive group.
fn one_of_each_group(layers: &mut Layers) {
    for group in layers.table.exclusive {
        let mut present: Vec<(&'static str, Location)> = group
            .iter()
            .filter_map(|path| Some((*path, layers.entries.get(path)?.location.clone())))
            .collect();
        present.sort_by_key(|(_, location)| location.line);
        if let [(first, _), others @ ..] = present.as_slice() {
            for (path, location) in others {
                let message = format!("conflicts with {first}");
                layers.error(location, path, message, format!("keep exactly one of {}", group.join(", ")));
                layers.entries.remove(path);
            }
        }
    }
}

/// Whether one of the keys of `one_of` is set. If none is, but another key of the section is set, reports an error.
fn has_one(one_of: &OneOf, layers: &mut Layers) -> bool {
    if one_of.keys.iter().any(|path| layers.entries.contains_key(path)) {
        return true;
    }
    let is_of_section =
        |path: &str| path.split_once('.').is_some_and(|(section, _)| section == one_of.section);
    let without = layers.entries.iter().find(|(path, _)| is_of_section(path));
    let location = without.map(|(_, entry)| entry.location.clone());
    if let Some(location) = location {
        let keys = one_of.keys.join(", ");
        let remedy = format!("give exactly one of {keys}, or take the section's keys out");
        layers.error(&location, one_of.section, one_of.missing, remedy);
    }
    false
}

/// Errors in the order of layers and lines. Two `--set` of the same table read the table twice, so of equal errors
/// without a line only the first is kept.
pub(super) fn in_order(mut errors: Vec<(usize, SpecError)>) -> Vec<SpecError> {
    errors.sort_by_key(|(rank, error)| (*rank, error.line));
    let mut seen = BTreeSet::new();
    let mut is_new = |error: &SpecError| seen.insert((error.line, error.key.clone(), error.message.clone()));
    errors.into_iter().map(|(_, error)| error).filter(|error| error.line.is_some() || is_new(error)).collect()
}
