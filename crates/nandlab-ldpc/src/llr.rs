//! Channels with a few outputs, and the LLRs of their outputs.
//!
//! Sensing a page at one read reference per boundary gives hard decisions: two regions. Every further reference splits
//! a region. A region is an output of a discrete channel with a probability for each value of the bit, whatever the
//! model of the threshold voltages; its LLR is the logarithm of the ratio of the two.

use crate::error::LdpcError;

/// The most read references of a boundary, and one less than the most regions.
pub const REFERENCES_MAX: usize = 7;

/// The largest difference between 1 and a sum of probabilities.
const SUM_TOLERANCE: f64 = 1e-6;

/// LLRs of a smaller magnitude, in nats, are those of equal probabilities.
const ROUNDING: f64 = 1e-9;

/// The regions into which read references divide the threshold voltages, with their probabilities: a discrete channel
/// with binary input.
#[derive(Clone, Debug, PartialEq)]
pub struct Regions {
    /// The probability of each region, if the bit is 0 and if it is 1.
    probabilities: [Vec<f64>; 2],
}

impl Regions {
    /// The regions with the probabilities `of_0` for bits that are 0 and `of_1` for bits that are 1.
    ///
    /// # Errors
    ///
    /// If there are not 2 to [`REFERENCES_MAX`] + 1 regions, the same number for both values, or if the probabilities
    /// are not in 0..=1 or do not add up to 1.
    pub fn new(of_0: &[f64], of_1: &[f64]) -> Result<Self, LdpcError> {
        if of_0.len() != of_1.len() || !(2..=REFERENCES_MAX + 1).contains(&of_0.len()) {
            return Err(LdpcError::new(
                format!("{} regions for bits that are 0 and {} for bits that are 1", of_0.len(), of_1.len()),
                format!("give the same number for both, 2 to {}", REFERENCES_MAX + 1),
            ));
        }
        for (bit, of) in [of_0, of_1].iter().enumerate() {
            if let Some(wrong) = of.iter().find(|p| !(0.0..=1.0).contains(*p)) {
                return Err(LdpcError::new(
                    format!("a region has the probability {wrong} for bits that are {bit}"),
                    "give probabilities in 0..=1",
                ));
            }
            let sum: f64 = of.iter().sum();
            if (sum - 1.0).abs() > SUM_TOLERANCE {
                return Err(LdpcError::new(
                    format!("the probabilities for bits that are {bit} add up to {sum}"),
                    "divide them by their sum",
                ));
            }
        }
        Ok(Self { probabilities: [of_0.to_vec(), of_1.to_vec()] })
    }

    /// Hard decisions: region 0 for bits read as 0, region 1 for bits read as 1, each of them wrong with probability
    /// `rber`.
    ///
    /// # Errors
    ///
    /// If `rber` is not in 0..=0.5.
    pub fn hard(rber: f64) -> Result<Self, LdpcError> {
        if !(0.0..=0.5).contains(&rber) {
            return Err(LdpcError::new(
                format!("the raw bit error rate {rber} is not in 0..=0.5"),
                "invert the bits if more than half of them are wrong",
            ));
        }
        Self::new(&[1.0 - rber, rber], &[rber, 1.0 - rber])
    }

