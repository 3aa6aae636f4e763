//! TOML text as a tree in which every name and value has its line.

use super::error::SpecError;
use super::kind::quote;
use serde_json::Value as Json;
use toml::de::{DeTable, DeValue};
use toml_parser::Source;
use toml_parser::lexer::TokenKind;

/// A value and the line on which it starts.
#[derive(Clone, Debug)]
pub(super) struct Node {
    pub(super) line: u32,
    pub(super) raw: Raw,
}

/// A TOML value.
#[derive(Clone, Debug)]
pub(super) enum Raw {
    Bool(bool),
    Int(i64),
    /// An integer beyond 64 bits, as text.
    Huge(String),
    Num(f64),
    Text(String),
    Date(String),
    List(Vec<Node>),
    Table(Vec<Field>),
}

/// A field `name = value` of a table.
#[derive(Clone, Debug)]
pub(super) struct Field {
    pub(super) name: String,
    /// The line of the name.
    pub(super) line: u32,
    pub(super) node: Node,
}

/// The error in a text that is not TOML.
#[derive(Debug)]
pub(super) struct NotToml {
    pub(super) line: u32,
    pub(super) message: String,
    /// The text of the line, shortened.
    pub(super) text: String,
}

impl NotToml {
    /// The error as an error of the spec in the file `name`.
    pub(super) fn spec_error(self, name: &str) -> SpecError {
        let mut remedy = format!("correct the line, which reads: {}", self.text);
        if name.contains('.') && !name.ends_with(".toml") {
            remedy += "; a trace is no spec: workload.trace of a spec names it, and `nandlab trace stat` reads it alone";
        }
        SpecError {
            origin: name.into(),
            line: Some(self.line),
            key: String::new(),
            message: format!("not TOML: {}", self.message),
            remedy,
        }
    }
}

impl Node {
    /// A description of the value for a message.
    pub(super) fn describe(&self) -> String {
        match &self.raw {
            Raw::Bool(b) => b.to_string(),
            Raw::Int(i) => format!("the number {i}"),
            Raw::Huge(text) => format!("the number {}", shorten(text)),
            Raw::Num(x) => format!("the number {x:?}"),
            Raw::Text(text) => format!("\"{}\"", shorten(text)),
            Raw::Date(text) => format!("the date {}", shorten(text)),
            Raw::List(_) => "a list".into(),
            Raw::Table(fields) if fields.is_empty() => "an empty table".into(),
            Raw::Table(fields) => {
                let names: Vec<String> = fields.iter().take(4).map(|f| shorten(&f.name)).collect();
                let more = if fields.len() > 4 { ", ..." } else { "" };
                format!("a table of {}{more}", names.join(", "))
            }
        }
    }
}

impl Node {
    /// The value as JSON.
    pub(super) fn json(&self) -> Json {
        match &self.raw {
            Raw::Bool(b) => Json::from(*b),
            Raw::Int(i) => Json::from(*i),
            Raw::Num(x) => Json::from(*x),
            Raw::Text(text) | Raw::Huge(text) | Raw::Date(text) => Json::from(text.as_str()),
            Raw::List(items) => Json::Array(items.iter().map(Node::json).collect()),
            Raw::Table(fields) => {
                Json::Object(fields.iter().map(|f| (f.name.clone(), f.node.json())).collect())
            }
        }
    }

    /// The value as TOML on one line.
    pub(super) fn toml(&self) -> String {
        match &self.raw {
            Raw::Bool(b) => b.to_string(),
            Raw::Int(i) => i.to_string(),
            Raw::Num(x) => format!("{x:?}"),
            Raw::Text(text) => quote(text),
            Raw::Huge(text) | Raw::Date(text) => text.clone(),
            Raw::List(items) => format!("[{}]", items.iter().map(Node::toml).collect::<Vec<_>>().join(", ")),
            Raw::Table(fields) if fields.is_empty() => "{}".into(),
            Raw::Table(fields) => {
                let fields: Vec<String> =
                    fields.iter().map(|f| format!("{} = {}", quote(&f.name), f.node.toml())).collect();
                format!("{{ {} }}", fields.join(", "))
            }
        }
    }
}

/// The message for a value of the wrong type.
pub(super) fn expected(wanted: &str, found: &Node) -> String {
    format!("expected {wanted}, found {}", found.describe())
}

/// The beginning of a text for a message: at most 40 characters, followed by `...` if the text is longer. Unprintable
/// characters are escaped.
pub fn shorten(text: &str) -> String {
    shorten_to(40, text)
}

/// As [`shorten`], with at most `most` characters.
pub(super) fn shorten_to(most: usize, text: &str) -> String {
    let mut short = String::new();
    let mut room = most;
    for c in text.chars() {
        let escaped = c.escape_debug();
        // `escape_debug` also escapes these printable characters.
        let is_plain = escaped.len() == 1 || matches!(c, '"' | '\'' | '\\');
        let width = if is_plain { 1 } else { escaped.len() };
        if width > room {
            short.push_str("...");
            break;
        }
        room -= width;
        if is_plain { short.push(c) } else { short.extend(escaped) }
    }
    short
}

