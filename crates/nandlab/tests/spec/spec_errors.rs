//! The texts of errors in specs. An error of a key names the key, the line of the file or `--set`, and a remedy.

use nandlab::drive::spec::{Loaded, load};
use nandlab::spec::SpecErrors;
use std::path::Path;

fn load_with(text: &str, sets: &[&str]) -> Result<Loaded, SpecErrors> {
    let sets: Vec<String> = sets.iter().map(|s| s.to_string()).collect();
    load(text, "run.toml", Path::new(""), &sets)
}

/// Returns the text of all errors of a spec.
fn says(text: &str) -> String {
    load_with(text, &[]).expect_err(text).to_string()
}

fn set_says(text: &str, set: &str) -> String {
    load_with(text, &[set]).expect_err(set).to_string()
}

#[track_caller]
fn golden(text: &str, expected: &str) {
    assert_eq!(says(text), expected);
}

#[test]
fn unknown_keys_and_sections_are_errors() {
    golden(
        "seed = 3\n[gc]\nvictm = \"greedy\"\n",
        "run.toml:3: gc.victm: unknown key\n  remedy: did you mean gc.victim? [gc] has: victim, pacing, foreground, background_free, \
         foreground_free, idle_valid_max, idle_after",
    );
    golden(
        "[ftl]\nidle_after = \"1ms\"\n",
        "run.toml:2: ftl.idle_after: unknown key\n  remedy: did you mean gc.idle_after or slc.idle_after? [ftl] has: map, \
         mapping_unit, buffer, superblock, allocation, streams, wear_levelling, wear_gap",
    );
    let sections = "sections: drive, host, timing, ftl, placement, gc, ecc, reliability, \
                    refresh, reclaim, \
                    migration, slc, cache, capacitor, power, energy, precondition, workload, output; \
                    keys above the sections: seed";
    golden(
        "[timings]\nread = \"1us\"\n",
        &format!("run.toml:1: timings: unknown section or key\n  remedy: did you mean [timing]? {sections}"),
    );
    golden(
        "op = 0.1\n",
        &format!("run.toml:1: op: unknown section or key\n  remedy: did you mean drive.op? {sections}"),
    );
    golden(
        "gc = 3\n",
        "run.toml:1: gc: expected a section, found the number 3\n  remedy: write [gc] and its keys below it",
    );
}

#[test]
fn text_that_is_not_toml_is_an_error() {
    golden(
        "seed = 1\n[drive\nop = 0.1\n",
        "run.toml:2: not TOML: unclosed table, expected `]`\n  remedy: correct the line, which reads: [drive",
    );
    golden(
        "seed = 1\nseed = 2\n",
        "run.toml:2: not TOML: duplicate key\n  remedy: correct the line, which reads: seed = 2",
    );
}

#[test]
fn messages_about_long_input_are_short() {
    golden(
        &format!("[gc]\nvictim = \"\u{202e}{}\"\n", "x".repeat(1000)),
        &says(&format!("[gc]\nvictim = \"\u{202e}{}\"\n", "x".repeat(32))).replace("xx\"", "xx...\""),
    );
    let long = "x".repeat(100_000);
    let every = [
        says(&format!("{long} = 1\n")),
        says(&format!("[gc]\n{long} = 1\n")),
        says(&format!("[gc]\n{} = 1\n", vec!["x"; 60].join("."))),
        says(&format!("[gc]\nvictim = [\"{long}\"\n")),
        says(&format!("[gc]\nvictim.{long} = 1\n")),
        says(&format!("[gc]\nvictim = {{ {long} = 1, b = 2 }}\n")),
        says(&format!("[gc]\nvictim.random.{long} = 1\n")),
        says(&format!("[workload]\nsynthetic.size.{long} = 1\n")),
        says(&format!("[reliability]\nrber.table = \"{long}\"\n[ecc]\nlevels = \"laldpc\"\n")),
        set_says("", &format!("gc.{}=1", "x.".repeat(100_000))),
        set_says("", &format!("gc.victim={long}")),
        set_says("", &long),
        load(&format!("[gc]\n{long} = 1\n"), &long, Path::new(""), &[]).unwrap_err().to_string(),
    ];
    let tiny = ["gc.background_free", "capacitor.voltage", "cache.dirty_budget", "reliability.clock_scale"];
    let with_tiny = tiny.map(|key| {
        let refreshed = "[refresh]\npolicy = \"fcr\"\ninterval = [{ pe = 1, every = \"1d\" }]\n\
                         [workload]\nprofile = \"a\"\narrival = { iops = 1.0 }\nrequests = 9\n";
        set_says(refreshed, &format!("{key}=5e-324"))
    });
    for text in every.into_iter().chain(with_tiny) {
        assert!(text.lines().all(|line| line.len() < 400), "{text}");
        assert!(text.contains("\n  remedy: ") && text.lines().count() <= 3, "{text}");
        assert!(!text.contains(&"x".repeat(161)), "{text}");
    }
}

#[test]
fn no_file_name_has_a_zero_byte() {
    golden(
        "[workload]\ntrace = \"a\\u0000b\"\n",
        "run.toml:2: workload.trace: \"a\\0b\" has a zero byte, which no file name has\n  remedy: write a file name in quotes",
    );
}

#[test]
fn too_large_specs_and_tables_are_errors() {
    let sizes = |count| {
        let entries: Vec<String> = (1..=count).map(|i| format!("\"{}B\" = 1", 512 * i)).collect();
        format!("[workload]\nsynthetic.size = {{ {} }}\n", entries.join(", "))
    };
    load_with(&sizes(4096), &[]).unwrap_or_else(|e| panic!("{e}"));
    golden(
        &sizes(4097),
        "run.toml:2: workload.synthetic.size: a table of 4097 sizes\n  remedy: write at most 4096",
    );
    golden(
        &" ".repeat((1 << 20) + 1),
        "run.toml: 1048577 bytes, more than the 1MiB of a spec\n  remedy: check that this is the right file",
    );
    load_with(&" ".repeat(1 << 20), &[]).unwrap_or_else(|e| panic!("{e}"));
}

#[test]
fn the_message_about_many_unknown_keys_is_short() {
    for head in ["", "[gc]\n", "[gc.victim.random]\n"] {
        let keys: String = (0..60_000).map(|i| format!("victm{i} = 1\n")).collect();
        let errors = load_with(&format!("{head}{keys}"), &[]).unwrap_err();
        assert_eq!(errors.all().len(), 60_000);
        assert!(errors.all().iter().all(|error| !error.remedy.is_empty()));
        assert!(errors.to_string().lines().count() <= 25, "{errors}");
    }
    let errors = load_with(&format!("[drive]\n{}", "chips = 1\n".repeat(100_000)), &[]).unwrap_err();
    assert_eq!(errors.all().len(), 1, "errors that follow from the first are reported as well");
}

#[test]
fn unknown_policies_and_parameters_are_errors() {
    let choices = nandlab::background::gc::POLICIES.iter().map(|(info, _)| match info.params {
        [] => format!("\"{}\"", info.name),
        params => {
            let params = params.iter().map(|p| match p.default.unwrap_or(p.min) {
                value if p.whole => format!("{} = {value}", p.name),
                value => format!("{} = {value:?}", p.name),
            });
            format!("{{ {} = {{ {} }} }}", info.name, params.collect::<Vec<_>>().join(", "))
        }
    });
    let choices = choices.collect::<Vec<_>>().join(", ");
    golden(
        "[gc]\nvictim = \"gredy\"\n",
        &format!(
            "run.toml:2: gc.victim: unknown value \"gredy\"\n  remedy: did you mean \"greedy\"? choices: {choices}"
        ),
    );
    golden(
        "[gc]\nvictim.lottery = {}\n",
        &format!("run.toml:2: gc.victim: unknown value \"lottery\"\n  remedy: choices: {choices}"),
    );
    golden(
        "[gc]\nvictim.random = { k = 0, j = 1 }\n",
        "run.toml:2: gc.victim.random.j: unknown parameter\n  remedy: there are: k\n\
         run.toml:2: gc.victim.random.k: the number 0 is out of range\n  remedy: a value from 1 to 65536",
    );
    golden(
        "[gc]\nvictim.greedy = { k = 1 }\n",
        "run.toml:2: gc.victim.greedy: takes no parameters\n  remedy: write victim = \"greedy\"",
    );
    golden(
        "[gc]\nvictim = { greedy = {}, fifo = {} }\n",
        &format!(
            "run.toml:2: gc.victim: expected one choice, found a table of fifo, greedy\n  remedy: write one of {choices}"
        ),
    );
    golden(
        "[gc]\nvictim = 3\n",
        &format!(
            "run.toml:2: gc.victim: expected one of its choices, found the number 3\n  remedy: write one of {choices}"
        ),
    );
    golden(
        "[workload]\nprofile = \"a/b\"\narrival = \"queue_depth\"\n",
        "run.toml:3: workload.arrival: \"queue_depth\" needs a value\n  remedy: write { queue_depth = 1 }",
    );
}

#[test]
fn the_error_of_an_unknown_allocation_lists_all_orders() {
    let text = says("[ftl]\nallocation = \"CWDX\"\n");
    assert!(
        text.starts_with(
            "run.toml:2: ftl.allocation: unknown value \"CWDX\"\n  remedy: did you mean \"CWDP\"?"
        )
    );
    let listed = text.split("choices: ").nth(1).unwrap();
    assert_eq!(listed.split(", ").count(), 25, "{listed}");
    let mut orders: Vec<&str> =
        listed.split(", ").map(|o| o.trim_matches('"')).filter(|o| *o != "dynamic").collect();
    orders.sort_unstable();
    orders.dedup();
    assert_eq!(orders.len(), 24);
    for order in orders {
        let mut letters: Vec<u8> = order.bytes().collect();
        letters.sort_unstable();
        assert_eq!(letters, b"CDPW", "{order} is no permutation of CWDP");
        load_with("", &[&format!("ftl.allocation={order}")]).unwrap_or_else(|e| panic!("{e}"));
    }
}

#[test]
fn wrong_refresh_policies_are_errors() {
    let policy = |policy: &str| format!("[refresh]\npolicy = {policy}\n");
    golden(
        &policy("\"ec-cache\""),
        "run.toml:2: refresh.policy: \"ec-cache\" has no effect with reliability.rber = \"none\"\n  remedy: set \
         reliability.rber, such as \"vth\", or refresh.policy = \"fcr\"",
    );
    golden(
        &policy("{ fcr = { reprogram_error = 1e-4 } }"),
        "run.toml:2: refresh.policy: reprogram_error has no effect without in_place = true\n  remedy: set in_place = \
         true, or reprogram_error = 0.0\nrun.toml:2: refresh.policy: reprogram_error has no effect with \
         reliability.rber = \"none\"\n  remedy: set reliability.rber, such as \"vth\", or reprogram_error = 0.0",
    );
    let in_place = policy("{ fcr = { in_place = true } }");
    for cut in ["power.cut_at=1ms", "power.cut_after_requests=5"] {
        assert_eq!(
            set_says(&in_place, cut),
            "run.toml:2: refresh.policy: in_place = true without a capacitor loses data when power fails during a \
             program\n  remedy: set capacitor.capacitance, such as \"75mF\", or in_place = false",
        );
    }
    load_with(&in_place, &["power.cut_at=1ms", "capacitor.capacitance=75mF", "cache.size=1MiB"])
        .unwrap_or_else(|e| panic!("{e}"));
    load_with(&in_place, &[]).unwrap_or_else(|e| panic!("{e}"));
    let errors = "[ecc]\nlevels = \"laldpc\"\n[reliability]\nrber = \"vth\"\n[drive]\ncell = \"mlc\"\n";
    load_with(&(policy("\"ec-cache\"") + errors), &[]).unwrap_or_else(|e| panic!("{e}"));
    for wrong in [
        "{ fcr = { reprogram_error = 0.1, in_place = true } }",
        "{ fcr = { in_place = 1 } }",
        "{ ec-cache = { size = \"100B\" } }",
        "{ ec-cache = { hot_reads = 0 } }",
        "{ ec-cache = { hot_reads = 256 } }",
    ] {
        let text = says(&(policy(wrong) + errors));
        assert!(text.starts_with("run.toml:2: refresh.policy."), "{wrong}: {text}");
    }
}

#[test]
fn the_baselines_of_all_schemes_are_accepted() {
    let text = "ftl.map = \"page\"\n\
        ecc = { levels = \"none\", start = \"first\", retry = \"full\" }\n\
        reliability.rber = \"none\"\n\
        refresh = { policy = \"none\", interval = [{ pe = 100, every = \"1d\" }] }\n\
        migration.policy = \"off-chip\"\n\
        cache = { size = \"0B\", sync = \"none\", dirty_budget = 1 }\n\
        capacitor = { capacitance = \"0F\", flush = \"plain\" }\npower.cut_after_requests = 0\n";
    load_with(text, &[]).unwrap_or_else(|e| panic!("{e}"));
}

#[test]
fn wrong_copyback_limits_are_errors() {
    let limit = |limit: &str| format!("[migration]\npolicy.rcopyback.limit = {limit}\n[drive]\nop = 0.5\n");
    golden(
        "[migration]\npolicy = \"rcopy-back\"\n",
        "run.toml:2: migration.policy: unknown value \"rcopy-back\"\n  remedy: did you mean \"rcopyback\"? choices: \
         \"off-chip\", { rcopyback = { limit = \"table\", occupancy = \"writing\" } }, { rcopyback-greedy = { limit = \"table\" } }",
    );
    golden(
        "[migration]\npolicy.rcopyback-greedy = { occupancy = \"occupied\" }\n",
        "run.toml:2: migration.policy.rcopyback-greedy.occupancy: unknown parameter\n  remedy: there are: limit",
    );
    golden(
        "[migration]\npolicy.rcopyback.occupancy = \"dirty\"\n[drive]\nop = 0.5\n",
        "run.toml:2: migration.policy.rcopyback.occupancy: unknown value \"dirty\"\n  remedy: choices: \"writing\", \
         \"occupied\"",
    );
    assert!(says(&limit("9")).contains("migration.policy.rcopyback.limit"), "{}", says(&limit("9")));
    assert!(says(&limit("-1")).contains("migration.policy.rcopyback.limit"));
    assert!(says(&limit("\"tabel\"")).contains("did you mean \"table\""), "{}", says(&limit("\"tabel\"")));
    let lines = "[{ pe = 3000, copybacks = 2 }, { pe = 1000, copybacks = 4 }]";
    golden(
        &limit(lines),
        "run.toml:2: migration.policy: limit: expected pe above the 3000 of the line before it, found 1000\n  \
         remedy: order the lines by rising pe",
    );
    assert!(says(&limit("[{ pe = 1, copybacks = 9 }]")).contains("copybacks"));
    golden(
        &limit("\"measured\""),
        "run.toml:2: migration.policy: the limit \"measured\" needs read levels, but ecc.levels = \"none\"\n  \
         remedy: set ecc.levels, such as \"laldpc\", or another limit",
    );
    load_with(&limit("\"measured\""), &["ecc.levels=laldpc"]).unwrap_or_else(|e| panic!("{e}"));
}

