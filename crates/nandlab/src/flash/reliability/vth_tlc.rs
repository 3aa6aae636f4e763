//! `reliability.rber.vth-tlc`: threshold voltage distributions of a TLC cell, and the RBER between its states.
//!
//! A cell has eight states, each normal. Voltages are in the units of the source: 512 is the nominal maximum, 0 is
//! ground. The mean of state i after N P/E cycles and a retention of t is
//!
//! mean = m + d L f^0.5, with L = ln(1 + t / 1 hour) and f = (N + 3400) / (2000 + 3400),
//!
//! and its variance is v + w L f^0.6; the mean of the erased state also rises by 7.4 per 1,000 P/E cycles. The form is
//! that of Eq. 1 of the LaLDPC paper (see `vth.rs`), with an offset for the retention loss of cells without wear.
//!
//! - Source of m, d, v and w: Y. Cai, S. Ghose, E. F. Haratsch, Y. Luo and O. Mutlu, "Error characterization,
//!   mitigation, and recovery in flash-memory-based solid-state drives", Proc. IEEE 105(9), 2017, Table 5: means and
//!   standard deviations of the eight states of a planar 1X-nm TLC chip at 2,000 P/E cycles, one day to one year. The
//!   values here are the least-squares lines through the table's means and variances over L. The lines are within 2.3
//!   of the means of the programmed states, 3.7 of that of the erased state, and 0.3 of the standard deviations of the
//!   programmed states.
//! - Derived: the variance of the erased state is the mean of the table's five, without a trend, as in Eq. 1. The rise
//!   of the erased state and the 3400 follow from Table 4 of the source (the means of the erased state after one day at
//!   0 and 3,000 P/E cycles are -110.0 and -84.1; the standard deviations of the two highest states at 0 are 9.3 and
//!   8.5).
//! - Assumptions: the exponents are those of Eq. 1, whose cells have two bits. The programmed states do not move with
//!   P/E cycles alone (in Table 4 by at most 2.4). A 3D cell has the same distributions; `sigma` and `shift` scale them.
//!
//! # Early retention loss
//!
//! Cells of 3D chips with charge traps lose charge within minutes of their programming, as those of the planar chip do
//! not. With `early` the mean of state i falls by a further
//!
//! loss h ln(1 + t / from) f^0.5, with h = (m - m of the erased state) / (m of the highest state - m of the erased state).
//!
//! - Source of the logarithm: Y. Luo, S. Ghose, Y. Cai, E. F. Haratsch and O. Mutlu, "Improving 3D NAND flash memory
//!   lifetime by tolerating early retention loss and process variation", Proc. ACM Meas. Anal. Comput. Syst. 2(3), 2018:
//!   3D MLC at 20 C; the means of the states follow A log t + B.
//! - Derived: the default of `from`, 126 s. In the same source the optimal reference of the highest state moves by 5
//!   steps within 3 hours and by 5 more within 11 days; ln(1 + t / 126 s) has the same increase in both.
//! - Assumptions: the loss is proportional to the height of the state, as in Eq. 1 of the LaLDPC paper; it depends on
//!   wear as the other loss does; it widens no state.
//! - `loss` is calibrated to a chip (docs/explanation/reliability.md).
//!
//! The Gray code from the erased state up is 111, 011, 001, 000, 010, 110, 100, 101, MSB first: two references for the
//! LSB page, three for the CSB page, two for the MSB page. The counts 2, 3, 2 are those of the 3D TLC chips of J. Lee et
//! al., "AiF: Accelerating on-device LLM inference using in-flash processing", ISCA 2025. Assumption: the MSB page has
//! the boundary of the erased state.
//!
//! Read references are at the voltages where the densities of neighbouring states cross. Soft sensing uses seven
//! references around each boundary, `sensing_step` apart.
//!
//! The model is meant for up to 10,000 P/E cycles. Once the states are out of order, the RBER is 0.5.

use super::noise::Noise;
use super::soft::{Placed, Soft, equivalent, regions_of_pages};
use super::vth::{SENSING_STEPS, State, crossing, share_near};
use super::{EarlyLoss, Entry, VthTlcSpec};
use nandlab_ldpc::Regions;

