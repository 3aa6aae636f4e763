//! From the text of a spec to a value for every key of a table.

use super::check::{Check, Rule};
use super::error::SpecErrors;
use super::key::{FileOf, Table};
use super::kind::Val;
use super::layers::Layers;
use super::node::{shorten, shorten_to};
use super::resolve::{Resolved, in_order, resolve};
use std::path::Path;

/// Reads a spec that may say what `table` holds and has to keep `rules`, which are asked in their order. `name` is the file's name
/// for messages, `dir` what relative paths in it are resolved against, `sets` are `path=value` overrides, the last one winning.
pub(crate) fn load(
    table: &'static Table,
    rules: &[&[Rule]],
    text: &str,
    name: &str,
    dir: &Path,
    sets: &[String],
) -> Result<Resolved, SpecErrors> {
    let mut layers = Layers::new(table);
    layers.apply(text, name, sets);
    let mut values = resolve(&mut layers, dir);
    for rule in rules.iter().copied().flatten() {
        rule(&mut Check { values: &values, layers: &mut layers });
    }
    for key in table.keys() {
        if let Some(file) = &key.file {
            read_file(key.path, file, &mut values, &mut layers);
        }
    }
    if layers.errors.is_empty() { Ok(values) } else { Err(SpecErrors(in_order(layers.errors))) }
}

/// Reads the file that a key's choice names: a spec whose file cannot be read is not valid. What is wrong with it is added to
/// `layers`.
fn read_file(key: &'static str, file: &FileOf, values: &mut Resolved, layers: &mut Layers) {
    let Some(Val::Tag(choice, Some(named))) = values.get(key) else { return };
    if *choice != file.choice {
        return;
    }
    let (named, place) = (named.text(), values.items[key].place.clone());
    let error = match (file.read)(&values.file(named)) {
        Ok(content) => {
            values.contents.insert(key, content);
            return;
        }
        Err(error) => error,
    };
    let at = match (error.line, error.column) {
        (Some(line), Some(column)) => format!("line {line}, column {column}: "),
        (Some(line), None) => format!("line {line}: "),
        (None, _) => String::new(),
    };
    if let Some(place) = place {
        let (message, remedy) = (shorten_to(200, &error.message), shorten_to(200, &error.remedy));
        let message = format!("the {choice} \"{}\" cannot be used: {at}{message}", shorten(named));
        layers.error(&place, &format!("{key}.{choice}"), message, remedy);
    }
}
