//! Counters. A single declaration gives a counter's type, unit of measurement and meaning, how it adds up over time,
//! and its places in the results.
//!
//! A room declares its counters with `counters!`:
//!
//! ```text
//! counters! {
//!     /// Superblocks refreshed.
//!     pub struct RefreshStats {
//!         /// Superblocks that were due and held valid data.
//!         pub blocks: u64, sum of blocks, life "refreshed_blocks", smart "RefreshCount";
//!         /// Longest time for which a superblock was overdue, on the scaled clock.
//!         pub overdue_max_s: u32, max of s;
//!         /// Sum of the durations of all refreshes of superblocks.
//!         pub busy_ns: Span, sum of s, summary "busy_s";
//!     }
//! }
//! ```
//!
//! The macro declares the struct and implements [`CounterSet`] for it: the list of the declarations
//! ([`CounterSet::DECLARED`]), the difference from an earlier time ([`CounterSet::since`]), sums ([`CounterSet::add`]),
//! and the counters as a section of `summary.json`, as columns of `life.parquet` and as attributes of `smart.json`. The
//! struct serializes as its section of `summary.json` and has the section's JSON Schema. [`super::section::Section`]
//! adds the values of the section that are not counters. After a counter's type come:
//!
//! | declaration | meaning |
//! |---|---|
//! | `sum of UNIT`, `max of UNIT`, `last of UNIT` | how the counter adds up ([`Adds`]), and its unit in the results: one of [`UNITS`] |
//! | `summary "NAME"` | the counter's name in the section of the summary, if not the field's name; `"a.b"` is b in the group a |
//! | `reshaped "NAME"` | the section has the counter as NAME in another form (its mean, its counts by number), a value that the room declares in the section |
//! | `life "NAME"` | the counter's column in `life.parquet` |
//! | `smart "NAME"` | the counter's attribute in the OCP log of `smart.json` |

use super::numbers::number;
use super::units::Span;
use serde_json::{Map, Value, json};

/// The units of measurement of counters in the results.
pub const UNITS: [&str; 14] = [
    "pages",
    "units",
    "requests",
    "blocks",
    "writes",
    "entries",
    "lines",
    "tries",
    "erases",
    "suspensions",
    "bytes",
    "s",
    "us",
    "j",
];

/// How a counter adds up over stretches of time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Adds {
    /// A running count. Its value in a stretch is the difference between the end and the beginning of the stretch.
    Sum,
    /// The largest value so far. Its value in a stretch is the largest value of the run until the end of the stretch.
    Max,
    /// The current value. Its value in a stretch is the value at the end of the stretch.
    Last,
}

/// The declaration of a counter.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Declared {
    /// Name of the counter's field.
    pub name: &'static str,
    /// Unit of measurement of the counter in the results.
    pub unit: &'static str,
    /// What the counter counts or measures.
    pub doc: &'static str,
    /// How the counter adds up.
    pub adds: Adds,
    /// Name of the counter in the section of the summary; `a.b` is b in the group a.
    pub summary: &'static str,
    /// The room writes the counter into the summary in another form.
    pub is_reshaped: bool,
    /// Column of the counter in `life.parquet`.
    pub life: Option<&'static str>,
    /// Attribute of the counter in `smart.json`.
    pub smart: Option<&'static str>,
}

impl Declared {
    /// Declares a counter whose name in the summary is the name of its field.
    pub const fn new(name: &'static str, doc: &'static str, adds: Adds, unit: &'static str) -> Self {
        let doc = doc.trim_ascii();
        Self { name, unit, doc, adds, summary: name, is_reshaped: false, life: None, smart: None }
    }

    /// Gives the counter another name in the summary.
    pub const fn summary(self, summary: &'static str) -> Self {
        Self { summary, ..self }
    }

    /// States that the summary has the counter in another form, under the name `summary`.
    pub const fn reshaped(self, summary: &'static str) -> Self {
        Self { summary, is_reshaped: true, ..self }
    }

    /// Gives the counter a column in `life.parquet`.
    pub const fn life(self, column: &'static str) -> Self {
        Self { life: Some(column), ..self }
    }

    /// Gives the counter an attribute in `smart.json`.
    pub const fn smart(self, attribute: &'static str) -> Self {
        Self { smart: Some(attribute), ..self }
    }
}

/// The type of a counter: a number, a span of time, or an array of either.
pub trait Count {
    /// The counts of the stretch from `then` until now.
    fn since(&self, then: &Self, adds: Adds) -> Self
    where
        Self: Sized;

    /// Adds the counts of the stretch that follows.
    fn add(&mut self, later: &Self, adds: Adds)
    where
        Self: Sized;

    /// The value in JSON. Spans of time are in seconds. Spans of time and `f64` values are rounded.
    fn json(&self) -> Value;

    /// The value as a number: for a span of time its seconds, for an array the sum.
    fn number(&self) -> f64;

    /// The type of [`Count::json`] in JSON Schema.
    fn schema_type(&self) -> &'static str;
}