#[test]
fn wrong_write_caches_are_errors() {
    golden(
        "[cache]\nsync = \"punctual\"\n",
        "run.toml:2: cache.sync: \"punctual\" has no effect without a write cache\n  remedy: set cache.size to a page or \
         more, or cache.sync = \"none\"",
    );
    golden(
        "[cache]\neviction = \"cflru\"\n",
        "run.toml:2: cache.eviction: \"cflru\" has no effect without a write cache\n  remedy: set cache.size to a page or \
         more, or cache.eviction = \"lru\"",
    );
    golden(
        "[cache]\nread_room = \"wait\"\n",
        "run.toml:2: cache.read_room: \"wait\" has no effect without a write cache\n  remedy: set cache.size to a page or \
         more, or cache.read_room = \"skip\"",
    );
    golden(
        "[cache]\nsize = \"2KiB\"\ndirty_budget = 0.9\n",
        "run.toml:3: cache.dirty_budget: 0.9 has no effect without a write cache or buffer\n  remedy: set cache.size to a page or \
         more, or cache.dirty_budget = 1.0",
    );
    for line in [
        "sync = \"punctal\"",
        "sync.smart = { cold = 1 }",
        "sync.smart = { cold_share = 1.5 }",
        "dirty_budget = 1.1",
    ] {
        let text = says(&format!("[cache]\nsize = \"1MiB\"\n{line}\n"));
        assert!(text.starts_with("run.toml:3: cache.") && text.contains("\n  remedy: "), "{text}");
    }
    let text = says("[cache]\nsize = 1000\n");
    assert!(text.contains("without a unit"), "{text}");
    let text = says("[cache]\naccess = \"-1us\"\n");
    assert!(text.starts_with("run.toml:2: cache.access: "), "{text}");
}

#[test]
fn measured_budgets_without_effect_are_errors() {
    let measured = "[cache]\nsize = \"1MiB\"\nsync = \"smart\"\ndirty_budget = \"measured\"\n";
    load_with(measured, &["capacitor.capacitance=75mF"]).unwrap_or_else(|e| panic!("{e}"));
    golden(
        measured,
        "run.toml:4: cache.dirty_budget: \"measured\" needs a capacitor\n  remedy: set capacitor.capacitance, such as \
         \"75mF\", or cache.dirty_budget = 1.0",
    );
    let farad = "[capacitor]\ncapacitance = \"75mF\"\n";
    let text = format!("{farad}[cache]\nsize = \"1MiB\"\ndirty_budget = \"measured\"\n");
    golden(
        &text,
        "run.toml:5: cache.dirty_budget: \"measured\" has no effect with cache.sync = \"none\", which keeps no budget\n  \
         remedy: set cache.sync, such as \"smart\", or cache.dirty_budget = 1.0",
    );
    golden(
        &format!("{farad}[cache]\nsize = \"2KiB\"\ndirty_budget = \"measured\"\n"),
        "run.toml:5: cache.dirty_budget: \"measured\" has no effect without a write cache or buffer\n  remedy: set cache.size to \
         a page or more, or cache.dirty_budget = 1.0",
    );
    golden(
        "[cache]\ndirty_budget = \"mesured\"\n",
        "run.toml:2: cache.dirty_budget: unknown value \"mesured\"\n  remedy: did you mean \"measured\"? choices: \
         \"measured\"",
    );
    golden(
        "[cache]\ndirty_budget = true\n",
        "run.toml:2: cache.dirty_budget: expected a number from 0 to 1 or one of its choices, found true\n  remedy: write a number from 0 to \
         1 or one of \"measured\"",
    );
    assert_eq!(
        set_says(&format!("{measured}{farad}"), "cache.sync=none"),
        "--set: cache.sync: \"measured\" has no effect with cache.sync = \"none\", which keeps no budget\n  remedy: \
         set cache.sync, such as \"smart\", or cache.dirty_budget = 1.0",
    );
}

#[test]
fn an_esr_at_which_nothing_is_usable_is_an_error() {
    // One die: the controller and a program draw 1.0825 W, which are 1.20278 W at the terminals. The discharge from
    // 5.5 V ends at once with 5.5^2 / (4 x 1.20278) = 6.2875 ohm, at terminals of 2.75 V.
    let dies = "[drive]\nchannels = 1\nchips_per_channel = 1\ndies_per_chip = 1\n[capacitor]\nesr = ";
    assert!(load_with(&format!("{dies}\"6287mohm\"\n"), &[]).is_ok());
    let text = says(&format!("{dies}\"6288mohm\"\n"));
    assert!(text.starts_with("run.toml:6: capacitor.esr: nothing of the charge is usable"), "{text}");
    assert!(text.contains("remedy: set capacitor.esr below 6287.5"), "{text}");
}

#[test]
fn gc_in_flush_needs_a_plain_flush_and_a_capacitor() {
    let text = says("[power]\ngc_in_flush = true\n[capacitor]\ncapacitance = \"75mF\"\nflush = \"csw\"\n");
    let expected =
        "power.gc_in_flush: capacitor.flush = \"csw\" stops GC, so GC cannot go on during the flush";
    assert!(text.contains(expected) && text.contains("power.gc_in_flush = false"), "{text}");
    let text = says("[power]\ngc_in_flush = true\n");
    assert!(text.contains("has no effect") && text.contains("set capacitor.capacitance"), "{text}");
}

#[test]
fn wrong_capacitors_are_errors() {
    let is = |lines: &str, expected: &str| golden(&format!("[capacitor]\n{lines}\n"), expected);
    is(
        "voltage_min = \"5500mV\"",
        "run.toml:2: capacitor.voltage_min: expected a lowest voltage below the charged voltage of 5.5V, found 5.5V\n  \
         remedy: set capacitor.voltage_min below capacitor.voltage",
    );
    is(
        "voltage = 2",
        "run.toml:2: capacitor.voltage: expected a lowest voltage below the charged voltage of 2V, found 2.5V\n  \
         remedy: set capacitor.voltage_min below capacitor.voltage",
    );
    for (value, said) in [("0", "0"), ("1.01", "1.01")] {
        is(
            &format!("efficiency = {value}"),
            &format!(
                "run.toml:2: capacitor.efficiency: the number {said} is out of range\n  remedy: a value above 0 and at \
                 most 1"
            ),
        );
    }
    is(
        "capacitance = \"1F\"\ncontroller_power = 0\nprogram_power = 0\n",
        "run.toml:3: capacitor.controller_power: the capacitor never empties if neither controller nor programs draw \
         power\n  remedy: set one of the two powers above 0, such as capacitor.controller_power = \"1W\"",
    );
    is(
        "detect_grace = \"21d\"",
        "run.toml:2: capacitor.detect_grace: a detection waits 21d for an idle drive, but the next one is due after \
         20d\n  remedy: set capacitor.detect_grace to at most \"20d\", or capacitor.detect_every higher",
    );
    is(
        "recharge = \"2d\"\ndetect_every = \"2d\"",
        "run.toml:2: capacitor.recharge: a recharge takes 2d, but the next detection is due after 2d\n  remedy: set \
         capacitor.recharge below \"2d\", or capacitor.detect_every higher",
    );
    is(
        "detect_every = \"0d\"",
        "run.toml:2: capacitor.detect_every: \"0d\" is out of range\n  remedy: a value from 1ns to \
         4611686018427387904ns",
    );
    is(
        "age = \"21901d\"",
        "run.toml:2: capacitor.age: \"21901d\" is out of range\n  remedy: a value from 0ns to 21900d",
    );
    is(
        "margin = 1.5",
        "run.toml:2: capacitor.margin: the number 1.5 is out of range\n  remedy: a value from 0 to 1",
    );
    is(
        "flush_concurrency = 17",
        "run.toml:2: capacitor.flush_concurrency: 17 programs at a time, but the drive has 16 dies\n  remedy: set \
         capacitor.flush_concurrency to at most 16, or 0 for one per die",
    );
    let text = set_says("[capacitor]\nflush_concurrency = 16\n", "drive.channels=2");
    assert!(
        text.starts_with("--set: drive.channels: 16 programs at a time, but the drive has 8 dies"),
        "{text}"
    );
    is(
        "flush_order = \"metadata\"",
        "run.toml:2: capacitor.flush_order: \"metadata\" has no effect with capacitor.metadata = \"0B\"\n  remedy: set \
         capacitor.metadata, such as \"64MiB\", or capacitor.flush_order = \"oldest\"",
    );
    is(
        "flush = \"cws\"",
        "run.toml:2: capacitor.flush: unknown value \"cws\"\n  remedy: did you mean \"csw\"? choices: \"plain\", \"csw\"",
    );
    is(
        "steps = \"six\"",
        "run.toml:2: capacitor.steps: unknown value \"six\"\n  remedy: choices: \"five\", \"continuous\"",
    );
    is(
        "flush_order = \"newset\"",
        "run.toml:2: capacitor.flush_order: unknown value \"newset\"\n  remedy: did you mean \"newest\"? choices: \
         \"oldest\", \"newest\", \"metadata\"",
    );
}

#[test]
fn wrong_temperatures_of_the_capacitor_are_errors() {
    let form = "{ from = \"50us\", celsius = -40.0 }";
    golden(
        "[capacitor]\ntemperature = 126\n",
        "run.toml:2: capacitor.temperature: the number 126 is out of range\n  remedy: a value from -40 to 125",
    );
    golden(
        "[capacitor]\ntemperature = \"25C\"\n",
        &format!(
            "run.toml:2: capacitor.temperature: expected a number from -40 to 125 or a list, found \"25C\"\n  remedy: write a number from \
             -40 to 125 or a list of {form}"
        ),
    );
    golden(
        "[capacitor]\ntemperature = []\n",
        &format!("run.toml:2: capacitor.temperature: an empty list\n  remedy: write at least one {form}"),
    );
    golden(
        "[capacitor]\ntemperature = [\n  { from = \"1d\", celsius = 25 },\n  { from = \"1d\", celsius = 60 },\n  \
         { from = \"2d\", celsius = -41 },\n]\n",
        "run.toml:5: capacitor.temperature[2].celsius: the number -41 is out of range\n  remedy: a value from -40 to \
         125",
    );
    golden(
        "[capacitor]\ntemperature = [\n  { from = \"1d\", celsius = 25 },\n  { from = \"24h\", celsius = 60 },\n]\n",
        "run.toml:3: capacitor.temperature[0].from: expected a profile that begins at \"0d\", found 1d\n  remedy: set from = \
         \"0d\" in the first item\n\
         run.toml:4: capacitor.temperature[1].from: expected a time after the 1d of the previous item, found 1d\n  \
         remedy: order the items by rising time",
    );
}

#[test]
fn wrong_power_cuts_are_errors() {
    let text = "[power]\ncut_after_requests = 5\ncut_at = \"1s\"\n";
    golden(
        text,
        "run.toml:3: power.cut_at: conflicts with power.cut_after_requests\n  remedy: keep exactly one of \
         power.cut_after_requests, power.cut_at",
    );
    golden(
        "[power]\ncut_at = 12\n",
        "run.toml:2: power.cut_at: expected a time, found the number 12 without a unit\n  remedy: write it as \"50us\" \
         (units: ns, us, ms, s, min, h, d)",
    );
    let text = says("[power]\ncut_after_requests = -1\n");
    assert!(
        text.starts_with("run.toml:2: power.cut_after_requests: the number -1 is out of range"),
        "{text}"
    );
}

/// The emergency flush needs free blocks for the dirty pages.
#[test]
fn a_drive_without_blocks_for_the_emergency_flush_is_an_error() {
    // There are 32 planes with blocks of 256 KiB. 16 MiB take two blocks of every plane, and GC may have taken another
    // one. With 16,126 logical pages a plane has 258 of its 16,384 pages left, but needs six blocks, that is 384 pages.
    // 16,000 logical pages per plane, 512,000 in all, fit.
    let fits = "[drive]\nop = 0.016\n[cache]\nsize = \"16MiB\"\n";
    load_with(fits, &[]).unwrap_or_else(|e| panic!("{e}"));
    let message = "a plane has 4.0 blocks beyond its logical pages and needs 6.0: 1 open and 1 free for GC, 3 free for \
                   the emergency flush, 1 of garbage for GC to gain from\n  remedy: set \
                   drive.op = 0.024 or drive.blocks_per_plane = 381";
    golden(
        &format!("{fits}[capacitor]\ncapacitance = \"75mF\"\n"),
        &format!("run.toml:2: drive.op: {message}"),
    );
    assert_eq!(
        set_says(fits, "capacitor.capacitance=75mF"),
        format!("--set: capacitor.capacitance: {message}")
    );
    for set in ["drive.op=0.024", "drive.blocks_per_plane=381"] {
        load_with(fits, &["capacitor.capacitance=75mF", set]).unwrap_or_else(|e| panic!("{e}"));
    }
    for set in ["drive.op=0.023", "drive.blocks_per_plane=380"] {
        assert!(load_with(fits, &["capacitor.capacitance=75mF", set]).is_err());
    }
    // A detection also writes pages without a cache.
    let text = set_says("[drive]\nop = 0.012\n", "capacitor.capacitance=75mF");
    assert!(
        text.contains(" and needs 4.0: ") && text.contains(", 1 free for the emergency flush, "),
        "{text}"
    );
    // 32 MiB take five blocks of every plane, GC takes a free block and the host an open block: 249 of 256 blocks are
    // left.
    let text = "[precondition]\nused = 0.98\nvalid = 0.5\n[cache]\nsize = \"32MiB\"\n";
    load_with(text, &[]).unwrap_or_else(|e| panic!("{e}"));
    assert_eq!(
        set_says(text, "capacitor.capacitance=75mF"),
        "--set: capacitor.capacitance: used = 0.98 leaves a plane fewer than the 7 blocks that it needs at the start\n  \
         remedy: set used to at most 0.972",
    );
    // 479 translation pages are 15 per plane: they take one block, and the demand map an open and a free block.
    let text = load_with(text, &["capacitor.capacitance=75mF", "ftl.map=demand"]).unwrap_err().to_string();
    assert!(
        text.contains("fewer than the 10 blocks that it needs at the start, translation pages included\n"),
        "{text}"
    );
}

#[test]
fn wrong_demand_maps_are_errors() {
    golden(
        "[ftl]\nmap = \"dmand\"\n",
        "run.toml:2: ftl.map: unknown value \"dmand\"\n  remedy: did you mean \"demand\"? choices: \"page\", { demand = \
         { cache = \"64MiB\", eviction = \"lru\", translation_level = \"remembered\", miss = \"shared\", write_back = \"async\" } }",
    );
    golden(
        "[ftl]\nmap.demand = { cach = \"1MiB\" }\n",
        "run.toml:2: ftl.map.demand.cach: unknown parameter\n  remedy: did you mean cache? there are: cache, eviction, \
         translation_level, miss, write_back",
    );
    golden(
        "[ftl]\nmap.demand = { cache = 64 }\n",
        "run.toml:2: ftl.map.demand.cache: expected a size, found the number 64 without a unit\n  remedy: write it as \
         \"4KiB\" (units: B, KiB, MiB, GiB, TiB, or decimal kB, MB, GB, TB)",
    );
    golden(
        "[ftl]\nmap.demand = { cache = \"0B\" }\n",
        "run.toml:2: ftl.map.demand.cache: \"0B\" is out of range\n  remedy: a value from 8B to 32GiB",
    );
    golden(
        "[ftl]\nmap.demand = { cache = \"20B\" }\n",
        "run.toml:2: ftl.map.demand.cache: \"20B\" is not a multiple of 8B\n  remedy: the nearest is \"24B\"",
    );
    golden(
        "[ftl]\nmap.demand = { translation_level = \"cached_only\" }\n",
        "run.toml:2: ftl.map.demand.translation_level: unknown value \"cached_only\"\n  remedy: did you mean \"cached-only\"? \
         choices: \"remembered\", \"cached-only\"",
    );
    golden(
        "[ftl]\nmap.demand = { miss = \"share\" }\n",
        "run.toml:2: ftl.map.demand.miss: unknown value \"share\"\n  remedy: did you mean \"shared\"? choices: \"shared\", \
         \"each\"",
    );
    golden(
        "[ftl]\nmap.demand = { write_back = \"before_insert\" }\n",
        "run.toml:2: ftl.map.demand.write_back: unknown value \"before_insert\"\n  remedy: did you mean \"before-insert\"? \
         choices: \"async\", \"before-insert\"",
    );
    let choices = "\"lru\", { read-level = { fixed = 2000 } }";
    golden(
        "[ftl]\nmap.demand = { eviction = \"read_level\" }\n",
        &format!(
            "run.toml:2: ftl.map.demand.eviction: unknown value \"read_level\"\n  remedy: did you mean \
             \"read-level\"? choices: {choices}"
        ),
    );
    golden(
        "[ftl]\nmap.demand = { eviction = 3 }\n",
        &format!(
            "run.toml:2: ftl.map.demand.eviction: expected one of its choices, found the number 3\n  remedy: write one \
             of {choices}"
        ),
    );
    golden(
        "[ftl]\nmap.demand.eviction.read-level = { fixed = 0 }\n",
        "run.toml:2: ftl.map.demand.eviction.read-level.fixed: the number 0 is out of range\n  remedy: a value from 1 \
         to 4294967295",
    );
    assert_eq!(
        set_says("", "ftl.map.demand.cache=1"),
        "--set: ftl.map.demand.cache: expected a size, found the number 1 without a unit\n  remedy: write it as \"4KiB\" \
         (units: B, KiB, MiB, GiB, TiB, or decimal kB, MB, GB, TB)",
    );
}

