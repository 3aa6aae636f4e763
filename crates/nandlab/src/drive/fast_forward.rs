//! Fast-forward: a drive lives on as it has lived lately, without that being simulated.
//!
//! Between two moments a drive has worn, and time has passed. To go on `times` as long means:
//!
//! - all planes together get `times` the P/E cycles that they have got, each its share of all that was simulated so far,
//!   spread evenly over the blocks that take part: all of them under static wear levelling, else those that are not cold,
//!   which is what has not been erased while its plane had twice as many erases as it has blocks;
//! - the capacitor gets older by `times` the time, and is as often emptied as it would have been measured; a detection
//!   that would have been due is due now;
//! - all data keeps its age, and each block its place in its refresh interval: in a steady state there is always as much
//!   data of each age. A block that is due now because the interval has become shorter is somewhere in its interval.

use super::Drive;
use super::spec::{DirtyBudget, WearLevelling};
use crate::base::geometry::{BlockId, PlaneId, Ppn};
use crate::base::rng::Stream;
use crate::flash::{Block, BlockState};
use crate::probe::Probe;

/// Erases of its plane, in its blocks, after which a block that none of them was of is cold.
const COLD_AFTER: u64 = 2;

/// Windows of which each block has to be capable after a fast-forward.
const LEFT: f64 = 1.5;

/// What a drive has lived through, at a moment.
#[derive(Clone, Debug)]
pub struct Lived {
    /// Seconds on the scaled clock.
    seconds: f64,
    /// P/E cycles of each plane's blocks, added up.
    cycles: Box<[u64]>,
}

/// How the wear has been spread, in what was simulated.
#[derive(Debug, Default)]
pub(super) struct Pace {
    /// By block, its P/E cycles after the last fast-forward, and the erases of its plane since its own last one.
    blocks: Box<[(u32, u64)]>,
    /// By plane, all erases.
    planes: Box<[u64]>,
}

impl Lived {
    /// Seconds on the scaled clock.
    pub fn seconds(&self) -> f64 {
        self.seconds
    }
}

impl<P: Probe> Drive<P> {
    /// Seconds on the scaled clock that the drive has lived through, the skipped ones included.
    pub fn lived_s(&self) -> f64 {
        self.power.age_s(self.core.now)
    }

    /// What the drive has lived through until now.
    pub fn lived(&self) -> Lived {
        let planes = (0..self.core.geometry.planes).map(PlaneId);
        let cycles = planes.map(|plane| self.cycles_of(plane)).collect();
        Lived { seconds: self.lived_s(), cycles }
    }

    fn cycles_of(&self, plane: PlaneId) -> u64 {
        self.core.array.blocks[self.core.geometry.blocks_of(plane)]
            .iter()
            .map(|block| u64::from(block.pe_cycles))
            .sum()
    }

    /// Whether nothing is under way. Idle-time work may still be to come.
    pub fn is_at_rest(&self) -> bool {
        self.outstanding() == 0 && self.core.pool.live() == 0 && self.core.waiters.live() == 0
    }

    /// How many times the drive can get the P/E cycles that its planes have `gained`, so that no block reaches its endurance
    /// when it gets as many once more, and a half of it.
    fn fast_forward_max(&self, gained: &[f64]) -> f64 {
        let endurance = self.spec.drive.endurance;
        let of_plane = |plane: PlaneId| {
            let blocks = self.taking_part(plane);
            let worst =
                blocks.iter().map(|&block| self.core.array.blocks[block].pe_cycles).max().unwrap_or(0);
            // One less for the rounding.
            let left = f64::from(endurance.saturating_sub(worst).saturating_sub(1)) * blocks.len() as f64;
            let gained = gained[plane.index()];
            if gained == 0.0 { f64::INFINITY } else { left / gained - LEFT }
        };
        (0..self.core.geometry.planes).map(PlaneId).map(of_plane).fold(f64::INFINITY, f64::min)
    }

