//! Units of measurement: types for simulated time in nanoseconds, and constants for times and sizes.

use super::state::value;
use std::iter::Sum;
use std::ops::{Add, AddAssign, Div, Mul, MulAssign, Sub, SubAssign};

/// Simulated time: nanoseconds since the start of the run.
///
/// Simulation ends at [`Time::LIMIT`]. Times and spans have different types: two times cannot be added, and their
/// difference is a [`Span`].
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[repr(transparent)]
pub struct Time(u64);

/// A length of simulated time in nanoseconds.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[repr(transparent)]
pub struct Span(u64);

impl Time {
    /// The start of the run.
    pub const START: Time = Time(0);
    /// The last simulated time: 2^62 ns, 146 years. The sum of a time up to this limit and a span up to
    /// [`Span::LIMIT`] does not overflow.
    pub const LIMIT: Time = Time(1 << 62);
    /// A time after every event.
    pub const NEVER: Time = Time(u64::MAX);

    /// The time `ns` nanoseconds after the start.
    #[inline(always)]
    pub const fn from_ns(ns: u64) -> Self {
        Time(ns)
    }

    /// Nanoseconds since the start.
    #[inline(always)]
    pub const fn ns(self) -> u64 {
        self.0
    }

    /// Seconds since the start.
    #[inline(always)]
    pub fn seconds(self) -> f64 {
        self.0 as f64 * 1e-9
    }

    /// The time `ns` nanoseconds after the start, rounded down; `None` beyond [`Time::LIMIT`].
    #[inline(always)]
    pub fn from_ns_f64(ns: f64) -> Option<Self> {
        (ns <= Self::LIMIT.0 as f64).then_some(Time(ns as u64))
    }

    /// The time `span` after this time, at most [`Time::NEVER`].
    #[inline(always)]
    pub const fn saturating_add(self, span: Span) -> Self {
        Time(self.0.saturating_add(span.0))
    }

    /// The span from `before` to this time; zero if `before` is later.
    #[inline(always)]
    pub const fn saturating_sub(self, before: Time) -> Span {
        Span(self.0.saturating_sub(before.0))
    }

    /// The time `span` before this time, at least [`Time::START`].
    #[inline(always)]
    pub const fn earlier_by(self, span: Span) -> Self {
        Time(self.0.saturating_sub(span.0))
    }
}

impl Span {
    /// The span of 0 ns.
    pub const ZERO: Span = Span(0);
    /// The longest span that can be simulated.
    pub const LIMIT: Span = Span(Time::LIMIT.0);
    /// The largest value of the type.
    pub const MAX: Span = Span(u64::MAX);

    /// A span of `ns` nanoseconds.
    #[inline(always)]
    pub const fn from_ns(ns: u64) -> Self {
        Span(ns)
    }

    /// The span in nanoseconds.
    #[inline(always)]
    pub const fn ns(self) -> u64 {
        self.0
    }

    /// The difference between this span and `other`; zero if `other` is longer.
    #[inline(always)]
    pub const fn saturating_sub(self, other: Span) -> Self {
        Span(self.0.saturating_sub(other.0))
    }

    /// The span in seconds.
    #[inline(always)]
    pub fn seconds(self) -> f64 {
        self.0 as f64 * 1e-9
    }
}

/// Implements operators by their effect on nanoseconds. They overflow as the operators of `u64` do.
macro_rules! operators {
    ($($trait:ident::$method:ident($left:ident: $Left:ty, $right:ident: $Right:ty) -> $Out:ty = $value:expr;)*) => {
        $(impl $trait<$Right> for $Left {
            type Output = $Out;
            #[inline(always)]
            fn $method(self, $right: $Right) -> $Out {
                let $left = self;
                $value
            }
        })*
    };
}

