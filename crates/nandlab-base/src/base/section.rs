//! A section of a result: the counters of a room, and other values.
//!
//! One function joins counters and values, both in the data that serde writes and in the schema that schemars
//! generates. So the schema describes exactly the data that are written.

use super::counters::CounterSet;
use schemars::{JsonSchema, Schema, SchemaGenerator};
use serde::{Serialize, Serializer, ser::Error};
use serde_json::{Map, Value};
use std::borrow::Cow;
use std::collections::BTreeMap;

/// The values of a section that are not counters.
///
/// A field with the name of a group of counters is a struct, whose fields are added to the group. If the field is null,
/// the whole group is null.
pub trait Beside: Serialize + JsonSchema {
    /// The places of the values that are not at the end of the section or group.
    const BEFORE: Before;
}

/// Places of values: the path of a counter, and the names of the values that precede the counter.
pub type Before = &'static [(&'static str, &'static [&'static str])];

/// A section of a result, which is written as one object.
#[derive(Clone, Debug, PartialEq)]
pub struct Section<C, V> {
    /// The counters of a room.
    pub counters: C,
    /// The values that are not counters.
    pub values: V,
}

impl<C: CounterSet, V: Beside> Serialize for Section<C, V> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let values = serde_json::to_value(&self.values).map_err(S::Error::custom)?;
        let mut section = Value::Object(self.counters.section());
        join_values(&mut section, values, V::BEFORE, "");
        section.serialize(serializer)
    }
}

impl<C: CounterSet, V: Beside> JsonSchema for Section<C, V> {
    fn schema_name() -> Cow<'static, str> {
        V::schema_name()
    }

    fn json_schema(generator: &mut SchemaGenerator) -> Schema {
        let mut schema = V::json_schema(generator);
        join_schemas(generator, schema.ensure_object(), C::schema(), V::BEFORE, "");
        schema
    }
}

/// Inserts the values `beside` into `entries`, at the places that `before` gives. If an entry with a value's name
/// exists already, calls `meet` with the entry, the value and the path of the entry, which ends with a point.
fn join(
    entries: &mut Map<String, Value>,
    beside: Map<String, Value>,
    before: Before,
    path: &str,
    meet: &mut dyn FnMut(&mut Value, Value, &str),
) {
    for (name, value) in beside {
        if let Some(entry) = entries.get_mut(&name) {
            meet(entry, value, &format!("{path}{name}."));
            continue;
        }
        let is_after = |key: &String| {
            let key = format!("{path}{key}");
            before.iter().any(|(counter, values)| *counter == key && values.contains(&name.as_str()))
        };
        let at = entries.keys().position(is_after).unwrap_or(entries.len());
        entries.shift_insert(at, name, value);
    }
}

fn join_values(section: &mut Value, values: Value, before: Before, path: &str) {
    match (section, values) {
        (Value::Object(section), Value::Object(values)) => {
            join(section, values, before, path, &mut |group, values, path| {
                join_values(group, values, before, path);
            });
        }
        (section, values) => *section = values,
    }
}

/// Turns `schema`, the schema of the values, into the schema of the section by inserting the counters.
fn join_schemas(
    generator: &mut SchemaGenerator,
    schema: &mut Map<String, Value>,
    mut counters: Map<String, Value>,
    before: Before,
    path: &str,
) {
    let Some(Value::Object(mut properties)) = counters.remove("properties") else { return };
    let Some(Value::Object(values)) = schema.remove("properties") else { return };
    // A value that may be absent is not required.
    let always = schema.remove("required").and_then(|names| names.as_array().cloned()).unwrap_or_default();
    let is_optional = |name: &String| !always.iter().any(|always| always == name.as_str());
    let optional: Vec<String> = values.keys().filter(|name| is_optional(name)).cloned().collect();
    join(&mut properties, values, before, path, &mut |group, value, path| {
        let name = definition(&value).expect("a struct is joined to a group of counters").to_owned();
        let mut joined = generator.definitions_mut().remove(&name).expect("the struct has been described");
        let (joined_object, Value::Object(group_object)) =
            (joined.as_object_mut().expect("the definition is a struct"), std::mem::replace(group, value))
        else {
            unreachable!("a group is a struct")
        };
        join_schemas(generator, joined_object, group_object, before, path);
        generator.definitions_mut().insert(name, joined);
    });
    let required = properties.keys().filter(|name| !optional.contains(name)).cloned();
    let required = required.map(Value::String).collect();
    schema.insert("properties".to_owned(), properties.into());
    schema.insert("required".to_owned(), Value::Array(required));
}

