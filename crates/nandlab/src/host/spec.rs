//! The section `[host]` of the spec.

use crate::base::units::Span;
use crate::spec::{FromVal, MB_PER_S, OVERHEAD, Params, Val, ValueKind, key, param, params, plain, section};

section! {
    /// `[host]`: the link between host and drive.
    #[derive(Clone, Debug, PartialEq)]
    pub struct HostSpec {
        /// The link; `None`: requests reach the drive, and completions the host, without delay.
        pub link: Option<LinkSpec> =
            key("host.link", LINK, "\"none\"", "the link between host and drive, shared by all requests")
            => |values, path| link(values.val(path)),
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
