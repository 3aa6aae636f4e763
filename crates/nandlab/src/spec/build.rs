//! From resolved values to the typed [`Spec`]. The compiler names any field of the model that is not filled here.

use super::kind::Val;
use super::layers::Layers;
use super::node::{shorten, shorten_to};
use super::resolve::Resolved;
use super::*;
use crate::base::policy::Choice;
use crate::base::units::{Span, Time, US};
use crate::copyback;
use crate::flash::RberTable;
use std::path::{Component, Path, PathBuf};

/// Builds the spec; all values are there and checked.
pub(super) fn build(r: &Resolved, dir: &Path) -> Spec {
    Spec {
        seed: int(r, "seed"),
        drive: drive(r),
        host: HostSpec {
            link: match r.val("host.link") {
                link @ Val::Table(_) => Some(LinkSpec {
                    bytes_per_s: link.field("mb_per_s").num() * 1e6,
                    latency_ns: link.field("latency").span(),
                }),
                _ => None,
            },
        },
        timing: timing(r),
        ftl: FtlSpec {
            map: map(r.val("ftl.map")),
            allocation: allocation(r.val("ftl.allocation").tag()),
            wear_levelling: match r.val("ftl.wear_levelling").tag() {
                "none" => WearLevelling::None,
                "static" => WearLevelling::Static,
                _ => WearLevelling::Dynamic,
            },
            wear_gap: count(r, "ftl.wear_gap"),
        },
        gc: GcSpec {
            victim: choice(r.val("gc.victim")),
            pacing: match r.val("gc.pacing").tag() {
                "none" => GcPacing::None,
                _ => GcPacing::Proportional,
            },
            foreground: match r.val("gc.foreground").tag() {
                "blocking" => GcForeground::Blocking,
                _ => GcForeground::Interleaved,
            },
            background_free: num(r, "gc.background_free"),
            foreground_free: num(r, "gc.foreground_free"),
            idle_valid_max: num(r, "gc.idle_valid_max"),
            idle_after_ns: span(r, "gc.idle_after"),
        },
        ecc: EccSpec {
            levels: levels(r.val("ecc.levels")),
            start: match r.val("ecc.start").tag() {
                "ideal" => StartLevel::Ideal,
                "last-level" => StartLevel::LastLevel,
                "block-level" => StartLevel::BlockLevel,
                _ => StartLevel::First,
            },
            retry: match r.val("ecc.retry").tag() {
                "incremental" => Retry::Incremental,
                _ => Retry::Full,
            },
        },
        refresh: RefreshSpec {
            policy: refresh_policy(r.val("refresh.policy")),
            interval: match r.val("refresh.interval") {
                Val::List(lines) => {
                    lines.iter().map(|l| (l.field("pe").int() as u32, l.field("every").span())).collect()
                }
                _ => Vec::new(),
            },
            grace: num(r, "refresh.grace"),
        },
        migration: migration(r.val("migration.policy")),
        cache: CacheSpec {
            size_bytes: int(r, "cache.size"),
            access_ns: span(r, "cache.access"),
            sync: choice(r.val("cache.sync")),
            dirty_budget: match r.val("cache.dirty_budget") {
                Val::Num(share) => DirtyBudget::Share(*share),
                _ => DirtyBudget::Measured,
            },
        },
        capacitor: capacitor(r),
        power: PowerSpec {
            cut_after_requests: r.get("power.cut_after_requests").map_or(0, Val::int),
            cut_at_ns: r.get("power.cut_at").map(|at| Time::from_ns(at.int())),
        },
        reliability: ReliabilitySpec {
            rber: rber(r),
            read_disturb: num(r, "reliability.read_disturb"),
            copyback_error: num(r, "reliability.copyback_error"),
            pe_cycles: count(r, "reliability.pe_cycles"),
            retention: match r.val("reliability.retention") {
                Val::List(ages) => {
                    ages.iter().map(|item| (item.field("age").span(), item.field("share").num())).collect()
                }
                age => vec![(age.span(), 1.0)],
            },
            clock_scale: num(r, "reliability.clock_scale"),
        },
        energy: EnergySpec {
            read_j: num(r, "energy.read"),
            program_j: num(r, "energy.program"),
            erase_j: num(r, "energy.erase"),
            transfer_j_per_byte: num(r, "energy.transfer_per_byte"),
            idle_w: num(r, "energy.idle"),
        },
        precondition: precondition(r, dir),
        map_reads: r.val("precondition.map_reads").bool(),
        workload: workload(r, dir),
        output: OutputSpec {
            timeline_operations: int(r, "output.timeline_operations"),
            requests: r.val("output.requests").bool(),
            series_rows: count(r, "output.series_rows"),
        },
    }
}

