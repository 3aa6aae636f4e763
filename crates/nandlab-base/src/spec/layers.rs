//! Layers of a spec: preset, file and `--set`. Each layer overrides the layers before it.

use super::error::{SpecError, nearest};
use super::key::{Key, Table};
use super::kind::{Val, ValueKind};
use super::node::{Field, Node, Raw, expected, parse_document, parse_value, shorten, shorten_to};
use super::outside::Outside;
use super::quantity::show_size;
use super::read::Reader;
use std::collections::BTreeMap;

/// The location at which a value was written.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Location {
    /// The file's name, `preset NAME` or `--set`.
    pub(super) origin: String,
    pub(super) line: Option<u32>,
    /// The rank of the layer; higher ranks win.
    pub(super) rank: usize,
}

/// The value that a layer gives to a key.
#[derive(Clone, Debug)]
pub(super) struct KeyValue {
    pub(super) location: Location,
    node: Node,
    /// `None`: the value could not be read, and the error has been added.
    pub(super) val: Option<Val>,
}

/// All layers applied so far.
#[derive(Debug)]
pub(super) struct Layers {
    pub(super) table: &'static Table,
    /// The choices from outside.
    pub(super) outside: Outside,
    pub(super) entries: BTreeMap<&'static str, KeyValue>,
    pub(super) errors: Vec<(usize, SpecError)>,
    /// The presets used, base first.
    pub(super) presets: Vec<&'static str>,
    rank: usize,
    /// The rank of the first `--set`.
    pub(super) sets_from: usize,
}

impl Layers {
    /// Starts without any layer.
    pub(super) fn new(table: &'static Table, outside: &Outside) -> Self {
        Self {
            table,
            outside: outside.clone(),
            entries: BTreeMap::new(),
            errors: Vec::new(),
            presets: Vec::new(),
            rank: 0,
            sets_from: usize::MAX,
        }
    }

    /// Adds an error.
    pub(super) fn error(
        &mut self,
        location: &Location,
        key: &str,
        message: impl Into<String>,
        remedy: impl Into<String>,
    ) {
        let error = SpecError {
            origin: location.origin.clone(),
            line: location.line,
            key: key.into(),
            message: message.into(),
            remedy: remedy.into(),
        };
        self.errors.push((location.rank, error));
    }

    /// The line of item `index` of the list that `key` has as its value.
    pub(super) fn line_of_item(&self, key: &str, index: usize) -> Option<u32> {
        match &self.entries.get(key)?.node.raw {
            Raw::List(items) => items.get(index).map(|item| item.line),
            _ => None,
        }
    }

    /// Applies all layers, the lowest first.
    pub(super) fn apply(&mut self, text: &str, name: &str, sets: &[String]) {
        let fields = self.document(text, name);
        let sets: Vec<Set> = sets.iter().filter_map(|set| self.parse_set(set)).collect();
        self.apply_preset_named(&fields, name, &sets);
        self.rank += 1;
        self.apply_document(&fields, name);
        self.sets_from = self.rank + 1;
        for set in sets {
            self.rank += 1;
            self.apply_set(set);
        }
    }

    /// The fields of the file; none if the file cannot be parsed, which is added as an error.
    fn document(&mut self, text: &str, name: &str) -> Vec<Field> {
        if text.len() > BYTES_MAX {
            let message =
                format!("{} bytes, more than the {} of a spec", text.len(), show_size(BYTES_MAX as u64));
            let location = Location { origin: name.into(), line: None, rank: 0 };
            self.error(&location, "", message, "check that this is the right file");
            return Vec::new();
        }
        parse_document(text).unwrap_or_else(|error| {
            self.errors.push((0, error.spec_error(name)));
            Vec::new()
        })
    }

    /// Applies, as the lowest layer, the preset that the last `--set` of the preset key names. Without such a `--set` it is
    /// the preset that the file names.
    fn apply_preset_named(&mut self, fields: &[Field], name: &str, sets: &[Set]) {
        let in_file = self
            .named_preset(fields)
            .map(|node| (node.clone(), Location { origin: name.into(), line: Some(node.line), rank: 0 }));
        let in_sets = sets.iter().rev().find(|set| set.key.path == self.table.preset);
        let named = in_sets.map(|set| (set.node.clone(), set_location(0))).or(in_file);
        let Some((node, location)) = named else { return };
        match &node.raw {
            Raw::Text(preset) => self.apply_preset(preset, &location),
            _ => self.error(
                &location,
                self.table.preset,
                expected("a preset's name", &node),
                self.presets_text(),
            ),
        }
    }

