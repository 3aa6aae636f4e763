//! Soft sensing: what several read references at each boundary tell of the bits of a page.
//!
//! The references of a page, those of all its boundaries, divide the cells into regions, and a decoder takes the LLR of
//! the region of each bit. The regions of a page are those of its boundaries, averaged: region k of n + 1 counts from the
//! side of the bit 0, at whichever boundary the cell is. Which boundary it is would be told by the other pages of the
//! wordline alone, and these are not read.
//!
//! **Equivalent RBER.** The equivalent RBER of a page is that of hard decisions which are as hard to decode. So one limit
//! of the RBER, one curve of frame error rates and one curve of iterations serve every number of references. How hard a
//! channel is to decode is its equivocation H(bit | region), in which regions that are sure of their bits count more
//! ([`Regions::difficulty`]): with the one constant of a code, which the boundaries of soft decisions give, it predicts
//! these within 4 %. By how much it is off at the boundary of as many references is known, and taken away
//! ([`Soft::residual`]); the boundaries of the pages of `vth` and `vth-tlc` are then predicted within 5 %
//! (`crates/nandlab/tests/drive/frames.rs`).

use super::Entry;
use super::vth::{State, Tails};
use nandlab_ldpc::{REFERENCES_MAX, Regions, most_informative_up_to, rber_of_difficulty};

/// Candidates for a reference placed for the most information.
const CANDIDATES: usize = 81;
/// The candidates lie between the voltages beyond which this share of the cells of the two states is.
const TAIL: f64 = 2e-6;

/// A read with several references at each boundary.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Soft {
    /// References at each boundary, 1 to 7.
    pub references: u8,
    /// Where they are.
    pub placement: Placement,
    /// What they are placed around.
    pub centre: Centre,
    /// How much more a region counts that is sure of its bits: [`nandlab_ldpc::Shipped::certainty`].
    pub certainty: f64,
    /// By which the equivalent RBER is divided: how far the difficulty is off with these references at a Gaussian boundary
    /// ([`nandlab_ldpc::Shipped::equidistant_residual`]). 1 leaves it as the difficulty has it.
    pub residual: f64,
    /// The share that counts of an RBER which is not the model's, such as that of read disturb: the RBER at which a code
    /// fails with hard decisions, divided by that at which it fails with these references at a Gaussian boundary.
    pub gain: f64,
}

/// Where the references of soft sensing are at a boundary.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Placement {
    /// This far apart, in the unit of the model's voltages, whatever the wear.
    Equidistant(f64),
    /// Where they give most information in the state of the page, which a controller has to find.
    MostInformative,
    /// As far from the centre as those that give most information in this state.
    Designed {
        /// P/E cycles.
        pe_cycles: u32,
        /// Age of the data, in seconds.
        age_s: u32,
    },
}

/// The references of a hard read, around which those of soft sensing are.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Centre {
    /// The optimum of the page.
    Optimal,
    /// The optimum of data of age 0 at the same wear.
    Default,
    /// Those of the default references and the entries of a read-retry table with which the page has the lowest
    /// equivalent RBER, as a controller finds them that has tried all of them.
    Best(Shifts),
}

/// The most entries of [`Shifts::Ages`].
pub const SHIFTS_MAX: usize = 12;

/// The entries of a read-retry table besides the default references.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Shifts {
    /// The first `len` ages, in seconds: the references are optimal for data of this age.
    Ages {
        /// The ages.
        ages: [u32; SHIFTS_MAX],
        /// Their number.
        len: u8,
    },
    /// Equal steps, as of [`Entry::Lowered`].
    Steps {
        /// Number of steps.
        count: u8,
        /// Distance of one step.
        size: f64,
    },
}

impl Shifts {
    /// The entries, in order.
    pub fn entries(&self) -> Vec<Entry> {
        match self {
            Self::Ages { ages, len } => {
                ages[..usize::from(*len)].iter().map(|&age_s| Entry::Aged(age_s)).collect()
            }
            Self::Steps { count, size } => {
                (1..=*count).map(|step| Entry::Lowered(f64::from(step) * size)).collect()
            }
        }
    }
}