fn int(r: &Resolved, path: &str) -> u64 {
    r.val(path).int()
}

fn span(r: &Resolved, path: &str) -> Span {
    r.val(path).span()
}

/// The key's range ends below 2^32.
fn count(r: &Resolved, path: &str) -> u32 {
    u32::try_from(int(r, path)).unwrap_or(u32::MAX)
}

fn num(r: &Resolved, path: &str) -> f64 {
    r.val(path).num()
}

fn drive(r: &Resolved) -> DriveSpec {
    DriveSpec {
        channels: count(r, "drive.channels"),
        chips_per_channel: count(r, "drive.chips_per_channel"),
        dies_per_chip: count(r, "drive.dies_per_chip"),
        planes_per_die: count(r, "drive.planes_per_die"),
        blocks_per_plane: count(r, "drive.blocks_per_plane"),
        pages_per_block: count(r, "drive.pages_per_block"),
        page_size_bytes: count(r, "drive.page_size"),
        cell: match r.val("drive.cell").tag() {
            "slc" => Cell::Slc,
            "3d-mlc" => Cell::Mlc3d,
            "3d-tlc" => Cell::Tlc3d,
            _ => Cell::Mlc,
        },
        layers: r.get("drive.layers").map_or(1, |val| val.int() as u32),
        op: num(r, "drive.op"),
        endurance: count(r, "drive.endurance"),
    }
}

fn timing(r: &Resolved) -> TimingSpec {
    TimingSpec {
        read_ns: span(r, "timing.read"),
        program: match r.val("timing.program") {
            Val::Table(fields) if fields[0].0 == "lsb" => {
                ProgramTime::ByKind { lsb_ns: fields[0].1.span(), msb_ns: fields[1].1.span() }
            }
            Val::Table(fields) => {
                ProgramTime::ByLayer { fastest_ns: fields[0].1.span(), slowest_ns: fields[1].1.span() }
            }
            time => ProgramTime::Uniform(time.span()),
        },
        erase_ns: span(r, "timing.erase"),
        channel_ns_per_byte: num(r, "timing.channel_ns_per_byte"),
        command: match r.val("timing.command") {
            table @ Val::Table(_) => {
                let together = |name| match table.field(name) {
                    Val::Tag(..) => None,
                    time => Some(time.span()),
                };
                CommandTimes {
                    read_ns: table.field("read").span(),
                    program_ns: table.field("program").span(),
                    erase_ns: table.field("erase").span(),
                    copyback_ns: table.field("copyback").span(),
                    multi_plane_read_ns: together("multi_plane_read"),
                    multi_plane_program_ns: together("multi_plane_program"),
                }
            }
            time => CommandTimes::uniform(time.span()),
        },
        decode_ns: span(r, "timing.decode"),
        off_chip_bytes_per_s: match r.val("timing.off_chip_mb_per_s") {
            Val::Num(mb) => Some(mb * 1e6),
            _ => None,
        },
        scheduler: match r.val("timing.scheduler").tag() {
            "fcfs" => Scheduler::Fcfs,
            _ => Scheduler::ReadFirst,
        },
        multi_plane: r.val("timing.multi_plane").bool(),
    }
}

