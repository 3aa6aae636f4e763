//! The line of every key of a TOML text, for parsers that report no lines.

use super::error::SpecErrors;
use super::node::{Field, Node, Raw, parse_document};

/// One step of a key's path from the root of a text.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Step {
    /// A name in a table.
    Name(String),
    /// An index in a list.
    Index(usize),
}

/// The path of every key and of every list item, with the line on which the key or item is first written. The first
/// line of the text is 1. `name` is the text's name in messages.
pub fn key_lines(text: &str, name: &str) -> Result<Vec<(Vec<Step>, u32)>, SpecErrors> {
    let fields = parse_document(text).map_err(|error| SpecErrors(vec![error.spec_error(name)]))?;
    let mut lines = Vec::new();
    collect_fields(&mut lines, &mut Vec::new(), &fields);
    Ok(lines)
}

fn collect_fields(lines: &mut Vec<(Vec<Step>, u32)>, path: &mut Vec<Step>, fields: &[Field]) {
    for field in fields {
        path.push(Step::Name(field.name.clone()));
        lines.push((path.clone(), field.line));
        collect_value(lines, path, &field.node);
        path.pop();
    }
}

fn collect_value(lines: &mut Vec<(Vec<Step>, u32)>, path: &mut Vec<Step>, node: &Node) {
    match &node.raw {
        Raw::Table(fields) => collect_fields(lines, path, fields),
        Raw::List(items) => {
            for (i, item) in items.iter().enumerate() {
                path.push(Step::Index(i));
                lines.push((path.clone(), item.line));
                collect_value(lines, path, item);
                path.pop();
            }
        }
        _ => {}
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const TEXT: &str = r#"top = 1 # [not.a.table]
"quoted.key" = 'a # b'
dotted . key = [ 1,
  { inner = "x", other = [
    2 ] },  # comment, with "quotes" and ]
  3 ]
text = '''
[fake]
x = 1 ''''
[table.'sub']
a = { b = { c = 2024-01-01 }, d = true }
[[list]]
x = 1
[list.nested]
y = 2
[[list]]
x = 3
[[list.deep]]
z = 4
"#;

    #[test]
    fn every_key_and_item_has_its_line() {
        let lines = key_lines(TEXT, "t.toml").unwrap();
        let shown = |(path, line): &(Vec<Step>, u32)| {
            let steps = path.iter().map(|step| match step {
                Step::Name(name) => name.clone(),
                Step::Index(i) => i.to_string(),
            });
            format!("{line}: {}", steps.collect::<Vec<_>>().join("/"))
        };
        let lines: Vec<String> = lines.iter().map(shown).collect();
        for wanted in [
            "1: top",
            "2: quoted.key",
            "3: dotted/key",
            "4: dotted/key/1/inner",
            "5: dotted/key/1/other/0",
            "6: dotted/key/2",
            "7: text",
            "10: table/sub",
            "11: table/sub/a/b/c",
            "11: table/sub/a/d",
            "12: list",
            "12: list/0",
            "13: list/0/x",
            "14: list/0/nested",
            "15: list/0/nested/y",
            "16: list/1",
            "17: list/1/x",
            "18: list/1/deep/0",
            "19: list/1/deep/0/z",
        ] {
            assert!(lines.iter().any(|line| line == wanted), "{wanted}: {lines:#?}");
        }
        assert!(!lines.iter().any(|line| line.contains("fake")));
    }

    #[test]
    fn text_that_is_not_toml_gives_the_same_error_as_in_a_spec() {
        let text = key_lines("a = 1\nb = [ } ]\n", "t.toml").unwrap_err().to_string();
        assert!(text.starts_with("t.toml:2: not TOML: "), "{text}");
        assert!(text.ends_with("remedy: correct the line, which reads: b = [ } ]"), "{text}");
    }
}