#[test]
fn a_drive_without_room_for_translation_pages_is_an_error() {
    // 514,007 logical pages need 502 translation pages of 1024 entries, 16 per plane: a quarter of a block. With 16,063
    // logical pages a plane has 321 pages left, but needs 5 * 64 + 16 = 336. With op = 0.021 it has 337 left.
    let fits = "[drive]\nop = 0.02\n";
    load_with(fits, &[]).unwrap_or_else(|e| panic!("{e}"));
    let message = "a plane has 5.0 blocks beyond its logical pages and needs 5.2: 1 open and 1 free for GC, 1 open and 1 \
                   free for translation pages, 1 of garbage for GC to gain from, 0.2 of translation pages\n  \
                   remedy: set drive.op = 0.021 or drive.blocks_per_plane = 269";
    golden(&format!("{fits}[ftl]\nmap = \"demand\"\n"), &format!("run.toml:2: drive.op: {message}"));
    assert_eq!(set_says(fits, "ftl.map=demand"), format!("--set: ftl.map: {message}"));
    for set in ["drive.op=0.021", "drive.blocks_per_plane=269"] {
        load_with(fits, &["ftl.map=demand", set]).unwrap_or_else(|e| panic!("{e}"));
    }
    assert!(load_with(fits, &["ftl.map=demand", "drive.blocks_per_plane=268"]).is_err());
    // A page of 512 bytes has 128 entries, so a plane has 1014 translation pages, that is 15.8 blocks.
    let small = "drive = { page_size = \"512B\", blocks_per_plane = 2048, op = 0.01 }\n";
    load_with(small, &[]).unwrap_or_else(|e| panic!("{e}"));
    assert!(
        set_says(small, "ftl.map=demand").contains(" and needs 20.8: "),
        "{}",
        set_says(small, "ftl.map=demand")
    );
    // The host takes an open block, GC a free block, the demand map an open and a free block, and the translation pages
    // one more block: 251 of 256 blocks are left.
    let text = "[precondition]\nused = 0.985\nvalid = 0.5\n";
    load_with(text, &[]).unwrap_or_else(|e| panic!("{e}"));
    let message = "used = 0.985 leaves a plane fewer than the 5 blocks that it needs at the start, translation pages \
                   included\n  remedy: set used to at most 0.98";
    golden(&format!("{text}[ftl]\nmap = \"demand\"\n"), &format!("run.toml:2: precondition.used: {message}"));
    assert_eq!(set_says(text, "ftl.map=demand"), format!("--set: ftl.map: {message}"));
    load_with(text, &["ftl.map=demand", "precondition.used=0.98"]).unwrap_or_else(|e| panic!("{e}"));
}

/// LPNs of translation pages fit into 32 bits. The reserve includes translation pages, so there are fewer LPNs than
/// physical pages, whose number fits into 32 bits.
#[test]
fn lpns_of_translation_pages_fit_into_32_bits() {
    let drive = "drive = { channels = 1, chips_per_channel = 1, planes_per_die = 1, blocks_per_plane = 131071, \
                 pages_per_block = 32768, page_size = \"512B\", op = 0.0075 }\n";
    load_with(drive, &[]).unwrap_or_else(|e| panic!("{e}"));
    let text = set_says(drive, "ftl.map=demand");
    assert!(text.starts_with("--set: ftl.map: a plane has "), "{text}");
    load_with(drive, &["ftl.map=demand", "drive.op=0.008"]).unwrap_or_else(|e| panic!("{e}"));
}

#[test]
fn wrong_read_levels_are_errors() {
    let level = |rber: &str, sense: &str, transfer: &str| {
        format!("{{ rber_max = {rber}, sense = \"{sense}\", transfer = \"{transfer}\", decode = \"15us\" }}")
    };
    let list = |levels: &[String]| format!("[ecc]\nlevels = [\n{},\n]\n", levels.join(",\n"));
    let first = level("0.005", "50us", "20us");
    let form = "{ rber_max = 0.5, sense = \"timing\", transfer = \"timing\", decode = \"timing\" }";
    golden(
        "[ecc]\nlevels = \"laldcp\"\n",
        "run.toml:2: ecc.levels: unknown value \"laldcp\"\n  remedy: did you mean \"laldpc\"? choices: \"none\", \"laldpc\", { \
         retry = { rber_max = 0.5, sense = \"timing\", transfer = \"timing\", decode = \"timing\", entries = [{ age = \"50us\" }] } }, \
         { codec = { rate = \"8/9\", size = \"4KiB\", references = \"equidistant\", spacing = \"model\", centre = \"optimal\", \
         shifts = \"none\", levels = 7, fer = \"drawn\", sense = \"timing\", further = \"14us\", transfer = \"raw\", iteration = \"600ns\" } }",
    );
    golden(
        "[ecc]\nlevels = 7\n",
        &format!(
            "run.toml:2: ecc.levels: expected one of its choices or a list, found the number 7\n  remedy: write one of \"none\", \
             \"laldpc\", {{ retry = {{ rber_max = 0.5, sense = \"timing\", transfer = \"timing\", decode = \"timing\", entries = \
             [{{ age = \"50us\" }}] }} }}, {{ codec = {{ rate = \"8/9\", size = \"4KiB\", references = \"equidistant\", spacing = \
             \"model\", centre = \"optimal\", shifts = \"none\", levels = 7, fer = \"drawn\", sense = \"timing\", further = \"14us\", transfer = \
             \"raw\", iteration = \"600ns\" }} }} or a list of {form}"
        ),
    );
    golden(
        "[ecc]\nlevels = []\n",
        &format!("run.toml:2: ecc.levels: an empty list\n  remedy: write at least one {form}"),
    );
    let many: Vec<String> =
        (1..=49).map(|i| level(&format!("{}", f64::from(i) / 100.0), "50us", "20us")).collect();
    golden(&list(&many), "run.toml:2: ecc.levels: a list of 49 items\n  remedy: write at most 48");
    load_with(&list(&many[..48]), &[]).unwrap_or_else(|e| panic!("{e}"));
    golden(
        &list(&[first.clone(), level("0.006", "50us", "20us"), level("0.006", "60us", "20us")]),
        "run.toml:5: ecc.levels[2].rber_max: expected more than the 0.006 of the level before it, found 0.006\n  remedy: \
         order the levels by rising rber_max",
    );
    golden(
        &list(&[first.clone(), level("0.006", "40us", "15us")]),
        "run.toml:4: ecc.levels[1].sense: expected at least the 50us of the level before it, found 40us\n  remedy: write \
         at least \"50us\"\n\
         run.toml:4: ecc.levels[1].transfer: expected at least the 20us of the level before it, found 15us\n  remedy: \
         write at least \"20us\"",
    );
    golden(
        &list(&[first.clone(), level("0.6", "60us", "20us")]),
        "run.toml:4: ecc.levels[1].rber_max: the number 0.6 is out of range\n  remedy: a value above 0 and at most 0.5",
    );
    golden(
        "[ecc]\nlevels = [{ sense = \"50us\", transfer = \"20us\" }]\n",
        "run.toml:2: ecc.levels[0].rber_max: missing\n  remedy: add rber_max = 0.5 (the level decodes every RBER below \
         this)",
    );
    let levels = format!("ecc.levels=[{}, {}]", first, level("0.006", "40us", "20us"));
    assert!(set_says("", &levels).starts_with("--set: ecc.levels[1].sense: expected at least the 50us"));
}

#[test]
fn wrong_read_retry_tables_are_errors() {
    let start = |value: &str| format!("[ecc]\nlevels = \"laldpc\"\nstart = {value}\n");
    let row = |level: u32| format!("{{ pe = 0, age = \"0s\", level = {level} }}");
    golden(
        &start(&format!("{{ table = {{ rows = [{}, {}] }} }}", row(7), row(8))),
        "run.toml:3: ecc.start: table.rows[1].level: expected at most 7, the number of read levels, found 8\n  remedy: write \
         a level from 1 to 7, or set ecc.levels with more levels",
    );
    golden(
        &start("{ table = { rows = [] } }"),
        "run.toml:3: ecc.start.table.rows: an empty list\n  remedy: write at least one { pe = 0, age = \"50us\", level = 1 }",
    );
    for (value, key) in [
        ("\"table\"".to_owned(), "ecc.start.table.rows"),
        ("{ table = {} }".to_owned(), "ecc.start.table.rows"),
        (format!("{{ table = {{ rows = [{}] }} }}", row(0)), "ecc.start.table.rows[0].level"),
        (format!("{{ table = {{ rows = [{}] }} }}", row(49)), "ecc.start.table.rows[0].level"),
        (format!("{{ table = {{ rows = [{}] }} }}", vec![row(1); 17].join(", ")), "ecc.start.table.rows"),
    ] {
        let text = load_with(&start(&value), &[]).unwrap_err().to_string();
        assert!(text.starts_with(&format!("run.toml:3: {key}: ")) && text.contains("remedy: "), "{text}");
    }
}

#[test]
fn settings_of_read_levels_without_read_levels_are_errors() {
    golden(
        "[ecc]\nstart = \"last-level\"\nretry = \"incremental\"\n",
        "run.toml:2: ecc.start: \"last-level\" has no effect with ecc.levels = \"none\"\n  remedy: set ecc.levels, such \
         as \"laldpc\", or ecc.start = \"first\"\n\
         run.toml:3: ecc.retry: \"incremental\" has no effect with ecc.levels = \"none\"\n  remedy: set ecc.levels, \
         such as \"laldpc\", or ecc.retry = \"full\"",
    );
    for start in
        ["ideal", "block-level", "drive-level", "{ table = { rows = [{ pe = 0, age = '0s', level = 9 }] } }"]
    {
        assert!(set_says("", &format!("ecc.start={start}")).starts_with("--set: ecc.start: "));
    }
    golden(
        "[reliability]\nrber = \"vth\"\n",
        "run.toml:2: reliability.rber: bit errors have no effect with ecc.levels = \"none\"\n  remedy: set ecc.levels, \
         such as \"laldpc\", or reliability.rber = \"none\"",
    );
    // The error names the layer that set the value.
    let text = set_says("[drive]\npreset = \"laldpc-32g\"\n", "ecc.levels=none");
    assert!(text.starts_with("--set: ecc.levels: bit errors have no effect"), "{text}");
    load_with("[drive]\npreset = \"laldpc-32g\"\n", &["ecc.levels=none", "reliability.rber=none"])
        .unwrap_or_else(|e| panic!("{e}"));
}

/// A level may take its times from [timing]; the rule that times rise holds for these too.
#[test]
fn the_times_that_a_level_takes_from_timing_rise_with_the_levels() {
    let two = |first: &str, second: &str| {
        format!(
            "[timing]\nread = \"50us\"\n[ecc]\nlevels = [\n{{ rber_max = 0.005{first} }},\n{{ rber_max = 0.006{second} }},\n]\n"
        )
    };
    load_with(&two("", ""), &[]).unwrap_or_else(|e| panic!("{e}"));
    load_with(&two("", ", sense = \"50us\""), &[]).unwrap_or_else(|e| panic!("{e}"));
    golden(
        &two("", ", sense = \"40us\""),
        "run.toml:4: ecc.levels: the sense of level 2: expected at least the 50us of the level before it, found 40us; the level \
         before it has that of timing.read\n  remedy: write sense = \"50us\", or more, in this level, or set a lower \
         timing.read",
    );
    golden(
        &two(", sense = \"60us\"", ""),
        "run.toml:4: ecc.levels: the sense of level 2: expected at least the 60us of the level before it, found 50us; this level \
         has that of timing.read\n  remedy: write sense = \"60us\", or more, in this level",
    );
    // 4 KiB at 2.5 ns a byte.
    golden(
        &two("", ", transfer = \"10us\""),
        "run.toml:4: ecc.levels: the transfer of level 2: expected at least the 10240ns of the level before it, found 10us; the \
         level before it has that of timing.channel_ns_per_byte\n  remedy: write transfer = \"10240ns\", or more, in \
         this level, or set a lower timing.channel_ns_per_byte",
    );
    // The error is at the key that made the times fall.
    let said = |set: &str| set_says(&two("", ", sense = \"60us\""), set);
    assert!(
        said("timing.read=70us")
            .starts_with("--set: timing.read: the sense of level 2: expected at least the 70us")
    );
    load_with(&two("", ", sense = \"60us\""), &["timing.read=60us"]).unwrap_or_else(|e| panic!("{e}"));
    golden(
        "[ecc]\nlevels.retry = { rber_max = 0.01, sense = { lsb = \"1us\", csb = \"1us\", msb = \"1us\" }, entries = \
         [{ age = \"1d\" }] }\n[reliability]\nrber = \"vth\"\n",
        "run.toml:2: ecc.levels: a cell of \"mlc\" has no CSB pages\n  remedy: write sense without csb, or set \
         drive.cell = \"tlc\" or \"3d-tlc\"",
    );
}

#[test]
fn a_wrong_key_is_reported_with_the_nearest_key_of_its_section() {
    // Three sections have a `policy`, so none of them is meant.
    for (key, remedy) in [
        ("cache.policy", "[cache] has: size, access, sync,"),
        ("gc.policy", "[gc] has: victim,"),
        ("cache.synk", "did you mean cache.sync? [cache] has:"),
        ("drive.victim", "did you mean gc.victim? [drive] has:"),
        // `gc.idle_after` has this name, but a key of the own section is nearer to what is meant.
        ("energy.idle_", "did you mean energy.idle? [energy] has:"),
        ("chache.size", "did you mean cache.size? sections:"),
        ("chache.nothing", "did you mean [cache]? sections:"),
    ] {
        let said = set_says("", &format!("{key}=1"));
        assert!(said.contains(&format!("\n  remedy: {remedy}")), "{said}");
    }
}

/// `precondition.used=1` with a valid share was reported at precondition.method, which nobody had set; and where valid was
/// too large as well, its remedy led to a second error.
#[test]
fn the_error_of_a_fill_names_the_key_that_is_set_and_its_remedy_works() {
    let fill = |sets: &[&str]| load_with("", sets).map(|_| ()).map_err(|errors| errors.to_string());
    assert_eq!(
        fill(&["precondition.used=1", "precondition.valid=0.781"]).unwrap_err(),
        "--set: precondition.used: used = 1 leaves a plane fewer than the 2 blocks that it needs at the start\n  remedy: \
         set used to at most 0.992"
    );
    fill(&["precondition.used=0.992", "precondition.valid=0.781"]).unwrap();
    assert_eq!(
        fill(&["precondition.used=1", "precondition.valid=0.99"]).unwrap_err(),
        "--set: precondition.valid: expected used x valid to be at most 0.9346 (logical over physical pages), found \
         0.9900\n  remedy: set used to at most 0.992, and with used = 0.992 valid to at most 0.942"
    );
    fill(&["precondition.used=0.992", "precondition.valid=0.942"]).unwrap();
    // The method alone is set: used and valid have their defaults.
    let said = fill(&["precondition.method=fill", "drive.op=0.5"]).unwrap_err();
    assert!(said.starts_with("--set: drive.op: expected used x valid to be at most"), "{said}");
    let said = fill(&["drive.op=0.5", "precondition.method=fill"]).unwrap_err();
    assert!(said.starts_with("--set: precondition.method: expected used x valid to be at most"), "{said}");
}

