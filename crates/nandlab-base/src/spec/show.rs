//! A resolved spec as text: for people (`to_toml`), and for its identity (`canonical_json`, `hash`).

use super::key::{Key, Table, When};
use super::kind::Val;
use super::outside::Named;
use super::resolve::{Resolved, any_of};
use serde_json::{Map, Value as Json, json};
use std::collections::BTreeMap;
use std::fmt::Write;

/// The spec as TOML: every key with its value, its description and the origin of the value. A key without a value is a
/// comment.
pub fn to_toml(table: &Table, r: &Resolved) -> String {
    let mut text = String::from(
        "# The resolved spec: every key with its value, its description and, in parentheses, the origin of the value.\n",
    );
    if !r.presets.is_empty() {
        let _ = writeln!(text, "# Built on preset {}.", r.presets.join(", then "));
    }
    for section in table.sections() {
        if !section.is_empty() {
            let _ = writeln!(text, "\n[{section}]");
        }
        for key in table.of_section(section).filter(|key| key.path != table.preset) {
            line(&mut text, key, r);
        }
    }
    text
}

fn line(text: &mut String, key: &Key, r: &Resolved) {
    let note = if key.note.is_empty() { String::new() } else { format!("; {}", key.note) };
    let Some((item, val)) = r.items.get(key.path).and_then(|item| Some((item, item.val.as_ref()?))) else {
        let why = match key.when {
            When::Set(paths) if !paths.iter().any(|path| r.items.contains_key(path)) => {
                format!("only with {}", paths.join(" or "))
            }
            When::Is(path, values) => format!("only with {}", any_of(path, values)),
            When::Holds { otherwise, .. } => otherwise.into(),
            _ => "not set".into(),
        };
        let _ = writeln!(text, "# {} =  # {} ({why})", key.name(), key.doc);
        return;
    };
    let from = match &item.location {
        None => format!("default{note}"),
        Some(location) => match location.line {
            Some(line) => format!("{}:{line}", location.origin),
            None => location.origin.clone(),
        },
    };
    let from = from.replace(|c: char| c.is_control(), "?");
    let _ = writeln!(text, "{} = {}  # {} ({from})", key.name(), val.toml(), key.doc);
}

/// Every value in base units, sorted by key. Specs with the same values have the same text. `policies` has the
/// identities of the choices from outside by slot; it is absent without them.
pub fn canonical_json(table: &Table, r: &Resolved) -> String {
    let mut sorted: BTreeMap<&str, BTreeMap<&str, Json>> = BTreeMap::new();
    let mut all: BTreeMap<String, Json> = BTreeMap::new();
    for key in table.keys() {
        match r.get(key.path) {
            Some(val) if key.section().is_empty() => {
                all.insert(key.name().to_string(), val.json());
            }
            Some(val) => {
                sorted.entry(key.section()).or_default().insert(key.name(), with_content(r, key, val));
            }
            None => {}
        }
    }
    for (section, keys) in sorted {
        let keys: Map<String, Json> = keys.into_iter().map(|(name, json)| (name.to_string(), json)).collect();
        all.insert(section.to_string(), Json::Object(keys));
    }
    if !r.outside.is_empty() {
        let identity = |named: &Named| (named.slot.clone(), Json::from(named.identity.as_deref()));
        all.insert("policies".into(), Json::Object(r.outside.iter().map(identity).collect()));
    }
    Json::Object(all.into_iter().collect()).to_string()
}

/// A value as JSON. For a choice that names a file the JSON has the file's name and a hash of the file's content.
fn with_content(r: &Resolved, key: &Key, val: &Val) -> Json {
    match (val, r.contents.get(key.path)) {
        (Val::Tag(name, Some(file)), Some(content)) => {
            let content = format!("{:016x}", content.hash);
            json!({ *name: { "content": content, "file": file.json() } })
        }
        _ => val.json(),
    }
}

/// A hash of 16 hex digits: FNV-1a over the text, then a finalizer that spreads the last bytes over all digits.
pub fn hash(text: &str) -> String {
    let mut hash: u64 = 0xcbf2_9ce4_8422_2325;
    for byte in text.bytes() {
        hash = (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3);
    }
    for factor in [0xff51_afd7_ed55_8ccd, 0xc4ce_b9fe_1a85_ec53] {
        hash = (hash ^ (hash >> 33)).wrapping_mul(factor);
    }
    format!("{:016x}", hash ^ (hash >> 33))
}
