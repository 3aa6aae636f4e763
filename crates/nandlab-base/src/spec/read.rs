//! Reads a TOML value as a checked value of a kind.

use super::error::nearest;
use super::key::{Absent, Table};
use super::kind::{Param, Payload, Policy, SIZES_MAX, Val, ValueKind, choices};
use super::layers::SUGGESTIONS_MAX;
use super::node::{Field, Node, Raw, expected, parse_value, shorten};
use super::outside::{Outside, is_policy_name, leaked};
use super::quantity::{Dimension, Why, real, show_num, show_size, show_time, unit_of, whole};
use std::collections::BTreeMap;

/// An error inside the value of a key.
#[derive(Debug)]
pub(super) struct Issue {
    /// The path of the key, or of the parameter below the key.
    pub(super) path: String,
    pub(super) line: u32,
    pub(super) message: String,
    pub(super) remedy: String,
}

/// Reads values and collects the errors in them.
#[derive(Debug, Default)]
pub(super) struct Reader<'a> {
    pub(super) issues: Vec<Issue>,
    /// The choices from outside; `None` for defaults, which name none.
    pub(super) outside: Option<&'a Outside>,
    /// What the program does not model.
    pub(super) absent: &'static [Absent],
}

impl Reader<'_> {
    fn issue<T>(
        &mut self,
        path: &str,
        line: u32,
        message: impl Into<String>,
        remedy: impl Into<String>,
    ) -> Option<T> {
        let (message, remedy) = (message.into(), remedy.into());
        self.issues.push(Issue { path: path.into(), line, message, remedy });
        None
    }

    fn wrong<T>(&mut self, kind: &ValueKind, node: &Node, path: &str) -> Option<T> {
        let message = expected(&short_wants(kind), node);
        if let (ValueKind::Num(range), Raw::Text(text)) = (kind, &node.raw)
            && let Some(share) =
                text.strip_suffix('%').and_then(|percent| percent.trim_end().parse::<f64>().ok())
            && range.holds(share / 100.0)
        {
            let remedy = format!("write the share as a number: {}", show_num(share / 100.0));
            return self.issue(path, node.line, message, remedy);
        }
        self.issue(path, node.line, message, format!("write {}", kind.wants()))
    }

    fn out_of_range<T>(&mut self, node: &Node, path: &str, range: String) -> Option<T> {
        let message = format!("{} is out of range", node.describe());
        self.issue(path, node.line, message, format!("a value {range}"))
    }

    /// Reads `node` as `kind`; `None` if the value has an error.
    pub(super) fn read(&mut self, kind: &'static ValueKind, node: &Node, path: &str) -> Option<Val> {
        match (kind, &node.raw) {
            (ValueKind::Bool, Raw::Bool(b)) => Some(Val::Bool(*b)),
            (ValueKind::Int { min, max }, Raw::Int(i)) => match u64::try_from(*i) {
                Ok(v) if (*min..=*max).contains(&v) => Some(Val::Int(v)),
                _ => self.out_of_range(node, path, format!("from {min} to {max}")),
            },
            (ValueKind::Int { min, max }, Raw::Huge(_)) => {
                self.out_of_range(node, path, format!("from {min} to {max}"))
            }
            (ValueKind::Num(range), Raw::Int(_) | Raw::Num(_)) => match node.raw {
                Raw::Int(i) if range.holds(i as f64) => Some(Val::Num(i as f64)),
                Raw::Num(x) if range.holds(x) => Some(Val::Num(x + 0.0)),
                _ => self.out_of_range(node, path, range.text()),
            },
            (ValueKind::Time { min, max }, _) => {
                let ns = self.quantity(Dimension::Time, node, path)?;
                match (*min..=*max).contains(&ns) {
                    true => Some(Val::Time(ns)),
                    false => self.out_of_range(
                        node,
                        path,
                        format!("from {} to {}", show_time(*min), show_time(*max)),
                    ),
                }
            }
            (ValueKind::Size { min, max, step }, _) => {
                let bytes = self.size(node, path, *min, *max, *step)?;
                Some(Val::Size(bytes))
            }
            (ValueKind::Si(dimension), _) => self.si(*dimension, node, path),
            (ValueKind::Text | ValueKind::Path, Raw::Text(text)) if text.is_empty() => self.issue(
                path,
                node.line,
                "empty text",
                format!("write {}, or take the line out", kind.wants()),
            ),
            (ValueKind::Path, Raw::Text(text)) if text.contains('\0') => {
                let message = format!("{} has a zero byte, which no file name has", node.describe());
                self.issue(path, node.line, message, format!("write {}", kind.wants()))
            }
            (ValueKind::Text | ValueKind::Path, Raw::Text(text)) => Some(Val::Text(text.clone())),
            (ValueKind::Slot(_) | ValueKind::Registered(_), Raw::Text(_) | Raw::Table(_)) => {
                let outside = self.outside.filter(|_| matches!(kind, ValueKind::Registered(_)));
                self.slot(kind.policies().unwrap_or_default(), outside, "", node, path)
            }
            (ValueKind::Table(params), Raw::Table(fields)) => self.table(params, fields, node.line, path),
            (ValueKind::List(params, most), Raw::List(items)) => self.list(params, *most, items, node, path),
            (ValueKind::Texts(most), Raw::List(items)) => self.texts(kind, *most, items, node, path),
            (ValueKind::Sizes, _) => self.sizes(node, path),
            (ValueKind::Either(kinds), _) => self.either(kind, kinds, node, path),
            _ => self.wrong(kind, node, path),
        }
    }

    /// Reads a time in nanoseconds or a size in bytes.
    fn quantity(&mut self, dimension: Dimension, node: &Node, path: &str) -> Option<u64> {
        let (name, units) = (dimension.name(), dimension.units());
        let text = match &node.raw {
            Raw::Text(text) => text,
            Raw::Int(_) | Raw::Num(_) | Raw::Huge(_) => {
                let message = format!("{} without a unit", expected(name, node));
                let remedy = format!("write it as \"{}\" (units: {units})", dimension.example());
                return self.issue(path, node.line, message, remedy);
            }
            _ => {
                let message = expected(name, node);
                let remedy = format!("write {name} such as \"{}\" (units: {units})", dimension.example());
                return self.issue(path, node.line, message, remedy);
            }
        };
        let why = match whole(text, dimension) {
            Ok(value) => return Some(value),
            Err(why) => why,
        };
        let said = node.describe();
        let message = match (why, Dimension::of(text)) {
            (Why::TooFine, _) => {
                format!("{said} is finer than one {}", if name == "a time" { "nanosecond" } else { "byte" })
            }
            (Why::TooLarge, _) => format!("{said} is too large"),
            (_, Some(other)) => format!("expected {name}, found {}: {said}", other.name()),
            (Why::NoUnit, None) => match unit_of(text) {
                "" => format!("{said} has no unit of {}", &name[2..]),
                unit => format!("{said}: \"{unit}\" is no unit of {}", &name[2..]),
            },
            (Why::NoNumber, None) => format!("{said} is not {name}"),
        };
        self.issue(
            path,
            node.line,
            message,
            format!("write it as \"{}\" (units: {units})", dimension.example()),
        )
    }

    fn size(&mut self, node: &Node, path: &str, min: u64, max: u64, step: u64) -> Option<u64> {
        let bytes = self.quantity(Dimension::Size, node, path)?;
        if !(min..=max).contains(&bytes) {
            return self.out_of_range(node, path, format!("from {} to {}", show_size(min), show_size(max)));
        }
        if bytes % step != 0 {
            let message = format!("{} is not a multiple of {}", node.describe(), show_size(step));
            let nearest = bytes.saturating_add(step / 2) / step * step;
            let remedy = format!(
                "the nearest is \"{}\"",
                show_size(nearest.clamp(min.next_multiple_of(step), max / step * step))
            );
            return self.issue(path, node.line, message, remedy);
        }
        Some(bytes)
    }

    fn si(&mut self, dimension: Dimension, node: &Node, path: &str) -> Option<Val> {
        let value = match &node.raw {
            Raw::Int(i) => Some(*i as f64),
            Raw::Num(x) => Some(*x),
            Raw::Text(text) => real(text, dimension),
            _ => None,
        };
        match value {
            Some(x) if (0.0..=1e6).contains(&x) => Some(Val::Si(x + 0.0, dimension)),
            Some(_) => self.out_of_range(node, path, "from 0 to 1e6".into()),
            None => {
                let name = dimension.name();
                let message = match &node.raw {
                    Raw::Text(text) => match Dimension::of(text) {
                        Some(other) => {
                            format!("expected {name}, found {}: {}", other.name(), node.describe())
                        }
                        None => format!("{} is not {name}", node.describe()),
                    },
                    _ => expected(name, node),
                };
                let remedy =
                    format!("write it as \"{}\" (units: {})", dimension.example(), dimension.units());
                self.issue(path, node.line, message, remedy)
            }
        }
    }

    /// Reads a policy: `"name"`, or `{ name = parameters }`. `outside`: the choices from outside, for a slot that takes
    /// them. `others`: the end of the remedy for a name that is near no choice, with what else the key takes.
    fn slot(
        &mut self,
        policies: &'static [Policy],
        outside: Option<&Outside>,
        others: &str,
        node: &Node,
        path: &str,
    ) -> Option<Val> {
        let all = || -> Vec<Policy> {
            let outside = outside.map(|outside| outside.of_slot(path)).into_iter().flatten();
            policies.iter().copied().chain(outside).collect()
        };
        let (name, line, given) = match &node.raw {
            Raw::Text(name) => (name, node.line, None),
            Raw::Table(fields) => match fields.as_slice() {
                [field] => (&field.name, field.line, Some(&field.node)),
                _ => {
                    let message = expected("one choice", node);
                    return self.issue(path, node.line, message, format!("write one of {}", choices(&all())));
                }
            },
            _ => unreachable!("callers pass text and tables"),
        };
        let found = outside.and_then(|outside| outside.find(path, name)).map(|choice| choice.policy);
        let Some(policy) = policies.iter().find(|p| p.name == name).copied().or(found) else {
            if outside.is_some_and(|outside| outside.accepts_unloaded) && is_policy_name(name) {
                let params = given.map(|given| Box::new(Val::Unchecked(given.toml(), given.json())));
                return Some(Val::Tag(leaked(name), params));
            }
            if let Some((message, remedy)) = Table::absent(self.absent, name) {
                let message = format!("\"{name}\" is {message}");
                return self.issue(path, line, message, format!("{remedy}; choices: {}", choices(&all())));
            }
            let message = format!("unknown value \"{}\"", shorten(name));
            let meant = nearest(name, all().iter().map(|p| p.name));
            let others = if meant.is_some() { "" } else { others };
            let meant = meant.map_or(String::new(), |name| format!("did you mean \"{name}\"? "));
            let more = outside.map_or("", |outside| outside.remedy);
            return self.issue(
                path,
                line,
                message,
                format!("{meant}choices: {}{more}{others}", choices(&all())),
            );
        };
        let below = format!("{path}.{name}");
        match (&policy.payload, given) {
            (Payload::None, None) => Some(Val::Tag(policy.name, None)),
            (Payload::None, Some(Node { raw: Raw::Table(fields), .. })) if fields.is_empty() => {
                Some(Val::Tag(policy.name, None))
            }
            (Payload::None, Some(given)) => {
                let leaf = path.rsplit('.').next().unwrap_or(path);
                let message = "takes no parameters";
                self.issue(&below, given.line, message, format!("write {leaf} = \"{name}\""))
            }
            (Payload::Params(params), None) => {
                let table = self.table(params, &[], line, &below)?;
                Some(Val::Tag(policy.name, Some(Box::new(table))))
            }
            (Payload::Params(params), Some(Node { raw: Raw::Table(fields), line })) => {
                let table = self.table(params, fields, *line, &below)?;
                Some(Val::Tag(policy.name, Some(Box::new(table))))
            }
            (Payload::Params(_), Some(other)) => {
                let message = expected("a table of parameters", other);
                self.issue(
                    &below,
                    other.line,
                    message,
                    format!("write {}", choices(std::slice::from_ref(&policy))),
                )
            }
            (Payload::Value(kind), Some(given)) => {
                let value = self.read(kind, given, &below)?;
                Some(Val::Tag(policy.name, Some(Box::new(value))))
            }
            (Payload::Value(_), None) => {
                let form = choices(std::slice::from_ref(&policy));
                self.issue(path, line, format!("\"{name}\" needs a value"), format!("write {form}"))
            }
        }
    }

    fn table(&mut self, params: &'static [Param], fields: &[Field], line: u32, path: &str) -> Option<Val> {
        let before = self.issues.len();
        for field in fields {
            if !params.iter().any(|p| p.name == field.name) {
                let is_asked = self.issues.len() < SUGGESTIONS_MAX;
                let meant = is_asked.then(|| nearest(&field.name, params.iter().map(|p| p.name))).flatten();
                let meant = meant.map_or(String::new(), |name| format!("did you mean {name}? "));
                let names: Vec<&str> = params.iter().map(|p| p.name).collect();
                let key = format!("{path}.{}", shorten(&field.name));
                let remedy = format!("{meant}there are: {}", names.join(", "));
                self.issue::<()>(&key, field.line, "unknown parameter", remedy);
            }
        }
        let mut values = Vec::with_capacity(params.len());
        for param in params {
            let below = format!("{path}.{}", param.name);
            let value = match fields.iter().find(|f| f.name == param.name) {
                Some(field) => self.read(&param.kind, &field.node, &below),
                None if param.default.is_empty() => {
                    let remedy = format!("add {} = {} ({})", param.name, param.kind.example(), param.doc);
                    self.issue(&below, line, "missing", remedy)
                }
                None => parse_value(param.default).and_then(|node| self.read(&param.kind, &node, &below)),
            };
            if let Some(value) = value {
                values.push((param.name, value));
            }
        }
        (self.issues.len() == before).then_some(Val::Table(values))
    }

    fn texts(
        &mut self,
        kind: &ValueKind,
        most: usize,
        items: &[Node],
        node: &Node,
        path: &str,
    ) -> Option<Val> {
        if items.is_empty() || items.len() > most {
            let message = if items.is_empty() { "an empty list" } else { "too long a list" };
            return self.issue(path, node.line, message, format!("write {}, at most {most}", kind.wants()));
        }
        let of_item = |(i, item): (usize, &Node)| match &item.raw {
            Raw::Text(text) if !text.is_empty() => Some(Val::Text(text.clone())),
            _ => {
                let message = expected(&ValueKind::Text.wants(), item);
                self.issue(&format!("{path}[{i}]"), item.line, message, format!("write {}", kind.wants()))
            }
        };
        let values: Vec<Val> = items.iter().enumerate().filter_map(of_item).collect();
        (values.len() == items.len()).then_some(Val::List(values))
    }

    fn list(
        &mut self,
        params: &'static [Param],
        most: usize,
        items: &[Node],
        node: &Node,
        path: &str,
    ) -> Option<Val> {
        if items.is_empty() {
            let remedy = format!("write at least one {}", ValueKind::Table(params).wants());
            return self.issue(path, node.line, "an empty list", remedy);
        }
        if items.len() > most {
            let message = format!("a list of {} items", items.len());
            return self.issue(path, node.line, message, format!("write at most {most}"));
        }
        let mut values = Vec::new();
        for (i, item) in items.iter().enumerate() {
            let below = format!("{path}[{i}]");
            match &item.raw {
                Raw::Table(fields) => values.extend(self.table(params, fields, item.line, &below)),
                _ => {
                    let wants = ValueKind::Table(params).wants();
                    let message = expected("a table", item);
                    self.issue::<()>(&below, item.line, message, format!("write {wants}"));
                }
            }
        }
        (values.len() == items.len()).then_some(Val::List(values))
    }

    fn sizes(&mut self, node: &Node, path: &str) -> Option<Val> {
        const MAX: u64 = 1 << 30;
        let Raw::Table(fields) = &node.raw else {
            return Some(Val::Sizes(vec![(self.size(node, path, 512, MAX, 512)?, 1.0)]));
        };
        if fields.is_empty() {
            return self.issue(
                path,
                node.line,
                "an empty table",
                format!("write {}", ValueKind::Sizes.wants()),
            );
        }
        if fields.len() > SIZES_MAX {
            let message = format!("a table of {} sizes", fields.len());
            return self.issue(path, node.line, message, format!("write at most {SIZES_MAX}"));
        }
        let mut sizes: BTreeMap<u64, f64> = BTreeMap::new();
        for field in fields {
            let name = Node { line: field.line, raw: Raw::Text(field.name.clone()) };
            let below = format!("{path}.\"{}\"", shorten(&field.name));
            let size = self.size(&name, &below, 512, MAX, 512)?;
            let weight = match field.node.raw {
                Raw::Int(i) => i as f64,
                Raw::Num(x) => x,
                _ => f64::NAN,
            };
            if !(weight > 0.0 && weight <= 1e12) {
                let message = format!("{} is not a weight", field.node.describe());
                return self.issue(&below, field.line, message, "a number above 0, such as 0.5");
            }
            if sizes.insert(size, weight).is_some() {
                return self.issue(&below, field.line, "the same size twice", "give each size once");
            }
        }
        let mut sizes: Vec<(u64, f64)> = sizes.into_iter().collect();
        if let [(_, weight)] = sizes.as_mut_slice() {
            *weight = 1.0;
        }
        Some(Val::Sizes(sizes))
    }

    /// Reads `node` as the alternative of the same shape. If several alternatives are tables, the one that has the most
    /// field names in common with `node` is used.
    fn either(
        &mut self,
        whole: &ValueKind,
        kinds: &'static [ValueKind],
        node: &Node,
        path: &str,
    ) -> Option<Val> {
        let shared = |names: Vec<&str>, fields: &[Field]| {
            fields.iter().filter(|f| names.contains(&f.name.as_str())).count()
        };
        let takes_table = |kind: &&ValueKind| matches!(kind, ValueKind::Slot(_) | ValueKind::Table(_));
        let is_only_table = kinds.iter().filter(takes_table).count() == 1;
        let fit = |kind: &ValueKind| match (kind, &node.raw) {
            (ValueKind::Num(_) | ValueKind::Int { .. }, Raw::Int(_) | Raw::Num(_)) => 1,
            (ValueKind::Time { .. } | ValueKind::Size { .. }, Raw::Text(_) | Raw::Int(_) | Raw::Num(_)) => 1,
            (ValueKind::Slot(p), Raw::Text(text)) => 1 + usize::from(p.iter().any(|p| p.name == text)),
            (ValueKind::Table(_), Raw::Table(_)) if is_only_table => 1,
            (ValueKind::Slot(p), Raw::Table(fields)) => shared(p.iter().map(|p| p.name).collect(), fields),
            (ValueKind::Table(p), Raw::Table(fields)) => shared(p.iter().map(|p| p.name).collect(), fields),
            (ValueKind::List(..) | ValueKind::Texts(_), Raw::List(_)) => 1,
            (ValueKind::Bool, Raw::Bool(_)) => 1,
            _ => 0,
        };
        let mut best: Option<(usize, &'static ValueKind)> = None;
        for kind in kinds {
            let fit = fit(kind);
            if fit > best.map_or(0, |(most, _)| most) {
                best = Some((fit, kind));
            }
        }
        match best {
            // A text that is none of the choices may have been meant as another kind of value.
            Some((1, kind @ ValueKind::Slot(policies))) if matches!(node.raw, Raw::Text(_)) => {
                let others: Vec<String> =
                    kinds.iter().filter(|other| !std::ptr::eq(*other, kind)).map(ValueKind::wants).collect();
                self.slot(policies, None, &format!("; or {}", others.join(" or ")), node, path)
            }
            Some((_, kind)) => self.read(kind, node, path),
            None => self.wrong(whole, node, path),
        }
    }
}

/// The expected value for a message, without the list of choices, which the remedy has.
fn short_wants(kind: &ValueKind) -> String {
    match kind {
        ValueKind::Slot(_) | ValueKind::Registered(_) => "one of its choices".into(),
        ValueKind::Table(_) => "a table".into(),
        ValueKind::List(..) | ValueKind::Texts(_) => "a list".into(),
        ValueKind::Time { .. } => Dimension::Time.name().into(),
        ValueKind::Size { .. } => Dimension::Size.name().into(),
        ValueKind::Si(dimension) => dimension.name().into(),
        ValueKind::Either(kinds) => {
            let mut wants: Vec<String> = kinds.iter().map(short_wants).collect();
            wants.dedup();
            wants.join(" or ")
        }
        other => other.wants(),
    }
}
