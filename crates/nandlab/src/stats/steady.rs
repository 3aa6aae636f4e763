//! The SNIA steady-state test (Solid State Storage Performance Test Specification, Enterprise, "steady state").

use super::ratio;

/// Rounds of the measurement window.
const ROUNDS: usize = 5;

/// The verdict on the last five rounds of a quantity.
#[derive(Clone, Debug, PartialEq)]
pub struct SteadyState {
    /// Range at most 20 % of the mean, and the fitted line's rise over the window at most 10 % of it.
    pub is_met: bool,
    /// Mean of the window.
    pub mean: f64,
    /// (largest - smallest) / mean.
    pub range: f64,
    /// |rise of the least-squares line over the window| / mean.
    pub slope: f64,
}

/// Tests the last five of `rounds`; `None` when there are fewer.
pub fn steady_state(rounds: &[f64]) -> Option<SteadyState> {
    let window = rounds.last_chunk::<ROUNDS>()?;
    let mean = window.iter().sum::<f64>() / ROUNDS as f64;
    let largest = window.iter().copied().fold(f64::NEG_INFINITY, f64::max);
    let smallest = window.iter().copied().fold(f64::INFINITY, f64::min);
    let centre = (ROUNDS - 1) as f64 / 2.0;
    let covariance: f64 = window.iter().enumerate().map(|(i, v)| (i as f64 - centre) * (v - mean)).sum();
    let variance: f64 = (0..ROUNDS).map(|i| (i as f64 - centre) * (i as f64 - centre)).sum();
    let range = ratio(largest - smallest, mean);
    let slope = ratio((covariance / variance * (ROUNDS - 1) as f64).abs(), mean);
    Some(SteadyState { is_met: mean > 0.0 && range <= 0.20 && slope <= 0.10, mean, range, slope })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn both_criteria_count() {
        assert_eq!(steady_state(&[1.0; 4]), None);
        assert!(steady_state(&[9.0, 1.0, 1.0, 1.0, 1.0, 1.0]).unwrap().is_met, "only the last five count");
        let wide = steady_state(&[1.0, 1.25, 1.0, 1.25, 1.0]).unwrap();
        assert!(!wide.is_met && wide.range > 0.20 && wide.slope < 0.10);
        // Rises by 0.03 a round: 0.12 over the window, 0.113 of the mean, within the range criterion.
        let rising = steady_state(&[1.0, 1.03, 1.06, 1.09, 1.12]).unwrap();
        assert!(!rising.is_met && rising.range < 0.20);
        assert!((rising.slope - 0.12 / 1.06).abs() < 1e-12);
        assert!(!steady_state(&[0.0; 5]).unwrap().is_met, "nothing happening is not a steady state");
    }
}
