//! Keys and the table of all keys. Parsing, defaults, ranges, `show`, the JSON Schema and the suggestions "did you
//! mean" all use the table. Each key is declared in the room that uses it.

use super::kind::{Val, ValueKind};
use super::node::parse_value;
use super::read::Reader;
use super::resolve::Resolved;
use std::any::Any;
use std::path::Path;
use std::sync::Arc;

/// A key of the spec.
#[derive(Debug)]
pub struct Key {
    /// `section.name`, or a bare name outside all sections.
    pub path: &'static str,
    /// The kind of values that the key accepts.
    pub kind: ValueKind,
    /// The default as TOML; empty if the key has no default, or a default that follows from other keys.
    pub default: &'static str,
    /// The keys on which the default depends.
    pub follows: Follows,
    /// The condition under which the key has a meaning.
    pub when: When,
    /// A description in one line.
    pub doc: &'static str,
    /// The source of the default, or a remark on it; may be empty.
    pub note: &'static str,
    /// For a key with a choice that names a file: how to read the file, whose content is part of the spec.
    pub file: Option<FileOf>,
}

/// The keys on which a default depends.
#[derive(Clone, Copy, Debug)]
pub enum Follows {
    /// No other key: the default is [`Key::default`].
    Nothing,
    /// Pairs of a key and the choice that it implies: if the key is set, the default is this choice, with the location
    /// of the key. If several of the keys are set, the key of the highest layer decides. If none is set, the default is
    /// `otherwise`.
    Choice {
        /// Pairs of a key's path and the name of a choice.
        of: &'static [(&'static str, &'static str)],
        /// The name of the choice if no key of `of` is set.
        otherwise: &'static str,
    },
    /// One key: the default is `then` if `key` is set, and `otherwise` if not, both as TOML.
    Beside {
        /// The path of the key.
        key: &'static str,
        /// The default if `key` is set, as TOML.
        then: &'static str,
        /// The default if `key` is not set, as TOML.
        otherwise: &'static str,
    },
    /// A quantity that another key states in other terms: the default is [`Key::default`], or `by` of the resolved
    /// values if `key` is set. If the two keys exclude each other, the resolved spec has only the value of this one.
    Derived {
        /// The path of the other key.
        key: &'static str,
        /// The value that follows from the other keys; `None` if one of them could not be read.
        by: fn(&Resolved) -> Option<Val>,
    },
}

/// The condition under which a key has a meaning.
#[derive(Clone, Copy, Debug)]
pub enum When {
    /// The key has a meaning in every spec.
    Always,
    /// One of these keys is set. They belong to a [`OneOf`].
    Set(&'static [&'static str]),
    /// The key with this path has one of these values.
    Is(&'static str, &'static [&'static str]),
    /// The key `of` has a value for which `holds` is true. If not, `otherwise` states why the key has no effect, and
    /// `remedy` what to do.
    Holds {
        /// The path of the other key.
        of: &'static str,
        /// Whether the other key's value gives this key a meaning.
        holds: fn(&Val) -> bool,
        /// Why the key has no effect, for an error.
        otherwise: &'static str,
        /// What to do, for an error.
        remedy: &'static str,
    },
}

/// The file that a choice of a key names, and the function that reads such a file.
#[derive(Clone, Copy, Debug)]
pub struct FileOf {
    /// The name of the choice.
    pub choice: &'static str,
    /// The function that reads the file at a path.
    pub read: fn(&Path) -> Result<Content, Unreadable>,
}

/// The content of a file that is part of the spec.
#[derive(Clone, Debug)]
pub struct Content {
    /// A hash of the content.
    pub hash: u64,
    /// What the file says, of the type that the key's room reads with `Resolved::content`.
    pub value: Arc<dyn Any + Send + Sync>,
}

/// Why a file cannot be used: the fault, its location in the file, and the remedy.
#[derive(Debug)]
pub struct Unreadable {
    /// The line of the fault, from 1 on; `None` for a fault that has no line.
    pub line: Option<u32>,
    /// The name of the column of the fault; `None` for a fault of a whole line or file.
    pub column: Option<&'static str>,
    /// The fault.
    pub message: String,
    /// What to do about the fault.
    pub remedy: String,
}

/// Declares a key without conditions, notes or dependence on other keys.
pub const fn key(path: &'static str, kind: ValueKind, default: &'static str, doc: &'static str) -> Key {
    Key { path, kind, default, follows: Follows::Nothing, when: When::Always, doc, note: "", file: None }
}

impl Key {
    /// The part of the path before the point; empty for a bare name.
    pub(super) fn section(&self) -> &'static str {
        self.path.split_once('.').map_or("", |(section, _)| section)
    }

    /// The part of the path after the point, or the bare name.
    pub(super) fn name(&self) -> &'static str {
        self.path.split_once('.').map_or(self.path, |(_, name)| name)
    }

    /// Whether the default is a valid value of the key.
    pub fn has_default(&'static self) -> bool {
        let node = parse_value(self.default);
        node.and_then(|node| Reader::default().read(&self.kind, &node, self.path)).is_some()
    }

    /// The key with the condition `when`.
    pub const fn when(mut self, when: When) -> Key {
        self.when = when;
        self
    }

    /// The key with the remark `note` on its default.
    pub const fn note(mut self, note: &'static str) -> Key {
        self.note = note;
        self
    }

    /// The key with a default that depends on other keys.
    pub const fn follows(mut self, follows: Follows) -> Key {
        self.follows = follows;
        self
    }

    /// The key with a choice that names a file.
    pub const fn file(mut self, file: FileOf) -> Key {
        self.file = Some(file);
        self
    }
}

