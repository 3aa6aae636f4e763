//! `reliability.rber.vth`: threshold voltage distributions of an MLC cell, and the RBER between its states.
//!
//! A cell has four states. The erased state is normal with mean 1.4 V and sigma 0.35 V. Each programmed state is
//! uniform over [Vp, Vp + dvpp] with Vp = 2.6, 3.2, 3.93 V, the result of incremental step pulse programming. Two
//! noises widen all four states: cell-to-cell interference, Gaussian with a sigma of `cell_to_cell`, and random
//! telegraph noise, two-sided exponential with a width of 2.5e-4 N^0.5 V after N P/E cycles. Retention follows Eq. 1 of
//! Y. Du et al., "LaLDPC: Latency-aware LDPC for read performance improvement of solid state drives", MSST 2017
//! (Section II-D), with t0 = 1 hour and x the middle of the state as programmed. Retention moves a state down by mu =
//! K0 K1 (x - x0) ln(1 + t/t0) N^0.5 and adds sigma^2 = K0 K2 (x - x0) ln(1 + t/t0) N^0.6 to the variance of the state.
//! The erased state has x = x0, so retention does not change it.
//!
//! By Eq. 1 data loses nothing without wear. `unworn_loss` = n adds the loss that Eq. 1 has after n P/E cycles to that of
//! any wear: N^0.5 and N^0.6 become N^0.5 + n^0.5 and N^0.6 + n^0.6. The default 0 is Eq. 1.
//!
//! Read references are optimal: they are at the voltages where the densities of neighbouring states cross, since all
//! states are equally frequent. The Gray code is 11, 01, 00, 10 from the erased state up, MSB first, as in Fig. 2 of
//! the partial refresh paper: the bit of the LSB page changes only at the middle boundary, the bit of the MSB page at
//! the outer two boundaries.
//!
//! Soft sensing uses seven references around each boundary, `sensing_step` apart. A cell between the outermost two of
//! them is susceptible.
//!
//! The model is valid for two-bit cells, and while retention leaves the states in order: mu < x - x0. This holds with a
//! margin up to 60,000 P/E cycles and 50 years. Once the order is lost, the states cannot be distinguished, and the
//! RBER is 0.5.

use super::VthSpec;
use super::noise::Noise;
use super::soft::{Placed, Soft, equivalent, regions_of_pages};
use nandlab_ldpc::Regions;

/// Middle and sigma of the erased state, in volts; the middle is x0 of Eq. 1.
const ERASED: (f64, f64) = (1.4, 0.35);
/// Lower edges of the programmed states, in volts.
const PROGRAMMED: [f64; 3] = [2.6, 3.2, 3.93];
/// K0, K1 and K2 of Eq. 1.
const RETENTION: (f64, f64, f64) = (0.333, 4e-4, 2e-6);
/// t0 of Eq. 1, in seconds.
const T0_S: f64 = 3600.0;
/// Width of random telegraph noise after one P/E cycle, in volts.
const TELEGRAPH: f64 = 2.5e-4;
/// Distance from a boundary to the outermost of its seven references of soft sensing, in sensing steps.
pub(super) const SENSING_STEPS: f64 = 3.0;

/// The boundaries that a read of an LSB page and one of an MSB page sense.
const SENSED: [&[usize]; 2] = [&[1], &[0, 2]];

/// A value for each page kind of a two-bit cell.
#[derive(Clone, Copy, Debug, PartialEq)]
#[allow(missing_docs)]
pub struct PerKind {
    pub lsb: f64,
    pub msb: f64,
}

impl PerKind {
    /// The mean of LSB and MSB.
    pub fn mean(&self) -> f64 {
        self.lsb.midpoint(self.msb)
    }
}

/// The susceptible shares of all cells and of a page's bits.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Susceptible {
    /// Susceptible share of all cells.
    pub cell: f64,
    /// Susceptible share of a page's bits: bits whose cells are near a boundary that a read of the page senses.
    pub page: PerKind,
}

/// The exact model. Each call computes its result anew, in about 15 us.
#[derive(Clone, Debug)]
pub struct Vth {
    spec: VthSpec,
}

/// The voltages of the cells of one state: uniform over a width, plus noise.
#[derive(Clone, Copy, Debug)]
pub(super) struct State {
    pub(super) middle: f64,
    /// Width of the uniform part; 0 for a normal state.
    pub(super) width: f64,
    pub(super) noise: Noise,
}

impl Vth {
    /// The model with these parameters.
    pub fn new(spec: &VthSpec) -> Self {
        Self { spec: *spec }
    }

    /// RBER of the pages of a cell after `pe_cycles` P/E cycles and `age_s` seconds; 0 to 0.5.
    pub fn rber(&self, pe_cycles: f64, age_s: f64) -> PerKind {
        let states = self.states(pe_cycles, age_s);
        states.map_or(PerKind { lsb: 0.5, msb: 0.5 }, |states| Self::rber_at(&states, references(&states)))
    }