fn capacitor(r: &Resolved) -> CapacitorSpec {
    CapacitorSpec {
        capacitance_f: num(r, "capacitor.capacitance"),
        voltage_v: num(r, "capacitor.voltage"),
        voltage_min_v: num(r, "capacitor.voltage_min"),
        efficiency: num(r, "capacitor.efficiency"),
        temperature: match r.val("capacitor.temperature") {
            Val::List(profile) => {
                profile.iter().map(|item| (item.field("from").span(), item.field("celsius").num())).collect()
            }
            celsius => vec![(Span::ZERO, celsius.num())],
        },
        age_ns: span(r, "capacitor.age"),
        controller_w: num(r, "capacitor.controller_power"),
        program_w: num(r, "capacitor.program_power"),
        detect_every_ns: span(r, "capacitor.detect_every"),
        detect_grace_ns: span(r, "capacitor.detect_grace"),
        recharge_ns: span(r, "capacitor.recharge"),
        margin: num(r, "capacitor.margin"),
        steps: match r.val("capacitor.steps").tag() {
            "continuous" => BudgetSteps::Continuous,
            _ => BudgetSteps::Five,
        },
        flush: match r.val("capacitor.flush").tag() {
            "csw" => FlushMethod::Csw,
            _ => FlushMethod::Plain,
        },
        flush_concurrency: count(r, "capacitor.flush_concurrency"),
        flush_order: match r.val("capacitor.flush_order").tag() {
            "newest" => FlushOrder::Newest,
            "metadata" => FlushOrder::Metadata,
            _ => FlushOrder::Oldest,
        },
        metadata_bytes: int(r, "capacitor.metadata"),
    }
}

fn map(val: &Val) -> MapSpec {
    let Val::Tag("demand", Some(params)) = val else { return MapSpec::Page };
    MapSpec::Demand {
        cache_bytes: params.field("cache").int(),
        eviction: match params.field("eviction") {
            Val::Tag("read-level", Some(params)) => {
                Eviction::ReadLevel { fixed: params.field("fixed").int() as u32 }
            }
            _ => Eviction::Lru,
        },
    }
}

pub(super) fn refresh_policy(val: &Val) -> RefreshPolicySpec {
    match val {
        Val::Tag("fcr", params) => {
            let is_set = |name| params.as_ref().is_some_and(|params| params.field(name).bool());
            RefreshPolicySpec::Fcr(FcrSpec {
                full_strength: is_set("full_strength"),
                in_place: is_set("in_place"),
                reprogram_error: params.as_ref().map_or(0.0, |params| params.field("reprogram_error").num()),
            })
        }
        Val::Tag("ec-cache", Some(params)) => RefreshPolicySpec::EcCache(EcCacheSpec {
            size_bytes: params.field("size").int(),
            hot_reads: params.field("hot_reads").int() as u32,
        }),
        Val::Tag("partial", Some(params)) => RefreshPolicySpec::Partial(partial(params)),
        _ => RefreshPolicySpec::None,
    }
}

fn partial(params: &Val) -> PartialSpec {
    PartialSpec {
        susceptible_ratio: match params.field("susceptible_ratio") {
            Val::Num(ratio) => Some(*ratio),
            _ => None,
        },
        encoding: match params.field("encoding").tag() {
            "entries" => Encoding::Entries,
            "enumerative" => Encoding::Enumerative,
            _ => Encoding::Paper,
        },
        codeword_bits: params.field("codeword_bits").int() as u32,
        vsm_pages: params.field("vsm_pages").int() as u32,
        min_free_blocks: params.field("min_free_blocks").num(),
        hot_reads: params.field("hot_reads").int() as u32,
        max_share: params.field("max_share").num(),
    }
}

pub(super) fn migration(val: &Val) -> MigrationSpec {
    let policy = copyback::POLICIES.iter().map(|(info, _)| info.name).find(|&name| name == val.tag());
    let policy = policy.expect("the slot names the policies of the table");
    let Val::Tag(_, Some(params)) = val else {
        return MigrationSpec { policy, limit: CopybackLimitSpec::Fixed(0) };
    };
    let limit = match params.field("limit") {
        Val::Int(n) => CopybackLimitSpec::Fixed(*n as u8),
        Val::List(lines) => {
            let line = |line: &Val| (line.field("pe").int() as u32, line.field("copybacks").int() as u8);
            CopybackLimitSpec::Table(lines.iter().map(line).collect())
        }
        Val::Tag("measured", Some(params)) => CopybackLimitSpec::Measured {
            within_ns: params.field("within").span(),
            level: params.field("level").int() as u8,
        },
        _ => CopybackLimitSpec::Table(COPYBACK_THRESHOLDS.to_vec()),
    };
    MigrationSpec { policy, limit }
}