    /// The regions between read references at a boundary of two Gaussian threshold voltage distributions with means +1
    /// (bits that are 0) and -1 (bits that are 1) and the standard deviation `sigma`. `references` are voltages in the
    /// same unit, in descending order; region 0 is above the first one. With one reference at 0 the raw bit error rate
    /// is Q(1 / `sigma`).
    ///
    /// # Errors
    ///
    /// If `sigma` is not positive, or if there are not 1 to [`REFERENCES_MAX`] references in descending order.
    pub fn gaussian(sigma: f64, references: &[f64]) -> Result<Self, LdpcError> {
        let descending = references.windows(2).all(|pair| pair[0] > pair[1]);
        if !(sigma > 0.0 && sigma.is_finite() && descending && references.iter().all(|v| v.is_finite())) {
            return Err(LdpcError::new(
                format!("a standard deviation of {sigma} with the references {references:?}"),
                "give a positive standard deviation, and references in descending order",
            ));
        }
        // The tail of the Gaussian distribution above each reference.
        let regions = |mean: f64| {
            let above = |v: &f64| Self::gaussian_tail((v - mean) / sigma);
            let ends: Vec<f64> =
                std::iter::once(0.0).chain(references.iter().map(above)).chain([1.0]).collect();
            ends.windows(2).map(|pair| pair[1] - pair[0]).collect::<Vec<f64>>()
        };
        Self::new(&regions(1.0), &regions(-1.0))
    }

    /// The regions of a Gaussian boundary at which one reference has the raw bit error rate `rber`, with `references`
    /// references around it: `spacing` standard deviations apart, or, with `None`, where they give most information.
    ///
    /// # Errors
    ///
    /// If `rber` is not above 0 and below 0.5, or if there are not 1 to [`REFERENCES_MAX`] references.
    pub fn of_boundary(rber: f64, references: usize, spacing: Option<f64>) -> Result<Self, LdpcError> {
        let sigma = Self::sigma_of(rber)?;
        let at = match spacing {
            Some(spacing) => {
                let middle = (references as f64 - 1.0) / 2.0;
                (0..references).map(|i| (middle - i as f64) * spacing * sigma).collect()
            }
            None if !(2..=REFERENCES_MAX).contains(&references) => vec![0.0; references],
            None => {
                let candidates: Vec<f64> = (-200i32..=200).map(|i| -f64::from(i) / 200.0).collect();
                let above = |mean| -> Vec<f64> {
                    candidates.iter().map(|volts| Self::gaussian_tail((volts - mean) / sigma)).collect()
                };
                let chosen = most_informative([&above(1.0), &above(-1.0)], references);
                chosen.into_iter().map(|index| candidates[index]).collect::<Vec<f64>>()
            }
        };
        Self::gaussian(sigma, &at)
    }

    /// The standard deviation at which one reference between the two distributions of [`Regions::gaussian`] has this raw
    /// bit error rate, Q(1 / sigma).
    ///
    /// # Errors
    ///
    /// If `rber` is not above 0 and below 0.5.
    pub fn sigma_of(rber: f64) -> Result<f64, LdpcError> {
        if !(rber > 0.0 && rber < 0.5) {
            return Err(LdpcError::new(
                format!("the raw bit error rate {rber} is not above 0 and below 0.5"),
                "choose one between 1e-4 and 0.1",
            ));
        }
        let (mut low, mut high) = (0.0, 40.0);
        for _ in 0..100 {
            let middle = 0.5 * (low + high);
            if Self::gaussian_tail(middle) > rber { low = middle } else { high = middle }
        }
        Ok(1.0 / low)
    }

    /// Q(x), the share of the standard normal distribution above x.
    pub fn gaussian_tail(x: f64) -> f64 {
        0.5 * libm::erfc(x / std::f64::consts::SQRT_2)
    }

    /// Number of regions.
    pub fn count(&self) -> usize {
        self.probabilities[0].len()
    }

    /// The probabilities of the regions for bits that are `bit`.
    pub fn of(&self, bit: bool) -> &[f64] {
        &self.probabilities[usize::from(bit)]
    }

    /// The LLR of each region in nats, positive where 0 is more probable; infinite where one of the values is
    /// impossible, and 0 where both are.
    pub fn llrs(&self) -> Vec<f64> {
        let llr = |(&p0, &p1): (&f64, &f64)| match (p0 > 0.0, p1 > 0.0) {
            (true, true) => libm::log(p0) - libm::log(p1),
            (true, false) => f64::INFINITY,
            (false, true) => f64::NEG_INFINITY,
            (false, false) => 0.0,
        };
        self.probabilities[0].iter().zip(&self.probabilities[1]).map(llr).collect()
    }

