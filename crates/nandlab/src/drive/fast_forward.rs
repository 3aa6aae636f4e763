//! Fast-forward: extrapolates the wear and ageing of a simulated window, without simulating the time that is skipped.
//!
//! The window lies between two points in simulated time. A fast-forward by `times` windows has these effects:
//!
//! - All lanes together get `times` the P/E cycles that they got in the window. A lane's share of these cycles is its
//!   share of all erases simulated so far, and is spread evenly over its active superblocks. A superblock is active if
//!   it is not retired and, unless wear levelling is static, not cold. A superblock counts as cold if it was not erased
//!   while its lane performed twice as many erases as the lane has superblocks.
//! - The capacitor ages by `times` the duration of the window and gets one discharge for each detection that would have
//!   taken place; a detection that would have come due in the skipped time is due now.
//! - All data keeps its age, and each superblock keeps the elapsed part of its refresh interval: in a steady state the
//!   distribution of ages does not change. A superblock that would be due after the fast-forward, because wear has
//!   shortened its interval or because the superblock was due before, gets a random age within its interval.
//!
//! A drive with no operation under way can skip a multiple of the time between two points of its life ([`Lived`]). The
//! scaled clock that the capacitor and DPBD use jumps; the age clock does not. The P/E cycles in the entries of
//! combination pages are raised with those of their superblocks. `nandlab life` uses this; a row of `life.parquet` is
//! one stretch (`report::Stretch`), the change of the statistics since a given time. The option `--against-full`
//! measures the error.

use super::Drive;
use super::mechanisms::each_mechanism;
use super::spec::WearLevelling;
use crate::base::geometry::LaneId;
use crate::base::state::value;
use crate::core::{Mechanism, Offline, Skipped};
use crate::flash::{Superblock, SuperblockState};
use crate::probe::Probe;

/// A superblock that was not erased while its lane performed this many erases per superblock counts as cold.
const COLD_AFTER: u64 = 2;

/// Number of windows that every superblock must still last after a fast-forward.
const WINDOWS_LEFT: f64 = 1.5;

/// The age and the wear of a drive at a point in time.
#[derive(Clone, Debug)]
pub struct Lived {
    /// The scaled clock, in seconds.
    seconds: f64,
    /// By lane: sum of the P/E cycles of its superblocks.
    cycles: Box<[u64]>,
}

/// The distribution of the simulated erases over lanes and superblocks.
#[derive(Debug, Default)]
pub(super) struct Pace {
    /// By superblock: its P/E cycles after the last fast-forward, and the number of erases of its lane since the
    /// superblock's last erase.
    superblocks: Box<[(u32, u64)]>,
    /// By lane: number of simulated erases.
    lanes: Box<[u64]>,
}

impl Lived {
    /// The scaled clock, in seconds.
    pub fn seconds(&self) -> f64 {
        self.seconds
    }
}

impl<P: Probe> Drive<P> {
    /// Age of the drive on the scaled clock, in seconds, skipped time included.
    pub fn lived_s(&self) -> f64 {
        self.power.age_s(self.core.now())
    }

    /// The age and the wear of the drive now.
    pub fn lived(&self) -> Lived {
        let lanes = (0..self.core.geometry().lanes).map(LaneId);
        let cycles = lanes.map(|lane| self.cycles_of(lane)).collect();
        Lived { seconds: self.lived_s(), cycles }
    }

    /// Sum of the P/E cycles of a lane's superblocks.
    fn cycles_of(&self, lane: LaneId) -> u64 {
        self.core.flash().superblocks[self.core.geometry().superblocks_of(lane)]
            .iter()
            .map(|superblock| u64::from(superblock.pe_cycles))
            .sum()
    }

    /// Whether no request, operation or waiting unit is left. Idle-time work may still begin.
    pub fn is_at_rest(&self) -> bool {
        self.outstanding() == 0 && self.core.live_operations() == 0 && self.core.waiters.live() == 0
    }

    /// The largest number of windows to fast-forward after which every superblock still lasts [`WINDOWS_LEFT`] windows
    /// before it reaches its endurance. `gained`: P/E cycles per window, by lane.
    fn fast_forward_max(&self, gained: &[f64]) -> f64 {
        let endurance = self.spec.drive.endurance;
        let of_lane = |lane: LaneId| {
            let superblocks = self.active_superblocks(lane);
            let worst = superblocks
                .iter()
                .map(|&superblock| self.core.flash().superblocks[superblock].pe_cycles)
                .max()
                .unwrap_or(0);
            // One cycle less allows for rounding.
            let left =
                f64::from(endurance.saturating_sub(worst).saturating_sub(1)) * superblocks.len() as f64;
            let gained = gained[lane.index()];
            if gained == 0.0 { f64::INFINITY } else { left / gained - WINDOWS_LEFT }
        };
        (0..self.core.geometry().lanes).map(LaneId).map(of_lane).fold(f64::INFINITY, f64::min)
    }