    /// As [`Vth::rber`], but with the read references that are optimal at age 0, which a read without feedback from
    /// decoding uses. Assumption: the default references of a device follow its wear.
    pub fn rber_unadjusted(&self, pe_cycles: f64, age_s: f64) -> PerKind {
        self.rber_read_for(pe_cycles, age_s, 0.0)
    }

    /// As [`Vth::rber`], but with the read references that are optimal for data of `read_for_s` seconds.
    pub fn rber_read_for(&self, pe_cycles: f64, age_s: f64, read_for_s: f64) -> PerKind {
        match (self.states(pe_cycles, read_for_s), self.states(pe_cycles, age_s)) {
            (Some(others), Some(states)) => Self::rber_at(&states, references(&others)),
            _ => PerKind { lsb: 0.5, msb: 0.5 },
        }
    }

    /// The equivalent RBER of the pages with soft sensing; 0 to 0.5.
    pub fn equivalent(&self, pe_cycles: f64, age_s: f64, soft: &Soft) -> PerKind {
        let [lsb, msb] = equivalent(self.regions(pe_cycles, age_s, soft), soft);
        PerKind { lsb, msb }
    }

    /// The regions of LSB and MSB pages with soft sensing, region 0 at the side of the bit 0: the channel of a bit of the
    /// page. `None` if the states are out of order.
    pub fn regions(&self, pe_cycles: f64, age_s: f64, soft: &Soft) -> Option<[Regions; 2]> {
        self.regions_placed(pe_cycles, age_s, soft, &mut Placed::default())
    }

    /// [`Vth::regions`] with what has been found before.
    pub(super) fn regions_placed(
        &self,
        pe_cycles: f64,
        age_s: f64,
        soft: &Soft,
        placed: &mut Placed,
    ) -> Option<[Regions; 2]> {
        let states_at = |(pe_cycles, age_s)| self.states(pe_cycles, age_s);
        regions_of_pages(soft, placed, (pe_cycles, age_s), SENSED, states_at, references, |_| {
            unreachable!("a spec has equal steps only with vth-tlc")
        })
    }

    /// The RBER of the pages of cells in these states, read at these references.
    fn rber_at(states: &[State; 4], [low, middle, high]: [f64; 3]) -> PerKind {
        let [er, p1, p2, p3] = states;
        let lsb = er.above(middle) + p1.above(middle) + p2.below(middle) + p3.below(middle);
        let inner = [p1, p2].map(|state| state.below(low) + state.above(high));
        let outer = [er, p3].map(|state| state.between(low, high));
        let msb = inner[0] + inner[1] + outer[0] + outer[1];
        // Four equally frequent states.
        PerKind { lsb: (lsb / 4.0).min(0.5), msb: (msb / 4.0).min(0.5) }
    }

    /// Shares of susceptible cells and bits after `pe_cycles` P/E cycles and `age_s` seconds.
    pub fn susceptible(&self, pe_cycles: f64, age_s: f64) -> Susceptible {
        let Some(states) = self.states(pe_cycles, age_s) else {
            return Susceptible { cell: 1.0, page: PerKind { lsb: 1.0, msb: 1.0 } };
        };
        let reach = SENSING_STEPS * self.spec.sensing_step;
        let windows = references(&states).map(|reference| (reference - reach, reference + reach));
        let [low, middle, high] = windows;
        Susceptible {
            cell: share_near(&states, windows),
            page: PerKind { lsb: share_near(&states, [middle]), msb: share_near(&states, [low, high]) },
        }
    }

    /// The read references between the erased state, P1, P2 and P3, in volts. `None` if the states are no longer in
    /// order.
    pub fn references(&self, pe_cycles: f64, age_s: f64) -> Option<[f64; 3]> {
        self.states(pe_cycles, age_s).map(|states| references(&states))
    }

    /// Eq. 1 and both noises, applied to all states; `None` once retention has moved the programmed states onto the
    /// erased one.
    pub(super) fn states(&self, pe_cycles: f64, age_s: f64) -> Option<[State; 4]> {
        let VthSpec { dvpp, cell_to_cell, unworn_loss, .. } = self.spec;
        let (k0, k1, k2) = RETENTION;
        let decay = k0 * libm::log1p(age_s / T0_S);
        let shift = k1 * decay * (libm::sqrt(pe_cycles) + libm::sqrt(unworn_loss));
        if shift >= 1.0 {
            return None;
        }
        let lambda = TELEGRAPH * libm::sqrt(pe_cycles);
        let variance = cell_to_cell * cell_to_cell;
        let spread = k2 * decay * (libm::pow(pe_cycles, 0.6) + libm::pow(unworn_loss, 0.6));
        let state = |middle: f64, width: f64, variance: f64| {
            let above = middle - ERASED.0;
            let sigma = libm::sqrt(variance + spread * above);
            State { middle: middle - shift * above, width, noise: Noise { sigma, lambda } }
        };
        let [p1, p2, p3] = PROGRAMMED.map(|edge| state(edge + dvpp / 2.0, dvpp, variance));
        Some([state(ERASED.0, 0.0, variance + ERASED.1 * ERASED.1), p1, p2, p3])
    }
}

