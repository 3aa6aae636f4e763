//! Failures of the drive itself: it makes no progress though it is not worn out, a policy fails, simulated time ends, or
//! it does not come to rest.

use super::Drive;
use super::spec::{Eviction, MapSpec};
use crate::base::geometry::LaneId;
use crate::base::policy::{PolicyError, PolicyFault, PolicySlot};
use crate::base::units::{Span, Time};
use crate::base::words::duration;
use crate::flash::{Superblock, SuperblockState};
use crate::probe::Probe;
use crate::sched::Cause;

/// Why a drive cannot continue, or does not come to rest.
#[derive(Clone, Debug, PartialEq)]
pub enum Failure {
    /// Units wait for room in a lane in which GC can gain no unit.
    Shortage {
        /// The lane without room.
        lane: LaneId,
        /// The reclaim group of the lane, on a drive with several.
        group: Option<u16>,
        /// Free superblocks of the lane.
        free: u32,
        /// Free superblocks of the lane that host writes may not take.
        reserve: u32,
        /// Valid units of the lane.
        valid: u32,
        /// Largest number of valid units at which the lane still has the space that its mechanisms need.
        valid_max: u64,
    },
    /// GC erases superblocks, but no waiting host unit gets room.
    InVain {
        /// Number of superblocks erased since a host unit last got room.
        erases: u64,
    },
    /// Preconditioning has worn the drive out: a lane has no room for a unit, and no garbage.
    WornOut {
        /// The lane without room.
        lane: LaneId,
        /// Superblocks of the lane that have reached the endurance.
        retired: u32,
        /// Superblocks of the lane that are not bad from the factory.
        superblocks: u32,
        /// P/E cycles after which a superblock retires.
        endurance: u32,
        /// P/E cycles with which the drive started.
        pe_cycles: u32,
        /// Units written since the drive was empty or filled, as a share of its logical units.
        drive_writes: f64,
    },
    /// Simulated time has ended.
    TimeIsOver {
        /// The last simulated time.
        end: Time,
    },
    /// A policy has failed, or has made a decision that cannot be carried out.
    Policy {
        /// The policy's name.
        name: String,
        /// The error, with slot and lane.
        fault: PolicyFault,
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
            Self::Shortage { lane, group, free, reserve, valid, valid_max } => write!(
                f,
                "a write waits for lane {}{}, where GC can gain no unit: expected more than {reserve} free superblocks, \
                 found {free}; expected at most {valid_max} valid units, found {valid}",
                lane.0,
                group.map_or_else(String::new, |group| format!(
                    " (reclaim group {group}, from which no data leaves)"
                ))
            ),
            Self::InVain { erases } => {
                write!(f, "GC has erased {erases} superblocks, but no waiting host unit has got room")
            }
            Self::WornOut { lane, retired, superblocks, endurance, pe_cycles, drive_writes } => write!(
                f,
                "preconditioning wears the drive out: after {drive_writes:.3} drive writes lane {} has no room for the \
                 next unit; of its {superblocks} superblocks, {retired} reached the endurance of {endurance} P/E cycles, \
                 of which the drive starts with {pe_cycles}",
                lane.0
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
            Self::Policy { name, fault: PolicyFault { slot, lane, error } } => {
                write!(f, "the policy {name} of {} has failed", slot.key())?;
                if let Some(lane) = lane {
                    write!(f, " in lane {}", lane.0)?;
                }
                write!(f, ": {error}")
            }
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
        self.failure.get_or_insert_with(|| Box::new(Failure::TimeIsOver { end: self.core.end() }));
    }

    /// A policy has failed, or has made a decision that cannot be carried out: the drive fails.
    #[cold]
    pub(super) fn fail_policy(&mut self, fault: PolicyFault) {
        let name = self.policy_name(fault.slot).to_owned();
        self.failure.get_or_insert_with(|| Box::new(Failure::Policy { name, fault }));
    }

    /// The name of the policy of a slot.
    pub(crate) fn policy_name(&self, slot: PolicySlot) -> &str {
        if let Some(name) = self.policies.name(slot) {
            return name;
        }
        match slot {
            PolicySlot::Start => "named by the spec",
            PolicySlot::Streams => self.spec.ftl.streams.policy.name,
            PolicySlot::Victim => self.spec.gc.victim.name,
            PolicySlot::Wear => "static",
            PolicySlot::MapEviction => match self.spec.ftl.map {
                MapSpec::Demand { eviction: Eviction::ReadLevel { .. }, .. } => "read-level",
                MapSpec::Demand { .. } | MapSpec::Page => "lru",
            },
            PolicySlot::Migration => self.spec.migration.policy.name,
            PolicySlot::Sync => self.spec.cache.sync.name,
            PolicySlot::CacheEviction => self.spec.cache.eviction.name,
        }
    }

    /// Preconditioning has found no room in a lane: the drive fails, unless a policy has failed.
    #[cold]
    pub(super) fn wear_out(&mut self, lane: LaneId) {
        self.serve();
        let geometry = self.core.geometry();
        let of_lane = &self.core.flash().superblocks[geometry.superblocks_of(lane)];
        let in_state = |state| of_lane.iter().filter(|superblock| superblock.state == state).count() as u32;
        let failure = Failure::WornOut {
            lane,
            retired: in_state(SuperblockState::Retired),
            superblocks: of_lane.len() as u32 - in_state(SuperblockState::Bad),
            endurance: self.spec.drive.endurance,
            pe_cycles: self.spec.reliability.pe_cycles,
            drive_writes: self.core.sequence() as f64 / f64::from(geometry.logical_units),
        };
        self.failure.get_or_insert_with(|| Box::new(failure));
    }

    /// The shortage of the first lane in which a unit waits for room. If a policy from outside selects the victims, and
    /// selects none of those that GC would gain from, the policy has failed.
    pub(super) fn shortage(&self) -> Failure {
        let mut lanes = (0..self.core.geometry().lanes).map(LaneId);
        let lane = lanes.find(|&lane| self.path.waits_in::<P>(lane)).unwrap_or(LaneId(0));
        let ftl = self.core.ftl();
        let state = &ftl.lanes[lane.index()];
        if let Some(name) = self.policies.name(PolicySlot::Victim) {
            let geometry = self.core.geometry();
            let of_lane = &self.core.flash().superblocks[geometry.superblocks_of(lane)];
            let gains = |superblock: &&Superblock| {
                superblock.state == SuperblockState::Full && superblock.valid < superblock.programmed
            };
            let gainful = of_lane.iter().filter(gains).count();
            if gainful > 0 {
                let error = PolicyError::new(format!(
                    "a write waits for room, and the policy selects none of the {gainful} full superblocks that have \
                     invalid units"
                ));
                let fault = PolicyFault { slot: PolicySlot::Victim, lane: Some(lane), error };
                return Failure::Policy { name: name.to_owned(), fault };
            }
        }
        let needed = ftl.needs.superblocks() * ftl.needs.units_per_superblock;
        let placements = self.core.placements();
        Failure::Shortage {
            lane,
            group: (placements.groups > 1).then(|| placements.group_of(lane)),
            free: state.free.len(),
            reserve: ftl.reserve_superblocks,
            valid: state.valid,
            valid_max: (u64::from(state.usable_superblocks) * ftl.needs.units_per_superblock)
                .saturating_sub(needed),
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
                what.push(format!("{} lanes are being {verb}", count(cause)));
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
