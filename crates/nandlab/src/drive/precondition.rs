//! Preconditioning: brings the drive into its state before the workload, without simulating time.
//!
//! Preconditioning uses the FTL of the simulation, so allocation, victim policy and wear levelling behave as in the
//! simulation. Only GC differs: it is completed at once whenever it is needed.

use super::Drive;
use super::mechanisms::each_mechanism;
use super::spec::{FillOrder, PreconditionSpec};
use crate::base::geometry::{LaneId, Lpn, UnitId};
use crate::base::huge::{Huge, prefetch};
use crate::base::rng::Stream;
use crate::base::stripes::Divisor;
use crate::core::{Map, Mechanism, Offline};
use crate::flash::{DEAD_LPN, ShapeId};
use crate::ftl::StreamId;
use crate::host::steady_state;
use crate::probe::Probe;

/// Number of units between two calls of [`Watch`].
const STRIDE: u32 = 1 << 16;

/// Draws made before the first of them is used, so that what they reach at random is prefetched; a divisor of
/// [`STRIDE`].
const AHEAD: usize = 64;

/// Callback, called from time to time with the share done (0 to 1). If it returns `false`, the work stops.
pub type Watch<'a> = &'a mut dyn FnMut(f64) -> bool;

/// The result of the random overwrite of the SNIA method.
#[derive(Clone, Debug, PartialEq)]
pub struct PtsOutcome {
    /// WAF of each round.
    pub waf: Vec<f64>,
    /// Whether the last five rounds are steady.
    pub is_steady: bool,
}

impl<P: Probe> Drive<P> {
    /// Preconditions a fresh drive by the method of its spec; a saved drive is not loaded here but by [`Drive::load`].
    /// Returns whether the preconditioning was completed, and the result of the SNIA method if the spec chooses this
    /// method. If the drive is worn out by it, or the victim policy fails, the preconditioning is not completed, and
    /// [`Drive::failure`] has the reason.
    ///
    /// # Panics
    /// On a drive that has been written.
    pub fn precondition(&mut self, watch: Watch) -> (bool, Option<PtsOutcome>) {
        assert!(self.is_fresh(), "only a fresh drive can be preconditioned");
        let outcome = match self.spec.precondition {
            PreconditionSpec::None | PreconditionSpec::Load(_) => (true, None),
            PreconditionSpec::Fill { used, valid, order } => (self.fill(used, valid, order, watch), None),
            PreconditionSpec::Pts { rounds_max } => {
                let outcome = self.pts(rounds_max, watch);
                (outcome.is_some(), outcome)
            }
        };
        if outcome.0 && self.failure.is_none() {
            self.fill_slc();
        }
        self.settle();
        self.core.forget_placement_counts();
        if self.failure.is_some() { (false, None) } else { outcome }
    }

    /// Fills the share `slc.filled` of the superblocks that may be in SLC mode, with the lowest LPNs of each lane: the
    /// data that a workload which starts at address 0 has written last.
    fn fill_slc(&mut self) {
        let filled = self.spec.slc.filled;
        let Some(slc) = self.core.streams().slc().filter(|_| filled > 0.0) else { return };
        for lane in (0..self.core.geometry().lanes).map(LaneId) {
            // 1e-9 absorbs rounding.
            let superblocks = (filled * f64::from(self.core.ftl().slc_limit(lane)) + 1e-9) as u32;
            let units = superblocks * self.core.flash().shapes()[ShapeId::SLC].units;
            if units == 0 {
                continue;
            }
            // Translation pages have LPNs beyond those of the host.
            let logical_units = self.core.geometry().logical_units;
            let of_lane = self.core.geometry().superblock_ids_of(lane);
            let lpns = of_lane.flat_map(|superblock| self.core.valid_lpns(superblock));
            let mut lpns: Vec<Lpn> = lpns.filter(|lpn| lpn.0 < logical_units).collect();
            lpns.sort_unstable();
            for lpn in lpns.into_iter().take(units as usize) {
                if !self.core.ftl().has_slc_room(lane) {
                    break;
                }
                // A newer write than that of the copy without SLC mode, as recovery has to find it.
                let sequence = self.core.next_sequence();
                let on_mapped = Self::on_mapped(&mut self.path.map);
                Offline::new(&mut self.core).program_now(lane, slc, lpn, sequence, on_mapped);
                if let Some(slc) = &mut self.schemes.slc {
                    slc.filled += 1;
                }
            }
        }
    }

