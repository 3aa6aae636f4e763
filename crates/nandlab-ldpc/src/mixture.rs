//! Frame error rates of hard decisions below what Monte Carlo reaches.
//!
//! Of a binary symmetric channel with the raw bit error rate p, n bits have k errors with the binomial probability.
//! Given k, all places of the errors are equally probable, whatever p. So
//!
//! FER(p) = sum over k of Binomial(n, p)(k) * FER(k),
//!
//! exactly, and FER(k), measured once at given numbers of errors, gives FER(p) at every p. At low p, where failures are
//! rare, the sum weights the rare large k.

use crate::decode::Decoder;
use crate::measure::{Channel, Codewords, Frames, measure};

/// Frame error rates measured at fixed numbers of errors.
#[derive(Clone, Debug)]
pub struct Mixture {
    bits: usize,
    /// Numbers of errors in ascending order, with what was measured there.
    points: Vec<(u32, Frames)>,
}

/// A frame error rate from a [`Mixture`].
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Estimate {
    /// The frame error rate, with 0 below the fewest errors measured, and the rate measured last above the most.
    pub rate: f64,
    /// Its standard error, from the numbers of frames, if more errors never lower the frame error rate.
    pub error: f64,
    /// The probability of fewer errors than the fewest measured.
    pub below: f64,
    /// The probability of more errors than the most measured.
    pub above: f64,
}

impl Mixture {
    /// The mixture of measurements at numbers of errors, for codewords of `bits` bits.
    ///
    /// # Panics
    ///
    /// If there are no points, if one has no frames, or if their numbers of errors are not ascending and at most
    /// `bits`.
    pub fn new(bits: usize, points: Vec<(u32, Frames)>) -> Self {
        assert!(
            points.iter().all(|(errors, frames)| frames.frames > 0 && *errors as usize <= bits),
            "{points:?}"
        );
        assert!(points.windows(2).all(|pair| pair[0].0 < pair[1].0), "numbers of errors are not ascending");
        assert!(!points.is_empty(), "a mixture needs points");
        Self { bits, points }
    }

    /// Measures `frames` frames at each number of `errors`. All LLRs have the magnitude `llr`.
    ///
    /// To split the work, [`measure`] parts with [`Channel::Errors`], merge them, and call [`Mixture::new`].
    ///
    /// # Panics
    ///
    /// As [`measure`] and [`Mixture::new`].
    pub fn measure(
        decoder: &Decoder,
        llr: u8,
        codewords: &Codewords,
        seed: u64,
        errors: &[u32],
        frames: u64,
    ) -> Self {
        let point = |&errors: &u32| {
            let channel = Channel::Errors { errors, llr };
            (errors, measure(decoder, &channel, codewords, seed ^ u64::from(errors) << 32, 0..frames))
        };
        Self::new(decoder.bits(), errors.iter().map(point).collect())
    }

    /// The points: numbers of errors in ascending order, with what was measured there.
    pub fn points(&self) -> &[(u32, Frames)] {
        &self.points
    }

    /// The frame error rate at the raw bit error rate `rber`. Between the points FER(k) is interpolated linearly.
    ///
    /// # Panics
    ///
    /// If `rber` is not in 0..=1.
    pub fn at(&self, rber: f64) -> Estimate {
        assert!((0.0..=1.0).contains(&rber), "the raw bit error rate {rber} is not in 0..=1");
        let mut weights = vec![0.0; self.points.len()];
        let (first, last) = (self.points[0].0, self.points[self.points.len() - 1].0);
        let (mut below, mut inside) = (0.0, 0.0);
        for errors in 0..first {
            below += self.probability(rber, errors);
        }
        let mut left = 0;
        for errors in first..=last {
            let p = self.probability(rber, errors);
            inside += p;
            while left + 1 < self.points.len() && self.points[left + 1].0 <= errors {
                left += 1;
            }
            let share = match self.points.get(left + 1) {
                Some(right) => {
                    f64::from(errors - self.points[left].0) / f64::from(right.0 - self.points[left].0)
                }
                None => 0.0,
            };
            weights[left] += p * (1.0 - share);
            if share > 0.0 {
                weights[left + 1] += p * share;
            }
        }
        let above = (1.0 - below - inside).max(0.0);
        weights[self.points.len() - 1] += above;
        let (mut rate, mut variance) = (0.0, 0.0);
        // Frames without a failure bound the rate at their number of errors and at all lower ones.
        let mut without_failure = 0;
        for (weight, (_, frames)) in weights.iter().zip(&self.points).rev() {
            let failures = frames.failed + frames.wrong;
            without_failure = if failures == 0 { without_failure + frames.frames } else { 0 };
            rate += weight * frames.error_rate();
            variance += weight * weight * posterior_variance(failures, frames.frames.max(without_failure));
        }
        Estimate { rate, error: libm::sqrt(variance), below, above }
    }