/// D. Hong, M. Kim, J. Park, M. Jung and J. Kim, "Revitalizing copybacks in modern SSDs: why and how", DAC 2018: Table 1,
/// for a year of retention; five at 0 P/E cycles by Fig. 3(b).
const COPYBACK_THRESHOLDS: [(u32, u8); 4] = [(0, 5), (1000, 4), (2000, 3), (3000, 2)];

fn levels(val: &Val) -> Vec<LevelSpec> {
    let Val::List(levels) = val else {
        return if val.tag() == "laldpc" { laldpc_levels() } else { Vec::new() };
    };
    let level = |val: &Val| LevelSpec {
        rber_max: val.field("rber_max").num(),
        sense_ns: val.field("sense").span(),
        transfer_ns: val.field("transfer").span(),
        decode_ns: val.field("decode").span(),
    };
    levels.iter().map(level).collect()
}

/// Y. Du, D. Zou, Q. Li, L. Shi, H. Jin and C. J. Xue, "LaLDPC: Latency-aware LDPC for read performance improvement of
/// solid state drives", MSST 2017: latencies of Table I, limits of Table II.
fn laldpc_levels() -> Vec<LevelSpec> {
    let limits = [0.005, 0.006, 0.008, 0.009, 0.010, 0.012, 0.013];
    let level = |(extra, rber_max): (u64, f64)| LevelSpec {
        rber_max,
        sense_ns: (50 + 14 * extra) * US,
        transfer_ns: (20 + 10 * extra) * US,
        decode_ns: 15 * US,
    };
    (0..).zip(limits).map(level).collect()
}

fn rber(r: &Resolved) -> RberSpec {
    match (r.val("reliability.rber"), &r.table) {
        (Val::Tag("vth", Some(params)), _) => RberSpec::Vth(VthSpec {
            dvpp: params.field("dvpp").num(),
            cell_to_cell: params.field("cell_to_cell").num(),
            sensing_step: params.field("sensing_step").num(),
            per_page_kind: params.field("per_page_kind").bool(),
        }),
        (_, Some(table)) => RberSpec::Table(table.clone()),
        _ => RberSpec::None,
    }
}

/// Reads the file of `rber.table`: a spec whose table cannot be read is not valid. What is wrong with it is added to
/// `layers`.
pub(super) fn read_table(r: &mut Resolved, dir: &Path, layers: &mut Layers) {
    const KEY: &str = "reliability.rber";
    let Some(Val::Tag("table", Some(file))) = r.get(KEY) else { return };
    let (file, place) = (file.text(), r.items[KEY].place.clone());
    let error = match RberTable::read(&resolve_path(dir, file)) {
        Ok(table) => return r.table = Some(table),
        Err(error) => error,
    };
    let at = match (error.line, error.column) {
        (Some(line), Some(column)) => format!("line {line}, column {column}: "),
        (Some(line), None) => format!("line {line}: "),
        (None, _) => String::new(),
    };
    if let Some(place) = place {
        let (message, remedy) = (shorten_to(200, &error.message), shorten_to(200, &error.remedy));
        let message = format!("the table \"{}\" cannot be used: {at}{message}", shorten(file));
        layers.error(&place, "reliability.rber.table", message, remedy);
    }
}

fn allocation(name: &str) -> Allocation {
    match <[u8; 4]>::try_from(name.as_bytes()) {
        Ok(letters) => Allocation::Static(letters),
        Err(_) => Allocation::Dynamic,
    }
}

/// A policy of a registered slot.
fn choice(val: &Val) -> Choice {
    let values = match val {
        Val::Tag(_, Some(params)) => match params.as_ref() {
            Val::Table(fields) => fields.iter().map(|(_, val)| match val {
                Val::Int(i) => *i as f64,
                other => other.num(),
            }),
            other => panic!("{other:?} are not parameters"),
        }
        .collect(),
        _ => Vec::new(),
    };
    Choice { name: val.tag(), values }
}

