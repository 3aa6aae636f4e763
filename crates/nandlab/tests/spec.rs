//! What a spec file means: defaults, presets, examples, layering, `show`, the hash and the schema.

use nandlab::spec::*;
use std::path::{Path, PathBuf};

fn load_with(text: &str, sets: &[&str]) -> Result<Loaded, SpecErrors> {
    let sets: Vec<String> = sets.iter().map(|s| s.to_string()).collect();
    load(text, "run.toml", Path::new("specs"), &sets)
}

fn spec(text: &str) -> Spec {
    load_with(text, &[]).unwrap_or_else(|e| panic!("{e}")).spec
}

fn spec_with(text: &str, sets: &[&str]) -> Spec {
    load_with(text, sets).unwrap_or_else(|e| panic!("{e}")).spec
}

fn folder(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..").join(name)
}

fn toml_files(name: &str) -> Vec<(String, String)> {
    let mut files: Vec<PathBuf> =
        std::fs::read_dir(folder(name)).unwrap().map(|entry| entry.unwrap().path()).collect();
    files.sort();
    let toml = files.into_iter().filter(|path| path.extension().is_some_and(|e| e == "toml"));
    toml.map(|path| {
        (path.file_stem().unwrap().to_str().unwrap().to_string(), std::fs::read_to_string(&path).unwrap())
    })
    .collect()
}

/// A spec that sets something in every section, and what each key of it means.
const RICH: &str = r#"
seed = 7
[drive]
preset = "capacitor-3d-128g"
op = 0.28
[timing]
off_chip_mb_per_s = 400
scheduler = "fcfs"
[ftl]
allocation = "PDWC"
[gc]
victim.random = { k = 3 }
idle_after = "1.5 ms"
[reliability]
pe_cycles = 1_000
retention = "365d"
[energy]
read = 5e-6
idle = "1W"
[precondition]
used = 0.5
[workload]
arrival.iops = 20_000
beyond = "wrap"
[workload.synthetic]
size = { "16KiB" = 0.25, "4KiB" = 0.75 }
address = { hot = 0.2, share = 0.8 }
align = "512B"
[output]
requests = true
"#;

#[test]
fn the_empty_file_is_the_documented_default_drive() {
    let spec = spec("");
    assert_eq!(spec.seed, 1);
    let drive = DriveSpec {
        channels: 4,
        chips_per_channel: 4,
        dies_per_chip: 1,
        planes_per_die: 2,
        blocks_per_plane: 256,
        pages_per_block: 64,
        page_size_bytes: 4096,
        cell: Cell::Mlc,
        layers: 1,
        op: 0.07,
        endurance: 3000,
    };
    assert_eq!(spec.drive, drive);
    let timing = TimingSpec {
        read_ns: 50_000,
        program: ProgramTime::Uniform(900_000),
        erase_ns: 3_500_000,
        channel_ns_per_byte: 2.5,
        command_ns: 0,
        decode_ns: 15_000,
        off_chip_bytes_per_s: None,
        scheduler: Scheduler::ReadFirst,
        multi_plane: false,
    };
    assert_eq!(spec.timing, timing);
    assert_eq!(spec.ftl.allocation, Allocation::Static(*b"CWDP"));
    assert_eq!(spec.ftl.wear_levelling, WearLevelling::Dynamic);
    assert_eq!(spec.gc.victim.name, "greedy");
    assert_eq!((spec.gc.background_free, spec.gc.foreground_free), (0.10, 0.05));
    assert_eq!(spec.reliability, ReliabilitySpec { pe_cycles: 0, retention_ns: 0, clock_scale: 1.0 });
    assert_eq!(spec.precondition, PreconditionSpec::None);
    assert_eq!(spec.workload, None);
}

