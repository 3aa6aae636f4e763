//! Types that every room uses and that depend on no room: time and other units, ids, geometry, requests, lists, slabs,
//! large arrays, random streams, and the descriptions of policies, counters and notes.

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
pub mod section;
pub mod slab;
pub mod units;
pub(crate) mod words;
