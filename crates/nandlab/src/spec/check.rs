//! Rules over several keys: what each value allows on its own can still be impossible.

use super::kind::Val;
use super::layers::{Layers, Location};
use super::resolve::Resolved;

/// A rule; it says nothing, `None`, where a key that it asks for could not be read.
pub(crate) type Rule = fn(&mut Check<'_>) -> Option<()>;

/// What a rule looks at, and where it tells what is wrong.
pub(crate) struct Check<'a> {
    pub(super) values: &'a Resolved,
    pub(super) layers: &'a mut Layers,
}

impl<'a> Check<'a> {
    pub(crate) fn get(&self, path: &str) -> Option<&'a Val> {
        self.values.get(path)
    }

    pub(crate) fn int(&self, path: &str) -> Option<u64> {
        self.get(path).map(Val::int)
    }

    pub(crate) fn num(&self, path: &str) -> Option<f64> {
        self.get(path).map(Val::num)
    }

    /// The name that was chosen; empty for what is no choice.
    pub(crate) fn tag(&self, path: &str) -> Option<&'static str> {
        self.get(path).map(Val::tag)
    }

    /// Whether the key has this choice.
    pub(crate) fn is(&self, path: &str, name: &str) -> bool {
        self.tag(path) == Some(name)
    }

    /// An error at the key of the highest layer that had a say; the first of these on a tie.
    pub(crate) fn error(&mut self, keys: &[&str], message: impl Into<String>, remedy: impl Into<String>) {
        let mut worst: Option<(&str, &Location)> = None;
        for key in keys {
            if let Some(place) = self.values.items.get(key).and_then(|item| item.place.as_ref())
                && worst.is_none_or(|(_, other)| place.rank > other.rank)
            {
                worst = Some((key, place));
            }
        }
        let nowhere = Location { origin: "defaults".into(), line: None, rank: 0 };
        let (key, place) = worst.unwrap_or((keys[0], &nowhere));
        self.layers.error(place, key, message, remedy);
    }

    /// An error in an item of a list, at the item's own line.
    pub(crate) fn error_in_list(
        &mut self,
        key: &str,
        index: usize,
        name: &str,
        message: impl Into<String>,
        remedy: impl Into<String>,
    ) {
        // Only what was written can be wrong.
        let Some(place) = self.values.items.get(key).and_then(|item| item.place.clone()) else { return };
        let line = place.line.map(|line| self.layers.line_of_item(key, index).unwrap_or(line));
        self.layers.error(&Location { line, ..place }, &format!("{key}[{index}].{name}"), message, remedy);
    }
}
