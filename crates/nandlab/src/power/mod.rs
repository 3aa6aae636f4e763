//! What keeps the drive alive when power fails: the capacitor, the budget it allows, and where an emergency flush writes.
//!
//! C. Gao, L. Shi, Q. Li, K. Liu, C. J. Xue, J. Yang and Y. Zhang, "Aging capacitor supported cache management scheme for
//! solid-state drives", IEEE TCAD 39(10), 2020. The drive does the work: `drive/detection.rs` measures the capacitor in
//! the running drive, `drive/power_loss.rs` flushes when power fails, `drive/recovery.rs` starts again.

mod budget;
mod capacitor;
mod cost;
mod pages;
mod spec;

pub use budget::budget_share;
pub use capacitor::Capacitor;
pub use cost::FlushCost;
pub use pages::FlushPages;
pub use spec::{BudgetSteps, CapacitorSpec, FlushMethod, FlushOrder};
