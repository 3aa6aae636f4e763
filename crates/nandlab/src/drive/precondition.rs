//! Preconditioning: brings the drive into its state before the workload, without simulating time.
//!
//! Preconditioning uses the FTL of the simulation, so allocation, victim policy and wear levelling behave as in the
//! simulation. Only GC differs: it is completed at once whenever it is needed.

use super::Drive;
use super::spec::{FillOrder, PreconditionSpec};
use crate::base::geometry::{Lpn, PlaneId};
use crate::base::rng::Stream;
use crate::core::Core;
use crate::demand_map::Mapping;
use crate::flash::DEAD_LPN;
use crate::ftl::WriteStream;
use crate::host::steady_state;
use crate::probe::Probe;

/// Number of pages between two calls of [`Watch`].
const STRIDE: u32 = 1 << 16;

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
    /// method. If the drive is worn out by it, the preconditioning is not completed, and [`Drive::failure`] has the
    /// numbers.
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
        self.settle();
        if self.failure.is_some() { (false, None) } else { outcome }
    }

    /// Whether the drive has never been written.
    pub(super) fn is_fresh(&self) -> bool {
        self.core.sequence == 0 && self.core.ftl.map.mapped() == 0
    }

    /// Returns a callback that notifies the demand map of a page that was mapped without simulating time.
    fn on_mapped(map: &mut Option<Mapping>) -> impl FnMut(Lpn) {
        move |lpn| {
            if let Some(mapping) = map {
                mapping.demand.on_mapped_now(lpn);
            }
        }
    }

    /// Informs the record of promises of the LPNs that have data at rest.
    pub(super) fn note_at_rest(&mut self) {
        if let Some(promises) = &mut self.path.host.promises {
            let Core { ftl, array, .. } = &self.core;
            promises.note_at_rest(&ftl.map, |ppn| array.stamp(ppn).sequence);
        }
    }

    /// Called after preconditioning: writes all stale translation pages, and fills with padding the flash pages that are
    /// not full, without simulating time.
    pub fn settle(&mut self) {
        if self.failure.is_some() {
            return;
        }
        if let Some(mapping) = &mut self.path.map
            && let Err(plane) = mapping.settle(&mut self.core)
        {
            return self.wear_out(plane);
        }
        for plane in (0..self.core.geometry.planes).map(PlaneId) {
            for stream in WriteStream::all() {
                while self.core.ftl.is_amid_program(&self.core.geometry, plane, stream) {
                    self.core.program_now(plane, stream, Lpn(DEAD_LPN), 0, |_| ());
                }
            }
        }
        self.note_at_rest();
    }

    /// Fills a share `used` of `drive.blocks_per_plane` blocks of every plane, rounded down to whole blocks. A share
    /// `valid` of the filled pages, at random places, is valid, but not more pages than the drive has logical pages. The
    /// valid pages have the lowest LPNs, so that a workload that starts at address 0 finds data.
    fn fill(&mut self, used: f64, valid: f64, order: FillOrder, watch: Watch) -> bool {
        let mut stream = Stream::new(self.spec.seed, "precondition");
        let (planes, pages) = (self.core.geometry.planes, self.core.geometry.pages_per_block);
        // 1e-9 absorbs rounding, so that 0.29 of 100 blocks are 29.
        let filled_blocks = (used * f64::from(self.core.geometry.blocks_per_plane) + 1e-9) as u32;
        let filled = u64::from(filled_blocks * pages) * u64::from(planes);
        let mapped = ((filled as f64 * valid) as u32).min(self.core.geometry.logical_pages);
        // Consecutive flash pages of LPNs go to all planes in turn, so the flash pages of a plane have the same residue
        // modulo the number of planes.
        let units = self.core.geometry.units_per_page;
        let mut residues = vec![0; planes as usize];
        for residue in 0..planes {
            residues[self.core.ftl.allocator.home(Lpn(residue * units), &self.core.geometry).index()] =
                residue;
        }
        let mut lpns: Vec<u32> = Vec::with_capacity(mapped.div_ceil(planes) as usize + units as usize);
        for plane in (0..planes).map(PlaneId) {
            if !watch(f64::from(plane.0) / f64::from(planes)) {
                return false;
            }
            lpns.clear();
            let of_plane = (residues[plane.index()]..mapped.div_ceil(units)).step_by(planes as usize);
            lpns.extend(of_plane.flat_map(|page| page * units..mapped.min((page + 1) * units)));
            // LPNs are taken from the end of the list.
            match order {
                FillOrder::Sequential => lpns.reverse(),
                FillOrder::Random => {
                    for last in (1..lpns.len()).rev() {
                        lpns.swap(last, stream.below(last as u64 + 1) as usize);
                    }
                }
            }
            // Selection sampling (Knuth, algorithm S): exactly `wanted` pages become valid, and each set of pages is
            // equally likely.
            let mut wanted = lpns.len() as u64;
            let of_plane = u64::from(filled_blocks * pages);
            for pages_left in (1..=of_plane).rev() {
                if pages_left % u64::from(STRIDE) == 0 {
                    let of_this = 1.0 - pages_left as f64 / of_plane as f64;
                    if !watch((f64::from(plane.0) + of_this) / f64::from(planes)) {
                        return false;
                    }
                }
                let is_valid = stream.below(pages_left) < wanted;
                let lpn = if is_valid {
                    wanted -= 1;
                    // The map is accessed at random, so its entries are prefetched.
                    if let Some(ahead) = wanted.checked_sub(16) {
                        self.core.ftl.map.prefetch(Lpn(lpns[ahead as usize]));
                    }
                    Lpn(lpns[wanted as usize])
                } else {
                    Lpn(DEAD_LPN)
                };
                self.core.program_now(plane, WriteStream::Host, lpn, 0, Self::on_mapped(&mut self.path.map));
            }
        }
        true
    }

    /// SNIA PTS: writes the whole logical space once in order, then overwrites uniformly random pages in rounds of one
    /// logical capacity each, until the WAF of the last five rounds is steady or `rounds_max` rounds are over. Returns
    /// `None` if `watch` has stopped the preconditioning, or the drive is worn out.
    fn pts(&mut self, rounds_max: u32, watch: Watch) -> Option<PtsOutcome> {
        let mut stream = Stream::new(self.spec.seed, "precondition");
        let pages = self.core.geometry.logical_pages;
        let of_all = 1.0 / f64::from(rounds_max + 1);
        for lpn in 0..pages {
            if lpn % STRIDE == 0 && !watch(f64::from(lpn) / f64::from(pages) * of_all) {
                return None;
            }
            self.write_if_room(Lpn(lpn))?;
        }
        let mut waf = Vec::new();
        let mut is_steady = false;
        while !is_steady && waf.len() < rounds_max as usize {
            let mut programs = 0;
            for page in 0..pages {
                let done = (waf.len() + 1) as f64 + f64::from(page) / f64::from(pages);
                if page % STRIDE == 0 && !watch(done * of_all) {
                    return None;
                }
                programs += self.write_if_room(Lpn(stream.below(u64::from(pages)) as u32))?;
            }
            waf.push(programs as f64 / f64::from(pages));
            is_steady = steady_state(&waf).is_some_and(|state| state.is_met);
        }
        Some(PtsOutcome { waf, is_steady })
    }

    /// Writes a page without simulating time, for experiments on write amplification. Returns the number of pages
    /// programmed for this write, GC included.
    ///
    /// # Panics
    /// When the drive is worn out. In debug builds also when operations are under way.
    #[inline]
    pub fn write_now(&mut self, lpn: Lpn) -> u64 {
        self.write_if_room(lpn).expect("a drive that is not worn out has room")
    }

    /// Writes a page without simulating time. Returns the number of pages programmed for this write, GC included. If the
    /// plane of the page has no room, and no block that can be emptied with a gain, the drive fails as worn out, and the
    /// result is `None`.
    #[inline]
    pub fn write_if_room(&mut self, lpn: Lpn) -> Option<u64> {
        debug_assert!(self.core.pool.live() == 0, "write_if_room needs a drive without operations under way");
        let mut moved = 0;
        let plane = loop {
            let plane = self.core.ftl.choose_plane(&self.core.geometry, &self.core.device, lpn);
            if let Some(plane) = plane.filter(|&plane| self.core.ftl.has_room(plane)) {
                break plane;
            }
            // Dynamic allocation may take any plane: the plane with the most garbage is collected.
            let garbage = |plane: &PlaneId| {
                let ftl = &self.core.ftl;
                let pages = ftl.spare_pages(&self.core.geometry, *plane)
                    - ftl.free_pages(&self.core.geometry, *plane);
                (!ftl.is_overfull(&self.core.geometry, *plane), pages)
            };
            let plane = plane.or_else(|| (0..self.core.geometry.planes).map(PlaneId).max_by_key(garbage));
            let plane = plane.expect("a drive has planes");
            let Some(more) = self.core.collect_now(plane, Self::on_mapped(&mut self.path.map)) else {
                self.wear_out(plane);
                return None;
            };
            moved += more;
        };
        self.core.sequence += 1;
        let sequence = self.core.sequence;
        let opened = self.core.program_now(
            plane,
            WriteStream::Host,
            lpn,
            sequence,
            Self::on_mapped(&mut self.path.map),
        );
        if let Some(promises) = &mut self.path.host.promises {
            promises.on_written_now(lpn, sequence);
        }
        self.core.probe.on_write_admitted(None, lpn, self.core.sequence);
        self.core.probe.on_write_durable(lpn, self.core.sequence);
        self.core.probe.on_write_acknowledged(lpn, self.core.sequence);
        while opened && self.core.is_short(plane) {
            let Some(more) = self.core.collect_now(plane, Self::on_mapped(&mut self.path.map)) else { break };
            moved += more;
        }
        Some(moved + 1)
    }
}
