//! The flash: the contents of units, the wear of superblocks, their shapes and the rules for operations; the growth of bit errors
//! with age, wear and reads; the read levels that decode them.

mod age;
mod array;
mod ecc;
mod on_dies;
pub mod reliability;
mod shape;
mod superblock;

pub use age::{AgeClock, AgeStamp, InitialAges};
pub use array::{Array, ShapesOf};
pub use ecc::{
    Codec, CodecSpec, Ecc, EccSpec, Failures, Hints, LEVELS_MAX, LevelSpec, RETRY_ROWS_MAX, ReadView, Retry,
    RetryRow, RetryTable, StartLevel, StartPolicy,
};
pub(crate) use reliability::RBER_MAX;
pub use reliability::{
    Centre, Condition, CopybackErrors, EarlyLoss, Entry, LayerFactors, LayerSpread, PageVariation, Placement,
    RberSpec, RberTable, References, Reliability, ReliabilitySpec, Retention, SHIFTS_MAX, Shifts, Soft,
    VthSpec, VthTlcSpec,
};
pub use shape::{Ageing, CellTimes, ProgramStep, ProgramTime, ReadCost, SHAPES_MAX, Shape, ShapeId, Shapes};
pub use superblock::{
    COPYBACKS_MAX, Copied, DEAD_LPN, Keeps, Rare, Stamp, Superblock, SuperblockState, copybacks_of,
};
