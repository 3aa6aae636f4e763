//! Loading of specs: defaults, presets, examples, the order of layers, `show`, the hash and the schema.

use nandlab::base::geometry::KindTimes;
use nandlab::base::units::{DAY, MS, SECOND, Span, Time, US};
use nandlab::drive::spec::*;
use nandlab::flash::CopybackErrors;
use nandlab::sched::PlaneReads;
use nandlab::spec::SpecErrors;
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

/// A spec with keys in most sections.
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
whole_pages = true
[workload.synthetic]
size = { "16KiB" = 0.25, "4KiB" = 0.75 }
address = { hot = 0.2, share = 0.8 }
align = "512B"
[output]
requests = true
[host]
link = { mb_per_s = 3.5e3, latency = "1.5 us" }
"#;

/// All settings of LaLDPC, each with a value other than its default.
const LALDPC: &str = r#"
[ftl]
map.demand = { cache = "1.5MiB", eviction.read-level = { fixed = 500 }, translation_level = "cached-only", miss = "each", write_back = "before-insert" }
[ecc]
levels = [
    { rber_max = 0.005, sense = "50us", transfer = "20us", decode = "15us" },
    { rber_max = 0.0065, sense = "64.5us", transfer = "20us", decode = "15us" },
]
start = "block-level"
retry = "incremental"
[reliability]
rber.vth = { dvpp = 0.3, cell_to_cell = 0.04, sensing_step = 0.025, per_page_kind = true, unworn_loss = 250.0 }
read_disturb = 2.5e-9
copyback_error = 0.0001
retention = [{ age = "7d", share = 0.3 }, { age = "1h", share = 0.7 }]
"#;

/// All settings of the capacitor, and settings of the write cache and of power loss, each with a value other than its
/// default.
const CAPACITOR: &str = r#"
[cache]
size = "8MiB"
sync = "smart"
dirty_budget = "measured"
[capacitor]
capacitance = "75mF"
voltage = "5V"
voltage_min = "3300mV"
efficiency = 0.85
temperature = [{ from = "0d", celsius = -10 }, { from = "180d", celsius = 60.5 }]
age = "365d"
controller_power = "750mW"
program_power = 0.1
detect_every = "10d"
detect_grace = "12h"
recharge = "5s"
margin = 0.05
steps = "continuous"
flush = "csw"
flush_concurrency = 16
flush_order = "metadata"
metadata = "64MiB"
[power]
cut_at = "12s"
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
        bad_blocks: 0.0,
        endurance: 3000,
        registers: 1,
        program_order: ProgramOrder::Page,
    };
    assert_eq!(spec.drive, drive);
    let timing = TimingSpec {
        read: Some(KindTimes::uniform(50 * US)),
        program: ProgramTime::Uniform(900 * US),
        erase_ns: 3_500 * US,
        channel_ns_per_byte: 2.5,
        command: CommandTimes::default(),
        decode_ns: Some(15 * US),
        off_chip: OffChipRate::Unlimited,
        scheduler: Scheduler::ReadFirst,
        multi_plane: false,
        plane_reads: PlaneReads::Together,
        read_hold_ns: Span::ZERO,
        suspend: SuspendSpec::default(),
    };
    assert_eq!(spec.timing, timing);
    assert_eq!(spec.host, HostSpec { link: None, controller: None });
    assert_eq!(spec.ftl.allocation, Allocation::Static(*b"CWDP"));
    assert_eq!(spec.ftl.wear_levelling, WearLevelling::Dynamic);
    assert_eq!(spec.gc.victim.name, "greedy");
    assert_eq!((spec.gc.background_free, spec.gc.foreground_free), (0.10, 0.05));
    assert_eq!((spec.ftl.map, spec.ftl.wear_gap), (MapSpec::Page, 100));
    assert_eq!(spec.ecc, EccSpec::of(Vec::new(), StartLevel::First));
    let reliability = ReliabilitySpec {
        rber: RberSpec::None,
        read_disturb: 0.0,
        copyback: CopybackErrors::Constant,
        copyback_error: 0.0,
        page_variation: 0.0,
        pe_cycles: 0,
        retention: Retention::Shares(vec![(Span::ZERO, 1.0)]),
        clock_scale: 1.0,
    };
    assert_eq!(spec.reliability, reliability);
    assert_eq!(spec.precondition, PreconditionSpec::None);
    assert_eq!(spec.workload, None);
}

#[test]
fn keys_of_most_sections_reach_the_spec() {
    let spec = spec(RICH);
    assert_eq!(spec.seed, 7);
    assert_eq!((spec.drive.channels, spec.drive.op, spec.drive.layers), (4, 0.28, 32));
    assert_eq!(spec.timing.program, ProgramTime::ByLayer { fastest_ns: 1_300 * US, slowest_ns: 2_600 * US });
    let link = LinkSpec { bytes_per_s: 3.5e9, latency_ns: 3 * US / 2 };
    assert_eq!(spec.host.link, Some(link));
    assert_eq!(spec.timing.off_chip, OffChipRate::Shared(400e6));
    let separate = load_with("[timing]\noff_chip_mb_per_s = { read = 1200, write = 1000 }\n", &[]).unwrap();
    assert_eq!(separate.spec.timing.off_chip, OffChipRate::Separate { read: 1.2e9, write: 1e9 });
    assert_eq!(spec.timing.scheduler, Scheduler::Fcfs);
    assert_eq!(spec.ftl.allocation, Allocation::Static(*b"PDWC"));
    assert_eq!(spec.ftl.wear_levelling, WearLevelling::Static);
    assert_eq!((spec.gc.victim.name, spec.gc.victim.values.as_slice()), ("random", [3.0].as_slice()));
    assert_eq!(spec.gc.idle_after_ns, 1_500 * US);
    assert_eq!((spec.energy.read_j, spec.energy.idle_w), (5e-6, 1.0));
    assert_eq!(
        spec.precondition,
        PreconditionSpec::Fill { used: 0.5, valid: 0.80, order: FillOrder::Random }
    );
    let workload = spec.workload.unwrap();
    assert_eq!((workload.arrival, workload.beyond), (Arrival::Iops(20_000.0), Beyond::Wrap));
    assert!(workload.whole_pages);
    let Source::Synthetic(synthetic) = workload.source else { panic!() };
    assert_eq!(synthetic.sizes, [(4096, 0.75), (16_384, 0.25)]);
    assert_eq!(synthetic.address, Address::Hot { hot: 0.2, share: 0.8 });
    assert_eq!((synthetic.requests, synthetic.read_fraction, synthetic.align_bytes), (1_000_000, 0.3, 512));
    assert!(spec.output.requests);
}

#[test]
fn a_write_cache_has_a_size_a_sync_policy_and_a_budget() {
    let cache = |lines: &str| spec(&format!("[cache]\n{lines}\n")).cache;
    let none = cache("");
    assert_eq!((none.size_bytes, none.access_ns, none.sync.name), (0, US, "none"));
    assert_eq!((none.dirty_budget, none.read_room), (DirtyBudget::Share(1.0), ReadRoom::Skip));
    assert_eq!(cache("size = \"1MiB\"\nread_room = \"wait\"").read_room, ReadRoom::Wait);
    let punctual = cache("size = \"128MiB\"\naccess = \"500ns\"\nsync = \"punctual\"\ndirty_budget = 0.9");
    assert_eq!((punctual.size_bytes, punctual.access_ns), (128 << 20, US / 2));
    assert_eq!((punctual.sync.name, punctual.dirty_budget), ("punctual", DirtyBudget::Share(0.9)));
    let smart = cache("size = \"1MiB\"\nsync.smart = { cold_share = 0.1 }").sync;
    assert_eq!((smart.name, smart.values), ("smart", vec![0.05, 0.1, 1.0]));
    assert_eq!(cache("size = \"1MiB\"\nsync = \"smart\"\ndirty_budget = 0").sync.value(1), 0.05);
    for preset in ["capacitor-2d-128g", "capacitor-3d-128g"] {
        assert_eq!(spec(&format!("drive.preset = \"{preset}\"\n")).cache.size_bytes, 128 << 20);
    }
}

