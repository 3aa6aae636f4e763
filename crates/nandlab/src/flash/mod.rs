//! The flash itself: the contents of pages, the wear of blocks, and which operations are legal; how errors grow with
//! age, wear and reads, and which read level decodes them.

mod age;
mod array;
mod ecc;
pub mod reliability;

pub use age::{AgeClock, AgeStamp, InitialAges};
pub use array::{Array, Block, BlockState, DEAD_LPN, Keeps, Stamp};
pub use ecc::{Ecc, EccSpec, Hints, LEVELS_MAX, LevelSpec, Retry, StartLevel};
pub use reliability::{Condition, RberSpec, RberTable, Reliability, ReliabilitySpec, VthSpec, binomial};