#[test]
fn every_section_reaches_the_spec() {
    let spec = spec(RICH);
    assert_eq!(spec.seed, 7);
    assert_eq!((spec.drive.channels, spec.drive.op, spec.drive.layers), (4, 0.28, 32));
    assert_eq!(spec.timing.program, ProgramTime::ByLayer { fastest_ns: 1_300_000, slowest_ns: 2_600_000 });
    assert_eq!(spec.timing.off_chip_bytes_per_s, Some(400e6));
    assert_eq!(spec.timing.scheduler, Scheduler::Fcfs);
    assert_eq!(spec.ftl.allocation, Allocation::Static(*b"PDWC"));
    assert_eq!(spec.ftl.wear_levelling, WearLevelling::Static);
    assert_eq!((spec.gc.victim.name, spec.gc.victim.values.as_slice()), ("random", [3.0].as_slice()));
    assert_eq!(spec.gc.idle_after_ns, 1_500_000);
    assert_eq!((spec.energy.read_j, spec.energy.idle_w), (5e-6, 1.0));
    assert_eq!(spec.precondition, PreconditionSpec::Fill { used: 0.5, valid: 0.80 });
    let workload = spec.workload.unwrap();
    assert_eq!((workload.arrival, workload.beyond), (Arrival::Iops(20_000.0), Beyond::Wrap));
    let Source::Synthetic(synthetic) = workload.source else { panic!() };
    assert_eq!(synthetic.sizes, [(4096, 0.75), (16_384, 0.25)]);
    assert_eq!(synthetic.address, Address::Hot { hot: 0.2, share: 0.8 });
    assert_eq!((synthetic.requests, synthetic.read_fraction, synthetic.align_bytes), (1_000_000, 0.3, 512));
    assert!(spec.output.requests);
}

#[test]
fn a_trace_takes_its_options_and_its_folder() {
    let text = "[workload]\ntrace = \"./a.csv\"\nformat = \"msr\"\ndevice = \"0\"\nlenient = true\n\
                time_unit = \"us\"\ntime_scale = 0.5\n";
    let expected = TraceSpec {
        path: PathBuf::from("specs/a.csv"),
        format: Some("msr".into()),
        device: Some(DeviceChoice::One("0".into())),
        lenient: true,
        time_unit_ns: Some(1000.0),
    };
    let workload = spec(text).workload.unwrap();
    assert_eq!(workload.source, Source::Trace(expected));
    assert_eq!(workload.arrival, Arrival::Trace { time_scale: 0.5 });
    let workload =
        spec_with("", &["workload.trace=/t/b.csv", "workload.device=concatenate"]).workload.unwrap();
    let Source::Trace(trace) = workload.source else { panic!() };
    assert_eq!((trace.path, trace.device), (PathBuf::from("/t/b.csv"), Some(DeviceChoice::Concatenate)));
}

#[test]
fn the_four_kinds_of_preconditioning() {
    let of = |section: &str| spec(&format!("[precondition]\n{section}\n")).precondition;
    assert_eq!(of(""), PreconditionSpec::None);
    assert_eq!(of("valid = 0.7"), PreconditionSpec::Fill { used: 0.95, valid: 0.7 });
    assert_eq!(of("method = \"pts\""), PreconditionSpec::Pts { rounds_max: 10 });
    assert_eq!(of("rounds_max = 3"), PreconditionSpec::Pts { rounds_max: 3 });
    assert_eq!(of("load = \"drive.bin\""), PreconditionSpec::Load(PathBuf::from("specs/drive.bin")));
    let text = "[precondition]\nused = 0.9\nvalid = 0.5\n";
    assert_eq!(
        spec_with(text, &["precondition.method=pts"]).precondition,
        PreconditionSpec::Pts { rounds_max: 10 }
    );
    assert_eq!(
        spec_with(text, &["precondition.load=x"]).precondition,
        PreconditionSpec::Load("specs/x".into())
    );
    assert_eq!(spec_with(text, &["precondition.method=none"]).precondition, PreconditionSpec::None);
}