/// Of the regions around the default references and around each entry those that are easiest to decode, page by page.
fn best<const N: usize>(
    shifts: &Shifts,
    certainty: f64,
    of_centre: impl FnMut(Entry) -> Option<[Regions; N]>,
) -> Option<[Regions; N]> {
    let all = [Entry::Aged(0)].into_iter().chain(shifts.entries());
    all.filter_map(of_centre).reduce(|mut least, found| {
        for (least, found) in least.iter_mut().zip(found) {
            if found.difficulty(certainty) < least.difficulty(certainty) {
                *least = found;
            }
        }
        least
    })
}

/// The states of which something is kept: more than the nodes of a cell of a table.
const KEPT: usize = 6;

/// P/E cycles and age in seconds, which the states of the cells follow from.
pub(super) type At = (f64, f64);

/// What is known of the states that were asked for last.
#[derive(Debug)]
struct Recent<T>(Vec<(At, T)>);

impl<T> Default for Recent<T> {
    fn default() -> Self {
        Self(Vec::new())
    }
}

impl<T> Recent<T> {
    fn get(&mut self, at: At, find: impl FnOnce() -> T) -> &T {
        let known = self.0.iter().position(|&(of, _)| of == at);
        let place = known.unwrap_or_else(|| {
            self.0.truncate(KEPT - 1);
            self.0.push((at, find()));
            self.0.len() - 1
        });
        self.0[..=place].rotate_right(1);
        &self.0[0].1
    }
}

/// What all read levels ask for of the same states, and what takes long to find.
#[derive(Debug, Default)]
pub(super) struct Placed {
    /// By boundary each number of references, from 1 on, that give most information.
    informative: Recent<Vec<[Vec<f64>; REFERENCES_MAX]>>,
    /// The optimum of each boundary; none of states that are out of order.
    optima: Recent<Vec<f64>>,
}

impl Placed {
    /// The optima of the boundaries of the states `at`.
    fn optima<const BOUNDARIES: usize>(
        &mut self,
        at: At,
        find: impl FnOnce() -> Option<[f64; BOUNDARIES]>,
    ) -> Option<[f64; BOUNDARIES]> {
        self.optima.get(at, || find().map_or_else(Vec::new, Vec::from)).as_slice().try_into().ok()
    }

    /// `count` references of each boundary that give most information, in ascending order; a single one is at the
    /// optimum.
    fn references(&mut self, at: At, states: &[State], optima: &[f64], count: usize) -> Vec<Vec<f64>> {
        if count == 1 {
            return optima.iter().map(|&optimum| vec![optimum]).collect();
        }
        let find = || states.windows(2).map(|pair| informative(&pair[0], &pair[1])).collect();
        self.informative.get(at, find).iter().map(|of_boundary| of_boundary[count - 1].clone()).collect()
    }
}

/// Of [`Placement::Designed`] the distances of the references of each boundary from its centre, in ascending order.
/// `states_at`: those after these P/E cycles and seconds. `None` for other placements, and if those states are not in order.
fn design_distances<const N: usize, const BOUNDARIES: usize>(
    soft: &Soft,
    placed: &mut Placed,
    states_at: impl FnOnce(At) -> Option<[State; N]>,
    optimal: fn(&[State; N]) -> [f64; BOUNDARIES],
) -> Option<Vec<Vec<f64>>> {
    let Placement::Designed { pe_cycles, age_s } = soft.placement else { return None };
    let at = (pe_cycles.into(), age_s.into());
    let states = states_at(at)?;
    let optima = placed.optima(at, || Some(optimal(&states)))?;
    let mut distances = placed.references(at, &states, &optima, usize::from(soft.references));
    for (of_boundary, optimum) in distances.iter_mut().zip(optima) {
        of_boundary.iter_mut().for_each(|volts| *volts -= optimum);
    }
    Some(distances)
}

