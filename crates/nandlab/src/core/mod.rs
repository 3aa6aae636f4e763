//! The core: what every mechanism of the controller works with, and no mechanism of its own.
//!
//! It holds the flash array, the FTL's state, the dies with their queues, the ages of the data, the sequence of writes, the
//! clocks, the wakes, and what mechanisms let each other know. A mechanism keeps its own state and counters and takes the core
//! by reference; it changes flash through the verbs of the core alone: `read`, `program`, `copy_back`, `erase`.

mod at_once;
mod inside;
mod job;
mod known;
mod levels;
mod map;
mod operations;
mod parts;
mod program;
mod read;
mod read_counts;
mod space;
#[cfg(test)]
pub(crate) mod testing;
mod waiters;
mod wake;

pub(crate) use inside::{Inside, Part};
pub(crate) use job::{NextJob, Refreshed};
pub(crate) use known::KnownErrors;
pub use levels::ReadLevels;
pub(crate) use map::Map;
pub use operations::Operations;
pub use parts::Parts;
pub(crate) use program::{CopyBack, Maps, Program, Queued, To};
pub(crate) use read::Read;
pub(crate) use read_counts::ReadCounts;
pub(crate) use space::{Room, Space, Work};
pub use waiters::{Queue, Waiter, WaiterId, Waiters, Wants};
pub(crate) use wake::{Wake, Wakes};

use crate::base::geometry::Geometry;
use crate::base::units::Time;
use crate::flash::{AgeClock, Array, Ecc, InitialAges, Keeps, Reliability};
use crate::ftl::Ftl;
use crate::probe::Probe;
use crate::sched::{Agenda, Device, Scheduler, Timing, Transactions};

/// What the core of a drive is built from.
#[derive(Debug)]
pub(crate) struct Config {
    pub(crate) geometry: Geometry,
    pub(crate) timing: Timing,
    pub(crate) scheduler: Scheduler,
    pub(crate) multi_plane: bool,
    pub(crate) ecc: Ecc,
    pub(crate) reliability: Reliability,
    pub(crate) age_clock: AgeClock,
    pub(crate) initial_ages: InitialAges,
    /// P/E cycles of every block at the start, and those at which a block retires.
    pub(crate) pe_cycles: u32,
    /// See `pe_cycles`.
    pub(crate) endurance: u32,
    /// The OOB has sequence numbers.
    pub(crate) is_stamped: bool,
    /// Free share of a plane below which GC has to make room.
    pub(crate) foreground_free: f64,
    /// Map entries carry the read levels of their pages.
    pub(crate) levels_in_entries: bool,
    /// Some mechanism knows errors of pages from before.
    pub(crate) knows_errors: bool,
    /// Some mechanism puts parts of pages elsewhere.
    pub(crate) has_parts: bool,
    /// RBER that every program in place adds to the pages of its block.
    pub(crate) reprogram_error: f64,
    /// Host reads from which on a page is read often, where somebody asks for that.
    pub(crate) hot_reads: Option<u32>,
}

/// How errors come, and what decodes them.
#[derive(Debug)]
pub(crate) struct Physics {
    pub(crate) ecc: Ecc,
    pub(crate) reliability: Reliability,
    pub(crate) age_clock: AgeClock,
    pub(crate) initial_ages: InitialAges,
    /// Errors that are known from before.
    pub(crate) known: KnownErrors,
    /// RBER that every program in place adds to the pages of its block.
    pub(crate) reprogram_error: f64,
}

/// What every mechanism has to respect now.
#[derive(Clone, Copy, Debug)]
pub(crate) struct State {
    /// The capacitor would save what is in RAM: it is charged, or there is none.
    pub(crate) is_charged: bool,
    /// The capacitor is being measured: as little else as can be.
    pub(crate) is_draining: bool,
    /// A program under way may be torn, and its wordline with it: what a job has copied counts only once its wordlines are
    /// whole.
    pub(crate) is_guarded: bool,
    /// All that is dirty has to be written back, to measure the capacitor.
    pub(crate) is_syncing: bool,
    /// The host has asked for nothing for some time.
    pub(crate) is_idle: bool,
}