/// Implements [`Count`] for types with `+`, `-` and comparison.
macro_rules! counts {
    ($($type:ty: $schema:literal, |$value:ident| $json:expr, $number:expr;)*) => {$(
        impl Count for $type {
            fn since(&self, then: &Self, adds: Adds) -> Self {
                match adds {
                    Adds::Sum => *self - *then,
                    Adds::Max | Adds::Last => *self,
                }
            }

            fn add(&mut self, later: &Self, adds: Adds) {
                match adds {
                    Adds::Sum => *self += *later,
                    Adds::Max if *later <= *self => {}
                    Adds::Max | Adds::Last => *self = *later,
                }
            }

            fn json(&self) -> Value {
                let $value = *self;
                $json
            }

            fn number(&self) -> f64 {
                let $value = *self;
                $number
            }

            fn schema_type(&self) -> &'static str {
                $schema
            }
        }
    )*};
}

counts! {
    u32: "integer", |count| count.into(), count.into();
    u64: "integer", |count| count.into(), count as f64;
    f64: "number", |value| number(value).into(), value;
    Span: "number", |span| number(span.seconds()).into(), span.seconds();
}

impl<C: Count, const N: usize> Count for [C; N] {
    fn since(&self, then: &Self, adds: Adds) -> Self {
        std::array::from_fn(|at| self[at].since(&then[at], adds))
    }

    fn add(&mut self, later: &Self, adds: Adds) {
        for (mine, later) in self.iter_mut().zip(later) {
            mine.add(later, adds);
        }
    }

    fn json(&self) -> Value {
        self.iter().map(Count::json).collect()
    }

    fn number(&self) -> f64 {
        self.iter().map(Count::number).sum()
    }

    fn schema_type(&self) -> &'static str {
        "array"
    }
}

/// The counters of a room, as `counters!` declares them.
pub trait CounterSet: Default {
    /// The declarations of all counters, in the order of the summary.
    const DECLARED: &'static [Declared];

    /// The values of all counters, in the order of the declarations.
    fn counts(&self) -> Vec<&dyn Count>;

    /// The counts of the stretch from `then` until now.
    #[must_use]
    fn since(&self, then: &Self) -> Self;

    /// Adds the counts of the stretch that follows.
    fn add(&mut self, later: &Self);

    /// Each counter's declaration and value.
    fn declared(&self) -> impl Iterator<Item = (&'static Declared, &dyn Count)> {
        Self::DECLARED.iter().zip(self.counts())
    }

    /// The counters in the form of their section of the summary; a counter `a.b` is b in the group a.
    fn section(&self) -> Map<String, Value> {
        let mut section = Map::new();
        for (declared, count) in self.in_summary() {
            let (mut object, mut path) = (&mut section, declared.summary);
            while let Some((group, rest)) = path.split_once('.') {
                let group = object.entry(group).or_insert_with(|| Map::new().into());
                (object, path) = (group.as_object_mut().expect("the entry is a group"), rest);
            }
            object.insert(path.to_owned(), count.json());
        }
        section
    }

    /// The JSON Schema of [`CounterSet::section`].
    fn schema() -> Map<String, Value> {
        fn declare(schema: &mut Map<String, Value>, path: &str, leaf: Value) {
            if schema.is_empty() {
                let Value::Object(empty) = json!({ "type": "object", "properties": {}, "required": [] })
                else {
                    unreachable!()
                };
                *schema = empty;
            }
            let (name, inner) =
                path.split_once('.').map_or((path, None), |(name, inner)| (name, Some(inner)));
            let properties = schema["properties"].as_object_mut().expect("the schema has properties");
            let is_new = !properties.contains_key(name);
            let entry = properties.entry(name).or_insert_with(|| Map::new().into());
            match inner {
                Some(inner) => declare(entry.as_object_mut().expect("the entry is a group"), inner, leaf),
                None => *entry = leaf,
            }
            if is_new {
                schema["required"].as_array_mut().expect("`required` is a list").push(name.into());
            }
        }
        let mut schema = Map::new();
        for (declared, count) in Self::default().in_summary() {
            let leaf =
                json!({ "description": declared.doc, "type": count.schema_type(), "unit": declared.unit });
            declare(&mut schema, declared.summary, leaf);
        }
        schema
    }

    /// The counters that the summary has unchanged, not in another form.
    fn in_summary(&self) -> impl Iterator<Item = (&'static Declared, &dyn Count)> {
        self.declared().filter(|(declared, _)| !declared.is_reshaped)
    }

    /// The counters' columns in `life.parquet`, with their values.
    fn life(&self) -> Vec<(&'static str, f64)> {
        self.declared().filter_map(|(declared, count)| Some((declared.life?, count.number()))).collect()
    }

    /// The counters' attributes in `smart.json`, with their values.
    fn smart(&self) -> Vec<(&'static str, Value)> {
        self.declared().filter_map(|(declared, count)| Some((declared.smart?, count.json()))).collect()
    }
}