    /// Lives on `times` as long as from `then` to `until`, as the module says, or until blocks are about to reach their
    /// endurance; returns how many times it was.
    ///
    /// # Panics
    /// When something is under way ([`Drive::is_at_rest`]).
    pub fn fast_forward(&mut self, then: &Lived, until: &Lived, times: f64) -> f64 {
        assert!(self.is_at_rest(), "a drive can be fast-forwarded only while nothing is under way");
        self.keep_pace();
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
        if let Some(partial) = &mut self.refreshing.partial {
            partial.on_worn(worn);
        }
        let skipped_s = (until.seconds - then.seconds) * times;
        let is_measured = self.spec.cache.dirty_budget == DirtyBudget::Measured;
        let every_ns = self.spec.capacitor.detect_every_ns;
        let detections = if is_measured { (skipped_s * 1e9 / every_ns.ns() as f64) as u32 } else { 0 };
        self.power.skip(skipped_s, detections);
        self.power.set_clock(&mut self.core);
        self.spread_overdue();
        self.refreshing.refresh.begin(&mut self.core);
        times
    }

    /// Which blocks have been erased since the last fast-forward.
    fn keep_pace(&mut self) {
        if self.pace.blocks.is_empty() {
            let first = self.spec.reliability.pe_cycles;
            self.pace.blocks = vec![(first, 0); self.core.geometry.blocks as usize].into();
            self.pace.planes = vec![0; self.core.geometry.planes as usize].into();
        }
        for plane in (0..self.core.geometry.planes).map(PlaneId) {
            let range = self.core.geometry.blocks_of(plane);
            let (blocks, pace) = (&self.core.array.blocks[range.clone()], &mut self.pace.blocks[range]);
            // A drive that was loaded may have begun with more.
            let more = |block: &Block, pace: &(u32, u64)| u64::from(block.pe_cycles.saturating_sub(pace.0));
            let erases = blocks.iter().zip(&*pace).map(|(block, pace)| more(block, pace)).sum::<u64>();
            for (pace, block) in pace.iter_mut().zip(blocks) {
                pace.1 = if block.pe_cycles > pace.0 { 0 } else { pace.1 + erases };
            }
            self.pace.planes[plane.index()] += erases;
        }
    }

    /// The blocks of a plane among which its wear is spread.
    fn taking_part(&self, plane: PlaneId) -> Vec<usize> {
        let spares_none = self.spec.ftl.wear_levelling == WearLevelling::Static;
        let takes_part = |&block: &usize| {
            let is_active =
                || self.pace.blocks[block].1 < COLD_AFTER * u64::from(self.core.geometry.blocks_per_plane);
            self.core.array.blocks[block].state != BlockState::Retired && (spares_none || is_active())
        };
        self.core.geometry.blocks_of(plane).filter(takes_part).collect()
    }

    /// Gives a plane's blocks so many P/E cycles, the least worn first.
    fn share_cycles(&self, plane: PlaneId, cycles: u64, gained: &mut [u32]) {
        let mut blocks = self.taking_part(plane);
        blocks.sort_by_key(|&block| (self.core.array.blocks[block].pe_cycles, block));
        let count = blocks.len().max(1) as u64;
        for (at, &block) in blocks.iter().enumerate() {
            gained[block] = (cycles / count) as u32 + u32::from((at as u64) < cycles % count);
        }
    }

    /// Blocks whose interval has become so short that they would all be due at once are spread over it.
    fn spread_overdue(&mut self) {
        if !self.refreshing.refresh.has_begun() {
            return;
        }
        let now = self.core.physics.age_clock.at(self.core.now);
        for block in (0..self.core.geometry.blocks).map(BlockId) {
            let state = self.core.array.block(block);
            let interval_s = self.refreshing.refresh.interval_s(state.pe_cycles);
            if state.programmed == 0 || now.later_s_than(self.refreshing.refresh.since(block)) < interval_s {
                continue;
            }
            let seed = self.spec.seed ^ u64::from(block.0) << 32 ^ u64::from(state.pe_cycles);
            let age_s = (Stream::new(seed, "fast-forward").unit() * f64::from(interval_s)) as u32;
            let since = now.minus_s(age_s);
            self.refreshing.refresh.set_since(block, since);
            let programmed = u32::from(state.programmed);
            for page in 0..programmed {
                self.core.array.correct_since(self.core.geometry.page(block, page), since);
            }
        }
    }
}