/// The regions of the pages of a wordline at P/E cycles and an age, each of which senses the boundaries `sensed`; `None`
/// if the states, or the references around which those of soft sensing are, are out of order. `stepped`: the references of
/// an entry that has steps.
pub(super) fn regions_of_pages<const STATES: usize, const BOUNDARIES: usize, const PAGES: usize>(
    soft: &Soft,
    placed: &mut Placed,
    at: At,
    sensed: [&[usize]; PAGES],
    states_at: impl Fn(At) -> Option<[State; STATES]>,
    optimal: fn(&[State; STATES]) -> [f64; BOUNDARIES],
    stepped: impl Fn(Entry) -> Option<[f64; BOUNDARIES]>,
) -> Option<[Regions; PAGES]> {
    let designed = design_distances(soft, placed, &states_at, optimal);
    let states = states_at(at)?;
    // Of data of this age.
    let optima = |placed: &mut Placed, age_s: f64| {
        let of = (at.0, age_s);
        placed.optima(of, || states_at(of).map(|states| optimal(&states)))
    };
    let around = |placed: &mut Placed, centres: Option<[f64; BOUNDARIES]>| {
        let references = references(soft, placed, (at, &states), &centres?, designed.as_deref());
        Some(sensed.map(|sensed| regions(&states, sensed, &references)))
    };
    let centres = match &soft.centre {
        Centre::Optimal => optima(placed, at.1),
        Centre::Default => optima(placed, 0.0),
        Centre::Best(shifts) => {
            return best(shifts, soft.certainty, |entry| {
                let centres = match entry {
                    Entry::Aged(age_s) => optima(placed, age_s.into()),
                    Entry::Lowered(_) | Entry::Soft(_) => stepped(entry),
                };
                around(placed, centres)
            });
        }
    };
    around(placed, centres)
}

/// The references of each boundary in ascending order, around `centres`, of the states `at`. `designed`: those of
/// [`design_distances`].
fn references(
    soft: &Soft,
    placed: &mut Placed,
    (at, states): (At, &[State]),
    centres: &[f64],
    designed: Option<&[Vec<f64>]>,
) -> Vec<Vec<f64>> {
    let count = usize::from(soft.references);
    match (soft.placement, designed) {
        (Placement::Equidistant(spacing), _) => {
            let middle = (count as f64 - 1.0) / 2.0;
            let around = |&centre: &f64| (0..count).map(|i| centre + (i as f64 - middle) * spacing).collect();
            centres.iter().map(around).collect()
        }
        (Placement::Designed { .. }, Some(distances)) => {
            let around = |(distances, centre): (&Vec<f64>, &f64)| {
                distances.iter().map(|distance| distance + centre).collect()
            };
            distances.iter().zip(centres).map(around).collect()
        }
        _ => placed.references(at, states, centres, count),
    }
}

/// The references between two states that give most information of which of the two a cell has, in ascending order: each
/// number of references.
fn informative(lower: &State, upper: &State) -> [Vec<f64>; REFERENCES_MAX] {
    let end = |from: f64, to: f64, is_within: &dyn Fn(f64) -> bool| {
        let (mut inside, mut outside) = (from, to);
        for _ in 0..40 {
            let middle = inside.midpoint(outside);
            if is_within(middle) { inside = middle } else { outside = middle }
        }
        inside
    };
    let (low, high) = (lower.middle, upper.middle);
    let up = end(low, high, &|volts| lower.between(volts, f64::INFINITY) > TAIL);
    let down = end(high, low, &|volts| upper.between(f64::NEG_INFINITY, volts) > TAIL);
    // States that hardly overlap: the references are in the gap.
    let (from, to) = (up.min(down), up.max(down));
    let candidates: Vec<f64> =
        (0..CANDIDATES).map(|i| to - (to - from) * i as f64 / (CANDIDATES - 1) as f64).collect();
    let above = |state: &State| -> Vec<f64> {
        candidates.iter().map(|&volts| state.between(volts, f64::INFINITY)).collect()
    };
    let mut chosen = most_informative_up_to([&above(upper), &above(lower)], REFERENCES_MAX).into_iter();
    std::array::from_fn(|_| {
        let chosen = chosen.next().expect("each number of references");
        chosen.into_iter().rev().map(|index| candidates[index]).collect()
    })
}

/// The regions of a page that senses the boundaries `sensed`, with these references of each boundary.
fn regions(states: &[State], sensed: &[usize], references: &[Vec<f64>]) -> Regions {
    let last = references[sensed[0]].len();
    let mut shares = [vec![0.0; last + 1], vec![0.0; last + 1]];
    for (number, state) in states.iter().enumerate() {
        // The bit changes at each boundary; here it is 0 below the first one.
        let stored = sensed.iter().filter(|&&boundary| boundary < number).count() % 2;
        let (mut low, mut tails) = (f64::NEG_INFINITY, Tails::new(state));
        let mut region = 0;
        for (i, &boundary) in sensed.iter().enumerate() {
            for (k, &reference) in references[boundary].iter().enumerate() {
                region = if i % 2 == 0 { k } else { last - k };
                let high = reference.max(low);
                shares[stored][region] += tails.up_to(high);
                low = high;
            }
            region = if i % 2 == 0 { last } else { 0 };
        }
        shares[stored][region] += tails.up_to(f64::INFINITY);
    }
    for of in &mut shares {
        let sum: f64 = of.iter().sum();
        of.iter_mut().for_each(|share| *share /= sum);
    }
    Regions::new(&shares[0], &shares[1]).expect("shares of all cells")
}