/// The name of the definition to which a schema refers. The schema may allow null as an alternative.
fn definition(schema: &Value) -> Option<&str> {
    let either = schema.get("anyOf").and_then(Value::as_array);
    let reference = either.map_or(Some(schema), |either| either.first())?.get("$ref")?;
    reference.as_str()?.rsplit('/').next()
}

/// Counts by number: the keys are the numbers 1, 2, 3, ...
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct ByNumber(BTreeMap<u32, u64>);

impl ByNumber {
    /// The counts of the numbers 1, 2, 3, ..., in this order.
    pub fn new(counts: &[u64]) -> Self {
        Self((1..).zip(counts.iter().copied()).collect())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::base::counters::counters;
    use serde_json::json;

    counters! {
        /// Pages.
        struct Pages {
            /// Pages read.
            pub reads: u64, sum of pages, summary "read.pages";
            /// Most pages read at a time.
            pub reads_max: u32, max of pages, summary "read.most";
            /// Pages that wait.
            pub waiting: u32, last of pages;
            /// Pages, by level.
            pub levels: [u64; 2], sum of pages, reshaped "levels";
        }
    }

    /// Reads.
    #[derive(Serialize, JsonSchema)]
    struct Reads {
        /// What the drive is doing.
        state: &'static str,
        /// Fewest pages read at a time.
        least: u32,
    }

    /// A section.
    #[derive(Serialize, JsonSchema)]
    struct Values {
        /// Pages, by level.
        levels: ByNumber,
        /// Reads.
        read: Option<Reads>,
        /// All pages.
        sum: u32,
        /// Spare pages; absent without any.
        #[serde(skip_serializing_if = "Option::is_none")]
        spare: Option<u32>,
    }

    impl Beside for Values {
        const BEFORE: Before = &[("read.most", &["state"]), ("waiting", &["sum"])];
    }

    fn section(read: Option<Reads>) -> Value {
        let counters = Pages { reads: 20, reads_max: 2, waiting: 5, levels: [1, 4] };
        let values = Values { levels: ByNumber::new(&counters.levels), read, sum: 8, spare: None };
        serde_json::to_value(Section { counters, values }).unwrap()
    }

    #[test]
    fn values_are_inserted_before_the_declared_counters_or_at_the_end() {
        let expected = json!({
            "read": { "pages": 20, "state": "idle", "most": 2, "least": 1 },
            "sum": 8,
            "waiting": 5,
            "levels": { "1": 1, "2": 4 },
        });
        let read = Some(Reads { state: "idle", least: 1 });
        assert_eq!(section(read).to_string(), expected.to_string(), "values or their order");
        assert_eq!(section(None)["read"], Value::Null);
    }

    #[test]
    fn the_schema_has_the_same_keys_in_the_same_order() {
        let settings = schemars::generate::SchemaSettings::draft2020_12().for_serialize();
        let schema = settings.into_generator().into_root_schema_for::<Section<Pages, Values>>().to_value();
        let keys = |schema: &Value| -> Vec<String> {
            schema["properties"].as_object().unwrap().keys().cloned().collect()
        };
        assert_eq!(keys(&schema), ["read", "sum", "waiting", "levels", "spare"]);
        assert_eq!(schema["required"], json!(["read", "sum", "waiting", "levels"]));
        assert_eq!(keys(&schema["$defs"]["Reads"]), ["pages", "state", "most", "least"]);
        let waiting = json!({ "description": "Pages that wait.", "type": "integer", "unit": "pages" });
        assert_eq!(schema["properties"]["waiting"], waiting);
    }
}