/// m, d, v and w of each state, from the erased one.
const STATES: [[f64; 4]; 8] = [
    [-106.91, 3.967, 2175.0, 0.0],
    [59.59, 1.708, 54.33, 11.750],
    [123.49, 1.048, 62.80, 9.944],
    [189.15, 0.557, 59.72, 9.379],
    [253.97, 0.062, 58.97, 9.363],
    [319.00, -0.400, 52.37, 9.946],
    [386.35, -0.787, 57.98, 10.295],
    [451.67, -1.223, 47.47, 11.725],
];
/// P/E cycles of the source's Table 5.
const MEASURED_PE: f64 = 2000.0;
/// The P/E cycles that count for retention beside those of the block.
const OFFSET_PE: f64 = 3400.0;
/// Rise of the erased state for each P/E cycle.
const ERASED_RISE: f64 = 7.4e-3;
/// t0, in seconds.
const T0_S: f64 = 3600.0;

/// The boundaries between states, from 0 below the first programmed state, that a read of an LSB, CSB or MSB page
/// senses.
const SENSED: [&[usize]; 3] = [&[2, 6], &[1, 3, 5], &[0, 4]];

/// The exact model. Each call computes its result anew.
#[derive(Clone, Debug)]
pub struct VthTlc {
    spec: VthTlcSpec,
}

impl VthTlc {
    /// The model with these parameters.
    pub fn new(spec: &VthTlcSpec) -> Self {
        Self { spec: *spec }
    }

    /// RBER of LSB, CSB and MSB pages after `pe_cycles` P/E cycles and `age_s` seconds; 0 to 0.5.
    pub fn rber(&self, pe_cycles: f64, age_s: f64) -> [f64; 3] {
        self.states(pe_cycles, age_s).map_or([0.5; 3], |states| rber_at(&states, references(&states)))
    }

    /// As [`VthTlc::rber`], but with the read references that are optimal at age 0. Assumption: the default references
    /// of a device follow its wear.
    pub fn rber_unadjusted(&self, pe_cycles: f64, age_s: f64) -> [f64; 3] {
        self.rber_read_for(pe_cycles, age_s, 0.0)
    }

    /// As [`VthTlc::rber`], but with the read references that are optimal for data of `read_for_s` seconds.
    pub fn rber_read_for(&self, pe_cycles: f64, age_s: f64, read_for_s: f64) -> [f64; 3] {
        match (self.references(pe_cycles, read_for_s), self.states(pe_cycles, age_s)) {
            (Some(references), Some(states)) => rber_at(&states, references),
            _ => [0.5; 3],
        }
    }

    /// The equivalent RBER of LSB, CSB and MSB pages with soft sensing; 0 to 0.5.
    pub fn equivalent(&self, pe_cycles: f64, age_s: f64, soft: &Soft) -> [f64; 3] {
        equivalent(self.regions(pe_cycles, age_s, soft), soft)
    }

    /// The regions of LSB, CSB and MSB pages with soft sensing, region 0 at the side of the bit 0: the channel of a bit
    /// of the page. `None` if the states, or the references around which those of soft sensing are, are out of order.
    pub fn regions(&self, pe_cycles: f64, age_s: f64, soft: &Soft) -> Option<[Regions; 3]> {
        self.regions_placed(pe_cycles, age_s, soft, &mut Placed::default())
    }

    /// [`VthTlc::regions`] with what has been found before.
    pub(super) fn regions_placed(
        &self,
        pe_cycles: f64,
        age_s: f64,
        soft: &Soft,
        placed: &mut Placed,
    ) -> Option<[Regions; 3]> {
        let states_at = |(pe_cycles, age_s)| self.states(pe_cycles, age_s);
        let stepped = |entry| self.references_of(pe_cycles, entry);
        regions_of_pages(soft, placed, (pe_cycles, age_s), SENSED, states_at, references, stepped)
    }

    /// As [`VthTlc::rber`], but with the read references of an entry of a read-retry table, or as [`VthTlc::equivalent`].
    pub fn rber_read_with(&self, pe_cycles: f64, age_s: f64, entry: Entry) -> [f64; 3] {
        if let Entry::Soft(soft) = entry {
            return self.equivalent(pe_cycles, age_s, &soft);
        }
        match (self.references_of(pe_cycles, entry), self.states(pe_cycles, age_s)) {
            (Some(references), Some(states)) => rber_at(&states, references),
            _ => [0.5; 3],
        }
    }

