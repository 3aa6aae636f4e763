//! The flash itself: what a page holds, what a block has been through, what is legal, and how long things take.

mod age;
mod array;
mod ecc;
pub mod reliability;
mod timing;

pub use age::{AgeClock, InitialAges, Moment};
pub use array::{Array, Block, BlockState, DEAD_LPN, Keeps, Stamp};
pub use ecc::{Ecc, Hints, LEVELS_MAX};
pub use reliability::{Condition, RberTable, Reliability, binomial};
pub use timing::{ReadCost, Timing};
