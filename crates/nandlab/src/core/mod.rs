//! The core: the state and the operations that all mechanisms of the controller share. The core itself is no mechanism.
//!
//! The core holds the flash array, the FTL's state, the dies with their queues, the ages of the data, the sequence
//! numbers of writes, the clocks, the wakes, and the state that mechanisms share with each other. A mechanism keeps its
//! own state and counters, takes the core by reference, reads it through the views of `core/view.rs`, and changes flash
//! only through the verbs of the core: `read`, `program`, `copy_back`, `erase`. Array, FTL and operations are private to
//! the core. What happens outside simulated time goes through [`Offline`].
//!
//! The verbs:
//!
//! | verb | effect |
//! |---|---|
//! | `Core::program` | allocates the next unit of a stream (or uses a unit that was allocated before); writes the unit's OOB; maps the unit; pins the superblock of the unit that is replaced; adds the unit to a program; pushes `Wake::Space` if a superblock was opened |
//! | `Core::copy_back` | allocates the next programming unit of a stream to pages of the same planes; writes the OOBs; pins the superblock of the sources; queues the copyback. The map changes when the copyback ends |
//! | `Core::read` | pins the superblock; computes the read level that the unit needs and the level of the first try; queues the read. A linked unit is two sub-reads |
//! | `Core::erase` | queues the erase of a superblock without valid units and pins |
//!
//! The verbs only queue. After all operations of an event or of a request have been queued, and again after each wake,
//! `Core::start_dies` starts the free dies that have received work.

mod copy_back;
mod gathering;
mod inside;
mod job;
mod joined;
mod known;
mod levels;
mod map;
mod mechanism;
mod offline;
mod operations;
mod parts;
pub mod placement;
mod policies;
mod program;
mod read;
mod read_counts;
mod sections;
mod space;
#[cfg(test)]
pub(crate) mod testing;
mod victim_times;
mod view;
mod waiters;
mod wake;

use crate::base::state::{state, value};
pub(crate) use copy_back::CopyBack;
pub(crate) use gathering::Gathering;
pub use gathering::UnitsStats;
pub(crate) use inside::Component;
use inside::Inside;
pub(crate) use job::{NextJob, Refreshed};
pub(crate) use known::KnownErrors;
pub use levels::ReadLevels;
pub(crate) use map::Map;
pub(crate) use mechanism::{BeforeLoss, Mechanism, Rest, STILL_WAITS, Skipped};
pub(crate) use offline::{FlashState, Offline, SavedSuperblock};
pub use operations::Operations;
pub use parts::Parts;
pub use placement::PlacementStats;
pub(crate) use program::{Destination, Maps, Program, Programmed, Queued};
pub(crate) use read::Read;
pub(crate) use read_counts::ReadCounts;
pub use sections::SnapshotError;
pub(crate) use sections::{Section, SectionKind, SectionReader, SectionWriter};
pub(crate) use space::{Emptied, Room, Space, Work};
pub(crate) use victim_times::VictimTimes;
pub use waiters::{Queue, Waiter, WaiterId, Waiters, Wants};
pub(crate) use wake::{Wake, Wakes};

use crate::base::geometry::{Geometry, LaneId, SuperblockId};
use crate::base::units::Time;
use crate::flash::{AgeClock, Array, Ecc, InitialAges, Keeps, PageVariation, Reliability, Shape};
use crate::ftl::Ftl;
use crate::ftl::placement::Placements;
use crate::probe::Probe;
use crate::sched::{Agenda, Class, CopybackGap, Device, Scheduler, Timing, Transactions};