fn precondition(r: &Resolved, dir: &Path) -> PreconditionSpec {
    if let Some(file) = r.get("precondition.load") {
        return PreconditionSpec::Load(resolve_path(dir, file.text()));
    }
    match r.val("precondition.method").tag() {
        "fill" => PreconditionSpec::Fill {
            used: num(r, "precondition.used"),
            valid: num(r, "precondition.valid"),
            order: match r.val("precondition.order").tag() {
                "sequential" => FillOrder::Sequential,
                _ => FillOrder::Random,
            },
        },
        "pts" => PreconditionSpec::Pts { rounds_max: count(r, "precondition.rounds_max") },
        _ => PreconditionSpec::None,
    }
}

fn workload(r: &Resolved, dir: &Path) -> Option<WorkloadSpec> {
    let source = if let Some(path) = r.get("workload.trace") {
        Source::Trace(TraceSpec {
            path: resolve_path(dir, path.text()),
            format: r.get("workload.format").map(|val| val.tag().to_string()),
            device: r.get("workload.device").map(|val| match val.text() {
                "concatenate" => DeviceChoice::Concatenate,
                name => DeviceChoice::One(name.to_string()),
            }),
            lenient: r.val("workload.lenient").bool(),
            time_unit_ns: r.get("workload.time_unit").map(|val| match val.tag() {
                "ps" => 1e-3,
                "us" => 1e3,
                "ms" => 1e6,
                "s" => 1e9,
                _ => 1.0,
            }),
            max_gap_ns: span(r, "workload.max_gap"),
        })
    } else if let Some(name) = r.get("workload.profile") {
        let requests = r.get("workload.requests").map(Val::int);
        Source::Profile(ProfileSpec { name: name.text().to_string(), requests })
    } else {
        Source::Synthetic(synthetic(r.get("workload.synthetic")?))
    };
    Some(WorkloadSpec {
        source,
        arrival: arrival(r.val("workload.arrival"), || num(r, "workload.time_scale")),
        beyond: match r.val("workload.beyond").tag() {
            "wrap" => Beyond::Wrap,
            _ => Beyond::Refuse,
        },
        requests_max: int(r, "workload.requests_max"),
        repeat: count(r, "workload.repeat"),
    })
}

/// `workload.arrival`; the scale is asked for only where the workload has times of its own.
pub(super) fn arrival(val: &Val, time_scale: impl FnOnce() -> f64) -> Arrival {
    match val {
        Val::Tag("queue_depth", Some(depth)) => Arrival::QueueDepth(depth.int() as u32),
        Val::Tag("iops", Some(iops)) => Arrival::Iops(iops.num()),
        Val::Tag("bursts", Some(bursts)) => Arrival::Bursts {
            requests: bursts.field("requests").int(),
            at_once: burst_requests(bursts),
            idle_ns: bursts.field("idle").span(),
        },
        _ => Arrival::Trace { time_scale: time_scale() },
    }
}

/// Requests of a burst of `arrival.bursts`.
pub(super) fn burst_requests(bursts: &Val) -> u64 {
    (bursts.field("at_once").num() * bursts.field("requests").int() as f64).round() as u64
}

fn synthetic(val: &Val) -> SyntheticSpec {
    SyntheticSpec {
        requests: val.field("requests").int(),
        read_fraction: val.field("read_fraction").num(),
        trim_fraction: val.field("trim_fraction").num(),
        sizes: match val.field("size") {
            Val::Sizes(sizes) => sizes.clone(),
            _ => Vec::new(),
        },
        address: match val.field("address") {
            Val::Tag("zipf", Some(exponent)) => Address::Zipf(exponent.num()),
            Val::Tag("sequential", _) => Address::Sequential,
            hot @ Val::Table(_) => {
                Address::Hot { hot: hot.field("hot").num(), share: hot.field("share").num() }
            }
            _ => Address::Uniform,
        },
        span: val.field("span").num(),
        align_bytes: val.field("align").int(),
    }
}

/// `text` below `dir`, without `.` parts. `..` stays: behind a link it does not cancel the name before it.
fn resolve_path(dir: &Path, text: &str) -> PathBuf {
    dir.join(text).components().filter(|part| *part != Component::CurDir).collect()
}