    /// Whether the drive has never been written.
    pub(super) fn is_fresh(&self) -> bool {
        self.core.sequence() == 0 && self.core.ftl().map.mapped() == 0
    }

    /// The callback for units that are mapped outside simulated time.
    fn on_mapped(map: &mut impl Map<P>) -> impl FnMut(Lpn) {
        |lpn| map.on_mapped_now(lpn)
    }

    /// All units that the workload finds are mapped: each mechanism writes to flash what it has to have there.
    ///
    /// # Errors
    /// A lane without room.
    fn preconditioned_mechanisms(&mut self) -> Result<(), LaneId> {
        let mut offline = Offline::new(&mut self.core);
        each_mechanism!(&mut self, |mechanism| mechanism.preconditioned(&mut offline)?);
        Ok(())
    }

    /// Called after preconditioning: writes all stale translation pages, and fills with padding the programming units
    /// that are not full, without simulating time.
    pub fn settle(&mut self) {
        if self.failure.is_some() {
            return;
        }
        if let Err(lane) = self.preconditioned_mechanisms() {
            return self.wear_out(lane);
        }
        for lane in (0..self.core.geometry().lanes).map(LaneId) {
            for stream in self.core.streams().ids() {
                while self.core.ftl().is_amid_program(lane, stream) {
                    Offline::new(&mut self.core).program_now(lane, stream, Lpn(DEAD_LPN), 0, |_| ());
                }
            }
        }
    }

