//! The flash itself: what a page holds, what a block has been through, what is legal, and how long things take.

mod array;
mod timing;

pub use array::{Array, Block, BlockState, DEAD_LPN, Stamp};
pub use timing::Timing;