#[test]
fn an_over_provisioning_in_percent_is_recognised() {
    let sets = ["precondition.used=0.95", "precondition.valid=0.8", "drive.op=28"];
    let said = load_with("", &sets).unwrap_err().to_string();
    assert!(
        said.contains("remedy: set drive.op = 0.28, if 28 are percent; or with used = 0.95, set valid"),
        "{said}"
    );
    load_with("", &["precondition.used=0.95", "precondition.valid=0.8", "drive.op=0.28"]).unwrap();
    let said =
        load_with("", &["precondition.used=0.95", "precondition.valid=0.8", "drive.op=0.5"]).unwrap_err();
    assert!(!said.to_string().contains("percent"), "{said}");
}

#[test]
fn the_levels_of_a_code_need_voltages_measured_rates_and_whole_codewords() {
    let text = |codec: &str, more: &str| format!("[ecc]\nlevels.codec = {{ {codec} }}\n{more}");
    let vth = "[reliability]\nrber = \"vth\"\n";
    for codec in [
        "",
        "references = \"mmi\"",
        "references = { mmi-at = { pe = 3000, age = \"90d\" } }, centre = \"default\"",
    ] {
        load_with(&text(codec, vth), &["ecc.start=last-level"]).unwrap_or_else(|e| panic!("{e}"));
    }
    // Unlike a read-retry table, a higher level decodes more.
    for set in ["ecc.start=drive-level", "ecc.retry=incremental", "refresh.policy.fcr={full_strength=true}"] {
        load_with(&text("", vth), &[set]).unwrap_or_else(|e| panic!("{e}"));
    }
    golden(
        &text("", "[reliability]\nrber = \"none\"\n"),
        "run.toml:2: ecc.levels: \"codec\" needs the voltages of reliability.rber = \"vth\" or \"vth-tlc\"\n  remedy: \
         set reliability.rber to one of these, or ecc.levels to a list of levels",
    );
    golden(
        &text("fer = 1e-4", &format!("{vth}[drive]\npage_size = \"16KiB\"\n")),
        "run.toml:2: ecc.levels: codec.fer: a page of 4 codewords with this rate needs frame error rates below the 0.0001 \
         that were measured\n  remedy: write fer = 0.0004, or more",
    );
    golden(
        &text("", &format!("{vth}[drive]\npage_size = \"2KiB\"\n")),
        "run.toml:2: ecc.levels: codec.size: expected at most the page size of 2048 bytes, found 4096\n  remedy: write \
         size = \"2KiB\", or set a larger drive.page_size",
    );
    golden(
        &text("references = \"mmi\", spacing = 0.03", vth),
        "run.toml:2: ecc.levels: codec.spacing has no effect, because the references are not equidistant\n  remedy: take \
         spacing out, or write references = \"equidistant\"",
    );
    golden(
        &text("references = \"mmi\", centre = \"default\"", vth),
        "run.toml:2: ecc.levels: codec.centre: references with the most information of the page at hand are around its \
         optimum\n  remedy: take centre out, or write references = \"equidistant\" or mmi-at",
    );
    golden(
        &text("references = { mmi-at = { pe = 900000, age = \"9000d\" } }", vth),
        "run.toml:2: ecc.levels: codec.references.mmi-at: after 900000 P/E cycles and 9000d the states of reliability.rber are \
         out of order, so no references can be placed between them\n  remedy: write a lower pe or age, or references = \"mmi\"",
    );
    let shifts = "shifts = [{ age = \"7d\" }, { age = \"60d\" }]";
    load_with(&text(shifts, vth), &["ecc.retry=incremental"]).unwrap_or_else(|e| panic!("{e}"));
    golden(
        &text("shifts = [{ age = \"7d\" }, { age = \"7d\" }]", vth),
        "run.toml:2: ecc.levels: codec.shifts[1].age: expected more than the age before it, at least a second\n  remedy: \
         order the entries by rising age, from above 0",
    );
    golden(
        &text("shifts = { steps = 3, size = 1.3 }", vth),
        "run.toml:2: ecc.levels: the steps of codec.shifts are in the voltages of reliability.rber = \"vth-tlc\"\n  remedy: set \
         shifts to a list of ages, or reliability.rber = \"vth-tlc\"",
    );
    golden(
        &text(&format!("{shifts}, references = \"mmi\""), vth),
        "run.toml:2: ecc.levels: with codec.shifts the references of soft sensing are around those of the best entry\n  remedy: \
         take centre out, and write references = \"equidistant\" or mmi-at",
    );
    golden(
        &format!("[ecc]\nlevels.codec = {{ {shifts} }}\nstart = \"drive-level\"\n{vth}"),
        "run.toml:3: ecc.start: \"drive-level\" may start at an entry beyond the one that decodes the page\n  remedy: set \
         ecc.start = \"first\", \"last-level\", \"last-good\" or \"ideal\"",
    );
    golden(
        &text("size = \"8KiB\"", vth),
        "run.toml:2: ecc.levels.codec.size: \"8KiB\" is out of range\n  remedy: a value from 2KiB to 4KiB",
    );
    golden(
        &format!("{}[timing]\ndecode = \"3us\"\n", text("", vth)),
        "run.toml:6: timing.decode: no effect, because ecc.levels gives every read level its own decode\n  remedy: take \
         timing.decode out, or set ecc.levels to a list of levels without decode: [{ rber_max = 0.005 }]",
    );
    golden(
        "[ecc]\ndecoders = 0\n",
        "run.toml:2: ecc.decoders: the number 0 is out of range\n  remedy: a value from 1 to 1024",
    );
}

#[test]
fn read_retry_tables_exclude_what_relies_on_stronger_levels() {
    let text = |ages: &str, more: &str| {
        let entries =
            ages.split(' ').map(|age| format!("{{ age = \"{age}\" }}")).collect::<Vec<_>>().join(", ");
        format!(
            "[ecc]\nlevels.retry = {{ rber_max = 0.01, sense = \"50us\", transfer = \"1us\", decode = \"1us\", entries = \
             [{entries}] }}\n{more}"
        )
    };
    let vth = "[reliability]\nrber = \"vth\"\n";
    load_with(&text("1d 30d", vth), &["ecc.start=last-level"]).unwrap_or_else(|e| panic!("{e}"));
    load_with(&text("1d 30d", vth), &["refresh.policy=fcr"]).unwrap_or_else(|e| panic!("{e}"));
    golden(
        &text("30d 30d", vth),
        "run.toml:2: ecc.levels: retry.entries[1].age: expected more than the age before it, at least a second\n  remedy: \
         order the entries by rising age, from above 0",
    );
    golden(
        &text("30d", ""),
        "run.toml:2: ecc.levels: \"retry\" needs the voltages of reliability.rber = \"vth\" or \"vth-tlc\"\n  remedy: set \
         reliability.rber to one of these, or ecc.levels to a list of levels",
    );
    let said = |set: &str| set_says(&text("30d", vth), set);
    for (set, message) in [
        (
            "ecc.start=block-level",
            "ecc.start: \"block-level\" may start at an entry beyond the one that decodes the page",
        ),
        ("ecc.retry=incremental", "ecc.retry: each entry of a read-retry table is a whole read"),
        (
            "refresh.policy={ fcr = { full_strength = true } }",
            "refresh.policy: this refresh needs read levels",
        ),
        ("refresh.policy=ec-cache", "refresh.policy: this refresh needs read levels"),
        ("refresh.policy=partial", "refresh.policy: this refresh needs read levels"),
    ] {
        assert!(said(set).contains(message), "{set}: {}", said(set));
    }
}

#[test]
fn read_retry_tables_of_equal_steps_need_the_voltages_of_tlc() {
    let text = |steps: &str, more: &str| {
        format!(
            "[ecc]\nlevels.retry = {{ rber_max = 0.01, entries = {{ steps = {steps}, size = 1.3 }} }}\n{more}"
        )
    };
    let tlc = "[drive]\ncell = \"3d-tlc\"\n[reliability]\nrber = \"vth-tlc\"\n";
    let levels = load(&text("40", tlc), "run.toml", Path::new("."), &[]).unwrap().spec.ecc.levels;
    assert_eq!(levels.len(), 41);
    load_with(&text("47", tlc), &["ecc.start=last-good"]).unwrap_or_else(|e| panic!("{e}"));
    golden(
        &text("48", tlc),
        "run.toml:2: ecc.levels.retry.entries.steps: the number 48 is out of range\n  remedy: a value from 1 to 47",
    );
    golden(
        &text("30", "[reliability]\nrber = \"vth\"\n"),
        "run.toml:2: ecc.levels: the steps of a read-retry table are in the voltages of reliability.rber = \
         \"vth-tlc\"\n  remedy: set entries to a list of ages, or reliability.rber = \"vth-tlc\"",
    );
}

#[test]
fn layers_that_differ_need_layers() {
    let says = |cell: &str, more: &str| {
        says(&format!(
            "[drive]\ncell = \"{cell}\"\n{more}[ecc]\nlevels = \"laldpc\"\n[reliability]\nrber.vth-tlc.layers = {{ \
             ratio = 2.0 }}\n"
        ))
    };
    assert!(
        says("tlc", "")
            .contains("layers that differ in their RBER need layers, but a cell of \"tlc\" has none")
    );
    assert!(says("3d-tlc", "layers = 1\n").contains("need at least two layers"));
    let text = "[drive]\ncell = \"3d-tlc\"\n[ecc]\nlevels = \"laldpc\"\n[reliability]\nrber.vth-tlc";
    for (params, message) in [
        ("layers = { ratio = 0.5 }", "ratio: the number 0.5 is out of range"),
        ("layers = { ratio = 2.0, worst = 1.5 }", "worst: the number 1.5 is out of range"),
        ("early = { loss = 0 }", "loss: the number 0 is out of range"),
        ("early = { loss = 1.0, from = \"0.5s\" }", "from: "),
        ("early = { from = \"1min\" }", "loss: missing"),
    ] {
        let error = self::says(&format!("{text} = {{ {params} }}\n"));
        assert!(error.contains(message), "{params}: {error}");
    }
}

#[test]
fn wrong_error_rates_are_errors() {
    golden(
        "[reliability]\nrber = \"vht\"\n",
        "run.toml:2: reliability.rber: unknown value \"vht\"\n  remedy: did you mean \"vth\"? choices: \"none\", { vth \
         = { dvpp = 0.38, cell_to_cell = 0.05, sensing_step = 0.03, per_page_kind = false, unworn_loss = 0.0 } }, { vth-tlc = { sigma \
         = 1.0, shift = 1.0, sensing_step = 3.0, early = \"none\", layers = \"none\" } }, { table = \"FILE\" }",
    );
    golden(
        "[reliability]\nrber = \"table\"\n",
        "run.toml:2: reliability.rber: \"table\" needs a value\n  remedy: write { table = \"FILE\" }",
    );
    golden(
        "[reliability]\nrber.vth = { dvpp = 0, cell_to_cell = 2, sensing_step = 0.2, per_page_kind = 1, unworn_loss = -1 }\n",
        "run.toml:2: reliability.rber.vth.dvpp: the number 0 is out of range\n  remedy: a value from 0.01 to 0.6\n\
         run.toml:2: reliability.rber.vth.cell_to_cell: the number 2 is out of range\n  remedy: a value from 0 to \
         0.5\n\
         run.toml:2: reliability.rber.vth.sensing_step: the number 0.2 is out of range\n  remedy: a value from 0.001 \
         to 0.1\n\
         run.toml:2: reliability.rber.vth.per_page_kind: expected true or false, found the number 1\n  remedy: write \
         true or false\n\
         run.toml:2: reliability.rber.vth.unworn_loss: the number -1 is out of range\n  remedy: a value from 0 to 60000",
    );
    golden(
        "[drive]\ncell = \"slc\"\n[ecc]\nlevels = \"laldpc\"\n[reliability]\nrber = \"vth\"\n",
        "run.toml:6: reliability.rber: \"vth\" describes cells of two bits, but drive.cell = \"slc\"\n  remedy: set \
         drive.cell = \"mlc\" or \"3d-mlc\", or reliability.rber to a table or \"none\"",
    );
    golden(
        "[ecc]\nlevels = \"laldpc\"\n[reliability]\nrber = \"vth-tlc\"\n",
        "run.toml:4: reliability.rber: \"vth-tlc\" describes cells of three bits, but drive.cell = \"mlc\"\n  remedy: set \
         reliability.rber = \"vth\", a table or \"none\", or drive.cell = \"tlc\" or \"3d-tlc\"",
    );
    for cell in ["tlc", "3d-tlc"] {
        let sets = [&format!("drive.cell={cell}"), "reliability.rber='vth-tlc'", "ecc.levels='laldpc'"];
        load_with("", &sets).unwrap_or_else(|e| panic!("{e}"));
    }
    let text = set_says("[drive]\npreset = \"laldpc-32g\"\n", "drive.cell=3d-tlc");
    assert!(text.starts_with("--set: drive.cell: \"vth\" describes"), "{text}");
    load_with("[drive]\npreset = \"laldpc-32g\"\n", &["drive.cell=3d-mlc"]).unwrap_or_else(|e| panic!("{e}"));
    golden(
        "[reliability]\nread_disturb = 0.01\n",
        "run.toml:2: reliability.read_disturb: the number 0.01 is out of range\n  remedy: a value from 0 to 0.001",
    );
    golden(
        "[reliability]\nread_disturb = 1e-9\ncopyback_error = 1e-4\n",
        "run.toml:2: reliability.read_disturb: has no effect with reliability.rber = \"none\"\n  remedy: set \
         reliability.rber, or reliability.read_disturb = 0.0\n\
         run.toml:3: reliability.copyback_error: has no effect with reliability.rber = \"none\"\n  remedy: set \
         reliability.rber, or reliability.copyback_error = 0.0",
    );
}

#[test]
fn unusable_tables_of_error_rates_are_errors() {
    let text = "[ecc]\nlevels = \"laldpc\"\n[reliability]\nrber.table = \"no-such\\u001b.csv\"\n";
    let error = says(text);
    assert!(
        error.starts_with(
            "run.toml:4: reliability.rber.table: the table \"no-such\\u{1b}.csv\" cannot be used: "
        ),
        "{error}"
    );
    assert!(
        error.contains("\n  remedy: name a CSV file; relative paths start at the spec's folder"),
        "{error}"
    );
    let dir = Path::new(env!("CARGO_TARGET_TMPDIR"));
    std::fs::write(dir.join("bad-rber.csv"), "pe_cycles,retention,rber\n0,1d,high\n").unwrap();
    let error =
        load(&text.replace("no-such\\u001b", "bad-rber"), "run.toml", dir, &[]).unwrap_err().to_string();
    assert!(error.starts_with("run.toml:4: reliability.rber.table: the table \"bad-rber.csv\""), "{error}");
    assert!(
        error.contains("cannot be used: line 2, column rber: "),
        "the error does not name the line of the table: {error}"
    );
    let error = set_says("ecc.levels = \"laldpc\"\n", "reliability.rber.table=no-such.csv");
    assert!(
        error.starts_with("--set: reliability.rber.table: the table \"no-such.csv\" cannot be used: "),
        "{error}"
    );
}

