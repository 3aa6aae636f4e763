//! Numbers in results: rounding for files, and quotients whose divisor may be 0.

/// Rounds a number for a file to 12 significant digits: more than any simulated quantity needs, and few enough to hide
/// the rounding errors of the last digits.
pub fn number(value: f64) -> f64 {
    format!("{value:.11e}").parse().expect("a formatted number parses")
}

/// The value rounded as [`number`] does; `None` when it is not finite.
pub fn finite(value: f64) -> Option<f64> {
    value.is_finite().then(|| number(value))
}

/// `a / b`; `None` when b is 0.
pub fn per(a: u64, b: u64) -> Option<f64> {
    (b > 0).then(|| a as f64 / b as f64)
}

/// `a / b`; 0 when b is 0.
pub fn ratio(a: f64, b: f64) -> f64 {
    if b == 0.0 { 0.0 } else { a / b }
}