#[test]
fn no_capacitor_and_no_power_loss_are_the_default() {
    let spec = spec("");
    let capacitor = CapacitorSpec {
        capacitance_f: 0.0,
        voltage_v: 5.5,
        voltage_min_v: 2.5,
        esr_ohm: 0.0,
        efficiency: 0.9,
        temperature: vec![(Span::ZERO, 25.0)],
        age_ns: Span::ZERO,
        controller_w: 1.0,
        program_w: 0.0825,
        detect_every_ns: 20 * DAY,
        detect_grace_ns: DAY,
        recharge_ns: 10 * SECOND,
        margin: 0.10,
        steps: BudgetSteps::Five,
        flush: FlushMethod::Plain,
        flush_mode: FlushMode::Native,
        flush_concurrency: 0,
        flush_order: FlushOrder::Oldest,
        metadata_bytes: 0,
    };
    assert_eq!(spec.capacitor, capacitor);
    assert_eq!(
        spec.power,
        PowerSpec { cut_after_requests: 0, cut_at_ns: None, gc_in_flush: false, cut_in_recovery_ns: None }
    );
    assert!(!spec.models_power_loss());
    assert_eq!(superblock_needs(&spec).of("flush").free, 0);
}

#[test]
fn a_capacitor_and_its_flush_reach_the_spec() {
    let spec = spec(CAPACITOR);
    let capacitor = CapacitorSpec {
        capacitance_f: 0.075,
        voltage_v: 5.0,
        voltage_min_v: 3.3,
        esr_ohm: 0.0,
        efficiency: 0.85,
        temperature: vec![(Span::ZERO, -10.0), (180 * DAY, 60.5)],
        age_ns: 365 * DAY,
        controller_w: 0.75,
        program_w: 0.1,
        detect_every_ns: 10 * DAY,
        detect_grace_ns: DAY / 2,
        recharge_ns: 5 * SECOND,
        margin: 0.05,
        steps: BudgetSteps::Continuous,
        flush: FlushMethod::Csw,
        flush_mode: FlushMode::Native,
        flush_concurrency: 16,
        flush_order: FlushOrder::Metadata,
        metadata_bytes: 64 << 20,
    };
    assert_eq!(spec.capacitor, capacitor);
    assert_eq!(
        spec.power,
        PowerSpec {
            cut_after_requests: 0,
            cut_at_ns: Some(Time::START + 12 * SECOND),
            gc_in_flush: false,
            cut_in_recovery_ns: None
        }
    );
    assert_eq!(spec.cache.dirty_budget, DirtyBudget::Measured);
    assert!(spec.models_power_loss());
    let order = |name: &str| spec_with("", &[&format!("capacitor.flush_order={name}")]).capacitor.flush_order;
    assert_eq!((order("newest"), order("oldest")), (FlushOrder::Newest, FlushOrder::Oldest));
}

#[test]
fn a_cut_in_recovery_is_a_time_after_the_return_of_power() {
    let after = |text: &str| spec(text).power.cut_in_recovery_ns;
    assert_eq!(after("[power]\ncut_at = \"1s\"\n"), None);
    assert_eq!(after("[power]\ncut_at = \"1s\"\ncut_in_recovery = \"2ms\"\n"), Some(2 * MS));
    assert_eq!(after("[power]\ncut_after_requests = 9\ncut_in_recovery = \"0s\"\n"), Some(Span::ZERO));
    // The power of a drive that is stepped or served is cut by a call.
    assert!(spec("[power]\ncut_in_recovery = \"2ms\"\n").models_power_loss());
}

#[test]
fn cut_at_and_cut_after_requests_replace_each_other() {
    let file = "[power]\ncut_after_requests = 5\n";
    assert_eq!(
        spec(file).power,
        PowerSpec { cut_after_requests: 5, cut_at_ns: None, gc_in_flush: false, cut_in_recovery_ns: None }
    );
    assert!(spec(file).models_power_loss());
    let at = spec_with(file, &["power.cut_at=0s"]);
    assert_eq!(
        at.power,
        PowerSpec {
            cut_after_requests: 0,
            cut_at_ns: Some(Time::START),
            gc_in_flush: false,
            cut_in_recovery_ns: None
        }
    );
    assert!(at.models_power_loss());
    let after = spec_with("[power]\ncut_at = \"1ms\"\n", &["power.cut_after_requests=3"]);
    assert_eq!(
        after.power,
        PowerSpec { cut_after_requests: 3, cut_at_ns: None, gc_in_flush: false, cut_in_recovery_ns: None }
    );
    assert!(!spec_with("[power]\ncut_at = \"1ms\"\n", &["power.cut_after_requests=0"]).models_power_loss());
    // Without a capacitor there is no emergency flush, so no blocks are kept free for one.
    assert_eq!(superblock_needs(&after).of("flush").free, 0);
}

/// 476,625 logical pages are 14,895 pages on each of 32 planes. Their 466 translation pages, of 1024 entries each, are
/// 15 per plane.
#[test]
fn the_needs_of_a_plane_are_the_sum_over_its_mechanisms() {
    let alone = superblock_needs(&spec("[ftl]\nwear_levelling = \"none\"\n"));
    assert_eq!((alone.open(), alone.free(), alone.job(), alone.superblocks()), (1, 1, 1, 3));
    let sets = [
        "drive.op=0.1",
        "ftl.map=demand",
        "ftl.wear_levelling=static",
        "migration.policy=rcopyback",
        "refresh.policy=partial",
        "cache.size=16MiB",
        "capacitor.capacitance=75mF",
    ];
    let needs = superblock_needs(&spec_with("", &sets));
    let blocks: Vec<(u64, u64)> = needs.all().iter().map(|need| (need.open, need.free)).collect();
    // In this order: the host, GC, static wear levelling, translation pages, up to five copybacks in a row, combination pages,
    // emergency flush.
    assert_eq!(blocks, [(0, 0), (1, 1), (1, 0), (1, 1), (5, 1), (1, 1), (0, 3)]);
    // A job may open a block for off-chip moves and a block for copybacks. A block's worth of pages is garbage.
    assert_eq!((needs.open(), needs.free(), needs.job(), needs.superblocks()), (9, 7, 2, 17));
    assert_eq!((needs.host_units, needs.valid_units()), (14_895, 14_910));
    assert_eq!(needs.usable_units(256), (256 - 16) * 64);
    // 14,910 + 17 * 64 = 15,998 pages are 249.97 blocks.
    assert_eq!([249, 250].map(|blocks| needs.fit(blocks)), [false, true]);
}

#[test]
fn the_flush_reserve_holds_the_write_cache() {
    // The drive has 32 planes with blocks of 256 KiB.
    let blocks = |size: &str| {
        superblock_needs(&spec_with("", &["capacitor.capacitance=1mF", &format!("cache.size={size}")]))
            .of("flush")
            .free
    };
    assert_eq!(["0B", "2KiB", "4KiB", "8MiB", "8196KiB", "16MiB"].map(blocks), [1, 1, 2, 2, 3, 3]);
    // Of a cache larger than the drive only as many pages count as the drive has.
    let sets = ["capacitor.capacitance=1mF", "cache.size=1TiB", "drive.op=2"];
    assert_eq!(superblock_needs(&spec_with("", &sets)).of("flush").free, 87);
    for preset in ["capacitor-2d-128g", "capacitor-3d-128g"] {
        let text = format!("drive.preset = \"{preset}\"\ncapacitor.capacitance = \"75mF\"\n");
        assert_eq!(superblock_needs(&spec(&text)).of("flush").free, 3);
    }
}