    /// The value of the key that names a preset.
    fn named_preset<'f>(&self, fields: &'f [Field]) -> Option<&'f Node> {
        let (section, name) = self.table.preset.split_once('.')?;
        let Raw::Table(inner) = &fields.iter().find(|f| f.name == section)?.node.raw else { return None };
        inner.iter().find(|f| f.name == name).map(|f| &f.node)
    }

    fn presets_text(&self) -> String {
        let names: Vec<&str> = self.table.presets.iter().map(|p| p.name).collect();
        format!("presets: {}", names.join(", "))
    }

    fn apply_preset(&mut self, name: &str, location: &Location) {
        let Some(preset) = self.table.find_preset(name) else {
            let meant = nearest(name, self.table.presets.iter().map(|p| p.name));
            let meant = meant.map_or(String::new(), |name| format!("did you mean \"{name}\"? "));
            let message = format!("unknown preset \"{}\"", shorten(name));
            return self.error(
                location,
                self.table.preset,
                message,
                format!("{meant}{}", self.presets_text()),
            );
        };
        if self.presets.contains(&preset.name) {
            return self.error(
                location,
                self.table.preset,
                format!("preset {name} is built on itself"),
                "name another base",
            );
        }
        self.presets.insert(0, preset.name);
        let origin = format!("preset {}", preset.name);
        // Presets are part of the program, and a test loads each of them: parsing does not fail.
        let fields = parse_document(preset.text).unwrap_or_default();
        if let Some(Node { line, raw: Raw::Text(base) }) = self.named_preset(&fields) {
            let location = Location { origin: origin.clone(), line: Some(*line), rank: 0 };
            self.apply_preset(base, &location);
        }
        self.rank += 1;
        self.apply_document(&fields, &origin);
    }

    fn apply_document(&mut self, fields: &[Field], origin: &str) {
        let rank = self.rank;
        let location = |line| Location { origin: origin.into(), line: Some(line), rank };
        let table = self.table;
        let sections = table.sections();
        for field in fields {
            if let Some(key) = table.find(&field.name).filter(|key| key.section().is_empty()) {
                self.put(key, field.node.clone(), location(field.line));
                continue;
            }
            let Some(section) = sections.iter().find(|s| !s.is_empty() && **s == field.name) else {
                self.unknown(&location(field.line), &field.name);
                continue;
            };
            let Raw::Table(inner) = &field.node.raw else {
                let message = expected("a section", &field.node);
                self.error(
                    &location(field.line),
                    section,
                    message,
                    format!("write [{section}] and its keys below it"),
                );
                continue;
            };
            for field in inner {
                let path = format!("{section}.{}", field.name);
                match table.find(&path).filter(|key| key.name() == field.name) {
                    Some(key) => self.put(key, field.node.clone(), location(field.line)),
                    None => self.unknown(&location(field.line), &path),
                }
            }
        }
    }

    /// Sets a key, and removes the exclusive keys of lower layers that it replaces.
    fn put(&mut self, key: &'static Key, node: Node, location: Location) {
        if key.path == self.table.preset {
            return;
        }
        for group in self.table.exclusive.iter().filter(|group| group.contains(&key.path)) {
            for other in group.iter().filter(|other| **other != key.path) {
                if self.entries.get(other).is_some_and(|entry| entry.location.rank < location.rank) {
                    self.entries.remove(other);
                }
            }
        }
        let absent = self.table.absent;
        let mut reader = Reader { outside: Some(&self.outside), absent, ..Reader::default() };
        let val = reader.read(&key.kind, &node, key.path);
        for issue in reader.issues {
            let line = location.line.map(|line| if issue.line > 0 { issue.line } else { line });
            self.error(&Location { line, ..location.clone() }, &issue.path, issue.message, issue.remedy);
        }
        self.entries.insert(key.path, KeyValue { location, node, val });
    }

    fn unknown(&mut self, location: &Location, path: &str) {
        let (message, remedy) = match self.errors.len() {
            0..SUGGESTIONS_MAX => unknown_key(self.table, path),
            _ => ("unknown key", "take it out".into()),
        };
        self.error(location, &shorten_to(80, path), message, remedy);
    }

    /// Parses `path=value`; the path may name a parameter below a key.
    fn parse_set(&mut self, set: &str) -> Option<Set> {
        let location = set_location(usize::MAX);
        let (path, text) = set.split_once('=').unwrap_or((set, ""));
        let (path, text) = (path.trim(), text.trim());
        if text.is_empty() {
            let path = shorten(path);
            let remedy = format!("write it as --set {path}=VALUE, such as --set {}", self.table.example);
            self.error(&location, &path, "no value", remedy);
            return None;
        }
        let Some(key) = self.table.keys().find(|key| {
            path.strip_prefix(key.path).is_some_and(|rest| rest.is_empty() || rest.starts_with('.'))
        }) else {
            self.unknown(&location, path);
            return None;
        };
        if path.len() > SET_PATH_MAX {
            self.error(
                &location,
                key.path,
                "the path is too long",
                format!("write the value as a table: --set '{}'", self.table.table_example),
            );
            return None;
        }
        let below: Vec<String> = path[key.path.len()..].split('.').skip(1).map(String::from).collect();
        let bare = || Node { line: 0, raw: Raw::Text(text.into()) };
        let node = match parse_value(text) {
            // The shell removes quotes: for a key whose value is text, `--set section.name=0` means the text "0".
            Some(node) if matches!(key.kind, ValueKind::Text | ValueKind::Path) => match node.raw {
                Raw::Text(_) => node,
                _ => bare(),
            },
            Some(node) => node,
            None if text.starts_with(['"', '\'', '{', '[']) => {
                let message = format!("not a TOML value: {}", shorten(text));
                self.error(
                    &location,
                    key.path,
                    message,
                    format!("quote the whole argument: --set '{}'", self.table.table_example),
                );
                return None;
            }
            None => bare(),
        };
        Some(Set { key, below, node })
    }

    fn apply_set(&mut self, set: Set) {
        let Set { key, below, mut node } = set;
        let location = set_location(self.rank);
        let lower = self.entries.get(key.path).map(|entry| &entry.node.raw);
        for (depth, name) in below.iter().enumerate().rev() {
            let mut fields = match (&key.kind, lower) {
                // Setting one field of a table keeps the others.
                (ValueKind::Table(_), Some(Raw::Table(fields))) if depth == 0 => {
                    fields.iter().filter(|f| f.name != *name).cloned().collect()
                }
                // If the table is one of several alternatives, the other fields of the same alternative are kept.
                (ValueKind::Either(kinds), Some(Raw::Table(fields))) if depth == 0 => {
                    let table = kinds.iter().find(|kind| kind.is_table_with(name));
                    let is_beside = |f: &&Field| {
                        f.name != *name && table.is_some_and(|table| table.is_table_with(&f.name))
                    };
                    fields.iter().filter(is_beside).cloned().collect()
                }
                // Setting one parameter of a policy keeps the others, if the lower layers name the same policy.
                (_, Some(Raw::Table(policies))) if depth == 1 => policies
                    .iter()
                    .filter(|policy| policy.name == below[0])
                    .filter_map(|policy| match &policy.node.raw {
                        Raw::Table(params) => Some(params.iter().filter(|param| param.name != *name)),
                        _ => None,
                    })
                    .flatten()
                    .cloned()
                    .collect(),
                _ => Vec::new(),
            };
            fields.push(Field { name: name.clone(), line: 0, node });
            node = Node { line: 0, raw: Raw::Table(fields) };
        }
        self.put(key, node, location);
    }
}

