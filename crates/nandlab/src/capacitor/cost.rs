//! What an emergency flush of so many pages takes (Eq. 3 to 5), and how many pages some energy is enough for.

use super::Capacitor;
use super::FlushMethod;
use crate::base::geometry::Geometry;
use crate::sched::Timing;

/// Joules by pages, for a flush into the free blocks that the drive keeps for it and no others, at its worst. `plain` takes
/// pages as they come, so it may begin where they are slow; `csw` takes the fastest pages of all these blocks first, then
/// the next ones.
#[derive(Clone, Debug, Default)]
pub struct FlushCost {
    /// What any flush takes, however few its pages: the operation under way on a die that it has to wait for, and a last
    /// round that few dies take part in; and the lines of the VSM.
    fixed_j: f64,
    /// So many pages at so many joules each, in the order in which they are used.
    kinds: Box<[(f64, f64)]>,
    /// Joules of each page beyond these.
    beyond_j: f64,
}

/// Blocks of more pages than this are taken as evenly fast by `plain`.
const WINDOW_MAX: usize = 2048;

impl FlushCost {
    /// For a flush that programs `at_a_time` pages at a time into `blocks` free blocks of each plane, and the VSM after them.
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
            // No faster than the channels carry the pages.
            let page_ns = ((program_ns + transfer_ns) / f64::from(at_a_time))
                .max(transfer_ns / f64::from(geometry.channels));
            capacitor.spent_j(page_ns, program_ns)
        };
        let (count, beyond) = match method {
            FlushMethod::Plain => {
                slow_stretches(&mut times, mean);
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

    /// How many pages so many joules are enough for.
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

/// Turns the program times of a block's pages into what each further page of the slowest stretch adds, wherever in a row of
/// blocks it begins.
fn slow_stretches(times: &mut [f64], mean: f64) {
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
    fn the_slowest_stretch_of_lsb_and_msb_pages_begins_and_ends_with_an_msb_page() {
        let mut times = [1.0, 2.0, 1.0, 2.0];
        slow_stretches(&mut times, 1.5);
        assert_eq!(times, [2.0, 1.0, 2.0, 1.0]);
        let mut layers = [1.0, 2.0, 3.0];
        slow_stretches(&mut layers, 2.0);
        assert_eq!(layers, [3.0, 2.0, 1.0]);
    }
}