#[test]
fn a_migration_policy_has_a_limit() {
    use nandlab::drive::spec::CopybackLimitSpec::{Fixed, Measured, Table};
    let migration = |value: &str| {
        let spec =
            spec(&format!("[migration]\npolicy{value}\n[drive]\nop = 0.5\n[ecc]\nlevels = \"laldpc\"\n"));
        let policy = spec.migration.policy;
        (policy.name, policy.copybacks_max(), policy.limit)
    };
    assert_eq!(spec("").migration.policy.name, "off-chip");
    let occupancy = |sets: &[&str]| spec_with("[drive]\nop = 0.5\n", sets).migration.policy.occupancy;
    let occupied = "migration.policy.rcopyback.occupancy=occupied";
    assert_eq!(occupancy(&["migration.policy=rcopyback"]), Occupancy::Writing);
    assert_eq!(occupancy(&["migration.policy.rcopyback.limit=2", occupied]), Occupancy::Occupied);
    assert_eq!(migration(" = \"off-chip\""), ("off-chip", 0, Fixed(0)));
    let table = || Table(vec![(0, 5), (1000, 4), (2000, 3), (3000, 2)]);
    assert_eq!(migration(" = \"rcopyback\""), ("rcopyback", 5, table()));
    assert_eq!(migration(".rcopyback-greedy = {}"), ("rcopyback-greedy", 5, table()));
    assert_eq!(migration(".rcopyback.limit = \"table\""), ("rcopyback", 5, table()));
    assert_eq!(migration(".rcopyback-greedy = { limit = 3 }"), ("rcopyback-greedy", 3, Fixed(3)));
    assert_eq!(migration(".rcopyback.limit = 0"), ("rcopyback", 0, Fixed(0)));
    let own = ".rcopyback.limit = [{ pe = 50, copybacks = 1 }, { pe = 90, copybacks = 6 }]";
    assert_eq!(migration(own), ("rcopyback", 6, Table(vec![(50, 1), (90, 6)])));
    let year = 365 * DAY;
    assert_eq!(
        migration(".rcopyback.limit = \"measured\""),
        ("rcopyback", 8, Measured { within_ns: year, level: 7 })
    );
    let short = ".rcopyback.limit = { measured = { within = \"1d\", level = 4 } }";
    assert_eq!(migration(short), ("rcopyback", 8, Measured { within_ns: DAY, level: 4 }));
}

#[test]
fn a_refresh_policy_has_its_settings() {
    use RefreshPolicySpec::{EcCache, Fcr};
    let refresh = |policy: &str| {
        let errors = "[ecc]\nlevels = \"laldpc\"\n[reliability]\nrber = \"vth\"\n[drive]\ncell = \"mlc\"\n";
        spec(&format!("{errors}[refresh]\npolicy{policy}\n")).refresh.policy
    };
    let fcr = |full_strength, in_place, reprogram_error| {
        Fcr(FcrSpec { full_strength, in_place, reprogram_error, remap_above: None })
    };
    assert_eq!(spec("").refresh.policy, RefreshPolicySpec::None);
    assert_eq!(refresh(" = \"fcr\""), fcr(false, false, 0.0));
    assert_eq!(refresh(".fcr.full_strength = true"), fcr(true, false, 0.0));
    let in_place = refresh(".fcr = { in_place = true, reprogram_error = 2e-5 }");
    assert_eq!(in_place, fcr(false, true, 2e-5));
    assert!(in_place.in_place().is_some() && in_place.hot_reads().is_none());
    let hybrid = refresh(".fcr = { in_place = true, reprogram_error = 2e-6, remap_above = 3e-3 }");
    assert_eq!(hybrid.in_place().and_then(|fcr| fcr.remap_above), Some(3e-3));
    let never = refresh(".fcr = { in_place = true, remap_above = \"never\" }");
    assert_eq!(never, fcr(false, true, 0.0));
    assert!(refresh(" = \"fcr\"").in_place().is_none());
    let cache = refresh(" = \"ec-cache\"");
    assert_eq!(cache, EcCache(EcCacheSpec { size_bytes: 1 << 20, hot_reads: 8 }));
    assert_eq!(cache.hot_reads(), Some(8));
    assert!(!cache.reads_full_strength(false) && cache.in_place().is_none());
    let small = refresh(".ec-cache = { size = \"2KiB\", hot_reads = 3 }");
    assert_eq!(small.ec_cache(), Some(&EcCacheSpec { size_bytes: 2048, hot_reads: 3 }));
}

#[test]
fn refresh_has_a_priority_and_partial_refresh_its_reads() {
    let refresh = |text: &str| {
        let errors = "[ecc]\nlevels = \"laldpc\"\n[reliability]\nrber = \"vth\"\n[drive]\ncell = \"mlc\"\n";
        spec(&format!("{errors}[refresh]\npolicy = \"fcr\"\n{text}\n")).refresh.priority
    };
    assert_eq!(spec("").refresh.priority, RefreshPriority::Background);
    assert_eq!(refresh("priority = \"background\""), RefreshPriority::Background);
    assert_eq!(refresh("priority = \"before-writes\""), RefreshPriority::BeforeWrites);
    assert_eq!(refresh("priority = \"first\""), RefreshPriority::First);
    for (value, of_conventional) in [("all", true), ("partial", false)] {
        let set = format!("refresh.policy.partial.full_strength={value}");
        let policy = spec_with("", &["drive.preset=partial-refresh-128g", &set]).refresh.policy;
        assert!(policy.reads_full_strength(true), "{value}");
        assert_eq!(policy.reads_full_strength(false), of_conventional, "{value}");
    }
}

#[test]
fn a_demand_map_has_a_cache_and_an_eviction() {
    let map = |value: &str| spec(&format!("[ftl]\nmap{value}\n")).ftl.map;
    let demand = |cache_bytes, eviction| MapSpec::Demand {
        cache_bytes,
        eviction,
        translation_level: TranslationLevel::Remembered,
        miss: Miss::Shared,
        write_back: MapWriteBack::Async,
    };
    assert_eq!(map(" = \"page\""), MapSpec::Page);
    assert_eq!(map(" = \"demand\""), demand(64 << 20, Eviction::Lru));
    assert_eq!(map(".demand = { cache = \"8B\" }"), demand(8, Eviction::Lru));
    assert_eq!(map(".demand = { eviction = \"lru\" }"), demand(64 << 20, Eviction::Lru));
    let level = |fixed| Eviction::ReadLevel { fixed };
    assert_eq!(map(".demand = { eviction = \"read-level\" }"), demand(64 << 20, level(2000)));
    assert_eq!(map(".demand.eviction.read-level = { fixed = 500 }"), demand(64 << 20, level(500)));
    let nested = " = { demand = { cache = \"1MiB\", eviction = { read-level = { fixed = 1 } } } }";
    assert_eq!(map(nested), demand(1 << 20, level(1)));
    let dotted = ".demand = { cache = \"1MiB\", eviction.read-level = { fixed = 1 } }";
    assert_eq!(map(dotted), demand(1 << 20, level(1)));
    // A value of a slot replaces the whole slot: parameters that the value does not name have their defaults.
    let file = "[ftl]\nmap.demand = { cache = \"2MiB\", eviction = { read-level = { fixed = 9 } } }\n";
    let set = |set: &str| spec_with(file, &[set]).ftl.map;
    assert_eq!(set("ftl.map.demand={ cache = '1MiB' }"), demand(1 << 20, Eviction::Lru));
    // `--set` of one parameter of the policy that the file names keeps the other parameters.
    assert_eq!(set("ftl.map.demand.cache=1MiB"), demand(1 << 20, level(9)));
    assert_eq!(set("ftl.map.demand.eviction.read-level.fixed=7"), demand(2 << 20, level(7)));
    assert_eq!(set("ftl.map.demand.eviction=read-level"), demand(2 << 20, level(2000)));
    let both = ["ftl.map.demand.eviction=lru", "ftl.map.demand.cache=8B"];
    assert_eq!(spec_with("", &both).ftl.map, demand(8, Eviction::Lru));
    assert_eq!(spec_with("[ftl]\nmap = \"page\"\n", &both[1..]).ftl.map, demand(8, Eviction::Lru));
    assert_eq!(set("ftl.map={ demand = { cache = \"1MiB\" } }"), demand(1 << 20, Eviction::Lru));
    assert_eq!(set("ftl.map=page"), MapSpec::Page);
    let MapSpec::Demand { translation_level, .. } = set("ftl.map.demand.translation_level=cached-only")
    else {
        panic!("a parameter of the demand map chooses the demand map");
    };
    assert_eq!(translation_level, TranslationLevel::CachedOnly);
    let MapSpec::Demand { miss, .. } = set("ftl.map.demand.miss=each") else {
        panic!("a parameter of the demand map chooses the demand map");
    };
    assert_eq!(miss, Miss::Each);
    let MapSpec::Demand { write_back, .. } = set("ftl.map.demand.write_back=before-insert") else {
        panic!("a parameter of the demand map chooses the demand map");
    };
    assert_eq!(write_back, MapWriteBack::BeforeInsert);
}

