//! Counters, each declared once: type, unit, meaning, how it adds up, and where the results have it.
//!
//! A room declares its counters with `counters!`:
//!
//! ```text
//! counters! {
//!     /// Blocks refreshed.
//!     pub struct RefreshStats {
//!         /// Blocks that were due and held valid data.
//!         pub blocks: u64, sum of blocks, life "refreshed_blocks", smart "RefreshCount";
//!         /// The longest that one was overdue, on the scaled clock.
//!         pub overdue_max_s: u32, max of s;
//!         /// From the beginning of each block's refresh to its end, added up.
//!         pub busy_ns: Span, sum of s, summary "busy_s";
//!     }
//! }
//! ```
//!
//! The declaration gives the struct, what has been counted since an earlier moment ([`CounterSet::since`]), sums
//! ([`CounterSet::add`]), the counters of a section of `summary.json` (`Section`), those of `life.parquet` and `smart.json`, and
//! a list of what there is ([`CounterSet::DECLARED`]). After the type come:
//!
//! | what | means |
//! |---|---|
//! | `sum of UNIT`, `max of UNIT`, `last of UNIT` | how it adds up ([`Adds`]), and its unit in the results: one of [`UNITS`] |
//! | `summary "NAME"` | its name in the summary's section, where that is not the field's; `"a.b"` is b in the section's a |
//! | `mean "NAME"` | the summary has its mean under that name, which the room works out |
//! | `life "NAME"` | its column in `life.parquet` |
//! | `smart "NAME"` | its attribute in the OCP log of `smart.json` |

use super::numbers::number;
use super::units::Span;
use serde_json::{Map, Value};

/// The units that counters have.
pub const UNITS: [&str; 12] =
    ["pages", "requests", "blocks", "writes", "entries", "lines", "tries", "erases", "bytes", "s", "us", "j"];

/// How a counter adds up over stretches of time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Adds {
    /// It counts on: a stretch has the difference of end and beginning.
    Sum,
    /// It is the largest value so far: a stretch has that of the run until its end.
    Max,
    /// It is what holds now: a stretch has what holds at its end.
    Last,
}

/// What is declared of a counter.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Declared {
    /// Its field.
    pub name: &'static str,
    /// Its unit in the results.
    pub unit: &'static str,
    /// What it counts.
    pub doc: &'static str,
    /// How it adds up.
    pub adds: Adds,
    /// Its name in the section of the summary; a point leads into a section of that.
    pub summary: &'static str,
    /// The summary has its mean under that name.
    pub is_mean: bool,
    /// Its column in `life.parquet`.
    pub life: Option<&'static str>,
    /// Its attribute in `smart.json`.
    pub smart: Option<&'static str>,
}

impl Declared {
    /// A counter that the summary has under its field's name.
    pub const fn new(name: &'static str, doc: &'static str, adds: Adds, unit: &'static str) -> Self {
        let doc = doc.trim_ascii();
        Self { name, unit, doc, adds, summary: name, is_mean: false, life: None, smart: None }
    }

    /// The same with another name in the summary.
    pub const fn summary(self, summary: &'static str) -> Self {
        Self { summary, ..self }
    }

    /// The same with its mean in the summary.
    pub const fn mean(self, summary: &'static str) -> Self {
        Self { summary, is_mean: true, ..self }
    }

    /// The same with a column in `life.parquet`.
    pub const fn life(self, column: &'static str) -> Self {
        Self { life: Some(column), ..self }
    }

    /// The same with an attribute in `smart.json`.
    pub const fn smart(self, attribute: &'static str) -> Self {
        Self { smart: Some(attribute), ..self }
    }
}

/// What a counter can be: a number, a time, or an array of them.
pub trait Count {
    /// What was counted between `then` and now.
    fn since(&self, then: &Self, adds: Adds) -> Self
    where
        Self: Sized;

    /// Adds what was counted later.
    fn add(&mut self, later: &Self, adds: Adds)
    where
        Self: Sized;

    /// Its value in JSON: times in seconds, energies and times rounded.
    fn json(&self) -> Value;

    /// Its value as a number, an array's as its sum.
    fn number(&self) -> f64;
}

/// Counts that the operators work with.
macro_rules! counts {
    ($($type:ty: |$value:ident| $json:expr, $number:expr;)*) => {$(
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
        }
    )*};
}

counts! {
    u32: |count| count.into(), count.into();
    u64: |count| count.into(), count as f64;
    f64: |value| number(value), value;
    Span: |span| number(span.seconds()), span.seconds();
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
}

/// The counters of a room, as `counters!` declares them.
pub trait CounterSet {
    /// What is declared of each, in the order of the summary.
    const DECLARED: &'static [Declared];

    /// The counters in that order.
    fn counts(&self) -> Vec<&dyn Count>;

    /// What was counted between `then` and now.
    #[must_use]
    fn since(&self, then: &Self) -> Self;

    /// Adds what was counted later.
    fn add(&mut self, later: &Self);

    /// Each counter with what is declared of it.
    fn declared(&self) -> impl Iterator<Item = (&'static Declared, &dyn Count)> {
        Self::DECLARED.iter().zip(self.counts())
    }