    /// The LLR of each region for a decoder: rounded, in the unit in which the largest magnitude is `largest`.
    ///
    /// Min-sum decoding does not depend on the unit of LLRs, so the unit only sets the resolution. Infinite LLRs count
    /// as twice the largest finite one, and as `largest` if none is finite. LLRs of less than 1e-9 nats, which come
    /// from the rounding of equal probabilities, are 0. All others are rounded to 1 or -1 at least, so that they keep
    /// their hard decisions.
    ///
    /// # Panics
    ///
    /// If `largest` is not in 1..=127.
    pub fn quantised(&self, largest: u8) -> Vec<i8> {
        assert!((1..=127).contains(&largest), "the largest LLR {largest} is not in 1..=127");
        let mut llrs = self.llrs();
        let finite = llrs.iter().filter(|llr| llr.is_finite()).fold(0.0f64, |max, llr| max.max(llr.abs()));
        let infinite = if finite > 0.0 { 2.0 * finite } else { 1.0 };
        llrs.iter_mut().filter(|llr| llr.is_infinite()).for_each(|llr| *llr = infinite.copysign(*llr));
        let max = llrs.iter().fold(0.0f64, |max, llr| max.max(llr.abs()));
        let quantise = |&llr: &f64| {
            if llr.abs() < ROUNDING {
                return 0;
            }
            let scaled = libm::round(llr / max * f64::from(largest));
            if scaled == 0.0 { 1.0f64.copysign(llr) as i8 } else { scaled as i8 }
        };
        llrs.iter().map(quantise).collect()
    }

    /// The share of bits that hard decisions get wrong, if both values are equally frequent: of each region the less
    /// probable value.
    pub fn rber(&self) -> f64 {
        0.5 * self.probabilities[0]
            .iter()
            .zip(&self.probabilities[1])
            .map(|(&p0, &p1)| p0.min(p1))
            .sum::<f64>()
    }

    /// The mutual information between bit and region in bits, if both values are equally frequent: the rate of the best
    /// code that the channel allows.
    pub fn information(&self) -> f64 {
        1.0 - self.equivocation()
    }

    /// The equivocation of the bit in bits, if both values are equally frequent: what the regions leave unknown of it,
    /// 1 - [`Regions::information`]. Small values keep their precision.
    pub fn equivocation(&self) -> f64 {
        self.difficulty(0.0)
    }

    /// How hard the channel is to decode: the equivocation, in which each region counts 1 + `certainty` |LLR| times, with
    /// its LLR in nats. A wrong bit of a region that is sure of its bits costs a min-sum decoder more than what the
    /// region leaves unknown. Codes fail at nearly the same value whatever the channel
    /// ([`Shipped::certainty`](crate::Shipped::certainty)).
    pub fn difficulty(&self, certainty: f64) -> f64 {
        let [of_0, of_1] = &self.probabilities;
        let of_region = |(&p0, &p1): (&f64, &f64)| match p0 > 0.0 && p1 > 0.0 {
            true => uncertainty(p0, p1) * (1.0 + certainty * libm::fabs(libm::log(p0 / p1))),
            false => 0.0,
        };
        of_0.iter().zip(of_1).map(of_region).sum()
    }
}

/// What an output with the probabilities `p0` and `p1` adds to the equivocation, in bits.
fn uncertainty(p0: f64, p1: f64) -> f64 {
    let part = |p: f64, other: f64| if p > 0.0 { 0.5 * p * libm::log1p(other / p) } else { 0.0 };
    (part(p0, p1) + part(p1, p0)) * std::f64::consts::LOG2_E
}

