//! Zipf-distributed ranks in constant memory.
//!
//! Rejection-inversion after Hörmann & Derflinger, "Rejection-inversion to generate variates from monotone discrete
//! distributions", ACM TOMACS 6(3), 1996. The probability of rank k is proportional to k^-s. A uniform number is mapped
//! through the inverse of the integral of the hat function x^-s. The rank nearest to the result is accepted at once
//! unless the rank exceeds the result by more than a constant. Otherwise a comparison accepts or rejects the rank.
//! Fewer than 1.1 uniform numbers are needed per rank on average. Any s >= 0 is possible; s = 1 needs no special case.

use nandlab_base::base::rng::Stream;

/// Ranks `1..=n` with probability proportional to `rank^-s`.
#[derive(Clone, Copy, Debug)]
pub struct Zipf {
    n: u64,
    s: f64,
    h_first: f64,
    h_last: f64,
    /// A rank that exceeds the result of the inverse by at most this number is accepted without a comparison.
    shortcut: f64,
}

impl Zipf {
    /// A distribution of `n` ranks (at least 1) with exponent `s` (finite, at least 0).
    pub fn new(n: u64, s: f64) -> Self {
        let n = n.max(1);
        let h_first = h_integral(1.5, s) - 1.0;
        let h_last = h_integral(n as f64 + 0.5, s);
        let shortcut = 2.0 - h_inverse(h_integral(2.5, s) - h(2.0, s), s);
        Self { n, s, h_first, h_last, shortcut }
    }

    /// The next rank.
    pub fn next(&self, random: &mut Stream) -> u64 {
        loop {
            let u = self.h_last + random.unit() * (self.h_first - self.h_last);
            let x = h_inverse(u, self.s);
            let k = libm::floor(x + 0.5).clamp(1.0, self.n as f64);
            if k - x <= self.shortcut || u >= h_integral(k + 0.5, self.s) - h(k, self.s) {
                return k as u64;
            }
        }
    }
}

/// The hat function: x^-s.
fn h(x: f64, s: f64) -> f64 {
    libm::exp(-s * libm::log(x))
}

/// The integral of [`h`] from 1 to x: (x^(1-s) - 1) / (1 - s), or log x at s = 1.
fn h_integral(x: f64, s: f64) -> f64 {
    let log = libm::log(x);
    expm1_over((1.0 - s) * log) * log
}

/// The inverse of [`h_integral`].
fn h_inverse(u: f64, s: f64) -> f64 {
    // Rounding may give a value below -1, for which log(1 + t) is undefined.
    let t = (u * (1.0 - s)).max(-1.0);
    libm::exp(log1p_over(t) * u)
}

/// (e^x - 1) / x.
fn expm1_over(x: f64) -> f64 {
    if libm::fabs(x) > 1e-8 { libm::expm1(x) / x } else { 1.0 + x / 2.0 * (1.0 + x / 3.0) }
}

/// log(1 + x) / x.
fn log1p_over(x: f64) -> f64 {
    if libm::fabs(x) > 1e-8 { libm::log1p(x) / x } else { 1.0 - x * (0.5 - x / 3.0) }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn draw(n: u64, s: f64, draws: u64) -> Vec<u64> {
        let zipf = Zipf::new(n, s);
        let mut random = Stream::new(1, "zipf test");
        let mut counts = vec![0; n as usize + 1];
        for _ in 0..draws {
            counts[zipf.next(&mut random) as usize] += 1;
        }
        counts
    }

    #[test]
    fn counts_fit_the_closed_form() {
        for s in [0.0, 0.5, 0.9, 1.0, 1.2, 2.0] {
            let (n, draws) = (100, 400_000);
            let counts = draw(n, s, draws);
            let weights: Vec<f64> = (1..=n).map(|k| h(k as f64, s)).collect();
            let total: f64 = weights.iter().sum();
            let chi_square: f64 = weights
                .iter()
                .zip(&counts[1..])
                .map(|(w, &count)| {
                    let expected = w / total * draws as f64;
                    (count as f64 - expected) * (count as f64 - expected) / expected
                })
                .sum();
            // With 99 degrees of freedom, chi-square exceeds 148 with probability 0.001.
            assert!(chi_square < 148.0, "s = {s}: {chi_square}");
        }
    }

    #[test]
    fn first_hundredth_of_a_large_space_has_its_share() {
        let (n, draws) = (1_000_000u64, 1_000_000u64);
        for s in [0.9, 1.0] {
            let zipf = Zipf::new(n, s);
            let mut random = Stream::new(7, "zipf head");
            let mut head = 0u64;
            for _ in 0..draws {
                head += u64::from(zipf.next(&mut random) <= n / 100);
            }
            let mass = |upto: u64| (1..=upto).map(|k| h(k as f64, s)).sum::<f64>();
            let expected = mass(n / 100) / mass(n);
            let got = head as f64 / draws as f64;
            assert!((got / expected - 1.0).abs() < 0.01, "s = {s}: {got}, expected {expected}");
        }
    }

    #[test]
    fn extreme_spaces_stay_in_range() {
        let mut random = Stream::new(3, "zipf range");
        for (n, s) in [(1, 0.9), (2, 0.0), (u64::MAX >> 12, 0.99), (10, 50.0)] {
            let zipf = Zipf::new(n, s);
            for _ in 0..1000 {
                assert!((1..=n).contains(&zipf.next(&mut random)));
            }
        }
    }
}