operators! {
    Add::add(time: Time, span: Span) -> Time = Time(time.0 + span.0);
    Sub::sub(time: Time, span: Span) -> Time = Time(time.0 - span.0);
    Sub::sub(time: Time, before: Time) -> Span = Span(time.0 - before.0);
    Add::add(span: Span, other: Span) -> Span = Span(span.0 + other.0);
    Sub::sub(span: Span, other: Span) -> Span = Span(span.0 - other.0);
    Mul::mul(span: Span, times: u64) -> Span = Span(span.0 * times);
    Mul::mul(times: u64, span: Span) -> Span = Span(times * span.0);
    Div::div(span: Span, parts: u64) -> Span = Span(span.0 / parts);
    Div::div(span: Span, unit: Span) -> u64 = span.0 / unit.0;
}

impl AddAssign<Span> for Time {
    #[inline(always)]
    fn add_assign(&mut self, span: Span) {
        self.0 += span.0;
    }
}

impl AddAssign for Span {
    #[inline(always)]
    fn add_assign(&mut self, other: Span) {
        self.0 += other.0;
    }
}

impl SubAssign for Span {
    #[inline(always)]
    fn sub_assign(&mut self, other: Span) {
        self.0 -= other.0;
    }
}

impl MulAssign<u64> for Span {
    #[inline(always)]
    fn mul_assign(&mut self, times: u64) {
        self.0 *= times;
    }
}

impl Sum for Span {
    #[inline(always)]
    fn sum<I: Iterator<Item = Span>>(spans: I) -> Span {
        spans.fold(Span::ZERO, |sum, span| sum + span)
    }
}

/// One microsecond.
pub const US: Span = Span(1_000);
/// One millisecond.
pub const MS: Span = Span(1_000_000);
/// One second.
pub const SECOND: Span = Span(1_000_000_000);
/// One day.
pub const DAY: Span = Span(86_400 * SECOND.0);

/// One KiB in bytes.
pub const KIB: u64 = 1 << 10;
/// One MiB in bytes.
pub const MIB: u64 = 1 << 20;
/// One GiB in bytes.
pub const GIB: u64 = 1 << 30;
/// The unit of block addresses in traces: 512 bytes.
pub const SECTOR: u64 = 512;

/// The share `share` (0 to 1) of `units`, rounded down; rounding of `share` costs no unit.
pub fn share_of(share: f64, units: u32) -> u32 {
    libm::floor(share * f64::from(units) + 1e-9) as u32
}

/// The time to transfer `bytes` at `ns_per_byte`, rounded up to whole nanoseconds once per transfer.
pub fn transfer_ns(bytes: u64, ns_per_byte: f64) -> Span {
    Span(libm::ceil(bytes as f64 * ns_per_byte) as u64)
}

value! { Time { ..tuple ns } }
value! { Span { ..tuple ns } }

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn operators_act_on_the_nanoseconds_of_times_and_spans() {
        assert_eq!(size_of::<Option<(Time, Span)>>(), size_of::<Option<(u64, u64)>>());
        let mut time = Time::START + 3 * MS + 2 * US * 5;
        assert_eq!(time.ns(), 3_010_000);
        assert_eq!((time - (Time::START + MS), time - MS), (2 * MS + 10 * US, Time::from_ns(2_010_000)));
        time += DAY / 2;
        assert_eq!((time - Time::START) / SECOND, 43_200);
        assert_eq!([US, MS, Span::ZERO].into_iter().sum::<Span>().ns(), 1_001_000);
        assert!(Time::START < time && time < Time::NEVER && Span::ZERO < US);
    }

    #[test]
    fn saturating_operations_stop_at_the_ends_of_the_range() {
        assert_eq!(Time::NEVER.saturating_add(US), Time::NEVER);
        assert_eq!(Time::START.saturating_sub(Time::NEVER), Span::ZERO);
        assert_eq!((Time::START + US).earlier_by(MS), Time::START);
        assert_eq!(US.saturating_sub(MS), Span::ZERO);
    }

    #[test]
    #[should_panic = "overflow"]
    fn a_negative_difference_of_times_panics() {
        let _ = Time::START - (Time::START + US);
    }
}
