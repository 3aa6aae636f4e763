//! The noise on a cell's threshold voltage: a Gaussian plus a two-sided exponential (Laplace), in closed form.
//!
//! With y = z / sigma, k = sigma / lambda, phi and Q the density and upper tail of N(0, 1), and
//! A = exp(k^2/2 - k y) Q(k - y) / 2, B = exp(k^2/2 + k y) Q(k + y) / 2, for Z = Gaussian(sigma) + Laplace(lambda):
//!
//! - density f(z) = (A + B) / lambda,
//! - tail S(z) = P(Z > z) = Q(y) + A - B,
//! - integral of the tail J(z) = sigma (phi(y) - y Q(y)) + lambda (A + B).
//!
//! These forms follow from convolution and integration by parts, with the derivatives with respect to y: A' = -k A +
//! phi / 2, B' = k B - phi / 2. The exponential in B, and in A for y <= k, may overflow where Q underflows. These terms
//! are therefore computed as phi(y) / 2 times the Mills ratio Q / phi, which is between 0 and 1.26. The distribution is
//! symmetric, so only z >= 0 is computed.

use std::f64::consts::{FRAC_1_SQRT_2, PI};

/// Gaussian plus Laplace noise with mean 0, in volts. Either width may be 0.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Noise {
    /// Standard deviation of the Gaussian, >= 0.
    pub(super) sigma: f64,
    /// Width of the two-sided exponential exp(-|z| / lambda) / (2 lambda), >= 0.
    pub(super) lambda: f64,
}

impl Noise {
    /// P(Z > z).
    pub(super) fn tail(&self, z: f64) -> f64 {
        if z < 0.0 {
            return 1.0 - self.tail(-z);
        }
        if self.sigma == 0.0 {
            return match self.lambda {
                0.0 if z == 0.0 => 0.5,
                0.0 => 0.0,
                lambda => 0.5 * libm::exp(-z / lambda),
            };
        }
        let y = z / self.sigma;
        let (a, b) = self.sides(y);
        upper(y) + a - b
    }

    /// Integral of P(Z > x) over x from z to infinity, in volts.
    pub(super) fn tail_integral(&self, z: f64) -> f64 {
        if z < 0.0 {
            return self.tail_integral(-z) - z;
        }
        if self.sigma == 0.0 {
            return if self.lambda == 0.0 { 0.0 } else { 0.5 * self.lambda * libm::exp(-z / self.lambda) };
        }
        let y = z / self.sigma;
        let (a, b) = self.sides(y);
        let gaussian = gauss(y) - y * upper(y);
        // For large y the Gaussian part is nearly 0, and rounding may make it negative.
        self.sigma * gaussian.max(0.0) + self.lambda * (a + b)
    }

    /// Probability density at z, per volt; 0 everywhere if both widths are 0.
    pub(super) fn density(&self, z: f64) -> f64 {
        let z = z.abs();
        match (self.sigma, self.lambda) {
            (0.0, 0.0) => 0.0,
            (0.0, lambda) => 0.5 * libm::exp(-z / lambda) / lambda,
            (sigma, 0.0) => gauss(z / sigma) / sigma,
            (sigma, lambda) => {
                let (a, b) = self.sides(z / sigma);
                (a + b) / lambda
            }
        }
    }

    /// A and B as defined at the top of this file, for y >= 0 and sigma > 0.
    fn sides(&self, y: f64) -> (f64, f64) {
        if self.lambda == 0.0 {
            return (0.0, 0.0);
        }
        let k = self.sigma / self.lambda;
        let half = 0.5 * gauss(y);
        // For y > k the exponent is at most -k^2 / 2; for y <= k the Mills ratio has a positive argument.
        let a = if y > k { 0.5 * libm::exp(k * (0.5 * k - y)) * upper(k - y) } else { half * mills(k - y) };
        (a, half * mills(k + y))
    }
}

/// Density of N(0, 1).
fn gauss(y: f64) -> f64 {
    libm::exp(-0.5 * y * y) / (2.0 * PI).sqrt()
}