    /// Fills a share `used` of `drive.blocks_per_plane` superblocks of every lane, rounded down to whole superblocks. A
    /// share `valid` of the filled units, at random places, is valid, but not more units than the drive has logical
    /// units. The valid units have the lowest LPNs, so that a workload that starts at address 0 finds data; with several
    /// reclaim groups those of each group's share of the LPNs.
    fn fill(&mut self, used: f64, valid: f64, order: FillOrder, watch: Watch) -> bool {
        let mut stream = Stream::new(self.spec.seed, "precondition");
        let (lanes, units_per_superblock) = (self.core.geometry().lanes, self.core.first_shape().units);
        // 1e-9 absorbs rounding, so that 0.29 of 100 superblocks are 29.
        let filled_superblocks = (used * f64::from(self.core.geometry().superblocks_per_lane) + 1e-9) as u32;
        let filled = u64::from(filled_superblocks * units_per_superblock) * u64::from(lanes);
        let mapped = ((filled as f64 * valid) as u32).min(self.core.geometry().logical_units);
        // Consecutive pages of LPNs go to all lanes in turn, so the pages of a lane have the same residue modulo the
        // number of lanes.
        let per_page = self.core.geometry().units_per_page;
        let placements = *self.core.placements();
        let logical_units = self.core.geometry().logical_units;
        let pages = logical_units.div_ceil(per_page);
        let mut residues = vec![0; lanes as usize];
        for residue in 0..lanes {
            residues[self.core.home(Lpn(residue * per_page)).index()] = residue;
        }
        let by_page = Divisor::new(per_page);
        let per_lane_max = (mapped.div_ceil(lanes) + 2 * per_page) as usize;
        // The LPNs of a lane by their rank among them, and by rank 1 + the PPN of the unit that gets the LPN, or 0. The
        // units are found in random order; the map is then filled in ascending order, because a random access to the
        // map of a large drive misses every cache.
        let [mut all_ranks, mut all_units] = [(), ()].map(|()| Huge::<u32>::zeroed(per_lane_max));
        for lane in (0..lanes).map(LaneId) {
            if !watch(f64::from(lane.0) / f64::from(lanes)) {
                return false;
            }
            // Those of each reclaim group begin at its share of the LPNs.
            let (group, groups) = (placements.group_of(lane), u32::from(placements.groups));
            let first = placements.first_of(group, pages);
            let end = first * per_page + mapped / groups;
            let end = end.min(placements.first_of(group + 1, pages) * per_page).min(logical_units);
            let step = lanes / groups;
            let first = first + residues[lane.index()] % step;
            let pages_of_lane = end.div_ceil(per_page).saturating_sub(first).div_ceil(step);
            let beyond = (first + pages_of_lane * step + 1).saturating_sub(step) * per_page;
            let count = (pages_of_lane * per_page).saturating_sub(beyond.saturating_sub(end)) as usize;
            let (ranks, units) = (&mut all_ranks[..count], &mut all_units[..count]);
            let lpn_of = |rank: u32| {
                let (page, within) = by_page.split(rank);
                (first + page * step) * per_page + within
            };
            ranks.iter_mut().zip(0..).for_each(|(to, rank)| *to = rank);
            // LPNs are taken from the end of the list.
            match order {
                FillOrder::Sequential => ranks.reverse(),
                FillOrder::Random => shuffle(ranks, &mut stream),
            }
            // Selection sampling (Knuth, algorithm S): exactly `wanted` units become valid, and each set of units is
            // equally likely.
            let mut wanted = ranks.len() as u64;
            let of_lane = u64::from(filled_superblocks * units_per_superblock);
            let mut units_left = of_lane;
            let (mut ranks_now, mut lpns_now) = ([0; AHEAD], [0; AHEAD]);
            while units_left > 0 {
                if (of_lane - units_left).is_multiple_of(STRIDE.into()) {
                    let of_this = 1.0 - units_left as f64 / of_lane as f64;
                    if !watch((f64::from(lane.0) + of_this) / f64::from(lanes)) {
                        return false;
                    }
                }
                let now = units_left.min(AHEAD as u64) as usize;
                for (rank, lpn) in ranks_now[..now].iter_mut().zip(&mut lpns_now) {
                    let is_valid = stream.below(units_left) < wanted;
                    units_left -= 1;
                    *lpn = DEAD_LPN;
                    if is_valid {
                        wanted -= 1;
                        *rank = ranks[wanted as usize];
                        *lpn = lpn_of(*rank);
                        prefetch(&raw const units[*rank as usize]);
                    }
                }
                let mut done = 0;
                while done < now {
                    let lpns = &lpns_now[done..now];
                    let mut offline = Offline::new(&mut self.core);
                    let run = offline.program_run(lane, lpns);
                    if run.is_empty() {
                        let on_mapped = Self::on_mapped(&mut self.path.map);
                        offline.program_now(lane, StreamId::HOST, Lpn(lpns[0]), 0, on_mapped);
                        done += 1;
                        continue;
                    }
                    let mut on_mapped = Self::on_mapped(&mut self.path.map);
                    for ((unit, &lpn), &rank) in run.clone().zip(lpns).zip(&ranks_now[done..]) {
                        if lpn != DEAD_LPN {
                            units[rank as usize] = unit + 1;
                            on_mapped(Lpn(lpn));
                        }
                    }
                    done += run.len();
                }
            }
            let mut offline = Offline::new(&mut self.core);
            for (page, units) in (0..).zip(units.chunks_mut(per_page as usize)) {
                let lpns = (first + page * step) * per_page..;
                for (lpn, unit) in lpns.zip(units) {
                    if let Some(unit) = std::mem::take(unit).checked_sub(1) {
                        offline.map_first(Lpn(lpn), UnitId(unit));
                    }
                }
            }
        }
        true
    }