/// A level with times in microseconds.
fn level(rber_max: f64, sense: u64, transfer: u64, decode: u64) -> LevelSpec {
    let [transfer_ns, decode_ns] = [transfer, decode].map(|us| Some(us * US));
    let sense = Some(KindTimes::uniform(sense * US));
    LevelSpec { sense, transfer_ns, decode_ns, ..LevelSpec::new(rber_max) }
}

#[test]
fn laldpc_levels_are_those_of_its_tables() {
    let ecc = spec("[ecc]\nlevels = \"laldpc\"\nstart = \"last-level\"\nretry = \"incremental\"\n").ecc;
    assert_eq!((ecc.start, ecc.retry), (StartLevel::LastLevel, Retry::Incremental));
    let first = level(0.005, 50, 20, 15);
    let last = level(0.013, 134, 80, 15);
    assert_eq!((ecc.levels[0], ecc.levels[6]), (first, last));
    let table: Vec<(f64, u64)> = ecc
        .levels
        .iter()
        .map(|l| {
            let sense = l.sense.map(|times| times.msb_ns);
            let phases = [sense, l.transfer_ns, l.decode_ns].map(|phase| phase.expect("a time of its own"));
            (l.rber_max, phases.into_iter().sum::<Span>() / US)
        })
        .collect();
    // Latencies of the paper's Table II.
    let published =
        [(0.005, 85), (0.006, 109), (0.008, 133), (0.009, 157), (0.01, 181), (0.012, 205), (0.013, 229)];
    assert_eq!(table, published);
    for (name, start) in [
        ("first", StartLevel::First),
        ("ideal", StartLevel::Ideal),
        ("block-level", StartLevel::SuperblockLevel),
    ] {
        let sets = ["ecc.levels=laldpc", &format!("ecc.start={name}")];
        assert_eq!(spec_with("", &sets).ecc.start, start);
    }
    let rows = "[{ pe = 0, age = '0s', level = 2 }, { pe = 3000, age = '1500ms', level = 7 }]";
    let sets = ["ecc.levels=laldpc", &format!("ecc.start.table.rows={rows}")];
    let StartLevel::Table(table) = spec_with("", &sets).ecc.start else { panic!("the policy is a table") };
    // An age is rounded up to whole seconds.
    let row = |pe_cycles, age_s, level| RetryRow { pe_cycles, age_s, level };
    assert_eq!(table.rows(), [row(0, 0, 2), row(3000, 2, 7)]);
    assert_eq!(
        spec_with("", &["ecc.levels=laldpc", "ecc.start=drive-level"]).ecc.start,
        StartLevel::DriveLevel
    );
}

#[test]
fn read_levels_can_be_listed() {
    let text = "[ecc]\nlevels = [\n  { rber_max = 0.004, sense = \"25us\", transfer = \"0ns\", decode = \"0ns\" },\n  \
                { rber_max = 0.01, sense = \"25us\", transfer = \"1us\", decode = \"5us\" },\n]\n";
    let levels = [level(0.004, 25, 0, 0), level(0.01, 25, 1, 5)];
    assert_eq!(spec(text).ecc.levels, levels);
    let one = "[{ rber_max = 0.5, sense = \"1ns\", transfer = \"0ns\", decode = \"0ns\" }]";
    assert_eq!(spec_with(text, &[&format!("ecc.levels={one}")]).ecc.levels.len(), 1);
    assert_eq!(spec_with(text, &["ecc.levels=laldpc"]).ecc.levels.len(), 7);
}

#[test]
fn error_rates_and_ages_reach_the_spec() {
    let of = |line: &str| spec(&format!("[ecc]\nlevels = \"laldpc\"\n[reliability]\n{line}\n")).reliability;
    let vth = VthSpec {
        dvpp: 0.38,
        cell_to_cell: 0.05,
        sensing_step: 0.03,
        per_page_kind: false,
        unworn_loss: 0.0,
    };
    assert_eq!(of("rber = \"vth\"").rber, RberSpec::Vth(vth));
    assert_eq!(of("rber.vth = { dvpp = 0.38, cell_to_cell = 0.05 }").rber, RberSpec::Vth(vth));
    let other =
        VthSpec { dvpp: 0.2, cell_to_cell: 0.0, sensing_step: 0.05, per_page_kind: true, unworn_loss: 300.0 };
    let text = "rber.vth = { dvpp = 0.2, cell_to_cell = 0, sensing_step = 0.05, per_page_kind = true, unworn_loss = 300 }";
    assert_eq!(of(text).rber, RberSpec::Vth(other));
    let reliability = of("rber = \"vth\"\nread_disturb = 1e-9\ncopyback_error = 1e-4");
    assert_eq!((reliability.read_disturb, reliability.copyback_error), (1e-9, 1e-4));
    // Without errors every read decodes at level 1.
    assert_eq!(of("rber = \"none\"").rber, RberSpec::None);
    let shares = |shares: &[(Span, f64)]| Retention::Shares(shares.to_vec());
    assert_eq!(of("retention = \"365d\"").retention, shares(&[(365 * DAY, 1.0)]));
    assert_eq!(of("retention = \"21900d\"").retention, shares(&[(21_900 * DAY, 1.0)]));
    let text = "retention = [{ age = \"7d\", share = 0.25 }, { age = \"0d\", share = 0.75 }]";
    assert_eq!(of(text).retention, shares(&[(7 * DAY, 0.25), (Span::ZERO, 0.75)]));
    let tenths: Vec<String> = (0..10).map(|i| format!("{{ age = \"{i}d\", share = 0.1 }}")).collect();
    let tenths = of(&format!("retention = [{}]", tenths.join(", "))).retention;
    assert!(matches!(tenths, Retention::Shares(shares) if shares.len() == 10));
    let spread = of("retention = { from = \"1d\", until = \"7d\" }").retention;
    assert_eq!(spread, Retention::Spread { from: DAY, until: 7 * DAY });
}

/// Writes a table of error rates to `rber.csv` in a folder; returns the path of the folder.
fn table_file(folder: &str, content: &str) -> PathBuf {
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join(folder);
    std::fs::create_dir_all(&folder).unwrap();
    std::fs::write(folder.join("rber.csv"), content).unwrap();
    folder
}

const TABLE: &str =
    "pe_cycles,retention,reads,rber\n0,0d,0,0.001\n1000,0d,0,0.002\n0,365d,0,0.003\n1000,365d,0,0.004\n";
const WITH_TABLE: &str = "[ecc]\nlevels = \"laldpc\"\n[reliability]\nrber.table = \"rber.csv\"\n";

