//! Choices from outside: policies that the embedder of the program adds to a slot, beside those of the slot's table.
//!
//! Only a slot of the kind [`ValueKind::Registered`] takes them. A spec names such a choice as it names any other one,
//! and its parameters are checked in the same way. The resolved spec contains the identity of each choice from outside
//! that it names, so specs that name different code differ.

use super::key::Table;
use super::kind::{Param, Payload, Policy, Val, ValueKind};
use std::collections::BTreeSet;
use std::sync::{Mutex, PoisonError};

/// The choices from outside that a spec may name.
#[derive(Clone, Debug, Default)]
pub struct Outside {
    /// The choices.
    pub choices: Vec<OutsideChoice>,
    /// Whether a name that no choice has is accepted, as the name of a policy that is not loaded. The parameters of
    /// such a policy are not checked.
    pub accepts_unloaded: bool,
    /// What else helps when a slot has no choice of a name, such as a way to load more choices; empty for nothing.
    pub remedy: &'static str,
}

/// A choice from outside.
#[derive(Clone, Debug)]
pub struct OutsideChoice {
    /// The path of the slot, such as `gc.victim`.
    pub slot: &'static str,
    /// Name, parameters and description.
    pub policy: Policy,
    /// What determines the decisions beside the parameters, as text: the identity of the code.
    pub identity: String,
}

/// A choice from outside that a spec names.
#[derive(Clone, Debug, PartialEq)]
pub struct Named {
    /// The path of the slot.
    pub slot: String,
    /// The name of the choice.
    pub name: &'static str,
    /// The identity of the code; `None` for a policy that is not loaded.
    pub identity: Option<String>,
    /// The parameters that are numbers, in the order of their declarations.
    pub params: Vec<(&'static str, f64)>,
}

impl Outside {
    /// The choice `name` of a slot.
    pub(super) fn find(&self, slot: &str, name: &str) -> Option<&OutsideChoice> {
        self.choices.iter().find(|choice| choice.slot == slot && choice.policy.name == name)
    }

    /// The choices of a slot.
    pub(super) fn of_slot<'a>(&'a self, slot: &'a str) -> impl Iterator<Item = Policy> + 'a {
        self.choices.iter().filter(move |choice| choice.slot == slot).map(|choice| choice.policy)
    }

    /// The choices from outside that the value of a key names; `path` is the path of the key.
    pub(super) fn named(&self, kind: &ValueKind, val: &Val, path: &str, found: &mut Vec<Named>) {
        let Val::Tag(name, payload) = val else { return };
        let built_in = kind.policies().unwrap_or_default().iter().find(|policy| policy.name == *name);
        if let Some(policy) = built_in {
            if let (Payload::Params(params), Some(payload)) = (&policy.payload, payload) {
                self.named_in(params, payload, &format!("{path}.{name}"), found);
            }
            return;
        }
        if !matches!(kind, ValueKind::Registered(_)) {
            return;
        }
        let number = |(name, val): &(&'static str, Val)| match val {
            Val::Int(int) => Some((*name, *int as f64)),
            Val::Num(number) => Some((*name, *number)),
            _ => None,
        };
        let params = match payload.as_deref() {
            Some(Val::Table(fields)) => fields.iter().filter_map(number).collect(),
            _ => Vec::new(),
        };
        let identity = self.find(path, name).map(|choice| choice.identity.clone());
        found.push(Named { slot: path.to_owned(), name, identity, params });
    }

    fn named_in(&self, params: &[Param], val: &Val, path: &str, found: &mut Vec<Named>) {
        for param in params {
            if let Some(val) = val.get(param.name) {
                self.named(&param.kind, val, &format!("{path}.{}", param.name), found);
            }
        }
    }
}

/// The paths of the slots that take choices from outside, and the names of the choices in their tables.
pub fn open_slots(table: &Table) -> Vec<(String, Vec<&'static str>)> {
    fn add(kind: &ValueKind, path: &str, found: &mut Vec<(String, Vec<&'static str>)>) {
        let policies = kind.policies().unwrap_or_default();
        if matches!(kind, ValueKind::Registered(_)) {
            found.push((path.to_owned(), policies.iter().map(|policy| policy.name).collect()));
        }
        for policy in policies {
            if let Payload::Params(params) = &policy.payload {
                for param in params.iter() {
                    add(&param.kind, &format!("{path}.{}.{}", policy.name, param.name), found);
                }
            }
        }
    }
    let mut found = Vec::new();
    for key in table.keys() {
        add(&key.kind, key.path, &mut found);
    }
    found
}

/// Whether a text may be the name of a policy: small letters, digits and hyphens, the first one a letter.
pub fn is_policy_name(name: &str) -> bool {
    name.len() <= 60
        && name.starts_with(|c: char| c.is_ascii_lowercase())
        && name.chars().all(|c| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '-')
}

/// The name of a policy that is not loaded, for a [`Val::Tag`]. Each different name is leaked once.
pub(super) fn leaked(name: &str) -> &'static str {
    static NAMES: Mutex<BTreeSet<&'static str>> = Mutex::new(BTreeSet::new());
    let mut names = NAMES.lock().unwrap_or_else(PoisonError::into_inner);
    match names.get(name) {
        Some(known) => known,
        None => {
            let leaked: &'static str = name.to_owned().leak();
            names.insert(leaked);
            leaked
        }
    }
}