#[test]
fn wrong_ages_are_errors() {
    golden(
        "[reliability]\nretention = \"21901d\"\n",
        "run.toml:2: reliability.retention: \"21901d\" is out of range\n  remedy: a value from 0ns to 21900d",
    );
    golden(
        "[reliability]\nretention = [{ age = \"7d\", share = 0.5 }, { age = \"8d\", share = 0.4 }]\n",
        "run.toml:2: reliability.retention: expected shares that add up to 1, found 0.9\n  remedy: \
         set shares that add up to 1",
    );
    golden(
        "[reliability]\nretention = [{ age = \"7d\", share = 0.5 }, { age = \"8d\", share = 0.50000001 }]\n",
        "run.toml:2: reliability.retention: expected shares that add up to 1, found 1.00000001\n  \
         remedy: set shares that add up to 1",
    );
    golden(
        "[reliability]\nretention = [\n  { age = \"7d\", share = 1 },\n  { age = \"70000d\", share = 0 },\n]\n",
        "run.toml:4: reliability.retention[1].age: \"70000d\" is out of range\n  remedy: a value from 0ns to 21900d\n\
         run.toml:4: reliability.retention[1].share: the number 0 is out of range\n  remedy: a value above 0 and at most 1",
    );
    golden(
        "[reliability]\nretention = { age = \"7d\", share = 1 }\n",
        "run.toml:2: reliability.retention.age: unknown parameter\n  remedy: there are: from, until\n\
         run.toml:2: reliability.retention.share: unknown parameter\n\
         run.toml:2: reliability.retention.from: missing\n  remedy: add from = \"50us\" (lowest age of the data)\n\
         run.toml:2: reliability.retention.until: missing\n  remedy: add until = \"50us\" (highest age of the data)",
    );
    golden(
        "[reliability]\nretention = { from = \"7d\", until = \"1d\" }\n",
        "run.toml:2: reliability.retention: until is lower than from\n  remedy: exchange the two ages",
    );
}

#[test]
fn suspension_needs_the_scheduler_read_first_and_all_its_times() {
    let of = |timing: &str| load_with(&format!("[timing]\n{timing}\n"), &[]);
    let message = |timing: &str| of(timing).unwrap_err().to_string();
    let half = "{ enter = \"9us\", resume = \"4us\", min_progress = \"0us\", max = 1 }";
    for suspend in [format!("program = {half}"), format!("erase = {half}")] {
        let suspend = format!("suspend = {{ {suspend} }}");
        assert!(of(&suspend).is_ok());
        let fcfs = message(&format!("{suspend}\nscheduler = \"fcfs\""));
        assert!(
            fcfs.contains("timing.suspend") && fcfs.contains("timing.scheduler = \"read-first\""),
            "{fcfs}"
        );
    }
    assert!(of("suspend = \"none\"\nscheduler = \"fcfs\"").is_ok());
    assert!(of("suspend = { erase = \"none\" }\nscheduler = \"fcfs\"").is_ok());
    let incomplete = message("suspend = { program = { enter = \"9us\" } }");
    assert!(incomplete.contains("resume") && incomplete.contains("timing.suspend.program"), "{incomplete}");
    let zero =
        message("suspend.program = { enter = \"9us\", resume = \"4us\", min_progress = \"0us\", max = 0 }");
    assert!(zero.contains("from 1"), "{zero}");
    let unknown = message("suspend = { reads = \"none\" }");
    assert!(unknown.contains("timing.suspend"), "{unknown}");
}

#[test]
fn refresh_priorities_and_limits_without_effect_are_errors() {
    let errors =
        "[ecc]\nlevels = \"laldpc\"\n[reliability]\nrber = \"vth\"\n[drive]\ncell = \"mlc\"\n[timing]\n";
    let refresh = |scheduler: &str, refresh: &str| {
        load_with(&format!("{errors}scheduler = \"{scheduler}\"\n[refresh]\n{refresh}\n"), &[])
    };
    let message = |scheduler: &str, text: &str| refresh(scheduler, text).unwrap_err().to_string();
    let priority = "policy = \"fcr\"\npriority = \"before-writes\"";
    assert!(refresh("read-first", priority).is_ok());
    let fcfs = message("fcfs", priority);
    assert!(
        fcfs.contains("no effect with timing.scheduler = \"fcfs\"") && fcfs.contains("read-first"),
        "{fcfs}"
    );
    let none = message("read-first", "priority = \"first\"");
    assert!(none.contains("no effect with refresh.policy = \"none\"") && none.contains("fcr"), "{none}");
    let limit = message("read-first", "policy = { fcr = { in_place = true, remap_above = 1e-3 } }");
    assert!(limit.contains("no effect without reprogram_error") && limit.contains("2e-6"), "{limit}");
    let unknown = message("read-first", "policy = \"fcr\"\npriority = \"last\"");
    assert!(unknown.contains("\"background\", \"before-writes\", \"first\""), "{unknown}");
}

#[test]
fn wrong_units_and_values_out_of_range_are_errors() {
    let time = "write it as \"50us\" (units: ns, us, ms, s, min, h, d)";
    let size = "write it as \"4KiB\" (units: B, KiB, MiB, GiB, TiB, or decimal kB, MB, GB, TB)";
    let is = |key: &str, value: &str, message: &str, remedy: &str| {
        let (section, name) = key.split_once('.').unwrap();
        golden(
            &format!("[{section}]\n{name} = {value}\n"),
            &format!("run.toml:2: {key}: {message}\n  remedy: {remedy}"),
        );
    };
    is("timing.read", "50", "expected a time, found the number 50 without a unit", time);
    is("timing.read", "\"4KiB\"", "expected a time, found a size: \"4KiB\"", time);
    is("timing.read", "\"50\"", "\"50\" has no unit of time", time);
    is("timing.read", "\"fast\"", "\"fast\" is not a time", time);
    is("timing.read", "\"0.1ns\"", "\"0.1ns\" is finer than one nanosecond", time);
    is(
        "timing.read",
        "true",
        "expected a time or a table, found true",
        "write a time such as \"50us\" or { lsb = \"50us\", csb = \"mean\", msb = \"50us\" }",
    );
    is("timing.read", "\"0us\"", "\"0us\" is out of range", "a value from 1ns to 10s");
    is("drive.page_size", "4096", "expected a size, found the number 4096 without a unit", size);
    is("drive.page_size", "\"5us\"", "expected a size, found a time: \"5us\"", size);
    is("drive.page_size", "\"1000B\"", "\"1000B\" is not a multiple of 512B", "the nearest is \"1KiB\"");
    is("drive.page_size", "\"4KB\"", "\"4KB\" is not a multiple of 512B", "the nearest is \"4KiB\"");
    is("timing.read", "\"50usec\"", "\"50usec\": \"usec\" is no unit of time", time);
    is(
        "drive.op",
        "\"7 %\"",
        "expected a number from 0 to 100, found \"7 %\"",
        "write the share as a number: 0.07",
    );
    is(
        "drive.page_size",
        "\"1536B\"",
        "expected a power of two, found 1536 bytes",
        "write \"2KiB\", or another power of two",
    );
    let energy = "write it as \"50uJ\" (units: J, mJ, uJ, nJ, pJ, fJ)";
    is("energy.read", "\"5W\"", "expected an energy, found a power: \"5W\"", energy);
    let farad = "write it as \"75mF\" (units: F, mF, uF)";
    is("capacitor.capacitance", "\"5V\"", "expected a capacitance, found a voltage: \"5V\"", farad);
    is("capacitor.capacitance", "\"1nF\"", "\"1nF\" is not a capacitance", farad);
    let volt = "write it as \"5.5V\" (units: V, mV)";
    is("capacitor.voltage", "\"75mF\"", "expected a voltage, found a capacitance: \"75mF\"", volt);
    is("capacitor.voltage", "true", "expected a voltage, found true", volt);
    is("energy.read", "-1", "the number -1 is out of range", "a value from 0 to 1e6");
    is(
        "drive.channels",
        "4.0",
        "expected a whole number from 1 to 64, found the number 4.0",
        "write a whole number from 1 to 64",
    );
    is("drive.channels", "0", "the number 0 is out of range", "a value from 1 to 64");
    is(
        "drive.channels",
        "99999999999999999999",
        "the number 99999999999999999999 is out of range",
        "a value from 1 to 64",
    );
    is("gc.background_free", "1.0", "the number 1.0 is out of range", "a value from 0 and below 1");
    is("drive.op", "nan", "the number NaN is out of range", "a value from 0 to 100");
    is(
        "timing.off_chip_mb_per_s",
        "0",
        "the number 0 is out of range",
        "a value above 0 and at most 1000000000",
    );
    let or_number =
        "choices: \"unlimited\"; or a number above 0 and at most 1000000000 or { read = 1, write = 1 }";
    is("timing.off_chip_mb_per_s", "\"fast\"", "unknown value \"fast\"", or_number);
    is("timing.command", "\"11s\"", "\"11s\" is out of range", "a value from 0ns to 10s");
    is("timing.multi_plane", "\"yes\"", "expected true or false, found \"yes\"", "write true or false");
}

#[test]
fn blocking_gc_with_pacing_is_an_error() {
    golden(
        "[gc]\nforeground = \"blocking\"\n",
        "run.toml:2: gc.foreground: \"blocking\" gives GC the whole die, but gc.pacing = \"proportional\" gives it a \
         share of the die\n  remedy: set gc.pacing = \"none\", or gc.foreground = \"interleaved\"",
    );
    assert!(load_with("[gc]\nforeground = \"blocking\"\npacing = \"none\"\n", &[]).is_ok());
}

#[test]
fn wrong_command_times_are_errors() {
    golden(
        "[timing]\ncommand = { reed = \"1us\" }\n",
        "run.toml:2: timing.command.reed: unknown parameter\n  remedy: did you mean read? there are: read, program, erase, copyback, multi_plane_read, multi_plane_program",
    );
    golden(
        "[timing]\ncommand = { read = \"1us\", multi_plane_read = \"both\" }\n",
        "run.toml:2: timing.command.multi_plane_read: \"both\" is not a time\n  remedy: write it as \"50us\" (units: ns, us, ms, s, min, h, d)",
    );
    golden(
        "[timing]\ncommand = { read = 5 }\n",
        "run.toml:2: timing.command.read: expected a time, found the number 5 without a unit\n  remedy: write it as \"50us\" (units: ns, us, ms, s, min, h, d)",
    );
}

#[test]
fn wrong_links_are_errors() {
    let is = |value: &str, what: &str, remedy: &str| {
        let text = format!("[host]\nlink = {value}\n");
        golden(&text, &format!("run.toml:2: host.link{what}\n  remedy: {remedy}"));
    };
    let form = "write one of \"none\" or { mb_per_s = 1, latency = \"0us\" }";
    is("1000", ": expected one of its choices or a table, found the number 1000", form);
    is("{ gb_per_s = 1 }", ": expected one of its choices or a table, found a table of gb_per_s", form);
    let or_table = "choices: \"none\"; or { mb_per_s = 1, latency = \"0us\" }";
    is("\"off\"", ": unknown value \"off\"", or_table);
    let missing = "add mb_per_s = 1 (bandwidth in each direction, in MB/s)";
    is("{ latency = \"1us\" }", ".mb_per_s: missing", missing);
    let range = "a value above 0 and at most 1000000000";
    is("{ mb_per_s = 0 }", ".mb_per_s: the number 0 is out of range", range);
    is("{ mb_per_s = -1.5 }", ".mb_per_s: the number -1.5 is out of range", range);
    is("{ mb_per_s = 1e10 }", ".mb_per_s: the number 10000000000.0 is out of range", range);
    let link = |latency: &str| format!("{{ mb_per_s = 1000, latency = {latency} }}");
    let time = "write it as \"50us\" (units: ns, us, ms, s, min, h, d)";
    is(&link("5"), ".latency: expected a time, found the number 5 without a unit", time);
    is(&link("\"11s\""), ".latency: \"11s\" is out of range", "a value from 0ns to 10s");
    is(
        "{ mb_per_s = 1, latncy = \"1us\" }",
        ".latncy: unknown parameter",
        "did you mean latency? there are: mb_per_s, latency",
    );
}

#[test]
fn two_sets_of_one_table_report_an_error_once() {
    let sets = ["host.link.mb_per_s=0", "host.link.latency=1us"];
    let errors = load_with("", &sets).unwrap_err().to_string();
    assert_eq!(
        errors,
        "--set: host.link.mb_per_s: the number 0 is out of range\n  remedy: a value above 0 and at most 1000000000"
    );
}

#[test]
fn wrong_program_times_are_errors() {
    golden(
        "[timing]\nprogram = { lsb = \"1ms\" }\n",
        "run.toml:2: timing.program.msb: missing\n  remedy: add msb = \"50us\" (tPROG of an MSB page)",
    );
    golden(
        "[timing]\nprogram = { even = \"1ms\" }\n",
        "run.toml:2: timing.program: expected a time or a table, found a table of even\n  remedy: write a time such as \
         \"50us\" or { lsb = \"50us\", csb = \"mean\", msb = \"50us\" } or { fastest = \"50us\", slowest = \"50us\" }",
    );
    golden(
        "[drive]\ncell = \"slc\"\n[timing]\nprogram = { lsb = \"1ms\", msb = \"2ms\" }\n",
        "run.toml:4: timing.program: a cell of \"slc\" has no MSB pages\n  remedy: write one time, or set drive.cell = \
         \"mlc\", \"tlc\", \"3d-mlc\" or \"3d-tlc\"",
    );
    golden(
        "[drive]\ncell = \"slc\"\n[timing]\nread = { lsb = \"40us\", msb = \"60us\" }\n",
        "run.toml:4: timing.read: a cell of \"slc\" has no MSB pages\n  remedy: write one time, or set drive.cell = \
         \"mlc\", \"tlc\", \"3d-mlc\" or \"3d-tlc\"",
    );
    for key in ["read", "program"] {
        golden(
            &format!("[timing]\n{key} = {{ lsb = \"40us\", csb = \"60us\", msb = \"60us\" }}\n"),
            &format!(
                "run.toml:2: timing.{key}: a cell of \"mlc\" has no CSB pages\n  remedy: write timing.{key} \
                 without csb, or set drive.cell = \"tlc\" or \"3d-tlc\""
            ),
        );
    }
    golden(
        "[ecc]\nlevels = [{ rber_max = 0.01, sense = { lsb = \"40us\", csb = \"60us\", msb = \"60us\" }, \
         transfer = \"1us\", decode = \"1us\" }]\n",
        "run.toml:2: ecc.levels: a cell of \"mlc\" has no CSB pages\n  remedy: write sense without \
         csb, or set drive.cell = \"tlc\" or \"3d-tlc\"",
    );
    golden(
        "[ecc]\nlevels = [{ rber_max = 0.01, sense = { lsb = \"40us\", msb = \"60us\" }, transfer = \"1us\", \
         decode = \"1us\" }, { rber_max = 0.02, sense = \"50us\", transfer = \"1us\", decode = \"1us\" }]\n",
        "run.toml:2: ecc.levels[1].sense: expected at least the 60us of the level before it, found 50us\n  remedy: \
         write at least \"60us\"",
    );
    golden(
        "[timing]\nprogram = { fastest = \"1ms\", slowest = \"2ms\" }\n",
        "run.toml:2: timing.program: program times by layer need layers, but a cell of \"mlc\" has none\n  remedy: write one \
         time or { lsb, msb }, or set drive.cell = \"3d-mlc\" or \"3d-tlc\"",
    );
    golden(
        "[drive]\ncell = \"3d-tlc\"\n[timing]\nprogram = { fastest = \"2ms\", slowest = \"1ms\" }\n",
        "run.toml:4: timing.program: the fastest layer is slower than the slowest\n  remedy: exchange fastest and slowest",
    );
}