/// The raw bit error rate of the binary symmetric channel with this [`Regions::difficulty`], in 0..=0.5; 0.5 from a
/// difficulty of 1 on.
pub fn rber_of_difficulty(difficulty: f64, certainty: f64) -> f64 {
    let of = |rber: f64| {
        2.0 * uncertainty(rber, 1.0 - rber) * (1.0 + certainty * (libm::log1p(-rber) - libm::log(rber)))
    };
    if difficulty >= 1.0 {
        return 0.5;
    }
    if difficulty <= 0.0 {
        return 0.0;
    }
    // Bisection of the logarithm: the difficulty is above the rate, and below 1,000 times the rate down to 1e-17.
    let (mut low, mut high) = (libm::log(difficulty / 1e3), libm::log(difficulty.min(0.5)));
    for _ in 0..60 {
        let middle = 0.5 * (low + high);
        if of(libm::exp(middle)) < difficulty { low = middle } else { high = middle }
    }
    libm::exp(0.5 * (low + high))
}

/// The `count` of the candidates that, as read references, give most information of a bit whose values are equally
/// frequent: their indices, in the order of the candidates. `above` has, for bits that are 0 and for bits that are 1,
/// the share of cells above each candidate, from the highest voltage to the lowest one.
///
/// # Panics
///
/// If `count` is 0, if there are fewer candidates than references, or if the two lists differ in length.
pub fn most_informative(above: [&[f64]; 2], count: usize) -> Vec<usize> {
    most_informative_up_to(above, count).pop().expect("a number of references")
}

