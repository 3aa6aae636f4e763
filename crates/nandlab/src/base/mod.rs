//! What every room uses, and what knows no room: time and other units, ids, geometry, requests, lists, slabs and large
//! arrays, random streams; the descriptions of policies, counters and notes.

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