#[test]
fn impossible_drives_are_errors() {
    golden(
        "[drive]\nchannels = 64\nchips_per_channel = 64\nblocks_per_plane = 65_536\n",
        "run.toml:4: drive.blocks_per_plane: expected at most 4294967294 pages (PPNs have 32 bits), found \
         34359738368\n  remedy: set fewer or larger pages",
    );
    // 2^68 units do not fit into 64 bits.
    golden(
        "[drive]\nchannels = 64\nchips_per_channel = 64\ndies_per_chip = 32\nplanes_per_die = 32\n\
         blocks_per_plane = 1_048_576\npages_per_block = 32_768\npage_size = \"1MiB\"\n[ftl]\nmapping_unit = \"512B\"\n",
        "run.toml:6: drive.blocks_per_plane: expected at most 4294967294 pages (PPNs have 32 bits), found \
         295147905179352825856\n  remedy: set fewer or larger pages\n\
         run.toml:10: ftl.mapping_unit: expected at most 64 mapping units in a page, found 2048\n  remedy: set \
         ftl.mapping_unit = \"16KiB\" at least",
    );
    golden(
        "[drive]\nop = 0.01\n",
        "run.toml:2: drive.op: a plane has 2.5 blocks beyond its logical pages and needs 3.0: 1 open and 1 free for GC, 1 \
         of garbage for GC to gain from\n  remedy: set drive.op = 0.012 or drive.blocks_per_plane = 303",
    );
    // With op = 2.999 one of four blocks is left for logical pages: 8192 / 3.999 = 2048.5, that is 64 on each of 32
    // planes. Of three blocks none would be left.
    let message = "a plane has 0.2 blocks beyond its logical pages and needs 3.0: 1 open and 1 free for GC, 1 of garbage \
                   for GC to gain from";
    golden(
        "[drive]\nblocks_per_plane = 4\n",
        &format!(
            "run.toml:2: drive.blocks_per_plane: {message}\n  remedy: set drive.op = 2.999 or drive.blocks_per_plane = 46"
        ),
    );
    golden(
        "[drive]\nblocks_per_plane = 3\n",
        &format!("run.toml:2: drive.blocks_per_plane: {message}\n  remedy: set drive.blocks_per_plane = 46"),
    );
    golden(
        "[drive]\ncell = \"3d-mlc\"\nlayers = 128\n",
        "run.toml:3: drive.layers: 128 layers, but a block has 64 pages\n  remedy: set drive.layers to at most 64, or \
         drive.pages_per_block to at least 128",
    );
    golden(
        "[drive]\nlayers = 16\n",
        "run.toml:2: drive.layers: has a meaning only with drive.cell = \"3d-mlc\" or \"3d-tlc\"; it is \"mlc\"\n  \
         remedy: take the line out, or set drive.cell = \"3d-mlc\"",
    );
    golden(
        "[reliability]\npe_cycles = 3000\n",
        "run.toml:2: reliability.pe_cycles: blocks start with 3000 P/E cycles and retire at 3000\n  remedy: set \
         drive.endurance above 3000, or reliability.pe_cycles below 3000",
    );
    golden(
        "[gc]\nbackground_free = 0.02\n",
        "run.toml:2: gc.background_free: expected gc.foreground_free below gc.background_free, found 0.05 and 0.02\n  \
         remedy: set gc.foreground_free below gc.background_free",
    );
}

#[test]
fn the_op_and_blocks_proposed_by_a_reserve_error_are_accepted() {
    for key in ["drive.op=0.012", "drive.blocks_per_plane=303"] {
        load_with("[drive]\nop = 0.01\n", &[key]).unwrap_or_else(|e| panic!("{e}"));
    }
    assert!(load_with("[drive]\nop = 0.01\n", &["drive.op=0.011"]).is_err());
    assert!(load_with("[drive]\nop = 0.01\n", &["drive.blocks_per_plane=302"]).is_err());
    // With four blocks, one block is left for logical pages.
    for key in ["drive.op=2.999", "drive.blocks_per_plane=46"] {
        load_with("[drive]\nblocks_per_plane = 4\n", &[key]).unwrap_or_else(|e| panic!("{e}"));
    }
    assert!(load_with("[drive]\nblocks_per_plane = 4\n", &["drive.op=2.998"]).is_err());
    assert!(load_with("[drive]\nblocks_per_plane = 45\n", &[]).is_err());
}

/// The needs of the mechanisms are 2 + 1 + 2 + 6 + 2 + 3 blocks, and a plane needs a block of garbage and 16
/// translation pages. With op = 0.02 a plane has 321 of its 16,384 pages beyond the 16,063 logical pages, and needs
/// 17 * 64 + 16 = 1,104. With op = 0.073 it has 1,114 (488,618 logical pages are 15,270 per plane) and needs 1,103, with
/// 15 translation pages per plane. With 912 blocks it has 1,144 and needs 17 * 64 + 56 = 1,144.
#[test]
fn the_error_names_the_needs_of_every_mechanism() {
    let all = "[drive]\nop = 0.02\n[ftl]\nmap = \"demand\"\nwear_levelling = \"static\"\n[migration]\npolicy = \
               \"rcopyback\"\n[refresh]\npolicy = \"partial\"\n[cache]\nsize = \"16MiB\"\n[capacitor]\n\
               capacitance = \"75mF\"\n";
    golden(
        all,
        "run.toml:2: drive.op: a plane has 5.0 blocks beyond its logical pages and needs 17.2: 1 open and 1 free for GC, 1 \
         open for static wear levelling, 1 open and 1 free for translation pages, 5 open and 1 free for copybacks, 1 open \
         and 1 free for combination pages of partial refresh, 3 free for the emergency flush, 1 of garbage for GC \
         to gain from, 0.2 of translation pages\n  remedy: set drive.op = 0.073 or drive.blocks_per_plane = 912",
    );
    for set in ["drive.op=0.073", "drive.blocks_per_plane=912"] {
        load_with(all, &[set]).unwrap_or_else(|e| panic!("{e}"));
    }
    for set in ["drive.op=0.072", "drive.blocks_per_plane=911"] {
        assert!(load_with(all, &[set]).is_err(), "{set}");
    }
}

#[test]
fn impossible_preconditioning_is_an_error() {
    golden(
        "[precondition]\nused = 0.95\nvalid = 1.0\n",
        "run.toml:2: precondition.used: expected used x valid to be at most 0.9346 (logical over \
         physical pages), found 0.9500\n  remedy: with used = 0.95, set valid to at most 0.983",
    );
    golden(
        "[precondition]\nused = 0.995\nvalid = 0.5\n",
        "run.toml:2: precondition.used: used = 0.995 leaves a plane fewer than the 2 blocks that it needs at the start\n  \
         remedy: set used to at most 0.992",
    );
    golden(
        "[precondition]\nmethod = \"pts\"\nused = 0.9\n",
        "run.toml:3: precondition.used: has a meaning only with precondition.method = \"fill\"; it is \"pts\"\n  \
         remedy: take the line out, or set precondition.method = \"fill\"",
    );
    golden(
        "[precondition]\nload = \"a\"\nmethod = \"fill\"\n",
        "run.toml:3: precondition.method: conflicts with precondition.load\n  remedy: keep exactly one of \
         precondition.method, precondition.load",
    );
    golden(
        "[precondition]\nload = \"a\"\nused = 0.5\n",
        "run.toml:3: precondition.used: has a meaning only with precondition.method = \"fill\"\n  remedy: take the line out",
    );
}

#[test]
fn wrong_clients_are_errors() {
    let of = |clients: &str| format!("[workload]\nclients = [\n{clients}\n]\n");
    let at = |line: u32, what: &str| format!("run.toml:{line}: workload.clients[{}].{what}", line - 3);
    for (clients, text) in [
        (
            "{ name = \"a\" },\n{ name = \"a\" }",
            at(4, "name: \"a\" is also the name of client 0\n  remedy: give each client a name of its own"),
        ),
        (
            "{ name = \"a.b\" }",
            at(
                3,
                "name: \"a.b\" contains a point, which separates the parts of a result's path\n  remedy: write \"a-b\"",
            ),
        ),
        (
            "{ requests = 3 }",
            at(3, "name: missing\n  remedy: add name = \"NAME\" (the client's name in results)"),
        ),
        (
            "{ name = \"a\", span = { from = 0.5, to = 0.5 } }",
            at(
                3,
                "span: the span from 0.5 to 0.5 is empty\n  remedy: write a span such as { from = 0.25, to = 0.5 }",
            ),
        ),
        (
            "{ name = \"a\" },\n{ name = \"b\", read_fraction = 0.7, trim_fraction = 0.5 }",
            at(
                4,
                "trim_fraction: the shares 0.7 of reads and 0.5 of TRIMs add up to more than 1\n  remedy: read_fraction + \
                   trim_fraction must be at most 1",
            ),
        ),
        (
            "{ name = \"a\", arrival = { iops = 5 }, think_time = \"1ms\" }",
            at(
                3,
                "think_time: has no effect on an open loop, whose requests are due at their own times\n  remedy: leave \
                   think_time out, or write arrival = { queue_depth = 1 }",
            ),
        ),
        (
            "{ name = \"a\", outstanding = 5 }",
            at(
                3,
                "outstanding: has no effect on a closed loop, whose queue_depth is the number of outstanding requests\n  \
                   remedy: leave outstanding out, or write arrival = { iops = 20000 }",
            ),
        ),
        (
            "{ name = \"a\", arrival = { iops = 5 }, latency_from = \"submission\" }",
            at(
                3,
                "latency_from: \"submission\" has no effect on a client whose requests never wait at it\n  remedy: leave \
                   latency_from out, or limit an open loop with outstanding = 32",
            ),
        ),
        (
            "{ name = \"a\", placement = 1 }",
            at(
                3,
                "placement: the drive has no placement 1: it has 1\n  remedy: set a placement below 1, or placement.handles and groups that include it",
            ),
        ),
        ("{ name = \"a\", start = \"200000d\" }", "run.toml:3: workload.clients[0].start".to_owned()),
    ] {
        let errors = says(&of(clients));
        assert!(errors.contains(&text), "{clients}: {errors}");
    }
    let drive = "[drive]\nchannels = 1\nchips_per_channel = 1\nblocks_per_plane = 32\npages_per_block = 16\npage_size = \"4KiB\"\nop = 1.0\n";
    for (client, text) in [
        ("span = { from = \"0KiB\", to = \"1TiB\" }", "the span ends at 1TiB, beyond the"),
        ("span = { from = 0.9, to = 0.91 }, size = \"128KiB\"", "do not fit into a span of"),
    ] {
        let errors = says(&format!("{drive}{}", of(&format!("{{ name = \"a\", {client} }}"))));
        assert!(errors.contains(text), "{errors}");
    }
    assert!(
        says("[workload]\nclients = []\n")
            .starts_with("run.toml:2: workload.clients: an empty list\n  remedy: write")
    );
    golden(
        "[workload]\nsynthetic = {}\nclients = [{ name = \"a\" }]\n",
        "run.toml:3: workload.clients: conflicts with workload.synthetic\n  remedy: keep exactly one of workload.trace, \
         workload.profile, workload.synthetic, workload.clients",
    );
    golden(
        "[workload]\nclients = [{ name = \"a\" }]\narrival = { iops = 5 }\n",
        "run.toml:3: workload.arrival: belongs to workload.trace or workload.profile or workload.synthetic, but the workload \
         is workload.clients\n  remedy: take the line out, or give workload.trace or workload.profile or workload.synthetic \
         instead",
    );
    golden(
        "[workload]\nclients = [{ name = \"a\" }]\ndevice = \"sda\"\n",
        "run.toml:3: workload.device: belongs to workload.trace, but the workload is workload.clients\n  remedy: take the \
         line out, or give workload.trace instead",
    );
}

#[test]
fn wrong_workloads_are_errors() {
    let sources = "workload.trace, workload.profile, workload.synthetic, workload.clients";
    golden(
        "[workload]\nprofile = \"msr/hm_0\"\nwhole_pages = 4096\n",
        "run.toml:3: workload.whole_pages: expected true or false, found the number 4096\n  remedy: write true or false",
    );
    golden(
        "[workload]\nbeyond = \"wrap\"\n",
        &format!(
            "run.toml:2: workload: no source of requests\n  remedy: give exactly one of {sources}, or take the section's keys out"
        ),
    );
    golden(
        "[workload]\nsynthetic = {}\ntrace = \"a\"\n",
        &format!(
            "run.toml:3: workload.trace: conflicts with workload.synthetic\n  remedy: keep exactly one of {sources}"
        ),
    );
    golden(
        "[workload]\nsynthetic = {}\nformat = \"msr\"\n",
        "run.toml:3: workload.format: belongs to workload.trace, but the workload is workload.synthetic\n  remedy: \
         take the line out, or give workload.trace instead",
    );
    golden(
        "[workload]\nsynthetic = {}\narrival = \"trace\"\n",
        "run.toml:3: workload.arrival: a synthetic workload has no arrival times of its own\n  remedy: write arrival = \
         { queue_depth = 32 } or arrival = { iops = 20000 }",
    );
    golden(
        "[workload]\nsynthetic = { requests = 50 }\nrepeat = 2\nwarm_up = 100\n",
        "run.toml:4: workload.warm_up: a warm-up of 100 requests leaves none of the workload's 100 for the results\n  \
         remedy: set workload.warm_up to less than 100, or play more requests",
    );
    golden(
        "[workload]\nprofile = \"msr/hm_0\"\nrequests_max = 7\nwarm_up = 8\n",
        "run.toml:4: workload.warm_up: a warm-up of 8 requests leaves none of the workload's 7 for the results\n  \
         remedy: set workload.warm_up to less than 7, or play more requests",
    );
    for accepted in
        ["synthetic = { requests = 50 }\nwarm_up = 49", "profile = \"msr/hm_0\"\nwarm_up = 1000000000"]
    {
        assert!(load_with(&format!("[workload]\n{accepted}\n"), &[]).is_ok(), "{accepted}");
    }
    golden(
        "[reliability]\npage_variation = 0.3\n",
        "run.toml:2: reliability.page_variation: has no effect with reliability.rber = \"none\"\n  remedy: set \
         reliability.rber, or reliability.page_variation = 0.0",
    );
    golden(
        "[reliability]\npage_variation = 2.5\n",
        "run.toml:2: reliability.page_variation: the number 2.5 is out of range\n  remedy: a value from 0 to 2",
    );
    let bursts =
        |keys: &str| format!("[workload]\nsynthetic = {{}}\narrival = {{ bursts = {{ {keys} }} }}\n");
    golden(
        &bursts("requests = 50, at_once = 0.001, idle = \"20ms\""),
        "run.toml:3: workload.arrival: at_once = 0.001 of 50 requests is less than one request\n  remedy: at_once must be \
         at least 0.02",
    );
    golden(
        &bursts("requests = 50, at_once = 70, idle = \"20ms\""),
        "run.toml:3: workload.arrival.bursts.at_once: the number 70 is out of range\n  remedy: a value above 0 and at most 1",
    );
    golden(
        &bursts("requests = 0, at_once = 0.7, idle = \"20ms\""),
        "run.toml:3: workload.arrival.bursts.requests: the number 0 is out of range\n  remedy: a value from 1 to 1000000000000",
    );
    golden(
        &bursts("requests = 50, at_once = 0.7, idle = \"2d\""),
        "run.toml:3: workload.arrival.bursts.idle: \"2d\" is out of range\n  remedy: a value from 1ns to 1d",
    );
    golden(
        &bursts("requests = 50, at_once = 0.7"),
        "run.toml:3: workload.arrival.bursts.idle: missing\n  remedy: add idle = \"50us\" (time between single requests, and from the last single request to the next round)",
    );
    golden(
        &bursts("requests = 50, at_once = 0.7, idel = \"20ms\""),
        "run.toml:3: workload.arrival.bursts.idel: unknown parameter\n  remedy: did you mean idle? there are: requests, \
         at_once, idle\nrun.toml:3: workload.arrival.bursts.idle: missing\n  remedy: add idle = \"50us\" (time between \
         single requests, and from the last single request to the next round)",
    );
    golden(
        "[workload]\nprofile = \"msr/hm_0\"\narrival = { iops = 10 }\ntime_scale = 2.0\n",
        "run.toml:4: workload.time_scale: has a meaning only with workload.arrival = \"trace\"; it is { iops = 10.0 }\n  \
         remedy: take the line out, or set workload.arrival = \"trace\"",
    );
    golden(
        "[workload]\nsynthetic = { read_fraction = 0.8, trim_fraction = 0.3 }\n",
        "run.toml:2: workload.synthetic: the shares 0.8 of reads and 0.3 of TRIMs add up to more than 1\n  remedy: \
         read_fraction + trim_fraction must be at most 1",
    );
    golden(
        "[workload]\nsynthetic = { size = { \"4KiB\" = 0.5, \"4096B\" = 0.5, \"5s\" = 1 } }\n",
        "run.toml:2: workload.synthetic.size.\"4KiB\": the same size twice\n  remedy: give each size once",
    );
    golden(
        "[workload]\nsynthetic = { size = { \"4KiB\" = 0 } }\n",
        "run.toml:2: workload.synthetic.size.\"4KiB\": the number 0 is not a weight\n  remedy: a number above 0, such as 0.5",
    );
    golden(
        "[workload]\nsynthetic = { size = \"1GiB\", span = 0.1 }\n",
        "run.toml:2: workload.synthetic: requests of up to 1073741824 bytes do not fit into a span of 200699084 \
         bytes\n  remedy: set smaller requests, or a larger span",
    );
    golden(
        "[workload]\nsynthetic = { adress = \"uniform\" }\n",
        "run.toml:2: workload.synthetic.adress: unknown parameter\n  remedy: did you mean address? there are: \
         requests, read_fraction, trim_fraction, size, address, span, align",
    );
    golden(
        "[workload]\ntrace = \"\"\n",
        "run.toml:2: workload.trace: empty text\n  remedy: write a file name in quotes, or take the line out",
    );
}

