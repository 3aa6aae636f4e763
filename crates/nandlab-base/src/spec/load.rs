//! Loads a spec: turns its text into a value for every key of a table.

use super::check::{Check, Rule};
use super::error::SpecErrors;
use super::key::{FileOf, Table};
use super::kind::Val;
use super::layers::Layers;
use super::node::{shorten, shorten_to};
use super::outside::Outside;
use super::resolve::{Resolved, in_order, resolve};
use std::path::Path;

/// Reads a spec with the keys of `table`, then checks `rules` in their order. `name` is the file's name in messages.
/// Relative paths in the spec start at `dir`. `sets` are overrides `path=value`; a later one wins over an earlier one.
/// `outside`: the choices from outside that the spec may name.
pub fn load(
    table: &'static Table,
    rules: &[&[Rule]],
    text: &str,
    name: &str,
    dir: &Path,
    sets: &[String],
    outside: &Outside,
) -> Result<Resolved, SpecErrors> {
    let mut layers = Layers::new(table, outside);
    layers.apply(text, name, sets);
    let mut values = resolve(&mut layers, dir);
    for (key, item) in table.keys().filter_map(|key| Some((key, values.items.get(key.path)?))) {
        if let Some(val) = &item.val {
            outside.named(&key.kind, val, key.path, &mut values.outside);
        }
    }
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

/// Reads the file that a key's choice names. If the file cannot be read, the spec is invalid, and an error is added to
/// `layers`.
fn read_file(key: &'static str, file: &FileOf, values: &mut Resolved, layers: &mut Layers) {
    let Some(Val::Tag(choice, Some(named))) = values.get(key) else { return };
    if *choice != file.choice {
        return;
    }
    let (named, location) = (named.text(), values.items[key].location.clone());
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
    if let Some(location) = location {
        let (message, remedy) = (shorten_to(200, &error.message), shorten_to(200, &error.remedy));
        let message = format!("the {choice} \"{}\" cannot be used: {at}{message}", shorten(named));
        layers.error(&location, &format!("{key}.{choice}"), message, remedy);
    }
}

#[cfg(test)]
mod tests {
    use super::super::key::{Absent, Key, key};
    use super::super::kind::ValueKind;
    use super::super::section::{Choices, Section};
    use super::super::show::to_toml;
    use super::super::{COUNT, Preset, SOME_TIME, choices, section};
    use super::*;
    use crate::base::units::{Span, US};

    section! {
        /// A section that has nothing to do with drives: the engine does not depend on the keys.
        #[derive(Debug, PartialEq)]
        struct Kettle {
            litres: u64 = key("kettle.litres", COUNT, "2", "capacity").note("assumption"),
            after: Span = key("kettle.after", SOME_TIME, "\"5us\"", "time until the heating starts"),
            lid: Lid = key("kettle.lid", ValueKind::Slot(Lid::CHOICES), "\"open\"", "position of the lid"),
        }
    }

    choices! {
        /// `kettle.lid`.
        #[derive(Clone, Copy, Debug, PartialEq)]
        enum Lid {
            Open = "open": "steam goes out",
            Shut = "shut": "steam stays in",
        }
    }

    const SEED: Key = key("seed", COUNT, "1", "seed of all random draws");

    static TABLE: Table = Table {
        keys: &[&[SEED], Kettle::KEYS, &[key("kettle.like", ValueKind::Text, "", "another kettle")]],
        preset: "kettle.like",
        presets: &[Preset { name: "large", about: "ten litres", text: "[kettle]\nlitres = 10\n" }],
        exclusive: &[],
        one_of: &[],
        without_policies: &[],
        absent: &[Absent { names: &["toaster", "ajar"], instead: "use a kettle" }],
        example: "kettle.litres=3",
        table_example: "kettle.lid={shut={}}",
    };

    fn no_empty_kettle(check: &mut Check<'_>) -> Option<()> {
        if check.int("kettle.litres")? == 0 {
            check.error(&["kettle.litres"], "there is nothing to boil", "fill it");
        }
        Some(())
    }

    fn read(text: &str, sets: &[&str]) -> Result<Resolved, String> {
        let sets: Vec<String> = sets.iter().map(|set| set.to_string()).collect();
        load(&TABLE, &[&[no_empty_kettle]], text, "k.toml", Path::new("."), &sets, &Outside::default())
            .map_err(|e| e.to_string())
    }

    #[test]
    fn any_table_is_read_with_its_defaults_presets_and_rules() {
        let values = read("[kettle]\nlike = \"large\"\nlid = \"shut\"\n", &["seed=7"]).unwrap();
        assert_eq!(Kettle::of(&values), Kettle { litres: 10, after: 5 * US, lid: Lid::Shut });
        let shown = to_toml(&TABLE, &values);
        assert!(shown.contains("\nseed = 7  # seed of all random draws (--set)\n"), "{shown}");
        assert!(shown.contains("\nlitres = 10  # capacity (preset large:2)\n"), "{shown}");
        let empty = read("[kettle]\nlitres = 0\n", &[]).unwrap_err();
        assert_eq!(empty, "k.toml:2: kettle.litres: there is nothing to boil\n  remedy: fill it");
        let unknown = read("", &["kettle.litre=1"]).unwrap_err();
        assert!(
            unknown.contains("did you mean kettle.litres? [kettle] has: litres, after, lid, like"),
            "{unknown}"
        );
    }

    #[test]
    fn what_is_not_modelled_is_told_by_its_name() {
        let remedy = "use a kettle; see docs/explanation/not-modelled.md";
        for (text, place) in [
            ("[toaster]\nslices = 2\n", "k.toml:1: toaster"),
            ("[kettle]\ntoaster = 2\n", "k.toml:2: kettle.toaster"),
        ] {
            let error = read(text, &[]).unwrap_err();
            assert_eq!(error, format!("{place}: not modelled\n  remedy: {remedy}"));
        }
        let choice = read("[kettle]\nlid = \"ajar\"\n", &[]).unwrap_err();
        assert!(
            choice
                .starts_with(&format!("k.toml:2: kettle.lid: \"ajar\" is not modelled\n  remedy: {remedy}"))
        );
        assert!(choice.ends_with("; choices: \"open\", \"shut\""), "{choice}");
    }
}
