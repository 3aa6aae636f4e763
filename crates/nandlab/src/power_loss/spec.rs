//! The section `[power]` of the spec.

use crate::base::units::{Span, Time};
use crate::spec::{ANY_TIME, COUNT, Check, Rule, Val, ValueKind, key, section};

section! {
    /// `[power]`: the time of a power loss, and GC during the emergency flush.
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
        /// Power fails again this long after it has returned, if recovery takes longer; `None`: it does not.
        pub cut_in_recovery_ns: Option<Span> = key(
            "power.cut_in_recovery",
            ANY_TIME,
            "",
            "power fails once more, this long after it has returned, if recovery takes longer",
        ) => |values, path| values.get(path).map(|after| Span::from_ns(after.int())),
        /// Whether GC goes on while an emergency flush with [`FlushMethod::Plain`](crate::ftl::FlushMethod::Plain)
        /// runs.
        pub gc_in_flush: bool = key(
            "power.gc_in_flush",
            ValueKind::Bool,
            "false",
            "whether foreground GC goes on while an emergency flush with capacitor.flush = \"plain\" runs",
        ),
    }
}

/// At most one of these keys may be set.
pub(crate) const EXCLUSIVE: &[&str] = &["power.cut_after_requests", "power.cut_at"];

pub(crate) const RULES: &[Rule] = &[gc_in_flush];

/// CSW stops all internal activities (Section IV-C-1 of the aging-capacitor paper), and without a capacitor there is no
/// flush.
fn gc_in_flush(check: &mut Check<'_>) -> Option<()> {
    const KEY: &str = "power.gc_in_flush";
    if !check.get(KEY)?.bool() {
        return None;
    }
    if check.is("capacitor.flush", "csw") {
        let message = "capacitor.flush = \"csw\" stops GC, so GC cannot go on during the flush";
        let remedy = "set capacitor.flush = \"plain\", or power.gc_in_flush = false";
        check.error(&[KEY, "capacitor.flush"], message, remedy);
    }
    if check.num("capacitor.capacitance")? == 0.0 {
        let message = "no flush is made without a capacitor, so GC in the flush has no effect";
        let remedy = "set capacitor.capacitance, such as \"75mF\", or power.gc_in_flush = false";
        check.error(&[KEY, "capacitor.capacitance"], message, remedy);
    }
    Some(())
}
