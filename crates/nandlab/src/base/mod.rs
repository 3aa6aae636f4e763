//! The geometry of a drive, and the types of the crate `nandlab-base` that any room may use.

pub mod bad_blocks;
pub mod geometry;
pub mod stripes;

pub use nandlab_base::base::{
    binomial, counters, huge, ids, kept_folder, list, lost, note, number_map, numbers, page_kind, policy,
    request, rng, section, slab, state, steps, units, words,
};
