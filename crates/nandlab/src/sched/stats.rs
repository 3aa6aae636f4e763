//! Counters of the dies.

use crate::base::counters::counters;
use crate::base::units::Span;

counters! {
    /// Suspensions of programs and erases for host reads (`timing.suspend`).
    pub struct SuspendStats {
        /// Suspensions of programs and of the programs of copybacks; a multi-plane program counts as one.
        pub programs: u64, sum of suspensions;
        /// Suspensions of erases; a multi-plane erase counts as one.
        pub erases: u64, sum of suspensions;
        /// Time by which suspensions have delayed programs and erases: from the suspension of an operation until the
        /// die has taken the operation up again.
        pub suspended_ns: Span, sum of s, summary "suspended_s";
    }
}
