//! Integration tests of drives and their parts, in one program, because every program compiles the drive anew for its
//! probes. Each file of tests is a module here.

#[path = "../common/cases.rs"]
mod cases;
#[path = "../common/mod.rs"]
mod common;
#[path = "../common/crash.rs"]
mod crash;
#[path = "../common/mechanisms.rs"]
mod mechanisms;

mod allocation;
mod bad_blocks;
mod bench_cases;
mod blocking;
mod capability;
mod capacitor;
mod checkpoint;
mod clients;
mod closed_forms;
mod codec;
mod controller;
mod counters;
mod cut_in_recovery;
mod demand_map;
mod device;
mod ec_cache;
mod end_of_time;
mod fast_forward;
mod flush_to;
mod frames;
mod gc_in_flush;
mod golden_commands;
mod golden_runs;
mod host;
mod lifetime;
mod link;
mod memory;
mod migration;
mod other_simulators;
mod pacing;
mod partial_by_hand;
mod partial_refresh;
mod partial_units;
mod placement;
mod planes;
mod policies;
mod power_loss;
mod power_loss_sabotage;
mod power_outputs;
mod precondition;
mod preconditioned;
mod promises;
mod random_more;
mod random_runs;
mod read_levels;
mod refresh;
mod reliability;
mod results;
mod retry;
mod sabotage;
mod slc;
mod snapshot;
mod space;
mod steps;
mod streams;
mod tags;
mod tlc;
mod together;
mod twin;
mod twin_agrees;
mod units;
mod units_power_loss;
mod victim_times;
mod victims;
mod warm_up;
mod write_cache;
