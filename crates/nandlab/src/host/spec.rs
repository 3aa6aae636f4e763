//! The section `[host]` of the spec.

use super::streams::{AddedStreams, POLICIES};
use crate::base::policy::Choice;
use crate::base::units::Span;
use crate::spec::{
    Choices, FromVal, Key, MB_PER_S, OVERHEAD, Params, Policy, Val, ValueKind, choices, int, key, param,
    params, plain, registered, section,
};
use std::sync::LazyLock;

pub(crate) const STREAMS: Key = key(
    "ftl.streams",
    ValueKind::Registered(policies),
    "\"none\"",
    "streams into which the drive divides the host's writes with placement handle 0",
);

fn policies() -> &'static [Policy] {
    static ALL: LazyLock<Vec<Policy>> = LazyLock::new(|| POLICIES.iter().map(registered).collect());
    &ALL
}

/// `ftl.streams`: the policy that divides the host's writes, and the streams that it adds.
#[derive(Clone, Debug, PartialEq)]
pub struct StreamsSpec {
    /// The policy, one of [`POLICIES`].
    pub policy: Choice,
    /// Its streams.
    pub added: AddedStreams,
}

impl FromVal for StreamsSpec {
    fn from_val(val: &Val) -> Self {
        Self { policy: Choice::from_val(val), added: added(val) }
    }
}

/// The streams that a value of `ftl.streams` adds.
pub(crate) fn added(val: &Val) -> AddedStreams {
    let Val::Tag(name, payload) = val else { return AddedStreams::default() };
    let classes = payload.as_deref().and_then(|payload| payload.get(AddedStreams::PARAM));
    let number = classes.and_then(|val| match val {
        Val::Int(number) => Some(*number as f64),
        Val::Num(number) => Some(*number),
        _ => None,
    });
    AddedStreams::of(name, number)
}

section! {
    /// `[host]`: the link between host and drive, and the firmware of the controller.
    #[derive(Clone, Debug, Default, PartialEq)]
    pub struct HostSpec {
        /// The link; `None`: requests reach the drive, and completions the host, without delay.
        pub link: Option<LinkSpec> =
            key("host.link", LINK, "\"none\"", "the link between host and drive, shared by all requests")
            => |values, path| link(values.val(path)),
        /// The firmware; `None`: it takes no time.
        pub controller: Option<ControllerSpec> =
            key("host.controller", CONTROLLER, "\"none\"", "the firmware of the controller: its time a command")
            => |values, path| controller(values.val(path)),
    }
}

params! {
    /// `host.controller`: the firmware's time a command, and the number of commands on which it works at once.
    #[derive(Clone, Copy, Debug, PartialEq)]
    pub struct ControllerSpec {
        /// Time of a read.
        pub read_ns: Span = param("read", OVERHEAD, "", "firmware time of a read"),
        /// Time of a write, TRIM or flush.
        pub write_ns: Span = param("write", OVERHEAD, "", "firmware time of a write, TRIM or flush"),
        /// Number of commands at once, at least 1.
        pub commands_at_once: u32 =
            param("commands_at_once", COMMANDS, "1", "commands at once; later ones wait"),
        /// Which of the commands that wait is next.
        pub arbitration: Arbitration =
            param("arbitration", ValueKind::Slot(Arbitration::CHOICES), "\"arrival\"", "which of the commands that wait is next"),
        /// The most commands that the drive has taken and not completed, at least 1; `None`: no limit.
        pub commands_max: Option<u32> =
            param("commands_max", COMMANDS_MAX, "\"unlimited\"", "commands taken and not completed; later ones wait")
            => commands_max,
    }
}

const COMMANDS: ValueKind = int(1, 65_536);
const COMMANDS_MAX: ValueKind =
    ValueKind::Either(&[ValueKind::Slot(&[plain("unlimited", "the drive takes every command")]), COMMANDS]);

fn commands_max(val: &Val) -> Option<u32> {
    match val {
        Val::Tag("unlimited", None) => None,
        _ => Some(u32::from_val(val)),
    }
}

choices! {
    /// `host.controller.arbitration`: which of the commands that wait is next.
    #[derive(Clone, Copy, Debug, PartialEq, Eq)]
    pub enum Arbitration {
        /// The one that has waited longest.
        Arrival = "arrival": "the command that has waited longest",
        /// That of the queue whose turn it is.
        RoundRobin = "round-robin": "the queues of the host take turns (NVMe's default)",
    }
}

const CONTROLLER: ValueKind = ValueKind::Either(&[
    ValueKind::Slot(&[plain("none", "a command takes no time of the controller")]),
    ValueKind::Table(ControllerSpec::PARAMS),
]);

fn controller(val: &Val) -> Option<ControllerSpec> {
    match val {
        Val::Tag("none", None) => None,
        Val::Table(_) => Some(ControllerSpec::from_val(val)),
        _ => val.is_no("controller"),
    }
}

params! {
    /// `host.link`: the link between host and drive, with the same bandwidth and latency in each direction.
    #[derive(Clone, Copy, Debug, PartialEq)]
    pub struct LinkSpec {
        /// Bandwidth in each direction, above 0.
        pub bytes_per_s: f64 = param("mb_per_s", MB_PER_S, "", "bandwidth in each direction, in MB/s")
            => |val| val.num() * 1e6,
        /// Time from the sending of a command, of the last byte of data, or of a completion to its arrival.
        pub latency_ns: Span =
            param("latency", OVERHEAD, "\"0us\"", "time of a command to the drive, and of a completion to the host"),
    }
}

const LINK: ValueKind = ValueKind::Either(&[
    ValueKind::Slot(&[plain("none", "requests and completions arrive without delay")]),
    ValueKind::Table(LinkSpec::PARAMS),
]);

fn link(val: &Val) -> Option<LinkSpec> {
    match val {
        Val::Tag("none", None) => None,
        Val::Table(_) => Some(LinkSpec::from_val(val)),
        _ => val.is_no("link"),
    }
}