/// The largest size of a spec in bytes: many times the size of a spec that sets all keys.
const BYTES_MAX: usize = 1 << 20;

/// The largest number of errors with a suggested key. Finding a suggestion takes longer than reading the spec.
pub(super) const SUGGESTIONS_MAX: usize = 100;

/// The largest length of a path in `--set`, in bytes: far longer than any key, and far too short for tables nested so
/// deeply that they overflow the stack.
const SET_PATH_MAX: usize = 200;

/// A parsed `--set`: the key, the names below the key, and the value.
struct Set {
    key: &'static Key,
    below: Vec<String>,
    node: Node,
}

fn set_location(rank: usize) -> Location {
    Location { origin: "--set".into(), line: None, rank }
}

/// Message and remedy for a path that is not the path of a key.
fn unknown_key(table: &Table, path: &str) -> (&'static str, String) {
    if let Some(error) = path.split('.').find_map(|name| Table::absent(table.absent, name)) {
        return error;
    }
    let names = |section: &str| table.of_section(section).map(Key::name).collect::<Vec<_>>().join(", ");
    let known = |section: &str| table.sections().into_iter().find(|s| !s.is_empty() && *s == section);
    if let Some(section) = known(path) {
        return ("a section and no key", format!("set one of its keys; [{section}] has: {}", names(section)));
    }
    if let Some((section, name)) = path.split_once('.')
        && let Some(section) = known(section)
    {
        let meant = nearest(name, table.of_section(section).map(Key::name));
        // A name of other sections is meant only if few have it.
        let elsewhere: Vec<&str> =
            table.keys().filter(|key| key.name() == name).map(|key| key.path).collect();
        let elsewhere = matches!(elsewhere.len(), 1 | 2).then(|| elsewhere.join(" or "));
        let meant = meant.map(|name| format!("{section}.{name}")).or(elsewhere);
        let meant = meant.map_or(String::new(), |path| format!("did you mean {path}? "));
        return ("unknown key", format!("{meant}[{section}] has: {}", names(section)));
    }
    let sections: Vec<&str> = table.sections().into_iter().filter(|s| !s.is_empty()).collect();
    let (first, name) = path.split_once('.').unwrap_or((path, ""));
    let mut of_name = table.keys().filter(|key| key.name() == path).map(|key| key.path.to_string());
    let only = of_name.next().filter(|_| of_name.next().is_none());
    let meant = only.or_else(|| {
        let near = nearest(first, sections.iter().copied().chain(table.of_section("").map(Key::name)))?;
        if !sections.contains(&near) {
            return Some(near.to_string());
        }
        let key = nearest(name, table.of_section(near).map(Key::name));
        Some(key.map_or(format!("[{near}]"), |key| format!("{near}.{key}")))
    });
    let meant = meant.map_or(String::new(), |name| format!("did you mean {name}? "));
    let sections = sections.join(", ");
    ("unknown section or key", format!("{meant}sections: {sections}; keys above the sections: {}", names("")))
}
