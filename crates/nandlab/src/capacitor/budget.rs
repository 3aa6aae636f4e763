//! The dirty budget that follows from the measured capability of the capacitor.

use super::BudgetSteps;

/// The budgets of the paper above 0 (Section IV-A), as shares of the cache; the fifth budget is 0.
const FIVE: [f64; 4] = [1.0, 0.9, 0.8, 0.7];

/// The share of the cache that may be dirty if the capacitor can save `measured` (a share of the cache). With `five`
/// this is the highest step at or below `measured - margin`. With `continuous` it is this difference, but at least 0
/// and at most 1.
pub fn budget_share(steps: BudgetSteps, measured: f64, margin: f64) -> f64 {
    // 1e-9 absorbs rounding, so that 1.15 - 0.15, which is below 1 in `f64`, reaches the step 1.
    let safe = measured - margin + 1e-9;
    match steps {
        BudgetSteps::Five => FIVE.into_iter().find(|&step| step <= safe).unwrap_or(0.0),
        BudgetSteps::Continuous => safe.clamp(0.0, 1.0),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_budget_is_the_highest_step_at_or_below_the_measurement_less_the_margin() {
        let five = |measured| budget_share(BudgetSteps::Five, measured, 0.1);
        assert_eq!(five(1.05), 0.9, "Section IV-A: 105 % measured, a budget of 90 %");
        assert_eq!([five(3.0), five(1.1), five(1.0), five(0.9), five(0.8)], [1.0, 1.0, 0.9, 0.8, 0.7]);
        assert_eq!([five(0.799), five(0.1), five(0.0)], [0.0; 3]);
        assert_eq!(budget_share(BudgetSteps::Five, 1.15, 0.15), 1.0);
        let continuous = |measured| budget_share(BudgetSteps::Continuous, measured, 0.1);
        assert!((continuous(0.55) - 0.45).abs() < 1e-6);
        assert_eq!([continuous(0.05), continuous(2.0)], [0.0, 1.0]);
    }
}