/// Regression: times that are impossible only in combination led to endless loops or wrong results.
#[test]
fn times_beyond_the_end_of_simulated_time_are_errors() {
    let workload = |keys: &str| format!("[workload]\nsynthetic = {{ requests = 200 }}\n{keys}\n");
    golden(
        &workload("arrival = { iops = 1e-9 }"),
        "run.toml:3: workload.arrival: of 200 requests only 3 arrive before the end: with reliability.clock_scale = 1 simulated \
         time ends after 68.1 years, where ages reach 68 years (2^31 s)\n  remedy: set at least iops = 9.32e-8, \
         or fewer requests",
    );
    assert!(load_with(&workload("arrival = { iops = 9.32e-8 }"), &[]).is_ok());
    let bursts = "arrival = { bursts = { requests = 1, at_once = 1.0, idle = \"1d\" } }\nrepeat = 1500";
    golden(
        &workload(bursts),
        "run.toml:3: workload.arrival: of 300000 requests only 24856 arrive before the end: with reliability.clock_scale = 1 \
         simulated time ends after 68.1 years, where ages reach 68 years (2^31 s)\n  remedy: set a shorter idle, \
         or fewer requests",
    );
    assert!(load_with(&workload(&bursts.replace("1500", "124")), &[]).is_ok());
    golden(
        &workload("arrival = { iops = 10 }\n[reliability]\nclock_scale = 1e9"),
        "run.toml:3: workload.arrival: of 200 requests only 22 arrive before the end: with reliability.clock_scale = 1000000000 \
         simulated time ends after 2.15 s, where ages reach 68 years (2^31 s)\n  remedy: set at least iops = 9.32e1, \
         or fewer requests",
    );
    golden(
        "[refresh]\npolicy = \"fcr\"\n[reliability]\nclock_scale = 1e-3\n",
        "run.toml:4: reliability.clock_scale: 365d at reliability.clock_scale = 0.001 is 1,000 years of simulated time, \
         which ends after 146 years (2^62 ns)\n  remedy: set a shorter time, or a higher reliability.clock_scale",
    );
    golden(
        "[refresh]\npolicy = \"fcr\"\ninterval = [{ pe = 3000, every = \"5ns\" }]\n[reliability]\nclock_scale = 6.0\n",
        "run.toml:3: refresh.interval: 5ns at reliability.clock_scale = 6 is less than a nanosecond of simulated time\n  \
         remedy: set a longer time, or a lower reliability.clock_scale",
    );
    golden(
        "[timing]\noff_chip_mb_per_s = 1e-300\n",
        "run.toml:2: timing.off_chip_mb_per_s: expected at most 10 s for a page of 4096 bytes, found 1.3e290 \
         years\n  remedy: set at least 4.1e-4",
    );
    assert!(load_with("[timing]\noff_chip_mb_per_s = 4.1e-4\n", &[]).is_ok());
    golden(
        "[timing]\noff_chip_mb_per_s = { read = 1200, write = 1e-300 }\n",
        "run.toml:2: timing.off_chip_mb_per_s: write = 1e-300: expected at most 10 s for a page of 4096 bytes, found 1.3e290 \
         years\n  remedy: set at least 4.1e-4",
    );
    golden(
        "[drive]\npage_size = \"8KiB\"\n[host]\nlink = { mb_per_s = 1e-300 }\n",
        "run.toml:4: host.link: mb_per_s = 1e-300: expected at most 10 s for a page of 8192 bytes, found 2.6e290 \
         years\n  remedy: set at least 8.2e-4",
    );
    assert!(load_with("[drive]\npage_size = \"8KiB\"\n[host]\nlink = { mb_per_s = 8.2e-4 }\n", &[]).is_ok());
    golden(
        "[timing]\nchannel_ns_per_byte = 1e6\n[drive]\npage_size = \"64KiB\"\n",
        "run.toml:2: timing.channel_ns_per_byte: expected at most 10 s for a page of 65536 bytes, found \
         1 min 05 s\n  remedy: set at most 152587",
    );
    golden(
        "[power]\ncut_at = \"3s\"\n[reliability]\nclock_scale = 1e9\n",
        "run.toml:2: power.cut_at: 3s is after the end: with reliability.clock_scale = 1000000000 simulated time ends after \
         2.15 s, where ages reach 68 years (2^31 s)\n  remedy: set an earlier time",
    );
}

#[test]
fn unknown_presets_and_contradictions_to_presets_are_errors() {
    golden(
        "[drive]\npreset = \"laldpc\"\n",
        "run.toml:2: drive.preset: unknown preset \"laldpc\"\n  remedy: presets: bench-16g, capacitor-2d-128g, \
         capacitor-3d-128g, demo-128g, laldpc-32g, like-adata-atom-50-1t, like-micron-7450-max-800g, \
         like-samsung-970-evo-plus-1t, like-samsung-pm9a3-960g, like-sk-hynix-pe8110-960g, like-solidigm-p5520-1920g, modern-tlc-1t, partial-refresh-128g, rcopyback-64g",
    );
    let text = set_says("", "drive.preset=laldpc-32");
    assert!(text.starts_with(
        "--set: drive.preset: unknown preset \"laldpc-32\"\n  remedy: did you mean \"laldpc-32g\"?"
    ));
    // A value of a preset and a key of the file can be impossible together.
    let text = says("[drive]\npreset = \"capacitor-3d-128g\"\ncell = \"mlc\"\n");
    assert!(text.starts_with("run.toml:3: drive.cell: program times by layer"), "{text}");
}

#[test]
fn wrong_overrides_are_errors() {
    let is = |set: &str, expected: &str| assert_eq!(set_says("", set), expected);
    is(
        "gc.victim",
        "--set: gc.victim: no value\n  remedy: write it as --set gc.victim=VALUE, such as --set gc.victim=fifo",
    );
    is(
        "drive.op=",
        "--set: drive.op: no value\n  remedy: write it as --set drive.op=VALUE, such as --set gc.victim=fifo",
    );
    is("seed", "--set: seed: no value\n  remedy: write it as --set seed=VALUE, such as --set gc.victim=fifo");
    is(
        "energy=1",
        "--set: energy: a section and no key\n  remedy: set one of its keys; [energy] has: read, program, erase, \
         transfer_per_byte, idle",
    );
    is(
        "gc.victim.random={k=8",
        "--set: gc.victim: not a TOML value: {k=8\n  remedy: quote the whole argument: --set 'gc.victim.random={k=8}'",
    );
    is(
        "timing.read=50",
        "--set: timing.read: expected a time, found the number 50 without a unit\n  remedy: write it as \"50us\" (units: \
         ns, us, ms, s, min, h, d)",
    );
    is(
        "gc.victm=fifo",
        "--set: gc.victm: unknown key\n  remedy: did you mean gc.victim? [gc] has: victim, pacing, foreground, background_free, \
         foreground_free, idle_valid_max, idle_after",
    );
    assert_eq!(
        set_says("reliability.pe_cycles = 10", "drive.endurance=5"),
        "--set: drive.endurance: blocks start with 10 P/E cycles and retire at 5\n  remedy: set drive.endurance above \
         10, or reliability.pe_cycles below 5",
    );
}

#[test]
fn all_errors_are_reported_together_in_the_order_of_the_lines_and_fit_on_a_screen() {
    let text = says("[timing]\nread = 1\n[gc]\nvictim = \"x\"\n[drive]\nop = 0.001\n");
    let lines: Vec<&str> = text.lines().filter(|l| l.starts_with("run.toml")).collect();
    assert_eq!(lines.len(), 3);
    assert!(
        lines[0].starts_with("run.toml:2")
            && lines[1].starts_with("run.toml:4")
            && lines[2].starts_with("run.toml:6")
    );
    let many: String = (0..30).map(|i| format!("x{i} = 1\n")).collect();
    let errors = load_with(&many, &[]).unwrap_err();
    assert_eq!(errors.all().len(), 30);
    let text = errors.to_string();
    assert!(text.lines().count() <= 25, "{text}");
    let shown = text.lines().filter(|line| line.starts_with("run.toml")).count();
    assert!(shown >= 10 && text.ends_with(&format!("\nand {} more", 30 - shown)), "{text}");
}

#[test]
fn a_key_with_a_wrong_value_does_not_cause_further_errors() {
    let errors = load_with("[drive]\nop = \"much\"\nblocks_per_plane = 4\ncell = \"qlc\"\nlayers = 7\n", &[])
        .unwrap_err();
    assert_eq!(errors.all().iter().map(|e| e.key.as_str()).collect::<Vec<_>>(), ["drive.op", "drive.cell"]);
}

/// 64 pages: with op = 100 the logical pages are 64 / 101, less than one page.
const NO_LOGICAL_PAGE: &str = "[drive]\nchannels = 1\nchips_per_channel = 1\ndies_per_chip = 1\n\
                               planes_per_die = 1\nblocks_per_plane = 8\npages_per_block = 8\nop = 100\n";

#[test]
fn a_drive_without_a_logical_page_is_an_error() {
    let text = says(NO_LOGICAL_PAGE);
    assert!(
        text.starts_with("run.toml:8: drive.op: a plane has 8.0 blocks beyond its logical pages"),
        "{text}"
    );
    assert!(text.contains("remedy: set drive.op = 0.561 or "), "{text}");
    // 64 pages / 64 are one page.
    for op in ["drive.op=0.561", "drive.op=63"] {
        load_with(NO_LOGICAL_PAGE, &[op]).unwrap_or_else(|e| panic!("{e}"));
    }
}

/// With op = 100, 13 blocks of 8 pages have one logical page: 104 / 101.
#[test]
fn the_blocks_proposed_for_a_drive_without_a_logical_page_are_accepted() {
    load_with(NO_LOGICAL_PAGE, &["drive.blocks_per_plane=13"]).unwrap_or_else(|e| panic!("{e}"));
    let text = says(NO_LOGICAL_PAGE);
    assert!(text.ends_with("drive.blocks_per_plane = 13"), "{text}");
}

#[test]
fn settings_of_migration_need_what_they_act_on() {
    let check = |text: &str| load_with(text, &[]).unwrap_err().to_string();
    let of = |migration: &str, rest: &str| {
        check(&format!("[migration]\n{migration}\n{rest}\n[drive]\nop = 0.9\n"))
    };
    let copies = "policy.rcopyback.limit = 2";
    let fcfs = of(&format!("{copies}\ncopyback = \"split\""), "[timing]\nscheduler = \"fcfs\"");
    assert!(
        fcfs.contains("no effect with timing.scheduler = \"fcfs\"") && fcfs.contains("\"whole\""),
        "{fcfs}"
    );
    let off_chip = of("copyback = \"split\"", "");
    assert!(off_chip.contains("no effect with migration.policy = \"off-chip\""), "{off_chip}");
    let whole = check(&format!("[drive]\nop = 0.9\nregisters = 2\n[migration]\n{copies}\n"));
    assert!(whole.contains("has a meaning only with migration.copyback = \"split\""), "{whole}");
    let none = of(copies, "[reliability]\ncopyback = \"propagate\"");
    assert!(none.contains("no effect with reliability.rber = \"none\""), "{none}");
    let both = of(
        copies,
        "[ecc]\nlevels = \"laldpc\"\n[reliability]\nrber = \"vth\"\ncopyback = \"propagate\"\ncopyback_error = 1e-4",
    );
    assert!(both.contains("has a meaning only with reliability.copyback = \"constant\""), "{both}");
    let levels = "[ecc]\nlevels = \"laldpc\"\n[reliability]\nrber = \"vth\"\n[refresh]\npolicy";
    for (rest, key) in [
        ("[gc]\nforeground = \"blocking\"".to_owned(), "gc.foreground"),
        (
            "[cache]\nsize = \"1MiB\"\nsync = \"smart\"\n[capacitor]\ncapacitance = \"100mF\"".to_owned(),
            "capacitor.capacitance",
        ),
        (format!("{levels} = \"partial\""), "refresh.policy"),
        (format!("{levels}.fcr.in_place = true"), "refresh.policy"),
    ] {
        let errors = of("first_block = \"shared\"", &rest);
        let expected = format!("\"shared\" cannot be combined with this {key}");
        assert!(errors.contains(&expected) && errors.contains("\"own\""), "{errors}");
    }
}

#[test]
fn a_mapping_unit_is_a_power_of_two_of_at_most_a_page() {
    let of = |unit: &str| set_says("[drive]\npage_size = \"16KiB\"\n", &format!("ftl.mapping_unit={unit}"));
    assert_eq!(
        of("3KiB"),
        "--set: ftl.mapping_unit: expected a power of two, found 3072 bytes\n  remedy: write \"4KiB\", or another \
         power of two"
    );
    assert_eq!(
        of("32KiB"),
        "--set: ftl.mapping_unit: a mapping unit of 32KiB is larger than a page of 16KiB\n  remedy: set \
         ftl.mapping_unit = \"16KiB\" at most"
    );
    let many = set_says("[drive]\npage_size = \"64KiB\"\n", "ftl.mapping_unit=512B");
    assert!(many.contains("at most 64 mapping units in a page, found 128"), "{many}");
}

