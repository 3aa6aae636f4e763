//! The core: what every mechanism of the controller works with, and no mechanism of its own.
//!
//! It holds the flash array, the FTL's state, the dies with their queues, the ages of the data, the sequence of writes, the
//! clocks and the counters. A mechanism keeps its own state and takes the core by reference; it changes flash through the
//! verbs of the core alone: `read`, `program`, `copy_back`, `erase`.

mod at_once;
mod inside;
mod known;
mod levels;
mod program;
mod read;
mod read_counts;
mod space;
mod waiters;
mod wake;

pub(crate) use inside::{Inside, Part};
pub(crate) use known::KnownErrors;
pub use levels::ReadLevels;
pub(crate) use program::{CopyBack, Maps, Program, Queued, To};
pub(crate) use read::Read;
pub(crate) use read_counts::ReadCounts;
pub(crate) use space::{Space, Work};
pub use waiters::{Queue, Waiter, WaiterId, Waiters, Wants};
pub(crate) use wake::{Wake, Wakes};

use crate::base::geometry::Geometry;
use crate::base::units::Time;
use crate::flash::{AgeClock, Array, Ecc, InitialAges, Keeps, Reliability};
use crate::ftl::Ftl;
use crate::probe::Probe;
use crate::sched::{Agenda, Device, Slot, Timing, Transactions};
use crate::spec::Spec;
use crate::stats::Stats;
use std::collections::VecDeque;

/// See the module.
#[derive(Debug)]
pub(crate) struct Core<P: Probe> {
    pub(crate) geometry: Geometry,
    pub(crate) now: Time,
    pub(crate) array: Array,
    pub(crate) ftl: Ftl,
    pub(crate) device: Device,
    /// Flash transactions that are queued or under way.
    pub(crate) pool: Transactions,
    /// Pages of requests and of the write cache that cannot go on yet.
    pub(crate) waiters: Waiters,
    /// By plane, what its background job has to do with its space.
    pub(crate) works: Box<[Work]>,
    /// By plane, what else there is to say of its space.
    pub(crate) spaces: Box<[Space]>,
    /// Free share of a plane below which GC has to make room.
    foreground_free: f64,
    /// P/E cycles at which a block retires.
    pub(crate) endurance: u32,
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
    /// Who is at work.
    pub(crate) inside: Inside,
    /// What has to be looked at again.
    pub(crate) wakes: Wakes,
    /// By read level, pages that have left their die and are being decoded, in the order in which they will be done.
    pub(crate) decoding: Box<[VecDeque<(Time, Slot)>]>,
    pub(crate) agenda: Agenda,
    pub(crate) ecc: Ecc,
    pub(crate) reliability: Reliability,
    pub(crate) age_clock: AgeClock,
    /// The last simulated time.
    pub(crate) end: Time,
    pub(crate) initial_ages: InitialAges,
    pub(crate) levels: ReadLevels,
    /// Errors that are known from before.
    pub(crate) known: KnownErrors,
    /// RBER that every program in place adds to the pages of its block.
    reprogram_error: f64,
    pub(crate) read_counts: ReadCounts,
    /// A flush has written pages to planes that are not theirs.
    pub(crate) has_displaced: bool,
    /// The sequence number of the newest write or deallocation.
    pub(crate) sequence: u64,
    pub(crate) stats: Stats,
    pub(crate) probe: P,
}

impl<P: Probe> Core<P> {
    /// The core of a fresh drive.
    pub(crate) fn new(spec: &Spec, probe: P) -> Self {
        let geometry = Geometry::new(&spec.drive);
        let ecc = Ecc::new(&spec.ecc);
        let reliability = Reliability::new(&spec.reliability);
        let age_clock = AgeClock::new(spec.reliability.clock_scale);
        let end = age_clock.end();
        let sequences = P::STAMPED || spec.models_power_loss();
        let keeps = Keeps { sequences, ages: ecc.has_levels() && !reliability.is_none() };
        let array = Array::new(&geometry, spec.reliability.pe_cycles, keeps);
        let ftl = Ftl::new(spec, &geometry, &array, P::STAMPED);
        let timing = Timing::new(&spec.timing, &spec.ecc, &geometry);
        Self {
            device: Device::new(&geometry, timing, spec.timing.scheduler, spec.timing.multi_plane),
            now: Time::START,
            pool: Transactions::default(),
            waiters: Waiters::default(),
            works: vec![Work::default(); geometry.planes as usize].into(),
            spaces: vec![Space::default(); geometry.planes as usize].into(),
            foreground_free: spec.gc.foreground_free,
            endurance: spec.drive.endurance,
            is_charged: true,
            is_draining: false,
            is_guarded: false,
            is_syncing: false,
            is_idle: true,
            inside: Inside::default(),
            wakes: Wakes::new(geometry.planes),
            decoding: vec![VecDeque::new(); usize::from(ecc.levels())].into(),
            agenda: Agenda::new(geometry.dies as usize + usize::from(ecc.levels()) + 5),
            levels: ReadLevels::new(&ecc, &geometry, ftl.demand.is_some()),
            known: KnownErrors::new(if spec.refresh.policy.knows_errors() { geometry.pages } else { 0 }),
            reprogram_error: spec.refresh.policy.in_place().map_or(0.0, |fcr| fcr.reprogram_error),
            read_counts: ReadCounts::new(spec, &geometry),
            age_clock,
            end,
            initial_ages: InitialAges::new(&spec.reliability.retention, spec.seed),
            has_displaced: false,
            sequence: 0,
            stats: Stats::new(spec, &geometry, end),
            array,
            ftl,
            ecc,
            reliability,
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
        self.geometry.dies + self.decoding.len() as u32
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
