//! From resolved values to the typed [`Spec`]. The compiler names any field of the model that is not filled here.

use super::kind::Val;
use super::model::*;
use super::resolve::Resolved;
use crate::policy::Choice;
use std::path::{Component, Path, PathBuf};

/// Builds the spec; all values are there and checked.
pub(super) fn build(r: &Resolved, dir: &Path) -> Spec {
    Spec {
        seed: int(r, "seed"),
        drive: drive(r),
        timing: timing(r),
        ftl: FtlSpec {
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
            background_free: num(r, "gc.background_free"),
            foreground_free: num(r, "gc.foreground_free"),
            idle_valid_max: num(r, "gc.idle_valid_max"),
            idle_after_ns: int(r, "gc.idle_after"),
        },
        reliability: ReliabilitySpec {
            pe_cycles: count(r, "reliability.pe_cycles"),
            retention_ns: int(r, "reliability.retention"),
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
        read_ns: int(r, "timing.read"),
        program: match r.val("timing.program") {
            Val::Table(fields) if fields[0].0 == "lsb" => {
                ProgramTime::ByKind { lsb_ns: fields[0].1.int(), msb_ns: fields[1].1.int() }
            }
            Val::Table(fields) => {
                ProgramTime::ByLayer { fastest_ns: fields[0].1.int(), slowest_ns: fields[1].1.int() }
            }
            time => ProgramTime::Uniform(time.int()),
        },
        erase_ns: int(r, "timing.erase"),
        channel_ns_per_byte: num(r, "timing.channel_ns_per_byte"),
        command_ns: int(r, "timing.command"),
        decode_ns: int(r, "timing.decode"),
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
        "fill" => {
            PreconditionSpec::Fill { used: num(r, "precondition.used"), valid: num(r, "precondition.valid") }
        }
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
        })
    } else if let Some(name) = r.get("workload.profile") {
        let requests = r.get("workload.requests").map(Val::int);
        Source::Profile(ProfileSpec { name: name.text().to_string(), requests })
    } else {
        Source::Synthetic(synthetic(r.get("workload.synthetic")?))
    };
    Some(WorkloadSpec {
        source,
        arrival: match r.val("workload.arrival") {
            Val::Tag("queue_depth", Some(depth)) => Arrival::QueueDepth(depth.int() as u32),
            Val::Tag("iops", Some(iops)) => Arrival::Iops(iops.num()),
            _ => Arrival::Trace { time_scale: num(r, "workload.time_scale") },
        },
        beyond: match r.val("workload.beyond").tag() {
            "wrap" => Beyond::Wrap,
            _ => Beyond::Refuse,
        },
        requests_max: int(r, "workload.requests_max"),
        repeat: count(r, "workload.repeat"),
    })
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