/// The configuration of the core of a drive.
#[derive(Debug)]
pub(crate) struct Config {
    pub(crate) geometry: Geometry,
    pub(crate) timing: Timing,
    pub(crate) scheduler: Scheduler,
    pub(crate) multi_plane: bool,
    /// Whether units are copied back.
    pub(crate) copies_back: bool,
    /// The host reads between the sense and the program of a copyback; `None`: no reads.
    pub(crate) copyback_gap: Option<CopybackGap>,
    pub(crate) ecc: Ecc,
    pub(crate) reliability: Reliability,
    pub(crate) variation: Option<PageVariation>,
    pub(crate) age_clock: AgeClock,
    pub(crate) initial_ages: InitialAges,
    /// P/E cycles of every superblock at the start of the run.
    pub(crate) pe_cycles: u32,
    /// P/E cycles at which a superblock retires.
    pub(crate) endurance: u32,
    /// Whether the OOB has sequence numbers.
    pub(crate) keeps_sequences: bool,
    /// Placement handles and reclaim groups.
    pub(crate) placements: Placements,
    /// Foreground GC starts in a lane when less than this share of the units that can be free for the host is free.
    pub(crate) foreground_free: f64,
    /// Whether a foreground cleaning has its dies to itself (`gc.foreground = "blocking"`).
    pub(crate) blocks_dies: bool,
    /// Whether map entries carry the read levels of their units.
    pub(crate) levels_in_entries: bool,
    /// Whether no read level is kept for translation pages, so that their reads start at level 1.
    pub(crate) forgets_translation_levels: bool,
    /// Whether a mechanism keeps the known errors of units that are read often.
    pub(crate) knows_errors: bool,
    /// Whether a mechanism moves part of a unit's data into another unit; the errors from before are known then.
    pub(crate) has_parts: bool,
    /// RBER that every program in place adds to the units of its superblock.
    pub(crate) reprogram_error: f64,
    /// Number of host reads from which on a unit counts as often read; `None`: no mechanism needs the counts.
    pub(crate) hot_reads: Option<u32>,
    /// The class of the operations of refresh.
    pub(crate) refresh_class: Class,
}

/// The models of bit errors and of their correction.
#[derive(Debug)]
pub(crate) struct Physics {
    pub(crate) ecc: Ecc,
    pub(crate) reliability: Reliability,
    /// The factor of each page's RBER; `None` without variation from page to page.
    pub(crate) variation: Option<PageVariation>,
    pub(crate) age_clock: AgeClock,
    pub(crate) initial_ages: InitialAges,
    /// By unit, the errors that an earlier read has found, or that are corrected in part of its data.
    pub(crate) known: KnownErrors,
    /// RBER that every program in place adds to the units of its superblock.
    pub(crate) reprogram_error: f64,
}

/// The state of the drive that every mechanism has to respect.
#[derive(Clone, Copy, Debug)]
pub(crate) struct State {
    /// Whether the capacitor is charged, so that it would save the data in RAM, or the drive has no capacitor.
    pub(crate) is_charged: bool,
    /// Whether the capacitor is being measured, so that the drive does as little other work as possible.
    pub(crate) is_draining: bool,
    /// Whether power loss may tear a program under way and destroy older data of its wordline. Units that a job has
    /// copied are then safe only once their wordlines are complete.
    pub(crate) is_guarded: bool,
    /// Whether all dirty units have to be written back, so that the capacitor can be measured.
    pub(crate) is_syncing: bool,
    /// Whether the host has sent no request yet, or none for the time `gc.idle_after`.
    pub(crate) is_idle: bool,
    /// Whether power has failed and has not returned.
    pub(crate) is_off: bool,
}

