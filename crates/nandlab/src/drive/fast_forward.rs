//! Fast-forward: extrapolates the wear and ageing of a simulated window, without simulating the time that is skipped.
//!
//! The window lies between two points in simulated time. A fast-forward by `times` windows has these effects:
//!
//! - All planes together get `times` the P/E cycles that they got in the window. A plane's share of these cycles is its
//!   share of all erases simulated so far, and is spread evenly over its active blocks. A block is active if it is
//!   not retired and, unless wear levelling is static, not cold. A block counts as cold if it was not erased while its
//!   plane performed twice as many erases as the plane has blocks.
//! - The capacitor ages by `times` the duration of the window and gets one discharge for each detection that would have
//!   taken place; a detection that would have come due in the skipped time is due now.
//! - All data keeps its age, and each block keeps the elapsed part of its refresh interval: in a steady state the
//!   distribution of ages does not change. A block that would be due after the fast-forward, because wear has shortened
//!   its interval or because the block was due before, gets a random age within its interval.

use super::Drive;
use super::spec::{DirtyBudget, WearLevelling};
use crate::base::geometry::{BlockId, PlaneId, Ppn};
use crate::base::rng::Stream;
use crate::flash::{Block, BlockState};
use crate::probe::Probe;

/// A block that was not erased while its plane performed this many erases per block counts as cold.
const COLD_AFTER: u64 = 2;

/// Number of windows that every block must still last after a fast-forward.
const WINDOWS_LEFT: f64 = 1.5;

/// The age and the wear of a drive at a point in time.
#[derive(Clone, Debug)]
pub struct Lived {
    /// The scaled clock, in seconds.
    seconds: f64,
    /// By plane: sum of the P/E cycles of its blocks.
    cycles: Box<[u64]>,
}

