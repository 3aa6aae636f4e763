//! What must not happen: a drive that neither goes on nor is worn out, or never comes to rest.

use super::Drive;
use crate::base::geometry::PlaneId;
use crate::base::units::{Span, Time};
use crate::base::words::duration;
use crate::probe::Probe;
use crate::sched::Cause;

/// Why a drive does not go on.
#[derive(Clone, Debug, PartialEq)]
pub enum Failure {
    /// Pages wait for room in a plane that has none, and nothing can be gained there.
    Shortage {
        /// The plane.
        plane: PlaneId,
        /// Its free blocks, and those that it keeps from the host.
        free: u32,
        /// See `free`.
        reserve: u32,
        /// Its valid pages, and the most that leave it what it needs.
        valid: u32,
        /// See `valid`.
        valid_max: u64,
    },
    /// GC goes on and no host page gets room.
    InVain {
        /// Blocks erased since the last one did.
        erases: u64,
    },
    /// Simulated time is over.
    TimeIsOver {
        /// The last simulated time.
        end: Time,
    },
    /// Something still goes on though the host asks for nothing.
    Restless {
        /// How long that was waited for.
        limit: Span,
        /// What it is.
        what: String,
    },
}

impl std::fmt::Display for Failure {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Shortage { plane, free, reserve, valid, valid_max } => write!(
                f,
                "a write waits for plane {}, which has {free} of the {reserve} free blocks that it keeps and nothing to \
                 gain: {valid} of its pages are valid, and {valid_max} may be",
                plane.0
            ),
            Self::InVain { erases } => {
                write!(
                    f,
                    "garbage collection has erased {erases} blocks, and no host page has got room of them"
                )
            }
            Self::TimeIsOver { end: Time::LIMIT } => {
                write!(f, "simulated time ends 2^62 ns (146 years) after the start")
            }
            Self::TimeIsOver { end } => write!(
                f,
                "the age clock ends 2^31 s (68 years) after the start, which with this reliability.clock_scale is after {} \
                 of simulated time",
                duration(end.seconds())
            ),
            Self::Restless { limit, what } => {
                write!(f, "after {} s of simulated time the drive is not at rest: {what}", limit.seconds())
            }
        }
    }
}

impl std::error::Error for Failure {}

impl<P: Probe> Drive<P> {
    /// Simulated time is over: nothing happens any more.
    #[cold]
    pub(super) fn end_time(&mut self) {
        self.failure.get_or_insert_with(|| Box::new(Failure::TimeIsOver { end: self.core.end }));
    }

    /// The shortage of the first plane that something waits for.
    pub(super) fn shortage(&self) -> Failure {
        let mut planes = (0..self.core.geometry.planes).map(PlaneId);
        let plane = planes.find(|&plane| self.path.waits_in::<P>(plane)).unwrap_or(PlaneId(0));
        let ftl = &self.core.ftl;
        let state = &ftl.planes[plane.index()];
        let needed = ftl.needs.blocks() * ftl.needs.pages_per_block;
        Failure::Shortage {
            plane,
            free: state.free.len(),
            reserve: ftl.reserve_blocks,
            valid: state.valid,
            valid_max: (u64::from(state.usable_blocks) * ftl.needs.pages_per_block).saturating_sub(needed),
        }
    }

    /// What goes on after so long.
    pub(super) fn restless(&self, limit: Span) -> Failure {
        let jobs = self.background.causes(&self.core);
        let count = |cause: Cause| jobs.iter().filter(|&&job| job == cause).count();
        let mut what = Vec::new();
        if self.outstanding() > 0 {
            what.push(format!("{} requests are outstanding", self.outstanding()));
        }
        for (cause, name) in
            [(Cause::Refresh, "refreshed"), (Cause::Gc, "collected"), (Cause::Wear, "levelled")]
        {
            if count(cause) > 0 {
                what.push(format!("{} planes are being {name}", count(cause)));
            }
        }
        if let Some(load) = self.refresh_load().filter(|&load| load > 1.0) {
            what.push(format!("refresh cannot keep up: {load:.1} x"));
        }
        if self.power_stage() != "charged" {
            what.push(format!("the capacitor is {}", self.power_stage()));
        }
        if what.is_empty() {
            what.push("operations are under way".to_owned());
        }
        Failure::Restless { limit, what: what.join(", ") }
    }
}