/// [`most_informative`] for each number of references from 1 to `most`: hardly more work than for `most` alone.
///
/// The choice is the best one, by dynamic programming over the candidates (B. M. Kurkoski and H. Yagi, "Quantization of
/// binary-input discrete memoryless channels", IEEE Trans. Inf. Theory 60(8), 2014).
///
/// # Panics
///
/// If there are fewer candidates than references, or if the two lists differ in length.
pub fn most_informative_up_to(above: [&[f64]; 2], most: usize) -> Vec<Vec<usize>> {
    let [of_0, of_1] = above;
    assert!(of_0.len() == of_1.len() && of_0.len() >= most, "{most} references of {} candidates", of_0.len());
    let candidates = of_0.len();
    // The equivocation of a region from below candidate `from` (0: from the top) to candidate `to` (the last: the bottom).
    let end = |of: &[f64], at: usize| match at {
        0 => 0.0,
        at if at <= candidates => of[at - 1],
        _ => 1.0,
    };
    let width = candidates + 2;
    let mut regions = vec![0.0; width * width];
    for from in 0..=candidates {
        for to in from + 1..width {
            let share = |of: &[f64]| (end(of, to) - end(of, from)).max(0.0);
            regions[from * width + to] = uncertainty(share(of_0), share(of_1));
        }
    }
    let region = |from: usize, to: usize| regions[from * width + to];
    // By number of references so far: the least equivocation above each candidate that is the last reference, and the
    // reference before it.
    let mut least: Vec<f64> = (0..=candidates).map(|at| region(0, at)).collect();
    let mut before: Vec<Vec<usize>> = Vec::new();
    let mut found = Vec::with_capacity(most);
    for references in 1..=most {
        if references > 1 {
            let mut next = vec![f64::INFINITY; candidates + 1];
            let mut from = vec![0; candidates + 1];
            for at in references..=candidates {
                for (last, above) in least.iter().enumerate().take(at).skip(references - 1) {
                    let sum = above + region(last, at);
                    if sum < next[at] {
                        (next[at], from[at]) = (sum, last);
                    }
                }
            }
            least = next;
            before.push(from);
        }
        let whole = |at: usize| least[at] + region(at, candidates + 1);
        let last = (references..=candidates).min_by(|&a, &b| whole(a).total_cmp(&whole(b)));
        let mut at = last.expect("candidates");
        let mut chosen = vec![at - 1];
        for before in before.iter().rev() {
            at = before[at];
            chosen.push(at - 1);
        }
        chosen.reverse();
        found.push(chosen);
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    fn close(a: f64, b: f64) {
        assert!((a - b).abs() < 1e-9 * b.abs().max(1.0), "{a} instead of {b}");
    }

    #[test]
    fn hard_decisions_have_the_llr_of_the_binary_symmetric_channel() {
        let regions = Regions::hard(0.01).unwrap();
        close(regions.llrs()[0], (0.99f64 / 0.01).ln());
        close(regions.llrs()[1], -(0.99f64 / 0.01).ln());
        assert_eq!(regions.quantised(16), [16, -16]);
        close(regions.rber(), 0.01);
        // 1 - H(0.01).
        close(regions.information(), 1.0 + 0.01 * 0.01f64.log2() + 0.99 * 0.99f64.log2());
        assert_eq!(Regions::hard(0.0).unwrap().quantised(16), [16, -16]);
        assert_eq!(Regions::hard(0.5).unwrap().quantised(16), [0, 0]);
        close(Regions::hard(0.0).unwrap().information(), 1.0);
    }

    #[test]
    fn an_erasure_has_no_llr() {
        let regions = Regions::new(&[0.8, 0.15, 0.05], &[0.05, 0.15, 0.8]).unwrap();
        assert_eq!(regions.quantised(31), [31, 0, -31]);
        // The middle region of two references around the boundary: equal probabilities, apart from rounding.
        for spacing in [0.3, 0.31, 0.32, 0.33, 0.34, 0.35] {
            let regions = Regions::gaussian(0.45, &[spacing / 2.0, -spacing / 2.0]).unwrap();
            assert_eq!(regions.quantised(31), [31, 0, -31]);
        }
        close(regions.rber(), 0.05 + 0.075);
    }

    #[test]
    fn regions_of_a_gaussian_boundary() {
        // Q(1 / 0.5) = Q(2) = 0.022750131948179.
        let hard = Regions::gaussian(0.5, &[0.0]).unwrap();
        assert!((hard.rber() - 0.022_750_131_948_179).abs() < 1e-12, "{}", hard.rber());
        close(Regions::sigma_of(0.022_750_131_948_179).unwrap(), 0.5);
        assert!(Regions::sigma_of(0.5).unwrap_err().message().contains("is not above 0 and below 0.5"));
        let soft = Regions::gaussian(0.5, &[0.2, 0.0, -0.2]).unwrap();
        assert_eq!(soft.count(), 4);
        // References on both sides add information and change no hard decision.
        assert!((soft.rber() - hard.rber()).abs() < 1e-12);
        assert!(soft.information() > hard.information());
        let llrs = soft.llrs();
        assert!(llrs[0] > llrs[1] && llrs[1] > 0.0 && (llrs[1] + llrs[2]).abs() < 1e-9);
        assert_eq!(soft.quantised(31)[0], 31);
        // Q((0.2 + 1) / 0.5) = Q(2.4) = 0.008197535924596.
        assert!((soft.of(true)[0] - 0.008_197_535_924_596).abs() < 1e-12);
    }

    #[test]
    fn a_small_llr_keeps_its_sign_and_an_infinite_one_is_the_largest() {
        let regions = Regions::new(&[0.5, 0.251, 0.249, 0.0], &[0.0, 0.25, 0.25, 0.5]).unwrap();
        assert_eq!(regions.quantised(100), [100, 50, -50, -100]);
        let regions = Regions::new(&[0.9, 0.0501, 0.0499], &[0.01, 0.05, 0.94]).unwrap();
        assert_eq!(regions.quantised(20), [20, 1, -13]);
    }

    #[test]
    fn a_small_equivocation_keeps_its_precision_and_names_its_channel() {
        for rber in [1e-14, 1e-9, 1e-4, 0.0081, 0.11, 0.4999] {
            let regions = Regions::hard(rber).unwrap();
            let entropy = -rber * rber.log2() - (1.0 - rber) * (-rber).ln_1p() * std::f64::consts::LOG2_E;
            assert!((regions.equivocation() / entropy - 1.0).abs() < 1e-9, "{rber}");
            // Of a binary symmetric channel every region has the same LLR.
            let llr = ((1.0 - rber) / rber).ln();
            assert!((regions.difficulty(0.1) / entropy / (1.0 + 0.1 * llr) - 1.0).abs() < 1e-9, "{rber}");
            for certainty in [0.0, 0.1].into_iter().filter(|&certainty| certainty == 0.0 || rber < 0.4) {
                let back = rber_of_difficulty(regions.difficulty(certainty), certainty);
                assert!((back / rber - 1.0).abs() < 1e-6, "{back} instead of {rber}");
            }
        }
        assert_eq!([0.0, -1.0, 1.0, 2.0].map(|of| rber_of_difficulty(of, 0.0)), [0.0, 0.0, 0.5, 0.5]);
        // An erasure is sure of nothing, and a region without errors leaves nothing unknown.
        let erasures = Regions::new(&[0.8, 0.2, 0.0], &[0.0, 0.2, 0.8]).unwrap();
        assert!((erasures.difficulty(0.1) - 0.2).abs() < 1e-12);
    }

    /// A naive search among all selections of references.
    #[test]
    fn the_most_informative_references_are_the_best_of_all_selections() {
        let at = |i: usize| 1.2 - 0.2 * i as f64;
        let tail = |mean: f64, sigma: f64| {
            (0..13)
                .map(|i| 0.5 * libm::erfc((at(i) - mean) / sigma / std::f64::consts::SQRT_2))
                .collect::<Vec<f64>>()
        };
        for (upper, lower) in [(0.5, 0.5), (0.6, 0.3)] {
            let (of_0, of_1) = (tail(1.0, upper), tail(-1.0, lower));
            let equivocation = |chosen: &[usize]| {
                let regions = |of: &[f64]| {
                    let ends: Vec<f64> =
                        std::iter::once(0.0).chain(chosen.iter().map(|&i| of[i])).chain([1.0]).collect();
                    ends.windows(2).map(|pair| pair[1] - pair[0]).collect::<Vec<f64>>()
                };
                Regions::new(&regions(&of_0), &regions(&of_1)).unwrap().equivocation()
            };
            let up_to = most_informative_up_to([&of_0, &of_1], 4);
            for count in 1..=4 {
                let chosen = most_informative([&of_0, &of_1], count);
                assert_eq!(chosen, up_to[count - 1]);
                let all = (0u32..1 << 13).filter(|set| set.count_ones() as usize == count);
                let best = all
                    .map(|set| equivocation(&(0..13).filter(|i| set >> i & 1 == 1).collect::<Vec<_>>()))
                    .fold(f64::INFINITY, f64::min);
                assert!((equivocation(&chosen) / best - 1.0).abs() < 1e-12, "{count}: {chosen:?}");
            }
        }
    }

    #[test]
    fn impossible_regions_are_refused_with_a_remedy() {
        for (error, message) in [
            (Regions::new(&[1.0], &[1.0]), "1 regions"),
            (Regions::new(&[0.5, 0.5], &[1.0]), "2 regions for bits that are 0 and 1"),
            (Regions::new(&[0.5, 0.6], &[0.5, 0.5]), "bits that are 0 add up to 1.1"),
            (Regions::new(&[0.5, 0.5], &[1.5, -0.5]), "probability 1.5 for bits that are 1"),
            (Regions::new(&[f64::NAN, 0.5], &[0.5, 0.5]), "probability NaN"),
            (Regions::hard(0.6), "0.6 is not in 0..=0.5"),
            (Regions::gaussian(0.0, &[0.0]), "standard deviation of 0"),
            (Regions::gaussian(0.5, &[0.0, 0.1]), "[0.0, 0.1]"),
            (Regions::gaussian(0.5, &[]), "1 regions"),
        ] {
            let error = error.unwrap_err();
            assert!(error.message().contains(message), "{error}");
        }
    }
}