    /// SNIA PTS: writes the whole logical space once in order, then overwrites uniformly random units in rounds of one
    /// logical capacity each, until the WAF of the last five rounds is steady or `rounds_max` rounds are over. Returns
    /// `None` if `watch` has stopped the preconditioning, or the drive is worn out.
    fn pts(&mut self, rounds_max: u32, watch: Watch) -> Option<PtsOutcome> {
        let mut stream = Stream::new(self.spec.seed, "precondition");
        let units = self.core.geometry().logical_units;
        let of_all = 1.0 / f64::from(rounds_max + 1);
        for lpn in 0..units {
            if lpn % STRIDE == 0 && !watch(f64::from(lpn) / f64::from(units) * of_all) {
                return None;
            }
            self.write_if_room(Lpn(lpn))?;
        }
        let mut waf = Vec::new();
        let mut is_steady = false;
        while !is_steady && waf.len() < rounds_max as usize {
            let mut programmed = 0;
            for written in 0..units {
                let done = (waf.len() + 1) as f64 + f64::from(written) / f64::from(units);
                if written % STRIDE == 0 && !watch(done * of_all) {
                    return None;
                }
                programmed += self.write_if_room(Lpn(stream.below(u64::from(units)) as u32))?;
            }
            waf.push(programmed as f64 / f64::from(units));
            is_steady = steady_state(&waf).is_some_and(|state| state.is_met);
        }
        Some(PtsOutcome { waf, is_steady })
    }

    /// Empties and erases a victim of a lane without simulating time; see [`Offline::collect_now`].
    fn collect_now(&mut self, lane: LaneId) -> Option<u64> {
        Offline::new(&mut self.core).collect_now(lane, Self::on_mapped(&mut self.path.map))
    }

    /// Writes a unit without simulating time, for experiments on write amplification. Returns the number of units
    /// programmed for this write, GC included.
    ///
    /// # Panics
    /// When the drive is worn out or its victim policy fails. In debug builds also when operations are under way.
    #[inline]
    pub fn write_now(&mut self, lpn: Lpn) -> u64 {
        self.write_if_room(lpn).expect("a drive that has not failed has room")
    }

    /// Writes a unit without simulating time. Returns the number of units programmed for this write, GC included. If
    /// the lane of the unit has no room, and no superblock that can be emptied with a gain, the drive fails as worn
    /// out, and the result is `None`. So it is if the victim policy fails.
    #[inline]
    pub fn write_if_room(&mut self, lpn: Lpn) -> Option<u64> {
        debug_assert!(
            self.core.live_operations() == 0,
            "write_if_room needs a drive without operations under way"
        );
        let mut moved = 0;
        let placements = *self.core.placements();
        let group = if placements.groups == 1 {
            0
        } else {
            let per_page = self.core.geometry().units_per_page;
            let pages = self.core.geometry().logical_units.div_ceil(per_page);
            placements.group_of_number(lpn.0 / per_page, pages)
        };
        let lane = loop {
            let lane = self.core.choose_lane(lpn, StreamId::HOST, group);
            if let Some(lane) = lane.filter(|&lane| self.core.ftl().has_room(lane, StreamId::HOST)) {
                break lane;
            }
            // Dynamic allocation may take any lane: the lane with the most garbage is collected.
            let garbage = |lane: &LaneId| {
                let ftl = self.core.ftl();
                let units = ftl.spare_units(*lane) - ftl.free_units(*lane);
                (!ftl.is_overfull(*lane), units)
            };
            let lane = lane.or_else(|| placements.lanes_of(group).max_by_key(garbage));
            let lane = lane.expect("a drive has lanes");
            let Some(more) = self.collect_now(lane) else {
                self.wear_out(lane);
                return None;
            };
            moved += more;
        };
        let sequence = self.core.next_sequence();
        let on_mapped = Self::on_mapped(&mut self.path.map);
        let opened = Offline::new(&mut self.core).program_now(lane, StreamId::HOST, lpn, sequence, on_mapped);
        if let Some(promises) = &mut self.path.host.promises {
            promises.on_written_now(lpn, sequence);
        }
        self.core.probe.on_write_admitted(None, lpn, self.core.sequence());
        self.core.probe.on_write_durable(lpn, self.core.sequence());
        self.core.probe.on_write_acknowledged(lpn, self.core.sequence());
        while opened && self.core.is_short(lane) {
            let Some(more) = self.collect_now(lane) else {
                // A policy that has failed has pushed a wake.
                self.serve();
                if self.failure.is_some() {
                    return None;
                }
                break;
            };
            moved += more;
        }
        Some(moved + 1)
    }
}