#[test]
fn a_table_of_error_rates_is_read_and_counts_for_the_hash() {
    let dir = table_file("spec-table", TABLE);
    let read = |text: &str| load(text, "run.toml", &dir, &[]).unwrap_or_else(|e| panic!("{e}"));
    let first = read(WITH_TABLE);
    assert!(matches!(first.spec.reliability.rber, RberSpec::Table(_)));
    assert!(first.to_toml().contains("\nrber = { table = \"rber.csv\" }"), "{}", first.to_toml());
    let again = read(&first.to_toml());
    assert_eq!((&again.spec, again.hash()), (&first.spec, first.hash()));
    let json: serde_json::Value = serde_json::from_str(&first.canonical_json()).unwrap();
    let table = &json["reliability"]["rber"]["table"];
    assert_eq!(table["file"], "rber.csv");
    assert_eq!(table["content"].as_str().unwrap().len(), 16);
    table_file("spec-table", &TABLE.replace("0.004", "0.005"));
    let other = read(WITH_TABLE);
    assert_ne!(other.hash(), first.hash());
    assert_ne!(other.spec, first.spec);
    let sets = ["ecc.levels=laldpc".into(), "reliability.rber.table=rber.csv".into()];
    assert_eq!(load("", "run.toml", &dir, &sets).unwrap().spec.reliability, other.spec.reliability);
}

#[test]
fn policies_are_listed_by_slot() {
    let rows = policies();
    let names = |slot: &str| rows.iter().filter(|r| r.slot == slot).map(|r| r.name).collect::<Vec<_>>();
    assert_eq!(names("ftl.map"), ["page", "demand"]);
    assert_eq!(names("ftl.map.demand.eviction"), ["lru", "read-level"]);
    assert_eq!(names("ftl.map.demand.translation_level"), ["remembered", "cached-only"]);
    assert_eq!(names("ftl.map.demand.miss"), ["shared", "each"]);
    assert_eq!(names("ftl.map.demand.write_back"), ["async", "before-insert"]);
    assert_eq!(names("migration.policy.rcopyback.occupancy"), ["writing", "occupied"]);
    assert_eq!(names("ftl.wear_levelling"), ["dynamic", "static", "none"]);
    assert_eq!(names("ftl.allocation").len(), 25);
    assert_eq!(names("timing.scheduler"), ["read-first", "fcfs"]);
    assert_eq!(
        names("gc.victim").len(),
        nandlab::background::gc::POLICIES.len(),
        "the listed victim policies are not those of the table"
    );
    assert_eq!(names("ecc.levels"), ["none", "laldpc", "retry", "codec"]);
    assert_eq!(
        names("ecc.start"),
        ["first", "ideal", "last-level", "block-level", "last-good", "drive-level", "table"]
    );
    assert_eq!(names("ecc.retry"), ["full", "incremental"]);
    assert_eq!(names("reliability.rber"), ["none", "vth", "vth-tlc", "table"]);
    assert!(names("workload.format").is_empty() && names("drive.cell").is_empty());
    for row in &rows {
        assert!(row.description.len() > 5 && !row.description.contains('\n'), "{row:?}");
    }
}

#[test]
fn a_capacity_gives_the_least_number_of_blocks() {
    let logical = |spec: &Spec| spec.geometry().logical_bytes();
    let small = "[drive]\npages_per_block = 16\nop = 0.3\n";
    for (wanted, bytes) in [("300MB", 300_000_000), ("1GiB", 1 << 30), ("1GB", 1_000_000_000)] {
        let found = spec(&format!("{small}capacity = \"{wanted}\"\n"));
        assert!(logical(&found) >= bytes, "{wanted}");
        let blocks = found.drive.blocks_per_plane - 1;
        let fewer = spec(&format!("{small}blocks_per_plane = {blocks}\n"));
        assert!(logical(&fewer) < bytes, "{wanted}");
    }
    let of_units = "capacity = \"1GB\"\npage_size = \"16KiB\"\n[ftl]\nmapping_unit = \"4KiB\"\nsuperblock = \"die\"\n[timing]\nmulti_plane = true\n";
    assert!(logical(&spec(&format!("{small}{of_units}"))) >= 1_000_000_000);

    // The resolved spec has the blocks, with the line of the capacity.
    let loaded = load(&format!("{small}capacity = \"1GB\"\n"), "s.toml", Path::new("."), &[]).unwrap();
    let shown = loaded.to_toml();
    assert!(
        shown.contains(&format!("blocks_per_plane = {}  #", loaded.spec.drive.blocks_per_plane)),
        "{shown}"
    );
    assert!(shown.contains("(s.toml:4)") && shown.contains("# capacity =  #"), "{shown}");
    let again = load(&shown, "again.toml", Path::new("."), &[]).unwrap();
    assert_eq!((again.hash(), &again.spec), (loaded.hash(), &loaded.spec));

    // It wins over a preset's blocks, and over those of a file if `--set` names it; the other way round too.
    let preset = spec("[drive]\npreset = \"rcopyback-64g\"\ncapacity = \"20GB\"\n");
    assert!((20_000_000_000..21_000_000_000).contains(&logical(&preset)), "{}", logical(&preset));
    let by_set = spec_with("[drive]\nblocks_per_plane = 100\n", &["drive.capacity=2GB"]);
    assert!(logical(&by_set) >= 2_000_000_000);
    let by_set = spec_with("[drive]\ncapacity = \"2GB\"\n", &["drive.blocks_per_plane=100"]);
    assert_eq!(by_set.drive.blocks_per_plane, 100);

    let refused = |text: &str| load(text, "s.toml", Path::new("."), &[]).unwrap_err().to_string();
    let both = refused("[drive]\nblocks_per_plane = 100\ncapacity = \"2GB\"\n");
    assert!(both.starts_with("s.toml:3: drive.capacity: conflicts with drive.blocks_per_plane"), "{both}");
    let tiny = "[drive]\nchannels = 1\nchips_per_channel = 1\nplanes_per_die = 1\npages_per_block = 16\n";
    let large = refused(&format!("{tiny}capacity = \"90GB\"\n"));
    assert!(
        large.contains("s.toml:6: drive.blocks_per_plane: drive.capacity needs more than 1048576 blocks"),
        "{large}"
    );
}

#[test]
fn a_trace_has_its_devices_and_its_part() {
    let of = |text: &str| {
        let workload = spec(&format!("[workload]\ntrace = \"a.csv\"\n{text}\n")).workload.unwrap();
        let Source::Trace(trace) = workload.source else { panic!() };
        trace
    };
    let these = Some(DeviceChoice::These(vec!["b".into(), "7,0".into()]));
    assert_eq!(of("devices = [\"b\", \"7,0\"]").device, these);
    assert_eq!(of("only = \"reads\"").part, Part { only: Some(Only::Reads), window: None });
    let window = |from, to: Option<u64>| Some(Window { from: from * SECOND, to: to.map(|to| to * SECOND) });
    assert_eq!(of("window = { from = \"1h\" }").part.window, window(3600, None));
    assert_eq!(of("window = { from = \"1s\", to = \"2s\" }").part.window, window(1, Some(2)));
    assert_eq!(of("window = { to = \"2s\" }").part.window, window(0, Some(2)));
    assert!(of("").uses_times && !of("arrival = { queue_depth = 1 }").uses_times);
    assert!(of("arrival = { queue_depth = 1 }\nwindow = { from = \"1s\" }").uses_times);
    for (text, message) in [
        ("devices = []", "workload.devices: an empty list"),
        ("devices = [1]", "workload.devices[0]: expected text in quotes"),
        ("device = \"a\"\ndevices = [\"b\"]", "workload.devices: conflicts with workload.device"),
        ("only = \"trims\"", "workload.only"),
        ("window = { from = \"2s\", to = \"1s\" }", "workload.window: the window ends before it begins"),
    ] {
        let text = format!("[workload]\ntrace = \"a.csv\"\n{text}\n");
        let refused = load(&text, "s.toml", Path::new("."), &[]).unwrap_err().to_string();
        assert!(refused.contains(message), "{refused}");
    }
}