    /// Fast-forwards the drive by `times` windows, or by fewer if superblocks would get too close to their endurance.
    /// The window is the time from `then` to `until`. Returns the number of windows skipped. The comment at the top of
    /// this file describes the effects.
    ///
    /// # Panics
    /// If the drive is not at rest ([`Drive::is_at_rest`]).
    pub fn fast_forward(&mut self, then: &Lived, until: &Lived, times: f64) -> f64 {
        assert!(self.is_at_rest(), "a drive can be fast-forwarded only while nothing is under way");
        self.update_pace();
        let all: u64 = until.cycles.iter().zip(&then.cycles).map(|(until, then)| until - then).sum();
        let simulated: u64 = self.pace.lanes.iter().sum();
        let share = |&lane: &u64| all as f64 * lane as f64 / simulated.max(1) as f64;
        let by_lane: Vec<f64> = self.pace.lanes.iter().map(share).collect();
        let times = times.min(self.fast_forward_max(&by_lane)).max(0.0);
        let mut gained = vec![0; self.core.geometry().superblocks as usize];
        for lane in (0..self.core.geometry().lanes).map(LaneId) {
            let cycles = libm::round(by_lane[lane.index()] * times) as u64;
            self.share_cycles(lane, cycles, &mut gained);
        }
        let mut offline = Offline::new(&mut self.core);
        offline.wear(&gained);
        self.losses.on_worn(&offline);
        for (pace, superblock) in self.pace.superblocks.iter_mut().zip(&*offline.flash().superblocks) {
            pace.0 = superblock.pe_cycles;
        }
        let seconds = (until.seconds - then.seconds) * times;
        let skipped = Skipped { seconds, cycles: &gained, seed: self.spec.seed };
        each_mechanism!(&mut self, |mechanism| mechanism.skipped(&mut offline, &skipped));
        self.with_power(|power, core, kept| power.bound_budget(core, kept));
        self.began();
        times
    }

    /// Adds the erases since the last fast-forward to [`Pace`].
    fn update_pace(&mut self) {
        if self.pace.superblocks.is_empty() {
            let first = self.spec.reliability.pe_cycles;
            self.pace.superblocks = vec![(first, 0); self.core.geometry().superblocks as usize].into();
            self.pace.lanes = vec![0; self.core.geometry().lanes as usize].into();
        }
        for lane in (0..self.core.geometry().lanes).map(LaneId) {
            let range = self.core.geometry().superblocks_of(lane);
            let (superblocks, pace) =
                (&self.core.flash().superblocks[range.clone()], &mut self.pace.superblocks[range]);
            // The superblocks of a loaded drive may have had other P/E cycles at the start than the spec gives.
            let more = |superblock: &Superblock, pace: &(u32, u64)| {
                u64::from(superblock.pe_cycles.saturating_sub(pace.0))
            };
            let erases =
                superblocks.iter().zip(&*pace).map(|(superblock, pace)| more(superblock, pace)).sum::<u64>();
            for (pace, superblock) in pace.iter_mut().zip(superblocks) {
                pace.1 = if superblock.pe_cycles > pace.0 { 0 } else { pace.1 + erases };
            }
            self.pace.lanes[lane.index()] += erases;
        }
    }

    /// The active superblocks of a lane, over which its wear is spread: all superblocks under static wear levelling,
    /// otherwise those that are not cold. Retired superblocks are never active.
    fn active_superblocks(&self, lane: LaneId) -> Vec<usize> {
        let is_static = self.spec.ftl.wear_levelling == WearLevelling::Static;
        let is_active = |&superblock: &usize| {
            let is_warm = || {
                self.pace.superblocks[superblock].1
                    < COLD_AFTER * u64::from(self.core.geometry().superblocks_in(lane))
            };
            self.core.flash().superblocks[superblock].state != SuperblockState::Retired
                && (is_static || is_warm())
        };
        self.core.geometry().superblocks_of(lane).filter(is_active).collect()
    }

    /// Spreads `cycles` P/E cycles evenly over the active superblocks of a lane; the remainder goes to the least worn
    /// superblocks.
    fn share_cycles(&self, lane: LaneId, cycles: u64, gained: &mut [u32]) {
        let mut superblocks = self.active_superblocks(lane);
        superblocks
            .sort_by_key(|&superblock| (self.core.flash().superblocks[superblock].pe_cycles, superblock));
        let count = superblocks.len().max(1) as u64;
        for (at, &superblock) in superblocks.iter().enumerate() {
            gained[superblock] = (cycles / count) as u32 + u32::from((at as u64) < cycles % count);
        }
    }
}

value! { Pace { superblocks, lanes } }
