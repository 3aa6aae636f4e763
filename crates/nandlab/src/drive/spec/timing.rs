//! The section `[timing]` of the spec.

use crate::base::geometry::KindTimes;
use crate::base::units::Span;
use crate::flash::ProgramTime;
use crate::read_levels::spec::takes_from_timing;
use crate::sched::{CommandTimes, OffChipRate, PlaneReads, Scheduler, SuspendSpec, SuspendTimes, TimingSpec};
use crate::spec::{
    CSB, Check, Choices, FromVal, MB_PER_S, OPERATION, OVERHEAD, Params, READ, Rule, Val, ValueKind, When,
    choices, int, key, num, param, params, plain, section,
};

section! { for TimingSpec {
    read = key("timing.read", READ, "\"50us\"", "tR, sensing a page: for every page, or by page kind")
        .when(When::Holds {
            of: "ecc.levels",
            holds: |levels| takes_from_timing(levels, "sense"),
            otherwise: "no effect, because ecc.levels gives every read level its own sense",
            remedy: "take timing.read out, or set ecc.levels to a list of levels without sense: [{ rber_max = 0.005 }]",
        }) => |values, path| values.get(path).map(FromVal::from_val),
    program =
        key("timing.program", PROGRAM, "\"900us\"", "tPROG: for every page, by page kind, or by layer"),
    erase_ns = key("timing.erase", OPERATION, "\"3.5ms\"", "tBERS: erasing a block"),
    channel_ns_per_byte = key(
        "timing.channel_ns_per_byte",
        num(0.0, 1e6),
        "2.5",
        "channel time to transfer a byte, in ns: of programs and off-chip copies, and of reads unless their read level has its own transfer",
    ),
    command = key(
        "timing.command",
        COMMAND,
        "\"0us\"",
        "channel time of a command: one time, or a time for each kind of operation",
    ),
    decode_ns = key("timing.decode", OVERHEAD, "\"15us\"", "controller time to decode a page")
        .when(When::Holds {
            of: "ecc.levels",
            holds: |levels| takes_from_timing(levels, "decode"),
            otherwise: "no effect, because ecc.levels gives every read level its own decode",
            remedy: "take timing.decode out, or set ecc.levels to a list of levels without decode: [{ rber_max = 0.005 }]",
        }) => |values, path| values.get(path).map(FromVal::from_val),
    off_chip = key(
        "timing.off_chip_mb_per_s",
        OFF_CHIP,
        "\"unlimited\"",
        "bandwidth of the off-chip path in MB/s: for both directions together, or for each direction",
    ),
    scheduler = key(
        "timing.scheduler",
        ValueKind::Slot(Scheduler::CHOICES),
        "\"read-first\"",
        "order in which a die serves its queues",
    ),
    multi_plane = key("timing.multi_plane", ValueKind::Bool, "false", "operations on several planes of a die at once"),
    plane_reads = key(
        "timing.plane_reads",
        PLANE_READS,
        "\"together\"",
        "whether the planes of a die sense different blocks at their own times",
    ),
    read_hold_ns = key(
        "timing.read_hold",
        OVERHEAD,
        "\"100us\"",
        "how long host reads of independent planes hold off another operation of their die, at most",
    )
    .when(When::Holds {
        of: "timing.plane_reads",
        holds: |reads| !matches!(reads, Val::Tag("together", None)),
        otherwise: "no effect, because the planes of a die read together",
        remedy: "take timing.read_hold out, or set timing.plane_reads = \"independent\"",
    }) => |values, path| values.get(path).map_or(Span::ZERO, Val::span),
    suspend = key(
        "timing.suspend",
        SUSPEND,
        "\"none\"",
        "whether a die suspends programs and erases to serve host reads",
    ),
} }

const PROGRAM: ValueKind = ValueKind::Either(&[
    OPERATION,
    ValueKind::Table(&[
        param("lsb", OPERATION, "", "tPROG of an LSB page"),
        param("csb", CSB, "\"mean\"", "tPROG of a CSB page"),
        param("msb", OPERATION, "", "tPROG of an MSB page"),
    ]),
    ValueKind::Table(&[
        param("fastest", OPERATION, "", "tPROG of the bottom layer"),
        param("slowest", OPERATION, "", "tPROG of the top layer; linear in between"),
    ]),
]);

impl FromVal for ProgramTime {
    fn from_val(val: &Val) -> Self {
        match val {
            Val::Table(fields) if fields[0].0 == "lsb" => Self::ByKind(KindTimes::from_val(val)),
            Val::Table(_) => Self::ByLayer {
                fastest_ns: val.field("fastest").span(),
                slowest_ns: val.field("slowest").span(),
            },
            time => Self::Uniform(time.span()),
        }
    }
}

const COMMAND: ValueKind = ValueKind::Either(&[
    OVERHEAD,
    ValueKind::Table(&[
        param("read", OVERHEAD, "\"0us\"", "command time of a page read"),
        param("program", OVERHEAD, "\"0us\"", "command time of a page program"),
        param("erase", OVERHEAD, "\"0us\"", "command time of a block erase"),
        param("copyback", OVERHEAD, "\"0us\"", "command time of a page copyback"),
        param(
            "multi_plane_read",
            TOGETHER,
            "\"each\"",
            "command time of a multi-plane read, all planes together",
        ),
        param(
            "multi_plane_program",
            TOGETHER,
            "\"each\"",
            "command time of a multi-plane program, all planes together",
        ),
    ]),
]);