impl State {
    /// Share of cells above a voltage.
    fn above(&self, volts: f64) -> f64 {
        let z = volts - self.middle;
        if self.width == 0.0 {
            return self.noise.tail(z);
        }
        let half = self.width / 2.0;
        let share = (self.noise.tail_integral(z - half) - self.noise.tail_integral(z + half)) / self.width;
        share.clamp(0.0, 1.0)
    }

    /// Share of cells below a voltage, by the symmetry of the state.
    fn below(&self, volts: f64) -> f64 {
        self.above(2.0 * self.middle - volts)
    }

    /// Share of cells between two voltages; 0 if `low` is above `high`. Computed from small tails only, to keep its
    /// precision.
    pub(super) fn between(&self, low: f64, high: f64) -> f64 {
        Tails { low, ..Tails::new(self) }.up_to(high)
    }

    /// Probability density of the cells at a voltage, per volt.
    fn density(&self, volts: f64) -> f64 {
        let z = (volts - self.middle).abs();
        if self.width == 0.0 {
            return self.noise.density(z);
        }
        let half = self.width / 2.0;
        (self.noise.tail(z - half) - self.noise.tail(z + half)) / self.width
    }
}

/// The shares of the cells of a state between voltages in ascending order. The share on one side of a voltage serves the
/// interval below it and that above it.
pub(super) struct Tails<'a> {
    state: &'a State,
    low: f64,
    /// The shares above and below `low`, as far as they are known.
    above: Option<f64>,
    below: Option<f64>,
}

impl<'a> Tails<'a> {
    pub(super) fn new(state: &'a State) -> Self {
        Self { state, low: f64::NEG_INFINITY, above: None, below: None }
    }

    /// The share from the last voltage up to `high`, which is then the last one; 0 if the last one is above `high`.
    /// Computed from small tails only, to keep its precision.
    pub(super) fn up_to(&mut self, high: f64) -> f64 {
        let (state, low) = (self.state, self.low);
        let above_low = || self.above.unwrap_or_else(|| state.above(low));
        let below_low = || self.below.unwrap_or_else(|| state.below(low));
        let (share, above, below) = if low >= state.middle {
            let above = state.above(high);
            (above_low() - above, Some(above), None)
        } else if high <= state.middle {
            let below = state.below(high);
            (below - below_low(), None, Some(below))
        } else {
            let above = state.above(high);
            (1.0 - below_low() - above, Some(above), None)
        };
        (self.low, self.above, self.below) = (high, above, below);
        share.max(0.0)
    }
}

/// The share of the cells of equally frequent states that are in any of `windows`, which are in ascending order.
pub(super) fn share_near(states: &[State], windows: impl IntoIterator<Item = (f64, f64)>) -> f64 {
    let mut sum = 0.0;
    let mut from = f64::NEG_INFINITY;
    // Wide windows overlap. A cell in two windows counts once.
    for (low, high) in windows {
        let low = low.max(from);
        sum += states.iter().map(|state| state.between(low, high)).sum::<f64>();
        from = high;
    }
    sum / states.len() as f64
}

fn references(states: &[State; 4]) -> [f64; 3] {
    [0, 1, 2].map(|i| crossing(&states[i], &states[i + 1]))
}

/// The voltage at which the densities of two neighbouring states cross. Each density is unimodal and symmetric
/// (convolutions of log-concave densities are), so between the middles one density falls, the other rises, and there is
/// one crossing.
pub(super) fn crossing(lower: &State, upper: &State) -> f64 {
    /// Precision of the crossing. The RBER has its minimum at the crossing, so a deviation of this size hardly changes
    /// the RBER.
    const EXACT_V: f64 = 1e-10;
    // The logarithm of the ratio is nearly linear between the middles, so the Illinois method (false position with
    // halving) takes about eight steps.
    let ratio = |volts: f64| match (lower.density(volts), upper.density(volts)) {
        (l, u) if l <= 0.0 && u <= 0.0 => 0.0,
        (l, _) if l <= 0.0 => f64::NEG_INFINITY,
        (_, u) if u <= 0.0 => f64::INFINITY,
        (l, u) => libm::log(l / u),
    };
    let (mut low, mut high) = (lower.middle, upper.middle);
    let (mut at_low, mut at_high) = (ratio(low), ratio(high));
    if at_low <= 0.0 {
        return low;
    }
    if at_high >= 0.0 {
        return high;
    }
    let mut side = 0i8;
    while high - low > EXACT_V {
        let straight = (low * at_high - high * at_low) / (at_high - at_low);
        // `straight` may be NaN if the logarithm is infinite at an end.
        let volts = if straight > low && straight < high { straight } else { low.midpoint(high) };
        let at = ratio(volts);
        if at.abs() < EXACT_V {
            return volts;
        }
        if at > 0.0 {
            (low, at_low) = (volts, at);
            if side > 0 {
                at_high /= 2.0;
            }
            side = 1;
        } else {
            (high, at_high) = (volts, at);
            if side < 0 {
                at_low /= 2.0;
            }
            side = -1;
        }
        if low.midpoint(high) <= low || low.midpoint(high) >= high {
            break;
        }
    }
    low.midpoint(high)
}
