//! The JSON Schema of the spec, for editors, generated from the table of keys that the parser uses.

use super::key::{Key, Table};
use super::kind::{Param, Payload, Policy, SIZES_MAX, ValueKind};
use super::node::parse_value;
use super::quantity::Dimension;
use serde_json::{Map, Value as Json, json};

/// The JSON Schema (draft 2020-12) of a spec file.
pub fn schema(table: &Table) -> Json {
    let mut properties = Map::new();
    for section in table.sections() {
        let keys: Map<String, Json> =
            table.of_section(section).map(|key| (key.name().to_string(), of_key(table, key))).collect();
        if section.is_empty() {
            properties.extend(keys);
        } else {
            let object = json!({ "type": "object", "additionalProperties": false, "properties": keys });
            properties.insert(section.to_string(), object);
        }
    }
    json!({
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": "nandlab spec",
        "type": "object",
        "additionalProperties": false,
        "properties": properties,
    })
}

fn of_key(table: &Table, key: &Key) -> Json {
    let mut schema = of_kind(&key.kind);
    if key.path == table.preset {
        schema = json!({ "enum": table.presets.iter().map(|p| p.name).collect::<Vec<_>>() });
    }
    let note = if key.note.is_empty() { String::new() } else { format!(" ({})", key.note) };
    schema["description"] = Json::from(format!("{}{note}", key.doc));
    if let Some(node) = parse_value(key.default) {
        schema["default"] = node.json();
    }
    schema
}

fn of_kind(kind: &ValueKind) -> Json {
    match kind {
        ValueKind::Bool => json!({ "type": "boolean" }),
        ValueKind::Int { min, max } => json!({ "type": "integer", "minimum": min, "maximum": max }),
        ValueKind::Num(range) => {
            let low = if range.above { "exclusiveMinimum" } else { "minimum" };
            let high = if range.below { "exclusiveMaximum" } else { "maximum" };
            json!({ "type": "number", low: range.min, high: range.max })
        }
        ValueKind::Time { .. } => quantity(Dimension::Time),
        ValueKind::Size { .. } => quantity(Dimension::Size),
        ValueKind::Si(dimension) => {
            json!({ "anyOf": [quantity(*dimension), { "type": "number", "minimum": 0 }] })
        }
        ValueKind::Text | ValueKind::Path => json!({ "type": "string", "minLength": 1 }),
        ValueKind::Slot(_) | ValueKind::Registered(_) => {
            let policies = kind.policies().unwrap_or_default();
            let choices: Vec<Json> = policies.iter().flat_map(of_policy).collect();
            json!({ "anyOf": choices })
        }
        ValueKind::Table(params) => of_params(params),
        ValueKind::List(params, most) => {
            json!({ "type": "array", "minItems": 1, "maxItems": most, "items": of_params(params) })
        }
        ValueKind::Texts(most) => {
            json!({ "type": "array", "minItems": 1, "maxItems": most, "items": of_kind(&ValueKind::Text) })
        }
        ValueKind::Sizes => json!({ "anyOf": [quantity(Dimension::Size), {
            "type": "object",
            "minProperties": 1,
            "maxProperties": SIZES_MAX,
            "propertyNames": { "pattern": Dimension::Size.pattern() },
            "additionalProperties": { "type": "number", "exclusiveMinimum": 0 },
        }] }),
        ValueKind::Either(kinds) => {
            json!({ "anyOf": kinds.iter().map(of_kind).collect::<Vec<_>>() })
        }
    }
}

fn quantity(dimension: Dimension) -> Json {
    json!({ "type": "string", "pattern": dimension.pattern() })
}

/// The forms of a policy: the name alone, if no value is required, and the name with its payload, if the policy has one.
fn of_policy(policy: &Policy) -> Vec<Json> {
    let bare = json!({ "const": policy.name, "description": policy.doc });
    let tagged = |payload: Json| {
        json!({
            "type": "object",
            "description": policy.doc,
            "additionalProperties": false,
            "required": [policy.name],
            "properties": { policy.name: payload },
        })
    };
    match &policy.payload {
        Payload::None => vec![bare],
        Payload::Value(kind) => vec![tagged(of_kind(kind))],
        Payload::Params(params) if params.iter().all(|p| !p.default.is_empty()) => {
            vec![bare, tagged(of_params(params))]
        }
        Payload::Params(params) => vec![tagged(of_params(params))],
    }
}

fn of_params(params: &[Param]) -> Json {
    let required: Vec<&str> = params.iter().filter(|p| p.default.is_empty()).map(|p| p.name).collect();
    let mut properties = Map::new();
    for param in params {
        let mut schema = of_kind(&param.kind);
        schema["description"] = Json::from(param.doc);
        if let Some(node) = parse_value(param.default) {
            schema["default"] = node.json();
        }
        properties.insert(param.name.to_string(), schema);
    }
    json!({ "type": "object", "additionalProperties": false, "required": required, "properties": properties })
}

/// A choice of a policy slot.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PolicyRow {
    /// The key of the slot; for a slot that is a parameter of a policy, `section.name.policy.parameter`.
    pub slot: String,
    /// The choice's name.
    pub name: &'static str,
    /// A description in one line.
    pub description: &'static str,
}

/// The choices of all policy slots, without slots that have a single choice.
pub fn policies(table: &Table) -> Vec<PolicyRow> {
    let mut rows = Vec::new();
    for key in table.keys().filter(|key| !table.without_policies.contains(&key.section())) {
        slot_rows(&mut rows, key.path, &key.kind);
    }
    rows
}

fn slot_rows(rows: &mut Vec<PolicyRow>, slot: &str, kind: &ValueKind) {
    let policies = kind.slot().unwrap_or_default();
    if policies.len() < 2 {
        return;
    }
    rows.extend(policies.iter().map(|policy| PolicyRow {
        slot: slot.to_string(),
        name: policy.name,
        description: policy.doc,
    }));
    for policy in policies {
        if let Payload::Params(params) = &policy.payload {
            for param in params.iter() {
                slot_rows(rows, &format!("{slot}.{}.{}", policy.name, param.name), &param.kind);
            }
        }
    }
}