/// Keys of a section. If any key of the section is set, exactly one of these keys must be set.
#[derive(Debug)]
pub struct OneOf {
    /// The name of the section.
    pub section: &'static str,
    /// The paths of the keys of which exactly one must be set.
    pub keys: &'static [&'static str],
    /// What the section describes, for errors: `the workload`.
    pub what: &'static str,
    /// The state without any of the keys, for errors: `without a source`.
    pub without: &'static str,
    /// The error when none of the keys is set: `no source of requests`.
    pub missing: &'static str,
}

/// A spec that is part of the program: its name, a description in one line, and its TOML.
#[derive(Debug)]
pub struct Preset {
    /// The name by which a spec refers to the preset.
    pub name: &'static str,
    /// A description in one line.
    pub about: &'static str,
    /// The preset as TOML.
    pub text: &'static str,
}

/// The table of all keys.
#[derive(Debug)]
pub struct Table {
    /// All keys, in the order in which `show` prints them.
    pub keys: &'static [&'static [Key]],
    /// The path of the key that names a preset, which is resolved before all other keys.
    pub preset: &'static str,
    /// All presets.
    pub presets: &'static [Preset],
    /// Groups of keys that exclude each other. A layer may set only one key of a group; this key replaces the group's
    /// keys of lower layers.
    pub exclusive: &'static [&'static [&'static str]],
    /// Sections that need exactly one of several keys.
    pub one_of: &'static [OneOf],
    /// Sections whose choices are not listed as policies.
    pub without_policies: &'static [&'static str],
    /// What the program does not model, although a reader may look for it.
    pub absent: &'static [Absent],
    /// A key and a value as an example of `--set`.
    pub example: &'static str,
    /// A key and a table as an example of `--set`.
    pub table_example: &'static str,
}

/// Names that a reader may try for something that the program does not model.
#[derive(Clone, Copy, Debug)]
pub struct Absent {
    /// Names of sections, keys or choices.
    pub names: &'static [&'static str],
    /// What there is instead, as a remedy.
    pub instead: &'static str,
}

impl Table {
    /// The error for a name that stands for something that is not modelled: message and remedy.
    pub(super) fn absent(absent: &'static [Absent], name: &str) -> Option<(&'static str, String)> {
        let of = absent.iter().find(|of| of.names.contains(&name))?;
        Some(("not modelled", format!("{}; see docs/explanation/not-modelled.md", of.instead)))
    }

    /// All keys.
    pub fn keys(&self) -> impl Iterator<Item = &'static Key> + use<> {
        self.keys.iter().copied().flatten()
    }

    /// The key with this path.
    pub fn find(&self, path: &str) -> Option<&'static Key> {
        self.keys().find(|key| key.path == path)
    }

    /// The paths of all keys.
    pub fn paths(&self) -> Vec<&'static str> {
        self.keys().map(|key| key.path).collect()
    }

    /// The names of all sections, in the order of the table.
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

    /// The preset with this name.
    pub(super) fn find_preset(&self, name: &str) -> Option<&'static Preset> {
        self.presets.iter().find(|preset| preset.name == name)
    }
}
