//! Read levels.

mod stats;

pub use stats::{ByLevel, EccStats};
