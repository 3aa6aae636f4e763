//! nandlab: a whole SSD, simulated from the host's request down to the flash page.
//!
//! Start at [`drive::Drive`]; [`drive::spec`] says what it is built from.

pub mod background;
pub mod base;
pub mod capacitor;
pub mod copyback;
pub mod core;
pub mod demand_map;
pub mod drive;
pub mod flash;
pub mod ftl;
pub mod host;
pub mod power_loss;
pub mod probe;
pub mod read_levels;
pub mod refresh;
pub mod report;
pub mod runner;
pub mod sched;
pub mod spec;
pub mod write_cache;