/// The state that the mechanisms share, and the verbs that change flash. Its fields are private to the core, except two:
/// the store of what waits, and the probe, to which mechanisms report.
#[derive(Debug)]
pub(crate) struct Core<P: Probe> {
    geometry: Geometry,
    now: Time,
    /// The last time that can be simulated.
    end: Time,
    array: Array,
    ftl: Ftl,
    device: Device,
    /// Flash transactions that are queued or under way.
    pool: Transactions,
    agenda: Agenda,
    /// The number of the clock of idleness.
    idle_clock: u32,
    gathering: Gathering,
    /// Units of requests and of the write cache that wait for a map entry, room, a slot or the dirty budget.
    pub(crate) waiters: Waiters,
    /// Messages about changes to which a mechanism still has to react.
    wakes: Wakes,
    /// The parts of the controller that are at work now; recorded in debug builds only.
    inside: Inside,
    state: State,
    room: Room,
    physics: Physics,
    levels: ReadLevels,
    read_counts: ReadCounts,
    /// By unit, the other unit that has part of its data.
    parts: Parts,
    /// Whether units have more state than an LPN and an age stamp: sequence numbers, errors that copybacks have added,
    /// parts or read counts.
    has_unit_state: bool,
    /// The sequence number of the newest write or deallocation.
    sequence: u64,
    operations: Operations,
    /// What is counted by placement handle; `None` without handles.
    placement: Option<Box<PlacementStats>>,
    /// Superblocks that the host fills no further, with the number of their units that are allocated: each is closed when
    /// these have been programmed.
    abandoned: Vec<(SuperblockId, u32)>,
    /// The class of the operations of refresh.
    refresh_class: Class,
    pub(crate) probe: P,
}

impl<P: Probe> Core<P> {
    /// The core of a fresh drive.
    pub(crate) fn new(config: Config, ftl: impl FnOnce(&Geometry, &Array) -> Ftl, probe: P) -> Self {
        let Config { geometry, timing, scheduler, multi_plane, copyback_gap, .. } = config;
        let Config { ecc, reliability, age_clock, .. } = config;
        let end = age_clock.end();
        let ages = ecc.has_levels() && !reliability.is_none();
        let copied = ages && config.copies_back && reliability.propagates();
        let units_per_age = timing.shapes().units_per_age(config.copies_back, config.has_parts);
        let placements = config.placements;
        let keeps = Keeps {
            sequences: config.keeps_sequences,
            ages,
            copied,
            units_per_age,
            handles: placements.is_on(),
            reclaim_units: placements.reclaim_unit > 1,
        };
        let array = Array::new(&geometry, timing.shapes().clone(), config.pe_cycles, keeps);
        let ftl = ftl(&geometry, &array);
        let units = |is_kept: bool| if is_kept { geometry.units } else { 0 };
        // On one random drive with placement handles, reserved channels and observed ones differed by a transfer. Why is
        // not known, so that drives with handles do not reserve channels.
        let sees_phases = config.keeps_sequences || placements.is_on();
        let device = Device::new(&geometry, timing, scheduler, multi_plane, copyback_gap, sees_phases);
        let idle_clock = device.clocks() + u32::from(ecc.levels());
        Self {
            agenda: Agenda::new(idle_clock as usize + 6),
            idle_clock,
            device,
            now: Time::START,
            end,
            pool: Transactions::default(),
            gathering: Gathering::new(geometry.lanes, array.shapes(), ftl.streams.count()),
            waiters: Waiters::default(),
            wakes: Wakes::new(geometry.lanes),
            inside: Inside::default(),
            state: State {
                is_charged: true,
                is_draining: false,
                is_guarded: false,
                is_syncing: false,
                is_idle: true,
                is_off: false,
            },
            room: Room::new(geometry.lanes, config.foreground_free, config.blocks_dies, config.endurance),
            levels: ReadLevels::new(
                &ecc,
                geometry.logical_units,
                geometry.superblocks,
                config.levels_in_entries,
                config.forgets_translation_levels,
            ),
            read_counts: ReadCounts::new(config.hot_reads, geometry.units),
            parts: Parts::new(units(config.has_parts)),
            has_unit_state: config.keeps_sequences
                || copied
                || config.has_parts
                || config.hot_reads.is_some(),
            sequence: 0,
            operations: Operations::default(),
            placement: placements.is_on().then(|| Box::new(PlacementStats::new(&placements))),
            abandoned: Vec::new(),
            refresh_class: config.refresh_class,
            physics: Physics {
                ecc,
                reliability,
                age_clock,
                variation: config.variation,
                initial_ages: config.initial_ages,
                known: KnownErrors::new(units(config.knows_errors || config.has_parts)),
                reprogram_error: config.reprogram_error,
            },
            array,
            ftl,
            probe,
            geometry,
        }
    }