#[test]
fn mechanisms_by_page_refuse_a_mapping_unit_below_the_page() {
    let text = "[drive]\npage_size = \"16KiB\"\n[ftl]\nmapping_unit = \"4KiB\"\n";
    for set in
        ["migration.first_block=shared", "refresh.policy.fcr={ in_place = true }", "power.gc_in_flush=true"]
    {
        let said = set_says(text, set);
        assert!(
            said.contains("a mapping unit below the page cannot be simulated together yet"),
            "{set}: {said}"
        );
    }
    for set in [
        "refresh.policy=fcr",
        "power.cut_after_requests=5",
        "power.cut_at=1s",
        "capacitor.capacitance=1mF",
        "migration.policy.rcopyback={ limit = 2 }",
    ] {
        assert!(load_with(text, &[set]).is_ok(), "{set}");
    }
}

#[test]
fn mechanisms_on_the_die_of_a_block_refuse_superblocks_of_the_drive() {
    for (text, what, key) in [
        ("power = { gc_in_flush = true }", "GC during the emergency flush", "power.gc_in_flush"),
        (
            "refresh = { policy = \"partial\" }\npower = { cut_at = \"1s\" }",
            "partial refresh with power loss",
            "refresh.policy",
        ),
        (
            "migration = { first_block = \"shared\" }",
            "a first block that GC shares with the host",
            "migration.first_block",
        ),
        ("refresh = { policy = { fcr = { in_place = true } } }", "refresh in place", "refresh.policy"),
    ] {
        let said = set_says(&format!("timing = {{ multi_plane = true }}\n{text}\n"), "ftl.superblock=drive");
        let expected = format!(
            "ftl.superblock: {what} and superblocks of several dies cannot be simulated together yet\n  remedy: set \
             ftl.superblock = \"die\" or \"plane\", or leave out {key}"
        );
        assert!(said.contains(&expected), "{said}");
        assert!(!said.contains("superblocks of several planes"), "{said}");
    }
    // Superblocks of a drive of one die are those of the die.
    let one_die = "[drive]\nchannels = 1\nchips_per_channel = 1\n[timing]\nmulti_plane = true\n[power]\ncut_at = \"1s\"\n";
    assert!(load_with(one_die, &["ftl.superblock=drive"]).is_ok());
    assert!(
        load_with("[drive]\nplanes_per_die = 1\n", &["ftl.superblock=drive", "refresh.policy=fcr"]).is_ok()
    );
}

#[test]
fn superblocks_need_multi_plane_operations_and_one_shot_programs_whole_wordlines() {
    assert_eq!(
        set_says("[drive]\nplanes_per_die = 4\n", "ftl.superblock=die"),
        "--set: ftl.superblock: the blocks of a superblock are erased by one operation of several planes\n  remedy: set \
         timing.multi_plane = true, or ftl.superblock = \"plane\""
    );
    assert!(load_with("[drive]\nplanes_per_die = 1\n", &["ftl.superblock=die"]).is_ok());
    let cut = "[timing]\nmulti_plane = true\n[ftl]\nsuperblock = \"die\"\n[power]\ncut_at = \"1s\"\n";
    assert!(load_with(cut, &["drive.planes_per_die=4"]).is_ok());
    let said = set_says("[drive]\nplanes_per_die = 4\n", "ftl.superblock=drive");
    assert!(said.contains("erased by one operation of several planes"), "{said}");
    assert_eq!(
        set_says("[drive]\ncell = \"3d-tlc\"\nblocks_per_plane = 512\n", "drive.program_order=one-shot"),
        "--set: drive.program_order: a block of 64 pages has no whole number of wordlines of 3 pages\n  remedy: set \
         drive.pages_per_block = 66, or drive.program_order = \"page\""
    );
    let by_kind = "[timing]\nprogram = { lsb = \"300us\", msb = \"1ms\" }\n";
    let said = set_says(by_kind, "drive.program_order=one-shot");
    assert!(said.contains("a one-shot program writes all pages of a wordline, so it has no times"), "{said}");
}

#[test]
fn a_write_buffer_needs_units_and_room_for_a_page() {
    let text = "[drive]\npage_size = \"16KiB\"\n";
    let said = set_says(text, "ftl.buffer=64KiB");
    assert!(
        said.contains("a write buffer gathers mapping units, but ftl.mapping_unit is the page"),
        "{said}"
    );
    let units = format!("{text}[ftl]\nmapping_unit = \"4KiB\"\n");
    let said = set_says(&units, "ftl.buffer=8KiB");
    assert!(said.contains("a write buffer of 8KiB has no room for what one program writes"), "{said}");
    let both = format!("{units}buffer = \"64KiB\"\n");
    assert!(load_with(&both, &[]).is_ok());
    assert!(load_with(&both, &["cache.size=1MiB"]).is_ok());
    assert!(load_with(&both, &["cache.dirty_budget=0.5"]).is_ok());
    let said = set_says(&units, "cache.dirty_budget=0.5");
    assert!(said.contains("0.5 has no effect without a write cache or buffer"), "{said}");
}

/// The VSM holds two programs at least. On this drive a program writes two flash pages of each of the two planes.
#[test]
fn a_vsm_needs_room_for_two_programs() {
    let text = "[timing]\nmulti_plane = true\nprogram = \"1ms\"\n[drive]\nprogram_order = \"one-shot\"\n\
                planes_per_die = 2\n[ftl]\nsuperblock = \"die\"\n";
    let said = set_says(text, "refresh.policy=partial");
    assert!(said.contains("a VSM of 4 pages has no room for two programs of 4 pages"), "{said}");
    assert!(said.contains("remedy: set refresh.policy.partial.vsm_pages = 8 at least"), "{said}");
    assert!(load_with(text, &["refresh.policy.partial.vsm_pages=8"]).is_ok());
    // A program of one page needs no more than one page.
    assert!(load_with("", &["refresh.policy.partial.vsm_pages=1"]).is_ok());
    let said = set_says(
        "[drive]\npages_per_block = 16384\nblocks_per_plane = 32\npage_size = \"16KiB\"\n[ftl]\nmapping_unit = \"2KiB\"\n",
        "refresh.policy=partial",
    );
    assert!(said.contains("at most 65535 mapping units in a superblock, found 131072"), "{said}");
}

/// The write cache holds mapping units, so it needs room for one of them.
#[test]
fn a_write_cache_needs_room_for_a_mapping_unit() {
    let text = "[drive]\npage_size = \"16KiB\"\n[cache]\nsync = \"eager\"\nsize = \"8KiB\"\n";
    let said = set_says(text, "ftl.mapping_unit=page");
    assert!(said.contains("\"eager\" has no effect without a write cache"), "{said}");
    assert!(load_with(text, &["ftl.mapping_unit=4KiB"]).is_ok());
}

/// The fewest blocks of a plane of the default drive, 32 planes of 256 blocks, with a share of bad blocks and a seed.
fn fewest_blocks(sets: &[&str]) -> u32 {
    let spec = load_with("drive.op = 1.0\n", sets).expect("half of the blocks are spare").spec;
    spec.geometry().fewest_superblocks()
}

/// At op = 0.07 a plane of the default drive has 15,313 logical pages, which is 239.3 blocks, and GC needs three more. At
/// op = 0.09 these are 15,032 pages in 234.9 blocks, and 237.9 with GC.
#[test]
fn a_drive_whose_bad_blocks_leave_no_room_is_an_error() {
    let text = "[drive]\nop = 0.07\nbad_blocks = 0.05\n";
    golden(
        text,
        "run.toml:3: drive.bad_blocks: a plane (238 of 256 blocks by drive.bad_blocks = 0.05, seed = 1) has 0.0 blocks \
         beyond its logical pages and needs 3.0: 1 open and 1 free for GC, 1 of garbage for GC to gain from\n  remedy: \
         set drive.op = 0.09 or drive.blocks_per_plane = 749, or fewer drive.bad_blocks",
    );
    // The remedies are enough, and not more op than needed.
    for remedy in ["drive.op=0.09", "drive.blocks_per_plane=749", "drive.bad_blocks=0.01"] {
        load_with(text, &[remedy]).unwrap_or_else(|e| panic!("{e}"));
    }
    assert!(load_with(text, &["drive.op=0.089"]).is_err());
    // Which draws are refused: those that leave a plane fewer blocks than its logical pages and the needs of GC.
    let mut accepted = [0, 0];
    for seed in 0..40 {
        let set = format!("seed={seed}");
        let fits = fewest_blocks(&[&set, "drive.bad_blocks=0.03"]) * 64 >= 15_313 + 3 * 64;
        match load_with("drive.bad_blocks = 0.03\n", &[&set]) {
            Ok(_) => assert!(fits, "{set} is accepted"),
            Err(errors) => {
                let errors = errors.to_string();
                assert!(!fits && errors.starts_with("--set: seed: a plane ("), "{errors}");
                assert!(errors.contains(&format!("drive.bad_blocks = 0.03, seed = {seed})")), "{errors}");
            }
        }
        accepted[usize::from(fits)] += 1;
    }
    assert!(accepted.iter().all(|&count| count > 4), "{accepted:?}");
}

#[test]
fn a_fill_that_bad_blocks_leave_no_room_for_is_an_error() {
    let text = "[drive]\nop = 0.3\nbad_blocks = 0.05\n[precondition]\nused = 0.93\nvalid = 0.5\n";
    golden(
        text,
        "run.toml:5: precondition.used: used = 0.93 leaves a plane (238 of 256 blocks by drive.bad_blocks = 0.05, seed = \
         1) fewer than the 2 blocks that it needs at the start\n  remedy: set used to at most 0.921",
    );
    load_with(text, &["precondition.used=0.921"]).unwrap_or_else(|e| panic!("{e}"));
    load_with(text, &["drive.bad_blocks=0"]).unwrap_or_else(|e| panic!("{e}"));
}

#[test]
fn what_is_not_modelled_is_told() {
    golden(
        "[zns]\nzones = 3\n",
        "run.toml:1: zns: not modelled\n  remedy: the drive has the block interface only, without zones; see \
         docs/explanation/not-modelled.md",
    );
    for text in
        ["[drive]\nnamespaces = 2\n", "[dedup]\n", "[ftl]\ncompression = 0.5\n", "host_memory_buffer = 1\n"]
    {
        assert!(says(text).contains(": not modelled\n  remedy: "), "{}", says(text));
    }
    let cell = says("[drive]\ncell = \"qlc\"\n");
    assert!(cell.starts_with("run.toml:2: drive.cell: \"qlc\" is not modelled\n"), "{cell}");
}

/// The settings of placement handles that cannot be, with the key, the reason and the remedy.
#[test]
fn placement_handles_that_cannot_be_are_refused() {
    let drive = "[drive]\nchannels = 2\nchips_per_channel = 1\nplanes_per_die = 2\nblocks_per_plane = 64\n\
                 pages_per_block = 16\npage_size = '4KiB'\nop = 0.5\n";
    for (sections, text) in [
        (
            "[placement]\nhandles = 2\nisolation = ['initial']\n",
            "placement.isolation: 1 isolations for 2 handles\n  remedy: write one for each handle, or set placement.handles = 1",
        ),
        (
            "[placement]\nhandles = 2\nisolation = ['initial', 'eternal']\n",
            "placement.isolation: expected \"initial\" or \"persistent\", found \"eternal\"",
        ),
        (
            "[placement]\nisolation = 'persistent'\n",
            "placement.isolation: \"persistent\" has no effect with placement.handles = 1",
        ),
        (
            "[placement]\nhandles = 17\n",
            "placement.handles: the number 17 is out of range\n  remedy: a value from 1 to 16",
        ),
        (
            "[placement]\ngroups = 2\n",
            "placement.groups: the placement of a write chooses its reclaim group, so its plane cannot follow from its \
             address\n  remedy: set ftl.allocation = \"dynamic\", or placement.groups = 1",
        ),
        (
            "[placement]\ngroups = 3\n[ftl]\nallocation = 'dynamic'\n",
            "placement.groups: 2 dies are not 3 reclaim groups of as many dies each\n  remedy: set placement.groups = 2, or \
             a multiple of 3 dies",
        ),
        (
            "[placement]\nreclaim_unit = 65\n",
            "placement.reclaim_unit: a reclaim unit of 65 blocks of a plane that has 64\n  remedy: set \
             placement.reclaim_unit to at most 64",
        ),
        (
            "[placement]\ngroups = 2\n[ftl]\nsuperblock = 'drive'\n[timing]\nmulti_plane = true\n",
            "a superblock of all dies is in every reclaim group\n  remedy: set ftl.superblock = \"die\" or \"plane\", or \
             placement.groups = 1",
        ),
        (
            "[placement]\nhandles = 2\n[migration]\nfirst_block = 'shared'\n[gc]\npacing = 'none'\n",
            "a first block that GC shares with the host mixes the data that placement handles keep apart\n  remedy: set \
             migration.first_block = \"own\", or leave out [placement]",
        ),
        (
            "[placement]\nhandles = 16\nisolation = 'persistent'\n[migration]\npolicy.rcopyback = { limit = 2 }\n",
            "would have 34 open blocks in a plane, of which it can have 32\n  remedy: set placement.handles to 2 fewer",
        ),
    ] {
        let errors = says(&format!("{drive}{sections}"));
        assert!(errors.contains(text), "{sections}: {errors}");
    }
}

/// Each handle has an open block in every plane: the refusal names the fewest blocks that are enough, and one fewer is
/// refused.
#[test]
fn the_open_blocks_of_handles_count_in_the_room_of_a_plane() {
    let drive = |blocks: u32, placement: &str| {
        format!(
            "[drive]\nchannels = 1\nchips_per_channel = 1\nplanes_per_die = 1\nblocks_per_plane = {blocks}\n\
             pages_per_block = 16\npage_size = '4KiB'\nop = 0.25\n[placement]\n{placement}"
        )
    };
    for (placement, names) in [
        ("handles = 8\n", "7 open for the placement handles"),
        (
            "handles = 4\nisolation = ['initial', 'persistent', 'persistent', 'initial']\n",
            "3 open and 1 free for GC",
        ),
    ] {
        let errors = says(&drive(24, placement));
        assert!(errors.contains(names), "{errors}");
        let remedy = errors.split("drive.blocks_per_plane = ").nth(1).expect("the remedy names blocks");
        let blocks: u32 = remedy.split([',', '\n']).next().unwrap().parse().unwrap();
        load_with(&drive(blocks, placement), &[]).expect("so many blocks are enough");
        assert!(says(&drive(blocks - 1, placement)).contains(names));
    }
}

/// A lack of room on a drive whose geometry has its defaults is an error of the line with the mechanism that needs room.
#[test]
fn room_is_an_error_of_the_mechanism_on_a_drive_of_defaults() {
    let with_handles = says("# a drive\nplacement.handles = 16\n");
    assert!(
        with_handles.starts_with("run.toml:2: placement.handles: a plane has 16.7 blocks"),
        "{with_handles}"
    );
    assert!(with_handles.contains("15 open for the placement handles"), "{with_handles}");
}

/// The room for an emergency flush is divided by the reclaim groups: more of them than dies are an error of their own.
#[test]
fn more_reclaim_groups_than_dies_are_an_error_of_their_own() {
    let errors = says("placement.groups = 33\ncapacitor.capacitance = 1\n");
    assert!(
        errors.starts_with("run.toml:1: placement.groups: 16 dies are not 33 reclaim groups"),
        "{errors}"
    );
}

#[test]
fn slc_mode_excludes_streams_of_hot_and_cold_data() {
    let error = says("[drive]\ncell = \"tlc\"\n[ftl]\nstreams = \"sepbit\"\n[slc]\ndynamic = 1.0\n");
    assert!(
        error.contains("SLC mode would mix the streams into which hot and cold data is divided"),
        "{error}"
    );
    assert!(error.contains("remedy: set ftl.streams = \"none\", or slc.static"), "{error}");
}
