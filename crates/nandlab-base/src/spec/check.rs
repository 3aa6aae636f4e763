//! Rules over several keys: values may be impossible together although each of them is allowed.

use super::kind::Val;
use super::layers::{Layers, Location};
use super::resolve::Resolved;

/// A rule. Returns `None` as soon as it needs a key that has no valid value.
pub type Rule = fn(&mut Check<'_>) -> Option<()>;

/// The values that a rule checks, and the list to which it adds errors.
pub struct Check<'a> {
    pub(super) values: &'a Resolved,
    pub(super) layers: &'a mut Layers,
}

impl<'a> Check<'a> {
    /// The value of a key; `None` if the key has no valid value.
    pub fn get(&self, path: &str) -> Option<&'a Val> {
        self.values.get(path)
    }

    /// Whether a layer sets the key.
    pub fn is_set(&self, path: &str) -> bool {
        self.layers.entries.contains_key(path)
    }

    /// The whole value of a key: a count, a time in nanoseconds or a size in bytes.
    pub fn int(&self, path: &str) -> Option<u64> {
        self.get(path).map(Val::int)
    }

    /// The value of a key that is a number, or a quantity in its SI unit.
    pub fn num(&self, path: &str) -> Option<f64> {
        self.get(path).map(Val::num)
    }

    /// The name of the choice; empty for a key that is not a choice.
    pub fn tag(&self, path: &str) -> Option<&'static str> {
        self.get(path).map(Val::tag)
    }

    /// Whether the key has the choice `name`.
    pub fn is(&self, path: &str, name: &str) -> bool {
        self.tag(path) == Some(name)
    }

    /// Whether the spec injects a power loss.
    pub fn cuts_power(&self) -> bool {
        self.int("power.cut_after_requests").is_some_and(|requests| requests > 0)
            || self.get("power.cut_at").is_some()
    }

    /// Reports an error if `other` has the value `value`, with which the present choice of `key` has no effect. `why`
    /// follows the value in the message. The remedy is `instead`, or the value `default` of `key`.
    pub fn no_effect_with(
        &mut self,
        key: &str,
        (other, value): (&str, &str),
        why: &str,
        instead: &str,
        default: &str,
    ) {
        if self.is(other, value)
            && let Some(choice) = self.tag(key)
        {
            let message = format!("\"{choice}\" has no effect with {other} = \"{value}\"{why}");
            self.error(&[key, other], message, format!("{instead}, or {key} = \"{default}\""));
        }
    }

    /// [`Check::no_effect_with`] for a choice that gives operations another place on their dies than their age.
    pub fn no_effect_with_fcfs(&mut self, key: &str, default: &str) {
        let instead = "set timing.scheduler = \"read-first\"";
        self.no_effect_with(
            key,
            ("timing.scheduler", "fcfs"),
            ", which serves the oldest first",
            instead,
            default,
        );
    }

    /// Reports an error at one of `keys`: the one whose value comes from the highest layer. If this layer sets several
    /// of `keys`, the error is at the first of these. A key whose default follows from another key is not set by a layer;
    /// it counts only if no layer sets one of `keys`.
    pub fn error(&mut self, keys: &[&str], message: impl Into<String>, remedy: impl Into<String>) {
        let mut worst: Option<(&str, &Location, (bool, usize))> = None;
        for key in keys {
            if let Some(location) = self.values.items.get(key).and_then(|item| item.location.as_ref()) {
                let rank = (self.is_set(key), location.rank);
                if worst.is_none_or(|(_, _, other)| rank > other) {
                    worst = Some((key, location, rank));
                }
            }
        }
        let nowhere = Location { origin: "defaults".into(), line: None, rank: 0 };
        let (key, location) = worst.map_or((keys[0], &nowhere), |(key, location, _)| (key, location));
        self.layers.error(location, key, message, remedy);
    }

    /// Reports an error in an item of a list, at the item's own line.
    pub fn error_in_list(
        &mut self,
        key: &str,
        index: usize,
        name: &str,
        message: impl Into<String>,
        remedy: impl Into<String>,
    ) {
        // A default has no location, and needs no error because all defaults are valid.
        let Some(location) = self.values.items.get(key).and_then(|item| item.location.clone()) else {
            return;
        };
        let line = location.line.map(|line| self.layers.line_of_item(key, index).unwrap_or(line));
        self.layers.error(&Location { line, ..location }, &format!("{key}[{index}].{name}"), message, remedy);
    }
}
