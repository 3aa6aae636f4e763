//! What every room uses and what knows none of them: time and other units, ids, geometry, requests, lists and arrays, random
//! streams; what a policy, a counter and a note are.

pub mod counters;
pub mod geometry;
pub mod huge;
pub mod ids;
pub(crate) mod list;
pub mod note;
pub(crate) mod numbers;
pub mod policy;
pub mod request;
pub mod rng;
pub mod slab;
pub mod units;
pub(crate) mod words;