    /// The read references of an entry of a read-retry table at this wear. `None` if the states of unaged data are out
    /// of order, lowering has brought the references out of order, or the entry has several references at a boundary.
    pub fn references_of(&self, pe_cycles: f64, entry: Entry) -> Option<[f64; 7]> {
        let lowered = match entry {
            Entry::Aged(age_s) => return self.references(pe_cycles, age_s.into()),
            Entry::Lowered(lowered) => lowered,
            Entry::Soft(_) => return None,
        };
        let mut references = self.references(pe_cycles, 0.0)?;
        for (boundary, reference) in references.iter_mut().enumerate() {
            *reference -= lowered * height(boundary).midpoint(height(boundary + 1));
        }
        references.is_sorted().then_some(references)
    }

    /// The susceptible share of the bits of LSB, CSB and MSB pages.
    pub fn susceptible(&self, pe_cycles: f64, age_s: f64) -> [f64; 3] {
        let Some(states) = self.states(pe_cycles, age_s) else { return [1.0; 3] };
        let reach = SENSING_STEPS * self.spec.sensing_step;
        let windows = references(&states).map(|reference| (reference - reach, reference + reach));
        SENSED.map(|sensed| share_near(&states, sensed.iter().map(|&boundary| windows[boundary])))
    }

    /// The read references between neighbouring states. `None` if the states are no longer in order.
    pub fn references(&self, pe_cycles: f64, age_s: f64) -> Option<[f64; 7]> {
        self.states(pe_cycles, age_s).map(|states| references(&states))
    }

    /// Mean and standard deviation of each state, from the erased one. `None` if the states are no longer in order.
    pub fn distributions(&self, pe_cycles: f64, age_s: f64) -> Option<[(f64, f64); 8]> {
        let states = self.states(pe_cycles, age_s)?;
        Some(states.map(|state| (state.middle, state.noise.sigma)))
    }

    fn states(&self, pe_cycles: f64, age_s: f64) -> Option<[State; 8]> {
        let VthTlcSpec { sigma, shift, early, .. } = self.spec;
        let wear = (pe_cycles + OFFSET_PE) / (MEASURED_PE + OFFSET_PE);
        let age = libm::log1p(age_s / T0_S);
        let (moved, widened) = (shift * age * libm::sqrt(wear), age * libm::pow(wear, 0.6));
        let mut states = STATES.map(|[mean, drift, variance, spread]| State {
            middle: mean + drift * moved,
            width: 0.0,
            noise: Noise { sigma: sigma * libm::sqrt(variance + spread * widened), lambda: 0.0 },
        });
        states[0].middle += ERASED_RISE * (pe_cycles - MEASURED_PE);
        if let Some(EarlyLoss { loss, from }) = early {
            let fallen = loss * libm::log1p(age_s / (from.ns() as f64 * 1e-9)) * libm::sqrt(wear);
            for (number, state) in states.iter_mut().enumerate() {
                state.middle -= fallen * height(number);
            }
        }
        states.is_sorted_by(|lower, upper| lower.middle < upper.middle).then_some(states)
    }
}

/// The height of a state above the erased state, from 0 (erased) to 1 (highest).
fn height(state: usize) -> f64 {
    let [erased, highest] = [STATES[0][0], STATES[7][0]];
    (STATES[state][0] - erased) / (highest - erased)
}

/// The RBER of LSB, CSB and MSB pages of cells in these states, read at these references.
fn rber_at(states: &[State; 8], references: [f64; 7]) -> [f64; 3] {
    SENSED.map(|sensed| {
        let mut wrong = 0.0;
        for (number, state) in states.iter().enumerate() {
            // The bit changes from one region between references to the next.
            let stored = sensed.iter().filter(|&&boundary| boundary < number).count();
            let mut low = f64::NEG_INFINITY;
            for region in 0..=sensed.len() {
                let high = sensed.get(region).map_or(f64::INFINITY, |&boundary| references[boundary]);
                if region % 2 != stored % 2 {
                    wrong += state.between(low, high);
                }
                low = high;
            }
        }
        // Eight equally frequent states.
        (wrong / 8.0).min(0.5)
    })
}

fn references(states: &[State; 8]) -> [f64; 7] {
    std::array::from_fn(|i| crossing(&states[i], &states[i + 1]))
}