#[test]
fn a_trace_has_its_options_and_a_path_relative_to_the_spec() {
    let text = "[workload]\ntrace = \"./a.csv\"\nformat = \"mqsim\"\ndevice = \"0\"\nlenient = true\n\
                time_unit = \"us\"\ntime_scale = 0.5\n";
    let expected = TraceSpec {
        format: Some("mqsim".into()),
        device: Some(DeviceChoice::One("0".into())),
        lenient: Some(0.1),
        time_unit_ns: Some(1000.0),
        ..TraceSpec::new("specs/a.csv")
    };
    let workload = spec(text).workload.unwrap();
    assert_eq!(workload.source, Source::Trace(expected));
    assert_eq!(workload.arrival, Arrival::Trace { time_scale: 0.5 });
    let columns = "time_s, offset, size, op";
    let text = format!("[workload]\ntrace = \"a\"\nformat = {{ columns = \"{columns}\" }}\n");
    let Source::Trace(trace) = spec(&text).workload.unwrap().source else { panic!() };
    assert_eq!(trace.format, Some(TraceFormat::Columns(columns.into())));
    for (value, at_most) in [("false", None), ("{ at_most = 0.3 }", Some(0.3))] {
        let workload = spec(&format!("[workload]\ntrace = \"a.csv\"\nlenient = {value}\n")).workload.unwrap();
        let Source::Trace(trace) = workload.source else { panic!() };
        assert_eq!(trace.lenient, at_most);
    }
    let workload =
        spec_with("", &["workload.trace=/t/b.csv", "workload.device=concatenate"]).workload.unwrap();
    let Source::Trace(trace) = workload.source else { panic!() };
    assert_eq!((trace.path, trace.device), (PathBuf::from("/t/b.csv"), Some(DeviceChoice::Concatenate)));
}

#[test]
fn the_keys_of_preconditioning_select_its_method() {
    let of = |section: &str| spec(&format!("[precondition]\n{section}\n")).precondition;
    assert_eq!(of(""), PreconditionSpec::None);
    let fill = |valid, order| PreconditionSpec::Fill { used: 0.95, valid, order };
    assert_eq!(of("valid = 0.7"), fill(0.7, FillOrder::Random));
    assert_eq!(of("order = \"sequential\""), fill(0.80, FillOrder::Sequential));
    assert_eq!(of("rounds_max = 0"), PreconditionSpec::Pts { rounds_max: 0 });
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
fn later_layers_override_earlier_ones() {
    let file = "[drive]\npreset = \"bench-16g\"\nop = 0.2\n[gc]\nvictim.random = { k = 4 }\n";
    let loaded = load_with(file, &["drive.channels=2", "drive.channels=8", "timing.read=25us"]).unwrap();
    assert_eq!((loaded.spec.drive.channels, loaded.spec.drive.op), (8, 0.2));
    assert_eq!(
        (loaded.spec.drive.blocks_per_plane, loaded.spec.timing.read),
        (512, Some(KindTimes::uniform(25 * US)))
    );
    assert_eq!(loaded.origin("drive.op"), Some(("run.toml", Some(3))));
    assert_eq!(loaded.origin("drive.channels"), Some(("--set", None)));
    assert_eq!(loaded.origin("drive.blocks_per_plane").unwrap().0, "preset bench-16g");
    assert_eq!(loaded.origin("timing.erase"), None);
    // `--set` of a policy replaces the slot as a whole.
    assert_eq!(spec_with(file, &["gc.victim=fifo"]).gc.victim.name, "fifo");
    assert_eq!(spec_with(file, &["gc.victim.random={}"]).gc.victim.values, [8.0]);
    assert_eq!(spec_with(file, &["gc.victim.random.k=2"]).gc.victim.values, [2.0]);
    // `--set` of the preset keeps the keys of the file; they override the preset.
    let drive = spec_with(file, &["drive.preset=laldpc-32g"]).drive;
    assert_eq!((drive.channels, drive.op), (8, 0.2));
}

#[test]
fn clients_have_the_defaults_of_a_synthetic_workload_and_arrivals_of_their_own() {
    let text = "[[workload.clients]]\nname = \"a\"\n[[workload.clients]]\nname = \"b\"\nspan = { from = \"1MiB\", to = 0.5 }\n\
                arrival = { iops = 50, process = \"poisson\" }\noutstanding = 4\nduration = \"2s\"\n";
    let workload = spec_with(text, &[]).workload.unwrap();
    let [a, b] = workload.clients() else { panic!() };
    let Source::Synthetic(synthetic) =
        spec_with("[workload]\nsynthetic = {}\n", &[]).workload.unwrap().source
    else {
        panic!()
    };
    assert_eq!(a.synthetic(), synthetic);
    assert_eq!((a.arrival, a.outstanding_max(), a.duration), (Arrival::QueueDepth(32), 32, None));
    assert_eq!((b.arrival, b.outstanding_max()), (Arrival::Poisson(50.0), 4));
    assert_eq!(b.duration.map(|duration| duration.ns()), Some(2_000 * MS.ns()));
    // The ends of the span are rounded inwards to the alignment.
    assert_eq!(b.span.bytes(10 << 20, 4096), (1 << 20, 4 << 20));
    assert_eq!(b.span.bytes((10 << 20) + 4096, 4096), (1 << 20, 4 << 20));
    assert!(!workload.is_closed());
    let even = "[workload]\nsynthetic = {}\narrival = { iops = 50, process = \"even\" }\n";
    assert_eq!(spec_with(even, &[]).workload.unwrap().arrival, Arrival::Iops(50.0));
    let poisson = spec_with(even, &["workload.arrival.process=poisson"]).workload.unwrap().arrival;
    assert_eq!(poisson, Arrival::Poisson(50.0));
    // A client replaces the source of the file and its arrival.
    let replaced = spec_with(even, &["workload.clients=[{ name = \"c\" }]"]).workload.unwrap();
    assert_eq!(replaced.clients()[0].name, "c");
}

#[test]
fn set_replaces_the_source_of_the_workload_with_the_keys_of_that_source() {
    let file = "[workload]\ntrace = \"a.csv\"\nformat = \"msr\"\nbeyond = \"wrap\"\n";
    let workload = spec_with(file, &["workload.synthetic={ requests = 5 }"]).workload.unwrap();
    let Source::Synthetic(synthetic) = workload.source else { panic!() };
    assert_eq!((synthetic.requests, workload.beyond), (5, Beyond::Wrap));
    assert_eq!(workload.arrival, Arrival::QueueDepth(32));
    // `--set` of a parameter of a synthetic workload keeps the other parameters.
    let file = "[workload]\nsynthetic = { requests = 9, read_fraction = 0.9 }\n";
    let sets = ["workload.synthetic.read_fraction=0", "workload.arrival.queue_depth=1"];
    let workload = spec_with(file, &sets).workload.unwrap();
    let Source::Synthetic(synthetic) = workload.source else { panic!() };
    assert_eq!((synthetic.requests, synthetic.read_fraction), (9, 0.0));
    assert_eq!(workload.arrival, Arrival::QueueDepth(1));
    let bursts = "workload.arrival.bursts={ requests = 10, at_once = 0.7, idle = \"20ms\" }";
    let workload = spec_with(file, &[bursts]).workload.unwrap();
    assert_eq!(workload.arrival, Arrival::Bursts { requests: 10, at_once: 7, idle_ns: 20 * MS });
}

#[test]
fn set_of_a_parameter_keeps_the_other_parameters_of_its_table() {
    let sets = ["host.link.latency=2us", "host.link.mb_per_s=2000", "host.link.latency=3us"];
    let file = "[host]\nlink.mb_per_s = 1000\n[timing]\nprogram = { lsb = \"1ms\", msb = \"2ms\" }\n";
    let set = spec_with(file, &[&sets[..], &["timing.program.msb=3ms"]].concat());
    assert_eq!(set.host.link, Some(LinkSpec { bytes_per_s: 2e9, latency_ns: 3 * US }));
    assert_eq!(set.timing.program, ProgramTime::ByKind(KindTimes::new(MS, 3 * MS)));
    assert_eq!(spec_with(file, &["host.link=none"]).host.link, None);
    assert!(load_with(file, &["timing.program.fastest=1ms"]).is_err());
}

#[test]
fn every_example_loads() {
    let examples = toml_files("examples");
    assert!(examples.len() >= 5);
    for (name, text) in examples {
        let spec = load(&text, &name, Path::new("examples"), &[]).unwrap_or_else(|e| panic!("{e}")).spec;
        assert!(spec.workload.is_some(), "{name} has no workload");
    }
}

#[test]
fn every_preset_loads_and_has_its_raw_capacity() {
    let names: Vec<&str> = presets().iter().map(|(name, _)| *name).collect();
    let files: Vec<String> = toml_files("presets").into_iter().map(|(name, _)| name).collect();
    assert_eq!(names, files, "the compiled presets are not those in presets/");
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
            "modern-tlc-1t" | "like-micron-7450-max-800g" => 1056.0,
            "like-adata-atom-50-1t" => 1025.0625,
            "like-samsung-970-evo-plus-1t" => 1024.21875,
            "like-samsung-pm9a3-960g" | "like-sk-hynix-pe8110-960g" => 1023.75,
            "like-solidigm-p5520-1920g" => 2110.5,
            "partial-refresh-128g" => 137.0,
            _ => name.rsplit('-').next().unwrap().trim_end_matches('g').parse().unwrap(),
        };
        assert_eq!(gib, raw, "{name}");
    }
}