const TOGETHER: ValueKind = ValueKind::Either(&[
    OVERHEAD,
    ValueKind::Slot(&[plain("each", "the command time of one plane, for every plane")]),
]);

impl FromVal for CommandTimes {
    fn from_val(val: &Val) -> Self {
        if !matches!(val, Val::Table(_)) {
            return Self::uniform(val.span());
        }
        let together = |name| match val.field(name) {
            Val::Tag("each", None) => None,
            time => Some(time.span()),
        };
        Self {
            read_ns: val.field("read").span(),
            program_ns: val.field("program").span(),
            erase_ns: val.field("erase").span(),
            copyback_ns: val.field("copyback").span(),
            multi_plane_read_ns: together("multi_plane_read"),
            multi_plane_program_ns: together("multi_plane_program"),
        }
    }
}

const OFF_CHIP: ValueKind = ValueKind::Either(&[
    MB_PER_S,
    ValueKind::Slot(&[plain("unlimited", "transfers take no time on the off-chip path")]),
    ValueKind::Table(&[
        param("read", MB_PER_S, "", "bandwidth out of the flash memory, in MB/s"),
        param("write", MB_PER_S, "", "bandwidth into the flash memory, in MB/s"),
    ]),
]);

impl FromVal for OffChipRate {
    fn from_val(val: &Val) -> Self {
        const MB: f64 = 1e6;
        match val {
            Val::Num(mb) => Self::Shared(mb * MB),
            Val::Table(_) => {
                Self::Separate { read: val.field("read").num() * MB, write: val.field("write").num() * MB }
            }
            Val::Tag("unlimited", None) => Self::Unlimited,
            val => val.is_no("bandwidth"),
        }
    }
}

choices! { for Scheduler {
    ReadFirst = "read-first": "host reads, then host writes, then background work",
    Fcfs = "fcfs": "strictly in order of arrival",
} }

const PLANE_READS: ValueKind = ValueKind::Either(&[
    ValueKind::Slot(&[
        plain("together", "a die has one read at a time"),
        plain("independent", "each plane has a read of its own at a time"),
    ]),
    ValueKind::Table(&[param(
        "groups",
        int(2, 256),
        "",
        "groups of planes, each with a read of its own at a time",
    )]),
]);

impl FromVal for PlaneReads {
    fn from_val(val: &Val) -> Self {
        match val {
            Val::Tag("together", None) => Self::Together,
            Val::Tag("independent", None) => Self::Independent,
            _ => Self::Groups(val.field("groups").int() as u32),
        }
    }
}

const SUSPEND: ValueKind = ValueKind::Either(&[
    ValueKind::Slot(&[plain("none", "every operation runs to its end")]),
    ValueKind::Table(&[
        param(
            "program",
            OF_OPERATION,
            "\"none\"",
            "suspension of programs, and of the programs of copybacks",
        ),
        param("erase", OF_OPERATION, "\"none\"", "suspension of erases"),
    ]),
]);

const OF_OPERATION: ValueKind = ValueKind::Either(&[
    ValueKind::Slot(&[plain("none", "these operations are not suspended")]),
    ValueKind::Table(SuspendTimes::PARAMS),
]);

params! { for SuspendTimes {
    enter_ns = param("enter", OVERHEAD, "", "time from the suspension until the die is ready for a read"),
    resume_ns = param("resume", OVERHEAD, "", "time in which the die takes the operation up again"),
    min_progress_ns = param(
        "min_progress",
        OVERHEAD,
        "",
        "least progress of the operation from its start or its last resumption to the next suspension",
    ),
    max = param("max", int(1, 1_000_000), "", "most suspensions of an operation, which then runs to its end"),
} }

impl FromVal for SuspendSpec {
    fn from_val(val: &Val) -> Self {
        let of = |name| match val.field(name) {
            Val::Tag("none", None) => None,
            times => Some(SuspendTimes::from_val(times)),
        };
        match val {
            Val::Tag("none", None) => Self::default(),
            _ => Self { program: of("program"), erase: of("erase") },
        }
    }
}

pub(super) const RULES: &[Rule] = &[suspend, plane_reads];

/// Groups that read independently divide the planes of a die.
fn plane_reads(check: &mut Check<'_>) -> Option<()> {
    const KEYS: [&str; 2] = ["timing.plane_reads", "drive.planes_per_die"];
    let reads = PlaneReads::from_val(check.get(KEYS[0])?);
    let planes = check.get(KEYS[1])?.int() as u32;
    let groups = reads.groups(planes);
    if reads != PlaneReads::Together && planes == 1 {
        let message = "no effect, because a die has one plane";
        check.error(&KEYS, message, "take timing.plane_reads out, or set drive.planes_per_die = 4");
    } else if !planes.is_multiple_of(groups) {
        let message = format!("{planes} planes of a die are not {groups} groups of equal size");
        check.error(
            &KEYS,
            message,
            format!("set {} = \"independent\", or groups that divide {planes}", KEYS[0]),
        );
    }
    Some(())
}

/// Suspension serves a read before an older operation, so `fcfs` excludes it.
fn suspend(check: &mut Check<'_>) -> Option<()> {
    const KEY: &str = "timing.suspend";
    let is_on = SuspendSpec::from_val(check.get(KEY)?) != SuspendSpec::default();
    if is_on && check.is("timing.scheduler", "fcfs") {
        let message =
            "suspension lets host reads precede older operations, which timing.scheduler = \"fcfs\" excludes";
        let remedy = "set timing.scheduler = \"read-first\", or timing.suspend = \"none\"";
        check.error(&[KEY, "timing.scheduler"], message, remedy);
    }
    Some(())
}