/// The largest number of points in one key. Each point nests one more table, and tables are built and dropped
/// recursively, so a key with very many points would overflow the stack.
const POINTS_MAX: usize = 64;

/// The offset at which a key exceeds [`POINTS_MAX`] points; `None` if no key does.
fn too_deep(text: &str) -> Option<usize> {
    let mut points = 0;
    for token in Source::new(text).lex() {
        match token.kind() {
            TokenKind::Dot => points += 1,
            TokenKind::Atom | TokenKind::Whitespace | TokenKind::LiteralString | TokenKind::BasicString => {}
            _ => points = 0,
        }
        if points > POINTS_MAX {
            return Some(token.span().start());
        }
    }
    None
}

/// The fields of a document, or its first error. The parser's further errors mostly follow from the first.
pub(super) fn parse_document(text: &str) -> Result<Vec<Field>, NotToml> {
    let lines = Lines::of(text);
    let refuse = |offset, message| {
        let line = lines.line(offset);
        let text = shorten(text.lines().nth(line as usize - 1).unwrap_or("").trim());
        Err(NotToml { line, message, text })
    };
    if let Some(offset) = too_deep(text) {
        return refuse(offset, format!("more than {POINTS_MAX} points in a key"));
    }
    let (table, errors) = DeTable::parse_recoverable(text);
    let Some(error) = errors.first() else { return Ok(lines.fields(table.get_ref())) };
    refuse(error.span().map_or(0, |span| span.start), shorten_to(80, &error.message().replace('\n', ", ")))
}

/// Parses a value, the text after `key =`.
pub(super) fn parse_value(text: &str) -> Option<Node> {
    if too_deep(text).is_some() {
        return None;
    }
    let value = DeValue::parse(text).ok()?;
    Some(Lines::of(text).node(value.span().start, value.get_ref()))
}

/// The offsets at which the lines of a text begin.
struct Lines(Vec<usize>);

impl Lines {
    fn of(text: &str) -> Lines {
        let after_newlines = text.bytes().enumerate().filter(|(_, b)| *b == b'\n').map(|(i, _)| i + 1);
        Lines(std::iter::once(0).chain(after_newlines).collect())
    }

    fn line(&self, offset: usize) -> u32 {
        self.0.partition_point(|start| *start <= offset) as u32
    }

    fn fields(&self, table: &DeTable<'_>) -> Vec<Field> {
        let field =
            |(name, value): (&toml::Spanned<std::borrow::Cow<'_, str>>, &toml::Spanned<DeValue<'_>>)| Field {
                name: name.get_ref().to_string(),
                line: self.line(name.span().start),
                node: self.node(value.span().start, value.get_ref()),
            };
        table.iter().map(field).collect()
    }

    fn node(&self, offset: usize, value: &DeValue<'_>) -> Node {
        let raw = match value {
            DeValue::String(text) => Raw::Text(text.to_string()),
            DeValue::Integer(int) => match i64::from_str_radix(int.as_str(), int.radix()) {
                Ok(i) => Raw::Int(i),
                Err(_) => Raw::Huge(int.to_string()),
            },
            DeValue::Float(float) => Raw::Num(float.as_str().parse().unwrap_or(f64::NAN)),
            DeValue::Boolean(b) => Raw::Bool(*b),
            DeValue::Datetime(date) => Raw::Date(date.to_string()),
            DeValue::Array(list) => {
                Raw::List(list.iter().map(|v| self.node(v.span().start, v.get_ref())).collect())
            }
            DeValue::Table(table) => Raw::Table(self.fields(table)),
        };
        Node { line: self.line(offset), raw }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_read_in_all_notations_of_toml() {
        let int = |text| match parse_value(text).unwrap().raw {
            Raw::Int(i) => i,
            other => panic!("{other:?}"),
        };
        assert_eq!(int("1_000_000"), 1_000_000);
        assert_eq!(int("0xff"), 255);
        assert_eq!(int("-5"), -5);
        assert!(matches!(parse_value("99999999999999999999").unwrap().raw, Raw::Huge(_)));
        assert!(matches!(parse_value("1_0.5").unwrap().raw, Raw::Num(x) if x == 10.5));
        assert!(matches!(parse_value("nan").unwrap().raw, Raw::Num(x) if x.is_nan()));
    }

    #[test]
    fn only_points_in_keys_count() {
        let points = ".a".repeat(65);
        for deep in
            [format!("a{points} = 1"), format!("\n[a{points}]"), format!("b = {{ \"a\"{points} = 1 }}")]
        {
            let error = parse_document(&deep).unwrap_err();
            assert_eq!(error.message, "more than 64 points in a key");
            assert_eq!(error.line as usize, deep.lines().count());
        }
        assert!(parse_document(&format!("a = \"a{points}\" # a{points} ........")).is_ok());
        assert!(parse_document(&format!("a = [{}]", "0.5, ".repeat(100))).is_ok());
    }

    #[test]
    fn a_key_has_the_line_on_which_it_is_written() {
        let fields = parse_document("# one\n[gc]\nvictim.random = { k = 8 }\n").unwrap();
        let Raw::Table(gc) = &fields[0].node.raw else { panic!() };
        assert_eq!((gc[0].name.as_str(), gc[0].line), ("victim", 3));
    }
}