    /// The raw bit error rate at which the frame error rate is `rate`, by bisection in 0..=0.5; `None` if the rate
    /// measured at the most errors is lower.
    ///
    /// # Panics
    ///
    /// If `rate` is not above 0 and below 1.
    pub fn boundary(&self, rate: f64) -> Option<f64> {
        assert!(rate > 0.0 && rate < 1.0, "the frame error rate {rate} is not between 0 and 1");
        let (mut low, mut high) = (0.0, 0.5);
        if self.at(high).rate < rate {
            return None;
        }
        while high - low > 1e-12 {
            let middle = 0.5 * (low + high);
            if self.at(middle).rate < rate { low = middle } else { high = middle }
        }
        Some(high)
    }

    /// The probability of `errors` errors.
    fn probability(&self, rber: f64, errors: u32) -> f64 {
        let (n, k) = (self.bits as f64, f64::from(errors));
        if rber <= 0.0 || rber >= 1.0 {
            return f64::from(u8::from(k == rber * n));
        }
        let choices = libm::lgamma(n + 1.0) - libm::lgamma(k + 1.0) - libm::lgamma(n - k + 1.0);
        libm::exp(choices + k * libm::log(rber) + (n - k) * libm::log1p(-rber))
    }
}

/// The variance of a rate after `hits` of `n`, if all rates were equally probable before: a rate of which no failure
/// was seen is not known to be 0.
fn posterior_variance(hits: u64, n: u64) -> f64 {
    let (hits, n) = (hits as f64, n as f64);
    (hits + 1.0) * (n - hits + 1.0) / ((n + 2.0) * (n + 2.0) * (n + 3.0))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::construct::Description;
    use crate::decode::MinSum;

    fn frames(failed: u64, frames: u64) -> Frames {
        Frames { frames, failed, ..Frames::default() }
    }

    #[test]
    fn a_code_that_corrects_two_errors_has_the_binomial_tail() {
        // Every number of errors of 20 bits is a point; more than two errors always fail.
        let points =
            (0..=20).map(|errors| (errors, frames(if errors > 2 { 1000 } else { 0 }, 1000))).collect();
        let mixture = Mixture::new(20, points);
        for p in [0.0, 0.01, 0.1, 0.3, 1.0f64] {
            let q = 1.0 - p;
            let good = q.powi(20) + 20.0 * p * q.powi(19) + 190.0 * p * p * q.powi(18);
            let estimate = mixture.at(p);
            assert!((estimate.rate - (1.0 - good)).abs() < 1e-9, "{p}: {estimate:?}, {}", 1.0 - good);
            assert!(estimate.below == 0.0 && estimate.above < 1e-9, "{estimate:?}");
        }
        let boundary = mixture.boundary(0.05).unwrap();
        assert!((mixture.at(boundary).rate - 0.05).abs() < 1e-6);
    }

    #[test]
    fn rates_between_points_are_interpolated_and_the_rest_is_reported() {
        let mixture = Mixture::new(100, vec![(10, frames(0, 50)), (20, frames(50, 50))]);
        let estimate = mixture.at(0.15);
        let sparse: f64 =
            (10..=100).map(|k| mixture.probability(0.15, k) * (f64::from(k.min(20) - 10) / 10.0)).sum();
        assert!((estimate.rate - sparse).abs() < 1e-9, "{estimate:?}, {sparse}");
        assert!(estimate.below > 0.05 && estimate.below < 0.06, "{estimate:?}");
        assert!(estimate.above > 0.05 && estimate.above < 0.09, "{estimate:?}");
        assert!(estimate.error > 0.0);
        assert_eq!(Mixture::new(100, vec![(10, frames(0, 50))]).boundary(0.5), None);
    }

    #[test]
    fn the_mixture_agrees_with_the_binary_symmetric_channel() {
        let code =
            Description { rows: 4, columns: 16, lifting: 48, column_weight: 3, seed: 1 }.build().unwrap();
        let decoder = Decoder::new(&code, MinSum::default()).unwrap();
        let codewords = Codewords::zero(code.bits());
        let errors: Vec<u32> = (2..=40).step_by(2).collect();
        let mixture = Mixture::measure(&decoder, 12, &codewords, 1, &errors, 200);
        for rber in [0.012, 0.018] {
            let channel = Channel::binary_symmetric(rber, 12).unwrap();
            let direct = measure(&decoder, &channel, &codewords, 2, 0..2000);
            let estimate = mixture.at(rber);
            let error = libm::hypot(
                estimate.error,
                libm::sqrt(direct.error_rate() * (1.0 - direct.error_rate()) / direct.frames as f64),
            );
            let difference = (estimate.rate - direct.error_rate()).abs();
            assert!(difference < 3.0 * error, "{rber}: {estimate:?}, {}", direct.error_rate());
        }
    }
}
