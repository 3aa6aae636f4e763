//! The kinds of values that keys accept, declared as data, and the values that have been read.

use super::quantity::{Dimension, show_real, show_size, show_time};
use super::section::FromVal;
use crate::base::units::Span;
use serde_json::Value as Json;

/// The kind of values that a key or parameter accepts.
#[derive(Clone, Copy, Debug)]
pub enum ValueKind {
    /// True or false.
    Bool,
    /// A whole number.
    Int {
        /// The smallest value.
        min: u64,
        /// The largest value.
        max: u64,
    },
    /// A number.
    Num(Range),
    /// A time in nanoseconds, within a range.
    Time {
        /// The shortest time, in nanoseconds.
        min: u64,
        /// The longest time, in nanoseconds.
        max: u64,
    },
    /// A size in bytes, within a range and a multiple of `step`.
    Size {
        /// The smallest size, in bytes.
        min: u64,
        /// The largest size, in bytes.
        max: u64,
        /// The size of which every value is a multiple, in bytes.
        step: u64,
    },
    /// Joules, watts, farads, volts or ohms, from 0 to 1e6, written with a unit or as a bare number in the SI unit.
    Si(Dimension),
    /// Text.
    Text,
    /// A file name; a relative path starts at the spec's folder.
    Path,
    /// One of these choices, by name, with or without parameters.
    Slot(&'static [Policy]),
    /// One of the choices in a table of the mechanism's module, or a choice from outside.
    Registered(fn() -> &'static [Policy]),
    /// A table with these fields.
    Table(&'static [Param]),
    /// A list of tables with these fields. The number is the largest length of the list.
    List(&'static [Param], usize),
    /// A list of texts. The number is the largest length of the list.
    Texts(usize),
    /// One size, or a table of at most `SIZES_MAX` sizes and their weights.
    Sizes,
    /// One of several kinds: the one that fits the shape of the value.
    Either(&'static [ValueKind]),
}

/// The largest number of entries of a table of sizes.
pub(super) const SIZES_MAX: usize = 4096;

/// A range of numbers.
#[derive(Clone, Copy, Debug)]
pub struct Range {
    /// The lower end.
    pub(super) min: f64,
    /// The upper end.
    pub(super) max: f64,
    /// Whether `min` itself is excluded.
    pub(super) above: bool,
    /// Whether `max` itself is excluded.
    pub(super) below: bool,
}

impl Range {
    /// Whether `x` is in the range.
    pub(super) fn holds(&self, x: f64) -> bool {
        (if self.above { x > self.min } else { x >= self.min })
            && (if self.below { x < self.max } else { x <= self.max })
    }

    /// The range in words, for a message.
    pub(super) fn text(&self) -> String {
        let Self { min, max, above, below } = self;
        match (above, below) {
            (false, false) => format!("from {min} to {max}"),
            (true, false) => format!("above {min} and at most {max}"),
            (false, true) => format!("from {min} and below {max}"),
            (true, true) => format!("above {min} and below {max}"),
        }
    }
}

/// A choice of a slot.
#[derive(Clone, Copy, Debug)]
pub struct Policy {
    /// The name of the choice.
    pub name: &'static str,
    /// The value or parameters that follow the name.
    pub payload: Payload,
    /// A description in one line.
    pub doc: &'static str,
}

/// The value or parameters of a policy, which follow its name.
#[derive(Clone, Copy, Debug)]
pub enum Payload {
    /// Nothing: `victim = "greedy"`.
    None,
    /// Parameters: `victim.random = { k = 8 }`.
    Params(&'static [Param]),
    /// One value: `arrival.queue_depth = 32`.
    Value(&'static ValueKind),
}

/// A field of a table, or a parameter of a policy.
#[derive(Clone, Copy, Debug)]
pub struct Param {
    /// The name of the field or parameter.
    pub name: &'static str,
    /// The kind of values that the field or parameter accepts.
    pub kind: ValueKind,
    /// The default as TOML; empty if the parameter is required.
    pub default: &'static str,
    /// A description in one line.
    pub doc: &'static str,
}

impl ValueKind {
    /// The choices of a slot; `None` for other kinds.
    pub fn policies(&self) -> Option<&'static [Policy]> {
        match self {
            ValueKind::Slot(policies) => Some(policies),
            ValueKind::Registered(policies) => Some(policies()),
            _ => None,
        }
    }

    /// The choices of a slot, or of a slot that is one of several alternatives.
    pub fn slot(&self) -> Option<&'static [Policy]> {
        match self {
            ValueKind::Either(kinds) => kinds.iter().find_map(ValueKind::policies),
            kind => kind.policies(),
        }
    }

    /// Whether the kind is a table with a field of this name.
    pub(super) fn is_table_with(&self, name: &str) -> bool {
        matches!(self, ValueKind::Table(params) if params.iter().any(|param| param.name == name))
    }

    /// The expected value, for a message.
    pub(super) fn wants(&self) -> String {
        match self {
            ValueKind::Bool => "true or false".into(),
            ValueKind::Int { min, max } => format!("a whole number from {min} to {max}"),
            ValueKind::Num(range) => format!("a number {}", range.text()),
            ValueKind::Time { .. } => "a time such as \"50us\"".into(),
            ValueKind::Size { .. } => "a size such as \"4KiB\"".into(),
            ValueKind::Si(d) => format!("{} such as \"{}\"", d.name(), d.example()),
            ValueKind::Text => "text in quotes".into(),
            ValueKind::Path => "a file name in quotes".into(),
            ValueKind::Slot(_) | ValueKind::Registered(_) => {
                format!("one of {}", choices(self.policies().unwrap_or_default()))
            }
            ValueKind::Table(params) => form(params),
            ValueKind::List(params, _) => format!("a list of {}", form(params)),
            ValueKind::Texts(_) => "a list of texts such as [\"NAME\", \"OTHER\"]".into(),
            ValueKind::Sizes => {
                "a size such as \"4KiB\" or a table such as { \"4KiB\" = 0.5, \"16KiB\" = 0.5 }".into()
            }
            ValueKind::Either(kinds) => kinds.iter().map(ValueKind::wants).collect::<Vec<_>>().join(" or "),
        }
    }

    /// A valid value as TOML.
    pub(super) fn example(&self) -> String {
        match self {
            ValueKind::Bool => "true".into(),
            ValueKind::Int { min, .. } => min.to_string(),
            ValueKind::Num(range) if range.above => range.max.min(1.0).to_string(),
            ValueKind::Num(range) => format!("{:?}", range.min),
            ValueKind::Time { .. } => "\"50us\"".into(),
            ValueKind::Size { .. } | ValueKind::Sizes => "\"4KiB\"".into(),
            ValueKind::Si(d) => format!("\"{}\"", d.example()),
            ValueKind::Text => "\"NAME\"".into(),
            ValueKind::Path => "\"FILE\"".into(),
            ValueKind::Slot(_) | ValueKind::Registered(_) => {
                let first = self.policies().and_then(|all| all.first());
                first.map_or(String::new(), |policy| format!("\"{}\"", policy.name))
            }
            ValueKind::Table(params) => form(params),
            ValueKind::List(params, _) => format!("[{}]", form(params)),
            ValueKind::Texts(_) => "[\"NAME\"]".into(),
            ValueKind::Either(kinds) => kinds[0].example(),
        }
    }
}

/// A table with defaults and examples as TOML: `{ lsb = "50us", msb = "50us" }`.
fn form(params: &[Param]) -> String {
    let example = |p: &Param| if p.default.is_empty() { p.kind.example() } else { p.default.to_string() };
    let fields: Vec<String> = params.iter().map(|p| format!("{} = {}", p.name, example(p))).collect();
    format!("{{ {} }}", fields.join(", "))
}

/// The choices as TOML, separated by commas.
pub(super) fn choices(policies: &[Policy]) -> String {
    let text = |p: &Policy| match &p.payload {
        Payload::None => format!("\"{}\"", p.name),
        Payload::Params(params) => format!("{{ {} = {} }}", p.name, form(params)),
        Payload::Value(kind) => format!("{{ {} = {} }}", p.name, kind.example()),
    };
    policies.iter().map(text).collect::<Vec<_>>().join(", ")
}

/// A value that has been read: of the right type, in range, in canonical units.
#[derive(Clone, Debug, PartialEq)]
pub enum Val {
    /// True or false.
    Bool(bool),
    /// A whole number.
    Int(u64),
    /// A finite number.
    Num(f64),
    /// Nanoseconds.
    Time(u64),
    /// Bytes.
    Size(u64),
    /// A quantity in the SI unit of its dimension.
    Si(f64, Dimension),
    /// Text, or the name of a file.
    Text(String),
    /// A policy's name and its payload.
    Tag(&'static str, Option<Box<Val>>),
    /// The fields of a table, each with its name, in the order of their declarations.
    Table(Vec<(&'static str, Val)>),
    /// The items of a list, in the order of the spec.
    List(Vec<Val>),
    /// Sizes in bytes, ascending, and their weights.
    Sizes(Vec<(u64, f64)>),
    /// The parameters of a policy that is not loaded, as TOML and as JSON.
    Unchecked(String, Json),
}

impl Val {
    /// A field of a table.
    pub fn field(&self, name: &str) -> &Val {
        self.get(name).unwrap_or_else(|| panic!("{self:?} has no field {name}"))
    }

    /// A field of a table; `None` if the table has no such field.
    pub fn get(&self, name: &str) -> Option<&Val> {
        match self {
            Val::Table(fields) => fields.iter().find(|(n, _)| *n == name).map(|(_, val)| val),
            _ => None,
        }
    }

    /// A field of a table, converted to `T`.
    pub fn read<T: FromVal>(&self, name: &str) -> T {
        T::from_val(self.field(name))
    }

    /// The items of a list.
    pub fn list(&self) -> &[Val] {
        match self {
            Val::List(items) => items,
            other => panic!("{other:?} is not a list"),
        }
    }

    /// Whether the value is true.
    pub fn bool(&self) -> bool {
        matches!(self, Val::Bool(true))
    }

    /// A whole quantity: a count, a time in nanoseconds or a size in bytes.
    pub fn int(&self) -> u64 {
        match self {
            Val::Int(v) | Val::Time(v) | Val::Size(v) => *v,
            other => panic!("{other:?} is not whole"),
        }
    }

    /// A time.
    pub fn span(&self) -> Span {
        Span::from_ns(self.int())
    }

    /// A number, or a quantity in its SI unit.
    pub fn num(&self) -> f64 {
        match self {
            Val::Num(x) | Val::Si(x, _) => *x,
            other => panic!("{other:?} is not a number"),
        }
    }

    /// The text, or the name of a file.
    pub fn text(&self) -> &str {
        match self {
            Val::Text(text) => text,
            other => panic!("{other:?} is not text"),
        }
    }

    /// The name of the chosen policy; empty for a value that is not a choice.
    pub fn tag(&self) -> &'static str {
        match self {
            Val::Tag(name, _) => name,
            _ => "",
        }
    }

    /// Panics because this value is not a valid `what`.
    ///
    /// # Panics
    /// Always. The reader accepts only valid values, so a call means a bug.
    pub fn is_no(&self, what: &str) -> ! {
        panic!("{self:?} is no {what}")
    }

    /// The value as TOML.
    pub(super) fn toml(&self) -> String {
        match self {
            Val::Bool(b) => b.to_string(),
            Val::Int(i) => i.to_string(),
            Val::Num(x) => format!("{x:?}"),
            Val::Time(ns) => quote(&show_time(*ns)),
            Val::Size(bytes) => quote(&show_size(*bytes)),
            Val::Si(x, dimension) => quote(&show_real(*x, *dimension)),
            Val::Text(text) => quote(text),
            Val::Tag(name, None) => quote(name),
            Val::Tag(name, Some(payload)) => format!("{{ {name} = {} }}", payload.toml()),
            Val::Table(fields) if fields.is_empty() => "{}".into(),
            Val::Table(fields) => {
                let fields: Vec<String> = fields.iter().map(|(n, v)| format!("{n} = {}", v.toml())).collect();
                format!("{{ {} }}", fields.join(", "))
            }
            Val::List(items) => {
                format!("[{}]", items.iter().map(Val::toml).collect::<Vec<_>>().join(", "))
            }
            Val::Unchecked(toml, _) => toml.clone(),
            Val::Sizes(sizes) if sizes.len() == 1 => quote(&show_size(sizes[0].0)),
            Val::Sizes(sizes) => {
                let fields: Vec<String> =
                    sizes.iter().map(|(size, w)| format!("{} = {w:?}", quote(&show_size(*size)))).collect();
                format!("{{ {} }}", fields.join(", "))
            }
        }
    }

    /// The value as JSON, with quantities in base units, so that "1ms" and "1000us" are equal.
    pub(super) fn json(&self) -> Json {
        let object = |fields: Vec<(String, Json)>| Json::Object(fields.into_iter().collect());
        match self {
            Val::Bool(b) => Json::from(*b),
            Val::Int(i) | Val::Time(i) | Val::Size(i) => Json::from(*i),
            Val::Num(x) | Val::Si(x, _) => Json::from(*x),
            Val::Text(text) => Json::from(text.as_str()),
            Val::Tag(name, None) => Json::from(*name),
            Val::Tag(name, Some(payload)) => object(vec![(name.to_string(), payload.json())]),
            Val::Table(fields) => {
                let mut fields: Vec<(String, Json)> =
                    fields.iter().map(|(n, v)| (n.to_string(), v.json())).collect();
                fields.sort_by(|a, b| a.0.cmp(&b.0));
                object(fields)
            }
            Val::List(items) => Json::Array(items.iter().map(Val::json).collect()),
            Val::Unchecked(_, json) => json.clone(),
            Val::Sizes(sizes) => Json::Array(
                sizes.iter().map(|(size, w)| Json::from(vec![Json::from(*size), Json::from(*w)])).collect(),
            ),
        }
    }
}

/// A TOML basic string.
pub(super) fn quote(text: &str) -> String {
    // JSON escapes are TOML escapes; TOML also requires an escape for DEL.
    Json::from(text).to_string().replace('\u{7f}', "\\u007f")
}