/// See the module.
#[derive(Debug)]
pub(crate) struct Core<P: Probe> {
    pub(crate) geometry: Geometry,
    pub(crate) now: Time,
    /// The last simulated time.
    pub(crate) end: Time,
    pub(crate) array: Array,
    pub(crate) ftl: Ftl,
    pub(crate) device: Device,
    /// Flash transactions that are queued or under way.
    pub(crate) pool: Transactions,
    pub(crate) agenda: Agenda,
    /// Pages of requests and of the write cache that cannot go on yet.
    pub(crate) waiters: Waiters,
    /// What has to be looked at again.
    pub(crate) wakes: Wakes,
    /// Who is at work.
    pub(crate) inside: Inside,
    pub(crate) state: State,
    pub(crate) room: Room,
    pub(crate) physics: Physics,
    pub(crate) levels: ReadLevels,
    pub(crate) read_counts: ReadCounts,
    /// Pages whose data is in two places.
    pub(crate) parts: Parts,
    /// The sequence number of the newest write or deallocation.
    pub(crate) sequence: u64,
    pub(crate) operations: Operations,
    pub(crate) probe: P,
}

impl<P: Probe> Core<P> {
    /// The core of a fresh drive.
    pub(crate) fn new(config: Config, ftl: impl FnOnce(&Geometry, &Array) -> Ftl, probe: P) -> Self {
        let Config { geometry, timing, scheduler, multi_plane, ecc, reliability, age_clock, .. } = config;
        let end = age_clock.end();
        let keeps = Keeps { sequences: config.is_stamped, ages: ecc.has_levels() && !reliability.is_none() };
        let array = Array::new(&geometry, config.pe_cycles, keeps);
        let ftl = ftl(&geometry, &array);
        let pages = |is_kept: bool| if is_kept { geometry.pages } else { 0 };
        Self {
            device: Device::new(&geometry, timing, scheduler, multi_plane),
            now: Time::START,
            end,
            pool: Transactions::default(),
            agenda: Agenda::new(geometry.dies as usize + usize::from(ecc.levels()) + 5),
            waiters: Waiters::default(),
            wakes: Wakes::new(geometry.planes),
            inside: Inside::default(),
            state: State {
                is_charged: true,
                is_draining: false,
                is_guarded: false,
                is_syncing: false,
                is_idle: true,
            },
            room: Room::new(geometry.planes, config.foreground_free, config.endurance),
            levels: ReadLevels::new(&ecc, &geometry, config.levels_in_entries),
            read_counts: ReadCounts::new(config.hot_reads, &geometry),
            parts: Parts::new(pages(config.has_parts)),
            sequence: 0,
            operations: Operations::default(),
            physics: Physics {
                ecc,
                reliability,
                age_clock,
                initial_ages: config.initial_ages,
                known: KnownErrors::new(pages(config.knows_errors)),
                reprogram_error: config.reprogram_error,
            },
            array,
            ftl,
            probe,
            geometry,
        }
    }

    /// Leaves word of what has to be looked at again.
    #[inline]
    pub(crate) fn wake(&mut self, wake: Wake) {
        self.wakes.push(wake);
    }

    // Clocks: the dies, a decoder for each read level, idleness, the write cache's DRAM, the link, power, refresh.
    #[inline(always)]
    pub(crate) fn idle_clock(&self) -> u32 {
        self.geometry.dies + u32::from(self.physics.ecc.levels())
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
    pub(crate) fn power_clock(&self) -> u32 {
        self.idle_clock() + 3
    }

    #[inline(always)]
    pub(crate) fn refresh_clock(&self) -> u32 {
        self.idle_clock() + 4
    }

    /// Sets a clock of the agenda.
    #[inline(always)]
    pub(crate) fn set_clock(&mut self, clock: u32, time: Time) {
        self.agenda.set(clock, time);
    }
}