#[test]
fn layers_override_each_other_in_order() {
    let file = "[drive]\npreset = \"bench-16g\"\nop = 0.2\n[gc]\nvictim.random = { k = 4 }\n";
    let loaded = load_with(file, &["drive.channels=2", "drive.channels=8", "timing.read=25us"]).unwrap();
    assert_eq!((loaded.spec.drive.channels, loaded.spec.drive.op), (8, 0.2));
    assert_eq!((loaded.spec.drive.blocks_per_plane, loaded.spec.timing.read_ns), (512, 25_000));
    assert_eq!(loaded.origin("drive.op"), Some(("run.toml", Some(3))));
    assert_eq!(loaded.origin("drive.channels"), Some(("--set", None)));
    assert_eq!(loaded.origin("drive.blocks_per_plane").unwrap().0, "preset bench-16g");
    assert_eq!(loaded.origin("timing.erase"), None);
    // A whole policy slot is replaced.
    assert_eq!(spec_with(file, &["gc.victim=fifo"]).gc.victim.name, "fifo");
    assert_eq!(spec_with(file, &["gc.victim.random={}"]).gc.victim.values, [8.0]);
    assert_eq!(spec_with(file, &["gc.victim.random.k=2"]).gc.victim.values, [2.0]);
    // `--set` chooses the preset, too; the file's own keys stay above it.
    let drive = spec_with(file, &["drive.preset=laldpc-32g"]).drive;
    assert_eq!((drive.channels, drive.op), (8, 0.2));
}

#[test]
fn set_replaces_the_source_of_the_workload_and_what_belongs_to_it() {
    let file = "[workload]\ntrace = \"a.csv\"\nformat = \"msr\"\nbeyond = \"wrap\"\n";
    let workload = spec_with(file, &["workload.synthetic={ requests = 5 }"]).workload.unwrap();
    let Source::Synthetic(synthetic) = workload.source else { panic!() };
    assert_eq!((synthetic.requests, workload.beyond), (5, Beyond::Wrap));
    assert_eq!(workload.arrival, Arrival::QueueDepth(32));
    // One parameter of a synthetic workload leaves the others as they are.
    let file = "[workload]\nsynthetic = { requests = 9, read_fraction = 0.9 }\n";
    let sets = ["workload.synthetic.read_fraction=0", "workload.arrival.queue_depth=1"];
    let workload = spec_with(file, &sets).workload.unwrap();
    let Source::Synthetic(synthetic) = workload.source else { panic!() };
    assert_eq!((synthetic.requests, synthetic.read_fraction), (9, 0.0));
    assert_eq!(workload.arrival, Arrival::QueueDepth(1));
}

#[test]
fn every_example_loads() {
    let examples = toml_files("examples");
    assert!(examples.len() >= 5);
    for (name, text) in examples {
        let spec = load(&text, &name, Path::new("examples"), &[]).unwrap_or_else(|e| panic!("{e}")).spec;
        assert!(spec.workload.is_some(), "{name} has a workload");
    }
}

#[test]
fn every_preset_loads_and_has_the_capacity_of_its_name() {
    let names: Vec<&str> = presets().iter().map(|(name, _)| *name).collect();
    let files: Vec<String> = toml_files("presets").into_iter().map(|(name, _)| name).collect();
    assert_eq!(names, files, "every file of presets/ is compiled in");
    for &(name, about) in presets() {
        assert!(!about.is_empty());
        let loaded =
            load_with(&format!("[drive]\npreset = \"{name}\"\n"), &[]).unwrap_or_else(|e| panic!("{e}"));
        assert_eq!(loaded.presets().last().copied(), Some(name));
        let d = &loaded.spec.drive;
        let planes = u64::from(d.channels * d.chips_per_channel * d.dies_per_chip * d.planes_per_die);
        let pages = planes * u64::from(d.blocks_per_plane) * u64::from(d.pages_per_block);
        let gib = (pages * u64::from(d.page_size_bytes)) as f64 / (1u64 << 30) as f64;
        let raw = match name {
            "modern-tlc-1t" => 1056.0,
            "partial-refresh-128g" => 137.0,
            _ => name.rsplit('-').next().unwrap().trim_end_matches('g').parse().unwrap(),
        };
        assert_eq!(gib, raw, "{name}");
    }
}

#[test]
fn every_value_of_a_preset_states_its_source() {
    for (name, text) in toml_files("presets") {
        assert!(text.starts_with("# "), "{name} opens with what it is");
        // Of the drives of papers and makers each line says where it comes from; the made-up ones say so once.
        if !text.contains("No product") && !text.contains("no product") {
            for line in
                text.lines().filter(|l| l.contains(" = ") && !l.starts_with('#') && !l.contains("preset"))
            {
                assert!(line.contains(" # "), "{name}: {line}");
            }
        }
    }
}

