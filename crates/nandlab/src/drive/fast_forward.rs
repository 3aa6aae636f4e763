//! Fast-forward: a drive lives on as it has lived lately, without that being simulated.
//!
//! Between two moments a drive has worn, and time has passed. To go on `times` as long means:
//!
//! - every plane gets `times` the P/E cycles that it has got, spread evenly over the blocks that take part: all of them
//!   under static wear levelling, else those that have been erased in one of the last few stretches between
//!   fast-forwards, since cold data stays where it is;
//! - the capacitor gets older by `times` the time, and is as often emptied as it would have been measured; a detection
//!   that would have been due is due now;
//! - all data keeps its age, and each block its place in its refresh interval: in a steady state there is always as much
//!   data of each age. A block that is due now because the interval has become shorter is somewhere in its interval.

use super::Drive;
use crate::geometry::{BlockId, PlaneId};
use crate::nand::BlockState;
use crate::probe::Probe;
use crate::rng::Stream;
use crate::spec::{DirtyBudget, WearLevelling};

/// Stretches between fast-forwards after which a block that has not been erased in them takes no part in the wear.
const IDLE_STRETCHES: u8 = 4;

/// What a drive has lived through, at a moment.
#[derive(Clone, Debug)]
pub struct Lived {
    /// Seconds on the scaled clock.
    seconds: f64,
    /// P/E cycles of each plane's blocks, added up.
    cycles: Box<[u64]>,
}

/// Which blocks have taken part in the wear lately.
#[derive(Debug, Default)]
pub(super) struct Pace {
    /// By block, its P/E cycles after the last fast-forward, and for how many stretches it has not been erased.
    blocks: Box<[(u32, u8)]>,
}

impl<P: Probe> Drive<P> {
    /// Seconds on the scaled clock that the drive has lived through, the skipped ones included.
    pub fn lived_s(&self) -> f64 {
        self.power.age_s(self.now)
    }

    /// What the drive has lived through until now.
    pub fn lived(&self) -> Lived {
        let planes = (0..self.geometry.planes).map(PlaneId);
        let cycles = planes.map(|plane| self.cycles_of(plane)).collect();
        Lived { seconds: self.lived_s(), cycles }
    }

    fn cycles_of(&self, plane: PlaneId) -> u64 {
        self.array.blocks[self.geometry.blocks_of(plane)].iter().map(|block| u64::from(block.pe_cycles)).sum()
    }

    /// Whether nothing is under way. Idle-time work may still be to come.
    pub fn is_at_rest(&self) -> bool {
        self.outstanding() == 0 && self.pool.live() == 0
    }

    /// How many times as long as since `then` the drive can live on before a block reaches its endurance.
    fn fast_forward_max(&self, then: &Lived) -> f64 {
        let endurance = self.spec.drive.endurance;
        let of_plane = |plane: PlaneId| {
            let blocks = self.taking_part(plane);
            let count = blocks.len() as u64;
            let worst = blocks.iter().map(|&block| self.array.blocks[block].pe_cycles).max().unwrap_or(0);
            let gained = self.cycles_of(plane) - then.cycles[plane.index()];
            // One less for the rounding, one less so that the next erase does not retire the block.
            let left = u64::from(endurance.saturating_sub(worst).saturating_sub(2)) * count;
            if gained == 0 { f64::INFINITY } else { left as f64 / gained as f64 }
        };
        (0..self.geometry.planes).map(PlaneId).map(of_plane).fold(f64::INFINITY, f64::min)
    }

