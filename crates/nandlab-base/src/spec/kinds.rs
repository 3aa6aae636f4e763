//! Kinds of values, and constructors for kinds, parameters and the choices of a slot.

use super::kind::{Param, Payload, Policy, Range, Val, ValueKind};
use super::quantity::Dimension;
use super::section::FromVal;
use crate::base::page_kind::KindTimes;
use crate::base::policy::{ParamInfo, PolicyInfo};
use crate::base::units::Span;

/// A policy without parameters.
pub const fn plain(name: &'static str, doc: &'static str) -> Policy {
    Policy { name, payload: Payload::None, doc }
}

/// A policy with parameters.
pub const fn with(name: &'static str, params: &'static [Param], doc: &'static str) -> Policy {
    Policy { name, payload: Payload::Params(params), doc }
}

/// A policy with one value and no named parameters.
pub const fn value(name: &'static str, kind: &'static ValueKind, doc: &'static str) -> Policy {
    Policy { name, payload: Payload::Value(kind), doc }
}

/// A parameter.
pub const fn param(name: &'static str, kind: ValueKind, default: &'static str, doc: &'static str) -> Param {
    Param { name, kind, default, doc }
}

/// The policy that `info` describes. Each call leaks memory, so call the function only once for each policy.
pub fn registered(info: &'static PolicyInfo) -> Policy {
    let param = |p: &ParamInfo| Param {
        name: p.name,
        kind: match p.whole {
            true => int(p.min as u64, p.max as u64),
            false => num(p.min, p.max),
        },
        default: p.default.map_or("", |default| match p.whole {
            true => (default as u64).to_string().leak(),
            false => format!("{default:?}").leak(),
        }),
        doc: p.description,
    };
    let params: Vec<Param> = info.params.iter().map(param).collect();
    let payload = if params.is_empty() { Payload::None } else { Payload::Params(params.leak()) };
    Policy { name: info.name, payload, doc: info.description }
}

/// A whole number in a range.
pub const fn int(min: u64, max: u64) -> ValueKind {
    ValueKind::Int { min, max }
}

/// A number in a range that includes its ends.
pub const fn num(min: f64, max: f64) -> ValueKind {
    ValueKind::Num(Range { min, max, above: false, below: false })
}

/// A number above 0, at most `max`.
pub const fn above_0(max: f64) -> ValueKind {
    ValueKind::Num(Range { min: 0.0, max, above: true, below: false })
}

/// A number from 0 to 1.
pub const SHARE: ValueKind = num(0.0, 1.0);
/// A number from 0, below 1.
pub const SHARE_BELOW_1: ValueKind = ValueKind::Num(Range { min: 0.0, max: 1.0, above: false, below: true });
/// A number above 0, at most 1.
pub const SHARE_ABOVE_0: ValueKind = above_0(1.0);
/// A factor above 0.
pub const FACTOR: ValueKind = above_0(1e9);
/// A bandwidth in MB/s.
pub const MB_PER_S: ValueKind = above_0(1e9);
/// A count from 0.
pub const COUNT: ValueKind = int(0, i64::MAX as u64);
/// The longest time allowed for one flash operation: 10 s.
pub const OPERATION_NS_MAX: u64 = 10_000_000_000;
/// Time of a flash operation, at least 1 ns.
pub const OPERATION: ValueKind = ValueKind::Time { min: 1, max: OPERATION_NS_MAX };
/// tR: one time, or a time for each page kind.
pub const READ: ValueKind = ValueKind::Either(&[OPERATION, ValueKind::Table(READ_BY_KIND)]);
/// tR for each page kind.
pub const READ_BY_KIND: &[Param] = &[
    param("lsb", OPERATION, "", "tR of an LSB page"),
    param("csb", CSB, "\"mean\"", "tR of a CSB page"),
    param("msb", OPERATION, "", "tR of an MSB page"),
];

/// Time of a CSB page: a time of its own, or the mean of LSB and MSB page.
pub const CSB: ValueKind =
    ValueKind::Either(&[OPERATION, ValueKind::Slot(&[plain("mean", "the mean of lsb and msb")])]);
/// Time of an overhead, which may be 0.
pub const OVERHEAD: ValueKind = ValueKind::Time { min: 0, max: OPERATION_NS_MAX };
/// A span of simulated time, which may be 0.
pub const ANY_TIME: ValueKind = ValueKind::Time { min: 0, max: Span::LIMIT.ns() };
/// A span of simulated time, at least 1 ns.
pub const SOME_TIME: ValueKind = ValueKind::Time { min: 1, max: Span::LIMIT.ns() };
/// An age of at most 60 years. The age clock has 32 bits of seconds; half of its range, 68 years, is before the run.
pub const AGE: ValueKind = ValueKind::Time { min: 0, max: 60 * 365 * 86_400_000_000_000 };
/// An energy in joules, from 0 to 1e6.
pub const JOULES: ValueKind = ValueKind::Si(Dimension::Energy);
/// A power in watts, from 0 to 1e6.
pub const WATTS: ValueKind = ValueKind::Si(Dimension::Power);
/// A resistance in ohms, from 0 to 1e6.
pub const OHMS: ValueKind = ValueKind::Si(Dimension::Resistance);
/// A voltage in volts, from 0 to 1e6.
pub const VOLTS: ValueKind = ValueKind::Si(Dimension::Voltage);

impl FromVal for KindTimes {
    fn from_val(val: &Val) -> Self {
        if !matches!(val, Val::Table(_)) {
            return Self::uniform(val.span());
        }
        let times = Self::new(val.field("lsb").span(), val.field("msb").span());
        match val.field("csb") {
            Val::Tag("mean", None) => times,
            csb => Self { csb_ns: csb.span(), ..times },
        }
    }
}
