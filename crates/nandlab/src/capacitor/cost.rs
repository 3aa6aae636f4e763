//! The energy of an emergency flush (Eq. 3 to 5 of the aging-capacitor paper), and the number of pages that an energy
//! can save.

use super::Capacitor;
use super::FlushMethod;
use crate::base::geometry::Geometry;
use crate::sched::Timing;

/// Energy of an emergency flush by its number of pages, in the worst case: only the free blocks reserved for the flush
/// are left. `plain` uses the pages of a block in order, so it may begin at slow pages; `csw` uses the pages of all
/// reserved blocks from the fastest to the slowest.
#[derive(Clone, Debug, Default)]
pub struct FlushCost {
    /// Energy that a flush takes beside that of its pages, in joules: for the wait for an operation under way, for a
    /// last round of programs on few dies, and for the pages of the VSM.
    fixed_j: f64,
    /// Groups of pages in the order of their use: number of pages, and joules per page.
    kinds: Box<[(f64, f64)]>,
    /// Joules per page beyond the pages of `kinds`.
    beyond_j: f64,
}

/// In blocks with more pages than this, every page of `plain` counts with the mean program time.
const WINDOW_MAX: usize = 2048;

impl FlushCost {
    /// The cost of a flush that programs `at_a_time` pages at a time into `blocks` free blocks of each plane, and
    /// `vsm_pages` pages of the VSM after them.
    pub fn new(
        method: FlushMethod,
        capacitor: &Capacitor,
        geometry: &Geometry,
        timing: &Timing,
        at_a_time: u32,
        blocks: u32,
        vsm_pages: u32,
    ) -> Self {
        let mut times: Vec<f64> =
            (0..geometry.pages_per_block).map(|page| timing.program_ns(page).ns() as f64).collect();
        let slowest = times.iter().copied().fold(0.0, f64::max);
        let mean = times.iter().sum::<f64>() / times.len() as f64;
        let transfer_ns = (timing.transfer_ns + timing.command.program_ns).ns() as f64;
        let page_j = |program_ns: f64| {
            // The transfers on the channels bound the rate.
            let page_ns = ((program_ns + transfer_ns) / f64::from(at_a_time))
                .max(transfer_ns / f64::from(geometry.channels));
            capacitor.spent_j(page_ns, program_ns)
        };
        let (count, beyond) = match method {
            FlushMethod::Plain => {
                to_slowest_runs(&mut times, mean);
                (geometry.planes, mean)
            }
            FlushMethod::Csw => {
                times.sort_by(f64::total_cmp);
                (blocks.max(1) * geometry.planes, slowest)
            }
        };
        let dies_per_channel = f64::from(geometry.dies / geometry.channels);
        let wait_ns = timing.erase_ns.ns() as f64
            + slowest
            + dies_per_channel * timing.longest_transfer_ns().ns() as f64;
        Self {
            fixed_j: capacitor.spent_j(wait_ns, 0.0) + f64::from(vsm_pages) * page_j(slowest),
            kinds: times.into_iter().map(|time| (f64::from(count), page_j(time))).collect(),
            beyond_j: page_j(beyond),
        }
    }

    /// The number of pages that `energy_j` joules can save.
    pub fn pages(&self, energy_j: f64) -> f64 {
        let (mut pages, mut left_j) = (0.0, energy_j - self.fixed_j);
        if left_j <= 0.0 || self.beyond_j <= 0.0 {
            return 0.0;
        }
        for &(count, page_j) in &self.kinds {
            if left_j < count * page_j {
                return pages + left_j / page_j;
            }
            pages += count;
            left_j -= count * page_j;
        }
        pages + left_j / self.beyond_j
    }
}

/// Replaces the n-th program time of a block by the time of the slowest run of n consecutive pages less that of the
/// slowest run of n - 1 pages. A run may begin at any page and continue in the next block.
fn to_slowest_runs(times: &mut [f64], mean: f64) {
    let len = times.len();
    if len > WINDOW_MAX {
        times.fill(mean);
        return;
    }
    let mut sums = vec![0.0; 2 * len + 1];
    for page in 0..2 * len {
        sums[page + 1] = sums[page] + times[page % len];
    }
    let worst = |pages: usize| (0..len).map(|from| sums[from + pages] - sums[from]).fold(0.0, f64::max);
    let mut before = 0.0;
    for pages in 1..=len {
        let sum = worst(pages);
        times[pages - 1] = sum - before;
        before = sum;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_nth_time_is_the_difference_of_the_slowest_runs_of_n_and_n_minus_1_pages() {
        // The slowest runs of 1 to 4 pages take 2, 3, 5 and 6.
        let mut times = [1.0, 2.0, 1.0, 2.0];
        to_slowest_runs(&mut times, 1.5);
        assert_eq!(times, [2.0, 1.0, 2.0, 1.0]);
        // The slowest runs of 1 to 3 pages take 3, 5 and 6.
        let mut layers = [1.0, 2.0, 3.0];
        to_slowest_runs(&mut layers, 2.0);
        assert_eq!(layers, [3.0, 2.0, 1.0]);
    }
}
