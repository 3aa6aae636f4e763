//! The flash itself: what a page holds, what a block has been through, and what is legal; how errors come with age, wear and reads,
//! and which read level decodes them.

mod age;
mod array;
mod ecc;
pub mod reliability;

pub use age::{AgeClock, AgeStamp, InitialAges};
pub use array::{Array, Block, BlockState, DEAD_LPN, Keeps, Stamp};
pub use ecc::{Ecc, EccSpec, Hints, LEVELS_MAX, LevelSpec, Retry, StartLevel};
pub use reliability::{Condition, RberSpec, RberTable, Reliability, ReliabilitySpec, VthSpec, binomial};