    /// The shape of a superblock.
    #[inline(always)]
    pub(crate) fn shape(&self, superblock: SuperblockId) -> &Shape {
        self.array.shape(superblock)
    }

    /// The shape that every free superblock has. Questions about a lane or the drive as a whole ask this shape.
    #[inline(always)]
    pub(crate) fn first_shape(&self) -> &Shape {
        self.array.shapes().first()
    }

    /// Sets the state that every mechanism has to respect.
    pub(crate) fn set_state(&mut self, state: State) {
        self.state = state;
    }

    /// Simulated time moves on.
    #[inline(always)]
    pub(crate) fn advance_to(&mut self, time: Time) {
        self.now = time;
    }

    /// The time of the next event, and its clock.
    #[inline(always)]
    pub(crate) fn next_clock(&mut self) -> (Time, u32) {
        self.agenda.first()
    }

    /// The next wake, in the order in which they were queued.
    #[inline(always)]
    pub(crate) fn next_wake(&mut self) -> Option<Wake> {
        self.wakes.pop()
    }

    /// Queues [`Wake::Space`], which every write that finds no room does.
    #[inline(always)]
    pub(crate) fn wake_space(&mut self, lane: LaneId) {
        self.wakes.push_space(lane);
    }

    /// Bytes of the arrays of flash, map and device, and of what the core keeps by unit and by superblock.
    pub(crate) fn bytes(&self) -> u64 {
        let by_unit = self.read_counts.bytes() + self.parts.bytes() + self.physics.known.bytes();
        self.array.bytes() + self.ftl.bytes() + self.device.bytes() + self.levels.bytes() + by_unit
    }

    /// Queues a wake, which the event loop serves before the next event.
    #[inline]
    pub(crate) fn wake(&mut self, wake: Wake) {
        self.wakes.push(wake);
    }

    // The order of the agenda's clocks: those of the device, one for the decoder of each read level, idleness, the write
    // cache's DRAM, the link, the controller, power, refresh.
    #[inline(always)]
    pub(crate) fn idle_clock(&self) -> u32 {
        self.idle_clock
    }

    /// The clock of the decoder of the first read level.
    #[inline(always)]
    pub(crate) fn first_decoder_clock(&self) -> u32 {
        self.device.clocks()
    }

    #[inline(always)]
    pub(crate) fn dram_clock(&self) -> u32 {
        self.idle_clock() + 1
    }

    #[inline(always)]
    pub(crate) fn link_clock(&self) -> u32 {
        self.idle_clock() + 2
    }

    #[inline(always)]
    pub(crate) fn controller_clock(&self) -> u32 {
        self.idle_clock() + 3
    }

    #[inline(always)]
    pub(crate) fn power_clock(&self) -> u32 {
        self.idle_clock() + 4
    }

    #[inline(always)]
    pub(crate) fn refresh_clock(&self) -> u32 {
        self.idle_clock() + 5
    }

    /// Sets a clock of the agenda.
    #[inline(always)]
    pub(crate) fn set_clock(&mut self, clock: u32, time: Time) {
        self.agenda.set(clock, time);
    }
}

value! { State { is_charged, is_draining, is_guarded, is_syncing, is_idle, is_off } }

state! {
    Physics { initial_ages, known }
    fixed { ecc, reliability, variation, age_clock, reprogram_error }
}

state! {
    Core<P> where [P: Probe] {
        now, array, ftl, device, pool, agenda, gathering, waiters, wakes, state, room, physics, levels, read_counts, parts,
        sequence, operations, abandoned,
    }
    parts { placement }
    fixed { geometry, end, idle_clock, inside, has_unit_state, refresh_class, probe }
}
