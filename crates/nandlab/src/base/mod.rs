//! Types that any room may use and that depend on no room: time and other units of measurement, ids, geometry, bad
//! blocks, requests, lists, slabs, steps of work, hash tables, large arrays, random streams and draws, numbers as text,
//! counters, sections of results, notes and descriptions of policies.

pub mod bad_blocks;
pub mod binomial;
pub mod counters;
pub mod geometry;
pub mod huge;
pub mod ids;
pub(crate) mod list;
pub mod lost;
pub mod note;
pub(crate) mod number_map;
pub(crate) mod numbers;
pub mod policy;
pub mod request;
pub mod rng;
pub mod section;
pub mod slab;
pub mod steps;
pub mod stripes;
pub mod units;
pub(crate) mod words;
