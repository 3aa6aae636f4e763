//! nandlab: a simulator of a whole SSD, from the host's request down to the flash page.
//!
//! Start at [`drive::Drive`]. [`drive::spec`] has the drive's settings, [`runner`] plays a workload on the drive, and
//! [`report`] makes the results. The rooms from the bottom up: [`base`], [`spec`], [`flash`], [`sched`], [`probe`],
//! [`ftl`], [`core`](mod@core) and [`host`], which do not depend on any mechanism; the mechanisms, which do not depend
//! on each other; [`drive`], which connects them.

pub mod background;
pub mod base;
pub mod capacitor;
pub mod core;
pub mod demand_map;
pub mod drive;
pub mod flash;
pub mod ftl;
pub mod host;
pub mod migration;
pub mod power_loss;
pub mod probe;
pub mod read_levels;
pub mod reclaim;
pub mod refresh;
pub mod report;
pub mod runner;
pub mod sched;
pub mod slc;
pub mod write_cache;

pub use nandlab_base::spec;
