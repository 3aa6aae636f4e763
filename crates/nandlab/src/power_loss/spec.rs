//! The section `[power]` of the spec.

use crate::base::units::Time;
use crate::spec::{ANY_TIME, COUNT, Val, key, section};

section! {
    /// `[power]`: the time of a power loss.
    #[derive(Clone, Copy, Debug, PartialEq, Eq)]
    pub struct PowerSpec {
        /// Power fails after this many completed requests; 0: never.
        pub cut_after_requests: u64 = key(
            "power.cut_after_requests",
            COUNT,
            "0",
            "power fails after this many completed requests; 0: never",
        ) => |values, path| values.get(path).map_or(0, Val::int),
        /// Power fails at this simulated time; `None`: never.
        pub cut_at_ns: Option<Time> =
            key("power.cut_at", ANY_TIME, "", "power fails at this simulated time")
                => |values, path| values.get(path).map(|at| Time::from_ns(at.int())),
    }
}

/// At most one of these keys may be set.
pub(crate) const EXCLUSIVE: &[&str] = &["power.cut_after_requests", "power.cut_at"];
