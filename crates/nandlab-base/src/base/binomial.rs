//! Binomial draws: the susceptible bits of a unit, the bad blocks of a plane.

use crate::base::rng::Stream;

/// Above this variance a normal draw, corrected for skewness (Cornish and Fisher), replaces the binomial draw. Before
/// it is rounded to a whole number, it has the exact mean, and variance and third central moment to 0.6 %.
const NORMAL_ABOVE: f64 = 10.0;

/// Draws the number of hits among `n` bits or blocks, each of which is a hit with probability `p`.
pub fn binomial(stream: &mut Stream, n: u32, p: f64) -> u32 {
    if p > 0.5 {
        return n - binomial(stream, n, 1.0 - p);
    }
    let mean = f64::from(n) * p;
    let variance = mean * (1.0 - p);
    if variance > NORMAL_ABOVE {
        // Box-Muller transform. `unit` is below 1, so the argument of the logarithm is never 0.
        let radius = libm::sqrt(-2.0 * libm::log(1.0 - stream.unit()));
        let normal = radius * libm::cos(2.0 * std::f64::consts::PI * stream.unit());
        let skewness = (1.0 - 2.0 * p) / libm::sqrt(variance);
        let z = normal + (normal * normal - 1.0) * skewness / 6.0;
        return libm::round(mean + libm::sqrt(variance) * z).clamp(0.0, f64::from(n)) as u32;
    }
    if p <= 0.0 {
        return 0;
    }
    // The distance from one hit to the next has a geometric distribution.
    let log_miss = libm::log1p(-p);
    let (mut count, mut at) = (0, 0.0);
    loop {
        at += libm::floor(libm::log(1.0 - stream.unit()) / log_miss) + 1.0;
        if at > f64::from(n) {
            return count;
        }
        count += 1;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn mean_variance_and_skewness_are_those_of_the_binomial() {
        for (n, p) in [(131_072, 0.0788), (131_072, 1e-4), (4096, 0.3), (100, 0.9), (50, 0.5), (4096, 3e-3)] {
            let mut stream = Stream::new(1, "binomial");
            let draws: Vec<f64> = (0..20_000).map(|_| f64::from(binomial(&mut stream, n, p))).collect();
            let mean = draws.iter().sum::<f64>() / 2e4;
            let variance = draws.iter().map(|d| (d - mean).powi(2)).sum::<f64>() / 2e4;
            let skewness = draws.iter().map(|d| (d - mean).powi(3)).sum::<f64>() / 2e4 / variance.powf(1.5);
            let (of_n, of_variance) = (f64::from(n) * p, f64::from(n) * p * (1.0 - p));
            assert!((mean - of_n).abs() < 5.0 * (of_variance / 2e4).sqrt(), "n {n}, p {p}: mean {mean}");
            let of_skewness = (1.0 - 2.0 * p) / of_variance.sqrt();
            assert!(
                (skewness - of_skewness).abs() < 0.1,
                "n {n}, p {p}: skewness {skewness}, not {of_skewness}"
            );
            assert!(
                (variance / of_variance - 1.0).abs() < 0.06,
                "n {n}, p {p}: variance {variance}, not {of_variance}"
            );
        }
        assert_eq!(binomial(&mut Stream::new(1, "x"), 10, 0.0), 0);
        assert_eq!(binomial(&mut Stream::new(1, "x"), 10, 1.0), 10);
    }

    #[test]
    fn the_last_bit_is_as_often_a_hit_as_any_other() {
        let mut stream = Stream::new(1, "binomial");
        // The only bit is the last one. The count has the mean 5,000 and the deviation 50.
        let count: u32 = (0..10_000).map(|_| binomial(&mut stream, 1, 0.5)).sum();
        assert!(count.abs_diff(5_000) < 250, "{count}");
    }
}