/// The equivalent RBER, 0 to 0.5, of pages with these regions; 0.5 without regions.
pub(super) fn equivalent<const N: usize>(regions: Option<[Regions; N]>, soft: &Soft) -> [f64; N] {
    let of_page = |regions: Regions| {
        let rber = rber_of_difficulty(regions.difficulty(soft.certainty), soft.certainty);
        (rber / soft.residual).min(0.5)
    };
    regions.map_or([0.5; N], |regions| regions.map(of_page))
}

#[cfg(test)]
mod tests {
    use super::super::vth::Vth;
    use super::super::vth_tlc::VthTlc;
    use super::super::{VthSpec, VthTlcSpec};
    use super::*;

    const MLC: VthSpec =
        VthSpec { dvpp: 0.38, cell_to_cell: 0.05, sensing_step: 0.03, per_page_kind: true, unworn_loss: 0.0 };
    const TLC: VthTlcSpec =
        VthTlcSpec { sigma: 1.0, shift: 1.0, sensing_step: 4.0, early: None, layers: None };

    /// What is kept of other states and other levels changes no bit of a value.
    #[test]
    fn references_found_before_change_nothing() {
        let mut ages = [0; SHIFTS_MAX];
        ages[..2].copy_from_slice(&[2_592_000, 31_536_000]);
        let centres = [Centre::Optimal, Centre::Default, Centre::Best(Shifts::Ages { ages, len: 2 })];
        let placements = [
            Placement::MostInformative,
            Placement::Designed { pe_cycles: 3000, age_s: 7_776_000 },
            Placement::Equidistant(0.03),
        ];
        let (mlc, tlc) = (Vth::new(&MLC), VthTlc::new(&TLC));
        let (mut of_mlc, mut of_tlc) = (Placed::default(), Placed::default());
        // More states than are kept, some of them twice.
        for state in [0, 1, 2, 3, 0, 4, 5, 6, 7, 3, 1] {
            let (pe_cycles, age_s) = (500.0 * f64::from(state), 86_400.0 * f64::from(state * state));
            for references in [3, 1, 7, 2] {
                for (placement, centre) in
                    placements.iter().flat_map(|it| centres.iter().map(move |centre| (*it, *centre)))
                {
                    let soft =
                        Soft { references, placement, centre, certainty: 0.1, residual: 1.1, gain: 1.0 };
                    let kept = mlc.regions_placed(pe_cycles, age_s, &soft, &mut of_mlc);
                    let anew = mlc.equivalent(pe_cycles, age_s, &soft);
                    assert_eq!(equivalent(kept, &soft), [anew.lsb, anew.msb], "{pe_cycles} {age_s} {soft:?}");
                    let kept = tlc.regions_placed(pe_cycles, age_s, &soft, &mut of_tlc);
                    let anew = tlc.equivalent(pe_cycles, age_s, &soft);
                    assert_eq!(equivalent(kept, &soft), anew, "{pe_cycles} {age_s} {soft:?}");
                }
            }
        }
        assert!(of_mlc.informative.0.len() == KEPT && of_tlc.optima.0.len() == KEPT);
    }

    /// The naive twin computes both tails of each interval.
    #[test]
    fn shares_between_ascending_voltages_agree_with_each_interval_alone() {
        let mut stream = crate::base::rng::Stream::new(1, "tails");
        for state in Vth::new(&MLC).states(3000.0, 1e7).expect("states in order") {
            for _ in 0..200 {
                let mut volts: Vec<f64> = (0..8).map(|_| 6.0 * stream.unit()).collect();
                // A reference at the middle of the state, and one twice.
                volts.extend([state.middle, volts[0], f64::INFINITY]);
                volts.sort_by(f64::total_cmp);
                let (mut tails, mut low) = (Tails::new(&state), f64::NEG_INFINITY);
                for high in volts {
                    assert_eq!(tails.up_to(high), state.between(low, high), "{low} to {high}");
                    low = high;
                }
            }
        }
    }
}