    /// The columns in `life.parquet`.
    fn life(&self) -> Vec<(&'static str, f64)> {
        self.declared().filter_map(|(declared, count)| Some((declared.life?, count.number()))).collect()
    }

    /// The attributes in `smart.json`.
    fn smart(&self) -> Vec<(&'static str, Value)> {
        self.declared().filter_map(|(declared, count)| Some((declared.smart?, count.json()))).collect()
    }
}

/// Declares the counters of a room; see [`crate::base::counters`].
macro_rules! counters {
    (
        $(#[$meta:meta])*
        $scope:vis struct $name:ident {$(
            $(#[doc = $doc:literal])+
            pub $field:ident: $type:ty, $adds:ident of $unit:ident $(, $place:ident $path:literal)*;
        )+}
    ) => {
        $(#[$meta])*
        #[derive(Clone, Debug, Default, PartialEq)]
        $scope struct $name {$(
            $(#[doc = $doc])+
            pub $field: $type,
        )+}

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

pub(crate) use counters;

/// A section of a result, in the order in which it is put together.
///
/// Where a name has points, `a.b` is b in the section's own section a.
#[derive(Debug, Default)]
pub(crate) struct Section(Map<String, Value>);

impl Section {
    /// The counters of a room; those that the summary has the mean of are left to the room.
    pub(crate) fn of(counters: &impl CounterSet) -> Self {
        let mut section = Self::default();
        section.put_all(counters);
        section
    }

    /// Puts the counters of a room behind what there is.
    pub(crate) fn put_all(&mut self, counters: &impl CounterSet) {
        for (declared, count) in counters.declared().filter(|(declared, _)| !declared.is_mean) {
            self.put(declared.summary, count.json());
        }
    }

    /// Puts a value behind what there is; in the place of the value of that name, if there is one.
    pub(crate) fn put(&mut self, name: &str, value: impl Into<Value>) {
        let (object, name) = self.object(name);
        object.insert(name.to_owned(), value.into());
    }

    /// Puts a value before one that is there, in the same section as that.
    pub(crate) fn put_before(&mut self, other: &str, name: &str, value: impl Into<Value>) {
        let (object, other) = self.object(other);
        let at = object.keys().position(|key| key == other).expect("the other value is there");
        object.shift_insert(at, name.to_owned(), value.into());
    }

    /// The object that a name is in, and its last part.
    fn object<'a>(&mut self, path: &'a str) -> (&mut Map<String, Value>, &'a str) {
        let (mut object, mut path) = (&mut self.0, path);
        while let Some((section, rest)) = path.split_once('.') {
            let inner = object.entry(section).or_insert_with(|| Map::new().into());
            (object, path) = (inner.as_object_mut().expect("it is a section"), rest);
        }
        (object, path)
    }
}

impl From<Section> for Value {
    fn from(section: Section) -> Self {
        section.0.into()
    }
}

/// Counts by number: the first is that of 1.
pub(crate) fn by_number(counts: &[u64]) -> Value {
    Value::Object(
        (1..).zip(counts).map(|(number, &count): (u32, _)| (number.to_string(), count.into())).collect(),
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::base::units::MS;
    use serde_json::json;

    counters! {
        /// Of each kind one.
        struct Reads {
            /// Pages that were
            /// read.
            pub reads: u64, sum of pages, summary "read.pages", life "pages_read", smart "Reads";
            /// The most of them at a time.
            pub reads_max: u32, max of pages, summary "read.most";
            /// Requests that wait now.
            pub waiting: u32, last of requests;
            /// How long reads took.
            pub read_ns: Span, sum of us, mean "read_us";
            /// How long writes took.
            pub write_ns: Span, sum of s, summary "write_s";
            /// What they took.
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
    fn a_stretch_is_what_has_been_counted_in_it() {
        let since = some(3).since(&some(2));
        assert_eq!(since, Reads { reads_max: 3, waiting: 4, ..some(1) });
        let mut sum = some(2);
        sum.add(&since);
        assert_eq!(sum, some(3));
        sum.add(&Reads { reads_max: 1, ..Reads::default() });
        assert_eq!((sum.reads_max, sum.waiting), (3, 0), "the largest stays, the last does not");
    }

    #[test]
    fn the_results_have_a_counter_where_it_is_declared() {
        let mut section = Section::of(&some(2));
        section.put("read.least", 1);
        section.put_before("read.most", "state", "idle");
        section.put_before("waiting", "sum", 8);
        section.put("levels", by_number(&some(2).levels));
        let expected = json!({
            "read": { "pages": 20, "state": "idle", "most": 2, "least": 1 },
            "sum": 8,
            "waiting": 5,
            "write_s": 0.002,
            "energy_j": 1.0,
            "levels": { "1": 2, "2": 0, "3": 4 },
        });
        assert_eq!(Value::from(section).to_string(), expected.to_string(), "in this order");
        assert_eq!(some(2).life(), [("pages_read", 20.0)]);
        assert_eq!(some(2).smart(), [("Reads", json!(20))]);
        assert_eq!((Reads::DECLARED[0].doc, Reads::DECLARED[0].unit), ("Pages that were read.", "pages"));
        assert_eq!(some(1).counts()[6].json(), json!([1, 0, 2]));
    }
}