/// The distribution of the simulated erases over planes and blocks.
#[derive(Debug, Default)]
pub(super) struct Pace {
    /// By block: its P/E cycles after the last fast-forward, and the number of erases of its plane since the block's
    /// last erase.
    blocks: Box<[(u32, u64)]>,
    /// By plane: number of simulated erases.
    planes: Box<[u64]>,
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
        self.power.age_s(self.core.now)
    }

    /// The age and the wear of the drive now.
    pub fn lived(&self) -> Lived {
        let planes = (0..self.core.geometry.planes).map(PlaneId);
        let cycles = planes.map(|plane| self.cycles_of(plane)).collect();
        Lived { seconds: self.lived_s(), cycles }
    }

    /// Sum of the P/E cycles of a plane's blocks.
    fn cycles_of(&self, plane: PlaneId) -> u64 {
        self.core.array.blocks[self.core.geometry.blocks_of(plane)]
            .iter()
            .map(|block| u64::from(block.pe_cycles))
            .sum()
    }

    /// Whether no request, operation or waiting page is left. Idle-time work may still begin.
    pub fn is_at_rest(&self) -> bool {
        self.outstanding() == 0 && self.core.pool.live() == 0 && self.core.waiters.live() == 0
    }

    /// The largest number of windows to fast-forward after which every block still lasts [`WINDOWS_LEFT`] windows
    /// before it reaches its endurance. `gained`: P/E cycles per window, by plane.
    fn fast_forward_max(&self, gained: &[f64]) -> f64 {
        let endurance = self.spec.drive.endurance;
        let of_plane = |plane: PlaneId| {
            let blocks = self.active_blocks(plane);
            let worst =
                blocks.iter().map(|&block| self.core.array.blocks[block].pe_cycles).max().unwrap_or(0);
            // One cycle less allows for rounding.
            let left = f64::from(endurance.saturating_sub(worst).saturating_sub(1)) * blocks.len() as f64;
            let gained = gained[plane.index()];
            if gained == 0.0 { f64::INFINITY } else { left / gained - WINDOWS_LEFT }
        };
        (0..self.core.geometry.planes).map(PlaneId).map(of_plane).fold(f64::INFINITY, f64::min)
    }

    /// Fast-forwards the drive by `times` windows, or by fewer if blocks would get too close to their endurance. The
    /// window is the time from `then` to `until`. Returns the number of windows skipped. The comment at the top of this
    /// file describes the effects.
    ///
    /// # Panics
    /// If the drive is not at rest ([`Drive::is_at_rest`]).
    pub fn fast_forward(&mut self, then: &Lived, until: &Lived, times: f64) -> f64 {
        assert!(self.is_at_rest(), "a drive can be fast-forwarded only while nothing is under way");
        self.update_pace();
        let all: u64 = until.cycles.iter().zip(&then.cycles).map(|(until, then)| until - then).sum();
        let simulated: u64 = self.pace.planes.iter().sum();
        let share = |&plane: &u64| all as f64 * plane as f64 / simulated.max(1) as f64;
        let by_plane: Vec<f64> = self.pace.planes.iter().map(share).collect();
        let times = times.min(self.fast_forward_max(&by_plane)).max(0.0);
        let mut gained = vec![0; self.core.geometry.blocks as usize];
        for plane in (0..self.core.geometry.planes).map(PlaneId) {
            let cycles = libm::round(by_plane[plane.index()] * times) as u64;
            self.share_cycles(plane, cycles, &mut gained);
        }
        for ((block, pace), &more) in
            self.core.array.blocks.iter_mut().zip(&mut self.pace.blocks).zip(&gained)
        {
            block.pe_cycles += more;
            pace.0 = block.pe_cycles;
        }
        self.core.ftl.on_worn(&self.core.geometry, &self.core.array);
        let pages = self.core.geometry.pages_per_block;
        let worn = |base: Ppn| gained[(base.0 / pages) as usize];
        if let Some(partial) = &mut self.schemes.refreshing.partial {
            partial.on_worn(worn);
        }
        let skipped_s = (until.seconds - then.seconds) * times;
        let is_measured = self.spec.cache.dirty_budget == DirtyBudget::Measured;
        let every_ns = self.spec.capacitor.detect_every_ns;
        let detections = if is_measured { (skipped_s * 1e9 / every_ns.ns() as f64) as u32 } else { 0 };
        self.power.skip(skipped_s, detections);
        self.power.set_clock(&mut self.core);
        self.spread_overdue();
        self.schemes.refreshing.refresh.begin(&mut self.core);
        times
    }

    /// Adds the erases since the last fast-forward to [`Pace`].
    fn update_pace(&mut self) {
        if self.pace.blocks.is_empty() {
            let first = self.spec.reliability.pe_cycles;
            self.pace.blocks = vec![(first, 0); self.core.geometry.blocks as usize].into();
            self.pace.planes = vec![0; self.core.geometry.planes as usize].into();
        }
        for plane in (0..self.core.geometry.planes).map(PlaneId) {
            let range = self.core.geometry.blocks_of(plane);
            let (blocks, pace) = (&self.core.array.blocks[range.clone()], &mut self.pace.blocks[range]);
            // The blocks of a loaded drive may have had other P/E cycles at the start than the spec gives.
            let more = |block: &Block, pace: &(u32, u64)| u64::from(block.pe_cycles.saturating_sub(pace.0));
            let erases = blocks.iter().zip(&*pace).map(|(block, pace)| more(block, pace)).sum::<u64>();
            for (pace, block) in pace.iter_mut().zip(blocks) {
                pace.1 = if block.pe_cycles > pace.0 { 0 } else { pace.1 + erases };
            }
            self.pace.planes[plane.index()] += erases;
        }
    }

    /// The active blocks of a plane, over which its wear is spread: all blocks under static wear levelling, otherwise
    /// those that are not cold. Retired blocks are never active.
    fn active_blocks(&self, plane: PlaneId) -> Vec<usize> {
        let is_static = self.spec.ftl.wear_levelling == WearLevelling::Static;
        let is_active = |&block: &usize| {
            let is_warm =
                || self.pace.blocks[block].1 < COLD_AFTER * u64::from(self.core.geometry.blocks_in(plane));
            self.core.array.blocks[block].state != BlockState::Retired && (is_static || is_warm())
        };
        self.core.geometry.blocks_of(plane).filter(is_active).collect()
    }

    /// Spreads `cycles` P/E cycles evenly over the active blocks of a plane; the remainder goes to the least worn
    /// blocks.
    fn share_cycles(&self, plane: PlaneId, cycles: u64, gained: &mut [u32]) {
        let mut blocks = self.active_blocks(plane);
        blocks.sort_by_key(|&block| (self.core.array.blocks[block].pe_cycles, block));
        let count = blocks.len().max(1) as u64;
        for (at, &block) in blocks.iter().enumerate() {
            gained[block] = (cycles / count) as u32 + u32::from((at as u64) < cycles % count);
        }
    }

    /// Gives a random age within its interval to each block that would be due now, for example because wear has
    /// shortened the interval. Otherwise all these blocks would be due at once.
    fn spread_overdue(&mut self) {
        if !self.schemes.refreshing.refresh.has_begun() {
            return;
        }
        let now = self.core.physics.age_clock.at(self.core.now);
        for block in (0..self.core.geometry.blocks).map(BlockId) {
            let state = self.core.array.block(block);
            let interval_s = self.schemes.refreshing.refresh.interval_s(state.pe_cycles);
            if state.programmed == 0
                || now.later_s_than(self.schemes.refreshing.refresh.since(block)) < interval_s
            {
                continue;
            }
            let seed = self.spec.seed ^ u64::from(block.0) << 32 ^ u64::from(state.pe_cycles);
            let age_s = (Stream::new(seed, "fast-forward").unit() * f64::from(interval_s)) as u32;
            let since = now.minus_s(age_s);
            self.schemes.refreshing.refresh.set_since(block, since);
            let programmed = state.programmed;
            for page in 0..programmed {
                self.core.array.correct_since(self.core.geometry.page(block, page), since);
            }
        }
    }
}
