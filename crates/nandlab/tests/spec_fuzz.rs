//! Whatever is written into a spec: no panic; it loads, or there is an error that says where.

use nandlab::spec::{Loaded, SpecErrors, key_paths, load};
use proptest::prelude::*;
use std::path::Path;

fn load_with(text: &str, sets: &[String]) -> Result<Loaded, SpecErrors> {
    load(text, "run.toml", Path::new(""), sets)
}

/// Values of every type and unit, in range and far out of it.
fn value() -> impl Strategy<Value = String> {
    let quoted = |s: String| serde_json::Value::from(s).to_string();
    prop_oneof![
        any::<i64>().prop_map(|i| i.to_string()),
        (0..100u32).prop_map(|i| i.to_string()),
        any::<f64>().prop_map(|x| if x.is_nan() { "nan".into() } else { format!("{x:?}") }),
        (0.0..1.0f64).prop_map(|x| format!("{x:?}")),
        any::<bool>().prop_map(|b| b.to_string()),
        "[ -~]{0,12}".prop_map(quoted),
        "[0-9]{1,22}(\\.[0-9]{1,20})? ?(ns|us|ms|s|min|h|d|B|KiB|MiB|GiB|TiB|GB|uJ|W)".prop_map(quoted),
        prop::sample::select(vec![
            "[]",
            "{}",
            "[1, 2]",
            "1979-05-27",
            "[{ pe = 1, every = \"1d\" }]",
            "{ random = { k = 3 } }",
            "{ k = 8 }",
            "{ lsb = \"1ms\", msb = \"2ms\" }",
            "{ fastest = \"1ms\", slowest = \"2ms\" }",
            "{ queue_depth = 4 }",
            "{ iops = 5 }",
            "\"trace\"",
            "\"greedy\"",
            "\"fifo\"",
            "\"static\"",
            "\"3d-tlc\"",
            "\"slc\"",
            "\"pts\"",
            "\"fill\"",
            "\"laldpc-32g\"",
            "\"modern-tlc-1t\"",
            "\"unlimited\"",
            "\"none\"",
            "{ size = {} }",
            "{ size = { \"4KiB\" = 1, \"8KiB\" = 2 }, address = { zipf = 0.9 } }",
            "{ requests = 5, span = 1e-300 }",
            "99999999999999999999",
            "inf",
            "-0.0",
            "{ a = { b = { c = 1 } } }",
        ])
        .prop_map(String::from),
    ]
}

fn setting() -> impl Strategy<Value = (String, String)> {
    (prop::sample::select(key_paths()), value()).prop_map(|(path, value)| (path.to_string(), value))
}

/// It loads and what `show` prints loads again as the same, or every error names a line.
fn loads_or_says_where(text: &str) {
    match load_with(text, &[]) {
        Ok(first) => {
            let shown = first.to_toml();
            let second = load_with(&shown, &[]).unwrap_or_else(|e| panic!("{e}\n{shown}"));
            assert_eq!(first.spec, second.spec);
            assert_eq!(first.hash(), second.hash());
        }
        Err(errors) => {
            assert!(!errors.all().is_empty());
            for error in errors.all() {
                let line = error.line.unwrap_or_else(|| panic!("no line: {error}\n{text}"));
                let last = if error.origin == "run.toml" { text.lines().count().max(1) } else { 100 };
                assert!((1..=last).contains(&(line as usize)), "{error}\n{text}");
                assert!(!error.message.is_empty() && !error.remedy.is_empty(), "{error}");
                assert!(!error.to_string().contains('\u{1b}'));
            }
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(2000))]

    #[test]
    fn any_bytes_are_read_without_panic(bytes in prop::collection::vec(any::<u8>(), 0..300)) {
        loads_or_says_where(&String::from_utf8_lossy(&bytes));
    }

    #[test]
    fn any_text_of_toml_letters_is_read_without_panic(text in "([a-z_]{1,8}|[.=\\[\\]{}\"'#,0-9\n ]|drive|gc|op){0,60}") {
        loads_or_says_where(&text);
    }

    #[test]
    fn any_keys_with_any_values_load_or_say_where(settings in prop::collection::vec(setting(), 1..8)) {
        let mut text = String::from("# a comment\n");
        let mut seen = Vec::new();
        for (path, value) in settings {
            if !seen.contains(&path) {
                text.push_str(&format!("{path} = {value}\n"));
                seen.push(path);
            }
        }
        loads_or_says_where(&text);
    }

    #[test]
    fn any_mutation_of_a_valid_spec_loads_or_says_where(at in any::<prop::sample::Index>(), to in any::<char>()) {
        let valid = include_str!("../../../examples/trace.toml");
        let chars: Vec<char> = valid.chars().collect();
        let at = at.index(chars.len());
        let mut text: String = chars[..at].iter().collect();
        text.push(to);
        text.extend(&chars[at + 1..]);
        loads_or_says_where(&text);
    }

    #[test]
    fn any_overrides_are_read_without_panic(settings in prop::collection::vec(setting(), 0..4), wild in ".{0,30}") {
        let mut sets: Vec<String> = settings.iter().map(|(path, value)| format!("{path}={value}")).collect();
        let with_settings = load_with("[workload]\nsynthetic = {}\n", &sets);
        if let Err(errors) = with_settings {
            prop_assert!(!errors.to_string().is_empty());
        }
        sets.push(wild);
        let _ = load_with("", &sets).map_err(|e| e.to_string());
    }
}

#[test]
fn deep_nesting_is_refused_and_not_a_stack_overflow() {
    let deep = format!("seed = {}{}", "[".repeat(100_000), "]".repeat(100_000));
    assert!(load_with(&deep, &[]).is_err());
    let dotted = format!("gc.{} = 1", vec!["a"; 100_000].join("."));
    assert!(load_with(&dotted, &[]).is_err());
    assert!(load_with("", &[dotted.replace(' ', "")]).is_err());
    let mixed =
        format!("{}1{}", "{ a.b.c.d.e.f.g.h.i.j.k.l.m.n.o.p = \n".repeat(100_000), "}".repeat(100_000));
    assert!(load_with(&format!("seed = {mixed}"), &[]).is_err());
    let below = format!("gc.victim.{}=1", vec!["a"; 50_000].join("."));
    assert!(load_with("", &[below]).is_err());
    let below = format!("workload.synthetic.{}=1", vec!["a"; 50_000].join("."));
    assert!(load_with("", &[below]).is_err());
}