/// Draws a random order (Fisher and Yates). The numbers of some swaps are drawn before the first of them is done, so
/// that the numbers that they reach at random are prefetched.
fn shuffle(numbers: &mut [u32], stream: &mut Stream) {
    let (mut left, mut places) = (numbers.len(), [0; AHEAD]);
    while left > 1 {
        let swaps = AHEAD.min(left - 1);
        for (place, of) in places[..swaps].iter_mut().zip((0..=left as u64).rev()) {
            *place = stream.below(of) as usize;
            prefetch(&raw const numbers[*place]);
        }
        for &place in &places[..swaps] {
            left -= 1;
            numbers.swap(left, place);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::drive::spec;
    use crate::probe::NoProbe;

    #[test]
    fn a_shuffle_is_that_of_one_swap_after_another() {
        for len in (0..200).chain([1_000, 4_097]) {
            let [mut stream, mut of_each] = [(), ()].map(|()| Stream::new(len, "shuffle"));
            let mut numbers: Vec<u32> = (0..len as u32).collect();
            let mut expected = numbers.clone();
            shuffle(&mut numbers, &mut stream);
            for last in (1..expected.len()).rev() {
                expected.swap(last, of_each.below(last as u64 + 1) as usize);
            }
            assert_eq!((numbers, stream.bits()), (expected, of_each.bits()), "{len}");
        }
    }

    /// Superblocks on one die and on several, an SLC cache, ages, and sequence numbers.
    const DRIVES: [&str; 5] = [
        "ftl.superblock='plane'",
        "ftl.superblock='drive'",
        "slc.dynamic=0.2",
        "reliability.retention='30d'",
        "power.cut_after_requests=50",
    ];

    #[test]
    fn a_run_of_programs_is_that_of_one_after_another() {
        let text = "[drive]\nchannels = 2\nchips_per_channel = 1\ndies_per_chip = 1\nplanes_per_die = 2\n\
                    blocks_per_plane = 40\npages_per_block = 24\npage_size = '16KiB'\ncell = 'mlc'\nop = 0.5\n\
                    [timing]\nmulti_plane = true\n[ftl]\nmapping_unit = '4KiB'\n";
        let mut runs = 0;
        for set in DRIVES {
            let loaded = spec::load(text, "test.toml", std::path::Path::new("."), &[set.to_owned()])
                .unwrap_or_else(|error| panic!("{set}: {error:?}"));
            let [mut drive, mut of_each] = [(), ()].map(|()| Drive::<NoProbe>::new(&loaded.spec));
            let mut stream = Stream::new(1, "test");
            for lane in (0..drive.core.geometry().lanes).map(LaneId) {
                let mut next = lane.0;
                for _ in 0..60 {
                    let count = 1 + stream.below(40) as usize;
                    let lpns: Vec<u32> = (0..count)
                        .map(|_| {
                            next += drive.core.geometry().lanes;
                            if stream.below(4) == 0 { DEAD_LPN } else { next }
                        })
                        .collect();
                    let mut left = &lpns[..];
                    while let [lpn, ..] = left {
                        let mut offline = Offline::new(&mut drive.core);
                        let run = offline.program_run(lane, left);
                        runs += usize::from(run.len() > 1);
                        for (unit, &lpn) in run.clone().zip(left).filter(|&(_, &lpn)| lpn != DEAD_LPN) {
                            offline.map_first(Lpn(lpn), UnitId(unit));
                        }
                        if run.is_empty() {
                            offline.program_now(lane, StreamId::HOST, Lpn(*lpn), 0, |_| ());
                        }
                        left = &left[run.len().max(1)..];
                    }
                    for &lpn in &lpns {
                        let mut offline = Offline::new(&mut of_each.core);
                        offline.program_now(lane, StreamId::HOST, Lpn(lpn), 0, |_| ());
                    }
                }
            }
            let [state, expected] = [&drive, &of_each].map(|drive| format!("{:?}", drive.core.flash_state()));
            assert!(state == expected, "{set}");
        }
        assert!(runs > 100, "{runs}");
    }
}
