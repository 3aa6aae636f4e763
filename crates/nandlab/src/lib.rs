//! nandlab: a whole SSD, simulated from the host's request down to the flash page.
//!
//! Start at [`drive::Drive`]. [`drive::spec`] describes its settings, [`runner`] plays a workload on it, and [`report`]
//! writes the results. From the bottom up: [`base`], [`spec`], [`flash`], [`sched`], [`probe`], [`ftl`],
//! [`core`](mod@core) and [`host`], which know no mechanism; the mechanisms, which do not know each other; [`drive`],
//! which wires them.

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