    /// Lives on `times` as long as since `then`, as the module says, or until just before a block reaches its endurance;
    /// returns how many times it was.
    ///
    /// # Panics
    /// When something is under way ([`Drive::is_at_rest`]).
    pub fn fast_forward(&mut self, then: &Lived, times: f64) -> f64 {
        assert!(self.is_at_rest(), "a drive can be fast-forwarded only while nothing is under way");
        self.keep_pace();
        let times = times.min(self.fast_forward_max(then)).max(0.0);
        let mut gained = vec![0; self.geometry.blocks as usize];
        for plane in (0..self.geometry.planes).map(PlaneId) {
            let cycles = (self.cycles_of(plane) - then.cycles[plane.index()]) as f64 * times;
            self.share_cycles(plane, cycles as u64, &mut gained);
        }
        for ((block, pace), &more) in self.array.blocks.iter_mut().zip(&mut self.pace.blocks).zip(&gained) {
            block.pe_cycles += more;
            pace.0 = block.pe_cycles;
        }
        self.ftl.on_worn(&self.geometry, &self.array);
        let pages = self.geometry.pages_per_block;
        self.on_links_worn(|base| gained[(base.0 / pages) as usize]);
        let skipped_s = (self.lived_s() - then.seconds) * times;
        let is_measured = self.spec.cache.dirty_budget == DirtyBudget::Measured;
        let every_ns = self.spec.capacitor.detect_every_ns;
        let detections = if is_measured { (skipped_s * 1e9 / every_ns as f64) as u32 } else { 0 };
        self.power.skip(skipped_s, detections);
        self.set_power_clock();
        self.spread_overdue();
        self.begin_refresh();
        times
    }

    /// A stretch has ended: which blocks have been erased in it.
    fn keep_pace(&mut self) {
        if self.pace.blocks.is_empty() {
            // What the first stretch does not use counts as cold.
            let first = self.spec.reliability.pe_cycles;
            self.pace.blocks = vec![(first, IDLE_STRETCHES - 1); self.geometry.blocks as usize].into();
        }
        for (pace, block) in self.pace.blocks.iter_mut().zip(self.array.blocks.iter()) {
            pace.1 = if block.pe_cycles > pace.0 { 0 } else { pace.1.saturating_add(1) };
        }
    }

    /// The blocks of a plane among which its wear is spread.
    fn taking_part(&self, plane: PlaneId) -> Vec<usize> {
        let spares_none = self.spec.ftl.wear_levelling == WearLevelling::Static;
        let takes_part = |&block: &usize| {
            let is_active = || self.pace.blocks.get(block).is_none_or(|pace| pace.1 < IDLE_STRETCHES);
            self.array.blocks[block].state != BlockState::Retired && (spares_none || is_active())
        };
        self.geometry.blocks_of(plane).filter(takes_part).collect()
    }

    /// Gives a plane's blocks so many P/E cycles, the least worn first.
    fn share_cycles(&self, plane: PlaneId, cycles: u64, gained: &mut [u32]) {
        let mut blocks = self.taking_part(plane);
        blocks.sort_by_key(|&block| (self.array.blocks[block].pe_cycles, block));
        let count = blocks.len().max(1) as u64;
        for (at, &block) in blocks.iter().enumerate() {
            gained[block] = (cycles / count) as u32 + u32::from((at as u64) < cycles % count);
        }
    }

    /// Blocks whose interval has become so short that they would all be due at once are spread over it.
    fn spread_overdue(&mut self) {
        if !self.refresh.has_begun() {
            return;
        }
        let now = self.age_clock.at(self.now);
        for block in (0..self.geometry.blocks).map(BlockId) {
            let state = self.array.block(block);
            let interval_s = self.refresh.interval_s(state.pe_cycles);
            if state.programmed == 0 || now.later_s_than(self.refresh.since(block)) < interval_s {
                continue;
            }
            let seed = self.spec.seed ^ u64::from(block.0) << 32 ^ u64::from(state.pe_cycles);
            let age_s = (Stream::new(seed, "fast-forward").unit() * f64::from(interval_s)) as u32;
            let since = now.minus_s(age_s);
            self.refresh.set_since(block, since);
            let programmed = u32::from(state.programmed);
            for page in 0..programmed {
                self.array.correct_since(self.geometry.page(block, page), since);
            }
        }
    }
}
