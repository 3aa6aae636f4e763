//! nandlab: a whole SSD, simulated from the host's request down to the flash page.
//!
//! Start at [`drive::Drive`]; [`spec`] says what it is built from.

pub mod cache;
pub mod core;
pub mod drive;
pub mod ftl;
pub mod geometry;
pub mod host;
pub mod huge;
pub mod ids;
mod list;
pub mod memory;
pub mod nand;
pub mod policy;
pub mod power;
pub mod probe;
pub mod rng;
pub mod sched;
pub mod slab;
pub mod spec;
pub mod stats;
pub mod units;