/// Upper tail of N(0, 1).
pub(super) fn upper(y: f64) -> f64 {
    0.5 * libm::erfc(y * FRAC_1_SQRT_2)
}

/// Mills ratio upper(u) / gauss(u) for u >= 0.
fn mills(u: f64) -> f64 {
    if u < 12.0 {
        return upper(u) / gauss(u);
    }
    // Laplace's continued fraction 1/(u+ 1/(u+ 2/(u+ ...))): for u >= 12 ten terms are exact to 1e-15.
    let mut fraction = u;
    for term in (1..=10).rev() {
        fraction = u + f64::from(term) / fraction;
    }
    1.0 / fraction
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The integral of `f`, computed by the midpoint rule.
    fn integral(f: impl Fn(f64) -> f64, from: f64, to: f64) -> f64 {
        let n = 40_000;
        let h = (to - from) / f64::from(n);
        (0..n).map(|i| f(from + (f64::from(i) + 0.5) * h)).sum::<f64>() * h
    }

    #[test]
    fn closed_forms_agree_with_numerical_convolution() {
        for (sigma, lambda) in [(0.05, 0.02), (0.02, 0.05), (0.35, 0.01), (0.05, 0.001), (0.001, 0.05)] {
            let noise = Noise { sigma, lambda };
            let far = 12.0 * (sigma + lambda);
            for z in [0.0, 0.3, 1.0, 3.0, 6.0].map(|m| m * (sigma + lambda)) {
                let laplace = |x: f64| libm::exp(-x.abs() / lambda) / (2.0 * lambda);
                let density = integral(|x| gauss(x / sigma) / sigma * laplace(z - x), -far, far);
                let tail = integral(|x| noise.density(x), z, z + 3.0 * far);
                let tails = integral(|x| noise.tail(x), z, z + 3.0 * far);
                let near = |a: f64, b: f64| (a - b).abs() < 2e-4 * b;
                assert!(near(density, noise.density(z)), "{noise:?} {z}: {density} {}", noise.density(z));
                assert!(near(tail, noise.tail(z)), "{noise:?} {z}: {tail} {}", noise.tail(z));
                assert!(near(tails, noise.tail_integral(z)), "{noise:?} {z}");
                assert!((noise.tail(z) + noise.tail(-z) - 1.0).abs() < 1e-15);
            }
        }
    }

    #[test]
    fn a_width_of_0_is_the_limit_of_a_small_width() {
        let close = |a: f64, b: f64| (a - b).abs() <= 1e-5 * b.abs() + 1e-300;
        for (alone, both) in [
            (Noise { sigma: 0.05, lambda: 0.0 }, Noise { sigma: 0.05, lambda: 1e-5 }),
            (Noise { sigma: 0.0, lambda: 0.05 }, Noise { sigma: 1e-5, lambda: 0.05 }),
        ] {
            for z in [-0.1, 0.001, 0.02, 0.1] {
                assert!(close(alone.tail(z), both.tail(z)), "{alone:?} {z}");
                assert!(close(alone.tail_integral(z), both.tail_integral(z)), "{alone:?} {z}");
                assert!(close(alone.density(z), both.density(z)), "{alone:?} {z}");
            }
        }
    }

    #[test]
    fn far_tails_and_very_different_widths_give_finite_values() {
        for sigma in [0.0, 1e-12, 1e-3, 0.05, 1.0, 1e3] {
            for lambda in [0.0, 1e-12, 1e-3, 0.05, 1.0, 1e3] {
                let noise = Noise { sigma, lambda };
                for z in [0.0, 1e-9, 0.1, 1.0, 10.0, 1e3] {
                    for v in [noise.tail(z), noise.tail_integral(z), noise.density(z)] {
                        assert!(v.is_finite() && v >= 0.0, "{noise:?} {z}: {v}");
                    }
                }
            }
        }
    }

    #[test]
    fn mills_ratio_is_smooth_where_its_two_forms_meet() {
        let (below, above) = (mills(12.0 - 1e-13), mills(12.0));
        assert!((below - above).abs() < 1e-12 * above, "{below} {above}");
    }
}