#[test]
fn values_in_presets_of_papers_and_products_state_their_sources() {
    for (name, text) in toml_files("presets") {
        assert!(text.starts_with("# "), "{name} does not begin with a description");
        // In presets of papers and products each value states its source. Other presets state once that they model no
        // product.
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
fn the_output_of_show_loads_as_an_equal_spec() {
    let mut texts = vec![String::new(), RICH.to_string(), LALDPC.to_string(), CAPACITOR.to_string()];
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
fn show_prints_every_key_with_its_origin() {
    let shown = load_with(RICH, &["gc.foreground_free=0.01"]).unwrap().to_toml();
    for line in [
        "# Built on preset capacitor-2d-128g, then capacitor-3d-128g.",
        "seed = 7  # seed of every random stream (run.toml:2)",
        "channels = 4  # number of channels (preset capacitor-2d-128g:4)",
        "victim = { random = { k = 3 } }  # which block is collected next (run.toml:12)",
        "foreground_free = 0.01  # low watermark: foreground GC starts when less than this share of the pages that can be free \
         for the host is free (--set)",
        "idle_after = \"1500us\"  # time without outstanding requests after which the drive counts as \
         idle (run.toml:13)",
        "link = { mb_per_s = 3500.0, latency = \"1500ns\" }  # the link between host and drive, shared by all requests \
         (run.toml:33)",
        "# trace =  # a trace file, plain, compressed or alone in an archive (not set)",
        "# format =  # the trace's format; recognised by its content when not given (only with workload.trace)",
        "capacitance = \"0F\"  # capacitance of the new backup capacitor, which powers the drive when power fails (PLP); \
         0F: no capacitor (default)",
        "temperature = 25.0  # degrees Celsius, or a profile over the scaled clock that begins at 0 (default; assumption)",
        "# cut_at =  # power fails at this simulated time (not set)",
        "# rounds_max =  # highest number of overwrites of the logical capacity; 0: the sequential fill alone (only \
         with precondition.method = \"pts\")",
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
fn the_hash_depends_only_on_the_values() {
    let hash = |text: &str| load_with(text, &[]).unwrap().hash();
    let one = "[gc]\nvictim.random = { k = 8 }\nidle_after = \"1ms\"\n[drive]\nop = 0.1\n";
    let same = "# a comment\ndrive.op = 0.10\n[gc]\nidle_after = \"1000us\"\nvictim = \"random\"\n";
    assert_eq!(hash(one), hash(same));
    assert_eq!(hash(one).len(), 16);
    assert_ne!(hash(one), hash(&one.replace("0.1", "0.2")));
    assert_ne!(hash(one), hash(&one.replace("k = 8", "k = 9")));
    // The canonical JSON must not change between versions, since stored results are found by the hash of this JSON.
    let json = load_with("", &[]).unwrap().canonical_json();
    assert!(
        json.starts_with(
            "{\"cache\":{\"access\":1000,\"dirty_budget\":1.0,\"eviction\":\"lru\",\"flush_to\":\"cache\",\
             \"read_room\":\"skip\",\"size\":0,\"sync\":\"none\"},\"capacitor\""
        ),
        "{json}"
    );
    assert!(json.contains("},\"seed\":1,\"slc\":{"), "{json}");
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
}

/// Returns whether `schema` accepts `value`, by the keywords that the schema uses, except for patterns.
fn accepts(schema: &serde_json::Value, value: &serde_json::Value) -> bool {
    let number = |name: &str| schema[name].as_f64();
    let is_type = match schema["type"].as_str() {
        Some("object") => value.is_object(),
        Some("array") => value.is_array(),
        Some("string") => value.is_string(),
        Some("boolean") => value.is_boolean(),
        Some("integer") => value.is_u64() || value.is_i64(),
        Some("number") => value.is_number(),
        _ => true,
    };
    let in_range = value.as_f64().is_none_or(|x| {
        number("minimum").is_none_or(|min| x >= min)
            && number("maximum").is_none_or(|max| x <= max)
            && number("exclusiveMinimum").is_none_or(|min| x > min)
            && number("exclusiveMaximum").is_none_or(|max| x < max)
    });
    let fields = value.as_object().is_none_or(|fields| {
        let known = |(name, value): (&String, _)| match schema["properties"].get(name) {
            Some(schema) => accepts(schema, value),
            None => schema["additionalProperties"] != false,
        };
        let required = schema["required"].as_array().into_iter().flatten();
        fields.iter().all(known) && required.into_iter().all(|n| fields.contains_key(n.as_str().unwrap()))
    });
    let items = value.as_array().is_none_or(|items| {
        number("minItems").is_none_or(|min| items.len() as f64 >= min)
            && number("maxItems").is_none_or(|max| items.len() as f64 <= max)
            && items.iter().all(|item| accepts(&schema["items"], item))
    });
    let any = schema["anyOf"].as_array().is_none_or(|any| any.iter().any(|schema| accepts(schema, value)));
    let one_of = schema["enum"].as_array().is_none_or(|all| all.contains(value));
    let length =
        value.as_str().is_none_or(|text| number("minLength").is_none_or(|min| text.len() as f64 >= min));
    is_type
        && in_range
        && length
        && fields
        && items
        && any
        && one_of
        && schema.get("const").is_none_or(|c| c == value)
}

fn toml_of(value: &serde_json::Value) -> String {
    let join = |parts: Vec<String>| parts.join(", ");
    match value {
        serde_json::Value::Object(fields) => {
            format!("{{ {} }}", join(fields.iter().map(|(n, v)| format!("{n} = {}", toml_of(v))).collect()))
        }
        serde_json::Value::Array(items) => format!("[{}]", join(items.iter().map(toml_of).collect())),
        other => other.to_string(),
    }
}

#[test]
fn schema_and_parser_agree_on_sample_values() {
    let schema = schema();
    let key = |path: &str| {
        let (section, name) = path.split_once('.').unwrap();
        schema["properties"][section]["properties"][name].clone()
    };
    let json = |text: &str| serde_json::from_str::<serde_json::Value>(text).unwrap();
    let levels = |n: usize| {
        let level =
            |i| format!(r#"{{"rber_max":0.01{i:02},"sense":"50us","transfer":"20us","decode":"15us"}}"#);
        format!("[{}]", (0..n).map(level).collect::<Vec<_>>().join(","))
    };
    let dir = table_file("schema-table", TABLE);
    let loads = |path: &str, value: &serde_json::Value| {
        // Some keys have no effect without other keys. Those of levels and errors come first, so that the tested key
        // may replace them.
        let mut sets = vec!["ecc.levels=laldpc".to_string(), format!("{path}={}", toml_of(value))];
        if path.starts_with("reliability.") {
            sets.insert(1, "reliability.rber=vth".into());
        }
        if path.starts_with("cache.") {
            sets.extend(
                ["cache.size=1MiB", "cache.sync=smart", "capacitor.capacitance=75mF"].map(String::from),
            );
        }
        if path == "capacitor.flush_order" {
            sets.push("capacitor.metadata=1MiB".into());
        }
        load("", "run.toml", &dir, &sets)
    };
    for (path, good, bad) in [
        (
            "ftl.map",
            vec![
                r#""page""#,
                r#""demand""#,
                r#"{"demand":{}}"#,
                r#"{"demand":{"cache":"1MiB","eviction":"lru"}}"#,
                r#"{"demand":{"eviction":"read-level"}}"#,
                r#"{"demand":{"eviction":{"read-level":{"fixed":1}}}}"#,
                r#"{"demand":{"translation_level":"cached-only"}}"#,
                r#"{"demand":{"miss":"each"}}"#,
                r#"{"demand":{"write_back":"before-insert"}}"#,
            ],
            vec![
                r#""hybrid""#,
                r#"{"demand":{"size":"1MiB"}}"#,
                r#"{"demand":{"eviction":{"read-level":{"fixed":0}}}}"#,
                r#"{"demand":{"eviction":"fifo"}}"#,
                r#"{"demand":{"translation_level":"flash"}}"#,
                r#"{"demand":{"miss":true}}"#,
                r#"{"demand":{"write_back":"sync"}}"#,
            ],
        ),
        (
            "ecc.levels",
            vec![r#""none""#, r#""laldpc""#, &levels(1), &levels(16), r#"[{"rber_max":0.005}]"#],
            vec!["[]", &levels(49), r#"[{"sense":"50us"}]"#, r#"["none"]"#],
        ),
        (
            "ecc.start",
            vec![
                r#""first""#,
                r#""ideal""#,
                r#""block-level""#,
                r#""drive-level""#,
                r#"{"table":{"rows":[{"pe":0,"age":"0s","level":1},{"pe":3000,"age":"30d","level":7}]}}"#,
            ],
            vec![
                r#""best""#,
                r#""table""#,
                r#"{"table":{}}"#,
                r#"{"table":{"rows":[]}}"#,
                r#"{"table":{"rows":[{"pe":0,"age":"0s"}]}}"#,
                r#"{"table":{"rows":[{"pe":0,"age":"0s","level":0}]}}"#,
            ],
        ),
        (
            "reliability.rber",
            vec![r#""none""#, r#""vth""#, r#"{"vth":{"dvpp":0.3}}"#, r#"{"table":"rber.csv"}"#],
            vec![r#""table""#, r#"{"vth":{"dvpp":0}}"#, r#"{"table":3}"#, r#"{"table":""}"#],
        ),
        ("reliability.read_disturb", vec!["0", "1e-3"], vec!["2e-3", "-1"]),
        ("reliability.copyback_error", vec!["0", "1e-2"], vec!["2e-2", "-1"]),
        (
            "reliability.retention",
            vec![r#""365d""#, r#"[{"age":"1d","share":1}]"#],
            vec!["365", "[]", r#"[{"age":"1d","share":0}]"#, r#"[{"age":"1d"}]"#],
        ),
        ("cache.dirty_budget", vec!["0.5", r#""measured""#], vec!["1.5", r#""counted""#]),
        ("capacitor.capacitance", vec!["0.075", r#""75mF""#], vec!["-1", "[]"]),
        ("capacitor.efficiency", vec!["0.5", "1"], vec!["0", "1.1"]),
        (
            "capacitor.temperature",
            vec!["-40", "25.5", r#"[{"from":"0d","celsius":25},{"from":"180d","celsius":60}]"#],
            vec!["126", "[]", r#"[{"from":"0d"}]"#, r#"[{"from":"0d","celsius":-41}]"#],
        ),
        ("capacitor.steps", vec![r#""five""#, r#""continuous""#], vec![r#""six""#]),
        ("capacitor.flush", vec![r#""plain""#, r#""csw""#], vec![r#""fast""#]),
        ("capacitor.flush_order", vec![r#""newest""#, r#""metadata""#], vec![r#""cold""#]),
        ("capacitor.flush_concurrency", vec!["0", "16"], vec!["-1", "200000"]),
        ("capacitor.esr", vec!["0", r#""50mohm""#, r#""1.5ohm""#], vec!["-1", "[]"]),
        ("power.gc_in_flush", vec!["false"], vec!["1"]),
        ("power.cut_in_recovery", vec![r#""2ms""#, r#""0s""#], vec!["2", "true", "[]"]),
        ("power.cut_after_requests", vec!["0", "5"], vec!["-1"]),
        ("power.cut_at", vec![r#""12s""#], vec!["12"]),
    ] {
        for text in good {
            assert!(accepts(&key(path), &json(text)), "{path} = {text}");
            loads(path, &json(text)).unwrap_or_else(|e| panic!("{path} = {text}: {e}"));
        }
        for text in bad {
            assert!(!accepts(&key(path), &json(text)), "{path} = {text}");
            assert!(loads(path, &json(text)).is_err(), "{path} = {text}");
        }
    }
}

#[test]
fn the_energy_and_the_power_of_a_program_follow_from_each_other() {
    let of = |text: &str| {
        let spec = spec(text);
        (spec.energy.program_j * 1e6, spec.capacitor.program_w * 1e3)
    };
    let near = |(energy, power): (f64, f64), (uj, mw): (f64, f64)| {
        assert!((energy - uj).abs() < 1e-9 && (power - mw).abs() < 1e-9, "{energy} uJ, {power} mW");
    };
    near(of(""), (74.0, 82.5));
    near(of("[capacitor]\nprogram_power = \"100mW\""), (90.0, 100.0));
    near(of("[energy]\nprogram = \"90uJ\""), (90.0, 100.0));
    near(of("[energy]\nprogram = \"30uJ\"\n[capacitor]\nprogram_power = \"100mW\""), (30.0, 100.0));
    // By page kind and by layer the mean duration counts: 1 ms.
    let kinds = "[drive]\ncell = \"mlc\"\n[timing]\nprogram = { lsb = \"500us\", msb = \"1500us\" }\n";
    near(of(&format!("{kinds}[energy]\nprogram = \"90uJ\"")), (90.0, 90.0));
    let layers =
        "[drive]\ncell = \"3d-mlc\"\n[timing]\nprogram = { fastest = \"500us\", slowest = \"1500us\" }\n";
    near(of(&format!("{layers}[capacitor]\nprogram_power = \"90mW\"")), (90.0, 90.0));
}

#[test]
fn requests_are_explained_when_output_explain_says_how_many() {
    assert_eq!(spec("").output.explain, 0);
    assert_eq!(spec("[output]\nexplain = 20\n").output.explain, 20);
    let errors = load_with("[output]\nexplain = 10001\n", &[]).expect_err("too many").to_string();
    assert!(errors.contains("run.toml:2: output.explain"), "{errors}");
    assert!(load_with("", &["output.explain=-1"]).is_err());
}