/// Declares the counters of a room; see [`crate::base::counters`].
#[macro_export]
macro_rules! counters {
    (
        $(#[doc = $about:literal])+
        $scope:vis struct $name:ident {$(
            $(#[doc = $doc:literal])+
            pub $field:ident: $type:ty, $adds:ident of $unit:ident $(, $place:ident $path:literal)*;
        )+}
    ) => {
        $(#[doc = $about])+
        #[derive(Clone, Debug, Default, PartialEq)]
        $scope struct $name {$(
            $(#[doc = $doc])+
            pub $field: $type,
        )+}

        impl ::serde::Serialize for $name {
            fn serialize<S: ::serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
                ::serde::Serialize::serialize(&$crate::base::counters::CounterSet::section(self), serializer)
            }
        }

        impl ::schemars::JsonSchema for $name {
            fn schema_name() -> ::std::borrow::Cow<'static, str> {
                stringify!($name).into()
            }

            fn json_schema(_: &mut ::schemars::SchemaGenerator) -> ::schemars::Schema {
                let mut schema = <Self as $crate::base::counters::CounterSet>::schema();
                schema.insert("description".to_owned(), concat!($($about),+).trim_ascii().into());
                schema.into()
            }
        }

        $crate::value! { $name { $($field),+ } }

        impl $crate::base::counters::CounterSet for $name {
            const DECLARED: &'static [$crate::base::counters::Declared] = &[$(
                $crate::base::counters::Declared::new(
                    stringify!($field),
                    concat!($($doc),+),
                    $crate::base::counters::counters!(@$adds),
                    stringify!($unit),
                )$(.$place($path))*
            ),+];

            fn counts(&self) -> Vec<&dyn $crate::base::counters::Count> {
                vec![$(&self.$field),+]
            }

            fn since(&self, then: &Self) -> Self {
                use $crate::base::counters::Count;
                Self {$(
                    $field: Count::since(&self.$field, &then.$field, $crate::base::counters::counters!(@$adds)),
                )+}
            }

            fn add(&mut self, later: &Self) {
                use $crate::base::counters::Count;
                $(Count::add(&mut self.$field, &later.$field, $crate::base::counters::counters!(@$adds));)+
            }
        }
    };
    (@sum) => { $crate::base::counters::Adds::Sum };
    (@max) => { $crate::base::counters::Adds::Max };
    (@last) => { $crate::base::counters::Adds::Last };
}

pub use crate::counters;

#[cfg(test)]
mod tests {
    use super::*;
    use crate::base::units::MS;
    use serde_json::json;

    counters! {
        /// One counter of each kind.
        struct Reads {
            /// Pages that were
            /// read.
            pub reads: u64, sum of pages, summary "read.pages", life "pages_read", smart "Reads";
            /// Most pages read at a time.
            pub reads_max: u32, max of pages, summary "read.most";
            /// Requests that wait now.
            pub waiting: u32, last of requests;
            /// Duration of all reads.
            pub read_ns: Span, sum of us, reshaped "read_us";
            /// Duration of all writes.
            pub write_ns: Span, sum of s, summary "write_s";
            /// Energy of all reads and writes.
            pub energy_j: f64, sum of j;
            /// Blocks, by level.
            pub levels: [u64; 3], sum of blocks;
        }
    }

    fn some(by: u64) -> Reads {
        let small = by as u32;
        Reads {
            reads: 10 * by,
            reads_max: small,
            waiting: 7 - small,
            read_ns: by * MS,
            write_ns: by * MS,
            energy_j: 0.5 * by as f64,
            levels: [by, 0, 2 * by],
        }
    }

    #[test]
    fn since_and_add_treat_sums_maxima_and_last_values_differently() {
        let since = some(3).since(&some(2));
        assert_eq!(since, Reads { reads_max: 3, waiting: 4, ..some(1) });
        let mut sum = some(2);
        sum.add(&since);
        assert_eq!(sum, some(3));
        sum.add(&Reads { reads_max: 1, ..Reads::default() });
        assert_eq!(
            (sum.reads_max, sum.waiting),
            (3, 0),
            "a `max` counter keeps the larger value, a `last` counter takes the later value"
        );
    }

    #[test]
    fn a_counter_is_in_the_results_at_its_declared_places() {
        let expected = json!({
            "read": { "pages": 20, "most": 2 },
            "waiting": 5,
            "write_s": 0.002,
            "energy_j": 1.0,
            "levels": [2, 0, 4],
        });
        assert_eq!(Value::from(some(2).section()).to_string(), expected.to_string(), "values or their order");
        let schema = Value::from(Reads::schema());
        let most = json!({ "description": "Most pages read at a time.", "type": "integer", "unit": "pages" });
        assert_eq!(schema["properties"]["read"]["properties"]["most"], most);
        assert_eq!(schema["required"], json!(["read", "waiting", "write_s", "energy_j", "levels"]));
        assert_eq!(some(2).life(), [("pages_read", 20.0)]);
        assert_eq!(some(2).smart(), [("Reads", json!(20))]);
        assert_eq!((Reads::DECLARED[0].doc, Reads::DECLARED[0].unit), ("Pages that were read.", "pages"));
    }
}
