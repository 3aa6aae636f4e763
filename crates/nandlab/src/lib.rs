//! nandlab: a whole SSD, simulated from the host's request down to the flash page.
//!
//! Start at [`drive::Drive`]; [`spec`] says what it is built from.

pub mod base;
pub mod cache;
pub mod core;
pub mod drive;
pub mod flash;
pub mod ftl;
pub mod host;
pub mod memory;
pub mod power;
pub mod probe;
pub mod sched;
pub mod spec;
pub mod stats;
