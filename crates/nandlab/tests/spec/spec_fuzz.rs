//! Random specs: a spec loads, or each of its errors names a line; the parser never panics.

use nandlab::drive::spec::Retention;
use nandlab::drive::spec::{LevelSpec, Loaded, key_paths, load, superblock_needs};
use nandlab::spec::SpecErrors;
use proptest::prelude::*;
use std::path::Path;

fn load_with(text: &str, sets: &[String]) -> Result<Loaded, SpecErrors> {
    load(text, "run.toml", Path::new(""), sets)
}

/// Returns values of every type and unit, in range and far out of range.
fn value() -> impl Strategy<Value = String> {
    let quoted = |s: String| serde_json::Value::from(s).to_string();
    prop_oneof![
        any::<i64>().prop_map(|i| i.to_string()),
        (0..100u32).prop_map(|i| i.to_string()),
        any::<f64>().prop_map(|x| if x.is_nan() { "nan".into() } else { format!("{x:?}") }),
        (0.0..1.0f64).prop_map(|x| format!("{x:?}")),
        any::<bool>().prop_map(|b| b.to_string()),
        "[ -~]{0,12}".prop_map(quoted),
        "[0-9]{1,22}(\\.[0-9]{1,20})? ?(ns|us|ms|s|min|h|d|B|KiB|MiB|GiB|TiB|GB|uJ|W|mF|V)".prop_map(quoted),
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
            "{ read = \"1us\", multi_plane_program = \"2us\" }",
            "{ multi_plane_read = \"each\" }",
            "{ mb_per_s = 1000 }",
            "{ mb_per_s = 1e-9, latency = \"1us\" }",
            "{ queue_depth = 4 }",
            "{ iops = 5 }",
            "\"trace\"",
            "\"greedy\"",
            "\"fifo\"",
            "\"static\"",
            "\"3d-tlc\"",
            "\"tlc\"",
            "{ lsb = \"40us\", msb = \"70us\" }",
            "{ lsb = \"40us\", csb = \"60us\", msb = \"50us\" }",
            "\"slc\"",
            "\"pts\"",
            "\"fill\"",
            "\"laldpc-32g\"",
            "\"modern-tlc-1t\"",
            "\"unlimited\"",
            "\"none\"",
            "{ demand = { cache = \"8KiB\", eviction = { read-level = { fixed = 3 } } } }",
            "{ demand = {} }",
            "{ demand = { translation_level = \"cached-only\", miss = \"each\", write_back = \"before-insert\" } }",
            "{ smart = { cold_share = 0.5 } }",
            "\"punctual\"",
            "\"laldpc\"",
            "[{ rber_max = 0.01, sense = \"1us\", transfer = \"0s\", decode = \"0s\" }]",
            "\"block-level\"",
            "\"drive-level\"",
            "{ table = { rows = [{ pe = 0, age = \"1d\", level = 3 }] } }",
            "\"incremental\"",
            "{ vth = { dvpp = 0.3 } }",
            "{ table = \"no-such.csv\" }",
            "[{ age = \"1d\", share = 0.5 }, { age = \"2d\", share = 0.5 }]",
            "[{ from = \"0d\", celsius = 25 }, { from = \"180d\", celsius = 60 }]",
            "\"measured\"",
            "\"csw\"",
            "\"metadata\"",
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

/// Checks that the text loads and that its shown form loads as an equal spec, or that every error names a line.
fn loads_or_names_lines(text: &str) {
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
                let line = error.line.unwrap_or_else(|| panic!("the error names no line: {error}\n{text}"));
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
        loads_or_names_lines(&String::from_utf8_lossy(&bytes));
    }

    #[test]
    fn any_text_of_toml_letters_is_read_without_panic(text in "([a-z_]{1,8}|[.=\\[\\]{}\"'#,0-9\n ]|drive|gc|op){0,60}") {
        loads_or_names_lines(&text);
    }

    #[test]
    fn any_keys_with_any_values_load_or_name_lines(settings in prop::collection::vec(setting(), 1..8)) {
        let mut text = String::from("# a comment\n");
        let mut seen = Vec::new();
        for (path, value) in settings {
            if !seen.contains(&path) {
                text.push_str(&format!("{path} = {value}\n"));
                seen.push(path);
            }
        }
        loads_or_names_lines(&text);
    }

    #[test]
    fn any_mutation_of_a_valid_spec_loads_or_names_lines(at in any::<prop::sample::Index>(), to in any::<char>()) {
        let valid = include_str!("../../../../examples/trace.toml");
        let chars: Vec<char> = valid.chars().collect();
        let at = at.index(chars.len());
        let mut text: String = chars[..at].iter().collect();
        text.push(to);
        text.extend(&chars[at + 1..]);
        loads_or_names_lines(&text);
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

/// Returns valid specs of LaLDPC.
fn laldpc() -> impl Strategy<Value = String> {
    let eviction = prop_oneof![
        Just("\"lru\"".to_string()),
        (1..=u32::MAX).prop_map(|fixed| format!("{{ read-level = {{ fixed = {fixed} }} }}")),
    ];
    let map = prop_oneof![
        Just("\"page\"".to_string()),
        (1..1u64 << 32, eviction).prop_map(|(entries, eviction)| {
            format!("{{ demand = {{ cache = \"{}B\", eviction = {eviction} }} }}", entries * 8)
        }),
    ];
    // Each level is drawn as a step from the level before, so that the values rise.
    let step = (1e-6..0.02f64, 0..1_000_000u64, 0..1_000_000u64, 0..1_000_000u64);
    let levels = prop_oneof![
        Just("\"laldpc\"".to_string()),
        prop::collection::vec(step, 1..=16).prop_map(|steps| {
            let (mut rber, mut sense, mut transfer) = (0.0, 1, 0);
            let level = |(r, s, t, decode)| {
                (rber, sense, transfer) = (rber + r, sense + s, transfer + t);
                format!(
                    "{{ rber_max = {rber:?}, sense = \"{sense}ns\", transfer = \"{transfer}ns\", decode = \"{decode}ns\" }}"
                )
            };
            format!("[{}]", steps.into_iter().map(level).collect::<Vec<_>>().join(", "))
        }),
    ];
    let rber = prop_oneof![
        Just("\"none\"".to_string()),
        (0.01..=0.6f64, 0.0..=0.5f64, 0.001..=0.1f64, any::<bool>()).prop_map(|(dvpp, noise, step, kind)| {
            format!(
                "{{ vth = {{ dvpp = {dvpp:?}, cell_to_cell = {noise:?}, sensing_step = {step:?}, per_page_kind = {kind}, unworn_loss = {} }} }}",
                1e4 * noise
            )
        }),
    ];
    let ages = prop_oneof![
        (0..=21_900u32).prop_map(|days| format!("\"{days}d\"")),
        prop::collection::vec((0..=21_900u32, 1..1000u32), 1..=32).prop_map(|ages| {
            let sum: u32 = ages.iter().map(|(_, weight)| weight).sum();
            let item = |(days, weight): &(u32, u32)| {
                format!("{{ age = \"{days}d\", share = {:?} }}", f64::from(*weight) / f64::from(sum))
            };
            format!("[{}]", ages.iter().map(item).collect::<Vec<_>>().join(", "))
        }),
    ];
    let start = prop::sample::select(vec![
        "\"first\"",
        "\"ideal\"",
        "\"last-level\"",
        "\"block-level\"",
        "\"drive-level\"",
        "{ table = { rows = [{ pe = 0, age = \"0s\", level = 1 }, { pe = 9, age = \"9d\", level = 1 }] } }",
    ]);
    let retry = prop::sample::select(vec!["full", "incremental"]);
    (map, levels, rber, ages, start, retry).prop_map(|(map, levels, rber, ages, start, retry)| {
        format!(
            "ftl.map = {map}\necc = {{ levels = {levels}, start = {start}, retry = \"{retry}\" }}\n\
             reliability = {{ rber = {rber}, retention = {ages} }}\n"
        )
    })
}

proptest! {
    #[test]
    fn every_valid_spec_of_laldpc_loads_and_its_shown_form_loads_as_an_equal_spec(text in laldpc()) {
        let first = load_with(&text, &[]).unwrap_or_else(|e| panic!("{e}\n{text}"));
        let shown = first.to_toml();
        let second = load_with(&shown, &[]).unwrap_or_else(|e| panic!("{e}\n{shown}"));
        prop_assert_eq!(&first.spec, &second.spec);
        prop_assert_eq!(first.hash(), second.hash());
        let levels = &first.spec.ecc.levels;
        let sense = |level: &LevelSpec| level.sense.map(|times| times.msb_ns);
        prop_assert!(levels.is_sorted_by(|a, b| a.rber_max < b.rber_max && sense(a) <= sense(b)));
        match &first.spec.reliability.retention {
            Retention::Shares(shares) => {
                prop_assert!((shares.iter().map(|(_, share)| share).sum::<f64>() - 1.0).abs() < 1e-9);
            }
            Retention::Spread { from, until } => prop_assert!(from <= until),
        }
    }
}

/// Returns valid specs of write caches.
fn write_cache() -> impl Strategy<Value = String> {
    let share = || 0.0..=1.0f64;
    let sync = prop_oneof![
        prop::sample::select(vec!["\"none\"", "\"punctual\"", "\"greedy\"", "\"smart\""])
            .prop_map(String::from),
        (share(), share(), share()).prop_map(|(margin, cold, busy)| {
            format!(
                "{{ smart = {{ budget_margin = {margin:?}, cold_share = {cold:?}, busy_from = {busy:?} }} }}"
            )
        }),
    ];
    let room = prop::sample::select(vec!["skip", "wait"]);
    (8..1u64 << 31, sync, share(), 0..1_000_000u32, room).prop_map(|(sectors, sync, budget, access, room)| {
        let size = sectors * 512;
        format!(
            "cache = {{ size = \"{size}B\", sync = {sync}, dirty_budget = {budget:?}, access = \"{access}ns\", \
             read_room = \"{room}\" }}\n"
        )
    })
}

proptest! {
    #[test]
    fn every_valid_spec_of_a_write_cache_loads_and_its_shown_form_loads_as_an_equal_spec(text in write_cache()) {
        let first = load_with(&text, &[]).unwrap_or_else(|e| panic!("{e}\n{text}"));
        let shown = first.to_toml();
        let second = load_with(&shown, &[]).unwrap_or_else(|e| panic!("{e}\n{shown}"));
        prop_assert_eq!(&first.spec, &second.spec);
        prop_assert_eq!(first.hash(), second.hash());
    }
}

/// Returns valid specs of capacitors with a measured budget.
fn capacitor() -> impl Strategy<Value = String> {
    let profile = prop_oneof![
        (-40.0..=125.0f64).prop_map(|celsius| format!("{celsius:?}")),
        prop::collection::vec((1..1_000_000_000_000u64, -40.0..=125.0f64), 1..=32).prop_map(|steps| {
            let mut from = 0;
            let entry = |(step, celsius): (u64, f64)| {
                let text = format!("{{ from = \"{from}ns\", celsius = {celsius:?} }}");
                from += step;
                text
            };
            format!("[{}]", steps.into_iter().map(entry).collect::<Vec<_>>().join(", "))
        }),
    ];
    let energy = (1e-9..1e3f64, 0.1..5.0f64, 1e-6..50.0f64, 1e-3..=1.0f64);
    let power = (0.0..100.0f64, 1e-9..1.0f64);
    let detection = (1..1u64 << 50, 0.0..1.0f64, 0.0..0.9f64, 0.0..=1.0f64);
    let steps = prop::sample::select(vec!["five", "continuous"]);
    let flush = (
        prop::sample::select(vec!["plain", "csw"]),
        0..=16u32,
        prop::sample::select(vec!["oldest", "newest", "metadata"]),
        1..1u64 << 30,
    );
    let cut = prop_oneof![
        (0..1u64 << 40).prop_map(|n| format!("cut_after_requests = {n}")),
        (0..1u64 << 60).prop_map(|ns| format!("cut_at = \"{ns}ns\"")),
    ];
    let again = prop_oneof![
        Just(String::new()),
        (0..1u64 << 60).prop_map(|ns| format!(", cut_in_recovery = \"{ns}ns\"")),
    ];
    let cut = (cut, again).prop_map(|(cut, again)| cut + &again);
    (profile, energy, power, detection, steps, flush, cut, 0..=21_900u32).prop_map(
        |(profile, energy, power, detection, steps, flush, cut, age)| {
            let (farad, least, above, efficiency) = energy;
            let (every, grace, recharge, margin) = detection;
            let part = |share: f64| (every as f64 * share) as u64;
            let (method, concurrency, order, sectors) = flush;
            format!(
                "cache = {{ size = \"1MiB\", sync = \"smart\", dirty_budget = \"measured\" }}\n\
                 power = {{ {cut} }}\n[capacitor]\ncapacitance = {farad:?}\nvoltage = {:?}\nvoltage_min = {least:?}\n\
                 efficiency = {efficiency:?}\ntemperature = {profile}\nage = \"{age}d\"\ncontroller_power = {:?}\n\
                 program_power = {:?}\ndetect_every = \"{every}ns\"\ndetect_grace = \"{}ns\"\nrecharge = \"{}ns\"\n\
                 margin = {margin:?}\nsteps = \"{steps}\"\nflush = \"{method}\"\nflush_concurrency = {concurrency}\n\
                 flush_order = \"{order}\"\nmetadata = \"{}B\"\n",
                least + above,
                power.0,
                power.1,
                part(grace),
                part(recharge),
                sectors * 512,
            )
        },
    )
}

proptest! {
    #[test]
    fn every_valid_spec_of_a_capacitor_loads_and_its_shown_form_loads_as_an_equal_spec(text in capacitor()) {
        let first = load_with(&text, &[]).unwrap_or_else(|e| panic!("{e}\n{text}"));
        let shown = first.to_toml();
        let second = load_with(&shown, &[]).unwrap_or_else(|e| panic!("{e}\n{shown}"));
        prop_assert_eq!(&first.spec, &second.spec);
        prop_assert_eq!(first.hash(), second.hash());
        prop_assert!(first.spec.models_power_loss() && superblock_needs(&first.spec).of("flush").free >= 1);
    }
}

#[test]
fn deep_nesting_is_refused_without_a_stack_overflow() {
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
