//! Failures of the drive itself: it makes no progress though it is not worn out, simulated time ends, or it does not
//! come to rest.

use super::Drive;
use crate::base::geometry::PlaneId;
use crate::base::units::{Span, Time};
use crate::base::words::duration;
use crate::flash::BlockState;
use crate::probe::Probe;
use crate::sched::Cause;

/// Why a drive cannot continue, or does not come to rest.
#[derive(Clone, Debug, PartialEq)]
pub enum Failure {
    /// Pages wait for room in a plane in which GC can gain no page.
    Shortage {
        /// The plane without room.
        plane: PlaneId,
        /// Free blocks of the plane.
        free: u32,
        /// Free blocks of the plane that host writes may not take.
        reserve: u32,
        /// Valid pages of the plane.
        valid: u32,
        /// Largest number of valid pages at which the plane still has the space that its mechanisms need.
        valid_max: u64,
    },
    /// GC erases blocks, but no waiting host page gets room.
    InVain {
        /// Number of blocks erased since a host page last got room.
        erases: u64,
    },
    /// Preconditioning has worn the drive out: a plane has no room for a page, and no garbage.
    WornOut {
        /// The plane without room.
        plane: PlaneId,
        /// Blocks of the plane that have reached the endurance.
        retired: u32,
        /// Blocks of the plane that are not bad from the factory.
        blocks: u32,
        /// P/E cycles after which a block retires.
        endurance: u32,
        /// P/E cycles with which the drive started.
        pe_cycles: u32,
        /// Pages written since the drive was empty or filled, as a share of its logical pages.
        drive_writes: f64,
    },
    /// Simulated time has ended.
    TimeIsOver {
        /// The last simulated time.
        end: Time,
    },
    /// The drive does not come to rest though no request arrives.
    Restless {
        /// The simulated time after which the drive was still not at rest.
        limit: Span,
        /// The work that is still under way.
        what: String,
    },
}

impl std::fmt::Display for Failure {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Shortage { plane, free, reserve, valid, valid_max } => write!(
                f,
                "a write waits for plane {}, where GC can gain no page: expected more than {reserve} free blocks, found \
                 {free}; expected at most {valid_max} valid pages, found {valid}",
                plane.0
            ),
            Self::InVain { erases } => {
                write!(f, "GC has erased {erases} blocks, but no waiting host page has got room")
            }
            Self::WornOut { plane, retired, blocks, endurance, pe_cycles, drive_writes } => write!(
                f,
                "preconditioning wears the drive out: after {drive_writes:.3} drive writes plane {} has no room for the \
                 next page; of its {blocks} blocks, {retired} reached the endurance of {endurance} P/E cycles, of \
                 which the drive starts with {pe_cycles}",
                plane.0
            ),
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
    /// Simulated time has ended: the drive fails.
    #[cold]
    pub(super) fn end_time(&mut self) {
        self.failure.get_or_insert_with(|| Box::new(Failure::TimeIsOver { end: self.core.end }));
    }

    /// Preconditioning has found no room in a plane: the drive fails.
    #[cold]
    pub(super) fn wear_out(&mut self, plane: PlaneId) {
        let geometry = &self.core.geometry;
        let of_plane = &self.core.array.blocks[geometry.blocks_of(plane)];
        let in_state = |state| of_plane.iter().filter(|block| block.state == state).count() as u32;
        let failure = Failure::WornOut {
            plane,
            retired: in_state(BlockState::Retired),
            blocks: of_plane.len() as u32 - in_state(BlockState::Bad),
            endurance: self.core.room.endurance,
            pe_cycles: self.spec.reliability.pe_cycles,
            drive_writes: self.core.sequence as f64 / f64::from(geometry.logical_pages),
        };
        self.failure.get_or_insert_with(|| Box::new(failure));
    }

    /// The shortage of the first plane in which a page waits for room.
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

    /// The failure of a drive that is not at rest after `limit`; names the work still under way.
    pub(super) fn restless(&self, limit: Span) -> Failure {
        let jobs = self.background.causes(&self.core);
        let count = |cause: Cause| jobs.iter().filter(|&&job| job == cause).count();
        let mut what = Vec::new();
        if self.outstanding() > 0 {
            what.push(format!("{} requests are outstanding", self.outstanding()));
        }
        for cause in Cause::ALL {
            if let Some(verb) = cause.job_verb().filter(|_| count(cause) > 0) {
                what.push(format!("{} planes are being {verb}", count(cause)));
            }
        }
        if let Some(load) = self.refresh_load().filter(|&load| load > 1.0) {
            what.push(format!(
                "refresh cannot keep up: blocks come due {load:.1} times as fast as they are refreshed"
            ));
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
