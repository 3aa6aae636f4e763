//! What a key is, and the table of all keys. Parsing, defaults, ranges, `show`, the JSON Schema and "did you mean" all come
//! from the table; which keys there are is said by the rooms that read them.

use super::kind::ValueKind;
#[cfg(test)]
use super::node::parse_value;
#[cfg(test)]
use super::read::Reader;
use std::any::Any;
use std::path::Path;
use std::sync::Arc;

/// One key of the file.
#[derive(Debug)]
pub(crate) struct Key {
    /// `section.name`, or a bare name above all sections.
    pub(crate) path: &'static str,
    pub(crate) kind: ValueKind,
    /// As TOML; empty: not set, or it follows from other keys.
    pub(crate) default: &'static str,
    pub(crate) follows: Follows,
    pub(crate) when: When,
    pub(crate) doc: &'static str,
    /// Where the default comes from, or what to know about it; may be empty.
    pub(crate) note: &'static str,
    /// The file that one of its choices names, if what the file holds is part of the spec.
    pub(crate) file: Option<FileOf>,
}

/// What a default follows from.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Follows {
    /// Nothing: it is [`Key::default`].
    Nothing,
    /// Keys that belong to one of its choices: the one that the highest layer sets makes its choice, and counts as the place
    /// where it was made. Without any of them it is `otherwise`.
    Choice { of: &'static [(&'static str, &'static str)], otherwise: &'static str },
    /// Whether another key is set, both as TOML.
    Beside { key: &'static str, then: &'static str, otherwise: &'static str },
}

/// When a key has a meaning.
#[derive(Clone, Copy, Debug)]
pub(crate) enum When {
    Always,
    /// One of these keys is set: some of those of a [`OneOf`].
    Set(&'static [&'static str]),
    /// This key has one of these values.
    Is(&'static str, &'static [&'static str]),
}

/// The file that a choice of a key names.
#[derive(Clone, Copy, Debug)]
pub(crate) struct FileOf {
    pub(crate) choice: &'static str,
    pub(crate) read: fn(&Path) -> Result<Content, Unreadable>,
}

/// What a file holds.
#[derive(Clone, Debug)]
pub(crate) struct Content {
    /// Tells contents apart.
    pub(crate) hash: u64,
    pub(crate) value: Arc<dyn Any + Send + Sync>,
}

/// Why a file cannot be used.
#[derive(Debug)]
pub(crate) struct Unreadable {
    pub(crate) line: Option<u32>,
    pub(crate) column: Option<&'static str>,
    pub(crate) message: String,
    pub(crate) remedy: String,
}

/// A key.
pub(crate) const fn key(
    path: &'static str,
    kind: ValueKind,
    default: &'static str,
    doc: &'static str,
) -> Key {
    Key { path, kind, default, follows: Follows::Nothing, when: When::Always, doc, note: "", file: None }
}

impl Key {
    /// The part before the point.
    pub(super) fn section(&self) -> &'static str {
        self.path.split_once('.').map_or("", |(section, _)| section)
    }

    /// The part after the point.
    pub(super) fn name(&self) -> &'static str {
        self.path.split_once('.').map_or(self.path, |(_, name)| name)
    }

    /// Whether its default is one of its values.
    #[cfg(test)]
    pub(crate) fn has_default(&'static self) -> bool {
        let node = parse_value(self.default);
        node.and_then(|node| Reader::default().read(&self.kind, &node, self.path)).is_some()
    }

    pub(crate) const fn when(mut self, when: When) -> Key {
        self.when = when;
        self
    }

    pub(crate) const fn note(mut self, note: &'static str) -> Key {
        self.note = note;
        self
    }

    pub(crate) const fn follows(mut self, follows: Follows) -> Key {
        self.follows = follows;
        self
    }

    pub(crate) const fn file(mut self, file: FileOf) -> Key {
        self.file = Some(file);
        self
    }
}

/// Keys of which a section needs exactly one, if any of it is written.
#[derive(Debug)]
pub(crate) struct OneOf {
    pub(crate) section: &'static str,
    pub(crate) keys: &'static [&'static str],
    /// What the section describes: `the workload`.
    pub(crate) what: &'static str,
    /// How it is without any: `without a source`.
    pub(crate) without: &'static str,
    /// The same as an error: `no source of requests`.
    pub(crate) missing: &'static str,
}

/// A spec that ships with the program: its name, one line about it, its TOML.
#[derive(Debug)]
pub(crate) struct Preset {
    pub(crate) name: &'static str,
    pub(crate) about: &'static str,
    pub(crate) text: &'static str,
}

/// Everything that a spec can say.
#[derive(Debug)]
pub(crate) struct Table {
    /// All keys, in the order `show` prints them.
    pub(crate) keys: &'static [&'static [Key]],
    /// The key that names a preset; it is resolved before all others.
    pub(crate) preset: &'static str,
    pub(crate) presets: &'static [Preset],
    /// Keys of which a higher layer's replaces a lower layer's, and of which one layer may set only one.
    pub(crate) exclusive: &'static [&'static [&'static str]],
    pub(crate) one_of: &'static [OneOf],
    /// Sections whose slots are no policies.
    pub(crate) without_policies: &'static [&'static str],
    /// A key and a value, as an example of `--set`.
    pub(crate) example: &'static str,
    /// The same with a table.
    pub(crate) table_example: &'static str,
}

impl Table {
    /// All keys.
    pub(crate) fn keys(&self) -> impl Iterator<Item = &'static Key> + use<> {
        self.keys.iter().copied().flatten()
    }

    /// The key of this path.
    pub(crate) fn find(&self, path: &str) -> Option<&'static Key> {
        self.keys().find(|key| key.path == path)
    }

    /// The paths of all keys.
    pub(crate) fn paths(&self) -> Vec<&'static str> {
        self.keys().map(|key| key.path).collect()
    }

    /// The sections.
    pub(super) fn sections(&self) -> Vec<&'static str> {
        let mut sections: Vec<&'static str> = Vec::new();
        for key in self.keys() {
            if !sections.contains(&key.section()) {
                sections.push(key.section());
            }
        }
        sections
    }

    /// The keys of one section.
    pub(super) fn of_section(&self, section: &str) -> impl Iterator<Item = &'static Key> {
        self.keys().filter(move |key| key.section() == section)
    }

    /// The preset of this name.
    pub(super) fn find_preset(&self, name: &str) -> Option<&'static Preset> {
        self.presets.iter().find(|preset| preset.name == name)
    }
}