#[test]
fn what_show_prints_loads_as_the_same_spec() {
    let mut texts = vec![String::new(), RICH.to_string()];
    texts.extend(toml_files("examples").into_iter().map(|(_, text)| text));
    texts.extend(presets().iter().map(|(name, _)| format!("[drive]\npreset = \"{name}\"\n")));
    for text in texts {
        let first = load_with(&text, &[]).unwrap();
        let shown = first.to_toml();
        let second = load_with(&shown, &[]).unwrap_or_else(|e| panic!("{e}\n{shown}"));
        assert_eq!(first.spec, second.spec);
        assert_eq!(first.canonical_json(), second.canonical_json());
        assert_eq!(first.hash(), second.hash());
    }
}

#[test]
fn show_names_every_key_with_its_origin() {
    let shown = load_with(RICH, &["gc.foreground_free=0.01"]).unwrap().to_toml();
    for line in [
        "# Built on preset capacitor-2d-128g, then capacitor-3d-128g.",
        "seed = 7  # seed of every random stream (run.toml:2)",
        "channels = 4  # channels (preset capacitor-2d-128g:4)",
        "victim = { random = { k = 3 } }  # which block is collected next (run.toml:12)",
        "foreground_free = 0.01  # share of the pages that can be free at which foreground GC starts (--set)",
        "idle_after = \"1500us\"  # without host requests for this long the drive is idle (run.toml:13)",
        "# trace =  # a trace file; .zst, .gz and .xz are read as they are (not set)",
        "# format =  # the trace's format; by content when not given (only with workload.trace)",
        "# rounds_max =  # overwrites of the logical capacity at most (only with precondition.method = \"pts\")",
    ] {
        assert!(shown.lines().any(|l| l == line), "{line}\nis not in\n{shown}");
    }
    for path in key_paths().into_iter().filter(|path| *path != "drive.preset") {
        let name = path.rsplit('.').next().unwrap();
        let found = shown.lines().any(|l| l.trim_start_matches("# ").starts_with(&format!("{name} =")));
        assert!(found, "{path}");
    }
}

#[test]
fn the_hash_depends_on_the_meaning_alone() {
    let hash = |text: &str| load_with(text, &[]).unwrap().hash();
    let one = "[gc]\nvictim.random = { k = 8 }\nidle_after = \"1ms\"\n[drive]\nop = 0.1\n";
    let same = "# a comment\ndrive.op = 0.10\n[gc]\nidle_after = \"1000us\"\nvictim = \"random\"\n";
    assert_eq!(hash(one), hash(same));
    assert_eq!(hash(one).len(), 16);
    assert_ne!(hash(one), hash(&one.replace("0.1", "0.2")));
    assert_ne!(hash(one), hash(&one.replace("k = 8", "k = 9")));
    // Known for good: results are found again by it.
    let json = load_with("", &[]).unwrap().canonical_json();
    assert!(
        json.starts_with("{\"cache\":{\"dirty_budget\":1.0,\"size\":0,\"sync\":\"none\"},\"capacitor\""),
        "{json}"
    );
    assert!(json.contains("},\"seed\":1,\"timing\":{"), "{json}");
}

#[test]
fn the_schema_has_every_key_with_its_description() {
    let schema = schema();
    for path in key_paths() {
        let node = match path.split_once('.') {
            Some((section, name)) => &schema["properties"][section]["properties"][name],
            None => &schema["properties"][path],
        };
        assert!(node["description"].as_str().is_some_and(|d| d.len() > 5), "{path}: {node}");
    }
    let text = schema.to_string();
    assert_eq!(serde_json::from_str::<serde_json::Value>(&text).unwrap(), schema);
    assert_eq!(schema["properties"]["gc"]["properties"]["background_free"]["default"], 0.1);
    assert!(text.contains("\"const\":\"cost-benefit\""));
    assert!(!text.contains("partial-aware"), "what is not built is not offered");
}
